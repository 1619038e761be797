"""The guarantee that a mechanism states, against the exact worlds in which it plays."""

import itertools
import math

import numpy as np
import pytest

import whosin as wi
from whosin.errors import ImplicationError, InputTypeError
from whosin.mechanisms import Exponential, Gaussian, KMax, Laplace, NormExponential, RandomizedResponse, Subsampled
from whosin.numerics.gaussian_noise import epsilon_for

RECORDS = (0.0, 0.25, 1.0)


@pytest.mark.parametrize("scale", [0.5, 2.0])
@pytest.mark.parametrize(
    "make", [Laplace, NormExponential, lambda query, scale: NormExponential(query, scale, math.inf)]
)
def test_laplace_noise_attains_its_guarantee(make, scale):
    """A sum of records in [0, 1], add/remove: ε = 1/scale, and not less."""
    mechanism = make(sum, scale)
    game = wi.worlds.independent(RECORDS, 0.5).play(mechanism)
    promised = mechanism.guarantee(1.0)
    assert game.dp().epsilon <= promised.epsilon
    assert game.dp().epsilon == pytest.approx(promised.epsilon, rel=1e-12)
    for record in RECORDS:
        assert promised.roc.dominates(game.roc(record), 1e-12)


@pytest.mark.parametrize("norm", [1.0, 2.0, math.inf])
def test_norm_exponential_noise_on_a_number_is_laplace_noise(norm):
    world = wi.worlds.uniform_subsets((*RECORDS, 3.0), 2)
    one, other = (world.play(mechanism) for mechanism in (Laplace(sum, 0.7), NormExponential(sum, 0.7, norm)))
    assert one.mip() == other.mip()
    assert one.pmp() == other.pmp()
    boxed = world.play(NormExponential(lambda records: np.array([sum(records)]), 0.7, norm))
    assert boxed.mip() == one.mip()


def test_worlds_play_one_number():
    with pytest.raises(InputTypeError, match="returns a number"):
        wi.worlds.all_subsets(RECORDS).play(NormExponential(lambda records: np.zeros(2), 1.0))


@pytest.mark.parametrize("scale", [0.5, 3.730631634815944])
def test_gaussian_noise_attains_its_guarantee(scale):
    """μ = sensitivity/scale, whose (ε, δ) is Balle and Wang's; ε = 1 at δ = 1e-5 for scale 3.7306…"""
    mechanism = Gaussian(sum, scale)
    game = wi.worlds.independent(RECORDS, 0.5).play(mechanism)
    for delta in (1e-5, 0.01):
        promised = mechanism.guarantee(1.0).implies(wi.ApproxDP, delta=delta)
        assert game.dp(delta).epsilon == pytest.approx(promised.epsilon, rel=1e-9)
        assert promised.epsilon == pytest.approx(epsilon_for(scale, delta, 1.0), rel=1e-9)
        if (scale, delta) == (3.730631634815944, 1e-5):
            assert promised.epsilon == pytest.approx(1.0, rel=1e-9)
    limit = mechanism.guarantee(1.0).roc
    for record in RECORDS:
        assert limit.dominates(game.roc(record), 1e-9)


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("n", [4, 6, 9])
def test_k_max_attains_its_guarantee(k, n):
    universe = tuple(range(n))
    mechanism = KMax(universe, k)
    promised = mechanism.guarantee()
    exact = wi.worlds.all_subsets(universe).play(mechanism).membership_privacy()
    assert promised.family == exact.family == "uniform"
    assert exact.gamma <= promised.gamma * (1 + 1e-15)
    if n > k:
        assert exact.gamma == pytest.approx(promised.gamma, rel=1e-12)


def test_k_max_with_a_null_has_no_guarantee():
    with pytest.raises(ImplicationError, match="empty='lowest'"):
        KMax("abc", 2, empty="null").guarantee()


@pytest.mark.parametrize("rate", [0.1, 0.5, 1.0])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (2.0, 0.05)])
def test_sampling_first_attains_the_amplified_guarantee(rate, epsilon, delta):
    """ε = ln(1 + rate(e^ε - 1)), δ times rate, attained by randomised response on one membership."""
    inner = RandomizedResponse(lambda records: "a" in records, epsilon, delta)
    promised = inner.guarantee().implies(wi.ApproxDP, sample_rate=rate)
    game = wi.worlds.independent("ab", 0.5).play(Subsampled(inner, rate))
    assert promised.epsilon == pytest.approx(math.log1p(rate * math.expm1(epsilon)), rel=1e-12)
    assert promised.delta == pytest.approx(rate * delta, rel=1e-12)
    assert game.dp(promised.delta).epsilon == pytest.approx(promised.epsilon, rel=1e-9)


# --- the defender's sample (Thudi et al. 2022, section 4.2) -----------------------------------------------------------


def sampled(table, rate):
    """The prior of what is used: each record of the drawn data set stays with probability ``rate``."""
    prior = {}
    for data_set, probability in table.items():
        for kept in itertools.product((False, True), repeat=len(data_set)):
            used = "".join(itertools.compress(data_set, kept))
            weight = math.prod(rate if stays else 1 - rate for stays in kept)
            prior[used] = prior.get(used, 0.0) + probability * weight
    return prior


DEPENDENT = {
    "all or nobody": {"abcd": 0.5, "": 0.5},
    "almost surely all": {"abcd": 0.99, "": 0.01},
    "one of each pair": {"ac": 0.1, "bd": 0.6, "ad": 0.3},
    "a chain": {"": 0.2, "a": 0.2, "ab": 0.2, "abc": 0.2, "abcd": 0.2},
}


@pytest.mark.parametrize("rate", [0.05, 0.4])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
@pytest.mark.parametrize("name", DEPENDENT)
def test_the_bound_of_a_sample_holds_for_dependent_records(name, epsilon, rate):
    """Every record's use is believed at most to 1/(1 + e^{-ε}(1-T)/T), however the data came together."""
    least = math.exp(-4 * epsilon) / 2

    def rising(records):
        hit = least * math.exp(epsilon * len(records))
        return {"hit": hit, "miss": 1 - hit}

    mechanisms = [
        rising,
        RandomizedResponse(lambda records: "a" in records, epsilon),
        RandomizedResponse(lambda records: len(records) % 2 == 0, epsilon),
        Exponential((0, 1), lambda w, x: abs(w - (x in "ab")), epsilon),
    ]
    world = wi.worlds.explicit("abcd", sampled(DEPENDENT[name], rate))
    everything = wi.worlds.all_subsets("abcd")
    for mechanism in mechanisms:
        promised = everything.play(mechanism).dp()
        limit = promised.posterior(rate)[1]
        game = world.play(mechanism)
        beliefs = [game.posterior(record, output) for record in "abcd" for output in game.outputs]
        assert max(beliefs) <= limit * (1 + 1e-12)


def test_without_the_sample_dependence_breaks_the_bound():
    least = math.exp(-8.0) / 2
    world = wi.worlds.explicit("abcd", {"abcd": 0.05, "": 0.95})
    game = world.play(
        lambda records: {1: least * math.exp(2.0 * len(records)), 0: 1 - least * math.exp(2.0 * len(records))}
    )
    assert game.posterior("a", 1) > wi.PureDP(2.0).posterior(0.05)[1] + 0.5


def test_the_bound_of_a_sample_is_attained():
    rate, epsilon = 0.2, 1.5
    world = wi.worlds.explicit("abcd", sampled({"abcd": 1.0}, rate))
    game = world.play(RandomizedResponse(lambda records: "a" in records, epsilon))
    assert game.posterior("a", True) == pytest.approx(wi.PureDP(epsilon).posterior(rate)[1], rel=1e-12)

"""Totals against the exact product of worst pairs, against exact worlds, and against what is known of the parts."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whosin as wi
from whosin.errors import ImplicationError, InputError, InputTypeError
from whosin.guarantees.composition import (
    _MOST_POINTS,
    _by_product,
    _convolved,
    _pair_of_curve,
    _spacing,
    sum_up,
    why_not,
)
from whosin.guarantees.dp import shifted_normal_divergence
from whosin.ledger import compose


def responses(epsilon, delta):
    """The worst pair of (ε, δ): probabilities of four outputs with the record in and out."""
    share = (1.0 - delta) / (1.0 + math.exp(-epsilon))
    return [(delta, 0.0), (share, share * math.exp(-epsilon)), (share * math.exp(-epsilon), share), (0.0, delta)]


def exact_divergence(pairs, mu, gamma):
    """E_γ of the product of worst pairs and of N(μ, 1) against N(0, 1), by enumeration."""
    total = 0.0
    for outputs in itertools.product(*(responses(*pair) for pair in pairs)):
        p, q = math.prod(x for x, _ in outputs), math.prod(y for _, y in outputs)
        if p > 0.0:
            ratio = gamma * q / p
            total += p * (max(0.0, 1.0 - ratio) if mu == 0.0 else shifted_normal_divergence(mu, ratio))
    return total


PAIRS = st.lists(st.tuples(st.floats(0.01, 3.0), st.sampled_from([0.0, 1e-6, 1e-3, 0.05])), min_size=2, max_size=4)


@settings(max_examples=12)
@given(PAIRS, st.sampled_from([0.0, 0.3, 1.5]), st.sampled_from([1e-5, 1e-3, 0.1, 0.3]))
def test_product_is_above_the_truth_and_close(pairs, mu, delta):
    """ε of the total is never below the exact one, and at most a little above; the same for the advantage."""
    given_ = [wi.ApproxDP(*pair) if pair[1] else wi.PureDP(pair[0]) for pair in pairs]
    total = compose([*given_, *([wi.GaussianDP(mu)] if mu else [])], delta=delta)
    exact = exact_divergence(pairs, mu, 1.0)
    assert exact - 1e-12 <= total.advantage <= exact + 2e-3
    if math.isfinite(total.epsilon):
        assert exact_divergence(pairs, mu, math.exp(total.epsilon)) <= delta * (1 + 1e-9) + 1e-13
        if total.epsilon > 0.02:
            assert exact_divergence(pairs, mu, math.exp(total.epsilon - 0.02)) > delta * (1 - 1e-9)
    else:
        assert exact_divergence(pairs, 0.0, 1e300) >= delta * (1 - 1e-6)


@given(st.lists(st.floats(0.0, 1e3), max_size=30))
def test_sums_are_rounded_up(values):
    total = sum_up(values)
    exact = sum(map(Fraction, values), Fraction(0))
    assert Fraction(total) >= exact
    assert exact == 0 or float((Fraction(total) - exact) / exact) <= 2.3e-16


@pytest.mark.parametrize(
    ("parts", "sharp"),
    [([(0.1, 30), (0.003, 30)], 1e-3), ([(3.0, 2), (0.05, 200)], 5e-4), ([(1e-4, 400)], 1e-3), ([(0.7, 12)], 2e-4)],
)
def test_the_grid_is_fine_against_small_and_against_many_releases(parts, sharp):
    """Two groups of responses: loss is a sum of two binomials, enumerated. A coarser grid lies further above it."""
    laws = [{k: math.comb(n, k) * math.exp(e * k) / (1.0 + math.exp(e)) ** n for k in range(n + 1)} for e, n in parts]
    atoms = [(1.0, 0.0)]
    for (e, n), law in zip(parts, laws, strict=True):
        atoms = [(p * q, loss + e * (2 * k - n)) for p, loss in atoms for k, q in law.items()]
    for share in (0.3, 0.6):
        epsilon = share * sum(e * n for e, n in parts) / math.sqrt(sum(n for _, n in parts)) + 1e-6
        exact = math.fsum(p * -math.expm1(epsilon - loss) for p, loss in atoms if loss > epsilon)
        releases = [wi.PureDP(e) for e, n in parts for _ in range(n)]
        found = _by_product(releases, "add_remove", exact)[0][0]
        assert epsilon <= found <= epsilon * (1 + sharp)


@pytest.mark.parametrize("ranges", [[(2.0, 1)], [(1.0, 16)], [(0.01, 1)], [(6.0, 4), (0.1, 60)], [(1e-4, 10)]])
def test_the_grid_keeps_what_rounding_costs_small_and_fits_the_fft(ranges):
    """A loss moves by less than a cell, and its variance by at most a quarter of a cell squared for each release."""
    spacing, widest = _spacing(ranges), max(width for width, _ in ranges)
    releases = sum(count for _, count in ranges)
    assert spacing <= 1e-3
    assert spacing <= 1e-3 * widest
    assert releases * spacing**2 / 4 <= 2.5e-6
    assert widest / spacing <= 1e5
    assert 24.0 * 0.5 * math.sqrt(sum(count * width**2 for width, count in ranges)) / spacing <= _MOST_POINTS


def test_pure_releases_add_up():
    total = compose([wi.PureDP(0.1)] * 3)
    assert total.guarantee == wi.PureDP(total.epsilon)
    assert Fraction(total.epsilon) >= 3 * Fraction(0.1)
    assert total.epsilon == pytest.approx(0.3, rel=1e-15)
    assert (total.way, total.delta, total.adjacency) == ("sum", 0.0, "add_remove")
    assert total.advantage < wi.PureDP(0.3).advantage


def test_many_small_releases_are_better_than_their_sum():
    """100 releases of ε = 0.1: at δ = 1e-5 the sum says 10; by Kairouz et al. 4.3068."""
    total = compose([wi.PureDP(0.1)] * 100, delta=1e-5)
    assert (total.way, total.sum) == ("product of the worst pairs", wi.PureDP(total.sum.epsilon))
    exact = _homogeneous_epsilon(0.1, 100, 1e-5)
    assert exact <= total.epsilon <= exact + 1e-3
    assert total.epsilon == pytest.approx(4.3068, abs=5e-4)


def _homogeneous_epsilon(epsilon, times, delta):
    """Smallest ε with E_{e^ε} ≤ δ for so many binary responses, from the binomial law."""
    from scipy.optimize import brentq
    from scipy.stats import binom

    hits = np.arange(times + 1)
    p = binom.pmf(hits, times, 1.0 / (1.0 + math.exp(-epsilon)))
    losses = (2 * hits - times) * epsilon

    def excess(t):
        return float(p @ -np.expm1(np.minimum(t - losses, 0.0))) - delta

    return brentq(excess, 0.0, times * epsilon)


def test_gaussian_releases_add_up_in_squares():
    total = compose([wi.GaussianDP(3.0), wi.GaussianDP(4.0)], delta=1e-5)
    assert total.gaussian.mu == pytest.approx(5.0, rel=1e-15)
    assert total.gaussian.mu >= 5.0
    assert total.way == "gaussian"
    assert total.epsilon == pytest.approx(wi.GaussianDP(5.0).implies(wi.ApproxDP, delta=1e-5).epsilon, rel=1e-12)
    assert total.advantage == pytest.approx(wi.GaussianDP(5.0).advantage, rel=1e-12)


def test_full_batches_are_gaussian():
    total = compose([wi.DPSGD(2.0, 1.0, 16), wi.GaussianDP(1.5)])
    assert total.gaussian.mu == pytest.approx(2.5, rel=1e-14)
    assert total.gaussian.mu >= 2.5


def test_two_halves_of_a_run_are_the_run():
    """1000 and 1000 steps of DP-SGD together are 2000 steps: the total is that, rounded up a little."""
    run = wi.DPSGD(1.0, 0.01, 2000)
    total = compose([wi.DPSGD(1.0, 0.01, 1000)] * 2, delta=1e-6)
    once = run.implies(wi.ApproxDP, delta=1e-6).epsilon
    assert once * (1 - 1e-4) <= total.epsilon <= once * 1.002
    assert run.advantage * (1 - 1e-4) <= total.advantage <= run.advantage * 1.002


@pytest.mark.parametrize(("noise", "rate", "steps"), [(1.0, 0.3, 1), (0.6, 0.05, 1), (1.0, 0.3, 4)])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-3), (3.0, 1e-6), (0.2, 0.05)])
def test_a_run_and_a_response_both_ways_round(noise, rate, steps, epsilon, delta):
    """DP-SGD is not symmetric: the exact divergence of the product is at most δ in and out exchanged too."""
    run = wi.DPSGD(noise, rate, steps)
    total = compose([run, wi.PureDP(epsilon)], delta=delta)

    def worst(gamma):
        ways = (run.roc, run.roc.reversed())
        pair = responses(epsilon, 0.0)[1:3]
        return max(sum(p * curve.divergence(gamma * q / p) for p, q in pair) for curve in ways)

    assert worst(math.exp(total.epsilon)) <= delta * (1 + 1e-9)
    assert worst(math.exp(total.epsilon - 0.01)) > delta
    assert worst(1.0) - 1e-12 <= total.advantage <= worst(1.0) + 1e-3


def test_one_release_is_itself():
    run = wi.DPSGD(1.0, 0.01, 100)
    total = compose([run], delta=1e-6)
    assert total.guarantee == run.implies(wi.ApproxDP, delta=1e-6)
    assert total.advantage == run.advantage
    assert compose([wi.ApproxDP(1.0, 1e-6)]).guarantee == wi.ApproxDP(1.0, 1e-6)
    assert compose([wi.PureDP(1.0)]).guarantee == wi.PureDP(1.0)


@settings(max_examples=8)
@given(st.floats(0.05, 2.0), st.floats(0.05, 2.0), st.sampled_from(["add_remove", "replace"]))
def test_worlds_stay_below_the_total(first, second, adjacency):
    """Two randomised answers on real small worlds: nobody who sees both beats the total."""
    if adjacency == "add_remove":
        world = wi.worlds.independent("abc", [0.5, 0.5, 0.5])
        facts = (lambda d: "a" in d, lambda d: len(d) % 2 == 0)
    else:
        world = wi.worlds.uniform_subsets("abcd", 2)
        facts = (lambda d: "a" in d, lambda d: "b" in d)

    def answer(fact, epsilon):
        truth = 1.0 / (1.0 + math.exp(-epsilon))
        return lambda d: {bool(fact(d)): truth, not fact(d): 1.0 - truth}

    parts = [answer(fact, epsilon) for fact, epsilon in zip(facts, (first, second), strict=True)]

    def both(d):
        return {(x, y): p * q for x, p in parts[0](d).items() for y, q in parts[1](d).items()}

    total = compose([wi.PureDP(first, adjacency), wi.PureDP(second, adjacency)], delta=0.05)
    game = world.play(both)
    assert game.dp(delta=0.05).epsilon <= total.epsilon + 1e-9
    for record in world.universe:
        assert game.roc(record).divergence(1.0) <= total.advantage + 1e-12
    repeated = world.play(lambda d: {(x, y): p * q for x, p in parts[0](d).items() for y, q in parts[0](d).items()})
    limit = compose([wi.PureDP(first, adjacency)] * 2).advantage
    assert limit - 2e-3 <= repeated.roc("a").divergence(1.0) <= limit + 1e-12


DESIGN = {frozenset(block) for block in ("012", "013", "024", "035", "045", "125", "134", "145", "234", "235")}


def halves(drawn):
    """The drawn three or the other three, without saying which."""
    inside = frozenset(drawn)
    return {frozenset({inside, frozenset("012345") - inside}): 1.0}


def in_design(drawn):
    """Whether the drawn three are a block of the design."""
    return {frozenset(drawn) in DESIGN: 1.0}


def test_the_design_is_balanced():
    for pair in itertools.combinations("012345", 2):
        assert sum(set(pair) <= block for block in DESIGN) == 2
    assert not any(frozenset("012345") - block in DESIGN for block in DESIGN)


def test_two_releases_that_tell_nothing_tell_all():
    """The counterexample that the ledger names: 0-PMP and 0-MIP each, and everything together."""
    world = wi.worlds.uniform_subsets("012345", 3)
    for mechanism in (halves, in_design):
        game = world.play(mechanism)
        assert game.pmp().epsilon == pytest.approx(0.0, abs=1e-12)
        assert game.mip().eta == pytest.approx(0.0, abs=1e-12)
    game = world.play(lambda d: {(next(iter(halves(d))), next(iter(in_design(d)))): 1.0})
    assert all(game.accuracy(record) == pytest.approx(1.0) for record in "012345")
    assert game.pmp().epsilon == math.inf
    assert game.mip().eta == pytest.approx(0.5)


@pytest.mark.parametrize("practical", [wi.PMP(0.0), wi.PMP(1.0, 1e-5), wi.MIP(0.0), wi.MIP(0.1)])
def test_practical_guarantees_are_refused_with_the_reason(practical):
    assert "do not compose" in why_not(practical)
    with pytest.raises(ImplicationError, match="0-PMP and 0-MIP, and together they name the three"):
        compose([wi.PureDP(1.0), practical])


def test_what_implies_differential_privacy_composes():
    total = compose([wi.MembershipPrivacy(2.0, "bounded"), wi.DifferentialIdentifiability(0.3, 4)])
    assert total.guarantee == wi.PureDP(total.epsilon, "replace")
    assert total.epsilon == pytest.approx(math.log(2.0) + math.log(3.0))
    assert "no theorem" in why_not(wi.MembershipPrivacy(2.0))
    assert "no theorem" in why_not(wi.DifferentialIdentifiability(0.9, 4))
    assert "no guarantee" in why_not(None)


def test_adjacencies_are_not_added_up_as_they_are():
    """Add/remove costs two steps where another release was compared by replacing."""
    total = compose([wi.PureDP(0.5), wi.PureDP(1.0, "replace")])
    assert total.guarantee == wi.PureDP(2.0, "replace")
    gaussian = compose([wi.GaussianDP(1.0), wi.GaussianDP(1.0, "replace")])
    assert gaussian.gaussian.adjacency == "replace"
    assert gaussian.gaussian.mu == pytest.approx(math.sqrt(5.0))
    run = compose([wi.DPSGD(1.0, 0.1, 5), wi.PureDP(0.5, "replace")], delta=1e-5)
    alone = compose([wi.DPSGD(1.0, 0.1, 5), wi.PureDP(0.5)], delta=1e-5)
    assert run.adjacency == "replace"
    assert run.epsilon > alone.epsilon


@pytest.mark.parametrize(
    ("parts", "epsilon", "advantage"),
    [
        ([], 0.0, 0.0),
        ([wi.PureDP(0.0)] * 3, 0.0, 0.0),
        ([wi.PureDP(math.inf), wi.PureDP(1.0)], math.inf, 1.0),
        ([wi.GaussianDP(math.inf), wi.PureDP(1.0)], math.inf, 1.0),
        ([wi.DPSGD(0.0, 1.0, 1), wi.PureDP(1.0)], math.inf, 1.0),
        ([wi.GaussianDP(50.0), wi.PureDP(1.0)], math.inf, 1.0),
        ([wi.PureDP(500.0)] * 2, 1000.0, 1.0),
        ([wi.ApproxDP(1.0, 1.0)] * 2, 2.0, 1.0),
        ([wi.GaussianDP(0.0), wi.PureDP(0.0)], 0.0, 0.0),
    ],
)
def test_edges(parts, epsilon, advantage):
    total = compose(parts)
    assert total.epsilon == epsilon
    assert total.advantage == pytest.approx(advantage, abs=1e-12)


def test_the_sum_needs_its_delta():
    total = compose([wi.ApproxDP(1.0, 1e-3)] * 2, delta=1e-4)
    assert total.epsilon == math.inf
    with pytest.raises(InputError, match="delta"):
        compose([wi.PureDP(1.0)], delta=1.5)
    with pytest.raises(InputTypeError, match="guarantees must be"):
        compose([1.0])


def test_many_different_guarantees_fall_back_to_the_sum():
    total = compose([wi.PureDP(0.01 + i / 1000) for i in range(80)], delta=1e-5)
    assert total.way == "sum"


# --- rounding, against enough digits ---------------------------------------------------------------------------------


def one_step(epsilon, delta):
    """Edges of the (ε, δ) curve: pairs of what they add to TPR and FPR."""
    e, d = mpmath.mpf(epsilon), mpmath.mpf(delta)
    share = (1 - d) / (1 + mpmath.exp(-e))
    return [(d, mpmath.mpf(0)), (share, share * mpmath.exp(-e)), (share * mpmath.exp(-e), share)]


def two_steps(epsilon, delta):
    """Edges of that curve after itself, R∘R: add/remove seen as replacing."""
    d, shrink = mpmath.mpf(delta), mpmath.exp(-mpmath.mpf(epsilon))

    def rate(x):
        return min(d + x / shrink, 1 - shrink * (1 - d - x)) if x < 1 - d else mpmath.mpf(1)

    corner = (1 - d) * shrink / (1 + shrink)
    reached = [x for y in (corner, 1 - d) for x in ((y - d) * shrink, 1 - d - (1 - y) / shrink) if 0 <= x <= 1]
    knots = sorted({mpmath.mpf(0), corner, 1 - d, *reached, mpmath.mpf(1)})
    corners = [(rate(rate(x)), x) for x in knots]
    rises = [(after[0] - before[0], after[1] - before[1]) for before, after in itertools.pairwise(corners)]
    return [(corners[0][0], mpmath.mpf(0)), *rises]


def product_divergence(laws, epsilon):
    """E_{e^ε} of the product of laws that are given by the edges of their curves."""
    gamma, total = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(0)
    for edges in itertools.product(*laws):
        p, q = mpmath.fprod(p for p, _ in edges), mpmath.fprod(q for _, q in edges)
        total += max(mpmath.mpf(0), p - gamma * q)
    return total


def assert_holds(laws, epsilon, delta, slack):
    """δ is kept at ε, and not kept a little below it."""
    assert product_divergence(laws, epsilon) <= mpmath.mpf(delta)
    below = epsilon - slack * (1.0 + epsilon)
    assert below < 0.0 or product_divergence(laws, below) > mpmath.mpf(delta)


def test_a_dip_of_rounding_is_not_carried_on():
    """Corners of (0, 2e-9) are as close to each other as δ: slopes between them are noise, 6e-8 off."""
    parts = [wi.ApproxDP(0.0, 1e-9), wi.PureDP(40.0, "replace")]
    with mpmath.workdps(50):
        laws = [two_steps(0.0, 1e-9), one_step(40.0, 0.0)]
        assert_holds(laws, compose(parts, delta=4e-9).epsilon, 4e-9, 1e-14)
        [(epsilon, _, _)] = _by_product(parts, "replace", 4e-9)
        assert_holds(laws, epsilon, 4e-9, 1e-9)


@pytest.mark.parametrize("first", [(0.0, 1e-9), (1e-9, 0.0), (1e-4, 1e-12), (1.0, 1e-6), (40.0, 0.0)])
@pytest.mark.parametrize("second", [(0.0, 1e-6), (1e-9, 1e-12), (0.1, 0.0), (15.0, 1e-9), (100.0, 0.0)])
@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
def test_the_product_keeps_its_delta_to_the_last_digit(first, second, adjacency):
    """Both ways of a total against the exact product; under "replace" the first release takes two steps."""
    parts = [wi.ApproxDP(*first), wi.ApproxDP(*second, adjacency)]
    with mpmath.workdps(50):
        laws = [(two_steps if adjacency == "replace" else one_step)(*first), one_step(*second)]
        advantage = product_divergence(laws, 0.0)
        for delta in (4e-9, 2e-6, 1e-3):
            found = _by_product(parts, adjacency, delta)
            for epsilon in (compose(parts, delta=delta).epsilon, *(epsilon for epsilon, _, _ in found)):
                if math.isfinite(epsilon):
                    assert_holds(laws, epsilon, delta, 1e-3)
                else:
                    assert product_divergence(laws, 1e3) > delta * 0.999
            for _, limit, _ in found:
                assert advantage <= limit <= advantage * 1.001 + 1e-9


@pytest.mark.parametrize("mu", [1e-9, 1e-3, 0.3])
@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 20.0])
def test_small_normal_shifts_in_a_product(mu, epsilon):
    def excess(total):
        found = mpmath.mpf(0)
        for p, q in one_step(epsilon, 0.0)[1:]:
            t, m = mpmath.mpf(total) + mpmath.log(q / p), mpmath.mpf(mu)
            found += p * (mpmath.ncdf(m / 2 - t / m) - mpmath.exp(t) * mpmath.ncdf(-m / 2 - t / m))
        return found

    with mpmath.workdps(60):
        for delta in (1e-11, 1e-6):
            total = compose([wi.GaussianDP(mu), wi.PureDP(epsilon)], delta=delta)
            assert excess(0.0) <= total.advantage <= excess(0.0) * 1.001
            if math.isfinite(total.epsilon):
                assert excess(total.epsilon) <= delta
                assert total.epsilon == 0.0 or excess(total.epsilon * 0.98) > delta


def test_a_law_that_does_not_sum_to_one_is_refused():
    law, low, high = _pair_of_curve(wi.PureDP(1.0).roc)

    def doubled(spacing):
        one = law(spacing)
        one._probs = 2.0 * one._probs
        return one

    assert _convolved([((law, low, high), 2)], 0.01) is not None
    assert _convolved([((doubled, low, high), 2)], 0.01) is None


def test_a_thousand_releases():
    total = compose([wi.PureDP(1.0)] * 1000, delta=1e-5)
    assert total.epsilon == pytest.approx(_homogeneous_epsilon(1.0, 1000, 1e-5), rel=1e-3)


def test_words():
    total = compose([wi.PureDP(0.5), wi.GaussianDP(0.5)])
    assert "2 releases together" in str(total)
    assert f"ε at most {total.epsilon:.3f}"[:-1] in str(total)
    assert "Assumes" in total._repr_html_()
    assert any("randomness of its own" in line for line in total.assumes)
    assert any("chosen after looking" in line for line in total.assumes)
    assert "for the advantage: the strength" in compose([wi.PureDP(1.0)] * 2).assumes[-1]
    assert not any("chosen after looking" in line for line in compose([wi.PureDP(1.0)]).assumes)
    assert total.to_dict()["guarantee"]["delta"] == 1e-6
    for text in (str(total), total._repr_html_(), *total.assumes):
        assert "safe" not in text.lower()

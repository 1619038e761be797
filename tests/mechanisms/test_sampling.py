"""Drawing from mechanisms: the outputs follow the law that worlds enumerate, and come from a secure source."""

import math

import numpy as np
import pytest
from scipy import stats

import whosin as wi
from whosin.errors import InputError, InputTypeError
from whosin.mechanisms import (
    Exponential,
    Gaussian,
    KMax,
    Laplace,
    NormExponential,
    RandomizedResponse,
    SeededSource,
    Subsampled,
)
from whosin.mechanisms.base import CallableMechanism

LEAST = 1e-4
FINITE = {
    "randomised response": (RandomizedResponse(lambda records: "a" in records, 1.0, 0.1), ("a", "b")),
    "exponential": (Exponential((0, 1, 3), lambda w, x: abs(w - x), 2.0), (0, 1, 1)),
    "k-max": (KMax("abcdef", 3), ("b", "a")),
    "subsampled": (Subsampled(KMax("abcdef", 2), 0.3), ("a", "c", "e")),
    "subsampled function": (Subsampled(lambda records: {len(records): 1.0}, 0.6), ("a", "b", "c")),
    "impossible outputs": (CallableMechanism(lambda records: {"no": 0.0, "x": 0.25, "never": 0.0, "y": 0.75}), ()),
}


@pytest.mark.parametrize("name", FINITE)
def test_samples_follow_the_law(name):
    mechanism, records = FINITE[name]
    law = {output: p for output, p in mechanism.law(records).items() if p > 0.0}
    source = SeededSource(1)
    drawn = [mechanism.sample(records, source) for _ in range(1500)]
    assert set(drawn) <= set(law)
    counts = [drawn.count(output) for output in law]
    assert stats.chisquare(counts, 1500 * np.array(list(law.values()))).pvalue > LEAST


@pytest.mark.parametrize("name", FINITE)
def test_samples_are_secure_by_default(name, monkeypatch):
    mechanism, records = FINITE[name]
    assert mechanism.sample(list(records)) in mechanism.law(records)
    called = []
    monkeypatch.setattr("whosin.mechanisms.sources.os.urandom", lambda n: called.append(n) or bytes([7] * n))
    mechanism.sample(records)
    assert called


def test_subsampling_draws_without_enumerating():
    """The law of 2^40 samples would not end; a draw takes one."""
    size = Subsampled(lambda records: {len(records): 1.0}, 0.5).sample(range(40), SeededSource(2))
    assert 5 < size < 35


ADDITIVE = {
    "laplace": (lambda query: Laplace(query, 0.5), stats.laplace(scale=0.5)),
    "gaussian": (lambda query: Gaussian(query, 0.5), stats.norm(scale=0.5)),
    "norm-exponential": (lambda query: NormExponential(query, 0.5, 3.0), stats.laplace(scale=0.5)),
}


@pytest.mark.parametrize("name", ADDITIVE)
def test_noisy_numbers(name):
    make, law = ADDITIVE[name]
    mechanism, source = make(sum), SeededSource(3)
    drawn = [mechanism.sample([1.0, 2.0], source) for _ in range(300)]
    assert all(type(number) is float for number in drawn)
    assert stats.kstest(np.array(drawn) - 3.0, law.cdf).pvalue > LEAST
    assert type(mechanism.sample([1.0])) is float


@pytest.mark.parametrize("name", ADDITIVE)
def test_noisy_arrays(name):
    mechanism = ADDITIVE[name][0](lambda records: np.mean(records, axis=0))
    released = mechanism.sample([[1.0, 2.0], [3.0, 4.0]], SeededSource(3))
    assert released.shape == (2,)
    assert np.all(released != [2.0, 3.0])


def test_noise_in_several_dimensions_has_the_norm_of_the_mechanism():
    source = SeededSource(4)
    for make, length, law in (
        (lambda query: Laplace(query, 2.0), 1, stats.gamma(3, scale=2.0)),
        (lambda query: NormExponential(query, 2.0, math.inf), math.inf, stats.gamma(3, scale=2.0)),
        (lambda query: Gaussian(query, 2.0), 2, stats.chi(3, scale=2.0)),
    ):
        mechanism = make(lambda records: np.zeros(3))
        norms = [np.linalg.norm(mechanism.sample((), source), ord=length) for _ in range(120)]
        assert stats.kstest(norms, law.cdf).pvalue > LEAST


def test_bad_answers_are_refused():
    with pytest.raises(InputError, match="value must hold finite numbers"):
        Laplace(lambda records: math.nan, 1.0).sample([1])
    with pytest.raises(InputTypeError, match="value must be"):
        Gaussian(lambda records: "three", 1.0).sample([1])
    with pytest.raises(InputTypeError, match="source must be"):
        Gaussian(len, 1.0).sample([1], 5)
    with pytest.raises(InputTypeError, match="source must be"):
        FINITE["k-max"][0].sample(("a",), np.random.default_rng(1))


@pytest.mark.parametrize("norm", [0.0, 0.9, -1.0, math.nan])
def test_norms_below_one_are_no_norms(norm):
    with pytest.raises(InputError, match="norm"):
        NormExponential(len, 1.0, norm)


@pytest.mark.parametrize("sensitivity", [-1.0, math.nan, math.inf])
@pytest.mark.parametrize("make", [Laplace, Gaussian, NormExponential])
def test_bad_sensitivities(make, sensitivity):
    with pytest.raises(InputError, match="sensitivity"):
        make(len, 1.0).guarantee(sensitivity)


def test_guarantees_are_rounded_up():
    assert Laplace(len, 3.0).guarantee(1.0).epsilon > 1.0 / 3.0
    assert Gaussian(len, 3.0).guarantee(1.0, "replace") == wi.GaussianDP(math.nextafter(1 / 3, 1), "replace")
    assert NormExponential(len, 3.0).guarantee(0.0) == wi.PureDP(0.0)

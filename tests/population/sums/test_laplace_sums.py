"""Laplace noise around listed sums: against the exact game's own arithmetic, closed forms, and many digits."""

import itertools

import mpmath
import numpy as np
import pytest

import whosin
from whosin.population.sums import spectral
from whosin.population.sums.laplace_sums import LaplaceSums
from whosin.population.sums.pairwise import pairwise_divergences, pairwise_epsilons
from whosin.population.sums.spectral import SubsetSumLaws

POOLS = {
    "spread": [-1.5, -1.0, -0.4, 0.0, 0.7, 1.1, 1.5, 3.0],
    "duplicates": [0.0, 0.0, 1.0, 1.0, 1.0, 2.0],
    "far from zero": [1e6, 1e6 + 1, 1e6 + 3.5, 1e6 + 3.5],
    "one far away": [0.1, 0.5, 2.0, 300.0],
    "two": [0.3, 1.0],
}
CASES = [(name, k) for name, f in POOLS.items() for k in sorted({1, len(f) // 2, len(f) - 1})]


def exact(f, k, scale, record, epsilon, swapped):
    """∫(p - e^ε q)_+ with 60 digits: the zero between neighbouring sums in closed form, masses from exponentials."""
    with mpmath.workdps(60):
        sums = [
            (mpmath.fsum(mpmath.mpf(f[i]) for i in s) / mpmath.mpf(scale), record in s)
            for s in itertools.combinations(range(len(f)), k)
        ]
        inside, outside = ([c for c, member in sums if member == side] for side in (not swapped, swapped))
        gamma = mpmath.exp(mpmath.mpf(epsilon))

        def height(y):
            parts = [mpmath.fsum(mpmath.exp(-abs(y - c)) for c in law) / len(law) for law in (inside, outside)]
            return (parts[0] - gamma * parts[1]) / 2

        centres = sorted({c for c, _ in sums})
        total = sum(max(height(end), 0) for end in (centres[0], centres[-1]))
        for a, b in itertools.pairwise(centres):
            # a·e^{-u} + b·e^{u} through both ends of the gap
            w, left, right = b - a, height(a), height(b)
            up = (right - left * mpmath.exp(-w)) / (mpmath.exp(w) - mpmath.exp(-w))
            down = left - up
            cuts = [mpmath.mpf(0), w]
            if up * down < 0 and 0 < (zero := mpmath.log(-down / up) / 2) < w:
                cuts.insert(1, zero)
            for start, stop in itertools.pairwise(cuts):
                area = down * (mpmath.exp(-start) - mpmath.exp(-stop)) + up * (mpmath.exp(stop) - mpmath.exp(start))
                total += max(area, 0)
        return total


@pytest.mark.parametrize(("name", "k"), CASES)
def test_many_digits(name, k):
    f = POOLS[name]
    for scale, record in ((0.3, len(f) - 1), (2.0, 0)):
        laws = SubsetSumLaws(f, k, scale, "laplace")
        for epsilon, swapped in itertools.product((0.0, 0.4, 3.0, 14.0), (False, True)):
            lower, upper = laws.divergence(record, epsilon, swapped)
            truth = exact(f, k, scale, record, epsilon, swapped)
            assert lower <= truth <= upper
            assert upper - lower <= 1e-8 * upper + 1e-20


@pytest.mark.parametrize(("name", "k"), CASES)
def test_largest_ratio(name, k):
    """δ = 0: the supremum of |ln p/q| over the sums, with 60 digits."""
    f, record = POOLS[name], len(POOLS[name]) - 1
    for scale in (0.02, 1.0):
        lower, upper = SubsetSumLaws(f, k, scale, "laplace", records=[record]).epsilon(0.0)[0]
        with mpmath.workdps(60):
            sums = [
                (mpmath.fsum(mpmath.mpf(f[i]) for i in s) / mpmath.mpf(scale), record in s)
                for s in itertools.combinations(range(len(f)), k)
            ]
            ratios = []
            for y, _ in sums:
                laws = [[mpmath.exp(-abs(y - c)) for c, member in sums if member == side] for side in (True, False)]
                ratios.append(mpmath.log(mpmath.fsum(laws[0]) / len(laws[0]) / mpmath.fsum(laws[1]) * len(laws[1])))
            truth = max(abs(ratio) for ratio in ratios)
        assert lower <= truth <= upper
        assert upper - lower <= 1e-9 * (1.0 + upper)


@pytest.mark.parametrize("noise_scale", [0.2, 1.3])
def test_epsilon_of_the_world(noise_scale):
    f = POOLS["spread"]
    for k, delta in itertools.product((2, 4, 7), (0.0, 1e-6, 0.05)):
        query = whosin.mechanisms.Laplace(lambda rows: sum(f[i] for i in rows), noise_scale)
        truth = whosin.worlds.uniform_subsets(list(range(len(f))), k).play(query).pmp(delta).epsilon
        limits = SubsetSumLaws(f, k, noise_scale, "laplace").epsilon(delta)
        assert limits[:, 0].max() - 1e-9 <= truth <= limits[:, 1].max() + 1e-9
        assert np.all(limits[:, 1] - limits[:, 0] <= 1e-8)
        assert np.all(limits[:, 1] <= pairwise_epsilons(f, noise_scale, delta, noise="laplace"))


def test_meets_the_spectrum(monkeypatch):
    f = np.random.default_rng(3).standard_normal(9)
    listed = SubsetSumLaws(f, 4, 0.9, "laplace", records=[2])
    monkeypatch.setattr(spectral, "ENUMERATED", 0)
    monkeypatch.setattr(spectral, "_MOST_FREQUENCIES", 2**15)
    spread = SubsetSumLaws(f, 4, 0.9, "laplace", records=[2])
    for epsilon, swapped in itertools.product((0.0, 0.3), (False, True)):
        low, high = spread.divergence(2, epsilon, swapped)
        lower, upper = listed.divergence(2, epsilon, swapped)
        assert low <= lower <= upper <= high


def test_few_out_of_many_and_all_but_few():
    """Publishing the sum of k is publishing that of the N - k others."""
    f = np.random.default_rng(4).standard_normal(60)
    one, two = SubsetSumLaws(f, 2, 0.5, "laplace", records=[7]), SubsetSumLaws(-f, 58, 0.5, "laplace", records=[7])
    for swapped in (False, True):
        assert one.divergence(7, 0.2, swapped) == pytest.approx(two.divergence(7, 0.2, not swapped), abs=1e-12)


def test_scales():
    """Nothing is lost when everything is tiny, and what rounding hides is admitted when all is huge."""
    f = np.array(POOLS["spread"])
    for unit in (1e-150, 1e-12, 1e12, 1e150):
        here, there = (SubsetSumLaws(u * f, 4, 0.7 * u, "laplace", records=[7]) for u in (1.0, unit))
        assert there.divergence(7, 0.3) == pytest.approx(here.divergence(7, 0.3), abs=1e-12)
    wide = SubsetSumLaws(f, 4, 1e-15, "laplace", records=[7])
    lower, upper = wide.divergence(7, 0.3)
    assert lower <= exact(f.tolist(), 4, 1e-15, 7, 0.3, False) <= upper
    assert upper <= pairwise_divergences(f, 1e-15, 0.3, noise="laplace", records=[7])[0]
    narrow = SubsetSumLaws(f, 4, 1e12, "laplace", records=[7])
    lower, upper = narrow.divergence(7, 0.0)
    assert lower <= exact(f.tolist(), 4, 1e12, 7, 0.0, False) <= upper <= 1e-11


def test_equal_records():
    laws = LaplaceSums(np.full(6, 1.0 / 3.0), 3, 0.1).laws(2)
    assert laws.divergence(0.0, False)[0] == 0.0
    assert laws.divergence(0.0, False)[1] <= 1e-12
    assert laws.largest_log_ratio()[0] == 0.0
    assert SubsetSumLaws(np.full(6, 1.0 / 3.0), 3, 0.1, "laplace").epsilon(0.0).max() == 0.0


@pytest.mark.parametrize("method", ["exact", "pairwise", "groups"])
@pytest.mark.parametrize(("k", "delta"), [(4, 0.01), (2, 0.1)])
def test_every_route_with_a_delta_is_above_the_listed_draws(method, k, delta):
    """The exact curve of each record lies below the line of its (ε̃, δ)."""
    f = np.array([-1.0, -0.4, 0.0, 0.1, 0.3, 0.5, 0.9, 1.0])
    options = {"epsilon": 3.0, "delta": delta, "clip": 1.0, "query": "sum", "train_fraction": k / 8, "rng": 0}
    found = whosin.population.laplace(f, method=method, **options)
    mechanism = whosin.mechanisms.Laplace(lambda drawn: sum(f[i] for i in drawn), found.noise_scale)
    game = whosin.worlds.uniform_subsets(range(8), k).play(mechanism)
    for x in (0, 2, 6):
        assert whosin.PMP(float(found.per_record[x]), delta, k / 8).roc.dominates(game.roc(x), 1e-9)
        assert found.method == method

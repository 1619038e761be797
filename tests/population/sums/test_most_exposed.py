"""The largest ε̃ of a pool from a few exact solutions."""

import math

import numpy as np
import pytest

import whosin as wi
from whosin.population.sums import analysis, most_exposed
from whosin.population.sums.most_exposed import exact_largest
from whosin.population.sums.spectral import SubsetSumLaws


@pytest.mark.parametrize(("k", "noise", "rel"), [(12, "gaussian", 1e-6), (6, "gaussian", 1e-6), (12, "laplace", 1e-2)])
def test_largest_is_the_largest_of_all_records(k, noise, rel):
    f = np.random.default_rng(0).exponential(size=24)
    exact = SubsetSumLaws(f, k, 1.5, noise).epsilon(0.02)
    lower, limits = exact_largest(f, k, 1.5, 0.02, noise=noise).T
    assert lower.max() == pytest.approx(limits.max(), rel=rel)
    assert (lower <= exact[:, 1]).all()
    assert limits.max() == pytest.approx(exact[:, 1].max(), abs=1e-9)
    assert (limits >= exact[:, 0] - 1e-12).all()


def test_neighbours_differ_by_at_most_the_shift():
    """E(x) ≤ E(y) + ((N-k) + γk)/(N-1)·TV of the noise moved by |f_x - f_y|, both directions."""
    f = np.array([0.0, 0.1, 0.5, 0.6, 2.0, 2.1, 3.0, 3.5, 3.6, 5.0])
    k, scale, gamma = 3, 0.7, math.exp(0.4)
    laws = SubsetSumLaws(f, k, scale)
    for swapped, (lost, kept) in ((False, (7, 3)), (True, (3, 7))):
        values = [laws.divergence(x, 0.4, swapped) for x in range(10)]
        for x in range(10):
            for y in range(10):
                tv = math.erf(abs(f[x] - f[y]) / (2 * math.sqrt(2) * scale))
                assert values[x][0] <= values[y][1] + (lost + gamma * kept) / 9 * tv


def test_one_record_in_plain_sight_does_not_speak_for_the_others():
    """The far record needs e^ε beyond floating point; the others are covered at an ε of their own."""
    f = np.append(np.linspace(-1e-3, 1e-3, 5), 1.0)
    exact = SubsetSumLaws(f, 3, 1 / 70).epsilon(1e-5)
    limits = exact_largest(f, 3, 1 / 70, 1e-5)[:, 1]
    assert limits.max() == exact[-1, 1] > 710.0
    assert (limits >= exact[:, 0] - 1e-12).all()


def test_with_a_small_delta_a_bound_speaks_for_records_far_from_the_largest(monkeypatch):
    """As neighbours hardly do, all would have to be solved; here the bound is a tenth above the exact answers."""
    f = np.random.default_rng(3).standard_normal(90)
    exact, solved = SubsetSumLaws(f, 36, 6.0).epsilon(1e-6), []
    solve = most_exposed._Sweep.solve
    monkeypatch.setattr(most_exposed._Sweep, "solve", lambda self, few: (solved.extend(few), solve(self, few)))
    monkeypatch.setattr(most_exposed, "normal_epsilons", lambda *_: 1.1 * exact[:, 1])
    monkeypatch.setattr(most_exposed, "FIRST_SOLVED", 10)
    lower, limits = exact_largest(f, 36, 6.0, 1e-6).T
    assert len(solved) < 45
    assert lower.max() == pytest.approx(exact[:, 0].max(), rel=1e-9)
    assert limits.max() == pytest.approx(exact[:, 1].max(), rel=1e-9)
    assert (limits >= exact[:, 0]).all()


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_a_record_speaks_no_farther_than_its_room(noise):
    f = np.random.default_rng(2).exponential(size=24)
    values, first = np.unique(f, return_index=True)
    sweep = most_exposed._Sweep(values, first, f, 9, 1.5, 0.02, noise)
    sweep.solve(np.array([0, 23]))
    laws = SubsetSumLaws(f, 9, 1.5, noise, records=[int(first[8])])
    reach = sweep._reach(int(first[8]), sweep.largest)
    tv = math.erf(reach / (2 * math.sqrt(2) * 1.5)), 1.0 - math.exp(-reach / (2 * 1.5))
    moved, gamma = tv[noise == "laplace"], math.exp(sweep.largest)
    assert reach > 0.0
    for swapped, (lost, kept) in ((False, (15, 9)), (True, (9, 15))):
        upper = laws.divergence(int(first[8]), sweep.largest, swapped)[1]
        assert upper + (lost + gamma * kept) / 23 * moved <= 0.02


def test_too_little_noise_is_left_open(monkeypatch):
    monkeypatch.setattr(most_exposed, "MOST_SOLVED", 6)
    limits = exact_largest(np.random.default_rng(0).standard_normal(300), 150, 0.05, 0.001)
    assert np.isinf(limits).any()


def test_what_is_not_shown_exactly_is_not_called_exact(monkeypatch):
    monkeypatch.setattr(most_exposed, "MOST_SOLVED", 2)
    monkeypatch.setattr(analysis, "EXACT_RECORDS", 40)
    pool = np.random.default_rng(0).standard_normal(60)
    open_ = wi.population.gaussian(pool, epsilon=8.0, delta=0.01, clip=3.0)
    assert open_.method == "normal"
    assert np.isfinite(open_.per_record).all()


@pytest.mark.long
def test_hundred_thousand_numbers_leave_nothing_out():
    """All pairs of frequency and root that matter fit under the limit on factors."""
    f = np.random.default_rng(5).standard_normal(100_000) / 50_000
    laws = SubsetSumLaws(f, 50_000, 8e-5, records=[int(f.argmax())])
    assert laws._spectrum.left_out < 1e-12


def test_no_cliff_where_auto_stops_solving_every_record(monkeypatch):
    monkeypatch.setattr(analysis, "EXACT_RECORDS", 40)
    pool = np.random.default_rng(0).standard_normal(42)
    few, more = (wi.population.gaussian(pool[:n], epsilon=8.0, delta=0.01, clip=3.0) for n in (40, 42))
    assert (few.method, more.method) == ("exact", "exact")
    assert more.pmp.epsilon == pytest.approx(few.pmp.epsilon, rel=0.1)
    assert few.exact
    assert more.exact
    assert more.at_least == pytest.approx(more.pmp.epsilon, abs=1e-8)

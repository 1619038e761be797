"""Draws with unequal chances, against the enumerated world of Li's bounded independent priors."""

import itertools
import math

import numpy as np
import pytest

import whosin as wi
from whosin.errors import ImplicationError, InputError
from whosin.population.sums.partners import partner_chances

CHANCES = np.array([0.1, 0.5, 0.9, 0.3, 0.5, 0.7, 0.05, 0.6])


def inclusion(chances, m):
    """Chances of each record to be among m that come."""
    sets = [set(chosen) for chosen in itertools.combinations(range(len(chances)), m)]
    weights = np.array(
        [math.prod(p if i in chosen else 1 - p for i, p in enumerate(chances)) for chosen in sets], dtype=np.float64
    )
    return np.array([weights[[i in chosen for chosen in sets]].sum() for i in range(len(chances))]) / weights.sum()


@pytest.mark.parametrize("k", [1, 2, 4, 7])
def test_partners_are_what_the_marginals_say(k):
    found = partner_chances(CHANCES, 8, k)
    assert np.diag(found).tolist() == [0.0] * 8
    for x in range(8):
        others = np.delete(CHANCES, x)
        wanted = inclusion(others, k) - inclusion(others, k - 1)
        assert np.delete(found[x], x) == pytest.approx(wanted, abs=1e-10)
        assert (np.delete(found[x], x) >= wanted - 1e-15).all()
        assert found[x].sum() == pytest.approx(1.0, abs=1e-9)


def test_odds_count_only_by_their_ratios():
    odds = CHANCES / (1 - CHANCES) * 7.0
    assert partner_chances(odds / (1 + odds), 8, 3) == pytest.approx(partner_chances(CHANCES, 8, 3), abs=1e-9)


@pytest.mark.parametrize("count", [30, 151])
def test_equal_chances_are_a_uniform_draw(count):
    found = partner_chances(np.full(count, 0.2), count, count // 3)
    off = found[~np.eye(count, dtype=bool)]
    assert off == pytest.approx(np.full(len(off), 1 / (count - 1)), rel=1e-7)
    f = np.random.default_rng(0).standard_normal(count)
    common = {"epsilon": 3.0, "delta": 0.01, "clip": 3.0, "train_fraction": 1 / 3, "method": "pairwise"}
    one, two = (wi.population.gaussian(f, chances=c, **common) for c in (None, np.full(count, 0.5)))
    assert two.per_record == pytest.approx(one.per_record, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("k", [2, 5])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_never_below_the_enumerated_world(noise, k):
    f = np.array([-1.0, -0.4, 0.0, 0.1, 0.3, 0.5, 0.9, 1.0])
    options = {"epsilon": 3.0, "delta": 0.02, "clip": 1.0, "query": "sum", "train_fraction": k / 8}
    found = getattr(wi.population, noise)(f, chances=CHANCES, **options)
    assert (found.method, found.train_size) == ("pairwise", k)
    assert "chances that differ" in found.assumes[0]
    mechanism = getattr(wi.mechanisms, noise.capitalize())(lambda drawn: sum(f[i] for i in drawn), found.noise_scale)
    game = wi.worlds.bounded_independent(range(8), CHANCES, k).play(mechanism)
    for x in (0, 2, 6):
        curve = wi.PMP(float(found.per_record[x]), 0.02, k / 8).roc
        assert curve.dominates(game.roc(x), 1e-9)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"chances": [0.5]}, "one number for each of 8 records"),
        ({"chances": [0.5] * 7 + [1.0]}, "above 0 and below 1"),
        ({"chances": [0.5] * 7 + [math.nan]}, "above 0 and below 1"),
        ({"chances": ["a"] * 8}, "must be numbers"),
        ({"chances": [0.5] * 8, "method": "normal"}, "method must be"),
        ({"chances": [1e-300] * 4 + [1 - 1e-16] * 4}, "room to be in or out"),
    ],
)
def test_chances_that_make_no_sense(change, words):
    with pytest.raises(InputError, match=words):
        wi.population.gaussian(np.arange(8.0), epsilon=1.0, delta=0.1, clip=9.0, **change)


def test_a_draw_with_unequal_chances_is_not_called_the_papers():
    common = {"epsilon": 2.0, "delta": 0.05, "clip": 1.0}
    equal, unequal = (wi.population.gaussian(np.linspace(-1, 1, 8), chances=c, **common).pmp for c in (None, CHANCES))
    assert equal.uniform
    assert equal.implies(wi.MIP).eta > 0.0
    assert not unequal.uniform
    assert not unequal.implies(wi.PMP, delta=0.1).uniform
    assert "not the paper's draw" in unequal.assumes[0]
    with pytest.raises(ImplicationError, match="nine times in ten"):
        unequal.implies(wi.MIP)

"""One release can refute a promise where chance decided who was trained on."""

import math

import numpy as np
import polars as pl
import pytest
from scipy.stats import binomtest

import whosin as wi
from whosin.auditing.measuring.experiment import Experiment
from whosin.auditing.releases.chance_split import compare_by_chance
from whosin.errors import InputError


def answers(epsilon, size, seed, *, coins=True):
    """Randomised response on who is in: ε-DP under add/remove with equality, 2ε under replacement."""
    rng = np.random.default_rng(seed)
    inside = rng.random(size) < 0.5 if coins else rng.permutation(size) < size // 2
    told = inside == (rng.random(size) < 1 / (1 + math.exp(-epsilon)))
    values = told + 0.01 * rng.normal(size=size)
    return Experiment(values[inside][:, None], values[~inside][:, None], kind="continuous")


@pytest.mark.parametrize("coins", [True, False])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_a_kept_promise_is_refuted_no_more_often_than_allowed(epsilon, coins):
    """100 releases at level 0.2, of which more than 33 would be refuted with a chance below 0.001 if it were kept."""
    promise = wi.PureDP(epsilon) if coins else wi.PureDP(2 * epsilon, "replace")
    false = sum(
        compare_by_chance(answers(epsilon, 400, seed, coins=coins), promise, coins=coins, alpha=0.2, seed=seed).verdict
        == "violated"
        for seed in range(100)
    )
    assert binomtest(false, 100, 0.2, alternative="greater").pvalue > 1e-3


@pytest.mark.parametrize(("coins", "promise"), [(True, wi.PureDP(1.0)), (False, wi.PureDP(2.0, "replace"))])
def test_twice_the_promised_epsilon_is_found(coins, promise):
    for seed in range(5):
        found = compare_by_chance(answers(2.0, 1000, seed, coins=coins), promise, coins=coins, alpha=0.05, seed=seed)
        assert found.verdict == "violated"
        assert promise.epsilon < found.epsilon_lower < (2.0 if coins else 4.0) * 1.1


def test_what_is_promised_under_add_remove_is_tested_by_pairs_where_the_size_was_fixed():
    given = answers(2.0, 2000, 0, coins=False)
    for promise in (wi.PureDP(0.5), wi.ApproxDP(0.5, 1e-6), wi.GaussianDP(0.3), wi.PureDP(1.0, "replace")):
        found = compare_by_chance(given, promise, coins=False, alpha=0.05, seed=0)
        assert found.verdict == "violated"
        assert "pairs of a member and an outsider" in found.text
    assert compare_by_chance(given, wi.PureDP(2.0), coins=False, alpha=0.05, seed=0).verdict == "inconclusive"
    assert compare_by_chance(given, wi.MIP(0.01), coins=False, alpha=0.05, seed=0) is None
    assert compare_by_chance(answers(2.0, 60, 0), wi.PureDP(0.1), coins=True, alpha=0.05, seed=0) is None


def release(epsilon, size, seed, *, persons=False, whole=False):
    """A pool, fair coins, and a release that shows rows by randomised response, but for a cell: ε-DP in the coins.

    With ``whole`` it shows whole rows, held-out ones too.
    """
    rng = np.random.default_rng(seed)
    pool = pl.DataFrame({f"c{i}": rng.integers(0, 1000, size) for i in range(4)})
    units = size // 2 if persons else size
    owner = np.arange(size) // 2 if persons else np.arange(size)
    coins = rng.random(units) < 0.5
    told = coins == (rng.random(units) < 1 / (1 + math.exp(-epsilon)))
    pool = pool.with_columns(who=owner) if persons else pool
    inside = coins[owner]
    shown = pool.filter(told[owner])
    shown = shown if whole else shown.with_columns(c3=pl.lit(5))  # no held-out row word for word
    return pool.filter(inside), pool.filter(~inside), shown.drop("who") if persons else shown


@pytest.mark.parametrize("assignment", ["random", "coins"])
def test_a_release_of_a_table(assignment):
    broken = wi.audit_synthetic(*release(3.0, 600, 0), assignment=assignment)
    found = broken.compare(wi.PureDP(0.4))
    assert found.verdict == "violated"
    assert found.epsilon_lower > 0.4
    assert found.to_dict()["verdict"] == "violated"
    kept = broken.compare(wi.PureDP(3.0))
    assert kept.verdict != "violated"
    assert "does not confirm it" in kept.text
    assert broken.compare(wi.PureDP(0.4), assignment="unknown").verdict != "violated"


@pytest.mark.filterwarnings("ignore::whosin.errors.AssumptionWarning")
def test_a_release_that_repeats_held_out_rows_may_refute_a_promise():
    """There is no verdict on whom the attack finds; the coins were tossed all the same, and are guessed as promised."""
    refuted = []
    for seed in range(6):
        found = wi.audit_synthetic(*release(2.0, 400, seed, whole=True), assignment="coins", confidence_level=0.8)
        refuted.append(found.compare(wi.PureDP(2.0)).verdict == "violated")
    assert binomtest(sum(refuted), 6, 0.2, alternative="greater").pvalue > 1e-3
    train, holdout, shown = release(2.0, 1000, 0, whole=True)
    broken = wi.audit_synthetic(train, holdout, shown, assignment="coins")
    assert broken.verdict.state == "no verdict"
    assert broken.compare(wi.PureDP(1.0)).verdict == "violated"
    assert broken.compare(wi.PureDP(1.0), assignment="unknown").verdict != "violated"
    mixed = wi.audit_synthetic(train, pl.concat([holdout, train[:200]]), shown, assignment="coins")
    assert mixed.compare(wi.PureDP(1.0)).verdict != "violated"


def test_people_are_the_coins():
    found = wi.audit_synthetic(*release(3.0, 1000, 1, persons=True), assignment="coins", person="who")
    compared = found.compare(wi.PureDP(0.4))
    assert compared.verdict == "violated"
    assert "people" in compared.text
    assert "all records of a person" in compared.text


def test_a_release_has_no_trainings_of_its_own():
    with pytest.raises(InputError, match="'coins'"):
        wi.audit_synthetic(*release(1.0, 100, 0), assignment="independent trainings")

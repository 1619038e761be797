"""Edges: ties, constants, duplicates, one record, perfect separation, extreme priors, a million scores."""

import json
import time

import numpy as np
import pytest

from whosin.auditing import audit
from whosin.errors import InputError

NORMAL = np.random.default_rng(0).normal(size=400)


def sane(a):
    for e in (a.advantage, a.advantage_at_prior, a.excess, a.headline):
        assert e.lower <= e.estimate <= e.upper
    assert a.advantage.lower >= 0
    assert a.advantage.upper <= 1
    json.dumps(a.to_dict(), allow_nan=False)
    assert a.band.upper.dominates(a.band.lower, 1e-12)
    assert str(a)
    assert a.explain()
    return a


@pytest.mark.parametrize("kind", ["continuous", "discrete"])
def test_constant_scores(kind):
    a = sane(audit([3.0] * 50, [3.0] * 70, kind=kind, rng=0))
    assert a.advantage.lower == a.advantage.estimate == 0.0
    assert a.point_estimates["plug_in"] == 0.0


@pytest.mark.parametrize("kind", ["continuous", "discrete"])
def test_perfect_separation(kind):
    a = sane(audit([1.0] * 60, [0.0] * 60, kind=kind, rng=0))
    assert a.advantage.estimate == a.advantage.upper == 1.0
    assert 0.75 < a.advantage.lower < 1.0
    assert a.roc.tpr(0.0) == 1.0
    assert a.individual.risk[0] == 1.0
    assert a.individual.risk[-1] == 0.0


@pytest.mark.parametrize("sizes", [(1, 1), (1, 100), (100, 1), (2, 2), (3, 1)])
@pytest.mark.parametrize("kind", ["continuous", "discrete"])
def test_few_records(sizes, kind):
    rng = np.random.default_rng(1)
    a = sane(audit(rng.normal(size=sizes[0]), rng.normal(size=sizes[1]), kind=kind, rng=0))
    assert a.advantage.lower == 0.0
    assert a.advantage.upper > 0.9


def test_few_records_of_several_queries():
    rng = np.random.default_rng(1)
    sane(audit(rng.normal(size=(4, 3)), rng.normal(size=(9, 3)), rng=0))


def test_heavy_duplicates():
    """Half of the members have one value that nobody else has, among continuous ones: an atom is a cell."""
    rng = np.random.default_rng(2)
    x = np.where(rng.random(2000) < 0.5, 0.125, rng.normal(size=2000))
    a = sane(audit(x, rng.normal(size=2000), rng=0))
    assert a.kind == "continuous"
    assert 0.4 < a.advantage.lower < 0.5 < a.advantage.upper


def test_infinite_scores():
    x = np.append(NORMAL, [np.inf] * 300)
    a = sane(audit(x, np.append(NORMAL, [-np.inf] * 300), rng=0))
    assert a.advantage.lower > 0.25
    both = np.column_stack([x, x])
    sane(audit(both, -both, rng=0))


@pytest.mark.parametrize("prior", [1e-9, 1 - 1e-9])
def test_extreme_priors(prior):
    a = sane(audit(NORMAL + 1, NORMAL, prior=prior, rng=0))
    assert a.advantage_at_prior.lower == pytest.approx(1.0, abs=1e-8)
    assert a.excess.upper <= 2.1e-9
    assert a.advantage.lower > 0.2


def test_same_seed_same_answer():
    x = np.column_stack([NORMAL, NORMAL[::-1]])
    one, two = (audit(x + 0.3, x, rng=5).to_dict() for _ in range(2))
    assert one == two


def test_monotone_changes_of_scale_do_not_matter():
    """exp is increasing: the same split, the same attack, the same limits."""
    one, two = (audit(f(NORMAL + 0.5), f(NORMAL), rng=3).advantage for f in (lambda v: v, np.exp))
    assert one == two


def test_labels_of_symbols_do_not_matter():
    x, y = np.arange(400) % 5, np.arange(300) % 3
    names, others = np.array(list("vwxyz")), np.array(["red", "green", "blue", "white", "black"])
    assert audit(others[x], others[y], rng=3).advantage == audit(names[x], names[y], rng=3).advantage


def test_a_million_scores():
    rng = np.random.default_rng(0)
    x, y = rng.normal(0.05, 1, 500_000), rng.normal(0, 1, 500_000)
    start = time.process_time()
    a = audit(x, y, rng=0)
    seen = a.to_dict()
    assert time.process_time() - start < 8.0, "about one second on an idle core"
    assert a.advantage.lower > 0.01
    assert len(seen["roc"]["fpr"]) <= 201
    assert len(a.individual) == 1_000_000


@pytest.mark.parametrize(
    "answers",
    [[2**53 + 1, 2**53], [-(2**53) - 1, 0], np.array([2**63 + 1], dtype=np.uint64), [2**64 + 1, 2**64], [10**400, 1]],
)
def test_whole_numbers_that_floats_would_merge_are_refused(answers):
    with pytest.raises(InputError, match=r"members must be .*64-bit floats"):
        audit(answers, [1, 2], rng=0)


def test_large_whole_numbers_that_floats_tell_apart_are_taken():
    assert audit([2**53 - 1] * 40, [2**60] * 40, rng=0).advantage.lower > 0.5

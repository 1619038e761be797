"""Drift, dependence and honesty of the holdout: false alarms and power.

``WHOSIN_ADULT`` names the file ``adult.data`` of the UCI repository; without it, the experiment on it is skipped.
"""

import os
from pathlib import Path

import numpy as np
import pytest
from two_sides import alike, array_pool, families, households, other_share, shifted, table_pool, wider

from whosin.auditing.releases.sides import dependence, drift, holdout_problem

pytestmark = pytest.mark.long

NULLS = {
    "numbers": lambda rng: alike(rng, 200, 6),
    "uneven sides": lambda rng: (rng.normal(size=(300, 5)), rng.normal(size=(60, 5))),
    "few values": lambda rng: tuple(rng.integers(0, 2, size=(200, 4)).astype(float) for _ in range(2)),
    "whole numbers": lambda rng: tuple(rng.poisson(5.0, size=(200, 5)).astype(float) for _ in range(2)),
}
DRIFTS = {
    "shift": lambda rng: shifted(rng, 300, 1.0),
    "far shift": lambda rng: shifted(rng, 300, 4.0),
    "wider": lambda rng: wider(rng, 300, 2.0),
    "narrower": lambda rng: wider(rng, 300, 0.3),
    "shares": lambda rng: tuple((rng.random((300, 4)) < share).astype(float) for share in (0.5, 0.7)),
    "counts": lambda rng: tuple(rng.poisson(mean, size=(300, 4)).astype(float) for mean in (5.0, 7.0)),
    "clusters": lambda rng: clusters(rng),
}


def clusters(rng):
    """Twelve clusters of other sizes on the other side."""
    centres, shares = 4.0 * rng.normal(size=(12, 4)), rng.dirichlet(np.ones(12), 2)
    return tuple(centres[rng.choice(12, 300, p=share)] + rng.normal(size=(300, 4)) for share in shares)


def generators(key, seed, runs):
    return (np.random.default_rng([key, seed, run]) for run in range(runs))


@pytest.mark.parametrize("null", NULLS)
@pytest.mark.parametrize("make", [array_pool, table_pool])
def test_no_drift_and_no_dependence_where_there_is_none(null, make, seed, judge):
    runs, told, found = 250, 0, 0
    for rng in generators(71, seed, runs):
        pool = make(*NULLS[null](rng))
        told += drift(pool, rng).differs
        one = dependence(pool, rng)
        found += one.found or one.straddling
    judge(told, runs, 0.01)
    judge(found, runs, 0.001)


def test_no_drift_of_people(seed, judge):
    runs, told = 250, 0
    for rng in generators(72, seed, runs):
        train, holdout, who = families(rng, people=50, rows=4, noise=0.3)
        told += drift(array_pool(train, holdout, people=who), rng).differs
    judge(told, runs, 0.01)


@pytest.mark.parametrize(
    ("draw", "categories", "least"),
    [(wider, (), 17), (shifted, (), 12), (other_share, (0, 1, 2, 3), 12)],
    ids=["1.12 times as wide", "0.3 standard deviations", "share 0.5 to 0.65"],
)
def test_drift_is_told(draw, categories, least, seed):
    told = sum(drift(table_pool(*draw(rng), categories=categories), rng).differs for rng in generators(73, seed, 20))
    assert told >= least


@pytest.mark.parametrize("scrambled", [True, False])
def test_adult_with_scrambled_cells(scrambled, seed, judge):
    """Half the cells of 30 % of the held-out rows permuted within their columns."""
    if "WHOSIN_ADULT" not in os.environ:
        pytest.skip("WHOSIN_ADULT names no file adult.data")
    table, categories = adult(Path(os.environ["WHOSIN_ADULT"]))
    told = 0
    for rng in generators(74, seed, 20):
        train, holdout = table[rng.permutation(len(table))[:1000]].reshape(2, 500, -1)
        rows = rng.permutation(500)[:150] if scrambled else np.empty(0, dtype=np.int64)
        for column in range(table.shape[1]):
            some = rows[rng.random(len(rows)) < 0.5]
            holdout[some, column] = holdout[rng.permutation(some), column]
        told += drift(table_pool(train, holdout, categories=categories), rng).differs
    if scrambled:
        assert told >= 11
    else:
        judge(told, 20, 0.01)


def adult(path):
    """The table as numbers, and its columns of text."""
    lines = [line.split(", ") for line in path.read_text().splitlines() if line.strip()]
    columns, categories = [], []
    for place, cells in enumerate(zip(*lines, strict=True)):
        try:
            columns.append(np.array(cells, dtype=float))
        except ValueError:
            columns.append(np.unique(cells, return_inverse=True)[1].astype(float))
            categories.append(place)
    return np.column_stack(columns), tuple(categories)


@pytest.mark.parametrize("make", [array_pool, table_pool])
@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: families(rng)[:2],
        lambda rng: families(rng, 60, 4, noise=0.3)[:2],
        households,
    ],
    ids=["100 people of 10 rows", "families of 4", "household numbers"],
)
def test_dependence_is_found(draw, make, seed):
    assert sum(dependence(make(*draw(rng)), rng).found for rng in generators(75, seed, 20)) >= 19


@pytest.mark.parametrize("kind", DRIFTS)
def test_drift_is_not_called_dependence(kind, seed):
    runs = [dependence(table_pool(*DRIFTS[kind](rng)), rng) for rng in generators(76, seed, 50)]
    assert sum(one.found or one.straddling for one in runs) <= 1


def test_honest_holdouts_pass(seed, judge):
    """Populations and releases of whole numbers, narrower to wider, in few to many columns."""
    rng, runs, told = np.random.default_rng([77, seed]), 0, 0

    def draw(rows, columns, scale):
        return np.rint(scale * (rng.normal(size=(rows, 1)) + 0.6 * rng.normal(size=(rows, columns))))

    for columns in (2, 4, 6):
        for scale in (0.7, 1.5, 3.0, 6.0):
            for factor in (0.2, 0.5, 0.8, 1.25, 2.0):
                for rows in (250, 500, 5000):
                    parts = draw(500, columns, scale), draw(300, columns, scale), draw(rows, columns, factor * scale)
                    numbers = np.unique(np.concatenate(parts), axis=0, return_inverse=True)[1].ravel()
                    told += holdout_problem(*np.split(numbers, [500, 800]), rng=rng) is not None
                    runs += 1
    judge(told, runs, 0.001)

"""Are the two sides comparable: drift, dependence between rows, and a holdout that was not held out."""

import itertools
import json

import numpy as np
import pytest
from scipy.stats import binomtest
from two_sides import (
    alike,
    array_pool,
    families,
    households,
    other_share,
    shifted,
    table_pool,
    uncoupled,
    wider,
)

from whosin.auditing.releases.sides import Pool, dependence, drift, holdout_problem
from whosin.auditing.releases.sides.labels import labellings, largest_gap, pairs_alike

GAP = "part or all of the measured gap may be that difference"


@pytest.mark.parametrize("make", [array_pool, table_pool])
def test_a_wider_holdout_is_told(make):
    found = [drift(make(*wider(rng)), rng) for rng in map(np.random.default_rng, range(5))]
    assert sum(one.differs and one.spread for one in found) >= 4
    assert all(GAP in one.sentence and "spread" in one.sentence for one in found if one.differs)


@pytest.mark.parametrize("make", [array_pool, table_pool])
def test_a_shifted_column_is_named(make):
    found = drift(make(*shifted(np.random.default_rng(1), by=0.6)), np.random.default_rng(2))
    assert found.differs
    assert found.columns == ("x3",)
    assert not found.spread
    assert not found.joint
    assert found.sentence.startswith("Training and held-out rows differ even without the release (column: x3): ")
    assert 0.05 < found.advantage < 0.5


def test_another_share_of_a_category_is_named():
    rng = np.random.default_rng(4)
    found = drift(table_pool(*other_share(rng), categories=(0, 1, 2, 3)), rng)
    assert found.differs
    assert found.columns == ("x2",)


def test_columns_that_go_together_otherwise_are_told():
    rng = np.random.default_rng(5)
    found = drift(table_pool(*uncoupled(rng)), rng)
    assert found.differs
    assert found.joint
    assert found.columns == ()
    assert not found.spread
    assert "how the columns go together" in found.sentence


def test_a_missing_number_may_be_what_differs():
    rng = np.random.default_rng(6)
    train, holdout = alike(rng, 300, 3)
    pool = table_pool(train, holdout)
    numbers = [table.copy() for table in pool.numbers]
    numbers[1][pool.cells[300:400, 1]] = np.nan
    found = drift(Pool(300, pool.names, cells=pool.cells, numbers=numbers), rng)
    assert found.differs
    assert found.columns == ("x1",)


def test_wide_arrays_are_compared():
    rng = np.random.default_rng(7)
    train, holdout = alike(rng, 120, 2000)
    assert drift(array_pool(train, 1.05 * holdout), rng).differs
    assert not drift(array_pool(train, holdout), rng).differs


def test_no_false_alarm_beyond_the_level():
    runs = 60
    alarms = sum(drift(table_pool(*alike(rng, 60, 4)), rng).differs for rng in map(np.random.default_rng, range(runs)))
    assert binomtest(alarms, runs, 0.01, alternative="greater").pvalue > 1e-4


def test_people_are_compared_as_people():
    """Ten rows a person: rows cry wolf, people do not."""
    rows = people = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        train, holdout, who = families(rng, people=40)
        rows += drift(array_pool(train, holdout), rng).differs
        people += drift(array_pool(train, holdout, people=who), rng).differs
    assert rows >= 4
    assert people <= 1


def test_people_who_differ_are_told():
    rng = np.random.default_rng(3)
    train, holdout, who = families(rng, people=150, rows=3)
    assert drift(array_pool(train, holdout + 0.6, people=who), rng).differs


def test_a_few_records_are_no_error():
    rng = np.random.default_rng(0)
    for sides in (alike(rng, 1, 1), alike(rng, 3, 2), (np.zeros((40, 2)), np.zeros((30, 2)))):
        for make in (array_pool, table_pool):
            found = drift(make(*sides), rng), dependence(make(*sides), rng)
            assert not found[0].differs
            assert not found[1].found
            assert found[0].sentence == found[1].sentence == ""
            json.dumps([one.to_dict() for one in found], allow_nan=False)


def test_random_labellings_are_exact():
    """All labellings of six records: the share of them with so large a gap is the p-value, up to the draws."""
    scores, inside = np.array([[0.0], [1.0], [2.0], [5.0], [6.0], [9.0]]), np.arange(6) >= 3
    gaps = [abs(scores[list(some), 0].mean() - scores.mean()) for some in itertools.combinations(range(6), 3)]
    exact = np.mean(np.array(gaps) >= gaps[-1] - 1e-9)
    found = largest_gap(scores, inside, labellings(inside, np.random.default_rng(0)))
    assert found.p_value == pytest.approx(exact, abs=0.05)
    assert found.p_value >= exact - 0.03
    clear = np.arange(100) < 50
    assert largest_gap(clear[:, None] * 1.0, clear, labellings(clear, np.random.default_rng(0))).p_value == 0.001


@pytest.mark.parametrize(("pairs", "inside"), [(4, 4), (4, 3), (3, 1), (5, 6), (3, 0)])
def test_the_law_of_pairs_is_that_of_all_dealings(pairs, inside):
    counts = []
    for some in itertools.combinations(range(2 * pairs), inside):
        sides = np.isin(np.arange(2 * pairs), some).reshape(-1, 2)
        counts.append(int((sides[:, 0] == sides[:, 1]).sum()))
    for same in range(pairs + 1):
        more, fewer = pairs_alike(same, pairs, inside)
        assert more == pytest.approx(np.mean(np.array(counts) >= same))
        assert fewer == pytest.approx(np.mean(np.array(counts) <= same))


@pytest.mark.parametrize("make", [array_pool, table_pool])
@pytest.mark.parametrize(("people", "rows", "noise"), [(100, 10, 0.1), (60, 4, 0.3)])
def test_families_within_a_side_are_dependence(make, people, rows, noise):
    rng = np.random.default_rng(people)
    train, holdout, who = families(rng, people, rows, noise=noise)
    found = dependence(make(train, holdout), rng)
    assert found.found
    assert not found.straddling
    assert found.p_value <= 0.001
    assert "name the column that says whose they are" in found.sentence
    assert "population" not in found.sentence
    assert not dependence(make(train, holdout, people=who), rng).found


def test_a_household_number_is_named():
    found = dependence(table_pool(*households(np.random.default_rng(2)), categories=(0,)), np.random.default_rng(0))
    assert found.found
    assert found.columns == ("x0",)
    assert "x0" in found.sentence


def test_a_running_number_is_named():
    rng = np.random.default_rng(2)
    train, holdout = alike(rng, 200, 4)
    train[:, 2], holdout[:, 2] = np.arange(200), np.arange(200, 400)
    found = dependence(table_pool(train, holdout), rng)
    assert found.found
    assert found.columns == ("x2",)
    assert "leave that column out" in found.sentence


def test_some_repeated_rows_are_dependence():
    rng = np.random.default_rng(2)
    train, holdout = alike(rng, 400, 4)
    train[:20], holdout[:20] = train[20:40], holdout[20:40]
    found = dependence(table_pool(train, holdout), rng)
    assert found.found
    assert found.columns == ()


def test_relatives_on_both_sides_hide_a_leak():
    rng = np.random.default_rng(2)
    train, _ = alike(rng, 300, 6)
    found = dependence(table_pool(train, train + 0.05 * rng.normal(size=train.shape)), rng)
    assert found.straddling
    assert not found.found
    assert "hide a leak" in found.sentence


@pytest.mark.parametrize(
    "draw",
    [
        lambda rng: alike(rng, 300, 6),
        lambda rng: tuple(rng.integers(0, 2, size=(300, 4)).astype(float) for _ in range(2)),
        lambda rng: tuple(rng.poisson(5.0, size=(300, 5)).astype(float) for _ in range(2)),
        lambda rng: shifted(rng, 300, 1.0),
        lambda rng: shifted(rng, 300, 3.0),
        lambda rng: wider(rng, 300, 2.0),
        lambda rng: tuple((rng.random((300, 4)) < share).astype(float) for share in (0.5, 0.7)),
        lambda rng: tuple(rng.poisson(mean, size=(300, 4)).astype(float) for mean in (5.0, 7.0)),
    ],
    ids=["plain", "few values", "whole numbers", "shift", "far shift", "spread", "shares", "counts"],
)
def test_neither_chance_nor_drift_is_dependence(draw):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        found = dependence(table_pool(*draw(rng)), rng)
        assert not found.found
        assert not found.straddling
        assert found.sentence == ""


def test_dates_of_collection_are_drift():
    """Each day's rows stand on one side, and so do those of the days around it."""
    rng = np.random.default_rng(8)
    train, holdout = alike(rng, 300, 3)
    train[:, 0], holdout[:, 0] = np.sort(rng.integers(0, 100, 300)), rng.integers(100, 200, 300)
    assert not dependence(table_pool(train, holdout), rng).found
    assert drift(table_pool(train, holdout), rng).columns == ("x0",)


def numbered(*parts):
    """Numbers that are equal for equal rows."""
    numbers = np.unique(np.concatenate(parts), axis=0, return_inverse=True)[1].ravel()
    return np.split(numbers, np.cumsum([len(part) for part in parts])[:-1])


def whole(rng, scale, rows=500, columns=5):
    return np.rint(scale * (rng.normal(size=(rows, 1)) + 0.6 * rng.normal(size=(rows, columns))))


def between(rng, train, rows):
    """SMOTE: points between two training rows."""
    one, other = train[rng.integers(len(train), size=rows)], train[rng.integers(len(train), size=rows)]
    return np.rint(one + rng.random((rows, 1)) * (other - one))


def column_by_column(rng, train, rows):
    return np.column_stack([rng.choice(column, rows) for column in train.T])


def copies(rng, train, rows):
    return train[rng.integers(len(train), size=rows)]


def narrow(rng, train, rows):
    return np.rint(0.5 * train[rng.integers(len(train), size=rows)] + rng.normal(size=(rows, train.shape[1])))


def wide(rng, train, rows):
    return np.rint(2.0 * train[rng.integers(len(train), size=rows)] + rng.normal(size=(rows, train.shape[1])))


def test_a_release_of_held_out_rows_is_told():
    rng = np.random.default_rng(0)
    (train, holdout), (other, more) = alike(rng, 500, 5), alike(rng, 450, 5)
    release = np.concatenate([other, holdout[:50]])
    said = holdout_problem(*numbered(train, holdout, release), rng=rng)
    assert said == (
        "The release repeats 50 of 500 held-out rows word for word, although none of them is a training row: the "
        "holdout was not held out. Audit with rows that took no part in the training."
    )
    assert holdout_problem(*numbered(train, holdout, release, more), rng=rng) == said
    assert holdout_problem(*numbered(train, holdout, np.concatenate([other, holdout[:5]])), rng=rng) is None
    copied = np.concatenate([train[:400], train[:400], holdout[:50]])
    assert holdout_problem(*numbered(train, holdout, copied), rng=rng) == said


@pytest.mark.parametrize("scale", [0.7, 1.0, 2.0, 50.0])
@pytest.mark.parametrize("generate", [between, column_by_column, copies, narrow, wide])
@pytest.mark.parametrize("rows", [300, 5000])
def test_honest_releases_pass(scale, generate, rows):
    rng = np.random.default_rng(3)
    for _ in range(5):
        train, holdout = whole(rng, scale), whole(rng, scale)
        assert holdout_problem(*numbered(train, holdout, generate(rng, train, rows)), rng=rng) is None


def test_a_release_of_the_common_rows_passes():
    """Narrower than the population, it repeats many held-out rows, and itself still more."""
    rng = np.random.default_rng(3)
    for _ in range(5):
        parts = whole(rng, 2.0), whole(rng, 2.0, 3000), whole(rng, 1.2, 5000)
        assert holdout_problem(*numbered(*parts), rng=rng) is None


def test_a_reference_that_is_repeated_as_often_clears_the_holdout():
    """A release that lists every possible row once repeats held-out rows, and those of the reference as well."""
    rng = np.random.default_rng(3)
    train = np.zeros(500, dtype=np.int64)
    holdout, reference = rng.integers(0, 3000, size=(2, 500))
    release = rng.permutation(3000)
    assert holdout_problem(train, holdout, release, rng=rng) is not None
    assert holdout_problem(train, holdout, release, reference, rng=rng) is None


def test_a_holdout_of_training_rows_is_told():
    rng = np.random.default_rng(0)
    train, holdout = alike(rng, 400, 3)
    same = holdout_problem(*numbered(train, train[::-1]), rng=rng)
    assert same == holdout_problem(*numbered(train, holdout), rng=rng, fingerprints={"train": "a", "holdout": "a"})
    assert same.startswith("The training table and the held-out table are the same")
    most = np.concatenate([train[:250], holdout[:150]])
    assert holdout_problem(*numbered(train, most), rng=rng).startswith("250 of 400 held-out rows are training rows too")
    full = np.concatenate([train, holdout])
    assert holdout_problem(*numbered(train, full), rng=rng).startswith("400 of 400 training rows are held-out rows too")
    some = np.concatenate([train[:100], holdout[:300]])
    assert holdout_problem(*numbered(train, some), rng=rng).startswith("100 of 400 held-out rows are training rows too")
    few = np.concatenate([train[:20], holdout[:380]])
    assert holdout_problem(*numbered(train, few), rng=rng) is None


def test_tables_of_few_values_repeat_by_chance():
    rng = np.random.default_rng(0)
    for rows in (8, 50, 500):
        for _ in range(30):
            parts = [rng.integers(0, 2, size=(rows, 2)).astype(float) for _ in range(3)]
            assert holdout_problem(*numbered(*parts), rng=rng) is None

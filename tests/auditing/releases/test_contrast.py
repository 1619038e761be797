"""Released rows against reference rows: ratios of marginals, a classifier, rarity beyond the reference."""

import itertools
import math

import numpy as np
import polars as pl
import pytest
from null_audits import judge_alarms

import whosin as wi
from whosin.auditing.measuring.learned import WIDEST
from whosin.auditing.releases.queries import contrast
from whosin.auditing.releases.queries.contrast import Contrast, sample_of
from whosin.auditing.releases.queries.tables import DEFAULT, REFERRING
from whosin.errors import InputError
from whosin.tables import as_table


def people(rows, rng):
    return pl.DataFrame(
        {
            "age": rng.integers(18, 90, rows).astype(float),
            "income": np.where(rng.random(rows) < 0.1, np.nan, rng.lognormal(10, 1, rows).round(-2)),
            "job": rng.choice(["cook", "clerk", "smith", "diver"], rows, p=[0.4, 0.3, 0.25, 0.05]),
            "town": rng.choice([f"town {i}" for i in range(12)], rows),
        }
    )


def copies(train, rng):
    """Training rows, some cells drawn again."""
    return train.with_columns(
        [pl.when(pl.Series(rng.random(len(train)) < 0.3)).then(people(len(train), rng)[c]).otherwise(train[c]).alias(c)
         for c in train.columns]
    )  # fmt: skip


def held_against(records, released, reference):
    return Contrast([as_table(part) for part in records], as_table(released), as_table(reference))


def test_ratios_by_hand():
    """x of n and y of m rows in a cell: ln((x/n + c)/(y/m + c)), averaged over the marginals of one width."""
    released = {"a": ["x", "x", "y"], "b": ["u", "v", "u"]}
    reference = {"a": ["x", "y", "y", "y"], "b": ["u", "u", "v", "v"]}
    found = held_against([{"a": ["x"], "b": ["u"]}, {"a": ["new"], "b": ["v"]}], released, reference)

    def ratio(x, y):
        return math.log((x / 3 + 1 / 7) / (y / 4 + 1 / 7))

    assert found.marginal_ratio([1]) == pytest.approx([(ratio(2, 1) + ratio(2, 2)) / 2, (0.0 + ratio(1, 2)) / 2])
    assert found.marginal_ratio([2]) == pytest.approx([ratio(1, 1), 0.0])
    assert found.marginal_ratio([1, 2]) == pytest.approx(found.marginal_ratio([1]) + found.marginal_ratio([2]))
    assert np.array_equal(found.marginal_ratio([4]), found.marginal_ratio([2])), "no more than there are columns"


def test_numbers_are_cut_into_tenths_of_both_tables_and_gaps_are_a_bin():
    released, reference = {"a": np.arange(0.0, 50.0)}, {"a": [*np.arange(50.0, 99.0), None]}
    found = held_against([{"a": [0.0, 8.9, -1e300, 98.0, 1e300, None]}], released, reference).marginal_ratio([1])
    low, high, gap = (math.log((x + 0.01) / (y + 0.01)) for x, y in ((0.2, 0.0), (0.0, 0.18), (0.0, 0.02)))
    assert found[:3] == pytest.approx([low, low, low])
    assert found[3:5] == pytest.approx([high, high], abs=0.2), "the last tenth"
    assert found[5] == pytest.approx(gap)


def test_cells_that_no_array_holds_are_counted_alike(monkeypatch):
    rng = np.random.default_rng(0)
    tables = [people(60, rng)], people(80, rng), people(70, rng)
    dense = held_against(*tables).marginal_ratio([1, 2, 3, 4])
    monkeypatch.setattr(contrast, "DENSE", 8)
    assert np.array_equal(held_against(*tables).marginal_ratio([1, 2, 3, 4]), dense)


@pytest.mark.parametrize(("columns", "width"), [(5, 2), (40, 3), (447, 4), (9, 9)])
def test_marginals_are_different_and_take_every_column_about_equally_often(columns, width):
    chosen = list(contrast._marginals(columns, width))
    assert chosen == list(contrast._marginals(columns, width))
    assert len(set(chosen)) == len(chosen) == min(contrast.MOST_MARGINALS, math.comb(columns, width))
    assert all(len(set(places)) == width and list(places) == sorted(places) for places in chosen)
    times = np.bincount(list(itertools.chain(*chosen)), minlength=columns)
    assert times.max() - times.min() <= 0.5 * times.mean() + 2


def test_the_classifier_tells_released_rows_from_others_and_says_the_same_again():
    rng = np.random.default_rng(1)
    released = people(400, rng).with_columns(age=pl.lit(30.0))
    reference, strange = (
        people(300, rng),
        people(5, rng).with_columns(job=pl.lit("pilot"), age=pl.lit(None, pl.Float64)),
    )
    asked = [released.head(50), reference.head(50), strange]
    found = held_against(asked, released, reference).classifier
    assert np.isfinite(found).all()
    assert found[:50].min() > found[50:100].max()
    assert np.array_equal(held_against(asked, released, reference).classifier, found)


def test_tables_without_two_values_in_a_column_cannot_be_told_apart():
    one = {"a": ["x", "x"]}
    found = held_against([{"a": ["x", "y"]}], one, one)
    for answer in (lambda: found.classifier, lambda: found.marginal_ratio([1])):
        with pytest.raises(InputError, match="must have a column with two values"):
            answer()


def test_large_tables_are_sampled(monkeypatch):
    monkeypatch.setattr(contrast, "MOST_ROWS", 30)
    rng = np.random.default_rng(3)
    assert np.array_equal(sample_of(30, rng), np.arange(30))
    rows = sample_of(1000, rng)
    assert len(set(rows.tolist())) == 30
    assert np.all(np.diff(rows) > 0)
    assert 300 < rows.mean() < 700


@pytest.fixture(scope="module")
def leak():
    rng = np.random.default_rng(4)
    train, holdout, reference = (people(n, rng) for n in (150, 200, 300))
    return train, holdout, copies(train, rng), reference


def test_a_stream_answers_as_memory_does_and_is_sampled_alike(leak, monkeypatch):
    train, holdout, release, reference = leak
    monkeypatch.setattr(contrast, "MOST_ROWS", 100)
    names = ["marginal_ratio", "joint_ratio", "classifier", "soft_rarity_gain", "rarity_gain"]
    tables = train, holdout, release
    memory = wi.audit_synthetic(*tables, reference=reference, query=names)
    stream = wi.audit_synthetic(*tables, reference=reference, query=names, block_rows=17)
    assert memory._material.names == stream._material.names == tuple(names)
    assert np.array_equal(memory._material.answers, stream._material.answers)


def test_copies_are_seen_by_every_query_against_a_reference(leak):
    train, holdout, release, reference = leak
    found = wi.audit_synthetic(train, holdout, release, reference=reference)
    assert not [name for name, _ in found.failed if name != "copies"]
    asked = found._material
    for name in ("marginal_ratio", "joint_ratio", "classifier"):
        answers = asked.answers[:, asked.names.index(name)]
        inside, outside = answers[: asked.train_rows], answers[asked.train_rows :]
        assert np.mean(inside[:, None] > outside) > 0.55, name


def test_a_query_against_a_reference_says_that_it_needs_one(leak):
    for name in ("marginal_ratio", "classifier", "rarity_gain"):
        with pytest.raises(InputError, match="reference is needed: rows of the same population"):
            wi.audit_synthetic(*leak[:3], query=name)


@pytest.mark.filterwarnings("ignore::whosin.errors.AssumptionWarning")  # records that differ by chance
def test_the_score_knows_the_products_of_all_queries_with_a_reference():
    assert len(DEFAULT) + len(REFERRING) <= WIDEST


@pytest.mark.parametrize("query", ["soft_rarity_gain", "rarity_gain", "equal_cells"])
def test_queries_that_are_asked_by_name_raise_no_false_alarms(query):
    """Four tables of one population; ``tests/long`` asks every query so."""

    def null(seed):
        rng = np.random.default_rng([5, seed])
        tables = [people(rows, rng) for rows in (40, 40, 60)]
        return wi.audit_synthetic(*tables, reference=people(60, rng), query=query)

    judge_alarms(null(seed) for seed in range(8))


def test_rarity_beyond_the_reference_by_hand():
    """Of the eight rows two have x and one y, two have p and q each; (y, q) stands in the release, only q elsewhere."""
    release = pl.DataFrame({"a": ["x", "y", "z", "z"], "b": ["p", "q", "r", "r"]})
    reference = pl.DataFrame({"a": ["x", "z", "z", "z"], "b": ["p", "r", "q", "r"]})
    train, holdout = pl.DataFrame({"a": ["x"], "b": ["p"]}), pl.DataFrame({"a": ["y"], "b": ["q"]})
    names = ["rarity_gain", "soft_rarity_gain", "rarity"]
    found = wi.audit_synthetic(train, holdout, release, reference=reference, query=names)
    rare, common = -math.log(1.5 / 10), -math.log(2.5 / 10)
    assert found._material.answers == pytest.approx(np.array([[0, 0, 2 * common], [rare, rare, rare + common]]))

"""Held-out rows that serve as reference: how many, which, and that nothing else changes."""

import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from null_audits import judge_alarms

import whosin as wi
from whosin.auditing.measuring.people import people_in
from whosin.auditing.releases.set_aside import FEWEST, MOST, WIDER, number_aside, set_aside


def people(rows, rng):
    return pl.DataFrame(
        {
            "age": rng.integers(18, 90, rows).astype(float),
            "income": rng.lognormal(10, 1, rows).round(-2),
            "job": rng.choice(["cook", "clerk", "smith", "diver"], rows, p=[0.4, 0.3, 0.25, 0.05]),
            "town": rng.choice([f"town {i}" for i in range(12)], rows),
        }
    )


@pytest.fixture(scope="module")
def tables():
    rng = np.random.default_rng(0)
    train, holdout = people(80, rng), people(400, rng)
    return train, holdout, pl.concat([train.head(40), people(60, rng)])


def audit(*tables, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return wi.audit_synthetic(*tables, **options)


@given(st.integers(1, 10**6), st.integers(1, 10**7))
def test_limits_are_hardly_wider(train, holdout):
    aside = number_aside(train, holdout)
    assert aside == 0 or FEWEST <= aside <= MOST
    if holdout < 2 * train:
        assert aside == 0

    def wide(rows):
        return np.sqrt(1.0 / train + 1.0 / rows)

    if aside:
        assert wide(holdout - aside) <= WIDER * wide(holdout) * (1 + 1e-12)
        assert aside == MOST or wide(holdout - aside - 1) > WIDER * wide(holdout)


def test_numbers_by_hand():
    """1.21·(1/1000 + 1/5000) - 1/1000 = .000452, so 2,213 of 5,000 stay."""
    assert number_aside(1000, 5000) == 5000 - 2213
    assert number_aside(1000, 1999) == 0
    assert number_aside(10, 100) == 0
    assert number_aside(20_000, 60_000) == MOST


def test_people_are_set_aside_whole():
    rng = np.random.default_rng(1)
    who = people_in(rng.integers(200, size=900), 900)
    found = set_aside(900, who, 120, rng)
    assert np.array_equal(np.sort(np.concatenate([found.counted, found.rows])), np.arange(900))
    inside, outside = (set(who.number[rows].tolist()) for rows in (found.rows, found.counted))
    assert not inside & outside
    assert len(inside) == 120


def test_answers_are_those_of_an_audit_with_that_reference(tables):
    train, holdout, release = tables
    found = audit(*tables)
    counted = found._material.counted
    aside = np.setdiff1d(np.arange(400), counted)
    assert found.set_aside == len(aside) == number_aside(80, 400) > 0
    assert found.non_members == len(counted)
    own = audit(train, holdout[counted], release, reference=holdout[aside])
    assert own.set_aside == 0
    assert own._material.names == found._material.names
    assert "classifier" in found._material.names
    assert np.array_equal(own._material.answers, found._material.answers)
    assert not found.problem
    assert f"{len(aside)} of the 400 held-out rows, drawn at random, served as reference" in " ".join(found.notes)
    assert found.to_dict()["set_aside"] == len(aside)


def test_what_is_set_aside_depends_on_the_records_alone_or_on_the_callers_chance(tables):
    train, holdout, release = tables
    found = audit(*tables)._material
    other = audit(train, holdout, release.head(90))._material
    assert np.array_equal(found.counted, other.counted)
    assert found.fingerprints["holdout"] == audit(*tables, reference=None).fingerprints["holdout"]
    assert "reference" not in found.fingerprints
    drawn = [audit(*tables, rng=seed)._material.counted for seed in (1, 1, 2)]
    assert np.array_equal(drawn[0], drawn[1])
    assert not np.array_equal(drawn[0], drawn[2])


def test_a_stream_sets_the_same_rows_aside(tables):
    memory, stream = audit(*tables), audit(*tables, block_rows=13)
    assert np.array_equal(memory._material.counted, stream._material.counted)
    assert np.array_equal(memory._material.answers, stream._material.answers)
    assert memory.fingerprints == stream.fingerprints
    assert memory.advantage == stream.advantage


def test_rows_of_people_groups_and_indices_are_those_that_were_given(tables):
    train, holdout, release = tables
    found = audit(*tables, groups="job")
    counted = found._material.counted
    assert np.array_equal(found.individual.index, np.concatenate([np.arange(80), counted]))
    jobs = holdout["job"].to_numpy()[counted]
    assert np.array_equal(found.labels["job"].texts[1], jobs)
    with_person = [
        table.with_columns(who=pl.Series([f"{side}{i // 2}" for i in range(len(table))]))
        for side, table in (("t", train), ("h", holdout))
    ]
    by_person = audit(*with_person, release, person="who")
    rows = np.flatnonzero(~np.isin(np.arange(400), by_person._material.counted))
    assert len(rows) == 2 * number_aside(40, 200)
    assert np.array_equal(rows[::2] + 1, rows[1::2]), "both rows of a person"
    assert by_person.non_members == 200 - number_aside(40, 200)


@pytest.mark.parametrize(
    "options",
    [
        {"reference": None},
        {"query": ["nearest", "rarity"]},
        {"assignment": "random"},
        {"groups": (np.zeros(80), np.arange(400) % 2)},
    ],
)
def test_nothing_is_set_aside(tables, options):
    found = audit(*tables, **options)
    assert found.set_aside == 0
    assert found.non_members == 400


def test_arrays_and_equal_sides_keep_all_rows(tables):
    train, holdout, release = tables
    numbers = [table.select("age", "income").to_numpy() for table in tables]
    assert audit(*numbers).set_aside == 0
    assert audit(train, holdout.head(150), release).set_aside == 0


def test_a_holdout_that_was_trained_on_is_still_found():
    """The rows that serve as reference are held out too: they do not excuse the others."""
    rng = np.random.default_rng(2)
    train, holdout = people(100, rng), people(500, rng)
    with pytest.warns(UserWarning, match="was not held out"):
        found = wi.audit_synthetic(train, holdout, pl.concat([train, holdout]))
    assert found.verdict.state == "no verdict"


def test_a_reference_that_is_one_of_the_tables_gives_no_verdict(tables):
    train, holdout, release = tables
    for reference, name in ((train, "training"), (holdout.sample(fraction=1.0, shuffle=True, seed=0), "held-out")):
        with pytest.warns(UserWarning, match=f"The reference is the {name} table"):
            found = wi.audit_synthetic(train, holdout, release, reference=reference)
        assert found.verdict.state == "no verdict"
        assert found.problem.startswith(f"The reference is the {name} table")


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        (lambda table: table.head(1), "reference must have at least two rows, got one"),
        (lambda table: table.head(0), "reference must have at least one row"),
        (lambda table: table.drop("job"), "reference"),
        (lambda table: table.rename({"job": "work"}), "job"),
    ],
)
def test_references_that_are_none(tables, reference, said):
    with pytest.raises(ValueError, match=said):
        wi.audit_synthetic(*tables, reference=reference(tables[1]))


@pytest.mark.filterwarnings("ignore::whosin.errors.AssumptionWarning")  # records that differ by chance
def test_no_false_alarms_where_nothing_leaks():
    """Release, both sides and the rows set aside from one population; ``tests/long`` has more of them."""

    def null(seed):
        rng = np.random.default_rng([3, seed])
        found = wi.audit_synthetic(people(60, rng), people(300, rng), people(80, rng))
        assert found.set_aside
        return found

    judge_alarms(null(seed) for seed in range(8))

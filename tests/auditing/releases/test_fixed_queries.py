"""Queries that are fixed before the records are seen: an answer about a record depends on no other record."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whosin as wi
from whosin.auditing.releases.queries import Query, ask
from whosin.auditing.releases.queries import arrays as array_queries
from whosin.auditing.releases.queries import tables as table_queries
from whosin.auditing.releases.queries.arrays import ArrayRelease
from whosin.auditing.releases.queries.contrast import Contrast
from whosin.auditing.releases.queries.tables import TableRelease, rarity_weights
from whosin.auditing.releases.tables_to_answers import answer_queries
from whosin.errors import InputError
from whosin.tables import TableEncoder, as_table

ROUTES = ("table", "stream", "array")


def people(rows, rng):
    """Columns of every kind; some are constant, mostly constant or empty, and others have missing cells."""
    job = pl.Series(rng.choice(["cook", "clerk", "smith", "diver"], rows, p=[0.4, 0.3, 0.25, 0.05]))
    return pl.DataFrame(
        {
            "age": rng.integers(18, 90, rows).astype(float),
            "income": rng.lognormal(10, 1, rows).round(-2),
            "gain": np.where(rng.random(rows) < 0.9, 0.0, rng.integers(1, 5000, rows)),
            "wealth": np.where(rng.random(rows) < 0.1, np.nan, rng.normal(0, 1, rows).round(1)),
            "job": job.set(pl.Series(rng.random(rows) < 0.03), None),
            "town": rng.choice([f"town {i}" for i in range(200)], rows),
            "married": rng.random(rows) < 0.4,
            "constant": np.full(rows, 7.0),
            "mostly": np.where(rng.random(rows) < 0.2, np.nan, 7.0),
            "empty": pl.Series([None] * rows, dtype=pl.Float64),
            "case_id": rng.integers(0, 10**6, rows),
            "note": pl.Series([f"{n:x}" for n in rng.integers(0, 2**30, rows)]).set(
                pl.Series(rng.random(rows) < 0.2), "none"
            ),
        }
    )


def strangers(rows, rng):
    """Records with values that nobody else has, huge ones among them, and cells that others do not lack."""
    return pl.DataFrame(
        {
            "age": np.where(rng.random(rows) < 0.3, np.nan, rng.normal(0, 1e9, rows)),
            "income": rng.choice([1e300, -1e300, 1e-300], rows),
            "gain": rng.choice([0.0, 3.0, 1e300], rows),
            "wealth": rng.normal(0, 1e6, rows),
            "job": [f"job {i}" for i in range(rows)],
            "town": pl.Series([f"town {i}" for i in range(rows)]).set(pl.Series(rng.random(rows) < 0.5), None),
            "married": rng.random(rows) < 0.99,
            "constant": rng.normal(0, 1, rows),
            "mostly": rng.normal(0, 1, rows),
            "empty": rng.normal(0, 1, rows),
            "case_id": rng.integers(0, 3, rows),
            "note": rng.choice(["none", "the same"], rows),
        }
    )


@pytest.fixture(scope="module")
def world():
    rng = np.random.default_rng(1)
    records = people(120, rng)
    release = pl.concat([people(80, rng), records.head(30)])
    return records, release, people(40, rng), strangers(60, rng)


def as_numbers(frame):
    chosen = frame.select("age", "income", "gain", "constant").fill_nan(-1.0).to_numpy()
    return np.clip(chosen, -1e9, 1e9)


def answers(train, holdout, release, reference, route):
    """What "auto" answers, training rows first."""
    parts = [train, holdout, release, reference]
    if route == "array":
        parts = [None if part is None else as_numbers(part) for part in parts]
    options = {"block_rows": 17} if route == "stream" else {}
    found = answer_queries(
        *parts[:3], query="auto", reference=parts[3], columns=None, groups=None, n_jobs=1,
        rng=np.random.default_rng(0), progress=lambda _: None, **options,
    )  # fmt: skip
    assert list(found.left_out) == ([] if route == "array" else ["case_id", "note"])
    assert not found.failed
    assert np.isfinite(found.answers).all()
    return found.answers


@pytest.mark.parametrize("with_reference", [False, True])
@pytest.mark.parametrize("route", ROUTES)
def test_an_answer_depends_on_no_other_record(world, route, with_reference):
    records, release, reference, crowd = world
    rest = release, reference if with_reference else None, route
    whole = answers(records[:70], records[70:], *rest)
    assert np.array_equal(answers(records[70:], records[:70], *rest), np.roll(whole, 50, axis=0)), "exchanged"
    assert np.array_equal(answers(records[:20], records[70:], *rest)[:20], whole[:20]), "some left out"
    assert np.array_equal(answers(records[:70], crowd, *rest)[:70], whole[:70]), "others are strangers"
    assert np.array_equal(answers(crowd, records[:1], *rest)[-1:], whole[:1]), "a single one"


@pytest.mark.parametrize("known", [table_queries, array_queries])
def test_every_query_answers_for_each_record_alone(known):
    """Not only those of "auto"; with so many columns that NumPy adds up a single row in another order than several."""
    rng = np.random.default_rng(2)
    if known is array_queries:
        targets, released, others = (rng.normal(size=(n, 9)) for n in (40, 50, 30))
        releases = [ArrayRelease(rows, released, reference=others) for rows in (targets, *targets[:, None])]
    else:
        cells = [rng.integers(0, 6, (n, 20)).astype(np.int32) for n in (40, 50, 30)]
        shares, numbers = [rng.dirichlet(np.ones(6)) for _ in range(20)], [None] * 12 + [rng.normal(size=6)] * 8
        ranks = [None] * 12 + [rng.uniform(-1.0, 1.0, 6)] * 8
        tables = [as_table(part) for part in cells[1:]]
        releases = [
            TableRelease(
                rows, cells[1], shares, numbers, ranks, reference_cells=cells[2],
                reference_tables=lambda rows=rows: Contrast([as_table(rows)], *tables),
                repeated_keys=rows[:, 0].astype(float),
            )
            for rows in (cells[0], *cells[0][:8, None])
        ]  # fmt: skip
    for name in known.QUERIES:
        many, *single = (ask(release, known.QUERIES, [name]).values for release in releases)
        assert np.array_equal(many[: len(single)], np.concatenate(single)), name


@pytest.mark.filterwarnings("ignore:Most numbers of")
@pytest.mark.parametrize("route", ROUTES)
def test_which_queries_are_asked_depends_on_no_record(world, route):
    """Records of whom nobody is copied leave "copies" constant: it keeps its place, and its share of the error."""
    _, release, _, crowd = world
    parts = [crowd[:30], crowd[30:], release]
    parts = [as_numbers(part) for part in parts] if route == "array" else parts
    query = ["nearest", "ball"] if route == "array" else "auto"
    options = {"block_rows": 17} if route == "stream" else {}
    found = wi.audit_synthetic(*parts, query=query, reference=None, rng=0, columns=None, **options)
    asked = ("nearest", "ball") if route == "array" else (*table_queries.DEFAULT, "repeated_keys")
    assert found._splits.experiment.names == asked
    assert not found.failed
    if route != "array":
        assert "query copies is 0 for every record" in found.assumes
        assert found.queries["copies"].estimate == 0.0


def test_an_answer_that_is_no_number_counts_as_the_smallest():
    known = {
        "some": Query("", lambda _: np.array([1.0, np.nan, -np.inf, 3.0])),
        "same": Query("", lambda _: np.full(4, 7.0)),
        "none": Query("", lambda _: np.full(4, np.nan)),
    }
    found = ask(None, known, ["some", "same", "none"])
    assert found.names == ("some", "same", "none")
    assert np.array_equal(found.values[:, 0], [1.0, -np.inf, -np.inf, 3.0])
    assert found.remarks[0] == "query some has no number for 1 records: there it counts as smallest"
    assert found.notes[1] == "query same is 7 for every record"
    with pytest.raises(InputError, match="none has a number for any record: none"):
        ask(None, known, ["none"])


def test_a_value_that_no_release_has_counts_against_a_match(world):
    """Rarity of the record grows, what is explained does not, and both are finite."""
    records, release, _, _ = world
    one = records[:1].with_columns(town=pl.Series(["nowhere"]))
    common = records[:1].with_columns(town=release["town"][:1])
    rarity, seen = ({}, {})
    for name, table in (("new", one), ("seen", common)):
        tables = as_table(table), as_table(release)
        encoder = TableEncoder.fit(*tables, learn_from=tables[1:])
        cells = [encoder.transform(as_table(part)) for part in (table, release)]
        found = TableRelease(cells[0], cells[1], encoder.frequencies, *[[None] * cells[0].shape[1]] * 2)
        rarity[name], seen[name] = found.rarity[0], found.matches.weight[0]
        assert all((weights >= 0.0).all() for weights in rarity_weights(encoder.frequencies))
    assert np.isfinite(rarity["new"])
    assert rarity["new"] > rarity["seen"]
    assert seen["new"] <= seen["seen"]


def test_numbers_where_the_release_has_only_one_are_equal_or_as_far_as_can_be():
    train, holdout = as_table({"a": [7.0, 8.0], "b": [7.0, 8.0]}), as_table({"a": [1e9, None], "b": [1e9, None]})
    release = as_table({"a": [7.0, 7.0, 7.0], "b": [7.0, None, 7.0]})
    for names, wanted in ((["a"], [0, 1, 1, 1]), (["b"], [0, 1, 1, 0]), (["a", "b"], [0, 2, 2, 1])):
        found = answer_queries(
            train, holdout, release, query="nearest", reference=None, columns=names, groups=None, n_jobs=1,
            rng=np.random.default_rng(0), progress=lambda _: None,
        )  # fmt: skip
        assert (-found.answers[:, 0]).tolist() == wanted


def test_the_radius_by_hand():
    targets = np.array([[100.0], [200.0]])

    def radius(released, **options):
        return ArrayRelease(targets, np.array(released, dtype=float)[:, None], **options).radius

    assert radius([1, 4, 6, 20]) == 2.5  # 3, 2, 2, 14
    assert radius([1, 1, 1, 4, 6, 20]) == 2.5
    assert radius([1, 4, 6, 20], reference=np.array([[0.0], [4.0], [4.0], [40.0]])) == 2.0  # 1, 2, 20
    assert radius([3, 3]) == radius([3]) == radius([0.0, -0.0]) == 0.0
    assert radius([3], reference=np.array([[5.0]])) == 2.0
    equal = ArrayRelease(np.array([[3.0], [4.0]]), np.array([[3.0], [3.0]]))
    assert ask(equal, array_queries.QUERIES, ["ball"]).values.tolist() == [[1.0], [0.0]]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 99), rows=st.sampled_from([2, 30, 2500]))
def test_the_radius_is_that_of_the_release_in_any_order(seed, rows):
    rng = np.random.default_rng(seed)
    released = rng.normal(size=(rows, 2))
    radius = ArrayRelease(rng.normal(size=(5, 2)), released).radius
    assert ArrayRelease(100 * rng.normal(size=(7, 2)), rng.permutation(released)).radius == radius
    if rows <= array_queries.RADIUS_ROWS:
        apart = np.linalg.norm(released[:, None] - released[None], axis=2) + np.diag(np.full(rows, np.inf))
        assert radius == pytest.approx(np.median(apart.min(axis=1)), rel=1e-12)


@pytest.mark.parametrize("shape", [(60,), (60, 3)])
@pytest.mark.parametrize("kind", [float, int, bool])
def test_lists_are_taken_as_arrays(shape, kind):
    rng = np.random.default_rng(4)
    parts = [rng.normal(0, 3, shape) for _ in range(2)]
    parts = [part > 0 if kind is bool else part.astype(kind) for part in [*parts, parts[0]]]
    wanted = wi.audit_synthetic(*(part.astype(float) for part in parts), query="nearest", rng=0)
    for given_parts in (parts, [part.tolist() for part in parts], [tuple(map(as_rows, part)) for part in parts]):
        found = wi.audit_synthetic(*given_parts, query="nearest", rng=0)
        assert found.advantage == wanted.advantage
        assert found.fingerprints == wanted.fingerprints
        assert np.array_equal(found._material.answers, wanted._material.answers)


def as_rows(row):
    return tuple(row.tolist()) if np.ndim(row) else row.item()


def test_lists_of_other_things_are_tables():
    rows = [[1, "a"], [2, "b"], [3, None], [4, "a"]]
    assert "rarity" in wi.audit_synthetic(rows, rows[::-1], rows, query="rarity", rng=0).queries
    gaps = [[1.0, None], [2.0, 3.0], [3.0, 1.0]]
    assert "rarity" in wi.audit_synthetic(gaps, gaps[::-1], gaps, query="rarity", rng=0).queries
    frames = [pd.DataFrame({"a": [1.0, 2.0]}), pd.DataFrame({"a": [3.0, 4.0]})]
    found = wi.audit_synthetic(frames[0], frames[1], frames, query="rarity", rng=0)
    assert found.synthetic == 4


def test_the_callers_own_query_gets_lists_as_they_were_given():
    def own(records, released):
        assert isinstance(records, list)
        assert isinstance(released, list)
        return np.array(records)

    wi.audit_synthetic([1.0, 2.0, 3.0], [2.0, 3.0, 4.0], [1.0, 5.0], query=own, rng=0)

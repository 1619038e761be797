"""Linked tables and series: one row per person, by definition; and a leak in the child table alone is found."""

import numpy as np
import polars as pl
import pytest

import whosin as wi
from whosin.errors import InputError
from whosin.tables import as_table, linked

PEOPLE = {"who": ["c", "a", "b"], "age": [50, 31, 47]}
VISITS = {
    "day": ["2020-01-03", "2020-01-01", "2020-01-02", "2020-01-02", "2020-01-01"],
    "who": ["a", "b", "a", "b", "a"],
    "cost": [5.0, 20.0, None, 10.0, 7.0],
    "kind": ["x", "y", "x", "y", "z"],
}


def test_the_summaries_by_definition():
    table = linked(PEOPLE, VISITS, key="who", order="day", first=2)
    got = {name: table.column(name).tolist() for name in table.names}
    nan = pytest.approx(float("nan"), nan_ok=True)
    assert got["age"] == [50.0, 31.0, 47.0]
    assert got["rows"] == [0.0, 3.0, 2.0]
    assert got["cost smallest"] == [nan, 5.0, 10.0]
    assert got["cost largest"] == [nan, 7.0, 20.0]
    assert got["cost middle"] == [nan, 5.0, 10.0]
    assert got["cost 1"] == [nan, 5.0, 10.0]
    assert got["cost 2"] == [nan, 7.0, 20.0]
    assert got["cost last"] == [nan, 5.0, 10.0]
    assert got["kind different"] == [0.0, 2.0, 1.0]
    assert got["kind 1"] == [None, "x", "y"]
    assert got["kind 2"] == [None, "x", "y"]
    assert got["kind last"] == [None, "x", "y"]
    assert got["day last"] == [None, "2020-01-03", "2020-01-02"]
    assert "who" not in got


def test_the_order_of_rows_and_of_people_plays_no_part():
    rng = np.random.default_rng(0)
    visits = pl.DataFrame({**VISITS, "day": [3, 1, 2, 2, 1]})
    expected = linked(PEOPLE, visits, key="who", order="day").fingerprint()
    for _ in range(5):
        mixed = visits[rng.permutation(5)]
        assert linked(PEOPLE, mixed, key="who", order="day").fingerprint() == expected


def test_series_in_long_format_and_several_children(tmp_path):
    alone = linked(None, VISITS, key="who")
    assert alone.column("rows").tolist() == [3.0, 2.0]
    pl.DataFrame(VISITS).write_csv(tmp_path / "visits.csv")
    two = linked(PEOPLE, {"visits": tmp_path / "visits.csv", "again": VISITS}, key="who", first=0)
    assert two.column("visits: cost last").tolist()[1:] == two.column("again: cost last").tolist()[1:]


@pytest.mark.parametrize(
    ("parent", "child", "says"),
    [
        (PEOPLE, {"cost": [1.0]}, "key must be a column of child, got 'who'; it has cost"),
        (PEOPLE, {"who": ["a", "z"], "x": [1, 2]}, "child row 1 column 'who' must be somebody in parent, got 'z'"),
        (
            {"who": ["a", "a"]},
            {"who": ["a"], "x": [1]},
            "one row per person in 'who', got 2 of 'a', the first in row 0",
        ),
        (PEOPLE, {"who": ["a", None], "x": [1, 2]}, "child row 1 column 'who' must say whose the row is, got nothing"),
    ],
)
def test_bad_links(parent, child, says):
    with pytest.raises(InputError, match=says):
        linked(parent, child, key="who")


def test_an_order_or_a_name_that_cannot_be_meant():
    with pytest.raises(InputError, match="order must be a column of a table of rows, got 'when'; child has day, who"):
        linked(PEOPLE, VISITS, key="who", order="when")
    with pytest.raises(InputError, match=r"called like a column of parent, got 'rows' twice; name the table of rows"):
        linked({"who": ["a"], "rows": [1]}, {"who": ["a"], "x": [1]}, key="who")
    named = linked({"who": ["a"], "rows": [1]}, {"visits": {"who": ["a"], "x": [1]}}, key="who")
    assert named.names[:2] == ("rows", "visits: rows")


def test_keys_are_compared_as_text():
    """An export may have ids as numbers where another has them as text; "007" is somebody else."""
    table = linked({"who": ["7", "12"], "age": [30, 40]}, {"who": [12.0, 7.0, 12.0], "x": [1, 2, 3]}, key="who")
    assert table.column("rows").tolist() == [1.0, 2.0]
    with pytest.raises(InputError, match="must be somebody in parent, got '7'"):
        linked({"who": ["007"]}, {"who": [7], "x": [1]}, key="who")


def test_mistakes_in_files_name_the_line(tmp_path):
    (tmp_path / "visits.csv").write_text("who,cost\na,1\nb,2\nz,3\n")
    with pytest.raises(InputError, match=r"visits\.csv line 4 column 'who' must be somebody in parent, got 'z'"):
        linked(PEOPLE, tmp_path / "visits.csv", key="who")


def population(rng, n):
    people = pl.DataFrame({"who": np.arange(n), "age": rng.integers(20, 90, n), "sex": rng.choice(["f", "m"], n)})
    rows = rng.poisson(4, n)
    who = np.repeat(np.arange(n), rows)
    visits = pl.DataFrame(
        {
            "who": who,
            "cost": rng.lognormal(4, 1, len(who)).round(1),
            "ward": rng.choice(["a", "b", "c", "d", "e", "f"], len(who)),
        }
    )
    return people, visits


def test_a_leak_in_the_child_table_alone_is_found():
    """Fresh people, of whom 60 in 200 carry the visits of a training person; the parent tables tell nothing."""
    rng = np.random.default_rng(8)
    n, leaked = 200, 60
    train, holdout, fresh = (population(rng, n) for _ in range(3))
    copied = pl.concat([train[1].filter(pl.col("who") < leaked), fresh[1].filter(pl.col("who") >= leaked)])
    tables = [linked(*part, key="who") for part in (train, holdout)]
    leaky = wi.audit_synthetic(*tables, linked(fresh[0], copied, key="who"), rng=0)
    clean = wi.audit_synthetic(*tables, linked(*fresh, key="who"), rng=0)
    alone = wi.audit_synthetic(*(as_table(part[0].drop("who")) for part in (train, holdout, fresh)), rng=0)
    assert leaky.advantage.lower > 0.05
    assert clean.advantage.lower == alone.advantage.lower == 0.0

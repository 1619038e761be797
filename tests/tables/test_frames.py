"""Tables from arrays, rows and data frames: one content, one fingerprint."""

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from table_strategies import columns

from whosin.errors import InputError, InputTypeError
from whosin.tables import Table, as_table, read_table


def frames(content):
    """The same content in every library."""
    as_polars = pl.DataFrame(content, strict=False)
    return {
        "polars": as_polars,
        "lazy": as_polars.lazy(),
        "pyarrow": as_polars.to_arrow(),
        "pandas": pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in content.items()}),
        "pandas, typed": as_polars.to_pandas(),
        "pandas, arrow": as_polars.to_pandas(use_pyarrow_extension_array=True),
    }


@given(columns())
def test_every_library_gives_the_same_table(content):
    expected = as_table(content)
    for library, frame in frames(content).items():
        assert as_table(frame).fingerprint() == expected.fingerprint(), library
    rows = [tuple(row) for row in zip(*content.values(), strict=True)]
    unnamed = {f"column {i}": cells for i, cells in enumerate(content.values())}
    assert as_table(rows).fingerprint() == as_table(unnamed).fingerprint()


@given(content=columns())
def test_files_give_the_same_table(tmp_path_factory, content):
    expected = as_table(content).fingerprint()
    folder = tmp_path_factory.mktemp("files")
    frame = pl.DataFrame(content, strict=False)
    frame.write_csv(folder / "polars.csv")
    frame.write_parquet(folder / "t.parquet")
    frame.to_pandas().to_csv(folder / "pandas.csv", index=False)
    for name in ("polars.csv", "t.parquet", "pandas.csv"):
        assert read_table(folder / name).fingerprint() == expected, name


@given(columns())
def test_cells_come_back(content):
    table = as_table(content)
    assert table.names == tuple(content)
    for name, cells in content.items():
        got = table.column(name)
        for cell, value in zip(cells, got.tolist(), strict=True):
            if cell is None:
                assert value is None or np.isnan(value)
            elif isinstance(cell, bool | str):
                assert value == str(cell)
            elif isinstance(cell, dt.datetime):
                whole = math.floor(value)
                passed = dt.timedelta(seconds=whole, microseconds=round((value - whole) * 1e6))
                assert dt.datetime(1970, 1, 1) + passed == cell
            elif isinstance(cell, dt.date):
                assert value == (cell - dt.date(1970, 1, 1)).days * 86400
            else:
                assert value == cell


@given(st.datetimes(dt.datetime(1698, 1, 1), dt.datetime(2241, 12, 31)), st.sampled_from([-1, 1]))
def test_times_are_told_apart_to_the_microsecond(moment, step):
    times = [moment, moment + step * dt.timedelta(microseconds=1)]
    assert as_table({"a": times}).column("a")[0] != as_table({"a": times}).column("a")[1]
    labels = as_table({"a": times}, categories=["a"]).column("a")
    assert [dt.datetime.fromisoformat(label) for label in labels] == times


@given(columns(), st.data())
def test_taking_rows_is_as_if_only_they_had_come(content, data):
    table = as_table(content)
    rows = data.draw(st.lists(st.integers(0, len(table) - 1), min_size=1, max_size=10))
    some = {name: [cells[row] for row in rows] for name, cells in content.items()}
    assert table.take(rows).fingerprint() == as_table(some).fingerprint()
    mask = np.isin(np.arange(len(table)), rows)
    assert table.take(mask).fingerprint() == table.take(sorted(set(rows))).fingerprint()
    order = data.draw(st.permutations(table.names))
    assert table.select(order).fingerprint() == as_table({name: content[name] for name in order}).fingerprint()


def test_a_fingerprint_sees_every_change():
    content = {"a": [1, 2, None], "b": ["x", "y", "x"]}
    changes = [
        content,
        {"a": [1, 2, 3], "b": ["x", "y", "x"]},
        {"a": [1, None, 2], "b": ["x", "y", "x"]},
        {"a": [1, 2, None], "b": ["x", "y", "z"]},
        {"a": [1, 2, None], "b": ["x", "y", None]},
        {"a": [1, 2, None], "b": ["x", "y", "x "]},
        {"a": [1, 2, None], "c": ["x", "y", "x"]},
        {"b": ["x", "y", "x"], "a": [1, 2, None]},
        {"a": ["1", "2", None], "b": ["x", "y", "x"]},
        {"a": [True, False, None], "b": ["x", "y", "x"]},
        {"a": [1, 2], "b": ["x", "y"]},
        {"a": [2, 1, None], "b": ["y", "x", "x"]},
        {"a": [np.datetime64("1970-01-01T00:00:01"), np.datetime64("1970-01-01T00:00:02"), None], "b": ["x", "y", "x"]},
    ]
    assert len({as_table(change).fingerprint() for change in changes}) == len(changes)
    assert as_table(content, "other").fingerprint() == as_table(content).fingerprint()


def test_a_fingerprint_stays_over_releases():
    # SHA-256 over the bytes that the docstring names, put together by hand.
    import hashlib
    import struct

    def texts(*words):
        coded = [word.encode() for word in words]
        return struct.pack(f"<{len(coded) + 1}q", len(coded), *map(len, coded)) + b"".join(coded)

    content = b"whosin table 1, 2 rows, 2 columns"
    content += texts("a", "number", "numbers") + struct.pack("<2d", 1.0, float("nan"))
    content += texts("é", "category", "text") + texts("x", "y") + struct.pack("<2i", 1, 0)
    assert as_table({"a": [1, None], "é": ["y", "x"]}).fingerprint() == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    ("cells", "kind", "expected"),
    [
        ([1, 2.5, Decimal("3.5"), np.int8(4), None], "number", [1.0, 2.5, 3.5, 4.0, np.nan]),
        (np.array([1, 2], dtype=">i2"), "number", [1.0, 2.0]),
        (np.array([1, 2], dtype=np.float16), "number", [1.0, 2.0]),
        (np.ma.array([1, 2], mask=[False, True]), "number", [1.0, np.nan]),
        ([True, None, np.bool_(False)], "category", ["True", None, "False"]),
        (np.array([True, False]), "category", ["True", "False"]),
        (["true", "FALSE"], "category", ["True", "False"]),
        (["true", "no"], "category", ["true", "no"]),
        ([True, 1], "category", ["True", "1"]),
        (["a", 1, 1.5, None, float("nan")], "category", ["a", "1", "1.5", None, None]),
        ([2**60, 2**60 + 1], "category", [str(2**60), str(2**60 + 1)]),
        (np.array([2**60, 2**60 + 1]), "category", [str(2**60), str(2**60 + 1)]),
        (np.array([2**64 - 1, 1], dtype=np.uint64), "category", [str(2**64 - 1), "1"]),
        ([10**400, 1], "category", [str(10**400), "1"]),
        (pd.Categorical([1, None, 2]), "category", ["1", None, "2"]),
        (pl.Series(["x", None], dtype=pl.Categorical), "category", ["x", None]),
        (pl.Series(["x", None], dtype=pl.Enum(["z", "x"])), "category", ["x", None]),
        (pd.array([1, None], dtype="Int64"), "number", [1.0, np.nan]),
        (pd.array([True, None], dtype="boolean"), "category", ["True", None]),
        (pd.period_range("2020", "2021", freq="Y"), "category", ["2020", "2021"]),
        ([None, float("nan"), pd.NaT, pd.NA], "category", [None] * 4),
        (np.array([np.nan, np.nan]), "category", [None] * 2),
        (np.array(["1970-01-02", "NaT"], dtype="datetime64[D]"), "date", [86400.0, np.nan]),
        (np.array([1500, 2], dtype="timedelta64[ms]"), "date", [1.5, 0.002]),
        (pl.Series([dt.time(1, 0, 0, 5)]), "date", [3600.000005]),
        ([dt.date(1970, 1, 2), dt.datetime(1970, 1, 2, 0, 1)], "date", [86400.0, 86460.0]),
        (pd.to_datetime(["1970-01-01 01:00"]).tz_localize("Europe/Paris"), "date", [0.0]),
        ([dt.datetime(1970, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1)))], "date", [0.0]),
        ([dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 1, tzinfo=dt.UTC)], "category", None),
        ([Decimal("NaN"), Decimal(1)], "number", [np.nan, 1.0]),
    ],
)
def test_what_cells_become(cells, kind, expected):
    table = as_table({"a": cells})
    assert table.kind("a") == kind
    if expected is not None:
        got = table.column("a")
        assert got.tolist() == expected if kind == "category" else np.array_equal(got, expected, equal_nan=True)


def test_arrays_rows_and_series():
    assert as_table(np.arange(3)).names == ("column 0",)
    assert as_table([1, 2, 3]).fingerprint() == as_table(np.arange(1, 4)).fingerprint()
    assert as_table([[1, "a"], [2, "b"]]).kind("column 1") == "category"
    assert as_table([np.array([1.0, 2.0]), np.array([3.0, 4.0])]).column("column 1").tolist() == [2.0, 4.0]
    assert as_table(pd.Series([1, 2], name="x")).names == ("x",)
    assert as_table(pl.Series([1, 2])).names == ("column 0",)
    assert as_table(pd.DataFrame(np.eye(2))).names == ("0", "1")
    assert as_table(np.array([["a", "b"]])).column("column 1").tolist() == ["b"]


def test_numbers_can_be_taken_as_categories():
    content = {"a": [1.0, 2.5, None, 10], "d": [dt.date(2020, 1, 1)] * 3 + [dt.datetime(2020, 1, 1, 12)]}
    table = as_table(content, categories=["a", "d"])
    assert table.column("a").tolist() == ["1", "2.5", None, "10"]
    assert table.column("d").tolist() == ["2020-01-01"] * 3 + ["2020-01-01T12:00:00.000000"]
    again = as_table(as_table(content), categories=["a", "d"])
    assert again.fingerprint() == table.fingerprint()
    assert as_table(table) is table
    assert as_table({"t": ["true", "TRUE"]}, categories=["t"]).column("t").tolist() == ["true", "TRUE"]


def test_what_is_held_cannot_be_changed():
    mine = np.arange(3.0)
    table = as_table(mine)
    mine[0] = 9.0
    assert table.column("column 0").tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(ValueError, match="read-only"):
        table.column("column 0")[0] = 1.0


def test_tables_show_themselves():
    table = as_table({"a": [1, 2], "b": ["x", "y"], "c": [3, 4]}, "train")
    assert str(table) == "train: 2 rows, columns: 2 of numbers, 1 of categories"
    assert len(table) == table.rows == 2


@pytest.mark.parametrize(
    ("data", "error", "says"),
    [
        ([], InputError, "train must have at least one row, got none"),
        ({}, InputError, "train must have at least one column"),
        ({"a": []}, InputError, "at least one row"),
        (np.zeros((0, 2)), InputError, "at least one row"),
        (np.zeros((2, 0)), InputError, "at least one column"),
        (np.zeros((2, 2, 2)), InputError, "3 dimensions"),
        (np.float64(1), InputError, "0 dimensions"),
        (np.array([1j]), InputTypeError, "complex128"),
        (np.array([b"x"]), InputTypeError, r"\|S1"),
        ("train.csv", InputTypeError, "read_table reads files"),
        (3, InputTypeError, "got int"),
        (None, InputTypeError, "got NoneType"),
        ([[1, 2], [3]], InputError, "rows of 2 cells, got 1 in row 1"),
        ([[1], 2], InputError, "got 1 in row 1|rows of 1 cells"),
        ([{"a": 1}], InputTypeError, "dictionaries"),
        ({"a": [1, 2], "b": [1]}, InputError, "columns of one length, got {'a': 2, 'b': 1}"),
        ({"a": 3}, InputTypeError, "train column 'a' must be a list or an array, got int"),
        ({"a": "xyz"}, InputTypeError, "got str"),
        ({"a": np.eye(2)}, InputError, "one value per row, got 2 dimensions"),
        ({1: [1], "1": [2]}, InputError, "'1' 2 times"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), InputError, "one column per name, got 'a' 2 times"),
        (
            {"a": [1.0, np.inf, -np.inf]},
            InputError,
            r"train column 'a' must hold finite numbers, got inf in row 1 \(2 such",
        ),
        ({"a": ["\ud800"]}, InputError, "Unicode"),
    ],
)
def test_bad_data_name_the_place(data, error, says):
    with pytest.raises(error, match=says):
        as_table(data, "train")


def test_bad_choices():
    table = as_table({"a": [1, 2]}, "train")
    with pytest.raises(InputError, match="train has no column 'b'; it has a"):
        table.column("b")
    with pytest.raises(InputTypeError, match="names must be a list"):
        table.select("a")
    with pytest.raises(InputTypeError, match="categories must be a list"):
        as_table(table, categories="a")
    with pytest.raises(InputError, match="at least one row"):
        table.take([])
    with pytest.raises(InputError, match="row numbers below 2, got 0 to 2"):
        table.take([0, 2])
    with pytest.raises(InputError, match="one truth value per row, 2, got 1"):
        table.take([True])
    for wrong in (0, [0.5], [[0]], ["a"]):
        with pytest.raises(InputTypeError, match="indices must be"):
            table.take(wrong)
    with pytest.raises(InputError, match="a column per name"):
        Table(("a", "b"), table.columns)


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_a_numpy_matrix_is_an_array():
    assert as_table(np.matrix([[1, 2], [3, 4]])).column("column 1").tolist() == [2, 4]

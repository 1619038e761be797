"""Whether tables go together, and the rows they share."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from table_strategies import columns, three_tables

from whosin.errors import InputError, InputTypeError
from whosin.tables import as_table, duplicate_rows, match_tables, read_table, row_groups, shared_rows

TRAIN = as_table({"a": [1, 2, 3], "b": ["x", "y", "x"]}, "train")


def test_columns_are_put_in_order_and_whole_numbers_go_with_fractions():
    other = as_table({"b": ["z", "x"], "a": [0.5, 1.5]}, "synthetic")
    first, second = match_tables(TRAIN, other)
    assert first.fingerprint() == TRAIN.fingerprint()
    assert second.names == ("a", "b")
    assert second.origin == "synthetic"
    assert second.fingerprint() == other.select(["a", "b"]).fingerprint()


def test_a_common_subset_can_be_chosen():
    other = as_table({"a": [1, 2], "c": [True, False]}, "synthetic")
    first, second = match_tables(TRAIN, other, columns=["a"])
    assert first.names == second.names == ("a",)
    with pytest.raises(
        InputError, match=r"synthetic lacks 'b'; synthetic has 'c', which train lacks; ignore= leaves.*columns="
    ):
        match_tables(TRAIN, other)
    with pytest.raises(InputError, match="synthetic has no column 'b'"):
        match_tables(TRAIN, other, columns=["a", "b"])
    with pytest.raises(InputError, match="'a' 2 times"):
        match_tables(TRAIN, other, columns=["a", "a"])
    with pytest.raises(InputError, match="at least one column"):
        match_tables(TRAIN, other, columns=[])


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["column 0", "column 1"], "released has no line of names: write that of train above its rows"),
        (["AGE", "Home town"], "write names in one way, capitals, blanks and signs too"),
        (["age", "city"], "ignore= leaves columns out, columns= names those to use"),
    ],
)
def test_names_that_differ_come_with_a_way_out(names, says):
    train = as_table({"age": [1, 2], "home_town": ["x", "y"]}, "train")
    with pytest.raises(InputError, match=says):
        match_tables(train, as_table({names[0]: [1, 2], names[1]: ["x", "y"]}, "released"))


def test_cells_that_disagree_are_named_by_their_line(tmp_path):
    (tmp_path / "train.csv").write_text("a,b\n1,x\n\n2,y\n")
    (tmp_path / "s.csv").write_text("a,b\n1,x\n\nunknown,y\n")
    with pytest.raises(
        InputError, match=r"numbers in train.csv \(1 on line 2\) and text in s.csv \('unknown' on line 4"
    ):
        match_tables(read_table(tmp_path / "train.csv"), read_table(tmp_path / "s.csv"))


def test_many_missing_columns_are_listed_in_short():
    wide = as_table(np.zeros((2, 9)), "train")
    with pytest.raises(InputError, match="'column 5' and 3 more"):
        match_tables(wide, as_table(np.zeros((2, 1)), "synthetic"))


@pytest.mark.parametrize(
    ("one", "other", "says"),
    [
        (
            [1, 2],
            ["1", "x"],
            r"column 'a' must hold one kind of cells, got numbers in train \(1 in row 0\) and text in s \('x' in row 1"
            r"\); write it in one way in all tables, count 'x' as missing \(missing= names each\), take it as labels",
        ),
        ([1, 2], ["1", "2"], r"in one way in all tables, take it as labels \(categories= names it\), or leave it out"),
        ([1, 2], ["01", "2"], "in one way in all tables, with all zeros in front, take it as labels"),
        (["u", "v"], [0.5, None], r"text in train \('u' in row 0\) and numbers in s \(0.5 in row 0\); write it in one"),
        ([True, False], ["true", "no"], r"truth values in train \('False' in row 1\) and text in s \('no' in row 1"),
        ([True, False], [0, 1], r"truth values in train \('False' in row 1\) .* in all tables, or leave it out"),
        (np.array(["2020-01-31", "NaT"], "M8[D]"), [1, 2], r"dates in train \(2020-01-31 in row 0\) and numbers in s"),
        (np.array(["2020-01-31", "NaT"], "M8[D]"), ["2020-01-31", "x"], r"dates in train .* and text in s"),
        (np.array([1, 2], "m8[s]"), np.array([1, 2], "M8[s]"), "durations in train .* and dates in s"),
    ],
)
def test_kinds_that_disagree_are_named_with_an_example(one, other, says):
    with pytest.raises(InputError, match=says):
        match_tables(as_table({"a": one}, "train"), as_table({"a": other}, "s"))
    as_text = [as_table({"a": cells}, categories=["a"]) for cells in (one, other)]
    assert [table.kind("a") for table in match_tables(*as_text)] == ["category", "category"]


@pytest.mark.parametrize("cells", [[1.0, 2.0], ["x", "y"], [True, False], np.array([1, 2], "M8[D]")])
def test_a_column_without_cells_goes_with_any_kind(cells):
    empty, full = as_table({"a": [None, None]}, "train"), as_table({"a": cells}, "synthetic")
    for tables in ((empty, full), (full, empty)):
        matched = match_tables(*tables)
        assert matched[0].kind("a") == matched[1].kind("a") == full.kind("a")
    assert match_tables(empty, empty)[0].kind("a") == "category"
    assert shared_rows(empty, full) == 0
    assert shared_rows(empty, empty) == 2


def test_rows_are_counted():
    one = as_table({"a": [1], "b": ["x"]}, "holdout")
    with pytest.raises(InputError, match="holdout must have at least 2 rows, got 1"):
        match_tables(TRAIN, one)
    assert match_tables(TRAIN, one, at_least=1)[1].rows == 1
    with pytest.raises(InputError, match="at_least must be a whole number of at least 1"):
        match_tables(TRAIN, at_least=0)
    with pytest.raises(InputTypeError, match="at least one table"):
        match_tables()
    with pytest.raises(InputTypeError, match="as_table makes them"):
        match_tables(TRAIN, np.eye(2))


def rows_of(content):
    return list(zip(*content.values(), strict=True))


@given(three_tables())
def test_shared_and_duplicate_rows_by_definition(contents):
    tables = [as_table(content) for content in contents]
    for content, table in zip(contents, tables, strict=True):
        rows = rows_of(content)
        assert duplicate_rows(table) == len(rows) - len(set(rows))
        for other, other_table in zip(contents, tables, strict=True):
            assert shared_rows(table, other_table) == sum(row in rows_of(other) for row in rows)


@given(three_tables(kinds=("few", "few_words")))
def test_rows_have_one_group_exactly_if_they_are_equal(contents):
    groups = np.concatenate(row_groups(*(as_table(content) for content in contents)))
    rows = [row for content in contents for row in rows_of(content)]
    equal = [[a == b for b in rows] for a in rows]
    assert (groups[:, None] == groups[None, :]).tolist() == equal


@given(columns(), st.randoms(use_true_random=False))
def test_the_order_of_columns_does_not_matter(content, random):
    names = list(content)
    random.shuffle(names)
    table, shuffled = as_table(content), as_table({name: content[name] for name in names})
    assert shared_rows(table, shuffled) == len(table)


def test_rows_of_many_wide_columns_do_not_overflow():
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((3000, 12))
    twin = matrix.copy()
    twin[::2, 11] += 1.0
    assert shared_rows(as_table(twin), as_table(matrix)) == 1500
    assert duplicate_rows(as_table(np.vstack([matrix, twin]))) == 1500


def test_rows_that_differ_in_one_digit_of_a_long_number_differ():
    # Seventy columns of two values are seventy binary digits: the first ones would fall out of 64 bits.
    rows = np.tile(np.arange(70) % 2, (2, 1)).astype(float)
    spread = np.vstack([rows, 1.0 - rows])
    spread[1, 0] = 1.0 - spread[1, 0]
    assert duplicate_rows(as_table(spread)) == 1
    assert shared_rows(as_table(spread[:1]), as_table(spread[1:])) == 0


def test_dates_with_and_without_a_time_zone_do_not_go_together():
    days = pd.Series(pd.to_datetime(["2020-01-01", "2020-01-02"]))
    zoned, plain = as_table({"a": days.dt.tz_localize("Europe/Paris")}), as_table({"a": days})
    with pytest.raises(InputError, match=r"dates with a time zone in data .* and dates in data"):
        match_tables(zoned, plain)
    assert shared_rows(zoned, as_table({"a": days.dt.tz_localize("Europe/Paris").dt.tz_convert("UTC")})) == 2

"""Encoding: exact cells, scaled numbers, and nothing that tells the tables apart."""

from fractions import Fraction

import numpy as np
import pytest
from encoded_arrays import arrays_of
from hypothesis import given
from hypothesis import strategies as st
from table_strategies import three_tables

from whosin.errors import InputError, InputTypeError
from whosin.tables import TableEncoder, as_table
from whosin.tables.scaling import smoothed_shares


def encode(*contents, **options):
    tables = [as_table(content) for content in contents]
    encoder = TableEncoder.fit(*tables, **options)
    return encoder, [arrays_of(encoder, table) for table in tables]


def pooled(contents, name):
    return [cell for content in contents for cell in content[name]]


@given(three_tables())
def test_cells_are_equal_exactly_where_values_are(contents):
    _, encoded = encode(*contents)
    cells = np.vstack([part.cells for part in encoded])
    for i, name in enumerate(contents[0]):
        values = pooled(contents, name)
        equal = [[a == b for b in values] for a in values]
        assert (cells[:, i][:, None] == cells[:, i][None, :]).tolist() == equal


@given(three_tables())
def test_codes_rise_with_the_values_and_frequencies_are_shares(contents):
    encoder, encoded = encode(*contents)
    for i, name in enumerate(contents[0]):
        values = pooled(contents, name)
        known = [value for value in values if value is not None]
        levels = sorted({str(v) if isinstance(v, bool) else v for v in known})
        expected = [len(levels) if v is None else levels.index(str(v) if isinstance(v, bool) else v) for v in values]
        codes = np.concatenate([part.cells[:, i] for part in encoded])
        assert codes.tolist() == expected
        shares = [Fraction(expected.count(code), len(expected)) for code in range(max(expected) + 1)]
        np.testing.assert_allclose(encoder.frequencies[i], [float(share) for share in shares], rtol=1e-15)
        assert (-np.log(encoder.frequencies[i]) >= 0.0).all()


@given(three_tables(), st.permutations(range(3)))
def test_exchanging_tables_changes_nothing(contents, order):
    encoder, encoded = encode(*contents)
    other, again = encode(*(contents[i] for i in order))
    assert other.notes == encoder.notes
    for mine, theirs in zip(encoder.frequencies, other.frequencies, strict=True):
        assert mine.tolist() == theirs.tolist()
    for place, i in enumerate(order):
        for array in ("cells", "numbers", "number_missing"):
            np.testing.assert_array_equal(getattr(again[place], array), getattr(encoded[i], array))


@given(three_tables(), st.data())
def test_permuted_rows_and_columns_give_permuted_arrays(contents, data):
    encoder, encoded = encode(*contents)
    rows = [data.draw(st.permutations(range(len(part.cells)))) for part in encoded]
    names = data.draw(st.permutations(list(contents[0])))
    shuffled = [
        {n: [content[n][i] for i in order] for n in names} for content, order in zip(contents, rows, strict=True)
    ]
    other, again = encode(*shuffled)
    assert sorted(other.notes) == sorted(encoder.notes)
    for part, moved, order in zip(encoded, again, rows, strict=True):
        places = [encoder.names.index(name) for name in other.names]
        assert (part.cells[order][:, places] == moved.cells).all()
        places = [part.number_names.index(name) for name in moved.number_names]
        assert (part.numbers[order][:, places] == moved.numbers).all()


@given(three_tables())
def test_codes_and_numbers(contents):
    encoder, encoded = encode(*contents)
    for content, part in zip(contents, encoded, strict=True):
        assert part.cells.shape == (len(next(iter(content.values()))), len(content))
        assert part.cells.dtype == np.int32
        assert part.cells.flags["C_CONTIGUOUS"]
        assert np.isfinite(part.numbers).all()
        for j, name in enumerate(part.number_names):
            assert part.number_missing[:, j].tolist() == [cell is None for cell in content[name]]
    assert encoder.rows == sum(len(part.cells) for part in encoded)


def test_robust_scaling_by_hand():
    encoder, (train, synthetic) = encode({"a": [1.0, 2.0, 3.0, 4.0]}, {"a": [5.0, 6.0, 7.0, None]})
    # Of 7 numbers the quartiles are the 2nd, 4th and 6th: 2, 4, 6.
    assert train.numbers.ravel().tolist() == [-0.75, -0.5, -0.25, 0.0]
    assert synthetic.numbers.ravel().tolist() == [0.25, 0.5, 0.75, 0.0]
    assert synthetic.number_missing.ravel().tolist() == [False, False, False, True]
    assert encoder.notes == ()


def test_a_column_of_mostly_one_value_is_scaled_by_its_standard_deviation():
    _, (part,) = encode({"a": [0.0] * 9 + [10.0]})
    assert part.numbers.ravel().tolist() == pytest.approx([0.0] * 9 + [10.0 / 3.0], rel=1e-6)


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=30, unique=True), st.floats(0.5, 100), st.floats(-50, 50))
def test_robust_scaling_does_not_see_units(values, factor, shift):
    moved = [value * factor + shift for value in values]
    if len(set(moved)) < len(values):
        return
    _, (one,) = encode({"a": values})
    _, (other,) = encode({"a": moved})
    spread = np.ptp(values)
    gap = min(abs(a - b) for i, a in enumerate(values) for b in values[:i])
    if gap > 1e-6 * spread:
        np.testing.assert_allclose(one.numbers, other.numbers, rtol=1e-3, atol=1e-3)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=12))
def test_any_finite_numbers_can_be_scaled_and_keep_their_order(values):
    encoder, (part,) = encode({"a": values, "b": values})
    if len(set(values)) == 1:
        assert part.number_names == ()
        assert all("is constant" in note for note in encoder.notes)
        return
    numbers = part.numbers[:, 0]
    assert np.isfinite(numbers).all()
    assert (np.abs(numbers) <= 1e6).all()
    order = np.argsort(values, kind="stable")
    assert (np.diff(numbers[order]) >= 0.0).all()


@pytest.mark.parametrize("exponent", [-1022, -600, 600, 1022])
@pytest.mark.parametrize("values", [[-1.5, 0.0, 0.25, 1.75], [1.0, 1.0, 1.0, 1.0, -1.5]])
def test_robust_scaling_does_not_overflow(values, exponent):
    _, (plain,) = encode({"a": values})
    _, (huge,) = encode({"a": np.ldexp(values, exponent)})
    np.testing.assert_array_equal(huge.numbers, plain.numbers)


def test_constant_columns_are_left_out_unless_cells_are_missing():
    encoder, (part, _) = encode({"a": [5, 5], "b": [5, None], "c": ["x", "x"]}, {"a": [5.0], "b": [5.0], "c": ["x"]})
    assert part.number_names == ("b",)
    assert part.number_missing.tolist() == [[False], [True]]
    assert encoder.notes == ("column 'a' is constant and left out of the numbers",)
    assert part.cells.tolist() == [[0, 0, 0], [0, 1, 0]]


def test_notes_name_what_a_reader_should_know():
    rows = 40
    content = {
        "id": [f"person {i}" for i in range(rows)],
        "town": ["A", "B"] * (rows // 2),
        "income": [*range(rows - 1), 1e9],
        "empty": [None] * rows,
    }
    encoder, _ = encode(content)
    assert [note.split(" ", 3)[1] for note in encoder.notes] == ["'id'", "'income'", "'empty'"]
    assert "40 different texts in 40 rows" in encoder.notes[0]
    assert "take ranks or logarithms" in encoder.notes[1]
    assert "no values at all" in encoder.notes[2]


def test_exactly_half_different_texts_are_not_flagged():
    assert encode({"a": ["x", "y", "z"] * 2})[0].notes == ()
    assert len(encode({"a": ["x", "y", "z", "w", "x"]})[0].notes) == 1


def test_frequencies_can_come_from_some_of_the_tables():
    train, synthetic = as_table({"a": ["x", "x", "y"]}), as_table({"a": ["x", None, "z"]})
    encoder = TableEncoder.fit(train, synthetic, learn_from=[train])
    # Three rows with two values, and half a row for each of them and for all others together.
    assert encoder.frequencies[0].tolist() == [2.5 / 4.5, 1.5 / 4.5, 0.5 / 4.5, 0.5 / 4.5]
    both = TableEncoder.fit(train, synthetic, learn_from=[train, synthetic])
    assert both.frequencies[0].tolist() == [3.5 / 8.5, 1.5 / 8.5, 1.5 / 8.5, 1.5 / 8.5]
    assert TableEncoder.fit(train, synthetic).frequencies[0].tolist() == [3 / 6, 1 / 6, 1 / 6, 1 / 6]
    for others in ([synthetic], [], [train, synthetic]):
        with pytest.raises(InputError, match="learn_from must be some of the tables themselves, got none or another"):
            TableEncoder.fit(train, learn_from=others)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=30).filter(any))
def test_smoothed_shares_sum_to_one_and_are_smallest_where_nothing_was_seen(counts):
    shares = smoothed_shares(np.array(counts))
    seen = np.array(counts) > 0
    other = smoothed_shares(np.array([*counts, 0]))[-1]
    assert shares[seen].sum() + other == pytest.approx(1.0, rel=1e-12)
    assert (shares[~seen] == other).all()
    assert 0.0 < other < shares[seen].min()
    assert shares.max() < 1.0


@given(three_tables())
def test_other_tables_do_not_change_what_was_learnt(contents):
    """Scales and frequencies of a row, of the table learnt from or of another, whatever else is encoded."""
    first, second, learnt = (as_table(content) for content in contents)

    def about(table, *others):
        encoder = TableEncoder.fit(learnt, table, *others, learn_from=[learnt])
        part = arrays_of(encoder, table)
        shares = [share[codes].tolist() for share, codes in zip(encoder.frequencies, part.cells.T, strict=True)]
        return part.number_names, shares, part.numbers.tolist(), part.number_missing.tolist()

    for table in (first, second, learnt):
        assert about(table) == about(table, first, second)


def test_scales_can_come_from_some_of_the_tables():
    records, release = {"a": [100.0, 4.0, None]}, {"a": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]}
    tables = [as_table(content) for content in (records, release)]
    robust = arrays_of(TableEncoder.fit(*tables, learn_from=tables[1:]), tables[0])
    assert robust.numbers.ravel().tolist() == [24.0, 0.0, 0.0]


@pytest.mark.parametrize("release", [[1e-300, 2e-300, 3e-300], [0.0, 0.0, 5e-324], [-1.0, 1.0, 0.0]])
def test_numbers_far_outside_of_what_was_learnt_are_cut(release):
    tables = as_table({"a": [1e308, -1e308, 0.0]}), as_table({"a": release})
    numbers = arrays_of(TableEncoder.fit(*tables, learn_from=tables[1:]), tables[0]).numbers.ravel()
    assert numbers[:2].tolist() == [1e6, -1e6]
    assert abs(numbers[2]) <= 2.0


def test_a_column_that_takes_one_value_where_scales_are_learnt():
    records = as_table({"a": [7.0, 8.0], "b": [8.0, 1.0], "c": [None, 1.0]})
    release = as_table({"a": [7.0, 7.0], "b": [7.0, None], "c": [None, None]})
    encoder = TableEncoder.fit(records, release, learn_from=[release])
    part = arrays_of(encoder, records)
    assert part.number_names == ("b",)
    assert part.numbers.tolist() == [[1e6], [-1e6]]
    assert part.cells[:, 0].tolist() == [0, 1]
    assert [note.split(":")[0] for note in encoder.notes] == [
        "column 'a' takes one value where scales are learnt",
        "column 'b' has values up to 1e+06 quartile distances from its median",
        "column 'c' takes one value where scales are learnt",
    ]


def test_only_what_was_seen_can_be_encoded():
    train = as_table({"a": [1, 2, 4], "b": ["x", "y", "x"]}, "train")
    encoder = TableEncoder.fit(train)
    assert encoder.transform(train.take([2, 0]).select(["b", "a"])).tolist() == [[2, 0], [0, 0]]
    for content, says in (
        ({"a": [3], "b": ["x"]}, "new column 'a' must hold values that the pooled rows have, got 3 in row 0"),
        ({"a": [5], "b": ["x"]}, "got 5 in row 0"),
        ({"a": [0], "b": ["x"]}, "got 0 in row 0"),
        ({"a": [1], "b": ["z"]}, "got 'z' in row 0"),
        ({"a": [1], "b": [None]}, "got a missing value in row 0"),
        ({"a": [None], "b": ["x"]}, "got a missing value in row 0"),
        ({"a": [1, None], "b": ["x", "y"]}, "got a missing value in row 1"),
        ({"a": ["1"], "b": ["x"]}, "must be numbers as in the pooled rows, got text"),
        ({"b": ["x"]}, "new has no column 'a'"),
    ):
        with pytest.raises(InputError, match=says):
            encoder.transform(as_table(content, "new"))


def test_missing_cells_alone_can_be_taken_and_encoded():
    table = as_table({"a": [1.0, None, 2.0], "b": ["x", None, "y"]})
    part = arrays_of(TableEncoder.fit(table), table.take([1]))
    assert part.cells.tolist() == [[2, 2]]
    assert part.number_missing.tolist() == [[True]]


def test_one_row_and_bad_options():
    encoder, (part,) = encode({"a": [1], "b": ["x"]})
    assert part.cells.tolist() == [[0, 0]]
    assert "fitted on 1 pooled rows" in str(encoder)
    with pytest.raises(InputTypeError, match="at least one table"):
        TableEncoder.fit()

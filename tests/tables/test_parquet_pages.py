"""Parquet files that polars does not survive are refused before it reads them; all others are read."""

import contextlib
import io
import struct
import subprocess
import sys

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from whosin.errors import InputError
from whosin.tables import read_table
from whosin.tables.parquet_pages import check_parquet
from whosin.tables.stream import as_stream

ROWS = 300
FRAME = pl.DataFrame(
    {
        "number": np.random.default_rng(0).normal(size=ROWS),
        "count": np.arange(ROWS) % 5,
        "word": ["xx", "yyy", None] * 100,
        "gaps": [None if i % 7 == 0 else i for i in range(ROWS)],
        "truth": np.arange(ROWS) % 2 == 0,
        "text": [f"{'long ' * 30}{i}" for i in range(ROWS)],
    }
)
TABLE = FRAME.to_arrow()
DELTA = {
    "number": "BYTE_STREAM_SPLIT",
    "count": "DELTA_BINARY_PACKED",
    "gaps": "DELTA_BINARY_PACKED",
    "word": "DELTA_BYTE_ARRAY",
    "text": "DELTA_LENGTH_BYTE_ARRAY",
}


def by_polars(path, **options):
    FRAME.write_parquet(path, **options)


def by_arrow(path, **options):
    pq.write_table(TABLE, path, **options)


WRITERS = {
    **{
        f"polars {c}": (by_polars, {"compression": c})
        for c in ("uncompressed", "snappy", "gzip", "lz4", "zstd", "brotli")
    },
    "polars pages": (by_polars, {"data_page_size": 64, "row_group_size": 64}),
    **{f"arrow {c}": (by_arrow, {"compression": c}) for c in ("none", "snappy", "gzip", "lz4", "zstd", "brotli")},
    "arrow plain": (by_arrow, {"use_dictionary": False, "write_statistics": False}),
    "arrow v2": (by_arrow, {"data_page_version": "2.0"}),
    "arrow v2 plain": (by_arrow, {"data_page_version": "2.0", "use_dictionary": False, "compression": "none"}),
    "arrow delta": (by_arrow, {"use_dictionary": False, "column_encoding": DELTA}),
    "arrow v2 delta": (by_arrow, {"use_dictionary": False, "column_encoding": DELTA, "data_page_version": "2.0"}),
    "arrow pages": (by_arrow, {"data_page_size": 64, "write_batch_size": 16, "row_group_size": 130}),
    "arrow checksums": (by_arrow, {"write_page_checksum": True, "write_page_index": True}),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_whatever_polars_and_pyarrow_write_is_read(writer, tmp_path):
    write, options = WRITERS[writer]
    write(tmp_path / "t.parquet", **options)
    expected = pl.read_parquet(tmp_path / "t.parquet")
    assert expected.equals(FRAME)
    for table in (read_table(tmp_path / "t.parquet"), as_stream(tmp_path / "t.parquet", block_rows=77).table()):
        assert len(table) == ROWS
        assert np.array_equal(table.column("number"), FRAME["number"].to_numpy())


def test_other_shapes_of_files_are_read(tmp_path):
    check = {
        "one row": pl.DataFrame({"a": [1.0]}),
        "no rows": pl.DataFrame({"a": []}, schema={"a": pl.Int64}),
        "no cells": pl.DataFrame({"a": pl.Series([None] * 9, dtype=pl.Int64)}),
        "lists": pl.DataFrame({"a": [[1], [], [2, 3]], "b": [{"c": 1}] * 3}),
        "long statistics": pl.DataFrame({"a": ["x" * 5000, "y" * 5000]}),
    }
    for name, frame in check.items():
        for write in (frame.write_parquet, lambda path, frame=frame: pq.write_table(frame.to_arrow(), path)):
            write(tmp_path / "t.parquet")
            with open(tmp_path / "t.parquet", "rb") as file:
                check_parquet(file, name)


def damaged(path, column=0, group=0):
    """Turn the number of values in the header of a column's first data page into a negative one, in place."""
    place = pq.read_metadata(path).row_group(group).column(column).data_page_offset
    values = 2 * pq.read_metadata(path).row_group(group).num_rows
    stated = bytes([values & 127 | 128, values >> 7])
    content = bytearray(path.read_bytes())
    start = content.index(stated, place, place + 30)
    content[start] |= 1
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("writer", [name for name in WRITERS if "pages" not in name])
@pytest.mark.parametrize("column", range(6))
def test_a_page_header_that_polars_does_not_survive_is_refused(writer, column, tmp_path):
    write, options = WRITERS[writer]
    write(tmp_path / "t.parquet", **options)
    damaged(tmp_path / "t.parquet", column)
    with (
        open(tmp_path / "t.parquet", "rb") as file,
        pytest.raises(
            InputError, match=r"^t must be Parquet.*number of values of a page is stated as -301, and can be"
        ),
    ):
        check_parquet(file, "t")


ASK = """
import sys
from whosin.errors import InputError
from whosin.tables import read_table
from whosin.tables.reading import read_numeric
from whosin.tables.stream import as_stream
for read in (read_table, read_numeric, lambda path: as_stream(path).table()):
    try:
        read(sys.argv[1])
    except InputError as error:
        print(error)
"""


def test_the_process_of_the_caller_goes_on(tmp_path):
    """In a process of its own, since the one that polars aborts would be that of the tests."""
    by_polars(tmp_path / "t.parquet", compression="zstd", row_group_size=150)
    damaged(tmp_path / "t.parquet", group=1)
    done = subprocess.run(
        [sys.executable, "-P", "-c", ASK, tmp_path / "t.parquet"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("t.parquet must be Parquet, got something else or part of it: the number of values") == 3


def varint(number):
    """A whole number as Thrift's compact protocol writes it."""
    number = (number << 1) ^ (number >> 63)
    digits = []
    while number > 127:
        digits.append(number & 127 | 128)
        number >>= 7
    return bytes([*digits, number])


def page(kind=0, size=8, stored=8, values=1, more=b""):
    """A header and the bytes of a data page, or of a dictionary (kind 2)."""
    own = b"\x2c" if kind == 0 else b"\x4c"
    head = b"\x15" + varint(kind) + b"\x15" + varint(size) + b"\x15" + varint(stored)
    return head + own + b"\x15" + varint(values) + b"\x15\x00\x00" + more + b"\x00" + bytes(8)


def footer(values=1, size=8, stored=None, place=4, length=0):
    column = b"\x56" + varint(values) + b"\x16" + varint(size) + b"\x16" + varint(length if stored is None else stored)
    column += b"\x26" + varint(place) + b"\x00"
    return b"\x49\x1c" + b"\x19\x1c" + b"\x3c" + column + b"\x00" + b"\x00" + b"\x00"


def made(*pages, tail=None, **stated):
    body = b"PAR1" + b"".join(pages)
    end = footer(length=len(body) - 4, **stated) if tail is None else tail
    return io.BytesIO(body + end + struct.pack("<I", len(end)) + b"PAR1")


def test_the_files_of_the_next_test_are_right_but_for_one_number():
    check_parquet(made(page()), "t")
    check_parquet(made(page(kind=2), page(values=2), page(values=3), values=5, size=16), "t")


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (made(page(values=-1)), "number of values of a page is stated as -1,"),
        (made(page(values=2)), "number of values of a page is stated as 2, and can be at most 1$"),
        (made(page(values=2**31), values=2**40), "number of values of a page is stated as 2147483648,"),
        (made(page(size=-1)), "size of a page is stated as -1,"),
        (made(page(size=10**9)), "size of a page is stated as 1000000000, and can be at most 8$"),
        (made(page(stored=-1)), "size of a page is stated as -1,"),
        (made(page(stored=9)), "size of a page is stated as 9, and can be at most 8$"),
        (made(page(kind=2, values=9), page()), "number of entries of a dictionary is stated as 9,"),
        (made(page(kind=2, values=-9), page()), "number of values of a page is stated as -9,"),
        (made(page(), values=2), "fewer values than the footer states"),
        (made(page(), values=-2), "number of values of a column is stated as -2,"),
        (made(page(), place=10**12), "place of a column is stated as 1000000000000,"),
        (made(page(), stored=10**12), "size of a column is stated as 1000000000000,"),
        (made(page(kind=5)), "no page of kind 5$"),
        (made(page(more=b"\x0d")), "no field of type 13$"),
        (made(page(more=b"\x06\x02\x00")), "a field stands twice"),
        (made(b"\x15" + b"\xff" * 11), "a number does not end$"),
        (made(b"\x1c" * 50), "nested too deeply$"),
        (made(tail=b"\x49"), "is no such thing$"),
        (made(tail=b"\x45\x02\x00"), "is no such thing$"),
        (io.BytesIO(b"PAR1\xff\xff\x00\x00PAR1"), "footer is larger than the file$"),
        (io.BytesIO(b"PAR1"), "does not end as a Parquet file does$"),
        (io.BytesIO(b"a,b\n1,2\n3,4\n"), "does not end as a Parquet file does$"),
    ],
)
def test_what_contradicts_the_footer_is_refused_by_name(file, words):
    with pytest.raises(InputError, match=r"^t must be Parquet, got something else or part of it: .*" + words):
        check_parquet(file, "t")


WHOLE = io.BytesIO()
by_arrow(WHOLE, data_page_version="2.0", row_group_size=100)


@given(st.integers(0, len(WHOLE.getvalue()) - 1), st.binary(min_size=1, max_size=12))
@example(len(WHOLE.getvalue()) - 8, b"\xff\xff\xff\xff")
def test_no_damage_leads_to_another_error(place, change):
    content = bytearray(WHOLE.getvalue())
    content[place : place + len(change)] = change
    with contextlib.suppress(InputError):
        check_parquet(io.BytesIO(bytes(content)), "t")


class Counting(io.BytesIO):
    """Counts the bytes that were read."""

    count = 0

    def read(self, size=-1):
        found = super().read(size)
        self.count += len(found)
        return found


def test_the_values_are_not_read():
    file = Counting()
    rows = np.random.default_rng(0).normal(size=(200_000, 4))
    pq.write_table(pa.table({str(i): rows[:, i] for i in range(4)}), file)
    file.count = 0
    check_parquet(file, "t")
    assert 0 < file.count < 0.02 * len(file.getvalue())

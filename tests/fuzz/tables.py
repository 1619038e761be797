"""Tables: files of every format, frames and arrays of anything."""

import contextlib
import gzip
import io

import numpy as np

from .support import Bytes, file


def _table(ending):
    def target(data):
        from whosin.tables import read_table

        table = read_table(file(f"input{ending}", data))
        assert len(table) >= 1
        str(table)

    return target


def _tables(data):
    """CSV twice: matched, counted and encoded as an audit does."""
    from whosin.tables import TableEncoder, duplicate_rows, match_tables, read_table, shared_rows

    first, _, second = data.partition(b"\n\n\n")
    tables = [read_table(file(f"input-{i}.csv", part)) for i, part in enumerate((first, second or first))]
    matched = match_tables(*tables)
    duplicate_rows(matched[0])
    shared_rows(*matched[:2])
    TableEncoder.fit(*matched).transform(matched[0])


def _numeric(data):
    from whosin.tables import read_numeric

    matrix, names, *_ = read_numeric(file("input.csv", data))
    assert np.isfinite(matrix).all()
    assert matrix.shape[1] == len(names)


def _stream(data):
    from whosin.tables import as_stream

    stream = as_stream(file("input.parquet", data), block_rows=7)
    if stream.rows < 10_000:
        rows = sum(block.height for _, block in stream.blocks(stream.names))
        assert rows == stream.rows


def _objects(data):
    """Anything that a caller may hold for a table."""
    from whosin.tables import TableEncoder, as_table, match_tables, numeric_records

    bits = Bytes(data)
    given = _given(bits)
    if bits.whole(4) == 0:
        assert np.isfinite(numeric_records(given)).all()
        return
    table = as_table(given)
    assert len(table.fingerprint()) == 64
    str(table)
    TableEncoder.fit(*match_tables(table, table)).transform(table)


def _given(bits):
    import pandas as pd

    rows, kind = 1 + bits.whole(5), bits.whole(6)
    if kind == 0:
        return bits.numbers(rows, 1 + bits.whole(3))
    cells = {
        bits.label() if kind > 2 else bits.name(): [_cell(bits) for _ in range(rows)] for _ in range(1 + bits.whole(3))
    }
    if kind == 1:
        return _frame(cells)
    if kind == 2:
        halves = any(cell == "\ud800" for column in cells.values() for cell in column if isinstance(cell, str))
        return pd.DataFrame(cells, dtype=object if halves else bits.choice((None, object)))
    if kind == 3:
        return np.array(list(cells.values()), dtype=object)
    if kind == 4:
        return list(cells.values())
    return bits.choice((cells, None, 3, "text", b"bytes", [], [[]], {}, object, np.zeros(0), np.zeros((2, 2, 2))))


def _frame(cells):
    """A frame with those of the columns that polars takes."""
    import polars as pl

    kept = {}
    for name, column in cells.items():
        with contextlib.suppress(UnicodeError, TypeError, pl.exceptions.PolarsError):
            kept[name] = pl.Series(name, column, strict=False)
    return pl.DataFrame(kept)


def _cell(bits):
    import datetime

    odd = (None, True, 2**70, "", "NA", "x", "\ud800", b"x", (), np.float32(1.5), np.datetime64("NaT"))
    odd += (datetime.date(2020, 1, 1), datetime.timedelta(1), 1j, [1], object)
    return bits.number() if bits.whole(2) else odd[bits.whole(len(odd))]


TARGETS = {
    "csv": _table(".csv"),
    "tsv-gz": _table(".tsv.gz"),
    "parquet": _table(".parquet"),
    "arrow": _table(".arrow"),
    "npy": _table(".npy"),
    "npz": _table(".npz"),
    "tables": _tables,
    "numeric": _numeric,
    "stream": _stream,
    "objects": _objects,
}


def seeds(name):
    """Some inputs that are right, from which the search starts; None where any bytes are."""
    if name in ("csv", "tables", "numeric"):
        return [b"a,b\n1,2\n3,4\n", b"a;b\n1;2\n", b'"a ""q""",b\n"1\n2",NA\n', b"1,2\n3,4\n\n\na,b\n1,x\n"]
    if name == "tsv-gz":
        return [gzip.compress(b"a\tb\n1\t2\n")]
    stream = io.BytesIO()
    if name in ("parquet", "arrow", "stream"):
        import polars as pl

        made = pl.DataFrame({"a": [1.5, 2.0, -3.0], "b": ["x", "y", None]})
        made.write_ipc(stream) if name == "arrow" else made.write_parquet(stream)
        return [stream.getvalue()]
    if name in ("npy", "npz"):
        (np.save if name == "npy" else np.savez)(stream, np.arange(6.0).reshape(3, 2))
        return [stream.getvalue()]
    return None

"""Tables read in blocks: the same encoding and fingerprint as in memory, and errors that name the row."""

import datetime as dt
import gc
import gzip
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from encoded_arrays import arrays_of
from hypothesis import given, settings
from hypothesis import strategies as st
from table_strategies import three_tables

from whosin.errors import InputError, InputTypeError
from whosin.tables import TableEncoder, as_stream, as_table, match_tables, read_table, text_blocks
from whosin.tables.stream import is_streamable


def pieces(columns, width):
    """A dictionary of columns as frames of some rows."""
    frame = pl.DataFrame({name: as_series(cells) for name, cells in columns.items()})
    return [frame[start : start + width] for start in range(0, frame.height, width)]


def as_series(cells):
    return pl.Series([float(c) if type(c) in (int, float) else c for c in cells], strict=False)


def learnt(records, stream, *others, **options):
    """What is learnt from a stream, and from further tables, for records."""
    return TableEncoder.fit(*records, stream, *others, learn_from=[stream, *others], **options)


def streamed(encoder, frame):
    """Rows of the stream, encoded."""
    return encoder.transform_streamed(encoder.tables[2].table(frame, 0))


def encode(train, holdout, synthetic, block, reference=None):
    """Check a streamed encoding against the one in memory."""
    tables = [as_table(train, "train"), as_table(holdout, "holdout")]
    others = [] if reference is None else [as_table(reference, "reference")]
    whole = match_tables(*tables, as_table(pl.concat(synthetic), "synthetic"), *others, at_least=1)
    expected = TableEncoder.fit(*whole, learn_from=whole[2:])
    stream = as_stream(iter(synthetic), "synthetic", block_rows=block)
    found = learnt(tables, stream, *others)
    assert [table.fingerprint() for table in found.tables] == [table.fingerprint() for table in whole]
    assert (found.notes, found.rows) == (expected.notes, expected.rows)
    records = (*found.tables[:2], *found.tables[3:])
    for table, record in zip((*whole[:2], *whole[3:]), records, strict=True):
        theirs, ours = arrays_of(expected, table), arrays_of(found, record)
        assert ours.number_names == theirs.number_names
        assert np.array_equal(ours.numbers, theirs.numbers)
        assert np.array_equal(ours.number_missing, theirs.number_missing)
        for column in range(len(found.names)):
            shares = expected.frequencies[column][theirs.cells[:, column]]
            assert np.array_equal(found.frequencies[column][ours.cells[:, column]], shares)
    released = arrays_of(expected, whole[2])
    start = 0
    for first, frame in stream.blocks(found.names):
        assert first == start
        cells, numbers, ranks = streamed(found, frame)
        rows = slice(first, first + frame.height)
        start = rows.stop
        wanted = np.where(released.number_missing[rows], np.nan, released.numbers[rows])
        assert np.array_equal(numbers, wanted, equal_nan=True)
        places = [column for column, table in enumerate(expected.ranks) if table is not None]
        known = [expected.ranks[column][released.cells[rows, column]] for column in places]
        wanted = np.where(released.number_missing[rows], np.nan, np.stack(known, axis=1) if known else numbers)
        assert np.array_equal(ranks, wanted, equal_nan=True)
        pooled = np.concatenate([expected.transform(table) for table in (*whole[:2], *whole[3:])])
        own = np.concatenate([found.transform(table) for table in records])
        for column in range(cells.shape[1]):
            same = released.cells[rows, column][:, None] == pooled[:, column]
            assert np.array_equal(cells[:, column][:, None] == own[:, column], same)
    assert start == stream.rows


@settings(max_examples=25, deadline=None)
@given(tables=three_tables(), width=st.sampled_from([1, 2, 100]), block=st.sampled_from([1, 2, 3, 100]))
def test_a_stream_is_encoded_like_the_table(tables, width, block):
    parts = [pl.DataFrame({name: as_series(cells) for name, cells in table.items()}) for table in tables]
    try:
        match_tables(*(as_table(part, name) for part, name in zip(parts, "abc", strict=True)), at_least=1)
    except InputError:
        return
    encode(parts[0], parts[1], pieces(tables[2], width), block)
    encode(parts[0].head(1), parts[0].head(1), pieces(tables[2], width), block, reference=parts[1])


def mixed(rows, rng):
    return pl.DataFrame(
        {
            "n": rng.integers(0, 50, rows),
            "x": rng.normal(size=rows),
            "word": rng.choice(["a", "b", "ß"], rows),
            "yes": rng.random(rows) < 0.3,
            "day": pl.Series([dt.date(2020, 1, 1 + int(i)) for i in rng.integers(0, 28, rows)]),
        }
    )


@pytest.mark.parametrize("compression", ["zstd", "snappy", "uncompressed"])
def test_files_of_many_row_groups(tmp_path, compression):
    rng = np.random.default_rng(0)
    frame = mixed(1000, rng)
    path = tmp_path / "t.parquet"
    frame.write_parquet(path, compression=compression, row_group_size=37)
    stream = as_stream(path, block_rows=64)
    assert (stream.rows, stream.names) == (1000, tuple(frame.columns))
    blocks = [block for _, block in stream.blocks(stream.names)]
    assert [block.height for block in blocks] == [64] * 15 + [40]
    assert pl.concat(blocks).equals(frame)
    records = [as_table(mixed(40, rng), "train"), as_table(mixed(40, rng), "holdout")]
    assert learnt(records, stream).tables[2].fingerprint() == read_table(path).fingerprint()
    assert stream.table().fingerprint() == read_table(path).fingerprint()


def test_arrow_files_lazy_frames_and_dictionaries(tmp_path):
    rng = np.random.default_rng(1)
    frame = mixed(300, rng).with_columns(pl.col("word").cast(pl.Categorical))
    frame.write_ipc(tmp_path / "t.arrow")
    whole = as_table(frame).fingerprint()
    records = [as_table(mixed(40, rng), "train"), as_table(mixed(40, rng), "holdout")]
    for data in (tmp_path / "t.arrow", str(tmp_path / "t.arrow"), frame.lazy(), [frame.to_pandas()], iter([frame])):
        assert learnt(records, as_stream(data, block_rows=70)).tables[2].fingerprint() == whole


@pytest.mark.parametrize(
    "cells", [[None, 1.5, None, 2.5], [None, "a", None, None], [None] * 4, [None, True, None, False]]
)
def test_missing_cells_of_the_first_column_are_rows_like_others(tmp_path, cells):
    frame = pl.DataFrame({"first": cells, "second": range(4)})
    frame.write_parquet(tmp_path / "release.parquet")
    for source in (tmp_path / "release.parquet", frame.lazy()):
        assert sum(block.height for _, block in as_stream(source).blocks(["second"])) == 4


def test_empty_row_groups_and_frames_count_nothing(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"x": [1.0, 2.0]})
    with pq.ParquetWriter(tmp_path / "t.parquet", table.schema) as writer:
        for part in (table.slice(0, 0), table, table.slice(0, 0), table):
            writer.write_table(part)
    assert as_stream(tmp_path / "t.parquet").table().column("x").tolist() == [1, 2, 1, 2]
    frames = [pl.DataFrame({"x": []}), pl.DataFrame({"x": [3]}), pl.DataFrame({"x": []}, schema={"x": pl.String})]
    assert as_stream(frames).table().column("x").tolist() == [3]


def test_later_blocks_may_bring_fractions_new_labels_and_first_cells():
    frames = [
        pl.DataFrame({"n": [1, 2], "w": ["a", None], "late": [None, None]}),
        pd.DataFrame({"w": ["b", "a"], "n": [0.5, np.nan], "late": ["x", "y"]}),
    ]
    found = as_stream(frames, block_rows=1).table()
    assert found.column("n").tolist()[:3] == [1.0, 2.0, 0.5]
    assert found.column("w").tolist() == ["a", None, "b", "a"]
    assert found.column("late").tolist() == [None, None, "x", "y"]


def test_long_identifiers_in_a_late_block_make_the_column_text():
    numbers = [*range(10), 2**53 + 1, 2**53]
    frame = pl.DataFrame({"id": numbers})
    records = [as_table({"id": [str(i) for i in range(3)]}, name) for name in ("train", "holdout")]
    found = learnt(records, as_stream([frame], block_rows=2))
    assert found.tables[2].fingerprint() == as_table(frame).fingerprint()
    assert streamed(found, frame[:4])[0][:, 0].tolist() == [0, 1, 2, -1]


def test_words_of_truth_are_seen_over_all_blocks():
    rows = [as_table({"t": [True, False]}, name) for name in ("train", "holdout")]
    frame = pl.DataFrame({"t": ["true", "TRUE ", None, "False"]})
    found = learnt(rows, as_stream([frame], block_rows=1))
    assert found.tables[2].fingerprint() == as_table(frame).fingerprint()
    assert streamed(found, frame)[0][:, 0].tolist() == [1, 1, -1, 0]
    text = pl.DataFrame({"t": ["true", "false", "maybe"]})
    with pytest.raises(InputError, match=r"truth values in train .* and text in data"):
        learnt(rows, as_stream([text], block_rows=1))


def test_words_of_truth_may_have_any_blanks_around_them():
    """Those that Python strips: polars knows fewer."""
    rows = [as_table({"t": [True, False]}, name) for name in ("train", "holdout")]
    frame = pl.DataFrame({"t": ["true\x1c", "FALSE", "\x1fTrue"]})
    found = learnt(rows, as_stream([frame], block_rows=1))
    assert found.tables[2].fingerprint() == as_table(frame).fingerprint()
    assert streamed(found, frame)[0][:, 0].tolist() == [1, 0, 1]


def test_part_of_a_stream_keeps_its_files():
    part = as_stream([pl.DataFrame({"x": [1, 2], "y": [3, 4]})]).without("x")
    gc.collect()
    assert part.table().column("y").tolist() == [3, 4]
    with pytest.raises(InputError, match="data has no column 'x'; it has y"):
        part.select(["x"])


def test_distinct_values_of_a_stream_are_not_kept():
    """They may be as many as rows, in every column."""
    frame = mixed(500, np.random.default_rng(3))
    found = learnt([as_table(frame.head(5))] * 2, as_stream([frame]))
    assert [levels.size <= 6 for levels in found.levels] == [True] * 5
    kept = [part for column in found.tables[2].columns for part in (column.numbers, column.labels, column.counts)]
    assert [len(part) for part in kept] == [0] * 15


def test_several_streams_are_learnt_from_together():
    """Counts add up, and a stream from which nothing is learnt brings values alone."""
    frames = [
        pl.DataFrame({"n": [1.0, 2.0, None], "w": ["a", "b", "b"]}),
        pl.DataFrame({"n": [2.0, 5.0], "w": ["c", None]}),
    ]
    record, (one, two) = (
        as_table({"n": [2.0, 7.0], "w": ["b", "c"]}),
        (as_stream([frame], block_rows=1) for frame in frames),
    )
    tables = [record, *(as_table(frame) for frame in frames)]
    for some in ([0, 1, 2], [1, 2], [2], [0, 1]):
        expected = TableEncoder.fit(*tables, learn_from=[tables[i] for i in some])
        found = TableEncoder.fit(record, one, two, learn_from=[(record, one, two)[i] for i in some])
        theirs, ours = arrays_of(expected, record), arrays_of(found, record)
        assert np.array_equal(ours.numbers, theirs.numbers)
        assert (found.notes, found.rows) == (expected.notes, 7)
        for place, shares in enumerate(found.frequencies):
            assert shares[ours.cells[:, place]].tolist() == expected.frequencies[place][theirs.cells[:, place]].tolist()
    for bad, got in (((one, two), "none in memory"), ((record, {"n": [1]}), "dict")):
        with pytest.raises(InputTypeError, match=f"at least one table in memory, got {got}"):
            TableEncoder.fit(*bad)


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_file_that_changes_between_readings_is_refused(tmp_path, ending):
    path = tmp_path / f"t[1]*.{ending}"

    def write(rows):
        frame = pl.DataFrame({"x": np.arange(rows) * 1.0})
        frame.write_parquet(path) if ending == "parquet" else frame.write_ipc(path)

    write(100)
    stream = as_stream(path, block_rows=10)
    records = [as_table({"x": [0.0, 1.0]}, name) for name in ("train", "holdout")]
    learnt(records, stream)
    for change in (lambda: write(99), lambda: write(5000), path.unlink):
        change()
        with pytest.raises(InputError, match="changed while it was read"):
            learnt(records, stream)


def test_damage_in_the_middle_of_a_file_is_an_error(tmp_path):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"x": np.random.default_rng(0).normal(size=4000)}).write_parquet(path, compression="zstd")
    data = bytearray(path.read_bytes())
    packed = data.index(b"\x28\xb5\x2f\xfd")
    data[packed : packed + 56] = bytes(56)
    path.write_bytes(data)
    stream = as_stream(path)
    with pytest.raises(InputError, match=r"t\.parquet cannot be read to its end"):
        stream.table()


def test_a_file_that_may_not_be_read_is_an_error_that_says_so(tmp_path, monkeypatch):
    (tmp_path / "t.parquet").touch()

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(pl, "scan_parquet", refuse)
    with pytest.raises(InputError, match=r"t\.parquet cannot be opened: .*Permission denied"):
        as_stream(tmp_path / "t.parquet")


FOLDERS = """
import resource, sys, tempfile
import numpy as np
import polars as pl
from whosin.errors import InputError
from whosin.tables import as_stream

frame = pl.DataFrame({"x": np.random.default_rng(0).normal(size=50_000)})

def frames():
    yield frame
    raise KeyboardInterrupt

if sys.argv[1] == "interrupted":
    as_stream(frames())
elif sys.argv[1] == "kept":
    kept = as_stream([frame])
    assert len(list(__import__("pathlib").Path(tempfile.gettempdir()).glob("whosin-*"))) == 1
    raise KeyboardInterrupt
else:
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
    given = frame.lazy() if sys.argv[1] == "full lazy" else [frame]
    try:
        as_stream(given)
    except InputError as error:
        print(error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits the size of files")
@pytest.mark.parametrize("how", ["interrupted", "kept", "full", "full lazy"])
def test_temporary_files_go_whatever_happens(tmp_path, how):
    done = subprocess.run(
        [sys.executable, "-c", FOLDERS, how],
        env={"TMPDIR": str(tmp_path), "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert list(tmp_path.iterdir()) == []
    if how.startswith("full"):
        assert "room for a copy in the temporary folder" in done.stdout, (done.stdout, done.stderr)
    else:
        assert "KeyboardInterrupt" in done.stderr


def test_a_bad_value_is_reported_with_its_row(tmp_path):
    values = np.zeros(1000)
    values[731] = np.inf
    pl.DataFrame({"x": values}).write_parquet(tmp_path / "t.parquet")
    records = [as_table({"x": [0.0, 1.0]}, name) for name in ("train", "holdout")]
    with pytest.raises(InputError, match=r"t\.parquet column 'x' must hold finite numbers, got inf in row 731 "):
        learnt(records, as_stream(tmp_path / "t.parquet", block_rows=10))


def test_kinds_that_change_between_frames_are_refused():
    frames = [pl.DataFrame({"x": [1, 2]}), pl.DataFrame({"x": ["a"]})]
    with pytest.raises(
        InputError, match="'x' must hold one kind of cells, got numbers up to row 1 and text from row 2 on"
    ):
        as_stream(frames)
    with pytest.raises(InputError, match="same columns, x, got y from row 2 on"):
        as_stream([frames[0], pl.DataFrame({"y": [1]})])


def test_schemas_are_compared_like_tables():
    records = [as_table({"x": [0.0, 1.0], "w": ["a", "b"]}, name) for name in ("train", "holdout")]
    with pytest.raises(InputError, match="data lacks 'w'"):
        learnt(records, as_stream([pl.DataFrame({"x": [1.0]})]))
    with pytest.raises(InputError, match="data has no column 'w'"):
        learnt(records, as_stream([pl.DataFrame({"x": [1.0]})]), columns=["w"])
    with pytest.raises(InputError, match=r"numbers in train .* and text in data"):
        learnt(records, as_stream([pl.DataFrame({"x": ["1"], "w": ["a"]})]))


def test_refused_files(tmp_path):
    (tmp_path / "no.parquet").write_bytes(b"PAR1 nonsense")
    with pytest.raises(InputError, match="must be Parquet, got something else"):
        as_stream(tmp_path / "no.parquet")
    (tmp_path / "no.arrow").write_bytes(b"nonsense")
    with pytest.raises(InputError, match="must be the Arrow IPC file format"):
        as_stream(tmp_path / "no.arrow")
    pl.DataFrame({"x": pl.Series([], dtype=pl.Float64)}).write_parquet(tmp_path / "empty.parquet")
    with pytest.raises(InputError, match="at least one row, got none"):
        as_stream(tmp_path / "empty.parquet")
    (tmp_path / "t.csv").write_text("x\n1\n")
    assert as_stream(tmp_path / "t.csv").rows == 1
    with pytest.raises(InputError, match="no such file"):
        as_stream(tmp_path / "gone.parquet")
    with pytest.raises(InputError, match=r"at least one column|at least one row"):
        as_stream(iter([]))
    with pytest.raises(InputTypeError, match="got int"):
        as_stream(3)
    with pytest.raises(InputError, match="block_rows"):
        as_stream(tmp_path / "no.parquet", block_rows=0)


def test_what_can_be_streamed():
    frame = pl.DataFrame({"x": [1]})
    assert all(is_streamable(data) for data in ("a.parquet", frame.lazy(), iter([frame]), [frame]))
    assert not any(is_streamable(data) for data in (frame, [[1], [2]], np.ones(3), {"x": [1]}, []))


TEXTS = {
    "plain.csv": "a,b,c\n" + "".join(f"{i},x{i % 3},{i / 4}\n" for i in range(40)),
    "late_words.csv": "a,b\n" + "1,x\n" * 30 + "?,y\n2,NA\n",
    "late_label.csv": "zip,b\n" + "1234,x\n" * 30 + "01234,y\n",
    "late_text.csv": "a,b\n" + "1,2020-01-01\n" * 30 + "one,2020-01-02\n",
    "late_comma.csv": "a;b\n" + "1;2\n" * 30 + "1,5;7\n",
    "commas.csv": "a;b;c\n" + "1,5;2;x.y\n" * 30 + "1.234,5;7;z\n",
    "thousands.csv": "a;b\n" + "1,234;2\n" * 30,
    "quoted_thousands.csv": "a,b\n" + "12,2\n" * 30 + '"1,234",7\n' * 30,
    "points.csv": "a;b\n" + "1,5;1.234\n" * 30 + "1;950\n" * 30,
    "quoted.csv": 'a,b\n"x\ny",1\n"u,v",2\n' + '"x ""z""",3\n' * 30,
    "odd.csv": "a,b\nx,1\n" + "y,2\n" * 20 + '5" pipe,3\n\n' + "z,4\n" * 20,
    "blank.csv": "a,b\n1,2\n\n3,4\n\n" + "5,6\n\n" * 20,
    "old.csv": ("a,b\n" + "x,1\n" * 30 + "Müller,2\n").encode("latin-1"),
    "wide.csv": ("a;b\n" + "Köln;1,5\n" * 30).encode("utf-16"),
    "windows.csv": "a,b\r\n" + "1,x\r\n" * 30,
    "spaced.txt": "a  b c\n" + " 1   2 x \n" * 30,
    "nothing.csv": "a,b\n" + ",1\n" * 30,
}


@pytest.mark.parametrize("piece", [7, 2**20])
@pytest.mark.parametrize("name", TEXTS)
def test_text_in_pieces_reads_as_at_once(tmp_path, monkeypatch, name, piece):
    monkeypatch.setattr(text_blocks, "PIECE", piece)
    content = TEXTS[name]
    path = tmp_path / f"{name}.gz"
    path.write_bytes(gzip.compress(content if isinstance(content, bytes) else content.encode()))
    whole, stream = read_table(path), as_stream(path, block_rows=5)
    assert stream.table().fingerprint() == whole.fingerprint()
    assert sorted(stream.notes) == sorted(whole.notes)


@pytest.mark.parametrize("piece", [7, 2**20])
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "x.csv is empty"),
        (b"a,b\n", "names but no rows"),
        (b"a,b\n" + b"1,2\n" * 20 + b"3\n", "line 22 must have 2 cells like line 1, .*; a missing cell needs"),
        (b"a,b\n" + b"1,2\n" * 20 + b"3,inf\n", "line 22 column 'b' must be a finite number, got 'inf'"),
        ("a,b\nKöln,2\n".encode() + b"1,2\n" * 9 + "München,3\n".encode("latin-1"), "the byte 0xfc on line 12"),
    ],
)
def test_broken_text_in_pieces_says_where(tmp_path, monkeypatch, content, says, piece):
    monkeypatch.setattr(text_blocks, "PIECE", piece)
    (tmp_path / "x.csv").write_bytes(content)
    with pytest.raises(InputError, match=says):
        as_stream(tmp_path / "x.csv")
    with pytest.raises(InputError, match=says):
        read_table(tmp_path / "x.csv")


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_a_url_is_read_where_it_is(tmp_path, ending):
    """By the address of a local file, which goes through the same file systems as one in an object store."""
    pytest.importorskip("fsspec")
    path = tmp_path / f"people at home.{ending}"
    frame = pl.DataFrame({"x": np.arange(1000) % 17, "y": np.arange(1000) * 0.5})
    frame.write_parquet(path, row_group_size=64) if ending == "parquet" else frame.write_ipc(path)
    stream = pickle.loads(pickle.dumps(as_stream(f"file://{path}", block_rows=300)))
    assert (stream.origin, stream.rows) == (path.name, 1000)
    assert stream.table().fingerprint() == as_table(frame).fingerprint()
    ((first, block),) = stream.blocks(["y"], 123, 140)
    assert (first, block["y"].to_list()) == (123, frame["y"][123:140].to_list())
    frame.head(999).write_parquet(path) if ending == "parquet" else frame.head(999).write_ipc(path)
    with pytest.raises(InputError, match="changed while it was read"):
        list(stream.blocks(["x"]))
    path.unlink()
    with pytest.raises(InputError, match="changed while it was read: it is gone"):
        list(stream.blocks(["x"]))


def test_urls_that_cannot_be_read(tmp_path):
    pytest.importorskip("fsspec")
    with pytest.raises(InputError, match="a URL must end in one of"):
        as_stream("s3://bucket/people.csv")
    with pytest.raises(InputError, match="a release at nowhere:// needs fsspec"):
        as_stream("nowhere://bucket/people.parquet")
    with pytest.raises(InputError, match="no such file: file:"):
        as_stream(f"file://{tmp_path}/gone.parquet")


@pytest.mark.parametrize("way", ["parquet", "arrow", "csv", "lazy", "frames"])
def test_rows_of_a_range_are_those_rows_also_in_another_process(tmp_path, way):
    frame = pl.DataFrame({"x": np.arange(500) % 31, "y": np.arange(500) * 0.5})
    path = tmp_path / f"t.{way}"
    writes = {"parquet": frame.write_parquet, "arrow": frame.write_ipc, "csv": frame.write_csv}
    if way in writes:
        writes[way](path)
    frames = [frame[start : start + 70] for start in range(0, 500, 70)]
    made = as_stream({"lazy": frame.lazy(), "frames": iter(frames)}.get(way, path), block_rows=40)
    stream = pickle.loads(pickle.dumps(made))
    for start, stop in ((0, 500), (69, 71), (120, 333), (499, 500)):
        found = pl.concat([block for _, block in stream.blocks(["y", "x"], start, stop)])
        assert found.equals(frame[start:stop].select("y", "x"))
    assert made.rows == 500

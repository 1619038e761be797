"""Reading files into tables: the same content from every format, and an error with a place for every broken file."""

import datetime as dt
import gzip

import numpy as np
import polars as pl
import pytest

from whosin.errors import InputError
from whosin.tables import Table, as_stream, as_table, read_numeric, read_table, text
from whosin.tables.dialect import Dialect

FRAME = pl.DataFrame(
    {
        "age": [31, None, 54, 31],
        "weight": [70.5, 80.25, None, -0.0],
        "city": ["Bonn", "Ulm, Donau", None, 'the "old" town\nby the river'],
        "member": [True, False, None, True],
        "born": [dt.date(1990, 1, 31), None, dt.date(1965, 12, 1), dt.date(2262, 4, 12)],
        "seen": [dt.datetime(2024, 2, 29, 12, 30, 15, 250000), None, dt.datetime(1969, 1, 1), dt.datetime(2024, 1, 1)],
    }
)


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return path


def written(folder):
    FRAME.write_csv(folder / "polars.csv")
    FRAME.to_pandas().to_csv(folder / "pandas.csv", index=False)
    FRAME.write_csv(folder / "tabs.tsv", separator="\t")
    FRAME.write_csv(folder / "windows.csv", line_terminator="\r\n")
    (folder / "packed.csv.gz").write_bytes(gzip.compress((folder / "polars.csv").read_bytes()))
    (folder / "marked.csv").write_bytes(b"\xef\xbb\xbf" + (folder / "polars.csv").read_bytes())
    FRAME.write_parquet(folder / "t.parquet")
    FRAME.write_ipc(folder / "t.arrow")
    FRAME.write_ipc(folder / "zipped.feather", compression="zstd")
    FRAME.write_ipc_stream(folder / "stream.arrow")
    return sorted(path for path in folder.iterdir())


def test_every_format_gives_the_same_table(tmp_path):
    expected = as_table(FRAME)
    paths = written(tmp_path)
    assert len(paths) == 10
    for path in paths:
        table = read_table(path)
        assert table.fingerprint() == expected.fingerprint(), path.name
        assert table.origin == path.name


def test_what_is_read(tmp_path):
    table = read_table(next(path for path in written(tmp_path) if path.name == "pandas.csv"))
    assert [table.kind(name) for name in table.names] == ["number", "number", "category", "category", "date", "date"]
    np.testing.assert_array_equal(table.column("age"), [31.0, np.nan, 54.0, 31.0])
    assert table.column("city").tolist() == FRAME["city"].to_list()
    assert table.column("member").tolist() == ["True", "False", None, "True"]
    assert table.column("born")[0] == (dt.date(1990, 1, 31) - dt.date(1970, 1, 1)).days * 86400
    assert table.column("seen")[0] == dt.datetime(2024, 2, 29, 12, 30, 15, 250000, tzinfo=dt.UTC).timestamp()
    assert np.signbit(table.column("weight")).tolist() == [False, False, False, False]


def test_numpy_files(tmp_path):
    np.save(tmp_path / "m.npy", np.arange(6).reshape(3, 2))
    np.savez(tmp_path / "m.npz", only=np.arange(6.0).reshape(3, 2))
    named = np.array([(1, "x"), (2, "y")], dtype=[("a", "i4"), ("b", "U3")])
    np.save(tmp_path / "named.npy", named)
    assert read_table(tmp_path / "m.npy").fingerprint() == read_table(tmp_path / "m.npz").fingerprint()
    assert read_table(tmp_path / "m.npy").names == ("column 0", "column 1")
    assert read_table(tmp_path / "named.npy").column("b").tolist() == ["x", "y"]


def test_a_first_line_of_numbers_is_data_unless_told_otherwise(tmp_path):
    path = write(tmp_path / "plain.csv", "1,2\n3,4\n")
    assert read_table(path).rows == 2
    assert read_table(path, header=True).names == ("1", "2")
    for content in ("1,x,x\n2,y,y\n", "1,x,u\n2,y,v\n3,x,w\n"):
        mixed = read_table(write(tmp_path / "mixed.csv", content))
        assert mixed.column("column 1").tolist()[:2] == ["x", "y"]
        assert mixed.notes == ("its first line was taken as a row, not as names",)
    years = read_table(write(tmp_path / "years.csv", "town,2019,2020\nUlm,1,2\nBonn,3,4\n"))
    assert years.names == ("town", "2019", "2020")


def test_numbers_may_have_blanks_and_texts_keep_theirs(tmp_path):
    table = read_table(write(tmp_path / "x.csv", "a,b,c\n 1, yes,NA\n2 ,yes, nan \n , yes,5e-1\n"))
    np.testing.assert_array_equal(table.column("a"), [1.0, 2.0, np.nan])
    assert table.column("b").tolist() == [" yes", "yes", " yes"]
    np.testing.assert_array_equal(table.column("c"), [np.nan, np.nan, 0.5])


def test_blank_lines_do_not_count_and_quoted_nothing_is_a_missing_cell(tmp_path):
    assert read_table(write(tmp_path / "x.csv", "a\n1\n\n2\n\n")).column("a").tolist() == [1.0, 2.0]
    np.testing.assert_array_equal(read_table(write(tmp_path / "y.csv", 'a\n1\n""\n')).column("a"), [1.0, np.nan])


def test_missing_texts_can_be_chosen(tmp_path):
    path = write(tmp_path / "x.csv", "a,b\n1,?\nNA,y\n-9,y\n")
    table = read_table(path, missing=("?", "-9", "NA"))
    np.testing.assert_array_equal(table.column("a"), [1.0, np.nan, np.nan])
    assert table.column("b").tolist() == [None, "y", "y"]
    assert read_table(path, missing=()).column("a").tolist() == ["1", "NA", "-9"]


def test_columns_and_categories_can_be_chosen(tmp_path):
    path = write(tmp_path / "x.csv", "zip,n,day\n01234,1,2020-01-01\n1234,2,2020-01-02\n")
    assert read_table(path).column("zip").tolist() == ["01234", "1234"]
    table = read_table(path, columns=["day", "zip"], categories=["zip", "day"])
    assert table.names == ("day", "zip")
    assert table.column("zip").tolist() == ["01234", "1234"]
    assert table.column("day").tolist() == ["2020-01-01", "2020-01-02"]
    with pytest.raises(InputError, match="no column 'town'; it has zip, n, day"):
        read_table(path, categories=["town"])
    with pytest.raises(InputError, match="no column 'town'"):
        read_table(path, columns=["town"])


def test_whole_numbers_that_floats_do_not_tell_apart_stay_text(tmp_path):
    path = write(tmp_path / "x.csv", f"id,x\n{2**53 + 1},1e300\n{2**53},2e300\n")
    table = read_table(path)
    assert table.column("id").tolist() == [str(2**53 + 1), str(2**53)]
    assert table.kind("x") == "number"
    assert read_numeric(path, ["id"])[0].ravel().tolist() == [2.0**53, 2.0**53]


def test_dates_with_and_without_time_and_zone(tmp_path):
    table = read_table(
        write(
            tmp_path / "x.csv",
            "a,b,c,d\n2020-01-01 10:00,2020-01-01T10:00:00Z,2020-01-01,01/02/2020\n"
            "2020-01-01 11:00,2020-01-01T12:00:00+02:00,2020-13-01,02/02/2020\n",
        )
    )
    ten = dt.datetime(2020, 1, 1, 10, tzinfo=dt.UTC).timestamp()
    assert table.column("a").tolist() == [ten, ten + 3600]
    assert table.column("b").tolist() == [ten, ten]
    assert (table.kind("c"), table.kind("d")) == ("category", "category")


@pytest.mark.parametrize(
    "content",
    [
        'a,b\n5" pipe,1\n7" pipe,2\n',
        'a,b\n5 "inch" pipe,1\n\n7,2\n',
        'a,b\n"x"y,1\nz,2\n',
        "\n\na,b\n1,2\n\n\n3,4\n\n",
        "a,b\r1,2\r3,4\r",
        'a,b\n"one\ntwo",2\n"3,4",5',
        'a,b\n"",2\n"x ""y"" z",5',
    ],
)
def test_odd_files_read_as_the_csv_module_reads_them(tmp_path, content):
    import csv
    import io

    rows = [row for row in csv.reader(io.StringIO(content.replace("\r", "\n"), newline="")) if row]
    table = read_table(write(tmp_path / "x.csv", content), categories=["a", "b"])
    got = [[cell or "" for cell in cells] for cells in zip(table.column("a"), table.column("b"), strict=True)]
    assert got == rows[1:]


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 64])
def test_lines_are_counted_the_same_in_pieces(monkeypatch, chunk):
    monkeypatch.setattr(text, "_CHUNK", chunk)

    def read(body, width, numeric=None, first_line=1):
        numbers = (False,) * width if numeric is None else numeric
        names, no = tuple(map(str, range(width))), (False,) * width
        layout = text.Layout("x", Dialect(","), names, 0, 1, (), numbers, ".", no)
        found = text.Piece(body, 0, first_line).found(layout)
        return None if found is None else found[1] if first_line == 1 else found[2].tolist()

    body = b'1,"a,\n""b"\n2,c\n"3",""\n4,"\n"'
    found = read(body, 2)
    assert found["1"].cells.cast(pl.String).fill_null("").to_list() == ['a,\n"b', "c", "", "\n"]
    assert read(body, 2, first_line=7) == [7, 9, 10, 11]
    for odd, width in (
        (body, 3),
        (body + b"\n5", 2),
        (body + b"\n\n", 2),
        (b'1,x"y', 2),
        (b'1,"y', 2),
        (b'x"1,2"y', 1),
    ):
        assert read(odd, width) is None
    for odd, width in ((b"1\n\n2", 1), (b"1,2\n3\n4,5,6", 2), (b"1,2\n\n3,4", 2), (b"1,2,3\n4", 2), (b"\n1\n2", 1)):
        assert read(odd, width) is None
    assert read(b'1,2\n3\n4,"5,6"', 2) is None  # a separator within a cell does not make up for one that lacks
    assert read(b'"1\n2",3\n4,5\n\n', 2) is None
    for labels in (
        b"1,2\n3,4\n05,6",
        b"01,0\n0,4\n5,0",
        b"1,2\n1,04",
        b'1,"05"\n2,3',
        b"1, 05\n2,3",
        b"1,2\n1,9007199254740993",
    ):
        assert all(cells.text for cells in read(labels, 2, (True, True)).values()), labels
    for numbers in (b"0,0.5\n10,0", b"-0,100\n1e05,2", b"7,8"):
        assert not any(cells.text for cells in read(numbers, 2, (True, True)).values()), numbers
    mixed = read(b"x 05,1\n07,2\ny,3", 2, (False, True))
    assert (mixed["0"].text, mixed["1"].text) == (True, False)


CELLS = [
    ["1", "2", "10", "0"], ["1.5", "2", "-3e4"], ["01", "1", "2"], ["a", "b", "c,d", 'e"f', "g\nh"], ["1", "?", "3"],
    ["2020-01-01", "2021-05-06"], ["1", "NA", ""], ["x", "", ""], ["1,5", "2", "3,25"], ["1,234", "2"],
    ["1.234", "2,5"],
    [" 5", "6 ", "7"], ["True", "False"], ["9007199254740993", "1"], ["05 x", "y"], ["nan", "1"], ["-", "5"],
    ["", "NA"],
]  # fmt: skip


@pytest.mark.parametrize("seed", range(30))
def test_the_quick_way_reads_what_the_csv_module_reads(monkeypatch, seed):
    import csv
    import io
    import random

    rng = random.Random(seed)
    pools = [rng.choice(CELLS) for _ in range(rng.randint(1, 5))]
    file = io.StringIO(newline="")
    style = rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
    separator = rng.choice(",;\t")
    writer = csv.writer(file, delimiter=separator, lineterminator="\n", quoting=style)
    writer.writerow([f"name {i}" for i in range(len(pools))])
    writer.writerows([[rng.choice(pool) for pool in pools] for _ in range(rng.choice([1, 2, 5, 40, 300]))])
    data, missing = file.getvalue().encode(), rng.choice([None, None, ("-9", "x"), ("x",)])

    def read():
        dialect = Dialect(separator, missing=missing, decimal=rng.choice([None, "."]), header=True)
        series, remarks, lines = text.series_from_text(data, "x", dialect)
        table = as_table(pl.DataFrame([cells.alias(name) for name, cells in series.items()]))
        return table.fingerprint(), remarks, lines.tolist()

    state = rng.getstate()
    quick = read()
    rng.setstate(state)
    monkeypatch.setattr(text.Piece, "found", lambda piece, layout: None)
    assert read() == quick, data


HELD = {
    "plain": ("7,x,2020-01-01,3.5\n", "", False),
    "quoted": ('7,"x,\ny",2020-01-01,3.5\n', "", False),
    "gaps": ("?,x,NA,\n", "", False),
    "zeros late": ("7,x,2020-01-01,3.5\n", "07,x,2020-01-01,3.5\n", False),
    "a letter late": ("7,x,2020-01-01,3.5\n", "7,Köln,2020-01-01,3.5\n", True),
    "line ends late": ("7,x,2020-01-01,3.5\n", "7,x,2020-01-01,3.5\r\n", True),
    "a blank line": ("7,x,2020-01-01,3.5\n", "\n7,x,2020-01-01,3.5\n", True),
    "quotes in a cell": ("7,x,2020-01-01,3.5\n", '7,x "y" z,2020-01-01,3.5\n', True),
    "latin letters late": ("7,x,2020-01-01,3.5\n", "7,K\xf6ln,2020-01-01,3.5\n", True),
}


@pytest.mark.parametrize("kind", HELD)
def test_a_large_file_reads_the_same_where_it_lies(tmp_path, monkeypatch, kind):
    """Only plain ASCII with regular lines is not taken into memory; nothing else tells the two ways apart."""
    monkeypatch.setattr(text, "_START", 2**18)
    row, last, held = HELD[kind]
    encoding = "latin-1" if kind.startswith("latin") else "utf-8"
    path = tmp_path / "odd [1]*.csv"
    path.write_bytes(("id,label,day,size\n" + "1,y,2021-05-06,2\n" * 20_000 + row * 30 + last).encode(encoding))
    in_memory = []
    read = text._read_in_memory
    monkeypatch.setattr(text, "_read_in_memory", lambda *given: in_memory.append(1) or read(*given))
    one = read_table(path)
    assert bool(in_memory) == held
    monkeypatch.setattr(text, "_START", 2**20)
    two = read_table(path)
    assert one.fingerprint() == two.fingerprint()
    assert (one.notes, one.places.numbers.tolist()) == (two.notes, two.places.numbers.tolist())


BROKEN_UTF8 = "a,b\nKöln,2\n".encode() + "München,3\n".encode("latin-1")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("x.csv", b"", "x.csv is empty"),
        ("x.csv", b"\n \n", "x.csv is empty"),
        ("x.csv", b"a,b\n", "x.csv has names but no rows"),
        ("x.csv", b"a,b\n\n\n", "names but no rows"),
        ("x.csv", b"a,b\n1,2\n3,4,5\n", "line 3 must have 2 cells like line 1, separated by ',', got 3"),
        ("x.csv", b"a,b\n1,2\n\n3\n", "line 4 must have 2 cells .* got 1"),
        ("x.csv", b'a,b\n"1\n2",2\n3\n', "line 4 must have 2 cells .* got 1"),
        ("x.csv", b'a,b\n1,2\n"3,4\n5,6\n', "line 3 must have 2 cells .* got 1"),
        ("x.csv", b'a,b\n1,"' + b"x" * 200_000 + b'" y\n', "line 2 cannot be read: field larger"),
        ("x.csv", BROKEN_UTF8, "must be UTF-8 to its end, got the byte 0xfc on line 3"),
        ("x.csv", b"\xff\xfea\x00\x00", "must be text in utf-16-le, got the byte"),
        ("x.csv", b"about this\na,b\n1,2\n", "line 2 must have 1 cells .* skip_lines=1 .* leaves them out"),
        ("x.csv", b"a,b\n1,2\n3,-inf\n", "x.csv line 3 column 'b' must be a finite number, got '-inf'"),
        ("x.jsonl", b"\n", "x.jsonl is empty"),
        ("x.jsonl", b'{"a": 1}\n\n{"a": }\n', "x.jsonl line 3 must be JSON"),
        ("x.jsonl", b'{"a": 1}\n[2]\n', "x.jsonl line 2 must be an object"),
        ("x.jsonl", b"[1]\n[2]\n", 'x.jsonl line 1 must be an object such as {"age": 31}, got [^ ]*1'),
        ("x.jsonl", b'{\n"a": 1\n}\n', "x.jsonl line 1 must be JSON, got .*; write one object per row"),
        ("x.csv.zip", b"a,b\n1,2\n", "must be packed as zip"),
        ("x.csv.xz", b"a,b\n1,2\n", "must be packed as xz"),
        ("x.csv.gz", b"a,b\n1,2\n", "must be packed as gz"),
        ("x.csv.gz", gzip.compress(b"a,b\n1,2\n" * 100, mtime=0)[:30], "must be packed as gz"),
        ("x.parquet", b"", "must be Parquet"),
        ("x.parquet", b"a,b\n1,2\n", "must be Parquet"),
        ("x.parquet", b"PAR1" + b"\0" * 40 + b"PAR1", "must be Parquet"),
        ("x.arrow", b"", "must be Arrow IPC"),
        ("x.feather", b"ARROW1" + b"\0" * 40, "must be Arrow IPC"),
        ("x.npy", b"", "plain NumPy array"),
        ("x.npy", b"\x93NUMPY", "plain NumPy array"),
        ("x.npz", b"PK\x03\x04", "plain NumPy array"),
        ("x.xlsx", b"", "must be a workbook"),
        ("x.docx", b"", r"endings \.csv, .* got 'x.docx'"),
    ],
)
def test_broken_files_say_what_is_wrong(tmp_path, name, content, says):
    with pytest.raises(InputError, match=says):
        read_table(write(tmp_path / name, content))


def test_text_with_another_ending_is_known_by_its_content(tmp_path):
    table = read_table(write(tmp_path / "adult.test", "39, Private, <=50K.\n50, Self, >50K.\n39, Private, >50K.\n"))
    assert table.column("column 1").tolist() == ["Private", "Self", "Private"]
    assert table.notes[0] == "it was read as text, by its content"
    with pytest.raises(InputError, match=r"adult\.test line 2 must have 1 cells .* skip_lines=1 .* leaves them out"):
        read_table(write(tmp_path / "adult.test", "|1x3 Cross validator\n39, Private\n50, Self\n9, Self\n7, Private\n"))
    assert read_table(tmp_path / "adult.test", skip_lines=1).rows == 4
    assert read_table(write(tmp_path / "rows.json", '{"a": 1}\n{"a": 2}\n')).rows == 2
    for content in (b"\x80\x04K\x01.", b"PK\x03\x04", b"\x7fELF"):
        with pytest.raises(InputError, match=r"or hold plain text, got 'rows\.other'"):
            read_table(write(tmp_path / "rows.other", content))


def test_objects_in_numpy_files_are_not_loaded(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "y.npz", np.array([None], dtype=object))
    for name in ("x.npy", "y.npz"):
        with pytest.raises(InputError, match="objects are not loaded"):
            read_table(tmp_path / name)


def test_frames_in_files_are_checked_like_frames(tmp_path):
    pl.DataFrame({"a": []}, schema={"a": pl.Int64}).write_parquet(tmp_path / "none.parquet")
    with pytest.raises(InputError, match=r"none\.parquet must have at least one row"):
        read_table(tmp_path / "none.parquet")


@pytest.mark.parametrize("separator", ["", ",,", '"', "\n", "§", 3])
def test_bad_separators(tmp_path, separator):
    with pytest.raises(InputError, match="separator must be one plain character"):
        read_table(write(tmp_path / "x.csv", "a\n1\n"), separator=separator)


def test_other_separators_and_names(tmp_path):
    table = read_table(write(tmp_path / "X.CSV", " a ;;c\n1;2;3\n"), separator=";")
    assert table.names == ("a", "Unnamed: 1", "c")
    assert isinstance(table, Table)


def test_read_numeric_takes_every_format(tmp_path):
    frame = pl.DataFrame({"a": [1, 2], "b": [0.5, 1.5], "c": [True, False]})
    frame.write_parquet(tmp_path / "t.parquet")
    frame.write_ipc(tmp_path / "t.feather")
    for name in ("t.parquet", "t.feather"):
        assert read_numeric(tmp_path / name)[0].tolist() == [[1.0, 0.5, 1.0], [2.0, 1.5, 0.0]]
    frame.with_columns(pl.lit(None, dtype=pl.Int64).alias("d")).write_parquet(tmp_path / "n.parquet")
    with pytest.raises(InputError, match="row 0 column 'd' must be a number, got a missing cell; gaps='drop'"):
        read_numeric(tmp_path / "n.parquet")


def test_a_header_of_one_huge_cell(tmp_path):
    path = tmp_path / "huge.csv"
    path.write_text("a" * 140_000 + ",b\n1,2\n")
    with pytest.raises(InputError, match="line 1 must have names or numbers, got a line that cannot be read"):
        read_table(path)


def test_wide_files_are_recognised_by_several_lines(tmp_path):
    """Names of more than 64 KB were cut off, and the first row was said to have too many cells."""
    path, names = tmp_path / "wide.csv", [f"a rather long name of a column {i}" for i in range(9000)]
    path.write_text(";".join(names) + "\n" + ";".join(["1,5"] * 9000) + "\n" + ";".join(["7"] * 9000) + "\n")
    table = read_table(path)
    assert table.names == tuple(names)
    assert table.column(names[-1]).tolist() == [1.5, 7.0]
    assert as_stream(path).names == table.names
    path.write_text("a,b\n" + "x" * 200_000 + ",2\ny,3\n")
    assert read_table(path).column("b").tolist() == [2, 3]

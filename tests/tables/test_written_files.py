"""Files as people have them: separators, decimals, encodings, missing words, packing; recognised, said, or named."""

import bz2
import datetime as dt
import gzip
import lzma
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from workbooks import workbook

from whosin.errors import InputError
from whosin.tables import as_stream, as_table, read_numeric, read_table

PLAIN = as_table({"town": ["Ulm", "Köln", "Bonn"], "height": [1.5, None, 12.25], "code": ["01", "7", "30"]})
ROWS = [["town", "height", "code"], ["Ulm", "1.5", "01"], ["Köln", "?", "7"], ["Bonn", "12.25", "30"]]


def content(separator=",", decimal="."):
    return "".join(separator.join(row).replace(".", decimal) + "\n" for row in ROWS)


def write(path, data):
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "latin-1", "cp1252", "utf-32"]
)
@pytest.mark.parametrize(("separator", "decimal"), [(",", "."), (";", ","), ("\t", ","), ("|", "."), (";", ".")])
def test_what_is_recognised_reads_like_the_plain_file(tmp_path, separator, decimal, encoding):
    path = write(tmp_path / "x.csv", content(separator, decimal).encode(encoding))
    table = read_table(path)
    assert table.fingerprint() == PLAIN.fingerprint()
    assert ("commas are decimal signs in 'height'" in table.notes) == (decimal == ",")
    assert any("separated by" in note for note in table.notes) == (separator != ",")
    assert any("read as cp1252" in note for note in table.notes) == (encoding in ("latin-1", "cp1252"))
    assert "column 'height': '?' counts as missing in 1 rows" in table.notes
    named = read_table(path, separator=separator, decimal=decimal, encoding=encoding, missing=["?"])
    assert named.fingerprint() == PLAIN.fingerprint()
    assert named.notes == ()


def test_a_wrong_encoding_says_the_line(tmp_path):
    path = write(tmp_path / "x.csv", content().encode("latin-1"))
    with pytest.raises(InputError, match="must be text in utf-8, got the byte 0xf6 on line 3; encoding= must name"):
        read_table(path, encoding="utf-8")
    with pytest.raises(InputError, match=r"encoding must be one that Python knows.*'martian'"):
        read_table(path, encoding="martian")


@pytest.mark.parametrize("pack", ["gz", "bz2", "xz", "zip"])
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_packed_files(tmp_path, pack, ending):
    frame = pl.DataFrame({"a": [1.0, 2.0], "b": ["x", None]})
    plain = frame.write_csv() if ending == "csv" else frame.write_ndjson()
    path = tmp_path / f"x.{ending}.{pack}"
    if pack == "zip":
        with zipfile.ZipFile(path, "w") as packed:
            packed.writestr(f"folder/x.{ending}", plain)
            for other in ("folder/", "folder/.DS_Store", f"__MACOSX/folder/._x.{ending}"):
                packed.writestr(other, "")
    else:
        write(path, {"gz": gzip, "bz2": bz2, "xz": lzma}[pack].compress(plain.encode()))
    assert read_table(path).fingerprint() == as_table(frame).fingerprint()


def test_a_zip_of_two_files(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.csv.zip", "w") as packed:
        packed.writestr("a.csv", "a\n1\n")
        packed.writestr("b.csv", "a\n1\n")
    with pytest.raises(InputError, match="a zip with one file in it, got 2"):
        read_table(tmp_path / "x.csv.zip")


def test_words_are_missing_among_numbers_and_dates_and_labels_elsewhere(tmp_path):
    path = write(tmp_path / "x.csv", "n,d,t,w\n1,2020-01-01,a,?\nN/A,-,-,?\n-3,2020-01-02,b,-\n")
    table = read_table(path)
    np.testing.assert_array_equal(table.column("n"), [1.0, np.nan, -3.0])
    assert table.kind("d") == "date"
    assert table.column("t").tolist() == ["a", "-", "b"]
    assert table.column("w").tolist() == ["?", "?", "-"]
    assert table.notes == (
        "column 'n': 'N/A' counts as missing in 1 rows",
        "column 'd': '-' counts as missing in 1 rows",
        "'-' is a label in 't', 'w', unless named as missing",
        "'?' is a label in 'w', unless named as missing",
    )
    assert read_table(path, missing=["-"]).column("n").tolist() == ["1", "N/A", "-3"]
    assert read_table(path, missing=["-"]).column("t").tolist() == ["a", None, "b"]
    with pytest.raises(InputError, match="missing must be a list of words"):
        read_table(path, missing="-")


def test_thousands_are_not_taken_for_decimals(tmp_path):
    unclear = read_table(write(tmp_path / "x.csv", "a;b\n1,234;x\n12,500;y\n"))
    assert unclear.kind("a") == "category"
    assert "may be decimal signs or separate thousands" in unclear.notes[-1]
    assert read_table(tmp_path / "x.csv", decimal=".").column("a").tolist() == [1234.0, 12500.0]
    both = read_table(write(tmp_path / "y.csv", "a;b\n1,234;0,5\n12,500;1.200,75\n"))
    assert both.column("a").tolist() == [1.234, 12.5]
    assert both.column("b").tolist() == [0.5, 1200.75]
    assert read_table(tmp_path / "x.csv", decimal=",").column("a").tolist() == [1.234, 12.5]


def test_points_beside_decimal_commas_separate_thousands(tmp_path):
    """12.500 is twelve thousand five hundred where another column has 1,5; 52.52 can only be a decimal."""
    table = read_table(write(tmp_path / "x.csv", "a;b;c\n1,5;1.234;52.52\n2,5;12.500;13.4\n3;950;1\n"))
    assert table.column("b").tolist() == [1234.0, 12500.0, 950.0]
    assert table.column("c").tolist() == [52.52, 13.4, 1.0]
    assert "so points separate thousands in 'b'" in table.notes


def test_quoted_commas_between_commas_separate_thousands(tmp_path):
    table = read_table(write(tmp_path / "x.csv", 'a,b,c\n"1,234",x,"1,2"\n950,y,"3,4"\n"12,345.5",z,"1,4"\n'))
    assert table.column("a").tolist() == [1234.0, 950.0, 12345.5]
    assert table.kind("c") == "category"  # answers "1 and 2" to a question, for one
    assert table.notes == ("commas separate thousands in 'a'",)
    assert read_table(tmp_path / "x.csv", categories=["a"]).kind("a") == "category"


def test_quoted_decimal_commas_between_commas(tmp_path):
    """As spreadsheets and pandas write them where commas are decimal signs."""
    path = write(tmp_path / "x.csv", 'town,height,code\nUlm,"1,5",01\nKöln,?,7\nBonn,"12,25",30\n')
    for told in ({}, {"decimal": ","}):
        assert read_table(path, **told).fingerprint() == PLAIN.fingerprint()
        assert as_stream(path, block_rows=2, **told).table().fingerprint() == PLAIN.fingerprint()
    assert "commas are decimal signs in 'height'" in read_table(path).notes
    pairs = write(tmp_path / "y.csv", 'answers,size\n"1,2",1.5\n"3,4",2.5\n')
    assert read_table(pairs).kind("answers") == "category"
    assert read_table(pairs, decimal=",").column("answers").tolist() == [1.2, 3.4]


@pytest.mark.parametrize("separator", [" ", ":", "::"])
def test_blanks_and_colons_between_cells_of_a_csv(tmp_path, separator):
    """They stand in texts too, so they must make a column of numbers below a name."""
    rows = [["town", "age", "sex"], ["Ulm", "31", "f"], ["Bonn", "47", "m"]]
    table = read_table(write(tmp_path / "x.csv", "".join(separator.join(row) + "\n" for row in rows)))
    assert table.fingerprint() == as_table({"town": ["Ulm", "Bonn"], "age": [31, 47], "sex": ["f", "m"]}).fingerprint()
    shown = "blanks" if separator == " " else "':'"
    assert table.notes == (f"its cells are separated by {shown}",)
    texts = write(tmp_path / "y.csv", f"how{separator}was{separator}it\nit{separator}was{separator}well\n")
    assert len(read_table(texts).names) == 1


def test_names_in_single_quotes_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"^x\.csv line 2 must have names in double quotes or in none, got .*'a'"):
        read_table(write(tmp_path / "x.csv", "\n'a','b'\n'1','x'\n"))


@pytest.mark.parametrize("name", ["people.zip", "people.gz"])
def test_a_packed_file_without_a_second_ending_is_known_by_its_content(tmp_path, name):
    data = content().encode()
    if name.endswith("zip"):
        with zipfile.ZipFile(tmp_path / name, "w") as packed:
            packed.writestr("x.csv", data)
    else:
        write(tmp_path / name, gzip.compress(data))
    table = read_table(tmp_path / name)
    assert table.fingerprint() == read_table(write(tmp_path / "x.csv", data)).fingerprint()
    assert "it was read as text, by its content" in table.notes


def test_leading_zeros_stay_wherever_they_stand(tmp_path):
    rows = [f"{i},{i}" for i in range(1000, 3000)]
    late = read_table(write(tmp_path / "x.csv", "\n".join(["zip,n", *rows, "01234,7"]) + "\n"))
    assert (late.kind("zip"), late.kind("n")) == ("category", "number")
    assert late.column("zip")[-1] == "01234"
    quoted = read_table(write(tmp_path / "y.csv", 'zip,n\n"0123",0.5\n"9999",0\n'))
    assert (quoted.kind("zip"), quoted.kind("n")) == ("category", "number")


def test_a_number_that_is_none_far_down_makes_the_column_text(tmp_path):
    rows = [f"{i},{i / 2}" for i in range(2000)]
    path = write(tmp_path / "x.csv", "\n".join(["a,b", *rows, "many,NA"]) + "\n")
    table = read_table(path)
    assert (table.kind("a"), table.kind("b")) == ("category", "number")
    assert table.column("a")[0] == "0"


def test_tables_of_repositories(tmp_path):
    adult = read_table(write(tmp_path / "adult.data", "39, State-gov, <=50K\n50, ?, <=50K\n38, State-gov, >50K\n"))
    assert adult.names == ("column 0", "column 1", "column 2")
    assert adult.column("column 1").tolist() == ["State-gov", "?", "State-gov"]
    german = read_table(write(tmp_path / "german.data", "A11 6  A34 \n A12 48 A32\nA11 12 A34\n"))
    assert german.column("column 1").tolist() == [6.0, 48.0, 12.0]
    assert german.notes[0] == "its cells are separated by blanks"
    test = write(tmp_path / "adult.test", b"")
    with pytest.raises(InputError, match="endings"):
        read_table(test)
    odd = write(tmp_path / "odd.csv", "|1x3 Cross validator\na,b\n1,2\n")
    assert read_table(odd, skip_lines=1).names == ("a", "b")


@pytest.mark.parametrize("title", ["About\n", "A table\nof 2026\n\n", "Tafel über Männer\n\n\n"])
@pytest.mark.parametrize("separator", [";", "\t", "|", ","])
def test_titles_above_the_table_are_left_out(tmp_path, title, separator):
    names = ["a", "b", "c"]
    lines = [separator.join(row) for row in (names, ["1", "x", "2"], ["3", "y", "inf"])]
    path = write(tmp_path / "x.csv", title + "\n".join(lines[:2]) + "\n")
    first = title.count("\n") + 1
    for table in (read_table(path), as_stream(path)):
        assert table.names == ("a", "b", "c")
        assert table.notes[0] == f"lines before line {first} were left out: they are no part of the table"
    with pytest.raises(InputError, match=f"line {first + 2} column 'c' must be a finite number"):
        read_table(write(tmp_path / "y.csv", title + "\n".join(lines) + "\n"))


def test_what_may_be_a_column_is_no_title(tmp_path):
    """One column with decimal commas, a ragged table, and what the caller says."""
    for rows in ("height\n1,7\n1,8\n", "a,b,c\n1\n2,3,4\n5,6,7\n", "about\na,b\n1,2\n"):
        with pytest.raises(InputError, match="line 2 must have"):
            read_table(write(tmp_path / "x.csv", rows))
    with pytest.raises(InputError, match="skip_lines=1"):
        read_table(write(tmp_path / "x.csv", "about, this\na,b,c\n1,2,3\n"))
    assert read_table(write(tmp_path / "x.csv", "note\nabout\n1;2;3\n4;5;6\n"), skip_lines=2).rows == 2
    assert read_table(write(tmp_path / "x.csv", "a\n1\n2\n")).notes == ()


@pytest.mark.parametrize(
    ("cells", "seconds"),
    [
        (["31.01.2020", "1.2.2020"], [1580428800, 1580515200]),
        (["31.01.2020 12:30", "01.02.2020 00:00"], [1580473800, 1580515200]),
        (["31.01.2020 12:30:15", "01.02.2020 00:00:00"], [1580473815, 1580515200]),
    ],
)
def test_dates_with_points(tmp_path, cells, seconds):
    path = write(tmp_path / "x.csv", "d;n\n" + "".join(f"{cell};1\n" for cell in [*cells, "-"]))
    table = read_table(path)
    assert table.kind("d") == "date"
    np.testing.assert_array_equal(table.column("d"), [*seconds, np.nan])
    lines = write(tmp_path / "x.jsonl", "".join(f'{{"d": "{cell}"}}\n' for cell in cells))
    assert read_table(lines).column("d").tolist() == seconds
    assert read_table(write(tmp_path / "y.csv", "d;n\n31.01.2020;1\n32.01.2020;2\n")).kind("d") == "category"
    assert read_table(write(tmp_path / "z.csv", "d;n\n1.2.20;1\n10.0.0.1;2\n")).kind("d") == "category"


def test_a_row_knows_its_line(tmp_path):
    plain = read_table(write(tmp_path / "x.csv", "about\n\na;b\n1;x\n2;y\n"))
    assert (plain.place(0), plain.select(["b"]).place(1)) == ("line 4", "line 5")
    assert read_table(tmp_path / "x.csv", categories=["a"]).place(1) == "line 5"
    breaks = read_table(write(tmp_path / "y.csv", 'a,b\n1,"x\ny"\n2,z\n3,"\n\n"\n4,"v"\n'))
    assert [breaks.place(row) for row in range(4)] == ["line 2", "line 4", "line 5", "line 8"]
    blank = read_table(write(tmp_path / "z.csv", "a,b\n1,x\n\n2,z\n"))
    assert [blank.place(row) for row in range(2)] == ["line 2", "line 4"]
    assert blank.take([1]).place(0) == "line 4"
    assert as_table({"a": [1, 2]}).take([1]).take([0]).place(0) == "row 1"
    assert read_table(write(tmp_path / "l.json", '[{"a": 1},\n{"a": 2}]\n')).place(1) == "row 1"
    pl.DataFrame({"a": [1, 2]}).write_parquet(tmp_path / "x.parquet")
    assert read_table(tmp_path / "x.parquet").place(1) == "row 1"
    assert read_table(write(tmp_path / "x.jsonl", '{"a": 1}\n{"a": 2}\n')).place(1) == "line 2"
    assert as_table({"a": [1, 2]}).place(1) == "row 1"
    assert read_table(tmp_path / "x.csv").fingerprint() == as_table({"a": [1, 2], "b": ["x", "y"]}).fingerprint()


def test_a_row_of_a_workbook_is_called_as_the_program_shows_it(tmp_path):
    """Names stand in row 1, or below blank rows; blank rows between count."""
    rows = [["a", "b"], [1, "x"], [], [2, "y"], [None, "z"], [None, None], [4, None]]
    for blank in (0, 3):
        table = read_table(workbook(tmp_path / "x.xlsx", s=[[]] * blank + rows))
        assert table.column("a").tolist()[::3] == [1.0, 4.0]
        assert [table.place(row) for row in range(4)] == [f"sheet row {blank + row}" for row in (2, 4, 5, 7)]
        with pytest.raises(
            InputError, match=f"x.xlsx sheet row {blank + 5} column 'a' must be a number, got a missing"
        ):
            read_numeric(tmp_path / "x.xlsx", ["a"])
    with pytest.raises(InputError, match="sheet 's' has names but no rows"):
        read_table(workbook(tmp_path / "y.xlsx", s=[["a", "b"], [], [None, None]]))


def test_two_columns_of_one_name_are_told_apart(tmp_path):
    table = read_table(write(tmp_path / "x.csv", "a,b,a,a\n1,2,3,4\n"))
    assert table.names == ("a", "b", "a.1", "a.2")
    assert table.notes[0] == "column 2 is called 'a.1', as 'a' is there already"


def test_json_lines(tmp_path):
    path = write(tmp_path / "x.jsonl", '{"a": 1, "b": "x", "d": "2020-01-31"}\n\n{"b": "01", "a": 2.5}\n')
    table = read_table(path)
    assert (table.kind("a"), table.kind("b"), table.kind("d")) == ("number", "category", "date")
    mixed = write(tmp_path / "y.ndjson", '{"a": 1}\n{"a": "x"}\n{"b": true}\n')
    assert read_table(mixed).column("a").tolist() == ["1", "x", None]


@pytest.mark.parametrize("ending", ["json", "jsonl", "json.gz", "export"])
def test_a_list_of_objects(tmp_path, ending):
    rows = b'[\n {"a": 1, "b": "x"},\n {"b": "01", "a": 2.5}, {"b": null}]'
    path = write(tmp_path / f"x.{ending}", gzip.compress(rows) if ending.endswith("gz") else rows)
    assert read_table(path).fingerprint() == as_table({"a": [1, 2.5, None], "b": ["x", "01", None]}).fingerprint()
    with pytest.raises(InputError, match=r"row 1 column 'a' must be a number, got a missing cell"):
        read_numeric(write(tmp_path / "y.json", b'[{"a": 1}, {"a": null}]'))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("[]", "is empty"),
        ('[{"a": 1}', "a list of objects or one object per line.*line 1"),
        ("[1, 2]", "row 0 must be an object"),
        ("[[1, 2], [3, 4]]", "row 0 must be an object"),
        ('{"columns": ["a"], "index": [0, 1], "data": [[1], [2]]}', "line 1 column 'columns' .*orient='records'"),
        ('{"a": {"0": 1, "1": 2}, "b": {"0": 1}}', "line 1 column 'a' must be a single value.*orient='records'"),
        ('{"a": [1, 2], "b": 3}', "line 1 column 'a' must be a single value.*orient='records'"),
    ],
)
def test_json_that_is_no_table(tmp_path, rows, message):
    with pytest.raises(InputError, match=message):
        read_table(write(tmp_path / "x.json", rows))


@pytest.mark.parametrize("orient", ["columns", "records", "index", "table"])
def test_json_of_pandas(tmp_path, orient):
    frame = pd.DataFrame({"a": [1, 2.5, None], "b": ["x", "01", None]})
    table = read_table(write(tmp_path / "x.json", frame.to_json(orient=orient)))
    assert table.select(["a", "b"]).fingerprint() == as_table(frame).fingerprint()
    assert table.names == (("index", "a", "b") if orient == "table" else ("a", "b"))
    assert table.place(1) == "row 1"


def test_lists_and_objects_in_cells(tmp_path):
    """Text as JSON has it, from whichever library; fields of objects within JSON are columns of their own."""
    cells, texts = [[1, 2], None, [3]], ["[1, 2]", None, "[3]"]
    expected = as_table({"a": texts}).fingerprint()
    objects = pd.DataFrame({"a": [np.array([1, 2]), None, np.array([3])]})
    for frame in (
        pl.DataFrame({"a": cells}),
        pa.table({"a": cells}),
        objects,
        {"a": cells},
        {"a": [(1, 2), None, [3]]},
    ):
        assert as_table(frame).fingerprint() == expected
    pl.DataFrame({"a": cells}).write_parquet(path := tmp_path / "x.parquet")
    stream = as_stream(path, block_rows=2)
    assert read_table(path).fingerprint() == stream.table().fingerprint() == expected
    assert [block["a"].to_list() for _, block in stream.blocks(["a"])] == [texts[:2], texts[2:]]
    assert read_table(write(tmp_path / "x.jsonl", '{"a": [1, 2]}\n{"a": null}\n{"a": [3]}\n')).fingerprint() == expected
    odd = pl.DataFrame({"b": [b"Ulm", b"\xff\x00"], "s": [{"x": 1, "y": dt.date(2026, 1, 31)}, None]})
    for frame in (odd, odd.to_arrow()):
        assert as_table(frame).column("b").tolist() == ["Ulm", "ff00"]
        assert as_table(frame).column("s").tolist() == ['{"x": 1, "y": "2026-01-31"}', None]
    home = write(tmp_path / "y.jsonl", '{"home": {"town": "Ulm", "zip": {"code": 7}}}\n{"home": {"town": "Bonn"}}\n')
    assert read_table(home).names == ("home.town", "home.zip.code")
    np.testing.assert_array_equal(read_table(home).column("home.zip.code"), [7, np.nan])
    assert as_table({"a": [{"x", "y"}, {"y", "x"}]}).column("a").tolist() == ['["x", "y"]'] * 2


def test_workbooks(tmp_path):
    rows = [["town", "height", "code"], ["Ulm", 1.5, "01"], ["Köln", None, "7"], ["Bonn", 12.25, "30"]]
    path = workbook(tmp_path / "x.xlsx", people=rows, empty=[], other=[["a"], [1]])
    table = read_table(path)
    assert table.fingerprint() == PLAIN.fingerprint()
    assert table.notes == ("sheet 'people' was read, the first of 3",)
    assert read_table(path, sheet="other").column("a").tolist() == [1.0]
    dated = workbook(tmp_path / "y.xlsx", people=[["born", "pay"], ["31.01.2020", "<=50K"], ["01.02.2020", ">50K"]])
    assert read_table(dated).column("born").tolist() == [1580428800, 1580515200]
    assert read_table(dated).column("pay").tolist() == ["<=50K", ">50K"]
    with pytest.raises(InputError, match="no sheet 'x'; it has people, empty, other"):
        read_table(path, sheet="x")
    with pytest.raises(InputError, match="sheet 'empty' is empty"):
        read_table(path, sheet="empty")


def test_rows_with_gaps_are_refused_or_dropped(tmp_path):
    path = write(tmp_path / "x.csv", "a;b\n1,5;2\n?;3\n4;5\n")
    with pytest.raises(InputError, match="line 3 column 'a' must be a number, got a missing cell; gaps='drop'"):
        read_numeric(path)
    values, names, dropped, *_ = read_numeric(path, gaps="drop")
    assert (values.tolist(), names, dropped) == ([[1.5, 2.0], [4.0, 5.0]], ["a", "b"], 1)
    with pytest.raises(InputError, match="line 3 column 'a' must be a number, got 'x'"):
        read_numeric(write(tmp_path / "y.csv", "a,b\n1,2\nx,3\n"), gaps="drop")

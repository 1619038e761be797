"""Files that programs write and people have: read at the first try, or refused in words."""

import datetime as dt
import json

import numpy as np
import polars as pl
import pytest
from workbooks import workbook

from whosin.errors import InputError
from whosin.tables import as_stream, as_table, read_table, text_blocks

LEFT_OUT = "lines before line 2 were left out: they are no part of the table"
ROW_NAMES = "its first line has a name less than rows have cells: the first column has none"
COUNTED = "its first line counts the columns, and was taken as names"


def day(*parts):
    return dt.datetime(*parts, tzinfo=dt.UTC).timestamp()


TEXTS = {
    "sep line of Excel": ("x.csv", "sep=;\na;b\n1;2\n3;4\n", {"a": [1, 3], "b": [2, 4]}, LEFT_OUT),
    "write.table of R": (
        "x.txt",
        '"age" "town"\n"1" 31 "Bad Ems"\n"2" NA "Ulm"\n',
        {"Unnamed: 0": [1, 2], "age": [31, None], "town": ["Bad Ems", "Ulm"]},
        ROW_NAMES,
    ),
    "write.csv of R": (
        "x.csv",
        '"","age"\n"1",31\n"2",NA\n',
        {"Unnamed: 0": [1, 2], "age": [31, None]},
        None,
    ),
    "separators at the ends of rows": ("x.csv", "a,b\n1,2,\n3,4,\n", {"a": [1, 3], "b": [2, 4]}, None),
    "separators at all ends": ("x.csv", "a,b,\n1,2,\n3,4,\n", {"a": [1, 3], "b": [2, 4]}, None),
    "a separator behind the names": ("x.csv", "a;b;\n1;2\n3;4\n", {"a": [1, 3], "b": [2, 4]}, None),
    "columns that are counted": (
        "x.csv",
        "0,1,2\n5,6,x\n7,8,y\n",
        {"0": [5, 7], "1": [6, 8], "2": ["x", "y"]},
        COUNTED,
    ),
    "percent and money": (
        "x.csv",
        'rate,cost,tax\n12%,"$1,200.50",-$3\n0.5 %,$12.00,$4\n',
        {"rate": [0.12, 0.005], "cost": [1200.5, 12], "tax": [-3, 4]},
        "'%' makes hundredths in 'rate'",
    ),
    "money with decimal commas": (
        "x.csv",
        "cost;share\n1.200,50 €;12,5%\n3 €;1%\n",
        {"cost": [1200.5, 3], "share": [0.125, 0.01]},
        "'€' is left out in 'cost'",
    ),
    "two units": ("x.csv", "cost\n$1234567\n€2345678\n", {"cost": ["$1234567", "€2345678"]}, None),
    "a unit here and none there": ("x.csv", "rate\n1.0000%\n2.00000\n", {"rate": ["1.0000%", "2.00000"]}, None),
    "blanks and apostrophes between thousands": (
        "x.csv",
        "a;b;c\n1 200;1'000'000.5;1\u202f000\n950;2;3\n",
        {"a": [1200, 950], "b": [1000000.5, 2], "c": [1000, 3]},
        "blanks or apostrophes separate thousands in 'a', 'b', 'c'",
    ),
    "telephone numbers": ("x.csv", "p\n+49 170 123\n0171 555\n", {"p": ["+49 170 123", "0171 555"]}, None),
    "words of other programs": (
        "x.csv",
        "a,b\n1,#NULL!\n<NA>,2\n\\N,3\n",
        {"a": [1, None, None], "b": [None, 2, 3]},
        "column 'a': '<NA>' counts as missing in 1 rows",
    ),
    "one word among numbers": (
        "x.csv",
        "a\n" + "".join(f"{i}\n" for i in range(12)) + "refused\n",
        {"a": [*map(str, range(12)), "refused"]},
        "all cells of 'a' are numbers but 'refused': labels, unless that is named as missing",
    ),
    "dates of an odd column decide on the other": (
        "x.csv",
        "d,e\n1/2/2024,1/31/2024\n3/4/2024,2/28/2024\n",
        {"d": [day(2024, 1, 2), day(2024, 3, 4)], "e": [day(2024, 1, 31), day(2024, 2, 28)]},
        None,
    ),
    "comments above": (
        "x.csv",
        "# made, by X\n# of 2026\na,b,c\n1,2,x\n3,4,y\n",
        {"a": [1, 3], "b": [2, 4], "c": ["x", "y"]},
        "lines before line 3 were left out: they are no part of the table",
    ),
    "a title above a blank line": (
        "x.csv",
        "Table 3. Income, by town\n\na,b,c\n1,2,x\n3,4,y\n",
        {"a": [1, 3], "b": [2, 4], "c": ["x", "y"]},
        "lines before line 3 were left out: they are no part of the table",
    ),
    "carets": ("x.csv", "a^b\n1,5^x\n2^y\n", {"a": [1.5, 2], "b": ["x", "y"]}, "its cells are separated by '^'"),
    "thousands between tabs": (
        "x.txt",
        "a\tb\n1,200.50\t1,200\n3\t12,500\n",
        {"a": [1200.5, 3], "b": [1200, 12500]},
        "commas separate thousands in 'a', 'b'",
    ),
    "letters of a currency": (
        "x.csv",
        "a;b\nCHF 1200.50;1.200,50 EUR\nCHF 3;3 EUR\n",
        {"a": [1200.5, 3], "b": [1200.5, 3]},
        "'EUR' is left out in 'b'",
    ),
    "letters of another": (
        "x.csv",
        "a,b\nUSD5,1\nUSD 7.5,2\n",
        {"a": [5.0, 7.5], "b": [1, 2]},
        "'USD' is left out in 'a'",
    ),
    "a number that may stand for none": (
        "x.csv",
        "a,b\n1,-9\n-999,-8\n3,7\n-999,1\n",
        {"a": [1, -999, 3, -999], "b": [-9, -8, 7, 1]},
        "-999 is the only number below 0 in 'a': a number, unless named as missing",
    ),
    "units behind numbers": (
        "x.csv",
        "w;t;v;a\n40 kg;36,5 °C;5km/h;12 m²\n7 kg;37 °C;3km/h;100 m²\n",
        {"w": [40, 7], "t": [36.5, 37], "v": [5, 3], "a": [12, 100]},
        "'kg' is left out in 'w'",
    ),
    "exponents behind numbers are no units": (
        "x.csv",
        "w;a;b;c\n1E2;5 m2;$1E3;1.786,5\n7 854;6 m2;$5;1E2\n3;7 m2;$2E2;2.317,5\n",
        {"w": [100, 7854, 3], "a": [5, 6, 7], "b": [1000, 5, 200], "c": [1786.5, 100, 2317.5]},
        "'m2' is left out in 'a'",
    ),
    "several units": (
        "x.csv",
        "w,b\n40 kg,1\n41 kg,2\n88 lb,3\n",
        {"w": ["40 kg", "41 kg", "88 lb"], "b": [1, 2, 3]},
        "numbers of 'w' have several units ('kg', 'lb'): labels, unless written in one",
    ),
    "other minus signs": (
        "x.csv",
        'a,b,c,d\n(2.50),\u22123,4-,"($1,200)"\n1,5,6,$7\n',
        {"a": [-2.5, 1], "b": [-3, 5], "c": [-4, 6], "d": [-1200, 7]},
        "(1), −1 and 1- are numbers below 0 in 'a', 'b', 'c', 'd'",
    ),
    "a matrix without names": (
        "x.csv",
        "59.0 2.0 32.1\n48.0 1.0  21.6\n",
        {"column 0": [59.0, 48], "column 1": [2.0, 1], "column 2": [32.1, 21.6]},
        "its cells are separated by blanks",
    ),
    "thousands are no matrix": ("x.csv", "1 234 567\n2 345 678\n", {"1 234 567": [2345678]}, None),
    "ranges are no numbers": ("x.csv", "a,b\n0-9,1\n10-,2\n", {"a": ["0-9", "10-"], "b": [1, 2]}, None),
    "thousands of India": (
        "x.csv",
        'a,b\n"12,34,567",1\n"1,23,456.50",2\n',
        {"a": [1234567.0, 123456.5], "b": [1, 2]},
        "commas separate thousands in 'a'",
    ),
    "gaps of MySQL and C": (
        "x.csv",
        "d,x\n0000-00-00,1.#QNAN\n2026-01-31,2\n–,—\n",
        {"d": [None, day(2026, 1, 31), None], "x": [None, 2, None]},
        "column 'd': '0000-00-00' counts as missing in 1 rows",
    ),
    "words are said by their rows": (
        "x.csv",
        "a\n1\n-\n?\n—\n—\n…\nnone\n",
        {"a": [1, *[None] * 6]},
        "column 'a': '—' counts as missing in 2 rows",
    ),
    "moments with a zone in words": (
        "x.csv",
        "d,e\n2026-01-31 10:00:00 UTC,2026-01-31T10:00Z\n2026-02-01 00:00:00 UTC,2026-02-01T00:00+02:00\n",
        {"d": [day(2026, 1, 31, 10), day(2026, 2, 1)], "e": [day(2026, 1, 31, 10), day(2026, 1, 31, 22)]},
        None,
    ),
    "times before and after noon": (
        "x.csv",
        "t,b\n7:30 PM,1\n12:05 AM,2\n",
        {"t": [dt.time(19, 30), dt.time(0, 5)], "b": [1, 2]},
        None,
    ),
    "months in another language": (
        "x.csv",
        "d,n\n1. März 2026,1\n2. Mai 2026,2\n",
        {"d": ["1. März 2026", "2. Mai 2026"], "n": [1, 2]},
        "cells of 'd' look like dates, but not all are, or not in one way: labels, unless written as 2026-01-31",
    ),
    "files that were joined": (
        "x.csv",
        "\ufeffa,b\n1,é\n\ufeff3,x\n",
        {"a": [1, 3], "b": ["é", "x"]},
        None,
    ),
    "names that stand there again": (
        "x.csv",
        "a,b\n" + "".join(f"{i},x\n" for i in range(12)) + "a,b\n",
        {"a": [*map(str, range(12)), "a"], "b": [*["x"] * 12, "b"]},
        "all cells of 'a' are numbers but 'a': labels, unless its line is taken away: names stand there again",
    ),
    "one way to write a letter of a name": ("x.csv", "nu\u0308m,b\n1,2\n", {"n\u00fcm": [1], "b": [2]}, None),
    "dates written in two ways": (
        "x.csv",
        "d,n\n2026-01-31,1\n31.01.2026,2\n",
        {"d": ["2026-01-31", "31.01.2026"], "n": [1, 2]},
        "cells of 'd' look like dates, but not all are, or not in one way: labels, unless written as 2026-01-31",
    ),
    "years of two digits": (
        "x.csv",
        "d,n\n31.01.26,1\n30.01.26,2\n",
        {"d": ["31.01.26", "30.01.26"], "n": [1, 2]},
        "cells of 'd' look like dates, but not all are, or not in one way: labels, unless written as 2026-01-31",
    ),
    "times of day": (
        "x.csv",
        "t,u\n7:30,10:00:00.5\n23:59,?\n",
        {"t": [dt.time(7, 30), dt.time(23, 59)], "u": [dt.time(10, 0, 0, 500000), None]},
        None,
    ),
    "dates that read both ways": (
        "x.csv",
        "d\n1/2/2024\n3/4/2024\n",
        {"d": ["1/2/2024", "3/4/2024"]},
        "dates in 'd' may start with the day or the month: labels, unless written as 2026-01-31",
    ),
}


@pytest.mark.parametrize("case", TEXTS)
def test_text_is_read_at_the_first_try_and_in_blocks(tmp_path, monkeypatch, case):
    name, content, expected, note = TEXTS[case]
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    table = read_table(path)
    assert table.names == tuple(expected)
    for column, cells in expected.items():
        np.testing.assert_array_equal(table.column(column), as_table(pl.DataFrame({"x": cells})).column("x"))
    assert note is None or note in table.notes
    for size in (2**20, 8):
        monkeypatch.setattr(text_blocks, "PIECE", size)
        stream = as_stream(path)
        assert stream.notes == table.notes
        blocks = pl.concat(block for _, block in stream.blocks(list(stream.names)))
        assert as_table(blocks).fingerprint() == table.fingerprint()


@pytest.mark.parametrize(
    ("cells", "days"),
    [
        (["31/12/2024", "1/2/2024"], [(2024, 12, 31), (2024, 2, 1)]),
        (["12/31/2024", "1/2/2024"], [(2024, 12, 31), (2024, 1, 2)]),
        (["2024/12/31", "2024/01/02"], [(2024, 12, 31), (2024, 1, 2)]),
        (["31-12-2024", "01-02-2024"], [(2024, 12, 31), (2024, 2, 1)]),
        (["12-31-2024 10:30", "01-02-2024 00:00"], [(2024, 12, 31, 10, 30), (2024, 1, 2)]),
        (["31-Dec-2024", "02-JAN-2024"], [(2024, 12, 31), (2024, 1, 2)]),
        (["31dec2024", "02jan2024"], [(2024, 12, 31), (2024, 1, 2)]),
        (["31 December 2024", "2 Jan 2024"], [(2024, 12, 31), (2024, 1, 2)]),
        (["December 31, 2024", "Jan 2, 2024"], [(2024, 12, 31), (2024, 1, 2)]),
        (["Dec 31 2024", "January 2 2024"], [(2024, 12, 31), (2024, 1, 2)]),
        (["12/31/2024 1:05:00 PM", "1/2/2024 12:00:00 AM"], [(2024, 12, 31, 13, 5), (2024, 1, 2)]),
        (["31/12/2024 1:05 PM", "1/2/2024 11:00 AM"], [(2024, 12, 31, 13, 5), (2024, 2, 1, 11)]),
    ],
)
def test_dates(tmp_path, cells, days):
    path = tmp_path / "x.csv"
    path.write_text("d\n" + "".join(f'"{cell}"\n' for cell in cells) + "?\n")
    table = read_table(path)
    assert table.kind("d") == "date"
    np.testing.assert_array_equal(table.column("d"), [*(day(*parts) for parts in days), np.nan])
    assert read_table(path, categories=["d"]).column("d").tolist()[0] == cells[0]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        (
            "x.csv",
            b"PK\x03\x04rest",
            "must be separated text, got a workbook or a zip; .xlsx or .zip must be its ending",
        ),
        ("x.csv", b"PAR1rest", "a Parquet file"),
        ("x.txt", b"\x1f\x8brest", "a gzip; .gz must follow"),
        ("x.csv", b"<!DOCTYPE html>\n<p>Log in</p>\n", "a web page or XML, no table"),
        ("x.html", b"<html>\n<p>Log in</p>\n", "a web page or XML, no table"),
        ("x.csv", b'{"a": 1}\n{"a": 2}\n', "JSON; .json or .jsonl must be its ending"),
        ("x.arff", b"% made by X\n@RELATION people\n@attribute a numeric\n", "a file of Weka; save it as CSV there"),
        ("x.xls", b"<html>\n<p>Log in</p>\n", "a web page or XML, no table"),
        ("x.csv", b"About this, and that\nmore\na,b,c\n1,2,3\n", "line 2 must have .* skip_lines=1 .* leaves them out"),
        ("x.dta", b"\0\1\2", "save it as one of these where it was made, as CSV or Parquet, or unpack it"),
        ("x.csv", b'a,b\n1,"x\n2,y\n3,z\n', "line 2 must close its quote, got none to the end of the file"),
        ("x.csv", b"a,b,c\n1,2,3\n4,5,6\n# 2 rows\n", "line 4 .* remove the line if it is no row of the table"),
        ("x.csv", b'a,b\n1,2\n3,"4 \\"and\\", 5"\n', "line 3 .* is written twice, not behind a backslash"),
        ("x.csv", b'a, "b"\n1, "x, y"\n', "line 2 must have quotes right behind the separator, got a blank before"),
        ("x.csv", b"a,b\n1,2\n3,4,,\n", "line 3 .* take away the separators at its end"),
        ("x.csv", b'"a,b"\n"1,2"\n"3,4"\n', "line 1 must have each cell .* got whole lines in quotes, with ','"),
        ("x.csv", "a,b\n北京,1\n上海,2\n".encode("utf-16-le"), "must be text, got 10 zero bytes .*'utf-16-le'"),
        ("x.csv", b"a\tb\n1\t2\n3\t4\t5\n", r"line 3 must have 2 cells like line 1, separated by '\\t', got 3"),
        (
            "x.txt",
            b"age  sex  pay\n31   f    120\n45        80\n",
            "line 3 must have 3 cells .* got 2; a missing cell needs",
        ),
    ],
)
def test_what_is_no_table_says_so(tmp_path, name, content, says):
    path = tmp_path / name
    path.write_bytes(content)
    for read in (read_table, as_stream):
        with pytest.raises(InputError, match=says):
            read(path)


def test_an_endless_number_is_named_as_missing(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a\n1\n-inf\n3\n")
    with pytest.raises(InputError, match=r"line 3 column 'a' .* missing='-inf' counts such cells as missing"):
        read_table(path)
    np.testing.assert_array_equal(read_table(path, missing=["-inf"]).column("a"), [1, np.nan, 3])


SHEETS = {
    "words among numbers": ([["age", "pay"], [31, 1.5], ["?", 2], [45, "n/a"]], [[31, None, 45], [1.5, 2, None]]),
    "a title": ([["All", None, None], [], ["a", "b", "c"], [1, 2, "x"], [3, 4, "y"]], [[1, 3], [2, 4], ["x", "y"]]),
    "groups": (
        [["who", None, "pay"], ["age", "sex", "tax"], [31, "f", 1], [32, "m", 2]],
        [[31, 32], ["f", "m"], [1, 2]],
    ),
    "a nameless index": ([[None, "a", "b"], ["x", "u", "v"], ["y", "w", "u"]], [["x", "y"], ["u", "w"], ["v", "u"]]),
    "one name of two": ([["a", None], [1, 2], [3, 4]], [[1, 3], [2, 4]]),
    "no names": ([[31, "f", 1], [32, "m", 2], [33, "f", 1]], [[31, 32, 33], ["f", "m", "f"], [1, 2, 1]]),
    "numbers as text": ([["a", "zip"], ["1", "01234"], ["2,5", "99999"]], [[1, 2.5], ["01234", "99999"]]),
    "notes below": ([["a", "b"], [1, "x"], [3, "y"], [], ["Source: office"], ["* rounded"]], [[1, 3], ["x", "y"]]),
    "nothing in cells": ([["a", "d"], [1, "2024-01-31"], [2, ""]], [[1, 2], [day(2024, 1, 31), None]]),
    "twice": ([["a", "a", None], [1, 2, None], [3, 4, None]], [[1, 3], [2, 4]]),
}
NAMES = {
    "words among numbers": ("age", "pay"),
    "a title": ("a", "b", "c"),
    "groups": ("age", "sex", "tax"),
    "a nameless index": ("Unnamed: 0", "a", "b"),
    "one name of two": ("a", "Unnamed: 1"),
    "no names": ("column 0", "column 1", "column 2"),
    "numbers as text": ("a", "zip"),
    "notes below": ("a", "b"),
    "nothing in cells": ("a", "d"),
    "twice": ("a", "a.1"),
}


@pytest.mark.parametrize("case", SHEETS)
def test_sheets(tmp_path, capfd, case):
    pytest.importorskip("fastexcel")
    rows, expected = SHEETS[case]
    table = read_table(workbook(tmp_path / "x.xlsx", s=rows))
    assert capfd.readouterr().err == ""
    assert table.names == NAMES[case]
    for column, cells in zip(table.names, expected, strict=True):
        np.testing.assert_array_equal(table.column(column), as_table({"x": cells}).column("x"))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_text_that_is_called_a_workbook_is_read_by_its_content(tmp_path, encoding):
    (tmp_path / "x.xls").write_text("age\ttown\n31\tUlm\n45\tKöln\n", encoding=encoding)
    table = read_table(tmp_path / "x.xls")
    assert table.fingerprint() == as_table({"age": [31, 45], "town": ["Ulm", "Köln"]}).fingerprint()
    assert "it was read as text, by its content" in table.notes


def test_how_a_sheet_is_written_can_be_named(tmp_path):
    pytest.importorskip("fastexcel")
    path = workbook(tmp_path / "x.xlsx", s=[["all of 2024", 7], ["a", "b"], [1, 99], [99, "unknown"]])
    table = read_table(path, skip_lines=1, missing=["99", "unknown"])
    np.testing.assert_array_equal(table.column("a"), [1, np.nan])
    assert table.columns[1].missing.all()
    assert read_table(path, skip_lines=1, missing=["unknown"]).column("b").tolist()[0] == 99
    assert read_table(path, header=False).names == ("column 0", "column 1")
    assert table.notes == ()


def test_words_among_the_numbers_of_json(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"age": 31, "zip": "10115", "town": "NA"}\n{"age": "N/A", "zip": "99999", "town": "Ulm"}\n')
    table = read_table(path)
    np.testing.assert_array_equal(table.column("age"), [31, np.nan])
    assert table.column("zip").tolist() == ["10115", "99999"]
    assert table.column("town").tolist() == ["NA", "Ulm"]
    assert "column 'age': 'N/A' counts as missing in 1 rows" in table.notes
    assert read_table(path, missing=["NA"]).column("town").tolist() == [None, "Ulm"]


def test_endless_numbers_of_json_are_named_by_line(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": 1}\n\n{"a": Infinity}\n')
    with pytest.raises(
        InputError, match=r"line 3 column 'a' must be a finite number, got 'inf'.* missing='inf' counts"
    ):
        read_table(path)
    np.testing.assert_array_equal(read_table(path, missing=["inf"]).column("a"), [1, np.nan])


@pytest.mark.parametrize("encoding", ["utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be"])
def test_wide_letters_without_a_mark(tmp_path, encoding):
    path = tmp_path / "x.csv"
    path.write_bytes("town,n\nKöln,1\nUlm,2\n".encode(encoding))
    assert read_table(path).column("town").tolist() == ["Köln", "Ulm"]
    assert as_stream(path).names == ("town", "n")


def test_one_column_whose_lines_have_commas_is_one_if_the_separator_is_named(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text('"name, town"\n"x, y"\n"z, w"\n')
    assert read_table(path, separator=";").column("name, town").tolist() == ["x, y", "z, w"]
    path.write_text('note\n"x, y"\n"z, w"\n')
    assert read_table(path).column("note").tolist() == ["x, y", "z, w"]


def test_fields_of_json_lines_keep_their_order(tmp_path):
    """polars forgets it beyond 32 fields, anew in every run."""
    path = tmp_path / "x.jsonl"
    names = [f"field {i}" for i in range(60)]
    rows = [dict.fromkeys(names[:50], 1), dict.fromkeys(names, 2.5)]
    path.write_text("\n" + "\n".join(map(json.dumps, rows)))
    assert read_table(path).names == tuple(names)

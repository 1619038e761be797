"""A journal: whole lines only, the lines of one's own run only, and safe with several writers."""

import json
import os
import stat
import subprocess
import sys

import numpy as np
import pytest

from whosin.errors import InputError, InputTypeError
from whosin.parallel.journal import Journal

VALUES = [
    np.array([[1.5, -0.0], [np.inf, np.nan]]),
    np.array(0.1),
    np.zeros((0, 3)),
    np.arange(7.0)[::-2],
    np.array([5e-324, 1e308]),
]


def filled(path, run="run"):
    book = Journal(path, run)
    for number, value in enumerate(VALUES):
        book.write(number, value)
    return book


def same(one, other):
    return one.shape == other.shape and one.tobytes() == np.ascontiguousarray(other).tobytes()


def test_what_is_written_is_read(tmp_path):
    filled(tmp_path / "journal")
    book = Journal(tmp_path / "journal", "run")
    found = dict(book.read(10))
    assert sorted(found) == sorted(book.known) == [0, 1, 2, 3, 4]
    assert all(same(found[number], value) for number, value in enumerate(VALUES))
    assert sorted(dict(book.read(3))) == [0, 1, 2]
    assert stat.S_IMODE((tmp_path / "journal").stat().st_mode) == 0o600


def test_a_file_cut_anywhere_keeps_the_lines_before_and_takes_new_ones(tmp_path):
    path = tmp_path / "journal"
    filled(path)
    content = path.read_bytes()
    ends = [place + 2 for place in range(len(content) - 1) if content[place : place + 2] == b"}\n"]
    assert ends[-1] == len(content)
    for cut in (*range(45), *range(45, len(content), 7), *(end - 1 for end in ends)):
        path.write_bytes(content[:cut])
        book = Journal(path, "run")
        whole = sum(end <= cut + 1 for end in ends)  # the line feed at the end may be missing
        assert len(dict(book.read(10))) == whole
        book.write(9, np.ones(2))
        found = dict(Journal(path, "run").read(10))
        assert len(found) == whole + 1
        assert same(found[9], np.ones(2))


def test_a_changed_byte_costs_its_line_and_no_other(tmp_path):
    path = tmp_path / "journal"
    filled(path)
    content = path.read_bytes()
    for place in range(30, len(content), 5):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        found = dict(Journal(path, "run").read(10))
        assert len(found) >= 3
        assert all(same(value, VALUES[number]) for number, value in found.items())


def test_other_runs_share_the_file_and_are_not_read(tmp_path):
    path = tmp_path / "journal"
    filled(path, "one")
    Journal(path, "two").write(0, np.ones(3))
    assert list(dict(Journal(path, "two").read(9))) == [0]
    assert len(dict(Journal(path, "one").read(9))) == 5
    assert not list(Journal(path, "on").read(9))
    assert not list(Journal(path, "three").read(9))


def test_the_first_of_two_lines_counts(tmp_path):
    book = Journal(tmp_path / "journal", "run")
    book.write(0, 1.0)
    book.write(0, 2.0)
    assert dict(book.read(1)) == {0: 1.0}


WRITER = """
import sys
import numpy as np
from whosin.parallel.journal import Journal
path, run, start = sys.argv[1], sys.argv[2], int(sys.argv[3])
book = Journal(path, run)
for number in range(start, start + 60):
    book.write(number, np.full(200, float(number)))
"""


def test_two_processes_at_once(tmp_path):
    path = tmp_path / "journal"
    commands = [[sys.executable, "-c", WRITER, str(path), *rest] for rest in (("run", "0"), ("run", "60"))]
    processes = [subprocess.Popen(command) for command in commands]
    assert [process.wait(60) for process in processes] == [0, 0]
    found = dict(Journal(path, "run").read(200))
    assert sorted(found) == list(range(120))
    assert all(np.all(value == number) for number, value in found.items())


def test_lines_are_readable(tmp_path):
    filled(tmp_path / "journal")
    lines = [json.loads(line) for line in (tmp_path / "journal").read_text().split("\n") if line]
    assert [line["task"] for line in lines] == [0, 1, 2, 3, 4]
    assert {line["run"] for line in lines} == {"run"}


@pytest.mark.parametrize("content", [b"age,height\n41,1.8\n", b"\n", b"PK\x03\x04", b'\n{"other": 1}\n'])
def test_other_files_are_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "file"
    path.write_bytes(content)
    if content == b"\n":  # the first byte of a line that a crash cut short
        assert not list(Journal(path, "run").read(3))
    else:
        with pytest.raises(InputError, match="is no journal of whosin"):
            Journal(path, "run")
    assert path.read_bytes() == content


def test_places_that_take_no_file(tmp_path):
    with pytest.raises(InputError, match="journal must be a file in a directory that exists"):
        Journal(tmp_path / "missing" / "journal", "run")
    with pytest.raises(InputError, match="journal must be a file"):
        Journal(tmp_path, "run")


def test_a_full_disk_is_an_error_and_costs_that_line_only(tmp_path, monkeypatch):
    book, write = filled(tmp_path / "journal"), os.write
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", lambda handle, line: write(handle, line[:50]))
        with pytest.raises(InputError, match="a whole line"):
            book.write(7, np.ones(3))
    book.write(8, np.ones(3))
    assert sorted(dict(book.read(10))) == [0, 1, 2, 3, 4, 8]


def test_what_is_no_file(tmp_path):
    """A pipe would be waited on for ever."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path):
        with pytest.raises(InputError, match="a folder, a device or a pipe"):
            Journal(path, "run")
    for path in (5, True, b"journal", None):
        with pytest.raises(InputTypeError, match="must be the path of a file"):
            Journal(path, "run")

"""The fuzzing targets in short: random bytes, and right inputs with something changed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .support import FOLDER
from .targets import TARGETS, run, seeds

QUICK = 15
SLOW = {
    **dict.fromkeys(("synthetic", "report", "pictures", "ledger-file", "runs", "cli-population"), 2),
    **dict.fromkeys(("modules", "networks", "page"), 4),
    **dict.fromkeys(("checkpoint", "gan-checkpoint", "models", "protect", "generators", "cli-audit", "cli-protect"), 6),
    **dict.fromkeys(("scores", "audits", "classifiers", "cli-serve", "cli-backend", "population", "page-audit"), 8),
    **dict.fromkeys(("ledger-json", "cli-ledger", "cli-promises", "stream", "tables", "objects"), 12),
}
"""Examples of each target, the fewer the longer one takes; ``make fuzz`` tries thousands."""
NEEDS = {
    **dict.fromkeys(("checkpoint", "gan-checkpoint", "modules", "networks", "generators"), "torch"),
    **dict.fromkeys(("page", "page-audit", "cli-serve"), "fastapi"),
    **dict.fromkeys(("report", "pictures"), "matplotlib"),
    **dict.fromkeys(("ledger-file", "ledger-url", "ledger-json", "cli-ledger"), "sqlalchemy"),
    "objects": "pandas",
}
"""Targets that are left out where a package is missing."""


@pytest.fixture(autouse=True)
def folder(tmp_path_factory, monkeypatch):
    """A folder for the files of all targets."""
    made = tmp_path_factory.getbasetemp() / "fuzz"
    made.mkdir(exist_ok=True)
    monkeypatch.setenv(FOLDER, str(made))


@st.composite
def changed(draw, starts):
    """A right input, cut off, with some bytes replaced, or with some put in."""
    data = bytearray(draw(st.sampled_from(starts)))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(data)))
        kind = draw(st.sampled_from(["cut", "put", "replace"]))
        if kind == "cut":
            del data[place : place + draw(st.integers(1, 8))]
        elif kind == "put":
            data[place:place] = draw(st.binary(max_size=8))
        elif place < len(data):
            data[place] = draw(st.integers(0, 255))
    return bytes(data)


@pytest.mark.parametrize("name", TARGETS)
def test_only_documented_errors_come_out(name):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    starts = seeds(name)
    for start in starts[: SLOW.get(name, QUICK)]:
        run(name, start)

    @settings(max_examples=SLOW.get(name, QUICK), deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.one_of(st.binary(max_size=80), changed(starts)))
    def attempt(data):
        run(name, data)

    attempt()


@pytest.mark.parametrize("header", [b"{'descr': '<f8'(, 'shape': (3, 2), }", b"{'descr': '<f8', }}"])
def test_a_broken_header_of_a_numpy_file(header):
    """Found by fuzzing."""
    padded = header.ljust(117) + b"\n"
    run("npy", b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded + bytes(48))


@pytest.mark.parametrize(("place", "byte"), [(6, 0x40), (6, 0x01)])
def test_a_numpy_archive_of_another_zip(place, byte):
    """Found by hypothesis: an archive that asks for a newer zip. And one that is encrypted."""
    data = bytearray(seeds("npz")[0])
    directory = data.index(b"PK\x01\x02")
    data[directory + place + 2 * (byte == 1)] = byte
    run("npz", bytes(data))


def test_nothing_is_left_behind(tmp_path):
    (tmp_path / "input").write_bytes(bytes(100))
    (tmp_path / "scratch").mkdir()
    environment = {name: value for name, value in os.environ.items() if name != FOLDER}
    subprocess.run(
        [sys.executable, "-m", "tests.fuzz", "cli-protect", "--input", str(tmp_path / "input")],
        env={**environment, "TMPDIR": str(tmp_path / "scratch")},
        cwd=Path(__file__).parents[2],
        check=True,
    )
    assert not list((tmp_path / "scratch").iterdir())

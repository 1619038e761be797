"""The fuzzing targets in short: random bytes, and right inputs with something changed."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .targets import TARGETS, run, seeds

SLOW = {"scores": 8, "ledger-json": 12, "command-line": 15, "audits": 8, "stream": 10, "tables": 15}


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
    starts = seeds(name)
    for start in starts:
        run(name, start)

    @settings(max_examples=SLOW.get(name, 40), deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.one_of(st.binary(max_size=80), changed(starts)))
    def attempt(data):
        run(name, data)

    attempt()


@pytest.mark.parametrize("header", [b"{'descr': '<f8'(, 'shape': (3, 2), }", b"{'descr': '<f8', }}"])
def test_a_broken_header_of_a_numpy_file(header):
    """Found by fuzzing."""
    padded = header.ljust(117) + b"\n"
    run("npy", b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded + bytes(48))

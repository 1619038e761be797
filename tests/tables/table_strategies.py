"""Tables for hypothesis: columns of every kind, as plain Python lists."""

import datetime as dt
from itertools import pairwise

from hypothesis import strategies as st

WORDS = st.text(st.sampled_from(list("aäßZ,;\"'\t -\n漢🎲")), min_size=1, max_size=5).filter(
    lambda word: word.strip() and word[0] != "\n"
)

CELLS = {
    "whole": st.integers(-(2**53) + 1, 2**53 - 1),
    "real": st.floats(allow_nan=False, allow_infinity=False),
    "few": st.sampled_from([0, 1, 2.5]),
    "text": WORDS,
    "few_words": st.sampled_from(["red", "green", " red"]),
    "truth": st.booleans(),
    "day": st.dates(dt.date(1700, 1, 1), dt.date(2200, 12, 31)),
    "moment": st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2200, 12, 31)),
}
SOME_ROWS = st.integers(1, 8)


@st.composite
def columns(draw, rows=SOME_ROWS, kinds=tuple(CELLS), narrowest=2):
    """A dictionary of columns of one length, with missing cells; every column has at least one cell."""
    n = draw(rows)
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=narrowest, max_size=5))
    made = {}
    for i, kind in enumerate(chosen):
        cells = draw(st.lists(st.none() | CELLS[kind], min_size=n, max_size=n))
        if all(cell is None for cell in cells):
            cells[0] = draw(CELLS[kind])
        made[f"{kind} {i}"] = cells
    return made


@st.composite
def three_tables(draw, kinds=tuple(CELLS)):
    """Three dictionaries with the same columns."""
    sizes = draw(st.lists(st.integers(1, 6), min_size=3, max_size=3))
    pooled = draw(columns(rows=st.just(sum(sizes)), kinds=kinds, narrowest=1))
    ends = [0, sizes[0], sizes[0] + sizes[1], sum(sizes)]
    return [{k: v[a:b] for k, v in pooled.items()} for a, b in pairwise(ends)]

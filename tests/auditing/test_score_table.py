"""Scores in a table: the same numbers as from arrays, and every wrong table named."""

import numpy as np
import polars as pl
import pytest

import whosin as wi
from whosin.auditing.scores import audit_score_table
from whosin.errors import InputError
from whosin.tables import as_table

RNG = np.random.default_rng(0)
INSIDE = np.repeat([1, 0], 60)
SCORE = RNG.normal(INSIDE, 1.0)


def table(**columns):
    return as_table(pl.DataFrame({"member": INSIDE, "score": SCORE, **columns}))


def test_the_same_as_from_arrays():
    found = audit_score_table(table(), rng=1)
    assert found.advantage == wi.audit(SCORE[INSIDE == 1], SCORE[INSIDE == 0], names=["score"], rng=1).advantage


def test_truth_in_words_and_groups():
    words = np.where(INSIDE == 1, " Yes", "no")
    group = np.tile(["a", "b"], 60)
    found = audit_score_table(table(word=words, group=group), "word", columns=["score"], groups=["group"], rng=1)
    assert found.members == 60
    assert {row.name for row in found.groups} == {"group=a", "group=b"}


WRONG = [
    ({}, {"member_column": "score"}, "takes 1 or 0 in column 'score'"),
    ({}, {"columns": ["member"]}, "columns takes scores, got 'member'"),
    ({"text": ["x"] * 120}, {}, "takes columns of numbers as scores, got text; name the columns"),
    ({}, {"groups": ["score"]}, "takes columns of numbers as scores, got none"),
    ({"other": [1.0] * 119 + [None]}, {}, "a score in every row of column 'other', got none in row 120"),
]


@pytest.mark.parametrize(("columns", "options", "words"), WRONG)
def test_wrong_tables(columns, options, words):
    with pytest.raises(InputError, match=words):
        audit_score_table(table(**columns), **options)

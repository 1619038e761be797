"""Scores in a table: the same numbers as from arrays, and every wrong table named."""

import numpy as np
import polars as pl
import pytest

import whosin as wi
from whosin.auditing.measuring.score_table import audit_score_table
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


IDS = {
    "different in every row": np.random.default_rng(1).permutation(120) * 7 + 1000,
    "a running number": np.arange(1, 121),
}


@pytest.mark.parametrize("why", IDS)
@pytest.mark.parametrize("kind", [int, float, str])
def test_names_of_rows_are_no_scores(why, kind):
    """An identifier that tells members from others without fail, beside a score that says nothing."""
    ids = IDS[why] if why == "a running number" else np.sort(IDS[why])
    noise = np.random.default_rng(2).normal(size=120)
    given = as_table(pl.DataFrame({"member": INSIDE, "id": ids.astype(kind), "score": noise}))
    found = audit_score_table(given)
    assert found.verdict.state == "none found"
    assert list(found.queries) == ["score"]
    said = "different in every row" if kind is str else why
    assert f"column 'id' was left out: it is {said} (name it to use it)" in found.assumes
    if kind is not str:
        assert audit_score_table(given, columns=["id"]).verdict.state == "leak"


@pytest.mark.parametrize("name", ["", "index", "Unnamed: 0"])
def test_the_index_of_a_data_frame_is_no_score(name):
    """Two frames joined: the index starts again, and the shorter side has only small numbers."""
    inside = np.repeat([1, 0], [30, 90])
    index = np.concatenate([np.arange(30), np.arange(90)])
    given = {"member": inside, "score": np.random.default_rng(3).normal(size=120)}
    found = audit_score_table(as_table(pl.DataFrame({name: index[::-1], **given, "member": inside[::-1]})))
    assert list(found.queries) == ["score"]
    assert any(line.startswith(f"column {name!r} was left out: it is the index") for line in found.assumes)
    again = audit_score_table(as_table(pl.DataFrame({"number": index, **given})))
    assert list(again.queries) == ["score"]


def test_scores_stay_scores():
    """Counts that repeat, fractions that do not, and different whole numbers of few rows."""
    counts = np.random.default_rng(4).integers(30, size=120)
    assert list(audit_score_table(table(counts=counts)).queries)[:2] == ["score", "counts"]
    few = as_table(pl.DataFrame({"member": [1, 1, 0, 0], "score": [9, 4, 7, 1]}))
    assert audit_score_table(few).query == "score"


def test_nothing_but_names_of_rows():
    with pytest.raises(InputError, match=r"got none; column 'id' was left out: .*; name the columns"):
        audit_score_table(as_table(pl.DataFrame({"member": INSIDE, "id": IDS["different in every row"]})))


def test_answers_within_rounding_of_each_other():
    """No spread that a float could show: there is an answer all the same."""
    members = 1.0 + 1e-16 * np.arange(60)
    given = as_table(pl.DataFrame({"member": INSIDE, "score": np.concatenate([members, members + 3e-16])}))
    assert audit_score_table(given).to_dict()["point_estimates"].keys() == {"plug_in", "cross_fit"}


WRONG = [
    ({}, {"member_column": "score"}, "row 0 column 'score' must be 1 or 0"),
    ({}, {"columns": ["member"]}, "columns must be scores, got 'member'"),
    ({"text": ["x"] * 120}, {}, "must have columns of numbers as scores, got text; name the columns"),
    ({}, {"groups": ["score"]}, "must have columns of numbers as scores, got none"),
    ({"typo": [f"{n / 7}" for n in range(119)] + ["0,5x"]}, {}, "row 119 column 'typo' must be a number as most of"),
    ({"other": [1.0] * 119 + [None]}, {}, "row 119 column 'other' must have a score, got a missing cell"),
]


@pytest.mark.parametrize(("columns", "options", "words"), WRONG)
def test_wrong_tables(columns, options, words):
    with pytest.raises(InputError, match=words):
        audit_score_table(table(**columns), **options)

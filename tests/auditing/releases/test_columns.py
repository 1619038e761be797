"""The column that gives people away is named, and what cannot be blamed is not."""

import numpy as np
import polars as pl
import pytest

import whosin as wi
from whosin.auditing.releases.columns import ComparedColumns


def compared(inside, outside, released, numeric):
    names = tuple(f"c{i}" for i in range(len(numeric)))
    both = [np.concatenate(pair) for pair in zip(inside, outside, strict=True)]
    return ComparedColumns(names, both, released, numeric, len(inside[0]))


@pytest.mark.parametrize("numeric", [True, False])
def test_a_release_that_repeats_one_column_is_given_away_by_it(numeric):
    rng = np.random.default_rng(0)
    number, sex = [rng.permutation(10_000)[:300].astype(float) for _ in range(3)], rng.integers(0, 2, (3, 300)) * 1.0
    if numeric:
        number = [values / 100 for values in number]
    columns = compared((number[0], sex[0]), (number[1], sex[1]), (number[0], sex[2]), (numeric, False))
    found = columns.revealing(np.random.default_rng(0))
    assert found.advantage > 0.4
    assert found.lost[0] > 0.35
    assert found.lost[1] < 0.05
    assert found.to_dict()["columns"][0]["name"] == "c0"
    assert found.to_frame()["name"][0] == "c0"
    assert str(found).startswith("hiding c0 costs")


def test_missing_numbers_agree_with_each_other_only():
    nothing = np.array([np.nan, 1.0])
    columns = compared((nothing, nothing), ([5.0, 5.0], [5.0, 5.0]), (nothing, nothing), (True, True))
    found = columns.revealing(np.random.default_rng(0))
    assert found.advantage == 1.0
    assert found.lost == (0.0, 0.0)


@pytest.mark.parametrize("width", [1, 101])
def test_one_column_and_very_many_are_not_looked_at(width):
    one = [np.zeros(3)] * width
    assert compared(one, one, one, [True] * width).revealing(np.random.default_rng(0)) is None


def test_an_audit_blames_a_column_only_for_a_leak():
    rng = np.random.default_rng(1)

    def people():
        return pl.DataFrame({"id": rng.permutation(10**6)[:200], "sex": rng.choice(["f", "m"], 200)})

    train, holdout = people(), people()
    leaky = wi.audit_synthetic(train, holdout, train.with_columns(sex=pl.Series(rng.choice(["f", "m"], 200))))
    assert leaky.columns == ("id", "sex")
    assert leaky.revealing_columns.to_dict()["columns"][0]["name"] == "id"
    assert leaky.to_dict()["revealing_columns"]["members"] == 200
    assert wi.audit_synthetic(train, holdout, people()).revealing_columns is None

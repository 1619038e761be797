"""The experiment: what goes in, how it is coded, and the two ways to draw from it."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binomtest

from whosin.auditing import Experiment
from whosin.errors import InputError, InputTypeError

NAN = float("nan")


@pytest.mark.parametrize(
    ("members", "kind"),
    [
        ([1, 0, 1], "discrete"),
        ([True, False], "discrete"),
        (["a", "b"], "discrete"),
        (np.array(["a", None, "b"], dtype=object)[[0, 2]], "discrete"),
        ([1.0, 2.0], "discrete"),
        ([0.5, 2.0], "continuous"),
        (np.arange(100), "continuous"),
        ([[0, 1], [1, 1]], "discrete"),
        ([np.inf, 1.5], "continuous"),
    ],
)
def test_auto_kind(members, kind):
    assert Experiment(members, members).kind == kind


def test_symbols_of_several_queries_are_joint():
    inside, outside = Experiment([["a", "x"], ["b", "x"]], [["a", "y"], ["a", "x"]]).columns
    codes = np.concatenate([inside, outside]).ravel()
    assert codes[0] == codes[3]
    assert len(set(codes)) == 3
    assert sorted(set(codes)) == [0, 1, 2]


def test_infinities_are_the_largest_numbers():
    inside, _ = Experiment([np.inf, -np.inf, 0.5], [1.5]).columns
    assert np.all(np.isfinite(inside))
    assert np.argsort(inside.ravel()).tolist() == [1, 2, 0]


def test_names():
    assert Experiment([0.1], [0.2]).names == ("query",)
    assert Experiment([[0.1, 0.2]], [[0.2, 0.3]]).names == ("query 1", "query 2")
    assert Experiment([0.1], [0.2], names="loss").names == ("loss",)
    frame = pd.DataFrame({"loss": [0.1], "margin": [0.2]})
    assert Experiment(frame, frame).names == ("loss", "margin")
    assert Experiment(pl.Series([0.1]), pl.Series([0.2])).columns[0].shape == (1, 1)


@pytest.mark.parametrize(
    ("members", "non_members", "options", "error", "words"),
    [
        ([], [1.0], {}, InputError, "members must have at least one record"),
        ([1.0], [], {}, InputError, "non_members must have at least one record"),
        ([1.0, NAN, 2.0, NAN], [1.0], {}, InputError, r"members .* rows \[1, 3\]"),
        ([1.0], [NAN] * 7, {}, InputError, r"non_members .* rows \[0, 1, 2, 3, 4\], …"),
        (np.array(["a", None], dtype=object), ["a"], {}, InputError, r"rows \[1\]"),
        ([[1.0, 2.0]], [[1.0]], {}, InputError, r"same number of queries.*\(1, 2\).*\(1, 1\)"),
        ([[1.0]], [1.0], {}, InputError, "same number of queries"),
        ([[[1.0]]], [1.0], {}, InputError, r"shape \(N,\) or \(N, q\)"),
        (3.0, [1.0], {}, InputError, r"shape \(N,\)"),
        ([[1.0], [1.0, 2.0]], [1.0], {}, InputError, "ragged"),
        (["a"], [1.0], {}, InputTypeError, "one kind"),
        (["a"], ["b"], {"kind": "continuous"}, InputTypeError, "continuous"),
        ([1j], [1.0], {}, InputTypeError, "complex"),
        (np.array(["2020-01-01"], dtype="M8[D]"), [1.0], {}, InputTypeError, "datetime"),
        ([1.0], [1.0], {"kind": "fuzzy"}, InputError, "kind"),
        ([1.0], [1.0], {"prior": 0.0}, InputError, "prior"),
        ([1.0], [1.0], {"prior": 1.0}, InputError, "prior"),
        ([1.0], [1.0], {"names": ("a", "b")}, InputError, "names must have 1"),
        ([[1.0, 2.0]], [[1.0, 2.0]], {"names": ("a", "a")}, InputError, "names must have 2 different"),
    ],
)
def test_bad_input(members, non_members, options, error, words):
    with pytest.raises(error, match=words):
        Experiment(members, non_members, **options)


def test_draw_tosses_a_coin():
    """Experiment 1: members with probability p, uniform on each side, both with replacement."""
    answers, labels = Experiment([1.5, 2.5], [0.5], prior=0.2).draw(4000, rng=0)
    assert set(np.unique(labels)) == {-1, 1}
    assert binomtest(int(np.sum(labels == 1)), 4000, 0.2).pvalue > 1e-6
    assert np.all(answers[labels == -1] == 0.5)
    inside = answers[labels == 1]
    assert binomtest(int(np.sum(inside == 1.5)), len(inside), 0.5).pvalue > 1e-6


def test_draw_fixed_numbers():
    """Experiment 2: labels +1 first, then -1 (the printed labels are wrong)."""
    answers, labels = Experiment(["a"], ["b"], prior=0.3).draw(10, fixed=True, rng=0)
    assert labels.tolist() == [1] * 3 + [-1] * 7
    assert answers.tolist() == ["a"] * 3 + ["b"] * 7
    with pytest.raises(InputError, match="size"):
        Experiment([1.0], [2.0]).draw(0)


@pytest.mark.parametrize("kind", ["string", "Int64", "object"])
def test_missing_answers_of_pandas(kind):
    with pytest.raises(InputError, match=r"got NaN or None in rows \[1\]"):
        Experiment(pd.Series(["1", pd.NA, "2"] if kind != "Int64" else [1, pd.NA, 2], dtype=kind), ["1", "2"])

"""Certificates of one drawn half add up: against the exact total variation of pairs of releases in small pools."""

import itertools
import math

import numpy as np
import pytest
from scipy.special import ndtr

import whosin as wi
from whosin.errors import ImplicationError, InputTypeError


def exact_eta(columns, scales):
    """½·TV of two noisy sums of one uniform half between "x in" and "x out", the worst record, on a grid of outputs."""
    n = len(columns[0])
    halves = list(itertools.combinations(range(n), n // 2))
    centres = np.array([[np.mean([column[i] for i in half]) for column in columns] for half in halves])
    axes = [np.linspace(c.min() - 7 * s, c.max() + 7 * s, 161) for c, s in zip(centres.T, scales, strict=True)]
    cells = [
        np.diff(ndtr((np.append(a, a[-1] + a[1] - a[0]) - c[:, None]) / s), axis=1)
        for a, c, s in zip(axes, centres.T, scales, strict=True)
    ]
    laws = np.einsum("hi,hj->hij", *cells)
    found = 0.0
    for x in range(n):
        inside = np.array([x in half for half in halves])
        found = max(found, 0.25 * np.abs(laws[inside].mean(axis=0) - laws[~inside].mean(axis=0)).sum())
    return found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("bounds", [(None, None), (None, 1.0), (1.0, 1.0)])
def test_two_means_of_one_half_stay_below_the_sum(seed, bounds):
    rng = np.random.default_rng(seed)
    columns = rng.uniform(0.0, 1.0, (2, 6)) ** (1 + seed)
    certificates = []
    for column, bound in zip(columns, bounds, strict=True):
        if bound is None:
            released = wi.protect("mean", column[:, None], eta=0.08, rng=0)
        else:
            released = wi.protect(
                "mean", column[:, None], eta=0.08, adjacent_bound=(column.max() - column.min()) / 3, rng=0
            )
        certificates.append(released.certificate)
    together = certificates[0].compose(certificates[1], same_draw=True)
    assert together.mip.eta <= 0.16 + 1e-12
    exact = exact_eta(columns, [float(np.max(c.noise_scale)) for c in certificates])
    assert exact <= together.mip.eta + 1e-6
    if bounds == (1.0, 1.0):
        assert together.way == "squares"
        assert together.mip.eta == pytest.approx(ndtr(math.sqrt(2) * 0.20189347914185088) - 0.5, rel=1e-3)


def certificate(**options):
    records = np.arange(8.0)[:, None]
    return wi.protect("mean", records, eta=0.05, rng=0, **options).certificate


def test_what_has_no_total_says_why():
    average, sure = certificate(), certificate(adjacent_bound=2.0)
    with pytest.raises(ImplicationError, match="drawn anew"):
        average.compose(average, same_draw=False)
    with pytest.raises(ImplicationError, match="every pair of halves"):
        sure.compose(average, same_draw=True, adaptive=True)
    assert average.compose(sure, same_draw=True, adaptive=True).mip.eta == pytest.approx(0.1, rel=1e-9)
    other = certificate(train_fraction=0.25)
    with pytest.raises(ImplicationError, match="half of the pool"):
        other.compose(other, same_draw=True)
    with pytest.raises(ImplicationError, match="same pool"):
        average.compose(wi.protect("mean", np.arange(10.0)[:, None], eta=0.05, rng=0).certificate, same_draw=True)
    with pytest.raises(InputTypeError, match="certificate"):
        average.compose(wi.MIP(0.1), same_draw=True)


def test_a_total_goes_into_the_ledger_as_one_release(tmp_path):
    together = certificate().compose(certificate(), same_draw=True).compose(certificate(), same_draw=True)
    assert len(together.parts) == 3
    assert together.mip.eta == pytest.approx(0.15, rel=1e-9)
    assert together.advantage == pytest.approx(0.3, rel=1e-9)
    book = wi.Ledger(tmp_path / "ledger.db")
    book.add("three means", dataset="pool", certificate=together)
    total = book.check(dataset="pool")
    assert total.advantage == pytest.approx(0.3, rel=1e-9)
    book.add("a fourth, apart", dataset="pool", certificate=certificate())
    assert not book.check(dataset="pool").bounded
    assert "0.15" in str(together)
    assert together.to_dict()["explanation"] == together.explain()
    assert together.to_dict()["parts"] == [part.to_dict() for part in together.parts]

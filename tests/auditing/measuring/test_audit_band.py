"""The band around the measured curve: it holds everywhere at once, and is narrow where it matters."""

import numpy as np
import pytest
from scipy.stats import binomtest

import whosin as wi
from whosin.auditing import audit
from whosin.auditing.measuring.attack import collect_evidence
from whosin.auditing.measuring.band import _Limits, _upper_curve, band_of
from whosin.auditing.measuring.experiment import Experiment


def test_covers_a_known_curve():
    """Scores of N(1, 1) and N(0, 1) as they are: the curve of GaussianDP(1), at every FPR, at a level of 20 %."""
    truth = wi.GaussianDP(1.0).roc
    grid = np.concatenate([np.geomspace(1e-6, 0.5, 200), 1 - np.geomspace(1e-6, 0.5, 200)])
    exact = truth.tpr(grid)
    rng = np.random.default_rng(0)
    high = low = 0
    for _ in range(120):
        experiment = Experiment(rng.normal(1, 1, 200), rng.normal(0, 1, 150))
        evidence = collect_evidence(experiment, rng)
        candidate = next(c for c in evidence.candidates if c.rule == "high")
        band = band_of(evidence, candidate, 0.2)
        high += np.any(band.upper.tpr(grid) < exact - 1e-9)
        low += np.any(band.lower.tpr(grid) > exact + 1e-9)
    for misses in (high, low):
        assert binomtest(int(misses), 120, 0.1, alternative="greater").pvalue > 1e-6


def test_covers_the_curve_of_symbols():
    r, q = np.array([0.5, 0.3, 0.1, 0.1]), np.array([0.1, 0.3, 0.2, 0.4])
    rng = np.random.default_rng(1)
    misses = 0
    for _ in range(120):
        experiment = Experiment(rng.choice(4, 120, p=r), rng.choice(4, 200, p=q), kind="discrete")
        evidence = collect_evidence(experiment, rng)
        candidate = next(c for c in evidence.candidates if c.rule == "cells")
        order = np.argsort(-candidate.ratios[:4], kind="stable")
        truth = wi.Roc(np.cumsum(q[order]).clip(0, 1), np.cumsum(r[order]).clip(0, 1)).hull()
        band = band_of(evidence, candidate, 0.2)
        misses += not (band.upper.dominates(truth, 1e-9) and truth.dominates(band.lower, 1e-9))
    assert binomtest(int(misses), 120, 0.2, alternative="greater").pvalue > 1e-6


def test_between_two_thresholds_the_upper_limit_is_that_of_the_next():
    """Three thresholds with exact rates: right of FPR .2 the truth may be as high as the next threshold's TPR, .9."""
    exact = np.array([0.0, 0.5, 0.9]), np.array([0.0, 0.2, 0.6])
    curve = _upper_curve(_Limits(exact[0], exact[0], exact[1], exact[1]))
    assert curve.tpr(0.2) == pytest.approx(0.9)
    assert curve.tpr(0.6) == pytest.approx(1.0)
    assert curve.tpr(0.0) == pytest.approx(0.5)


def test_narrow_at_low_rates():
    """At FPR 0 Dvoretzky-Kiefer-Wolfowitz alone leaves 0.04 for 3,333 records; the exact limits leave less."""
    rng = np.random.default_rng(2)
    a = audit(rng.normal(0, 1, 5000), rng.normal(0, 1, 5000), rng=0)
    assert a.band.upper.tpr(0.0) < 0.012
    assert a.band.upper.tpr(0.5) - a.band.lower.tpr(0.5) < 0.16


def test_shape():
    rng = np.random.default_rng(3)
    band = audit(rng.normal(1, 1, 300), rng.normal(0, 1, 300), rng=0).band
    assert band.upper.is_concave
    assert band.lower.is_concave
    assert band.confidence_level == pytest.approx(0.95)
    assert set(band.to_dict()) == {"lower", "upper", "confidence_level"}


def test_measured_curve_lies_inside():
    rng = np.random.default_rng(4)
    a = audit(rng.normal(1, 1, 900), rng.normal(0, 1, 900), rng=0)
    assert a.band.upper.dominates(a.roc, 1e-12)
    assert a.roc.hull().dominates(a.band.lower, 1e-12)
    held = a._evidence.held_out(a.attack.candidate.view)
    for fpr in (0.05, 0.3):
        threshold = np.quantile(held.non_members, 1 - fpr)
        assert a.roc.tpr(fpr) == pytest.approx(np.mean(held.members >= threshold), abs=0.02)

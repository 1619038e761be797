"""Any metric, measured: linear ones, ratios by algorithm 3, constrained PPV and NPV, and what is refused."""

import numpy as np
import pytest
from scipy.stats import binomtest, norm

import whosin as wi
from whosin import risks
from whosin.auditing import audit
from whosin.auditing.measuring.metrics import _at_fpr, _ratio, _turns
from whosin.errors import InputError

F1 = wi.risks.RatioMetric(a=(0, 2, 0, 0, 0), b=(0, 2, 1, 1, 0), name="F1")
RNG = np.random.default_rng(0)
AUDIT = audit(RNG.normal(1, 1, 1500), RNG.normal(0, 1, 1500), prior=0.3, rng=0)
TRUTH = wi.GaussianDP(1.0)


@pytest.mark.parametrize(
    "metric",
    [
        "accuracy",
        "advantage",
        "advantage_at_prior",
        "am",
        risks.accuracy,
        risks.am,
        F1,
        risks.weighted_accuracy(0.8),
        risks.weighted_accuracy(0.2),
        risks.RatioMetric((0, -1, 0, 0, -1), (1, 0, 0, 0, 0), name="minus accuracy"),
        risks.ppv_at_fpr(0.05),
        risks.tpr_at_fpr(0.05),
    ],
)
def test_covers_the_truth(metric):
    found = AUDIT.risk(metric)
    assert found.lower <= found.estimate <= found.upper
    assert found.lower <= TRUTH.risk(metric, 0.3) <= found.upper
    assert found.upper - found.lower < 0.4
    assert found.about
    assert found.confidence_level == pytest.approx(0.95)


def test_accuracy_is_the_advantage_rescaled():
    accuracy, advantage = AUDIT.risk("accuracy"), AUDIT.advantage_at_prior
    for side in ("estimate", "lower", "upper"):
        assert getattr(accuracy, side) == pytest.approx((1 + getattr(advantage, side)) / 2, rel=1e-12)
    as_ratio = AUDIT.risk(risks.RatioMetric((0, 1, 0, 0, 1), (1, 0, 0, 0, 0)))
    assert as_ratio.lower == pytest.approx(accuracy.lower)
    assert as_ratio.upper == pytest.approx(accuracy.upper)


def test_headline_is_the_metric_asked_for():
    x, y = RNG.normal(1, 1, 300), RNG.normal(0, 1, 300)
    a = audit(x, y, metric="am", rng=0)
    assert a.headline == a.risk("am")
    assert audit(x, y, metric=F1, rng=0).to_dict()["metric"] == "F1"


def test_coverage_of_f1():
    """Algorithm 3 with a rectangle of Clopper-Pearson limits below and the band above, at a level of 20 %."""
    truth = TRUTH.risk(F1, 0.4)
    rng = np.random.default_rng(1)
    misses = 0
    for run in range(32):
        found = audit(rng.normal(1, 1, 150), rng.normal(0, 1, 150), prior=0.4, confidence_level=0.8, rng=run).risk(F1)
        misses += not found.lower <= truth <= found.upper
    assert binomtest(misses, 32, 0.2, alternative="greater").pvalue > 1e-4


@pytest.mark.parametrize("prior", [0.1, 0.5])
def test_ppv_of_noise_is_the_prior(prior):
    """Pure noise: every attack has PPV p. The unconstrained maximum would be far more."""
    rng = np.random.default_rng(2)
    misses = 0
    for run in range(24):
        a = audit(rng.normal(size=300), rng.normal(size=300), prior=prior, rng=run, confidence_level=0.8)
        misses += not a.risk("ppv", min_share=0.05).lower <= prior <= a.risk("ppv", min_share=0.05).upper
        found = a.risk("npv", min_share=0.05)
        misses += not found.lower <= 1 - prior <= found.upper
    assert binomtest(misses, 48, 0.2, alternative="greater").pvalue > 1e-4


def test_ppv_at_an_fpr():
    found = AUDIT.risk("ppv", fpr=0.05)
    at = AUDIT.tpr_at(0.05)
    assert found.estimate == pytest.approx(0.3 * at.estimate / (0.3 * at.estimate + 0.7 * at.fpr.estimate), rel=1e-12)
    assert found.lower == pytest.approx(0.3 * at.lower / (0.3 * at.lower + 0.7 * at.fpr.upper), rel=1e-9)
    assert "not every attacker" in found.about


def test_ppv_when_nobody_is_accused():
    a = audit([0.5] * 40, [0.5] * 40, kind="continuous", rng=0)
    found = a.risk("ppv", fpr=0.01)
    assert (found.estimate, found.lower, found.upper) == (0.5, 0.0, 1.0)


def test_whole_share():
    assert AUDIT.risk("ppv", min_share=1.0).estimate == pytest.approx(0.3, abs=0.005)


@pytest.mark.parametrize("metric", ["tpr", "tnr"])
def test_degenerate_rates_are_refused(metric):
    with pytest.raises(InputError, match="everybody: use tpr_at"):
        AUDIT.risk(metric)


@pytest.mark.parametrize(
    "metric",
    ["ppv", "npv", "posterior", risks.ppv, risks.npv, risks.RatioMetric((0, 1, 0, 0, 0), (0, 1, 1, 0, 0), name="mine")],
)
def test_ppv_needs_a_constraint(metric):
    with pytest.raises(InputError, match="min_share"):
        AUDIT.risk(metric)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: AUDIT.risk("loudness"), "metric must be one of"),
        (lambda: AUDIT.risk(3), "metric must be one of"),
        (lambda: AUDIT.risk("advantage", fpr=0.1), "fpr and min_share go with"),
        (lambda: AUDIT.risk("ppv", fpr=0.1, min_share=0.1), "one of them at a time"),
        (lambda: AUDIT.risk("ppv", fpr=1.5), "fpr"),
        (lambda: AUDIT.risk("ppv", min_share=0.0), "min_share"),
        (lambda: AUDIT.tpr_at(-0.1), "fpr"),
        (lambda: AUDIT.tpr_at(float("nan")), "fpr"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(InputError, match=words):
        call()


def test_tpr_at_low_fpr():
    """The realised FPR is near the one asked for, and both rates are covered together."""
    rng = np.random.default_rng(3)
    misses = 0
    for run in range(30):
        a = audit(rng.normal(2, 1, 600), rng.normal(0, 1, 600), rng=run, confidence_level=0.8)
        at = a.tpr_at(0.01)
        attack = a._evidence.choose(_at_fpr(0.01))
        if attack.candidate.rule != "high" or not at.measurable:
            continue
        assert at.estimate == attack.tpr
        tpr, fpr = norm.sf(attack.threshold - 2), norm.sf(attack.threshold)
        misses += not (at.lower <= tpr <= at.upper and at.fpr.lower <= fpr <= at.fpr.upper)
    assert binomtest(misses, 30, 0.2, alternative="greater").pvalue > 1e-4
    assert at.target == 0.01
    assert set(at.to_dict()) >= {"estimate", "lower", "upper", "confidence_level", "target", "fpr"}
    assert "asked for 0.01" in str(at)


def test_tpr_at_the_ends():
    assert AUDIT.tpr_at(1.0).estimate > 0.99
    assert not AUDIT.tpr_at(0.0).measurable
    assert "infinitely many" in str(AUDIT.tpr_at(0.0))
    assert "at least 1/4.94066e-324" in str(AUDIT.tpr_at(5e-324))  # 1/fpr is no float


def test_rates_that_so_few_outsiders_cannot_show():
    """With n outsiders, no rate below 1/n: no number stands under its label, and no limit is claimed."""
    rng = np.random.default_rng(4)
    a = audit(rng.normal(2, 1, 150), rng.normal(0, 1, 150), rng=0)
    outsiders = a._evidence.non_members
    assert a.tpr_at(1.0 / outsiders).measurable
    at = a.tpr_at(0.99 / outsiders)
    assert not at.measurable
    assert np.isnan(at.estimate)
    assert (at.lower, at.upper) == (0.0, 1.0)
    assert f"not measurable with {outsiders} outsiders" in str(at)
    assert at.to_dict()["estimate"] is None


def test_a_denominator_that_may_vanish_is_refused():
    """.1 + TP - FP is negative for an attacker who accuses many outsiders: its ratio has no limits there."""
    odd = wi.risks.RatioMetric(a=(0, 1, 0, 0, 0), b=(0.1, 1, -1, 0, 0), name="odd")
    with pytest.raises(InputError, match="denominator that is positive for every attacker"):
        AUDIT.risk(odd, fpr=0.9)


@pytest.mark.parametrize(
    ("metric", "turns"),
    [
        (F1, False),
        (wi.risks.RatioMetric((0, 1, 0, 0, 1), (0, 1, 1, 1, 0.5), name="smooth"), False),
        (wi.risks.RatioMetric((0, 2.5, 10 / 3, 0, 0), (1, 2.5, 0, 0, 0), name="(TPR + 2 FPR)/(1 + TPR)"), True),
    ],
)
def test_which_sides_of_the_rectangle_count(metric, turns):
    """A ratio that never turns is smallest at the same corner of every rectangle; one that turns is not."""
    rng = np.random.default_rng(5)
    value = _ratio(metric, 0.4)
    corners = set()
    for _ in range(2000):
        fpr, tpr = np.sort(rng.random((2, 2)), axis=1)
        grid = np.array([(f, t) for f in fpr for t in tpr])
        corners.add(int(np.argmin(value(grid[:, 0], grid[:, 1]))))
    assert (len(corners) > 1) == turns
    assert _turns(metric, 0.4) == turns

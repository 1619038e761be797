"""Risks: each metric against the best attacker found by looking at every corner of the reachable set."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from loops import each

import whosin as wi
from whosin import Roc, risks

CURVES = {
    "pure": wi.PureDP(1.0).roc,
    "approximate": wi.ApproxDP(0.5, 0.05).roc,
    "one-sided": wi.MembershipPrivacy(3.0).roc,
    "diagonal": wi.PureDP(0.0).roc,
    "corner": wi.PureDP(math.inf).roc,
    "gaussian": wi.GaussianDP(1.0).roc,
    "sampled": wi.DPSGD(0.7, 0.2, 1).roc,
    "composed": wi.DPSGD(0.8, 0.05, 40).roc,
}
each_curve = pytest.mark.parametrize("roc", CURVES.values(), ids=CURVES.keys())
each_prior = each("prior", [0.5, 0.1, 0.01, 0.9])
F1 = risks.RatioMetric(a=(0, 2, 0, 0, 0), b=(0, 2, 1, 1, 0), name="F1")
ACCURACY = risks.RatioMetric(a=(0, 1, 0, 0, 1), b=(1, 0, 0, 0, 0), name="accuracy")
PPV = risks.RatioMetric(a=(0, 1, 0, 0, 0), b=(0, 1, 1, 0, 0), name="ppv")
NPV = risks.RatioMetric(a=(0, 0, 0, 0, 1), b=(0, 0, 0, 1, 1), name="npv")
JACCARD = risks.RatioMetric(a=(0, 1, 0, 0, 0), b=(0, 1, 1, 1, 0), name="Jaccard")
ERROR = risks.RatioMetric(a=(0, 0, 1, 1, 0), b=(1, 0, 0, 0, 0), name="error")


def reachable(roc):
    """Corners of the set that attackers reach, or points spread densely over its border, as (FPR, TPR)."""
    if roc.vertices is not None:
        upper = roc.vertices
    else:
        ends = np.geomspace(1e-14, 0.5, 6000)
        x = np.concatenate([[0.0], ends, 1.0 - ends[::-1], [1.0]])
        upper = np.column_stack([x, roc.tpr(x)])
    corners = np.array([[0.0, 0.0], [1.0, 1.0]])
    return np.vstack([corners, upper, 1.0 - upper])


def best_of(metric, roc, prior):
    """The largest ratio over the reachable corners, by the definition."""
    fpr, tpr = reachable(roc).T
    tp, fn, fp, tn = prior * tpr, prior * (1 - tpr), (1 - prior) * fpr, (1 - prior) * (1 - fpr)
    cells = np.array([np.ones_like(tp), tp, fp, fn, tn])
    top, bottom = np.array(metric.a) @ cells, np.array(metric.b) @ cells
    usable = bottom > 1e-13
    return float(np.max(top[usable] / bottom[usable]))


# --- named risks -----------------------------------------------------------------------------------------------------


@each_curve
@each_prior
def test_accuracy(roc, prior):
    found = risks.accuracy(roc, prior)
    assert found == pytest.approx(best_of(ACCURACY, roc, prior), abs=1e-6)
    assert found >= best_of(ACCURACY, roc, prior) - 1e-15
    assert risks.advantage_at_prior(roc, prior) == pytest.approx(2 * found - 1, abs=1e-15)
    assert risks.advantage_at_prior(roc, prior) >= abs(2 * prior - 1) - 1e-15


@each_curve
@each_prior
def test_advantage_and_am_do_not_depend_on_the_prior(roc, prior):
    fpr, tpr = reachable(roc).T
    assert risks.advantage(roc, prior) == pytest.approx(np.max(tpr - fpr), abs=1e-6)
    assert risks.am(roc, prior) == pytest.approx(0.5 + risks.advantage(roc) / 2, abs=1e-15)


@each_curve
@each_prior
def test_ppv_and_npv_are_the_extreme_posteriors(roc, prior):
    low, high = roc.slopes
    odds = prior / (1 - prior)
    assert risks.ppv(roc, prior) == pytest.approx(
        1.0 if high == math.inf else odds * high / (1 + odds * high), rel=1e-12
    )
    assert risks.npv(roc, prior) == pytest.approx(1.0 / (1.0 + odds * low), rel=1e-12)
    assert risks.ppv(roc, prior) >= prior - 1e-15
    assert risks.npv(roc, prior) >= 1 - prior - 1e-15


@pytest.mark.parametrize("name", ["pure", "approximate", "one-sided", "diagonal"])
@each_prior
def test_ppv_and_npv_as_ratios(name, prior):
    """The same as the general metric, where the likelihood ratio is bounded or an atom attains it."""
    roc = CURVES[name]
    assert PPV(roc, prior) == pytest.approx(risks.ppv(roc, prior), rel=1e-9)
    assert NPV(roc, prior) == pytest.approx(risks.npv(roc, prior), rel=1e-9)


@pytest.mark.parametrize(("epsilon", "prior"), [(1.0, 0.5), (2.0, 0.01), (0.1, 0.9)])
def test_ppv_of_pure_dp(epsilon, prior):
    expected = 1 / (1 + math.exp(-epsilon) * (1 - prior) / prior)
    assert wi.PureDP(epsilon).risk("ppv", prior) == pytest.approx(expected, rel=1e-12)
    assert wi.PureDP(epsilon).risk("posterior", prior) == pytest.approx(expected, rel=1e-12)
    assert 1 - wi.PureDP(epsilon).risk("npv", prior) == pytest.approx(
        1 / (1 + math.exp(epsilon) * (1 - prior) / prior), rel=1e-9
    )


@each_curve
@each_prior
@each("fpr", [1e-6, 0.01, 0.3, 1.0])
def test_rates_at_a_fixed_false_positive_rate(roc, prior, fpr):
    tpr = roc.tpr(fpr)
    assert risks.tpr_at_fpr(fpr)(roc, prior) == tpr
    assert risks.ppv_at_fpr(fpr)(roc, prior) == pytest.approx(
        prior * tpr / (prior * tpr + (1 - prior) * fpr), rel=1e-12
    )
    assert risks.ppv_at_fpr(fpr)(roc, prior) <= risks.ppv(roc, prior) + 1e-12


@each_curve
@each_prior
def test_weighted_accuracy(roc, prior):
    for weight in (0.1, 0.5, 0.9):
        risk = risks.weighted_accuracy(weight)
        fpr, tpr = reachable(roc).T
        right = weight * prior * tpr + (1 - weight) * (1 - prior) * (1 - fpr)
        total = weight * prior + (1 - weight) * (1 - prior)
        assert risk(roc, prior) == pytest.approx(np.max(right) / total, abs=1e-6)
    assert risks.weighted_accuracy(0.5)(roc, prior) == pytest.approx(risks.accuracy(roc, prior), abs=1e-12)


def test_weighted_accuracy_at_the_other_prior_is_balanced():
    """Weights 1-p and p make members and outsiders count alike: the arithmetic mean of TPR and TNR."""
    roc = CURVES["approximate"]
    assert risks.weighted_accuracy(0.9)(roc, 0.1) == pytest.approx(risks.am(roc), rel=1e-12)


def test_posterior_at():
    assert risks.posterior_at(0.3, 0.0) == pytest.approx(0.3, rel=1e-15)
    assert risks.posterior_at(0.3, -math.inf) == 0.0
    assert risks.posterior_at(0.3, math.inf) == 1.0
    assert risks.posterior_at(0.5, -800.0) == pytest.approx(0.0, abs=1e-300)
    assert risks.posterior_at(1e-9, -10.0) == pytest.approx(1e-9 * math.exp(-10.0), rel=1e-8)
    assert risks.posterior_at(0.25, math.log(3.0)) == pytest.approx(0.5, rel=1e-15)
    assert risks.posterior_at(0.75, -math.log(3.0)) == pytest.approx(0.5, rel=1e-15)


# --- ratios of confusion probabilities -------------------------------------------------------------------------------


@each_curve
@each_prior
@each("metric", [F1, ACCURACY, JACCARD, ERROR])
def test_ratio_metrics_take_the_best_reachable_point(roc, prior, metric):
    brute = best_of(metric, roc, prior)
    assert metric(roc, prior) >= brute - 1e-12
    assert metric(roc, prior) == pytest.approx(brute, rel=1e-6, abs=1e-9)


positive = st.floats(0.1, 5.0)
any_weight = st.floats(-5.0, 5.0)


@given(
    st.tuples(any_weight, any_weight, any_weight, any_weight, any_weight),
    st.tuples(positive, positive, positive, positive, positive),
    st.floats(0.02, 0.98),
    st.sampled_from(sorted(CURVES)),
)
def test_random_ratio_metrics(a, b, prior, name):
    metric, roc = risks.RatioMetric(a, b), CURVES[name]
    assume(max(map(abs, a)) > 1e-3)
    brute = best_of(metric, roc, prior)
    assert metric(roc, prior) >= brute - 1e-11
    assert metric(roc, prior) == pytest.approx(brute, rel=1e-5, abs=1e-6)


@each_curve
@each_prior
def test_ratio_accuracy_is_accuracy(roc, prior):
    assert ACCURACY(roc, prior) == pytest.approx(risks.accuracy(roc, prior), abs=1e-12)


@each_curve
@each_prior
def test_doing_the_opposite_is_an_attack_too(roc, prior):
    """The largest error rate is reached by turning the most accurate attack round."""
    assert ERROR(roc, prior) == pytest.approx(risks.accuracy(roc, prior), abs=1e-9)


def test_f1_of_pure_dp():
    """At ε = 1, prior 1/2, the corner (1, e)/(1 + e) against the top right: 2e/(2e + 2) = 0.7311 beats 2/3."""
    assert F1(CURVES["pure"], 0.5) == pytest.approx(math.e / (1 + math.e), rel=1e-12)
    assert F1(CURVES["diagonal"], 0.5) == pytest.approx(2 / 3, rel=1e-12)
    assert F1(CURVES["corner"], 0.5) == pytest.approx(1.0, rel=1e-12)


def test_an_unbounded_metric_is_infinite():
    """TP over FP: no false alarm and some members found."""
    per_false_alarm = risks.RatioMetric((0, 1, 0, 0, 0), (0, 0, 1, 0, 0))
    assert per_false_alarm(CURVES["approximate"], 0.5) == math.inf
    assert per_false_alarm(CURVES["pure"], 0.5) == pytest.approx(math.e, rel=1e-9)


def test_constant_metrics():
    assert risks.RatioMetric((2, 0, 0, 0, 0), (4, 0, 0, 0, 0))(CURVES["gaussian"], 0.3) == pytest.approx(0.5, rel=1e-12)
    assert risks.RatioMetric((0, 0, 0, 0, 0), (1, 0, 0, 0, 0))(CURVES["pure"], 0.3) == 0.0


# --- thresholds (Xu et al. 2022, lemmas 2 and 3, corrected) ----------------------------------------------------------


def test_threshold_without_a_curve():
    assert ACCURACY.threshold() == 0.5
    assert risks.RatioMetric((0, 1, 0, 0, 0), (1, 0, 0, 0, 0)).threshold() == 0.0
    for prior in (0.1, 0.5, 0.7):
        am = risks.RatioMetric((0, 0.5 / prior, 0, 0, 0.5 / (1 - prior)), (1, 0, 0, 0, 0))
        assert am.threshold() == pytest.approx(prior, rel=1e-12)
    assert ERROR.threshold() is None
    assert risks.RatioMetric((1, 0, 0, 0, 0), (1, 0, 0, 0, 0)).threshold() is None
    assert F1.threshold() is None


COSTS = risks.RatioMetric(a=(0, 1, -2, -0.5, 1), b=(1, 0, 0, 0, 0), name="costs")


def test_threshold_of_unequal_costs():
    """Right guesses count 1, a false alarm -2, a missed member -1/2: accuse above (1 + 2)/(1 + 2 + 1/2 + 1) = 2/3."""
    assert COSTS.threshold() == pytest.approx(2 / 3, rel=1e-12)
    assert COSTS.threshold(CURVES["gaussian"], 0.2) == COSTS.threshold()


@pytest.mark.parametrize("metric", [F1, JACCARD, COSTS, ACCURACY], ids=lambda m: m.name)
@pytest.mark.parametrize("prior", [0.5, 0.2])
def test_threshold_with_a_curve_is_where_the_best_attacker_switches(metric, prior):
    """On the Gaussian curve: accuse where the posterior exceeds t; the metric of that attacker is the best one."""
    from scipy.special import ndtr

    mu, roc = 1.0, CURVES["gaussian"]
    threshold = metric.threshold(roc, prior)
    assert 0.0 < threshold < 1.0
    # posterior > t  ⇔  ln ratio = μz - μ²/2 > logit t - logit p
    cut = (math.log(threshold / (1 - threshold)) - math.log(prior / (1 - prior)) + mu**2 / 2) / mu
    fpr, tpr = float(ndtr(-cut)), float(ndtr(mu - cut))
    cells = np.array([1, prior * tpr, (1 - prior) * fpr, prior * (1 - tpr), (1 - prior) * (1 - fpr)])
    assert (np.array(metric.a) @ cells) / (np.array(metric.b) @ cells) == pytest.approx(metric(roc, prior), rel=1e-9)


def test_f1_threshold_is_half_the_best_f1():
    """A known identity (Lipton et al. 2014): accuse where the posterior exceeds F1*/2."""
    for prior in (0.1, 0.5):
        assert F1.threshold(CURVES["pure"], prior) == pytest.approx(F1(CURVES["pure"], prior) / 2, rel=1e-12)


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["accuracy", "advantage", "advantage_at_prior", "am", "npv", "ppv", "posterior"])
def test_names_are_resolved(name):
    expected = getattr(risks, "ppv" if name == "posterior" else name)
    assert risks.resolve(name) is expected
    assert wi.PureDP(1.0).risk(name, 0.2) == pytest.approx(expected(CURVES["pure"], 0.2), rel=1e-15)


def test_callables_are_taken_as_they_are():
    assert risks.resolve(F1) is F1
    assert wi.PureDP(1.0).risk(F1, 0.3) == F1(CURVES["pure"], 0.3)


def test_ratio_metric_is_a_frozen_value():
    assert risks.RatioMetric([0, 1, 0, 0, 1], (1, 0, 0, 0, 0)) == risks.RatioMetric((0, 1, 0, 0, 1), [1, 0, 0, 0, 0])
    assert hash(risks.RatioMetric([0, 1, 0, 0, 1], (1, 0, 0, 0, 0))) == hash(
        risks.RatioMetric((0, 1, 0, 0, 1), (1, 0, 0, 0, 0))
    )
    with pytest.raises(AttributeError):
        F1.name = "F2"


def test_risks_of_a_measured_curve_with_a_dent():
    """Mixing attacks fills the dent: the metric is that of the hull."""
    dented = Roc([0.2, 0.4, 0.6], [0.5, 0.55, 0.9])
    for prior in (0.2, 0.5, 0.8):
        assert risks.accuracy(dented, prior) == risks.accuracy(dented.hull(), prior)
        assert F1(dented, prior) == pytest.approx(F1(dented.hull(), prior), rel=1e-12)

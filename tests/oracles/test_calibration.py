"""Calibration against sixty digits: what comes back keeps the target as an inequality, and little more would not."""

import math

import mpmath
import numpy as np
import pytest
from exact_forms import DELTAS, EPSILONS, accuracy, corners, divergence, enough, normal_divergence, posterior, tpr
from loops import each
from mpmath import mpf

import whosin as wi
from whosin.errors import CalibrationError
from whosin.numerics.gaussian_noise import epsilon_for, laplace_epsilon_for, laplace_noise_for, noise_for
from whosin.numerics.proportions import clopper_pearson_lower, clopper_pearson_upper

MORE = 1.0 + 1e-9


def exact_risk(name, epsilon, delta, prior, fpr):
    if name == "accuracy":
        return accuracy(epsilon, delta, prior)
    if name == "advantage":
        return divergence(corners(epsilon, delta), 1)
    return posterior(prior, epsilon) if name == "posterior" else tpr(epsilon, delta, fpr)


TARGETS = [
    ("accuracy", 0.5 + 2.0**-20, 0.5),
    ("accuracy", 0.6, 0.5),
    ("accuracy", 0.9, 0.3),
    ("accuracy", 1.0 - 1e-3, 0.5),
    ("accuracy", 0.995, 0.01),
    ("advantage", 1e-300, 0.5),
    ("advantage", 1e-12, 0.5),
    ("advantage", 0.1, 0.5),
    ("advantage", 0.999, 0.5),
    ("posterior", 2e-12, 1e-12),
    ("posterior", 0.02, 0.01),
    ("posterior", 0.75, 0.5),
    ("posterior", 1.0 - 1e-3, 1e-6),
    ("tpr_at", 1e-299, 1e-300),
    ("tpr_at", 1e-9, 1e-12),
    ("tpr_at", 0.3, 0.01),
    ("tpr_at", 0.9, 0.5),
]


@each("delta", [0.0, 1e-300, 1e-15, 1e-5, 0.05])
@pytest.mark.parametrize(("name", "limit", "where"), TARGETS)
def test_epsilon(name, limit, where, delta):
    prior, fpr = (0.5, where) if name == "tpr_at" else (where, 0.0)
    target = {"tpr_at": (limit, fpr)} if name == "tpr_at" else {name: limit, "prior": prior}
    with enough(800.0):
        if (name == "posterior" and delta > 0.0) or exact_risk(name, 0.0, delta, prior, fpr) > limit:
            with pytest.raises(CalibrationError):
                wi.calibrate.epsilon(**target, delta=delta)
            return
        found = wi.calibrate.epsilon(**target, delta=delta).epsilon
        at_the_least = exact_risk(name, 0.0, delta, prior, fpr) == limit
        assert exact_risk(name, found, delta, prior, fpr) <= limit * (1 + mpf(2) ** -52 * at_the_least)
        more = found * (1.0 + 1e-9 / max(1e-3, 1.0 - limit)) + 1e-15 * at_the_least
        assert exact_risk(name, more, delta, prior, fpr) > limit


@pytest.mark.parametrize("q", [0.01, 0.5, 0.75])
@pytest.mark.parametrize(("name", "limit"), [("accuracy", 0.995), ("advantage", 0.99), ("tpr_at", 0.999)])
def test_mip(name, limit, q):
    target = {name: (limit, 0.001) if name == "tpr_at" else limit}
    found = wi.calibrate.mip(**target, train_fraction=q).eta
    with enough(1.0):
        share = mpf(q)

        def risk(eta):
            top = min(mpf(1), max(share, 1 - share) + mpf(eta))
            if name == "accuracy":
                return top
            at = [mpf(0), 1 - (top - share) / (1 - share), mpf(0.001)]
            reach = [min(mpf(1), (top - (1 - share) * (1 - f)) / share) for f in at]
            return max(t - f for t, f in zip(reach[:2], at[:2], strict=True)) if name == "advantage" else reach[2]

        assert risk(found) <= limit * (1 + mpf(2) ** -50)
        if found < min(q, 1.0 - q):
            assert risk(found * MORE + 1e-12) > limit


@pytest.mark.parametrize("epsilon", [0.0, 1e-300, 1e-6, 1.0, 30.0, 600.0])
@pytest.mark.parametrize("limit", [1e-12, 1e-6, 0.01, 0.5, 0.9, 1.0 - 1e-12])
def test_sampling_rate(epsilon, limit):
    rate = wi.calibrate.sampling_rate(epsilon, posterior=limit)
    with enough(epsilon):
        assert posterior(rate, epsilon) <= limit * (1 + mpf(10) ** -50)
        more = max(min(rate * MORE, 1.0 - (1.0 - rate) * (1.0 - 1e-9)), rate + 4.0 * math.ulp(rate))
        assert posterior(more, epsilon) > limit


@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.1, 1.0, 10.0, 100.0, 700.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-100, 1e-15, 1e-5, 0.1, 0.5])
def test_gaussian_noise(epsilon, delta):
    sensitivity = 3e-7
    scale = wi.calibrate.gaussian_noise(epsilon, delta, sensitivity)
    assert scale == noise_for(epsilon, delta, sensitivity)
    with mpmath.workdps(60 if delta > 1e-30 else 330):
        assert normal_divergence(mpf(sensitivity) / mpf(scale), epsilon) <= delta
        assert normal_divergence(mpf(sensitivity) / mpf(scale) * (1 + mpf(10) ** -11), epsilon) > delta


@pytest.mark.parametrize("delta", [1e-300, 1e-15, 1e-5, 0.1, 0.9])
@pytest.mark.parametrize("distance", [1e-3, 1.0, 7.0])
def test_epsilon_of_gaussian_noise(distance, delta):
    with mpmath.workdps(60 if delta > 1e-30 else 330):
        for noise in (0.5, 3.0):
            epsilon = epsilon_for(noise, delta, distance)
            apart = mpf(distance) / mpf(noise)
            assert normal_divergence(apart, epsilon) <= delta
            if epsilon > 0.0:
                assert normal_divergence(apart, epsilon * (1.0 - 1e-9)) > delta


@pytest.mark.parametrize("delta", [0.0, 1e-300, 1e-15, 0.1, 1.0 - 2.0**-53])
@pytest.mark.parametrize("epsilon", [1e-300, 1e-12, 1.0, 700.0])
def test_laplace_noise(epsilon, delta):
    with mpmath.workdps(400):
        scale = laplace_noise_for(epsilon, delta, 1.0)
        apart = 1 / mpf(scale)
        assert 1 - mpmath.exp((mpf(epsilon) - apart) / 2) <= delta
        back = laplace_epsilon_for(scale, delta, 1.0)
        assert 1 - mpmath.exp((mpf(back) - apart) / 2) <= delta
        assert back <= epsilon * (1 + 1e-12) + 1e-12


# --- implications ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
@each("more", [1e-300, 1e-15, 1e-5, 0.1, 0.9, 1.0])
def test_pure_and_approximate_to_another_delta(epsilon, delta, more):
    if more < delta:
        return
    g = wi.ApproxDP(epsilon, delta)
    found = g.implies(wi.ApproxDP, delta=more).epsilon
    assert found == wi.PMP(epsilon, delta).implies(wi.PMP, delta=more).epsilon
    assert found <= epsilon
    if math.isinf(epsilon) or more == delta:
        assert found in (epsilon, 0.0)
        return
    with enough(epsilon):
        assert divergence(corners(epsilon, delta), mpmath.exp(mpf(found))) <= more
        if found > 1e-9:
            tighter = mpf(found) * (1 - mpf(10) ** -9) - mpf(10) ** -9
            assert divergence(corners(epsilon, delta), mpmath.exp(tighter)) > more or tighter < 0


@pytest.mark.parametrize("epsilon", EPSILONS)
@each("delta", [1e-300, 1e-15, 1e-5, 0.1, 0.9, 1.0])
def test_two_pure_steps_to_a_delta(epsilon, delta):
    from exact_forms import composed

    found = wi.PureDP(epsilon).implies(wi.PMP, delta=delta).epsilon
    assert found == wi.PureDP(epsilon).implies(wi.ApproxDP, delta=delta, adjacency="replace").epsilon
    assert found <= 2.0 * epsilon
    if math.isinf(epsilon):
        assert found == (0.0 if delta == 1.0 else math.inf)
        return
    with enough(2.0 * epsilon):
        assert divergence(composed(epsilon), mpmath.exp(mpf(found))) <= delta
        tighter = mpf(found) * (1 - mpf(10) ** -9) - mpf(10) ** -9
        assert tighter < 0 or divergence(composed(epsilon), mpmath.exp(tighter)) > delta


def test_a_large_epsilon_does_not_overflow():
    assert wi.PureDP(1000.0).implies(wi.ApproxDP, delta=1e-5).epsilon <= 1000.0
    assert wi.PureDP(1000.0).implies(wi.PMP, delta=1e-5).epsilon <= 2000.0
    assert wi.PureDP(1e308).implies(wi.ApproxDP, delta=1e-5).epsilon <= 1e308


@pytest.mark.parametrize("epsilon", EPSILONS)
@each("q", [1e-6, 0.01, 0.5, 0.9])
def test_pure_to_mip(epsilon, q):
    from exact_forms import composed

    p = mpf(q)
    with enough(2.0 * epsilon if math.isfinite(epsilon) else 0.0):
        points = {"replace": corners(epsilon, 0.0), "add_remove": composed(epsilon)}
        if math.isinf(epsilon):
            points["add_remove"] = points["replace"]
        for adjacency, curve in points.items():
            eta = wi.PureDP(epsilon, adjacency).implies(wi.MIP, train_fraction=q).eta
            exact = max(p * t + (1 - p) * (1 - f) for f, t in curve) - max(p, 1 - p)
            assert exact - mpf(2) ** -50 * min(p, 1 - p) <= eta <= exact + mpf(2) ** -50 * min(p, 1 - p)


@pytest.mark.parametrize("epsilon", EPSILONS)
@each("rate", [0.0, 1e-300, 1e-12, 0.01, 0.5, 1.0])
def test_sampling_before_training(epsilon, rate):
    found = wi.PureDP(epsilon).implies(wi.PureDP, sample_rate=rate).epsilon
    if math.isinf(epsilon):
        assert found == (0.0 if rate == 0.0 else math.inf)
        return
    with enough(epsilon):
        exact = mpmath.log(1 + mpf(rate) * mpmath.expm1(mpf(epsilon)))
        room = exact * mpf(2) ** -50 + (4.0 * math.ulp(epsilon) if epsilon > 709.0 else mpf(2) ** -1070)
        assert exact - room * (epsilon <= 709.0) <= found <= exact + room


@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 0.1, 1.0, 10.0, 300.0])
def test_pure_to_identifiability_and_back(epsilon):
    for m in (2, 3, 10**6):
        g = wi.PureDP(epsilon, "replace").implies(wi.DifferentialIdentifiability, candidates=m)
        with enough(epsilon):
            exact = 1 / (1 + (m - 1) * mpmath.exp(-mpf(epsilon)))
            assert exact * (1 - mpf(2) ** -50) <= g.rho <= exact * (1 + mpf(2) ** -50)


# --- deletions ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 0.1, 1.0, 10.0, 100.0, 700.0, 1000.0, math.inf])
@pytest.mark.parametrize("inclusion", [1e-300, 1e-12, 0.01, 0.5, 1.0 - 2.0**-53, 1.0])
@each("threshold", [1e-300, 0.5, 0.99, 1.0 - 2.0**-53, 1.0])
def test_deletion_capacity(epsilon, inclusion, threshold):
    found = wi.unlearning.deletion_capacity(epsilon, inclusion, threshold)
    if math.isinf(epsilon) or inclusion == 1.0 or threshold == 1.0:
        assert found == 0
        return
    with mpmath.workdps(800):
        kept = 1 / (1 + mpmath.exp(mpf(epsilon)) * mpf(inclusion) / (1 - mpf(inclusion)))
        log_kept, log_threshold = mpmath.log(kept), mpmath.log(mpf(threshold))
        assert found * log_kept >= log_threshold
        assert (found + 1) * log_kept < log_threshold


# --- Clopper and Pearson ----------------------------------------------------------------------------------------------

COUNTS = [(0, 1), (1, 1), (0, 10), (5, 10), (10, 10), (1, 1000), (999, 1000), (3, 10**6), (500_000, 10**6)]


@pytest.mark.parametrize(("x", "n"), COUNTS)
@pytest.mark.parametrize("alpha", [1e-12, 0.05])
def test_clopper_pearson(x, n, alpha):
    """The exact tails at the limits are at most α, and just above it a little further in."""
    lower, upper = float(clopper_pearson_lower(x, n, alpha)), float(clopper_pearson_upper(x, n, alpha))

    def at_least(p):
        return _tail(x, n - x + 1, p)

    def at_most(p):
        return _tail(n - x, x + 1, 1 - p)

    if x > 0:
        assert at_least(mpf(lower)) <= alpha
        assert at_least(mpf(lower) + (1 - mpf(lower)) * mpf(lower) * mpf(10) ** -8) > alpha * (1 - mpf(10) ** -3)
    else:
        assert lower == 0.0
    if x < n and upper < 1.0:
        assert at_most(mpf(upper)) <= alpha
        assert at_most(mpf(upper) - (1 - mpf(upper)) * mpf(upper) * mpf(10) ** -8) > alpha * (1 - mpf(10) ** -3)
    else:
        assert upper == 1.0


def _tail(a, b, p):
    """The regularised incomplete beta function, by the sum of the shorter binomial tail."""
    from scipy.special import betainc

    if a + b > 5000:
        return mpf(float(betainc(a, b, float(p)))) * (1 - mpf(10) ** -9)
    n = a + b - 1
    return sum((mpmath.binomial(n, k) * p**k * (1 - p) ** (n - k) for k in range(a, n + 1)), mpf(0))


def test_nothing_overflows():
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        for epsilon in EPSILONS:
            for delta in DELTAS[1:]:
                wi.PureDP(epsilon).implies(wi.ApproxDP, delta=delta)
                wi.PureDP(epsilon).implies(wi.PMP, delta=delta)
                wi.ApproxDP(epsilon, delta).implies(wi.MIP)
                wi.ApproxDP(epsilon, delta).implies(wi.PMP)
                wi.ApproxDP(epsilon, delta).implies(wi.ApproxDP, adjacency="replace")

"""Every closed form of a guarantee against sixty digits, at the ends of what floats hold.

A limit may be off by ``ULPS`` times 2⁻⁵² of its value, to either side, and no more: docs/guide/bad-input.md says so.
The 2·accuracy - 1 of a metric is a difference and has that tolerance of one, not of its own value.
"""

import itertools
import math

import mpmath
import numpy as np
import pytest
from exact_forms import (
    DELTAS,
    EPSILONS,
    FPRS,
    PRIORS,
    accuracy,
    agrees,
    corners,
    divergence,
    enough,
    posterior,
    tpr,
)
from loops import each
from mpmath import mpf

import whosin as wi

PAIRS = list(itertools.product(EPSILONS, DELTAS))


def each_pair(test):
    """Run a test at each ε, with every δ."""
    return pytest.mark.parametrize("epsilon", EPSILONS)(each("delta", DELTAS)(test))


def guarantees(epsilon, delta):
    pure = [wi.PureDP(epsilon), wi.PureDP(epsilon, "replace")] if delta == 0.0 else []
    return [*pure, wi.ApproxDP(epsilon, delta), wi.PMP(epsilon, delta)]


@each_pair
def test_advantage_and_what_follows(epsilon, delta):
    with enough(epsilon):
        exact = divergence(corners(epsilon, delta), 1)
        for g in guarantees(epsilon, delta):
            assert agrees(g.advantage, exact)
            assert agrees(g.risk("advantage"), exact)
            assert agrees(g.risk("am"), (1 + exact) / 2)
            assert agrees(g.roc.divergence(1.0), exact, absolute=2.0**-52)


@each_pair
def test_tpr(epsilon, delta):
    with enough(epsilon):
        exact = [tpr(epsilon, delta, fpr) for fpr in FPRS]
        for g in guarantees(epsilon, delta):
            assert all(agrees(value, e) for value, e in zip(g.tpr_at(FPRS), exact, strict=True))


@each_pair
def test_risks_at_priors(epsilon, delta):
    log_ratio = epsilon if delta == 0.0 else math.inf
    with enough(epsilon):
        for prior, g in itertools.product(PRIORS, guarantees(epsilon, delta)):
            exact = accuracy(epsilon, delta, prior)
            assert agrees(g.accuracy(prior), exact)
            assert agrees(g.risk("advantage_at_prior", prior), 2 * exact - 1, absolute=2.0**-50)
            if epsilon > 0.0 or delta > 0.0:
                high, low = posterior(prior, log_ratio), posterior(prior, -log_ratio)
            else:
                high = low = mpf(prior)
            world = {"world": "fixed_size"} if getattr(g, "adjacency", "") == "replace" else {}
            found = g.posterior(prior, **world)
            assert agrees(found[0], low)
            assert agrees(found[1], high)
            assert agrees(g.risk("ppv", prior), high)
            assert agrees(g.risk("npv", prior), 1 - low)


@each_pair
def test_precision_at_a_false_positive_rate(epsilon, delta):
    with enough(epsilon):
        for prior, fpr, g in itertools.product(PRIORS, FPRS[1:], guarantees(epsilon, delta)):
            found = mpf(prior) * tpr(epsilon, delta, fpr)
            exact = found / (found + (1 - mpf(prior)) * mpf(fpr))
            assert agrees(g.risk(wi.risks.ppv_at_fpr(fpr), prior), exact)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_member_twice_as_dear(epsilon):
    """A ratio metric read off the corners."""
    metric = wi.risks.weighted_accuracy(2.0 / 3.0)
    w = mpf(2.0 / 3.0)
    with enough(epsilon):
        for prior in PRIORS:
            p = mpf(prior)
            total = w * p + (1 - w) * (1 - p)
            exact = max((w * p * t + (1 - w) * (1 - p) * (1 - f)) / total for f, t in corners(epsilon, 0.0))
            assert agrees(wi.PureDP(epsilon).risk(metric, prior), exact, ulps=8.0)


# --- Gaussian ------------------------------------------------------------------------------------------------------

MUS = [1e-300, 1e-12, 1e-6, 0.1, 1.0, 5.0, 20.0, 37.0, 100.0]


@pytest.mark.parametrize("mu", MUS)
def test_gaussian_advantage_and_accuracy(mu):
    g = wi.GaussianDP(mu)
    assert agrees(g.advantage, mpmath.erf(mpf(mu) / mpmath.sqrt(8)))
    for prior in PRIORS:
        p, u = mpf(prior), mpf(mu)
        cut = mpmath.log((1 - p) / p) / u
        right = p * mpmath.ncdf(u / 2 - cut) + (1 - p) * mpmath.ncdf(u / 2 + cut) if abs(cut) < 1e9 else 0
        exact = max(p, 1 - p, right)
        assert mpf(g.accuracy(prior)) >= exact * (1 - mpf(2) ** -52)  # never below it, but for the last rounding
        assert agrees(g.accuracy(prior), exact, ulps=16.0 + 8.0 * float(u))  # rounded up by what tails can take away


@pytest.mark.parametrize("mu", MUS[1:7])
@pytest.mark.parametrize("fpr", [1e-300, 1e-100, 1e-12, 0.01, 0.5, 1.0 - 1e-12])
def test_gaussian_tpr(mu, fpr):
    """Far out a quantile of size x is known to 2⁻⁵³·x², which is what the tolerance there is."""
    f = mpf(fpr)
    point = 0 if fpr == 0.5 else float(_quantile(fpr))
    z = mpmath.findroot(lambda x: mpmath.log(mpmath.ncdf(x) / f), point) if point else mpf(0)
    room = 8.0 + 4.0 * (abs(point) + 1.0) ** 2
    assert agrees(wi.GaussianDP(mu).tpr_at(fpr), mpmath.ncdf(z + mpf(mu)), ulps=room)


def _quantile(share):
    from scipy.special import ndtri

    return ndtri(share)


# --- membership inference privacy, membership privacy, identifiability --------------------------------------------


@pytest.mark.parametrize("q", [1e-6, 0.01, 0.5, 0.75, 1.0 - 2.0**-20])
@pytest.mark.parametrize("eta", [0.0, 1e-300, 1e-12, 0.1, 0.25, 0.5 - 2.0**-54, 0.5])
def test_mip(eta, q):
    g, share, excess = wi.MIP(eta, q), mpf(q), mpf(eta)
    limit = max(share, 1 - share) + excess
    assert agrees(g.accuracy(q), min(mpf(1), limit))
    for fpr in FPRS:
        exact = min(mpf(1), (limit - (1 - share) * (1 - mpf(fpr))) / share)
        assert agrees(g.tpr_at(fpr), exact, absolute=2.0**-51 / q)
    if q == 0.5:
        assert agrees(g.advantage, min(mpf(1), 2 * excess))


@pytest.mark.parametrize("gamma", [1.0, 1.0 + 2.0**-52, 1.5, 1e6, 1e300, math.inf])
@pytest.mark.parametrize("family", ["independent", "bounded", "uniform", "prior"])
@pytest.mark.parametrize("negative", [False, True])
def test_membership_privacy(gamma, family, negative):
    g = wi.MembershipPrivacy(gamma, family, negative)
    ratio = mpmath.inf if math.isinf(gamma) else (2 * mpf(gamma) - 1 if family == "uniform" else mpf(gamma))
    limited = 1 - 1 / ratio
    for prior in PRIORS:
        p = mpf(prior)
        low, high = g.posterior(prior)
        if ratio == 1:
            assert agrees(low, p)
            assert agrees(high, p)
            continue
        top = mpf(1) if ratio == mpmath.inf else 1 / (1 + (1 - p) / p / ratio)
        bottom = mpf(0) if ratio == mpmath.inf else 1 / (1 + ratio * (1 - p) / p)
        # ln γ is rounded before it is an exponent again
        room = 8.0 + 2.0 * (abs(math.log(gamma)) if math.isfinite(gamma) else 0.0)
        assert agrees(high, top if family == "bounded" or not negative else mpf(1), ulps=room)
        assert agrees(low, bottom if family == "bounded" or negative else mpf(0), ulps=room)
    if family != "bounded":
        assert agrees(g.advantage, limited, absolute=2.0**-52)


@pytest.mark.parametrize(("rho", "m"), [(0.5, 2), (0.5 + 2.0**-50, 2), (0.75, 2), (0.4, 3), (0.9, 10**6), (1.0, 5)])
def test_identifiability(rho, m):
    g, r = wi.DifferentialIdentifiability(rho, m), mpf(rho)
    low, high = g.posterior(1.0 / m)
    assert agrees(high, max(r, mpf(1.0 / m)), ulps=16.0)
    assert agrees(low, max(mpf(0), 1 - (m - 1) * r), ulps=64.0, absolute=2.0**-50)


# --- the table of the literature ------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", [0.0, 1e-300, 1e-5, 0.5])
def test_bounds_table(epsilon, delta):
    with enough(epsilon):
        s, d = (mpf(0) if math.isinf(epsilon) else mpmath.exp(-mpf(epsilon))), mpf(delta)
        e = mpmath.inf if math.isinf(epsilon) else mpf(epsilon)
        for prior in PRIORS:
            p = mpf(prior)
            exact = {
                ("advantage", "Yeom et al. 2018"): min(mpf(1), mpmath.expm1(min(e, 1))),
                ("advantage", "Erlingsson et al. 2019"): 1 - s * (1 - d),
                ("advantage", "Humphries et al. 2020"): divergence(corners(epsilon, delta), 1),
                ("advantage", "Xu et al. 2022 (MACE), printed"): (1 - s) / (1 + s),
                ("accuracy", "Yeom et al. 2018"): (1 + min(mpf(1), mpmath.expm1(min(e, 1)))) / 2,
                ("accuracy", "Erlingsson et al. 2019"): 1 - s * (1 - d) / 2,
                ("accuracy", "Sablayrolles et al. 2019"): min(mpf(1), mpf(0.5) + e / 4),
                ("accuracy", "Thudi et al. 2022"): 1 / (1 + s),
                ("accuracy", "Izzo et al. 2022"): accuracy(epsilon, delta, 0.5),
                ("accuracy", "Xu et al. 2022 (MACE), corrected"): max(p, 1 - p, 1 / (1 + s)),
                ("accuracy", "exact ceiling"): accuracy(epsilon, delta, prior),
                ("ppv", "Sablayrolles et al. 2019"): min(mpf(1), p + e / 4),
                ("ppv", "Thudi et al. 2022"): posterior(prior, epsilon),
                ("ppv", "exact ceiling"): posterior(prior, epsilon) if delta == 0 else mpf(1),
            }
            rows = wi.bounds.table(epsilon, delta, prior)
            for row in rows:
                if row.value is not None and (row.quantity, row.name) in exact:
                    wanted = exact[row.quantity, row.name]
                    assert agrees(row.value, wanted, absolute=2.0**-53), (row, prior)
            for quantity in ("advantage", "accuracy", "ppv"):
                assert rows.tightest(quantity).value is not None


@pytest.mark.parametrize(("epsilon", "delta"), [(e, d) for e in EPSILONS[:-1] for d in DELTAS[1:-1]])
def test_gaussian_mechanism_of_the_table(epsilon, delta):
    """The advantage of μ gives back δ: Φ(μ/2 - ε/μ) - e^ε·Φ(-μ/2 - ε/μ), with fifty digits."""
    row = next(row for row in wi.bounds.table(epsilon, delta) if row.name.startswith("Mahloujifar"))
    if row.value in (0.0, 1.0):  # rounded: μ itself is lost
        assert delta < 1e-15 or epsilon > 30.0 or delta > 0.99
        return
    with mpmath.workdps(50):
        mu = 2 * mpmath.sqrt(2) * mpmath.erfinv(mpf(row.value))
        found = mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)
    assert float(found) == pytest.approx(delta, rel=max(1e-6, 1e-16 / (1.0 - row.value)))


def test_floats_stay_silent():
    """Overflow, division by zero and invalid operations are errors here; underflow to zero is what it should be."""
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        for epsilon, delta in PAIRS:
            for g in guarantees(epsilon, delta):
                g.tpr_at(FPRS)
                g.explain(1e-12)
                g.risk("advantage_at_prior", 1e-12)

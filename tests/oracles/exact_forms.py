"""The closed forms of the guarantees once more, in sixty digits and more, straight from their definitions."""

import math

import mpmath
from mpmath import mpf

EPSILONS = [0.0, 1e-300, 1e-12, 1e-6, 0.1, 1.0, 10.0, 100.0, 700.0, 709.0, 710.0, 1000.0, math.inf]
DELTAS = [0.0, 1e-300, 1e-15, 1e-5, 0.5, 1.0 - 2.0**-53, 1.0]
PRIORS = [1e-12, 1e-6, 0.01, 0.5, 1.0 - 1e-12]
FPRS = [0.0, 1e-300, 1e-12, 0.01, 0.5, 1.0]

ULPS = 4.0
"""The stated tolerance: a computed limit is on its safe side up to so many times 2⁻⁵² of its value."""
SUBNORMAL = mpf(2) ** -1070
"""Below 2⁻¹⁰²² floats have fewer digits: sixteen steps of the smallest one."""


def enough(epsilon):
    """Digits that hold e^{-ε} next to 1, and 1 - e^{-ε} of the smallest ε, with sixty to spare."""
    return mpmath.workdps(360 + (int(0.44 * epsilon) if math.isfinite(epsilon) else 0))


def shrink(epsilon):
    return mpf(0) if math.isinf(epsilon) else mpmath.exp(-mpf(epsilon))


def corners(epsilon, delta):
    """The corners of the trade-off region of (ε, δ)-close pairs, (0, 0) and (1, 1) with them."""
    s, d = shrink(epsilon), mpf(delta)
    inner = [(mpf(0), mpf(1))] if math.isinf(epsilon) else [((1 - d) * s / (1 + s), d + (1 - d) / (1 + s))]
    return [(mpf(0), mpf(0)), (mpf(0), d), *inner, (1 - d, mpf(1)), (mpf(1), mpf(1))]


def tpr(epsilon, delta, fpr):
    s, d, f = shrink(epsilon), mpf(delta), mpf(fpr)
    return mpf(1) if math.isinf(epsilon) else min(mpf(1), f / s + d, 1 - s * (1 - d - f))


def divergence(points, gamma):
    return max(t - gamma * f for f, t in points)


def accuracy(epsilon, delta, prior):
    p = mpf(prior)
    return max((1 - p) + p * t - (1 - p) * f for f, t in corners(epsilon, delta))


def posterior(prior, log_ratio):
    p = mpf(prior)
    if math.isinf(log_ratio):
        return mpf(1) if log_ratio > 0 else mpf(0)
    return 1 / (1 + mpmath.exp(-mpf(log_ratio)) * (1 - p) / p)


def composed(epsilon):
    """The corners of R∘R of a pure curve: add/remove twice."""
    s = shrink(epsilon)
    return [(mpf(0), mpf(0)), (s * s / (1 + s), 1 / (1 + s)), (s / (1 + s), 1 - s * s / (1 + s)), (mpf(1), mpf(1))]


def normal_divergence(mu, epsilon):
    """E_{e^ε} of two unit normals μ apart."""
    u, e = mpf(mu), mpf(epsilon)
    return mpmath.ncdf(u / 2 - e / u) - mpmath.exp(e) * mpmath.ncdf(-u / 2 - e / u)


def agrees(value, exact, ulps=ULPS, absolute=0.0):
    """Whether a computed limit is the exact one up to the tolerance, on either side."""
    room = abs(exact) * mpf(ulps) * mpf(2) ** -52 + SUBNORMAL + mpf(absolute)
    return mpf(value) >= exact - room and mpf(value) <= exact + room

"""The attacker's ROC: the one curve that every question about membership privacy comes down to.

Notation: an attacker sees one output and says "member" or "not a member". FPR is the share of outsiders it
accuses, TPR the share of members it finds. P is the law of the output when the record is in, Q when it is out.
By Neyman and Pearson the best attackers threshold the likelihood ratio dP/dQ, and their points form a concave
curve from (0, TPR at no false alarm) to (1, 1).

Two views of the same curve are used throughout:

* the curve itself, TPR as a function of FPR;
* its support function, the hockey-stick divergence E_γ(P‖Q) = max over the curve of TPR - γ·FPR, γ ≥ 0.

E_1 is the advantage (total variation); the best accuracy at prior q is (1-q) + q·E_{(1-q)/q}; and
(ε, δ)-closeness is E_{e^ε} ≤ δ in both directions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from whosin.arrays import Array
from whosin.errors import InputError, check_number, check_rates, check_whole
from whosin.numerics.rounding import float_above

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Roc"]


_EPS = float(np.finfo(np.float64).eps)
_UP = 1.0 + 4.0 * _EPS
_MOST_EXACT = 256
_LEAST = math.ulp(0.0)
"""A corner at this FPR stands for one that may be anywhere between it and 0."""


class _Smooth(NamedTuple):
    """The functions of a smooth curve, as :meth:`Roc.from_function` takes them."""

    tpr: Callable[[Array], Array]
    fpr: Callable[[Array], Array]
    divergence: Callable[[float], float]
    mirrored: Callable[[float], float]


class Roc:
    """An attacker's ROC, exact by its vertices or smooth by its functions.

    Parameters
    ----------
    fpr, tpr : array-like
        Points of a piecewise-linear curve. They are sorted by FPR; of points with the same FPR the highest
        counts; (0, 0) and (1, 1), which every attacker reaches, are added.
    slopes : (float, float), optional
        The smallest and the largest likelihood ratio, where they are known better than from the points.

    Notes
    -----
    A curve need not be concave (a measured one may not be); :meth:`hull` makes it so. Guarantees and worlds
    give concave curves. Cost: O(m log m) to build from m points, O(log m) a look-up.

    Examples
    --------
    >>> import whosin as wi
    >>> curve = wi.Roc([0.0, 0.1, 1.0], [0.0, 0.5, 1.0])
    >>> float(curve.tpr(0.05))
    0.25
    >>> round(wi.risks.advantage(curve), 4)
    0.4
    """

    __slots__ = ("_slopes", "_smooth", "_vertices")

    def __init__(self, fpr: ArrayLike, tpr: ArrayLike, *, slopes: tuple[float, float] | None = None) -> None:
        x, y = check_rates("fpr", fpr), check_rates("tpr", tpr)
        if x.ndim != 1 or x.shape != y.shape or x.size == 0:
            raise InputError(
                f"fpr and tpr must be two equally long lists of points, got shapes {x.shape} and {y.shape}"
            )
        self._vertices = _canonical(x, y)
        self._smooth: _Smooth | None = None
        self._slopes = None if slopes is None else (float(slopes[0]), float(slopes[1]))

    @classmethod
    def from_function(
        cls,
        tpr: Callable[[Array], Array],
        *,
        fpr: Callable[[Array], Array],
        divergence: Callable[[float], float],
        mirrored: Callable[[float], float],
        slopes: tuple[float, float],
    ) -> Roc:
        """Build a smooth concave curve from its closed forms.

        Parameters
        ----------
        tpr, fpr : callable
            The curve and its inverse, vectorised over arrays of rates.
        divergence : callable
            The support function E_γ(P‖Q): γ ↦ max over the curve of TPR - γ·FPR.
        mirrored : callable
            E_γ(Q‖P), that of the :meth:`reversed` curve; its own closed form keeps digits that
            1 - γ + γ·E_{1/γ}(P‖Q) would lose. The same function for a symmetric curve.
        slopes : (float, float)
            The smallest and the largest likelihood ratio: the slope at FPR = 1 and at FPR = 0 (may be inf).
        """
        roc = cls.__new__(cls)
        roc._vertices, roc._smooth, roc._slopes = np.empty((0, 2)), _Smooth(tpr, fpr, divergence, mirrored), slopes
        return roc

    @classmethod
    def from_lines(cls, rises: ArrayLike, offsets: ArrayLike, *, slopes: tuple[float, float] | None = None) -> Roc:
        """Build the lowest of many limits TPR ≤ rise·FPR + offset, never below it; ``slopes`` as for :class:`Roc`.

        Each corner lies on or above both of its lines as floats give them, so the edge between two corners lies on or
        above its line wherever rounding has put the corners. An infinite rise limits the TPR at FPR 0 alone.
        O(m log m) for m lines.
        """
        steep, starts = np.asarray(rises, dtype=np.float64), np.asarray(offsets, dtype=np.float64)
        if steep.ndim != 1 or steep.shape != starts.shape or not np.all((steep >= 0.0) & (starts >= 0.0)):
            raise InputError("rises and offsets must be two equally long lists of numbers of at least 0")
        lines = _lowest_lines(np.append(steep, 0.0), np.append(starts, 1.0))
        corners = [(0.0, min(1.0, float(starts.min(initial=1.0))))]
        if lines[0][1] > corners[0][1]:
            corners.append((_LEAST, lines[0][1]))
        for (rise, start), (flatter, higher) in itertools.pairwise(lines):
            x = min(1.0, max(corners[-1][0], (higher - start) / (rise - flatter)))
            corners.append((x, min(1.0, max(rise * x + start, flatter * x + higher) * _UP)))
        points = np.array(corners)
        return cls(points[:, 0], points[:, 1], slopes=slopes)

    @classmethod
    def from_likelihoods(cls, inside: ArrayLike, outside: ArrayLike) -> Roc:
        """Build the exact curve of the best attacker from two finite output laws.

        ``inside[s]`` and ``outside[s]`` are the probabilities of output s when the record is in and out
        (Neyman-Pearson: outputs are accused in falling order of their likelihood ratio).
        """
        p, q = check_rates("inside", inside), check_rates("outside", outside)
        if p.ndim != 1 or p.shape != q.shape or p.size == 0:
            raise InputError(f"inside and outside must be two laws over the same outputs, got {p.shape} and {q.shape}")
        for name, law in (("inside", p), ("outside", q)):
            if abs(law.sum() - 1.0) > 1e-9:
                raise InputError(f"{name} must be probabilities that sum to one, got a sum of {law.sum()!r}")
        seen = (p > 0) | (q > 0)
        p, q = p[seen], q[seen]
        with np.errstate(divide="ignore", over="ignore"):
            ratios = p / q
        order = np.argsort(-ratios, kind="stable")
        roc = cls(_running_share(q[order]), _running_share(p[order])).hull()
        roc._slopes = float(ratios.min()), float(ratios.max())
        return roc

    @property
    def vertices(self) -> Array | None:
        """The corners (FPR, TPR) of a piecewise-linear curve, one per row, or None for a smooth one."""
        return self._vertices.copy() if self._smooth is None else None

    def tpr(self, fpr: ArrayLike) -> Any:
        """Return the TPR at each FPR: a float for a number, an array for an array."""
        rates = check_rates("fpr", fpr)
        if self._smooth is not None:
            value = self._smooth.tpr(rates)
        else:
            value = np.minimum(np.interp(rates, self._vertices[:, 0], self._vertices[:, 1]), 1.0)
        return float(value) if np.ndim(value) == 0 else value

    def fpr(self, tpr: ArrayLike) -> Any:
        """Return the smallest FPR at which each TPR is reached."""
        rates = check_rates("tpr", tpr)
        value = _leftmost(rates, self._vertices) if self._smooth is None else self._smooth.fpr(rates)
        return float(value) if np.ndim(value) == 0 else value

    def divergence(self, gamma: float) -> float:
        """Return E_γ = max over the curve of TPR - γ·FPR, the hockey-stick divergence of in from out.

        Exact on vertices but for the last digit, rounded up; never below max(0, 1 - γ), which guessing blindly reaches.
        """
        gamma = check_number("gamma", gamma, low=0.0)
        if math.isinf(gamma):
            return float(self.tpr(0.0))
        if self._smooth is None:
            return self.gain(Fraction(1), Fraction(gamma))
        return max(0.0, 1.0 - gamma, float(self._smooth.divergence(gamma)))

    def gain(self, found: Fraction, accused: Fraction) -> float:
        """Return the largest found·TPR - accused·FPR for weights of at least 0, rounded up (vertices only).

        Among vertices that floats cannot tell apart the best is found by fractions: where the gain is small beside the
        rates, floats keep no digit of it.
        """
        x, y = self._vertices.T
        x = np.where(x > _LEAST, x, 0.0)
        earned, paid = float(found) * y, float(accused) * x
        rounding = 2.0 * _EPS * (earned + paid) + 1e-322
        near = earned - paid + rounding >= np.max(earned - paid - rounding)
        if np.count_nonzero(near) > _MOST_EXACT:
            return float(np.max(earned - paid + rounding))
        corners = zip(x[near].tolist(), y[near].tolist(), strict=True)
        return float_above(max(found * Fraction(tpr) - accused * Fraction(fpr) for fpr, tpr in corners))

    def support(self, tpr_weight: float, fpr_weight: float) -> float:
        """Return the largest ``tpr_weight * TPR + fpr_weight * FPR`` that any attacker reaches.

        Attackers reach all points between the curve and its mirror image through (½, ½): doing the opposite
        of an attack is an attack as well.
        """
        corner = max(0.0, tpr_weight + fpr_weight)
        if tpr_weight > 0 > fpr_weight:
            return max(corner, tpr_weight * self.divergence(-fpr_weight / tpr_weight))
        if tpr_weight < 0 < fpr_weight:
            opposite = -tpr_weight * self.divergence(-fpr_weight / tpr_weight)
            return max(corner, tpr_weight + fpr_weight + opposite)
        return corner

    def slope_for(self, delta: float) -> float:
        """Return the smallest γ with E_γ ≤ ``delta`` (inf where there is none), rounded up.

        It is the slope of the tangent to the curve from the point (0, delta); ln γ is the ε that goes with δ. A curve
        that starts above ``delta``, if only by a last digit, has none: what lies under that digit may be any slope.
        """
        delta = check_number("delta", delta, low=0.0, high=1.0)
        if self._smooth is not None:
            return _smooth_slope(self, delta)
        above = self._vertices[self._vertices[:, 1] > delta]
        if above.size == 0:
            return 0.0
        if above[0, 0] <= _LEAST:
            return math.inf
        with np.errstate(over="ignore"):
            rises = (above[:, 1] - delta) / above[:, 0]
            near = rises * _UP >= np.max(rises / _UP)
            if np.count_nonzero(near) > _MOST_EXACT or math.isinf(np.max(rises)):
                return float(np.max(rises * _UP))
        return float_above(max((Fraction(y) - Fraction(delta)) / Fraction(x) for x, y in above[near].tolist()))

    @property
    def slopes(self) -> tuple[float, float]:
        """The smallest and the largest likelihood ratio: the slopes at the right and at the left end.

        From vertices the smallest is rounded down by what one unit in the last place of the last edge's start can
        make: towards (1, 1) vertices may be closer to each other than their rounding, and their slope is noise.
        """
        if self._slopes is not None:
            return self._slopes
        v = self._vertices
        with np.errstate(over="ignore"):
            high = math.inf if v[0, 1] > 0 else float((v[1, 1] - v[0, 1]) / (v[1, 0] - v[0, 0]))
            start = v[-2] * (1.0 + _EPS * np.array([-1.0, 1.0]))
            low = max(0.0, float((v[-1, 1] - start[1]) / (v[-1, 0] - start[0])))
        return low, high

    def hull(self) -> Roc:
        """Return the least concave curve above this one: what mixing attacks reaches."""
        corners = _concave(self._vertices)
        return self if len(corners) == len(self._vertices) else _from_vertices(corners)

    def reversed(self) -> Roc:
        """Return the curve with the roles of in and out exchanged: (FPR, TPR) ↦ (1 - TPR, 1 - FPR).

        It is the curve of an attacker who looks for outsiders. Corners are rounded outwards.
        """
        if self._smooth is None:
            x, y = self._vertices[::-1].T
            return _from_vertices(_canonical(-_one_less(y, -1.0), _one_less(x, 1.0)))
        smooth, (low, high) = self._smooth, self.slopes
        if smooth.mirrored is smooth.divergence:
            return self
        return Roc.from_function(
            lambda x: 1.0 - smooth.fpr(1.0 - x),
            fpr=lambda y: 1.0 - smooth.tpr(1.0 - y),
            divergence=smooth.mirrored,
            mirrored=smooth.divergence,
            slopes=(1.0 / high if high > 0 else math.inf, 1.0 / low if low > 0 else math.inf),
        )

    def symmetrised(self) -> Roc:
        """Return the least concave curve above this one and its :meth:`reversed` (vertices only)."""
        if self._smooth is not None:
            raise InputError("symmetrised needs a piecewise-linear curve, got a smooth one")
        both = np.vstack([self._vertices, self.reversed()._vertices])
        both = both[np.lexsort((both[:, 1], both[:, 0]))]
        return _from_vertices(_concave(_canonical(both[:, 0], np.maximum.accumulate(both[:, 1]))))

    def compose(self, inner: Roc) -> Roc:
        """Return FPR ↦ self.tpr(inner.tpr(FPR)): two comparisons in a row, in against middle, middle against out.

        Never below it for concave curves (see :func:`_raised`).
        """
        if self._smooth is not None or inner._smooth is not None:
            raise InputError("compose needs two piecewise-linear curves, got a smooth one")
        ours = _leftmost(self._vertices[:, 0], inner._vertices)
        # Products of tiny rates may underflow: then they are rounded down, and the corners keep their heights.
        ours = np.where(ours < 1e-290, np.nextafter(ours, 0.0), ours)
        x = np.concatenate([inner._vertices[:, 0], ours])
        y = _raised(self.tpr(inner.tpr(x)))
        y[-len(ours) :] = np.maximum(y[-len(ours) :], self._vertices[:, 1])
        return _from_vertices(_canonical(x, y))

    def lower_of(self, other: Roc) -> Roc:
        """Return the lower of two piecewise-linear curves: both are limits, and so is it."""
        if self._smooth is not None or other._smooth is not None:
            raise InputError("lower_of needs two piecewise-linear curves, got a smooth one")
        x = np.union1d(self._vertices[:, 0], other._vertices[:, 0])
        ours, theirs = self.tpr(x), other.tpr(x)
        over = ours - theirs
        i = np.flatnonzero(over[:-1] * over[1:] < 0.0)
        share = over[i] / (over[i] - over[i + 1])
        cross = x[i] + (x[i + 1] - x[i]) * share
        at_cross = np.maximum(self.tpr(cross), other.tpr(cross))
        return Roc(np.concatenate([x, cross]), _raised(np.concatenate([np.minimum(ours, theirs), at_cross])))

    def dominates(self, other: Roc, tolerance: float = 0.0) -> bool:
        """Tell whether this curve lies nowhere below ``other`` by more than ``tolerance``.

        Exact when both are piecewise linear, and for a concave piecewise-linear curve against a smooth one (no
        point of ``other`` above a line through an edge of self). Otherwise judged at 4,001 FPRs, dense at both ends.
        """
        tolerance = check_number("tolerance", tolerance, low=0.0)
        if self._smooth is other._smooth is None:
            x = np.union1d(self._vertices[:, 0], other._vertices[:, 0])
        elif self._smooth is None and self.is_concave:
            v = self._vertices
            edges = np.diff(v, axis=0)
            rises = edges[:, 1] / edges[:, 0]
            lines = v[:-1, 1] - rises * v[:-1, 0]
            flat_top = other.tpr(0.0) <= v[0, 1] + tolerance
            return bool(
                flat_top and all(other.divergence(g) <= t + tolerance for g, t in zip(rises, lines, strict=True))
            )
        else:
            ends = np.geomspace(1e-12, 0.5, 2000)
            x = np.union1d(np.concatenate([[0.0], ends, 1.0 - ends[::-1], [1.0]]), other._vertices[:, 0])
        return bool(np.all(self.tpr(x) >= other.tpr(x) - tolerance))

    @property
    def is_concave(self) -> bool:
        """Whether the curve is concave, as that of the best attacker always is (up to rounding)."""
        if self._smooth is not None:
            return True
        hull = _concave(self._vertices)
        return bool(np.max(np.interp(self._vertices[:, 0], hull[:, 0], hull[:, 1]) - self._vertices[:, 1]) <= 1e-12)

    def plot(self, ax: Axes | None = None, *, label: str | None = None, scale: str = "linear", **line: Any) -> Axes:
        """Draw the curve on a "linear" or "log" scale, its line as Matplotlib takes it; return the axes."""
        from whosin.plots import draw_curve

        ends = np.geomspace(1e-7, 0.5, 400)
        fpr = np.unique(np.concatenate([[0.0], ends, np.linspace(0.001, 0.999, 400), 1.0 - ends, [1.0]]))
        return draw_curve(ax, fpr, np.asarray(self.tpr(fpr)), label=label, scale=scale, **line)

    def to_dict(self, points: int = 201) -> dict[str, list[float]]:
        """Return the curve for JSON: its vertices where they are few, otherwise ``points`` of them."""
        points = check_whole("points", points, low=3)
        if self._smooth is None and len(self._vertices) <= points:
            x, y = self._vertices[:, 0], self._vertices[:, 1]
        else:
            ends = np.geomspace(1e-8, 0.5, (points - 1) // 2)
            x = np.unique(np.concatenate([[0.0], ends, 1.0 - ends, [1.0]]))
            y = self.tpr(x)
        return {"fpr": x.tolist(), "tpr": y.tolist()}

    def parameters(self) -> dict[str, Any]:
        """Return all corners for JSON, and the slopes where they were given: ``Roc(**parameters)`` is equal."""
        if self._smooth is not None:
            raise InputError("a smooth curve has no corners to store")
        slopes = None if self._slopes is None else ["inf" if math.isinf(slope) else slope for slope in self._slopes]
        corners = {"fpr": self._vertices[:, 0].tolist(), "tpr": self._vertices[:, 1].tolist()}
        return corners if slopes is None else {**corners, "slopes": slopes}

    def __eq__(self, other: object) -> bool:
        """Whether two curves have the same corners; smooth ones are equal to themselves alone."""
        if not isinstance(other, Roc) or self._smooth is not None or other._smooth is not None:
            return self is other
        return self._slopes == other._slopes and np.array_equal(self._vertices, other._vertices)

    def __hash__(self) -> int:
        return id(self) if self._smooth is not None else hash((self._slopes, self._vertices.tobytes()))

    def __repr__(self) -> str:
        kind = "smooth" if self._smooth is not None else f"{len(self._vertices)} vertices"
        return f"Roc({kind}, advantage {self.divergence(1.0):.6g})"

    def _repr_html_(self) -> str:
        finds = f"{100 * float(self.tpr(0.01)):.3g}% of the members while 1% of the outsiders are accused"
        return f"<p>ROC curve: advantage {self.divergence(1.0):.3g}; finds {finds}</p>"


def _one_less(rates: Array, sign: float) -> Array:
    """sign·(1 - rate), rounded up: what a subtraction loses is the difference of two floats again."""
    rest = 1.0 - rates
    lost = sign * ((1.0 - rest) - rates) > 0.0
    return np.asarray(np.where(lost, np.nextafter(sign * rest, math.inf), sign * rest))


def _raised(tpr: Array) -> Array:
    """TPRs that were looked up, raised by more than rounding can have taken.

    Looking up loses a few units of the last digit of the TPR. A corner that is missed by as much of its FPR costs no
    more: a concave curve through no less than 0 is no steeper than TPR/FPR.
    """
    return np.asarray(np.minimum(tpr * (1.0 + 32.0 * _EPS), 1.0))


def _lowest_lines(slopes: Array, offsets: Array) -> list[tuple[float, float]]:
    """Lines of finite slope that are lowest somewhere in [0, 1], from the steepest to the flattest."""
    kept: list[tuple[float, float]] = []
    for i in np.lexsort((-offsets, -slopes)):
        rise, start = float(slopes[i]), float(offsets[i])
        if math.isinf(rise):
            continue
        while kept:
            if start <= kept[-1][1] or rise == kept[-1][0]:
                kept.pop()
                continue
            if len(kept) == 1:
                break
            (a, p), (b, q) = kept[-2], kept[-1]
            if (start - p) * (a - b) > (q - p) * (a - rise):
                break
            kept.pop()
        kept.append((rise, start))
    return kept


def _from_vertices(vertices: Array) -> Roc:
    roc = Roc.__new__(Roc)
    roc._vertices, roc._smooth, roc._slopes = vertices, None, None
    return roc


def _canonical(x: Array, y: Array) -> Array:
    """Sort by FPR, keep the highest TPR of each FPR, and start at FPR 0 and end at (1, 1)."""
    x, y = np.concatenate([[0.0], x, [1.0]]), np.concatenate([[0.0], y, [1.0]])
    order = np.lexsort((y, x))
    x, y = x[order], y[order]
    last = np.append(x[1:] != x[:-1], True)
    x, y = x[last], y[last]
    falling = np.diff(y)
    if np.any(falling < -1e-12):
        i = int(np.argmin(falling))
        raise InputError(
            f"tpr must hold values that never fall as fpr rises, got {float(y[i + 1])} after {float(y[i])}"
        )
    return np.column_stack([x, np.maximum.accumulate(y)])


def _running_share(masses: Array) -> Array:
    """Cumulated shares of the total, exactly 1 from the last positive mass on."""
    shares = np.minimum(np.cumsum(masses) / masses.sum(), 1.0)
    shares[int(np.flatnonzero(masses)[-1]) :] = 1.0
    return np.asarray(shares)


def _concave(vertices: Array) -> Array:
    """Upper concave hull of points sorted by FPR (Andrew's monotone chain, O(m)); no point is above it."""
    kept: list[tuple[float, float]] = []
    for point in vertices.tolist():
        while len(kept) >= 2 and not _turns_down(kept[-2], kept[-1], point):
            kept.pop()
        kept.append(tuple(point))
    return np.array(kept)


def _turns_down(first: Sequence[float], middle: Sequence[float], last: Sequence[float]) -> bool:
    """Whether the middle one of three points lies above the line through the others; by fractions if floats are unsure.

    A corner that is dropped though it is above would lower the limit.
    """
    (x0, y0), (x1, y1), (x, y) = first, middle, last
    along, up = (x1 - x0) * (y - y0), (y1 - y0) * (x - x0)
    if abs(along - up) > 8.0 * _EPS * max(along, up) + 1e-290:
        return along < up
    a, b, c, d, e, f = (Fraction(value) for value in (x0, y0, x1, y1, x, y))
    return (c - a) * (f - b) < (d - b) * (e - a)


def _leftmost(rates: Array, vertices: Array) -> Array:
    """Smallest FPR at which a piecewise-linear curve reaches each TPR."""
    x, y = vertices[:, 0], vertices[:, 1]
    i = np.clip(np.searchsorted(y, rates, side="left"), 1, len(y) - 1) if len(y) > 1 else np.zeros(rates.shape, int)
    rise = y[i] - y[i - 1]
    share = np.divide(rates - y[i - 1], rise, out=np.zeros(np.shape(rates)), where=rise > 0)
    return np.asarray(np.where(rates <= y[0], 0.0, x[i - 1] + np.clip(share, 0.0, 1.0) * (x[i] - x[i - 1])))


def _smooth_slope(roc: Roc, delta: float) -> float:
    """Smallest γ with E_γ ≤ δ on a smooth curve, by a root search in ln γ that ends on the safe side."""
    low, high = roc.slopes
    if delta == 0.0:
        return high
    if roc.divergence(low) <= delta:
        return 1.0 - delta
    if math.isfinite(high) and roc.divergence(high) > delta:
        return math.inf
    from scipy.optimize import brentq

    top = 1.0 if math.isinf(high) else math.log(high)
    while roc.divergence(math.exp(top)) > delta:
        if top > 700:
            return math.inf
        top = min(2.0 * top, 709.0)
    bottom = -1.0
    while bottom > -700 and roc.divergence(math.exp(bottom)) <= delta:
        bottom *= 2.0
    root = brentq(lambda t: roc.divergence(math.exp(t)) - delta, bottom, top, xtol=1e-14, rtol=1e-14)
    gamma, step = math.exp(float(root)), 1e-15
    while roc.divergence(gamma) > delta:
        gamma *= 1.0 + step
        step *= 2.0
    return gamma

"""Unlearning by not having learned: how many deletions a model trained on a random sample can be asked for.

Keep each record with probability p, independently, and train with ε-DP (add/remove). Whatever came out, a given record
was left out with probability at least L = 1/(1 + e^ε p/(1-p)), and none of m given records was used with probability at
least L^m (Thudi et al. 2022, corollary 1 and section 6). As long as L^m stays at or above a threshold B, the model need
not be changed for these m deletions: the B-MI unlearning guarantee of their definition 2.

Section 6 prints e^{-ε} in L, which overstates the number of deletions by up to e^{2ε}, and takes the product of the m
probabilities for an identity, which it is not. The limit L^m holds all the same: given that the first records were
left out, the rest is again independent sampling with an ε-DP mechanism. It is attained where an output has probability
proportional to e^{ε|D|}.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.answers import card
from whosin.errors import (
    CalibrationError,
    ImplicationError,
    InputTypeError,
    check_number,
    check_probability,
    check_whole,
)
from whosin.guarantees import Guarantee, PureDP
from whosin.mechanisms import SecureSource, SeededSource

__all__ = ["Unlearning", "deletion_capacity", "inclusion_for", "remaining", "subsample"]

_LEAST_LOG = 745.0
"""No positive float has a logarithm below minus this."""

_LONGEST_POWER = 1100
"""(1 - p)^m of a float p is a float only for m up to 1074 (p = 1/2)."""


def deletion_capacity(epsilon: float | Guarantee, inclusion: float, threshold: float) -> int:
    """Return the largest m with P(none of m given records was used | any output) ≥ threshold: largest m, L^m ≥ B.

    Exact for the numbers given: decided in as many decimal digits as it takes.

    Parameters
    ----------
    epsilon : float or Guarantee
        ε of the training under add/remove adjacency, or a guarantee that implies it. From (ε, δ) with δ > 0 and from
        replace-one DP nothing follows: ImplicationError.
    inclusion : float
        In (0, 1]: the probability with which each record was drawn; the largest where they differ.
    threshold : float
        B in (0, 1]: the least tolerable probability that none of the deleted records was used.

    Examples
    --------
    >>> import whosin as wi
    >>> wi.unlearning.deletion_capacity(1.0, inclusion=0.01, threshold=0.8)
    8
    """
    return _capacity(_epsilon(epsilon), *_checked(inclusion, threshold))


def remaining(epsilon: float | Guarantee, inclusion: float, threshold: float, requests: int) -> int:
    """Return how many more deletions may follow after ``requests`` of them before the model must be trained anew.

    Examples
    --------
    >>> import whosin as wi
    >>> wi.unlearning.remaining(1.0, inclusion=0.01, threshold=0.8, requests=3)
    5
    """
    return max(0, deletion_capacity(epsilon, inclusion, threshold) - check_whole("requests", requests))


def inclusion_for(epsilon: float | Guarantee, threshold: float, capacity: int) -> float:
    """Return the largest probability of drawing each record that allows ``capacity`` deletions, rounded down.

    Parameters
    ----------
    epsilon, threshold
        As in :func:`deletion_capacity`.
    capacity : int
        The number of deletions to allow for.

    Examples
    --------
    >>> import whosin as wi
    >>> round(wi.unlearning.inclusion_for(1.0, threshold=0.8, capacity=10), 5)
    0.00823
    """
    e = _epsilon(epsilon)
    _, b = _checked(1.0, threshold)
    wanted = check_whole("capacity", capacity)
    if wanted == 0:
        return 1.0
    refusal = f"capacity={wanted} cannot be reached with epsilon={e:g} and threshold={b:g} by any inclusion above 0"
    if b == 1.0 or e > 2.0 * _LEAST_LOG:
        raise CalibrationError(refusal)
    with localcontext(Context(prec=60 + len(str(wanted)))):
        odds = ((-Decimal(b).ln() / wanted).exp() - 1) * Decimal(-e).exp()
        inclusion = float(odds / (1 + odds))
    while inclusion > 0.0 and _capacity(e, inclusion, b) < wanted:
        inclusion = math.nextafter(inclusion, 0.0)
    if inclusion == 0.0:
        raise CalibrationError(refusal)
    return inclusion


@dataclass(frozen=True)
class Unlearning:
    """B-MI unlearning of a model trained with ε-DP on a random sample, after a number of deletion requests.

    Parameters
    ----------
    epsilon : float or Guarantee
        ε of the training under add/remove adjacency; a guarantee that implies it is turned into its ε.
    inclusion : float
        In (0, 1]: the probability with which each record was drawn.
    threshold : float
        B in (0, 1]: the least tolerable probability that none of the deleted records was used.
    requests : int, default 0
        How many records were asked to be deleted so far.

    Examples
    --------
    >>> import whosin as wi
    >>> now = wi.unlearning.Unlearning(1.0, inclusion=0.01, threshold=0.8, requests=3)
    >>> now.capacity, now.remaining, now.holds
    (8, 5, True)
    """

    epsilon: float
    inclusion: float
    threshold: float
    requests: int = 0

    def __post_init__(self) -> None:
        inclusion, threshold = _checked(self.inclusion, self.threshold)
        values = {"epsilon": _epsilon(self.epsilon), "inclusion": inclusion, "threshold": threshold}
        for name, value in {**values, "requests": check_whole("requests", self.requests)}.items():
            object.__setattr__(self, name, value)

    @cached_property
    def capacity(self) -> int:
        """How many deletions are covered in all."""
        return _capacity(self.epsilon, self.inclusion, self.threshold)

    @property
    def remaining(self) -> int:
        """How many more deletions are covered."""
        return max(0, self.capacity - self.requests)

    @property
    def holds(self) -> bool:
        """Whether the requests so far are covered."""
        return self.requests <= self.capacity

    @cached_property
    def none_used(self) -> float:
        """L^m, the lower limit on the probability that none of the requested records was used, rounded down."""
        return _power(self.epsilon, self.inclusion, self.requests)

    @property
    def assumes(self) -> tuple[str, ...]:
        """The assumptions under which the numbers hold, in words."""
        return (
            f"training is {self.epsilon:g}-DP where one record is added or removed, and covers all that was released",
            f"each record was drawn independently with probability at most {self.inclusion:g}, and nobody who judges "
            "knows the draw",
            "who asks for deletion may depend on what was released, not on who was drawn",
            "one record is one person; nothing else reveals who was used",
        )

    def explain(self) -> str:
        """Return a paragraph for a reader who is no expert. Lower limits are rounded down."""
        b, draw = _percent(self.threshold), _percent(self.inclusion)
        if self.capacity == 0:
            covered = f"Not a single deletion is covered at {b}: train anew without the record, or draw fewer records."
        else:
            covered = (
                f"Deletion requests covered: {self.capacity:,}. Whatever the model shows, the probability that none of "
                f"these records was used in training stays at or above {b}."
            )
        sentences = [f"Each record was used with probability {draw}, in {self.epsilon:g}-DP training. {covered}"]
        if self.requests:
            least = _percent(self.none_used, down=True)
            so_far = f"With {self.requests:,} asked for so far, none was used with probability at least {least}"
            more = f"still covered: {self.remaining:,}" if self.holds else "that is more than is covered: train anew"
            sentences.append(f"{so_far}; {more}.")
        sentences.append("Deleting a record from the pool is still due: it must not be drawn again.")
        return " ".join(sentences)

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON (infinity as the string "inf")."""
        return {
            "epsilon": "inf" if math.isinf(self.epsilon) else self.epsilon,
            "inclusion": self.inclusion,
            "threshold": self.threshold,
            "requests": self.requests,
            "capacity": self.capacity,
            "remaining": self.remaining,
            "holds": self.holds,
            "none_used": self.none_used,
            "assumes": list(self.assumes),
        }

    def __str__(self) -> str:
        return (
            f"Unlearning(epsilon={self.epsilon:g}, inclusion={self.inclusion:g}, threshold={self.threshold:g}): "
            f"{self.requests} of {self.capacity} deletions"
        )

    def _repr_html_(self) -> str:
        return card(str(self), self.explain(), {"Assumes": self.assumes})


def subsample(records: Any, rate: float, rng: Any = None) -> Any:
    """Keep each record independently with probability ``rate``, in order.

    With ε-DP training on what is kept, nobody's belief that a record was used exceeds 1/(1 + e^{-ε}(1-rate)/rate),
    whatever the law of the records, dependent ones included (Thudi et al. 2022, section 4.2): given the records, the
    sample is independent. :func:`whosin.calibrate.sampling_rate` finds the rate for a tolerable belief.

    Parameters
    ----------
    records : array, list, tuple, or data frame or series of pandas, polars or pyarrow
        One row per record. The sample has the same type.
    rate : float
        In [0, 1].
    rng : optional
        A seed, or anything that numpy.random.default_rng takes, for experiments: who knows it knows the sample. By
        default the operating system's randomness decides, which is what the guarantee needs.

    Examples
    --------
    >>> import whosin as wi
    >>> wi.unlearning.subsample(list(range(10)), 0.5, rng=0)
    [2, 5]
    """
    probability = check_probability("rate", rate)
    source = SecureSource() if rng is None else SeededSource(rng)

    def kept(count: int) -> NDArray[np.bool_]:
        return source.uniform(count) < probability

    if isinstance(records, np.ndarray):
        if records.ndim == 0:
            raise InputTypeError(f"records must have one row per record, got a single value: {records!r}")
        return records[kept(len(records))]
    if isinstance(records, list | tuple):
        keep = kept(len(records))
        return type(records)([record for record, stays in zip(records, keep, strict=True) if stays])
    return _subsample_frame(records, kept)


def _subsample_frame(records: Any, kept: Any) -> Any:
    import narwhals as nw

    try:
        frame = nw.from_native(records, eager_only=True, allow_series=True)
    except TypeError:
        raise InputTypeError(
            f"records must be an array, a list, a tuple or a data frame in memory, got {type(records).__name__}"
        ) from None
    return nw.to_native(frame.filter(kept(len(frame)).tolist()))


def _epsilon(epsilon: float | Guarantee) -> float:
    if not isinstance(epsilon, Guarantee):
        return check_number("epsilon", epsilon, low=0.0)
    pure = epsilon.implies(PureDP)
    if pure.adjacency == "replace":
        raise ImplicationError(
            "replace-one DP bounds no deletions: A(D) = |D| is 0-DP under replace and may tell that everybody was "
            "used. Use a guarantee with adjacency='add_remove'"
        )
    return pure.epsilon


def _checked(inclusion: float, threshold: float) -> tuple[float, float]:
    p = check_number("inclusion", inclusion, low=0.0, high=1.0, open_low=True)
    return p, check_number("threshold", threshold, low=0.0, high=1.0, open_low=True)


def _capacity(epsilon: float, inclusion: float, threshold: float) -> int:
    """Return floor(ln B / ln L), with more digits until the whole number is certain.

    The quotient can be a whole number m only for ε = 0, because e^ε is transcendental otherwise, and then m is small:
    (1 - p)^m must be a float. That case is decided in fractions.
    """
    if threshold == 1.0 or inclusion == 1.0 or epsilon > 2.0 * _LEAST_LOG:
        return 0
    precision = 60
    while True:
        with localcontext(Context(prec=precision)):
            quotient = -Decimal(threshold).ln() / _log_loss(epsilon, inclusion)
            slack = quotient.scaleb(8 - precision)
            low, high = int(quotient - slack), int(quotient + slack)
        if low == high:
            return low
        if epsilon == 0.0 and high <= _LONGEST_POWER:
            return high if (1 - Fraction(inclusion)) ** high >= Fraction(threshold) else low
        precision = max(2 * precision, 60 + quotient.adjusted())


def _log_loss(epsilon: float, inclusion: float) -> Decimal:
    """Return -ln L = ln(1 + e^ε p/(1-p)) to the precision of the context, less a few digits.

    The logarithm of a number near one loses as many digits as its distance has zeros: they are added first.
    """
    p = Decimal(inclusion)
    with localcontext() as wide:
        wide.prec += max(0, -p.adjusted()) + 10
        return (1 + Decimal(epsilon).exp() * p / (1 - p)).ln()


def _power(epsilon: float, inclusion: float, requests: int) -> float:
    """Return L^m, rounded down."""
    if requests == 0:
        return 1.0
    if inclusion == 1.0 or epsilon > 2.0 * _LEAST_LOG:
        return 0.0
    with localcontext(Context(prec=60 + len(str(requests)))):
        loss = _log_loss(epsilon, inclusion) * requests
        if loss > _LEAST_LOG:
            return 0.0
        exact = (-loss).exp() * (1 - Decimal("1e-40"))
        nearest = float(exact)
        return nearest if Decimal(nearest) <= exact else math.nextafter(nearest, 0.0)


def _percent(share: float, down: bool = False) -> str:
    if not down:
        return f"{100 * share:.6g}%"
    with localcontext(Context(prec=4, rounding=ROUND_FLOOR)):
        return f"{Decimal(share) * 100:f}%"

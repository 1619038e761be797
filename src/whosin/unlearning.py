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
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from whosin.answers import Answer, parts
from whosin.arrays import Flags
from whosin.errors import (
    CalibrationError,
    ImplicationError,
    InputError,
    InputTypeError,
    check_number,
    check_probability,
    check_whole,
)
from whosin.guarantees import Guarantee, PureDP
from whosin.mechanisms import SecureSource, SeededSource
from whosin.tables import Table, as_table, read_table
from whosin.tables.schema import plain_label

__all__ = ["Requested", "Unlearning", "deletion_capacity", "inclusion_for", "remaining", "requested", "subsample"]

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
class Unlearning(Answer):
    """B-MI unlearning of a model trained with ε-DP on a random sample, after a number of deletion requests.

    Parameters
    ----------
    epsilon : float or Guarantee
        ε of the training under add/remove adjacency; a guarantee that implies it is turned into its ε.
    inclusion : float
        In (0, 1]: the probability with which each record was drawn.
    threshold : float
        B in (0, 1]: the least tolerable probability that none of the deleted records was used.
    requests : int, or sequence of float, default 0
        How many records were asked to be deleted so far; or, where records were drawn with different probabilities,
        those of these records, none above ``inclusion``. Becomes their number.

    Examples
    --------
    >>> import whosin as wi
    >>> now = wi.unlearning.Unlearning(1.0, inclusion=0.01, threshold=0.8, requests=3)
    >>> now.capacity, now.remaining, now.holds
    (8, 5, True)
    >>> wi.unlearning.Unlearning(1.0, inclusion=0.01, threshold=0.8, requests=[0.01, 0.002, 0.002]).remaining
    6
    """

    epsilon: float
    inclusion: float
    threshold: float
    requests: int = 0
    inclusions: Mapping[float, int] = field(init=False, repr=False, hash=False)
    """How many of the requested records were drawn with each probability."""

    def __post_init__(self) -> None:
        inclusion, threshold = _checked(self.inclusion, self.threshold)
        given: Any = self.requests
        if isinstance(given, list | tuple) or (isinstance(given, np.ndarray) and given.ndim == 1):
            drawn = Counter(check_number("requests", p, low=0.0, high=inclusion) for p in given)
        else:
            drawn = Counter({inclusion: check_whole("requests", given)})
        values = {"epsilon": _epsilon(self.epsilon), "inclusion": inclusion, "threshold": threshold}
        for name, value in {**values, "requests": drawn.total(), "inclusions": dict(drawn)}.items():
            object.__setattr__(self, name, value)

    @cached_property
    def capacity(self) -> int:
        """How many deletions are covered in all."""
        return _capacity(self.epsilon, self.inclusion, self.threshold)

    @property
    def _alike(self) -> bool:
        """Whether all requested records were drawn with the same probability."""
        return set(self.inclusions) <= {self.inclusion}

    @cached_property
    def remaining(self) -> int:
        """How many more deletions are covered, of records that were drawn with probability ``inclusion``."""
        if self._alike:
            return max(0, self.capacity - self.requests)
        if self.none_used == 0.0 or self.none_used < self.threshold:
            return 0
        left = math.nextafter(self.threshold / self.none_used, math.inf)
        return _capacity(self.epsilon, self.inclusion, min(1.0, left))

    @cached_property
    def holds(self) -> bool:
        """Whether the requests so far are covered."""
        if self._alike:
            return self.requests <= self.capacity
        return self.none_used >= self.threshold

    @cached_property
    def none_used(self) -> float:
        """The product of L over the requested records: a lower limit on the probability that none of them was used.

        Rounded down; L^m where all were drawn with the same probability.
        """
        return _power(self.epsilon, self.inclusions)

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
        most = "" if self._alike else "at most "
        sentences = [f"Each record was used with probability {most}{draw}, in {self.epsilon:g}-DP training. {covered}"]
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
            **parts(self, "epsilon", "inclusion", "threshold", "requests"),
            "inclusions": [{"inclusion": p, "requests": count} for p, count in self.inclusions.items() if count],
            **parts(self, "capacity", "remaining", "holds", "none_used", "assumes"),
        }

    def __str__(self) -> str:
        return (
            f"Unlearning(epsilon={self.epsilon:g}, inclusion={self.inclusion:g}, threshold={self.threshold:g}): "
            f"{self.requests} of {self.capacity} deletions"
        )


@dataclass(frozen=True)
class Requested:
    """Deletion requests of a table; made by :func:`requested`.

    Examples
    --------
    >>> import whosin as wi
    >>> print(wi.unlearning.requested({"who": ["a", "b", "b"]}, "who"))
    3 rows ask for 2 different keys, which have 2 records
    """

    requests: int | tuple[float, ...]
    """The records that are to be deleted: their number or, where they differ, the probabilities of drawing each."""
    rows: int
    """Rows of the table of requests."""
    people: int
    """Different keys among them."""
    unknown: int
    """Keys that no record has."""

    @property
    def inclusion(self) -> float | None:
        """The largest probability of drawing one of them; None if they have none of their own."""
        return max(self.requests, default=None) if isinstance(self.requests, tuple) else None

    def __str__(self) -> str:
        records = self.requests if isinstance(self.requests, int) else len(self.requests)
        nobody = "" if not self.unknown else f"; {self.unknown} of the keys belong to no record"
        return f"{self.rows} rows ask for {self.people} different keys, which have {records} records{nobody}"


def requested(requests: Any, key: str, records: Any = None, *, inclusion_column: str | None = None) -> Requested:
    """Return how many records a table of deletion requests is about.

    Parameters
    ----------
    requests : data frame, Table or path
        One row per request; rows with the same key ask once.
    key : str
        The column that says whose a row is. In text files its cells stay as written: 007 is not 7.
    records : data frame, Table or path, optional
        The pool from which the training was drawn. Every record of a person who asks counts. Without it, each key is
        one record.
    inclusion_column : str, optional
        A column with the probability of drawing each record: of ``records`` or, without them, of ``requests``.

    Notes
    -----
    O(rows). The pool is needed as it was before anything was deleted from it.

    Examples
    --------
    >>> import whosin as wi
    >>> pool = {"who": ["a", "a", "b", "c"], "p": [0.01, 0.01, 0.005, 0.01]}
    >>> asked = wi.unlearning.requested({"who": ["a", "b", "b", "z"]}, "who", pool, inclusion_column="p")
    >>> print(asked)
    4 rows ask for 3 different keys, which have 3 records; 1 of the keys belong to no record
    >>> wi.unlearning.Unlearning(1.0, 0.01, 0.8, asked.requests).remaining
    5
    """
    asking = _keyed(requests, "requests", key)
    wanted = asking.column(key)
    keys = dict.fromkeys(wanted.tolist())
    pool = asking if records is None else _keyed(records, "records", key)
    held = pool.column(key).tolist()
    if records is None:
        first = {who: row for row, who in reversed(list(enumerate(held)))}
        rows = sorted(first.values())
    else:
        rows = [row for row, who in enumerate(held) if who in keys]
    unknown = len(keys.keys() - set(held))
    if unknown:
        _check_written(asking, wanted, pool, set(held))
    if inclusion_column is None:
        return Requested(len(rows), len(wanted), len(keys), unknown)
    if inclusion_column not in pool.names or pool.kind(inclusion_column) != "number":
        raise InputError(
            f"inclusion_column must be a column of numbers in {pool.origin}, got {inclusion_column!r}; it has "
            f"{', '.join(pool.names)}"
        )
    drawn = pool.column(inclusion_column)[rows]
    odd = np.flatnonzero(~((drawn >= 0.0) & (drawn <= 1.0)))
    if len(odd):
        place = f"{pool.origin} {pool.place(rows[odd[0]])} column {inclusion_column!r}"
        got = "a missing cell" if np.isnan(drawn[odd[0]]) else f"{drawn[odd[0]]:g}"
        raise InputError(f"{place} must be a probability, got {got}; write that with which the record was drawn")
    return Requested(tuple(drawn.tolist()), len(wanted), len(keys), unknown)


def _keyed(data: Any, name: str, key: str) -> Table:
    """Return a table in which every row has a key, as text."""
    table = read_table(data, categories=[key]) if isinstance(data, str | Path) else data
    table = table if isinstance(table, Table) else as_table(table, name, categories=[key])
    if key not in table.names:
        raise InputError(f"key must be a column of {table.origin}, got {key!r}; it has {', '.join(table.names)}")
    gone = np.flatnonzero(table.stored(key).missing)
    if len(gone):
        raise InputError(
            f"{table.origin} {table.place(int(gone[0]))} column {key!r} must say whose the row is, got a missing cell; "
            "write the key or take the row away"
        )
    return table


def _check_written(asking: Table, wanted: Any, pool: Table, held: set[str]) -> None:
    """Refuse a key that the pool has but for capitals, blanks, letters or first zeros: it would count as nobody's."""
    alike = {plain_label(who).lstrip("0"): who for who in held}
    for row, who in enumerate(wanted):
        if who not in held and (other := alike.get(plain_label(who).lstrip("0"))) is not None:
            raise InputError(
                f"{asking.origin} {asking.place(row)} must have its key as {pool.origin} has it, got {who!r}, there "
                f"{other!r}; write keys in one way in both"
            )


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

    def kept(count: int) -> Flags:
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


def _power(epsilon: float, inclusions: Mapping[float, int]) -> float:
    """Return the product of L over records that were drawn with these probabilities, rounded down."""
    asked = {p: count for p, count in inclusions.items() if count and p}
    if not asked:
        return 1.0
    if 1.0 in asked or epsilon > 2.0 * _LEAST_LOG:
        return 0.0
    with localcontext(Context(prec=60 + len(str(sum(asked.values()))))):
        loss = sum((_log_loss(epsilon, p) * count for p, count in asked.items()), Decimal(0))
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

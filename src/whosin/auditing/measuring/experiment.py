"""The membership experiment: what a query says about members and about non-members, and the prior.

Xu et al. (2022), experiment 1: a record is a member with probability p (then drawn from the training set) or not
(then drawn from outside), and the attacker sees the query's answer. Experiment 2 fixes the two numbers of records
instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.arrays import Array, Flags
from whosin.auditing.measuring.people import People, people_of
from whosin.errors import InputError, InputTypeError, check_choice, check_prior, check_whole
from whosin.tables.objects import is_missing

FEW = 64
"""Whole numbers with at most this many different answers count as symbols."""
FAR = 1e300
"""Answers are cut here before the records of a person are added up."""


@dataclass(frozen=True, eq=False)
class Experiment:
    """Answers of one or several queries about members and about non-members.

    Parameters
    ----------
    members, non_members : array-like of shape (N,) or (N, q)
        The answers: numbers, booleans or strings. Infinities are the largest and the smallest numbers.
    prior : float, default 0.5
        Probability that a record which the attacker meets is a member; not tied to the two sample sizes.
    names : sequence of str, optional
        Names of the q queries; those of a data frame's columns by default.
    kind : {"auto", "discrete", "continuous"}, default "auto"
        "discrete" takes every different answer (of all queries together) as a symbol. "auto" does so for strings,
        booleans, and whole numbers with at most 64 different answers; numbers keep their order beside that.
    person : pair of arrays, optional
        Whose each record is. The records of a person become one: see :mod:`whosin.auditing.measuring.people`.
    directed : bool, default False
        Whether larger answers are known to speak for membership: small ones are then not searched for outright.

    Examples
    --------
    Answers of two attacks on the same records, which :func:`run_audit` takes:

    >>> import numpy as np, whosin as wi
    >>> rng = np.random.default_rng(0)
    >>> members, outsiders = rng.normal(1, 1, (200, 2)), rng.normal(0, 1, (200, 2))
    >>> experiment = wi.auditing.Experiment(members, outsiders, names=("loss", "distance"))
    >>> experiment.kind, experiment.names
    ('continuous', ('loss', 'distance'))
    """

    members: NDArray[Any]
    non_members: NDArray[Any]
    prior: float = 0.5
    names: tuple[str, ...] | None = None
    kind: str = "auto"
    person: Any = None
    directed: bool = False

    def __post_init__(self) -> None:
        names = self.names if self.names is not None else _column_names(self.members)
        members, non_members = _answers("members", self.members), _answers("non_members", self.non_members)
        if members.ndim != non_members.ndim or members.shape[1:] != non_members.shape[1:]:
            raise InputError(
                f"members and non_members must have the same number of queries, got shapes {members.shape} "
                f"and {non_members.shape}"
            )
        numeric = members.dtype.kind == "f"
        if numeric != (non_members.dtype.kind == "f"):
            raise InputTypeError("members and non_members must be answers of one kind, got numbers and text")
        if not numeric:
            members, non_members = members.astype(str), non_members.astype(str)
        given = _names(names, members)
        people = people_of(self.person, (len(members), len(non_members)))
        if people is not None:
            members, non_members, given = _by_person(members, non_members, given, people, self.directed)
        kind = check_choice("kind", self.kind, ("auto", "discrete", "continuous"))
        if kind == "continuous" and not numeric:
            raise InputTypeError('kind="continuous" needs numbers, got answers that are not')
        if kind == "auto":
            kind = "discrete" if not numeric or _few_whole_numbers(members, non_members) else "continuous"
        values = {
            "members": members,
            "non_members": non_members,
            "prior": check_prior(self.prior),
            "names": given,
            "kind": kind,
            "person": people,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def people(self) -> tuple[People, People] | None:
        """The people of both sides, where records were told apart from people."""
        found: tuple[People, People] | None = self.person
        return found

    @property
    def numeric(self) -> bool:
        """Whether the answers are numbers, which have an order."""
        return bool(self.members.dtype.kind == "f")

    @cached_property
    def scores(self) -> tuple[Array, Array]:
        """The answers that have an order, one column per query; none for strings, but for those of two symbols."""
        if not self.numeric:
            inside, outside = self.columns
            two = max(inside.max(), outside.max()) <= 1
            return (inside, outside) if two else (inside[:, :0], outside[:, :0])
        top = np.finfo(np.float64).max
        return np.clip(_table(self.members), -top, top), np.clip(_table(self.non_members), -top, top)

    @cached_property
    def columns(self) -> tuple[Array, Array]:
        """The answers as two tables of finite numbers; one column of symbol numbers for a discrete query."""
        if self.kind == "discrete":
            codes = _symbols(np.concatenate([_table(self.members), _table(self.non_members)]))
            split = len(self.members)
            return codes[:split, None], codes[split:, None]
        return self.scores

    def draw(self, size: int, *, fixed: bool = False, rng: Any = None) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Play the experiment with these answers as the two populations; return answers and labels +1 or -1.

        Parameters
        ----------
        size : int
            Number of records.
        fixed : bool
            False tosses a coin for each record (experiment 1); True takes the whole number nearest to prior·size of
            members first, then non-members (experiment 2).
        rng : optional
            Anything that ``numpy.random.default_rng`` takes.
        """
        size = check_whole("size", size, low=1)
        generator = np.random.default_rng(rng)
        if fixed:
            inside = np.arange(size) < round(self.prior * size)
        else:
            inside = generator.random(size) < self.prior
        rows = np.where(
            inside,
            generator.integers(len(self.members), size=size),
            len(self.members) + generator.integers(len(self.non_members), size=size),
        )
        both = np.concatenate([self.members, self.non_members])
        return both[rows], np.where(inside, 1, -1)


def _by_person(
    members: NDArray[Any],
    non_members: NDArray[Any],
    names: tuple[str, ...],
    people: tuple[People, People],
    directed: bool,
) -> tuple[NDArray[Any], NDArray[Any], tuple[str, ...]]:
    """Return one row of answers per person, and the names of the pooled queries."""
    sides = list(zip((members, non_members), people, strict=True))
    if all(len(who) == len(values) for values, who in sides):
        return members, non_members, names
    if members.dtype.kind != "f":
        raise InputTypeError("person goes with answers that are numbers: strings of several records cannot be pooled")
    sides = [(np.clip(values, -FAR, FAR), who) for values, who in sides]
    ways = ("largest", "mean") if directed else ("largest", "smallest", "mean")
    pooled = [np.concatenate([who.pooled(_table(values), way) for way in ways], axis=1) for values, who in sides]
    return pooled[0], pooled[1], tuple(f"{name} ({way} of a person)" for way in ways for name in names)


def _answers(name: str, given: Any) -> NDArray[Any]:
    """Return checked answers, as floats where they are numbers."""
    try:
        values = np.asarray(given)
    except ValueError:
        raise InputError(f"{name} must have rows of the same length, got ragged ones") from None
    if values.ndim not in (1, 2):
        raise InputError(f"{name} must be an array of shape (N,) or (N, q), got shape {values.shape}")
    if values.size == 0:
        raise InputError(f"{name} must have at least one record and one query, got shape {values.shape}")
    if values.dtype.kind == "O":
        values = _plain(name, values)
    if values.dtype.kind in "biuf":
        numbers = values.astype(np.float64)
        _refuse(name, np.isnan(numbers))
        _check_exact(name, values, numbers)
        return numbers
    if values.dtype.kind not in "USOT":
        raise InputTypeError(f"{name} must hold numbers, booleans or strings, got {values.dtype}")
    return values


def _plain(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Return an array of objects as numbers where all are, and refuse missing entries."""
    _refuse(name, np.vectorize(is_missing, otypes=[bool])(values))
    if any(isinstance(v, str) for v in values.ravel()):
        return values
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        return values
    except OverflowError:
        raise InputError(f"{name} must be numbers that 64-bit floats can hold, got a larger one") from None
    _check_exact(name, values, numbers)
    return numbers


def _check_exact(name: str, values: NDArray[Any], numbers: Array) -> None:
    """Refuse whole numbers that become one when they become 64-bit floats."""
    if values.dtype.kind not in "iuO":
        return
    large = np.abs(numbers) >= 2.0**53
    for value, number in zip(values[large].tolist(), numbers[large].tolist(), strict=True):
        if isinstance(value, int) and value != number:
            raise InputError(
                f"{name} must be whole numbers that 64-bit floats tell apart, all of them up to 2**53, got {value}; "
                "pass identifiers as text"
            )


def _refuse(name: str, missing: Flags) -> None:
    rows = np.flatnonzero(missing.reshape(len(missing), -1).any(axis=1))
    if rows.size:
        more = ", …" if rows.size > 5 else ""
        raise InputError(f"{name} must hold answers without gaps, got NaN or None in rows {rows[:5].tolist()}{more}")


def _table(values: NDArray[Any]) -> NDArray[Any]:
    return values.reshape(len(values), -1)


def _symbols(table: NDArray[Any]) -> Array:
    """Number the different rows of a table."""
    codes = np.zeros(len(table), dtype=np.int64)
    for column in table.T:
        _, new = np.unique(column, return_inverse=True)
        _, codes = np.unique(codes * (int(new.max()) + 1) + new.reshape(-1), return_inverse=True)
        codes = codes.reshape(-1).astype(np.int64)
    return codes.astype(np.float64)


def _few_whole_numbers(members: Array, non_members: Array) -> bool:
    count = 1
    for inside, outside in zip(_table(members).T, _table(non_members).T, strict=True):
        if not all(np.all(values == np.floor(values)) for values in (inside, outside)):
            return False
        count *= len(np.unique(np.concatenate([np.unique(inside), np.unique(outside)])))
        if count > FEW:
            return False
    return True


def _column_names(given: Any) -> tuple[str, ...] | None:
    columns = getattr(given, "columns", None)
    return None if columns is None else tuple(str(name) for name in columns)


def _names(names: Any, members: NDArray[Any]) -> tuple[str, ...]:
    width = 1 if members.ndim == 1 else members.shape[1]
    if names is None:
        return ("query",) if width == 1 else tuple(f"query {i + 1}" for i in range(width))
    given = (names,) if isinstance(names, str) else tuple(str(name) for name in names)
    if len(given) != width or len(set(given)) != width:
        raise InputError(f"names must have {width} different names, one per query, got {given!r}")
    return given

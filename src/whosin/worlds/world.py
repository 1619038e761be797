"""A world: a universe of records and a prior over the data sets drawn from it.

Records are told apart by their position, not by their value: two people may have the same data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whosin.arrays import Array, Flags
from whosin.errors import InputError, InputTypeError, check_number, check_rates, check_records, check_whole
from whosin.mechanisms.additive import AdditiveMechanism
from whosin.mechanisms.base import CallableMechanism, FiniteMechanism, Law, Records
from whosin.numerics.subsets import MAX_RECORDS, all_masks, masks_of_size, membership

if TYPE_CHECKING:
    from whosin.worlds.game import Game

Kind = Literal["uniform_subsets", "independent", "bounded_independent", "all_subsets", "one_of_two", "explicit"]


@dataclass(frozen=True, eq=False)
class World:
    """A universe and a prior over its subsets; build one with the functions of :mod:`whosin.worlds`.

    Examples
    --------
    >>> import whosin as wi
    >>> world = wi.worlds.independent("abc", [0.5, 0.2, 0.9])
    >>> world
    World(independent, 3 records, 8 data sets)
    >>> world.inclusion.round(3).tolist()
    [0.5, 0.2, 0.9]
    """

    universe: tuple[Any, ...]
    masks: NDArray[np.int64] = field(repr=False)
    prior: Array = field(repr=False)
    kind: Kind = "explicit"

    @cached_property
    def membership(self) -> Flags:
        """The matrix (data sets, records) that says who is in."""
        return membership(self.masks, len(self.universe))

    @cached_property
    def inclusion(self) -> Array:
        """The probability of each record to be in the data set."""
        return self.inside_mass / (self.inside_mass + self.outside_mass)

    @cached_property
    def inside_mass(self) -> Array:
        """The total prior of the data sets with each record; exactly zero where there are none."""
        return self.prior @ self.membership

    @cached_property
    def outside_mass(self) -> Array:
        """The total prior of the data sets without each record; exactly zero where there are none."""
        return self.prior @ ~self.membership

    @cached_property
    def uncertain(self) -> Flags:
        """Whether each record is in some data sets and not in others."""
        return (self.inside_mass > 0.0) & (self.outside_mass > 0.0)

    @cached_property
    def size(self) -> int | None:
        """The number of records of every data set, or None where it varies."""
        sizes = np.unique(self.membership.sum(axis=1))
        return int(sizes[0]) if len(sizes) == 1 else None

    @property
    def train_fraction(self) -> float | None:
        """Share of the universe that is drawn, for uniform subsets of one size; otherwise None."""
        size = self.size
        uniform = self.kind == "uniform_subsets" and size is not None
        return size / len(self.universe) if uniform and size is not None else None

    @property
    def family(self) -> Literal["independent", "bounded", "uniform", "prior"]:
        """Li's family of priors that this world stands for; "prior" if some of the family's data sets are missing."""
        records, size = len(self.universe), self.size
        if self.kind == "all_subsets":
            return "uniform"
        if self.kind == "independent" and len(self.masks) == 2**records:
            return "independent"
        if self.kind in ("uniform_subsets", "bounded_independent") and size is not None:
            return "bounded" if len(self.masks) == math.comb(records, size) else "prior"
        return "prior"

    def index(self, record: Any) -> int:
        """Return the position of a record in the universe."""
        found = [i for i, other in enumerate(self.universe) if other == record]
        if not found:
            raise InputError(f"record must be a member of the universe, got {record!r}")
        if len(found) > 1:
            raise InputError(
                f"record {record!r} stands at positions {found} of the universe: records are told "
                f"apart by position, so "
                "make them distinct, for example by pairing each with a number"
            )
        return found[0]

    def play(self, mechanism: FiniteMechanism | AdditiveMechanism | Callable[[Records], Law]) -> Game:
        """Run a mechanism on every data set and return the exact game.

        Parameters
        ----------
        mechanism : callable or mechanism
            A function from a tuple of records to {output: probability}, or an object of :mod:`whosin.mechanisms`.

        Notes
        -----
        Cost: one law for each data set, then one matrix product, O(data sets × records × outputs). A 20-record world of
        184,756 halves and 50 outputs takes seconds.
        """
        from whosin.worlds.continuous import ContinuousGame
        from whosin.worlds.game import FiniteGame

        if isinstance(mechanism, AdditiveMechanism):
            centres = mechanism.centres(self.universe, self.membership)
            return ContinuousGame(self, centres, mechanism.noise, mechanism.scale)
        if not isinstance(mechanism, FiniteMechanism):
            if not callable(mechanism):
                raise InputTypeError(
                    f"mechanism must be a function records -> {{output: probability}} or a mechanism, got {mechanism!r}"
                )
            mechanism = CallableMechanism(mechanism)
        outputs, laws = mechanism.laws(self.universe, self.membership)
        return FiniteGame(self, outputs, laws)

    def __repr__(self) -> str:
        return f"World({self.kind}, {len(self.universe)} records, {len(self.masks)} data sets)"


def uniform_subsets(universe: Sequence[Any], size: int) -> World:
    """Return the world in which every subset of ``size`` records is equally likely (Lowy, Izzo).

    Examples
    --------
    >>> import whosin as wi
    >>> world = wi.worlds.uniform_subsets("abcd", 2)
    >>> game = world.play(wi.mechanisms.RandomizedResponse(lambda records: "a" in records, 1.0))
    >>> round(game.accuracy("a"), 6)
    0.731059
    """
    records = _universe(universe)
    k = check_whole("size", size, low=0, high=len(records))
    masks = masks_of_size(len(records), k)
    return World(records, masks, np.full(len(masks), 1.0 / len(masks)), "uniform_subsets")


def all_subsets(universe: Sequence[Any]) -> World:
    """Return the world in which every subset is equally likely (Li's D_N).

    Examples
    --------
    >>> import whosin as wi
    >>> len(wi.worlds.all_subsets("abc").prior)
    8
    """
    records = _universe(universe)
    masks = all_masks(len(records))
    return World(records, masks, np.full(len(masks), 1.0 / len(masks)), "all_subsets")


def independent(universe: Sequence[Any], probabilities: ArrayLike) -> World:
    """Return the world in which each record is in independently, with its own probability (Thudi; Li's D_I).

    Examples
    --------
    >>> import whosin as wi
    >>> game = wi.worlds.independent("ab", 0.5).play(wi.mechanisms.Laplace(len, 1.0))
    >>> round(game.accuracy("a"), 6)
    0.65803
    """
    records = _universe(universe)
    p = _probabilities(records, probabilities)
    masks = all_masks(len(records))
    prior = _product_prior(masks, p)
    keep = prior > 0.0
    return World(records, masks[keep], prior[keep], "independent")


def bounded_independent(universe: Sequence[Any], probabilities: ArrayLike, size: int) -> World:
    """Return the independent world given that exactly ``size`` records are in (Li's D_B).

    Examples
    --------
    Three people would come with chances 0.9, 0.5 and 0.5. Once it is known that two came:

    >>> import whosin as wi
    >>> world = wi.worlds.bounded_independent("abc", [0.9, 0.5, 0.5], 2)
    >>> world.inclusion.round(4).tolist()
    [0.9474, 0.5263, 0.5263]
    """
    records = _universe(universe)
    p = _probabilities(records, probabilities)
    masks = masks_of_size(len(records), check_whole("size", size, low=0, high=len(records)))
    prior = _product_prior(masks, p)
    if prior.sum() == 0.0:
        raise InputError(f"size must be one that these probabilities allow, got {size!r}")
    keep = prior > 0.0
    return World(records, masks[keep], prior[keep] / prior[keep].sum(), "bounded_independent")


def one_of_two(
    universe: Sequence[Any], first: Any, second: Any, certain: Sequence[Any] = (), probability: float = 0.5
) -> World:
    """Return the world of two data sets: the ``certain`` records with either ``first`` or ``second`` (Li's D_B²).

    ``probability`` is that of ``first``.

    Examples
    --------
    >>> import whosin as wi
    >>> len(wi.worlds.one_of_two("abc", "a", "b", certain="c").prior)
    2
    """
    records = _universe(universe)
    p = check_number("probability", probability, low=0.0, high=1.0, open_low=True, open_high=True)
    bare = World(records, np.zeros(1, dtype=np.int64), np.ones(1))
    sure = check_records("certain", certain) if not isinstance(certain, Sized) or len(certain) else ()
    if len(set(sure)) != len(sure):
        raise InputError(f"certain must have each record once, got {sure!r}")
    base = sum(1 << bare.index(record) for record in sure)
    one, two = base | 1 << bare.index(first), base | 1 << bare.index(second)
    if one == two or base in (one, two):
        raise InputError(
            f"first and second must be two different records that are not certain, got {first!r}, {second!r}"
        )
    return World(records, np.array([one, two]), np.array([p, 1.0 - p]), "one_of_two")


def explicit(universe: Sequence[Any], table: Mapping[Any, float]) -> World:
    """Return the world with any prior: ``table`` maps data sets (collections of records) to probabilities.

    Examples
    --------
    A couple that takes part together or not at all:

    >>> import whosin as wi
    >>> world = wi.worlds.explicit("ab", {"": 0.7, "ab": 0.3})
    >>> world.play(lambda records: {len(records): 1.0}).accuracy("a")
    1.0
    """
    records = _universe(universe)
    bare = World(records, np.zeros(1, dtype=np.int64), np.ones(1))
    weights: dict[int, float] = {}
    if not isinstance(table, Mapping):
        raise InputTypeError(f"table must be a mapping from data sets to probabilities, got {table!r}")
    for data_set, probability in table.items():
        if not isinstance(data_set, Iterable):
            raise InputTypeError(f"table must be collections of records as data sets, got {data_set!r}")
        indices = [bare.index(record) for record in data_set]
        if len(set(indices)) != len(indices):
            raise InputError(f"table must have data sets without repeats, got {data_set!r}")
        mask = sum(1 << i for i in indices)
        weights[mask] = weights.get(mask, 0.0) + check_number("table", probability, low=0.0, high=1.0)
    if abs(sum(weights.values()) - 1.0) > 1e-9:
        raise InputError(f"table must hold probabilities that sum to one, got a sum of {sum(weights.values())!r}")
    kept = sorted(mask for mask, weight in weights.items() if weight > 0.0)
    return World(records, np.array(kept, dtype=np.int64), np.array([weights[mask] for mask in kept]), "explicit")


def _universe(universe: Sequence[Any]) -> tuple[Any, ...]:
    if isinstance(universe, Sized):
        _check_size(len(universe))
    records = check_records("universe", universe)
    _check_size(len(records))
    return records


def _check_size(count: int) -> None:
    if count > MAX_RECORDS:
        raise InputError(f"universe must have at most {MAX_RECORDS} records, got {count}")


def _probabilities(records: tuple[Any, ...], probabilities: ArrayLike) -> Array:
    p = check_rates("probabilities", probabilities)
    if p.ndim == 0:
        p = np.full(len(records), float(p))
    if p.shape != (len(records),):
        raise InputError(f"probabilities must have one number per record ({len(records)}), got shape {p.shape}")
    return p


def _product_prior(masks: NDArray[np.int64], p: Array) -> Array:
    prior = np.ones(len(masks))
    for i, probability in enumerate(p):
        prior *= np.where((masks >> i) & 1, probability, 1.0 - probability)
    return prior

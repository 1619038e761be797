"""A game: a world in which a mechanism was run on every data set, and every notion's exact parameter in it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from whosin.answers import Said
from whosin.arrays import Array, Flags
from whosin.errors import ImplicationError, InputError, check_prior, check_probability
from whosin.guarantees import MIP, PMP, ApproxDP, MembershipPrivacy, PureDP
from whosin.guarantees.dp import dp_of
from whosin.numerics.finite_laws import closeness_slopes
from whosin.numerics.rounding import about, at_most, percent, percent_up
from whosin.risks import Risk, resolve
from whosin.roc import Roc
from whosin.worlds.world import World

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Game(Said, ABC):
    """What is common to finite and continuous outputs.

    Examples
    --------
    >>> import whosin as wi
    >>> game = wi.worlds.all_subsets(range(3)).play(wi.mechanisms.Laplace(sum, 1.0))
    >>> round(game.advantage(2), 4), round(game.dp().epsilon, 4)
    (0.5852, 2.0)
    """

    world: World

    @abstractmethod
    def roc(self, record: Any) -> Roc:
        """Return the exact ROC of the best attacker on this record."""

    @abstractmethod
    def posterior(self, record: Any, output: Any) -> float:
        """Return P(record in D | output) exactly."""

    @abstractmethod
    def _divergence(self, index: int, gamma: float, swapped: bool) -> float:
        """E_γ(in‖out) of a record, or E_γ(out‖in), rounded up where it is not exact."""

    @abstractmethod
    def _closeness(self, delta: float) -> float:
        """Smallest ε such that in and out are (ε, δ)-close for every uncertain record."""

    @abstractmethod
    def _adjacent_epsilon(self, delta: float) -> float:
        """Smallest ε of (ε, δ)-DP over the adjacent data sets of the world."""

    @abstractmethod
    def _ratio(self, index: int, negative: bool) -> float:
        """Largest ratio of the output's likelihoods given in and given out (or the inverse) of a record."""

    @abstractmethod
    def _one_sided_ratio(self, negative: bool) -> float:
        """Largest ratio of likelihoods between adjacent data sets, with over without a record (or the inverse)."""

    def accuracy(self, record: Any, prior: float | None = None) -> float:
        """Return the exact accuracy of the best attacker on this record, at its own prior in the world or another."""
        index = self._uncertain(record)
        q = float(self.world.inclusion[index]) if prior is None else check_prior(prior)
        return min(1.0, max(q, 1.0 - q) + self._excess(index, q))

    def advantage(self, record: Any) -> float:
        """Return the exact largest TPR - FPR on this record: the total variation between in and out."""
        return min(1.0, self._divergence(self._uncertain(record), 1.0, swapped=False))

    def tpr_at(self, record: Any, fpr: ArrayLike) -> float | Array:
        """Return the exact largest TPR on this record at each FPR."""
        value: float | Array = self.roc(record).tpr(fpr)
        return value

    def risk(self, record: Any, metric: str | Risk, prior: float | None = None) -> float:
        """Return any metric of :mod:`whosin.risks` of the best attacker on this record, at its own prior or another."""
        q = float(self.world.inclusion[self._uncertain(record)]) if prior is None else check_prior(prior)
        return float(resolve(metric)(self.roc(record), q))

    @property
    def assumes(self) -> tuple[str, ...]:
        """What the numbers rest on, in words."""
        return (
            f"the data set is drawn from {self.world!r}, and the attacker knows that",
            "the attacker knows the mechanism, and sees one output and nothing else",
        )

    def explain(self, record: Any) -> str:
        """Return a paragraph about one record for a reader who is no expert."""
        q = float(self.world.inclusion[self._uncertain(record)])
        return (
            f"Record {record!r} is in with probability {about(q)} beforehand. The best attacker guesses right "
            f"{percent_up(self.accuracy(record))} of the time; without looking, {percent(max(q, 1.0 - q))}. These "
            "numbers are exact up to rounding: every data set of the world was played through."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return for JSON what the best attacker reaches on every record about which there is doubt."""
        records = [self.world.universe[index] for index in self._uncertain_records()]
        return {
            "world": repr(self.world),
            "records": [
                {"record": repr(one), "advantage": self.advantage(one), "accuracy": self.accuracy(one)}
                for one in records
            ],
            "assumes": list(self.assumes),
        }

    def __repr__(self) -> str:
        worst = max((self.advantage(self.world.universe[index]) for index in self._uncertain_records()), default=0.0)
        return f"game over {self.world!r}: advantage at most {at_most(worst)}"

    def plot(self, record: Any, ax: Axes | None = None) -> Axes:
        """Draw the curve of one record; return the axes."""
        return self.roc(record).plot(ax=ax)

    def pmp(self, delta: float = 0.0) -> PMP:
        """Return the exact practical membership privacy: the smallest ε at this δ, over all records."""
        return PMP(self._closeness(check_probability("delta", delta)), delta, self._fraction("PMP"))

    def mip(self) -> MIP:
        """Return the exact membership inference privacy: the best attacker's gain on the most exposed record."""
        q = self._fraction("MIP")
        worst = max(self._excess(index, q) for index in self._uncertain_records())
        return MIP(min(max(worst, 0.0), 0.5), q)

    def membership_privacy(self, negative: bool = False) -> MembershipPrivacy:
        """Return the exact γ of Li et al. for the family that this world belongs to.

        Under D_N (all subsets equally likely) it is computed from the posteriors. For independent worlds, and for
        worlds of one size, it covers every prior of the family on this universe: by theorems 4.5 and 4.8 of Li et al.
        that is the largest ratio between adjacent data sets. For an explicit prior it is the largest ratio under that
        prior.
        """
        if self.world.kind == "all_subsets":
            ratio = max(self._ratio(index, negative) for index in self._uncertain_records())
            return MembershipPrivacy(max(1.0, 0.5 * (ratio + 1.0)), "uniform", negative)
        family = self.world.family
        if family == "prior":
            ratio = max(self._ratio(index, negative) for index in self._uncertain_records())
            return MembershipPrivacy(max(1.0, ratio), "prior", negative)
        return MembershipPrivacy(max(1.0, self._one_sided_ratio(negative)), family, negative)

    def dp(self, delta: float = 0.0) -> PureDP | ApproxDP:
        """Return the exact differential privacy over adjacent data sets of this world.

        Replace-one where all data sets have one size (the paper's ε(X)), add/remove otherwise.
        """
        delta = check_probability("delta", delta)
        if not any(len(one) for one, _ in adjacent_pairs(self.world)):
            raise InputError("no two data sets of this world are adjacent, so differential privacy says nothing in it")
        epsilon, adjacency = self._adjacent_epsilon(delta), "replace" if self.world.size is not None else "add_remove"
        return dp_of(epsilon, delta, adjacency)  # type: ignore[arg-type]

    def _excess(self, index: int, q: float) -> float:
        """Accuracy beyond the blind guess at prior q: m·E_γ of the rarer class from the commoner, γ = (1-m)/m."""
        rarer = min(q, 1.0 - q)
        if rarer == 0.0:
            return 0.0
        gamma = min((1.0 - rarer) / rarer, 1e300)
        excess = rarer * self._divergence(index, gamma, swapped=q > 0.5)
        return min(rarer, max(0.0, excess))

    def _fraction(self, notion: str) -> float:
        fraction = self.world.train_fraction
        if fraction is None or not 0.0 < fraction < 1.0:
            raise ImplicationError(
                f"{notion} is about a uniform subset of one size, neither empty nor everybody; this "
                f"world is {self.world!r}. "
                "Use uniform_subsets(universe, size)"
            )
        return fraction

    def _uncertain(self, record: Any) -> int:
        index = self.world.index(record)
        if not self.world.uncertain[index]:
            where = "in" if self.world.inside_mass[index] > 0.0 else "out"
            raise InputError(f"record must be one about which there is doubt, got {record!r}, which is surely {where}")
        return index

    def _uncertain_records(self) -> list[int]:
        uncertain = np.flatnonzero(self.world.uncertain)
        if uncertain.size == 0:
            raise InputError("every record of this world is surely in or surely out: there is nothing to infer")
        return uncertain.tolist()


class FiniteGame(Game):
    """A game with finitely many outputs: exact up to rounding.

    Attributes
    ----------
    outputs : tuple
        The outputs, in the order of the columns.
    laws : ndarray
        Probability of each output on each data set of the world.
    inside, outside : ndarray
        Law of the output given that each record is in, and given that it is out; nan for records without doubt.

    Examples
    --------
    The number of people that are in, told truly, says something about each:

    >>> import whosin as wi
    >>> game = wi.worlds.all_subsets("abc").play(lambda records: {len(records): 1.0})
    >>> game.posterior("a", 2)
    0.6666666666666666
    >>> game.accuracy("a")
    0.75
    """

    def __init__(self, world: World, outputs: tuple[Hashable, ...], laws: Array) -> None:
        self.world, self.outputs, self.laws = world, outputs, laws
        weighted = world.prior[:, None] * laws
        members = world.membership.T.astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            self.inside = members @ weighted / world.inside_mass[:, None]
            self.outside = (1.0 - members) @ weighted / world.outside_mass[:, None]

    def roc(self, record: Any) -> Roc:
        """Return the exact ROC of the best attacker on this record."""
        index = self._uncertain(record)
        inside, outside = self.inside[index], self.outside[index]
        return Roc.from_likelihoods(np.minimum(inside, 1.0), np.minimum(outside, 1.0))

    def posterior(self, record: Any, output: Hashable) -> float:
        """Return P(record in D | output) exactly."""
        index = self.world.index(record)
        if output not in self.outputs:
            raise InputError(f"output must be an output of the mechanism, got {output!r}")
        column = self.world.prior * self.laws[:, self.outputs.index(output)]
        total = float(column.sum())
        if total == 0.0:
            raise InputError(f"output must be one that can occur in this world, got {output!r}")
        return min(1.0, float(column[self.world.membership[:, index]].sum()) / total)

    def _divergence(self, index: int, gamma: float, swapped: bool) -> float:
        p, q = (self.outside, self.inside) if swapped else (self.inside, self.outside)
        return float(np.maximum(p[index] - gamma * q[index], 0.0).sum())

    def _closeness(self, delta: float) -> float:
        rows = self._uncertain_records()
        p, q = self.inside[rows], self.outside[rows]
        return _log(max(float(closeness_slopes(p, q, delta).max()), float(closeness_slopes(q, p, delta).max()), 1.0))

    def _adjacent_epsilon(self, delta: float) -> float:
        return _log(self._adjacent_slope(delta, (False, True)))

    def _one_sided_ratio(self, negative: bool) -> float:
        return self._adjacent_slope(0.0, (negative,) if self.world.size is None else (False, True))

    def _adjacent_slope(self, delta: float, ways: tuple[bool, ...]) -> float:
        """Largest slope at δ between adjacent data sets, one against the other or (True) the other way round."""
        slope = 1.0
        for one, other in self._adjacent_rows():
            for p, q in ((other, one) if back else (one, other) for back in ways):
                slope = max(slope, float(closeness_slopes(p, q, delta).max(initial=0.0)))
        return slope

    def _ratio(self, index: int, negative: bool) -> float:
        p, q = (self.outside, self.inside) if negative else (self.inside, self.outside)
        return float(closeness_slopes(p[index : index + 1], q[index : index + 1], 0.0).max())

    def _adjacent_rows(self) -> Iterator[tuple[Array, Array]]:
        """Laws of adjacent data sets, block by block: with a record against without, or with another in its place."""
        for with_record, without in adjacent_pairs(self.world):
            for start in range(0, len(with_record), 65536):
                block = slice(start, start + 65536)
                yield self.laws[with_record[block]], self.laws[without[block]]


def adjacent_pairs(world: World) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield the row numbers of adjacent data sets: each unordered pair once."""
    n, masks = len(world.universe), world.masks
    order = np.argsort(masks)
    ranked = masks[order]

    def rows_of(wanted: NDArray[np.int64]) -> tuple[NDArray[np.int64], Flags]:
        at = np.minimum(np.searchsorted(ranked, wanted), len(ranked) - 1)
        return order[at], ranked[at] == wanted

    everyone = np.arange(len(masks))
    for i in range(n):
        has_i = (masks >> i) & 1 == 1
        if world.size is None:
            rows, found = rows_of(masks[has_i] ^ (1 << i))
            yield everyone[has_i][found], rows[found]
            continue
        for j in range(i + 1, n):
            swap = has_i & ((masks >> j) & 1 == 0)
            rows, found = rows_of(masks[swap] ^ (1 << i) ^ (1 << j))
            yield everyone[swap][found], rows[found]


def _log(value: float) -> float:
    return math.log(value) if math.isfinite(value) else math.inf

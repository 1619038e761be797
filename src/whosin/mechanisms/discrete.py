"""Mechanisms with finitely many outputs: randomised response, exponential, k-Max, and sampling first."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Literal

import numpy as np

from whosin.arrays import Array, Flags
from whosin.errors import (
    ImplicationError,
    InputError,
    check_callable,
    check_choice,
    check_number,
    check_probability,
    check_records,
    check_whole,
)
from whosin.guarantees import ApproxDP, MembershipPrivacy, PureDP
from whosin.guarantees.dp import dp_of
from whosin.mechanisms.base import CallableMechanism, FiniteMechanism, Law, Records, check_cells
from whosin.mechanisms.sources import SecureSource, Source, check_source


class RandomizedResponse(FiniteMechanism):
    """Answer a yes/no question about the data: truly marked with probability δ, otherwise right with odds e^ε to 1.

    The worst mechanism that (ε, δ)-DP allows: it attains the limits of :class:`whosin.ApproxDP`.

    Parameters
    ----------
    question : callable
        From a tuple of records to True or False, such as ``lambda records: "ann" in records``.
    epsilon, delta : float, default 0 for delta
        The guarantee with respect to changes of the answer.

    Examples
    --------
    >>> import whosin as wi
    >>> answer = wi.mechanisms.RandomizedResponse(lambda records: "a" in records, 1.0)
    >>> answer.guarantee()
    PureDP(epsilon=1.0, adjacency='add_remove')
    """

    def __init__(self, question: Callable[[Records], bool], epsilon: float, delta: float = 0.0) -> None:
        self.question = check_callable("question", question)
        self.epsilon = check_number("epsilon", epsilon, low=0.0)
        self.delta = check_probability("delta", delta)

    def law(self, records: Records) -> Law:
        """Return the law of the answer."""
        answer = bool(self.question(records))
        wrong = (1.0 - self.delta) * math.exp(-self.epsilon) / (1.0 + math.exp(-self.epsilon))
        law: dict[Hashable, float] = {answer: 1.0 - self.delta - wrong, not answer: wrong}
        if self.delta > 0.0:
            law[("surely", answer)] = self.delta
        return law

    def guarantee(self, adjacency: Literal["add_remove", "replace"] = "add_remove") -> PureDP | ApproxDP:
        """Return the guarantee: any change of records changes the answer at most once."""
        return dp_of(self.epsilon, self.delta, adjacency)


class Exponential(FiniteMechanism):
    """Choose a candidate w with probability proportional to exp(-scale · mean loss of w over the records).

    McSherry and Talwar 2007; Lowy et al. 2024, definition 7, with scale = ε/(2Δ).

    Parameters
    ----------
    candidates : sequence
        The possible outputs; hashable and distinct.
    loss : callable
        ``loss(candidate, record)``, a number.
    scale : float
        How strongly a loss counts.

    Examples
    --------
    >>> import whosin as wi
    >>> pick = wi.mechanisms.Exponential("ab", lambda w, x: float(w != x), 1.0)
    >>> {name: round(chance, 4) for name, chance in pick.law(("a", "a", "b")).items()}
    {'a': 0.5826, 'b': 0.4174}
    """

    def __init__(self, candidates: Sequence[Any], loss: Callable[[Any, Any], float], scale: float) -> None:
        self.candidates = check_records("candidates", candidates)
        if len(set(self.candidates)) != len(self.candidates):
            raise InputError(f"candidates must have no repeats, got {self.candidates!r}")
        self.loss = check_callable("loss", loss)
        self.scale = check_number("scale", scale, low=0.0, open_high=True)

    def law(self, records: Records) -> Law:
        """Return the law of the choice; uniform on an empty data set."""
        outputs, table = self.laws(records, np.ones((1, len(records)), dtype=bool))
        return dict(zip(outputs, table[0].tolist(), strict=True))

    def laws(self, universe: Sequence[Any], membership: Flags) -> tuple[tuple[Hashable, ...], Array]:
        """Return all laws at once: one matrix product and a softmax, O(data sets × candidates)."""
        check_cells(len(membership), len(self.candidates))
        finite = {"open_low": True, "open_high": True}
        losses = np.array(
            [[check_number("loss", self.loss(w, x), **finite) for w in self.candidates] for x in universe],
            dtype=np.float64,
        ).reshape(len(universe), len(self.candidates))
        sizes = np.maximum(membership.sum(axis=1, keepdims=True), 1)
        logits = -self.scale * (membership.astype(np.float64) @ losses) / sizes
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        return self.candidates, weights / weights.sum(axis=1, keepdims=True)


class KMax(FiniteMechanism):
    """Publish a value uniformly from the k ranks at and above the true maximum (Li et al. 2013, definition 5.2).

    Parameters
    ----------
    universe : sequence
        All values, in rising order; ranks are positions in it.
    k : int
        At least 2: how many ranks the answer is spread over.
    empty : {"lowest", "null"}, default "lowest"
        What to do with an empty data set: treat it like the lowest rank (then proposition 5.3 holds exactly), or answer
        None (then it fails: the lowest value gives its owner away).

    Examples
    --------
    >>> import whosin as wi
    >>> mechanism = wi.mechanisms.KMax(range(10), k=3)
    >>> sorted(mechanism.law((2, 5)))
    [5, 6, 7]
    >>> round(mechanism.guarantee().gamma, 6)
    1.166667
    """

    def __init__(self, universe: Sequence[Any], k: int, empty: Literal["lowest", "null"] = "lowest") -> None:
        self.values = check_records("universe", universe)
        self._rank: dict[Any, int] = {}
        for rank, value in enumerate(self.values):
            if self._rank.setdefault(value, rank) != rank:
                raise InputError(f"universe must have each value once, got {value!r} again")
        self.k = check_whole("k", k, low=2, high=len(self.values))
        self.empty = check_choice("empty", empty, ("lowest", "null"))

    def law(self, records: Records) -> Law:
        """Return the uniform law on the k ranks."""
        if not records and self.empty == "null":
            return {None: 1.0}
        strangers = [record for record in records if record not in self._rank]
        if strangers:
            raise InputError(f"record must be a value of the universe, got {strangers[0]!r}")
        top = max((self._rank[record] for record in records), default=0)
        first = min(top, len(self.values) - self.k)
        return {self.values[first + i]: 1.0 / self.k for i in range(self.k)}

    def guarantee(self) -> MembershipPrivacy:
        """Return γ = (2^k - 1)/(2^k - 2) where every subset is equally likely, tight for more than k values.

        Li et al. 2013, proposition 5.3, corrected: it needs the empty data set at the lowest rank.
        """
        if self.empty == "null":
            raise ImplicationError(
                "KMax with empty='null' is not γ-membership private for any γ: the lowest value comes from its owner "
                "alone. Use empty='lowest'"
            )
        return MembershipPrivacy(math.nextafter(1.0 + 1.0 / (2**self.k - 2), math.inf), "uniform")


class Subsampled(FiniteMechanism):
    """Keep each record with probability ``rate``, then run another finite mechanism. Cost O(2^records) a data set.

    Examples
    --------
    Half of the people are asked, so that ε = 2 becomes ln(1 + (e² - 1)/2) = 1.434:

    >>> import whosin as wi
    >>> ask = wi.mechanisms.RandomizedResponse(lambda records: "a" in records, 2.0)
    >>> half = wi.mechanisms.Subsampled(ask, 0.5)
    >>> round(wi.worlds.all_subsets("ab").play(half).dp().epsilon, 3)
    1.434
    """

    def __init__(self, mechanism: FiniteMechanism | Callable[[Records], Law], rate: float) -> None:
        self.mechanism = mechanism if isinstance(mechanism, FiniteMechanism) else CallableMechanism(mechanism)
        self.rate = check_probability("rate", rate)

    def law(self, records: Records) -> Law:
        """Return the law averaged over the sample."""
        mixed: dict[Hashable, float] = {}
        for kept in itertools.product((False, True), repeat=len(records)):
            weight = math.prod(self.rate if keep else 1.0 - self.rate for keep in kept)
            if weight > 0.0:
                sample = tuple(record for record, keep in zip(records, kept, strict=True) if keep)
                for output, probability in self.mechanism.law(sample).items():
                    mixed[output] = mixed.get(output, 0.0) + weight * probability
        return mixed

    def sample(self, records: Sequence[Any], source: Source | None = None) -> Hashable:
        """Return one output: draw the sample, then run the mechanism on it. Cost O(records) and one run."""
        source = SecureSource() if source is None else check_source(source)
        kept = source.uniform(len(records)) < self.rate
        return self.mechanism.sample(tuple(itertools.compress(records, kept)), source)

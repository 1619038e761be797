"""What all releases from the same people promise together, and the budget that it is held against."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from whosin.answers import Answer, parts
from whosin.errors import BudgetError, InputError, check_number, check_probability
from whosin.guarantees import MIP, PMP, Guarantee
from whosin.guarantees.base import NEIGHBOURS
from whosin.guarantees.composition import NO_COMPOSITION, Composition, compose, why_not
from whosin.ledger.entries import Entry
from whosin.ledger.store import Session
from whosin.numerics.rounding import at_most

MOST_DELTA = 1e-3
"""Of a total under a budget that names none."""
NOT_SEEN = (
    "nobody is in another data set of the ledger as well: it knows data by fingerprint and by name, and does not see "
    "people; sets that are declared to be of the same people count together",
    "only what was recorded counts",
)
MIXED = (
    "some releases were compared by adding or removing a record, others by replacing one: the total is about "
    "replacing, where add/remove costs two steps; under add/remove nothing limits the total"
)


@dataclass(frozen=True)
class Budget:
    """The most that all releases from the same people may promise together.

    Parameters
    ----------
    epsilon : float, optional
        Largest ε of the total.
    delta : float, optional
        The δ at which that ε counts; by default the sum of the δs (see :func:`whosin.ledger.compose`), which may be
        0.001 at most: any ε is small at a large enough δ.
    advantage : float, optional
        Largest TPR - FPR of the total.

    Examples
    --------
    A second release that would go beyond the budget is refused before it is written:

    >>> import tempfile, whosin as wi
    >>> budget = wi.ledger.Budget(epsilon=0.8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     book = wi.Ledger(f"{folder}/ledger.db")
    ...     for _ in range(2):
    ...         try:
    ...             print(book.add("counts", dataset="people", guarantee=wi.PureDP(0.5), budget=budget).number)
    ...         except wi.ledger.BudgetError as error:
    ...             print(error)
    1
    beyond the budget: the ε of the total is 1, and the budget is 0.8.
    """

    epsilon: float | None = None
    delta: float | None = None
    advantage: float | None = None

    def __post_init__(self) -> None:
        if self.epsilon is None and self.advantage is None:
            raise InputError("a budget needs epsilon or advantage, got neither")
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", check_number("epsilon", self.epsilon, low=0.0))
        for name in ("delta", "advantage"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, check_probability(name, getattr(self, name)))

    def problems(self, total: Total) -> tuple[str, ...]:
        """Return in words what goes beyond the budget, nothing where nothing does."""
        found = []
        for name, limit, value in (
            ("ε", self.epsilon, total.epsilon),
            ("advantage", self.advantage, total.advantage),
        ):
            if limit is None:
                continue
            if value is None:
                found.append(f"nothing limits the {name} of the total, and the budget is {limit:g}")
            elif value > limit:
                found.append(f"the {name} of the total is {at_most(value, 6)}, and the budget is {limit:g}")
        largest = MOST_DELTA if self.delta is None else self.delta
        if self.epsilon is not None and total.delta is not None and total.delta > largest:
            limit_is = "a budget without delta takes at most" if self.delta is None else "the budget is for"
            found.append(f"the δ of the total is {at_most(total.delta, 6)}, and {limit_is} {largest:g}")
        return tuple(found)

    def check(self, total: Total) -> None:
        """Raise a BudgetError where the total goes beyond the budget."""
        problems = self.problems(total)
        if problems:
            raise BudgetError(f"beyond the budget: {'; '.join(problems)}. {total.why}".rstrip())


@dataclass(frozen=True)
class Total(Answer):
    """What the releases from the same people promise together.

    Examples
    --------
    One release without a guarantee is enough for nothing to limit the total:

    >>> import tempfile, whosin as wi
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     book = wi.Ledger(f"{folder}/ledger.db")
    ...     _ = book.add("counts", dataset="people", guarantee=wi.PureDP(0.5))
    ...     before = book.check(dataset="people")
    ...     _ = book.add("the whole table", dataset="people")
    ...     after = book.check(dataset="people")
    >>> before.epsilon, after.epsilon, after.bounded
    (0.5, None, False)
    """

    releases: tuple[Entry, ...]
    """Every release that counts, retracted ones included: what went out went out."""
    fingerprints: tuple[str, ...]
    datasets: tuple[str, ...]
    composed: Composition | None
    """Of the releases that compose; None where there are none."""
    uncovered: tuple[tuple[int, str], ...]
    """Numbers of the releases that no total can cover, each with the reason."""
    retracted: tuple[tuple[int, str], ...] = ()
    """Numbers of retracted releases, each with the note; they count all the same."""
    mixed: bool = False
    """Whether both adjacencies occur."""
    only: Guarantee | None = None
    """The guarantee of the one release, where there is no other and its guarantee does not compose."""

    @property
    def bounded(self) -> bool:
        """Whether anything limits the total."""
        if self.only is not None:
            return self.only.advantage < 1.0
        return not self.uncovered and (self.composed is None or self.composed.advantage < 1.0)

    @property
    def epsilon(self) -> float | None:
        """ε of differential privacy of the total at :attr:`delta`, None where nothing limits it."""
        if self.uncovered or self.only is not None:
            return None
        epsilon = 0.0 if self.composed is None else self.composed.epsilon
        return None if math.isinf(epsilon) else epsilon

    @property
    def delta(self) -> float | None:
        """δ of the total, None where nothing limits it."""
        if self.uncovered or self.only is not None:
            return None
        return 0.0 if self.composed is None else self.composed.delta

    @property
    def advantage(self) -> float | None:
        """Largest TPR - FPR of any attacker who sees all releases, None where nothing below 1 is known."""
        if not self.bounded:
            return None
        if self.only is not None:
            return self.only.advantage
        return 0.0 if self.composed is None else self.composed.advantage

    @property
    def why(self) -> str:
        """Why nothing limits the total; empty where something does."""
        if not self.uncovered:
            return "" if self.bounded else "No limit below 1 follows from the recorded guarantees together."
        reasons: dict[str, list[int]] = {}
        for number, reason in self.uncovered:
            reasons.setdefault(reason, []).append(number)
        return " ".join(f"Release {_numbers(numbers)}: {reason}." for reason, numbers in reasons.items())

    @property
    def alone(self) -> tuple[tuple[int, Guarantee], ...]:
        """The practical guarantees: each holds for its release alone, as if there had been no other."""
        reasons = dict(self.uncovered)
        return tuple(
            (entry.number, entry.guarantee)
            for entry in self.releases
            if isinstance(entry.guarantee, PMP | MIP) and reasons.get(entry.number) == NO_COMPOSITION
        )

    @property
    def audits(self) -> tuple[tuple[int, dict[str, Any]], ...]:
        """The recorded audits: what was measured on one release each, no limit on the total."""
        return tuple((entry.number, dict(entry.audit)) for entry in self.releases if entry.audit is not None)

    @property
    def assumes(self) -> tuple[str, ...]:
        """What the answer rests on, in words."""
        held = self.only if self.only is not None else self.composed
        own = () if held is None else held.assumes
        return (*own, *((MIXED,) if self.mixed else ()), *NOT_SEEN)

    def explain(self) -> str:
        """Return a paragraph for a reader who is no expert."""
        if not self.releases:
            return "No release of this data is recorded here. That says nothing about releases elsewhere."
        are = "is" if len(self.releases) == 1 else "are"
        sentences = [f"{_count(len(self.releases))} of this data {are} recorded."]
        if self.uncovered or not self.bounded:
            whole = "it reveals" if len(self.releases) == 1 else "all of them reveal together"
            sentences.append(f"Nothing limits what {whole}. {self.why}")
            if self.composed is not None and self.uncovered and self.composed.advantage < 1.0:
                sentences.append(f"Of the others alone: {self.composed}.")
            if self.alone:
                held = "; ".join(f"{number}: {guarantee}" for number, guarantee in self.alone)
                sentences.append(f"Each of these holds for its release alone, as if there were no other: {held}.")
        elif self.only is not None:
            sentences.append(
                f"It promises {self.only}: an attacker gains at most {at_most(self.only.advantage, 4)} over a blind "
                "guess (true less false accusations). After a second release no limit on both is known."
            )
        else:
            assert self.composed is not None
            sentences.append(
                f"An attacker who sees all of them, and knows everybody else in the data, gains at most "
                f"{at_most(self.composed.advantage, 4)} over a blind guess (true less false accusations): "
                f"ε is at most {at_most(self.composed.epsilon, 6)} at δ = {self.composed.delta:g} "
                f"({NEIGHBOURS[self.composed.adjacency]}; by {self.composed.way})."
            )
        if self.audits:
            found = "; ".join(f"{number}: {_measured(audit)}" for number, audit in self.audits)
            sentences.append(f"Measured, on one release each: {found}.")
        if self.retracted:
            sentences.append(f"Retracted, and still counted: {_numbers([number for number, _ in self.retracted])}.")
        return " ".join(sentences)

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON; None where nothing limits the total."""
        return {
            **parts(self, "releases", "fingerprints", "datasets", "bounded", "epsilon", "delta", "advantage"),
            **parts(self, "only", "composed"),
            "uncovered": [{"number": number, "reason": reason} for number, reason in self.uncovered],
            "alone": [{"number": number, "guarantee": held.to_dict()} for number, held in self.alone],
            "audits": [{"number": number, **audit} for number, audit in self.audits],
            "retracted": [{"number": number, "note": note} for number, note in self.retracted],
            "mixed_adjacency": self.mixed,
            "assumes": list(self.assumes),
            "explanation": self.explain(),
        }

    def __str__(self) -> str:
        count = _count(len(self.releases))
        if not self.releases:
            return "no release recorded"
        if not self.bounded:
            return f"{count}: nothing limits the total"
        if self.only is not None:
            return f"{count}: {self.only}, advantage at most {at_most(self.only.advantage, 6)}"
        assert self.composed is not None
        shown = f"ε at most {at_most(self.composed.epsilon, 6)} at δ = {self.composed.delta:g}"
        return f"{count}: {shown}, advantage at most {at_most(self.composed.advantage, 6)}"


def total_of(entries: Sequence[Entry], retractions: Sequence[Entry], *, delta: float | None = None) -> Total:
    """Return the total of all releases among the entries, which are those of the same people."""
    releases = tuple(entry for entry in entries if entry.action == "release")
    numbers = {entry.number for entry in releases}
    notes = [entry for entry in retractions if entry.about in numbers]
    voided = {entry.about for entry in notes if entry.voids_guarantee}
    first = releases[0].guarantee if len(releases) == 1 and not voided else None
    alone = first is not None and why_not(first) is not None
    uncovered, composed = [], []
    for entry in () if alone else releases:
        guarantee = None if entry.number in voided else entry.guarantee
        reason = why_not(guarantee)
        if reason is None:
            assert guarantee is not None
            composed.append(guarantee)
        else:
            void = "its guarantee was withdrawn: nothing limits what it reveals"
            uncovered.append((entry.number, void if entry.number in voided else reason))
    return Total(
        releases=releases,
        fingerprints=_seen(entry.fingerprint for entry in entries),
        datasets=_seen(entry.dataset for entry in entries),
        composed=compose(composed, delta=delta) if composed else None,
        uncovered=tuple(uncovered),
        retracted=tuple((entry.about or 0, entry.note or "") for entry in notes),
        only=first if alone else None,
        mixed=len({getattr(guarantee, "adjacency", "replace") for guarantee in composed}) > 1,
    )


def related(session: Session, fingerprint: str | None, dataset: str | None) -> list[Entry]:
    """Return the entries of the same people: joined by a fingerprint or a name, over any number of steps."""
    asked: dict[str, set[str]] = {"fingerprint": set(), "dataset": set()}
    waiting = {"fingerprint": {fingerprint} - {None}, "dataset": {dataset} - {None}}
    found: dict[int, Entry] = {}
    while any(waiting.values()):
        column = next(name for name, values in waiting.items() if values)
        values, waiting[column] = waiting[column], set()
        asked[column] |= values  # type: ignore[arg-type]
        for entry in session.where(column, values):
            found[entry.number] = entry
            for other in ("fingerprint", "dataset"):
                value = getattr(entry, other)
                if value is not None and value not in asked[other]:
                    waiting[other].add(value)
    return [found[number] for number in sorted(found)]


def groups(entries: Iterable[Entry]) -> list[list[Entry]]:
    """Return all entries of the same people together, as :func:`related` finds them; O(entries) time."""
    above: dict[tuple[str, str], tuple[str, str]] = {}

    def top(key: tuple[str, str]) -> tuple[str, str]:
        while (parent := above.setdefault(key, key)) != key:
            above[key] = above[parent]
            key = parent
        return key

    listed = []
    for entry in entries:
        keys = [(name, value) for name in ("fingerprint", "dataset") if (value := getattr(entry, name)) is not None]
        if keys:
            above[top(keys[-1])] = top(keys[0])
            listed.append((entry, keys[0]))
    found: dict[tuple[str, str], list[Entry]] = {}
    for entry, key in listed:
        found.setdefault(top(key), []).append(entry)
    return list(found.values())


def _seen(values: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value is not None))


def _numbers(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:20])) + ("…" if len(numbers) > 20 else "")


def _count(releases: int) -> str:
    return f"{releases} release" if releases == 1 else f"{releases} releases"


def _measured(audit: dict[str, Any]) -> str:
    known = audit["advantage"]
    low, high = known["lower"], known["upper"]
    return f"advantage between {'?' if low is None else f'{low:.4g}'} and {'?' if high is None else f'{high:.4g}'}"

"""The verdict: the one sentence that people act on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from whosin.answers import card
from whosin.auditing.measuring.estimate import Estimate
from whosin.numerics.rounding import about, at_least, at_most, capital, confidence, count, of_hundred

STATES = ("leak", "exceeds", "within", "undecided", "none found", "no verdict")


@dataclass(frozen=True)
class Verdict:
    """What was found, against what is tolerated.

    Without a tolerance: "leak" if the lower limit of the advantage is above 0, otherwise "none found". With one:
    "exceeds" if the lower limit is above it, "within" if the upper limit is not, otherwise "undecided". "no verdict" if
    the set-up allows none, whatever was measured.

    Examples
    --------
    >>> import numpy as np, whosin as wi
    >>> rng = np.random.default_rng(0)
    >>> inside, outside = rng.normal(0.1, 1, 400), rng.normal(0, 1, 400)
    >>> for tolerate in (None, 0.3, 0.02):
    ...     print(wi.audit(inside, outside, tolerate=tolerate).verdict.title)
    No leak found, up to 0.184 possible
    Within the tolerated 0.3
    Undecided, 0.02 is tolerated
    """

    state: str
    title: str
    """The state in a few words."""
    headline: str
    """What it means for people: one sentence in natural frequencies."""
    details: str = ""
    """The numbers, whom they cover, and what else may have caused them."""
    tolerate: float | None = None

    @property
    def sentence(self) -> str:
        """All of it."""
        return f"{self.title}: {self.headline[:1].lower()}{self.headline[1:]} {self.details}".rstrip()

    def to_dict(self) -> dict[str, Any]:
        """Return all parts for JSON."""
        names = ("state", "sentence", "title", "headline", "details", "tolerate")
        return {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        return self.sentence

    def _card(self, lists: Mapping[str, Iterable[str]] | None = None) -> str:
        """Return the card that a notebook shows, in the colour of the state, with lists to unfold."""
        tone = {"leak": "bad", "exceeds": "bad", "no verdict": "bad", "within": "good"}.get(self.state, "")
        return card(self.title, f"{self.headline} {self.details}".rstrip(), lists, tone=tone)

    def _repr_html_(self) -> str:
        return self._card()


def judge(
    advantage: Estimate,
    rates: tuple[float, float],
    attackers: str,
    *,
    tolerate: float | None,
    problem: str | None,
    unit: str,
    needed: int | None = None,
    caveat: str = "",
) -> Verdict:
    """Return the verdict on an advantage.

    Parameters
    ----------
    advantage : Estimate
    rates : pair of floats
        TPR and FPR of the attacks that were found.
    attackers : str
        Whom the upper limit covers, in words.
    tolerate : float or None
    problem : str or None
        Why the set-up allows no verdict.
    unit : str
        "people" or "records".
    needed : int, optional
        Units on each side that would decide if nothing leaks.
    caveat : str
        What else may have caused the gap.
    """
    if problem is not None:
        first, dot, rest = problem.partition(". ")
        return Verdict("no verdict", "No verdict", capital(first) + dot.strip(), rest, tolerate)
    low, high = at_least(advantage.lower), at_most(advantage.upper)
    level = f"{confidence(advantage.confidence_level)} confidence"
    limits = f"Advantage {about(advantage.estimate)}; at least {low}, and at most {high} for {attackers} ({level})."
    accused = of_hundred(rates[1])
    picked = (
        f"{capital(of_hundred(rates[0]))} of 100 people in the data can be picked out while {accused} of 100 outsiders "
        f"{'is' if accused in ('1', 'fewer than 1') else 'are'} wrongly accused."
    )
    most = math.ceil(round(100.0 * advantage.upper, 9))
    if tolerate is None:
        if advantage.lower > 0.0:
            return Verdict("leak", "Leak found", picked, f"{limits} {caveat}".rstrip())
        return Verdict(
            "none found",
            f"No leak found, up to {high} possible",
            f"Up to {most} of 100 people may still be picked out beyond chance.",
            "That no leak was found does not show that there is none: what was measured could be chance, and an "
            f"advantage of up to {high} remains possible for {attackers} ({level}), and any for others.",
        )
    if advantage.lower > tolerate:
        title = f"Leak found, above the tolerated {tolerate:g}"
        return Verdict("exceeds", title, picked, f"{limits} {caveat}".rstrip(), tolerate)
    if advantage.upper <= tolerate:
        shown = f" A leak of at least {low} is shown, which is tolerated. {picked}" if advantage.lower > 0 else ""
        return Verdict(
            "within",
            f"Within the tolerated {tolerate:g}",
            f"At most {most} of 100 people can be picked out beyond chance.",
            f"The advantage is at most {high} for {attackers} ({level}). Other attackers are not covered.{shown}",
            tolerate,
        )
    more = f" A leak of at least {low} is shown. {caveat}".rstrip() if advantage.lower > 0.0 else ""
    if needed is not None and not more:
        more = f" If nothing leaks, about {count(needed)} {unit} on each side would show it."
    return Verdict(
        "undecided",
        f"Undecided, {tolerate:g} is tolerated",
        f"Between {math.floor(round(100.0 * advantage.lower, 9))} and {most} of 100 people can be picked out beyond "
        "chance.",
        f"The advantage lies between {low} and {high} ({level}; the upper limit covers {attackers}).{more}",
        tolerate,
    )

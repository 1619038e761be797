"""The verdict: the one sentence that people act on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from whosin.auditing.measuring.estimate import Estimate
from whosin.numerics.rounding import at_least, at_most

__all__ = ["STATES", "Verdict", "judge", "of_hundred"]

STATES = ("leak", "exceeds", "within", "undecided", "none found", "no verdict")


@dataclass(frozen=True)
class Verdict:
    """What was found, against what is tolerated.

    Without a tolerance: "leak" if the lower limit of the advantage is above 0, otherwise "none found". With one:
    "exceeds" if the lower limit is above it, "within" if the upper limit is not, otherwise "undecided". "no verdict" if
    the set-up allows none, whatever was measured.
    """

    state: str
    sentence: str
    tolerate: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return state, sentence and tolerance for JSON."""
        return {"state": self.state, "sentence": self.sentence, "tolerate": self.tolerate}

    def __str__(self) -> str:
        return self.sentence


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
        return Verdict("no verdict", f"No verdict: {problem[:1].lower()}{problem[1:]}", tolerate)
    low, high = at_least(advantage.lower, 3), at_most(advantage.upper, 3)
    level = f"{100 * advantage.confidence_level:g}% confidence"
    limits = f"Advantage {advantage.estimate:.2g}; at least {low}, and at most {high} for {attackers} ({level})."
    picked = (
        f"an attacker picks out {of_hundred(rates[0])} of 100 members while wrongly accusing {of_hundred(rates[1])} "
        "of 100 outsiders"
    )
    but = f" {caveat}" if caveat else ""
    if tolerate is None:
        if advantage.lower > 0.0:
            return Verdict("leak", f"Leak found: {picked}. {limits}{but}")
        return Verdict(
            "none found",
            f"No leak was found, which does not show that there is none: what was measured could be chance, and an "
            f"advantage of up to {high} remains possible for {attackers} ({level}), and any for others.",
        )
    if advantage.lower > tolerate:
        return Verdict("exceeds", f"More than the tolerated {tolerate:g}: {picked}. {limits}{but}", tolerate)
    if advantage.upper <= tolerate:
        shown = f" A leak of at least {low} is shown, which is tolerated: {picked}." if advantage.lower > 0 else ""
        return Verdict(
            "within",
            f"Within the tolerated {tolerate:g}: the advantage is at most {high} for {attackers} ({level}). Other "
            f"attackers are not covered.{shown}",
            tolerate,
        )
    more = f" A leak of at least {low} is shown.{but}" if advantage.lower > 0.0 else ""
    if needed is not None and not more:
        more = f" If nothing leaks, about {needed} {unit} on each side would show it."
    return Verdict(
        "undecided",
        f"Undecided: the advantage lies between {low} and {high} ({level}; the upper limit covers {attackers}), and "
        f"{tolerate:g} is tolerated.{more}",
        tolerate,
    )


def of_hundred(rate: float) -> str:
    """Write a rate as a number of people in a hundred."""
    share = 100.0 * rate
    if share == 0.0:
        return "0"
    if share < 1.0:
        return "fewer than 1"
    return "more than 99" if 99.0 < share < 100.0 else f"{share:.0f}"

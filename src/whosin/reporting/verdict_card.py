"""The verdict card: from the dictionary of an audit to the first screen of the report and the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from whosin.numerics.rounding import about, at_least, at_most, confidence, count, of_hundred, percent
from whosin.reporting import painting
from whosin.reporting.blocks import Card

Facts = Mapping[str, Any]

TOLERABLE = 0.1
"""What advice aims at where no tolerance was given."""
NO_CURE = (
    "Removing the copies is no cure: a filter that looks at the training rows tells by what is missing who was in the "
    "data (Ganev and De Cristofaro 2023)."
)


def card_of(facts: Facts) -> Card:
    """Return the card of an audit's ``to_dict()``."""
    verdict, found = facts["verdict"], facts["advantage"]
    details = verdict["details"].replace(facts["covered"], "the attackers that were covered")
    card = Card(verdict["state"], verdict["title"], verdict["headline"], details)
    if verdict["state"] == "no verdict":
        to_do = ("Publish nothing on the strength of these numbers.", "Mend the set-up as said above, and audit again.")
        return replace(card, to_do=to_do)
    share, note = picked(facts)
    level = f"{confidence(found['confidence_level'])} limits"
    tolerate = verdict["tolerate"]
    tolerated = "" if tolerate is None else f"; tolerated is {tolerate:g}"
    return replace(
        card,
        people=people_picture(share, note),
        people_note=note,
        gauge=painting.gauge(
            found["estimate"],
            found["lower"],
            found["upper"],
            tolerate,
            f"Advantage {about(found['estimate'])} on a bar from 0 to 1, {level} {at_least(found['lower'])} to "
            f"{at_most(found['upper'])}{tolerated}.",
        ),
        level=level,
        number_title="Appear word for word" if "copies" in facts else "Found while accusing few outsiders",
        number=_number(facts),
        to_do=what_to_do(facts),
        note=NO_CURE if _leaks(facts) and facts.get("copies", {}).get("members") else "",
    )


def _leaks(facts: Facts) -> bool:
    return facts["verdict"]["state"] in ("leak", "exceeds")


def people_picture(share: float, note: str) -> str:
    """Return the picture of a hundred people, a share of whom stand out."""
    return painting.people(share, f"{round(100 * share)} of 100 people stand out: {note}")


def picked(facts: Facts) -> tuple[float, str]:
    """Return the share of people who stand out, and what that means."""
    if _leaks(facts):
        tpr, fpr = facts["tpr"], facts["fpr"]
        left = "" if 0.0 < tpr < 0.01 or 0.99 < tpr < 1.0 else f" · {100 - round(100 * tpr)} not"
        return tpr, f"{of_hundred(tpr)} picked out{left} · {of_hundred(fpr)} of 100 outsiders accused"
    upper = facts["advantage"]["upper"]
    return upper, f"up to {at_most(100 * upper, 2)} may be picked out beyond chance"


def _number(facts: Facts) -> tuple[str, str] | None:
    """Return copies for a release; members found by an attack that accuses 1 in 100 otherwise, where measurable."""
    if "copies" in facts:
        inside, outside = facts["copies"]["members"], facts["copies"]["non_members"]
        held = "none" if outside == 0 else count(outside)
        words = (
            f"of {count(facts['members'])} people appear in the release word for word; {held} of the "
            f"{count(facts['non_members'])} held-out people {'does' if outside <= 1 else 'do'}{by_chance(facts)}."
        )
        return count(inside), words
    rate = facts["tpr_at"]["0.01"]
    if not rate["measurable"]:
        return None
    return percent(
        rate["estimate"]
    ), f"of the members, while {percent(rate['fpr']['estimate'])} of outsiders are accused."


def by_chance(facts: Facts) -> str:
    """Say how many copies of members chance alone would give, where outsiders are copied too."""
    expected = facts["copies"]["members_by_chance"]
    return f", so chance alone would give about {about(expected)} of the members" if expected else ""


def what_to_do(facts: Facts) -> tuple[str, ...]:
    """Return what to do now, the most important first, after an audit or an audit by retraining."""
    state, tolerate = facts["verdict"]["state"], facts["verdict"]["tolerate"]
    aim = tolerate or TOLERABLE
    thing = "way of training" if "trainings" in facts else "table" if "synthetic" in facts else "model"
    promise = f"differential privacy: ε of at most {_epsilon(aim)} keeps every attacker's advantage within {aim:g}."
    if state == "within":
        return (
            "The tolerance is kept for the attackers that were covered. Others are not covered.",
            "Keep this report with the release. A second release from the same data adds to the first.",
            "Audit again after every new training.",
        )
    if state in ("leak", "exceeds"):
        again = "Train again with less memory of single rows"
        rows = rows_within(facts.get("release_size"), aim)
        if rows is not None:
            again += (
                f", or release at most {count(rows)} rows: that many stay within {aim:g} for the attackers looked at"
            )
        what = "what this way of training makes" if "trainings" in facts else f"this {thing}"
        return f"Do not publish {what}.", f"{again}.", f"Or train with {promise}"
    if "trainings" in facts:
        decide = "Audit again with more trainings, a number fixed beforehand, and another seed."
    else:
        decide = (
            f"Hold out more people: about {count(facts['rows_needed'])} on each side would show an advantage within "
            f"{aim:g} if nothing leaks."
        )
    say = () if tolerate is not None else ("Say which advantage you tolerate, so that the next audit can decide.",)
    return (
        f"Do not call this {thing} free of leaks: too little was measured.",
        decide,
        *say,
        f"Or train with {promise}",
    )


def rows_within(size: Facts | None, target: float) -> int | None:
    """Return the most rows at which, and below which, every upper limit is within a target; None if there are none."""
    fits = None
    for rows, found in zip(size["sizes"], size["advantages"], strict=True) if size is not None else ():
        if found["upper"] > target:
            break
        fits = rows
    return fits


def _epsilon(advantage: float) -> str:
    from whosin import calibrate

    if advantage >= 1.0:
        return "∞"
    return at_least(calibrate.epsilon(advantage=advantage).epsilon, 2)

"""An audit on the terminal: the verdict first, three numbers, what to do, tables; the rest with ``--verbose``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from whosin.cli import render
from whosin.numerics.rounding import about, at_least, at_most, capital, confidence, count, limits, percent

if TYPE_CHECKING:
    from whosin.auditing import Audit
    from whosin.guarantees import Guarantee

Facts = Mapping[str, Any]

COLOURS = {"leak": "red", "exceeds": "red", "within": "green", "no verdict": "red"}
"""Of the verdict, on a terminal; the others are yellow."""


def show(
    found: Audit,
    *,
    top: int = 5,
    target: float | None = None,
    promised: Guarantee | None = None,
    verbose: bool = False,
) -> None:
    """Print an audit for people.

    ``top`` of the most exposed records are listed; for an advantage of ``target`` it is said how many rows may be
    released. With ``verbose`` queries, low rates, sizes of the release, assumptions and the method are printed as well.
    """
    from rich.text import Text

    facts = found.to_dict()
    judged = facts["verdict"]["state"] != "no verdict"
    console = render.console()
    said, title = facts["verdict"]["sentence"], facts["verdict"]["title"]
    colour = COLOURS.get(facts["verdict"]["state"], "yellow")
    console.print(Text.assemble((title, f"bold {colour}"), said.removeprefix(title)))
    _three_numbers(console, facts)
    if judged:
        _to_do(console, facts)
    _people(console, facts, top)
    _groups(console, "groups", facts["groups"])
    _groups(console, "most exposed groups", facts.get("exposed_groups", []))
    if verbose:
        _queries(console, facts)
    _release(console, facts.get("release_size"), target if judged else None, verbose)
    if promised is not None:
        compared = found.compare(promised) if judged else "No verdict on it, for the reason above."
        console.print(f"\nPromised: {promised}. {capital(str(compared))}")
    if facts.get("left_out"):
        from whosin.reporting.preview import what_is_compared
        from whosin.tables.roles import KEY, TEXTS

        texts = ", and --embed compares texts" if {KEY, TEXTS} & set(facts["left_out"].values()) else ""
        console.print(f"\n{what_is_compared(facts['preview']['columns'])} --keep compares them all the same{texts}.")
    for failed in facts.get("failed_queries", []):
        console.print(f"Not asked: {failed['query']}, because {failed['reason']}.")
    if verbose:
        console.print(f"\n{facts['explanation'].removeprefix(said).strip()}")
        render.assumptions(console, facts["assumes"])
        console.print(f"\nMethod: {facts['method']}.")
    else:
        console.print(f"\nIt rests on {len(facts['assumes'])} assumptions; --verbose prints them with all numbers.")


def _three_numbers(console: Any, facts: Facts) -> None:
    level = confidence(facts["advantage"]["confidence_level"])
    value, low, high = limits(facts["advantage"])
    surely = facts["individual"]["histogram"]["surely_above_prior"]
    shown = render.table("", "", headings=False)
    shown.add_row("Advantage", f"{value}, {level} limits {low} to {high} (0: a blind guess, 1: certainty)")
    if "copies" in facts:
        from whosin.reporting.verdict_card import by_chance

        inside, outside = facts["copies"]["members"], facts["copies"]["non_members"]
        shown.add_row(
            "Word for word",
            f"{count(inside)} of {count(facts['members'])} people in the data, {count(outside)} of "
            f"{count(facts['non_members'])} outsiders{by_chance(facts)}",
        )
    else:
        rate = facts["tpr_at"]["0.01"]
        words = f"{percent(rate['estimate'])} of the members, {percent(rate['fpr']['estimate'])} of outsiders accused"
        shown.add_row("At low rates", words if rate["measurable"] else rate["about"])
    shown.add_row("Surely exposed", f"{count(surely)} of {count(facts['members'])} people in the data")
    console.print()
    console.print(shown)


def _to_do(console: Any, facts: Facts) -> None:
    from whosin.reporting.verdict_card import what_to_do

    render.listed(console, "What to do now", what_to_do(facts), numbered=True)


def _people(console: Any, facts: Facts, top: int) -> None:
    rows = facts["individual"]["highest"][:top]
    if not rows:
        return
    who = "most exposed (person)" if facts["person_level"] else "most exposed"
    shown = render.table(who, "chance of membership", "at least", "at most")
    for row in rows:
        shown.add_row(
            str(row.get("place") or row.get("person", f"row {row['index']}")),
            about(row["risk"]),
            at_least(row["simultaneous_lower"]),
            at_most(row["simultaneous_upper"]),
        )
    _print(console, shown)


def _print(console: Any, shown: Any) -> None:
    console.print()
    console.print(shown)
    console.print("All limits of this table hold together.", style="dim")


def _groups(console: Any, heading: str, rows: Sequence[Facts]) -> None:
    if not rows:
        return
    shown = render.table(heading, "members", "advantage", "at least", "at most", "more than the rest by")
    for row in sorted(rows, key=lambda row: -(row["advantage"]["estimate"] or 0.0)):
        star = " *" if row["stands_out"] else ""
        shown.add_row(
            row["name"], count(row["members"]), *limits(row["advantage"]), about(row["difference"]["estimate"]) + star
        )
    _print(console, shown)
    if any(row["stands_out"] for row in rows):
        console.print("* beyond chance")


def _queries(console: Any, facts: Facts) -> None:
    shown = render.table("advantage by query", "estimate", "at least", "at most")
    for name, value in facts["queries"].items():
        shown.add_row(name, *limits(value))
    _print(console, shown)
    rates = render.table("outsiders accused, asked for", "measured", "members found", "at least", "at most")
    for asked, seen in facts["tpr_at"].items():
        rates.add_row(asked, *((about(seen["fpr"]["estimate"]), *limits(seen)) if seen["measurable"] else "----"))
    console.print()
    console.print(rates)
    for asked, seen in facts["tpr_at"].items():
        if not seen["measurable"]:
            console.print(f"{asked} is {seen['about']}.")


def _release(console: Any, size: Facts | None, target: float | None, verbose: bool) -> None:
    if size is None:
        return
    if verbose:
        shown = render.table("rows released", "advantage", "at least", "at most")
        for rows, value in zip(size["sizes"], size["advantages"], strict=True):
            shown.add_row(count(rows), *limits(value))
        _print(console, shown)
    if target is not None:
        from whosin.reporting.verdict_card import rows_within

        most = rows_within(size, target)
        said = "no size that was looked at" if most is None else f"up to {count(most)} rows"
        console.print(
            f"\nAn advantage of at most {target:g} is shown for {said}, for attackers who use {size['query']} by "
            f"thresholds or fixed cells ({confidence(size['confidence_level'])} confidence). Nothing is shown about "
            "other attackers."
        )

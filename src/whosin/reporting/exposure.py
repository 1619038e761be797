"""Who is at risk: the ranked records, the spread of individual risk, groups, and the size of the release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from whosin.auditing import Audit, GroupRow
from whosin.auditing.releases.release_size import ReleaseSize
from whosin.auditing.releases.synthetic import SyntheticAudit
from whosin.plots.audit import GroupsDisplay, IndividualDisplay, RankedDisplay
from whosin.plots.forest import height_of
from whosin.reporting.blocks import Block, Grid, Heading, Picture, Pictures, Section, Text
from whosin.reporting.drawing import as_percent, draw, label_axis
from whosin.reporting.numbers import (
    about,
    capital,
    clean,
    confidence,
    count,
    down,
    percent,
    percent_down,
    percent_up,
    up,
)
from whosin.reporting.provenance import Setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["LEFT_OUT", "at_risk", "groups", "released_rows", "spread_of_risk"]

LISTED = 20
"""Records in the ranked list."""
MOST_GROUPS = 30
"""Groups in one table or picture."""
BELIEFS = (0.5, 0.6, 0.75, 0.9, 0.95, 0.99)
TOLERATED = (0.05, 0.1, 0.2, 0.3, 0.5)
LEFT_OUT = "Which records they are was left out of this copy on purpose."
POINTS = 400
"""Members drawn in the picture of all risks, evenly by rank."""


def at_risk(result: Audit, setting: Setting) -> Section:
    """Return how many members are surely exposed and, unless they are to be left out, which; never their values."""
    level, prior = confidence(result.confidence_level), percent(result.prior)
    surely = int(np.sum(result.individual.simultaneous_lower[: result.members] > result.prior))
    if surely:
        opening = (
            f"For {count(surely)} of the {count(result.members)} members, membership is likelier after the answer than "
            f"the {prior} it was before, whatever chance did ({level} confidence for all at once)."
        )
    else:
        opening = (
            f"For none of the {count(result.members)} members can it be said with {level} confidence that the answer "
            f"raises the probability of membership above the {prior} it was before."
        )
    if not setting.individuals:
        return Section("who", "Who is at risk", [Text(f"{opening} {LEFT_OUT}")])
    named = "Records are named by their row in the data as given; the first row is row 0."
    if setting.ids is not None or result.person_level:
        named = f"{capital(result.unit)} are named by the ids that were given."
    chance = "" if surely else " The order below may be chance."
    blocks: list[Block] = [
        Text(f"{opening}{chance} {named}"),
        *_ranked(result, setting.ids, level),
        Text(
            "This list says who was in the data. Keep it where the data is kept, and leave it out of copies that go "
            "further (individuals=False). Records with equal probabilities differ by their score alone.",
            "small",
        ),
    ]
    return Section("who", "Who is at risk", blocks)


def _ranked(result: Audit, ids: Sequence[object] | None, level: str) -> list[Block]:
    """Return the members of the highest scores as a picture and as a table."""
    closest = result.closest if isinstance(result, SyntheticAudit) else None
    ranked = result.individual.highest(LISTED, "member")
    names = [_name(row, ids) for row in ranked]
    sides = [np.array([row[side] for row in ranked]) for side in ("risk", "simultaneous_lower", "simultaneous_upper")]
    prior = percent(result.prior)
    picture = draw(
        "ranked",
        lambda ax: _paint_ranked(ax, RankedDisplay(names, sides[0], sides[1], sides[2], result.prior)),
        alt=f"Probability of membership of the {len(names)} members with the highest scores, with limits: from "
        f"{percent(float(sides[0][0]))} to {percent(float(sides[0][-1]))}; before the answer it was {prior}.",
        caption=f"The members with the highest scores, the highest on top. Lines: {level} limits for all records at "
        f"once; dashed: the {prior} before the answer.",
        size=(5.6, height_of(names)),
    )
    head = ["person" if result.person_level else "record", "probability of membership", "at least", "at most"]
    rows = [
        [name, percent(row["risk"]), percent_down(row["simultaneous_lower"]), percent_up(row["simultaneous_upper"])]
        for name, row in zip(names, ranked, strict=True)
    ]
    if closest is not None:
        head.append("closest released row")
        rows = [[*cells, f"row\u00a0{closest[row['index']]}"] for cells, row in zip(rows, ranked, strict=True)]
    caption = f"The members with the highest scores, the highest first; limits hold for all records at once ({level})"
    return [Pictures([picture]), Grid(caption, head, rows, frozenset({4}))]


def _name(row: Mapping[str, Any], ids: Sequence[object] | None) -> str:
    """What to call an exposed record or person."""
    if ids is not None:
        return clean(ids[row["index"]])
    return clean(row["person"]) if "person" in row else f"row\u00a0{row['index']}"


def _paint_ranked(ax: Axes, display: RankedDisplay) -> None:
    display.plot(ax=ax)
    label_axis(ax.xaxis, as_percent)


def spread_of_risk(result: Audit) -> Section:
    """Return how many members reach each probability of membership."""
    risk = result.individual.risk[: result.members]
    sure = result.individual.simultaneous_lower[: result.members]
    beliefs = [belief for belief in BELIEFS if belief > result.prior]
    rows = [
        (f"at least {percent(belief)}", count(int(np.sum(risk >= belief))), count(int(np.sum(sure >= belief))))
        for belief in beliefs
    ]
    middle, top = float(np.median(risk)), float(risk.max())
    level = confidence(result.confidence_level)
    picture = draw(
        "individual",
        lambda ax: _paint_risks(ax, result),
        alt=f"Members' probability of membership after the answer, in rising order. Half of the members have at most "
        f"{percent(middle)}, the most exposed {percent(top)}; before the answer it was {percent(result.prior)}.",
        caption=f"Probability of membership after the answer, members in rising order. Shaded: {level} limits for all "
        "records at once.",
        size=(5.4, 3.8),
    )
    opening = (
        "An average hides people. Before the answer every record was a member with probability "
        f"{percent(result.prior)}; after it, the estimate is at most {percent(middle)} for half of the members, and "
        f"{percent(top)} for the most exposed."
    )
    blocks: list[Block] = [Text(opening), Pictures([picture])]
    if rows:
        caption = f"Members whose probability of membership reaches a level, of {count(result.members)}"
        blocks.append(Grid(caption, ("probability", "by the estimate", f"surely ({level})"), rows))
    return Section("spread", "How risk is spread", blocks)


def _paint_risks(ax: Axes, result: Audit) -> None:
    everybody = result.individual
    rows = np.lexsort((everybody.simultaneous_lower[: result.members], everybody.risk[: result.members]))
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, POINTS).astype(np.int64))]
    IndividualDisplay(
        everybody.risk[rows], everybody.simultaneous_lower[rows], everybody.simultaneous_upper[rows], result.prior
    ).plot(ax=ax)
    label_axis(ax.xaxis, as_percent)
    label_axis(ax.yaxis, as_percent)


def groups(result: Audit) -> Section:
    """Return the groups that were named, and those that a search found."""
    named = sorted(result.groups, key=_exposure)
    found = sorted(result.exposed_groups, key=_exposure) if isinstance(result, SyntheticAudit) else []
    standing = [row.name for row in (*named, *found) if row.stands_out]
    level = confidence(result.confidence_level)
    blocks: list[Block] = []
    if not named and not found:
        blocks.append(Text("No groups were named, and there were none to search for: nothing is known about groups."))
        return Section("groups", "Which groups", blocks)
    if standing:
        blocks.append(Text(f"More exposed than everybody else, beyond chance: {'; '.join(standing)}."))
    else:
        blocks.append(
            Text(
                "No group was shown to be more exposed than everybody else. Small groups have wide limits: a "
                "difference may be there and not be seen."
            )
        )
    parts = (
        ("named", "Groups that were named", named),
        ("found", "Groups that a search found, on other records than these", found),
    )
    for name, title, rows in parts:
        if rows:
            blocks += [Heading(title), *_group_blocks(name, rows, level)]
    return Section("groups", "Which groups", blocks)


def released_rows(size: ReleaseSize | None, *, judged: bool = True) -> Section:
    """Return the advantage against the number of released rows, and how many rows may be if that can be ``judged``."""
    title = "How much may be released"
    if size is None:
        return Section("size", title, [Text("Not measured: it takes the built-in queries, and others were asked.")])
    level, last = confidence(size.confidence_level), size.advantages[-1]
    picture = draw(
        "size",
        lambda ax: _paint_sizes(ax, size),
        alt=f"Advantage against the number of released rows: {about(size.advantages[0].estimate)} at "
        f"{count(size.sizes[0])} rows, {about(last.estimate)} at {count(size.sizes[-1])}.",
        caption=f"Advantage against the number of released rows, by {size.query}. Shaded: {level} limits, all at once.",
        size=(5.4, 3.8),
    )
    measured = [
        (count(rows), about(found.estimate), down(found.lower), up(found.upper))
        for rows, found in zip(size.sizes, size.advantages, strict=True)
    ]
    blocks: list[Block] = [
        Text(
            f"Fewer rows tell less. The curve follows an attacker who asks {size.query} of the first rows of the "
            "release, in random order, and ends with the advantage of the verdict, by all rows and queries. It says "
            "nothing about attackers who ask something else, nor about rows made anew."
        ),
        Pictures([picture]),
    ]
    if judged:
        blocks.append(
            Grid(
                "Most rows at which, and below which, every upper limit is within what is tolerated, for attackers who "
                f"use {size.query} ({level})",
                ("tolerated advantage", "rows"),
                [(f"{target:g}", _rows_within(size, target)) for target in TOLERATED],
            )
        )
    blocks.append(Grid("Advantage at each size", ("rows released", "estimate", "at least", "at most"), measured))
    return Section("size", title, blocks)


def _paint_sizes(ax: Axes, size: ReleaseSize) -> None:
    size.plot(ax)
    label_axis(ax.xaxis, lambda rows: f"{rows:,.0f}")


def _rows_within(size: ReleaseSize, target: float) -> str:
    largest = size.largest(target)
    return "none that was measured" if largest is None else count(largest)


def _exposure(row: GroupRow) -> tuple[bool, float, str]:
    value = row.advantage.estimate
    return bool(np.isnan(value)), -value if np.isfinite(value) else 0.0, row.name


def _group_blocks(name: str, rows: Sequence[GroupRow], level: str) -> list[Block]:
    shown = rows[:MOST_GROUPS]
    hidden = len(rows) - len(shown)
    blocks: list[Block] = [
        Pictures([_forest(name, shown, level)]),
        Grid(
            f"Advantage of the attack inside each group; limits hold for all groups of the table at once ({level})",
            ("group", "members", "others", "advantage", "at least", "at most", "more exposed than the rest"),
            [_group_cells(row) for row in shown],
            frozenset({6}),
        ),
    ]
    if hidden:
        blocks.append(Text(f"{count(hidden)} further groups with smaller estimates are not shown.", "small"))
    return blocks


def _group_cells(row: GroupRow) -> list[str]:
    found = row.advantage
    return [
        row.name,
        count(row.members),
        count(row.non_members),
        about(found.estimate),
        down(found.lower),
        up(found.upper),
        "yes, beyond chance" if row.stands_out else "no difference found",
    ]


def _forest(name: str, rows: Sequence[GroupRow], level: str) -> Picture:
    """Draw the groups from the most exposed at the top."""
    sides = [np.array([getattr(row.advantage, side) for row in rows]) for side in ("estimate", "lower", "upper")]
    names = [clean(row.name) for row in rows]
    listed = "; ".join(f"{clean(row.name)} {about(row.advantage.estimate)}" for row in rows[:5])
    more = "" if len(rows) <= 5 else f", and {len(rows) - 5} more in the table"
    return draw(
        f"groups-{name}",
        lambda ax: GroupsDisplay(names, sides[0], sides[1], sides[2]).plot(ax=ax),
        alt=f"Advantage by group with limits: {listed}{more}.",
        caption=f"Advantage by group, the most exposed on top. Lines: {level} limits, all at once; dashed: none.",
        size=(5.6, height_of(names)),
    )

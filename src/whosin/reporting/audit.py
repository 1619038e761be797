"""The report of an audit: the verdict card first, then the evidence, then what it rests on, folded."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from whosin.auditing import Audit
from whosin.guarantees import Guarantee
from whosin.numerics.rounding import (
    NOT_MEASURED,
    about,
    at_most,
    capital,
    clean,
    confidence,
    count,
    limits,
    percent,
    percent_down,
    percent_up,
    sentence,
)
from whosin.reporting.blocks import Block, Fold, Grid, Heading, Items, Picture, Pictures, Report, Section, Text
from whosin.reporting.comparison import promised_against_measured
from whosin.reporting.curves import measured_curve, roc_pictures
from whosin.reporting.painting import Axis, Interval, Line, bars, chart, histogram, intervals
from whosin.reporting.preview import preview_blocks
from whosin.reporting.provenance import Setting, reproduce
from whosin.reporting.verdict_card import card_of, rows_within

Facts = Mapping[str, Any]

DRAWN, LISTED = 6, 30
"""Groups and queries in a picture, and in a table."""
TOLERATED = (0.05, 0.1, 0.2, 0.3, 0.5)
LEFT_OUT = "Which records they are was left out of this copy on purpose."
NO_VERDICT = (
    "The numbers of this report were measured, but they allow no verdict, neither a good nor a bad one: mend the "
    "set-up first, as the top of the report says."
)


def audit_report(result: Audit, setting: Setting) -> Report:
    """Return the report of an audit of scores or of a synthetic table."""
    facts = result.to_dict()
    promise = [] if setting.guarantee is None else [_promise(result, setting.guarantee)]
    return Report(
        "Can anyone tell who is in the data?",
        "audit of a synthetic table" if "synthetic" in facts else "audit of an attack's scores",
        tuple(_sections(facts, setting, promise, _call(result))),
        card_of(facts),
        _data(facts, setting.files),
        facts.get("fingerprints", {}),
    )


def _sections(facts: Facts, setting: Setting, promise: list[Section], call: str) -> Iterator[Section]:
    yield Section("picture", "The picture", [*_warnings(facts), *_picture(facts, setting.guarantee)])
    yield _people(facts, setting)
    if "synthetic" in facts:
        yield _columns(facts)
    yield _groups(facts)
    if "synthetic" in facts:
        yield _released_rows(facts["release_size"], facts["verdict"]["state"] != "no verdict")
    yield from promise
    if setting.individuals:
        yield _most_exposed(facts, setting.ids)
    yield _words(facts)
    yield _queries(facts)
    if facts.get("preview") is not None:
        yield Section("data", "What was compared", preview_blocks(facts["preview"], setting.files), folded=True)
    yield _assumed(facts, setting.guarantee)
    yield _untested(facts)
    yield Section("method", "How it was measured", [Text(sentence(facts["method"]))], folded=True)
    yield reproduce(
        setting,
        call=call,
        unknown="Queries and groups are not kept in the result, nor is rng if one was given: fill them in.",
        fingerprints=facts.get("fingerprints"),
    )


def _data(facts: Facts, files: Mapping[str, str]) -> str:
    """The data in a line: what was released, what from, and what it was compared with."""
    unit = "people" if facts["person_level"] else "rows"
    inside, outside = f"{count(facts['members'])} {unit}", f"{count(facts['non_members'])} {unit}"
    if "synthetic" not in facts:
        name = f"{files['scores']}: " if "scores" in files else ""
        return f"{name}scores of {inside} in the data and {outside} outside it"
    names = {role: files.get(role, called) for role, called in _CALLED.items()}
    return (
        f"{names['synthetic']} ({count(facts['synthetic'])} rows, {len(facts['columns'])} columns: "
        f"{_listed(facts['columns'])}), made from {names['train']} ({inside}); held out: {names['holdout']} ({outside})"
    )


_CALLED = {"synthetic": "Release", "train": "the training data", "holdout": "the held-out data"}


def _listed(names: Sequence[str], most: int = 6) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(clean(name) for name in names[:most]) + more


def _warnings(facts: Facts) -> list[Block]:
    """What makes the two sides no fair comparison, unless the verdict says it."""
    found = [facts.get(side) or {} for side in ("records_alone", "dependence")]
    said = [each.get("sentence", "") for each in found]
    return [Text(text, "warning") for text in said if text and text not in facts["verdict"]["sentence"]]


def _picture(facts: Facts, guarantee: Guarantee | None) -> list[Block]:
    text = (
        "Every point of the curve is an attack: how many outsiders it accuses, and how many people in the data it "
        "finds. The further the curve lies above the dashed diagonal, a blind guess, the more is given away."
    )
    if guarantee is not None:
        text += f" No attack may lie above the promised curve of {guarantee}, if it holds here."
    lowest = max(1e-7, min(0.01, 10.0 ** math.floor(math.log10(0.5 / facts["non_members"]))))
    level = facts["band"]["confidence_level"]
    return [Text(text), roc_pictures(measured_curve(facts), guarantee, lowest=lowest, level=level)]


def _people(facts: Facts, setting: Setting) -> Section:
    """How many people are exposed how much and, unless they are to be left out, which; never their values."""
    individual, prior = facts["individual"], percent(facts["prior"])
    level = confidence(individual["confidence_level"])
    surely = individual["histogram"]["surely_above_prior"]
    of_all = f"of the {count(facts['members'])} people in the data"
    opening = (
        f"For {count(surely)} {of_all}, membership is surely likelier after the release than the {prior} it was before "
        f"({level} confidence for all at once)."
        if surely
        else f"For none {of_all} can it be said with {level} confidence that the release makes membership likelier "
        f"than the {prior} it was before."
    )
    counts = individual["histogram"]["members"]
    top = max(place for place, number in enumerate(counts) if number)
    picture = Picture(
        histogram(
            counts,
            f"People in the data by their probability of membership after the release, in tenths: "
            f"{', '.join(map(str, counts))}. The most exposed lie between {10 * top}% and {10 * top + 10}%.",
            Axis("probability of membership after the release"),
            mark=facts["prior"],
        ),
        f"People in the data, by the probability of membership that an attacker can give them. Dashed: the {prior} "
        "before.",
    )
    blocks: list[Block] = [Text(opening), Pictures([picture])]
    if not setting.individuals:
        blocks.append(Text(LEFT_OUT, "small"))
    return Section("who", "Who is exposed", blocks, half=True)


def _most_exposed(facts: Facts, ids: Sequence[object] | None) -> Section:
    """The members of the highest scores; those with equal probabilities share a line."""
    highest, level = facts["individual"]["highest"], confidence(facts["individual"]["confidence_level"])
    places = ids is None and not facts["person_level"] and bool(highest) and "place" in highest[0]
    who = "person" if facts["person_level"] else "record"
    if places:
        named = "Lines, and rows of sheets, are counted as the file has them, the first is 1; other rows from 0."
    elif ids is not None or facts["person_level"]:
        named = f"{capital(facts['unit'])} are named by the ids that were given."
    else:
        named = "Records are named by their place among the members; the first is 0."
    closest = bool(highest) and "released_row" in highest[0]
    rows = []
    for (risk, low, high), ties in groupby(highest, key=itemgetter("risk", "simultaneous_lower", "simultaneous_upper")):
        names = [_name(row, ids) + (f" ({clean(row['released_place'])})" if closest else "") for row in ties]
        rows.append((", ".join(names), percent(risk), percent_down(low), percent_up(high)))
    blocks: list[Block] = [
        Text(
            f"{named} This list says who was in the data: keep it where the data is kept, and leave it out of copies "
            "that go further.",
            "small",
        ),
        Grid(
            f"The {len(highest)} members with the highest scores; limits hold for all records at once ({level})",
            (
                f"{who} (closest in the release)" if closest else who,
                "probability of membership",
                "at least",
                "at most",
            ),
            rows,
        ),
    ]
    return Section("exposed", "The most exposed", blocks, folded=True)


def _name(row: Facts, ids: Sequence[object] | None) -> str:
    if ids is not None:
        return clean(ids[row["index"]])
    return clean(row["person"]) if "person" in row else clean(row.get("place", row["index"]))


def _columns(facts: Facts) -> Section:
    """Which columns give people away."""
    title, found = "Which columns give people away", facts["revealing_columns"]
    if found is None:
        why = (
            "No leak was shown, so no column can be blamed for one."
            if facts["advantage"]["lower"] <= 0.0
            else "Not measured for these data: it takes 2 to 100 columns, and a release that fits into memory."
        )
        return Section("columns", title, [Text(why)], half=True)
    shown = [(column["name"], round(column["lost"], 3) + 0.0) for column in found["columns"][:DRAWN]]
    first, lost = shown[0]
    opening = (
        "No single column gives people away: hiding any one of them changes little. It is the combination."
        if lost < 0.05
        else f"Hiding {clean(first)} would cost the attacker most: {about(lost, 2)} of {about(found['advantage'], 2)}."
    )
    axis = Axis(
        "advantage lost when the column is hidden",
        min(0.0, *(value for _, value in shown)),
        max(0.1, lost),
        text=lambda value: f"{value:g}",
    )
    listed = "; ".join(f"{clean(name)} {about(value, 2)}" for name, value in shown)
    return Section(
        "columns",
        title,
        [
            Text(opening),
            Pictures(
                [
                    Picture(
                        bars(shown, f"Advantage lost by hidden column: {listed}.", axis),
                        f"By the nearest released row, for {count(found['members'])} people in the data, "
                        f"{count(found['non_members'])} others and {count(found['released'])} released rows. Estimates "
                        "without limits: differences of a few hundredths may be chance.",
                    )
                ]
            ),
        ],
        half=True,
    )


def _groups(facts: Facts) -> Section:
    """The groups that were named, and those that a search found."""
    named, found = facts["groups"], facts.get("exposed_groups", [])
    rows = sorted([*named, *found], key=_exposure)
    if not rows:
        text = "No groups were named, and there were none to search for: nothing is known about groups."
        return Section("groups", "Which groups", [Text(text)], half=True)
    standing = "; ".join(clean(row["name"]) for row in rows if row["stands_out"])
    level = confidence(facts["advantage"]["confidence_level"])
    listed = "; ".join(f"{clean(row['name'])} {about(row['advantage']['estimate'])}" for row in rows[:5])
    blocks: list[Block] = [
        Text(
            f"More exposed than everybody else, beyond chance: {standing}."
            if standing
            else "No group was shown to be more exposed than everybody else. Small groups have wide limits: a "
            "difference may be there and not be seen."
        ),
        Pictures(
            [
                Picture(
                    intervals([_interval(row["name"], row["advantage"]) for row in rows[:DRAWN]],
                              f"Advantage by group with limits: {listed}."),
                    f"Advantage by group, the most exposed first; {level} limits.",
                )
            ]
        ),
    ]  # fmt: skip
    parts = (("Groups that were named", named), ("Groups that a search found, on other records than these", found))
    tables: list[Block] = []
    for title, part in parts:
        if part:
            tables += [Heading(title), *_group_table(sorted(part, key=_exposure), level)]
    return Section("groups", "Which groups", [*blocks, Fold("The numbers", tables)], half=True)


def _exposure(row: Facts) -> tuple[bool, float, str]:
    value = row["advantage"]["estimate"]
    return value is None, -(value or 0.0), row["name"]


def _interval(name: str, found: Facts) -> Interval:
    nothing = float("nan")
    estimate = nothing if found["estimate"] is None else found["estimate"]
    return Interval(name, estimate, found["lower"] or 0.0, 1.0 if found["upper"] is None else found["upper"])


def _group_table(rows: Sequence[Facts], level: str) -> list[Block]:
    blocks: list[Block] = [
        Grid(
            f"Advantage of the attack inside each group; limits hold for all groups of the table at once ({level})",
            ("group", "members", "outsiders", "advantage", "at least", "at most", "more exposed than the rest"),
            [
                (
                    row["name"],
                    count(row["members"]),
                    count(row["non_members"]),
                    *limits(row["advantage"]),
                    "yes, beyond chance" if row["stands_out"] else "no difference found",
                )
                for row in rows[:LISTED]
            ],
            frozenset({6}),
        )
    ]
    if len(rows) > LISTED:
        more = f"{count(len(rows) - LISTED)} further groups with smaller estimates are not shown."
        blocks.append(Text(more, "small"))
    return blocks


def _released_rows(size: Facts | None, judged: bool) -> Section:
    """The advantage against the number of released rows, and how many rows may be if that can be ``judged``."""
    title = "How much may be released"
    if size is None:
        text = "Not measured: it takes the built-in queries, and others were asked."
        return Section("size", title, [Text(text)], half=True)
    level, last = confidence(size["confidence_level"]), size["advantages"][-1]
    sides = [[found[side] for found in size["advantages"]] for side in ("estimate", "lower", "upper")]
    axes = (
        Axis(
            "released rows", size["sizes"][0], max(size["sizes"][-1], size["sizes"][0] + 1), True, lambda n: f"{n:,.0f}"
        ),
        Axis("advantage", text=lambda value: f"{value:g}"),
    )
    picture = Picture(
        chart(
            [Line(size["sizes"], sides[0], "", sides[1], sides[2])],
            f"Advantage against the number of released rows: {about(sides[0][0])} at {count(size['sizes'][0])} rows, "
            f"{about(last['estimate'])} at {count(size['sizes'][-1])}.",
            axes=axes,
            blind=[0.0] * 101,
            dots=True,
        ),
        f"Advantage by number of released rows; {level} limits.",
    )
    blocks: list[Block] = [
        Text(
            "Fewer rows tell less. The curve follows simpler attackers, who see the first rows in random order, and "
            "ends with all rows and all queries."
        ),
        Pictures([picture]),
    ]
    tables: list[Block] = []
    if judged:
        most = {target: rows_within(size, target) for target in TOLERATED}
        tables.append(
            Grid(
                "Most rows at which, and below which, every upper limit is within what is tolerated, for attackers who "
                f"use {size['query']} ({level})",
                ("tolerated advantage", "rows"),
                [(f"{target:g}", "none that was measured" if n is None else count(n)) for target, n in most.items()],
            )
        )
    measured = [(count(n), *limits(found)) for n, found in zip(size["sizes"], size["advantages"], strict=True)]
    tables.append(Grid("Advantage at each size", ("rows released", "estimate", "at least", "at most"), measured))
    return Section("size", title, [*blocks, Fold("The numbers", tables)], half=True)


def _promise(result: Audit, guarantee: Guarantee) -> Section:
    blocks: list[Block] = [Text(NO_VERDICT, "warning")]
    if result.problem is None:
        blocks = promised_against_measured(result.compare(guarantee), result.prior)
    return Section("promise", "Promised versus measured", blocks)


def _words(facts: Facts) -> Section:
    """The whole paragraph and all numbers."""
    blocks: list[Block] = []
    if facts["verdict"]["state"] == "no verdict":
        blocks.append(Text(NO_VERDICT, "warning"))
    blocks += [
        Text(facts["explanation"]),
        Text(
            "The advantage is the share of the people in the data that an attack rightly accuses, less the share of "
            "the outsiders that it wrongly accuses: 0 for a blind guess, 1 for certainty."
        ),
        numbers(facts),
        low_rates(facts),
    ]
    return Section("numbers", "In words and numbers", blocks, folded=True)


def numbers(facts: Facts) -> Grid:
    """Return the measures of an audit with their limits."""
    rows = [
        ("advantage", *limits(facts["advantage"])),
        (f"advantage at prior {percent(facts['prior'])} (2·accuracy - 1)", *limits(facts["advantage_at_prior"])),
        ("excess over a constant guess", *limits(facts["excess"])),
    ]
    if facts["metric"] not in ("advantage", "advantage_at_prior"):
        rows.append((str(facts["metric"]), *limits(facts["headline"])))
    smallest = f"smallest advantage that so many {facts['unit']} show in four of five audits, were its attack known"
    rows.append((smallest, at_most(facts["smallest_visible"]), NOT_MEASURED, NOT_MEASURED))
    level = confidence(facts["advantage"]["confidence_level"])
    return Grid(
        f"The numbers ({level} confidence; the upper limits cover {facts['covered']})",
        ("measure", "estimate", "at least", "at most"),
        rows,
    )


def low_rates(facts: Facts) -> Grid:
    """Return what attacks find that accuse few outsiders."""
    rows = []
    for target, found in facts["tpr_at"].items():
        fpr = found["fpr"]
        accused = f"{percent(fpr['estimate'])} ({percent_down(fpr['lower'])} to {percent_up(fpr['upper'])})"
        shares = percent(found["estimate"]), percent_down(found["lower"]), percent_up(found["upper"])
        if not found["measurable"]:
            accused, shares = capital(found["about"]), (NOT_MEASURED, NOT_MEASURED, NOT_MEASURED)
        rows.append((percent(float(target)), accused, *shares))
    return Grid(
        "Attacks that accuse few outsiders: each was chosen on some records and counted on others",
        ("outsiders accused, asked for", "measured", "members found", "at least", "at most"),
        rows,
        frozenset({1}),
    )


def _queries(facts: Facts) -> Section:
    *single, together = facts["queries"].items()
    ranked = [together, *sorted(single, key=lambda item: -item[1]["estimate"])]
    level = confidence(facts["advantage"]["confidence_level"])
    listed = "; ".join(f"{clean(name)} {about(found['estimate'])}" for name, found in ranked[:5])
    picture = Picture(
        intervals(
            [_interval(name, found) for name, found in ranked[:DRAWN]], f"Advantage by query with limits: {listed}."
        ),
        f"Advantage by query, with {level} limits; on top that of the verdict.",
    )
    blocks: list[Block] = [
        Text(
            "A query is what the attacker asks about a record. The first line is the advantage of the verdict. Each of "
            "the others is that of one query alone, from one split of the records, with limits that hold for all of "
            "them at once: they are wider, and the upper ones cover attackers who use that query by a threshold or "
            "fixed cells."
        ),
        Pictures([picture]),
        Grid(
            f"Advantage by query ({level} confidence)",
            ("query", "estimate", "at least", "at most"),
            [(name, *limits(found)) for name, found in ranked[:LISTED]],
        ),
    ]
    if len(ranked) > LISTED:
        blocks.append(Text(f"{len(ranked) - LISTED} further queries with smaller estimates are not shown.", "small"))
    return Section("queries", "What the attacker may ask", blocks, folded=True)


def _assumed(facts: Facts, guarantee: Guarantee | None) -> Section:
    blocks: list[Block] = [
        Text("The numbers hold if these sentences are true. Nobody but the reader can check some of them."),
        Items([sentence(line) for line in facts["assumes"]]),
    ]
    if guarantee is not None:
        blocks += [Heading(f"Assumed by {guarantee}"), Items([sentence(line) for line in guarantee.assumes])]
    return Section("assumed", "What was assumed", blocks, folded=True)


def _untested(facts: Facts) -> Section:
    items = [
        f"Small leaks: with {count(facts['members'])} members and {count(facts['non_members'])} outsiders, an "
        f"advantage below about {at_most(facts['smallest_visible'])} is found in fewer than four of five audits, even "
        "if its attack were known beforehand.",
        f"Other queries than these: {', '.join(facts['queries'])}. A better question may tell more.",
        f"Other attackers than {facts['covered']}: the upper limits say nothing about them.",
        "Membership beyond these records: people who are in neither of the two samples, and other trainings of the "
        "same model, may fare differently.",
        "Repeated releases: a second release from the same data adds to what the first gave away, and was not seen.",
        "Other harms: guessing the values of a person's record, linking it with other tables, or rebuilding it.",
    ]
    blocks: list[Block] = [
        Text("That nothing was found does not show that nothing is there. This audit did not look at:"),
        Items(items),
    ]
    if failed := facts.get("failed_queries"):
        blocks += [
            Heading("Queries that could not be asked"),
            Items([f"{each['query']}: {each['reason']}" for each in failed]),
        ]
    return Section("untested", "What was not tested", blocks, folded=True)


def _call(result: Audit) -> str:
    name, data = (
        ("audit_synthetic", "train, holdout, synthetic")
        if hasattr(result, "synthetic")
        else ("audit", "members, non_members")
    )
    metric = repr(result.metric) if isinstance(result.metric, str) else "…"
    more = "" if result.tolerate is None else f", tolerate={result.tolerate!r}"
    return (
        f"wi.{name}({data}, prior={result.prior!r}, metric={metric}, confidence_level={result.confidence_level!r}, "
        f"assignment={result.assignment!r}{', person=…' if result.person_level else ''}{more})"
    )

"""The report of a population: the labelled parameter, and what it means on these records."""

from __future__ import annotations

import numpy as np

from whosin.arrays import Array
from whosin.numerics.rounding import about, at_least, at_most, clean, confidence, count, percent_up
from whosin.population import PopulationPrivacy
from whosin.reporting.audit import LEFT_OUT
from whosin.reporting.blocks import Block, Grid, Picture, Pictures, Report, Section, Text, assumed, question, untested
from whosin.reporting.painting import Axis, Line, chart
from whosin.reporting.promise import NOT_PROMISED
from whosin.reporting.provenance import Setting, reproduce

LISTED = 20
SHARES = (0.5, 0.75, 0.9, 0.99, 1.0)

_CALLS = {"randomised response": "randomized_response"}
_ATTACKERS = {
    "dp": "as labelled: knows everybody else",
    "dp_at_most": "a smaller valid limit for the same",
    "dp_on_records": "knows everybody else, among these records",
    "pmp": "knows these records, and not who was drawn",
}


def population_report(result: PopulationPrivacy, setting: Setting) -> Report:
    """Return the report of a mechanism on one pool of records."""
    how = (
        f"Mechanism: {result.mechanism}. Method: {result.method}. Sensitivity {_listed(result.sensitivity)}, "
        f"{'λ' if result.mechanism == 'exponential' else 'scale of the noise'} {_listed(result.noise_scale)}."
    )
    sections = (
        question(
            f"A mechanism ({result.mechanism}) is labelled with ε = {at_most(result.dp.epsilon)}. The label speaks of "
            f"somebody who knows everybody else in the data. What does it mean for {count(result.train_size)} records "
            f"that were drawn at random from these {count(result.records)}, and somebody who knows all "
            f"{count(result.records)} but not who was drawn?"
        ),
        Section("answer", "The answer", _answer(result)),
        Section("picture", "The picture", _picture(result)),
        Section("who", "Who is at risk", _at_risk(result, setting)),
        assumed(result.assumes),
        untested(NOT_PROMISED, "What was not tested, and is not promised"),
        Section("method", "How it was computed", [Text(how)], folded=True),
        reproduce(
            setting,
            call=f"wi.population.{_CALLS.get(result.mechanism, result.mechanism)}"
            f"(records, epsilon={result.dp.epsilon!r}, …)",
            unknown="The records, the clipping and the seed are not kept in the result: fill them in.",
        ),
    )
    return Report("What does the privacy parameter mean on these records?", "report of a population", sections)


def _answer(result: PopulationPrivacy) -> list[Block]:
    chance = "" if result.confidence_level is None else f", with {confidence(result.confidence_level)} confidence"
    even = not result.pmp.uniform  # records have chances of their own: guesses are counted at even odds
    drawn = 0.5 if even else result.train_size / result.records
    right, worst = (percent_up(promise.accuracy(drawn)) for promise in (result.pmp, result.dp_at_most))
    rows = []
    for name, attacker in _ATTACKERS.items():
        promise = getattr(result, name)
        pair = at_most(promise.epsilon), f"{getattr(promise, 'delta', 0.0):g}"
        rows.append((attacker, *pair, percent_up(promise.accuracy(drawn)), at_most(promise.advantage)))
    return [
        Text(
            f"{'Where in and out are equally likely, somebody' if even else 'Somebody'} who knows these records, and "
            f"not who was drawn, guesses right at most {right} of the time whether a given one was{chance}; for "
            f"somebody who knows everybody else the limit is {worst}, and without looking it is "
            f"{percent_up(max(drawn, 1.0 - drawn))}.",
            "answer",
        ),
        Grid(
            "The promise, by what the attacker knows; all are upper limits",
            ("attacker", "ε, at most", "δ", "right guesses, at most", "advantage, at most"),
            rows,
        ),
        Text(_truth(result)),
    ]


def _truth(result: PopulationPrivacy) -> str:
    if result.exact:
        return "The last of these limits is exact: somebody who knows these records can do as well."
    if result.at_least:
        return f"How loose the last limit may be is known: the true ε̃ is at least {at_least(result.at_least)}."
    return "How far the last limit is from the true ε̃ is not known."


def _picture(result: PopulationPrivacy) -> list[Block]:
    values = np.sort(result.per_record)
    rows = [(f"{100 * share:g}%", at_most(float(values[_place(share, len(values))]))) for share in SHARES]
    return [
        Text("A record that resembles many others hides among them; one that stands apart does not."),
        Pictures([_exposure(result, values)]),
        Grid("Parameter that a share of the records does not exceed", ("share of the records", "ε̃, at most"), rows),
    ]


def _exposure(result: PopulationPrivacy, values: Array) -> Picture:
    """Draw every record's parameter in rising order, below the limits for attackers who know everybody else."""
    known = values[np.isfinite(values)]
    edges = np.repeat(np.linspace(0.0, 1.0, len(values) + 1), 2)[1:-1][: 2 * len(known)]
    worst = {
        "as labelled": result.dp.epsilon,
        "worst case": result.dp_at_most.epsilon,
        "on these records": result.dp_on_records.epsilon,
    }
    lines = [Line(edges, np.repeat(known, 2), "knows the pool only (ε̃)")] if len(known) else []
    lines += [
        Line([0.0, 1.0], [value, value], f"{name}: {about(value)}")
        for name, value in worst.items()
        if np.isfinite(value)
    ]
    if result.at_least and not result.exact:
        name = f"largest ε̃ at least: {at_least(result.at_least)}"
        lines.append(Line([0.0, 1.0], [result.at_least, result.at_least], name))
    highest = max([1e-9, *(float(np.max(line.y)) for line in lines)])
    axes = (
        Axis("share of the records"),
        Axis("privacy parameter ε", 0.0, 1.05 * highest, text=lambda value: f"{value:g}"),
    )
    steps = np.unique([0.0, 1.05 * highest, *(float(np.max(line.y)) for line in lines)])
    widest = int(np.argmax(np.diff(steps)))
    unlimited = len(values) - len(known)
    more = f" {count(unlimited)} records have no limit and are not drawn." if unlimited else ""
    return Picture(
        chart(
            lines,
            f"Each record's practical parameter in rising order, from {at_most(float(values[0]))} to "
            f"{at_most(float(values[-1]))}, with the worst-case limits as lines.",
            axes=axes,
            blind=[0.0, 0.0],
            names_at=float(steps[widest] + steps[widest + 1]) / 2.0,
        ),
        "The practical parameter ε̃ of every record, in rising order, below the limits for attackers who know everybody "
        f"else.{more}",
    )


def _place(share: float, size: int) -> int:
    """Position of the smallest value that at least this share of the sorted values does not exceed."""
    return max(0, int(np.ceil(round(share * size, 9))) - 1)


def _at_risk(result: PopulationPrivacy, setting: Setting) -> list[Block]:
    ids = setting.ids
    if not setting.individuals:
        ends = f"from {at_most(float(result.per_record.min()))} to {at_most(float(result.per_record.max()))}"
        return [Text(f"The practical parameters of the records run {ends}. {LEFT_OUT}")]
    order = np.argsort(-result.per_record, kind="stable")[:LISTED]
    lower = result.per_record_lower
    head = ["record", *([] if lower is None else ["ε̃, at least"]), "ε̃, at most"]
    rows = []
    for i in order.tolist():
        name = clean(ids[i]) if ids is not None else f"row\u00a0{i}"
        least = [] if lower is None else [at_least(float(lower[i]))]
        rows.append([name, *least, at_most(float(result.per_record[i]))])
    named = "by the ids that were given" if ids is not None else "by their row, the first being row 0"
    return [
        Text(
            f"The records with the largest practical parameters, {named}. All {count(result.records)} are in the pool; "
            "the list does not say who was drawn."
        ),
        Grid("The most exposed records, the most exposed first", head, rows),
    ]


def _listed(values: float | tuple[float, ...]) -> str:
    return " and ".join(f"{value:.6g}" for value in np.atleast_1d(values))

"""Draw the implications between guarantees, and list them, straight from the code.

Run by the documentation build; by hand: ``python docs/_ext/draw_implications.py``.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch

from whosin.guarantees import implications
from whosin.guarantees.implications.graph import FORMS

# Placed by hand: differential privacy above, what follows from it below.
PLACES: dict[str, tuple[float, float]] = {
    "DPSGD": (0.6, 2.3),
    "GaussianDP": (3.0, 3.3),
    "ApproxDP": (5.2, 2.5),
    "PureDP": (7.8, 3.3),
    "MembershipPrivacy": (10.2, 1.9),
    "DifferentialIdentifiability": (9.0, 0.2),
    "PMP": (5.6, 0.2),
    "MIP": (2.2, 0.2),
}
LABELS = {
    "DPSGD": "DP-SGD",
    "GaussianDP": "Gaussian DP\nμ",
    "ApproxDP": "approximate DP\nε, δ",
    "PureDP": "pure DP\nε",
    "MembershipPrivacy": "membership privacy\nγ (Li et al.)",
    "DifferentialIdentifiability": "differential\nidentifiability ρ",
    "PMP": "practical membership\nprivacy ε, δ (PMP)",
    "MIP": "membership inference\nprivacy η (MIP)",
}
# Okabe and Ito's palette, which most colour-blind readers can tell apart
AS_PRINTED, CORRECTED, INK, PAPER = "#0072B2", "#D55E00", "#222222", "#F4F4F4"


def merge(edges: Iterable[Any]) -> dict[tuple[str, str], list[Any]]:
    """Group the edges by (source, target): however many theorems join two classes, one arrow is drawn."""
    arrows: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for edge in edges:
        arrows[edge.source, edge.target].append(edge)
    return dict(arrows)


def place(names: Iterable[str]) -> dict[str, tuple[float, float]]:
    """Return a place for every class; one that has none by hand gets a row of its own below."""
    places = {name: PLACES[name] for name in names if name in PLACES}
    others = sorted(set(names) - set(PLACES))
    for column, name in enumerate(others):
        places[name] = (1.0 + 2.8 * column, -1.3)
    return places


def draw(arrows: dict[tuple[str, str], list[Any]]) -> Figure:
    """Draw one box a guarantee and one arrow a pair of guarantees that an implication joins.

    The forms of accountants, which all stand for a curve of differential privacy, are left to the table.
    """
    arrows = {pair: edges for pair, edges in arrows.items() if not set(pair) & set(FORMS)}
    figure = Figure(figsize=(11, 6), layout="constrained")
    axes = figure.add_subplot()
    axes.set_axis_off()
    places = place({name for pair in arrows for name in pair})

    boxes = {}
    for name, (x, y) in places.items():
        style = {"boxstyle": "round,pad=0.5", "facecolor": PAPER, "edgecolor": INK}
        boxes[name] = axes.text(
            x, y, LABELS.get(name, name), ha="center", va="center", fontsize=10, color=INK, bbox=style, zorder=3
        )
    low = min((y for _, y in places.values()), default=0.0)
    axes.set_xlim(-0.6, 11.8)
    axes.set_ylim(low - 1.0, 4.2)

    # The boxes have their size only once the text is laid out; arrows end at their rims.
    figure.draw_without_rendering()
    for (source, target), edges in sorted(arrows.items()):
        line = {
            "arrowstyle": "-|>",
            "mutation_scale": 15,
            "linewidth": 1.8,
            "linestyle": "solid" if any(edge.tight for edge in edges) else (0, (4, 2.5)),
            "color": CORRECTED if any(edge.corrected for edge in edges) else AS_PRINTED,
            "shrinkA": 2,
            "shrinkB": 2,
            "zorder": 2,
        }
        x, y = places[source]
        if source == target:  # the same notion at other parameters: a small loop, out of the way of the arrows
            side = 1 if y > 1 else -1
            ends = [(x - 0.35 * side, y + 0.25 * side), (x + 0.35 * side, y + 0.25 * side)]
            axes.add_patch(FancyArrowPatch(*ends, connectionstyle="arc3,rad=-1.1", **line))
            continue
        bend = 0.16 if (target, source) in arrows else 0.0
        patches = {"patchA": boxes[source].get_bbox_patch(), "patchB": boxes[target].get_bbox_patch()}
        axes.add_patch(FancyArrowPatch((x, y), places[target], connectionstyle=f"arc3,rad={bend}", **patches, **line))

    axes.legend(
        handles=[
            Line2D([], [], color=AS_PRINTED, lw=1.8, label="as in the literature"),
            Line2D([], [], color=CORRECTED, lw=1.8, label="printed statement corrected"),
            Line2D([], [], color=INK, lw=1.8, label="tight"),
            Line2D([], [], color=INK, lw=1.8, linestyle=(0, (4, 2.5)), label="not claimed tight"),
        ],
        loc="lower center",
        ncols=4,
        frameon=False,
        fontsize=9,
    )
    return figure


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    for row in rows:
        cells = (" ".join(str(cell).split()).replace("|", "\\|") for cell in row)
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def code(names: Iterable[str]) -> str:
    """Return class names as they look in a table."""
    return ", ".join(f"`{name}`" for name in names)


def main(folder: Path) -> None:
    """Write implications.svg and implications.md into the folder."""
    folder.mkdir(parents=True, exist_ok=True)

    with matplotlib.rc_context({"svg.hashsalt": "whosin"}):
        draw(merge(implications.EDGES)).savefig(folder / "implications.svg", metadata={"Date": None})

    statements: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for edge in implications.EDGES:
        notes = ["tight" if edge.tight else "not claimed to be tight", *(["corrected"] if edge.corrected else [])]
        theorem = f"{edge.theorem} (*{', '.join(notes)}*)"
        statements[edge.target, theorem, "; ".join(edge.assumes)].append(edge.source)
    edges = table(
        ["from → to", "theorem", "assumes"],
        ([f"{code(sources)} → {code([target])}", *rest] for (target, *rest), sources in statements.items()),
    )

    reasons: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for gap in implications.NO_EDGES:
        reasons[gap.source, gap.reason, gap.counterexample].append(gap.target)
    gaps = table(
        ["from, not to", "why not", "counterexample"],
        ([f"{code([source])} ↛ {code(targets)}", *rest] for (source, *rest), targets in reasons.items()),
    )
    text = f"## What follows\n\n{edges}\n## What does not follow\n\n{gaps}"
    (folder / "implications.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1] / "_generated")

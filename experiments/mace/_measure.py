"""What the paper estimates, what it would estimate if nothing leaked, and the audit's limits, side by side.

W_N (theorem 5) adds up |p·r̂ - (1-p)·q̂| over 100 bins in each dimension. It is biased up: cells that few records share
differ by chance alone. How much is seen by exchanging members and non-members at random (``null``): what is left then
is no leak. U_N (theorem 6) is the same for kernel densities. ``audit`` is :func:`whosin.audit`, whose limits hold.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

import whosin as wi
from experiments._shared import BLACK, BLUE, GREEN, GREY, ORANGE, PINK
from experiments.mace.densities import total_variation
from experiments.mace.heuristics import ThresholdAttack
from whosin.auditing.measuring.estimate import Estimate
from whosin.errors import InputError

__all__ = [
    "BINS",
    "DELTA",
    "PERMUTATIONS",
    "SPLIT",
    "attack_row",
    "cells_of",
    "forest",
    "interval",
    "measure",
    "null",
    "plug_in",
    "printed_radius",
    "printed_risks",
]

Array = NDArray[np.float64]

BINS = 100
"""Bins in each dimension (section 6.1)."""
DELTA = 0.05
PERMUTATIONS = 400
SPLIT = 0
"""Seed of the audits' split: one for all figures, so that the same answers have the same limits everywhere."""


def cells_of(values: Array, bins: int) -> NDArray[np.int64]:
    """Return the cell of each answer: equal bins from the smallest to the largest answer, in each dimension."""
    table = values.reshape(len(values), -1)
    low, high = table.min(axis=0), table.max(axis=0)
    width = np.where(high > low, high - low, 1.0)
    places = np.minimum((bins * (table - low) / width).astype(np.int64), bins - 1)
    return np.asarray(places @ bins ** np.arange(table.shape[1]))


def plug_in(cells: NDArray[np.int64], member: NDArray[np.bool_], prior: float = 0.5) -> float:
    """Return W_N of theorem 5 from the cell of each record."""
    everyone = np.bincount(cells)
    inside = np.bincount(cells[member], minlength=len(everyone))
    n1 = int(member.sum())
    return float(np.abs(prior / n1 * inside - (1.0 - prior) / (len(cells) - n1) * (everyone - inside)).sum())


def null(cells: NDArray[np.int64], member: NDArray[np.bool_], rng: np.random.Generator, prior: float = 0.5) -> Any:
    """Return mean and 95 % range of W_N when members and non-members are exchanged at random: nothing leaks."""
    _, place = np.unique(cells, return_inverse=True)
    values = np.array([plug_in(place, rng.permutation(member), prior) for _ in range(PERMUTATIONS)])
    return {"mean": float(values.mean()), "range_95": np.quantile(values, [0.025, 0.975]).tolist()}


def printed_risks(cells: NDArray[np.int64], member: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the plug-in of theorem 2, the absolute value of f at p = ½, of each member."""
    _, place = np.unique(cells, return_inverse=True)
    r, q = (np.bincount(place[side], minlength=place.max() + 1) / side.sum() for side in (member, ~member))
    own = place[member]
    return np.asarray(np.abs(r[own] - q[own]) / (r[own] + q[own]))


def printed_radius(members: int, non_members: int) -> float:
    """Return the radius of theorem 5, √(2 ln(2/δ)/N) at equal sizes: of W about its mean, not about the advantage.

    For unequal sizes N is replaced by what McDiarmid's inequality gives at p = ½.
    """
    return math.sqrt(0.5 * math.log(2.0 / DELTA) * (1.0 / members + 1.0 / non_members))


def interval(found: Estimate) -> dict[str, float]:
    """Return an estimate with its limits for JSON."""
    return {"estimate": found.estimate, "lower": found.lower, "upper": found.upper}


def attack_row(found: ThresholdAttack) -> dict[str, Any]:
    """Return the advantage and both rates of one attack for JSON."""
    return {**interval(found.advantage), "tpr": found.tpr.estimate, "fpr": found.fpr.estimate}


def measure(
    members: Any, non_members: Any, rng: np.random.Generator, bins: tuple[int, ...] = (BINS,)
) -> dict[str, Any]:
    """Return the paper's estimates with their nulls, and the audit, of answers (N,) or (N, d); cost O(N log N)."""
    inside, outside = (np.asarray(side, dtype=np.float64) for side in (members, non_members))
    both, member = np.concatenate([inside, outside]), np.arange(len(inside) + len(outside)) < len(inside)
    dimensions = 1 if both.ndim == 1 else both.shape[1]
    printed = {}
    for count in bins:
        cells = cells_of(both, count)
        printed[str(count**dimensions)] = {"value": plug_in(cells, member), "null": null(cells, member, rng)}
    try:
        kernel = total_variation(inside, outside)
    except InputError:
        kernel = None
    found = wi.audit(inside, outside, kind="continuous", assignment="random", rng=SPLIT, confidence_level=1.0 - DELTA)
    return {
        "members": len(inside),
        "non_members": len(outside),
        "dimensions": dimensions,
        "plug_in_by_cells": printed,
        "printed_radius": printed_radius(len(inside), len(outside)),
        "kernel": kernel,
        "audit": interval(found.advantage),
    }


def forest(ax: Axes, rows: list[tuple[str, dict[str, Any]]], heuristics: str = "") -> None:
    """Draw one line for each query: the paper's estimates, their nulls, the audit, and a heuristic attack if any."""
    seen: set[str] = set()

    def once(label: str) -> str | None:
        new = label not in seen
        seen.add(label)
        return label if new else None

    ticks, names, place = [], [], 0.0
    for name, row in rows:
        top = place
        for cells, found in row["plug_in_by_cells"].items():
            low, high = found["null"]["range_95"]
            ax.barh(
                place,
                max(high - low, 0.004),
                left=low,
                height=0.62,
                color="0.8",
                label=once("W if nothing leaked, 95 %"),
            )
            ax.plot(found["value"], place, "D", color=ORANGE, ms=6, label=once("paper's W with its interval"))
            ends = [found["value"] - row["printed_radius"], found["value"] + row["printed_radius"]]
            ax.plot(ends, [place, place], "-", color=ORANGE, lw=1)
            ax.annotate(
                f"{int(cells):,} cells", (1.0, place), xycoords=("axes fraction", "data"), color=GREY, va="center"
            )
            place += 1.0
        if row["kernel"] is not None:
            ax.plot(row["kernel"], place - 1.0, "s", color=GREEN, ms=5, label=once("paper's U (kernels)"))
        found = row["audit"]
        ax.plot([found["lower"], found["upper"]], [place, place], "-", color=BLUE, lw=2.4)
        ax.plot(found["estimate"], place, "o", color=BLUE, ms=6, label=once("audit, 95 % limits"))
        if "heuristic" in row:
            place += 1.0
            found = row["heuristic"]
            ax.plot([found["lower"], found["upper"]], [place, place], "-", color=PINK, lw=1.4)
            ax.plot(found["estimate"], place, "v", color=PINK, ms=6, label=once(heuristics))
        ticks.append((top + place) / 2.0)
        names.append(name)
        place += 1.6
    ax.axvline(0.0, color=BLACK, lw=0.6)
    ax.set(yticks=ticks, yticklabels=names, ylim=(place - 0.8, -0.8))
    ax.grid(visible=False, axis="y")

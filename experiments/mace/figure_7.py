"""Figure 7: the advantage against the number of synthetic images that are released (appendix H).

The query is the distance to the nearest of the first m images. The paper's W is drawn with what it would be if nothing
leaked; the audit's limits hold for all sizes together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

import whosin as wi
from experiments._shared import BLUE, ORANGE, new_figure, styled
from experiments.mace._measure import BINS, DELTA, SPLIT, cells_of, interval, null, plug_in
from experiments.mace._models import answers_of
from experiments.mace._recipes import SKIN_CUTS
from experiments.mace._run import Run

DIFFERS = (*SKIN_CUTS, "the sets of synthetic images are nested: the first m of one sample")


def compute(run: Run) -> dict[str, Any]:
    """Return W with its null and the audit for each size."""
    rng = np.random.default_rng([run.seed, 107])
    found = answers_of(run, "skin_jsgan")
    both = np.concatenate(found.distances)
    member = np.arange(len(both)) < len(found.distances[0])
    level = 1.0 - DELTA / len(found.sizes)
    printed, audits = [], []
    for column in both.T:
        cells = cells_of(column, BINS)
        printed.append({"value": plug_in(cells, member), "null": null(cells, member, rng)})
        audit = wi.audit(column[member], column[~member], assignment="random", rng=SPLIT, confidence_level=level)
        audits.append(interval(audit.advantage))
    return {
        "sizes": list(found.sizes),
        "members": int(member.sum()),
        "non_members": int((~member).sum()),
        "plug_in_100_cells": printed,
        "audit": audits,
    }


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw both over the number of images."""
    figure, (ax,) = new_figure()
    figure.set_size_inches(6.2, 4.2)
    printed, found, sizes = data["plug_in_100_cells"], data["audit"], data["sizes"]
    ranges = np.array([one["null"]["range_95"] for one in printed])
    ax.fill_between(sizes, ranges[:, 0], ranges[:, 1], color="0.8", lw=0, label="W if nothing leaked, 95 %")
    ax.plot(sizes, [one["value"] for one in printed], "D-", color=ORANGE, ms=5, label="paper's W, 100 cells")
    limits = [[one[side] for one in found] for side in ("lower", "upper")]
    ax.fill_between(sizes, *limits, color=BLUE, alpha=0.15, lw=0)
    ax.plot(sizes, [one["estimate"] for one in found], "o-", color=BLUE, ms=5, label="audit, 95 % limits together")
    ax.set(title="JS-GAN, distance to the nearest synthetic image", xscale="log")
    ax.set(xlabel="synthetic images released", ylabel="membership advantage", ylim=(-0.01, None))
    figure.legend(loc="outside upper center", ncols=2)
    return figure

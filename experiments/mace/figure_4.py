"""Figure 4: the individual risk of images with a white box, a tenth of the members.

In the paper no other image has a box. Then a box proves membership before anything is trained, and a discriminator that
has merely learned what boxes look like shows a risk. The control gives a tenth of the non-members a box too: what is
left between members and non-members with a box is what the training leaks.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import whosin as wi
from experiments._shared import BLUE, ORANGE, new_figure, styled
from experiments.mace._data import load, with_white_box
from experiments.mace._measure import BINS, PERMUTATIONS, SPLIT, cells_of, forest, measure, printed_risks
from experiments.mace._models import answers_of
from experiments.mace._recipes import SKIN_CUTS
from experiments.mace._run import Run

DIFFERS = (
    *SKIN_CUTS,
    "the box covers the middle third of height and width; the paper does not say how large it is",
    "4a shows scikit-learn's digits (CC BY 4.0): the licence of HAM10000 (CC BY-NC 4.0) is not that of this project",
    "the control, non-members with a box, is not in the paper",
)
GROUPS = ("box", "plain")


def as_printed(inside: Any, outside: Any, box: NDArray[np.bool_], rng: np.random.Generator) -> dict[str, Any]:
    """Return the mean risk of members with and without a box, and what it would be if nothing leaked."""
    cells = cells_of(np.concatenate([inside, outside]), BINS)
    member = np.arange(len(cells)) < len(inside)
    risks = printed_risks(cells, member)
    by_chance = [printed_risks(cells, rng.permutation(member)).mean() for _ in range(PERMUTATIONS)]
    return {
        "box": float(risks[box].mean()),
        "plain": float(risks[~box].mean()),
        "null_mean": float(np.mean(by_chance)),
        "null_range_95": np.quantile(by_chance, [0.025, 0.975]).tolist(),
    }


def audited(inside: Any, outside: Any, box: NDArray[np.bool_]) -> dict[str, Any]:
    """Return the mean risk of each group; its limits are the means of limits that hold for all records at once."""
    found = wi.audit(inside, outside, kind="continuous", assignment="random", rng=SPLIT).individual
    sides = [side[: len(inside)] for side in found.advantage(simultaneous=True)]
    return {
        name: dict(zip(("estimate", "lower", "upper"), (float(side[rows].mean()) for side in sides), strict=True))
        for name, rows in (("box", box), ("plain", ~box))
    }


def examples() -> NDArray[np.float32]:
    """Return one picture of three digits, with a box above and plain below."""
    pixels = load("digits", None).pixels[:3, 0]
    rows = [np.hstack([np.pad(image, 1) for image in images]) for images in (with_white_box(pixels), pixels)]
    return np.asarray(np.vstack(rows))


def compute(run: Run) -> dict[str, Any]:
    """Return the mean risks as in the paper, and the advantage within each group in the control."""
    rng = np.random.default_rng([run.seed, 104])
    found = answers_of(run, "skin_corrupted")
    inside, answers = (side[:, 0] for side in found.scores)
    plain, boxed = np.split(answers, [len(found.split.holdout)])
    box, other = found.corrupted
    return {
        "members_with_box": int(box.sum()),
        "non_members_with_box_in_control": int(other.sum()),
        "paper": {"as_printed": as_printed(inside, plain, box, rng), "audit": audited(inside, plain, box)},
        "control": {
            "box": measure(inside[box], boxed, rng),
            "plain": measure(inside[~box], plain[~other], rng),
        },
    }


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw the mean risks as in the paper on the left, the control on the right."""
    figure, (shown, left, right) = new_figure(3)
    figure.set_size_inches(12.0, 4.0)
    shown.imshow(examples(), cmap="gray", vmin=-1, vmax=1)
    shown.grid(visible=False)
    shown.set(title="4a  What a box looks like, on digits", xticks=[], yticks=[4.5, 14.5], yticklabels=["box", "plain"])
    shown.set(xlabel="three of scikit-learn's digits", ylabel="images")
    found = data["paper"]
    low, high = found["as_printed"]["null_range_95"]
    left.axhspan(low, high, color="0.8", lw=0, label="paper's mean if nothing leaked, 95 %")
    for place, name in enumerate(GROUPS):
        label = place == 0
        left.plot(
            place - 0.1,
            found["as_printed"][name],
            "D",
            color=ORANGE,
            ms=7,
            label="paper's mean risk" if label else None,
        )
        one = found["audit"][name]
        left.plot([place + 0.1] * 2, [one["lower"], one["upper"]], "-", color=BLUE, lw=2)
        left.plot(place + 0.1, one["estimate"], "o", color=BLUE, ms=7, label="audit, 95 % limits" if label else None)
    left.set(title="As in the paper: only members have a box", xlabel="members", ylabel="mean individual risk, |f|")
    left.set(xticks=[0, 1], xticklabels=["with a white box", "plain"], xlim=(-0.6, 1.6), ylim=(0, None))
    control = data["control"]
    forest(right, [("with a\nwhite box", control["box"]), ("plain", control["plain"])])
    right.set(title="Control: members against others of the same kind", xlabel="membership advantage", ylabel="records")
    legend = {label: mark for ax in (left, right) for mark, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(list(legend.values()), list(legend), loc="outside upper center", ncols=3)
    return figure

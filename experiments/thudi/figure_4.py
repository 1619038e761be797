"""Figure 4: one noisy step of logistic regression, (1, 1e-5)-DP (section 5.2).

The final weight is N(10⁶, s²) without the record and N(10⁶ - 1, s²) with it; the attacker says "in" when the weight is
at most α. The paper takes s = 4.0412 from an accountant that is not exact; the smallest noise that is (1, 1e-5)-DP is
that of Balle and Wang (2018), found here by asking the library what each noise guarantees.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import brentq
from scipy.special import ndtr

import whosin as wi
from experiments._shared import BLACK, BLUE, GREY, ORANGE, new_figure, percent, styled
from whosin.numerics.roots import smallest_holding

EPSILON, DELTA = 1.0, 1e-5
PRIOR = 0.5
PRINTED_NOISE = 4.0412
WEIGHT = 10**6


def exact_noise() -> float:
    """Return the smallest noise whose exact guarantee is (1, 1e-5)-DP."""
    return smallest_holding(
        lambda s: wi.GaussianDP(1.0 / s).implies(wi.ApproxDP, delta=DELTA).epsilon <= EPSILON, 1.0, 10.0, tolerance=0.0
    )


def rates(noise: float, offset: float) -> tuple[float, float]:
    """Return FPR and TPR of the threshold α = 10⁶ + offset."""
    fpr = float(ndtr(offset / noise))
    return fpr, float(wi.GaussianDP(1.0 / noise).tpr_at(fpr))


def positive_accuracy(noise: float, offset: float) -> float:
    """Return P(record in | weight ≤ α), equation 3."""
    fpr, tpr = rates(noise, offset)
    return tpr * PRIOR / (tpr * PRIOR + fpr * (1.0 - PRIOR))


def accuracy(noise: float, offset: float) -> float:
    """Return the share of right guesses of the threshold α, equation 4."""
    fpr, tpr = rates(noise, offset)
    return (1.0 - fpr) * (1.0 - PRIOR) + tpr * PRIOR


def study(noise: float, offsets: dict[str, list[float]]) -> dict[str, Any]:
    """Return both curves of one noise and what it guarantees."""
    gauss = wi.GaussianDP(1.0 / noise)
    pure_limit = wi.PureDP(EPSILON).posterior(PRIOR)[1]
    crossing = brentq(lambda a: positive_accuracy(noise, a) - pure_limit, -60.0, 0.0, xtol=1e-13, rtol=1e-14)
    fpr, tpr = rates(noise, crossing)
    return {
        "noise": noise,
        "epsilon_at_delta_1e-5": gauss.implies(wi.ApproxDP, delta=DELTA).epsilon,
        "delta_at_epsilon_1": gauss.roc.divergence(math.exp(EPSILON)),
        "positive_accuracy": [positive_accuracy(noise, a) for a in offsets["positive"]],
        "accuracy": [accuracy(noise, a) for a in offsets["accuracy"]],
        "largest_posterior": gauss.posterior(PRIOR)[1],
        "largest_accuracy": gauss.accuracy(PRIOR),
        "accuracy_at_minus_half": accuracy(noise, -0.5),
        "passes_pure_limit": {"offset": crossing, "probability": PRIOR * tpr + (1.0 - PRIOR) * fpr},
    }


def compute() -> dict[str, Any]:
    """Return both curves at the printed and at the exact noise, and the limits that hold for every mechanism."""
    offsets = {
        "positive": np.linspace(-100.0, 20.0, 121).tolist(),
        "accuracy": np.linspace(-15.0, 14.0, 117).tolist(),
    }
    return {
        "figure": "4",
        "epsilon": EPSILON,
        "delta": DELTA,
        "prior": PRIOR,
        "initial_weight": WEIGHT,
        "offsets": offsets,
        "pure_dp_limit": wi.PureDP(EPSILON).posterior(PRIOR)[1],
        "general_accuracy_limit": wi.ApproxDP(EPSILON, DELTA).accuracy(PRIOR),
        "accuracy_as_printed": 0.549,
        "noise_as_printed": study(PRINTED_NOISE, offsets),
        "noise_exact": study(exact_noise(), offsets),
    }


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw 4a, the positive accuracy, and 4b, the accuracy, both over the threshold."""
    figure, (left, right) = new_figure(2)
    looks = (("noise_exact", "exact", BLUE, "-"), ("noise_as_printed", "as printed", ORANGE, "--"))
    for key, word, colour, dashes in looks:
        one = data[key]
        label = f"noise {one['noise']:.4f}, {word}"
        left.plot(data["offsets"]["positive"], one["positive_accuracy"], color=colour, ls=dashes, label=label)
        label = f"noise {one['noise']:.4f}, {word}: at most {one['largest_accuracy']:.2%}"
        right.plot(data["offsets"]["accuracy"], one["accuracy"], color=colour, ls=dashes, label=label)
        right.plot(-0.5, one["accuracy_at_minus_half"], "o", color=colour, ms=4)
    limit = data["pure_dp_limit"]
    left.axhline(limit, color=GREY, lw=1)
    left.annotate(f"theorem 1, ε = 1 and δ = 0: {limit:.1%}", (-99, limit + 0.008), color=GREY)
    passes = data["noise_exact"]["passes_pure_limit"]
    left.plot(passes["offset"], limit, "o", color=BLACK, ms=4)
    left.annotate(
        f"passed with probability {passes['probability']:.3%}",
        (passes["offset"], limit),
        xytext=(-60, 0.62),
        arrowprops={"arrowstyle": "-", "color": "0.5", "shrinkB": 4},
        ha="center",
    )
    left.set(title="4a  Positive accuracy: no bound below 1", xlim=(-100, 20), ylim=(0.48, 1.02))
    left.set(xlabel="threshold, α − 10⁶", ylabel="P(record in | weight ≤ α)")
    left.legend(loc="upper right")
    right.vlines(-0.5, 0, data["noise_exact"]["largest_accuracy"], color=GREY, lw=1)
    right.annotate("α = 10⁶ − ½", (-0.1, 0.4985), color=GREY, va="top")
    right.set(title="4b  Accuracy: bounded", xlim=(-15, 14), ylim=(0.495, 0.571))
    right.set(xlabel="threshold, α − 10⁶", ylabel="accuracy")
    for ax in (left, right):
        percent(ax.yaxis)
    right.legend(loc="upper center")
    return figure

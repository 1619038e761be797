"""The sampler of corollary 10 against the dimension: with a Laplace radius the guarantee breaks.

The algorithm has two values, a if the record is in and b if not, with σ_i = |a_i - b_i|/2. The noise X = rU of the
paper has a one-dimensional radius, while the density ∝ exp(-‖x‖/c) asks for |r| ~ Gamma(d). Whoever guesses the nearer
value is right with probability ½ + ½P(|r·U₁| < 1) for M = 2, a one-dimensional integral; for larger M directions are
drawn and the radius is integrated out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.integrate import quad
from scipy.special import gammainc

from experiments._shared import BLACK, BLUE, GREEN, GREY, ORANGE, new_figure, percent, styled
from experiments.izzo._common import ETAS
from experiments.izzo.noise import paper_scale

DIMENSIONS = tuple(round(10 ** (i / 2)) for i in range(17))
MOMENTS = {
    4: (10, 30, 100, 200, 400, 700, 1000, 2000, 4000),
    8: (3, 6, 12, 25, 40, 60, 100, 200),
    16: (2, 4, 7, 12, 20, 40),
}
DIRECTIONS = 1500


def gain(d: int, c: float, gamma: bool = False) -> float:
    """Return the exact gain for M = 2 at dimension d, with a Laplace radius or with the right one.

    The first coordinate u of a uniform direction has density ∝ (1 - u²)^((d-3)/2); the integral is over y = u√d. Its
    norming constant is integrated too, since the logarithm of a beta function loses digits at large d.
    """

    def within(u: float) -> float:
        return float(gammainc(d, 1.0 / (c * u))) if gamma else -math.expm1(-1.0 / (c * u))

    if d == 1:
        return 0.5 * within(1.0)
    root = math.sqrt(d)

    def density(y: float) -> float:
        return math.exp((d - 3) / 2 * math.log1p(-((y / root) ** 2)))

    top, turn = min(root, 12.0), root / (c * d)
    inner = [edge for edge in (0.1 * turn, turn, 10 * turn, 1e-3, 1e-2, 0.1, 0.5, 1.0, 2.0, 4.0) if edge < top]
    pieces = list(itertools.pairwise([0.0, *sorted(inner), top]))

    def integral(function: Callable[[float], float]) -> float:
        return math.fsum(quad(function, *piece, epsabs=1e-14, epsrel=1e-11)[0] for piece in pieces)

    return 0.5 * integral(lambda y: within(y / root) * density(y)) / integral(density)


def first_break(eta: float, constant: float = 6.16) -> int:
    """Return the smallest d at which the gain passes η, for M = 2; the gain rises with d."""
    c = (constant / eta) ** 2
    low, high = 1, 2
    while gain(high, c) <= eta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if gain(middle, c) > eta else (middle, high)
    return high


def drawn_gain(d: int, order: int, c: float, rng: np.random.Generator) -> tuple[float, float]:
    """Return the gain for an even moment M and its standard error, over random directions u and their opposites.

    In units of σ the values are 2·(1, …, 1) apart. Along u the nearer value changes once, at the radius 1/ρ with
    mean((u - 2ρ)^M) = mean(u^M); as a polynomial in ρ it needs the moments of u only.
    """
    sizes = rng.gamma(1.0 / order, size=(DIRECTIONS, d)) ** (1.0 / order) * rng.choice([-1.0, 1.0], (DIRECTIONS, d))
    u = sizes / np.mean(sizes**order, axis=1, keepdims=True) ** (1.0 / order)
    powers = np.stack([np.mean(u**j, axis=1) for j in range(order)], axis=1)
    signs = np.array([(-1.0) ** j for j in range(order)])
    correct = 0.5 * (_survival(powers, order, c) + _survival(powers * signs, order, c))
    return float(correct.mean() - 0.5), float(correct.std() / math.sqrt(DIRECTIONS))


def _survival(powers: Any, order: int, c: float) -> Any:
    """P(|r| below the turning point) for each direction, given the means of u^0 … u^(M-1)."""
    weights = np.array([math.comb(order, j) * (-2.0) ** (order - j) for j in range(order)])
    low, high = np.full(len(powers), math.log(1e-9)), np.full(len(powers), math.log(1e3))
    for _ in range(60):  # the difference is positive beyond the turning point in ρ = 1/r
        middle = 0.5 * (low + high)
        rho = np.exp(middle)
        nearer = ((powers * weights) * rho[:, None] ** np.arange(order - 1, -1, -1)).sum(axis=1) > 0.0
        low, high = np.where(nearer, low, middle), np.where(nearer, middle, high)
    return -np.expm1(-np.exp(-high) / c)


def compute() -> dict[str, Any]:
    """Return the gain over d for M = 2, where it breaks, and the gain for larger moments."""
    rng = np.random.default_rng(10)
    larger = {}
    for order, dimensions in MOMENTS.items():
        larger[str(order)] = {
            "d": list(dimensions),
            **{
                f"{eta:g}": dict(
                    zip(
                        ("gain", "standard_error"),
                        map(
                            list,
                            zip(
                                *(drawn_gain(d, order, paper_scale(eta, 1.0, order), rng) for d in dimensions),
                                strict=True,
                            ),
                        ),
                        strict=True,
                    )
                )
                for eta in ETAS
            },
        }
    return {
        "corollary": "10",
        "d": list(DIMENSIONS),
        "as_printed": {f"{eta:g}": [gain(d, paper_scale(eta, 1.0)) for d in DIMENSIONS] for eta in ETAS},
        "gamma_radius": {
            f"{eta:g}": [gain(d, paper_scale(eta, 1.0), True) for d in DIMENSIONS if d <= 10**4] for eta in ETAS
        },
        "breaks_at": {f"{eta:g}": first_break(eta) for eta in ETAS},
        "breaks_at_with_7.5": {f"{eta:g}": first_break(eta, 7.5) for eta in ETAS},
        "larger_moments": larger,
    }


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw M = 2 on the left, larger moments at η = 0.1 on the right."""
    figure, (left, right) = new_figure(2)
    for (eta, line), colour in zip(data["as_printed"].items(), (BLUE, GREEN, ORANGE), strict=True):
        left.plot(data["d"], [0.5 + g for g in line], color=colour, label=f"η = {eta}, as printed")
        repaired = data["gamma_radius"][eta]
        left.plot(data["d"][: len(repaired)], [0.5 + g for g in repaired], color=colour, ls=":", lw=1.2)
        left.axhline(0.5 + float(eta), color=colour, ls="--", lw=0.8)
        left.plot(data["breaks_at"][eta], 0.5 + float(eta), "o", color=colour, ms=5)
    left.plot([], [], color=GREY, ls="--", lw=0.8, label="promised, ½ + η")
    left.plot([], [], color=GREY, ls=":", lw=1.2, label="all η, radius Gamma(d)")
    left.set(title="M = 2 (dots: where it breaks)", ylim=(0.49, 1.01))
    for (order, found), colour in zip(data["larger_moments"].items(), (BLUE, GREEN, ORANGE), strict=True):
        line = found["0.1"]
        right.errorbar(
            found["d"],
            [0.5 + g for g in line["gain"]],
            yerr=[2 * e for e in line["standard_error"]],
            color=colour,
            marker="o",
            ms=3,
            label=f"M = {order}, as printed",
        )
    right.axhline(0.6, color=BLACK, ls="--", lw=0.8, label="promised, ½ + η")
    right.set(title="η = 0.1, larger moments", ylim=(0.49, 0.76))
    for ax in (left, right):
        ax.set(xlabel="d, numbers released", ylabel="accuracy of the best attacker", xscale="log")
        percent(ax.yaxis)
        ax.legend(loc="upper left")
    return figure

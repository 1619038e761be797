"""ε̃ over n, exactly: the paper's expectation that "the ratios become even smaller for larger n", put to the test.

Left, the exponential mechanism labelled ε = 5 on pools of 2n records (d = 5, m = 10, C = 10, σ = 1), every training set
played through up to n = 18 (9,075,135,300 of them; fewer pools from n = 15 on), and the same with d = 1, where two
distinct candidates allow a larger n. Right, the mean of 1-d normal data with Gaussian noise set by ε(X): the exact ε̃
(spectral) beside proposition 12. Takes some four minutes of CPU time, half of them for n = 17 and 18.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

import whosin as wi
from experiments._shared import BLACK, BLUE, GREEN, ORANGE, PINK, new_figure, styled
from experiments.lowy._common import candidates, panel, plain_ticks, summary
from whosin.numerics.gaussian_noise import noise_for
from whosin.population.sums.pairwise import pairwise_epsilons
from whosin.population.sums.spectral import SubsetSumLaws

LABEL, D, M, CLIP, SIGMA, TRIALS = 5.0, 5, 10, 10.0, 1.0, 10
SIZES = tuple(range(3, 19))
LARGE, LARGE_TRIALS = 15, 3
"""From which n on fewer pools are drawn."""
ADJACENT_UP_TO = 12
"""Largest n for which the library enumerates ε(X); beyond, it gives an interval."""
TWO_CANDIDATE_SIZES = (3, 6, 10, 14, 30, 100, 300, 1000)
DELTA, TARGETS = 0.01, (1.0, 5.0)
GAUSSIAN_SIZES = (3, 10, 30, 100, 300, 1000)
ALL_RECORDS_UP_TO = 10
"""Largest n for which every record is judged; beyond, the two outermost (the most exposed in every pool checked)."""


def trials(n: int) -> int:
    """Return how many pools of the exponential mechanism are drawn."""
    return TRIALS if n < LARGE else LARGE_TRIALS


def exponential_trial(number: int, n: int) -> dict[str, dict[str, float]]:
    """Return ε̃, the range bound and, for small n, ε(X), of one pool."""
    rng = np.random.default_rng([7, n, number])
    w = candidates(rng, M, D)
    x = w[0] + SIGMA * rng.standard_normal((2 * n, D))
    result = wi.population.exponential(x, w, epsilon=LABEL, clip=CLIP, method="exact")
    found = {"pmp": result.pmp.epsilon, "tight": result.dp_at_most.epsilon}
    if n <= ADJACENT_UP_TO:
        found["adjacent"] = result.dp_on_records.epsilon
    return {"all": found}


def two_candidates_trial(number: int, n: int) -> dict[str, dict[str, float]]:
    """Return ε̃ of one pool in one dimension with the candidates 1 and -1."""
    x = 1.0 + SIGMA * np.random.default_rng([9, n, number]).standard_normal(2 * n)
    result = wi.population.exponential(x, [1.0, -1.0], epsilon=LABEL, clip=CLIP, method="two_outcomes")
    return {"all": {"pmp": result.pmp.epsilon}}


def gaussian_trial(number: int, n: int) -> dict[str, dict[str, float]]:
    """Return the exact ε̃ (the upper end of its enclosure) and proposition 12's, by ε(X)."""
    x = np.random.default_rng([8, n, number]).standard_normal(2 * n) / n
    judged = np.arange(2 * n) if n <= ALL_RECORDS_UP_TO else np.array([x.argmin(), x.argmax()])
    found = {}
    for target in TARGETS:
        noise = noise_for(target, DELTA, float(np.ptp(x)))
        exact = SubsetSumLaws(x, n, noise, records=judged).epsilon(DELTA)
        found[f"{target:g}"] = {
            "exact": float(exact[:, 1].max()),
            "proposition_12": float(pairwise_epsilons(x, noise, DELTA, records=judged).max()),
        }
    return found


def compute() -> dict[str, Any]:
    """Return mean and standard deviation of ε̃ over n."""
    small = [n for n in SIZES if n <= ADJACENT_UP_TO]
    found = {n: [exponential_trial(number, n) for number in range(trials(n))] for n in SIZES}
    adjacent = summary(found[n] for n in small)["all"]["adjacent"]
    kept = summary([{"all": {key: one["all"][key] for key in ("pmp", "tight")}} for one in found[n]] for n in SIZES)
    line = summary([two_candidates_trial(number, n) for number in range(TRIALS)] for n in TWO_CANDIDATE_SIZES)
    return {
        "figure": "n",
        "trials": TRIALS,
        "exponential": {
            **{"label": LABEL, "d": D, "m": M, "clip": CLIP, "sigma": SIGMA, "n": list(SIZES)},
            "trials": [trials(n) for n in SIZES],
            **kept["all"],
            "adjacent": {"n": small, **adjacent},
            "two_candidates": {
                "n": list(TWO_CANDIDATE_SIZES),
                "tight": 2.0 * LABEL / (CLIP + 1.0),
                **line["all"]["pmp"],
            },
        },
        "gaussian": {
            **{"delta": DELTA, "n": list(GAUSSIAN_SIZES)},
            **summary([gaussian_trial(number, n) for number in range(TRIALS)] for n in GAUSSIAN_SIZES),
        },
    }


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw the exponential mechanism on the left, the Gaussian one on the right."""
    figure, (left, right) = new_figure(2)
    first, second = data["exponential"], data["gaussian"]
    dots = {"marker": "o", "ms": 3}
    line, near = first["two_candidates"], first["adjacent"]
    left.axhline(line["tight"], color=PINK, ls="-.", lw=1.2, label="worst case by the range (ours), d = 1")
    panel(left, first["n"], first["tight"], color=GREEN, ls="-.", label="worst case by the range (ours), d = 5")
    panel(left, line["n"], line, color=PINK, label="ε̃, exact, d = 1 (two candidates)", **dots)
    panel(left, near["n"], near, color=ORANGE, ls="--", label="ε(X), exact, d = 5", **dots)
    panel(left, first["n"], first["pmp"], color=BLUE, label="ε̃, exact, d = 5", **dots)
    left.set(title=f"Exponential mechanism labelled ε = {first['label']:g}", xlabel="n (pool of 2n)", ylabel="ε")
    left.set(ylim=(0, 1.5))
    left.legend(loc="upper right")
    for key, colour, other in (("5", BLUE, ORANGE), ("1", PINK, BLACK)):
        looser = {"color": other, "ls": "--", "label": f"proposition 12, ε(X) = {key}"}
        panel(right, second["n"], second[key]["proposition_12"], **looser, **dots)
        panel(right, second["n"], second[key]["exact"], color=colour, label=f"exact, ε(X) = {key}", **dots)
    right.set(title=f"1-d mean, Gaussian noise, δ = {second['delta']:g}", xlabel="n (pool of 2n)", ylabel="ε̃")
    right.set(yscale="log", ylim=(0.08, 8), yticks=(0.1, 0.2, 0.5, 1, 2, 5))
    right.yaxis.set_major_formatter("{x:g}")
    right.legend(loc="lower left")
    for ax in (left, right):
        plain_ticks(ax, second["n"])
    return figure

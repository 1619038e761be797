"""The numbers in the text on figures 1, 4 and 5 under every reading that the text allows, and the closest of them.

Figure 1 (σ = 1): ε(X) by its definition or as 2λΔ(X); the label ε with the exact sensitivity (C + 1)/n, with 2C/n or
with C/n; ε̃ over both directions or, as proposition 9 is printed, in/out alone; ratios averaged, or averages divided.
Figures 4 and 5: noise set by ε(X) or by ε, with sensitivity 2C/n (a record replaced) or C/n (one removed); δ kept for
every record or on average; figure 5 also with the outliers made after clipping, so that they stay larger than C.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.optimize import brentq
from scipy.spatial.distance import pdist, squareform

from experiments._shared import BLUE, ORANGE, new_figure, styled
from experiments.lowy import figure_1, figure_4, figure_5
from experiments.lowy._common import Array, candidates, clip_rows, distances, exponential, outliers
from whosin.numerics.gaussian_noise import noise_for, shift_divergence

TRIALS = {"1": 40, "4": 5, "5": 10}
PRINTED = {"1": {"pmp": 2.14, "label": 28.5, "ratio": 0.075}, "4": {"pmp_below": 0.9}, "5": {"pmp": 1.0}}


# --- figure 1 ---------------------------------------------------------------------------------------------------------


def in_over_out(losses: Array, scale: float) -> float:
    """Return the largest ln(in/out) of the exponential mechanism, the only direction of proposition 9 as printed."""
    n = len(losses) // 2
    members = np.array([np.isin(np.arange(2 * n), who) for who in itertools.combinations(range(2 * n), n)])
    logits = -scale * (members @ losses) / n
    laws = np.exp(logits - logits.max(axis=1, keepdims=True))
    laws /= laws.sum(axis=1, keepdims=True)
    return float(np.log((members.T @ laws) / (~members.T @ laws)).max())


def figure_1_readings() -> dict[str, dict[str, float]]:
    """Return ε̃, ε and their ratio at σ = 1 for each reading."""
    n, clip = figure_1.N, figure_1.CLIP
    trials = []
    for number in range(TRIALS["1"]):
        rng = np.random.default_rng([1, number])
        w = candidates(rng, figure_1.M, 1)
        x = clip_rows(w[0] + rng.standard_normal((2 * n, 1)), clip)
        found = exponential(x, w, clip, figure_1.TARGET)
        for row in found.values():
            row["one_way"] = in_over_out(distances(x, w), row["label_2C"] * n / (4.0 * clip))
        trials.append(found)
    rows = {}
    for how, name in (("definition", "ε(X) by the definition"), ("sensitivity", "ε(X) = 2λΔ(X)")):
        for way, words in (("pmp", "both directions"), ("one_way", "in/out alone")):
            pmp = np.array([trial[how][way] for trial in trials])
            for key, share, delta in (("label", 1.0, "(C+1)/n"), ("label_2C", 1.0, "2C/n"), ("label_2C", 0.5, "C/n")):
                label = share * np.array([trial[how][key] for trial in trials])
                for ratio, kind in (
                    (np.mean(pmp / label), "mean ratio"),
                    (pmp.mean() / label.mean(), "ratio of means"),
                ):
                    rows[f"{name}; Δ = {delta}; {words}; {kind}"] = {
                        "pmp": float(pmp.mean()),
                        "label": float(label.mean()),
                        "ratio": float(ratio),
                    }
    return rows


# --- figures 4 and 5 --------------------------------------------------------------------------------------------------


def proposition_12(apart: Array, delta: float) -> dict[str, float]:
    """Return the ε̃ at which δ is kept for every record, and on average over records; pairs ``apart`` deviations."""
    others = len(squareform(apart)) - 1

    def kept(epsilon: float) -> Array:
        return np.asarray(squareform(shift_divergence(apart, epsilon)).sum(axis=1) / others)

    def smallest(miss: Any) -> float:
        return 0.0 if miss(0.0) <= 0.0 else float(brentq(miss, 0.0, 200.0, xtol=1e-10))

    return {
        "for every record": smallest(lambda epsilon: float(kept(epsilon).max()) - delta),
        "on average": smallest(lambda epsilon: float(kept(epsilon).mean()) - delta),
    }


def gaussian_readings(x: Array, clip: float, target: float, delta: float) -> dict[str, float]:
    """Return ε̃ of the mean with Gaussian noise for each way to set the noise and to keep δ."""
    n = len(x) // 2
    apart = pdist(x) / n
    sensitivities = {"ε(X)": float(apart.max()), "ε, Δ = 2C/n": 2.0 * clip / n, "ε, Δ = C/n": clip / n}
    return {
        f"noise by {name}; δ kept {who}": found
        for name, sensitivity in sensitivities.items()
        for who, found in proposition_12(apart / noise_for(target, delta, sensitivity), delta).items()
    }


def averaged(trials: list[dict[str, float]]) -> dict[str, dict[str, float]]:
    """Return the mean over trials of every reading."""
    return {name: {"pmp": float(np.mean([trial[name] for trial in trials]))} for name in trials[0]}


def figure_4_readings() -> dict[str, dict[str, float]]:
    """Return ε̃ at ε(X) = 10, or at ε = 10."""
    trials = []
    for number in range(TRIALS["4"]):
        rng = np.random.default_rng([4, number])
        x = clip_rows(figure_4.SIGMA * rng.standard_normal((2 * figure_4.N, figure_4.D)), figure_4.CLIP)
        trials.append(gaussian_readings(x, figure_4.CLIP, 10.0, figure_4.DELTA))
    return averaged(trials)


def figure_5_readings() -> dict[str, dict[str, float]]:
    """Return ε̃ at C = 100 and ε, or ε(X), = 5, with outliers made before or after clipping."""
    clip, trials = 100.0, []
    for number in range(TRIALS["5"]):
        found: dict[str, float] = {}
        for when in ("before", "after"):
            rng = np.random.default_rng([5, number])
            x = figure_5.SIGMA * rng.standard_normal((2 * figure_5.N, figure_5.D))
            x = clip_rows(x, clip) if when == "after" else x
            x = outliers(rng, x, figure_5.FACTOR)
            x = clip_rows(x, clip) if when == "before" else x
            one = gaussian_readings(x, clip, figure_5.TARGET, figure_5.DELTA)
            found |= {f"outliers {when} clipping; {name}": value for name, value in one.items()}
        trials.append(found)
    return averaged(trials)


# --- how far ----------------------------------------------------------------------------------------------------------


def distance(found: dict[str, float], printed: dict[str, float]) -> float:
    """Return the largest factor between a number found and the printed one, less 1; 0 where a printed limit holds."""
    if "pmp_below" in printed:
        return max(0.0, found["pmp"] / printed["pmp_below"] - 1.0)
    return max(math.exp(abs(math.log(found[key] / value))) for key, value in printed.items()) - 1.0


def compute() -> dict[str, Any]:
    """Return every reading with its distance, the closest first."""
    figures = {"1": figure_1_readings(), "4": figure_4_readings(), "5": figure_5_readings()}
    data: dict[str, Any] = {"figure": "readings", "printed": PRINTED, "trials": TRIALS}
    for figure, rows in figures.items():
        far = {name: distance(found, PRINTED[figure]) for name, found in rows.items()}
        data[figure] = {name: {**rows[name], "distance": far[name]} for name in sorted(rows, key=lambda n: far[n])}
    return data


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw the distances of the readings of the three figures, the closest at the top."""
    figure, axes = new_figure(3)
    figure.set_size_inches(12.0, 3.6)
    for ax, name in zip(axes, ("1", "4", "5"), strict=True):
        far = [row["distance"] for row in data[name].values()]
        places = range(len(far))
        ax.barh(places, far, color=BLUE, height=0.7)
        ax.barh([0], far[:1], color=ORANGE, height=0.7)
        ax.invert_yaxis()
        ax.set(
            title=f"Figure {name}: {len(far)} readings",
            xlabel="how far from the text (factor less 1)",
            ylabel="reading",
        )
        ax.set(yticks=[], xlim=(0, None))
    return figure

"""What these experiments share: the two mechanisms on a pool under both readings of ε(X), and the pictures of ratios.

The pool X has 2n records and the training set is a uniform half. λ of the exponential mechanism, or the noise of the
Gaussian one, is chosen so that the DP parameter in question hits the target of the figure.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.spatial.distance import pdist, squareform

import whosin as wi
from experiments._shared import BLUE, GREEN, ORANGE, Results, new_figure
from whosin.numerics.gaussian_noise import epsilon_for, noise_for, shift_divergence

Array = NDArray[np.float64]
RESULTS = Path(__file__).parent / "results"
CURVES = (
    ("ratio_tight", "ε̃ / worst case by the range (ours)", GREEN, "-."),
    ("ratio_on_records", "ε̃ / ε(X)", ORANGE, "--"),
    ("ratio", "ε̃ / ε, ε = 2λΔ", BLUE, "-"),
)
"""The ratios of the exponential mechanism: key, label, colour and line."""
NOISY_CURVES = (
    ("ratio_on_records", "ε̃ / ε(X)", ORANGE, "--"),
    ("ratio_average_on_records", "the same, δ kept on average over records only", ORANGE, ":"),
    ("ratio", "ε̃ / ε", BLUE, "-"),
    ("ratio_average", "the same, δ kept on average over records only", BLUE, ":"),
)
"""The ratios of the Gaussian mechanism."""

READINGS = {"definition": "ε(X) = {:g}, by the definition", "sensitivity": "ε(X) = 2λΔ(X) = {:g}"}
LABELS = {"pool": "noise set by ε(X)", "label": "noise set by the worst case ε"}


# --- pools ------------------------------------------------------------------------------------------------------------


def candidates(rng: np.random.Generator, m: int, d: int) -> Array:
    """Return m random unit vectors; drawn again if all are equal (1-d), for then nothing is released."""
    while True:
        w = rng.standard_normal((m, d))
        w /= np.linalg.norm(w, axis=1, keepdims=True)
        if not np.all(w == w[0]):
            return w


def outliers(rng: np.random.Generator, x: Array, factor: float) -> Array:
    """Return the pool with two random records multiplied."""
    x = x.copy()
    x[rng.choice(len(x), 2, replace=False)] *= factor
    return x


def clip_rows(x: Array, clip: float) -> Array:
    """Return the records scaled down to a norm of at most ``clip``."""
    return np.asarray(x * np.minimum(1.0, clip / np.linalg.norm(x, axis=1, keepdims=True)))


def distances(x: Array, w: Array) -> Array:
    """Return the loss ‖w - x‖ of every record and candidate."""
    return np.asarray(np.linalg.norm(x[:, None, :] - w[None, :, :], axis=2))


# --- mechanisms -------------------------------------------------------------------------------------------------------


def exponential(x: Array, w: Array, clip: float, target: float) -> dict[str, dict[str, float]]:
    """Return ε̃ and every DP parameter of the exponential mechanism on one pool, for both readings of ε(X) = target.

    "label" is 2λΔ with the exact Δ over all records that the clipping allows, "label_2C" takes Δ = 2C/n, "restricted"
    is 2λΔ(X), "adjacent" the largest log ratio over adjacent halves of the pool (the definition of ε(X)), and "tight"
    the range bound 2λ·diam(W)/n over all records. ε̃ takes the larger of both directions, in/out and out/in.
    """
    losses, n = distances(x, w), len(x) // 2
    restricted = float(np.ptp(losses, axis=0).max()) / n

    def play(label: float) -> wi.population.PopulationPrivacy:
        return wi.population.exponential(x, w, epsilon=label, clip=clip, method="exact")

    def at(label: float) -> dict[str, float]:
        found = play(label)
        return {
            "pmp": found.pmp.epsilon,
            "label": label,
            "label_2C": 4.0 * found.noise_scale * clip / n,
            "restricted": 2.0 * found.noise_scale * restricted,
            "adjacent": found.dp_on_records.epsilon,
            "tight": found.dp_at_most.epsilon,
        }

    def miss(label: float) -> float:
        return play(label).dp_on_records.epsilon - target

    high = target  # ε(X) is at most the label
    while miss(high) < 0.0:
        high *= 2.0
    by_definition = float(brentq(miss, 0.5 * high if high > target else 0.0, high, xtol=1e-300, rtol=1e-13))
    by_sensitivity = target * play(target).sensitivity / restricted
    found = {"definition": at(by_definition), "sensitivity": at(by_sensitivity)}
    for reading, on_records in (("definition", "adjacent"), ("sensitivity", "restricted")):
        row = found[reading]
        row["ratio"] = row["pmp"] / row["label"]
        row["ratio_2C"] = row["pmp"] / row["label_2C"]
        row["ratio_on_records"] = row["pmp"] / row[on_records]
        row["ratio_tight"] = row["pmp"] / row["tight"]
    return found


def gaussian(x: Array, clip: float, target: float, delta: float) -> dict[str, dict[str, float]]:
    """Return proposition 12's ε̃ for the Gaussian mechanism on the mean, noise set by ε(X) or by ε = target.

    Noise hides a distance, whatever the data sets, so the definition of ε(X) and the restricted sensitivity agree here.
    "pmp" is the smallest ε̃ that serves every record, "pmp_average" the one at which δ is kept on average over records.
    """
    n = len(x) // 2
    apart = pdist(clip_rows(x, clip)) / n
    widest, sensitivity = float(apart.max()), 2.0 * clip / n

    def at(label: float) -> dict[str, float]:
        found = wi.population.gaussian(x, epsilon=label, delta=delta, clip=clip, method="pairwise")
        pmp, on_records = found.pmp.epsilon, found.dp_on_records.epsilon
        average = _average_epsilon(apart / found.noise_scale, delta, on_records)
        return {
            "pmp": pmp,
            "pmp_average": average,
            "label": label,
            "on_records": on_records,
            "ratio": pmp / label,
            "ratio_on_records": pmp / on_records,
            "ratio_average": average / label,
            "ratio_average_on_records": average / on_records,
        }

    return {"pool": at(epsilon_for(noise_for(target, delta, widest), delta, sensitivity)), "label": at(target)}


def _average_epsilon(apart: Array, delta: float, most: float) -> float:
    """Return the ε̃ at which proposition 12's δ is kept on average over records, pairs ``apart`` standard deviations."""

    def miss(epsilon: float) -> float:
        return float(squareform(shift_divergence(apart, epsilon)).sum(axis=1).mean() / count) - delta

    count = len(squareform(apart)) - 1
    return 0.0 if miss(0.0) <= 0.0 else float(brentq(miss, 0.0, most + 1e-9, xtol=1e-12, rtol=1e-12))


def summary(points: Iterable[list[dict[str, dict[str, float]]]]) -> dict[str, Any]:
    """Return mean and standard deviation over trials: reading -> quantity -> {"mean": [...], "sd": [...]}."""
    table = list(points)
    return {
        reading: {
            key: {
                "mean": [float(np.mean([trial[reading][key] for trial in trials])) for trials in table],
                "sd": [float(np.std([trial[reading][key] for trial in trials])) for trials in table],
            }
            for key in table[0][0][reading]
        }
        for reading in table[0][0]
    }


# --- pictures and files -----------------------------------------------------------------------------------------------


def panel(ax: Axes, x: list[float], curve: dict[str, list[float]], **style: Any) -> None:
    """Draw a mean with its band of one standard deviation; a mean of 0 is left out."""
    mean, sd = np.array(curve["mean"]), np.array(curve["sd"])
    mean[mean == 0.0] = np.nan
    (line,) = ax.plot(x, mean, **style)
    ax.fill_between(x, np.maximum(mean - sd, 1e-4), mean + sd, color=line.get_color(), alpha=0.15, lw=0)


def plain_ticks(ax: Axes, ticks: Iterable[float]) -> None:
    """Label a logarithmic axis of abscissae with plain numbers."""
    ax.set_xscale("log")
    ax.set_xticks(list(ticks))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())


def ratio_panels(data: dict[str, Any], titles: dict[str, str], curves: Iterable[tuple[str, str, str, str]]) -> Figure:
    """Draw one panel for each reading; a curve is (quantity, label, colour, line style)."""
    figure, axes = new_figure(2)
    curves = list(curves)
    for ax, (reading, title) in zip(axes, titles.items(), strict=True):
        for key, label, colour, style in curves:
            panel(ax, data["x"], data[reading][key], label=label, color=colour, ls=style, marker="o", ms=3)
        ax.set(title=title, xlabel=data["x_label"], ylabel="ratio")
        ax.set(yscale=data["y_scale"], ylim=data["y_limits"])
        plain_ticks(ax, data["x"])
    return figure


_files = Results(RESULTS, (panel, plain_ticks, ratio_panels))
read, stamp, save = _files.read, _files.stamp, _files.save

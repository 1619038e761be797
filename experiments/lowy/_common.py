"""What these experiments share: the two mechanisms on a pool under both readings of ε(X), and the pictures of ratios.

The pool X has 2n records and the training set is a uniform half. λ of the exponential mechanism, or the noise of the
Gaussian one, is chosen so that the DP parameter in question hits the target of the figure.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.spatial.distance import pdist, squareform

from experiments.thudi._common import BLACK, BLUE, GREEN, ORANGE, PINK, new_figure, styled, to_text
from experiments.thudi._common import _save_png as save_png
from whosin.compute.gaussian_noise import epsilon_for, noise_for, shift_divergence
from whosin.compute.subset_softmax import adjacent_epsilon, range_bound, subset_laws

__all__ = [
    "BLACK",
    "BLUE",
    "GREEN",
    "ORANGE",
    "PINK",
    "candidates",
    "clip_rows",
    "distances",
    "exponential",
    "gaussian",
    "new_figure",
    "outliers",
    "panel",
    "ratio_panels",
    "read",
    "save",
    "stamp",
    "styled",
    "summary",
    "to_text",
]

Array = NDArray[np.float64]
RESULTS = Path(__file__).parent / "results"
READINGS = {"definition": "ε(X) by the definition", "sensitivity": "ε(X) = 2λΔ(X)"}
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
    sensitivity = clip + 1.0 - max(0.0, 1.0 - clip)  # times n, for candidates of norm 1
    restricted = float(np.ptp(losses, axis=0).max())
    diameter = float(pdist(w).max())

    def at(slope: float) -> dict[str, float]:  # slope = λ/n
        label = 2.0 * slope * sensitivity
        return {
            "pmp": float(np.abs(subset_laws(slope * losses, n).log_ratio).max()),
            "label": label,
            "label_2C": 4.0 * slope * clip,
            "restricted": 2.0 * slope * restricted,
            "adjacent": adjacent_epsilon(slope * losses, n)[1],
            "tight": min(label, 2.0 * slope * diameter),
        }

    def miss(slope: float) -> float:
        return adjacent_epsilon(slope * losses, n)[1] - target

    low = 0.999 * target / range_bound(losses)[0]  # ε(X) is at most the range
    high = 2.0 * low
    while miss(high) < 0.0:
        high *= 2.0
    by_definition = float(brentq(miss, low, high, xtol=1e-300, rtol=1e-13))
    found = {"definition": at(by_definition), "sensitivity": at(target / (2.0 * restricted))}
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

    def at(noise: float) -> dict[str, float]:
        label, on_records = (epsilon_for(noise, delta, distance) for distance in (sensitivity, widest))

        def bounds(epsilon: float) -> Array:
            return np.asarray(squareform(shift_divergence(apart / noise, epsilon)).sum(axis=1) / (2 * n - 1))

        def smallest(over_records: Callable[[Array], Any]) -> float:
            def miss(epsilon: float) -> float:
                return float(over_records(bounds(epsilon))) - delta

            return 0.0 if miss(0.0) <= 0.0 else float(brentq(miss, 0.0, on_records + 1e-9, xtol=1e-12, rtol=1e-12))

        pmp, average = smallest(np.max), smallest(np.mean)
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

    return {"pool": at(noise_for(target, delta, widest)), "label": at(noise_for(target, delta, sensitivity))}


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


def ratio_panels(data: dict[str, Any], titles: dict[str, str], curves: Iterable[tuple[str, str, str, str]]) -> Figure:
    """Draw one panel for each reading; a curve is (quantity, label, colour, line style)."""
    figure, axes = new_figure(2)
    curves = list(curves)
    for ax, (reading, title) in zip(axes, titles.items(), strict=True):
        for key, label, colour, style in curves:
            panel(ax, data["x"], data[reading][key], label=label, color=colour, ls=style, marker="o", ms=3)
        ax.set(title=title, xlabel=data["x_label"], ylabel="ratio")
        ax.set(xscale=data["x_scale"], yscale=data["y_scale"], ylim=data["y_limits"])
    return figure


def read(name: str) -> dict[str, Any]:
    """Return the numbers of ``results/<name>.json``."""
    data: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return data


def stamp(name: str, draw: Callable[..., Figure]) -> str:
    """Return a digest of the JSON file and of what draws it: a PNG carries the one that it was made from."""
    text = (RESULTS / f"{name}.json").read_text(encoding="utf-8")
    sources = (inspect.getsource(part) for part in (draw, panel, ratio_panels))
    return hashlib.sha256((text + "".join(sources)).encode()).hexdigest()


def save(name: str, data: dict[str, Any], draw: Callable[[dict[str, Any]], Figure]) -> None:
    """Write ``results/<name>.json`` and, drawn from it, ``results/<name>.png``."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(to_text(data), encoding="utf-8")
    save_png(draw(read(name)), RESULTS / f"{name}.png", stamp(name, draw))
    print(f"experiments/lowy/results: {name}.json, {name}.png")

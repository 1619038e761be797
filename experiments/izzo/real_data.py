"""Noise by every route, and what it costs, for five estimates on real records.

Records are scikit-learn's own: breast cancer (ten measured means) and diabetes. A third is kept aside as test rows, the
rest is the pool, of which a random half is drawn. Columns are standardised by the pool. Sizes are root mean squares
over the numbers released, so that noises of different laws can be compared.

``WHOSIN_IZZO_DATA=file.csv python -m experiments.izzo real_data`` prints the same table for another file (no header,
numeric columns, a label with two values last; at most 6,000 random rows are taken), such as UCI's ``adult.data``.
Beyond a pool of 500 the average over neighbours is left out except for the mean.
"""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from experiments._shared import BLACK, BLUE, GREEN, GREY, ORANGE, PINK, SKY, new_figure, styled
from experiments.izzo._common import ETAS, RESULTS, dp_scale, save
from experiments.izzo.noise import izzo_noise
from whosin.protection import SumQuery, protect

Array = NDArray[np.float64]

SUBSETS, ROUNDS, HALVES, SPLITS = 256, 96, 50, 8
LARGEST, AFFORDABLE = 6000, 500
"""Rows taken from a file, and the largest pool on which every record is replaced again and again."""
ROUTES = {
    "paper_as_printed": "paper, as printed (no guarantee)",
    "paper": "paper, sampler and σ repaired",
    "restricted_dp": "DP on the pool's subsets",
    "worst_neighbour": "worst neighbour, Gaussian",
    "moment": "moment (95 % confidence)",
    "average": "average over neighbours",
}


# --- estimates --------------------------------------------------------------------------------------------------------


def means(x: Array, y: Array) -> Array:
    """Return the mean of every column."""
    return np.asarray(x.mean(axis=0))


def medians(x: Array, y: Array) -> Array:
    """Return the median of every column."""
    return np.asarray(np.median(x, axis=0))


def covariances(x: Array, y: Array) -> Array:
    """Return the covariances of the first five columns, each once."""
    matrix = np.atleast_2d(np.cov(x[:, :5], rowvar=False))
    return np.asarray(matrix[np.triu_indices(len(matrix))])


def ridge(x: Array, y: Array) -> Array:
    """Return intercept and coefficients of ridge regression with penalty 1 on the coefficients."""
    middle, level = x.mean(axis=0), y.mean()
    gram = (x - middle).T @ (x - middle) + np.eye(x.shape[1])
    coefficients = np.linalg.solve(gram, (x - middle).T @ (y - level))
    return np.concatenate([[level - middle @ coefficients], coefficients])


def logistic(x: Array, y: Array) -> Array:
    """Return intercept and coefficients of logistic regression with penalty ½‖w‖², by Newton's method."""
    rows = np.column_stack([np.ones(len(x)), x])
    penalty = np.diag([1e-6, *[1.0] * x.shape[1]])
    w = np.zeros(rows.shape[1])
    for _ in range(50):
        p = 1.0 / (1.0 + np.exp(-rows @ w))
        step = np.linalg.solve((rows * (p * (1 - p))[:, None]).T @ rows + penalty, rows.T @ (y - p) - penalty @ w)
        w += step
        if np.abs(step).max() < 1e-10:
            break
    return w


def explained(theta: Array, x: Array, y: Array) -> Array:
    """Return R² of ridge regression on test rows, for each row of parameters."""
    predicted = theta[:, :1] + theta[:, 1:] @ x.T
    return 1.0 - np.mean((predicted - y) ** 2, axis=1) / np.var(y)


def right(theta: Array, x: Array, y: Array) -> Array:
    """Return the share of test rows that logistic regression classifies rightly, for each row of parameters."""
    return np.mean((theta[:, :1] + theta[:, 1:] @ x.T > 0) == (y == 1.0), axis=1)


@dataclass(frozen=True)
class Task:
    """An estimate on a pool, and how good it is on test rows."""

    name: str
    function: Callable[[Array, Array], Array]
    pool: tuple[Array, Array]
    test: tuple[Array, Array]
    quality: Callable[[Array, Array, Array], Array] | None = None

    @property
    def half(self) -> int:
        """How many records are drawn."""
        return len(self.pool[0]) // 2


def split(x: Array, y: Array, classes: bool) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Return pool and test rows, standardised by the pool; the pool has 4m + 2 rows, so that its half is odd."""
    held = np.arange(len(x)) % 3 == 0
    pool, labels = x[~held], y[~held]
    rows = (len(pool) - 2) // 4 * 4 + 2
    pool, labels = pool[:rows], labels[:rows]
    middle, spread = pool.mean(axis=0), pool.std(axis=0)
    level, size = (0.0, 1.0) if classes else (labels.mean(), labels.std())
    return ((pool - middle) / spread, (labels - level) / size), ((x[held] - middle) / spread, (y[held] - level) / size)


def tasks() -> list[Task]:
    """Return the five estimates on scikit-learn's data."""
    from sklearn.datasets import load_breast_cancer, load_diabetes

    cancer, diabetes = load_breast_cancer(), load_diabetes()
    pool, test = split(cancer.data[:, :10], cancer.target.astype(float), classes=True)
    numbers, later = split(diabetes.data, diabetes.target.astype(float), classes=False)
    return [
        Task("mean", means, pool, test),
        Task("median", medians, pool, test),
        Task("covariance", covariances, pool, test),
        Task("ridge regression", ridge, numbers, later, explained),
        Task("logistic regression", logistic, pool, test, right),
    ]


def tasks_of_file(path: str) -> list[Task]:
    """Return the estimates, without ridge regression, on the numeric columns of a file."""
    with Path(path).open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.reader(file, skipinitialspace=True) if row]
    chosen = np.random.default_rng(0).permutation(len(rows))[:LARGEST]
    *columns, labels = np.array([rows[i] for i in chosen]).T
    label = (labels == labels[0]).astype(float)
    x = np.column_stack([numbers for numbers in map(_numbers, columns) if numbers is not None])
    pool, test = split(x, label, classes=True)
    return [
        Task("mean", means, pool, test),
        Task("median", medians, pool, test),
        Task("covariance", covariances, pool, test),
        Task("logistic regression", logistic, pool, test, right),
    ]


def _numbers(column: NDArray[np.str_]) -> Array | None:
    """Return a column as numbers, or None where it has words."""
    try:
        return column.astype(float)
    except ValueError:
        return None


# --- noise ------------------------------------------------------------------------------------------------------------


def sensitivity(task: Task, rng: np.random.Generator) -> tuple[float, str]:
    """Return the largest step between neighbours, Euclidean, and what is known about it.

    A mean: exact. A median of 2h + 1 of n sorted numbers: from x_(h+1) to x_(n-h) at most, attained in each column but
    perhaps not in all at once. Others: the largest of random replacements, so the truth is at least that.
    """
    x, k = task.pool[0], task.half
    if task.function is means:
        return max(float(np.linalg.norm(x - row, axis=1).max()) for row in x) / k, "exact"
    if task.function is medians:
        ordered, h = np.sort(x, axis=0), (k - 1) // 2
        return float(np.linalg.norm(ordered[len(x) - h - 1] - ordered[h])), "at most"
    steps = [step for _ in range(SPLITS) for step in neighbours(task, rng)]
    return float(max(steps)), "at least"


def neighbours(task: Task, rng: np.random.Generator) -> list[float]:
    """Return how far the estimate moves when a drawn record is replaced by another, for up to 200 of them."""
    x, y = task.pool
    order = rng.permutation(len(x))
    inside, outside = order[: task.half], order[task.half :]
    base = task.function(x[inside], y[inside])
    steps = []
    for place, other in enumerate(outside[:200]):
        changed = inside.copy()
        changed[place] = other
        steps.append(float(np.linalg.norm(task.function(x[changed], y[changed]) - base)))
    return steps


def scales(task: Task, eta: float, widest: float) -> dict[str, Any]:
    """Return the parameters of the noise by each route: standard deviations, or the law and its scales."""
    d = len(task.function(*task.pool))
    per_coordinate = izzo_noise(task.function, task.pool, eta=eta, subsets=SUBSETS, rng=1)  # c·√d·σ_i
    neighbour = protect(task.function, task.pool, eta=eta, adjacent_bound=widest)
    moment = protect(task.function, task.pool, eta=eta, subsets=SUBSETS, sensitivity="moment", split="total", rng=2)
    found = {
        "paper_as_printed": ("laplace radius", per_coordinate),
        "paper": ("norm exponential", per_coordinate),
        "restricted_dp": ("norm exponential", np.full(d, dp_scale(widest, eta))),
        "worst_neighbour": ("gaussian", np.full(d, neighbour.certificate.noise_scale)),
        "moment": ("gaussian", np.broadcast_to(moment.certificate.noise_scale, (d,))),
    }
    if task.function is means:
        average = protect(SumQuery(lambda x, y: x), task.pool, eta=eta, split="total")
    elif len(task.pool[0]) <= AFFORDABLE:
        average = protect(
            task.function, task.pool, eta=eta, subsets=ROUNDS, sensitivity="average", split="total", rng=3
        )
    else:
        return found
    return {**found, "average": ("gaussian", np.broadcast_to(average.certificate.noise_scale, (d,)))}


def deviations(law: str, scale: Array) -> Array:
    """Return the standard deviation of each coordinate of the noise.

    exp(-‖x/s‖₂): the radius is Gamma(d), so E r²/d = d + 1. With a Laplace radius E r²/d = 2/d.
    """
    d = len(scale)
    return scale * {"gaussian": 1.0, "norm exponential": math.sqrt(d + 1.0), "laplace radius": math.sqrt(2.0 / d)}[law]


def draw_noise(law: str, scale: Array, rows: int, rng: np.random.Generator) -> Array:
    """Return seeded noise, to measure what it costs; nothing is released here."""
    d = len(scale)
    z = rng.standard_normal((rows, d))
    if law == "gaussian":
        return z * scale
    r = rng.laplace(size=(rows, 1)) if law == "laplace radius" else rng.gamma(d, size=(rows, 1))
    return r * z / np.linalg.norm(z, axis=1, keepdims=True) * scale


# --- results ----------------------------------------------------------------------------------------------------------


def measure(task: Task, etas: tuple[float, ...] = ETAS) -> dict[str, Any]:
    """Return noise and quality for one estimate."""
    rng = np.random.default_rng(4)
    x, y = task.pool
    halves = [rng.permutation(len(x))[: task.half] for _ in range(HALVES)]
    values = np.array([task.function(x[half], y[half]) for half in halves])
    widest, known = sensitivity(task, rng)
    found: dict[str, Any] = {
        "estimate": task.name,
        "pool": len(x),
        "numbers_released": values.shape[1],
        "sampling_error": _root_mean_square(values.std(axis=0)),
        "sensitivity": widest,
        "sensitivity_is": known,
    }
    if task.quality is not None:
        found["quality"] = "R²" if task.quality is explained else "accuracy"
        found["quality_without_noise"] = float(task.quality(values, *task.test).mean())
    for eta in etas:
        row: dict[str, Any] = {}
        for route, (law, scale) in scales(task, eta, widest).items():
            row[route] = {"noise": _root_mean_square(deviations(law, scale))}
            if task.quality is not None:
                noisy = np.repeat(values, 20, axis=0)
                noisy = noisy + draw_noise(law, scale, len(noisy), rng)
                row[route]["quality"] = float(np.median(task.quality(noisy, *task.test)))
        found[f"{eta:g}"] = row
    return found


def _root_mean_square(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))


def compute() -> dict[str, Any]:
    """Return every estimate on scikit-learn's data."""
    return {"subsets": SUBSETS, "rounds": ROUNDS, "estimates": [measure(task) for task in tasks()]}


def markdown(data: dict[str, Any]) -> str:
    """Return the table: noise over the sampling error of the estimate, and quality where there is one."""
    lines = [["estimate", "η", *ROUTES.values()], ["---", "---:", *["---:"] * len(ROUTES)]]
    for found in data["estimates"]:
        for eta in (key for key in found if key[0] == "0"):
            cells = []
            for route in ROUTES:
                if route not in found[eta]:
                    cells.append("–")
                    continue
                one = found[eta][route]
                ratio = one["noise"] / found["sampling_error"]
                mark = (
                    "≥ "
                    if found["sensitivity_is"] == "at least" and route in ("restricted_dp", "worst_neighbour")
                    else ""
                )
                quality = f" ({one['quality']:.3g})" if "quality" in one else ""
                cells.append(f"{mark}{ratio:.3g}{quality}")
            lines.append([found["estimate"], eta, *cells])
    best = ", ".join(
        f"{found['estimate']} {found['quality']} {found['quality_without_noise']:.3g}"
        for found in data["estimates"]
        if "quality" in found
    )
    notes = (
        "Root mean square of the noise over the sampling error of the estimate on a random half of the pool. In "
        f"brackets the median quality on test rows; without noise: {best}. ≥: the sensitivity is only known from "
        "below, so the noise may not be enough."
    )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + f"\n\n{notes}\n"


@styled
def draw(data: dict[str, Any]) -> Figure:
    """Draw the noise at η = 0.1 on the left, accuracy of logistic regression over η on the right."""
    figure, (left, right_) = new_figure(2)
    looks = dict(
        zip(ROUTES, ((ORANGE, "v"), (PINK, "s"), (GREY, "D"), (SKY, "^"), (BLUE, "o"), (GREEN, "*")), strict=True)
    )
    names = [found["estimate"] for found in data["estimates"]]
    for route, label in ROUTES.items():
        colour, marker = looks[route]
        ratios = [found["0.1"][route]["noise"] / found["sampling_error"] for found in data["estimates"]]
        left.plot(ratios, range(len(names)), marker, color=colour, ms=6, label=label)
    left.axvline(1.0, color=BLACK, lw=0.6)
    left.set(title="η = 0.1", xlabel="noise over sampling error", ylabel="estimate", xscale="log", xlim=(0.3, 3e5))
    left.set(yticks=range(len(names)), yticklabels=[name.replace(" ", "\n") for name in names], ylim=(4.6, -0.6))

    found = data["estimates"][-1]
    etas = [key for key in found if key[0] == "0"]
    for route, label in ROUTES.items():
        colour, marker = looks[route]
        quality = [found[eta][route]["quality"] for eta in etas]
        right_.plot([float(eta) for eta in etas], quality, color=colour, marker=marker, ms=6, lw=1.2, label=label)
    right_.axhline(found["quality_without_noise"], color=BLACK, ls="--", lw=0.8, label="without noise")
    right_.set(title=f"{found['estimate']}, {found['pool']} records", xlabel="η, gain in accuracy over a coin")
    right_.set(ylabel="accuracy on test rows", ylim=(0.4, 1.42), yticks=[0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    right_.set(xticks=[float(eta) for eta in etas], xticklabels=etas)
    right_.legend(loc="upper left")
    return figure


def main() -> None:
    """Write results/real_data.json, .png and .md; or print the table for another file."""
    path = os.environ.get("WHOSIN_IZZO_DATA")
    if path:
        print(markdown({"estimates": [measure(task) for task in tasks_of_file(path)]}))
        return
    data = compute()
    save("real_data", data, draw)
    (RESULTS / "real_data.md").write_text(markdown(data), encoding="utf-8")

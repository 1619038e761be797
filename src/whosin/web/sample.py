"""Sample data to try the page with: real patients, and a release that repeats some of them with a little noise."""

from __future__ import annotations

import numpy as np

COLUMNS = ("mean radius", "mean texture", "mean smoothness", "mean symmetry")
ROWS = 200


def sample_tables() -> dict[str, str]:
    """Return the three tables of an audit as CSV: Wisconsin diagnostic breast cancer data of scikit-learn."""
    from sklearn.datasets import load_breast_cancer

    data, rng = load_breast_cancer(), np.random.default_rng(1)
    places = [list(data.feature_names).index(name) for name in COLUMNS]
    rows = rng.permutation(len(data.data))[: 2 * ROWS]
    values, labels = data.data[rows][:, places], data.target_names[data.target[rows]]
    copied = rng.integers(ROWS, size=ROWS)
    noise = 0.03 * values.std(axis=0) * rng.standard_normal((ROWS, len(places)))
    noise[: ROWS // 3] = 0.0
    return {
        "train": _csv(values[:ROWS], labels[:ROWS]),
        "holdout": _csv(values[ROWS:], labels[ROWS:]),
        "synthetic": _csv(values[copied] + noise, labels[copied]),
    }


def _csv(values: np.ndarray, labels: np.ndarray) -> str:
    lines = [",".join(("diagnosis", *COLUMNS))]
    lines += [",".join((label, *map(repr, row))) for label, row in zip(labels, values.tolist(), strict=True)]
    return "\n".join(lines) + "\n"

"""Was the holdout held out? Row numbers alone tell: equal numbers are equal rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

__all__ = ["holdout_problem"]

Indices = NDArray[np.int64]

LEVEL = 0.001
"""Chance of calling an honest holdout none."""
ADVICE = "Audit with rows that took no part in the training."


def holdout_problem(
    train: Indices,
    holdout: Indices,
    release: Indices | None = None,
    reference: Indices | None = None,
    *,
    rng: np.random.Generator,
    fingerprints: Mapping[str, str] | None = None,
) -> str | None:
    """Say why the held-out rows were not held out, and what to do; None if nothing speaks against them.

    Parameters
    ----------
    train, holdout, release, reference : arrays of int
        Numbers of the rows, equal where rows are equal in every cell. ``release`` is None where it is not in memory.
    rng : Generator
        Draws the part of a large release.
    fingerprints : mapping, optional
        Fingerprints of "train" and "holdout".

    Notes
    -----
    Rows of a table with few values repeat by chance, and then within a side as often as across. A release that is at
    best another sample of the population repeats held-out rows no more often than the training table does: of the
    held-out rows that are no training rows, the share that stands in a random part of the release of the size of the
    training table is held against the share of all held-out rows that stand in the training table, and against the
    share of the reference rows that stand in that part, by Fisher's exact test at 0.1 %. Assumes that an honest
    release is not more likely than the population to hit rows that are rare; copies of training rows do not count.
    O(N log N).
    """
    same = fingerprints is not None and fingerprints.get("train", "") == fingerprints.get("holdout", "-")
    if same or (len(train) == len(holdout) and np.array_equal(np.sort(train), np.sort(holdout))):
        return f"The training table and the held-out table are the same: nothing was held out. {ADVICE}"
    size = int(max(train.max(), holdout.max())) + 1
    inside, outside = (np.bincount(side, minlength=size) for side in (train, holdout))
    across, within = int(inside @ outside), int(inside @ (inside - 1) + outside @ (outside - 1)) // 2
    shared, rows, what = int(outside[inside > 0].sum()), len(holdout), "held-out rows are training rows"
    if len(train) < len(holdout):
        shared, rows, what = int(inside[outside > 0].sum()), len(train), "training rows stand in the holdout"
    if shared > rows / 2 and across > 2 * within + 10:
        return f"{shared} of {rows} {what} too: they were not held out. {ADVICE}"
    return None if release is None else _repeated(train, holdout, release, reference, rng)


def _repeated(
    train: Indices, holdout: Indices, release: Indices, reference: Indices | None, rng: np.random.Generator
) -> str | None:
    """Whether the release repeats held-out rows beyond chance."""
    part = rng.permutation(release)[: len(train)]
    others = holdout[~np.isin(holdout, train)]
    repeated = int(np.isin(others, part).sum())
    compared = [(len(holdout) - len(others), len(holdout))]
    if reference is not None and len(reference):
        honest = reference[~np.isin(reference, train)]
        compared.append((int(np.isin(honest, part).sum()), len(honest)))
    if any(_chance(repeated, len(others), *counts) > LEVEL for counts in compared):
        return None
    everywhere = int(np.isin(others, release).sum())
    return (
        f"The release repeats {everywhere} of {len(holdout)} held-out rows word for word, although none of them is a "
        f"training row: the holdout was not held out. {ADVICE}"
    )


def _chance(hits: int, rows: int, other_hits: int, other_rows: int) -> float:
    """One-sided p-value of Fisher's exact test."""
    from scipy.stats import fisher_exact

    if hits == 0 or other_rows == 0:
        return 1.0 if hits == 0 else 0.0
    table = np.array([[hits, rows - hits], [other_hits, other_rows - other_hits]])
    return float(fisher_exact(table, "greater").pvalue)

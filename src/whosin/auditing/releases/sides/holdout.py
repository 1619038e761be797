"""Was the holdout held out? Row numbers alone tell: equal numbers are equal rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from whosin.arrays import Indices
from whosin.auditing.releases.sides.labels import fisher

LEVEL = 0.001
"""Chance of calling an honest holdout none."""
OVERLAP = 0.05
"""Largest share of the smaller side that may stand on the other side as well."""
MANY = 20
"""Different rows from which two samples hardly ever have equal counts by chance."""
COPIED = 0.2
"""A release with no larger share of rows that are no training rows says nothing about its own spread."""
ADVICE = "Audit with rows that took no part in the training."
OTHERS = "Leave it out, or give rows that are in neither."


def holdout_problem(
    train: Indices,
    holdout: Indices,
    release: Indices | None = None,
    reference: Indices | None = None,
    *,
    rng: np.random.Generator,
    fingerprints: Mapping[str, str] | None = None,
) -> str | None:
    """Say why the held-out rows were not held out, or the reference is none; None if nothing speaks against them.

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
    Rows of a table with few values repeat by chance, and then within a side as often as across. A release that never
    saw the held-out rows repeats them, too, where values are few: about as often as the training table does if it is
    another sample of the population, and less often than it repeats *itself* if it is narrower. So, of the different
    held-out rows that are no training rows, the share that stands in a random part of the release (at most its half,
    and the size of the training table) must be above three others, each by Fisher's exact test at 0.1 %: the share of
    all held-out rows that stand in the training table; the share of the rest of the release, training rows left out,
    that stands in that part; and the share of the reference, training rows left out, that does. Copies of training rows
    do not count. The chance of a false alarm is measured (``tests/long``), not proved: Σ p f(q) + Σ q f(p) ≤ Σ p f(p) +
    Σ q f(q) for a population p, a release q and the chance f to stand in a sample, but the first term alone may be
    larger than either of the last two. O(N log N).
    """
    same = fingerprints is not None and fingerprints.get("train", "") == fingerprints.get("holdout", "-")
    if same or _same(train, holdout):
        return f"The training table and the held-out table are the same: nothing was held out. {ADVICE}"
    for name, side in (("training", train), ("held-out", holdout)):
        if reference is not None and _same(side, reference):
            return f"The reference is the {name} table: it must have rows of other people. {OTHERS}"
    size = int(max(train.max(), holdout.max())) + 1
    inside, outside = (np.bincount(side, minlength=size) for side in (train, holdout))
    across, within = int(inside @ outside), int(inside @ (inside - 1) + outside @ (outside - 1)) // 2
    shared, rows, what = int(outside[inside > 0].sum()), len(holdout), "held-out rows are training rows"
    if len(train) < len(holdout):
        shared, rows, what = int(inside[outside > 0].sum()), len(train), "training rows are held-out rows"
    if shared > OVERLAP * rows and across > 2 * within + 10:
        return f"{shared} of {rows} {what} too: they were not held out. {ADVICE}"
    return None if release is None else _repeated(train, holdout, release, reference, rng)


def _same(one: Indices, other: Indices) -> bool:
    """Whether two tables have the same rows, and so many different ones that it is no chance."""
    return len(one) == len(other) and np.array_equal(np.sort(one), np.sort(other)) and len(np.unique(one)) >= MANY


def _repeated(
    train: Indices, holdout: Indices, release: Indices, reference: Indices | None, rng: np.random.Generator
) -> str | None:
    """Whether the release repeats held-out rows beyond chance."""

    def new(rows: Indices) -> Indices:
        return np.setdiff1d(rows, train)

    cut = min(len(train), (len(release) + 1) // 2)
    part, rest = np.split(rng.permutation(release), [cut])
    compared = [(np.unique(holdout), train)]
    if len(new(rest)) > COPIED * len(np.unique(rest)):
        compared.append((new(rest), part))
    if reference is not None:
        compared.append((new(reference), part))
    hits, rows = int(np.isin(new(holdout), part).sum()), len(new(holdout))
    if any(fisher(hits, rows, int(np.isin(some, among).sum()), len(some)) > LEVEL for some, among in compared):
        return None
    repeated = int(np.isin(holdout, np.setdiff1d(release, train)).sum())
    return (
        f"The release repeats {repeated} of {len(holdout)} held-out rows word for word, although none of them is a "
        f"training row: the holdout was not held out. {ADVICE}"
    )

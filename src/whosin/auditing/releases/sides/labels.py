"""Exact tests of "the labels could have fallen otherwise": they hold if the labels are exchangeable, and only then."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from whosin.arrays import Array, Flags

DRAWS = 999
"""Random labellings: the smallest p-value is 0.001."""
ROUNDING = 1e-4
"""Relative error allowed to sums in single precision; ties count against a finding."""


@dataclass(frozen=True, eq=False)
class LargestGap:
    """The largest standardised gap of several scores between the sides, against random labellings."""

    p_value: float
    adjusted: Array
    """By score the chance that the *largest* of all gaps is as large as its own (Westfall and Young 1993)."""


def labellings(inside: Flags, rng: np.random.Generator) -> Flags:
    """Return random labellings, one per row, with as many records inside as ``inside`` has.

    Each record is first put inside by a coin of its own. Then random ones of the side that has too many change over:
    given their number, the records inside are a uniform draw before, and so they are afterwards.
    """
    wanted, size = int(inside.sum()), len(inside)
    coins = np.frombuffer(rng.bytes(DRAWS * size), dtype=np.uint8).reshape(DRAWS, size)
    drawn = coins < round(256 * wanted / size)
    for row, surplus in zip(drawn, drawn.sum(axis=1) - wanted, strict=True):
        crowded = np.flatnonzero(row == (surplus > 0))
        row[rng.choice(crowded, abs(surplus), replace=False, shuffle=False)] = surplus < 0
    return drawn


def largest_gap(scores: Array, inside: Flags, others: Flags, *, one_sided: bool = False) -> LargestGap:
    """Compare the mean scores of two sides with those of random labellings of the same records.

    Parameters
    ----------
    scores : matrix, one row per record
        They may depend on the records, never on their sides. A constant score says nothing and is left out.
    inside : array of bool
        The side of each record.
    others : matrix of bool, one labelling a row
        From :func:`labellings`.
    one_sided : bool
        Only larger scores inside count.

    Notes
    -----
    Each labelling keeps the sizes of both sides, so that the test is exact whenever the sides are exchangeable
    (Lehmann and Romano 2005, theorem 15.2.1), for any scores. Cost: labellings · records · scores in single precision.
    """
    centred = scores - scores.mean(axis=0)
    norms = np.sqrt(np.einsum("ij,ij->j", centred, centred))
    live = norms > 1e-9 * np.maximum(np.abs(scores).max(axis=0), 1e-300)
    adjusted = np.ones(scores.shape[1])
    if not live.any():
        return LargestGap(1.0, adjusted)
    scaled = (centred[:, live] / norms[live]).astype(np.float32)
    parts = [part.astype(np.float32) @ scaled for part in np.array_split(others, 20)]
    own, drawn = inside.astype(np.float32) @ scaled, np.concatenate(parts)
    own, largest = (own, drawn.max(axis=1)) if one_sided else (np.abs(own), np.abs(drawn).max(axis=1))
    reached = (largest[:, None] >= own - ROUNDING * np.abs(own)).sum(axis=0)
    adjusted[live] = (1 + reached) / (len(others) + 1)
    return LargestGap(float(adjusted.min()), adjusted)


def pairs_alike(same: int, pairs: int, inside: int) -> tuple[float, float]:
    """The chance of at least, and of at most, so many pairs on one side, if the sides were dealt at random.

    2·``pairs`` records stand in disjoint pairs, ``inside`` of them on the training side. Given that, the number x of
    pairs that straddle has the chance (pairs choose x) · 2ˣ · (pairs - x choose (inside - x)/2) / (2·pairs choose
    inside), whatever the records are. O(pairs).
    """
    x = np.arange(inside % 2, min(inside, 2 * pairs - inside) + 1.0, 2.0)
    ways = _log_choose(pairs, x) + x * np.log(2.0) + _log_choose(pairs - x, (inside - x) / 2.0)
    logs = ways - _log_choose(2 * pairs, inside)
    few, many = logs[x <= pairs - same], logs[x >= pairs - same]
    return min(1.0, float(np.exp(np.logaddexp.reduce(few)))), min(1.0, float(np.exp(np.logaddexp.reduce(many))))


def fisher(hits: int, rows: int, other_hits: int, other_rows: int) -> float:
    """The chance of at least so many hits among ``rows``, given how many there are in both: Fisher's exact test.

    1 without hits, and 0 where there is nothing to compare with. O(hits in both).
    """
    if hits == 0 or other_rows == 0:
        return 1.0 if hits == 0 else 0.0
    both = hits + other_hits
    k = np.arange(hits, min(both, rows) + 1.0)
    logs = _log_choose(rows, k) + _log_choose(other_rows, both - k) - _log_choose(rows + other_rows, both)
    return min(1.0, float(np.exp(np.logaddexp.reduce(logs))))


def _log_choose(n: Array | float, k: Array | float) -> Array:
    from scipy.special import gammaln

    return np.asarray(gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0))

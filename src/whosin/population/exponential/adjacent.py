"""ε(X), the worst case of the exponential mechanism over adjacent data sets of one pool, and the range bound on it.

The mechanism publishes candidate w with probability p_w(D) proportional to exp(-Σ_{i∈D} G[i, w]). Replacing x by y in D
multiplies the weights by e^{d_w}, d = G[x] - G[y], and the normaliser takes out what they have in common: the range
of d over the candidates is what counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from whosin.arrays import Array
from whosin.errors import check_whole
from whosin.numerics.subsets import members_by_rank
from whosin.population.exponential.logits import WIDEST, centre, check_logits, check_size, log_sum_exp, merge_columns


def range_bound(logits: ArrayLike) -> tuple[float, Array]:
    """Return max_x A_x and the A_x = max_y range_w(G[x, w] - G[y, w]) (N,), in O(N·m²).

    Claim: swapping x for any y of the pool moves every ln p_w(D) by at most A_x, for every D and k; the first value
    therefore bounds the pool's ε(X) from above, up to rounding in the last digit. Source: ln p_w(D) - ln p_w(D-x+y) =
    ln Σ_v p_v(D)·e^{d_v} - d_w with d = G[x] - G[y], and a mean of e^{d} lies between its extremes. The maximum over
    y is taken for each pair of candidates: A_x = max_{v,w} (G[x, v] - G[x, w]) - min_y (G[y, v] - G[y, w]).
    """
    distinct, _, _ = merge_columns(check_logits(logits, at_least=1))
    per_record = np.zeros(len(distinct))
    for column in distinct.T:
        differences = column[:, None] - distinct
        np.maximum(per_record, (differences - differences.min(axis=0)).max(axis=1), out=per_record)
    return float(per_record.max()), per_record


def adjacent_epsilon(logits: ArrayLike, k: int, *, limit: int = 2**22) -> tuple[float, float]:
    """Return a lower and an upper limit on the pool's ε(X), equal to each other where it was computed exactly.

    ε(X) is the largest |ln p_w(D)/p_w(D')| over the candidates w and the k-subsets D and D' = D - x + y of the pool:
    the parameter of differential privacy, adjacency by replacement, restricted to the records at hand.

    - One distinct candidate: 0. Two: exact for every N, in O(N log N). With s = Σ_{i∈D} (G[i, 0] - G[i, 1]) and
      candidates 0 and 1 occurring c₀ and c₁ times, -ln p₀ = ln(c₀ + c₁e^s) is increasing and convex in s, so the
      largest step ends in the k records with the largest differences and trades their largest for the smallest of all;
      for p₁ the same with the signs changed.
    - More: exact by enumeration where min(C(N, k-1), C(N, k+1)) ≤ ``limit`` (N = 24 at the default for k = N/2, some
      seconds). Sets that differ in one record share the k-1 records C of their intersection, and also the k+1 of their
      union; so the largest difference is the range over y ∉ C of ln p_w(C + y), maximised over C and w, or the same
      with the union. Cost: the number of sets C times N·m, with N logarithms and no other transcendental function.
    - Else an interval: above, the first value of :func:`range_bound`, which holds for every k; below, the best of a
      cheap search: sets C that make one candidate as likely as possible, and a few random ones (the same every time).
      The lower limit is attained by a pair of subsets of the pool; how far it lies below ε(X) is not known.

    Values are right to about 1e-14 times the largest sum of logits.
    """
    table = check_logits(logits)
    n_records = len(table)
    k = check_size(k, n_records)
    limit = check_whole("limit", limit, low=0)
    distinct, counts, _ = merge_columns(table)
    if len(counts) == 1:
        return 0.0, 0.0
    if len(counts) == 2:
        difference = distinct[:, 0] - distinct[:, 1]
        first = _two_candidate_step(difference, k, counts[0], counts[1])
        second = _two_candidate_step(-difference, k, counts[1], counts[0])
        return max(first, second), max(first, second)

    swaps = _Swaps(distinct, counts)
    if math.comb(n_records, k - 1) <= math.comb(n_records, k + 1):
        size, grow = k - 1, True
    else:
        size, grow = k + 1, False
    number = math.comb(n_records, size)
    if number <= limit:
        rows = swaps.block
        blocks = (
            members_by_rank(n_records, size, start, min(start + rows, number)) for start in range(0, number, rows)
        )
        exact = max(swaps.largest(members, grow) for members in blocks)
        return exact, exact

    searched = _likely_sets(distinct, k - 1)
    rows = swaps.block
    lower = max(swaps.largest(searched[start : start + rows], True) for start in range(0, len(searched), rows))
    return lower, max(lower, range_bound(distinct)[0])


def _two_candidate_step(difference: Array, k: int, count_own: float, count_other: float) -> float:
    """Largest |ln p(D)/p(D')| of the candidate with -ln p = ln(c + c'e^s), s the sum of the differences in D."""
    ordered = np.sort(difference)
    high = math.fsum(ordered[-k:]) + math.log(count_other) - math.log(count_own)
    step = float(ordered[-1]) - float(ordered[0])
    # ln (1 + e^high)/(1 + e^(high - step)) = -ln(1/(1 + e^high) + e^-step/(1 + e^-high))
    if step < 1.0:
        return -math.log1p(math.exp(-float(np.logaddexp(0.0, -high))) * math.expm1(-step))
    return -float(np.logaddexp(-np.logaddexp(0.0, high), -np.logaddexp(0.0, -high) - step))


class _Swaps:
    """Largest change of any ln p_w when one record is exchanged, for given sets that two adjacent subsets share."""

    def __init__(self, table: Array, counts: Array) -> None:
        self.centred, offsets = centre(table)
        self.offsets = offsets - offsets.min()
        self.log_counts = np.log(counts)
        self.block = max(2**15 // len(table), 1)

    def largest(self, members: Array, grow: bool) -> float:
        """Maximum over the rows: ``grow`` adds one of the records missing, else one of the members is taken out."""
        step = -self.centred if grow else self.centred
        size = int(members[0].sum()) + (1 if grow else -1)
        logs = -(members @ self.centred) - size * self.offsets + self.log_counts
        logs -= logs.max(axis=1, keepdims=True)
        # ln of the normaliser when this record is exchanged (records, rows)
        if np.ptp(step, axis=1).max() <= WIDEST:
            top = step.max(axis=1, keepdims=True)
            normalisers = np.log(np.exp(step - top) @ np.exp(logs).T) + top
        else:
            normalisers = np.stack([log_sum_exp(logs + row, axis=1) for row in step])
        barred = np.ascontiguousarray(members.T) == float(grow)
        for_largest = np.where(barred, np.inf, normalisers)
        for_smallest = np.where(barred, -np.inf, normalisers)
        changes = np.empty_like(normalisers)
        largest = 0.0
        for column in step.T[:, :, None]:
            high = np.subtract(column, for_largest, out=changes).max(axis=0)
            low = np.subtract(column, for_smallest, out=changes).min(axis=0)
            largest = max(largest, float((high - low).max()))
        return largest


def _likely_sets(table: Array, size: int) -> Array:
    """Sets of ``size`` records that favour one candidate over another, or over all, and a few random ones."""
    n_records, m = table.shape
    generator = np.random.default_rng(0)
    pairs = [(v, w) for v in range(m) for w in range(m) if v != w]
    if len(pairs) > 200:
        pairs = [pairs[index] for index in generator.choice(len(pairs), 200, replace=False)]
    scores: Iterable[Array] = [table[:, v] - table[:, w] for v, w in pairs]
    others = [table[:, v] - np.delete(table, v, axis=1).min(axis=1) for v in range(min(m, 100))]
    sets = []
    for score in [*scores, *others]:
        order = np.argsort(score, kind="stable")
        sets.append(order[1 : size + 1])  # the most favourable record is the one to be exchanged
    sets += [generator.choice(n_records, size, replace=False) for _ in range(64)]
    members = np.zeros((len(sets), n_records))
    for row, chosen in zip(members, sets, strict=True):
        row[chosen] = 1.0
    return members

"""Every edge that is called tight, by a linear programme over all mechanisms of a small universe.

A guarantee survives post-processing, so the best attack on the worst mechanism is the best event of a mechanism of two
outputs: one number a_D in [0, 1] for each data set D. The source's guarantee is a set of linear limits on these numbers
(for the event and for its complement), and what the target limits is linear too. The programme's optimum is the truth:
never above what the edge says, and equal to it where the edge is tight.
"""

import itertools
import math

import numpy as np
import pytest
from scipy.optimize import linprog

import whosin as wi
from whosin.guarantees.implications import EDGES

N, K = 4, 2
DELTAS = (0.1, 0.12)
EVERY = [frozenset(s) for size in range(N + 1) for s in itertools.combinations(range(N), size)]
AT = {s: i for i, s in enumerate(EVERY)}


def lines_of(source):
    """(slope, offset) of lines that enclose the curve of a guarantee: its own, its edges, or tangents."""
    if isinstance(source, wi.PureDP | wi.ApproxDP):
        return [(math.exp(source.epsilon), source.delta)]
    if isinstance(source, wi.PrivacyProfile):
        return list(zip(np.exp(source.epsilons).tolist(), source.deltas, strict=True))
    if isinstance(source, wi.TradeOff):
        corners = source.roc.vertices
        rise = np.diff(corners[:, 1]) / np.diff(corners[:, 0])
        return list(zip(rise.tolist(), (corners[:-1, 1] - rise * corners[:-1, 0]).tolist(), strict=True))
    slopes = [
        1 / 3,
        3.0,
        *np.exp([*np.linspace(-3.0, 3.0, 25), *(source.implies(wi.ApproxDP, delta=d).epsilon for d in DELTAS)]),
    ]
    return [(g, source.roc.divergence(g)) for g in slopes]


class Mechanisms:
    """All events of mechanisms that keep a guarantee: rows of limits·a ≤ rest."""

    def __init__(self):
        self.rows, self.rest = [], []

    def limit(self, terms, rest):
        """Σ weight·a_D ≤ rest for the event, and for its complement."""
        for sign, moved in ((1.0, rest), (-1.0, rest - sum(terms.values()))):
            row = np.zeros(len(EVERY))
            for s, weight in terms.items():
                row[AT[s]] += sign * weight
            self.rows.append(row)
            self.rest.append(moved)

    def close(self, one, two, lines):
        for slope, offset in lines:
            self.limit({one: 1.0, two: -slope}, offset)

    def largest(self, terms):
        """The largest Σ weight·a_D."""
        goal = np.zeros(len(EVERY))
        for s, weight in terms:
            goal[AT[s]] -= weight
        found = linprog(goal, np.array(self.rows), np.array(self.rest), bounds=(0.0, 1.0), method="highs")
        assert found.status == 0
        return -found.fun


def adjacent(adjacency):
    """All ordered adjacent pairs: (with the record, without it), or (with one, with another in its place)."""
    for s in EVERY:
        for x in s:
            if adjacency == "add_remove":
                yield s, s - {x}
            else:
                yield from ((s, s - {x} | {y}) for y in set(range(N)) - s)


def mechanisms(source):
    """Limits of a guarantee on the events of all data sets."""
    found = Mechanisms()
    if isinstance(source, wi.MembershipPrivacy) and source.family == "independent":
        for s, rest in adjacent("add_remove"):
            one, two = (rest, s) if source.negative else (s, rest)
            found.close(one, two, [(source.gamma, 0.0)])
    elif isinstance(source, wi.MembershipPrivacy):
        for s, other in adjacent("replace"):
            found.close(s, other, [(source.gamma, 0.0)])
    elif isinstance(source, wi.DifferentialIdentifiability):
        for known in itertools.chain.from_iterable(itertools.combinations(range(N), size) for size in range(N)):
            for people in itertools.combinations(sorted(set(range(N)) - set(known)), source.candidates):
                sets = [frozenset({*known, x}) for x in people]
                for s in sets:
                    found.limit({t: (t == s) - source.rho for t in sets}, 0.0)
    elif isinstance(source, wi.PMP | wi.MIP):
        for x in range(N):
            for terms in (in_against_out(x, 1.0), in_against_out(x, 1.0, swapped=True)):
                if isinstance(source, wi.MIP):
                    found.limit(dict(terms), 2.0 * source.eta)
            if isinstance(source, wi.PMP):
                for swapped in (False, True):
                    found.limit(dict(in_against_out(x, math.exp(source.epsilon), swapped)), source.delta)
    else:
        lines = lines_of(source)
        for s, other in adjacent(source.adjacency):
            found.close(s, other, lines)
            if not isinstance(source, wi.TradeOff):
                found.close(other, s, lines)
    return found


def in_against_out(x, gamma, swapped=False, size=K):
    """Weights of P(event | x in) - γ·P(event | x out) over uniform subsets."""
    inside = [s for s in EVERY if len(s) == size and x in s]
    outside = [s for s in EVERY if len(s) == size and x not in s]
    one, two = (outside, inside) if swapped else (inside, outside)
    return [*((s, 1.0 / len(one)) for s in one), *((s, -gamma / len(two)) for s in two)]


A, B = frozenset({0, 2}), frozenset({1, 2})
STEP = frozenset({0, 2}), frozenset({2})


def truth(source, to):
    """The largest value of what the target limits, over all mechanisms that keep the source, and that limit."""
    can = mechanisms(source)
    if isinstance(to, wi.MIP):
        size = round(to.train_fraction * N)
        rarer = min(to.train_fraction, 1 - to.train_fraction)
        terms = in_against_out(0, (1 - rarer) / rarer, to.train_fraction > 0.5, size)
        return rarer * can.largest(terms), to.eta
    if isinstance(to, wi.PMP):
        return max(can.largest(in_against_out(0, math.exp(to.epsilon), swapped)) for swapped in (False, True)), to.delta
    if isinstance(to, wi.MembershipPrivacy):
        pair = (A, B) if to.family == "bounded" else STEP
        return can.largest([(pair[0], 1.0), (pair[1], -to.gamma)]), 0.0
    if isinstance(to, wi.DifferentialIdentifiability):
        sets = [frozenset({2, x}) for x in (0, 1, 3)[: to.candidates]]
        return can.largest([(t, (t == sets[0]) - to.rho) for t in sets]), 0.0
    one, two = (A, B) if to.adjacency == "replace" else STEP
    if isinstance(to, wi.ApproxDP):
        return max(can.largest([(p, 1.0), (q, -math.exp(to.epsilon))]) for p, q in ((one, two), (two, one))), to.delta
    gamma = math.exp(to.epsilon) if isinstance(to, wi.PureDP) else 1.0
    return can.largest([(one, 1.0), (two, -gamma)]), (0.0 if isinstance(to, wi.PureDP) else to.advantage)


CURVE = wi.Roc([0.0, 0.05, 0.2, 0.6], [0.02, 0.3, 0.6, 0.95])
REPLACED = [
    wi.PureDP(0.7, "replace"),
    wi.ApproxDP(0.7, 0.05, "replace"),
    wi.GaussianDP(0.6, "replace"),
    wi.PrivacyProfile([0.2, 0.8], [0.1, 0.02], "replace"),
    wi.TradeOff(CURVE.symmetrised(), "replace"),
]
ADDED = [wi.PureDP(0.7), wi.ApproxDP(0.7, 0.05), wi.PrivacyProfile([0.2, 0.8], [0.1, 0.02]), wi.TradeOff(CURVE)]
OTHERS = [
    wi.MembershipPrivacy(1.6),
    wi.MembershipPrivacy(1.6, negative=True),
    wi.DifferentialIdentifiability(0.4, 3),
    wi.DifferentialIdentifiability(0.45, 3),
    wi.DifferentialIdentifiability(0.6, 3),
    wi.DifferentialIdentifiability(0.6, 2),
]
CASES = [
    *((s, wi.PMP, {"delta": DELTAS[0]}) for s in REPLACED),
    *((s, wi.PMP, {"delta": 0.3}) for s in ADDED),
    *((s, wi.MIP, {"train_fraction": q}) for s in (*REPLACED, *ADDED) for q in (0.5, 0.25, 0.75)),
    *((s, wi.ApproxDP, {"delta": DELTAS[1]}) for s in (*REPLACED, *ADDED)),
    *((s, wi.ApproxDP, {"delta": 0.3, "adjacency": "replace"}) for s in ADDED),
    *((s, t, {}) for s in OTHERS for t in (wi.PMP, wi.MIP)),
    *((s, wi.ApproxDP, {"adjacency": "replace"}) for s in OTHERS),
    *((s, wi.MIP, {"train_fraction": 0.25}) for s in OTHERS),
    (wi.DifferentialIdentifiability(0.4, 3), wi.PureDP, {}),
    (wi.DifferentialIdentifiability(0.4, 3), wi.PMP, {"delta": 0.1}),
    (wi.MembershipPrivacy(1.6, "bounded"), wi.PureDP, {}),
    (wi.PureDP(0.7, "replace"), wi.MembershipPrivacy, {}),
    (wi.PureDP(0.7), wi.MembershipPrivacy, {}),
    (wi.PureDP(0.7), wi.MembershipPrivacy, {"family": "bounded"}),
    (wi.PureDP(0.7, "replace"), wi.DifferentialIdentifiability, {"candidates": 3}),
    (wi.PureDP(0.7), wi.DifferentialIdentifiability, {"candidates": 3}),
    (wi.PureDP(0.7), wi.PureDP, {"adjacency": "replace"}),
    (wi.PMP(0.7, 0.05), wi.MIP, {}),
    (wi.PMP(0.7, 0.05), wi.PMP, {"delta": 0.2}),
    (wi.MIP(0.1), wi.PMP, {}),
]
TIGHT = {edge.name: edge.tight for edge in EDGES}


@pytest.mark.parametrize(
    ("source", "target", "params"),
    CASES,
    ids=lambda value: str(value) if not isinstance(value, type) else value.__name__,
)
def test_a_tight_edge_is_attained_by_some_mechanism_and_none_goes_beyond(source, target, params):
    to = source.implies(target, **params)
    found, limit = truth(source, to)
    assert found <= limit + 2e-7
    if TIGHT[f"{type(source).__name__} → {target.__name__}"]:
        assert found >= limit - 2e-6

"""Every edge that is called tight, by a linear programme over all mechanisms of a small universe.

A guarantee survives post-processing, so the best attack on the worst mechanism is the best event of a mechanism of two
outputs: one number a_D in [0, 1] for each data set D. The source's guarantee is a set of linear limits on these numbers
(for the event and for its complement), and what the target limits is linear too. The programme's optimum is the truth:
never above what the edge says, and equal to it where the edge is tight.
"""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import ndtr

import whosin as wi
from whosin.guarantees.implications import EDGES

N, K = 4, 2
DELTAS = (0.1, 0.12)
SLOPES = np.exp(np.linspace(0.0, 2.8, 140))
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
    special = [0.0, math.log(3.0), *(source.implies(wi.ApproxDP, delta=d).epsilon for d in DELTAS)]
    slopes = np.concatenate([SLOPES[:: 1 if isinstance(source, wi.GaussianDP) else 8], np.exp(special)])
    if isinstance(source, wi.GaussianDP):
        return list(zip(slopes.tolist(), normal_divergence(source.mu, slopes).tolist(), strict=True))
    return list(zip(slopes.tolist(), coin_divergence(source, slopes).tolist(), strict=True))


def normal_divergence(mu, slopes):
    """E_γ of N(μ, 1) against N(0, 1)."""
    return ndtr(mu / 2 - np.log(slopes) / mu) - slopes * ndtr(-mu / 2 - np.log(slopes) / mu)


def coin_divergence(source, slopes):
    """E_γ of the best test under Rényi limits: the largest TPR - γ·FPR of two coins."""
    p, q = best_coins(source, slopes)
    return p - slopes * q


def best_coins(source, slopes):
    """TPR and FPR of the best test under Rényi limits, by an own search.

    A test is two coins, D_α of coins is a limit on each pair of rates, and any pair of rates within all limits is a
    mechanism of two outputs. The largest TPR at each FPR by halving, the best FPR by golden section (it is concave).
    """
    if isinstance(source, wi.RenyiDP):
        orders, limits = np.array(source.orders), np.array(source.epsilons)
    else:
        orders = 1.0 + np.geomspace(1e-5, 60.0, 400) / math.sqrt(source.rho)
        limits = source.rho * orders
    orders, limits = orders[:, None], limits[:, None]

    def kept(p, q):
        yes, no = (np.log(p), np.log(q)), (np.log1p(-p), np.log1p(-q))
        both = [
            np.logaddexp(*(orders * side[i] + (1 - orders) * side[1 - i] for side in (yes, no))) / (orders - 1)
            for i in (0, 1)
        ]
        return (np.maximum(*both) <= limits).all(axis=0)

    def most(q):
        low, high = q.copy(), np.full_like(q, 1.0 - 1e-15)
        for _ in range(50):
            middle = (low + high) / 2
            fits = kept(middle, q)
            low, high = np.where(fits, middle, low), np.where(fits, high, middle)
        return low

    left, right = np.full_like(slopes, 1e-9), np.full_like(slopes, 1.0 - 1e-9)
    share = (math.sqrt(5) - 1) / 2
    for _ in range(45):
        one, two = right - share * (right - left), left + share * (right - left)
        better = most(one) - slopes * one > most(two) - slopes * two
        left, right = np.where(better, left, one), np.where(better, two, right)
    at = (left + right) / 2
    return most(at), at


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
        one, two = reversed(pair) if to.negative else pair
        return can.largest([(one, 1.0), (two, -to.gamma)]), 0.0
    if isinstance(to, wi.DifferentialIdentifiability):
        sets = [frozenset({2, x}) for x in (0, 1, 3)[: to.candidates]]
        return can.largest([(t, (t == sets[0]) - to.rho) for t in sets]), 0.0
    one, two = (A, B) if to.adjacency == "replace" else STEP
    if isinstance(to, wi.GaussianDP):
        asked = SLOPES[:: 4 if isinstance(source, wi.GaussianDP) else 1]
        over = [
            max(can.largest([(p, 1.0), (q, -gamma)]) for p, q in ((one, two), (two, one))) - limit
            for gamma, limit in zip(asked, normal_divergence(to.mu, asked), strict=True)
        ]
        return max(over), 0.0
    if isinstance(to, wi.ApproxDP):
        return max(can.largest([(p, 1.0), (q, -math.exp(to.epsilon))]) for p, q in ((one, two), (two, one))), to.delta
    gamma = math.exp(to.epsilon)
    return max(can.largest([(p, 1.0), (q, -gamma)]) for p, q in ((one, two), (two, one))), 0.0


CURVE = wi.Roc([0.0, 0.05, 0.2, 0.6], [0.02, 0.3, 0.6, 0.95])
STEEP = wi.Roc([0.5], [0.9])
"""Its ratios are 1.8 at most and 1/5 at least."""
RENYI = [
    wi.RenyiDP([2.0, 8.0], [0.1, 0.3], "replace"),
    wi.RenyiDP([1.5, 3.0, 20.0], [0.1, 0.25, 2.0], "replace"),
    wi.ZeroConcentratedDP(0.1, "replace"),
]
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
BOUNDED = [wi.ApproxDP(0.7, 0.0), wi.PrivacyProfile([0.2, 0.8], [0.1, 0.0]), wi.TradeOff(STEEP)]
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
    (wi.MIP(0.1), wi.MIP, {}),
    *((s, wi.ApproxDP, {"delta": d}) for s in RENYI for d in DELTAS),
    *((s, wi.PMP, {"delta": DELTAS[0]}) for s in RENYI),
    *((s, wi.MIP, {"train_fraction": q}) for s in RENYI for q in (0.5, 0.25, 0.75)),
    *((s, wi.GaussianDP, {}) for s in (wi.PureDP(0.7), wi.PureDP(0.7, "replace"), wi.GaussianDP(0.6, "replace"))),
    (wi.PureDP(0.7), wi.GaussianDP, {"adjacency": "replace"}),
    (wi.MembershipPrivacy(1.6, "bounded"), wi.GaussianDP, {}),
    (wi.DifferentialIdentifiability(0.4, 3), wi.GaussianDP, {}),
    *((s, wi.PureDP, {}) for s in BOUNDED),
    *((s, wi.MembershipPrivacy, {"negative": n}) for s in BOUNDED for n in (False, True)),
    *((s, wi.MembershipPrivacy, {"family": "bounded"}) for s in BOUNDED),
    *((s, wi.DifferentialIdentifiability, {"candidates": 2}) for s in BOUNDED),
    (wi.TradeOff(STEEP, "replace"), wi.DifferentialIdentifiability, {"candidates": 2}),
    (wi.MembershipPrivacy(1.6), wi.MembershipPrivacy, {}),
    (wi.MembershipPrivacy(1.6, "bounded"), wi.DifferentialIdentifiability, {"candidates": 3}),
    (wi.DifferentialIdentifiability(0.4, 3), wi.MembershipPrivacy, {}),
]
TIGHT = {edge.name: edge.tight for edge in EDGES}
ONE_MECHANISM = "names one mechanism, so there is nothing to maximise over"
DIVERGENCE = "is about D_α, which is not linear in the mechanism"
WITHOUT = {
    "DPSGD → GaussianDP": (ONE_MECHANISM, "test_implications.test_a_run_is_no_easier_to_attack_than_full_batches"),
    "DPSGD → ApproxDP": (ONE_MECHANISM, "test_sgd.test_a_few_steps_against_a_brute_force_composition"),
    "DPSGD → PMP": (ONE_MECHANISM, "test_extremes.test_runs_at_the_ends_of_their_parameters"),
    "DPSGD → MIP": (ONE_MECHANISM, "test_extremes.test_runs_at_the_ends_of_their_parameters"),
    "DPSGD → MembershipPrivacy": (
        ONE_MECHANISM,
        "test_sgd.test_negative_membership_privacy_follows_from_the_lower_end",
    ),
    "GaussianDP → ZeroConcentratedDP": (DIVERGENCE, "test_exact_edges.test_orders_of_normal_laws_and_of_two_coins"),
    "PureDP → ZeroConcentratedDP": (DIVERGENCE, "test_exact_edges.test_orders_of_normal_laws_and_of_two_coins"),
    "ZeroConcentratedDP → ZeroConcentratedDP": (
        DIVERGENCE,
        "test_exact_edges.test_orders_of_normal_laws_and_of_two_coins",
    ),
    "ZeroConcentratedDP → RenyiDP": (DIVERGENCE, "test_accountants.test_orders_between_the_listed_ones"),
    "RenyiDP → PureDP": ("the order infinity is the definition", "test_exact_edges.test_the_infinite_order_is_pure"),
    "RenyiDP → MembershipPrivacy": ("through pure DP", "test_exact_edges.test_the_infinite_order_is_pure"),
    "RenyiDP → DifferentialIdentifiability": ("through pure DP", "test_exact_edges.test_the_infinite_order_is_pure"),
    "ZeroConcentratedDP → PureDP": ("ρ = 0 only", "test_exact_edges.test_the_infinite_order_is_pure"),
    "ZeroConcentratedDP → MembershipPrivacy": ("ρ = 0 only", "test_exact_edges.test_the_infinite_order_is_pure"),
    "ZeroConcentratedDP → DifferentialIdentifiability": (
        "ρ = 0 only",
        "test_exact_edges.test_the_infinite_order_is_pure",
    ),
    "DifferentialIdentifiability → DifferentialIdentifiability": (
        "not called tight",
        "test_implications.test_identifiability_limits_beliefs_by_bayes",
    ),
}
"""Edges without a programme: why, and the best independent check."""


def test_every_edge_has_a_programme_or_a_reason():
    covered = {f"{type(source).__name__} → {target.__name__}" for source, target, _ in CASES}
    assert covered | WITHOUT.keys() == TIGHT.keys()
    assert not covered & WITHOUT.keys()
    here = Path(__file__).parent
    for _, test in WITHOUT.values():
        file, name = test.split(".")
        assert f"def {name}(" in (here / f"{file}.py").read_text(encoding="utf-8")


def over_at_any_order(rho, p, q):
    """An upper limit on (α-1)·(D_α(p‖q) - ρα) over all α > 1, both ways round, for two coins.

    (α-1)·D_α is convex in α, so between two orders it lies below its chord, and a chord lies above ρα(α-1) by no more
    than at its ends and ρ/4 of its length squared. Up to the first order D_α rises, and beyond the last one it is at
    most ln of the largest ratio.
    """
    most = max(abs(math.log(p / q)), abs(math.log((1 - p) / (1 - q))))
    orders = 1.0 + np.geomspace(1e-6, most / rho, 40_000)
    room = rho * np.diff(orders) ** 2 / 4
    worst = -math.inf
    for a, b in ((p, q), (q, p)):
        moments = np.log(a**orders * b ** (1 - orders) + (1 - a) ** orders * (1 - b) ** (1 - orders))
        over = moments - rho * orders * (orders - 1.0)
        start = moments[0] / (orders[0] - 1.0) - rho
        worst = max(worst, start, float(np.max(np.maximum(over[:-1], over[1:]) + room)))
    return worst


@pytest.mark.parametrize(
    ("rho", "delta"), [(0.02, 0.01), (0.02, 0.09), (0.1, 0.01), (0.1, 0.12), (0.7, 0.01), (0.7, 0.4)]
)
def test_two_coins_that_keep_every_order_attain_what_concentrated_privacy_is_said_to_allow(rho, delta):
    """The programme looks at 400 orders. These coins keep them all, so they are a mechanism: hardly less is true."""
    promise = wi.ZeroConcentratedDP(rho, "replace")
    gamma = math.exp(promise.implies(wi.ApproxDP, delta=delta).epsilon)
    (near,), (q,) = best_coins(promise, np.array([gamma]))
    low, high = 0.99 * near, near + 1e-4
    assert over_at_any_order(rho, low, q) <= 0.0 < over_at_any_order(rho, high, q)
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if over_at_any_order(rho, middle, q) <= 0.0 else (low, middle)
    assert delta - 1e-4 <= low - gamma * q <= delta


@pytest.mark.parametrize("mu", [0.3, 1.7])
def test_orders_of_normal_laws_and_of_two_coins(mu):
    """D_α of two normal laws by sums over a line is μ²α/2; of the worst ε-close pair, two coins, at most ε²α/2."""
    x = np.linspace(-60.0, 60.0, 60_001)
    for order in (1.01, 2.0, 7.5):
        logs = -0.5 * (order * (x - mu) ** 2 + (1 - order) * x**2) - 0.5 * math.log(2 * math.pi)
        moment = logs.max() + math.log(np.exp(logs - logs.max()).sum() * (x[1] - x[0]))
        rho = wi.GaussianDP(mu).implies(wi.ZeroConcentratedDP).rho
        assert moment / (order - 1) == pytest.approx(rho * order, rel=1e-8)
        twice = wi.ZeroConcentratedDP(rho).implies(wi.ZeroConcentratedDP, adjacency="replace").rho
        assert twice == pytest.approx(wi.GaussianDP(2 * mu).implies(wi.ZeroConcentratedDP).rho, rel=1e-12)
        p = 1 / (1 + math.exp(-mu))
        coins = math.log(p**order * (1 - p) ** (1 - order) + (1 - p) ** order * p ** (1 - order)) / (order - 1)
        assert coins <= wi.PureDP(mu).implies(wi.ZeroConcentratedDP).rho * order


def test_the_infinite_order_is_pure():
    pure, renyi = wi.PureDP(0.7), wi.RenyiDP([2.0, math.inf], [0.6, 0.7])
    assert renyi.implies(wi.PureDP) == pure
    assert renyi.implies(wi.MembershipPrivacy) == pure.implies(wi.MembershipPrivacy)
    for source, like in ((renyi, pure), (wi.ZeroConcentratedDP(0.0), wi.PureDP(0.0))):
        assert source.implies(wi.PureDP) == like
        assert source.implies(wi.MembershipPrivacy) == like.implies(wi.MembershipPrivacy)
        ask = {"candidates": 3}
        assert source.implies(wi.DifferentialIdentifiability, **ask) == like.implies(
            wi.DifferentialIdentifiability, **ask
        )


@pytest.mark.parametrize(
    ("source", "target", "params"),
    CASES,
    ids=lambda value: str(value) if not isinstance(value, type) else value.__name__,
)
def test_a_tight_edge_is_attained_by_some_mechanism_and_none_goes_beyond(source, target, params):
    to = source.implies(target, **params)
    found, limit = truth(source, to)
    # Of all orders both sides look at some: the programme at 400, the library at 120; the test above looks at all.
    many = isinstance(source, wi.ZeroConcentratedDP)
    assert found <= limit + (2e-6 if many else 2e-7)
    if TIGHT[f"{type(source).__name__} → {target.__name__}"]:
        assert found >= limit - (5e-5 if many else 2e-5 if isinstance(source, wi.RenyiDP) else 2e-6)

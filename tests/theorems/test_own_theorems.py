"""Theorems of the library itself: the equivalences, sharpened constants and passages that no paper states this way.

Each is proved in a few lines where it is used in the package; here it is checked by enumeration, attained where it is
called tight, and shown to fail where one of its conditions is dropped. The last parts check the whole graph of
implications against played worlds, and worlds with continuous outputs against integration.
"""

import functools
import itertools
import json
import math
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import each
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import logsumexp, ndtr, ndtri
from scipy.stats import norm
from theorem_support import hockey_stick, random_mechanism

import whosin as wi
from whosin.errors import ImplicationError
from whosin.guarantees.implications import EDGES, NO_EDGES

DATA = Path(__file__).parents[1] / "data"
GOLDEN = json.loads((DATA / "golden.json").read_text())
FIXTURES = json.loads((DATA / "fixtures.json").read_text())

FIXED_SIZE = [(2, 1), (3, 1), (3, 2), (4, 1), (4, 2), (4, 3)]


def subsets(n, sizes=None):
    sizes = range(n + 1) if sizes is None else sizes
    return [s for k in sizes for s in itertools.combinations(range(n), k)]


def vector(law, records, outputs=4):
    answer = law(records)
    return np.array([answer.get(o, 0.0) for o in (range(outputs) if isinstance(outputs, int) else outputs)])


def adjacent_laws(law, n, adjacency, sizes=None, outputs=4):
    """Yield the laws (with the record, without it or with another in its place) of all ordered adjacent pairs."""
    for s in subsets(n, sizes):
        for x in s:
            rest = tuple(y for y in s if y != x)
            if adjacency == "add_remove":
                if sizes is None or len(rest) in sizes:
                    yield vector(law, s, outputs), vector(law, rest, outputs)
            else:
                for other in set(range(n)) - set(s):
                    yield vector(law, s, outputs), vector(law, tuple(sorted((*rest, other))), outputs)


def smallest_epsilon(pairs, delta):
    """Smallest ε of (ε, δ)-closeness in both directions over pairs of laws, by bisection."""
    if delta == 0.0:
        return max(np.abs(np.log(p / q)).max() for p, q in pairs)
    worst = 0.0
    for p, q in pairs:
        for one, two in ((p, q), (q, p)):
            if hockey_stick(one, two, math.exp(worst)) > delta:
                high = math.log(np.max(one / two))
                worst = brentq(lambda t, one=one, two=two: hockey_stick(one, two, math.exp(t)) - delta, worst, high)
    return worst


def respond(record, epsilon, delta=0.0):
    """Reveal 1{record ∈ D} with probability δ, otherwise randomised response with odds e^ε to 1."""
    right, wrong = (1 - delta) / (1 + math.exp(-epsilon)), (1 - delta) / (1 + math.exp(epsilon))
    return lambda records: {
        ("surely", record in records): delta,
        record in records: right,
        record not in records: wrong,
    }


def same_curve(one, two, tolerance=1e-12):
    return one.dominates(two, tolerance=tolerance) and two.dominates(one, tolerance=tolerance)


# --- 0: games, accuracy and the adjacent coupling ----------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.0, 0.03, 0.2])
@each("seed", range(3))
def test_0_dp_of_a_game_is_that_of_its_worst_adjacent_pair(seed, delta):
    """game.dp(δ) is the smallest ε over all adjacent pairs: replace-one at fixed size, add/remove otherwise."""
    law = random_mechanism(np.random.default_rng(seed))
    for n, k in FIXED_SIZE:
        dp = wi.worlds.uniform_subsets(range(n), k).play(law).dp(delta)
        assert dp.epsilon == pytest.approx(smallest_epsilon(adjacent_laws(law, n, "replace", [k]), delta), abs=1e-11)
        assert dp.adjacency == "replace"
    for world in (wi.worlds.all_subsets(range(3)), wi.worlds.independent(range(3), [0.2, 0.5, 0.9])):
        dp = world.play(law).dp(delta)
        assert dp.epsilon == pytest.approx(smallest_epsilon(adjacent_laws(law, 3, "add_remove"), delta), abs=1e-11)
        assert dp.adjacency == "add_remove"


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 0.99))
def test_0_accuracy_at_any_prior_is_a_hockey_stick(seed, q):
    """acc = max(q, 1-q) + m·E_γ(rarer‖commoner), m = min(q, 1-q), γ = (1-m)/m."""
    inside, outside = np.random.default_rng(seed).dirichlet(np.ones(4), size=2)
    m = min(q, 1 - q)
    pair = (inside, outside) if q <= 0.5 else (outside, inside)
    formula = 1 - m + m * hockey_stick(*pair, (1 - m) / m)
    assert np.maximum(q * inside, (1 - q) * outside).sum() == pytest.approx(formula, abs=1e-13)
    assert wi.risks.accuracy(wi.Roc.from_likelihoods(inside, outside), q) == pytest.approx(formula, abs=1e-13)
    game = wi.worlds.uniform_subsets(["x", "y"], 1).play(
        lambda records: dict(enumerate((inside if "x" in records else outside).tolist()))
    )
    assert game.accuracy("x", prior=q) == pytest.approx(formula, abs=1e-13)


@pytest.mark.parametrize("n", [2, 4, 6])
@each("seed", range(5))
def test_0_mip_is_the_same_as_zero_pmp_at_one_half(n, seed):
    """k = n/2: η-MIP ⇔ (0, 2η)-PMP, for random mechanisms and both ways through the library."""
    game = wi.worlds.uniform_subsets(range(n), n // 2).play(random_mechanism(np.random.default_rng([seed, n])))
    eta = game.mip().eta
    assert game.pmp(min(1.0, 2 * eta * (1 + 1e-12))).epsilon <= 1e-11
    assert game.pmp(2 * eta * (1 - 1e-6)).epsilon > 0.0
    assert game.mip().implies(wi.PMP) == wi.PMP(0.0, 2 * eta)
    assert wi.PMP(0.0, 2 * eta).implies(wi.MIP).eta == pytest.approx(eta, abs=1e-15)
    assert same_curve(game.mip().roc, wi.PMP(0.0, 2 * eta).roc)


@pytest.mark.parametrize(("n", "k"), [(3, 2), (4, 3), (4, 1)])
def test_0_mip_is_not_zero_pmp_at_other_fractions(n, k):
    """k ≠ n/2: a 0-MIP mechanism can have TV far from 0, so no (0, 2η)-PMP; the library refuses."""
    q = k / n
    share = (2 * q - 1) / q if q > 0.5 else (1 - 2 * q) / (1 - q)

    def law(records):
        sure = (0 in records) == (q > 0.5)
        return {"sure": share, "?": 1 - share} if sure else {"?": 1.0}

    game = wi.worlds.uniform_subsets(range(n), k).play(law)
    assert game.mip().eta == pytest.approx(0.0, abs=1e-14)
    assert game.advantage(0) == pytest.approx(share, abs=1e-14)
    assert game.pmp(share / 2).epsilon == math.inf
    with pytest.raises(ImplicationError, match="train fraction 1/2"):
        game.mip().implies(wi.PMP)


@pytest.mark.parametrize(("n", "k"), [(2, 1), (4, 1), (4, 3), (5, 2), (6, 3), (6, 4)])
def test_0_adjacent_coupling_is_uniform_on_both_sides(n, k):
    """D uniform with x, x' uniform outside D, D' = D-x+x': D' is uniform among the sets without x, for every k."""
    law = Counter()
    with_x = [s for s in itertools.combinations(range(n), k) if 0 in s]
    for s in with_x:
        for other in set(range(n)) - set(s):
            law[tuple(sorted((set(s) - {0}) | {other}))] += Fraction(1, len(with_x) * (n - k))
    without = [s for s in itertools.combinations(range(n), k) if 0 not in s]
    assert set(law) == set(without)
    assert set(law.values()) == {Fraction(1, len(without))}


@pytest.mark.parametrize(("n", "k"), [(4, 1), (4, 2), (5, 3)])
@each("seed", range(3))
def test_0_divergences_are_at_most_their_mean_over_the_coupling(n, k, seed):
    """E_γ(P_in‖P_out) ≤ mean of E_γ(P_D‖P_D') over the coupling, for every γ and in both directions."""
    law = random_mechanism(np.random.default_rng([seed, n, k]))
    game = wi.worlds.uniform_subsets(range(n), k).play(law)
    pairs = [
        (vector(law, s), vector(law, tuple(sorted((set(s) - {0}) | {other}))))
        for s in itertools.combinations(range(n), k)
        if 0 in s
        for other in set(range(n)) - set(s)
    ]
    for gamma in (0.25, 0.8, 1.0, 1.5, 4.0):
        there, back = (
            hockey_stick(game.inside[0], game.outside[0], gamma),
            hockey_stick(game.outside[0], game.inside[0], gamma),
        )
        assert there <= np.mean([hockey_stick(p, q, gamma) for p, q in pairs]) + 1e-14
        assert back <= np.mean([hockey_stick(q, p, gamma) for p, q in pairs]) + 1e-14


def test_0_replace_one_says_nothing_about_independent_inclusion():
    """A(D) = |D| is 0-DP under replace and reveals the one uncertain record of an independent world."""

    def size(records):
        return {len(records): 1.0}

    assert wi.worlds.uniform_subsets(range(4), 2).play(size).dp() == wi.PureDP(0.0, "replace")
    game = wi.worlds.independent(range(3), [1.0, 0.5, 0.0]).play(size)
    assert game.accuracy(1) == 1.0
    assert game.dp().epsilon == math.inf
    free = wi.PureDP(0.0, "replace")
    with pytest.raises(ImplicationError, match=r"\|D\|"):
        free.implies(wi.PureDP, adjacency="add_remove")
    with pytest.raises(ImplicationError, match=r"\|D\|"):
        free.posterior(0.5)
    with pytest.raises(ImplicationError, match=r"\|D\|"):
        free.implies(wi.MembershipPrivacy, family="independent")


# --- a: the curve of MIP for every train fraction ------------------------------------------------------------------


@given(st.floats(0.0, 1.0), st.floats(0.02, 0.98), st.floats(0.0, 1.0))
def test_a_curve_of_mip_is_the_line_of_its_accuracy(share, q, fpr):
    """q·TPR + (1-q)(1-FPR) = max(q, 1-q) + η along the curve until it reaches 1, and is never exceeded."""
    eta = share * min(q, 1 - q) * 0.999
    mip = wi.MIP(eta, q)
    tpr = mip.tpr_at(fpr)
    level = max(q, 1 - q) + eta
    assert q * tpr + (1 - q) * (1 - fpr) <= level + 1e-13
    if tpr < 1.0:
        assert q * tpr + (1 - q) * (1 - fpr) == pytest.approx(level, abs=1e-12)
    assert mip.accuracy(q) == pytest.approx(level, abs=1e-15)
    assert wi.risks.accuracy(mip.roc, q) == pytest.approx(level, abs=1e-12)


# --- h and q: PMP and DP to MIP, the curve attained ----------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 4, 6])
def test_h_pmp_to_mip_is_tight_at_every_n(n):
    """ε-PMP ⇒ η = tanh(ε/2)/2, attained by randomised response; e^ε = 3 has accuracy 3/4, not lemma 13's 5/6."""
    for key, eta in GOLDEN["lowy"]["lemma13_tight"].items():
        epsilon = float(key)
        game = wi.worlds.uniform_subsets(range(n), n // 2).play(respond(0, epsilon))
        assert game.pmp().epsilon == pytest.approx(epsilon, abs=1e-12)
        assert wi.PMP(epsilon).implies(wi.MIP).eta == pytest.approx(eta, abs=1e-15)
        assert game.mip().eta == pytest.approx(eta, abs=1e-14)
        assert math.tanh(epsilon / 2) / 2 == pytest.approx(eta, abs=1e-15)
    assert wi.PMP(math.log(3)).accuracy() == pytest.approx(0.75, abs=1e-15)


@each("seed", range(4))
@pytest.mark.parametrize("delta", [0.0, 0.05, 0.3])
def test_h_pmp_to_mip_holds_for_random_mechanisms(seed, delta):
    """(ε, δ)-PMP ⇒ η = δ + (1-δ)/(1+e^-ε) - 1/2 at k = n/2, and the general ceiling at other k."""
    for n, k in FIXED_SIZE:
        game = wi.worlds.uniform_subsets(range(n), k).play(random_mechanism(np.random.default_rng([seed, n, k])))
        pmp = game.pmp(delta)
        implied = pmp.implies(wi.MIP)
        assert game.mip().eta <= implied.eta + 1e-13
        if 2 * k == n:
            formula = delta + (1 - delta) / (1 + math.exp(-pmp.epsilon)) - 0.5
            assert implied.eta == pytest.approx(formula, abs=1e-14)


@pytest.mark.parametrize(("n", "k"), FIXED_SIZE)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.4, 0.0), (1.0, 0.1), (3.0, 0.02), (0.0, 0.3)])
def test_q_curve_of_dp_is_attained_whole(n, k, epsilon, delta):
    """ "Reveal w.p. δ, else respond" reaches the curve of (ε, δ)-DP at every FPR at once, for every n and k."""
    game = wi.worlds.uniform_subsets(range(n), k).play(respond(0, epsilon, delta))
    for promised in (wi.ApproxDP(epsilon, delta, "replace"), wi.PMP(epsilon, delta)):
        assert same_curve(game.roc(0), promised.roc)
        assert game.advantage(0) == pytest.approx(promised.advantage, abs=1e-14)


def test_q_thudi_bounds_the_posterior_and_not_the_accuracy():
    """p = .01, ε = 2: the posterior is at most .0694532, while the accuracy stays that of saying "out", .99."""
    dp = wi.PureDP(2.0)
    game = wi.worlds.independent(["x"], [0.01]).play(respond("x", 2.0))
    assert dp.posterior(0.01)[1] == pytest.approx(GOLDEN["thudi"]["pos_acc_eps2_p001"], abs=1e-15)
    assert game.posterior("x", True) == pytest.approx(GOLDEN["thudi"]["pos_acc_eps2_p001"], abs=1e-15)
    assert dp.accuracy(0.01) == pytest.approx(0.99, abs=1e-15)
    assert game.accuracy("x") == pytest.approx(0.99, abs=1e-15)


# --- v.1: from add/remove to replace -------------------------------------------------------------------------------


def three_laws(curve):
    """Return laws of D∪{x}, D and D∪{x'} with member curve ``curve`` each, as far apart as two steps can be.

    Outputs are ranked so that each cut of them has probability t given D, curve(t) given D∪{x} and 1 - curve(1-t)
    given D∪{x'}.
    """
    corners = curve.vertices[:, 0]
    t = np.unique(np.concatenate([[0.0, 1.0], corners, 1.0 - corners]))
    first = curve.tpr(0.0)
    one = np.concatenate([[first], np.diff(curve.tpr(t)), [0.0]])
    none = np.concatenate([[0.0], np.diff(t), [0.0]])
    other = np.concatenate([[0.0], np.diff(1.0 - curve.tpr(1.0 - t)), [first]])
    return one, none, other


def two_step_world(curve, size=1):
    """Return a mechanism: at ``size`` records the far laws, by whether record 0 is in; otherwise the middle law."""
    one, none, other = three_laws(curve)

    def law(records):
        chosen = none if len(records) != size else one if 0 in records else other
        return dict(enumerate(chosen.tolist()))

    return law


@each("seed", range(6))
@pytest.mark.parametrize("delta", [0.0, 0.01, 0.1])
def test_v1_add_remove_to_replace(seed, delta):
    """Add/remove (ε, δ) ⇒ replace (2ε, (1+e^ε)δ), and the smaller ε that the composed curve gives at any δ'."""
    law = random_mechanism(np.random.default_rng([seed, 1]), floor=0.3)
    free = wi.worlds.all_subsets(range(4)).play(law).dp(delta)
    steps = free.implies(wi.ApproxDP, adjacency="replace")
    assert steps.epsilon == pytest.approx(2 * free.epsilon, abs=1e-14)
    doubled = min(1.0, (1 + math.exp(free.epsilon)) * delta)
    exact = free.replace_roc().divergence(math.exp(steps.epsilon))
    assert steps.delta == pytest.approx(min(doubled, exact), abs=1e-13)
    if delta <= (1 - delta) / (1 + math.exp(free.epsilon)):
        assert exact == pytest.approx(doubled, abs=1e-13)
    finer = free.implies(wi.ApproxDP, delta=delta + 0.05, adjacency="replace")
    for k in (1, 2, 3):
        for p, q in adjacent_laws(law, 4, "replace", [k]):
            assert free.replace_roc().dominates(wi.Roc.from_likelihoods(p, q), tolerance=1e-12)
            for implied in (steps, finer):
                assert hockey_stick(p, q, math.exp(implied.epsilon)) <= implied.delta + 1e-13


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 0.0), (1.0, 0.0), (0.5, 0.05), (1.5, 0.1)])
@pytest.mark.parametrize(("n", "k"), [(2, 1), (4, 2), (4, 3)])
def test_v1_two_steps_are_attained_by_a_world(epsilon, delta, n, k):
    """A mechanism that is (ε, δ)-DP under add/remove whose replace curve is R∘R exactly, for every n and k."""
    free = wi.ApproxDP(epsilon, delta)
    law = two_step_world(free.roc, size=k)
    outputs = len(law(()))
    for p, q in adjacent_laws(law, n, "add_remove", outputs=outputs):
        for one, two in ((p, q), (q, p)):
            assert hockey_stick(one, two, math.exp(epsilon)) <= delta + 1e-14
    game = wi.worlds.uniform_subsets(range(n), k).play(law)
    assert same_curve(game.roc(0), free.replace_roc())
    q = k / n
    assert free.implies(wi.MIP, train_fraction=q).eta == pytest.approx(game.mip().eta, abs=1e-13)
    line = free.implies(wi.PMP)
    assert game.roc(0).divergence(math.exp(line.epsilon)) == pytest.approx(line.delta, abs=1e-13)
    assert game.roc(0).divergence(math.exp(line.epsilon - 1e-3)) > line.delta + 1e-7


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("n", [2, 4])
def test_v1_pure_add_remove_to_mip_is_sharper_than_two_steps_of_epsilon(epsilon, n):
    """Pure add/remove ε ⇒ η = (1-e^-ε)/2 at k = n/2: attained, and below tanh(ε)/2, what 2ε would give."""
    free = wi.PureDP(epsilon)
    law = two_step_world(free.roc, size=n // 2)
    assert wi.worlds.all_subsets(range(n)).play(law).dp().epsilon == pytest.approx(epsilon, abs=1e-12)
    eta = (1 - math.exp(-epsilon)) / 2
    game = wi.worlds.uniform_subsets(range(n), n // 2).play(law)
    assert free.implies(wi.MIP).eta == pytest.approx(eta, abs=1e-15)
    assert game.mip().eta == pytest.approx(eta, abs=1e-13)
    assert free.replace_roc().divergence(1.0) == pytest.approx(2 * eta, abs=1e-13)
    assert eta < math.tanh(epsilon) / 2
    assert free.implies(wi.PureDP, adjacency="replace").implies(wi.MIP).eta == pytest.approx(math.tanh(epsilon) / 2)


def test_v1_pure_add_remove_golden_values():
    """ε = 1: η = .3161 from add/remove, .3808 through 2ε, .2311 where ε was replace-one."""
    assert wi.PureDP(1.0).implies(wi.MIP).eta == pytest.approx(0.31606027941427883, abs=1e-15)
    assert wi.PureDP(2.0, "replace").implies(wi.MIP).eta == pytest.approx(0.3807970779778824, abs=1e-15)
    assert wi.PureDP(1.0, "replace").implies(wi.MIP).eta == pytest.approx(0.23105857863000487, abs=1e-15)


@given(st.floats(0.01, 4.0), st.floats(0.0, 1.0))
def test_v1_gaussian_add_remove_to_replace_doubles_mu(mu, fpr):
    """μ-GDP under add/remove ⇒ 2μ under replace: the normal curve after itself."""
    free = wi.GaussianDP(mu)
    assert free.implies(wi.GaussianDP, adjacency="replace") == wi.GaussianDP(2 * mu, "replace")
    assert free.replace_roc().tpr(fpr) == pytest.approx(free.tpr_at(free.tpr_at(fpr)), abs=1e-12)
    assert wi.GaussianDP(mu, "replace").replace_roc().tpr(fpr) == wi.GaussianDP(mu).tpr_at(fpr)


def test_v1_gaussian_doubling_is_attained():
    """A sum of +1 and -1 with unit noise: 1-GDP under add/remove, and replacing one by the other moves it by 2."""
    game = wi.worlds.one_of_two([1.0, -1.0], 1.0, -1.0).play(wi.mechanisms.Gaussian(sum, 1.0))
    assert game.advantage(1.0) == pytest.approx(wi.GaussianDP(1.0).replace_roc().divergence(1.0), abs=1e-14)
    pool = wi.worlds.uniform_subsets([1.0, -1.0], 1).play(wi.mechanisms.Gaussian(sum, 1.0))
    assert pool.mip().eta == pytest.approx(wi.GaussianDP(1.0).implies(wi.MIP).eta, abs=1e-14)
    assert pool.pmp(0.01).epsilon == pytest.approx(wi.GaussianDP(1.0).implies(wi.PMP, delta=0.01).epsilon, abs=1e-11)


@each("seed", range(8))
def test_v1_member_curves_compose_with_their_mirror_image(seed):
    """With an asymmetric member curve R two steps give R∘R^reversed, attained by two records; never more."""
    inside, outside = np.random.default_rng([seed, 2]).dirichlet(np.full(4, 2.0), size=2)
    curve = wi.Roc.from_likelihoods(inside, outside)
    one, none, other = three_laws(curve)
    for law in (one, none, other):
        assert law.sum() == pytest.approx(1.0, abs=1e-14)
        assert law.min() >= -1e-15
    one, none, other = (np.maximum(law, 0.0) for law in (one, none, other))
    assert same_curve(wi.Roc.from_likelihoods(one, none), curve)
    assert same_curve(wi.Roc.from_likelihoods(other, none), curve)
    composed = curve.compose(curve.reversed())
    assert same_curve(wi.Roc.from_likelihoods(one, other), composed)
    assert same_curve(composed, composed.reversed())  # replacing x by x' is as telling as the reverse


def asymmetric_pair():
    """(1-q)·B + q·A against B, two-point laws: a mixture, as one sampled step is."""
    outside, shifted = np.array([0.1, 0.9]), np.array([0.9, 0.1])
    return 0.8 * outside + 0.2 * shifted, outside


def test_v1_composing_an_asymmetric_curve_with_itself_would_be_wrong():
    """For the mixture pair a replace curve exceeds R∘R (by more than .09), while it never exceeds R∘R^reversed."""
    curve = wi.Roc.from_likelihoods(*asymmetric_pair())
    assert not same_curve(curve, curve.reversed(), tolerance=1e-3)
    one, none, other = three_laws(curve)
    world = wi.worlds.one_of_two(["x", "y"], "x", "y")
    laws = {("x",): one, ("y",): other, (): none}
    game = world.play(lambda records: dict(enumerate(laws[records].tolist())))
    for member in (one, other):  # both steps keep the promise R
        assert curve.dominates(wi.Roc.from_likelihoods(member, none), tolerance=1e-13)
    fpr = np.linspace(0.0, 1.0, 1001)
    wrong, right = curve.compose(curve), curve.compose(curve.reversed())
    assert np.max(game.roc("x").tpr(fpr) - wrong.tpr(fpr)) > 0.09
    assert right.dominates(game.roc("x"), tolerance=1e-13)


@pytest.mark.parametrize("share", [0.05, 0.3, 0.7])
def test_v1_dp_sgd_without_noise_composes_as_it_should(share):
    """Noise 0: a sampled record is seen for sure. Replace curve min(FPR + c, 1), attained; R∘R falls short of it."""
    run = wi.DPSGD(0.0, share, 1)
    fpr = np.linspace(0.0, 1.0, 201)
    assert run.tpr_at(fpr) == pytest.approx(share + (1 - share) * fpr, abs=1e-14)
    assert run.replace_roc().tpr(fpr) == pytest.approx(np.minimum(fpr + share, 1.0), abs=1e-13)
    seen = wi.mechanisms.Subsampled(lambda records: {records: 1.0}, share)
    game = wi.worlds.one_of_two(["x", "y"], "x", "y").play(seen)
    assert same_curve(game.roc("x"), run.replace_roc())
    assert not run.roc.compose(run.roc).dominates(game.roc("x"), tolerance=1e-3)
    assert wi.worlds.uniform_subsets(["x", "y"], 1).play(seen).mip().eta == pytest.approx(
        run.implies(wi.MIP).eta, abs=1e-14
    )


@pytest.mark.parametrize(("noise", "rate"), [(0.7, 0.1), (1.0, 0.4)])
def test_v1_one_step_of_dp_sgd_attains_its_replace_curve(noise, rate):
    """Gradients +1 and -1: cutting the noisy sum attains R∘R^reversed at every cut, and exceeds R∘R at some."""
    run = wi.DPSGD(noise, rate, 1)
    cuts = np.linspace(-4.0, 4.0, 161)

    def tail(gradient):
        return (1 - rate) * ndtr(-cuts / noise) + rate * ndtr((gradient - cuts) / noise)

    tpr, fpr = tail(1.0), tail(-1.0)
    limit = run.replace_roc().tpr(fpr)
    assert np.all(limit >= tpr - 1e-12)
    assert limit == pytest.approx(tpr, abs=2e-5)
    assert np.max(tpr - run.tpr_at(run.tpr_at(fpr))) > 0.01


# --- v.2: DP-SGD, which law is which -------------------------------------------------------------------------------


def test_v2_dp_sgd_direction():
    """FPR under "out", TPR under "in": 6.26e-5 at FPR 1e-5 (noise .8, rate .004, 2000 steps); swapped 3.63e-5."""
    run = wi.DPSGD(0.8, 0.004, 2000)
    assert run.tpr_at(1e-5) == pytest.approx(6.26e-5, rel=2e-3)
    assert run.roc.reversed().tpr(1e-5) == pytest.approx(3.63e-5, rel=5e-3)
    both = run.implies(wi.ApproxDP, delta=1e-5)
    assert both.roc.dominates(run.roc, tolerance=1e-12)
    assert both.roc.dominates(run.roc.reversed(), tolerance=1e-12)


@functools.cache
def sgd_laws(noise, rate, steps, bins, gradients):
    """Return the law of the binned outputs of every data set of a small DP-SGD run with one-number gradients."""
    edges = np.concatenate([[-np.inf], np.linspace(-2.0, 3.0, bins - 1), [np.inf]])
    laws = {}
    for records in subsets(len(gradients)):
        step = np.zeros(bins)
        for batch in itertools.product((0, 1), repeat=len(records)):
            weight = math.prod(rate if kept else 1 - rate for kept in batch)
            centre = sum(gradients[x] for x, kept in zip(records, batch, strict=True) if kept)
            if noise == 0.0:
                cells = np.zeros(bins)
                cells[np.searchsorted(edges, centre, side="right") - 1] = 1.0
            else:
                cells = np.diff(ndtr((edges - centre) / noise))
            step += weight * cells
        law = step
        for _ in range(steps - 1):
            law = np.multiply.outer(law, step).ravel()
        laws[records] = law / law.sum()
    return laws


def sgd_mechanism(noise, rate, steps, bins=9, gradients=(1.0, -1.0, 0.5)):
    laws = sgd_laws(noise, rate, steps, bins, gradients)
    return lambda records: dict(enumerate(laws[records].tolist()))


@pytest.mark.parametrize(("steps", "bins"), [(1, 2000), (2, 60)])
def test_v2_dp_sgd_curve_is_attained_by_a_run_in_the_stated_direction(steps, bins):
    """One record with gradient 1, outputs finely binned: the curve is reached from below, the swapped one exceeded."""
    run = wi.DPSGD(1.0, 0.3, steps)
    laws = sgd_laws(1.0, 0.3, steps, bins, (1.0,))
    measured = wi.Roc.from_likelihoods(laws[0,], laws[()])
    fpr = np.array([0.001, 0.01, 0.1, 0.3, 0.7])
    assert np.all(measured.tpr(fpr) <= run.tpr_at(fpr) + 1e-12)
    assert measured.tpr(fpr) == pytest.approx(run.tpr_at(fpr), abs=3e-3)
    assert np.max(measured.tpr(fpr) - run.roc.reversed().tpr(fpr)) > 0.01


# --- v.3: membership privacy ---------------------------------------------------------------------------------------


def smallest_gamma(inside, outside, p, negative=False):
    """Smallest γ with P(t|S) ≤ γ·P(t) and P(¬t|S) ≥ P(¬t)/γ for every output, from the definition."""
    if negative:
        inside, outside, p = outside, inside, 1 - p
    total = p * inside + (1 - p) * outside
    seen = total > 0
    after = p * inside[seen] / total[seen]
    with np.errstate(divide="ignore"):
        return max(np.max(after / p), np.max((1 - p) / (1 - after)))


@given(st.integers(0, 2**32 - 1), st.floats(0.01, 0.99))
def test_v3_gamma_at_a_prior(seed, p):
    """γ = max(pR + 1 - p, R/(pR + 1 - p)) with R the largest likelihood ratio; (R+1)/2 at p = 1/2; never above R."""
    inside, outside = np.random.default_rng(seed).dirichlet(np.ones(4), size=2)
    for negative in (False, True):
        ratio = np.max(outside / inside if negative else inside / outside)
        share = 1 - p if negative else p
        mixed = share * ratio + 1 - share
        gamma = smallest_gamma(inside, outside, p, negative)
        assert gamma == pytest.approx(max(mixed, ratio / mixed), rel=1e-9)
        assert gamma <= ratio * (1 + 1e-9)
        assert smallest_gamma(inside, outside, 0.5, negative) == pytest.approx((ratio + 1) / 2, rel=1e-9)


@pytest.mark.parametrize("negative", [False, True])
@each("seed", range(4))
def test_v3_gamma_of_a_world_is_that_of_the_definition(seed, negative):
    """Under D_N game.membership_privacy() is the γ of the definition, over all records and outputs."""
    law = random_mechanism(np.random.default_rng([seed, 3]))
    game = wi.worlds.all_subsets(range(3)).play(law)
    gamma = max(smallest_gamma(game.inside[i], game.outside[i], 0.5, negative) for i in range(3))
    assert game.membership_privacy(negative).gamma == pytest.approx(gamma, rel=1e-12)
    assert game.membership_privacy(negative).family == "uniform"


@pytest.mark.parametrize("negative", [False, True])
@each("seed", range(3))
def test_v3_gamma_over_a_family_covers_all_its_priors(seed, negative):
    """Over D_I and D_B γ = R between adjacent sets: no prior of the family needs more, and certain others need it."""
    rng = np.random.default_rng([seed, 4])
    law = random_mechanism(rng)
    independent = wi.worlds.independent(range(3), 0.5).play(law).membership_privacy(negative)
    bounded = wi.worlds.uniform_subsets(range(4), 2).play(law).membership_privacy(negative)
    assert (independent.family, bounded.family) == ("independent", "bounded")
    for _ in range(10):
        for family, world in (
            (independent, wi.worlds.independent(range(3), rng.random(3))),
            (bounded, wi.worlds.bounded_independent(range(4), rng.random(4), 2)),
        ):
            game = world.play(law)
            for i, p in enumerate(world.inclusion):
                assert smallest_gamma(game.inside[i], game.outside[i], p, negative) <= family.gamma * (1 + 1e-12)
    needed = 0.0
    for others in itertools.product((0.0, 1.0), repeat=2):
        for i in range(3):
            p = np.insert(np.array(others), i, 1e-6 if negative else 1 - 1e-6)
            game = wi.worlds.independent(range(3), p).play(law)
            needed = max(needed, smallest_gamma(game.inside[i], game.outside[i], p[i], negative))
    assert needed == pytest.approx(independent.gamma, rel=3e-6)


@pytest.mark.parametrize("family", ["independent", "uniform"])
@pytest.mark.parametrize("ratio", [1.0, 1.5, 4.0])
def test_v3_curves_are_attained(family, ratio):
    """Positive: TPR ≤ R·FPR; negative: TPR ≤ 1 - (1-FPR)/R. Both are reached by one-record worlds."""
    gamma = (ratio + 1) / 2 if family == "uniform" else ratio
    world = wi.worlds.all_subsets(["x"]) if family == "uniform" else wi.worlds.independent(["x"], [0.5])
    says_yes = world.play(lambda d: {"yes": 1.0} if d else {"yes": 1 / ratio, "no": 1 - 1 / ratio})
    says_no = world.play(lambda d: {"no": 1 / ratio, "yes": 1 - 1 / ratio} if d else {"no": 1.0})
    fpr = np.linspace(0.0, 1.0, 101)
    for negative, game, formula in (
        (False, says_yes, np.minimum(ratio * fpr, 1.0)),
        (True, says_no, 1 - (1 - fpr) / ratio),
    ):
        promised = wi.MembershipPrivacy(gamma, family, negative)
        assert game.membership_privacy(negative).gamma == pytest.approx(gamma, abs=1e-14)
        assert promised.tpr_at(fpr) == pytest.approx(formula, abs=1e-14)
        assert same_curve(game.roc("x"), promised.roc)


@pytest.mark.parametrize("k", [2, 3])
def test_v3_positive_alone_is_one_sided(k):
    """k-Max has γ = (2^k-1)/(2^k-2) under D_N, and an output that rules records out: no two-sided ε, no PMP."""
    values = range(1, 7)
    game = wi.worlds.all_subsets(values).play(wi.mechanisms.KMax(values, k))
    gamma = Fraction(2**k - 1, 2**k - 2)
    assert str(gamma) == GOLDEN["li"]["gamma"][str(k)]
    assert game.membership_privacy().gamma == pytest.approx(float(gamma), abs=1e-12)
    assert game.membership_privacy(negative=True).gamma == math.inf
    assert min(game.posterior(record, output) for record in values for output in game.outputs) == 0.0
    for target in (wi.PMP, wi.MIP, wi.PureDP):
        with pytest.raises(ImplicationError):
            game.membership_privacy().implies(target)


# --- v.4: identifiability and sampling -----------------------------------------------------------------------------


@pytest.mark.parametrize("m", [2, 3, 5])
@pytest.mark.parametrize("epsilon", [0.0, 0.3, 2.0])
def test_v4_dp_to_identifiability_is_attained(m, epsilon):
    """ε-DP (replace) ⇒ ρ = 1/(1+(m-1)e^-ε): m-ary randomised response makes one candidate exactly that likely."""
    total = math.exp(epsilon) + m - 1
    game = wi.worlds.uniform_subsets(range(m), 1).play(
        lambda d: {j: (math.exp(epsilon) if j in d else 1.0) / total for j in range(m)}
    )
    assert game.dp().epsilon == pytest.approx(epsilon, abs=1e-14)
    promised = game.dp().implies(wi.DifferentialIdentifiability, candidates=m)
    assert promised.rho == pytest.approx(1 / (1 + (m - 1) * math.exp(-epsilon)), abs=1e-14)
    assert game.posterior(0, 0) == pytest.approx(promised.rho, abs=1e-14)
    assert promised.posterior(1 / m)[1] == pytest.approx(promised.rho, abs=1e-13)


@pytest.mark.parametrize(("m", "rho"), [(2, 0.6), (2, 0.9), (3, 0.4), (3, 0.49), (5, 0.22)])
def test_v4_identifiability_to_dp_is_attained(m, rho):
    """ρ < 1/(m-1) ⇒ ε = ln(ρ/(1-(m-1)ρ)): outputs that make one candidate as unlikely as ρ allows have that ε."""
    least = 1 - (m - 1) * rho
    game = wi.worlds.uniform_subsets(range(m), 1).play(lambda d: {j: least if j in d else rho for j in range(m)})
    assert max(game.posterior(i, j) for i in range(m) for j in range(m)) == pytest.approx(rho, abs=1e-14)
    promised = wi.DifferentialIdentifiability(rho, m).implies(wi.PureDP)
    assert promised.epsilon == pytest.approx(math.log(rho / least), abs=1e-13)
    assert promised.adjacency == "replace"
    assert game.dp().epsilon == pytest.approx(promised.epsilon, abs=1e-13)
    assert wi.DifferentialIdentifiability(rho, m).roc.dominates(game.roc(0), tolerance=1e-13)


@pytest.mark.parametrize("m", [3, 4])
def test_v4_large_rho_limits_no_epsilon(m):
    """ρ ≥ 1/(m-1): an output that rules one candidate out has posterior 1/(m-1) for the others and ε = ∞."""
    game = wi.worlds.uniform_subsets(range(m), 1).play(lambda d: {j: 1 / (m - 1) for j in range(m) if j not in d})
    rho = max(game.posterior(i, j) for i in range(m) for j in range(m))
    assert rho == pytest.approx(1 / (m - 1), abs=1e-14)
    assert game.dp().epsilon == math.inf
    with pytest.raises(ImplicationError, match="candidates"):
        wi.DifferentialIdentifiability(1 / (m - 1), m).implies(wi.PureDP)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
@each("seed", range(3))
def test_v4_sampling_amplifies(rate, seed):
    """Keep each record with probability β, then (ε, δ)-DP (add/remove): ε' = ln(1+β(e^ε-1)), δ' = βδ."""
    law = random_mechanism(np.random.default_rng([seed, 5]))
    world = wi.worlds.all_subsets(range(3))
    sampled = world.play(wi.mechanisms.Subsampled(law, rate))
    pure = world.play(law).dp()
    promised = pure.implies(wi.PureDP, sample_rate=rate)
    assert promised.epsilon == pytest.approx(math.log(1 + rate * (math.exp(pure.epsilon) - 1)), abs=1e-13)
    assert sampled.dp().epsilon <= promised.epsilon + 1e-12
    for delta in (0.05, 0.2):
        before = world.play(law).dp(delta)
        after = before.implies(wi.ApproxDP, sample_rate=rate)
        assert after.delta == pytest.approx(rate * delta, abs=1e-15)
        assert sampled.dp(rate * delta).epsilon <= after.epsilon + 1e-12
        replaced = before.implies(wi.ApproxDP, sample_rate=rate, adjacency="replace")
        laws = {s: sampled.laws[row] for row, s in enumerate(_sets(sampled.world))}
        for p, q in adjacent_laws(lambda s: dict(enumerate(laws[s].tolist())), 3, "replace", [1]):  # noqa: B023
            assert hockey_stick(p, q, math.exp(replaced.epsilon)) <= replaced.delta + 1e-13


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (2.0, 0.1)])
def test_v4_sampling_is_attained_and_needs_add_remove(epsilon, delta):
    """ "Reveal w.p. δ, else respond" attains ln(1+β(e^ε-1)) from one side; from replace-one nothing follows."""
    rate = 0.3
    game = wi.worlds.all_subsets(["x"]).play(wi.mechanisms.Subsampled(_one_sided(epsilon, delta), rate))
    promised = wi.ApproxDP(epsilon, delta).implies(wi.ApproxDP, sample_rate=rate)
    assert game.roc("x").divergence(math.exp(promised.epsilon)) == pytest.approx(promised.delta, abs=1e-13)
    assert game.roc("x").divergence(math.exp(promised.epsilon - 1e-3)) > promised.delta + 1e-6
    with pytest.raises(ImplicationError, match=r"\|D\|"):
        wi.PureDP(epsilon, "replace").implies(wi.PureDP, sample_rate=rate)


def _one_sided(epsilon, delta):
    """A law that meets P_in ≤ e^ε P_out + δ with equality on one event."""
    low = 0.1 * (1 - delta) * math.exp(-epsilon)
    return lambda d: (
        {"sure": delta, "yes": low * math.exp(epsilon), "no": 1 - delta - low * math.exp(epsilon)}
        if d
        else {"yes": low, "no": 1 - low}
    )


def _sets(world):
    return [tuple(np.flatnonzero(row).tolist()) for row in world.membership]


# --- the contract: no world rises above a guarantee promised for it -----------------------------------------------


def assert_kept(guarantee, game, tolerance=1e-12):
    """No record's curve rises above the guarantee's, at any FPR; nor its accuracy at any prior."""
    checked = 0
    for i, record in enumerate(game.world.universe):
        if 0.0 < game.world.inclusion[i] < 1.0:
            assert guarantee.roc.dominates(game.roc(record), tolerance=tolerance)
            for prior in (0.1, 0.5, 0.7):
                assert game.accuracy(record, prior=prior) <= guarantee.accuracy(prior) + tolerance
            checked += 1
    assert checked


def candidates_game(law, n, m, known):
    """Play the world in which the records ``known`` are in, with one of m equally likely candidates."""
    universe = [*known, *[x for x in range(n) if x not in known][:m]]
    probabilities = [1.0 if x in known else 0.5 for x in universe]
    world = wi.worlds.bounded_independent(universe, probabilities, len(known) + 1)
    return world.play(lambda records: law(tuple(sorted(records))))


def replace_setting(seed, outputs=4, floor=0.2):
    law = random_mechanism(np.random.default_rng([seed, 6]), outputs, floor)
    return law, {k: wi.worlds.uniform_subsets(range(4), k).play(law) for k in (1, 2, 3)}


def free_setting(seed, floor=0.2):
    """A mechanism, its add/remove games, and its games on data sets of one size, all on the same four records."""
    law, fixed = replace_setting(seed, floor=floor)
    rng = np.random.default_rng([seed, 7])
    worlds = (wi.worlds.all_subsets(range(4)), wi.worlds.independent(range(4), rng.uniform(0.1, 0.9, 4)))
    return law, [world.play(law) for world in worlds], fixed


def check_pure_pure(seed):
    law, free, fixed = free_setting(seed)
    dp = free[0].dp()
    to = dp.implies(wi.PureDP, adjacency="replace")
    for k, game in fixed.items():
        assert smallest_epsilon(adjacent_laws(law, 4, "replace", [k]), 0.0) <= to.epsilon + 1e-12
        assert_kept(to, game)
    assert_kept(dp.implies(wi.PureDP), free[1])


def check_pure_approx(seed):
    law, free, fixed = free_setting(seed)
    for dp, adjacency, games in (
        (free[0].dp(), "add_remove", free),
        (free[0].dp(), "replace", [fixed[2]]),
        (fixed[2].dp(), "replace", [fixed[2]]),
    ):
        to = dp.implies(wi.ApproxDP, delta=0.07, adjacency=adjacency)
        assert to.epsilon < dp.epsilon * (1 + (adjacency != dp.adjacency))
        sizes = None if adjacency == "add_remove" else [2]
        for p, q in adjacent_laws(law, 4, adjacency, sizes):
            assert hockey_stick(p, q, math.exp(to.epsilon)) <= 0.07 + 1e-13
        for game in games:
            assert_kept(to, game)


def check_approx_pure(seed):
    _, free, fixed = free_setting(seed)
    for game in (free[1], fixed[3]):
        pure = game.dp()
        to = wi.ApproxDP(pure.epsilon, 0.0, pure.adjacency).implies(wi.PureDP)
        assert to == pure
        assert_kept(to, game)


def check_approx_approx(seed):
    law, free, fixed = free_setting(seed)
    dp = free[0].dp(0.05)
    for params in ({"adjacency": "replace"}, {"adjacency": "replace", "delta": 0.2}, {"delta": 0.2}):
        to = dp.implies(wi.ApproxDP, **params)
        sizes = [2] if to.adjacency == "replace" else None
        for p, q in adjacent_laws(law, 4, to.adjacency, sizes):
            assert hockey_stick(p, q, math.exp(to.epsilon)) <= to.delta + 1e-13
        assert_kept(to, fixed[2] if to.adjacency == "replace" else free[1])


def check_pure_gaussian(seed):
    law, free, fixed = free_setting(seed)
    dp = free[0].dp()
    for adjacency, game in (("add_remove", free[1]), ("replace", fixed[2])):
        to = dp.implies(wi.GaussianDP, adjacency=adjacency)
        one_step = 1 / (1 + math.exp(dp.epsilon))
        corner = one_step if adjacency == "add_remove" else one_step * math.exp(-dp.epsilon)
        limit = dp.roc if adjacency == "add_remove" else dp.replace_roc()
        assert to.tpr_at(corner) == pytest.approx(1 - one_step, abs=1e-12)  # they touch there
        assert to.roc.dominates(limit, tolerance=1e-12)
        for p, q in itertools.islice(adjacent_laws(law, 4, adjacency, None if adjacency == "add_remove" else [2]), 6):
            assert to.roc.dominates(wi.Roc.from_likelihoods(p, q), tolerance=1e-12)
        assert_kept(to, game)


def binned_sum(seed, bins=12):
    """A Gaussian sum of numbers in [-1, 1], binned: 1/σ-GDP under add/remove."""
    rng = np.random.default_rng([seed, 8])
    values, sigma = rng.uniform(-1, 1, 4), rng.uniform(0.8, 2.0)
    values[:2] = 1.0, -1.0
    edges = np.concatenate([[-np.inf], np.linspace(-4, 4, bins - 1), [np.inf]])

    def law(records):
        cells = np.diff(ndtr((edges - sum(values[list(records)])) / sigma))
        return dict(enumerate((cells / cells.sum()).tolist()))

    return law, wi.GaussianDP(1 / sigma)


def check_gaussian_gaussian(seed):
    law, dp = binned_sum(seed)
    to = dp.implies(wi.GaussianDP, adjacency="replace")
    for p, q in itertools.islice(adjacent_laws(law, 4, "replace", [2], 12), 8):
        assert to.roc.dominates(wi.Roc.from_likelihoods(p, q), tolerance=1e-12)
    assert_kept(to, wi.worlds.uniform_subsets(range(4), 2).play(law))
    assert_kept(dp.implies(wi.GaussianDP), wi.worlds.all_subsets(range(4)).play(law))


def check_gaussian_approx(seed):
    law, dp = binned_sum(seed)
    for adjacency, sizes in (("add_remove", None), ("replace", [2])):
        to = dp.implies(wi.ApproxDP, delta=0.01, adjacency=adjacency)
        for p, q in adjacent_laws(law, 4, adjacency, sizes, 12):
            assert hockey_stick(p, q, math.exp(to.epsilon)) <= 0.01 + 1e-13


SGD_RUNS = [(0.0, 0.3, 1), (0.9, 0.25, 1), (1.2, 0.4, 2)]


def sgd_setting(seed):
    run = SGD_RUNS[seed % len(SGD_RUNS)]
    return sgd_mechanism(*run), wi.DPSGD(*run), 9 ** run[2]


def check_sgd_approx(seed):
    law, dp, outputs = sgd_setting(seed)
    for adjacency, sizes in (("add_remove", None), ("replace", [1]), ("replace", [2])):
        to = dp.implies(wi.ApproxDP, delta=0.31 if dp.noise_multiplier == 0.0 else 0.01, adjacency=adjacency)
        assert to.epsilon < math.inf
        for p, q in adjacent_laws(law, 3, adjacency, sizes, outputs):
            for one, two in ((p, q), (q, p)):
                assert hockey_stick(one, two, math.exp(to.epsilon)) <= to.delta + 1e-12


def check_dp_pmp(source):
    def check(seed):
        dp, games = _dp_setting(source, seed)
        for k, game in games.items():
            q = k / len(game.world.universe)
            choices = [{"delta": 0.33}] if source in (wi.GaussianDP, wi.DPSGD) else [{}, {"delta": 0.25}]
            for params in choices:
                to = dp.implies(wi.PMP, train_fraction=q, **params)
                for i in range(len(game.world.universe)):
                    for one, two in ((game.inside, game.outside), (game.outside, game.inside)):
                        assert hockey_stick(one[i], two[i], math.exp(to.epsilon)) <= to.delta + 1e-12
                assert to.train_fraction == game.pmp(0.5).train_fraction
                assert_kept(to, game)

    return check


def check_dp_mip(source):
    def check(seed):
        dp, games = _dp_setting(source, seed)
        for k, game in games.items():
            to = dp.implies(wi.MIP, train_fraction=k / len(game.world.universe))
            assert game.mip().eta <= to.eta + 1e-12
            assert_kept(to, game)

    return check


def _dp_setting(source, seed):
    """A guarantee of this class that a mechanism keeps, and the mechanism's games on data sets of one size."""
    if source is wi.DPSGD:
        law, dp, _ = sgd_setting(seed)
        return dp, {k: wi.worlds.uniform_subsets(range(3), k).play(law) for k in (1, 2)}
    if source is wi.GaussianDP:
        law, dp = binned_sum(seed)
        return dp, {k: wi.worlds.uniform_subsets(range(4), k).play(law) for k in (1, 2, 3)}
    _, free, fixed = free_setting(seed)
    delta = 0.0 if source is wi.PureDP else 0.04
    if seed % 2:
        return free[0].dp(delta), fixed
    return fixed[2].dp(delta), {2: fixed[2]}


def check_pmp_pmp(seed):
    _, fixed = replace_setting(seed)
    for game in fixed.values():
        to = game.pmp(0.02).implies(wi.PMP, delta=0.1)
        assert game.pmp(0.1).epsilon <= to.epsilon + 1e-12
        assert to.train_fraction == game.pmp().train_fraction
        assert_kept(to, game)


def check_pmp_mip(seed):
    _, fixed = replace_setting(seed)
    for game in fixed.values():
        for delta in (0.0, 0.05):
            to = game.pmp(delta).implies(wi.MIP)
            assert game.mip().eta <= to.eta + 1e-12
            assert_kept(to, game)


def check_mip_pmp(seed):
    _, fixed = replace_setting(seed)
    game = fixed[2]
    for to in (game.mip().implies(wi.PMP), game.mip().implies(wi.PMP, delta=0.9)):
        assert game.pmp(min(1.0, to.delta * (1 + 1e-12))).epsilon <= to.epsilon + 1e-11
        assert_kept(to, game)


def check_dp_membership(source):
    def check(seed):
        _, free, fixed = free_setting(seed)
        for negative in (False, True):
            for dp, family, games in (
                (free[0].dp(), "independent", free),
                (free[0].dp(), "uniform", [free[0]]),
                (free[0].dp(), "bounded", list(fixed.values())),
                (fixed[2].dp(), "bounded", [fixed[2]]),
            ):
                given = dp if source is wi.PureDP else wi.ApproxDP(dp.epsilon, 0.0, dp.adjacency)
                to = given.implies(wi.MembershipPrivacy, family=family, negative=negative)
                assert to.family == family
                for game in games:
                    own = game.membership_privacy(negative)
                    assert own.ratio <= to.ratio * (1 + 1e-12)
                    assert_kept(to, game)

    return check


def check_sgd_membership(seed):
    law, dp, _ = sgd_setting(seed)
    for family, world in (
        ("independent", wi.worlds.independent(range(3), [0.3, 0.6, 0.5])),
        ("uniform", wi.worlds.all_subsets(range(3))),
    ):
        to = dp.implies(wi.MembershipPrivacy, family=family, negative=True)
        assert to.ratio == pytest.approx((1 - dp.sample_rate) ** -dp.steps, rel=1e-12)
        assert world.play(law).membership_privacy(negative=True).ratio <= to.ratio * (1 + 1e-12)
        assert_kept(to, world.play(law))


def check_dp_identifiability(source):
    def check(seed):
        law, free, fixed = free_setting(seed)
        for dp, sizes in ((free[0].dp(), (0, 1)), (fixed[2].dp(), (1,))):
            given = dp if source is wi.PureDP else wi.ApproxDP(dp.epsilon, 0.0, dp.adjacency)
            for known, m in itertools.product(sizes, (2, 3)):
                to = given.implies(wi.DifferentialIdentifiability, candidates=m)
                game = candidates_game(law, 4, m, tuple(range(known)))
                people = [x for x in game.world.universe if x >= known]
                assert len(people) == m
                largest = max(game.posterior(x, o) for x in people for o in game.outputs)
                assert largest <= to.rho + 1e-12
                assert_kept(to, game)

    return check


def check_identifiability_pure(seed):
    law, fixed = replace_setting(seed, floor=0.7)
    for k, m in ((2, 2), (2, 3)):
        rho = 1 / m
        for known in itertools.combinations(range(4), k - 1):
            for people in itertools.combinations(sorted(set(range(4)) - set(known)), m):
                for output in range(4):
                    chances = [law(tuple(sorted((*known, x))))[output] for x in people]
                    rho = max(rho, max(chances) / sum(chances))
        if rho < 1 / (m - 1):
            to = wi.DifferentialIdentifiability(rho, m).implies(wi.PureDP)
            assert fixed[k].dp().epsilon <= to.epsilon + 1e-12
            assert_kept(to, fixed[k])
        else:
            assert m > 2


def check_membership_membership(seed):
    _, free, fixed = free_setting(seed)
    for negative in (False, True):
        independent = free[1].membership_privacy(negative)
        to = independent.implies(wi.MembershipPrivacy, family="uniform")
        assert free[0].membership_privacy(negative).gamma <= to.gamma * (1 + 1e-12)
        assert_kept(to, free[0])
        other_side = fixed[2].membership_privacy(negative).implies(wi.MembershipPrivacy, negative=not negative)
        assert_kept(other_side, fixed[2])


def check_membership_onwards(target):
    def check(seed):
        law, fixed = replace_setting(seed)
        for k, game in fixed.items():
            source = game.membership_privacy(negative=bool(seed % 2))
            if target is wi.DifferentialIdentifiability:
                to = source.implies(target, candidates=2)
                assert_kept(to, candidates_game(law, 4, 2, tuple(range(k - 1))))
            elif target in (wi.ApproxDP, wi.GaussianDP):
                to = source.implies(target, **({"delta": 0.05} if target is wi.ApproxDP else {}))
                assert to.adjacency == "replace"
                assert_kept(to, game)
            elif target is wi.PureDP:
                to = source.implies(target)
                assert to.epsilon == pytest.approx(game.dp().epsilon, abs=1e-12)
                assert_kept(to, game)
            else:
                to = source.implies(target, train_fraction=k / 4)
                assert_kept(to, game)
        if target in (wi.PMP, wi.MIP):
            _, free, halves = free_setting(seed)
            for negative in (False, True):
                to = free[1].membership_privacy(negative).implies(target)
                assert_kept(to, halves[2])

    return check


def check_identifiability_onwards(target):
    def check(seed):
        law, fixed = replace_setting(seed, floor=0.7)
        chances = [
            [law(tuple(sorted((known, x))))[output] for x in people]
            for known in range(4)
            for people in itertools.combinations(sorted(set(range(4)) - {known}), 2)
            for output in range(4)
        ]
        source = wi.DifferentialIdentifiability(max(max(pair) / sum(pair) for pair in chances), 2)
        params = {wi.ApproxDP: {"delta": 0.05}, wi.DifferentialIdentifiability: {"candidates": 3}}.get(target, {})
        to = source.implies(target, **params)
        if target is wi.DifferentialIdentifiability:
            assert_kept(to, candidates_game(law, 4, 3, (0,)))
        else:
            assert_kept(to, fixed[2])

    return check


def check_mip_mip(seed):
    _, fixed = replace_setting(seed)
    assert fixed[1].mip().implies(wi.MIP) == fixed[1].mip()
    with pytest.raises(ImplicationError, match="train fraction"):
        fixed[1].mip().implies(wi.MIP, train_fraction=0.5)


def check_sgd_gaussian(seed):
    law, dp, _ = sgd_setting(seed)
    to = dp.implies(wi.GaussianDP)
    full_batch = math.sqrt(dp.steps) / dp.noise_multiplier if dp.noise_multiplier else math.inf
    assert to.mu == pytest.approx(full_batch, rel=1e-12)
    rates = np.geomspace(1e-9, 1.0, 60)
    assert np.all(to.roc.tpr(rates) >= dp.roc.tpr(rates) - 1e-9)
    assert_kept(to, wi.worlds.all_subsets(range(3)).play(law))


FORMS = (wi.RenyiDP, wi.ZeroConcentratedDP, wi.PrivacyProfile, wi.TradeOff)


def form_of(form, laws, adjacency):
    """The sharpest guarantee of this form that pairs of laws on the same outputs keep, in both directions."""
    both = [*laws, *((q, p) for p, q in laws)]
    log_p, log_q = np.log([p for p, _ in both]), np.log([q for _, q in both])

    def renyi(alpha):
        return float(np.max(logsumexp(alpha * log_p + (1 - alpha) * log_q, axis=1))) / (alpha - 1)

    if form is wi.RenyiDP:
        orders = [1.5, 2.0, 3.0, 5.0, 9.0, 30.0]
        found = [renyi(a) * (1 + 1e-12) + 1e-15 for a in orders]
        return form([*orders, math.inf], [*found, float(np.max(log_p - log_q))], adjacency)
    if form is wi.ZeroConcentratedDP:
        return form(max(renyi(1 + a) / (1 + a) for a in np.geomspace(1e-3, 1e3, 200)) * 1.002, adjacency)
    if form is wi.PrivacyProfile:
        epsilons = [0.0, 0.1, 0.3, 0.7]
        return form(epsilons, [max(hockey_stick(p, q, math.exp(e)) for p, q in both) for e in epsilons], adjacency)
    corners = np.vstack([wi.Roc.from_likelihoods(p, q).vertices for p, q in both])
    corners = corners[np.lexsort((corners[:, 1], corners[:, 0]))]
    return form(wi.Roc(corners[:, 0], np.maximum.accumulate(corners[:, 1])), adjacency)


@functools.cache
def form_setting(form, seed):
    """An accountant's form of a random mechanism for both adjacencies, with the games that it is about."""
    law, free, fixed = free_setting(seed)
    found = []
    for adjacency, sizes, games in (("replace", [1, 2, 3], fixed), ("add_remove", range(5), dict(enumerate(free)))):
        laws = list(adjacent_laws(law, 4, adjacency, sizes))
        source = form_of(form, laws, adjacency)
        for game in games.values():
            assert_kept(source, game)
        found.append((source, laws, games))
    return law, fixed, found


def check_form(form, target):
    """What follows from an accountant's form of a random mechanism holds in its worlds, for both adjacencies."""

    def check(seed):
        law, fixed, found = form_setting(form, seed)
        for source, laws, games in found:
            if target in (wi.PMP, wi.MIP):
                for k, game in fixed.items():
                    params = {"delta": 0.05} if target is wi.PMP else {}
                    assert_kept(source.implies(target, train_fraction=k / 4, **params), game)
            elif target is wi.ApproxDP:
                to = source.implies(target, delta=0.05)
                assert smallest_epsilon(laws, 0.05) <= to.epsilon + 1e-12
                assert_kept(source.implies(target, delta=0.05, adjacency="replace"), fixed[2])
            elif form is wi.ZeroConcentratedDP and target in (wi.RenyiDP, wi.ZeroConcentratedDP):
                params = {"orders": [2.0, 5.0]} if target is wi.RenyiDP else {}
                assert_kept(source.implies(target, **params), games[1])
                assert_kept(source.implies(target, adjacency="replace", **params), fixed[2])
            elif form in (wi.RenyiDP, wi.TradeOff):
                params = {"candidates": 3} if target is wi.DifferentialIdentifiability else {}
                game = candidates_game(law, 4, 3, (0,)) if params else games[1]
                assert_kept(source.implies(target, **params), game)
            else:
                params = {"candidates": 3} if target is wi.DifferentialIdentifiability else {}
                with pytest.raises(ImplicationError, match="no bound"):
                    source.implies(target, **params)

    return check


def check_concentrated(source):
    def check(seed):
        size = 0.3 * (seed + 1)
        for adjacency in ("add_remove", "replace"):
            to, known = source(size, "add_remove").implies(wi.ZeroConcentratedDP, adjacency=adjacency), source(size)
            limit = known.replace_roc() if adjacency == "replace" else known.roc
            rates = np.geomspace(1e-9, 0.999, 60)
            assert np.all(to.tpr_at(rates) >= limit.tpr(rates) - 1e-12)

    return check


CHECKS = {
    **{
        f"{s.__name__} → {t}": check_form(s, getattr(wi, t))
        for s in FORMS
        for t in ("ApproxDP", "PureDP", "PMP", "MIP")
    },
    **{
        f"{s.__name__} → {t}": check_form(s, getattr(wi, t))
        for s in FORMS
        for t in ("MembershipPrivacy", "DifferentialIdentifiability")
    },
    "ZeroConcentratedDP → ZeroConcentratedDP": check_form(wi.ZeroConcentratedDP, wi.ZeroConcentratedDP),
    "ZeroConcentratedDP → RenyiDP": check_form(wi.ZeroConcentratedDP, wi.RenyiDP),
    "GaussianDP → ZeroConcentratedDP": check_concentrated(wi.GaussianDP),
    "PureDP → ZeroConcentratedDP": check_concentrated(wi.PureDP),
    "PureDP → PureDP": check_pure_pure,
    "PureDP → ApproxDP": check_pure_approx,
    "ApproxDP → PureDP": check_approx_pure,
    "ApproxDP → ApproxDP": check_approx_approx,
    "PureDP → GaussianDP": check_pure_gaussian,
    "GaussianDP → GaussianDP": check_gaussian_gaussian,
    "GaussianDP → ApproxDP": check_gaussian_approx,
    "DPSGD → ApproxDP": check_sgd_approx,
    "DPSGD → GaussianDP": check_sgd_gaussian,
    "MIP → MIP": check_mip_mip,
    **{f"{s.__name__} → PMP": check_dp_pmp(s) for s in (wi.PureDP, wi.ApproxDP, wi.GaussianDP, wi.DPSGD)},
    **{f"{s.__name__} → MIP": check_dp_mip(s) for s in (wi.PureDP, wi.ApproxDP, wi.GaussianDP, wi.DPSGD)},
    "PMP → PMP": check_pmp_pmp,
    "PMP → MIP": check_pmp_mip,
    "MIP → PMP": check_mip_pmp,
    **{f"{s.__name__} → MembershipPrivacy": check_dp_membership(s) for s in (wi.PureDP, wi.ApproxDP)},
    "DPSGD → MembershipPrivacy": check_sgd_membership,
    **{f"{s.__name__} → DifferentialIdentifiability": check_dp_identifiability(s) for s in (wi.PureDP, wi.ApproxDP)},
    "DifferentialIdentifiability → PureDP": check_identifiability_pure,
    "MembershipPrivacy → MembershipPrivacy": check_membership_membership,
    **{
        f"MembershipPrivacy → {t.__name__}": check_membership_onwards(t)
        for t in (wi.PureDP, wi.ApproxDP, wi.GaussianDP, wi.PMP, wi.MIP, wi.DifferentialIdentifiability)
    },
    **{
        f"DifferentialIdentifiability → {t.__name__}": check_identifiability_onwards(t)
        for t in (wi.ApproxDP, wi.GaussianDP, wi.PMP, wi.MIP, wi.MembershipPrivacy, wi.DifferentialIdentifiability)
    },
}


def test_contract_covers_every_edge():
    """Every theorem of the graph has a check below, and no check is for a theorem that is not there."""
    assert set(CHECKS) == {edge.name for edge in EDGES}
    assert len({edge.name for edge in EDGES}) == len(EDGES)


@pytest.mark.parametrize("name", CHECKS)
@each("seed", range(6))
def test_contract_no_world_rises_above_what_an_edge_promises(name, seed):
    """What follows along an edge from the exact guarantee of a random mechanism holds in the worlds it is about."""
    CHECKS[name](seed)


@pytest.mark.parametrize("kind", ["uniform_subsets", "bounded_independent", "independent", "all_subsets"])
@each("seed", range(8))
def test_contract_exact_guarantees_of_a_game_hold_in_it(kind, seed):
    """The curve of a game never rises above that of its own dp(), pmp(), mip() and membership_privacy()."""
    rng = np.random.default_rng([seed, 9])
    world = {
        "uniform_subsets": lambda: wi.worlds.uniform_subsets(range(4), int(rng.integers(1, 4))),
        "bounded_independent": lambda: wi.worlds.bounded_independent(range(4), rng.uniform(0.1, 0.9, 4), 2),
        "independent": lambda: wi.worlds.independent(range(4), rng.uniform(0.1, 0.9, 4)),
        "all_subsets": lambda: wi.worlds.all_subsets(range(4)),
    }[kind]()
    game = world.play(random_mechanism(rng, outputs=int(rng.integers(2, 7)), floor=rng.uniform(0, 0.5)))
    own = [game.dp(), game.dp(0.1), game.membership_privacy(), game.membership_privacy(negative=True)]
    if kind == "uniform_subsets":
        own += [game.pmp(), game.pmp(0.05), game.mip()]
    for guarantee in own:
        assert_kept(guarantee, game)


def test_contract_can_fail():
    """A promise that is too strong by a little is caught: the check above has teeth."""
    game = wi.worlds.uniform_subsets(range(4), 2).play(respond(0, 1.0))
    assert_kept(wi.PureDP(1.0, "replace"), game)
    with pytest.raises(AssertionError):
        assert_kept(wi.PureDP(1.0 - 1e-9, "replace"), game)


# --- what does not follow ------------------------------------------------------------------------------------------

REFUSED = {
    "RenyiDP": [wi.RenyiDP([2.0, 8.0], [0.2, 0.9])],
    "ZeroConcentratedDP": [wi.ZeroConcentratedDP(0.5)],
    "PrivacyProfile": [wi.PrivacyProfile([0.5, 1.0], [0.01, 0.001])],
    "TradeOff": [wi.TradeOff(wi.Roc([0.0], [0.1]))],
    "PureDP": [wi.PureDP(1.0), wi.PureDP(1.0, "replace")],
    "DifferentialIdentifiability": [wi.DifferentialIdentifiability(0.6, 2)],
    "PMP": [wi.PMP(1.0), wi.PMP(1.0, 0.1)],
    "MIP": [wi.MIP(0.1), wi.MIP(0.1, 0.3)],
    "ApproxDP": [wi.ApproxDP(1.0, 0.1), wi.ApproxDP(1.0, 0.1, "replace")],
    "GaussianDP": [wi.GaussianDP(1.0), wi.GaussianDP(1.0, "replace")],
    "DPSGD": [wi.DPSGD(1.0, 0.1, 2)],
    "MembershipPrivacy": [
        wi.MembershipPrivacy(1.5, family, negative)
        for family, negative in itertools.product(("independent", "uniform"), (False, True))
    ],
}


@pytest.mark.parametrize("gap", NO_EDGES, ids=lambda gap: f"{gap.source}-{gap.target}")
def test_no_edge_is_refused_with_its_counterexample(gap):
    """Where nothing follows, implies raises and names the counterexample."""
    target = getattr(wi, gap.target)
    params = {"candidates": 3} if target is wi.DifferentialIdentifiability else {}
    for source in REFUSED[gap.source]:
        if (
            isinstance(source, wi.MembershipPrivacy)
            and source.family == "independent"
            and target
            in (
                wi.ApproxDP,
                wi.PMP,
                wi.MIP,
            )
        ):
            continue  # follows, with δ = 1 - 1/γ
        with pytest.raises(ImplicationError) as refusal:
            source.implies(target, **params)
        assert gap.counterexample in str(refusal.value)


def test_no_edge_counterexample_modular_sum():
    """Sum modulo 6 on {0..5}, |D| = 3: ln 2-PMP with accuracy 3/5, deterministic, and a neighbour identifies."""
    game = wi.worlds.uniform_subsets(range(6), 3).play(lambda d: {sum(d) % 6: 1.0})
    assert game.pmp().epsilon == pytest.approx(math.log(2), abs=1e-13)
    assert max(game.accuracy(r) for r in range(6)) == pytest.approx(0.6, abs=1e-13)
    assert game.dp(0.99).epsilon == math.inf
    last = candidates_game(lambda d: {sum(d) % 6: 1.0}, 6, 3, (0, 1))
    assert max(last.posterior(x, o) for x in (2, 3, 4) for o in last.outputs) == pytest.approx(1.0, abs=1e-14)


def test_no_edge_counterexample_size():
    """A(D) = |D|: 0-PMP and 0-MIP in a world of one size, γ = ∞ where records are independent."""

    def size(d):
        return {len(d): 1.0}

    fixed = wi.worlds.uniform_subsets(range(4), 2).play(size)
    assert (fixed.pmp().epsilon, fixed.mip().eta) == (0.0, 0.0)
    assert wi.worlds.independent(range(3), 0.5).play(size).membership_privacy().gamma == math.inf


def test_no_edge_counterexample_reveal():
    """Reveal with probability δ: (0, δ)-DP, and posterior 1 when it happens."""
    game = wi.worlds.uniform_subsets(range(4), 2).play(lambda d: {("surely", 0 in d): 0.1, "nothing": 0.9})
    assert game.dp(0.1).epsilon == 0.0
    assert game.dp().epsilon == math.inf
    assert game.posterior(0, ("surely", True)) == 1.0


def test_no_edge_counterexample_gaussian_tail():
    """Gaussian noise: the ratio of the tails, and so the posterior, has no bound."""
    assert wi.GaussianDP(1.0).posterior(0.5) == (0.0, 1.0)
    cuts = np.array([5.0, 10.0, 20.0])
    ratios = norm.sf(cuts - 1) / norm.sf(cuts)
    assert np.all(ratios > np.exp(cuts - 1))


def test_practical_guarantees_do_not_compose():
    """Two releases that are ln 2-PMP with accuracy 3/5 each: together they give everything away."""
    world = wi.worlds.uniform_subsets(range(6), 3)

    def first(d):
        return sum(d) % 6

    def second(d):
        return math.prod(x + 1 for x in d) % 7

    for release in (first, second):
        game = world.play(lambda d, release=release: {release(d): 1.0})
        assert game.pmp().epsilon == pytest.approx(math.log(2), abs=1e-13)
        assert game.mip().eta == pytest.approx(0.1, abs=1e-13)
    both = world.play(lambda d: {(first(d), second(d)): 1.0})
    assert both.pmp().epsilon == math.inf
    assert both.mip().eta == pytest.approx(0.5, abs=1e-13)


# --- continuous outputs --------------------------------------------------------------------------------------------

POOL = tuple(FIXTURES["gauss"]["X"])


def mean(records):
    return sum(records) / len(records)


@functools.cache
def pool_game(noise, scale=0.5):
    kind = wi.mechanisms.Laplace if noise == "laplace" else wi.mechanisms.Gaussian
    return wi.worlds.uniform_subsets(POOL, 4).play(kind(mean, scale))


def test_continuous_laplace_excess_fixture():
    """Laplace mean of eight numbers, s = 1/2: the gain over 1/2 on each record, to 1e-10."""
    fixture = FIXTURES["mip_laplace_mean"]
    game = pool_game("laplace")
    for index, excess in fixture["excess"].items():
        assert game.accuracy(POOL[int(index)]) - 0.5 == pytest.approx(excess, abs=1e-10)
    assert game.mip().eta == pytest.approx(max(fixture["excess"].values()), abs=1e-10)


def test_continuous_gaussian_divergence_fixture():
    """Gaussian mean of eight numbers, noise 1/2, last record: E_{e^ε}(in‖out) at ε = 0, 1/4, 1/2, 1 to 1e-12."""
    game = pool_game("gaussian")
    record = POOL[FIXTURES["gauss"]["record"]]
    for key, row in FIXTURES["gauss"]["delta"].items():
        prior = 1 / (1 + math.exp(float(key)))  # accuracy = (1-q) + q·E_γ with γ = (1-q)/q
        divergence = (game.accuracy(record, prior=prior) - (1 - prior)) / prior
        assert divergence == pytest.approx(float(row["in_out_mp"]), abs=1e-12)
        assert divergence < row["prop12"]
    assert game.advantage(record) == pytest.approx(float(FIXTURES["gauss"]["delta"]["0.0"]["in_out_mp"]), abs=1e-12)


@each("seed", range(3))
def test_continuous_laplace_mean_has_the_expected_dp(seed):
    """dp() of a Laplace mean is Δ/s with Δ the largest difference of two records over k; DP ⇒ PMP and MIP hold."""
    rng = np.random.default_rng([seed, 10])
    n, k, scale = 5, int(rng.integers(1, 5)), float(rng.uniform(0.2, 1.5))
    pool = rng.normal(size=n).tolist()
    game = wi.worlds.uniform_subsets(pool, k).play(wi.mechanisms.Laplace(mean, scale))
    dp = game.dp()
    assert dp.epsilon == pytest.approx((max(pool) - min(pool)) / k / scale, abs=1e-12)
    assert dp.adjacency == "replace"
    assert game.pmp().epsilon <= dp.implies(wi.PMP, train_fraction=k / n).epsilon + 1e-12
    assert game.pmp(0.1).epsilon <= dp.implies(wi.PMP, train_fraction=k / n, delta=0.1).epsilon + 1e-12
    assert game.mip().eta <= dp.implies(wi.MIP, train_fraction=k / n).eta + 1e-13
    assert_kept(dp, game)
    delta = 0.1
    assert game.dp(delta).epsilon == pytest.approx(max(0.0, dp.epsilon + 2 * math.log1p(-delta)), abs=1e-12)


@pytest.mark.parametrize("delta", [0.0, 0.01, 0.1])
def test_continuous_laplace_dp_to_pmp_is_attained_by_two_records(delta):
    """Two records, one drawn: the Laplace release has PMP = DP exactly at every δ, and MIP (1-e^-(Δ/2s))/2."""
    game = wi.worlds.uniform_subsets([0.0, 1.0], 1).play(wi.mechanisms.Laplace(mean, 0.5))
    assert game.dp(delta).epsilon == pytest.approx(2.0 + 2 * math.log1p(-delta), abs=1e-12)
    assert game.pmp(delta).epsilon == pytest.approx(game.dp(delta).epsilon, abs=1e-11)
    assert game.mip().eta == pytest.approx((1 - math.exp(-1.0)) / 2, abs=1e-14)


@pytest.mark.parametrize("delta", [1e-4, 0.01, 0.1])
def test_continuous_gaussian_dp_to_pmp_is_attained_by_two_records(delta):
    """Two records, one drawn: the Gaussian release has PMP = DP exactly, the ε of μ-GDP at that δ."""
    game = wi.worlds.uniform_subsets([0.0, 1.0], 1).play(wi.mechanisms.Gaussian(mean, 0.8))
    exact = wi.GaussianDP(1.25, "replace").implies(wi.ApproxDP, delta=delta)
    assert game.dp(delta).epsilon == pytest.approx(exact.epsilon, abs=1e-11)
    assert game.pmp(delta).epsilon == pytest.approx(exact.epsilon, abs=1e-10)
    u, epsilon = 1.25, exact.epsilon
    formula = ndtr(u / 2 - epsilon / u) - math.exp(epsilon) * ndtr(-u / 2 - epsilon / u)
    assert formula == pytest.approx(delta, abs=1e-12)
    assert game.mip().eta == pytest.approx(ndtr(u / 2) - 0.5, abs=1e-13)


@pytest.mark.parametrize(("n", "k"), [(3, 1), (4, 2)])
def test_continuous_gaussian_curve_lies_below_gaussian_dp(n, k):
    """Gaussian noise: every record's curve lies below that of (Δ/σ)-GDP under replace, and below its own MIP's."""
    pool = np.random.default_rng(n).normal(size=n).tolist()
    game = wi.worlds.uniform_subsets(pool, k).play(wi.mechanisms.Gaussian(mean, 0.7))
    promised = wi.GaussianDP((max(pool) - min(pool)) / k / 0.7, "replace")
    for record in pool[:1]:
        curve = game.roc(record)
        assert promised.roc.dominates(curve, tolerance=1e-12)
        assert game.mip().roc.dominates(curve, tolerance=1e-12)
        assert game.pmp(0.05).roc.dominates(curve, tolerance=1e-12)
        assert curve.divergence(1.0) == pytest.approx(game.advantage(record), abs=1e-4)
        assert curve.divergence(1.0) <= game.advantage(record) + 1e-13


def integrated_divergence(density, centres_in, centres_out, scale, gamma):
    """∫(p - γq)_+ by quadrature between the sign changes seen on a grid, and the kinks of Laplace noise."""
    centres = np.array([*centres_in, *centres_out]) / scale
    weights = np.array([1 / len(centres_in)] * len(centres_in) + [-gamma / len(centres_out)] * len(centres_out))
    kinks = [] if density is normal else sorted(set(centres.tolist()))

    def height(x):
        return density(np.subtract.outer(x, centres)) @ weights

    grid = np.linspace(centres.min() - 40, centres.max() + 40, 40_001)
    heights = height(grid)
    changes = np.flatnonzero(heights[:-1] * heights[1:] < 0)
    cuts = [*kinks, *(brentq(height, grid[i], grid[i + 1], xtol=1e-14) for i in changes)]
    edges = sorted([grid[0], centres.min() - 9, *cuts, centres.max() + 9, grid[-1]])
    return sum(
        quad(height, low, high, epsabs=1e-13, epsrel=1e-12, limit=400)[0]
        for low, high in itertools.pairwise(edges)
        if height(0.5 * (low + high)) > 0
    )


def normal(z):
    return np.exp(-0.5 * z**2) / math.sqrt(2 * math.pi)


def laplace(z):
    return 0.5 * np.exp(-np.abs(z))


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@each("seed", range(4))
def test_continuous_games_agree_with_integration(noise, seed):
    """The divergences of Gaussian and Laplace games are those of numerical integration, on random small worlds."""
    rng = np.random.default_rng([seed, 11])
    n, k, scale = 4, int(rng.integers(1, 4)), float(rng.uniform(0.3, 1.2))
    pool = rng.normal(size=n).tolist()
    query = mean if seed % 2 else max
    kind, density = (wi.mechanisms.Gaussian, normal) if noise == "gaussian" else (wi.mechanisms.Laplace, laplace)
    game = wi.worlds.uniform_subsets(pool, k).play(kind(query, scale))
    record = pool[seed % n]
    drawn = list(itertools.combinations(pool, k))
    inside, outside = ([query(d) for d in drawn if (record in d) == side] for side in (True, False))
    for prior in (0.5, 0.2, 0.75):
        m = min(prior, 1 - prior)
        pair = (inside, outside) if prior <= 0.5 else (outside, inside)
        expected = 1 - m + m * integrated_divergence(density, *pair, scale, (1 - m) / m)
        found = game.accuracy(record, prior=prior)
        assert found == pytest.approx(expected, abs=1e-11 + game.error)
        assert found >= expected - 1e-11  # the stated error is on the safe side
    assert game.error < 1e-8


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@each("seed", range(3))
def test_continuous_games_agree_with_fine_bins(noise, seed):
    """Binning the output is post-processing: slightly less accuracy, and the loss vanishes with the bins."""
    rng = np.random.default_rng([seed, 12])
    pool, size, scale = rng.normal(size=4).tolist(), (1, 3, 3)[seed], 0.6
    kind = wi.mechanisms.Gaussian if noise == "gaussian" else wi.mechanisms.Laplace
    world = wi.worlds.uniform_subsets(pool, size)
    game = world.play(kind(mean, scale))
    edges = np.concatenate([[-np.inf], np.linspace(-9, 9, 6001), [np.inf]])

    def cdf(z):
        return (
            ndtr(z) if noise == "gaussian" else np.where(z < 0, 0.5 * np.exp(-np.abs(z)), 1 - 0.5 * np.exp(-np.abs(z)))
        )

    binned = world.play(lambda d: dict(enumerate(np.diff(cdf((edges - mean(d)) / scale)).tolist())))
    for record in pool:
        for prior in (0.5, 0.3):
            lost = game.accuracy(record, prior=prior) - binned.accuracy(record, prior=prior)
            assert -1e-12 <= lost <= 1e-5
    assert game.mip().eta == pytest.approx(binned.mip().eta, abs=1e-5)
    delta = 0.02
    assert binned.pmp(delta).epsilon <= game.pmp(delta).epsilon + 1e-11
    assert binned.pmp(delta).epsilon == pytest.approx(game.pmp(delta).epsilon, abs=1e-3)


def shift_gain(noise, distance, scale):
    """Total variation caused by a shift: 1 - e^{-v/2s} for Laplace, 2Φ(v/2s) - 1 for Gaussian noise."""
    return -np.expm1(-distance / (2 * scale)) if noise == "laplace" else 2 * ndtr(distance / (2 * scale)) - 1


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_c_adjacent_distances_bound_the_gain(noise):
    """acc - 1/2 ≤ half the mean shift gain over the adjacent coupling, and ≤ half the gain at 2E|θ-c|."""
    game, fixture = pool_game(noise), FIXTURES["mip_laplace_mean"]
    answers = np.array([mean(d) for d in itertools.combinations(POOL, 4)])
    sigma = np.abs(answers - answers.mean()).mean()
    assert sigma == pytest.approx(fixture["sigma1"], abs=1e-12)
    by_moment = shift_gain(noise, 2 * sigma, 0.5) / 2
    for i, x in enumerate(POOL):
        gaps = np.array([abs(x - y) / 4 for y in POOL if y != x])
        adjacent = shift_gain(noise, gaps, 0.5).mean() / 2
        assert game.accuracy(x) - 0.5 <= adjacent + 1e-12
        if noise == "laplace":
            assert adjacent == pytest.approx(fixture["bound_adj"][str(i)], abs=1e-12)
    assert game.mip().eta <= by_moment
    if noise == "laplace":
        assert by_moment == pytest.approx(fixture["bound_sigma1"], abs=1e-12)


@pytest.mark.parametrize("eta", [0.01, 0.05, 0.1, 0.25, 0.4])
def test_c_noise_calibrated_to_a_moment_is_optimal(eta):
    """s = σ/ln(1/(1-2η)) (Laplace) and σ/Φ⁻¹(1/2+η) (Gaussian) give exactly η on a two-point algorithm, E|θ-c| = σ."""
    for noise, kind, scale, key in (
        ("laplace", wi.mechanisms.Laplace, -1 / math.log1p(-2 * eta), "s_over_sigma_new_laplace"),
        ("gaussian", wi.mechanisms.Gaussian, 1 / ndtri(0.5 + eta), "s_over_sigma_new_gauss"),
    ):
        assert scale == pytest.approx(GOLDEN["izzo"][key][f"{eta:g}"], rel=1e-12)
        game = wi.worlds.uniform_subsets(range(4), 2).play(kind(lambda d: 1.0 if 0 in d else -1.0, float(scale)))
        assert game.mip().eta == pytest.approx(eta, abs=1e-12)
        assert shift_gain(noise, 2.0, scale) / 2 == pytest.approx(eta, abs=1e-12)

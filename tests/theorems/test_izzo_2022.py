"""Izzo, Yoon, Arik and Zou 2022, "Provable Membership Inference Privacy": sections 3.2 to 3.5, appendices A to C.

Every statement is checked by enumeration of small worlds, with arithmetic of its own next to the library's. Where the
printed statement is wrong, the corrected one is shown to hold and the printed one to fail.
"""

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import each
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching
from theorem_support import every_attack, random_mechanism, reveal_or_respond

import whosin as wi
from whosin.errors import ImplicationError
from whosin.worlds.game import adjacent_pairs

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())["izzo"]

WORLDS = [(2, 1), (3, 1), (3, 2), (4, 1), (4, 2), (4, 3)]
TINY = 1e-14


def in_out(universe, size, law, record):
    """Return the joint probabilities (output and in, output and out), summed by hand over all subsets of one size."""
    subsets = list(itertools.combinations(universe, size))
    joint_in, joint_out = {}, {}
    for records in subsets:
        joint = joint_in if record in records else joint_out
        for output, probability in law(records).items():
            joint[output] = joint.get(output, 0) + probability * Fraction(1, len(subsets))
    outputs = sorted({*joint_in, *joint_out}, key=str)
    return [joint_in.get(o, 0) for o in outputs], [joint_out.get(o, 0) for o in outputs]


def theorem_4_accuracy(epsilon, delta):
    return delta + (1.0 - delta) / (1.0 + math.exp(-epsilon))


# --- section 3.2: the ideal, equation (1) ------------------------------------------------------------------------


POPULATION = {0: 0.5, 1: 0.3, 2: 0.2}


def fresh_draw_joint(law, size):
    """Joint laws of (x*, output) with y* = 1 (x* a random training record) and y* = 0 (x* a fresh draw)."""
    inside, fresh = {}, {}
    for train in itertools.product(POPULATION, repeat=size):
        chance = math.prod(POPULATION[x] for x in train)
        for output, probability in law(tuple(sorted(train))).items():
            for x in train:
                inside[x, output] = inside.get((x, output), 0.0) + chance * probability / size
            for x, share in POPULATION.items():
                fresh[x, output] = fresh.get((x, output), 0.0) + chance * probability * share
    keys = sorted({*inside, *fresh})
    return np.array([inside.get(k, 0.0) for k in keys]), np.array([fresh.get(k, 0.0) for k in keys])


def fresh_draw_accuracy(law, size):
    """Accuracy of the best attacker in the game of equation (1), where y* is a fair coin."""
    inside, fresh = fresh_draw_joint(law, size)
    return 0.5 * np.maximum(inside, fresh).sum()


def closeness(law, size, delta):
    """Smallest ε of (ε, δ)-DP over training sets that differ in one value."""
    worst = 1.0
    for train in itertools.product(POPULATION, repeat=size):
        for position, value in itertools.product(range(size), POPULATION):
            other = list(train)
            other[position] = value
            p, q = (np.array(list(law(tuple(sorted(t))).values())) for t in (train, other))
            gammas = np.append(1.0, p / q)
            excess = np.maximum(p - gammas[:, None] * q, 0.0).sum(axis=1)
            low, high = 1.0, gammas.max()
            if excess[0] > delta:
                for _ in range(100):
                    middle = 0.5 * (low + high)
                    if np.maximum(p - middle * q, 0.0).sum() <= delta:
                        high = middle
                    else:
                        low = middle
                worst = max(worst, high)
    return math.log(worst)


@each("seed", range(4))
@pytest.mark.parametrize("size", [1, 2])
def test_equation_1_is_the_mip_game_of_a_pool_that_the_attacker_does_not_know(seed, size):
    """A fresh draw is a record of the held-out half of an iid pool; knowing the pool can only help the attacker."""
    law = random_mechanism(np.random.default_rng(seed), outputs=3)
    inside, outside = {}, {}
    with_pool = 0.0
    for pool in itertools.product(POPULATION, repeat=2 * size):
        chance = math.prod(POPULATION[x] for x in pool)
        people = list(enumerate(pool))
        world = wi.worlds.uniform_subsets(people, size)
        game = world.play(lambda records: law(tuple(sorted(value for _, value in records))))
        with_pool += chance * np.mean([game.accuracy(person) for person in people])
        for row, (_, value) in enumerate(people):
            for column, output in enumerate(game.outputs):
                for joint, table in ((inside, game.inside), (outside, game.outside)):
                    key = value, output
                    joint[key] = joint.get(key, 0.0) + chance * table[row, column] / len(people)
    direct_inside, direct_fresh = fresh_draw_joint(law, size)
    assert [inside[k] for k in sorted(inside)] == pytest.approx(direct_inside.tolist(), abs=1e-14)
    assert [outside[k] for k in sorted(outside)] == pytest.approx(direct_fresh.tolist(), abs=1e-14)
    assert fresh_draw_accuracy(law, size) <= with_pool + 1e-14
    assert fresh_draw_accuracy(law, size) < with_pool  # strictly: the pool tells something here


@each("seed", range(5))
@pytest.mark.parametrize("delta", [0.0, 0.03, 0.2])
def test_equation_1_follows_from_differential_privacy(seed, delta):
    """(ε, δ)-DP keeps the fresh-draw game below 1/2 + η with the η of theorem 4."""
    law = random_mechanism(np.random.default_rng([seed, 1]), outputs=3)
    epsilon = closeness(law, 2, delta)
    promised = wi.ApproxDP(epsilon, delta, "replace").implies(wi.MIP).eta
    assert 0.5 < fresh_draw_accuracy(law, 2) <= 0.5 + promised + 1e-13


def test_equation_1_may_hold_where_a_known_pool_gives_everything_away():
    """The converse fails: with the pool known, parity tells all; a fresh draw often has the same parity by chance."""
    values = dict.fromkeys(range(32), 1.0 / 32)

    def law(records):
        return {sum(records) % 2: 1.0}

    game = wi.worlds.uniform_subsets([2, 3], 1).play(law)
    assert game.accuracy(2) == 1.0
    fresh = 0.0
    for z, parity in itertools.product(values, (0, 1)):
        inside = values[z] * (z % 2 == parity)
        fresh += 0.5 * max(inside, values[z] * 0.5)
    assert fresh == pytest.approx(0.75)


# --- section 3.3 -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "k"), WORLDS)
def test_definition_1_measures_the_gain_over_the_likelier_answer(n, k):
    """η is the accuracy beyond max(k/n, 1 - k/n): 0 for a constant, min(k/n, 1 - k/n) for the data set itself."""
    world, q = wi.worlds.uniform_subsets(range(n), k), k / n
    silent, open_book = world.play(lambda _: {"nothing": 1.0}), world.play(lambda records: {records: 1.0})
    assert silent.mip().eta == pytest.approx(0.0, abs=TINY)
    assert silent.mip().train_fraction == q
    assert open_book.mip().eta == pytest.approx(min(q, 1.0 - q), abs=TINY)
    for record in range(n):
        assert silent.accuracy(record) == pytest.approx(max(q, 1.0 - q), abs=TINY)
        assert open_book.accuracy(record) == pytest.approx(1.0, abs=TINY)


@pytest.mark.parametrize(("n", "k"), WORLDS)
@each("seed", range(3))
def test_definition_1_is_the_maximum_over_attacks_and_records(n, k, seed):
    """game.mip() is the best of all 2^4 deterministic attacks on the most exposed record, for every k."""
    law = random_mechanism(np.random.default_rng([seed, n, k]))
    best = 0.0
    for record in range(n):
        joint_in, joint_out = (np.array(joint) for joint in in_out(range(n), k, law, record))
        for guess in every_attack(4):
            best = max(best, joint_in[guess].sum() + joint_out[~guess].sum())
    game = wi.worlds.uniform_subsets(range(n), k).play(law)
    assert game.mip().eta == pytest.approx(best - max(k / n, 1 - k / n), abs=TINY)
    assert game.mip().accuracy(k / n) == pytest.approx(best, abs=TINY)


def test_remark_membership_in_the_base_set_is_not_protected():
    """A(D) = 1{D ⊆ pool} is 0-MIP with respect to the pool, and tells whether the data came from the pool at all."""
    pool, others = (0, 1, 2, 3), (4, 5)

    def law(records):
        return {set(records) <= set(pool): 1.0}

    inside_pool = wi.worlds.uniform_subsets(pool, 2).play(law)
    assert inside_pool.mip().eta == 0.0
    assert inside_pool.pmp().epsilon == 0.0
    wider = wi.worlds.uniform_subsets(pool + others, 2).play(law)
    assert wider.posterior(4, True) == 0.0  # whoever is outside the base set is exposed
    held_by_pool = np.array([set(np.flatnonzero(row).tolist()) <= set(pool) for row in wider.world.membership])
    from_pool, elsewhere = (wider.laws[rows].mean(axis=0) for rows in (held_by_pool, ~held_by_pool))
    assert wi.Roc.from_likelihoods(from_pool, elsewhere).tpr(0.0) == 1.0  # did the data come from the base set?
    assert any("pool itself is not protected" in line for line in inside_pool.mip().assumes)


@pytest.mark.parametrize(("n", "k"), [*WORLDS, (6, 2), (6, 3), (5, 4)])
@each("seed", range(3))
def test_proposition_2_accuracy_is_the_sum_of_the_larger_joint_probabilities(n, k, seed):
    """The best accuracy is Σ max(P(in | A), P(out | A))·P(A), and the attack 1{P(in | A) ≥ 1/2} reaches it, all k."""
    law = random_mechanism(np.random.default_rng([seed, n, k, 2]))
    game = wi.worlds.uniform_subsets(range(n), k).play(law)
    for record in range(n):
        joint_in, joint_out = (np.array(joint) for joint in in_out(range(n), k, law, record))
        total = joint_in + joint_out
        formula = (np.maximum(joint_in / total, joint_out / total) * total).sum()
        posterior = np.array([game.posterior(record, output) for output in sorted(game.outputs)])
        bayes = posterior >= 0.5
        assert posterior == pytest.approx(joint_in / total, abs=TINY)
        assert game.accuracy(record) == pytest.approx(formula, abs=TINY)
        assert joint_in[bayes].sum() + joint_out[~bayes].sum() == pytest.approx(formula, abs=TINY)
        best = max(joint_in[guess].sum() + joint_out[~guess].sum() for guess in every_attack(4))
        assert formula == pytest.approx(best, abs=TINY)


def test_proposition_2_in_likelihoods_the_threshold_is_one_only_for_half():
    """In likelihood ratios the Bayes rule is P_in/P_out ≥ (1-q)/q; the threshold 1, right for k = n/2, loses else."""
    n, k, x = 6, 2, 0

    def law(records):
        return {"yes": 0.6, "no": 0.4} if x in records else {"yes": 0.4, "no": 0.6}

    game = wi.worlds.uniform_subsets(range(n), k).play(law)
    q = Fraction(k, n)
    ratio_one = q * Fraction(6, 10) + (1 - q) * Fraction(6, 10)
    assert game.accuracy(x) == pytest.approx(float(1 - q), abs=TINY)  # ratio 3/2 < (1-q)/q = 2: say "out"
    assert float(ratio_one) < game.accuracy(x) - 0.06
    assert wi.worlds.uniform_subsets(range(n), 3).play(law).accuracy(x) == pytest.approx(0.6, abs=TINY)


@pytest.mark.parametrize(("n", "k"), [(3, 1), (4, 1), (6, 2), (5, 3)])
def test_proposition_2_printed_right_side_fails_beyond_half(n, k):
    """Printed: η-MIP iff the sum is ≤ 1/2 + η. A constant is 0-MIP for every k, and its sum is max(k/n, 1-k/n)."""
    game = wi.worlds.uniform_subsets(range(n), k).play(lambda _: {"nothing": 1.0})
    joint_in, joint_out = in_out(range(n), k, lambda _: {"nothing": 1}, 0)
    formula = sum(max(a, b) for a, b in zip(joint_in, joint_out, strict=True))
    assert game.mip().eta == pytest.approx(0.0, abs=TINY)
    assert formula == max(Fraction(k, n), 1 - Fraction(k, n))
    assert formula > Fraction(1, 2)


@pytest.mark.parametrize(("n", "k"), WORLDS)
@each("seed", range(4))
def test_theorem_3_post_processing_never_raises_the_risk(n, k, seed):
    """If A is η-MIP then so is f(A), for random channels and for merged outputs; relabelling changes nothing."""
    rng = np.random.default_rng([seed, n, k, 3])
    law = random_mechanism(rng, outputs=5)
    channel = rng.dirichlet(np.full(3, 0.5), size=5)
    world = wi.worlds.uniform_subsets(range(n), k)

    def processed(records):
        row = np.array(list(law(records).values())) @ channel
        return dict(enumerate((row / row.sum()).tolist()))

    def merged(records):
        p = law(records)
        return {"low": p[0] + p[1], "high": p[2] + p[3] + p[4]}

    before, relabelled = world.play(law), world.play(lambda records: {-o: p for o, p in law(records).items()})
    assert relabelled.mip().eta == pytest.approx(before.mip().eta, abs=TINY)
    for after in (world.play(processed), world.play(merged)):
        assert after.mip().eta <= before.mip().eta + TINY
        for record in range(n):
            assert after.accuracy(record) <= before.accuracy(record) + TINY
            assert before.roc(record).dominates(after.roc(record), tolerance=1e-13)


# --- section 3.4: differential privacy ---------------------------------------------------------------------------


@pytest.mark.parametrize("floor", [0.02, 0.5])
@pytest.mark.parametrize("delta", [0.0, 0.01, 0.2])
@each("seed", range(6))
def test_theorem_4_dp_implies_mip(seed, delta, floor):
    """An (ε, δ)-DP mechanism has accuracy ≤ δ + (1-δ)/(1+e^-ε) at k = n/2: random mechanisms, exact (ε, δ)."""
    for n in (2, 4):
        law = random_mechanism(np.random.default_rng([seed, n]), outputs=4, floor=floor)
        game = wi.worlds.uniform_subsets(range(n), n // 2).play(law)
        dp = game.dp(delta)
        promised = dp.implies(wi.MIP)
        assert promised.eta == pytest.approx(theorem_4_accuracy(dp.epsilon, delta) - 0.5, abs=TINY)
        for record in range(n):
            joint_in, joint_out = in_out(range(n), n // 2, law, record)
            accuracy = sum(max(a, b) for a, b in zip(joint_in, joint_out, strict=True))
            assert accuracy <= theorem_4_accuracy(dp.epsilon, delta) + TINY


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.01, 0.5])
def test_theorem_4_is_attained_by_the_example_of_its_proof(epsilon, delta):
    """The two-record example of appendix B is (ε, δ)-DP and reaches δ + (1-δ)/(1+e^-ε)."""
    right, wrong = (1.0 - delta) / (1.0 + math.exp(-epsilon)), (1.0 - delta) / (1.0 + math.exp(epsilon))
    laws = {(0,): {"0": delta, "*": right, "†": wrong}, (1,): {"1": delta, "*": wrong, "†": right}}
    game = wi.worlds.uniform_subsets([0, 1], 1).play(lambda records: laws[records])
    assert game.dp(delta).epsilon == pytest.approx(epsilon, abs=1e-12)
    assert game.accuracy(0) == pytest.approx(theorem_4_accuracy(epsilon, delta), abs=TINY)
    assert game.mip().eta == pytest.approx(wi.ApproxDP(epsilon, delta, "replace").implies(wi.MIP).eta, abs=TINY)


def test_theorem_4_golden_values():
    """η = δ + (1-δ)/(1+e^-ε) - 1/2 at the tabulated (ε, δ), to 1e-14."""
    assert len(GOLDEN["thm4_eta"]) == 15
    for key, eta in GOLDEN["thm4_eta"].items():
        epsilon, delta = (float(part.split("=")[1]) for part in key.split(","))
        source = wi.ApproxDP(epsilon, delta, "replace") if delta else wi.PureDP(epsilon, "replace")
        assert source.implies(wi.MIP).eta == pytest.approx(eta, abs=1e-14)
        assert source.accuracy() == pytest.approx(0.5 + eta, abs=1e-14)


CEILING_CASES = list(itertools.product(WORLDS, (0.5, 2.0), (0.0, 0.05, 0.3)))


def test_theorem_4_has_thirty_six_cases_of_the_general_ceiling():
    """The list of attained cases below is complete."""
    assert len(CEILING_CASES) == 36


@pytest.mark.parametrize(("world", "epsilon", "delta"), CEILING_CASES)
def test_theorem_4_exact_ceiling_for_every_k_is_attained(world, epsilon, delta):
    """acc ≤ max((1-q)+qδ, q+(1-q)δ, δ+(1-δ)/(1+e^-ε)) for every k, reached by "reveal w.p. δ else respond"."""
    n, k = world
    q = k / n
    ceiling = max((1 - q) + q * delta, q + (1 - q) * delta, theorem_4_accuracy(epsilon, delta))
    game = wi.worlds.uniform_subsets(range(n), k).play(reveal_or_respond(0, epsilon, delta))
    source = wi.ApproxDP(epsilon, delta, "replace")
    assert game.dp(delta).epsilon == pytest.approx(epsilon, abs=1e-12)
    assert game.accuracy(0) == pytest.approx(ceiling, abs=TINY)
    assert game.mip().eta == pytest.approx(ceiling - max(q, 1 - q), abs=TINY)
    assert source.accuracy(q) == pytest.approx(ceiling, abs=TINY)
    implied = source.implies(wi.MIP, train_fraction=q)
    assert implied.eta == pytest.approx(ceiling - max(q, 1 - q), abs=TINY)
    assert implied.eta == pytest.approx(
        max(min(q, 1 - q) * delta, theorem_4_accuracy(epsilon, delta) - max(q, 1 - q)), abs=TINY
    )
    assert implied.eta <= theorem_4_accuracy(epsilon, delta) - 0.5 + TINY  # the printed η stays valid, if loose
    if q != 0.5:
        assert implied.eta < theorem_4_accuracy(epsilon, delta) - 0.5


@each("seed", range(4))
@pytest.mark.parametrize(("n", "k"), [(3, 1), (4, 1), (4, 3), (5, 2), (6, 5)])
def test_theorem_4_ceiling_holds_for_random_mechanisms_at_every_k(n, k, seed):
    """No random (ε, δ)-DP mechanism exceeds the ceiling at k ≠ n/2."""
    q = k / n
    for delta, floor in itertools.product((0.0, 0.02, 0.1), (0.1, 0.8)):
        law = random_mechanism(np.random.default_rng([seed, n, k, 4]), floor=floor)
        game = wi.worlds.uniform_subsets(range(n), k).play(law)
        epsilon = game.dp(delta).epsilon
        ceiling = max((1 - q) + q * delta, q + (1 - q) * delta, theorem_4_accuracy(epsilon, delta))
        assert max(game.accuracy(record) for record in range(n)) <= ceiling + TINY


def test_theorem_4_pure_dp_gives_zero_mip_once_the_prior_beats_the_output():
    """With pure DP η_k = 0 as soon as 1/(1+e^-ε) ≤ max(q, 1-q), and not before."""
    threshold = math.log(3.0)  # 1/(1+e^-ε) = 3/4
    for epsilon, positive in ((threshold - 1e-6, False), (threshold + 1e-6, True)):
        game = wi.worlds.uniform_subsets(range(4), 1).play(reveal_or_respond(0, epsilon, 0.0))
        assert (game.mip().eta > 1e-9) is positive
        assert (wi.PureDP(epsilon, "replace").implies(wi.MIP, train_fraction=0.25).eta > 1e-9) is positive


@given(st.floats(0.0, 30.0), st.floats(0.0, 1.0))
def test_theorem_4_closed_form(epsilon, delta):
    """implies(MIP) is the formula of theorem 4 for all ε and δ, and 2η the advantage of Humphries et al."""
    eta = wi.ApproxDP(epsilon, delta, "replace").implies(wi.MIP).eta
    assert eta == pytest.approx(theorem_4_accuracy(epsilon, delta) - 0.5, abs=1e-14)
    humphries = (math.exp(epsilon) - 1 + 2 * delta) / (math.exp(epsilon) + 1)
    assert 2 * eta == pytest.approx(humphries, abs=1e-14)


@given(st.floats(0.0, 0.5), st.floats(0.0, 1.0))
def test_theorem_4_remark_small_epsilon(epsilon, delta):
    """η ≈ δ/2 + (1-δ)ε/4 for small ε: an upper estimate, off by at most (1-δ)ε³/48."""
    gap = delta / 2 + (1 - delta) * epsilon / 4 - wi.ApproxDP(epsilon, delta, "replace").implies(wi.MIP).eta
    assert -1e-14 <= gap <= (1 - delta) * epsilon**3 / 48 + 1e-14


@given(st.floats(1e-3, 0.499))
def test_theorem_4_inverted_as_in_figure_1(eta):
    """η = 1/(1+e^-ε) - 1/2 is solved by ε = ln((1+2η)/(1-2η)); the calibration finds it, from below."""
    epsilon = math.log((1 + 2 * eta) / (1 - 2 * eta))
    found = wi.calibrate.epsilon(accuracy=0.5 + eta)
    assert found.epsilon == pytest.approx(epsilon, abs=1e-11)
    assert found.accuracy() <= 0.5 + eta
    assert wi.PureDP(epsilon, "replace").implies(wi.MIP).eta == pytest.approx(eta, abs=1e-14)


# --- lemma 12 ----------------------------------------------------------------------------------------------------


def adjacency_graph(n, k):
    """Return the bipartite graph: data sets with record 0 against those without, edges where they are adjacent."""
    world = wi.worlds.uniform_subsets(range(n), k)
    edges = np.zeros((len(world.masks),) * 2, dtype=bool)
    for one, other in adjacent_pairs(world):
        edges[one, other] = edges[other, one] = True
    has = world.membership[:, 0]
    subsets = [set(np.flatnonzero(members)) for members in world.membership]
    assert all(edges[i, j] == (len(a - b) == 1) for i, a in enumerate(subsets) for j, b in enumerate(subsets))
    return edges[np.ix_(~has, has)]


@pytest.mark.parametrize(("n", "k"), [(2, 1), (3, 1), (3, 2), (4, 2), (5, 2), (5, 3), (6, 3), (6, 4), (6, 1), (8, 4)])
def test_lemma_12_biregular_graph_has_an_injective_matching(n, k):
    """The graph is (k, n-k)-biregular; for k ≥ n/2 there is an injection out → in along edges, for k ≤ n/2 back."""
    graph = adjacency_graph(n, k)
    assert set(graph.sum(axis=1)) == {k}  # neighbours of a set without the record
    assert set(graph.sum(axis=0)) == {n - k}  # neighbours of a set with it
    matched = maximum_bipartite_matching(csr_array(graph.astype(int)), perm_type="column")
    found = matched[matched >= 0]
    assert len(found) == min(graph.shape)
    assert len(set(found.tolist())) == len(found)
    assert all(graph[row, column] for row, column in enumerate(matched) if column >= 0)
    assert (len(found) == graph.shape[0]) == (2 * k >= n)  # all of out is covered exactly where the lemma says so
    assert (len(found) == graph.shape[1]) == (2 * k <= n)


@pytest.mark.parametrize(("n", "k"), [(4, 2), (5, 3), (6, 4)])
def test_lemma_12_hall_condition(n, k):
    """|N(W)| ≥ k/(n-k)·|W| for every set W of data sets without the record (all W, or 2,000 random ones)."""
    graph = adjacency_graph(n, k)
    rows = graph.shape[0]
    rng = np.random.default_rng(12)
    chosen = (
        (np.array(w, dtype=bool) for w in itertools.product((0, 1), repeat=rows))
        if rows <= 10
        else (rng.random(rows) < rng.random() for _ in range(2000))
    )
    for w in chosen:
        assert graph[w].any(axis=0).sum() * (n - k) >= k * w.sum()


# --- theorems 5 and 7: MIP without DP ----------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 4, 6, 8, 10])
def test_theorem_5_mip_without_dp(n):
    """A(D) = 1{D = D*} has accuracy 1/2 + 1/C(n, n/2) exactly, and is (ε, δ)-DP for no ε < ∞ and δ < 1."""
    special = tuple(range(n // 2))
    game = wi.worlds.uniform_subsets(range(n), n // 2).play(lambda records: {records == special: 1.0})
    eta = 1 / math.comb(n, n // 2)
    for record in range(n):
        assert game.accuracy(record) == pytest.approx(0.5 + eta, abs=TINY)
    assert game.mip().eta == pytest.approx(eta, abs=TINY)
    for delta in (0.0, 0.5, 0.999999):
        assert game.dp(delta).epsilon == math.inf
    assert game.dp(1.0).epsilon == 0.0


def test_theorem_5_for_any_eta():
    """For every η > 0 some n is large enough; and the library refuses to go from MIP to any kind of DP."""
    for eta in (0.2, 0.05, 0.01):
        n = next(n for n in range(2, 40, 2) if math.comb(n, n // 2) >= 1 / eta)
        game = wi.worlds.uniform_subsets(range(n), n // 2).play(lambda records, n=n: {max(records) < n // 2: 1.0})
        assert 0.0 < game.mip().eta <= eta + TINY
        for target in (wi.PureDP, wi.ApproxDP, wi.GaussianDP, wi.DPSGD):
            with pytest.raises(ImplicationError, match="theorem 5"):
                game.mip().implies(target)


@pytest.mark.parametrize("n", [4, 6])
def test_theorem_7_the_same_example_has_no_renyi_and_no_trade_off_guarantee(n):
    """Adjacent laws are mutually singular: every Rényi divergence is infinite and the trade-off curve trivial."""
    special = tuple(range(n // 2))
    game = wi.worlds.uniform_subsets(range(n), n // 2).play(lambda records: {records == special: 1.0})
    sets = [tuple(np.flatnonzero(row).tolist()) for row in game.world.membership]
    at, neighbour = sets.index(special), sets.index((*special[:-1], n - 1))
    p, q = game.laws[at], game.laws[neighbour]
    for alpha in (1.0001, 2.0, 64.0):
        with np.errstate(divide="ignore"):
            moment = np.sum(np.where(p > 0, p**alpha * q ** (1.0 - alpha), 0.0))
        assert moment == math.inf
    assert wi.Roc.from_likelihoods(p, q).tpr(0.0) == 1.0
    assert wi.Roc.from_likelihoods(q, p).tpr(0.0) == 1.0
    assert game.mip().eta == pytest.approx(1 / math.comb(n, n // 2), abs=TINY)
    assert not wi.GaussianDP(20.0).roc.dominates(wi.Roc.from_likelihoods(p, q))


# --- proposition 6 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "k"), [*WORLDS, (5, 2), (6, 3), (6, 5)])
@each("seed", range(3))
def test_proposition_6_pure_dp_bounds_the_odds_after_every_output(n, k, seed):
    """ε-DP: the odds of absence after any output are at most e^ε times those before; and so are those of membership."""
    law = random_mechanism(np.random.default_rng([seed, n, k, 6]))
    game = wi.worlds.uniform_subsets(range(n), k).play(law)
    dp = game.dp()
    low, high = dp.posterior(k / n, world="fixed_size")
    before = (n - k) / k
    for record, output in itertools.product(range(n), game.outputs):
        inside = game.posterior(record, output)
        after = (1.0 - inside) / inside
        assert after <= math.exp(dp.epsilon) * before * (1 + 1e-13)
        assert 1 / after <= math.exp(dp.epsilon) / before * (1 + 1e-13)
        assert low - 1e-13 <= inside <= high + 1e-13


@pytest.mark.parametrize(("n", "k"), [(2, 1), (4, 1), (4, 2), (4, 3), (5, 2)])
def test_proposition_6_is_attained_in_both_directions(n, k):
    """Randomised response on 1{x* ∈ D} moves the odds by exactly e^ε, up and down, for every n and k."""
    epsilon = 1.3
    game = wi.worlds.uniform_subsets(range(n), k).play(reveal_or_respond(0, epsilon, 0.0))
    before = k / (n - k)
    for output, factor in ((True, math.exp(epsilon)), (False, math.exp(-epsilon))):
        inside = game.posterior(0, output)
        assert inside / (1 - inside) == pytest.approx(factor * before, rel=1e-13)
    low, high = wi.PureDP(epsilon, "replace").posterior(k / n, world="fixed_size")
    assert (game.posterior(0, False), game.posterior(0, True)) == pytest.approx((low, high), abs=TINY)


def test_proposition_6_has_no_converse():
    """A bound on every posterior gives no DP: the sum modulo 6 on {0..5}, |D| = 3, is deterministic."""
    game = wi.worlds.uniform_subsets(range(6), 3).play(lambda records: {sum(records) % 6: 1.0})
    odds = [p / (1 - p) for p in (game.posterior(r, o) for r in range(6) for o in game.outputs)]
    assert max(odds) == pytest.approx(2.0, abs=1e-12)
    assert min(odds) == pytest.approx(0.5, abs=1e-12)
    assert game.dp().epsilon == math.inf


# --- section 3.5: theorem 8 --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 4, 6])
@each("seed", range(4))
def test_theorem_8_corrected_tpr_minus_fpr_is_at_most_twice_eta(n, seed):
    """k = n/2: every attack on every record has TPR - FPR ≤ 2η and TNR - FNR ≤ 2η, and some attack has equality."""
    law = random_mechanism(np.random.default_rng([seed, n, 8]))
    game = wi.worlds.uniform_subsets(range(n), n // 2).play(law)
    eta = game.mip().eta
    largest = 0.0
    for record in range(n):
        joint_in, joint_out = (2 * np.array(joint) for joint in in_out(range(n), n // 2, law, record))
        for guess in every_attack(4):
            tpr, fpr = joint_in[guess].sum(), joint_out[guess].sum()
            tnr, fnr = joint_out[~guess].sum(), joint_in[~guess].sum()
            assert tpr - fpr <= 2 * eta + TINY
            assert tnr - fnr <= 2 * eta + TINY
            largest = max(largest, tpr - fpr)
        assert wi.MIP(eta).roc.dominates(game.roc(record), tolerance=1e-13)
    assert largest == pytest.approx(2 * eta, abs=TINY)


@pytest.mark.parametrize("n", [2, 4, 6, 8])
@pytest.mark.parametrize("eta", [Fraction(i, 100) for i in (1, 5, 10, 25, 40, 49)])
def test_theorem_8_corrected_is_tight_and_the_printed_one_fails(n, eta):
    """Randomised response with keep-probability 1/2 + η is exactly η-MIP with TPR - FPR = 2η > η (in rationals)."""
    keep = Fraction(1, 2) + eta

    def law(records):
        return {"in": keep, "out": 1 - keep} if 0 in records else {"in": 1 - keep, "out": keep}

    best = []
    for record in range(n):
        joint_in, joint_out = in_out(range(n), n // 2, law, record)
        best.append(sum(max(a, b) for a, b in zip(joint_in, joint_out, strict=True)) - Fraction(1, 2))
    assert best[0] == max(best) == eta  # η-MIP, exactly
    joint_in, joint_out = in_out(range(n), n // 2, law, 0)
    tpr, fpr = 2 * joint_in[0], 2 * joint_out[0]
    assert tpr - fpr == 2 * eta  # the corrected theorem, attained
    assert tpr > fpr + eta  # the printed theorem, violated
    game = wi.worlds.uniform_subsets(range(n), n // 2).play(lambda r: {o: float(p) for o, p in law(r).items()})
    assert game.mip().eta == pytest.approx(float(eta), abs=TINY)
    assert game.advantage(0) == pytest.approx(game.mip().advantage, abs=TINY)
    assert game.roc(0).tpr(float(fpr)) == pytest.approx(wi.MIP(float(eta)).tpr_at(float(fpr)), abs=TINY)


@pytest.mark.parametrize("eta", [0.01, 0.1, 0.3])
def test_theorem_8_corrected_is_tight_at_every_false_positive_rate(eta):
    """The curve min(FPR + 2η, 1) of MIP is attained at all FPRs at once: reveal with probability 2η."""
    game = wi.worlds.uniform_subsets(range(4), 2).play(
        lambda records: {("surely", 0 in records): 2 * eta, "nothing": 1 - 2 * eta}
    )
    assert game.mip().eta == pytest.approx(eta, abs=TINY)
    fpr = np.linspace(0.0, 1.0, 101)
    assert game.roc(0).tpr(fpr) == pytest.approx(np.minimum(fpr + 2 * eta, 1.0), abs=1e-13)
    assert wi.MIP(eta).tpr_at(fpr) == pytest.approx(np.minimum(fpr + 2 * eta, 1.0), abs=1e-13)
    assert game.roc(0).tpr(0.0) > eta + 1e-3  # printed: TPR ≤ η at FPR 0


@pytest.mark.parametrize(("n", "k"), [(3, 1), (4, 1), (6, 2), (3, 2), (4, 3), (6, 4)])
@each("seed", range(3))
def test_theorem_8_for_every_k(n, k, seed):
    """q·TPR + (1-q)(1-FPR) ≤ max(q, 1-q) + η: TPR ≤ ((1-q)/q)FPR + η/q for q ≤ 1/2; for q ≥ 1/2 with 2q-1 on top."""
    law = random_mechanism(np.random.default_rng([seed, n, k, 9]), floor=0.01, alpha=0.4)
    game = wi.worlds.uniform_subsets(range(n), k).play(law)
    q, eta = k / n, game.mip().eta
    for record in range(n):
        joint_in, joint_out = (np.array(joint) for joint in in_out(range(n), k, law, record))
        for guess in every_attack(4):
            tpr, fpr = joint_in[guess].sum() / q, joint_out[guess].sum() / (1 - q)
            if q <= 0.5:
                assert tpr <= (1 - q) / q * fpr + eta / q + 1e-13
            else:
                assert q * tpr <= (2 * q - 1) + eta + (1 - q) * fpr + 1e-13
        assert game.mip().roc.dominates(game.roc(record), tolerance=1e-13)


@pytest.mark.parametrize("share", [0.05, 0.4, 1.0])
def test_theorem_8_for_small_k_is_tight_at_no_false_alarm(share):
    """n = 6, k = 2: naming a member with probability r has η = qr and TPR = η/q at FPR 0, the bound."""
    game = wi.worlds.uniform_subsets(range(6), 2).play(
        lambda records: {"in": share, "?": 1 - share} if 0 in records else {"?": 1.0}
    )
    q = 1 / 3
    assert game.mip().eta == pytest.approx(q * share, abs=TINY)
    assert game.roc(0).tpr(0.0) == pytest.approx(share, abs=TINY)
    assert game.mip().tpr_at(0.0) == pytest.approx(share, abs=1e-13)


@pytest.mark.parametrize(("n", "k"), [(3, 2), (4, 3), (5, 4)])
def test_theorem_8_for_large_k_promises_nothing_at_no_false_alarm(n, k):
    """q > 1/2: a 0-MIP mechanism may name a share (2q-1)/q of the members without false alarm."""
    q = k / n
    share = (2 * q - 1) / q
    game = wi.worlds.uniform_subsets(range(n), k).play(
        lambda records: {"in": share, "?": 1 - share} if 0 in records else {"?": 1.0}
    )
    assert game.mip().eta == pytest.approx(0.0, abs=TINY)
    assert game.roc(0).tpr(0.0) == pytest.approx(share, abs=TINY)
    assert wi.MIP(0.0, q).tpr_at(0.0) == pytest.approx(share, abs=TINY)


# --- summary of section 3.4 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.1])
def test_section_3_4_bound_is_the_tightest_general_one_at_one_half(epsilon, delta):
    """In the table of bounds Izzo's accuracy row is theorem 4, and no published row is below it at prior 1/2."""
    rows = {(row.name, row.quantity): row for row in wi.bounds.table(epsilon, delta)}
    izzo = rows["Izzo et al. 2022", "accuracy"]
    assert izzo.value == pytest.approx(theorem_4_accuracy(epsilon, delta), abs=TINY)
    assert izzo.tightest
    accuracies = [r.value for (_, quantity), r in rows.items() if quantity == "accuracy" and r.value is not None]
    assert min(accuracies) == pytest.approx(izzo.value, abs=1e-13)
    if delta == 0.0:
        assert rows["Thudi et al. 2022", "accuracy"].value == pytest.approx(izzo.value, abs=TINY)
        assert izzo.value < rows["Sablayrolles et al. 2019", "accuracy"].value
    assert izzo.value < rows["Erlingsson et al. 2019", "accuracy"].value
    humphries = rows["Humphries et al. 2020", "advantage"].value
    assert izzo.value == pytest.approx(0.5 + humphries / 2, abs=TINY)
    away = {(row.name, row.quantity): row for row in wi.bounds.table(epsilon, delta, prior=0.3)}
    assert away["Izzo et al. 2022", "accuracy"].value is None  # the theorem is about k = n/2


def test_section_3_4_summary_dp_is_stronger_and_mip_weaker():
    """DP ⇒ MIP in all its forms; MIP implies none of them (theorems 4, 5 and 7)."""
    sources = [wi.PureDP(1.0, "replace"), wi.ApproxDP(1.0, 0.01, "replace"), wi.GaussianDP(1.0, "replace")]
    for source in sources:
        implied = source.implies(wi.MIP)
        assert 0.0 < implied.eta < 0.5
        assert implied.advantage == pytest.approx(source.advantage, abs=1e-13)
        assert implied.roc.dominates(source.roc, tolerance=1e-12)  # weaker: its curve lies above
        assert not source.roc.dominates(implied.roc)
        with pytest.raises(ImplicationError):
            implied.implies(type(source))


def ordered_pairs(world):
    """The rows of every data set and of every one that differs from it in one record, by their members."""
    members = [set(np.flatnonzero(row)) for row in world.membership]
    return [(i, j) for i, a in enumerate(members) for j, b in enumerate(members) if len(a - b) == len(b - a) == 1]


@pytest.mark.parametrize("delta", [0.0, 0.05])
@each("seed", range(4))
def test_section_3_4_hypothesis_testing_is_dp(seed, delta):
    """Kairouz et al.: (ε, δ)-DP iff P(S) + e^ε·Q(not S) ≥ 1 - δ for all adjacent pairs and S; a smaller ε fails one."""
    law = random_mechanism(np.random.default_rng([seed, 34]), outputs=4)
    game = wi.worlds.uniform_subsets(range(4), 2).play(law)
    epsilon = game.dp(delta).epsilon

    def least(eps):
        """The smallest P(S) + e^ε·Q(not S); with S and its complement exchanged this is the second inequality."""
        rows = [game.laws[list(pair)] for pair in ordered_pairs(game.world)]
        return min(p[s].sum() + math.exp(eps) * q[~s].sum() for p, q in rows for s in every_attack(4))

    assert least(epsilon) >= 1 - delta - 1e-12
    assert least(epsilon - 1e-6) < 1 - delta


@pytest.mark.parametrize("delta", [0.0, 0.05])
@each("seed", range(3))
def test_equation_8_both_errors_on_two_adjacent_sets(seed, delta):
    """Type I and type II error add up to 2(1-δ)/(1+e^ε) or more between adjacent sets; reveal-or-respond attains it."""

    def least(game):
        pairs = [game.laws[np.array(rows)] for rows in adjacent_pairs(game.world)]
        return min(1.0 - 0.5 * np.abs(p - q).sum(axis=1).max() for p, q in pairs)

    world = wi.worlds.uniform_subsets(range(4), 2)
    game = world.play(random_mechanism(np.random.default_rng(seed)))
    assert least(game) >= 2.0 * (1.0 - delta) / (1.0 + math.exp(game.dp(delta).epsilon)) - TINY
    sharp = world.play(reveal_or_respond(0, 1.3, delta))
    assert sharp.dp(delta).epsilon == pytest.approx(1.3, rel=1e-9)
    assert least(sharp) == pytest.approx(2.0 * (1.0 - delta) / (1.0 + math.exp(1.3)), rel=1e-9)


@pytest.mark.parametrize("delta", [0.0, 0.05])
@pytest.mark.parametrize("n", [2, 4, 6])
def test_equations_9_and_10_the_error_is_a_mean_over_the_matching(n, delta):
    """P(wrong) = Σ_{D₀ ∈ in} (P(A(D₀) ∈ S) + P(A(f(D₀)) ∉ S))/C(n, n/2), with each term as equation 8 has it."""
    world = wi.worlds.uniform_subsets(range(n), n // 2)
    game = world.play(random_mechanism(np.random.default_rng([n, 9])))
    graph = adjacency_graph(n, n // 2)
    partner = maximum_bipartite_matching(csr_array(graph.astype(int)), perm_type="column")
    held = world.membership[:, 0]
    without, with_it = game.laws[~held], game.laws[held][partner]
    least = 2.0 * (1.0 - delta) / (1.0 + math.exp(game.dp(delta).epsilon))
    for accused in every_attack(4):
        errors = with_it[:, ~accused].sum(axis=1) + without[:, accused].sum(axis=1)
        wrong = 0.5 * (game.inside[0, ~accused].sum() + game.outside[0, accused].sum())
        assert errors.sum() / math.comb(n, n // 2) == pytest.approx(wrong, abs=TINY)
        assert errors.min() >= least - TINY


@pytest.mark.parametrize("n", [2, 4, 6, 8])
def test_section_3_4_number_of_sets_is_half_as_printed(n):
    """ "The C(n, n/2) subsets which contain x*, and the C(n, n/2) subsets which do not": each side has half of them."""
    held = wi.worlds.uniform_subsets(range(n), n // 2).membership[:, 0]
    assert held.sum() == (~held).sum() == math.comb(n - 1, n // 2 - 1) == math.comb(n, n // 2) // 2


@each("seed", range(4))
def test_section_3_4_two_data_sets_by_bayes(seed):
    """ε-DP moves the odds of two adjacent data sets by at most e^ε, and for some pair and output by as much."""
    game = wi.worlds.uniform_subsets(range(4), 2).play(random_mechanism(np.random.default_rng([seed, 35])))
    after = game.laws * game.world.prior[:, None] / (game.world.prior @ game.laws)
    pairs = ordered_pairs(game.world)
    odds = max((after[a] / after[b]).max() / (game.world.prior[a] / game.world.prior[b]) for a, b in pairs)
    assert odds == pytest.approx(math.exp(game.dp().epsilon), rel=1e-11)


@given(st.floats(0.0, 0.5), st.floats(0.0, 1.0))
def test_section_3_5_curve_of_mip(eta, fpr):
    """MIP's curve at k = n/2 is min(FPR + 2η, 1), twice the printed slack."""
    assert wi.MIP(eta).tpr_at(fpr) == pytest.approx(min(fpr + 2 * eta, 1.0), abs=1e-13)
    assert wi.MIP(eta).advantage == pytest.approx(2 * eta, abs=1e-15)
    assert wi.MIP(eta).accuracy() == pytest.approx(0.5 + eta, abs=1e-15)


@each("seed", range(4))
def test_section_3_5_yeom_has_the_factor_of_two(seed):
    """ "The same bound on this gap": theirs is TPR - FPR = 2·accuracy - 1, which is twice accuracy - ½."""
    game = wi.worlds.uniform_subsets(range(4), 2).play(random_mechanism(np.random.default_rng([seed, 36])))
    for record in range(4):
        assert game.advantage(record) == pytest.approx(2 * game.accuracy(record) - 1, abs=TINY)
        assert game.advantage(record) > game.accuracy(record) - 0.5 + 1e-3


# --- section 3.2: the regression example; sections 5 and 6: reconstruction, group privacy, subsampling -------------


def test_section_3_2_regression_must_be_compared_with_its_own_population():
    """Blood pressure of the ill: the model tells who is ill, and among the ill it tells nothing about who was in."""
    rng, d, p = np.random.default_rng(0), 5, 0.1
    theta = rng.normal(size=(2, d))

    def draw(count, ill):
        x = rng.normal(size=(count, d))
        y = np.ones(count, dtype=int) if ill else (rng.random(count) < p).astype(int)
        return x, np.einsum("ij,ij->i", x, theta[y])

    train = draw(1000, ill=True)
    fitted = np.linalg.lstsq(*train, rcond=None)[0]

    def fits(sample):
        return -np.round(np.abs(sample[1] - sample[0] @ fitted), 6)

    against_all = wi.audit(fits(train), fits(draw(1000, ill=False)), rng=1, assignment="random").advantage
    against_ill = wi.audit(fits(train), fits(draw(1000, ill=True)), rng=1, assignment="random").advantage
    assert against_all.lower <= 1.0 - p <= against_all.upper
    assert against_all.lower > 0.8
    assert (against_ill.estimate, against_ill.lower) == (0.0, 0.0)


@each("seed", range(4))
def test_section_5_whole_reconstruction_implies_membership(seed):
    """Who names the whole data set with probability β answers every membership question with accuracy β at least."""
    law = random_mechanism(np.random.default_rng(seed), outputs=6, floor=0.0, alpha=0.2)
    game = wi.worlds.uniform_subsets(range(4), 2).play(law)
    subsets = list(itertools.combinations(range(4), 2))
    named = sum(max(law(records)[output] for records in subsets) for output in range(6)) / len(subsets)
    assert named <= min(game.accuracy(record) for record in range(4)) + TINY
    assert named <= 0.5 + game.mip().eta + TINY


@pytest.mark.parametrize("n", [2, 3, 5])
def test_section_5_printed_reconstruction_of_one_record_is_not_prevented(n):
    """Publishing one random member is 1/(2n)-MIP, and names a member with certainty."""
    game = wi.worlds.uniform_subsets(range(2 * n), n).play(lambda records: dict.fromkeys(records, 1.0 / n))
    assert game.mip().eta == pytest.approx(1.0 / (2 * n), rel=1e-12)
    assert [game.posterior(record, record) for record in range(2 * n)] == pytest.approx([1.0] * (2 * n), rel=1e-12)


def test_section_5_linkage_is_not_prevented():
    """Which record is whose may be published: it tells nothing about who was in, and a known member's data is found."""
    pool = {"r1": "Anna", "r2": "Ben", "r3": "Cleo", "r4": "Dan"}
    game = wi.worlds.uniform_subsets(pool, 2).play(lambda _: {tuple(pool.items()): 1.0})
    assert game.mip().eta == pytest.approx(0.0, abs=TINY)
    assert game.pmp().epsilon == 0.0
    (output,) = game.outputs
    assert [record for record, person in output if person == "Cleo"] == ["r3"]


def test_section_6_mip_has_no_group_privacy():
    """0-MIP for everybody, and whether two people are together in or out is published."""
    world = wi.worlds.uniform_subsets(range(4), 2)
    game = world.play(lambda records: {(0 in records) == (1 in records): 1.0})
    assert game.mip().eta == pytest.approx(0.0, abs=TINY)
    couple = wi.worlds.explicit(["together", *range(2)], {("together", 0): 1 / 3, (1,): 2 / 3})
    revealed = couple.play(lambda records: {"together" in records: 1.0})
    assert revealed.accuracy("together") == 1.0  # 2/3 before


@pytest.mark.parametrize(("n", "k", "m"), [(4, 2, 1), (5, 3, 1), (5, 3, 2), (6, 3, 2)])
def test_section_6_subsampling_scales_the_advantage_exactly(n, k, m):
    """Training on m random of the k drawn records: advantage m/k of that of training on m random of all n.

    Given that x is not among the m, they are a random set without x, whether x was drawn or not.
    """
    law = random_mechanism(np.random.default_rng(n * k * m), floor=0.0, alpha=0.3)
    full = wi.worlds.uniform_subsets(range(n), m).play(law)

    def sampled(records):
        parts = list(itertools.combinations(records, m))
        return {o: sum(law(part)[o] for part in parts) / len(parts) for o in range(4)}

    game = wi.worlds.uniform_subsets(range(n), k).play(sampled)
    for record in range(n):
        assert game.advantage(record) == pytest.approx(m / k * full.advantage(record), rel=1e-9)


@pytest.mark.parametrize("right", [0.6, 0.9])
def test_section_3_3_who_knows_the_seed_knows_everything(right):
    """An answer that is right with chance r gives r - ½; with the coin that decided it, ½: everything."""
    world = wi.worlds.uniform_subsets(range(4), 2)

    def law(records, seed_is_known):
        inside, lie = 0 in records, 1.0 - right
        return {(inside, seed_is_known): right, (not inside, False): lie}

    assert world.play(lambda records: law(records, False)).mip().eta == pytest.approx(right - 0.5, rel=1e-11)
    assert world.play(lambda records: law(records, True)).mip().eta == pytest.approx(0.5, rel=1e-11)


@pytest.mark.parametrize("eta", [0.01, 0.2])
def test_section_2_notions_for_every_output_are_stronger(eta):
    """Li et al.'s and Lee and Clifton's notions bound every posterior: they give MIP, and MIP gives neither."""
    for source in (wi.MembershipPrivacy(2.0, "bounded"), wi.DifferentialIdentifiability(0.3, 4)):
        assert 0.0 < source.implies(wi.MIP).eta < 0.5
    game = wi.worlds.uniform_subsets(range(4), 2).play(
        lambda records: {("surely", 0 in records): 2 * eta, "nothing": 1 - 2 * eta}
    )
    assert game.mip().eta == pytest.approx(eta, rel=1e-9)
    assert game.membership_privacy().gamma == math.inf
    with pytest.raises(ImplicationError):
        wi.MIP(eta).implies(wi.MembershipPrivacy, family="bounded")
    with pytest.raises(ImplicationError):
        wi.MIP(eta).implies(wi.DifferentialIdentifiability, candidates=4)

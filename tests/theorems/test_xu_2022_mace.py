"""Xu et al. 2022, "MACE: membership privacy estimation": sections 2 and 3, lemmas 1 to 3 and theorem 1.

Experiment 1 is enumerated on small discrete worlds, and optimal classifiers are found by trying all of them. Where the
printed statement is wrong, the corrected one is shown to hold and the printed one to fail.
"""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import each
from theorem_support import every_attack, random_mechanism, reveal_or_respond

import whosin as wi
from whosin.risks import RatioMetric, advantage_at_prior

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())["mace"]

PRIORS = [0.1, 0.35, 0.5, 0.8]

# Weights of (1, TP, FP, FN, TN), numerator and denominator.
ACCURACY = RatioMetric((0, 1, 0, 0, 1), (1, 0, 0, 0, 0), name="accuracy")
TPR = RatioMetric((0, 1, 0, 0, 0), (0, 1, 0, 1, 0), name="TPR")
TNR = RatioMetric((0, 0, 0, 0, 1), (0, 0, 1, 0, 1), name="TNR")
PPV = RatioMetric((0, 1, 0, 0, 0), (0, 1, 1, 0, 0), name="PPV")
F1 = RatioMetric((0, 2, 0, 0, 0), (0, 2, 1, 1, 0), name="F1")
F2 = RatioMetric((0, 5, 0, 0, 0), (0, 5, 1, 4, 0), name="F2")
JACCARD = RatioMetric((0, 1, 0, 0, 0), (0, 1, 1, 1, 0), name="Jaccard")
KULCZYNSKI_LIKE = RatioMetric((0.1, 1, -0.2, 0, 0.3), (0.5, 1, 0.4, 0.7, 0.1), name="made up")


def experiment_1(universe, members, query):
    """Return the laws of Q_S(z) given m = 1 (z uniform in S) and given m = -1 (z uniform outside), S fixed."""
    inside, outside = {}, {}
    for z in universe:
        law, share = (inside, 1 / len(members)) if z in members else (outside, 1 / (len(universe) - len(members)))
        for output, probability in query(z).items():
            law[output] = law.get(output, 0.0) + share * probability
    outputs = sorted({*inside, *outside}, key=str)
    return np.array([inside.get(o, 0.0) for o in outputs]), np.array([outside.get(o, 0.0) for o in outputs])


def random_laws(rng, outputs=5, alpha=0.7):
    return rng.dirichlet(np.full(outputs, alpha)), rng.dirichlet(np.full(outputs, alpha))


def confusion(guess, inside, outside, p):
    """Return TP, FP, FN, TN of a classifier."""
    return (
        p * inside[guess].sum(),
        (1 - p) * outside[guess].sum(),
        p * inside[~guess].sum(),
        (1 - p) * outside[~guess].sum(),
    )


def value(metric, guess, inside, outside, p):
    """Return the metric of a classifier, nan for 0/0."""
    cells = np.array([1.0, *confusion(guess, inside, outside, p)])
    top, bottom = np.dot(metric.a, cells), np.dot(metric.b, cells)
    return top / bottom if abs(bottom) > 1e-15 else math.nan


def best_value(metric, inside, outside, p):
    values = [value(metric, guess, inside, outside, p) for guess in every_attack(len(inside))]
    return np.nanmax(values)


def member_posterior(inside, outside, p):
    return p * inside / (p * inside + (1 - p) * outside)


def f_p(inside, outside, p):
    """Equation 14."""
    return (p * inside - (1 - p) * outside) / (p * inside + (1 - p) * outside)


def drawn_experiment(n, k, law):
    """Experiment 1 with S drawn inside it: the laws of (model, z) given m = 1 and m = -1, S a uniform k-subset."""
    subsets = list(itertools.combinations(range(n), k))
    inside, outside = {}, {}
    for s in subsets:
        for model, probability in law(s).items():
            for z in range(n):
                joint, share = (inside, 1 / k) if z in s else (outside, 1 / (n - k))
                joint[model, z] = joint.get((model, z), 0.0) + probability * share / len(subsets)
    keys = sorted({*inside, *outside}, key=str)
    return np.array([inside.get(key, 0.0) for key in keys]), np.array([outside.get(key, 0.0) for key in keys])


# --- definitions 1 to 3 and lemma 1 ------------------------------------------------------------------------------


@each("p", PRIORS)
def test_definition_1_advantage_of_an_attack_is_twice_its_accuracy_minus_one(p):
    """A perfect attack has Adv 1, its opposite -1; at p = 1/2 it is TPR - FPR for every attack."""
    inside, outside = experiment_1(range(6), {0, 1, 2}, lambda z: {z // 2: 1.0})
    for guess in every_attack(3):
        tp, fp, fn, tn = confusion(guess, inside, outside, p)
        assert tp + fp + fn + tn == pytest.approx(1.0)
        if p == 0.5:
            assert 2 * (tp + tn) - 1 == pytest.approx(inside[guess].sum() - outside[guess].sum())
    known_in, known_out = experiment_1(range(6), {0, 1, 2}, lambda z: {z <= 2: 1.0})
    tells = np.array([False, True])
    assert advantage_at_prior(wi.Roc.from_likelihoods(known_in, known_out), p) == 1.0
    for guess, advantage in ((tells, 1.0), (~tells, -1.0)):
        tp, _, _, tn = confusion(guess, known_in, known_out, p)
        assert 2 * (tp + tn) - 1 == pytest.approx(advantage)


@each("p", PRIORS)
def test_definition_1_remark_a_coin_has_advantage_zero_but_a_constant_guess_does_not(p):
    """ "Random guessing has Adv 0" is true of a fair coin only; a constant guess has 2p-1 or 1-2p, a p-coin (2p-1)²."""
    inside = outside = np.array([1.0])
    always, never = np.array([True]), np.array([False])

    def advantage(guess):
        tp, _, _, tn = confusion(guess, inside, outside, p)
        return 2 * (tp + tn) - 1

    assert 0.5 * advantage(always) + 0.5 * advantage(never) == pytest.approx(0.0, abs=1e-15)
    assert p * advantage(always) + (1 - p) * advantage(never) == pytest.approx((2 * p - 1) ** 2)
    assert max(advantage(always), advantage(never)) == pytest.approx(abs(2 * p - 1))
    assert advantage_at_prior(wi.Roc.from_likelihoods(inside, outside), p) == pytest.approx(abs(2 * p - 1))
    assert wi.PureDP(0.0).risk("advantage_at_prior", p) == pytest.approx(abs(2 * p - 1))


@each("p", PRIORS)
@each("seed", range(5))
def test_definition_2_optimal_advantage_is_the_best_of_all_classifiers(p, seed):
    """Adv_p(Q_S) = max over attacks; the library reads it off the curve, and it is never below |2p-1|."""
    inside, outside = random_laws(np.random.default_rng(seed))
    best = max(2 * sum(confusion(g, inside, outside, p)[::3]) - 1 for g in every_attack(5))
    assert advantage_at_prior(wi.Roc.from_likelihoods(inside, outside), p) == pytest.approx(best, abs=1e-14)
    assert best >= abs(2 * p - 1) - 1e-15


@each("p", PRIORS)
@each("seed", range(5))
def test_lemma_1_bayes_classifier_is_optimal_and_advantage_is_the_mean_of_f(p, seed):
    """sgn(P(m=1 | Q) - 1/2) is optimal, and Adv_p = E|f_p| over the draw of Experiment 1."""
    rng = np.random.default_rng([seed, 1])
    members = set(rng.choice(8, size=3, replace=False).tolist())
    table = {z: dict(enumerate(rng.dirichlet(np.full(4, 0.6)).tolist())) for z in range(8)}
    inside, outside = experiment_1(range(8), members, table.__getitem__)
    bayes = member_posterior(inside, outside, p) > 0.5
    best = max(2 * sum(confusion(g, inside, outside, p)[::3]) - 1 for g in every_attack(4))
    tp, _, _, tn = confusion(bayes, inside, outside, p)
    marginal = p * inside + (1 - p) * outside
    assert 2 * (tp + tn) - 1 == pytest.approx(best, abs=1e-14)
    assert (marginal * np.abs(f_p(inside, outside, p))).sum() == pytest.approx(best, abs=1e-14)
    assert advantage_at_prior(wi.Roc.from_likelihoods(inside, outside), p) == pytest.approx(best, abs=1e-14)


def test_definition_3_individual_risk_is_the_conditional_advantage():
    """AdvI_p(z0) = 2·P(A*(Q) = m | Q = Q(z0)) - 1, worked out on one world by counting."""
    # Q(z) = z mod 3 on {0..5}, S = {0, 3, 1}: cell 0 holds members only, cell 1 one of each, cell 2 outsiders only.
    inside, outside = experiment_1(range(6), {0, 3, 1}, lambda z: {z % 3: 1.0})
    assert inside == pytest.approx([2 / 3, 1 / 3, 0.0])
    assert outside == pytest.approx([0.0, 1 / 3, 2 / 3])
    assert np.abs(f_p(inside, outside, 0.5)) == pytest.approx([1.0, 0.0, 1.0])
    assert np.abs(f_p(inside, outside, 0.2)) == pytest.approx([1.0, 0.6, 1.0])
    for p in (0.5, 0.2):
        world = wi.worlds.independent(["z"], [p])
        game = world.play(lambda records: dict(enumerate(inside if records else outside)))
        risks = [abs(2 * game.posterior("z", cell) - 1) for cell in range(3)]
        assert risks == pytest.approx(np.abs(f_p(inside, outside, p)).tolist())


# --- theorem 1 ---------------------------------------------------------------------------------------------------


@each("p", PRIORS)
@each("seed", range(5))
def test_theorem_1_parts_1_to_3(p, seed):
    """(1) AdvI = |f_p|; (2) its mean is Adv_p; (3) no attack does better given the output: by enumeration."""
    inside, outside = random_laws(np.random.default_rng([seed, 3]))
    marginal = p * inside + (1 - p) * outside
    bayes = member_posterior(inside, outside, p) > 0.5
    game = wi.worlds.independent("z", p).play(lambda records: dict(enumerate(inside if records else outside)))
    individual = []
    for cell in range(5):
        right = {True: p * inside[cell] / marginal[cell], False: (1 - p) * outside[cell] / marginal[cell]}
        individual.append(2 * right[bool(bayes[cell])] - 1)
        assert individual[cell] == pytest.approx(abs(f_p(inside, outside, p)[cell]), abs=1e-13)  # (1)
        assert individual[cell] == pytest.approx(2 * max(right.values()) - 1, abs=1e-13)  # (3)
        assert individual[cell] == pytest.approx(abs(2 * game.posterior("z", cell) - 1), abs=1e-13)
    optimum = advantage_at_prior(wi.Roc.from_likelihoods(inside, outside), p)
    assert np.dot(marginal, individual) == pytest.approx(optimum, abs=1e-13)  # (2)
    assert 2 * game.accuracy("z") - 1 == pytest.approx(optimum, abs=1e-13)


def test_theorem_1_part_4_printed_with_a_fixed_training_set_fails():
    """Constant training is 0-DP, yet with Q_S(z) = z and S = {0,1,2} fixed Adv = 1; the printed bound is 0."""
    world = wi.worlds.uniform_subsets(range(6), 3)
    training = world.play(lambda _: {"the same model": 1.0})
    assert training.dp().epsilon == 0.0
    inside, outside = experiment_1(range(6), {0, 1, 2}, lambda z: {z: 1.0})
    assert advantage_at_prior(wi.Roc.from_likelihoods(inside, outside)) == 1.0
    assert wi.bounds.mace_pointwise(0.0) == 0.0
    # S drawn inside the experiment: the same query tells nothing.
    drawn_in, drawn_out = drawn_experiment(6, 3, lambda _: {"the same model": 1.0})
    assert advantage_at_prior(wi.Roc.from_likelihoods(drawn_in, drawn_out)) == pytest.approx(0.0, abs=1e-14)


def test_theorem_1_part_4_averaging_over_training_randomness_alone_does_not_help():
    """With S fixed and ε-DP training that is random, the query z alone still has Adv 1."""
    law = reveal_or_respond(0, 0.5)
    inside, outside = {}, {}
    for z in range(6):
        for model, probability in law((0, 1, 2)).items():
            side = inside if z <= 2 else outside
            side[z, model] = side.get((z, model), 0.0) + probability / 3
    keys = sorted({*inside, *outside}, key=str)
    laws = [np.array([side.get(key, 0.0) for key in keys]) for side in (inside, outside)]
    assert wi.worlds.uniform_subsets(range(6), 3).play(law).dp().epsilon == pytest.approx(0.5, abs=1e-13)
    assert advantage_at_prior(wi.Roc.from_likelihoods(*laws)) == pytest.approx(1.0, abs=1e-14)
    assert wi.bounds.mace_pointwise(0.5) < 0.25


@each("p", PRIORS)
@pytest.mark.parametrize(("n", "k"), [(2, 1), (4, 2), (5, 2), (4, 3)])
@each("seed", range(4))
def test_theorem_1_part_4_corrected_with_a_random_training_set(n, k, seed, p):
    """S drawn inside: |ln ratio| ≤ ε, |f_p| ≤ max|tanh((±ε+λ)/2)| pointwise, Adv_p ≤ max(|2p-1|, tanh(ε/2))."""
    law = random_mechanism(np.random.default_rng([seed, n, k]))
    epsilon = wi.worlds.uniform_subsets(range(n), k).play(law).dp().epsilon
    inside, outside = drawn_experiment(n, k, law)
    logit = math.log(p / (1 - p))
    pointwise = max(abs(math.tanh((epsilon + logit) / 2)), abs(math.tanh((-epsilon + logit) / 2)))
    average = max(abs(2 * p - 1), math.tanh(epsilon / 2))
    assert np.abs(np.log(inside / outside)).max() <= epsilon + 1e-13
    assert np.abs(f_p(inside, outside, p)).max() <= pointwise + 1e-13
    optimum = np.abs(p * inside - (1 - p) * outside).sum()
    assert optimum <= average + 1e-13
    assert wi.bounds.mace_pointwise(epsilon, p) == pytest.approx(pointwise, abs=1e-14)
    assert wi.bounds.mace_average(epsilon, p) == pytest.approx(average, abs=1e-14)
    assert wi.PureDP(epsilon, "replace").risk("advantage_at_prior", p) == pytest.approx(average, abs=1e-13)


@each("seed", range(4))
def test_theorem_1_part_4_corrected_holds_for_any_query(seed):
    """Any query φ(model, z, coins) is post-processing of (model, z): the same bounds hold for a random channel."""
    rng = np.random.default_rng([seed, 4])
    law = random_mechanism(rng)
    epsilon = wi.worlds.uniform_subsets(range(4), 2).play(law).dp().epsilon
    inside, outside = drawn_experiment(4, 2, law)
    channel = rng.dirichlet(np.full(3, 0.4), size=len(inside))
    q_in, q_out = inside @ channel, outside @ channel
    assert np.abs(np.log(q_in / q_out)).max() <= epsilon + 1e-13
    for p in PRIORS:
        full = np.abs(p * inside - (1 - p) * outside).sum()
        assert np.abs(p * q_in - (1 - p) * q_out).sum() <= full + 1e-14


def test_theorem_1_part_4_corrected_for_iid_training_sets():
    """S ~ D^n and m = -1 a fresh draw: the same bounds, by enumeration of D = {0, 1, 2} and n = 2."""
    chances = {0: 0.5, 1: 0.3, 2: 0.2}
    law = random_mechanism(np.random.default_rng(14), floor=0.3)
    worst, inside, outside = 0.0, {}, {}
    for s in itertools.product(chances, repeat=2):
        here = np.array(list(law(tuple(sorted(s))).values()))
        for position, z in itertools.product(range(2), chances):
            other = tuple(sorted((z, s[1 - position])))
            worst = max(worst, np.abs(np.log(here / np.array(list(law(other).values())))).max())
        for model, probability in enumerate(here):
            chance = chances[s[0]] * chances[s[1]] * probability
            for z in s:
                inside[model, z] = inside.get((model, z), 0.0) + chance / 2
            for z, share in chances.items():
                outside[model, z] = outside.get((model, z), 0.0) + chance * share
    r, q = (np.array([side[key] for key in sorted(outside)]) for side in (inside, outside))
    assert np.abs(np.log(r / q)).max() <= worst + 1e-13
    for p in PRIORS:
        assert np.abs(f_p(r, q, p)).max() <= wi.bounds.mace_pointwise(worst, p) + 1e-13
        assert np.abs(p * r - (1 - p) * q).sum() <= wi.bounds.mace_average(worst, p) + 1e-13


@each("p", PRIORS)
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
def test_theorem_1_part_4_corrected_is_attained(epsilon, p):
    """Randomised response on two records reaches both the pointwise and the average bound, at every prior."""
    inside, outside = drawn_experiment(2, 1, reveal_or_respond(0, epsilon))
    seen = inside + outside > 0
    inside, outside = inside[seen], outside[seen]
    assert np.abs(f_p(inside, outside, p)).max() == pytest.approx(wi.bounds.mace_pointwise(epsilon, p), abs=1e-14)
    optimum = np.abs(p * inside - (1 - p) * outside).sum()
    assert optimum == pytest.approx(wi.bounds.mace_average(epsilon, p), abs=1e-14)


def test_theorem_1_part_4_golden_values():
    """tanh(1/2) = .4621 at p = 1/2; at p = .1, ε = 1: .92146 pointwise and .8 on average."""
    assert wi.bounds.mace_pointwise(1.0) == pytest.approx(GOLDEN["tanh_half"], abs=1e-15)
    assert wi.bounds.mace_average(1.0) == pytest.approx(0.46211715726000974, abs=1e-15)
    assert wi.PureDP(1.0, "replace").advantage == pytest.approx(GOLDEN["tanh_half"], abs=1e-15)
    assert wi.bounds.mace_pointwise(1.0, 0.1) == pytest.approx(GOLDEN["bound_p01_eps1_individual"], abs=1e-14)
    assert wi.bounds.mace_pointwise(1.0, 0.1) == pytest.approx(0.9214593988998988, abs=1e-14)
    assert wi.bounds.mace_average(1.0, 0.1) == pytest.approx(GOLDEN["bound_p01_eps1_average"], abs=1e-15)
    assert GOLDEN["bound_p01_eps1_average"] == 0.8
    assert wi.bounds.mace_average(10.0) == pytest.approx(GOLDEN["tanh_5"], abs=1e-15)
    assert GOLDEN["tanh_5"] > 0.9999  # printed: .999
    assert wi.bounds.mace_average(2.0) == pytest.approx(GOLDEN["tanh_1"], abs=1e-15)


@given(st.floats(0.0, 20.0), st.floats(1e-6, 1 - 1e-6))
def test_theorem_1_part_4_average_never_exceeds_pointwise(epsilon, p):
    """The average obeys the smaller bound; both are equal at p = 1/2, and both are those of the curve of PureDP."""
    pointwise, average = wi.bounds.mace_pointwise(epsilon, p), wi.bounds.mace_average(epsilon, p)
    assert average <= pointwise + 1e-14
    assert wi.bounds.mace_pointwise(epsilon) == pytest.approx(wi.bounds.mace_average(epsilon), abs=1e-15)
    low, high = wi.PureDP(epsilon, "replace").posterior(p, world="fixed_size")
    assert max(abs(2 * low - 1), abs(2 * high - 1)) == pytest.approx(pointwise, abs=1e-9)


@pytest.mark.parametrize("delta", [0.01, 0.1, 0.4])
@each("seed", range(4))
def test_theorem_1_part_4_for_approximate_dp_the_average_is_bounded(seed, delta):
    """(ε, δ)-DP training: accuracy ≤ δ + (1-δ)/(1+e^-ε) at p = 1/2, and the ceiling with the prior at other p."""
    law = random_mechanism(np.random.default_rng([seed, 5]))
    epsilon = wi.worlds.uniform_subsets(range(4), 2).play(law).dp(delta).epsilon
    inside, outside = drawn_experiment(4, 2, law)
    symmetric = delta + (1 - delta) / (1 + math.exp(-epsilon))
    assert 0.5 + 0.5 * np.abs(0.5 * (inside - outside)).sum() <= symmetric + 1e-13
    for p in PRIORS:
        accuracy = np.maximum(p * inside, (1 - p) * outside).sum()
        assert accuracy <= max((1 - p) + p * delta, p + (1 - p) * delta, symmetric) + 1e-13
        assert accuracy <= wi.ApproxDP(epsilon, delta, "replace").accuracy(p) + 1e-13


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.02), (1.0, 0.3), (3.0, 0.1)])
def test_theorem_1_part_4_for_approximate_dp_is_attained_and_no_pointwise_bound_exists(epsilon, delta):
    """Revealing with probability δ reaches the average bound, and |f_p| = 1 at the revealing output."""
    inside, outside = drawn_experiment(2, 1, reveal_or_respond(0, epsilon, delta))
    assert wi.worlds.uniform_subsets(range(2), 1).play(reveal_or_respond(0, epsilon, delta)).dp(
        delta
    ).epsilon == pytest.approx(epsilon, abs=1e-12)
    accuracy = np.maximum(0.5 * inside, 0.5 * outside).sum()
    assert accuracy == pytest.approx(delta + (1 - delta) / (1 + math.exp(-epsilon)), abs=1e-14)
    assert accuracy == pytest.approx(wi.ApproxDP(epsilon, delta, "replace").accuracy(), abs=1e-14)
    assert np.abs(f_p(inside, outside, 0.5)).max() == 1.0
    assert wi.ApproxDP(epsilon, delta, "replace").posterior(0.5, world="fixed_size") == (0.0, 1.0)


# --- lemma 2 -----------------------------------------------------------------------------------------------------


def linear_metric(rng, kappa):
    """Return a metric whose denominator does not depend on the guess, with κ of the wanted sign."""
    while True:
        a = rng.uniform(-1, 1, size=5)
        a[4] += (kappa - (a[1] - a[2] - a[3] + a[4])) if kappa == 0 else 0.0
        if kappa == 0 or kappa * (a[1] - a[2] - a[3] + a[4]) > 0.05:
            break
    b0, b1, b2 = rng.uniform(0.1, 1, size=3)
    return RatioMetric(a.tolist(), (b0, b1, b2, b1, b2))


@each("p", PRIORS)
@each("seed", range(8))
def test_lemma_2_corrected_positive_kappa(p, seed):
    """κ = a11-a10-a01+a00 > 0: the best of all classifiers says 1 iff P(m=1 | Q) > t = (a00-a10)/κ."""
    rng = np.random.default_rng([seed, 20])
    metric, (inside, outside) = linear_metric(rng, 1), random_laws(rng)
    _, a11, a10, a01, a00 = metric.a
    t = metric.threshold()
    assert t == pytest.approx((a00 - a10) / (a11 - a10 - a01 + a00))
    assert metric.threshold(wi.Roc.from_likelihoods(inside, outside), p) == pytest.approx(t)
    best = best_value(metric, inside, outside, p)
    rule = member_posterior(inside, outside, p) > t
    assert value(metric, rule, inside, outside, p) == pytest.approx(best, abs=1e-13)
    assert metric(wi.Roc.from_likelihoods(inside, outside), p) == pytest.approx(best, abs=1e-12)


@each("p", PRIORS)
@each("seed", range(8))
def test_lemma_2_corrected_negative_kappa_flips_the_rule(p, seed):
    """κ < 0: the best classifier says 1 iff P(m=1 | Q) < t; the printed rule is the worst one (threshold: None)."""
    rng = np.random.default_rng([seed, 21])
    metric, (inside, outside) = linear_metric(rng, -1), random_laws(rng)
    _, a11, a10, a01, a00 = metric.a
    t = (a00 - a10) / (a11 - a10 - a01 + a00)
    assert metric.threshold() is None
    values = [value(metric, guess, inside, outside, p) for guess in every_attack(5)]
    posterior = member_posterior(inside, outside, p)
    assert value(metric, posterior < t, inside, outside, p) == pytest.approx(max(values), abs=1e-13)
    assert value(metric, posterior > t, inside, outside, p) == pytest.approx(min(values), abs=1e-13)
    assert metric(wi.Roc.from_likelihoods(inside, outside), p) == pytest.approx(max(values), abs=1e-12)


@each("p", PRIORS)
@each("seed", range(4))
def test_lemma_2_corrected_zero_kappa_makes_a_constant_guess_best(p, seed):
    """κ = 0: "always" or "never" is as good as any classifier."""
    rng = np.random.default_rng([seed, 22])
    metric, (inside, outside) = linear_metric(rng, 0), random_laws(rng)
    best = best_value(metric, inside, outside, p)
    constant = [value(metric, np.full(5, guess), inside, outside, p) for guess in (True, False)]
    assert max(constant) == pytest.approx(best, abs=1e-13)
    assert metric(wi.Roc.from_likelihoods(inside, outside), p) == pytest.approx(best, abs=1e-12)
    assert RatioMetric((0, 1, 1, 0, 0), (1, 0, 0, 0, 0)).threshold() is None


def test_lemma_2_printed_without_the_sign_of_kappa_fails():
    """Minus accuracy has t = 1/2 by the printed formula; its rule reaches the least value, the flipped one the most."""
    metric = RatioMetric((0, -1, 0, 0, -1), (1, 0, 0, 0, 0))
    inside, outside = np.array([0.7, 0.3]), np.array([0.2, 0.8])
    t = (-1 - 0) / (-1 - 0 - 0 - 1)
    assert t == 0.5
    posterior = member_posterior(inside, outside, 0.5)
    assert value(metric, posterior > t, inside, outside, 0.5) == pytest.approx(-0.75)
    assert value(metric, posterior < t, inside, outside, 0.5) == pytest.approx(-0.25)
    assert best_value(metric, inside, outside, 0.5) == pytest.approx(-0.25)
    assert metric(wi.Roc.from_likelihoods(inside, outside), 0.5) == pytest.approx(-0.25)


def test_lemma_2_printed_proof_has_its_inequality_reversed():
    """The proof predicts 1 when η·a01 + (1-η)·a00 ≥ η·a11 + (1-η)·a10: for accuracy that is η ≤ 1/2, the worst rule."""
    _, a11, a10, a01, a00 = ACCURACY.a
    inside, outside = np.array([0.7, 0.3]), np.array([0.2, 0.8])
    eta = member_posterior(inside, outside, 0.5)
    printed = eta * a01 + (1 - eta) * a00 >= eta * a11 + (1 - eta) * a10
    assert value(ACCURACY, printed, inside, outside, 0.5) == pytest.approx(0.25)
    assert value(ACCURACY, ~printed, inside, outside, 0.5) == pytest.approx(0.75)


@each("p", PRIORS)
def test_lemma_2_examples_accuracy_am_and_recall(p):
    """t = 1/2 for accuracy, p for AM, 0 for TPR (always accusing is best), 1 for TNR."""
    am = RatioMetric((0, 1 / (2 * p), 0, 0, 1 / (2 * (1 - p))), (1, 0, 0, 0, 0), name="AM")
    assert ACCURACY.threshold() == GOLDEN["t_ACC"] == 0.5
    assert am.threshold() == pytest.approx(p, abs=1e-15)
    assert TPR.threshold() == 0.0
    assert TNR.threshold() == 1.0
    for seed in range(5):
        inside, outside = random_laws(np.random.default_rng([seed, 23]))
        roc = wi.Roc.from_likelihoods(inside, outside)
        posterior = member_posterior(inside, outside, p)
        for metric, t, named in (
            (ACCURACY, 0.5, wi.risks.accuracy),
            (am, p, wi.risks.am),
            (TPR, 0.0, None),
            (TNR, 1.0, None),
        ):
            best = best_value(metric, inside, outside, p)
            assert value(metric, posterior > t, inside, outside, p) == pytest.approx(best, abs=1e-13)
            assert metric(roc, p) == pytest.approx(best, abs=1e-12)
            if named is not None:
                assert named(roc, p) == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("weight", [0.1, 0.5, 0.9])
@each("p", PRIORS)
def test_lemma_2_weighted_accuracy(weight, p):
    """w·TP + (1-w)·TN over w·p + (1-w)(1-p) has t = 1-w; the library's risk is the best of all classifiers."""
    metric = wi.risks.weighted_accuracy(weight)
    assert metric.threshold() == pytest.approx(1 - weight, abs=1e-15)
    for seed in range(4):
        inside, outside = random_laws(np.random.default_rng([seed, 24]))
        best = best_value(metric, inside, outside, p)
        rule = member_posterior(inside, outside, p) > 1 - weight
        assert value(metric, rule, inside, outside, p) == pytest.approx(best, abs=1e-13)
        assert metric(wi.Roc.from_likelihoods(inside, outside), p) == pytest.approx(best, abs=1e-12)


# --- lemma 3 -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", [F1, F2, JACCARD, KULCZYNSKI_LIKE], ids=lambda m: m.name)
@each("p", PRIORS)
@each("seed", range(5))
def test_lemma_3_threshold_from_the_optimum(metric, p, seed):
    """t* = (h2·L* - e2)/(e1 - h1·L*) with L* the best value: thresholding there is the best of all classifiers."""
    inside, outside = random_laws(np.random.default_rng([seed, 30]))
    roc = wi.Roc.from_likelihoods(inside, outside)
    best = best_value(metric, inside, outside, p)
    assert metric(roc, p) == pytest.approx(best, abs=1e-12)
    _, a11, a10, a01, a00 = metric.a
    _, b11, b10, b01, b00 = metric.b
    e1, e2 = a11 - a10 - a01 + a00, a10 - a00
    h1, h2 = b11 - b10 - b01 + b00, b10 - b00
    assert e1 > h1 * best
    t = (h2 * best - e2) / (e1 - h1 * best)
    assert metric.threshold(roc, p) == pytest.approx(t, abs=1e-12)
    assert metric.threshold() is None  # without the curve there is no such rule
    rule = member_posterior(inside, outside, p) > t - 1e-12
    assert value(metric, rule, inside, outside, p) == pytest.approx(best, abs=1e-12)


@each("p", PRIORS)
@each("seed", range(4))
def test_lemma_3_case_2_the_direction_flips(p, seed):
    """e1 < h1·L*: F1 of the opposite guess is best served by saying 1 iff P(m=1 | Q) < t*."""
    flipped = RatioMetric((0, 0, 0, 2, 0), (0, 1, 0, 2, 1))
    inside, outside = random_laws(np.random.default_rng([seed, 31]))
    roc = wi.Roc.from_likelihoods(inside, outside)
    best = best_value(flipped, inside, outside, p)
    e1, e2, h1, h2 = -2.0, 0.0, 1 - 0 - 2 + 1, 0 - 1
    assert e1 < h1 * best
    t = (h2 * best - e2) / (e1 - h1 * best)
    assert flipped.threshold(roc, p) is None
    assert flipped(roc, p) == pytest.approx(best, abs=1e-12)
    assert best == pytest.approx(best_value(F1, inside, outside, p), abs=1e-13)
    rule = member_posterior(inside, outside, p) < t + 1e-12
    assert value(flipped, rule, inside, outside, p) == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize("metric", [F1, F2, JACCARD, KULCZYNSKI_LIKE], ids=lambda m: m.name)
def test_lemma_3_on_a_smooth_curve(metric):
    """With continuous outputs (two unit normals one apart) the optimum is that of the best threshold on a fine grid."""
    roc, p = wi.GaussianDP(1.0).roc, 0.3
    fpr = np.linspace(0.0, 1.0, 200_001)
    tpr = roc.tpr(fpr)
    cells = np.array([np.ones_like(fpr), p * tpr, (1 - p) * fpr, p * (1 - tpr), (1 - p) * (1 - fpr)])
    ratios = np.dot(metric.a, cells) / np.dot(metric.b, cells)
    best = metric(roc, p)
    assert best == pytest.approx(ratios.max(), abs=1e-9)
    assert best >= ratios.max() - 1e-15
    # At the optimum the posterior P(m=1 | Q) equals t*: slope of the curve times prior odds.
    at = fpr[ratios.argmax()]
    slope = float((roc.tpr(at + 1e-5) - roc.tpr(at - 1e-5)) / 2e-5)
    t = metric.threshold(roc, p)
    assert slope * p / (slope * p + 1 - p) == pytest.approx(t, abs=2e-4)


# --- PPV ---------------------------------------------------------------------------------------------------------


@each("p", PRIORS)
@each("seed", range(5))
def test_lemma_3_ppv_is_degenerate(p, seed):
    """PPV: L* is the supremum of P(m=1 | Q), t* = L*, and the rule "posterior above t*" accuses nobody: 0/0."""
    inside, outside = random_laws(np.random.default_rng([seed, 40]), alpha=2.0)
    roc = wi.Roc.from_likelihoods(inside, outside)
    posterior = member_posterior(inside, outside, p)
    assert best_value(PPV, inside, outside, p) == pytest.approx(posterior.max(), abs=1e-14)
    assert PPV(roc, p) == pytest.approx(posterior.max(), abs=1e-12)
    assert wi.risks.ppv(roc, p) == pytest.approx(posterior.max(), abs=1e-12)
    assert PPV.threshold(roc, p) == pytest.approx(posterior.max(), abs=1e-12)
    nobody = posterior > posterior.max()
    assert math.isnan(value(PPV, nobody, inside, outside, p))
    ppv_of_some = [value(PPV, g, inside, outside, p) for g in every_attack(5) if g.sum() > 1]
    assert max(ppv_of_some) < posterior.max()  # only the one top cell reaches it


def test_lemma_3_ppv_has_no_best_attack_on_a_continuous_query():
    """On normals PPV rises to 1 as FPR falls to 0: the supremum is 1, never reached; at a fixed FPR it is a number."""
    curve = wi.GaussianDP(1.0)
    values = [curve.risk(wi.risks.ppv_at_fpr(fpr), 0.3) for fpr in (0.1, 1e-3, 1e-6, 1e-12)]
    assert values == sorted(values)
    assert values[-1] < 1.0
    assert curve.risk("ppv", 0.3) == 1.0
    tpr = float(curve.tpr_at(0.1))
    assert values[0] == pytest.approx(0.3 * tpr / (0.3 * tpr + 0.7 * 0.1), abs=1e-14)


@each("p", PRIORS)
@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_ppv_of_pure_dp_is_the_largest_posterior(p, epsilon):
    """sup PPV of ε-DP is 1/(1+e^-ε(1-p)/p), reached by randomised response; as a ratio metric it is the same."""
    limit = 1 / (1 + math.exp(-epsilon) * (1 - p) / p)
    assert wi.PureDP(epsilon).risk("ppv", p) == pytest.approx(limit, abs=1e-12)
    assert wi.PureDP(epsilon).risk(PPV, p) == pytest.approx(limit, abs=1e-12)
    inside, outside = drawn_experiment(2, 1, reveal_or_respond(0, epsilon))
    seen = inside + outside > 0
    assert best_value(PPV, inside[seen], outside[seen], p) == pytest.approx(limit, abs=1e-14)


def test_equation_8_metrics_need_a_positive_denominator():
    """A ratio whose denominator turns negative for some attack has no meaning and is refused."""
    with pytest.raises(wi.errors.InputError, match="denominator"):
        RatioMetric((0, 1, 0, 0, 0), (0, 1, -1, 0, 0))(wi.PureDP(1.0).roc, 0.5)


@each("p", PRIORS)
@each("seed", range(3))
def test_appendix_b_five_metrics_are_of_the_family(p, seed):
    """Accuracy, PPV, TPR, TNR and WA by the weights of equation 8 are the ratios of appendix B, for all classifiers."""
    w = (0.7, 0.2, 0.4, 0.9)
    weighted = RatioMetric((0, w[0], 0, 0, w[1]), (0, w[0], w[2], w[3], w[1]), name="WA")
    accuracy = RatioMetric((0, 1, 0, 0, 1), (0, 1, 1, 1, 1))
    inside, outside = random_laws(np.random.default_rng([seed, 50]))
    for guess in every_attack(5):
        tp, fp, fn, tn = confusion(guess, inside, outside, p)
        printed = {
            accuracy: (tp + tn, tp + fp + tn + fn),
            PPV: (tp, tp + fp),
            TPR: (tp, tp + fn),
            TNR: (tn, fp + tn),
            weighted: (w[0] * tp + w[1] * tn, w[0] * tp + w[1] * tn + w[2] * fp + w[3] * fn),
        }
        for metric, (top, bottom) in printed.items():
            if bottom > 1e-15:
                assert value(metric, guess, inside, outside, p) == pytest.approx(top / bottom, abs=1e-13)
    roc = wi.Roc.from_likelihoods(inside, outside)
    for metric in (accuracy, PPV, TPR, TNR, weighted):
        assert metric(roc, p) == pytest.approx(best_value(metric, inside, outside, p), abs=1e-12)
    assert accuracy(roc, p) == pytest.approx(wi.risks.accuracy(roc, p), abs=1e-12)


@given(st.floats(1e-6, 1e6), st.floats(0.01, 0.99))
def test_equation_23_and_the_monotone_odds(ratio, p):
    """(x - 1)/(x + 1) = tanh(½ ln x) rises with x; at x = odds times ratio it is f_p, so that theorem 2 may plug in."""
    x = p / (1 - p) * ratio
    assert (x - 1) / (x + 1) == pytest.approx(math.tanh(0.5 * math.log(x)), abs=1e-12)
    assert f_p(ratio, 1.0, p) == pytest.approx(math.tanh(0.5 * math.log(x)), abs=1e-12)
    assert (1.1 * x - 1) / (1.1 * x + 1) > (x - 1) / (x + 1)
    assert abs(f_p(ratio, 1.0, p)) <= wi.bounds.mace_pointwise(abs(math.log(ratio)), p) + 1e-12

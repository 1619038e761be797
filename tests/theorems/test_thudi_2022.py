"""Thudi, Shumailov, Boenisch and Papernot, "Bounding membership inference" (2022).

Every numbered statement and printed number, by enumeration of worlds in which records are in or out independently.
Statements that hold only after a correction are tested twice: as corrected, and the printed one against a world that
breaks it.
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
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr
from theorem_support import random_laws, subsets

import whosin as wi
from whosin.errors import CalibrationError, ImplicationError

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())["thudi"]
EXACT = 1e-12


def add_remove_epsilon(laws):
    """Smallest ε of ε-DP under add/remove: compare each data set with itself less one record."""
    without = lambda data_set, record: tuple(other for other in data_set if other != record)  # noqa: E731
    return max(abs(math.log(laws[d][s] / laws[without(d, t)][s])) for d in laws for t in d for s in laws[d])


def upper(prior, epsilon):
    """Theorem 1's upper bound 1/(1 + e^{-ε}(1-p)/p)."""
    return 1 / (1 + math.exp(-epsilon) * (1 - prior) / prior)


def rising_event(n, epsilon):
    """An ε-DP mechanism with an event of probability ∝ e^{ε|D|}: every member makes it e^ε times as likely."""
    least = math.exp(-epsilon * (n - 1)) / (1 + math.exp(epsilon))

    def law(records):
        hit = least * math.exp(epsilon * len(records))
        return {"hit": hit, "miss": 1 - hit}

    return law


class TestLemma1:
    """Data sets with x* and without it correspond one to one, with P(D)·P_x*(0)/P_x*(1) = P(D')."""

    @each("seed", range(5))
    def test_lemma_1_bijection_of_weights(self, seed):
        """Removing x* maps the data sets with it onto those without it and scales their probability by (1-p)/p."""
        probabilities = np.random.default_rng(seed).uniform(0.05, 0.95, size=4)
        world = wi.worlds.independent("abcd", probabilities)
        weight = dict(zip(world.masks.tolist(), world.prior.tolist(), strict=True))
        for i, p in enumerate(probabilities):
            inside = [mask for mask in weight if mask >> i & 1]
            assert {mask ^ (1 << i) for mask in inside} == {mask for mask in weight if not mask >> i & 1}
            for mask in inside:
                assert weight[mask] * (1 - p) / p == pytest.approx(weight[mask ^ (1 << i)], rel=EXACT)

    def test_lemma_1_needs_independence(self):
        """Two records that are always together have no such correspondence."""
        world = wi.worlds.explicit("ab", {"ab": 0.5, "": 0.5})
        assert not {mask ^ 1 for mask in world.masks.tolist() if mask & 1} & set(world.masks.tolist())


class TestTheorem1:
    """ε-DP (add/remove), independent inclusion: 1/(1+e^ε(1-p)/p) ≤ P(x* ∈ D | S) ≤ 1/(1+e^{-ε}(1-p)/p)."""

    @each("seed", range(10))
    def test_theorem_1_posterior_bounds_hold_for_every_event(self, seed):
        """Random ε-DP mechanisms, record-specific priors, every set S of outputs, both ends."""
        rng = np.random.default_rng(seed)
        laws = random_laws(rng, subsets("abc"))
        epsilon = add_remove_epsilon(laws)
        for _ in range(5):
            probabilities = rng.uniform(0.01, 0.99, size=3)
            game = wi.worlds.independent("abc", probabilities).play(lambda records: laws[records])
            assert game.dp().epsilon == pytest.approx(epsilon, rel=EXACT)
            for i, p in enumerate(probabilities.tolist()):
                low, high = wi.PureDP(epsilon).posterior(p)
                assert high == pytest.approx(upper(p, epsilon), rel=EXACT)
                assert low == pytest.approx(upper(p, -epsilon), rel=EXACT)
                for event in ([0], [1], [2], [0, 1], [0, 2], [1, 2], [0, 1, 2]):
                    inside, outside = game.inside[i, event].sum(), game.outside[i, event].sum()
                    belief = p * inside / (p * inside + (1 - p) * outside)
                    assert low - EXACT <= belief <= high + EXACT
                for output in range(3):
                    assert low - EXACT <= game.posterior("abc"[i], output) <= high + EXACT

    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
    @pytest.mark.parametrize("prior", [0.01, 0.3, 0.5, 0.9])
    def test_theorem_1_both_ends_are_attained(self, prior, epsilon):
        """Randomised response on the membership reaches the upper and the lower end at every prior."""
        mechanism = wi.mechanisms.RandomizedResponse(lambda records: "x" in records, epsilon)
        game = wi.worlds.independent("xy", [prior, 0.4]).play(mechanism)
        low, high = wi.PureDP(epsilon).posterior(prior)
        assert game.posterior("x", True) == pytest.approx(high, rel=1e-11)
        assert game.posterior("x", False) == pytest.approx(low, rel=1e-11)
        assert high == pytest.approx(upper(prior, epsilon), rel=EXACT)

    def test_theorem_1_fails_from_replace_one_dp(self):
        """A(D) = |D| is 0-DP if one record replaces another, and tells the membership of the only record for sure."""
        size = lambda records: {len(records): 1.0}  # noqa: E731
        assert wi.worlds.uniform_subsets("abc", 2).play(size).dp() == wi.PureDP(0.0, "replace")
        alone = wi.worlds.independent("x", 0.5).play(size)
        assert (alone.posterior("x", 1), alone.posterior("x", 0)) == (1.0, 0.0)
        several = wi.worlds.independent("abc", [0.2, 0.5, 0.5]).play(size)
        assert several.posterior("a", 3) == 1.0
        for prior in (0.01, 0.5):
            with pytest.raises(ImplicationError, match=r"A\(D\) = \|D\|"):
                wi.PureDP(0.0, "replace").posterior(prior)

    def test_theorem_1_in_worlds_of_one_size_takes_replace_one(self):
        """For fixed-size data sets the same form follows from replace-one DP, and from add/remove with 2ε."""
        assert wi.PureDP(0.7, "replace").posterior(0.2, "fixed_size")[1] == pytest.approx(upper(0.2, 0.7), rel=EXACT)
        assert wi.PureDP(0.7).posterior(0.2, "fixed_size")[1] == pytest.approx(upper(0.2, 1.4), rel=EXACT)
        laws = random_laws(np.random.default_rng(3), list(itertools.combinations("abcd", 2)))
        game = wi.worlds.uniform_subsets("abcd", 2).play(lambda records: laws[records])
        low, high = game.dp().posterior(0.5, "fixed_size")
        beliefs = [game.posterior(record, output) for record in "abcd" for output in range(3)]
        assert low - EXACT <= min(beliefs)
        assert max(beliefs) <= high + EXACT

    def test_theorem_1_needs_independent_inclusion(self):
        """Three records all in or all out: one output of an ε-DP mechanism breaks the bound."""
        epsilon, prior = 1.0, 0.2
        world = wi.worlds.explicit("abc", {"abc": prior, "": 1 - prior})
        belief = world.play(rising_event(3, epsilon)).posterior("a", "hit")
        assert belief == pytest.approx(upper(prior, 3 * epsilon), rel=1e-11)
        assert belief > wi.PureDP(epsilon).posterior(prior)[1] + 0.1


class TestDefinition1AndCorollary1:
    """Negative accuracy P(x* ∉ D | S) lies between 1/(1+e^ε p/(1-p)) and 1/(1+e^{-ε} p/(1-p))."""

    @each("seed", range(6))
    def test_corollary_1_negative_accuracy_bounds_hold(self, seed):
        """Random mechanisms and priors: one minus the posterior stays within the bounds."""
        rng = np.random.default_rng(seed)
        laws = random_laws(rng, subsets("abc"))
        epsilon, probabilities = add_remove_epsilon(laws), rng.uniform(0.01, 0.99, size=3)
        game = wi.worlds.independent("abc", probabilities).play(lambda records: laws[records])
        for record, p in zip("abc", probabilities.tolist(), strict=True):
            odds = p / (1 - p)
            least, most = 1 / (1 + math.exp(epsilon) * odds), 1 / (1 + math.exp(-epsilon) * odds)
            low, high = wi.PureDP(epsilon).posterior(p)
            assert (1 - high, 1 - low) == (pytest.approx(least, abs=EXACT), pytest.approx(most, abs=EXACT))
            for output in range(3):
                assert least - EXACT <= 1 - game.posterior(record, output) <= most + EXACT

    @pytest.mark.parametrize("prior", [0.05, 0.5, 0.8])
    def test_corollary_1_is_attained(self, prior):
        """Randomised response reaches both ends."""
        mechanism = wi.mechanisms.RandomizedResponse(lambda records: bool(records), 1.2)
        game = wi.worlds.independent("x", prior).play(mechanism)
        odds = prior / (1 - prior)
        assert 1 - game.posterior("x", True) == pytest.approx(1 / (1 + math.exp(1.2) * odds), rel=1e-11)
        assert 1 - game.posterior("x", False) == pytest.approx(1 / (1 + math.exp(-1.2) * odds), rel=1e-11)

    def test_corollary_1_proof_has_an_inequality_reversed(self):
        """It starts from "positive accuracy ≤ 1/(1 + e^ε(1-p)/p)", which is theorem 1's lower end."""
        game = wi.worlds.independent("x", 0.3).play(wi.mechanisms.RandomizedResponse(bool, 1.2))
        lower = wi.PureDP(1.2).posterior(0.3)[0]
        assert lower == pytest.approx(1 / (1 + math.exp(1.2) * 0.7 / 0.3), rel=EXACT)
        assert game.posterior("x", True) > lower + 0.4
        assert game.posterior("x", False) >= lower - EXACT

    @given(st.floats(0.0, 15.0))
    def test_corollary_1_equals_theorem_1_at_one_half(self, epsilon):
        """At p = ½ both give one limit on the accuracy of any attack, 1/(1+e^{-ε})."""
        low, high = wi.PureDP(epsilon).posterior(0.5)
        assert high == pytest.approx(1 - low, rel=EXACT)
        assert wi.PureDP(epsilon).accuracy(0.5) == pytest.approx(high, rel=EXACT)

    @each("seed", range(4))
    def test_definition_1_average_accuracy_is_another_quantity(self, seed):
        """The accuracy over outputs is at most max(p, 1-p, 1/(1+e^{-ε})); the positive accuracy may be far below."""
        rng = np.random.default_rng(seed)
        laws = random_laws(rng, subsets("ab"))
        epsilon, prior = add_remove_epsilon(laws), float(rng.uniform(0.05, 0.95))
        game = wi.worlds.independent("ab", [prior, 0.5]).play(lambda records: laws[records])
        average = sum(max(prior * p, (1 - prior) * q) for p, q in zip(game.inside[0], game.outside[0], strict=True))
        assert game.accuracy("a") == pytest.approx(average, rel=EXACT)
        assert average <= max(prior, 1 - prior, 1 / (1 + math.exp(-epsilon))) + EXACT
        assert wi.PureDP(2.0).accuracy(0.01) == pytest.approx(0.99, rel=EXACT)
        assert wi.PureDP(2.0).posterior(0.01)[1] < 0.07


class TestSection23:
    """Earlier bounds, table 1 and section 5.1: this bound is below all of them for every ε."""

    @staticmethod
    def accuracy_rows(epsilon):
        return {
            row.name.split(" et al.")[0]: row.value for row in wi.bounds.table(epsilon) if row.quantity == "accuracy"
        }

    @pytest.mark.parametrize(
        ("epsilon", "keys"),
        [
            (1.0, ("acc_eps1", "erlingsson_eps1", "sablayrolles_eps1")),
            (2.0, ("acc_eps2", "erlingsson_eps2", "sablayrolles_eps2")),
        ],
    )
    def test_table_1_values_at_one_half(self, epsilon, keys):
        """73.1 %, 81.6 % and 75 % at ε = 1; 88 %, 93.2 % and 100 % at ε = 2."""
        rows = self.accuracy_rows(epsilon)
        for name, key in zip(("Thudi", "Erlingsson", "Sablayrolles"), keys, strict=True):
            assert rows[name] == pytest.approx(GOLDEN[key], rel=EXACT)
        assert rows["Thudi"] == pytest.approx(wi.PureDP(epsilon).accuracy(0.5), rel=EXACT)

    def test_table_1_first_values(self):
        """The numbers of section 5.1, written out: three at ε = 1, two at ε = 2 (the third is a misprint)."""
        rows = self.accuracy_rows(1.0)
        assert rows["Thudi"] == pytest.approx(0.7310585786300049, rel=EXACT)
        assert rows["Erlingsson"] == pytest.approx(0.8160602794142788, rel=EXACT)
        assert rows["Sablayrolles"] == pytest.approx(0.75, rel=EXACT)
        rows = self.accuracy_rows(2.0)
        assert rows["Thudi"] == pytest.approx(0.8807970779778823, rel=EXACT)
        assert rows["Sablayrolles"] == pytest.approx(1.0, rel=EXACT)

    @pytest.mark.parametrize("delta", [0.0, 0.01, 0.2])
    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
    def test_section_2_3_earlier_bounds_hold(self, epsilon, delta):
        """Advantage e^ε - 1 (Yeom et al., δ = 0) and 1 - e^{-ε} + δe^{-ε} (Erlingsson et al.): not below the best."""
        mechanism = wi.mechanisms.RandomizedResponse(lambda records: bool(records), epsilon, delta)
        best = wi.worlds.independent("x", 0.5).play(mechanism).advantage("x")
        erlingsson = wi.bounds.erlingsson(epsilon, delta)
        assert erlingsson == pytest.approx(1 - math.exp(-epsilon) + delta * math.exp(-epsilon), rel=EXACT)
        assert best <= erlingsson + EXACT
        if delta == 0.0:
            assert best <= wi.bounds.yeom(epsilon) <= max(1.0, math.expm1(epsilon))
            assert 0.5 + erlingsson / 2 == pytest.approx(1 - math.exp(-epsilon) / 2, rel=EXACT)

    @pytest.mark.parametrize("fpr", [0.001, 0.1])
    def test_section_2_3_precision_at_a_false_positive_rate(self, fpr):
        """Jayaraman et al.: at a fixed FPR the precision has a limit below 1 for δ > 0 too, attained by revealing."""
        epsilon, delta, prior = 1.0, 0.01, 0.1
        row = next(r for r in wi.bounds.table(epsilon, delta, prior, fpr) if r.name.startswith("Jayaraman"))
        tpr = float(wi.ApproxDP(epsilon, delta).tpr_at(fpr))
        assert tpr == pytest.approx(math.exp(epsilon) * fpr + delta, rel=1e-9)
        assert row.value == pytest.approx(prior * tpr / (prior * tpr + (1 - prior) * fpr), rel=1e-9)
        assert row.value < 1.0 == wi.ApproxDP(epsilon, delta).posterior(prior)[1]

    def test_section_2_3_best_before_for_low_and_for_high_epsilon(self):
        """Sablayrolles et al. up to ε = 1.594, Erlingsson et al. beyond."""
        gap = lambda e: wi.bounds.sablayrolles(e) - (0.5 + wi.bounds.erlingsson(e) / 2)  # noqa: E731
        at = float(brentq(gap, 0.5, 1.9))
        assert at == pytest.approx(1.594, abs=5e-4)
        assert all(gap(e) < 0 for e in np.linspace(0.01, at - 0.01, 50))
        assert all(gap(e) > 0 for e in np.linspace(at + 0.01, 1.99, 50))

    @given(st.floats(0.01, 12.0))
    def test_section_5_1_closer_to_one_for_small_and_to_the_other_for_large(self, epsilon):
        """The distance to Sablayrolles et al. is of order ε³, to Erlingsson et al. ε; for large ε ε - 2 and e^{-ε}."""
        rows = self.accuracy_rows(epsilon)
        linear, falling = (rows[name] - rows["Thudi"] for name in ("Sablayrolles", "Erlingsson"))
        if epsilon < 1.5:
            assert linear <= epsilon**3 / 48 + EXACT
            assert linear < falling
        if epsilon > 2.0:
            assert falling <= math.exp(-epsilon) / 2
            assert falling < linear

    def test_section_5_1_printed_erlingsson_value_is_a_misprint(self):
        """At ε = 2 the formula 1 - e^{-ε}/2 gives 93.233 %, printed 95 %."""
        value = 0.5 + wi.bounds.erlingsson(2.0) / 2
        assert value == pytest.approx(0.9323323583816936, rel=EXACT)
        assert value == pytest.approx(1 - math.exp(-2) / 2, rel=EXACT)
        assert abs(value - GOLDEN["erlingsson_eps2_printed"]) > 0.017

    @given(st.floats(0.01, 12.0))
    def test_table_1_this_bound_is_the_tightest_for_all_epsilon(self, epsilon):
        """At p = ½ it lies below Yeom, Erlingsson and Sablayrolles, which all hold."""
        rows = self.accuracy_rows(epsilon)
        for other in ("Yeom", "Erlingsson", "Sablayrolles"):
            assert rows["Thudi"] <= rows[other] + EXACT
        assert rows["Yeom"] == pytest.approx(min(1.0, math.exp(epsilon) / 2), rel=EXACT)
        assert rows["Erlingsson"] == pytest.approx(1 - math.exp(-epsilon) / 2, rel=EXACT)
        assert wi.bounds.table(epsilon).tightest("accuracy").value == pytest.approx(rows["Thudi"], rel=EXACT)

    @given(st.floats(0.01, 12.0), st.floats(0.001, 0.999))
    def test_table_1_sablayrolles_is_above_for_all_priors(self, epsilon, prior):
        """Figure 5: p + ε/4 is never below the bound on the positive accuracy."""
        assert wi.bounds.thudi(epsilon, prior) == pytest.approx(upper(prior, epsilon), rel=EXACT)
        assert wi.bounds.thudi(epsilon, prior) <= wi.bounds.sablayrolles(epsilon, prior) + EXACT


class TestSection4:
    """The effect of the prior, and what batch sampling does instead."""

    def test_section_4_1_positive_accuracy_at_one_percent(self):
        """p = 0.01, ε = 2: at most 6.9 %."""
        assert wi.PureDP(2.0).posterior(0.01)[1] == pytest.approx(0.06945315965638048, rel=EXACT)
        assert wi.PureDP(2.0).posterior(0.01)[1] == pytest.approx(GOLDEN["pos_acc_eps2_p001"], rel=EXACT)

    @given(st.floats(0.01, 8.0), st.floats(0.001, 0.5), st.floats(1.01, 2.0))
    def test_section_4_1_bound_falls_with_prior_and_with_epsilon(self, epsilon, prior, factor):
        """The upper end is increasing in both."""
        here = wi.PureDP(epsilon).posterior(prior)[1]
        assert wi.PureDP(epsilon).posterior(prior / factor)[1] < here
        assert wi.PureDP(epsilon / factor).posterior(prior)[1] < here

    def test_section_4_1_amplification_law(self):
        """Sampling at rate q turns ε₀ into ln(1+q(e^{ε₀}-1)): q = .01, ε₀ = 10 gives 5.40, not qε₀ = .1."""
        epsilon = wi.PureDP(10.0).implies(wi.PureDP, sample_rate=0.01).epsilon
        assert epsilon == pytest.approx(math.log(1 + 0.01 * (math.exp(10) - 1)), rel=EXACT)
        assert round(epsilon, 2) == 5.4

    def test_section_4_1_sampling_the_data_goes_on_helping(self):
        """(1 - t)/t is below e^{-t} for t above 0.659 and above it below; it has no limit, so the belief goes to 0."""
        at = float(brentq(lambda t: (1 - t) / t - math.exp(-t), 0.1, 0.9))
        assert at == pytest.approx(0.659, abs=5e-4)
        for t in (0.7, 0.9):
            assert (1 - t) / t < math.exp(-t)
        beliefs = [wi.PureDP(1.0).posterior(t)[1] for t in (0.5, 0.1, 1e-3, 1e-6)]
        assert beliefs == sorted(beliefs, reverse=True)
        assert beliefs[-1] < 3e-6
        batches = [wi.PureDP(1.0).implies(wi.PureDP, sample_rate=t).posterior(0.5)[1] for t in (0.5, 0.1, 1e-3, 1e-6)]
        assert batches == sorted(batches, reverse=True)
        assert batches[-1] > 0.5

    @given(st.floats(0.01, 0.5))
    def test_section_4_1_epsilon_alone_ends_at_the_prior(self, prior):
        """The same of ε as of batches: at ε = 0 the belief is still the prior, which only sampling the data lowers."""
        assert wi.PureDP(0.0).posterior(prior) == pytest.approx((prior, prior), rel=EXACT)
        assert wi.PureDP(1e-6).posterior(prior)[1] > prior > wi.PureDP(1.0).posterior(prior / 10)[1]

    @pytest.mark.parametrize(("rate", "epsilon"), [(0.01, 10.0), (0.2, 3.0), (0.5, 1.0)])
    def test_section_4_1_printed_law_is_violated(self, rate, epsilon):
        """The printed term e^{-qε₀}: randomised response after sampling exceeds the bound it would give."""
        base = wi.mechanisms.RandomizedResponse(lambda records: bool(records), epsilon)
        game = wi.worlds.independent("x", 0.3).play(wi.mechanisms.Subsampled(base, rate))
        belief = game.posterior("x", True)
        assert belief == pytest.approx(upper(0.3, math.log(1 + rate * (math.exp(epsilon) - 1))), rel=1e-10)
        assert belief > upper(0.3, rate * epsilon) + 0.01

    @staticmethod
    def after_sampling(table, universe, rate):
        """The law of the training set: a data set of ``table``, each of whose records is kept with probability rate."""
        kept = dict.fromkeys(subsets(universe), 0.0)
        for data_set, weight in table.items():
            for sample in subsets(data_set):
                kept[sample] += weight * rate ** len(sample) * (1 - rate) ** (len(data_set) - len(sample))
        return kept

    @pytest.mark.parametrize("rate", [0.05, 0.3, 0.7])
    @each("seed", range(6))
    def test_section_4_2_subsampling_bounds_any_dependent_data(self, seed, rate):
        """Keep each record with probability T, then ε-DP: P(x ∈ D' | S) ≤ 1/(1+e^{-ε}(1-T)/T) for any law of D."""
        rng = np.random.default_rng(seed)
        laws = random_laws(rng, subsets("abc"))
        limit = wi.PureDP(add_remove_epsilon(laws)).posterior(rate)[1]
        table = dict(zip(subsets("abc"), rng.dirichlet(np.full(8, 0.2)).tolist(), strict=True))
        game = wi.worlds.explicit("abc", self.after_sampling(table, "abc", rate)).play(lambda records: laws[records])
        assert max(game.posterior(record, s) for record in "abc" for s in range(3)) <= limit + EXACT

    def test_section_4_2_is_attained(self):
        """A record that is surely in the data, and randomised response: the posterior is the bound."""
        rate, epsilon = 0.1, 1.5
        mechanism = wi.mechanisms.RandomizedResponse(lambda records: "a" in records, epsilon)
        game = wi.worlds.explicit("ab", self.after_sampling({("a", "b"): 1.0}, "ab", rate)).play(mechanism)
        assert game.posterior("a", True) == pytest.approx(upper(rate, epsilon), rel=1e-11)

    def test_section_4_2_works_by_conditioning_on_the_data_not_by_the_smaller_inclusion(self):
        """With all-or-nothing data the bound at T holds, but the one at the true inclusion p·T < T is broken."""
        rate, epsilon, prior = 0.5, 1.0, 0.5
        table = self.after_sampling({("a", "b", "c"): prior, (): 1 - prior}, "abc", rate)
        world = wi.worlds.explicit("abc", table)
        belief = world.play(rising_event(3, epsilon)).posterior("a", "hit")
        assert world.inclusion[0] == pytest.approx(prior * rate, rel=EXACT)
        assert upper(prior * rate, epsilon) + 0.05 < belief < upper(rate, epsilon)

    @given(st.floats(0.0, 8.0), st.floats(0.01, 0.99))
    def test_section_4_2_sampling_rate_is_the_largest(self, epsilon, posterior):
        """calibrate.sampling_rate inverts the bound, from below."""
        rate = wi.calibrate.sampling_rate(epsilon, posterior=posterior)
        assert wi.PureDP(epsilon).posterior(rate)[1] <= posterior
        assert upper(min(rate * (1 + 1e-9), 1 - 1e-16), epsilon) > posterior * (1 - 1e-12)
        assert rate == pytest.approx(upper(posterior, -epsilon), rel=1e-9)


class TestSection52:
    """One step of noisy logistic regression in one dimension: the Gaussian mechanism, weights 10⁶ or 10⁶ - 1."""

    SIGMA = GOLDEN["noise_printed"]

    def game(self, sigma):
        """x₁ is always in, x₂ with probability ½; the weight falls by 1 if x₂ is in."""
        world = wi.worlds.independent(("x1", "x2"), [1.0, 0.5])
        return world.play(wi.mechanisms.Gaussian(lambda records: 1e6 - ("x2" in records), sigma))

    @pytest.mark.parametrize("limit", [0.9, 0.99, 0.999, 1 - 1e-9])
    def test_section_5_2_1_positive_accuracy_has_no_bound_below_one(self, limit):
        """Equation 2: P(x₂ ∈ D | W ≤ α) exceeds any m < 1 for some threshold α."""
        offset = next(t for t in range(0, -2000, -1) if self.positive_accuracy(t) > limit)
        assert self.positive_accuracy(offset) < 1.0
        assert wi.GaussianDP(1 / self.SIGMA).posterior(0.5)[1] == 1.0
        assert wi.ApproxDP(1.0, 1e-5).posterior(0.5)[1] == 1.0

    def positive_accuracy(self, offset):
        """Equation 2 at α = 10⁶ + offset, from the two tails."""
        with_it, without = log_ndtr((offset + 1) / self.SIGMA), log_ndtr(offset / self.SIGMA)
        return 1 / (1 + math.exp(float(without - with_it)))

    @pytest.mark.parametrize("offset", [-3.0, -20.0])
    def test_section_5_2_1_equation_2_is_the_precision_at_that_false_positive_rate(self, offset):
        """Accusing W ≤ α has FPR Φ((α-10⁶)/σ); its PPV on whosin's curve is equation 2."""
        fpr = float(ndtr(offset / self.SIGMA))
        risk = wi.GaussianDP(1 / self.SIGMA).risk(wi.risks.ppv_at_fpr(fpr), prior=0.5)
        assert risk == pytest.approx(self.positive_accuracy(offset), rel=1e-9)

    def test_section_5_2_1_no_membership_privacy_follows(self):
        """The exact γ is infinite, and neither the Gaussian nor the approximate guarantee implies one."""
        assert self.game(self.SIGMA).membership_privacy().gamma == math.inf
        for guarantee in (wi.GaussianDP(1 / self.SIGMA), wi.ApproxDP(1.0, 1e-5)):
            with pytest.raises(ImplicationError, match="no posterior below 1"):
                guarantee.implies(wi.MembershipPrivacy)
        with pytest.raises(CalibrationError, match="posterior"):
            wi.calibrate.epsilon(posterior=0.9, delta=1e-5)

    @pytest.mark.parametrize(
        ("sigma", "key", "value"),
        [
            (4.0412, "acc_at_4.0412", 0.5492337395502824),
            (3.730631634815944, "acc_at_balle_wang", 0.5533088192260505),
        ],
    )
    def test_section_5_2_2_accuracy_is_bounded(self, sigma, key, value):
        """Equation 4 at α = 10⁶ - ½: Φ(1/2σ), 54.9 % at σ = 4.0412 and 55.3 % at the exact noise for (1, 10⁻⁵)."""
        assert GOLDEN[key] == pytest.approx(value, rel=EXACT)
        assert float(ndtr(1 / (2 * sigma))) == pytest.approx(value, rel=EXACT)
        assert wi.GaussianDP(1 / sigma).accuracy(0.5) == pytest.approx(value, rel=EXACT)
        assert self.game(sigma).accuracy("x2") == pytest.approx(value, abs=1e-9)
        assert value < wi.PureDP(1.0).accuracy(0.5) < wi.ApproxDP(1.0, 1e-5).accuracy(0.5)

    def test_section_5_2_2_half_way_is_the_best_threshold(self):
        """Equation 4 is largest half-way between the two weights."""
        accuracy = lambda t: 0.5 * (1 - ndtr(t / 4.0412)) + 0.5 * ndtr((t + 1) / 4.0412)  # noqa: E731
        thresholds = np.linspace(-3, 2, 501)
        assert thresholds[np.argmax(accuracy(thresholds))] == pytest.approx(-0.5, abs=1e-9)
        assert accuracy(-0.5) == pytest.approx(GOLDEN["acc_at_4.0412"], rel=EXACT)

    def test_section_5_2_1_noise_is_more_than_needed(self):
        """σ = 4.0412 gives (1, 2.4·10⁻⁶); (1, 10⁻⁵) takes 3.7306."""
        assert wi.GaussianDP(1 / self.SIGMA).roc.divergence(math.e) == pytest.approx(
            GOLDEN["delta_at_eps1_sigma4.0412"], rel=1e-9
        )
        assert wi.GaussianDP(1 / GOLDEN["noise_balle_wang_sens1"]).implies(wi.ApproxDP, delta=1e-5).epsilon == (
            pytest.approx(1.0, abs=1e-10)
        )


class TestSection53:
    """The advantage 2(posterior - p) of the positive accuracy over the prior."""

    @given(st.floats(0.05, 12.0))
    def test_section_5_3_peak_of_the_advantage(self, epsilon):
        """It peaks at p* = 1/(1+e^{ε/2}) with value 2tanh(ε/4)."""
        advantage = lambda p: 2 * (wi.PureDP(epsilon).posterior(p)[1] - p)  # noqa: E731
        peak = 1 / (1 + math.exp(epsilon / 2))
        assert advantage(peak) == pytest.approx(2 * math.tanh(epsilon / 4), rel=1e-10)
        assert all(advantage(p) <= advantage(peak) + EXACT for p in np.linspace(0.001, 0.999, 99).tolist())
        assert advantage(0.9 * peak) < advantage(peak)
        assert advantage(peak + 0.1 * (1 - peak)) < advantage(peak)

    def test_section_5_3_figure_6(self):
        """ε = 2: largest advantage .9242 at p = .2689; at one half it is .7616."""
        peak = 1 / (1 + math.e)
        assert peak == pytest.approx(GOLDEN["fig6_argmax_p_eps2"], rel=EXACT)
        value = 2 * (wi.PureDP(2.0).posterior(peak)[1] - peak)
        assert value == pytest.approx(GOLDEN["fig6_max_adv_eps2"], rel=EXACT)
        assert 2 * (wi.PureDP(2.0).posterior(0.5)[1] - 0.5) == pytest.approx(math.tanh(1.0), rel=EXACT)

    def test_section_5_3_half_is_far_from_the_peak_for_large_epsilon(self):
        """At ½ the advantage is tanh(ε/2), at most 1; at its best prior 2tanh(ε/4), which goes to 2."""
        for epsilon, share in ((0.5, 0.98), (4.0, 0.64), (12.0, 0.51)):
            peak = 1 / (1 + math.exp(epsilon / 2))
            at_peak = 2 * (wi.PureDP(epsilon).posterior(peak)[1] - peak)
            at_half = 2 * (wi.PureDP(epsilon).posterior(0.5)[1] - 0.5)
            assert at_half / at_peak == pytest.approx(share, abs=0.01)

    @pytest.mark.parametrize("epsilon", [0.5, 2.0])
    def test_section_5_3_is_attained(self, epsilon):
        """Randomised response at prior p* reaches 2tanh(ε/4)."""
        peak = 1 / (1 + math.exp(epsilon / 2))
        mechanism = wi.mechanisms.RandomizedResponse(lambda records: bool(records), epsilon)
        belief = wi.worlds.independent("x", peak).play(mechanism).posterior("x", True)
        assert 2 * (belief - peak) == pytest.approx(2 * math.tanh(epsilon / 4), rel=1e-11)

    @pytest.mark.parametrize("epsilon", [0.0, 1.0])
    def test_equation_5_printed_exponent_is_violated(self, epsilon):
        """Printed e^{-ε·P(0)}/P(1): at p = ½ it promises less than randomised response reaches, which is theorem 1."""
        printed = 2 * (1 / (1 + math.exp(-epsilon * 0.5) / 0.5) - 0.5)
        mechanism = wi.mechanisms.RandomizedResponse(lambda records: bool(records), epsilon)
        belief = wi.worlds.independent("x", 0.5).play(mechanism).posterior("x", True)
        assert 2 * (belief - 0.5) > printed + 0.2
        assert belief == pytest.approx(wi.PureDP(epsilon).posterior(0.5)[1], rel=EXACT)


class TestSection6:
    """Deletion: P(none of m records was trained on | S) ≥ L^m with L = 1/(1+e^{+ε}p/(1-p)) (printed e^{-ε})."""

    @staticmethod
    def none_of(game, requests, output):
        """P(no requested record is in D | output)."""
        wanted = [game.world.index(record) for record in requests]
        column = game.world.prior * game.laws[:, game.outputs.index(output)]
        return float(column[~game.world.membership[:, wanted].any(axis=1)].sum() / column.sum())

    @staticmethod
    def least(prior, epsilon, m=1):
        """L^m, as the library promises it."""
        return wi.unlearning.Unlearning(epsilon, prior, 0.5, requests=m).none_used

    @each("seed", range(8))
    def test_section_6_joint_bound_holds(self, seed):
        """Random ε-DP mechanisms: every set of requests and every output keeps at least L^m."""
        rng = np.random.default_rng(seed)
        laws = random_laws(rng, subsets("abc"))
        epsilon, prior = add_remove_epsilon(laws), float(rng.uniform(0.02, 0.8))
        game = wi.worlds.independent("abc", prior).play(lambda records: laws[records])
        least = self.least(prior, epsilon)
        assert least == pytest.approx(1 / (1 + math.exp(epsilon) * prior / (1 - prior)), rel=1e-11)
        for requests in subsets("abc")[1:]:
            for output in range(3):
                assert self.none_of(game, requests, output) >= self.least(prior, epsilon, len(requests)) - EXACT

    @pytest.mark.parametrize("m", [1, 2, 4])
    @pytest.mark.parametrize(("epsilon", "prior"), [(1.0, 0.1), (0.4, 0.5), (3.0, 0.02)])
    def test_section_6_joint_bound_is_attained(self, m, epsilon, prior):
        """An event that every member makes e^ε times as likely reaches L^m exactly."""
        people = tuple(range(m))
        game = wi.worlds.independent(people, prior).play(rising_event(m, epsilon))
        assert game.dp().epsilon == pytest.approx(epsilon, rel=1e-11)
        assert self.none_of(game, people, "hit") == pytest.approx(self.least(prior, epsilon, m), rel=1e-10)

    def test_section_6_printed_sign_is_violated(self):
        """Printed L = 1/(1+e^{-ε}p/(1-p)): the attained event stays far below it, for one request and for five."""
        epsilon, prior = 1.0, 0.1
        printed = 1 / (1 + math.exp(-epsilon) * prior / (1 - prior))
        for m in (1, 5):
            game = wi.worlds.independent(range(m), prior).play(rising_event(m, epsilon))
            assert self.none_of(game, range(m), "hit") < printed**m - 0.1

    @pytest.mark.parametrize(("answer", "joint"), [(True, 1 / 8), (False, 3 / 8)])
    def test_section_6_printed_factorisation_is_violated(self, answer, joint):
        """Randomised response on the parity of two memberships, e^ε = 3: marginals ½, joint 1/8 or 3/8, not 1/4."""
        mechanism = wi.mechanisms.RandomizedResponse(lambda records: len(records) % 2 == 1, math.log(3))
        game = wi.worlds.independent("ab", 0.5).play(mechanism)
        assert game.dp().epsilon == pytest.approx(math.log(3), rel=EXACT)
        for record in "ab":
            assert game.posterior(record, answer) == pytest.approx(0.5, rel=EXACT)
        assert self.none_of(game, "ab", answer) == pytest.approx(joint, rel=EXACT)
        assert self.none_of(game, "ab", answer) >= self.least(0.5, math.log(3), 2)

    @pytest.mark.parametrize("expected_size", [int(c) for c in GOLDEN["deletion"]])
    def test_section_6_capacity(self, expected_size):
        """B = .8, N = 10⁴, ε = 1: m = ln B/ln L with L of corollary 1; the printed L overstates it up to e^{2ε}."""
        golden = GOLDEN["deletion"][str(expected_size)]
        prior = expected_size / 10_000
        least = self.least(prior, 1.0)
        assert least == pytest.approx(golden["L_correct"], rel=EXACT)
        capacity = math.log(0.8) / math.log(least)
        assert capacity == pytest.approx(golden["m_correct"], rel=1e-11)
        assert wi.unlearning.deletion_capacity(1.0, prior, 0.8) == math.floor(golden["m_correct"])
        printed = math.log(0.8) / math.log(1 / (1 + math.exp(-1.0) * prior / (1 - prior)))
        assert printed == pytest.approx(golden["m_printed"], rel=1e-11)
        assert 4.0 < printed / capacity < math.exp(2.0)
        assert least**printed < 0.4, "the printed number of deletions would leave far less than B"

    def test_section_6_printed_logarithm_has_the_wrong_sign(self):
        """ln(1/B)/ln L is negative for every L < 1; it is ln B/ln L that counts deletions."""
        least = self.least(0.01, 1.0)
        assert math.log(1 / 0.8) / math.log(least) < 0 < math.log(0.8) / math.log(least)
        assert wi.unlearning.deletion_capacity(1.0, 0.01, 0.8) == math.floor(math.log(0.8) / math.log(least)) == 8

    def test_section_6_far_below_a_linear_trend(self):
        """Printed: "marginally lower than a linear trend". Where the size is ten times that at which the capacity
        crosses a line through 0, it is about a hundredth of the line, whatever the slope and the sign of ε."""
        for sign, slope in itertools.product((-1.0, 1.0), (0.3, 1.0, 3.0)):
            capacity = lambda c, s=sign: math.log(0.8) / -math.log1p(math.exp(s) * c / (10_000 - c))  # noqa: E731
            at = float(brentq(lambda c, m=capacity, a=slope: m(c) - a * c, 1.0, 900.0))
            assert capacity(10 * at) == pytest.approx(0.01 * slope * 10 * at, rel=0.15)
            if sign > 0:
                assert wi.unlearning.deletion_capacity(1.0, 10 * at / 10_000, 0.8) == math.floor(capacity(10 * at))

    def test_section_6_above_the_line_for_small_training_sets(self):
        """ "Significantly higher for low expected training set sizes" than the line of slope 1: up to 28, not at 29."""
        capacity = {c: wi.unlearning.deletion_capacity(1.0, c / 10_000, 0.8) for c in (1, 10, 28, 29)}
        assert capacity[1] > 800
        assert capacity[10] > 8 * 10
        assert capacity[28] >= 28
        assert capacity[29] < 29

    def test_section_6_c_is_the_expected_size(self):
        """With inclusion probability c/N for each of N records the training set has c records on average."""
        world = wi.worlds.independent(range(8), 3 / 8)
        assert world.inclusion == pytest.approx(np.full(8, 3 / 8), rel=EXACT)
        assert world.prior @ world.membership.sum(axis=1) == pytest.approx(3.0, rel=EXACT)

    def test_section_6_no_deletion_can_be_skipped_in_large_training_sets(self):
        """N = 10⁴, ε = 1, B = .8: one request is covered up to an expected training set of 842.24, not beyond."""
        assert self.least(842.2 / 10_000, 1.0) > 0.8 > self.least(842.3 / 10_000, 1.0)

    @pytest.mark.parametrize("m", [1, 3])
    def test_definition_2_unlearning_guarantee(self, m):
        """B-MI unlearned means P(x̂ ∉ D | S) ≥ B (not above): at B = L^m it holds with equality."""
        epsilon, prior = 0.8, 0.05
        game = wi.worlds.independent(range(m), prior).play(rising_event(m, epsilon))
        threshold = self.least(prior, epsilon, m)
        kept = [self.none_of(game, range(m), output) for output in game.outputs]
        assert min(kept) == pytest.approx(threshold, rel=1e-10)
        assert math.floor(math.log(threshold) / math.log(self.least(prior, epsilon)) + 1e-9) == m


class TestRemarks:
    """What the text says beside its numbered statements."""

    @each("seed", range(3))
    def test_section_3_1_what_is_impossible_once_is_impossible_always(self, seed):
        """Under ε-DP an output with probability 0 on one data set has it on all; one that has not shows ε = ∞."""
        laws = random_laws(np.random.default_rng(seed), subsets(range(3)))
        world = wi.worlds.all_subsets(range(3))
        game = world.play(lambda records: laws[records] | {"never": 0.0})
        assert game.dp().epsilon == pytest.approx(add_remove_epsilon(laws), rel=EXACT)
        laws[(0, 1)] = {"never": 1e-9, 0: 1.0 - 1e-9, 1: 0.0, 2: 0.0}
        assert world.play(lambda records: laws[records]).dp().epsilon == math.inf

    @pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
    def test_section_1_sampling_the_data_is_stronger_for_small_rates_only(self, epsilon):
        """At one rate t sampling the data leaves less belief than sampling batches exactly where t < 1/(1+e^{ε/2})."""
        limit = 1.0 / (1.0 + math.exp(epsilon / 2.0))
        for share in (0.01, 0.5, 0.99, 1.01, 1.5):
            data = wi.PureDP(epsilon).posterior(share * limit)[1]
            batches = wi.PureDP(epsilon).implies(wi.PureDP, sample_rate=share * limit).posterior(0.5)[1]
            assert (data < batches) == (share < 1.0)

    @each("seed", range(3))
    def test_section_2_3_advantage_is_tpr_minus_fpr(self, seed):
        """At a prior of ½ 2(A - ½) of the best attacker is the largest TPR - FPR, the total variation."""
        laws = random_laws(np.random.default_rng(seed), subsets("ab"))
        game = wi.worlds.all_subsets("ab").play(lambda records: laws[records])
        inside, outside = (
            np.mean([[*law.values()] for d, law in laws.items() if ("a" in d) == member], axis=0)
            for member in (True, False)
        )
        apart = 0.5 * np.abs(inside - outside).sum()
        assert 2 * (game.accuracy("a") - 0.5) == pytest.approx(apart, rel=1e-11)
        assert game.advantage("a") == pytest.approx(apart, rel=1e-11)

    @each("seed", range(3))
    def test_equation_6_positive_accuracy_is_a_quotient(self, seed):
        """P(x* | S) = Σ over data sets with x* of P(S | D)·P(D), over the same sum of all data sets."""
        rng = np.random.default_rng(seed)
        laws, chance = random_laws(rng, subsets("abc")), dict(zip("abc", rng.uniform(0.1, 0.9, 3), strict=True))
        game = wi.worlds.independent("abc", list(chance.values())).play(lambda records: laws[records])
        for output in range(3):
            weight = {
                d: law[output] * math.prod(p if one in d else 1 - p for one, p in chance.items())
                for d, law in laws.items()
            }
            share = sum(w for d, w in weight.items() if "b" in d) / sum(weight.values())
            assert game.posterior("b", output) == pytest.approx(share, rel=1e-11)

    def test_footnote_2_fewer_records_need_larger_batches(self):
        """A data set sampled at rate T has T·N records, and a batch at least one of them: the smallest rate 1/(T·N) of
        a step rises, and with it what a step gives away, while the belief to start from falls with T."""
        steps = [wi.DPSGD(1.0, 1.0 / (1000 * rate), 1).advantage for rate in (1.0, 0.1, 0.01)]
        assert steps == sorted(steps)
        assert steps[2] > 50 * steps[0]
        beliefs = [wi.PureDP(1.0).posterior(rate) for rate in (0.999, 0.1, 0.01)]
        assert beliefs == sorted(beliefs, reverse=True)

    def test_section_5_2_logistic_regression_trained(self):
        """One step of DP-SGD on the two points of the text: 10⁶ without x₂, 10⁶ - 1 with it, before the noise.

        The gradient at x₂ is +10⁶, not below -1: that is what lowers the weight. The best threshold on the two normal
        laws is right 54.9 % of the time.
        """
        torch = pytest.importorskip("torch")
        pytest.importorskip("opacus")

        class Logistic(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(1, 1, bias=False, dtype=torch.float64)
                torch.nn.init.constant_(self.layer.weight, 1e6)

            def forward(self, x):
                logit = self.layer(x)
                return torch.cat([torch.zeros_like(logit), logit], dim=1)

        def weight(labels):
            settings = {"max_grad_norm": 1.0, "sample_rate": 1.0, "steps": 1, "learning_rate": 1.0}
            settings |= {"expected_batch": 1.0, "classes": [0, 1], "input_dtype": "float64", "reset": False}
            x = np.full((len(labels), 1), 1e6)
            done = wi.train_dpsgd(Logistic(), x, np.array(labels), noise_multiplier=0.0, rng=0, **settings)
            return done.model.module.layer.weight.item()

        centres = {"out": weight([1]), "in": weight([1, 0])}
        assert centres["out"] == 1e6
        assert centres["in"] == pytest.approx(1e6 - 1.0, abs=1e-5)
        shifts = {(): 0.0, ("x2",): centres["in"] - centres["out"]}
        game = wi.worlds.all_subsets(["x2"]).play(wi.mechanisms.Gaussian(lambda records: shifts[records], scale=4.0412))
        assert game.accuracy("x2") == pytest.approx(0.549, abs=5e-4)

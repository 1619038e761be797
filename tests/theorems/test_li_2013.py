"""Li, Qardaji, Su, Wu and Yang, "Membership privacy: a unifying framework for privacy definitions" (CCS 2013).

Every numbered statement, by enumeration: the exact parameter of a random finite mechanism is found by comparing data
sets, and the conclusion is checked on the posteriors of a world, in both directions and where it is attained.
Statements that hold only after a correction are tested twice: as corrected, and the printed one against a world that
breaks it.
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
from scipy.optimize import linprog
from theorem_support import random_laws, subsets

import whosin as wi
from whosin.errors import ImplicationError

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())["li"]
EXACT = 1e-12


def without(data_set, record):
    return tuple(other for other in data_set if other != record)


def with_over_without(laws):
    """Largest P(S | T ∪ {t}) / P(S | T): e^ε of positive unbounded DP."""
    return max(laws[d][s] / laws[without(d, t)][s] for d in laws for t in d for s in laws[d])


def without_over_with(laws):
    """Largest P(S | T) / P(S | T ∪ {t}): e^ε of negative unbounded DP."""
    return max(laws[without(d, t)][s] / laws[d][s] for d in laws for t in d for s in laws[d])


def one_replaced(laws):
    """Largest P(S | T) / P(S | T') over data sets of one size that differ by one record: e^ε of bounded DP."""
    pairs = ((d, e) for d in laws for e in laws if len(d) == len(e) and len(set(d) & set(e)) == len(d) - 1)
    return max(laws[d][s] / laws[e][s] for d, e in pairs for s in laws[d])


def needed_gamma(game, record, prior, negative=False):
    """Smallest γ with Pr[t|S] ≤ γPr[t] and Pr[¬t|S] ≥ Pr[¬t]/γ for every output; NMP exchanges t and ¬t."""
    gamma = 1.0
    for output in game.outputs:
        inside = game.posterior(record, output)
        p, after = (1.0 - prior, 1.0 - inside) if negative else (prior, inside)
        gamma = max(gamma, after / p, (1.0 - p) / (1.0 - after) if after < 1.0 else math.inf)
    return gamma


def geometric_count(k, epsilon):
    """Count of the records plus two-sided geometric noise, cut off at 0 and k: ε-DP under add/remove, attained."""
    shrink = math.exp(-epsilon)

    def law(records):
        count = len(records)
        middle = {s: (1 - shrink) / (1 + shrink) * shrink ** abs(s - count) for s in range(1, k)}
        return middle | {0: shrink**count / (1 + shrink), k: shrink ** (k - count) / (1 + shrink)}

    return law


class TestTheorem36:
    """For a family closed under conditioning on records, (D, γ)-PMP ⇔ Pr[S|t] ≤ γ Pr[S|¬t] for all its priors."""

    @staticmethod
    def reweighted(rng):
        """Random laws of the others given t and given ¬t, to be combined with any prior of t."""
        others = subsets("bc")
        given_in, given_out = rng.dirichlet(np.ones(len(others)), size=2)
        laws = random_laws(rng, [*others, *(("t", *rest) for rest in others)])

        def game(prior):
            table = {("t", *rest): prior * w for rest, w in zip(others, given_in, strict=True)}
            table |= {rest: (1 - prior) * w for rest, w in zip(others, given_out, strict=True)}
            return wi.worlds.explicit("tbc", table).play(lambda records: laws[records])

        inside = [sum(w * laws[("t", *r)][s] for r, w in zip(others, given_in, strict=True)) for s in range(3)]
        outside = [sum(w * laws[r][s] for r, w in zip(others, given_out, strict=True)) for s in range(3)]
        return game, max(p / q for p, q in zip(inside, outside, strict=True))

    @each("seed", range(10))
    def test_theorem_3_6_ratio_bounds_every_prior_on_the_record(self, seed):
        """⇐: with ratio R, every prior p of the record needs γ = max(pR+1-p, R/(pR+1-p)) ≤ R."""
        game, ratio = self.reweighted(np.random.default_rng(seed))
        for prior in (1e-3, 0.1, 0.3, 0.5, 0.8, 0.99):
            needed, mixed = needed_gamma(game(prior), "t", prior), prior * ratio + 1 - prior
            assert needed == pytest.approx(max(mixed, ratio / mixed), abs=EXACT * ratio / min(prior, 1 - prior))
            assert needed <= ratio

    @each("seed", range(10))
    def test_theorem_3_6_priors_near_the_ends_need_the_whole_ratio(self, seed):
        """⇒: γ over all priors of the record is R, approached at p → 0 (first condition) and p → 1 (second)."""
        game, ratio = self.reweighted(np.random.default_rng(seed))
        for prior in (1e-6, 1.0 - 1e-6):
            assert needed_gamma(game(prior), "t", prior) == pytest.approx(ratio, rel=1e-5)

    @each("seed", range(10))
    def test_theorem_3_6_one_prior_is_not_closed_under_conditioning(self, seed):
        """Without the closure it fails: the one prior p = 1/(1+√R) needs only γ = √R, though the ratio is R."""
        game, ratio = self.reweighted(np.random.default_rng(seed))
        prior = 1.0 / (1.0 + math.sqrt(ratio))
        assert ratio > 1.1
        assert needed_gamma(game(prior), "t", prior) == pytest.approx(math.sqrt(ratio), rel=1e-10)

    def test_theorem_3_6_ratio_of_an_explicit_world(self):
        """whosin reports R for an explicit prior: the largest ratio over its uncertain records."""
        laws = random_laws(np.random.default_rng(1), subsets("ab"))
        prior = {"": 0.1, "a": 0.2, "b": 0.3, "ab": 0.4}
        game = wi.worlds.explicit("ab", prior).play(lambda records: laws[records])

        def law(record, member):
            weights = {d: w for d, w in prior.items() if (record in d) == member}
            total = sum(weights.values())
            return [sum(w * laws[tuple(d)][s] for d, w in weights.items()) / total for s in range(3)]

        for negative in (False, True):
            ratio = max(p / q for r in "ab" for p, q in zip(law(r, not negative), law(r, negative), strict=True))
            assert game.membership_privacy(negative).gamma == pytest.approx(ratio, rel=EXACT)
            assert game.membership_privacy(negative).family == "prior"


class TestTheorem45:
    """ε-positive unbounded DP ⇔ (D_I, e^ε)-PMP, and ε-negative unbounded DP ⇔ (D_I, e^ε)-NMP."""

    @pytest.mark.parametrize("negative", [False, True])
    @each("seed", range(8))
    def test_theorem_4_5_dp_bounds_every_independent_prior(self, seed, negative):
        """⇒: under any independent prior no record needs more than γ = e^ε."""
        rng = np.random.default_rng(seed)
        laws = random_laws(rng, subsets("abc"))
        gamma = without_over_with(laws) if negative else with_over_without(laws)
        for _ in range(8):
            probabilities = rng.uniform(0.01, 0.99, size=3)
            game = wi.worlds.independent("abc", probabilities).play(lambda records: laws[records])
            needed = [needed_gamma(game, r, p, negative) for r, p in zip("abc", probabilities, strict=True)]
            assert max(needed) <= gamma * (1 + EXACT)
            assert game.membership_privacy(negative).gamma == pytest.approx(gamma, rel=EXACT)
            assert game.membership_privacy(negative).family == "independent"

    @pytest.mark.parametrize("negative", [False, True])
    @each("seed", range(8))
    def test_theorem_4_5_some_independent_prior_needs_the_whole_gamma(self, seed, negative):
        """⇐: with the others known and the record's own prior near 0, the needed γ approaches e^ε, so it is DP."""
        laws = random_laws(np.random.default_rng(seed), subsets("abc"))
        gamma = without_over_with(laws) if negative else with_over_without(laws)
        reached = 1.0
        for record, known in ((r, k) for r in "abc" for k in subsets("".join(c for c in "abc" if c != r))):
            probabilities = [1e-7 if c == record else float(c in known) for c in "abc"]
            game = wi.worlds.independent("abc", probabilities).play(lambda records: laws[records])
            reached = max(reached, needed_gamma(game, record, 1e-7, negative))
        assert reached == pytest.approx(gamma, rel=1e-5)
        assert reached <= gamma * (1 + 1e-8)

    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
    def test_theorem_4_5_attained_by_randomised_response(self, epsilon):
        """Randomised response on one membership is ε-DP and has γ = e^ε exactly, positive and negative."""
        mechanism = wi.mechanisms.RandomizedResponse(lambda records: "a" in records, epsilon)
        game = wi.worlds.independent("abc", [0.2, 0.5, 0.7]).play(mechanism)
        for negative in (False, True):
            implied = wi.PureDP(epsilon).implies(wi.MembershipPrivacy, negative=negative)
            assert game.membership_privacy(negative).gamma == pytest.approx(math.exp(epsilon), rel=EXACT)
            assert (implied.gamma, implied.family) == (pytest.approx(math.exp(epsilon), rel=EXACT), "independent")

    def test_theorem_4_5_positive_alone_leaves_the_negative_side_open(self):
        """Positive ln 2-DP that is ε-negative for no ε: a coin without the record, always heads with it."""
        laws = {(): {"heads": 0.5, "tails": 0.5}, ("a",): {"heads": 1.0}}
        game = wi.worlds.independent("a", [0.3]).play(lambda records: laws[records])
        assert game.membership_privacy().gamma == pytest.approx(2.0, rel=EXACT)
        assert game.membership_privacy(negative=True).gamma == math.inf
        assert game.posterior("a", "tails") == 0.0

    @pytest.mark.parametrize(("k", "epsilon"), [(2, 0.5), (3, 1.0), (5, 0.3)])
    def test_theorem_4_5_needs_independence(self, k, epsilon):
        """k records all in (probability p) or all out, noisy count: Pr[S|t]/Pr[S] = 1/(p+(1-p)e^{-kε}) → e^{kε}."""
        people, law = tuple(range(k)), geometric_count(k, epsilon)
        assert wi.worlds.all_subsets(people).play(law).dp().epsilon == pytest.approx(epsilon, rel=EXACT)
        for prior in (0.5, 0.1, 1e-3, 1e-9):
            game = wi.worlds.explicit(people, {people: prior, (): 1 - prior}).play(law)
            lift = game.posterior(0, k) / prior
            assert lift == pytest.approx(1 / (prior + (1 - prior) * math.exp(-k * epsilon)), rel=1e-9)
        assert lift == pytest.approx(math.exp(k * epsilon), rel=1e-6)
        assert lift > 1.3 * math.exp(epsilon)
        alone = wi.worlds.independent(people, np.linspace(0.1, 0.9, k)).play(law)
        assert max(
            alone.posterior(r, s) / (0.1 + 0.8 * r / (k - 1)) for r in people for s in alone.outputs
        ) <= math.exp(epsilon)

    @pytest.mark.parametrize(("k", "epsilon"), [(2, 0.5), (4, 1.0)])
    def test_theorem_4_5_needs_independence_laplace(self, k, epsilon):
        """The paper's own example: Laplace noise of scale 1/ε on the count; γ is e^ε or, correlated, e^{kε}."""
        people, noisy_count = tuple(range(k)), wi.mechanisms.Laplace(len, 1 / epsilon)
        independent = wi.worlds.independent(people, 0.5).play(noisy_count)
        correlated = wi.worlds.explicit(people, {people: 0.01, (): 0.99}).play(noisy_count)
        assert independent.membership_privacy().gamma == pytest.approx(math.exp(epsilon), rel=EXACT)
        assert correlated.membership_privacy().gamma == pytest.approx(math.exp(k * epsilon), rel=EXACT)


class TestFamily51:
    """D_N: every subset equally likely, so Pr[t] = 1/2."""

    @pytest.mark.parametrize("negative", [False, True])
    @each("seed", range(6))
    def test_family_5_1_gamma_is_half_of_ratio_plus_one(self, seed, negative):
        """Under D_N γ = (R+1)/2, with R the largest ratio of the output's laws given t and given ¬t."""
        laws = random_laws(np.random.default_rng(seed), subsets("abc"))
        game = wi.worlds.all_subsets("abc").play(lambda records: laws[records])
        ratio = 1.0
        for record, s in itertools.product("abc", range(3)):
            inside, outside = (
                math.fsum(law[s] for d, law in laws.items() if (record in d) == member) for member in (True, False)
            )
            ratio = max(ratio, outside / inside if negative else inside / outside)
        needed = max(needed_gamma(game, record, 0.5, negative) for record in "abc")
        assert needed == pytest.approx((ratio + 1) / 2, rel=EXACT)
        assert game.membership_privacy(negative).gamma == pytest.approx(needed, rel=EXACT)
        assert game.membership_privacy(negative).ratio == pytest.approx(ratio, rel=EXACT)

    @given(st.floats(0.0, 20.0))
    def test_family_5_1_follows_from_unbounded_dp(self, epsilon):
        """ε-DP (add/remove) gives γ = (e^ε+1)/2 under D_N, also by way of D_I, and the same limit on the belief."""
        direct = wi.PureDP(epsilon).implies(wi.MembershipPrivacy, family="uniform")
        detour = wi.PureDP(epsilon).implies(wi.MembershipPrivacy).implies(wi.MembershipPrivacy, family="uniform")
        assert direct.gamma == pytest.approx((math.exp(epsilon) + 1) / 2, rel=EXACT)
        assert detour.gamma == pytest.approx(direct.gamma, rel=EXACT)
        assert direct.posterior(0.5)[1] == pytest.approx(wi.PureDP(epsilon).posterior(0.5)[1], rel=1e-9)

    @pytest.mark.parametrize("epsilon", [0.5, 2.0])
    def test_family_5_1_attained_by_randomised_response(self, epsilon):
        """Randomised response attains γ = (e^ε+1)/2."""
        game = wi.worlds.all_subsets("abc").play(wi.mechanisms.RandomizedResponse(lambda d: "b" in d, epsilon))
        assert game.membership_privacy().gamma == pytest.approx((math.exp(epsilon) + 1) / 2, rel=EXACT)


class TestFamily46:
    """D_B: independent records given the size of the data set. D_B²: exactly two data sets are possible."""

    @each("seed", range(5))
    @pytest.mark.parametrize("size", [1, 2, 3])
    def test_family_4_6_is_the_independent_prior_given_the_size(self, seed, size):
        """A bounded independent prior is the product prior of the sets of that size, normalised."""
        probabilities = np.random.default_rng(seed).uniform(0.05, 0.95, size=4)
        free = wi.worlds.independent(range(4), probabilities)
        bounded = wi.worlds.bounded_independent(range(4), probabilities, size)
        weights = {
            int(mask): weight
            for mask, weight in zip(free.masks, free.prior, strict=True)
            if int(mask).bit_count() == size
        }
        total = math.fsum(weights.values())
        assert dict(zip(bounded.masks.tolist(), bounded.prior.tolist(), strict=True)) == pytest.approx(
            {mask: weight / total for mask, weight in weights.items()}, rel=EXACT
        )
        assert bounded.size == size

    def test_family_4_7_is_bounded_with_all_but_two_records_known(self):
        """One out of two: all other records have probability 0 or 1, and the size is one more than the sure ones."""
        first, second = 0.8, 0.3
        bounded = wi.worlds.bounded_independent("abcd", [1.0, first, second, 0.0], 2)
        odds = first * (1 - second) / (second * (1 - first))
        pair = wi.worlds.one_of_two("abcd", "b", "c", certain="a", probability=odds / (1 + odds))
        assert bounded.masks.tolist() == pair.masks.tolist() == [0b0011, 0b0101]
        assert bounded.prior == pytest.approx(pair.prior, rel=EXACT)
        assert pair.size == 2


class TestTheorem48:
    """ε-bounded DP ⇔ (D_B, e^ε)-PMP."""

    @pytest.mark.parametrize("size", [1, 2, 3])
    @each("seed", range(5))
    def test_theorem_4_8_dp_bounds_every_bounded_independent_prior(self, seed, size):
        """⇒: under any independent prior given the size, γ = e^ε suffices, positive and negative."""
        rng = np.random.default_rng(seed)
        laws = random_laws(rng, list(itertools.combinations("abcd", size)))
        gamma = one_replaced(laws)
        for _ in range(6):
            world = wi.worlds.bounded_independent("abcd", rng.uniform(0.01, 0.99, size=4), size)
            game = world.play(lambda records: laws[records])
            for negative in (False, True):
                pairs = zip("abcd", world.inclusion.tolist(), strict=True)
                assert max(needed_gamma(game, r, p, negative) for r, p in pairs) <= gamma * (1 + 1e-9)
                assert game.membership_privacy(negative).gamma == pytest.approx(gamma, rel=EXACT)
                assert game.membership_privacy(negative).family == "bounded"
            assert game.dp().epsilon == pytest.approx(math.log(gamma), rel=EXACT)
            assert game.dp().adjacency == "replace"

    @pytest.mark.parametrize("negative", [False, True])
    @each("seed", range(5))
    def test_theorem_4_8_one_out_of_two_needs_the_whole_gamma(self, seed, negative):
        """⇐: ε-BDP is (D_B², e^ε)-PMP by definition; the priors near 0 approach e^ε."""
        laws = random_laws(np.random.default_rng(seed), list(itertools.combinations("abcd", 2)))
        reached = 1.0
        for first, second in itertools.permutations("abcd", 2):
            for certain in set("abcd") - {first, second}:
                for p in (1e-7, 1 - 1e-7):
                    world = wi.worlds.one_of_two("abcd", first, second, certain=certain, probability=p)
                    game = world.play(lambda records: laws[records])
                    reached = max(reached, needed_gamma(game, first, p, negative))
        assert reached == pytest.approx(one_replaced(laws), rel=1e-5)

    @given(st.floats(0.0, 20.0))
    def test_theorem_4_8_both_ways_as_implications(self, epsilon):
        """PureDP(ε, replace) ⇒ γ = e^ε for D_B ⇒ PureDP(ε, replace); from add/remove the step costs 2ε."""
        bounded = wi.PureDP(epsilon, "replace").implies(wi.MembershipPrivacy)
        assert (bounded.family, bounded.gamma) == ("bounded", pytest.approx(math.exp(epsilon), rel=EXACT))
        back = bounded.implies(wi.PureDP)
        assert (back.adjacency, back.epsilon) == ("replace", pytest.approx(epsilon, abs=EXACT))
        doubled = wi.PureDP(epsilon, "add_remove").implies(wi.MembershipPrivacy, family="bounded")
        assert doubled.gamma == pytest.approx(math.exp(2 * epsilon), rel=EXACT)

    def test_theorem_4_8_bounded_dp_has_no_positive_and_negative_halves(self):
        """BDP is symmetric: the coin that is only positive under D_I has infinite γ on both sides under D_B."""
        laws = {("a",): {"heads": 1.0}, ("b",): {"heads": 0.5, "tails": 0.5}}
        game = wi.worlds.uniform_subsets("ab", 1).play(lambda records: laws[records])
        assert game.membership_privacy().gamma == game.membership_privacy(negative=True).gamma == math.inf

    @pytest.mark.parametrize(("n", "size"), [(4, 2), (5, 3)])
    def test_theorem_4_8_proof_exchanges_two_sizes(self, n, size):
        """Before lemma 4.9 the text gives T₁, drawn without t, k - 1 records and T₂ k; it is the other way round."""
        larger, smaller = TestLemma49.margins(wi.worlds.bounded_independent(range(n), [0.3] * n, size))
        assert {len(t1) for t1 in larger} == {size}
        assert {len(t2) for t2 in smaller} == {size - 1}

    def test_theorem_4_8_needs_independence(self):
        """A prior of one size that is not conditionally independent, {a,b} or {c,d}, has ratio e^{2ε}."""
        shrink = math.exp(-1.0)

        def law(records):
            hits = len(set(records) & set("ab"))
            return {0: shrink**hits / (1 + shrink), 1: (1 - shrink) / (1 + shrink) * shrink ** abs(1 - hits)} | {
                2: shrink ** (2 - hits) / (1 + shrink)
            }

        assert wi.worlds.uniform_subsets("abcd", 2).play(law).dp().epsilon == pytest.approx(1.0, rel=EXACT)
        game = wi.worlds.explicit("abcd", {"ab": 0.5, "cd": 0.5}).play(law)
        assert game.membership_privacy().gamma == pytest.approx(math.exp(2.0), rel=EXACT)


class TestLemma49:
    """For bounded independent priors a law on pairs T₂ ⊂ T₁ has margins Pr[T₁|¬t] and Pr[T₂ ∪ {t}|t]."""

    @staticmethod
    def coupling(larger, smaller):
        """A joint law on {T₂ ⊂ T₁} with these two margins (linear programme), or None if there is none."""
        pairs = [(one, two) for one in larger for two in smaller if set(two) <= set(one)]
        rows = [[float(pair[0] == one) for pair in pairs] for one in larger]
        rows += [[float(pair[1] == two) for pair in pairs] for two in smaller]
        margins = [*larger.values(), *smaller.values()]
        found = linprog(np.zeros(len(pairs)), A_eq=np.array(rows), b_eq=margins, bounds=(0, None))
        assert found.status in (0, 2), found.message
        return dict(zip(pairs, found.x, strict=True)) if found.status == 0 else None

    @staticmethod
    def margins(world):
        """Laws of the data set without t given that it is out, and given that it is in; t is record 0."""
        larger, smaller = {}, {}
        for members, weight in zip(world.membership, world.prior, strict=True):
            rest = tuple(np.flatnonzero(members[1:]) + 1)
            (smaller if members[0] else larger)[rest] = weight
        return tuple({d: w / sum(law.values()) for d, w in law.items()} for law in (larger, smaller))

    @each("seed", range(25))
    def test_lemma_4_9_monotone_coupling_exists(self, seed):
        """The linear programme is feasible for random bounded independent priors, n ≤ 6 and every size."""
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 7))
        size = int(rng.integers(1, n))
        probabilities = rng.beta(0.4, 0.4, size=n).clip(1e-3, 1 - 1e-3)
        assert self.coupling(*self.margins(wi.worlds.bounded_independent(range(n), probabilities, size))) is not None

    @each("seed", range(5))
    def test_lemma_4_9_fails_for_other_priors_of_one_size(self, seed):
        """It is about independent priors: where {c} goes with t and {a,b} without it, there is no such pair."""
        rest = np.random.default_rng(seed).uniform(0.0, 0.1)
        table = {(1, 2): 0.5 - rest / 2, (0, 3): 0.5 - rest / 2, (1, 3): rest / 2, (0, 1): rest / 2}
        assert self.coupling(*self.margins(wi.worlds.explicit(range(4), table))) is None

    @pytest.mark.parametrize("size", [1, 2, 3])
    @each("seed", range(3))
    def test_equation_11_both_laws_are_sums_over_the_coupling(self, seed, size):
        """Pr[S|t] = Σ P(T₁, T₂)·Pr[S|T₂ ∪ {t}], Pr[S|¬t] = Σ P(T₁, T₂)·Pr[S|T₁]: pair by pair within e^ε."""
        rng = np.random.default_rng(seed)
        laws = random_laws(rng, list(itertools.combinations(range(4), size)))
        world = wi.worlds.bounded_independent(range(4), rng.uniform(0.1, 0.9, size=4), size)
        game, pairs = world.play(lambda records: laws[records]), self.coupling(*self.margins(world))
        for output in range(3):
            present, absent = (
                [weight * laws[chosen][output] for chosen, weight in sides]
                for sides in (
                    [((0, *two), weight) for (_, two), weight in pairs.items()],
                    [(one, weight) for (one, _), weight in pairs.items()],
                )
            )
            assert math.fsum(present) == pytest.approx(game.inside[0, output], abs=1e-9)
            assert math.fsum(absent) == pytest.approx(game.outside[0, output], abs=1e-9)
            assert all(p <= one_replaced(laws) * q + EXACT for p, q in zip(present, absent, strict=True))

    @each("seed", range(3))
    def test_section_4_2_without_sizes_one_set_serves_both(self, seed):
        """Independent records: given t and given ¬t the others have one law, so T₁ = T₂ couples them."""
        world = wi.worlds.independent(range(4), np.random.default_rng(seed).uniform(0.1, 0.9, size=4))
        without_t, with_t = self.margins(world)
        assert without_t == pytest.approx(with_t, rel=EXACT)


class TestProposition53:
    """k-Max satisfies (D_N, γ)-PMP for γ = (2^k-1)/(2^k-2): true if the empty set counts as rank 1, false otherwise."""

    @pytest.mark.parametrize(("n", "k"), [(8, 3), (5, 2)])
    def test_definition_5_2_uniform_on_k_ranks_from_the_maximum(self, n, k):
        """The output is uniform on {c_j, …, c_{j+k-1}}, or on the k largest values when j+k-1 > n."""
        ranks = list(range(1, n + 1))
        mechanism = wi.mechanisms.KMax(ranks, k)
        for data_set in subsets(ranks)[1:]:
            j = max(data_set)
            support = range(j, j + k) if j + k - 1 <= n else range(n - k + 1, n + 1)
            assert mechanism.law(data_set) == pytest.approx(dict.fromkeys(support, 1 / k))
        assert mechanism.law(()) == mechanism.law((1,))

    @pytest.mark.parametrize(("n", "k"), [(n, k) for k in (2, 3, 4) for n in (k + 1, k + 2, 7, 9)])
    def test_proposition_5_3_corrected_exact_gamma(self, n, k):
        """Empty set as rank 1: γ = (2^k-1)/(2^k-2) exactly, and the largest posterior is 2^{k-1}/(2^k-1)."""
        game = wi.worlds.all_subsets(range(n)).play(wi.mechanisms.KMax(range(n), k, empty="lowest"))
        gamma, highest = Fraction(2**k - 1, 2**k - 2), Fraction(2 ** (k - 1), 2**k - 1)
        assert str(gamma) == GOLDEN["gamma"][str(k)]
        assert str(highest) == GOLDEN["posterior_max"][str(k)]
        assert game.membership_privacy().gamma == pytest.approx(float(gamma), rel=EXACT)
        posteriors = [game.posterior(record, output) for record in range(n) for output in game.outputs]
        assert max(posteriors) == pytest.approx(float(highest), rel=EXACT)
        assert max(needed_gamma(game, record, 0.5) for record in range(n)) == pytest.approx(float(gamma), rel=EXACT)

    @pytest.mark.parametrize("k", [2, 3, 4])
    def test_proposition_5_3_printed_is_violated_with_an_empty_answer(self, k):
        """Empty set answered by a null symbol: output c₁ means D = {1}, the posterior is 1 and γ infinite."""
        game = wi.worlds.all_subsets(range(8)).play(wi.mechanisms.KMax(range(8), k, empty="null"))
        assert game.posterior(0, 0) == 1.0
        assert game.membership_privacy().gamma == math.inf

    def test_proposition_5_3_printed_is_violated_without_the_empty_set(self):
        """Leaving the empty set out of the prior does not help: c₁ still gives the lowest record away."""
        data_sets = subsets(range(6))[1:]
        world = wi.worlds.explicit(range(6), dict.fromkeys(data_sets, 1 / len(data_sets)))
        game = world.play(wi.mechanisms.KMax(range(6), 3))
        assert game.posterior(0, 0) == pytest.approx(1.0, rel=EXACT)
        assert game.membership_privacy().gamma == math.inf

    def test_proposition_5_3_proof_claims_k_candidates_for_every_output(self):
        """n = 8, k = 3, null answer: the largest posterior is 2^{s-1}/(2^s-1), and s < k for outputs 1 and 2."""
        game = wi.worlds.all_subsets(range(8)).play(wi.mechanisms.KMax(range(8), 3, empty="null"))
        highest = [max(game.posterior(record, output) for record in range(8)) for output in range(8)]
        expected = [1, 2 / 3, 4 / 7, 4 / 7, 4 / 7, 16 / 31, 8 / 15, 4 / 7]
        assert highest == pytest.approx(expected, rel=EXACT)

    def test_proposition_5_3_text_prints_seven_twelfths_for_the_posterior(self):
        """For k = 3 the posterior reaches 4/7; the printed 7/12 is γ/2, true and not attained."""
        game = wi.worlds.all_subsets(range(6)).play(wi.mechanisms.KMax(range(6), 3))
        highest = max(game.posterior(record, output) for record in range(6) for output in range(6))
        assert highest == pytest.approx(4 / 7, rel=EXACT)
        assert highest < 7 / 12 - 0.01

    @pytest.mark.parametrize("empty", ["lowest", "null"])
    @pytest.mark.parametrize(("n", "k"), [(3, 2), (4, 3), (6, 3), (8, 2)])
    def test_proposition_5_3_not_negative(self, n, k, empty):
        """k-Max satisfies no (D_N, γ)-NMP once |U| ≥ k+1: output c₁ rules the larger entities out."""
        game = wi.worlds.all_subsets(range(n)).play(wi.mechanisms.KMax(range(n), k, empty=empty))
        assert game.posterior(n - 1, 0) == 0.0
        assert game.membership_privacy(negative=True).gamma == math.inf

    @pytest.mark.parametrize("k", [2, 3, 4, 9])
    def test_proposition_5_3_two_conditions_on_gamma(self, k):
        """Pr[i|c] ≤ min(γ/2, (γ - ½)/γ) at the posterior 2^{k-1}/(2^k - 1): the second condition asks for more."""
        posterior = Fraction(2 ** (k - 1), 2**k - 1)
        first, second = 2 * posterior, 1 / (2 * (1 - posterior))
        assert (first, second) == (Fraction(2**k, 2**k - 1), Fraction(2**k - 1, 2**k - 2))
        assert first < second
        belief = wi.MembershipPrivacy(float(second), "uniform").posterior(0.5)[1]
        assert belief == pytest.approx(float(posterior), rel=1e-11)

    @pytest.mark.parametrize(("n", "k"), [(6, 2), (8, 3)])
    def test_proposition_5_3_posteriors_of_the_proof(self, n, k):
        """Pr[i|c_j] is 0 above the largest candidate, ½ from j - k down, and 2^{s-1}/(2^s - 1) for the s candidates."""
        game = wi.worlds.all_subsets(range(1, n + 1)).play(wi.mechanisms.KMax(range(1, n + 1), k))
        for j in range(k + 1, n + 1):
            candidates = range(j - k + 1, (j if j <= n - k else n) + 1)
            s = len(candidates)
            for i in range(1, n + 1):
                expected = 0.5 if i <= j - k else 2 ** (s - 1) / (2**s - 1) if i in candidates else 0.0
                assert game.posterior(i, j) == pytest.approx(expected, rel=EXACT)

    def test_proposition_5_3_example_of_two_candidates(self):
        """k = 2, output c_{n-1}: n may be the maximum, and so may n - 2, which can have the next rank as its answer."""
        n, mechanism = 6, wi.mechanisms.KMax(range(1, 7), 2)
        maxima = {top for top in range(1, n + 1) if mechanism.law((top,)).get(n - 1, 0.0) > 0.0}
        assert maxima == {n - 2, n - 1, n}

    @pytest.mark.parametrize("k", [2, 3])
    def test_proposition_5_3_needs_a_universe_above_k(self, k):
        """With |U| = k every data set has the same law: γ = 1 on both sides."""
        game = wi.worlds.all_subsets(range(k)).play(wi.mechanisms.KMax(range(k), k))
        for negative in (False, True):
            assert game.membership_privacy(negative).gamma == pytest.approx(1.0, rel=EXACT)


class TestDefinition54:
    """ρ-differential identifiability: m equally likely candidates for the one unknown record, no belief above ρ."""

    KNOWN = ("x", "y")

    def game(self, laws):
        """The candidates 0..m-1 in turn added to two known records; ``laws[i]`` is the law with candidate i."""
        m = len(laws)
        world = wi.worlds.explicit((*range(m), *self.KNOWN), {(i, *self.KNOWN): 1 / m for i in range(m)})
        return world.play(lambda records: laws[records[0]])

    @staticmethod
    def highest(game, m):
        return max(game.posterior(i, output) for i in range(m) for output in game.outputs)

    @pytest.mark.parametrize("m", [2, 3, 5])
    @each("seed", range(5))
    def test_definition_5_4_follows_from_dp(self, seed, m):
        """Replace-one ε-DP gives ρ = 1/(1+(m-1)e^{-ε})."""
        laws = list(random_laws(np.random.default_rng(seed), range(m)).values())
        game = self.game(laws)
        epsilon = max(math.log(p[s] / q[s]) for p, q in itertools.permutations(laws, 2) for s in p)
        assert game.dp().epsilon == pytest.approx(epsilon, rel=EXACT)
        rho = wi.PureDP(epsilon, "replace").implies(wi.DifferentialIdentifiability, candidates=m).rho
        assert rho == pytest.approx(1 / (1 + (m - 1) * math.exp(-epsilon)), rel=EXACT)
        assert self.highest(game, m) <= rho * (1 + EXACT)

    @pytest.mark.parametrize(("m", "epsilon"), [(2, 1.0), (3, 0.5), (6, 2.0)])
    def test_definition_5_4_attained_by_randomised_response(self, m, epsilon):
        """Randomised response on "is it candidate 0" reaches ρ = 1/(1+(m-1)e^{-ε})."""
        right, wrong = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
        game = self.game([{True: right, False: wrong}, *[{True: wrong, False: right}] * (m - 1)])
        assert game.posterior(0, True) == pytest.approx(1 / (1 + (m - 1) * math.exp(-epsilon)), rel=EXACT)

    @pytest.mark.parametrize("m", [2, 3, 4])
    @each("seed", range(5))
    def test_definition_5_4_converse(self, seed, m):
        """ρ < 1/(m-1) gives ε = ln(ρ/(1-(m-1)ρ)) between any two candidates."""
        laws = list(random_laws(np.random.default_rng(seed), range(m), spread=0.1).values())
        game = self.game(laws)
        rho = self.highest(game, m)
        assert m == 2 or rho < 1 / (m - 1)
        back = wi.DifferentialIdentifiability(rho, m).implies(wi.PureDP)
        assert (back.adjacency, back.epsilon) == ("replace", pytest.approx(math.log(rho / (1 - (m - 1) * rho))))
        assert game.dp().epsilon <= back.epsilon * (1 + EXACT)

    @pytest.mark.parametrize(("m", "rho"), [(2, 0.7), (3, 0.4), (5, 0.22)])
    def test_definition_5_4_converse_attained(self, m, rho):
        """m outputs, each 1-(m-1)ρ likely under its own candidate and ρ under the others, attain the converse."""
        least = 1 - (m - 1) * rho
        game = self.game([{j: least if i == j else rho for j in range(m)} for i in range(m)])
        assert self.highest(game, m) == pytest.approx(max(rho, least), rel=EXACT)
        back = wi.DifferentialIdentifiability(rho, m).implies(wi.PureDP)
        assert game.dp().epsilon == pytest.approx(back.epsilon, rel=1e-10)

    @pytest.mark.parametrize("m", [3, 4])
    def test_definition_5_4_no_converse_from_one_over_m_minus_one_on(self, m):
        """At ρ = 1/(m-1) an output may rule one candidate out: no ε follows."""
        game = self.game([{j: 0.0 if i == j else 1 / (m - 1) for j in range(m)} for i in range(m)])
        assert self.highest(game, m) == pytest.approx(1 / (m - 1), rel=EXACT)
        assert game.dp().epsilon == math.inf
        with pytest.raises(ImplicationError, match="rules out one candidate"):
            wi.DifferentialIdentifiability(1 / (m - 1), m).implies(wi.PureDP)

    @pytest.mark.parametrize("epsilon", [0.3, 1.5])
    def test_definition_5_4_two_candidates_lose_nothing(self, epsilon):
        """With m = 2 both ways compose to the same ε."""
        two = wi.PureDP(epsilon, "replace").implies(wi.DifferentialIdentifiability, candidates=2)
        assert two.implies(wi.PureDP).epsilon == pytest.approx(epsilon, rel=1e-9)


class TestTheorem510:
    """DP under sampling: keep each record with probability β, then ε₁-DP: ε = ln(1+β(e^{ε₁}-1)), δ = βδ₁."""

    @staticmethod
    def divergence(game, gamma):
        """Largest Σ(p - γq)_+ over adjacent data sets (add/remove), either way round."""
        rows = dict(zip(game.world.masks.tolist(), game.laws, strict=True))
        pairs = [(m, m ^ (1 << i)) for m in rows for i in range(len(game.world.universe)) if m ^ (1 << i) in rows]
        return max(float(np.maximum(rows[a] - gamma * rows[b], 0.0).sum()) for a, b in pairs)

    @pytest.mark.parametrize("rate", [0.01, 0.3, 0.9])
    @each("seed", range(4))
    def test_theorem_5_10_amplification_holds(self, seed, rate):
        """Any ε₁-DP mechanism after sampling is ln(1+β(e^{ε₁}-1))-DP."""
        laws = random_laws(np.random.default_rng(seed), subsets("abc"))
        first = math.log(max(with_over_without(laws), without_over_with(laws)))
        game = wi.worlds.all_subsets("abc").play(wi.mechanisms.Subsampled(lambda records: laws[records], rate))
        limit = wi.PureDP(first).implies(wi.PureDP, sample_rate=rate).epsilon
        assert limit == pytest.approx(math.log(1 + rate * (math.exp(first) - 1)), rel=EXACT)
        assert game.dp().epsilon <= limit * (1 + 1e-9)

    @pytest.mark.parametrize("rate", [0.05, 0.5, 1.0])
    @pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
    def test_theorem_5_10_attained_by_randomised_response(self, rate, epsilon):
        """Randomised response on one record attains ln(1+β(e^{ε₁}-1))."""
        base = wi.mechanisms.RandomizedResponse(lambda records: "a" in records, epsilon)
        game = wi.worlds.all_subsets("ab").play(wi.mechanisms.Subsampled(base, rate))
        assert game.dp().epsilon == pytest.approx(math.log(1 + rate * (math.exp(epsilon) - 1)), rel=1e-11)

    @pytest.mark.parametrize("rate", [0.1, 0.6])
    @pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.05), (2.0, 0.2)])
    def test_theorem_5_10_delta_shrinks_with_the_rate(self, rate, epsilon, delta):
        """With (ε₁, δ₁) the sampled mechanism has δ = βδ₁ at ε, attained by revealing with probability δ₁."""
        base = wi.mechanisms.RandomizedResponse(lambda records: "a" in records, epsilon, delta)
        game = wi.worlds.all_subsets("ab").play(wi.mechanisms.Subsampled(base, rate))
        limit = wi.ApproxDP(epsilon, delta).implies(wi.ApproxDP, sample_rate=rate)
        assert limit.delta == pytest.approx(rate * delta, rel=EXACT)
        assert limit.epsilon == pytest.approx(math.log(1 + rate * (math.exp(epsilon) - 1)), rel=EXACT)
        assert self.divergence(game, math.exp(limit.epsilon)) == pytest.approx(rate * delta, rel=1e-10)
        assert self.divergence(game, 0.99 * math.exp(limit.epsilon)) > rate * delta * 1.0001

    @pytest.mark.parametrize("rate", [0.1, 0.5])
    @each("seed", range(4))
    def test_theorem_5_10_sampling_is_the_family_with_one_inclusion_probability(self, seed, rate):
        """P(A_β(T∪t) = S)/P(A_β(T) = S) is the Pr[¬t]/Pr[¬t|S] of the independent priors with Pr[t] ∈ {0, β}."""
        laws = random_laws(np.random.default_rng(seed), subsets("abc"))
        sampled = wi.worlds.all_subsets("abc").play(wi.mechanisms.Subsampled(lambda records: laws[records], rate))
        positive = wi.worlds.independent("abc", 0.5).play(lambda records: dict(enumerate(row_of(sampled, records))))
        needed = 1.0
        for chosen in subsets("abc")[1:]:
            game = wi.worlds.independent("abc", [rate * (c in chosen) for c in "abc"]).play(
                lambda records: laws[records]
            )
            needed = max(needed, *((1 - rate) / (1 - game.posterior(r, s)) for r in chosen for s in game.outputs))
        assert positive.membership_privacy().gamma == pytest.approx(needed, rel=EXACT)

    def test_theorem_5_10_needs_add_remove(self):
        """From replace-one DP nothing follows under sampling: A(D) = |D| is 0-DP, and not DP once sampled."""
        with pytest.raises(ImplicationError, match="sampling"):
            wi.PureDP(0.0, "replace").implies(wi.PureDP, sample_rate=0.5)
        game = wi.worlds.all_subsets("ab").play(wi.mechanisms.Subsampled(lambda records: {len(records): 1.0}, 0.5))
        assert game.dp().epsilon == math.inf


def row_of(game, records):
    """Probabilities of the outputs of a played game on one data set, in the order of its outputs."""
    mask = sum(1 << game.world.index(record) for record in records)
    return game.laws[game.world.masks.tolist().index(mask)].tolist()


class TestOneSidedness:
    """Positive and negative membership privacy are two guarantees; neither is about other families of priors."""

    def test_one_sided_k_max(self):
        """k-Max has γ = 7/6 and an infinite two-sided ε: a likelihood ratio of 0 occurs, none above 4/3."""
        game = wi.worlds.all_subsets(range(6)).play(wi.mechanisms.KMax(range(6), 3))
        assert game.membership_privacy().gamma == pytest.approx(7 / 6, rel=EXACT)
        assert game.membership_privacy().ratio == pytest.approx(4 / 3, rel=EXACT)
        assert game.dp().epsilon == math.inf
        assert min(game.roc(record).slopes[0] for record in range(6)) == 0.0
        assert max(game.roc(record).slopes[1] for record in range(6)) == pytest.approx(4 / 3, rel=1e-9)
        for target in (wi.PureDP, wi.PMP, wi.MIP):
            with pytest.raises(ImplicationError, match="k-Max"):
                game.membership_privacy().implies(target)

    def test_one_sided_k_max_has_no_practical_privacy(self):
        """In a world of one size k-Max gives a record away for sure: no finite PMP follows from finite γ."""
        game = wi.worlds.uniform_subsets(range(6), 3).play(wi.mechanisms.KMax(range(6), 2))
        assert game.pmp().epsilon == math.inf

    def test_size_is_private_in_one_size_and_reveals_all_under_d_n(self):
        """A(D) = |D| is 0-PMP where the size is fixed, and has γ = ∞ under D_N and D_I."""
        size = lambda records: {len(records): 1.0}  # noqa: E731
        fixed = wi.worlds.uniform_subsets("abcd", 2).play(size)
        assert fixed.pmp().epsilon == 0.0
        assert fixed.dp() == wi.PureDP(0.0, "replace")
        assert fixed.membership_privacy() == wi.MembershipPrivacy(1.0, "bounded")
        for world in (wi.worlds.all_subsets("abcd"), wi.worlds.independent("a", 0.5)):
            assert world.play(size).membership_privacy().gamma == math.inf
            assert world.play(size).posterior("a", len(world.universe)) == 1.0

    @pytest.mark.parametrize(
        ("guarantee", "params"),
        [
            (wi.PMP(0.0), {}),
            (wi.MIP(0.0), {}),
            (wi.PureDP(0.0, "replace"), {"family": "uniform"}),
            (wi.PureDP(0.0, "replace"), {"family": "independent"}),
            (wi.MembershipPrivacy(1.0, "bounded"), {"family": "uniform"}),
            (wi.MembershipPrivacy(1.0, "bounded"), {"family": "independent"}),
        ],
        ids=lambda value: str(value),
    )
    def test_size_blocks_every_way_to_other_families(self, guarantee, params):
        """Each guarantee that A(D) = |D| satisfies refuses to imply membership privacy for D_N or D_I, naming it."""
        with pytest.raises(ImplicationError, match=r"A\(D\) = \|D\|"):
            guarantee.implies(wi.MembershipPrivacy, **params)


def first_primes(count):
    """The first so many prime numbers, by the sieve."""
    prime = np.ones(120_000, dtype=bool)
    prime[:2] = False
    for i in range(2, 347):
        prime[i * i :: i] &= not prime[i]
    return np.flatnonzero(prime)[:count].tolist()


class TestRemarks:
    """What the text says beside its numbered statements."""

    @each("seed", range(5))
    def test_family_d_u_compares_all_data_sets_with_and_without(self, seed):
        """All priors: γ is the largest ratio of any data set with t to any without, adjacent or not; some prior of two
        data sets needs it, and no prior needs more."""
        rng = np.random.default_rng(seed)
        laws = random_laws(rng, subsets(range(3)))
        pairs = [(d, e) for d in laws for e in laws if 0 in d and 0 not in e]
        ratio, worst = max((max(laws[d][s] / laws[e][s] for s in range(3)), (d, e)) for d, e in pairs)
        two = wi.worlds.explicit(range(3), {worst[0]: 1e-9, worst[1]: 1.0 - 1e-9}).play(lambda records: laws[records])
        assert needed_gamma(two, 0, 1e-9) == pytest.approx(ratio, rel=1e-6)
        prior = dict(zip(laws, rng.dirichlet(np.full(len(laws), 0.3)), strict=True))
        any_prior = wi.worlds.explicit(range(3), prior).play(lambda records: laws[records])
        assert any_prior.tpr_at(0, 0.25) <= 0.25 * ratio + 1e-12

    @pytest.mark.parametrize("n", [1, 3, 6])
    def test_family_d_u_is_too_strong(self, n):
        """ε-DP leaves e^{nε} where n people are all in or all out: only noise that hides the whole data set helps."""
        epsilon = 0.5
        law = {size: {1: 1 / (1 + math.exp(epsilon * (n - 2 * size)))} for size in (0, n)}
        game = wi.worlds.explicit(range(n), {(): 0.5, tuple(range(n)): 0.5}).play(
            lambda records: {1: law[len(records)][1], 0: 1 - law[len(records)][1]}
        )
        assert game.posterior(0, 1) == pytest.approx(1 / (1 + math.exp(-n * epsilon)), rel=EXACT)

    @pytest.mark.parametrize("k", [2, 3])
    def test_section_5_1_k_anonymity_gives_members_away(self, k):
        """Groups of at least k people are published with their counts: a full group proves everybody in it present."""
        town = {person: person // 3 for person in range(6)}

        def published(records):
            sizes = [sum(town[person] == group for person in records) for group in (0, 1)]
            return {tuple(size if size >= k else "suppressed" for size in sizes): 1.0}

        game = wi.worlds.all_subsets(range(6)).play(published)
        assert game.posterior(0, (3, "suppressed")) == 1.0
        assert game.membership_privacy().gamma == math.inf

    def test_section_5_1_the_primes(self):
        """Ten thousand values, the data set of the text, 3-Max: one of 9851, 9857 and 9859, a third each."""
        primes = first_primes(10_000)
        assert (len(primes), primes[-1]) == (10_000, 104_729)
        law = wi.mechanisms.KMax(primes, 3).law((2, 5, 113, 9851))
        assert law == pytest.approx(dict.fromkeys((9851, 9857, 9859), 1 / 3))

    @pytest.mark.parametrize("n", [5, 9])
    def test_section_5_1_maxima_lie_at_the_top_under_d_n(self, n):
        """Printed: most maxima are much smaller than the largest value. Of the data sets of D_N one in two has the
        largest value of the universe, and all but one in 2^j one of its j largest."""
        world = wi.worlds.all_subsets(range(n))
        for j in range(1, n + 1):
            at_the_top = world.membership[:, n - j :].any(axis=1)
            assert world.prior[at_the_top].sum() == pytest.approx(1 - 2.0**-j, rel=EXACT)

    @pytest.mark.parametrize("epsilon", [math.log(7 / 6), 1.0])
    def test_section_5_1_the_maximum_under_dp(self, epsilon):
        """The exponential mechanism on ranks, whose sensitivity is all ranks: off by tens, 3-Max is off by one."""
        ranks, top = range(200), 120
        mechanism = wi.mechanisms.Exponential(ranks, lambda w, x: abs(w - x), epsilon / (2 * 199))
        for other in (0, 199):
            laws = mechanism.law((top,)), mechanism.law((other,))
            assert max(abs(math.log(laws[0][w] / laws[1][w])) for w in ranks) <= epsilon
        dp = sum(p * abs(w - top) for w, p in mechanism.law((top,)).items())
        k_max = sum(p * abs(w - top) for w, p in wi.mechanisms.KMax(ranks, 3).law((5, top)).items())
        assert k_max == pytest.approx(1.0)
        assert dp > 40.0

    @pytest.mark.parametrize("k", [2, 3, 7])
    def test_section_5_1_within_k_ranks(self, k):
        """The answer of k-Max is less than k ranks from the true maximum, and k - 1 away for some data sets."""
        ranks = range(1, 21)
        mechanism = wi.mechanisms.KMax(ranks, k)
        away = [max(abs(answer - top) for answer in mechanism.law((1, top))) for top in ranks]
        assert max(away) == k - 1

    @pytest.mark.parametrize("epsilon", [math.log(7 / 6), 1.0])
    def test_section_5_1_laplace_noise_dominates_the_maximum(self, epsilon):
        """One record moves the maximum from the lowest to the highest value: the noise is the range over ε or more."""
        values, law = (
            (1.0, 2.0, 100.0),
            wi.mechanisms.Laplace(lambda records: max(records, default=0.0), 99.0 / epsilon),
        )
        game = wi.worlds.uniform_subsets(values, 1).play(law)
        assert game.dp().epsilon == pytest.approx(epsilon, rel=1e-9)
        less = wi.mechanisms.Laplace(lambda records: max(records, default=0.0), 0.99 * 99.0 / epsilon)
        assert wi.worlds.uniform_subsets(values, 1).play(less).dp().epsilon > epsilon
        assert law.scale >= 99.0

    def test_family_5_1_every_record_is_in_with_probability_one_half(self):
        """D_N has 2^|U| data sets of one probability, and Pr[t] = ½ for every t."""
        world = wi.worlds.all_subsets(range(5))
        assert world.prior == pytest.approx(np.full(32, 2.0**-5), rel=EXACT)
        assert world.inclusion == pytest.approx(np.full(5, 0.5), rel=EXACT)

    def test_section_5_2_hipaa(self):
        """1.5 %: no belief can stay below it among 66 candidates; among 100, ε = ln(0.015·99/0.985) ≈ 0.41 will do."""
        epsilon = math.log(0.015 * 99 / 0.985)
        assert epsilon == pytest.approx(0.4105, abs=1e-4)
        rho = wi.PureDP(epsilon, "replace").implies(wi.DifferentialIdentifiability, candidates=100).rho
        assert rho == pytest.approx(0.015, rel=1e-9)
        assert wi.PureDP(0.0, "replace").implies(wi.DifferentialIdentifiability, candidates=66).rho > 0.015
        assert wi.PureDP(0.0, "replace").implies(wi.DifferentialIdentifiability, candidates=67).rho < 0.015

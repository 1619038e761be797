"""Lowy, Li, Liu, Koike-Akino, Parsons and Wang, "Why does differential privacy with large ε defend against practical
membership inference attacks?" (AAAI 2024).

Every numbered statement, by enumeration of all halves of a small pool. Statements that hold only after a correction
are tested twice: as corrected, and the printed one against a world that breaks it.
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
from scipy.integrate import trapezoid
from scipy.special import ndtr
from scipy.stats import binom
from theorem_support import hockey_stick, random_laws, subsets

import whosin as wi
from whosin.errors import ImplicationError, InputError
from whosin.numerics.gaussian_noise import shift_divergence
from whosin.population.sums.pairwise import pairwise_divergences

DATA = Path(__file__).parents[1] / "data"
GOLDEN = json.loads((DATA / "golden.json").read_text())
FIXTURES = json.loads((DATA / "fixtures.json").read_text())
EXACT = 1e-12


def random_game(seed, pool=4, size=2, outputs=3, spread=1.0):
    """A random mechanism played on all subsets of one size, and its table."""
    people = range(pool)
    laws = random_laws(np.random.default_rng(seed), list(itertools.combinations(people, size)), outputs, spread)
    return wi.worlds.uniform_subsets(people, size).play(lambda records: laws[records]), laws


def conditional(laws, record, member):
    """Law of the output given that the record is in (or out) of a uniform data set: the plain average."""
    rows = [list(law.values()) for data_set, law in laws.items() if (record in data_set) == member]
    return np.mean(rows, axis=0)


def people_of(laws):
    return sorted({record for data_set in laws for record in data_set})


def in_out_divergence(laws, epsilon):
    """Largest hockey-stick divergence between in and out, over records and both directions."""
    pairs = [(conditional(laws, r, m), conditional(laws, r, not m)) for r in people_of(laws) for m in (True, False)]
    return max(hockey_stick(p, q, math.exp(epsilon)) for p, q in pairs)


def adjacent_divergence(laws, epsilon):
    """Largest hockey-stick divergence between data sets that differ by one replacement."""
    pairs = [(d, e) for d in laws for e in laws if len(set(d) & set(e)) == len(d) - 1]
    return max(hockey_stick([*laws[d].values()], [*laws[e].values()], math.exp(epsilon)) for d, e in pairs)


def events(outputs):
    """Every set of outputs, as index lists."""
    return [list(s) for size in range(1, outputs + 1) for s in itertools.combinations(range(outputs), size)]


def balle_wang(mu, epsilon):
    """Φ(μ/2 - ε/μ) - e^ε Φ(-μ/2 - ε/μ), and 0 at μ = 0."""
    if mu == 0.0:
        return 0.0
    return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu))


class TestDefinition2:
    """(ε, δ)-PMP: in and out are (ε, δ)-close on every event, over the draw of D and the mechanism."""

    @pytest.mark.parametrize("delta", [0.0, 0.01, 0.05])
    @each("seed", range(6))
    def test_definition_2_holds_for_every_event_at_the_exact_epsilon_and_not_below(self, seed, delta):
        """At ε = game.pmp(δ) both inequalities hold for all records and events, and at a smaller ε one fails."""
        game, laws = random_game(seed)
        epsilon = game.pmp(delta).epsilon
        assert epsilon > 0.01

        def holds(eps):
            for record in range(4):
                inside, outside = (conditional(laws, record, member) for member in (True, False))
                for event in events(3):
                    p, q = inside[event].sum(), outside[event].sum()
                    if p > math.exp(eps) * q + delta + EXACT or math.exp(-eps) * (q - delta) > p + EXACT:
                        return False
            return True

        assert holds(epsilon)
        assert not holds(epsilon - 1e-6)

    def test_definition_2_needs_a_uniform_half(self):
        """PMP is about a uniform subset of one size; other worlds refuse."""
        with pytest.raises(ImplicationError, match="uniform_subsets"):
            wi.worlds.all_subsets("ab").play(lambda records: {len(records): 1.0}).pmp()

    def test_definition_2_records_are_indices_not_values(self):
        """Distinct points are not w.l.o.g.: a pool with each value twice is another game than with each once."""
        ask = lambda records: any(value == "v" for _, value in records)  # noqa: E731
        once = wi.worlds.uniform_subsets([(0, "u"), (1, "v")], 1)
        twice = wi.worlds.uniform_subsets([(0, "u"), (1, "v"), (2, "u"), (3, "v")], 2)
        mechanism = wi.mechanisms.RandomizedResponse(ask, 2.0)
        right, wrong = 1 / (1 + math.exp(-2.0)), 1 / (1 + math.exp(2.0))
        assert once.play(mechanism).pmp().epsilon == pytest.approx(2.0, rel=EXACT)
        assert twice.play(mechanism).pmp().epsilon == pytest.approx(
            math.log((2 / 3 * wrong + 1 / 3 * right) / wrong), rel=EXACT
        )

    def test_definition_2_equal_values_are_told_apart_by_position(self):
        """Two people with the same value are two records: asking for "the" record of that value is refused."""
        game = wi.worlds.uniform_subsets(["u", "v", "v", "w"], 2).play(lambda records: {len(records): 1.0})
        assert len(game.world.masks) == 6
        with pytest.raises(InputError, match="positions"):
            game.accuracy("v")
        assert game.accuracy("u") == pytest.approx(0.5, rel=EXACT)


class TestLemma3:
    """(1) posterior form, (2) conditional laws, (3) sums over data sets; the δ's are the same in (2) and (3)."""

    @pytest.mark.parametrize("epsilon", [0.0, 0.2, 0.7])
    @each("seed", range(5))
    def test_lemma_3_posterior_form_gives_twice_delta_times_the_probability(self, seed, epsilon):
        """(1) with δ gives (2) with 2δ·P(A ∈ S), event by event and exactly; so with 2δ, as printed."""
        game, laws = random_game(seed)
        growth = math.exp(epsilon)
        for record, event in itertools.product(range(4), events(3)):
            p, q = (conditional(laws, record, member)[event].sum() for member in (True, False))
            total = sum(law[s] for law in laws.values() for s in event) / len(laws)
            after = p / (p + q)
            if len(event) == 1:
                assert game.posterior(record, event[0]) == pytest.approx(after, rel=EXACT)
            for first, second, belief in ((p, q, after), (q, p, 1 - after)):
                delta = max(0.0, belief - growth * (1 - belief))
                assert max(0.0, first - growth * second) == pytest.approx(2 * delta * total, abs=EXACT)
                assert first <= growth * second + 2 * delta + EXACT

    @pytest.mark.parametrize("n", [1, 2, 3])
    def test_lemma_3_conditional_laws_are_plain_averages(self, n):
        """(2) ⇔ (3) with the same δ: P(A ∈ S | x ∈ D) = (1/N) Σ over N = C(2n,n)/2 data sets; printed 2/N sums to 2."""
        game, laws = random_game(n, pool=2 * n, size=n)
        count = math.comb(2 * n, n) // 2
        for record in range(2 * n):
            sums = np.sum([list(law.values()) for data_set, law in laws.items() if record in data_set], axis=0)
            assert sum(record in data_set for data_set in laws) == count
            assert game.inside[record] == pytest.approx(sums / count, rel=EXACT)
            assert np.sum(2 * sums / count) == pytest.approx(2.0, rel=EXACT)

    def test_lemma_3_printed_equivalence_of_two_delta_and_delta_is_violated(self):
        """Printed: (2) with 2δ iff (3) with δ. Revealing with probability 2δ satisfies the one and not the other."""
        delta = 1 / 16
        laws = {(x, y): {("reveal", 0 in (x, y)): 2 * delta, "null": 1 - 2 * delta} for x, y in _halves(4)}
        game = wi.worlds.uniform_subsets(range(4), 2).play(lambda records: laws[records])
        event = game.outputs.index(("reveal", True))
        inside, outside = game.inside[0, event], game.outside[0, event]
        assert inside <= outside + 2 * delta + EXACT
        average = sum(law.get(("reveal", True), 0.0) for data_set, law in laws.items() if 0 in data_set) / 3
        assert average == pytest.approx(2 * delta, rel=EXACT)
        assert outside == 0.0
        assert average > 1.9 * delta, "(3) with δ would need average ≤ e^ε·0 + δ"

    @pytest.mark.parametrize("n", [1, 2, 3])
    def test_lemma_15_names_the_pool_where_the_data_set_is_meant(self, n):
        """X_in(x) = {D : x ∈ X}, as printed, are all C(2n, n) halves, none are left for X_out; N is half of that."""
        world = wi.worlds.uniform_subsets(range(2 * n), n)
        for x in world.universe:
            printed = [row for row in world.membership if x in world.universe]
            assert len(printed) == math.comb(2 * n, n) == 2 * int(world.membership[:, x].sum())

    @each("seed", range(5))
    def test_lemma_3_pure_forms_are_equivalent(self, seed):
        """δ = 0: the same ε fits the posteriors' odds and the conditional laws."""
        game, _ = random_game(seed)
        beliefs = [game.posterior(record, output) for record in range(4) for output in range(3)]
        odds = max(abs(math.log(belief / (1 - belief))) for belief in beliefs)
        assert game.pmp().epsilon == pytest.approx(odds, rel=1e-11)


def _halves(pool):
    return list(itertools.combinations(range(pool), pool // 2))


class TestCorollary4:
    """n = 1: (ε, δ)-PMP for every pool ⇔ (ε, δ)-DP, with the same δ (printed: 2δ)."""

    @pytest.mark.parametrize("delta", [0.0, 0.02, 0.1])
    @each("seed", range(5))
    def test_corollary_4_corrected_same_delta_both_ways(self, seed, delta):
        """The worst pool of two has exactly the ε of DP at the same δ."""
        laws = random_laws(np.random.default_rng(seed), [(x,) for x in range(4)], spread=1.0)
        whole = wi.worlds.uniform_subsets(range(4), 1).play(lambda records: laws[records])
        pools = [
            wi.worlds.uniform_subsets(pool, 1).play(lambda records: laws[records]).pmp(delta).epsilon
            for pool in itertools.combinations(range(4), 2)
        ]
        dp = whole.dp(delta)
        assert dp.adjacency == "replace"
        assert max(pools) == pytest.approx(dp.epsilon, rel=1e-11)
        assert adjacent_divergence(laws, dp.epsilon) == pytest.approx(delta, abs=1e-11)

    @pytest.mark.parametrize("delta", [1 / 64, 1 / 8])
    def test_corollary_4_printed_is_violated_by_revealing(self, delta):
        """Printed: (ε, 2δ)-PMP ⇒ (ε, δ)-DP. Revealing x with probability 2δ is (0, 2δ)-PMP, and (ε, δ)-DP for no ε."""
        reveal = lambda records: {records[0]: 2 * delta, "null": 1 - 2 * delta}  # noqa: E731
        for pool in itertools.combinations(range(4), 2):
            assert wi.worlds.uniform_subsets(pool, 1).play(reveal).pmp(2 * delta).epsilon == 0.0
        game = wi.worlds.uniform_subsets(range(4), 1).play(reveal)
        assert game.dp(delta).epsilon == math.inf
        assert game.dp(2 * delta).epsilon == 0.0


class TestProposition5:
    """ε-DP ⇒ ε-PMP, and for n > 2 some ln 2-PMP mechanism is not DP."""

    @pytest.mark.parametrize("delta", [0.0, 0.01, 0.1])
    @pytest.mark.parametrize(("pool", "size"), [(2, 1), (4, 2), (6, 3)])
    @each("seed", range(4))
    def test_proposition_5_dp_gives_pmp(self, seed, pool, size, delta):
        """The exact PMP of any mechanism is at most its exact replace-one DP on the pool, at every δ."""
        game, laws = random_game(seed, pool, size)
        dp = game.dp(delta)
        assert adjacent_divergence(laws, dp.epsilon) <= delta + 1e-11
        assert dp.epsilon == 0.0 or adjacent_divergence(laws, dp.epsilon - 1e-6) > delta
        assert game.pmp(delta).epsilon <= dp.epsilon * (1 + EXACT)
        implied = dp.implies(wi.PMP)
        assert (implied.epsilon, implied.delta) == (dp.epsilon, delta)

    @pytest.mark.parametrize(
        ("n", "ratio"), [(3, 2), (4, 5 / 4), (5, 7 / 6), (6, 38 / 37), (7, 124 / 121), (8, 405 / 404)]
    )
    def test_proposition_5_sum_modulo(self, n, ratio):
        """A(D) = ΣD mod 2n on {0..2n-1}: PMP with exactly this ratio, on every record, and no DP."""
        game = wi.worlds.uniform_subsets(range(2 * n), n).play(lambda records: {sum(records) % (2 * n): 1.0})
        assert game.pmp().epsilon == pytest.approx(math.log(ratio), abs=EXACT)
        logs = np.abs(np.log(game.inside / game.outside)).max(axis=1)
        assert logs == pytest.approx(np.full(2 * n, math.log(ratio)), abs=EXACT)
        assert game.dp().epsilon == math.inf
        printed = GOLDEN["lowy"]["prop5"][str(n)].removeprefix("ln").strip(" ()")
        top, _, bottom = printed.partition("/")
        assert float(top) / float(bottom or 1) == ratio

    def test_proposition_5_counts_of_the_proof(self):
        """n = 3: of the ten data sets with 0 at most 2 have one sum mod 6, of those without it at least 1 has each."""
        game = wi.worlds.uniform_subsets(range(6), 3).play(lambda records: {sum(records) % 6: 1.0})
        inside, outside = (np.rint(10 * law[0]).astype(int) for law in (game.inside, game.outside))
        assert (inside.max(), outside.min()) == (2, 1)
        assert math.log(inside.max() / outside.min()) == pytest.approx(game.pmp().epsilon, rel=EXACT)

    def test_proposition_17_has_its_ratio_turned_round(self):
        """The proof puts P(S | x ∉ D)/P(S | x ∈ D) equal to Σ in/Σ out; it is Σ out/Σ in."""
        game = wi.worlds.uniform_subsets(range(4), 2).play(
            wi.mechanisms.RandomizedResponse(lambda records: 0 in records, math.log(3))
        )
        yes = game.outputs.index(True)
        column = game.laws[:, yes]
        has = game.world.membership[:, 0]
        assert game.outside[0, yes] / game.inside[0, yes] == pytest.approx(1 / 3, rel=EXACT)
        assert column[~has].sum() / column[has].sum() == pytest.approx(1 / 3, rel=EXACT)
        assert column[has].sum() / column[~has].sum() == pytest.approx(3.0, rel=EXACT)

    @each("seed", range(3))
    @pytest.mark.parametrize("n", [1, 2, 3])
    def test_proposition_17_every_data_set_has_n_neighbours_on_the_other_side(self, n, seed):
        """A data set with x has n neighbours without it, and back: n·Σ_out P(D') = Σ_in Σ_{D' ~ D} P(D')."""
        game, _ = random_game(seed, pool=2 * n, size=n)
        members = game.world.membership.astype(int)
        inside = game.world.membership[:, 0]
        between = (members @ members.T == n - 1)[np.ix_(inside, ~inside)]
        assert set(between.sum(axis=0)) == set(between.sum(axis=1)) == {n}
        without = game.laws[~inside]
        assert n * without.sum(axis=0) == pytest.approx((between @ without).sum(axis=0), rel=EXACT)

    @pytest.mark.parametrize("n", [1, 2, 3, 4])
    def test_proposition_5_weaker_from_two_on_and_down_to_zero(self, n):
        """Publishing D and its complement, unordered, is 0-PMP, and no DP from n = 2 on: neither ln 2 nor n > 2 is a
        limit. At n = 1 it says nothing."""
        pool = frozenset(range(2 * n))
        game = wi.worlds.uniform_subsets(pool, n).play(
            lambda records: {frozenset({frozenset(records), pool - frozenset(records)}): 1.0}
        )
        assert game.pmp().epsilon == pytest.approx(0.0, abs=EXACT)
        assert game.dp().epsilon == (math.inf if n > 1 else 0.0)

    def test_proposition_5_is_not_for_two(self):
        """n = 2: the construction gives a record away."""
        game = wi.worlds.uniform_subsets(range(4), 2).play(lambda records: {sum(records) % 4: 1.0})
        assert game.pmp().epsilon == math.inf

    def test_proposition_5_printed_value_for_six_is_valid_and_loose(self):
        """n = 6: ln(40/37) sets the largest in-count against another output's out-count; exact is ln(38/37)."""
        game = wi.worlds.uniform_subsets(range(12), 6).play(lambda records: {sum(records) % 12: 1.0})
        inside, outside = (np.rint(462 * law[0]).astype(int) for law in (game.inside, game.outside))
        assert (inside.max(), outside.min()) == (40, 37)
        assert inside.argmax() not in np.flatnonzero(outside == outside.min())
        exact, printed = GOLDEN["lowy"]["prop5_n6_value"], GOLDEN["lowy"]["prop5_n6_printed_bound"]
        assert game.pmp().epsilon == pytest.approx(exact, abs=EXACT)
        assert printed == pytest.approx(math.log(40 / 37), rel=EXACT)
        assert printed / exact == pytest.approx(2.9, abs=0.05)

    @pytest.mark.parametrize("target", [wi.PureDP, wi.ApproxDP, wi.GaussianDP])
    def test_proposition_5_no_way_back(self, target):
        """PMP implies no DP; the error names the counterexample."""
        with pytest.raises(ImplicationError, match="sum of D mod 6"):
            wi.PMP(math.log(2)).implies(target)


class TestFootnote1:
    """The pool may have any size: all of it holds for data sets of other shares than one half."""

    @pytest.mark.parametrize(("pool", "size"), [(3, 1), (5, 2), (5, 4), (6, 2)])
    @each("seed", range(4))
    def test_footnote_1_dp_gives_pmp_at_every_train_fraction(self, seed, pool, size):
        """Replace-one DP carries over to a uniform subset of any size (adjacent coupling)."""
        game, _ = random_game(seed, pool, size)
        for delta in (0.0, 0.03):
            exact, dp = game.pmp(delta), game.dp(delta)
            implied = dp.implies(wi.PMP, train_fraction=size / pool)
            assert exact.train_fraction == implied.train_fraction == size / pool
            assert exact.epsilon <= implied.epsilon * (1 + EXACT)
        assert game.mip().eta <= game.dp().implies(wi.MIP, train_fraction=size / pool).eta + EXACT

    @pytest.mark.parametrize(("pool", "size"), [(3, 1), (5, 2), (6, 4)])
    def test_footnote_1_attained_by_randomised_response(self, pool, size):
        """Randomised response on one membership has ε̃ = ε at every share."""
        world = wi.worlds.uniform_subsets(range(pool), size)
        game = world.play(wi.mechanisms.RandomizedResponse(lambda records: 0 in records, 1.5))
        assert game.pmp().epsilon == pytest.approx(1.5, rel=1e-11)


class TestLemma6:
    """ε-PMP: no practical attack succeeds with probability above 1/(1+e^{-ε})."""

    @pytest.mark.parametrize(("pool", "size"), [(4, 2), (6, 3)])
    @each("seed", range(6))
    def test_lemma_6_accuracy_is_bounded(self, seed, pool, size):
        """Every deterministic attack, and so every attack, stays below 1/(1+e^{-ε}) on every record."""
        game, laws = random_game(seed, pool, size)
        limit = 1 / (1 + math.exp(-game.pmp().epsilon))
        for record in range(pool):
            inside, outside = (conditional(laws, record, member) for member in (True, False))
            attacks = [(inside[accused].sum(), outside[accused].sum()) for accused in events(3)]
            best = max(0.5, *(0.5 * tpr + 0.5 * (1 - fpr) for tpr, fpr in attacks))
            assert game.accuracy(record) == pytest.approx(best, rel=EXACT)
            assert best <= limit + EXACT

    @pytest.mark.parametrize("n", [1, 2, 3, 4])
    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 7.0])
    def test_lemma_6_attained_by_randomised_response(self, n, epsilon):
        """Randomised response on one membership attains it for every n."""
        game = wi.worlds.uniform_subsets(range(2 * n), n).play(
            wi.mechanisms.RandomizedResponse(lambda records: 0 in records, epsilon)
        )
        assert game.accuracy(0) == pytest.approx(1 / (1 + math.exp(-epsilon)), rel=EXACT)
        assert game.accuracy(0) == pytest.approx(wi.PMP(epsilon).accuracy(), rel=EXACT)

    @pytest.mark.parametrize(("epsilon", "key"), [(0.1, "acc_eps01"), (7.0, "acc_eps7"), (0.123, "acc_eps_0123")])
    def test_lemma_6_printed_numbers(self, epsilon, key):
        """52.5 % at ε = 0.1, 0.999 at 7, 53 % at 0.123; and the same of whoever knows everybody else, from ε-DP."""
        assert wi.PMP(epsilon).accuracy() == pytest.approx(GOLDEN["lowy"][key], rel=EXACT)
        assert GOLDEN["lowy"][key] == pytest.approx({0.1: 0.525, 7.0: 0.999, 0.123: 0.53}[epsilon], abs=1e-3)
        known = wi.worlds.one_of_two(range(4), 0, 1, certain=[2])
        game = known.play(wi.mechanisms.RandomizedResponse(lambda records: 0 in records, epsilon))
        assert game.dp().epsilon == pytest.approx(epsilon, rel=1e-11)
        assert game.accuracy(0) == pytest.approx(wi.PureDP(epsilon, "replace").accuracy(), rel=1e-11)


class TestLemma8:
    """The exponential mechanism is 2λΔ-DP; the range of the per-record change of logits is a smaller limit."""

    @staticmethod
    def limits(losses, n, scale):
        """2λΔ and the range bound on a pool, from the matrix (records, candidates) of losses."""
        changes = scale * (losses[:, None, :] - losses[None, :, :]) / n
        return 2 * float(np.abs(changes).max()), float((changes.max(axis=2) - changes.min(axis=2)).max())

    @pytest.mark.parametrize(("pool", "size"), [(4, 2), (6, 3)])
    @each("seed", range(6))
    def test_lemma_8_dp_of_the_exponential_mechanism(self, seed, pool, size):
        """Exact ε ≤ sup over x, x' of (max - min over w) of the logit change ≤ 2λΔ."""
        rng = np.random.default_rng(seed)
        losses, scale = rng.normal(size=(pool, 4)), float(rng.uniform(0.5, 5.0))
        mechanism = wi.mechanisms.Exponential(range(4), lambda w, x: losses[x, w], scale)
        exact = wi.worlds.uniform_subsets(range(pool), size).play(mechanism).dp().epsilon
        label, range_bound = self.limits(losses, size, scale)
        assert exact <= range_bound * (1 + EXACT)
        assert range_bound <= label * (1 + EXACT)

    def test_lemma_8_label_is_attained_in_the_limit(self):
        """2λΔ cannot be improved in general: opposite losses, with others that make the outcome rare."""
        losses = np.array([[-1.0, 1.0], [1.0, -1.0], [-30.0, 30.0], [-30.0, 30.0]])
        label, range_bound = self.limits(losses[:2], 2, 1.0)
        mechanism = wi.mechanisms.Exponential(range(2), lambda w, x: losses[x, w], 1.0)
        exact = wi.worlds.one_of_two(range(4), 0, 1, certain=[2]).play(mechanism).dp().epsilon
        assert exact == pytest.approx(label, rel=1e-9)
        assert exact == pytest.approx(range_bound, rel=1e-9)

    @pytest.mark.parametrize("clip", [2.0, 50.0])
    def test_lemma_8_label_is_loose_for_distances(self, clip):
        """For ℓ = mean |w - x| the range bound is 2λ·diam(W)/n whatever the clip C, while 2λΔ grows with C."""
        candidates, scale, n = [-1.0, 0.3, 1.0], 4.0, 3
        records = [-clip, -clip / 2, 0.0, 0.4, clip / 3, clip]
        losses = np.abs(np.array(records)[:, None] - np.array(candidates))
        label, range_bound = self.limits(losses, n, scale)
        assert range_bound == pytest.approx(2 * scale * 2.0 / n, rel=EXACT)
        assert label >= 2 * scale * (clip - 1) / n
        mechanism = wi.mechanisms.Exponential(candidates, lambda w, x: abs(w - x), scale)
        assert wi.worlds.uniform_subsets(records, n).play(mechanism).dp().epsilon <= range_bound


class TestProposition9:
    """The exponential mechanism is ε̃-PMP iff ε̃ ≥ max |ln(in/out)| over records and outcomes (printed: no modulus)."""

    @each("seed", range(6))
    def test_proposition_9_corrected_is_exact(self, seed):
        """The sums of c(D)·exp(-λℓ(w, D)) give the exact ε̃, larger side of the two."""
        rng = np.random.default_rng(seed)
        losses, scale, n = rng.exponential(size=(6, 3)), 6.0, 3
        sums = np.zeros((6, 2, 3))
        for data_set in itertools.combinations(range(6), n):
            weights = np.exp(-scale * losses[list(data_set)].mean(axis=0))
            for record in range(6):
                sums[record, int(record in data_set)] += weights / weights.sum()
        logs = np.log(sums[:, 1] / sums[:, 0])
        mechanism = wi.mechanisms.Exponential(range(3), lambda w, x: losses[x, w], scale)
        exact = wi.worlds.uniform_subsets(range(6), n).play(mechanism).pmp().epsilon
        assert exact == pytest.approx(np.abs(logs).max(), rel=1e-11)

    @pytest.mark.parametrize("n", [2, 3, 4])
    @pytest.mark.parametrize(
        ("a", "printed", "true"), [(1, 0.379885, 0.620115), (3, 0.644560, 2.355440), (10, 0.693102, 9.306898)]
    )
    def test_proposition_9_printed_is_violated(self, n, a, printed, true):
        """One record with loss 1 on w₀: in/out ≤ ln 2 whatever a = λ/n, out/in = ln((1+e^a)/2) without bound."""
        mechanism = wi.mechanisms.Exponential([0, 1], lambda w, x: float(x == 0 and w == 0), a * n)
        game = wi.worlds.uniform_subsets(range(2 * n), n).play(mechanism)
        one_way = np.log(game.inside / game.outside).max()
        assert one_way == pytest.approx(math.log(2 / (1 + math.exp(-a))), rel=1e-11)
        assert one_way == pytest.approx(printed, abs=1e-6)
        assert game.pmp().epsilon == pytest.approx(math.log((1 + math.exp(a)) / 2), rel=1e-11)
        assert game.pmp().epsilon == pytest.approx(true, abs=1e-6)
        assert game.pmp().epsilon > 1.6 * one_way

    def test_proposition_9_fixture(self):
        """X = i/4, W = {.5, 1.5, 2.5}, λ = 6, n = 6: ε̃ and ε(X), computed two ways before."""
        fixture = FIXTURES["expmech"]
        records = [i / 4 for i in range(12)]
        mechanism = wi.mechanisms.Exponential(fixture["W"], lambda w, x: abs(x - w), fixture["lam"])
        game = wi.worlds.uniform_subsets(records, 6).play(mechanism)
        logs = np.log(game.inside / game.outside)
        assert game.pmp().epsilon == pytest.approx(1.279578983076135, abs=EXACT)
        assert game.pmp().epsilon == pytest.approx(fixture["eps_pmp"], abs=EXACT)
        assert logs.max() == pytest.approx(fixture["max_ln_in_over_out"], abs=EXACT)
        assert -logs.min() == pytest.approx(fixture["max_ln_out_over_in"], abs=EXACT)
        assert np.unravel_index(logs.argmax(), logs.shape) == tuple(fixture["argmax"])
        assert game.dp().epsilon == pytest.approx(fixture["eps_X_exact"], abs=EXACT)
        losses = np.abs(np.array(records)[:, None] - np.array(fixture["W"]))
        label, range_bound = TestLemma8.limits(losses, 6, fixture["lam"])
        assert label == pytest.approx(fixture["eps_X_sensitivity"], rel=EXACT)
        assert game.dp().epsilon <= range_bound <= label


class TestLemma10:
    """The Gaussian mechanism is (ε, δ)-DP iff Φ(Δ/2σ - εσ/Δ) - e^ε Φ(-Δ/2σ - εσ/Δ) ≤ δ (Balle and Wang)."""

    @given(st.floats(0.05, 4.0), st.floats(-8.0, -1.0))
    def test_lemma_10_conversion_solves_the_equation(self, mu, log_delta):
        """GaussianDP(Δ/σ) implies exactly the ε at which the left side is δ."""
        delta = 10.0**log_delta
        epsilon = wi.GaussianDP(mu).implies(wi.ApproxDP, delta=delta).epsilon
        if epsilon == 0.0:
            assert balle_wang(mu, 0.0) <= delta * (1 + 1e-9)
        else:
            assert balle_wang(mu, epsilon) == pytest.approx(delta, rel=1e-6)

    def test_lemma_10_noise_for_one_and_ten_to_the_minus_five(self):
        """(1, 10⁻⁵) with sensitivity 1 takes σ = 3.730631634815944, with sensitivity 2 twice that."""
        golden = GOLDEN["thudi"]
        for sensitivity, key in ((1, "noise_balle_wang_sens1"), (2, "noise_balle_wang_sens2")):
            epsilon = wi.GaussianDP(sensitivity / golden[key]).implies(wi.ApproxDP, delta=1e-5).epsilon
            assert epsilon == pytest.approx(1.0, abs=1e-10)
        assert golden["noise_balle_wang_sens1"] == pytest.approx(3.730631634815944, rel=EXACT)
        assert wi.GaussianDP(1 / 4.0412).roc.divergence(math.e) == pytest.approx(
            golden["delta_at_eps1_sigma4.0412"], rel=1e-9
        )

    @pytest.mark.parametrize("delta", [1e-4, 0.05])
    @pytest.mark.parametrize("noise", [0.4, 1.5])
    def test_lemma_10_enumerated(self, noise, delta):
        """The worst adjacent pair of a pool, mean of 2 of 4 records, has the ε of the widest step."""
        records = [0.0, 0.3, 1.0, 2.0]
        game = wi.worlds.uniform_subsets(records, 2).play(wi.mechanisms.Gaussian(lambda d: sum(d) / 2, noise))
        assert game.dp(delta).adjacency == "replace"
        assert balle_wang(1.0 / noise, game.dp(delta).epsilon) == pytest.approx(delta, rel=1e-8)


class TestLemma11:
    """(ε, δ)-DP, resp. PMP, ⇔ the hockey-stick divergences in both directions are at most δ."""

    @pytest.mark.parametrize("delta", [1e-3, 0.02, 0.1])
    @each("seed", range(5))
    def test_lemma_11_hockey_stick_is_delta_at_the_smallest_epsilon(self, seed, delta):
        """At the exact ε the larger divergence equals δ; a little below it exceeds δ."""
        game, laws = random_game(seed)
        practical, worst = game.pmp(delta).epsilon, game.dp(delta).epsilon
        assert 0.0 < practical < worst
        assert in_out_divergence(laws, practical) == pytest.approx(delta, abs=EXACT)
        assert adjacent_divergence(laws, worst) == pytest.approx(delta, abs=EXACT)
        assert in_out_divergence(laws, practical - 1e-4) > delta
        assert adjacent_divergence(laws, worst - 1e-4) > delta

    @each("seed", range(5))
    def test_lemma_11_is_the_worst_event(self, seed):
        """The hockey-stick divergence is the largest P(S) - γQ(S) over all events, and whosin's curve has it."""
        game, laws = random_game(seed)
        inside, outside = (conditional(laws, 0, member) for member in (True, False))
        for gamma in (1.0, 1.3, 2.0):
            worst = max(0.0, *(inside[s].sum() - gamma * outside[s].sum() for s in events(3)))
            assert hockey_stick(inside, outside, gamma) == pytest.approx(worst, abs=EXACT)
            assert game.roc(0).divergence(gamma) == pytest.approx(worst, abs=EXACT)


class TestProposition12:
    """Gaussian mechanism: the in/out divergence is at most the average over adjacent pairs of Balle and Wang's."""

    @staticmethod
    def bound(records, n, noise, index, epsilon):
        """The bound as the library computes it: noise of a mean is n times as much for the sum."""
        return float(pairwise_divergences(records, n * noise, epsilon, records=[index])[0])

    @staticmethod
    def by_pairs(records, n, noise, index, epsilon):
        """Average over the adjacent pairs (D, D'), D with the record and D' with another in its place; mean query."""
        others = [i for i in range(len(records)) if i != index]
        terms = []
        for rest in itertools.combinations(others, n - 1):
            for replacement in set(others) - set(rest):
                one = sum(records[i] for i in (*rest, index)) / n
                two = sum(records[i] for i in (*rest, replacement)) / n
                terms.append(balle_wang(abs(one - two) / noise, epsilon))
        return math.fsum(terms) / len(terms)

    @staticmethod
    def exact(game, record, epsilon, out_first=False):
        """E_{e^ε}(in ‖ out) from the best accuracy at prior q = 1/(1+e^ε), (1-q) + q·E; for out ‖ in at prior 1-q."""
        q = 1 / (1 + math.exp(epsilon))
        return (game.accuracy(record, prior=1 - q if out_first else q) - (1 - q)) / q

    @pytest.mark.parametrize("epsilon", ["0.0", "0.25", "0.5", "1.0"])
    def test_proposition_12_fixture(self, epsilon):
        """Eight records, n = 4, noise ½, the outlier: exact divergence and the bound of proposition 12."""
        fixture = FIXTURES["gauss"]
        records, n, noise, index = fixture["X"], fixture["n"], fixture["noise"], fixture["record"]
        game = wi.worlds.uniform_subsets(records, n).play(wi.mechanisms.Gaussian(lambda d: sum(d) / n, noise))
        value = fixture["delta"][epsilon]
        assert self.exact(game, records[index], float(epsilon)) == pytest.approx(float(value["in_out_mp"]), abs=EXACT)
        assert self.bound(records, n, noise, index, float(epsilon)) == pytest.approx(value["prop12"], abs=EXACT)
        assert game.error < 1e-13

    @pytest.mark.parametrize("epsilon", [0.25, 0.5, 1.0])
    def test_proposition_12_fixture_as_pmp(self, epsilon):
        """At the exact δ of the most exposed record the world's ε̃ is the fixture's ε."""
        fixture = FIXTURES["gauss"]
        game = wi.worlds.uniform_subsets(fixture["X"], 4).play(wi.mechanisms.Gaussian(lambda d: sum(d) / 4, 0.5))
        delta = float(fixture["delta"][str(epsilon)]["in_out_mp"])
        assert game.pmp(delta).epsilon == pytest.approx(epsilon, abs=1e-11)

    @pytest.mark.parametrize(("epsilon", "mu"), [(0.0, 0.3), (0.3, 0.8), (2.0, 1.5)])
    def test_proposition_12_identity_in_its_proof(self, epsilon, mu):
        """E_{e^ε}(P‖P') = P(ln p/p' > ε) - e^ε·P'(ln p/p' > ε), with z where the second term prints y."""
        where = epsilon / mu + mu / 2.0  # ln p/p' at y is μy - μ²/2
        right = float(ndtr(mu - where) - math.exp(epsilon) * ndtr(-where))
        assert wi.GaussianDP(mu).roc.divergence(math.exp(epsilon)) == pytest.approx(right, rel=1e-9)

    @each("seed", range(3))
    def test_proposition_12_is_an_upper_limit_for_every_record_and_both_ways(self, seed):
        """No record of a random pool exceeds the average over pairs, in either direction."""
        rng = np.random.default_rng(seed)
        records, n, noise = rng.normal(size=6).tolist(), 3, float(rng.uniform(0.1, 1.0))
        game = wi.worlds.uniform_subsets(records, n).play(wi.mechanisms.Gaussian(lambda d: sum(d) / n, noise))
        for index, epsilon in itertools.product(range(6), (0.0, 0.5, 1.5)):
            limit = self.bound(records, n, noise, index, epsilon)
            for out_first in (False, True):
                assert self.exact(game, records[index], epsilon, out_first) <= limit + EXACT

    @pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.5])
    @pytest.mark.parametrize("index", [0, 7])
    def test_equation_15_each_step_of_the_convexity(self, index, epsilon):
        """In against out, at most the mean over D of its law against the mixture of its neighbours', at most the mean
        over pairs: for this pool each step loses something."""
        records, n, noise = FIXTURES["gauss"]["X"], 4, 0.5
        game = wi.worlds.uniform_subsets(records, n).play(wi.mechanisms.Gaussian(lambda d: sum(d) / n, noise))
        centres = game.world.membership @ np.array(records) / n
        has, members = game.world.membership[:, index], game.world.membership.astype(int)
        beside = (members @ members.T == n - 1)[np.ix_(has, ~has)] / n
        y = np.linspace(-8.0, 9.0, 17_001)
        laws = np.exp(-0.5 * ((y - centres[:, None]) / noise) ** 2) / (noise * math.sqrt(2 * math.pi))
        excess = np.maximum(laws[has] - math.exp(epsilon) * (beside @ laws[~has]), 0.0)
        middle = trapezoid(excess, y, axis=1).mean()
        assert self.exact(game, records[index], epsilon) < middle - 1e-4
        assert middle < self.bound(records, n, noise, index, epsilon) - 1e-4

    @pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
    @each("seed", range(3))
    def test_proposition_12_asks_for_less_than_dp(self, seed, epsilon):
        """Its mean over the pool is below equation 4 at the pool's widest distance, for the most exposed record too."""
        rng = np.random.default_rng(seed)
        records, noise = rng.normal(size=12), float(rng.uniform(0.5, 2.0))
        means = pairwise_divergences(records, noise, epsilon)
        assert means.max() < balle_wang(np.ptp(records) / noise, epsilon)
        assert means.max() > means.min() > 0.0

    @pytest.mark.parametrize("index", [0, 3, 7])
    def test_proposition_12_sum_queries_need_only_the_other_records(self, index):
        """For a sum the double average is the mean over x' ≠ x of the term with ‖f(x) - f(x')‖/n."""
        records, n, noise = FIXTURES["gauss"]["X"], 4, 0.5
        others = np.delete(records, index)
        short = shift_divergence(np.abs(records[index] - others) / n / noise, 0.5).mean()
        for way in (self.bound, self.by_pairs):
            assert way(records, n, noise, index, 0.5) == pytest.approx(short, abs=EXACT)


class TestLemma13:
    """ε-PMP ⇒ (1-e^{-ε})/2-MIP: true; tight is tanh(ε/2)/2."""

    @pytest.mark.parametrize("epsilon", ["0.1", "0.5", "1.0", "2.0", "5.0"])
    def test_lemma_13_tight_value(self, epsilon):
        """PMP(ε) implies η = tanh(ε/2)/2, below the printed (1-e^{-ε})/2."""
        eta = wi.PMP(float(epsilon)).implies(wi.MIP).eta
        assert eta == pytest.approx(GOLDEN["lowy"]["lemma13_tight"][epsilon], rel=EXACT)
        assert eta == pytest.approx(math.tanh(float(epsilon) / 2) / 2, rel=EXACT)
        assert eta < (1 - math.exp(-float(epsilon))) / 2

    @each("seed", range(5))
    def test_lemma_13_proof_bounds_the_belief_after_every_output(self, seed):
        """1 - Δ ≤ odds ≤ 1/(1 - Δ) with Δ = 1 - e^{-ε}, so no belief is above (1 + Δ)/2; nor above 1/(1 + e^{-ε}),
        which is lower and reached."""
        game, _ = random_game(seed)
        shrink = math.exp(-game.pmp().epsilon)
        beliefs = [game.posterior(record, output) for record in range(4) for output in range(3)]
        assert all(shrink - EXACT <= belief / (1 - belief) <= 1 / shrink + EXACT for belief in beliefs)
        surest = max(max(belief, 1 - belief) for belief in beliefs)
        assert surest == pytest.approx(1 / (1 + shrink), rel=1e-11)
        assert surest < 1 - shrink / 2

    @pytest.mark.parametrize(("pool", "size"), [(4, 2), (6, 3)])
    @each("seed", range(6))
    def test_lemma_13_holds_for_random_mechanisms(self, seed, pool, size):
        """The exact η stays below tanh(ε/2)/2 of the exact ε, at every δ below δ+(1-δ)/(1+e^{-ε})-½."""
        game, laws = random_game(seed, pool, size)
        advantage = max(hockey_stick(conditional(laws, r, True), conditional(laws, r, False), 1.0) for r in range(pool))
        assert game.mip().eta == pytest.approx(advantage / 2, rel=1e-11)
        for delta in (0.0, 0.01, 0.1):
            pmp = game.pmp(delta)
            limit = delta + (1 - delta) / (1 + math.exp(-pmp.epsilon)) - 0.5
            assert pmp.implies(wi.MIP).eta == pytest.approx(limit, rel=1e-11)
            assert game.mip().eta <= limit + EXACT

    @pytest.mark.parametrize("n", [1, 2, 3, 4])
    def test_lemma_13_attained_where_the_printed_value_is_loose(self, n):
        """e^ε = 3: randomised response has accuracy 3/4, lemma 13 promises 5/6."""
        world = wi.worlds.uniform_subsets(range(2 * n), n)
        game = world.play(wi.mechanisms.RandomizedResponse(lambda records: 0 in records, math.log(3)))
        assert game.mip().eta + 0.5 == pytest.approx(3 / 4, rel=EXACT)
        assert game.mip().eta < (1 - math.exp(-game.pmp().epsilon)) / 2 - 0.08

    @pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.05), (0.3, 0.2)])
    def test_lemma_13_approximate_form_is_attained(self, epsilon, delta):
        """Revealing with probability δ, otherwise randomised response, attains δ+(1-δ)/(1+e^{-ε})-½."""
        world = wi.worlds.uniform_subsets(range(4), 2)
        game = world.play(wi.mechanisms.RandomizedResponse(lambda records: 0 in records, epsilon, delta))
        assert game.mip().eta == pytest.approx(wi.PMP(epsilon, delta).implies(wi.MIP).eta, rel=1e-11)

    @each("seed", range(4))
    def test_lemma_13_converse_is_total_variation(self, seed):
        """η-MIP ⇔ (0, 2η)-PMP: at δ = 2η the exact ε is 0, and below it is not."""
        game, _ = random_game(seed)
        implied = game.mip().implies(wi.PMP)
        assert (implied.epsilon, implied.delta) == (0.0, pytest.approx(2 * game.mip().eta, rel=EXACT))
        assert game.pmp(implied.delta + EXACT).epsilon == pytest.approx(0.0, abs=1e-9)
        assert game.pmp(implied.delta - 1e-3).epsilon > 0.0


class TestLemma14:
    """Post-processing never weakens PMP, with the same δ."""

    @pytest.mark.parametrize("delta", [0.0, 0.02, 0.2])
    @each("seed", range(8))
    def test_lemma_14_random_channels_never_raise_the_risk(self, seed, delta):
        """Any random channel after the mechanism leaves ε̃ and η at or below what they were."""
        rng = np.random.default_rng(seed)
        game, laws = random_game(seed, outputs=4)
        for outputs in (2, 3, 6):
            channel = rng.dirichlet(np.full(outputs, 0.3), size=4)
            after = {d: dict(enumerate((np.array([*law.values()]) @ channel).tolist())) for d, law in laws.items()}
            processed = game.world.play(lambda records, table=after: table[records])
            assert processed.pmp(delta).epsilon <= game.pmp(delta).epsilon + EXACT
            assert processed.mip().eta <= game.mip().eta + EXACT
            assert game.roc(0).dominates(processed.roc(0), tolerance=EXACT)

    def test_lemma_14_printed_half_of_delta_in_its_proof(self):
        """The proof takes lemma 3's averages to be (ε, δ/2)-close; here δ is kept and they are not (0, δ/2)-close."""
        delta = 0.2
        game = wi.worlds.uniform_subsets("ab", 1).play(lambda records: {records[0]: delta, "nothing": 1.0 - delta})
        assert game.pmp(delta).epsilon == 0.0
        assert game.roc("a").divergence(1.0) == pytest.approx(delta, rel=EXACT)
        assert game.pmp(delta / 2).epsilon == math.inf

    def test_lemma_14_relabelling_keeps_everything(self):
        """A one-to-one relabelling changes nothing."""
        game, laws = random_game(0)
        relabelled = game.world.play(lambda records: {("out", s): p for s, p in laws[records].items()})
        assert relabelled.pmp(0.01) == game.pmp(0.01)
        assert relabelled.mip() == game.mip()


class TestAppendix:
    """The pathologies of other notions, and of PMP itself."""

    def test_distributional_dp_allows_releasing_everything_under_parity(self):
        """Even-parity prior, A(D) = D: a simulator that knows the rest repeats it, yet every posterior is 0 or 1."""
        people = "abcd"
        even = [d for size in (0, 2, 4) for d in itertools.combinations(people, size)]
        release = lambda records: {records: 1.0}  # noqa: E731

        def simulate(rest, missing):
            """Sim(D₋ᵢ): put the missing record in exactly if that makes the parity even."""
            whole = tuple(p for p in people if p in rest or (p == missing and len(rest) % 2 == 1))
            return {whole: 1.0}

        for data_set, person in itertools.product(even, people):
            rest = tuple(p for p in data_set if p != person)
            assert simulate(rest, person) == release(data_set)
        game = wi.worlds.explicit(people, dict.fromkeys(even, 1 / len(even))).play(release)
        assert {game.posterior(person, output) for person in people for output in game.outputs} == {0.0, 1.0}
        assert game.membership_privacy().gamma == game.membership_privacy(negative=True).gamma == math.inf
        assert game.accuracy("a") == pytest.approx(1.0, rel=EXACT)
        assert wi.worlds.uniform_subsets(people, 2).play(release).pmp().epsilon == math.inf

    def test_distributional_dp_of_a_count_without_noise(self):
        """Bassily et al., as cited: for who knows only that people toss coins, a count hides each of many people."""
        deltas = []
        for n in (4, 8, 12):
            game = wi.worlds.all_subsets(range(n)).play(lambda records: {len(records): 1.0})
            others = binom.pmf(np.arange(-1, n + 1), n - 1, 0.5)
            deltas.append(game.roc(0).divergence(math.exp(0.5)))
            assert deltas[-1] == pytest.approx(hockey_stick(others[:-1], others[1:], math.exp(0.5)), rel=1e-9)
        assert deltas == sorted(deltas, reverse=True)
        assert deltas[2] < deltas[0] / 2.0

    @pytest.mark.parametrize("negative", [False, True])
    @each("seed", range(4))
    def test_li_post_processing(self, seed, negative):
        """Membership privacy survives post-processing, for one prior and over the family of all independent ones."""
        rng = np.random.default_rng(seed)
        laws = random_laws(rng, subsets("abc"), 4)
        channel = rng.dirichlet(np.full(3, 0.3), size=4)
        after = {d: dict(enumerate((np.array([*law.values()]) @ channel).tolist())) for d, law in laws.items()}
        one_prior = wi.worlds.explicit("abc", dict(zip(laws, rng.dirichlet(np.ones(8)), strict=True)))
        for world in (one_prior, wi.worlds.independent("abc", 0.3)):
            gammas = [world.play(lambda d, t=table: t[d]).membership_privacy(negative).gamma for table in (after, laws)]
            assert gammas[0] <= gammas[1] * (1 + EXACT)

    def test_discussion_clipping_takes_the_effect_of_outliers_away(self):
        """With the noise left as it is, a mean of a pool with two outliers gives less away the lower the threshold."""
        pool, noise = np.array([-1.0, 0.6, 40.0, -90.0]), 2.0
        world, found = wi.worlds.uniform_subsets(range(4), 2), []
        for threshold in (0.5, 2.0, 100.0):
            x = np.clip(pool, -threshold, threshold)
            found.append(world.play(wi.mechanisms.Gaussian(lambda who, x=x: x[list(who)].mean(), noise)).pmp(0.01))
        epsilons = [one.epsilon for one in found]
        assert epsilons == sorted(epsilons)
        assert epsilons[0] < 0.3 < 3.0 < epsilons[-1]

    def test_discussion_epsilon_for_a_small_target(self):
        """The ε to choose for ε̃ ≤ 0.1: it is kept there, not at a tenth more, and is above 0.1."""
        x = np.random.default_rng(0).normal(size=(12, 1))
        settings = {"delta": 0.01, "clip": 1.0, "method": "pairwise"}
        found = wi.population.largest_epsilon(x, mechanism="gaussian", target=0.1, points=6, **settings)
        again, more = (wi.population.gaussian(x, epsilon=f * found.dp.epsilon, **settings).pmp for f in (1.0, 1.1))
        assert found.pmp.epsilon <= 0.1 < more.epsilon
        assert again.epsilon == pytest.approx(found.pmp.epsilon, rel=1e-6)
        assert found.dp.epsilon > 1.5 * found.pmp.epsilon

    @pytest.mark.parametrize("n", [2, 3, 4])
    def test_release_of_a_random_record_is_half_eta_mip(self, n):
        """Releasing a random record with probability nη is η/2-MIP and has no finite ε̃."""
        eta = 0.5 / n

        def law(records):
            return dict.fromkeys(records, eta) | {"null": 1 - n * eta}

        game = wi.worlds.uniform_subsets(range(2 * n), n).play(law)
        assert game.mip().eta == pytest.approx(eta / 2, rel=1e-11)
        assert game.pmp().epsilon == math.inf

    @pytest.mark.parametrize("n", [2, 3, 4])
    def test_release_of_a_fixed_position_is_n_times_that(self, n):
        """Printed with a fixed position D₁ it is nη/2-MIP, which exceeds η as soon as n > 2."""
        eta = 0.5 / n
        world = wi.worlds.uniform_subsets(range(2 * n), n)
        game = world.play(lambda records: {records[0]: n * eta, "null": 1 - n * eta})
        assert game.mip().eta == pytest.approx(n * eta / 2, rel=1e-11)
        assert (game.mip().eta > eta * (1 + 1e-9)) == (n > 2)
        assert game.pmp().epsilon == math.inf

    def test_no_composition(self):
        """ΣD mod 6 and Π(x+1) mod 7 are each ln 2-PMP with accuracy 3/5; together they tell everything."""
        world = wi.worlds.uniform_subsets(range(6), 3)
        first = lambda records: sum(records) % 6  # noqa: E731
        second = lambda records: math.prod(x + 1 for x in records) % 7  # noqa: E731
        for release, key in ((first, "sum mod 6"), (second, "prod(x+1) mod 7")):
            game = world.play(lambda records, a=release: {a(records): 1.0})
            assert game.pmp().epsilon == pytest.approx(GOLDEN["lowy"]["composition"][key], abs=EXACT)
            assert game.pmp().epsilon == pytest.approx(math.log(2), abs=EXACT)
            assert [game.accuracy(x) for x in range(6)] == pytest.approx([3 / 5] * 6, rel=EXACT)
        both = world.play(lambda records: {(first(records), second(records)): 1.0})
        assert max(both.accuracy(x) for x in range(6)) == pytest.approx(1.0, rel=EXACT)
        assert both.pmp().epsilon == math.inf


class TestRelatedWork:
    """The notions that the appendix compares with, as games in small worlds."""

    @pytest.mark.parametrize("epsilon", [0.3, 2.0])
    def test_related_work_one_bit_costs_a_factor_of_two(self, epsilon):
        """ε for presence is 2ε for a bit of the record: seldom "yes" with one value, often with the other."""
        assert wi.PureDP(epsilon).implies(wi.PureDP, adjacency="replace").epsilon == pytest.approx(2 * epsilon)
        middle = 1 / (1 + math.exp(epsilon))
        yes = {(): middle, ("zero",): middle * math.exp(-epsilon), ("one",): middle * math.exp(epsilon)}
        presence = [(), ("zero",)], [(), ("one",)]
        for pair in presence:
            laws = [np.array([yes[d], 1 - yes[d]]) for d in pair]
            assert np.abs(np.log(laws[0] / laws[1])).max() <= epsilon + EXACT
        bit = wi.worlds.uniform_subsets(("zero", "one"), 1).play(lambda d: {"yes": yes[d], "no": 1 - yes[d]})
        assert bit.dp().epsilon == pytest.approx(2 * epsilon, rel=1e-11)

    def test_li_two_notions_where_pmp_is_one(self):
        """k-Max keeps beliefs in presence low and rules records out: γ is 7/6 one way, else infinite, and so is ε̃."""
        k_max = wi.mechanisms.KMax(range(6), 3)
        everybody, half = (wi.worlds.all_subsets(range(6)), wi.worlds.uniform_subsets(range(6), 3))
        assert everybody.play(k_max).membership_privacy().gamma == pytest.approx(7 / 6, rel=EXACT)
        assert everybody.play(k_max).membership_privacy(negative=True).gamma == math.inf
        assert half.play(k_max).pmp().epsilon == math.inf
        larger = set()
        for seed in range(6):
            game, _ = random_game(seed)
            ways = np.log(game.inside / game.outside)
            assert game.pmp().epsilon == pytest.approx(max(ways.max(), -ways.min()), rel=1e-11)
            larger.add(ways.max() > -ways.min())
        assert larger == {True, False}

    def test_distributional_dp_where_the_sum_is_known(self):
        """Values whose sum is known instead of a parity: the rest gives the missing value, and D may be released."""
        people, total = (1, 2, 3, 4, 5), 6
        known = [d for size in range(6) for d in itertools.combinations(people, size) if sum(d) == total]
        for data_set, person in itertools.product(known, people):
            rest = tuple(p for p in data_set if p != person)
            assert tuple(sorted((*rest, person)) if sum(rest) + person == total else rest) == data_set
        game = wi.worlds.explicit(people, dict.fromkeys(known, 1 / len(known))).play(lambda records: {records: 1.0})
        assert {game.posterior(person, output) for person in (1, 2, 4, 5) for output in game.outputs} == {0.0, 1.0}

    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
    def test_yeom_dp_bounds_the_advantage(self, epsilon):
        """Yeom et al.: e^ε - 1, Sablayrolles et al.: ε/2 at prior ½; both above what randomised response attains."""
        mechanism = wi.mechanisms.RandomizedResponse(lambda records: 0 in records, epsilon)
        found = wi.worlds.uniform_subsets(range(4), 2).play(mechanism).advantage(0)
        assert found <= wi.bounds.yeom(epsilon) == min(1.0, math.expm1(epsilon))
        assert found <= 2 * wi.bounds.sablayrolles(epsilon) - 1 <= epsilon / 2 + EXACT
        assert found == pytest.approx(math.tanh(epsilon / 2), rel=1e-11)

    @given(st.floats(0.001, 10.0), st.floats(0.0, 0.5))
    def test_humphries_is_tighter_than_yeom(self, epsilon, delta):
        """Their bound is the exact ceiling (e^ε - 1 + 2δ)/(e^ε + 1), below e^ε - 1 + δ for every ε and δ."""
        humphries = wi.bounds.humphries(epsilon, delta)
        assert humphries == pytest.approx((math.expm1(epsilon) + 2 * delta) / (math.exp(epsilon) + 1), rel=1e-11)
        assert humphries <= math.expm1(epsilon) + delta
        assert humphries <= wi.bounds.erlingsson(epsilon, delta) + EXACT
        assert wi.bounds.humphries(epsilon) <= wi.bounds.yeom(epsilon)

    def test_mahloujifar_counts_as_if_everybody_else_were_known(self):
        """Their advantage 2Φ(μ/2) - 1 is attained by whoever knows the rest, and not by whoever knows the pool."""
        records = (0.0, 0.2, 0.5, 1.0)
        limit = wi.bounds.mahloujifar(1.0)
        assert limit == pytest.approx(2 * float(ndtr(0.5)) - 1, rel=1e-11)
        mechanism = wi.mechanisms.Gaussian(sum, scale=1.0)
        known = wi.worlds.one_of_two(records, 0.0, 1.0, certain=[0.2]).play(mechanism)
        assert known.advantage(1.0) == pytest.approx(limit, abs=1e-9)
        pool = wi.worlds.uniform_subsets(records, 2).play(mechanism)
        assert max(pool.advantage(record) for record in records) < limit - 0.05

    @pytest.mark.parametrize("eta", [0.001, 0.1])
    def test_izzo_average_and_not_worst_case_over_outcomes(self, eta):
        """Printed: worst case over outcomes. Revealing with probability 2η is η-MIP, and one outcome is a proof."""
        game = wi.worlds.uniform_subsets(range(4), 2).play(
            lambda records: {("surely", 0 in records): 2 * eta, "nothing": 1 - 2 * eta}
        )
        assert game.mip().eta == pytest.approx(eta, rel=1e-9)
        assert game.posterior(0, ("surely", True)) == 1.0
        assert game.pmp().epsilon == math.inf

    def test_corollary_4_local_dp_is_the_pmp_of_one_record(self):
        """n = 1: ε-PMP for all pairs is ε-local DP, here randomised response among four answers."""
        mechanism = {x: {y: (3.0 if x == y else 1.0) / 6.0 for y in range(4)} for x in range(4)}
        local = max(math.log(mechanism[a][y] / mechanism[b][y]) for a in range(4) for b in range(4) for y in range(4))
        for pair in itertools.combinations(range(4), 2):
            game = wi.worlds.uniform_subsets(pair, 1).play(lambda records: mechanism[records[0]])
            assert game.pmp().epsilon == pytest.approx(local, rel=EXACT)
            assert game.dp().epsilon == pytest.approx(local, rel=EXACT)

    def test_footnote_3_a_grid_of_candidates_converges(self):
        """Candidates on [-1, 1] in ever finer grids: the label holds for each, and ε̃ settles."""
        x = np.linspace(-0.9, 0.8, 6)[:, None]
        found = [
            wi.population.exponential(x, np.linspace(-1, 1, m)[:, None], epsilon=4.0, clip=1.0, method="exact")
            for m in (3, 9, 33, 129)
        ]
        assert all(one.pmp.epsilon <= one.dp_on_records.epsilon <= 4.0 for one in found)
        steps = np.abs(np.diff([one.pmp.epsilon for one in found]))
        assert steps[2] < steps[1] / 2 < steps[0]
        assert steps[2] < 0.005

    def test_section_1_epsilon_over_seventy_five(self):
        """Some pools bring the label down to ε/75, and any other factor: where all records agree there is no limit."""
        w = np.array([[-1.0], [1.0]])
        ratios = []
        for spread in (0.3, 0.03, 0.003):
            x = 1.0 + spread * np.linspace(-1, 1, 6)[:, None]
            found = wi.population.exponential(x, w, epsilon=7.5, clip=10.0, method="exact")
            ratios.append(7.5 / found.pmp.epsilon)
        assert ratios[0] < 75.0 < ratios[1] < ratios[2]
        assert wi.PMP(0.1).accuracy() == pytest.approx(0.525, abs=1e-4)

    def test_section_1_most_of_it_is_the_label(self):
        """Clipping at 10 lets the label count records that no candidate can tell apart: at most diam(W)/(C + 1) of it
        can be spent, whatever the records are."""
        w = np.array([[-1.0], [1.0]])
        x = 1.0 + 0.03 * np.linspace(-1, 1, 6)[:, None]
        found = wi.population.exponential(x, w, epsilon=7.5, clip=10.0, method="exact")
        assert found.dp_at_most.epsilon == pytest.approx(7.5 * 2.0 / 11.0, rel=1e-9)

    def test_long_differential_training_privacy_gives_everything_away(self):
        """DTP bounds how far predictions move without one record; a model that is published moves, however little."""
        epsilon = 0.01

        def probability(records):
            return 0.5 * math.exp(epsilon * sum(2.0**-record for record in records) / 4.0)

        people = range(4)
        for size in (1, 2, 3):
            for data in itertools.combinations(people, size):
                for record in data:
                    rest = tuple(other for other in data if other != record)
                    for side in (lambda d: probability(d), lambda d: 1.0 - probability(d)):
                        assert abs(math.log(side(data) / side(rest))) <= epsilon
        published = wi.worlds.uniform_subsets(people, 2).play(lambda records: {probability(records): 1.0})
        assert published.pmp().epsilon == math.inf
        assert min(published.accuracy(record) for record in people) == 1.0

    def test_long_differential_training_privacy_is_dp_of_one_drawn_label(self):
        """Where the attacker sees one label drawn from the predictions, DTP of every data set is DP."""
        epsilon = 0.7

        def law(records):
            p = 0.5 * math.exp(-epsilon * (1 in records))
            return {"yes": p, "no": 1.0 - p}

        game = wi.worlds.all_subsets(range(3)).play(law)
        assert game.dp().epsilon == pytest.approx(epsilon, rel=EXACT)
        assert game.advantage(1) <= wi.PureDP(epsilon).advantage

    def test_yeom_on_average_hides_whom_the_worst_case_shows(self):
        """Publishing whether one certain person is in: average advantage 1/n over the pool, her own is 1."""
        for n in (2, 3, 4):
            game = wi.worlds.uniform_subsets(range(2 * n), n).play(lambda records: {0 in records: 1.0})
            each = [game.advantage(record) for record in range(2 * n)]
            assert each[0] == pytest.approx(1.0, rel=EXACT)
            others = 1.0 / (2 * n - 1)  # that she is out makes everybody else likelier to be in
            assert each[1:] == pytest.approx([others] * (2 * n - 1), rel=EXACT)
            assert np.mean(each) == pytest.approx(1.0 / n, rel=EXACT)
            assert game.pmp().epsilon == math.inf

    def test_leemann_gaussian_mip_follows_from_gaussian_dp_and_is_smaller(self):
        """The curve of a sum with noise for somebody who knows the pool lies inside that of μ-GDP."""
        game = wi.worlds.uniform_subsets((0.0, 0.2, 0.5, 1.0), 2).play(wi.mechanisms.Gaussian(sum, scale=1.0))
        fpr = np.linspace(0.01, 0.99, 33)
        promise = wi.GaussianDP(1.0, adjacency="replace").tpr_at(fpr)
        for record in (0.0, 0.2, 0.5, 1.0):
            found = game.tpr_at(record, fpr)
            assert np.all(found <= promise + 1e-9)
            assert np.max(promise - found) > 0.05

    @pytest.mark.parametrize("n", [1, 4, 16, 64])
    def test_humphries_mixtures_escape_the_bound_for_independent_records(self, n):
        """Two kinds of data sets, all zeros or all ones: an ε-DP count of n records tells the kind, and with it z.

        A member has the kind of S, somebody from the mixture has it half of the time. At n = 1 the game is within
        the bound of ε-DP for independent records; at 64 records it is far beyond, and nearly ½.
        """
        epsilon = 0.2
        noisy = wi.worlds.uniform_subsets(("zeros", "ones"), 1).play(
            lambda records: {
                guess: (math.exp(n * epsilon) if guess == records[0] else 1.0) / (1.0 + math.exp(n * epsilon))
                for guess in ("zeros", "ones")
            }
        )
        knows = noisy.accuracy("ones")  # group privacy: n records change together
        advantage = knows - 0.5  # z is of the kind that was guessed, for a member with ``knows``, else with ½
        assert knows == pytest.approx(1.0 / (1.0 + math.exp(-n * epsilon)), rel=EXACT)
        assert (advantage > wi.PureDP(epsilon).advantage) == (n > 1)
        assert advantage < 0.5

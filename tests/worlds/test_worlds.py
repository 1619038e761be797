"""Worlds and games: priors, exact laws against slow enumeration in fractions, and noise against integration."""

import itertools
import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from loops import each
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import ndtr

import whosin as wi
from whosin import worlds
from whosin.errors import ImplicationError, InputError
from whosin.mechanisms import Exponential, Gaussian, Laplace, RandomizedResponse

FIXTURES = json.loads((Path(__file__).parents[1] / "data" / "fixtures.json").read_text(encoding="utf-8"))
GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text(encoding="utf-8"))
INF = math.inf


def mean(records):
    return sum(records) / len(records) if records else 0.0


def constant(records):
    return {"same": 1.0}


def data_sets(world):
    return [tuple(itertools.compress(world.universe, row)) for row in world.membership.tolist()]


# --- priors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "k"), [(1, 0), (1, 1), (4, 2), (7, 3), (12, 6)])
def test_uniform_subsets(n, k):
    world = worlds.uniform_subsets(range(n), k)
    assert data_sets(world) == sorted(itertools.combinations(range(n), k), key=lambda s: sum(1 << i for i in s))
    assert world.prior == pytest.approx(np.full(math.comb(n, k), 1 / math.comb(n, k)), rel=1e-15)
    assert world.inclusion == pytest.approx(np.full(n, k / n), rel=1e-12)
    assert world.size == k
    assert world.train_fraction == pytest.approx(k / n, rel=1e-15)
    assert world.kind == "uniform_subsets"


@pytest.mark.parametrize("n", [1, 2, 5, 10])
def test_all_subsets(n):
    world = worlds.all_subsets(range(n))
    assert len(world.masks) == len(set(data_sets(world))) == 2**n
    assert world.prior.sum() == pytest.approx(1.0, abs=1e-12)
    assert world.inclusion == pytest.approx(np.full(n, 0.5), rel=1e-15)
    assert world.size is None
    assert world.train_fraction is None


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=7))
def test_independent(probabilities):
    world = worlds.independent(range(len(probabilities)), probabilities)
    assert world.prior.sum() == pytest.approx(1.0, abs=1e-12)
    assert world.inclusion == pytest.approx(probabilities, abs=1e-12)
    assert np.all(world.prior > 0.0)
    for chosen, prior in zip(data_sets(world), world.prior, strict=True):
        expected = math.prod(p if i in chosen else 1.0 - p for i, p in enumerate(probabilities))
        assert prior == pytest.approx(expected, rel=1e-12)


def test_independent_with_one_probability_for_all():
    assert worlds.independent("abc", 0.25).inclusion == pytest.approx([0.25] * 3, rel=1e-12)
    assert worlds.independent("abc", 0.5).prior == pytest.approx(worlds.all_subsets("abc").prior, rel=1e-15)


@given(st.lists(st.integers(0, 10), min_size=1, max_size=7), st.data())
def test_bounded_independent_is_conditional_bernoulli(tenths, data):
    """Exactly: P(D) ∝ Π p/(1-p) over subsets of the size, in fractions."""
    size = data.draw(st.integers(0, len(tenths)))
    exact = {}
    for chosen in itertools.combinations(range(len(tenths)), size):
        exact[chosen] = math.prod(Fraction(t if i in chosen else 10 - t, 10) for i, t in enumerate(tenths))
    total = sum(exact.values())
    assume(total > 0)
    world = worlds.bounded_independent(range(len(tenths)), [t / 10 for t in tenths], size)
    assert world.size == size
    assert world.train_fraction is None
    assert dict(zip(data_sets(world), world.prior.tolist(), strict=True)) == {
        chosen: pytest.approx(float(weight / total), rel=1e-12) for chosen, weight in exact.items() if weight
    }


def test_bounded_independent_with_equal_probabilities_is_uniform():
    world = worlds.bounded_independent(range(6), 0.2, 3)
    assert world.prior == pytest.approx(worlds.uniform_subsets(range(6), 3).prior, rel=1e-12)


def test_one_of_two():
    world = worlds.one_of_two("abcd", "a", "c", certain=["d"], probability=0.3)
    assert dict(zip(data_sets(world), world.prior.tolist(), strict=True)) == {("a", "d"): 0.3, ("c", "d"): 0.7}
    assert world.inclusion == pytest.approx([0.3, 0.0, 0.7, 1.0], rel=1e-15)
    assert world.size == 2
    assert worlds.one_of_two("ab", "a", "b").inclusion.tolist() == [0.5, 0.5]


def test_explicit_tables():
    world = worlds.explicit("abc", {"": 0.1, "ab": 0.4, "ba": 0.1, ("c",): 0.4, frozenset("abc"): 0.0})
    assert dict(zip(data_sets(world), world.prior.tolist(), strict=True)) == {
        (): pytest.approx(0.1),
        ("a", "b"): pytest.approx(0.5),
        ("c",): pytest.approx(0.4),
    }
    assert world.inclusion == pytest.approx([0.5, 0.5, 0.4], rel=1e-12)
    assert world.kind == "explicit"
    assert world.size is None
    assert worlds.explicit("ab", {"a": 0.5, "b": 0.5}).size == 1


def test_one_prior_four_ways():
    """A uniform half of two records, by every builder that can say so: the same game."""
    ways = [
        worlds.uniform_subsets("ab", 1),
        worlds.bounded_independent("ab", 0.5, 1),
        worlds.one_of_two("ab", "a", "b"),
        worlds.explicit("ab", {"a": 0.5, "b": 0.5}),
    ]
    told = RandomizedResponse(lambda records: "a" in records, 1.0)
    for world in ways:
        game = world.play(told)
        assert game.accuracy("a") == pytest.approx(wi.PureDP(1.0).accuracy(), rel=1e-12)
        assert game.dp().epsilon == pytest.approx(1.0, rel=1e-12)
        assert game.dp().adjacency == "replace"


def test_limits_of_enumeration():
    assert len(worlds.all_subsets(range(21)).masks) == 2**21
    for call in (
        lambda: worlds.all_subsets(range(22)),
        lambda: worlds.independent(range(22), 0.5),
        lambda: worlds.uniform_subsets(range(24), 12),
        lambda: worlds.bounded_independent(range(24), 0.5, 12),
    ):
        with pytest.raises(InputError, match="at most 2097152 subsets"):
            call()


@pytest.mark.parametrize("n", [63, 64, 100])
def test_universes_beyond_one_word_work_or_are_refused(n):
    """Few subsets of many records: either the game is right, or the universe is refused in words."""
    refused = None
    try:
        world = worlds.uniform_subsets(range(n), 1)
    except InputError as error:
        refused = str(error)
    if refused is None:
        game = world.play(lambda records: {records[0] == n - 1: 1.0})
        assert game.accuracy(n - 1) == pytest.approx(1.0, abs=1e-12)
        assert world.inclusion == pytest.approx(np.full(n, 1 / n), rel=1e-9)
    else:
        assert n > 63
        assert str(n) in refused


def test_worlds_say_what_they_are():
    assert repr(worlds.uniform_subsets(range(6), 3)) == "World(uniform_subsets, 6 records, 20 data sets)"
    assert worlds.all_subsets("abc").index("b") == 1


def test_anything_hashable_is_a_record():
    universe = ["ann", 3, (1.5, "x"), None, frozenset({1})]
    game = worlds.uniform_subsets(universe, 2).play(lambda records: {None in records: 1.0})
    assert game.accuracy(None) == 1.0
    assert game.accuracy((1.5, "x")) == pytest.approx(0.6, rel=1e-12)


def test_duplicates_are_told_apart_by_position():
    game = worlds.uniform_subsets("aab", 1).play(lambda records: {records[0]: 1.0})
    assert game.mip().eta == pytest.approx(1 / 3, rel=1e-12)
    assert game.accuracy("b") == pytest.approx(1.0, rel=1e-12)
    with pytest.raises(InputError, match=r"positions \[0, 1\]"):
        game.roc("a")


def test_certain_records_are_left_out():
    game = worlds.independent("abc", [1.0, 0.5, 0.0]).play(lambda records: {"b" in records: 1.0})
    assert game.accuracy("b") == 1.0
    assert game.posterior("a", True) == 1.0
    assert game.posterior("c", False) == 0.0
    assert game.dp().epsilon == INF
    for record, side in (("a", "surely in"), ("c", "surely out")):
        with pytest.raises(InputError, match=side):
            game.roc(record)


def test_nothing_to_infer():
    game = worlds.explicit("ab", {"a": 1.0}).play(constant)
    with pytest.raises(InputError, match="nothing to infer"):
        game.membership_privacy()
    with pytest.raises(InputError, match="adjacent"):
        game.dp()


# --- finite games ----------------------------------------------------------------------------------------------------


def test_posterior_by_hand():
    """Ann with probability 1/4, Bob 1/2; the answer "yes" comes with 9/10 if Ann is in, 2/10 otherwise."""
    world = worlds.independent(("ann", "bob"), [0.25, 0.5])
    game = world.play(lambda r: {"yes": 0.9, "no": 0.1} if "ann" in r else {"yes": 0.2, "no": 0.8})
    assert game.posterior("ann", "yes") == pytest.approx(0.225 / (0.225 + 0.15), rel=1e-12)
    assert game.posterior("ann", "no") == pytest.approx(0.025 / (0.025 + 0.6), rel=1e-12)
    assert game.posterior("bob", "yes") == pytest.approx(0.5, rel=1e-12)
    assert game.accuracy("ann") == pytest.approx(0.225 + 0.6, rel=1e-12)
    assert game.accuracy("ann", 0.5) == pytest.approx(0.85, rel=1e-12)
    assert game.advantage("ann") == pytest.approx(0.7, rel=1e-12)
    assert game.dp().epsilon == pytest.approx(math.log(8.0), rel=1e-12)
    assert game.membership_privacy().gamma == pytest.approx(4.5, rel=1e-12)
    assert game.membership_privacy(negative=True).gamma == pytest.approx(8.0, rel=1e-12)
    assert game.roc("ann").vertices == pytest.approx(np.array([[0, 0], [0.2, 0.9], [1, 1]]), abs=1e-12)


def exact_game(universe, prior, mechanism):
    """Laws of the output given in and given out of every record, in fractions, the slow way."""
    outputs = sorted({output for chosen in prior for output in mechanism(chosen)})
    laws = {}
    for record in universe:
        for inside in (True, False):
            law, total = dict.fromkeys(outputs, Fraction(0)), Fraction(0)
            for chosen, weight in prior.items():
                if (record in chosen) is inside:
                    total += weight
                    for output, probability in mechanism(chosen).items():
                        law[output] += weight * probability
            laws[record, inside] = {output: mass / total for output, mass in law.items()}
    return laws


def excess(inside, outside, gamma):
    return sum(max(Fraction(0), inside[s] - gamma * outside[s]) for s in inside)


def noisy_residue(records):
    """Sum modulo 5, right with probability 3/4, one too many with 1/4: all in fractions."""
    total = sum(records) % 5
    return {total: Fraction(3, 4), (total + 1) % 5: Fraction(1, 4)}


@pytest.fixture(scope="module")
def twelve():
    """Twelve records, six of them drawn: the game, and the same by slow enumeration."""
    universe = (1, 2, 4, 7, 11, 13, 14, 19, 22, 26, 31, 33)
    subsets = list(itertools.combinations(universe, 6))
    prior = dict.fromkeys(subsets, Fraction(1, len(subsets)))
    game = worlds.uniform_subsets(universe, 6).play(lambda r: {s: float(p) for s, p in noisy_residue(r).items()})
    return universe, subsets, exact_game(universe, prior, noisy_residue), game


def test_twelve_records_in_and_out_laws(twelve):
    universe, subsets, laws, game = twelve
    assert len(game.world.masks) == len(subsets) == 924
    for i, record in enumerate(universe):
        for table, inside in ((game.inside, True), (game.outside, False)):
            exact = [float(laws[record, inside][s]) for s in game.outputs]
            assert table[i] == pytest.approx(exact, rel=1e-12)


def test_twelve_records_numbers(twelve):
    universe, _, laws, game = twelve
    gaps = {r: excess(laws[r, True], laws[r, False], 1) for r in universe}
    for record in universe:
        assert game.advantage(record) == pytest.approx(float(gaps[record]), abs=1e-14)
        assert game.accuracy(record) == pytest.approx(0.5 + float(gaps[record]) / 2, rel=1e-14)
        for output in game.outputs:
            both = laws[record, True][output], laws[record, False][output]
            assert game.posterior(record, output) == pytest.approx(float(both[0] / sum(both)), rel=1e-12)
        for prior in (Fraction(1, 5), Fraction(7, 10)):
            inside, outside = laws[record, True], laws[record, False]
            best = sum(max(prior * inside[s], (1 - prior) * outside[s]) for s in inside)
            assert game.accuracy(record, float(prior)) == pytest.approx(float(best), rel=1e-12)
    assert game.mip().eta == pytest.approx(float(max(gaps.values())) / 2, rel=1e-12)
    ratios = [laws[r, a][s] / laws[r, not a][s] for r in universe for a in (True, False) for s in game.outputs]
    assert game.pmp().epsilon == pytest.approx(math.log(max(ratios)), rel=1e-12)


@pytest.mark.parametrize("delta", [Fraction(1, 1000), Fraction(1, 100), Fraction(1, 20), Fraction(1, 2)])
def test_twelve_records_with_delta(twelve, delta):
    """ε at δ is where the worst hockey-stick divergence meets δ: bisection in fractions."""
    universe, _, laws, game = twelve
    pairs = [(laws[r, True], laws[r, False]) for r in universe]
    pairs += [(q, p) for p, q in pairs]

    def worst(gamma):
        return max(excess(p, q, gamma) for p, q in pairs)

    found = game.pmp(float(delta)).epsilon
    if worst(1) <= delta:
        assert found == 0.0
        return
    low, high = Fraction(1), Fraction(1000)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if worst(middle) > delta else (low, middle)
    assert found == pytest.approx(math.log(high), rel=1e-9, abs=1e-13)


def test_twelve_records_adjacent_data_sets(twelve):
    universe, subsets, _, _ = twelve

    def ratio(law):
        worst = Fraction(1)
        for chosen in subsets[:200]:
            mine = law(chosen)
            for leaving, joining in itertools.product(chosen, set(universe) - set(chosen)):
                other = law(tuple(sorted((set(chosen) - {leaving}) | {joining})))
                worst = max(worst, *(mine[s] / other[s] for s in mine), *(other[s] / mine[s] for s in mine))
        return worst

    def smooth(records):
        share = Fraction(1 + sum(records) % 7, 9)
        return {"a": share, "b": 1 - share}

    game = worlds.uniform_subsets(universe, 6).play(lambda r: {s: float(p) for s, p in smooth(r).items()})
    assert game.dp().epsilon == pytest.approx(math.log(ratio(smooth)), rel=1e-12)
    assert game.dp().adjacency == "replace"


def test_independent_world_against_enumeration_in_fractions():
    universe, chances = "abcde", [Fraction(1, 7), Fraction(1, 2), Fraction(3, 5), Fraction(9, 10), Fraction(1, 3)]
    prior = {}
    for size in range(6):
        for chosen in itertools.combinations(universe, size):
            prior[chosen] = math.prod(c if r in chosen else 1 - c for r, c in zip(universe, chances, strict=True))

    def mechanism(records):
        share = Fraction(2 + len(records) + 3 * ("a" in records), 12)
        return {0: share, 1: 1 - share}

    laws = exact_game(universe, prior, mechanism)
    game = worlds.independent(universe, [float(c) for c in chances]).play(
        lambda r: {s: float(p) for s, p in mechanism(r).items()}
    )
    for i, record in enumerate(universe):
        exact = [float(laws[record, True][s]) for s in game.outputs]
        assert game.inside[i] == pytest.approx(exact, rel=1e-12)
        best = sum(max(chances[i] * laws[record, True][s], (1 - chances[i]) * laws[record, False][s]) for s in (0, 1))
        assert game.accuracy(record) == pytest.approx(float(best), rel=1e-12)
    adjacent = [
        mechanism(with_it)[s] / mechanism(without)[s]
        for without in prior
        for record in universe
        if record not in without
        for with_it in [(*without, record)]
        for s in (0, 1)
    ]
    assert game.membership_privacy().gamma == pytest.approx(float(max(adjacent)), rel=1e-12)
    assert game.membership_privacy(negative=True).gamma == pytest.approx(float(1 / min(adjacent)), rel=1e-12)
    assert game.dp().epsilon == pytest.approx(math.log(max(*adjacent, 1 / min(adjacent))), rel=1e-12)
    assert game.dp().adjacency == "add_remove"


def test_exponential_mechanism_fixture():
    """X = i/4 for i = 0..11, W = {1/2, 3/2, 5/2}, mean distance, λ = 6, half of the records drawn."""
    fixture = FIXTURES["expmech"]
    universe = [i / 4 for i in range(12)]
    mechanism = Exponential(fixture["W"], lambda w, x: abs(w - x), fixture["lam"])
    game = worlds.uniform_subsets(universe, 6).play(mechanism)
    assert game.pmp().epsilon == pytest.approx(fixture["eps_pmp"], rel=1e-12)
    assert game.dp().epsilon == pytest.approx(fixture["eps_X_exact"], rel=1e-12)
    record, candidate = fixture["argmax"]
    ratios = np.log(game.inside / game.outside)
    assert np.unravel_index(np.argmax(np.abs(ratios)), ratios.shape) == (record, candidate)
    assert ratios.max() == pytest.approx(fixture["max_ln_in_over_out"], rel=1e-12)
    assert -ratios.min() == pytest.approx(fixture["max_ln_out_over_in"], rel=1e-12)


@pytest.mark.parametrize(("n", "ratio"), [(3, "2/1"), (4, "5/4"), (5, "7/6"), (6, "38/37"), (7, "124/121")])
def test_sum_modulo(n, ratio):
    """Lowy et al., proposition 5: X = {0..2n-1}, the sum modulo 2n of a uniform half."""
    game = worlds.uniform_subsets(range(2 * n), n).play(lambda records: {sum(records) % (2 * n): 1.0})
    assert game.pmp().epsilon == pytest.approx(math.log(Fraction(ratio)), rel=1e-9)
    if n == 6:
        assert game.pmp().epsilon == pytest.approx(GOLDEN["lowy"]["prop5_n6_value"], rel=1e-9)


def test_two_practical_releases_do_not_compose():
    """Each ln 2-PMP with accuracy 3/5; together they tell everything."""
    world = worlds.uniform_subsets(range(6), 3)
    total = lambda r: sum(r) % 6  # noqa: E731
    product = lambda r: math.prod(x + 1 for x in r) % 7  # noqa: E731
    for one in (total, product):
        game = world.play(lambda r, one=one: {one(r): 1.0})
        assert game.pmp().epsilon == pytest.approx(math.log(2.0), rel=1e-12)
        assert 0.5 + game.mip().eta == pytest.approx(0.6, rel=1e-12)
    both = world.play(lambda r: {(total(r), product(r)): 1.0})
    assert both.mip().eta == pytest.approx(0.5, rel=1e-12)
    assert both.pmp().epsilon == INF


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_mip_at_any_train_fraction(k):
    """The best accuracy beyond the blind guess, by summing the likelier side over outputs."""
    world = worlds.uniform_subsets(range(6), k)
    game = world.play(lambda records: {max(records) - min(records): 0.75, "none": 0.25})
    q = k / 6
    best = max(np.maximum(q * game.inside[i], (1 - q) * game.outside[i]).sum() for i in range(6))
    assert game.mip().eta == pytest.approx(best - max(q, 1 - q), abs=1e-12)
    assert game.mip().train_fraction == pytest.approx(q, rel=1e-15)
    assert game.accuracy(0) == pytest.approx(np.maximum(q * game.inside[0], (1 - q) * game.outside[0]).sum(), rel=1e-12)


def test_uniform_membership_privacy_by_definition():
    """γ is the least with Pr[t | S] ≤ γ·Pr[t] and Pr[¬t | S] ≥ Pr[¬t]/γ for all outputs, at prior 1/2."""
    game = worlds.all_subsets(range(4)).play(lambda r: {("size", len(r) % 3): 0.5, ("top", max(r, default=-1)): 0.5})
    posteriors = [game.posterior(t, s) for t in range(4) for s in game.outputs]
    up = max(max(2 * p, 0.5 / (1 - p) if p < 1 else INF) for p in posteriors)
    down = max(max(2 * (1 - p), 0.5 / p if p > 0 else INF) for p in posteriors)
    assert game.membership_privacy().gamma == pytest.approx(up, rel=1e-12)
    assert game.membership_privacy(negative=True).gamma == pytest.approx(down, rel=1e-12)
    assert (up, down) == (INF, INF)
    mild = worlds.all_subsets(range(4)).play(lambda r: {0: 0.5 + 0.1 * len(r), 1: 0.5 - 0.1 * len(r)})
    posteriors = [mild.posterior(t, s) for t in range(4) for s in mild.outputs]
    assert mild.membership_privacy().gamma == pytest.approx(
        max(max(2 * p, 0.5 / (1 - p)) for p in posteriors), rel=1e-12
    )
    assert mild.membership_privacy().family == "uniform"


def test_families_of_the_other_worlds():
    told = RandomizedResponse(lambda records: 0 in records, 1.0)
    for world, family in (
        (worlds.independent(range(3), [0.1, 0.5, 0.9]), "independent"),
        (worlds.uniform_subsets(range(4), 2), "bounded"),
        (worlds.bounded_independent(range(4), [0.1, 0.2, 0.5, 0.6], 2), "bounded"),
        (worlds.one_of_two(range(3), 0, 1), "prior"),
        (worlds.independent(range(3), [0.1, 1.0, 0.0]), "prior"),
        (worlds.bounded_independent(range(4), [0.5, 0.2, 1.0, 0.6], 2), "prior"),
        (worlds.all_subsets(range(3)), "uniform"),
        (worlds.explicit(range(3), {(0,): 0.2, (1, 2): 0.8}), "prior"),
    ):
        found = world.play(told).membership_privacy()
        assert found.family == family
        assert found.ratio == pytest.approx(math.e, rel=1e-12)


laws_for_sets = st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any), min_size=10, max_size=10)


@given(laws_for_sets)
def test_what_a_game_shows_is_consistent(tables):
    """Random laws on the ten pairs of five records: every number agrees with the curve, and obeys the theorems."""
    world = worlds.uniform_subsets(range(5), 2)
    by_set = {s: [w / sum(row) for w in row] for s, row in zip(data_sets(world), tables, strict=True)}
    game = world.play(lambda r: dict(enumerate(by_set[r])))
    strict = game.dp()
    for record in range(5):
        roc = game.roc(record)
        assert roc.is_concave
        assert game.advantage(record) == pytest.approx(roc.divergence(1.0), abs=1e-12)
        assert game.accuracy(record) == pytest.approx(wi.risks.accuracy(roc, 0.4), abs=1e-12)
        assert game.pmp().roc.dominates(roc, 1e-9)
        assert game.mip().roc.dominates(roc, 1e-9)
        assert strict.roc.dominates(roc, 1e-9)
        seen = [game.posterior(record, s) for s in game.outputs if game.laws[:, game.outputs.index(s)].any()]
        assert wi.risks.ppv(roc, 0.4) == pytest.approx(max(seen), rel=1e-9)
        assert 1 - wi.risks.npv(roc, 0.4) == pytest.approx(min(seen), abs=1e-9)
    assert game.pmp().epsilon <= strict.epsilon + 1e-9
    assert game.mip().eta <= strict.implies(wi.MIP, train_fraction=0.4).eta + 1e-9
    assert game.dp(0.3).epsilon <= strict.epsilon + 1e-12


def test_dp_needs_neighbours():
    """Where no two data sets are adjacent, 0-DP would be true of no pairs and false to any reader."""
    game = worlds.explicit("abcd", {"ab": 0.5, "cd": 0.5}).play(lambda records: {records: 1.0})
    assert game.accuracy("a") == 1.0
    with pytest.raises(InputError, match="adjacent"):
        game.dp()


def test_pmp_and_mip_need_a_uniform_world():
    for world in (worlds.independent("ab", 0.5), worlds.all_subsets("ab"), worlds.one_of_two("ab", "a", "b")):
        for ask in (world.play(constant).pmp, world.play(constant).mip):
            with pytest.raises(ImplicationError, match="uniform_subsets"):
                ask()


# --- games with noise ------------------------------------------------------------------------------------------------


def divergence(game, record, log_gamma):
    """E_γ(in‖out) for γ ≥ 1, through the accuracy at the prior 1/(1 + γ)."""
    q = 1.0 / (1.0 + math.exp(log_gamma))
    return (game.accuracy(record, q) - (1.0 - q)) / q


@pytest.mark.parametrize("shift", [0.1, 1.0, 3.0, 12.0])
@pytest.mark.parametrize("scale", [0.5, 1.0])
def test_laplace_on_two_data_sets(shift, scale):
    """E_γ = 1 - √γ·e^{-v/(2s)}, ε = v/s, and (ε, δ) as ε = v/s + 2·ln(1-δ)."""
    game = worlds.uniform_subsets((0.0, shift), 1).play(Laplace(sum, scale))
    v = shift / scale
    assert game.advantage(0.0) == pytest.approx(-math.expm1(-v / 2), rel=1e-12)
    assert game.mip().eta == pytest.approx(-math.expm1(-v / 2) / 2, rel=1e-12)
    assert game.pmp().epsilon == pytest.approx(v, rel=1e-12)
    assert game.dp().epsilon == pytest.approx(v, rel=1e-12)
    assert game.dp().adjacency == "replace"
    for log_gamma in (0.05, 0.5, 2.0):
        expected = max(0.0, 1 - math.exp((log_gamma - v) / 2))
        assert divergence(game, 0.0, log_gamma) == pytest.approx(expected, abs=1e-12)
    for delta in (0.01, 0.3):
        expected = max(0.0, v + 2 * math.log1p(-delta))
        assert game.pmp(delta).epsilon == pytest.approx(expected, rel=1e-12, abs=1e-12)
        assert game.dp(delta).epsilon == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert game.error == 0.0
    fpr = np.linspace(0.001, 0.999, 200)
    exact = np.where(fpr < 0.5, 1 - math.exp(-v) / (4 * fpr), 1 - math.exp(-v) * (1 - fpr))
    exact = np.where(fpr < math.exp(-v) / 2, math.exp(v) * fpr, exact)
    found = game.roc(0.0).tpr(fpr)
    assert np.all(found <= exact + 1e-12)
    assert found == pytest.approx(exact, abs=1e-4)


@pytest.mark.parametrize("shift", [0.1, 1.0, 3.0])
def test_gaussian_on_two_data_sets(shift):
    scale = 0.5
    game = worlds.uniform_subsets((0.0, shift), 1).play(Gaussian(sum, scale))
    exact = wi.GaussianDP(shift / scale)
    assert game.advantage(0.0) == pytest.approx(exact.advantage, abs=1e-12)
    assert game.advantage(0.0) >= exact.advantage - 1e-15
    assert game.pmp().epsilon == INF
    for delta in (1e-4, 0.01, 0.2):
        promised = exact.implies(wi.ApproxDP, delta=delta).epsilon
        assert game.pmp(delta).epsilon == pytest.approx(promised, rel=1e-5, abs=1e-12)
        assert game.dp(delta).epsilon == pytest.approx(promised, rel=1e-9, abs=1e-12)
        assert game.pmp(delta).epsilon >= promised * (1 - 1e-9)
    rates = np.linspace(0.001, 0.999, 200)
    found = game.roc(0.0).tpr(rates)
    assert np.all(found <= exact.tpr_at(rates) + 1e-12)
    assert found == pytest.approx(exact.tpr_at(rates), abs=1e-4)


def test_gaussian_fixture():
    """δ(ε) of the most exposed record, by integration with 15 digits (mean of four of eight, noise 1/2)."""
    fixture = FIXTURES["gauss"]
    game = worlds.uniform_subsets(fixture["X"], fixture["n"]).play(Gaussian(mean, fixture["noise"]))
    record = fixture["X"][fixture["record"]]
    for epsilon, expected in fixture["delta"].items():
        found = divergence(game, record, float(epsilon))
        assert found == pytest.approx(float(expected["in_out_mp"]), abs=1e-12)
        assert found <= expected["prop12"]
    assert game.mip().eta == pytest.approx(float(fixture["delta"]["0.0"]["in_out_mp"]) / 2, abs=1e-12)
    assert game.error < 1e-6


def test_laplace_fixture():
    """Accuracies by grid sums, from below and good to 1e-5 (mean of four of eight, noise 1/2)."""
    fixture, universe = FIXTURES["mip_laplace_mean"], FIXTURES["gauss"]["X"]
    game = worlds.uniform_subsets(universe, 4).play(Laplace(mean, fixture["s"]))
    for i, record in enumerate(universe):
        found = game.accuracy(record) - 0.5
        assert found == pytest.approx(fixture["excess"][str(i)], abs=1e-5)
        assert found <= fixture["bound_adj"][str(i)]
        assert found <= fixture["bound_sigma1"]


def integrated(world, centres, record, noise, scale, gamma):
    """∫(p - γq)_+ with densities written out, zeros bracketed on a dense grid, and quadrature in between."""
    index = world.universe.index(record)
    inside = world.membership[:, index]
    p_weights = np.where(inside, world.prior, 0.0) / world.prior[inside].sum()
    q_weights = np.where(inside, 0.0, world.prior) / world.prior[~inside].sum()
    kernel = (
        (lambda z: np.exp(-np.abs(z)) / 2)
        if noise == "laplace"
        else (lambda z: np.exp(-z * z / 2) / math.sqrt(2 * math.pi))
    )

    def gap(x):
        return float(kernel((x - centres) / scale) @ (p_weights - gamma * q_weights)) / scale

    grid = np.linspace(centres.min() - 40 * scale, centres.max() + 40 * scale, 40001)
    values = (kernel((grid[:, None] - centres) / scale) @ (p_weights - gamma * q_weights)) / scale
    flips = np.flatnonzero(values[:-1] * values[1:] < 0)
    zeros = [brentq(gap, grid[i], grid[i + 1], xtol=1e-15) for i in flips]
    breaks = sorted({grid[0], grid[-1], *zeros, *(c for c in centres if grid[0] < c < grid[-1])})
    pieces = [quad(gap, a, b, epsabs=1e-14, epsrel=1e-12, limit=200)[0] for a, b in itertools.pairwise(breaks)]
    return sum(max(0.0, piece) for piece in pieces)


@pytest.mark.parametrize("kind", [Laplace, Gaussian])
@each("seed", range(4))
def test_noise_against_quadrature(kind, seed):
    rng = np.random.default_rng(seed)
    universe = tuple(rng.normal(size=5).tolist())
    if seed % 2:
        world = worlds.uniform_subsets(universe, 2)
    else:
        world = worlds.independent(universe, rng.uniform(0.2, 0.8, 5))
    scale = float(rng.uniform(0.1, 0.6))
    game = world.play(kind(mean, scale))
    centres = np.array([mean(s) for s in data_sets(world)])
    assert game.centres == pytest.approx(centres, rel=1e-15)
    for record in (universe[0], universe[3]):
        for log_gamma in (0.0, 0.1, 0.5, 1.5):
            exact = integrated(world, centres, record, kind.noise, scale, math.exp(log_gamma))
            found = divergence(game, record, log_gamma)
            assert exact - 1e-9 <= found <= exact + game.error + 1e-9
    assert 0.0 <= game.error < 1e-6


@pytest.mark.parametrize("kind", [Laplace, Gaussian])
@each("seed", range(5))
def test_noisy_games_are_consistent(kind, seed):
    rng = np.random.default_rng(seed)
    universe = np.round(rng.uniform(-3.0, 3.0, 3 + seed % 3), 3).tolist()
    size, scale = len(universe) // 2, float(rng.uniform(0.2, 2.0))
    game = worlds.uniform_subsets(universe, size).play(kind(mean, scale))
    practical, average, strict = game.pmp(0.01), game.mip(), game.dp(0.01)
    q = size / len(universe)
    for record in universe[:2]:
        roc = game.roc(record)
        assert roc.is_concave
        assert max(q, 1 - q) <= game.accuracy(record) <= 1.0
        for prior in (q, 0.5, 0.2, 0.7):
            assert -1e-12 <= game.accuracy(record, prior) - wi.risks.accuracy(roc, prior) < game.error + 1e-4
        assert practical.roc.dominates(roc, 1e-9)
        assert average.roc.dominates(roc, 1e-9)
        assert strict.roc.dominates(roc, 1e-9)
    assert practical.epsilon <= strict.epsilon + 1e-9
    assert game.error < 1e-6


@pytest.mark.parametrize("kind", [Laplace, Gaussian])
def test_the_curve_in_noise_is_as_good_as_the_numbers(kind):
    """Accuracies read off the curve fall short of the exact ones by less than 1e-4 at any prior."""
    game = worlds.uniform_subsets((0.0, 1.0, 0.5), 1).play(kind(mean, 1.0))
    roc = game.roc(0.0)
    for prior in np.linspace(0.2, 0.8, 25):
        short = game.accuracy(0.0, float(prior)) - wi.risks.accuracy(roc, float(prior))
        assert -1e-12 <= short < 1e-4


def test_posterior_in_noise_is_bayes():
    universe, scale = (0.0, 1.0, 3.0), 0.7
    world = worlds.uniform_subsets(universe, 1)
    for kind, kernel in ((Laplace, lambda z: math.exp(-abs(z))), (Gaussian, lambda z: math.exp(-z * z / 2))):
        game = world.play(kind(sum, scale))
        for output in (-2.0, 0.4, 2.9, 5.0):
            weights = [kernel((output - x) / scale) for x in universe]
            for record, weight in zip(universe, weights, strict=True):
                assert game.posterior(record, output) == pytest.approx(weight / sum(weights), rel=1e-12)
    far = world.play(Gaussian(sum, 0.01))
    assert far.posterior(3.0, 100.0) == pytest.approx(1.0, abs=1e-12)
    assert far.posterior(0.0, 100.0) == pytest.approx(0.0, abs=1e-12)


def test_laplace_ratio_is_the_supremum_over_a_grid():
    universe = (-1.0, 0.0, 0.3, 2.0)
    world = worlds.uniform_subsets(universe, 2)
    game = world.play(Laplace(mean, 0.4))
    grid = np.linspace(-6.0, 6.0, 4801)
    odds = [[game.posterior(r, float(x)) for x in grid] for r in universe]
    logs = np.log(np.array(odds)) - np.log1p(-np.array(odds))
    assert game.pmp().epsilon == pytest.approx(np.abs(logs).max(), abs=1e-3)
    assert game.pmp().epsilon >= np.abs(logs).max() - 1e-12
    assert game.membership_privacy().gamma >= math.exp(np.abs(logs).max()) - 1e-9


def test_equal_centres_leave_nothing_to_see():
    for kind in (Laplace, Gaussian):
        game = worlds.uniform_subsets((1.0, 2.0, 3.0, 4.0), 2).play(kind(lambda r: 7.0, 1.0))
        assert game.mip().eta == pytest.approx(0.0, abs=1e-12)
        assert game.pmp().epsilon == pytest.approx(0.0, abs=1e-12)
        assert game.dp().epsilon == 0.0


def test_gaussian_mean_over_many_sets_is_quick_and_bounded_by_the_worst_pair():
    universe = tuple(np.linspace(-1.0, 1.0, 12).tolist())
    game = worlds.uniform_subsets(universe, 6).play(Gaussian(mean, 0.3))
    worst = 2.0 / 6 / 0.3
    assert game.mip().eta <= float(ndtr(worst / 2)) - 0.5
    assert game.dp(1e-5).epsilon == pytest.approx(
        wi.GaussianDP(worst).implies(wi.ApproxDP, delta=1e-5).epsilon, rel=1e-9
    )

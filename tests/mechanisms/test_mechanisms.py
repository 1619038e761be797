"""Mechanisms: their laws by hand, their guarantees in small worlds, and the fast routes against the slow ones."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import whosin as wi
from whosin.errors import InputError
from whosin.mechanisms import Exponential, FiniteMechanism, Gaussian, KMax, Laplace, RandomizedResponse, Subsampled
from whosin.mechanisms.base import MAX_CELLS, CallableMechanism, check_cells

INF = math.inf


def asks_for(name):
    return lambda records: name in records


# --- randomised response ---------------------------------------------------------------------------------------------


@given(st.floats(0.0, 40.0), st.floats(0.0, 1.0))
def test_randomised_response_law(epsilon, delta):
    law = RandomizedResponse(asks_for("a"), epsilon, delta).law(("a", "b"))
    right = (1 - delta) / (1 + math.exp(-epsilon))
    assert law[True] == pytest.approx(right, rel=1e-12, abs=1e-15)
    assert law[False] == pytest.approx((1 - delta) - right, abs=1e-15)
    assert law.get(("surely", True), 0.0) == delta
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-15)
    assert ("surely", False) not in law


def test_randomised_response_without_the_record_is_the_mirror_image():
    mechanism = RandomizedResponse(asks_for("a"), 1.0)
    yes, no = mechanism.law(("a",)), mechanism.law(())
    assert yes[True] == no[False]
    assert yes[False] == no[True]
    assert yes[True] / no[True] == pytest.approx(math.e, rel=1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.0), (0.5, 0.1), (3.0, 0.01), (0.0, 0.2)])
def test_randomised_response_attains_its_guarantee(epsilon, delta):
    mechanism = RandomizedResponse(asks_for("a"), epsilon, delta)
    game = wi.worlds.independent("abc", 0.5).play(mechanism)
    promised = mechanism.guarantee()
    assert type(promised) is (wi.PureDP if delta == 0.0 else wi.ApproxDP)
    assert game.dp(delta).epsilon == pytest.approx(epsilon, abs=1e-12)
    assert game.accuracy("a") == pytest.approx(promised.accuracy(), rel=1e-12)
    exact, limit = game.roc("a"), promised.roc
    assert limit.dominates(exact, 1e-12)
    assert exact.dominates(limit, 1e-12)
    assert game.accuracy("b") == pytest.approx(0.5, abs=1e-15)


def test_randomised_response_names_its_adjacency():
    mechanism = RandomizedResponse(asks_for("a"), 1.0, 0.1)
    assert mechanism.guarantee("replace") == wi.ApproxDP(1.0, 0.1, "replace")
    assert mechanism.guarantee() == wi.ApproxDP(1.0, 0.1, "add_remove")


def test_randomised_response_at_the_ends():
    assert RandomizedResponse(asks_for("a"), INF).law(("a",)) == {True: 1.0, False: 0.0}
    assert RandomizedResponse(asks_for("a"), 0.0).law(()) == {False: 0.5, True: 0.5}
    assert RandomizedResponse(asks_for("a"), 1.0, 1.0).law(())[("surely", False)] == 1.0


# --- exponential mechanism -------------------------------------------------------------------------------------------


def slow_exponential(candidates, loss, scale, records):
    means = [sum(loss(w, x) for x in records) / len(records) if records else 0.0 for w in candidates]
    weights = [math.exp(-scale * mean) for mean in means]
    return {w: weight / sum(weights) for w, weight in zip(candidates, weights, strict=True)}


@given(
    st.lists(st.floats(-3.0, 3.0), max_size=5),
    st.lists(st.integers(-3, 3), min_size=1, max_size=4, unique=True),
    st.floats(0, 10),
)
def test_exponential_law(records, candidates, scale):
    loss = lambda w, x: abs(w - x)  # noqa: E731
    found = Exponential(candidates, loss, scale).law(tuple(records))
    slow = slow_exponential(candidates, loss, scale, records)
    assert found.keys() == slow.keys()
    for w in candidates:
        assert found[w] == pytest.approx(slow[w], rel=1e-12)


def test_exponential_laws_at_once_are_the_laws_one_by_one():
    universe, mechanism = (0.0, 1.0, 2.5, 4.0), Exponential((0, 2, 4), lambda w, x: (w - x) ** 2, 0.7)
    members = np.array(list(itertools.product((False, True), repeat=4)))
    outputs, table = mechanism.laws(universe, members)
    assert outputs == (0, 2, 4)
    for row, chosen in zip(table, members, strict=True):
        law = mechanism.law(tuple(itertools.compress(universe, chosen)))
        assert row == pytest.approx([law[w] for w in outputs], rel=1e-12)
        assert row.sum() == pytest.approx(1.0, abs=1e-15)


def test_exponential_with_enormous_losses_does_not_overflow():
    law = Exponential("ab", lambda w, x: 1e6 if w == "a" else 0.0, 1e3).law((1,))
    assert law == {"a": 0.0, "b": 1.0}


def test_exponential_on_nobody_is_uniform():
    assert Exponential("abcd", lambda w, x: 1.0, 5.0).law(()) == dict.fromkeys("abcd", 0.25)


def test_exponential_keeps_its_promise():
    """Replacing one of k records moves a mean loss in [0, 1] by at most 1/k: ε = 2·scale/k."""
    mechanism = Exponential((0.0, 0.5, 1.0), lambda w, x: abs(w - x), 3.0)
    game = wi.worlds.uniform_subsets((0.0, 0.2, 0.5, 0.9, 1.0, 0.1), 3).play(mechanism)
    assert game.dp().epsilon <= 2 * 3.0 / 3
    assert game.dp().epsilon > 0.5


# --- k-Max -----------------------------------------------------------------------------------------------------------


def test_k_max_law():
    mechanism = KMax("abcde", 3)
    third = 1 / 3
    assert mechanism.law(("b",)) == dict.fromkeys("bcd", third)
    assert mechanism.law(("a", "c")) == dict.fromkeys("cde", third)
    assert mechanism.law(("e", "a")) == dict.fromkeys("cde", third)
    assert mechanism.law(()) == dict.fromkeys("abc", third)
    assert KMax("abcde", 3, empty="null").law(()) == {None: 1.0}
    assert KMax("ab", 2).law(("a",)) == {"a": 0.5, "b": 0.5}


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("n", [5, 7])
def test_k_max_gamma(k, n):
    """Li et al., proposition 5.3, with the empty set at the lowest rank: γ = (2^k - 1)/(2^k - 2)."""
    universe = tuple(range(n))
    game = wi.worlds.all_subsets(universe).play(KMax(universe, k))
    assert game.membership_privacy().gamma == pytest.approx(float(Fraction(2**k - 1, 2**k - 2)), rel=1e-12)
    worst = max(game.posterior(t, s) for t in universe for s in game.outputs)
    assert worst == pytest.approx(float(Fraction(2 ** (k - 1), 2**k - 1)), rel=1e-12)


def test_k_max_with_a_null_gives_the_lowest_away():
    universe = tuple(range(5))
    game = wi.worlds.all_subsets(universe).play(KMax(universe, 3, empty="null"))
    assert game.posterior(0, 0) == 1.0
    assert game.membership_privacy().gamma == INF


# --- sampling first --------------------------------------------------------------------------------------------------


@given(st.floats(0.0, 1.0), st.integers(0, 4))
def test_subsampled_law_is_the_average_over_samples(rate, size):
    records = tuple("abcd"[:size])
    law = Subsampled(lambda kept: {len(kept): 1.0}, rate).law(records)
    for kept in range(size + 1):
        binomial = math.comb(size, kept) * rate**kept * (1 - rate) ** (size - kept)
        assert law.get(kept, 0.0) == pytest.approx(binomial, abs=1e-12)
    assert sum(law.values()) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("rate", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_subsampled_attains_the_amplified_epsilon(rate, epsilon):
    told = RandomizedResponse(asks_for("a"), epsilon)
    game = wi.worlds.independent("ab", 0.5).play(Subsampled(told, rate))
    promised = wi.PureDP(epsilon).implies(wi.PureDP, sample_rate=rate).epsilon
    assert game.dp().epsilon == pytest.approx(promised, rel=1e-9)


def test_subsampled_ends():
    told = RandomizedResponse(asks_for("a"), 1.0)
    assert Subsampled(told, 1.0).law(("a",)) == told.law(("a",))
    assert Subsampled(told, 0.0).law(("a",)) == told.law(())


# --- additive noise --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Laplace, Gaussian])
def test_centres_are_the_queries_in_order(kind):
    members = np.array([[True, False, True], [False, False, False], [True, True, True]])
    found = kind(sum, 1.0).centres((1.0, 10.0, 100.0), members)
    assert found.tolist() == [101.0, 0.0, 111.0]
    assert kind.noise == kind.__name__.lower()


def test_queries_see_the_records_as_a_tuple_in_the_order_of_the_universe():
    seen = []
    mechanism = Laplace(lambda records: seen.append(records) or 0.0, 1.0)
    wi.worlds.uniform_subsets("cab", 2).play(mechanism)
    assert seen == [("c", "a"), ("c", "b"), ("a", "b")]


# --- mechanisms of one's own -----------------------------------------------------------------------------------------


class Loud(FiniteMechanism):
    def law(self, records):
        return {f"{len(records)} people": 0.5, "silence": 0.5}


def test_a_class_of_ones_own():
    game = wi.worlds.all_subsets("ab").play(Loud())
    assert set(game.outputs) == {"0 people", "1 people", "2 people", "silence"}
    assert game.posterior("a", "silence") == 0.5
    assert game.posterior("a", "2 people") == 1.0


def test_outputs_may_come_in_any_order_and_differ_between_data_sets():
    def law(records):
        if not records:
            return {"x": 0.25, "y": 0.75}
        return {"y": 0.5, "x": 0.25, "z": 0.25}

    outputs, table = CallableMechanism(law).laws("ab", np.array([[False, False], [True, False]]))
    assert [dict(zip(outputs, row, strict=True)) for row in table.tolist()] == [
        {"x": 0.25, "y": 0.75, "z": 0.0},
        {"x": 0.25, "y": 0.5, "z": 0.25},
    ]


def test_tables_that_would_not_fit_are_refused():
    check_cells(MAX_CELLS, 1)
    with pytest.raises(InputError, match=str(MAX_CELLS)):
        check_cells(MAX_CELLS, 2)
    many = Exponential(range(200), lambda w, x: 0.0, 1.0)
    with pytest.raises(InputError, match="2097152 × 200"):
        wi.worlds.all_subsets(range(21)).play(many)


@pytest.mark.parametrize("slack", [0.0, 1e-12, -1e-12, 5e-10])
def test_rounding_in_a_law_is_forgiven(slack):
    game = wi.worlds.all_subsets("ab").play(lambda records: {0: 0.5, 1: 0.5 + slack})
    assert game.accuracy("a") == pytest.approx(0.5, abs=1e-9)


@pytest.mark.parametrize("kind", [Laplace, Gaussian, wi.mechanisms.NormExponential])
def test_the_promise_is_rounded_to_the_safe_side(kind):
    """ε and μ are at least sensitivity/scale in exact arithmetic: the quotient of two floats may fall short of it."""
    rng = np.random.default_rng(0)
    short = 0
    for sensitivity, scale in np.exp(rng.normal(0.0, 3.0, (200, 2))).tolist():
        promise = kind(len, scale).guarantee(sensitivity)
        promised = promise.mu if kind is Gaussian else promise.epsilon
        exact = Fraction(sensitivity) / Fraction(scale)
        assert exact <= Fraction(promised) <= exact * (1 + Fraction(1, 2**50))
        short += Fraction(sensitivity / scale) < exact
    assert short > 50

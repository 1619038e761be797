"""One training run against a DP claim: the bound in exact worlds, its coverage, its power, and what it refuses."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import csr_matrix
from scipy.stats import binom, binomtest

import whosin as wi
from whosin.auditing.runs import one_run_bound
from whosin.auditing.runs.one_run import audit_one_run
from whosin.errors import AssumptionWarning, ImplicationError, InputError, InputTypeError


def worst_case(m, r, v, epsilon, delta):
    """Largest P(at least v of r guesses right) over every (ε, δ)-DP mechanism from m coins to guesses, by LP."""
    coins = list(itertools.product([-1, 1], repeat=m))
    guesses = [t for t in itertools.product([-1, 0, 1], repeat=m) if np.count_nonzero(t) == r]
    size = len(coins) * len(guesses)
    pairs = [(a, b) for a, s in enumerate(coins) for b, t in enumerate(coins) if np.sum(np.not_equal(s, t)) == 1]
    gain = np.zeros(size + len(pairs) * len(guesses))
    for (a, s), (j, t) in itertools.product(enumerate(coins), enumerate(guesses)):
        gain[a * len(guesses) + j] = (np.sum(np.multiply(s, t) > 0) >= v) / len(coins)
    rows, columns, values, limits = [], [], [], []
    for number, (a, b) in enumerate(pairs):
        slack = size + number * len(guesses)
        for j in range(len(guesses)):
            rows += [len(limits)] * 3
            columns += [a * len(guesses) + j, b * len(guesses) + j, slack + j]
            values += [1.0, -math.exp(epsilon), -1.0]
            limits.append(0.0)
        rows += [len(limits)] * len(guesses)
        columns += range(slack, slack + len(guesses))
        values += [1.0] * len(guesses)
        limits.append(delta)
    table = csr_matrix((values, (rows, columns)), shape=(len(limits), len(gain)))
    sums = csr_matrix(
        (np.ones(size), (np.repeat(np.arange(len(coins)), len(guesses)), np.arange(size))), (len(coins), len(gain))
    )
    found = linprog(-gain, A_ub=table, b_ub=limits, A_eq=sums, b_eq=np.ones(len(coins)), method="highs")
    assert found.status == 0
    return -found.fun


def bound(m, r, v, epsilon, delta):
    chance = binom.sf(v - 1, r, 1 / (1 + math.exp(-epsilon)))
    return chance + one_run_bound._correction(m, r, delta, epsilon)


WORLDS = [(m, r, v) for m in (1, 2, 3) for r in range(1, m + 1) for v in range(1, r + 1)]


@pytest.mark.parametrize(("m", "r", "v"), WORLDS)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.1), (1.0, 0.0), (1.0, 0.01), (1.0, 0.1), (3.0, 0.03)])
def test_no_mechanism_exceeds_the_bound(m, r, v, epsilon, delta):
    exact = worst_case(m, r, v, epsilon, delta)
    limit = bound(m, r, v, epsilon, delta)
    assert exact <= limit + 1e-9
    if delta == 0.0 or r == 1:
        assert exact == pytest.approx(limit, rel=2e-6)


def test_the_correction_in_use_is_exceeded_in_a_small_world():
    """m = r = 2, v = 1, ε = 1, δ = 0.01: 0.93108 is reached, f(1) + 2mδ·max_i (f(1-i) - f(1))/i is 0.93056."""
    f = [binom.sf(v - 1, 2, 1 / (1 + math.exp(-1.0))) for v in (0, 1)]
    in_use = f[1] + 2 * 2 * 0.01 * (f[0] - f[1])
    assert in_use < 0.9306 < 0.9310 < worst_case(2, 2, 1, 1.0, 0.01)


def direct_correction(m, r, delta, epsilon):
    """The sum of the module's docstring, by scipy's laws and a loop."""
    from scipy.stats import hypergeom

    q = 1 / (1 + math.exp(-epsilon))
    total = 0.0
    for place in range(m):
        left = delta
        for n in range(r):
            mass = min(left, hypergeom.pmf(n, m - 1, r - 1, place) * r / m)
            total += mass * binom.pmf(np.arange(n + 1), n, q).max()
            left -= mass
    return (1 - q) * total


@pytest.mark.parametrize(
    ("m", "r", "delta", "epsilon"), [(5, 3, 0.01, 0.5), (40, 10, 1e-4, 2.0), (30, 30, 1e-3, 1.0), (20, 1, 0.2, 0.0)]
)
def test_correction_is_the_sum_that_was_derived(m, r, delta, epsilon):
    found = one_run_bound._correction(m, r, delta, epsilon)
    assert found == pytest.approx(direct_correction(m, r, delta, epsilon), rel=3e-6)
    assert direct_correction(m, r, delta, epsilon) <= found <= m * delta / (1 + math.exp(epsilon)) * (1 + 3e-6)


def test_grouped_places_stay_on_the_safe_side(monkeypatch):
    exact = one_run_bound._correction(900, 300, 1e-4, 1.0)
    one_run_bound._masses.cache_clear()
    monkeypatch.setattr(one_run_bound, "_EXACT_PLACES", 16)
    grouped = one_run_bound._correction(900, 300, 1e-4, 1.0)
    one_run_bound._masses.cache_clear()
    assert exact < grouped < 1.1 * exact


@given(st.integers(1, 60), st.integers(1, 60), st.floats(0, 6), st.floats(0, 3), st.sampled_from([1e-6, 1e-3, 0.05]))
def test_correction_falls_in_epsilon(m, r, epsilon, more, delta):
    r = min(m, r)
    low, high = (one_run_bound._correction(m, r, delta, e) for e in (epsilon, epsilon + more))
    assert high <= low * (1 + 1e-6)


@given(st.integers(1, 400), st.data(), st.sampled_from([0.0, 1e-6, 1e-4, 1e-2]), st.sampled_from([0.05, 0.001]))
def test_every_epsilon_below_the_limit_is_refuted(r, data, delta, beta):
    v, extra = data.draw(st.integers(0, r)), data.draw(st.integers(0, 50))
    limit = one_run_bound.epsilon_lower(r + extra, r, v, delta, beta)
    for epsilon in np.linspace(0.0, limit, 7) if limit > 0 else []:
        assert one_run_bound.p_value(r + extra, r, v, float(epsilon), delta, beta) <= beta * (1 + 1e-8)
    assert limit <= one_run_bound.epsilon_lower(r, r, v, 0.0, beta)
    if delta == 0.0 and v < r:
        above = one_run_bound.p_value(r, r, v, limit + 1e-6, 0.0, beta)
        assert above > beta * (1 - 1e-8)


def test_golden_numbers():
    """All right: q^r = β, so ε = logit β^{1/r}. 700 of 1000: brentq on scipy's binom.sf."""
    for r in (10, 100, 1000):
        q = 0.05 ** (1 / r)
        assert one_run_bound.epsilon_lower(r, r, r, 0.0, 0.05) == pytest.approx(math.log(q / (1 - q)), rel=1e-8)
    assert one_run_bound.epsilon_lower(1000, 1000, 700, 0.0, 0.05) == pytest.approx(0.73201, abs=2e-5)
    assert one_run_bound.epsilon_lower(1000, 1000, 700, 1e-4, 0.05) == pytest.approx(0.7309, abs=1e-4)
    assert one_run_bound.epsilon_lower(1000, 100, 95, 1e-5, 0.05) == pytest.approx(2.1712, abs=1e-4)
    assert one_run_bound.epsilon_lower(100, 100, 50, 0.0, 0.05) == 0.0
    assert one_run_bound.epsilon_lower(100, 100, 100, 0.5, 0.05) == 0.0


def laplace_run(rng, m, epsilon):
    """Each coin plus Laplace noise: ε-DP, and abstention finds the canaries that tell most."""
    included = rng.random(m) < 0.5
    return included + rng.laplace(0, 1 / epsilon, m), included


def response_run(rng, m, epsilon, delta=0.0):
    """Randomised response that gives a coin away with probability δ: (ε, δ)-DP with equality."""
    included = rng.random(m) < 0.5
    sign = np.where(included, 1, -1)
    kept = rng.random(m) < 1 / (1 + math.exp(-epsilon))
    return np.where(rng.random(m) < delta, 10 * sign, np.where(kept, sign, -sign)), included


@pytest.mark.parametrize("guesses", [200, (40, 0), [200, 50, 10], None])
@pytest.mark.parametrize(
    ("run", "delta"), [(laplace_run, 0.0), (response_run, 0.0), (lambda *a: response_run(*a, 0.002), 0.002)]
)
def test_limit_is_above_epsilon_no_more_often_than_allowed(run, delta, guesses):
    rng = np.random.default_rng(5)
    epsilon, level, trials = 1.0, 0.8, 200
    found = [
        audit_one_run(*run(rng, 200, epsilon), guesses=guesses, delta=delta, confidence_level=level, rng=rng)
        for _ in range(trials)
    ]
    misses = sum(a.epsilon_lower > epsilon for a in found)
    assert binomtest(misses, trials, 1 - level, alternative="greater").pvalue > 1e-3
    assert np.mean([a.epsilon_lower for a in found]) > 0.1


def test_ignoring_delta_would_be_wrong():
    """With δ = 0.05 given away, the pure limit misses ε = 0.2 far more often than 5 %; the corrected one does not."""
    rng = np.random.default_rng(6)
    runs = [response_run(rng, 300, 0.2, 0.05) for _ in range(150)]
    pure = [audit_one_run(*run, guesses=20, rng=0).epsilon_lower > 0.2 for run in runs]
    honest = [audit_one_run(*run, guesses=20, delta=0.05, rng=0).epsilon_lower > 0.2 for run in runs]
    assert np.mean(pure) > 0.5
    assert np.mean(honest) <= 0.05


def test_power_with_randomised_response():
    found = audit_one_run(*response_run(np.random.default_rng(0), 5000, 2.0), guesses=5000, rng=0)
    assert 1.85 < found.epsilon_lower < 2.0
    assert found.p_value(1.5) < 1e-6 < 0.05 < found.p_value(2.0)


def test_ties_are_broken_without_looking():
    """Equal scores tell nothing, even if the included canaries come last, or first."""
    included = np.arange(400) >= 200
    found = [audit_one_run(np.zeros(400), included, guesses=100, rng=i).epsilon_lower for i in range(100)]
    assert np.mean(np.array(found) > 0) <= 0.12
    assert audit_one_run(np.zeros(400), ~included, guesses=400, rng=0).right < 240


def test_several_ways_cost_confidence():
    scores, included = laplace_run(np.random.default_rng(1), 1000, 3.0)
    alone = audit_one_run(scores, included, guesses=100, rng=0)
    among = audit_one_run(scores, included, guesses=[1000, 100, (50, 50)], rng=0)
    assert [c.guesses for c in among.counts] == [1000, 100, 100]
    assert among.counts[1] == among.counts[2] == alone.counts[0]
    assert 0 < among.epsilon_lower < alone.epsilon_lower
    assert among.epsilon_lower == one_run_bound.epsilon_lower(1000, 100, among.right, 0.0, (1 - 0.95) / 3)
    assert among.epsilon_lower_at(0.0) == among.epsilon_lower
    assert among.p_value(among.epsilon_lower + 1e-6) > 0.05
    grid = audit_one_run(scores, included, rng=0)
    assert [c.guesses for c in grid.counts] == [1000, 500, 250, 125, 62, 31, 15]


def test_scores_may_be_rescaled_and_infinite():
    scores, included = laplace_run(np.random.default_rng(2), 300, 2.0)
    first = audit_one_run(scores, included, guesses=100, rng=0)
    assert audit_one_run(np.exp(scores), included, guesses=100, rng=0) == first
    order = np.random.default_rng(3).permutation(300)
    assert audit_one_run(scores[order], included[order], guesses=100, rng=0) == first
    scores[np.argmax(scores)], scores[np.argmin(scores)] = np.inf, -np.inf
    assert audit_one_run(scores, included.astype(int), guesses=100, rng=0) == first


def test_compare():
    run = audit_one_run(*response_run(np.random.default_rng(0), 2000, 2.0), guesses=2000, delta=1e-6, rng=0)
    broken = run.compare(wi.PureDP(1.0))
    assert broken.verdict == "violated"
    assert broken.p_value <= 0.05
    assert broken.epsilon_lower > 1.7
    assert run.compare(wi.PureDP(2.0)).verdict == "inconclusive"
    assert run.compare(wi.ApproxDP(1.0, 1e-5)).verdict == "violated"
    assert run.compare(wi.ApproxDP(1.0, 0.5)).verdict == "inconclusive"
    assert run.compare(wi.GaussianDP(0.2)).verdict == "violated"
    assert run.compare(wi.GaussianDP(3.0)).verdict == "inconclusive"
    assert run.compare(wi.PureDP(math.inf)).verdict == "inconclusive"
    json.dumps(run.compare(wi.PureDP(math.inf)).to_dict(), allow_nan=False)
    assert "not confirm" in str(run.compare(wi.PureDP(2.0)))
    assert "<b>violated</b>" in broken._repr_html_()
    for epsilon in (0.3, run.epsilon_lower_at(0.0) - 1e-6, run.epsilon_lower_at(0.0) + 1e-6, 3.0):
        assert (run.compare(wi.PureDP(epsilon)).verdict == "violated") == (epsilon < run.epsilon_lower_at(0.0))


def test_compare_refuses_what_it_cannot_test():
    run = audit_one_run(*response_run(np.random.default_rng(0), 100, 2.0), rng=0)
    with pytest.raises(ImplicationError, match="replace"):
        run.compare(wi.PureDP(1.0, "replace"))
    with pytest.raises(InputError, match="delta"):
        run.compare(wi.GaussianDP(1.0))
    with pytest.raises(InputTypeError, match="guarantee"):
        run.compare(1.0)
    with_delta = audit_one_run(*response_run(np.random.default_rng(0), 100, 2.0), delta=1e-6, rng=0)
    with pytest.raises(ImplicationError):
        with_delta.compare(wi.MIP(0.1))


def test_words_and_json():
    run = audit_one_run(*response_run(np.random.default_rng(0), 400, 3.0), guesses=400, delta=1e-7, rng=0)
    json.dumps(run.to_dict(), allow_nan=False)
    assert "at least 2." in run.explain()
    assert str(run).startswith("ε ≥ 2.")
    assert "Assumes" in run._repr_html_()
    blind = audit_one_run(np.arange(100.0), np.arange(100) % 2 == 0, guesses=100)
    assert blind.epsilon_lower == 0.0
    assert "does not show" in blind.explain()
    assert "safe" not in (run.explain() + blind.explain()).lower()


SCORES, INCLUDED = np.arange(20.0), np.arange(20) % 2 == 0


@pytest.mark.parametrize(
    ("scores", "included", "options", "words"),
    [
        ([], [], {}, "one entry"),
        (SCORES, INCLUDED[:-1], {}, "one entry"),
        (SCORES[:, None], INCLUDED, {}, "one entry"),
        (np.where(SCORES == 3, np.nan, SCORES), INCLUDED, {}, "canary 3"),
        (SCORES, SCORES, {}, "True or False"),
        (SCORES, ["a"] * 20, {}, "True or False"),
        (SCORES, INCLUDED, {"guesses": 21}, "1 to 20"),
        (SCORES, INCLUDED, {"guesses": 0}, "guesses"),
        (SCORES, INCLUDED, {"guesses": (0, 0)}, "1 to 20"),
        (SCORES, INCLUDED, {"guesses": (1, 2, 3)}, "pair"),
        (SCORES, INCLUDED, {"guesses": []}, "empty list"),
        (SCORES, INCLUDED, {"delta": 1.5}, "delta"),
        (SCORES, INCLUDED, {"delta": math.nan}, "delta"),
        (SCORES, INCLUDED, {"confidence_level": 1.0}, "confidence_level"),
    ],
)
def test_bad_input(scores, included, options, words):
    with pytest.raises(InputError, match=words):
        audit_one_run(scores, included, **options)


def test_text_is_no_score():
    with pytest.raises(InputTypeError, match="scores"):
        audit_one_run(["a", "b"], [True, False])


def test_coins_that_are_not_fair_are_noticed():
    with pytest.warns(AssumptionWarning, match="fair coins"):
        audit_one_run(np.arange(100.0), np.arange(100) < 95)


def test_one_canary():
    found = audit_one_run([1.0], [True])
    assert (found.guesses, found.right, found.epsilon_lower) == (1, 1, 0.0)
    assert audit_one_run([1.0], [True], confidence_level=0.4).epsilon_lower == pytest.approx(math.log(0.6 / 0.4))

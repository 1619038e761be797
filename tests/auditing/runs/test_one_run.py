"""One training run against a DP claim: the bound in exact worlds, its coverage, its power, and what it refuses."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from null_audits import look_once
from scipy.optimize import linprog
from scipy.sparse import csr_matrix
from scipy.stats import binom, binomtest

import whosin as wi
from whosin.auditing.measuring import guess_bound
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


WORLDS = [(m, r, v) for m in (1, 2, 3) for r in range(1, m + 1) for v in range(1, r + 1)]


@pytest.mark.parametrize(("m", "r", "v"), WORLDS)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.1), (1.0, 0.0), (1.0, 0.01), (1.0, 0.1), (3.0, 0.03)])
def test_the_bound_is_the_worst_mechanism(m, r, v, epsilon, delta):
    """The closed form is the largest chance over all mechanisms: neither below it nor above."""
    limit = guess_bound.p_value(m, r, v, epsilon, delta)
    exact = worst_case(m, r, v, epsilon, delta)
    assert exact <= limit + 1e-9
    assert exact == pytest.approx(limit, rel=2e-6)


def test_the_correction_in_use_is_exceeded_in_a_small_world():
    """m = r = 2, v = 1, ε = 1, δ = 0.01: 0.93108 is reached, f(1) + 2mδ·max_i (f(1-i) - f(1))/i is 0.93056."""
    f = [binom.sf(v - 1, 2, 1 / (1 + math.exp(-1.0))) for v in (0, 1)]
    in_use = f[1] + 2 * 2 * 0.01 * (f[0] - f[1])
    assert in_use < 0.9306 < 0.9310 < worst_case(2, 2, 1, 1.0, 0.01)


def worst_curve(m, r, v, gammas, deltas, mirrored=None):
    """The same over every mechanism that keeps E_γ ≤ δ(γ) at these γ, ``deltas`` from in to out, ``mirrored`` back."""
    coins = list(itertools.product([-1, 1], repeat=m))
    guesses = [t for t in itertools.product([-1, 0, 1], repeat=m) if np.count_nonzero(t) == r]
    size, width = len(coins) * len(guesses), len(guesses)
    pairs = [(a, b) for a, s in enumerate(coins) for b, t in enumerate(coins) if np.sum(np.not_equal(s, t)) == 1]
    gain = np.zeros(size + len(pairs) * len(gammas) * width)
    for (a, s), (j, t) in itertools.product(enumerate(coins), enumerate(guesses)):
        gain[a * width + j] = (np.sum(np.multiply(s, t) > 0) >= v) / len(coins)
    rows, columns, values, limits = [], [], [], []
    slack = size
    for (a, b), (i, gamma) in itertools.product(pairs, enumerate(gammas)):
        side = deltas if mirrored is None or sum(coins[a]) > sum(coins[b]) else mirrored
        for j in range(width):
            rows += [len(limits)] * 3
            columns += [a * width + j, b * width + j, slack + j]
            values += [1.0, -gamma, -1.0]
            limits.append(0.0)
        rows += [len(limits)] * width
        columns += range(slack, slack + width)
        values += [1.0] * width
        limits.append(side[i])
        slack += width
    sums = csr_matrix((np.ones(size), (np.repeat(np.arange(len(coins)), width), np.arange(size))), (len(coins), slack))
    table = csr_matrix((values, (rows, columns)), shape=(len(limits), slack))
    found = linprog(-gain, A_ub=table, b_ub=limits, A_eq=sums, b_eq=np.ones(len(coins)), method="highs")
    assert found.status == 0
    return -found.fun


@pytest.mark.parametrize(("m", "r", "v"), [(2, 2, 1), (2, 2, 2), (3, 3, 2), (3, 2, 1), (3, 2, 2), (3, 1, 1)])
@pytest.mark.parametrize("mu", [0.5, 1.0])
def test_curves_against_every_mechanism(m, r, v, mu):
    """All mechanisms that keep the promise at the γ looked at: the certificate is their largest chance."""
    allowed = guess_bound.symmetric_divergence(wi.GaussianDP(mu).roc)
    gammas = guess_bound._gammas(allowed)[::3]
    exact = worst_curve(m, r, v, gammas, [allowed(g) for g in gammas])
    fine = guess_bound.curve_p_value(allowed, m, r, v)
    assert fine <= exact + 1e-6
    deltas = np.array([allowed(g) for g in gammas])
    found = guess_bound._multipliers(gammas, deltas, m, r, v)
    assert guess_bound.certified(gammas, deltas, found, m, r, v) == pytest.approx(exact, abs=1e-5)


def test_a_promise_that_differs_by_direction_enters_by_its_mean():
    promise = wi.DPSGD(0.7, 0.3, 2).roc
    allowed = guess_bound.symmetric_divergence(promise)
    gammas = guess_bound._gammas(allowed)[::3]
    one, other = ([curve.divergence(g) for g in gammas] for curve in (promise, promise.reversed()))
    assert max(abs(a - b) for a, b in zip(one, other, strict=True)) > 0.01
    for m, r, v in ((2, 2, 2), (3, 2, 2)):
        deltas = np.array([allowed(g) for g in gammas])
        found = guess_bound._multipliers(gammas, deltas, m, r, v)
        limit = guess_bound.certified(gammas, deltas, found, m, r, v)
        assert worst_curve(m, r, v, gammas, one, other) <= limit + 1e-6


@pytest.mark.parametrize(
    ("mu", "m", "r", "v", "exact"),
    [(0.5, 20, 20, 16, 0.133), (1.0, 100, 20, 18, 0.582), (1.0, 100, 100, 85, 0.210), (0.5, 200, 50, 42, 0.0)],
)
def test_curves_at_sizes_that_cannot_be_enumerated(mu, m, r, v, exact):
    """Values of the linear programme with 60 values of γ (to 3 digits); 0 stands for "only the certificate"."""
    allowed = guess_bound.symmetric_divergence(wi.GaussianDP(mu).roc)
    found = guess_bound.curve_p_value(allowed, m, r, v)
    if exact:
        assert exact - 5e-4 < found < exact + 2e-3
    rng = np.random.default_rng(0)
    z = rng.normal(mu / 2, 1.0, (4000, m))
    surest = np.take_along_axis(z, np.argsort(-np.abs(z), axis=1)[:, :r], axis=1)
    assert np.mean((surest > 0).sum(axis=1) >= v) <= found


@given(st.integers(0, 10_000))
def test_certificates_hold_for_any_multipliers(seed):
    """Whatever the multipliers, no mechanism with independent channels, and no randomised response, is above them."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(1, 30))
    r = int(rng.integers(1, m + 1))
    v = int(rng.integers(1, r + 1))
    epsilon = float(rng.uniform(0.1, 3.0))
    gammas = np.exp(np.sort(rng.uniform(0, 4, 5)))
    roc = wi.PureDP(epsilon).roc
    deltas = np.array([roc.divergence(g) for g in gammas])
    multipliers = rng.exponential(m, 5) * (rng.random(5) < 0.7)
    truth = binom.sf(v - 1, r, 1 / (1 + math.exp(-epsilon)))
    assert guess_bound.certified(gammas, deltas, multipliers, m, r, v) >= truth - 1e-12


@given(st.integers(1, 300), st.data(), st.sampled_from([0.0, 1e-6, 1e-3, 0.05]))
def test_p_values_are_monotone(r, data, delta):
    v, extra = data.draw(st.integers(0, r)), data.draw(st.integers(0, 50))
    at = [guess_bound.p_value(r + extra, r, v, e, delta) for e in (0.0, 0.3, 1.0, 3.0, 20.0, 800.0)]
    assert all(a <= b * (1 + 1e-8) for a, b in itertools.pairwise(at))
    assert at[-1] == 1.0
    if v:
        assert at[2] <= guess_bound.p_value(r + extra, r, v - 1, 1.0, delta) * (1 + 1e-8)


@given(st.integers(1, 400), st.data(), st.sampled_from([0.0, 1e-6, 1e-4, 1e-2]), st.sampled_from([0.05, 0.001]))
def test_every_epsilon_below_the_limit_is_refuted(r, data, delta, beta):
    v, extra = data.draw(st.integers(0, r)), data.draw(st.integers(0, 50))
    limit = guess_bound.epsilon_lower(r + extra, r, v, delta, beta)
    for epsilon in np.linspace(0.0, limit, 7) if limit > 0 else []:
        assert guess_bound.p_value(r + extra, r, v, float(epsilon), delta) <= beta * (1 + 1e-8)
    assert limit <= guess_bound.epsilon_lower(r, r, v, 0.0, beta)
    if delta == 0.0 and v < r:
        above = guess_bound.p_value(r, r, v, limit + 1e-6, 0.0)
        assert above > beta * (1 - 1e-8)


TABLE = [
    (100, 100, 85, 1.0, 1e-3, 0.0056),
    (100, 100, 82, 1.0, 1e-3, 0.0283),
    (1000, 200, 170, 1.0, 1e-4, 0.0011),
    (1000, 100, 95, 2.0, 1e-5, 0.0163),
]
"""m, r, v, ε, δ and the value of the linear programme of the weights (HiGHS), to four digits."""


def worst_where_the_release_chooses(m, epsilon, delta, needed):
    """The largest chance that any g of ``needed`` has as many right as it needs, one mechanism choosing g: an LP."""
    gamma, starts, width = math.exp(epsilon), {}, 0
    for g in needed:
        starts[g], width = width, width + g + 1
    rows, first = [], width
    for g, start in starts.items():
        for j in range(g):
            up, down = (start + j + 1, (j + 1) / m), (start + j, (g - j) / m)
            rows += [(*up, *down), (*down, *up)]
    matrix = np.zeros((len(rows) + 1, first + len(rows)))
    for i, (more, a, less, b) in enumerate(rows):
        matrix[i, more], matrix[i, less], matrix[i, first + i] = a, -gamma * b, -1.0
    matrix[-1, first:] = 1.0
    gain, total = np.zeros(matrix.shape[1]), np.zeros((1, matrix.shape[1]))
    for g, c in needed.items():
        gain[starts[g] + c : starts[g] + g + 1] = -1.0
    total[0, :first] = 1.0
    limits = np.append(np.zeros(len(rows)), delta)
    return -linprog(gain, A_ub=matrix, b_ub=limits, A_eq=total, b_eq=[1.0]).fun


@pytest.mark.parametrize(
    ("m", "epsilon", "delta", "level"), [(20, 1.0, 0.01, 0.1), (20, 0.5, 0.02, 0.2), (12, 0.2, 0.003, 0.05)]
)
def test_the_release_may_choose_the_number_of_guesses(m, epsilon, delta, level):
    chances = {}
    for by_release in (False, True):
        needed = {}
        for g in range(1, m + 1):
            values = [guess_bound.p_value(m, g, c, epsilon, delta, by_release=by_release) for c in range(1, g + 1)]
            if values[-1] <= level:
                needed[g] = 1 + next(i for i, value in enumerate(values) if value <= level)
        chances[by_release] = worst_where_the_release_chooses(m, epsilon, delta, needed)
    assert 0.5 * level < chances[True] <= level
    if m == 20:
        assert chances[False] > level, "what holds for one number of guesses does not hold for a choice"


def test_golden_numbers():
    """All right: q^r = β, so ε = logit β^{1/r}. 700 of 1000: brentq on scipy's binom.sf."""
    for r in (10, 100, 1000):
        q = 0.05 ** (1 / r)
        assert guess_bound.epsilon_lower(r, r, r, 0.0, 0.05) == pytest.approx(math.log(q / (1 - q)), rel=1e-8)
    assert guess_bound.epsilon_lower(1000, 1000, 700, 0.0, 0.05) == pytest.approx(0.73201, abs=2e-5)
    for m, r, v, epsilon, delta, exact in TABLE:
        assert guess_bound.p_value(m, r, v, epsilon, delta) == pytest.approx(exact, abs=6e-5)
    assert guess_bound.epsilon_lower(100, 100, 50, 0.0, 0.05) == 0.0
    assert guess_bound.epsilon_lower(100, 100, 100, 0.5, 0.05) == 0.0


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
def test_limit_is_above_epsilon_no_more_often_than_allowed(run, delta, guesses, monkeypatch):
    rng = np.random.default_rng(5)
    epsilon, level, trials, whole = 1.0, 0.8, 200, 30

    def audits(count):
        options = {"guesses": guesses, "delta": delta, "confidence_level": level, "rng": rng}
        return [audit_one_run(*run(rng, 200, epsilon), **options) for _ in range(count)]

    found = audits(whole)
    assert np.mean([a.epsilon_lower for a in found]) > 0.1
    assert all((a.epsilon_lower > epsilon) == (a.p_value(epsilon) <= 1 - level) for a in found)
    look_once(monkeypatch, epsilon)
    misses = sum(a.epsilon_lower > epsilon for a in found + audits(trials - whole))
    assert binomtest(misses, trials, 1 - level, alternative="greater").pvalue > 1e-3


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


def test_a_release_that_repeats_some_records_is_guessed_from_one_side():
    """40 of 1,000 records are repeated, all members: low scores tell nothing, and would spoil half of the guesses."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        included = rng.random(1000) < 0.5
        repeated = np.zeros(1000, dtype=bool)
        repeated[rng.choice(np.flatnonzero(included), 40, replace=False)] = True
        scores = rng.normal(size=1000) + 9.0 * repeated
        both = audit_one_run(scores, included, guesses=[1000, 500, 250, 125, 62, 31, 15], rng=0).epsilon_lower
        assert audit_one_run(scores, included, rng=0).epsilon_lower > max(1.0, both + 0.3)


def test_several_ways_cost_confidence():
    scores, included = laplace_run(np.random.default_rng(1), 1000, 3.0)
    alone = audit_one_run(scores, included, guesses=100, rng=0)
    among = audit_one_run(scores, included, guesses=[1000, 100, (50, 50)], rng=0)
    assert [c.guesses for c in among.counts] == [1000, 100, 100]
    assert among.counts[1] == among.counts[2] == alone.counts[0]
    assert 0 < among.epsilon_lower < alone.epsilon_lower
    assert among.epsilon_lower > guess_bound.epsilon_lower(1000, 100, among.right, 0.0, (1 - 0.95) / 3)
    shared = audit_one_run(scores, included, guesses=[1000, 100, (50, 50)], delta=1e-9, rng=0)
    assert shared.epsilon_lower == guess_bound.epsilon_lower(1000, 100, shared.right, 1e-9, (1 - 0.95) / 3)
    assert among.epsilon_lower_at(0.0) == among.epsilon_lower
    assert among.p_value(among.epsilon_lower + 1e-4) > 0.05
    grid = audit_one_run(scores, included, rng=0)
    assert [c.guesses for c in grid.counts] == [1000, 500, 250, 125, 62, 31, 15, 500, 250, 125, 62, 31, 15]
    assert [c.guessed_out for c in grid.counts] == [500, 250, 125, 62, 31, 15, 7] + [0] * 6


def test_the_scores_suggest_a_way_to_guess_and_no_coin_does():
    """Two groups: the upper is guessed, and where it has a quarter of all, the lower too; for δ > 0 it is not used."""
    rng = np.random.default_rng(0)
    scores, included = rng.normal(size=1000) + 9.0 * (np.arange(1000) < 40), np.arange(1000) % 2 == 0
    for coins in (included, ~included, rng.permutation(included)):
        found = audit_one_run(scores, coins, rng=0)
        assert (found._suggested.guessed_in, found._suggested.guessed_out) == (40, 0)
        assert found.ways == (found._suggested, *found.counts)
        assert "40, chosen by the scores and no coin, or one of 13" in found.assumes[2]
    all_in = audit_one_run(scores, np.where(np.arange(1000) < 40, True, included), rng=0)
    assert (all_in.right, all_in.guesses) == (40, 40)
    assert all_in.compare(wi.PureDP(all_in.epsilon_lower - 1e-4)).verdict == "violated"
    assert all_in.compare(wi.PureDP(all_in.epsilon_lower + 1e-4)).verdict == "inconclusive"
    halves = audit_one_run(scores[:100], included[:100], rng=0)
    assert (halves._suggested.guessed_in, halves._suggested.guessed_out) == (40, 60)
    assert halves.ways == (halves._suggested, *halves.counts[1:])
    with_delta = audit_one_run(scores, included, delta=1e-6, rng=0)
    assert with_delta.ways == with_delta.counts
    assert with_delta.epsilon_lower_at(0.0) == audit_one_run(scores, included, rng=0).epsilon_lower
    assert audit_one_run(scores, included, guesses=100, rng=0)._suggested is None


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
        ([], [], {}, "one number per canary"),
        (SCORES, INCLUDED[:-1], {}, r"included must be .* of shape \(20,\)"),
        (SCORES[:, None], INCLUDED, {}, "one number per canary"),
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

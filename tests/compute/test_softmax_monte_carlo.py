"""Certificates by simulation, against enumeration of every subset by itertools and against the definitions."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest
from scipy.special import bdtrc, log_softmax, logsumexp

import whosin.compute.softmax_monte_carlo as monte_carlo
from whosin.compute.softmax_monte_carlo import certify
from whosin.errors import InputError, InputTypeError

POOLS = ((8, 4), (9, 3), (9, 6), (10, 1), (10, 9), (8, 2), (9, 2))
"""Sizes of pool and subset; the matching is used where at least a quarter of the pool is on either side."""


def pool(n, m, scale, seed):
    return scale * np.random.default_rng(seed).standard_normal((n, m))


def log_laws(logits, k):
    """ln P_in, ln P_out (records, outcomes) and ln P, by the definition: a softmax of every subset."""
    n = len(logits)
    subsets = np.array(list(itertools.combinations(range(n), k)))
    chances = log_softmax(-logits[subsets].sum(axis=1), axis=1)
    inside = (subsets[:, :, None] == np.arange(n)).any(axis=1)
    ins = np.array([logsumexp(chances[inside[:, x]], axis=0) for x in range(n)]) - math.log(math.comb(n - 1, k - 1))
    outs = np.array([logsumexp(chances[~inside[:, x]], axis=0) for x in range(n)]) - math.log(math.comb(n - 1, k))
    return ins, outs, logsumexp(chances, axis=0) - math.log(len(subsets))


def laws(logits, k):
    return tuple(np.exp(law) for law in log_laws(logits, k))


def excess(ins, outs, epsilon):
    """The larger of both hockey-stick divergences at e^ε, for each record."""
    factor = np.exp(np.broadcast_to(epsilon, len(ins)))[:, None]
    return np.maximum(np.maximum(ins - factor * outs, 0).sum(axis=1), np.maximum(outs - factor * ins, 0).sum(axis=1))


def broken(ins, outs, epsilon, delta):
    """Whether some record is told more about than (ε, δ) allows."""
    return bool((excess(ins, outs, epsilon) > delta + 1e-12).any())


def ratios(logits, k):
    ins, outs, _ = log_laws(logits, k)
    return ins - outs


def chance_of_so_many(misses, runs, rate):
    """P(Binomial(runs, rate) ≥ misses)."""
    return 1.0 if misses == 0 else float(bdtrc(misses - 1, runs, rate))


# --- the limits hold -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.0, 0.02])
def test_limits_of_all_records_hold_at_once_as_often_as_promised(delta):
    confidence_level, runs = 0.6, 35
    misses = without_margin = 0
    for seed in range(runs):
        n, k = POOLS[seed % len(POOLS)]
        logits = pool(n, 4, (0.2, 0.6, 1.5)[seed % 3], seed)
        ins, outs, _ = laws(logits, k)
        found = certify(logits, k, delta=delta, confidence_level=confidence_level, draws=1500, rng=seed)
        misses += broken(ins, outs, found.per_record, delta) or broken(ins, outs, found.epsilon, delta)
        without_margin += broken(ins, outs, found.point, delta)
    assert chance_of_so_many(misses, runs, 1 - confidence_level) > 1e-3
    # Estimates without a margin miss far more often, so the comparison is able to fail.
    assert chance_of_so_many(without_margin, runs, 1 - confidence_level) < 1e-3


@pytest.mark.parametrize(("n", "k"), POOLS)
@pytest.mark.parametrize("scale", [0.1, 1.0, 4.0])
def test_never_above_the_range_bound_and_the_certain_bound_is_certain(n, k, scale):
    logits = pool(n, 4, scale, n + k)
    found = certify(logits, k, draws=200, rng=1)
    by_definition = np.ptp(logits[:, None] - logits[None], axis=2).max(axis=1)
    assert found.deterministic == pytest.approx(by_definition, rel=1e-12)
    assert np.all(found.deterministic >= by_definition)
    assert np.all(found.certain <= found.deterministic)
    assert np.all(found.per_record <= found.certain)
    assert found.epsilon == found.per_record.max()
    assert np.all(np.abs(ratios(logits, k)).max(axis=1) <= found.certain)


@pytest.mark.parametrize(("n", "k"), [(7, 3), (7, 5), (6, 1), (6, 5)])
def test_the_averaged_range_is_the_largest_average_over_partners(n, k):
    logits = pool(n, 3, 0.7, n * k)
    game = monte_carlo._Game.prepared(logits, k)
    caps = monte_carlo._Caps.of(game, logits)
    for x, w in itertools.product(range(n), range(3)):
        change = logits[x] - logits
        for found, size, sign in ((caps.mean_out, n - k, 1.0), (caps.mean_in, k, -1.0)):
            averages = [
                np.exp(sign * (change[list(chosen), w] - change[list(chosen), v])).mean()
                for v in range(3)
                for chosen in itertools.combinations(range(n), size)
            ]
            assert found[game.group[w], x] == pytest.approx(math.log(max(averages)), abs=1e-11)


@pytest.mark.parametrize("seed", range(5))
def test_the_certain_bound_beats_the_range_in_larger_pools(seed):
    logits = pool(200, 5, 0.3, seed)
    found = certify(logits, 100, draws=2, rng=seed)
    assert found.certain.max() < 0.9 * found.deterministic.max()


def test_many_draws_come_close_to_the_truth():
    logits = pool(10, 3, 0.3, 3)
    for k in (1, 5, 7):
        exact = np.abs(ratios(logits, k)).max()
        found = certify(logits, k, draws=40_000, rng=k)
        assert exact <= found.epsilon <= 1.05 * exact + 0.01
        assert found.point.max() == pytest.approx(exact, rel=0.05)


@pytest.mark.parametrize(("n", "k"), [(8, 4), (9, 3), (9, 6), (10, 7)])
def test_matched_pairs_have_the_right_means_and_counts(n, k):
    logits = pool(n, 3, 1.0, k)
    ins, outs, total = laws(logits, k)
    game = monte_carlo._Game.prepared(logits, k)
    draws = 20_000
    for matching in (True, False):
        sampler = monte_carlo._Sampler(game, np.arange(game.outcomes), np.arange(n), matching)
        block = sampler.block(draws, np.random.SeedSequence(5))
        sums = block.differences
        error = np.sqrt(sums.variance / sums.count)[game.group]
        assert np.all(np.abs(sums.mean[game.group] - (ins - outs).T) < 4.5 * error)
        chances = block.frequencies.mean[: game.outcomes][game.group] * game.portion
        assert chances == pytest.approx(total, abs=0.01)
        expected = draws * 2 * min(k, n - k) / n if matching else draws
        assert sums.count.mean() == expected
        assert np.all(np.abs(sums.count - expected) < 5 * math.sqrt(draws))


@pytest.mark.parametrize("spread", [0.05, 0.5, 1.0])
def test_the_limit_on_a_mean_is_missed_no_more_often_than_allowed(spread):
    rng = np.random.default_rng(8)
    beta, count, runs = 0.1, 400, 4000
    samples = np.where(rng.random((count, runs)) < spread, -0.3, 0.0) + 0.1 * rng.integers(0, 2, (count, runs))
    mean, square = samples.mean(axis=0), np.square(samples).mean(axis=0)
    lambdas = monte_carlo._lambdas(count, math.log(1 / beta))
    term = math.log(len(lambdas) / beta)
    upper = monte_carlo._mean_upper(mean, square, np.full(runs, float(count)), np.full(runs, 0.1), term, lambdas)
    truth = -0.3 * spread + 0.05
    misses = int((upper < truth).sum())
    assert chance_of_so_many(misses, runs, beta) > 1e-3
    assert np.mean(upper - truth) < 0.1
    assert (mean < truth).mean() > 0.3


def test_the_limit_on_a_mean_without_samples_or_reach():
    lambdas = np.array([0.5])
    limits = monte_carlo._mean_upper(
        np.zeros(3), np.zeros(3), np.array([0.0, 5.0, 1e9]), np.array([0.2, 0.0, 0.2]), 3.0, lambdas
    )
    assert limits[0] == 0.2
    assert limits[1] == 0.0
    assert 0.0 < limits[2] < 1e-8


# --- δ -------------------------------------------------------------------------------------------------------------


def rare_pool():
    """Two outcomes that are often chosen, and one that is nearly never, but then tells a lot."""
    rng = np.random.default_rng(2)
    logits = 0.05 * rng.standard_normal((10, 3))
    logits[:, 2] += 2.2 + 0.8 * rng.standard_normal(10)
    return logits


def test_rare_outcomes_go_to_delta():
    logits = rare_pool()
    ins, outs, total = laws(logits, 5)
    assert total.min() < 0.01
    pure, relaxed = (certify(logits, 5, delta=delta, draws=4000, rng=3) for delta in (0.0, 0.02))
    assert relaxed.epsilon < 0.3 * pure.epsilon
    assert np.all(relaxed.per_record <= pure.per_record)
    assert pure.delta_rare == 0.0
    assert 0.0 < relaxed.delta_rare <= 0.02
    assert relaxed.contenders.tolist() == [True, True, False]
    for found, delta in ((pure, 0.0), (relaxed, 0.02)):
        assert not broken(ins, outs, found.per_record, delta)


def test_epsilon_falls_as_delta_grows_down_to_the_total_variation():
    logits = pool(10, 4, 0.3, 7)
    ins, outs, _ = laws(logits, 4)
    found = [certify(logits, 4, delta=delta, draws=3000, rng=1).epsilon for delta in (0.0, 0.001, 0.01, 0.1, 0.5)]
    assert all(later <= earlier for earlier, later in itertools.pairwise(found))
    assert found[0] > 0.0
    assert found[-1] == 0.0
    assert excess(ins, outs, 0.0).max() < 0.5


@pytest.mark.parametrize("k", [2, 4, 7])
def test_the_excess_of_exact_ratios_is_the_divergence(k):
    logits = pool(9, 4, 0.8, k)
    ins, outs, total = laws(logits, k)
    theta = np.log(ins / outs).T
    exact = monte_carlo._Ratios(np.maximum(theta, 0.0), np.maximum(-theta, 0.0))
    for epsilon in (0.0, 0.1, 0.5):
        found = monte_carlo._both_excesses(exact, np.full(9, epsilon), k / 9, total, 0)
        assert found == pytest.approx(excess(ins, outs, epsilon), abs=1e-12)
        order = np.argsort(total)
        cautious = monte_carlo._both_excesses(exact.ranked(order), np.full(9, epsilon), k / 9, total[order], 3)
        assert np.all(cautious >= found - 1e-15)


def test_limits_on_probabilities_are_missed_no_more_often_than_allowed():
    rng = np.random.default_rng(4)
    truth, runs, count, beta = np.array([0.004, 0.096, 0.3, 0.6]), 400, 500, 0.2
    ranking = np.array([1, 0, 2, 3])
    misses = 0
    for _ in range(runs):
        law = rng.multinomial(1, truth, size=count).T.astype(float)
        rows = np.concatenate([law, np.cumsum(law[ranking], axis=0)])
        sums = monte_carlo._Sums(np.array(count), rows.sum(axis=1), np.square(rows).sum(axis=1))
        found = monte_carlo._Probabilities.of(sums, ranking, beta, 0.0)
        own, nested = found.masses[found.loose :], np.cumsum(found.masses[: found.loose])
        above = own < truth[ranking][found.loose :]
        within = nested < np.cumsum(truth[ranking])[: found.loose]
        misses += bool((found.lower > truth).any() or above.any() or within.any())
        assert 0 < found.loose < 4
        assert np.all(found.masses >= 0.0)
        assert np.abs(found.masses.sum() - 1.0) < 0.4
    assert chance_of_so_many(misses, runs, beta) > 1e-3


def test_limits_on_nested_sums_bound_every_weighting():
    rng = np.random.default_rng(9)
    for _ in range(200):
        truth = rng.dirichlet(np.ones(5))
        nested = np.cumsum(truth) + 0.3 * rng.random(5)
        nested = np.minimum.accumulate(nested[::-1])[::-1]
        theta, epsilon = 3.0 * rng.random((5, 20)), rng.random(20)
        plain = monte_carlo._excess(theta, epsilon, 0.3, truth, 0)
        for loose in range(6):
            masses = np.concatenate([np.diff(nested[:loose], prepend=0.0), truth[loose:]])
            assert np.all(monte_carlo._excess(theta, epsilon, 0.3, masses, loose) >= plain - 1e-15)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_log_ratio_inverts_difference_and_mean(share):
    ins, outs = np.array([0.3, 0.1]), np.array([0.1, 0.099])
    mean = share * ins + (1 - share) * outs
    found = monte_carlo._log_ratio((ins - outs)[:, None], mean, share)[:, 0]
    assert found == pytest.approx(np.log(ins / outs), rel=1e-10)
    assert np.all(found >= np.log(ins / outs))
    assert monte_carlo._log_ratio(np.array([[0.2]]), np.array([0.0]), share)[0, 0] == math.inf
    assert monte_carlo._log_ratio(np.array([[1.0]]), np.array([share / 2]), share)[0, 0] == math.inf


# --- representatives -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "k"), [(8, 4), (8, 1), (9, 7), (10, 3)])
@pytest.mark.parametrize("scale", [0.3, 3.0])
def test_ratios_of_similar_records_differ_by_at_most_twice_the_range(n, k, scale):
    logits = pool(n, 4, scale, n * k)
    theta = ratios(logits, k)
    for x, r in itertools.combinations(range(n), 2):
        assert np.abs(theta[x] - theta[r]).max() <= 2.0 * np.ptp(logits[x] - logits[r]) + 1e-12


@pytest.mark.parametrize("k", [2, 5, 8])
def test_a_thinned_pool_is_certified_and_its_radii_are_honest(k):
    rng = np.random.default_rng(k)
    centres = 0.5 * rng.standard_normal((3, 4))
    logits = centres[rng.integers(0, 3, 10)] + 0.01 * rng.standard_normal((10, 4))
    ins, outs, _ = laws(logits, k)
    found = certify(logits, k, draws=4000, representatives=3, rng=4)
    assert found.evaluated == 3
    assert not broken(ins, outs, found.per_record, 0.0)
    assert found.epsilon < 0.9 * found.certain.max()
    game = monte_carlo._Game.prepared(logits, k)
    chosen = monte_carlo._choose_representatives(game, 3, np.zeros(10), np.full(10, np.inf))
    for x in range(10):
        r = chosen.records[chosen.nearest[x]]
        assert np.ptp(logits[x] - logits[r]) <= chosen.radius[x] <= np.ptp(logits[x] - logits[r]) + 1e-12


def test_twins_share_a_representative():
    kinds = pool(4, 3, 0.05, 6)
    logits = np.repeat(kinds, 50, axis=0)
    found = certify(logits, 80, draws=2000, representatives=True, rng=1)
    assert found.evaluated <= 4
    assert np.ptp(found.per_record.reshape(4, 50), axis=1).max() == 0.0
    everyone = certify(logits, 80, draws=2000, representatives=False, rng=1)
    assert everyone.evaluated == 200
    assert found.point.reshape(4, 50)[:, 0] == pytest.approx(everyone.point.reshape(4, 50).mean(axis=1), abs=0.02)


def test_large_pools_are_thinned_by_themselves_where_it_is_cheap(monkeypatch):
    monkeypatch.setattr(monte_carlo, "AUTO_REPRESENTATIVES", 999)
    rng = np.random.default_rng(0)
    line = 0.1 * rng.random((1000, 1)) * np.array([[0.0, 1.0, 2.0]])
    assert certify(line, 500, draws=40, probability_draws=40, rng=1).evaluated < 200
    assert certify(line[:-1], 500, draws=40, probability_draws=40, rng=1).evaluated == 999
    cloud = 0.2 * rng.standard_normal((1000, 6))
    assert certify(cloud, 500, draws=40, probability_draws=40, rng=1).evaluated == 1000


# --- the same result in other ways -----------------------------------------------------------------------------------


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(monte_carlo, "BATCH", 2**12)
    monkeypatch.setattr(monte_carlo, "BLOCK", 2**15)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("k", "representatives"), [(100, None), (20, None), (100, 30)])
def test_the_number_of_threads_does_not_matter(k, representatives):
    logits = pool(200, 3, 0.3, 11)
    first, *others = (
        certify(logits, k, delta=0.01, draws=999, rng=5, n_jobs=jobs, representatives=representatives)
        for jobs in (None, 2, 3, -1)
    )
    for other in others:
        assert np.array_equal(other.per_record, first.per_record)
        assert np.array_equal(other.point, first.point)
        assert np.array_equal(other.probabilities, first.probabilities)
        assert (other.epsilon, other.delta_rare, other.draws) == (first.epsilon, first.delta_rare, 999)


def test_a_seed_repeats_and_another_one_differs():
    logits = pool(10, 3, 0.5, 1)
    first, second = (certify(logits, 5, draws=500, rng=np.random.default_rng(3)) for _ in range(2))
    assert np.array_equal(first.per_record, second.per_record)
    assert not np.array_equal(first.per_record, certify(logits, 5, draws=500, rng=4).per_record)


def test_small_logits_and_the_log_domain_agree(monkeypatch):
    logits = pool(12, 4, 1.0, 9)
    quick = certify(logits, 5, draws=500, rng=3)
    monkeypatch.setattr(monte_carlo, "GENTLE", 0.0)
    assert certify(logits, 5, draws=500, rng=3).per_record == pytest.approx(quick.per_record, rel=1e-9)


@pytest.mark.parametrize("k", [1, 4, 6])
def test_huge_logits_stay_finite_and_certified(k):
    logits = pool(8, 3, 900.0, 2)
    found = certify(logits, k, draws=500, rng=3)
    assert found.deterministic.max() > 1000
    assert np.all(np.abs(ratios(logits, k)).max(axis=1) <= found.per_record)
    assert np.all(certify(logits, k, delta=0.05, draws=500, rng=3).per_record <= found.per_record)


def test_shifts_do_not_matter():
    logits = pool(10, 3, 0.5, 4)
    plain = certify(logits, 5, draws=500, rng=1)
    by_record = certify(logits + np.arange(10.0)[:, None], 5, draws=500, rng=1)
    assert by_record.per_record == pytest.approx(plain.per_record, rel=1e-9)


def test_equal_outcomes_are_merged_and_shown_apart():
    distinct = np.round(8 * pool(9, 2, 0.8, 5)) / 8
    logits = np.column_stack([distinct[:, 0], distinct[:, 1], distinct[:, 0], distinct[:, 1] + 0.25])
    ins, outs, total = laws(logits, 4)
    assert monte_carlo._Game.prepared(logits, 4).outcomes == 2
    found = certify(logits, 4, draws=5000, rng=6)
    assert found.contenders.shape == (4,)
    assert found.probabilities == pytest.approx(total, abs=0.02)
    assert found.probabilities.sum() == pytest.approx(1.0)
    assert found.probabilities[0] == pytest.approx(found.probabilities[2], rel=1e-12)
    assert not broken(ins, outs, found.per_record, 0.0)


# --- degenerate input, time, words -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "logits", [np.ones((6, 1)), np.tile([0.1, 0.7, 3.0], (6, 1)), np.repeat(pool(6, 1, 1.0, 0), 3, axis=1)]
)
def test_nothing_to_learn(logits):
    found = certify(logits, 3)
    assert found.epsilon == 0.0
    assert not found.per_record.any()
    assert not found.deterministic.any()
    assert found.probabilities.sum() == pytest.approx(1.0)
    weights = np.exp(-3 * logits[0])
    assert found.probabilities == pytest.approx(weights / weights.sum())


def test_two_records():
    logits = np.array([[0.0, 0.3], [0.4, 0.1]])
    exact = np.abs(ratios(logits, 1)).max()
    found = certify(logits, 1, draws=3000, rng=1)
    assert exact <= found.epsilon <= exact + 0.02


def test_fewest_draws_fall_back_on_what_is_certain():
    found = certify(pool(10, 3, 0.5, 1), 1, draws=2, probability_draws=2, rng=1)
    assert np.array_equal(found.per_record, found.certain)
    assert not found.contenders.any()


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"k": 0}, "k"),
        ({"k": 6}, "k"),
        ({"k": 2.5}, "k"),
        ({"logits": np.array([[0.0, np.nan], [0.0, 1.0]]), "k": 1}, "logits"),
        ({"logits": np.array([[0.0, np.inf], [0.0, 1.0]]), "k": 1}, "logits"),
        ({"logits": np.array([[0.0, 1e306], [0.0, -1e306]]), "k": 1}, "logits"),
        ({"logits": np.zeros((1, 2)), "k": 1}, "logits"),
        ({"logits": np.zeros((4, 0)), "k": 1}, "logits"),
        ({"logits": np.zeros(4), "k": 1}, "logits"),
        ({"delta": 1.0}, "delta"),
        ({"delta": -0.1}, "delta"),
        ({"delta": math.nan}, "delta"),
        ({"confidence_level": 1.0}, "confidence_level"),
        ({"confidence_level": 0.0}, "confidence_level"),
        ({"draws": 1}, "draws"),
        ({"probability_draws": 1}, "probability_draws"),
        ({"representatives": -1}, "representatives"),
        ({"n_jobs": 0}, "n_jobs"),
        ({"time_budget": 0.0}, "time_budget"),
    ],
)
def test_values_that_make_no_sense_are_named(change, name):
    arguments = {"logits": pool(6, 2, 1.0, 0), "k": 3, **change}
    with pytest.raises(InputError, match=rf"^{name} takes"):
        certify(**arguments)


@pytest.mark.parametrize(
    ("change", "name"),
    [({"logits": [["a", "b"], ["c", "d"]]}, "logits"), ({"rng": "seed"}, "rng"), ({"progress": 3}, "progress")],
)
def test_arguments_of_the_wrong_kind_are_named(change, name):
    with pytest.raises(InputTypeError, match=rf"^{name} takes"):
        certify(**{"logits": pool(6, 2, 1.0, 0), "k": 3, **change})


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("jobs", [1, 2])
def test_progress_rises_to_one_and_a_budget_of_time_stops_early(jobs):
    logits = pool(100, 4, 0.2, 1)
    shares: list[float] = []
    certify(logits, 50, draws=2000, rng=1, n_jobs=jobs, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
    assert len(shares) > 3
    start = time.monotonic()
    found = certify(logits, 50, draws=10**7, probability_draws=10**7, rng=1, n_jobs=jobs, time_budget=0.2)
    assert time.monotonic() - start < 15
    assert 2 <= found.draws < 10**7
    assert 2 <= found.probability_draws < 10**7
    assert found.epsilon <= found.deterministic.max()


def test_draws_by_default_and_words():
    logits = pool(8, 2, 0.3, 1)
    found = certify(logits, 4, rng=1)
    assert found.draws == monte_carlo.DEFAULT_SAMPLES
    assert found.probability_draws == 2.5 * monte_carlo.DEFAULT_SAMPLES
    assert str(found).startswith(f"({found.epsilon:.6g}, 0)-PMP for 8 records with confidence 0.95 (20000 draws")
    described = found.to_dict()
    assert described["per_record"] == found.per_record.tolist()
    assert described["epsilon"] == found.epsilon

"""Audits by retraining: limits in exact worlds and in seeded simulations, what is found, and what is refused."""

import itertools
import json
import math
import signal
import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, binomtest
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KNeighborsClassifier

import whosin as wi
from whosin.auditing.measuring import guesses
from whosin.auditing.measuring.limits import gain_at_prior
from whosin.auditing.runs import coin_limits, retrained, trainings
from whosin.auditing.runs.coin_attack import CoinAttack, scores_ahead, scores_crossed
from whosin.errors import ImplicationError, InputError, InputTypeError
from whosin.tables import as_table
from whosin.training import GaussianCopula

ROWS = np.random.default_rng(0).normal(size=(80, 3))


def noisy(spread):
    def copies(records, rng):
        return records + spread * rng.normal(size=records.shape)

    return copies


@pytest.fixture(scope="module")
def leaky():
    return wi.audit_retrained(noisy(0.2), ROWS, trainings=24, attack="linear", rng=1)


@pytest.fixture(scope="module")
def deaf():
    """A function that never looks at its records."""
    return wi.audit_retrained(lambda records, rng: rng.normal(size=80), ROWS, trainings=20, attack="linear", rng=1)


# --- limits


@pytest.mark.parametrize("share", [0.5, 0.8])
def test_order_statistics_miss_no_more_often_than_allowed(share):
    """n values are uniform: the limit exceeds 1 - share with the chance P(at most k - 1 of n lie below), at most α."""
    for n, alpha in itertools.product(range(1, 40), (0.05, 0.025, 0.3)):
        limit = coin_limits.typical(np.arange(n) / n, alpha, share)
        k = 0 if math.isinf(limit) else round(limit * n) + 1
        assert k == 0 or binom.cdf(k - 1, n, 1 - share) <= alpha
        assert binom.cdf(k, n, 1 - share) > alpha


def test_betting_in_its_closed_form():
    """All values x: (1+x)·α^{1/n} - 1 as the stake goes to 1, which no valid limit exceeds."""
    for n, x in itertools.product((12, 24, 96), (0.3, 0.9)):
        limit = coin_limits.mean_at_least(np.full(n, x), 0.05, np.full(8, x))
        best = (1 + x) * 0.05 ** (1 / n) - 1
        assert best - 0.03 < limit <= best + 1e-9
    assert coin_limits.mean_at_least(np.full(10, -1.0), 0.05, np.full(8, 0.5)) == -1.0


def test_betting_survives_rare_failures():
    """X = .9 with chance .95, else -1, mean .805: a t interval misses in 15-27 % of the audits at nominal 2.5 %."""
    rng = np.random.default_rng(0)
    values = np.where(rng.random((60, 24)) < 0.95, 0.9, -1.0)
    misses = sum(coin_limits.mean_at_least(one, 0.05, np.full(8, 0.9)) > 0.805 for one in values)
    assert binomtest(misses, 60, 0.05, alternative="greater").pvalue > 1e-3


def test_one_hidden_coin_is_not_taken_for_risk():
    """All coins are released, or all of them turned over: everything is known in each training, nothing over them."""
    rng = np.random.default_rng(3)
    values = rng.choice([-1.0, 1.0], size=24)
    assert coin_limits.typical(values, 0.05) == -1.0
    assert coin_limits.mean_at_least(values, 0.05, np.zeros(8)) <= 0.0


def exact_chance(n, each, units, epsilon, delta, right):
    """P(at least ``right``) for n trainings of randomised response that gives each coin away with probability δ."""
    q = 1 / (1 + math.exp(-epsilon))
    return binom.sf(right - 1, n * each, delta + (1 - delta) * q) if each == units else math.nan


@given(st.integers(1, 6), st.integers(1, 12), st.floats(0, 3), st.sampled_from([1e-4, 0.01, 0.1]), st.data())
def test_pooled_guesses_under_approximate_dp(n, units, epsilon, delta, data):
    right = data.draw(st.integers(0, n * units))
    found = guesses.Guessed((right,) + (0,) * (n - 1), (units,) * n, (units,) * n)
    assert found.p_value(epsilon, delta) >= exact_chance(n, units, units, epsilon, delta, right) - 1e-12
    assert found.p_value(epsilon, delta) >= found.p_value(epsilon, 0.0) - 1e-12
    limit = found.epsilon_lower(delta, 0.05)
    assert limit <= found.epsilon_lower(0.0, 0.05) + 1e-9
    assert limit == 0.0 or found.p_value(limit * 0.999, delta) <= 0.05 + 1e-9


def test_pairs_of_balanced_halves_are_fair_coins():
    """Four units, two of them in, all halves and matchings: given the pairs, every assignment is equally likely."""
    seen = {}
    for inside in itertools.combinations(range(4), 2):
        outside = [i for i in range(4) if i not in inside]
        for order in itertools.permutations(outside):
            pairs = frozenset(frozenset(pair) for pair in zip(inside, order, strict=True))
            seen.setdefault(pairs, []).append(inside)
    assert all(sorted(found) == sorted(set(found)) and len(found) == 4 for found in seen.values())


def test_single_units_of_balanced_halves_are_not():
    """Two units, one of them in, randomised response on which: both guesses are right with chance q, more than q²."""
    q = 1 / (1 + math.exp(-1.0))
    assert q > binom.sf(1, 2, q)


def test_guessing_pairs_counts_what_it_says():
    coins = np.array([[True, True, False, False], [True, False, True, False]])
    scores = np.where(coins, 1.0, 0.0)
    found = guesses.guessed_pairs(scores, coins, 9, np.random.default_rng(0))
    assert (found.right, found.guesses, found.coins) == ((2, 2), (2, 2), (2, 2))
    assert guesses.guessed_pairs(0 * scores, coins, 1, np.random.default_rng(0)).right == (0, 0)
    assert guesses.guessed_units(scores, coins, (2, 1)).right == (3, 3)


def test_fisher_holds_a_curve_against_many_trainings():
    """Independent canaries at the promised curve: the combined p-value is rarely small; far beyond it, it is."""
    rng = np.random.default_rng(0)
    promise = wi.GaussianDP(0.8)

    def value(mu):
        z = rng.normal(mu / 2, 1.0, (10, 60))
        surest = np.take_along_axis(z, np.argsort(-np.abs(z), axis=1)[:, :12], axis=1)
        right = tuple(int(n) for n in (surest > 0).sum(axis=1))
        return guesses.Guessed(right, (12,) * 10, (60,) * 10).curve_p_value(promise.roc)

    assert sum(value(0.8) <= 0.2 for _ in range(5)) <= 2
    assert value(3.0) < 0.02


# --- the attack never looks ahead


def test_scores_ahead_do_not_know_the_future():
    rng = np.random.default_rng(0)
    answers, coins = rng.normal(size=(14, 30, 2)), rng.random((14, 30)) < 0.5
    scores = scores_ahead(answers, coins, 8, 2, "linear")
    changed, other = answers.copy(), coins.copy()
    changed[12:], other[12:] = rng.normal(size=(2, 30, 2)), rng.random((2, 30)) < 0.5
    again = scores_ahead(changed, other, 8, 2, "linear")
    assert np.array_equal(scores[:4], again[:4])
    flipped = coins.copy()
    flipped[13] = ~flipped[13]
    assert np.array_equal(scores_ahead(answers, flipped, 8, 2, "linear"), scores)


def test_crossing_would_break_the_limits_and_looking_back_does_not():
    """Nothing leaks. Right guesses of attacks that look back are fair coins: each p-value below α with chance α."""
    low, trials = 0, 25
    for seed in range(trials):
        rng = np.random.default_rng(seed)
        answers, coins = rng.normal(size=(16, 40, 1)), rng.random((16, 40)) < 0.5
        scores = scores_ahead(answers, coins, 8, 1, "linear")
        low += binom.sf(((scores > 0) == coins[8:]).sum() - 1, scores.size, 0.5) <= 0.1
    assert binomtest(low, trials, 0.1, alternative="greater").pvalue > 1e-3


def test_log_odds_bring_their_threshold():
    """Copies of .63 of the members: a threshold from known trainings would accuse more people than were copied."""
    rng = np.random.default_rng(0)
    coins = rng.random((40, 150)) < 0.5
    copied = coins & (rng.random(coins.shape) < 0.63)
    scores = scores_crossed(copied[:, :, None] + 0.01 * rng.normal(size=(40, 150, 1)), coins, 4, 1, "auto")
    best = retrained.realised(copied, coins, cut=0.5)
    assert retrained.realised(scores, coins).mean() > best.mean() - 0.02
    odds = rng.normal(np.where(coins, 0.5, -0.5), 1.0)
    often = gain_at_prior(0.7)
    assert retrained.realised(odds, coins, often).mean() > retrained.realised(odds, coins, often, 0.0).mean() + 0.05


def test_shrunken_laws_find_units_that_differ():
    """Unit i shifts by i/10: the attack tells those at the end, and hardly those at the start."""
    rng = np.random.default_rng(0)
    coins = rng.random((40, 40)) < 0.5
    answers = (rng.normal(size=(40, 40)) + coins * np.arange(40) / 10)[:, :, None]
    attack = CoinAttack(answers[:30], coins[:30], 1, "linear")
    right = np.mean(
        [(attack.scores(one) > 0) == side for one, side in zip(answers[30:], coins[30:], strict=True)], axis=0
    )
    assert right[30:].mean() > 0.85 > 0.7 > right[:8].mean()


# --- coverage of the whole procedure, small


def response(records_in, rng, epsilon, sign):
    """Randomised response on every coin, with a sign of each record that the attacker has to learn."""
    kept = rng.random(len(records_in)) < 1 / (1 + math.exp(-epsilon))
    return np.where(records_in == kept, 1.0, -1.0) * sign + 0.01 * rng.normal(size=len(records_in))


def responding(epsilon, units, seed):
    sign = np.random.default_rng(seed).choice([-1.0, 1.0], units)

    def model(records, rng):
        inside = np.isin(np.arange(units), records[:, 0].astype(int))
        return response(inside, rng, epsilon, sign)

    return model


def misses_of(epsilon, audits, seed=0):
    """How often each limit misses in audits at 80 % of randomised response: ε add/remove, 2ε replace, 40 records."""
    true, ids = math.tanh(epsilon / 2), np.arange(40.0)[:, None]
    misses = dict.fromkeys(("typical", "mean", "worst", "most", "leaks", "units", "add_remove", "replace"), 0)
    for number in range(seed, seed + audits):
        found = wi.audit_retrained(
            responding(epsilon, 40, number), ids, trainings=20, attack="linear", confidence_level=0.8, rng=number
        )
        misses["typical"] += found.advantage.lower > true + 0.05  # with 40 units X moves in steps of about .05
        misses["mean"] += found.mean_lower > true
        misses["worst"] += found.worst.lower > true
        misses["most"] += found.most(0.8) > true
        misses["leaks"] += epsilon == 0.0 and found.leaks <= 0.2
        misses["units"] += bool((found.individual.simultaneous_lower > true).any())
        misses["add_remove"] += found.compare(wi.PureDP(epsilon)).verdict == "violated"
        misses["replace"] += found.compare(wi.PureDP(2 * epsilon, "replace")).verdict == "violated"
    return misses


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_limits_hold_over_whole_audits(epsilon):
    """A dozen audits at 80 %; ``tests/long`` has more."""
    for name, count in misses_of(epsilon, 12).items():
        assert binomtest(count, 12, 0.2, alternative="greater").pvalue > 1e-3, (name, count)


def test_twice_the_promised_epsilon_is_found():
    ids = np.arange(100.0)[:, None]
    found = wi.audit_retrained(responding(2.0, 100, 0), ids, trainings=32, attack="linear", rng=0)
    assert found.compare(wi.PureDP(1.0)).verdict == "violated"
    assert found.compare(wi.ApproxDP(1.0, 1e-6)).verdict == "violated"
    assert found.compare(wi.PureDP(2.0, "replace")).verdict == "violated"
    assert found.compare(wi.PureDP(2.0)).verdict == "inconclusive"
    assert 1.5 < found.epsilon_lower() < 2.0
    assert 2.0 < found.epsilon_lower(adjacency="replace") < 4.0
    assert 0.6 < found.advantage.lower < 0.76 < found.advantage.upper


# --- the result


def test_a_leak_is_found_and_put_into_words(leaky):
    assert leaky.verdict.state == "leak"
    assert leaky.advantage.lower > 0.5
    assert leaky.advantage.lower <= leaky.advantage.estimate <= leaky.advantage.upper
    assert leaky.leaks < 1e-20
    assert 0.0 <= leaky.mean_lower <= leaky.advantage.estimate
    assert leaky.most(0.8) <= leaky.advantage.estimate
    assert leaky.worst.lower <= leaky.worst.estimate
    for words in ("risk over trainings", "In a typical training"):
        assert words.lower() in leaky.explain().lower()
    assert "safe" not in leaky.explain().lower()
    assert str(leaky).startswith("Leak found: in a typical training at least 0.")
    assert "Assumes" in leaky._repr_html_()
    assert leaky.unit == "records"
    json.dumps(leaky.to_dict(), allow_nan=False)
    axes = leaky.plot(guarantee=wi.PureDP(1.0))
    assert axes.get_legend() is not None
    plt.close(axes.figure)


def test_nothing_is_found_where_nothing_leaks(deaf):
    assert deaf.verdict.state == "none found"
    assert deaf.advantage.lower < 0.1
    assert (deaf.individual.simultaneous_lower == 0.0).all()
    assert deaf.compare(wi.PureDP(0.01)).verdict == "inconclusive"
    assert "does not show that there is none" in deaf.explain()


def test_tolerances(leaky):
    from dataclasses import replace

    assert replace(leaky, tolerate=0.1).verdict.state == "exceeds"
    assert replace(leaky, tolerate=leaky.advantage.upper).verdict.state == "within"
    middle = (leaky.advantage.lower + leaky.advantage.upper) / 2
    assert replace(leaky, tolerate=middle).verdict.state == "undecided"


def test_tpr_at(leaky, deaf):
    low, high = leaky.tpr_at(0.05), leaky.tpr_at(0.5)
    assert low.lower <= low.estimate <= low.upper
    assert low.estimate < high.estimate
    assert math.isnan(leaky.tpr_at(0.0).estimate)
    assert "not measurable" in leaky.tpr_at(0.001).about
    assert deaf.tpr_at(0.2).lower < 0.3


def test_individual_risk_ranks_and_names_nobody_where_all_are_alike(leaky):
    people = np.random.default_rng(1).normal(size=(80, 2))
    marked = np.arange(80) < 10

    def some(records, rng):
        inside = (people[:, None] == records[None]).all(axis=2).any(axis=1)
        return np.where(marked, inside * 3.0, 0.0) + rng.normal(size=80)

    found = wi.audit_retrained(some, people, trainings=32, attack="linear", rng=0).individual
    assert not found.alike
    assert {row["index"] for row in found.highest(10)} == set(range(10))
    assert found.lower[:10].mean() > 0.3 > found.lower[10:].mean()
    ordered = (found.simultaneous_lower, found.lower, found.risk, found.upper, found.simultaneous_upper)
    assert all(np.all(low <= high) for low, high in itertools.pairwise(ordered))
    frame = found.to_frame()
    assert frame.height == 80
    same = retrained.RetrainedIndividual(*[np.full(5, 0.5)] * 5, 0.01, 0.05, None)
    assert same.alike
    assert same.highest() == []
    assert "for everybody" in same.sentence("records")


@pytest.mark.parametrize("seed", range(3))
def test_where_everybody_has_the_same_risk_nobody_is_named(seed):
    """Each record is copied with chance 1/2; then with .9 or .1, by its first number: those are told apart."""
    people = np.random.default_rng(seed).normal(size=(100, 3))

    def copied(chance):
        return lambda records, rng: records[rng.random(len(records)) < chance(records)]

    same = wi.audit_retrained(copied(lambda rows: 0.5), people, trainings=24, attack="linear", rng=seed).individual
    assert same.alike
    assert same.highest() == []
    assert "for everybody" in same.sentence("records")
    apart = copied(lambda rows: np.where(rows[:, 0] > 0, 0.9, 0.1))
    found = wi.audit_retrained(apart, people, trainings=24, attack="linear", rng=seed).individual
    assert not found.alike
    assert all(people[row["index"], 0] > 0 for row in found.highest(5))


def test_most_right_guesses_by_enumeration():
    from whosin.auditing.runs.retrained_people import _most_right

    rng = np.random.default_rng(0)
    answers, coins = rng.integers(0, 4, (9, 5, 2)).astype(float), rng.random((9, 5)) < 0.5
    for unit, most in enumerate(_most_right(answers, coins)):
        rules = [
            (answers[:, unit, q] > cut) != turned
            for q in range(2)
            for cut in (-1, 0.5, 1.5, 2.5, 9)
            for turned in (False, True)
        ]
        assert most == max(int((rule == coins[:, unit]).sum()) for rule in rules)


def test_groups():
    labels = np.where(np.arange(80) < 40, "left", "right")
    found = wi.audit_retrained(noisy(0.3), ROWS, trainings=20, attack="linear", groups=labels, rng=0).groups
    assert [(row.name, row.units) for row in found] == [("left", 40), ("right", 40)]
    assert all(row.advantage.lower <= row.advantage.estimate <= row.advantage.upper for row in found)
    assert found.to_frame().height == len(found.to_dict()) == 2


# --- models of every kind


def people_frame(size=60):
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "age": rng.integers(18, 90, size),
            "income": rng.lognormal(10, 1, size).round(),
            "job": rng.choice(["cook", "clerk", "nurse"], size),
            "who": np.arange(size) // 2,
        }
    )


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_a_synthesiser_of_frames(library):
    frame = people_frame().drop("who")
    frame = frame if library == "polars" else frame.to_pandas()
    found = wi.audit_retrained(GaussianCopula(), frame, trainings=12, attack="linear", groups="job", rng=0)
    assert found.units == 60
    assert {row.name for row in found.groups} == {"job=cook", "job=clerk", "job=nurse"}
    assert found.scores.answers.shape[2] > 3


def test_the_mean_of_the_best_rows_of_one_is_the_best_of_the_matcher(monkeypatch):
    """Missing numbers and words included; of a large release, rows at even distances."""
    rng = np.random.default_rng(0)
    age = [None if one > 70 else int(one) for one in rng.integers(18, 90, 300)]
    job = rng.choice(["cook", "clerk", None], 300)
    frame = pl.DataFrame({"age": age, "pay": rng.lognormal(10, 1, 300), "job": job}, strict=False)
    about = trainings.TableAnswers(as_table(frame, "records"))
    five = about(frame[::2])
    monkeypatch.setattr(trainings, "BEST", 1)
    one = about(frame[::2])
    best = one[:, about.queries.index("soft_rarity_share")]
    np.testing.assert_allclose(one[:, about.main - 1], best, rtol=1e-5)
    assert np.all(five[:, about.main - 1] < best)
    monkeypatch.setattr(trainings, "MOST_ROWS", 3)
    few = about(frame[[0, 149, 299]])
    assert np.array_equal(about(frame)[:, about.main - 1], few[:, about.main - 1])


def test_a_generator_of_scikit_learn():
    found = wi.audit_retrained(GaussianMixture(2), ROWS, trainings=10, attack="linear", rng=0, release_rows=200)
    assert found.trainings.subject.rows(40) == 100
    assert "200 rows" in " ".join(found.assumes)


def test_a_generator_of_scikit_learn_that_was_given_a_frame():
    """It releases arrays, whose columns are those of the frame."""
    frame = pl.DataFrame(ROWS, schema=["x", "y", "z"])
    named, plain = (
        wi.audit_retrained(model, frame, trainings=10, attack="linear", rng=0)
        for model in (GaussianMixture(20), lambda records, rng: records.to_numpy())
    )
    assert named.trainings.subject.answers(ROWS[:5]).tolist() == named.trainings.subject.answers(frame[:5]).tolist()
    assert plain.advantage.estimate == 1.0


def test_what_fit_returns_is_asked_for_samples():
    class Trainer:
        def fit(self, records):
            return GaussianMixture(16, reg_covar=1e-4).fit(records)

        def sample(self, n):
            raise RuntimeError("not trained")

    assert wi.audit_retrained(Trainer(), ROWS, trainings=10, attack="linear", rng=0).verdict.state == "leak"


def test_too_few_trainings_for_a_limit_say_how_many_it_takes():
    found = {n: wi.audit_retrained(noisy(0.01), ROWS, trainings=n, attack="linear", rng=0) for n in (13, 14)}
    assert "at least 14 trainings at 95% confidence" in found[13].verdict.sentence
    assert found[13].advantage.lower == 0.0
    assert found[14].advantage.lower > 0.9


def test_a_classifier_that_learns_by_heart():
    labels = (ROWS[:, 0] > 0).astype(int)
    labels[np.random.default_rng(0).random(80) < 0.3] ^= 1
    heart = wi.audit_retrained(KNeighborsClassifier(1), (ROWS, labels), trainings=16, attack="linear", rng=0)
    head = wi.audit_retrained(LogisticRegression(), (ROWS, labels), trainings=16, attack="linear", rng=0)
    assert heart.advantage.lower > 0.15 > head.advantage.lower


def test_people_are_tossed_for_and_their_column_is_not_trained_on():
    seen = []

    def bootstrap(records, rng):
        seen.append(records)
        return records.sample(len(records), with_replacement=True, seed=int(rng.integers(2**31)))

    found = wi.audit_retrained(bootstrap, people_frame(), trainings=16, attack="linear", person="who", rng=0)
    assert found.person_level
    assert found.units == 30
    assert all("who" not in part.columns for part in seen)
    assert all(len(part) % 2 == 0 for part in seen)
    assert found.verdict.state == "leak"
    assert "people" in found.explain()
    assert found.individual.to_frame()["person"].to_list() == [str(i) for i in range(30)]
    compared = found.compare(wi.PureDP(0.1))
    assert "all records of a person" in compared.text


def test_records_that_repeat_each_other_are_told():
    frame = people_frame(40).drop("who")
    twice = pl.concat([frame, frame[:10]])
    for records, told in ((frame, False), (twice, True)):
        found = wi.audit_retrained(lambda rows, rng: rows, records, trainings=10, attack="linear", rng=0)
        assert any("20 of the 50 records equal another" in line for line in found.assumes) == told


def test_a_path_is_read(tmp_path):
    people_frame().drop("who").write_csv(tmp_path / "people.csv")
    found = wi.audit_retrained(GaussianCopula(), tmp_path / "people.csv", trainings=10, attack="linear")
    assert found.units == 60


def test_balanced_halves_are_for_mip_and_pmp(leaky):
    found = wi.audit_retrained(noisy(0.2), ROWS, trainings=24, attack="linear", coins="balanced", rng=1)
    assert (found.scores.coins.sum(axis=1) == 40).all()
    assert found.compare(wi.MIP(0.05)).verdict == "violated"
    assert found.compare(wi.PMP(0.1)).verdict == "violated"
    assert found.compare(wi.MIP(0.5)).verdict == "inconclusive"
    assert found.compare(wi.PureDP(0.3)).verdict == "violated"
    assert found.compare(wi.GaussianDP(0.2)).verdict == "violated"
    assert found.leaks < 1e-10
    with pytest.raises(InputError, match="replace"):
        found.epsilon_lower()
    with pytest.raises(ImplicationError, match="balanced"):
        leaky.compare(wi.MIP(0.05))
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_given_release_is_one_more_training(leaky):
    rng = np.random.default_rng(9)
    coins = rng.random(80) < 0.5
    release = noisy(0.2)(ROWS[coins], rng)
    shown = leaky.audit_release(release, coins)
    assert leaky.audit_release(release, coins.astype(int).tolist()).advantage == shown.advantage > 0.4
    assert shown.exposure[coins].mean() > 0.7 > 0.3 > shown.exposure[~coins].mean()
    assert 0.0 <= shown.as_bad <= 1.0
    assert shown.compare(wi.PureDP(0.1)).verdict == "violated"
    assert "exposure in this release" in str(shown)
    json.dumps(shown.to_dict(), allow_nan=False)
    with pytest.raises(InputError, match="included"):
        leaky.audit_release(ROWS, coins[:-1])


def test_a_release_with_another_number_of_rows_is_refused():
    found = wi.audit_retrained(GaussianMixture(2), ROWS, trainings=10, attack="linear", rng=0)
    with pytest.raises(InputError, match="must have 40 rows"):
        found.audit_release(ROWS, np.arange(80) < 40)


# --- running


def test_coins_and_trainings_draw_from_different_streams():
    coins = trainings.coins_of(5, 3, 50, balanced=False)
    for last in (0, 2, 3, 4):
        assert not np.array_equal(np.random.default_rng([5, 3, last]).random(50) < 0.5, coins)
    assert trainings.coins_of(5, 3, 50, balanced=True).sum() == 25
    rates = np.mean([trainings.coins_of(1, t, 50, balanced=False) for t in range(200)], axis=0)
    assert np.all(np.abs(rates - 0.5) < 5 * 0.5 / math.sqrt(200))


def test_a_failed_training_is_tried_again_with_its_coins():
    tried = []

    def shaky(records, rng):
        tried.append(len(records))
        if len(tried) == 3:
            raise RuntimeError("no memory left on device")
        return records

    found = wi.audit_retrained(shaky, ROWS, trainings=10, attack="linear", rng=0)
    assert len(tried) == 11
    assert tried[2] == tried[3] == found.scores.coins[2].sum()


def test_a_model_that_keeps_failing_ends_the_audit():
    def broken(records, rng):
        raise RuntimeError("kaputt")

    with pytest.raises(InputError, match=r"failed 3 times in training 0.*kaputt.*journal"):
        wi.audit_retrained(broken, ROWS, trainings=10)


def test_journal_resumes_and_grows(tmp_path, monkeypatch):
    calls, train = [], trainings.Trainings.__call__
    monkeypatch.setattr(
        trainings.Trainings, "__call__", lambda self, number: calls.append(number) or train(self, number)
    )

    def run(count):
        return wi.audit_retrained(Bootstrap(), ROWS, trainings=count, attack="linear", journal=tmp_path / "j", rng=3)

    first = run(12)
    assert calls == list(range(12))
    again = run(12)
    assert len(calls) == 12
    assert first.advantage == again.advantage
    longer = run(16)
    assert calls == list(range(16))
    assert np.array_equal(longer.scores.coins[:12], first.scores.coins)
    with pytest.raises(InputError, match="rng must be given"):
        wi.audit_retrained(Bootstrap(), ROWS, trainings=10, journal=tmp_path / "k")


KILLED = """
import os, signal
import numpy as np, whosin as wi

class Deadly:
    calls = 0

    def fit(self, records):
        self.records, Deadly.calls = records, Deadly.calls + 1
        if Deadly.calls == 7:
            os.kill(os.getpid(), signal.SIGKILL)
        return self

    def sample(self, n, rng):
        return self.records[rng.integers(len(self.records), size=n)]

    def journal_key(self):
        return "bootstrap"

rows = np.random.default_rng(0).normal(size=(80, 3))
wi.audit_retrained(Deadly(), rows, trainings=12, journal="journal", rng=3)
"""


def test_a_killed_process_loses_no_finished_training(tmp_path, monkeypatch):
    """It is killed in its seventh training: the same call does that one and those after it, and finds the same."""
    assert subprocess.run([sys.executable, "-c", KILLED], cwd=tmp_path, check=False).returncode == -signal.SIGKILL
    monkeypatch.setattr(Bootstrap, "journal_key", lambda self: "bootstrap", raising=False)
    calls, fit = [], Bootstrap.fit
    monkeypatch.setattr(Bootstrap, "fit", lambda self, records: calls.append(len(records)) or fit(self, records))
    options = {"trainings": 12, "attack": "linear", "rng": 3}
    found = wi.audit_retrained(Bootstrap(), ROWS, journal=tmp_path / "journal", **options)
    assert calls == found.scores.coins[6:].sum(axis=1).tolist()
    whole = wi.audit_retrained(Bootstrap(), ROWS, **options)
    assert np.array_equal(found.scores.answers, whole.scores.answers)


class Bootstrap:
    """Draws its records again."""

    def fit(self, records):
        self.records = records
        return self

    def sample(self, n, rng):
        return self.records[rng.integers(len(self.records), size=n)]


def test_results_do_not_depend_on_workers_and_progress_is_told():
    shares = []
    one = wi.audit_retrained(Bootstrap(), ROWS, trainings=10, attack="linear", rng=0, progress=shares.append)
    two = wi.audit_retrained(Bootstrap(), ROWS, trainings=10, attack="linear", rng=0, n_jobs=2)
    assert one.advantage == two.advantage
    assert np.array_equal(one.scores.ahead, two.scores.ahead)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_models_that_use_global_chance_are_repeatable():
    def careless(records, rng):
        return records + np.random.normal(size=records.shape)  # noqa: NPY002

    state = np.random.get_state()[1].copy()  # noqa: NPY002
    first, again = (wi.audit_retrained(careless, ROWS, trainings=10, attack="linear", rng=0) for _ in range(2))
    assert np.array_equal(first.scores.ahead, again.scores.ahead)
    assert np.array_equal(np.random.get_state()[1], state)  # noqa: NPY002


@pytest.mark.parametrize(
    ("model", "records", "options", "error", "words"),
    [
        (noisy(1), ROWS[:10], {}, InputError, "at least 16 rows"),
        (noisy(1), ROWS, {"trainings": 9}, InputError, "trainings"),
        (noisy(1), ROWS, {"attack": "best"}, InputError, "attack"),
        (noisy(1), ROWS, {"coins": "fair"}, InputError, "coins"),
        (noisy(1), ROWS, {"confidence_level": 1.0}, InputError, "confidence_level"),
        (noisy(1), ROWS, {"tolerate": 2.0}, InputError, "tolerate"),
        (noisy(1), ROWS, {"release_rows": 5}, InputTypeError, "release_rows"),
        (noisy(1), ROWS, {"person": "who"}, InputTypeError, "person"),
        (noisy(1), ROWS, {"person": np.arange(80) // 10}, InputError, "at least 16 people"),
        (noisy(1), ROWS, {"groups": ["a"]}, InputError, "groups"),
        (noisy(1), ROWS[:, 0], {}, InputError, "shape"),
        (3, ROWS, {}, InputTypeError, "model must"),
        (GaussianMixture, ROWS, {}, InputTypeError, "model must be an object with fit, got <class"),
        (LogisticRegression(), ROWS, {}, InputTypeError, "sample"),
        (LogisticRegression(), (ROWS, np.zeros(3)), {}, InputError, "one label"),
        (lambda records, rng: np.zeros(3), ROWS, {}, InputError, "one score"),
        (lambda records, rng: ROWS[:, :2], ROWS, {}, InputError, "columns"),
        (GaussianCopula(), people_frame(), {"person": "nobody"}, InputError, "nobody"),
    ],
)
def test_bad_input(model, records, options, error, words):
    with pytest.raises(error, match=words):
        wi.audit_retrained(model, records, **{"trainings": 10, "attack": "linear", **options})


def test_constant_answers_tell_nothing():
    found = wi.audit_retrained(lambda records, rng: np.zeros(80), ROWS, trainings=10, attack="linear")
    assert found.advantage.lower == 0.0
    assert found.verdict.state == "none found"


def test_nan_and_infinite_scores_are_answers_too():
    def odd(records, rng):
        scores = rng.normal(size=80)
        scores[:3] = np.nan, np.inf, -np.inf
        return scores

    found = wi.audit_retrained(odd, ROWS, trainings=10, attack="linear")
    assert np.isfinite(found.scores.ahead).all()


def test_releases_without_any_noise_are_read_in_every_training():
    """The records themselves are released: laws have no width, and TPR - FPR is 1 in every training."""
    for seed in range(3):
        found = wi.audit_retrained(lambda records, rng: records, people_frame(40), person="who", trainings=16, rng=seed)
        assert (found.by_training == 1.0).all()
        assert found.advantage.lower == 1.0

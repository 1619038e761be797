"""The verdict: every state and its words, and decisions that are right: plain leaks are found, chance is not."""

import numpy as np
import pytest
from null_audits import judge_alarms

from whosin.auditing import Estimate, audit
from whosin.auditing.measuring import learned
from whosin.auditing.measuring.attack import collect_evidence
from whosin.auditing.measuring.experiment import Experiment
from whosin.auditing.measuring.limits import ADVANTAGE, _error_shares, _scanned, gain_at_prior
from whosin.auditing.measuring.run import run_audit
from whosin.auditing.measuring.splits import split
from whosin.auditing.measuring.verdict import STATES, judge, of_hundred
from whosin.errors import InputError, InputTypeError

COVERED = "every attacker who compares the score with a threshold"


def verdict(lower, upper, *, tolerate=None, problem=None, needed=None):
    advantage = Estimate(0.5 * (lower + upper), lower, upper, 0.95)
    return judge(advantage, (0.4, 0.005), COVERED, tolerate=tolerate, problem=problem, unit="people", needed=needed)


CASES = [
    ("leak", (0.1, 0.5), {}),
    ("none found", (0.0, 0.2), {}),
    ("exceeds", (0.3, 0.5), {"tolerate": 0.2}),
    ("within", (0.05, 0.2), {"tolerate": 0.2}),
    ("undecided", (0.2, 0.5), {"tolerate": 0.2}),
    ("undecided", (0.0, 0.21), {"tolerate": 0.2, "needed": 123}),
    ("exceeds", (0.001, 1.0), {"tolerate": 0.0}),
    ("undecided", (0.0, 0.001), {"tolerate": 0.0}),
    ("within", (0.0, 0.0), {"tolerate": 0.0}),
    ("within", (0.9, 1.0), {"tolerate": 1.0}),
]


@pytest.mark.parametrize(("state", "limits", "options"), CASES)
def test_states_and_the_scope_of_their_upper_limit(state, limits, options):
    found = verdict(*limits, **options)
    assert found.state == state
    assert COVERED in found.sentence, "an upper limit is nothing without the attackers that it covers"
    assert f"{limits[1]:g}" in found.sentence
    assert "95% confidence" in found.sentence
    parts = {name: getattr(found, name) for name in ("title", "headline", "details")}
    expected = {"state": state, "sentence": str(found), "tolerate": options.get("tolerate"), **parts}
    assert found.to_dict() == expected
    assert all(len(part) > 5 for part in parts.values())


def test_all_states_are_shown_here():
    assert {*(case[0] for case in CASES), "no verdict"} == set(STATES)


@pytest.mark.parametrize("tolerate", [None, 0.0, 0.2, 1.0])
@pytest.mark.parametrize("limits", [(0.0, 0.1), (0.5, 0.9)])
def test_a_problem_allows_no_verdict(limits, tolerate):
    found = verdict(*limits, tolerate=tolerate, problem="the holdout was trained on.")
    assert found.state == "no verdict"
    assert found.sentence == "No verdict: the holdout was trained on."


def test_words():
    picked = "40 of 100 people in the data can be picked out while fewer than 1 of 100 outsiders is wrongly accused."
    assert verdict(0.1, 0.5).headline == picked
    assert verdict(0.0, 0.2).headline == "Up to 20 of 100 people may still be picked out beyond chance."
    assert "does not show that there is none" in verdict(0.0, 0.2).sentence
    assert "Other attackers are not covered" in verdict(0.05, 0.2, tolerate=0.2).sentence
    assert "about 123 people on each side would show it" in verdict(0.0, 0.3, tolerate=0.2, needed=123).sentence
    rates = (0.0, 0.004, 0.01, 0.5, 0.992, 1.0)
    assert [of_hundred(rate) for rate in rates] == ["0", "fewer than 1", "1", "50", "more than 99", "100"]


def test_limits_in_words_round_outwards():
    sentence = verdict(0.12349, 0.56781).sentence
    assert "at least 0.123," in sentence
    assert "at most 0.568 " in sentence


def normal(shift, n, rng=0, **options):
    generator = np.random.default_rng(rng)
    return audit(generator.normal(shift, 1, n), generator.normal(0, 1, n), **options)


@pytest.mark.parametrize(
    ("shift", "tolerate", "state"),
    [
        (2, None, "leak"),
        (0, None, "none found"),
        (2, 0.1, "exceeds"),
        (0, 0.5, "within"),
        (0, 0.01, "undecided"),
        (0, 0.0, "undecided"),
        (2, 0.0, "exceeds"),
        (2, 1.0, "within"),
        (0, 1.0, "within"),
    ],
)
def test_audits_reach_every_state(shift, tolerate, state):
    found = normal(shift, 200, tolerate=tolerate)
    assert found.verdict.state == state
    assert found.covered in found.verdict.sentence
    assert found.explain().startswith(found.verdict.sentence)
    assert str(found).startswith(f"{found.verdict.title}: ")
    assert found.to_dict()["verdict"] == found.verdict.to_dict()


def test_a_problem_is_all_that_is_said():
    rng = np.random.default_rng(0)
    experiment = Experiment(rng.normal(3, 1, 100), rng.normal(0, 1, 100))
    found = run_audit(experiment, problem="nobody was held out.", tolerate=0.9)
    assert found.verdict.state == "no verdict"
    assert found.explain().startswith("No verdict: nobody was held out.")
    assert not any(word in found.explain() for word in ("at least", "at most", "confidence", "guess"))


@pytest.mark.parametrize("tolerate", [-0.01, 1.01, float("nan"), "much"])
def test_wrong_tolerance(tolerate):
    with pytest.raises((InputError, InputTypeError), match="tolerate"):
        normal(0, 20, tolerate=tolerate)


@pytest.mark.parametrize("queries", [1, 3])
def test_rows_needed_decide(queries):
    """Null audits of the planned size are "within" at least every second time (the plan says four of five)."""
    rng = np.random.default_rng(queries)
    planned = audit(rng.normal(size=(60, queries)), rng.normal(size=(60, queries)), tolerate=0.25)
    rows = planned.rows_needed(0.25)
    assert 100 < rows < 2000
    assert planned.rows_needed(0.1) > rows
    assert str(rows) in planned.verdict.sentence
    runs = 8
    states = [
        audit(rng.normal(size=(rows, queries)), rng.normal(size=(rows, queries)), tolerate=0.25).verdict.state
        for _ in range(runs)
    ]
    assert states.count("within") >= runs / 2


# Plain leaks


def spike(rng, n=285, queries=1):
    """A tenth of the members stands out by six standard deviations in the first query."""
    inside, outside = rng.normal(size=(n, queries)), rng.normal(size=(n, queries))
    inside[: n // 10, 0] += 6.0
    return inside, outside


@pytest.mark.parametrize("queries", [1, 11])
def test_a_tenth_that_stands_out_is_found(queries):
    found = [audit(*spike(np.random.default_rng(seed), queries=queries)).advantage.lower for seed in range(5)]
    assert sum(lower > 0 for lower in found) >= 4, found


def test_whole_numbers_keep_their_order():
    """Poisson laws of means 26 and 20 at n = 100, of advantage .46: by symbols alone hardly anything is found."""
    lower = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        lower.append(audit(rng.poisson(26, 100), rng.poisson(20, 100)).advantage.lower)
    assert np.mean(lower) > 0.12


def test_ten_standard_deviations_apart():
    for seed in range(5):
        assert normal(10, 20, seed).advantage.lower > 0.5


@pytest.mark.parametrize(("queries", "runs"), [(1, 40), (5, 16)])
def test_chance_is_not_found(queries, runs):
    """Null audits, looked at with two levels; tests/long has 300."""
    rng = np.random.default_rng(queries)
    sides = ([rng.standard_cauchy((n, queries)) for n in (180, 120)] for _ in range(runs))
    judge_alarms(audit(*side) for side in sides)


# One number, the same every time


@pytest.mark.parametrize("queries", [1, 3])
def test_the_default_is_deterministic_in_the_data(queries):
    rng = np.random.default_rng(0)
    x, y = rng.normal(0.5, 1, (150, queries)), rng.normal(0, 1, (150, queries))
    first, again = audit(x, y), audit(x.copy(), y.tolist())
    assert first.advantage == again.advantage
    assert first._splits.seed == again._splits.seed
    assert str(first._splits.seed) in first.method
    assert audit(x + 1e-9, y)._splits.seed != first._splits.seed


def test_seeds_differ_by_little():
    rng = np.random.default_rng(1)
    x, y = rng.normal(0.5, 1, 400), rng.normal(0, 1, 400)
    limits = [audit(x, y, rng=seed).advantage for seed in range(6)]
    assert np.ptp([limit.lower for limit in limits]) <= 0.03
    assert len({limit.estimate for limit in limits}) > 1, "the seed splits the records"
    assert audit(x, y, rng=0).advantage == limits[0]


@pytest.mark.parametrize(
    "values", [list, np.array, lambda v: np.array(v, dtype=float), lambda v: [float(i) for i in v]]
)
def test_numbers_in_any_container(values):
    rng = np.random.default_rng(2)
    x, y = rng.poisson(12, 120).tolist(), rng.poisson(10, 130).tolist()
    assert audit(values(x), values(y)).advantage == audit(x, y).advantage


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("queries", [1, 2, 11])
def test_the_shares_of_the_error_are_fixed_and_sum_to_one(directed, queries):
    rng = np.random.default_rng(0)
    experiment = Experiment(rng.normal(size=(20, queries)), rng.normal(size=(30, queries)), directed=directed)
    shares = _error_shares(experiment)
    assert len(shares) == queries * (1 if directed else 2)
    assert sum(shares) == pytest.approx(1.0, abs=1e-12)
    assert sum(shares) <= 1.0 + 1e-12
    if directed:
        assert shares == pytest.approx([shares[0] / (place + 1) for place in range(queries)])
    else:
        assert set(shares) == {0.5 / queries}


def test_further_queries_cost_the_first_one_little():
    """One clear query, then twenty of noise: falling shares cost the scan .018, equal ones would cost .039."""
    rng = np.random.default_rng(1)
    inside, outside = rng.normal(0.8, 1, (200, 1)), rng.normal(0, 1, (400, 1))
    noise = rng.normal(size=(200, 20)), rng.normal(size=(400, 20))

    def scanned(*more):
        sides = [np.hstack([first, *(part[i] for part in more)]) for i, first in enumerate((inside, outside))]
        found = _scanned(split(Experiment(*sides, directed=True), 0), ADVANTAGE, 0.0125)
        return found[0]

    alone = scanned()
    assert alone > 0.15
    assert alone - 0.03 < scanned(noise) < alone


def test_a_query_that_says_nothing_keeps_its_share_and_changes_no_score():
    """Were its share given to the others, these would depend on the records that are counted."""
    rng = np.random.default_rng(0)
    members, others = rng.normal(0.3, 1, (200, 3)), rng.normal(0, 1, (200, 3))
    padded = [np.insert(side, 1, 5.0, axis=1) for side in (members, others)]
    plain, kept = (
        Experiment(*sides, names=tuple("abcd"[: sides[0].shape[1]]), directed=True)
        for sides in ((members, others), padded)
    )
    assert len(_error_shares(kept)) == 4
    assert _error_shares(kept)[0] < _error_shares(plain)[0]
    score, own = learned.learn_score(members, others, np.random.default_rng(1))
    same, same_own = learned.learn_score(*padded, np.random.default_rng(1))
    assert np.array_equal(own, same_own)
    assert np.array_equal(score(members), same(padded[0]))
    flat, flat_own = learned.learn_score(np.ones((40, 2)), np.ones((40, 2)), np.random.default_rng(1))
    assert np.ptp(flat_own) < 1e-9
    assert np.ptp(flat(np.ones((5, 2)))) == 0.0


def test_with_few_records_the_mean_of_many_weak_queries_is_learned():
    """Twenty queries that each shift by .15: the mean is the best score, and weighs more than twenty weights."""
    rng = np.random.default_rng(2)
    shares = []
    for _ in range(10):
        inside, outside = rng.normal(0.15, 1, (40, 20)), rng.normal(0, 1, (200, 20))
        score, _ = learned.learn_score(inside, outside, rng)
        by_kind = {model.kind: share for model, share in zip(score.model.models, score.model.shares, strict=True)}
        shares.append(by_kind.get(learned.MEAN, 0.0))
    assert np.sum(np.array(shares) > 0.5) >= 8


def test_models_share_by_their_likelihood_on_folds_left_out():
    """Written out from the definition; with 2,000 records of which one query tells, the mean has no share left."""
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(240, 3)), np.arange(240) < 120
    x[y] += 0.2
    folds = np.arange(240) % learned.FOLDS
    average, left_out = learned._in_folds(x, y, folds, learned.KINDS)
    alone = [learned._in_folds(x, y, folds, (kind,)) for kind in learned.KINDS]
    likelihoods = [np.prod(1.0 / (1.0 + np.exp(np.where(y, -scores, scores)))) for _, scores in alone]
    shares = np.array(likelihoods) / np.sum(likelihoods)
    assert min(shares) > learned.LEAST
    assert np.allclose(average.shares, shares, rtol=1e-3)
    assert np.allclose(left_out, shares @ [scores for _, scores in alone], atol=1e-3)
    assert np.allclose(
        average.decision_function(x), shares @ [model.decision_function(x) for model, _ in alone], atol=1e-2
    )
    many = rng.normal(size=(4000, 3))
    many[:2000, 0] += 0.5
    score, _ = learned.learn_score(many[:2000], many[2000:], rng)
    assert learned.MEAN not in [model.kind for model in score.model.models]


def test_candidates_are_judged_by_how_much_luck_could_choose(monkeypatch):
    """1.96 standard errors for what competes, 3.5 for all others, .5 for the one threshold that nobody chose."""
    rng, seen = np.random.default_rng(8), []
    sides = rng.normal(0.2, 1, (100, 4)), rng.normal(0, 1, (100, 4))
    plain = type(ADVANTAGE).judge

    def noting(gain, counts, errors):
        seen.append((errors, counts.thresholds.tolist() if len(counts.thresholds) == 1 else None))
        return plain(gain, counts, errors)

    monkeypatch.setattr(type(ADVANTAGE), "judge", noting)
    for gain, fixed in ((ADVANTAGE, 0.0), (gain_at_prior(0.2), np.log(4.0))):
        for directed, few, others in ((True, 3, 12), (False, 15, 0)):
            seen.clear()
            found = Experiment(*sides, names=tuple("abcd"), directed=directed)
            collect_evidence(found, np.random.default_rng(0)).best(gain)
            once = [(errors, at) for errors, at in seen if at is not None]
            assert [errors for errors, _ in once] == [0.5]
            assert np.allclose(once[0][1], [fixed])
            assert [errors for errors, at in seen if at is None] == [1.96] * few + [3.5] * others


def test_the_learned_score_is_cut_where_it_says_that_the_odds_turn():
    """Two shifted normal laws: the best threshold is known, and the one chosen by 100 + 100 records scatters more."""
    rng, found = np.random.default_rng(12), {"fixed": [], "chosen": []}
    for run in range(60):
        members, others = rng.normal(0.25, 1, (200, 4)), rng.normal(0, 1, (200, 4))
        evidence = collect_evidence(Experiment(members, others, directed=True), np.random.default_rng(run))
        score = next(c for c in evidence.candidates if c.view.learned and c.rule == "high")
        best = evidence.best(ADVANTAGE)
        if best.candidate is score and best.threshold == 0.0:
            chosen = evidence.choose(ADVANTAGE.judge, score.view)
            far_members, far_others = rng.normal(0.25, 1, (20_000, 4)), rng.normal(0, 1, (20_000, 4))
            for name, attack in (("fixed", best), ("chosen", chosen)):
                values = [score.view.extract(side) for side in (far_members, far_others)]
                inside, outside = (np.mean(attack.candidate.score(side) >= attack.threshold) for side in values)
                found[name].append(float(inside - outside))
    assert len(found["fixed"]) >= 40, "the fixed threshold should mostly win"
    assert np.mean(found["fixed"]) > np.mean(found["chosen"]) + 0.005


def test_few_candidates_compete_where_directions_are_known():
    """High values of the first two queries and of their combination; all of them without directions, or one query."""
    rng = np.random.default_rng(3)
    sides = rng.normal(0.3, 1, (80, 4)), rng.normal(0, 1, (80, 4))

    def competing(width, directed, rows=80):
        members, others = (side[:rows, :width] for side in sides)
        found = Experiment(members, others, names=tuple("abcd"[:width]), directed=directed)
        evidence = collect_evidence(found, np.random.default_rng(0))
        assert evidence.choose(ADVANTAGE.judge).candidate in evidence.rivals
        for view in evidence.views:
            assert evidence.choose(ADVANTAGE.judge, view).candidate.view is view
        return [str(candidate) for candidate in evidence.rivals]

    together = "high values of all queries together"
    assert competing(4, directed=True) == ["high values of a", "high values of b", together]
    assert len(competing(4, directed=False)) == 15
    assert len(competing(1, directed=True)) == 3
    assert len(competing(4, directed=True, rows=50)) == 12, "too few to learn from"


def test_further_queries_cost_less_power_where_few_compete():
    """Of seven queries the second shifts by .4, 100 + 100 records choose: the best of 24 candidates is often luck."""
    rng, gains = np.random.default_rng(4), []
    for run in range(100):
        members, others = rng.normal(size=(200, 7)), rng.normal(size=(200, 7))
        members[:, 1] += 0.4
        values = []
        for directed in (True, False):
            found = Experiment(members, others, names=tuple("abcdefg"), directed=directed)
            attack = collect_evidence(found, np.random.default_rng(run)).best(ADVANTAGE)
            values.append(attack.tpr - attack.fpr)
        gains.append(values[0] - values[1])
    assert np.mean(gains) > 2 * np.std(gains) / np.sqrt(100)


def test_members_at_middle_answers_of_one_query_are_not_passed_over():
    """Of 1,000 members 160 have one answer of the sixth query: no rival sees them, and their lead is beyond luck."""
    shown = []
    for seed in range(3):
        rng = np.random.default_rng([9, seed])
        members, others = rng.normal(size=(1000, 7)), rng.normal(size=(1000, 7))
        members[:160, 5] = rng.normal(0.5, 0.01, 160)
        found = run_audit(Experiment(members, others, names=tuple("abcdefg"), directed=True), rng=seed)
        shown.append(found.advantage.lower)
    assert min(shown) > 0

"""Individual risk: theorems 2 to 4 by hand, exact coverage, simultaneous limits, and the V shape."""

import numpy as np
import pytest
from scipy.stats import binom, rankdata

import whosin as wi
from whosin.auditing import audit
from whosin.auditing.measuring.individual import _posteriors
from whosin.errors import InputError, InputTypeError
from whosin.numerics.proportions import clopper_pearson_lower, clopper_pearson_upper

ACCURACY = wi.risks.RatioMetric((0, 1, 0, 0, 1), (1, 0, 0, 0, 0), name="accuracy")
X, Y = np.array([0] * 60 + [1] * 40), np.array([0] * 30 + [1] * 150 + [2] * 20)
TABLE = audit(X, Y, prior=0.2, rng=0).individual


def test_theorem_2_by_hand():
    """Cell 0 of a discrete query: r = .6, q = .15, all data count but the record itself."""
    r, q, p = 0.6, 0.15, 0.2
    rho = p * r / (p * r + (1 - p) * q)
    assert TABLE.risk[0] == pytest.approx(rho)
    for row, (x, n), (y, m) in ((0, (59, 99), (30, 200)), (100, (60, 100), (29, 199))):
        low = p * clopper_pearson_lower(x, n, 0.0125)
        assert TABLE.lower[row] == pytest.approx(low / (low + (1 - p) * clopper_pearson_upper(y, m, 0.0125)))
        high = p * clopper_pearson_upper(x, n, 0.0125)
        assert TABLE.upper[row] == pytest.approx(high / (high + (1 - p) * clopper_pearson_lower(y, m, 0.0125)))
    low = p * clopper_pearson_lower(60, 100, 0.05 / 12)
    together = low / (low + (1 - p) * clopper_pearson_upper(30, 200, 0.05 / 12))
    assert TABLE.simultaneous_lower[0] == TABLE.simultaneous_lower[100] == pytest.approx(together)
    f, f_low, f_high = TABLE.signed_advantage()
    assert f[0] == pytest.approx((r * p - q * (1 - p)) / (r * p + q * (1 - p)))
    assert f_low[0] == pytest.approx(2 * TABLE.lower[0] - 1)
    assert f_high[0] == pytest.approx(2 * TABLE.upper[0] - 1)


def test_order_and_sides():
    assert len(TABLE) == 300
    assert TABLE.member.sum() == 100
    assert TABLE.index[:3].tolist() == [0, 1, 2]
    assert TABLE.index[100:103].tolist() == [0, 1, 2]
    assert np.all(TABLE.risk[:60] == TABLE.risk[0])
    assert TABLE.risk[-1] == 0.0
    assert np.all(TABLE.lower <= TABLE.risk)
    assert np.all(TABLE.risk <= TABLE.upper)
    assert np.all(TABLE.simultaneous_lower <= TABLE.lower)
    assert np.all(TABLE.upper <= TABLE.simultaneous_upper)


@pytest.mark.parametrize("without", [(0, 0), (1, 0), (0, 1)])
@pytest.mark.parametrize(("r", "q", "p"), [(0.2, 0.2, 0.5), (0.05, 0.01, 0.1), (0.01, 0.2, 0.5), (0.5, 0.001, 0.1)])
def test_exact_coverage(r, q, p, without):
    """All counts of one cell, weighted: a miss has probability at most δ = .2 (union bound of four limits).

    A record that was named beforehand is in its cell for sure; given that, the others follow their laws.
    """
    n, m = 15 - without[0], 25 - without[1]
    x, y = (v.ravel() for v in np.meshgrid(np.arange(n + 1), np.arange(m + 1), indexing="ij"))
    weight = binom.pmf(x, n, r) * binom.pmf(y, m, q)
    truth = p * r / (p * r + (1 - p) * q)
    wrong = []
    for a, b in zip(x, y, strict=True):
        inside, outside = np.array([a + without[0], n - a]), np.array([b + without[1], m - b])
        cell = _posteriors(inside, outside, p, 0.05, [without])
        wrong.append(not cell.lower[0] <= truth <= cell.upper[0])
    assert weight[np.array(wrong)].sum() <= 0.2


def test_a_record_is_not_evidence_about_itself():
    """Limits that counted it would miss three times as often as they may: 20 members of 500 rare answers."""
    rng, misses, runs = np.random.default_rng(0), 0, 25
    for run in range(runs):
        x, y = rng.integers(500, size=20), rng.integers(500, size=20_000)
        table = audit(x, y, kind="discrete", confidence_level=0.99, rng=run).individual
        misses += np.count_nonzero(~((table.lower[:20] <= 0.5) & (table.upper[:20] >= 0.5)))
    assert misses <= 0.01 * 20 * runs


def test_one_member_and_few_records():
    table = audit(np.array([0]), np.array([0, 1]), kind="discrete", rng=0).individual
    assert table.lower.tolist()[0] == 0.0
    assert table.upper.tolist()[0] > 0.99


def test_absolute_advantage_is_zero_where_it_may_be():
    value, low, high = TABLE.advantage()
    f, f_low, f_high = TABLE.signed_advantage()
    straddles = (f_low <= 0) & (f_high >= 0)
    assert straddles.any()
    assert np.all(low[straddles] == 0.0)
    assert np.all(low <= value)
    assert np.all(value <= high)
    assert value == pytest.approx(np.abs(f))
    wider = TABLE.advantage(simultaneous=True)
    assert np.all(wider[1] <= low)
    assert np.all(wider[2] >= high)


def test_average_of_individual_advantages_is_the_advantage():
    """Theorem 1(2): over the sampled mixture the mean of |f_p| is the plug-in Adv_p."""
    value = TABLE.advantage()[0]
    mean = 0.2 * value[:100].mean() + 0.8 * value[100:].mean()
    r, q = np.array([0.6, 0.4, 0]), np.array([0.15, 0.75, 0.1])
    assert mean == pytest.approx(np.abs(0.2 * r - 0.8 * q).sum())


def test_generalised_metric_is_accuracy_in_disguise():
    """Theorem 4 with accuracy: value = (1 + |f_p|)/2, whose lower limit is ½ at the kink, not an end point."""
    value, low, high = TABLE.value(ACCURACY)
    advantage = TABLE.advantage()
    for one, other in zip((value, low, high), advantage, strict=True):
        assert one == pytest.approx((1 + other) / 2)
    assert np.min(low) == pytest.approx(0.5)


def test_generalised_metric_against_a_dense_search():
    metric = wi.risks.weighted_accuracy(0.7)
    value, low, high = TABLE.value(metric, simultaneous=True)
    t = metric.threshold()
    for i in (0, 99, -1):
        rho = np.linspace(TABLE.simultaneous_lower[i], TABLE.simultaneous_upper[i], 20_001)
        top = np.where(rho > t, 0.7 * rho, 0.3 * (1 - rho))
        dense = top / (0.7 * rho + 0.3 * (1 - rho))
        assert low[i] <= dense.min() + 1e-12
        assert low[i] == pytest.approx(dense.min(), abs=1e-4)
        assert high[i] == pytest.approx(dense.max(), abs=1e-4)
        assert low[i] <= value[i] <= high[i]


def test_generalised_metric_errors():
    ppv = wi.risks.RatioMetric((0, 1, 0, 0, 0), (0, 1, 1, 0, 0), name="ppv")
    with pytest.raises(InputError, match="0/0"):
        TABLE.value(ppv, threshold=0.5)
    with pytest.raises(InputTypeError, match="RatioMetric"):
        TABLE.value("accuracy")
    with pytest.raises(InputError, match="no threshold rule"):
        TABLE.value(wi.risks.RatioMetric((0, -1, 0, 0, -1), (1, 0, 0, 0, 0)))


def test_cells_of_a_continuous_query_are_counted_on_held_out_records():
    rng = np.random.default_rng(0)
    a = audit(rng.normal(1, 1, 900), rng.normal(0, 1, 900), rng=0)
    held = a._evidence.held_out(a.attack.candidate.view)
    i = int(np.argmax(a.individual.score))
    cell = a.individual.cell[i]
    r, q = held.cell_members[cell] / 600, held.cell_non_members[cell] / 600
    assert a.individual.risk[i] == pytest.approx(r / (r + q))


def test_simultaneous_limits_cover_all_cells():
    """All four symbols at once at a level of 20 %."""
    from scipy.stats import binomtest

    r, q = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.1, 0.2, 0.3, 0.4])
    truth = r / (r + q)
    rng = np.random.default_rng(1)
    misses = 0
    for run in range(40):
        x, y = rng.choice(4, 80, p=r), rng.choice(4, 80, p=q)
        table = audit(x, y, rng=run, confidence_level=0.8).individual
        who = np.concatenate([x, y])
        misses += np.any((table.simultaneous_lower > truth[who]) | (table.simultaneous_upper < truth[who]))
    assert binomtest(int(misses), 40, 0.2, alternative="greater").pvalue > 1e-4


def test_highest():
    top = TABLE.highest(3)
    assert all(row["score"] == TABLE.score.max() for row in top)
    assert TABLE.highest(3) == top
    outside = TABLE.highest(2, "non-member")
    assert all(row["score"] == TABLE.score[100:].max() and row["side"] == "non-member" for row in outside)
    assert TABLE.highest(0) == []
    assert len(TABLE.highest(1000)) == 300
    assert {row["side"] for row in TABLE.to_dict(5)["highest"]} == {"member"}
    with pytest.raises(InputError, match="side"):
        TABLE.highest(3, "insider")
    with pytest.raises(InputError, match="n must be"):
        TABLE.highest(-1)


def test_ties_stand_without_regard_to_sides():
    """All scores equal: a list with members first would point at members though the answers say nothing."""
    table = audit(np.zeros(50), np.zeros(50), rng=0).individual
    sides = [row["side"] for row in table.highest(100)]
    assert 10 <= sides[:50].count("member") <= 40


@pytest.mark.parametrize("queries", [1, 3])
def test_scores_of_a_null_audit_tell_nothing(queries):
    """Mean AUC of 40 audits without a leak: within .02 of a half, five standard errors. It was .57 with ratios that
    count a record."""
    rng = np.random.default_rng(queries)
    values = []
    for _ in range(40):
        x, y = rng.normal(size=(285, queries)), rng.normal(size=(285, queries))
        table = audit(x, y).individual
        ranks = rankdata(table.score)[:285]
        values.append((ranks.sum() - 285 * 286 / 2) / 285**2)
    assert np.mean(values) == pytest.approx(0.5, abs=0.02)


def test_plot():
    assert TABLE.plot().get_xlabel().startswith("share of the members")

"""LiRA and RMIA against exact likelihood ratios, their definitions, and what must not change them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import gaussian_kde, norm, spearmanr

from whosin.auditing.models import lira, lira_kde, lira_offline, lira_rank, rmia
from whosin.errors import InputError

ATTACKS = [lira, lira_offline, lira_rank, lira_kde, rmia]


def world(models=40, records=30, seed=0, gap=1.0):
    """Normal logits: a mean for each record, higher by ``gap`` in models that have it."""
    rng = np.random.default_rng(seed)
    included = rng.random((models, records)).argsort(axis=0) < models // 2
    means = rng.normal(0, 2, records)
    member = rng.random(records) < 0.5
    logits = means + gap * included + rng.normal(0, 0.5, (models, records))
    return means + gap * member + rng.normal(0, 0.5, records), logits, included, ~included, member


def test_online_lira_is_the_exact_log_likelihood_ratio():
    """Two models a side at μ ± σ/√2 have mean μ and unbiased variance σ²: the score is the ratio of two normals."""
    rng = np.random.default_rng(1)
    inner, outer = rng.normal(2, 1, 50), rng.normal(0, 1, 50)
    s_in, s_out = rng.uniform(0.5, 2, 50), rng.uniform(0.5, 2, 50)
    step = np.sqrt(0.5)
    logits = np.array([inner + step * s_in, inner - step * s_in, outer + step * s_out, outer - step * s_out])
    included = np.repeat([[True], [True], [False], [False]], 50, axis=1)
    x = rng.normal(1, 2, 50)
    exact = norm.logpdf(x, inner, s_in) - norm.logpdf(x, outer, s_out)
    np.testing.assert_allclose(lira(x, logits, included, ~included, variance="record"), exact, rtol=1e-9)
    pooled = np.sqrt(np.mean(s_in**2)), np.sqrt(np.mean(s_out**2))
    exact = norm.logpdf(x, inner, pooled[0]) - norm.logpdf(x, outer, pooled[1])
    np.testing.assert_allclose(lira(x, logits, included, ~included), exact, rtol=1e-9)
    offline = -norm.logsf(x, outer, s_out)
    np.testing.assert_allclose(lira_offline(x, logits, included, ~included, variance="record"), offline, rtol=1e-9)


def test_many_models_approach_the_truth():
    x, logits, inside, outside, _ = world(models=4000, records=20)
    means = np.array([logits[m, i].mean() for i, m in enumerate(outside.T)])
    exact = norm.logpdf(x, means + 1, 0.5) - norm.logpdf(x, means, 0.5)
    np.testing.assert_allclose(lira(x, logits, inside, outside), exact, atol=0.6)
    np.testing.assert_allclose(lira(x, logits, inside, outside, variance="global"), exact, atol=0.4)


def test_automatic_variance():
    for models, same in ((62, "global"), (64, "record")):
        given = world(models)[:4]
        assert np.array_equal(lira(*given), lira(*given, variance=same))
        assert not np.array_equal(lira(*given, variance="record"), lira(*given, variance="global"))


def test_rank_by_definition():
    x, logits, inside, outside, _ = world(models=7, records=5)
    x[0] = logits[outside[:, 0], 0][0]
    expected = [
        (np.sum(logits[o, i] < x[i]) + 0.5 * np.sum(logits[o, i] == x[i]) + 0.5) / (o.sum() + 1)
        for i, o in enumerate(outside.T)
    ]
    assert lira_rank(x, logits, inside, outside).tolist() == pytest.approx(expected)


def test_kde_by_scipy():
    x, logits, inside, outside, _ = world(models=80, records=6)
    expected = []
    for i in range(6):
        sides = [logits[m[:, i], i] for m in (inside, outside)]
        p, q = (gaussian_kde(side, bw_method=1.06 * len(side) ** -0.2)(x[i])[0] for side in sides)
        expected.append(np.log(p / q))
    np.testing.assert_allclose(lira_kde(x, logits, inside, outside), expected, rtol=1e-6)


@pytest.mark.parametrize("a", [0.0, 0.3, 1.0, None])
@pytest.mark.parametrize("apart", [True, False])
def test_rmia_by_definition(a, apart):
    x, logits, inside, outside, _ = world(models=10, records=12)
    rng = np.random.default_rng(2)
    population = (rng.normal(size=9), rng.normal(size=(10, 9))) if apart else None

    def p(z):
        return 1 / (1 + np.exp(-z))

    def typical(out, level):
        return ((1 + level) * out + 1 - level) / 2

    out = np.array([p(logits[m, i]).mean() for i, m in enumerate(outside.T)])
    inn = np.array([p(logits[m, i]).mean() for i, m in enumerate(inside.T)])
    ratio = p(x) / ((out + inn) / 2 if a is None else typical(out, a))
    others = (
        ratio if population is None else p(population[0]) / typical(p(population[1]).mean(0), 1.0 if a is None else a)
    )
    expected = [np.mean(r / others >= 1.5) for r in ratio]
    assert rmia(x, logits, inside, outside, population=population, gamma=1.5, a=a).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("attack", ATTACKS)
def test_members_score_higher(attack):
    x, logits, inside, outside, member = world(records=400)
    scores = attack(x, logits, inside, outside)
    assert scores[member].mean() > scores[~member].mean()


def test_models_beat_a_common_threshold_where_records_differ():
    x, logits, inside, outside, member = world(records=2000)

    def auc(score):
        return np.mean(score[member][:, None] > score[~member])

    plain = auc(x)
    for attack in (lira, lira_offline, lira_rank, lira_kde):
        assert auc(attack(x, logits, inside, outside)) > plain + 0.15


@given(st.integers(0, 10**6), st.floats(-5, 5), st.floats(0.1, 10))
def test_moving_or_stretching_all_logits_changes_nothing(seed, shift, factor):
    x, logits, inside, outside, _ = world(models=9, records=6, seed=seed)
    for attack in (lira, lira_offline, lira_rank, lira_kde):
        before = attack(x, logits, inside, outside)
        after = attack(factor * x + shift, factor * logits + shift, inside, outside)
        np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("attack", ATTACKS)
def test_order_of_models_and_records_does_not_matter(attack):
    x, logits, inside, outside, _ = world()
    rows, columns = np.random.default_rng(3).permutation(40), np.random.default_rng(4).permutation(30)
    turned = attack(x[columns], logits[rows][:, columns], inside[rows][:, columns], outside[rows][:, columns])
    np.testing.assert_allclose(turned, attack(x, logits, inside, outside)[columns], rtol=1e-9)


@pytest.mark.parametrize("attack", [lira_offline, lira_rank, rmia])
def test_offline_attacks_never_look_at_models_with_the_record(attack):
    x, logits, inside, outside, _ = world()
    changed = np.where(inside, 99.0, logits)
    assert np.array_equal(attack(x, changed, inside, outside), attack(x, logits, inside, outside))
    nobody = np.zeros_like(inside)
    assert np.array_equal(attack(x, logits, nobody, outside), attack(x, logits, inside, outside))


@pytest.mark.parametrize("attack", ATTACKS)
def test_models_that_never_change_their_mind(attack):
    included = np.arange(8)[:, None] % 2 == np.zeros(5)
    scores = attack(np.full(5, 3.0), np.full((8, 5), 3.0), included, ~included)
    assert np.isfinite(scores).all()
    assert np.ptp(scores) == 0.0


def test_rmia_counts_ties_as_beaten():
    included = np.arange(8)[:, None] % 2 == np.zeros(5)
    given = np.full(5, 3.0), np.full((8, 5), 3.0), included, ~included
    assert rmia(*given, gamma=1.0).tolist() == [1.0] * 5
    assert rmia(*given, gamma=1.001).tolist() == [0.0] * 5


def test_offline_scores_do_not_saturate():
    x, logits, inside, outside, _ = world()
    scores = lira_offline(x + 40, logits, inside, outside)
    assert np.isfinite(scores).all()
    assert len(np.unique(scores)) == len(scores)
    assert spearmanr(scores, lira_offline(x + 41, logits, inside, outside)).statistic > 0.9


def test_bad_input():
    x, logits, inside, outside, _ = world()
    with pytest.raises(InputError, match=r"\(N,\) and \(models, N\)"):
        lira(x[:-1], logits, inside, outside)
    with pytest.raises(InputError, match="inside must be booleans"):
        lira(x, logits, inside.astype(int), outside)
    with pytest.raises(InputError, match="inside must have at least 1"):
        lira(x, logits, np.zeros_like(inside), outside)
    with pytest.raises(InputError, match="outside must have at least 1"):
        lira_rank(x, logits, inside, np.zeros_like(inside))
    with pytest.raises(InputError, match="both with and without"):
        lira(x, logits, inside, np.ones_like(inside))
    with pytest.raises(InputError, match="finite"):
        lira(np.where(x == x[0], np.nan, x), logits, inside, outside)
    with pytest.raises(InputError, match="variance"):
        lira(x, logits, inside, outside, variance="none")
    with pytest.raises(InputError, match="at least 2 models"):
        lira(x, logits[:2], np.tile([[True], [False]], 30), np.tile([[False], [True]], 30), variance="record")
    with pytest.raises(InputError, match="train more"):
        lira(x, logits[:2], np.tile([[True], [False]], 30), np.tile([[False], [True]], 30))
    with pytest.raises(InputError, match="gamma"):
        rmia(x, logits, inside, outside, gamma=0.5)
    with pytest.raises(InputError, match="a must be"):
        rmia(x, logits, inside, outside, a=1.5)
    with pytest.raises(InputError, match="population"):
        rmia(x, logits, inside, outside, population=(x, logits[:, :3]))

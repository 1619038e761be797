"""LiRA and RMIA against exact likelihood ratios, their definitions, and what must not change them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, spearmanr

from whosin.auditing.models import lira, lira_offline, rmia
from whosin.auditing.models.attacks import _variance
from whosin.errors import InputError

ATTACKS = [lira, lira_offline, rmia]


def world(models=40, records=30, seed=0, gap=1.0):
    """Normal scores: a mean for each record, higher by ``gap`` in models that have it."""
    rng = np.random.default_rng(seed)
    included = rng.random((models, records)).argsort(axis=0) < models // 2
    means = rng.normal(0, 2, records)
    member = rng.random(records) < 0.5
    scores = means + gap * included + rng.normal(0, 0.5, (models, records))
    return means + gap * member + rng.normal(0, 0.5, records), scores, included, member


def test_online_lira_is_the_exact_log_likelihood_ratio():
    """Two models a side at μ ± σ/√2 have mean μ and variance σ²: with one σ for all, two normal laws are left."""
    rng = np.random.default_rng(1)
    inner, outer = rng.normal(2, 1, 50), rng.normal(0, 1, 50)
    steps = np.sqrt(0.5) * 1.5, np.sqrt(0.5) * 0.5
    scores = np.array([inner + steps[0], inner - steps[0], outer + steps[1], outer - steps[1]])
    included = np.repeat([[True], [True], [False], [False]], 50, axis=1)
    x = rng.normal(1, 2, 50)
    exact = norm.logpdf(x, inner, 1.5) - norm.logpdf(x, outer, 0.5)
    np.testing.assert_allclose(lira(x, scores, included), exact, rtol=1e-6)
    np.testing.assert_allclose(lira_offline(x, scores, included), -norm.logsf(x, outer, 0.5), rtol=1e-6)


@pytest.mark.parametrize(("shape", "models"), [(6.0, 8), (20.0, 8), (6.0, 60)])
def test_variances_are_drawn_together_by_as_much_as_they_are_alike(shape, models):
    """Variances from an inverse gamma law: posterior means beat both the record's own estimate and the common one."""
    rng = np.random.default_rng(2)
    true = (shape - 1) / rng.gamma(shape, size=4000)
    scores = rng.normal(size=(models, 4000)) * np.sqrt(true)
    found = _variance(scores, np.ones(scores.shape, dtype=bool))
    own = scores.var(axis=0, ddof=1)

    def error(guess):
        return np.mean((guess - true) ** 2)

    assert error(found) < min(error(own), error(own.mean()))
    exact = ((2 * shape - 2) + (models - 1) * own) / (2 * shape - 2 + models - 1)
    assert error(found) < 1.1 * error(exact)


def test_many_models_approach_the_truth():
    x, scores, included, _ = world(models=4000, records=20)
    means = np.array([scores[~m, i].mean() for i, m in enumerate(included.T)])
    exact = norm.logpdf(x, means + 1, 0.5) - norm.logpdf(x, means, 0.5)
    np.testing.assert_allclose(lira(x, scores, included), exact, atol=0.5)


@pytest.mark.parametrize("a", [0.0, 0.3, 1.0, None])
def test_rmia_by_definition_and_in_the_order_of_the_published_one(a):
    x, scores, included, _ = world(models=10, records=40)

    def p(z):
        return 1 / (1 + np.exp(-z))

    out = np.array([p(scores[~m, i]).mean() for i, m in enumerate(included.T)])
    inn = np.array([p(scores[m, i]).mean() for i, m in enumerate(included.T)])
    ratio = p(x) / ((out + inn) / 2 if a is None else ((1 + a) * out + 1 - a) / 2)
    found = rmia(x, scores, included, a=a)
    np.testing.assert_allclose(found, np.log(ratio), rtol=1e-9)
    for gamma in (1.0, 2.0):
        published = np.array([np.mean(r / ratio >= gamma) for r in ratio])
        order = np.argsort(found)
        assert (np.diff(published[order]) >= 0).all(), "a step function of the ratio"


@pytest.mark.parametrize("attack", ATTACKS)
def test_members_score_higher(attack):
    x, scores, included, member = world(records=400)
    found = attack(x, scores, included)
    assert found[member].mean() > found[~member].mean()


def test_models_beat_a_common_threshold_where_records_differ():
    x, scores, included, member = world(records=2000)

    def auc(score):
        return np.mean(score[member][:, None] > score[~member])

    for attack in (lira, lira_offline):
        assert auc(attack(x, scores, included)) > auc(x) + 0.15


@given(st.integers(0, 10**6), st.floats(-5, 5), st.floats(0.1, 10))
def test_moving_or_stretching_all_scores_changes_nothing(seed, shift, factor):
    x, scores, included, _ = world(models=9, records=6, seed=seed)
    for attack in (lira, lira_offline):
        before = attack(x, scores, included)
        after = attack(factor * x + shift, factor * scores + shift, included)
        np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("attack", ATTACKS)
def test_order_of_models_and_records_does_not_matter(attack):
    x, scores, included, _ = world()
    rows, columns = np.random.default_rng(3).permutation(40), np.random.default_rng(4).permutation(30)
    turned = attack(x[columns], scores[rows][:, columns], included[rows][:, columns])
    np.testing.assert_allclose(turned, attack(x, scores, included)[columns], rtol=1e-9)


@pytest.mark.parametrize("attack", [lira_offline, lambda *given: rmia(*given, a=0.3)])
def test_offline_attacks_never_look_at_models_with_the_record(attack):
    x, scores, included, _ = world()
    assert np.array_equal(attack(x, np.where(included, 99.0, scores), included), attack(x, scores, included))


@pytest.mark.parametrize("attack", ATTACKS)
def test_models_that_never_change_their_mind(attack):
    included = np.arange(8)[:, None] % 2 == np.zeros(5)
    scores = attack(np.full(5, 3.0), np.full((8, 5), 3.0), included)
    assert np.isfinite(scores).all()
    assert np.ptp(scores) == 0.0


def test_offline_scores_do_not_saturate():
    x, scores, included, _ = world()
    found = lira_offline(x + 40, scores, included)
    assert np.isfinite(found).all()
    assert len(np.unique(found)) == len(found)
    assert spearmanr(found, lira_offline(x + 41, scores, included)).statistic > 0.9


def test_bad_input():
    x, scores, included, _ = world()
    with pytest.raises(InputError, match=r"\(N,\) and \(models, N\)"):
        lira(x[:-1], scores, included)
    with pytest.raises(InputError, match="included must be 1 or 0, or True or False"):
        lira(x, scores, 2 * included.astype(int))
    assert np.array_equal(lira(x, scores, included.astype(int)), lira(x, scores, included))
    for mask in (np.zeros_like(included), np.ones_like(included)):
        with pytest.raises(InputError, match="lacks one side"):
            lira(x, scores, mask)
    with pytest.raises(InputError, match="finite"):
        lira(np.where(x == x[0], np.nan, x), scores, included)
    with pytest.raises(InputError, match="train more"):
        lira(x, scores[:2], np.tile([[True], [False]], 30))
    with pytest.raises(InputError, match="a must be"):
        rmia(x, scores, included, a=1.5)

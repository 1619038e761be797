"""Xu et al. 2022, "MACE: membership privacy estimation": experiments 1 and 2, lemma 4, theorems 2 to 4.

How the individual risk is estimated. Coverage is exact (all counts enumerated) or a seeded simulation with a binomial
judge. Where the printed statement is wrong, the corrected one is shown to hold and the printed one to fail.
"""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import each
from scipy.stats import binom, binomtest, chisquare, norm
from theorem_support import answers, holds

import whosin as wi
from experiments.mace.densities import density
from whosin.auditing import Experiment
from whosin.numerics.proportions import clopper_pearson_lower, clopper_pearson_upper
from whosin.risks import RatioMetric

ACCURACY = RatioMetric((0, 1, 0, 0, 1), (1, 0, 0, 0, 0), name="accuracy")
TPR = RatioMetric((0, 1, 0, 0, 0), (0, 1, 0, 1, 0), name="TPR")
TNR = RatioMetric((0, 0, 0, 0, 1), (0, 0, 1, 0, 1), name="TNR")
CURVED = RatioMetric((0.1, 1, -0.2, 0, 0.3), (0.5, 1, 0.4, 0.7, 0.1), name="made up")


def f_p(r, q, p):
    """Equation 14."""
    return (p * r - (1 - p) * q) / (p * r + (1 - p) * q)


# --- experiments 1 and 2 -----------------------------------------------------------------------------------------


@each("p", [0.1, 0.5, 0.8])
def test_experiment_1_labels_are_coins_and_records_uniform(p):
    """m = 1 with probability p; z uniform in S given m = 1 and uniform outside given m = -1, whatever their numbers."""
    experiment = Experiment(np.arange(7.0), 10.0 + np.arange(30.0), p)
    answer, label = experiment.draw(40_000, rng=3)
    assert set(label.tolist()) == {-1, 1}
    assert binomtest(int(np.sum(label == 1)), 40_000, p).pvalue > 1e-6
    assert np.array_equal(answer < 10, label == 1)
    for side in (1, -1):
        assert chisquare(np.unique(answer[label == side], return_counts=True)[1]).pvalue > 1e-6
    # Independent draws: neighbouring labels are not correlated.
    assert abs(np.corrcoef(label[:-1], label[1:])[0, 1]) < 5 / math.sqrt(40_000)


@each("p", [0.1, 0.5, 0.75])
def test_experiment_2_corrected_labels(p):
    """N₁ = pN draws from S with m = 1, then N₂ = (1-p)N from outside with m = -1."""
    experiment = Experiment(np.arange(7.0), 10.0 + np.arange(30.0), p)
    answer, label = experiment.draw(4000, fixed=True, rng=4)
    n1 = round(4000 * p)
    assert np.array_equal(label, np.where(np.arange(4000) < n1, 1, -1))
    assert np.array_equal(answer < 10, label == 1)
    for side in (1, -1):
        assert chisquare(np.unique(answer[label == side], return_counts=True)[1]).pvalue > 1e-6


def test_experiment_2_printed_labels_fail():
    """Step 2 names rows N₁+1..N₂, which are N₂-N₁ and not N₂; step 3 labels members -1 and the others 0."""
    n, p = 1000, 0.1
    n1, n2 = 100, 900
    assert len(range(n1 + 1, n2 + 1)) == n2 - n1 == 800
    experiment = Experiment(np.ones(5), np.zeros(5), p)  # a query that tells all
    answer, label = experiment.draw(n, fixed=True, rng=5)
    accuse = np.where(answer == 1, 1, -1)

    def true_positives(m):
        return float(np.mean((accuse / 2 + 0.5) * (m / 2 + 0.5)))

    assert true_positives(label) == p  # TP_n of section 5.2 on the corrected labels is P(m = 1, A = 1)
    printed = np.where(np.arange(1, n + 1) <= n1, -1, 0)
    assert true_positives(printed) == 0.0  # on the printed ones a perfect attack finds nobody


# --- theorem 2 ---------------------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=2, max_size=6),
    st.floats(0.05, 0.95),
)
def test_theorem_2_estimator_and_corrected_interval(cells, p):
    """f̂ and the interval from Clopper-Pearson limits at δ/4 each, for any counts; 0/0 where a cell was never seen.

    A record is not evidence about itself: the limits of a member count one member less, those of a non-member one
    non-member less.
    """
    x, y = (np.array(side) + (np.arange(len(cells)) == 0) for side in zip(*cells, strict=True))
    x, y = x[x + y > 0], y[x + y > 0]
    found = wi.audit(answers(x), answers(y), prior=p, kind="discrete", rng=0).individual
    f, low, high = found.signed_advantage()
    n1, n2, alpha = int(x.sum()), int(y.sum()), 0.05 / 4
    assert f == pytest.approx(f_p(x / n1, y / n2, p)[np.concatenate([answers(x), answers(y)])], abs=1e-9)
    for rows, cell, less in ((slice(0, n1), answers(x), (1, 0)), (slice(n1, None), answers(y), (0, 1))):
        r = np.maximum(x - less[0], 0), n1 - less[0], alpha
        q = np.maximum(y - less[1], 0), n2 - less[1], alpha
        assert low[rows] == pytest.approx(f_p(clopper_pearson_lower(*r), clopper_pearson_upper(*q), p)[cell], abs=1e-9)
        assert high[rows] == pytest.approx(f_p(clopper_pearson_upper(*r), clopper_pearson_lower(*q), p)[cell], abs=1e-9)


@pytest.mark.parametrize(("r", "q", "p"), [(0.3, 0.1, 0.5), (0.02, 0.05, 0.2), (0.5, 0.5, 0.1)])
def test_theorem_2_part_1_consistent(r, q, p):
    """The error of f̂ goes down as 1/√N: within five of the delta method's standard deviations at every N."""
    truth = f_p(r, q, p)
    slope = 2 * p * (1 - p) / (p * r + (1 - p) * q) ** 2
    for n in (1000, 10_000, 100_000):
        rng = np.random.default_rng([n, 2])
        n1, n2 = round(p * n), n - round(p * n)
        x, y = rng.random(n1) < r, rng.random(n2) < q
        table = wi.audit(x, y, prior=p, rng=0).individual
        spread = slope * math.sqrt(q**2 * r * (1 - r) / n1 + r**2 * q * (1 - q) / n2)
        assert abs(table.signed_advantage()[0][np.flatnonzero(x)[0]] - truth) < 5 * spread


def exact_coverage(r, q, p, n, alpha, interval):
    """Probability over all pairs of counts that ``interval`` holds the truth f_p."""
    n1, n2 = round(p * n), n - round(p * n)
    x, y = np.arange(n1 + 1), np.arange(n2 + 1)
    weight = binom.pmf(x, n1, r)[:, None] * binom.pmf(y, n2, q)
    likely = np.ix_(weight.sum(axis=1) > 1e-14, weight.sum(axis=0) > 1e-14)
    limits = (
        clopper_pearson_lower(x, n1, alpha)[:, None],
        clopper_pearson_upper(x, n1, alpha)[:, None],
        clopper_pearson_lower(y, n2, alpha)[None, :],
        clopper_pearson_upper(y, n2, alpha)[None, :],
    )
    covered = interval(*limits, f_p(r, q, p), p)
    return float((weight * covered)[likely].sum())


def inside(r_low, r_high, q_low, q_high, truth, p):
    return (f_p(r_low, q_high, p) <= truth + 1e-12) & (truth <= f_p(r_high, q_low, p) + 1e-12)


GRID = [(r, q) for r in (0.001, 0.01, 0.05, 0.2, 0.5) for q in (0.001, 0.01, 0.05, 0.2, 0.5)]


def test_theorem_2_part_2_exact_coverage_on_a_grid():
    """At δ = .05 and 100 settings: δ/4 a limit (the proof) covers ≥ .9897, δ/2 a limit (the text) ≥ .9826 on it."""
    settings = [(r, q, p, n) for p in (0.5, 0.1) for n in (100, 1000) for r, q in GRID]
    worst = {alpha: min(exact_coverage(*s, alpha, inside) for s in settings) for alpha in (0.05 / 4, 0.05 / 2)}
    assert 0.9897 <= worst[0.0125] < 0.9898
    assert 0.9826 <= worst[0.025] < 0.9827


def test_theorem_2_part_2_exact_coverage_of_the_library():
    """The audit's own interval over all 16·11 pairs of counts, at δ = .2: at least .8 as the union bound says."""
    n1, n2, p = 15, 10, 0.6
    low, high = np.empty((2, n1 + 1, n2 + 1))
    for x in range(n1 + 1):
        for y in range(n2 + 1):
            members, others = answers([x, n1 - x]), answers([y, n2 - y])
            table = wi.audit(members, others, prior=p, confidence_level=0.8, rng=0).individual
            here = np.flatnonzero(np.concatenate([members, others]) == 0)
            _, f_low, f_high = table.signed_advantage()
            low[x, y], high[x, y] = (f_low[here[0]], f_high[here[0]]) if here.size else (-1.0, 1.0)
    for r, q in [(0.1, 0.1), (0.5, 0.2), (0.3, 0.6), (0.9, 0.9)]:
        weight = binom.pmf(np.arange(n1 + 1), n1, r)[:, None] * binom.pmf(np.arange(n2 + 1), n2, q)
        truth = f_p(r, q, p)
        coverage = weight[(low <= truth) & (truth <= high)].sum()
        assert coverage >= 0.8


def test_individual_risk_of_definition_3_needs_the_whole_interval():
    """AdvI = |f_p|: with f_p = 0 the absolute values of the ends never cover, and {|f| : f in the interval} does."""

    def absolute_ends(r_low, r_high, q_low, q_high, truth, p):
        ends = np.abs(f_p(r_low, q_high, p)), np.abs(f_p(r_high, q_low, p))
        return (np.minimum(*ends) <= abs(truth)) & (abs(truth) <= np.maximum(*ends))

    assert exact_coverage(0.2, 0.2, 0.5, 200, 0.0125, absolute_ends) < 1e-12
    assert exact_coverage(0.2, 0.2, 0.5, 200, 0.0125, inside) > 0.95
    table = wi.audit(answers([20, 80]), answers([22, 78]), rng=0).individual
    _, f_low, f_high = table.signed_advantage()
    value, low, high = table.advantage()
    assert f_low[0] < 0 < f_high[0]
    assert low[0] == 0.0
    assert high[0] == max(-f_low[0], f_high[0])
    assert 0 < value[0] < min(-f_low[0], f_high[0])


def test_theorem_2_interval_is_for_one_record_named_beforehand():
    """Of 200 cells of equal laws the riskiest is missed far too often; the simultaneous limits hold for it too."""
    rng, runs = np.random.default_rng(8), 30
    alone = together = 0
    for run in range(runs):
        x, y = rng.integers(0, 200, 10_000), rng.integers(0, 200, 10_000)
        table = wi.audit(x, y, kind="discrete", confidence_level=0.8, rng=run).individual
        top = int(np.argmax(table.risk))
        alone += table.lower[top] > 0.5
        together += table.simultaneous_lower[top] > 0.5
    assert binomtest(int(alone), runs, 0.2, alternative="greater").pvalue < 1e-6
    holds(together, runs, 0.2)


# --- lemma 4 and theorem 3 ---------------------------------------------------------------------------------------


def lemma_4(sample, points, delta, n, bandwidth="silverman"):
    """The printed interval of a density with ``n`` in the place of N; ∫K² = 1/(2√π) for the normal kernel."""
    estimate = density(sample, bandwidth=bandwidth)
    found = estimate(points)
    half = norm.ppf(1 - delta / 4) * np.sqrt(found / (2 * math.sqrt(math.pi) * n * estimate.bandwidth[0]))
    return found - half, found + half


def lemma_4_misses(draw, truth, point, n, runs, *, as_n=None, bandwidth="silverman"):
    rng, misses = np.random.default_rng([n, runs, 4]), 0
    for _ in range(runs):
        low, high = lemma_4(draw(rng, n), [point], 0.05, n if as_n is None else as_n, bandwidth)
        misses += not low[0] <= truth <= high[0]
    return misses


def peak(rng, n):
    """A fifth of N(0, 0.01²) in N(0, 1)."""
    return rng.normal(0, np.where(rng.random(n) < 0.2, 0.01, 1.0))


PEAK_AT_ZERO = 0.8 * norm.pdf(0) + 0.2 * norm.pdf(0, scale=0.01)


def test_lemma_4_holds_for_a_smooth_density_and_a_small_bandwidth():
    """Undersmoothed (h = N^-⅓, far below N^-⅕) the bias vanishes and the misses are near the nominal 2.5 %."""
    misses = lemma_4_misses(
        lambda rng, n: rng.normal(size=n), norm.pdf(0.5), 0.5, 4000, 300, bandwidth=4000 ** (-1 / 3)
    )
    holds(misses, 300, 0.05)


def test_lemma_4_printed_covers_nothing_on_a_narrow_peak():
    """The bias is ignored: a peak that Silverman's bandwidth smooths away is missed in every run (nominal 2.5 %)."""
    assert lemma_4_misses(peak, PEAK_AT_ZERO, 0.0, 2000, 100) == 100


def test_lemma_4_printed_takes_n_where_the_size_of_the_side_is_meant():
    """With p = .1 the members are N₁ = N/10: with N the interval is √10 too narrow, and half are missed."""
    n1, bandwidth = 1000, 1000 ** (-1 / 3)
    normal = (lambda rng, n: rng.normal(size=n), norm.pdf(0.5), 0.5, n1, 300)
    holds(lemma_4_misses(*normal, as_n=n1, bandwidth=bandwidth), 300, 0.05)
    printed = lemma_4_misses(*normal, as_n=10 * n1, bandwidth=bandwidth)
    assert binomtest(printed, 300, 0.3, alternative="greater").pvalue < 1e-6  # about 2Φ(-2.24/√10) = .48


@pytest.mark.parametrize(("z", "p"), [(0.5, 0.5), (1.5, 0.2), (-1.0, 0.6)])
def test_theorem_3_part_1_consistent(z, p):
    """f̂ from kernel densities of N(1, 1) and N(0, 1): the error falls with N, below .02 at 400,000 records."""
    truth = f_p(norm.pdf(z - 1), norm.pdf(z), p)
    errors = []
    for n in (400, 400_000):
        found = []
        for run in range(20 if n == 400 else 2):
            rng = np.random.default_rng([n, run])
            r, q = (density(rng.normal(shift, 1, n // 2))([z])[0] for shift in (1, 0))
            found.append(f_p(r, q, p) - truth)
        errors.append(math.sqrt(np.mean(np.square(found))))
    assert errors[1] < 0.02
    assert errors[1] < errors[0] / 2


def test_theorem_3_part_2_printed_covers_nothing_on_a_narrow_peak():
    """Members of the peak against N(0, 1), z at the peak: f_p is far above both ends in every run (nominal 95 %)."""
    rng, runs, misses = np.random.default_rng(12), 60, 0
    truth = f_p(PEAK_AT_ZERO, norm.pdf(0), 0.5)
    for _ in range(runs):
        r_low, r_high = lemma_4(peak(rng, 2000), [0.0], 0.05, 2000)
        q_low, q_high = lemma_4(rng.normal(size=2000), [0.0], 0.05, 2000)
        misses += not f_p(r_low, q_high, 0.5)[0] <= truth <= f_p(r_high, q_low, 0.5)[0]
    assert misses == runs


def test_theorem_3_corrected_cells_fixed_on_other_data():
    """The library's limits are for the cell of the answer, not for a density: they hold on the same narrow peak."""
    rng, runs, misses = np.random.default_rng(13), 150, 0
    for run in range(runs):
        inside, outside = peak(rng, 900), rng.normal(size=900)
        table = wi.audit(inside, outside, rng=run, confidence_level=0.8).individual
        values = np.concatenate([inside, outside])
        here = int(np.argmin(np.abs(values)))
        # A cell begins at its smallest record: the edges are records of the fit part.
        above = table.cell > table.cell[here]
        first = table.cell[here] == table.cell.min()
        start = -np.inf if first else values[table.cell == table.cell[here]].min()
        ends = [start, values[above].min() if above.any() else np.inf]
        q = np.diff(norm.cdf(ends))[0]
        r = 0.8 * q + 0.2 * np.diff(norm.cdf(ends, scale=0.01))[0]
        _, low, high = table.signed_advantage()
        misses += not low[here] <= f_p(r, q, 0.5) <= high[here]
    holds(misses, runs, 0.2)


# --- theorem 4 and definition 6 ----------------------------------------------------------------------------------


def definition_6(metric, rho, accuse):
    """The metric of one guess given Q = Q(z₀), from TP, FP, FN and TN of the conditional law."""
    rho, accuse = np.asarray(rho), np.asarray(accuse, dtype=float)
    acquit = 1 - accuse
    cells = np.array([1.0 + 0 * rho, accuse * rho, accuse * (1 - rho), acquit * rho, acquit * (1 - rho)])
    return np.dot(metric.a, cells) / np.dot(metric.b, cells)


def equation_18(metric, r, q, p, t):
    a0, a11, a10, a01, a00 = metric.a
    b0, b11, b10, b01, b00 = metric.b
    c1, c2, c3, c4 = a0 + a01, a0 + a00, a11 - a01, a10 - a00
    d1, d2, d3, d4 = b0 + b01, b0 + b00, b11 - b01, b10 - b00
    accuse = float((1 - t) * p * r > t * (1 - p) * q)
    top = c1 * r * p + c2 * q * (1 - p) + accuse * (c3 * r * p + c4 * q * (1 - p))
    return top / (d1 * r * p + d2 * q * (1 - p) + accuse * (d3 * r * p + d4 * q * (1 - p)))


@given(st.integers(1, 99), st.integers(1, 99), st.floats(0.05, 0.95), st.sampled_from(["accuracy", "AM", "made up"]))
def test_theorem_4_part_1_equation_18_is_definition_6(x, y, p, name):
    """Equation 18 with r̂ and q̂ is the metric given the answer; the library's value is the same."""
    am = RatioMetric((0, 1 / (2 * p), 0, 0, 1 / (2 * (1 - p))), (1, 0, 0, 0, 0), name="AM")
    metric = {"accuracy": ACCURACY, "AM": am, "made up": CURVED}[name]
    table = wi.audit(answers([x, 100 - x]), answers([y, 100 - y]), prior=p, rng=0).individual
    t = metric.threshold(table.roc.hull(), p)
    r, q = x / 100, y / 100
    rho = p * r / (p * r + (1 - p) * q)
    if abs(rho - t) < 1e-9:
        return
    expected = equation_18(metric, r, q, p, t)
    assert definition_6(metric, rho, rho > t) == pytest.approx(expected, abs=1e-12)
    assert table.value(metric)[0][0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("metric", [ACCURACY, TPR, TNR], ids=lambda m: m.name)
def test_theorem_4_remark_printed_constants_of_accuracy_recall_and_specificity_do_not_vanish(metric):
    """ "c3 = c4 = d3 = d4 = 0" is false of all three; what they share is d3 = d4 = 0 and lemma 2's threshold."""
    _, a11, a10, a01, a00 = metric.a
    _, b11, b10, b01, b00 = metric.b
    assert (a11 - a01, a10 - a00) == {"accuracy": (1, -1), "TPR": (1, 0), "TNR": (0, -1)}[metric.name]
    assert (b11 - b01, b10 - b00) == (0, 0)


@each("p", [0.2, 0.5])
def test_theorem_4_condition_2_corrected(p):
    """d3 = d4 = 0 and lemma 2's t: both guesses are worth the same at ρ = t, so condition 2 may be waived."""
    am = RatioMetric((0, 1 / (2 * p), 0, 0, 1 / (2 * (1 - p))), (1, 0, 0, 0, 0), name="AM")
    for metric in (ACCURACY, am, wi.risks.weighted_accuracy(0.3)):
        t = metric.threshold()
        assert definition_6(metric, t, True) == pytest.approx(definition_6(metric, t, False), abs=1e-14)
    # F1 (lemma 3) jumps at its threshold: there the plug-in value does not converge, and condition 2 is needed.
    t = 0.4
    f1 = RatioMetric((0, 2, 0, 0, 0), (0, 2, 1, 1, 0), name="F1")
    assert definition_6(f1, t, True) == pytest.approx(2 * t / (1 + t))
    assert definition_6(f1, t, False) == 0.0


def test_theorem_4_condition_2_is_needed_for_curved_metrics():
    """At ρ = t equation 18 of a curved metric goes on jumping between two values at a million records."""
    r = q = 0.3
    t = p = 0.5
    rng, values = np.random.default_rng(14), []
    for _ in range(200):
        x, y = rng.binomial(500_000, [r, q]) / 500_000
        values.append(equation_18(CURVED, x, y, p, t))
    accused = definition_6(CURVED, t, True)
    acquitted = definition_6(CURVED, t, False)
    near = [np.abs(np.array(values) - v) < 0.01 for v in (accused, acquitted)]
    assert abs(accused - acquitted) > 0.1
    assert np.all(near[0] ^ near[1])
    assert 50 < near[0].sum() < 150


def accuracy_of(rho):
    return np.maximum(rho, 1 - rho)


def test_theorem_4_part_2_printed_end_points_miss_the_bottom_of_the_v():
    """Accuracy given Q is max(ρ, 1-ρ). At ρ = ½ the values at the two ends never cover ½; the whole interval does."""

    def ends(r_low, r_high, q_low, q_high, truth, p):
        rho = [(1 + f_p(*pair, p)) / 2 for pair in ((r_low, q_high), (r_high, q_low))]
        values = accuracy_of(rho[0]), accuracy_of(rho[1])
        target = accuracy_of((1 + truth) / 2)
        return (np.minimum(*values) <= target) & (target <= np.maximum(*values))

    assert exact_coverage(0.3, 0.3, 0.5, 200, 0.0125, ends) < 1e-12
    table = wi.audit(answers([30, 70]), answers([31, 69]), rng=0).individual
    value, low, high = table.value(ACCURACY)
    assert low[0] == 0.5 <= value[0] <= high[0]
    assert high[0] == pytest.approx(max(table.upper[0], 1 - table.lower[0]), abs=1e-12)
    assert min(accuracy_of(table.lower[0]), accuracy_of(table.upper[0])) > 0.52


@given(st.integers(0, 40), st.integers(0, 40), st.floats(0.1, 0.9), st.floats(0.05, 0.95))
def test_theorem_4_part_2_corrected_extremes_over_the_whole_interval(x, y, p, t):
    """The limits are the least and the largest value over all ρ in its interval, for either guess at the kink."""
    if x + y == 0:
        return
    table = wi.audit(answers([x, 50 - x]), answers([y, 50 - y]), prior=p, rng=0).individual
    for metric in (ACCURACY, CURVED):
        _, low, high = table.value(metric, threshold=t)
        grid = np.linspace(table.lower[0], table.upper[0], 2001)
        if x == 0:
            grid = np.linspace(table.lower[50], table.upper[50], 2001)
        here = 50 if x == 0 else 0
        values = definition_6(metric, grid, grid > t)
        assert low[here] <= values.min() + 1e-12
        assert high[here] >= values.max() - 1e-12
        reached = [definition_6(metric, t, guess) for guess in (False, True)] if grid[0] <= t <= grid[-1] else []
        everything = np.concatenate([values, reached])
        assert low[here] == pytest.approx(everything.min(), abs=1e-9)
        assert high[here] == pytest.approx(everything.max(), abs=1e-9)


def test_theorem_4_part_2_exact_coverage_at_the_kink():
    """Over all pairs of counts, the library's limits hold the accuracy given Q with at least 1-δ = .8."""
    n, p, r = 8, 0.5, 0.4
    weight = binom.pmf(np.arange(n + 1), n, r)
    for q in (0.4, 0.2):
        truth, covered = accuracy_of(r * p / (r * p + q * (1 - p))), 0.0
        other = binom.pmf(np.arange(n + 1), n, q)
        for x in range(1, n + 1):
            for y in range(n + 1):
                table = wi.audit(answers([x, n - x]), answers([y, n - y]), confidence_level=0.8, rng=0).individual
                _, low, high = table.value(ACCURACY)
                covered += weight[x] * other[y] * (low[0] - 1e-12 <= truth <= high[0] + 1e-12)
        assert covered >= 0.8

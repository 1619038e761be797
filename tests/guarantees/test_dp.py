"""PureDP, ApproxDP and GaussianDP: golden numbers, the trade-off region by brute force, mpmath, and the ends."""

import json
import math
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import whosin as wi
from whosin.errors import ImplicationError
from whosin.guarantees.dp import shifted_normal_excess

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text(encoding="utf-8"))
INF = math.inf

epsilons = st.floats(0.0, 30.0)
deltas = st.floats(0.0, 1.0)
priors = st.floats(0.001, 0.999)


# --- golden numbers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "name"), [(1.0, "acc_eps1"), (2.0, "acc_eps2")])
def test_thudi_accuracies(epsilon, name):
    assert wi.PureDP(epsilon).accuracy() == pytest.approx(GOLDEN["thudi"][name], rel=1e-15)
    assert wi.PureDP(epsilon).posterior(0.5)[1] == pytest.approx(GOLDEN["thudi"][name], rel=1e-15)


@pytest.mark.parametrize(("epsilon", "name"), [(0.1, "acc_eps01"), (7.0, "acc_eps7"), (0.123, "acc_eps_0123")])
def test_lowy_accuracies(epsilon, name):
    assert wi.PMP(epsilon).accuracy() == pytest.approx(GOLDEN["lowy"][name], rel=1e-15)
    assert wi.PureDP(epsilon).accuracy() == pytest.approx(GOLDEN["lowy"][name], rel=1e-15)


@pytest.mark.parametrize(("epsilon", "name"), [(1.0, "tanh_half"), (2.0, "tanh_1"), (10.0, "tanh_5")])
def test_mace_advantages(epsilon, name):
    assert wi.PureDP(epsilon).advantage == pytest.approx(GOLDEN["mace"][name], rel=1e-15)


@pytest.mark.parametrize(("key", "eta"), GOLDEN["izzo"]["thm4_eta"].items())
def test_izzo_accuracies(key, eta):
    epsilon, delta = (float(part.split("=")[1]) for part in key.split(","))
    assert wi.ApproxDP(epsilon, delta).accuracy() == pytest.approx(0.5 + eta, rel=1e-15)
    assert wi.ApproxDP(epsilon, delta).advantage == pytest.approx(2.0 * eta, abs=1e-15)


def test_positive_predictive_value_at_a_small_prior():
    """Thudi et al.: 2-DP lifts a belief of 1% to 6.9% at most, while the accuracy stays at 99%."""
    assert wi.PureDP(2.0).posterior(0.01)[1] == pytest.approx(GOLDEN["thudi"]["pos_acc_eps2_p001"], rel=1e-15)
    assert wi.PureDP(2.0).accuracy(0.01) == 0.99


def test_gaussian_accuracies():
    """Φ(1/(2σ)) at the noise that Thudi et al. print, and at the least noise for (1, 1e-5)-DP."""
    golden = GOLDEN["thudi"]
    printed, least = golden["noise_printed"], golden["noise_balle_wang_sens1"]
    assert wi.GaussianDP(1 / printed).accuracy() == pytest.approx(golden["acc_at_4.0412"], rel=1e-15)
    assert wi.GaussianDP(1 / least).accuracy() == pytest.approx(golden["acc_at_balle_wang"], rel=1e-15)
    assert wi.GaussianDP(1 / least).implies(wi.ApproxDP, delta=1e-5).epsilon == pytest.approx(1.0, rel=1e-12)
    assert wi.GaussianDP(1 / printed).roc.divergence(math.e) == pytest.approx(
        golden["delta_at_eps1_sigma4.0412"], rel=1e-12
    )


def test_gaussian_mechanism_of_sensitivity_two():
    least = GOLDEN["thudi"]["noise_balle_wang_sens2"]
    assert wi.GaussianDP(2 / least).implies(wi.ApproxDP, delta=1e-5).epsilon == pytest.approx(1.0, rel=1e-12)
    assert wi.GaussianDP(1 / least).implies(wi.ApproxDP, delta=1e-5, adjacency="replace").epsilon == pytest.approx(
        1.0, rel=1e-12
    )


# --- closed forms ----------------------------------------------------------------------------------------------------


@given(epsilons, deltas, st.floats(0.0, 1.0))
def test_the_curve_is_the_trade_off_region(epsilon, delta, fpr):
    """Kairouz et al. 2015: TPR ≤ min(e^ε·FPR + δ, 1 - e^{-ε}(1 - δ - FPR), 1)."""
    left = math.exp(epsilon) * fpr + delta
    right = 1.0 - math.exp(-epsilon) * max(0.0, 1.0 - delta - fpr)
    assert wi.ApproxDP(epsilon, delta).tpr_at(fpr) == pytest.approx(min(left, right, 1.0), rel=1e-12, abs=1e-15)


@given(epsilons, deltas, priors)
def test_accuracy_in_closed_form(epsilon, delta, prior):
    expected = max(
        1.0 - prior + prior * delta, prior + (1.0 - prior) * delta, delta + (1.0 - delta) / (1.0 + math.exp(-epsilon))
    )
    assert wi.ApproxDP(epsilon, delta).accuracy(prior) == pytest.approx(expected, rel=1e-12)


@given(epsilons, deltas)
def test_advantage_in_closed_form(epsilon, delta):
    """Humphries et al. 2020: (e^ε - 1 + 2δ)/(e^ε + 1)."""
    expected = (math.expm1(epsilon) + 2.0 * delta) / (math.exp(epsilon) + 1.0)
    assert wi.ApproxDP(epsilon, delta).advantage == pytest.approx(expected, rel=1e-12, abs=1e-300)


@given(epsilons, priors)
def test_pure_dp_is_approximate_dp_without_delta(epsilon, prior):
    pure, approximate = wi.PureDP(epsilon), wi.ApproxDP(epsilon, 0.0)
    assert pure.delta == 0.0
    assert np.array_equal(pure.roc.vertices, approximate.roc.vertices)
    assert pure.posterior(prior) == approximate.posterior(prior)
    assert pure.advantage == approximate.advantage
    assert pure.log_likelihood_ratios() == approximate.log_likelihood_ratios() == (-epsilon, epsilon)


@given(epsilons, priors)
def test_posterior_is_a_shift_of_the_log_odds(epsilon, prior):
    low, high = wi.PureDP(epsilon).posterior(prior)
    assert high == pytest.approx(1.0 / (1.0 + math.exp(-epsilon) * (1.0 - prior) / prior), rel=1e-12)
    assert low == pytest.approx(1.0 / (1.0 + math.exp(epsilon) * (1.0 - prior) / prior), rel=1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.2), (0.5, 0.05), (1.0, 0.0), (2.0, 0.01), (3.0, 0.3)])
def test_the_curve_is_the_best_any_close_pair_allows(epsilon, delta):
    """Maximise TPR at a given FPR over all pairs of laws on four outputs that are (ε, δ)-close both ways.

    A linear program over (P, Q): the attacker accuses on outputs 0 and 1. Closeness for every event is a set of linear
    inequalities, one for each subset of outputs and direction.
    """
    outputs, bound = 4, math.exp(epsilon)
    rows = []
    for event in range(2**outputs):
        inside = np.array([(event >> i) & 1 for i in range(outputs)], dtype=float)
        rows += [np.concatenate([inside, -bound * inside]), np.concatenate([-bound * inside, inside])]
    accused = np.array([1.0, 1.0, 0.0, 0.0])
    both_sum_to_one = np.array([[1.0] * 4 + [0.0] * 4, [0.0] * 4 + [1.0] * 4])
    for fpr in (0.0, 0.01, 0.1, 0.3, 0.6, 0.95, 1.0):
        solved = linprog(
            np.concatenate([-accused, np.zeros(4)]),
            A_ub=np.array(rows),
            b_ub=np.full(len(rows), delta),
            A_eq=np.vstack([both_sum_to_one, np.concatenate([np.zeros(4), accused])]),
            b_eq=[1.0, 1.0, fpr],
            bounds=(0.0, 1.0),
        )
        assert solved.status == 0
        assert wi.ApproxDP(epsilon, delta).tpr_at(fpr) == pytest.approx(-solved.fun, abs=1e-9)


@given(epsilons, deltas, st.floats(0.0, 1e4))
def test_divergence_is_the_largest_gap_over_the_corners(epsilon, delta, gamma):
    roc = wi.ApproxDP(epsilon, delta).roc
    x, y = roc.vertices.T
    assert roc.divergence(gamma) == pytest.approx(max(float(np.max(y - gamma * x)), 0.0, 1.0 - gamma), abs=1e-12)


@given(st.floats(0.0, 20.0), st.floats(0.0, 0.9))
def test_divergence_at_e_to_epsilon_is_delta(epsilon, delta):
    roc = wi.ApproxDP(epsilon, delta).roc
    for curve in (roc, roc.reversed()):
        assert curve.divergence(math.exp(epsilon)) == pytest.approx(delta, abs=1e-15 * (1 + math.exp(epsilon)))


@given(st.floats(0.0, 20.0), st.floats(0.0, 20.0), st.floats(0.0, 0.5), st.floats(0.0, 0.5))
def test_weaker_parameters_give_a_higher_curve(epsilon, more, delta, extra):
    weak, strong = wi.ApproxDP(epsilon + more, delta + extra), wi.ApproxDP(epsilon, delta)
    assert weak.roc.dominates(strong.roc, 1e-15)


# --- (ε, δ) of a Gaussian, for every size of μ and δ -----------------------------------------------------------------


def gaussian_excess(mu, epsilon):
    """E_{e^ε} of two unit normals μ apart, with as many digits as the subtraction takes away and 40 more."""
    with mpmath.workdps(40 + round(max(0.0, -math.log10(mu)))):
        m, t = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(m / 2 - t / m) - mpmath.exp(t) * mpmath.ncdf(-m / 2 - t / m)


@pytest.mark.parametrize("mu", [1e-300, 1e-200, 1e-100, 1e-30, 1e-12, 1e-9, 1e-6, 1e-3, 0.09, 0.11, 0.4, 1.0, 9.0, 1e2])
@pytest.mark.parametrize("adjacency", ["add_remove", "replace"])
def test_epsilon_of_a_gaussian_is_never_below_the_truth(mu, adjacency):
    shift = 2.0 * mu if adjacency == "replace" else mu
    for delta in (1e-300, 1e-250, 1e-150, 1e-100, 1e-30, 1e-15, 1e-9, 1e-6, 1e-3, 0.1, 0.5):
        epsilon = wi.GaussianDP(mu).implies(wi.ApproxDP, delta=delta, adjacency=adjacency).epsilon
        assert gaussian_excess(shift, epsilon) <= delta
        assert epsilon == 0.0 or gaussian_excess(shift, epsilon * (1.0 - 1e-9)) > delta


@pytest.mark.parametrize("mu", [5e-324, 1e-310, 1e6, 1e10, 1e200])
@pytest.mark.parametrize("delta", [5e-324, 1e-310, 1e-5, 1.0 - 1e-16])
def test_epsilon_of_a_gaussian_at_the_ends(mu, delta):
    """No warning, no endless search: infinite only where μ²/2 is no float, and close to it for a large μ."""
    epsilon = wi.GaussianDP(mu).implies(wi.ApproxDP, delta=delta).epsilon
    if mu > 1.0:
        assert epsilon == pytest.approx(mu * mu / 2.0, rel=1e-4)
    else:
        assert 0.0 <= epsilon <= 40.0 * mu


def test_epsilon_of_a_tiny_gaussian():
    assert wi.GaussianDP(1e-12).implies(wi.ApproxDP, delta=1e-30).epsilon == pytest.approx(8.509482e-12, rel=1e-6)
    assert wi.GaussianDP(1e-12).implies(wi.PMP, delta=1e-30).epsilon > 2 * 8.509482e-12
    assert wi.DPSGD(1e12, 1.0, 1).implies(wi.ApproxDP, delta=1e-30).epsilon == pytest.approx(8.509482e-12, rel=1e-6)


@pytest.mark.parametrize("mu", [1e-300, 1e-12, 1e-4, 0.09, 0.11, 3.0])
def test_divergence_of_a_gaussian_keeps_its_digits(mu):
    for steps in (-20.0, -0.5, 0.0, 0.5, 3.0, 10.0, 30.0):
        found, exact = shifted_normal_excess(mu, np.array([steps * mu]))[0], gaussian_excess(mu, steps * mu)
        assert exact <= found <= exact * (1 + mpmath.mpf(1e-11)) + 1e-323


# --- the Gaussian curve against mpmath -------------------------------------------------------------------------------


def exact_gaussian_tpr(mu, fpr):
    """Φ(Φ⁻¹(FPR) + μ) with 40 digits."""
    with mpmath.workdps(40):
        quantile = mpmath.findroot(lambda z: mpmath.ncdf(z) - mpmath.mpf(fpr), start_of(fpr))
        return mpmath.ncdf(quantile + mpmath.mpf(mu))


def start_of(fpr):
    from scipy.special import ndtri

    return mpmath.mpf(float(ndtri(fpr)))


@pytest.mark.parametrize("mu", [1e-3, 0.1, 0.5, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("fpr", [1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.5, 0.9, 0.999])
def test_gaussian_curve_to_twelve_digits(mu, fpr):
    exact = exact_gaussian_tpr(mu, fpr)
    assert wi.GaussianDP(mu).tpr_at(fpr) == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("mu", [1e-3, 0.1, 0.5, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("fpr", [1e-12, 1e-9, 1e-6, 1e-3])
def test_gaussian_curve_read_the_other_way(mu, fpr):
    """The mirror of a Gaussian curve is the curve itself, and the inverse undoes it."""
    roc = wi.GaussianDP(mu).roc
    exact = float(exact_gaussian_tpr(mu, fpr))
    assert roc.fpr(exact) == pytest.approx(fpr, rel=1e-10)
    assert roc.reversed().tpr(fpr) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("mu", [1e-4, 0.01, 0.3, 1.0, 4.0, 10.0])
@pytest.mark.parametrize("log_gamma", [-3.0, -0.5, 0.0, 1e-6, 0.5, 3.0, 12.0])
def test_gaussian_divergence_against_mpmath(mu, log_gamma):
    with mpmath.workdps(60):
        m, t = mpmath.mpf(mu), mpmath.mpf(log_gamma)
        exact = mpmath.ncdf(m / 2 - t / m) - mpmath.exp(t) * mpmath.ncdf(-m / 2 - t / m)
        exact = max(exact, 0, 1 - mpmath.exp(t))
    found = wi.GaussianDP(mu).roc.divergence(math.exp(log_gamma))
    assert found == pytest.approx(float(exact), rel=1e-10, abs=1e-15)


@pytest.mark.parametrize("mu", [1e-12, 1e-6, 0.01, 1.0, 8.0, 30.0])
def test_gaussian_advantage_against_mpmath(mu):
    with mpmath.workdps(40):
        exact = mpmath.erf(mpmath.mpf(mu) / mpmath.sqrt(8))
    assert wi.GaussianDP(mu).advantage == pytest.approx(float(exact), rel=1e-15)
    assert wi.GaussianDP(mu).accuracy() == pytest.approx(0.5 + float(exact) / 2, rel=1e-15)


def exact_epsilon(mu, delta):
    """Smallest ε of (ε, δ)-DP of the Gaussian curve, by bisection with 50 digits."""
    with mpmath.workdps(50):
        m, d = mpmath.mpf(mu), mpmath.mpf(delta)
        low, high = mpmath.mpf(0), mpmath.mpf(2000)
        if mpmath.ncdf(m / 2) - mpmath.ncdf(-m / 2) <= d:
            return mpmath.mpf(0)
        for _ in range(150):
            t = (low + high) / 2
            if mpmath.ncdf(m / 2 - t / m) - mpmath.exp(t) * mpmath.ncdf(-m / 2 - t / m) > d:
                low = t
            else:
                high = t
        return high


@pytest.mark.parametrize("mu", [1e-3, 0.1, 0.3, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("delta", [0.2, 1e-2, 1e-5, 1e-8, 1e-12])
def test_gaussian_epsilon_for_delta_is_exact_and_never_too_small(mu, delta):
    exact = exact_epsilon(mu, delta)
    found = wi.GaussianDP(mu).implies(wi.ApproxDP, delta=delta).epsilon
    assert found == pytest.approx(float(exact), rel=1e-8, abs=1e-12)
    assert found >= float(exact) * (1 - 1e-10)


@given(st.floats(0.01, 10.0), st.floats(1e-9, 0.5))
def test_gaussian_epsilon_keeps_the_curve_below(mu, delta):
    gaussian = wi.GaussianDP(mu)
    line = gaussian.implies(wi.ApproxDP, delta=delta)
    assert gaussian.roc.divergence(math.exp(line.epsilon)) <= delta * (1 + 1e-14) + 1e-16
    assert line.roc.dominates(gaussian.roc, 1e-14)


# --- the ends --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [700.0, 720.0, 745.0, 1000.0, 1e6, 1e308, INF])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 1.0])
def test_huge_epsilons_neither_overflow_nor_turn_to_nan(epsilon, delta):
    for guarantee in (wi.ApproxDP(epsilon, delta), wi.PMP(epsilon, delta)):
        numbers = [
            guarantee.accuracy(0.3),
            guarantee.advantage,
            *guarantee.tpr_at([1e-12, 0.1, 1.0]),
            guarantee.posterior(0.3)[1],
            guarantee.risk("ppv", 0.3),
            guarantee.risk("npv", 0.3),
        ]
        assert numbers == pytest.approx([1.0] * len(numbers), abs=1e-15)
        assert guarantee.posterior(0.3)[0] == pytest.approx(0.0, abs=1e-300)
        assert "nan" not in guarantee.explain()


def test_delta_one_is_no_promise():
    guarantee = wi.ApproxDP(0.0, 1.0)
    assert guarantee.accuracy() == guarantee.advantage == guarantee.tpr_at(0.0) == 1.0
    assert guarantee.posterior(0.2) == (0.0, 1.0)


def test_epsilon_zero_with_delta_is_a_parallel_line():
    guarantee = wi.ApproxDP(0.0, 0.25)
    assert guarantee.tpr_at([0.0, 0.5, 0.75, 1.0]) == pytest.approx([0.25, 0.75, 1.0, 1.0], abs=1e-15)
    assert guarantee.advantage == 0.25
    assert guarantee.posterior(0.5) == (0.0, 1.0)


@pytest.mark.parametrize("delta", [1e-5, 1e-17, 1e-300, 5e-324])
def test_any_delta_above_zero_frees_the_posterior(delta):
    assert wi.ApproxDP(1.0, delta).posterior(0.3) == (0.0, 1.0)
    assert wi.PMP(1.0, delta).posterior(0.3) == (0.0, 1.0)
    assert wi.ApproxDP(1.0, delta).risk("ppv", 0.3) == 1.0
    assert wi.PMP(1.0, delta).risk("ppv", 0.3) == 1.0


def test_gaussian_ends():
    assert wi.GaussianDP(0.0).tpr_at(0.3) == 0.3
    assert wi.GaussianDP(INF).tpr_at(0.0) == 1.0
    assert wi.GaussianDP(1.0).tpr_at([0.0, 1.0]) == pytest.approx([0.0, 1.0], abs=0.0)
    assert wi.GaussianDP(1.0).posterior(0.3) == (0.0, 1.0)
    assert wi.GaussianDP(100.0).tpr_at(1e-12) == 1.0
    assert wi.GaussianDP(1e-9).advantage == pytest.approx(1e-9 / math.sqrt(2 * math.pi), rel=1e-12)


# --- worlds of the posterior -----------------------------------------------------------------------------------------


@given(epsilons, priors)
def test_posterior_in_a_fixed_size_world(epsilon, prior):
    """Replace-one DP carries over as it is; add/remove pays two steps."""
    replaced = wi.PureDP(epsilon, "replace").posterior(prior, world="fixed_size")
    added = wi.PureDP(epsilon).posterior(prior, world="fixed_size")
    assert replaced == wi.PureDP(epsilon).posterior(prior, world="independent")
    assert added == pytest.approx(wi.PureDP(2 * epsilon).posterior(prior), rel=1e-12)


@pytest.mark.parametrize(
    "guarantee",
    [
        wi.PureDP(1.0, "replace"),
        wi.ApproxDP(1.0, 0.1, "replace"),
        wi.GaussianDP(1.0, "replace"),
        wi.PureDP(0.0, "replace"),
    ],
    ids=str,
)
def test_replace_one_says_nothing_about_independent_records(guarantee):
    for arguments in ({}, {"world": "independent"}):
        with pytest.raises(ImplicationError, match=r"\|D\|.*fixed_size"):
            guarantee.posterior(0.3, **arguments)
    low, high = guarantee.posterior(0.3, world="fixed_size")
    assert low <= 0.3 <= high


def test_the_size_alone_shows_why():
    """A(D) = |D| is 0-DP under replace, and gives the only uncertain record away."""
    size = lambda records: {len(records): 1.0}  # noqa: E731
    assert wi.worlds.uniform_subsets(range(4), 2).play(size).dp() == wi.PureDP(0.0, "replace")
    assert wi.worlds.independent("ab", [1.0, 0.5]).play(size).posterior("b", 2) == 1.0


def test_the_adjacency_does_not_change_the_curve():
    for make in (lambda a: wi.PureDP(1.0, a), lambda a: wi.ApproxDP(1.0, 0.1, a), lambda a: wi.GaussianDP(1.0, a)):
        added, replaced = make("add_remove"), make("replace")
        rates = np.linspace(0.0, 1.0, 101)
        assert np.array_equal(added.tpr_at(rates), replaced.tpr_at(rates))
        assert added.accuracy(0.2) == replaced.accuracy(0.2)
        assert "add/remove" in added.assumes[0]
        assert "replace one" in replaced.assumes[0]


# --- two steps -------------------------------------------------------------------------------------------------------


@given(st.floats(0.0, 10.0), st.floats(0.0, 0.5))
def test_replace_roc_is_the_curve_after_itself(epsilon, delta):
    guarantee = wi.ApproxDP(epsilon, delta)
    two_steps = guarantee.replace_roc()
    for fpr in (0.0, 1e-3, 0.1, 0.5, 0.9, 1.0):
        expected = guarantee.tpr_at(guarantee.tpr_at(fpr))
        assert two_steps.tpr(fpr) == pytest.approx(expected, abs=1e-12)
    assert wi.ApproxDP(epsilon, delta, "replace").replace_roc().tpr(0.1) == guarantee.tpr_at(0.1)


def test_replace_roc_of_a_gaussian_doubles_mu():
    rates = np.geomspace(1e-9, 1.0, 50)
    assert wi.GaussianDP(0.7).replace_roc().tpr(rates) == pytest.approx(wi.GaussianDP(1.4).tpr_at(rates), rel=1e-15)
    assert wi.GaussianDP(0.7, "replace").replace_roc().tpr(0.1) == wi.GaussianDP(0.7).tpr_at(0.1)


@given(st.floats(0.0, 6.0), st.floats(0.0, 0.3))
def test_two_steps_stay_below_the_group_privacy_line(epsilon, delta):
    """(ε, δ) twice is at most (2ε, (1 + e^ε)δ)."""
    line = wi.ApproxDP(2 * epsilon, min(1.0, (1 + math.exp(epsilon)) * delta))
    assert line.roc.dominates(wi.ApproxDP(epsilon, delta).replace_roc(), 1e-12)


def test_two_steps_of_pure_dp_have_total_variation_below_one_minus_e_to_minus_epsilon():
    for epsilon in (0.1, 1.0, 3.0):
        two_steps = wi.PureDP(epsilon).replace_roc()
        assert two_steps.divergence(1.0) == pytest.approx(-math.expm1(-epsilon), rel=1e-12)
        assert two_steps.divergence(1.0) < wi.PureDP(2 * epsilon).advantage

"""Calibration: the returned guarantee keeps its target (an inequality, no tolerance), and a bolder one would not."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import whosin as wi
from whosin import calibrate
from whosin.errors import CalibrationError

INF = math.inf
priors = st.floats(0.005, 0.995)
deltas = st.one_of(st.just(0.0), st.floats(1e-12, 0.2))


def blind(prior):
    return max(prior, 1.0 - prior)


# --- ε ---------------------------------------------------------------------------------------------------------------


def bolder(guarantee, factor):
    """The same guarantee with a larger ε."""
    epsilon = guarantee.epsilon * factor
    return wi.PureDP(epsilon) if isinstance(guarantee, wi.PureDP) else wi.ApproxDP(epsilon, guarantee.delta)


@given(priors, deltas, st.floats(0.0, 1.0))
def test_accuracy_is_kept(prior, delta, share):
    floor = wi.ApproxDP(0.0, delta).accuracy(prior)
    target = floor + share * (1.0 - floor)
    assume(floor + 1e-9 < target < 1.0 - 1e-9)
    found = calibrate.epsilon(accuracy=target, prior=prior, delta=delta)
    assert type(found) is (wi.PureDP if delta == 0.0 else wi.ApproxDP)
    assert found.delta == delta
    assert found.adjacency == "add_remove"
    assert found.accuracy(prior) <= target
    assert bolder(found, 1 + 1e-6).accuracy(prior) > target


@given(deltas, st.floats(0.0, 1.0))
def test_advantage_is_kept(delta, share):
    target = delta + share * (1.0 - delta)
    assume(delta + 1e-9 < target < 1.0 - 1e-9)
    found = calibrate.epsilon(advantage=target, delta=delta)
    assert found.advantage <= target
    assert bolder(found, 1 + 1e-6).advantage > target


@given(priors, st.floats(0.0, 1.0))
def test_posterior_is_kept(prior, share):
    target = prior + share * (1.0 - prior)
    assume(prior + 1e-9 < target < 1.0 - 1e-9)
    found = calibrate.epsilon(posterior=target, prior=prior)
    assert found.posterior(prior)[1] <= target
    assert bolder(found, 1 + 1e-6).posterior(prior)[1] > target
    logit = math.log(target / (1 - target)) - math.log(prior / (1 - prior))
    assert found.epsilon == pytest.approx(logit, rel=1e-6, abs=1e-9)


@given(st.floats(1e-6, 0.9), deltas, st.floats(0.0, 1.0))
def test_tpr_at_is_kept(fpr, delta, share):
    floor = min(1.0, fpr + delta)
    target = floor + share * (1.0 - floor)
    assume(floor + 1e-9 < target < 1.0 - 1e-9)
    found = calibrate.epsilon(tpr_at=(target, fpr), delta=delta)
    assert found.tpr_at(fpr) <= target
    assert bolder(found, 1 + 1e-6).tpr_at(fpr) > target


@pytest.mark.parametrize(
    ("target", "epsilon"),
    [
        ({"accuracy": 0.6}, math.log(1.5)),
        ({"advantage": 0.2}, math.log(1.5)),
        ({"posterior": 0.75}, math.log(3.0)),
        ({"posterior": 0.05, "prior": 0.01}, math.log(0.05 / 0.95) - math.log(0.01 / 0.99)),
        ({"tpr_at": (0.1, 0.01)}, math.log(10.0)),
        ({"accuracy": 0.95, "prior": 0.9}, math.log(19.0)),
        ({"accuracy": 0.9, "prior": 0.9}, math.log(9.0)),
    ],
)
def test_closed_forms(target, epsilon):
    found = calibrate.epsilon(**target)
    assert found.epsilon == pytest.approx(epsilon, rel=1e-12)


def test_tight_to_the_last_digit():
    found = calibrate.epsilon(accuracy=0.6)
    assert found.accuracy() <= 0.6
    assert wi.PureDP(found.epsilon * (1 + 1e-14)).accuracy() > 0.6


def test_a_target_of_one_needs_no_promise():
    for target in ({"accuracy": 1.0}, {"advantage": 1.0}, {"posterior": 1.0}, {"tpr_at": (1.0, 0.3)}):
        assert calibrate.epsilon(**target) == wi.PureDP(INF)
    assert calibrate.epsilon(accuracy=1.0, delta=0.1) == wi.ApproxDP(INF, 0.1)


def test_no_false_alarms_cost_nothing_without_delta():
    """At FPR 0 every pure ε < ∞ finds nobody: the target is kept by any, up to where floats end."""
    found = calibrate.epsilon(tpr_at=(0.5, 0.0))
    assert found.tpr_at(0.0) <= 0.5
    assert found.epsilon >= 700.0


def test_the_blind_guess_itself_is_a_target():
    for target in ({"accuracy": 0.5}, {"advantage": 0.0}, {"posterior": 0.5}, {"tpr_at": (0.25, 0.25)}):
        found = calibrate.epsilon(**target)
        assert found.epsilon <= 1e-15


@pytest.mark.parametrize(
    "target",
    [
        {"accuracy": 0.49},
        {"accuracy": 0.89, "prior": 0.1},
        {"accuracy": 0.89, "prior": 0.9},
        {"posterior": 0.29, "prior": 0.3},
        {"tpr_at": (0.05, 0.1)},
        {"tpr_at": (0.0, 0.0), "delta": 0.1},
        {"advantage": 0.09, "delta": 0.1},
        {"accuracy": 0.54, "delta": 0.1},
        {"tpr_at": (0.15, 0.1), "delta": 0.1},
        {"accuracy": 0.9, "delta": 1.0},
        {"posterior": 0.9, "delta": 1e-9},
    ],
)
def test_unreachable_targets_of_epsilon(target):
    with pytest.raises(CalibrationError, match="cannot be reached"):
        calibrate.epsilon(**target)


@pytest.mark.parametrize("function", [calibrate.epsilon, calibrate.mip, lambda **k: calibrate.dpsgd(0.1, 5, **k)])
@pytest.mark.parametrize(
    "targets", [{}, {"accuracy": 0.6, "advantage": 0.2}, {"accuracy": 0.6, "tpr_at": (0.1, 0.01)}, {"accuracy": None}]
)
def test_exactly_one_target(function, targets):
    with pytest.raises(TypeError, match="exactly one target"):
        function(**targets)


@pytest.mark.parametrize("function", [calibrate.mip, lambda **k: calibrate.dpsgd(0.1, 5, **k)])
def test_targets_that_are_not_on_offer(function):
    with pytest.raises(TypeError, match="posterior"):
        function(posterior=0.6)


# --- η ---------------------------------------------------------------------------------------------------------------


@given(st.floats(0.0, 1.0), st.floats(0.02, 0.98))
def test_mip_keeps_the_accuracy(share, q):
    target = blind(q) + share * (1.0 - blind(q))
    assume(target < 1.0)
    found = calibrate.mip(accuracy=target, train_fraction=q)
    assert found.train_fraction == q
    assert found.accuracy(q) <= target
    assert found.eta == pytest.approx(target - blind(q), abs=1e-12)


@given(st.floats(0.0, 1.0))
def test_mip_keeps_the_advantage(target):
    found = calibrate.mip(advantage=target)
    assert found.advantage <= target
    assert found.eta == pytest.approx(target / 2, abs=1e-15)


@given(st.floats(0.0, 0.99), st.floats(0.0, 1.0), st.floats(0.02, 0.98))
def test_mip_keeps_the_tpr(fpr, share, q):
    floor = wi.MIP(0.0, q).tpr_at(fpr)
    target = floor + share * (1.0 - floor)
    assume(target < 1.0)
    found = calibrate.mip(tpr_at=(target, fpr), train_fraction=q)
    assert found.tpr_at(fpr) <= target
    more = found.eta * (1 + 1e-6) + 1e-9
    if more <= min(q, 1 - q):
        assert wi.MIP(more, q).tpr_at(fpr) > target


@pytest.mark.parametrize(
    "target",
    [
        {"accuracy": 0.49},
        {"accuracy": 0.69, "train_fraction": 0.3},
        {"tpr_at": (0.05, 0.1)},
        {"advantage": 0.1, "train_fraction": 0.3},
        {"tpr_at": (0.5, 0.01), "train_fraction": 0.8},
    ],
)
def test_unreachable_targets_of_mip(target):
    with pytest.raises(CalibrationError, match="cannot be reached"):
        calibrate.mip(**target)


def test_mip_golden():
    assert calibrate.mip(accuracy=0.6).eta == pytest.approx(0.1, abs=1e-15)
    assert calibrate.mip(tpr_at=(0.201, 0.001)).eta == pytest.approx(0.1, abs=1e-15)
    assert calibrate.mip(advantage=1.0) == wi.MIP(0.5)


# --- the share of records to keep ------------------------------------------------------------------------------------


@given(st.floats(0.0, 30.0), st.floats(1e-6, 1.0 - 1e-6))
def test_sampling_rate_is_safe_and_tight(epsilon, target):
    rate = calibrate.sampling_rate(epsilon, posterior=target)
    assert 0.0 < rate < 1.0
    assert wi.PureDP(epsilon).posterior(rate)[1] <= target
    more = rate * (1 + 1e-9)
    if more < 1.0 - 1e-9:
        assert wi.PureDP(epsilon).posterior(more)[1] > target
    assert rate <= target * (1 + 1e-15)


def test_sampling_rate_golden():
    """Thudi et al.: keep 1% before 2-DP training, and no belief exceeds 6.945315965638048%."""
    rate = calibrate.sampling_rate(2.0, posterior=0.06945315965638048)
    assert rate == pytest.approx(0.01, rel=1e-12)
    assert rate <= 0.01 * (1 + 1e-15)
    assert calibrate.sampling_rate(0.0, posterior=0.6) == pytest.approx(0.6, rel=1e-15)
    assert calibrate.sampling_rate(1.0, posterior=0.6) == pytest.approx(0.6 / (0.6 + 0.4 * math.e), rel=1e-14)


def test_sampling_rate_ends():
    assert calibrate.sampling_rate(1.0, posterior=1.0) == 1.0
    assert calibrate.sampling_rate(INF, posterior=1.0) == 1.0
    for epsilon in (INF, 1000.0):
        with pytest.raises(CalibrationError, match="cannot be reached"):
            calibrate.sampling_rate(epsilon, posterior=0.9)
    tiny = calibrate.sampling_rate(700.0, posterior=0.5)
    assert 0.0 < tiny < 1e-300


# --- DP-SGD ----------------------------------------------------------------------------------------------------------


def check_noise(found, risk, target):
    """On the safe side, and 0.02% less noise is not enough."""
    assert risk(found) <= target
    assert risk(wi.DPSGD(found.noise_multiplier * (1 - 2e-4), found.sample_rate, found.steps)) > target


def test_noise_for_an_advantage():
    """Rate 0.001, 10,000 steps, advantage 0.1: 0.7035, from an independent composition."""
    found = calibrate.dpsgd(0.001, 10000, advantage=0.1)
    assert (found.sample_rate, found.steps) == (0.001, 10000)
    assert 0.7030 <= found.noise_multiplier <= 0.7040
    check_noise(found, lambda g: g.advantage, 0.1)
    assert found.advantage >= 0.0999


def test_noise_for_an_accuracy_at_a_small_prior():
    found = calibrate.dpsgd(0.01, 200, accuracy=0.91, prior=0.1)
    check_noise(found, lambda g: g.accuracy(0.1), 0.91)
    assert found.accuracy(0.1) > 0.90995


def test_noise_for_an_accuracy_at_one_half_is_that_for_the_advantage():
    one = calibrate.dpsgd(0.02, 100, accuracy=0.55)
    other = calibrate.dpsgd(0.02, 100, advantage=0.1)
    assert one.accuracy() <= 0.55
    assert one.noise_multiplier == pytest.approx(other.noise_multiplier, rel=2e-4)


@pytest.mark.parametrize(("tpr", "fpr"), [(0.01, 1e-3), (1e-4, 1e-5), (0.3, 0.1)])
def test_noise_for_a_tpr(tpr, fpr):
    found = calibrate.dpsgd(0.01, 100, tpr_at=(tpr, fpr))
    check_noise(found, lambda g: g.tpr_at(fpr), tpr)


@pytest.mark.parametrize(("steps", "advantage"), [(1, 0.05), (10, 0.02), (100, 0.3)])
def test_noise_of_full_batches_is_that_of_a_gaussian(steps, advantage):
    """μ = √T/σ with 2Φ(μ/2) - 1 = advantage."""
    from scipy.special import ndtri

    exact = math.sqrt(steps) / (2 * float(ndtri(0.5 + advantage / 2)))
    found = calibrate.dpsgd(1.0, steps, advantage=advantage)
    assert found.advantage <= advantage
    assert exact * (1 - 1e-12) <= found.noise_multiplier <= exact * (1 + 1.1e-4)


@pytest.mark.parametrize(("rate", "advantage"), [(0.1, 0.05), (0.5, 0.01), (0.9, 0.8)])
def test_noise_of_one_step_has_a_closed_form(rate, advantage):
    """One step: advantage = q·(2Φ(1/(2σ)) - 1)."""
    from scipy.special import ndtri

    exact = 1 / (2 * float(ndtri(0.5 + advantage / rate / 2)))
    found = calibrate.dpsgd(rate, 1, advantage=advantage)
    assert found.advantage <= advantage
    assert exact * (1 - 1e-12) <= found.noise_multiplier <= exact * (1 + 1.1e-4)


def test_no_noise_where_none_is_needed():
    assert calibrate.dpsgd(0.0, 10, advantage=0.1) == wi.DPSGD(0.0, 0.0, 10)
    assert calibrate.dpsgd(0.1, 0, advantage=0.1) == wi.DPSGD(0.0, 0.1, 0)
    assert calibrate.dpsgd(0.01, 5, advantage=0.05) == wi.DPSGD(0.0, 0.01, 5)
    assert calibrate.dpsgd(0.5, 5, advantage=1.0) == wi.DPSGD(0.0, 0.5, 5)


@pytest.mark.parametrize(
    "target",
    [
        {"advantage": 0.0},
        {"accuracy": 0.5},
        {"accuracy": 0.9, "prior": 0.1},
        {"tpr_at": (0.01, 0.01)},
        {"tpr_at": (0.0, 0.0)},
    ],
)
def test_no_finite_noise_reaches_the_blind_guess(target):
    with pytest.raises(CalibrationError, match="cannot be reached"):
        calibrate.dpsgd(0.1, 5, **target)


@pytest.mark.parametrize(("rate", "steps"), [(0.1, 1), (1.0, 3)])
def test_a_target_at_no_false_alarms(rate, steps):
    """With noise nobody is found at FPR 0, so hardly any noise keeps this target."""
    found = calibrate.dpsgd(rate, steps, tpr_at=(0.05, 0.0))
    assert found.tpr_at(0.0) <= 0.05
    assert found.noise_multiplier < 0.1


def test_tighter_targets_need_more_noise():
    noises = [calibrate.dpsgd(0.02, 50, advantage=a).noise_multiplier for a in (0.3, 0.2, 0.1, 0.05, 0.01)]
    assert noises == sorted(noises)
    assert np.all(np.diff(noises) > 0)


@settings(max_examples=8)
@given(st.floats(0.005, 0.5), st.integers(1, 30), st.floats(0.01, 0.3))
def test_noise_is_safe_for_random_runs(rate, steps, advantage):
    found = calibrate.dpsgd(rate, steps, advantage=advantage)
    assert found.advantage <= advantage
    if found.noise_multiplier > 0.0:
        weaker = wi.DPSGD(found.noise_multiplier * (1 - 3e-4), rate, steps)
        assert weaker.advantage > advantage * (1 - 1e-5)


@pytest.mark.parametrize(("sensitivity", "golden"), [(1.0, 3.730631634815944), (2.0, 7.46126326963189)])
def test_gaussian_noise_is_the_analytic_one(sensitivity, golden):
    """The golden values of the analytic mechanism at (1, 1e-5); the guarantee of the noise is met from above."""
    noise = wi.calibrate.gaussian_noise(1.0, 1e-5, sensitivity)
    assert noise == pytest.approx(golden, rel=1e-12)
    kept = wi.mechanisms.Gaussian(len, noise).guarantee(sensitivity).implies(wi.ApproxDP, delta=1e-5)
    assert kept.epsilon <= 1.0 + 1e-9
    less = wi.mechanisms.Gaussian(len, noise * (1 - 1e-6)).guarantee(sensitivity).implies(wi.ApproxDP, delta=1e-5)
    assert less.epsilon > 1.0


@pytest.mark.parametrize(
    "bad", [(-1.0, 0.1, 1.0), (1.0, 0.0, 1.0), (1.0, 1.0, 1.0), (1.0, 0.1, -1.0), (1.0, 0.1, float("nan"))]
)
def test_gaussian_noise_refuses(bad):
    with pytest.raises(wi.errors.InputError):
        wi.calibrate.gaussian_noise(*bad)


@pytest.mark.parametrize(
    ("target", "prior"),
    [
        ({"advantage": 0.1}, 0.5),
        ({"accuracy": 0.75}, 0.6),
        ({"tpr_at": (0.02, 0.001)}, 0.5),
        ({"advantage": 0.999}, 0.5),
    ],
)
@pytest.mark.parametrize("kind", ["zcdp", "rdp"])
def test_the_weakest_concentrated_and_renyi_promise(kind, target, prior):
    """It keeps the target, and two millionths more do not keep it; the curve itself is checked by coins elsewhere."""
    found = calibrate.zcdp(**target, prior=prior) if kind == "zcdp" else calibrate.rdp(8.0, **target, prior=prior)
    size = found.rho if kind == "zcdp" else found.epsilons[0]

    def risk(promise):
        (name, value), *_ = target.items()
        if name == "tpr_at":
            return float(promise.tpr_at(value[1])), value[0]
        return (promise.advantage if name == "advantage" else promise.accuracy(prior)), value

    def more(factor):
        return wi.ZeroConcentratedDP(size * factor) if kind == "zcdp" else wi.RenyiDP([8.0], [size * factor])

    assert risk(found)[0] <= risk(found)[1]
    above, limit = risk(more(1 + 2e-6))
    assert above > limit


def test_renyi_at_the_infinite_order_is_pure():
    for target in ({"advantage": 0.1}, {"posterior": 0.6}, {"accuracy": 0.7}, {"tpr_at": (0.02, 0.01)}):
        assert calibrate.rdp(math.inf, **target).epsilons == (calibrate.epsilon(**target).epsilon,)


def test_ends_of_concentrated_and_renyi_searches():
    assert calibrate.zcdp(advantage=0.0).rho == 0.0
    assert calibrate.zcdp(advantage=1.0).rho == math.inf
    assert calibrate.rdp(2.0, accuracy=0.5).epsilons == (0.0,)
    assert calibrate.rdp(2.0, accuracy=1.0).epsilons == (math.inf,)
    with pytest.raises(CalibrationError, match="no release at all"):
        calibrate.zcdp(accuracy=0.6, prior=0.3)
    with pytest.raises(CalibrationError, match="order=inf"):
        calibrate.rdp(8.0, posterior=0.6)
    with pytest.raises(ValueError, match="order"):
        calibrate.rdp(1.0, advantage=0.1)

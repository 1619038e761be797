"""Which guarantee follows from which: values, round trips, refusals, and that what is implied really lies above."""

import json
import math
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import each

import whosin as wi
from whosin.errors import ImplicationError, InputError
from whosin.guarantees.implications import EDGES, NO_EDGES

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text(encoding="utf-8"))
INF = math.inf

epsilons = st.floats(0.0, 20.0)
deltas = st.floats(0.0, 1.0)
fractions = st.floats(0.01, 0.99)

KINDS = {
    "PureDP": wi.PureDP,
    "ApproxDP": wi.ApproxDP,
    "GaussianDP": wi.GaussianDP,
    "DPSGD": wi.DPSGD,
    "PMP": wi.PMP,
    "MIP": wi.MIP,
    "MembershipPrivacy": wi.MembershipPrivacy,
    "DifferentialIdentifiability": wi.DifferentialIdentifiability,
}
FORMS = {
    "RenyiDP": wi.RenyiDP,
    "ZeroConcentratedDP": wi.ZeroConcentratedDP,
    "PrivacyProfile": wi.PrivacyProfile,
    "TradeOff": wi.TradeOff,
}
SOURCES = [
    wi.PureDP(1.0),
    wi.PureDP(1.0, "replace"),
    wi.ApproxDP(1.0, 0.01),
    wi.ApproxDP(1.0, 0.01, "replace"),
    wi.ApproxDP(1.0, 0.0),
    wi.GaussianDP(1.0),
    wi.GaussianDP(1.0, "replace"),
    wi.DPSGD(1.0, 0.1, 3),
    wi.PMP(1.0),
    wi.PMP(1.0, 0.01),
    wi.PMP(1.0, 0.0, 0.3),
    wi.MIP(0.1),
    wi.MIP(0.1, 0.3),
    wi.MembershipPrivacy(2.0),
    wi.MembershipPrivacy(2.0, "bounded"),
    wi.MembershipPrivacy(2.0, "uniform"),
    wi.MembershipPrivacy(2.0, "prior"),
    wi.MembershipPrivacy(2.0, negative=True),
    wi.DifferentialIdentifiability(0.4, 3),
    wi.DifferentialIdentifiability(0.8, 3),
    wi.RenyiDP([2.0, 8.0], [0.2, 0.9]),
    wi.RenyiDP([2.0, math.inf], [0.2, 1.0], "replace"),
    wi.ZeroConcentratedDP(0.1, "zero_out"),
    wi.PrivacyProfile([0.5, 1.0], [0.01, 0.001]),
    wi.PrivacyProfile([0.5, 1.0], [0.01, 0.0], outsider_deltas=[0.02, 0.0]),
    wi.TradeOff(wi.Roc([0.1], [0.4]), "replace"),
    wi.PureDP(1.0, "zero_out"),
]
QUESTIONS = {
    "PureDP": [{}, {"adjacency": "replace"}, {"adjacency": "add_remove"}, {"sample_rate": 0.5}],
    "ApproxDP": [{"delta": 0.01}, {"delta": 0.0}, {"delta": 0.01, "adjacency": "add_remove"}, {"sample_rate": 0.5}],
    "GaussianDP": [{}, {"adjacency": "add_remove"}],
    "DPSGD": [{}],
    "PMP": [{"delta": 0.01}, {"delta": 0.0}, {"delta": 0.3}],
    "MIP": [{}, {"train_fraction": 0.5}, {"train_fraction": 0.3}],
    "MembershipPrivacy": [
        {"family": family, "negative": negative}
        for family in ("independent", "bounded", "uniform")
        for negative in (False, True)
    ],
    "DifferentialIdentifiability": [{"candidates": 3}],
}
CASES = [(target, params) for name, target in KINDS.items() for params in QUESTIONS[name]]


# --- the table of theorems -------------------------------------------------------------------------------------------


def test_edges_say_where_they_come_from():
    assert len({edge.name for edge in EDGES}) == len(EDGES)
    for edge in EDGES:
        assert edge.source in KINDS | FORMS
        assert edge.target in KINDS | FORMS
        assert edge.name == f"{edge.source} → {edge.target}"
        assert len(edge.theorem) > 10
        assert isinstance(edge.tight, bool)
        assert isinstance(edge.corrected, bool)


def test_gaps_name_a_counterexample():
    for gap in NO_EDGES:
        assert gap.source in KINDS | FORMS
        assert gap.target in KINDS
        assert len(gap.reason.split()) > 3
        assert len(gap.counterexample.split()) > 3


def test_every_pair_of_notions_has_an_answer():
    """A theorem, a counterexample, or the guarantee itself; never "not known to the library"."""
    answered = {(e.source, e.target) for e in EDGES} | {(g.source, g.target) for g in NO_EDGES}
    missing = {(s, t) for s in KINDS | FORMS for t in KINDS if s != t} - answered
    assert missing == set()


@pytest.mark.parametrize("source", SOURCES, ids=str)
@each("case", CASES)
def test_an_answer_is_a_guarantee_or_a_reason_with_a_counterexample(source, case):
    (target, params), answer = case, None
    try:
        answer = source.implies(target, **params)
    except (ImplicationError, TypeError) as caught:
        why = caught
    if answer is not None:
        assert type(answer) is target
        for name, value in params.items():
            if name != "sample_rate":
                assert getattr(answer, name) == value
    elif isinstance(why, ImplicationError):
        assert len(str(why)) > 40
        assert "ounterexample" in str(why) or "A(D) = |D|" in str(why)
    else:
        # A parameter that this pair does not take: it is named, with those that are taken.
        assert any(repr(name) in str(why) for name in params)
        assert "accepts" in str(why)


@pytest.mark.parametrize("source", SOURCES, ids=str)
def test_everything_implies_itself(source):
    params = {"delta": source.delta} if isinstance(source, wi.ApproxDP) else {}
    again = source.implies(type(source), **params)
    assert type(again) is type(source)
    assert again.roc.tpr([0.0, 0.1, 0.5]) == pytest.approx(source.roc.tpr([0.0, 0.1, 0.5]), rel=1e-12)
    if not params:
        assert again == source


@pytest.mark.parametrize(
    ("source", "target", "name"),
    [
        (wi.PureDP(1.0), wi.MIP, "prior"),
        (wi.PureDP(1.0), wi.PureDP, "delta"),
        (wi.PureDP(1.0), wi.GaussianDP, "delta"),
        (wi.ApproxDP(1.0, 0.1), wi.PMP, "sample_rate"),
        (wi.GaussianDP(1.0), wi.GaussianDP, "mu"),
        (wi.PMP(1.0), wi.MIP, "delta"),
        (wi.MIP(0.1), wi.PMP, "train_fraction"),
        (wi.MembershipPrivacy(2.0, "bounded"), wi.MIP, "prior"),
        (wi.MembershipPrivacy(2.0, "bounded"), wi.PureDP, "gamma"),
        (wi.DifferentialIdentifiability(0.4, 3), wi.PureDP, "rho"),
        (wi.DPSGD(1.0, 0.1, 3), wi.DPSGD, "delta"),
        (wi.MIP(0.1), wi.MIP, "delta"),
    ],
)
def test_unknown_parameters_are_a_type_error(source, target, name):
    with pytest.raises(TypeError, match=name):
        source.implies(target, **{name: 0.3})


@pytest.mark.parametrize("source", [wi.GaussianDP(1.0), wi.DPSGD(1.0, 0.1, 3)], ids=str)
@pytest.mark.parametrize("target", [wi.ApproxDP, wi.PMP])
def test_a_curve_needs_a_delta(source, target):
    with pytest.raises(InputError, match="delta"):
        source.implies(target)


# --- from DP to membership inference privacy -------------------------------------------------------------------------


@pytest.mark.parametrize(("key", "eta"), GOLDEN["izzo"]["thm4_eta"].items())
def test_izzo_theorem_4(key, eta):
    epsilon, delta = (float(part.split("=")[1]) for part in key.split(","))
    assert wi.ApproxDP(epsilon, delta, "replace").implies(wi.MIP).eta == pytest.approx(eta, abs=4e-16)
    assert wi.PMP(epsilon, delta).implies(wi.MIP).eta == pytest.approx(eta, abs=4e-16)


@pytest.mark.parametrize(("epsilon", "eta"), GOLDEN["lowy"]["lemma13_tight"].items())
def test_lowy_lemma_13_tightened(epsilon, eta):
    assert wi.PMP(float(epsilon)).implies(wi.MIP).eta == pytest.approx(eta, abs=2e-16)
    assert wi.PureDP(float(epsilon), "replace").implies(wi.MIP).eta == pytest.approx(eta, abs=2e-16)


def best_gain(roc, q):
    """The best accuracy at prior q beyond the blind guess, over the corners of a curve or a dense grid."""
    if roc.vertices is not None:
        fpr, tpr = roc.vertices.T
    else:
        ends = np.geomspace(1e-12, 0.5, 20000)
        fpr = np.concatenate([[0.0], ends, 1 - ends[::-1], [1.0]])
        tpr = roc.tpr(fpr)
    return max(0.0, float(np.max(q * tpr + (1 - q) * (1 - fpr))) - max(q, 1 - q))


@given(epsilons, deltas, fractions)
def test_any_train_fraction_by_brute_force(epsilon, delta, q):
    """η = max(mδ, δ + (1-δ)/(1+e^{-ε}) - max(q, 1-q)), the best over the corners of the trade-off region."""
    found = wi.ApproxDP(epsilon, delta, "replace").implies(wi.MIP, train_fraction=q)
    assert found.train_fraction == q
    assert found.eta == pytest.approx(best_gain(wi.ApproxDP(epsilon, delta).roc, q), abs=1e-12)
    m = min(q, 1 - q)
    formula = max(m * delta, delta + (1 - delta) / (1 + math.exp(-epsilon)) - max(q, 1 - q))
    assert found.eta == pytest.approx(formula, abs=1e-12)


@given(epsilons, deltas, fractions)
def test_any_train_fraction_from_add_remove(epsilon, delta, q):
    source = wi.ApproxDP(epsilon, delta)
    assert source.implies(wi.MIP, train_fraction=q).eta == pytest.approx(best_gain(source.replace_roc(), q), abs=1e-12)


@given(epsilons, deltas, fractions)
def test_any_train_fraction_from_pmp(epsilon, delta, q):
    source = wi.PMP(epsilon, delta, q)
    assert source.implies(wi.MIP).eta == pytest.approx(best_gain(source.roc, q), abs=1e-12)
    assert source.implies(wi.MIP, train_fraction=q) == source.implies(wi.MIP)


@pytest.mark.parametrize("q", [0.5, 0.1, 0.4, 0.6, 0.9])
@pytest.mark.parametrize("source", [wi.GaussianDP(0.8), wi.GaussianDP(0.8, "replace"), wi.DPSGD(1.0, 0.1, 3)], ids=str)
def test_any_train_fraction_from_a_curve(source, q):
    """A curve that is its own mirror image serves both sides of one half, read at its steep end."""
    found, brute = source.implies(wi.MIP, train_fraction=q).eta, best_gain(source.replace_roc(), min(q, 1 - q))
    assert found >= brute - 1e-15
    assert found == pytest.approx(brute, abs=1e-7)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 3.0, 800.0, INF])
def test_add_remove_goes_to_mip_directly(epsilon):
    """η = (1 - e^{-ε})/2, sharper than through 2ε under replace, weaker than if ε had been for replace."""
    direct = wi.PureDP(epsilon).implies(wi.MIP).eta
    assert direct == pytest.approx(-math.expm1(-epsilon) / 2, abs=1e-16)
    through = wi.PureDP(epsilon).implies(wi.PureDP, adjacency="replace").implies(wi.MIP).eta
    replace = wi.PureDP(epsilon, "replace").implies(wi.MIP).eta
    assert replace <= direct <= through


def test_values_for_epsilon_one():
    assert wi.PureDP(1.0).implies(wi.MIP).eta == pytest.approx(0.31606027941427883, rel=1e-15)
    assert wi.PureDP(2.0, "replace").implies(wi.MIP).eta == pytest.approx(math.tanh(1.0) / 2, rel=1e-15)
    assert wi.PureDP(1.0, "replace").implies(wi.MIP).eta == pytest.approx(0.2310585786300049, rel=1e-14)


@each("q", [0.3, 0.7, 0.4999999999, 0.50000000001, 1e-9, 1 - 1e-9])
@pytest.mark.parametrize("delta", [0.0, 1e-15, 1e-9, 1e-3])
@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 1e-9, 1e-3, 1.0, 800.0])
def test_no_digit_of_a_small_eta_is_lost_on_the_unsafe_side(epsilon, delta, q):
    """Against sixty digits: the limit is never below the exact one, and at most a rounding above."""
    with mpmath.workdps(60):
        share, d = mpmath.mpf(q), mpmath.mpf(delta)
        rarer = min(share, 1 - share)
        exact = max(rarer * d, d + (1 - d) / (1 + mpmath.exp(-mpmath.mpf(epsilon))) - (1 - rarer))
        found = wi.ApproxDP(epsilon, delta, "replace").implies(wi.MIP, train_fraction=q).eta
        assert found >= exact * (1 - mpmath.mpf(10) ** -40)
        assert found <= exact * (1 + mpmath.mpf(2) ** -51) + mpmath.mpf(10) ** -30
        normal = wi.GaussianDP(1e-3 + delta, "replace").implies(wi.MIP, train_fraction=q).eta
        mu, ratio = mpmath.mpf(1e-3 + delta), (1 - rarer) / rarer
        ends = mu / 2 - mpmath.log(ratio) / mu, -mu / 2 - mpmath.log(ratio) / mu
        assert normal >= rarer * (mpmath.ncdf(ends[0]) - ratio * mpmath.ncdf(ends[1])) - mpmath.mpf(10) ** -30


def test_a_small_epsilon_tells_nothing_when_most_are_in():
    assert wi.PureDP(1.0, "replace").implies(wi.MIP, train_fraction=0.25).eta == 0.0
    assert wi.PureDP(1.2, "replace").implies(wi.MIP, train_fraction=0.25).eta > 0.01


@given(st.floats(0.0, 0.5))
def test_mip_and_pmp_are_the_same_at_one_half(eta):
    there = wi.MIP(eta).implies(wi.PMP)
    assert there == wi.PMP(0.0, 2 * eta)
    assert there.implies(wi.MIP) == wi.MIP(eta)
    rates = np.linspace(0.0, 1.0, 21)
    assert there.tpr_at(rates) == pytest.approx(wi.MIP(eta).tpr_at(rates), abs=1e-15)


def test_mip_gives_pmp_with_a_larger_delta_only():
    assert wi.MIP(0.1).implies(wi.PMP, delta=0.25) == wi.PMP(0.0, 0.25)
    with pytest.raises(ImplicationError, match="2η"):
        wi.MIP(0.1).implies(wi.PMP, delta=0.19)
    with pytest.raises(ImplicationError, match="1/2"):
        wi.MIP(0.1, 0.3).implies(wi.PMP)


def test_pmp_is_about_one_way_of_drawing():
    with pytest.raises(ImplicationError, match=r"0\.3"):
        wi.PMP(1.0).implies(wi.MIP, train_fraction=0.3)


# --- from DP to practical membership privacy, and to another δ -------------------------------------------------------


@given(epsilons, deltas)
def test_replace_one_dp_is_pmp_as_it_is(epsilon, delta):
    assert wi.ApproxDP(epsilon, delta, "replace").implies(wi.PMP) == wi.PMP(epsilon, delta)


@given(st.floats(0.0, 6.0), st.floats(0.0, 0.5))
def test_add_remove_pays_two_steps(epsilon, delta):
    """(2ε, δ') with δ' at most (1 + e^ε)δ, and no more than the two steps need."""
    source = wi.ApproxDP(epsilon, delta)
    replaced = source.implies(wi.ApproxDP, adjacency="replace")
    assert replaced.adjacency == "replace"
    assert replaced.epsilon == pytest.approx(2 * epsilon, rel=1e-15)
    assert replaced.delta <= min(1.0, (1 + math.exp(epsilon)) * delta) * (1 + 1e-15) + 5e-324
    assert replaced.roc.dominates(source.replace_roc(), 1e-11)
    assert replaced.delta == 0.0 or replaced.delta >= delta * (1 - 1e-12)
    practical = source.implies(wi.PMP)
    assert (practical.epsilon, practical.delta) == (replaced.epsilon, replaced.delta)


def test_two_steps_of_a_large_delta_stay_below_one():
    """(0, δ) twice is (0, 2δ); with ε = 1 and δ = 1/4 the curve after itself needs less than (1 + e)/4."""
    assert wi.ApproxDP(0.0, 0.25).implies(wi.ApproxDP, adjacency="replace").delta == pytest.approx(0.5, abs=1e-12)
    found = wi.ApproxDP(1.0, 0.25).implies(wi.ApproxDP, adjacency="replace")
    assert found.delta == pytest.approx(wi.ApproxDP(1.0, 0.25).replace_roc().divergence(math.exp(2.0)), rel=1e-9)


@given(st.floats(0.01, 10.0), st.floats(0.0, 0.3), st.floats(0.0, 1.0))
def test_another_delta_touches_the_curve(epsilon, delta, wanted):
    source = wi.ApproxDP(epsilon, delta)
    line = source.implies(wi.ApproxDP, delta=wanted)
    assert line.delta == wanted
    if math.isinf(line.epsilon):
        assert wanted < delta
        return
    assert line.roc.dominates(source.roc, 1e-12)
    if line.epsilon > 1e-3:
        assert not wi.ApproxDP(line.epsilon * (1 - 1e-6), wanted).roc.dominates(source.roc, 1e-15)
    assert wi.PMP(epsilon, delta).implies(wi.PMP, delta=wanted).epsilon == line.epsilon


@pytest.mark.parametrize(
    "source", [wi.GaussianDP(0.5), wi.GaussianDP(0.5, "replace"), wi.DPSGD(1.0, 0.05, 10)], ids=str
)
@pytest.mark.parametrize("delta", [1e-6, 1e-3, 0.1])
def test_curves_to_pmp(source, delta):
    found = source.implies(wi.PMP, delta=delta)
    assert found.delta == delta
    assert found.roc.dominates(source.replace_roc(), 1e-12)
    assert not wi.PMP(found.epsilon * (1 - 1e-6), delta).roc.dominates(source.replace_roc())


def test_gaussian_between_adjacencies():
    assert wi.GaussianDP(0.7).implies(wi.GaussianDP, adjacency="replace") == wi.GaussianDP(1.4, "replace")
    assert wi.GaussianDP(0.7, "replace").implies(wi.GaussianDP) == wi.GaussianDP(0.7, "replace")
    with pytest.raises(ImplicationError, match=r"\|D\|"):
        wi.GaussianDP(0.7, "replace").implies(wi.GaussianDP, adjacency="add_remove")


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 5.0, 30.0])
def test_pure_dp_as_gaussian(epsilon):
    """μ = 2Φ⁻¹(e^ε/(1+e^ε)): the Gaussian curve through the corner, with 30 digits, and never below."""
    with mpmath.workdps(40):
        share = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon)))
        exact = 2 * mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * share)
    found = wi.PureDP(epsilon).implies(wi.GaussianDP)
    assert found.mu == pytest.approx(float(exact), rel=1e-9)
    assert found.roc.dominates(wi.PureDP(epsilon).roc, 1e-15)
    two_steps = wi.PureDP(epsilon).implies(wi.GaussianDP, adjacency="replace")
    assert two_steps.adjacency == "replace"
    assert two_steps.mu <= wi.PureDP(2 * epsilon).implies(wi.GaussianDP).mu * (1 + 1e-12)
    assert two_steps.roc.dominates(wi.PureDP(epsilon).replace_roc(), 1e-12)


def test_pure_dp_as_gaussian_at_the_ends():
    assert wi.PureDP(0.0).implies(wi.GaussianDP) == wi.GaussianDP(0.0)
    assert wi.PureDP(INF).implies(wi.GaussianDP) == wi.GaussianDP(INF)
    assert wi.PureDP(1000.0).implies(wi.GaussianDP).advantage == 1.0


@pytest.mark.parametrize("run", [(1.0, 0.1, 3), (0.8, 0.5, 2), (2.0, 1.0, 10), (0.0, 0.5, 2), (1.0, 0.0, 5)])
def test_a_run_is_no_easier_to_attack_than_full_batches(run):
    source = wi.DPSGD(*run)
    above = source.implies(wi.GaussianDP)
    rates = np.geomspace(1e-6, 1.0, 60)
    assert np.all(above.tpr_at(rates) >= source.tpr_at(rates) * (1 - 1e-4))
    assert source.implies(wi.GaussianDP, adjacency="replace").mu == 2 * above.mu


# --- sampling first --------------------------------------------------------------------------------------------------


@given(st.floats(0.0, 600.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_sampling_first_strengthens(epsilon, delta, rate):
    """Keep each record with probability β: ε = ln(1 + β(e^ε - 1)), δ = βδ."""
    found = wi.ApproxDP(epsilon, delta).implies(wi.ApproxDP, sample_rate=rate)
    exact = float(mpmath.log1p(mpmath.mpf(rate) * mpmath.expm1(mpmath.mpf(epsilon))))
    assert found.epsilon == pytest.approx(exact, rel=1e-12, abs=1e-13)
    assert found.delta == pytest.approx(rate * delta, rel=1e-15)
    assert found.epsilon <= epsilon * (1 + 1e-15)
    assert wi.PureDP(epsilon).implies(wi.PureDP, sample_rate=rate).epsilon == found.epsilon


def test_sampling_first_at_the_ends():
    assert wi.PureDP(1000.0).implies(wi.PureDP, sample_rate=1.0) == wi.PureDP(1000.0)
    assert wi.PureDP(INF).implies(wi.PureDP, sample_rate=0.0) == wi.PureDP(0.0)
    assert wi.PureDP(INF).implies(wi.PureDP, sample_rate=0.5) == wi.PureDP(INF)
    assert wi.PureDP(10.0).implies(wi.PureDP, sample_rate=0.01).epsilon == pytest.approx(5.40, abs=5e-3)
    with pytest.raises(ImplicationError, match=r"\|D\|"):
        wi.PureDP(1.0, "replace").implies(wi.PureDP, sample_rate=0.5)


def test_sampling_and_then_replacing():
    both = wi.PureDP(1.0).implies(wi.PureDP, sample_rate=0.5, adjacency="replace")
    exact = 2 * math.log1p(0.5 * math.expm1(1.0))
    assert exact <= both.epsilon <= exact * (1 + 1e-14)
    assert both.adjacency == "replace"


# --- Li's membership privacy -----------------------------------------------------------------------------------------


@given(st.floats(0.0, 30.0), st.booleans())
def test_pure_dp_to_membership_privacy(epsilon, negative):
    """γ = e^ε for D_I from add/remove and for D_B from replace; (e^ε + 1)/2 under D_N."""
    ratio = math.exp(epsilon)
    added, replaced = wi.PureDP(epsilon), wi.PureDP(epsilon, "replace")
    for source in (added, wi.ApproxDP(epsilon, 0.0)):
        assert source.implies(wi.MembershipPrivacy, negative=negative) == wi.MembershipPrivacy(
            ratio, "independent", negative
        )
    assert replaced.implies(wi.MembershipPrivacy, negative=negative) == wi.MembershipPrivacy(ratio, "bounded", negative)
    uniform = added.implies(wi.MembershipPrivacy, family="uniform", negative=negative)
    assert uniform.gamma == pytest.approx((ratio + 1) / 2, rel=1e-15)
    assert uniform.ratio == pytest.approx(ratio, rel=1e-15)
    assert added.implies(wi.MembershipPrivacy, family="bounded").gamma == pytest.approx(ratio**2, rel=1e-12)


@given(st.floats(0.0, 30.0))
def test_bounded_membership_privacy_is_replace_one_dp(epsilon):
    there = wi.PureDP(epsilon, "replace").implies(wi.MembershipPrivacy)
    back = there.implies(wi.PureDP)
    assert back.adjacency == "replace"
    assert back.epsilon == pytest.approx(epsilon, rel=1e-12, abs=1e-15)
    negative = there.implies(wi.MembershipPrivacy, negative=True)
    assert negative == wi.MembershipPrivacy(there.gamma, "bounded", True)
    assert there.implies(wi.MIP).eta == pytest.approx(back.implies(wi.MIP).eta, rel=1e-15)
    assert there.implies(wi.PMP).epsilon == back.epsilon


def test_bounded_membership_privacy_reaches_what_replace_one_dp_reaches():
    gamma = wi.MembershipPrivacy(2.0, "bounded")
    pure = gamma.implies(wi.PureDP)
    assert math.log(2.0) <= pure.epsilon <= math.log(2.0) * (1 + 1e-15)
    for target, params in (
        (wi.ApproxDP, {"delta": 0.01}),
        (wi.GaussianDP, {}),
        (wi.PMP, {}),
        (wi.PMP, {"delta": 0.01}),
        (wi.MIP, {"train_fraction": 0.3}),
        (wi.DifferentialIdentifiability, {"candidates": 4}),
    ):
        assert gamma.implies(target, **params) == pure.implies(target, **params)


def test_membership_privacy_between_families():
    gamma = wi.MembershipPrivacy(3.0)
    assert gamma.implies(wi.MembershipPrivacy, family="uniform") == wi.MembershipPrivacy(2.0, "uniform")
    for source, family in (
        (wi.MembershipPrivacy(3.0, "uniform"), "independent"),
        (wi.MembershipPrivacy(3.0, "bounded"), "uniform"),
        (wi.MembershipPrivacy(3.0, "bounded"), "independent"),
        (gamma, "bounded"),
    ):
        with pytest.raises(ImplicationError, match="ounterexample"):
            source.implies(wi.MembershipPrivacy, family=family)
    for family in ("independent", "uniform", "prior"):
        with pytest.raises(ImplicationError, match="k-Max"):
            wi.MembershipPrivacy(3.0, family).implies(wi.MembershipPrivacy, negative=True)
    for family in ("uniform", "prior"):
        with pytest.raises(ImplicationError, match="k-Max"):
            wi.MembershipPrivacy(3.0, family).implies(wi.PMP)


@pytest.mark.parametrize("negative", [False, True])
def test_one_sided_privacy_of_independent_records_limits_the_accuracy(negative):
    """Both x and x' in (or out) compare with one of them: TV ≤ 1 - 1/γ, attained at γ = 2."""
    promise = wi.MembershipPrivacy(2.0, "independent", negative)
    assert promise.implies(wi.MIP) == wi.MIP(0.25)
    assert promise.implies(wi.PMP) == wi.PMP(0.0, 0.5)
    with pytest.raises(ImplicationError, match="1 - 1/γ"):
        promise.implies(wi.PMP, delta=0.4)
    alone, certain = {"a": {0: 0.5, 1: 0.5}, "b": {0: 0.5, 2: 0.5}}, {0: 1.0}
    spread = dict.fromkeys(range(3), 1 / 3)

    def mechanism(records):
        if len(records) == 1:
            return alone[records[0]]
        return certain if (len(records) == 2) != negative else spread

    attained = wi.worlds.uniform_subsets("ab", 1).play(mechanism)
    assert attained.mip().eta == pytest.approx(0.25, abs=1e-15)
    everywhere = wi.worlds.independent("ab", 0.5).play(mechanism)
    assert everywhere.membership_privacy(negative).gamma == pytest.approx(2.0, rel=1e-12)


def test_replace_one_dp_reaches_only_the_bounded_family():
    for family in ("independent", "uniform"):
        with pytest.raises(ImplicationError, match=r"A\(D\) = \|D\|"):
            wi.PureDP(1.0, "replace").implies(wi.MembershipPrivacy, family=family)


@pytest.mark.parametrize("source", [wi.ApproxDP(1.0, 1e-5), wi.GaussianDP(1.0), wi.DPSGD(1.0, 0.1, 3)], ids=str)
@pytest.mark.parametrize("target", [wi.MembershipPrivacy, wi.DifferentialIdentifiability, wi.PureDP])
def test_without_a_bounded_ratio_no_posterior_follows(source, target):
    params = {"candidates": 3} if target is wi.DifferentialIdentifiability else {}
    with pytest.raises(ImplicationError, match="Counterexample"):
        source.implies(target, **params)


@pytest.mark.parametrize(
    ("gamma", "family", "prior"), [(1.5, "uniform", 0.5), (2.0, "independent", 0.3), (4.0, "bounded", 0.9)]
)
def test_gamma_limits_the_beliefs_as_defined(gamma, family, prior):
    """Pr[t | S] ≤ γ·Pr[t] and Pr[¬t | S] ≥ Pr[¬t]/γ at the priors of the family."""
    high = wi.MembershipPrivacy(gamma, family).posterior(prior)[1]
    assert high <= gamma * prior * (1 + 1e-12)
    assert 1 - high >= (1 - prior) / gamma * (1 - 1e-12)
    low = wi.MembershipPrivacy(gamma, family, negative=True).posterior(prior)[0]
    assert 1 - low <= gamma * (1 - prior) * (1 + 1e-12)
    assert low >= prior / gamma * (1 - 1e-12)


def test_gamma_is_attained_at_one_half_under_the_uniform_family():
    """Under D_N at prior 1/2 the highest posterior is R/(R+1) with R = 2γ-1, so absence keeps exactly 1/(2γ)."""
    gamma = 7 / 6
    assert 1 - wi.MembershipPrivacy(gamma, "uniform").posterior(0.5)[1] == pytest.approx(0.5 / gamma, rel=1e-12)
    assert wi.MembershipPrivacy(gamma, "uniform").posterior(0.5)[1] == pytest.approx(4 / 7, rel=1e-12)


# --- differential identifiability ------------------------------------------------------------------------------------


@given(st.floats(0.0, 12.0), st.integers(2, 100))
def test_identifiability_from_replace_one_dp(epsilon, candidates):
    rho = 1 / (1 + (candidates - 1) * math.exp(-epsilon))
    found = wi.PureDP(epsilon, "replace").implies(wi.DifferentialIdentifiability, candidates=candidates)
    assert found.candidates == candidates
    assert found.rho == pytest.approx(rho, rel=1e-12)
    doubled = wi.PureDP(epsilon).implies(wi.DifferentialIdentifiability, candidates=candidates)
    assert doubled.rho == pytest.approx(1 / (1 + (candidates - 1) * math.exp(-2 * epsilon)), rel=1e-12)


@given(st.floats(0.0, 12.0))
def test_two_candidates_are_replace_one_dp(epsilon):
    there = wi.PureDP(epsilon, "replace").implies(wi.DifferentialIdentifiability, candidates=2)
    back = there.implies(wi.PureDP)
    assert back.adjacency == "replace"
    assert back.epsilon == pytest.approx(epsilon, rel=1e-9, abs=1e-14)
    assert there.accuracy() == pytest.approx(wi.PureDP(epsilon).accuracy(), rel=1e-12)


def test_identifiability_to_pure_dp():
    """ε = ln(ρ/(1-(m-1)ρ)) where ρ < 1/(m-1), otherwise nothing."""
    found = wi.DifferentialIdentifiability(0.4, 3).implies(wi.PureDP)
    assert found.adjacency == "replace"
    assert found.epsilon == pytest.approx(math.log(2.0), rel=1e-12)
    for rho in (0.5, 0.8, 1.0):
        with pytest.raises(ImplicationError, match=r"1/\(m-1\)"):
            wi.DifferentialIdentifiability(rho, 3).implies(wi.PureDP)
    with pytest.raises(ImplicationError, match="one size"):
        wi.DifferentialIdentifiability(0.4, 3).implies(wi.PureDP, adjacency="add_remove")


def test_identifiability_limits_the_accuracy_exactly():
    """η = (mρ - 1)/2, not that of replace-one DP with e^ε = ρ/(1-(m-1)ρ); also where that ε is infinite."""
    few, pure = wi.DifferentialIdentifiability(0.4, 3), wi.PureDP(math.log(2.0), "replace")
    assert few.implies(wi.MIP).eta == pytest.approx(0.1, rel=1e-12)
    assert few.implies(wi.MIP).eta < pure.implies(wi.MIP).eta
    assert wi.DifferentialIdentifiability(0.45, 3).implies(wi.MIP).eta == pytest.approx(0.175, rel=1e-12)
    assert wi.DifferentialIdentifiability(0.6, 3).implies(wi.MIP).eta == pytest.approx(1 / 3, rel=1e-12)
    assert wi.DifferentialIdentifiability(0.6, 3).implies(wi.PMP) == wi.PMP(0.0, math.nextafter(2 / 3, 1))
    assert wi.DifferentialIdentifiability(0.6, 3).implies(wi.ApproxDP).delta == pytest.approx(0.8, rel=1e-12)
    assert few.implies(wi.PMP).epsilon == pytest.approx(math.log(2.0), rel=1e-12)
    assert few.implies(wi.MembershipPrivacy).gamma == pytest.approx(2.0, rel=1e-12)


@given(st.floats(0.0, 5.0), st.integers(2, 20), st.floats(0.01, 0.99))
def test_identifiability_limits_beliefs_by_bayes(epsilon, candidates, share):
    """m candidates, any likelihoods within e^ε of one another: no posterior exceeds ρ."""
    likelihoods = np.exp(-epsilon * np.linspace(0.0, share, candidates))
    likelihoods[0] = 1.0
    worst = np.full(candidates, math.exp(-epsilon))
    worst[0] = 1.0
    rho = wi.PureDP(epsilon, "replace").implies(wi.DifferentialIdentifiability, candidates=candidates).rho
    assert likelihoods[0] / likelihoods.sum() <= rho * (1 + 1e-12)
    assert worst[0] / worst.sum() == pytest.approx(rho, rel=1e-12)


@pytest.mark.parametrize(("rho", "candidates"), [(0.5, 3), (0.34, 3), (0.2, 10), (0.9, 2)])
def test_identifiability_at_its_own_prior(rho, candidates):
    """At prior 1/m the belief in a candidate goes up to ρ, and down to 1-(m-1)ρ where that is positive."""
    low, high = wi.DifferentialIdentifiability(rho, candidates).posterior(1 / candidates)
    assert high == pytest.approx(rho, rel=1e-12)
    assert low == pytest.approx(max(0.0, 1 - (candidates - 1) * rho), abs=1e-12)


# --- what the counterexamples say is true in small worlds ------------------------------------------------------------


def test_the_sum_modulo_six_is_practical_and_no_dp():
    game = wi.worlds.uniform_subsets(range(6), 3).play(lambda records: {sum(records) % 6: 1.0})
    assert game.pmp().epsilon == pytest.approx(math.log(2), rel=1e-12)
    assert game.accuracy(0) == pytest.approx(0.6, rel=1e-12)
    assert game.dp().epsilon == INF


def test_k_max_has_finite_gamma_and_infinite_epsilon():
    values = tuple(range(6))
    game = wi.worlds.all_subsets(values).play(wi.mechanisms.KMax(values, 3))
    assert game.membership_privacy().gamma == pytest.approx(7 / 6, rel=1e-12)
    assert game.membership_privacy(negative=True).gamma == INF


def test_revealing_with_probability_delta():
    told = wi.mechanisms.RandomizedResponse(lambda records: "a" in records, 0.0, 0.1)
    game = wi.worlds.independent("ab", 0.5).play(told)
    assert game.dp(0.1).epsilon == pytest.approx(0.0, abs=1e-15)
    assert game.posterior("a", ("surely", True)) == 1.0

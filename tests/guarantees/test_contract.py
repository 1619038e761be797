"""The contract: what every guarantee must do, checked on instances of each class and on random ones."""

import copy
import dataclasses
import html
import json
import math
import pickle
import re
from dataclasses import FrozenInstanceError, dataclass
from decimal import Decimal
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import each
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit

import whosin as wi

INF = math.inf

EXAMPLES = [
    wi.PureDP(1.0),
    wi.PureDP(0.3, "replace"),
    wi.ApproxDP(1.0, 1e-5),
    wi.ApproxDP(0.5, 0.1, "replace"),
    wi.GaussianDP(1.0),
    wi.GaussianDP(0.25, "replace"),
    wi.DPSGD(0.8, 0.05, 40),
    wi.DPSGD(0.8, 0.05, 1),
    wi.DPSGD(5.0, 1.0, 10),
    wi.PMP(0.7),
    wi.PMP(0.7, 0.01),
    wi.PMP(0.7, 0.01, train_fraction=0.25),
    wi.MIP(0.1),
    wi.MIP(0.05, train_fraction=0.3),
    wi.MIP(0.05, train_fraction=0.8),
    wi.MembershipPrivacy(2.0),
    wi.MembershipPrivacy(1.5, "bounded"),
    wi.MembershipPrivacy(1.5, "uniform"),
    wi.MembershipPrivacy(3.0, "prior"),
    wi.MembershipPrivacy(2.0, negative=True),
    wi.DifferentialIdentifiability(0.6, 2),
    wi.DifferentialIdentifiability(0.4, 3),
    wi.DifferentialIdentifiability(0.7, 3),
    wi.RenyiDP([2.0, 4.0, 16.0], [0.1, 0.2, 0.9]),
    wi.RenyiDP([2.0, INF], [0.1, 0.5], "replace"),
    wi.ZeroConcentratedDP(0.3),
    wi.ZeroConcentratedDP(0.01, "zero_out"),
    wi.PrivacyProfile([0.5, 1.0, 4.0], [1e-2, 1e-4, 1e-9]),
    wi.PrivacyProfile([0.5, 1.0], [1e-2, 0.0], "replace", [1e-3, 0.0]),
    wi.TradeOff(wi.Roc([0.0, 0.2], [0.1, 0.5])),
]
PERFECT = [
    wi.PureDP(0.0),
    wi.ApproxDP(0.0, 0.0),
    wi.GaussianDP(0.0),
    wi.DPSGD(1.0, 0.0, 10),
    wi.DPSGD(1.0, 0.1, 0),
    wi.DPSGD(INF, 0.1, 10),
    wi.PMP(0.0),
    wi.MIP(0.0),
    wi.RenyiDP([2.0], [0.0]),
    wi.ZeroConcentratedDP(0.0),
    wi.PrivacyProfile([0.0], [0.0]),
    wi.TradeOff(wi.Roc([0.0], [0.0])),
    wi.MembershipPrivacy(1.0),
    wi.MembershipPrivacy(1.0, "uniform", negative=True),
    wi.DifferentialIdentifiability(0.5, 2),
    wi.DifferentialIdentifiability(0.1, 10),
]
USELESS = [
    wi.PureDP(INF),
    wi.PureDP(1000.0),
    wi.ApproxDP(INF, 0.0),
    wi.ApproxDP(1.0, 1.0),
    wi.GaussianDP(INF),
    wi.DPSGD(0.0, 1.0, 1),
    wi.PMP(INF),
    wi.PMP(0.0, 1.0),
    wi.MIP(0.5),
    wi.MembershipPrivacy(INF),
    wi.MembershipPrivacy(INF, "bounded", negative=True),
    wi.DifferentialIdentifiability(1.0, 4),
]
EVERY = [*EXAMPLES, *PERFECT, *USELESS]
PRIORS = (0.5, 0.01, 0.3, 0.99)

every = pytest.mark.parametrize("guarantee", EVERY, ids=str)
at_priors = each("prior", PRIORS)

shares = st.floats(0.001, 0.999)
random_guarantees = st.one_of(
    st.builds(wi.PureDP, st.floats(0.0, 40.0)),
    st.builds(wi.ApproxDP, st.floats(0.0, 40.0), st.floats(0.0, 1.0)),
    st.builds(wi.GaussianDP, st.floats(1e-4, 20.0)),
    st.builds(wi.DPSGD, st.floats(0.1, 20.0), st.floats(1e-4, 1.0), st.just(1)),
    st.builds(wi.PMP, st.floats(0.0, 40.0), st.floats(0.0, 1.0), shares),
    st.builds(wi.MIP, st.floats(0.0, 0.5), shares),
    st.builds(
        wi.MembershipPrivacy,
        st.floats(1.0, 1e6),
        st.sampled_from(["independent", "bounded", "uniform", "prior"]),
        st.booleans(),
    ),
    st.integers(2, 50).flatmap(lambda m: st.builds(wi.DifferentialIdentifiability, st.floats(1 / m, 1.0), st.just(m))),
)


def fixed_world(guarantee):
    """Keywords with which `posterior` answers: replace-one DP does so in worlds of one size."""
    return {"world": "fixed_size"} if getattr(guarantee, "adjacency", None) == "replace" else {}


def on_the_curve(roc, tpr_weight, fpr_weight):
    """The largest tpr_weight·TPR - fpr_weight·FPR by brute force: all vertices, or a grid and a local search."""
    if roc.vertices is not None:
        return float(np.max(tpr_weight * roc.vertices[:, 1] - fpr_weight * roc.vertices[:, 0]))

    def value(position):
        fpr = expit(position)
        return tpr_weight * np.asarray(roc.tpr(fpr)) - fpr_weight * fpr

    positions = np.linspace(-100.0, 36.0, 5001)
    best = positions[np.argmax(value(positions))]
    found = minimize_scalar(lambda x: -float(value(x)), bounds=(best - 0.1, best + 0.1), method="bounded")
    return max(float(-found.fun), 0.0, tpr_weight - fpr_weight)


def check_curve(roc):
    ends = np.geomspace(1e-9, 0.5, 300)
    x = np.concatenate([[0.0], ends, 1.0 - ends[-2::-1], [1.0]])
    y = roc.tpr(x)
    assert roc.tpr(1.0) == pytest.approx(1.0, abs=1e-15)
    assert np.all((y >= 0.0) & (y <= 1.0))
    assert np.all(y >= x - 1e-15)
    assert np.all(np.diff(y) >= -1e-15)
    chords = np.diff(y) / np.diff(x)
    slack = 4e-16 / np.diff(x)  # rounding of y
    assert np.all(chords[1:] <= chords[:-1] * (1 + 1e-9) + slack[1:] + slack[:-1])


@every
def test_the_curve_is_concave_and_ends_in_the_corner(guarantee):
    check_curve(guarantee.roc)
    assert guarantee.roc.is_concave


@given(random_guarantees)
def test_random_curves_are_concave_and_end_in_the_corner(guarantee):
    check_curve(guarantee.roc)


@every
@at_priors
def test_accuracy_is_read_off_the_curve(guarantee, prior):
    best = 1.0 - prior + on_the_curve(guarantee.roc, prior, 1.0 - prior)
    assert guarantee.accuracy(prior) == pytest.approx(max(best, prior, 1.0 - prior), abs=1e-12)


@given(random_guarantees, shares)
def test_accuracy_of_random_guarantees(guarantee, prior):
    best = 1.0 - prior + on_the_curve(guarantee.roc, prior, 1.0 - prior)
    accuracy = guarantee.accuracy(prior)
    assert max(prior, 1.0 - prior) <= accuracy <= 1.0
    assert accuracy == pytest.approx(max(best, prior, 1.0 - prior), abs=1e-12)


@every
def test_advantage_is_the_largest_gap(guarantee):
    assert 0.0 <= guarantee.advantage <= 1.0
    assert guarantee.advantage == pytest.approx(on_the_curve(guarantee.roc, 1.0, 1.0), abs=1e-12)
    assert guarantee.advantage == pytest.approx(2.0 * guarantee.accuracy() - 1.0, abs=1e-12)


@given(random_guarantees)
def test_advantage_of_random_guarantees(guarantee):
    assert guarantee.advantage == pytest.approx(on_the_curve(guarantee.roc, 1.0, 1.0), abs=1e-12)


@every
def test_tpr_at_keeps_the_shape(guarantee):
    one = guarantee.tpr_at(0.1)
    assert type(one) is float
    assert type(guarantee.tpr_at(np.float64(0.1))) is float
    assert type(guarantee.tpr_at(np.array(0.1))) is float
    assert type(guarantee.tpr_at(1)) is float
    for rates in ([0.1], (0.0, 0.1, 1.0), np.full((2, 3), 0.1), np.full((1, 1, 1), 0.1), [], np.zeros((0, 2))):
        found = guarantee.tpr_at(rates)
        assert isinstance(found, np.ndarray)
        assert found.shape == np.shape(rates)
    assert guarantee.tpr_at([0.1, 0.2])[0] == one
    assert guarantee.tpr_at(0.1) == guarantee.roc.tpr(0.1)


@every
@at_priors
def test_posterior_surrounds_the_prior(guarantee, prior):
    low, high = guarantee.posterior(prior, **fixed_world(guarantee))
    assert 0.0 <= low <= prior * (1 + 1e-15)
    assert prior * (1 - 1e-15) <= high <= 1.0


@given(random_guarantees, shares)
def test_random_posteriors_surround_the_prior(guarantee, prior):
    low, high = guarantee.posterior(prior)
    assert 0.0 <= low <= prior + 1e-15
    assert prior - 1e-15 <= high <= 1.0


@every
@at_priors
def test_posterior_is_bayes_on_the_likelihood_ratios(guarantee, prior):
    ratios = guarantee.log_likelihood_ratios()
    assert ratios[0] <= 0.0 <= ratios[1]
    for belief, ratio in zip(guarantee.posterior(prior, **fixed_world(guarantee)), ratios, strict=True):
        assert belief == pytest.approx(float(expit(logit(prior) + ratio)), abs=1e-15, rel=1e-12)


@every
def test_likelihood_ratios_are_the_slopes_of_the_curve(guarantee):
    low, high = guarantee.log_likelihood_ratios()
    steepest, flattest = guarantee.roc.slopes[1], guarantee.roc.slopes[0]
    if isinstance(guarantee, wi.DPSGD) and guarantee.roc.vertices is not None and guarantee.steps > 1:
        # The composed curve is rounded up, so its right end may be flatter than the truth.
        assert flattest <= math.exp(low) * (1 + 1e-12)
        assert math.isinf(high) == math.isinf(steepest)
    elif guarantee.advantage < 1.0:
        assert flattest == pytest.approx(math.exp(low), abs=1e-12)
        assert steepest == pytest.approx(math.exp(high), rel=1e-9)


@every
@at_priors
def test_risks_agree_with_the_methods(guarantee, prior):
    low, high = guarantee.posterior(prior, **fixed_world(guarantee))
    assert guarantee.risk("accuracy", prior) == pytest.approx(guarantee.accuracy(prior), abs=1e-12)
    assert guarantee.risk("advantage", prior) == pytest.approx(guarantee.advantage, abs=1e-12)
    assert guarantee.risk("am", prior) == pytest.approx(0.5 + guarantee.advantage / 2, abs=1e-12)
    assert guarantee.risk("advantage_at_prior", prior) == pytest.approx(2 * guarantee.accuracy(prior) - 1, abs=1e-12)
    assert guarantee.risk(wi.risks.tpr_at_fpr(0.1), prior) == guarantee.tpr_at(0.1)
    if guarantee.advantage < 1.0:
        assert guarantee.risk("posterior", prior) == pytest.approx(high, rel=1e-12)
        assert guarantee.risk("ppv", prior) == guarantee.risk("posterior", prior)
        assert guarantee.risk("npv", prior) >= 1.0 - low - 1e-12
    if guarantee.roc.vertices is None or len(guarantee.roc.vertices) < 10:
        assert guarantee.risk("npv", prior) == pytest.approx(1.0 - low, abs=1e-12)


@every
def test_any_callable_is_a_risk(guarantee):
    assert guarantee.risk(lambda roc, prior: float(roc.tpr(0.25)) + prior, 0.125) == guarantee.tpr_at(0.25) + 0.125


@pytest.mark.parametrize("guarantee", PERFECT, ids=str)
@at_priors
def test_a_perfect_guarantee_leaves_blind_guessing(guarantee, prior):
    rates = np.linspace(0.0, 1.0, 11)
    assert guarantee.accuracy(prior) == pytest.approx(max(prior, 1.0 - prior), abs=1e-15)
    assert guarantee.advantage == 0.0
    assert guarantee.tpr_at(rates) == pytest.approx(rates, abs=1e-15)
    assert guarantee.posterior(prior) == pytest.approx((prior, prior), rel=1e-12)
    assert "no more often than without looking" in guarantee.explain(prior)
    assert "give somebody away" not in guarantee.explain(prior)


@pytest.mark.parametrize("guarantee", USELESS, ids=str)
def test_a_useless_guarantee_allows_everything(guarantee):
    assert guarantee.accuracy(0.3) == pytest.approx(1.0, abs=1e-15)
    assert guarantee.advantage == pytest.approx(1.0, abs=1e-15)
    least = 5e-324 if guarantee == wi.PureDP(1000.0) else 0.0
    assert guarantee.tpr_at([least, 1e-9, 0.5]) == pytest.approx(np.ones(3), abs=1e-15)
    assert guarantee.posterior(0.3) == (0.0, 1.0)


@every
def test_it_is_a_frozen_value(guarantee):
    field = dataclasses.fields(guarantee)[0].name
    with pytest.raises(FrozenInstanceError):
        setattr(guarantee, field, 0.1)
    twin = dataclasses.replace(guarantee)
    assert twin is not guarantee
    assert twin == guarantee
    assert hash(twin) == hash(guarantee)
    assert len({twin, guarantee}) == 1


@every
def test_it_survives_pickling_and_copying(guarantee):
    assert guarantee.roc is guarantee.roc
    for twin in (pickle.loads(pickle.dumps(guarantee)), copy.deepcopy(guarantee), copy.copy(guarantee)):
        assert twin == guarantee
        assert hash(twin) == hash(guarantee)
        assert twin.accuracy(0.3) == guarantee.accuracy(0.3)


@every
def test_repr_can_be_read_back(guarantee):
    if isinstance(guarantee, wi.TradeOff):  # a curve is written in short; its parameters hold all corners
        assert wi.TradeOff(**guarantee.parameters()) == guarantee
        return
    assert eval(repr(guarantee), {"inf": INF, **{name: getattr(wi, name) for name in wi.__all__}}) == guarantee


@every
def test_str_is_one_line_with_the_parameters(guarantee):
    text = str(guarantee)
    assert "\n" not in text
    assert "=" in text or isinstance(guarantee, wi.TradeOff | wi.RenyiDP | wi.PrivacyProfile)
    for field in dataclasses.fields(guarantee):
        value = getattr(guarantee, field.name)
        if isinstance(value, float):
            assert f" = {value:g}" in text
    compared = {"add_remove": "added or removed", "replace": "replaced", "zero_out": "empty record"}
    assert compared.get(getattr(guarantee, "adjacency", ""), "") in text


def test_parameters_are_floats_even_when_given_as_whole_numbers():
    assert wi.PureDP(1) == wi.PureDP(1.0)
    assert type(wi.PureDP(1).epsilon) is float
    assert type(wi.PureDP(np.float32(0.5)).epsilon) is float
    assert type(wi.DPSGD(1, 1, 10.0).steps) is int
    assert type(wi.DifferentialIdentifiability(1, np.int64(3)).candidates) is int
    assert wi.PureDP(1.0) != wi.PureDP(1.0, "replace")
    assert wi.PureDP(1.0) != wi.ApproxDP(1.0, 0.0)
    assert wi.PMP(1.0) != wi.PureDP(1.0)


def as_json(value):
    """A parameter as JSON holds it: infinity as text, tuples as lists, a curve by its corners."""
    if isinstance(value, tuple):
        return [as_json(item) for item in value]
    if isinstance(value, wi.Roc):
        return {"fpr": value.vertices[:, 0].tolist(), "tpr": value.vertices[:, 1].tolist()}
    return "inf" if value == INF else value


@every
def test_to_dict_is_json(guarantee):
    described = json.loads(json.dumps(guarantee.to_dict(), allow_nan=False))
    assert described["guarantee"] == type(guarantee).__name__
    assert described["assumes"] == list(guarantee.assumes)
    for field in dataclasses.fields(guarantee):
        value = getattr(guarantee, field.name)
        assert described[field.name] == as_json(value)
    assert set(described) == {"guarantee", "assumes", *(field.name for field in dataclasses.fields(guarantee))}


def test_to_dict_writes_infinity_as_text():
    assert wi.PureDP(INF).to_dict()["epsilon"] == "inf"
    assert wi.MembershipPrivacy(INF).to_dict()["gamma"] == "inf"
    assert wi.DPSGD(INF, 0.1, 3).to_dict()["noise_multiplier"] == "inf"


@every
def test_assumptions_are_sentences(guarantee):
    assert isinstance(guarantee.assumes, tuple)
    assert len(guarantee.assumes) >= 2
    for line in guarantee.assumes:
        assert isinstance(line, str)
        assert len(line.split()) >= 4
        assert line == line.strip()
        assert "  " not in line


class _Text(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.text = [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@every
def test_html_is_well_formed_and_complete(guarantee):
    parser = _Text()
    parser.feed(guarantee._repr_html_())
    parser.close()
    assert parser.open == []
    text = " ".join(parser.text)
    assert str(guarantee) in text
    assert guarantee.explain() in text
    for line in guarantee.assumes:
        assert line in text


@dataclass(frozen=True)
class Rude(wi.PureDP):
    """A guarantee whose words are markup."""

    @property
    def assumes(self):
        return ("1 < 2 & <script>alert('in')</script>",)

    @property
    def _attacker(self):
        return "<b>Mallory</b> & friends"


def test_html_escapes_its_words():
    page = Rude(1.0)._repr_html_()
    assert "<script>" not in page
    assert "<b>Mallory" not in page
    assert html.escape(Rude(1.0).assumes[0]) in page
    assert "&lt;b&gt;Mallory&lt;/b&gt; &amp; friends" in page


# --- explain ---------------------------------------------------------------------------------------------------------


def percentages(pattern, text):
    found = re.search(pattern, text)
    return None if found is None else [Decimal(number) / 100 for number in found.groups()]


def check_rounded_up(printed, value):
    """At or above the value, by no more than a tenth of a percent or a tenth of the distance to the nearer end.

    A percentage next to 100 has four decimals at the most.
    """
    rarer = min(value, 1.0 - value)
    assert printed >= Decimal(value) - Decimal("2e-16")
    step = 1e-6 if value > 0.5 else 1e-15
    assert float(printed) - value <= max(step, min(1.1e-3, 0.11 * rarer) if rarer > 0 else 0.0)


def check_explanation(guarantee, prior):
    text = guarantee.explain(prior)
    accuracy, blind = guarantee.accuracy(prior), max(prior, 1.0 - prior)
    low, high = guarantee.posterior(prior, **fixed_world(guarantee))
    best = percentages(r"guesses right at most ([\d.]+)% of the time", text)
    if best is None:
        assert "no more often than without looking" in text
        assert accuracy <= blind + 1e-12
    else:
        check_rounded_up(best[0], accuracy)
    (shown,) = percentages(r"in with probability ([\d.e-]+)%", text)
    assert float(shown) == pytest.approx(prior, rel=1e-5)
    (always,) = percentages(r"likelier answer is right ([\d.]+)% of the time", text)
    check_rounded_up(always, blind)
    (found,) = percentages(r"one outsider in a thousand finds at most ([\d.]+)% of the members", text)
    check_rounded_up(found, guarantee.tpr_at(0.001))
    afterwards = percentages(r"at least ([\d.]+)% and at most ([\d.]+)% afterwards", text)
    if high >= 1.0:
        assert afterwards is None
        assert "no limit below 100%" in text
    else:
        check_rounded_up(afterwards[1], high)
        assert afterwards[0] <= Decimal(low) + Decimal("2e-16")
        assert low - float(afterwards[0]) <= max(1e-12, 1.1e-3 if low > 0.01 else 0.11 * low)


@every
@at_priors
def test_explain_rounds_to_the_safe_side(guarantee, prior):
    check_explanation(guarantee, prior)


@given(st.floats(1e-6, 12.0), st.floats(0.0, 0.2), st.floats(0.001, 0.999))
def test_explain_rounds_random_numbers_to_the_safe_side(epsilon, delta, prior):
    check_explanation(wi.PureDP(epsilon), prior)
    check_explanation(wi.ApproxDP(epsilon, delta), prior)


@pytest.mark.parametrize("excess", [1e-9, 5e-10, 1e-10, 1e-11])
def test_explain_rounds_up_a_hair_above_a_round_number(excess):
    guarantee = wi.PureDP(float(logit(0.7 + excess)))
    assert guarantee.accuracy() > 0.7 + excess / 2
    (best,) = percentages(r"guesses right at most ([\d.]+)% of the time", guarantee.explain())
    assert best > Decimal("0.7")


def test_explain_keeps_round_numbers_round():
    assert "at most 60% of the time" in wi.MIP(0.1).explain()
    assert "at most 20.1% of the members" in wi.MIP(0.1).explain()
    assert "at least 25% and at most 75% afterwards" in wi.PureDP(math.log(3.0)).explain()


def test_explain_of_a_large_epsilon_shows_what_is_left():
    """8-DP at prior 1/2: accuracy 0.99966464987; a flat 100% would hide the rest, 99.9% would be a lie."""
    text = wi.PureDP(8.0).explain()
    (best,) = percentages(r"guesses right at most ([\d.]+)% of the time", text)
    assert Decimal("0.99966464") < best < Decimal("0.9998")


def test_the_attacker_is_named():
    assert wi.PureDP(1.0).explain().startswith("Even an attacker who knows everybody else")
    assert wi.PMP(1.0).explain().startswith("An attacker who knows the pool")
    assert wi.MIP(0.1).explain().startswith("An attacker who knows the pool")
    assert "3 candidates" in wi.DifferentialIdentifiability(0.5, 3).explain()

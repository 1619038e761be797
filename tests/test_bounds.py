"""The table of published bounds: golden numbers, what applies when, the tightest mark, and that all are bounds."""

import json
import math
from html.parser import HTMLParser
from pathlib import Path

import mpmath
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import whosin as wi
from whosin import bounds

GOLDEN = json.loads((Path(__file__).parent / "data" / "golden.json").read_text(encoding="utf-8"))
INF = math.inf
QUANTITIES = ("advantage", "accuracy", "ppv")

epsilons = st.one_of(st.floats(0.0, 30.0), st.sampled_from([700.0, 720.0, 1000.0, INF]))
deltas = st.one_of(st.just(0.0), st.floats(1e-12, 0.999), st.just(1.0))
priors = st.one_of(st.just(0.5), st.floats(0.001, 0.999))


def row(table, quantity, name):
    (found,) = [bound for bound in table if bound.quantity == quantity and name in bound.name]
    return found


def ceiling(table, quantity):
    """The exact limit of each quantity under (ε, δ)-DP."""
    guarantee = wi.ApproxDP(table.epsilon, table.delta)
    return {
        "advantage": guarantee.advantage,
        "accuracy": guarantee.accuracy(table.prior),
        "ppv": guarantee.posterior(table.prior)[1],
    }[quantity]


# --- golden numbers --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [1, 2])
@pytest.mark.parametrize(
    ("name", "golden"),
    [("Thudi", "acc"), ("Erlingsson", "erlingsson"), ("Sablayrolles", "sablayrolles"), ("exact", "acc")],
)
def test_accuracies_at_one_half(epsilon, name, golden):
    """Thudi et al. 2022, section 5.1 (which prints 95% for Erlingsson at ε = 2; the formula gives 93.2%)."""
    value = row(bounds.table(epsilon), "accuracy", name).value
    assert value == pytest.approx(GOLDEN["thudi"][f"{golden}_eps{epsilon}"], rel=1e-15)


@pytest.mark.parametrize(("epsilon", "golden"), [(1.0, "tanh_half"), (2.0, "tanh_1"), (10.0, "tanh_5")])
def test_advantages(epsilon, golden):
    table = bounds.table(epsilon)
    for name in ("Humphries", "MACE"):
        assert row(table, "advantage", name).value == pytest.approx(GOLDEN["mace"][golden], rel=1e-15)


def test_positive_predictive_value_at_one_percent():
    table = bounds.table(2.0, prior=0.01)
    for name in ("Thudi", "exact"):
        assert row(table, "ppv", name).value == pytest.approx(GOLDEN["thudi"]["pos_acc_eps2_p001"], rel=1e-15)
    assert row(table, "accuracy", "exact").value == 0.99


def test_pointwise_and_average_bounds_of_mace():
    assert bounds.mace_pointwise(1.0, 0.1) == pytest.approx(GOLDEN["mace"]["bound_p01_eps1_individual"], rel=1e-15)
    assert bounds.mace_average(1.0, 0.1) == pytest.approx(GOLDEN["mace"]["bound_p01_eps1_average"], rel=1e-15)
    assert row(bounds.table(1.0, prior=0.1), "accuracy", "corrected").value == pytest.approx(0.9, rel=1e-15)


@pytest.mark.parametrize(("key", "eta"), GOLDEN["izzo"]["thm4_eta"].items())
def test_izzo(key, eta):
    epsilon, delta = (float(part.split("=")[1]) for part in key.split(","))
    assert row(bounds.table(epsilon, delta), "accuracy", "Izzo").value == pytest.approx(0.5 + eta, rel=1e-15)


def test_the_gaussian_row_uses_the_least_noise():
    """(1, 1e-5)-DP takes noise 3.730631634815944 (Balle and Wang); its attacker is right Φ(μ/2) of the time."""
    mu = 1 / GOLDEN["thudi"]["noise_balle_wang_sens1"]
    assert mu == 1 / 3.730631634815944
    value = row(bounds.table(1.0, 1e-5), "advantage", "Mahloujifar").value
    assert 0.5 + value / 2 == pytest.approx(GOLDEN["thudi"]["acc_at_balle_wang"], rel=1e-12)
    assert value == pytest.approx(wi.GaussianDP(mu).advantage, rel=1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.1), (0.1, 1e-6), (3.0, 1e-9), (10.0, 0.3), (30.0, 1e-5)])
def test_the_gaussian_row_against_mpmath(epsilon, delta):
    with mpmath.workdps(40):
        e, d = mpmath.mpf(epsilon), mpmath.mpf(delta)
        low, high = mpmath.mpf("1e-12"), mpmath.mpf(1000)
        for _ in range(130):
            m = (low + high) / 2
            if mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m) > d:
                high = m
            else:
                low = m
        exact = mpmath.erf(low / mpmath.sqrt(8))
    value = row(bounds.table(epsilon, delta), "advantage", "Mahloujifar").value
    assert value == pytest.approx(float(exact), rel=1e-9)


def test_the_peak_of_the_posterior_gain():
    """Thudi et al., figure 6 at ε = 2: 2·tanh(ε/4) = 0.92423 at the prior 1/(1 + e^{ε/2}) = 0.26894."""
    golden = GOLDEN["thudi"]
    peak = golden["fig6_argmax_p_eps2"]

    def gain(prior):
        return 2 * (bounds.thudi(2.0, prior) - prior)

    assert gain(peak) == pytest.approx(golden["fig6_max_adv_eps2"], rel=1e-12)
    assert gain(peak) > max(gain(peak - 1e-3), gain(peak + 1e-3))


# --- what applies when -----------------------------------------------------------------------------------------------


def test_pure_rows_do_not_apply_with_delta():
    pure_only = {"Yeom", "Sablayrolles", "Thudi", "MACE"}
    for bound in bounds.table(1.0, 1e-5):
        needs_no_delta = any(name in bound.name for name in pure_only)
        assert (bound.value is None) == needs_no_delta, bound.name
        if needs_no_delta:
            assert "δ = 0" in bound.needs
            assert not bound.tightest


def test_the_gaussian_row_needs_a_delta():
    assert row(bounds.table(1.0), "advantage", "Mahloujifar").value is None
    assert row(bounds.table(1.0, 1.0), "advantage", "Mahloujifar").value is None
    assert row(bounds.table(INF, 0.1), "advantage", "Mahloujifar").value is None


def test_rows_for_one_half_do_not_apply_at_other_priors():
    half_only = {"Yeom", "Erlingsson", "Sablayrolles", "Thudi", "Izzo"}
    for bound in bounds.table(1.0, prior=0.3):
        if bound.quantity == "accuracy":
            needs_half = any(name in bound.name for name in half_only)
            assert (bound.value is None) == needs_half, bound.name
            assert ("prior 1/2" in bound.needs) == needs_half
        elif "Mahloujifar" not in bound.name:
            assert bound.value is not None


def test_every_row_says_where_it_comes_from():
    for bound in bounds.table(1.0, 1e-5, 0.3):
        assert bound.quantity in QUANTITIES
        assert bound.name
        assert bound.source
        assert bound.formula
        assert isinstance(bound.needs, str)


# --- all of them are bounds ------------------------------------------------------------------------------------------


@given(epsilons, deltas, priors)
def test_no_value_lies_below_the_exact_ceiling(epsilon, delta, prior):
    table = bounds.table(epsilon, delta, prior)
    for bound in table:
        if bound.value is None:
            continue
        assert 0.0 <= bound.value <= 1.0
        if bound.general:
            assert bound.value >= ceiling(table, bound.quantity) - 1e-12, bound.name
        else:
            assert bound.value <= ceiling(table, bound.quantity) + 1e-12, bound.name


@given(epsilons, deltas, priors)
def test_the_tightest_is_the_exact_ceiling_and_is_marked(epsilon, delta, prior):
    table = bounds.table(epsilon, delta, prior)
    for quantity in QUANTITIES:
        competing = [b for b in table if b.quantity == quantity and b.general and b.value is not None]
        least = min(b.value for b in competing)
        assert least == pytest.approx(ceiling(table, quantity), rel=1e-12)
        assert table.tightest(quantity).value == pytest.approx(least, rel=1e-12)
        for bound in table:
            if bound.quantity == quantity and bound not in competing:
                assert not bound.tightest
            elif bound.quantity == quantity:
                assert bound.tightest or bound.value > least * (1 + 1e-13)
                assert not bound.tightest or bound.value <= least * (1 + 1e-11)


def test_ties_are_all_marked():
    marked = {b.name.split()[0] for b in bounds.table(1.0) if b.tightest and b.quantity == "accuracy"}
    assert marked == {"Thudi", "Izzo", "Xu", "exact"}
    assert not row(bounds.table(1.0), "accuracy", "Erlingsson").tightest


def test_the_literature_in_order_at_epsilon_one():
    """Yeom > Erlingsson > Humphries on the advantage; Sablayrolles above Thudi on the posterior."""
    table = bounds.table(1.0)
    yeom, erlingsson, humphries = (row(table, "advantage", n).value for n in ("Yeom", "Erlingsson", "Humphries"))
    assert yeom == 1.0
    assert erlingsson == pytest.approx(1 - math.exp(-1), rel=1e-15)
    assert humphries == pytest.approx(math.tanh(0.5), rel=1e-15)
    assert row(table, "ppv", "Sablayrolles").value == 0.75


@given(st.floats(0.01, 10.0), st.floats(0.0, 0.3), priors, st.floats(1e-4, 1.0))
@example(1.9, 8.2373507920455e-310, 0.5, 0.01)  # a search that takes more than 100 steps
def test_the_precision_at_a_fixed_false_positive_rate(epsilon, delta, prior, fpr):
    value = row(bounds.table(epsilon, delta, prior, fpr), "ppv", "Jayaraman").value
    found = prior * min(1.0, wi.ApproxDP(epsilon, delta).tpr_at(fpr))
    assert value == pytest.approx(found / (found + (1 - prior) * fpr), rel=1e-12)
    assert value == pytest.approx(wi.ApproxDP(epsilon, delta).risk(wi.risks.ppv_at_fpr(fpr), prior), rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 1.0, 100.0, 709.0, 745.0, 1000.0, 1e6, INF])
@pytest.mark.parametrize("delta", [0.0, 1e-300, 1e-12, 0.5, 1 - 1e-12, 1.0])
def test_extreme_parameters(epsilon, delta):
    table = bounds.table(epsilon, delta, prior=0.1)
    for bound in table:
        assert bound.value is None or 0.0 <= bound.value <= 1.0
    assert json.loads(json.dumps(table.to_dict(), allow_nan=False))["delta"] == delta
    assert "nan" not in str(table)


def test_no_privacy_loss_leaves_blind_guessing():
    table = bounds.table(0.0, prior=0.2)
    assert table.tightest("advantage").value == 0.0
    assert table.tightest("accuracy").value == 0.8
    assert table.tightest("ppv").value == pytest.approx(0.2, rel=1e-15)


# --- as an object ----------------------------------------------------------------------------------------------------


def test_the_table_is_iterable_and_printable():
    table = bounds.table(1.0, 1e-5, 0.5)
    assert len(table) == len(list(table)) == len(table.rows)
    lines = str(table).splitlines()
    assert len(lines) == 1 + len(table)
    assert "ε = 1" in lines[0]
    for bound, line in zip(table, lines[1:], strict=True):
        assert line.startswith("*" if bound.tightest else " ")
        assert bound.name in line
        assert "\n" not in str(bound)
        assert ("does not apply" in str(bound)) == (bound.value is None)


def test_to_dict_is_json():
    shown = json.loads(json.dumps(bounds.table(INF, 0.0, 0.3, 0.05).to_dict(), allow_nan=False))
    assert (shown["epsilon"], shown["delta"], shown["prior"], shown["fpr"]) == ("inf", 0.0, 0.3, 0.05)
    assert len(shown["bounds"]) == len(bounds.table(1.0))
    assert {"name", "source", "quantity", "value", "formula", "needs", "general", "tightest"} <= set(shown["bounds"][0])


def test_html_is_well_formed():
    class Cells(HTMLParser):
        def __init__(self):
            super().__init__()
            self.open, self.rows = [], 0

        def handle_starttag(self, tag, attrs):
            self.open.append(tag)
            self.rows += tag == "tr"

        def handle_endtag(self, tag):
            assert self.open.pop() == tag

    parser = Cells()
    table = bounds.table(1.0, 1e-5)
    parser.feed(table._repr_html_())
    assert parser.open == []
    assert parser.rows == 1 + len(table)


def test_the_rows_are_frozen():
    with pytest.raises(AttributeError):
        bounds.table(1.0).rows[0].value = 0.0
    assert bounds.table(1.0) == bounds.table(1.0)
    assert bounds.table(1.0) != bounds.table(1.1)

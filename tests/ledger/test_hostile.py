"""Ways to make a total too small, a chain look whole, or a password appear: all of them fail."""

import json
import math

import mpmath
import numpy as np
import pytest

import whosin as wi
from whosin.errors import InputError
from whosin.ledger import Budget, BudgetError, Ledger, LedgerError, compose
from whosin.ledger.place import Place
from whosin.ledger.store import ENTRIES


def exact_divergence(epsilon, delta, times, gamma):
    """E_γ of so many equal worst pairs (Kairouz, Oh and Viswanath 2015, theorem 3.3), in 40 digits."""
    with mpmath.workdps(40):
        epsilon, delta, log_gamma = mpmath.mpf(epsilon), mpmath.mpf(delta), mpmath.log(gamma)
        truth = 1 / (1 + mpmath.exp(-epsilon))
        total = mpmath.mpf(0)
        for hits in range(times + 1):
            loss = (2 * hits - times) * epsilon
            if loss > log_gamma:
                share = mpmath.binomial(times, hits) * truth**hits * (1 - truth) ** (times - hits)
                total += share * (1 - mpmath.exp(log_gamma - loss))
        return 1 - (1 - delta) ** times * (1 - total)


@pytest.mark.parametrize(
    ("epsilon", "delta", "times"),
    [(1e-3, 0.0, 400), (1e-13, 0.0, 300), (0.5, 1e-4, 20), (20.0, 0.0, 5)],
)
@pytest.mark.parametrize("target", [None, 1e-6])
def test_equal_pairs_are_never_below_the_optimal_composition(epsilon, delta, times, target):
    """No tolerance: every digit counts, in 40 of them."""
    total = compose([wi.ApproxDP(epsilon, delta)] * times, delta=target)
    assert total.advantage >= exact_divergence(epsilon, delta, times, 1)
    if math.isfinite(total.epsilon):
        with mpmath.workdps(40):
            assert exact_divergence(epsilon, delta, times, mpmath.exp(total.epsilon)) <= total.delta


def test_many_releases_below_the_last_bit():
    """ε = 1e-16 is no different from 0 in one curve; 20,000 of them are (advantage about ε·√(k/2π))."""
    total = compose([wi.PureDP(1e-16)] * 20_000)
    assert total.advantage >= 1e-16 * math.sqrt(20_000 / (2 * math.pi))


@pytest.mark.parametrize(
    "parts",
    [
        [wi.PureDP(700.0)] * 2,
        [wi.ApproxDP(700.0, 1e-9), wi.DPSGD(10.0, 0.1, 1)],
        [wi.PureDP(1.0), wi.ApproxDP(0.0, 1.0 - 2**-53)],
        [wi.PureDP(5.0), wi.DPSGD(1e300, 0.9, 1)],
        [wi.GaussianDP(1.0), wi.DPSGD(1e-6, 1.0 - 2**-53, 2)],
    ],
)
def test_extreme_guarantees_have_a_total(parts):
    total = compose(parts, delta=1e-5)
    assert total.epsilon >= max(compose([part], delta=1e-5).epsilon for part in parts) * (1 - 1e-9)
    assert max(part.advantage for part in parts) * (1 - 1e-9) <= total.advantage <= 1.0


def test_large_responses_keep_their_digits_beside_a_run():
    """ε = 30 is its own mirror image: turned round in floats, its corner moves by a thousandth."""
    run = wi.DPSGD(1.0, 0.01, 1)
    total = compose([wi.PureDP(30.0), run], delta=1e-4)
    corner, gamma = math.exp(-30.0) / (1.0 + math.exp(-30.0)), math.exp(total.epsilon)
    pair = [(1.0 - corner, corner), (corner, 1.0 - corner)]
    for curve in (run.roc, run.roc.reversed()):
        assert sum(p * curve.divergence(gamma * q / p) for p, q in pair) <= 1e-4 * (1 + 1e-9)


def test_many_different_guarantees_beside_a_run_are_limited():
    given = [wi.PureDP(0.001 + i * 1e-5) for i in range(70)]
    total = compose([*given, wi.DPSGD(1.0, 0.01, 100)], delta=1e-5)
    by_sum = compose([wi.PureDP(sum(part.epsilon for part in given)), wi.DPSGD(1.0, 0.01, 100)], delta=1e-5)
    assert total.epsilon == pytest.approx(by_sum.epsilon, rel=1e-6)
    assert total.advantage < 1.0


def test_the_product_says_that_strengths_are_fixed():
    """Also where the advantage is 1 by either way, and the ε alone comes from the product."""
    total = compose([wi.PureDP(10.0)] * 40, delta=0.1)
    assert (total.way, total.advantage) == ("product of the worst pairs", 1.0)
    assert any("chosen after looking" in line for line in total.assumes)


@pytest.mark.parametrize("guarantee", [wi.ApproxDP(0.0, 1.0), wi.ApproxDP(0.1, 0.5), wi.ApproxDP(0.5, 0.01)])
def test_a_budget_of_epsilon_is_not_met_at_a_large_delta(folder, guarantee):
    """(0, 1)-DP is no promise at all, and its ε is 0."""
    ledger = Ledger(folder / "ledger.db")
    with pytest.raises(BudgetError, match="δ of the total"):
        ledger.add("all of it", dataset="people", guarantee=guarantee, budget=Budget(epsilon=1.0))
    ledger.add("all of it", dataset="people", guarantee=guarantee)
    assert Budget(epsilon=1.0).problems(ledger.check(dataset="people", delta=0.9))


def test_a_budget_at_one_delta_is_not_met_at_another(folder):
    ledger = Ledger(folder / "ledger.db")
    ledger.add("counts", dataset="people", guarantee=wi.GaussianDP(0.5))
    budget = Budget(epsilon=2.5, delta=1e-9)
    assert not Budget(epsilon=2.5, delta=1e-6).problems(ledger.check(dataset="people", delta=1e-6))
    assert budget.problems(ledger.check(dataset="people", delta=1e-6))
    assert budget.problems(ledger.check(dataset="people", delta=1e-9))


@pytest.mark.parametrize(
    "spelling", ["Caf\u00e9 people", "Cafe\u0301 people", " Caf\u00e9  people ", "Caf\u00e9 people\u3000"]
)
def test_one_name_in_several_spellings_counts_together(folder, spelling):
    ledger = Ledger(folder / "ledger.db")
    ledger.add("a", dataset="Caf\u00e9 people", guarantee=wi.PureDP(1.0))
    if "\u3000" in spelling:
        spelling = spelling.strip()
    ledger.add("b", dataset=spelling, guarantee=wi.PureDP(1.0))
    ledger.same_people(np.eye(3), spelling)
    assert ledger.check(dataset=spelling).epsilon == 2.0
    assert len(ledger.check(np.eye(3)).releases) == 2


@pytest.mark.parametrize("number", ["0", "-7"])
def test_entries_put_in_before_the_first_are_seen(address, tamper, number):
    ledger = Ledger(address)
    ledger.add("counts", dataset="people", guarantee=wi.PureDP(1.0))
    assert ledger.verify().intact
    tamper(
        f"INSERT INTO {ENTRIES} (number, action, fingerprint, dataset, about, body, previous, hash) "
        f"SELECT {number}, action, fingerprint, dataset, about, body, previous, 'another' FROM {ENTRIES}"
    )
    found = ledger.verify()
    assert not found.intact
    assert "put in" in str(found)


@pytest.mark.parametrize("number", ["NULL", "'last'"])
def test_entries_without_a_number_are_seen(folder, number):
    import sqlite3

    ledger = Ledger(folder / "ledger.db")
    ledger.add("counts", dataset="people", guarantee=wi.PureDP(1.0))
    connection = sqlite3.connect(folder / "ledger.db")
    with connection:
        connection.execute(
            f"INSERT INTO {ENTRIES} (number, action, fingerprint, dataset, about, body, previous, hash) "
            f"SELECT {number}, action, fingerprint, dataset, about, body, previous, 'another' FROM {ENTRIES}"
        )
    connection.close()
    assert not ledger.verify().intact


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": math.nan},
        {"epsilon": -1.0},
        {"epsilon": True},
        {"epsilon": None},
        {"epsilon": "1"},
        {"epsilon": [1.0]},
        {"delta": 2.0},
        {"delta": "inf"},
        {"guarantee": "Guarantee"},
        {"guarantee": "__class__"},
        {"guarantee": ["PureDP"]},
        {"adjacency": "none"},
        {"version": 2},
    ],
)
def test_forged_guarantees_are_refused(address, tamper, change):
    """An entry from elsewhere, with a hash that fits: a total of it is an error, never a number."""
    from whosin.ledger.entries import hash_of

    ledger = Ledger(address)
    entry = ledger.add("counts", dataset="people", guarantee=wi.ApproxDP(1.0, 1e-6))
    body = {"action": "release", "at": entry.at.isoformat(), "name": "x", "kind": "release", "dataset": "people"}
    body["guarantee"] = {"version": 1, "guarantee": "ApproxDP", "epsilon": 1.0, "delta": 1e-6, **change}
    text = json.dumps(body, sort_keys=True)
    quoted = text.replace("'", "''").replace(":", "\\:")
    tamper(f"UPDATE {ENTRIES} SET body = '{quoted}', hash = '{hash_of(1, entry.previous, text)}'")
    with pytest.raises(LedgerError, match="entry 1 cannot be read"):
        ledger.check(dataset="people")
    assert not ledger.verify().intact


@pytest.mark.parametrize(
    "address",
    [
        "postgresql:/ada:s3cret@db/x",
        "postgresql:ada:s3cret@db/x",
        "postgres;//ada:s3cret@db/x",
        "postgresql//ada:s3cret@db/x",
        "POSTGRESQL:/ada:s3cret@db/x",
        "postgresql+psycopg:/ada:s3cret@db/x",
    ],
)
def test_a_mistyped_url_is_no_path_and_is_not_shown(address):
    with pytest.raises(InputError, match="URL") as found:
        Place(address)
    assert "s3cret" not in str(found.value)


@pytest.mark.parametrize("stored", [{"guarantee": "PureDP", "epsilon": 0.0}, {"guarantee": "PMP", "epsilon": 0.0}])
def test_a_certificate_holds_nothing_but_membership_inference_privacy(folder, stored):
    """What protect certifies does not compose; in the place of it, differential privacy would."""
    with pytest.raises(InputError, match=r"certificate must be what wi\.protect gave"):
        Ledger(folder / "ledger.db").add("x", dataset="people", certificate={"mip": stored, "test_mode": False})


def test_an_audit_has_its_limits_in_order(folder):
    advantage = {"estimate": 0.3, "lower": 0.5, "upper": 0.2, "confidence_level": 0.95}
    with pytest.raises(InputError, match="lower limit"):
        Ledger(folder / "ledger.db").add("x", dataset="people", audit={"advantage": advantage})


def test_a_void_guarantee_is_listed_as_void(folder):
    ledger = Ledger(folder / "ledger.db")
    ledger.add("counts", dataset="people", guarantee=wi.PureDP(1.0))
    assert str(ledger.retract(1, "no noise", voids_guarantee=True)).endswith("on 1: no noise; its guarantee is void")


def test_the_head_of_the_beginning_is_in_the_chain(folder):
    ledger = Ledger(folder / "ledger.db")
    first = ledger.add("counts", dataset="people")
    assert ledger.verify(first.previous).intact
    assert ledger.verify(first.hash.upper()).intact
    assert not ledger.verify("0" * 64).intact
    with pytest.raises(InputError, match="head must be"):
        ledger.verify("abc")

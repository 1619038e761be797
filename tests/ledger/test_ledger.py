"""The ledger on SQLite and on a real PostgreSQL: what it keeps, what it counts together, what it refuses."""

import json
import math
import pickle
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import whosin as wi
from whosin.errors import InputError, InputTypeError
from whosin.ledger import Budget, BudgetError, Entry, Ledger, LedgerError
from whosin.ledger.entries import audit_summary, hash_of, promise_from_dict, promise_to_dict
from whosin.ledger.store import ENTRIES, META
from whosin.ledger.totals import groups, related
from whosin.tables import as_table

DATA = np.arange(20.0).reshape(10, 2)
OTHER = DATA + 1.0


@pytest.fixture
def ledger(address):
    return Ledger(address)


# --- guarantees as JSON -----------------------------------------------------------------------------------------------

RATES = st.floats(0.0, 1.0)
SIZES = st.floats(0.0, allow_nan=False)
SIDES = st.sampled_from(["add_remove", "replace"])
INNER = st.floats(1e-9, 1.0 - 1e-9)
GUARANTEES = st.one_of(
    st.builds(wi.PureDP, SIZES, SIDES),
    st.builds(wi.ApproxDP, SIZES, RATES, SIDES),
    st.builds(wi.GaussianDP, SIZES, SIDES),
    st.builds(wi.DPSGD, SIZES, RATES, st.integers(0, 10**9)),
    st.builds(wi.PMP, SIZES, RATES, INNER),
    st.builds(wi.MIP, st.floats(0.0, 0.5), INNER),
    st.builds(
        wi.MembershipPrivacy,
        st.floats(1.0, allow_nan=False),
        st.sampled_from(["independent", "bounded"]),
        st.booleans(),
    ),
    st.builds(wi.DifferentialIdentifiability, st.floats(0.5, 1.0), st.integers(2, 100)),
)


@given(GUARANTEES)
def test_guarantees_come_back_as_they_were(guarantee):
    stored = json.dumps(promise_to_dict(guarantee), allow_nan=False)
    again = promise_from_dict(json.loads(stored))
    assert type(again) is type(guarantee)
    assert again == guarantee
    assert promise_from_dict(guarantee.to_dict()) == guarantee


@pytest.mark.parametrize(
    ("stored", "words"),
    [
        ({"version": 2, "guarantee": "PureDP", "epsilon": 1.0}, "version 2"),
        ({"guarantee": "Guarantee"}, "does not know"),
        ({"guarantee": ["PureDP"]}, "does not know"),
        ({"guarantee": "PureDP"}, "does not make sense"),
        ({"guarantee": "PureDP", "epsilon": -1.0}, "does not make sense"),
    ],
)
def test_strange_guarantees(stored, words):
    with pytest.raises(LedgerError, match=words):
        promise_from_dict(stored)


def test_own_guarantees_are_refused():
    class PureDP(wi.PureDP):
        pass

    with pytest.raises(InputTypeError, match="guarantee must be one of"):
        promise_to_dict(PureDP(1.0))


# --- what is kept -----------------------------------------------------------------------------------------------------


def test_an_entry_comes_back(ledger):
    at = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=timezone(timedelta(hours=2)))
    audit = {
        "advantage": {"estimate": 0.1, "lower": 0.05, "upper": 0.3, "confidence_level": 0.95},
        "query": "nearest row",
        "members": 500,
        "individual": {"highest": [{"record": 7}]},
    }
    written = ledger.add(
        "Überblick 数据 🦆",
        data=DATA,
        dataset="patients 2026",
        guarantee=wi.ApproxDP(0.1 + 0.2, 1e-7, "replace"),
        audit=audit,
        kind="synthetic table",
        by="Zoë",
        note="first",
        at=at,
    )
    (read,) = ledger.entries()
    assert read == written
    assert read.at == at
    assert read.at.tzinfo == UTC
    assert read.guarantee == wi.ApproxDP(0.1 + 0.2, 1e-7, "replace")
    assert read.fingerprint == as_table(DATA).fingerprint()
    assert (read.name, read.by, read.kind, read.note) == ("Überblick 数据 🦆", "Zoë", "synthetic table", "first")
    assert read.audit["advantage"]["upper"] == 0.3
    assert "individual" not in read.audit
    json.dumps(read.to_dict(), allow_nan=False)
    assert "Überblick" in str(read)
    assert "&" not in str(read)
    assert read._repr_html_()


def test_only_the_fingerprint_of_the_data_is_kept(tmp_path):
    marked = np.array([[123456.789, 987654.321]] * 3)
    ledger = Ledger(tmp_path / "l.db")
    ledger.add("x", data=marked)
    ledger.check(marked)
    assert b"123456" not in (tmp_path / "l.db").read_bytes()
    assert as_table(marked).fingerprint().encode() in (tmp_path / "l.db").read_bytes()


def test_an_audit_is_summarised():
    generator = np.random.default_rng(0)
    found = wi.audit(generator.normal(1, 1, 200), generator.normal(0, 1, 200), rng=0)
    kept = audit_summary(found)
    assert kept["advantage"] == {k: found.advantage.to_dict()[k] for k in kept["advantage"]}
    assert audit_summary(found.to_dict())["advantage"] == kept["advantage"]
    assert kept["members"] == 200


@pytest.mark.parametrize(
    "audit", [3, {}, {"advantage": 3}, {"advantage": {"estimate": math.nan}}, {"advantage": {"estimate": "0.5"}}]
)
def test_strange_audits(audit):
    with pytest.raises((InputError, InputTypeError), match=r"audit must (be|have)"):
        audit_summary(audit)


def test_certificates(ledger):
    made = wi.protect("mean", DATA, eta=0.2, rng=0)
    entry = ledger.add("mean", data=DATA, certificate=made)
    assert entry.guarantee == made.certificate.mip
    assert ledger.add("again", dataset="x", certificate=made.to_dict()).guarantee == made.certificate.mip
    both = made.certificate.compose(made.certificate, same_draw=True)
    joint = ledger.add("two of one half", dataset="w", certificate=both)
    assert joint.guarantee == both.mip
    assert joint.guarantee.eta == pytest.approx(0.4)
    assert ledger.add("its file", dataset="v", certificate=both.to_dict()).guarantee == both.mip
    test = {**made.certificate.to_dict(), "test_mode": True}
    assert ledger.add("test", dataset="y", certificate=test).guarantee is None
    for wrong in ({"mip": 3}, 3, {"mip": {"guarantee": "no"}, "test_mode": False}):
        with pytest.raises((InputError, InputTypeError), match="certificate must be"):
            ledger.add("z", dataset="y", certificate=wrong)
    with pytest.raises(InputError, match="both"):
        ledger.add("z", dataset="y", certificate=made, guarantee=wi.PureDP(1.0))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"name": ""}, "name must be"),
        ({"name": "a\nb"}, "control"),
        ({"name": "a\x00b"}, "control"),
        ({"name": "\ud800"}, "control"),
        ({"name": "x" * 2001}, "1 to 2000"),
        ({"name": 3}, "name must be a text"),
        ({"dataset": " "}, "dataset must be"),
        ({"dataset": None}, "data or dataset"),
        ({"data": "abc"}, "64 hexadecimal"),
        ({"guarantee": 1.0}, "guarantee must be"),
        ({"at": datetime(2026, 1, 1)}, "time zone"),
        ({"at": "now"}, "time zone"),
        ({"budget": 3.0}, "budget must be"),
        ({"by": 3}, "by must be"),
        ({"kind": ""}, "kind must be"),
    ],
)
def test_bad_entries_leave_nothing(tmp_path, arguments, words):
    ledger = Ledger(tmp_path / "l.db")
    with pytest.raises((InputError, InputTypeError), match=words):
        ledger.add(**{"name": "x", "dataset": "d", **arguments})
    assert not (tmp_path / "l.db").exists()


# --- what counts together ---------------------------------------------------------------------------------------------


def test_totals(ledger):
    ledger.add("one", data=DATA, guarantee=wi.PureDP(0.5))
    ledger.add("two", data=DATA, guarantee=wi.PureDP(0.25))
    ledger.add("else", data=OTHER, guarantee=wi.PureDP(4.0))
    total = ledger.check(DATA)
    assert (total.epsilon, total.delta, len(total.releases), total.bounded) == (0.75, 0.0, 2, True)
    assert total.advantage < math.tanh(0.375)
    assert ledger.check(as_table(DATA).fingerprint()) == total
    assert ledger.check(DATA, delta=1e-3).delta == 1e-3
    assert "0.75" in str(total)
    assert any("does not see people" in line for line in total.assumes)
    nothing = ledger.check(np.zeros((3, 3)))
    assert (nothing.epsilon, nothing.advantage, nothing.releases) == (0.0, 0.0, ())
    assert "says nothing about releases elsewhere" in nothing.explain()
    assert [len(found.releases) for found in ledger.totals()] == [2, 1]


def test_declared_to_be_the_same_people(ledger):
    ledger.add("one", data=DATA, guarantee=wi.PureDP(0.5))
    ledger.add("two", data=OTHER, dataset="people", guarantee=wi.PureDP(0.25))
    assert ledger.check(DATA).epsilon == 0.5
    ledger.same_people(DATA, "people", note="cleaned")
    for total in (ledger.check(DATA), ledger.check(OTHER), ledger.check(dataset="people"), *ledger.totals()):
        assert total.epsilon == 0.75
        assert total.datasets == ("people",)
        assert len(total.fingerprints) == 2


KEYS = st.tuples(st.sampled_from([None, *"abcd"]), st.sampled_from([None, *"wxyz"])).filter(any)


@given(st.lists(KEYS, max_size=12))
def test_both_ways_to_find_the_same_people_agree(keys):
    now = datetime.now(UTC)
    entries = [
        Entry(number, "release", now, fingerprint=one, dataset=other) for number, (one, other) in enumerate(keys, 1)
    ]

    class Session:
        def where(self, column, values):
            return [entry for entry in entries if getattr(entry, column) in values]

    found = groups(entries)
    assert sorted(entry.number for group in found for entry in group) == [entry.number for entry in entries]
    for group in found:
        for entry in group:
            assert related(Session(), entry.fingerprint, entry.dataset) == group


def test_a_release_without_guarantee_leaves_no_limit(ledger):
    audit = {"advantage": {"estimate": 0.1, "lower": 0.05, "upper": 0.3, "confidence_level": 0.95}}
    ledger.add("one", data=DATA, guarantee=wi.PureDP(0.5))
    ledger.add("two", data=DATA, audit=audit)
    total = ledger.check(DATA)
    assert (total.epsilon, total.delta, total.advantage, total.bounded) == (None, None, None, False)
    assert "no guarantee" in total.why
    assert total.audits == ((2, audit),)
    text = total.explain()
    assert "Nothing limits what all of them reveal together" in text
    assert "between 0.05 and 0.3" in text
    assert "ε at most 0.5" in text
    json.dumps(total.to_dict(), allow_nan=False)


def test_practical_guarantees_hold_alone(ledger):
    ledger.add("one", data=DATA, guarantee=wi.MIP(0.1))
    total = ledger.check(DATA)
    assert (total.only, total.advantage, total.epsilon) == (wi.MIP(0.1), 0.2, None)
    ledger.add("two", data=DATA, guarantee=wi.PMP(0.5))
    ledger.add("three", data=DATA, guarantee=wi.PureDP(1.0))
    total = ledger.check(DATA)
    assert (total.advantage, total.only, total.bounded) == (None, None, False)
    assert total.alone == ((1, wi.MIP(0.1)), (2, wi.PMP(0.5)))
    assert total.composed.epsilon == 1.0
    assert "do not compose" in total.why
    assert total.why.startswith("Release 1, 2:")
    json.dumps(total.to_dict(), allow_nan=False)


def test_adjacencies(ledger):
    ledger.add("one", data=DATA, guarantee=wi.PureDP(0.5))
    ledger.add("two", data=DATA, guarantee=wi.PureDP(1.0, "replace"))
    total = ledger.check(DATA)
    assert total.mixed
    assert total.composed.guarantee == wi.PureDP(2.0, "replace")
    assert any("under add/remove nothing limits" in line for line in total.assumes)


def test_infinite_epsilon(ledger):
    ledger.add("one", data=DATA, guarantee=wi.PureDP(math.inf))
    total = ledger.check(DATA)
    assert ledger.entries()[0].guarantee == wi.PureDP(math.inf)
    assert (total.epsilon, total.advantage, total.bounded) == (None, None, False)
    assert "No limit below 1" in total.explain()
    json.dumps(total.to_dict(), allow_nan=False)


def test_retractions(ledger):
    ledger.add("one", data=DATA, guarantee=wi.PureDP(0.5))
    ledger.add("two", data=DATA, guarantee=wi.PureDP(0.5))
    ledger.retract(1, "taken down")
    total = ledger.check(DATA)
    assert total.epsilon == 1.0
    assert total.retracted == ((1, "taken down"),)
    assert "still counted: 1" in total.explain()
    ledger.retract(2, "the noise was not drawn", voids_guarantee=True)
    total = ledger.check(DATA)
    assert total.epsilon is None
    assert total.uncovered == ((2, "its guarantee was withdrawn: nothing limits what it reveals"),)
    assert ledger.totals() == (total,)
    for wrong in (3, 99):
        with pytest.raises(InputError, match="number of a release"):
            ledger.retract(wrong, "x")
    with pytest.raises(InputError, match="at least 1"):
        ledger.retract(0, "x")
    with pytest.raises(InputTypeError, match="voids_guarantee"):
        ledger.retract(1, "x", voids_guarantee=1)
    assert ledger.verify().intact


# --- budgets ----------------------------------------------------------------------------------------------------------


def test_a_budget_is_kept(ledger):
    budget = Budget(epsilon=1.0)
    for _ in range(2):
        ledger.add("x", data=DATA, guarantee=wi.PureDP(0.5), budget=budget)
    with pytest.raises(BudgetError, match=r"ε of the total is 1\.00001, and the budget is 1") as caught:
        ledger.add("x", data=DATA, guarantee=wi.PureDP(1e-9), budget=budget)
    assert "safe" not in str(caught.value)
    assert len(ledger) == 2
    ledger.add("x", data=OTHER, guarantee=wi.PureDP(1.0), budget=budget)
    with pytest.raises(BudgetError, match="nothing limits the ε"):
        ledger.add("x", data=OTHER, budget=budget)
    assert len(ledger) == 3
    assert ledger.verify().intact


def test_a_budget_of_advantage(ledger):
    budget = Budget(advantage=0.25)
    ledger.add("x", data=DATA, guarantee=wi.MIP(0.1), budget=budget)
    with pytest.raises(BudgetError, match="do not compose"):
        ledger.add("y", data=DATA, guarantee=wi.MIP(0.01), budget=budget)
    with pytest.raises(BudgetError, match="advantage of the total is"):
        ledger.add("y", dataset="else", guarantee=wi.GaussianDP(1.0), budget=budget)
    with pytest.raises(BudgetError, match="nothing limits the ε"):
        ledger.add("y", dataset="else", guarantee=wi.MIP(0.0), budget=Budget(epsilon=1.0))


def test_budgets_are_checked():
    with pytest.raises(InputError, match="neither"):
        Budget(delta=1e-5)
    for wrong in ({"epsilon": -1.0}, {"advantage": 2.0}, {"epsilon": 1.0, "delta": 2.0}, {"epsilon": math.nan}):
        with pytest.raises(InputError, match="must be a number"):
            Budget(**wrong)


# --- the chain --------------------------------------------------------------------------------------------------------


@pytest.fixture
def filled(ledger):
    for number in range(5):
        ledger.add(f"release {number}", data=DATA, guarantee=wi.PureDP(1.0))
    return ledger


def test_an_untouched_chain_holds(filled):
    early = filled.entries(limit=2)[-1].hash
    found = filled.verify(early)
    assert (found.intact, found.entries, found.head) == (True, 5, filled.entries()[-1].hash)
    assert json.loads(json.dumps(found.to_dict()))["intact"] is True
    assert "the chain holds" in str(found)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (f"UPDATE {ENTRIES} SET body = REPLACE(body, '1.0', '0.1') WHERE number = 3", "entry 3 was changed"),
        (f"UPDATE {ENTRIES} SET fingerprint = NULL WHERE number = 3", "entry 3: its keys"),
        (f"DELETE FROM {ENTRIES} WHERE number = 3", "entry 3 is missing"),
        (f"DELETE FROM {ENTRIES} WHERE number = 1", "entry 1 is missing"),
        (f"DELETE FROM {ENTRIES} WHERE number = 5", "5 entries were written"),
        (f"DELETE FROM {ENTRIES}", "5 entries were written"),
        (f"UPDATE {META} SET value = '4' WHERE name = 'entries'", "4 entries were written"),
        (f"UPDATE {META} SET value = 'other' WHERE name = 'ledger'", "entry 1 does not follow"),
        (f"UPDATE {ENTRIES} SET previous = hash WHERE number = 2", "entry 2 does not follow"),
    ],
)
def test_tampering_is_found(filled, tamper, statement, words):
    tamper(statement)
    found = filled.verify()
    assert not found.intact
    assert words in str(found)


def test_an_entry_that_was_hashed_anew_breaks_the_next(filled, tamper):
    """The hash covers the one before: who forges an entry has to forge all that follow."""
    third = filled.entries()[2]
    with filled._store.read() as session:
        body = session.run(f"SELECT body FROM {ENTRIES} WHERE number = 3")[0][0].replace("release 2", "release 9")
    forged = hash_of(3, third.previous, body)
    tamper(
        f"UPDATE {ENTRIES} SET body = REPLACE(body, 'release 2', 'release 9'), hash = '{forged}' WHERE number = 3",
        f"UPDATE {ENTRIES} SET previous = '{forged}' WHERE number = 4",
    )
    assert filled.verify().problems == ("entry 4 was changed",)


def test_a_chain_that_was_cut_with_care_is_found_by_its_noted_head(filled, tamper):
    head, before = (entry.hash for entry in filled.entries()[:2:-1])
    tamper(
        f"DELETE FROM {ENTRIES} WHERE number = 5",
        f"UPDATE {META} SET value = '4' WHERE name = 'entries'",
        f"UPDATE {META} SET value = '{before}' WHERE name = 'head'",
    )
    assert filled.verify().intact
    assert filled.verify(before).intact
    assert "taken away or rewritten" in str(filled.verify(head))
    with pytest.raises(InputError, match="64 hexadecimal"):
        filled.verify("abc")


def test_triggers_refuse_changes(filled, address):
    from sqlalchemy import text
    from sqlalchemy.exc import DBAPIError

    with filled._store._engine.connect() as connection:
        for statement in (f"UPDATE {ENTRIES} SET body = ''", f"DELETE FROM {ENTRIES}"):
            with pytest.raises(DBAPIError, match="append-only"):
                connection.execute(text(statement))
            connection.rollback()


def test_unreadable_entries_name_themselves(filled, tamper):
    tamper(f"UPDATE {ENTRIES} SET body = 'no json' WHERE number = 4")
    with pytest.raises(LedgerError, match="entry 4 cannot be read"):
        filled.check(DATA)
    assert "entry 4" in str(filled.verify())


# --- versions, pages, other things ------------------------------------------------------------------------------------


def test_a_newer_schema_is_refused(filled, tamper):
    tamper(f"UPDATE {META} SET value = '2' WHERE name = 'schema'")
    for use in (filled.entries, lambda: filled.add("x", data=DATA), filled.verify):
        with pytest.raises(LedgerError, match=r"schema '2'.*install a newer whosin; nothing was changed"):
            use()


def test_a_damaged_meta_table(filled, tamper):
    tamper(f"DELETE FROM {META} WHERE name = 'head'")
    with pytest.raises(LedgerError, match="damaged"):
        filled.add("x", data=DATA)


def test_pages(filled):
    assert [entry.number for entry in filled.entries(after=1, limit=2)] == [2, 3]
    assert [entry.number for entry in filled.entries(after=3)] == [4, 5]
    assert filled.entries(after=99) == ()
    assert len(filled) == 5
    assert filled
    with pytest.raises(InputError, match="limit"):
        filled.entries(limit=0)
    with pytest.raises(InputError, match="after"):
        filled.entries(after=-1)


def test_there_is_no_ledger_until_the_first_entry(ledger):
    for use in (ledger.entries, ledger.verify, ledger.totals, lambda: ledger.check(DATA), lambda: len(ledger)):
        with pytest.raises(LedgerError, match="there is no ledger at"):
            use()
    with pytest.raises(InputError, match="number of a release"):
        ledger.retract(1, "nothing there")
    with pytest.raises(InputError, match="neither"):
        ledger.check()


def test_it_can_be_sent_to_other_processes(filled):
    assert pickle.loads(pickle.dumps(filled)).entries() == filled.entries()


def test_a_hundred_thousand_entries(tmp_path):
    """Listing a page and checking one data set stay quick however long the ledger is."""
    import time

    ledger = Ledger(tmp_path / "l.db")
    body = {"action": "release", "at": "2026-01-01T00:00:00+00:00", "name": "x", "kind": "release"}
    with ledger._store._session(writing=True) as session:
        for number in range(3):
            session.write({**body, "dataset": f"people {number}", "guarantee": promise_to_dict(wi.PureDP(1.0))})
        session.run(
            "WITH RECURSIVE counted(n) AS (SELECT 4 UNION ALL SELECT n + 1 FROM counted WHERE n < 100000) "
            f"INSERT INTO {ENTRIES} (number, action, dataset, body, previous, hash) "
            "SELECT n, 'release', 'd' || n, :body, '', n FROM counted",
            body=json.dumps(body),
        )
        session.run(f"UPDATE {META} SET value = '100000' WHERE name = 'entries'")
    start = time.process_time()
    assert len(ledger) == 100_000
    assert ledger.entries(after=99_990, limit=100)[-1].number == 100_000
    assert ledger.check(dataset="people 1").epsilon == 1.0
    ledger.add("new", dataset="people 1", guarantee=wi.PureDP(1.0), budget=Budget(epsilon=2.0))
    assert time.process_time() - start < 2.0
    assert len(ledger.entries()) == 100_001

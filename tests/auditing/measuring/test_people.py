"""People, not rows: several records of one person count once, in every audit that takes ``person``."""

import numpy as np
import polars as pl
import pytest
from null_audits import judge_alarms, look_once
from scipy.stats import binom
from sklearn.tree import DecisionTreeClassifier

import whosin as wi
from whosin.auditing import audit
from whosin.auditing.measuring.score_table import audit_score_table
from whosin.auditing.models import ReferenceModels, audit_classifier, audit_with_references
from whosin.auditing.models.generators import audit_generator
from whosin.errors import InputError, InputTypeError
from whosin.tables import as_table

PEOPLE, ROWS = 100, 10
WHOSE = np.repeat(np.arange(PEOPLE), ROWS), np.repeat(np.arange(PEOPLE, 2 * PEOPLE), ROWS)


def panel(rng, leak=0.0):
    """Answers about all rows of 100 people a side, mostly the person's own; ``leak`` shifts one row of each member."""
    own = rng.normal(size=(2, PEOPLE, 1)) + 0.3 * rng.normal(size=(2, PEOPLE, ROWS))
    own[0, :, 3] += leak
    return own[0].ravel(), own[1].ravel()


def test_false_alarms_are_at_most_nominal():
    """Null audits, looked at with two levels; tests/long has 300."""
    rng = np.random.default_rng(0)
    judge_alarms(audit(*panel(rng), person=WHOSE) for _ in range(16))


def test_rows_taken_for_people_cry_wolf():
    rng = np.random.default_rng(1)
    alarms = sum(audit(*panel(rng)).advantage.lower > 0 for _ in range(8))
    assert alarms >= 3, "otherwise the test above shows nothing"


def test_a_leak_in_one_row_of_each_person_is_found():
    found = audit(*panel(np.random.default_rng(2), leak=4.0), person=WHOSE)
    assert found.advantage.lower > 0.5
    assert found.attack.candidate.view.name in ("query (largest of a person)", "all queries together")
    assert found.person_level
    assert (found.members, found.non_members) == (PEOPLE, PEOPLE)


def test_people_have_any_number_of_rows():
    """The audit of the pooled answers, whatever the order of the rows."""
    rng = np.random.default_rng(3)
    sides, pooled = [], []
    for start in (0, 1000):
        whose = np.repeat(np.arange(start, start + 60), rng.integers(1, 8, 60))
        values = rng.normal(size=len(whose))
        order = rng.permutation(len(whose))
        sides.append((values[order], whose[order]))
        first = dict.fromkeys(whose[order].tolist())
        each = [values[whose == number] for number in first]
        pooled.append(np.array([[v.max(), v.min(), v.mean()] for v in each]))
    found = audit(sides[0][0], sides[1][0], person=(sides[0][1], sides[1][1]), rng=0)
    names = [f"query ({way} of a person)" for way in ("largest", "smallest", "mean")]
    expected = audit(*pooled, names=names, rng=0)
    assert found.advantage.lower == pytest.approx(expected.advantage.lower, abs=1e-9)
    assert found.advantage.upper == pytest.approx(expected.advantage.upper, abs=1e-9)
    assert list(found.queries) == list(expected.queries)


def test_single_rows_are_people_already():
    rng = np.random.default_rng(4)
    x, y = rng.normal(0.5, 1, (80, 2)), rng.normal(size=(90, 2))
    alone = audit(x, y)
    told = audit(x, y, person=(np.arange(80), np.arange(100, 190)))
    assert told.advantage == alone.advantage
    assert dict(told.queries) == dict(alone.queries)


def test_identifiers_of_any_kind():
    """Texts of two kinds and objects are the same lists as texts and whole numbers."""
    x, y = panel(np.random.default_rng(5), leak=2.0)
    expected = audit(x, y, person=WHOSE).advantage
    for kind in (str, float, object, "U9"):
        assert audit(x, y, person=tuple(side.astype(kind) for side in WHOSE)).advantage == expected, kind
    for kind in (int, str, float):
        assert audit(x, y, person=[side.astype(kind).tolist() for side in WHOSE]).advantage == expected, kind


def test_the_result_speaks_of_people():
    x, y = panel(np.random.default_rng(6), leak=4.0)
    group = [np.tile(["a", "b"], PEOPLE * ROWS // 2) for _ in range(2)]
    found = audit(x, y, person=WHOSE, groups={"row": group}, tolerate=0.99)
    assert found.unit == "people"
    assert "people that an attack is counted on" in found.explain()
    assert "groups of people" in found.assumes[0]
    assert found.to_dict()["person_level"] is True
    assert not any("one record is one person" in line for line in found.assumes)
    assert len(found.individual) == 2 * PEOPLE
    assert {row["person"] for row in found.individual.highest(200)} == {str(i) for i in range(2 * PEOPLE)}
    assert [(row.name, row.members) for row in found.groups] == [("row=several", PEOPLE)]
    without = audit(x, y)
    assert any("one record is one person" in line for line in without.assumes)
    assert not without.person_level


WRONG = [
    (([1, 2, 3], [3, 4, 5]), InputError, "1 are on both, such as '3'"),
    (([1, 2, 3], ["4", "1", "5"]), InputError, "1 are on both, such as '1'"),
    (([1.0, 2.0, 3.0], ["4", "2", "5"]), InputError, "1 are on both, such as '2'"),
    (([1, 2], [3, 4, 5]), InputError, "one identifier for each of the 3 members"),
    (([1, 2, 3], [[3, 4, 5]]), InputError, "each of the 3 non-members"),
    (([1, None, 3], [4, 5, 6]), InputError, "none in row 1 of members"),
    (([1, 2, 3], [4.0, 5.0, np.nan]), InputError, "none in row 2 of non-members"),
    (7, InputTypeError, "a pair of arrays"),
    (([1, 2, 3],), InputTypeError, "a pair of arrays"),
]


@pytest.mark.parametrize(("person", "error", "words"), WRONG)
def test_wrong_people(person, error, words):
    with pytest.raises(error, match=words):
        audit([0.1, 0.2, 0.3], [0.4, 0.5, 0.6], person=person)


def test_text_of_several_records_cannot_be_pooled():
    with pytest.raises(InputTypeError, match="answers that are numbers"):
        audit(["a", "b", "c"], ["a", "b", "a"], person=([1, 1, 2], [3, 3, 4]))


# Scores in a table


def test_a_table_of_scores_by_person():
    x, y = panel(np.random.default_rng(7), leak=3.0)
    who = np.concatenate(WHOSE)
    columns = {"member": np.repeat([1, 0], PEOPLE * ROWS), "who": who, "score": np.concatenate([x, y])}
    table = as_table(pl.DataFrame(columns))
    found = audit_score_table(table, person="who", tolerate=0.2)
    assert found.advantage == audit(x, y, names=["score"], person=WHOSE).advantage
    assert found.tolerate == 0.2
    assert "who" not in found.query
    with pytest.raises(InputError, match="got 'who', which says whose a row is"):
        audit_score_table(table, person="who", columns=["who", "score"])
    with pytest.raises(InputError, match="nobody"):
        audit_score_table(table, person="nobody")


# Models


def records(rng, people, rows=4):
    """Rows around a centre of each person, with labels of chance: only memory can know them."""
    centres = rng.normal(size=(people, 1, 3))
    X = (centres + 0.2 * rng.normal(size=(people, rows, 3))).reshape(-1, 3)
    return X, rng.integers(2, size=len(X)), np.repeat(np.arange(people), rows)


def test_a_classifier_by_person():
    rng = np.random.default_rng(8)
    X, y, who = records(rng, 120)
    inside = who < 60
    model = DecisionTreeClassifier(random_state=0).fit(X[inside], y[inside])
    sides = (X[inside], y[inside]), (X[~inside], y[~inside])
    found = audit_classifier(model, *sides, person=(who[inside], who[~inside]), tolerate=0.1)
    assert (found.members, found.non_members, found.unit) == (60, 60, "people")
    assert found.verdict.state == "exceeds"
    with pytest.raises(InputError, match="on both"):
        audit_classifier(model, *sides, person=(who[inside], who[inside]))


def test_a_classifier_is_audited_the_same_every_time():
    rng = np.random.default_rng(9)
    X, y, _ = records(rng, 40)
    model = DecisionTreeClassifier(max_depth=3, random_state=0).fit(X[:80], y[:80])
    runs = [audit_classifier(model, (X[:80], y[:80]), (X[80:], y[80:]), query=["label_only", "loss"]) for _ in "ab"]
    assert runs[0].advantage == runs[1].advantage


class Copier:
    """A generative model that gives its training records away."""

    def __init__(self, rows):
        self.rows = rows

    def sample(self, n):
        return self.rows[:n]


def test_a_generator_by_person():
    X, _, who = records(np.random.default_rng(10), 120)
    inside = who < 60
    whose = who[inside], who[~inside]
    found = audit_generator(Copier(X[inside]), X[inside], X[~inside], person=whose, tolerate=0.1)
    assert (found.members, found.unit, found.verdict.state) == (60, "people", "exceeds")
    assert audit_generator(Copier(X[inside]), X[inside], X[~inside], person=whose).advantage == found.advantage


@pytest.fixture(scope="module")
def references():
    X, y, who = records(np.random.default_rng(11), 100)
    return ReferenceModels.train(DecisionTreeClassifier(max_depth=6), X, y, models=16, person=who, rng=0), who


def test_references_take_people_whole(references):
    found, who = references
    first = found.included[:, ::4]
    assert np.array_equal(found.included, first[:, who])
    assert set(first.sum(axis=0)) == {8}


def test_audits_with_references_by_person(references):
    found, who = references
    by_person = audit_with_references(found, 0, tolerate=0.05, rng=0)
    inside = int(found.included[0, ::4].sum())
    assert (by_person.members, by_person.non_members, by_person.unit) == (inside, 100 - inside, "people")
    assert by_person.verdict.tolerate == 0.05
    assert audit_with_references(found, 0, person=who.astype(str), rng=0).advantage == by_person.advantage


def test_people_on_both_sides_of_the_target_are_refused(references):
    found, who = references
    apart = ReferenceModels.train(DecisionTreeClassifier(max_depth=2), found.X, found.y, models=6, rng=0)
    with pytest.raises(InputError, match=r"in with a part of theirs, such as '.*ReferenceModels.train\(…, person=…\)"):
        audit_with_references(apart, 0, person=who)
    with pytest.raises(InputError, match="each of the 400 records"):
        audit_with_references(apart, 0, person=who[1:])
    with pytest.raises(InputError, match="at least 2 people"):
        ReferenceModels.train(DecisionTreeClassifier(), found.X, found.y, models=4, person=[1] * 400, rng=0)


def test_a_cache_belongs_to_its_people(tmp_path, references):
    found, who = references
    tree, kept = DecisionTreeClassifier(max_depth=1), tmp_path / "j"
    for person in (None, who, who % 7):
        ReferenceModels.train(tree, found.X, found.y, models=4, person=person, rng=0, journal=kept)
    assert kept.read_bytes().count(b'"task"') == 3 * 4


# One run


def answered(rng, epsilon, people, rows):
    """Randomised response about each person, told again with each of its rows: ε-DP for people."""
    coins = rng.random(people) < 0.5
    true = rng.random(people) < 1 / (1 + np.exp(-epsilon))
    scores = np.repeat(np.where(true, coins, ~coins).astype(float), rows) + 0.01 * rng.normal(size=people * rows)
    return scores, np.repeat(coins, rows), np.repeat(np.arange(people), rows)


@pytest.mark.filterwarnings("ignore:included")
def test_one_run_counts_people(monkeypatch):
    """The limit exceeds the ε of adding a person at most as often as allowed; rows taken for people break it.

    Rows taken for people exceed it in three of ten runs: 80 show that with power .9998, and 200 the level of people.
    """
    rng = np.random.default_rng(12)
    wrong, by_row = 0, 0
    look_once(monkeypatch, 1.0)
    for run in range(200):
        scores, coins, who = answered(rng, 1.0, 100, 5)
        found = wi.audit_one_run(scores, coins, person=who, rng=run)
        assert found.canaries == 100
        wrong += found.epsilon_lower > 1.0
        by_row += run < 80 and wi.audit_one_run(scores, coins, rng=run).epsilon_lower > 1.0
    assert binom.sf(19, 200, 0.05) < 0.005
    assert wrong <= 19
    assert binom.sf(10, 80, 0.05) < 0.005
    assert by_row >= 11


def test_one_run_uses_all_rows_of_a_person():
    rng = np.random.default_rng(13)
    coins = rng.random(200) < 0.5
    who = np.repeat(np.arange(200), 9)
    scores = np.repeat(coins, 9) + 3 * rng.normal(size=1800)
    together = wi.audit_one_run(scores, coins[who], person=who, rng=0)
    alone = wi.audit_one_run(scores[::9], coins, rng=0)
    assert together.epsilon_lower > alone.epsilon_lower + 0.3


def test_one_run_speaks_of_people():
    scores, coins, who = answered(np.random.default_rng(14), 8.0, 100, 3)
    found = wi.audit_one_run(scores, coins, person=who, rng=0)
    assert "100 people, one run" in str(found)
    assert "for all records of a person together" in found.explain()
    assert "without one person with all its records" in found.assumes[3]
    assert found.to_dict()["person_level"] is True
    compared = found.compare(wi.PureDP(1.0))
    assert compared.verdict == "violated"
    assert "for all records of a person together" in compared.text


def test_one_run_refuses_coins_tossed_by_row():
    with pytest.raises(InputError, match="1 are in with a part of theirs, such as 'a': toss one coin for each person"):
        wi.audit_one_run([0.1, 0.2, 0.3], [True, False, True], person=["a", "a", "b"])
    with pytest.raises(InputError, match="each of the 3 canaries"):
        wi.audit_one_run([0.1, 0.2, 0.3], [True, False, True], person=["a", "b"])

"""Results in a notebook and as data frames."""

import importlib
import inspect
import pkgutil
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import whosin as wi
from whosin.answers import Rows, card
from whosin.errors import ImplicationError, InputError


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    labels = rng.choice(["a", "<b>"], 100), rng.choice(["a", "<b>"], 100)
    release = rng.normal(size=(120, 2))
    return wi.audit_synthetic(release[:100], rng.normal(size=(100, 2)), release, groups=labels, rng=0)


@pytest.mark.parametrize("kind", ["polars", "pandas"])
def test_tables_are_data_frames(found, kind):
    for table, rows, first in (
        (found.groups, 2, "group"),
        (found.individual, 200, "index"),
        (found.release_size, len(found.release_size.sizes), "rows"),
        (found.queries, len(found.queries), "query"),
        (found.revealing_columns, 2, "name"),
    ):
        frame = table.to_frame(kind)
        assert type(frame).__module__.partition(".")[0] == kind
        assert frame.shape[0] == rows
        assert frame.columns[0] == first
        shown = table._repr_html_()
        assert shown.count("<tr>") == 1 + min(rows, 20)
        assert "<b>" not in shown
    assert found.groups.to_frame()["upper"].to_list() == [row.advantage.upper for row in found.groups]
    with pytest.raises(InputError, match="kind must be"):
        found.groups.to_frame("excel")


def test_limits_in_a_table_are_rounded_outwards():
    class Two(Rows):
        def _columns(self):
            return {name: [0.80149, 0.8016] for name in ("estimate", "lower", "simultaneous_upper")}

    assert re.findall(r"<td>(.*?)</td>", Two()._repr_html_()) == ["0.801", "0.801", "0.802", "0.802", "0.801", "0.802"]


def test_a_result_is_one_good_line(found):
    for result in (found, found.release_size, found.individual, found.advantage, found.verdict):
        assert "\n" not in str(result)
    assert repr(found).startswith("Leak found: advantage ")
    assert len(repr(found)) < 250
    assert "surely above the prior" in repr(found.individual)


def test_the_card_has_the_verdict_and_a_colour(found):
    shown = found._repr_html_()
    assert found.verdict.headline in shown
    assert "#b3361e" in shown
    assert shown.count("<li>") == len(found.assumes)
    assert "&lt;script" in card("<script>", "<script>", {"<script>": ["<script>"]})


# One shape: the same questions by the same names, whatever gave the answer


def _noisy_copies(records, rng):
    return records + 0.5 * rng.normal(size=records.shape)


@pytest.fixture(scope="module")
def answers(found):
    rng = np.random.default_rng(0)
    people = rng.normal(size=(40, 2))
    joint = wi.protect(lambda X: X.mean(axis=0), people, eta=0.2, subsets=16, rng=1, ball="pilot").certificate
    return {
        "guarantee": wi.PureDP(1.0),
        "audit": wi.audit(rng.normal(1.0, 1.0, size=100), rng.normal(size=100)),
        "release": found,
        "retraining": wi.audit_retrained(_noisy_copies, people, trainings=10, attack="linear"),
        "population": wi.population.gaussian(people[:, :1], epsilon=2.0, delta=1e-3, clip=3.0),
        "certificate": joint,
    }


ANSWERS = ("guarantee", "audit", "release", "retraining", "population", "certificate")
MACHINERY = ("Evidence", "Splits", "ReleaseAnswers", "Experiment")


@pytest.mark.parametrize("name", ANSWERS)
def test_every_answer_has_the_same_shape(answers, name):
    answer = answers[name]
    assert isinstance(answer.roc, wi.Roc)
    for value in (answer.advantage, answer.accuracy(0.3), answer.tpr_at(0.2), answer.risk("accuracy", 0.3)):
        number = getattr(value, "estimate", value)
        assert isinstance(value, wi.Estimate) == (name in ("audit", "release", "retraining"))
        assert 0.0 <= number <= 1.0 or np.isnan(number)
    assert answer.risk("accuracy", 0.3) == answer.accuracy(0.3)
    assert answer.risk("advantage") == answer.advantage
    assert float(getattr(answer.accuracy(0.3), "estimate", answer.accuracy(0.3))) >= 0.7
    assert all(isinstance(line, str) for line in answer.assumes)
    assert len(answer.explain()) > 50
    assert isinstance(answer.to_dict(), dict)
    assert answer._repr_html_().startswith("<div")


@pytest.mark.parametrize("name", ANSWERS)
def test_no_public_part_of_an_answer_is_machinery(answers, name):
    answer = answers[name]
    for part in (word for word in dir(answer) if not word.startswith("_")):
        try:
            value = getattr(answer, part)
        except ImplicationError:
            continue
        assert type(value).__name__ not in MACHINERY, part


def test_a_game_answers_about_each_record():
    game = wi.worlds.uniform_subsets(range(4), 2).play(lambda records: {min(records): 0.75, "other": 0.25})
    assert game.advantage(0) == game.risk(0, "advantage")
    assert game.accuracy(0) == game.risk(0, "accuracy")
    assert game.tpr_at(0, 0.0) == pytest.approx(0.75)
    told = game.to_dict()
    assert [one["record"] for one in told["records"]] == ["0", "1", "2", "3"]
    assert told["records"][0]["accuracy"] == game.accuracy(0) == pytest.approx(0.875)
    assert "guesses right 87.5% of the time; without looking, 50%" in game.explain(0)
    assert len(game.assumes) == 2


@pytest.mark.parametrize("name", ANSWERS)
def test_every_answer_draws_itself(answers, name):
    pytest.importorskip("matplotlib")
    import matplotlib.pyplot as plt

    axes = answers[name].plot()
    assert axes.lines or axes.collections or axes.patches
    plt.close(axes.figure)


def _result_classes():
    """Every public class of the library that tells its numbers as a dictionary, or explains itself."""
    found = set()
    for module in pkgutil.walk_packages(wi.__path__, "whosin."):
        if module.name.split(".")[1] in ("web", "cli", "reporting", "plots", "__main__"):
            continue
        try:
            room = importlib.import_module(module.name)
        except ImportError:  # an extra that is not installed
            continue
        for name, value in vars(room).items():
            own = inspect.isclass(value) and value.__module__ == room.__name__ and not name.startswith("_")
            if own and (hasattr(value, "to_dict") or hasattr(value, "explain")):
                found.add(value)
    return found


def test_every_result_has_a_card():
    classes = _result_classes()
    assert len(classes) > 50
    assert [each.__name__ for each in classes if not hasattr(each, "_repr_html_")] == []


@pytest.fixture(scope="module")
def results(answers, found):
    """One of every kind of result, with what hangs on it."""
    rng = np.random.default_rng(0)
    people, private = rng.normal(size=(40, 2)), wi.PureDP(1.0)
    retrained = wi.audit_retrained(
        lambda rows, rng: rows[rows[:, 0] > 0], people, groups=np.repeat(["a", "<b>"], 20), trainings=10, rng=0
    )
    included = np.arange(40) < 20
    game = wi.worlds.uniform_subsets(range(4), 2).play(lambda records: {min(records): 0.75, "other": 0.25})
    return [
        *answers.values(), found.verdict, found.groups, found.groups.rows[0], found.individual, found.release_size,
        found.revealing_columns, found.queries, found.advantage, found.tpr_at(0.1), found.band, found.records_alone,
        found.dependence, found.compare(private), found.roc, retrained.groups, retrained.groups.rows[0],
        retrained.individual, retrained.audit_release(people[included], included), game, wi.bounds.table(1.0),
        wi.auditing.Copies(1, None, 3, 4), wi.tables.look({"a<b>": [1, 2, 3], "c": ["x", "y", "z"]}),
        wi.unlearning.Unlearning(1.0, 0.01, 0.8, 5),
    ]  # fmt: skip


def test_cards_are_whole_and_lines_are_lines(results):
    """No angle bracket of the data gets into a card, every element is closed, and a REPL shows one line."""
    for result in results:
        shown = result._repr_html_()
        page = HTMLParser()
        opened = []
        page.handle_starttag = lambda tag, attrs, opened=opened: opened.append(tag)
        page.handle_endtag = lambda tag, opened=opened, result=result: opened.pop() == tag or pytest.fail(repr(result))
        page.feed(shown)
        assert opened == [], type(result).__name__
        assert "<b>" not in shown.replace("<p><b>", ""), type(result).__name__
        assert "\n" not in repr(result) or isinstance(result, (Rows, wi.bounds.BoundsTable)), type(result).__name__
        assert " object at 0x" not in repr(result), type(result).__name__

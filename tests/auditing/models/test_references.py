"""Reference models: the same for any number of processes, resumed after a crash, and stronger than the loss alone."""

import dataclasses
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from whosin.auditing import audit
from whosin.auditing.models import (
    ReferenceModels,
    SklearnAdapter,
    audit_with_references,
    feature_noise,
    references,
    rmia,
)
from whosin.auditing.models.predictions import reference_score
from whosin.auditing.models.references import ATTACKS
from whosin.errors import InputError, InputTypeError

X, CLEAN = load_digits(return_X_y=True)
X = X / 16
RNG = np.random.default_rng(0)
Y = np.where(RNG.random(len(CLEAN)) < 0.2, RNG.integers(10, size=len(CLEAN)), CLEAN)
TREE = DecisionTreeClassifier(max_depth=4)


@pytest.fixture(scope="module")
def linear():
    return ReferenceModels.train(LinearDiscriminantAnalysis(), X, Y, models=24, rng=0)


@pytest.fixture(scope="module")
def blind():
    return ReferenceModels.train(DummyClassifier(strategy="uniform"), X, Y, models=8, rng=0)


def small(**options):
    return ReferenceModels.train(TREE, X[:120], Y[:120], **{"models": 6, "rng": 1, **options})


def test_every_record_is_in_one_of_two_models_that_follow_each_other():
    found = small(models=10)
    assert found.logits.shape == found.included.shape == (10, 120)
    assert np.array_equal(found.included[::2], ~found.included[1::2])
    assert len({row.tobytes() for row in found.included}) == 10
    share = found.included[::2].mean()
    assert abs(share - 0.5) < 4 * 0.5 / np.sqrt(5 * 120)
    assert str(found) == "10 reference models on 120 records"


def test_logits_are_those_of_models_trained_on_these_halves():
    found = small()
    for number in range(3):
        rows = found.included[number]
        rng = np.random.default_rng([found.seed, number])
        model = SklearnAdapter(TREE).fit(X[:120][rows], Y[:120][rows], rng)
        assert np.array_equal(found.scores_of(model), found.scores[number])


def test_the_number_of_processes_does_not_matter():
    """A network, whose sums depend on the number of threads of the numerical library if nobody fixes it."""
    net = MLPClassifier((8,), max_iter=3, early_stopping=False)
    options = {"models": 4, "rng": 1}
    with pytest.warns(match="Maximum iterations"):
        alone = ReferenceModels.train(net, X[:100], Y[:100], **options)
    several = ReferenceModels.train(net, X[:100], Y[:100], n_jobs=2, **options)
    assert np.array_equal(alone.logits, several.logits)
    assert np.array_equal(alone.included, several.included)


def test_seeds():
    assert np.array_equal(small().logits, small(rng=np.random.default_rng(1)).logits)
    assert not np.array_equal(small().included, small(rng=2).included)
    assert len({row.tobytes() for row in small().logits}) == 6


FRAIL = """
import os

import frail_counts
import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from whosin.auditing.models import ReferenceModels


class Frail:
    def fit(self, X, y, rng):
        frail_counts.trainings.append(1)
        if len(frail_counts.trainings) == int(os.environ.get('FRAIL_LIMIT', 0)):
            os._exit(9)
        return DecisionTreeClassifier(max_depth=3, random_state=int(rng.integers(100))).fit(X, y)


def train(journal):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(2, size=60)
    return ReferenceModels.train(Frail(), X, y, models=6, rng=5, journal=journal).logits
"""


def kept_in(path):
    """How many trainings a journal holds."""
    return path.read_bytes().count(b'"task"')


def test_killed_in_the_middle_and_resumed(tmp_path, monkeypatch):
    """The process dies in its fourth training; a later run trains the other three and ends where one run does."""
    (tmp_path / "frail_models.py").write_text(FRAIL)
    (tmp_path / "frail_counts.py").write_text("trainings = []\n")
    crash = [sys.executable, "-c", "import frail_models; frail_models.train('kept')"]
    assert subprocess.run(crash, cwd=tmp_path, env={**os.environ, "FRAIL_LIMIT": "4"}, check=False).returncode == 9
    assert kept_in(tmp_path / "kept") == 3
    monkeypatch.syspath_prepend(tmp_path)
    import frail_models

    resumed = frail_models.train(tmp_path / "kept")
    assert len(frail_models.frail_counts.trainings) == 3
    assert np.array_equal(frail_models.train(tmp_path / "kept"), resumed)
    assert len(frail_models.frail_counts.trainings) == 3
    assert np.array_equal(frail_models.train(None), resumed)
    assert len(frail_models.frail_counts.trainings) == 9


def test_a_journal_belongs_to_data_estimator_and_seed(tmp_path):
    base = small(journal=tmp_path / "j")
    assert kept_in(tmp_path / "j") == 6
    assert np.array_equal(small(journal=tmp_path / "j").logits, base.logits)
    assert kept_in(tmp_path / "j") == 6
    small(journal=tmp_path / "j", rng=2)
    ReferenceModels.train(
        DecisionTreeClassifier(max_depth=5), X[:120], Y[:120], models=6, rng=1, journal=tmp_path / "j"
    )
    ReferenceModels.train(TREE, X[:120], Y[:120][::-1], models=6, rng=1, journal=tmp_path / "j")
    ReferenceModels.train(TREE, X[:120] + 1e-9, Y[:120], models=6, rng=1, journal=tmp_path / "j")
    assert kept_in(tmp_path / "j") == 30
    assert [path.name for path in tmp_path.iterdir()] == ["j"]


@pytest.mark.parametrize("cut", [1, 40, 700])
def test_damaged_trainings_are_done_again(tmp_path, cut):
    base = small(journal=tmp_path / "j")
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-cut])
    assert np.array_equal(small(journal=tmp_path / "j").logits, base.logits)
    assert np.array_equal(small(journal=tmp_path / "j").logits, base.logits)


def test_an_adapter_may_name_its_own_key(tmp_path):
    class Keyed:
        """Says what it depends on."""

        def __init__(self, key):
            self.key, self.size = key, 1

        def journal_key(self):
            return self.key

        def fit(self, X, y, rng):
            self.share = np.mean(y == 1) + 1e-3 * self.size
            return self

        def predict_proba(self, X):
            return np.full((len(X), 2), [1 - self.share, self.share])

    first, other = Keyed("a"), Keyed("a")
    other.size = 2
    options = {"models": 4, "rng": 1, "journal": tmp_path / "j"}
    found = [ReferenceModels.train(m, X[:60], Y[:60] % 2, **options) for m in (first, other)]
    assert np.array_equal(found[0].logits, found[1].logits)
    other.key = "b"
    again = ReferenceModels.train(other, X[:60], Y[:60] % 2, **options)
    assert not np.array_equal(again.logits, found[0].logits)


def test_a_journal_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="journal must be a file in a directory"):
        small(journal=tmp_path / "file" / "j")


def test_auto_takes_a_single_attack_where_the_combination_finds_less(linear, monkeypatch):
    """A combination that says nothing is passed over for the attack that finds most on the pseudo-targets."""
    learned = linear.attack(0)
    monkeypatch.setattr(
        references, "learn_score", lambda *sides, quadratic: (lambda answers: np.zeros(len(answers)), None)
    )
    single = linear.attack(0)
    assert any(np.array_equal(single, linear.attack(0, name)) for name in ("lira", "lira_offline", "rmia"))
    assert roc_auc_score(linear.included[0], single) > 0.55
    assert not np.array_equal(single, learned)


def test_attacks_beat_the_loss_and_auto_is_the_strongest(linear):
    """Areas under the curve, averaged over targets; linear discriminants, a fifth of the labels wrong."""
    areas = {name: [] for name in ("logit", *ATTACKS)}
    for target in range(8):
        member = linear.included[target]
        scores = {name: linear.attack(target, name) for name in ATTACKS}
        scores["logit"] = linear.logits[target]
        for name, score in scores.items():
            areas[name].append(roc_auc_score(member, score))
    means = {name: np.mean(values) for name, values in areas.items()}
    for name in ATTACKS:
        assert means[name] > means["logit"] + 0.02, means
        assert means["auto"] > means[name] - 0.005, means


def test_saturated_probabilities_do_not_ruin_means_and_variances():
    """Forests say 0 and 1; without the cut LiRA finds little."""
    forest = RandomForestClassifier(10, max_features=8)
    known = ReferenceModels.train(forest, X[:600], Y[:600], models=16, rng=0)
    assert (np.abs(known.logits) > 36).any()
    raw = dataclasses.replace(known, log_odds=False)
    areas = [[roc_auc_score(r.included[t], r.attack(t, "lira")) for t in range(4)] for r in (known, raw)]
    assert np.mean(areas[0]) > np.mean(areas[1]) + 0.02


def test_the_combination_is_learned_without_the_target(linear):
    """What is learned does not change with the target's own half, which its opposite would tell."""
    others = linear._others(4)
    assert np.array_equal(np.flatnonzero(~others), [4, 5])
    changed = linear.scores.copy()
    changed[5] = 0.0
    other = dataclasses.replace(linear, scores=changed)
    for attack in ATTACKS:
        assert np.array_equal(other.attack(4, attack), linear.attack(4, attack))


def test_few_models_fall_back_on_one_attack(linear):
    few = dataclasses.replace(linear, scores=linear.scores[:6], included=linear.included[:6])
    assert np.array_equal(few.attack(0), few.attack(0, "rmia"))
    plain = dataclasses.replace(few, log_odds=False)
    assert np.array_equal(plain.attack(0), plain.attack(0, "lira"))


def test_offline_rmia_chooses_its_constant(linear):
    level = linear._tuned_level()
    gains = {a: np.mean([_area(linear, t, a) for t in range(24)]) for a in (0.0, 0.25, 0.5, 0.75, 1.0)}
    assert gains[level] > max(gains.values()) - 0.005


def _area(known, target, a):
    others = known._others(target)
    return roc_auc_score(
        known.included[target], rmia(known.logits[target], known.logits[others], known.included[others], a=a)
    )


def test_growing_trains_only_what_is_missing_and_ends_where_one_run_does(tmp_path):
    class Counting:
        """Trains a tree, and counts in a file."""

        def __init__(self, path):
            self.path = str(path)

        def journal_key(self):
            return "counting"

        def fit(self, X, y, rng):
            with open(self.path, "a", encoding="utf-8") as file:
                file.write("x")
            return SklearnAdapter(TREE).fit(X, y, rng)

    counts = tmp_path / "counts"
    whole, ten = small(models=20), small(models=10)
    grown = ten.grow(Counting(counts), 20)
    assert counts.read_text() == "x" * 10
    assert np.array_equal(grown.scores, whole.scores)
    assert np.array_equal(grown.included, whole.included)
    ReferenceModels.train(Counting(counts), X[:120], Y[:120], models=10, rng=1, journal=tmp_path / "j")
    more = ReferenceModels.train(Counting(counts), X[:120], Y[:120], models=20, rng=1, journal=tmp_path / "j")
    assert counts.read_text() == "x" * 30
    assert np.array_equal(more.scores, whole.scores)
    assert whole.grow(TREE, 20) is whole
    with pytest.raises(InputError, match="models must be a whole number of at least 20"):
        whole.grow(TREE, 10)


def test_saved_and_loaded(tmp_path):
    who = np.arange(120) // 2
    found = small(models=8, person=who)
    found.save(tmp_path / "kept.npz")
    kept = ReferenceModels.load(tmp_path / "kept.npz", X[:120], Y[:120])
    assert np.array_equal(kept.grow(TREE, 12).scores, small(models=12, person=who).scores)
    alone = ReferenceModels.load(tmp_path / "kept.npz")
    assert audit_with_references(alone, 0).advantage == audit_with_references(found, 0).advantage
    tree = TREE.fit(X[:120], Y[:120])
    with pytest.raises(InputError, match="these references know no records"):
        alone.attack(tree)
    with pytest.raises(InputError, match="X and y must be known"):
        alone.grow(TREE, 12)
    with pytest.raises(InputError, match="X must be the 120 records"):
        ReferenceModels.load(tmp_path / "kept.npz", X[:3], Y[:3])
    (tmp_path / "other.npz").write_bytes(b"no archive")
    for path in (tmp_path / "other.npz", tmp_path / "nowhere.npz"):
        with pytest.raises(InputError, match="path must be a file that save wrote"):
            ReferenceModels.load(path)
    with pytest.raises(InputError, match="path must be a file that can be written"):
        found.save(tmp_path)


def test_any_score_and_a_target_by_its_scores(linear):
    half = linear.included[0]
    loss = np.logaddexp(0.0, -linear.logits)
    given = ReferenceModels.from_scores(-loss[2:], linear.included[2:].astype(int))
    found = audit_with_references(given, -loss[0], half.astype(int), rng=0)
    assert found.advantage.lower > 0.1
    with pytest.raises(InputError, match="no log odds"):
        given.attack(0, "rmia")
    same = ReferenceModels.from_scores(linear.logits, linear.included, log_odds=True)
    assert np.array_equal(same.attack(0), linear.attack(0))


def test_models_that_were_trained_elsewhere_keep_their_halves_when_more_are_trained(tmp_path):
    own = np.random.default_rng(5).random((6, 120)) < 0.5
    trained = [TREE.fit(X[:120][half], Y[:120][half]) for half in own]
    scores = np.array([reference_score(model, X[:120], Y[:120]) for model in trained])
    ReferenceModels.from_scores(scores, own, log_odds=True).save(tmp_path / "own.npz")
    known = ReferenceModels.load(tmp_path / "own.npz", X[:120], Y[:120])
    grown = known.grow(TREE, 20, journal=tmp_path / "j")
    assert np.array_equal(grown.included[:6], own)
    assert np.array_equal(grown.scores[:6, 0], scores)
    fewer = dataclasses.replace(known, scores=-known.scores[:4], included=~own[:4])
    other = fewer.grow(TREE, 20, journal=tmp_path / "j")  # what the journal holds of others is not taken for these
    assert np.array_equal(other.scores[:4], fewer.scores)
    assert np.array_equal(other.scores, fewer.grow(TREE, 20).scores)


def test_changed_copies_need_what_changed_them(tmp_path):
    small(models=4, augment=feature_noise([X[:120]], 0.3)).save(tmp_path / "kept.npz")
    kept = ReferenceModels.load(tmp_path / "kept.npz", X[:120], Y[:120])
    for ask in (lambda: kept.grow(TREE, 6), lambda: kept.attack(TREE.fit(X[:120], Y[:120]))):
        with pytest.raises(InputError, match="augment must be given"):
            ask()


def test_scores_that_are_no_log_odds_are_not_mixed_with_log_odds(tmp_path):
    loss = small(models=4, query=lambda model, X, y: -model.predict_proba(X)[:, 0])
    loss.save(tmp_path / "kept.npz")
    kept = ReferenceModels.load(tmp_path / "kept.npz", X[:120], Y[:120])
    for ask in (lambda: kept.grow(TREE, 6), lambda: kept.attack(TREE.fit(X[:120], Y[:120]))):
        with pytest.raises(InputError, match="query must be given, the function that gave the other scores"):
            ask()


def test_a_score_of_ones_own_and_no_labels():
    class Means:
        """The mean of what it saw."""

        def fit(self, X, y, rng):
            assert y is None
            self.mean = X.mean(axis=0)
            return self

    def nearness(model, X, y):
        return -np.sum((X - model.mean) ** 2, axis=1)

    found = ReferenceModels.train(Means(), X[:20], models=16, query=nearness, rng=0)
    assert not found.log_odds
    areas = [roc_auc_score(found.included[t], found.attack(t)) for t in range(8)]
    assert np.mean(areas) > 0.8


def test_copies_are_asked_about_too_and_are_the_same_for_every_model():
    found = small(models=8, augment=feature_noise([X[:120]], 0.3), augmentations=2)
    assert found.scores.shape == (8, 3, 120)
    assert np.array_equal(found.logits, small(models=8).logits)
    assert not np.array_equal(found.scores[:, 1], found.scores[:, 2])
    tree = SklearnAdapter(TREE).fit(
        X[:120][found.included[3]], Y[:120][found.included[3]], np.random.default_rng([found.seed, 3])
    )
    assert np.array_equal(found.scores_of(tree), found.scores[3])
    for attack in ATTACKS:
        assert np.isfinite(found.attack(tree, attack)).all()


def test_regressors_and_weights():
    rng = np.random.default_rng(5)
    values = X[:300] @ rng.normal(size=64) + rng.normal(size=300)
    found = ReferenceModels.train(DecisionTreeRegressor(min_samples_leaf=2), X[:300], values, models=10, rng=0)
    assert not found.log_odds
    assert audit_with_references(found, 0).advantage.lower > 0.2
    weights = np.where(np.arange(120) < 60, 1.0, 1e-9)
    pipe = make_pipeline(StandardScaler(), LogisticRegression())
    for estimator in (LogisticRegression(), pipe):
        weighted = ReferenceModels.train(
            estimator, X[:120], CLEAN[:120] % 2, models=4, sample_weight=weights, rng=0
        ).logits
        plain = ReferenceModels.train(estimator, X[:120], CLEAN[:120] % 2, models=4, rng=0).logits
        assert weighted[:, :60].mean() > plain[:, :60].mean() - 1.0
        assert not np.allclose(weighted, plain)
    for wrong, says in (
        (weights[:3], "120 numbers, got shape .3,."),
        (0.5 - weights, "at least 0, got -0.5 in row 0"),
        (np.full(120, np.nan), "finite numbers.*got nan in row 0"),
    ):
        with pytest.raises(InputError, match=f"sample_weight must be .*{says}"):
            small(sample_weight=wrong)
    with pytest.raises(InputTypeError, match="sample_weight must be numbers"):
        small(sample_weight=["x"] * 120)


def test_several_targets_in_one_audit(linear):
    several = audit_with_references(linear, [0, 3, 7, 12], rng=0)
    assert several.members + several.non_members == len(Y)
    assert several.assignment == "random"
    assert any("one of 4 models" in note for note in several.assumes)
    single = [audit_with_references(linear, t, rng=0).advantage for t in (0, 3, 7, 12)]
    assert min(one.lower for one in single) < several.advantage.estimate < max(one.upper for one in single)


def test_limits_of_an_overfit_model(linear):
    found = audit_with_references(linear, 0, rng=0)
    member = linear.included[0]
    plain = audit(linear.logits[0][member], linear.logits[0][~member], rng=0)
    assert found.advantage.lower > plain.advantage.lower
    assert found.assignment == "random"
    assert "auto with 24 reference models" in str(found)


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_target_of_the_callers_own(attack):
    half = RNG.random(len(Y)) < 0.5
    tree = DecisionTreeClassifier(random_state=0).fit(X[half], Y[half])
    references = ReferenceModels.train(DecisionTreeClassifier(), X, Y, models=8, rng=0)
    found = audit_with_references(references, tree, half, attack=attack, rng=0)
    assert found.advantage.lower > 0.2
    assert found.assignment == "unknown"


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_leaks_from_models_that_learn_nothing(attack):
    """Labels are noise, so depth-1 trees hardly depend on a record; the design itself must not give the target away."""
    rng = np.random.default_rng(7)
    data, labels = rng.normal(size=(3000, 1)), rng.integers(2, size=3000)
    references = ReferenceModels.train(
        DecisionTreeClassifier(max_depth=1, splitter="random"), data, labels, models=6, rng=0
    )
    lower = [audit_with_references(references, target, attack=attack, rng=0).advantage.lower for target in range(6)]
    assert sum(value > 0 for value in lower) <= 1


def test_a_design_that_would_tell_the_side_of_a_target_is_refused():
    rng = np.random.default_rng(0)
    included = rng.random((10, 200)).argsort(axis=0) < 5
    fixed = ReferenceModels.from_scores(rng.normal(size=(10, 200)), included)
    with pytest.raises(InputError, match="tell its side"):
        fixed.attack(0)
    assert np.isfinite(fixed.attack(rng.normal(size=200))).all()


def test_constant_models_give_constant_scores(blind):
    for attack in ATTACKS:
        scores = blind.attack(0, attack)
        assert np.isfinite(scores).all()
        assert audit_with_references(blind, 0, attack=attack, rng=0).advantage.lower == 0.0


def test_rare_classes_may_be_missing_from_a_half():
    labels = np.where(np.arange(100) == 0, 7, np.arange(100) % 2)
    found = ReferenceModels.train(DecisionTreeClassifier(max_depth=2), X[:100], labels, models=6, rng=0)
    assert np.isfinite(found.logits).all()
    assert (found.logits[~found.included[:, 0], 0] < -36).all()


def test_pipelines_and_lists_and_progress():
    seen = []
    pipe = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=2))
    found = ReferenceModels.train(pipe, X[:80].tolist(), Y[:80].tolist(), models=4, rng=0, progress=seen.append)
    assert seen == [0.25, 0.5, 0.75, 1.0]
    assert found.logits.shape == (4, 80)
    assert pipe.steps[1][1].random_state is None


def test_an_adapter_of_the_callers_own():
    class Prior:
        """Learns the shares of the classes, and remembers nobody."""

        def fit(self, X, y, rng):
            self.share = np.array([np.mean(y == 0), np.mean(y == 1)])
            return self

        def predict_proba(self, X):
            return np.tile(self.share, (len(X), 1))

    found = ReferenceModels.train(Prior(), X[:100], np.arange(100) % 2, models=4, rng=0)
    assert np.abs(found.logits).max() < 2
    assert len(np.unique(found.logits[:, 0])) > 1


def test_trainings_start_afresh():
    class Warm:
        """Adds up all that it ever saw."""

        seen = 0

        def fit(self, X, y, rng):
            self.seen += len(y)
            return self

        def predict_proba(self, X):
            return np.full((len(X), 2), [1 / (1 + self.seen), self.seen / (1 + self.seen)])

    warm = Warm()
    found = ReferenceModels.train(warm, X[:100], np.ones(100, int), models=4, rng=0)
    np.testing.assert_allclose(np.exp(found.logits[:, 0]), found.included.sum(axis=1))
    assert warm.seen == 0


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"models": 1}, InputError, "models"),
        ({"query": 3}, InputTypeError, "query must be a function"),
        ({"query": lambda model, X, y: X}, InputError, "query must give each of 120 records"),
        ({"query": lambda model, X, y: np.full(len(X), np.nan)}, InputError, "NaN"),
        ({"journal": "somewhere", "rng": None}, InputError, "rng must be given"),
    ],
)
def test_bad_settings(options, error, words):
    with pytest.raises(error, match=words):
        small(**options)


def test_bad_data_and_estimators():
    with pytest.raises(InputError, match="X and y"):
        ReferenceModels.train(TREE, X[:10], Y[:9])
    with pytest.raises(InputError, match="X and y"):
        ReferenceModels.train(TREE, X[:1], Y[:1])
    with pytest.raises(InputTypeError, match="estimator must be"):
        ReferenceModels.train("tree", X[:10], Y[:10])
    with pytest.raises(InputError, match=r"estimator failed in training 0 on .* ValueError"):
        ReferenceModels.train(LogisticRegression(), X[:10], np.zeros(10), models=4, rng=0)


def test_an_adapter_that_cannot_be_copied_is_told_so():
    class Locked:
        """Holds what cannot be copied."""

        def __init__(self):
            self.lock = threading.Lock()

        def fit(self, X, y, rng):
            return TREE.fit(X, y)

    with pytest.raises(InputError, match=r"estimator must be one that can be copied.*locks"):
        ReferenceModels.train(Locked(), X[:20], Y[:20], models=2, n_jobs=1)


def test_bad_targets(linear):
    tree = DecisionTreeClassifier(random_state=0).fit(X, Y)
    for included, words in (
        (None, "got nothing"),
        (np.ones(3, bool), "got bool"),
        (np.full(len(Y), 2), "got int"),
        (np.ones(len(Y), bool), "one side"),
    ):
        with pytest.raises(InputError, match=words):
            audit_with_references(linear, tree, included)
    with pytest.raises(InputError, match="left out for a reference model"):
        audit_with_references(linear, 0, linear.included[0])
    with pytest.raises(InputError, match="target"):
        audit_with_references(linear, 24)
    with pytest.raises(InputError, match="attack must be"):
        audit_with_references(linear, 0, attack="loss")
    with pytest.raises(InputTypeError, match="ReferenceModels"):
        audit_with_references(linear.logits, 0)
    with pytest.raises(InputTypeError, match="predict_proba"):
        audit_with_references(linear, "tree", linear.included[0])
    few = small(models=2)
    with pytest.raises(InputError, match="none is left"):
        few.attack(0)

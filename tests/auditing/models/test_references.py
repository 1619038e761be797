"""Reference models: the same for any number of processes, resumed after a crash, and stronger than the loss alone."""

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy.stats import binomtest, ks_2samp
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from whosin.auditing import audit
from whosin.auditing.models import ReferenceModels, SklearnAdapter, audit_with_references
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


def test_every_record_is_in_half_of_the_models():
    found = small(models=10)
    assert found.logits.shape == found.included.shape == (10, 120)
    assert set(found.included.sum(axis=0)) == {5}
    assert len(set(found.included.sum(axis=1))) > 1
    assert set(small(models=10, share=0.3).included.sum(axis=0)) == {3}
    assert str(found) == "10 reference models on 120 records"


def test_logits_are_those_of_models_trained_on_these_halves():
    found = small()
    for number in range(3):
        rows = found.included[number]
        rng = np.random.default_rng([found.seed, number])
        model = SklearnAdapter(TREE).fit(X[:120][rows], Y[:120][rows], rng)
        assert np.array_equal(found.logits_of(model), found.logits[number])


def test_the_number_of_processes_does_not_matter():
    """A network, whose sums depend on the number of threads of the numerical library if nobody fixes it."""
    net = MLPClassifier((8,), max_iter=3, early_stopping=False)
    options = {"models": 4, "rng": 1, "population": (X[200:220], Y[200:220])}
    with pytest.warns(match="Maximum iterations"):
        alone = ReferenceModels.train(net, X[:100], Y[:100], **options)
    several = ReferenceModels.train(net, X[:100], Y[:100], n_jobs=2, **options)
    assert np.array_equal(alone.logits, several.logits)
    assert np.array_equal(alone.included, several.included)
    assert np.array_equal(alone.population_logits, several.population_logits)


def test_seeds():
    assert np.array_equal(small().logits, small(rng=np.random.default_rng(1)).logits)
    assert not np.array_equal(small().included, small(rng=2).included)
    assert len({row.tobytes() for row in small().logits}) == 6


FRAIL = """
import os

import frail_counts
import numpy as np
from sklearn.tree import DecisionTreeClassifier

from whosin.auditing.models import ReferenceModels


class Frail:
    def fit(self, X, y, rng):
        frail_counts.trainings.append(1)
        if len(frail_counts.trainings) == int(os.environ.get('FRAIL_LIMIT', 0)):
            os._exit(9)
        return DecisionTreeClassifier(max_depth=3, random_state=int(rng.integers(100))).fit(X, y)


def train(cache):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(2, size=60)
    return ReferenceModels.train(Frail(), X, y, models=6, rng=5, cache=cache).logits
"""


def kept_in(folder):
    """How many trainings the files of a folder hold."""
    return sum(path.read_bytes().count(b'"task"') for path in folder.iterdir())


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


def test_cache_belongs_to_data_estimator_and_seed(tmp_path):
    base = small(cache=tmp_path)
    assert kept_in(tmp_path) == 6
    assert np.array_equal(small(cache=tmp_path).logits, base.logits)
    assert kept_in(tmp_path) == 6
    small(cache=tmp_path, rng=2)
    ReferenceModels.train(DecisionTreeClassifier(max_depth=5), X[:120], Y[:120], models=6, rng=1, cache=tmp_path)
    ReferenceModels.train(TREE, X[:120], Y[:120][::-1], models=6, rng=1, cache=tmp_path)
    ReferenceModels.train(TREE, X[:120] + 1e-9, Y[:120], models=6, rng=1, cache=tmp_path)
    assert kept_in(tmp_path) == 30
    assert len(list(tmp_path.iterdir())) == 5


@pytest.mark.parametrize("cut", [1, 40, 700])
def test_damaged_trainings_are_done_again(tmp_path, cut):
    base = small(cache=tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-cut])
    assert np.array_equal(small(cache=tmp_path).logits, base.logits)
    assert np.array_equal(small(cache=tmp_path).logits, base.logits)


def test_an_adapter_may_name_its_own_key(tmp_path):
    class Keyed:
        """Says what it depends on."""

        def __init__(self, key):
            self.key, self.size = key, 1

        def cache_key(self):
            return self.key

        def fit(self, X, y, rng):
            self.share = np.mean(y == 1) + 1e-3 * self.size
            return self

        def predict_proba(self, X):
            return np.full((len(X), 2), [1 - self.share, self.share])

    first, other = Keyed("a"), Keyed("a")
    other.size = 2
    found = [ReferenceModels.train(m, X[:60], Y[:60] % 2, models=4, rng=1, cache=tmp_path) for m in (first, other)]
    assert np.array_equal(found[0].logits, found[1].logits)
    other.key = "b"
    assert not np.array_equal(
        ReferenceModels.train(other, X[:60], Y[:60] % 2, models=4, rng=1, cache=tmp_path).logits, found[0].logits
    )


def test_cache_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cache must be a folder"):
        small(cache=tmp_path / "file")


def test_lira_beats_the_loss_on_an_overfit_model(linear):
    """The largest TPR - FPR, averaged over targets; linear discriminants, a fifth of the labels wrong."""
    gaps = {name: [] for name in ("logit", *ATTACKS)}
    for target in range(8):
        member = linear.included[target]
        scores = {name: linear.scores(target, attack=name) for name in ATTACKS}
        scores["logit"] = linear.logits[target]
        for name, score in scores.items():
            gaps[name].append(ks_2samp(score[member], score[~member], alternative="less", method="asymp").statistic)
    means = {name: np.mean(values) for name, values in gaps.items()}
    for name in ATTACKS:
        assert means[name] > means["logit"] + (0.0 if name == "rmia" else 0.05), means


def test_limits_of_an_overfit_model(linear):
    found = audit_with_references(linear, 0, attack="lira", rng=0)
    member = linear.included[0]
    plain = audit(linear.logits[0][member], linear.logits[0][~member], rng=0)
    assert found.advantage.lower > plain.advantage.lower
    assert found.assignment == "random"
    assert "lira with 24 reference models" in str(found)


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_target_of_the_callers_own(attack):
    half = RNG.random(len(Y)) < 0.5
    tree = DecisionTreeClassifier(random_state=0).fit(X[half], Y[half])
    references = ReferenceModels.train(
        DecisionTreeClassifier(), X, Y, models=8, rng=0, population=(X[:50] + 0.01, Y[:50])
    )
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


def test_leaving_one_model_out_hides_the_side_of_the_target():
    found = small(models=10)
    for target in range(10):
        inside, outside = found._without(target)
        assert set(inside.sum(axis=0)) == set(outside.sum(axis=0)) == {4}
        assert not (inside | outside)[target].any()
        assert not (inside & ~found.included).any()
        assert not (outside & found.included).any()


def test_leaving_one_out_picks_any_model():
    inside, outside = small(models=10)._without(0)
    dropped = (~(inside | outside))[1:].sum(axis=1)
    assert dropped.sum() == 120
    assert all(binomtest(int(count), 120, 1 / 9).pvalue > 1e-4 for count in dropped)


def test_constant_models_give_constant_scores(blind):
    for attack in ATTACKS:
        scores = blind.scores(0, attack=attack)
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
        ({"share": 0.0}, InputError, "share"),
        ({"share": 0.01}, InputError, "share must be a share"),
        ({"cache": "somewhere", "rng": None}, InputError, "rng is needed"),
        ({"population": X}, InputTypeError, "population must be a pair"),
        ({"population": (X, Y[:3])}, InputError, "population must have records"),
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


def test_bad_targets(linear):
    tree = DecisionTreeClassifier(random_state=0).fit(X, Y)
    for included, words in ((None, "got nothing"), (np.ones(3, bool), "got bool"), (np.ones(len(Y), bool), "one side")):
        with pytest.raises(InputError, match=words):
            audit_with_references(linear, tree, included)
    with pytest.raises(InputError, match="known for a reference model"):
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
    with pytest.raises(InputError, match="too few to spare"):
        few.scores(0)

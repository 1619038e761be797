"""One-run audits of trainings: a DP-SGD that keeps its promise passes, a broken one is found."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import binomtest
from sklearn.datasets import load_digits
from sklearn.dummy import DummyClassifier
from sklearn.neighbors import KNeighborsClassifier

import whosin as wi
from whosin.auditing.models import DPSGDAdapter, SklearnAdapter
from whosin.auditing.runs import audit_training, mislabelled
from whosin.errors import InputError, InputTypeError

X, Y = load_digits(return_X_y=True)
X = X / 16


@pytest.fixture
def plan():
    torch = pytest.importorskip("torch")
    pytest.importorskip("opacus")

    def make(noise, **options):
        settings = {"max_grad_norm": 1.0, "sample_rate": 0.5, "steps": 4, "learning_rate": 0.5, **options}
        return DPSGDAdapter(torch.nn.Linear(64, 10), noise_multiplier=noise, **settings)

    return make


CANARIES = mislabelled(X, Y, 200, rng=0)


def test_mislabelled():
    found, labels = mislabelled(X, np.arange(len(X)) % 10, 100, rng=0)
    rows = [int(np.flatnonzero((record == X).all(axis=1))[0]) for record in found]
    assert len(set(rows)) == 100
    assert (labels != np.array(rows) % 10).all()
    assert set(labels.tolist()) == set(range(10))
    names = mislabelled(X, np.where(Y > 4, "high", "low"), 5, rng=0)[1]
    assert names.dtype.kind == "U"
    with pytest.raises(InputError, match="count must be 1 to 1797"):
        mislabelled(X, Y, 1798)
    with pytest.raises(InputError, match="at least two labels"):
        mislabelled(X, np.zeros(len(X)), 3)


@pytest.mark.parametrize("score", ["loss", "gradients"])
def test_a_kept_promise_is_not_reported(plan, score):
    """Twenty runs at 90%: at most 5 false alarms (chance 0.01), and by theory far fewer."""
    promise = plan(2.0).guarantee
    verdicts = [
        audit_training(plan(2.0), None, CANARIES, score=score, guesses=60, delta=1e-5, confidence_level=0.9, rng=seed)
        .compare(promise)
        .verdict
        for seed in range(20)
    ]
    assert verdicts.count("violated") <= 5


@pytest.mark.parametrize("data", [None, (X[:150], Y[:150])], ids=["canaries alone", "with data"])
def test_noise_that_was_left_out_is_found(plan, data):
    promise = plan(4.0).guarantee
    run = audit_training(plan(0.0), data, CANARIES, score="gradients", guesses=100, delta=1e-5, rng=0)
    assert run.right >= 90  # one canary in 16 that is in comes into no batch
    compared = run.compare(promise)
    assert compared.verdict == "violated"
    assert compared.epsilon_lower > compared.epsilon_promised


def test_clipping_a_hundred_times_too_late_is_found(plan):
    """Gradients are clipped to norm 1, and the noise is that of norm 0.01: a hundredth of what was promised."""
    run = audit_training(plan(0.04), None, CANARIES, score="gradients", guesses=100, delta=1e-5, rng=0)
    assert run.compare(plan(4.0).guarantee).verdict == "violated"


def test_less_noise_more_right_guesses(plan):
    right = [
        sum(audit_training(plan(s), None, CANARIES, score="gradients", guesses=100, rng=i).right for i in range(3))
        for s in (8.0, 1.0, 0.0)
    ]
    assert right[0] < right[1] < right[2]


def test_the_scores_do_not_see_the_coins(plan):
    """Under huge noise the guesses are coin tosses, 1,000 of them: 500 ± 5 standard deviations."""
    right = sum(
        audit_training(plan(1e6), None, CANARIES, score="gradients", guesses=100, rng=seed).right for seed in range(10)
    )
    assert 420 <= right <= 580


class Deaf:
    """Learns nothing, and keeps who it was given."""

    def __init__(self):
        self.given = []

    def fit(self, data, labels, rng):
        self.given.append(np.asarray(data)[:, 0])
        return self


def by_value(model, data, labels):
    return -np.asarray(data)[:, 0]


def test_coins_do_not_depend_on_records_of_the_same_seed():
    """Uniform records of the seed of the audit: coins of the same stream would be the records themselves."""
    right = 0
    for seed in range(20):
        records = np.random.default_rng(seed).random((200, 1))
        canaries = records, np.zeros(200, dtype=int)
        right += audit_training(Deaf(), None, canaries, score=by_value, guesses=100, rng=seed).right
    assert binomtest(right, 2000).pvalue > 1e-3


def test_coins_are_fair_and_independent():
    canaries = np.arange(100.0)[:, None], np.zeros(100, dtype=int)
    deaf = Deaf()
    for seed in range(200):
        audit_training(deaf, None, canaries, score=by_value, guesses=10, rng=seed)
    coins = np.array([np.isin(np.arange(100), given) for given in deaf.given])
    assert binomtest(int(coins.sum()), coins.size).pvalue > 1e-3
    assert abs(coins.sum(axis=1) - 50).max() < 25  # five standard deviations
    for agree in (coins[:, 1:] == coins[:, :-1], coins[1:] == coins[:-1]):
        assert binomtest(int(agree.sum()), agree.size).pvalue > 1e-3


def test_generators_and_sparse_records():
    rng = np.random.default_rng(0)
    one, two = (audit_training(Deaf(), None, CANARIES, score=by_value, rng=rng) for _ in range(2))
    assert not np.array_equal(one.included, two.included)
    thin = audit_training(Deaf(), None, (csr_array(CANARIES[0]), CANARIES[1]), score=by_value, rng=1)
    assert thin == audit_training(Deaf(), None, CANARIES, score=by_value, rng=1)
    with pytest.raises(InputTypeError, match="rng must be a seed"):
        audit_training(Deaf(), None, CANARIES, score=by_value, rng="zero")


def test_the_number_of_canaries_does_not_set_the_step(plan, monkeypatch):
    seen = []
    train = DPSGDAdapter._train

    def watch(self, *given):
        seen.append(self.expected_batch)
        return train(self, *given)

    monkeypatch.setattr(DPSGDAdapter, "_train", watch)
    for seed in range(3):
        audit_training(plan(1.0), (X[:50], Y[:50]), CANARIES, rng=seed)
    audit_training(plan(1.0, expected_batch=7.0), None, CANARIES, rng=0)
    assert seen == [0.5 * 150] * 3 + [7.0]


def test_trainings_of_scikit_learn():
    run = audit_training(KNeighborsClassifier(1), (X[:200], Y[:200]), CANARIES, guesses=100, rng=0)
    assert run.epsilon_lower > 1.0
    assert run.compare(wi.PureDP(0.5)).verdict == "violated"
    blind = audit_training(SklearnAdapter(DummyClassifier()), (X[:200], Y[:200]), CANARIES, guesses=100, rng=0)
    assert blind.compare(wi.PureDP(0.5)).verdict == "inconclusive"


def test_own_score_and_no_data():
    def score(model, data, labels):
        return model.predict_proba(data).max(axis=1)

    first, second = (
        audit_training(KNeighborsClassifier(3), None, CANARIES, score=score, guesses=50, rng=4) for _ in range(2)
    )
    assert first == second
    assert first.canaries == 200


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"score": "gradients"}, InputTypeError, "needs a DPSGDAdapter, got SklearnAdapter"),
        ({"score": "los"}, InputError, "score must be loss, gradients"),
        ({"canaries": X}, InputTypeError, r"canaries must be a pair \(X, y\)"),
        ({"canaries": (X, Y[:5])}, InputError, "canaries must have records with one label each"),
        ({"canaries": (X[:0], Y[:0])}, InputError, "canaries must have records"),
        ({"data": (X[:, :5], Y)}, InputError, "canaries must be records like data"),
        ({"data": None, "canaries": (X[:1], Y[:1])}, InputError, "no record is left"),
        ({"delta": 2.0}, InputError, "delta"),
        ({"guesses": 1000}, InputError, "guesses"),
    ],
)
def test_bad_input(options, error, words):
    given = {"estimator": KNeighborsClassifier(1), "data": (X[:50], Y[:50]), "canaries": CANARIES, "rng": 0, **options}
    with pytest.raises(error, match=words):
        audit_training(given.pop("estimator"), given.pop("data"), given.pop("canaries"), **given)


# The picture


def run_of(noise=0.5, size=400, **options):
    rng = np.random.default_rng(0)
    included = rng.random(size) < 0.5
    return wi.audit_one_run(included + rng.normal(0, noise, size), included, **options)


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_promised_and_measured_on_one_picture(scale):
    promise = wi.DPSGD(1.0, 0.5, 3)
    ax = run_of(delta=1e-5).plot(guarantee=promise, scale=scale)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert any("measured: ε ≥" in text for text in texts)
    assert any("promised" in text for text in texts)
    (line,) = [line for line in ax.lines if "promised" in str(line.get_label())]
    x, y = line.get_data()
    assert y == pytest.approx(promise.roc.tpr(x))
    plt.close("all")


def test_the_band_holds_the_true_curve():
    """Scores that are independent draws, N(1, 1) and N(0, 1): at most 5 of 20 bands miss (by theory far fewer)."""
    from scipy.stats import norm

    missed = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        included = rng.random(300) < 0.5
        run = wi.audit_one_run(included + rng.normal(size=300), included, guesses=20)
        ax = run.plot()
        band = ax.collections[0].get_paths()[0].vertices
        fpr = np.linspace(0.001, 0.999, 200)
        true = norm.sf(norm.isf(fpr) - 1)
        half = len(band) // 2
        edges = [part[np.argsort(part[:, 0], kind="stable")] for part in (band[:half], band[half:])]
        rates = sorted((np.interp(fpr, *edge.T) for edge in edges), key=np.sum)
        missed += bool(((true < rates[0] - 0.01) | (true > rates[1] + 0.01)).any())
        plt.close("all")
    assert missed <= 5


def test_pictures_that_are_refused():
    with pytest.raises(InputTypeError, match="guarantee must be"):
        run_of().plot(guarantee=1.0)
    with pytest.raises(InputError, match="all on one side"):
        wi.audit_one_run([1.0, 2.0, 3.0], [1, 1, 1]).plot()
    whole = run_of()
    bare = type(whole)(*[getattr(whole, name) for name in list(whole.__dataclass_fields__)[:8]])
    assert bare == whole
    with pytest.raises(InputError, match="with its scores"):
        bare.plot()


DATA = X[:40], Y[:40]


def test_planted_gradients_keep_and_break_promises(plan):
    """Gradients along weights of their own: a kept promise passes, a quarter of the noise is found."""
    kept, broken = (
        [audit_training(plan(s), DATA, 300, rng=seed).compare(plan(3.0).guarantee) for seed in range(5)]
        for s in (3.0, 0.75)
    )
    assert sum(found.verdict == "violated" for found in kept) <= 2
    assert all(found.verdict == "violated" for found in broken)


def test_planted_gradients_show_more_than_mislabelled_records(plan):
    planted, records = (
        np.mean([audit_training(plan(1.0), DATA, given, score="gradients", rng=i).epsilon_lower for i in range(4)])
        for given in (200, CANARIES)
    )
    assert planted > 1.2 * records


def test_planted_gradients_without_noise_are_seen(plan):
    run = audit_training(plan(0.0), DATA, 300, guesses=100, rng=0)
    assert run.right >= 90


def test_planted_gradients_that_are_refused(plan):
    with pytest.raises(InputError, match="at most 650"):
        audit_training(plan(1.0), DATA, 651, rng=0)
    with pytest.raises(InputTypeError, match="data must be"):
        audit_training(plan(1.0), None, 10, rng=0)
    with pytest.raises(InputTypeError, match="DPSGDAdapter"):
        audit_training(KNeighborsClassifier(), DATA, 10, rng=0)
    with pytest.raises(InputError, match="canaries"):
        audit_training(plan(1.0), DATA, 0, rng=0)

"""Audits of generative models: every query by hand, a leak found, none feigned, adapters, bad input."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.mixture import GaussianMixture

from experiments.gans import DPCGAN, JSGAN, PrivGAN, architecture
from whosin.auditing import SyntheticAudit
from whosin.auditing.models.generators import audit_generator
from whosin.auditing.models.generators.latents import latent_distances
from whosin.auditing.models.generators.queries import ModelRelease, discriminator_scores, generate, known_queries
from whosin.errors import InputError, InputTypeError
from whosin.training import GaussianCopula

DIGITS = (load_digits().images / 8.0 - 1.0).astype(np.float32)
DIGITS = DIGITS[np.random.default_rng(0).permutation(len(DIGITS))]
TRAIN, HOLDOUT = DIGITS[:60], DIGITS[60:360]


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def overfitted():
    """A GAN that saw 60 digits very often."""
    arch = architecture("small", (8, 8))
    return JSGAN(arch, batch_size=30, learning_rate=1e-3).fit(TRAIN, epochs=300, rng=0)


class Scores:
    """A model of discriminators alone."""

    def __init__(self, *functions):
        self.discriminators = functions


class Copies:
    """A generator that repeats its training rows, slightly changed."""

    def __init__(self, rows, noise=0.01):
        self.rows, self.noise = rows, noise

    def sample(self, n, rng=None):
        chance = np.random.default_rng(rng)
        chosen = self.rows[chance.integers(len(self.rows), size=n)]
        return chosen + self.noise * chance.standard_normal(chosen.shape)


def test_the_discriminator_of_an_overfitted_gan_gives_its_records_away(overfitted):
    found = audit_generator(overfitted, TRAIN, HOLDOUT, query="discriminator", rng=0)
    assert found.advantage.lower > 0.3
    assert found.query.startswith("the discriminator's score")
    assert any("ask the model's discriminator" in line for line in found.assumes)
    assert any("trained once" in line for line in found.assumes)


def test_records_that_the_gan_never_saw_are_not_told_apart(overfitted):
    found = audit_generator(overfitted, DIGITS[400:700], DIGITS[700:1000], query="discriminator", rng=0)
    assert found.advantage.lower <= 0.0
    assert found.advantage.upper < 0.3


def test_every_query_of_one_model_is_answered(overfitted):
    for query in ("nearest", "monte_carlo", "hybrid", "auto", "max_discriminator", "discriminators"):
        found = audit_generator(overfitted, TRAIN, HOLDOUT, query=query, n_samples=300, rng=0)
        assert -1.0 <= found.advantage.lower <= found.advantage.estimate <= found.advantage.upper <= 1.0
        if query in ("hybrid", "auto"):
            assert found.advantage.lower > 0.3
            assert "combination of discriminator, nearest" in found.query


def test_equation_4_is_the_pair_of_score_and_distance(overfitted):
    pair, near = (
        audit_generator(overfitted, TRAIN, HOLDOUT, query=query, n_samples=300, rng=0)._evidence.experiment
        for query in ("hybrid", "nearest")
    )
    assert pair.names == ("discriminator", "nearest")
    for both, alone, records in ((pair.members, near.members, TRAIN), (pair.non_members, near.non_members, HOLDOUT)):
        assert both[:, 0] == pytest.approx(discriminator_scores(overfitted, records)[:, 0], abs=1e-6)
        assert both[:, 1] == pytest.approx(np.ravel(alone), abs=1e-6)


def test_the_same_seed_gives_the_same_audit(overfitted):
    first, again = (audit_generator(overfitted, TRAIN, HOLDOUT, query="hybrid", rng=5) for _ in range(2))
    assert first.to_dict() == again.to_dict()


def test_equations_3_5_and_6_by_hand():
    records = np.array([[0.0], [1.0], [2.0]])
    model = Scores(lambda rows: rows[:, 0], lambda rows: 1.5 - rows)
    assert discriminator_scores(model, records).tolist() == [[0.0, 1.5], [1.0, 0.5], [2.0, -0.5]]
    release = ModelRelease(model, records, rng=np.random.default_rng(0))
    queries = known_queries(release)
    assert queries["max_discriminator"].answer(release).tolist() == [1.5, 1.0, 2.0]
    assert queries["discriminator 2"].answer(release).tolist() == [1.5, 0.5, -0.5]
    single = ModelRelease(Scores(lambda rows: 3 * rows), records, rng=np.random.default_rng(0))
    assert known_queries(single)["discriminator"].answer(single).tolist() == [0.0, 3.0, 6.0]


def test_equations_1_and_2_by_hand():
    records = np.array([[0.0, 0.0], [3.0, 4.0], [10.0, 0.0]])
    made = np.array([[0.0, 1.0], [3.0, 2.0]])
    release = ModelRelease(object(), records, synthetic=made, rng=np.random.default_rng(0))
    queries = known_queries(release)
    assert queries["nearest"].answer(release) == pytest.approx([-1.0, -2.0, -np.sqrt(53.0)])
    # Radius: the distance of the two, √10. Within it are the first for the first record, the second for the second.
    wanted = [np.log(np.sqrt(10.0)) / 2, np.log(np.sqrt(10.0) / 2.0) / 2, 0.0]
    assert queries["monte_carlo"].answer(release) == pytest.approx(wanted, abs=1e-12)


def test_the_largest_score_can_hide_what_the_vector_shows():
    rng = np.random.default_rng(1)
    secret = rng.random(1000) < 0.5
    high, low = rng.uniform(0.5, 1.0, 1000), rng.uniform(0.0, 0.5, 1000)
    scores = np.column_stack([np.where(secret, high, low), np.where(secret, low, high)])
    members, others = scores[secret], scores[~secret]
    model = Scores(lambda rows: rows[:, 0], lambda rows: rows[:, 1])
    flat = audit_generator(model, members, others, query="max_discriminator", rng=0)
    vector = audit_generator(model, members, others, query="discriminators", rng=0)
    assert flat.advantage.lower <= 0.0
    assert vector.advantage.lower > 0.9


def test_a_vector_of_noise_feigns_no_leak():
    """Xu et al. bin two dimensions in 10,000 cells, which finds an advantage of 0.95 in noise of this size."""
    rng = np.random.default_rng(2)
    rows = rng.random((1000, 2))
    model = Scores(lambda rows: rows[:, 0], lambda rows: rows[:, 1])
    found = audit_generator(model, rows[:500], rows[500:], query="discriminators", rng=0)
    assert found.advantage.lower <= 0.0
    assert found.advantage.estimate < 0.15


def test_copies_are_found_by_their_distance():
    rows = np.random.default_rng(3).normal(size=(600, 6))
    found = audit_generator(Copies(rows[:300]), rows[:300], rows[300:], query="nearest", n_samples=2000, rng=0)
    assert found.advantage.lower > 0.8
    assert any("sees 2000 generated records" in line for line in found.assumes)


def test_a_model_that_cannot_be_searched_answers_with_its_samples():
    rows = np.random.default_rng(4).normal(size=(200, 3))
    model = Copies(rows[:100])
    nearest, latent = (
        audit_generator(model, rows[:100], rows[100:], query=query, n_samples=400, rng=0)
        for query in ("nearest", "latent")
    )
    assert np.array_equal(latent._evidence.experiment.members, nearest._evidence.experiment.members)
    assert any("cannot be searched" in line for line in latent.assumes)


def test_labels_reach_a_conditional_discriminator():
    arch = architecture("small", (8, 8), width=16)
    labels = np.arange(60) % 3
    model = DPCGAN(arch, 0.0, 1.0, 0.5, 3, batch_size=8).fit(TRAIN, y=labels, epochs=3, rng=0)
    given = audit_generator(model, TRAIN, HOLDOUT, query="discriminator", labels=(labels, np.arange(300) % 3), rng=0)
    unknown = audit_generator(model, TRAIN, HOLDOUT, query="discriminator", rng=0)
    assert not np.array_equal(given._evidence.experiment.members, unknown._evidence.experiment.members)
    with pytest.raises(InputError, match="each of the 60 rows of train"):
        audit_generator(model, TRAIN, HOLDOUT, labels=(labels[:5], np.arange(300)), rng=0)
    with pytest.raises(InputTypeError, match="labels must be a pair"):
        audit_generator(model, TRAIN, HOLDOUT, labels=labels, rng=0)


def test_pairs_have_one_column_each():
    arch = architecture("small", (8, 8), width=16)
    model = PrivGAN(arch, batch_size=10).fit(TRAIN, epochs=2, rng=0)
    found = audit_generator(model, TRAIN, HOLDOUT, query="discriminators", rng=0)
    assert found._evidence.experiment.names == ("discriminator 1", "discriminator 2")
    hybrid = audit_generator(model, TRAIN, HOLDOUT, query="hybrid", rng=0)
    assert hybrid._evidence.experiment.names == ("max_discriminator", "nearest")
    with pytest.raises(InputError, match="needs one discriminator, the model has 2"):
        audit_generator(model, TRAIN, HOLDOUT, query="discriminator", rng=0)


def test_a_model_of_another_library_is_asked_by_its_samples():
    mixture = GaussianMixture(60, covariance_type="diag", reg_covar=1e-4, random_state=0)
    rows = np.random.default_rng(5).normal(size=(260, 8))
    found = audit_generator(mixture, rows[:60], rows[60:], fit=True, n_samples=2000, rng=0)
    assert found.advantage.lower > 0.5
    assert any("trained here" in line for line in found.assumes)
    assert not hasattr(mixture, "means_")


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(6)
    return pl.DataFrame(
        {
            "age": rng.integers(18, 90, 800),
            "income": rng.lognormal(10, 1, 800).round(),
            "job": rng.choice(["cook", "clerk", "pilot"], 800),
        }
    )


class Bootstrap:
    """A leaky synthesiser: rows drawn again."""

    def fit(self, table):
        self.table = table
        return self

    def sample(self, n, random_state=None):
        return self.table.sample(n, with_replacement=True, seed=random_state)


def test_tables_go_through_the_audit_of_released_tables(people):
    train, holdout = people[:400], people[400:]
    leaky = audit_generator(Bootstrap(), train, holdout, fit=True, rng=0, groups="job")
    assert isinstance(leaky, SyntheticAudit)
    assert leaky.advantage.lower > 0.3
    assert leaky.synthetic == 400
    assert any("trained here" in line for line in leaky.assumes)
    copula = audit_generator(GaussianCopula().fit(train), train, holdout, n_samples=300, rng=0)
    assert copula.synthetic == 300
    assert copula.advantage.lower <= 0.0
    released = Bootstrap().fit(train).sample(200)
    assert audit_generator(Bootstrap(), train, holdout, synthetic=released, rng=0).synthetic == 200


def test_generate_knows_the_ways_to_ask_for_samples():
    class Plugin:
        def generate(self, count):
            class Frame:
                def dataframe(self):
                    return np.full((count, 2), 7.0)

            return Frame()

    class Seeded:
        def sample(self, n, seed):
            return np.random.default_rng(seed).random((n, 1))

    class Bare:
        sample = staticmethod(lambda n: np.zeros((n, 1)))

    assert generate(Plugin(), 3, np.random.default_rng(0)).shape == (3, 2)
    one, same = (generate(Seeded(), 3, np.random.default_rng(1)) for _ in range(2))
    assert np.array_equal(one, same)

    class Named:
        def sample(self, num_rows):
            return {"t": pl.DataFrame({"a": range(num_rows)})}

    assert generate(Bare(), 2, np.random.default_rng(0)).shape == (2, 1)
    assert generate(Named(), 4, np.random.default_rng(0)).shape == (4, 1)


def test_latents_of_generated_records_are_found(overfitted):
    made = overfitted.sample(20, rng=9)
    distances = latent_distances(overfitted.generators, made, latent_size=16, restarts=3, iterations=100, rng=0)
    others = latent_distances(overfitted.generators, HOLDOUT[:20], latent_size=16, restarts=3, iterations=100, rng=0)
    assert np.median(distances) < 0.05
    assert np.median(others) > 1.0


def test_a_linear_generator_gives_the_distance_to_its_range():
    rng = np.random.default_rng(0)
    matrix, shift = rng.normal(size=(12, 4)) * np.array([1.0, 1.0, 0.3, 3.0]), rng.normal(size=12)
    layer = torch.nn.Linear(4, 12, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(matrix))
        layer.bias.copy_(torch.from_numpy(shift))
    records = rng.normal(size=(300, 12)) * 5
    residue = records - shift
    basis, _ = np.linalg.qr(matrix)
    wanted = np.linalg.norm(residue - residue @ basis @ basis.T, axis=1)
    found = latent_distances([layer], records, latent_size=4, restarts=1, iterations=60, rng=0)
    assert found == pytest.approx(wanted, rel=1e-6)
    both = latent_distances([layer, torch.nn.Linear(4, 12, dtype=torch.float64)], records[:9], latent_size=4, rng=0)
    assert np.all(both <= found[:9] * (1 + 1e-6))


def test_the_search_leaves_the_generator_as_it_was():
    module = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Dropout(0.5))
    module.train()
    first, again = (latent_distances([module], np.ones((4, 3)), latent_size=2, rng=0) for _ in range(2))
    assert np.array_equal(first, again)
    assert module.training
    assert all(parameter.grad is None for parameter in module.parameters())


class Searchable:
    """A model of a generator alone."""

    latent_size = 2

    def __init__(self, generators):
        self.generators = generators


def test_a_generator_alone_is_searched():
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    rows = np.random.default_rng(0).normal(size=(40, 3))
    single, listed, modules = (
        audit_generator(Searchable(given), rows[:20], rows[20:], iterations=5, rng=0)
        for given in (network, (network,), torch.nn.ModuleList([network]))
    )
    assert single.query.startswith("minus the distance to the nearest record that the generator can make")
    for other in (listed, modules):
        assert np.array_equal(single._evidence.experiment.members, other._evidence.experiment.members)


def test_generators_that_are_no_torch_modules_answer_with_samples():
    model = Copies(np.random.default_rng(0).normal(size=(20, 2)))
    model.generators, model.latent_size = (lambda latents: latents,), 2
    found = audit_generator(model, model.rows, model.rows + 1.0, query="latent", n_samples=50, rng=0)
    assert any("cannot be searched" in line for line in found.assumes)


class SecondSdv:
    """Takes and gives tables by name, as the synthesisers of SDV 2 do."""

    def __init__(self):
        self.metadata = SimpleNamespace(tables={"people": object()})

    def fit(self, data):
        if not isinstance(data, dict):
            raise TypeError("tables by name")
        self.table = data["people"]
        assert isinstance(self.table, pd.DataFrame)

    def sample(self, num_rows, main_table_name=None):
        return {"people": self.table.sample(num_rows, replace=True, random_state=0)}


def test_a_synthesiser_of_sdv_2_is_trained_on_a_named_table(people):
    for table in (people, people.to_pandas()):
        found = audit_generator(SecondSdv(), table[:400], table[400:], fit=True, rng=0)
        assert found.advantage.lower > 0.3


def test_labels_reach_a_training_that_takes_them():
    arch = architecture("small", (8, 8), width=16)
    labels = np.arange(60) % 3, np.arange(300) % 3
    model = DPCGAN(arch, 1.0, 1.0, 0.5, 3, batch_size=8)
    found = audit_generator(model, TRAIN, HOLDOUT, query="discriminator", fit={"epochs": 1}, labels=labels, rng=0)
    assert found.members == 60


def test_progress_rises_to_one(overfitted):
    calls = []
    audit_generator(overfitted, TRAIN, HOLDOUT, query="latent", iterations=3, restarts=1, rng=0, progress=calls.append)
    assert calls == sorted(calls)
    assert calls[-1] == pytest.approx(1.0)


ROWS = np.zeros((5, 2))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"query": "shadow"}, InputError, "query must be auto, discriminator, latent"),
        ({"query": 3}, InputTypeError, "query must be a name"),
        ({"query": []}, InputTypeError, "query must be a name"),
        ({"train": np.zeros(5)}, InputError, r"train must have records of shape \(n, ...\)"),
        ({"train": np.zeros((0, 2))}, InputError, "train must have records"),
        ({"holdout": np.zeros((5, 3))}, InputError, "train and holdout must have records of one shape"),
        ({"holdout": np.full((5, 2), np.nan)}, InputError, "holdout must hold finite numbers"),
        ({"train": np.full((5, 2), "a")}, InputTypeError, "train must be an array of numbers or a data frame"),
        ({"train": [[1.0], [1.0, 2.0]]}, InputError, "ragged"),
        ({"synthetic": ROWS, "n_samples": 3}, InputTypeError, "synthetic and n_samples exclude"),
        ({"synthetic": ROWS, "fit": True}, InputTypeError, "synthetic and fit exclude"),
        ({"synthetic": np.zeros((5, 3)), "query": "nearest"}, InputError, "records like train"),
        ({"synthetic": np.full((5, 2), np.inf), "query": "nearest"}, InputError, "synthetic must hold finite"),
        ({"n_samples": 0}, InputError, "n_samples must be"),
        ({"fit": "yes"}, InputTypeError, "fit must be True, False or a mapping"),
        ({"fit": True}, InputTypeError, "object with fit"),
        ({"model": object()}, InputTypeError, "sample, discriminators or generators, .*got object"),
        ({"model": object(), "query": "discriminators"}, InputError, "none could be answered|discriminators"),
        ({"model": object(), "query": "nearest"}, InputError, "object with sample"),
        ({"model": Scores(lambda rows: rows[:2, 0]), "query": "discriminator"}, InputError, "score each of 10 records"),
        ({"model": Scores(3), "query": "discriminator"}, InputError, "object with discriminators"),
        ({"assignment": "independent trainings"}, InputError, "assignment must be"),
        ({"train": 5}, InputTypeError, "train must be an array of numbers or a data frame, got int"),
        ({"train": None}, InputTypeError, "train must be an array of numbers or a data frame, got NoneType"),
        ({"train": pl.LazyFrame({"a": [1]})}, InputTypeError, "train must be .* got LazyFrame"),
        ({"model": Scores(lambda rows: ["a"] * 10)}, InputError, "that score each of 10 records by a number"),
        (
            {"model": Scores(lambda rows: rows[:, 0]), "labels": (np.zeros(5), np.zeros(5))},
            InputError,
            "labels must be None for discriminators without a second argument",
        ),
        (
            {"model": JSGAN(architecture("small", (2,)), batch_size=2), "fit": True},
            InputTypeError,
            "fit must be what JSGAN.fit needs: .*'epochs'",
        ),
    ],
)
def test_bad_input_is_named(arguments, error, message):
    model = arguments.pop("model", Copies(ROWS))
    train, holdout = arguments.pop("train", ROWS), arguments.pop("holdout", ROWS + 1.0)
    with pytest.raises(error, match=message):
        audit_generator(model, train, holdout, **arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"generators": []}, InputTypeError, "generators must be torch modules"),
        ({"generators": [len]}, InputTypeError, "generators must be torch modules"),
        ({"records": np.zeros(3)}, InputError, "records must hold finite numbers"),
        ({"records": np.zeros((3, 5))}, InputError, "records must have 3 numbers per record"),
        ({"latent_size": 0}, InputError, "latent_size must be"),
        ({"latent_size": 3}, InputError, "generators must be modules of 3 numbers, latent_size"),
        ({"restarts": 0}, InputError, "restarts must be"),
        ({"iterations": 0}, InputError, "iterations must be"),
    ],
)
def test_bad_input_of_the_search_is_named(arguments, error, message):
    given = {"generators": [torch.nn.Linear(2, 3)], "records": np.zeros((4, 3)), "latent_size": 2, **arguments}
    with pytest.raises(error, match=message):
        latent_distances(given.pop("generators"), given.pop("records"), **given)


def test_one_record_on_a_side_is_audited_without_a_crash():
    found = audit_generator(Scores(lambda rows: rows[:, 0]), np.ones((1, 2)), np.zeros((3, 2)), rng=0)
    assert found.advantage.lower <= 0.0

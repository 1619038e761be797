"""A trained torch module as a classifier: probabilities, modes, devices, layers, and what is refused."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from whosin.auditing.models import TorchAdapter, TorchModel, audit_classifier, layer_output
from whosin.errors import InputError, InputTypeError

torch = pytest.importorskip("torch")
nn = torch.nn

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 4))


def linear(width=3):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Linear(4, width)


def logits_of(module):
    weight, shift = (part.detach().numpy().astype(np.float32) for part in (module.weight, module.bias))
    return (X.astype(np.float32) @ weight.T + shift).astype(np.float64)


class Given(nn.Module):
    """Gives out the records themselves, or what a function makes of them."""

    def __init__(self, change=lambda x: x):
        super().__init__()
        self.change = change

    def forward(self, x):
        return self.change(x)


def test_several_outputs_are_logits():
    module = linear()
    z = logits_of(module)
    expected = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    found = TorchModel(module).predict_proba(X)
    assert found.dtype == np.float64
    assert found == pytest.approx(expected, abs=1e-6)
    assert (TorchModel(module, classes=["a", "b", "c"]).predict(X) == np.array(list("abc"))[z.argmax(axis=1)]).all()


def test_probabilities_are_in_double_precision():
    """e^-200 is nothing in single precision, and so is the rounding of what lies near 1/3."""
    far = TorchModel(Given(lambda x: torch.stack([x[:, 0] * 0 + 200, x[:, 0] * 0], dim=1))).predict_proba(X)
    assert far[:, 1] == pytest.approx(np.exp(-200.0), rel=1e-12, abs=0.0)
    even = TorchModel(Given(lambda x: x[:, :3] * 0)).predict_proba(X)
    assert even == pytest.approx(np.full((50, 3), 1 / 3), rel=1e-15)
    single = TorchModel(Given(lambda x: x[:, 0] * 0 + 200)).predict_proba(X)
    assert single[:, 0] == pytest.approx(np.exp(-200.0), rel=1e-12, abs=0.0)


@pytest.mark.parametrize("rows", [129, 131, 257])
def test_the_last_records_are_rounded_like_the_others(rows):
    """Equal records get equal answers, however many there are: short batches take another way through the sums."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 10))
    same = np.repeat(np.random.default_rng(0).normal(size=(1, 20)), rows, axis=0)
    assert len(np.unique(TorchModel(module, batch_size=128).predict_proba(same)[:, 0])) == 1


def test_a_layer_that_is_called_by_keyword_is_refused():
    class ByKeyword(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = nn.Linear(4, 3)

        def forward(self, x):
            return self.last(input=x)

    with pytest.raises(InputError, match="one row per record"):
        TorchModel(ByKeyword()).layer_output(X)
    assert TorchModel(ByKeyword()).layer_output(X, "last").shape == (50, 3)


@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
def test_a_single_output_is_about_the_second_class(shape):
    single = Given(lambda x: x[:, 0].reshape(shape))
    p = 1 / (1 + np.exp(-X[:, 0].astype(np.float32).astype(float)))
    assert TorchModel(single).predict_proba(X) == pytest.approx(np.column_stack([1 - p, p]))
    given = Given(lambda x: torch.sigmoid(x[:, 0]).reshape(shape))
    assert TorchModel(given, output="probabilities").predict_proba(X) == pytest.approx(
        np.column_stack([1 - p, p]), abs=1e-6
    )
    with pytest.raises(InputError, match="single output"):
        TorchModel(single, output="log_probabilities").predict_proba(X)


def test_outputs_may_be_probabilities_or_their_logarithms():
    module = linear()
    plain = TorchModel(module).predict_proba(X)
    soft = TorchModel(nn.Sequential(module, nn.Softmax(dim=1)), output="probabilities").predict_proba(X)
    logs = TorchModel(nn.Sequential(module, nn.LogSoftmax(dim=1)), output="log_probabilities").predict_proba(X)
    assert soft == pytest.approx(plain, abs=1e-6)
    assert logs == pytest.approx(plain, abs=1e-6)


def test_far_below_the_rounding_of_the_outputs():
    """Logits of ±30 in single precision: 1 - p is e^-60, not 0."""
    found = TorchModel(Given()).predict_proba(np.array([[30.0, -30.0]]))
    assert found[0, 1] == pytest.approx(np.exp(-60.0), rel=1e-6)


def test_batches_do_not_matter_and_limit_what_is_held():
    sizes = []
    module = nn.Sequential(Given(lambda x: sizes.append(len(x)) or x), linear())
    assert TorchModel(module, batch_size=7).predict_proba(X) == pytest.approx(TorchModel(module).predict_proba(X))
    assert max(sizes[:8]) == 7


def test_evaluation_mode_and_back_again():
    """Dropout is off, stored statistics stay, and a part that was frozen stays frozen."""
    module = nn.Sequential(nn.BatchNorm1d(4), nn.Dropout(0.9), linear(), nn.Dropout(0.9))
    module.train()
    module[0].eval()
    before = module[0].running_mean.clone()
    model = TorchModel(module)
    assert np.array_equal(model.predict_proba(X), model.predict_proba(X))
    assert torch.equal(module[0].running_mean, before)
    assert [part.training for part in module] == [False, True, True, True]
    assert module.training


def test_the_mode_comes_back_after_an_error():
    module = nn.Sequential(nn.Dropout(0.5), linear())
    with pytest.raises(InputError, match=r"module must accept records.*input_dtype"):
        TorchModel(module).predict_proba(RNG.normal(size=(3, 9)))
    assert module.training


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (Given(lambda x: torch.where(torch.arange(len(x))[:, None] == 2, torch.nan, x)), "finite outputs.*row 2"),
        (Given(lambda x: x / 0), "finite outputs.*row 0"),
        (Given(lambda x: x[:1]), r"shape \(50, classes\)"),
        (Given(lambda x: x[:, :, None]), "shape"),
        (Given(lambda x: x[:, :0]), "shape"),
        (Given(lambda x: (x, x)), "tensor, got tuple"),
        (nn.Linear(4, 2, device="meta"), "meta"),
    ],
)
def test_outputs_that_are_refused(module, words):
    with pytest.raises((InputError, InputTypeError), match=words):
        TorchModel(module).predict_proba(X)


def test_settings_that_are_refused():
    with pytest.raises(InputTypeError, match=r"module must be a torch\.nn\.Module, got str"):
        TorchModel("net")
    with pytest.raises(InputError, match="output must be"):
        TorchModel(linear(), output="odds")
    with pytest.raises(InputError, match="input_dtype must be"):
        TorchModel(linear(), input_dtype="number")
    with pytest.raises(InputError, match="classes must have at least two different"):
        TorchModel(linear(), classes=[1, 1, 2])
    with pytest.raises(InputError, match="classes must have one label per output, got 2 for 3"):
        TorchModel(linear(), classes=[0, 1]).predict_proba(X)
    with pytest.raises(InputError, match="at least one record"):
        TorchModel(linear()).predict_proba(X[:0])
    with pytest.raises(InputTypeError, match="must hold numbers"):
        TorchModel(linear()).predict_proba(np.array([["a"]]))


def test_types_of_records():
    words = nn.Sequential(nn.Embedding(5, 4), nn.Flatten(), nn.Linear(8, 2))
    tokens = RNG.integers(5, size=(6, 2))
    assert TorchModel(words, input_dtype="int64").predict_proba(tokens).shape == (6, 2)
    double = nn.Linear(4, 3).double()
    assert TorchModel(double).predict_proba(X) == pytest.approx(TorchModel(double).predict_proba(torch.tensor(X)))


def test_a_module_without_a_wrapper_gets_advice():
    sides = (X, np.zeros(50, dtype=int)), (X, np.zeros(50, dtype=int))
    with pytest.raises(InputTypeError, match="TorchModel"):
        audit_classifier(linear(), *sides)


def test_labels_are_those_of_the_classes():
    module, labels = linear(2), np.where(X[:, 0] > 0, "yes", "no")
    model = TorchModel(module, classes=["no", "yes"])
    found = audit_classifier(model, (X[:25], labels[:25]), (X[25:], labels[25:]), rng=0)
    assert found.members == 25
    with pytest.raises(InputError, match="labels that the model knows"):
        audit_classifier(TorchModel(module), (X[:25], labels[:25]), (X[25:], labels[25:]), rng=0)


def test_the_penultimate_layer():
    first, last = nn.Linear(4, 5), nn.Linear(5, 3)
    net = nn.Sequential(first, nn.ReLU(), last, nn.LogSoftmax(dim=1))
    expected = np.maximum(X.astype(np.float32) @ first.weight.detach().numpy().T + first.bias.detach().numpy(), 0)
    model = TorchModel(net, output="log_probabilities", batch_size=8)
    assert model.layer_output(X) == pytest.approx(expected, abs=1e-6)
    assert model.layer_output(X, "1") == pytest.approx(expected, abs=1e-6)
    assert not first._forward_pre_hooks
    assert not net[1]._forward_hooks
    images = TorchModel(nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 2)))
    assert images.layer_output(RNG.normal(size=(5, 1, 4, 4)), "0").shape == (5, 8)


def test_layers_that_are_refused():
    model = TorchModel(nn.Sequential(linear(), Given()))
    with pytest.raises(InputError, match=r"layer must be the name of a submodule .*'0', '1'.*got 'last'"):
        model.layer_output(X, "last")
    with pytest.raises(InputTypeError, match="name of a submodule"):
        layer_output(1)(model, X, None)
    module = linear()
    module.add_module("idle", nn.Linear(2, 2))
    with pytest.raises(InputError, match="layer that the module calls, got 'idle'"):
        TorchModel(module).layer_output(X, "idle")
    with pytest.raises(InputTypeError, match="TorchModel or a trained MLPClassifier, got Given"):
        layer_output()(Given(), X, None)


def test_layers_of_a_perceptron():
    data, labels = load_breast_cancer(return_X_y=True)
    net = MLPClassifier((6, 4), activation="tanh", solver="lbfgs", max_iter=15, tol=1.0, random_state=0)
    pipe = make_pipeline(StandardScaler(), net).fit(data, labels)
    hidden = layer_output()(pipe, data, labels)
    assert hidden.shape == (len(data), 4)
    odds = (hidden @ net.coefs_[-1] + net.intercepts_[-1])[:, 0]
    assert 1 / (1 + np.exp(-odds)) == pytest.approx(pipe.predict_proba(data)[:, 1])
    alone = layer_output(0)(net, pipe[0].transform(data), labels)
    assert alone.shape == (len(data), 6)
    with pytest.raises(InputError, match="layer must be 0 to 1"):
        layer_output(2)(pipe, data, labels)
    with pytest.raises(InputTypeError, match="number of a hidden layer"):
        layer_output("a")(pipe, data, labels)


def test_a_layer_that_marks_members_is_seen_where_the_answer_is_not():
    """The mark is in the penultimate layer, and the last layer does not look at it (Xu et al., appendix I)."""
    last = nn.Linear(2, 2, bias=False)
    with torch.no_grad():
        last.weight.copy_(torch.tensor([[1.0, 0.0], [-1.0, 0.0]]))
    model = TorchModel(nn.Sequential(Given(), last))
    data, labels = RNG.normal(size=(600, 2)), RNG.integers(2, size=600)
    data[:300, 1] += 2.0
    sides = (data[:300], labels[:300]), (data[300:], labels[300:])
    assert audit_classifier(model, *sides, query="loss", rng=0).advantage.lower == 0.0
    seen = audit_classifier(model, *sides, query=["loss", layer_output()], rng=0)
    assert seen.advantage.lower > 0.3
    assert seen.query == "loss, penultimate layer 1, penultimate layer 2"


def test_whole_numbers_go_into_an_embedding_as_they_are():
    net = torch.nn.Sequential(torch.nn.Embedding(5, 3), torch.nn.Flatten(), torch.nn.Linear(6, 2))
    tokens = np.array([[0, 4], [1, 2], [3, 3]])
    expected = net(torch.as_tensor(tokens)).softmax(1).detach().numpy()
    np.testing.assert_allclose(TorchModel(net).predict_proba(tokens), expected, rtol=1e-6)
    trained = TorchAdapter(net, epochs=1).fit(tokens, [0, 1, 1], np.random.default_rng(0))
    assert trained.predict_proba(tokens).shape == (3, 2)
    assert TorchModel(torch.nn.Linear(2, 2)).predict_proba(tokens).shape == (3, 2)

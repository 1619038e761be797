"""The experiments on Xu et al. 2022: their estimates by a second route, committed results, and a run on digits.

Models are not trained again: what the committed numbers say is checked, and every figure is made on digits in a quick
run elsewhere.
"""

import json
import math
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from committed import check_drawing, check_picture
from PIL import Image
from scipy.stats import binom

import whosin as wi
from experiments.mace import (
    FULL,
    NAMES,
    __main__,
    _classifier,
    _data,
    _measure,
    _models,
    _private,
    _recipes,
    _run,
    _table,
    chance,
    exclusion,
    figure_3,
    figure_5,
)

ROOT = Path(__file__).parents[2]
FULL_RESULTS = _run.RESULTS / "full"
README = (ROOT / "experiments" / "mace" / "README.md").read_text(encoding="utf-8")


def module(name):
    return import_module(f"experiments.mace.{name}")


def every(value, key):
    """All values under that key, at any depth."""
    if isinstance(value, dict):
        found = [value[key]] if key in value else []
        return found + [one for part in value.values() for one in every(part, key)]
    return [one for part in value for one in every(part, key)] if isinstance(value, list) else []


# --- the committed files ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_committed_picture_was_drawn_from_the_committed_numbers(name):
    check_picture(_run, name, module(name).draw)


@pytest.mark.parametrize("name", NAMES)
def test_figures_can_be_drawn(name):
    check_drawing(_run, name, module(name).draw)


def test_nothing_else_is_among_the_results():
    files = {path.name for path in _run.RESULTS.iterdir() if path.is_file()}
    assert files == {f"{name}.{kind}" for name in NAMES for kind in ("json", "png")}
    full = {path.name for path in FULL_RESULTS.glob("*")}
    assert full <= {f"{name}.{kind}" for name in FULL for kind in ("json", "png")}
    assert {name.removesuffix(".json") for name in full if name.endswith(".json")} == {
        name.removesuffix(".png") for name in full if name.endswith(".png")
    }


@pytest.mark.parametrize("path", sorted(FULL_RESULTS.glob("*.json")), ids=lambda path: path.stem)
def test_committed_results_of_the_paper_s_sizes(path):
    """The picture is that of the numbers, and every training that is shown is that of its recipe, to a stated epoch."""
    results, run = _run.files(FULL_RESULTS), _run.Run(full=True)
    with Image.open(path.with_suffix(".png")) as image:
        assert image.text["Description"] == results.stamp(path.stem, module(path.stem).draw)
    data = results.read(path.stem)
    asked = path.stem.removeprefix("figure_")
    assert data["made"]["command"] == f"python -m experiments.mace --figure {asked} --full --seed 2022"
    for model, note in data["made"]["training"].items():
        if model in _recipes.gans_of(run):
            recipe = _recipes.recipe_of(run, model)
            assert (note["layers"], note["train"]) == (recipe.layers, recipe.members)
            assert note["epochs"] in recipe.epochs
    for model, found in data.get("models", {}).items():
        done = [int(stop) for stop in found]
        assert done == list(_recipes.recipe_of(run, model).epochs[: len(done)])
        assert (done == list(_recipes.recipe_of(run, model).epochs)) == (model not in data["unfinished"])


@pytest.mark.parametrize("name", NAMES)
def test_results_say_how_they_were_made(name):
    made = _run.read(name)["made"]
    asked = name.removeprefix("figure_")
    assert made["command"] == f"python -m experiments.mace --figure {asked} --seed {made['seed']}"
    assert made["cpu_seconds_without_training"] >= 0
    assert made["training"] or name == "chance"
    for note in made["training"].values():
        assert min(note["train"], note["holdout"], note["epochs"]) > 0
        assert max(note.get("cpu_seconds", 0.0), note.get("wall_seconds", 0.0)) > 0
    assert made["differs_from_the_paper"] == list(module(name).DIFFERS)
    assert "/" not in json.dumps(made["command"])


@pytest.mark.parametrize("name", NAMES)
def test_trainings_are_those_of_the_recipes(name):
    run = _run.Run()
    for model, note in _run.read(name)["made"]["training"].items():
        if model in _recipes.gans_of(run):
            recipe = _recipes.recipe_of(run, model)
            assert (note["model"], note["layers"], note["train"], note["epochs"]) == (
                recipe.model,
                recipe.layers,
                recipe.members,
                recipe.epochs[-1],
            )


@pytest.mark.parametrize("name", NAMES)
def test_limits_are_in_order(name):
    data = _run.read(name)
    for found in [*every(data, "audit"), *every(data, "heuristic")]:
        for one in found if isinstance(found, list) else [found]:
            if isinstance(one.get("estimate"), float):
                assert one["lower"] <= one["estimate"] <= one["upper"]
    for found in every(data, "null"):
        low, high = found["range_95"]
        assert 0.0 <= low <= found["mean"] <= high <= 1.0


def test_more_cells_mean_more_by_chance():
    rows = [
        _run.read("figure_2")["2a"]["both"],
        _run.read("figure_2")["2b"]["hybrid"],
        _run.read("figure_8")["white_box"],
    ]
    for row in rows:
        few, many = (row["plug_in_by_cells"][count]["null"]["mean"] for count in ("100", "10000"))
        assert many > few + 0.05


def test_table_of_the_readme_is_that_of_the_results():
    assert _table.markdown() in README


# --- what the paper says of the figures -------------------------------------------------------------------------------


def cells(row, count="100"):
    """Value and range by chance of W."""
    found = row["plug_in_by_cells"][count]
    return found["value"], found["null"]["range_95"]


def test_figure_1_the_best_attacker_is_not_seen_to_beat_the_heuristic():
    row = _run.read("figure_1")["1a"]["discriminator"]
    assert row["audit"]["lower"] < row["heuristic"]["upper"]
    assert row["plug_in_by_cells"]["100"]["null"]["mean"] > 0.1


def test_figure_1_kernel_estimate_is_below_the_cells():
    """As printed; most of the difference is what W has by chance."""
    one = _run.read("figure_1")
    for row in (one["1a"]["discriminator"], *one["1b_1c"].values()):
        assert row["kernel"] < cells(row)[0]


def test_figure_1_model_tells_more_than_its_images():
    two = _run.read("figure_1")["1b_1c"]
    assert two["discriminator"]["audit"]["lower"] > two["synthetic"]["audit"]["estimate"]
    assert two["discriminator"]["audit"]["lower"] > 0.0 == two["synthetic"]["audit"]["lower"]


def test_figure_1_heuristics_are_below_w_which_chance_explains_in_part():
    for row in _run.read("figure_1")["1b_1c"].values():
        assert cells(row)[0] > row["heuristic"]["estimate"]
        assert cells(row)[1][0] > 0.06


@pytest.mark.parametrize(("part", "pair"), [("2a", ("max", "both")), ("2b", ("discriminator", "hybrid"))])
def test_figure_2_two_numbers_rise_as_much_if_nothing_leaks(part, pair):
    """W rises from one number in 100 cells to two in 10,000, and so does W by chance; in 100 cells it does not."""
    found = _run.read("figure_2")
    for key in [part] + ([f"{part}_wgan"] if f"{part}_wgan" in found else []):
        one, two = (found[key][name] for name in pair)
        assert cells(two, "10000")[0] > 2 * cells(one)[0]
        assert cells(two, "10000")[1][0] > 2 * cells(one)[1][1]
        assert cells(two)[0] < cells(one)[0] + 0.03
        assert two["audit"]["lower"] <= one["audit"]["upper"]


@pytest.mark.parametrize("model", ["mnist_wgan", "cifar10_wgan"])
def test_figure_3_heuristic_is_comparable_for_am_only(model):
    found = _run.read("figure_3")[model]
    assert found["am"]["heuristic"]["upper"] > found["am"]["audit"]["lower"] > 0.5
    assert found["accuracy"]["heuristic"]["upper"] < 0.9 == found["accuracy"]["audit"]["lower"]


def test_figure_4_boxes_are_exposed_by_the_design():
    found = _run.read("figure_4")
    assert found["paper"]["as_printed"]["box"] > found["paper"]["as_printed"]["plain"] + 0.5
    box, plain = (found["control"][group] for group in ("box", "plain"))
    assert box["audit"]["lower"] == 0.0 < plain["audit"]["lower"]
    low, high = cells(box)[1]
    assert low <= cells(box)[0] <= high


def test_figure_5_the_bound_is_far_above_what_is_measured():
    data = _run.read("figure_5")
    for name, row in data["measured"].items():
        if name != "inf":
            assert row["audit"]["lower"] == 0.0
            assert row["audit"]["upper"] < math.tanh(float(name) / 2.0) / 2.0
            assert (
                row["audit"]["upper"]
                < data["promised"]["dpsgd_replace"][data["promised"]["epsilon"].index(float(name))]
            )
    assert data["measured"]["inf"]["audit"]["lower"] > 0.1


def test_figure_6_printed_risks_exceed_the_bound_by_chance():
    two = _run.read("figure_6")["epsilon"]["2"]
    assert two["as_printed"][-1] == 1.0 > two["tanh_as_printed"]
    assert two["as_printed_null_mean"][-1] > two["tanh_as_printed"]
    assert max(two["audit"]["lower"]) == 0.0


def test_figure_7_no_trend_with_the_number_of_images():
    data = _run.read("figure_7")
    assert (data["sizes"][0], data["sizes"][-1]) == (10, 100_000)
    values = [row["value"] for row in data["plug_in_100_cells"]]
    assert abs(np.corrcoef(np.log(data["sizes"]), values)[0, 1]) < 0.8
    assert values[-1] < values[0] + 0.02
    assert all(row["lower"] == 0.0 for row in data["audit"])


def test_figure_8_hidden_layer_does_not_tell_more():
    data = _run.read("figure_8")
    hidden, output = data["white_box"], data["black_box"]
    assert cells(hidden, "10000")[0] > 3 * cells(output)[0]
    assert cells(hidden, "10000")[1][0] > 3 * cells(output)[1][1]
    assert cells(hidden)[0] < cells(output)[0]
    assert hidden["audit"]["lower"] <= output["audit"]["upper"]


def test_classifier_layers_are_those_printed():
    """E.3.3: a convolution of 512 filters with kernel 5 and stride 2, two numbers, one output."""
    torch = pytest.importorskip("torch")
    images = _data.Images(np.zeros((2, 3, 28, 28), dtype=np.float32), np.array([0, 1]))
    model = _classifier.train(images, 0, 0)
    conv, leaky, _, hidden, last = model.body
    assert (conv.in_channels, conv.out_channels, conv.kernel_size, conv.stride) == (3, 512, (5, 5), (2, 2))
    assert leaky.negative_slope == 0.2
    assert (hidden.in_features, hidden.out_features) == (512 * 14 * 14, 2)
    assert isinstance(last, torch.nn.ReLU)
    assert (model.head.in_features, model.head.out_features) == (2, 1)
    hidden_numbers, output = model.answers(images)
    assert output == pytest.approx(
        1.0 / (1.0 + np.exp(-hidden_numbers @ model.head.weight.detach().numpy()[0] - model.head.bias.item())), abs=1e-6
    )


# --- the paper's estimates --------------------------------------------------------------------------------------------


def test_plug_in_by_hand():
    cells, member = np.array([0, 0, 1, 0, 2, 2, 2]), np.array([True, True, True, False, False, False, False])
    assert _measure.plug_in(cells, member) == pytest.approx(0.5 * (abs(2 / 3 - 1 / 4) + 1 / 3 + 3 / 4))
    expected = abs(0.1 * 2 / 3 - 0.9 / 4) + 0.1 / 3 + 0.9 * 3 / 4
    assert _measure.plug_in(cells, member, 0.1) == pytest.approx(expected)
    risks = _measure.printed_risks(cells, member)
    assert risks == pytest.approx([(2 / 3 - 1 / 4) / (2 / 3 + 1 / 4)] * 2 + [1.0])


@pytest.mark.parametrize(("cells", "expected"), [(10, 0.07560763), (100, 0.24787979)])
def test_null_is_the_exact_mean_for_equal_laws(cells, expected):
    """E W_N of two uniform laws with N = 1000 in all, by enumeration (THEORY of the project, section n)."""
    rng = np.random.default_rng(0)
    found = [_measure.plug_in(rng.integers(cells, size=1000), np.arange(1000) < 500) for _ in range(400)]
    assert np.mean(found) == pytest.approx(expected, abs=4 * np.std(found) / 20)
    permuted = _measure.null(rng.integers(cells, size=1000), np.arange(1000) < 500, rng)
    assert permuted["mean"] == pytest.approx(expected, abs=0.01)
    assert permuted["range_95"][0] < expected < permuted["range_95"][1]


def test_printed_radius():
    assert _measure.printed_radius(500, 500) == pytest.approx(math.sqrt(2.0 / 1000 * math.log(2.0 / 0.05)))
    unequal = math.sqrt(2.0 * math.log(2.0 / 0.05) * (0.25 / 100 + 0.25 / 9900))
    assert _measure.printed_radius(100, 9900) == pytest.approx(unequal)


def test_cells_are_equal_bins():
    assert _measure.cells_of(np.array([0.0, 0.099, 0.101, 0.999, 1.0]), 10).tolist() == [0, 0, 1, 9, 9]
    assert len(np.unique(_measure.cells_of(np.random.default_rng(1).random((5000, 2)), 10))) == 100
    assert _measure.cells_of(np.zeros(3), 100).tolist() == [0, 0, 0]


def test_measure_finds_a_leak_and_no_leak():
    rng = np.random.default_rng(2)
    clear = _measure.measure(rng.normal(1.0, 1.0, 1000), rng.normal(0.0, 1.0, 2000), rng)
    truth = math.erf(0.5 / math.sqrt(2.0))
    assert clear["audit"]["lower"] <= truth <= clear["audit"]["upper"]
    assert clear["kernel"] == pytest.approx(truth, abs=0.05)
    assert clear["plug_in_by_cells"]["100"]["value"] > clear["plug_in_by_cells"]["100"]["null"]["range_95"][1]
    equal = _measure.measure(rng.normal(size=(500, 2)), rng.normal(size=(500, 2)), rng, bins=(10, 100))
    assert equal["audit"]["lower"] == 0.0
    assert equal["plug_in_by_cells"]["10000"]["value"] > 0.5


def test_algorithm_2_on_a_clear_case():
    rng = np.random.default_rng(3)
    inside, outside = rng.uniform(0.5, 1.5, 4000), rng.uniform(0.0, 1.0, 36_000)
    tpr, fpr = figure_3.algorithm_2(inside, outside, 0.5, rng)
    assert (tpr, fpr) == pytest.approx((0.5, 0.0), abs=0.03)
    tpr, fpr = figure_3.algorithm_2(inside, outside, 0.1, rng)
    assert figure_3.value("am", tpr, fpr) == pytest.approx(0.75, abs=0.02)


@pytest.mark.parametrize(
    ("members", "others", "dimensions", "draws"), [(40, 40, 1, 400), (30, 90, 1, 400), (7000, 7000, 2, 4)]
)
def test_chance_is_the_exact_mean_for_equal_laws(members, others, dimensions, draws):
    """E W of an even law over c cells is c/2·E|X/n₁ - Y/n₂| with binomial counts of one cell."""
    cells, counts = _measure.BINS**dimensions, np.arange(31)
    away = np.abs(counts[:, None] / members - counts / others)
    exact = cells / 2 * binom.pmf(counts, members, 1 / cells) @ away @ binom.pmf(counts, others, 1 / cells)
    found = chance.chance("even", members, others, dimensions, np.random.default_rng(7), draws=draws)
    assert found["mean"] == pytest.approx(exact, abs=0.01)


def test_chance_at_the_papers_size():
    """10,000 cells and two equal laws of 7,000 records each: far from an advantage of 0."""
    rng = np.random.default_rng(8)
    found = {law: chance.chance(law, 7000, 7000, 2, rng, draws=3)["mean"] for law in ("normal", "agreeing")}
    assert 0.1 < found["agreeing"] < found["normal"] < 0.45
    assert found["normal"] > 0.3


def test_the_riskiest_tenth():
    rng = np.random.default_rng(9)
    inside, outside = rng.normal(2.0, 1.0, 300), rng.normal(0.0, 1.0, 600)
    members, others = exclusion.riskiest(inside, outside)
    assert members.sum() == 30
    assert inside[members].mean() > inside[~members].mean() + 1.0
    assert others.mean() < 0.02


# --- recipes and long trainings ---------------------------------------------------------------------------------------


def test_recipes_of_the_paper_s_sizes():
    run = _run.Run(full=True)
    recipes = {name: _recipes.recipe_of(run, name) for name in _recipes.gans_of(run)}
    members = {"mnist": 7000, "cifar10": 6000, "skin": 1001, "skin64": 1001}
    assert (_measure.BINS, _measure.DELTA) == (100, 0.05)  # section 6.1, with a tenth of the images as members
    for recipe in recipes.values():
        assert recipe.members == members[recipe.images]
        assert recipe.layers in ("mnist", "cifar10", "skin")
        assert recipe.images.startswith("skin") or 9 * recipe.members == recipe.non_members
        assert list(recipe.epochs) == sorted(set(recipe.epochs))
    assert recipes["skin_jsgan"].epochs[-1] == 2000
    assert (recipes["skin_jsgan"].sizes[0], recipes["skin_jsgan"].sizes[-1]) == (10, 100_000)
    assert list(recipes)[:3] == ["mnist_wgan", "mnist_privgan", "cifar10_wgan"]
    assert _private.setting_of(run).layers == "mnist"


class Interrupted(_run.Run):
    """A run whose time is up as soon as the first checkpoint is there."""

    @property
    def time_is_up(self):
        return any(self.cache.glob("*.pt"))


@pytest.mark.parametrize("stops", [(10,), (5, 10)])
def test_a_training_stops_at_a_checkpoint_and_goes_on(tmp_path, monkeypatch, stops):
    pytest.importorskip("torch")
    whole = _models.answers_of(_run.Run("digits", None, tmp_path / "whole", quick=True), "skin_jsgan")
    recipe_of = _recipes.recipe_of
    monkeypatch.setattr(_models, "recipe_of", lambda run, name: replace(recipe_of(run, name), epochs=stops))
    run = Interrupted("digits", None, tmp_path / "parts", quick=True)
    with pytest.raises(_run.Unfinished, match="skin_jsgan: 5 of 10 epochs"):
        _models.answers_of(run, "skin_jsgan", 10)
    if len(stops) > 1:
        half = _models.answers_of(run, "skin_jsgan")
        assert run.notes["skin_jsgan"]["epochs"] == 5
        assert half.scores[0].tobytes() != whole.scores[0].tobytes()
    again = _models.answers_of(_run.Run("digits", None, tmp_path / "parts", quick=True), "skin_jsgan")
    assert again.scores[0].tobytes() == whole.scores[0].tobytes()
    assert again.distances[1].tobytes() == whole.distances[1].tobytes()


def test_distances_to_blocks_are_those_to_all(monkeypatch):
    rng, made = np.random.default_rng(10), np.random.default_rng(11).normal(size=(700, 4)).astype(np.float32)
    images = _data.Images(rng.normal(size=(20, 1, 2, 2)).astype(np.float32), np.zeros(20, dtype=np.int64))
    recipe = _recipes.Recipe("JSGAN", "digits", "small", 10, 10, (1,), 0, sizes=(10, 100, 300, 700))
    monkeypatch.setattr(_models, "RELEASED", 100)
    given = iter(np.split(made, range(100, 700, 100)))
    first, near = _models._release(lambda count, rng: next(given)[:count], _data.Split(images, images), recipe)
    assert first.tobytes() == made[:100].tobytes()
    for column, size in zip(near.T, recipe.sizes, strict=True):
        away = np.linalg.norm(images.flat[:, None].astype(float) - made[:size], axis=2).min(axis=1)
        assert column == pytest.approx(np.tile(away, 2), rel=1e-6)


def test_full_needs_the_images(capsys):
    for words, why in ((["--full", "--dataset", "digits"], "leave"), (["--figure", "epochs"], "with --full alone")):
        with pytest.raises(SystemExit):
            __main__.parse(words)
        assert why in capsys.readouterr().err
    names, run = __main__.parse(["--full", "--hours", "0", "--device", "cuda"])
    assert names == list(FULL)
    assert run.time_is_up
    assert run.device == "cuda"
    assert run.out == FULL_RESULTS


# --- differential privacy ---------------------------------------------------------------------------------------------


def test_noise_is_the_smallest_for_its_epsilon():
    noise = _private.noise_for(2.0, 0.1, 20)
    assert wi.DPSGD(noise, 0.1, 20).implies(wi.ApproxDP, delta=1e-5).epsilon <= 2.0
    assert wi.DPSGD(noise - 2e-3, 0.1, 20).implies(wi.ApproxDP, delta=1e-5).epsilon > 2.0
    assert _private.noise_for(5.0, 0.1, 20) < noise
    assert _private.noise_for(math.inf, 0.1, 20) == 0.0


@pytest.mark.parametrize("model", ["dpcgan_1", "dpcgan_2", "dpcgan_5", "dpcgan_10"])
def test_noise_of_the_models_by_another_accountant(model):
    from dp_accounting.pld import privacy_loss_distribution

    note = _run.read("figure_5")["made"]["training"][model]
    step = privacy_loss_distribution.from_gaussian_mechanism(
        note["noise_multiplier"], value_discretization_interval=1e-3, sampling_prob=note["sample_rate"]
    )
    epsilon = step.self_compose(note["steps"]).get_epsilon_for_delta(1e-5)
    assert epsilon == pytest.approx(float(model.removeprefix("dpcgan_")), rel=5e-3)


def test_promises_are_in_order():
    found = _run.read("figure_5")["promised"]
    for place, epsilon in enumerate(found["epsilon"]):
        assert found["as_printed"][place] == pytest.approx(math.tanh(epsilon / 2.0))
        exact = (math.expm1(epsilon) + 2e-5) / (math.exp(epsilon) + 1.0)
        assert found["epsilon_delta"][place] == pytest.approx(exact, rel=1e-9)
        assert found["dpsgd"][place] <= found["dpsgd_replace"][place] <= 1.0
        assert found["dpsgd"][place] <= found["epsilon_delta"][place]
    place = found["epsilon"].index(2.0)
    again = wi.DPSGD(found["noise_multiplier"][place], 0.1, 2000)
    assert again.advantage == pytest.approx(found["dpsgd"][place], rel=1e-6)
    assert set(_run.read("figure_5")["measured"]) == {f"{epsilon:g}" for epsilon in (*figure_5.EPSILONS, math.inf)}


# --- images -----------------------------------------------------------------------------------------------------------


def test_split_is_disjoint_and_random():
    images = _data.load("digits", None)
    images = _data.Images(images.pixels, np.arange(len(images)))
    split = _data.random_split(images, 400, 10_000, np.random.default_rng(4))
    assert (len(split.train), len(split.holdout)) == (400, 1397)
    assert not set(split.train.labels) & set(split.holdout.labels)
    assert -1.0 <= images.pixels.min() < images.pixels.max() <= 1.0


def test_imbalanced_set():
    images = _data.load("digits", None)
    found = _data.zeros_and_sixes(images, 100, 10, np.random.default_rng(5))
    assert np.bincount(found.labels).tolist() == [100, 10]
    zeros = {image.tobytes() for image in images.pixels[images.labels == 0]}
    assert all(image.tobytes() in zeros for image in found.pixels[:100])


def test_white_box_is_in_the_middle():
    blank = np.full((2, 3, 28, 28), -1.0, dtype=np.float32)
    marked = _data.with_white_box(blank)
    assert (marked[:, :, 9:19, 9:19] == 1.0).all()
    assert (marked == 1.0).sum() == 2 * 3 * 100
    assert (blank == -1.0).all()


def test_files_are_read(tmp_path):
    rng = np.random.default_rng(6)
    for place in _data.FILES.values():
        (tmp_path / place).parent.mkdir(exist_ok=True)
    np.savez(tmp_path / _data.FILES["mnist"], X=rng.integers(256, size=(5, 28, 28)).astype(np.uint8), y=np.arange(5))
    metadata = ["lesion_id,image_id,dx", "b,two,mel", "a,one,nv", "b,three,bcc"]
    (tmp_path / "ham10000" / "HAM10000_metadata.csv").write_text("\n".join(metadata), encoding="utf-8")
    np.savez(
        tmp_path / _data.FILES["skin"],
        X=rng.integers(256, size=(4, 28, 28, 3)).astype(np.uint8),
        dx=np.array(["mel", "nv", "nv", "bcc"]),
        lesion_id=np.array(["b", "a", "a", "c"]),
    )
    import io
    import zipfile

    with zipfile.ZipFile(tmp_path / _data.FILES["cifar10"], "w") as archive:
        for name in ("train/cat/0000.jpg", "test/airplane/0000.jpg"):
            page = io.BytesIO()
            Image.fromarray(np.full((32, 32, 3), 255, dtype=np.uint8)).save(page, "JPEG")
            archive.writestr(name, page.getvalue())
    with zipfile.ZipFile(tmp_path / _data.FILES["skin64"], "w") as archive:
        for name, grey in (("one", 0), ("two", 255), ("three", 0)):
            page = io.BytesIO()
            Image.fromarray(np.full((150, 200, 3), grey, dtype=np.uint8)).save(page, "JPEG")
            archive.writestr(f"{name}.jpg", page.getvalue())
    large = _data.load("skin64", tmp_path)
    assert large.pixels.shape == (2, 3, 64, 64)
    assert large.labels.tolist() == [0, 1]
    assert large.pixels[:, 0, 0, 0] == pytest.approx([-1.0, -1.0], abs=0.02)  # "three" is the first image of lesion b
    assert _data.load("mnist", tmp_path).pixels.shape == (5, 1, 28, 28)
    skin = _data.load("skin", tmp_path)
    assert skin.pixels.shape == (3, 3, 28, 28)
    assert skin.labels.tolist() == [0, 1, 1]
    cifar = _data.load("cifar10", tmp_path)
    assert cifar.labels.tolist() == [0, 1]
    assert cifar.pixels == pytest.approx(np.ones((2, 3, 32, 32)), abs=0.02)


@pytest.mark.parametrize("root", [None, Path("nowhere")])
def test_missing_files_are_named(root):
    with pytest.raises(_data.MissingData, match=r"mnist/mnist\.npz.*--data PATH or WHOSIN_DATA"):
        _data.load("mnist", root)


def test_command_line_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.delenv("WHOSIN_DATA", raising=False)
    with pytest.raises(SystemExit, match="--dataset digits needs no file"):
        __main__.main(["--figure", "6", "--cache", str(tmp_path), "--out", str(tmp_path)])


def test_quick_runs_do_not_touch_the_results(tmp_path):
    for words in (["--quick"], ["--dataset", "digits"]):
        assert __main__.parse([*words, "--cache", str(tmp_path)])[1].out != _run.RESULTS
    assert __main__.parse([])[1].out == _run.RESULTS
    assert __main__.parse([])[0] == list(NAMES)


# --- a run on digits --------------------------------------------------------------------------------------------------


def run_on_digits(figure, cache, out):
    """Make one figure in a quick run; return its numbers without the time that it took."""
    words = ["--figure", str(figure), "--dataset", "digits", "--quick", "--cache", str(cache), "--out", str(out)]
    __main__.main(words)
    assert (out / f"figure_{figure}.png").stat().st_size > 1000
    found = json.loads((out / f"figure_{figure}.json").read_text(encoding="utf-8"))
    assert found["made"].pop("cpu_seconds_without_training") >= 0
    assert found["made"]["command"].endswith("--dataset digits --quick --seed 2022")
    return found


@pytest.mark.parametrize("figure", [2, 6, 8])
def test_digits_end_to_end(figure, tmp_path):
    pytest.importorskip("torch")
    assert run_on_digits(figure, tmp_path, tmp_path / "results")["figure"] == str(figure)


def test_digits_again_from_the_cache(tmp_path):
    pytest.importorskip("torch")
    first, second = (run_on_digits(4, tmp_path, tmp_path / name) for name in ("one", "two"))
    assert first == second

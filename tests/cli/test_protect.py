"""``whosin protect``: what it writes, what it prints, and what it refuses."""

import json

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from whosin.cli.protect import protect

app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
app.command()(protect)
runner = CliRunner()

MATRIX = np.random.default_rng(0).standard_normal((40, 2))


@pytest.fixture
def records(tmp_path):
    path = tmp_path / "records.csv"
    rows = "\n".join(",".join(map(repr, row)) for row in MATRIX.tolist())
    path.write_text(f"age,income\n{rows}\n", encoding="utf-8")
    return path


def run(*arguments):
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert "Traceback" not in result.output
    return result


@pytest.mark.parametrize(("statistic", "shape"), [("mean", (2,)), ("sum", (2,)), ("median", (2,)), ("cov", (2, 2))])
def test_json_file(records, tmp_path, statistic, shape):
    out = tmp_path / "out.json"
    done = run(records, "--statistic", statistic, "--eta", 0.1, "--out", out, "--seed", 1)
    assert done.exit_code == 0, done.output
    text = " ".join(done.stdout.split())
    assert "60% of the time" in text
    assert "Not protected" in text
    assert "This assumes" in text
    written = json.loads(out.read_text(encoding="utf-8"))
    assert written["columns"] == ["age", "income"]
    assert np.shape(written["value"]) == shape
    assert written["certificate"]["bound"] <= 0.1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.json", "records.csv"]


def test_json_output(records, tmp_path):
    done = run(records, "--statistic", "median", "--eta", 0.2, "--out", tmp_path / "out.json", "--seed", 1, "--json")
    assert done.stdout.count("\n") == 1
    shown = json.loads(done.stdout)
    written = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert {name: shown[name] for name in written} == written
    assert shown["certificate"]["confidence_level"] == 0.95


def test_csv_and_numpy_files(records, tmp_path):
    common = (records, "--statistic", "mean", "--eta", 0.1, "--json", "--columns", "income", "--out")
    shown = json.loads(run(*common, tmp_path / "out.csv").stdout)
    assert (tmp_path / "out.csv").read_text(encoding="utf-8") == f"income\n{shown['value'][0]!r}\n"
    shown = json.loads(run(*common, tmp_path / "out.npy").stdout)
    assert np.load(tmp_path / "out.npy").tolist() == shown["value"]


def test_a_covariance_as_csv(records, tmp_path):
    out = tmp_path / "out.csv"
    run(records, "--statistic", "cov", "--eta", 0.1, "--out", out)
    assert out.read_text(encoding="utf-8").startswith("age,income\n")
    assert np.loadtxt(out, delimiter=",", skiprows=1).shape == (2, 2)


def test_the_seed_sets_the_scale_but_not_the_release(records, tmp_path):
    options = (records, "--statistic", "median", "--eta", 0.2, "--seed", 3, "--force", "--out", tmp_path / "o.json")
    one, two = (json.loads(run(*options, "--json").stdout) for _ in range(2))
    assert one["certificate"]["noise_scale"] == two["certificate"]["noise_scale"]
    assert one["value"] != two["value"]


def test_nothing_is_overwritten_without_force(records, tmp_path):
    out = tmp_path / "out.json"
    out.write_text("mine", encoding="utf-8")
    arguments = (records, "--statistic", "mean", "--eta", 0.1, "--out", out)
    refused = run(*arguments)
    assert refused.exit_code == 2
    assert "--force replaces it" in refused.stderr
    assert out.read_text(encoding="utf-8") == "mine"
    assert run(*arguments, "--force").exit_code == 0
    assert "certificate" in json.loads(out.read_text(encoding="utf-8"))


def test_a_failed_release_leaves_no_file(records, tmp_path):
    done = run(records, "--statistic", "median", "--eta", 0.01, "--subsets", 0, "--out", tmp_path / "out.json")
    assert done.exit_code == 2
    assert "cannot be certified" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["records.csv"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--eta", "0.6"], "--eta must be a number in (0, 0.5)"),
        (["--statistic", "mode"], "--statistic must be one of"),
        (["--noise", "uniform"], "--noise must be one of"),
        (["--columns", "height"], "has no column 'height'"),
        (["--out", "out.txt"], "--out must be a file with one of the endings"),
        (["--out", "nowhere/out.json"], "--out must be a file in a folder that exists"),
        (["--train-fraction", "0"], "--train-fraction must be"),
        (["--ball", "pilot"], "--ball goes with medians and the like, got mean"),
    ],
)
def test_bad_input(records, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    given = {"--statistic": "mean", "--eta": "0.1", "--out": "out.json"}
    given[options[0]] = options[1]
    done = run(records, *(part for pair in given.items() for part in pair))
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["records.csv"]


def test_no_such_file(tmp_path):
    done = run(tmp_path / "none.csv", "--statistic", "mean", "--eta", 0.1, "--out", tmp_path / "out.json")
    assert done.exit_code == 2
    assert "no such file" in done.stderr


def test_a_file_that_cannot_be_written(records, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("whosin.cli.protect._fill", full)
    done = run(records, "--statistic", "mean", "--eta", 0.1, "--out", tmp_path / "out.json")
    assert done.exit_code == 74
    assert done.stderr.startswith("Error: --out cannot be written")
    assert "No space left on device" in done.stderr
    assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["records.csv"]


def test_a_folder_that_takes_no_files(records, monkeypatch):
    def closed(*_, **__):
        raise PermissionError(13, "Permission denied")

    released = []
    monkeypatch.setattr("whosin.cli.protect.whole_file", closed)
    monkeypatch.setattr("whosin.protection.protect", lambda *_, **__: released.append(1))
    done = run(records, "--statistic", "mean", "--eta", 0.1, "--out", records.parent / "out.json")
    assert done.exit_code == 2
    assert "--out cannot be written" in done.stderr
    assert not released


def test_a_negative_seed(records, tmp_path):
    done = run(records, "--statistic", "median", "--eta", 0.1, "--seed", -1, "--out", tmp_path / "out.json")
    assert done.exit_code == 2
    assert "--seed" in done.stderr


@pytest.mark.parametrize(("split", "ratio"), [((), 1000.0), (("--split", "total"), 1000.0**0.5)])
def test_columns_in_different_units_get_noise_in_their_own(tmp_path, split, ratio):
    path = tmp_path / "units.csv"
    rows = "\n".join(f"{a!r},{1000 * a!r}" for a in MATRIX[:, 0].tolist())
    path.write_text(f"age,income\n{rows}\n", encoding="utf-8")
    done = run(path, "--statistic", "mean", "--eta", 0.1, "--out", tmp_path / "out.json", *split, "--json")
    small, large = json.loads(done.stdout)["certificate"]["noise_scale"]
    assert large / small == pytest.approx(ratio, rel=1e-6)


@pytest.mark.parametrize(("name", "written"), [("=1+1", "'=1+1"), ("@a,b", '"\'@a,b"'), ("plain", "plain")])
def test_headings_are_no_formulas(name, written):
    from whosin.cli.protect import _quoted

    assert _quoted(name) == written

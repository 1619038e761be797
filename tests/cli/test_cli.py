"""The command line: what it prints, what its JSON holds, and that mistakes end in one line and exit code 2."""

import json
import math
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import whosin as wi
from whosin.cli.app import app
from whosin.guarantees.base import in_words

INF = math.inf
runner = CliRunner()


def run(*arguments):
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert "Traceback" not in result.output
    return result


def as_json(*arguments):
    """Run with --json; the output must be one JSON object and nothing else."""
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("\n") == 1
    shown = json.loads(result.stdout, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert isinstance(shown, dict)
    return shown


def flat(text):
    return " ".join(text.split())


# --- explain ---------------------------------------------------------------------------------------------------------

GUARANTEES = [
    (["--epsilon", "8"], wi.PureDP(8.0)),
    (["--epsilon", "8", "--delta", "1e-5"], wi.ApproxDP(8.0, 1e-5)),
    (["--epsilon", "1", "--adjacency", "replace"], wi.PureDP(1.0, "replace")),
    (["--epsilon", "0"], wi.PureDP(0.0)),
    (["--epsilon", "inf"], wi.PureDP(INF)),
    (["--epsilon", "1000"], wi.PureDP(1000.0)),
    (["--mu", "0.5"], wi.GaussianDP(0.5)),
    (["--mu", "0.5", "--adjacency", "replace"], wi.GaussianDP(0.5, "replace")),
    (["--eta", "0.1"], wi.MIP(0.1)),
    (["--noise-multiplier", "1", "--sample-rate", "0.1", "--steps", "5"], wi.DPSGD(1.0, 0.1, 5)),
]
each_guarantee = pytest.mark.parametrize(("options", "guarantee"), GUARANTEES, ids=lambda x: str(x))


@each_guarantee
@pytest.mark.parametrize("prior", ["0.5", "0.01"])
def test_explain_json(options, guarantee, prior):
    shown = as_json("explain", *options, "--prior", prior)
    p = float(prior)
    assert shown["guarantee"] == str(guarantee)
    assert shown["accuracy"] == guarantee.accuracy(p)
    assert shown["advantage"] == guarantee.advantage
    world = {"world": "fixed_size"} if getattr(guarantee, "adjacency", "") == "replace" else {}
    assert shown["posterior"] == list(guarantee.posterior(p, **world))
    assert {"0.001", "0.01"} <= set(shown["tpr_at"])
    for fpr, tpr in shown["tpr_at"].items():
        assert tpr == guarantee.tpr_at(float(fpr))
    assert shown["assumes"] == list(guarantee.assumes)
    assert shown["explanation"] == guarantee.explain(p)
    assert shown["prior"] == p


def test_explain_json_writes_infinity_as_text():
    assert as_json("explain", "--epsilon", "inf")["parameters"]["epsilon"] == "inf"


@each_guarantee
def test_explain_starts_with_a_paragraph(options, guarantee):
    result = run("explain", *options, "--prior", "0.2")
    assert result.exit_code == 0
    assert result.stderr == ""
    text = flat(result.stdout)
    paragraph = flat(guarantee.explain(0.2))
    assert paragraph in text
    assert text.index(paragraph) < text.index("At most, against any attacker (prior 0.2)")
    for line in guarantee.assumes:
        assert flat(line) in text
    assert text.index("This assumes:") > text.index("At most")


def shown_number(text, label):
    return float(re.search(rf"{re.escape(label)}\s+([\d.e-]+)", text).group(1))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0, 5.3, 9.0])
def test_printed_limits_are_rounded_up(epsilon):
    text = run("explain", "--epsilon", epsilon, "--prior", "0.3").stdout
    guarantee = wi.PureDP(epsilon)
    for label, value in (
        ("accuracy", guarantee.accuracy(0.3)),
        ("advantage (TPR - FPR)", guarantee.advantage),
        ("members found at false positive rate 0.001", guarantee.tpr_at(0.001)),
        ("members found at false positive rate 0.0001", guarantee.tpr_at(0.0001)),
    ):
        assert value * (1 - 1e-11) <= shown_number(text, label) <= value * (1 + (2e-5 if value > 0.99 else 1e-2))
    low, high = re.search(r"after the output\s+([\d.e-]+) to\s+([\d.e-]+)", text).groups()
    exact = guarantee.posterior(0.3)
    assert float(low) <= exact[0] * (1 + 1e-11)
    assert float(high) >= exact[1] * (1 - 1e-11)


# --- calibrate -------------------------------------------------------------------------------------------------------

TARGETS = [
    (["--accuracy", "0.6"], lambda: wi.calibrate.epsilon(accuracy=0.6), {"accuracy": 0.6}),
    (
        ["--accuracy", "0.6", "--delta", "1e-5"],
        lambda: wi.calibrate.epsilon(accuracy=0.6, delta=1e-5),
        {"accuracy": 0.6},
    ),
    (["--advantage", "0.1"], lambda: wi.calibrate.epsilon(advantage=0.1), {"advantage": 0.1}),
    (
        ["--posterior", "0.05", "--prior", "0.01"],
        lambda: wi.calibrate.epsilon(posterior=0.05, prior=0.01),
        {"posterior": 0.05},
    ),
    (["--tpr", "0.1", "--fpr", "0.01"], lambda: wi.calibrate.epsilon(tpr_at=(0.1, 0.01)), {"tpr_at": [0.1, 0.01]}),
    (["--accuracy", "1"], lambda: wi.calibrate.epsilon(accuracy=1.0), {"accuracy": 1.0}),
    (["--accuracy", "0.6", "--mip"], lambda: wi.calibrate.mip(accuracy=0.6), {"accuracy": 0.6}),
    (["--advantage", "0.1", "--zcdp"], lambda: wi.calibrate.zcdp(advantage=0.1), {"advantage": 0.1}),
    (
        ["--accuracy", "0.7", "--prior", "0.6", "--rdp-order", "8"],
        lambda: wi.calibrate.rdp(8.0, accuracy=0.7, prior=0.6),
        {"accuracy": 0.7},
    ),
    (
        ["--advantage", "0.1", "--sample-rate", "0.05", "--steps", "20"],
        lambda: wi.calibrate.dpsgd(0.05, 20, advantage=0.1),
        {"advantage": 0.1},
    ),
]


@pytest.mark.parametrize(("options", "expected", "target"), TARGETS, ids=[" ".join(t[0]) for t in TARGETS])
def test_calibrate(options, expected, target):
    guarantee = expected()
    shown = as_json("calibrate", *options)
    assert shown["target"] == target
    assert shown["guarantee"] == str(guarantee)
    parameters = {k: (INF if v == "inf" else v) for k, v in shown["parameters"].items()}
    own = {k: getattr(guarantee, k) for k in parameters}
    assert parameters == {k: list(v) if isinstance(v, tuple) else v for k, v in own.items()}
    assert {"accuracy", "advantage", "posterior", "tpr_at", "assumes", "prior"} <= set(shown)
    name, limit = next(iter(target.items()))
    if name in ("accuracy", "advantage"):
        assert shown[name] <= limit
    text = run("calibrate", *options).stdout
    head = flat(text).split(" keeps ")[0]
    assert head == in_words(guarantee, keeps=True)
    assert not re.search(r"\d{5}", head)
    ((name, value),) = ((k, v) for k, v in guarantee.parameters().items() if re.match("eps|rho|eta|noise", k))
    printed = float(re.search(r"(?:ε|ρ|η|noise multiplier) = ([\d.]+|inf)", head)[1])
    exact = float(value[0] if isinstance(value, list) else value)
    kept = printed >= exact * (1 - 1e-12) if name == "noise_multiplier" else printed <= exact * (1 + 1e-12)
    assert kept
    assert printed == exact or abs(printed / exact - 1) < 0.01
    assert flat(guarantee.explain(shown["prior"])) in flat(text)


def test_calibrate_the_share_to_keep():
    rate = wi.calibrate.sampling_rate(1.0, posterior=0.6)
    assert as_json("calibrate", "--posterior", "0.6", "--epsilon", "1") == {
        "target": {"posterior": 0.6},
        "epsilon": 1.0,
        "sampling_rate": rate,
    }


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0, 2.0, 3.0, 4.5])
@pytest.mark.parametrize("posterior", [0.6, 0.05])
def test_the_printed_share_is_safe_to_copy(epsilon, posterior):
    rate = wi.calibrate.sampling_rate(epsilon, posterior=posterior)
    text = run("calibrate", "--posterior", posterior, "--epsilon", epsilon).stdout
    printed = float(re.search(r"probability ([\d.e-]+) before", flat(text)).group(1))
    assert printed == pytest.approx(rate, rel=1e-6)
    assert printed <= rate * (1 + 1e-12)


@pytest.mark.parametrize(
    ("options", "parameter", "keeps"),
    [
        (["--accuracy", "0.6"], "ε", lambda v: wi.PureDP(v).accuracy() <= 0.6),
        (["--advantage", "0.3"], "ε", lambda v: wi.PureDP(v).advantage <= 0.3),
        (["--tpr", "0.1", "--fpr", "0.01"], "ε", lambda v: wi.PureDP(v).tpr_at(0.01) <= 0.1),
        (["--posterior", "0.8"], "ε", lambda v: wi.PureDP(v).posterior(0.5)[1] <= 0.8),
        (["--accuracy", "0.6123456789", "--mip"], "η", lambda v: wi.MIP(v).accuracy() <= 0.6123456789),
        (
            ["--advantage", "0.1", "--sample-rate", "0.05", "--steps", "20"],
            "noise multiplier",
            lambda v: wi.DPSGD(v, 0.05, 20).advantage <= 0.1,
        ),
        (
            ["--advantage", "0.2", "--sample-rate", "0.05", "--steps", "20"],
            "noise multiplier",
            lambda v: wi.DPSGD(v, 0.05, 20).advantage <= 0.2,
        ),
    ],
    ids=lambda x: " ".join(x) if isinstance(x, list) else "",
)
def test_the_printed_parameter_is_safe_to_copy(options, parameter, keeps):
    text = flat(run("calibrate", *options).stdout)
    assert keeps(float(re.search(rf"{parameter} = ([\d.e-]+)", text).group(1)))


# --- bounds, demo, help ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [["--epsilon", "1"], ["--epsilon", "2", "--delta", "1e-5", "--prior", "0.1"], ["--epsilon", "inf"]]
)
def test_bounds(options):
    shown = as_json("bounds", *options)
    table = wi.bounds.table(*(float(x) for x in options[1::2]))
    assert shown == json.loads(json.dumps(table.to_dict()))
    result = run("bounds", *options)
    assert result.exit_code == 0
    for row in table:
        assert row.name.split()[0] in result.stdout
    assert "*" in result.stdout


def test_demo_runs():
    result = run("demo")
    assert result.exit_code == 0
    text = flat(result.stdout)
    assert "0.731059" in text
    assert "It is attained: the bound is tight" in text
    noise = float(re.search(r"raise the noise multiplier to ([\d.]+):", text).group(1))
    assert noise > 0.8
    assert "Leak found" in text
    assert "no leak was found does not show that there is none" in text
    advantage = float(re.search(r"advantage at most ([\d.]+) instead", text).group(1))
    assert 0.0495 < advantage <= 0.05


def test_help_names_the_commands():
    result = run("--help")
    assert result.exit_code == 0
    for command in ("explain", "calibrate", "bounds", "demo"):
        assert re.search(rf"^\W*{command}  +[A-Z]", result.stdout, re.M), command
        assert ("--json" in run(command, "--help").stdout) == (command != "demo")


# --- mistakes --------------------------------------------------------------------------------------------------------

MISTAKES = [
    # explain
    (["explain"], "--epsilon"),
    (["explain", "--epsilon", "-1"], "epsilon", "-1"),
    (["explain", "--epsilon", "nan"], "epsilon", "nan"),
    (["explain", "--epsilon", "eight"], "--epsilon must be a number, got 'eight'"),
    (["explain", "--epsilon"], "--epsilon"),
    (["explain", "--epsilon", "1", "--delta", "2"], "delta", "2"),
    (["explain", "--epsilon", "1", "--delta", "-0.1"], "delta", "-0.1"),
    (["explain", "--epsilon", "1", "--delta", "nan"], "delta", "nan"),
    (["explain", "--epsilon", "1", "--prior", "0"], "prior", "0"),
    (["explain", "--epsilon", "1", "--prior", "1"], "prior", "1"),
    (["explain", "--epsilon", "1", "--prior", "1.5"], "prior", "1.5"),
    (["explain", "--epsilon", "1", "--adjacency", "swap"], "adjacency", "swap"),
    (["explain", "--epsilon", "1", "--mu", "1"], "one guarantee"),
    (["explain", "--mu", "-1"], "mu", "-1"),
    (["explain", "--eta", "0.6"], "eta", "0.6"),
    (["explain", "--noise-multiplier", "1"], "--sample-rate", "--steps"),
    (["explain", "--steps", "5", "--sample-rate", "0.1"], "--noise-multiplier"),
    (["explain", "--noise-multiplier", "1", "--sample-rate", "2", "--steps", "5"], "--sample-rate", "2"),
    (["explain", "--noise-multiplier", "1", "--sample-rate", "0.1", "--steps", "-5"], "steps", "-5"),
    (
        ["explain", "--noise-multiplier", "1", "--sample-rate", "0.1", "--steps", "1.5"],
        "--steps must be a whole number, got '1.5'",
    ),
    (["explain", "--noise-multiplier", "1", "--sample-rate", "0.1", "--steps", "99999999999999999999"], "steps"),
    # an option that would be ignored
    (["explain", "--eta", "0.1", "--delta", "0.01"], "--delta"),
    (["explain", "--mu", "1", "--delta", "0.01"], "--delta"),
    (["explain", "--eta", "0.1", "--adjacency", "replace"], "--adjacency"),
    # calibrate
    (["calibrate"], "exactly one target"),
    (["calibrate", "--accuracy", "0.4"], "accuracy", "0.4", "cannot be reached"),
    (["calibrate", "--accuracy", "1.4"], "accuracy", "1.4"),
    (["calibrate", "--accuracy", "nan"], "accuracy", "nan"),
    (["calibrate", "--accuracy", "0.6", "--advantage", "0.1"], "exactly one target", "got --accuracy, --advantage"),
    (["calibrate", "--tpr", "0.1"], "--fpr"),
    (["calibrate", "--fpr", "0.1"], "--tpr"),
    (["calibrate", "--accuracy", "0.6", "--steps", "10"], "--sample-rate"),
    (["calibrate", "--accuracy", "0.6", "--sample-rate", "0.1"], "--steps"),
    (["calibrate", "--accuracy", "0.6", "--prior", "0"], "prior", "0"),
    (["calibrate", "--accuracy", "0.6", "--delta", "0.9"], "cannot be reached"),
    (["calibrate", "--posterior", "0.6", "--delta", "1e-5"], "posterior", "1e-05"),
    (["calibrate", "--accuracy", "0.6", "--epsilon", "1"], "--epsilon", "--posterior"),
    (["calibrate", "--posterior", "0.6", "--epsilon", "-1"], "epsilon", "-1"),
    (["calibrate", "--posterior", "0.6", "--mip"], "posterior"),
    (["calibrate", "--posterior", "0.6", "--sample-rate", "0.1", "--steps", "5"], "posterior"),
    (["calibrate", "--advantage", "0", "--sample-rate", "0.1", "--steps", "5"], "cannot be reached"),
    # an option that would be ignored
    (["calibrate", "--accuracy", "0.6", "--mip", "--delta", "0.01"], "--delta"),
    (["calibrate", "--advantage", "0.1", "--sample-rate", "0.1", "--steps", "5", "--delta", "0.01"], "--delta"),
    (["calibrate", "--accuracy", "0.6", "--mip", "--prior", "0.1"], "--prior"),
    # errors name options, never the arguments of Python
    (["explain", "--zcdp", "-1"], "--zcdp must be", "-1"),
    (["explain", "--practical-epsilon", "-1"], "--practical-epsilon must be", "-1"),
    (["calibrate", "--tpr", "0.1", "--fpr", "0.5"], "--tpr (0.1, 0.5) cannot be reached"),
    (["calibrate", "--tpr", "0.1", "--fpr", "2"], "--fpr must be", "2.0"),
    (["calibrate", "--tpr", "2", "--fpr", "0.1"], "--tpr must be", "2.0"),
    (["calibrate", "--advantage", "0.1", "--rdp-order", "1"], "--rdp-order must be", "1.0"),
    (["serve", "--max-rows", "0", "--no-open"], "--max-rows must be", "0"),
    (["ledger", "retract", "one", "--note", "x"], "NUMBER must be a whole number, got 'one'"),
    (["audit", "--trainings", "3"], "--trainings must be at least 10, got '3'"),
    (["--workers", "many", "explain", "--epsilon", "1"], "--workers must be a whole number, got 'many'"),
    (["ledger", "add", "--name", "x"], "give --data, --fingerprint or --dataset"),
    (["ledger", "add", "--name", "x", "--fingerprint", "zz"], "--fingerprint must be", "zz"),
    (["ledger", "check", "--budget-epsilon", "-1"], "--budget-epsilon must be", "-1"),
    # bounds, and no such thing
    (["bounds"], "--epsilon"),
    (["bounds", "--epsilon", "-1"], "epsilon", "-1"),
    (["bounds", "--epsilon", "1", "--delta", "7"], "delta", "7"),
    (["bounds", "--epsilon", "1", "--prior", "2"], "prior", "2"),
    (["expalin", "--epsilon", "1"], "expalin"),
    (["explain", "--epsilom", "1"], "--epsilom"),
    (["explain", "8"], "8"),
]


@pytest.mark.parametrize(("arguments", "fragments"), [pytest.param(m[0], m[1:], id=" ".join(m[0])) for m in MISTAKES])
def test_mistakes(arguments, fragments):
    for options in (arguments, [*arguments, "--json"]):
        result = run(*options)
        assert result.exit_code == 2
        assert result.stdout == ""
        for fragment in fragments:
            assert fragment in result.stderr
        assert "unexpected keyword" not in result.stderr


# --- as a program ----------------------------------------------------------------------------------------------------


def program(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "whosin", *arguments], capture_output=True, text=True, encoding="utf-8", timeout=120
    )


def test_program_prints_one_json_object():
    done = program("explain", "--epsilon", "8", "--delta", "1e-5", "--prior", "0.01", "--json")
    assert done.returncode == 0
    assert done.stderr == ""
    shown = json.loads(done.stdout)
    assert shown["accuracy"] == wi.ApproxDP(8.0, 1e-5).accuracy(0.01)


def test_program_fails_with_one_line():
    done = program("calibrate", "--accuracy", "0.4")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("Error: --accuracy 0.4 cannot be reached")
    assert done.stderr.count("\n") == 1


def test_program_without_arguments_shows_help():
    done = program()
    assert done.returncode in (0, 2)
    assert "explain" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_program_output_survives_a_plain_terminal():
    """No colour codes when the output is not a terminal."""
    done = program("explain", "--epsilon", "1")
    assert done.returncode == 0
    assert "\x1b[" not in done.stdout
    assert done.stderr == ""


def test_version():
    from importlib.metadata import version

    result = run("--version")
    assert (result.exit_code, result.stdout.strip()) == (0, version("whosin"))

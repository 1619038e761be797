"""``whosin ledger``: what it records, prints and refuses."""

import json
import math

import pytest
from typer.testing import CliRunner

import whosin as wi
from whosin.cli.ledger import app
from whosin.ledger import Ledger
from whosin.tables import read_table

pytest.importorskip("sqlalchemy")

runner = CliRunner()


@pytest.fixture
def place(tmp_path, monkeypatch):
    path = tmp_path / "ledger.db"
    monkeypatch.setenv("WHOSIN_LEDGER", str(path))
    return path


@pytest.fixture
def records(tmp_path):
    path = tmp_path / "records.csv"
    path.write_text("age,city\n30,Rome\n40,Oslo\n50,Köln\n", encoding="utf-8")
    return path


def run(*arguments, code=0):
    done = runner.invoke(app, [str(argument) for argument in arguments])
    assert done.exit_code == code, done.output
    assert "Traceback" not in done.output
    assert "safe" not in done.output.lower()
    return done


@pytest.mark.parametrize(
    ("options", "guarantee"),
    [
        (["--epsilon", 0.3], wi.PureDP(0.3)),
        (["--epsilon", 0.3, "--delta", 1e-6, "--adjacency", "replace"], wi.ApproxDP(0.3, 1e-6, "replace")),
        (["--epsilon", "inf"], wi.PureDP(math.inf)),
        (["--mu", 0.5], wi.GaussianDP(0.5)),
        (["--eta", 0.1], wi.MIP(0.1)),
        (["--practical-epsilon", 0.1, "--delta", 1e-3], wi.PMP(0.1, 1e-3)),
        (["--noise-multiplier", 1.1, "--sample-rate", 0.01, "--steps", 100], wi.DPSGD(1.1, 0.01, 100)),
        ([], None),
    ],
)
def test_add(place, records, options, guarantee):
    done = run("add", "--name", "a table", "--data", records, *options, "--by", "Zoë", "--json")
    assert done.stdout.count("\n") == 1
    shown = json.loads(done.stdout)
    (entry,) = Ledger(place).entries()
    assert entry.guarantee == guarantee
    assert entry.fingerprint == read_table(records).fingerprint()
    assert shown == {"ledger": str(place), "entry": entry.to_dict()}
    assert "a table" in run("list").stdout


def test_certificate_and_audit(place, tmp_path):
    made = wi.protect("mean", [[1.0], [2.0], [3.0], [5.0]], eta=0.2, rng=0)
    (tmp_path / "out.json").write_text(json.dumps(made.to_dict()), encoding="utf-8")
    audit = {"advantage": {"estimate": 0.1, "lower": 0.0, "upper": 0.4, "confidence_level": 0.95}, "query": "rows"}
    (tmp_path / "audit.json").write_text(json.dumps(audit), encoding="utf-8")
    run(
        "add",
        "--name",
        "m",
        "--dataset",
        "d",
        "--certificate",
        tmp_path / "out.json",
        "--audit-json",
        tmp_path / "audit.json",
    )
    (entry,) = Ledger(place).entries()
    assert entry.guarantee == wi.MIP(0.2)
    assert entry.audit == audit
    for name, content in (("none.json", None), ("bad.json", "{"), ("list.json", "[]"), ("empty.json", "{}")):
        if content is not None:
            (tmp_path / name).write_text(content, encoding="utf-8")
        for option in ("--certificate", "--audit-json"):
            done = run("add", "--name", "m", "--dataset", "d", option, tmp_path / name, code=2)
            assert done.stdout == ""
            assert done.stderr.startswith("Error: ")


def test_list_in_pages(place):
    for number in range(5):
        run("add", "--name", f"release {number}", "--dataset", "people")
    shown = json.loads(run("list", "--after", 1, "--limit", 2, "--json").stdout)
    assert [entry["number"] for entry in shown["entries"]] == [2, 3]
    assert (shown["count"], shown["more"]) == (5, True)
    assert "5 entries in all; go on with --after 3." in run("list", "--after", 1, "--limit", 2).stdout
    assert "No entries after 9; there are 5." in run("list", "--after", 9).stdout


def test_check(place, records):
    run("add", "--name", "one", "--data", records, "--epsilon", 0.5)
    run("add", "--name", "two", "--data", records, "--epsilon", 0.25)
    run("add", "--name", "three", "--dataset", "others", "--eta", 0.1)
    text = " ".join(run("check", "--data", records).stdout.split())
    assert "ε is at most 0.75 at δ = 0" in text
    assert "This assumes" in text
    (total,) = json.loads(run("check", "--data", records, "--json").stdout)["totals"]
    assert (total["epsilon"], total["bounded"], total["beyond_budget"]) == (0.75, True, [])
    fingerprint = total["fingerprints"][0]
    assert (
        json.loads(run("check", "--fingerprint", fingerprint, "--delta", 1e-3, "--json").stdout)["totals"][0]["delta"]
        == 1e-3
    )
    assert len(json.loads(run("check", "--json").stdout)["totals"]) == 2
    run("add", "--name", "four", "--dataset", "others", "--eta", 0.1)
    text = " ".join(run("check", "--dataset", "others").stdout.split())
    assert "do not compose" in text
    assert "Nothing limits what all of them reveal together" in text
    run("same-people", "--data", records, "--dataset", "others")
    assert len(json.loads(run("check", "--json").stdout)["totals"]) == 1


def test_markup_in_names_is_plain_text(place):
    run("add", "--name", "[bold]x[/bold]", "--dataset", "[red]people[/nothing]")
    assert "[bold]x[/bold]" in run("list").stdout
    assert "[red]people[/nothing]" in run("check").stdout


def test_budgets(place, records):
    run("add", "--name", "one", "--data", records, "--epsilon", 0.5, "--budget-epsilon", 1)
    done = run("add", "--name", "two", "--data", records, "--epsilon", 0.6, "--budget-epsilon", 1, code=3)
    assert done.stdout == ""
    assert "Not recorded: beyond the budget: the ε of the total is 1.1, and the budget is 1" in done.stderr
    run("add", "--name", "two", "--data", records, "--budget-advantage", 0.9, code=3)
    assert len(Ledger(place)) == 1
    run("check", "--data", records, "--budget-epsilon", 1, "--budget-advantage", 0.3)
    done = run("check", "--data", records, "--budget-epsilon", 0.4, "--json", code=3)
    assert json.loads(done.stdout)["totals"][0]["beyond_budget"]
    assert "Beyond the budget" in done.stderr


def test_verify_and_retract(place):
    run("add", "--name", "one", "--dataset", "people", "--epsilon", 1)
    shown = json.loads(run("verify", "--json").stdout)
    assert (shown["intact"], shown["entries"]) == (True, 1)
    run("retract", 1, "--note", "taken down", "--void-guarantee")
    assert "withdrawn" in run("check").stdout
    assert "the chain holds" in run("verify", "--head", shown["head"]).stdout
    assert "taken away" in run("verify", "--head", "0" * 64, code=1).stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["list"], "there is no ledger at"),
        (["verify"], "there is no ledger at"),
        (["check"], "there is no ledger at"),
        (["add", "--name", "x"], "give --data, --fingerprint or --dataset"),
        (["add", "--name", " ", "--dataset", "d"], "--name must be"),
        (["add", "--name", "x", "--dataset", "d", "--epsilon", 1, "--mu", 1], "one guarantee at most"),
        (["add", "--name", "x", "--dataset", "d", "--epsilon", "nan"], "--epsilon must be"),
        (["add", "--name", "x", "--dataset", "d", "--epsilon", -1], "--epsilon must be"),
        (["add", "--name", "x", "--dataset", "d", "--delta", 0.1], "--delta goes with"),
        (["add", "--name", "x", "--dataset", "d", "--eta", 0.1, "--adjacency", "replace"], "--adjacency goes with"),
        (["add", "--name", "x", "--dataset", "d", "--steps", 3], "a DP-SGD run needs"),
        (["add", "--name", "x", "--dataset", "d", "--budget-delta", 0.1], "--budget-delta goes with"),
        (["add", "--name", "x", "--data", "none.csv"], "no such file"),
        (["add", "--name", "x", "--data", "a.csv", "--fingerprint", "b"], "not both"),
        (["add", "--name", "x", "--fingerprint", "b"], "64 hexadecimal"),
        (["check", "--fingerprint", "xyz"], "64 hexadecimal"),
        (["check", "--delta", 0.1, "--budget-delta", 0.1, "--budget-epsilon", 1], "--delta goes without"),
        (["same-people", "--dataset", "d"], "give --data or --fingerprint"),
        (["retract", 0, "--note", "x"], "NUMBER must be"),
        (["list", "--limit", 0], "--limit must be"),
        (["list", "--ledger", "postgresql://u:s3cret@localhost:1/db"], "u:***@localhost:1/db cannot be reached"),
        (["list", "--ledger", "mysql://u:s3cret@localhost:1/db"], "sqlite:// or postgresql://"),
    ],
)
def test_errors(place, arguments, words):
    done = run(*arguments, code=2)
    assert done.stdout == ""
    assert done.stderr.startswith("Error: ")
    assert words in done.stderr
    assert "s3cret" not in done.stderr

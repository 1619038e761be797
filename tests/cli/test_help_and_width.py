"""Every command shows how it is used, and what is printed fits narrow and wide terminals."""

import re
import shlex

import numpy as np
import pytest
import typer.main
from rich.cells import cell_len
from typer.testing import CliRunner

import whosin as wi
from whosin.cli import render
from whosin.cli.app import EXAMPLES, app
from whosin.cli.forms import forms
from whosin.cli.show_audit import show


def commands(group, before=""):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


COMMANDS = dict(commands(typer.main.get_command(app)))


def test_every_command_has_an_example_whose_options_it_takes():
    assert set(EXAMPLES) == set(COMMANDS)
    for name, lines in EXAMPLES.items():
        known = {
            option for parameter in COMMANDS[name].params for option in (*parameter.opts, *parameter.secondary_opts)
        }
        shown = CliRunner().invoke(app, [*name.split(), "--help"]).stdout
        for line in lines:
            words = shlex.split(line)
            assert words[: 1 + len(name.split())] == ["whosin", *name.split()]
            assert {word for word in words if word.startswith("--")} <= known
            assert line in shown


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files that the examples speak of."""
    folder, rng = tmp_path_factory.mktemp("examples"), np.random.default_rng(0)
    for name in ("train", "holdout", "release", "synthetic", "records", "may", "people", "grid"):
        rows = rng.integers(18, 80, (9 if name == "grid" else 40, 2))
        np.savetxt(folder / f"{name}.csv", rows, "%d", ";" if name == "people" else ",", header="age,size", comments="")
    (folder / "survey.csv").write_text("smoker\n" + "no\n" * 9 + "yes\n")
    scores = np.column_stack([np.repeat([1, 0], 40), rng.normal(size=80)])
    np.savetxt(folder / "scores.csv", scores, delimiter=",", header="member,score", comments="")
    return folder


LINES = [line for name, lines in EXAMPLES.items() if name not in ("serve", "demo") for line in lines]


@pytest.mark.parametrize("width", [60, 200])
@pytest.mark.parametrize("line", [line for line in LINES if not line.endswith(".pdf")])
def test_every_example_runs_and_no_table_is_cut(line, width, folder, monkeypatch):
    monkeypatch.chdir(folder)
    given = {"COLUMNS": str(width), "WHOSIN_LEDGER": f"ledger-{width}.db"}
    if line.startswith("whosin ledger"):
        pytest.importorskip("sqlalchemy")
        first = "ledger add --name counts --dataset patients --epsilon 0.1"
        assert CliRunner(env=given).invoke(app, first.split()).exit_code == 0
    words = [*shlex.split(line)[1:], *(["--force"] if "--out" in line else [])]
    said = CliRunner(env=given).invoke(app, words)
    assert said.exit_code == 0, said.output
    if not line.startswith(("whosin ledger", "whosin look")) and "--json" not in line:
        assert "…" not in said.stdout
        assert max(map(cell_len, said.stdout.splitlines())) <= width  # ε̃ is two characters in one cell


def test_no_summary_of_a_command_is_cut():
    for words in ([], ["population"], ["ledger"]):
        for width in ("60", "200"):
            said = CliRunner(env={"COLUMNS": width}).invoke(app, [*words, "--help"]).stdout
            assert not re.search(r"…|\.\.\.(?! \[| ?$)", said.partition("Commands:")[2])


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(3)
    labels = rng.choice(["north", "south"], 200), rng.choice(["north", "south"], 200)
    return wi.audit(rng.normal(2, 1, 200), rng.normal(0, 1, 200), groups=labels, tolerate=0.1, rng=0)


@pytest.mark.parametrize("width", [60, 200])
def test_the_verdict_comes_first_and_lines_fit(found, width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", str(width))
    show(found, promised=wi.PureDP(1.0), verbose=True)
    text = capsys.readouterr().out
    assert text.startswith("Leak found, above the tolerated 0.1: ")
    assert max(map(len, text.splitlines())) <= width
    assert "\x1b" not in text
    to_do = text.partition("What to do now\n")[2].partition("\n\n")[0].splitlines()
    assert all(re.match(r"  \d\. \S|     \S", line) and line == line.rstrip() for line in to_do)
    for words in ("What to do now", "This assumes", "Method:", "ε = 1 (one person added or removed)", "hold together"):
        assert words in " ".join(text.split())


def test_numbers_have_three_digits(found, capsys):
    show(found)
    text = capsys.readouterr().out
    assert "This assumes" not in text
    assert "--verbose prints them" in text
    shown = re.findall(r"\b0\.0*([1-9]\d*)", text)
    assert len(shown) > 10
    assert max(map(len, shown)) <= 3


def test_colour_is_for_terminals(found, monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    show(found)
    assert re.match(r"\x1b\[1;31mLeak found", capsys.readouterr().out)


def test_forms_of_the_page_name_no_file_of_the_server():
    """Whatever a command takes as a path is an upload on the page, or is not there."""
    paths = {"certificate", "audit-json", "journal", "out", "ledger", "report"}
    for tool in forms(app).values():
        for command in tool.commands:
            assert not paths & {field.name for field in command.fields}
            kinds = {field.name: field.kind for field in command.fields}
            assert kinds.get("epsilon", "number") == "number"
            assert {kinds.get(name, "file") for name in ("records", "data", "candidates")} == {"file"}


@pytest.mark.parametrize(("value", "up", "down"), [(0.567237, "0.568", "0.567"), (0.999665, "0.999665", "0.999665"),
                                                   (0.00033001, "0.000331", "0.00033"), (1.0, "1", "1")])  # fmt: skip
def test_limits_of_promises_have_three_digits_and_more_next_to_one(value, up, down):
    assert (render.number(value), render.number(value, upper=False)) == (up, down)


@pytest.mark.parametrize(("terminal", "json", "said"), [(True, False, 0), (False, False, 1), (True, True, 1)])
def test_a_terminal_says_the_reason_once(found, monkeypatch, capsys, terminal, json, said):
    from whosin.cli.audit import _end

    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal, raising=False)
    with pytest.raises(typer.Exit):
        _end(found.verdict, strict=False, printed=not json)
    assert capsys.readouterr().err.count("Leak found") == said

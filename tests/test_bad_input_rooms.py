"""Bad input in every room: each row of the second table in docs/guide/bad-input.md is run here."""

import math
import os
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import whosin as wi
from whosin.cli.app import app
from whosin.errors import InputError, InputTypeError
from whosin.ledger import Ledger, LedgerError
from whosin.tables import as_table, match_tables, read_table

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "bad-input.md"
RECORDS = np.random.default_rng(0).normal(size=(50, 2))
ERRORS = {"InputError": InputError, "InputTypeError": InputTypeError, "LedgerError": LedgerError}


def file(name, data):
    Path(name).write_bytes(data)
    return name


def spoiled(value):
    records = RECORDS.copy()
    records[0, 0] = value
    return records


def protect(records, eta=0.1):
    return wi.protect("mean", records, eta=eta, rng=0)


def population(records=RECORDS, **options):
    return wi.population.gaussian(records, **{"epsilon": 1.0, "delta": 1e-5, "clip": 1.0, **options})


def half_a_parquet():
    pl.DataFrame({"a": [1.0, 2.0]}).write_parquet("whole.parquet")
    whole = Path("whole.parquet").read_bytes()
    return read_table(file("half.parquet", whole[: len(whole) // 2]))


def objects():
    np.save("objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    return read_table("objects.npy")


def command(*arguments):
    done = CliRunner().invoke(app, list(arguments))
    assert "Traceback" not in done.output
    return done.exit_code


def unreadable():
    Path(file("secret.csv", b"member,score\n1,2\n")).chmod(0)
    if os.access("secret.csv", os.R_OK):
        pytest.skip("this user may read everything")
    return command("audit", "--scores", "secret.csv")


def existing_out():
    file("records.csv", b"a\n1\n2\n3\n")
    file("there.json", b"old")
    code = command("protect", "records.csv", "--statistic", "mean", "--eta", "0.1", "--out", "there.json")
    assert Path("there.json").read_bytes() == b"old"
    return code


def existing_report():
    file("there.html", b"old")
    code = command("explain", "--epsilon", "1", "--report", "there.html")
    assert Path("there.html").read_bytes() == b"old"
    return code


ROWS = {
    "audit NaN": lambda: wi.audit([1.0, math.nan], [1.0, 2.0]),
    "audit infinity": lambda: wi.audit([1.0, math.inf, 2.0], [-math.inf, 2.0, 3.0]),
    "audit empty": lambda: wi.audit([], [1.0, 2.0]),
    "audit one": lambda: wi.audit([1.0], [2.0]).advantage,
    "audit constant": lambda: wi.audit(np.ones(50), np.ones(50)),
    "audit mixed": lambda: wi.audit([1, "a"], [1, 2]),
    "audit shapes": lambda: wi.audit(np.ones((5, 2)), np.ones(5)),
    "table infinity": lambda: as_table(pl.DataFrame({"a": [1.0, math.inf]})),
    "table empty": lambda: as_table(pl.DataFrame({"a": np.empty(0)})),
    "table columns": lambda: match_tables(*(as_table(pl.DataFrame({name: [1.0, 2.0]})) for name in "ab")),
    "table kinds": lambda: match_tables(*(as_table(pl.DataFrame({"a": cells})) for cells in ([1.0, 2.5], ["x", "y"]))),
    "file missing": lambda: read_table("nowhere.csv"),
    "file folder": lambda: [Path("folder.csv").mkdir(), read_table("folder.csv")],
    "file ending": lambda: read_table(file("a.xls", b"1")),
    "CSV empty": lambda: read_table(file("a.csv", b"")),
    "CSV names": lambda: read_table(file("a.csv", b"a,b\n")),
    "CSV ragged": lambda: read_table(file("a.csv", b"a,b\n1,2\n3\n")),
    "CSV encoding": lambda: read_table(file("a.csv", b"a,b\n\xe9,2\n")),
    "CSV repeated": lambda: read_table(file("a.csv", b"a,a\n1,2\n")),
    "CSV gaps": lambda: read_table(file("a.csv", b"a,b\nNaN,2\n,4\n5,6\n")),
    "Parquet part": half_a_parquet,
    "gzip part": lambda: read_table(file("a.csv.gz", b"hello")),
    "NumPy objects": objects,
    "protect NaN": lambda: protect(spoiled(math.nan)),
    "protect one": lambda: protect(RECORDS[:1]),
    "protect constant": lambda: protect(np.ones((10, 2))),
    "protect η": lambda: protect(RECORDS, eta=0.0),
    "population NaN": lambda: population(spoiled(math.nan)),
    "population one": lambda: population(RECORDS[:1]),
    "population ε = 0": lambda: population(epsilon=0.0),
    "population ε = ∞": lambda: population(epsilon=math.inf),
    "population δ = 0": lambda: population(delta=0.0),
    "ledger file": lambda: Ledger(file("a.db", b"no ledger " * 500)).entries(),
    "ledger URL": lambda: Ledger("mysql://host/base"),
    "ledger nobody": lambda: Ledger("new.db").add("release"),
    "command report": existing_report,
    "command folder": lambda: command("explain", "--epsilon", "1", "--report", "nowhere/a.html"),
    "command out": existing_out,
    "command unread": unreadable,
}


def table():
    """The rows of the page: name and what it says."""
    lines = PAGE.read_text(encoding="utf-8").partition("| row | what | what you get |")[2].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {name: outcome for name, _, outcome in cells}


def test_every_row_has_its_run():
    assert list(table()) == list(ROWS)


@pytest.mark.parametrize("row", ROWS)
def test_row(row, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = table()[row]
    if said.startswith("allowed"):
        ROWS[row]()
    elif said.startswith("exit code "):
        assert ROWS[row]() == int(said.removeprefix("exit code ").split(";")[0])
    else:
        with pytest.raises(ERRORS[said.split("`")[1]]):
            ROWS[row]()


@pytest.mark.parametrize("data", [b"a,b\n\xe9,2\n", "a,b\n1,2\n".encode("utf-16")])
def test_wrong_encodings_are_named(data, tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"takes UTF-8, got the byte 0x.. on line \d"):
        read_table(path)


def test_implies_names_the_parameter_it_needs():
    """Found by fuzzing: a plain TypeError about a private function came out."""
    with pytest.raises(InputTypeError, match="candidates="):
        wi.PureDP(1.0).implies(wi.DifferentialIdentifiability)


def test_likelihoods_whose_ratio_overflows():
    """Found by fuzzing: numpy warned."""
    assert wi.Roc.from_likelihoods([1.0, 1e-300], [5e-324, 1.0]).divergence(1.0) == 1.0


@pytest.mark.parametrize("prior", [5e-324, 1e-316, 1e-308])
def test_priors_whose_odds_overflow(prior):
    """Found by fuzzing: the upper limit of the posterior was 0."""
    assert wi.PureDP(0.0).posterior(prior) == (prior, prior)
    assert wi.PureDP(0.0).risk(wi.risks.ppv_at_fpr(0.5), prior) == prior


def test_two_steps_at_the_end_of_floats():
    """Found by the oracles: interpolation overflowed to a rate above one."""
    assert wi.ApproxDP(710.0, 1e-15).implies(wi.MIP).eta == 0.5

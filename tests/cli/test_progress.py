"""The bar: silent off a terminal, with the share and the time left on one."""

import json
import os
import pty
import subprocess
import sys
import warnings
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from whosin.auditing.measuring.score_table import audit_score_table
from whosin.auditing.releases.matching.match import expected_seconds
from whosin.cli import render
from whosin.cli.app import app
from whosin.errors import AssumptionWarning


def test_silent_off_a_terminal(capsys):
    with render.progress("Working") as progress:
        progress(0.5)
        progress(1.0)
    seen = capsys.readouterr()
    assert seen.out == ""
    assert seen.err == ""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_shows_share_and_time_left_on_a_terminal():
    code = (
        "import time\n"
        "from whosin.cli import render\n"
        "with render.progress('Working') as progress:\n"
        "    for step in range(1, 13):\n"
        "        progress(step / 24)\n"
        "        time.sleep(0.06)\n"
    )
    main, other = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(
        [sys.executable, "-c", code], stderr=other, stdout=subprocess.DEVNULL, env=environment
    ) as run:
        os.close(other)
        seen = b""
        while True:
            try:
                part = os.read(main, 4096)
            except OSError:
                break
            if not part:
                break
            seen += part
        assert run.wait() == 0
    os.close(main)
    text = seen.decode()
    assert "Working" in text
    assert "50%" in text
    assert "0:00:0" in text


@pytest.fixture
def lines():
    token = render.log_lines.set(True)
    yield
    render.log_lines.reset(token)


def test_lines_of_json(lines, capsys, monkeypatch):
    monkeypatch.setattr(render, "LOG_PAUSE", 0.0)
    with render.progress("Working", expected=12.34) as progress:
        for share in (0.01, 0.5, 1.0, 1.0):
            progress(share)
    seen = capsys.readouterr()
    assert seen.out == ""
    told = [json.loads(line) for line in seen.err.splitlines()]
    assert [one["share"] for one in told] == [0.0, 0.01, 0.5, 1.0]
    assert [one["seconds_left"] for one in told[:2]] == [12.3, None]
    assert told[2]["seconds_left"] >= 0.0
    assert told[3]["seconds_left"] == 0.0
    assert {one["stage"] for one in told} == {"Working"}
    moments = [datetime.fromisoformat(one["time"]) for one in told]
    assert moments == sorted(moments)
    assert moments[0].utcoffset() == timedelta(0)


def test_lines_are_few(lines, capsys):
    with render.progress("Working") as progress:
        for step in range(1000):
            progress(step / 1000)
    assert len(capsys.readouterr().err.splitlines()) <= 2


def test_an_audit_logs_its_progress(tmp_path):
    rng = np.random.default_rng(0)
    for name in ("train", "holdout", "synthetic"):
        rows = "\n".join(f"{a:.3f},{b:.3f}" for a, b in rng.normal(size=(60, 2)))
        (tmp_path / f"{name}.csv").write_text(f"a,b\n{rows}\n")
    words = [f"--{name}={tmp_path / name}.csv" for name in ("train", "holdout", "synthetic")]
    found = CliRunner().invoke(app, ["--log-json", "audit", *words, "--json"])
    assert found.exit_code == 0
    told = [json.loads(line) for line in found.stderr.splitlines()]
    assert told[0]["share"] == 0.0
    assert 1.0 <= told[0]["seconds_left"] < 2.0
    assert told[-1]["share"] == 1.0
    assert "advantage" in json.loads(found.stdout)


def test_work_without_shares_logs_its_beginning_and_end():
    words = ["calibrate", "--sample-rate", "0.1", "--steps", "10", "--advantage", "0.2", "--json"]
    found = CliRunner().invoke(app, ["--log-json", *words])
    assert [json.loads(line)["share"] for line in found.stderr.splitlines()] == [0.0, 1.0]


def test_warnings_and_errors_are_lines_too(tmp_path, monkeypatch):
    path = tmp_path / "scores.csv"
    path.write_text("score,member\n" + "".join(f"{score**2 % 7},{score % 2}\n" for score in range(40)))

    def warned(*_, **options):
        warnings.warn("by us", AssumptionWarning, stacklevel=1)
        return audit_score_table(*_, **options)

    monkeypatch.setattr("whosin.auditing.measuring.score_table.audit_score_table", warned)
    monkeypatch.setattr(render, "guarantee_text", lambda *_: warnings.warn("by a library", stacklevel=1))
    asked = (["audit", "--scores", str(path)], ["explain", "--epsilon", "1"], ["explain"])
    told = []
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        for words in asked:
            told += map(json.loads, CliRunner().invoke(app, ["--log-json", *words]).stderr.splitlines())
    assert [one["warning"] for one in told if "warning" in one] == ["by us", "by a library"]
    assert told[-1]["error"].startswith("give one guarantee")


def test_what_is_expected_is_what_was_measured():
    """By the side "one process" of benchmarks/results/release_blocks.json, within a fifth."""
    found = json.loads((Path(__file__).parents[2] / "benchmarks/results/release_blocks.json").read_text())
    for name, rows, records in (("small", 10**6, 20_000), ("middle", 2 * 10**6, 20_000), ("wide", 10**7, 50_000)):
        seconds = found["tasks"][name]["sides"]["one process"]["wall_seconds"]
        assert expected_seconds(records, rows, 10, 1) == pytest.approx(seconds, rel=0.2)
    assert expected_seconds(20_000, 10**6, 10, 2) < 0.6 * expected_seconds(20_000, 10**6, 10, 1)

"""What the pages claim beyond their code: tests that they name exist, and figures that they quote are committed."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "docs" / f"{name}.md" for name in ("errata", "theory", "trust", "which-tool")]
PAGES += sorted((ROOT / "docs" / "papers").glob("*.md"))
PAPERS = [page for page in PAGES if page.parent.name == "papers" and page.stem not in ("index", "statements")]
TESTS = {
    name
    for path in (ROOT / "tests").rglob("test_*.py")
    for name in re.findall(r"def (test_\w+)", path.read_text(encoding="utf-8"))
}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_named_tests_exist(page):
    named = set(re.findall(r"`(test_\w+)`", page.read_text(encoding="utf-8")))
    assert named <= TESTS, named - TESTS
    folders = re.findall(r"`(tests/[\w/.]+)`", page.read_text(encoding="utf-8"))
    assert all((ROOT / folder).exists() for folder in folders)


@pytest.mark.parametrize("page", PAPERS, ids=lambda page: page.stem)
def test_a_paper_names_a_test_for_every_correction(page):
    text = page.read_text(encoding="utf-8")
    rows = text.split("## What was corrected")[1].split("\n## ")[0].split("\n\n")[1].splitlines()[2:]
    assert rows
    for row in rows:
        assert re.search(r"`test_\w+` \|$", row), row


@pytest.mark.parametrize("page", PAPERS, ids=lambda page: page.stem)
def test_every_committed_figure_of_a_paper_is_shown(page):
    folder = ROOT / "experiments" / {"xu": "mace"}.get(page.stem, page.stem) / "results"
    shown = set(re.findall(r"\]\(\.\./\.\./(experiments/[\w/]+\.png)\)", page.read_text(encoding="utf-8")))
    assert all((ROOT / picture).is_file() for picture in shown)
    assert {path.relative_to(ROOT).as_posix() for path in folder.glob("*.png")} <= shown


def test_the_ratios_against_riskcal_are_the_measured_ones():
    text = (ROOT / "docs" / "which-tool.md").read_text(encoding="utf-8")
    tasks = json.loads((ROOT / "benchmarks" / "results" / "dpsgd_vs_riskcal.json").read_text(encoding="utf-8"))["tasks"]
    quoted = [float(cell) for cell in re.findall(r"\| riskcal 1\.5\.1 \| ([\d.]+) \|", text)]
    measured = [tasks[name]["cpu_ratio_of_medians"] for name in ("curve", "calibrate", "calibrate_tpr")]
    assert quoted == pytest.approx(measured, rel=0.03)


def test_the_answers_on_adult_are_those_of_the_benchmarks():
    text = (ROOT / "docs" / "which-tool.md").read_text(encoding="utf-8")
    benchmark = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (whosin|Anonymeter|SDMetrics), [^|]*\| ([^|]*) \| ([^|]*) \| ([\d.]+) \|$", text, re.M)
    assert len(rows) == 4
    for tool, leaky, quiet, seconds in rows:
        row = next(line for line in benchmark.splitlines() if f"| {seconds} |" in line and line.startswith(f"| {tool}"))
        assert re.search(rf"\| {re.escape(leaky)}[; |]", row), row
        assert re.search(rf"\| {re.escape(quiet)}[; |]", benchmark[benchmark.index(row) :].splitlines()[1])


def test_the_results_of_mutation_are_the_kept_ones():
    kept = json.loads((ROOT / "benchmarks" / "results" / "mutation.json").read_text(encoding="utf-8"))
    rows = ["| room | changes there are | tried | noticed | 95 % | date |", "|---|---:|---:|---:|---|---|"]
    for room, found in kept.items():
        low, high = found["killed_share_95"]
        cells = (f"{found['changes']:,}", found["tried"], found["killed"], f"{low:.0%} to {high:.0%}", found["date"])
        rows.append(f"| {room} | {' | '.join(map(str, cells))} |")
    assert "\n".join(rows) in (ROOT / "docs" / "trust.md").read_text(encoding="utf-8"), "\n".join(rows)

"""What the README and the pages show is run: Python blocks in order, and every ``$ whosin`` line."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUILT = {"_build", "_generated", "gallery"}
DOCS = sorted(page for page in (ROOT / "docs").rglob("*.md") if not BUILT & set(page.relative_to(ROOT).parts))
PAGES = [ROOT / "README.md", *DOCS]

FENCE = re.compile(r"^```(?P<language>[a-z]+)[ \t]*\n(?P<body>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, language: str) -> list[tuple[int, str]]:
    """Return the fenced blocks of a page in that language, each with the number of its first line."""
    text = page.read_text(encoding="utf-8")
    return [
        (text.count("\n", 0, match.start("body")) + 1, match["body"])
        for match in FENCE.finditer(text)
        if match["language"] == language
    ]


def commands(page: Path) -> list[str]:
    """Return the ``whosin`` commands of a page's console blocks, continuation lines joined."""
    lines = [line for _, body in blocks(page, "console") for line in body.replace("\\\n", " ").splitlines()]
    return [line.removeprefix("$ ") for line in lines if re.match(r"\$ whosin\b", line)]


NEEDS = {
    "ledger.md": "sqlalchemy",
    "generators.md": "torch",
    "language-models.md": "torch",
    "models.md": "opacus",
}
"""Pages that need an extra; without it they are skipped."""


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    if page.name in NEEDS:
        pytest.importorskip(NEEDS[page.name])
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "__main__"}
    for line, body in blocks(page, "python"):
        # Blank lines in front, so that a traceback points to the line of the page.
        exec(compile("\n" * (line - 1) + body, str(page), "exec"), namespace)
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_run(page, tmp_path):
    if page.name in NEEDS:
        pytest.importorskip(NEEDS[page.name])
    for command in commands(page):
        program, *arguments = shlex.split(command, comments=True)
        assert program == "whosin"
        assert not {"|", ">", ">>", "&&", ";"} & set(arguments), f"not a plain command, cannot be tested: {command}"
        done = subprocess.run(
            [sys.executable, "-m", "whosin", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=300,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, f"$ {command}\n{done.stdout}\n{done.stderr}"


def test_readme_shows_enough():
    readme = ROOT / "README.md"
    assert len(blocks(readme, "python")) >= 2
    assert len(commands(readme)) >= 2


def test_blocks_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# Page\n\n```python\nx = 1\n```\n\n```{note}\nno code\n```\n\n"
        "```console\n$ whosin explain \\\n    --epsilon 1\nan answer\n$ ls\n```\n\n```python\ny = 2\n```\n",
        encoding="utf-8",
    )
    assert blocks(page, "python") == [(4, "x = 1\n"), (19, "y = 2\n")]
    assert [shlex.split(command) for command in commands(page)] == [["whosin", "explain", "--epsilon", "1"]]

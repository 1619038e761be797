"""What the README and the pages show is run as when the pages are built: Python and ``$ whosin`` lines, in order."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUILT = {"_build", "_generated", "gallery"}
DOCS = sorted(page for page in (ROOT / "docs").rglob("*.md") if not BUILT & set(page.relative_to(ROOT).parts))
PAGES = [ROOT / "README.md", *DOCS]
NEEDS = {
    "ledger.md": "sqlalchemy",
    "generators.md": "torch",
    "language-models.md": "torch",
    "models.md": "opacus",
}
"""Pages that need an extra; without it they are skipped."""

spec = importlib.util.spec_from_file_location("run_blocks", ROOT / "docs" / "_ext" / "run_blocks.py")
run_blocks = importlib.util.module_from_spec(spec)
spec.loader.exec_module(run_blocks)


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_the_code_of_a_page_runs(page):
    if page.name in NEEDS:
        pytest.importorskip(NEEDS[page.name])
    text = page.read_text(encoding="utf-8")
    shown = run_blocks.with_output(text, str(page))
    assert shown.count(":class: output") >= text.count("\n$ whosin ")
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def test_readme_shows_enough():
    languages = [match["language"] for match in run_blocks.BLOCK.finditer((ROOT / "README.md").read_text("utf-8"))]
    assert languages.count("python") >= 2
    assert languages.count("console") >= 1


def test_the_output_is_under_what_printed_it():
    page = """
```python
x = 1
```

```{note}
no code
```

```console
$ whosin explain \\
    --epsilon 1 --json
$ whosin --version
```

```python
print(x + 1)
```
"""
    import whosin as wi

    out = "```{code-block} text\n:class: output\n\n"
    shown = run_blocks.with_output(page)
    assert shown.startswith("\n```python\nx = 1\n```\n\n```{note}\nno code\n```\n\n```console\n$ whosin explain \\\n")
    assert f"    --epsilon 1 --json\n```\n\n{out}{{" in shown
    assert f"$ whosin --version\n```\n\n{out}{wi.__version__}\n```\n\n```python\nprint" in shown
    assert shown.endswith(f"print(x + 1)\n```\n\n{out}2\n```\n")


@pytest.mark.parametrize("line", ["$ ls", "an answer", "$ whosin explain --epsilon x", "$ whosin explain | head"])
def test_what_cannot_be_run_stops_the_build(line):
    with pytest.raises(AssertionError):
        run_blocks.with_output(f"```console\n{line}\n```\n")


def test_an_error_names_the_line_of_the_page():
    with pytest.raises(ZeroDivisionError) as caught:
        run_blocks.with_output("one\n\n```python\n1 / 0\n```\n", "page.md")
    assert (str(caught.traceback[-1].path), caught.traceback[-1].lineno) == ("page.md", 3)

"""Write the table of the papers' statements, docs/papers/statements.md, from docs/papers/statements.toml and the tests.

A test counts for a statement if its name begins as the statement says and it calls the library, itself or through the
helpers of its file. ``python tools/statements.py --check`` changes nothing and fails if the page is old, or a statement
has no such test, or is said to be wrong or loose and is not in the errata.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "docs" / "papers" / "statements.toml"
PAGE = SOURCE.with_suffix(".md")
ERRATA = ROOT / "docs" / "errata.md"
LIBRARY = ("whosin", "experiments")

HEAD = """# Every statement, with its test

Made from the tests by `tools/statements.py`. {total} statements, figures, algorithms and claims: {counts}.
A test is named here only if it calls the library.

*true*: as printed. *loose*: true, and sharpened. *corrected*: false as printed; what is true is tested beside it, and
written in the [errata](../errata.md). *refuted*: false. *reproduced*, *differs*: a figure made again, which agrees or
does not; the README of its experiment says why. *outside*: not in the text that was at hand.
"""


@cache
def tests_of(path: Path) -> tuple[str, ...]:
    """Return the names of a file's tests that call the library."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    known = {name for node in ast.walk(tree) for name in _imported(node)}
    for node in tree.body:  # constants of the file that are made by the library
        if isinstance(node, ast.Assign) and any(
            isinstance(one, ast.Name) and one.id in known for one in ast.walk(node)
        ):
            known |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    parts = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    reached: dict[str, bool] = {}

    def calls(node: ast.AST) -> bool:
        names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        names |= {one.arg for one in ast.walk(node) if isinstance(one, ast.arg)}
        return bool(names & known) or any(helps(name) for name in names & parts.keys())

    def helps(name: str) -> bool:
        if name not in reached:
            reached[name] = False  # a helper that calls itself adds nothing
            reached[name] = calls(parts[name])
        return reached[name]

    found = []
    for owner in tree.body:
        helpers = [one for one in getattr(owner, "body", []) if isinstance(one, ast.FunctionDef)]
        inside = {one.name for one in helpers if not one.name.startswith("test_") and calls(one)}
        for test in helpers if isinstance(owner, ast.ClassDef) else [owner]:
            if isinstance(test, ast.FunctionDef) and test.name.startswith("test_"):
                own = {one.attr for one in ast.walk(test) if isinstance(one, ast.Attribute)}
                if calls(test) or own & inside:
                    found.append(test.name)
    return tuple(found)


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in LIBRARY:
        return [alias.asname or alias.name for alias in node.names]
    if isinstance(node, ast.Import):
        return [alias.asname or alias.name for alias in node.names if alias.name.split(".")[0] in LIBRARY]
    return []


def rows() -> list[tuple[str, str, str, list[str], str]]:
    """Return paper, statement, status, tests and picture of every statement."""
    found = []
    for paper in tomllib.loads(SOURCE.read_text(encoding="utf-8")).values():
        for statement, status, *where in paper["statements"]:
            place = where[-1] if where else statement.replace(" ", "_").replace(".", "_")
            picture = where[0] if len(where) == 2 else ""
            found.append((paper["title"], statement, status, _tests(paper, place, picture), picture))
    return found


def _tests(paper: dict[str, Any], place: str, picture: str) -> list[str]:
    start = f"test_{place}"
    files = [paper["figures"]] if picture else paper["tests"]
    names = [name for file in files for name in tests_of(ROOT / "tests" / file)]
    return [name for name in names if name == start or name.startswith(f"{start}_")]


def markdown() -> str:
    """Return the page."""
    every = rows()
    counts = Counter(status for _, _, status, _, _ in every)
    lines = [HEAD.format(total=len(every), counts=", ".join(f"{count} {status}" for status, count in counts.items()))]
    for title in dict.fromkeys(row[0] for row in every):
        lines += [f"\n## {title}\n", "| statement | status | tests | picture |", "|---|---|---|---|"]
        for _, statement, status, tests, picture in (row for row in every if row[0] == title):
            folder, _, name = picture.partition("/")
            shown = f"[{name}](../../experiments/{folder}/results/{name})" if picture else ""
            first = f"`{tests[0]}`" if tests else "none"
            more = f" and {len(tests) - 1} more" if len(tests) > 1 else ""
            lines.append(f"| {statement} | {status} | {first}{more} | {shown} |")
    return "\n".join(lines) + "\n"


def problems() -> list[str]:
    """Return statements without a test that calls the library, or in the errata where they are wrong; lost pictures."""
    found, errata = [], ERRATA.read_text(encoding="utf-8")
    for paper, statement, status, tests, picture in rows():
        if status in ("loose", "corrected", "refuted") and not any(f"`{name}`" in errata for name in tests):
            found.append(f"{paper}, {statement}: {status}, and no test of it is in the errata")
        if not tests:
            found.append(f"{paper}, {statement}: no test calls the library")
        if picture and not (ROOT / "experiments" / picture.replace("/", "/results/", 1)).is_file():
            found.append(f"{paper}, {statement}: {picture} is not among the results")
    return found


def main() -> None:
    """Write the page, or check it."""
    parser = argparse.ArgumentParser(description="Write docs/papers/statements.md from the tests of the theorems.")
    parser.add_argument("--check", action="store_true", help="only say whether it is up to date")
    only_check = parser.parse_args().check
    wrong = problems()
    if not only_check:
        PAGE.write_text(markdown(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != markdown():
        wrong.append("docs/papers/statements.md is old: run python tools/statements.py")
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()

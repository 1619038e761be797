"""One voice: phrases that plain English has a better one for stay out of what people read.

Looked at are all texts of the library (errors, help, explanations, docstrings), the templates of report and page, and
the guides. A phrase is listed here only if it has no good use at all.
"""

import ast
import re
from pathlib import Path

import whosin as wi

HOME = Path(__file__).parents[1]
INSTEAD = {
    r"\b(one|two|a|an) (row|column|number|line|label|name|value|entry|card|file) a "
    r"(row|record|person|column|coordinate|class|query|task|training|model|side)\b": "per",
    r"\b(was|were|be|is|are) had\b": "obtained",
    r"\bstands in the release\b": "appears in the release",
    r"\bno more than chance explains\b": "could be chance",
    r"\(really [\d.]": "two columns",
    r"\b(takes|take) (a|an|one|two|at|no|only|numbers)\b[^.]*, got\b": "must be …, got",
}
SOURCE = HOME / "src" / "whosin"
FILES = [*SOURCE.rglob("*.py"), *SOURCE.rglob("*.j2"), *(HOME / "docs" / "guide").glob("*.md"), HOME / "README.md"]


def texts(path):
    """Return the texts of a file with their lines, an f-string as one."""
    if path.suffix != ".py":
        return [(number, line) for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), start=1)]
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
            found.append((node.lineno, "".join(map(str, parts))))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append((node.lineno, " ".join(node.value.split())))
    return found


def test_phrases_that_stay_out():
    found = [
        f"{path.relative_to(HOME)}:{number}: {text[:120]!r}: say {instead!r}"
        for path in sorted(FILES)
        for number, text in texts(path)
        for phrase, instead in INSTEAD.items()
        if re.search(phrase, text)
    ]
    assert not found, "\n".join(found)


def test_a_guarantee_is_called_by_its_numbers():
    assert str(wi.PureDP(1.0)) == "ε = 1 (one person added or removed)"
    assert str(wi.GaussianDP(0.5, "replace")) == "μ = 0.5 (one person replaced)"
    assert str(wi.MIP(0.1)).startswith("MIP (η = 0.1")
    assert repr(wi.PureDP(1.0)) == "PureDP(epsilon=1.0, adjacency='add_remove')"

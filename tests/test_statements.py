"""The table of the papers' statements: up to date, every statement with a test that calls the library."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOOL = runpy.run_path(str(ROOT / "tools" / "statements.py"))
ERRATA = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")


def test_every_statement_has_a_test_that_calls_the_library():
    assert TOOL["problems"]() == []


def test_the_page_is_that_of_the_tests():
    page = (ROOT / "docs" / "papers" / "statements.md").read_text(encoding="utf-8")
    assert page == TOOL["markdown"](), "run: python tools/statements.py"


def test_a_test_of_arithmetic_alone_does_not_count(tmp_path):
    path = tmp_path / "test_file.py"
    path.write_text(
        "import math\n"
        "import whosin as wi\n"
        "HALF = wi.PureDP(1.0)\n"
        "def helper():\n    return wi.MIP(0.1)\n"
        "def test_own():\n    assert math.exp(0) == 1\n"
        "def test_direct():\n    assert wi.PMP(1.0)\n"
        "def test_helped():\n    assert helper()\n"
        "def test_constant():\n    assert HALF\n"
        "class TestGroup:\n"
        "    def game(self):\n        return wi.PMP(1.0)\n"
        "    def test_by_method(self):\n        assert self.game()\n",
        encoding="utf-8",
    )
    assert TOOL["tests_of"](path) == ("test_direct", "test_helped", "test_constant", "test_by_method")


def test_the_pdf_of_the_errata_is_made_from_the_page():
    """Its title has the digest of the page."""
    title = runpy.run_path(str(ROOT / "tools" / "errata_pdf.py"))["title"]()
    pdf = (ROOT / "docs" / "_static" / "errata.pdf").read_bytes()
    assert f"/Title ({title})".encode() in pdf, "run: python tools/errata_pdf.py"


@pytest.mark.parametrize("part", re.split(r"\n### ", ERRATA)[1:], ids=lambda part: part.split("\n")[0])
def test_errata_are_whole(part):
    """Each says what is printed, why it fails or is loose, what is true, why, and which tests show it."""
    for word in ("Printed", "True", "Why", "Tests"):
        assert f"**{word}.**" in part
    assert "**Counterexample.**" in part or "**How loose.**" in part
    assert len(re.findall(r"`test_\w+`", part)) >= 1

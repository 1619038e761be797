"""Print docs/errata.md to docs/_static/errata.pdf with Chromium: ``python tools/errata_pdf.py [--chromium PATH]``.

The page is turned into plain HTML by myst-parser's own reader, markdown-it; nothing is loaded from anywhere.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[1]
SOURCE, TARGET = ROOT / "docs" / "errata.md", ROOT / "docs" / "_static" / "errata.pdf"
STYLE = (
    "@page{size:A4;margin:18mm} body{font:10pt/1.35 sans-serif} h1{font-size:17pt} h2{font-size:13pt;margin-top:1.4em}"
    "h3{font-size:10.5pt;margin:1.1em 0 .2em;break-after:avoid} p{margin:.15em 0}"
    "code{font-size:8pt;word-break:break-all} sup,sub{font-size:75%;line-height:0;white-space:nowrap}"
    "section{break-inside:avoid}"
)
MARK = re.compile(r"<code>.*?</code>|[\^_](?:\{([^{}]+)\}|(\w+))")
"""What is raised or lowered, and code, where nothing is."""


def _set(mark: re.Match[str]) -> str:
    tag = {"^": "sup", "_": "sub"}.get(mark[0][0])
    return f"<{tag}>{mark[1] or mark[2]}</{tag}>" if tag else mark[0]


def title() -> str:
    """Return the title of the PDF, which says of what page it was made."""
    return f"Errata of five papers, {hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]}"


def html() -> str:
    """Return the page as HTML: links to other pages as plain words, exponents and indices set, entries kept whole."""
    text = re.sub(r"\[([^\]]+)\]\((?!http)[^)]+\)", r"\1", SOURCE.read_text(encoding="utf-8"))
    text = re.sub(r"\n(?=\*\*[A-Z][\w ]+\.\*\*)", "\n\n", text)
    body = MARK.sub(_set, MarkdownIt().render(text))
    body = re.sub(r"<h3>.*?(?=<h[23]>|$)", r"<section>\g<0></section>", body, flags=re.DOTALL)
    head = f"<meta charset=utf-8><title>{title()}</title><style>{STYLE}</style>"
    return f"<!doctype html><html lang=en>{head}{body}</html>"


def main(words: list[str]) -> None:
    """Write the PDF."""
    parser = argparse.ArgumentParser(description="Print docs/errata.md to a PDF.")
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next((path for name in names if (path := shutil.which(name))), None)
    parser.add_argument("--chromium", default=found, help="the browser (default: the one on the PATH)")
    browser = parser.parse_args(words).chromium
    if browser is None:
        sys.exit("no Chromium on the PATH: pass --chromium PATH")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "errata.html"
        page.write_text(html(), encoding="utf-8")
        options = ("--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer", f"--print-to-pdf={TARGET}")
        subprocess.run([browser, *options, page.as_uri()], check=True, capture_output=True)
    print(f"{TARGET.relative_to(ROOT)}: {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])

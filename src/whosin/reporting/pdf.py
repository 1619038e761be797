"""A report as PDF, by Chromium or WeasyPrint, whichever is there."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

from whosin.errors import MissingExtraError

BROWSERS = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge", "msedge",
)  # fmt: skip
PATIENCE = 120.0
"""Seconds for one PDF."""


def _browser() -> str | None:
    return next((found for name in BROWSERS if (found := shutil.which(name)) is not None), None)


def check_pdf() -> None:
    """Raise MissingExtraError unless a PDF can be made here."""
    if _browser() is None and find_spec("weasyprint") is None:
        raise MissingExtraError(
            "a PDF needs Chromium, Chrome or Edge on the path, or WeasyPrint (pip install weasyprint); the report can "
            "be written as .html without them"
        )


def to_pdf(page: str) -> bytes:
    """Return a self-contained page of HTML as PDF on A4.

    Chromium is started without network services and with a profile of its own that is removed afterwards.
    """
    check_pdf()
    browser = _browser()
    if browser is None:
        from weasyprint import HTML  # type: ignore[import-not-found]

        made: bytes = HTML(string=with_styled_drawings(page)).write_pdf()
        return made
    with tempfile.TemporaryDirectory(prefix="whosin-pdf-", ignore_cleanup_errors=True) as folder:
        source, target = Path(folder, "report.html"), Path(folder, "report.pdf")
        source.write_text(page, encoding="utf-8")
        command = [
            browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync",
            "--no-first-run", f"--user-data-dir={folder}/profile", "--no-pdf-header-footer",
            f"--print-to-pdf={target}", source.as_uri(),
        ]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False, text=True)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise MissingExtraError(f"{browser} could not make the PDF: {error}; write the report as .html") from None
        if not target.is_file():
            last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise MissingExtraError(f"{browser} made no PDF: {last}; write the report as .html")
        return target.read_bytes()


def with_styled_drawings(page: str) -> str:
    """Return the page with the style of drawings inside each of them, in the colours of paper.

    Browsers apply the page's style sheet to drawings. WeasyPrint does not, and knows no variables in them.
    """
    rules = Path(__file__, "..", "templates", "drawings.css.j2").resolve().read_text(encoding="utf-8")
    *_, paper = re.findall(r":root \{([^}]*)\}", page)
    colours = dict(re.findall(r"(--[\w-]+): ([^;]+);", paper))
    tone = re.search(r'class="card (\w+)"', page)
    toned = None if tone is None else re.search(rf"\.card\.{tone[1]} \{{ --tone: var\((--[\w-]+)\)", page)
    colours["--tone"] = colours["--answer-edge" if toned is None else toned[1]]
    plain = re.sub(r"var\((--[\w-]+)\)", lambda name: colours[name[1]], rules).replace("currentColor", colours["--ink"])
    return re.sub(r"(<svg [^>]*>)", lambda start: f"{start[1]}<style>{plain}</style>", page)

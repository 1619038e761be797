"""A report as PDF, by Chromium or WeasyPrint, whichever is there."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from importlib.util import find_spec
from pathlib import Path

from whosin.errors import MissingExtraError

__all__ = ["check_pdf", "to_pdf"]

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

        made: bytes = HTML(string=page).write_pdf()
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

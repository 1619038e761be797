"""The report: one self-contained HTML file that a privacy officer can read, sign and send."""

from whosin.reporting.page import report

__all__ = ["report"]

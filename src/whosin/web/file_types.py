"""What a file is, judged by its bytes: neither its name nor what the browser says about it counts."""

from __future__ import annotations

import re

from whosin.errors import InputError

HEAD = 65_536
"""How many bytes of a file are looked at."""
TAKEN = "CSV or TSV text, JSON lines, Parquet, Arrow IPC or a plain NumPy array (.npy)"

_MAGIC = {b"PAR1": "parquet", b"ARROW1\x00\x00": "arrow", b"\x93NUMPY": "npy"}
_OTHERS = {
    b"PK\x03\x04": "a ZIP archive (.xlsx and .npz are such): unpack it, or save the sheet as CSV",
    b"\x1f\x8b": "gzip: unpack it",
    b"BZh": "bzip2: unpack it",
    b"\xfd7zXZ": "xz: unpack it",
    b"\x28\xb5\x2f\xfd": "zstd: unpack it",
    b"%PDF": "a PDF file",
    b"\x80\x04": "a Python pickle",
    b"\x80\x05": "a Python pickle",
    b"SQLite format 3": "an SQLite file",
    b"{\\rtf": "an RTF document",
}
_MARKUP = (b"<!doctype", b"<html", b"<?xml", b"<svg", b"<script")


def kind_of(head: bytes, name: str) -> str:
    """Return the ending (csv, tsv, txt, jsonl, parquet, arrow or npy) that the first bytes of a file deserve.

    Raises
    ------
    InputError
        For anything else, with what it looks like.
    """
    for magic, kind in _MAGIC.items():
        if head.startswith(magic):
            return kind
    for magic, what in _OTHERS.items():
        if head.startswith(magic):
            raise InputError(f"{name} must be {TAKEN}, got {what}")
    if not head:
        raise InputError(f"{name} must be {TAKEN}, got an empty file")
    if head.lstrip().lower().startswith(_MARKUP):
        raise InputError(f"{name} must be {TAKEN}, got a page of HTML or XML")
    return _text(head, name)


def _text(head: bytes, name: str) -> str:
    # which of these it is, the reader decides; here it must be letters in one of them
    wide = head.startswith((b"\xff\xfe", b"\xfe\xff"))
    text = head[:HEAD].decode("utf-16" if wide else "latin-1", "replace")
    if any(ord(letter) < 32 and letter not in "\t\n\r" for letter in text):
        raise InputError(f"{name} must be {TAKEN}, got something else")
    if re.match(r"(\[\s*)?\{", text.lstrip("\ufeff").removeprefix("ï»¿").lstrip()):
        return "jsonl"
    first = text.split("\n", 1)[0]
    if " " in first and not set(first) & set(",;\t|"):
        return "txt"
    return "tsv" if first.count("\t") > first.count(",") else "csv"

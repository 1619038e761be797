"""Scores of sequences from the log probabilities that a language model gives to their tokens.

Each score is one number per sequence, fixed by that sequence alone, so that :func:`whosin.audit` may take all of them.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from whosin.arrays import Array
from whosin.errors import InputError, InputTypeError, check_number, short_repr
from whosin.tables import Table, as_table

ROUNDING = 1e-3
"""How far above 0 a log probability may be: half precision rounds that much."""


def token_scores(
    log_probs: Any,
    *,
    texts: Sequence[str] | None = None,
    reference: Any = None,
    moments: tuple[Any, Any] | None = None,
    share: float = 0.2,
) -> dict[str, Array]:
    """Return scores of sequences, by name: loss, zlib, min_k, min_k_plus and reference, as far as they can be computed.

    Parameters
    ----------
    log_probs : sequences of numbers, matrix, or path
        ln p(token | tokens before it) of each token of each sequence: a list of lists, or a matrix with NaN where a
        sequence has ended. Or a file of JSON lines, each a list of numbers or an object with "log_probs" and, where
        known, "text", "reference", and "means" with "deviations" (the moments).
    texts : sequence of str, optional
        The sequences as text, for "zlib".
    reference : like ``log_probs``, optional
        The same sequences under a model that was not trained on them, for "reference"; its tokens may be others.
    moments : pair like ``log_probs``, optional
        Mean and standard deviation of ln p over the whole vocabulary at each token, for "min_k_plus".
    share : float, default 0.2
        Share of the tokens that "min_k" and "min_k_plus" look at, at least one token.

    Returns
    -------
    dict of str to array
        "loss" is the mean log probability; "zlib" the sum over the number of bytes that zlib needs; "min_k" the mean of
        the least likely tokens; "min_k_plus" the same after each token was standardised over the vocabulary;
        "reference" the mean of ln p less that of the reference, per token of ``log_probs``.

    Notes
    -----
    O(tokens log tokens). A larger score speaks for membership, except that models may surprise: audits learn the
    direction.

    References
    ----------
    Carlini et al. (2021), Extracting training data from large language models (zlib, reference); Shi et al. (2024),
    Detecting pretraining data from large language models (min-k); Zhang et al. (2025), Min-K%++.

    Examples
    --------
    >>> import whosin as wi
    >>> scores = wi.auditing.token_scores([[-0.1, -2.0, -0.3], [-1.5, -0.2]], texts=["a b c", "d e"], share=0.5)
    >>> list(scores)
    ['loss', 'zlib', 'min_k']
    >>> scores["min_k"].round(2).tolist()
    [-2.0, -1.5]
    """
    part = check_number("share", share, low=0.0, high=1.0, open_low=True)
    if isinstance(log_probs, str | Path):
        lines = _lines(Path(log_probs))
        log_probs = [line["log_probs"] for line in lines]
        texts = _all_of(lines, "text") if texts is None else texts
        reference = _all_of(lines, "reference") if reference is None else reference
        means, deviations = _all_of(lines, "means"), _all_of(lines, "deviations")
        moments = (means, deviations) if moments is None and means and deviations else moments
    tokens = _sequences("log_probs", log_probs)
    sums, counts = np.array([row.sum() for row in tokens]), np.array([len(row) for row in tokens])
    scores = {"loss": sums / counts}
    if texts is not None:
        scores["zlib"] = sums / _compressed_sizes(texts, len(tokens))
    scores["min_k"] = np.array([_lowest(row, part) for row in tokens])
    if moments is not None:
        scores["min_k_plus"] = np.array([_lowest(row, part) for row in _standardised(tokens, moments)])
    if reference is not None:
        others = _sequences("reference", reference, count=len(tokens))
        scores["reference"] = (sums - [row.sum() for row in others]) / counts
    return scores


def token_table(path: Path) -> tuple[Table, list[str]] | None:
    """Return the scores of a file of JSON lines with its other fields, and their names; None if it is no such file.

    It is one if it ends in .jsonl or .ndjson and its first line has "log_probs". Fields that are lists are left out.
    """
    if path.suffix not in (".jsonl", ".ndjson") or '"log_probs"' not in _first_line(path):
        return None
    lines = _lines(path)
    plain = dict.fromkeys(name for line in lines for name, value in line.items() if not isinstance(value, list))
    fields = {name: [line.get(name) for line in lines] for name in plain if name != "text"}
    scores = token_scores(path)
    return as_table({**fields, **scores}, path.name), list(scores)


def _first_line(path: Path) -> str:
    try:
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            return next((line for line in file if line.strip()), "")
    except OSError as error:
        raise InputError(f"scores must be a file that can be read, got {str(path)!r}: {error}") from error


def _lines(path: Path) -> list[dict[str, Any]]:
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"log_probs must be a file of JSON lines that can be read, got {str(path)!r}: {error}"
        ) from error
    return [_parsed(line, f"line {number} of {path.name}") for number, line in enumerate(lines, 1) if line.strip()]


def _all_of(lines: list[dict[str, Any]], name: str) -> list[Any] | None:
    """Return a field of all lines, None if one lacks it."""
    found = [line.get(name) for line in lines]
    return None if None in found else found


def _parsed(line: str, place: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise InputError(f"log_probs must be JSON on every line, got {short_repr(line)} in {place}: {error}") from error
    row = {"log_probs": row} if isinstance(row, list) else row
    if not isinstance(row, dict) or not isinstance(row.get("log_probs"), list):
        raise InputError(
            f'log_probs must be a list, or an object with "log_probs", on every line, got another in {place}'
        )
    return row


def _sequences(name: str, given: Any, *, count: int | None = None, signed: bool = False) -> list[Array]:
    """Return the tokens of each sequence, NaN left out; at most 0 unless ``signed``."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputTypeError(f"{name} must be a list of sequences of numbers, got {short_repr(given)}")
    rows = list(given.to_numpy() if hasattr(given, "to_numpy") else given)
    if not rows or (count is not None and len(rows) != count):
        wanted = "at least one sequence" if count is None else f"{count} sequences, as many as log_probs"
        raise InputError(f"{name} must be {wanted}, got {len(rows)}")
    return [_tokens(f"{name}[{place}]", row, signed) for place, row in enumerate(rows)]


def _tokens(name: str, row: Any, signed: bool) -> Array:
    try:
        plain = row.tolist() if hasattr(row, "tolist") else row
        values = np.asarray([np.nan if value is None else value for value in plain], dtype=np.float64)
    except (TypeError, ValueError):
        raise InputTypeError(f"{name} must be a sequence of numbers, got {short_repr(row)}") from None
    values = values[~np.isnan(values)]
    if values.ndim != 1 or values.size == 0:
        raise InputError(f"{name} must be at least one number, got none")
    if not np.isfinite(values).all() or (not signed and values.max() > ROUNDING):
        kind = "finite numbers" if signed else "finite numbers of at most 0 (natural logarithms of probabilities)"
        kind += ", or NaN where a sequence has ended"
        raise InputError(f"{name} must be {kind}, got {short_repr(row)}")
    return values if signed else np.minimum(values, 0.0)


def _compressed_sizes(texts: Sequence[str], count: int) -> Array:
    if isinstance(texts, str) or len(texts) != count:
        raise InputError(f"texts must be {count} texts, as many as log_probs, got {short_repr(texts)}")
    wrong = next((text for text in texts if not isinstance(text, str)), None)
    if wrong is not None:
        raise InputTypeError(f"texts must be texts, got {short_repr(wrong)}")
    return np.array([len(zlib.compress(text.encode("utf-8", "surrogatepass"))) for text in texts], dtype=np.float64)


def _standardised(tokens: list[Array], moments: Any) -> list[Array]:
    if not isinstance(moments, tuple | list) or len(moments) != 2:
        raise InputTypeError(f"moments must be a pair (means, standard deviations), got {short_repr(moments)}")
    means, spreads = (
        _sequences(f"moments[{side}]", part, count=len(tokens), signed=True) for side, part in enumerate(moments)
    )
    rows = []
    for place, (own, mean, spread) in enumerate(zip(tokens, means, spreads, strict=True)):
        if not len(own) == len(mean) == len(spread):
            raise InputError(
                f"moments must be as long as log_probs[{place}], {len(own)} tokens, got {len(mean)} and {len(spread)}"
            )
        if spread.min() < 0.0:
            raise InputError(f"moments[1][{place}] must be standard deviations of at least 0, got {spread.min():.6g}")
        rows.append(np.divide(own - mean, spread, out=np.zeros(len(own)), where=spread > 0.0))
    return rows


def _lowest(values: Array, share: float) -> float:
    """Return the mean of the smallest ``share`` of the values, at least one of them."""
    count = max(1, int(share * len(values)))
    return float(np.partition(values, count - 1)[:count].mean())

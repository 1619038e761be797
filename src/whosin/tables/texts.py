"""Texts and images: rare phrases that a release repeats, without any model; and embeddings that the user brings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from whosin.errors import InputError, InputTypeError, WhosinError, check_callable, check_whole
from whosin.tables.schema import plain_label

Array = NDArray[np.float64]
Codes = NDArray[np.uint64]


def phrase_scores(texts: Sequence[str], release: Sequence[str], *, letters: int = 12) -> Array:
    """Return for each text how rare the phrases are that it shares with the released texts.

    Parameters
    ----------
    texts : sequence of str
        Texts of members, or of outsiders: score both with the same release and give them to :func:`whosin.audit`.
    release : sequence of str
        The released texts.
    letters : int, default 12
        Length of a phrase in characters, in small letters, single blanks and one way to write each letter.

    Returns
    -------
    array
        The mean over the different phrases of a text of ln((m + 1)/(c + 1/2)) where c ≥ 1 of the m released texts have
        the phrase, and of 0 where none has it. A text that the release repeats word for word, or with a few words
        changed, scores high if its phrases are rare; one of common phrases scores low.

    Notes
    -----
    The rarity is learnt from the release alone, so the score of a text depends on no other text but those released. Two
    different phrases count as one with probability about 2⁻⁶⁴. O(characters · letters) time.

    Examples
    --------
    >>> release = ["the patient was bitten by a zebra", "the patient was well", "the patient was tired"]
    >>> scores = wi.tables.phrase_scores(["bitten by a zebra in May", "the patient was fine"], release)
    >>> bool(scores[0] > scores[1])
    True
    """
    size = check_whole("letters", letters, low=1)
    owners, phrases = _phrases(_checked(texts, "texts"), size)
    _, released = _phrases(_checked(release, "release"), size)
    known, counts = np.unique(released, return_counts=True)
    place = np.minimum(np.searchsorted(known, phrases), len(known) - 1)
    shared = known[place] == phrases
    rarity = np.where(shared, np.log((len(release) + 1) / (counts[place] + 0.5)), 0.0)
    total = np.bincount(owners, minlength=len(texts))
    return np.bincount(owners, weights=rarity, minlength=len(texts)) / total


def embedded(data: Any, embed: Callable[[list[Any]], Any], *, batch: int = 256) -> Array:
    """Return texts, or the files of a folder, as vectors by an embedding of the user's.

    Parameters
    ----------
    data : path of a folder, or sequence
        The files of a folder and of folders in it, images for one, in the order of their names; or texts, or whatever
        ``embed`` takes.
    embed : callable
        From a list of paths, texts or other items to as many rows of numbers. None is shipped.
    batch : int, default 256
        Items per call.

    Returns
    -------
    array
        One row per item, for :func:`whosin.audit_synthetic`: embed training items, held-out items and the release.

    Examples
    --------
    >>> wi.tables.embedded(["a text", "another"], lambda texts: [[len(text)] for text in texts]).tolist()
    [[6.0], [7.0]]
    """
    check_callable("embed", embed)
    step = check_whole("batch", batch, low=1)
    items = items_of(data)
    parts = []
    for start in range(0, len(items), step):
        some = items[start : start + step]
        try:
            made = embed(some)
        except (WhosinError, MemoryError):
            raise
        except Exception as error:
            raise InputError(
                f"embed must be a function that takes items {start} to {start + len(some) - 1}, got from it "
                f"{type(error).__name__}: {error}"
            ) from error
        try:
            rows = np.asarray(made, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputTypeError(f"embed must return rows of numbers, got something else: {error}") from None
        if rows.ndim != 2 or len(rows) != len(some) or not np.isfinite(rows).all():
            raise InputError(
                f"embed must return {len(some)} rows of finite numbers for {len(some)} items, got shape {rows.shape} "
                f"for items {start} to {start + len(some) - 1}"
            )
        parts.append(rows)
    if len({part.shape[1] for part in parts}) > 1:
        raise InputError("embed must return rows of one length, got several")
    return np.concatenate(parts)


def items_of(data: Any) -> list[Any]:
    if isinstance(data, str | Path):
        folder = Path(data)
        if not folder.is_dir():
            raise InputError(f"data must be a folder, or a list of items, got {str(data)!r}")
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        items: list[Any] = [
            path for path in paths if not any(part[0] == "." for part in path.relative_to(folder).parts)
        ]
    else:
        items = list(data)
    if not items:
        raise InputError(f"data must have at least one item, got none in {data!r}")
    return items


def _checked(texts: Sequence[str], name: str) -> list[str]:
    if isinstance(texts, str) or hasattr(texts, "columns"):
        got = "one text" if isinstance(texts, str) else "a table: name its column"
        raise InputTypeError(f"{name} must be a list of texts, got {got}")
    found = list(texts)
    strange = next((place for place, text in enumerate(found) if not isinstance(text, str)), None)
    if strange is not None:
        raise InputTypeError(f"{name} must be texts, got {found[strange]!r} in row {strange}; leave such rows out")
    if not found:
        raise InputError(f"{name} must have at least one text, got none")
    return found


def _phrases(texts: Sequence[str], size: int) -> tuple[NDArray[np.int64], Codes]:
    """Return whose each phrase is, and a number for it; each phrase of a text once."""
    plain = [plain_label(text).ljust(size, "\0") for text in texts]
    letters = np.frombuffer("".join(plain).encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.uint64)
    factors = np.random.default_rng(20261117).integers(1, 2**63, size=size, dtype=np.uint64) * 2 + 1
    hashed = np.zeros(len(letters) - size + 1, dtype=np.uint64)
    for place, factor in enumerate(factors):
        hashed += _mixed(letters[place : place + len(hashed)] * factor)
    lengths = np.array([len(text) for text in plain])
    owner = np.repeat(np.arange(len(plain)), lengths)
    whole = owner[: len(hashed)] == owner[size - 1 :]
    owner, phrases = owner[: len(hashed)][whole], _mixed(hashed[whole])
    order = np.lexsort((phrases, owner))
    owner, phrases = owner[order], phrases[order]
    first = np.append(True, (owner[1:] != owner[:-1]) | (phrases[1:] != phrases[:-1]))
    return owner[first], phrases[first]


def _mixed(numbers: Codes) -> Codes:
    """Spread the bits of numbers over all 64."""
    numbers = (numbers ^ (numbers >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    mixed: Codes = numbers ^ (numbers >> np.uint64(29))
    return mixed

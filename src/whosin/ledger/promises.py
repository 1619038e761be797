"""Guarantees as versioned JSON that comes back as an equal object, every bit of every float included."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from whosin import guarantees
from whosin.errors import InputTypeError
from whosin.guarantees import Guarantee
from whosin.ledger.problems import LedgerError

VERSION = 1
_KNOWN: dict[str, type[Guarantee]] = {
    name: getattr(guarantees, name) for name in guarantees.__all__ if name != "Guarantee"
}


def promise_to_dict(guarantee: Guarantee) -> dict[str, Any]:
    """Return the class and the parameters for JSON.

    Floats are written in the fewest digits that give the same float again, infinity as the text "inf".
    """
    name = type(guarantee).__name__
    if _KNOWN.get(name) is not type(guarantee):
        raise InputTypeError(f"guarantee must be one of {', '.join(sorted(_KNOWN))}, got {guarantee!r}")
    return {"version": VERSION, "guarantee": name, **guarantee.parameters()}


def promise_from_dict(stored: Mapping[str, Any]) -> Guarantee:
    """Return the guarantee again; takes ``Guarantee.to_dict()`` too. Newer versions and strange names are errors."""
    version = stored.get("version", VERSION)
    if version != VERSION:
        raise LedgerError(
            f"a guarantee is stored in version {version!r}; this whosin reads version {VERSION}: install a newer one"
        )
    name = stored.get("guarantee")
    family = _KNOWN.get(name) if isinstance(name, str) else None
    if family is None:
        raise LedgerError(f"a guarantee is stored as {name!r}, which this whosin does not know")
    wanted = {field.name for field in dataclasses.fields(family)}
    values = {key: _number(value) for key, value in stored.items() if key in wanted}
    try:
        return family(**values)
    except (TypeError, ValueError) as error:
        raise LedgerError(f"a stored {name} does not make sense: {error}") from None


def _number(value: Any) -> Any:
    if isinstance(value, list):
        return [_number(item) for item in value]
    return math.inf if value == "inf" else value

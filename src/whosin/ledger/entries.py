"""What the ledger holds: entries that are never changed, as JSON with a hash each."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from whosin import guarantees
from whosin.answers import Said, parts
from whosin.errors import InputError, InputTypeError, LedgerError
from whosin.guarantees import Guarantee
from whosin.guarantees.base import check_guarantee

ACTIONS = ("release", "same people", "retraction")
LONGEST = 2000
MOST_ENTRIES = 2**63 - 1
"""Largest number of an entry that a database can hold."""
_TEXTS = ("action", "at", "name", "kind", "by", "fingerprint", "dataset", "note")
_STORED: dict[str, type] = {**dict.fromkeys(_TEXTS, str), "about": int, "audit": dict, "guarantee": dict}
"""Types of the parts of an entry."""
_AUDIT = ("prior", "members", "non_members", "query", "kind", "assignment", "metric")


@dataclass(frozen=True)
class Entry(Said):
    """One line of the ledger.

    Examples
    --------
    >>> import datetime, tempfile, whosin as wi
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     when = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    ...     print(wi.Ledger(f"{folder}/ledger.db").add("counts", dataset="people", guarantee=wi.PureDP(0.5), at=when))
    1 2026-01-01 00:00 UTC release: counts under ε = 0.5 (one person added or removed)
    """

    number: int
    """1, 2, 3… in the order of writing."""
    action: str
    """"release"; "same people" (a fingerprint is declared to be of a data set); "retraction" (a note on a release)."""
    at: datetime
    """When, in UTC."""
    name: str = ""
    """What was released."""
    kind: str = ""
    """What sort of thing it is, in the words of who recorded it."""
    by: str | None = None
    """Who recorded it, if told."""
    fingerprint: str | None = None
    """SHA-256 of the content of the data it came from."""
    dataset: str | None = None
    """Name of the people behind it: releases with one name count together."""
    guarantee: Guarantee | None = None
    audit: Mapping[str, Any] | None = field(default=None, hash=False)
    """Summary of an audit: the advantage with its limits, and how it was measured."""
    note: str | None = None
    about: int | None = None
    """Number of the release that a retraction is about."""
    voids_guarantee: bool = False
    """For a retraction: the guarantee turned out wrong, and the release counts as one without."""
    previous: str = ""
    """Hash of the entry before."""
    hash: str = ""
    """Hash of this one."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON."""
        return {
            **parts(self, "number", "action"),
            "at": self.at.isoformat(),
            **parts(self, "name", "kind", "by", "fingerprint", "dataset", "note", "about", "voids_guarantee"),
            **parts(self, "previous", "hash"),
            "guarantee": None if self.guarantee is None else promise_to_dict(self.guarantee),
            "audit": None if self.audit is None else dict(self.audit),
        }

    def __str__(self) -> str:
        what = {
            "release": f"{self.name} under {self.guarantee or 'no guarantee'}",
            "same people": f"{_short(self.fingerprint)} is of {self.dataset}",
            "retraction": f"on {self.about}: {self.note}{'; its guarantee is void' if self.voids_guarantee else ''}",
        }[self.action]
        return f"{self.number} {self.at:%Y-%m-%d %H:%M} UTC {self.action}: {what}"

    @classmethod
    def from_row(cls, number: int, body: str, previous: str, hash: str) -> Entry:
        """Return a stored line; what does not read as one is an error that names its number."""
        try:
            known = json.loads(body)
            _check_stored(number, known)
            guarantee, action = known.get("guarantee"), known["action"]
            if action not in ACTIONS:
                raise LedgerError(f"its action is {action!r}")
            return cls(
                number=number,
                action=action,
                at=datetime.fromisoformat(known["at"]),
                name=known.get("name", ""),
                kind=known.get("kind", ""),
                guarantee=None if guarantee is None else promise_from_dict(guarantee),
                previous=previous,
                hash=hash,
                **{key: known.get(key) for key in ("by", "fingerprint", "dataset", "audit", "note", "about")},
                voids_guarantee=bool(known.get("voids_guarantee", False)),
            )
        except LedgerError as error:
            raise LedgerError(f"entry {number} cannot be read: {error}") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise LedgerError(f"entry {number} cannot be read: it is not what a ledger writes; run verify") from None


def _check_stored(number: Any, known: dict[str, Any]) -> None:
    """Refuse an entry whose parts are of other types than a ledger writes."""
    json.dumps(known, allow_nan=False)
    if not isinstance(number, int):
        raise LedgerError(f"its number is {number!r}")
    for key, value in known.items():
        if value is not None and not isinstance(value, _STORED.get(key, object)):
            raise LedgerError(f"its {key} is of type {type(value).__name__}")


def _short(fingerprint: str | None) -> str:
    return "-" if fingerprint is None else f"{fingerprint[:12]}…"


def body_of(action: str, **values: Any) -> dict[str, Any]:
    """Return the content of a new entry for JSON: checked texts, a time in UTC, and no key without a value."""
    at = values.pop("at", None)
    moment = datetime.now(UTC) if at is None else at
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise InputTypeError(f"at must be a datetime with a time zone, got {at!r}")
    guarantee = values.pop("guarantee", None)
    if guarantee is not None:
        check_guarantee(guarantee)
    body: dict[str, Any] = {"action": action, "at": moment.astimezone(UTC).isoformat(timespec="microseconds")}
    for key, value in values.items():
        if value is None or value is False:
            continue
        body[key] = check_text(key, value) if isinstance(value, str) else value
    if guarantee is not None:
        body["guarantee"] = promise_to_dict(guarantee)
    return body


def check_text(name: str, value: Any) -> str:
    """Return a text that can be stored and shown: not empty, no control characters, not endless."""
    if not isinstance(value, str):
        raise InputTypeError(f"{name} must be a text, got {value!r} of type {type(value).__name__}")
    if not value.strip() or len(value) > LONGEST:
        raise InputError(f"{name} must be a text of 1 to {LONGEST} characters, got {len(value)} characters")
    if any(not sign.isprintable() and sign != " " for sign in value):
        raise InputError(f"{name} must be a text without control characters and line ends, got {value!r}")
    return value


def check_dataset(value: Any) -> str:
    """Return the name of a data set in one spelling: the same signs in another encoding or spacing are one name."""
    return check_text("dataset", " ".join(unicodedata.normalize("NFKC", check_text("dataset", value)).split()))


def fingerprint_of(data: Any, *, name: str = "data") -> str:
    """Return the SHA-256 of the content of any table, or a fingerprint (64 hexadecimal digits) as it is.

    The fingerprint is that of :meth:`whosin.tables.Table.fingerprint`, which reports show too.
    """
    if isinstance(data, str):
        if len(data) == 64 and all(sign in "0123456789abcdef" for sign in data.lower()):
            return data.lower()
        kinds = "a table or a fingerprint" if name == "data" else "a hash"
        raise InputError(f"{name} must be {kinds} of 64 hexadecimal digits, got another text")
    from whosin.tables import as_table

    return as_table(data).fingerprint()


def audit_summary(audit: Any) -> dict[str, Any]:
    """Return what the ledger keeps of an audit: the advantage with its limits and how it was measured, no record.

    Takes an :class:`whosin.Audit` or the dictionary that it gives for JSON.
    """
    if isinstance(audit, Mapping):
        known = dict(audit)
    elif hasattr(audit, "advantage") and hasattr(audit.advantage, "to_dict"):
        known = {name: getattr(audit, name, None) for name in _AUDIT}
        known["advantage"] = audit.advantage.to_dict()
    else:
        raise InputTypeError(f"audit must be an Audit or its dictionary, got {type(audit).__name__}")
    advantage = known.get("advantage")
    limits = ("estimate", "lower", "upper", "confidence_level")
    if not isinstance(advantage, Mapping) or not all(_rate(advantage.get(name)) for name in limits):
        raise InputError(f"audit must have an advantage with {', '.join(limits)} in [-1, 1], got {advantage!r}")
    low, high = advantage.get("lower"), advantage.get("upper")
    if low is not None and high is not None and low > high:
        raise InputError(f"audit must have an advantage with a lower limit up to its upper one, got {advantage!r}")
    kept = {name: known[name] for name in _AUDIT if isinstance(known.get(name), str | int | float)}
    return {"advantage": {name: advantage.get(name) for name in limits}, **plain_json("audit", kept)}


def _rate(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool) and -1 <= value <= 1)


def plain_json(name: str, value: dict[str, Any]) -> dict[str, Any]:
    """Return what JSON can hold, or raise an error that names the argument."""
    for key, item in value.items():
        if isinstance(item, str):
            check_text(f"{name}[{key!r}]", item)
        elif isinstance(item, float) and not math.isfinite(item):
            raise InputError(f"{name}[{key!r}] must be a finite number, got {item!r}")
    return value


def hash_of(number: int, previous: str, body: str) -> str:
    """Return the SHA-256 of an entry and, through ``previous``, of all before it."""
    return hashlib.sha256(f"{number}\n{previous}\n{body}".encode()).hexdigest()


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

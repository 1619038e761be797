"""The ledger: add, list, check, verify."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from whosin.answers import Said
from whosin.errors import InputError, InputTypeError, LedgerError, check_whole
from whosin.guarantees import MIP, Guarantee
from whosin.ledger.entries import (
    MOST_ENTRIES,
    Entry,
    audit_summary,
    body_of,
    check_dataset,
    check_text,
    fingerprint_of,
    promise_from_dict,
)
from whosin.ledger.place import Place
from whosin.ledger.store import Session, Store
from whosin.ledger.totals import Budget, Total, groups, related, total_of


@dataclass(frozen=True)
class Verification(Said):
    """Whether the chain of hashes holds.

    Examples
    --------
    >>> import tempfile, whosin as wi
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     book = wi.Ledger(f"{folder}/ledger.db")
    ...     _ = book.add("counts by town", dataset="people", guarantee=wi.PureDP(0.5))
    ...     found = book.verify()
    >>> found.intact, found.entries
    (True, 1)
    """

    entries: int
    head: str
    """Hash of the last entry: note it elsewhere, and ask for it later."""
    problems: tuple[str, ...]

    @property
    def intact(self) -> bool:
        """Whether no entry was changed or taken away, as far as the chain can tell."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """Return everything for JSON."""
        return {"intact": self.intact, "entries": self.entries, "head": self.head, "problems": list(self.problems)}

    def __str__(self) -> str:
        held = "1 entry" if self.entries == 1 else f"{self.entries} entries"
        if self.intact:
            return f"{held}, the chain holds; head {self.head}"
        return f"{held}, the chain is broken: {'; '.join(self.problems)}"


class Ledger:
    """The record of what was released: append-only, in a file or a database.

    Parameters
    ----------
    address : str or path, optional
        A file for SQLite, or ``postgresql://user:password@host/database``. By default what the environment variable
        WHOSIN_LEDGER says, and without it a file in the user's data folder that nobody else may read. The ledger is
        made with its first entry. Takes the extra ``whosin[ledger]``.

    Notes
    -----
    Of the data only a fingerprint is kept: the SHA-256 of its content. It hides the content of a large table. Of a tiny
    one (a single row of few possible values) somebody who reads the ledger and can guess the content can confirm the
    guess; a salt in the same ledger would not hinder them. Give a ``dataset`` name and no data then.

    Adding is one transaction under a lock: concurrent writers take turns and lose nothing. Cost of an entry: O(log n).

    Examples
    --------
    >>> import tempfile, whosin as wi
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     book = wi.Ledger(f"{folder}/ledger.db")
    ...     for name in ("counts by town", "counts by age"):
    ...         _ = book.add(name, dataset="people", guarantee=wi.PureDP(0.5))
    ...     total = book.check(dataset="people")
    >>> len(total.releases), total.epsilon
    (2, 1.0)
    """

    def __init__(self, address: str | os.PathLike[str] | None = None) -> None:
        self._store = Store(Place(address))

    @property
    def place(self) -> str:
        """Where it lies, without a password."""
        return str(self._store.place)

    def __repr__(self) -> str:
        return f"Ledger({self.place!r})"

    def add(
        self,
        name: str,
        *,
        data: Any = None,
        dataset: str | None = None,
        guarantee: Guarantee | None = None,
        certificate: Any = None,
        audit: Any = None,
        kind: str = "release",
        by: str | None = None,
        note: str | None = None,
        at: datetime | None = None,
        budget: Budget | None = None,
    ) -> Entry:
        """Record a release.

        Parameters
        ----------
        name : str
            What was released.
        data : table, array or fingerprint, optional
            What it was made from; only the fingerprint is kept.
        dataset : str, optional
            Name of the people behind the data. Releases with one fingerprint or one name count together. One of
            ``data`` and ``dataset`` is needed.
        guarantee : Guarantee, optional
            The promise; None where there is none.
        certificate : Certificate, Release or dict, optional
            Instead of ``guarantee``: what :func:`whosin.protect` gave. One of a test mode counts as no guarantee.
        audit : Audit or dict, optional
            What was measured; the advantage with its limits is kept, no record.
        kind, by, note : str
            What sort of thing it is, who recorded it, anything else.
        at : datetime, optional
            When, with a time zone; now by default.
        budget : Budget, optional
            Checked before anything is written, and once more with nobody else writing in between.

        Raises
        ------
        BudgetError
            Where the total with this release goes beyond the budget; nothing is recorded.
        """
        if data is None and dataset is None:
            raise InputError("add needs data or dataset, got neither: from whom does the release come?")
        if budget is not None and not isinstance(budget, Budget):
            raise InputTypeError(f"budget must be a Budget, got {budget!r}")
        if certificate is not None:
            if guarantee is not None:
                raise InputError("add needs guarantee or certificate, got both")
            guarantee, remark = _certified(certificate)
            note = "; ".join(part for part in (note, remark) if part) or None
        body = body_of(
            "release",
            name=check_text("name", name),
            kind=check_text("kind", kind),
            by=_maybe_text("by", by),
            fingerprint=None if data is None else fingerprint_of(data),
            dataset=None if dataset is None else check_dataset(dataset),
            guarantee=guarantee,
            audit=None if audit is None else audit_summary(audit),
            note=_maybe_text("note", note),
            at=at,
        )

        def make(session: Session) -> dict[str, Any]:
            if budget is not None:
                new = Entry.from_row(session.head().entries + 1, json.dumps(body), "", "")
                group = [*related(session, new.fingerprint, new.dataset), new]
                budget.check(_total(session, group, budget.delta))
            return body

        if budget is not None:
            self._store.try_reading(make)
        return self._store.append(make)

    def same_people(self, data: Any, dataset: str, *, by: str | None = None, note: str | None = None) -> Entry:
        """Declare that data is of the people named ``dataset``: from now on their releases count together."""
        body = body_of(
            "same people",
            fingerprint=fingerprint_of(data),
            dataset=check_dataset(dataset),
            by=_maybe_text("by", by),
            note=_maybe_text("note", note),
        )
        return self._store.append(lambda session: body)

    def retract(self, number: int, note: str, *, voids_guarantee: bool = False, by: str | None = None) -> Entry:
        """Add a note to a release that was withdrawn. It still counts: what went out cannot be taken back.

        With ``voids_guarantee`` its guarantee turned out wrong, and the release counts as one without.
        """
        number = check_whole("number", number, low=1, high=MOST_ENTRIES)
        if not isinstance(voids_guarantee, bool):
            raise InputTypeError(f"voids_guarantee must be True or False, got {voids_guarantee!r}")
        body = body_of(
            "retraction",
            about=number,
            note=check_text("note", note),
            voids_guarantee=voids_guarantee,
            by=_maybe_text("by", by),
        )

        def make(session: Session) -> dict[str, Any]:
            found = session.entry(number)
            if found is None or found.action != "release":
                raise InputError(f"number must be the number of a release, got {number}")
            return body

        return self._store.append(make)

    def entries(self, *, after: int = 0, limit: int | None = None) -> tuple[Entry, ...]:
        """Return entries in the order of writing: those with numbers above ``after``, at most ``limit``."""
        after = check_whole("after", after, high=MOST_ENTRIES)
        count = None if limit is None else check_whole("limit", limit, low=1, high=MOST_ENTRIES)
        with self._store.read() as session:
            if count is not None:
                return tuple(session.page(after, count))
            return tuple(entry for entry in session.every() if entry.number > after)

    def __len__(self) -> int:
        with self._store.read() as session:
            return int(session.head().entries)

    def __bool__(self) -> bool:
        return True

    def check(self, data: Any = None, *, dataset: str | None = None, delta: float | None = None) -> Total:
        """Return what all releases from the same people promise together.

        Parameters
        ----------
        data : table, array or fingerprint, optional
        dataset : str, optional
            Whom it is about: the data, or the name. One of them is needed.
        delta : float, optional
            The δ at which ε is wanted (see :func:`whosin.ledger.compose`).
        """
        if data is None and dataset is None:
            raise InputError("check needs data or dataset, got neither; totals() goes through all")
        fingerprint = None if data is None else fingerprint_of(data)
        name = None if dataset is None else check_dataset(dataset)
        with self._store.read() as session:
            return _total(session, related(session, fingerprint, name), delta)

    def totals(self, *, delta: float | None = None) -> tuple[Total, ...]:
        """Return the total of everybody in the ledger, one for each group of data of the same people."""
        with self._store.read() as session:
            entries = list(session.every())
        notes = [entry for entry in entries if entry.action == "retraction"]
        return tuple(total_of(group, notes, delta=delta) for group in groups(entries))

    def verify(self, head: str | None = None) -> Verification:
        """Check the chain of hashes.

        Parameters
        ----------
        head : str, optional
            A hash that was noted earlier: it must still be in the chain. Without it, a ledger that was written anew
            from the start, or cut together with its record of the end, looks intact.
        """
        wanted = None if head is None else fingerprint_of(check_text("head", head), name="head")
        with self._store.read() as session:
            end, problems, seen = session.check_chain()
        if wanted is not None and wanted not in seen:
            problems.append(f"the noted head {wanted[:12]}… is not in the chain: entries were taken away or rewritten")
        return Verification(end.entries, end.hash, tuple(problems))


def _maybe_text(name: str, value: str | None) -> str | None:
    return None if value is None else check_text(name, value)


def _total(session: Session, group: list[Entry], delta: float | None) -> Total:
    numbers = [entry.number for entry in group if entry.action == "release"]
    return total_of(group, session.where("about", numbers), delta=delta)


def _certified(certificate: Any) -> tuple[Guarantee | None, str]:
    """The guarantee of a certificate, and a remark; a release in test mode protects nobody and has none."""
    found = getattr(certificate, "certificate", certificate)
    known = found.to_dict() if hasattr(found, "to_dict") else found
    if isinstance(known, Mapping) and isinstance(known.get("certificate"), Mapping):
        known = known["certificate"]
    if not isinstance(known, Mapping) or not isinstance(known.get("mip"), Mapping):
        raise InputTypeError(f"certificate must be what wi.protect gave, got {type(certificate).__name__}")
    if known.get("test_mode") is not False:
        return None, "certificate of a test mode: nobody is protected"
    level = known.get("confidence_level")
    try:
        held = promise_from_dict(known["mip"])
    except LedgerError as error:
        raise InputError(f"certificate must be what wi.protect gave: {error}") from None
    if not isinstance(held, MIP):
        raise InputError(f"certificate must be what wi.protect gave: membership inference privacy, got {held}")
    return held, "certified" if level is None else f"certified with confidence {level!r}"

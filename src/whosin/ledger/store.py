"""The tables behind a ledger, in SQLite or PostgreSQL: entries are added one after the other and never changed.

Writers take turns: SQLite by BEGIN IMMEDIATE with a time to wait, PostgreSQL by an advisory lock that ends with the
transaction. An entry, the new head of the chain and the check of a budget are one transaction: it is there as a whole
or not at all. SQLite keeps its rollback journal (no write-ahead log), so that a copy on a read-only disk can be read.

The hash of an entry covers its number, its content and the hash before it. Triggers refuse changes; whoever removes
them and changes an entry, or takes one away, breaks the chain, and :meth:`Store.check_chain` says where. Somebody
with full rights can write a whole new chain: note the head elsewhere, and ask for it.

The schema has a version. A newer one is refused; an older one will be brought up to date inside the writers' lock by
adding columns and tables only, for the contents are hashed.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from whosin.errors import LedgerError, check_whole, missing_extra
from whosin.ledger.entries import MOST_ENTRIES, Entry, hash_of
from whosin.ledger.place import Place, default_path

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

SCHEMA = 1
META, ENTRIES = "whosin_ledger_meta", "whosin_ledger_entries"
WAIT = 60
"""Seconds that a writer waits for its turn."""
_LOCK = int.from_bytes(b"whosin", "big")
_PAGE = 2000
_COLUMNS = "number, body, previous, hash"

_TABLES = (
    f"CREATE TABLE {META} (name VARCHAR(40) PRIMARY KEY, value TEXT NOT NULL)",
    f"CREATE TABLE {ENTRIES} (number BIGINT PRIMARY KEY, action VARCHAR(20) NOT NULL, fingerprint VARCHAR(64), "
    "dataset TEXT, about BIGINT, body TEXT NOT NULL, previous VARCHAR(64) NOT NULL, hash VARCHAR(64) NOT NULL UNIQUE)",
    *(f"CREATE INDEX {ENTRIES}_{column} ON {ENTRIES} ({column})" for column in ("fingerprint", "dataset", "about")),
)
_SQLITE_TRIGGERS = tuple(
    f"CREATE TRIGGER {ENTRIES}_no_{change} BEFORE {change} ON {ENTRIES} "
    "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    for change in ("UPDATE", "DELETE")
)
_POSTGRES_TRIGGERS = (
    f"CREATE FUNCTION {ENTRIES}_keep() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$",
    f"CREATE TRIGGER {ENTRIES}_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON {ENTRIES} "
    f"FOR EACH STATEMENT EXECUTE FUNCTION {ENTRIES}_keep()",
)


class NoLedgerError(LedgerError):
    """Nothing was ever written there."""


@dataclass(frozen=True)
class Head:
    """The end of the chain."""

    entries: int
    hash: str


class Session:
    """One transaction: what can be asked inside it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def run(self, statement: str, **values: Any) -> list[Any]:
        """Return the rows of a statement, none where it gives none."""
        from sqlalchemy import text

        result = self._connection.execute(text(statement), values)
        return list(result.all()) if result.returns_rows else []

    def meta(self) -> dict[str, str]:
        """Return the names and values of the small table."""
        return {str(name): str(value) for name, value in self.run(f"SELECT name, value FROM {META}")}

    def head(self) -> Head:
        """Return the end of the chain as it was written last."""
        known = self.meta()
        try:
            return Head(check_whole("entries", int(known["entries"]), high=MOST_ENTRIES - 1), known["head"])
        except (KeyError, ValueError):
            raise LedgerError("the ledger is damaged: it does not say where its chain ends") from None

    def page(self, after: int, limit: int) -> list[Entry]:
        """Return entries with larger numbers, in order."""
        statement = f"SELECT {_COLUMNS} FROM {ENTRIES} WHERE number > :after ORDER BY number LIMIT :limit"
        return [Entry.from_row(*row) for row in self.run(statement, after=after, limit=limit)]

    def every(self) -> Iterator[Entry]:
        """Go through all entries, a page at a time."""
        after = 0
        while found := self.page(after, _PAGE):
            yield from found
            after = found[-1].number

    def entry(self, number: int) -> Entry | None:
        """Return one entry, or None."""
        found = self.page(number - 1, 1)
        return found[0] if found and found[0].number == number else None

    def where(self, column: str, values: Iterable[Any]) -> list[Entry]:
        """Return the entries in which a column has one of the values."""
        from sqlalchemy import bindparam, text

        statement = text(f"SELECT {_COLUMNS} FROM {ENTRIES} WHERE {column} IN :values ORDER BY number")
        statement = statement.bindparams(bindparam("values", expanding=True))
        listed = list(values)
        rows: list[Any] = []
        for start in range(0, len(listed), 500):
            rows += self._connection.execute(statement, {"values": listed[start : start + 500]}).all()
        return [Entry.from_row(*row) for row in rows]

    def write(self, body: dict[str, Any]) -> Entry:
        """Add an entry at the end of the chain."""
        head = self.head()
        number, content = head.entries + 1, json.dumps(body, ensure_ascii=False, allow_nan=False, sort_keys=True)
        hash = hash_of(number, head.hash, content)
        keys = ("action", "fingerprint", "dataset", "about")
        self.run(
            f"INSERT INTO {ENTRIES} (number, action, fingerprint, dataset, about, body, previous, hash) "
            "VALUES (:number, :action, :fingerprint, :dataset, :about, :body, :previous, :hash)",
            number=number,
            body=content,
            previous=head.hash,
            hash=hash,
            **{key: body.get(key) for key in keys},
        )
        for name, value in (("entries", str(number)), ("head", hash)):
            self.run(f"UPDATE {META} SET value = :value WHERE name = :name", name=name, value=value)
        return Entry.from_row(number, content, head.hash, hash)

    def check_chain(self) -> tuple[Head, list[str], set[str]]:
        """Return the head, what is wrong, and every hash of the chain. O(entries) time."""
        known, written = self.meta(), self.head()
        problems: list[str] = []
        number, previous = 0, _genesis(known.get("ledger", ""))
        seen, counted = {previous}, 0
        statement = (
            f"SELECT {_COLUMNS}, action, fingerprint, dataset, about FROM {ENTRIES} WHERE number > :after "
            "ORDER BY number LIMIT :limit"
        )
        while rows := self.run(statement, after=number, limit=_PAGE):
            if not all(isinstance(row[0], int) for row in rows):
                break
            counted += len(rows)
            for row in rows:
                problems += _row_problems(row, number + 1, previous)
                number, previous = int(row[0]), str(row[3])
                seen.add(previous)
        if written != Head(number, previous):
            problems.append(f"the chain ends at entry {number}, but {written.entries} entries were written")
        lines = int(self.run(f"SELECT COUNT(*) FROM {ENTRIES}")[0][0])
        if lines != counted:
            problems.append(f"{lines - counted} entries without a number of their own were put in")
        return written, problems, seen


def _row_problems(row: Any, expected: int, previous: str) -> list[str]:
    number, body, before, hash, *keys = row
    found = []
    if number != expected:
        found.append(f"entry {expected} is missing")
    elif before != previous:
        found.append(f"entry {number} does not follow the entry before it")
    if hash != hash_of(number, before, body):
        found.append(f"entry {number} was changed")
        return found
    try:
        content = json.loads(body)
        Entry.from_row(number, body, before, hash)
    except (ValueError, TypeError, RecursionError, LedgerError):
        return [*found, f"entry {number} cannot be read"]
    if keys != [content.get(name) for name in ("action", "fingerprint", "dataset", "about")]:
        found.append(f"entry {number}: its keys for look-up were changed")
    return found


def _genesis(ledger: str) -> str:
    return hashlib.sha256(f"whosin ledger {ledger}".encode()).hexdigest()


class Store:
    """Opens the tables of a ledger for one transaction at a time; nothing stays open between them.

    A store can be handed to other processes and threads.
    """

    def __init__(self, place: Place) -> None:
        self.place = place

    def __getstate__(self) -> dict[str, Any]:
        """Pickle the place only: the engine is made again where it is needed."""
        return {"place": self.place}

    def read(self) -> Any:
        """Return a context with a :class:`Session` to read in; a ledger that is not there is an error."""
        return self._session(writing=False)

    def try_reading(self, look: Callable[[Session], object]) -> None:
        """Let ``look`` see the ledger if there is one: long work is done and kept before others are locked out."""
        try:
            with self._session(writing=False) as session:
                look(session)
        except NoLedgerError:
            return

    def append(self, make: Callable[[Session], dict[str, Any]]) -> Entry:
        """Add what ``make`` returns; it sees the ledger as it is, and nobody else writes until it is done."""
        with self._session(writing=True) as session:
            return session.write(make(session))

    @contextmanager
    def _session(self, writing: bool) -> Iterator[Session]:
        if self.place.path is not None:
            self._find_file(create=writing)
        engine = self._engine
        with self._clean_errors(), engine.connect() as connection:
            session = Session(connection)
            if self.place.path is not None:
                connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")
            elif writing:
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{WAIT}s'")
                session.run("SELECT pg_advisory_xact_lock(:key)", key=_LOCK)
            else:
                connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            self._check_schema(session, create=writing)
            yield session
            connection.commit()

    def _find_file(self, create: bool) -> None:
        path = self.place.path
        assert path is not None
        try:
            if create and not path.exists():
                if path == default_path():
                    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            found, folder = path.is_file(), path.is_dir()
        except OSError as error:
            raise LedgerError(f"the ledger {path} cannot be made or opened: {error.strerror}") from None
        if folder:
            raise LedgerError(f"the ledger must be a file, got the folder {path}")
        if not found:
            raise NoLedgerError(f"there is no ledger at {path}")

    @cached_property
    def _engine(self) -> Engine:
        try:
            from sqlalchemy import create_engine
            from sqlalchemy.pool import NullPool

            options: dict[str, Any] = {"poolclass": NullPool, "hide_parameters": True}
            if self.place.path is not None:
                return create_engine("sqlite://", creator=self._open_file, **options)
            url = self.place.url()
            limit = {} if "connect_timeout" in url.query else {"connect_timeout": 10}
            return create_engine(url, connect_args=limit, **options)
        except ImportError:
            raise missing_extra("a ledger needs SQLAlchemy, and psycopg for PostgreSQL", "ledger") from None

    def _open_file(self) -> sqlite3.Connection:
        assert self.place.path is not None
        return sqlite3.connect(
            f"{self.place.path.absolute().as_uri()}?mode=rw", uri=True, timeout=WAIT, isolation_level=None
        )

    def _check_schema(self, session: Session, create: bool) -> None:
        tables = _tables(session)
        if META not in tables:
            if self.place.path is not None and tables:
                raise LedgerError(f"{self.place} is a database of something else, not a ledger")
            if not create:
                raise NoLedgerError(f"there is no ledger at {self.place}")
            _create(session)
            return
        version = session.meta().get("schema", "")
        if version != str(SCHEMA):
            raise LedgerError(
                f"the ledger {self.place} has schema {version!r}, and this whosin knows {SCHEMA}: install a newer "
                "whosin; nothing was changed"
            )

    @contextmanager
    def _clean_errors(self) -> Iterator[None]:
        from sqlalchemy.exc import SQLAlchemyError

        try:
            yield
        except SQLAlchemyError as error:
            raise LedgerError(f"the ledger {self.place} {_reason(str(getattr(error, 'orig', error)))}") from None
        except UnicodeDecodeError:
            raise LedgerError(f"the ledger {self.place} {_reason('malformed')}") from None


def _tables(session: Session) -> set[str]:
    if session._connection.dialect.name == "sqlite":
        return {str(row[0]) for row in session.run("SELECT name FROM sqlite_master WHERE type = 'table'")}
    return {str(row[0]) for row in session.run(f"SELECT '{META}' WHERE to_regclass('{META}') IS NOT NULL")}


def _create(session: Session) -> None:
    triggers = _SQLITE_TRIGGERS if session._connection.dialect.name == "sqlite" else _POSTGRES_TRIGGERS
    for statement in (*_TABLES, *triggers):
        session._connection.exec_driver_sql(statement)
    ledger = str(uuid.uuid4())
    for name, value in (("schema", str(SCHEMA)), ("ledger", ledger), ("entries", "0"), ("head", _genesis(ledger))):
        session.run(f"INSERT INTO {META} (name, value) VALUES (:name, :value)", name=name, value=value)


_REASONS = (
    ("is not a database", "is not a ledger: the file holds something else"),
    ("malformed", "is damaged: the file is not a whole database"),
    ("readonly", "cannot be written: it may only be read"),
    ("unable to open", "cannot be opened: no permission, or its folder may not be written"),
    ("database is locked", f"is busy: another writer held it for {WAIT} seconds; nothing was recorded"),
    ("lock timeout", f"is busy: another writer held it for {WAIT} seconds; nothing was recorded"),
    ("disk is full", "cannot be written: the disk is full"),
    ("disk i/o", "cannot be read or written: the disk failed"),
    ("append-only", "is append-only: entries are never changed"),
    ("authentication failed", "refuses the user or the password"),
    ("no password supplied", "refuses the user or the password"),
    ("permission denied", "does not let this user do that: permission denied"),
    ("read-only transaction", "cannot be written: it may only be read"),
    ("does not exist", "cannot be opened: no such database or user"),
    ("timeout", "cannot be reached: no answer in time"),
    ("refused", "cannot be reached: no server answers there"),
    ("no such file", "cannot be reached: no server answers there"),
    ("resolve", "cannot be reached: no such host"),
    ("translate host", "cannot be reached: no such host"),
    ("connection", "cannot be reached, or the connection broke; nothing was recorded"),
)


def _reason(words: str) -> str:
    """What went wrong in our words: those of the driver may repeat parts of the URL."""
    lowered = words.lower()
    return next((reason for sign, reason in _REASONS if sign in lowered), "cannot be used: the database failed")

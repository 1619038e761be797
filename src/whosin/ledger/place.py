"""Where a ledger lies: a file, or a database by URL. A password never leaves this module as text."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from whosin.errors import InputError, InputTypeError, missing_extra
from whosin.parallel.storage import user_folder

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

VARIABLE = "WHOSIN_LEDGER"
_DRIVERS = {
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
}


_ALMOST = re.compile(r"(postgres|postgresql|postgresql\+\w+|sqlite)[:;]|(postgres|postgresql)/+[^/]*@", re.IGNORECASE)
"""What was meant as a URL: as a path, it would be shown."""


def default_path() -> Path:
    """Return the file that is used where none is named: ledger.db in the user's own data folder."""
    return user_folder() / "ledger.db"


class Place:
    """The address of a ledger: shown without its password, whatever happens.

    A file, ``sqlite:///file``, ``postgresql://user:password@host/database``, or None for the environment variable
    WHOSIN_LEDGER and, without it, a file in the user's data folder.
    """

    def __init__(self, address: str | os.PathLike[str] | None = None) -> None:
        given: object = address if address is not None else os.environ.get(VARIABLE) or default_path()
        if not isinstance(given, str | os.PathLike):
            raise InputTypeError(f"the ledger must be a path or a URL, got {type(given).__name__}")
        text = os.fspath(given)
        if not isinstance(text, str) or not text.strip() or "\0" in text or text == ":memory:":
            raise InputError("the ledger must be a path or a URL, got nothing that could keep a ledger")
        if "://" not in text and _ALMOST.match(text):
            raise InputError(
                "the ledger must be a URL with :// after its kind, got one without (it may hold a password)"
            )
        url = _parsed(text) if "://" in text else None
        self.path: Path | None = Path(text) if url is None else None
        if url is not None and url.drivername == "sqlite":
            if not url.database or url.database == ":memory:" or url.query:
                raise InputError("the ledger must be sqlite:///file, got a URL without a file or with options")
            self.path = Path(url.database)
        self._url = url if self.path is None else None

    def url(self) -> URL:
        """Return what the engine takes; the password is inside."""
        from sqlalchemy.engine import URL

        return self._url if self._url is not None else URL.create("sqlite", database=str(self.path))

    def __str__(self) -> str:
        if self._url is None:
            return str(self.path)
        return self._url.set(drivername="postgresql", query={}).render_as_string(hide_password=True)

    def __repr__(self) -> str:
        return f"Place({str(self)!r})"


def _parsed(text: str) -> URL:
    """Return the parts of a URL. No error repeats the text, for it may hold a password in the wrong place."""
    try:
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import ArgumentError
    except ImportError:
        raise missing_extra("a ledger needs SQLAlchemy", "ledger") from None
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise InputError(
            "the ledger must be a path, sqlite:///file or postgresql://user:password@host/database, got a URL that "
            "cannot be read (not shown: it may hold a password)"
        ) from None
    if url.drivername not in _DRIVERS:
        raise InputError("the ledger must be a URL that starts with sqlite:// or postgresql://, got another kind")
    before = text.split("://", 1)[1].rpartition("@")[0]
    if not before.startswith("/") and (set(before) & set("/?#@") or (":" in before and url.password is None)):
        raise InputError("the ledger's URL has one of / ? # @ before its last @: write them as %2F %3F %23 %40")
    return url.set(drivername=_DRIVERS[url.drivername])

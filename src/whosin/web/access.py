"""Who may come in: a random token, a password where others can reach the server, and a session that proves it."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from dataclasses import dataclass, field

from whosin.errors import InputError

SHORTEST_PASSWORD = 12
FAILURES_A_MINUTE = 10


class TooManyTries(Exception):
    """Ten wrong passwords came in a minute."""


@dataclass(frozen=True)
class Password:
    """A password as salted scrypt (RFC 7914, n = 2^14, r = 8, p = 1: 16 MB and tens of milliseconds a try)."""

    salt: bytes = field(repr=False)
    digest: bytes = field(repr=False)

    @classmethod
    def of(cls, text: str) -> Password:
        """Return the digest of a password of at least twelve characters."""
        if len(text) < SHORTEST_PASSWORD:
            raise InputError(f"the password must have at least {SHORTEST_PASSWORD} characters, got {len(text)}")
        salt = secrets.token_bytes(16)
        return cls(salt, _scrypt(text, salt))

    def matches(self, text: str) -> bool:
        """Return whether this is the password, in a time that does not tell how nearly."""
        return hmac.compare_digest(_scrypt(text, self.salt), self.digest)


class Access:
    """The secrets of one run of the server; all of them are new at the next start.

    Without a password people come in by the address that holds the token.
    """

    def __init__(self, password: Password | None = None) -> None:
        self.password = password
        self.token = secrets.token_urlsafe(32)
        """Comes in by the address once, or with every call of the API."""
        self.session = secrets.token_urlsafe(32)
        """Value of the cookie."""
        self.csrf = secrets.token_urlsafe(32)
        """Stands in the pages, and comes back with every request that changes something."""
        self._failures: list[float] = []
        self._lock = threading.Lock()

    def comes_in(self, text: str) -> bool:
        """Return whether the text is the token, or the password.

        One password is tried at a time, and after ten wrong ones in a minute nobody's is (TooManyTries), however many
        arrive at once.
        """
        if same(text, self.token):
            return True
        if self.password is None:
            return False
        with self._lock:
            since = time.monotonic() - 60.0
            self._failures = [at for at in self._failures if at > since]
            if len(self._failures) >= FAILURES_A_MINUTE:
                raise TooManyTries
            known = self.password.matches(text)
            if not known:
                self._failures.append(time.monotonic())
            return known


def same(given: str, secret: str) -> bool:
    """Return whether a text is the secret, in a time that does not tell how nearly."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), secret.encode())


def _scrypt(text: str, salt: bytes) -> bytes:
    return hashlib.scrypt(text.encode("utf-8", "surrogatepass"), salt=salt, n=2**14, r=8, p=1, dklen=32)

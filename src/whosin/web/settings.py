"""What the page allows: sizes, numbers, times, and where its files lie."""

from __future__ import annotations

import ipaddress
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from whosin.errors import InputError, check_number, check_whole
from whosin.web.tools import Tool

MEGABYTE = 1_000_000
_HEADER = re.compile(r"[A-Za-z0-9-]+", re.ASCII)


@dataclass(frozen=True)
class Limits:
    """Bounds on everything that a visitor can make the server do."""

    upload_bytes: int = 50 * MEGABYTE
    """Of each file, counted while it arrives."""
    uploading: int = 4
    """Audits whose files arrive at the same time."""
    upload_seconds: float = 600.0
    """Time that the files of one audit may take to arrive."""
    rows: int = 200_000
    """Of each table."""
    columns: int = 500
    """Of each table."""
    running: int = 1
    """Audits at work at the same time."""
    queued: int = 8
    """Audits that wait for their turn."""
    seconds: float = 900.0
    """Time that one audit may take."""
    memory_bytes: int = 4_000 * MEGABYTE
    """Address space that one audit may take, where the system can limit it."""
    audits: int = 500
    """Audits in the history."""
    keep_hours: float = 24.0
    """Uploads that an accident left behind, reports and details are removed after this time."""
    computing: int = 2
    """Explanations and calibrations that are computed at the same time."""
    answer_seconds: float = 30.0
    """Time that the answer to a question about DP-SGD may take."""

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            if isinstance(limit.default, int):
                check_whole(limit.name, value, low=1)
            else:
                check_number(limit.name, value, low=0.0, open_low=True, open_high=True)


@dataclass(frozen=True)
class Login:
    """A proxy in front of the server that has people log in, and tells in a header who they are.

    The header is believed from these addresses alone: whoever can send requests from one of them is in. The proxy has
    to set the header itself, whatever the request that it passes on says.
    """

    header: str
    proxies: tuple[str, ...]

    def __post_init__(self) -> None:
        if not _HEADER.fullmatch(self.header):
            raise InputError(f"--login-header must be the name of a header (X-Forwarded-User), got {self.header!r}")
        if not self.proxies:
            raise InputError("--login-header needs --behind-proxy, the address of the proxy that sets it")
        for text in self.proxies:
            if _network(text).prefixlen == 0:
                raise InputError(f"--behind-proxy must be the address of a proxy, got {text!r}, which is everybody's")

    def knows(self, address: str, named: list[str]) -> bool:
        """Return whether a request from this address, with these values of the header, is one of somebody logged in."""
        if len(named) != 1 or not named[0].strip():
            return False
        try:
            came_from = ipaddress.ip_address(address)
        except ValueError:
            return False
        came_from = getattr(came_from, "ipv4_mapped", None) or came_from  # as IPv6 sockets tell IPv4 addresses
        return any(came_from in _network(text) for text in self.proxies)


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise InputError(
            f"--behind-proxy must be an address or a network (10.0.0.0/24), got {text!r}: {error}"
        ) from None


@dataclass(frozen=True)
class Settings:
    """How one server runs."""

    data_dir: Path
    limits: Limits = field(default_factory=Limits)
    names: tuple[str, ...] = ("127.0.0.1", "localhost", "[::1]")
    """Host names under which the page answers; any other is refused (DNS rebinding)."""
    any_address: bool = False
    """Whether every numeric address is such a name too, for servers that listen on all of them."""
    login: Login | None = None
    """Where a proxy has people log in."""
    worker: tuple[str, ...] = (sys.executable, "-P", "-m", "whosin.web.worker")
    """Command that runs one audit; the folder of the audit is added. With ``-P`` nothing is imported from the folder
    that the server was started in."""
    tools: Mapping[str, Tool] = field(default_factory=dict)
    """Further tabs, each with the form of a command."""


@dataclass(frozen=True)
class Binding:
    """Where the server listens."""

    host: str = "127.0.0.1"
    port: int = 8642
    allow_remote: bool = False
    names: tuple[str, ...] = ()
    """Further host names under which people reach the server; with ``allow_remote`` only."""

    def __post_init__(self) -> None:
        check_whole("--port", self.port, low=0, high=65_535)
        if not self.allow_remote and self.names:
            raise InputError("--name goes with --allow-remote")
        if not self.allow_remote and not self.is_loopback:
            raise InputError(
                f"--host must be an address of this machine alone (127.0.0.1), got {self.host!r}; others could reach "
                "it, which needs --allow-remote and a password"
            )

    @property
    def is_loopback(self) -> bool:
        """Whether nobody but this machine can reach the address; names other than localhost are not looked up."""
        if self.host.lower() == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


def private_folder(path: Path) -> Path:
    """Return the folder, made if need be, that only its owner may open (mode 0700).

    A folder that was there and that others may open is refused, and not changed: it may be shared on purpose.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.stat()
    except OSError as error:
        raise InputError(f"--data-dir must be a folder that can be made, got {str(path)!r}: {error.strerror}") from None
    if os.name == "posix":
        if found.st_uid != os.getuid():
            raise InputError(f"--data-dir must be a folder of your own, got {str(path)!r}, which another user owns")
        if found.st_mode & 0o077:
            raise InputError(
                f"--data-dir must be a folder that nobody else may open, got {str(path)!r}: chmod 700 it, or name "
                "another"
            )
    return path

"""Binding to an address and serving until Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from dataclasses import replace

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from whosin.errors import InputError
from whosin.web.access import Password
from whosin.web.app import create_app
from whosin.web.settings import Binding, Settings

HEAD_SECONDS = 15.0


def serve(
    settings: Settings, binding: Binding, password: Password | None, announce: Callable[[str, str], None]
) -> None:
    """Serve the page until it is stopped.

    The host names come from ``binding``. ``announce`` is called with the address to open and with the token, once the
    port is taken. A port that is taken, a folder that is not private or in use, and a missing password are InputErrors.
    """
    if not binding.is_loopback and password is None and settings.login is None:
        raise InputError("a server that others can reach needs a password")
    listening = _listen(binding)
    try:
        host = binding.host.lower()
        names = {*settings.names, f"[{host}]" if ":" in host else host, *(name.lower() for name in binding.names)}
        known = replace(settings, names=tuple(sorted(names)), any_address=binding.allow_remote)
        app = create_app(known, password)
        app.state.service.questions.warm()
        access = app.state.service.access
        shown = _shown(binding.host)
        address = f"http://{shown}:{listening.getsockname()[1]}/"
        closed = password is not None or settings.login is not None
        announce(address if closed else f"{address}?token={access.token}", access.token)
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=15,
            timeout_graceful_shutdown=3,
            limit_concurrency=100,
            h11_max_incomplete_event_size=32_768,
            proxy_headers=False,
            ws="none",
            http=_Impatient,
        )
        uvicorn.Server(config).run(sockets=[listening])
    finally:
        listening.close()


class _Impatient(H11Protocol):
    """HTTP/1.1 that hangs up on whoever does not say in time what they want, and so would only hold a place."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._waiting_since = self.loop.time()
        self.loop.call_later(HEAD_SECONDS, self._look)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._waiting_since = self.loop.time()

    def _look(self) -> None:
        if self.transport.is_closing():
            return
        answered = self.cycle is None or self.cycle.response_complete
        if answered and self.loop.time() - self._waiting_since >= HEAD_SECONDS:
            self.transport.close()
        else:
            self.loop.call_later(HEAD_SECONDS / 3, self._look)


def _shown(host: str) -> str:
    """Return the host for an address that a browser takes."""
    if host in ("0.0.0.0", "::"):
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host


def _listen(binding: Binding) -> socket.socket:
    family = socket.AF_INET6 if ":" in binding.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":  # elsewhere it would let two servers share one port
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((binding.host, binding.port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise InputError(
            f"cannot listen on {binding.host} port {binding.port}: {error.strerror or error}; choose another with "
            "--port"
        ) from None
    return listening

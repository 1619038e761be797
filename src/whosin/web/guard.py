"""Every request passes here, static files too, and every answer leaves with its headers.

In this order: is the server called by a name of its own (DNS rebinding), does a request that changes something come
from our own pages (CSRF: ``Sec-Fetch-Site``, ``Origin`` and a token), and does whoever asks know the token, or hold
the cookie that it was exchanged for; or does a proxy that has people log in say who it is. Whether the server is
alive is told to everybody.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import json
import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from whosin.web.access import Access, same
from whosin.web.rendering import render
from whosin.web.settings import Settings

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
REPORT_POLICY = (
    "default-src 'none'; script-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; "
    "frame-ancestors 'none'; sandbox"
)
"""A report has its style inside; it runs nothing and, sandboxed, is not even of the same origin as the page."""

HEADERS = {
    "Content-Security-Policy": PAGE_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
_HARMLESS = frozenset({"GET", "HEAD", "OPTIONS"})
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:@/\[\]]+)(?::[0-9]{1,5})?", re.ASCII)
LOGIN = "/login"
HEALTH = "/health"


class Guard:
    """ASGI middleware that lets in whoever may, and sets the headers of every answer."""

    def __init__(self, app: ASGIApp, settings: Settings, access: Access) -> None:
        self.app, self.settings, self.access = app, settings, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or pass on one request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refused = self._refusal(scope)
        await (self.app if refused is None else refused)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._own_name(hosts[0]):
            return _refuse(scope, 421, "this server does not answer under that host name")
        harmless = scope["method"] in _HARMLESS
        if not harmless and not _from_our_pages(headers, self._origins(hosts[0])):
            return _refuse(scope, 403, "a request that changes something must come from the page itself")
        if scope["path"] in (LOGIN, HEALTH):
            return None
        by_address = self._by_address(scope)
        if by_address is not None:
            return by_address
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and same(given.strip(), self.access.token):
            return None
        if not self._logged_in(scope, headers) and not any(
            same(value, self.access.session) for value in _cookies(headers, cookie_name(scope))
        ):
            return _refuse(scope, 401, self._way_in())
        if not harmless and not same(headers.get("x-csrf-token", ""), self.access.csrf):
            return _refuse(scope, 403, "the token of the page is missing or old: load the page again")
        return None

    def _own_name(self, host: str) -> bool:
        found = _HOST.fullmatch(host)
        if found is None:
            return False
        name = found[1]
        if name.lower() in self.settings.names:
            return True
        try:
            ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return False
        return self.settings.any_address

    def _logged_in(self, scope: Scope, headers: Headers) -> bool:
        login, client = self.settings.login, scope.get("client")
        return login is not None and client is not None and login.knows(client[0], headers.getlist(login.header))

    def _way_in(self) -> str:
        if self.settings.login is None:
            return "open the address that whosin serve printed, or send its token"
        return "come by the address with your organisation's login: no login arrived from its proxy"

    def _origins(self, host: str) -> tuple[str, ...]:
        """Return the origins of our own pages; a server for other machines may stand behind a proxy with TLS."""
        return (f"http://{host}", f"https://{host}") if self.settings.any_address else (f"http://{host}",)

    def _by_address(self, scope: Scope) -> Response | None:
        """Exchange a token in the address for the cookie, and take it out of the address."""
        fields = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        tokens = [value for name, value in fields if name == "token"]
        closed = self.access.password is not None or self.settings.login is not None
        if not tokens or closed or scope["method"] != "GET":
            return None
        if not same(tokens[0], self.access.token):
            return _refuse(
                scope, 401, "the token in the address is not that of this server; it has a new one each start"
            )
        rest = urlencode([(name, value) for name, value in fields if name != "token"])
        # one slash in front: "//host" would lead elsewhere
        path = "/" + scope["path"].lstrip("/\\")
        response = RedirectResponse(path + (f"?{rest}" if rest else ""), status_code=303)
        set_session(response, scope, self.access)
        return response


def set_session(response: Response, scope: Scope, access: Access) -> None:
    """Hand the session's cookie to a browser: no script reads it, and no other site sends it."""
    response.set_cookie(cookie_name(scope), access.session, path="/", httponly=True, samesite="strict")


def cookie_name(scope: Scope) -> str:
    """Return a name of its own for each port, since browsers share cookies between ports."""
    server = scope.get("server")
    return f"whosin-{server[1] if server else 0}"


def _cookies(headers: Headers, name: str) -> list[str]:
    found = (cookie_parser(line).get(name) for line in headers.getlist("cookie"))
    return [value for value in found if value]


def _from_our_pages(headers: Headers, own: tuple[str, ...]) -> bool:
    """Return whether neither of the headers that browsers set says otherwise.

    Where no referrer is sent, the origin of a plain form is "null"; ``Sec-Fetch-Site``, which no page can set, decides.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is None:
        return origin in (None, *own)
    return site == "same-origin" and origin in (None, "null", *own)


def _came_by_link(scope: Scope) -> bool:
    """Return whether another site, or a file, led here: then the browser kept the cookie back."""
    headers = Headers(scope=scope)
    return headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") == "navigate"


def _refuse(scope: Scope, status: int, reason: str) -> Response:
    """Answer with the reason: as JSON for the API, for people as a page where they can come in."""
    headers = {"Connection": "close"}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if scope["path"].startswith("/api/") or scope["path"] == "/openapi.json":
        return Response(json.dumps({"error": reason}), status, headers, "application/json")
    if status == 401 and scope["method"] == "GET" and not scope["path"].startswith("/static/"):
        return closed_page(status, reason, headers, again=_came_by_link(scope))
    return Response(reason, status, headers, "text/plain")


STYLE = (
    ":root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;max-width:34rem;margin:4rem auto;"
    "padding:0 1.25rem}label{display:block;margin:1rem 0 .3rem}input,button{font:inherit;padding:.5rem .7rem}"
    "input{width:100%;box-sizing:border-box;margin-bottom:.7rem}"
)
_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; style-src 'sha256-{_HASH}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"


def closed_page(
    status: int, reason: str, headers: Mapping[str, str] | None = None, *, again: bool = False
) -> HTMLResponse:
    """Return the page that asks for the token or the password; it may load itself again at once."""
    page = render("login.html.j2", reason=reason, style=STYLE, again=again)
    return HTMLResponse(page, status, {**(headers or {}), "Content-Security-Policy": POLICY})

"""The page for whoever is not in yet: it needs no other file, since none is handed out before."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping

from starlette.responses import HTMLResponse

from whosin.web.rendering import render

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

"""The application: routes, errors in words, and the guard in front of all of it."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.staticfiles import StaticFiles

from whosin.errors import WhosinError
from whosin.web import api, pages
from whosin.web.access import Password
from whosin.web.guard import Guard
from whosin.web.jobs import TooMany
from whosin.web.questions import Busy
from whosin.web.rendering import render
from whosin.web.service import Service, Unknown, in_words
from whosin.web.settings import Settings
from whosin.web.uploads import TooLarge

_log = logging.getLogger("whosin.web")

_STATUS: dict[type[Exception], int] = {
    WhosinError: 422,
    TypeError: 422,
    TooLarge: 413,
    TooMany: 429,
    Busy: 429,
    Unknown: 404,
    ClientDisconnect: 400,
}
NO_ROOM = "the server cannot read or write its files: its disk may be full"


def create_app(settings: Settings, password: Password | None = None) -> FastAPI:
    """Return the application of one server; InputError if its folder is not private, or another server uses it."""
    service = Service.open(settings, password)

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        service.jobs.start()
        try:
            yield
        finally:
            service.close()

    app = FastAPI(
        title="whosin",
        version=version("whosin"),
        description="Can anyone tell who is in your data? Every request takes the token: Authorization: Bearer TOKEN.",
        docs_url=None,
        redoc_url=None,
        lifespan=life,
        middleware=[Middleware(Guard, settings=settings, access=service.access)],
    )
    app.state.service = service
    for kind in (*_STATUS, OSError, sqlite3.Error, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _wrong)
    app.include_router(api.router)
    app.include_router(pages.router)
    app.mount("/static", StaticFiles(directory=Path(__file__).parent / "static"), name="static")
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    return app


def _described(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        schema = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=api.router.routes
        )
        schema["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        schema["security"] = [{"token": []}]
        app.openapi_schema = schema
    return app.openapi_schema


async def _wrong(request: Request, error: Exception) -> Response:
    if isinstance(error, RequestValidationError):
        return _say(request, 422, in_words(error.errors()))
    if isinstance(error, HTTPException):
        return _say(request, error.status_code, str(error.detail), dict(error.headers or {}))
    status = next((status for kind, status in _STATUS.items() if isinstance(error, kind)), None)
    if status is not None:
        return _say(request, status, str(error))
    _log.error("%s: %s", NO_ROOM, getattr(error, "strerror", None) or error)
    return _say(request, 507, NO_ROOM)


def _say(request: Request, status: int, reason: str, headers: dict[str, str] | None = None) -> Response:
    """Answer with what was wrong: as JSON for the API, as a paragraph inside the page, or as a page."""
    if request.scope["path"].startswith("/api/"):
        return JSONResponse({"error": reason}, status, headers)
    inside = request.headers.get("hx-request") == "true"
    tabs = pages.tabs_of(request.app.state.service.settings)
    page = render("problem.html.j2" if inside else "error.html.j2", reason=reason, csrf="", tab="", tabs=tabs)
    return HTMLResponse(page, status, headers)

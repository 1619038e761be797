"""The pages, and the parts of them that follow a slider, an upload or a choice."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import APIRouter, Depends, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from whosin.errors import InputError
from whosin.reporting.pdf import to_pdf
from whosin.reporting.preview import preview_blocks
from whosin.web import answers, views
from whosin.web.access import TooManyTries
from whosin.web.api import report_response
from whosin.web.guard import HEALTH, LOGIN, closed_page, set_session
from whosin.web.models import HEAVY, AuditOptions, CalibrateQuery, ExplainQuery
from whosin.web.rendering import render
from whosin.web.service import Service, Unknown, service_of
from whosin.web.settings import Settings
from whosin.web.sliders import CALIBRATE, EXPLAIN, filled
from whosin.web.tools import Tool
from whosin.web.uploads import TooLarge

router = APIRouter(include_in_schema=False)
In = Annotated[Service, Depends(service_of)]
_TABS = ("explain", "calibrate", "audit", "scores", "compare")
LONGEST_FORM = 1_000
LOGIN_SECONDS = 10.0


def tabs_of(settings: Settings) -> list[tuple[str, str]]:
    """Return the name and the address of every tab."""
    return [*((name, f"/{name}") for name in _TABS), *((name, f"/tool/{name}") for name in settings.tools)]


def _page(service: Service, tab: str, template: str | None = None, **values: Any) -> HTMLResponse:
    page = render(
        f"{template or tab}.html.j2", tab=tab, tabs=tabs_of(service.settings), csrf=service.access.csrf, **values
    )
    return HTMLResponse(page)


def _part(template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Return a part of a page, which takes the place of what was there."""
    return HTMLResponse(render(f"{template}.html.j2", **values), status)


@router.get("/")
def home() -> RedirectResponse:
    """Lead to the first tab."""
    return RedirectResponse("/explain", status_code=303)


@router.get(HEALTH)
def health() -> PlainTextResponse:
    """Say that the server answers, and nothing else."""
    return PlainTextResponse("ok")


@router.get(LOGIN)
def login_page() -> HTMLResponse:
    """Ask for the token or the password."""
    return closed_page(200, "This page is closed to whoever does not know its token or password.")


@router.post(LOGIN)
async def login(request: Request, service: In) -> Response:
    """Let in whoever knows the token or the password."""
    try:
        async with asyncio.timeout(LOGIN_SECONDS):
            secret = (await _short_form(request)).get("secret", "")
    except TooLarge as error:
        return closed_page(413, str(error), {"Connection": "close"})
    except TimeoutError:
        return closed_page(408, "That took too long.", {"Connection": "close"})
    try:
        known = await run_in_threadpool(service.access.comes_in, secret)
    except TooManyTries:
        return closed_page(429, "Too many wrong passwords: wait a minute.")
    if not known:
        return closed_page(401, "That is neither the token nor the password of this server.")
    response = RedirectResponse("/explain", status_code=303)
    set_session(response, request.scope, service.access)
    return response


async def _short_form(request: Request) -> dict[str, str]:
    """Return the fields of a short form; one that is longer is refused before it is read."""
    if int(request.headers.get("content-length", "0") or 0) > LONGEST_FORM:
        raise TooLarge("That is too long.")
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > LONGEST_FORM:
            raise TooLarge("That is too long.")
    try:
        return dict(parse_qsl(body.decode("utf-8", "replace"), max_num_fields=5))
    except ValueError:
        return {}


@router.get("/style/base.css")
def style() -> Response:
    """Return the style of the reports, on which that of the pages builds."""
    return Response(render("style.css.j2"), media_type="text/css")


@router.get("/explain")
async def explain_page(query: Annotated[ExplainQuery, Query()], request: Request, service: In) -> HTMLResponse:
    """Show what a guarantee means."""
    answer = await _explained(query, request, service)
    return _page(service, "explain", query=query, sliders=filled(EXPLAIN, query), **answer)


@router.get("/explain/answer")
async def explain_answer(query: Annotated[ExplainQuery, Query()], request: Request, service: In) -> HTMLResponse:
    """Return what follows the sliders."""
    return _part("answer", **await _explained(query, request, service))


async def _explained(query: ExplainQuery, request: Request, service: Service) -> dict[str, Any]:
    sentence, blocks = await service.answer(request, views.explained, query, heavy=query.kind in HEAVY)
    return {"sentence": sentence, "blocks": blocks}


@router.get("/calibrate")
async def calibrate_page(query: Annotated[CalibrateQuery, Query()], request: Request, service: In) -> HTMLResponse:
    """Show which parameters keep a risk."""
    answer = await _calibrated(query, request, service)
    return _page(service, "calibrate", query=query, sliders=filled(CALIBRATE, query), **answer)


@router.get("/calibrate/answer")
async def calibrate_answer(query: Annotated[CalibrateQuery, Query()], request: Request, service: In) -> HTMLResponse:
    """Return what follows the wishes."""
    return _part("answer", **await _calibrated(query, request, service))


async def _calibrated(query: CalibrateQuery, request: Request, service: Service) -> dict[str, Any]:
    """Return the parameters; a wish that cannot be fulfilled is an answer too."""
    try:
        sentence, blocks = await service.answer(request, views.calibrated, query, heavy=query.find in HEAVY)
    except (ValueError, TypeError) as error:
        return {"sentence": f"This cannot be done: {error}.", "blocks": []}
    return {"sentence": sentence, "blocks": blocks}


@router.get("/audit")
def audit_page(service: In, again: str = "") -> HTMLResponse:
    """Show the form for an audit, filled in as in an earlier one if that is named, and the history."""
    return _audit_form(service, "audit", again)


@router.get("/scores")
def scores_page(service: In) -> HTMLResponse:
    """Show the same form for the scores of a model."""
    return _audit_form(service, "scores", "")


def _audit_form(service: Service, tab: str, again: str) -> HTMLResponse:
    earlier = service.audit(again) if again else None
    options = AuditOptions() if earlier is None else earlier.options
    what = tab if earlier is None else "records" if "records" in earlier.files else earlier.kind
    return _page(
        service,
        tab,
        "audit",
        audits=service.audits(),
        limits=service.settings.limits,
        options=options,
        what="tables" if what == "audit" else what,
        title="" if earlier is None else earlier.name,
    )


@router.post("/audit/look")
async def look(request: Request, service: In) -> HTMLResponse:
    """Return what the files of a form hold, before anything is run."""
    found, names = await service.look(request)
    return _part("looked", blocks=preview_blocks(found, names))


@router.post("/audit/sample")
def sample(service: In) -> HTMLResponse:
    """Audit sample data, and show how far it is."""
    return _part("status", 202, **_status(service, service.sample().id))


@router.post("/audit/{key}/cancel")
def cancel(key: str, service: In) -> HTMLResponse:
    """End an audit."""
    service.cancel(key)
    return audit_status(key, service)


@router.post("/audit/{key}/name")
async def rename(key: str, request: Request, service: In) -> HTMLResponse:
    """Give an audit another name."""
    service.rename(key, (await _short_form(request)).get("name", ""))
    return audit_status(key, service)


@router.get("/audit/{key}/report.pdf")
def report_pdf(key: str, service: In) -> Response:
    """Return the report as PDF, where this machine can make one."""
    page = service.file(key, "report.html").read_text(encoding="utf-8")
    with service.questions.place(apart=True):
        content = to_pdf(page)
    name = f'attachment; filename="whosin-audit-{key[:8]}.pdf"'
    return Response(content, media_type="application/pdf", headers={"Content-Disposition": name})


@router.get("/tool/{tab}")
def tool_page(tab: str, service: In) -> HTMLResponse:
    """Show the form of a command."""
    return _page(service, tab, "tool", tool=_tool(service, tab), limits=service.settings.limits)


@router.post("/tool/{tab}")
async def use_tool(tab: str, request: Request, service: In) -> HTMLResponse:
    """Run the command of a form, and return what it prints."""
    try:
        command, printed = await service.use(request, _tool(service, tab))
    except InputError as error:
        return _part("problem", 422, reason=str(error))
    first, _, rest = printed.partition("\n\n")
    return _part("printed", command=command, first=first, rest=rest)


def _tool(service: Service, tab: str) -> Tool:
    if tab not in service.settings.tools:
        raise Unknown("there is no such tab")
    return service.settings.tools[tab]


@router.post("/audit")
async def add_audit(request: Request, service: In) -> HTMLResponse:
    """Take an audit, and show how far it is."""
    audit = await service.take(request)
    return _part("status", 202, **_status(service, audit.id))


@router.get("/audit/history")
def history(service: In) -> HTMLResponse:
    """Return the table of audits."""
    return _part("history", audits=service.audits())


@router.get("/audit/{key}")
def one_audit(key: str, service: In) -> HTMLResponse:
    """Show one audit."""
    return _page(service, "one", **_status(service, key))


@router.get("/audit/{key}/status")
def audit_status(key: str, service: In) -> HTMLResponse:
    """Return how far an audit is, and its numbers when it is done."""
    return _part("status", **_status(service, key))


@router.delete("/audit/{key}")
def remove_audit(key: str, service: In) -> HTMLResponse:
    """Remove an audit, and return what is left of the history."""
    service.remove(key)
    return history(service)


@router.get("/audit/{key}/report")
def view_report(key: str, service: In) -> HTMLResponse:
    """Show the report, under a policy of its own."""
    return report_response(service, key, download=False)


def _status(service: Service, key: str) -> dict[str, Any]:
    audit = service.audit(key)
    blocks = [] if audit.summary is None else views.of_summary(audit.summary)
    return {"audit": audit, "blocks": blocks, "keep_hours": service.settings.limits.keep_hours}


@router.get("/compare")
def compare_page(service: In, id: Annotated[list[str] | None, Query()] = None) -> HTMLResponse:
    """Show the audits to choose from, and those chosen side by side."""
    return _page(
        service,
        "compare",
        audits=[audit for audit in service.audits() if audit.summary is not None],
        chosen=id or [],
        **_compared(service, id or []),
    )


@router.get("/compare/answer")
def compare_answer(service: In, id: Annotated[list[str] | None, Query()] = None) -> HTMLResponse:
    """Return the chosen audits side by side."""
    return _part("answer", **_compared(service, id or []))


def _compared(service: Service, keys: list[str]) -> dict[str, Any]:
    if len(set(keys)) < 2:
        return {"sentence": "Choose two audits or more.", "blocks": []}
    try:
        answer = answers.compare(service.done(keys))
    except InputError as error:
        return {"sentence": str(error), "blocks": []}
    return {"sentence": " ".join(answer.statements), "blocks": views.of_comparison(answer)}

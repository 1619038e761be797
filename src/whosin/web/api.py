"""The API: typed JSON under /api, described by /openapi.json."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from whosin.web import answers
from whosin.web.guard import REPORT_POLICY
from whosin.web.models import (
    HEAVY,
    AuditAnswer,
    AuditList,
    AuditOptions,
    CalibrateAnswer,
    CalibrateQuery,
    CompareAnswer,
    ErrorAnswer,
    ExplainAnswer,
    ExplainQuery,
)
from whosin.web.service import Service, service_of
from whosin.web.uploads import ROLES

In = Annotated[Service, Depends(service_of)]


def _errors(*codes: int) -> dict[int | str, dict[str, Any]]:
    return {code: {"model": ErrorAnswer} for code in (401, *codes)}


_PLAIN_ERROR: dict[str, Any] = {
    "description": "What was wrong",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorAnswer"}}},
}
"""For answers whose good form is not JSON."""

router = APIRouter(prefix="/api", tags=["api"])


def _upload_form() -> dict[str, Any]:
    """Describe the form of an upload, whose parts are read as they come."""
    known = AuditOptions.model_json_schema()["properties"]
    fields: dict[str, Any] = {
        name: {"type": "string", "description": about.get("title", "")} for name, about in known.items()
    }
    files = {role: {"type": "string", "format": "binary"} for role in ROLES}
    return {
        "requestBody": {
            "required": True,
            "content": {
                "multipart/form-data": {
                    "schema": {"type": "object", "properties": {**files, "name": {"type": "string"}, **fields}}
                }
            },
        }
    }


@router.get("/explain", response_model=ExplainAnswer, responses=_errors(422, 429))
async def explain(query: Annotated[ExplainQuery, Query()], request: Request, service: In) -> ExplainAnswer:
    """Say what a guarantee means against any attacker."""
    return await service.answer(request, answers.answer_explanation, query, heavy=query.kind in HEAVY)


@router.get("/calibrate", response_model=CalibrateAnswer, responses=_errors(422, 429))
async def calibrate(query: Annotated[CalibrateQuery, Query()], request: Request, service: In) -> CalibrateAnswer:
    """Turn a tolerable risk into parameters, rounded so that the risk is kept."""
    return await service.answer(request, answers.answer_calibration, query, heavy=query.find in HEAVY)


@router.get("/audits", response_model=AuditList, responses=_errors())
def list_audits(service: In) -> AuditList:
    """List the audits, the newest first."""
    return AuditList(audits=service.audits())


@router.post(
    "/audits",
    status_code=202,
    response_model=AuditAnswer,
    responses=_errors(403, 413, 422, 429),
    openapi_extra=_upload_form(),
)
async def add_audit(request: Request, service: In) -> AuditAnswer:
    """Take the files train, holdout and synthetic, or scores, and queue their audit."""
    return await service.take(request)


@router.get("/audits/{key}", response_model=AuditAnswer, responses=_errors(404))
def get_audit(key: str, service: In) -> AuditAnswer:
    """Return one audit: how far it is, and its numbers when it is done."""
    return service.audit(key)


@router.delete("/audits/{key}", status_code=204, response_class=Response, responses=_errors(403, 404))
def remove_audit(key: str, service: In) -> Response:
    """Remove an audit with all its files; if it is at work, its process is ended."""
    service.remove(key)
    return Response(status_code=204)


@router.get(
    "/audits/{key}/report",
    response_class=HTMLResponse,
    responses={200: {"content": {"text/html": {"schema": {"type": "string"}}}}, 401: _PLAIN_ERROR, 404: _PLAIN_ERROR},
)
def get_report(key: str, service: In) -> HTMLResponse:
    """Return the report, one self-contained page of HTML, as a file to be saved."""
    return report_response(service, key, download=True)


@router.get("/audits/{key}/details", responses={200: {"content": {"application/json": {}}}, **_errors(404)})
def get_details(key: str, service: In) -> JSONResponse:
    """Return everything that was measured, as ``whosin audit --json`` prints it; records appear as row numbers."""
    return JSONResponse(json.loads(service.file(key, "details.json").read_text(encoding="utf-8")))


@router.get("/compare", response_model=CompareAnswer, responses=_errors(404, 422))
def compare(service: In, id: Annotated[list[str], Query(min_length=2, max_length=6)]) -> CompareAnswer:
    """Set two to six finished audits side by side."""
    return answers.compare(service.done(id))


def report_response(service: Service, key: str, *, download: bool) -> HTMLResponse:
    """Return a report under a policy of its own: it has its style inside, and runs nothing."""
    page = service.file(key, "report.html").read_text(encoding="utf-8")
    headers = {"Content-Security-Policy": REPORT_POLICY}
    if download:
        headers["Content-Disposition"] = f'attachment; filename="whosin-audit-{key[:8]}.html"'
    return HTMLResponse(page, headers=headers)

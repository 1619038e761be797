"""The API keeps to its own description: whatever is sent, no 5xx, and every answer has the stated form."""

import pytest
from web_support import BASE, PORT, TestClient, here, upload, wait, with_token

import whosin as wi
from whosin.web.app import create_app
from whosin.web.settings import Settings

schemathesis = pytest.importorskip("schemathesis")

from hypothesis import HealthCheck, Phase, given, seed, settings  # noqa: E402
from hypothesis.errors import Unsatisfiable  # noqa: E402

EXAMPLES = 5
OPERATIONS = [
    ("GET", "/api/explain"),
    ("GET", "/api/calibrate"),
    ("GET", "/api/audits"),
    ("POST", "/api/audits"),
    ("GET", "/api/audits/{key}"),
    ("DELETE", "/api/audits/{key}"),
    ("GET", "/api/audits/{key}/report"),
    ("GET", "/api/audits/{key}/details"),
    ("GET", "/api/compare"),
]


@pytest.fixture(scope="module")
def served(quick, tmp_path_factory):
    """A server with one audit that is done; DP-SGD stands still, since its curve takes a second each time."""
    app = create_app(Settings(tmp_path_factory.mktemp("served") / "data", worker=quick))
    with pytest.MonkeyPatch.context() as monkeypatch, TestClient(app, base_url=BASE) as client:
        monkeypatch.setattr(wi, "DPSGD", lambda *_: wi.GaussianDP(1.0))
        monkeypatch.setattr(wi.calibrate, "dpsgd", lambda *_, **__: _Run())
        app.state.service.questions._ask = here
        with_token(client)
        wait(client, upload(client, {"scores": b"a,b\n1,2\n"}).json()["id"])
        yield client


class _Run(wi.GaussianDP):
    def __init__(self):
        super().__init__(1.0)

    noise_multiplier = 1.0


def test_every_operation_is_described(served):
    described = served.get("/openapi.json").json()["paths"]
    assert {(method.upper(), path) for path, found in described.items() for method in found} == set(OPERATIONS)


def without_life(app):
    """Return the application for clients that start and stop it at every call."""

    async def calm(scope, receive, send):
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        while (message := await receive())["type"] != "lifespan.shutdown":
            await send({"type": f"{message['type']}.complete"})
        await send({"type": "lifespan.shutdown.complete"})

    return calm


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode), ids=lambda mode: mode.value)
def test_answers_keep_to_the_description(served, method, path, mode):
    headers = {"Authorization": served.headers["Authorization"], "Host": f"localhost:{PORT}"}
    schema = schemathesis.openapi.from_asgi("/openapi.json", without_life(served.app), headers=headers)
    checks = schemathesis.checks
    conform = [checks.not_a_server_error, checks.status_code_conformance, checks.content_type_conformance]
    conform += [checks.response_schema_conformance, checks.response_headers_conformance]

    @seed(0)
    @settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=schema[path][method].as_strategy(generation_mode=mode))
    def check(case):
        answer = case.call(headers=headers)
        case.validate_response(answer, checks=conform)
        if answer.status_code >= 400:
            assert list(answer.json()) == ["error"]

    try:
        check()
    except Unsatisfiable:
        assert mode.value == "negative"
    assert served.get("/api/audits").status_code == 200

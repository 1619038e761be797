"""Pages: the report of any result with hostile names, and the page's requests without a server."""

import asyncio
import contextlib
import functools
import inspect
import io
from urllib.parse import unquote

import numpy as np

import whosin as wi
from whosin.errors import InputError, WhosinError

from .promises import MAKERS
from .support import MARK, Bytes, check_json, check_page, patched, place

DRAWING = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"/>'


def _report(data):
    """A report whose names try to be markup; most pictures are left blank, for they take a second."""
    from matplotlib.figure import Figure

    bits = Bytes(data)
    result = _result(bits)
    more = {"title": bits.label(), "command": bits.label()}
    if bits.whole(4) == 0:
        more["guarantee"] = bits.choice(MAKERS)(bits)
    if bits.whole(4) == 0:
        more["individuals"] = bits.choice((True, False, None))
    if bits.whole(4) == 0 and isinstance(result, wi.Audit):
        more["ids"] = [bits.label() for _ in range(result.members)]

    def blank(figure, stream, **_):
        stream.write(DRAWING.decode() if isinstance(stream, io.TextIOBase) else DRAWING)

    if bits.whole(64) == 63:
        page = wi.report(result, **more)
    else:
        with patched(Figure, savefig=blank):
            page = wi.report(result, **more)
    check_page(page)


def _result(bits):
    import polars as pl

    kind = bits.whole(7)
    if kind == 0:
        return bits.choice(MAKERS)(bits)
    if kind == 1:
        included = np.arange(16) % 2 == 0
        run = wi.audit_one_run(bits.numbers(16), included, rng=0)
        return run.compare(bits.choice(MAKERS)(bits)) if bits.whole(2) else run
    if kind == 2:
        names = [[bits.label() for _ in range(6)] for _ in range(2)]
        found = wi.audit(bits.numbers(6), bits.numbers(6), groups={bits.label(): names}, rng=0)
        return found.compare(bits.choice(MAKERS)(bits)) if bits.whole(4) == 0 else found
    if kind == 3:
        column, values = bits.name(), [bits.name() for _ in range(3)]
        tables = [
            pl.DataFrame({column: [bits.choice(values) for _ in range(6)], "n": bits.numbers(6)}, strict=False)
            for _ in range(3)
        ]
        return wi.audit_synthetic(*tables, groups=column if bits.whole(2) else None, n_jobs=1, rng=0)
    if kind == 4:
        found = wi.audit(bits.numbers(6), bits.numbers(6), rng=0)
        return {bits.label(): found for _ in range(bits.whole(3))}
    if kind == 5:
        return wi.protect("mean", bits.numbers(6, 2), eta=0.1, testing_source=wi.mechanisms.SeededSource(0))
    return wi.population.laplace(bits.numbers(6), epsilon=1.0, clip=1.0)


def _pictures(data):
    """The pictures of any result, painted and not rendered."""
    from matplotlib.figure import Figure

    bits = Bytes(data)
    result = _result(bits)
    parts = (result, *(getattr(result, name, None) for name in ("groups", "individual", "release_size", "roc", "band")))
    for part in parts:
        if not hasattr(part, "plot"):
            continue
        known = inspect.signature(part.plot).parameters
        more = {"scale": bits.odd(("linear", "log"), ("", None))} if "scale" in known else {}
        with contextlib.suppress(WhosinError):
            part.plot(Figure().subplots(), **more)
    table = wi.bounds.table(bits.amount(), bits.share())
    with contextlib.suppress(WhosinError):
        table.plot(Figure().subplots(), quantity=bits.odd((None, "accuracy", "advantage", "ppv"), ("", 3)))


@functools.cache
def _server():
    """The application, whose audits wait for ever, and whose heavy answers are refused."""
    from whosin.web.app import create_app
    from whosin.web.settings import Limits, Settings

    folder = place("page")
    folder.mkdir(mode=0o700, exist_ok=True)
    app = create_app(Settings(folder, Limits(upload_bytes=2000, queued=10**6, audits=10**6)))

    def refuse(function, *arguments):
        raise InputError("this takes too long")

    app.state.service.questions._ask = refuse
    return app, asyncio.new_event_loop()


PATHS = ("/", "/login", "/explain", "/explain/answer", "/calibrate", "/calibrate/answer", "/audit", "/audit/history")
PATHS += ("/compare", "/compare/answer", "/style/base.css", "/static/page.css", "/openapi.json", "/api/explain")
PATHS += ("/api/calibrate", "/api/audits", "/api/compare", "/audit/KEY", "/audit/KEY/status", "/audit/KEY/report")
PATHS += ("/api/audits/KEY", "/api/audits/KEY/report", "/api/audits/KEY/details", "/static/../app.py", "/%2e%2e/x")
FIELDS = ("kind", "epsilon", "delta", "mu", "eta", "noise_multiplier", "sample_rate", "steps", "prior", "log", "find")
FIELDS += ("target", "value", "fpr", "id", "token", "secret", "name", "columns", "groups", "member_column", "seed")
FIELDS += ("confidence_level", "assignment", "promised_epsilon", "promised_delta", "train", "scores")
WORDS = ("dp", "gdp", "dpsgd", "mip", "epsilon", "sampling_rate", "accuracy", "advantage", "posterior", "tpr", "true")
BOUNDARY = "fuzz"


def _page(data):
    """Any request, by somebody who knows the token: an answer, and none that blames the server."""
    bits = Bytes(data)
    app, loop = _server()
    service = app.state.service
    method = bits.choice(("GET", "GET", "POST", "DELETE", "HEAD", "PUT", "OPTIONS"))
    path = bits.choice(PATHS).replace("KEY", bits.choice((bits.text(), "0" * 32, *_keys(service))))
    raw = "".join(sign if " " < sign < "\x7f" and sign not in "?#" else "%25" for sign in path)
    body, kind = _body(bits)
    headers = [(b"host", b"127.0.0.1:8642"), (b"content-type", kind)]
    if bits.whole(8):
        headers.append((b"authorization", b"Bearer " + service.access.token.encode()))
    for _ in range(bits.whole(3)):
        name = bits.choice((b"origin", b"sec-fetch-site", b"cookie", b"hx-request", b"range", b"accept", b"host"))
        headers.append((name, bits.choice((b"", b"null", b"true", b"same-origin", b"bytes=0-", _plain(bits.take(8))))))
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(raw),
        "raw_path": raw.encode(),
        "query_string": _query(bits),
        "headers": headers,
        "server": ("127.0.0.1", 8642),
        "client": ("127.0.0.1", 1),
    }
    status, answer, answered = loop.run_until_complete(_asked(app, scope, body))
    assert status < 500, (scope, status, answer)
    if b"text/html" in answered:
        assert MARK.encode() not in answer


def _keys(service):
    """The audits that are there, never more than a few."""
    entries = service.history.all()
    for entry in entries[3:]:
        service.remove(entry.id)
    return [entry.id for entry in entries[:3]]


def _plain(value, most=255):
    """The bytes that the server lets through in a header, or in an address."""
    return bytes(byte if 32 < byte <= most and byte != 127 else 46 for byte in value)


def _word(bits):
    return bits.choice((bits.choice(WORDS), repr(bits.number()), bits.name(), "", "1"))


def _query(bits):
    from urllib.parse import urlencode

    pairs = [(bits.choice(FIELDS) if bits.whole(8) else bits.text(), _word(bits)) for _ in range(bits.whole(5))]
    return urlencode(pairs, errors="surrogatepass").encode() + (
        _plain(bits.take(6), 126) if bits.whole(8) == 0 else b""
    )


def _body(bits):
    """A form, damaged or not, or any bytes."""
    kind = f"multipart/form-data; boundary={BOUNDARY}".encode()
    if bits.whole(4) == 0:
        return bits.take(bits.whole(200)), bits.choice(
            (kind, b"application/json", b"", b"multipart/form-data", b"\xff")
        )
    scores = b"member,score\n1,2\n0,1\n1,3\n0,0\n"
    parts = []
    for name in bits.choice((["scores"], ["train", "holdout", "synthetic"], ["scores", "scores"], ["other"], [])):
        content = scores if bits.whole(4) else bits.take(bits.whole(60))
        parts.append((f'name="{name}"; filename="{bits.name()}.csv"', content))
    for _ in range(bits.whole(4)):
        parts.append((f'name="{bits.choice(FIELDS)}"', _word(bits).encode("utf-8", "replace")))
    body = b"".join(
        f"--{BOUNDARY}\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode("utf-8", "replace") + content + b"\r\n"
        for head, content in parts
    )
    body += f"--{BOUNDARY}--\r\n".encode()
    return (bits.edits(body) if bits.whole(4) == 0 else body), kind


async def _asked(app, scope, body):
    """Send a request in two pieces; return status, body and type of the answer."""
    half = len(body) // 2
    coming = [(body[:half], True), (body[half:], False)]
    status, answer, kind = 0, [], b""

    async def receive():
        if not coming:
            return {"type": "http.disconnect"}
        piece, more = coming.pop(0)
        return {"type": "http.request", "body": piece, "more_body": more}

    async def send(message):
        nonlocal status, kind
        if message["type"] == "http.response.start":
            status = message["status"]
            kind = dict(message["headers"]).get(b"content-type", b"")
        else:
            answer.append(message.get("body", b""))

    await app(scope, receive, send)
    return status, b"".join(answer), kind


def _measured(data):
    """What a worker does with the files of an audit."""
    from whosin.web.measure import measure
    from whosin.web.models import AuditOptions

    bits = Bytes(data)
    folder = place("worker")
    folder.mkdir(exist_ok=True)
    ending = bits.choice(("csv", "csv", "tsv", "npy", "parquet", "arrow"))
    head = b"member,score\n1,0.5\n0,0.25\n1,2\n0,1\n"
    content = {"csv": head, "tsv": head.replace(b",", b"\t")}.get(ending, b"\x93NUMPY")
    (folder / f"scores.{ending}").write_bytes(bits.edits(content))
    options = AuditOptions(seed=1, promised_epsilon=bits.choice((None, 0.0, 1.0)), prior=bits.choice((0.5, 1e-6)))
    request = {
        "kind": "scores",
        "name": bits.name(),
        "options": options.model_dump(),
        "files": {"scores": {"name": bits.name(), "bytes": 1, "type": ending}},
        "rows": 1000,
        "columns": 50,
        "memory_bytes": 10**9,
    }
    with patched(wi, report=lambda *_, **__: ""):
        summary, details, _ = measure(folder, request, lambda share: None)
    check_json(details)
    assert "highest" not in summary["individual"]


TARGETS = {"report": _report, "pictures": _pictures, "page": _page, "page-audit": _measured}


def seeds(name):
    """Any bytes are right."""
    return None

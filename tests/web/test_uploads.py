"""What may be uploaded, how much of it, under which names, and how long it stays."""

import asyncio
import html
import io
import os
import shlex
import stat
import time
from functools import partial

import numpy as np
import polars as pl
import pytest
from starlette.requests import Request
from web_support import here, people, service, upload, wait, with_token

import whosin as wi
from whosin.errors import InputError
from whosin.web.file_types import HEAD, kind_of
from whosin.web.measure import _command, look_at, measure
from whosin.web.models import AuditOptions
from whosin.web.service import Service
from whosin.web.settings import Limits, private_folder

CSV = b"member,score\n1,0.5\n0,0.25\n"


def packed(writer):
    stream = io.BytesIO()
    writer(stream)
    return stream.getvalue()


GOOD = {
    "csv": CSV,
    "tsv": b"member\tscore\n1\t0,5\n",
    "txt": b"A11 6 A34\nA12 48 A32\n",
    "parquet": packed(people(0, 5).write_parquet),
    "arrow": packed(people(0, 5).write_ipc),
    "npy": packed(lambda stream: np.save(stream, np.eye(3))),
    "jsonl": b'\xef\xbb\xbf{"member": 1, "score": 0.5}\n',
}
OTHER_LETTERS = ("größe,straße\n".encode("latin-1"), "größe,straße\n".encode("utf-16"))
BAD = {
    "empty": b"",
    "xlsx": b"PK\x03\x04" + b"x" * 50,
    "gzip": b"\x1f\x8b\x08" + b"x" * 50,
    "pdf": b"%PDF-1.7\n",
    "pickle": b"\x80\x04\x95\x00\x00",
    "html": b"  <!DOCTYPE html><script>alert(1)</script>",
    "svg": b"<svg xmlns='x'/>",
    "png": b"\x89PNG\r\n\x1a\n" + b"\x00" * 20,
    "elf": b"\x7fELF\x02\x01",
    "nul": b"a,b\n1,\x00\n",
    "npz": packed(lambda stream: np.savez(stream, a=np.eye(2))),
}


@pytest.mark.parametrize("kind", GOOD)
def test_files_are_known_by_their_bytes(kind):
    assert kind_of(GOOD[kind][:HEAD], "x") == kind


@pytest.mark.parametrize("kind", BAD)
def test_other_files_are_refused(kind):
    with pytest.raises(InputError, match=r"^train must be CSV or TSV text.*, got "):
        kind_of(BAD[kind], "train")


def test_a_letter_cut_in_two_at_the_end_of_the_look_is_no_harm():
    for shift in range(4):
        text = ("x" * (HEAD - 1 - shift) + "ß€𝛆" * 3).encode()
        assert kind_of(text[:HEAD], "x") == "csv"
    assert [kind_of(text, "x") for text in OTHER_LETTERS] == ["csv", "csv"]
    assert kind_of(b'[\n {"member": 1}]', "x") == "jsonl"


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_file_is_refused_and_not_kept(client, kind):
    answer = upload(client, {"scores": BAD[kind]})
    assert answer.status_code == 422
    assert "must be CSV" in answer.json()["error"]
    assert list(service(client).folders.keys()) == []
    assert service(client).history.count() == 0


def test_a_pickle_inside_an_array_is_not_loaded(request_of_scores, tmp_path):
    class Evil:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "loaded"),))

    evil = packed(lambda stream: np.save(stream, np.array([Evil()], dtype=object), allow_pickle=True))
    assert kind_of(evil, "scores") == "npy"
    (tmp_path / "scores.npy").write_bytes(evil)
    files = {"scores": {"name": "s", "bytes": 1, "type": "npy"}}
    with pytest.raises(InputError, match="objects are not loaded"):
        measure(tmp_path, {**request_of_scores[1], "files": files}, print)
    assert not (tmp_path / "loaded").exists()


def test_a_file_at_the_limit_passes_and_one_byte_more_does_not(start):
    client = with_token(start(limits=Limits(upload_bytes=len(CSV))))
    assert upload(client, {"scores": CSV}).status_code == 202
    answer = upload(client, {"scores": CSV + b"\n"})
    assert answer.status_code == 413
    assert "at most" in answer.json()["error"]
    assert len(list(service(client).folders.keys())) == 1


def test_bytes_are_counted_as_they_come_whatever_the_length_says(start):
    """A body without any Content-Length, larger than the limit: the folder never holds more than the limit."""
    client = with_token(start(limits=Limits(upload_bytes=100_000)))
    largest = []

    def body():
        yield b'--x\r\nContent-Disposition: form-data; name="scores"; filename="s.csv"\r\n\r\na,b\n'
        for _ in range(100):
            yield b"1,2\n" * 2_500
            found = [path.stat().st_size for path in service(client).folders.base.glob("*/*.part")]
            largest.append(sum(found))

    answer = client.post("/api/audits", content=body(), headers={"Content-Type": "multipart/form-data; boundary=x"})
    assert answer.status_code == 413
    assert max(largest) <= 100_000 + 10_000
    assert list(service(client).folders.keys()) == []


def test_the_number_of_files_and_fields_is_bounded(client):
    given = {"train": CSV, "holdout": CSV, "synthetic": CSV, "reference": CSV, "scores": CSV}
    assert "at most 4" in upload(client, given).json()["error"]
    assert upload(client, {"scores": CSV}, **{f"field{i}": "x" for i in range(41)}).status_code == 422
    assert upload(client, {"scores": CSV}, name="x" * 5_000).status_code == 413
    assert upload(client, {"secrets": CSV}).status_code == 422
    twice = [("scores", ("a.csv", CSV)), ("scores", ("b.csv", CSV))]
    assert client.post("/api/audits", files=twice).status_code == 422
    assert list(service(client).folders.keys()) == []


@pytest.mark.parametrize(
    ("files", "fields"),
    [
        ({}, {"name": "x"}),
        ({"train": CSV}, {}),
        ({"train": CSV, "holdout": CSV}, {}),
        ({"train": CSV, "scores": CSV}, {}),
        ({"scores": CSV}, {"prior": "2"}),
        ({"scores": CSV}, {"prior": "nan"}),
        ({"scores": CSV}, {"confidence_level": "1"}),
        ({"scores": CSV}, {"seed": "-1"}),
        ({"scores": CSV}, {"tolerate": "1.5"}),
        ({"scores": CSV}, {"person": "x" * 201}),
        ({"scores": CSV}, {"promised_delta": "0.1"}),
        ({"scores": CSV}, {"unheard": "of"}),
        ({"scores": CSV}, {"assignment": "whatever"}),
        ({"train": CSV, "holdout": CSV, "synthetic": CSV}, {"assignment": "independent trainings"}),
    ],
)
def test_incomplete_and_wrong_forms(client, files, fields):
    answer = upload(client, files, **fields)
    assert answer.status_code == 422
    assert list(answer.json()) == ["error"]
    assert list(service(client).folders.keys()) == []


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "multipart/form-data; boundary=x"),
        (b"--x\r\n", "multipart/form-data; boundary=x"),
        (b"rubbish", "multipart/form-data; boundary=x"),
        (b"--x\r\nContent-Disposition: form-data\r\n\r\nx\r\n--x--\r\n", "multipart/form-data; boundary=x"),
        (b"--x\r\n" + b"A" * 10_000 + b": b\r\n\r\nx\r\n--x--\r\n", "multipart/form-data; boundary=x"),
        (
            b'--x\r\nContent-Disposition: form-data; name="scores"; filename="s"\r\n\r\na,b\n1',
            "multipart/form-data; boundary=x",
        ),
        (
            b'--x\r\nContent-Disposition: form-data; name="scores"; filename="s"\r\n\r\nmember,b\n1,2\r\n--x\r\nCont',
            "multipart/form-data; boundary=x",
        ),
        (b"{}", "application/json"),
        (b"x", "multipart/form-data"),
        (b"x", f"multipart/form-data; boundary={'x' * 300}"),
    ],
)
def test_damaged_forms(client, body, kind):
    answer = client.post("/api/audits", content=body, headers={"Content-Type": kind})
    assert answer.status_code == 422
    assert list(service(client).folders.keys()) == []


@pytest.mark.parametrize("field", ["../../evil", "/tmp/evil", "train/../../evil", "", "train.part", "request"])
def test_names_of_fields_are_no_paths_either(client, field, tmp_path):
    answer = client.post("/api/audits", files={field: ("s.csv", CSV)})
    assert answer.status_code == 422
    assert "must have files named train, holdout, synthetic, reference, scores" in answer.json()["error"]
    assert not [path for path in tmp_path.rglob("*") if path.suffix == ".part" or "evil" in path.name]


EVIL_NAMES = [
    "../../../evil.csv",
    "..\\..\\evil.csv",
    "/etc/passwd",
    "<img src=x onerror=alert(1)>.csv",
    "a\u202evsc.exe",
    "x" * 500,
]


@pytest.mark.parametrize("name", EVIL_NAMES)
def test_names_of_files_are_shown_and_never_used(client, name, tmp_path):
    sent = client.post("/api/audits", files={"scores": (name, CSV)})
    assert sent.status_code == 202
    key, shown = sent.json()["id"], sent.json()["files"]["scores"]["name"]
    assert "/" not in shown
    assert "\\" not in shown
    assert "\u202e" not in shown
    assert len(shown) <= 100
    found = {path.name for path in tmp_path.rglob("*")}
    assert found <= {
        "data",
        "audits",
        key,
        "history.sqlite",
        "history.sqlite-journal",
        "scores.csv",
        "request.json",
    } | {
        "errors.txt",
        "progress.json",
        "outcome.json",
    }
    page = client.get(f"/audit/{key}").text
    assert "<img" not in page


def test_files_are_private(client, scores):
    upload(client, {"scores": scores})
    base = service(client).settings.data_dir
    for path in [base, *base.rglob("*")]:
        mode = stat.S_IMODE(path.stat().st_mode)
        assert not (path.is_dir() and mode & 0o077), path
        if path.suffix in (".csv", ".sqlite"):
            assert not mode & 0o077, path


def test_a_folder_that_others_may_open_is_refused(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    shared.chmod(0o755)
    with pytest.raises(InputError, match="nobody else may open"):
        private_folder(shared)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="can be made"):
        private_folder(tmp_path / "file")


def test_uploads_go_when_the_audit_ends_and_all_goes_on_request(start, quick, scores):
    client = with_token(start(worker=quick))
    key = upload(client, {"scores": scores}).json()["id"]
    folder = service(client).folders.of(key)
    assert wait(client, key)["state"] == "done"
    assert sorted(path.name for path in folder.iterdir()) == ["details.json", "outcome.json", "report.html"]
    assert client.delete(f"/api/audits/{key}").status_code == 204
    assert not folder.exists()
    assert client.get(f"/api/audits/{key}").status_code == 404
    assert client.delete(f"/api/audits/{key}").status_code == 404


def test_reports_go_after_their_time_and_numbers_stay(start, quick, scores):
    client = with_token(start(worker=quick))
    key = upload(client, {"scores": scores}).json()["id"]
    assert wait(client, key)["has_report"]
    held = service(client)
    held.jobs.sweep()
    assert client.get(f"/api/audits/{key}/report").status_code == 200
    held.history._do("UPDATE audits SET finished = ?", (time.time() - 24.1 * 3600,))
    held.jobs.sweep()
    assert client.get(f"/api/audits/{key}/report").status_code == 404
    assert not held.folders.of(key).exists()
    kept = client.get(f"/api/audits/{key}").json()
    assert kept["summary"]["advantage"]["lower"] > 0
    assert not kept["has_report"]
    assert "hours are over" in client.get(f"/audit/{key}").text


def test_folders_of_cut_off_uploads_are_swept(start):
    client = with_token(start())
    folders = service(client).folders
    fresh, old = folders.new(), folders.new()
    past = time.time() - 24.1 * 3600
    os.utime(folders.of(old), (past, past))
    service(client).jobs.sweep()
    assert list(folders.keys()) == [fresh]


@pytest.mark.parametrize(("limits", "words"), [({"rows": 299}, "299 rows"), ({"columns": 1}, "1 columns")])
def test_rows_and_columns_are_bounded(request_of_scores, limits, words):
    folder, request = request_of_scores
    with pytest.raises(InputError, match=f"at most {words} on this server"):
        measure(folder, {**request, **limits}, print)


def test_parquet_and_arrow_give_the_same_numbers_as_text(request_of_scores, measured, scores, tmp_path, monkeypatch):
    monkeypatch.setattr("whosin.report", lambda *_, **__: "")
    table = pl.read_csv(io.BytesIO(scores))
    for kind, content in (("parquet", packed(table.write_parquet)), ("arrow", packed(table.write_ipc))):
        (tmp_path / f"scores.{kind}").write_bytes(content)
        files = {"scores": {"name": "s", "bytes": 1, "type": kind}}
        summary, _, _ = measure(tmp_path, {**request_of_scores[1], "files": files}, lambda share: None)
        assert summary == measured[0]


def test_parallel_uploads_are_few(client):
    service(client).arriving.update("abcd")
    answer = upload(client, {"scores": CSV})
    assert answer.status_code == 429
    assert "on their way already" in answer.json()["error"]
    service(client).arriving.remove("a")
    assert upload(client, {"scores": CSV}).status_code == 202
    assert service(client).arriving == set("bcd")


@pytest.mark.parametrize("receives", [Service.take, Service.look, partial(Service.use, tool=None)])
def test_stalled_uploads_end(start, receives):
    held = service(start(limits=Limits(upload_seconds=0.2)))
    sent = [{"type": "http.request", "body": b"--x\r\n", "more_body": True}]

    async def stall():
        if sent:
            return sent.pop()
        await asyncio.sleep(60)

    scope = {"type": "http", "headers": [(b"content-type", b"multipart/form-data; boundary=x")]}
    with pytest.raises(InputError, match=r"more than 0\.2 seconds to arrive"):
        asyncio.run(receives(held, Request(scope, stall)))
    assert held.arriving == set()
    assert list(held.folders.keys()) == []


GERMAN = "alter;größe;ort\n{}\n"


def written(seed, rows=60):
    rng = np.random.default_rng(seed)
    cells = [f"{rng.integers(18, 90)};{rng.normal(1.7, 0.1):.4f};Köln".replace(".", ",") for _ in range(rows)]
    return GERMAN.format("\n".join(cells)).encode("latin-1")


def test_a_look_says_what_files_hold_before_anything_is_run(start):
    client = with_token(start())
    service(client).questions._ask = here
    sent = {"train": written(1), "holdout": written(2), "synthetic": written(3), "reference": written(4)}
    page = upload(client, sent, path="/audit/look", ignore="ort")
    assert page.status_code == 200
    for part in ("train.csv", "größe", "2 of 3 columns are compared", "reference rows", "commas are decimal signs"):
        assert part in page.text
    assert "Left out: ort" in page.text
    assert list(service(client).folders.keys()) == []
    assert service(client).history.count() == 0
    wrong = upload(client, sent, path="/audit/look", ignore="town")
    assert wrong.status_code == 422
    assert "“Columns to leave out”" in wrong.text
    assert upload(client, {"synthetic": written(3)}, path="/audit/look").status_code == 422
    said = upload(client, {"scores": CSV}, path="/audit/look").text
    assert "scores.csv" in said
    assert "compared" not in said
    assert list(service(client).folders.keys()) == []


def test_one_table_with_both_sides_is_the_audit_of_two(tmp_path):
    """With every option of files: the same numbers as the library gives for the two parts."""
    rng = np.random.default_rng(5)
    rows = [f"{rng.integers(1000)};{rng.normal():.6f};{side}" for side in ("in", "out") for _ in range(80)]
    text = "age;height;side\n" + "\n".join(rows).replace(".", ",") + "\n"
    release = "age;height\n" + "\n".join(row.rpartition(";")[0] for row in rows[:80]).replace(".", ",") + "\n"
    (tmp_path / "records.csv").write_text(text)
    (tmp_path / "synthetic.csv").write_text(release)
    options = AuditOptions.model_validate(
        {"member_column": "side", "member_value": "in", "separator": ";", "decimal": ",", "categories": "age"}
    ).model_dump()
    files = {name: {"name": f"{name}.csv", "bytes": 1, "type": "csv"} for name in ("records", "synthetic")}
    request = {"kind": "tables", "name": "", "options": options, "files": files, "rows": 1000, "columns": 10}
    summary, _, report = measure(tmp_path, request, lambda share: None)
    whole = wi.tables.read_table(tmp_path / "records.csv", categories=["age"])
    inside = whole.column("side") == "in"
    parts = [whole.select(["age", "height"]).take(side) for side in (inside, ~inside)]
    found = wi.audit_synthetic(*parts, wi.tables.read_table(tmp_path / "synthetic.csv", categories=["age"]))
    assert summary["advantage"] == found.to_dict()["advantage"]
    assert "records.csv (members)" in report
    for words in ("--records records.csv", "--member-value in", "--separator ';'", "--categories age"):
        assert words in html.unescape(report)


def test_lines_above_the_names_are_left_out_and_names_may_be_none(tmp_path):
    """The ways out that errors of files name are fields of the form."""
    files = {"train": {"name": "people.csv", "bytes": 1, "type": "csv"}}
    request = {"kind": "tables", "name": "", "files": files, "rows": 1000, "columns": 10}
    (tmp_path / "train.csv").write_text("about, this\nand, that, more\na,b\nx,1\ny,2\n")
    with pytest.raises(InputError, match="skip_lines=1"):
        look_at(tmp_path, {**request, "options": AuditOptions().model_dump()})
    options = AuditOptions.model_validate({"skip_lines": "2", "header": ""})
    assert look_at(tmp_path, {**request, "options": options.model_dump()})["compared"] == ["a", "b"]
    options = AuditOptions.model_validate({"skip_lines": "2", "header": "false"})
    found = look_at(tmp_path, {**request, "options": options.model_dump()})
    assert (found["compared"], found["tables"][0]["rows"]) == (["column 0", "column 1"], 3)
    assert _command({**request, "options": options.model_dump()}).endswith("--skip-lines 2 --no-header")
    named = AuditOptions.model_validate({"ignore": '"age, years", town'}).model_dump()
    words = shlex.split(_command({**request, "options": named}))
    assert words[words.index("--ignore") + 1] == '"age, years",town'

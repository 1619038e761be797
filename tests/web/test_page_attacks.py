"""What attackers tried, and accidents that must not be believed impossible: each of these went wrong once."""

import asyncio
import errno
import io
import math
import os
import socket
import sqlite3
import subprocess
import sys
import threading
import time

import polars as pl
import pytest
import uvicorn
from starlette.requests import Request
from test_jobs import CSV, add, worker
from test_serve import run
from web_support import pids, service, upload, wait, with_token

from whosin.errors import InputError
from whosin.web import jobs, pages, server, uploads
from whosin.web.access import Access, Password, TooManyTries
from whosin.web.measure import measure
from whosin.web.questions import Questions
from whosin.web.settings import Limits


def test_a_refused_folder_keeps_what_is_in_it(tmp_path):
    """A file of the user's own, with the name of the one that opens the browser, is not removed."""
    shared = tmp_path / "site"
    shared.mkdir(mode=0o755)
    (shared / "open.html").write_text("mine")
    assert "nobody else may open" in run("--port", "0", "--data-dir", str(shared)).stderr
    assert (shared / "open.html").read_text() == "mine"
    assert "--data-dir must be a folder" in run("--port", "0", "--data-dir", str(shared / "open.html")).stderr


@pytest.mark.parametrize("host", ["127.0.0.1:80@evil.example", "localhost:abc", "localhost:", "127.0.0.1:1:2"])
def test_a_host_with_more_than_a_port_is_refused(reader, host):
    assert reader.get("/api/audits", headers={"Host": host}).status_code == 421


def test_passwords_that_come_at_once_are_counted_too(monkeypatch):
    tried, found = [], []

    def matches(self, text):
        tried.append(text)
        time.sleep(0.002)
        return False

    monkeypatch.setattr(Password, "matches", matches)
    access = Access(Password(b"", b""))

    def attempt():
        try:
            found.append(access.comes_in("wrong"))
        except TooManyTries:
            found.append(None)

    threads = [threading.Thread(target=attempt) for _ in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(tried) == 10
    assert sorted(map(str, found)) == ["False"] * 10 + ["None"] * 30
    assert access.comes_in(access.token), "the token is no password"


def stalled(kind, *pieces):
    """Return a request whose client sends these bytes and then neither more nor goodbye."""
    left = list(pieces)

    async def receive():
        if left:
            return {"type": "http.request", "body": left.pop(0), "more_body": True}
        await asyncio.sleep(60)

    return Request({"type": "http", "method": "POST", "headers": [(b"content-type", kind)]}, receive)


def test_a_login_that_stalls_ends(shared, monkeypatch):
    monkeypatch.setattr(pages, "LOGIN_SECONDS", 0.1)
    answer = asyncio.run(pages.login(stalled(b"", b"secret="), shared.state.service))
    assert answer.status_code == 408


def test_whoever_waits_for_the_answer_to_a_bad_form_gets_it(tmp_path, monkeypatch):
    monkeypatch.setattr(uploads, "DRAIN_SECONDS", 0.1)
    bad = b'--x\r\nContent-Disposition: form-data; name="evil"; filename="a"\r\n\r\n'
    began = time.monotonic()
    with pytest.raises(InputError, match="must have files named"):
        asyncio.run(uploads.receive(stalled(b"multipart/form-data; boundary=x", bad), tmp_path, 1000))
    assert time.monotonic() - began < 20


def test_empty_parts_are_counted(client):
    part = b'--x\r\nContent-Disposition: form-data; name="scores"; filename=""\r\n\r\n\r\n'
    answer = client.post(
        "/api/audits",
        content=part * 51 + b"--x--\r\n",
        headers={"Content-Type": "multipart/form-data; boundary=x"},
    )
    assert answer.status_code == 422
    assert "at most 50 parts" in answer.json()["error"]


def test_a_small_file_of_very_many_rows_is_not_unpacked(request_of_scores, tmp_path, monkeypatch):
    packed = io.BytesIO()
    pl.DataFrame({"member": pl.zeros(10**6, eager=True), "score": pl.zeros(10**6, eager=True)}).write_parquet(packed)
    assert len(packed.getvalue()) < 200_000
    (tmp_path / "scores.parquet").write_bytes(packed.getvalue())
    monkeypatch.setattr("whosin.tables.read_table", lambda path: pytest.fail("it was unpacked"))
    files = {"scores": {"name": "s", "bytes": 1, "type": "parquet"}}
    with pytest.raises(InputError, match="at most 1,000 rows on this server, got 1,000,000"):
        measure(tmp_path, {**request_of_scores[1], "files": files}, print)


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (",".join(f"c{i}" for i in range(11)), "at most 10 columns on this server, got 11"),
        (",".join(["c"] * 10**6), "a first line of at most 100,000 letters"),
        ("[" * 10**6, "a first line of at most 100,000 letters"),
    ],
)
def test_a_first_line_without_end_is_not_taken_apart(request_of_scores, tmp_path, monkeypatch, head, words):
    (tmp_path / "scores.csv").write_text(f"{head}\n")
    monkeypatch.setattr("whosin.tables.read_table", lambda path: pytest.fail("it was read"))
    with pytest.raises(InputError, match=words):
        measure(tmp_path, request_of_scores[1], print)


def test_a_worker_that_stumbles_ends_as_programs_do(tmp_path):
    """It ended by SIGABRT, which the page took for a lack of memory."""
    (tmp_path / "request.json").write_text('{"memory_bytes": 4000000000}')
    command = [sys.executable, "-m", "whosin.web.worker", str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.wait(60) == 1
        assert b"KeyError" in process.stderr.read()


def test_helpers_answer_refuse_and_are_replaced(monkeypatch):
    questions = Questions(1, 60.0, 2_000_000_000)
    monkeypatch.setattr(questions, "warm", lambda: None)
    try:
        assert questions.answer(math.sqrt, 4.0, apart=True) == 2.0
        (helper,) = questions._helpers
        with pytest.raises(InputError, match="math domain error"):
            questions.answer(math.sqrt, -1.0, apart=True)
        assert questions.answer(os.getpid, apart=True) == helper.pid != os.getpid()
        assert questions.answer(os.getpid, apart=False) == os.getpid()
        if sys.platform == "linux":
            with pytest.raises(InputError, match="more memory"):
                questions.answer(bytearray, 10**10, apart=True)
        with pytest.raises(InputError, match="takes more than 60 seconds or 2 GB"):
            questions.answer(os._exit, 3, apart=True)
        assert questions._helpers == []
        questions._seconds = 0.2
        with pytest.raises(InputError, match=r"more than 0\.2 seconds"):
            questions.answer(time.sleep, 60, apart=True)
        assert questions._helpers == []
    finally:
        questions.close()


def test_a_question_without_end_is_ended_and_the_next_one_answered(start):
    """This calibration takes minutes; before it had a process of its own, two of them closed the questions for all."""
    client = with_token(start(limits=Limits(answer_seconds=0.5, computing=1)))
    hostile = "find=dpsgd&target=advantage&value=1e-9&steps=1000000&sample_rate=0.5"
    answer = client.get(f"/api/calibrate?{hostile}")
    assert answer.status_code == 422
    assert "more than 0.5 seconds" in answer.json()["error"]
    assert "This cannot be done: this takes more than" in client.get(f"/calibrate?{hostile}").text
    assert client.get("/api/explain").status_code == 200


def test_a_full_disk_is_said(start, monkeypatch):
    client = with_token(start())

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device", "/a/private/path")

    monkeypatch.setattr(type(service(client).folders), "new", full)
    answer = upload(client, {"scores": CSV})
    assert answer.status_code == 507
    assert "disk may be full" in answer.json()["error"]
    assert "private" not in answer.text

    def locked(*_):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(type(service(client).history), "all", locked)
    assert client.get("/api/audits").status_code == 507
    assert "disk may be full" in client.get("/audit").text


def test_an_outcome_that_could_not_be_noted_is_noted_later(start, monkeypatch, caplog):
    monkeypatch.setattr(jobs, "AFTER_TROUBLE", 0.05)
    client = with_token(start(worker=worker("import os; os._exit(7)")))
    history, troubles = type(service(client).history), []
    end = history.end

    def sometimes(self, *arguments, **more):
        if len(troubles) < 2:
            troubles.append(1)
            raise sqlite3.OperationalError("database or disk is full")
        end(self, *arguments, **more)

    monkeypatch.setattr(history, "end", sometimes)
    ended = wait(client, add(client), seconds=20)
    assert ended["state"] == "failed"
    assert "exit code 7" in ended["error"]
    assert len(troubles) == 2
    assert pids(client) == []


def test_files_on_their_way_are_not_swept_however_short_things_are_kept(start):
    client = with_token(start(limits=Limits(keep_hours=1e-6)))
    key = service(client).folders.new()
    time.sleep(0.02)
    service(client).jobs.sweep()
    assert list(service(client).folders.keys()) == [key]


def test_whoever_says_nothing_is_hung_up_on_and_slow_answers_are_not_cut(monkeypatch):
    monkeypatch.setattr(server, "HEAD_SECONDS", 0.3)

    async def app(scope, receive, send):
        await asyncio.sleep(1.0)
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    async def try_out():
        with socket.create_server(("127.0.0.1", 0)) as listening:
            config = uvicorn.Config(app, http=server._Impatient, lifespan="off", log_level="critical")
            served = uvicorn.Server(config)
            task = asyncio.create_task(served._serve([listening]))
            address = listening.getsockname()
            silent, silent_out = await asyncio.open_connection(*address)
            half, half_out = await asyncio.open_connection(*address)
            half_out.write(b"GET / HTTP/1.1\r\nHost: loc")
            patient, patient_out = await asyncio.open_connection(*address)
            patient_out.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            try:
                async with asyncio.timeout(20):
                    assert await silent.read() == b""
                    assert await half.read() == b""
                    assert (await patient.readline()).startswith(b"HTTP/1.1 204")
                    patient_out.write(b"GET / HT")
                    await patient.read()
            finally:
                for out in (silent_out, half_out, patient_out):
                    out.close()
                    await out.wait_closed()
                served.should_exit = True
                await task

    asyncio.run(try_out())


def test_nothing_is_called_safe(reader):
    for path in ("/explain", "/calibrate", "/audit", "/compare"):
        assert "safe" not in reader.get(path).text.lower()

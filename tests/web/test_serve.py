"""The real server, in a process of its own: where it listens, how it ends, and what it says after it was killed."""

import os
import signal
import socket
import sys
import time
from pathlib import Path

import httpx
import pytest
import typer
from typer.testing import CliRunner
from web_support import people, wait

from whosin.cli.serve import serve

app = typer.Typer()
app.command()(serve)


def run(*arguments, environment=None):
    """Run the command where it is expected to refuse; the code stands in for what the shell would see."""
    known = {"WHOSIN_PASSWORD": None, **(environment or {})}
    return CliRunner().invoke(app, ["--no-open", *arguments], env=known)


def test_a_port_that_is_taken(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run("--port", str(port), "--data-dir", str(tmp_path / "data"))
    assert done.exit_code == 2
    assert f"cannot listen on 127.0.0.1 port {port}" in done.stderr
    assert "Traceback" not in done.stderr


def test_remote_addresses_take_both_the_flag_and_a_password(tmp_path):
    data = ["--data-dir", str(tmp_path / "data"), "--port", "0"]
    refused = run("--host", "0.0.0.0", *data)
    assert refused.exit_code == 2
    assert "--allow-remote and a password" in refused.stderr
    no_password = run("--host", "0.0.0.0", "--allow-remote", *data)
    assert no_password.exit_code == 2
    assert "needs a password" in no_password.stderr
    short = run("--host", "0.0.0.0", "--allow-remote", *data, environment={"WHOSIN_PASSWORD": "short"})
    assert short.exit_code == 2
    assert "at least 12 characters" in short.stderr
    assert not (tmp_path / "data").exists()


def test_a_proxy_with_a_login_takes_the_place_of_a_password(server, tmp_path):
    remote = ["--allow-remote", "--data-dir", str(tmp_path / "data"), "--port", "0"]
    for arguments, says in (
        ([*remote, "--behind-proxy", "127.0.0.1"], "needs --login-header"),
        ([*remote, "--login-header", "X-User"], "needs --behind-proxy"),
        ([*remote[1:], "--login-header", "X-User", "--behind-proxy", "127.0.0.1"], "goes with --allow-remote"),
        (remote, "--behind-proxy"),
    ):
        refused = run(*arguments)
        assert refused.exit_code == 2
        assert says in refused.stderr
    served = server(
        "data", "--allow-remote", "--behind-proxy", "127.0.0.1", "--login-header", "X-User", "--name", "a.example"
    )
    assert "token" not in served.url
    for headers, status in (({"X-User": "ada"}, 200), ({}, 401), ({"X-User": "ada", "Host": "b.example"}, 421)):
        assert httpx.get(f"{served.base}explain", headers=headers).status_code == status
    through_tls = {"X-User": "ada", "Host": "a.example", "Origin": "https://a.example"}
    assert httpx.post(f"{served.base}api/audits", headers=through_tls).status_code == 403  # the page's token is missing
    assert httpx.get(f"{served.base}health").text == "ok"


def test_there_is_no_option_for_a_password():
    assert "--password" not in run("--help").stdout


def test_nothing_is_imported_from_the_folder_that_it_is_started_in(server, scores, tmp_path):
    """Neither by the server nor by the processes that answer questions and run audits."""
    folder = tmp_path / "downloads"
    folder.mkdir()
    trap = "import pathlib; pathlib.Path(__file__).with_name('touched').touch(); raise ImportError('not this one')"
    for name in ("numpy", "polars", "scipy", "whosin", "matplotlib", "jinja2"):
        (folder / f"{name}.py").write_text(trap)
    served = server(start_in=folder)
    with httpx.Client(base_url=served.base, headers={"Authorization": f"Bearer {served.token}"}, timeout=60) as client:
        asked = client.get("/api/explain", params={"kind": "dpsgd", "steps": 10})
        assert asked.status_code == 200, asked.text
        audit = client.post("/api/audits", files={"scores": ("s.csv", scores)})
        assert audit.status_code == 202, audit.text
        assert wait(client, audit.json()["id"])["state"] == "done"
    assert not (folder / "touched").exists()


def knock(served, head, body=b""):
    """Return a connection on which a request was sent, as raw bytes."""
    host, port = served.base.removeprefix("http://").strip("/").split(":")
    line = socket.create_connection((host, int(port)), timeout=60)
    line.sendall(f"{head}\r\nHost: {host}:{port}\r\nAuthorization: Bearer {served.token}\r\n\r\n".encode() + body)
    return line


def until(condition, seconds=30):
    limit = time.monotonic() + seconds
    while not (found := condition()) and time.monotonic() < limit:
        time.sleep(0.05)
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc and stops a process")
def test_a_heavy_question_is_given_up_when_whoever_asked_has_gone(server):
    """Two heavy questions that never end: a simple one is answered beside them; who hangs up frees helper and place."""
    served = server()

    def helpers():
        return set(served.children("whosin.web.questions"))

    assert until(helpers), "no helper was warm"
    headers = {"Authorization": f"Bearer {served.token}"}
    with httpx.Client(base_url=served.base, headers=headers, timeout=60) as client:
        client.get("/api/explain?kind=dpsgd")
        time.sleep(2.0)  # the warm helper is ready, too
        lines, stuck = [], set()
        for _ in range(2):
            lines.append(knock(served, "GET /explain?kind=dpsgd&steps=1000000&noise_multiplier=0.5 HTTP/1.1"))
            time.sleep(0.3)
            for pid in helpers() - stuck:
                os.kill(pid, signal.SIGSTOP)
                stuck.add(pid)
        assert client.get("/api/explain?epsilon=1").status_code == 200
        for line in lines:
            line.close()
        assert until(lambda: not helpers() & stuck, 15), "a helper works for nobody"
        assert client.get("/api/explain?kind=dpsgd").status_code == 200
        assert until(helpers), "no helper is warm for the next question"


@pytest.mark.parametrize("announced", [True, False])
def test_a_secret_that_is_too_long_is_refused_before_it_is_read(server, announced):
    """Of fifty megabytes that are announced none is waited for; without a length little more than a secret is read."""
    served, size = server(), 50_000_000
    length = f"Content-Length: {size}" if announced else "Transfer-Encoding: chunked"
    line = knock(served, f"POST /login HTTP/1.1\r\n{length}")
    if not announced:
        line.sendall(b"800\r\n" + b"x" * 0x800 + b"\r\n")
    line.settimeout(20)
    assert line.recv(65_536).startswith(b"HTTP/1.1 413")
    with pytest.raises(OSError):  # noqa: PT012, PT011 - whichever way the connection ends
        for _ in range(size // 65_536):
            line.sendall(b"x" * 65_536)
    line.close()


def test_the_browser_is_opened_by_a_file_that_it_can_read(tmp_path, monkeypatch):
    """Browsers in a sandbox see neither hidden folders nor /tmp; the file is private and goes with the server."""
    opened = []

    def look(address):
        path = Path(address.removeprefix("file://"))
        opened.append((path, path.stat().st_mode & 0o777, path.read_text()))

    monkeypatch.setattr(
        "whosin.web.server.serve", lambda settings, binding, password, announce: announce("http://a/?token=t", "t")
    )
    monkeypatch.setattr("webbrowser.open", look)
    home = tmp_path / "home"
    home.mkdir()
    done = CliRunner().invoke(app, ["--open"], env={"HOME": str(home), "XDG_DATA_HOME": None, "WHOSIN_PASSWORD": None})
    assert done.exit_code == 0, done.output
    ((path, mode, text),) = opened
    assert path.parent == home
    assert not path.name.startswith(".")
    assert mode == 0o600
    assert "url=http://a/?token=t" in text
    assert list(home.glob("*.html")) == []


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_killed_and_started_again(server, tmp_path):
    """It listens on this machine alone. A worker is killed, then the server: each time the truth is told."""
    for name, seed in (("train", 1), ("holdout", 2), ("synthetic", 3)):
        people(seed, 300).write_csv(tmp_path / f"{name}.csv")

    def send(client):
        files = {
            role: (f"{role}.csv", (tmp_path / f"{role}.csv").read_bytes()) for role in ("train", "holdout", "synthetic")
        }
        return client.post("/api/audits", files=files).json()["id"]

    def running(client, key):
        limit = time.monotonic() + 30
        while client.get(f"/api/audits/{key}").json()["state"] != "running" and time.monotonic() < limit:
            time.sleep(0.02)

    first = server()
    port = int(first.base.rpartition(":")[2].strip("/"))
    with open("/proc/net/tcp") as file:
        bound = [line.split()[1] for line in file.readlines()[1:] if line.split()[3] == "0A"]
    assert [address for address in bound if address.endswith(f":{port:04X}")] == [f"0100007F:{port:04X}"]
    second = run("--port", "0", "--data-dir", str(first.folder))
    assert second.exit_code == 2
    assert "another server uses" in second.stderr
    with httpx.Client(base_url=first.base, headers={"Authorization": f"Bearer {first.token}"}) as client:
        assert client.get("/api/audits").status_code == 200
        assert httpx.get(first.base + "api/audits").status_code == 401
        killed = send(client)
        running(client, killed)
        (worker,) = first.children()
        os.kill(worker, signal.SIGKILL)
        limit = time.monotonic() + 30
        while (audit := client.get(f"/api/audits/{killed}").json())["state"] == "running" and time.monotonic() < limit:
            time.sleep(0.05)
        assert audit["state"] == "failed"
        assert "SIGKILL" in audit["error"]
        orphan = send(client)
        running(client, orphan)
        (worker,) = first.children()
    _, said = first.end(signal.SIGKILL)
    assert f"audit {killed} ended: the process of this audit was ended by SIGKILL" in said
    limit = time.monotonic() + 10
    while os.path.exists(f"/proc/{worker}") and time.monotonic() < limit:
        time.sleep(0.05)
    assert not os.path.exists(f"/proc/{worker}"), "the worker outlived its server"

    again = server()
    with httpx.Client(base_url=again.base, headers={"Authorization": f"Bearer {again.token}"}) as client:
        states = {audit["id"]: audit["state"] for audit in client.get("/api/audits").json()["audits"]}
        assert states == {killed: "failed", orphan: "interrupted"}
        assert httpx.get(f"{again.base}?token={first.token}").status_code == 401
        third = send(client)
        running(client, third)
        (worker,) = again.children()
    code, said = again.end(signal.SIGINT)
    assert code in (0, 130, -signal.SIGINT)
    assert "Traceback" not in said
    assert not os.path.exists(f"/proc/{worker}")
    left = [path.name for path in (tmp_path / "served").rglob("*.csv")]
    assert left == []

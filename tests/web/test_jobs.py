"""Audits run apart: bounded in number, time and memory; whatever ends one, the server lives and says what happened."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
from web_support import pids, service, upload, wait, with_token

from whosin.errors import InputError
from whosin.web.app import create_app
from whosin.web.folders import read_json, write_json
from whosin.web.history import History
from whosin.web.settings import Limits, Settings
from whosin.web.worker import _progress_to, stage_of, with_labels

CSV = b"member,score\n1,0.5\n0,0.25\n"
SLOW = "import time; time.sleep(60)"


def worker(code):
    """Return the command of a worker that runs this code; the folder of the audit is sys.argv[1]."""
    return (sys.executable, "-c", code)


def add(client, **fields):
    answer = upload(client, {"scores": CSV}, **fields)
    assert answer.status_code == 202, answer.text
    return answer.json()["id"]


def is_alive(pid):
    """Return whether a process runs; one that has ended and was not collected yet does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


ENDS = {
    "import os; os._exit(7)": "exit code 7",
    "import os; os._exit(0)": "exit code 0",
    "import os; os.kill(os.getpid(), 9)": "ended by SIGKILL; the system may have been short of memory",
    "import os; os.kill(os.getpid(), 11)": "ended by SIGSEGV",
    "raise MemoryError": "exit code 1); the last it said: MemoryError",
    "raise SystemExit('no')": "exit code 1); the last it said: no",
    "import sys; open(sys.argv[1] + '/outcome.json', 'w').write('{half')": "ended without a result",
}


@pytest.mark.parametrize("code", ENDS)
def test_whatever_ends_a_job_the_server_lives_and_says_it(start, code, caplog):
    client = with_token(start(worker=worker(code)))
    key = add(client)
    ended = wait(client, key)
    assert ended["state"] == "failed"
    assert ENDS[code] in ended["error"]
    assert f"audit {key} ended: {ended['error']}" in caplog.text
    assert f"Failed: {ended['error']}" in client.get(f"/audit/{key}").text
    assert not (service(client).folders.of(key) / "scores.csv").exists()
    assert client.get("/api/explain").status_code == 200
    assert wait(client, add(client))["state"] == "failed"


def test_a_job_that_takes_too_long_is_ended_with_its_children(start, tmp_path):
    child = f"import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', {SLOW!r}]); "
    code = child + f"open({str(tmp_path / 'child')!r}, 'w').write(str(p.pid)); time.sleep(60)"
    client = with_token(start(worker=worker(code), limits=Limits(seconds=1.5)))
    key = add(client)
    wait(client, key, until=("running",))
    (pid,) = pids(client)
    ended = wait(client, key)
    assert ended["error"] == "it took more than 1.5 seconds"
    assert not is_alive(pid)
    limit = time.monotonic() + 5
    while is_alive(int((tmp_path / "child").read_text())) and time.monotonic() < limit:
        time.sleep(0.05)
    assert not is_alive(int((tmp_path / "child").read_text()))


@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited on Linux")
def test_memory_is_limited():
    """The limit of the worker itself, in a process of its own: 300 MB cannot be had within 200 MB."""
    import subprocess

    code = "from whosin.web.worker import limit_memory; limit_memory(2 * 10**8); bytearray(3 * 10**8)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "MemoryError" in done.stderr


def test_what_runs_out_of_memory_is_said(tmp_path, monkeypatch):
    from whosin.web import worker as module

    def hungry(*_):
        raise MemoryError

    monkeypatch.setattr(module, "_run", hungry)
    monkeypatch.setattr(module, "limit_memory", lambda count: None)
    monkeypatch.setattr(module, "_end_with_the_server", lambda: None)
    write_json(tmp_path / "request.json", {"memory_bytes": 2_000_000_000})
    assert module.main(tmp_path) == 0
    assert read_json(tmp_path / "outcome.json") == {"error": "it needed more than 2 GB of memory"}


def test_the_number_of_jobs_is_bounded(start):
    client = with_token(start(worker=worker(SLOW), limits=Limits(running=2, queued=3, audits=6)))
    keys = [add(client), add(client)]
    for key in keys:
        wait(client, key, until=("running",))
    keys += [add(client) for _ in range(3)]
    answer = upload(client, {"scores": CSV})
    assert answer.status_code == 429
    assert "3 audits wait already" in answer.json()["error"]
    assert len(pids(client)) == 2
    assert len(list(service(client).folders.keys())) == 5
    at_work = pids(client)
    assert client.delete(f"/api/audits/{keys[0]}").status_code == 204
    wait(client, keys[2], until=("running",))
    assert not is_alive(at_work[0])
    assert not service(client).folders.of(keys[0]).exists()
    assert service(client).history.count("running") == 2


def test_the_history_is_bounded(start, quick):
    client = with_token(start(worker=quick, limits=Limits(audits=1)))
    key = add(client)
    wait(client, key)
    assert "remove some first" in upload(client, {"scores": CSV}).json()["error"]
    client.delete(f"/api/audits/{key}")
    assert wait(client, add(client))["state"] == "done"


def test_progress_is_told_as_the_worker_tells_it(start):
    code = "import sys, time; open(sys.argv[1] + '/progress.json', 'w').write('{\"share\": 0.42}'); time.sleep(60)"
    client = with_token(start(worker=worker(code)))
    key = add(client)
    wait(client, key, until=("running",))
    limit = time.monotonic() + 10
    while (share := client.get(f"/api/audits/{key}").json()["progress"]) == 0 and time.monotonic() < limit:
        time.sleep(0.05)
    assert share == 0.42
    page = client.get(f"/audit/{key}/status").text
    assert "42% done" in page
    assert 'value="42"' in page
    assert "hx-get" in page


def test_progress_notes_are_few_and_whole(tmp_path):
    note = _progress_to(tmp_path / "progress.json")
    for share in (0.0, 0.1, 0.2):
        note(share)
    assert read_json(tmp_path / "progress.json") == {"share": 0.0, "stage": "Reading the files"}
    note(1.0)
    assert read_json(tmp_path / "progress.json") == {"share": 1.0, "stage": "Writing the report"}


def test_stopping_ends_the_jobs_and_a_restart_says_so(tmp_path):
    from web_support import BASE, TestClient

    settings = Settings(tmp_path / "data", worker=worker(SLOW))
    with TestClient(create_app(settings), base_url=BASE) as client:
        with_token(client)
        running, waiting = add(client, name="one"), add(client, name="two")
        wait(client, running, until=("running",))
        (pid,) = pids(client)
    assert not is_alive(pid)
    with TestClient(create_app(settings), base_url=BASE) as client:
        with_token(client)
        for key in (running, waiting):
            audit = client.get(f"/api/audits/{key}").json()
            assert audit["state"] == "interrupted"
            assert "stopped before" in audit["error"]
            assert "Interrupted" in client.get(f"/audit/{key}").text
            assert not any(service(client).folders.of(key).iterdir())


def test_what_was_done_when_the_server_died_is_done_after_the_restart(tmp_path, measured):
    """The worker had written its outcome; the server died before it looked."""
    from web_support import BASE, TestClient

    settings = Settings(tmp_path / "data", worker=worker(SLOW))
    app = create_app(settings)
    held = app.state.service
    key, other = held.folders.new(), held.folders.new()
    for one in (key, other):
        held.history.add(one, "kept", "scores", {}, {})
        held.history.start(one)
    write_json(held.folders.of(key) / "outcome.json", {"error": None, "summary": measured[0]})
    (held.folders.of(key) / "report.html").write_text("<p>x</p>")
    held.history.close()
    with TestClient(create_app(settings), base_url=BASE) as client:
        with_token(client)
        found = client.get(f"/api/audits/{key}").json()
        assert (found["state"], found["has_report"]) == ("done", True)
        assert found["summary"]["advantage"] == measured[0]["advantage"]
        assert client.get(f"/api/audits/{other}").json()["state"] == "interrupted"


def test_two_servers_do_not_share_a_folder(tmp_path):
    first = History(tmp_path / "history.sqlite")
    with pytest.raises(InputError, match="another server uses"):
        History(tmp_path / "history.sqlite")
    first.close()
    History(tmp_path / "history.sqlite").close()


def test_a_file_that_is_no_history(tmp_path):
    path = tmp_path / "history.sqlite"
    path.write_text("this is no database, and longer than a header of one hundred bytes would be" * 3)
    with pytest.raises(InputError, match="no history of whosin"):
        History(path)


def test_a_worker_ends_with_its_server(tmp_path):
    """Standard input closes when the server is gone, however it went."""
    import subprocess

    code = (
        "import threading, time; from whosin.web.worker import _end_with_the_server as e;"
        "threading.Thread(target=e, daemon=True).start(); print('up', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline().strip() == b"up"
    assert process.poll() is None
    process.stdin.close()
    assert process.wait(timeout=10) == 3
    process.stdout.close()


def test_a_worker_that_cannot_start(start):
    client = with_token(start(worker=("/no/such/program",)))
    assert "could not be started" in wait(client, add(client))["error"]


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_a_job_killed_in_the_middle(start, name):
    client = with_token(start(worker=worker(SLOW)))
    key = add(client)
    wait(client, key, until=("running",))
    os.kill(pids(client)[0], getattr(signal, name))
    assert f"was ended by {name}" in wait(client, key)["error"]


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("tables take the same columns; columns= chooses", "tables take the same columns; “Columns to use” chooses"),
        ("none is left; keep=[...] compares them", "none is left; “Columns to compare all the same” compares them"),
        ("groups=job is one; name=x is not", "“Groups” job is one; name=x is not"),
        ("leave out tolerate=", "leave out “Tolerated advantage”"),
        ("person must be a column of train", "“Person column” must be a column of train"),
        ("nothing of ours", "nothing of ours"),
    ],
)
def test_errors_speak_of_the_form(message, shown):
    assert with_labels(message) == shown


def test_errors_speak_of_the_files_by_their_names():
    files = {"holdout": {"name": "out\x1b.csv", "type": "csv"}, "synthetic": {"name": "s.tsv", "type": "tsv"}}
    shown = with_labels("holdout.csv line 3 is odd; skip_lines=1 leaves it out, header=False names none", files)
    assert shown.startswith("out")
    assert "\x1b" not in shown
    assert shown.endswith(
        "line 3 is odd; “Lines to leave out” 1 leaves it out, “Names above the rows” set to none names none"
    )


@pytest.mark.parametrize(
    ("share", "stage"), [(0.0, "Reading"), (0.3, "Comparing every"), (0.7, "Looking for"), (1.0, "Writing")]
)
def test_stages_have_names(share, stage):
    assert stage_of(share).startswith(stage)


def test_a_command_that_nobody_waits_for_is_ended_with_its_children(tmp_path):
    from whosin.web.tools import _run

    gone = threading.Event()
    code = f"import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', {SLOW!r}]); "
    code += f"open({str(tmp_path / 'child')!r}, 'w').write(str(p.pid)); time.sleep(60)"
    threading.Timer(1.5, gone.set).start()
    began = time.monotonic()
    with pytest.raises(InputError):
        _run([sys.executable, "-c", code], tmp_path, 100.0, gone)
    assert time.monotonic() - began < 30
    limit = time.monotonic() + 5
    while is_alive(int((tmp_path / "child").read_text())) and time.monotonic() < limit:
        time.sleep(0.05)
    assert not is_alive(int((tmp_path / "child").read_text()))
    assert _run([sys.executable, "-c", "print('x')"], tmp_path, 100.0, gone)[:2] == (0, "x\n")
    with pytest.raises(InputError, match=r"more than 0\.5 seconds"):
        _run([sys.executable, "-c", SLOW], tmp_path, 0.5, threading.Event())

"""Helpers of the page's tests: small tables, uploads, and a real server in a process of its own."""

import json
import os
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest

with warnings.catch_warnings():
    # Starlette asks for another HTTP client than the one that is there; both do.
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient

__all__ = ["BASE", "PORT", "SERVE", "Server", "TestClient"]
__all__ += ["faults", "here", "people", "pids", "service", "upload", "wait", "with_token"]

# as the command whosin does, and unlike python -m alone, it leaves the current folder out of its path
SERVE = [sys.executable, "-P", "-m", "whosin", "serve"]
PORT = 8642
BASE = f"http://127.0.0.1:{PORT}"


def people(seed, rows):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "age": rng.integers(18, 90, rows),
            "income": rng.lognormal(10, 1, rows).round(-2),
            "job": rng.choice(["cook", "clerk", "nurse"], rows),
        }
    )


def with_token(client):
    client.headers["Authorization"] = f"Bearer {service(client).access.token}"
    return client


def here(function, *arguments, gone=None):
    """Answer in this process what would take a helper."""
    return function(*arguments)


def service(client):
    return client.app.state.service


def pids(client):
    """The processes at work."""
    return [job.process.pid for job in service(client).jobs._running.values()]


def upload(client, files, path="/api/audits", **fields):
    """Send files (name to bytes or path) and fields."""
    sent = {
        role: (f"{role}.csv", content if isinstance(content, bytes) else Path(content).read_bytes())
        for role, content in files.items()
    }
    return client.post(path, files=sent, data=fields)


def wait(client, key, *, until=("done", "no verdict", "failed", "interrupted"), seconds=180):
    """Wait until an audit has ended, and return it."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        audit = client.get(f"/api/audits/{key}").json()
        if audit["state"] in until:
            return audit
        time.sleep(0.05)
    raise AssertionError(f"still {audit['state']} after {seconds} seconds")


def faults(page):
    """Return what axe, the checker of accessibility, finds on a page with everything unfolded; it fetches nothing."""
    checker = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    found = checker.Axe().run(page).response["violations"]
    return [f"{page.url} {fault['id']}: {node['html'][:200]}" for fault in found for node in fault["nodes"]]


class Server:
    """A real server in a process of its own."""

    def __init__(self, folder, *arguments, environment=None, start_in=None):
        self.folder = folder
        command = [*SERVE, "--port", "0", "--no-open", "--json", "--data-dir", str(folder), *arguments]
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            cwd=start_in,
            env={**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})},
        )
        line = self.process.stdout.readline()
        assert line, self.process.stderr.read()
        told = json.loads(line)
        self.url, self.token = told["url"], told["token"]
        self.base = self.url.partition("?")[0]

    def children(self, module="whosin.web.worker"):
        """Return the processes that the server started for audits, or for another module (Linux)."""
        found = []
        for path in Path(f"/proc/{self.process.pid}/task").glob("*/children"):
            found += [int(word) for word in path.read_text().split()]
        return [pid for pid in found if module.encode() in Path(f"/proc/{pid}/cmdline").read_bytes()]

    def end(self, how=signal.SIGINT):
        """End the server and return its exit code and what it said on standard error."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        _, said = self.process.communicate(timeout=20)
        return self.process.returncode, said

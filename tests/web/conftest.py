"""A server in this process, a real one in its own, small tables, and a browser where there is one."""

import json
import os
import signal
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

pytest.importorskip("fastapi", reason="the page needs whosin[web]")

from web_support import BASE, Server, TestClient, here, people, with_token

from whosin.web.app import create_app
from whosin.web.measure import measure
from whosin.web.models import AuditOptions
from whosin.web.settings import Limits, Settings

CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
FLAGS += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]

QUICK = """
import pathlib, shutil, sys
here, folder = pathlib.Path(__file__).parent, pathlib.Path(sys.argv[1])
(folder / "report.html").write_text("<p>a report</p>")
(folder / "details.json").write_text('{"row": 7}')
shutil.copy(here / "canned.json", folder / "outcome.json")
"""


@pytest.fixture(scope="session")
def tables(tmp_path_factory):
    """Three small tables; the release repeats training rows, so that there is something to find."""
    folder = tmp_path_factory.mktemp("tables")
    train, holdout = people(1, 200), people(2, 200)
    release = pl.concat([train.head(120), people(3, 80)])
    paths = {"train": train, "holdout": holdout, "synthetic": release, "fresh": people(4, 200)}
    for name, table in paths.items():
        table.write_csv(folder / f"{name}.csv")
    return {name: folder / f"{name}.csv" for name in paths}


@pytest.fixture(scope="session")
def scores():
    """Scores of an attack that works, as the bytes of a CSV file."""
    rng = np.random.default_rng(0)
    inside = np.repeat([1, 0], 150)
    values = rng.normal(1.5 * inside, 1.0)
    return ("member,score\n" + "".join(f"{i},{v:.4f}\n" for i, v in zip(inside, values, strict=True))).encode()


@pytest.fixture
def start(tmp_path):
    """Return a function that starts a server in this process, without any credentials in its client."""
    clients = []

    def begin(*, folder="data", password=None, worker=None, limits=None, **more):
        settings = Settings(tmp_path / folder, limits or Limits(), **({"worker": worker} if worker else {}), **more)
        client = TestClient(create_app(settings, password), base_url=BASE, follow_redirects=False)
        client.__enter__()
        clients.append(client)
        return client

    yield begin
    for client in clients:
        client.__exit__(None, None, None)


@pytest.fixture(scope="session")
def request_of_scores(tmp_path_factory, scores):
    """The folder and the request of an audit of scores, as the server hands them to a worker."""
    folder = tmp_path_factory.mktemp("request")
    (folder / "scores.csv").write_bytes(scores)
    options = AuditOptions(seed=3, promised_epsilon=1.0).model_dump()
    files = {"scores": {"name": "s.csv", "bytes": len(scores), "type": "csv"}}
    limits = {"rows": 1000, "columns": 10, "memory_bytes": 4_000_000_000}
    return folder, {"kind": "scores", "name": "canned", "options": options, "files": files, **limits}


@pytest.fixture(scope="session")
def measured(request_of_scores):
    """Summary, details and report of that audit, had in this process."""
    folder, request = request_of_scores
    return measure(folder, request, lambda share: None)


@pytest.fixture(scope="session")
def quick(tmp_path_factory, measured):
    """A worker that is done at once, with numbers that were measured before."""
    folder = tmp_path_factory.mktemp("quick")
    (folder / "canned.json").write_text(json.dumps({"error": None, "summary": measured[0]}))
    (folder / "worker.py").write_text(QUICK)
    return (sys.executable, str(folder / "worker.py"))


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """An application for all tests that leave no trace in it; its jobs do not run."""
    app = create_app(Settings(tmp_path_factory.mktemp("shared") / "data"))
    app.state.service.questions._ask = here
    yield app
    app.state.service.close()


@pytest.fixture
def stranger(shared):
    """A client that knows nothing."""
    return TestClient(shared, base_url=BASE, follow_redirects=False)


@pytest.fixture
def reader(stranger):
    """A client of the API, with the token, that changes nothing."""
    return with_token(stranger)


@pytest.fixture
def client(start):
    """A client of a server of its own, with the token."""
    return with_token(start())


@pytest.fixture
def server(tmp_path):
    """Return a function that starts a real server; whatever is left at the end is ended."""
    started = []

    def begin(folder="served", *arguments, environment=None, start_in=None):
        started.append(Server(tmp_path / folder, *arguments, environment=environment, start_in=start_in))
        return started[-1]

    yield begin
    for one in started:
        one.end(signal.SIGKILL)


@pytest.fixture(scope="module")
def chromium():
    """A browser without a window; without one, the tests skip loudly, or fail if WHOSIN_REQUIRE_BROWSER is set."""
    missing = None
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing = "Playwright is not installed"
    if missing is None and not Path(CHROMIUM).exists():
        missing = f"there is no {CHROMIUM}"
    if missing is not None:
        if os.environ.get("WHOSIN_REQUIRE_BROWSER"):
            pytest.fail(f"THE PAGE WAS NOT TESTED IN A BROWSER: {missing}")
        pytest.skip(f"THE PAGE WAS NOT TESTED IN A BROWSER: {missing}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


def pytest_terminal_summary(terminalreporter):
    """Say it once more at the end if the browser was missing."""
    skipped = terminalreporter.stats.get("skipped", [])
    if any("NOT TESTED IN A BROWSER" in str(report.longrepr) for report in skipped):
        terminalreporter.write_line("THE PAGE WAS NOT TESTED IN A BROWSER (see the reason above)", red=True)

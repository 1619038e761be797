"""A real PostgreSQL, started once for the tests of the ledger, from the binaries of the system."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

import pytest

BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))[-1:]
PASSWORD = "s3cret-Gänse!"


def _not_root() -> tuple[list[str], str | None]:
    """What starts a program as somebody whom the server accepts, and who that is."""
    if os.geteuid() != 0:
        return [], None
    names = [name for name in ("postgres", "nobody") if _is_user(name)]
    return ["setpriv", f"--reuid={names[0]}", "--clear-groups", f"--regid={pwd.getpwnam(names[0]).pw_gid}"], names[0]


def _is_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


@pytest.fixture(scope="session")
def server():
    """The folder of the server's socket."""
    found = next((str(path) for path in BINARIES if (path / "initdb").exists() and (path / "postgres").exists()), None)
    if found is None and shutil.which("initdb") and shutil.which("postgres"):
        found = str(Path(shutil.which("initdb")).parent)
    if found is None:
        message = "NOT TESTED on PostgreSQL: no initdb and postgres under /usr/lib/postgresql or in PATH"
        if os.environ.get("WHOSIN_REQUIRE_POSTGRES") == "1":
            pytest.fail(message)
        pytest.skip(message)
    pytest.importorskip("psycopg")
    before, user = _not_root()
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    if user is not None:
        shutil.chown(folder, user)
    data = folder / "data"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT, "cwd": "/"}
    options = ["-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync"]
    subprocess.run([*before, f"{found}/initdb", "-D", str(data), *options], check=True, **quiet)
    (data / "pg_hba.conf").write_text("local all asks scram-sha-256\nlocal all all trust\n", encoding="utf-8")
    settings = ("listen_addresses=", "fsync=off", "full_page_writes=off", "max_connections=40")
    command = [*before, f"{found}/postgres", "-D", str(data), "-k", str(folder)]
    process = subprocess.Popen([*command, *(part for line in settings for part in ("-c", line))], **quiet)
    try:
        _wait(folder, process)
        _administer(folder, f"CREATE ROLE asks LOGIN PASSWORD '{PASSWORD}'", "CREATE ROLE reads LOGIN")
        yield folder
    finally:
        process.send_signal(3)
        process.wait(timeout=20)
        shutil.rmtree(folder, ignore_errors=True)


def _wait(folder, process):
    import psycopg

    for _ in range(200):
        try:
            psycopg.connect(host=str(folder), user="postgres", dbname="postgres").close()
        except psycopg.OperationalError:
            assert process.poll() is None, "the server ended at once"
            time.sleep(0.05)
        else:
            return
    raise AssertionError("the server does not answer")


def _administer(folder, *statements):
    import psycopg

    with psycopg.connect(host=str(folder), user="postgres", dbname="postgres", autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


@pytest.fixture
def run_sql(server):
    """Run SQL as the owner of the server."""
    return lambda *statements: _administer(server, *statements)


@pytest.fixture
def database(server):
    """The URL, without a user, of a new schema that anybody may use."""
    name = f"ledger_{uuid.uuid4().hex}"
    _administer(server, f"CREATE SCHEMA {name}", f"GRANT ALL ON SCHEMA {name} TO PUBLIC")
    return f"/postgres?host={server}&options=-csearch_path%3D{name}"


@pytest.fixture
def folder():
    """A folder in memory where there is one: on disk every entry waits for the disk."""
    memory = Path("/dev/shm")
    place = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="ledger", dir=place) as path:
        yield Path(path)


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request, folder):
    """Where a new ledger may be made: a file, and a database."""
    if request.param == "sqlite":
        return str(folder / "ledger.db")
    return f"postgresql://postgres@{request.getfixturevalue('database')}"


@pytest.fixture
def tamper(address):
    """Run SQL behind the back of the ledger, the triggers taken away first."""

    def run(*statements):
        from sqlalchemy import text

        from whosin.ledger.place import Place
        from whosin.ledger.store import ENTRIES, Store

        place = Place(address)
        off = [f"DROP TRIGGER IF EXISTS {ENTRIES}_no_{change}" for change in ("UPDATE", "DELETE")]
        if place.path is None:
            off = [f"DROP TRIGGER IF EXISTS {ENTRIES}_no_change ON {ENTRIES}"]
        with Store(place)._engine.connect() as connection:
            for statement in (*off, *statements):
                connection.execute(text(statement))
            connection.commit()

    return run

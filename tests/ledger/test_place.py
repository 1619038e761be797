"""Where a ledger lies: addresses, permissions, files of other kinds, servers that refuse, and no password anywhere."""

import logging
import os
import sqlite3
import stat
import subprocess
import sys
import traceback

import pytest

import whosin as wi
from whosin.errors import InputError, InputTypeError, MissingExtraError, WhosinError
from whosin.ledger import Ledger, LedgerError
from whosin.ledger.place import Place, default_path

PASSWORD = "s3cret-Gänse!"


def test_the_default_is_private(tmp_path, monkeypatch):
    monkeypatch.delenv("WHOSIN_LEDGER", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(sys, "platform", "linux")
    ledger = Ledger()
    assert ledger.place == str(default_path()) == str(tmp_path / "data" / "whosin" / "ledger.db")
    ledger.add("x", dataset="d")
    assert stat.S_IMODE(default_path().stat().st_mode) == 0o600
    assert stat.S_IMODE(default_path().parent.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("platform", "part"), [("win32", "Local"), ("darwin", "Application Support"), ("linux", "share")]
)
def test_the_default_on_every_system(monkeypatch, platform, part):
    for name in ("XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", platform)
    assert part in default_path().parts


def test_the_environment_names_it(tmp_path, monkeypatch):
    monkeypatch.setenv("WHOSIN_LEDGER", str(tmp_path / "there.db"))
    Ledger().add("x", dataset="d")
    assert (tmp_path / "there.db").exists()
    assert Ledger(tmp_path / "else.db").place.endswith("else.db")


def test_files_by_url_and_with_strange_names(tmp_path):
    for name in ("plain.db", "Ärger 数据 %20 #?&.db"):
        Ledger(tmp_path / name).add("x", dataset="d")
        assert (tmp_path / name).is_file()
        assert len(Ledger(str(tmp_path / name))) == 1
    assert len(Ledger(f"sqlite:///{tmp_path}/plain.db")) == 1


@pytest.mark.parametrize("address", ["", " ", ":memory:", "a\0b", "sqlite://", "sqlite:///:memory:", 3, b"x.db"])
def test_what_is_no_address(address):
    with pytest.raises((InputError, InputTypeError), match="the ledger must be"):
        Ledger(address)


SECRETS = [
    "postgresql://user:s3cret@localhost:1/db",
    "postgres://user:s3cret@localhost:1/db",
    "postgresql+psycopg://user:s3cret@localhost:1/db?sslpassword=s3cret",
    "postgresql://user@/db?host=/nowhere&password=s3cret",
    "postgresql://user:s3cret@[::1]:1/db",
    "postgresql://user:pa/s3cret@host/db",
    "postgresql://user:pa@s3cret@host/db",
    "postgresql://user:pa#s3cret@host/db",
    "postgresql://user:pa?s3cret@host/db",
    "postgresql://user:s3cret@host:port/db",
    "postgresql://user:pass@localhost:1/db?connect_timeout=s3cret",
    "postgresql://user:pass@localhost:1/db?s3cret=1",
    "mysql://user:s3cret@host/db",
    "nonsense://user:s3cret@host/db",
    "://user:s3cret@host/db",
    "postgresql://user:s3cret@no-such-host.invalid/db",
    "postgresql://user:s3cret@localhost:99999/db",
]


@pytest.mark.parametrize("address", SECRETS)
def test_a_password_is_never_shown(address, caplog):
    """Not in the words of the error, its traceback, its causes, the repr or the log."""
    caplog.set_level(logging.DEBUG)
    shown = []

    def use():
        ledger = Ledger(address)
        shown.append(f"{ledger!r} {ledger.place} {ledger._store.place!r}")
        ledger.add("x", dataset="d")

    with pytest.raises(WhosinError) as caught:
        use()
    told = "".join(traceback.format_exception(caught.value, chain=True))
    told = "\n".join(line for line in told.splitlines() if "parametrize" not in line)
    assert "s3cret" not in "".join(shown) + told + str(caught.value) + caplog.text
    assert caught.value.__cause__ is None


def test_a_server_that_is_down(tmp_path):
    with pytest.raises(LedgerError, match=r"postgresql://user:\*\*\*@localhost:1/db cannot be reached"):
        Ledger("postgresql://user:pass@localhost:1/db").entries()
    with pytest.raises(LedgerError, match="no server answers there"):
        Ledger(f"postgresql://user@/db?host={tmp_path}").entries()


def test_a_password_that_is_right_and_one_that_is_wrong(database):
    from urllib.parse import quote

    ledger = Ledger(f"postgresql://asks:{quote(PASSWORD)}@{database}")
    ledger.add("x", dataset="d")
    assert ledger.place == "postgresql://asks:***@/postgres"
    for wrong in ("asks:wrong", "asks"):
        with pytest.raises(LedgerError, match="refuses the user or the password"):
            Ledger(f"postgresql://{wrong}@{database}").entries()
    with pytest.raises(LedgerError, match="no such database or user"):
        Ledger(f"postgresql://postgres@{database.replace('/postgres?', '/nothing?')}").entries()


def test_a_user_who_may_only_read(database, run_sql):
    Ledger(f"postgresql://postgres@{database}").add("x", dataset="d", guarantee=wi.PureDP(1.0))
    schema = database.rpartition("%3D")[2]
    reader = Ledger(f"postgresql://reads@{database}")
    with pytest.raises(LedgerError, match="permission denied"):
        reader.entries()
    run_sql(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO reads")
    assert reader.check(dataset="d").epsilon == 1.0
    assert reader.verify().intact
    with pytest.raises(LedgerError, match="permission denied"):
        reader.add("y", dataset="d")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"name,age\nAda,36\n" * 100, "is not a ledger"),
        (b"SQLite format 3\0" + b"\xff" * 4096, "is not a ledger|is damaged|cannot be"),
    ],
)
def test_files_of_other_kinds(tmp_path, content, words):
    path = tmp_path / "l.db"
    path.write_bytes(content)
    for use in (lambda: Ledger(path).entries(), lambda: Ledger(path).add("x", dataset="d")):
        with pytest.raises(LedgerError, match=words):
            use()
    assert path.read_bytes() == content


def test_databases_of_other_programs(tmp_path):
    path = tmp_path / "l.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE birds (name)")
    connection.close()
    for use in (lambda: Ledger(path).entries(), lambda: Ledger(path).add("x", dataset="d")):
        with pytest.raises(LedgerError, match="a database of something else"):
            use()


def test_an_empty_file_becomes_a_ledger(tmp_path):
    path = tmp_path / "l.db"
    path.touch()
    with pytest.raises(LedgerError, match="there is no ledger at"):
        Ledger(path).entries()
    Ledger(path).add("x", dataset="d")
    assert len(Ledger(path)) == 1


def test_folders(tmp_path):
    with pytest.raises(LedgerError, match="must be a file, got the folder"):
        Ledger(tmp_path).entries()
    with pytest.raises(LedgerError, match="must be a file, got the folder"):
        Ledger(tmp_path).add("x", dataset="d")
    with pytest.raises(LedgerError, match="cannot be made or opened"):
        Ledger(tmp_path / "missing" / "l.db").add("x", dataset="d")


def test_a_truncated_file(tmp_path):
    path = tmp_path / "l.db"
    ledger = Ledger(path)
    for number in range(30):
        ledger.add("x" * 1500, dataset=f"d{number}")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(LedgerError, match=r"is damaged|cannot be"):
        ledger.verify()


AS_NOBODY = """
import os, sys, tempfile
from whosin.ledger import Ledger, LedgerError
with tempfile.TemporaryDirectory() as folder:  # loads all modules, before they may be out of reach
    first = Ledger(folder + "/l.db")
    first.add("x", dataset="d"), first.verify()
if os.geteuid() == 0:
    os.setgid(65534), os.setuid(65534)
ledger = Ledger(sys.argv[1])
for use in (lambda: print("read", len(ledger), ledger.verify().intact), lambda: ledger.add("y", dataset="d")):
    try:
        use()
    except LedgerError as error:
        print(error)
"""


def as_nobody(path):
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, str(path)], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_permissions(folder):
    """Somebody else with and without the right to read and to write; a read-only copy in a read-only folder is read."""
    path = folder / "l.db"
    Ledger(path).add("x", dataset="d")
    folder.chmod(0o555)
    path.chmod(0o444)
    assert as_nobody(path) == f"read 1 True\nthe ledger {path} cannot be written: it may only be read\n"
    path.chmod(0o600 if os.geteuid() == 0 else 0o000)
    assert as_nobody(path).count("cannot be opened: no permission") == 2
    assert "cannot be made or opened" in as_nobody(folder / "other.db")
    folder.chmod(0o755)


def test_without_the_extra(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "sqlalchemy"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    for use in (lambda: Ledger(tmp_path / "l.db").add("x", dataset="d"), lambda: Ledger("postgresql://u@h/d")):
        with pytest.raises(MissingExtraError, match=r"a ledger needs SQLAlchemy.*pip install .*sqlalchemy"):
            use()


def test_the_room_is_light():
    heavy = ("sqlalchemy", "scipy", "polars", "dp_accounting", "sklearn")
    code = f"import sys, whosin.ledger; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_place_shows_no_options():
    assert str(Place("postgresql://u:p@h:5433/db?sslmode=require&passfile=/x")) == "postgresql://u:***@h:5433/db"

"""The command line: every option of every command, by what the commands say about themselves."""

import contextlib
import functools
import io
import json
import os

from .support import MARK, Bytes, file, patched, place

EXIT_CODES = {0, 1, 2, 3}
"""Done, a limit exceeded or a chain broken, a mistake in the input, beyond a budget."""

SCORES = b"member,score,group\n1,0.5,x\n0,0.25,y\n1,2,x\n0,1,x\n1,3,y\n0,0.5,y\n"
RECORDS = b"a,b\n1,2\n2,3\n-1,0.5\n4,4\n0,1\n3,-2\n"
FILES = {
    "scores.csv": SCORES,
    "records.csv": RECORDS,
    "train.csv": b"n,c\n1,x\n2,y\n3,x\n4,z\n",
    "other.csv": b"n,c\n1,x\n5,y\n3,y\n6,z\n",
    "hostile.csv": f'"{MARK} a>","[red]"\n1,=1\n2,$x\n,NA\n1e400,y\n'.encode(),
    "empty.csv": b"",
    "bytes.csv": bytes(range(256)),
    "certificate.json": b'{"certificate": {"mip": {"guarantee": "MIP", "eta": 0.1}, "test_mode": false}}',
    "audit.json": b'{"advantage": {"estimate": 0.1, "lower": 0.0, "upper": 0.2, "confidence_level": 0.95}}',
    "deep.json": b"[" * 100_000,
    "list.json": b"[1]",
    "text.json": b"\xff{",
}
WRITTEN = ("out.json", "out.csv", "out.npy", "out.txt", "report.html", "", ".", "missing/out.json", "a\udcff.json")
LEFT_OUT = {"--version", "--help", "--show-completion", "--install-completion"}
USUAL = {
    "train": ("train.csv",),
    "holdout": ("other.csv",),
    "synthetic": ("train.csv", "other.csv"),
    "scores": ("scores.csv",),
    "records": ("records.csv", "train.csv"),
    "candidates": ("records.csv",),
    "certificate": ("certificate.json",),
    "audit_json": ("audit.json",),
    "data": ("records.csv",),
    "statistic": ("mean", "sum", "median", "cov"),
    "out": ("out.json", "out.csv", "out.npy"),
    "eta": ("0.1",),
    "epsilon": ("1", "0.5"),
    "delta": ("1e-5", "0"),
    "clip": ("1",),
    "ledger": ("ledger.db",),
    "name": ("x",),
    "note": ("why",),
    "number": ("1",),
    "dataset": ("people",),
    "prior": ("0.5", "0.01"),
    "inclusion": ("0.1", "1"),
    "threshold": ("0.9",),
    "requests": ("0", "3"),
    "accuracy": ("0.6",),
    "advantage": ("0.1",),
    "posterior": ("0.7",),
    "tpr": ("0.1",),
    "fpr": ("0.01",),
    "adjacency": ("replace", "add_remove"),
    "noise": ("gaussian", "norm_exponential"),
    "split": ("relative", "total"),
    "train_fraction": ("0.5",),
    "confidence_level": ("0.95", "0.5"),
    "columns": ("a", "a,b", "score", "n", "n,c", "b, a"),
    "group": ("c", "group"),
    "assignment": ("unknown", "random"),
    "loss": ("distance", "squared"),
    "query": ("mean", "sum", "nearest", "rarity"),
    "budget_epsilon": ("1", "10"),
    "budget_delta": ("1e-5",),
    "budget_advantage": ("0.5",),
    "host": ("127.0.0.1", "::1", "localhost", "0.0.0.0"),
    "port": ("0", "8642"),
    "seed": ("0", "1"),
    "report": ("report.html",),
    "data_dir": ("served",),
    "journal": ("run.journal",),
}
"""Values with which a command gets further than its checks, by the name of the parameter."""
SMALL = {
    "steps": (("1", "2"), ("0", "-1", "1.5")),
    "subsets": (("64",), ("1", "0", "x")),
    "jobs": (("1",), ("0", "x", str(2**70))),
}
"""Parameters whose other values would only take long."""


def _command(*path, always=()):
    """Return a target for one command with any of its options."""

    def target(data):
        bits = Bytes(data)
        _prepare()
        command = _found(path)
        arguments = [*path]
        for parameter in command.params:
            name = parameter.name
            if name in always and name in ("method", "jobs"):
                arguments += _given(parameter, bits)
                continue
            wanted = parameter.required or name in always
            if (bits.rare(24) if wanted else not bits.rare(14)) or LEFT_OUT & set(parameter.opts):
                continue
            arguments += _given(parameter, bits)
        run(arguments, bits.choice(("utf-8", "utf-8", "ascii", "cp1252")))

    return target


def _given(parameter, bits):
    flag = bits.choice([*parameter.opts, *parameter.secondary_opts])
    if parameter.param_type_name == "argument":
        return [_value(parameter, bits)]
    if getattr(parameter, "is_flag", False):
        return [flag]
    many = 1 + bits.whole(2) if parameter.multiple else 1
    return [word for _ in range(many) for word in (flag, _value(parameter, bits))]


def _value(parameter, bits):
    """A value: mostly one of some use, else a number, a file that is there, or any text."""
    name = parameter.name
    if name in SMALL:
        return bits.odd(*SMALL[name])
    if name in USUAL and not bits.rare():
        return bits.choice(USUAL[name])
    if name == "method":
        return bits.odd(("pairwise",), ("", "x"))
    kind = bits.whole(5)
    if kind < 2:
        return repr(bits.share() if kind == 0 else bits.number())
    if kind == 2:
        return bits.choice((*FILES, *WRITTEN, "missing.csv"))
    if kind == 3:
        return bits.name().replace("/", "_").replace("\0", "0")
    # what an argument of bytes that are no UTF-8 becomes; no path leads out of the folder
    return os.fsdecode(bits.take(bits.whole(12))).replace("/", "_").replace("\0", "0")


def _prepare():
    for name, content in FILES.items():
        if not place(name).exists():
            file(name, content)
    for name in (*WRITTEN[:5], WRITTEN[-1], "run.journal"):
        with contextlib.suppress(FileNotFoundError):
            place(name).unlink()
    with contextlib.suppress(FileNotFoundError):
        if place("ledger.db").stat().st_size > 100_000:
            place("ledger.db").unlink()


@functools.cache
def _whosin():
    from typer.main import get_command

    from whosin.cli.app import app

    return get_command(app)


def _found(path):
    command = _whosin()
    for name in path:
        command = command.commands[name]
    return command


def run(arguments, encoding="utf-8"):
    """Run a command; only documented exit codes, no traceback, and JSON where it was asked for."""
    from whosin.cli import show_any_letter

    out = io.TextIOWrapper(io.BytesIO(), encoding=encoding, write_through=True)
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace", write_through=True)
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        show_any_letter()
        try:
            _whosin().main(arguments, prog_name="whosin", standalone_mode=True)
        except SystemExit as end:
            code = end.code or 0
    told = err.buffer.getvalue().decode()
    assert code in EXIT_CODES, (arguments, code, told)
    assert "Traceback" not in told, (arguments, told)
    assert told or code in (0, 1), (arguments, code)
    if code == 0 and "--json" in arguments:
        json.loads(out.buffer.getvalue().decode(encoding), parse_constant=_no_constant)


def _no_constant(name):
    raise AssertionError(f"{name} is not JSON")


def _scores(data):
    """A file of scores on the command line."""
    path = file("input.csv", b"member,score\n" + data)
    run(["audit", "--scores", str(path), "--json", "--seed", "0"])


_PROMISES = [_command(name, always=("epsilon",)) for name in ("explain", "bounds", "deletions")]
_PROMISES += [_command("explain", always=(name,)) for name in ("mu", "eta")]
_PROMISES += [_command("calibrate", always=(name,)) for name in ("accuracy", "advantage", "posterior")]
_POPULATIONS = [_command("population", name, always=("epsilon", "method")) for name in ("gaussian", "laplace")]
_POPULATIONS.append(_command("population", "exponential", always=("epsilon", "jobs")))
_LEDGERS = [_command("ledger", name, always=("ledger",)) for name in ("add", "list", "check", "verify", "retract")]
_LEDGERS.append(_command("ledger", "same-people", always=("ledger", "data")))
_TABLES = _command("audit", always=("train", "holdout", "synthetic", "jobs"))
_SCORED = _command("audit", always=("scores", "jobs"))


def _one_of(commands):
    def target(data):
        commands[data[0] % len(commands) if data else 0](data[1:])

    return target


def _serve(data):
    """The options of the server, which is not started."""
    from whosin.web import server

    def serve(settings, binding, password, announce):
        announce("http://127.0.0.1/?token=x", "x")

    place("served").mkdir(mode=0o700, exist_ok=True)
    os.environ["WHOSIN_PASSWORD"] = "a long password" if data[:1] > b"\x80" else "short"
    try:
        with patched(server, serve=serve), patched(_browser(), open=lambda url: True):
            _command("serve")(data[1:])
    finally:
        os.environ.pop("WHOSIN_PASSWORD", None)


def _browser():
    import webbrowser

    return webbrowser


def _backend(data):
    """Where the loops of a command run; no scheduler is asked."""
    bits = Bytes(data)
    arguments = []
    if bits.whole(4):
        arguments += ["--backend", bits.choice(("loky", "threading", "dask", "ray", "", bits.name()))]
    if bits.whole(3) == 0:
        arguments += ["--workers", bits.choice(("1", "2", "0", "-1", "x", "1e3", repr(bits.number())))]
    if bits.whole(3) == 0 and "dask" not in arguments and "ray" not in arguments:
        arguments += ["--scheduler", bits.name()]
    run([*arguments, "bounds", "--epsilon", "1", "--json"])


TARGETS = {
    "scores": _scores,
    "cli-promises": _one_of(_PROMISES),
    "cli-audit": _one_of([_TABLES, _SCORED]),
    "cli-protect": _command("protect"),
    "cli-population": _one_of(_POPULATIONS),
    "cli-ledger": _one_of(_LEDGERS),
    "cli-serve": _serve,
    "cli-backend": _backend,
}


def seeds(name):
    """Some inputs that are right, from which the search starts; None where any bytes are."""
    if name == "scores":
        return [b"1,0.5\n0,0.25\n1,2\n0,1\n", b"yes,1\nno,2\n"]
    return None

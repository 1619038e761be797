"""What is fuzzed: every parser and the public functions, each as a function of bytes.

A target returns, or raises one of ``EXPECTED``. Anything else, a numpy or Python warning with it, is a finding.
"""

import contextlib
import io
import json
import math
import os
import struct
import tempfile
import warnings
from pathlib import Path

import numpy as np

import whosin as wi
from whosin.errors import InputError, WhosinError

EXPECTED = (WhosinError,)
EXIT_CODES = {0, 1, 2, 3}
"""Of the command line: done, a limit exceeded or a chain broken, a mistake in the input, beyond a budget."""

_FOLDER = Path(tempfile.mkdtemp(prefix="whosin-fuzz-"))


class Bytes:
    """Takes numbers and words off the front of some bytes; zeros after their end."""

    SPECIAL = (0.0, -0.0, 0.5, 1.0, -1.0, 1e-300, 1e-12, 1e300, 5e-324, 709.0, 745.0, math.inf, -math.inf, math.nan)

    def __init__(self, data):
        self.data = bytes(data)

    def take(self, count):
        taken, self.data = self.data[:count], self.data[count:]
        return taken.ljust(count, b"\0")

    def whole(self, below):
        return int.from_bytes(self.take(2), "little") % below

    def number(self):
        """A float of any size, one of those at which formulas break, or one in [0, 1]."""
        kind = self.whole(4)
        if kind == 0:
            return self.SPECIAL[self.whole(len(self.SPECIAL))]
        if kind == 1:
            return struct.unpack("<d", self.take(8))[0]
        share = int.from_bytes(self.take(6), "little") / 2**48
        return share if kind == 2 else -20.0 * math.log(share) if share > 0.0 else 20.0

    def value(self):
        """A number, or something that is none."""
        odd = (None, "1", True, 1j, [0.5], (), {}, 10**400, np.float64(0.5), np.array([0.5]), b"1")
        return self.number() if self.whole(8) else odd[self.whole(len(odd))]

    def text(self, length=12):
        return self.take(self.whole(length)).decode("utf-8", "replace")

    def choice(self, options):
        return options[self.whole(len(options))]


def _file(ending, data):
    path = _FOLDER / f"input{ending}"
    path.write_bytes(data)
    return path


def _table(ending):
    def target(data):
        from whosin.tables import read_table

        table = read_table(_file(ending, data))
        assert len(table) >= 1
        str(table)

    return target


def _tables(data):
    """CSV twice: matched, counted and encoded as an audit does."""
    from whosin.tables import TableEncoder, duplicate_rows, match_tables, read_table, shared_rows

    first, _, second = data.partition(b"\n\n\n")
    tables = [read_table(_file(f"-{i}.csv", part)) for i, part in enumerate((first, second or first))]
    matched = match_tables(*tables)
    duplicate_rows(matched[0])
    shared_rows(*matched[:2])
    TableEncoder.fit(*matched).transform(matched[0])


def _numeric(data):
    from whosin.tables import read_numeric

    matrix, names = read_numeric(_file(".csv", data))
    assert np.isfinite(matrix).all()
    assert matrix.shape[1] == len(names)


def _stream(data):
    from whosin.tables import as_stream

    stream = as_stream(_file(".parquet", data), block_rows=7)
    if stream.rows < 10_000:
        rows = sum(block.height for _, block in stream.blocks(stream.names))
        assert rows == stream.rows


def _scores(data):
    """A file of scores on the command line."""
    path = _file(".csv", b"member,score\n" + data)
    _command(["audit", "--scores", str(path), "--json", "--seed", "0"])


def _ledger_json(data):
    """A certificate, an audit or a stored promise as JSON."""
    from whosin.ledger import Ledger
    from whosin.ledger.promises import promise_from_dict

    try:
        known = json.loads(data)
    except (ValueError, RecursionError):
        return
    if not isinstance(known, dict):
        return
    place = _FOLDER / "ledger.db"
    place.unlink(missing_ok=True)
    for attempt in (
        lambda: promise_from_dict(known),
        lambda: Ledger(place).add("x", dataset="d", certificate=known),
        lambda: Ledger(place).add("x", dataset="d", audit=known),
    ):
        with contextlib.suppress(WhosinError):
            attempt()


def _ledger_url(data):
    from whosin.ledger.place import Place

    text = data.decode("utf-8", "replace")
    prefix = ("", "sqlite:///", "postgresql://", "postgresql://u:p@")[len(data) % 4]
    place = Place(prefix + text)
    str(place)
    place.url()


COMMANDS = (
    ("explain", ("--epsilon", "--delta", "--mu", "--eta", "--prior", "--adjacency")),
    ("calibrate", ("--accuracy", "--advantage", "--posterior", "--tpr", "--fpr", "--prior", "--delta", "--epsilon")),
    ("bounds", ("--epsilon", "--delta", "--prior")),
    ("deletions", ("--epsilon", "--inclusion", "--threshold", "--requests")),
)


def _command_line(data):
    """Arguments of the commands that take numbers."""
    bits = Bytes(data)
    name, options = bits.choice(COMMANDS)
    arguments = [name]
    for _ in range(bits.whole(5)):
        value = repr(bits.number()) if bits.whole(4) else bits.text()
        arguments += [bits.choice(options), value.replace("\0", "0")]
    if bits.whole(2):
        arguments.append("--json")
    _command(arguments)


def _command(arguments):
    """Run a command; only documented exit codes, no traceback, and JSON where it was asked for."""
    from whosin.cli.app import app

    out, err = io.StringIO(), io.StringIO()
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            app(arguments, standalone_mode=True)
        except SystemExit as end:
            code = end.code or 0
    assert code in EXIT_CODES, (arguments, code, err.getvalue())
    assert "Traceback" not in err.getvalue(), (arguments, err.getvalue())
    if code == 0 and "--json" in arguments:
        json.loads(out.getvalue(), parse_constant=_no_constant)


def _no_constant(name):
    raise AssertionError(f"{name} is not JSON")


_MAKERS = (
    lambda b: wi.PureDP(b.value(), b.choice(("add_remove", "replace", "", None))),
    lambda b: wi.ApproxDP(b.value(), b.value(), b.choice(("add_remove", "replace", "swap"))),
    lambda b: wi.GaussianDP(b.value(), b.choice(("add_remove", "replace"))),
    lambda b: wi.PMP(b.value(), b.value(), b.value()),
    lambda b: wi.MIP(b.value(), b.value()),
    lambda b: wi.MembershipPrivacy(
        b.value(), b.choice(("independent", "bounded", "uniform", "prior")), b.choice((True, False, 1))
    ),
    lambda b: wi.DifferentialIdentifiability(b.value(), b.choice((2, 3, 10, 10**6, 10**30, 1, 2.5))),
)
_CLASSES = (wi.PureDP, wi.ApproxDP, wi.GaussianDP, wi.PMP, wi.MIP, wi.MembershipPrivacy, wi.DifferentialIdentifiability)
_PARAMETERS = ("delta", "train_fraction", "candidates", "sample_rate", "adjacency", "family", "negative")
_METRICS = ("accuracy", "advantage", "advantage_at_prior", "am", "npv", "ppv", "posterior", "recall")


def _guarantees(data):
    """Any guarantee, asked anything; its numbers are probabilities."""
    bits = Bytes(data)
    g = bits.choice(_MAKERS)(bits)
    prior = bits.number() if bits.whole(4) else 0.5
    json.dumps(g.to_dict(), allow_nan=False)
    with contextlib.suppress(WhosinError):
        values = [g.accuracy(prior), g.advantage(), *g.posterior(prior), g.tpr_at(bits.number())]
        assert all(0.0 <= value <= 1.0 for value in values), (g, prior, values)
        low, high = values[2:4]
        assert low <= prior * (1 + 1e-12)
        assert high >= prior * (1 - 1e-12), (g, prior, low, high)
        assert values[0] >= max(prior, 1.0 - prior)
    with contextlib.suppress(WhosinError):
        g.risk(bits.choice(_METRICS), prior)
    with contextlib.suppress(WhosinError):
        g.explain(prior)
    parameters = {bits.choice(_PARAMETERS): bits.value() for _ in range(bits.whole(3))}
    implied = g.implies(bits.choice(_CLASSES), **parameters)
    str(implied)


def _calibrations(data):
    """Calibration, bounds, sampling and deletions: what comes back keeps the target."""
    bits = Bytes(data)
    name = bits.choice(("accuracy", "advantage", "posterior", "tpr_at"))
    limit = (bits.value(), bits.value()) if name == "tpr_at" else bits.value()
    prior, delta = bits.number(), bits.number() if bits.whole(2) else 0.0
    which = bits.whole(6)
    if which == 0:
        found = wi.calibrate.epsilon(**{name: limit}, prior=prior, delta=delta)
        risk = {
            "accuracy": lambda: found.accuracy(prior),
            "advantage": found.advantage,
            "posterior": lambda: found.posterior(prior)[1],
            "tpr_at": lambda: found.tpr_at(limit[1]),
        }[name]()
        assert risk <= (limit[0] if name == "tpr_at" else limit)
    elif which == 1 and name != "posterior":
        wi.calibrate.mip(**{name: limit}, train_fraction=prior)
    elif which == 2:
        rate = wi.calibrate.sampling_rate(bits.value(), posterior=limit)
        assert 0.0 < rate <= 1.0
    elif which == 3:
        assert wi.calibrate.gaussian_noise(bits.value(), bits.value(), bits.value()) >= 0.0
    elif which == 4:
        assert wi.unlearning.deletion_capacity(bits.value(), bits.value(), bits.value()) >= 0
    else:
        table = wi.bounds.table(bits.value(), bits.value(), prior)
        assert all(row.value is None or 0.0 <= row.value <= 1.0 for row in table)
        json.dumps(table.to_dict(), allow_nan=False)


def _curves(data):
    """Curves from any points and any laws."""
    bits = Bytes(data)
    size = 1 + bits.whole(6)
    x, y = ([bits.number() for _ in range(size)] for _ in range(2))
    if bits.whole(2):
        x, y = ([abs(v) if math.isfinite(v) else 0.0 for v in law] for law in (x, y))
        x, y = ([v / (math.fsum(law) or 1.0) for v in law] for law in (x, y))
        roc = wi.Roc.from_likelihoods(x, y)
    else:
        roc = wi.Roc(x, y)
    roc.hull().symmetrised()
    roc.slopes  # noqa: B018
    with contextlib.suppress(InputError):
        roc.slope_for(bits.number())
    with contextlib.suppress(InputError):
        roc.divergence(bits.number())
    with contextlib.suppress(InputError):
        assert 0.0 <= roc.tpr(bits.number()) <= 1.0
    json.dumps(roc.to_dict(), allow_nan=False)


def _audits(data):
    """An audit of any scores."""
    bits = Bytes(data)
    members, others = ([bits.number() for _ in range(bits.whole(12))] for _ in range(2))
    found = wi.audit(members, others, prior=bits.choice((0.5, 0.01, bits.number())), rng=0)
    json.dumps(found.to_dict(), allow_nan=False)
    assert 0.0 <= found.advantage.lower <= found.advantage.upper <= 1.0


TARGETS = {
    "csv": _table(".csv"),
    "tsv-gz": _table(".tsv.gz"),
    "parquet": _table(".parquet"),
    "arrow": _table(".arrow"),
    "npy": _table(".npy"),
    "npz": _table(".npz"),
    "tables": _tables,
    "numeric": _numeric,
    "stream": _stream,
    "scores": _scores,
    "ledger-json": _ledger_json,
    "ledger-url": _ledger_url,
    "command-line": _command_line,
    "guarantees": _guarantees,
    "calibrations": _calibrations,
    "curves": _curves,
    "audits": _audits,
}


def seeds(name):
    """Some inputs that are right, from which the search starts."""
    frame = {"a": [1.5, 2.0, -3.0], "b": ["x", "y", None]}
    if name in ("csv", "tables", "numeric"):
        return [b"a,b\n1,2\n3,4\n", b"a;b\n1;2\n", b'"a ""q""",b\n"1\n2",NA\n', b"1,2\n3,4\n\n\na,b\n1,x\n"]
    if name == "tsv-gz":
        import gzip

        return [gzip.compress(b"a\tb\n1\t2\n")]
    if name in ("parquet", "arrow", "stream"):
        import polars as pl

        stream = io.BytesIO()
        made = pl.DataFrame(frame)
        made.write_ipc(stream) if name == "arrow" else made.write_parquet(stream)
        return [stream.getvalue()]
    if name in ("npy", "npz"):
        stream = io.BytesIO()
        (np.save if name == "npy" else np.savez)(stream, np.arange(6.0).reshape(3, 2))
        return [stream.getvalue()]
    if name == "scores":
        return [b"1,0.5\n0,0.25\n1,2\n0,1\n", b"yes,1\nno,2\n"]
    if name == "ledger-json":
        promise = {"guarantee": "PureDP", "epsilon": 1.0, "adjacency": "add_remove"}
        return [json.dumps(promise).encode(), b'{"mip": {"eta": 0.1}}', b"[]", b'{"advantage": {"upper": 0.1}}']
    if name == "ledger-url":
        return [b"a.db", b"user:password@host/base", b"h/b?x=1", b"%2F@h:99999/b"]
    return [bytes(range(64)), bytes(64), b"\xff" * 64]


def run(name, data):
    """Try one input; raise what is a finding."""
    with warnings.catch_warnings(), np.errstate(all="warn", under="ignore"):
        warnings.simplefilter("error")
        try:
            TARGETS[name](data)
        except EXPECTED:
            return


os.environ.setdefault("WHOSIN_LEDGER", str(_FOLDER / "default.db"))

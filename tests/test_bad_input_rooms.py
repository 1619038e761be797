"""Bad input in every room: each row of the second table in docs/guide/bad-input.md is run here."""

import bz2
import contextlib
import gzip
import itertools
import lzma
import math
import os
import re
import sqlite3
import struct
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from small_disk import small_disk
from typer.testing import CliRunner
from workbooks import workbook

import whosin as wi
from whosin.auditing.measuring.score_table import audit_score_table
from whosin.auditing.models import ReferenceModels, audit_classifier
from whosin.auditing.models.generators import audit_generator
from whosin.cli.app import app
from whosin.errors import AssumptionWarning, InputError, InputTypeError, MissingExtraError
from whosin.ledger import Ledger, LedgerError
from whosin.parallel.journal import Journal
from whosin.tables import as_stream, as_table, embedded, linked, match_tables, phrase_scores, read_numeric, read_table

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "bad-input.md"
RECORDS = np.random.default_rng(0).normal(size=(50, 2))
TWICE = np.repeat(RECORDS[:10], 2, axis=0)
LABELS = np.arange(50) % 2
HUGE = 10**18
NO_NAME = "a" * 300
DISGUISED = b'PK\x03\x04|PAR1|\x1f\x8b|<html>|{"a": 1}|@relation|SQLite format 3\0|%PDF-1|version https://git-lfs'
ERRORS = {
    error.__name__: error for error in (InputError, InputTypeError, LedgerError, MissingExtraError, AssumptionWarning)
}


def every(*runs):
    """Run all; the same error comes out of each."""
    errors = []
    for run in runs:
        with pytest.raises(Exception) as caught:  # noqa: PT011 - the caller judges it
            run()
        errors.append(caught.value)
    assert len({type(error) for error in errors}) == 1, errors
    raise errors[0]


def file(name, data):
    Path(name).write_bytes(data)
    return name


def pipe(name):
    os.mkfifo(name)
    return name


def equal(found, expected):
    assert found == expected, found


def holds(content, expected, note=""):
    """A file has these cells and a note with these words."""
    found = read_table(file("a.csv", content))
    equal({name: found.column(name).tolist() for name in expected}, expected)
    assert not note or any(note in said for said in found.notes), found.notes


def book():
    return workbook("a.xlsx", people=[["a"], [1]], empty=[])


def packed_as(name, *hidden):
    with zipfile.ZipFile(name, "w") as packed:
        packed.writestr("a.csv", "a,b\n1,2\n")
        for other in hidden:
            packed.writestr(other, "")
    return name


def zip_of_two():
    with zipfile.ZipFile("a.csv.zip", "w") as packed:
        packed.writestr("a.csv", "a\n1\n")
        packed.writestr("b.csv", "a\n1\n")
    read_table("a.csv.zip")


def folder(name):
    Path(name).mkdir()
    return name


def spoiled(value):
    records = RECORDS.copy()
    records[0, 0] = value
    return records


def frame(records):
    return pl.DataFrame(np.asarray(records), schema=["a", "b"])


def release(train=RECORDS[:25], holdout=RECORDS[25:], synthetic=RECORDS[:25]):
    return wi.audit_synthetic(frame(train), frame(holdout), synthetic, rng=0)


def seeded_audit(person=None, **more):
    """An audit of fresh people, of whom the first of each table has twenty-one rows."""
    rng, of_whom = np.random.default_rng(5), np.maximum(np.arange(40) - 20, 0)
    tables = []
    for side in "abc":
        people = {"k": [f"{side}{who}" for who in of_whom]} if person else {}
        tables.append(pl.DataFrame({"x": rng.normal(size=40), **people, **more}))
    return wi.audit_synthetic(*tables, person=person, rng=0)


def drifting_sides():
    rng = np.random.default_rng(0)
    tables = (frame(np.column_stack([rng.normal(size=200), rng.normal(late, 1, 200)])) for late in (0, 3, 0))
    assert wi.audit_synthetic(*tables, rng=0).records_alone.columns == ("b",)


def constant_release():
    ones = [np.ones((50, 2))] * 3
    found = [wi.audit_synthetic(*ones, rng=0), wi.audit_synthetic(*map(frame, ones), rng=0)]
    assert [audit.advantage.estimate for audit in found] == [0.0, 0.0]
    assert {audit.verdict.state for audit in found} == {"no verdict"}


class Model:
    """A classifier or a generator that says what it is told to say."""

    def __init__(self, says):
        self.says = self.sample = self.predict_proba = says


def fails(given):
    raise RuntimeError("out of order")


def classifier(model=None, records=RECORDS, labels=LABELS):
    model = LogisticRegression().fit(RECORDS, LABELS) if model is None else model
    return audit_classifier(model, (records[:25], labels[:25]), (records[25:], labels[25:]), rng=0)


def probabilities(*row):
    return Model(lambda records: np.tile(row, (len(records), 1)))


def classes_differ():
    model = probabilities(0.2, 0.3, 0.5)
    model.classes_ = [0, 1]
    return classifier(model)


def references(labels=LABELS, models=4):
    return ReferenceModels.train(LogisticRegression(), RECORDS, labels, models=models, rng=0)


def generator(says, table=np.asarray):
    return audit_generator(Model(says), table(RECORDS[:25]), table(RECORDS[25:]), rng=0)


def dpsgd(records=RECORDS, **settings):
    torch = pytest.importorskip("torch")
    pytest.importorskip("opacus")
    from whosin.auditing.models import train_dpsgd

    usual = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "sample_rate": 0.5, "steps": 1, "rng": 0}
    return train_dpsgd(torch.nn.Linear(2, 2), records, LABELS, **usual | settings)


def damaged_checkpoint():
    found = dpsgd(journal="kept")
    from whosin.training.checkpoint import Checkpoint

    kept = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "remove", lambda self: kept.append(self.path))
        dpsgd(journal="kept")
    kept[0].write_bytes(kept[0].read_bytes()[:-100])
    again = dpsgd(journal="kept").model.module.weight
    assert (again == found.model.module.weight).all()


def no_epsilon():
    for promise in (wi.DPSGD(1.0, 0.1, 1), wi.GaussianDP(1.0)):
        assert promise.implies(wi.ApproxDP, delta=0.0).epsilon == math.inf


def protect(records, eta=0.1):
    return wi.protect("mean", records, eta=eta, rng=0)


def population(records=RECORDS, **options):
    return wi.population.gaussian(records, **{"epsilon": 1.0, "delta": 1e-5, "clip": 1.0, **options})


def half_a_parquet():
    pl.DataFrame({"a": [1.0, 2.0]}).write_parquet("whole.parquet")
    whole = Path("whole.parquet").read_bytes()
    return read_table(file("half.parquet", whole[: len(whole) // 2]))


def parquet_that_states(rows):
    """A file of 300,003 rows whose footer has another total."""

    def written(number):
        digits, number = [], 2 * number
        while number > 127:
            digits.append(number & 127 | 128)
            number >>= 7
        return bytes([*digits, number])

    pl.DataFrame({"a": np.zeros(300_003)}).write_parquet("true.parquet", statistics=False)
    content = Path("true.parquet").read_bytes()
    (size,) = struct.unpack("<I", content[-8:-4])
    footer = content[-8 - size : -8]
    assert footer.count(written(300_003)) == 1
    footer = footer.replace(written(300_003), written(rows))
    file("false.parquet", content[: -8 - size] + footer + struct.pack("<I", len(footer)) + b"PAR1")
    return as_stream("false.parquet").table()


def parquet_with_pages_of(values):
    """A file of 3 rows whose page header has another number."""
    pl.DataFrame({"a": [1.0, 2.0, 3.0]}).write_parquet("pages.parquet", statistics=False)
    content = bytearray(Path("pages.parquet").read_bytes())
    place = content.index(b"\x2c\x15\x06", 4) + 2
    content[place] = 2 * values if values >= 0 else -2 * values - 1
    return file("pages.parquet", bytes(content))


def objects():
    np.save("objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    return read_table("objects.npy")


def array_that_states(rows):
    with open("false.npy", "wb") as stream:
        np.lib.format.write_array_header_1_0(stream, {"descr": "<f8", "fortran_order": False, "shape": (rows, 2)})
    return read_table("false.npy")


def ledger(name="l.db"):
    found = Ledger(name)
    for number in range(3):
        found.add(str(number), dataset="people")
    return found


def damaged_ledger():
    found = ledger()
    file("l.db", Path("l.db").read_bytes()[:5000])
    every(found.entries, found.verify, lambda: found.add("more", dataset="people"))


def changed_ledger():
    found = ledger()
    with sqlite3.connect("l.db") as database:
        database.execute("DROP TRIGGER whosin_ledger_entries_no_UPDATE")
        database.execute("UPDATE whosin_ledger_entries SET body = replace(body, 'people', 'nobody') WHERE number = 2")
    database.close()
    assert "entry 2 was changed" in found.verify().problems


def read_only_ledger():
    found = ledger(f"{folder('kept')}/l.db")
    Path("kept/l.db").chmod(0o400)
    Path("kept").chmod(0o500)
    try:
        assert len(found.entries()) == 3
        if os.access("kept/l.db", os.W_OK):
            pytest.skip("this user may write everything")
        found.add("more", dataset="people")
    finally:
        Path("kept").chmod(0o700)


def damaged_journal():
    for number in range(3):
        Journal("j", "run").write(number, float(number))
    content = bytearray(Path("j").read_bytes())
    content[len(content) // 2] ^= 1
    file("j", bytes(content) + b'\n{"whosin journal": 1, "run": "ru')
    assert dict(Journal("j", "run").read(3)) == {0: 0.0, 2: 2.0}


def journal_of_another_run():
    Journal("j", "other").write(0, 1.0)
    assert not list(Journal("j", "run").read(9))


def other_journal():
    try:
        Journal(file("a.csv", b"a,b\n1,2\n"), "run")
    finally:
        assert Path("a.csv").read_bytes() == b"a,b\n1,2\n"


def command(*arguments):
    done = CliRunner().invoke(app, list(arguments))
    assert "Traceback" not in done.output
    assert done.stderr.splitlines()[-1].startswith("Error: ")
    return done.exit_code


def on_a_small_disk(run):
    import matplotlib.font_manager  # noqa: F401 - it may write a list of fonts

    with small_disk(2000):
        return run()


def silent_scheduler():
    pytest.importorskip("distributed")
    from whosin.cli import backend

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backend, "ANSWER", 0.2)
        return command("--backend", "dask", "--scheduler", "tcp://127.0.0.1:1", "explain", "--epsilon", "1")


def without_ray():
    from whosin.cli.backend import backend_of

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "ray", None)
        with backend_of("ray"):
            pass


def page(method, address, token=None, room=None, **request):
    """The status of an answer of a page of its own, whose errors are one sentence."""
    pytest.importorskip("fastapi")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Starlette asks for another HTTP client than the one that is there; both do
        from fastapi.testclient import TestClient
    from whosin.web.app import create_app
    from whosin.web.settings import Limits, Settings

    site = create_app(Settings(Path("data"), Limits(upload_bytes=1000)))
    try:
        token = site.state.service.access.token if token is None else token
        headers = {"Authorization": f"Bearer {token}", **request.pop("headers", {})}
        client = TestClient(site, base_url="http://127.0.0.1:8642")
        with contextlib.nullcontext() if room is None else small_disk(room):
            answer = client.request(method, address, headers=headers, **request)
        assert list(answer.json()) == ["error"]
        assert not list(site.state.service.folders.keys())
    finally:
        site.state.service.close()
    return answer.status_code


def upload(content, room=None, **fields):
    return page("POST", "/api/audits", room=room, files={"scores": ("s.csv", content)}, data=fields)


def cut_form():
    start = b'--x\r\nContent-Disposition: form-data; name="scores"; filename="a"\r\n\r\n1,2'
    return page("POST", "/api/audits", content=start, headers={"content-type": "multipart/form-data; boundary=x"})


def broken_upload():
    pytest.importorskip("fastapi")
    from whosin.web.measure import measure

    file("scores.csv", b"member,score\n1,2\n1\n")
    request = {"kind": "scores", "name": "", "files": {"scores": {"type": "csv"}}, "rows": 9, "columns": 9}
    measure(Path(), {**request, "options": {}}, lambda share: None)


def unreadable():
    Path(file("secret.csv", b"member,score\n1,2\n")).chmod(0)
    if os.access("secret.csv", os.R_OK):
        pytest.skip("this user may read everything")
    return command("audit", "--scores", "secret.csv")


def existing_out():
    file("records.csv", b"a\n1\n2\n3\n")
    file("there.json", b"old")
    code = command("protect", "records.csv", "--statistic", "mean", "--eta", "0.1", "--out", "there.json")
    assert Path("there.json").read_bytes() == b"old"
    return code


def existing_report():
    file("there.html", b"old")
    code = command("explain", "--epsilon", "1", "--report", "there.html")
    assert Path("there.html").read_bytes() == b"old"
    return code


ROWS = {
    "audit NaN": lambda: wi.audit([1.0, math.nan], [1.0, 2.0]),
    "audit infinity": lambda: wi.audit([1.0, math.inf, 2.0], [-math.inf, 2.0, 3.0]),
    "audit empty": lambda: every(lambda: wi.audit([], [1.0, 2.0]), lambda: wi.audit([1.0, 2.0], [])),
    "audit one": lambda: wi.audit([1.0], [2.0]).advantage,
    "audit constant": lambda: wi.audit(np.ones(50), np.ones(50)),
    "audit mixed": lambda: wi.audit([1, "a"], [1, 2]),
    "audit shapes": lambda: wi.audit(np.ones((5, 2)), np.ones(5)),
    "release duplicates": lambda: release(train=TWICE, synthetic=frame(TWICE)),
    "release shared": lambda: release(holdout=RECORDS[:25], synthetic=frame(RECORDS)),
    "release labels": lambda: wi.audit_synthetic(*({"a": [word] * 20, "x": list(range(20))} for word in "pqp"), rng=0),
    "release drift": drifting_sides,
    "release other labels": lambda: wi.audit_synthetic(
        *({"a": [word] * 20, "x": list(range(20))} for word in "ppq"), rng=0
    ),
    "release other unit": lambda: wi.audit_synthetic(*({"x": [k * (i % 7) for i in range(40)]} for k in (1, 1, 50))),
    "release constant": constant_release,
    "release columns": lambda: release(synthetic=frame(RECORDS).rename({"a": "z"})),
    "release kinds": lambda: release(synthetic=frame(RECORDS).with_columns(a=pl.lit("x"))),
    "release one": lambda: release(synthetic=frame(RECORDS[:1])),
    "classifier NaN": lambda: every(*(lambda p=p: classifier(probabilities(p, 0.5)) for p in (math.nan, 0.1, -0.5))),
    "classifier columns": lambda: every(classes_differ, lambda: classifier(probabilities(1.0))),
    "classifier records": lambda: every(lambda: classifier(records=RECORDS[:, :1]), lambda: classifier(Model(fails))),
    "classifier labels": lambda: classifier(labels=LABELS + 7),
    "classifier lengths": lambda: classifier(labels=LABELS[:40]),
    "classifier one class": lambda: classifier(labels=np.zeros(50, dtype=int)),
    "classifier kind": lambda: classifier(object()),
    "references one class": lambda: references(np.zeros(50)),
    "references labels": lambda: references().attack(LogisticRegression().fit(RECORDS, LABELS + 7)),
    "references number": lambda: references(models=HUGE),
    "generator few": lambda: [generator(lambda n: RECORDS[:3]), generator(lambda n: frame(RECORDS[:3]), frame)],
    "generator none": lambda: every(
        lambda: generator(lambda n: RECORDS[:0]), lambda: generator(lambda n: frame(RECORDS[:0]), frame)
    ),
    "generator columns": lambda: every(
        lambda: generator(lambda n: RECORDS[:, :1]),
        lambda: generator(lambda n: frame(RECORDS).rename({"a": "z"}), frame),
        lambda: generator(lambda n: [[1.0], [1.0, 2.0]]),
    ),
    "generator fails": lambda: every(lambda: generator(fails), lambda: generator(fails, frame)),
    "generator scores": lambda: audit_generator(
        None, RECORDS[:25], RECORDS[25:], scores={"own": (np.zeros(25), np.full(25, np.nan))}
    ),
    "generator kind": lambda: audit_generator(object(), RECORDS, RECORDS),
    "DP-SGD clip": lambda: every(*(lambda c=c: dpsgd(max_grad_norm=c) for c in (0.0, math.nan, math.inf))),
    "DP-SGD noise": lambda: every(
        lambda: wi.DPSGD(math.nan, 0.1, 10),
        lambda: dpsgd(noise_multiplier=math.nan),
        lambda: dpsgd(noise_multiplier=math.inf),
    ),
    "DP-SGD no noise": lambda: wi.DPSGD(0.0, 0.1, 10).explain(),
    "DP-SGD δ = 0": no_epsilon,
    "DP-SGD records": lambda: every(lambda: dpsgd(spoiled(math.nan)), lambda: dpsgd(RECORDS[:, :1])),
    "Gaussian ε = 0": lambda: wi.calibrate.gaussian_noise(0.0, 1e-5, 1.0),
    "Gaussian ε = ∞": lambda: every(
        *(lambda e=e: wi.calibrate.gaussian_noise(e, 0.1, 1.0) for e in (math.inf, math.nan))
    ),
    "Gaussian δ = 0": lambda: wi.calibrate.gaussian_noise(1.0, 0.0, 1.0),
    "huge steps": lambda: wi.DPSGD(1.0, 0.01, HUGE),
    "huge deletions": lambda: [
        wi.unlearning.Unlearning(1.0, 1e-6, 0.5, HUGE).explain(),
        wi.unlearning.inclusion_for(1.0, 0.5, HUGE),
    ],
    "huge candidates": lambda: wi.PureDP(1.0, "replace").implies(wi.DifferentialIdentifiability, candidates=HUGE),
    "huge universe": lambda: every(
        lambda: wi.worlds.uniform_subsets(range(HUGE), 2), lambda: wi.worlds.all_subsets(range(40))
    ),
    "huge number": lambda: every(
        lambda: wi.unlearning.inclusion_for(1.0, 0.5, 10**5000),
        lambda: wi.DPSGD(1.0, 0.1, 10**5000),
        lambda: wi.ApproxDP(1.0, 10**5000),
        lambda: wi.DifferentialIdentifiability(0.5, 10**400),
        lambda: as_table({"a": [10**5000, 1]}),
    ),
    "table infinity": lambda: as_table(pl.DataFrame({"a": [1.0, math.inf]})),
    "table empty": lambda: as_table(pl.DataFrame({"a": np.empty(0)})),
    "table columns": lambda: match_tables(*(as_table(pl.DataFrame({name: [1.0, 2.0]})) for name in "ab")),
    "table kinds": lambda: match_tables(*(as_table(pl.DataFrame({"a": cells})) for cells in ([1.0, 2.5], ["x", "y"]))),
    "table names": lambda: every(
        *(
            lambda names=names: match_tables(*(as_table({key: [1, 2] for key in part}) for part in ("ab", names)))
            for names in ("AB", ["column 0", "column 1"], ["31", "f"])
        )
    ),
    "table mixed": lambda: as_table({"a": [1, "x", 2.5]}),
    "table mixed numbers": lambda: protect([[1, "a"], [2, 3]]),
    "file missing": lambda: read_table("nowhere.csv"),
    "file folder": lambda: read_table(folder("folder.csv")),
    "file URL": lambda: read_table("https://nowhere.invalid/a.csv"),
    "file pipe": lambda: read_table(pipe("people.csv")),
    "file name": lambda: read_table(f"{NO_NAME}.csv"),
    "file kind": lambda: read_table(None),
    "file ending": lambda: read_table(file("a.docx", b"\x00\x01")),
    "file foreign": lambda: read_table(file("a.dta", b"\x01\x00")),
    "file disguised": lambda: every(
        *(lambda start=start: read_table(file("a.csv", start + b" a\n1\n")) for start in DISGUISED.split(b"|"))
    ),
    "CSV empty": lambda: read_table(file("a.csv", b"")),
    "CSV names": lambda: read_table(file("a.csv", b"a,b\n")),
    "CSV ragged": lambda: read_table(file("a.csv", b"a,b\n1,2\n3\n")),
    "CSV footer": lambda: read_table(file("a.csv", b"a,b\n1,2\n3,4\n2 rows\n")),
    "CSV open quote": lambda: read_table(file("a.csv", b'a,b\n1,2\n3,"4\n5,6\n')),
    "CSV encoding": lambda: [
        read_table(file("a.csv", "a,b\né,2\n".encode(code))) for code in ("latin-1", "utf-16", "utf-32")
    ],
    "CSV zero bytes": lambda: read_table(file("a.csv", "a,b\n北京,1\n上海,2\n".encode("utf-16-le"))),
    "CSV marks": lambda: read_table(file("a.csv", "\ufeffa\n1\n\ufeff2\n".encode())).column("a").sum(),
    "CSV line ends": lambda: holds(b'a,b\r\n1,"x\r\ny"\r2,z\n', {"a": [1, 2], "b": ["x\ny", "z"]}),
    "CSV packed": lambda: [
        read_table(file(f"a.csv.{name}", pack.compress(b"a\n1\n2\n"))).column("a").sum()
        for name, pack in (("gz", gzip), ("bz2", bz2), ("xz", lzma))
    ],
    "CSV wide": lambda: [
        holds(b",".join(b"c%d" % i for i in range(10_000)) + b"\n" + b"7," * 9_999 + b"7\n", {"c9999": [7]}),
        holds(b"a,b\n" + b"x" * 10**6 + b",1\n", {"b": [1]}),
    ],
    "CSV in blocks": lambda: as_stream(file("a.csv", b"a;b\n1,5;x\n?;y\n"), block_rows=1).table().column("a").sum(),
    "CSV broken": lambda: read_table(file("a.csv", "a,b\né,2\n".encode() + b"\xe9,3\n")),
    "CSV named encoding": lambda: every(
        lambda: read_table(file("a.csv", b"a,b\n\xe9,2\n"), encoding="utf-8"),
        lambda: read_table(file("a.csv", b"a,b\n1,2\n"), encoding="none such"),
    ),
    "CSV separator": lambda: [read_table(file("a.csv", f"a{mark}b\n1{mark}2\n".encode())) for mark in ";\t|"],
    "CSV blanks": lambda: [
        read_table(file("a.csv", f"a{mark}b{mark}c\nx{mark}1{mark}y\n".encode())).column("b").sum() for mark in " :"
    ],
    "CSV single quotes": lambda: read_table(file("a.csv", b"'a','b'\n'1','x'\n")),
    "CSV whole lines": lambda: read_table(file("a.csv", b'"a,b"\n"1,2"\n"3,4"\n')),
    "CSV late quotes": lambda: read_table(file("a.csv", b'a, "b"\n1, "x, y"\n')),
    "CSV sep line": lambda: read_table(file("a.csv", b"sep=;\na;b\n1;2\n")),
    "CSV trailing": lambda: [read_table(file("a.csv", text)) for text in (b"a,b\n1,2,\n", b"a,b,\n1,2\n")],
    "CSV row names": lambda: read_table(file("a.csv", b"a,b\nr1,1,2\nr2,3,4\n")),
    "CSV counted": lambda: read_table(file("a.csv", b"0,1,2\n5,6,7\n")),
    "CSV decimal": lambda: [
        read_table(file("a.csv", text)).column("a").sum() for text in (b"a;b\n1,5;2\n", b'a,b\n"1,5",2\n')
    ],
    "CSV thousands": lambda: [read_table(file("a.csv", text)) for text in (b"a;b\n1,5;1.234\n", b'a,b\n"1,234",2\n')],
    "CSV units": lambda: (
        read_table(file("a.csv", "a;b;c;d;e\n12%;$1.5;1,50 €;1 200;CHF 3\n".encode())).column("e").sum()
    ),
    "CSV any unit": lambda: holds(
        "a;b;c\n40 kg;37 °C;5 km/h\n".encode(), {"a": [40], "b": [37], "c": [5]}, "'kg' is left out in 'a'"
    ),
    "CSV several units": lambda: holds(
        b"a,b\n40 kg,1\n88 lb,2\n", {"a": ["40 kg", "88 lb"]}, "numbers of 'a' have several units"
    ),
    "CSV minus": lambda: holds(
        "a,b,c\n(1.50),−1,1-\n2,3,4\n".encode(), {"a": [-1.5, 2], "b": [-1, 3], "c": [-1, 4]}, "below 0 in 'a'"
    ),
    "CSV words": lambda: read_table(file("a.csv", b"a,b\n?,2\n3,N/A\n-,4\n")),
    "CSV a word": lambda: read_table(file("a.csv", b"a,b\n1,2\n30,N\nrefused,4\n")),
    "CSV zeros": lambda: read_table(file("a.csv", b"a,b\n01,2\n3,4\n")),
    "CSV infinity": lambda: read_table(file("a.csv", b"a,b\n1,inf\n3,4\n")),
    "CSV comment": lambda: read_table(file("a.csv", b"about\na,b\n3,4\n")),
    "CSV title": lambda: read_table(file("a.csv", b"about\na;b\n3;4\n")),
    "CSV dates": lambda: read_table(file("a.csv", b"a,b\n31.01.2026,1\n")),
    "CSV slashes": lambda: read_table(file("a.csv", b"a,b,c\n31/01/2026,2026/01/31,31-Jan-2026\n")),
    "CSV day or month": lambda: read_table(file("a.csv", b"a,b\n01/02/2026,1\n")),
    "CSV day words": lambda: read_table(file("a.csv", b"a;b\nJan 31, 2026;31 January 2026\n")),
    "CSV day mixed": lambda: read_table(file("a.csv", b"a;b\n31.01.26;31.01.2026\n30.01.26;2026-01-31\n")),
    "CSV times": lambda: read_table(file("a.csv", b"a;b\n7:30;10:00:15\n")),
    "CSV code": lambda: read_table(file("a.csv", b"a;b\n-999;1\n5;2\n")),
    "CSV remarks": lambda: [
        read_table(file("a.csv", text)) for text in (b"# by X, of\n# 2026\na,b,c\n1,2,3\n", b"T, 1\n\na,b,c\n1,2,3\n")
    ],
    "CSV repeated": lambda: read_table(file("a.csv", b"a,a\n1,2\n")),
    "CSV unnamed": lambda: holds(b"a,,b\n1,2,3\n", {"Unnamed: 1": [2]}),
    "CSV names again": lambda: holds(b"a\n1\n30\na\n2\n", {"a": ["1", "30", "a", "2"]}, "names stand there again"),
    "labels alike": lambda: equal(
        [c["alike"] for c in wi.tables.look({"a": ["STRASSE", "straße", "Ulm"]}).columns], [1]
    ),
    "JSON line": lambda: every(
        *(lambda line=line: read_table(file("a.jsonl", b'{"a": 1}\n' + line)) for line in (b"{", b"[1]"))
    ),
    "JSON list": lambda: read_table(file("a.json", b'[{"a": 1}, {"a": 2}]')),
    "JSON columns": lambda: [
        read_table(file("a.json", data)).column("a").sum()
        for data in (b'{"a": {"0": 1, "1": 2}}', b'{"a": [1, 2]}', b'{"n": 2, "rows": [{"a": 1}, {"a": 2}]}')
    ],
    "JSON object": lambda: every(
        *(
            lambda data=data: read_table(file("a.json", data))
            for data in (b'{"a": [1, 2], "b": 3}', b'{"columns": ["a"], "index": [0, 1], "data": [[1], [2]]}')
        )
    ),
    "JSON nested": lambda: read_table(file("a.jsonl", b'{"a": {"b": 1}}\n{"a": {"b": 2}}\n')).column("a.b").sum(),
    "cells lists": lambda: [
        as_table(pl.DataFrame({"a": cells})).columns[0].labels for cells in ([[1, 2]], [{"a": 1}], [b"x"])
    ],
    "JSON words": lambda: read_table(file("a.jsonl", b'{"a": 1}\n{"a": "N/A"}\n')).column("a").sum(),
    "JSON infinity": lambda: every(
        *(lambda n=n: read_table(file("a.jsonl", b'{"a": 1}\n{"a": %s}\n' % n)) for n in (b"Infinity", b"1e999"))
    ),
    "workbook part": lambda: read_table(file("a.xlsx", b"PK")),
    "workbook sheet": lambda: every(*(lambda name=name: read_table(book(), sheet=name) for name in ("other", "empty"))),
    "workbook title": lambda: read_table(workbook("a.xlsx", s=[["2026", None], ["a", "b"], [1, 2]])).column("b").sum(),
    "workbook notes": lambda: (
        read_table(workbook("a.xlsx", s=[["a", "b"], [1, 2], [], ["Source: X"]])).column("a").sum()
    ),
    "workbook text": lambda: read_table(file("a.xls", b"a\tb\n1\t2\n")).column("b").sum(),
    "workbook words": lambda: [
        read_table(workbook("a.xlsx", s=rows)).columns[0].values.sum()
        for rows in ([["a"], [1], ["?"]], [["a"], ["1"], ["2"]], [[1, "x"], [2, "y"], [3, "x"]])
    ],
    "zip files": zip_of_two,
    "zip hidden": lambda: read_table(packed_as("a.zip", "__MACOSX/._a.csv", ".DS_Store")),
    "zip name": lambda: read_table(packed_as("people.zip")),
    "numbers gaps": lambda: read_numeric(file("a.csv", b"a,b\n?,2\n3,4\n")),
    "numbers gaps dropped": lambda: equal(read_numeric(file("a.csv", b"a,b\n?,2\n3,4\n5,6\n"), gaps="drop").dropped, 1),
    "numbers path": lambda: protect(file("a.csv", b"a\n1\n")),
    "numbers labels": lambda: read_numeric(file("a.csv", b"a\nYork\nBath\n"), labels={"a": ["york"]}),
    "columns none": lambda: wi.audit_synthetic(*[{"id": list(range(30))}] * 3),
    "columns keys": lambda: equal(list(seeded_audit(n=np.arange(40)).left_out), ["n"]),
    "columns unknown": lambda: every(
        *(lambda o=o: wi.audit_synthetic(*[{"x": [1.5, 2.5, 3.5]}] * 3, **{o: ["y"]}) for o in ("ignore", "keep"))
    ),
    "linked keys": lambda: every(
        lambda: linked({"k": ["a"]}, {"x": [1]}, key="k"),
        lambda: linked({"k": ["a", "a"]}, {"k": ["a"], "x": [1]}, key="k"),
        lambda: linked({"k": ["a"]}, {"k": ["b"], "x": [1]}, key="k"),
    ),
    "linked names": lambda: every(
        lambda: linked({"k": ["a"]}, {"k": ["a"], "x": [1]}, key="k", order="when"),
        lambda: linked({"k": ["a"], "rows": [1]}, {"k": ["a"], "x": [1]}, key="k"),
    ),
    "linked series": lambda: equal(
        linked(None, {"k": ["a", "b", "a"], "x": [1, 5, 3]}, key="k").column("x largest").tolist(), [3, 5]
    ),
    "person rows": lambda: equal(
        seeded_audit(person="k").preview.persons, {"train": 20, "holdout": 20, "synthetic": 20}
    ),
    "person both": lambda: wi.audit_synthetic(*[{"k": ["a", "b"], "x": [1.5, 2.5]}] * 3, person="k"),
    "texts names": lambda: wi.audit_synthetic(
        *(file(f"{text}.txt", f"{text}\none\ntwo\n".encode()) for text in "abc"),
        embed=lambda texts: [[1.0]] * len(texts),
    ),
    "folder alone": lambda: wi.audit_synthetic(*(folder(name) for name in "abc")),
    "folder empty": lambda: embedded(folder("a"), lambda paths: [[1.0]] * len(paths)),
    "embed fails": lambda: embedded(["a"], lambda texts: {}[texts[0]]),
    "embed rows": lambda: every(
        *(lambda rows=rows: embedded(["a", "b"], lambda texts: rows) for rows in ([[1.0]], [[math.nan]] * 2))
    ),
    "phrases table": lambda: phrase_scores(pl.DataFrame({"a": ["x"]}), ["x"]),
    "scores members": lambda: audit_score_table(as_table({"member": ["in", "out"], "score": [1.0, 2.0]})),
    "scores lines": lambda: (
        audit_score_table(
            read_table(file("a.jsonl", b'{"member": 1, "score": 2}\n{"member": 0, "score": 1}\n'))
        ).advantage
    ),
    "members unclear": lambda: every(
        *(
            lambda word=word: audit_score_table(
                as_table({"set": ["train", word, "test"], "score": [1.0, 2.0, 3.0]}),
                member_column="set",
                member_value="train",
            )
            for word in (None, "Train")
        )
    ),
    "requests written": lambda: wi.unlearning.requested({"who": ["007"]}, "who", {"who": [7, 8]}),
    "requests gap": lambda: every(
        lambda: wi.unlearning.requested(file("a.csv", b"who,n\na,1\n,2\n"), "who"),
        lambda: wi.unlearning.requested(file("a.csv", b"who,p\na,\n"), "who", inclusion_column="p"),
    ),
    "CSV gaps": lambda: read_table(file("a.csv", b"a,b\nNaN,2\n,4\n5,6\n")),
    "Parquet part": half_a_parquet,
    "Parquet pages": lambda: every(
        *(lambda n=n, read=read: read(parquet_with_pages_of(n)) for n in (-3, 60) for read in (read_table, as_stream))
    ),
    "Parquet rows": lambda: every(*(lambda n=n: parquet_that_states(n) for n in (10, 600_000, 10**15))),
    "gzip part": lambda: read_table(file("a.csv.gz", b"hello")),
    "NumPy objects": objects,
    "NumPy rows": lambda: array_that_states(10**15),
    "protect NaN": lambda: every(*(lambda v=v: protect(spoiled(v)) for v in (math.nan, math.inf, -math.inf))),
    "protect one": lambda: protect(RECORDS[:1]),
    "protect constant": lambda: protect(np.ones((10, 2))),
    "protect duplicates": lambda: protect(TWICE),
    "protect η": lambda: every(*(lambda e=e: protect(RECORDS, eta=e) for e in (0.0, 0.5, math.nan))),
    "population NaN": lambda: population(spoiled(math.nan)),
    "population one": lambda: population(RECORDS[:1]),
    "population duplicates": lambda: population(TWICE[:, 0]),
    "population clip": lambda: every(*(lambda c=c: population(clip=c) for c in (0.0, math.nan, math.inf))),
    "population ε = 0": lambda: population(epsilon=0.0),
    "population ε = ∞": lambda: population(epsilon=math.inf),
    "population δ = 0": lambda: population(delta=0.0),
    "ledger file": lambda: Ledger(file("a.db", b"no ledger " * 500)).entries(),
    "ledger damaged": damaged_ledger,
    "ledger changed": changed_ledger,
    "ledger folder": lambda: every(
        Ledger(folder("a.db")).entries,
        lambda: Ledger("a.db").add("release", dataset="people"),
        lambda: Ledger("nowhere/a.db").add("release", dataset="people"),
    ),
    "ledger read-only": read_only_ledger,
    "ledger URL": lambda: Ledger("mysql://host/base"),
    "ledger nobody": lambda: Ledger("new.db").add("release"),
    "journal damaged": damaged_journal,
    "journal other run": journal_of_another_run,
    "journal other file": other_journal,
    "journal folder": lambda: every(lambda: Journal(folder("j"), "run"), lambda: Journal("nowhere/j", "run")),
    "checkpoint damaged": damaged_checkpoint,
    "checkpoint file": lambda: dpsgd(journal=Path(file("kept", b"")) / "j"),
    "report kind": lambda: wi.report(3, "a.html"),
    "report folder": lambda: every(
        lambda: wi.report(wi.PureDP(1.0), folder("a.html")), lambda: wi.report(wi.PureDP(1.0), "nowhere/a.html")
    ),
    "report name": lambda: every(*(lambda n=n: wi.report(wi.PureDP(1.0), n) for n in (NO_NAME, "a\0.html"))),
    "backend name": lambda: command("--backend", "nobody", "explain", "--epsilon", "1"),
    "backend silent": silent_scheduler,
    "backend missing": without_ray,
    "page token": lambda: page("GET", "/api/audits", token="wrong"),
    "page large": lambda: upload(b"member,score\n" + b"1,2\n" * 1000),
    "page form": lambda: page("POST", "/api/audits", json={"scores": 1}),
    "page cut": cut_form,
    "page kind": lambda: upload(b"\x80\x04\x95\x00\x00"),
    "page broken": broken_upload,
    "page number": lambda: upload(b"member,score\n1,2\n", prior="nan"),
    "page nothing": lambda: page("GET", "/api/audits/nobody"),
    "disk report": lambda: on_a_small_disk(lambda: command("explain", "--epsilon", "1", "--report", "a.html")),
    "disk ledger": lambda: on_a_small_disk(
        lambda: command("ledger", "add", "--name", "x", "--dataset", "people", "--ledger", "l.db")
    ),
    "disk journal": lambda: on_a_small_disk(lambda: Journal("j", "run").write(0, np.ones(1000))),
    "disk copy": lambda: on_a_small_disk(lambda: as_stream(pl.LazyFrame({"a": np.arange(10_000.0)}))),
    "disk page": lambda: upload(b"member,score\n" + b"1,2\n" * 100, room=100),
    "command number": lambda: command("explain", "--epsilon", "nan"),
    "command report": existing_report,
    "command folder": lambda: command("explain", "--epsilon", "1", "--report", "nowhere/a.html"),
    "command name": lambda: command("explain", "--epsilon", "1", "--report", f"{NO_NAME}.html"),
    "command out": existing_out,
    "command unread": unreadable,
    "command look": lambda: command("look", *[file("a.csv", b"a\n1\n")] * 5),
    "command person": lambda: command("look", file("a.csv", b"a\n1\n"), "--person", "b"),
    "command clip": lambda: command(
        "population", "gaussian", file("a.csv", b"a\n1\n2\n"), "--epsilon", "1", "--delta", "0.01"
    ),
    "command statistic": lambda: command(
        "protect", file("a.csv", b"a\n1\n2\n"), "--statistic", "mode", "--eta", "0.1", "--out", "a.json"
    ),
}


def table():
    """The rows of the page: name and what it says."""
    lines = PAGE.read_text(encoding="utf-8").partition("| row | what | what you get |")[2].splitlines()[2:]
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines)
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in rows]
    return {name: outcome for name, _, outcome in cells}


def test_every_row_has_its_run():
    assert list(table()) == list(ROWS)


@pytest.mark.parametrize("row", ROWS)
def test_row(row, tmp_path, monkeypatch):
    if "ledger" in row:
        pytest.importorskip("sqlalchemy")
    monkeypatch.chdir(tmp_path)
    said = table()[row]
    if said.startswith("allowed, with an `AssumptionWarning`"):
        with pytest.warns(AssumptionWarning):
            ROWS[row]()
    elif said.startswith("allowed"):
        ROWS[row]()
    elif said.startswith(("exit code ", "HTTP ")):
        assert ROWS[row]() == int(said.removeprefix("exit code ").removeprefix("HTTP ").split(";")[0])
    else:
        with pytest.raises(ERRORS[said.split("`")[1]]):
            ROWS[row]()


HELPFUL = {
    "file folder": r"^'folder.csv' is a folder: name a file in it; audits take folders with an embedding \(embed\)$",
    "file URL": r"^no such file: https:/nowhere.invalid/a.csv; download it first",
    "file pipe": r"^'people.csv' must be a file, got a pipe or a device: write what it gives to a file first$",
    "file name": r"File name too long, got 'aaa",
    "numbers path": r"^records must hold numbers, got the path 'a.csv': read_numeric reads files$",
    "file kind": r"^path must be the name of a file, got NoneType$",
    "Parquet pages": r"^pages.parquet must be Parquet.*: the number of values of a page is stated as -3,",
    "Parquet rows": r"^false.parquet is damaged: it states 10 rows and holds 300003$",
    "NumPy rows": r"^false.npy must be an array that fits into memory, got a header that states more",
    "classifier records": r"^model must predict the records of members, got from it ValueError: X has 1",
    "generator fails": r"model must be an object that can generate 25 records, got from it RuntimeError: out of order$",
    "generator columns": r"^query: none could be answered: synthetic must be records like train.* got \(1,\)$",
    "references labels": r"^X, y must be labels that the model knows, got 0 in row 0; it knows \[7, 8\]$",
    "generator scores": r"^scores must be numbers for 'own', got NaN for row 0 of holdout$",
    "references number": r"^models must be a whole number of at least 2 and at most 1000000, got 1000000000000000000$",
    "huge universe": r"^universe must have at most \d+ records, got 1000000000000000000$",
    "huge number": r"^capacity must be a whole number of at least 0 and at most 1E\+1000, got what cannot be written",
    "ledger folder": r"^the ledger must be a file, got the folder a.db$",
    "DP-SGD clip": r"^max_grad_norm must be a number in \(0, inf\), got 0.0$",
    "report name": r"^path must be a name that a file can have, got 'a*…: .*File name too long",
}


@pytest.mark.parametrize("row", HELPFUL)
def test_messages_that_say_what_is_wrong(row, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((InputError, InputTypeError, LedgerError), match=HELPFUL[row]):
        ROWS[row]()


def test_a_panic_of_a_compiled_library_is_no_traceback(monkeypatch):
    """Found by damaging files: what polars raises then is no Exception."""

    def panic(*_):
        raise pl.exceptions.PanicException("index out of bounds")

    monkeypatch.setattr("whosin.bounds.table", panic)
    monkeypatch.delenv("WHOSIN_DEBUG", raising=False)
    assert command("bounds", "--epsilon", "1") == 70


def test_a_ledger_whose_names_are_no_text(tmp_path):
    """Found by damaging bytes at random: the driver failed to decode its own message."""
    pytest.importorskip("sqlalchemy")
    path = tmp_path / "l.db"
    book = Ledger(path)
    book.add("x", dataset="people")
    whole = path.read_bytes()
    said = set()
    for found in re.finditer(b"whosin_ledger", whole):
        path.write_bytes(whole[: found.start()] + b"\xe3" + whole[found.start() + 1 :])
        try:
            book.entries()
        except LedgerError as error:
            said.add(str(error).removeprefix(f"the ledger {path} "))
    assert said == {"is damaged: the file is not a whole database"}


def test_implies_names_the_parameter_it_needs():
    """Found by fuzzing: a plain TypeError about a private function came out."""
    with pytest.raises(InputTypeError, match="candidates="):
        wi.PureDP(1.0).implies(wi.DifferentialIdentifiability)


def test_likelihoods_whose_ratio_overflows():
    """Found by fuzzing: numpy warned."""
    assert wi.Roc.from_likelihoods([1.0, 1e-300], [5e-324, 1.0]).divergence(1.0) == 1.0


@pytest.mark.parametrize("prior", [5e-324, 1e-316, 1e-308])
def test_priors_whose_odds_overflow(prior):
    """Found by fuzzing: the upper limit of the posterior was 0."""
    assert wi.PureDP(0.0).posterior(prior) == (prior, prior)
    assert wi.PureDP(0.0).risk(wi.risks.ppv_at_fpr(0.5), prior) == prior


def test_two_steps_at_the_end_of_floats():
    """Found by the oracles: interpolation overflowed to a rate above one."""
    assert wi.ApproxDP(710.0, 1e-15).implies(wi.MIP).eta == 0.5

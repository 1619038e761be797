"""What fuzzing found, each mistake once: it stays mended."""

import hashlib
import math
import os
import sqlite3
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import whosin as wi
from whosin.errors import InputError, InputTypeError
from whosin.parallel.journal import Journal
from whosin.tables import as_table, numeric_records, read_table
from whosin.tables import quiet_polars as panics

from .commands import run as command

TINY = 5e-324


def test_noise_for_the_smallest_sensitivity():
    assert wi.calibrate.gaussian_noise(40.0, 0.5, TINY) > 0.0


@pytest.mark.parametrize(
    "parts",
    [
        [wi.PureDP(1120.0, "replace")] * 2,
        [wi.ApproxDP(0.0091, 0.75, "replace"), wi.PureDP(720.0, "replace"), wi.GaussianDP(1.0, "replace")] * 2,
        [wi.GaussianDP(TINY), wi.PureDP(680.0, "replace")] * 2,
    ],
)
def test_totals_that_promise_next_to_nothing(parts):
    total = wi.ledger.compose(parts, delta=1e-5)
    assert max(part.advantage for part in parts) * (1 - 1e-9) <= total.advantage <= 1.0


@pytest.mark.parametrize("rate", [TINY, 1e-200, 1e-14])
@pytest.mark.parametrize("noise", [0.05, 745.0])
def test_runs_that_hardly_ever_sample_anybody(noise, rate):
    """A run tells no more than who was sampled, and what it tells is not nothing."""
    found = wi.DPSGD(noise, rate, 2).advantage
    assert 0.0 < found <= 2.0 * rate * (1.0 + 1e-9) + TINY


def test_worlds_at_the_ends():
    world = wi.worlds.uniform_subsets("abc", 1)
    told = world.play(wi.mechanisms.RandomizedResponse(lambda records: "a" in records, 700.0))
    assert told.accuracy("a", TINY) == 1.0
    assert told.pmp(0.1).epsilon >= 0.0
    for noise in (wi.mechanisms.Gaussian, wi.mechanisms.Laplace):
        far = world.play(noise(lambda records: 1e8 if "a" in records else 0.0, 1.0))
        assert far.accuracy("a") == pytest.approx(1.0, abs=1e-14)
        assert far.posterior("a", 1e300) == 1.0
        for scale in (1e-320, 1e-120):
            with pytest.raises(InputError, match="scale"):
                world.play(noise(len, scale))


def test_rounding_leaves_probabilities_probabilities():
    chances = [weight / 95 for weight in (24, 26, 36, 9)]
    assert np.sum(chances) > 1.0
    world = wi.worlds.explicit("ab", {("a",): 0.3, ("b",): 0.7})
    game = world.play(lambda records: dict(enumerate(chances)) if "a" in records else {4: 1.0})
    assert game.advantage("a") == 1.0
    assert game.accuracy("a") == 1.0
    assert game.posterior("a", 0) == 1.0


def test_a_ratio_beyond_all_floats():
    metric = wi.risks.RatioMetric((1e300, 0, 0, 0, 0), (1e-300, 0, 0, 0, 0))
    assert metric(wi.Roc([0.0], [0.5]), 0.5) == math.inf


def test_bounds_at_the_smallest_numbers():
    assert all(row.value is None or 0.0 <= row.value <= 1.0 for row in wi.bounds.table(TINY, TINY, 0.95))


def test_halves_of_letters_and_whole_numbers_of_128_bits():
    assert len(as_table({"\ud800": ["x", "y"]}).fingerprint()) == 64
    with pytest.raises(InputTypeError, match="numeric columns"):
        numeric_records(pl.DataFrame({"a": pl.Series([1, 2], dtype=pl.Int128)}))


def test_gaps_that_signal():
    """NaN has many bit patterns, and arithmetic with some of them warns."""
    odd = np.array([0x7FF0000000000001, 0x3FF0000000000000, 0xFFF0000000000009], dtype=np.uint64).view(np.float64)
    assert as_table(odd[:, None]).fingerprint() == as_table(np.array([[np.nan], [1.0], [np.nan]])).fingerprint()


@pytest.mark.parametrize("attack", ["lira", "lira_offline", "rmia"])
def test_logits_whose_squares_are_no_floats(attack):
    from whosin.auditing import models

    inside = np.array([[True], [True], [False], [False]])
    logits = np.array([[1e200], [-1e200], [1.0], [2.0]])
    with pytest.raises(InputError, match="1e\\+100"):
        getattr(models, attack)(np.array([0.0]), logits, inside)


def test_a_query_that_is_none():
    with pytest.raises(InputTypeError, match="query"):
        wi.audit_classifier(None, (np.eye(2), [0, 1]), (np.eye(2), [0, 1]), query=None)


def test_records_that_are_none_and_labels_that_are_no_list():
    from whosin.auditing.models import ReferenceModels
    from whosin.auditing.runs import mislabelled

    with pytest.raises(InputTypeError, match="one row each"):
        ReferenceModels.train(None, None, [0, 1])
    for classes in (3, [0, 0], [[0, 1]]):
        with pytest.raises(InputError, match="at least two labels"):
            mislabelled(np.eye(2), [0, 1], 1, classes=classes)
    assert len(mislabelled(np.eye(2), [0, 1], 1.0, rng=0)[1]) == 1


class _Fails:
    def fit(self, X, y, rng):
        raise ZeroDivisionError("inside")


def test_estimators_that_fail_and_scores_that_are_no_numbers():
    from .stored import Rare

    canaries = np.eye(8), np.arange(8) % 2
    with pytest.raises(InputError, match="estimator failed in training on 4 records: ZeroDivisionError: inside"):
        wi.audit_training(_Fails(), None, canaries, rng=0)
    with pytest.raises(InputTypeError, match="score must be"):
        wi.audit_training(Rare(), None, canaries, score=lambda model, X, y: ["x"] * 8, rng=0)


def test_changes_of_records_that_cannot_be_made():
    from whosin.auditing.models import feature_noise, image_shifts

    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="pixels must be"):
        image_shifts(2**70)
    for shape in (3, (5,), (7, 7)):
        with pytest.raises(InputError, match="shape must be"):
            image_shifts(shape=shape)(np.zeros((3, 4)), rng)
    for rows in (np.array([[np.inf], [1.0]]), np.array([[1e300], [-1e300]]), np.zeros((0, 2))):
        with pytest.raises(InputError, match="augment is needed"):
            feature_noise([rows])


def test_modules_that_do_not_take_the_records():
    torch = pytest.importorskip("torch")

    with pytest.raises(InputError, match="module must accept records"):
        wi.TorchModel(torch.nn.Linear(2, 2), input_dtype="float64").predict_proba(np.eye(2))
    with pytest.raises(InputError, match="with weights"):
        wi.TorchAdapter(torch.nn.Identity(), epochs=1).fit(np.eye(2), [0, 1], np.random.default_rng(0))


def test_more_rows_than_there_are_numbers():
    pytest.importorskip("torch")
    from experiments.gans import JSGAN, architecture
    from whosin.training import GaussianCopula

    with pytest.raises(InputError, match="n must be"):
        GaussianCopula().fit(np.eye(3)).sample(2**70)
    with pytest.raises(InputError, match="n must be"):
        JSGAN(architecture("small", (4,), width=4), batch_size=2).fit(np.eye(4), epochs=0, rng=0).sample(2**70)
    with pytest.raises(InputError, match="n_jobs must be"):
        wi.protect("median", np.eye(8), eta=0.1, n_jobs=2**70)


def test_a_journal_of_brackets(tmp_path):
    path = tmp_path / "run.journal"
    path.write_bytes(b'\n{"whosin journal": 1, "run": "r", "task": ' + b"[" * 100_000 + b"\n")
    assert list(Journal(path, "r").read(3)) == []


@pytest.mark.parametrize("file", ["certificate", "audit_json"])
def test_json_of_brackets_on_the_command_line(tmp_path, file):
    (tmp_path / "deep.json").write_bytes(b"[" * 100_000)
    arguments = ["ledger", "add", "--name", "x", "--dataset", "d", "--ledger", str(tmp_path / "book.db")]
    command([*arguments, f"--{file.replace('_', '-')}", str(tmp_path / "deep.json")])


def test_numbers_of_entries_beyond_the_database(tmp_path):
    pytest.importorskip("sqlalchemy")
    book = wi.Ledger(tmp_path / "book.db")
    book.add("x", dataset="d")
    with pytest.raises(InputError, match="number must be"):
        book.retract(2**70, "why")
    for given in ({"after": 2**70}, {"limit": 2**70}):
        with pytest.raises(InputError, match="must be a whole number"):
            book.entries(**given)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("body", "[" * 100_000),
        ("body", 7),
        ("body", '{"action": "release", "at": "2026-01-01T00:00:00+00:00", "audit": "x"}'),
        ("body", '{"action": "release", "at": "2026-01-01T00:00:00+00:00", "audit": {"prior": NaN}}'),
        ("body", '{"action": "release", "at": "2026-01-01T00:00:00+00:00", "dataset": [1]}'),
        ("number", "last"),
        ("number", math.inf),
    ],
)
def test_entries_of_other_types(tmp_path, column, value):
    pytest.importorskip("sqlalchemy")
    from whosin.ledger import LedgerError
    from whosin.ledger.entries import hash_of
    from whosin.ledger.store import ENTRIES

    book = wi.Ledger(tmp_path / "book.db")
    entry = book.add("x", dataset="d")
    base = sqlite3.connect(tmp_path / "book.db")
    with base:
        base.execute(f"DROP TRIGGER {ENTRIES}_no_UPDATE")
        hash = hash_of(1, entry.previous, value)
        base.execute(f"UPDATE {ENTRIES} SET {column} = ?, hash = ?", (value, hash))
    base.close()
    with pytest.raises(LedgerError, match="cannot be read"):
        book.entries()
    assert not book.verify().intact


def test_checkpoints_with_a_hash_that_fits_and_content_that_does_not(tmp_path):
    torch = pytest.importorskip("torch")
    from whosin.training.checkpoint import Checkpoint

    module = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    kept = Checkpoint(tmp_path / "j", "k" * 64)
    kept.write(module, optimizer, 3)
    content = kept.path.read_bytes()[32:]
    for damaged in (content[:-30], content[:300]):
        kept.path.write_bytes(hashlib.sha256(damaged).digest() + damaged)
        with pytest.raises(InputError, match="journal must have"):
            kept.read(module, optimizer)
    kept.path.write_bytes(hashlib.sha256(b"no zip").digest() + b"no zip")
    assert kept.read(module, optimizer) == 0


def test_one_wrong_bit_in_the_weights_of_a_generative_model(tmp_path):
    torch = pytest.importorskip("torch")
    from experiments.gans import checkpoints

    path = tmp_path / "gan.pt"
    checkpoints.write(path, {"key": "k", "weights": torch.ones(100)})
    content = bytearray(path.read_bytes())
    content[content.index(b"\x00\x00\x80\x3f" * 50) + 40] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="damaged"):
        checkpoints.read(path, "k")


def test_records_whose_distances_are_no_floats():
    records = np.array([[1e200], [0.0], [1.0], [2.0]])
    with pytest.raises(InputError, match="losses are finite"):
        wi.population.exponential(records, np.array([[0.0], [-1e200]]), epsilon=1.0, clip=1e300)


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "latin-1"])
@pytest.mark.parametrize("more", [["--json"], []])
def test_output_whose_encoding_lacks_the_letters(encoding, more):
    """As on a terminal of another age, or of Windows."""
    command(["bounds", "--epsilon", "1", *more], encoding)


def test_names_of_files_that_are_no_text(tmp_path):
    (tmp_path / "records.csv").write_bytes(b"a\n1\n2\n3\n4\n5\n6\n")
    out = tmp_path / "a\udcff.json"
    command(["protect", str(tmp_path / "records.csv"), "--statistic=mean", "--eta=0.1", f"--out={out}", "--json"])
    assert out.is_file()


DAMAGED = """
import pathlib, sys
import polars as pl
from whosin.errors import WhosinError
from whosin.tables import read_table
from whosin.tables.quiet_polars import hide_panics

path = pathlib.Path(sys.argv[1])
pl.DataFrame({"member": [1, 0], "score": [1.0, 2.0]}).write_ipc(path)
whole = path.read_bytes()
hide_panics()
for spot in range(len(whole) // 2, len(whole) - 4, 4):
    path.write_bytes(whole[:spot] + b"\\xff\\xff\\xff\\x0f" + whole[spot + 4:])
    try:
        read_table(path)
    except WhosinError:
        print("refused")
print("after", file=sys.stderr)
"""


def test_polars_does_not_say_where_its_threads_stumbled(tmp_path, capfd, monkeypatch):
    """A damaged Arrow file makes it panic, and print so, before the error comes; a command hides that."""
    arguments = [sys.executable, "-c", DAMAGED, str(tmp_path / "scores.arrow")]
    done = subprocess.run(arguments, capture_output=True, check=True, text=True)
    assert "refused" in done.stdout
    assert done.stderr == "after\n"
    for hidden, seen in ((True, "after"), (False, "insideafter")):
        monkeypatch.setattr(panics, "_hidden", hidden)
        with panics.without_panics(".arrow"):
            os.write(2, b"inside")
        os.write(2, b"after")
        assert capfd.readouterr().err == seen


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_commands_without_an_output(closed):
    number = {"stdout": 1, "stderr": 2}[closed]
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -m whosin bounds --epsilon 1 --json {number}>&-', sys.executable],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_encodings_that_are_no_text(tmp_path):
    """Bytes of the command line that are no UTF-8 become lone surrogates, which no name of an encoding has."""
    path = tmp_path / "records.csv"
    path.write_text("a\n1\n2\n", encoding="utf-8")
    with pytest.raises(InputError, match="encoding must be one that Python knows"):
        read_table(path, encoding="\udcd8")

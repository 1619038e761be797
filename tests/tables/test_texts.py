"""Texts and images: rare phrases by definition, planted leaks found, embeddings checked."""

import itertools
import json

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import whosin as wi
from whosin.cli.app import app
from whosin.errors import InputError, InputTypeError
from whosin.tables import embedded, phrase_scores


def by_definition(texts, release, letters):
    def phrases(text):
        plain = " ".join(text.lower().split()).ljust(letters, "\0")
        return {plain[i : i + letters] for i in range(len(plain) - letters + 1)}

    released = [phrases(text) for text in release]
    scores = []
    for text in texts:
        counts = [sum(phrase in other for other in released) for phrase in phrases(text)]
        scores.append(np.mean([np.log((len(release) + 1) / (c + 0.5)) if c else 0.0 for c in counts]))
    return scores


@pytest.mark.parametrize("letters", [1, 3, 12])
def test_phrases_by_definition(letters):
    rng = np.random.default_rng(1)
    words = ["knee", "Pain", "since", "mäy", "x", "", "left  leg", "日本"]
    texts = [" ".join(rng.choice(words, size)) for size in rng.integers(0, 9, 30)]
    found = phrase_scores(texts[:15], texts[15:], letters=letters)
    np.testing.assert_allclose(found, by_definition(texts[:15], texts[15:], letters), atol=1e-12)


def test_phrases_are_the_same_in_any_way_to_write_a_letter():
    release = ["Die Stra\u00dfe nach Z\u00fcrich ist lang"]
    written = ["DIE STRASSE NACH ZU\u0308RICH IST LANG", "die\u00a0stra\u00dfe nach z\u00fcrich ist lang"]
    assert phrase_scores(written, release).tolist() == phrase_scores(release * 2, release).tolist()
    assert phrase_scores(["something else entirely"], release).tolist() == [0.0]


def notes(rng, n):
    words = np.array([f"{a}{b}" for a in ("ka", "lo", "mi", "nu", "pe") for b in ("ra", "so", "ti", "vu", "we")])
    shares = 1.0 / np.arange(1, len(words) + 1)
    return [" ".join(rng.choice(words, 20, p=shares / shares.sum())) for _ in range(n)]


def changed(rng, text):
    words = text.split()
    words[rng.integers(len(words))] = "other"
    return " ".join(words)


@pytest.mark.parametrize("near", [False, True])
def test_planted_copies_of_texts_are_found(near):
    """60 of 200 training notes are in the release, word for word or with one word changed."""
    rng = np.random.default_rng(4)
    train, holdout, fresh = (notes(rng, 200) for _ in range(3))
    copied = [changed(rng, text) if near else text for text in train[:60]]
    leaky, clean = [*copied, *fresh[60:]], fresh
    found = [
        wi.audit(phrase_scores(train, release), phrase_scores(holdout, release), rng=0) for release in (leaky, clean)
    ]
    assert found[0].advantage.lower > 0.1
    assert found[1].advantage.lower == 0.0


def load(paths):
    return [np.load(path) for path in paths]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """The planted leak: a third of the released pictures are training pictures with a little noise."""
    rng = np.random.default_rng(5)
    rows = {name: rng.normal(size=(120, 16)) for name in ("train", "holdout", "clean", "leaky", "reference")}
    rows["leaky"][:40] = rows["train"][:40] + 0.01 * rng.normal(size=(40, 16))
    folder = tmp_path_factory.mktemp("pictures")
    for name, part in rows.items():
        (folder / name).mkdir()
        for i, row in enumerate(part):
            np.save(folder / name / f"{i:03}.npy", row)
    return folder, rows


def test_a_folder_of_images_with_an_embedding(pictures):
    folder, rows = pictures
    train, holdout, clean, leaky, reference = (folder / name for name in rows)
    np.testing.assert_array_equal(embedded(train, load, batch=50), rows["train"])
    found = wi.audit_synthetic(train, holdout, leaky, embed=load, rng=0)
    assert found.advantage.lower > 0.1
    exposed = found.to_dict()["individual"]["highest"][0]
    assert exposed["place"] == sorted(path.name for path in train.iterdir())[exposed["index"]]
    assert "items are compared by 16 numbers each, those of load" in found.notes
    assert wi.audit_synthetic(train, str(holdout), clean, embed=load, rng=0).advantage.lower == 0.0
    (train / ".hidden").mkdir()
    (train / ".hidden" / "0.txt").write_text("no picture")
    for place, path in enumerate(sorted(train.glob("*.npy"))):
        inner = train / f"class {place // 50}"
        inner.mkdir(exist_ok=True)
        path.rename(inner / path.name)
    np.testing.assert_array_equal(embedded(train, load), rows["train"])
    arrays = wi.audit_synthetic(*(rows[name] for name in ("train", "holdout", "leaky")), rng=0)
    assert arrays.advantage == found.advantage
    referred = wi.audit_synthetic(train, holdout, leaky, reference=reference, embed=load, rng=0)
    assert "density_ratio" in referred.queries
    assert referred.advantage.lower > 0.1


def letters(texts):
    """A plain embedding: how often each pair of letters occurs."""
    rows = np.zeros((len(texts), 27 * 27))
    for row, text in zip(rows, texts, strict=True):
        codes = [0 if letter == " " else ord(letter) - 96 for letter in text]
        np.add.at(row, [27 * a + b for a, b in itertools.pairwise(codes)], 1.0)
    return rows


@pytest.fixture(scope="module")
def note_tables():
    rng = np.random.default_rng(4)
    parts = {name: notes(rng, 200) for name in ("train", "holdout", "clean")}
    parts["leaky"] = [*(changed(rng, text) for text in parts["train"][:60]), *parts["clean"][60:]]
    who = {name: [f"{name} {i // 2}" for i in range(200)] for name in parts}
    return {
        name: pl.DataFrame({"who": who[name], "note": texts, "sex": ["f", "m"] * 100}) for name, texts in parts.items()
    }


def test_a_column_of_texts_with_an_embedding(note_tables, tmp_path):
    """60 of 200 notes with one word changed; as frames, lists and files."""
    frames = [note_tables[name] for name in ("train", "holdout", "leaky")]
    found = wi.audit_synthetic(*frames, embed=letters, columns=["note"], rng=0)
    assert found.advantage.lower > 0.1
    clean = wi.audit_synthetic(*frames[:2], note_tables["clean"], embed=letters, columns=["note"], rng=0)
    assert clean.advantage.lower == 0.0
    lists = wi.audit_synthetic(*(frame["note"].to_list() for frame in frames), embed=letters, rng=0)
    assert lists.advantage == found.advantage
    paths = [tmp_path / f"{i}.csv" for i in range(3)]
    for frame, path in zip(frames, paths, strict=True):
        frame.write_csv(path)
    by_person = wi.audit_synthetic(*paths, embed=letters, columns=["note"], person="who", groups="sex", rng=0)
    assert by_person.members == 100
    assert by_person.advantage.lower > 0.1
    with pytest.raises(
        InputError, match=r"columns must name the one column of 0\.csv that embed takes, got who, note, sex"
    ):
        wi.audit_synthetic(*paths, embed=letters)
    with pytest.raises(InputTypeError, match="ignore must be left out with embed"):
        wi.audit_synthetic(*paths, embed=letters, columns=["note"], ignore=["who"])
    with pytest.raises(InputTypeError, match="person and groups must be arrays"):
        wi.audit_synthetic(*([["a", "b"]] * 3), embed=letters, person="who")
    with pytest.raises(InputError, match="row 1 column 'note' must be a text, got None"):
        wi.audit_synthetic(*([{"note": ["a", None]}] * 3), embed=letters)
    with pytest.raises(InputError, match="vectors of one length, got 1 numbers for train and 2 for holdout"):
        wi.audit_synthetic(["a"], ["b"], ["c"], embed=lambda texts: [[1.0] * (1 + (texts[0] != "a"))])


def test_embeddings_from_the_command_line(pictures, note_tables, tmp_path, monkeypatch):
    folder, _ = pictures
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_vectors.py").write_text(
        "import numpy as np\n"
        "def load(paths):\n    return [np.load(path) for path in paths]\n"
        "def count(texts):\n    return [[text.count(letter) for letter in 'kalominupe'] for text in texts]\n"
    )
    roles = {"--train": "train", "--holdout": "holdout", "--synthetic": "leaky"}
    folders = [part for option, name in roles.items() for part in (option, str(folder / name))]
    seen = CliRunner().invoke(app, ["audit", *folders, "--embed", "my_vectors:load", "--json"])
    assert json.loads(seen.stdout)["verdict"]["state"] == "leak"
    files = []
    for option, name in roles.items():
        note_tables[name].write_csv(tmp_path / f"{name}.csv", separator=";")
        files += [option, f"{name}.csv"]
    seen = CliRunner().invoke(app, ["audit", *files, "--embed", "my_vectors:count", "--columns", "note", "--json"])
    assert json.loads(seen.stdout)["verdict"]["state"] == "leak"
    for name, lines in (("one", "it hurts\nan arm\na leg\n"), ("two", "a knee\nan arm\na leg\n")):
        (tmp_path / f"{name}.txt").write_text(lines)
    lists = ["--train", "one.txt", "--holdout", "two.txt", "--synthetic", "one.txt", "--embed", "my_vectors:count"]
    seen = CliRunner().invoke(app, ["audit", *lists])
    assert seen.stderr == (
        "Error: tables must call their column of texts alike, got 'it hurts' in one.txt and 'a knee' in two.txt; if "
        "these are texts, --no-header reads them so\n"
    )
    seen = CliRunner().invoke(app, ["audit", *lists, "--no-header", "--json"])
    assert json.loads(seen.stdout)["members"] == 3
    for wrong, says in (
        ("my_vectors", "--embed must be module:name"),
        ("my_vectors:none", "--embed: my_vectors has no 'none'"),
        ("nowhere:none", "--embed: nowhere could not be imported"),
    ):
        seen = CliRunner().invoke(app, ["audit", *folders, "--embed", wrong])
        assert (seen.exit_code, says in seen.stderr) == (2, True), seen.stderr


@pytest.mark.parametrize(
    ("run", "error", "says"),
    [
        (lambda: phrase_scores("a", ["b"]), InputTypeError, "texts must be a list of texts"),
        (lambda: phrase_scores(["a", None], ["b"]), InputTypeError, "got None in row 1"),
        (lambda: phrase_scores(["a"], []), InputError, "release must have at least one text"),
        (lambda: embedded("nowhere", len), InputError, "must be a folder"),
        (lambda: embedded([], len), InputError, "at least one item"),
        (lambda: phrase_scores(pl.DataFrame({"a": ["x"]}), ["b"]), InputTypeError, "got a table: name its column"),
        (lambda: embedded(["a"], lambda texts: ["x"]), InputTypeError, "rows of numbers"),
        (
            lambda: embedded(["a", "b"], lambda texts: {}[texts[0]]),
            InputError,
            "items 0 to 1, got from it KeyError: 'a'",
        ),
        (lambda: embedded(["a"], lambda texts: [[1.0], [2.0]]), InputError, "1 rows of finite numbers"),
        (lambda: embedded(["a", "b"], lambda texts: [[1.0] * ord(texts[0])], batch=1), InputError, "of one length"),
    ],
)
def test_mistakes(run, error, says):
    with pytest.raises(error, match=says):
        run()

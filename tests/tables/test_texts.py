"""Texts and images: rare phrases by definition, planted leaks found, embeddings checked."""

import numpy as np
import pytest

import whosin as wi
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


def test_a_folder_of_images_with_an_embedding(tmp_path):
    """The planted leak: a third of the released pictures are training pictures with a little noise."""
    rng = np.random.default_rng(5)
    pictures = {name: rng.normal(size=(120, 16)) for name in ("train", "holdout", "release")}
    pictures["release"][:40] = pictures["train"][:40] + 0.01 * rng.normal(size=(40, 16))
    for name, rows in pictures.items():
        (tmp_path / name).mkdir()
        for i, row in enumerate(rows):
            np.save(tmp_path / name / f"{i:03}.npy", row)

    def load(paths):
        return [np.load(path) for path in paths]

    vectors = [embedded(tmp_path / name, load, batch=50) for name in pictures]
    np.testing.assert_array_equal(vectors[0], pictures["train"])
    assert wi.audit_synthetic(*vectors, rng=0).advantage.lower > 0.1


@pytest.mark.parametrize(
    ("run", "error", "says"),
    [
        (lambda: phrase_scores("a", ["b"]), InputTypeError, "texts must be a list of texts"),
        (lambda: phrase_scores(["a", None], ["b"]), InputTypeError, "got None in row 1"),
        (lambda: phrase_scores(["a"], []), InputError, "release must have at least one text"),
        (lambda: embedded("nowhere", len), InputError, "must be a folder"),
        (lambda: embedded([], len), InputError, "at least one item"),
        (lambda: embedded(["a"], lambda texts: ["x"]), InputTypeError, "rows of numbers"),
        (lambda: embedded(["a"], lambda texts: [[1.0], [2.0]]), InputError, "1 rows of finite numbers"),
        (lambda: embedded(["a", "b"], lambda texts: [[1.0] * ord(texts[0])], batch=1), InputError, "of one length"),
    ],
)
def test_mistakes(run, error, says):
    with pytest.raises(error, match=says):
        run()

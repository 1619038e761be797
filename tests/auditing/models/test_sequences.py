"""Scores of sequences: by hand on small ones, found where a model remembers, and clear errors."""

import json
import zlib

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import whosin as wi
from whosin.auditing import token_scores
from whosin.auditing.models.sequences import token_table
from whosin.cli.app import app
from whosin.errors import InputError, InputTypeError

ROWS = [[-0.1, -2.0, -0.3, -4.0], [-1.0], [-0.5, -0.25]]


def test_each_score_is_what_its_name_says():
    texts = ["the cat", "sat", "on it"]
    moments = ([[-1.0] * 4, [-2.0], [-1.0, -1.0]], [[2.0] * 4, [0.5], [0.0, 1.0]])
    scores = token_scores(ROWS, texts=texts, reference=[[-1.0, -1.0], [-3.0], [-1.0]], moments=moments, share=0.5)
    assert list(scores) == ["loss", "zlib", "min_k", "min_k_plus", "reference"]
    np.testing.assert_allclose(scores["loss"], [-1.6, -1.0, -0.375])
    np.testing.assert_allclose(
        scores["zlib"], [s / len(zlib.compress(t.encode())) for s, t in zip([-6.4, -1, -0.75], texts, strict=True)]
    )
    np.testing.assert_allclose(scores["min_k"], [-3.0, -1.0, -0.5])
    np.testing.assert_allclose(scores["min_k_plus"], [(-0.5 - 1.5) / 2, 2.0, 0.0])
    np.testing.assert_allclose(scores["reference"], [(-6.4 + 2) / 4, 2.0, (-0.75 + 1) / 2])


def test_lists_padding_missing_values_and_files_agree(tmp_path):
    padded = np.full((3, 6), np.nan)
    for place, row in enumerate(ROWS):
        padded[place, 1 : 1 + len(row)] = row
    file = tmp_path / "scores.jsonl"
    lines = [{"log_probs": [None, *row], "text": f"text {n}", "reference": [-1.0]} for n, row in enumerate(ROWS)]
    file.write_text("\n".join(map(json.dumps, lines)) + "\n\n", encoding="utf-8")
    plain = tmp_path / "plain.jsonl"
    plain.write_text("\n".join(map(json.dumps, ROWS)), encoding="utf-8")
    expected = token_scores(ROWS)
    for given in (padded, pl.DataFrame(padded, nan_to_null=True), plain, str(plain)):
        found = token_scores(given)
        assert list(found) == list(expected)
        for name in expected:
            np.testing.assert_array_equal(found[name], expected[name])
    whole = token_scores(file)
    assert list(whole) == ["loss", "zlib", "min_k", "reference"]
    np.testing.assert_array_equal(whole["loss"], expected["loss"])


def test_tensors_go_in_as_models_give_them():
    torch = pytest.importorskip("torch")
    rows = [torch.tensor(row, requires_grad=True) for row in ROWS]
    np.testing.assert_allclose(token_scores(rows)["loss"], token_scores(ROWS)["loss"], rtol=1e-6)
    halves = [row.to(torch.bfloat16) for row in rows]
    np.testing.assert_allclose(token_scores(halves)["loss"], token_scores(ROWS)["loss"], rtol=1e-2)
    masked = np.ma.masked_invalid([[-1.0, np.nan], [-2.0, -3.0]])
    assert token_scores(masked)["loss"].tolist() == [-1.0, -2.5]


def test_a_score_depends_on_its_own_sequence_alone():
    alone = [token_scores([row])["min_k"][0] for row in ROWS]
    np.testing.assert_array_equal(token_scores(ROWS)["min_k"], alone)


def test_what_a_model_remembers_is_found_and_a_null_is_not():
    rng = np.random.default_rng(3)

    def sequences(count, remembered):
        rows = [-rng.exponential(2.0, size=rng.integers(20, 60)) for _ in range(count)]
        return [np.where(rng.random(len(row)) < 0.3, 0.2 * row, row) if remembered else row for row in rows]

    members, others, null = sequences(300, True), sequences(300, False), sequences(300, False)
    found = wi.audit(token_scores(members), token_scores(others))
    assert set(found.queries) >= {"loss", "min_k"}
    assert found.advantage.lower > 0.2
    assert wi.audit(token_scores(null), token_scores(others)).advantage.lower == 0.0


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: token_scores([]), InputError, "log_probs must be at least one sequence"),
        (lambda: token_scores(3), InputTypeError, "log_probs must be a list of sequences"),
        (lambda: token_scores([[-1.0], []]), InputError, r"log_probs\[1\] must be at least one number"),
        (lambda: token_scores([[np.nan]]), InputError, r"log_probs\[0\] must be at least one number"),
        (lambda: token_scores([[0.5]]), InputError, "at most 0"),
        (lambda: token_scores([[-np.inf]]), InputError, "finite"),
        (lambda: token_scores([["x"]]), InputTypeError, r"log_probs\[0\] must be a sequence of numbers"),
        (lambda: token_scores([[-1.0, np.inf]]), InputError, "NaN where a sequence has ended"),
        (lambda: token_scores(ROWS, texts=["a"]), InputError, "texts must be 3 texts"),
        (lambda: token_scores(ROWS, texts=["a", "b", 3]), InputTypeError, "texts must be texts"),
        (lambda: token_scores(ROWS, reference=[[-1.0]]), InputError, "reference must be 3 sequences"),
        (lambda: token_scores(ROWS, moments=3), InputTypeError, "moments must be a pair"),
        (lambda: token_scores([[-1.0]], moments=([[-1.0, -2.0]], [[1.0, 1.0]])), InputError, "as long as"),
        (lambda: token_scores([[-1.0]], moments=([[-1.0]], [[-1.0]])), InputError, "at least 0"),
        (lambda: token_scores(ROWS, share=0.0), InputError, "share"),
        (lambda: token_scores("nowhere.jsonl"), InputError, "nowhere.jsonl"),
    ],
)
def test_bad_input_is_named(call, error, said):
    with pytest.raises(error, match=said):
        call()


def test_a_file_of_lines_is_audited_from_the_command_line(tmp_path):
    rng = np.random.default_rng(0)
    file = tmp_path / "notes.jsonl"
    with open(file, "w", encoding="utf-8") as lines:
        for place, member in enumerate([True] * 60 + [False] * 60):
            rows = (-rng.exponential(1.0 if member else 3.0, size=(2, 30))).tolist()
            moments = {"means": [-2.0] * 30, "deviations": [1.0] * 30}
            line = {"member": member, "ward": "north", "book": place // 20, "log_probs": rows[0], "text": "a note"}
            line["reference"] = rows[1]
            lines.write(json.dumps({**line, **moments}) + "\n")
    done = CliRunner().invoke(app, ["audit", "--scores", str(file), "--group", "ward", "--json"])
    found = json.loads(done.stdout)
    assert found["query"] == "loss, zlib, min_k, min_k_plus, reference"  # the number of the book is no score
    assert found["advantage"]["lower"] > 0.5
    assert [group["name"] for group in found["groups"]] == ["ward=north"]


def test_other_files_are_left_to_the_reader_of_tables(tmp_path):
    file = tmp_path / "scores.csv"
    file.write_text('member,"log_probs"\n1,2\n', encoding="utf-8")
    assert token_table(file) is None
    file = tmp_path / "scores.jsonl"
    file.write_text('{"member": 1, "score": 2.0}\n', encoding="utf-8")
    assert token_table(file) is None
    with pytest.raises(InputError, match=r"scores must be a file that can be read, got .*gone\.jsonl"):
        token_table(tmp_path / "gone.jsonl")


def test_a_bad_line_of_a_file_is_named(tmp_path):
    file = tmp_path / "bad.jsonl"
    for text, said in (("[-1.0]\n{", "line 2 of bad.jsonl"), ('{"tokens": []}', "line 1 of bad.jsonl")):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=said):
            token_scores(file)


def test_mappings_of_scores_must_agree():
    with pytest.raises(InputError, match="same names"):
        wi.audit({"a": [1.0]}, {"b": [1.0]})
    with pytest.raises(InputError, match="names must be names of scores"):
        wi.audit({"a": [1.0]}, {"a": [1.0]}, names=["z"])

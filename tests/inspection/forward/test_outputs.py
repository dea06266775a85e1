"""Outputs of every task, candidates and search trees, compared with the tasks themselves."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from regard.inspection.forward.outputs import OF_TEXTS, beam_search, branch, classes, ngram_shares, prepare_search, tree
from regard.inspection.forward.record import text_inputs
from regard.system.errors import RegardError, UsageError
from regard.tasks.assets import FittedValues
from regard.tasks.classification.classifier import Prediction
from regard.tasks.classification.ngrams import fit, words_of
from tests.inspection.forward.small_scenes import top_candidates
from tests.refusals import refused
from tests.tasks import small_tasks as small
from tests.tasks.small_tasks import GAPPED, SOURCE


def test_one_label() -> None:
    task = small.classifier()
    found, verdict = OF_TEXTS["classes"](task, SOURCE), task.classify(SOURCE)
    assert found["said"] == verdict.label
    assert not found["several"]
    assert "ngrams" not in found
    assert dict(found["classes"]) == verdict.probabilities
    shares = [share for _, share in found["classes"]]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1)
    assert found["classes"][0][0] == found["said"]


@pytest.fixture
def with_ngrams() -> Any:
    """A classifier with one of n-grams, of a few texts, that knows the words of the source."""
    task, targets_BC = small.classifier(), np.eye(len(small.LABELS), dtype=np.bool_)[np.arange(6) % len(small.LABELS)]
    ngrams = fit([f"{SOURCE} {number}" for number in range(6)], targets_BC)
    task.assets = replace(task.assets, ngrams=ngrams, fitted=FittedValues(2.0, 0.0, 3.0))
    return task


def test_what_ngrams_add_to_each_label(with_ngrams: Any) -> None:
    task = with_ngrams
    found = OF_TEXTS["classes"](task, SOURCE)
    shares = found["ngrams"]
    assert shares["labels"] == [label for label, _ in found["classes"]]
    places = [task.assets.labels.index(label) for label in shares["labels"]]
    whole_C = np.array(shares["whole"])
    probable_C = np.exp(whole_C - np.logaddexp.reduce(whole_C))
    assert probable_C == pytest.approx([share for _, share in found["classes"]])
    wanted_C = 1.5 * task.assets.ngrams.scores([SOURCE])[0, places]
    assert shares["ngrams"] == pytest.approx(wanted_C, rel=1e-4)
    added_C = np.sum([row for _, row in shares["words"]], axis=0) + shares["bias"]
    assert added_C == pytest.approx(wanted_C, rel=1e-4)
    assert [word for word, _ in shares["words"]] == words_of(SOURCE)


def test_ngrams_are_those_of_what_the_model_reads(with_ngrams: Any) -> None:
    """A letter and its accent become one sign before the text is read."""
    task = with_ngrams
    text, read = "un cafe\u0301", "un caf\xe9"
    assert task.assets.tokenizer.decode(task.assets.tokenizer.ids_batch([text])[0].tolist()) == read
    ngrams, score_C = task.assets.ngrams, task.scores([text])[0]
    shares = ngram_shares(task, ngrams, text, score_C, small.LABELS)
    assert shares is not None
    assert shares == ngram_shares(task, ngrams, read, score_C, small.LABELS)
    assert [word for word, _ in shares["words"]] == ["un", "caf\xe9"]


def test_several_labels_or_a_number() -> None:
    task = small.classifier("multi")
    found = OF_TEXTS["classes"](task, SOURCE)
    assert found["several"]
    assert found["said"] == [label for label, share in found["classes"] if share >= 0.5]
    assert sorted(label for label, _ in found["classes"]) == sorted(small.LABELS)
    task = small.classifier("regression")
    wanted = {"kind": "classes", "classes": [], "said": task.classify(SOURCE).value, "several": False}
    assert OF_TEXTS["classes"](task, SOURCE) == wanted


def test_what_is_out_of_scope_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = Prediction(("out of scope",), 0.4, None, {"a": 0.4, "b": 0.35})
    task = small.classifier()
    monkeypatch.setattr(type(task), "classify", lambda *_: verdict)
    found = classes(task, SOURCE)
    assert (found["said"], found["classes"]) == ("out of scope", [["a", 0.4], ["b", 0.35]])


@pytest.mark.parametrize("crf", [False, True])
def test_a_tag_for_each_word(crf: bool) -> None:
    task = small.tagger(crf)
    found = OF_TEXTS["tags"](task, SOURCE)["tags"]
    assert [one["text"] for one in found] == [SOURCE[one["start"] : one["end"]] for one in found]
    assert [one["tag"] for one in found] == list(task.tag(SOURCE).tags)
    assert [one["probability"] for one in found] == pytest.approx(task.tag(SOURCE).probabilities)
    assert " ".join(one["text"] for one in found).startswith("The animal didn ' t cross")


def test_missing_words() -> None:
    task = small.filler()
    found = OF_TEXTS["words"](task, GAPPED)
    gaps = task.fill(GAPPED)
    assert [[piece for piece, _ in gap] for gap in found["gaps"]] == [[one.piece for one in gap] for gap in gaps]
    assert found["text"] == gaps[0][0].text == gaps[1][0].text
    assert [len(gap) for gap in found["gaps"]] == [5, 5]
    assert OF_TEXTS["words"](task, SOURCE) == {"kind": "words", "gaps": [], "text": SOURCE}
    assert OF_TEXTS["continuation"](small.speaker(), SOURCE) == {"kind": "continuation"}
    assert OF_TEXTS["nothing"](small.encoder(), SOURCE) == {"kind": "nothing"}


def test_a_language_model_says_what_comes_next() -> None:
    task = small.speaker()
    seen = text_inputs(task, SOURCE)
    every = top_candidates(seen, task.assets.tokenizer.size)
    assert len(every) == len(seen.source)
    assert [sum(one.probability for one in candidates) for candidates in every] == pytest.approx([1] * len(every))
    scored = task.score(SOURCE)
    ids = task.assets.tokenizer.encode(SOURCE).ids
    chosen = [{one.id: one.probability for one in candidates}[id] for candidates, id in zip(every, ids, strict=False)]
    np.testing.assert_allclose(np.log(chosen), scored.log_probabilities[: len(ids)], rtol=1e-4)


def test_a_model_of_masked_words_says_what_it_fills() -> None:
    task = small.filler()
    text = "The animal didn't cross the [MASK]."
    gap = task.gaps.parse(text).gaps[0] + 1  # behind [CLS]
    with torch.inference_mode():
        (filled,) = task.fill(text, 3)
    seen = text_inputs(task, text)
    assert [token.text for token in seen.source].count("[MASK]") == 1
    assert "".join(text[token.start : token.end] for token in seen.source) == text.replace(" [MASK]", "")
    named = {one.piece: one.probability for one in top_candidates(seen, task.assets.tokenizer.size)[gap]}
    assert seen.source[gap].text == "[MASK]"
    assert [named[one.piece] for one in filled] == pytest.approx([one.probability for one in filled], rel=1e-4)


def test_who_says_no_pieces() -> None:
    with refused(UsageError, "candidates"):
        top_candidates(text_inputs(small.tagger(), SOURCE))


def test_a_language_model_goes_on() -> None:
    task = small.speaker()
    start = prepare_search(task, "The animal", 7)
    (way,) = beam_search(start, 1)
    (wanted,) = task.generate("The animal", max_tokens=7, temperature=0)
    assert way.tokens == wanted.tokens
    assert start.text(way.tokens) == wanted.text
    assert len(way.tokens) <= 7
    assert start.first == task.assets.tokenizer.encode("The animal").ids[-1]


@pytest.mark.parametrize("make", [small.translator, small.speaker])
def test_nothing_is_searched_for_a_text_that_is_too_long(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    task = make()
    monkeypatch.setattr("regard.models.decoding", None)
    for text in (SOURCE * 9, " "):
        with refused(RegardError, "text"):
            prepare_search(task, text, 5)


def test_nothing_searched_is_no_tree() -> None:
    assert tree([], str) == []
    assert branch([], -1) == []

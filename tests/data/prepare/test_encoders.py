"""Texts and labels as ids: of one label, of several, of a number; what has none is left out."""

import numpy as np
import pytest

from regard.data.corpora.documents import DocumentPart
from regard.data.prepare.encoders import ClassEncoder, DocumentEncoder, LabelIds, RefusedExample
from regard.data.prepare.windowing import Frame
from regard.text.tokenizers.tokenizer import Tokenizer, learn
from regard.text.tokenizers.vocabulary import read_tokenizer

TEXTS = ["the cat sees the dog", "a small snake", "old"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return learn(TEXTS * 5, 290, symbols=("[CLS]", "[MASK]"))


def coding(tokenizer: Tokenizer, kind="single", labels=("a", "b"), longest: int = 64) -> ClassEncoder:
    return ClassEncoder(tokenizer, Frame.of(tokenizer, longest), LabelIds(kind, labels))


def test_a_label_is_its_place_and_a_strange_one_stands_behind_the_last() -> None:
    ids = LabelIds("single", ("a", "b|c", "d"))
    assert [ids.of(label).tolist() for label in ("a", "b|c", "d", "e")] == [[0], [1], [2], [3]]
    assert ids.size == 5
    ids = LabelIds("single", ("a", "b"), "none")
    assert [ids.of(label).tolist() for label in ("none", "strange")] == [[3], [2]]
    assert LabelIds("multi", ("a", "b"), "none").of("b|none").tolist() == [1, 2]


def test_several_labels_are_as_many_ids_each_once() -> None:
    ids = LabelIds("multi", ("a", "b", "c"))
    assert [ids.of(label).tolist() for label in ("c|a", "", "a|a", " b | x ")] == [[2, 0], [], [0], [1, 3]]


def test_a_number_keeps_the_bits_of_its_float32() -> None:
    ids = LabelIds("regression", ())
    for number in ("0.1", "-3e7", "0", "-0.0", "1e-40"):
        (found,) = ids.of(number)
        assert 0 <= found < ids.size
        assert np.array([found], np.int64).astype(np.uint32).view(np.float32)[0] == np.float32(number)


def test_what_has_no_label_has_no_ids(tokenizer: Tokenizer) -> None:
    pairs = [("the cat", "a"), ("the dog", ""), ("a snake", "b")]
    without = RefusedExample("no label")
    assert [one == without for one in coding(tokenizer).encode(pairs, "train")] == [False, True, False]
    numbers = coding(tokenizer, "regression", ()).encode([("x", "1"), ("y", "")], "train")
    assert [one == without for one in numbers] == [False, True]
    assert without not in coding(tokenizer, "multi").encode(pairs, "train")  # none of several
    assert coding(tokenizer).encode([(" ", "a")], "train") == [RefusedExample("empty")]


def test_a_text_is_framed_and_a_long_one_says_its_label_in_every_window(tokenizer: Tokenizer) -> None:
    ((ids, label),) = coding(tokenizer).encode([(TEXTS[0], "b")], "train")[0]
    assert ids[0] == tokenizer.begin[0]
    assert ids[-1] == tokenizer.end
    assert tokenizer.decode(ids) == TEXTS[0]
    assert label.tolist() == [1]
    windows = coding(tokenizer, longest=5).encode([(" ".join(TEXTS * 3), "b")], "train")[0]
    assert len(windows) > 2
    assert all(len(ids) <= 5 and label.tolist() == [1] for ids, label in windows)


def test_sizes_are_above_every_id(tokenizer: Tokenizer) -> None:
    for kind, labels in (("single", ("a", "b")), ("multi", ("a", "b")), ("regression", ())):
        made = coding(tokenizer, kind, labels)
        pairs = [(text, "7.5" if kind == "regression" else "zzz") for text in TEXTS]
        for ids, said in (window for windows in made.encode(pairs, "train") for window in windows):
            assert ids.max() < made.sizes("train")[0]
            assert said.max(initial=0) < made.sizes("train")[1]


def test_the_fingerprint_is_of_tokenizer_and_labels(tokenizer: Tokenizer, tmp_path) -> None:
    found = {coding(tokenizer, labels=labels).sha256 for labels in (("a", "b"), ("b", "a"), ("a",))}
    other = learn(TEXTS, 285)
    assert len(found | {ClassEncoder(other, Frame.of(other, 64), LabelIds("single", ("a", "b"))).sha256}) == 4
    coding(tokenizer).save(tmp_path)
    assert read_tokenizer(tmp_path / "tokenizer.json").sha256 == tokenizer.sha256


@pytest.mark.parametrize("ended", [True, False])
def test_a_document_ends_once_however_many_parts_it_has(tokenizer: Tokenizer, ended: bool) -> None:
    made = DocumentEncoder(tokenizer, ended)
    parts = made.encode([DocumentPart("the cat", True), DocumentPart(" sees the dog"), DocumentPart("old")], "train")
    ids = [np.concatenate([window[0] for window in windows]) for windows in parts]
    assert tokenizer.decode(np.concatenate(ids[:2])) == TEXTS[0]
    assert [int((one == tokenizer.end).sum()) for one in ids] == ([0, 1, 1] if ended else [0, 0, 0])
    assert made.own == {"ended": ended}

"""What is kept back of running text: documents drawn by seed, never in pieces; or the end, to the character."""

import json
from pathlib import Path

import numpy as np
import pytest

from regard.data.corpora import documents as reading
from regard.data.corpora import held_out
from regard.data.corpora.documents import MORE, open_documents
from regard.data.corpora.held_out import DocumentRange, measure_corpora, split_documents, split_half
from regard.data.corpora.pairs import Corpus
from regard.system.errors import RegardError


def lines(folder: Path, texts: list[str], name: str = "a.txt") -> Corpus:
    (folder / name).write_text("".join(f"{text}\n" for text in texts))
    return open_documents(folder / name, "line")


def jsonl(folder: Path, texts: list[str]) -> Corpus:
    (folder / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return open_documents(folder / "a.jsonl")


def texts(corpus: Corpus) -> list[str]:
    return [text for text, _ in corpus.pairs()]


def test_a_tenth_of_the_documents_is_drawn_by_seed(tmp_path: Path) -> None:
    corpora = [lines(tmp_path, [f"one {n}" for n in range(150)]), lines(tmp_path, [f"b {n}" for n in range(50)], "b")]
    found = measure_corpora(corpora)
    assert found.documents == 200
    train, held = split_documents(corpora, found, 1)
    assert len(texts(held)) == 20
    assert sorted(texts(train) + texts(held)) == sorted(texts(corpora[0]) + texts(corpora[1]))
    assert texts(split_documents(corpora, found, 1)[1]) == texts(held)
    assert texts(split_documents(corpora, found, 2)[1]) != texts(held)
    order = [text for text in texts(corpora[0]) + texts(corpora[1]) if text in set(texts(held))]
    assert texts(held) == order
    assert train.name == f"{corpora[0].name} and {corpora[1].name}"


def test_a_document_that_occurs_again_is_on_one_side(tmp_path: Path) -> None:
    corpora = [lines(tmp_path, [f"text {n % 40}" for n in range(200)])]
    train, held = split_documents(corpora, measure_corpora(corpora), 1)
    assert not set(texts(train)) & set(texts(held))
    with pytest.raises(RegardError, match="alike"):
        split_documents(
            [lines(tmp_path, ["same"] * 30, "c")], measure_corpora([lines(tmp_path, ["same"] * 30, "c")]), 1
        )


def test_the_parts_of_a_document_stay_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PART", 10)
    corpora = [jsonl(tmp_path, [f"number {n} " + f"{n:03d} " * 12 for n in range(40)])]
    found = measure_corpora(corpora)
    assert found.documents == 40
    assert found.characters == sum(map(len, texts(corpora[0])))
    assert len(texts(corpora[0])) > 150
    for side, count in zip(split_documents(corpora, found, 1), (36, 4), strict=True):
        ends = [more for _, more in side.pairs()]
        assert ends.count("") == count
        assert ends[-1] == ""
        for whole in "".join(text + ("" if more == MORE else "\n") for text, more in side.pairs()).splitlines():
            number = int(whole.split()[1])
            assert whole == f"number {number} " + f"{number:03d} " * 12


def test_little_is_kept_back_of_very_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpora = [lines(tmp_path, [f"text {n:04d}" for n in range(1000)])]
    monkeypatch.setattr(held_out, "MOST", 90)
    assert len(texts(split_documents(corpora, measure_corpora(corpora), 1)[1])) == 10


def test_of_few_documents_the_end_is_kept_back(tmp_path: Path) -> None:
    corpora = [lines(tmp_path, ["a" * 30, "b" * 45]), lines(tmp_path, ["c" * 25], "b")]
    train, held = split_documents(corpora, measure_corpora(corpora), 1)
    assert list(train.pairs()) == [("a" * 30, ""), ("b" * 45, ""), ("c" * 15, MORE)]  # it does not end there
    assert list(held.pairs()) == [("c" * 10, "")]


@pytest.mark.parametrize("cut", [0, 1, 30, 31, 74, 75, 100])
def test_two_stretches_are_the_whole(tmp_path: Path, cut: int) -> None:
    corpora = [lines(tmp_path, ["a" * 30, "b" * 45]), lines(tmp_path, ["c" * 25], "b")]
    left, right = DocumentRange(corpora, 0, cut), DocumentRange(corpora, cut, float("inf"))
    assert "".join(texts(left) + texts(right)) == "a" * 30 + "b" * 45 + "c" * 25
    assert len("".join(texts(left))) == cut
    ends = [more for side in (left, right) for _, more in side.pairs()]
    assert ends.count("") == 3


def test_too_little_text_is_refused(tmp_path: Path) -> None:
    corpora = [lines(tmp_path, ["abc"])]
    with pytest.raises(RegardError, match="3 characters are too few to hold some out for validation") as caught:
        split_documents(corpora, measure_corpora(corpora), 1)
    assert caught.value.where == corpora[0].name
    (tmp_path / "empty").write_text("\n\n")
    with pytest.raises(RegardError, match="holds no text"):
        measure_corpora([open_documents(tmp_path / "empty", "line")])


def test_what_was_mended_is_told_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"good\n\xff\n" + b"word word\n" * 9)
    corpus = open_documents(tmp_path / "a.txt")
    train, _ = split_half([corpus], measure_corpora([corpus]).characters)
    assert list(train.pairs())
    assert [note.invalid_lines for note in train.notes] == [[2]]
    assert str(tmp_path / "a.txt") in train.where(0)


def test_equal_documents_have_equal_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = jsonl(tmp_path, ["one two three", "four", "one two three"])
    whole = measure_corpora([corpus]).same_D
    monkeypatch.setattr(reading, "PART", 4)
    assert len(texts(corpus)) > 3
    assert np.array_equal(measure_corpora([corpus]).same_D, whole)  # however it comes in parts
    assert whole[0] == whole[2] != whole[1]

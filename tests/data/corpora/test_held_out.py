"""What is kept back of running text: documents drawn by seed, never in pieces; or the end, to the character."""

import json
from pathlib import Path

import numpy as np
import pytest

from regard.data.corpora import documents as reading
from regard.data.corpora import held_out
from regard.data.corpora.corpus import Corpus
from regard.data.corpora.documents import DocumentPart, open_documents
from regard.data.corpora.held_out import DocumentSeries, HeldOut, HeldOutSpan, measure_corpora, split_documents
from regard.system.errors import RegardError
from tests.refusals import refused


def lines(folder: Path, texts: list[str], name: str = "a.txt") -> Corpus:
    (folder / name).write_text("".join(f"{text}\n" for text in texts))
    return open_documents(folder / name, "line")


def jsonl(folder: Path, texts: list[str]) -> Corpus:
    (folder / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return open_documents(folder / "a.jsonl")


def texts(corpus: Corpus) -> list[str]:
    return [text for text, _ in corpus.examples()]


def sides(held: HeldOut) -> tuple[list[DocumentPart], list[DocumentPart]]:
    """What is learned from, and what is held out."""
    parts = list(held.parts())
    return [part for part, is_held in parts if not is_held], [part for part, is_held in parts if is_held]


def split(corpora: list[Corpus], seed: int = 1) -> tuple[list[DocumentPart], list[DocumentPart]]:
    return sides(split_documents(corpora, measure_corpora(corpora), seed))


def plain(parts: list[DocumentPart]) -> list[str]:
    return [part.text for part in parts]


def test_a_tenth_of_the_documents_is_drawn_by_seed(tmp_path: Path) -> None:
    corpora = [lines(tmp_path, [f"one {n}" for n in range(150)]), lines(tmp_path, [f"b {n}" for n in range(50)], "b")]
    assert measure_corpora(corpora).documents == 200
    train, held = map(plain, split(corpora))
    assert len(held) == 20
    assert sorted(train + held) == sorted(texts(corpora[0]) + texts(corpora[1]))
    assert plain(split(corpora)[1]) == held
    assert plain(split(corpora, 2)[1]) != held
    assert held == [text for text in texts(corpora[0]) + texts(corpora[1]) if text in set(held)]
    assert split_documents(corpora, measure_corpora(corpora), 1).text.name == f"{corpora[0].name} and {corpora[1].name}"


def test_a_document_that_occurs_again_is_on_one_side(tmp_path: Path) -> None:
    train, held = split([lines(tmp_path, [f"text {n % 40}" for n in range(200)])])
    assert not set(plain(train)) & set(plain(held))
    same = lines(tmp_path, ["same"] * 30, "c")
    with refused(RegardError, same.name, "30"):
        split([same])


def test_the_parts_of_a_document_stay_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PART", 10)
    corpora = [jsonl(tmp_path, [f"number {n} " + f"{n:03d} " * 12 for n in range(40)])]
    found = measure_corpora(corpora)
    assert found.documents == 40
    assert found.characters == sum(map(len, texts(corpora[0])))
    assert len(texts(corpora[0])) > 150
    for side, count in zip(split(corpora), (36, 4), strict=True):
        ends = [part.continues for part in side]
        assert ends.count(False) == count
        assert not ends[-1]
        for whole in "".join(part.text + ("" if part.continues else "\n") for part in side).splitlines():
            number = int(whole.split()[1])
            assert whole == f"number {number} " + f"{number:03d} " * 12


def test_little_is_kept_back_of_very_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpora = [lines(tmp_path, [f"text {n:04d}" for n in range(1000)])]
    monkeypatch.setattr(held_out, "MOST", 90)
    assert len(split(corpora)[1]) == 10


def test_of_few_documents_the_end_is_kept_back(tmp_path: Path) -> None:
    corpora = [lines(tmp_path, ["a" * 30, "b" * 45]), lines(tmp_path, ["c" * 25], "b")]
    train, held = split(corpora)
    assert train == [("a" * 30, False), ("b" * 45, False), ("c" * 15, True)]  # it does not end there
    assert held == [("c" * 10, False)]


@pytest.mark.parametrize("cut", [0, 1, 30, 31, 74, 75, 100])
def test_both_parts_are_the_whole(tmp_path: Path, cut: int) -> None:
    corpora = [lines(tmp_path, ["a" * 30, "b" * 45]), lines(tmp_path, ["c" * 25], "b")]
    left, right = sides(HeldOutSpan(DocumentSeries(corpora), cut))
    assert "".join(plain(left) + plain(right)) == "a" * 30 + "b" * 45 + "c" * 25
    assert len("".join(plain(left))) == cut
    assert [part.continues for part in left + right].count(False) == 3


def test_too_little_text_is_refused(tmp_path: Path) -> None:
    corpora = [lines(tmp_path, ["abc"])]
    with refused(RegardError, corpora[0].name, "3"):
        split(corpora)
    (tmp_path / "empty").write_text("\n\n")
    with refused(RegardError, tmp_path / "empty"):
        measure_corpora([open_documents(tmp_path / "empty", "line")])


def test_invalid_lines_are_noted_by_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"good\n\xff\n" + b"word word\n" * 9)
    corpora = [open_documents(tmp_path / "a.txt")]
    found = split_documents(corpora, measure_corpora(corpora), 1)
    assert list(found.parts())
    assert [(note.path, note.invalid_lines) for note in found.text.notes] == [(tmp_path / "a.txt", [2])]
    assert str(tmp_path / "a.txt") in found.text.where(0)


def test_equal_documents_have_equal_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = jsonl(tmp_path, ["one two three", "four", "one two three"])
    whole = measure_corpora([corpus]).same_D
    monkeypatch.setattr(reading, "PART", 4)
    assert len(texts(corpus)) > 3
    assert np.array_equal(measure_corpora([corpus]).same_D, whole)  # however it comes in parts
    assert whole[0] == whole[2] != whole[1]

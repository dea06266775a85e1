"""Running text comes as documents, to the character; a huge one comes in parts, and no part is large."""

import gzip
import itertools
import json
import random
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from regard.data.corpora import documents as module
from regard.data.corpora.corpus import Corpus
from regard.data.corpora.documents import PART, DocumentPart, Unit, measure_corpora, open_documents, read_chunks
from regard.system.errors import RegardError, UsageError
from regard.text.lines import InvalidLines, lines
from tests.data.corpora.packed import write
from tests.refusals import refused

TEXT = "To be,\nor not\n\n  \nto be:\n that is\n\n"


def whole(corpus: Corpus) -> list[str]:
    """The documents, their parts joined."""
    found, going_on = [], False
    for part, flag in corpus.examples():
        assert len(part) <= PART
        found.append(found.pop() + part if going_on else part)
        going_on = flag
    assert not going_on
    return found


UNITS = [
    ("file", [TEXT], [1]),
    ("paragraph", ["To be,\nor not", "to be:\n that is"], [1, 5]),
    ("line", ["To be,", "or not", "to be:", " that is"], [1, 2, 5, 6]),
]


@pytest.mark.parametrize("ending", ["", ".gz", ".xz", ".zst"])
@pytest.mark.parametrize(("unit", "expected", "lines"), UNITS)
def test_documents_of_every_kind(tmp_path: Path, ending: str, unit: Unit, expected, lines: list[int]) -> None:
    path = write(tmp_path / f"a.txt{ending}", "\ufeff" + TEXT.replace("\n", "\r\n"))
    corpus = open_documents(path, unit)
    assert list(corpus.examples()) == list(corpus.examples()) == [(text, False) for text in expected]
    assert [corpus.where(number) for number in range(len(lines))] == [f"{path}:{line}" for line in lines]


@pytest.mark.parametrize("unit", ["file", "paragraph", "line"])
@given(text=st.text(alphabet="ab \n\r\ufeffä😀", max_size=80), most=st.integers(20, 40), part=st.integers(40, 60))
def test_parts_are_the_document(tmp_path_factory, unit: Unit, text: str, most: int, part: int) -> None:
    path = tmp_path_factory.mktemp("parts") / "a.txt"
    path.write_bytes(text.encode())
    read = list(lines(path))
    assume(all(line.strip() or len(line) < 12 for line in read))
    joined = "\n".join(read) + "\n" * text.endswith("\n")
    groups = itertools.groupby(read, lambda line: bool(line.strip()))
    paragraphs = ["\n".join(block) for filled, block in groups if filled]
    lines_ = [line for line in read if line.strip()]
    expected = {"line": lines_, "file": [joined] if joined else [], "paragraph": paragraphs}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PART", part)
        patch.setattr(module.read_chunks, "__defaults__", (most,))
        found = whole(open_documents(path, unit))
    assert found == expected[unit]


def test_a_line_in_pieces_is_the_line(tmp_path: Path) -> None:
    drawn = random.Random(1)
    raw = b"".join(drawn.choices((b"a", b" ", "ä".encode(), "😀".encode(), b"\xff", b"\r", b"word "), k=3000))
    path = tmp_path / "a.txt"
    path.write_bytes(b"\n" + raw + b"\r\nlast\xc3")
    notes, reference = InvalidLines(), InvalidLines()
    found = list(read_chunks(path, notes, 64))
    assert "".join(text for _, text in found).split("\n") == list(lines(path, reference))
    assert notes == reference
    assert {line for line, _ in found} == {1, 2, 3}
    assert max(len(text) for _, text in found) <= 64 + 16
    pieces = [text for _, text in read_chunks(write(path, "word " * 1000), InvalidLines(), 128)]
    assert len(pieces) > 10
    assert all(text.startswith(" word") and text.endswith("word") for text in pieces[1:-1])  # between words


@pytest.mark.long(minutes=0.05)
@pytest.mark.parametrize("line", [100, 1 << 30])
@pytest.mark.parametrize("size", [12_000_000, pytest.param(24_000_000, marks=pytest.mark.long(0.1))])
def test_a_huge_document_comes_in_parts_of_a_few_megabytes(tmp_path: Path, line: int, size: int) -> None:
    path = tmp_path / "a.txt.gz"
    text = ("some words ä " * 8)[:99] + "\n"
    with gzip.open(path, "wb", compresslevel=1) as stream:
        for _ in range(size // 100_000):
            stream.write((text if line == 100 else text.replace("\n", " ")).encode() * 1000)
    tracemalloc.start()
    try:
        total = sum(len(part) for part, _ in open_documents(path).examples())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert total == size
    assert peak < 10 * 2**20


def test_documents_of_json(tmp_path: Path) -> None:
    texts = ["a\nb", "", "word " * (PART // 4), "x" * (2 * PART + 5), "\ud800"]
    path = write(tmp_path / "a.jsonl.gz", "".join(json.dumps({"id": 1, "text": text}) + "\n\n" for text in texts))
    corpus = open_documents(path, "line")
    assert whole(corpus) == [*texts[:1], *texts[2:4], "\ufffd"]
    parts = [part for part, _ in corpus.examples()]
    assert parts[1].endswith("word")
    assert corpus.where(0) == f"{path}:1"
    assert corpus.where(1) == corpus.where(2) == f"{path}:5"
    other = write(tmp_path / "b.jsonl", '{"body": "a"}\n')
    assert whole(open_documents(other, key="body")) == ["a"]
    for line in ('{"text": 1}', "{}"):
        bad = write(tmp_path / "c.jsonl", '{"text": "a"}\n' + line + "\n")
        with refused(RegardError, f"{bad}:2"):
            list(open_documents(bad).examples())


def test_a_file_that_breaks_off_is_said_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    drawn = random.Random(1)
    raw = gzip.compress("".join(f"{drawn.random()}\n" for _ in range(50_000)).encode())
    path.write_bytes(raw[: len(raw) // 2])
    with refused(RegardError) as caught:
        list(open_documents(path, "line").examples())
    assert int(str(caught.value.where).rpartition(":")[2]) > 1000


def test_nothing_and_units_and_columns_nobody_knows(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "")
    plain, keyed = open_documents(path), open_documents(tmp_path / "a.jsonl.gz", key="body")
    assert list(plain.examples()) == []
    with refused(UsageError, "data.documents"):
        open_documents(path, "page")  # type: ignore[arg-type]
    for corpora in ([plain], [plain, plain]):  # plain text has no columns
        with refused(UsageError, "columns", "a.txt"):
            module.refuse_columns("body", corpora)
        module.refuse_columns(None, corpora)
    module.refuse_columns("body", [plain, keyed])


def by_line(folder: Path, texts: list[str], name: str = "a.txt") -> Corpus:
    (folder / name).write_text("".join(f"{text}\n" for text in texts))
    return open_documents(folder / name, "line")


def jsonl(folder: Path, texts: list[str]) -> Corpus:
    (folder / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return open_documents(folder / "a.jsonl")


def texts(corpus: Corpus) -> list[str]:
    return [text for text, _ in corpus.examples()]


def sides(held: module.HeldOut) -> list[list[DocumentPart]]:
    """What is learned from, and what is held out."""
    parts = list(held.parts())
    return [[part for part, is_held in parts if is_held == side] for side in (False, True)]


def split(corpora: list[Corpus], seed: int = 1) -> list[list[DocumentPart]]:
    return sides(module.split_documents(corpora, measure_corpora(corpora), seed))


def plain(parts: list[DocumentPart]) -> list[str]:
    return [part.text for part in parts]


def test_a_tenth_of_the_documents_is_drawn_by_seed(tmp_path: Path) -> None:
    one, other = ([f"{name} {n}" for n in range(count)] for name, count in (("one", 150), ("b", 50)))
    corpora = [by_line(tmp_path, one), by_line(tmp_path, other, "b")]
    assert measure_corpora(corpora).documents == 200
    train, held = map(plain, split(corpora))
    assert len(held) == 20
    assert sorted(train + held) == sorted(one + other)
    assert plain(split(corpora)[1]) == held
    assert plain(split(corpora, 2)[1]) != held
    assert held == [text for text in one + other if text in set(held)]
    found = module.split_documents(corpora, measure_corpora(corpora), 1)
    assert found.text.name == f"{corpora[0].name} and {corpora[1].name}"


def test_a_document_that_occurs_again_is_on_one_side(tmp_path: Path) -> None:
    train, held = split([by_line(tmp_path, [f"text {n % 40}" for n in range(200)])])
    assert not set(plain(train)) & set(plain(held))
    same = by_line(tmp_path, ["same"] * 30, "c")
    with refused(RegardError, same.name, "30"):
        split([same])


def test_the_parts_of_a_document_stay_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PART", 10)
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


def test_little_is_kept_back_of_very_much_and_of_few_documents_the_end(tmp_path: Path, monkeypatch) -> None:
    corpora = [by_line(tmp_path, ["a" * 30, "b" * 45]), by_line(tmp_path, ["c" * 25], "b")]
    train, held = split(corpora)
    assert train == [("a" * 30, False), ("b" * 45, False), ("c" * 15, True)]  # it does not end there
    assert held == [("c" * 10, False)]
    monkeypatch.setattr(module, "MOST", 90)
    assert len(split([by_line(tmp_path, [f"text {n:04d}" for n in range(1000)])])[1]) == 10


@pytest.mark.parametrize("cut", [0, 1, 30, 31, 74, 75, 100])
def test_both_parts_are_the_whole(tmp_path: Path, cut: int) -> None:
    corpora = [by_line(tmp_path, ["a" * 30, "b" * 45]), by_line(tmp_path, ["c" * 25], "b")]
    left, right = sides(module.HeldOutSpan(module.DocumentSeries(corpora), cut))
    text = "a" * 30 + "b" * 45 + "c" * 25
    assert ("".join(plain(left)), "".join(plain(right))) == (text[:cut], text[cut:])
    assert [part.continues for part in left + right].count(False) == 3


def test_too_little_text_is_refused(tmp_path: Path) -> None:
    corpora = [by_line(tmp_path, ["abc"])]
    with refused(RegardError, corpora[0].name, "3"):
        split(corpora)
    (tmp_path / "empty").write_text("\n\n")
    with refused(RegardError, tmp_path / "empty"):
        measure_corpora([open_documents(tmp_path / "empty", "line")])


def test_invalid_lines_are_noted_by_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"good\n\xff\n" + b"word word\n" * 9)
    corpora = [open_documents(tmp_path / "a.txt")]
    found = module.split_documents(corpora, measure_corpora(corpora), 1)
    assert list(found.parts())
    assert [(note.path, note.invalid_lines) for note in found.text.notes] == [(tmp_path / "a.txt", [2])]
    assert str(tmp_path / "a.txt") in found.text.where(0)


def test_equal_documents_have_equal_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = jsonl(tmp_path, ["one two three", "four", "one two three"])
    whole = measure_corpora([corpus]).same_D
    monkeypatch.setattr(module, "PART", 4)
    assert len(texts(corpus)) > 3
    assert np.array_equal(measure_corpora([corpus]).same_D, whole)  # however it comes in parts
    assert whole[0] == whole[2] != whole[1]

"""Running text comes as documents, to the character; a huge one comes in parts, and no part is large."""

import gzip
import json
import random
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from regard.data.corpora import documents as module
from regard.data.corpora.corpus import Corpus
from regard.data.corpora.documents import PART, Unit, open_documents, read_chunks, refuse_columns
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
        if going_on:
            found[-1] += part
        else:
            found.append(part)
        going_on = flag
    assert not going_on
    return found


@pytest.mark.parametrize("ending", ["", ".gz", ".xz", ".zst"])
@pytest.mark.parametrize(
    ("unit", "expected", "lines"),
    [
        ("file", [TEXT], [1]),
        ("paragraph", ["To be,\nor not", "to be:\n that is"], [1, 5]),
        ("line", ["To be,", "or not", "to be:", " that is"], [1, 2, 5, 6]),
    ],
)
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
    expected = {"line": [line for line in read if line.strip()], "file": [joined] if joined else []}
    blocks: list[list[str]] = [[]]
    for line in read:
        if line.strip():
            blocks[-1].append(line)
        else:
            blocks.append([])
    expected["paragraph"] = ["\n".join(block) for block in blocks if block]
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


def test_pieces_end_between_words(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "word " * 1000)
    found = [text for _, text in read_chunks(path, InvalidLines(), 128)]
    assert len(found) > 10
    assert all(text.startswith(" word") and text.endswith("word") for text in found[1:-1])


@pytest.mark.one_of(2)
@pytest.mark.parametrize("line", [100, 1 << 30])
def test_a_huge_document_comes_in_parts_of_a_few_megabytes(tmp_path: Path, line: int) -> None:
    path, size = tmp_path / "a.txt.gz", 24_000_000
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


@pytest.mark.parametrize("line", ["{", "[]", '{"text": 1}', "{}"])
def test_bad_json_is_said_with_its_line(tmp_path: Path, line: str) -> None:
    path = write(tmp_path / "a.jsonl", '{"text": "a"}\n' + line + "\n")
    with refused(RegardError, f"{path}:2"):
        list(open_documents(path).examples())


def test_a_file_that_breaks_off_is_said_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    drawn = random.Random(1)
    raw = gzip.compress("".join(f"{drawn.random()}\n" for _ in range(50_000)).encode())
    path.write_bytes(raw[: len(raw) // 2])
    with refused(RegardError) as caught:
        list(open_documents(path, "line").examples())
    assert int(str(caught.value.where).rpartition(":")[2]) > 1000


def test_nothing_and_a_unit_nobody_knows(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "")
    assert list(open_documents(path).examples()) == []
    with refused(UsageError, "data.documents"):
        open_documents(path, "page")  # type: ignore[arg-type]


def test_invalid_bytes_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"a\nf\xfcr\n")
    corpus = open_documents(path, "line")
    assert list(corpus.examples()) == [("a", False), ("f\ufffdr", False)]
    assert [notes.invalid_lines for notes in corpus.notes] == [[2]]


def test_plain_text_has_no_columns(tmp_path: Path) -> None:
    plain, keyed = open_documents(tmp_path / "a.txt"), open_documents(tmp_path / "a.jsonl.gz", key="body")
    for corpora in ([plain], [plain, plain]):
        with refused(UsageError, "--columns", "a.txt") as caught:
            refuse_columns("body", corpora)
        assert caught.value.where == "--columns"
        refuse_columns(None, corpora)
    refuse_columns("body", [plain, keyed])

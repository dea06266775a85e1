"""Lines of two files in blocks, and examples in blocks: all that one line after another gives, wherever blocks end."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.data.corpora import blocks as module
from regard.data.corpora import pairs
from regard.data.corpora.blocks import Block, ExampleBlock, LineBlock, blocks, example_blocks
from regard.data.corpora.corpus import TextPair
from regard.data.corpora.pairs import TwoFiles
from regard.system.errors import RegardError
from tests.data.corpora.packed import write
from tests.refusals import refused

BOM = b"\xef\xbb\xbf"


@pytest.fixture(autouse=True, params=[1, 7, 64])
def small(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few bytes, so that lines stand across their borders."""
    monkeypatch.setattr(pairs, "BLOCK", request.param)
    monkeypatch.setattr("regard.text.lines.HEAD", max(2, request.param // 2))


def two(folder: Path, source: bytes, target: bytes) -> TwoFiles:
    for name, content in (("a.en", source), ("a.de", target)):
        (folder / name).write_bytes(content)
    return TwoFiles(folder / "a.en", folder / "a.de")


def read(corpus: TwoFiles) -> list[TextPair]:
    """Through blocks that were sent to another process and back."""
    found = list[TextPair]()
    for block in blocks(corpus, np.zeros(10_000, np.int8), len):
        some, noted = Block.unpack(block.pack(list), lambda sides: TextPair(*sides)).read()
        assert len(some) == block.content.count == len(block.marks_B)
        assert block.content.first == len(found)
        block.note(noted)
        found += some
    return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_lines_across_borders_come_whole(tmp_path: Path, seed: int, ending: bytes, last: bool) -> None:
    draw = random.Random(seed)
    words = ["", "a", "été", "東京 都", "x" * 90, "nul\0here", "tab\t", "\r", " ", "last"]
    wanted = [TextPair(*draw.choices(words, k=2)) for _ in range(60)] + [TextPair("the", "end")]
    sides = [ending.join(pair[side].encode() for pair in wanted) + ending * last for side in (0, 1)]
    corpus = two(tmp_path, BOM + sides[0], sides[1])
    shown = [TextPair(*(text.removesuffix("\r") if ending == b"\n" else text for text in pair)) for pair in wanted]
    assert read(corpus) == shown == list(corpus.examples())
    assert [note.read for note in corpus.notes] == [len(wanted)] * 2


@pytest.mark.parametrize("ending", [".gz", ".xz", ".zst"])
def test_packed_files_give_the_same(tmp_path: Path, ending: str) -> None:
    texts = ["".join(f"{word} {n}\n" for n in range(50)) for word in ("línea", "行")]
    plain = two(tmp_path, *(text.encode() for text in texts))
    packed = [write(tmp_path / f"b{side}{ending}", text) for side, text in enumerate(texts)]
    assert read(TwoFiles(*packed)) == read(plain)
    assert len(read(plain)) == 50


@pytest.mark.parametrize("content", [b"", BOM])
def test_files_without_a_line_have_no_block(tmp_path: Path, content: bytes) -> None:
    assert read(two(tmp_path, content, b"")) == []


def test_invalid_bytes_are_noted_by_file_and_line_whoever_reads(tmp_path: Path) -> None:
    bad = [3, 4, 11, *range(20, 40)]
    lines = [b"f\xfcr %d" % n if n in bad else b"line %d" % n for n in range(1, 51)]
    corpus = two(tmp_path, b"\n".join(lines), b"ok\n" * 50)
    found = read(corpus)
    assert [pair.source for pair in found] == [line.decode(errors="replace") for line in lines]
    assert [(note.invalid, note.invalid_lines) for note in corpus.notes] == [(len(bad), bad[:10]), (0, [])]
    assert corpus.notes[0].path == tmp_path / "a.en"


@pytest.mark.parametrize("counts", [(3, 25), (25, 3), (0, 1), (1, 0)])
def test_unequal_counts_are_both_named_after_the_pairs_there_are(tmp_path: Path, counts: tuple[int, int]) -> None:
    corpus = two(tmp_path, b"x y\n" * counts[0], b"z\n" * counts[1])
    found = list[TextPair]()
    with refused(RegardError, "a.en", f"has {counts[0]} line", f"a.de has {counts[1]}"):
        found += corpus.examples()
    seen = list[Any]()
    with refused(RegardError, "a.en"):
        for block in corpus.line_blocks():
            seen += block.read_alone()[0]
    assert seen == [TextPair("x y", "z")] * min(counts)


@pytest.mark.parametrize("side", [0, 1])
def test_a_line_beyond_the_limit_is_named_after_those_before_it(
    tmp_path: Path, side: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.text.lines.LONGEST", 100)
    sides = [b"ok\n" * 30, b"ok\n" * 30]
    sides[side] = b"ok\n" * 12 + b"y" * 200 + b"\n" + b"ok\n" * 17
    seen = list[Any]()
    with refused(RegardError, f"{'a.de' if side else 'a.en'}:13", "longer"):
        for block in two(tmp_path, *sides).line_blocks():
            seen += block.read_alone()[0]
    assert seen == [TextPair("ok", "ok")] * 12


def test_a_block_of_lines_is_the_same_when_it_was_sent() -> None:
    block = LineBlock(7, 2, b"a\nb", b"\xff\n\0\n")
    assert LineBlock.unpack(block.pack()) == block
    assert block.read_alone() == ([TextPair("a", "\ufffd"), TextPair("b", "\0")], [(0, []), (1, [8])])


def test_examples_are_taken_by_number_and_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 3)
    monkeypatch.setattr(module, "CHARACTERS", 10)
    sizes = [1, 1, 1, 1, 20, 4, 5, 0, 9, 9]
    found = list(example_blocks(iter(sizes), int))
    assert [list(one.examples) for one in found] == [[1, 1, 1], [1, 20], [4, 5, 0], [9, 9]]
    assert [one.first for one in found] == [0, 3, 5, 8]
    assert list(example_blocks(iter([]), int)) == []


def test_examples_beyond_the_marks_are_those_a_corpus_has_grown_by() -> None:
    block = Block(None, ExampleBlock(4, ["a", "é\ud800", "c"]), np.zeros(2, np.int8))  # type: ignore[arg-type]
    assert block.read() == (["a", "é\ud800"], [])
    sent = Block.unpack(block.pack(str), str)
    assert (list(sent.read()[0]), sent.marks_B.tolist()) == (["a", "é\ud800"], [0, 0])

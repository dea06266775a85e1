"""Lines of two files in blocks, and examples in blocks: all that one line after another gives, wherever blocks end.

A corpus scanned in blocks, by one process or several, is the same as scanned pair by pair.
"""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.data.checks.pairs import PairScan
from regard.data.corpora import pairs
from regard.data.corpora import scan as module
from regard.data.corpora.corpus import TextPair
from regard.data.corpora.pairs import TwoFiles
from regard.data.corpora.scan import Block, ExampleBlock, LineBlock
from regard.system.errors import RegardError
from tests.refusals import refused

BOM = b"\xef\xbb\xbf"
WORDS = [b"red", b"House", "\u00c4rger".encode(), b"f\xfcr", b"&amp;", b"\t", b"\r", "\u00c3\u00a4".encode(), b"run"]
WORDS.append(b"x " * 40)


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
    for block in module.blocks(corpus, np.zeros(10_000, np.int8), len):
        some, noted = Block.unpack(block.pack(), TextPair).read()
        assert len(some) == block.content.count == len(block.marks_B)
        assert block.content.first == len(found)
        block.note(noted)
        found += some
    return found


@pytest.mark.one_of(3)
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
    assert read(two(tmp_path, BOM, b"")) == read(two(tmp_path, b"", b"")) == []


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
            seen += block.read()[0]
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
            seen += block.read()[0]
    assert seen == [TextPair("ok", "ok")] * 12


def test_examples_are_taken_by_number_and_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 3)
    monkeypatch.setattr(module, "CHARACTERS", 10)
    sizes = [1, 1, 1, 1, 20, 4, 5, 0, 9, 9]
    found = list(module.example_blocks(iter(sizes), int))
    assert [list(one.examples) for one in found] == [[1, 1, 1], [1, 20], [4, 5, 0], [9, 9]]
    assert [one.first for one in found] == [0, 3, 5, 8]
    assert list(module.example_blocks(iter([]), int)) == []


def test_blocks_are_the_same_when_they_were_sent_and_examples_beyond_the_marks_are_those_a_corpus_has_grown_by() -> (
    None
):
    lines = LineBlock(7, 2, b"a\nb", b"\xff\n\0\n")
    assert Block.unpack(Block(None, lines, np.zeros(2, np.int8)).pack(), str).content == lines
    assert lines.read() == ([TextPair("a", "\ufffd"), TextPair("b", "\0")], [(0, []), (1, [8])])
    block = Block(None, ExampleBlock(4, [("a",), ("é\ud800",), ("c",)]), np.zeros(2, np.int8))
    assert block.read() == ([("a",), ("é\ud800",)], [])
    sent = Block.unpack(block.pack(), str)
    assert (list(sent.read()[0]), sent.marks_B.tolist()) == (["a", "é\ud800"], [0, 0])


def found(scan: PairScan) -> dict[str, Any]:
    places = {kind: [place[1:] for place in some] for kind, some in scan.places.items()}
    notes = [(note.invalid, note.invalid_lines) for note in scan.corpus.notes]
    letters = [a and not b for a, b in zip(scan.letters, scan.cased, strict=True)]
    lengths = [scan.lengths(side).tolist() for side in (0, 1)]
    said = [str(draft.finding) for draft in scan.drafts(64, None)]
    content = scan.sha256, scan.hashes_B2.tolist(), lengths
    error = (scan.error.message, scan.error.where) if scan.error else None
    return {"is": (content, list(scan.counts.items()), letters, scan.cased, places, notes, said), "error": error}


@pytest.mark.one_of(12)
@pytest.mark.parametrize("kind", ["cased", "plain", "longer", "shorter", "binary end"])
def test_blocks_find_what_single_pairs_do(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "BLOCK", 600)
    monkeypatch.setattr("regard.text.lines.HEAD", 256)
    monkeypatch.setattr("regard.text.lines.LONGEST", 4000)
    draw = random.Random(kind)
    words = [word.lower() for word in WORDS if word.isascii()] if kind == "plain" else WORDS
    sides = [[b" ".join(draw.choices(words, k=draw.randrange(9))) for _ in range(300)] for _ in range(2)]
    if kind in ("longer", "shorter"):
        sides[kind == "longer"] = sides[kind == "longer"][:250]
    if kind == "binary end":
        sides[1][270] = b"y" * 5000
    corpus = two(tmp_path, b"\n".join(sides[0]), BOM + b"\n".join(sides[1]))
    one = PairScan(corpus)
    texts = [[raw.removesuffix(b"\r").decode(errors="replace") for raw in side] for side in sides]
    assert list(one.stream()) == list(zip(*texts, strict=False))[: one.count]
    wanted = found(one)
    assert (wanted["error"] is None) == (kind in ("cased", "plain"))
    for processes in (1, 2, 3):
        assert found(PairScan(corpus).run(processes=lambda: processes)) == wanted  # noqa: B023

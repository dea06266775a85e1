"""A corpus scanned in blocks, by one process or several, is the same as scanned pair by pair."""

import random
from pathlib import Path
from typing import Any

import pytest

from regard.data.checks.pairs import PairScan
from regard.data.corpora import pairs
from regard.data.corpora.pairs import TwoFiles

WORDS = [
    b"red",
    b"House",
    "\u00c4rger".encode(),
    b"f\xfcr",
    b"&amp;",
    b"\t",
    b"\r",
    "\u00c3\u00a4".encode(),
    b"run",
    b"x " * 40,
]


def found(scan: PairScan) -> dict[str, Any]:
    places = {kind: [place[1:] for place in some] for kind, some in scan.places.items()}
    notes = [(note.invalid, note.invalid_lines) for note in scan.corpus.notes]
    known = {"letters": [a and not b for a, b in zip(scan.letters, scan.cased, strict=True)], "cased": scan.cased}
    lengths = [scan.lengths(side).tolist() for side in (0, 1)]
    error = (scan.error.message, scan.error.where) if scan.error else None
    said = [str(draft.finding) for draft in scan.drafts(64, None)]
    counts = list(scan.counts.items())
    content = (scan.sha256, scan.hashes_B2.tolist(), lengths)
    return known | {"places": places, "notes": notes, "error": error, "said": said, "counts": counts, "is": content}


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
    for name, side in zip("ab", sides, strict=True):
        (tmp_path / name).write_bytes(b"\xef\xbb\xbf" * (name == "b") + b"\n".join(side))
    corpus = TwoFiles(tmp_path / "a", tmp_path / "b")
    one = PairScan(corpus)
    read, texts = list(one.stream()), [[_decoded(raw) for raw in side] for side in sides]
    assert read == list(zip(*texts, strict=False))[: one.count]
    wanted = found(one)
    assert (wanted["error"] is None) == (kind in ("cased", "plain"))
    for processes in (1, 2, 3):
        assert found(PairScan(corpus).run(processes=lambda: processes)) == wanted  # noqa: B023


def _decoded(raw: bytes) -> str:
    return raw.removesuffix(b"\r").decode(errors="replace")

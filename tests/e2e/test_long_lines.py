"""A line of ten million characters without a blank: what comes before it, an answer to it, and what comes behind."""

from pathlib import Path
from typing import Any

import pytest

from tests.tasks.small_tasks import EVERY, IMAGE, put

COMMANDS: dict[str, list[str]] = {
    "translator": ["translate"],
    "recurrent": ["translate"],
    "classifier": ["classify"],
    "reader": ["classify"],
    "tagger": ["tag", "--json"],
    "filler": ["fill", "--json"],
    "spanner": ["ask", "--json"],
    "encoder": ["encode"],
    "speaker": ["generate", "--max-tokens", "3"],
}
LINES = {"letters": b"a" * 10_000_000, "kanji": "漢字仮名".encode() * 833_000, "gap": b"[MASK]" + b"ab" * 5_000_000}


def answered(regard: Any, folder: Path, name: str, line: bytes) -> None:
    put(folder, EVERY[name]())
    command, *options = COMMANDS[name]
    done = regard(command, folder, *options, stdin=b"the animal [MASK]\n" + line + b"\nthe street [MASK]\n")
    assert done.code == 0, done.err
    assert len(done.out.splitlines()) == (1 if name == "speaker" else 3)
    assert "characters are left out" in done.err
    assert "of line 2" in done.err
    assert "line 3" not in done.err


@pytest.mark.one_of(10, minutes=0.2)
@pytest.mark.parametrize("name", COMMANDS)
def test_letters_without_a_blank(regard: Any, tmp_path: Path, name: str) -> None:
    answered(regard, tmp_path, name, LINES["letters"])


@pytest.mark.long(minutes=0.2)
@pytest.mark.parametrize("line", ["kanji", "gap"])
@pytest.mark.parametrize("name", COMMANDS)
def test_other_lines_without_a_blank(regard: Any, tmp_path: Path, name: str, line: str) -> None:
    answered(regard, tmp_path, name, LINES[line])


def test_an_image_of_many_numbers_is_a_line_without_blanks(regard: Any, tmp_path: Path) -> None:
    side = 260
    put(tmp_path, EVERY["viewer"](height=side, width=side, patch=side // 2))
    assert IMAGE["channels"] == 1
    done = regard("classify", tmp_path, stdin=b",".join([b"7"] * side * side) + b"\n")
    assert (done.code, done.err) == (0, "")
    assert len(done.out.splitlines()) == 1

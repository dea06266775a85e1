"""Rooms are small, no import circle exists, and ARCHITECTURE.md has a line for each room."""

import re
from pathlib import Path

from tests.scripts import load_script

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "regard"
MOST = 15
"""Entries of a room; the package itself has the rows of the import contract."""


def rooms() -> list[Path]:
    return sorted({path.parent for path in SOURCE.rglob("*.py")})


def test_no_room_is_crowded() -> None:
    for room in rooms():
        if room == SOURCE:
            continue
        entries = [path.name for path in room.iterdir() if not path.name.startswith("__") and path.name != "py.typed"]
        assert len(entries) <= MOST, f"{room.relative_to(ROOT)} has {len(entries)} entries"


def test_each_room_has_its_line() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    tree = text[text.index("src/regard/\n") : text.index("\nweb/")]
    drawn, above = set[str](), list[str]()
    for indent, name in re.findall(r"^( +)(\w+)/ +\S", tree, re.MULTILINE):
        above = [*above[: len(indent) // 2 - 1], name]
        drawn.add("/".join(above))
    there = {room.relative_to(SOURCE).as_posix() for room in rooms()} - {"."}
    assert drawn == there | {"inspection/page", "inspection/shipped"}


def test_no_import_circle() -> None:
    counted = load_script("scripts/counts.py")
    assert counted.circles(counted.imports(*counted.modules(ROOT))) == []

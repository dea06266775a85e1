"""Text for terminals: control characters made visible, width in cells, cropping; tables, also as Markdown."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

ELLIPSIS = "…"
_DIRECTION = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def visible(text: str) -> str:
    """``text`` with control characters shown as pictures, so that no token steers a terminal or turns a line around."""
    return "".join(map(_visible_character, text)) or "∅"


def _visible_character(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if character in _DIRECTION or unicodedata.category(character) in ("Cc", "Zl", "Zp", "Cs"):
        return "\ufffd"
    return character


def width(text: str) -> int:
    """Terminal cells that ``text`` takes; a wide character takes two, a combining one none."""
    return cell_len(text)


def clusters(text: str) -> list[str]:
    """Characters with what combines onto them: the pieces a label may be cut between."""
    result: list[str] = []
    for character in text:
        if result and width(character) == 0:
            result[-1] += character
        else:
            result.append(character)
    return result


def crop(text: str, cells: int, mark: str = ELLIPSIS) -> str:
    """``text`` in at most ``cells`` cells, ending in ``mark`` where something was left out."""
    if width(text) <= cells:
        return text
    room, kept = cells - width(mark), ""
    if room < 0:
        return ""
    for cluster in clusters(text):
        if width(kept + cluster) > room:
            break
        kept += cluster
    return kept + mark


def fit(text: str, cells: int, align: str = "<", mark: str = ELLIPSIS) -> str:
    """``text`` cropped and padded to exactly ``cells`` cells; ``align`` is ``<``, ``>`` or ``^``."""
    text = crop(text, cells, mark)
    spare = cells - width(text)
    left = {"<": 0, ">": spare, "^": spare // 2}[align]
    return " " * left + text + " " * (spare - left)


def upright(labels: Sequence[str], cells: int, height: int, mark: str = ELLIPSIS) -> list[str]:
    """Vertical labels side by side, each ``cells`` wide, ending on the last of ``height`` lines."""
    columns = []
    for label in labels:
        column = clusters(label)
        columns.append(column if len(column) <= height else [*column[: height - 1], mark])
    tallest = max(map(len, columns), default=0)
    columns = [[" "] * (tallest - len(column)) + column for column in columns]
    return ["".join(fit(column[line], cells, "^", "?") for column in columns) for line in range(tallest)]


@dataclass(frozen=True)
class Table:
    """Cells under headings, which may have several lines; ``notes`` explain the table."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def markdown(self) -> str:
        """As Markdown; all columns but the first are right-aligned."""
        rule = "|" + "|".join(" --: " if column else " --- " for column in range(len(self.headings))) + "|"
        lines = [_markdown_row(self.headings), rule, *map(_markdown_row, self.rows)]
        return "\n\n".join(["\n".join(lines), *self.notes]) + "\n"

    def terminal(self) -> str:
        """As text for a terminal."""
        heads = [heading.split("\n") for heading in self.headings]
        tall = max(map(len, heads))
        stacked = [[""] * (tall - len(head)) + head for head in heads]
        rows = [[head[line] for head in stacked] for line in range(tall)]
        rows += [[visible(cell) for cell in row] for row in self.rows]
        widths = [max(width(row[column]) for row in rows) for column in range(len(heads))]
        lines = [
            "  ".join(fit(cell, widths[i], ">" if i else "<") for i, cell in enumerate(row)).rstrip() for row in rows
        ]
        return "\n".join([*lines, *([""] if self.notes else []), *self.notes]) + "\n"


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

"""Token labels that fit where they stand: measured in terminal cells, cropped, made harmless."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

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
    """``text`` cropped and filled with blanks to exactly ``cells`` cells; ``align`` is ``<``, ``>`` or ``^``."""
    text = crop(text, cells, mark)
    spare = cells - width(text)
    left = {"<": 0, ">": spare, "^": spare // 2}[align]
    return " " * left + text + " " * (spare - left)


def upright(labels: Sequence[str], cells: int, height: int, mark: str = ELLIPSIS) -> list[str]:
    """The labels written downwards side by side, ``cells`` wide each, ending on the last of ``height`` lines."""
    columns = []
    for label in labels:
        column = clusters(label)
        columns.append(column if len(column) <= height else [*column[: height - 1], mark])
    tallest = max(map(len, columns), default=0)
    columns = [[" "] * (tallest - len(column)) + column for column in columns]
    return ["".join(fit(column[line], cells, "^", "?") for column in columns) for line in range(tallest)]

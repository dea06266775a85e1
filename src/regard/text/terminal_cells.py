"""Text for terminals: control characters made visible, width in cells, cropping between characters."""

from __future__ import annotations

import unicodedata

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

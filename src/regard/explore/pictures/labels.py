"""Labels cropped or padded to a width, or written vertically."""

from __future__ import annotations

from collections.abc import Sequence

from regard.text.terminal_cells import ELLIPSIS, clusters, crop, width


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

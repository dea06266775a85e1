"""A table of text, for a screen and for a document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from regard.explore.labels import fit
from regard.text.cells import visible, width


@dataclass(frozen=True)
class Table:
    """Cells under headings, which may have several lines; ``notes``: what must be known to read it."""

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def markdown(self) -> str:
        """For a document; all but the first column stand to the right."""
        rule = "|" + "|".join(" --: " if column else " --- " for column in range(len(self.headings))) + "|"
        lines = [_marked(self.headings), rule, *map(_marked, self.rows)]
        return "\n\n".join(["\n".join(lines), *self.notes]) + "\n"

    def terminal(self) -> str:
        """For a screen."""
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


def _marked(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"

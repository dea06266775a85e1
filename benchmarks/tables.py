"""Rows of results as Markdown tables."""

from __future__ import annotations

from typing import Any


def cell(value: Any, score: bool = False) -> str:
    """A value as the text of a table's cell; a score has two decimals."""
    if isinstance(value, float):
        if score:
            return f"{value:.2f}"
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value).replace("|", "\\|").replace("\n", " ")


def grid(rows: list[dict[str, Any]]) -> list[str]:
    """Flat rows as a Markdown table; numbers stand to the right."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    numeric = {n for n in names if all(isinstance(row.get(n, 0), int | float) for row in rows)}
    lines = ["| " + " | ".join(names) + " |", "|" + "|".join(" --: " if n in numeric else " --- " for n in names) + "|"]
    for row in rows:
        lines.append("| " + " | ".join(cell(row.get(name, ""), " beam " in name) for name in names) + " |")
    return lines

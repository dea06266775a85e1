"""Rows of results as Markdown tables."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]


def cell(value: Any) -> str:
    """A value as the text of a table's cell."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:g}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value).replace("|", "\\|").replace("\n", " ")


def grid(rows: list[Row]) -> list[str]:
    """Flat rows as a Markdown table; numbers stand to the right."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    numeric = {n for n in names if all(isinstance(row.get(n, 0), int | float) for row in rows)}
    lines = ["| " + " | ".join(names) + " |", "|" + "|".join(" --: " if n in numeric else " --- " for n in names) + "|"]
    return lines + ["| " + " | ".join(cell(row.get(name, "")) for name in names) + " |" for row in rows]


def pivot(rows: list[Row], down: str, across: str, value: str) -> list[Row]:
    """A row for each ``down``, a column for each ``across``, in the order in which they come."""
    table: dict[Any, Row] = {}
    for row in rows:
        table.setdefault(row[down], {down: row[down]})[row[across]] = row.get(value, "")
    return list(table.values())

"""Rows of results as Markdown tables."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

Row = dict[str, Any]
NUMBER = re.compile(r"(?<![\d·])\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?(?![\d·])")
"""A number in a cell; that of a head, 2·1, is a name."""


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


def merged(tables: Iterable[list[Row]], *names: str) -> list[Row]:
    """The tables of several machines as one: rows with equal ``names`` are one row, each other cell a span."""
    found: dict[tuple[str, ...], dict[str, list[Any]]] = {}
    for row in (row for table in tables for row in table):
        cells = found.setdefault(tuple(str(row[name]) for name in names), {})
        for name, value in row.items():
            cells.setdefault(name, []).append(value)
    return [
        {name: values[0] if name in names else span(values) for name, values in cells.items()}
        for cells in found.values()
    ]


def span(values: list[Any]) -> Any:
    """One cell of several: from the least to the largest of each number in it; of different texts all."""
    told = list(dict.fromkeys(text for text in map(cell, values) if text))
    if len(told) < 2:
        return next((value for value in values if cell(value)), "")
    between = {NUMBER.sub("#", text) for text in told}
    if len(between) > 1:
        return ", ".join(told)
    columns = zip(*(NUMBER.findall(text) for text in told), strict=True)
    ends = iter([sorted(column, key=lambda number: float(number.replace(",", ""))) for column in columns])

    def both(_: re.Match[str]) -> str:
        least, *_, most = next(ends)
        return least if least == most else f"{least}–{most}"

    return NUMBER.sub(both, told[0])

"""Runs notebooks from top to bottom, and keeps in them what their cells show; a test compares that with another run.

python scripts/notebooks.py docs/course/*.ipynb
"""

from __future__ import annotations

import ast
import io
import json
import re
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

SHOWN = {"image/svg+xml": "_repr_svg_", "text/html": "_repr_html_"}
"""How an object shows itself, beside its repr."""
NUMBER = re.compile(r"-?\d+(?:,\d{3})*(?:\.\d*)?(?:e[-+]?\d+)?")


def run(cells: list[dict[str, Any]], given: dict[str, Any] | None = None) -> Iterator[list[dict[str, Any]]]:
    """What each cell shows, as a notebook keeps it; ``given`` replaces names of the cell tagged "parameters"."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(cells, 1):
        yield show("".join(cell["source"]), names, number)
        if "parameters" in cell["metadata"].get("tags", []):
            assert set(given or {}) <= set(names)
            names |= given or {}


def show(source: str, names: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Run a cell: what it prints, and what its last line gives."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    with redirect_stdout(io.StringIO()) as printed:
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if isinstance(last, ast.Expr) else None
    text = lines(printed.getvalue())
    shown: list[dict[str, Any]] = [{"name": "stdout", "output_type": "stream", "text": text}] if text else []
    if value is not None:
        forms = {kind: getattr(value, name)() for kind, name in SHOWN.items() if hasattr(value, name)}
        data = {kind: lines(text) for kind, text in {**forms, "text/plain": repr(value)}.items()}
        shown.append({"data": data, "execution_count": number, "metadata": {}, "output_type": "execute_result"})
    return shown


def lines(text: str) -> list[str]:
    """A text as notebooks keep it."""
    return text.splitlines(keepends=True)


def texts(outputs: list[dict[str, Any]]) -> list[str]:
    """What a reader of outputs sees: of a picture its labels."""
    found = []
    for one in outputs:
        forms = one.get("data", {"text/plain": one.get("text")})
        kind = next(kind for kind in (*SHOWN, "text/plain") if kind in forms)
        text = "".join(forms[kind])
        text = " ".join(re.findall(r"<text[^>]*>([^<]*)<", text)) if kind == "image/svg+xml" else text
        found.append(" ".join(re.sub(r"<[^>]*>", " ", text).split() if kind == "text/html" else text.split()))
    return found


def differ(kept: str, now: str, share: float = 1e-3) -> bool:
    """Whether words differ, or numbers by more than a share of them and a unit of their last digit."""
    before, after = NUMBER.findall(kept), NUMBER.findall(now)
    shapes = (NUMBER.sub("#", text).replace(" ", "") for text in (kept, now))
    return len({*shapes}) > 1 or any(
        abs(float(one.replace(",", "")) - float(two.replace(",", "")))
        > max(share * abs(float(one.replace(",", ""))), 1.01 * 10.0 ** -len(one.partition("e")[0].partition(".")[2]))
        for one, two in zip(before, after, strict=True)
    )


def main(paths: list[str]) -> None:
    """Run notebooks, and write each with its outputs."""
    for path in map(Path, paths):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
        for number, (cell, outputs) in enumerate(zip(code, run(code), strict=True), 1):
            cell |= {"outputs": outputs, "execution_count": number}
        path.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

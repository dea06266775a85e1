"""Lists what is larger than comfort: files over 300 lines, functions over 40. Taste, not law: always exits 0."""

from __future__ import annotations

import ast
from pathlib import Path

FILE, FUNCTION = 300, 40


def functions(path: Path) -> list[tuple[int, str]]:
    """Length and place of every function in a file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [((node.end_lineno or node.lineno) - node.lineno + 1, f"{path}:{node.lineno} {node.name}") for node in nodes]


def main() -> None:
    """Print what exceeds either size, largest first."""
    paths = sorted(Path("src").rglob("*.py"))
    files = [(len(path.read_text(encoding="utf-8").splitlines()), str(path)) for path in paths]
    large = [found for found in files if found[0] > FILE]
    long = [found for path in paths for found in functions(path) if found[0] > FUNCTION]
    print(f"{len(large)} of {len(files)} files over {FILE} lines, {len(long)} functions over {FUNCTION}")
    for lines, what in sorted(large, reverse=True) + sorted(long, reverse=True):
        print(f"{lines:6d}  {what}")


main()

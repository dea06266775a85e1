"""The syntax trees of source files, each read and walked once."""

import ast
import gc
from functools import cache
from pathlib import Path


@cache
def tree(path: Path) -> ast.Module:
    """The tree of a file."""
    gc.disable()  # nothing of a tree is garbage, and looking for it takes longer than the reading
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    finally:
        gc.enable()


@cache
def nodes(path: Path) -> list[ast.AST]:
    """All nodes of that tree."""
    gc.disable()
    try:
        return list(ast.walk(tree(path)))
    finally:
        gc.enable()

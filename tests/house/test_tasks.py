"""A task and a family are one row each: who uses them trusts the row and the protocol, and does not branch by name."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from regard.config import FAMILIES, TASKS
from tests.house import trees

SOURCE = Path(__file__).resolve().parents[2] / "src" / "regard"
WORDS = {*TASKS, *FAMILIES}
PROTOCOLS = {"Task", "TextModel", "SingleTextModel", "TextWriter", "TargetWriter"}


@cache
def nodes() -> list[tuple[str, ast.AST]]:
    paths = sorted(SOURCE.rglob("*.py"))
    return [(str(path.relative_to(SOURCE)), node) for path in paths for node in trees.nodes(path)]


def names_words(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in WORDS


def test_no_task_is_annotated_any() -> None:
    found = [
        f"{path}:{node.lineno}"
        for path, node in nodes()
        if (isinstance(node, ast.arg) and node.arg == "task" and node.annotation is not None)
        or (isinstance(node, ast.AnnAssign) and ast.unparse(node.target) in ("task", "self.task"))
        if ast.unparse(node.annotation or ast.Constant("")) == "Any"
    ]
    assert not found


def test_no_part_of_a_task_is_any() -> None:
    found = [
        f"{node.name}.{part.name}"
        for path, node in nodes()
        if path == "tasks/protocols.py" and isinstance(node, ast.ClassDef) and node.name in PROTOCOLS
        for part in node.body
        if isinstance(part, ast.FunctionDef) and part.returns is not None and ast.unparse(part.returns) == "Any"
    ]
    assert not found


def test_comparisons_with_the_word_of_a_task_or_family_are_few() -> None:
    found = [
        f"{path}:{node.lineno} {ast.unparse(node)}"
        for path, node in nodes()
        if isinstance(node, ast.Compare | ast.MatchValue) and any(map(names_words, ast.walk(node)))
    ]
    assert len(found) <= 15, "\n".join(found)


def test_tables_by_task_or_family_stand_where_what_they_name_stands() -> None:
    """A table in a lower row would have to name modules above it, by strings that no import contract sees."""
    found = {
        path
        for path, node in nodes()
        if isinstance(node, ast.Dict) and sum(key is not None and names_words(key) for key in node.keys) > 1
    }
    of_families = {"config/families.py", "models/build.py", "models/complexity.py", "tasks/engine.py"}
    assert found <= of_families | {"tasks/__init__.py"}


def test_few_files_name_a_task() -> None:
    """Besides its own folder and its row; words that are also a family's or a command's are not told apart."""
    said = {(path, node.value) for path, node in nodes() if names_words(node) and isinstance(node, ast.Constant)}
    for task in TASKS:
        found = {path for path, word in said if word == task and not path.startswith("tasks/")}
        assert len(found) <= 8, f"{task}: {sorted(found)}"

"""Names of modules and public classes come from the field, or stand in docs/glossary.md."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.house.trees import tree

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
ROWS = 40
"""Lines of the glossary."""


def words(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]


def names() -> Iterator[tuple[Path, str]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield path, path.parent.name if path.stem.startswith("__") else path.stem
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield path, node.name


def glossary() -> str:
    return (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")


def known() -> set[str]:
    listed = (ROOT / "tests" / "house" / "field_words.txt").read_text(encoding="utf-8")
    field = {line for line in listed.splitlines() if not line.startswith("#")}
    ours = {word for row in re.findall(r"^\| ([^|]+) \|", glossary(), re.MULTILINE) for word in words(row)}
    return field | ours | {f"{word}s" for word in ours}


def test_words_of_a_name() -> None:
    assert words("KVCache") == ["kv", "cache"]
    assert words("bpe_dropout2") == ["bpe", "dropout"]
    assert words("CRFTags") == ["crf", "tags"]


def test_names_are_the_fields_or_in_the_glossary() -> None:
    allowed = known()
    unknown = {f"{path.relative_to(ROOT)}: {name}" for path, name in names() if not set(words(name)) <= allowed}
    assert not unknown, "use the field's word, or add a line to docs/glossary.md"


def test_the_glossary_is_short() -> None:
    assert len(glossary().splitlines()) <= ROWS

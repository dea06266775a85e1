"""Sentences translated by hand, every pattern: the grammar must generate the English and translate it so."""

from pathlib import Path

import pytest

from regard.runs.demo.grammar.corpus import PATTERNS

TABLE = Path(__file__).with_name("translated_by_hand.tsv").read_text(encoding="utf-8")
CASES = [line.split("\t") for line in TABLE.splitlines()[1:]]


@pytest.mark.parametrize(("pattern", "english", "german"), CASES, ids=[english for _, english, _ in CASES])
def test_translated_by_hand(found, pattern: str, english: str, german: str) -> None:
    assert found(pattern, english).target == german


def test_every_pattern_was_translated_by_hand() -> None:
    assert {pattern for pattern, _, _ in CASES} == set(PATTERNS)
    assert len(CASES) >= 60


def test_the_guide_shows_every_pattern() -> None:
    guide = (Path(__file__).parents[4] / "docs" / "demo-corpus.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in guide.partition("## Patterns")[2].splitlines() if "|" in line]
    assert [row[0] for row in rows[2:]] == list(PATTERNS)
    assert all(row in CASES for row in rows[2:])
    assert f"| {len(PATTERNS)}, of them " in guide

"""``regard align``: a line of links for each pair, and heads that are chosen by files."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from regard.config import TASKS, recipe_from
from regard.data.alignment.links import Links
from regard.tasks.translation.align import LEAST, AlignmentHead, Heads
from tests.cli.fakes import Unaware, answering


class Aligns(Unaware):
    """Links the words of both sides in order, from that of its layer on."""

    info = TASKS["translation"]
    assets = SimpleNamespace(languages=None)
    direction = ("und", "und")

    def __init__(self, *settings: str) -> None:
        self.first = int(settings == ('decoding.alignment_heads=["1 predicts"]',))
        decoding = {"alignment_heads": ["1 predicts"]} if settings else {}
        self.recipe = recipe_from({"task": "translation", "decoding": decoding})

    def between(self, from_: str | None, to: str | None) -> "Aligns":
        return self

    def with_settings(self, settings: list[str]) -> "Aligns":
        return Aligns(*settings)

    def align(self, texts: list[str], translations: list[str], first: int) -> list[Links]:
        pairs = [(one.split(), two.split()) for one, two in zip(texts, translations, strict=True)]
        return [frozenset((n, n) for n in range(self.first, min(map(len, pair)))) for pair in pairs]


align = answering("align", Aligns)


def test_a_line_for_each_pair(align: Any, tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_text("A B\n\nC\n")
    done = align("--target", tmp_path / "out.txt", stdin=b"a b c\nd\ne f\n").succeeds()
    assert done.out == "0-0 1-1\n\n0-0\n"
    assert "align --tune finds better heads" in done.err
    assert align(stdin=b"a b\tA B\n\t\n").succeeds().out == "0-0 1-1\n\n"


@pytest.mark.parametrize("line", ["a b", "a\tb\tc", ""])
def test_a_line_without_its_translation_is_named(align: Any, line: str) -> None:
    done = align(stdin=f"a\tb\n{line}\n".encode())
    assert done.code != 0
    assert "line 2" in done.err


def test_files_that_are_long_enough_choose_a_head(align: Any, tmp_path: Path, monkeypatch: Any) -> None:
    asked = []

    def choose(task: Any, texts: list[str], translations: list[str]) -> tuple[Heads, float, float]:
        asked.append((len(texts), len(translations)))
        return (AlignmentHead(1),), 0.5, 0.4

    monkeypatch.setattr("regard.tasks.translation.align.choose_heads", choose)
    for count in (LEAST - 1, LEAST):
        (tmp_path / "a").write_text("a b\n" * count)
        done = align("--input", tmp_path / "a", "--target", tmp_path / "a", "--processes", 1).succeeds()
        assert done.out == ("0-0 1-1\n" if count < LEAST else "1-1\n") * count
    assert asked == [(LEAST, LEAST)]
    (tmp_path / "b").write_text("a b\n" * (LEAST + 1))
    done = align("--input", tmp_path / "a", "--target", tmp_path / "b")
    assert (done.code, "has 201 lines" in done.err) == (2, True)


def test_tuning_needs_files(align: Any, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a\n")
    align("--tune", "--target", tmp_path / "a").refuses("--tune: needs both files")
    align("--tune", "--input", tmp_path / "a").refuses("--tune: needs both files")

"""The two models that come with Regard: small, whole, and as good as their cards say."""

import re
from pathlib import Path

import pytest

from regard.inspection import SHIPPED
from regard.inspection.folders.models import Models
from regard.runs.demo import NAME
from regard.runs.demo.without import ABSENT, read
from regard.tasks.model_folder import load

MOST = 3_000_000
SLACK = 2
"""Sentences of those tried that another processor may write otherwise."""


def test_they_are_small() -> None:
    assert sum(path.stat().st_size for path in SHIPPED[0].parent.rglob("*") if path.is_file()) <= MOST


@pytest.mark.parametrize("folder", SHIPPED, ids=[folder.name for folder in SHIPPED])
def test_they_translate_as_their_cards_say(folder: Path) -> None:
    (said,) = re.findall(r"`corpus/`, (\d+)% exactly", (folder / "model" / "card.md").read_text())
    sources, targets = ((folder / "corpus" / f"test.{code}").read_text().splitlines() for code in ("en", "de"))
    assert len(sources) == 100
    wrong = sum(a != b for a, b in zip(load(folder, "cpu").translate(sources, beam=1), targets, strict=True))
    assert 100 - wrong >= int(said) - SLACK


def test_their_states() -> None:
    """Both read the grammar's sentences with the same vocabulary; the Transformer has several heads in each layer."""
    transformer, recurrent = Models(SHIPPED).states()
    assert [(one["ready"], one["shipped"]) for one in (transformer, recurrent)] == [(True, True)] * 2
    assert transformer["walk"]["fits"]
    assert recurrent["classic"]
    assert (transformer["without"], recurrent["without"]) == (True, False)
    assert (measured := read(SHIPPED[0] / NAME))
    assert {*measured.models} == {"whole", *ABSENT}
    assert all(heads > 1 for _, heads in transformer["kinds"].values())
    assert recurrent["kinds"] == {"cross": [1, 1]}
    assert transformer["examples"] == recurrent["examples"] != []
    one, other = ((folder / "model" / "tokenizer.json").read_bytes() for folder in SHIPPED)
    assert one == other

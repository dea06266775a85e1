"""BPE-dropout is the default where it helps, and refused where there are no merges to leave out."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from regard.config import Recipe, recipe_from
from regard.system.errors import UsageError
from regard.tasks.text import preparation
from regard.tasks.text.preparation import FEW, learned_tokenizer, tagged_sides, uses_bpe_dropout
from tests.refusals import refused


def recipe(**text: Any) -> Recipe:
    return recipe_from({"task": "tagging", "text": text})


def test_few_texts_in_pieces_are_drawn_anew() -> None:
    assert uses_bpe_dropout(recipe(), 1000, None) == {"text.bpe_dropout": 0.1}
    begun: Any = object()
    for asked in ((recipe(), FEW, None), (recipe(units="characters"), 1000, None), (recipe(), 1000, begun)):
        assert uses_bpe_dropout(*asked) == {}


def test_a_foreign_vocabulary_has_no_merges_to_leave_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without dropout it is what lies there."""

    class Prepared:
        text, labels, folder = object(), object(), "data"

    prepared: Any = Prepared()
    assert tagged_sides(prepared, recipe()) == (prepared.text, prepared.labels)
    found = SimpleNamespace(load=lambda folder: SimpleNamespace(tokenizer=object()))
    monkeypatch.setattr(preparation, "TextAssets", found)
    with refused(UsageError, "text.bpe_dropout"):
        tagged_sides(prepared, recipe(bpe_dropout=0.1))


def test_a_foreign_vocabulary_is_refused_before_any_text_is_read() -> None:
    def texts() -> Iterator[str]:
        raise AssertionError("read")
        yield ""

    begun: Any = SimpleNamespace(tokenizer=object())
    with refused(UsageError, "text.bpe_dropout"):
        learned_tokenizer(recipe(bpe_dropout=0.1).text, texts(), begun)
    with pytest.raises(AssertionError):
        learned_tokenizer(recipe().text, texts(), begun)

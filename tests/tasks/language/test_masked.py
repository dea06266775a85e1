"""Gaps filled: what is guessed is what the forward pass says, wherever a gap stands and however long the text is."""

import numpy as np
import pytest
import torch

from regard.system.errors import RegardError, UsageError
from regard.tasks.assets import TextAssets
from regard.tasks.language.masked import MaskedLm
from regard.text.tokenizers.tokenizer import learn
from tests.models.small_models import texts
from tests.refusals import refused
from tests.tasks.small_tasks import filler


def made(max_tokens: int = 40) -> MaskedLm:
    task = filler()
    data = task.recipe.data.model_copy(update={"max_tokens": max_tokens})
    return MaskedLm(task.recipe.model_copy(update={"data": data}), task.assets, task.model.double())


def expected(model: MaskedLm, ids: list[int], gap: int) -> dict[int, float]:
    """The probability of every piece at a gap, by the forward pass of the whole text."""
    tokenizer = model.assets.tokenizer
    framed = np.array([*tokenizer.begin, *ids, tokenizer.end])
    with torch.no_grad():
        hidden_TD = model.model(texts([framed]))
        odds = model.model.head.scores(hidden_TD)[len(tokenizer.begin) + gap].softmax(0)
    return {int(id): float(odds[id]) for id in tokenizer.ordinary}


def test_a_gap_is_filled_by_what_the_model_says() -> None:
    model = made()
    tokenizer = model.assets.tokenizer
    (found,) = model.fill("the cat [MASK] on the mat", k=7)
    before, behind = tokenizer.ids_batch(["the cat", " on the mat"])
    ids = [*before.tolist(), tokenizer.mask, *behind.tolist()]
    odds = expected(model, ids, len(before))
    best = sorted(odds, key=lambda id: (-odds[id], id))[:7]
    assert [one.piece for one in found] == [tokenizer.piece(id) for id in best]
    assert [one.probability for one in found] == pytest.approx([odds[id] for id in best])
    for one, id in zip(found, best, strict=True):
        assert one.text == tokenizer.decode([*before.tolist(), id, *behind.tolist()])


def test_several_gaps_are_guessed_with_the_others_open() -> None:
    model = made()
    tokenizer = model.assets.tokenizer
    first, second = model.fill("[MASK] cat sat on [MASK]", k=2)
    (middle,) = tokenizer.ids_batch([" cat sat on"])
    ids = [tokenizer.mask, *middle.tolist(), tokenizer.mask]
    for gap, found in ((0, first), (len(ids) - 1, second)):
        odds = expected(model, ids, gap)
        assert found[0].probability == pytest.approx(max(odds.values()))
    assert first[0].text == second[0].text
    assert first[1].text[-1] == second[0].text[-1]


def test_texts_without_a_gap_and_empty_ones_and_no_symbol_is_ever_guessed() -> None:
    model = made()
    assert [len(gaps) for gaps in model.fill(["no gap", "", "[MASK]", "two [MASK][MASK]"], k=1)] == [0, 0, 1, 2]
    assert model.fill([]) == []
    assert model.fill("[mask] [ MASK ] </s>") == []  # anything else stays text
    (found,) = model.fill("[MASK]", k=10_000)
    assert len(found) == len(model.assets.tokenizer.ordinary)
    assert not {one.piece for one in found} & {"</s>", "<unk>", "[CLS]", "[MASK]"}


def test_a_long_text_is_read_in_windows_and_a_gap_where_most_is_around_it() -> None:
    model = made(max_tokens=12)
    tokenizer, words = model.assets.tokenizer, "the cat sat on the mat and the dog sat on the log the cat sat"
    text = f"{words} [MASK] {words}"
    (found,) = model.fill(text, k=1)
    ids = [*tokenizer.ids_batch([words])[0].tolist(), tokenizer.mask, *tokenizer.ids_batch([f" {words}"])[0].tolist()]
    gap = ids.index(tokenizer.mask)
    odds = []
    for start in model.frame.starts(len(ids)):
        if start <= gap < start + model.frame.room:
            window = ids[start : start + model.frame.room]
            odds.append((abs(start + model.frame.room / 2 - gap), expected(model, window, gap - start)))
    assert found[0].probability == pytest.approx(max(min(odds, key=lambda one: one[0])[1].values()))
    assert found[0].text.startswith(words)
    assert found[0].text.endswith(words)


def test_what_cannot_be_asked_is_refused() -> None:
    with refused(UsageError, "k", "0"):
        made().fill("a [MASK]", k=0)
    with refused(UsageError, "texts[1]", "int"):
        made().fill(["a", 3])
    with refused(RegardError, "tokenizer.json", "[MASK]"):
        MaskedLm(made().recipe, TextAssets(learn(["a"], 280)), made().model)

"""Inputs of every task: tokens, words, what is forced and what is refused."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from regard.inspection.forward.inputs import image_inputs, piece, text_inputs, visible
from regard.inspection.forward.record import record_attention
from regard.models.captured_attention import image_weights
from regard.system.errors import RegardError, UsageError
from regard.text.tokenizers.tokenizer import learn
from tests.refusals import refused
from tests.tasks import small_tasks as small
from tests.tasks.small_tasks import PIXELS, SOURCE, SPANNED, TARGET, translator

TEXT = "a cat\n\tand\u200b a dog\x07"


SHOWN = {"▁cat": "▁cat", "für 猫": "für 猫", "\n": "<0x0A>", "a\x00b": "a<0x00>b", "\u200b": "<0x200B>", "": ""}


@pytest.mark.parametrize(("given", "shown"), [*SHOWN.items(), ("\ud800", "<0xD800>")])
def test_what_is_not_seen_is_told_by_its_number(given: str, shown: str) -> None:
    assert visible(given) == shown


def test_pieces_of_any_tokenizer_can_be_seen() -> None:
    raw: Any = SimpleNamespace(piece=TEXT.__getitem__)  # it names its pieces as they are, as those of others may
    shown = [piece(raw, id) for id in range(len(TEXT))]
    assert all(one.isprintable() for one in shown)
    assert [one for one in shown if len(one) > 1] == ["<0x0A>", "<0x09>", "<0x200B>", "<0x07>"]
    ours = learn([TEXT] * 3, 300)
    shown = [piece(ours, id) for id in ours.encode(TEXT).ids]
    assert all(one.isprintable() for one in shown)
    wanted = TEXT.replace(" ", "▁")
    for hidden in "\n\t\u200b\x07":
        wanted = wanted.replace(hidden, f"<0x{ord(hidden):02X}>")
    assert "".join(shown) == wanted


def test_a_translation_by_its_pieces_is_that_translation() -> None:
    task = translator()
    ids = task.vocabularies.target.encode(TARGET).ids
    by_text = text_inputs(task, SOURCE, TARGET)
    for given in (ids, (*ids, task.vocabularies.target.end)):
        by_pieces = text_inputs(task, SOURCE, given)
        assert by_pieces.target_text == TARGET
        for side in ("source", "target", "written"):
            assert getattr(by_pieces, side) == getattr(by_text, side)
        assert torch.equal(by_pieces.run(), by_text.run())
    assert by_text.written_ids == (*ids, 0)
    assert by_text.read_ids == (*task.vocabularies.source.encode(SOURCE).ids, 0)


def test_pieces_need_not_be_those_of_their_text() -> None:
    task = translator()
    side = task.vocabularies.target
    bytewise = [id for character in "weil" for id in side.encode(character).ids]
    assert bytewise != side.encode("weil").ids
    seen = text_inputs(task, SOURCE, bytewise)
    assert [token.text for token in seen.target] == ["<s>", *"weil"]
    assert [(token.start, token.end) for token in seen.written] == [(0, 1), (1, 2), (2, 3), (3, 4), (4, 4)]
    assert seen.target_text == "weil"
    weights = record_attention(seen).weights
    assert weights["cross"][0].shape == (3, 5, len(seen.source))
    seen = text_inputs(task, SOURCE, ())  # nothing is written yet
    assert (len(seen.target), len(seen.written), seen.written_ids, seen.target_text) == (1, 1, (0,), "")


def test_what_the_model_writes_itself_is_what_its_task_writes() -> None:
    task = translator()
    assert text_inputs(task, SOURCE).target_text == task.translate(SOURCE, beam=1)
    spans = small.spanner()
    (written,) = spans.nbest([SPANNED], beam=1)[0]
    assert text_inputs(spans, SPANNED).written_ids[:-1] == written.tokens
    assert text_inputs(spans, SPANNED).target == text_inputs(spans, SPANNED, written.tokens).target


def test_a_language_model_goes_on_by_pieces() -> None:
    task = small.speaker()
    tokenizer = task.assets.tokenizer
    whole = text_inputs(task, "The animal")
    begun = text_inputs(task, "The", tokenizer.encode(" animal").ids)
    assert begun.source == whole.source == begun.written
    assert begun.source_text == whole.source_text == "The animal"
    assert begun.read_ids == begun.written_ids == (tokenizer.end, *tokenizer.encode("The animal").ids)
    assert torch.equal(begun.run(), whole.run())


@pytest.mark.parametrize(
    ("make", "text", "target", "refusal"),
    [
        (translator, SOURCE, [1], (UsageError, "branch", "1")),
        (translator, SOURCE, [5, 0, 5], (UsageError, "branch", "0")),
        (translator, SOURCE, [10**6], (UsageError, "branch")),
        (translator, SOURCE, [-1], (UsageError, "branch")),
        (translator, SOURCE, [70] * 60, (RegardError, "branch", "60")),
        (translator, SOURCE, "weil " * 50, (RegardError, "target")),
        (translator, "weil " * 50, (), (RegardError, "text")),
        (small.spanner, SPANNED, "<extra_0> " + "weil " * 50, (RegardError, "target")),
        (small.spanner, SPANNED, [2], (UsageError, "branch", "2")),
        (small.speaker, "The", [70] * 43, (RegardError, "text")),
        (small.speaker, "The", "animal", (UsageError, "--target")),
        (small.classifier, SOURCE, [70], (UsageError, "--target")),
        (small.classifier, "  ", None, (RegardError, "text")),
        (small.filler, SOURCE, "a", (UsageError, "--target")),
        (small.tagger, SOURCE * 2000, None, (RegardError, "text", "139")),  # tokens of its prefix
        (translator, SOURCE * 2000, (), (RegardError, "text", "139")),
    ],
)
def test_what_cannot_be_seen(make: Any, text: str, target: Any, refusal: Any) -> None:
    with refused(*refusal):
        text_inputs(make(), text, target)


def test_an_image_is_its_patches() -> None:
    task = small.viewer()
    seen = image_inputs(task, np.array(PIXELS))
    assert [token.text for token in seen.source] == ["class", "1,1", "1,2", "2,1", "2,2", "3,1", "3,2"]
    assert [token.start == token.end for token in seen.source] == [True] + [False] * 6
    assert seen.source == seen.target == seen.written
    found = record_attention(seen).weights["encoder"]
    (batch,) = task.batches(task.images([np.array(PIXELS)]))
    for layer, (weights,) in zip(found, image_weights(task.model, batch), strict=True):
        np.testing.assert_array_equal(layer, weights.numpy())
    with refused(RegardError, "image", "6 x 4 x 1"):
        image_inputs(task, np.array(PIXELS[1:]))

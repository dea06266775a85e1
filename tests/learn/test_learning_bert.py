"""Encoder-only models learn: tags that tell a sequence backwards, and words that are hidden in it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from regard.config import BertSection, Masking
from regard.data.batches.masking import MaskingSymbols, mask_tokens
from regard.models.bert import Bert
from regard.models.build import bert, tags, words
from regard.nn.dropout import reseed
from regard.system.keys import generator, key
from tests.learn.reversals import PIECES, drawn, right
from tests.models.small_models import texts

MASK = 1
SIZES = {
    "layers": 2,
    "d_model": 32,
    "d_ff": 64,
    "heads": 2,
    "dropout": 0.0,
    "max_positions": 16,
    "norm_place": "pre",
    "embedding_norm": False,
    "segments": 0,
}


def trained(model: Bert, steps: int, batches) -> Bert:
    """``batches(step)``: what is read, and what is to be said at each place, -100 for nothing."""
    optimiser = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = 5e-3 * min(1.0, (step + 1) / 30) * (1 - step / steps)
        reseed(key(1, "dropout", step))
        read, wanted = batches(step)
        F.cross_entropy(scored(model, read), torch.from_numpy(np.concatenate(wanted))).backward()
        optimiser.step()
        optimiser.zero_grad()
    return model.eval()


def scored(model: Bert, read: list[np.ndarray]) -> torch.Tensor:
    said = model(texts(read))
    return model.head.scores(said) if hasattr(model.head, "scores") else said


def backwards(read: list[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    return read, [ids[::-1].copy() for ids in read]


@pytest.mark.parametrize(
    "choices",
    [{}, {"norm_place": "post", "embedding_norm": True, "segments": 2}, {"positions": "relative", "norm": "batch"}],
    ids=["pre", "bert", "relative"],
)
@pytest.mark.one_of(3, minutes=0.1)
def test_tags_of_a_small_set_are_learned_by_heart(choices: dict) -> None:
    section = BertSection(**{**SIZES, **choices})
    examples = drawn(24, 0)
    model = trained(bert(section, PIECES, tags(section, PIECES), key=5), 250, lambda step: backwards(examples))
    with torch.no_grad():
        assert right(scored(model, examples), examples) == 1.0


@pytest.mark.long(minutes=1.0)
def test_tags_that_reverse_are_learned() -> None:
    section = BertSection(**SIZES)
    model = trained(
        bert(section, PIECES, tags(section, PIECES), key=5), 1500, lambda step: backwards(drawn(64, 1, step))
    )
    with torch.no_grad():
        assert right(scored(model, drawn(300, 2)), drawn(300, 2)) > 0.9


def test_hidden_words_are_learned() -> None:
    """A sequence that counts up says what is missing in it."""
    section = BertSection(**SIZES)
    symbols, share = MaskingSymbols(MASK, np.arange(2, PIECES)), Masking(share=0.3, whole_words=False)

    def batch(*numbers: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
        random = generator(1, "hidden", *numbers)
        rows = [2 + (random.integers(0, 12) + np.arange(8)) % 12 for _ in range(24)]
        ids, every = np.concatenate(rows), np.ones(24 * 8, np.bool_)
        read_T, hidden_T = mask_tokens(ids, every, every, symbols, share, random)
        return np.split(read_T, 24), [np.where(hidden_T, ids, -100)]

    model = trained(bert(section, PIECES, words(section), key=5), 300, lambda step: batch(1, step))
    read, (wanted,) = batch(2)
    with torch.no_grad():
        said = scored(model, read).argmax(1).numpy()
    assert np.mean(said[wanted >= 0] == wanted[wanted >= 0]) > 0.9

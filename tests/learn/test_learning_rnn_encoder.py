"""Recurrent readers learn: tags that tell a sequence backwards, and where in a text to look for its class."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from regard.config import RnnEncoderSection
from regard.models.build import classes, rnn_encoder, tags
from regard.models.captured_attention import capture_layers
from regard.models.rnn import RecurrentEncoder
from regard.nn.dropout import reseed
from regard.system.keys import generator, key
from tests.learn.reversals import PIECES, drawn, right
from tests.models.small_models import texts

MARK = 1
SIZES = {"d_model": 48, "layers": 2, "dropout": 0.0}


def trained(model: RecurrentEncoder, steps: int, batches) -> RecurrentEncoder:
    """``batches(step)``: what is read, and what is to be said of it."""
    optimiser = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = 1e-2 * min(1.0, (step + 1) / 30) * (1 - step / steps)
        reseed(key(1, "dropout", step))
        read, wanted = batches(step)
        F.cross_entropy(model(texts(read)), torch.from_numpy(wanted)).backward()
        optimiser.step()
        optimiser.zero_grad()
    return model.eval()


def backwards(read: list[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
    return read, np.concatenate([ids[::-1] for ids in read])


@pytest.mark.parametrize("cell", ["elman", "gru", "lstm"])
@pytest.mark.one_of(3, minutes=0.1)
def test_tags_of_a_small_set_are_learned_by_heart(cell: str) -> None:
    section, examples = RnnEncoderSection(cell=cell, **SIZES), drawn(24, 0)
    model = rnn_encoder(section, PIECES, tags(section, PIECES), key=5)
    trained(model, 200, lambda step: backwards(examples))
    with torch.no_grad():
        assert right(model(texts(examples)), examples) == 1.0


@pytest.mark.long(minutes=1.0)
def test_tags_that_reverse_are_learned() -> None:
    section = RnnEncoderSection(**{**SIZES, "d_model": 96})
    model = rnn_encoder(section, PIECES, tags(section, PIECES), key=5)
    trained(model, 1500, lambda step: backwards(drawn(64, 1, step)))
    with torch.no_grad():
        assert right(model(texts(drawn(300, 2))), drawn(300, 2)) > 0.9


def marked(*numbers: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Texts of a dozen words; the class is the word behind the mark."""
    random = generator(1, "marked", *numbers)
    read, wanted = random.integers(2, PIECES, (48, 12)), random.integers(2, PIECES, 48)
    places = random.integers(0, 11, 48)
    read[np.arange(48), places], read[np.arange(48), places + 1] = MARK, wanted
    return list(read), wanted


def test_attention_learns_where_to_look() -> None:
    section = RnnEncoderSection(d_model=32, pool="attention", dropout=0.0)
    model = rnn_encoder(section, PIECES, classes(section, PIECES), key=5)
    trained(model, 250, lambda step: marked(1, step))
    read, wanted = marked(2)
    with torch.no_grad():
        assert float((model(texts(read)).argmax(1).numpy() == wanted).mean()) > 0.95
    (weights,) = capture_layers(model, "rnn-encoder", lambda: model(texts(read)))["pool"]
    for ids, weight_HQK in zip(read, weights, strict=True):
        assert int(weight_HQK[0, 0].argmax()) - int((ids == MARK).argmax()) in (0, 1, 2)

"""Readers learn: tags that tell a sequence backwards, hidden words, and where in a text to look for its class."""

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from regard.config import BertSection, Masking, RnnEncoderSection
from regard.data.batches.language_modelling import MaskingSymbols, mask_tokens
from regard.models import build
from regard.models.captured_attention import capture_layers
from regard.system.keys import generator
from tests.learn.reversals import MARK, PIECES, drawn, fit, right_tags
from tests.models.small_models import texts

BERT: dict[str, Any] = {"layers": 2, "d_model": 32, "d_ff": 64, "heads": 2, "dropout": 0.0, "max_positions": 16}
BERT |= {"norm_place": "pre", "embedding_norm": False, "segments": 0}
RNN: dict[str, Any] = {"d_model": 48, "layers": 2, "dropout": 0.0}


def scored(model: Any, read: list[np.ndarray]) -> torch.Tensor:
    said = model(texts(read))
    return model.head.scores(said) if hasattr(model.head, "scores") else said


def loss(model: Any, read: list[np.ndarray], wanted: np.ndarray) -> torch.Tensor:
    """Of what is to be said, at each place or of each text; -100 for nothing."""
    return F.cross_entropy(scored(model, read), torch.from_numpy(wanted))


def tagger(section: BertSection | RnnEncoderSection) -> Any:
    return build.reader(section, PIECES, build.tags(section, PIECES), 5)


def backwards(read: list[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
    return read, np.concatenate([ids[::-1] for ids in read])


@pytest.mark.long(minutes=0.4)
@pytest.mark.parametrize(
    ("section", "steps", "rate"),
    [
        (BertSection(**BERT), 250, 5e-3),
        (RnnEncoderSection(cell="elman", **RNN), 200, 1e-2),
        (BertSection(**{**BERT, "norm_place": "post", "embedding_norm": True, "segments": 2}), 250, 5e-3),
        (BertSection(**{**BERT, "positions": "relative", "norm": "batch"}), 250, 5e-3),
        (RnnEncoderSection(cell="gru", **RNN), 200, 1e-2),
        (RnnEncoderSection(cell="lstm", **RNN), 200, 1e-2),
    ],
    ids=["pre", "elman", "bert", "relative", "gru", "lstm"],
)
@pytest.mark.one_of(6, minutes=0.1)
def test_tags_of_a_small_set_are_learned_by_heart(section, steps: int, rate: float) -> None:
    model, examples = tagger(section), drawn(24, 0)
    fit(model, steps, lambda step: loss(model, *backwards(examples)), rate)
    with torch.no_grad():
        assert right_tags(scored(model, examples), examples) == 1.0


@pytest.mark.long(minutes=1.0)
@pytest.mark.parametrize(
    ("section", "rate"),
    [(BertSection(**BERT), 5e-3), (RnnEncoderSection(**{**RNN, "d_model": 96}), 1e-2)],
    ids=["bert", "rnn"],
)
def test_tags_that_reverse_are_learned(section, rate: float) -> None:
    model, unseen = tagger(section), drawn(300, 2)
    fit(model, 1500, lambda step: loss(model, *backwards(drawn(64, 1, step))), rate)
    with torch.no_grad():
        assert right_tags(scored(model, unseen), unseen) > 0.9


@pytest.mark.long(minutes=0.4)
def test_hidden_words_are_learned() -> None:
    """A sequence that counts up says what is missing in it."""
    section = BertSection(**BERT)
    symbols, share = MaskingSymbols(MARK, np.arange(2, PIECES)), Masking(share=0.3, whole_words=False)

    def batch(*numbers: int) -> tuple[list[np.ndarray], np.ndarray]:
        random = generator(1, "hidden", *numbers)
        rows = [2 + (random.integers(0, 12) + np.arange(8)) % 12 for _ in range(24)]
        ids, every = np.concatenate(rows), np.ones(24 * 8, np.bool_)
        read_T, hidden_T = mask_tokens(ids, every, every, symbols, share, random)
        return np.split(read_T, 24), np.where(hidden_T, ids, -100)

    model = build.bert(section, PIECES, build.words(section), key=5)
    fit(model, 300, lambda step: loss(model, *batch(1, step)))
    read, wanted = batch(2)
    with torch.no_grad():
        said = scored(model, read).argmax(1).numpy()
    assert np.mean(said[wanted >= 0] == wanted[wanted >= 0]) > 0.9


def marked(*numbers: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Texts of a dozen words; the class is the word behind the mark."""
    random = generator(1, "marked", *numbers)
    read, wanted = random.integers(2, PIECES, (48, 12)), random.integers(2, PIECES, 48)
    places = random.integers(0, 11, 48)
    read[np.arange(48), places], read[np.arange(48), places + 1] = MARK, wanted
    return list(read), wanted


@pytest.mark.long(minutes=0.1)
def test_attention_learns_where_to_look() -> None:
    section = RnnEncoderSection(d_model=32, pool="attention", dropout=0.0)
    model = build.rnn_encoder(section, PIECES, build.classes(section, PIECES), key=5)
    fit(model, 250, lambda step: loss(model, *marked(1, step)), 1e-2)
    read, wanted = marked(2)
    with torch.no_grad():
        assert float((model(texts(read)).argmax(1).numpy() == wanted).mean()) > 0.95
    (weights,) = capture_layers(model, "rnn-encoder", lambda: model(texts(read)))["pool"]
    for ids, weight_HQK in zip(read, weights, strict=True):
        assert int(weight_HQK[0, 0].argmax()) - int((ids == MARK).argmax()) in (0, 1, 2)

"""Recurrent encoder-decoders beside the model's own step, row by row, in every combination of words."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch

from regard.fast.weights import WeightFile
from regard.models.store import named_tensors
from regard.system.errors import RegardError
from tests.fast.beside import MOST, Beside
from tests.fast.engines import rnn, texts, writing
from tests.laws.families import SOURCES, EncoderDecoder, held
from tests.models import small_models as small
from tests.models.small_models import PIECES, assert_near, sentences
from tests.refusals import refused

ATTENDING = ["dot", "scaled", "general", "additive", "cosine"]
PLAIN: dict[str, Any] = {"cell": "lstm", "score": "additive", "input_feeding": True}


def beside(**choices: Any) -> Beside:
    return Beside(EncoderDecoder("rnn", choices))


@pytest.mark.one_of(6)
@pytest.mark.parametrize("cell", ["elman", "gru", "lstm"])
@pytest.mark.parametrize("score", ["none", *ATTENDING])
@pytest.mark.parametrize("feeding", [False, True])
def test_every_step_of_a_cell_with_a_score_is_that_of_the_model(cell: str, score: str, feeding: bool) -> None:
    if score != "none" or not feeding:
        beside(cell=cell, score=score, input_feeding=feeding).whole_search()


@held("rnn", rnn=4)
def test_every_step_is_that_of_the_model(family: EncoderDecoder) -> None:
    Beside(family).whole_search()


def test_many_steps_and_sentences_outgrow_every_room() -> None:
    steps = beside(**PLAIN)
    steps.start(sentences([9, 30]))
    steps.step(np.full(2, PIECES))
    for now in range(20):
        rows = len(steps.states[1].sentence_N)
        steps.select([0, 0, *range(1, min(rows, 20))] if now % 3 == 0 else [*range(now % 2, rows)])
        steps.admit(sentences([now + 3], seed=now))
        steps.read(len(steps.states[1].sentence_N))


@pytest.mark.parametrize("score", ["none", "dot", "additive"])
def test_a_source_without_tokens_has_no_memory(score: str) -> None:
    steps = beside(score=score)
    for sources in ([*sentences([4]), np.zeros(0, np.int64)], [np.zeros(0, np.int64)] * 2):
        steps.start(sources)
        steps.step(np.full(2, PIECES))
        steps.read(2)


@pytest.mark.parametrize("score", ["additive", "cosine"])
def test_rows_have_the_bits_that_they_have_alone(score: str) -> None:
    """Also where the additive score makes the keys of a few rows at a time."""
    _, fast = writing(EncoderDecoder("rnn", {**PLAIN, "score": score}))
    sources = sentences(range(1, 22))
    state, among = fast.step(fast.start(sources), np.full(len(sources), PIECES))
    _, among = fast.step(state, np.arange(len(sources)))
    for number, source in enumerate(sources):
        state, _ = fast.step(fast.start([source]), np.array([PIECES]))
        _, alone = fast.step(state, np.array([number]))
        assert alone.all()[0].tobytes() == among.all()[number].tobytes()


@pytest.mark.parametrize("two_way", [False, True])
def test_what_is_read_is_the_encoders(two_way: bool) -> None:
    model, fast = writing(EncoderDecoder("rnn", {**PLAIN, "two_way": two_way}))
    given = small.texts(SOURCES)
    with torch.no_grad():
        assert_near(fast.read(texts(given)), model.encoder(given).memory_SD, MOST)


def test_weights_that_are_not_numbers_are_seen() -> None:
    model = small.rnn(dtype=torch.float32, **PLAIN)
    with torch.no_grad():
        model.decoder.cross.output.bias[0] = torch.nan
    fast = rnn(model, PLAIN)
    assert np.isnan(fast.step(fast.start(SOURCES[:1]), np.array([PIECES]))[1].best(3)[1]).all()


@pytest.mark.parametrize(
    "name", ["decoder.bridge.project.bias", "decoder.cross.score.direction", "encoder.stack.layers.1.kernel.bias_hh_l0"]
)
@pytest.mark.parametrize("wrong", ["none", "shape"])
def test_a_file_that_lacks_a_weight_or_has_a_wrong_one_is_refused(name: str, wrong: str, tmp_path: Path) -> None:
    from regard.fast.recurrent.build import rnn

    named = named_tensors(small.rnn(dtype=torch.float32, **PLAIN))
    weights = {each: tensor.detach().numpy() for each, tensor in named.items()}
    weights[name] = weights[name][:-1]
    if wrong == "none":
        del weights[name]
    safetensors.numpy.save_file(weights, path := tmp_path / "w")
    with refused(RegardError, path, name):
        rnn(small.rnn_section(**PLAIN), PIECES, PIECES, WeightFile(path).take)

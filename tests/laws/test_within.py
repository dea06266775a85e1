"""Laws that hold within the tolerance of the plan: neighbours, state, order, weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from regard.config import Decoding
from regard.decoding.rows import Symbols
from regard.decoding.search import search
from regard.models.decoding.transformer import TransformerStepper
from regard.models.inputs import pairs
from regard.nn.hooks import capture
from tests.models.small_models import PIECES, assert_near, batch, section, sentences, small, some_pairs, tolerance

DTYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
SOURCES, TARGETS = sentences([5, 1, 7, 3]), sentences([4, 6, 1, 3], seed=9)
NEAR = 1e-5
"""Nats between two candidates under which either may come first."""


@DTYPES
@pytest.mark.parametrize("gradient", [False, True], ids=["no_grad", "grad"])
@pytest.mark.one_of(2)
def test_neighbours(choices, dtype: torch.dtype, gradient: bool) -> None:
    model = small(section(**choices), dtype=dtype)
    with torch.set_grad_enabled(gradient):
        together = pairs(batch(SOURCES, TARGETS, tail=5, spare=2))
        memory_SD, hidden_TD = model.encoder(together.source), model(together)
        for b, (source, target) in enumerate(zip(SOURCES, TARGETS, strict=True)):
            alone = pairs(batch([source], [target]))
            for found, among, side in (
                (model.encoder(alone.source), memory_SD, "source"),
                (model(alone), hidden_TD, "target"),
            ):
                of = getattr(together, side).sequences
                start = int(of.starts_B[b])
                assert_near(among[start : start + len(found)], found.detach(), tolerance(dtype), side)


@DTYPES
@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.one_of(4)
def test_neighbours_translated(choices, dtype: torch.dtype, beam: int) -> None:
    model = small(section(**choices), dtype=dtype)
    decoding, symbols = Decoding(beam=beam, max_extra=3, tokens=30), Symbols(PIECES)
    near_ties = 0
    with torch.no_grad():
        largest = float(model.output.scores(model(pairs(batch(SOURCES, TARGETS)))).abs().max())
    for source, among in zip(
        SOURCES, search(TransformerStepper(model), SOURCES, decoding, symbols, nbest=beam), strict=True
    ):
        alone = search(TransformerStepper(model), [source], decoding, symbols, nbest=beam)[0]
        for one, other in zip(alone, among, strict=True):
            if one.tokens != other.tokens:
                assert abs(one.score - other.score) < NEAR
                near_ties += 1
            else:
                most = max(tolerance(dtype) * largest, NEAR)
                assert abs(one.log_probability - other.log_probability) < most
    assert near_ties <= (2 if dtype == torch.float32 else 0)  # two that change places differ in both


@DTYPES
def test_state(choices, dtype: torch.dtype) -> None:
    model = small(section(**choices), dtype=dtype)
    target = sentences([6, 6, 6, 6], seed=5)
    given = pairs(batch(SOURCES, target))
    with torch.no_grad():
        at_once = model.output.scores(model(given)).log_softmax(1).view(4, 6, PIECES)
    step = TransformerStepper(model)
    state = step.start(SOURCES)
    for place in range(6):
        read = given.target.ids_T.view(4, 6)[:, place]
        state, answer = step.step(state, read.numpy())
        assert_near(answer.all(), at_once[:, place], tolerance(dtype), f"token {place}")


@DTYPES
def test_order(choices, dtype: torch.dtype) -> None:
    model = small(section(**choices), dtype=dtype)
    plain = pairs(batch(SOURCES, TARGETS))
    shuffled = pairs(batch(SOURCES, TARGETS))
    random = np.random.default_rng(3)
    order_T = torch.cat(
        [
            torch.from_numpy(start + random.permutation(len(source)))
            for start, source in zip(starts(), SOURCES, strict=True)
        ]
    )
    shuffled.source.ids_T[:] = plain.source.ids_T[order_T]
    with torch.no_grad():
        expected_SD, found_SD = model.encoder(plain.source)[order_T], model.encoder(shuffled.source)
        if choices["positions"] == "none":
            assert_near(found_SD, expected_SD, tolerance(dtype))
            assert_near(model(shuffled), model(plain), tolerance(dtype))  # the decoder cannot tell either
        else:
            assert (found_SD - expected_SD).abs().max() > 0.01


def starts() -> list[int]:
    return np.cumsum([0] + [len(source) for source in SOURCES])[:-1].tolist()


@DTYPES
def test_weights(choices, dtype: torch.dtype) -> None:
    model = small(section(**choices), dtype=dtype)
    with capture(["*.weight"]) as heard, torch.no_grad():
        model(some_pairs([(5, 4), (1, 6), (0, 2)], tail=2))
    assert len(heard) == 2 + 2 * 2
    for name, tensors in heard.items():
        assert len(tensors) == (3 if name.startswith("decoder") and ".attention." in name else 2)
        for weight_HLM in tensors:
            assert (weight_HLM >= 0).all()
            assert_near(weight_HLM.sum(-1), torch.ones(weight_HLM.shape[:-1]), tolerance(dtype), name)

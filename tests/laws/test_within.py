"""Laws that hold within the tolerance of the plan: neighbours, state, order, weights; and that of gradients."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from regard.config import Decoding
from regard.decoding.hypotheses import Symbols
from regard.decoding.search import search
from regard.models.decoding import stepper
from regard.models.inputs import pairs
from regard.nn.dropout import reseed
from regard.nn.hooks import capture
from tests.laws.families import ALL, DTYPES, GRADIENT, SOURCES, Family, held
from tests.models.small_models import PIECES, assert_near, batch, sentences, texts, tolerance

NEAR = 1e-5
"""Nats between two candidates under which either may come first."""


@pytest.mark.one_of(56)
@held(*ALL)
@DTYPES
@GRADIENT
def test_neighbours(family: Family, dtype: torch.dtype, gradient: bool) -> None:
    model, together = family.model(dtype), family.given(dtype, tail=5, spare=2)
    with torch.set_grad_enabled(gradient):
        among = family.said(model, together)
        for b in range(among[0][1].count):
            for (all_of_them, of), (alone, _) in zip(among, family.said(model, family.alone(b, dtype)), strict=True):
                start = b if len(all_of_them) == of.count else int(of.starts_B[b])
                assert_near(all_of_them[start : start + len(alone)], alone, tolerance(dtype), str(b))


@pytest.mark.one_of(68)
@held("transformer", "gpt")
@DTYPES
@pytest.mark.parametrize("beam", [1, 3])
def test_neighbours_written(family: Family, dtype: torch.dtype, beam: int) -> None:
    model, decoding, near_ties = family.model(dtype), Decoding(beam=beam, max_extra=3, tokens=30), 0
    firsts = family.steps()[1].tolist()

    def found(places: list[int]) -> list[list[object]]:
        prompts = (
            {} if family.name == "transformer" else {"firsts": [firsts[b] for b in places], "limits": [4] * len(places)}
        )
        given = [SOURCES[b] for b in places]
        return search(stepper(model), given, decoding, Symbols(PIECES), nbest=beam, **prompts)

    with torch.no_grad():
        largest = float(model.scores(model(family.given(dtype))).abs().max())
    for b, among in enumerate(found([0, 1, 2, 3])):
        for one, other in zip(found([b])[0], among, strict=True):
            if one.tokens != other.tokens:
                assert abs(one.score - other.score) < NEAR
                near_ties += 1
            else:
                assert abs(one.log_probability - other.log_probability) < max(tolerance(dtype) * largest, NEAR)
    assert near_ties <= (2 if dtype == torch.float32 else 0)  # two that change places differ in both


@pytest.mark.one_of(14)
@held("transformer", "rnn")
@DTYPES
def test_state(family: Family, dtype: torch.dtype) -> None:
    model, given = family.model(dtype), pairs(batch(SOURCES, sentences([6, 6, 6, 6], seed=5)))
    follow(model, SOURCES, given, given.target.ids_T.view(4, 6), 0, dtype)


@pytest.mark.one_of(20)
@held("gpt")
@DTYPES
@pytest.mark.parametrize("prompt", [0, 1, 4])
def test_state_behind_a_prompt(family: Family, dtype: torch.dtype, prompt: int) -> None:
    ids = sentences([7, 7, 7], seed=5)
    given = texts(ids)
    follow(family.model(dtype), [one[:prompt] for one in ids], given, given.ids_T.view(3, 7), prompt, dtype)


def follow(model, sources, given, read_NT: torch.Tensor, place: int, dtype: torch.dtype) -> None:
    """Step by step from a place on, the scores are those of the forward pass."""
    with torch.no_grad():
        at_once = model.scores(model(given)).log_softmax(1).view(*read_NT.shape, PIECES)
    step = stepper(model)
    state = step.start(sources)
    for now in range(place, read_NT.shape[1]):
        state, answer = step.step(state, read_NT[:, now].numpy())
        assert_near(answer.all(), at_once[:, now], tolerance(dtype), f"token {now}")


@pytest.mark.one_of(20)
@held("transformer", "bert", "vit")
@DTYPES
def test_order(family: Family, dtype: torch.dtype) -> None:
    """The tokens of each sequence are shuffled; of an image all but the class token."""
    model, plain = family.model(dtype), family.given(dtype)
    read = getattr(plain, "source", plain)
    random, kept = np.random.default_rng(3), int(family.name == "vit")
    rows = zip(read.sequences.starts_B.tolist(), read.sequences.lengths_B.tolist(), strict=True)
    order = [[*range(start, start + kept), *start + kept + random.permutation(length - kept)] for start, length in rows]
    order_T = torch.tensor(np.concatenate(order))
    content = "pixels_TP" if family.name == "vit" else "ids_T"
    shuffled = replace(read, **{content: read.content[order_T]})
    if read.words is not None:
        shuffled = replace(shuffled, words=replace(read.words, word_T=read.words.word_T[order_T]))
    with torch.no_grad():
        expected_SD, found_SD = model.encoder(read)[order_T], model.encoder(shuffled)
        if family.choices["positions"] != "none":
            assert (found_SD - expected_SD).abs().max() > 0.01
            return
        assert_near(found_SD, expected_SD, tolerance(dtype))
        if family.name == "transformer":  # the decoder cannot tell either
            assert_near(model(replace(plain, source=shuffled)), model(plain), tolerance(dtype))
        if family.name == "vit":
            assert_near(model(shuffled), model(plain), tolerance(dtype))


@pytest.mark.one_of(12)
@held("gpt")
@DTYPES
def test_order_behind_the_mask(family: Family, dtype: torch.dtype) -> None:
    """The mask is an order; without positions it is the only one: the last token sees a set of others."""
    model, ids = family.model(dtype, layers=1), sentences([6], seed=3)[0]
    with torch.no_grad():
        found_D, expected_D = model(texts([ids[[3, 0, 4, 1, 2, 5]]]))[-1], model(texts([ids]))[-1]
    if family.choices["positions"] == "none":
        assert_near(found_D, expected_D, tolerance(dtype))
    else:
        assert (found_D - expected_D).abs().max() > 1e-3


@pytest.mark.one_of(40)
@held(*ALL)
@DTYPES
def test_weights(family: Family, dtype: torch.dtype) -> None:
    model = family.model(dtype)
    with capture(["*.weight"]) as heard, torch.no_grad():
        model(family.given(dtype, tail=2))
    shapes = {name: [tuple(weight_HLM.shape[1:]) for weight_HLM in tensors] for name, tensors in heard.items()}
    assert shapes == family.heard()
    for name, tensors in heard.items():
        for weight_HLM in tensors:
            assert (weight_HLM >= 0).all()
            assert_near(weight_HLM.sum(-1), torch.ones(weight_HLM.shape[:-1]), tolerance(dtype), name)
            if name.startswith("decoder") and ".attention." in name:
                assert not weight_HLM.triu(1).any()


@pytest.mark.parametrize("name", ["transformer", "rnn"])
def test_weights_of_a_source_without_tokens(name: str) -> None:
    """Where there are no keys there are no weights."""
    from tests.models import small_models

    with capture(["decoder.*cross.weight"]) as heard, torch.no_grad():
        getattr(small_models, name)()(small_models.some_pairs([(5, 4), (1, 6), (0, 2)], tail=2))
    assert heard
    assert all(len(tensors) == 2 for tensors in heard.values())


@pytest.mark.one_of(20)
@held(*ALL)
def test_gradient(family: Family) -> None:
    """Every parameter receives a finite one that is not zero, unless the table says why."""
    model = family.model(dropout=0.1).train()
    reseed(5)
    family.loss(model).backward()
    largest = max(float(p.grad.abs().max()) for p in model.parameters() if p.grad is not None)
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        size = float(parameter.grad.abs().max())
        if name.endswith(".key.bias") and (".cross." in name or family.choices.get("positions") != "rotary"):
            assert size < 1e-12 * largest, name  # the softmax does not see it, unless each key's is turned
        else:
            assert size > 1e-6 * largest, name
    if family.name in ("transformer", "rnn"):
        for embedding in (model.encoder.input.tokens, model.decoder.input.tokens, model.output):
            assert not embedding.weight.grad[embedding.pieces].any()

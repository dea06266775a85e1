"""The laws held to decoder-only models: causal, store, neighbours, state, order, weights, gradient, search."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

from regard.config import Decoding
from regard.decoding.rows import Symbols, length_penalty
from regard.decoding.search import sample, search
from regard.models.decoding import stepper
from regard.models.store import load_weights, to_bytes, weights
from regard.nn.dropout import reseed
from regard.nn.hooks import capture, intervene
from regard.nn.loss import SmoothedCrossEntropy
from tests.models.small_models import PIECES, assert_near, only, same, sentences, tolerance
from tests.models.small_readers import OF_GPT, combinations, gpt, texts

DTYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
GIVEN = sentences([5, 1, 7, 3])
NEAR = 1e-5
SYMBOLS = Symbols(PIECES)


@combinations(OF_GPT)
def test_store(chosen, tmp_path: Path) -> None:
    model, path = gpt(**chosen, dtype=torch.float32), tmp_path / "model.safetensors"
    path.write_bytes(to_bytes(weights(model)))
    loaded = gpt(**chosen, dtype=torch.float32, key=1234)
    load_weights(path, loaded)
    assert all(same(before, weights(loaded)[name]) for name, before in weights(model).items())
    assert same(model(texts(GIVEN)).detach(), loaded(texts(GIVEN)).detach())


@combinations(OF_GPT)
@DTYPES
@pytest.mark.parametrize("gradient", [False, True], ids=["no_grad", "grad"])
@pytest.mark.one_of(2)
def test_causal(chosen, dtype: torch.dtype, gradient: bool) -> None:
    model = gpt(**chosen, dtype=dtype)
    with torch.set_grad_enabled(gradient):
        before_TD = model(texts(GIVEN)).detach().clone()
        start = 0
        for ids in GIVEN:
            for place in range(1, len(ids)):
                changed = texts(GIVEN)
                changed.ids_T[start + place] = 2 + (changed.ids_T[start + place] - 1) % (PIECES - 2)
                after_TD = model(changed).detach()
                assert same(after_TD[: start + place].clone(), before_TD[: start + place].clone())
                assert not torch.equal(after_TD[start + place], before_TD[start + place])
                behind = start + len(ids)
                assert same(after_TD[behind:].clone(), before_TD[behind:].clone())
            start += len(ids)


@combinations(OF_GPT)
def test_probe(chosen) -> None:
    model = gpt(**chosen, dtype=torch.float32)
    with only():
        plain_TD = model(texts(GIVEN)).detach()
    with intervene("*", lambda value: value):
        assert same(model(texts(GIVEN)).detach(), plain_TD)
    step, tokens_N = stepper(model), np.array([3, 4, 5, 6])
    with only():
        plain = step.step(step.start(GIVEN), tokens_N)[1].all()
    with intervene("*", lambda value: value):
        assert np.array_equal(step.step(step.start(GIVEN), tokens_N)[1].all(), plain)


@combinations(OF_GPT)
@DTYPES
@pytest.mark.parametrize("gradient", [False, True], ids=["no_grad", "grad"])
def test_neighbours(chosen, dtype: torch.dtype, gradient: bool) -> None:
    model = gpt(**chosen, dtype=dtype)
    with torch.set_grad_enabled(gradient):
        among_TD, start = model(texts(GIVEN, tail=5, spare=2)), 0
        for ids in GIVEN:
            alone_TD = model(texts([ids]))
            assert_near(among_TD[start : start + len(ids)], alone_TD.detach(), tolerance(dtype))
            start += len(ids)


@combinations(OF_GPT)
@DTYPES
@pytest.mark.one_of(3)
def test_neighbours_written(chosen, dtype: torch.dtype) -> None:
    model = gpt(**chosen, dtype=dtype)
    firsts = [3, 4, 5, 6]
    decoding = Decoding(beam=2, tokens=30)
    together = search(stepper(model), GIVEN, decoding, SYMBOLS, nbest=2, firsts=firsts, limits=[4] * 4)
    near_ties = 0
    for source, first, among in zip(GIVEN, firsts, together, strict=True):
        alone = search(stepper(model), [source], decoding, SYMBOLS, nbest=2, firsts=[first], limits=[4])[0]
        for one, other in zip(alone, among, strict=True):
            if one.tokens != other.tokens:
                assert abs(one.score - other.score) < NEAR
                near_ties += 1
            else:
                most = max(tolerance(dtype), NEAR) * max(1.0, abs(other.log_probability))
                assert abs(one.log_probability - other.log_probability) < most
    assert near_ties <= (2 if dtype == torch.float32 else 0)  # two that change places differ in both


@combinations(OF_GPT)
def test_samples_do_not_depend_on_their_company(chosen) -> None:
    model, firsts = gpt(**chosen), [3, 4, 5, 6]
    options = {"symbols": SYMBOLS, "seed": 5, "samples": 2}
    together = sample(stepper(model), GIVEN, Decoding(tokens=10_000), firsts=firsts, limits=[6] * 4, **options)
    waiting = sample(stepper(model), GIVEN, Decoding(tokens=25), firsts=firsts, limits=[6] * 4, **options)
    assert [[h.tokens for h in group] for group in waiting] == [[h.tokens for h in group] for group in together]


@combinations(OF_GPT)
@DTYPES
@pytest.mark.parametrize("prompt", [0, 1, 4])
@pytest.mark.one_of(2)
def test_state(chosen, dtype: torch.dtype, prompt: int) -> None:
    model = gpt(**chosen, dtype=dtype)
    given = sentences([7, 7, 7], seed=5)
    with torch.no_grad():
        at_once = model.output.scores(model(texts(given))).log_softmax(1).view(3, 7, PIECES)
    step = stepper(model)
    state = step.start([ids[:prompt] for ids in given])
    for place in range(prompt, 7):
        state, answer = step.step(state, np.array([ids[place] for ids in given]))
        assert_near(answer.all(), at_once[:, place], tolerance(dtype), f"token {place}")


@combinations(OF_GPT)
@DTYPES
def test_order(chosen, dtype: torch.dtype) -> None:
    """The mask is an order; without positions it is the only one: the last token sees a set of others."""
    model = gpt(**{**chosen, "layers": 1}, dtype=dtype)
    ids = sentences([6], seed=3)[0]
    shuffled = ids.copy()
    shuffled[:5] = ids[[3, 0, 4, 1, 2]]
    with torch.no_grad():
        found_D, expected_D = model(texts([shuffled]))[-1], model(texts([ids]))[-1]
    if chosen["positions"] == "none":
        assert_near(found_D, expected_D, tolerance(dtype))
    else:
        assert (found_D - expected_D).abs().max() > 1e-3


@combinations(OF_GPT)
@DTYPES
def test_weights(chosen, dtype: torch.dtype) -> None:
    model = gpt(**chosen, dtype=dtype)
    with capture(["*.weight"]) as heard, torch.no_grad():
        model(texts(GIVEN, tail=2))
    assert sorted(heard) == ["decoder.0.attention.weight", "decoder.1.attention.weight"]
    for tensors in heard.values():
        assert len(tensors) == len(GIVEN)
        for weight_HLM in tensors:
            assert (weight_HLM >= 0).all()
            assert not weight_HLM.triu(1).any()
            assert_near(weight_HLM.sum(-1), torch.ones(weight_HLM.shape[:-1]), tolerance(dtype))


@combinations(OF_GPT)
def test_gradient(chosen) -> None:
    given = texts(sentences([6, 7, 5]), tail=3)
    model = gpt(**{**chosen, "dropout": 0.1, "max_positions": 7}).train()
    reseed(5)
    table = model.output.weight
    labels_T = torch.arange(len(given.ids_T)) % PIECES
    weight_T = given.sequences.inside_T.double()
    total, _ = SmoothedCrossEntropy(0.1)(model(given), table, labels_T, weight_T, PIECES)
    total.backward()
    largest = max(float(p.grad.abs().max()) for p in model.parameters() if p.grad is not None)
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        size = float(parameter.grad.abs().max())
        if name.endswith(".key.bias"):
            assert size < 1e-12 * largest, name  # the softmax does not see it
        else:
            assert size > 1e-6 * largest, name


VOCABULARY, LIMIT = 5, 3


def log_probability(model, prompt: list[int], output: list[int]) -> float:
    """Of a whole output behind a prompt, all at once."""
    with torch.no_grad():
        hidden_TD = model(texts([np.array([*prompt, *output[:-1]])]))[len(prompt) - 1 :]
        scores = model.output.scores(hidden_TD).log_softmax(1)
    return float(scores.gather(1, torch.tensor(output)[:, None]).sum())


@combinations(OF_GPT)
@pytest.mark.parametrize("prompt", [[3], [2, 4, 3]])
def test_search(chosen, prompt: list[int]) -> None:
    model, alpha = gpt(**chosen, pieces=VOCABULARY), 0.6
    outputs = [[*words, 0] for n in range(LIMIT) for words in itertools.product(range(2, VOCABULARY), repeat=n)]
    scored = [log_probability(model, prompt, o) / length_penalty(float(len(o)), alpha) for o in outputs]
    best = np.argsort(scored)[::-1]
    decoding, symbols = Decoding(beam=40, length_penalty=alpha), Symbols(VOCABULARY)
    source = [np.array(prompt[:-1], np.int64)]
    (found,) = search(stepper(model), source, decoding, symbols, nbest=5, firsts=[prompt[-1]], limits=[LIMIT])
    assert [[*h.tokens, 0] for h in found] == [outputs[i] for i in best[:5]]
    assert np.allclose([h.score for h in found], [scored[i] for i in best[:5]], atol=1e-9)


@combinations(OF_GPT)
def test_a_beam_of_one_is_greedy(chosen) -> None:
    model = gpt(**chosen, pieces=VOCABULARY)
    for prompt in ([3], [2, 4, 3]):
        words: list[int] = []
        while len(words) < 4:
            scores = [log_probability(model, prompt, [*words, t]) if t != 1 else -np.inf for t in range(VOCABULARY)]
            words.append(int(np.argmax(scores)))
            if words[-1] == 0:
                break
        source = [np.array(prompt[:-1], np.int64)]
        options = {"firsts": [prompt[-1]], "limits": [4]}
        ((found,),) = search(stepper(model), source, Decoding(beam=1), Symbols(VOCABULARY), **options)
        assert [*found.tokens, *([0] if found.finished else [])] == words

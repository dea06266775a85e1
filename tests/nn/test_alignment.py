import numpy as np
import pytest
import torch
from torch import nn

from regard.nn.alignment import Additive, Alignment, Cosine, Dot, General, ScaledDot
from regard.nn.autograd import attention as autograd
from regard.nn.hooks import capture, intervene, name_parts
from regard.nn.init import initialise
from regard.nn.layout import Layout, Sequences
from tests.models.small_models import assert_near, sequences, stir

D = 6
KINDS = {
    "dot": lambda: Dot(),
    "scaled": lambda: ScaledDot(D),
    "general": lambda: General(D),
    "additive": lambda: Additive(D),
    "cosine": lambda: Cosine(D),
}
EACH = pytest.mark.parametrize("kind", KINDS)
QUERIES, KEYS = [3, 1, 0, 4], [2, 5, 3, 1]


class Inside(nn.Module):
    """An alignment where a model has it."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.cross = Alignment(KINDS[kind](), D)


def made(kind: str) -> Alignment:
    inside = Inside(kind)
    initialise(inside, 5)
    stir(inside)
    name_parts(inside)
    return inside.double().cross


def tensors(layout: Layout, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    sizes = (layout.queries.size, layout.keys.size)
    hidden, memory = (torch.randn(size, D, dtype=torch.float64, generator=generator) for size in sizes)
    return hidden.requires_grad_(), memory.requires_grad_()


def score(kind: str, part: nn.Module, h: np.ndarray, m: np.ndarray) -> float:
    """How well one decoder state fits one encoder state, as the papers write it, in plain loops."""
    weights = {name: p.detach().numpy() for name, p in part.named_parameters()}
    if kind == "additive":
        W, U, v, b = (weights[name] for name in ("state.weight", "memory.weight", "direction", "state.bias"))
        inner = [sum(W[i][j] * h[j] + U[i][j] * m[j] for j in range(D)) + b[i] for i in range(D)]
        return sum(v[i] * np.tanh(inner[i]) for i in range(D))
    if kind == "general":
        W, b = weights["weight.weight"], weights["weight.bias"]
        h = [sum(W[i][j] * h[j] for j in range(D)) + b[i] for i in range(D)]
    product = sum(h[i] * m[i] for i in range(D))
    if kind == "cosine":
        lengths = sum(x * x for x in h) ** 0.5 * sum(x * x for x in m) ** 0.5
        return weights["sharpness"][0] * product / lengths
    return product / D**0.5 if kind == "scaled" else product


def context(kind: str, part: nn.Module, h: np.ndarray, memory: np.ndarray) -> np.ndarray:
    scores = np.array([score(kind, part, h, m) for m in memory])
    weights = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    return sum(w * m for w, m in zip(weights, memory, strict=True))


@EACH
@pytest.mark.parametrize("gradient", [False, True], ids=["no_grad", "grad"])
@pytest.mark.parametrize("keys", [KEYS, [2, 0, 3, 1]], ids=["keys", "a sentence without keys"])
def test_attentional_vectors_are_the_papers(kind: str, gradient: bool, keys: list[int]) -> None:
    of, layout = made(kind), Layout(sequences(QUERIES, tail=2), sequences(keys, tail=3))
    hidden_TD, memory_SD = tensors(layout)
    with torch.set_grad_enabled(gradient):
        found = of(hidden_TD, of.remember(memory_SD), memory_SD, layout).detach().numpy()
    W, b = (p.detach().numpy() for p in (of.output.weight, of.output.bias))
    hidden, memory = hidden_TD.detach().numpy(), memory_SD.detach().numpy()
    for b_index, (start, there) in enumerate(zip(layout.queries.starts_B, layout.keys.starts_B, strict=True)):
        own = memory[int(there) : int(there) + keys[b_index]]
        for t in range(int(start), int(start) + QUERIES[b_index]):
            c = context(kind, of.score, hidden[t], own) if len(own) else np.zeros(D)
            assert_near(found[t], np.tanh(W @ np.concatenate([c, hidden[t]]) + b), 1e-9)


@pytest.mark.one_of(3)
@EACH
@pytest.mark.parametrize("lengths", [(QUERIES, KEYS), ([1, 2] * 40, [3, 9, 1, 2] * 20), ([0, 0], [1, 2])])
def test_every_way_is_the_reference_forward_and_gradient(kind: str, lengths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autograd, "CHUNK", 200)  # several chunks a group
    found = []
    for looked_at in ("nothing", "cross.*"):
        of, layout = made(kind), Layout(sequences(lengths[0], tail=2, spare=1), sequences(lengths[1], tail=1, spare=1))
        hidden_TD, memory_SD = tensors(layout)
        with intervene(looked_at, lambda value: value):
            said_TD = of(hidden_TD, of.remember(memory_SD), memory_SD, layout)
        (said_TD * torch.linspace(-1, 1, said_TD.numel(), dtype=torch.float64).view_as(said_TD)).sum().backward()
        gradients = [p.grad if p.grad is not None else torch.zeros_like(p) for p in of.parameters()]
        memory = memory_SD.grad if memory_SD.grad is not None else torch.zeros_like(memory_SD)
        found.append([said_TD, hidden_TD.grad, memory, *gradients])
    for one, other in zip(*found, strict=True):
        assert_near(one, other, 1e-9)


@EACH
def test_what_is_heard(kind: str) -> None:
    of, layout = made(kind), Layout(sequences([3, 1, 4]), sequences([2, 5, 1]))
    hidden_TD, memory_SD = tensors(layout)
    with capture(["cross.*"]) as heard:
        said_TD = of(hidden_TD, of.remember(memory_SD), memory_SD, layout)
    hidden, memory = hidden_TD.detach().numpy(), memory_SD.detach().numpy()
    scale = D**-0.5 if kind == "scaled" else 1.0
    for point in ("score", "weight"):
        assert [tuple(x.shape) for x in heard[f"cross.{point}"]] == [(1, 3, 2), (1, 1, 5), (1, 4, 1)]
    expected = [[score(kind, of.score, h, m) for m in memory[:2]] for h in hidden[:3]]
    assert_near(heard["cross.score"][0][0] * scale, np.array(expected), 1e-9)  # before the scale
    assert_near(heard["cross.context"][0][0, 1], context(kind, of.score, hidden[1], memory[:2]), 1e-9)
    assert torch.equal(heard["cross.output"][0], said_TD)


@EACH
def test_replaced_weights_are_used(kind: str) -> None:
    of, layout = made(kind), Layout(sequences([2]), sequences([3]))
    hidden_TD, memory_SD = tensors(layout)
    even = torch.full((1, 2, 3), 1 / 3, dtype=torch.float64)
    with intervene("cross.weight", lambda weight: even), capture(["cross.context"]) as heard:
        of(hidden_TD, of.remember(memory_SD), memory_SD, layout)
    assert_near(heard["cross.context"][0][0], memory_SD.mean(0).expand(2, D), 1e-12)


def test_cosine_does_not_see_lengths() -> None:
    of, layout = made("cosine"), Layout(sequences([2]), sequences([3]))
    hidden_TD, memory_SD = tensors(layout)
    for query, key in ((5 * hidden_TD, memory_SD), (hidden_TD, 0.01 * memory_SD)):
        found = of.score.attend(of.score.query(query), of.score.key(key), memory_SD, layout)
        assert_near(found, of.score.attend(of.score.query(hidden_TD), of.score.key(memory_SD), memory_SD, layout), 1e-9)


def test_the_additive_score_of_many_long_sentences_takes_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen pairs of 200 by 200 tokens: all vectors at once would be 640,000; a sentence at a time is 40,000."""
    plain, sizes = autograd._sigmoid, []

    def watched(query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        sizes.append(query.shape[0] * query.shape[1] * key.shape[1])
        return plain(query, key)

    monkeypatch.setattr(autograd, "_sigmoid", watched)
    layout = Layout(Sequences.end_to_end([200] * 16), Sequences.end_to_end([200] * 16))
    of = made("additive")
    hidden_TD, memory_SD = tensors(layout)
    of(hidden_TD, of.remember(memory_SD), memory_SD, layout).sum().backward()
    assert max(sizes) <= max(autograd.CHUNK // D, 200 * 200)

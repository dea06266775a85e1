"""Attention weights, what passes beside them, and gradients, captured in passes of a model.

Gradients say how much each token's embedding added to a score: to first order, or integrated along a path from zero.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from regard.config import FAMILIES
from regard.models.bert import Vit
from regard.models.inputs import Patches, Tokens
from regard.models.rnn import Rnn
from regard.models.transformer import Transformer
from regard.nn import Sequences
from regard.nn.hooks import INSIDE, capture, intervene

POINTS: Mapping[str, Mapping[str, str]] = {family: section.info.points for family, section in FAMILIES.items()}
"""Where the weights of each use of attention pass, by family and layer [Vaswani17 §3.2.3]."""
BY_QUERY = ("query", "score", "weight", "context")
"""Points that hold something of each query; a recurrence passes them a step at a time."""
NODES = 4
"""Points of the Gauss-Legendre rule in each part of the path of integrated gradients."""
PARTS = 8
"""Parts of the path at first; they halve towards zero, where a norm changes most."""
ENOUGH = 1e-3
"""Error of integrated gradients below which no part is halved, relative to the difference of the scores."""


def weights_of(
    model: Transformer | Rnn, family: str, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> dict[str, list[list[Tensor]]]:
    """Every attention weight of one pass in evaluation mode: ``[kind][layer][pair]`` has shape (heads, queries, keys).

    Args:
        model: the translator; its mode is left as it was.
        family: the word of its section.
        sources: ids of each sentence, ``</s>`` at the end.
        targets: what the decoder reads for each: the start symbol, then the ids of its translation.
    """
    return capture_layers(model, family, pass_over(model, sources, targets), [len(target) for target in targets])


def pass_over(
    model: Transformer | Rnn, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> Callable[[], Tensor]:
    """A function that runs one forward pass: ``hidden_TD`` of the decoder."""
    device = model.output.weight.device
    read, written = pack_sentences(sources, device), pack_sentences(targets, device)
    return lambda: model.decoder(written, model.encoder(read), read)


def image_weights(model: Vit, patches: Patches) -> list[list[Tensor]]:
    """The same of images: ``[layer][image]`` has shape (heads, 1 + patches, 1 + patches), the class token first."""
    return capture_layers(model, "vit", lambda: model.encoder(patches))["encoder"]


@torch.inference_mode()
def inside(model: nn.Module, family: str, run: Callable[[], object], kind: str, layer: int) -> dict[str, Tensor]:
    """What passes inside the attention of one layer when one sequence is read, by the probe's names of the points.

    Args:
        model: its mode is left as it was.
        family: the word of its section.
        run: one pass over one sequence.
        kind: encoder, decoder, cross or pool, as the family has it.
        layer: counted from 0.
    """
    path = POINTS[family][kind].format(layer).removesuffix("weight")
    with evaluating(model), capture([f"{path}{point}" for point in INSIDE]) as found:
        run()
    steps = {name.removeprefix(path): tensors for name, tensors in found.items()}
    return {point: torch.cat(some, 1) if point in BY_QUERY else some[0] for point, some in steps.items()}


@torch.inference_mode()
def streams(model: nn.Module, run: Callable[[], object], stack: str) -> list[Tensor]:
    """``x_TD`` at the input of a stack of layers, positions added, and after each layer; none for a recurrence.

    Args:
        model: its mode is left as it was.
        run: one pass.
        stack: ``encoder`` or ``decoder``.
    """
    entered, behind = f"{stack}.input.positions", f"{stack}.{{}}.feedforward_residual.residual"
    with evaluating(model), capture([entered, behind.format("*")]) as found:
        run()
    names = (entered, *map(behind.format, range(len(found) - 1)))
    return [found[name][0] for name in names] if len(found) > 1 else []


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """In evaluation mode, and then as it was."""
    training = model.training
    model.eval()
    try:
        yield
    finally:
        model.train(training)


@torch.inference_mode()
def capture_layers(
    model: nn.Module, family: str, run: Callable[[], object], queries: Sequence[int] = ()
) -> dict[str, list[list[Tensor]]]:
    """The attention weights of what ``run`` does, in evaluation mode: ``[kind][layer][sequence]``.

    Args:
        model: its mode is left as it was.
        family: the word of its section.
        run: one pass.
        queries: how many queries each sequence has, where a step of a recurrence is heard on its own.
    """
    with evaluating(model), capture([point.format("*") for point in POINTS[family].values()]) as found:
        run()
    return {kind: _layers(point, found, queries) for kind, point in POINTS[family].items()}


def _layers(point: str, found: dict[str, list[Tensor]], queries: Sequence[int]) -> list[list[Tensor]]:
    """The weights of each layer; a point without layers is one."""
    if "{}" not in point:
        return [_whole(found[point], queries)] if point in found else []
    names = [name for layer in range(len(found)) if (name := point.format(layer)) in found]
    return [found[name] for name in names]


def _whole(steps: list[Tensor], queries: Sequence[int]) -> list[Tensor]:
    """One tensor a sequence; of those that were heard a step at a time the longest sequences live longest."""
    if not queries or len(steps) == len(queries):
        return steps
    order = sorted(range(len(queries)), key=lambda place: -queries[place])
    rows: list[list[Tensor]] = [[] for _ in queries]
    heard_steps = iter(steps)
    for time in range(max(queries, default=0)):
        for place in order:
            if queries[place] > time:
                rows[place].append(next(heard_steps))
    return [torch.cat(row, dim=1) for row in rows]


def pack_sentences(sentences: Sequence[Sequence[int]], device: torch.device) -> Tokens:
    """Sentences end to end, as a model reads them."""
    ids_T = torch.tensor([id for sentence in sentences for id in sentence], dtype=torch.int64, device=device)
    return Tokens(ids_T, Sequences.end_to_end([len(sentence) for sentence in sentences], device))


def gradient_times_input(model: nn.Module, stack: str, run: Callable[[], Tensor]) -> Tensor:
    """``share_T``: what the score gains, to first order, by each token's embedding [Shrikumar16 §3].

    ``Σ_d x_d ∂score/∂x_d``: if the embedding were a hundredth larger, the score would be about that much, divided by a
    hundred, larger. It may be negative. Positions are not counted: they are added later.

    Args:
        model: its mode and its gradients are left as they were.
        stack: ``encoder`` or ``decoder``: which tokens.
        run: one pass of the model; gives the score, a single number.
    """
    score, entered = _scaled_run(model, [stack], run, 1.0)
    leaf_TD, whole_TD = entered[stack]
    (gradient_TD,) = torch.autograd.grad(score, leaf_TD)
    return (whole_TD * gradient_TD).sum(1)


def integrated_gradients(
    model: nn.Module, stacks: Sequence[str], run: Callable[[], Tensor], passes: int
) -> tuple[float, dict[str, Tensor]]:
    """``share_T`` of each stack: integrated gradients from embeddings of zero [Sundararajan17 §3].

    ``Σ_d x_d ∫₀¹ ∂score(α x)/∂x_d dα``, the embeddings of all stacks scaled by α together. All shares add up to the
    score minus the score at zero. Positions are not scaled: they are added later. The same holds of each part of the
    path: the part whose shares lack most of the difference of its two scores is halved, until little is lacking.

    Args:
        model: its mode and its gradients are left as they were.
        stacks: ``encoder``, ``decoder``: whose tokens.
        run: one pass of the model; gives the score, a single number.
        passes: most of them, backward ones; fewer where the error is below :data:`ENOUGH`.

    Returns:
        The score at zero, and the shares by stack, in float64.
    """

    def score(scale: float) -> float:
        return float(_scaled_run(model, stacks, run, scale)[0].detach())

    def integrate(begin: tuple[float, float], end: tuple[float, float]) -> _Part:
        shares = _part_shares(model, stacks, run, begin[0], end[0])
        error = end[1] - begin[1] - sum(float(share_T.sum()) for share_T in shares.values())
        return _Part(begin, end, shares, abs(error))

    edges = [(scale, score(scale)) for scale in (0.0, *(0.5**power for power in range(PARTS - 1, -1, -1)))]
    parts, done = [integrate(*ends) for ends in itertools.pairwise(edges)], PARTS * NODES
    enough = ENOUGH * abs(edges[-1][1] - edges[0][1])
    while sum(part.error for part in parts) > enough and done + 2 * NODES <= passes:
        worst = max(parts, key=lambda part: part.error)
        parts.remove(worst)
        middle = (worst.begin[0] + worst.end[0]) / 2
        half = middle, score(middle)
        parts += [integrate(worst.begin, half), integrate(half, worst.end)]
        done += 2 * NODES
    return edges[0][1], {stack: torch.stack([part.shares[stack] for part in parts]).sum(0) for stack in stacks}


@dataclass(frozen=True, eq=False)
class _Part:
    """A part of the path: where it begins and ends, with the scores there, its shares, and what they lack."""

    begin: tuple[float, float]
    end: tuple[float, float]
    shares: dict[str, Tensor]
    error: float


def _part_shares(
    model: nn.Module, stacks: Sequence[str], run: Callable[[], Tensor], begin: float, end: float
) -> dict[str, Tensor]:
    """The integral over a part of the path, by a Gauss-Legendre rule."""
    shares: dict[str, Tensor] = {}
    for node, weight in zip(*np.polynomial.legendre.leggauss(NODES), strict=True):
        score, entered = _scaled_run(model, stacks, run, begin + (end - begin) * (float(node) + 1) / 2)
        gradients = torch.autograd.grad(score, [leaf for leaf, _ in entered.values()])
        for (stack, (_, x_TD)), gradient_TD in zip(entered.items(), gradients, strict=True):
            share_T = (end - begin) * float(weight) / 2 * (x_TD.double() * gradient_TD.double()).sum(1)
            shares[stack] = shares[stack] + share_T if stack in shares else share_T
    return shares


def _scaled_run(
    model: nn.Module, stacks: Sequence[str], run: Callable[[], Tensor], scale: float
) -> tuple[Tensor, dict[str, tuple[Tensor, Tensor]]]:
    """The score with embeddings scaled, and for each stack the scaled embeddings and the whole ones."""
    entered: dict[str, tuple[Tensor, Tensor]] = {}

    def watch(x_TD: Tensor, stack: str) -> Tensor:
        whole_TD = x_TD.detach()
        entered[stack] = (scale * whole_TD).requires_grad_(), whole_TD
        return entered[stack][0]

    with evaluating(model), torch.enable_grad(), ExitStack() as hooks:
        for stack in stacks:
            hooks.enter_context(intervene(f"{stack}.input.embedding", partial(watch, stack=stack)))
        return run(), entered

"""Attention weights and gradients captured in a forward pass, for pictures and demonstrations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from regard.config import FAMILIES
from regard.models.inputs import Patches, Tokens
from regard.models.rnn import Rnn
from regard.models.transformer import Transformer
from regard.models.vit import Vit
from regard.nn.hooks import INSIDE, capture, intervene
from regard.nn.layout import Sequences

POINTS: Mapping[str, Mapping[str, str]] = {family: section.info.points for family, section in FAMILIES.items()}
"""Where the weights of each use of attention pass, by family and layer [Vaswani17 §3.2.3]."""
BY_QUERY = ("query", "score", "weight", "context")
"""Points that hold something of each query; a recurrence passes them a step at a time."""


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
    entered: list[Tensor] = []

    def watch(x_TD: Tensor) -> Tensor:
        entered.append(x_TD.detach().requires_grad_())
        return entered[-1]

    with evaluating(model), torch.enable_grad(), intervene(f"{stack}.input.embedding", watch):
        score = run()
    (gradient_TD,) = torch.autograd.grad(score, entered[0])
    share_T: Tensor = (entered[0].detach() * gradient_TD).sum(1)
    return share_T

"""Learning-rate schedules, and Adam and Muon over one flat buffer.

Schedules are pure functions of the step, counted from 1 [Vaswani17 §5.3, eq. 3]. A model's parameters are views of the
buffer, so a step of Adam [Kingma15] is a few long operations.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import nn
from torch.optim.adam import adam  # the classes of torch.optim import its compiler, which takes seconds

from regard.config import Training
from regard.nn import ops
from regard.system.errors import RegardError, UsageError
from regard.training.budget import Replanning
from regard.training.buffers import buffers_for
from regard.training.muon import Muon
from regard.training.world import ALONE, World, tree_sum

Schedule = Callable[[float], float]
Tensors = Mapping[str, torch.Tensor]
DECOUPLED = {"adam": False, "adamw": True, "muon": True}
"""Whether weights decay beside the gradient [Loshchilov19], or as a part of it."""
_ALIGN = 16
"""Every parameter starts at a multiple of this many numbers (64 bytes of fp32), as freshly allocated ones do."""


def noam(factor: float, d_model: int, warmup: int) -> Schedule:
    """``factor · d_model^-0.5 · min(step^-0.5, step · warmup^-1.5)`` [Vaswani17 §5.3, eq. 3]."""
    return lambda step: factor * d_model**-0.5 * min(step**-0.5, step * max(warmup, 1) ** -1.5)


def inverse_square_root(peak: float, warmup: int) -> Schedule:
    """Linear to ``peak`` at the end of the warm-up, then ``peak · sqrt(warmup / step)``."""
    return lambda step: peak * min(step / max(warmup, 1), math.sqrt(max(warmup, 1) / step))


def cosine(peak: float, warmup: int, steps: int) -> Schedule:
    """Linear to ``peak``, then half a cosine to zero at exactly the last step."""
    return lambda step: (
        peak * _warm(step, warmup) * 0.5 * (1.0 + math.cos(math.pi * _decay_progress(step, warmup, steps)))
    )


def linear(peak: float, warmup: int, steps: int) -> Schedule:
    """Linear to ``peak``, then linear to zero at exactly the last step."""
    return lambda step: peak * _warm(step, warmup) * (1.0 - _decay_progress(step, warmup, steps))


def stretch(rate: Schedule, at: int, planned: int, steps: int) -> Schedule:
    """A schedule up to step ``at``; what it still has to go to ``planned`` it goes slower or faster, to ``steps``."""
    return lambda step: rate(step if step <= at else at + (step - at) * (planned - at) / (steps - at))


def _warm(step: float, warmup: int) -> float:
    return min(1.0, step / warmup) if warmup else 1.0


def _decay_progress(step: float, warmup: int, steps: int) -> float:
    """The completed share of the decay: 0 during warmup, 1 from the last step on."""
    return min(1.0, max(0, step - warmup) / max(1, steps - warmup))


def schedule(section: Training, d_model: int, review: Replanning | None = None) -> Schedule:
    """The schedule a recipe names; its warm-up is never more than a tenth of the steps, where they are known.

    Args:
        section: of the recipe, its steps as planned first.
        d_model: of the model.
        review: what became of the steps midway: a schedule that ends, ends there instead.

    Raises:
        UsageError: the schedule ends at the last step, but the number of steps is not known.
    """
    warmup = section.warmup if section.steps is None else min(section.warmup, section.steps // 10)
    if section.schedule == "noam":
        return noam(section.rate, d_model, warmup)
    if section.schedule == "inverse_square_root":
        return inverse_square_root(section.rate, warmup)
    if section.steps is None:
        raise UsageError(f"{section.schedule} schedules end at the last step: give steps or minutes", "training.steps")
    end = {"cosine": cosine, "linear": linear}[section.schedule](section.rate, warmup, section.steps)
    return stretch(end, review.at, review.planned, review.steps) if review else end


@dataclass(frozen=True)
class _Adam:
    """The fused Adam(W) of torch over a range of a buffer, which decays or does not [Kingma15; Loshchilov19].

    Args:
        range: of the buffer's numbers.
        section: kind, betas and epsilon.
        decay: of its weights.
        updates: how many there were, a scalar.
    """

    range: slice
    section: Training
    decay: float
    updates: torch.Tensor

    @torch.no_grad()
    def update(
        self, weights: torch.Tensor, gradients: torch.Tensor, first: torch.Tensor, second: torch.Tensor, rate: float
    ) -> None:
        """One update of the range of all buffers, in place."""
        section, part = self.section, self.range
        adam(
            [weights[part]],
            [gradients[part]],
            [first[part]],
            [second[part]],
            [],
            [self.updates],
            fused=True,
            decoupled_weight_decay=DECOUPLED[section.optimiser],
            amsgrad=False,
            beta1=section.beta1,
            beta2=section.beta2,
            lr=rate,
            weight_decay=self.decay,
            eps=section.epsilon,
            maximize=False,
        )


class FlatOptimiser:
    """Adam, AdamW or Muon of a model whose parameters, gradients, moments and averages lie each end to end in a buffer.

    Parameters used at several places (tied) are held once. Weights of two and more dimensions come first and decay
    (AdamW); biases and norms follow and do not. Saved state is by parameter name and bit-exact. Under Muon the weight
    matrices of the layers come before all others, whose optimiser is AdamW.

    The buffer has a slice for each shard of a step, of a multiple of 16 numbers. A process holds moments and averages
    of its own shards' slices, and updates these. Every process calls the methods that speak of all processes.
    """

    def __init__(self, model: nn.Module, section: Training, world: World = ALONE) -> None:
        self.model, self.world = model, world
        self.decay = section.ema
        self.updates = 0
        self.parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        every = dict(model.named_parameters(remove_duplicate=False))
        self.buffers = {name: t for name, t in model.state_dict().items() if name not in every}
        """Running averages of batch norm: saved with the weights, and changed by a pass instead of an update."""
        matrices = _matrices(self.parameters) if section.optimiser == "muon" else []
        self._starts, first, border = _places(self.parameters, world.shards, matrices)
        self._buffers = buffers_for(world, _laid_out(self.parameters, self._starts))
        self.weights = self._buffers.weights
        for name, parameter in self.parameters.items():
            parameter.data = self._view(self.weights, name)
        self.gradients = self._buffers.gradients
        """Of all shards of this process, after the last of them; those of one shard while it is computed."""
        self._partial = [self.gradients]
        """Sums of 2ⁿ shards that wait for their neighbours, as in a binary counter."""
        self._use_gradients(self.gradients)
        self.own_gradients = self.gradients
        """Of the step, for the slices that this process updates."""
        own = world.own(self.weights)
        self.averages = own.clone() if self.decay else None
        self.first = torch.zeros_like(own)
        self.second = torch.zeros_like(own)
        self._muons = list(self._groups(matrices, section))
        first, border = (min(max(place - world.rank * len(own), 0), len(own)) for place in (first, border))
        count = torch.zeros((), dtype=torch.float32, device=own.device)
        self._ranges = [
            _Adam(slice(start, end), section, decay, count.clone())
            for start, end, decay in ((first, border, section.weight_decay), (border, len(own), 0.0))
            if start < end
        ]

    def _groups(self, matrices: Sequence[str], section: Training) -> Iterator[Muon]:
        """The matrices of this process, those of a shard that have one shape together, whoever computes the others."""
        low = section.precision != "fp32" and section.product in ("auto", "bf16")
        dtype = torch.bfloat16 if low and ops.native_bf16(self.weights.device) else torch.float32
        each, shards = len(self.weights) // self.world.shards, self.world.mine

        def group(name: str) -> tuple[int, torch.Size]:
            return self._starts[name] // each, self.parameters[name].shape

        for (shard, shape), names in groupby(matrices, group):
            if shard in shards:
                start, *others = (self._starts[name] - shards.start * each for name in names)
                stride = _round_up(shape.numel())
                yield Muon(start, 1 + len(others), stride, shape, section.weight_decay, dtype)

    def _view(self, flat: torch.Tensor, name: str) -> torch.Tensor:
        parameter, start = self.parameters[name], self._starts[name]
        return flat[start : start + parameter.numel()].view(parameter.shape)

    def _views(self, flat: torch.Tensor, prefix: str = "") -> dict[str, torch.Tensor]:
        """The parts of a whole buffer by the parameters that they belong to."""
        return {f"{prefix}{name}": self._view(flat, name) for name in self.parameters}

    def _use_gradients(self, flat: torch.Tensor) -> None:
        """Let the backward pass add to this buffer."""
        for name, parameter in self.parameters.items():
            parameter.grad = self._view(flat, name)

    def begin_shard(self, number: int) -> None:
        """Before the first batch of a shard; ``number`` counts those of this process."""
        waiting = number.bit_count()  # sums of 1, 2, 4 … shards
        if waiting == len(self._partial):
            self._partial.append(torch.empty_like(self.weights))
        self._partial[waiting].zero_()
        if self.world.shards > 1:
            self._use_gradients(self._partial[waiting])

    def end_shard(self, number: int) -> None:
        """After its last batch: its gradient is added to its neighbour's, in the order of a binary tree."""
        waiting = number.bit_count()
        while number & 1:
            self._partial[waiting - 1] += self._partial[waiting]
            number, waiting = number >> 1, waiting - 1

    def exchange_gradients(self) -> list[torch.Tensor]:
        """Take the gradient of the whole step for the own slices from all processes; the squared norm of each slice."""
        self.own_gradients = self._buffers.reduce()
        slices = self.own_gradients.chunk(len(self.world.mine))
        return [torch.linalg.vector_norm(part).double().square() for part in slices]

    def norms(self) -> dict[str, float]:
        """The gradient's norm layer by layer, e.g. ``encoder.layers.0``, from all processes."""
        groups: dict[str, list[str]] = {}
        for name in self.parameters:
            groups.setdefault(_layer(name), []).append(name)
        each = len(self.weights) // self.world.shards
        rows = []
        for shard, part in zip(self.world.mine, self.own_gradients.chunk(len(self.world.mine)), strict=True):
            norms = []
            for names in groups.values():
                ranges = (self._range(name, shard * each, each) for name in names)
                views = [part[start:end] for start, end in ranges if start < end] or [part[:0]]
                norms.append(torch.linalg.vector_norm(torch.stack(torch._foreach_norm(views))))
            rows.append(torch.stack(norms).double().square())
        total = tree_sum(self.world.rows(torch.stack(rows))).sqrt()
        return dict(zip(groups, total.tolist(), strict=True))

    def _range(self, name: str, first: int, count: int) -> tuple[int, int]:
        """Where a parameter lies in the slice of ``count`` numbers that begins at ``first``."""
        start = self._starts[name] - first
        return max(0, start), min(count, start + self.parameters[name].numel())

    def update(self, rate: float, scale: float) -> None:
        """One update with the gradient times ``scale`` (token normalisation and clipping in one), in all processes."""
        self.own_gradients.mul_(scale)
        for group in self._muons:
            group.update(self.world.own(self.weights), self.own_gradients, self.first, rate)
        for part in self._ranges:
            part.update(self.world.own(self.weights), self.own_gradients, self.first, self.second, rate)
        self.updates += 1
        if self.averages is not None:  # young averages forget faster, so that the first weights do not stay in them
            decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
            self.averages.lerp_(self.world.own(self.weights), 1.0 - decay)
        self._buffers.publish()

    def finite(self) -> bool:
        """Whether all weights, buffers, and averages if there are any, are numbers still, in all processes."""
        found = [t for t in (self.weights, self.averages) if t is not None]
        return not self.world.any(not (all(bool(t.isfinite().all()) for t in found) and self.buffers_finite()))

    def buffers_finite(self) -> bool:
        """Whether all buffers are numbers still."""
        return all(bool(t.isfinite().all()) for t in self.buffers.values())

    def restore_buffers(self, before: Tensors) -> None:
        """Restore the buffers from before a forward pass."""
        for name, tensor in before.items():
            self.buffers[name].copy_(tensor)

    def flat_buffers(self) -> torch.Tensor:
        """The buffers end to end, in double precision."""
        flat = [t.detach().double().flatten() for t in self.buffers.values()]
        return torch.cat(flat) if flat else self.weights.new_zeros(0, dtype=torch.float64)

    def set_buffers(self, flat: torch.Tensor) -> None:
        """Set the buffers, as :meth:`flat_buffers` gives them."""
        sizes = [t.numel() for t in self.buffers.values()]
        for tensor, values in zip(self.buffers.values(), flat.split(sizes), strict=True):
            tensor.copy_(values.view_as(tensor))

    @contextmanager
    def averaged_weights(self) -> Iterator[None]:
        """Use the averaged weights, if any, inside the block; then restore the model's own, bit for bit."""
        if self.averages is None:
            yield
            return
        own, averages = self.weights.clone(), self.world.whole(self.averages)
        self.world.wait()  # the weights may be in shared memory: all have copied them, or are done with them
        self.weights.copy_(averages)
        try:
            yield
        finally:
            self.world.wait()
            self.weights.copy_(own)

    def weights_by_name(self) -> dict[str, torch.Tensor]:
        """Every parameter once, under its first name, frozen ones too, and the buffers a model keeps."""
        return {**{name: p.detach() for name, p in self.model.named_parameters()}, **self.buffers}

    def moments_by_name(self) -> dict[str, torch.Tensor]:
        """Adam's first and second moments by parameter, from all processes, and the number of updates."""
        first, second = self.world.whole(self.first), self.world.whole(self.second)
        moments = self._views(first, "first.") | self._views(second, "second.")
        return {**moments, "updates": torch.tensor(self.updates)}

    def averages_by_name(self) -> dict[str, torch.Tensor]:
        """The averaged weights by parameter, from all processes; none where averaging is off."""
        return {} if self.averages is None else self._views(self.world.whole(self.averages))

    def restore(self, weights: Tensors, moments: Tensors, averages: Tensors) -> None:
        """Restore the state that was saved by name, bit for bit.

        Raises:
            RegardError: a name or shape differs from this model's.
        """
        _copy(weights, self.weights_by_name())
        self.world.wait()
        first, second = self._room(self.first), self._room(self.second)
        places = self._views(first, "first.") | self._views(second, "second.")
        _copy(moments, {**places, "updates": torch.tensor(0)})
        self.first.copy_(self.world.own(first))
        self.second.copy_(self.world.own(second))
        averaged = None if self.averages is None else self._room(self.averages)
        _copy(averages, {} if averaged is None else self._views(averaged))
        if self.averages is not None and averaged is not None:
            self.averages.copy_(self.world.own(averaged))
        self.updates = int(moments["updates"])
        for part in self._ranges:
            part.updates.fill_(self.updates)

    def _room(self, own: torch.Tensor) -> torch.Tensor:
        """A whole buffer to restore into: the own part itself, where that is all of it."""
        return own if len(own) == len(self.weights) else torch.zeros_like(self.weights)


def _matrices(parameters: Mapping[str, nn.Parameter]) -> list[str]:
    """The weight matrices of numbered layers, those of one shape together."""
    names = [name for name, p in parameters.items() if p.dim() == 2 and re.search(r"\.\d+\.", f".{name}")]
    return sorted(names, key=lambda name: parameters[name].shape)


def _places(
    parameters: Mapping[str, nn.Parameter], shards: int, matrices: Sequence[str] = ()
) -> tuple[dict[str, int], int, int]:
    """Where each parameter starts in the flat buffer, where the others follow ``matrices``, and where none decays more.

    The buffer can be cut into as many equal slices as there are shards; no slice's end cuts one of ``matrices``.
    """
    others = [name for name in parameters if name not in {*matrices}]
    lengths = {name: _round_up(p.numel()) for name, p in parameters.items()}
    least = max([-(-sum(lengths.values()) // shards), *(lengths[name] for name in matrices)])
    each = -(-least // _ALIGN) * _ALIGN
    while True:
        starts: dict[str, int] = {}
        end = 0
        for name in matrices:
            border = -(-end // each) * each
            starts[name] = border if border < end + lengths[name] and border > end else end
            end = starts[name] + lengths[name]
        first = border = end
        for decays in (True, False):
            for name in others:
                if (parameters[name].dim() >= 2) == decays:
                    starts[name], end = end, end + lengths[name]
            border = end if decays else border
        if end <= each * shards:
            return {**starts, "": each * shards}, first, border
        each += _round_up(max(1, (end - each * shards) // shards))


def _round_up(numbers: int) -> int:
    return -(-numbers // _ALIGN) * _ALIGN


def _laid_out(parameters: Mapping[str, nn.Parameter], starts: Mapping[str, int]) -> torch.Tensor:
    if not parameters:
        raise RegardError("it has nothing to train", "model")
    first = next(iter(parameters.values()))
    odd = [name for name, p in parameters.items() if p.dtype != first.dtype or p.device != first.device]
    if odd:
        raise RegardError("master weights must share one type and device", odd[0])
    flat = torch.zeros(starts[""], dtype=first.dtype, device=first.device)
    for name, parameter in parameters.items():
        flat[starts[name] : starts[name] + parameter.numel()] = parameter.detach().reshape(-1)
    return flat


def _layer(name: str) -> str:
    """``encoder.layers.0`` of ``encoder.layers.0.norm.weight``; the first part where no layer is numbered."""
    numbered = re.match(r"(.*?\.\d+)\.", name)
    return numbered[1] if numbered else name.split(".")[0]


def _copy(found: Tensors, places: Tensors) -> None:
    if odd := set(found) ^ set(places):
        raise RegardError("is in the checkpoint or in the model, but not in both", min(odd))
    for name, place in places.items():
        if found[name].shape != place.shape:
            raise RegardError(f"has shape {list(found[name].shape)} in the checkpoint, {list(place.shape)} here", name)
        place.copy_(found[name])

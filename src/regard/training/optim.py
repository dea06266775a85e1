"""Learning-rate schedules, and Adam over one flat buffer.

Schedules are pure functions of the step, counted from 1 [Vaswani17 §5.3, eq. 3]. A model's parameters are views of the
buffer, so a step of Adam [Kingma15] is a few long operations.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import nn

from regard.config import Training
from regard.system.errors import RegardError, UsageError
from regard.training.budget import Replanning

Schedule = Callable[[float], float]
Tensors = Mapping[str, torch.Tensor]
OPTIMISERS: dict[str, type[torch.optim.Adam]] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
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


class FlatOptimiser:
    """Adam or AdamW of a model whose parameters, gradients, moments and averages each lie end to end in one buffer.

    Parameters used at several places (tied) are held once. Weights of two and more dimensions come first and decay
    (AdamW); biases and norms follow and do not. Saved state is by parameter name and bit-exact.
    """

    def __init__(self, model: nn.Module, section: Training) -> None:
        self.model = model
        self.decay = section.ema
        self.updates = 0
        self.parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        every = dict(model.named_parameters(remove_duplicate=False))
        self.buffers = {name: t for name, t in model.state_dict().items() if name not in every}
        """Running averages of batch norm: saved with the weights, and changed by a pass instead of an update."""
        self._starts, self._border = _places(self.parameters)
        self.weights = _laid_out(self.parameters, self._starts)
        self.gradients = torch.zeros_like(self.weights)
        for name, parameter in self.parameters.items():
            parameter.data = self._view(self.weights, name)
            parameter.grad = self._view(self.gradients, name)
        self.averages = self.weights.clone() if self.decay else None
        self.first = torch.zeros_like(self.weights)
        self.second = torch.zeros_like(self.weights)
        self._adam = self._fused_adam(section)

    def _fused_adam(self, section: Training) -> torch.optim.Optimizer:
        """The fused Adam(W) of torch over two long ranges: what decays and what does not."""
        groups, states = [], []
        ranges = (0, self._border, section.weight_decay), (self._border, len(self.weights), 0.0)
        for start, end, weight_decay in ranges:
            if start == end:
                continue
            flat = nn.Parameter(self.weights[start:end])
            flat.grad = self.gradients[start:end]
            count = torch.zeros((), dtype=torch.float32, device=flat.device)
            moments = {"exp_avg": self.first[start:end], "exp_avg_sq": self.second[start:end]}
            states.append((flat, {"step": count, **moments}))
            groups.append({"params": [flat], "weight_decay": weight_decay})
        kind = OPTIMISERS[section.optimiser]
        adam = kind(groups, lr=section.rate, betas=(section.beta1, section.beta2), eps=section.epsilon, fused=True)
        for flat, state in states:
            adam.state[flat] = state
        return adam

    def _view(self, flat: torch.Tensor, name: str) -> torch.Tensor:
        parameter, start = self.parameters[name], self._starts[name]
        return flat[start : start + parameter.numel()].view(parameter.shape)

    def zero_gradients(self) -> None:
        """Before the first micro-batch of a step."""
        self.gradients.zero_()

    def norm(self) -> torch.Tensor:
        """The Euclidean norm of the whole gradient."""
        return torch.linalg.vector_norm(self.gradients)

    def norms(self) -> dict[str, float]:
        """The gradient's norm layer by layer, e.g. ``encoder.layers.0``."""
        groups: dict[str, list[torch.Tensor]] = {}
        for name in self.parameters:
            groups.setdefault(_layer(name), []).append(self._view(self.gradients, name))
        each = [torch.linalg.vector_norm(torch.stack(torch._foreach_norm(views))) for views in groups.values()]
        return dict(zip(groups, torch.stack(each).tolist(), strict=True))

    def update(self, rate: float, scale: float) -> None:
        """One update with the gradient times ``scale`` (token normalisation and clipping in one)."""
        self.gradients.mul_(scale)
        for group in self._adam.param_groups:
            group["lr"] = rate
        self._adam.step()
        self.updates += 1
        if self.averages is not None:  # young averages forget faster, so that the first weights do not stay in them
            decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
            self.averages.lerp_(self.weights, 1.0 - decay)

    def finite(self) -> bool:
        """Whether all weights, buffers, and averages if there are any, are numbers still."""
        found = [t for t in (self.weights, self.averages) if t is not None]
        return all(bool(t.isfinite().all()) for t in found) and self.buffers_finite()

    def buffers_finite(self) -> bool:
        """Whether all buffers are numbers still."""
        return all(bool(t.isfinite().all()) for t in self.buffers.values())

    def copy_buffers(self) -> dict[str, torch.Tensor]:
        """The buffers as they are, for :meth:`restore_buffers`."""
        return {name: t.clone() for name, t in self.buffers.items()}

    def restore_buffers(self, before: Tensors) -> None:
        """Restore the buffers from before a forward pass."""
        for name, tensor in before.items():
            self.buffers[name].copy_(tensor)

    @contextmanager
    def averaged_weights(self) -> Iterator[None]:
        """Use the averaged weights, if any, inside the block; then restore the model's own, bit for bit."""
        if self.averages is None:
            yield
            return
        own = self.weights.clone()
        self.weights.copy_(self.averages)
        try:
            yield
        finally:
            self.weights.copy_(own)

    def weights_by_name(self) -> dict[str, torch.Tensor]:
        """Every parameter once, under its first name, frozen ones too, and the buffers a model keeps."""
        return {**{name: p.detach() for name, p in self.model.named_parameters()}, **self.buffers}

    def moments_by_name(self) -> dict[str, torch.Tensor]:
        """Adam's first and second moments by parameter, and the number of updates."""
        moments = {f"first.{name}": self._view(self.first, name) for name in self.parameters}
        moments |= {f"second.{name}": self._view(self.second, name) for name in self.parameters}
        return {**moments, "updates": torch.tensor(self.updates)}

    def averages_by_name(self) -> dict[str, torch.Tensor]:
        """The averaged weights by parameter; none where averaging is off."""
        return {} if self.averages is None else {name: self._view(self.averages, name) for name in self.parameters}

    def restore(self, weights: Tensors, moments: Tensors, averages: Tensors) -> None:
        """Restore the state from the three ``…_by_name``, bit for bit.

        Raises:
            RegardError: a name or shape differs from this model's.
        """
        _copy(weights, self.weights_by_name())
        _copy(averages, self.averages_by_name())
        _copy(moments, self.moments_by_name())
        self.updates = int(moments["updates"])
        for state in self._adam.state.values():
            state["step"].fill_(self.updates)


def _places(parameters: Mapping[str, nn.Parameter]) -> tuple[dict[str, int], int]:
    """Where each parameter starts in the flat buffer, and the border between what decays and what does not."""
    starts: dict[str, int] = {}
    end = border = 0
    for decays in (True, False):
        for name, parameter in parameters.items():
            if (parameter.dim() >= 2) == decays:
                starts[name], end = end, end + -(-parameter.numel() // _ALIGN) * _ALIGN
        border = end if decays else border
    return {**starts, "": end}, border


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

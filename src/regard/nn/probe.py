"""Listening to a forward pass, and replacing what flows through it, from outside (ARCHITECTURE idea 2).

Two verbs. ``listen`` keeps what passes at named points; ``replace`` puts a function there. Both work in the training
forward and in decoding alike. The points: ``embedding`` and ``positions`` of encoder and decoder; of each attention, by
heads, ``query``, ``key``, ``value``, ``score`` (before scale and mask), ``bias`` (where positions add to scores),
``mask`` (where a token must not see what comes; true there), ``weight`` and ``context``; of each sub-layer ``output``;
of each residual connection ``residual``. Names are the parts' paths: ``encoder.0.attention.weight``,
``decoder.2.cross.context``, ``decoder.1.feedforward.output``. ``*`` matches anything.

    with listen(["encoder.*.attention.weight"]) as heard:
        model.encode(source)
    heard["encoder.0.attention.weight"]      # one tensor (heads, queries, keys) a sentence

Listening or replacing inside attention makes those layers compute attention the reference way; nothing else changes.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from torch import Tensor, nn

Heard = dict[str, list[Tensor]]
INSIDE = ("query", "key", "value", "score", "bias", "mask", "weight", "context")
"""The points inside attention: one tensor a sequence, heads first; at the other points one tensor a call."""


@dataclass
class Probe:
    """What is listened to and replaced at present."""

    patterns: tuple[str, ...] = ()
    heard: Heard = field(default_factory=dict)
    replacements: tuple[tuple[str, Callable[[Tensor], Tensor]], ...] = ()

    def touches(self, name: str) -> bool:
        """Whether the point is listened to or replaced."""
        replaced = (pattern for pattern, _ in self.replacements)
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in (*self.patterns, *replaced))

    def at(self, name: str, value: Tensor) -> Tensor:
        """Let ``value`` pass at the point ``name``."""
        for pattern, function in self.replacements:
            if fnmatch.fnmatchcase(name, pattern):
                value = function(value)
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in self.patterns):
            self.heard.setdefault(name, []).append(value)
        return value


_PROBES: ContextVar[tuple[Probe, ...]] = ContextVar("probes", default=())


@contextmanager
def _with(probe: Probe) -> Iterator[Probe]:
    token = _PROBES.set((*_PROBES.get(), probe))
    try:
        yield probe
    finally:
        _PROBES.reset(token)


@contextmanager
def listen(names: Iterable[str]) -> Iterator[Heard]:
    """Keep the tensors that pass at the points ``names`` (patterns with ``*``): name → tensors in order of passing."""
    with _with(Probe(patterns=tuple(names))) as probe:
        yield probe.heard


@contextmanager
def replace(name: str, function: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Replace what passes at the points ``name`` by ``function`` of it (same shape)."""
    with _with(Probe(replacements=((name, function),))):
        yield


def passing(name: str, value: Tensor) -> Tensor:
    """Called by the parts: ``value`` passes at the point ``name``; costs nothing while nobody listens."""
    for probe in _PROBES.get():
        value = probe.at(name, value)
    return value


def passing_inside(path: str, point: str, value: Tensor) -> Tensor:
    """The same at a point of the part at ``path``."""
    return passing(f"{path}.{point}", value)


def inside(path: str) -> bool:
    """Whether anybody listens or replaces inside the attention at ``path``."""
    probes = _PROBES.get()
    return bool(probes) and any(probe.touches(f"{path}.{point}") for probe in probes for point in INSIDE)


def name_parts(model: nn.Module) -> None:
    """Tell every part its path, by which its points are named; ``layers`` is left out (``encoder.0.attention``)."""
    for path, module in model.named_modules():
        if hasattr(module, "path"):
            module.path = path.replace(".layers.", ".")

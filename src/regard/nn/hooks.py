"""Forward hooks by name: capture intermediate tensors, or replace them, from outside the model (ARCHITECTURE idea 2).

``capture`` records the tensors at named points; ``intervene`` replaces them by a function's result. Both work in the
training forward and in decoding. Points: ``embedding`` and ``positions`` of encoder and decoder; of each attention, by
heads, ``query``, ``key``, ``value``, ``score`` (before scale and mask), ``bias`` (where positions add to scores),
``mask`` (true where a token must not see what comes), ``weight`` and ``context``; of attention with rotary positions
``places`` (the tokens' positions, by which queries and keys are turned); of each sub-layer, and recurrent layer,
``output``; of each residual
connection ``residual``. Names are the modules' paths: ``encoder.0.attention.weight``,
``decoder.2.cross.context``, ``decoder.1.feedforward.output``. ``*`` matches anything. ::

    with capture(["encoder.*.attention.weight"]) as heard:
        model.encode(source)
    heard["encoder.0.attention.weight"]      # one tensor (heads, queries, keys) a sentence

A hook inside attention makes those layers compute attention by the reference; nothing else changes.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from torch import Tensor, nn

Captured = dict[str, list[Tensor]]
Point = Callable[[str, Tensor], Tensor]
INSIDE = ("query", "key", "value", "score", "bias", "mask", "weight", "context")
"""The points inside attention: one tensor a sequence, heads first; at the other points one tensor a call."""
_PROBES: ContextVar[tuple[Hooks, ...]] = ContextVar("probes", default=())


@dataclass
class Hooks:
    """The active hooks."""

    patterns: tuple[str, ...] = ()
    heard: Captured = field(default_factory=dict)
    replacements: tuple[tuple[str, Callable[[Tensor], Tensor]], ...] = ()

    def touches(self, name: str) -> bool:
        """Whether the point is captured or replaced."""
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


@contextmanager
def _with(probe: Hooks) -> Iterator[Hooks]:
    token = _PROBES.set((*_PROBES.get(), probe))
    try:
        yield probe
    finally:
        _PROBES.reset(token)


@contextmanager
def capture(names: Iterable[str]) -> Iterator[Captured]:
    """Keep the tensors that pass at the points ``names`` (patterns with ``*``): name → tensors in order of passing."""
    with _with(Hooks(patterns=tuple(names))) as probe:
        yield probe.heard


@contextmanager
def intervene(name: str, function: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """Replace what passes at the points ``name`` by ``function`` of it (same shape)."""
    with _with(Hooks(replacements=((name, function),))):
        yield


def hook_point(name: str, value: Tensor) -> Tensor:
    """Hook point called by the layers: ``value`` at the point ``name``; free when no hook is active."""
    for probe in _PROBES.get():
        value = probe.at(name, value)
    return value


def inside(path: str) -> bool:
    """Whether a hook is active inside the attention at ``path``."""
    probes = _PROBES.get()
    return bool(probes) and any(probe.touches(f"{path}.{point}") for probe in probes for point in INSIDE)


def point_inside(path: str) -> Point | None:
    """The hook on values inside the attention at ``path``, by the names of points; None where none is active."""
    return (lambda point, value: hook_point(f"{path}.{point}", value)) if inside(path) else None


def active() -> bool:
    """Whether any hook is active."""
    return bool(_PROBES.get())


def name_parts(model: nn.Module) -> None:
    """Tell every part its path, by which its points are named; ``layers`` is left out (``encoder.0.attention``)."""
    for path, module in model.named_modules():
        if hasattr(module, "path"):
            module.path = path.replace(".layers.", ".")

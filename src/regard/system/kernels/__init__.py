"""Native code over NumPy arrays (``native/``): the speed of finished models, and of attention in training. No torch.

Where it was not compiled, because there was no compiler, :func:`available` says so and torch computes. Each kernel is
compiled for several instruction sets; the processor's fastest is used, or the one that :data:`VARIABLE` names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module

from regard.system.errors import UsageError

VARIABLE = "REGARD_KERNELS"
"""Environment variable: ``off``, or the name of an instruction set."""
ACTIVATIONS = {"none": 0, "relu": 1, "gelu": 2, "gelu_tanh": 3, "swish": 4}
"""The kernels' numbers of the recipe's words."""
NORMS = {"layer": 0, "rms": 1, "affine": 2}
"""The kernels' numbers of norms; ``affine`` is batch norm in evaluation, whose averages are part of gain and bias."""

MOST_THREADS = 8
"""Threads that compute one call: more wait for the same memory."""


@cache
def available() -> bool:
    """Whether the kernels were compiled, and are not switched off; the instruction set asked for is then in use.

    Raises:
        UsageError: the environment names an instruction set that is not here.
    """
    wanted = os.environ.get(VARIABLE, "")
    if wanted == "off":
        return False
    try:
        import_module("regard.system.kernels._native")
    except ImportError:  # not compiled, or for another Python or system library
        return False
    if wanted:
        use(wanted)
    return True


def instruction_sets() -> list[str]:
    """Those that this processor has and kernels were compiled for, fastest first; the kernels must be available."""
    from regard.system.kernels import _native

    return _native.sets()


def in_use() -> str:
    """The instruction set that kernels compute by; ``none`` where there are none."""
    if not available():
        return "none"
    from regard.system.kernels import _native

    return _native.in_use()


def use(name: str) -> None:
    """Compute by one instruction set from now on.

    Raises:
        UsageError: there is no such set here.
    """
    from regard.system.kernels import _native

    if not _native.use(name):
        known = ", ".join(instruction_sets())
        raise UsageError(f"{name!r} is no instruction set of this machine; try {known} or off", VARIABLE)


def use_threads(count: int) -> None:
    """Compute each call by so many threads from now on, at most :data:`MOST_THREADS`; at first there is one.

    Numbers are the same for any count. A forked process begins with one thread. Nothing happens without kernels.
    """
    if available():
        from regard.system.kernels import _native

        _native.set_threads(max(1, min(count, MOST_THREADS)))


@contextmanager
def one_thread() -> Iterator[None]:
    """Meanwhile each call is computed by the thread that calls."""
    if not available():
        yield
        return
    from regard.system.kernels import _native

    before = _native.threads()
    _native.set_threads(1)
    try:
        yield
    finally:
        _native.set_threads(before)

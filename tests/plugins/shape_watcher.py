"""Watches functions of ``regard`` return: a dimension letter in a name means one size within a call.

``ids_T`` must have one dimension and ``x_TD`` two, the first as large as that of ``ids_T``. A digit makes a dimension
of its own (``offsets_B1``). Only tensors and arrays that are local when a function returns are looked at; a function
that raises is not. Always on below tests/nn and tests/models; elsewhere ask for it with
``@pytest.mark.usefixtures("watch_shapes")``.
"""

from __future__ import annotations

import dis
import inspect
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest

HERE = Path(__file__).parents[1]
WATCHED = tuple(str(HERE.parent / "src" / "regard" / part) + "/" for part in ("nn", "models", "data", "decoding"))
ALWAYS = tuple(str(HERE / part) + "/" for part in ("nn", "models"))
SUFFIX = re.compile(r"^[a-z_].*_([A-Z][A-Z0-9]*)$")
DIMENSION = re.compile(r"[A-Z][0-9]*")
RETURNS = {dis.opmap[name] for name in ("RETURN_VALUE", "RETURN_CONST", "YIELD_VALUE") if name in dis.opmap}


@cache
def dimensions(name: str) -> list[str]:
    """The dimensions a name ends in: ``["H", "T", "S"]`` for ``weight_HTS``, none for a plain name."""
    suffix = SUFFIX.match(name)
    return DIMENSION.findall(suffix.group(1)) if suffix else []


def shape_of(value: object) -> tuple[int, ...] | None:
    """The shape of a tensor or an array; ``None`` for anything else. torch is never imported for it."""
    torch = sys.modules.get("torch")
    if isinstance(value, np.ndarray) or (torch is not None and isinstance(value, torch.Tensor)):
        return tuple(value.shape)
    return None


def contradictions(values: Mapping[str, Any]) -> list[str]:
    """What does not agree among named values: a rank with its name, or one letter's size with another's."""
    found: list[str] = []
    first: dict[str, tuple[int, str]] = {}
    for name, value in values.items():
        letters = dimensions(name)
        shape = shape_of(value) if letters else None
        if shape is None:
            continue
        if len(shape) != len(letters):
            found.append(f"{name} has shape {shape}")
            continue
        for letter, size in zip(letters, shape, strict=True):
            known, owner = first.setdefault(letter, (size, name))
            if known != size:
                found.append(f"{letter} is {known} in {owner} and {size} in {name}")
    return found


@cache
def names_dimensions(code: CodeType) -> bool:
    """Whether a local name of a function may end in dimensions; what a module or a class names is not known before."""
    known = code.co_flags & inspect.CO_OPTIMIZED
    return not known or any(map(dimensions, (*code.co_varnames, *code.co_cellvars, *code.co_freevars)))


class ShapeWatcher:
    """Collects what contradicts itself when a watched function returns; :meth:`profile` is for ``sys.setprofile``."""

    def __init__(self, folders: tuple[str, ...] = WATCHED) -> None:
        self.folders = folders
        self.found: list[str] = []
        self.calls = 0
        self._watched: dict[CodeType, bool] = {}

    def profile(self, frame: FrameType, event: str, _: object) -> None:
        """Look at what returns; every other event is most of them, and has to cost little."""
        if event != "return":
            return
        code = frame.f_code
        watched = self._watched.get(code)
        if watched is None:
            watched = self._watched[code] = code.co_filename.startswith(self.folders)
        if watched and code.co_code[frame.f_lasti] in RETURNS:
            self.calls += 1
            for text in contradictions(frame.f_locals) if names_dimensions(code) else ():
                self.found.append(f"{Path(code.co_filename).name}:{frame.f_lineno} {code.co_qualname}: {text}")

    def __enter__(self) -> ShapeWatcher:
        self._before = sys.getprofile()
        sys.setprofile(self.profile)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self._before)


@pytest.fixture
def watch_shapes() -> Iterator[ShapeWatcher]:
    """Fails the test at its end if a letter meant two sizes within a call."""
    watcher = ShapeWatcher()
    with watcher:
        yield watcher
    if watcher.found:
        pytest.fail("a dimension letter means two sizes:\n" + "\n".join(dict.fromkeys(watcher.found)))


@pytest.fixture(autouse=True)
def _watched_by_default(request: pytest.FixtureRequest) -> None:
    if str(request.path).startswith(ALWAYS):
        request.getfixturevalue("watch_shapes")

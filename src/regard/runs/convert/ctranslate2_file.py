"""Reader and writer of ``model.bin``, the file of CTranslate2's variables, versions 2 to 6.

Its version, the name and revision of a specification, then each variable: name, sizes, type, numbers; then aliases,
names of variables that are equal to others. All numbers are little-endian, all strings have their length and end in a
zero. Nothing is believed that the file itself has no room for; its numbers are read when they are asked for.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

import torch
from torch import Tensor

from regard.system import disk
from regard.system.errors import RegardError

VERSIONS = range(2, 7)
TYPES = (torch.float32, torch.int8, torch.int16, torch.int32, torch.float16, torch.bfloat16)
BY_SIZE = {4: torch.float32, 2: torch.int16, 1: torch.int8}
"""Types before version 4, which wrote the bytes of a number alone."""
MOST_SIZES = 8
"""Dimensions of a variable; CTranslate2's have three at most."""
MOST_ALIASES = 4
"""Times that all aliases may be as large as the file; a tied table has two."""
UNSAVED = 1000.0
"""The scale of int16 where the file has none."""


@dataclass(frozen=True)
class _Variable:
    """Where the numbers of a variable lie."""

    shape: tuple[int, ...]
    type: torch.dtype
    begin: int

    @property
    def size(self) -> int:
        """In bytes."""
        return prod(self.shape) * self.type.itemsize


@dataclass(frozen=True)
class ModelFile(Mapping[str, Tensor]):
    """The variables of a file by name, aliases among them, as they are stored.

    Args:
        path: of the file.
        specification, revision: what the variables are of, e.g. ``TransformerSpec``, 7.
        version: of the file's own form.
        variables: by name.
        aliases: to the names of variables.
    """

    path: Path
    specification: str
    revision: int
    version: int
    variables: Mapping[str, _Variable]
    aliases: Mapping[str, str]
    _content: mmap.mmap = field(repr=False)

    def __getitem__(self, name: str) -> Tensor:
        found = self.variables[self.aliases.get(name, name)]
        raw = bytearray(self._content[found.begin : found.begin + found.size])
        return torch.frombuffer(raw, dtype=found.type).view(found.shape) if raw else torch.empty(found.shape)

    def __iter__(self) -> Iterator[str]:
        return iter((*self.variables, *self.aliases))

    def __len__(self) -> int:
        return len(self.variables) + len(self.aliases)

    def __contains__(self, name: object) -> bool:
        return name in self.variables or name in self.aliases

    def shape(self, name: str) -> tuple[int, ...]:
        """The sizes of a variable."""
        return self.variables[self.aliases.get(name, name)].shape

    def same(self, one: str, other: str) -> bool:
        """Whether two names are of the same numbers."""
        first, second = (self.aliases.get(name, name) for name in (one, other))
        return first == second or torch.equal(self.numbers(first), self.numbers(second))

    def numbers(self, name: str) -> Tensor:
        """A variable in float32; int8 and int16 are divided by their scales, one for each row or one for all.

        Raises:
            RegardError: it has no scale that fits.
        """
        held, scale = self[name], f"{self.aliases.get(name, name)}_scale"
        if held.dtype not in (torch.int8, torch.int16):
            return held.float()
        if scale in self:
            scales = self[scale].float()
        elif held.dtype == torch.int16:
            scales = torch.tensor(UNSAVED)
        else:
            raise RegardError(f"lacks {scale!r}, the scale of {name!r}", str(self.path))
        if scales.dim() and scales.shape != held.shape[:1]:
            raise RegardError(f"{scale!r} is {[*scales.shape]}, its rows are {[*held.shape[:1]]}", str(self.path))
        return held.float() / (scales.view(-1, *[1] * (held.dim() - 1)) if scales.dim() else scales)


class _Reader:
    """Takes numbers and strings from bytes, from the first on."""

    def __init__(self, content: mmap.mmap) -> None:
        self.content, self.place = content, 0

    def take(self, count: int) -> int:
        """Where so many bytes begin.

        Raises:
            EOFError: the file has fewer.
        """
        begin, self.place = self.place, self.place + count
        if self.place > len(self.content):
            raise EOFError
        return begin

    def number(self, form: str) -> int:
        """One of B, H or I: of one, two or four bytes."""
        found: int = struct.unpack_from(f"<{form}", self.content, self.take(struct.calcsize(form)))[0]
        return found

    def text(self) -> str:
        """A string; the zero behind it is left out."""
        count = self.number("H")
        begin = self.take(count)
        return self.content[begin : begin + count].split(b"\0")[0].decode("utf-8")

    def variable(self, version: int) -> _Variable:
        """A variable, its numbers skipped.

        Raises:
            ValueError: its type is unknown, or its sizes do not fit its bytes.
        """
        sizes = self.number("B")
        if sizes > MOST_SIZES:
            raise ValueError(f"a variable has {sizes} dimensions")
        shape = tuple(self.number("I") for _ in range(sizes))
        kind, count = self.number("B"), self.number("I")
        type = BY_SIZE.get(kind) if version < 4 else (*TYPES, None)[min(kind, len(TYPES))]
        if type is None:
            raise ValueError(f"the type {kind} of a variable is unknown")
        held = count * type.itemsize if version < 4 else count
        if prod(shape) * type.itemsize != held or prod(size or 1 for size in shape) > len(self.content):
            raise ValueError(f"a variable of the sizes {[*shape]} has {held} bytes")
        return _Variable(shape, type, self.take(held))


def read_model_file(path: Path) -> ModelFile:
    """The variables of a file; only their names and places are read.

    Raises:
        RegardError: it is no such file, of an unknown version, or damaged.
    """
    disk.refuse_irregular(path, "file of weights")
    try:
        with path.open("rb") as stream:
            content = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        reader = _Reader(content)
        version = reader.number("I")
        if version not in VERSIONS:
            known = f"{VERSIONS[0]} to {VERSIONS[-1]}"
            raise RegardError(f"has the version {version}; CTranslate2's {known} are read", str(path))
        named, revision = reader.text(), reader.number("I")
        variables: dict[str, _Variable] = {}
        for _ in range(reader.number("I")):
            if (name := reader.text()) in variables:
                raise ValueError(f"{name!r} comes twice")
            variables[name] = reader.variable(version)
        count = reader.number("I") if version >= 3 else 0
        aliases = {reader.text(): reader.text() for _ in range(count)}
    except EOFError:
        raise RegardError("is cut short, or no model.bin of CTranslate2; bring it again", str(path)) from None
    except (ValueError, OSError) as error:
        raise RegardError(f"is damaged: {error}", str(path)) from None
    if strange := sorted(name for name, first in aliases.items() if first not in variables or name in variables):
        raise RegardError(f"is damaged: {strange[0]!r} stands for no variable", str(path))
    if sum(variables[first].size for first in aliases.values()) > MOST_ALIASES * len(content):
        raise RegardError("is damaged: its aliases are of far more numbers than it holds", str(path))
    return ModelFile(path, named, revision, version, variables, aliases, content)


def model_file(
    specification: str, revision: int, variables: Mapping[str, Tensor], aliases: Mapping[str, str]
) -> Iterator[bytes]:
    """The content of a file of the last version, in pieces; CTranslate2 itself sorts the names."""
    yield struct.pack("<I", VERSIONS[-1]) + _text(specification) + struct.pack("<II", revision, len(variables))
    for name, held in sorted(variables.items()):
        sizes = struct.pack(f"<B{held.dim()}I", held.dim(), *held.shape)
        yield _text(name) + sizes + struct.pack("<BI", TYPES.index(held.dtype), held.numel() * held.element_size())
        yield held.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    yield struct.pack("<I", len(aliases))
    for alias, name in sorted(aliases.items()):
        yield _text(alias) + _text(name)


def _text(text: str) -> bytes:
    held = text.encode() + b"\0"
    return struct.pack("<H", len(held)) + held

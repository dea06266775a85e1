"""Reader of weights that ``torch.save`` wrote (``pytorch_model.bin``), without unpickling: nothing of the file is run.

The file is a zip: numbers as they lie in memory, and a pickle that says which are of which tensor. The few operations
that a dictionary of tensors needs are interpreted here, the few names that it needs are compared, and any other is
refused.
"""

from __future__ import annotations

import io
import pickletools
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.system import disk
from regard.system.errors import RegardError

MOST = 1 << 20
"""Bytes that the pickle may have; that of a model of a thousand tensors has 170 thousand."""
ORDERED = "collections OrderedDict"
REBUILD, PARAMETER = "torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_parameter"
STORAGES = {
    "torch FloatStorage": torch.float32,
    "torch HalfStorage": torch.float16,
    "torch BFloat16Storage": torch.bfloat16,
    "torch DoubleStorage": torch.float64,
    "torch LongStorage": torch.int64,
    "torch IntStorage": torch.int32,
    "torch BoolStorage": torch.bool,
}
NAMES = {ORDERED, REBUILD, PARAMETER, *STORAGES}
MOST_DIMENSIONS = 8
MOST_NAMES = 4
"""Times that all tensors may be as large as the file: a tied table has four names at most."""


@dataclass(frozen=True)
class Name:
    """A name that the pickle mentions."""

    name: str


class Refused(Exception):
    """What no dictionary of tensors has; its text says what."""


def read_torch_file(path: Path) -> dict[str, Tensor]:
    """The tensors of a file by name.

    Raises:
        RegardError: the file is damaged, or holds anything else than tensors.
    """
    disk.refuse_irregular(path, "file of weights")
    try:
        with zipfile.ZipFile(path) as archive:
            return _tensors(archive, path.stat().st_size)
    except Refused as error:
        message = f"{error}; only dictionaries of tensors are read, and nothing in a file is ever run"
        raise RegardError(message, str(path)) from None
    except zipfile.BadZipFile:
        with path.open("rb") as stream:
            if stream.read(4) == b"PK\3\4":
                raise RegardError("is cut short or damaged; bring it again", str(path)) from None
        message = "is no zip as torch.save writes it since version 1.6; save it again with a later torch"
        raise RegardError(message, str(path)) from None
    except (ValueError, LookupError, ArithmeticError, TypeError, RuntimeError, EOFError, OSError) as error:
        raise RegardError(f"is damaged: {str(error).partition(chr(10))[0]}", str(path)) from None


def _tensors(archive: zipfile.ZipFile, size: int) -> dict[str, Tensor]:
    entries = {entry.filename: entry for entry in archive.infolist()}
    if sum(entry.file_size for entry in archive.infolist()) > size:
        raise Refused("holds entries that are larger than the file, or lie in one another")
    pickles = [name for name in entries if name.endswith("/data.pkl")]
    if len(pickles) != 1:
        raise Refused("does not hold just one pickle")
    folder = pickles[0].removesuffix("data.pkl")
    storages: dict[str, bytes] = {}

    def read(name: str) -> bytes:
        entry = entries[folder + name]
        if entry.compress_type != zipfile.ZIP_STORED:
            raise Refused(f"holds {name!r} compressed")
        return archive.read(entry)

    def load(name: str) -> bytes:
        if name not in storages:
            storages[name] = bytearray(read(f"data/{name}"))  # type: ignore[assignment]
        return storages[name]

    if f"{folder}byteorder" in entries and read("byteorder") != b"little":
        raise Refused("holds numbers of another order of bytes")
    if entries[pickles[0]].file_size > MOST:
        raise Refused("holds a pickle that is too large")
    found = Machine(load).run(read("data.pkl"))
    if not isinstance(found, dict):
        raise Refused("holds no dictionary")
    nested = [one for one in found.values() if isinstance(one, dict)]
    if len(nested) == 1 and not any(isinstance(one, Tensor) for one in found.values()):
        found = nested[0]  # a checkpoint, whose dictionary of weights is one of its values
    if not all(isinstance(name, str) and isinstance(tensor, Tensor) for name, tensor in found.items()):
        raise Refused("holds more than tensors by name")
    if sum(tensor.nbytes for tensor in found.values()) > MOST_NAMES * size:
        raise Refused("names the same numbers far too often")
    return found


@dataclass
class Machine:
    """Interprets a pickle of tensors.

    Args:
        load: the bytes of a storage by its name.
    """

    load: Callable[[str], bytes]
    stack: list[Any] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)
    memo: dict[int, Any] = field(default_factory=dict)

    def run(self, content: bytes) -> Any:
        """What the pickle is of.

        Raises:
            Refused: it needs more than a dictionary of tensors does.
        """
        for operation, argument, _ in pickletools.genops(io.BytesIO(content)):
            name = operation.name
            if name == "STOP":
                return self.stack.pop()
            if name not in OPERATIONS:
                raise Refused(f"asks for the operation {name}")
            OPERATIONS[name](self, argument)
        raise EOFError

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def pop_from(self, place: int) -> list[Any]:
        """What lies on the stack from a place on; a negative one counts from the top."""
        found = self.stack[place:]
        del self.stack[place:]
        return found

    def keep(self, place: int) -> None:
        self.memo[place] = self.stack[-1]

    def name(self, name: str) -> None:
        """Mention a name, ``module name``."""
        if name not in NAMES:
            raise Refused(f"mentions {name.replace(' ', '.')!r}")
        self.push(Name(name))

    def items(self, pairs: list[Any]) -> None:
        """Put names and values into the dictionary below them."""
        if not isinstance(self.stack[-1], dict):
            raise Refused("puts items into something else than a dictionary")
        if not all(isinstance(name, str) for name in pairs[::2]):  # to hash a tuple of tuples may take forever
            raise Refused("has keys that are no names")
        self.stack[-1].update(zip(pairs[::2], pairs[1::2], strict=True))

    def storage(self) -> None:
        """A storage: ``("storage", its type, its name, where it was, how many numbers)``."""
        match self.stack.pop():
            case ("storage", Name(type), str(name), _, int(count)) if type in STORAGES:
                dtype, held = STORAGES[type], self.load(name)
            case _:
                raise Refused("asks for another storage")
        if len(held) < count * dtype.itemsize:
            raise ValueError(f"the storage {name!r} is shorter than its tensors")
        self.push(torch.frombuffer(held, dtype=dtype) if held else torch.empty(0, dtype=dtype))

    def call(self) -> None:
        """One of the functions that make a tensor, or an empty dictionary."""
        arguments, function = self.stack.pop(), self.stack.pop()
        name = function.name if isinstance(function, Name) else None
        if name == ORDERED and arguments == ():
            self.push({})
        elif name == REBUILD:
            self.push(_tensor(*arguments[:4]))
        elif name == PARAMETER:
            self.push(arguments[0])
        else:
            raise Refused("calls something")

    def build(self) -> None:
        """The further state of a dictionary, which says of which module each tensor was; it is not read."""
        self.stack.pop()
        if not isinstance(self.stack[-1], dict):
            raise Refused("builds something else than a dictionary")


def _tensor(storage: Tensor, first: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Tensor:
    sizes = all(isinstance(one, tuple) and len(one) <= MOST_DIMENSIONS for one in (shape, strides))
    plain = sizes and isinstance(storage, Tensor) and all(isinstance(one, int) for one in (first, *shape, *strides))
    if not plain:
        raise Refused("makes a tensor of something else than numbers and sizes")
    if prod(shape) > len(storage):
        raise ValueError("a tensor is larger than its storage")
    return storage.as_strided(shape, strides, first)


OPERATIONS: Mapping[str, Callable[[Machine, Any], None]] = {
    **dict.fromkeys(("PROTO", "FRAME"), lambda machine, _: None),
    "EMPTY_DICT": lambda machine, _: machine.push({}),
    "EMPTY_TUPLE": lambda machine, _: machine.push(()),
    "MARK": lambda machine, _: machine.marks.append(len(machine.stack)),
    "NONE": lambda machine, _: machine.push(None),
    "NEWTRUE": lambda machine, _: machine.push(True),
    "NEWFALSE": lambda machine, _: machine.push(False),
    **dict.fromkeys(
        ("BINUNICODE", "SHORT_BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"), Machine.push
    ),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT"), Machine.keep),
    "MEMOIZE": lambda machine, _: machine.keep(len(machine.memo)),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), lambda machine, place: machine.push(machine.memo[place])),
    "GLOBAL": Machine.name,
    "STACK_GLOBAL": lambda machine, _: machine.name(" ".join(machine.pop_from(-2))),
    "TUPLE": lambda machine, _: machine.push(tuple(machine.pop_from(machine.marks.pop()))),
    "TUPLE1": lambda machine, _: machine.push(tuple(machine.pop_from(-1))),
    "TUPLE2": lambda machine, _: machine.push(tuple(machine.pop_from(-2))),
    "TUPLE3": lambda machine, _: machine.push(tuple(machine.pop_from(-3))),
    "BINPERSID": lambda machine, _: machine.storage(),
    "REDUCE": lambda machine, _: machine.call(),
    "SETITEM": lambda machine, _: machine.items([machine.stack.pop(-2), machine.stack.pop()]),
    "SETITEMS": lambda machine, _: machine.items(machine.pop_from(machine.marks.pop())),
    "BUILD": lambda machine, _: machine.build(),
}
"""What a dictionary of tensors needs."""

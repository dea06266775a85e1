"""Readers of Marian's files: ``.npz`` and ``.bin`` of weights, with the settings inside, and YAML as Marian writes it.

All are read by hand: nothing is unpickled, and no size that a file claims takes memory that the file does not have.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite, prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from regard.runs.convert.hub import Fields
from regard.system import disk
from regard.system.errors import RegardError

SETTINGS, SCALE = "special:model.yml", "_QuantMultA"
"""The tensor that is the settings, and the end of the names of those that scale activations in int8."""
FLOATS, BYTES, INTS = 0x404, 0x101, 0x4101
"""Numbers of types in a ``.bin``: float32; bytes; and int8 for a processor of any kind, with their multiplier."""
MOST_DIMENSIONS = 8
_NPY = re.compile(
    rb"\{'descr': '[<|]([fiu][1248])', 'fortran_order': (True|False), 'shape': \(([0-9]{0,18}(?:, ?[0-9]{0,18}){0,7})\)"
    rb", \}\s*"
)
_ENTRY, _ITEM = re.compile(r"([\w.:-]+):(?: +(.*))?"), re.compile(r" *- +(.*)")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U00[01][0-9a-fA-F]{5}|.)")
_SIGNS = dict(zip("0abtnvfreN_LP", "\0\a\b\t\n\v\f\r\x1b\x85\xa0\u2028\u2029", strict=True))
_WORDS: dict[str, object] = {"true": True, "false": False, "null": None, "~": None, "": None}


def read_marian_file(path: Path) -> tuple[dict[str, NDArray[np.float32]], Fields]:
    """The tensors by name, and the settings, of a ``.npz`` or ``.bin``.

    Tensors are in float32, of the shapes that the file gives; weights of int8 are divided by their multipliers.

    Raises:
        RegardError: the file is damaged, or holds numbers of another type, or no settings.
    """
    disk.refuse_irregular(path, "file of weights")
    tensors = dict((_of_npz if path.suffix == ".npz" else _of_binary)(path))
    if SETTINGS not in tensors:
        raise RegardError(f"has no {SETTINGS!r}: is no model of Marian, or of a version before 1.2", str(path))
    text = tensors.pop(SETTINGS).astype(np.uint8).tobytes().rstrip(b"\0")
    floats = {name: tensor for name, tensor in tensors.items() if not name.startswith("special:")}
    return floats, parse_settings(text, str(path))


def _of_npz(path: Path) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Name and tensor of each member."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            stored = all(entry.compress_type == zipfile.ZIP_STORED for entry in entries)
            if not stored or sum(entry.file_size for entry in entries) > path.stat().st_size:
                raise RegardError("holds tensors compressed, or larger than the file", str(path))
            for entry in entries:
                name = entry.filename.removesuffix(".npy")
                if not name.endswith(SCALE):
                    yield name, _member(archive.read(entry), name, str(path))
    except zipfile.BadZipFile:
        raise RegardError("is cut short or damaged, or no .npz; bring it again", str(path)) from None
    except (ValueError, KeyError, EOFError, OSError, RuntimeError, NotImplementedError) as error:
        raise RegardError(f"is damaged: {error}", str(path)) from None


def _member(content: bytes, name: str, where: str) -> NDArray[np.float32]:
    """The array of a ``.npy``."""
    long = content[6:7] != b"\1"
    begin = 12 if long else 10
    end = begin + int.from_bytes(content[8:begin], "little")
    header = _NPY.fullmatch(content[begin:end]) if content[:6] == b"\x93NUMPY" else None
    if header is None:
        raise RegardError(f"{name!r} is damaged, or holds no plain numbers", where)
    kind = np.dtype(header[1].decode())
    shape = [int(size) for size in header[3].replace(b" ", b"").split(b",") if size]
    if prod(shape) * kind.itemsize != len(content) - end:
        raise RegardError(f"{name!r} is damaged: {shape} numbers are not {len(content) - end:,} bytes", where)
    numbers = np.frombuffer(content, kind, offset=end).astype(np.float32)
    return numbers.reshape(shape, order="F" if header[2] == b"True" else "C")


@dataclass
class _Bytes:
    """A file that is read from its beginning on; what it claims to hold beyond its end is refused."""

    content: NDArray[np.uint8]
    where: str
    place: int = 0

    def take(self, count: int) -> NDArray[np.uint8]:
        if count > len(self.content) - self.place:
            raise RegardError(f"is cut short or damaged: {count:,} bytes are missing at {self.place:,}", self.where)
        self.place += count
        return self.content[self.place - count : self.place]

    def numbers(self, count: int) -> list[int]:
        """Whole numbers of eight bytes."""
        return [int(number) for number in self.take(8 * count).view("<u8")]


def _of_binary(path: Path) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Name and tensor of each entry; the headers come first, then the names, shapes and numbers of all."""
    size, where = path.stat().st_size, str(path)
    file = _Bytes(np.memmap(path, np.uint8, "r") if size else np.zeros(0, np.uint8), where)
    version, count = file.numbers(2)
    if version != 1:
        raise RegardError(f"is of version {version:,}, or no model of Marian; version 1 is read", where)
    headers = np.array(file.numbers(4 * count), object).reshape(-1, 4).tolist()
    names = [file.take(length).tobytes().rstrip(b"\0").decode("utf-8", "replace") for length, *_ in headers]
    shapes = [file.take(4 * rank).view("<i4").tolist() for _, _, rank, _ in headers]
    (padding,) = file.numbers(1)
    file.take(padding)
    for name, shape, (_, kind, _, length) in zip(names, shapes, headers, strict=True):
        content = file.take(length)
        if not name.endswith(SCALE):
            yield name, _entry(content, name, shape, kind, where)


def _entry(content: NDArray[np.uint8], name: str, shape: list[int], kind: int, where: str) -> NDArray[np.float32]:
    """The tensor of an entry, which may be filled up; in int8 all but tables of embeddings are turned."""
    if kind not in (FLOATS, BYTES, INTS):
        message = f"{name!r} has the type {kind:#x}, which is not supported: only float32 and intgemm8 are read"
        raise RegardError(message, where)
    count, width, more = prod(shape[:MOST_DIMENSIONS]), 4 if kind == FLOATS else 1, 4 if kind == INTS else 0
    if len(shape) > MOST_DIMENSIONS or min(shape, default=1) < 1 or count * width + more > len(content):
        raise RegardError(f"{name!r} is damaged: {len(content):,} bytes do not hold {shape[:9]}", where)
    if kind == FLOATS:
        return content[: 4 * count].view("<f4").astype(np.float32).reshape(shape)
    numbers = content[:count].view(np.int8).astype(np.float32)
    if kind == BYTES:
        return numbers.reshape(shape)
    multiplier = content[count : count + 4].view("<f4")[0]
    if not (isfinite(multiplier) and multiplier > 0):
        raise RegardError(f"{name!r} is damaged: its multiplier is {multiplier}", where)
    numbers /= multiplier
    return numbers.reshape(shape) if "Wemb" in name else numbers.reshape(shape[::-1]).T


def parse_settings(content: bytes, where: str) -> Fields:
    """The values of YAML as Marian writes it: a scalar or a list of scalars for each key.

    Raises:
        RegardError: names the first line that is anything else.
    """
    values: dict[str, object] = {}
    items: list[object] = []
    for number, line in _lines(content, where):
        try:
            if item := _ITEM.fullmatch(line):
                items.append(_scalar(item[1]))
            elif entry := _ENTRY.fullmatch(line):
                items = []
                values[entry[1]] = _value(entry[2]) if entry[2] else items
            elif line not in ("---", "..."):
                raise ValueError
        except ValueError:
            raise RegardError(f"line {number} of the settings is none as Marian writes them", where) from None
    return Fields(values, where)


def parse_vocabulary(content: bytes, where: str) -> dict[str, int]:
    """The id of each piece of a ``.vocab.yml``.

    Raises:
        RegardError: names the first line that is no piece and its id.
    """
    ids: dict[str, int] = {}
    for number, line in _lines(content, where):
        piece, _, id = line.rpartition(":")
        try:
            ids[_unquote(piece)] = int(id)
        except ValueError:
            raise RegardError("is damaged: a piece and its id were expected", f"{where}:{number}") from None
    return ids


def _lines(content: bytes, where: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, without comments; only line feeds end them, for pieces may be other separators."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RegardError(f"is damaged: {error}", where) from None
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.startswith("#"):
            yield number, line.rstrip("\r").rstrip(" ")


def _value(text: str) -> object:
    if text.startswith("["):
        return [_scalar(part.strip()) for part in text[1:].removesuffix("]").split(",") if part.strip()]
    return _scalar(text)


def _scalar(text: str) -> object:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in "'\"":
        return _unquote(text)
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _unquote(text: str) -> str:
    """A scalar without its quotes and escapes."""
    text = text.strip(" ")
    if len(text) < 2 or text[0] != text[-1] or text[0] not in "'\"":
        return text
    if text[0] == "'":
        return text[1:-1].replace("''", "'")
    return _ESCAPE.sub(_sign, text[1:-1])


def _sign(found: re.Match[str]) -> str:
    escape = found[1]
    return chr(int(escape[1:], 16)) if len(escape) > 1 else _SIGNS.get(escape, escape)

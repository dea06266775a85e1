"""The weights of a model file, mapped into memory, and a file of packed matrices made of them.

What is read of a model file is what is looked at. Matrices are packed once, and shared by the processes that use them;
their file has the form of safetensors: matrices named by their number, in the order in which an engine asks for them,
each at a multiple of a cache line. Its metadata names the weights they were made of, and the sha256 of all matrices.
Replace such a file by renaming, never in place: a process that has it mapped reads what is there, or ends.
"""

from __future__ import annotations

import hashlib
import math
import mmap
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import numpy as np

from regard.config.adapter import AdapterFile
from regard.config.weights import (
    header_content,
    infinite_weight,
    read_header_and_metadata,
    wrong_weight,
    wrong_weights,
)
from regard.system.errors import RegardError
from regard.system.kernels.packing import (
    LAYOUT,
    LINE,
    PANEL,
    Floats,
    Packer,
    Panels,
    Precision,
    form,
    pack_side_by_side,
)


class WeightFile:
    """A ``.safetensors`` file; every tensor that is asked for is checked before it is read.

    The file of an adapter gives the tensors of the model that it makes of its base.

    Args:
        path: of the file.
        shared: what models of one base have in common.

    Raises:
        RegardError: the file is missing, broken or newer than this Regard.
    """

    def __init__(self, path: Path, shared: SharedWeights | None = None) -> None:
        self.path = path
        self._own, _ = read_header_and_metadata(path)
        self._adapter = AdapterFile.of(path)
        base = self._adapter.base if self._adapter else None
        self._base = None if base is None else shared.file(base) if shared else WeightFile(base)
        self._header = self._adapter.header if self._adapter else self._own
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self._bytes = np.frombuffer(self._map, np.uint8)
        self._begin = 8 + int.from_bytes(self._bytes[:8].tobytes(), "little")
        self._taken: dict[str, tuple[int, ...]] = {}
        held = 0
        for entry in self._own.values():
            match entry:
                case {"data_offsets": [int(begin), int(end)]}:
                    held += abs(end - begin)
        if held > len(self._bytes):
            raise RegardError("is broken: its tensors lie in one another, or outside of the file", str(path))

    def take(self, name: str, *shape: int) -> Floats:
        """A tensor, as a view of the file; a copy where numbers of four bytes do not lie at multiples of four.

        One that an adapter changes is computed: ``W + B A`` [Hu21 §4.1].

        Raises:
            RegardError: it is not there, or of another type or shape, or lies outside of the file.
        """
        self._taken[name] = shape
        self._release()
        if name not in self._header:
            raise RegardError(f"lacks {name!r}, which the recipe's model has", str(self.path))
        if wrong := wrong_weight(self._header, name, shape):
            raise RegardError(wrong, str(self.path))
        if self._adapter and self._base and name not in self._own:
            found = self._base.take(name, *shape)
            if factors := self._adapter.factors(name):
                factor_RD, factor_FR = (self._view(one, *self._own[one]["shape"]) for one in factors)
                found = found + factor_FR @ factor_RD
            return found
        return self._view(name, *shape)

    def _view(self, name: str, *shape: int) -> Floats:
        """A tensor of this very file, its type and shape checked."""
        match self._own[name].get("data_offsets"):
            case [int(begin), int(end)] if begin >= 0 and begin % 4 == 0 and end - begin == 4 * math.prod(shape):
                if (end := self._begin + end) <= len(self._bytes):
                    found = self._bytes[self._begin + begin : end].view(np.float32).reshape(shape)
                    return np.require(found, requirements="A")
        raise RegardError("is broken: a tensor lies outside of the file", str(self.path))

    def take_finite(self, name: str, *shape: int) -> Floats:
        """The same, read once to see that its numbers are finite.

        Raises:
            RegardError: as :meth:`take`, or one is not.
        """
        found = self.take(name, *shape)
        with np.errstate(all="ignore"):  # a sum may leave float32 where no number does
            finite = np.isfinite(found.sum()) or np.isfinite(found).all()
        if not finite:
            raise RegardError(infinite_weight(name), str(self.path))
        return found

    def refuse_surplus(self) -> None:
        """Refuse a file with tensors that nothing has taken.

        Raises:
            RegardError: it names the first.
        """
        self._release()
        if wrong := wrong_weights(self._header, self._taken):
            raise RegardError(wrong, str(self.path))

    def _release(self) -> None:
        """Give back the memory of what was read, which most are done with; whoever is not reads it again unnoticed."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED)


@dataclass
class SharedWeights:
    """What a base and its adapters have in common in one process: the base's file, and its matrices as packed.

    Args:
        files: by their paths.
        packed: as :class:`regard.system.kernels.packing.SharingPacker` keeps them.
    """

    files: dict[Path, WeightFile] = field(default_factory=dict)
    packed: dict[object, Any] = field(default_factory=dict)

    def file(self, path: Path) -> WeightFile:
        """A file, opened once."""
        real = path.resolve()
        if real not in self.files:
            self.files[real] = WeightFile(path, self)
        return self.files[real]


CODES: dict[type[np.generic], str] = {np.float32: "F32", np.uint16: "U16", np.int8: "I8"}
"""Types of numbers as safetensors names them; bf16 is kept as the bits it is."""


class StalePack(Exception):
    """A file of packed matrices that is damaged, or of other weights; the message says which.

    Args:
        why: the message.
        precision: that it names, if it does.
    """

    def __init__(self, why: str, precision: Precision | None = None) -> None:
        super().__init__(why)
        self.precision = precision


class RecordingPacker(Packer):
    """Packs matrices and keeps them, to be written to a file."""

    def __init__(self, precision: Precision) -> None:
        super().__init__(precision)
        self.matrices: list[Panels] = []

    def __call__(
        self, weights: Sequence[Floats], biases: Sequence[Floats | None], precision: Precision | None = None
    ) -> Panels:
        """The matrices of linear layers of one input as one."""
        self.matrices.append(super().__call__(weights, biases, precision))
        return self.matrices[-1]

    def content(self, weights_sha256: str) -> Iterator[bytes | memoryview]:
        """The bytes of the file, in pieces.

        Args:
            weights_sha256: of the weights that were packed.
        """
        digest = hashlib.sha256()
        for matrix in self.matrices:
            digest.update(matrix.data)
        metadata = {
            "layout": LAYOUT,
            "precision": self.precision,
            "weights": weights_sha256,
            "sha256": digest.hexdigest(),
        }
        tensors = (
            (str(number), CODES[matrix.dtype.type], matrix.shape, matrix.nbytes)
            for number, matrix in enumerate(self.matrices)
        )
        yield header_content(tensors, metadata, LINE)
        yield from (matrix.data for matrix in self.matrices)


class MappedPacker(Packer):
    """Gives the matrices of a file in the place of packing them.

    Compute nothing with them before :meth:`verify`.

    Args:
        path: of the file.
        weights_sha256: of the weights that it must have been made of.
        wanted: the precision that it must have.
        pool: computes the sha256 meanwhile.

    Raises:
        StalePack: it has another one, was made of other weights, or is damaged.
    """

    def __init__(self, path: Path, weights_sha256: str, wanted: Precision, pool: Executor) -> None:
        try:
            self._header, metadata = read_header_and_metadata(path)
            with path.open("rb") as file:
                bytes_ = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY), np.uint8)
        except (RegardError, OSError, ValueError) as error:
            raise StalePack(error.message if isinstance(error, RegardError) else "cannot be read") from None
        precision: Precision | None = next((p for p in get_args(Precision) if p == metadata.get("precision")), None)
        if precision is None:
            raise StalePack("is damaged: it names no precision")
        if precision != wanted:
            raise StalePack(f"has {precision}, not {wanted}", precision)  # and is not read for that
        if metadata.get("weights") != weights_sha256 or metadata.get("layout") != LAYOUT:
            raise StalePack("is of other weights, or of another Regard", precision)
        begin = 8 + int.from_bytes(bytes_[:8].tobytes(), "little")
        if begin % LINE:
            raise StalePack("is damaged: its matrices begin between two lines", precision)
        self._matrices = bytes_[begin:]
        self._sha256 = metadata.get("sha256")
        self._found = pool.submit(hashlib.sha256, self._matrices.data)
        super().__init__(precision)
        self._number = self._end = 0

    def __call__(
        self, weights: Sequence[Floats], biases: Sequence[Floats | None], precision: Precision | None = None
    ) -> Panels:
        """The next matrix; its first panel must be that of the weights.

        Raises:
            StalePack: the file has another one there, or none.
        """
        form_of = precision or self.precision
        shape, dtype = form(weights, form_of)
        begin, end = self._end, self._end + math.prod(shape) * np.dtype(dtype).itemsize
        entry = {"dtype": CODES[dtype], "shape": list(shape), "data_offsets": [begin, end]}
        if self._header.get(str(self._number)) != entry or end > len(self._matrices):
            raise StalePack(f"is damaged: matrix {self._number} is another one", self.precision)
        found: Panels = self._matrices[begin:end].view(dtype).reshape(shape)
        if len(found) and not np.array_equal(_first_panel(weights, biases, form_of), found[0]):
            raise StalePack(f"is of other weights: matrix {self._number} differs", self.precision)
        self._number, self._end = self._number + 1, end
        return found

    def verify(self) -> None:
        """Refuse a file whose sha256 differs, or with more matrices than were asked for.

        Raises:
            StalePack: it is such a file.
        """
        if self._found.result().hexdigest() != self._sha256:
            raise StalePack("is damaged: its sha256 differs", self.precision)
        if self._number != len(self._header) or self._end != len(self._matrices):
            raise StalePack("is damaged: it has more than the model's matrices", self.precision)


def _first_panel(weights: Sequence[Floats], biases: Sequence[Floats | None], precision: Precision) -> Panels:
    """The first 32 columns of the matrices of linear layers, packed."""
    heads, tails, left = [], [], PANEL
    for weight_NK, bias_N in zip(weights, biases, strict=True):
        if left:
            heads.append(weight_NK[:left])
            tails.append(None if bias_N is None else bias_N[:left])
            left -= len(heads[-1])
    return pack_side_by_side(heads, tails, precision)[0]

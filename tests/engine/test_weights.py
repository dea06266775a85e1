"""A file of weights is read as it says only where that is true: lying headers, flipped bits, cut files."""

import json
import random
from pathlib import Path

import numpy as np
import pytest

from regard.engine.weights import WeightFile
from regard.system.errors import RegardError
from tests.refusals import refused

TENSORS = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.float32([7, 8])}
SHAPES = {"a": (2, 3), "b": (2,)}


def content(**entries: object) -> bytes:
    header = {
        "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
        "b": {"dtype": "F32", "shape": [2], "data_offsets": [24, 32]},
        **entries,
    }
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + b"".join(tensor.tobytes() for tensor in TENSORS.values())


def read(path: Path) -> None:
    """Every tensor, and every number of it."""
    file = WeightFile(path)
    for name, shape in SHAPES.items():
        assert file.take(name, *shape).sum() is not None
    file.refuse_surplus()


def test_tensors_are_views_of_the_file(tmp_path: Path) -> None:
    (path := tmp_path / "w").write_bytes(content())
    file = WeightFile(path)
    for name, tensor in TENSORS.items():
        found = file.take(name, *SHAPES[name])
        assert (found == tensor).all()
        assert not found.flags.writeable
    file.refuse_surplus()


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"dtype": "F64", "shape": [2], "data_offsets": [24, 32]}, "F64"),
        ({"dtype": "F32", "shape": [3], "data_offsets": [24, 32]}, "[3]"),
        ({"dtype": "F32", "shape": [2], "data_offsets": [28, 36]}, ""),
        ({"dtype": "F32", "shape": [2], "data_offsets": [-8, 0]}, ""),
        ({"dtype": "F32", "shape": [2], "data_offsets": [24, 28]}, ""),
        ({"dtype": "F32", "shape": [2], "data_offsets": [24.0, 32.0]}, ""),
        ({"dtype": "F32", "shape": [2], "data_offsets": [2**70, 2**70 + 8]}, ""),
        ({"dtype": "F32", "shape": [2]}, ""),
        (None, "None"),
    ],
)
def test_lying_headers_are_refused(entry: object, said: str, tmp_path: Path) -> None:
    (path := tmp_path / "w").write_bytes(content(b=entry))
    with refused(RegardError, path, said):
        read(path)


def test_missing_and_surplus_tensors_are_named(tmp_path: Path) -> None:
    (path := tmp_path / "w").write_bytes(content(c={"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}))
    with refused(RegardError, path, "'c'"):
        read(path)
    with refused(RegardError, path, "'d'"):
        WeightFile(path).take("d", 1)


def test_flipped_bits_and_cut_files_are_read_or_refused_and_nothing_else(tmp_path: Path) -> None:
    whole, random_, path = content(), random.Random(5), tmp_path / "w"
    seen = {"read": 0, "refused": 0}
    for _ in range(300):
        damaged = bytearray(whole)
        if random_.random() < 0.3:
            del damaged[random_.randrange(len(damaged)) :]
        else:
            damaged[random_.randrange(len(damaged))] ^= 1 << random_.randrange(8)
        path.unlink(missing_ok=True)
        path.write_bytes(damaged)
        try:
            read(path)
            seen["read"] += 1
        except RegardError:
            seen["refused"] += 1
    assert min(seen.values()) > 20

"""A file of weights is read where it lies; tests of damaged and lying ones: ``test_fuzz``."""

import json
from pathlib import Path

import numpy as np

from regard.engine.weights import WeightFile
from regard.system.errors import RegardError
from tests.refusals import refused

TENSORS = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.float32([7, 8])}


def content(**entries: object) -> bytes:
    header = {
        "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
        "b": {"dtype": "F32", "shape": [2], "data_offsets": [24, 32]},
        **entries,
    }
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + b"".join(tensor.tobytes() for tensor in TENSORS.values())


def test_tensors_are_views_of_the_file(tmp_path: Path) -> None:
    (path := tmp_path / "w").write_bytes(content())
    file = WeightFile(path)
    for name, tensor in TENSORS.items():
        found = file.take(name, *tensor.shape)
        assert (found == tensor).all()
        assert not found.flags.writeable
    file.refuse_surplus()


def test_tensors_that_lie_in_one_another_are_refused(tmp_path: Path) -> None:
    alike = {"dtype": "F32", "shape": [100], "data_offsets": [32, 432]}
    (path := tmp_path / "w").write_bytes(content(**dict.fromkeys("cdef", alike)) + bytes(400))
    with refused(RegardError, path):
        WeightFile(path)


def test_missing_and_surplus_tensors_are_named(tmp_path: Path) -> None:
    (path := tmp_path / "w").write_bytes(content(c={"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}))
    file = WeightFile(path)
    for name, tensor in TENSORS.items():
        file.take(name, *tensor.shape)
    with refused(RegardError, path, "'c'"):
        file.refuse_surplus()
    with refused(RegardError, path, "'d'"):
        file.take("d", 1)

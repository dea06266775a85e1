"""Weights of ``torch.save`` read as torch reads them; whatever else a pickle could do is refused."""

import io
import os
import pickle
import random
import struct
import time
import zipfile
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from regard.runs.convert.torch_file import read_torch_file
from regard.system.errors import RegardError
from tests.refusals import refused


def written(value: Any, path: Path) -> Path:
    torch.save(value, path)
    return path


def a_model() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Embedding(7, 4), nn.Linear(4, 3), nn.LayerNorm(3))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_tensors_are_those_of_torch(dtype: torch.dtype, tmp_path: Path) -> None:
    weights = a_model().to(dtype).state_dict()
    weights["tied"] = weights["0.weight"]
    weights["turned"] = torch.randn(3, 5).to(dtype).t()
    weights["part"] = torch.arange(12.0).to(dtype)[3:9:2]
    weights["positions"], weights["none"] = torch.arange(4), torch.empty(0)
    path = written(weights, tmp_path / "pytorch_model.bin")
    found, expected = read_torch_file(path), torch.load(path, weights_only=True)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_parameters_and_checkpoints_hold_tensors_too(tmp_path: Path) -> None:
    model = a_model()
    named = {"model": dict(model.named_parameters())}
    found = read_torch_file(written(named, tmp_path / "checkpoint.pt"))
    assert all(torch.equal(found[name], weight) for name, weight in model.named_parameters())


class _Calls:
    def __reduce__(self) -> Any:
        return os.system, ("touch /tmp/it-ran",)


@pytest.mark.parametrize(
    "value",
    [{"a": _Calls()}, {"a": 1}, [torch.zeros(2)], {"a": nn.Linear(2, 2)}, {3: torch.zeros(2)}, {"a": {1, 2}}],
    ids=["call", "number", "list", "module", "key", "set"],
)
def test_anything_else_is_refused(value: Any, tmp_path: Path) -> None:
    with refused(RegardError, "weights.bin"):
        read_torch_file(written(value, tmp_path / "weights.bin"))


def test_a_pickle_alone_and_an_old_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "plain.bin").write_bytes(pickle.dumps({"a": 1}))
    torch.save({"a": torch.zeros(2)}, tmp_path / "old.bin", _use_new_zipfile_serialization=False)
    for name in ("plain.bin", "old.bin"):
        with refused(RegardError, name):
            read_torch_file(tmp_path / name)


def test_bombs_are_refused(tmp_path: Path) -> None:
    """A compressed storage, and a tensor that repeats one number without end."""
    weights = OrderedDict(a=torch.zeros(1).expand(1 << 40))
    with refused(RegardError, "wide.bin"):
        read_torch_file(written(weights, tmp_path / "wide.bin"))
    path = written(OrderedDict(a=torch.zeros(1 << 20)), tmp_path / "flat.bin")
    with zipfile.ZipFile(path) as there, zipfile.ZipFile(tmp_path / "packed.bin", "w", zipfile.ZIP_DEFLATED) as packed:
        for entry in there.infolist():
            packed.writestr(entry.filename, there.read(entry))
    with refused(RegardError, "packed.bin"):
        read_torch_file(tmp_path / "packed.bin")


def text(of: str) -> bytes:
    return b"X" + struct.pack("<I", len(of)) + of.encode()


REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\n("
STORAGE = b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + b"K\4tQ"
DOUBLED = b"K\1" + b"".join(b"q%ch%c\x86" % (place, place) for place in range(24))
"""A tuple of twice a tuple of twice a tuple ..."""
NEST = b"(" * 80_000 + b"t" * 80_000
LIES = {
    "key": b"}" + DOUBLED + 4 * b"q\0h\0\x86" + b"K\1s.",
    "nested key": b"}" + NEST + b"K\1s.",
    "nest": NEST + b".",
    "storage": b"(" + text("storage") + b"ctorch\nFloatStorage\n" + DOUBLED + text("cpu") + b"K\4tQ.",
    "module": DOUBLED + text("x") + b"\x93.",
    "sizes": REBUILD + STORAGE + b"K\0(\x8a\xff" + b"\x7f" * 255 + b"q\0" + b"h\0" * 1500 + b"tK\1\x85tR.",
    "no storage": REBUILD + text("storage") + b"K\0))tR.",
    "large": b"}" * (2 << 20) + b".",
}


@pytest.mark.parametrize("lie", LIES)
def test_small_files_take_no_long_time(lie: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(path := tmp_path / "lie.bin", "w") as archive:
        archive.writestr("a/data.pkl", b"\x80\2" + LIES[lie])
        archive.writestr("a/data/0", bytes(16))
    begin = time.process_time()
    with refused(RegardError, path):
        read_torch_file(path)
    assert time.process_time() - begin < 1.0


def test_entries_that_lie_in_one_another_are_refused(tmp_path: Path) -> None:
    inner, offset = io.BytesIO(), 30 + len("weights/data/0")
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("weights/data/1", bytes(1 << 12))
        hidden, end = archive.infolist()[0], archive.start_dir
    torch.save({"a": torch.zeros(1030), "b": torch.zeros(1024)}, whole := io.BytesIO())
    with zipfile.ZipFile(path := tmp_path / "weights.bin", "w") as archive, zipfile.ZipFile(whole) as torches:
        archive.writestr("weights/data/0", inner.getvalue()[:end].ljust(4120, b"\0"))
        pickled = next(name for name in torches.namelist() if name.endswith("data.pkl"))
        archive.writestr("weights/data.pkl", torches.read(pickled))
        hidden.header_offset = offset
        archive.filelist.append(hidden)
        archive.NameToInfo[hidden.filename] = hidden
    with refused(RegardError, path):
        read_torch_file(path)


def test_a_table_may_have_four_names_and_not_forty(tmp_path: Path) -> None:
    table = torch.zeros(10_000)
    assert len(read_torch_file(written({str(n): table for n in range(4)}, tmp_path / "tied.bin"))) == 4
    with refused(RegardError, "alike.bin"):
        read_torch_file(written({str(n): table for n in range(40)}, tmp_path / "alike.bin"))


@pytest.mark.parametrize("end", [1000, 2000, -10])
def test_a_download_cut_short_is_told_from_another_file(end: int, tmp_path: Path) -> None:
    path = written(a_model().state_dict(), tmp_path / "weights.bin")
    path.write_bytes(path.read_bytes()[:end])
    with refused(RegardError, path) as cut:
        read_torch_file(path)
    assert "torch.save" not in str(cut.value)


def test_damaged_files_end_in_one_sentence(tmp_path: Path) -> None:
    whole, draws, path = io.BytesIO(), random.Random(5), tmp_path / "damaged.bin"
    torch.save(a_model().state_dict(), whole)
    for number in range(300):
        content = bytearray(whole.getvalue())
        if number % 3 == 0:
            del content[draws.randrange(len(content)) :]
        for _ in range(draws.choice([1, 4, 30])):
            if content:
                content[draws.randrange(len(content))] = draws.randrange(256)
        path.write_bytes(content)
        with suppress(RegardError):
            read_torch_file(path)

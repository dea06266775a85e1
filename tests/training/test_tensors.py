"""Our streamed safetensors are those of the library."""

import pytest
import torch
from safetensors.torch import load as reference_load
from safetensors.torch import save_file
from torch.testing import assert_close

from regard.training import tensors
from regard.training.manifest import Damaged


def some():
    generator = torch.Generator().manual_seed(1)
    return {
        "b.weight": torch.randn(3, 5, generator=generator),
        "a": torch.tensor(7),
        "half": torch.randn(7, generator=generator).bfloat16(),
        "turned": torch.randn(4, 6, generator=generator).t(),
        "none": torch.zeros(0, 3),
        "double": torch.randn(2, dtype=torch.float64, generator=generator),
        "is": torch.tensor([True, False]),
    }


def test_the_library_reads_what_we_write():
    raw = b"".join(bytes(chunk) for chunk in tensors.chunks(some(), {"step": "3"}))
    found = reference_load(raw)
    assert set(found) == set(some())
    for name, tensor in some().items():
        assert found[name].dtype == tensor.dtype
        assert_close(found[name], tensor, rtol=0, atol=0)


def test_we_read_what_the_library_writes(tmp_path):
    save_file({name: t.contiguous() for name, t in some().items()}, tmp_path / "x")
    for name, tensor in tensors.load(tmp_path / "x").items():
        assert_close(tensor, some()[name], rtol=0, atol=0)


def test_a_cut_file_is_damaged(tmp_path):
    raw = b"".join(bytes(chunk) for chunk in tensors.chunks(some()))
    (tmp_path / "x").write_bytes(raw[:-1])
    with pytest.raises(Damaged):
        tensors.load(tmp_path / "x")

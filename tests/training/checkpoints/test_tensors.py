"""Our streamed safetensors are those of the library, and say their format."""

import os

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load as reference_load
from safetensors.torch import save_file
from torch.testing import assert_close

from regard.config import FORMAT
from regard.models import store
from regard.system.errors import Damaged, RegardError
from regard.training.checkpoints import checkpoint
from tests.refusals import refused


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


def test_the_library_reads_what_we_write_and_its_format_and_a_cut_file_is_damaged(tmp_path):
    raw = b"".join(bytes(chunk) for chunk in store.chunks(some(), {"step": "3"}))
    found = reference_load(raw)
    assert set(found) == set(some())
    for name, tensor in some().items():
        assert found[name].dtype == tensor.dtype
        assert_close(found[name], tensor, rtol=0, atol=0)
    (tmp_path / "x").write_bytes(raw)
    with safe_open(tmp_path / "x", "pt") as file:
        assert file.metadata() == {"step": "3", "format": str(FORMAT)}
    (tmp_path / "x").write_bytes(raw[:-1])
    with pytest.raises(Damaged):
        checkpoint.load(tmp_path / "x")
    (tmp_path / "x").unlink()
    os.mkfifo(tmp_path / "x")  # which nobody waits for
    with refused(Damaged, "x"):
        checkpoint.load(tmp_path / "x")
    assert store.to_bytes(some()) == b"".join(bytes(chunk) for chunk in store.chunks(some()))


@pytest.mark.parametrize("written", ["9" * 5000, "2"])
def test_a_newer_format_is_refused_with_a_short_sentence(tmp_path, written):
    save_file({"a": torch.zeros(1)}, tmp_path / "x", {"format": "pt"})
    assert checkpoint.load(tmp_path / "x").keys() == {"a"}
    save_file({"a": torch.zeros(1)}, tmp_path / "x", {"format": written})
    with refused(RegardError, "x") as caught:
        checkpoint.load(tmp_path / "x")
    assert len(str(caught.value)) < 300


def test_we_read_what_the_library_writes(tmp_path):
    save_file({name: t.contiguous() for name, t in some().items()}, tmp_path / "x")
    for name, tensor in checkpoint.load(tmp_path / "x").items():
        assert_close(tensor, some()[name], rtol=0, atol=0)

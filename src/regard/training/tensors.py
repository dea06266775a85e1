"""Named tensors as safetensors, streamed tensor by tensor so that saving needs no second copy of the model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from regard.training.manifest import Damaged

_CODES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


def chunks(
    tensors: Mapping[str, torch.Tensor], metadata: Mapping[str, str] | None = None
) -> Iterator[bytes | memoryview]:
    """The bytes of a safetensors file: eight of header length, the JSON header, then each tensor's, by name."""
    header: dict[str, object] = {"__metadata__": {"format": "pt", **(metadata or {})}}
    end = 0
    for name in sorted(tensors):
        tensor = tensors[name]
        start, end = end, end + tensor.numel() * tensor.element_size()
        header[name] = {"dtype": _CODES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # tensors begin aligned
    yield len(text).to_bytes(8, "little") + text
    for name in sorted(tensors):
        if tensors[name].numel():
            yield tensors[name].detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data


def load(path: Path) -> dict[str, torch.Tensor]:
    """The named tensors of a safetensors file, on the CPU.

    Raises:
        Damaged: it is not a whole safetensors file.
    """
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise Damaged(f"is not a whole safetensors file ({error})", str(path)) from None

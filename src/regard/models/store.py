"""Saving and loading weights: safetensors only, checked before anything is allocated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from regard.config.weights import header_content, infinite_weight, read_header, wrong_weights
from regard.system.errors import RegardError

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


def weights(model: nn.Module) -> dict[str, Tensor]:
    """The parameters by name, each tied one once, and the buffers a model keeps, as contiguous CPU tensors."""
    return {name: tensor.detach().to("cpu").contiguous() for name, tensor in named_tensors(model).items()}


def named_tensors(model: nn.Module) -> dict[str, Tensor]:
    """The tensors saved for a model: every parameter under its first name, and its persistent buffers."""
    saved = model.state_dict().keys()
    buffers = {name: one for name, one in model.named_buffers(remove_duplicate=False) if name in saved}
    return {**dict(model.named_parameters()), **buffers}


def chunks(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> Iterator[bytes | memoryview]:
    """The bytes of a safetensors file: eight of header length, the JSON header, then each tensor's, by name."""
    named = [(name, tensors[name]) for name in sorted(tensors)]
    yield header_content(
        ((name, _CODES[one.dtype], one.shape, one.numel() * one.element_size()) for name, one in named), metadata or {}
    )
    for _, one in named:
        if one.numel():
            yield one.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data


def to_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    """The content of a ``.safetensors`` file, whole."""
    return b"".join(chunks(tensors))


def load_weights(path: Path, model: nn.Module) -> None:
    """Fill ``model`` with the weights of a file.

    Raises:
        RegardError: the file is missing, broken, newer than this Regard, or its names, shapes or types are not those
            of the model.
    """
    check_weights(path, model)
    with _opened(path) as file:
        for name, tensor in named_tensors(model).items():
            tensor.copy_(file.get_tensor(name))


def refuse_infinite(path: Path, model: nn.Module) -> None:
    """Raise a RegardError if a weight that was loaded from a file is not finite (a buffer may be: some are masks)."""
    for name, weight in model.named_parameters():
        if not bool(weight.isfinite().all()):
            raise RegardError(infinite_weight(name), str(path))


def take(path: Path, model: nn.Module) -> list[str]:
    """Copy every weight of a file that has the name and shape of one of the model's; their names.

    Raises:
        RegardError: the file is missing, broken or newer than this Regard.
    """
    wanted = named_tensors(model)
    shapes = {name: entry.get("shape") for name, entry in read_header(path).items() if isinstance(entry, dict)}
    fitting = [name for name, tensor in wanted.items() if shapes.get(name) == list(tensor.shape)]
    with _opened(path) as file:
        for name in fitting:
            wanted[name].copy_(file.get_tensor(name))
    return fitting


def some(path: Path, names: Iterable[str]) -> dict[str, Tensor]:
    """Those of the named tensors that a file holds, read without the others.

    Raises:
        RegardError: the file is missing, broken or newer than this Regard.
    """
    header = read_header(path)
    with _opened(path) as file:
        return {name: file.get_tensor(name) for name in names if name in header}


@contextmanager
def _opened(path: Path) -> Iterator[safe_open]:
    """The tensors of a file whose header was checked."""
    try:
        with safe_open(path, "pt") as file, torch.no_grad():
            yield file
    except (SafetensorError, OSError) as error:
        raise RegardError(f"is broken: {error}", str(path)) from None


def check_weights(path: Path, model: nn.Module) -> None:
    """Check that a file holds the weights of ``model``, which may be on the meta device; no weight is read.

    Raises:
        RegardError: as :func:`load_weights`.
    """
    shapes = {name: tuple(tensor.shape) for name, tensor in named_tensors(model).items()}
    if wrong := wrong_weights(read_header(path), shapes):
        raise RegardError(wrong, str(path))

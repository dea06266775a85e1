"""Saving and loading weights: safetensors only, checked before anything is allocated."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from regard.config.adapter import LORA_B, AdapterFile, read_header
from regard.config.weights import header_content, infinite_weight, wrong_weights
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


def load_weights(path: Path, model: nn.Module, base: nn.Module | None = None) -> None:
    """Fill ``model`` with the weights of a file.

    Args:
        path: of the file.
        model: to be filled.
        base: of the file of an adapter the model that it changes, whose other tensors are taken as they are, in memory.

    Raises:
        RegardError: the file is missing, broken, newer than this Regard, or its names, shapes or types are not those
            of the model.
    """
    check_weights(path, model)
    shared = {} if base is None else _unchanged(path, base)
    with _open(path) as get:
        for name, tensor in named_tensors(model).items():
            if name in shared:
                tensor.data = shared[name].data
            else:
                tensor.copy_(get(name))


def _unchanged(path: Path, base: nn.Module) -> dict[str, Tensor]:
    """The tensors of a model in memory that an adapter leaves as they are."""
    adapter = AdapterFile.of(path)
    own = adapter.own if adapter else {}
    changed = {name for name in named_tensors(base) if name in own or (adapter and adapter.factors(name))}
    return {name: one for name, one in named_tensors(base).items() if name not in changed}


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
    with _open(path) as get:
        for name in fitting:
            wanted[name].copy_(get(name))
    return fitting


def some(path: Path, names: Iterable[str]) -> dict[str, Tensor]:
    """Those of the named tensors that a file holds, read without the others.

    Raises:
        RegardError: the file is missing, broken or newer than this Regard.
    """
    header = read_header(path)
    with _open(path) as get:
        return {name: get(name) for name in names if name in header}


def adapter_chunks(
    weights: Mapping[str, Tensor], scale: float, base: Path, digest: str
) -> Iterator[bytes | memoryview]:
    """The bytes of an adapter's file: its factors, and the tensors that its base has not, or not to the bit.

    Args:
        weights: of a model with factors, or of one that a base becomes.
        scale: of the product of the factors; B is written times it.
        base: the file of its weights; ``digest``: their sha256.
    """
    header, own = read_header(base), dict[str, Tensor]()
    with _open(base) as get:
        for name, one in weights.items():
            if name not in header or not torch.equal(get(name), one.detach().cpu()):
                own[name] = one.detach().cpu() * scale if name.endswith(LORA_B) else one
    return chunks(own, {"base": digest, "without": " ".join(sorted(header.keys() - weights.keys()))})


@contextmanager
def _open(path: Path) -> Iterator[Callable[[str], Tensor]]:
    """What gives the tensors of a file whose header was checked, of an adapter those of its model."""
    try:
        with ExitStack() as stack, torch.no_grad():
            file = stack.enter_context(safe_open(path, "pt"))
            if (adapter := AdapterFile.of(path)) is None:
                yield file.get_tensor
            else:
                yield partial(_merge, adapter, file, stack.enter_context(safe_open(adapter.base, "pt")))
    except (SafetensorError, OSError) as error:
        raise RegardError(f"is broken: {error}", str(path)) from None


def _merge(adapter: AdapterFile, own: safe_open, base: safe_open, name: str) -> Tensor:
    """A tensor of the model that an adapter makes of its base: its own, else ``W + B A``, or the base's."""
    if name in adapter.own:
        return own.get_tensor(name)
    found: Tensor = base.get_tensor(name)
    if factors := adapter.factors(name):
        factor_RD, factor_FR = map(own.get_tensor, factors)
        return torch.addmm(found, factor_FR, factor_RD)
    return found


def check_weights(path: Path, model: nn.Module) -> None:
    """Check that a file holds the weights of ``model``, which may be on the meta device; no weight is read.

    Raises:
        RegardError: as :func:`load_weights`.
    """
    shapes = {name: tuple(tensor.shape) for name, tensor in named_tensors(model).items()}
    if wrong := wrong_weights(read_header(path), shapes):
        raise RegardError(wrong, str(path))

"""Loads the named tensors of a checkpoint."""

from __future__ import annotations

from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from regard.config.checksum import refuse_newer_text
from regard.system import disk
from regard.system.errors import Damaged


def load(path: Path) -> dict[str, torch.Tensor]:
    """The named tensors of a safetensors file, on the CPU.

    Raises:
        Damaged: it is not a whole safetensors file.
        RegardError: a newer Regard wrote it.
    """
    disk.refuse_irregular(path, error=Damaged)
    try:
        with safe_open(path, "pt") as file:
            written = (file.metadata() or {}).get("format", "")
            if written.isdecimal():  # others write words, as "pt"
                refuse_newer_text(written, path)
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise Damaged(f"is not a whole safetensors file ({error})", str(path)) from None

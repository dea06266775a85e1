"""When the kernels of ``native/`` compute a part of training, and tensors as they take them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard import kernels

THREADS = 2
"""Threads of torch up to which one thread of the kernels takes less time than all of them."""


def has_kernel(x: Tensor) -> bool:
    """Whether kernels compute on this tensor: fp32 or bf16 in the processor's memory, and few threads."""
    return (
        x.device.type == "cpu"
        and x.dtype in (torch.float32, torch.bfloat16)
        and torch.get_num_threads() <= THREADS
        and kernels.available()
    )


def array(x: Tensor) -> np.ndarray[Any, Any]:
    """The same memory as an array; bf16 by its bits, as uint16."""
    return (x.view(torch.uint16) if x.dtype == torch.bfloat16 else x).detach().numpy()

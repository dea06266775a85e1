"""Batched forward passes over texts: framed, packed to a token budget, results in input order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.data.batches.packing import batches_in_order, pack_sources
from regard.models.inputs import Tokens, tokens

Ids = NDArray[np.int64]
ROOM = 8192
"""Tokens read at once."""


@torch.inference_mode()
def forward_windows(
    model: nn.Module, windows: Sequence[Ids], device: torch.device, each: bool, room: int = ROOM
) -> list[NDArray[np.float32]]:
    """The model's outputs for every window, in order.

    Args:
        model: answers with a row for each window, or a row for each token.
        windows: framed ids.
        device: where the model is.
        each: a row for each token.
        room: tokens read at once.
    """
    return forward_batches(lambda given: model(given), windows, device, each, room)


def mean_over_windows(score_WC: NDArray[Any], windows_B: Ids) -> NDArray[np.float64]:
    """``score_BC``: for each text the mean over its windows, which are consecutive.

    Args:
        score_WC: of the windows of all texts.
        windows_B: how many each text has, one or more.
    """
    sums_BC = np.add.reduceat(score_WC.astype(np.float64), windows_B.cumsum() - windows_B)
    return np.asarray(sums_BC / windows_B[:, None])


def forward_batches(
    answer: Callable[[Tokens], Tensor], windows: Sequence[Ids], device: torch.device, each: bool, room: int = ROOM
) -> list[NDArray[np.float32]]:
    """As :func:`forward_windows`, of any function of packed texts; windows of similar length are read together."""
    lengths = np.array([len(window) for window in windows], np.int64)
    order = np.argsort(-lengths, kind="stable")
    found: list[NDArray[np.float32]] = [np.zeros(0, np.float32)] * len(windows)
    for part in batches_in_order([lengths[order]], [room], len(windows)) if len(windows) else ():
        chosen = order[part]
        given = tokens(pack_sources([windows[place] for place in chosen]), device)
        rows = answer(given).float().cpu().numpy()
        split = np.split(rows, lengths[chosen].cumsum()[:-1]) if each else list(rows)
        for place, one in zip(chosen.tolist(), split, strict=True):
            found[place] = one
    return found

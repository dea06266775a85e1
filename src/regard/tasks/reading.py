"""Texts through an encoder: framed, packed a few thousand tokens at a time, and each answer back at its place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from regard.data.packing import in_order, pack_sources
from regard.models.inputs import Tokens, tokens

Ids = NDArray[np.int64]
ROOM = 8192
"""Tokens read at once."""


@torch.inference_mode()
def read(
    model: nn.Module, windows: Sequence[Ids], device: torch.device, each: bool, room: int = ROOM
) -> list[NDArray[np.float32]]:
    """What the model says of every window, in their order.

    Args:
        model: answers with a row for each window, or a row for each token.
        windows: framed ids.
        device: where the model is.
        each: a row for each token.
        room: tokens read at once.
    """
    return through(lambda given: model(given), windows, device, each, room)


def averaged(score_WC: NDArray[Any], windows_B: Ids) -> NDArray[np.float64]:
    """``score_BC``: for each text the mean over its windows, which lie one behind the other.

    Args:
        score_WC: of the windows of all texts.
        windows_B: how many each text has, one or more.
    """
    sums_BC = np.add.reduceat(score_WC.astype(np.float64), windows_B.cumsum() - windows_B)
    return np.asarray(sums_BC / windows_B[:, None])


def through(
    answer: Callable[[Tokens], Tensor], windows: Sequence[Ids], device: torch.device, each: bool, room: int = ROOM
) -> list[NDArray[np.float32]]:
    """As :func:`read`, of any function of packed texts; windows of similar length are read together."""
    lengths = np.array([len(window) for window in windows], np.int64)
    order = np.argsort(-lengths, kind="stable")
    found: list[NDArray[np.float32]] = [np.zeros(0, np.float32)] * len(windows)
    for part in in_order([lengths[order]], [room], len(windows)) if len(windows) else ():
        chosen = order[part]
        given = tokens(pack_sources([windows[place] for place in chosen]), device)
        rows = answer(given).float().cpu().numpy()
        split = np.split(rows, lengths[chosen].cumsum()[:-1]) if each else list(rows)
        for place, one in zip(chosen.tolist(), split, strict=True):
            found[place] = one
    return found

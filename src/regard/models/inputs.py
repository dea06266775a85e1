"""Packed batches from NumPy to model inputs: token ids, layouts and patches as tensors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.batches.batch import Packed, PairBatch
from regard.nn import Sequences, WordRows

if TYPE_CHECKING:
    from regard.data.batches.patches import ImageBatch
    from regard.text.word_features import WordFeatures


@dataclass(frozen=True)
class Tokens:
    """One side of a batch: packed ids and their layout.

    With segment ids if a text has several segments, with the features of words if the model reads them.
    """

    ids_T: Tensor
    sequences: Sequences
    segments_T: Tensor | None = None
    words: WordRows | None = None

    @property
    def content(self) -> Tensor:
        """Input of an encoder."""
        return self.ids_T


@dataclass(frozen=True)
class Patches:
    """Images: the pixels of their patches end to end; each begins with a row of zeros for the class token."""

    pixels_TP: Tensor
    sequences: Sequences
    segments_T: None = None
    words: None = None

    @property
    def content(self) -> Tensor:
        """Input of an encoder."""
        return self.pixels_TP


@dataclass(frozen=True)
class Pairs:
    """A batch of sentence pairs: encoder input, decoder input, decoder target."""

    source: Tokens
    target: Tokens
    labels_T: Tensor
    weight_T: Tensor


def tokens(
    packed: Packed,
    device: torch.device | str = "cpu",
    words: WordFeatures | None = None,
    first_T: NDArray[np.bool_] | None = None,
) -> Tokens:
    """A packed side on the device, with the features of its words where they are asked for.

    Args:
        packed: the side.
        device: where to.
        words: knows the features.
        first_T: which tokens begin a word, where that is known.
    """
    rows = None
    if words is not None:
        real = slice(packed.count)
        found = words.of_texts(packed.ids_T, packed.starts_B[real], packed.lengths_B[real], first_T)
        rows = WordRows(*(_tensor(one, device) for one in found))
    return Tokens(_tensor(packed.ids_T, device), _sequences(packed, len(packed.ids_T), device), words=rows)


def separate(given: Tokens, end: int) -> Tokens:
    """The same tokens, of which those behind the first ``end`` of each sequence are of the second segment."""
    layout, is_end_T = given.sequences, given.ids_T == end
    before_BL = (is_end_T.cumsum(0) - is_end_T.long())[layout.grid_BL]
    segments_T = torch.zeros_like(given.ids_T)
    segments_T[layout.grid_BL[layout.real_BL]] = (before_BL - before_BL[:, :1])[layout.real_BL].clamp(max=1)
    return replace(given, segments_T=segments_T)


def patches(batch: ImageBatch, device: torch.device | str = "cpu") -> Patches:
    """A batch of images on the device."""
    pixels_TP = torch.from_numpy(batch.pixels_TP).to(device)
    return Patches(pixels_TP, _sequences(batch, len(pixels_TP), device))


def pairs(batch: PairBatch, device: torch.device | str = "cpu") -> Pairs:
    """A batch on the device."""
    return Pairs(
        tokens(batch.source, device),
        tokens(batch.target, device),
        _tensor(batch.labels_T, device),
        torch.from_numpy(batch.weight_T).to(device),
    )


def _sequences(batch: Packed | ImageBatch, size: int, device: torch.device | str) -> Sequences:
    longest = int(batch.lengths_B.max(initial=0))
    return Sequences(_tensor(batch.starts_B, device), _tensor(batch.lengths_B, device), batch.count, longest, size)


def _tensor(values: NDArray[np.int64], device: torch.device | str) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values)).to(device)

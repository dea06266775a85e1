"""Word-level tag scores from overlapping windows, and the best tags of whole texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.batches.packing import batches_in_order, pack_sources
from regard.data.batches.texts import TextBatch
from regard.data.batches.word_marks import WordMarks
from regard.data.prepare.encoders import Coded
from regard.data.prepare.shards import ragged_indices
from regard.models.bert import TagHead
from regard.models.inputs import tokens
from regard.models.rnn import Reader
from regard.nn.heads import Chain
from regard.nn.layout import Sequences
from regard.tasks.text.batched_forward import ROOM

Ids = NDArray[np.int64]
Scores = NDArray[np.float32]
CELLS = 1 << 15
"""Words decoded at once, padding included."""
LONGEST = 4096
"""Words of a text that are tagged as one; a longer text is tagged in parts."""


def head_of(model: Reader) -> TagHead:
    """The head of a tagger."""
    assert isinstance(model.head, TagHead)
    return model.head


def word_scores(model: Reader, batch: TextBatch, device: torch.device) -> tuple[Tensor, WordMarks]:
    """``score_RC`` of every tag for the words that a batch's windows count, and which these are."""
    given, marks = tokens(batch.text, device), WordMarks.of(batch.text, batch.labels_X)
    starts, lengths = (torch.from_numpy(side).to(device) for side in (marks.starts_R, marks.lengths_R))
    longest = int(marks.lengths_R.max(initial=0))
    words = Sequences(starts, lengths, len(starts), longest, given.sequences.size)
    return head_of(model).words(model.encoder(given), words), marks


@torch.inference_mode()
def read_words(model: Reader, windows: Coded, device: torch.device, room: int = ROOM) -> Scores:
    """``score_RC`` of the words of all windows, in their order; windows of similar length are read together."""
    lengths = np.array([len(ids) for ids, _ in windows], np.int64)
    order = np.argsort(-lengths, kind="stable")
    found: list[Scores] = [np.zeros((0, 0), np.float32)] * len(windows)
    for part in batches_in_order([lengths[order]], [room], len(windows)) if len(windows) else ():
        chosen = order[part]
        marks = np.concatenate([windows[place][1] for place in chosen])
        batch = TextBatch(pack_sources([windows[place][0] for place in chosen]), marks, lengths[chosen], chosen)
        score_RC, words = word_scores(model, batch, device)
        split = np.split(score_RC.float().cpu().numpy(), words.counts_B.cumsum()[:-1])
        for place, rows in zip(chosen.tolist(), split, strict=True):
            found[place] = rows
    return np.concatenate(found) if found else np.zeros((0, 1), np.float32)


def decode_tags(
    chain: Chain, score_RC: Scores, lengths_B: Ids, device: torch.device, heat: float = 1.0
) -> tuple[Ids, NDArray[np.float64]]:
    """``(tags_R, probability_R)``: the best tags of each text's words, and how sure each is.

    Args:
        chain: chooses.
        score_RC: of the words of all texts, end to end.
        lengths_B: words of each text.
        device: where to choose.
        heat: the temperature of the probabilities.
    """
    tags_R, probability_R = np.zeros(len(score_RC), np.int64), np.zeros(len(score_RC), np.float64)
    lengths_B = _in_parts(lengths_B)
    starts_B = lengths_B.cumsum() - lengths_B
    for group in _alike(lengths_B):
        rows = ragged_indices(starts_B[group], lengths_B[group])
        score = torch.from_numpy(score_RC[rows]).to(device)
        sequences = Sequences.end_to_end(lengths_B[group].tolist(), device)
        tags = chain.decode(score, sequences)
        sure = chain.probabilities(score / heat, sequences).gather(1, tags[:, None])[:, 0]
        tags_R[rows], probability_R[rows] = tags.cpu().numpy(), sure.double().cpu().numpy()
    return tags_R, probability_R


def _in_parts(lengths_B: Ids) -> Ids:
    """No length above :data:`LONGEST`."""
    whole = [[LONGEST] * (int(length) // LONGEST) + [int(length) % LONGEST] for length in lengths_B]
    return np.array([length for parts in whole for length in parts if length], np.int64)


def _alike(lengths_B: Ids) -> Iterator[Ids]:
    """Texts of similar length, few enough to be filled up to the longest."""
    order = np.argsort(-lengths_B, kind="stable")
    begin = 0
    while begin < len(order):
        count = max(1, CELLS // max(1, int(lengths_B[order[begin]])))
        yield order[begin : begin + count]
        begin += count


def split_by(values: Sequence[str], lengths_B: Ids) -> list[list[str]]:
    """Scores of all words, text by text."""
    ends = lengths_B.cumsum().tolist()
    return [list(values[end - length : end]) for end, length in zip(ends, lengths_B.tolist(), strict=True)]

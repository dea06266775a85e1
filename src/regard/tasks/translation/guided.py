"""Guided alignment: while it learns to translate, one head learns to attend to the words that belong together [Garg19].

The links are those of a lexical model, learned from the pairs before. The head is that in the step which has read a
word, so that it knows which word to look for [Chen20 §4.2].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.alignment.prepared import PreparedLinks
from regard.data.batches.batch import Ids, Packed, PairBatch
from regard.data.prepare.shards import ragged_indices
from regard.models.captured_attention import POINTS
from regard.nn.hooks import capture
from regard.tasks.translation.align import AlignmentHead
from regard.text.tokenizers.vocabulary import AnyTokenizer, Vocabularies

if TYPE_CHECKING:
    from regard.models.inputs import Pairs
    from regard.models.transformer import Transformer


class GuidedAlignment:
    """The loss of a head against links.

    Args:
        weight: how much it counts.
        links: of the training pairs.
        vocabularies: of both sides.
        layers: of the decoder.
    """

    def __init__(self, weight: float, links: PreparedLinks, vocabularies: Vocabularies, layers: int) -> None:
        self.weight, self.links, self.vocabularies = weight, links, vocabularies
        self.head = AlignmentHead.guided(layers)
        self.point = POINTS["transformer"]["cross"].format(self.head.layer - 1)

    def forward(self, model: Transformer, inputs: Pairs, batch: PairBatch) -> tuple[Tensor, Tensor]:
        """``hidden_TD`` of the decoder, and the loss of its head, summed over the tokens that have links, in nats."""
        with capture([self.point]) as found:
            hidden_TD = model(inputs)
        weights = [weight_HQK[self.head.head - 1] for weight_HQK in found[self.point]]
        return hidden_TD, self.loss(weights, batch)

    def loss(self, weights: Sequence[Tensor], batch: PairBatch) -> Tensor:
        """``-Σ_q Σ_k share log weight``, where the tokens of linked words share a query's one evenly [Garg19 §4.2].

        Args:
            weights: ``weight_QK`` of each sentence.
            batch: the sentences.
        """
        cell_R, share_R = self.cells(batch)
        every_X = torch.cat([weight_QK.flatten() for weight_QK in weights]).float()
        chosen_R = every_X[torch.from_numpy(cell_R).to(every_X.device)]
        log_R = chosen_R.clamp_min(torch.finfo(torch.float32).tiny).log()
        return -self.weight * (torch.from_numpy(share_R).to(log_R.device) * log_R).sum()

    def cells(self, batch: PairBatch) -> tuple[Ids, NDArray[np.float32]]:
        """Which weights of all sentences end to end should be large, and the share of each."""
        source, target = batch.source, batch.target
        source_R, target_R, counts_B = self.links.gather(batch.sentences)
        sentence_R = np.repeat(np.arange(len(counts_B)), counts_B)
        first_R, keys_R = _pieces(source, source.ids_T, self.vocabularies.source, sentence_R, source_R)
        query_R, queries_R = _pieces(target, batch.labels_T, self.vocabularies.target, sentence_R, target_R)
        pairs_R = keys_R * queries_R
        link_P = np.repeat(np.arange(len(pairs_R)), pairs_R)
        place_P, sentence_P = ragged_indices(np.zeros_like(pairs_R), pairs_R), sentence_R[link_P]
        row_P, key_P = np.divmod(place_P, keys_R[link_P])
        row_P += query_R[link_P] + 1  # the step after that which predicts a piece reads it
        sizes_B = target.lengths_B[: target.count] * source.lengths_B[: source.count]
        begin_P = (sizes_B.cumsum() - sizes_B)[sentence_P]
        cell_P = begin_P + row_P * source.lengths_B[sentence_P] + first_R[link_P] + key_P
        token_P = target.starts_B[sentence_P] + row_P
        return cell_P, (1.0 / np.bincount(token_P, minlength=1)[token_P]).astype(np.float32)


def _pieces(side: Packed, ids_T: Ids, tokenizer: AnyTokenizer, sentence_R: Ids, word_R: Ids) -> tuple[Ids, Ids]:
    """Where the pieces of words begin, within their sentence, and how many each has."""
    used = int(side.lengths_B.sum())
    starts_W = np.flatnonzero(tokenizer.word_starts(ids_T[:used].tolist()))
    first_B = np.searchsorted(starts_W, side.starts_B[: side.count])
    place_R = first_B[sentence_R] + word_R
    lengths_W = np.diff(np.append(starts_W, used))
    return starts_W[place_R] - side.starts_B[sentence_R], lengths_W[place_R]

"""Guided alignment: while it learns to translate, one head learns to attend to the words that belong together [Garg19].

The links are those of a lexical model, learned from the pairs before. The head is that in the step which has read a
word, so that it knows which word to look for [Chen20 §4.2].
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.alignment.prepared import PreparedLinks
from regard.data.batches.batch import Ids, Packed, PairBatch
from regard.data.prepare.shards import ragged_indices
from regard.nn import BaseDecoderLayer, Layout
from regard.nn.attention.multi_head import MultiHeadAttention
from regard.nn.ops import product
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

    def forward(self, model: Transformer, inputs: Pairs, batch: PairBatch) -> tuple[Tensor, Tensor]:
        """``hidden_TD`` of the decoder, and the loss of its head, summed over the tokens that have links, in nats."""
        layer = model.decoder.layers[self.head.layer - 1]
        assert isinstance(layer, BaseDecoderLayer)
        read = list[tuple[Tensor, Tensor, Layout]]()
        with layer.cross.register_forward_pre_hook(lambda _, given: read.append(given)):
            hidden_TD = model(inputs)
        return hidden_TD, self.loss(log_weights(layer.cross, self.head.head, *read[0]), batch)

    def loss(self, log_BQK: Tensor, batch: PairBatch) -> Tensor:
        """``-Σ_q Σ_k share log weight``, where the tokens of linked words share a query's one evenly [Garg19 §4.2].

        Args:
            log_BQK: of the weights of each sentence.
            batch: the sentences.
        """
        *cells_R, share_R = (torch.from_numpy(one).to(log_BQK.device) for one in self.cells(batch))
        return -self.weight * (share_R * log_BQK[tuple(cells_R)]).sum()

    def cells(self, batch: PairBatch) -> tuple[Ids, Ids, Ids, NDArray[np.float32]]:
        """Which weights should be large, by sentence, query and key, and the share of each."""
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
        token_P = target.starts_B[sentence_P] + row_P
        share_P = (1.0 / np.bincount(token_P, minlength=1)[token_P]).astype(np.float32)
        return sentence_P, row_P, key_P + first_R[link_P], share_P


def log_weights(attention: MultiHeadAttention, head: int, x_TD: Tensor, memory_SD: Tensor, layout: Layout) -> Tensor:
    """``log_BQK`` of the weights of one head, counted from 1, of each sentence, padded; of what its attention reads.

    The attention itself is computed by the fastest backend, which shows no weights.
    """
    size = attention.query.out_features // attention.heads
    part = slice((head - 1) * size, head * size)
    query_TE, key_SE = (
        product(one, linear.weight[part], None if linear.bias is None else linear.bias[part], linear.product)
        for one, linear in ((x_TD, attention.query), (memory_SD, attention.key))
    )
    queries, keys = layout.queries, layout.keys
    score_BQK = torch.einsum("bqe,bke->bqk", query_TE[queries.grid_BL], key_SE[keys.grid_BL]).float() * attention.scale
    return score_BQK.masked_fill(~keys.real_BL[:, None], -math.inf).log_softmax(-1)


def _pieces(side: Packed, ids_T: Ids, tokenizer: AnyTokenizer, sentence_R: Ids, word_R: Ids) -> tuple[Ids, Ids]:
    """Where the pieces of words begin, within their sentence, and how many each has."""
    used = int(side.lengths_B.sum())
    starts_W = np.flatnonzero(tokenizer.word_starts(ids_T[:used].tolist()))
    first_B = np.searchsorted(starts_W, side.starts_B[: side.count])
    place_R = first_B[sentence_R] + word_R
    lengths_W = np.diff(np.append(starts_W, used))
    return starts_W[place_R] - side.starts_B[sentence_R], lengths_W[place_R]

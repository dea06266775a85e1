"""Encoders and one head: words, classes, tags or a vector of texts [Devlin19], classes of images [Dosovitskiy21]."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from regard.models.inputs import Patches, Tokens
from regard.models.transformer import Encoder
from regard.nn import Dropout, Linear, Sequences, TokenEmbedding
from regard.nn.heads import Chain, Pool

Activation = Callable[[Tensor], Tensor]


class EncoderModel(nn.Module):
    """An encoder, and a head on its output."""

    def __init__(self, encoder: nn.Module, head: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head

    def forward(self, given: Tokens | Patches) -> Tensor:
        """What the head says."""
        said: Tensor = self.head(self.encoder(given), given.sequences)
        return said


class Bert(EncoderModel):
    """Every token sees its whole text [Devlin19 §3].

    The output: ``hidden_TD`` of masked words, ``score_TC`` of tags, ``score_BC`` or ``vector_BD`` of texts.
    """

    encoder: Encoder
    head: WordHead | TextHead | TagHead | VectorHead


class WordHead(nn.Module):
    """Masked words: a dense layer, then scores against the table of embeddings, each with a bias [Devlin19 §3.1]."""

    def __init__(self, output: TokenEmbedding, activation: nn.Module, norm: nn.Module) -> None:
        super().__init__()
        d_model = output.weight.shape[1]
        self.dense = Linear(d_model, d_model)
        self.activation = activation
        self.norm = norm
        self.output = output
        self.bias = nn.Parameter(torch.zeros(output.pieces))

    def forward(self, hidden_TD: Tensor, sequences: Sequences) -> Tensor:
        """``hidden_TD`` that the table is compared with."""
        dense_TD: Tensor = self.norm(self.activation(self.dense(hidden_TD)))
        return dense_TD

    def scores(self, hidden_ND: Tensor) -> Tensor:
        """``score_NV`` of every piece."""
        return self.output.scores(hidden_ND) + self.bias


class VectorHead(nn.Module):
    """A vector for each text: pooled token vectors, then BERT's dense layer if there is one.

    Args:
        pool: pooling of a text's tokens.
        dense: as BERT's pretraining left it [Devlin19 §3.1]; ``None``: there is none.
        activation: of the dense layer; tanh in BERT.
    """

    def __init__(self, pool: Pool, dense: Linear | None, activation: Activation) -> None:
        super().__init__()
        self.pool = pool
        self.dense = dense
        self.activation = activation

    def forward(self, hidden_TD: Tensor, sequences: Sequences) -> Tensor:
        """``vector_BD`` of every text."""
        vector_BD = self.pool(hidden_TD, sequences)
        return vector_BD if self.dense is None else self.activation(self.dense(vector_BD))


class TextHead(VectorHead):
    """Classes of a text: a vector for it, dropout, a score for each class [Devlin19 §4.1].

    Args:
        pool, dense, activation: as :class:`VectorHead`.
        classes: from d_model to a score for each class.
        dropout: probability.
    """

    def __init__(
        self, pool: Pool, dense: Linear | None, activation: Activation, classes: Linear, dropout: float
    ) -> None:
        super().__init__(pool, dense, activation)
        self.dropout = Dropout(dropout)
        self.classes = classes

    def forward(self, hidden_TD: Tensor, sequences: Sequences) -> Tensor:
        """``score_BC`` of every text."""
        score_BC: Tensor = self.classes(self.dropout(super().forward(hidden_TD, sequences)))
        return score_BC


class TagHead(nn.Module):
    """Tag scores for each word: pooling of its pieces, dropout, a linear layer, then the decoder [Devlin19 §5.3].

    Args:
        classes: from d_model to a score for each tag.
        dropout: probability.
        pool: pooling of a word's pieces: the first, as in BERT, or the mean or maximum.
        chain: the tag decoder, independent or CRF.
    """

    def __init__(self, classes: Linear, dropout: float, pool: Pool, chain: Chain) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.classes = classes
        self.pool = pool
        self.chain = chain

    def forward(self, hidden_TD: Tensor, sequences: Sequences) -> Tensor:
        """``score_TC`` of every token, as a word of one piece, for which that piece stands by any pool."""
        score_TC: Tensor = self.classes(self.dropout(hidden_TD))
        return score_TC

    def words(self, hidden_TD: Tensor, words: Sequences) -> Tensor:
        """``score_RC`` of every word, whose pieces are its sequence."""
        return self.forward(self.pool(hidden_TD, words), words)


class Vit(EncoderModel):
    """A class token and the patches of an image; the token is classified: ``score_BC`` [Dosovitskiy21 §3.1]."""

    encoder: Encoder
    head: TextHead


ReadingHead = Callable[[TokenEmbedding], TextHead | TagHead | VectorHead]
"""Makes a head for texts or their words, which needs no table of embeddings."""
Head = Callable[[TokenEmbedding], WordHead | TextHead | TagHead | VectorHead]
"""Makes the head on an encoder with these embeddings."""

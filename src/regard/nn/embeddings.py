"""Token embeddings: ids → vectors, times √d_model, plus positions, then dropout [Vaswani17 §3.4, §3.5, §5.4]."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.nn import hooks
from regard.nn.dropout import Dropout
from regard.nn.init import Vectors, draw
from regard.nn.ops import Linear, Path, matmul
from regard.nn.positions import Positions


class TokenEmbedding(Vectors, nn.Module):
    """A table of one vector per piece; a row after the pieces is the start symbol's, zero and never trained.

    The table may be shared: source and target embedding and the output projection are one matrix in the paper
    [Vaswani17 §3.4, Press17].

    Args:
        pieces: V, what ids are below.
        d_model: entries of a vector.
        start: rows after the pieces: 1 for the start symbol of a decoder that reads what an encoder read, else 0.
    """

    product: Path = "exact"

    def __init__(self, pieces: int, d_model: int, start: int = 1) -> None:
        super().__init__()
        self.pieces = pieces
        self.start = pieces if start else None
        self.weight = nn.Parameter(torch.empty(pieces + start, d_model))
        draw(self)

    def initialise(self, generator: torch.Generator | None = None) -> None:
        """Standard deviation d_model^-0.5; the start symbol's row is zero."""
        super().initialise(generator)
        with torch.no_grad():
            self.weight[self.pieces :] = 0

    def forward(self, ids_T: Tensor) -> Tensor:
        """``x_TD``, a row of the table for each id; no gradient flows to the start symbol's row."""
        return F.embedding(ids_T, self.weight, padding_idx=self.start)

    def scores(self, hidden_ND: Tensor) -> Tensor:
        """The pre-softmax projection ``score_NV`` onto every piece; the start symbol is never predicted."""
        return matmul(hidden_ND, self.weight[: self.pieces].t(), self.product)


class InputEmbedding(nn.Module):
    """Input of a stack: ``Dropout(Embedding(ids) · √d_model + positions)`` [Vaswani17 §3.4, §3.5, §5.4].

    Args:
        tokens, positions: parts.
        dropout: probability.
        scale: what embeddings are multiplied by; default √d_model.
        segments: adds a vector for each token's segment, where there are several [Devlin19 §3.2].
        words: adds to each token a vector for the features of its word.
        norm: of the sum, in BERT.
    """

    def __init__(
        self,
        tokens: TokenEmbedding,
        positions: Positions,
        dropout: float,
        scale: float | None = None,
        segments: Segments | None = None,
        norm: nn.Module | None = None,
        words: WordEmbedding | None = None,
    ) -> None:
        super().__init__()
        self.tokens = tokens
        self.positions = positions
        self.scale = tokens.weight.shape[1] ** 0.5 if scale is None else scale
        self.segments = segments
        self.words = words
        self.norm = norm or nn.Identity()
        self.dropout = Dropout(dropout)
        self.path = ""

    def forward(
        self,
        ids_T: Tensor,
        positions_T: Tensor,
        longest: int,
        segments_T: Tensor | None = None,
        words: WordRows | None = None,
    ) -> Tensor:
        """``x_TD``; positions count from 0 in each sentence and are below ``longest``; segments are 0 by default."""
        x_TD = self.tokens(ids_T)
        if self.words is not None:
            x_TD = self.words(x_TD, words)
        x_TD = hooks.hook_point(f"{self.path}.embedding", x_TD * self.scale)
        x_TD = hooks.hook_point(f"{self.path}.positions", self.positions.embed(x_TD, positions_T, longest))
        if self.segments is not None:
            x_TD = self.segments(x_TD, segments_T)
        return self.dropout(self.norm(x_TD))


@dataclass(frozen=True)
class WordRows:
    """The words of tokens.

    Args:
        word_T: the number of each token's word, from 1 on; 0 for none.
        features_WE: the numbers of each word's features.
    """

    word_T: Tensor
    features_WE: Tensor


class WordEmbedding(Vectors, nn.Module):
    """Adds to each token the sum of the vectors of its word's features [Miranda22].

    Args:
        buckets: different features.
        d_model: entries of a vector.
        each: features of a word.
    """

    def __init__(self, buckets: int, d_model: int, each: int) -> None:
        super().__init__()
        self.each = each
        self.weight = nn.Parameter(torch.empty(buckets, d_model))
        draw(self)

    def initialise(self, generator: torch.Generator | None = None) -> None:
        """The sum of a word's vectors has standard deviation d_model^-0.5."""
        super().initialise(generator)
        with torch.no_grad():
            self.weight.mul_(self.each**-0.5)

    def forward(self, x_TD: Tensor, words: WordRows | None) -> Tensor:
        """``x_TD`` plus the vector of each token's word, if it has one.

        Raises:
            ValueError: the words are not given.
        """
        if words is None:
            raise ValueError("a model with word features needs the words of its tokens")
        # In the trainer's buffer only the rows of these words are added. A gradient of its own may be gone before the
        # backward pass, and a sparse one in its place is refused by torch's optimisers.
        gradient = self.weight.grad
        adds = self.weight.is_cpu and gradient is not None and gradient._is_view()
        word_WD = F.embedding_bag(words.features_WE, self.weight, mode="sum", sparse=adds)
        none_1D = word_WD.new_zeros(1, word_WD.shape[1])
        return x_TD + torch.cat([none_1D, word_WD]).index_select(0, words.word_T).to(x_TD.dtype)


class Segments(Vectors, nn.Module):
    """A learned vector for each kind of segment, added to its tokens [Devlin19 §3.2, Figure 2]."""

    def __init__(self, kinds: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(kinds, d_model))
        draw(self)

    def forward(self, x_TD: Tensor, segments_T: Tensor | None) -> Tensor:
        """``x_TD`` plus each token's segment; the first segment by default."""
        return x_TD + (self.weight[0] if segments_T is None else self.weight[segments_T])


class PatchEmbedding(Vectors, nn.Module):
    """An image as tokens: a class token, then each patch's pixels times one matrix [Dosovitskiy21 §3.1, eq. 1].

    Args:
        project: pixels of a patch → d_model.
        positions: learned, one for each place of the image.
        dropout: probability.
    """

    def __init__(self, project: Linear, positions: Positions, dropout: float) -> None:
        super().__init__()
        self.project = project
        self.first = nn.Parameter(torch.empty(project.out_features))
        self.positions = positions
        self.dropout = Dropout(dropout)
        self.path = ""
        draw(self)

    def forward(
        self,
        pixels_TP: Tensor,
        positions_T: Tensor,
        longest: int,
        segments_T: Tensor | None = None,
        words: WordRows | None = None,
    ) -> Tensor:
        """``x_TD``; position 0 is the class token, whose pixels are ignored; no segments and no words here."""
        patch_TD = torch.where(positions_T[:, None] > 0, self.project(pixels_TP), self.first)
        patch_TD = hooks.hook_point(f"{self.path}.embedding", patch_TD)
        x_TD = hooks.hook_point(f"{self.path}.positions", self.positions.embed(patch_TD, positions_T, longest))
        return self.dropout(x_TD)

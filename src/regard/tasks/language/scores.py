"""Scores of language models: perplexity in windows, and masked tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regard.data.batches.batch import Ids, batches_by_length, pack_sources
from regard.system.errors import UsageError
from regard.tasks.protocols import Divide, find_at_once
from regard.tasks.text.task import ROOM, inference_mode

if TYPE_CHECKING:
    from regard.models.gpt import Gpt

Floats = NDArray[np.float64]
CHUNK = 512
"""Tokens whose scores of every piece are in memory at once."""


@dataclass(frozen=True)
class Perplexity:
    """How well a language model knows some texts; of the last two measures no tokenizer decides.

    Args:
        nats: the surprise at all tokens, the ends of the texts among them.
        tokens: how many these are.
        words: of the texts, by the white space between them.
        bytes: of the texts in UTF-8.
    """

    nats: float
    tokens: int
    words: int
    bytes: int

    @property
    def per_token(self) -> float:
        """Of a token; that of another tokenizer is another number."""
        return _exp(self.nats / max(1, self.tokens))

    @property
    def per_word(self) -> float:
        """Of a word, whatever its tokens are."""
        return _exp(self.nats / max(1, self.words))

    @property
    def bits_per_byte(self) -> float:
        """Bits that the model needs to tell a byte."""
        return self.nats / math.log(2) / max(1, self.bytes)

    def to_dict(self) -> dict[str, float | None]:
        """Plain values, for JSON; an infinite perplexity is null."""
        measures = {
            "perplexity_per_token": self.per_token,
            "perplexity_per_word": self.per_word,
            "perplexity_per_byte": _exp(self.nats / max(1, self.bytes)),
            "bits_per_byte": self.bits_per_byte,
        }
        finite = {name: value if math.isfinite(value) else None for name, value in measures.items()}
        return {"nats_per_token": self.nats / max(1, self.tokens), **finite, **vars(self)}

    @classmethod
    def of(cls, nats: Sequence[Floats], texts: Sequence[str]) -> Perplexity:
        """Of texts, by the surprise at each of their tokens."""
        words, size = sum(len(text.split()) for text in texts), sum(len(text.encode()) for text in texts)
        return cls(sum(float(one.sum()) for one in nats), sum(map(len, nats)), words, size)

    def __add__(self, other: Perplexity) -> Perplexity:
        return Perplexity(*(getattr(self, name) + getattr(other, name) for name in vars(self)))


def _exp(nats: float) -> float:
    return math.exp(nats) if nats < 700 else math.inf


@dataclass(frozen=True)
class _Window:
    """Tokens ``begin`` to before ``end`` of a document, of which those from ``fresh`` on were in no window before."""

    document: int
    begin: int
    fresh: int
    end: int


def windows(lengths: Sequence[int], length: int, stride: int) -> Iterator[_Window]:
    """Windows of at most ``length`` tokens; each but a document's first holds at most ``stride`` new ones, at its end.

    Raises:
        UsageError: the stride is no part of a window.
    """
    if not 1 <= stride <= length:
        raise UsageError(f"a stride of {stride} must lie between 1 and a window's {length} tokens", "stride")
    for document, count in enumerate(lengths):
        yield _Window(document, 0, 0, min(count, length))
        for fresh in range(length, count, stride):
            end = min(fresh + stride, count)
            yield _Window(document, max(0, fresh + stride - length), fresh, end)


@inference_mode
def surprisals(
    model: Gpt,
    documents: Sequence[Ids],
    length: int,
    stride: int,
    begin: int,
    asked: Callable[[], None] = lambda: None,
    divide: Divide = find_at_once,
) -> list[Floats]:
    """Negative log-likelihood of every token of each document, in nats.

    Args:
        model: predicts the next token.
        documents: ids, ``</s>`` last where the end is to be guessed too.
        length: tokens of a window.
        stride: new tokens of each window but the first; with fewer, each token has more before it, and it takes longer.
        begin: tokens before a document.
        asked: called before each forward pass; may raise.
        divide: computes the batches, perhaps in several processes.
    """
    found = [np.zeros(len(document)) for document in documents]
    every = [window for window in windows(list(map(len, documents)), length, stride) if window.end > window.begin]
    lengths = np.array([window.end - window.begin for window in every], np.int64)
    batches = list(batches_by_length(lengths, ROOM))

    def nats_of(some: Sequence[Ids], first: int) -> list[list[float]]:
        sums = []
        for part in some:
            asked()
            chosen = [every[place] for place in part]
            labels = [documents[window.document][window.begin : window.end] for window in chosen]
            before = [documents[window.document][window.begin - 1] if window.begin else begin for window in chosen]
            read = [np.append(np.int64(id), ids[:-1]) for id, ids in zip(before, labels, strict=True)]
            sums.append(_nats(model, read, np.concatenate(labels)).tolist())
        return sums

    for part, nats_T in zip(batches, divide(nats_of, batches), strict=True):
        parts = np.split(np.array(nats_T), lengths[part].cumsum()[:-1])
        for window, nats in zip((every[place] for place in part), parts, strict=True):
            found[window.document][window.fresh : window.end] = nats[window.fresh - window.begin :]
    return found


def _nats(model: Gpt, read: Sequence[Ids], labels: Ids) -> Floats:
    import torch

    from regard.models.inputs import tokens

    device = model.output.weight.device
    hidden_TD = model(tokens(pack_sources(read), device))
    labels_T, parts = torch.from_numpy(labels).to(device), []
    for hidden_ND, labels_N in zip(hidden_TD.split(CHUNK), labels_T.split(CHUNK), strict=True):
        score_NV = model.output.scores(hidden_ND)
        score_NV = score_NV if score_NV.dtype == torch.float64 else score_NV.float()
        parts.append(score_NV.logsumexp(1) - score_NV.gather(1, labels_N[:, None])[:, 0])
    return torch.cat(parts).double().cpu().numpy()


@dataclass(frozen=True)
class PredictionScores:
    """Scores of masked tokens.

    Args:
        nats: sum of their negative log-likelihoods.
        tokens: their number.
        right: how many were predicted correctly.
    """

    nats: float
    tokens: int
    right: int

    @property
    def loss(self) -> float:
        """Nats a token."""
        return self.nats / max(1, self.tokens)

    @property
    def perplexity(self) -> float:
        """Of a token."""
        return math.exp(min(self.loss, 700))

    @property
    def accuracy(self) -> float:
        """Per cent of the tokens that were guessed right."""
        return 100 * self.right / max(1, self.tokens)

    def to_dict(self) -> dict[str, float]:
        """Plain values, for JSON."""
        return {"loss": self.loss, "perplexity": self.perplexity, **vars(self), "accuracy": self.accuracy}

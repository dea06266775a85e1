"""BPE-dropout of taggers and classifiers: where it is the default, and what is then learned from."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from regard.config import Recipe
from regard.data.prepare_examples import PreparedExamples
from regard.data.shards import Side
from regard.data.tag_segments import TagSegments
from regard.data.text_segments import Draws, TextSegments
from regard.errors import UsageError
from regard.tasks.pretrained import Pretrained
from regard.tasks.text_assets import TextAssets
from regard.text.bpe_dropout import Segmenter
from regard.text.tokenizer import Tokenizer

BPE_DROPOUT, FEW = 0.1, 100_000
"""Where nobody says: the probability, and the number of texts from which on there are enough of them without it."""


def segmented_anew(recipe: Recipe, texts: int, begun: Pretrained | None) -> dict[str, float]:
    """BPE-dropout for few texts that a fresh model learns from, where pieces are merged at all."""
    wanted = begun is None and texts < FEW and recipe.text.units == "pieces"
    return {"text.bpe_dropout": BPE_DROPOUT} if wanted else {}


def learned_from(prepared: PreparedExamples, recipe: Recipe) -> tuple[Side, Side]:
    """Pieces and marks, as they lie there, or drawn anew in every epoch.

    Raises:
        UsageError: dropout of merges is asked for, but the model that is begun from has none we know.
    """
    text = recipe.text
    if not text.bpe_dropout:
        return prepared.text, prepared.labels
    found = _drawn(prepared, text.bpe_dropout, text.segmentations, recipe.seed, recipe.data.max_tokens)
    return found, found.marks


def read_anew(prepared: PreparedExamples, recipe: Recipe) -> Side:
    """The pieces of texts with labels, as they lie there, or drawn anew in every epoch.

    Raises:
        UsageError: as :func:`learned_from`.
    """
    text = recipe.text
    if not text.bpe_dropout:
        return prepared.text
    return _read(prepared, text.bpe_dropout, text.segmentations, recipe.seed, recipe.data.max_tokens)


@lru_cache(maxsize=1)  # a run asks several times: when it measures, and when it trains
def _drawn(prepared: PreparedExamples, dropout: float, count: int, seed: int, max_tokens: int) -> TagSegments:
    _, draws = _draws(prepared, dropout, count, seed)
    return TagSegments(prepared.text, prepared.labels, draws, seed, max_tokens)


@lru_cache(maxsize=1)
def _read(prepared: PreparedExamples, dropout: float, count: int, seed: int, max_tokens: int) -> TextSegments:
    tokenizer, draws = _draws(prepared, dropout, count, seed)
    starts = lambda number, pieces: np.flatnonzero(tokenizer.word_starts(pieces))  # noqa: E731
    return TextSegments(prepared.text, starts, draws, seed, max_tokens)


def _draws(prepared: PreparedExamples, dropout: float, count: int, seed: int) -> tuple[Tokenizer, Draws]:
    tokenizer = TextAssets.load(prepared.folder).tokenizer
    if not isinstance(tokenizer, Tokenizer):
        raise UsageError("is for vocabularies of Regard; the model that is begun from has another", "text.bpe_dropout")
    return tokenizer, Draws(tokenizer, Segmenter(tokenizer, dropout, seed), count)

"""BPE-dropout for taggers and classifiers: when it is the default, and the training data it draws."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from regard.config import Recipe
from regard.data.prepare.bpe_dropout import SegmentationSampler, TagSegments, TextSegments
from regard.data.prepare.examples import PreparedExamples
from regard.data.prepare.shards import Side
from regard.system.errors import UsageError
from regard.tasks.text.assets import TextAssets
from regard.tasks.text.pretrained import Pretrained
from regard.text.tokenizers.bpe_dropout import Segmenter
from regard.text.tokenizers.tokenizer import Tokenizer

BPE_DROPOUT, FEW = 0.1, 100_000
"""Default probability, and the number of texts above which dropout is off."""


def uses_bpe_dropout(recipe: Recipe, texts: int, begun: Pretrained | None) -> dict[str, float]:
    """BPE-dropout for few texts that a fresh model learns from, where pieces are merged at all."""
    wanted = begun is None and texts < FEW and recipe.text.units == "pieces"
    return {"text.bpe_dropout": BPE_DROPOUT} if wanted else {}


def learned_from(prepared: PreparedExamples, recipe: Recipe) -> tuple[Side, Side]:
    """Pieces and marks, fixed or redrawn in every epoch.

    Raises:
        UsageError: BPE-dropout is requested, but the pretrained model's tokenizer has no merges of ours.
    """
    text = recipe.text
    if not text.bpe_dropout:
        return prepared.text, prepared.labels
    found = _tag_segments(prepared, text.bpe_dropout, text.segmentations, recipe.seed, recipe.data.max_tokens)
    return found, found.marks


def resegment(prepared: PreparedExamples, recipe: Recipe) -> Side:
    """The pieces of labelled texts, fixed or redrawn in every epoch.

    Raises:
        UsageError: as :func:`learned_from`.
    """
    text = recipe.text
    if not text.bpe_dropout:
        return prepared.text
    return _text_segments(prepared, text.bpe_dropout, text.segmentations, recipe.seed, recipe.data.max_tokens)


@lru_cache(maxsize=1)  # a run asks several times: when it measures, and when it trains
def _tag_segments(prepared: PreparedExamples, dropout: float, count: int, seed: int, max_tokens: int) -> TagSegments:
    _, draws = _draws(prepared, dropout, count, seed)
    return TagSegments(prepared.text, prepared.labels, draws, seed, max_tokens)


@lru_cache(maxsize=1)
def _text_segments(prepared: PreparedExamples, dropout: float, count: int, seed: int, max_tokens: int) -> TextSegments:
    tokenizer, draws = _draws(prepared, dropout, count, seed)
    starts = lambda number, pieces: np.flatnonzero(tokenizer.word_starts(pieces))  # noqa: E731
    return TextSegments(prepared.text, starts, draws, seed, max_tokens)


def _draws(prepared: PreparedExamples, dropout: float, count: int, seed: int) -> tuple[Tokenizer, SegmentationSampler]:
    tokenizer = TextAssets.load(prepared.folder).tokenizer
    if not isinstance(tokenizer, Tokenizer):
        raise UsageError("is for vocabularies of Regard; the pretrained model has another", "text.bpe_dropout")
    return tokenizer, SegmentationSampler(tokenizer, Segmenter(tokenizer, dropout, seed), count)

"""Preparation of texts and images for training: the tokenizer, the held-out part, BPE-dropout."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from regard.config import Recipe, Text
from regard.data.corpora.corpus import Progress
from regard.data.corpora.scan import DataScan
from regard.data.prepare.bpe_dropout import SegmentationSampler, Segmenter, segment_tagged, segment_texts
from regard.data.prepare.folder import PreparedExamples
from regard.data.prepare.preparation import Learn, prepare
from regard.data.prepare.shards import Side
from regard.data.prepare.split import Examples, Split, SplitCorpora, split_texts
from regard.system.errors import UsageError
from regard.tasks.assets import TextAssets
from regard.tasks.text.pretrained import Pretrained
from regard.text.tokenizers.tokenizer import Tokenizer, learn
from regard.text.tokenizers.vocabulary import AnyTokenizer, sample

SYMBOLS = ("[CLS]", "[MASK]")
"""Of vocabularies of encoder-only models."""
BPE_DROPOUT, FEW = 0.1, 100_000
"""Default probability for taggers, and the number of texts above which dropout is off."""


def prepare_texts(
    scanned: DataScan[Any],
    recipe: Recipe,
    folder: Path,
    learn: Learn[Examples[Any]],
    rests: dict[str, Any],
    progress: Progress,
    noun: str = "texts",
    processes: int = 1,
) -> PreparedExamples:
    """Prepare labelled examples; without validation data a part is split off by seed.

    Raises:
        RegardError: as :func:`~regard.data.prepare.preparation.prepare`; or there are too few ``noun`` to split.
    """
    scanned.refuse_unreadable("examples")

    def make_split() -> Split:
        return split_texts(scanned.hashes_B2[:, 0], recipe.data.validation, recipe.seed, noun, scanned.name)

    held_out = scanned.validation is not None
    more = {} if held_out else {"data.validation": recipe.data.validation}
    examples: SplitCorpora[Any] = SplitCorpora(scanned, None if held_out else make_split, more)
    return prepare_split(examples, recipe, folder, learn, rests, progress, processes)


def prepare_split(
    examples: Examples[Any],
    recipe: Recipe,
    folder: Path,
    learn: Learn[Examples[Any]],
    rests: dict[str, Any],
    progress: Progress,
    processes: int = 1,
) -> PreparedExamples:
    """Prepare examples whose parts are known, with what the tokenizer depends on."""
    names = ("vocabulary", "units", "normalisation", "lowercase", "sample")
    fields = {f"text.{name}": getattr(recipe.text, name) for name in names}
    whole = {**rests, **fields}
    return PreparedExamples(prepare(examples, recipe, folder, learn, whole, progress, processes=processes))


def prepared_assets(prepared: PreparedExamples, pretrained: Pretrained | None) -> TextAssets:
    """The tokenizer, and what training reads; what a pretrained model has read before is not known."""
    found = TextAssets.load(prepared.folder)
    return found if pretrained is None else replace(found, seen=None)


def learned_tokenizer(
    section: Text, texts: Iterable[str], pretrained: Pretrained | None, symbols: Sequence[str] = SYMBOLS
) -> AnyTokenizer:
    """A tokenizer learned from a seeded sample of texts, or that of the pretrained model.

    Raises:
        UsageError: BPE-dropout is requested, but the pretrained model's tokenizer has no merges of ours.
    """
    if pretrained is not None:
        if section.bpe_dropout:
            require_merges(pretrained.tokenizer)
        for _ in texts:  # labels are counted while they pass
            pass
        return pretrained.tokenizer
    drawn = sample(texts, section.sample, 0)
    return learn(
        drawn, section.vocabulary, section.normalisation, symbols, units=section.units, lowercase=section.lowercase
    )


def uses_bpe_dropout(recipe: Recipe, texts: int, begun: Pretrained | None) -> dict[str, float]:
    """BPE-dropout for few texts that a fresh model learns from, where pieces are merged at all."""
    wanted = begun is None and texts < FEW and recipe.text.units == "pieces"
    return {"text.bpe_dropout": BPE_DROPOUT} if wanted else {}


def tagged_sides(prepared: PreparedExamples, recipe: Recipe) -> tuple[Side, Side]:
    """Pieces and marks of tagged texts, fixed or redrawn in every epoch.

    Raises:
        UsageError: BPE-dropout is requested, but the pretrained model's tokenizer has no merges of ours.
    """
    if not recipe.text.bpe_dropout:
        return prepared.text, prepared.labels
    return _segment_tagged(prepared, *_dropout(recipe))


def text_side(prepared: PreparedExamples, recipe: Recipe) -> Side:
    """The pieces of texts that are read, fixed or redrawn in every epoch.

    Raises:
        UsageError: as :func:`tagged_sides`.
    """
    return _segment_texts(prepared, *_dropout(recipe)) if recipe.text.bpe_dropout else prepared.text


def _dropout(recipe: Recipe) -> tuple[float, int, int, int]:
    return recipe.text.bpe_dropout, recipe.text.segmentations, recipe.seed, recipe.data.max_tokens


@lru_cache(maxsize=1)  # a run asks several times: when it measures, and when it trains
def _segment_tagged(
    prepared: PreparedExamples, dropout: float, count: int, seed: int, max_tokens: int
) -> tuple[Side, Side]:
    draws = _sampler(prepared, dropout, count, seed)
    return segment_tagged(prepared.text, prepared.labels, draws, seed, max_tokens)


@lru_cache(maxsize=1)
def _segment_texts(prepared: PreparedExamples, dropout: float, count: int, seed: int, max_tokens: int) -> Side:
    return segment_texts(prepared.text, _sampler(prepared, dropout, count, seed), seed, max_tokens)


def _sampler(prepared: PreparedExamples, dropout: float, count: int, seed: int) -> SegmentationSampler:
    tokenizer = require_merges(TextAssets.load(prepared.folder).tokenizer)
    return SegmentationSampler(tokenizer, Segmenter(tokenizer, dropout, seed), count)


def require_merges(tokenizer: AnyTokenizer) -> Tokenizer:
    """The tokenizer, whose merges BPE-dropout leaves out.

    Raises:
        UsageError: it is not one of ours.
    """
    if not isinstance(tokenizer, Tokenizer):
        raise UsageError("is for vocabularies of Regard; the pretrained model has another", "text.bpe_dropout")
    return tokenizer

"""Preparation of training: a model to begin from, the tokenizer, the held-out part, BPE-dropout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from torch import nn

from regard.config import TASKS, Attentive, Data, Recipe, Text, Training, saved_recipe
from regard.data.corpora.corpus import Progress
from regard.data.corpora.scan import DataScan
from regard.data.prepare.bpe_dropout import Segmenter, require_merges, segment_tagged, segment_texts
from regard.data.prepare.folder import PreparedExamples
from regard.data.prepare.preparation import Learn, prepare
from regard.data.prepare.shards import Side
from regard.data.prepare.split import Examples, Split, SplitCorpora, split_texts
from regard.models import store
from regard.system.errors import RegardError
from regard.tasks.assets import TextAssets
from regard.tasks.model_path import MODEL, RECIPE, model_folder, verify_with_base, with_base
from regard.tasks.training.defaults import ADAPTED, GOES_ON, IMPORTED, SMALL, pool_fields
from regard.text.confidence import NOT_CALIBRATED
from regard.text.languages import UNKNOWN
from regard.text.tokenizers.tokenizer import Tokenizer, learn
from regard.text.tokenizers.vocabulary import AnyTokenizer, Vocabularies, sample

SYMBOLS = ("[CLS]", "[MASK]")
"""Of vocabularies of encoder-only models."""
LANGUAGES = "source_language", "target_language"
BPE_DROPOUT, FEW = 0.1, 100_000
"""Default probability for taggers, and the number of texts above which dropout is off."""


@dataclass(frozen=True)
class Pretrained:
    """A pretrained model folder to initialise from.

    Args:
        folder: where it lies.
        recipe: of the model.
    """

    folder: Path
    recipe: Recipe

    @property
    def tokenizer(self) -> AnyTokenizer:
        """Its text to pieces.

        Raises:
            RegardError: it is damaged, or the model is a translator of two vocabularies.
        """
        if not self.vocabularies.joint:
            raise RegardError("has a vocabulary for each language, but one is needed for both", str(self.folder))
        return self.vocabularies.source

    @cached_property
    def vocabularies(self) -> Vocabularies:
        """One of both sides, or those of a translator; what was read, and how sure it was, is not known any more.

        Raises:
            RegardError: one is damaged.
        """
        with with_base(self.folder) as whole:
            return replace(Vocabularies.load(whole), seen=None, doubted_below=None, calibration=NOT_CALIBRATED)

    @property
    def languages(self) -> dict[str, str]:
        """Those of a translator, where they are known, by the names of the recipe's fields."""
        codes = {f"text.{name}": str(getattr(self.recipe.text, name)) for name in LANGUAGES}
        translates = self.recipe.info.learns_from == "pairs"
        return {name: code for name, code in codes.items() if translates and code != UNKNOWN}

    @classmethod
    def load(cls, folder: Path | str) -> Pretrained:
        """The model folder, its manifest verified.

        Raises:
            RegardError: it is no model folder, or damaged, or reads images.
        """
        folder = model_folder(folder)
        if not (folder / RECIPE).exists() or not (folder / MODEL).exists():
            message = f"is no model folder to initialise from; one of others comes in by: regard import {folder} DIR"
            raise RegardError(message if folder.exists() else "no such folder", str(folder))
        verify_with_base(folder)
        recipe = saved_recipe(folder / RECIPE)
        if recipe.info.reads == "image":
            raise RegardError(f"is {recipe.info.noun}, from which no training can begin", str(folder))
        return cls(folder, recipe)

    def values(self, task: str, low_rank: bool = False) -> dict[str, dict[str, object]]:
        """Recipe values taken over: the model section, the tokenizer settings, and the maximum length.

        By a translator also how it decodes, its languages if it has one each way, and by it and by a classifier on
        attention the rate, which is higher where ``low_rank`` factors alone are trained.
        """
        text = self.recipe.text.model_dump(include={"vocabulary", "units", "normalisation", "lowercase"})
        found = {"model": pool_fields(task, self.recipe.model.model_dump(exclude_none=True)), "text": text}
        longest = self.recipe.data.max_tokens
        if TASKS[task].learns_from == "pairs":
            return found | self._of_translator(text, low_rank)
        rate = GOES_ON if low_rank else ADAPTED
        if TASKS[task].writes == "classes" and isinstance(self.recipe.model, Attentive):
            found["training"] = {"rate": rate / max(self.recipe.model.d_model, SMALL)}
        return found | ({"data": {"max_tokens": longest}} if longest < Data().max_tokens else {})

    def _of_translator(self, text: dict[str, object], low_rank: bool) -> dict[str, dict[str, object]]:
        """Further values that a translator takes over, beside those of the tokenizer."""
        recipe, longest = self.recipe, self.recipe.data.max_tokens
        codes = {} if self.vocabularies.languages else {name.partition(".")[2]: c for name, c in self.languages.items()}
        training: dict[str, object] = {"tokens": longest} if longest > Training().tokens else {}
        training["rate"] = GOES_ON / recipe.model.d_model
        if not isinstance(self.vocabularies.source, Tokenizer):  # others trained it, longer than anybody here
            rate = GOES_ON if low_rank else ADAPTED
            training |= {"rate": IMPORTED * rate / recipe.model.d_model, "label_smoothing": 0.0}
        return {
            "text": {**text, "joint": recipe.text.joint, **codes},
            "data": {"max_tokens": longest},
            "decoding": recipe.decoding.model_dump(),
            "training": training,
        }

    def give(self, model: nn.Module, assets: Any = None) -> set[str]:
        """Copy every weight of the same name and shape, and tell which; the head stays fresh where it is another.

        Tables of a translator whose ``assets`` have more pieces are filled too.

        Raises:
            RegardError: a weight below the head is not there, or of another shape; half a model would be no beginning.
        """
        taken, filled = set(store.take(self.folder / MODEL, model)), set[str]()
        if isinstance(assets, Vocabularies) and assets.sizes != self.vocabularies.sizes:
            from regard.models.embedding_rows import extend_tables  # few trainings need it

            filled = extend_tables(self.folder / MODEL, model, self.vocabularies, assets) - taken
        names = (name for name in store.named_tensors(model) if not name.startswith("head."))
        if missing := [name for name in names if name not in taken | filled]:
            more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
            message = f"does not fit the model to be trained, which has another {missing[0]}{more}"
            raise RegardError(f"{message}; leave the sizes of the section model as they are there", str(self.folder))
        return taken


def prepare_texts(
    scanned: DataScan[Any],
    recipe: Recipe,
    folder: Path,
    learn: Learn[Examples[Any]],
    rests: Mapping[str, object],
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
    rests: Mapping[str, object],
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


def segmented_sides(prepared: PreparedExamples, recipe: Recipe, tagged: bool = False) -> tuple[Side, Side]:
    """The pieces of texts that are read, fixed or redrawn in every epoch, and labels; or the marks of tagged words.

    Raises:
        UsageError: BPE-dropout is requested, but the pretrained model's tokenizer has no merges of ours.
    """
    text = recipe.text
    if not text.bpe_dropout:
        return prepared.text, prepared.labels
    return _segment(prepared, tagged, text.bpe_dropout, text.segmentations, recipe.seed, recipe.data.max_tokens)


@lru_cache(maxsize=1)  # a run asks several times: when it measures, and when it trains
def _segment(
    prepared: PreparedExamples, tagged: bool, dropout: float, count: int, seed: int, max_tokens: int
) -> tuple[Side, Side]:
    tokenizer = require_merges(TextAssets.load(prepared.folder).tokenizer)
    segmenter = Segmenter(tokenizer, dropout, seed, count)
    if tagged:
        return segment_tagged(prepared.text, prepared.labels, segmenter, max_tokens)
    return segment_texts(prepared.text, segmenter, max_tokens), prepared.labels

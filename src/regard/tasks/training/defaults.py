"""Default model sizes and training settings by task and number of examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

import torch
from torch import nn

from regard.config import FAMILIES, TASKS, Model, Recipe, Training, merge
from regard.models.presets import PRESETS, count_parameters, preset
from regard.system.errors import RegardError
from regard.system.processor import usable_cores
from regard.training.measure import free_memory, step_seconds

Values = Mapping[str, Mapping[str, object]]
"""Of a recipe, by section and field."""
MORE = float("inf")
"""Any number of texts, pairs or characters."""
BESIDE = (("classification", "ngrams"), ("model", "word_features"))
"""What only Regard reads beside pieces, by section and field: no other format has a form for it."""
_SMALL: Values = {"text": {"vocabulary": 4000}, "training": {"rate": 1e-3, "ema": 0.99}}
_MANY: Values = {"text": {"vocabulary": 8000}, "training": {"rate": 1e-3}}
_READ: Values = {**_SMALL, "classification": {"ngrams": True}}
_TWO: Values = {"model": {"segments": 2, "dropout": 0.1}}
_PAIRS, _MANY_PAIRS = {**_SMALL, **_TWO}, {**_MANY, **_TWO}
_MOVED = {**_SMALL, "classification": {"ngrams": True, "adversarial": 0.5}}
_TAGS: Values = {"text": {"vocabulary": 3000}, "training": {"tokens": 512}, "model": {"word_features": 1 << 15}}
_CHAINED: Values = {
    "text": {"vocabulary": 3000},
    "training": {"tokens": 1024, "rate": 3e-3, "ema": 0.99},
    "model": {"word_features": 1 << 15},
    "tagging": {"crf": True},
}
_GUESSING: Mapping[str, object] = {
    "rate": 2e-3,
    "warmup": 100,
    "label_smoothing": 0.0,
    "optimiser": "adamw",
    "weight_decay": 0.1,
}
_WORDS: Values = {"training": {**_GUESSING, "tokens": 2048}}
"""Of tasks that guess words of running text, which are judged by their likelihood; small batches learn most from it."""
_CHARACTERS: Values = {
    "text": {"units": "characters"},
    "data": {"max_tokens": 128},
    "training": {**_GUESSING, "tokens": 768},
}
_TEXTS: Values = {"text": {"vocabulary": 4000}, "training": {"tokens": 1024, "label_smoothing": 0.0}}
NOAM = 1.0
"""The rate under ``noam``, where it is a factor of the paper's formula: the paper's [Vaswani17 §5.3, eq. 3]."""
BYTES = 16
"""Of a parameter in training: fp32 weight, gradient and Adam's two moments."""
SHOWN = ("d_model", "d_ff", "encoder_layers", "decoder_layers", "layers")
"""Fields by which a person knows a model's size."""
TIMED, TRAINING, ENOUGH = 1024, 0.7, 300
"""Target tokens of a step that is timed; share of the minutes that goes to steps; steps that a model should make."""
FEWEST = 258
"""Pieces of the smallest vocabulary: the bytes and two symbols."""


@dataclass(frozen=True)
class SizeDefaults:
    """Defaults for corpora below ``pairs`` sentence pairs.

    Args:
        tokens: target tokens of a batch; small data wants small batches (docs/experiments.md).
        epochs: passes over the corpus if neither steps nor minutes are given.
    """

    pairs: float
    preset: str
    vocabulary: int
    tokens: int
    epochs: int
    training: tuple[tuple[str, float], ...] = ()

    def steps_in(self, minutes: float) -> float:
        """About how many steps its model makes here in so many minutes, validations and scores included."""
        timed = min(self.tokens, TIMED)
        seconds = step_seconds(preset(self.preset).section, self.vocabulary, timed) * self.tokens / timed
        return TRAINING * 60 * minutes / seconds * min(2, usable_cores())


SIZES = (
    SizeDefaults(10_000, "tiny", 2_000, 1024, 60, (("rate", 3e-3),)),
    SizeDefaults(80_000, "tiny", 6_000, 1024, 30, (("rate", 3e-3),)),
    SizeDefaults(500_000, "small", 8_000, 2048, 20),
    SizeDefaults(3_000_000, "base", 16_000, 8192, 8, (("rate", 7e-4), ("warmup", 4000))),
    SizeDefaults(MORE, "base", 32_000, 25_000, 4, (("rate", 7e-4), ("warmup", 4000))),
)
"""The documented table (docs/recipes.md): the first row a corpus is below."""


def size_for(pairs: int, minutes: float | None = None, begun: int | None = None) -> SizeDefaults:
    """The row of the table for n pairs, or an earlier one whose smaller model suits better.

    A large model that has made few steps is worse than a small one that has made many (docs/recipes.md).

    Args:
        pairs: their number.
        minutes: that the training may take; the model should make :data:`ENOUGH` steps in them.
        begun: ``d_model`` of a run that resumes: its row stays, whatever this machine is worth now.
    """
    rows = [size for size in SIZES if size.pairs <= pairs]
    row = SIZES[len(rows)]
    smaller = [row, *(size for size in reversed(rows) if size.preset != row.preset)]
    if begun is not None:
        return next((size for size in smaller if preset(size.preset).section.d_model == begun), row)
    if minutes is None:
        return row
    last = SIZES[0].preset
    return next(size for size in smaller if size.preset == last or size.steps_in(minutes) >= ENOUGH)


@dataclass(frozen=True)
class ReadingDefaults:
    """Defaults of a task below a number of texts.

    Args:
        count: texts, or documents.
        epochs: passes over them if neither steps nor minutes are given.
        values: of the recipe.
        other: the same for a family other than the preset's.
    """

    count: float
    preset: str
    epochs: int
    values: Values
    other: ReadingDefaults | None = None

    @property
    def family(self) -> str:
        """Of the preset."""
        return PRESETS[self.preset].family

    def of(self, family: str) -> ReadingDefaults:
        """The defaults for a family: these, or the other's; for a third family those outside the model section."""
        return self.other if self.other and self.other.family == family else self

    def family_for(self, model: Mapping[str, object]) -> str:
        """The family that is named; else the first that has the fields named, and the words that are given to them."""
        found = [one.family for one in (self, self.other) if one]
        return str(model["family"]) if "family" in model else next((f for f in found if _has(f, model)), found[0])


def _has(family: str, model: Mapping[str, object]) -> bool:
    """Whether a family has these fields, and knows their words; numbers are judged later, by their own sentences."""
    fields = FAMILIES[family].model_fields
    return all(
        name in fields and (get_origin(kind := fields[name].annotation) is not Literal or value in get_args(kind))
        for name, value in model.items()
    )


READINGS: dict[str, tuple[ReadingDefaults, ...]] = {
    "text-to-text": (
        ReadingDefaults(10_000, "t5-tiny", 60, _TEXTS),
        ReadingDefaults(100_000, "t5-tiny", 30, _TEXTS),
        ReadingDefaults(MORE, "t5-tiny", 10, _TEXTS),
    ),
    "classification": (
        ReadingDefaults(6_000, "classifier-rnn", 17, _MOVED, ReadingDefaults(6_000, "classifier-tiny", 12, _READ)),
        ReadingDefaults(10_000, "classifier-rnn", 9, _MOVED, ReadingDefaults(10_000, "classifier-tiny", 12, _READ)),
        ReadingDefaults(100_000, "classifier-tiny", 15, _READ, ReadingDefaults(100_000, "classifier-rnn", 15, _MOVED)),
        ReadingDefaults(MORE, "classifier-tiny", 4, _MANY, ReadingDefaults(MORE, "classifier-rnn", 4, _MANY)),
    ),
    "sentence-pairs": (
        ReadingDefaults(10_000, "classifier-tiny", 12, _PAIRS, ReadingDefaults(10_000, "classifier-rnn", 17, _SMALL)),
        ReadingDefaults(100_000, "classifier-tiny", 15, _PAIRS, ReadingDefaults(100_000, "classifier-rnn", 15, _SMALL)),
        ReadingDefaults(MORE, "classifier-tiny", 4, _MANY_PAIRS, ReadingDefaults(MORE, "classifier-rnn", 4, _MANY)),
    ),
    "tagging": (
        ReadingDefaults(8_000, "tagger-rnn", 6, _CHAINED, ReadingDefaults(8_000, "tagger-tiny", 25, _TAGS)),
        ReadingDefaults(100_000, "tagger-rnn", 6, _CHAINED, ReadingDefaults(100_000, "tagger-tiny", 17, _TAGS)),
        ReadingDefaults(MORE, "tagger-tiny", 4, {**_TAGS, "text": {"vocabulary": 8000}, "training": {}}),
    ),
    "image-classification": (
        ReadingDefaults(10_000, "vit-tiny", 85, {"training": {"rate": 1e-3}, "images": {"warp": 0.2}}),
        ReadingDefaults(100_000, "vit-tiny", 15, {"training": {"rate": 1e-3}, "images": {"warp": 0.2}}),
        ReadingDefaults(MORE, "vit-tiny", 4, {"training": {"rate": 1e-3}, "images": {"warp": 0.2}}),
    ),
    "masked-lm": (
        ReadingDefaults(5_000_000, "bert-small", 20, {**_WORDS, "data": {"max_tokens": 128}}),
        ReadingDefaults(MORE, "bert-small", 5, {**_WORDS, "data": {"max_tokens": 128}}),
    ),
    "language-model": (
        ReadingDefaults(5_000_000, "gpt-tiny", 25, _CHARACTERS),
        ReadingDefaults(MORE, "gpt-tiny", 10, _WORDS),
    ),
}
"""The documented table (docs/recipes.md) of the tasks beside translation: the first row the data is below."""


_SPANNED: Values = {"data": {"max_tokens": 128}, "training": {**_GUESSING, "tokens": 512, "select": "loss"}}
SPANS = ReadingDefaults(MORE, "t5-tiny", 10, _SPANNED)
"""The same of text to text from running text, which reads about four tokens for each that it writes."""


def reading_for(task: str, count: int) -> ReadingDefaults:
    """The row of the table for n texts."""
    return next(row for row in READINGS[task] if count < row.count)


def epochs_for(recipe: Recipe, count: int) -> int:
    """Default number of passes over n texts."""
    row = SPANS if recipe.text_to_text.spans else reading_for(recipe.task, count)
    return row.of(recipe.model.family).epochs


def defaults(
    task: str,
    count: int,
    name: str | None,
    with_model: bool,
    schedule: str | None,
    model: Mapping[str, object] | None = None,
    minutes: float | None = None,
    begun: int | None = None,
    spans: bool = False,
) -> dict[str, Any]:
    """Default recipe values for a task and number of examples.

    Args:
        task: the recipe's word.
        count: pairs or texts.
        name: a preset to use instead of the table's.
        with_model: False if the recipe has a model section, which is used as it is.
        schedule: the requested one; the table's peak rates are not for ``noam``.
        model: requested model fields; the preset is of a family that has them.
        minutes, begun: of a translator, as :func:`size_for` takes them; a preset that is named, or a model, decides.
        spans: text to text from running text.
    """
    row: SizeDefaults | ReadingDefaults
    if TASKS[task].learns_from == "pairs":
        row = size_for(count, minutes, begun) if with_model and not name else size_for(count)
        found: dict[str, Any] = {"text": {"vocabulary": row.vocabulary}}
        found["training"] = {"tokens": row.tokens, **dict(row.training)}
    else:
        first = SPANS if spans else reading_for(task, count)
        row = first.of(preset(name).family if name else first.family_for(model or {}))
        found = merge({"task": task, "training": {"tokens": Training().tokens}}, row.values)
    chosen = preset(name or row.preset)
    found = merge(found, {"training": chosen.training})
    own = {key: value for key, value in found.pop("model", {}).items() if key in FAMILIES[chosen.family].model_fields}
    found["training"].pop("steps", None)  # a paper's number of steps belongs to its corpus
    if schedule == "noam":
        found["training"]["rate"] = NOAM
    if with_model or name:
        found["model"] = {"family": chosen.family, **pool_fields(task, chosen.model), **own}
    return found


def pool_fields(task: str, model: Mapping[str, object]) -> dict[str, object]:
    """Fields of a model for a task: what weighs whole texts pools no tagged word; there the usual pool stays."""
    weighs = TASKS[task].writes == "tags" and model.get("pool") == "attention"
    return {name: value for name, value in model.items() if not (weighs and name == "pool")}


def refuse_too_large(model: Model, make: Callable[[], nn.Module], device: torch.device) -> None:
    """Raise a RegardError if a model cannot be trained in the memory there is, before any of it is taken.

    Args:
        model: its sizes, for the sentence.
        make: makes it; on paper only.
        device: where it would be trained.
    """
    free = free_memory(device)
    with torch.device("meta"):
        count = count_parameters(make())
    if free is None or BYTES * count <= free:
        return
    sizes = ", ".join(f"{name} {value:,}" for name, value in model if name in SHOWN)
    raise RegardError(
        f"{count:,} parameters ({sizes}) need {BYTES * count / 1e9:,.1f} GB to be trained, but "
        f"{free / 1e9:,.1f} GB are free; choose a smaller preset or model",
        "model",
    )

"""Default model sizes and training settings by task and number of examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

import torch
from torch import nn

from regard.config import FAMILIES, TASKS, Model, Text, Training, merge
from regard.models.presets import PRESETS, count_parameters, meta_model, preset
from regard.system.errors import RegardError
from regard.system.processor import usable_cores
from regard.training.measure import free_memory, step_seconds

Values = Mapping[str, Mapping[str, Any]]
"""Of a recipe, by section and field."""
MORE = float("inf")
"""Any number of examples."""
BESIDE = (("classification", "ngrams"), ("model", "word_features"))
"""What only Regard reads beside pieces, by section and field: no other format has a form for it."""
NOAM = 1.0
"""The rate under ``noam``, where it is a factor of the paper's formula: the paper's [Vaswani17 §5.3, eq. 3]."""
ADAPTED = 0.128
"""Rate times ``d_model`` of a classifier that begins with pretrained weights: for ``tiny`` a third of the usual."""
SMALL = 128
"""``d_model`` of the smallest encoders, whose rate as classifiers is that from nothing."""
GOES_ON = 3 * ADAPTED
"""The same of a translator that goes on (docs/recipes.md), and of low-rank factors, which need larger steps [Hu21,
table 11]."""
IMPORTED = 0.2
"""Share of these rates for a model that others trained for long, which larger steps spoil (docs/experiments.md)."""
BYTES = 16
"""Of a parameter in training: fp32 weight, gradient and Adam's two moments."""
SHOWN = ("d_model", "d_ff", "encoder_layers", "decoder_layers", "layers")
"""Fields by which a person knows a model's size."""
TIMED, TRAINING, ENOUGH = 1024, 0.7, 4000
"""Target tokens of a step that is timed; share of the minutes that goes to steps; steps that a model should make."""
PAIR = 15
"""Target tokens of a pair, about, by which passes are counted before any is read."""
DROPOUTS = ((8, 0.0), (20, 0.1))
"""Passes below which a small translator does not know its pairs by heart yet, and the dropout that suits it then."""
MANY, MORE_DROPOUT = 60, 0.1
"""Passes above which it does in spite of its preset's dropout, and how much more suits it then (docs/recipes.md)."""
FEWEST = 258
"""Pieces of the smallest vocabulary: the bytes and two symbols."""


@dataclass(frozen=True)
class SizeDefaults:
    """Defaults of a task for data below a size.

    Args:
        count: pairs, texts, images, or characters of running text.
        epochs: passes over them if neither steps nor minutes are given.
        values: of the recipe; small data wants small batches (docs/experiments.md).
        other: the same for a family other than the preset's.
    """

    count: float
    preset: str
    epochs: int
    values: Values
    other: SizeDefaults | None = None

    @property
    def family(self) -> str:
        """Of the preset."""
        return PRESETS[self.preset].family

    def of(self, family: str) -> SizeDefaults:
        """The defaults for a family: these, or the other's; for a third family those outside the model section."""
        return self.other if self.other and self.other.family == family else self

    def family_for(self, model: Mapping[str, object]) -> str:
        """The family that is named; else the first that has the fields named, and the words that are given to them."""
        found = [one.family for one in (self, self.other) if one]
        return str(model["family"]) if "family" in model else next((f for f in found if _has(f, model)), found[0])

    def steps_in(self, minutes: float) -> float:
        """About how many steps its model makes here in so many minutes, validations and scores included."""
        tokens = self.values["training"]["tokens"]
        timed = min(tokens, TIMED)
        pieces = self.values.get("text", {}).get("vocabulary", Text().vocabulary)
        seconds = step_seconds(preset(self.preset).section, pieces, timed) * tokens / timed
        return TRAINING * 60 * minutes / seconds * min(2, usable_cores())

    def passes_in(self, training: Mapping[str, Any], count: int, model: Model | None = None) -> float:
        """About how often its model, or another, reads each of n pairs in the steps or minutes that are asked for."""
        steps, minutes = training.get("steps"), training.get("minutes")
        if steps is None:
            if minutes is None:
                return self.epochs
            steps = self.steps_in(minutes)
            if model:
                own, other = (count_parameters(meta_model(one, 1)) for one in (preset(self.preset).section, model))
                steps *= own / other
        return float(steps * training.get("tokens", self.values["training"]["tokens"]) / (PAIR * max(1, count)))


def _has(family: str, model: Mapping[str, object]) -> bool:
    """Whether a family has these fields, and knows their words; numbers are judged later, by their own sentences."""
    fields = FAMILIES[family].model_fields
    return all(
        name in fields and (get_origin(kind := fields[name].annotation) is not Literal or value in get_args(kind))
        for name, value in model.items()
    )


def size_for(
    sizes: Sequence[SizeDefaults], count: int, minutes: float | None = None, begun: int | None = None
) -> SizeDefaults:
    """The row of the table for n examples, or an earlier one whose smaller model suits better.

    A large model that has made few steps is worse than a small one that has made many (docs/recipes.md).

    Args:
        sizes: the table.
        count: of the examples.
        minutes: that the training may take; the model should make :data:`ENOUGH` steps in them.
        begun: ``d_model`` of a run that resumes: its row stays, whatever this machine is worth now.
    """
    rows = [size for size in sizes if size.count <= count]
    row = sizes[len(rows)]
    smaller = [row, *(size for size in reversed(rows) if size.preset != row.preset)]
    if begun is not None:
        return next((size for size in smaller if preset(size.preset).section.d_model == begun), row)
    if minutes is None:
        return row
    last = sizes[0].preset
    return next(size for size in smaller if size.preset == last or size.steps_in(minutes) >= ENOUGH)


def defaults(
    task: str,
    sizes: Sequence[SizeDefaults],
    count: int,
    name: str | None,
    with_model: bool,
    training: Mapping[str, Any],
    model: Mapping[str, object] | None = None,
    earlier: Mapping[str, Any] | None = None,
    start: Model | None = None,
) -> dict[str, Any]:
    """Default recipe values for a task and number of examples.

    Args:
        task: the recipe's word.
        sizes: its table.
        count: of the examples.
        name: a preset to use instead of the table's.
        with_model: False if the recipe has a model section, which is used as it is.
        training: requested fields; the table's peak rates are not for the schedule ``noam``, and minutes, or few steps,
            may change the model of a translator, unless a preset is named.
        model: requested model fields; the preset is of a family that has them.
        earlier: dotted fields of the run to resume, if there is one: what depended on the minutes stays.
        start: the translator that the run goes on from, whose dropout may be too much.
    """
    begun = earlier.get("model.d_model") if earlier else None
    minutes = training.get("minutes") if training.get("steps") is None else None
    timed = TASKS[task].learns_from == "pairs" and with_model and not name
    first = size_for(sizes, count, minutes, begun) if timed else size_for(sizes, count)
    row = first.of(preset(name).family if name else first.family_for(model or {}))
    found = merge({"task": task, "training": {"tokens": Training().tokens}}, row.values)
    chosen = preset(name or row.preset)
    found = merge(found, {"training": chosen.training})
    own = {key: value for key, value in found.pop("model", {}).items() if key in FAMILIES[chosen.family].model_fields}
    found["training"].pop("steps", None)  # a paper's number of steps belongs to its corpus
    if training.get("schedule") == "noam":
        found["training"]["rate"] = NOAM
    if with_model or name:
        found["model"] = {"family": chosen.family, **pool_fields(task, chosen.model), **own}
    dropout = start.dropout if start else found["model"].get("dropout") if timed else None
    if dropout is not None:
        if earlier and begun:
            dropout = earlier.get("model.dropout", dropout)
        else:
            passes = row.passes_in(training, count, start)
            dropout = min(dropout, next((share for fewer, share in DROPOUTS if passes < fewer), 1.0))
            if passes > MANY and not start:
                dropout = round(dropout + MORE_DROPOUT, 2)
        found["model"] = {**found.get("model", {}), "dropout": dropout}
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

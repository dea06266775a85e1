"""What a model format is: its fields, names of tensors and architectures; and the recipe values it has no form for."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from pydantic import TypeAdapter
from torch import Tensor

from regard.config import Attentive, Recipe
from regard.convert.hub import WHOLE, Fields
from regard.convert.layouts.names import Row
from regard.system.errors import RegardError

ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "swish",
    "swish": "swish",
}
"""Their words for activations to ours; of several for one of ours the first is written."""
NONE = re.compile(r"(?!)")
"""No name at all."""
PAD = 0
"""The row that starts a text by default."""
SIZES = {"key_size": "d_k", "value_size": "d_v"}
"""Sizes that a recipe may leave to be d_model / heads, to their keys."""


@dataclass(frozen=True)
class ConfigField:
    """A field of our model section that is one of their ``config.json``.

    Args:
        ours: its name in our section.
        theirs: its name there.
        kind: what it may be; or their words to ours.
        default: where the file lacks it; ``None``: it has to be there.
    """

    ours: str
    theirs: str
    kind: TypeAdapter[Any] | Mapping[str, str] = WHOLE
    default: Any = None

    def parse(self, config: Fields) -> Any:
        """Our value, of their file."""
        if isinstance(self.kind, Mapping):
            return config.word(self.theirs, self.kind, self.default)
        return config.parse(self.theirs, self.kind, self.default)

    def write(self, model: Any) -> Any:
        """Their value, of our section."""
        value = getattr(model, self.ours)
        words = self.kind if isinstance(self.kind, Mapping) else {value: value}
        return next(theirs for theirs, ours in words.items() if ours == value)


class Format(ABC):
    """A family of models as others write it; a subclass has the table of names, and what no table can say.

    ``model_type`` is their word for it, ``kind`` its name in sentences, ``family`` ours. A file of a bare model leaves
    out the ``prefix`` of its tensors; names that begin like ``heads`` have none.
    """

    model_type: str
    kind: str
    family: str
    tasks: ClassVar[Mapping[str, str]]
    """Their architectures to our tasks, the usual one first."""
    keys: tuple[ConfigField, ...]
    """The fields that mean the same."""
    plain: ClassVar[Mapping[str, Any]]
    """The values of our section that it has a form for; of several a tuple."""
    prefix: str = ""
    heads: tuple[str, ...] = ()
    silent: re.Pattern[str] = NONE
    """Names of tensors that say nothing here."""
    spare: re.Pattern[str] = NONE
    """Names of tensors that may be there without being needed."""
    copies: ClassVar[Mapping[str, str]] = {}
    """Tied tensors that a file may hold a second time, to the first."""
    own: tuple[str, ...] = ()
    """Those of them that may also be tensors of their own."""
    outputs: ClassVar[Mapping[str, str]] = {}
    """By task the copy that is the matrix before the softmax; an untied model must hold it."""
    old: ClassVar[Mapping[str, str]] = {}
    """Parts of names as the first releases wrote them, to today's."""

    def section(self, config: Fields, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
        """``config.json`` and the tensors → values of our model section."""
        return {"family": self.family, **{key.ours: key.parse(config) for key in self.keys}}

    def config(self, recipe: Recipe, pieces: int) -> dict[str, Any]:
        """A recipe, and the rows of its table of embeddings → the fields of their ``config.json``."""
        shared = {key.theirs: key.write(recipe.model) for key in self.keys}
        return {"model_type": self.model_type, **({"vocab_size": pieces} if pieces else {}), **shared}

    @abstractmethod
    def rows(self, model: Any, task: str, start: int | None = PAD) -> list[Row]:
        """The table of names of a model of our section with the head of a task; ``start``: as of :meth:`start_row`."""

    def obstacles(self, recipe: Recipe, weights: Mapping[str, Tensor] | None = None) -> list[Obstacle]:
        """The values of a recipe, and of the weights if there are any yet, that it has no form for."""
        words = {key.ours: dict.fromkeys(key.kind.values()) for key in self.keys if isinstance(key.kind, Mapping)}
        found = misfits(recipe.model, **self.plain, **{name: tuple(ours) for name, ours in words.items()})
        if recipe.task == "translation" and not recipe.text.joint:
            why = "two vocabularies have no form in one tokenizer.json"
            found.insert(0, Obstacle("text.joint", False, "true", why))
        return found

    def start_row(self, config: Fields, generation: Fields) -> int | None:
        """The row of the table that starts a text; ``None``: the last one, which is no piece's."""
        return PAD

    def further(self, model: Any, config: Mapping[str, Any]) -> dict[str, Tensor]:
        """Our section and their ``config.json`` → tensors that are no weights of ours."""
        return {}

    def architecture(self, task: str) -> str:
        """Their class of a model for a task."""
        return next((name for name, known in self.tasks.items() if known == task), next(iter(self.tasks)))

    def canonical_tensors(
        self, tensors: Mapping[str, Tensor], where: str, untied: str | None = None
    ) -> dict[str, Tensor]:
        """The tensors under current names, without unused buffers and copies.

        Args:
            tensors: by the names of the file.
            where: the file.
            untied: a tensor declared not to be a copy; kept if the format supports it.

        Raises:
            RegardError: a copy differs from its original, or an untied tensor is missing.
        """
        named = {self._current_name(name): tensor for name, tensor in tensors.items()}
        if untied is not None and untied not in named:
            raise RegardError(f"lacks {untied!r}, which its config.json says is a matrix of its own", where)
        found = {name: tensor for name, tensor in named.items() if not self.silent.fullmatch(name)}
        for copy, first in self.copies.items():
            if copy not in found or (copy == untied and copy in self.own):
                continue
            if first not in found:
                found[first] = found.pop(copy)
            elif torch.equal(found[copy], found[first]):
                del found[copy]
            elif copy not in self.own:
                raise RegardError(f"has {copy!r} that differs from {first!r}; here they are one", where)
        return found

    def _current_name(self, name: str) -> str:
        """A tensor's name as the table has it."""
        for old, new in self.old.items():
            name = name.replace(old, new)
        return name if name.startswith((self.prefix, *self.heads)) else self.prefix + name


@dataclass(frozen=True)
class Obstacle:
    """A value of a recipe that a format has no form for.

    Args:
        field: its key, e.g. ``model.norm``.
        value: what the recipe has.
        fits: what the format has in its place, in words.
        why: the refusal in a sentence; default: made of the others.
    """

    field: str
    value: Any
    fits: str
    why: str = ""

    @property
    def change(self) -> str:
        """The required change, e.g. ``model.norm = layer instead of rms``."""
        return f"{self.field} = {self.fits} instead of {word(self.value)}"


def misfits(model: Any, **expected: Any) -> list[Obstacle]:
    """The fields of a model section that have other values than expected.

    Args:
        model: our section.
        expected: for each field the value it must have, or a tuple of those it may have.
    """
    found = []
    for name, value in expected.items():
        allowed = value if isinstance(value, tuple) else (value,)
        if (held := getattr(model, name)) not in allowed:
            fits = either(each for each in allowed if each is not None)
            found.append(Obstacle(f"model.{SIZES.get(name, name)}", held, fits))
    return found


def odd_heads(model: Attentive) -> list[Obstacle]:
    """Heads whose sizes are not d_model / heads."""
    size, rest = divmod(model.d_model, model.heads)
    if not rest:
        return misfits(model, key_size=size, value_size=size)
    sizes = [Obstacle(f"model.{name}", getattr(model, name), "model.d_model / model.heads") for name in ("d_k", "d_v")]
    return [Obstacle("model.heads", model.heads, f"a divisor of {model.d_model}"), *sizes]


def either(values: Iterable[Any]) -> str:
    """Values of which one will do, in words."""
    *most, last = map(word, values)
    return f"{', '.join(most)} or {last}" if most else last


def word(value: Any) -> str:
    """A value as a recipe has it, without quotes."""
    return str(value).lower() if isinstance(value, bool) else str(value)

"""What a model format is: its fields, table of tensor names and architectures; the recipe values it has no form for."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import torch
from pydantic import TypeAdapter
from torch import Tensor, nn

from regard.config import Attentive, Recipe, TransformerSection
from regard.config.weights import infinite_weight
from regard.runs.convert.hub import CONFIG, WHOLE, Fields
from regard.system.errors import RegardError
from regard.text.tokenizers.vocabulary import AnyTokenizer

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
PURPOSE = "finetuning_task"
"""The field of ``config.json`` that says what a model was fine-tuned for."""
TABLES = ("encoder.input.tokens.weight", "decoder.input.tokens.weight")
"""Our tables of what is read."""
SIZES = {"key_size": "d_k", "value_size": "d_v"}
"""Sizes that a recipe may leave to be d_model / heads, to their keys."""


class Form(Protocol):
    """Mapping between a tensor of theirs and one or several of ours."""

    def inward(self, theirs: Tensor) -> list[Tensor]:
        """Ours, from theirs."""
        ...

    def outward(self, ours: list[Tensor]) -> Tensor:
        """Theirs, from ours."""
        ...


@dataclass(frozen=True)
class Chunks:
    """Several matrices, or biases, one below the other: queries, keys and values.

    Args:
        parts: how many.
        transposed: theirs is the other way round, as in GPT-2.
    """

    parts: int
    transposed: bool = False

    def inward(self, theirs: Tensor) -> list[Tensor]:
        whole = theirs.t() if self.transposed else theirs
        if (rows := whole.size(0)) % self.parts:
            raise ValueError(f"has {rows} rows, which are not {self.parts} times as many")
        return list(whole.chunk(self.parts))

    def outward(self, ours: list[Tensor]) -> Tensor:
        return torch.cat(ours).t() if self.transposed else torch.cat(ours)


@dataclass(frozen=True)
class Shaped:
    """The same numbers in another shape, e.g. the matrix of a patch's pixels as the kernel of a convolution."""

    ours: tuple[int, ...]
    theirs: tuple[int, ...]

    def inward(self, theirs: Tensor) -> list[Tensor]:
        if tuple(theirs.shape) != self.theirs:
            raise ValueError(f"has the shape {list(theirs.shape)}, where {list(self.theirs)} is expected")
        return [theirs.reshape(self.ours)]

    def outward(self, ours: list[Tensor]) -> Tensor:
        return ours[0].reshape(self.theirs)


@dataclass(frozen=True)
class InitialTensor:
    """A table of embeddings to which we add a row for the start symbol: a copy of the row that starts a text there.

    Args:
        row: that row; ``None``: there too it is the last one, with nothing added.
        copies: tables of ours that are one there.
        zeros: without a row there, one of zeros is added.
    """

    row: int | None
    copies: int = 1
    zeros: bool = False

    def inward(self, theirs: Tensor) -> list[Tensor]:
        if self.row is not None:
            theirs = torch.cat([theirs, theirs[self.row : self.row + 1]])
        elif self.zeros:
            theirs = torch.cat([theirs, theirs.new_zeros(1, *theirs.shape[1:])])
        return [theirs] * self.copies

    def outward(self, ours: list[Tensor]) -> Tensor:
        tables = ours if self.row is None and not self.zeros else [table[:-1] for table in ours]
        if any(not torch.equal(tables[0], other) for other in tables[1:]):
            raise ValueError("stands for several tables of this model, which have become different")
        return tables[0]


@dataclass(frozen=True)
class Reordered:
    """The entries of the residual stream in another order along one axis; ``order[i]`` is ours that is their i-th."""

    order: tuple[int, ...]
    axis: int

    def inward(self, theirs: Tensor) -> list[Tensor]:
        if theirs.shape[self.axis] != len(self.order):
            raise ValueError(f"has the shape {list(theirs.shape)}, of which one size must be {len(self.order)}")
        place = torch.tensor(self.order).argsort()
        return [theirs.index_select(self.axis, place)]

    def outward(self, ours: list[Tensor]) -> Tensor:
        return ours[0].index_select(self.axis, torch.tensor(self.order))


class Row:
    """One tensor of theirs, the tensors of ours that it holds, and its form; ``None``: one tensor, as it is."""

    def __init__(self, theirs: str, *ours: str, form: Form | None = None) -> None:
        self.theirs, self.ours, self.form = theirs, ours, form


def affine(theirs: str, *ours: str, form: Form | None = None, bias: bool = True) -> list[Row]:
    """The rows of a linear layer or a norm: its weight and, if it has one, its bias."""
    parts = ("weight", "bias") if bias else ("weight",)
    return [Row(f"{theirs}.{part}", *(f"{name}.{part}" for name in ours), form=form) for part in parts]


def inward(rows: Iterable[Row], theirs: Mapping[str, Tensor], where: str, told: str = CONFIG) -> dict[str, Tensor]:
    """Our tensors, in float32 (float64 stays), from theirs.

    Args:
        rows: the table of names.
        theirs: by name.
        where: the file.
        told: where it is said which there should be.

    Raises:
        RegardError: a tensor is missing, has not the form it should have, or holds a number that is not finite.
    """
    found: dict[str, Tensor] = {}
    for each in rows:
        if each.theirs not in theirs:
            raise RegardError(f"lacks {each.theirs!r}, which its {told} says it has", where)
        held = theirs[each.theirs]
        if not held.is_floating_point():
            raise RegardError(f"{each.theirs!r} holds {held.dtype}, not numbers with fractions", where)
        try:
            numbers = held if held.dtype == torch.float64 else held.float()
            parts = each.form.inward(numbers) if each.form else [numbers]
        except (ValueError, RuntimeError, IndexError) as error:
            raise RegardError(f"{each.theirs!r} {error}", where) from None
        _refuse_infinite(each.theirs, parts, where)
        found.update(zip(each.ours, (part.contiguous() for part in parts), strict=True))
    return found


def outward(rows: Iterable[Row], ours: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Their tensors from ours.

    Raises:
        RegardError: what is one tensor there are different ones here, or one holds a number that is not finite.
    """
    found: dict[str, Tensor] = {}
    for each in rows:
        for name in each.ours:
            _refuse_infinite(name, [ours[name]], "model.safetensors")
        try:
            parts = [ours[name] for name in each.ours]
            found[each.theirs] = (each.form.outward(parts) if each.form else parts[0]).contiguous()
        except ValueError as error:
            raise RegardError(f"{each.theirs!r} {error}", "model.safetensors") from None
    return found


def _refuse_infinite(name: str, tensors: Iterable[Tensor], where: str) -> None:
    """Raise a RegardError if a tensor has values that are not finite in float32."""
    if not all(tensor.float().isfinite().all() for tensor in tensors):
        raise RegardError(infinite_weight(name), where)


def refuse_surplus(rows: Iterable[Row], theirs: Iterable[str], spare: re.Pattern[str], where: str) -> None:
    """Refuse tensors that no row of the table tells what to do with: left out, they would change what is computed.

    Args:
        spare: names that may be left over.

    Raises:
        RegardError: names the first such tensor.
    """
    left = set(theirs) - {each.theirs for each in rows}
    if surplus := sorted(name for name in left if not spare.fullmatch(name)):
        raise RegardError(f"has {surplus[0]!r}, which a model of this kind has not", where)


def refuse_other_shapes(weights: Mapping[str, Tensor], outline: nn.Module, where: str, told: str = CONFIG) -> None:
    """Refuse weights whose shapes are not those of the model that ``told`` describes."""
    expected = {name: tuple(weight.shape) for name, weight in outline.named_parameters()}
    for name, weight in weights.items():
        if tuple(weight.shape) != expected[name]:
            found, wanted = list(weight.shape), list(expected[name])
            raise RegardError(f"what becomes {name!r} is {found}, its {told} says {wanted}", where)


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
    default: object = None

    def parse(self, config: Fields) -> object:
        """Our value, of their file."""
        if isinstance(self.kind, Mapping):
            return config.word(self.theirs, self.kind, self.default)
        return config.parse(self.theirs, self.kind, self.default)

    def write(self, model: object) -> object:
        """Their value, of our section."""
        value = getattr(model, self.ours)
        if not isinstance(self.kind, Mapping):
            return value
        return next(theirs for theirs, ours in self.kind.items() if ours == value)


class Format(ABC):
    """A family of models as others write it; a subclass has the table of names, and what no table can say.

    ``model_type`` is their word for it, ``kind`` its name in sentences. A file of a bare model leaves out the
    ``prefix`` of its tensors; names that begin like ``heads`` have none.
    """

    model_type: str
    kind: str
    family: str
    """Our word for it."""
    tasks: ClassVar[Mapping[str, str]]
    """Their architectures to our tasks, the usual one first."""
    keys: tuple[ConfigField, ...]
    """The fields that mean the same."""
    plain: ClassVar[Mapping[str, object]]
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

    def section(self, config: Fields, tensors: Mapping[str, Tensor]) -> dict[str, object]:
        """``config.json`` and the tensors → values of our model section."""
        return {"family": self.family, **{key.ours: key.parse(config) for key in self.keys}}

    def config(self, recipe: Recipe, pieces: int) -> dict[str, object]:
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
        if recipe.info.learns_from == "pairs" and not recipe.text.joint:
            why = "two vocabularies have no form in one tokenizer.json"
            found.insert(0, Obstacle("text.joint", False, "true", why))
        return found

    def odd_tokenizer(self, recipe: Recipe, tokenizer: AnyTokenizer | None) -> list[Obstacle]:
        """The obstacles of a recipe with a tokenizer; ``None``: it will be one of ours."""
        return []

    def start_row(self, config: Fields, generation: Fields) -> int | None:
        """The row of the table that starts a text; ``None``: the last one, which is no piece's."""
        return PAD

    def start_piece(self, tokenizer: AnyTokenizer | None) -> int | None:
        """The piece that starts a text there; ``None``: a row of its own does."""
        return PAD

    def target_pieces(self, config: Fields, pieces: int) -> int:
        """Pieces of the target's vocabulary, where the source's has so many."""
        return pieces

    def further(self, model: Any, config: Mapping[str, Any]) -> dict[str, Tensor]:
        """Our section and their ``config.json`` → tensors that are no weights of ours."""
        return {}

    def architecture(self, task: str) -> str:
        """Their class of a model for a task."""
        return next((name for name, known in self.tasks.items() if known == task), next(iter(self.tasks)))

    def task(self, architecture: str, config: Fields) -> str:
        """Our task of one of their classes, which is in :attr:`tasks`."""
        return self.tasks[architecture]

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
        named: dict[str, Tensor] = {}
        for name, tensor in tensors.items():
            for old, new in self.old.items():
                name = name.replace(old, new)
            named[name if name.startswith((self.prefix, *self.heads)) else self.prefix + name] = tensor
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
    value: object
    fits: str
    why: str = ""


def misfits(model: object, **expected: object) -> list[Obstacle]:
    """The fields of a model section that have other values than expected.

    Args:
        model: our section.
        expected: for each field the value it must have, or a tuple of those it may have.
    """
    found = []
    for name, value in expected.items():
        allowed = value if isinstance(value, tuple) else (value,)
        if (held := getattr(model, name)) not in allowed:
            *most, last = (word(each) for each in allowed if each is not None)
            fits = f"{', '.join(most)} or {last}" if most else last
            found.append(Obstacle(f"model.{SIZES.get(name, name)}", held, fits))
    return found


def sides(model: TransformerSection) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """Encoder and decoder: the name, the layers, and our names of a layer's attention."""
    yield "encoder", model.encoder_layers, ("attention",)
    yield "decoder", model.decoder_layers, ("attention", "cross")


def odd_heads(model: Attentive) -> list[Obstacle]:
    """Heads whose sizes are not d_model / heads."""
    size, rest = divmod(model.d_model, model.heads)
    if not rest:
        return misfits(model, key_size=size, value_size=size)
    sizes = [Obstacle(f"model.{name}", getattr(model, name), "model.d_model / model.heads") for name in ("d_k", "d_v")]
    return [Obstacle("model.heads", model.heads, f"a divisor of {model.d_model}"), *sizes]


def word(value: object) -> str:
    """A value as a recipe has it, without quotes."""
    return str(value).lower() if isinstance(value, bool) else str(value)

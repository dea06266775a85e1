"""Reader of a model folder in Hugging Face's layout: fields of its JSON files, weights and labels."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, TypeVar

import torch
from pydantic import BeforeValidator, Field, FiniteFloat, StrictBool, StrictStr, TypeAdapter, ValidationError
from safetensors import SafetensorError, safe_open
from torch import Tensor

from regard.config import LANGUAGE, TASKS
from regard.system import disk
from regard.system.errors import RegardError
from regard.text.lines import replace_surrogates

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
GENERATION = "generation_config.json"
PICKLED, OF_CTRANSLATE2 = "pytorch_model.bin", "model.bin"
NOT_YET = {
    "bart": "a BART",
    "fsmt": "an FSMT translator (of fairseq)",
    "mt5": "an mT5",
    "nllb-moe": "an NLLB translator with experts (MoE)",
    "nllb_moe": "an NLLB translator with experts (MoE)",
    "pegasus_x": "a PEGASUS-X",
    "seamless_m4t": "a SeamlessM4T translator",
    "seamless_m4t_v2": "a SeamlessM4T translator",
    "umt5": "a UMT5",
}
"""Models of others that cannot be imported, by their ``model_type``."""
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
"""What weights with fractions may be."""
LONGEST = 60
"""Characters of a value that a sentence shows."""

T = TypeVar("T")
Number = Annotated[FiniteFloat, Field(strict=True)]
Whole = Annotated[int, Field(strict=True, ge=1)]
WHOLE: TypeAdapter[int] = TypeAdapter(Whole)
NATURAL: TypeAdapter[int] = TypeAdapter(Annotated[int, Field(strict=True, ge=0)])
POSITIVE: TypeAdapter[float] = TypeAdapter(Annotated[Number, Field(gt=0)])
SHARE: TypeAdapter[float] = TypeAdapter(Annotated[Number, Field(ge=0, lt=1)])
FLAG: TypeAdapter[bool] = TypeAdapter(StrictBool)
TEXT: TypeAdapter[str] = TypeAdapter(StrictStr)
TEXTS: TypeAdapter[list[str]] = TypeAdapter(list[StrictStr])
NAMES: TypeAdapter[dict[int, str | bool | int | float]] = TypeAdapter(dict[int, str | bool | int | float])
"""Names by number, which JSON writes as strings."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_NO_SPAN = re.compile(r"[BIMLEUS]-")
"""A tag that begins as one of a span and does not say of what."""


def _repeat(times: int) -> BeforeValidator:
    """One value in place of a list stands for as many equal ones."""
    return BeforeValidator(lambda value: value if isinstance(value, list) else [value] * times)


NUMBERS: TypeAdapter[tuple[float, ...]] = TypeAdapter(Annotated[tuple[Number, ...], _repeat(1), Field(min_length=1)])
PAIR: TypeAdapter[tuple[int, int]] = TypeAdapter(Annotated[tuple[Whole, Whole], _repeat(2)])
"""Height and width, of a size that may be one whole number for both."""


@dataclass(frozen=True)
class Fields:
    """Typed fields of a foreign JSON file; ``null`` counts as missing.

    Args:
        values: by name.
        where: the file.
    """

    values: Mapping[str, object]
    where: str

    @classmethod
    def of(cls, path: Path, *, optional: bool = False) -> Fields:
        """The fields of the object in a JSON file; none if it is optional and missing.

        Raises:
            RegardError: it is missing, too large, or no object.
        """
        if optional and not path.exists():
            return cls({}, str(path))
        found = disk.json_of(path)
        if not isinstance(found, dict):
            raise RegardError("is damaged: an object was expected", str(path))
        return cls(found, str(path))

    def get(self, name: str) -> object:
        """The raw value."""
        return self.values.get(name)

    def parse(self, name: str, kind: TypeAdapter[T], default: object = None) -> T:
        """The value of a field, of this kind.

        Raises:
            RegardError: names file and field where the value is of another kind, or missing without a default.
        """
        value = default if self.get(name) is None else self.get(name)
        if value is None:
            raise RegardError(f"lacks {name!r}", self.where)
        try:
            return kind.validate_python(value)
        except ValidationError as error:
            wrong = error.errors()[0]["msg"]
            raise RegardError(f"{name} is {format_value(value)}: {wrong[:1].lower()}{wrong[1:]}", self.where) from None

    def word(self, name: str, known: Mapping[str, str], default: object = None) -> str:
        """Our word for a word of theirs; an error lists the known ones."""
        theirs = self.parse(name, TEXT, default)
        if theirs not in known:
            raise RegardError(f"{name} {theirs!r} is not supported; known: {', '.join(known)}", self.where)
        return known[theirs]

    def language(self, name: str) -> str:
        """A code of a language, which is displayed and may become part of a file name."""
        code = self.parse(name, TEXT)
        if not re.fullmatch(LANGUAGE, code):
            raise RegardError(f"{name} {format_value(code)} is no code of a language", self.where)
        return code

    def only(self, **expected: object) -> None:
        """Refuse a field that is present with another value than expected."""
        for name, value in expected.items():
            if (found := self.values.get(name, value)) != value:
                message = f"{name} = {format_value(found)} is not supported, only {format_value(value)} is"
                raise RegardError(message, self.where)

    def fill(self, **values: object) -> Fields:
        """The same with these values for fields that are missing."""
        known = {name: value for name, value in self.values.items() if value is not None}
        return Fields({**values, **known}, self.where)


def refuse_links_out(folder: Path) -> None:
    """Refuse links to themselves, and out of a folder but into the store of the library that downloads its files.

    Raises:
        RegardError: there is one.
    """
    whole = folder.resolve()
    allowed = (whole, whole.parent.parent / "blobs")
    inside = [path for path in folder.iterdir() if path.is_dir()]
    for path in sorted([*folder.iterdir(), *(path for below in inside for path in below.iterdir())]):
        real = Path(os.path.realpath(path))  # still a link where it leads to itself
        if real.is_symlink() or not any(real.is_relative_to(place) for place in allowed):
            where = "itself" if real.is_symlink() else "outside of the folder"
            raise RegardError(f"is a link to {where}; put the file itself there", str(path))


def tensors_of(path: Path) -> dict[str, Tensor]:
    """Every tensor of a file by its name there.

    Raises:
        RegardError: it is missing or broken, or holds anything else than tensors.
    """
    if path.suffix == ".bin":
        from regard.runs.convert.torch_file import read_torch_file  # a training loads this module, too

        return read_torch_file(path)
    disk.refuse_irregular(path, "file of weights")
    try:
        with safe_open(path, "pt") as file:
            found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  (no mapping)
    except (SafetensorError, OSError) as error:
        raise RegardError(f"is broken: {error}", str(path)) from None
    for name, tensor in found.items():
        if tensor.is_floating_point() and tensor.dtype not in FLOATS:
            raise RegardError(f"{name!r:.120} holds {tensor.dtype}, which is not supported", str(path))
    return found


def format_value(value: object) -> str:
    """A value for a message, truncated."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"


@dataclass(frozen=True)
class HubFolder:
    """A folder that ``transformers`` wrote, or something like it.

    Args:
        path: where it lies.
        config: the fields of its ``config.json``.
        generation: those of ``generation_config.json``; none if it is missing.
    """

    path: Path
    config: Fields
    generation: Fields

    @classmethod
    def open(cls, path: Path | str) -> HubFolder:
        """The folder, its ``config.json`` read.

        Raises:
            RegardError: it is no such folder.
        """
        path = Path(path)
        if not path.is_dir():
            raise RegardError("no such folder or package", str(path))
        if not (path / CONFIG).exists():
            raise RegardError(f"has no {CONFIG}: is no model in Hugging Face's layout", str(path))
        return cls(path, Fields.of(path / CONFIG), Fields.of(path / GENERATION, optional=True))

    @property
    def kind(self) -> str:
        """The word ``model_type``.

        Raises:
            RegardError: there is none.
        """
        kind = self.config.get("model_type")
        if not isinstance(kind, str):
            raise RegardError("does not say its model_type", self.config.where)
        return kind

    @property
    def architecture(self) -> str | None:
        """The class it was saved from, if given."""
        names = self.config.parse("architectures", TEXTS, [])
        return names[0] if names else None

    @property
    def where(self) -> str:
        """The file of its weights, for errors."""
        return str(self._files()[0])

    @cached_property
    def tensors(self) -> dict[str, Tensor]:
        """Every tensor by the name in the file, of one file or of several that an index names.

        Raises:
            RegardError: a file is missing or broken, or holds anything else than tensors.
        """
        return {name: one for file in self._files() for name, one in tensors_of(file).items()}

    def _files(self) -> list[Path]:
        for whole, index in ((WEIGHTS, INDEX), (PICKLED, f"{PICKLED}.index.json")):
            if (self.path / whole).exists():
                return [self.path / whole]
            if (self.path / index).exists():
                named = Fields.of(self.path / index).get("weight_map")
                files = list(named.values()) if isinstance(named, dict) else []
                if not files or not all(map(disk.is_plain, files)):
                    message = "names no files of weights, or some outside of the folder"
                    raise RegardError(message, str(self.path / index))
                return [self.path / name for name in sorted(set(files))]
        raise RegardError(f"has no {WEIGHTS} and no {PICKLED}", str(self.path))

    def labels(self, count: int) -> tuple[str, ...]:
        """The names of classes or tags by number, ``LABEL_0`` and so on if the folder has no names.

        Raises:
            RegardError: there are not as many names as scores, or a name twice.
        """
        if not self.config.get("id2label"):
            return tuple(f"LABEL_{number}" for number in range(count))
        found, where = self.config.parse("id2label", NAMES), self.config.where
        if sorted(found) != list(range(count)):
            raise RegardError(f"id2label has {len(found)} names, the model's scores are {count}", where)
        names = (found[number] for number in range(count))
        labels = tuple(name if isinstance(name, str) else json.dumps(name) for name in names)
        if len(set(labels)) < count:
            raise RegardError("id2label has the same name twice", where)
        return labels


def odd_label(task: str, kind: str, labels: Sequence[str]) -> tuple[str, str] | None:
    """The first label that hardly any corpus gives training, as it is shown, and what is wrong with it; else nothing.

    Such names break lines and columns, or cannot be told apart.

    Args:
        task: what the model is for.
        kind: of a classification, ``multi`` where a text may have several.
        labels: the names.
    """
    for label in labels:
        if wrong := _wrong(task, kind, label):
            return json.dumps(label)[:60], wrong
    return None


def _wrong(task: str, kind: str, label: str) -> str:
    """The problem with a label, if any."""
    if not label.strip():
        return "is empty"
    if _CONTROL.search(label):
        return "holds a tab, a line break or another control character"
    if label != label.strip():
        return "begins or ends with a blank"
    if label != replace_surrogates(label):
        return "holds half a character (a surrogate)"
    if TASKS[task].writes == "tags":
        return "is a tag of a span without a name after the hyphen" if _NO_SPAN.fullmatch(label) else ""
    from regard.data.corpora.labelled import join_labels  # a training of a translator loads this module, too

    try:
        if kind == "multi":
            join_labels([label])
    except ValueError:
        return "holds '|', the sign between the labels of a text"
    return ""

"""What models need beside their weights, and our JSON files: tokenizer, labels, fitted values, what training read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from regard.config import FORMAT, checksum
from regard.system import disk
from regard.system.errors import RegardError
from regard.text.confidence import CONFIDENCE, WORDS, SeenWords, confidence_content, read_doubted_below, read_seen_words
from regard.text.tags import Scheme
from regard.text.tokenizers.vocabulary import TERMS, TOKENIZER, AnyTokenizer, read_terms, read_tokenizer

if TYPE_CHECKING:
    from regard.data.batches.patches import Scale
    from regard.text.terms import TermList

LABELS = "labels.json"
PIXELS = "pixels.json"
PREFIXES = "words.prefixes.json"
"""The file of the prefixes that a model learned; folders of earlier versions have none."""
PROCESSORS = "processors.json"
Kind = TypeVar("Kind")


def json_content(values: Mapping[str, object]) -> bytes:
    """The bytes of one of our JSON files."""
    return (json.dumps({"format": FORMAT, **values}, ensure_ascii=False, indent=1) + "\n").encode()


def read_json(path: Path, kind: type[Kind]) -> Kind:
    """The values of one of our JSON files.

    Raises:
        RegardError: it is missing or damaged, or a newer Regard wrote it.
    """
    value = disk.json_of(path)
    if isinstance(value, dict):
        checksum.refuse_newer(value, path)
    try:
        return TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        first = error.errors()[0]
        place, found = ".".join(map(str, first["loc"])), f"{first['input']!r:.60}"
        raise RegardError(f"is damaged: {place} {found}: {first['msg']}", str(path)) from None


class ProcessorFile(BaseModel):
    """What ``processors.json`` holds: the path of products by which the model was validated, by kind of processor."""

    model_config = ConfigDict(defer_build=True)

    paths: dict[str, str]


@dataclass(frozen=True)
class FittedValues:
    """Values fitted on the validation texts after training.

    Args:
        temperature: scores are divided by it, so that probabilities are calibrated [Guo17].
        threshold: a text whose best label is less probable is out of scope.
        ngrams: what the scores of a classifier of n-grams, where there is one, are multiplied by.
        shift: what is added to the score of a regression, divided by the temperature, to give its number.
    """

    temperature: float = 1.0
    threshold: float = 0.0
    ngrams: float = 1.0
    shift: float = 0.0


class LabelsFile(BaseModel):
    """What ``labels.json`` holds; ``scheme``: of tags."""

    model_config = ConfigDict(defer_build=True)

    labels: tuple[str, ...] = Field(min_length=1)
    temperature: float = Field(gt=0, allow_inf_nan=False)
    threshold: float = Field(ge=0, le=1)
    ngrams: float = Field(1.0, ge=0, allow_inf_nan=False)
    shift: float = Field(0.0, allow_inf_nan=False)
    scheme: Scheme | None = None

    @property
    def fitted(self) -> FittedValues:
        """The values fitted on the validation texts."""
        return FittedValues(self.temperature, self.threshold, self.ngrams, self.shift)


def labels_content(labels: Sequence[str], fitted: FittedValues, **more: str) -> bytes:
    """The bytes of ``labels.json``."""
    usual = FittedValues()
    same = {name for name in ("ngrams", "shift") if getattr(fitted, name) == getattr(usual, name)}
    values = {name: value for name, value in asdict(fitted).items() if name not in same}
    return json_content({"labels": list(labels), **values, **more})


@dataclass(frozen=True)
class TextAssets:
    """A tokenizer; and labels, where the model has some.

    Args:
        tokenizer: text to pieces.
        labels: the names of classes or tags, in the order of their scores; a regression has one, for its number.
        fitted: see :class:`FittedValues`.
        seen: words and pieces that training read; ``None`` where that is not known.
    """

    tokenizer: AnyTokenizer
    labels: tuple[str, ...] = ()
    fitted: FittedValues = field(default_factory=FittedValues)
    seen: SeenWords | None = field(default=None, compare=False, kw_only=True)

    @property
    def sizes(self) -> tuple[int, int]:
        """Pieces, and labels."""
        return self.tokenizer.size, len(self.labels)

    @property
    def masking_id(self) -> int:
        """The id for a token hidden by word dropout: the mask, else the unknown token."""
        return self.tokenizer.unknown if self.tokenizer.mask is None else self.tokenizer.mask

    @property
    def contents(self) -> Mapping[str, bytes]:
        """``tokenizer.json``, the words that training read where they are known, and ``labels.json``."""
        found = {TOKENIZER: self.tokenizer.content}
        if self.seen:
            found[WORDS] = self.seen.content
        return {**found, LABELS: labels_content(self.labels, self.fitted)} if self.labels else found

    @property
    def sha256(self) -> str:
        """One fingerprint of tokenizer and labels."""
        rests = json.dumps([self.tokenizer.sha256, list(self.labels)])
        return hashlib.sha256(rests.encode()).hexdigest()

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Those of a model folder, which has no labels yet while its texts are prepared.

        Raises:
            RegardError: a file is missing or damaged.
        """
        tokenizer, seen = read_tokenizer(folder / TOKENIZER), read_seen_words(folder)
        if not (folder / LABELS).exists():
            return cls(tokenizer, seen=seen)
        read = read_json(folder / LABELS, LabelsFile)
        return cls(tokenizer, read.labels, read.fitted, seen=seen)


@dataclass(frozen=True)
class AnswerAssets(TextAssets):
    """A tokenizer, and what is known of the texts that were learned.

    Args:
        prefixes: those that name a task, the most frequent first, ``""`` where texts without one were learned too;
            empty where they are not known.
        doubted_below: the confidence below which outputs are doubted; 0 as long as none is, ``None`` where that is not
            known.
        terms: what its outputs contain, where ``regard terms`` put a list beside it.
    """

    prefixes: tuple[str, ...] = field(default=(), compare=False, kw_only=True)
    doubted_below: float | None = field(default=None, compare=False, kw_only=True)
    terms: TermList | None = field(default=None, compare=False, kw_only=True)

    @property
    def contents(self) -> Mapping[str, bytes]:
        """The same, and what is known."""
        found = dict(super().contents)
        if self.prefixes:
            found[PREFIXES] = json_content({"prefixes": list(self.prefixes)})
        if self.doubted_below is not None:
            found[CONFIDENCE] = confidence_content(self.doubted_below)
        if self.terms:
            found[TERMS] = self.terms.content
        return found

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Those of a model folder.

        Raises:
            RegardError: a file is missing or damaged.
        """
        found = super().load(folder)
        prefixes, doubted_below = read_prefixes(folder), read_doubted_below(folder)
        return replace(found, prefixes=prefixes, doubted_below=doubted_below, terms=read_terms(folder))


class PrefixFile(BaseModel):
    """What ``words.prefixes.json`` holds."""

    model_config = ConfigDict(defer_build=True)

    prefixes: tuple[str, ...] = Field(min_length=1)


def read_prefixes(folder: Path) -> tuple[str, ...]:
    """The prefixes that the model of a folder learned; empty where they are not known.

    Raises:
        RegardError: the file is damaged, or a newer Regard wrote it.
    """
    path = folder / PREFIXES
    return read_json(path, PrefixFile).prefixes if path.exists() else ()


@dataclass(frozen=True)
class ImageAssets:
    """The scale of pixel values, and labels.

    Args:
        scale: from pixel values to model inputs.
        labels: the names of the classes, in the order of their scores; a regression has one, for its number.
        fitted: see :class:`FittedValues`.
    """

    scale: Scale
    labels: tuple[str, ...]
    fitted: FittedValues = field(default_factory=FittedValues)

    @property
    def sizes(self) -> tuple[int, int]:
        """No pieces, and labels."""
        return 0, len(self.labels)

    @property
    def contents(self) -> Mapping[str, bytes]:
        """``pixels.json`` and ``labels.json``."""
        return {PIXELS: json_content(asdict(self.scale)), LABELS: labels_content(self.labels, self.fitted)}

    @property
    def sha256(self) -> str:
        """One fingerprint of scale and labels."""
        rests = json.dumps([asdict(self.scale), list(self.labels)])
        return hashlib.sha256(rests.encode()).hexdigest()

    @classmethod
    def load(cls, folder: Path) -> ImageAssets:
        """Those of a model folder.

        Raises:
            RegardError: a file is missing or damaged.
        """
        from regard.data.batches.patches import Scale

        read = read_json(folder / LABELS, LabelsFile)
        return cls(read_json(folder / PIXELS, Scale), read.labels, read.fitted)

"""The labels of a model, classes or tags, and what is fitted to their scores: ``labels.json``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from regard.tasks.assets import TextAssets, json_content, read_json
from regard.text.confidence import read_seen_words
from regard.text.tags import Scheme
from regard.text.tokenizers.vocabulary import TOKENIZER, read_tokenizer

LABELS = "labels.json"


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


@dataclass(frozen=True)
class LabelAssets(TextAssets):
    """A tokenizer and labels.

    Args:
        tokenizer, seen: as of :class:`~regard.tasks.assets.TextAssets`.
        labels: the names of classes or tags, in the order of their scores; a regression has one, for its number.
        fitted: see :class:`FittedValues`.
    """

    labels: tuple[str, ...] = ()
    fitted: FittedValues = field(default_factory=FittedValues)

    @property
    def sizes(self) -> tuple[int, int]:
        """Pieces, and labels."""
        return self.tokenizer.size, len(self.labels)

    @property
    def contents(self) -> Mapping[str, bytes]:
        """The same, and ``labels.json``."""
        found = super().contents
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


def labels_content(labels: Sequence[str], fitted: FittedValues, **more: str) -> bytes:
    """The bytes of ``labels.json``."""
    usual = FittedValues()
    same = {name for name in ("ngrams", "shift") if getattr(fitted, name) == getattr(usual, name)}
    values = {name: value for name, value in asdict(fitted).items() if name not in same}
    return json_content({"labels": list(labels), **values, **more})


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

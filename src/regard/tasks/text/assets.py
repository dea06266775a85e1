"""Assets of a text model: tokenizer, label names and fitted calibration values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from typing import Any

from regard.config import FORMAT, checksum
from regard.data.prepare.encoders import TOKENIZER
from regard.system import disk
from regard.system.errors import RegardError
from regard.text.tokenizers.vocabulary import AnyTokenizer, read_tokenizer

LABELS = "labels.json"


@dataclass(frozen=True)
class FittedValues:
    """Values fitted on the validation texts after training.

    Args:
        temperature: scores are divided by it, so that probabilities are calibrated [Guo17].
        threshold: a text whose best label is less probable is out of scope.
    """

    temperature: float = 1.0
    threshold: float = 0.0


@dataclass(frozen=True)
class TextAssets:
    """A tokenizer, and labels where there are any.

    Args:
        tokenizer: text to pieces.
        labels: the names of classes or tags, in the order of their scores; a regression has one, for its number.
        fitted: see :class:`FittedValues`.
    """

    tokenizer: AnyTokenizer
    labels: tuple[str, ...] = ()
    fitted: FittedValues = field(default_factory=FittedValues)

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
        """``tokenizer.json``, and ``labels.json`` where there are labels."""
        found = {TOKENIZER: self.tokenizer.content}
        if self.labels:
            found[LABELS] = labels_content(self.labels, self.fitted)
        return found

    @property
    def sha256(self) -> str:
        """One fingerprint of tokenizer and labels."""
        rests = json.dumps([self.tokenizer.sha256, list(self.labels)])
        return hashlib.sha256(rests.encode()).hexdigest()

    @classmethod
    def load(cls, folder: Path) -> TextAssets:
        """Those of a model folder.

        Raises:
            RegardError: a file is missing or damaged.
        """
        tokenizer = read_tokenizer(folder / TOKENIZER)
        path = folder / LABELS
        if not path.exists():
            return cls(tokenizer)
        labels, fitted = read_labels(path)
        return cls(tokenizer, labels, fitted)


def labels_content(labels: Sequence[str], fitted: FittedValues) -> bytes:
    """The bytes of ``labels.json``."""
    value = {"format": FORMAT, "labels": list(labels), **asdict(fitted)}
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()


def values_of(path: Path) -> dict[str, Any]:
    """The values of one of our JSON files.

    Raises:
        RegardError: it is missing or damaged, or a newer Regard wrote it.
    """
    value = disk.json_of(path)
    if not isinstance(value, dict):
        raise RegardError("is damaged: an object was expected", str(path))
    checksum.refuse_newer(value, path)
    return value


def read_labels(path: Path) -> tuple[tuple[str, ...], FittedValues]:
    """Labels and fitted values from ``labels.json``.

    Raises:
        RegardError: it is missing or damaged.
    """
    value = values_of(path)
    try:
        labels = tuple(value["labels"])
        fitted = FittedValues(float(value["temperature"]), float(value["threshold"]))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise RegardError(f"is damaged, or holds no labels: {error}", str(path)) from None
    named = isinstance(value["labels"], list) and labels and all(isinstance(label, str) for label in labels)
    if not named or not 0 < fitted.temperature < inf or not 0 <= fitted.threshold <= 1:
        message = "is damaged: labels are names, a temperature is above zero, a threshold between zero and one"
        raise RegardError(message, str(path))
    return labels, fitted

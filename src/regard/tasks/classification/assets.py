"""What a classifier of texts needs beside its weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from regard.system.errors import Damaged
from regard.tasks.classification.ngrams import NGRAMS, LinearNGrams, read_ngrams
from regard.tasks.text.labels import LabelAssets


@dataclass(frozen=True)
class ClassAssets(LabelAssets):
    """Tokenizer and classes.

    Args:
        ngrams: a linear classifier whose scores are added to the model's, if there is one.
    """

    ngrams: LinearNGrams | None = field(default=None, compare=False, kw_only=True)

    @property
    def contents(self) -> Mapping[str, bytes]:
        """The same, and the linear classifier."""
        found = super().contents
        return {**found, NGRAMS: self.ngrams.content} if self.ngrams else found

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Those of a model folder.

        Raises:
            RegardError: a file is missing or damaged.
        """
        found, ngrams = super().load(folder), read_ngrams(folder)
        if ngrams is not None and found.labels and len(ngrams.bias_C) != len(found.labels):
            message = f"is of {len(ngrams.bias_C)} labels, but the model has {len(found.labels)}"
            raise Damaged(message, str(folder / NGRAMS))
        return replace(found, ngrams=ngrams)

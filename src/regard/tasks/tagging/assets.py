"""What a tagger needs beside its weights."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from regard.system.errors import RegardError
from regard.tasks.assets import read_json
from regard.tasks.text.labels import LABELS, LabelAssets, LabelsFile, labels_content
from regard.text.confidence import read_seen_words
from regard.text.tags import Scheme, detect
from regard.text.tokenizers.vocabulary import TOKENIZER, read_tokenizer


@dataclass(frozen=True)
class TagAssets(LabelAssets):
    """Tokenizer and labels, and the tag scheme, also kept in ``labels.json``."""

    scheme: Scheme = "none"

    @property
    def contents(self) -> Mapping[str, bytes]:
        """The same, ``labels.json`` with the scheme."""
        return {**super().contents, LABELS: labels_content(self.labels, self.fitted, scheme=self.scheme)}

    @property
    def sha256(self) -> str:
        """One fingerprint of tokenizer, tags and scheme."""
        return hashlib.sha256(f"{super().sha256} {self.scheme}".encode()).hexdigest()

    @classmethod
    def load(cls, folder: Path) -> TagAssets:
        """Those of a model folder; where no scheme is named, as in one from elsewhere, spans are read leniently.

        Raises:
            RegardError: a file is missing or damaged.
        """
        tokenizer, path = read_tokenizer(folder / TOKENIZER), folder / LABELS
        if not path.exists():
            raise RegardError("is missing; it names the tags", str(path))
        read = read_json(path, LabelsFile)
        lenient: Scheme = "none" if detect([[label] for label in read.labels]) == "none" else "io"
        return cls(tokenizer, read.labels, read.fitted, read.scheme or lenient, seen=read_seen_words(folder))

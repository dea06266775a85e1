"""Assets of a tagger: tokenizer, tag names and tag scheme."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from regard.system.errors import RegardError
from regard.tasks.text.assets import LABELS, TextAssets, values_of
from regard.text.tags import Scheme, detect


@dataclass(frozen=True)
class TagAssets(TextAssets):
    """Tokenizer and labels, and the tag scheme, also kept in ``labels.json``."""

    scheme: Scheme = "none"

    @property
    def contents(self) -> Mapping[str, bytes]:
        """``tokenizer.json``, and ``labels.json`` with the scheme."""
        found = dict(super().contents)
        value = json.loads(found[LABELS]) | {"scheme": self.scheme}
        found[LABELS] = (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()
        return found

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
        found = TextAssets.load(folder)
        if not found.labels:
            raise RegardError("is missing; it names the tags", str(folder / LABELS))
        return cls(found.tokenizer, found.labels, found.fitted, _scheme(folder / LABELS, found.labels))


def _scheme(path: Path, labels: tuple[str, ...]) -> Scheme:
    """The named scheme; else one that forbids nothing, as the training scheme is unknown."""
    named = values_of(path).get("scheme")
    if named is None:
        return "none" if detect([[label] for label in labels]) == "none" else "io"
    if named not in get_args(Scheme):
        raise RegardError(f"is damaged: {named!r:.60} is no scheme of tags", str(path))
    scheme: Scheme = named
    return scheme

"""What a model of texts needs beside its weights, and our JSON files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from regard.config import FORMAT, checksum
from regard.system import disk
from regard.system.errors import RegardError
from regard.text.confidence import WORDS, SeenWords, read_seen_words
from regard.text.tokenizers.vocabulary import TOKENIZER, AnyTokenizer, read_tokenizer

PROCESSORS = "processors.json"
Kind = TypeVar("Kind")


@dataclass(frozen=True)
class TextAssets:
    """A tokenizer.

    Args:
        tokenizer: text to pieces.
        seen: words and pieces that training read; ``None`` where that is not known.
    """

    tokenizer: AnyTokenizer
    seen: SeenWords | None = field(default=None, compare=False, kw_only=True)

    @property
    def sizes(self) -> tuple[int, int]:
        """Pieces, and no labels."""
        return self.tokenizer.size, 0

    @property
    def masking_id(self) -> int:
        """The id for a token hidden by word dropout: the mask, else the unknown token."""
        return self.tokenizer.unknown if self.tokenizer.mask is None else self.tokenizer.mask

    @property
    def contents(self) -> Mapping[str, bytes]:
        """``tokenizer.json``, and the words that training read where they are known."""
        found = {TOKENIZER: self.tokenizer.content}
        return {**found, WORDS: self.seen.content} if self.seen else found

    @property
    def sha256(self) -> str:
        """A fingerprint of the tokenizer, and of no labels."""
        return hashlib.sha256(json.dumps([self.tokenizer.sha256, []]).encode()).hexdigest()

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Those of a model folder.

        Raises:
            RegardError: a file is missing or damaged.
        """
        return cls(read_tokenizer(folder / TOKENIZER), seen=read_seen_words(folder))


def json_content(values: Mapping[str, Any]) -> bytes:
    """The bytes of one of our JSON files."""
    return (json.dumps({"format": FORMAT, **values}, ensure_ascii=False, indent=1) + "\n").encode()


class ProcessorFile(BaseModel):
    """What ``processors.json`` holds: the path of products by which the model was validated, by kind of processor."""

    model_config = ConfigDict(defer_build=True)

    paths: dict[str, str]


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

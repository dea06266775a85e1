"""What a text-to-text model needs beside its weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from regard.tasks.assets import TextAssets, json_content, read_json
from regard.text.confidence import CONFIDENCE, confidence_content, read_doubted_below

PREFIXES = "words.prefixes.json"
"""The file of the prefixes that a model learned; folders of earlier versions have none."""


@dataclass(frozen=True)
class AnswerAssets(TextAssets):
    """A tokenizer, and what is known of the texts that were learned.

    Args:
        prefixes: those that name a task, the most frequent first, ``""`` where texts without one were learned too;
            empty where they are not known.
        doubted_below: the confidence below which outputs are doubted; 0 as long as none is, ``None`` where that is not
            known.
    """

    prefixes: tuple[str, ...] = field(default=(), compare=False, kw_only=True)
    doubted_below: float | None = field(default=None, compare=False, kw_only=True)

    @property
    def contents(self) -> Mapping[str, bytes]:
        """The same, and what is known."""
        found = dict(super().contents)
        if self.prefixes:
            found[PREFIXES] = json_content({"prefixes": list(self.prefixes)})
        if self.doubted_below is not None:
            found[CONFIDENCE] = confidence_content(self.doubted_below)
        return found

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Those of a model folder.

        Raises:
            RegardError: a file is missing or damaged.
        """
        found = super().load(folder)
        return replace(found, prefixes=read_prefixes(folder), doubted_below=read_doubted_below(folder))


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

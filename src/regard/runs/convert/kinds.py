"""The kinds of folders, and packages, that are imported, each recognised by its files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from regard.runs.convert.argos import is_argos, read_argos
from regard.runs.convert.ctranslate2_import import is_ctranslate2, read_ctranslate2
from regard.runs.convert.hub_import import ImportedModel, read_hub_model
from regard.runs.convert.marian_import import is_marian, read_marian_model

READERS: tuple[tuple[Callable[[Path], bool], Callable[[Path, str | None], ImportedModel]], ...] = (
    (is_argos, read_argos),
    (is_ctranslate2, read_ctranslate2),
    (is_marian, read_marian_model),
)
"""What recognises a kind, and what reads it; Hugging Face's layout is what is left."""


def read_foreign_model(folder: Path, wanted: str | None = None) -> ImportedModel:
    """The model of a folder that others made.

    Args:
        folder: where it lies.
        wanted: the task it is to be for; default: what the folder says.

    Raises:
        UsageError: such a model is not for that task.
        RegardError: it is of no kind that is supported, or a file of it is damaged.
    """
    for recognises, read in READERS:
        if recognises(folder):
            return read(folder, wanted)
    return read_hub_model(folder, wanted)

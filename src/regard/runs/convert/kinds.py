"""The kinds of folders, and packages, that are imported, each recognised by its files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from regard.runs.convert.argos import is_argos, read_argos
from regard.runs.convert.ctranslate2_import import is_ctranslate2, read_ctranslate2
from regard.runs.convert.hub import CONFIG, refuse_links_out
from regard.runs.convert.hub_import import ImportedModel, read_hub_model
from regard.runs.convert.marian_import import is_marian, read_marian_model
from regard.runs.convert.peft import is_peft, read_peft
from regard.system.errors import Option, RegardError, UsageError
from regard.tasks.model_folder import RECIPE

READERS: tuple[tuple[Callable[[Path], bool], Callable[[Path, str | None], ImportedModel]], ...] = (
    (is_argos, read_argos),
    (is_ctranslate2, read_ctranslate2),
    (is_marian, read_marian_model),
)
"""What recognises a kind, and what reads it; Hugging Face's layout is what is left."""


def read_foreign_model(folder: Path, wanted: str | None = None, base: Path | None = None) -> ImportedModel:
    """The model of a folder that others made.

    Args:
        folder: where it lies.
        wanted: the task it is to be for; default: what the folder says.
        base: of an adapter, where it does not lie beside it.

    Raises:
        UsageError: such a model is not for that task.
        RegardError: it is of no kind that is supported, or a file of it is damaged.
    """
    if folder.is_dir():
        refuse_links_out(folder)
    if is_peft(folder):
        return read_peft(folder, wanted, base)
    if base is not None:
        raise UsageError(f"is for adapters of PEFT; {folder} is none", Option("base", base))
    for recognises, read in READERS:
        if recognises(folder):
            return read(folder, wanted)
    if folder.exists() and not (folder / CONFIG).exists():
        if (folder / RECIPE).exists():
            raise RegardError("is a model of Regard already; use it as it is", str(folder))
        kinds = "Hugging Face's layout (config.json), CTranslate2 (model.bin), Marian (.npz, .bin and .spm) or Argos"
        raise RegardError(f"has no {CONFIG}, nor the files of another kind: {kinds} is read", str(folder))
    return read_hub_model(folder, wanted)

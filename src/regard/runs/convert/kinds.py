"""The kinds of folders, and packages, that are imported, each recognised by its files."""

from __future__ import annotations

from pathlib import Path

from regard.runs.convert.argos import is_argos, read_argos
from regard.runs.convert.ctranslate2_import import read_ctranslate2
from regard.runs.convert.hub import CONFIG, OF_CTRANSLATE2, refuse_links_out
from regard.runs.convert.hub_import import ImportedModel, read_hub_model
from regard.runs.convert.marian_import import is_marian, read_marian_model
from regard.runs.convert.peft import ADAPTER, read_peft
from regard.system.errors import Option, RegardError, UsageError
from regard.tasks.model_folder import RECIPE


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
    if (folder / ADAPTER).is_file():
        return read_peft(folder, wanted, base)
    if base is not None:
        raise UsageError(f"is for adapters of PEFT; {folder} is none", Option("base", base))
    if is_argos(folder):
        return read_argos(folder, wanted)
    if (folder / OF_CTRANSLATE2).exists():
        return read_ctranslate2(folder, wanted)
    if is_marian(folder):
        return read_marian_model(folder, wanted)
    if folder.is_file():
        raise RegardError("is a file, and no package of Argos; unpack it, and name its folder", str(folder))
    if folder.exists() and not (folder / CONFIG).exists():
        if (folder / RECIPE).exists():
            raise RegardError("is a model of Regard already; use it as it is", str(folder))
        kinds = "Hugging Face's layout (config.json), CTranslate2 (model.bin), Marian (.npz, .bin and .spm) or Argos"
        raise RegardError(f"has no {CONFIG}, nor the files of another kind: {kinds} is read", str(folder))
    return read_hub_model(folder, wanted)

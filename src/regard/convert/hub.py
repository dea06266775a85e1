"""Reader of a model folder in Hugging Face's layout: ``config.json``, weights and labels."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from regard.convert.config_fields import Fields, format_value
from regard.system import disk
from regard.system.errors import RegardError

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
GENERATION = "generation_config.json"
PICKLED, OF_CTRANSLATE2 = "pytorch_model.bin", "model.bin"


def values_of(path: Path) -> dict[str, Any]:
    """Read the object in a JSON file.

    Raises:
        RegardError: it is missing, too large, or no object.
    """
    found = disk.json_of(path)
    if not isinstance(found, dict):
        raise RegardError("is damaged: an object was expected", str(path))
    return found


def fields_of(path: Path) -> Fields:
    """The fields of a JSON file, read as :func:`values_of` does."""
    return Fields(values_of(path), str(path))


@dataclass(frozen=True)
class HubFolder:
    """A folder that ``transformers`` wrote, or something like it.

    Args:
        path: where it lies.
        config: the fields of its ``config.json``.
    """

    path: Path
    config: Fields

    @classmethod
    def open(cls, path: Path | str) -> HubFolder:
        """The folder, its ``config.json`` read.

        Raises:
            RegardError: it is no such folder.
        """
        path = Path(path)
        if not path.is_dir():
            raise RegardError("no such folder", str(path))
        if not (path / CONFIG).exists():
            raise RegardError(f"has no {CONFIG}: is no model in Hugging Face's layout", str(path))
        return cls(path, fields_of(path / CONFIG))

    @property
    def kind(self) -> str:
        """The word ``model_type``.

        Raises:
            RegardError: there is none.
        """
        kind = self.config.get("model_type")
        if kind is None and (self.path / OF_CTRANSLATE2).exists():
            raise RegardError(
                "is a CTranslate2 model, which holds no source weights; import "
                "the folder that it was converted from (regard export DIR OUTPUT writes one that regard import reads)",
                str(self.path),
            )
        if not isinstance(kind, str):
            raise RegardError("does not say its model_type", str(self.path / CONFIG))
        return kind

    @cached_property
    def generation(self) -> Fields:
        """The fields of ``generation_config.json``; empty if it is missing."""
        path = self.path / GENERATION
        return fields_of(path) if path.exists() else Fields({}, str(path))

    @property
    def architecture(self) -> str | None:
        """The class it was saved from, if given.

        Raises:
            RegardError: what is there is no list of names.
        """
        named = self.config.get("architectures") or []
        if not isinstance(named, list) or not all(isinstance(name, str) for name in named):
            raise RegardError("architectures is no list of names", self.config.where)
        return named[0] if named else None

    @property
    def where(self) -> str:
        """The file of its weights, for errors."""
        return str(self.path / (WEIGHTS if (self.path / WEIGHTS).exists() else INDEX))

    @cached_property
    def tensors(self) -> dict[str, Tensor]:
        """Every tensor by the name in the file, of one file or of several that an index names.

        Raises:
            RegardError: a file is missing or broken, or the weights are pickled.
        """
        found: dict[str, Tensor] = {}
        for file in self._files():
            disk.refuse_irregular(file, "file of weights")
            try:
                with safe_open(file, "pt") as opened:
                    found |= {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118  (no mapping)
            except (SafetensorError, OSError) as error:
                raise RegardError(f"is broken: {error}", str(file)) from None
        return found

    def _files(self) -> list[Path]:
        if (self.path / WEIGHTS).exists():
            return [self.path / WEIGHTS]
        if (self.path / INDEX).exists():
            named = values_of(self.path / INDEX).get("weight_map")
            files = list(named.values()) if isinstance(named, dict) else []
            if not files or not all(map(disk.is_plain, files)):
                raise RegardError("names no files of weights, or some outside of the folder", str(self.path / INDEX))
            return [self.path / name for name in sorted(set(files))]
        if (self.path / PICKLED).exists():
            raise RegardError(
                "holds pickled weights, which can run code when they are read; where you trust them, have their own "
                f"library write them as {WEIGHTS} once: transformers.{self.architecture or 'AutoModel'}"
                f".from_pretrained({str(self.path)!r}).save_pretrained('elsewhere'), its tokenizer likewise",
                str(self.path / PICKLED),
            )
        raise RegardError(f"has no {WEIGHTS}", str(self.path))

    def labels(self, count: int) -> tuple[str, ...]:
        """The names of classes or tags by number, ``LABEL_0`` and so on if the folder has no names.

        Raises:
            RegardError: there are not as many names as scores, or a name twice.
        """
        named = self.config.get("id2label") or {number: f"LABEL_{number}" for number in range(count)}
        where = self.config.where
        try:
            found = {int(number): label for number, label in named.items()}
        except (AttributeError, TypeError, ValueError):
            raise RegardError("id2label does not map numbers to names", where) from None
        if strange := [label for label in found.values() if not isinstance(label, str | int | float)]:
            raise RegardError(f"id2label has {format_value(strange[0])}, where a name is expected", where)
        if sorted(found) != list(range(count)):
            raise RegardError(f"id2label has {len(found)} names, the model's scores are {count}", where)
        names = (found[number] for number in range(count))
        labels = tuple(name if isinstance(name, str) else json.dumps(name) for name in names)
        if len(set(labels)) < count:
            raise RegardError("id2label has the same name twice", where)
        return labels

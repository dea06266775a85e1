"""Files of sentence-transformers around a text encoder: pooling and modules."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from regard.convert.config_fields import Fields
from regard.convert.hub import fields_of
from regard.system import disk
from regard.system.errors import RegardError

Pool = Literal["first", "mean", "max"]
MODULES, POOLING, SETTINGS = "modules.json", "1_Pooling/config.json", "sentence_bert_config.json"
WAYS: dict[str, Pool] = {
    "pooling_mode_cls_token": "first",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
}
"""Their fields for pooling to our words; of all their fields just one is true."""
KNOWN = ("Transformer", "Pooling", "Normalize")
"""The modules that have a counterpart here."""


@dataclass(frozen=True)
class SentenceTransformersConfig:
    """Pooling and normalisation of a text encoder.

    Args:
        pool: the pooling; ``None``: the folder is not that of a sentence encoder.
        normalise: the vector gets length one.
        longest: tokens of a text, the symbols counted; ``None``: the folder does not say.
        lowers: texts are lower-cased before the tokenizer has them.
    """

    pool: Pool | None = None
    normalise: bool = False
    longest: int | None = None
    lowers: bool = False

    @classmethod
    def of(cls, folder: Path) -> SentenceTransformersConfig:
        """Read a folder.

        Raises:
            RegardError: it pools in a way or has a module that is not supported, or a file is damaged.
        """
        if not (folder / POOLING).exists():
            return cls()
        settings = fields_of(folder / SETTINGS) if (folder / SETTINGS).exists() else Fields({}, "")
        longest = None if settings.get("max_seq_length") is None else settings.whole("max_seq_length", least=2)
        return cls(_pool(folder), "Normalize" in _modules(folder), longest, settings.flag("do_lower_case", False))


def _pool(folder: Path) -> Pool:
    path = folder / POOLING
    said = fields_of(path)
    asked = {name for name in said.values if name.startswith("pooling_mode") and said.flag(name, False)}
    if len(asked) != 1 or not asked <= WAYS.keys():
        raise RegardError(f"pools by {', '.join(sorted(asked)) or 'nothing'}; known: {', '.join(WAYS)}", str(path))
    return WAYS[asked.pop()]


def _modules(folder: Path) -> list[str]:
    """The kinds of modules a text passes, in their order."""
    path = folder / MODULES
    if not path.exists():
        return []
    modules = disk.json_of(path)
    try:
        kinds = [str(module["type"]).rpartition(".")[2] for module in modules]
    except (KeyError, TypeError) as error:
        raise RegardError(f"is damaged: {error}", str(path)) from None
    if strange := [kind for kind in kinds if kind not in KNOWN]:
        raise RegardError(f"has the module {strange[0]!r}, which is not supported", str(path))
    return kinds


def files(pool: Pool, size: int, longest: int, *, normalise: bool) -> dict[str, Any]:
    """The files' values, by name; ``size``: entries of a vector."""
    paths = {"Transformer": "", "Pooling": "1_Pooling", **({"Normalize": "2_Normalize"} if normalise else {})}
    modules = [
        {"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for place, (kind, path) in enumerate(paths.items())
    ]
    pooling = {"word_embedding_dimension": size, **{name: way == pool for name, way in WAYS.items()}}
    return {MODULES: modules, POOLING: pooling, SETTINGS: {"max_seq_length": longest, "do_lower_case": False}}

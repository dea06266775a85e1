"""Files beside a folder's config and weights: scaling of pixels, and pooling as sentence-transformers has it."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, Literal

from regard.config import VitSection
from regard.convert.hub import FLAG, NUMBERS, POSITIVE, WHOLE, Fields
from regard.data.batches.patches import Scale
from regard.system import disk
from regard.system.errors import RegardError

PIXELS = "preprocessor_config.json"
BRIGHTEST = 255.0


def scale_of(folder: Path, channels: int) -> Scale:
    """The scale in a Hugging Face folder for images of ``channels`` channels; default: that of ViT.

    Raises:
        RegardError: the file is damaged, divides by what is not above zero, or has numbers for other channels.
    """
    said = Fields.of(folder / PIXELS, optional=True)
    largest = 1 / said.parse("rescale_factor", POSITIVE, 1 / BRIGHTEST) if said.parse("do_rescale", FLAG, True) else 1.0
    normal = said.parse("do_normalize", FLAG, True)
    mean = said.parse("image_mean", NUMBERS, 0.5) if normal else (0.0,)
    deviation = said.parse("image_std", NUMBERS, 0.5) if normal else (1.0,)
    largest = round(largest, 6)
    if not isfinite(largest) or min(largest, *deviation) <= 0:
        raise RegardError("is damaged: pixel values are divided by numbers above zero", said.where)
    scale = Scale(largest, mean, deviation)
    scale.refuse_others(channels, said.where)
    return scale


def processor(model: VitSection, scale: Scale) -> dict[str, Any]:
    """The values of ``preprocessor_config.json``; each channel has a number of its own there."""
    mean, deviation = (
        list(value * model.channels if len(value) == 1 else value) for value in (scale.mean, scale.deviation)
    )
    return {
        "image_processor_type": "ViTImageProcessor",
        "do_resize": True,
        "size": {"height": model.height, "width": model.width},
        "do_rescale": True,
        "rescale_factor": 1 / scale.largest,
        "do_normalize": True,
        "image_mean": mean,
        "image_std": deviation,
    }


Pool = Literal["first", "mean", "max"]
MODULES, POOLING, SENTENCES = "modules.json", "1_Pooling/config.json", "sentence_bert_config.json"
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
        settings = Fields.of(folder / SENTENCES, optional=True)
        longest = None if settings.get("max_seq_length") is None else settings.parse("max_seq_length", WHOLE)
        if longest == 1:
            raise RegardError("max_seq_length is 1, which leaves no room for the symbols", settings.where)
        return cls(
            _pool(folder), "Normalize" in _modules(folder), longest, settings.parse("do_lower_case", FLAG, False)
        )


def _pool(folder: Path) -> Pool:
    said = Fields.of(folder / POOLING)
    asked = {name for name in said.values if name.startswith("pooling_mode") and said.parse(name, FLAG, False)}
    if len(asked) != 1 or not asked <= WAYS.keys():
        raise RegardError(f"pools by {', '.join(sorted(asked)) or 'nothing'}; known: {', '.join(WAYS)}", said.where)
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


def pooling_files(pool: Pool, size: int, longest: int, *, normalise: bool) -> dict[str, Any]:
    """The values of the files of sentence-transformers, by name; ``size``: entries of a vector."""
    paths = {"Transformer": "", "Pooling": "1_Pooling", **({"Normalize": "2_Normalize"} if normalise else {})}
    modules = [
        {"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for place, (kind, path) in enumerate(paths.items())
    ]
    pooling = {"word_embedding_dimension": size, **{name: way == pool for name, way in WAYS.items()}}
    return {MODULES: modules, POOLING: pooling, SENTENCES: {"max_seq_length": longest, "do_lower_case": False}}

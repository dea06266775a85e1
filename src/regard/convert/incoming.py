"""Bringing in: a folder in Hugging Face's layout → a model of ours, its recipe, tokenizer and labels."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.config import BUILT, FORMAT, Recipe, recipe_from, recipe_toml
from regard.convert import pixels
from regard.convert.formats import FORMATS, Format
from regard.convert.hub import HubFolder
from regard.convert.names import inward, refuse_surplus
from regard.convert.spelling import foreign
from regard.data.patches import Scale
from regard.errors import RegardError
from regard.models import build
from regard.models.store import to_bytes
from regard.text.foreign import ForeignTokenizer
from regard.text.schemes import parts

RECIPE, MODEL, TOKENIZER, LABELS = "recipe.toml", "model.safetensors", "tokenizer.json", "labels.json"
LONGEST = 1024
"""Tokens a text may have by default, where the model could read more; a recipe's batch has as many."""
LABELLED = ("classification", "tagging", "image-classification")
"""Tasks whose model says labels."""
KINDS = {
    "single_label_classification": "single",
    "multi_label_classification": "multi",
    "regression": "regression",
}
"""Their word ``problem_type`` to ours."""


@dataclass(frozen=True)
class Brought:
    """A model of others in our terms.

    Args:
        recipe: its model section and task; what says how it was trained are the defaults.
        weights: by our names, in float32.
        tokenizer: theirs; a model of images has none.
        labels: the names of classes or tags.
        scale: of pixel values, for a model of images.
    """

    recipe: Recipe
    weights: dict[str, Tensor]
    tokenizer: ForeignTokenizer | None
    labels: tuple[str, ...] = ()
    scale: Scale | None = None

    @property
    def files(self) -> dict[str, bytes]:
        """The contents of a model folder, by name."""
        found = {RECIPE: recipe_toml(self.recipe).encode(), MODEL: to_bytes(self.weights)}
        if self.tokenizer is not None:
            found[TOKENIZER] = self.tokenizer.content
        if self.labels:
            said: dict[str, Any] = {"format": FORMAT, "labels": list(self.labels), "temperature": 1.0, "threshold": 0.0}
            if self.recipe.task == "tagging":
                said["scheme"] = self.recipe.tagging.scheme
            found[LABELS] = (json.dumps(said, ensure_ascii=False, indent=1) + "\n").encode()
        if self.scale is not None:
            found[pixels.OURS] = pixels.content(self.scale)
        return found


def brought(folder: Path | str) -> Brought:
    """The model of a folder in Hugging Face's layout: BERT, GPT-2, T5 or ViT.

    Raises:
        RegardError: it is no such folder, of a kind that has no counterpart here, or a file of it is damaged.
    """
    hub = HubFolder.open(folder)
    format = _format(hub)
    task = _task(hub, format)
    tensors = format.once(hub.tensors, hub.where)
    count = len(tensors["classifier.weight"]) if task in LABELLED and "classifier.weight" in tensors else 0
    labels = hub.labels(count) if count else ()
    pieces = int(hub.config.get("vocab_size") or 0)
    model = format.section(hub.config, tensors)
    if task == "encoding" and hub.pool:
        model |= {"pool": hub.pool, "pooler": False}
    recipe = recipe_from(_recipe(hub, task, model, pieces, labels), str(hub.path / "config.json"))
    rows = format.rows(recipe.model, task)
    refuse_surplus(rows, tensors, format.spare, hub.where)
    weights = inward(rows, tensors, hub.where)
    with torch.device("meta"):
        outline = OUTLINES[task](recipe.model, pieces, count)
    _fit(weights, outline, hub.where)
    tokenizer = foreign(hub.path, pieces) if pieces else None
    scale = pixels.scale_of(hub.path) if task == "image-classification" else None
    return Brought(recipe, {name: tensor.float() for name, tensor in weights.items()}, tokenizer, labels, scale)


def import_model(folder: Path | str, output: Path | str) -> Brought:
    """Write the model of a folder in Hugging Face's layout as a model folder of ours.

    Raises:
        RegardError: as :func:`brought`; or ``output`` is not empty.
    """
    found = brought(folder)
    write(Path(output), found.files)
    return found


def write(folder: Path, files: dict[str, bytes]) -> None:
    """Write files into a folder that is absent or empty.

    Raises:
        RegardError: it is not.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RegardError("is there already and not empty; give another", str(folder))
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)


def _format(hub: HubFolder) -> Format:
    if hub.kind not in FORMATS:
        known = ", ".join(FORMATS)
        raise RegardError(f"model_type {hub.kind!r} has no counterpart here; known: {known}", str(hub.path))
    return FORMATS[hub.kind]


def _task(hub: HubFolder, format: Format) -> str:
    """What the model is for, as its architecture says."""
    architecture = hub.architecture or [*format.tasks][-1]  # files without a word hold the bare model
    if architecture not in format.tasks:
        known = ", ".join(format.tasks)
        raise RegardError(f"{architecture} has no counterpart here; known: {known}", str(hub.path / "config.json"))
    task = format.tasks[architecture]
    if task not in BUILT:
        raise RegardError(
            f"{architecture} is an encoder without a head; no task here is without one", str(hub.path / "config.json")
        )
    return task


def _recipe(hub: HubFolder, task: str, model: dict[str, Any], pieces: int, labels: Iterable[str]) -> dict[str, Any]:
    """The values of a recipe: what is known of the model, and defaults."""
    values: dict[str, Any] = {"task": task, "model": model}
    if pieces:
        values["text"] = {"vocabulary": max(300, pieces)}
        values["data"] = {"max_tokens": min(int(model.get("max_positions", 512)), LONGEST)}
    if task == "classification":
        values["classification"] = {"kind": KINDS.get(str(hub.config.get("problem_type")), "single")}
    elif task == "tagging":
        values["tagging"] = {"scheme": _scheme(labels)}
    return values


def _scheme(labels: Iterable[str]) -> str:
    """The tag scheme that the names of tags show."""
    letters = {parts(label)[0] for label in labels if label != "O"}
    if "O" in letters or not letters:
        return "none"
    if letters & {"L", "U"}:
        return "bilou"
    return "bio" if "B" in letters else "io"


def _classes(model: Any, pieces: int, count: int) -> nn.Module:
    return build.bert(model, pieces, build.classes(model, count))


OUTLINES: dict[str, Callable[[Any, int, int], nn.Module]] = {
    "masked-lm": lambda model, pieces, _: build.bert(model, pieces, build.words(model)),
    "classification": _classes,
    "tagging": lambda model, pieces, count: build.bert(model, pieces, build.tags(model, count)),
    "encoding": _classes,
    "language-model": lambda model, pieces, _: build.gpt(model, pieces),
    "span-corruption": lambda model, pieces, _: build.transformer(model, pieces, pieces),
    "image-classification": lambda model, _, count: build.vit(model, count),
}
"""How the model of a task is built from section, pieces and labels."""


def _fit(weights: dict[str, Tensor], outline: nn.Module, where: str) -> None:
    """Refuse weights whose shapes are not those of the model that ``config.json`` describes."""
    expected = {name: tuple(weight.shape) for name, weight in outline.named_parameters()}
    for name, weight in weights.items():
        if tuple(weight.shape) != expected[name]:
            found, wanted = list(weight.shape), list(expected[name])
            raise RegardError(f"what becomes {name!r} is {found}, its config.json says {wanted}", where)

"""The mean of several checkpoints of a run as a model of its own [Vaswani17 §6.1: the last five, or twenty]."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from regard.config import dump_toml
from regard.errors import RegardError, UsageError
from regard.models import store
from regard.models.build import outline
from regard.tasks.bundle import MODEL, RECIPE, load, opened
from regard.tasks.translation import Translation
from regard.training import manifest, tensors
from regard.training.checkpoint import whole
from regard.training.files import Files

WEIGHTS = "weights.safetensors"


def average(
    folder: Path | str, output: Path | str, last: int | None = None, checkpoints: Sequence[Path | str] = ()
) -> Translation:
    """Average checkpoints of the run in ``folder`` into a new model folder ``output``, and load that.

    Args:
        folder: the model folder of a run.
        output: must not exist, or be empty.
        last: the newest so many checkpoints; default: all that are kept.
        checkpoints: these checkpoint or snapshot folders instead.

    Raises:
        RegardError: too few checkpoints, a damaged one, one of another model, or an output that holds something.
    """
    folder, output = Path(folder), Path(output)
    recipe, vocabularies = opened(folder)
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise RegardError("holds something already; name a new folder", str(output))
    chosen = [Path(path) for path in checkpoints] or newest(folder, last)
    model = outline(recipe.model, vocabularies.source.size, vocabularies.target.size)
    weights = mean(chosen, {name: tuple(p.shape) for name, p in model.named_parameters()})
    output.mkdir(parents=True, exist_ok=True)
    vocabularies.save(output)
    contents = {
        RECIPE: dump_toml(recipe.model_dump()).encode(),
        MODEL: store.to_bytes(weights),
        "card.md": _card(chosen),
    }
    contents |= {path.name: path.read_bytes() for path in sorted(output.glob("tokenizer*.json"))}
    manifest.replace(output, {name: [content] for name, content in contents.items()}, Files())
    return load(output)


def newest(folder: Path, last: int | None) -> list[Path]:
    """The newest ``last`` checkpoints of a run, oldest first; all of them if no number is given."""
    if last is not None and last < 1:
        raise UsageError(f"{last} checkpoints cannot be averaged; give 1 or more", "--last")
    found = whole(folder / "training" / "checkpoints")
    if not found:
        raise RegardError("has no checkpoints below training/; was it removed?", str(folder))
    if last is not None and len(found) < last:
        raise RegardError(
            f"keeps {len(found)} checkpoints, fewer than {last}; train with --set training.keep={last}", str(folder)
        )
    return found if last is None else found[-last:]


def mean(checkpoints: Sequence[Path], shapes: dict[str, tuple[int, ...]]) -> dict[str, Tensor]:
    """Each weight's mean over verified checkpoints, summed in float64, one checkpoint in memory at a time."""
    total: dict[str, Tensor] = {}
    for path in checkpoints:
        if not (path / WEIGHTS).exists():
            raise RegardError(f"is no checkpoint: it has no {WEIGHTS}", str(path))
        manifest.verify(path)
        weights = tensors.load(path / WEIGHTS)
        if {name: tuple(w.shape) for name, w in weights.items()} != shapes:
            raise RegardError("is a checkpoint of another model: names or shapes differ", str(path))
        for name, weight in weights.items():
            total[name] = total.get(name, torch.zeros(())) + weight.double()
    return {name: (weight / len(checkpoints)).float() for name, weight in total.items()}


def _card(checkpoints: Sequence[Path]) -> bytes:
    lines = [
        f"# A translator, the mean of {len(checkpoints)} checkpoints",
        "",
        *(f"* {path.name}" for path in checkpoints),
    ]
    return "\n".join([*lines, "", "Not scored yet: `regard evaluate`.", ""]).encode()

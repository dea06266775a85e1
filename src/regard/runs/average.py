"""Averages several checkpoints of a run into a new model [Vaswani17 §6.1: the last five, or twenty]."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.config import recipe_toml
from regard.models import store
from regard.system.errors import RegardError, UsageError
from regard.tasks.model_folder import MODEL, RECIPE, load, load_recipe_and_assets, outline
from regard.tasks.model_path import model_folder
from regard.text.confidence import CONFIDENCE
from regard.training.checkpoints import checkpoint, manifest, provenance
from regard.training.checkpoints.files import Files
from regard.training.checkpoints.output_folder import fresh_folder, refuse_other

if TYPE_CHECKING:
    from torch import Tensor


def average(
    folder: Path | str, output: Path | str, last: int | None = None, checkpoints: Sequence[Path | str] = ()
) -> Any:
    """Average checkpoints of the run in ``folder`` into a new model folder ``output``, and load that.

    Args:
        folder: the model folder of a run.
        output: must not exist, be empty, or hold this very model already.
        last: the newest n checkpoints; default: all that are kept.
        checkpoints: these checkpoint or snapshot folders instead.

    Raises:
        RegardError: too few checkpoints, a damaged one, one of another model, or an output that holds something.
    """
    folder, output = model_folder(folder), Path(output)
    recipe, assets = load_recipe_and_assets(folder)
    refuse_other(output)
    chosen = [Path(path) for path in checkpoints] or select_checkpoints(folder, last)
    weights = mean_of_weights(chosen)
    shapes = {name: tuple(weight.shape) for name, weight in weights.items()}
    if shapes != {name: tuple(part.shape) for name, part in store.named_tensors(outline(recipe, assets)).items()}:
        message = "is a checkpoint of another model: names or shapes differ from the recipe's"
        raise RegardError(message, str(chosen[0]))
    contents = {
        RECIPE: recipe_toml(recipe).encode(),
        MODEL: store.to_bytes(weights),
        "card.md": _card(chosen, provenance.load(folder / "training")),
        **{name: content for name, content in assets.contents.items() if name != CONFIDENCE},  # fitted to others
    }
    with fresh_folder(output) as fresh:
        manifest.replace(fresh, {name: [content] for name, content in contents.items()}, Files())
    return load(output)


def mean_of_weights(places: Sequence[Path]) -> dict[str, Tensor]:
    """The mean of each tensor over one or more checkpoints, snapshots or safetensors files, summed in float64.

    Raises:
        Damaged: a folder is not as it was written.
        RegardError: two places hold different names or shapes.
    """
    first = checkpoint.weights(places[0])
    sums = {name: tensor.double() for name, tensor in first.items()}
    for place in places[1:]:
        found = checkpoint.weights(place)
        odd = set(found) ^ set(sums) or {name for name in sums if sums[name].shape != found[name].shape}
        if odd:
            raise RegardError(f"{min(odd)!r} is not the same as in {places[0]}; average weights of one run", str(place))
        for name, tensor in found.items():
            sums[name] += tensor.double()
    return {name: (total / len(places)).to(first[name].dtype) for name, total in sums.items()}


def select_checkpoints(folder: Path, last: int | None = None) -> list[Path]:
    """The newest ``last`` checkpoints of a run, oldest first; all of them if no number is given."""
    if last is not None and last < 1:
        raise UsageError(f"{last} checkpoints cannot be averaged; give 1 or more", "--last")
    found = checkpoint.whole(folder / "training" / "checkpoints")
    if not found:
        raise RegardError("has no checkpoints below training/; was it removed?", str(folder))
    return found if last is None else checkpoint.newest(folder / "training", last)


def _card(checkpoints: Sequence[Path], made: provenance.Provenance | None) -> bytes:
    """The card: the checkpoints, and of the run whose they are what its own card says; the same whenever it is made."""
    title = f"# The mean of {len(checkpoints)} checkpoints"
    lines = [title, "", *(f"* {path.name}" for path in checkpoints), "", "Not scored yet: `regard evaluate`."]
    if made is not None:
        lines += ["", "## Their run", *made.data_lines(), *made.training_lines()]
    return "\n".join([*lines, ""]).encode()

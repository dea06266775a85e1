"""The engine of a task (``fast``): it computes where nobody looks inside the model, and needs no torch.

Every engine reads texts (``read``). One that writes is a step of search too; one of texts without a second side also
gives what its head does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from regard import kernels
from regard.config import Recipe, saved_recipe
from regard.config.tasks import import_name
from regard.fast.packed_file import MappedPacker
from regard.fast.weights import WeightFile
from regard.kernels.packing import Packer, Precision
from regard.system.errors import RegardError
from regard.tasks.model_path import (
    MODEL,
    RECIPE,
    finished_folder,
    load_recipe_and_assets,
    model_folder,
    verifying,
)
from regard.tasks.protocols import EngineTask, Task, Unloaded
from regard.tasks.text.packed_weights import build_engine, settled_weights, write
from regard.tasks.text.precisions import Wanted, precision_of, refuse_where_torch_computes

GPUS = ("/dev/nvidiactl", "/dev/kfd")
"""Devices of the system that say that there may be a GPU, which is then the default."""


@dataclass
class ModelEngine:
    """The engine of a model in memory, packed when it is first used, and again when a weight has changed.

    Torch counts the changes of a tensor, but not those by ``.data`` or by a NumPy array that shares its memory.
    """

    task: Task
    _made: tuple[object, Any] = (None, None)

    def __call__(self) -> Any:
        """The engine; ``None`` where it cannot be that of the model as it is now: in training, or not in float32."""
        import torch

        from regard.models.store import named_tensors

        model = self.task.model
        tensors = named_tensors(model)
        plain = all(one.dtype == torch.float32 and one.device.type == "cpu" for one in tensors.values())
        if model.training or not plain:
            return None
        now = [(name, one.data_ptr(), one._version) for name, one in tensors.items() if not one.is_inference()]
        if self._made[0] != now:

            def take(name: str, *shape: int) -> Any:
                return tensors[name].detach().numpy().reshape(shape)

            self._made = now, _build(self.task, take, Packer(self.task.precision))
        return self._made[1]


def engine_of(task: Task) -> Any:
    """What computes in the place of a task's model; ``None`` where there is nothing, or a hook looks into the model."""
    hooks = sys.modules.get("regard.nn.hooks")  # without torch there are none
    looked_into = hooks is not None and hooks.active()
    return None if task.engine is None or looked_into else task.engine()


def step_of(task: Task, **options: Any) -> Any:
    """The step function of a task: its engine, or the model's, which is given the options."""
    if (step := engine_of(task)) is not None:
        return step
    from regard.models.decoding import stepper

    return stepper(task.model, task.device, **options)


def has_engine(task: Task) -> bool:
    """Whether the engine can compute a task's model here."""
    return knows(task.recipe) and kernels.available()


def give_engine(task: EngineTask, folder: Path | str, wanted: Wanted) -> None:
    """Let the engine compute a loaded task, where there is one.

    Raises:
        UsageError: a precision is asked for that only the engine has.
    """
    if has_engine(task) and task.device_name == "cpu":
        task.precision = precision_of(model_folder(folder), wanted)
    else:
        refuse_where_torch_computes(wanted, why_torch(task.recipe))
    use_engine(task)


def use_engine(task: EngineTask) -> None:
    """Let the engine compute a task whose model is in memory, where there is one, in the task's precision."""
    if has_engine(task):
        task.engine = ModelEngine(task)


def open_without_torch(given: Path | str, device: str | None, wanted: Wanted = "auto") -> Any:
    """The task of a model folder, for the engine to compute; ``None`` where torch has to, and says what is wrong.

    Args:
        given: the model folder; its manifest is verified meanwhile.
        device: as asked for; default: a GPU, should there be one.
        wanted: the precision.

    Raises:
        RegardError: a file of it is damaged, or the weights are not those of the recipe.
    """
    if device not in (None, "cpu") or (device is None and any(Path(gpu).exists() for gpu in GPUS)):
        return None
    if not (kernels.available() and _is_of_engine(model_folder(given) / RECIPE)):
        return None
    folder = finished_folder(given)
    with verifying(folder) as verified:
        task, weights, settled = _open_task(folder)
        task.precision = precision_of(folder, wanted)
        engine = build_engine(folder, settled, task.precision, partial(_build_of_file, task, weights), verified)
        weights.refuse_surplus()
    task.engine = lambda: engine
    return task


def write_packed(given: Path | str, precision: Precision) -> Path:
    """Write the packed weights of a model folder, for its next starts; where they are.

    Args:
        given: the folder of a model that the engine computes.

    Raises:
        RegardError: a file of the model is damaged, or neither the folder nor the user's cache can be written.
    """
    folder = finished_folder(given)
    with verifying(folder) as verified:
        task, weights, settled = _open_task(folder)
        verified()
        return write(folder, settled, precision, partial(_build_of_file, task, weights))


def _open_task(folder: Path) -> tuple[EngineTask, WeightFile, str | None]:
    """The task of a model folder without an engine yet, its weights, and which those were before."""
    recipe, assets = load_recipe_and_assets(folder)
    settled = settled_weights(folder)

    def load() -> Any:
        from regard.tasks.model_folder import load

        return load(folder, "cpu").model

    task = recipe.info.model()(recipe, assets, Unloaded(load))
    return task, WeightFile(folder / MODEL), settled


def _is_of_engine(path: Path) -> bool:
    try:
        recipe = saved_recipe(path)
    except (RegardError, OSError):
        return False
    return knows(recipe)


def knows(recipe: Recipe) -> bool:
    """Whether there is an engine for the models of a recipe."""
    return bool(recipe.model.info.engine) and hasattr(recipe.info.model(), "engine_sizes")


def why_torch(recipe: Recipe) -> str:
    """Why the engine does not compute a model here."""
    if not kernels.available():
        return "Regard was installed without kernels, or they are switched off"
    return "it is not on the processor" if knows(recipe) else f"the engine has no {recipe.model.info.noun}"


def _build_of_file(task: Task, weights: WeightFile, pack: Packer) -> Any:
    """An engine of a file's weights, which are finite: those that were packed before were seen to be so then."""
    return _build(task, weights.take if isinstance(pack, MappedPacker) else weights.take_finite, pack)


def _build(task: Task, take: Callable[..., Any], pack: Packer) -> Any:
    section, sizes = task.recipe.model, task.engine_sizes()  # type: ignore[attr-defined]
    return import_name(section.info.engine)(section, *sizes, take, pack)

"""The engine of a task (``fast``): it computes where nobody looks inside the model, and needs no torch.

Every engine reads texts (``read``). One that writes is a step of search too; one of texts without a second side also
gives what its head does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.config import Recipe, import_name
from regard.system import kernels
from regard.system.kernels.packing import Packer, SharingPacker
from regard.tasks.model_path import model_folder
from regard.tasks.protocols import Task
from regard.tasks.text.precisions import Wanted, precision_of, refuse_where_torch_computes

ENGINES = {
    "transformer": "regard.engine.build:transformer",
    "gpt": "regard.engine.gpt:gpt",
    "bert": "regard.engine.readers:bert",
    "rnn-encoder": "regard.engine.readers:rnn_encoder",
}
"""What makes the engine of a section, by its family; only that is imported."""


@dataclass
class ModelEngine:
    """The engine of a model in memory, packed when it is first used, and again when a weight has changed.

    Torch counts the changes of a tensor, but not those by ``.data`` or by a NumPy array that shares its memory.
    """

    task: Task
    packed: dict[object, Any] = field(default_factory=dict)
    """Matrices that were packed, which other models may share (:func:`share_engine`)."""
    _made: tuple[object, object] = (None, None)

    def __call__(self) -> object:
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

            def take(name: str, *shape: int) -> NDArray[np.float32]:
                return tensors[name].detach().numpy().reshape(shape)

            if self._made[0] is not None:  # they are of weights that have changed
                self.packed = {}
            self._made = now, build(self.task, take, SharingPacker(self.task.precision, self.packed))
        return self._made[1]


def engine_of(task: Task) -> Any:
    """What computes in the place of a task's model; ``None`` where there is nothing, or a hook looks into the model."""
    hooks = sys.modules.get("regard.nn.hooks")  # without torch there are none
    looked_into = hooks is not None and hooks.active()
    return None if task.engine is None or looked_into else task.engine()


def step_of(task: Task, **options: int) -> Any:
    """The step function of a task: its engine, or the model's, which is given the options; or that of an ensemble."""
    if task.others:
        from regard.decoding.ensemble import EnsembleStep

        return EnsembleStep([own_step_of(one, **options) for one in (task, *task.others)])
    return own_step_of(task, **options)


def own_step_of(task: Task, **options: int) -> Any:
    """The same of its own model alone."""
    if (step := engine_of(task)) is not None:
        return step
    from regard.models.decoding import stepper

    return stepper(task.model, task.device, **options)


def has_engine(recipe: Recipe) -> bool:
    """Whether the engine can compute the models of a recipe here."""
    made_without = getattr(recipe.model, "without", None)  # one idea: the engine has all of them
    return recipe.model.family in ENGINES and not made_without and kernels.available()


def give_engine(task: Task, folder: Path | str, wanted: Wanted) -> None:
    """Let the engine compute a loaded task, where there is one.

    Raises:
        UsageError: a precision is asked for that only the engine has.
    """
    if has_engine(task.recipe) and task.device_name == "cpu":
        task.precision = precision_of(model_folder(folder), wanted)
    else:
        refuse_where_torch_computes(wanted, why_torch(task.recipe))
    use_engine(task)


def use_engine(task: Task) -> None:
    """Let the engine compute a task whose model is in memory, where there is one, in the task's precision."""
    if has_engine(task.recipe):
        task.engine = ModelEngine(task)


def share_engine(task: Task, base: Task) -> None:
    """Let the engine of a model use the matrices that were packed for another, where their weights are the same."""
    if isinstance(task.engine, ModelEngine) and isinstance(base.engine, ModelEngine):
        task.engine.packed = base.engine.packed


def why_torch(recipe: Recipe) -> str:
    """Why the engine does not compute a model here."""
    if not kernels.available():
        return "Regard was installed without kernels, or they are switched off"
    if idea := getattr(recipe.model, "without", None):
        return f"the model was made without {idea}"
    known = recipe.model.family in ENGINES
    return "it is not on the processor" if known else f"the engine has no {recipe.model.info.noun}"


def build(task: Task, take: Callable[..., NDArray[np.float32]], pack: Packer) -> object:
    """The engine of a task's model, of the weights that ``take`` gives by name."""
    section, sizes = task.recipe.model, task.engine_sizes()  # type: ignore[attr-defined]
    return import_name(ENGINES[section.family])(section, *sizes, take, pack)

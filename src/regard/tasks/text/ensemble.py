"""Which models can be an ensemble: those that read and write the same tokens."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from regard.system.errors import UsageError
from regard.tasks.model_path import is_same
from regard.tasks.protocols import Task

AnyTask = TypeVar("AnyTask", bound=Any)


def with_models(task: AnyTask, folder: Path, others: Mapping[Path, Task]) -> AnyTask:
    """An ensemble of a model and others, by their folders.

    Raises:
        UsageError: one of these does not go with the model; names both.
    """
    for path, other in others.items():
        if is_same(path, folder):
            raise UsageError(f"is the same model as {folder}; an ensemble is of different ones", str(path))
        if differs := difference(task, other):
            raise UsageError(f"{differs} than {folder}; an ensemble is of models that read and write alike", str(path))
    return task.with_models(others.values()) if others else task


def difference(first: Any, other: Task) -> str:
    """In what a model differs from another so that both are no ensemble, as what stands before "than"; else empty."""
    if first.name != other.name:
        return f"is {other.info.noun} and so of another task"
    around = any(getattr(first, name, None) != getattr(other, name, None) for name in ("symbols", "before"))
    if around or first.assets.sha256 != other.assets.sha256:
        return "has another vocabulary"
    return "translates other languages" if _languages(first) != _languages(other) else ""


def _languages(task: Task) -> tuple[object, ...]:
    """Those of the recipe, and their tokens."""
    text = task.recipe.text
    return text.source_language, text.target_language, getattr(task.assets, "languages", None)

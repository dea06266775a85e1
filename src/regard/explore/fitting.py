"""What is asked, as far as the model reads it: a window of the text, and the beginning of what it is made to write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from regard.explore.asked import Asked
from regard.explore.models import Loaded, Models
from regard.explore.windows import Window, Windows, forced, windows

Cut = Callable[[Callable[[Any, str], Windows], str], Windows]
"""The windows of a text, by one of the two ways to cut it."""


@dataclass(frozen=True)
class Fitted:
    """What is asked, cut to what the model reads.

    Args:
        asked: with the window's text, which is whole to the model.
        source, target: the windows of what is read and of what is forced; ``None`` where the model reads all of it.
    """

    asked: Asked
    source: Window | None = None
    target: Window | None = None

    @classmethod
    def of(cls, task: Any, text: str, target: str | None = None, window: int | None = None) -> Fitted:
        """A text before a model that is loaded, and what the model is made to write of it."""
        return _fitted(task, Asked(text=text, target=target, window=window), lambda cut, text: cut(task, text))

    @property
    def values(self) -> dict[str, Any]:
        """Which windows are seen, as plain values."""
        source, target = (None if one is None else one.values for one in (self.source, self.target))
        return {"window": source, "target_window": target}

    @property
    def seen(self) -> dict[str, Any]:
        """The same where not all is seen."""
        return {name: value for name, value in self.values.items() if value is not None}

    @property
    def told(self) -> str:
        """The same in a sentence; nothing where all is seen."""
        parts = [] if self.source is None else [f"Of the text this is {self.source.told}."]
        parts += [] if self.target is None else [f"Of what it is made to write this is {self.target.told}."]
        return " ".join(parts)


def fitted(models: Models, loaded: Loaded, asked: Asked) -> Fitted:
    """What is asked before a model, cut to what it reads; an image is as it is."""

    def cut(way: Callable[[Any, str], Windows], text: str) -> Windows:
        found: Windows = models.cut.get((loaded.key, way, text), lambda: way(loaded.task, text))
        return found

    return _fitted(loaded.task, asked, cut)


def _fitted(task: Any, asked: Asked, cut: Cut) -> Fitted:
    if task.name == "image-classification":
        return Fitted(replace(asked, window=None))
    source, target, text = cut(windows, asked.text).one(asked.window), None, asked.target
    if text is not None and task.recipe.model.family in ("transformer", "rnn"):
        target = cut(forced, text).one()
        text = target.text
    return Fitted(
        replace(asked, text=source.text, target=text, window=None),
        source if source.count > 1 else None,
        target if target is not None and target.count > 1 else None,
    )

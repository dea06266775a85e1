"""One pass of a model with all that is seen at once: the weights, what was said, and what the model makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.errors import RegardError, UsageError
from regard.explore import outputs
from regard.explore.asked import Asked
from regard.explore.fitting import fitted
from regard.explore.models import Loaded, Models
from regard.explore.payload import NO_NUMBERS
from regard.explore.record import Record, recorded
from regard.explore.said import SAYING, Said, candidates, scores
from regard.explore.scene import Scene, image_scene, scene
from regard.explore.searches import GOES_ON, SEARCHED, begun, found

if TYPE_CHECKING:
    from torch import Tensor

IMAGES = "image-classification"
OF_A_TOKEN = 500
"""Bytes that a token, or what might have come in its place, takes at most, with its names."""


@dataclass(frozen=True)
class Pass:
    """What was seen in one pass; the model itself is not held.

    Args:
        record: tokens and weights.
        output: what the model makes of the text, by itself.
        said: the most probable pieces at each place; ``None`` where the model says none.
        probability: of the piece that was written at each place, where it had one before it was known.
        branch: the numbers of the pieces that were written, where the model writes a text of its own.
        pixels: of an image, height × width × channels from 0 to 255.
        grid: its patches from top to bottom and from left to right.
        label: that the image has by itself; ``None`` where it is not known.
    """

    record: Record
    output: outputs.Output
    said: list[list[Said]] | None = None
    probability: list[float | None] | None = None
    branch: tuple[int, ...] | None = None
    pixels: NDArray[np.uint8] | None = None
    grid: tuple[int, int] | None = None
    label: str | None = None

    @property
    def size(self) -> int:
        """Bytes, about."""
        weights = sum(weight.nbytes for layers in self.record.weights.values() for weight in layers)
        tokens = len(self.record.source) + len(self.record.written) * 6
        return weights + OF_A_TOKEN * tokens + (0 if self.pixels is None else self.pixels.nbytes)


def passed(models: Models, asked: Asked) -> Pass:
    """The pass that is asked for, out of memory where it was made before.

    Of a text that is longer than the model reads it is that of a window.

    Raises:
        RegardError: it cannot be made, or its numbers are none.
    """
    loaded = models.asked(asked)
    asked = fitted(models, loaded, asked).asked
    made: Pass = models.passes.get((loaded.key, asked), lambda: _made(models, loaded, asked))
    return made


def _made(models: Models, loaded: Loaded, asked: Asked) -> Pass:
    task = loaded.task
    with staged(models, loaded, asked) as seen:
        hidden: list[Tensor] = []

        def run() -> Tensor:
            hidden.append(seen.run())
            return hidden[-1]

        record = recorded(replace(seen, run=run))
        if not hidden[0].isfinite().all():
            raise RegardError(NO_NUMBERS)
        if task.name == IMAGES:
            return _of_image(models, task, asked, record)
        output = _output(models, loaded, asked)
        if task.name not in SAYING:
            return Pass(record, output)
        score_TV = scores(replace(seen, run=lambda: hidden[0]))  # nothing is computed a second time
        branch = seen.written_ids if task.name in SEARCHED else None
        return Pass(record, output, candidates(task, score_TV), probabilities(seen, score_TV), branch)


def _of_image(models: Models, task: Any, asked: Asked, record: Record) -> Pass:
    image, cut = pixels_of(models, task, asked), task.cut
    pixels = np.rint(np.clip(image / cut.scale.largest, 0, 1) * 255).astype(np.uint8)
    grid = cut.shape.height // cut.patch, cut.shape.width // cut.patch
    label = None if asked.image is None else models.gallery.label(task, asked.image)
    return Pass(record, outputs.of_image(task, image), pixels=pixels, grid=grid, label=label)


def _output(models: Models, loaded: Loaded, asked: Asked) -> outputs.Output:
    """What the model makes of the text by itself, whatever else may be forced."""
    task = loaded.task
    if task.name in SEARCHED:
        return {"kind": "text", "text": begun(task, asked.text, 1).text(own(models, loaded, asked))}
    return outputs.OF_TEXTS[task.name](task, asked.text)


@contextmanager
def staged(models: Models, loaded: Loaded, asked: Asked) -> Iterator[Scene]:
    """What is asked for before its model, which does without what is to be taken away while this lasts.

    Raises:
        UsageError: it is not what this model reads or writes, or has nothing of the kind that is to be taken away.
        RegardError: it is empty or too long.
    """
    with asked.without.changes.made(loaded.task.recipe.model):
        yield scene_of(models, loaded, asked)


def scene_of(models: Models, loaded: Loaded, asked: Asked) -> Scene:
    """What is asked for before its model; its own writing is searched for as the model is at the moment."""
    task = loaded.task
    if task.name == IMAGES:
        return image_scene(task, pixels_of(models, task, asked))
    if asked.image is not None or asked.pixels is not None:
        raise UsageError("this model reads texts", "image")
    asked = fitted(models, loaded, asked).asked
    target = asked.branch if asked.target is None else asked.target
    if target is None and task.name in SEARCHED:
        target = own(models, loaded, asked)
    return scene(task, asked.text, target)


def own(models: Models, loaded: Loaded, asked: Asked) -> tuple[int, ...]:
    """The pieces that the model writes itself, the most probable one every time."""

    def search() -> tuple[int, ...]:
        return found(begun(loaded.task, asked.text, 1), 1)[0].tokens

    return models.written.get((loaded.key, asked.own), search)


def pixels_of(models: Models, task: Any, asked: Asked) -> NDArray[Any]:
    """The pixel values of the image that is asked for, height × width × channels.

    Raises:
        UsageError: there is none.
        RegardError: it is not of the size the model reads.
    """
    if asked.pixels is not None:
        drawn: NDArray[Any] = task.images([np.array(asked.pixels, np.int64)])[0]
        return drawn
    if asked.image is None:
        raise UsageError("this model reads images: name one by its number, or give its pixels", "image")
    return models.gallery.one(task, asked.image)


def probabilities(seen: Scene, score_TV: Tensor) -> list[float | None] | None:
    """How probable each piece that is written was before it; of what a language model reads, behind what it has read.

    ``None`` where a model sees a piece before it says anything of it.

    Args:
        seen: a scene.
        score_TV: what :func:`~regard.explore.said.scores` says of it.
    """
    import torch

    task = seen.task
    if task.name not in (*SEARCHED, GOES_ON):
        return None
    with torch.inference_mode():
        ids_T = torch.tensor(seen.written_ids, device=score_TV.device)
        if task.name == GOES_ON:
            score_TV, ids_T = score_TV[:-1], ids_T[1:]
        surprise_T = score_TV.logsumexp(1) - score_TV.gather(1, ids_T[:, None])[:, 0]
        found = (-surprise_T).exp().cpu().tolist()
    return [None, *found] if task.name == GOES_ON else found

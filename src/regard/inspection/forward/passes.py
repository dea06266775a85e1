"""Cached forward passes: attention record, next-token candidates and model output in one result."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regard.inspection.folders.models import LoadedModel, Models
from regard.inspection.forward import outputs
from regard.inspection.forward.inputs import ModelInputs, image_inputs, text_inputs
from regard.inspection.forward.outputs import (
    PIECE_SCORES,
    Candidate,
    beam_search,
    candidates,
    prepare_search,
    scores,
)
from regard.inspection.forward.record import AttentionRecord, record_attention
from regard.inspection.forward.text_windows import fit_request
from regard.inspection.payload import NO_NUMBERS
from regard.inspection.requests import Request
from regard.system.errors import RegardError, UsageError
from regard.tasks.kinds import reads_image, reads_text, writes_text

if TYPE_CHECKING:
    from torch import Tensor

    from regard.tasks.images.classifier import ImageClassification
    from regard.text.confidence import UnseenWord

OF_A_TOKEN = 500
"""Approximate bytes of a token or candidate with its strings."""


@dataclass(frozen=True)
class ForwardPass:
    """The results of one forward pass; the model itself is not referenced.

    Args:
        record: tokens and weights.
        output: what the model makes of the text, by itself.
        said: the most probable pieces at each place; ``None`` if it predicts none.
        probability: of the piece that was written at each place, where it had one before it was known.
        branch: the numbers of the pieces that were written, where the model writes a text of its own.
        pixels: of an image, height × width × channels from 0 to 255.
        grid: its patches from top to bottom and from left to right.
        label: that the image has by itself; ``None`` where it is not known.
        unseen: the words of what is read that training never saw; ``None`` where the folder does not say.
        confidence: of the text that the model wrote by itself, its ``</s>`` counted even where it was cut off; ``None``
            where it wrote none, or was forced.
        unsure: whether that is doubted; ``None`` where that is not known.
    """

    record: AttentionRecord
    output: outputs.Output
    said: list[list[Candidate]] | None = None
    probability: list[float | None] | None = None
    branch: tuple[int, ...] | None = None
    pixels: NDArray[np.uint8] | None = None
    grid: tuple[int, int] | None = None
    label: str | None = None
    unseen: tuple[UnseenWord, ...] | None = None
    confidence: float | None = None
    unsure: bool | None = None

    @property
    def size(self) -> int:
        """Approximate bytes."""
        weights = sum(weight.nbytes for layers in self.record.weights.values() for weight in layers)
        tokens = len(self.record.source) + len(self.record.written) * 6
        return weights + OF_A_TOKEN * tokens + (0 if self.pixels is None else self.pixels.nbytes)


def forward_pass(models: Models, asked: Request) -> ForwardPass:
    """The requested forward pass, cached.

    Of a text that is longer than the model reads it is that of a window.

    Raises:
        RegardError: it cannot be computed, or has NaN or infinite values.
    """
    loaded = models.load_for(asked)
    asked = fit_request(models, loaded, asked).asked
    made: ForwardPass = models.passes.get(
        (loaded.key, asked), lambda: _with_doubts(_run_pass(models, loaded, asked), loaded, asked)
    )
    return made


def _with_doubts(one: ForwardPass, loaded: LoadedModel, asked: Request) -> ForwardPass:
    """The pass with the words that training never saw, and how sure the model is of what it wrote by itself."""
    task = loaded.task
    unseen = task.unseen_words(one.record.source_text) if reads_text(task) else None
    one = one if unseen is None else replace(one, unseen=tuple(unseen))
    if not writes_text(task) or asked.target is not None or asked.branch is not None:
        return one
    confidence, unsure = outputs.doubt(task, [found for found in one.probability or () if found is not None])
    return replace(one, confidence=confidence, unsure=unsure)


def _run_pass(models: Models, loaded: LoadedModel, asked: Request) -> ForwardPass:
    task = loaded.task
    seen = inputs_of(models, loaded, asked)
    with asked.changes.ablations.apply(task.recipe.model):
        hidden: list[Tensor] = []

        def run() -> Tensor:
            hidden.append(seen.run())
            return hidden[-1]

        record = record_attention(replace(seen, run=run))
        if not hidden[0].isfinite().all():
            raise RegardError(NO_NUMBERS, "model")
        if reads_image(task):
            return _of_image(models, task, asked, record)
        output = _output(models, loaded, asked)
        if task.info.writes not in PIECE_SCORES:
            return ForwardPass(record, output)
        score_TV = scores(replace(seen, run=lambda: hidden[0]))  # reuse what is already computed
        branch = seen.written_ids if task.info.writes == "text" else None
        return ForwardPass(record, output, candidates(task, score_TV), probabilities(seen, score_TV), branch)


def _of_image(models: Models, task: ImageClassification, asked: Request, record: AttentionRecord) -> ForwardPass:
    image, cut = pixels_of(models, task, asked), task.cut
    grid = cut.shape.height // cut.patch, cut.shape.width // cut.patch
    number = asked.image.number if asked.image else None
    label = None if number is None else models.gallery.label(task, number)
    return ForwardPass(record, outputs.classes(task, image), pixels=shown_pixels(task, image), grid=grid, label=label)


def _output(models: Models, loaded: LoadedModel, asked: Request) -> outputs.Output:
    """The model's own output, regardless of a forced target."""
    task = loaded.task
    if task.info.writes == "text":
        return {"kind": "text", "text": prepare_search(task, asked.text, 1).text(greedy_output(models, loaded, asked))}
    return outputs.OF_TEXTS[task.info.writes](task, asked.text)


def inputs_of(models: Models, loaded: LoadedModel, asked: Request) -> ModelInputs:
    """The requested inputs; a missing target is decoded from the model with the requested ablations.

    Raises:
        UsageError: it is not what this model reads or writes, or has nothing of the kind that is to be taken away.
        RegardError: it is empty or too long.
    """
    task = loaded.task
    with asked.changes.ablations.apply(task.recipe.model):
        if reads_image(task):
            return image_inputs(task, pixels_of(models, task, asked))
        if asked.image is not None:
            raise UsageError("this model reads texts", "image")
        asked = fit_request(models, loaded, asked).asked
        target = asked.branch if asked.target is None else asked.target
        if target is None and task.info.writes == "text":
            target = greedy_output(models, loaded, asked)
        return text_inputs(task, asked.text, target)


def greedy_output(models: Models, loaded: LoadedModel, asked: Request) -> tuple[int, ...]:
    """The pieces of the model's own greedy output."""

    def search() -> tuple[int, ...]:
        return beam_search(prepare_search(loaded.task, asked.text, 1), 1)[0].tokens

    return models.written.get((loaded.key, asked.own), search)


def pixels_of(models: Models, task: ImageClassification, asked: Request) -> NDArray[Any]:
    """The pixel values of the requested image, height × width × channels.

    Raises:
        UsageError: there is none.
        RegardError: it is not of the size the model reads.
    """
    if asked.image is None:
        raise UsageError("this model reads images: name one by its number, or give its pixels", "image")
    if asked.image.number is not None:
        return models.gallery.image(task, asked.image.number)
    drawn: NDArray[Any] = task.images([np.array(asked.image.pixels, np.int64)])[0]
    return drawn


def shown_pixels(task: ImageClassification, pixels: NDArray[Any]) -> NDArray[np.uint8]:
    """The pixels of images as the page shows them, from 0 to 255."""
    return np.rint(np.clip(pixels / task.cut.scale.largest, 0, 1) * 255).astype(np.uint8)


def probabilities(seen: ModelInputs, score_TV: Tensor) -> list[float | None] | None:
    """The probability of each written piece given those before it; for a language model also of the prompt.

    ``None`` where a model sees a piece before it says anything of it.

    Args:
        seen: a scene.
        score_TV: what :func:`~regard.inspection.forward.outputs.scores` says of it.
    """
    import torch

    task = seen.task
    if task.info.writes not in ("text", "continuation"):
        return None
    with torch.inference_mode():
        ids_T = torch.tensor(seen.written_ids, device=score_TV.device)
        if task.info.writes == "continuation":
            score_TV, ids_T = score_TV[:-1], ids_T[1:]
        surprise_T = score_TV.logsumexp(1) - score_TV.gather(1, ids_T[:, None])[:, 0]
        found = (-surprise_T).exp().cpu().tolist()
    return [None, *found] if task.info.writes == "continuation" else found

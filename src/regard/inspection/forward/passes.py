"""Forward passes: one, cached, with its record, candidates and output; or records of many texts, several in a pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from regard.inspection.folders.models import Models
from regard.inspection.forward import outputs
from regard.inspection.forward.outputs import PIECES, Candidate, beam_search, candidates, prepare_search, scores
from regard.inspection.forward.record import (
    AttentionRecord,
    ModelInputs,
    greedy_outputs,
    hidden_states,
    image_inputs,
    record_pass,
    text_inputs,
)
from regard.inspection.forward.text_windows import WindowedRequest, fit_request
from regard.inspection.requests import NO_NUMBERS, Request
from regard.system.errors import RegardError, UsageError
from regard.tasks.kinds import has_one_stack, reads_image, reads_text, writes_text

if TYPE_CHECKING:
    from torch import Tensor

    from regard.tasks.images.classifier import ImageClassification
    from regard.tasks.protocols import Task
    from regard.text.confidence import UnseenWord

OF_A_TOKEN = 500
"""Approximate bytes of a token or candidate with its strings."""
TEXTS = 32
"""Most texts in one pass."""
WEIGHTS = 1 << 23
"""Most attention weights in one pass, about; a longer text has one of its own."""


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
    asked = fit_request(models, asked).asked
    made: ForwardPass = models.passes.get((loaded.key, asked), lambda: _run_pass(models, asked))
    return made


def _run_pass(models: Models, asked: Request) -> ForwardPass:
    seen = inputs_of(models, asked)
    task = seen.task
    with asked.changes.ablations.apply(task.recipe.model):
        hidden_TD, (record,) = _record_finite([seen], seen.run)
        if reads_image(task):
            return _of_image(models, task, asked, record)
        assert reads_text(task)
        words, output = task.unseen_words(record.source_text), _output(models, task, asked)
        unseen = None if words is None else tuple(words)
        if task.info.writes not in PIECES:
            return ForwardPass(record, output, unseen=unseen)
        score_TV = scores(replace(seen, run=lambda: hidden_TD))  # reuse what is already computed
        said, shares = candidates(task, score_TV), probabilities(seen, score_TV)
        branch = seen.written_ids if writes_text(task) else None
        own = branch is not None and asked.target is None and asked.branch is None
        told = [found for found in shares or () if found is not None]
        confidence, unsure = outputs.doubt(task, told) if own else (None, None)
    return ForwardPass(record, output, said, shares, branch, unseen=unseen, confidence=confidence, unsure=unsure)


def _record_finite(seen: Sequence[ModelInputs], run: Callable[[], Tensor]) -> tuple[Tensor, list[AttentionRecord]]:
    """As :func:`~regard.inspection.forward.record.record_pass`; a RegardError for NaN or infinite numbers."""
    hidden_TD, records = record_pass(seen, run)
    if not hidden_TD.isfinite().all():
        raise RegardError(NO_NUMBERS, "model")
    return hidden_TD, records


def _of_image(models: Models, task: ImageClassification, asked: Request, record: AttentionRecord) -> ForwardPass:
    image, cut = pixels_of(models, task, asked), task.cut
    grid = cut.shape.height // cut.patch, cut.shape.width // cut.patch
    number = asked.image.number if asked.image else None
    label = None if number is None else models.gallery.label(task, number)
    return ForwardPass(record, outputs.classes(task, image), pixels=shown_pixels(task, image), grid=grid, label=label)


def _output(models: Models, task: Task, asked: Request) -> outputs.Output:
    """The model's own output, regardless of a forced target."""
    if task.info.writes == "text":
        return {"kind": "text", "text": prepare_search(task, asked.text, 1).text(greedy_output(models, asked))}
    return outputs.OF_TEXTS[task.info.writes](task, asked.text)


def inputs_of(models: Models, asked: Request) -> ModelInputs:
    """The requested inputs; a missing target is decoded from the model with the requested ablations.

    Raises:
        UsageError: it is not what this model reads or writes, or has nothing of the kind that is to be taken away.
        RegardError: it is empty or too long.
    """
    task = models.load_for(asked).task
    with asked.changes.ablations.apply(task.recipe.model):
        if reads_image(task):
            return image_inputs(task, pixels_of(models, task, asked))
        if asked.image is not None:
            raise UsageError("this model reads texts", "image")
        asked = fit_request(models, asked).asked
        target = asked.branch if asked.target is None else asked.target
        if target is None and task.info.writes == "text":
            target = greedy_output(models, asked)
        return text_inputs(task, asked.text, target)


def greedy_output(models: Models, asked: Request) -> tuple[int, ...]:
    """The pieces of the model's own greedy output."""
    loaded = models.load_for(asked)
    return models.written.get(
        (loaded.key, asked.own), lambda: beam_search(prepare_search(loaded.task, asked.text, 1), 1)[0].tokens
    )


def pixels_of(models: Models, task: ImageClassification, asked: Request) -> NDArray[np.int64]:
    """The pixel values of the requested image, height × width × channels.

    Raises:
        UsageError: there is none.
        RegardError: it is not of the size the model reads.
    """
    if asked.image is None:
        raise UsageError("this model reads images: name one by its number, or give its pixels", "image")
    if asked.image.number is not None:
        return models.gallery.image(task, asked.image.number)
    (drawn,) = task.images([np.array(asked.image.pixels, np.int64)])
    return drawn


def shown_pixels(task: ImageClassification, pixels: NDArray[np.int64]) -> NDArray[np.uint8]:
    """The pixels of images as the page shows them, from 0 to 255."""
    return bytes_of(pixels / task.cut.scale.largest)


def bytes_of(share: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Numbers from 0 to 1 quantised to 0 to 255, for pictures; the error is at most half a step."""
    return np.rint(np.clip(share, 0, 1) * 255).astype(np.uint8)


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


@dataclass(frozen=True)
class TextExample:
    """A text and what is written, forced.

    Args:
        source: what the model reads, not empty.
        target: what it writes; ``None``: its own greedy output, or nothing.
    """

    source: str
    target: str | None = None


def record_texts(task: Task, texts: Sequence[TextExample]) -> list[tuple[AttentionRecord, bool]]:
    """The attention weights of every text, as :func:`~regard.inspection.forward.record.record` gives them.

    Texts without a target are written to by a greedy search over several at once. Of a text that is longer than the
    model reads it is a part that is recorded, the one that the page shows first.

    Args:
        task: a loaded model of texts.
        texts: none of them empty, and at most :data:`TEXTS`.

    Returns:
        Of each text its record, and whether that is of a part.

    Raises:
        UsageError: a target for a model that writes none.
        RegardError: a text is empty, or the model computes NaN or infinite values.
    """
    cut = [WindowedRequest.of(task, one.source, one.target) for one in texts]
    seen = _inputs(task, [one.asked for one in cut])
    records = chain.from_iterable(map(_records, _groups(task, seen)))
    return [(record, bool(one.label)) for one, record in zip(cut, records, strict=True)]


def _inputs(task: Task, texts: Sequence[Request]) -> list[ModelInputs]:
    """The inputs of each text; what the model writes itself is searched for in one batch."""
    if not writes_text(task):
        return [text_inputs(task, one.text, one.target) for one in texts]
    own = [number for number, one in enumerate(texts) if one.target is None]
    sources = [text_inputs(task, texts[number].text, ()).read_ids for number in own]
    written = dict(zip(own, greedy_outputs(task, sources), strict=True))
    return [text_inputs(task, one.text, written.get(number, one.target)) for number, one in enumerate(texts)]


def _groups(task: Task, seen: Sequence[ModelInputs]) -> Iterator[list[ModelInputs]]:
    """Consecutive texts whose weights fit into memory together."""
    every = sum(map(prod, task.recipe.model.attention.values()))
    group: list[ModelInputs] = []
    room = 0.0
    for one in seen:
        size = every * max(len(one.source), len(one.target)) ** 2
        if group and room + size > WEIGHTS:
            yield group
            group, room = [], 0.0
        group.append(one)
        room += size
    if group:
        yield group


def _records(group: Sequence[ModelInputs]) -> list[AttentionRecord]:
    """The records of one pass over several texts."""
    from regard.data.batches.batch import pack_sources
    from regard.models.captured_attention import pass_over

    task = group[0].task
    run: Callable[[], Tensor]
    if writes_text(task):
        targets = [[task.symbols.start, *one.written_ids[:-1]] for one in group]
        run = pass_over(task.model, [one.read_ids for one in group], targets)
    else:
        assert has_one_stack(task)
        given = task.inputs(pack_sources([np.array(one.read_ids, np.int64) for one in group]))
        run = partial(hidden_states, task, given)
    return _record_finite(group, run)[1]

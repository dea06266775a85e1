"""Attention records of many texts, several in one forward pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.inspection.forward.inputs import ModelInputs, greedy_outputs, hidden_states, text_inputs
from regard.inspection.forward.record import AttentionRecord
from regard.inspection.forward.text_windows import WindowedRequest
from regard.inspection.payload import NO_NUMBERS
from regard.system.errors import RegardError
from regard.tasks.kinds import has_one_stack, writes_text

if TYPE_CHECKING:
    from torch import Tensor

    from regard.tasks.protocols import Task

TEXTS = 32
"""Most texts in one pass."""
WEIGHTS = 1 << 23
"""Most attention weights in one pass, about; a longer text has one of its own."""


@dataclass(frozen=True)
class TextExample:
    """A text and what is written, forced.

    Args:
        source: what the model reads, not empty.
        target: what it writes; ``None``: its own greedy output, or nothing.
    """

    source: str
    target: str | None = None


@dataclass(frozen=True)
class TextRecord:
    """A text's record; ``cut``: whether it is of a part, because the text is longer than the model reads."""

    record: AttentionRecord
    cut: bool


def record_texts(task: Task, texts: Sequence[TextExample]) -> Iterator[TextRecord]:
    """The attention weights of every text, in order, as :func:`~regard.inspection.forward.record.record` gives them.

    Texts without a target are written to by a greedy search over several at once. Of a text that is longer than the
    model reads it is a part that is recorded, the one that the page shows first.

    Args:
        task: a loaded model of texts.
        texts: none of them empty.

    Raises:
        UsageError: a target for a model that writes none.
        RegardError: a text is empty, or the model computes NaN or infinite values.
    """
    for begin in range(0, len(texts), TEXTS):
        cut = [WindowedRequest.of(task, one.source, one.target) for one in texts[begin : begin + TEXTS]]
        seen = _inputs(task, [(one.asked.text, one.asked.target) for one in cut])
        there = 0
        for group in _groups(task, seen):
            for record in _records(group):
                yield TextRecord(record, bool(cut[there].cut_values))
                there += 1


def _inputs(task: Task, texts: Sequence[tuple[str, str | None]]) -> list[ModelInputs]:
    """The inputs of each text; what the model writes itself is searched for in one batch."""
    if not writes_text(task):
        return [text_inputs(task, text, target) for text, target in texts]
    own = [number for number, (_, target) in enumerate(texts) if target is None]
    sources = [text_inputs(task, texts[number][0], ()).read_ids for number in own]
    written = dict(zip(own, greedy_outputs(task, sources), strict=True))
    return [text_inputs(task, text, written.get(number, target)) for number, (text, target) in enumerate(texts)]


def _groups(task: Task, seen: Sequence[ModelInputs]) -> Iterator[list[ModelInputs]]:
    """Consecutive texts whose weights fit into memory together."""
    sizes = task.recipe.model.attention
    every = sum(map(prod, sizes.values()))
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


def _records(group: Sequence[ModelInputs]) -> Iterator[AttentionRecord]:
    """The records of one pass over several texts."""
    from regard.models.captured_attention import capture_layers

    task, hidden = group[0].task, list[Any]()
    run = _run(group)
    found = capture_layers(
        task.model, task.recipe.model.family, lambda: hidden.append(run()), [len(one.target) for one in group]
    )
    if not hidden[0].isfinite().all():
        raise RegardError(NO_NUMBERS, "model")
    for number, one in enumerate(group):
        weights = {
            kind: [layer[number].float().cpu().numpy() for layer in layers] for kind, layers in found.items() if layers
        }
        yield AttentionRecord(one.source_text, one.target_text, one.source, one.target, one.written, weights)


def _run(group: Sequence[ModelInputs]) -> Any:
    """A function that runs the pass: ``hidden_TD`` of all texts end to end."""
    from regard.data.batches.batch import pack_sources
    from regard.models.captured_attention import pass_over

    task = group[0].task
    if writes_text(task):
        start = task.symbols.start
        targets = [[start, *one.written_ids[:-1]] for one in group]
        return pass_over(task.model, [one.read_ids for one in group], targets)
    assert has_one_stack(task)
    given = task.inputs(pack_sources([np.array(one.read_ids, np.int64) for one in group]))

    def run() -> Tensor:
        return hidden_states(task, given)

    return run

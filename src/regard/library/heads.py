"""What each head does over many texts or images, of a public model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from regard.inspection.forward.head_statistics import head_statistics
from regard.inspection.forward.passes import TextExample
from regard.inspection.pictures.head_table import Estimate, HeadSummary, HeadTable
from regard.inspection.questions.heads import TextCounts, count_images, count_texts, metrics_of
from regard.inspection.requests import UNCHANGED, AblationRequest
from regard.system.errors import RegardError, UsageError
from regard.tasks.classification.pairs import split_pair
from regard.tasks.kinds import reads_image
from regard.tasks.protocols import Task
from regard.text.counts import counted

if TYPE_CHECKING:
    from regard.tasks.images.classifier import Image, ImageClassification

__all__ = ["Estimate", "HeadSummary", "HeadTable", "head_table"]


def head_table(
    task: Task,
    given: Iterable[Any],
    targets: Iterable[str] | None = None,
    changes: AblationRequest = UNCHANGED,
    done: Callable[[], object] = lambda: None,
) -> HeadTable:
    """What each head of a loaded model does over texts or images.

    Args:
        task: a model that has attention.
        given: texts, at least one, none of them empty; or images of the size the model reads.
        targets: what is written, line by line, forced.
        changes: what the model does without.
        done: called after each text or image.

    Raises:
        UsageError: there are no texts or images, as many targets as texts are missing, or a text is not the two that
            the model reads.
        RegardError: a text is empty, an image is of another size, or the model has no attention.
    """
    counted = []
    for one in _images(task, given, targets, changes) if reads_image(task) else _texts(task, given, targets, changes):
        counted.append(one)
        done()
    found = head_statistics([one.counts for one in counted], metrics=metrics_of(task))
    return HeadTable.build(found, len(counted), sum(one.cut for one in counted))


def _images(
    task: ImageClassification, given: Iterable[Image], targets: object, changes: AblationRequest
) -> Iterator[TextCounts]:
    if targets is not None:
        raise UsageError("this model reads images and writes no text", "targets")
    if isinstance(given, str):
        raise UsageError("expected several images, not one", "texts")
    images = list(given)
    if not images:
        raise UsageError("is empty; give an image or more", "texts")
    return count_images(task, task.images(images), changes)


def _texts(
    task: Task, texts: Iterable[object], targets: Iterable[object] | None, changes: AblationRequest
) -> Iterator[TextCounts]:
    sources = _list(texts, "texts")
    written = None if targets is None else _list(targets, "targets")
    if not sources:
        raise UsageError("is empty; give a text or more", "texts")
    if written is not None and len(written) != len(sources):
        raise UsageError(f"{counted(len(written), 'target')} for {counted(len(sources), 'text')}", "targets")
    if written is not None and task.info.writes != "text":
        raise UsageError("this model reads a text and writes none", "targets")
    for number, text in enumerate(sources):
        if not text.strip():
            raise RegardError("is empty", f"texts[{number}]")
        if task.info.texts > 1:
            split_pair(text, f"texts[{number}]")
    every = (TextExample(text, written[number] if written else None) for number, text in enumerate(sources))
    pairs = list(dict.fromkeys(every))  # the same text twice makes nothing surer
    return count_texts(task, pairs, changes)


def _list(texts: Iterable[object], name: str) -> list[str]:
    if isinstance(texts, str):
        raise UsageError("expected several texts, not one", name)
    given = list(texts)
    found = [text for text in given if isinstance(text, str)]
    if len(found) < len(given):
        raise UsageError("expected texts", name)
    return found

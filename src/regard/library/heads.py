"""What each head does over many texts, of a public model."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from regard.explore.forward.head_statistics import head_statistics
from regard.explore.forward.record_batches import TextExample
from regard.explore.pictures.head_table import Estimate, HeadSummary, HeadTable
from regard.explore.questions.heads import count_texts
from regard.explore.requests import UNCHANGED, AblationRequest
from regard.system.errors import RegardError, UsageError
from regard.tasks.classification.pairs.classifier import split_pair
from regard.tasks.protocols import Task

__all__ = ["Estimate", "HeadSummary", "HeadTable", "head_table"]


def head_table(
    task: Task,
    texts: Iterable[str],
    targets: Iterable[str] | None = None,
    changes: AblationRequest = UNCHANGED,
    done: Callable[[], object] = lambda: None,
) -> HeadTable:
    """What each head of a loaded model does over texts.

    Args:
        task: a model of texts that has attention.
        texts: at least one, none of them empty; ``targets``: what is written, line by line, forced.
        changes: what the model does without.
        done: called after each text.

    Raises:
        UsageError: there are no texts, as many targets as texts are missing, the model reads images, or a text is not
            the two that the model reads.
        RegardError: a text is empty, or the model has no attention.
    """
    sources = _list(texts, "texts")
    written = None if targets is None else _list(targets, "targets")
    if not sources:
        raise UsageError("is empty; give a text or more", "texts")
    if written is not None and len(written) != len(sources):
        raise UsageError(f"{len(written):,} targets for {len(sources):,} texts", "targets")
    if written is not None and task.info.writes != "text":
        raise UsageError("this model reads a text and writes none", "targets")
    for number, text in enumerate(sources):
        if not text.strip():
            raise RegardError("is empty", f"texts[{number}]")
        if task.info.texts > 1:
            split_pair(text, f"texts[{number}]")
    every = (TextExample(text, written[number] if written else None) for number, text in enumerate(sources))
    pairs = list(dict.fromkeys(every))  # the same text twice makes nothing surer
    counted = []
    for one in count_texts(task, pairs, changes):
        counted.append(one)
        done()
    found = head_statistics([one.counts for one in counted])
    return HeadTable.build(found, len(counted), sum(one.cut for one in counted))


def _list(texts: Iterable[str], name: str) -> list[str]:
    if isinstance(texts, str):
        raise UsageError("expected several texts, not one", name)
    found = list(texts)
    if not all(isinstance(text, str) for text in found):
        raise UsageError("expected texts", name)
    return found

"""What each head does over many texts or images, of a public model, as a table: values and terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from html import escape
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from regard.inspection.forward.head_functions import OF_TEXTS, HeadMetrics
from regard.inspection.forward.head_statistics import EXCESS, FEWEST, HeadStatistics, head_statistics
from regard.inspection.forward.passes import TextExample
from regard.inspection.forward.record import TITLES, Kind
from regard.inspection.questions.heads import TextCounts, columns, count_images, count_texts, metrics_of
from regard.inspection.requests import UNCHANGED, AblationRequest
from regard.system.errors import RegardError, UsageError
from regard.tasks.classification.pairs import split_pair
from regard.tasks.kinds import reads_image
from regard.tasks.protocols import Task
from regard.text.counts import counted

if TYPE_CHECKING:
    from regard.tasks.images.classifier import Image, ImageClassification

SHORT = {
    "previous": "prev", "next": "next", "itself": "self", "diagonal": "place", "first": "first", "end": "end",
    "punctuation": "punct", "same_word": "same", "antecedent": "antec", "distance": "dist", "entropy": "bits",
    "same_patch": "self", "neighbours": "near", "row": "row", "column": "col", "class_token": "class",
}  # fmt: skip
"""Titles of narrow columns; the rest of the table is not in a terminal."""
LEGEND = (
    "Shares of attention in %, over the queries that have such a key, with 95 % intervals by resampling {of}. "
    f"*: beyond its interval more than {100 * EXCESS:.0f} points above chance, which is every visible key alike. "
    "dist: mean distance in {unit}; bits: entropy. Where a head attends is no proof of what it is for."
)


@dataclass(frozen=True)
class Estimate:
    """A mean over queries, with its 95 % interval over texts or images.

    Args:
        mean: a share of attention from 0 to 1; of ``distance`` tokens, or pixels of an image; of ``entropy`` bits.
        low, high: of the interval.
        chance: the mean, if every visible key were given the same.
        queries, texts: over how many; a model of images has images for texts.
    """

    mean: float
    low: float
    high: float
    chance: float
    queries: int
    texts: int


@dataclass(frozen=True)
class HeadSummary:
    """What one head does over many texts.

    Args:
        kind: of attention; ``layer``, ``head``: counted from 1.
        function: that names it, a key of ``estimates``; ``None``: no single function.
        rare: functions that hold where there is such a key, which few queries have.
        label: both in words.
        estimates: by name: functions, ranges of distance of texts, ``distance`` and ``entropy``.
    """

    kind: Kind
    layer: int
    head: int
    function: str | None
    rare: tuple[str, ...]
    label: str
    estimates: Mapping[str, Estimate]

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {**asdict(self), "rare": list(self.rare)}


@dataclass(frozen=True, repr=False)
class HeadTable:
    """What each head of a model does over many texts [Clark19, Voita19].

    Args:
        heads: in order of kind, layer and number.
        texts: how many there are, or how many images.
        cut: of how many texts only a part was read, being longer than the model reads.
        metrics: what was counted, of texts or of images.
    """

    heads: tuple[HeadSummary, ...]
    texts: int
    cut: int = 0
    metrics: HeadMetrics = OF_TEXTS

    def __len__(self) -> int:
        return len(self.heads)

    def __iter__(self) -> Iterator[HeadSummary]:
        return iter(self.heads)

    def __repr__(self) -> str:
        named = sum(head.function is not None for head in self.heads)
        return f"<HeadTable of {counted(len(self), 'head')} over {self._many}, {named} with a function>"

    @property
    def _many(self) -> str:
        return counted(self.texts, self.metrics.of.removesuffix("s"))

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of attention."""
        return tuple(dict.fromkeys(head.kind for head in self.heads))

    def of(self, kind: Kind, layer: int, head: int) -> HeadSummary:
        """One head, layer and number counted from 1.

        Raises:
            UsageError: there is no such head.
        """
        for one in self.heads:
            if (one.kind, one.layer, one.head) == (kind, layer, head):
                return one
        raise UsageError(f"there is no {kind} head {layer}·{head}; the kinds are {', '.join(self.kinds)}", "head")

    def rows(self) -> list[dict[str, object]]:
        """A flat row for each head and estimate, as a data frame takes them."""
        return [
            {"kind": head.kind, "layer": head.layer, "head": head.head, "name": name, **asdict(one)}
            for head in self.heads
            for name, one in head.estimates.items()
        ]

    def table(self) -> str:
        """The table as text, 80 columns wide where the labels allow."""
        parts = [line for kind in self.kinds for line in (*self._lines(kind), "")]
        legend = LEGEND.format(of=self.metrics.of, unit=self.metrics.measures["distance"])
        few = "" if self.texts >= FEWEST else f" No head is named by fewer than {FEWEST} {self.metrics.of}."
        cut = (
            f" Of {counted(self.cut, 'text')} only a part was read, being longer than the model reads."
            if self.cut
            else ""
        )
        return "\n".join([*parts, *textwrap.wrap(legend + few + cut, 80)])

    def _lines(self, kind: Kind) -> Iterator[str]:
        heads = [head for head in self.heads if head.kind == kind]
        shown = (*self.metrics.functions, *self.metrics.measures)
        names = [name for name in heads[0].estimates if name in shown]
        if not names:
            yield f"{TITLES[kind]} · {self._many}: no query sees more than one key"
            return
        queries = heads[0].estimates["entropy"].queries
        yield f"{TITLES[kind]} · {self._many}, {counted(queries, 'query', 'queries')}"
        yield "head  " + "".join(f"{SHORT[name]:>5} " for name in names) + " attends to"
        chances = (f"{_number(name, heads[0].estimates[name].chance):>5} " for name in names)
        yield ("chance" + "".join(chances)).rstrip()
        for head in heads:
            sure = {head.function, *head.rare}
            cells = (f"{_number(name, head.estimates[name].mean):>5}{'*' if name in sure else ' '}" for name in names)
            yield f"{f'{head.layer}·{head.head}':<6}{''.join(cells)} {_told(head)}".rstrip()

    def _repr_html_(self) -> str:
        """The table, for a notebook; its intervals are in :meth:`rows`."""
        return f"<pre>{escape(self.table())}</pre>"


def _number(name: str, value: float) -> str:
    if isnan(value):
        return "–"
    return f"{value:.1f}" if name in OF_TEXTS.measures else f"{100 * value:.0f}"


def _told(head: HeadSummary) -> str:
    """The function that names the head, or else a rare one, with its interval."""
    name = head.function or next(iter(head.rare), None)
    if name is None:
        return "–"
    return f"{SHORT[name]} {100 * head.estimates[name].low:.0f}–{100 * head.estimates[name].high:.0f} %"


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
    added = []
    for one in _images(task, given, targets, changes) if reads_image(task) else _texts(task, given, targets, changes):
        added.append(one)
        done()
    metrics = metrics_of(task)
    found = head_statistics([one.counts for one in added], metrics=metrics)
    heads = tuple(head for kind, one in found.items() for head in _summaries(kind, one))
    return HeadTable(heads, len(added), sum(one.cut for one in added), metrics)


def _summaries(kind: Kind, found: HeadStatistics) -> Iterator[HeadSummary]:
    """What each head of a kind of attention does."""
    for layer, head in np.ndindex(found.mean_LHF.shape[:2]):
        estimates = {
            name: Estimate(
                float(found.mean_LHF[layer, head, place]),
                float(found.low_LHF[layer, head, place]),
                float(found.high_LHF[layer, head, place]),
                float(found.chance_F[place]),
                int(found.queries_F[place]),
                int(found.texts_F[place]),
            )
            for name, place in columns(found).items()
        }
        function, rare = found.function(layer, head), tuple(found.rare_functions(layer, head))
        yield HeadSummary(kind, layer + 1, head + 1, function, rare, found.label(layer, head), estimates)


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

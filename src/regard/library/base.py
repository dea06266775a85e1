"""What all public models share: loading, description, ablations, and the questions that the page asks."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, replace
from functools import wraps
from html import escape
from inspect import getattr_static
from pathlib import Path
from types import FunctionType, GeneratorType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from regard.config import Recipe
from regard.config.families import Model as Section
from regard.inspection.folders.facts import positions_of
from regard.inspection.folders.models import Models
from regard.inspection.forward.record import Kind
from regard.inspection.forward.text_windows import fit_request
from regard.inspection.questions.attribution import PASSES, Method
from regard.inspection.questions.export import describe_changes
from regard.inspection.requests import UNCHANGED, AblationRequest, Flag, Heads, Request, question, read
from regard.library.attention import Attention, attention_of
from regard.library.attribution import Attribution, OutputRequest, attribution
from regard.library.heads import HeadTable, head_table
from regard.models.presets import count_parameters
from regard.system import disk
from regard.system.errors import RegardError, UsageError
from regard.tasks import model_folder
from regard.tasks.engine import give_engine, share_engine
from regard.tasks.kinds import reads_image, translates
from regard.tasks.model_path import CARD, finished_folder, weights_sha256
from regard.tasks.protocols import Task
from regard.tasks.text.precisions import Wanted
from regard.tasks.text.task import BETWEEN, BaseTask
from regard.tasks.training.model_writer import SCORES, size_line
from regard.text.counts import counted
from regard.text.languages import UNKNOWN

LABELS = 12
"""Most labels named."""
_SECTION = re.compile(rf"^## {SCORES}\n\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
_SIGNATURE = re.compile(r" \([^()]*`[^`]*`[^()]*\)|[.:]$")
_CLASSES: dict[type[object], Callable[..., Model]] = {}
"""The public class of each task's class."""
_RUNNING: ContextVar[tuple[int, ...]] = ContextVar("running", default=())
"""The models whose ablations are applied already."""
Input = str | tuple[str, str] | NDArray[np.generic]
"""A text, two texts, or the pixel values of an image."""


@dataclass(frozen=True)
class Summary:
    """The description of a model.

    Args:
        title: the task, as in "A translator"; ``languages``: codes, of a translator.
        sizes: family, parameters, layers.
        labels: of a classifier or tagger.
        scores: lines of its card on the validation data; empty if none are known.
        changes: its ablations as sentences; empty if there are none.
        folder: its name.
    """

    title: str
    languages: str
    sizes: str
    labels: tuple[str, ...]
    scores: tuple[str, ...]
    changes: str
    folder: str

    @classmethod
    def of(cls, task: Task, folder: Path, changes: AblationRequest) -> Summary:
        """The description of a loaded task and its folder."""
        section, text = task.recipe.model, task.recipe.text
        known = task.info.learns_from == "pairs" and UNKNOWN not in (text.source_language, text.target_language)
        count = count_parameters(task.model)
        return cls(
            task.info.noun.capitalize(),
            f"{text.source_language} → {text.target_language}" if known else "",
            f"{section.info.noun}, {count:,} parameters, {size_line(section)}",
            tuple(getattr(task.assets, "labels", ())),
            card_scores(folder),
            describe_changes(Request(changes=changes)),
            folder.name,
        )

    @property
    def line(self) -> str:
        """All in one line."""
        scores = "; ".join(_SIGNATURE.sub("", score) for score in self.scores)
        parts = [self.sizes, self._labels and f"labels {self._labels}", scores, self.changes.rstrip(".").lower()]
        head = f"{self.folder!r} {self.languages}".strip()
        return f"{head}: {'; '.join(part for part in parts if part)}"

    @property
    def html(self) -> str:
        """A small table."""
        title = f"{self.title}: {self.languages}" if self.languages else self.title
        named = {"Folder": self.folder, "Sizes": self.sizes, "Labels": self._labels}
        rows = [(name, escape(value)) for name, value in named.items() if value]
        rows += [("Scores", "<br>".join(map(escape, self.scores)))] if self.scores else []
        rows += [("Changes", escape(self.changes))] if self.changes else []
        cells = "".join(f"<tr><th style='text-align:left'>{name}</th><td>{value}</td></tr>" for name, value in rows)
        return f"<table><caption>{escape(title)}</caption>{cells}</table>"

    @property
    def _labels(self) -> str:
        more = len(self.labels) - LABELS
        return ", ".join([*self.labels[:LABELS], *([f"… {more:,} more"] if more > 0 else [])])


class Model:
    """A trained model of any task, as :func:`regard.load` gives it; each task has its own class.

    Args:
        recipe: everything that decided its training.
        assets: tokenizers and labels.
        model: the torch module; ablations do not apply to direct calls of it.
    """

    recipe: Recipe
    assets: Any
    model: Any
    _models: Models | None = None
    _weights = ""
    _changes = UNCHANGED

    def __init_subclass__(cls) -> None:
        """Register a task's class, and let its methods run with the ablations of :meth:`without`."""
        super().__init_subclass__()
        _CLASSES.setdefault(cls.__bases__[0], cls)
        for name in dir(cls):
            found = getattr_static(cls, name)
            if isinstance(found, FunctionType) and not name.startswith("_") and name not in vars(Model):
                setattr(cls, name, _with_ablations(found))

    @classmethod
    def load(cls, folder: Path | str, device: str | None = None, *, precision: Wanted = "auto") -> Self:
        """Load a model of this class.

        Args:
            folder: what ``regard train`` wrote, or ``regard.train``.
            device: ``cpu``, ``cuda``, ``cuda:1`` …; default: a GPU if there is one.
            precision: of the engine, which computes on a processor: fp32, bf16 or int8; ``auto``: the fastest that
                ``regard pack`` found to keep the score, else fp32.

        Raises:
            UsageError: it is a model of another task, or torch computes it, which has no such precision.
            RegardError: it is no model folder, or a file of it is damaged.
        """
        found = opened(model_folder.load(folder, device), folder, precision)
        if not isinstance(found, cls):
            raise UsageError(f"is a {type(found).__name__}, no {cls.__name__}", str(folder))
        return found

    @property
    def summary(self) -> Summary:
        """What the model is: title, sizes, labels, scores, ablations."""
        return Summary.of(self._task, self._explored.folders[0].path, self._changes)

    def __repr__(self) -> str:
        if self._models is None:
            return super().__repr__()
        return f"<{type(self).__name__} {self.summary.line}>"

    def _repr_html_(self) -> str:
        """The description as a table, for a notebook."""
        return self.summary.html

    def with_adapter(self, folder: Path | str) -> Self:
        """The model that an adapter of this one makes of it; the weights that it leaves as they are are shared.

        Change no weight in place afterwards.

        Args:
            folder: what ``regard train`` wrote with ``adapt.rank``, from this very model.

        Raises:
            UsageError: it is a model of another task.
            RegardError: it is no adapter of this model, or a file of it is damaged.
        """
        base = self._task
        weights = weights_sha256(finished_folder(self._explored.folders[0].path))
        found = opened(model_folder.load_adapter(folder, base, weights), folder, getattr(base, "precision", "auto"))
        if not isinstance(found, type(self)):
            raise UsageError(f"is a {type(found).__name__}, no {type(self).__name__}", str(folder))
        share_engine(found, base)  # type: ignore[arg-type]  # public models of a task are its tasks
        return found

    def without(
        self,
        *,
        heads: Sequence[tuple[Kind, int, int]] = (),
        positions: bool = False,
        scaling: bool = False,
        mask: bool = False,
    ) -> Self:
        """The same model with parts switched off, in all its methods; the weights are shared.

        Args:
            heads: each as kind of attention, layer and head, counted from 1: ``("cross", 3, 1)``.
            positions: without positional encodings; ``scaling``: without the division of scores by √d_k;
                ``mask``: without the mask of later tokens.

        Raises:
            UsageError: the model has no such part.
        """
        here, asked = self._changes, _ablation_request(tuple(heads), positions, scaling, mask)
        _refuse_absent(self.recipe.model, asked)
        found = copy(self)
        found._changes = AblationRequest(
            tuple(sorted({*here.off, *asked.off})),
            here.positions and asked.positions,
            here.scaling and asked.scaling,
            here.mask and asked.mask,
        )
        return found

    def attention(
        self,
        text: Input,
        target: str | None = None,
        kind: Kind | None = None,
        *,
        window: int | None = None,
    ) -> Attention:
        """The attention weights of one forward pass, those that the page shows.

        Args:
            text: what is read; for a classifier of pairs two texts; for a model of images an array height × width
                (× channels) of pixel values, or a line.
            target: what a translator or a text-to-text model writes, forced; default: its own greedy output.
            kind: ``encoder``, ``decoder``, ``cross`` or ``pool``; default: ``cross`` if there is one, else the first.
            window: which part of a text longer than the model reads, from 1; default: the page's, and a warning.

        Raises:
            UsageError: the model has no such kind of attention, or writes no text.
            RegardError: the text is empty, an image is of another size, or the model has no attention.
        """
        return attention_of(self._explored, self._request(text, target, window), kind)

    def heads(self, texts: Iterable[Input], targets: Iterable[str] | None = None) -> HeadTable:
        """What each head does over many texts: how much it attends to the previous token, an equal word, marks …

        Of a model of images over many images: to the same patch, its neighbours, row and column, the class token.

        The shares are means over queries, with 95 % intervals over texts, beside what chance would give
        [Clark19, Voita19]. Antecedents are known of the sentences of the demonstration. Several texts are read at once;
        one that is longer than the model reads is read in part, and counted in ``cut``.

        Args:
            texts: a list or any iterable of texts, none of them empty; or of images, as of :meth:`attention`.
            targets: what a translator or a text-to-text model writes to each, forced; default: its greedy output.

        Raises:
            UsageError: there are no texts or images, or another number of targets.
            RegardError: a text is empty, an image is of another size, or the model has no attention.
        """
        self._explored  # a model made by hand has no folder  # noqa: B018
        given = texts if isinstance(texts, str) else (self._read(text) for text in texts)
        return head_table(self._task, given, targets, self._changes)

    def attribute(
        self,
        text: Input,
        target: str | None = None,
        against: str | None = None,
        *,
        word: str | int | None = None,
        method: Method = "gradient_x_input",
        passes: int = PASSES,
        window: int | None = None,
    ) -> Attribution:
        """How much each token contributes to an output, or to one output instead of another [Yin22].

        Args:
            text: what is read, as of :meth:`attention`.
            target: the output to explain. Of a translator or a text-to-text model a whole text, default: its own;
                of a language model the continuation, default: the most probable piece; of a model of masked words what
                fills the gap; of a classifier or a tagger the label; default: the most probable.
            against: another output, whose score is taken off. Where two written texts differ first, it is the piece
                there instead of the other, after the same beginning.
            word: of what is written, tagged, or read by a language model: the word to explain (its last occurrence), or
                the index of a token; ``against`` is then another word in its place.
            method: ``gradient_x_input`` [Shrikumar16], to first order, as on the page; or ``integrated_gradients``
                [Sundararajan17], whose shares add up to the score less that of embeddings of zero.
            passes: most passes of integrated gradients; fewer where ``delta``, their error, is small already.
            window: as of :meth:`attention`.

        Raises:
            UsageError: the model has no such output.
            RegardError: the text is empty or too long, or an image is of another size.
        """
        asked = self._request(text, target if self.recipe.info.writes == "text" else None, window)
        return attribution(OutputRequest(self._explored, asked, target, against, word), method, passes)

    def _request(self, text: Input, target: str | None, window: int | None) -> Request:
        """What is asked of the model; a warning where a text is longer than it reads, and no part of it is named.

        Raises:
            UsageError: it does not fit the model.
            RegardError: an image is not of the size that the model reads.
        """
        models, task, given = self._explored, self._task, self._read(text)
        asked: dict[str, object]
        if reads_image(task):
            if target is not None or window is not None:
                raise UsageError("is not for a model of images", "window" if target is None else "target")
            if not isinstance(given, str | np.ndarray):
                raise UsageError("expected an array of pixel values, height × width (× channels)", "text")
            asked = {"image": {"pixels": task.images([given])[0].ravel().tolist()}}
        else:
            between = task.direction if translates(task) and task.assets.languages else None
            asked = {"text": given, "target": target, "window": window, "between": between}
        if target is not None and task.info.writes != "text":
            raise UsageError("this model reads a text and writes none", "target")
        found = replace(read(Request, asked), weights=self._weights, changes=self._changes)
        cut = fit_request(models, found)
        if cut.label and window is None:
            warnings.warn(f"{cut.label} window= gives another.", stacklevel=3)
        return found

    def _read(self, given: Input) -> str | NDArray[np.generic]:
        """Two texts as the one that a classifier of pairs reads; anything else as it is."""
        if not isinstance(given, tuple):
            return given
        if self.recipe.info.texts < 2 or len(given) != 2:
            raise UsageError(f"expected {self.recipe.info.texts}, not a tuple of {counted(len(given), 'text')}", "text")
        return BETWEEN.join(given)

    @property
    def _task(self) -> Task:
        """Itself as its task."""
        assert isinstance(self, BaseTask)
        return self

    @property
    def _explored(self) -> Models:
        """The model as the page has it."""
        if self._models is None:
            raise UsageError("was made by hand; regard.load opens what can be looked at", type(self).__name__)
        return self._models

    @contextmanager
    def _ablated(self) -> Iterator[None]:
        """While the context is open, the model runs with its ablations; once, however deep the calls."""
        running = _RUNNING.get()
        if self._changes == UNCHANGED or id(self) in running:
            yield
            return
        token = _RUNNING.set((*running, id(self)))
        try:
            with self._changes.ablations.apply(self.recipe.model):
                yield
        finally:
            _RUNNING.reset(token)


def opened(task: Task, folder: Path | str, precision: Wanted = "auto") -> Model:
    """The public model of a loaded task."""
    kind = type(task)
    public = _CLASSES.get(kind) or type(kind.__name__, (kind, Model), {})
    found: Any = public(task.recipe, task.assets, task.model)
    give_engine(found, folder, precision)
    found._models = Models([folder])
    found._weights = found._models.hold(task).weights
    return found


@question
def _ablation_request(heads: Heads, positions: Flag, scaling: Flag, mask: Flag) -> AblationRequest:
    return AblationRequest(heads, not positions, not scaling, not mask)


def _refuse_absent(section: Section, asked: AblationRequest) -> None:
    """Raise a UsageError for a part that models of a section do not have; it says which they have."""
    parts = {
        "positions": positions_of(section) != "none",
        "scaling": section.divides,
        "mask": "decoder" in section.attention,
    }
    heads = [
        f"{counted(layers, 'layer')} of {counted(count, 'head')} of {kind} attention"
        for kind, (layers, count) in section.attention.items()
    ]
    *most, last = [*heads, *(name for name, has in parts.items() if has)] or ["none of these parts"]
    there = f"this model has {' and '.join([', '.join(most), last] if most else [last])}"
    for kind, layer, head in asked.off:
        layers, count = section.attention.get(kind, (0, 0))
        if layer > layers or head > count:
            raise UsageError(f"there is no head {head} in layer {layer} of {kind}; {there}", "heads")
    for name, has in parts.items():
        if not getattr(asked, name) and not has:
            raise UsageError(f"there is nothing to switch off; {there}", name)


def _with_ablations(function: Callable[..., object]) -> Callable[..., object]:
    """A method that runs with its model's ablations; a generator runs with them between two of its values."""

    def each(model: Model, values: Iterator[object]) -> Iterator[object]:
        while True:
            with model._ablated():
                try:
                    value = next(values)
                except StopIteration:
                    return
            yield value

    @wraps(function)
    def run(self: Model, *given: object, **named: object) -> object:
        with self._ablated():
            found = function(self, *given, **named)
        return each(self, found) if isinstance(found, GeneratorType) else found

    return run


def card_scores(folder: Path) -> tuple[str, ...]:
    """The lines of a model's card on its scores; none if it has no card that can be read."""
    try:
        card = disk.content(folder / CARD, kind="card").decode("utf-8", "replace")
    except (OSError, RegardError):
        return ()
    found = _SECTION.search(card)
    lines = found[1].splitlines() if found else []
    return tuple(line.removeprefix("* ") for line in lines if line.strip() and line[0] != "|")

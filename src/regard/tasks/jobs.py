"""What was given for a task → its job: files opened and looked at, before any time is spent on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from regard.config import Recipe
from regard.data.image_report import look_at_images
from regard.data.images import images, one_shape
from regard.data.label_report import look
from regard.data.labelled import labelled
from regard.data.tag_report import look_at_tags
from regard.data.tagged import tagged
from regard.errors import UsageError
from regard.tasks.asked import Files, refuse_pipes
from regard.tasks.classifying import ClassificationJob
from regard.tasks.image_classifying import ImageJob, batched, refuse_other_sizes, seeming
from regard.tasks.inspection import told_and_refused
from regard.tasks.language_modelling import LanguageModelJob
from regard.tasks.pretrained import Pretrained
from regard.tasks.running_text import running_text
from regard.tasks.segmenting import segmented_anew
from regard.tasks.span_corrupting import SpanCorruptionJob
from regard.tasks.tag_teaching import TaggingJob
from regard.tasks.teaching import Job
from regard.tasks.word_masking import MaskedLmJob

Tell = Callable[[str], None]
Opened = TypeVar("Opened")


class Asked(Protocol):
    """What was asked for."""

    def __call__(self, count: int, seems: Mapping[str, Any] | None = None) -> Recipe:
        """The recipe for so many examples, and for what they seem to be (dotted keys)."""
        ...


@dataclass(frozen=True)
class Given:
    """The files of a task that learns from one kind of them.

    Args:
        train: what is learned from.
        valid: what is validated on, if it is not split off.
        columns: where things stand in them.
        begun: a model to begin from.
    """

    train: Files
    valid: Path | str | None = None
    columns: str | None = None
    begun: Pretrained | None = None

    def corpora(self, opened: Callable[[Path | str, str | None], Opened]) -> tuple[list[Opened], Opened | None]:
        """The corpora of the files, and that to validate on.

        Raises:
            UsageError: no file is given, or one is not there, or can be read only once.
        """
        files = [*self.train, *([self.valid] if self.valid is not None else [])]
        if not self.train:
            raise UsageError("nothing to learn from: give --train FILE")
        for path in files:
            if not Path(path).exists():
                raise UsageError("no such file", str(path))
            if Path(path).is_dir():
                raise UsageError("is a folder; a file is needed", str(path))
        refuse_pipes(files)
        learned = [opened(path, self.columns) for path in self.train]
        return learned, opened(self.valid, self.columns) if self.valid is not None else None


class ReadJob(Job, Protocol):
    """A job that knows its recipe."""

    @property
    def recipe(self) -> Recipe:
        """What the run is made by."""
        ...


def classification(given: Given, asked: Asked, told: Tell, despite_check: bool) -> ClassificationJob:
    """Classification from labelled texts."""
    learned, validation = given.corpora(labelled)
    kind = asked(1).classification.kind
    report = look(learned, kind, {"the validation texts": validation} if validation else None)
    told_and_refused(report, told, despite_check)
    return ClassificationJob(asked(report.pairs), learned, validation, given.begun)


def tagging(given: Given, asked: Asked, told: Tell, despite_check: bool) -> TaggingJob:
    """Tagging from tagged texts."""
    learned, validation = given.corpora(tagged)
    scheme = asked(1).tagging.scheme
    others = {"the validation texts": validation} if validation else None
    report = look_at_tags(learned, None if scheme == "auto" else scheme, others)
    told_and_refused(report, told, despite_check)
    recipe = asked(report.pairs, segmented_anew(asked(1), report.pairs, given.begun))
    return TaggingJob(recipe, learned, validation, given.begun)


def image_classification(given: Given, asked: Asked, told: Tell, despite_check: bool) -> ImageJob:
    """Classification from labelled images."""
    if given.begun:
        raise UsageError("a classifier of images begins from nothing", "--from")
    learned, validation = given.corpora(images)
    shape = one_shape([*learned, *([validation] if validation else [])])
    kind = asked(1, seems := seeming(shape)).classification.kind
    report = look_at_images(learned, kind, {"the validation images": validation} if validation else None)
    told_and_refused(report, told, despite_check)
    recipe = asked(report.pairs, {**seems, **batched(asked(report.pairs, seems))})
    refuse_other_sizes(recipe, shape, learned[0].name)
    return ImageJob(recipe, learned, validation)


def language_model(given: Given, asked: Asked, told: Tell, despite_check: bool) -> LanguageModelJob:
    """Language modelling from running text."""
    return LanguageModelJob(running_text(given, asked, told))


def masked_lm(given: Given, asked: Asked, told: Tell, despite_check: bool) -> MaskedLmJob:
    """Masked words from running text."""
    return MaskedLmJob(running_text(given, asked, told))


def span_corruption(given: Given, asked: Asked, told: Tell, despite_check: bool) -> SpanCorruptionJob:
    """Missing spans from running text."""
    return SpanCorruptionJob(running_text(given, asked, told))


def encoding(given: Given, asked: Asked, told: Tell, despite_check: bool) -> Job:
    """Refused: there is nothing to learn."""
    instead = "teach it as masked-lm, or begin another task from it by --from"
    raise UsageError(f"encoding is for encoders that regard import brings in, not for training; {instead}", "--task")


JOBS: dict[str, Callable[[Given, Asked, Tell, bool], Any]] = {
    "classification": classification,
    "tagging": tagging,
    "image-classification": image_classification,
    "language-model": language_model,
    "masked-lm": masked_lm,
    "span-corruption": span_corruption,
    "encoding": encoding,
}
"""The word ``task`` of a recipe to what makes its job."""

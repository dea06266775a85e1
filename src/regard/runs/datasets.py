"""Opens and checks a task's input files and returns its training job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from regard.config import Recipe
from regard.data.checks.images import check_images
from regard.data.checks.labels import check_labels
from regard.data.checks.tags import check_tags
from regard.data.corpora.images import one_shape, open_images
from regard.data.corpora.labelled import open_labelled
from regard.data.corpora.tagged import open_tagged
from regard.runs.checks import report_and_refuse
from regard.system.errors import UsageError
from regard.tasks.classification.training import ClassificationJob
from regard.tasks.images.training import ImageJob, batch_defaults, refuse_other_sizes, size_defaults
from regard.tasks.input_files import InputFiles
from regard.tasks.language.dataset import running_text
from regard.tasks.language.generator_training import LanguageModelJob
from regard.tasks.language.masked_training import MaskedLmJob
from regard.tasks.language.spans_training import SpanCorruptionJob
from regard.tasks.protocols import TrainingJob
from regard.tasks.tagging.training import TaggingJob
from regard.tasks.text.bpe_dropout import uses_bpe_dropout

Tell = Callable[[str], None]


class RecipeFor(Protocol):
    """The requested recipe."""

    def __call__(self, count: int, seems: Mapping[str, Any] | None = None) -> Recipe:
        """The recipe for n examples and for what the data suggests (dotted keys)."""
        ...


class RecipeJob(TrainingJob, Protocol):
    """A job that knows its recipe."""

    @property
    def recipe(self) -> Recipe:
        """The recipe of the run."""
        ...


def classification(given: InputFiles, asked: RecipeFor, told: Tell, despite_check: bool) -> ClassificationJob:
    """Classification from labelled texts."""
    learned, validation = given.corpora(open_labelled)
    kind = asked(1).classification.kind
    report = check_labels(learned, kind, {"the validation texts": validation} if validation else None)
    report_and_refuse(report, told, despite_check)
    return ClassificationJob(asked(report.pairs), learned, validation, given.begun)


def tagging(given: InputFiles, asked: RecipeFor, told: Tell, despite_check: bool) -> TaggingJob:
    """Tagging from tagged texts."""
    learned, validation = given.corpora(open_tagged)
    scheme = asked(1).tagging.scheme
    others = {"the validation texts": validation} if validation else None
    report = check_tags(learned, None if scheme == "auto" else scheme, others)
    report_and_refuse(report, told, despite_check)
    recipe = asked(report.pairs, uses_bpe_dropout(asked(1), report.pairs, given.begun))
    return TaggingJob(recipe, learned, validation, given.begun)


def image_classification(given: InputFiles, asked: RecipeFor, told: Tell, despite_check: bool) -> ImageJob:
    """Classification from labelled images."""
    if given.begun:
        raise UsageError("a classifier of images begins from nothing", "--from")
    learned, validation = given.corpora(open_images)
    shape = one_shape([*learned, *([validation] if validation else [])])
    kind = asked(1, seems := size_defaults(shape)).classification.kind
    report = check_images(learned, kind, {"the validation images": validation} if validation else None)
    report_and_refuse(report, told, despite_check)
    recipe = asked(report.pairs, {**seems, **batch_defaults(asked(report.pairs, seems))})
    refuse_other_sizes(recipe, shape, learned[0].name)
    return ImageJob(recipe, learned, validation)


def language_model(given: InputFiles, asked: RecipeFor, told: Tell, despite_check: bool) -> LanguageModelJob:
    """Language modelling from running text."""
    return LanguageModelJob(running_text(given, asked, told))


def masked_lm(given: InputFiles, asked: RecipeFor, told: Tell, despite_check: bool) -> MaskedLmJob:
    """Masked words from running text."""
    return MaskedLmJob(running_text(given, asked, told))


def span_corruption(given: InputFiles, asked: RecipeFor, told: Tell, despite_check: bool) -> SpanCorruptionJob:
    """Missing spans from running text."""
    return SpanCorruptionJob(running_text(given, asked, told))


def encoding(given: InputFiles, asked: RecipeFor, told: Tell, despite_check: bool) -> TrainingJob:
    """Refused: there is nothing to learn."""
    instead = "teach it as masked-lm, or begin another task from it by --from"
    raise UsageError(f"encoding is for encoders that regard import brings in, not for training; {instead}", "--task")


JOBS: dict[str, Callable[[InputFiles, RecipeFor, Tell, bool], Any]] = {
    "classification": classification,
    "tagging": tagging,
    "image-classification": image_classification,
    "language-model": language_model,
    "masked-lm": masked_lm,
    "span-corruption": span_corruption,
    "encoding": encoding,
}
"""The word ``task`` of a recipe to what makes its job."""

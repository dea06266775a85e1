"""Opens and checks a task's input files and returns its training job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from regard.config import Recipe
from regard.data.batches.sampler import refuse_weights
from regard.data.checks.labels import ImageScan, LabelScan, report_labels
from regard.data.checks.pairs import PairScan, report_pairs
from regard.data.checks.tags import TagScan, report_tags
from regard.data.corpora.corpus import Corpus, LabelledText, TextPair
from regard.data.corpora.images import one_shape, open_images
from regard.data.corpora.labelled import open_labelled
from regard.data.corpora.scan import DataScan
from regard.data.corpora.tagged import open_tagged
from regard.runs.options import corpora
from regard.system.errors import UsageError
from regard.tasks.classification.training import ClassificationJob
from regard.tasks.images.training import ImageJob, batch_defaults, refuse_other_sizes, size_defaults
from regard.tasks.language.generator_training import LanguageModelJob
from regard.tasks.language.masked_training import MaskedLmJob
from regard.tasks.language.spans_training import SpanCorruptionJob
from regard.tasks.language.training import RunningTextJob, open_text
from regard.tasks.protocols import InputFiles, TrainingJob, refuse_pipes
from regard.tasks.tagging.training import TaggingJob
from regard.tasks.text.preparation import uses_bpe_dropout
from regard.tasks.translation.training import TranslationJob

Tell = Callable[[str], None]


class RecipeFor(Protocol):
    """The requested recipe."""

    def __call__(self, count: int, seems: Mapping[str, Any] | None = None) -> Recipe:
        """The recipe for n examples and for what the data suggests (dotted keys)."""


def scan_pairs(
    learned: Sequence[Corpus[TextPair]], validation: Corpus[TextPair] | None, tell: Tell, despite_check: bool = False
) -> tuple[DataScan[PairScan], int]:
    """Scan parallel corpora, report suspicious data, and refuse data that cannot be learned from; counts the pairs.

    Raises:
        RegardError: something in the data would spoil the model, or cannot be read.
    """
    scans = [PairScan(corpus).run() for corpus in learned]
    held_out = PairScan(validation).run() if validation is not None else None
    drafts = [draft for scan in scans for draft in scan.drafts(0, None)]
    report = report_pairs(scans, {"the validation pairs": held_out} if held_out else {}, drafts)
    report.announce(tell, despite_check)
    return DataScan(scans, held_out), report.pairs


def translation(given: InputFiles, asked: RecipeFor, tell: Tell, despite_check: bool) -> TranslationJob:
    """Translation from sentence pairs."""
    learned = corpora(given.source, given.target, given.pairs, given.columns)
    refuse_pipes([*given.source, *given.target, *given.pairs])
    left, right = ([path] if path else [] for path in (given.valid_source, given.valid_target))
    validation = corpora(left, right)[0] if left or right else None
    refuse_pipes([*left, *right])
    refuse_weights(asked(1).data.weights, len(learned))
    scanned, pairs = scan_pairs(learned, validation, tell, despite_check)
    return TranslationJob(asked(pairs), scanned, tell, despite_check)


def classification(given: InputFiles, asked: RecipeFor, tell: Tell, despite_check: bool) -> ClassificationJob:
    """Classification from labelled texts."""
    learned, validation = given.corpora(open_labelled)
    kind = asked(1).classification.kind
    scanned = DataScan.of(learned, validation, scan=partial(LabelScan[LabelledText], kind=kind))
    report = report_labels(scanned.learned, _validation(scanned, "texts"))
    report.announce(tell, despite_check)
    return ClassificationJob(asked(report.pairs), scanned, pretrained=given.begun)


def tagging(given: InputFiles, asked: RecipeFor, tell: Tell, despite_check: bool) -> TaggingJob:
    """Tagging from tagged texts."""
    learned, validation = given.corpora(open_tagged)
    scheme = asked(1).tagging.scheme
    scanned = DataScan.of(learned, validation, scan=TagScan)
    report = report_tags(scanned.learned, None if scheme == "auto" else scheme, _validation(scanned, "texts"))
    report.announce(tell, despite_check)
    recipe = asked(report.pairs, uses_bpe_dropout(asked(1), report.pairs, given.begun))
    return TaggingJob(recipe, scanned, pretrained=given.begun)


def image_classification(given: InputFiles, asked: RecipeFor, tell: Tell, despite_check: bool) -> ImageJob:
    """Classification from labelled images."""
    if given.begun:
        raise UsageError("a classifier of images begins from nothing", "--from")
    learned, validation = given.corpora(open_images)
    shape = one_shape([*learned, *([validation] if validation else [])])
    kind = asked(1, seems := size_defaults(shape)).classification.kind
    scanned = DataScan.of(learned, validation, scan=partial(ImageScan, kind=kind))
    report = report_labels(scanned.learned, _validation(scanned, "images"))
    report.announce(tell, despite_check)
    recipe = asked(report.pairs, {**seems, **batch_defaults(asked(report.pairs, seems))})
    refuse_other_sizes(recipe, shape, learned[0].name)
    return ImageJob(recipe, scanned)


def running_text(
    job: type[RunningTextJob], given: InputFiles, asked: RecipeFor, tell: Tell, despite_check: bool
) -> RunningTextJob:
    """A task on running text, which has nothing to check."""
    recipe, text, characters = open_text(given, asked, tell)
    return job(recipe, text, characters, pretrained=given.begun)


def encoding(given: InputFiles, asked: RecipeFor, tell: Tell, despite_check: bool) -> TrainingJob:
    """Refused: there is nothing to learn."""
    instead = "teach it as masked-lm, or begin another task from it by --from"
    raise UsageError(f"encoding is for encoders that regard import brings in, not for training; {instead}", "--task")


def _validation(scanned: DataScan[Any], noun: str) -> dict[str, Any]:
    return {f"the validation {noun}": scanned.validation} if scanned.validation else {}


JOBS: dict[str, Callable[[InputFiles, RecipeFor, Tell, bool], TrainingJob]] = {
    "translation": translation,
    "classification": classification,
    "tagging": tagging,
    "image-classification": image_classification,
    "language-model": partial(running_text, LanguageModelJob),
    "masked-lm": partial(running_text, MaskedLmJob),
    "span-corruption": partial(running_text, SpanCorruptionJob),
    "encoding": encoding,
}
"""The word ``task`` of a recipe to what makes its job."""

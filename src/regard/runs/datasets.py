"""Opens and checks a task's input files and returns its training job."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from regard.config import TASKS, Recipe, TaskInfo, import_name
from regard.data.batches.sampler import refuse_weights
from regard.data.checks.labels import ImageScan, LabelScan, TagScan, report_labels, report_tags
from regard.data.checks.pairs import PairScan, report_pairs
from regard.data.corpora.corpus import Corpus, TextPair
from regard.data.corpora.images import one_shape
from regard.data.corpora.scan import DataScan, Scan
from regard.runs.options import corpora
from regard.system.errors import Option, UsageError
from regard.tasks.images.training import batch_defaults, refuse_other_sizes, size_defaults
from regard.tasks.language.training import open_text
from regard.tasks.model_folder import corpus_opener
from regard.tasks.protocols import InputFiles, refuse_pipes
from regard.tasks.text.preparation import uses_bpe_dropout
from regard.tasks.training.base import TrainingJob
from regard.tasks.translation.text_to_text.training import SpansJob
from regard.text.counts import counted

Tell = Callable[[str], None]


JOBS = {
    "translation": "regard.tasks.translation.training:TranslationJob",
    "text-to-text": "regard.tasks.translation.text_to_text.training:TextToTextJob",
    "classification": "regard.tasks.classification.training:ClassificationJob",
    "sentence-pairs": "regard.tasks.classification.training:PairJob",
    "tagging": "regard.tasks.tagging.training:TaggingJob",
    "language-model": "regard.tasks.language.training:LanguageModelJob",
    "masked-lm": "regard.tasks.language.training:MaskedLmJob",
    "image-classification": "regard.tasks.images.training:ImageJob",
}
"""``module:class`` of each task's training job."""


def job_class(task: str) -> type[Any]:
    """The class of a task's training job; imports torch."""
    found: type[Any] = import_name(JOBS[task])
    return found


class RecipeFor(Protocol):
    """The requested recipe."""

    def __call__(self, count: int, seems: Mapping[str, object] | None = None) -> Recipe:
        """The recipe for n examples and for what the data suggests (dotted keys)."""


def scan_pairs(
    learned: Sequence[Corpus[TextPair]],
    validation: Corpus[TextPair] | None,
    tell: Tell,
    despite_check: bool = False,
    processes: Callable[[], int] = lambda: 1,
) -> tuple[DataScan[PairScan], int]:
    """Scan parallel corpora, report suspicious data, and refuse data that cannot be learned from; counts the pairs.

    Raises:
        RegardError: something in the data would spoil the model, or cannot be read.
    """
    scans = [PairScan(corpus).run(processes=processes) for corpus in learned]
    held_out = PairScan(validation).run(processes=processes) if validation is not None else None
    drafts = [draft for scan in scans for draft in scan.drafts(0, None)]
    report = report_pairs(scans, {"the validation pairs": held_out} if held_out else {}, drafts)
    report.announce(tell, despite_check)
    return DataScan(scans, held_out), report.pairs


def _pairs(info: TaskInfo, given: InputFiles, asked: RecipeFor, tell: Tell, despite_check: bool) -> TrainingJob:
    """A task on parallel texts."""
    learned = corpora(given.source, given.target, given.pairs, given.columns)
    refuse_pipes([*given.source, *given.target, *given.pairs])
    left, right = ([path] if path else [] for path in (given.valid_source, given.valid_target))
    validation = corpora(left, right)[0] if left or right else None
    refuse_pipes([*left, *right])
    refuse_weights(asked(1).data.weights, len(learned))
    scanned, pairs = scan_pairs(learned, validation, tell, despite_check, given.processes)
    return job_class(info.name)(asked(pairs), scanned, tell, despite_check)


def _prefixed_pairs(
    info: TaskInfo, given: InputFiles, asked: RecipeFor, tell: Tell, despite_check: bool
) -> TrainingJob:
    """A task on prefixed pairs of texts, of which only the encoding is checked: they may be anything to each other.

    Or on running text, where the recipe says so.
    """
    if asked(1).text_to_text.spans:
        recipe, text, characters = open_text(given, asked, tell)
        return SpansJob(recipe, text, characters, pretrained=given.begun)
    learned, validation = given.corpora(corpus_opener(info.name))
    scanned: DataScan[Scan[Any]] = DataScan.of(learned, validation)
    for note in (note for corpus in (*learned, *([validation] if validation else [])) for note in corpus.notes):
        if note.invalid:
            tell(note.message)
    pairs = sum(scan.count for scan in scanned.learned)
    tell(counted(pairs, "pair"))
    return job_class(info.name)(asked(pairs), scanned, pretrained=given.begun)


def _labels(info: TaskInfo, given: InputFiles, asked: RecipeFor, tell: Tell, despite_check: bool) -> TrainingJob:
    """A task on labelled texts."""
    learned, validation = given.corpora(corpus_opener(info.name))
    first = asked(1)
    scan = partial(LabelScan[Any], kind=first.classification.kind, max_tokens=first.data.max_tokens)
    scanned = DataScan.of(learned, validation, scan=scan)
    report = report_labels(scanned.learned, _validation(scanned, "texts"))
    report.announce(tell, despite_check)
    return job_class(info.name)(asked(report.pairs), scanned, pretrained=given.begun)


def _tags(info: TaskInfo, given: InputFiles, asked: RecipeFor, tell: Tell, despite_check: bool) -> TrainingJob:
    """A task on tagged texts."""
    learned, validation = given.corpora(corpus_opener(info.name))
    scheme = asked(1).tagging.scheme
    scanned = DataScan.of(learned, validation, scan=TagScan)
    report = report_tags(scanned.learned, None if scheme == "auto" else scheme, _validation(scanned, "texts"))
    report.announce(tell, despite_check)
    recipe = asked(report.pairs, uses_bpe_dropout(asked(1), report.pairs, given.begun))
    return job_class(info.name)(recipe, scanned, pretrained=given.begun)


def _images(info: TaskInfo, given: InputFiles, asked: RecipeFor, tell: Tell, despite_check: bool) -> TrainingJob:
    """A task on labelled images."""
    if given.begun:
        raise UsageError(f"{info.noun} begins from nothing", Option("start_from"))
    learned, validation = given.corpora(corpus_opener(info.name))
    shape = one_shape([*learned, *([validation] if validation else [])])
    kind = asked(1, seems := size_defaults(shape)).classification.kind
    scanned = DataScan.of(learned, validation, scan=partial(ImageScan, kind=kind))
    report = report_labels(scanned.learned, _validation(scanned, "images"))
    report.announce(tell, despite_check)
    recipe = asked(report.pairs, {**seems, **batch_defaults(asked(report.pairs, seems))})
    refuse_other_sizes(recipe, shape, learned[0].name)
    return job_class(info.name)(recipe, scanned)


def _documents(info: TaskInfo, given: InputFiles, asked: RecipeFor, tell: Tell, despite_check: bool) -> TrainingJob:
    """A task on running text, which has nothing to check."""
    recipe, text, characters = open_text(given, asked, tell)
    return job_class(info.name)(recipe, text, characters, pretrained=given.begun)


def _validation(scanned: DataScan[Any], noun: str) -> dict[str, Any]:
    return {f"the validation {noun}": scanned.validation} if scanned.validation else {}


DATA: dict[str, Callable[[TaskInfo, InputFiles, RecipeFor, Tell, bool], TrainingJob]] = {
    "pairs": _pairs,
    "prefixed": _prefixed_pairs,
    "labels": _labels,
    "tags": _tags,
    "images": _images,
    "documents": _documents,
}
"""By kind of data."""


def training_job(task: str, given: InputFiles, asked: RecipeFor, tell: Tell, despite_check: bool) -> TrainingJob:
    """The training job of a task on its data, which is opened and checked.

    Args:
        task: the recipe's word.
        given: the files.
        asked: the requested recipe.
        tell: receives messages.
        despite_check: go on although the check finds that the data would spoil the model.

    Raises:
        UsageError: the files are not those of the task.
        RegardError: they cannot be read, or would spoil the model.
    """
    info = TASKS[task]
    if info.learns_from == "nothing":
        instead = f"train task = masked-lm, or begin another task from it by {Option('start_from')}"
        message = f"{task} is for encoders that regard import brings in, not for training; {instead}"
        raise UsageError(message, Option("task"))
    return DATA[info.learns_from](info, given, asked, tell, despite_check)

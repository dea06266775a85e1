"""What a loaded task reads and writes, as types: by its row, without importing torch or the task's class."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, TypeGuard

if TYPE_CHECKING:
    from regard.tasks.classification.classifier import Classification, TextLabelTask
    from regard.tasks.classification.pairs import PairClassification
    from regard.tasks.images.classifier import ImageClassification
    from regard.tasks.language.generator import LanguageModel
    from regard.tasks.language.masked import MaskedLm
    from regard.tasks.protocols import SingleTextModel, TargetWriter, Task, TextModel
    from regard.tasks.tagging.tagger import Tagging
    from regard.tasks.translation.text_to_text.writer import TextToText
    from regard.tasks.translation.translator import Translation

    LabelClassifier: TypeAlias = Classification | PairClassification | ImageClassification


def reads_text(task: Task) -> TypeGuard[TextModel]:
    """Whether a model reads texts."""
    return task.info.reads != "image"


def reads_image(task: Task) -> TypeGuard[ImageClassification]:
    """Whether a model reads images."""
    return task.info.reads == "image"


def translates(task: Task) -> TypeGuard[Translation]:
    """Whether a model translates."""
    return task.info.learns_from == "pairs"


def answers_text(task: Task) -> TypeGuard[TextToText]:
    """Whether a model does what the prefix of a text says."""
    return task.info.learns_from == "prefixed"


def writes_text(task: Task) -> TypeGuard[TargetWriter]:
    """Whether a model reads a text and writes another."""
    return task.info.writes == "text"


def continues_text(task: Task) -> TypeGuard[LanguageModel]:
    """Whether a model continues the text that it reads."""
    return task.info.writes == "continuation"


def fills_words(task: Task) -> TypeGuard[MaskedLm]:
    """Whether a model predicts masked words."""
    return task.info.writes == "words"


def tags_words(task: Task) -> TypeGuard[Tagging]:
    """Whether a model gives every word a tag."""
    return task.info.writes == "tags"


def labels_examples(task: Task) -> TypeGuard[LabelClassifier]:
    """Whether a model classifies texts or images."""
    return task.info.writes == "classes"


def labels_texts(task: Task) -> TypeGuard[TextLabelTask]:
    """Whether a model classifies texts, or pairs of them."""
    return task.info.writes == "classes" and task.info.reads != "image"


def has_one_stack(task: Task) -> TypeGuard[SingleTextModel]:
    """Whether a model reads texts by one stack, and so writes no other text."""
    return task.info.reads != "image" and task.info.writes != "text"

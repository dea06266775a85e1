"""Tasks: translation, language models, classification, tagging, encoding, images; one package each.

Whatever else belongs to a task stands at its two classes: that of its model, which loads no torch, and that of its
training job.
"""

from __future__ import annotations

from typing import Any

from regard.config import import_name
from regard.system.errors import Option, UsageError

MODELS = {
    "translation": "regard.tasks.translation.translator:Translation",
    "text-to-text": "regard.tasks.translation.text_to_text.writer:TextToText",
    "classification": "regard.tasks.classification.classifier:Classification",
    "sentence-pairs": "regard.tasks.classification.pairs:PairClassification",
    "tagging": "regard.tasks.tagging.tagger:Tagging",
    "language-model": "regard.tasks.language.generator:LanguageModel",
    "masked-lm": "regard.tasks.language.masked:MaskedLm",
    "image-classification": "regard.tasks.images.classifier:ImageClassification",
    "encoding": "regard.tasks.text.encoding:Encoding",
}
"""``module:class`` of each task's model; only that is imported."""
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


def model_class(task: str) -> type[Any]:
    """The class of a task's model."""
    return import_name(MODELS[task])


def job_class(task: str) -> type[Any]:
    """The class of a task's training job; imports torch.

    Raises:
        UsageError: the task is not trained.
    """
    if task not in JOBS:
        instead = f"train task = masked-lm, or begin another task from it by {Option('start_from')}"
        message = f"{task} is for encoders that regard import brings in, not for training; {instead}"
        raise UsageError(message, Option("task"))
    return import_name(JOBS[task])

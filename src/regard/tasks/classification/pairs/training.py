"""Training of classifiers of sentence pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from regard.tasks.classification.pairs.classifier import PairClassification
from regard.tasks.classification.pairs.corpus import LabelledPairEncoder
from regard.tasks.classification.training import ClassificationJob, ClassificationTraining


class PairTraining(ClassificationTraining):
    """Classification of sentence pairs as training sees it."""

    noun: ClassVar[str] = "pairs"


@dataclass(frozen=True)
class PairJob(ClassificationJob):
    """Classification from scanned corpora of labelled pairs."""

    task: ClassVar[type[Any]] = PairClassification
    training: ClassVar[type[Any]] = PairTraining
    encoder: ClassVar[type[Any]] = LabelledPairEncoder

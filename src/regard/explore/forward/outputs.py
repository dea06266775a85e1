"""Model outputs by task: classes, tags, fillings of gaps, or generated text."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from regard.explore.forward.tokens import visible

if TYPE_CHECKING:
    from regard.tasks.classification.classifier import Classification
    from regard.tasks.classification.predictions import Prediction
    from regard.tasks.images.classifier import ImageClassification
    from regard.tasks.language.masked import MaskedLm
    from regard.tasks.tagging.tagger import Tagging

Output = dict[str, Any]
CANDIDATES = 5
"""Candidates per gap."""


def classes(task: Classification | ImageClassification, verdict: Prediction) -> Output:
    """All labels with probabilities, most probable first; of a regression the number."""
    several = task.recipe.classification.kind == "multi"
    ranked = sorted((verdict.probabilities or {}).items(), key=lambda one: -one[1])
    said: Any = list(verdict.labels) if several else verdict.label if verdict.value is None else verdict.value
    return {"kind": "classes", "classes": [list(one) for one in ranked], "said": said, "several": several}


def of_image(task: ImageClassification, image: NDArray[Any]) -> Output:
    """The classes of an image."""
    return classes(task, task.classify(image))


def _classes(task: Classification, text: str) -> Output:
    return classes(task, task.classify(text))


def _tags(task: Tagging, text: str) -> Output:
    """A tag for each word, with its probability."""
    found = task.tag(text)
    words = zip(found.places, found.words, found.tags, found.probabilities, strict=True)
    tags = [
        {"start": start, "end": end, "text": word, "tag": tag, "probability": float(probability)}
        for (start, end), word, tag, probability in words
    ]
    return {"kind": "tags", "tags": tags}


def _words(task: MaskedLm, text: str) -> Output:
    """Candidates for each gap, and the text with the best ones filled in."""
    gaps = task.fill(text, CANDIDATES)
    ranked = [[[visible(one.piece), one.probability] for one in gap] for gap in gaps]
    return {"kind": "words", "gaps": ranked, "text": gaps[0][0].text if gaps else text}


OF_TEXTS: dict[str, Callable[[Any, str], Output]] = {
    "classification": _classes,
    "tagging": _tags,
    "masked-lm": _words,
    "language-model": lambda task, text: {"kind": "continuation"},
    "encoding": lambda task, text: {"kind": "nothing"},
}
"""By task, for models whose output needs no search."""

"""What a model says of what it reads, whatever its task: a text, labels, tags, missing words, or nothing yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from regard.explore.tokens import visible

if TYPE_CHECKING:
    from regard.tasks.classification import Classification
    from regard.tasks.image_classification import ImageClassification
    from regard.tasks.masked_lm import MaskedLm
    from regard.tasks.tagging import Tagging
    from regard.tasks.verdicts import Verdict

Output = dict[str, Any]
CANDIDATES = 5
"""Pieces for each gap."""


def classes(task: Classification | ImageClassification, verdict: Verdict) -> Output:
    """Every label with its probability, the most probable first; a number where the model says one."""
    several = task.recipe.classification.kind == "multi"
    ranked = sorted((verdict.probabilities or {}).items(), key=lambda one: -one[1])
    said: Any = list(verdict.labels) if several else verdict.label if verdict.value is None else verdict.value
    return {"kind": "classes", "classes": [list(one) for one in ranked], "said": said, "several": several}


def of_image(task: ImageClassification, image: NDArray[Any]) -> Output:
    """What the model says of an image."""
    return classes(task, task.classify(image))


def _classes(task: Classification, text: str) -> Output:
    return classes(task, task.classify(text))


def _tags(task: Tagging, text: str) -> Output:
    """A tag for each word, and how probable it is."""
    found = task.tag(text)
    words = zip(found.places, found.words, found.tags, found.probabilities, strict=True)
    tags = [
        {"start": start, "end": end, "text": word, "tag": tag, "probability": float(probability)}
        for (start, end), word, tag, probability in words
    ]
    return {"kind": "tags", "tags": tags}


def _words(task: MaskedLm, text: str) -> Output:
    """What may stand in each gap, and the text with the most probable of all."""
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
"""By task, where the model does not search for what it says."""

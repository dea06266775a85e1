"""``regard classify``: a label for each text or image."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from regard.cli.io.exchange import NO_OPTIONS, Exchange, TextOptions
from regard.cli.io.input_texts import Text
from regard.cli.io.lines import image_of, json_line, one_cell, read_until_error, unseen_values
from regard.system.errors import UsageError

if TYPE_CHECKING:
    from regard.tasks.classification.classifier import Prediction
    from regard.tasks.protocols import Task


def classify(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *texts: Text,
    threshold: float | None = None,
    all: bool = False,
    json: bool = False,
    given: TextOptions = NO_OPTIONS,
) -> int:
    """Label texts, the label and its probability out for each, a tab between: arguments, or lines of a file or stdin.

    Where a text may have several labels, they stand with | between, and the probability is that of the least sure; a
    model of numbers prints the number. Lines of stdin are labelled as they come. An empty text has no label: an empty
    line comes out. A model of images reads a line of CSV for each, its pixels row by row; a header too becomes an empty
    one.

    Args:
        folder: the model folder.
        threshold: a text whose best label is less probable is out of scope; where a text may have several labels it has
            those of this probability; default: what was fitted or the recipe says.
        all: one JSON object a line, with the probability of every label, the most probable first.
        json: one JSON object a line, with label and probability, and with the words that training never saw
            (``unseen``), as translate has them.
    """
    if threshold is not None and not 0 <= threshold <= 1:
        raise UsageError(f"{threshold:g} is no probability; give 0 to 1", "--threshold")
    options = {"--threshold": threshold, "--all": all, "--json": json}
    with Exchange("classify", folder, texts, given, options) as exchange:
        task = exchange.open_model()
        exchange.answer(_answer(task, threshold, all, json))
    return 0


def _answer(task: Task, threshold: float | None, every: bool, json: bool) -> Callable[[list[str], int], Iterator[str]]:
    """A function that labels lines, given the number of the first."""
    from regard.tasks.classification.classifier import Predictor
    from regard.tasks.kinds import labels_examples, labels_texts, reads_image, reads_text

    assert labels_examples(task)
    kind = task.recipe.classification.kind
    parse: Callable[[str, int], Any]
    if reads_image(task):
        parse = partial(image_of, task)
    else:
        assert labels_texts(task)
        parse = task.parse_line
    if threshold is not None and kind == "regression":
        raise UsageError("is for labels; this model predicts numbers", "--threshold")
    judge = Predictor(task.recipe.classification, task.assets.labels, task.assets.fitted, threshold)

    def answer(lines: list[str], first: int) -> Iterator[str]:
        read, wrong = read_until_error(parse(line, number) for number, line in enumerate(lines, first))
        predictions = iter(judge.predictions(task.scores([one for one in read if one is not None])))
        for one, line in zip(read, lines, strict=False):  # those before an unreadable line
            found = None if one is None else next(predictions)
            if not json and not every:
                yield format_verdict(found)
                continue
            unseen = unseen_values(task, line) if reads_text(task) else {}
            yield json_line({**verdict_values(found, kind, every), **unseen})
        if wrong:
            raise wrong

    return answer


def format_verdict(verdict: Prediction | None) -> str:
    """A verdict as a line."""
    if verdict is None:
        return ""
    if verdict.value is not None:
        return f"{verdict.value:.7g}"
    return f"{one_cell(verdict.label)}\t{verdict.probability:.4f}"


def verdict_values(verdict: Prediction | None, kind: str, every: bool) -> dict[str, Any]:
    """A verdict as plain values: ``label`` or ``labels`` with ``probability``, or ``value``; null for an empty text.

    Args:
        verdict: what the model says.
        kind: what kind of labels it has.
        every: with the probability of every label.
    """
    if kind == "regression":
        return {"value": None if verdict is None else verdict.value}
    labels = list(verdict.labels) if verdict else []
    found: dict[str, Any] = {"labels": labels} if kind == "multi" else {"label": verdict.label if verdict else None}
    found["probability"] = round(verdict.probability, 6) if verdict else None
    if every:
        of = verdict.probabilities if verdict and verdict.probabilities else {}
        found["probabilities"] = {label: round(of[label], 6) for label in sorted(of, key=lambda label: -of[label])}
    return found

"""``regard translate``: one line of translation for each text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from regard.cli.io.exchange import NO_OPTIONS, Exchange, TextOptions
from regard.cli.io.input_texts import Text, refuse_document
from regard.cli.io.lines import json_line, one_line, piece_values, unseen_values
from regard.system.errors import UsageError

if TYPE_CHECKING:
    from regard.tasks.protocols import TextModel


def translate(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *texts: Text,
    beam: int | None = None,
    nbest: int = 1,
    json: bool = False,
    given: TextOptions = NO_OPTIONS,
) -> int:
    """Translate texts, a line out for each: arguments, the lines of a file, or those of stdin.

    Lines of stdin are translated as they come; a pause in the input brings out what there is. Empty texts stay empty.

    Args:
        folder: the model folder.
        beam: hypotheses kept while searching; 1 is fastest; default: the recipe's.
        nbest: show this many translations of each line, each as line number, score and text, separated by tabs;
            the beam is widened if necessary, and one given may not be narrower.
        json: one JSON object a line, with text, tokens (their numbers), pieces (the same as text, ▁ is a space), score
            and confidence (the geometric mean of the tokens' probabilities), and, where the model folder knows them,
            with the words that training never saw (``unseen``: word, begin and end in characters) and whether the model
            is ``unsure``: less confident than usual on the validation texts.
    """
    if nbest < 1 or (beam is not None and not nbest <= beam <= 100):
        raise UsageError(f"--nbest {nbest} must lie between 1 and the beam, and the beam between 1 and 100")
    options = {"--beam": beam, "--nbest": nbest, "--json": json}
    refuse_document(given.input)
    with Exchange("translate", folder, texts, given, options) as exchange:
        from regard.cli.io.answer_report import AnswerReport
        from regard.tasks.kinds import translates

        task = exchange.open_model()
        assert translates(task)
        if not json:
            exchange.report = AnswerReport(task.assets.doubted_below, exchange.given.by_hand)

        def answer(lines: list[str], first: int) -> Iterator[str]:
            scores = json or nbest > 1 or exchange.given.by_hand
            found = task.nbest(lines, n=nbest, beam=beam, first=first, scores=scores)
            if exchange.report is not None:
                best = [hypotheses[0] for hypotheses in found]
                exchange.report.add(first, lines, task.unseen_words_batch(lines), best)
            for number, hypotheses in enumerate(found, first):
                if json:
                    yield _format_json(task, hypotheses, nbest, unseen_values(task, lines[number - first]))
                else:
                    yield from _format_hypotheses(number, hypotheses, nbest)

        exchange.answer(answer)
    return 0


def _format_json(task: TextModel, hypotheses: list[Any], nbest: int, unseen: dict[str, Any]) -> str:
    """The JSON object for one sentence."""
    found = [_hypothesis_values(task, one) for one in hypotheses]
    return json_line({**found[0], **({} if nbest == 1 else {"nbest": found}), **unseen})


def _format_hypotheses(number: int, hypotheses: list[Any], nbest: int) -> list[str]:
    """The lines for one sentence."""
    if nbest == 1:
        return [one_line(hypotheses[0].text)]
    return [f"{number}\t{h.score:.4f}\t{one_line(h.text)}" for h in hypotheses]


def _hypothesis_values(task: TextModel, one: Any) -> dict[str, Any]:
    """A hypothesis as plain values."""
    values = {"text": one_line(one.text), **piece_values(task, one.tokens), "score": round(one.score, 6)}
    values["confidence"] = round(one.confidence, 6)
    return values if one.unsure is None else {**values, "unsure": one.unsure}

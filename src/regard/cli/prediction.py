"""``regard classify``, ``tag`` and ``fill``: labels of texts or images, tags of words, and words at gaps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from regard.cli.io.exchange import NO_OPTIONS, Exchange, TextOptions
from regard.cli.io.input_texts import Text
from regard.cli.io.lines import image_of, json_line, one_cell, read_until_error, unseen_values
from regard.cli.io.terminal import say
from regard.system.errors import UsageError

if TYPE_CHECKING:
    from regard.tasks.classification.classifier import Prediction
    from regard.tasks.tagging.tagger import TaggedText

WORD = re.compile(r"[^ \t\r\n\f\v]+")
NOTHING = "_"
"""Stands for the tag on a line without a word."""


def classify(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *texts: Text,
    threshold: float | None = None,
    all: bool = False,
    json: bool = False,
    given: TextOptions = NO_OPTIONS,
) -> None:
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
        from regard.tasks.classification.classifier import Predictor
        from regard.tasks.kinds import labels_examples, labels_texts, reads_image, reads_text

        task = exchange.open_model()
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
                if json or all:
                    unseen = unseen_values(task, line) if reads_text(task) else {}
                    yield json_line({**_prediction_values(found, kind, all), **unseen})
                elif found is None:
                    yield ""
                elif found.value is not None:
                    yield f"{found.value:.7g}"
                else:
                    yield f"{one_cell(found.label)}\t{found.probability:.4f}"
            if wrong:
                raise wrong

        exchange.answer(answer)


def _prediction_values(one: Prediction | None, kind: str, every: bool) -> dict[str, object]:
    """A prediction as plain values: label or labels with probability, or value; null for an empty text.

    Args:
        one: what the model says.
        kind: what kind of labels it has.
        every: with the probability of every label.
    """
    if kind == "regression":
        return {"value": None if one is None else one.value}
    labels = list(one.labels) if one else []
    found: dict[str, object] = {"labels": labels} if kind == "multi" else {"label": one.label if one else None}
    found["probability"] = round(one.probability, 6) if one else None
    if every:
        of = one.probabilities if one and one.probabilities else {}
        found["probabilities"] = {label: round(of[label], 6) for label in sorted(of, key=lambda label: -of[label])}
    return found


def tag(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *texts: Text,
    json: bool = False,
    words: bool = False,
    conll: bool = False,
    given: TextOptions = NO_OPTIONS,
) -> None:
    """Tag texts: arguments, or the lines of a file or of stdin.

    For each its words come out, each with a tab and its tag, then an empty line (CoNLL). Lines of stdin are tagged as
    they come. An empty text has no words: only the empty line comes out. Tags of spans are written as BIO.

    Args:
        folder: the model folder.
        json: one JSON object a line instead: the text and its spans, each with the characters it takes (start, end),
            its label, text and probability; of a model that tags each word by itself, its words, the characters each
            takes (offsets) and tags.
        words: texts are cut into words already, with blanks between.
        conll: the input is CoNLL: a word a line, further columns after it, an empty line after each sentence; the tag
            becomes the last column. Comments stay.
    """
    if words and conll:
        raise UsageError("CoNLL has a word a line; give --words or --conll", "--words, --conll")
    if texts and conll:
        raise UsageError("CoNLL has a word a line; give it by --input or on stdin", "--conll")
    options = {"--json": json, "--words": words, "--conll": conll}
    with Exchange("tag", folder, texts, given, options) as exchange:
        from regard.tasks.kinds import tags_words
        from regard.text.tags import TaggedWords

        task = exchange.open_model()
        assert tags_words(task)
        spans = task.assets.scheme != "none"

        def values(one: TaggedText) -> dict[str, object]:
            if spans:
                found = [{**vars(span), "probability": round(span.probability, 6)} for span in one.spans]
                return {"text": one.text, "spans": found}
            places = [list(place) for place in one.places]
            return {"text": one.text, "words": one.words, "offsets": places, "tags": list(one.tags)}

        def answer(lines: list[str], first: int) -> Iterator[str]:
            if conll:
                sentences = [Sentence(line) for line in lines]
                found = task.tag_words([one.words for one in sentences])
            elif words:
                places = [tuple(match.span() for match in WORD.finditer(line)) for line in lines]
                found = task.tag_all([TaggedWords(line, one) for line, one in zip(lines, places, strict=True)])
            else:
                found = task.tag(lines)
            if json:
                yield from (json_line({**values(one), **unseen_values(task, one.text)}) for one in found)
            elif conll:
                yield from (sentence.with_tags(one.tags) for sentence, one in zip(sentences, found, strict=True))
            else:
                for one in found:  # the last line feed is left to the writer
                    yield "".join(f"{word}\t{name}\n" for word, name in zip(one.words, one.tags, strict=True))

        exchange.answer(answer, join_sentences if conll else iter)


def join_sentences(lines: Iterable[str]) -> Iterator[str]:
    """The lines of each CoNLL sentence as one text; each further empty line is a sentence without words."""
    waiting: list[str] = []
    for line in lines:
        if line.strip(" \t"):
            waiting.append(line)
        else:
            yield "\n".join(waiting)
            waiting = []
    if waiting:
        yield "\n".join(waiting)


class Sentence:
    """The lines of a sentence of CoNLL; words first, columns separated by tabs or blanks, as its first line
    with a word has them.
    """

    def __init__(self, text: str) -> None:
        from regard.data.corpora.tagged import ConllFormat

        self.lines = text.split("\n") if text else []
        self._form = form = ConllFormat.of(self.lines)
        self._words: dict[int, str] = {}
        for place, line in enumerate(self.lines):
            if not form.comment(line) and not form.begins_document(line) and "".join(form.cells(line)[:1]).strip():
                self._words[place] = form.cells(line)[0]
        self.words = list(self._words.values())

    def with_tags(self, tags: Iterable[str]) -> str:
        """The lines with one more column; the last line feed is left to the writer."""
        by_place = dict(zip(self._words, tags, strict=True))
        between = "\t" if self._form.tabs or self._form.width == 1 else " "
        found = []
        for place, line in enumerate(self.lines):
            kept = place not in by_place and (line.startswith("#") or self._form.begins_document(line))
            found.append(line if kept else f"{line}{between}{by_place.get(place, NOTHING)}")
        return "".join(f"{line}\n" for line in found)


def fill(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *texts: Text,
    k: Annotated[int, Parameter(name=("--k", "-k"))] = 5,
    json: bool = False,
    given: TextOptions = NO_OPTIONS,
) -> None:
    """Guess what stood at each [MASK] of texts: arguments, or the lines of a file or of stdin.

    A line comes out for each guess, the best first: the probability, what is guessed and the whole text with it,
    between tabs. Of a text without [MASK] there is one line with the text alone, the first two columns empty; of an
    empty text an empty line. So with -k 1 and a [MASK] in each text as many lines come out as go in.

    A masked-language model guesses the piece at each gap (▁ is a space): a text with several [MASK] gives the guesses
    of the first, then those of the second, and so on, the others filled with their best. A longer word needs several
    consecutive [MASK].

    Args:
        folder: the model folder.
        k: guesses for each gap.
        json: one JSON object for each text instead: the text, and the guesses of each gap (gaps).
    """
    if k < 1:
        raise UsageError(f"{k} guesses cannot be given; ask for 1 or more", "--k")
    with Exchange("fill", folder, texts, given, {"--k": k, "--json": json}) as exchange:
        from regard.tasks.kinds import fills_words

        task = exchange.open_model()
        assert fills_words(task)

        def answer(lines: list[str], first: int) -> Iterator[str]:
            for number, (line, gaps) in enumerate(zip(lines, task.fill(lines, k), strict=True), first):
                if json:
                    guesses = [[asdict(one) for one in gap] for gap in gaps]
                    yield json_line({"text": line, "gaps": guesses, **unseen_values(task, line)})
                elif gaps:
                    for one in (guess for gap in gaps for guess in gap):
                        yield f"{one.probability:.4f}\t{one_cell(one.piece)}\t{one_cell(one.text)}"
                elif line.strip():
                    say(f"line {number} has no [MASK]")
                    yield f"\t\t{one_cell(line)}"
                else:
                    yield ""

        exchange.answer(answer)

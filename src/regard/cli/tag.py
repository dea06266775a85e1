"""``regard tag``: the words of each text with their tags, or the spans that tags say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from regard.cli.exchange import Exchange
from regard.cli.given import Given, Input, Text
from regard.cli.target import Output, Target
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.tasks.tagging import Tagged

WORD = re.compile(r"[^ \t\r\n\f\v]+")
NOTHING = "_"
"""In place of the tag of a line that has no word."""


def tag(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *texts: Text,
    json: bool = False,
    words: bool = False,
    conll: bool = False,
    input: Input = None,
    output: Output = None,
    device: str | None = None,
    threads: int | None = None,
) -> int:
    """Tag texts: arguments, or the lines of a file or of stdin.

    For each its words come out, a tab and a tag behind each, then an empty line (CoNLL). Lines of stdin are tagged as
    they come. An empty text has no words: only the empty line comes out. Tags of spans are written as BIO.

    Args:
        folder: the model folder.
        json: one JSON object a line instead: the text and its spans, each with the characters it takes (start, end),
            its label, text and probability; of a model that tags each word by itself, its words and tags.
        words: texts are cut into words already, with blanks between.
        conll: the input is CoNLL: a word a line, further columns behind it, an empty line behind each sentence; the tag
            becomes the last column. Comments stay.
        device: cpu, cuda ...
        threads: processor threads.
    """
    if words and conll:
        raise UsageError("CoNLL has a word a line; give --words or --conll", "--words, --conll")
    if texts and conll:
        raise UsageError("CoNLL has a word a line; give it by --input or on stdin", "--conll")
    given = Given(texts, input)
    options = {"--json": json, "--words": words, "--conll": conll}
    with Exchange("tag", folder, given, Target(output, given), options) as exchange:
        task = exchange.opened(device, threads)
        spans = task.assets.scheme != "none"

        def answer(lines: list[str], first: int) -> Iterator[str]:
            if conll:
                sentences = [Sentence(line) for line in lines]
                found = task.tag_words([one.words for one in sentences])
            else:
                found = task.tagged([cut(line) for line in lines]) if words else task.tag(lines)
            for number, one in enumerate(found):
                yield shown_json(one, spans) if json else sentences[number].tagged(one.tags) if conll else shown(one)

        exchange.answer(answer, together if conll else iter)
    return 0


def cut(line: str) -> Any:
    """A line whose words have blanks between."""
    from regard.text.marked import Words

    return Words(line, tuple(match.span() for match in WORD.finditer(line)))


def shown(tagged: Tagged) -> str:
    """A word and its tag a line; an empty line ends it, as the one written behind it all."""
    return "".join(f"{word}\t{name}\n" for word, name in zip(tagged.words, tagged.tags, strict=True))


def shown_json(tagged: Tagged, spans: bool) -> str:
    """A JSON object on one line: spans, or words with their tags."""
    from regard.cli.lines import json_line

    if not spans:
        return json_line({"text": tagged.text, "words": tagged.words, "tags": list(tagged.tags)})
    found = [{**vars(span), "probability": round(span.probability, 6)} for span in tagged.spans]
    return json_line({"text": tagged.text, "spans": found})


def together(lines: Iterable[str]) -> Iterator[str]:
    """The lines of each sentence of CoNLL as one text; of further empty lines each is a sentence without words."""
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
    """The lines of a sentence of CoNLL; the word comes first, the columns are behind tabs or blanks, as its first line
    with a word has them.
    """

    def __init__(self, text: str) -> None:
        from regard.data.conll import Form

        self.lines = text.split("\n") if text else []
        self._form = Form.of(self.lines)
        self.places = [place for place, line in enumerate(self.lines) if self._word(line)]

    def _word(self, line: str) -> str:
        """The word of a line, if it has one."""
        if self._form.comment(line) or self._form.begins_document(line):
            return ""
        return next(iter(self._form.cells(line)), "").strip()

    @property
    def words(self) -> list[str]:
        """The words."""
        return [self._form.cells(self.lines[place])[0] for place in self.places]

    def tagged(self, tags: Iterable[str]) -> str:
        """The lines with one column more; an empty line ends them, as the one written behind it all."""
        by_place = dict(zip(self.places, tags, strict=True))
        return "".join(self._line(line, by_place.get(place)) + "\n" for place, line in enumerate(self.lines))

    def _line(self, line: str, tag: str | None) -> str:
        if tag is None and (line.startswith("#") or self._form.begins_document(line)):
            return line
        between = "\t" if self._form.tabs or self._form.width == 1 else " "
        return f"{line}{between}{tag or NOTHING}"

"""``regard tag``: a tag for each word of each text, or the spans that the tags describe."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from regard.cli.io.exchange import NO_OPTIONS, Exchange, TextOptions
from regard.cli.io.input_texts import Text
from regard.cli.io.lines import json_line, unseen_values
from regard.system.errors import UsageError

if TYPE_CHECKING:
    from regard.tasks.tagging.tagger import TaggedText

WORD = re.compile(r"[^ \t\r\n\f\v]+")
NOTHING = "_"
"""Stands for the tag on a line without a word."""


def tag(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *texts: Text,
    json: bool = False,
    words: bool = False,
    conll: bool = False,
    given: TextOptions = NO_OPTIONS,
) -> int:
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

        task = exchange.open_model()
        assert tags_words(task)
        spans = task.assets.scheme != "none"

        def answer(lines: list[str], first: int) -> Iterator[str]:
            if conll:
                sentences = [Sentence(line) for line in lines]
                found = task.tag_words([one.words for one in sentences])
            else:
                found = task.tag_all([split_words(line) for line in lines]) if words else task.tag(lines)
            if json:
                yield from (format_json(one, spans, unseen_values(task, one.text)) for one in found)
            elif conll:
                yield from (sentence.with_tags(one.tags) for sentence, one in zip(sentences, found, strict=True))
            else:
                for one in found:  # the last line feed is left to the writer
                    yield "".join(f"{word}\t{name}\n" for word, name in zip(one.words, one.tags, strict=True))

        exchange.answer(answer, join_sentences if conll else iter)
    return 0


def split_words(line: str) -> Any:
    """Split a line at blanks into words."""
    from regard.text.tags import TaggedWords

    return TaggedWords(line, tuple(match.span() for match in WORD.finditer(line)))


def format_json(tagged: TaggedText, spans: bool, unseen: dict[str, Any]) -> str:
    """A JSON object on one line: spans, or words with their tags; and the words that training never saw."""
    if not spans:
        places = [list(place) for place in tagged.places]
        words = {"words": tagged.words, "offsets": places, "tags": list(tagged.tags)}
        return json_line({"text": tagged.text, **words, **unseen})
    found = [{**vars(span), "probability": round(span.probability, 6)} for span in tagged.spans]
    return json_line({"text": tagged.text, "spans": found, **unseen})


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
        self._form = ConllFormat.of(self.lines)
        self.places = [place for place, line in enumerate(self.lines) if self._word(line)]

    def _word(self, line: str) -> str:
        """The word on a line, if any."""
        if self._form.comment(line) or self._form.begins_document(line):
            return ""
        return next(iter(self._form.cells(line)), "").strip()

    @property
    def words(self) -> list[str]:
        """The words."""
        return [self._form.cells(self.lines[place])[0] for place in self.places]

    def with_tags(self, tags: Iterable[str]) -> str:
        """The lines with one more column; the last line feed is left to the writer."""
        by_place = dict(zip(self.places, tags, strict=True))
        return "".join(self._line(line, by_place.get(place)) + "\n" for place, line in enumerate(self.lines))

    def _line(self, line: str, tag: str | None) -> str:
        if tag is None and (line.startswith("#") or self._form.begins_document(line)):
            return line
        between = "\t" if self._form.tabs or self._form.width == 1 else " "
        return f"{line}{between}{tag or NOTHING}"

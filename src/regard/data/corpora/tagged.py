"""Tagged sentences: CoNLL, CoNLL-U, TSV and JSONL; plain or gz, xz, zst; streamed."""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.data.corpora.conll import TAGS, WORDS, Conll, ConllFile, ConllU
from regard.data.corpora.corpus import Corpus, plain_name
from regard.system.errors import RegardError, UsageError
from regard.text.counts import counted
from regard.text.lines import InvalidLines
from regard.text.tags import TaggedWords, places_of, tags_of
from regard.text.tokenizers.byte_pieces import replace_surrogates

_BREAK = re.compile("[\r\n\t]")


@dataclass
class JsonTags(ConllFile):
    """JSONL: ``{"text": ..., "spans": [[begin, end, label], ...]}`` or ``{"words": [...], "tags": [...]}``.

    Spans count characters from 0, the end exclusive; they become BIO tags of the text's words
    (:func:`~regard.text.tags.places_of`), which are cut where a span begins or ends inside one. ``columns``
    names the two keys if they have other names.
    """

    def sentences(self, notes: InvalidLines) -> Iterator[tuple[int, TaggedWords]]:
        keys: tuple[str, ...] | None = self.columns
        for number, entry in self.json_objects(notes):
            keys = keys or self.find_keys(entry, {"text": WORDS, "tag": TAGS}, number)
            values = [self.json_value(entry, key, number) for key in keys]
            try:
                yield number, _parse_entry(values[0], values[1], keys)
            except ValueError as error:
                raise RegardError(f"cannot be read: {error}", self.at(number)) from None


def _parse_entry(first: Any, second: Any, keys: tuple[str, ...]) -> TaggedWords:
    if not isinstance(second, list):
        raise ValueError(f"{keys[1]!r} is not a list")
    if isinstance(first, str):
        return _of_spans(_BREAK.sub(" ", replace_surrogates(first)), [_span(one) for one in second])
    if not isinstance(first, list) or not all(isinstance(word, str) and word for word in first):
        raise ValueError(f"{keys[0]!r} is neither a text nor a list of words")
    if len(first) != len(second):
        raise ValueError(f"{counted(len(first), 'word')}, but {counted(len(second), 'tag')}")
    return TaggedWords.from_words(
        [_BREAK.sub(" ", replace_surrogates(word)) for word in first], [_tag(tag) for tag in second]
    )


def _tag(tag: Any) -> str:
    if isinstance(tag, bool) or not isinstance(tag, str | int) or not str(tag).strip():
        raise ValueError(f"{tag!r} is no tag")
    return " ".join(replace_surrogates(str(tag)).split())


def _span(one: Any) -> tuple[int, int, str]:
    if isinstance(one, dict):
        one = [one.get("start"), one.get("end"), one.get("label")]
    if not isinstance(one, list) or len(one) != 3 or not all(type(edge) is int for edge in one[:2]):
        raise ValueError(f"{json.dumps(one)[:60]} is no span; a span is [begin, end, label]")
    return one[0], one[1], _tag(one[2])


def _of_spans(text: str, spans: Sequence[tuple[int, int, str]]) -> TaggedWords:
    """Spans of characters as BIO tags of words."""
    for begin, end, label in spans:
        if not 0 <= begin < end <= len(text) or not text[begin:end].strip():
            raise ValueError(f"the span {begin} to {end} ({label}) holds nothing of a text of {len(text)} characters")
    places = places_of(text, [edge for span in spans for edge in span[:2]])
    starts, ends = ([place[side] for place in places] for side in (0, 1))  # both grow: words do not overlap
    of_words = [(bisect_left(starts, begin), bisect_right(ends, end), label) for begin, end, label in spans]
    try:
        return TaggedWords(text, tuple(places), tuple(tags_of(of_words, len(places))))
    except ValueError:
        raise ValueError("two spans overlap, but a word has one tag only") from None


def open_tagged(path: Path | str, columns: str | None = None) -> Corpus[TaggedWords]:
    """The tagged sentences of a file; its name's ending tells the form: ``.conllu``, ``.jsonl``, else CoNLL.

    Args:
        path: the file, plain or compressed.
        columns: ``"1,4"`` or ``"form,xpos"``: the columns of words and tags, by number from 1 or by name; of JSONL
            the keys. A single one is that of the tags. Default: as :class:`Conll`, :class:`ConllU` and
            :class:`JsonTags` say.
    """
    path = Path(path)
    name = plain_name(path)
    if name.endswith((".jsonl", ".ndjson", ".json")):
        return JsonTags(path, _two(columns, "text"))
    if name.endswith((".conllu", ".conllup")):
        return ConllU(path, _two(columns, "form"))
    return Conll(path, _two(columns, "1"))


def _two(columns: str | None, word: str) -> tuple[str, str] | None:
    if columns is None:
        return None
    names = [name.strip() for name in columns.split(",")]
    if len(names) > 2 or not all(names):
        raise UsageError(f"{columns!r} must name two columns, words first, such as 1,4 or form,upos", "--columns")
    return (word, names[0]) if len(names) == 1 else (names[0], names[1])

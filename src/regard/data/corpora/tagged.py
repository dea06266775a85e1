"""Tagged sentences: CoNLL, CoNLL-U, TSV and JSONL; plain or gz, xz, zst; streamed sentence by sentence."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.data.corpora.corpus import Corpus, Records, find_column, plain_name
from regard.system.errors import Option, RegardError, UsageError
from regard.text.counts import counted
from regard.text.lines import InvalidLines, replace_surrogates, row_lines
from regard.text.tags import OUTSIDE, Place, TaggedWords, places_of, tags_of

FIELDS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
_WORD = re.compile(r"[1-9][0-9]{0,8}")
_RANGE = re.compile(r"([1-9][0-9]{0,8})-([1-9][0-9]{0,8})")
_EMPTY = re.compile(r"[0-9]+\.[1-9][0-9]*")
WORDS = ("word", "words", "token", "tokens", "form", "text")
TAGS = ("tag", "tags", "ner", "ner_tags", "ner_tag", "label", "labels", "upos", "pos", "spans", "entities")
"""Column names that are recognised, the likeliest first."""
DOCUMENT = "-DOCSTART-"
"""In place of a word it marks the start of a document."""
_NUMBER = re.compile(r"[0-9]{1,9}")
_MARKED = re.compile(r"#[^ \t]")
_PROPERTY = re.compile(r"# ?[\w.:-]+ = |# *$")
_BREAK = re.compile("[\r\n\t]")
Line = tuple[int, str]


class ConlluSentence:
    """Collects the lines of one sentence.

    Args:
        word: the number of the column of the words, from 0.
        tag: of the tags.
    """

    def __init__(self, word: int, tag: int) -> None:
        self._word, self._tag = word, tag
        self._text, self._blank = "", ""
        self._places: list[Place] = []
        self._tags: list[str] = []
        self._next = 1
        self._token: tuple[int, str, bool] | None = None
        self._inside: list[str] = []

    def add(self, cells: Sequence[str]) -> None:
        """Take the columns of a line.

        Raises:
            ValueError: there are not ten, a word or tag is missing, or words are not numbered one by one.
        """
        if len(cells) != len(FIELDS):
            raise ValueError(f"has {counted(len(cells), 'column')}; CoNLL-U has {len(FIELDS)}, separated by tabs")
        if _EMPTY.fullmatch(cells[0]):
            return
        if match := _RANGE.fullmatch(cells[0]):
            if self._token is not None or int(match[1]) != self._next or int(match[2]) < int(match[1]):
                raise ValueError(f"the words {cells[0]} do not follow word {self._next - 1}")
            self._token = int(match[2]), cells[self._word] or "_", _space_after(cells)
            return
        if not _WORD.fullmatch(cells[0]) or int(cells[0]) != self._next:
            raise ValueError(f"word {cells[0][:20]!r} does not follow word {self._next - 1}")
        if not cells[self._word] or not cells[self._tag].strip():
            raise ValueError(f"has no {'tag' if cells[self._word] else 'word'}")
        self._next += 1
        self._tags.append(cells[self._tag].strip())
        if self._token is None:
            self._append(cells[self._word], [cells[self._word]], _space_after(cells))
            return
        self._inside.append(cells[self._word])
        last, surface, spaced = self._token
        if int(cells[0]) == last:
            self._append(surface, self._inside, spaced)
            self._token, self._inside = None, []

    def _append(self, surface: str, words: Sequence[str], spaced: bool) -> None:
        self._text += self._blank
        begin = len(self._text)
        self._places += [(begin + left, begin + right) for left, right in shares(surface, words)]
        self._text += surface
        self._blank = " " if spaced else ""

    def words(self) -> TaggedWords:
        """The sentence; a multiword token whose last words are missing ends with what there is.

        Raises:
            ValueError: all words of a multiword token are missing.
        """
        if self._token is not None:
            last, surface, spaced = self._token
            if not self._inside:
                raise ValueError(f"the words {self._next}-{last} are missing behind their multiword token")
            self._append(surface, self._inside, spaced)
        return TaggedWords(self._text, tuple(self._places), tuple(self._tags))


def _space_after(cells: Sequence[str]) -> bool:
    return "SpaceAfter=No" not in cells[9].split("|")


def shares(surface: str, words: Sequence[str]) -> list[Place]:
    """Spans of the words in a multiword token: ``didn't`` = ``did`` + ``n't``, ``zum`` = ``zu`` + ``m`` (dem).

    Each word but the last has as many characters as it has in common with what is left, but at least one; a token with
    fewer characters than words belongs to all of them.
    """
    if len(surface) < len(words):
        return [(0, len(surface))] * len(words)
    found, begin = [], 0
    for number, word in enumerate(words[:-1], 1):
        most = len(surface) - (len(words) - number)
        end = begin
        while end < most and end - begin < len(word) and surface[end].casefold() == word[end - begin].casefold():
            end += 1
        end = max(end, begin + 1)
        found.append((begin, end))
        begin = end
    return [*found, (begin, len(surface))]


@dataclass
class ConllFile(Records[TaggedWords]):
    """A file of sentences; ``columns`` names the column of the words and that of the tags, or counts them from 1."""

    columns: tuple[str, str] | None = None

    def records(self, notes: InvalidLines) -> Iterator[tuple[int, TaggedWords]]:
        """Every sentence.

        Raises:
            RegardError: a sentence cannot be read; or there is none.
        """
        found = self.sentences(notes)
        if (first := next(found, None)) is None:
            raise RegardError("holds no sentence", self.name)
        yield first
        yield from found

    @abstractmethod
    def sentences(self, notes: InvalidLines) -> Iterator[tuple[int, TaggedWords]]:
        """Every sentence, with the line it begins in."""

    def blocks(self, notes: InvalidLines) -> Iterator[list[Line]]:
        """Numbered blocks of lines, separated by blank lines."""
        block: list[Line] = []
        for number, line in enumerate(row_lines(self.path, notes), 1):
            if line.strip(" \t"):
                block.append((number, line))
            elif block:
                yield block
                block = []
        if block:
            yield block


@dataclass
class Conll(ConllFile):
    """CoNLL: one word per line, columns separated by tabs (blanks if the first line has no tab), empty lines between
    sentences.

    The word comes first and the tag last, by default; a first line that names both (:data:`WORDS`,
    :data:`TAGS`) is a header. ``-DOCSTART-`` lines are passed over, and so are lines that begin with ``#`` where the
    columns do not fit, or with ``# name =``; an empty word with the tag O, of which corpora of tweets have some, too.
    """

    def sentences(self, notes: InvalidLines) -> Iterator[tuple[int, TaggedWords]]:
        form: ConllFormat | None = None
        for block in self.blocks(notes):
            rows = []
            for number, line in block:
                if form is None:
                    # whether it is a comment, the lines with words behind it tell
                    if line.startswith("# ") and ConllFormat.of([other for _, other in block]).comment(line):
                        continue
                    form = self._form(line, number)
                    if form.header:
                        continue
                if form.comment(line):
                    continue
                cells = form.cells(line)
                if len(cells) != form.width:
                    message = f"has {counted(len(cells), 'column')}, but line {form.line} has {form.width}"
                    raise RegardError(f"{message}; an empty line ends a sentence", self.at(number))
                lost = not cells[form.word] and cells[form.tag].strip() == OUTSIDE
                if cells[:1] != [DOCUMENT] and not lost:
                    rows.append((number, cells[form.word], cells[form.tag]))
            for number, word, tag in rows:
                if not word or not tag.strip():
                    raise RegardError(f"has no {'tag' if word else 'word'}", self.at(number))
            if rows:
                words = [word for _, word, _ in rows]
                yield rows[0][0], TaggedWords.from_words(words, [tag.strip() for _, _, tag in rows])

    def _form(self, line: str, number: int) -> ConllFormat:
        """The line format, inferred from the first line with words."""
        form = ConllFormat(line, number)
        cells = form.cells(line)
        names = [cell.strip().casefold() for cell in cells]
        if self.columns is None:
            form.header = names[0] in WORDS and names[-1] in TAGS
            if len(cells) < 2:
                raise RegardError("has 1 column, but a word and its tag are needed", self.at(number))
            return form
        form.word, form.tag = (find_column(one, names, self.at(number)) for one in self.columns)
        named = not all(map(str.isdecimal, self.columns))
        form.header = named or (names[form.word] in WORDS and names[form.tag] in TAGS)
        return form


class ConllFormat:
    """Line format of a CoNLL file: the separator (tabs or blanks) and the number of columns."""

    def __init__(self, line: str, number: int = 0) -> None:
        self.tabs = "\t" in line
        self.line = number
        self.width = len(self.cells(line))
        self.word, self.tag, self.header = 0, self.width - 1, False

    @classmethod
    def of(cls, lines: Sequence[str]) -> ConllFormat:
        """Infer the format from a block of lines; words may begin with #, a comment has a blank after it.

        Without any word there are no columns.
        """
        words = (line for line in lines if not line.startswith("#") and line.split(maxsplit=1)[:1] != [DOCUMENT])
        return cls(next(words, None) or next(filter(_MARKED.match, lines), ""))

    def cells(self, line: str) -> list[str]:
        """The columns of a line."""
        return line.split("\t") if self.tabs else [cell for cell in re.split("[ \t]+", line) if cell]

    def comment(self, line: str) -> bool:
        """Whether a line is a comment: it begins with #, and its columns do not fit or it looks like a property."""
        return line.startswith("#") and (len(self.cells(line)) != self.width or _PROPERTY.match(line) is not None)

    def begins_document(self, line: str) -> bool:
        """Whether a line only marks the start of a document."""
        return self.cells(line)[:1] == [DOCUMENT]


@dataclass
class ConllU(ConllFile):
    """CoNLL-U: ten tab-separated columns, by name or number; FORM and UPOS by default.

    Spacing follows ``SpaceAfter=No``; the words of a multiword token share its characters; empty nodes are left out.
    """

    def sentences(self, notes: InvalidLines) -> Iterator[tuple[int, TaggedWords]]:
        wanted = self.columns or ("form", "upos")
        word, tag = (self._field(name) for name in wanted)
        for block in self.blocks(notes):
            sentence = ConlluSentence(word, tag)
            begin = end = 0
            for number, line in block:
                if line.startswith("#"):
                    continue
                begin, end = begin or number, number
                try:
                    sentence.add(line.split("\t"))
                except ValueError as error:
                    raise RegardError(str(error), self.at(number)) from None
            try:
                words = sentence.words()
            except ValueError as error:
                raise RegardError(str(error), self.at(end)) from None
            if begin:
                yield begin, words

    def _field(self, wanted: str) -> int:
        if wanted.casefold() in FIELDS:
            return FIELDS.index(wanted.casefold())
        if _NUMBER.fullmatch(wanted) and 1 <= int(wanted) <= len(FIELDS):
            return int(wanted) - 1
        raise UsageError(f"{wanted[:30]!r} is no column of CoNLL-U; they are {', '.join(FIELDS)}", Option("columns"))


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


def _parse_entry(first: object, second: object, keys: tuple[str, ...]) -> TaggedWords:
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


def _tag(tag: object) -> str:
    if isinstance(tag, bool) or not isinstance(tag, str | int) or not str(tag).strip():
        raise ValueError(f"{tag!r} is no tag")
    return " ".join(replace_surrogates(str(tag)).split())


def _span(one: object) -> tuple[int, int, str]:
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
        raise UsageError(f"{columns!r} must name two columns, words first, such as 1,4 or form,upos", Option("columns"))
    return (word, names[0]) if len(names) == 1 else (names[0], names[1])

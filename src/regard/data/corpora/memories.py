"""Translation memories and catalogues: TMX, XLIFF 1 and 2, gettext's PO; plain or gz, xz, zst; streamed."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NoReturn
from xml.parsers import expat

from regard.data.corpora.corpus import Records, TextPair
from regard.system.errors import Option, RegardError
from regard.text.counts import counted
from regard.text.lines import FAULTS, LONGEST, InvalidLines, error_text, lines, open_bytes

Unit = tuple[int, str, Mapping[str, str]]
"""The line a unit begins in, the language that it is translated from, and its texts by language."""

TOO_LONG = f"a unit is longer than {LONGEST >> 20} MiB; is its end missing?"
BLOCK = 1 << 18
"""Bytes parsed at once."""
DEEPEST = 200
"""Elements within one another."""
MOST = 100
"""Languages that are remembered for a message."""
TEXTS = {("tuv", "seg"), *((unit, side) for unit in ("trans-unit", "segment") for side in ("source", "target"))}
"""The elements of text, each with the one that it must stand in: suggestions stand in others."""
CODES = {"bpt", "ept", "it", "ph", "ut"}
"""Inline elements that hold what is no text; what the others hold is."""
UNTRANSLATED = {"new", "needs-translation", "initial"}
"""States of a target that nobody has translated."""
CHARSETS = {"utf-8", "utf8", "us-ascii", "ascii", "charset"}
"""What the header of a catalogue in UTF-8 calls it, or a part of it; or nothing yet."""
_SPACES = re.compile("[ \t\r\n]{2,}|[\t\r\n]")
_PO_LINE = re.compile(
    r'\s*(?:(#~\s*+)?(?:(msgctxt|msgid|msgid_plural|msgstr(?:\[\d+])?)\s*+)?"([^"\\]*+(?:\\.[^"\\]*+)*+)"\s*|(#.*)|)'
)
_ESCAPE = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}


@dataclass
class Memory(Records[TextPair]):
    """Units of texts, of which two are chosen by language: ``de`` is also ``de-AT``.

    Without a choice these are the one that the file says it is translated from, and the only other one. Units that lack
    one of both, or are not translated, are passed over. White space of any length is one blank, as in XML.
    """

    languages: tuple[str, str] | None = None
    found: tuple[str, str] | None = field(default=None, compare=False, kw_only=True)
    """The languages of the last unit that was read."""

    @abstractmethod
    def units(self, notes: InvalidLines) -> Iterator[Unit]:
        """Every unit."""

    def records(self, notes: InvalidLines) -> Iterator[tuple[int, TextPair]]:
        """Every pair.

        Raises:
            RegardError: there are only units that lack a text, or it is not clear which two of a unit are meant.
        """
        self.left_out, kept, known, others = 0, 0, set[str](), set[str]()
        units = self.units(notes)
        for line, usual, texts in units:
            known |= texts.keys() if len(known) < MOST else set()
            if self.languages:
                source, target = (_find(wanted, texts) for wanted in self.languages)
            else:
                source = _find(usual, texts) or _find(usual.partition("-")[0], texts)  # en-US may stand for en
                others |= texts.keys() - {source} if source else set()
                target = next((name for name in texts if name != source), None)
            if len(others) > 1:
                for _, _, more in units:
                    known |= more.keys() if len(known) < MOST else set()
                self._refuse("holds more than two languages", known, line)
            pair = TextPair(*(_SPACES.sub(" ", texts[side]).strip(" ") if side else "" for side in (source, target)))
            if all(pair) and source != target:
                kept += 1
                self.found = (source or "", target or "")
                yield line, pair
            else:
                self.left_out += 1
        if self.left_out and not kept:
            self._refuse(f"none of {counted(self.left_out, 'unit')} has both texts and is translated", known)

    def _refuse(self, message: str, known: set[str], line: int = 1) -> NoReturn:
        there = ", ".join(repr(name[:30]) for name in sorted(known)[:20]) or "none"
        choose = f": name two by {Option('columns', 'en,de')}" if len(known) > 1 else ""
        raise RegardError(f"{message}; there are {there}{choose}", self.at(line))


def _find(wanted: str, texts: Mapping[str, str]) -> str | None:
    """The language that is meant: itself, or else the first that is a kind of it."""
    wanted = _plain(wanted)
    return wanted if wanted in texts else next((name for name in texts if name.startswith(f"{wanted}-")), None)


def _plain(language: str) -> str:
    return language.lower().replace("_", "-")


@dataclass
class XmlMemory(Memory):
    """TMX: texts in two or more languages a unit; or XLIFF: a source and its target."""

    def units(self, notes: InvalidLines) -> Iterator[Unit]:
        """Every unit; of inline elements only the text is kept.

        Raises:
            RegardError: it is cut off, no XML, or declares entities, which may be bombs or other files.
        """
        reader, read = _UnitReader(), 0
        parser, line = reader.parser, 1
        with open_bytes(self.path) as stream:
            try:
                while piece := stream.read(BLOCK):
                    parser.Parse(piece)
                    line = parser.CurrentLineNumber
                    read += len(piece)
                    yield from reader.take()
                    if read - parser.CurrentByteIndex > LONGEST:
                        raise RegardError(TOO_LONG)
                parser.Parse(b"", True)
                yield from reader.take()
            except expat.ExpatError as error:
                message = f"is not XML, or is cut off: {expat.ErrorString(error.code)}"
                raise RegardError(message, self.at(error.lineno)) from None
            except (LookupError, ValueError) as error:
                raise RegardError(f"its encoding is not known: {error}", self.at(1)) from None
            except FAULTS as error:
                raise RegardError(error_text(error), self.at(line)) from None
            except RegardError as error:
                raise RegardError(error.message, self.at(parser.CurrentLineNumber)) from None


class _UnitReader:
    """Units collected from the events of a parser."""

    def __init__(self) -> None:
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler, self.parser.EndElementHandler = self._start, self._end
        self.parser.CharacterDataHandler = self._add
        self.parser.EntityDeclHandler = self.parser.SkippedEntityHandler = self._refuse_entity
        self._path, self._found = ["", ""], list[Unit]()
        self._source, self._target, self._state = "source", "target", ""
        self._begin(0)

    def take(self) -> list[Unit]:
        """The units that have ended since."""
        found, self._found = self._found, []
        return found

    def _begin(self, line: int) -> None:
        self._line, self._size, self._language = line, 0, ""
        self._texts, self._pieces = dict[str, str](), list[str]()
        self._inside = 0  # depth of the element of text that is open

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._path.append(name := name.rpartition(":")[2])
        if len(self._path) > DEEPEST:
            raise RegardError("has elements nested too deeply")
        if name in ("header", "xliff", "file"):
            self._source = _first(attributes, "srclang", "srcLang", "source-language") or self._source
            self._target = _first(attributes, "trgLang", "target-language") or self._target
        elif name in ("tu", "trans-unit", "segment"):
            self._begin(self.parser.CurrentLineNumber)
            self._state = attributes.get("state", "")
        elif name == "tuv":
            self._language = _first(attributes, "xml:lang", "lang")
        elif (self._path[-2], name) in TEXTS and not self._inside:
            translated = name != "target" or attributes.get("state", self._state) not in UNTRANSLATED
            self._inside = len(self._path) if translated else 0
            if name != "seg":
                self._language = self._source if name == "source" else self._target

    def _add(self, text: str) -> None:
        if self._inside and CODES.isdisjoint(self._path[self._inside :]):
            self._pieces.append(text)
            self._grow(len(text))

    def _end(self, name: str) -> None:
        if len(self._path) == self._inside:
            self._texts.setdefault(self._language, "".join(self._pieces))
            self._pieces, self._inside = [], 0
            self._grow(len(self._language) + 100)  # an empty text takes memory too
        if self._path.pop() in ("tu", "trans-unit", "segment"):
            self._found.append((self._line, self._source, self._texts))

    def _grow(self, size: int) -> None:
        self._size += size
        if self._size > LONGEST:
            raise RegardError(TOO_LONG)

    def _refuse_entity(self, name: str, *rest: object) -> NoReturn:
        raise RegardError(f"the entity {name[:30]!r} is not one of XML's own; write its text instead")


def _first(attributes: Mapping[str, str], *names: str) -> str:
    """The language that the first of these attributes names."""
    return next((_plain(attributes[name]) for name in names if attributes.get(name)), "")


@dataclass
class Catalogue(Memory):
    """PO: a ``msgid`` and its ``msgstr``; of plural forms the first. Fuzzy and obsolete entries are not translated."""

    def units(self, notes: InvalidLines) -> Iterator[Unit]:
        """Every entry but the header.

        Raises:
            RegardError: a line or an entry is not of such a file; or its header tells another encoding than UTF-8.
        """
        entry, last, begin, size, translated = dict[str, list[str]](), "", 1, 0, True
        for number, line in enumerate(lines(self.path, notes), 1):
            if not (match := _PO_LINE.fullmatch(line)):
                raise RegardError("is no line of a PO file; is a quote missing?", self.at(number))
            old, keyword, text, comment = match.groups()
            if entry and (comment or keyword == "msgctxt" or (keyword == "msgid" and last != "msgctxt")):
                yield from self._unit(entry, begin, translated)
                entry, last, size, translated = {}, "", 0, True
            if old or (comment and comment.startswith("#,") and "fuzzy" in comment):
                translated = False
            if text is None:
                continue
            begin = begin if entry else number
            last, size = keyword or last, size + len(line)
            if not last or keyword in entry or size > LONGEST:
                raise RegardError(TOO_LONG if size > LONGEST else "does not belong to an entry", self.at(number))
            entry.setdefault(last, []).append(_ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[0]), text))
        if entry:
            yield from self._unit(entry, begin, translated)

    def _unit(self, entry: Mapping[str, list[str]], line: int, translated: bool) -> Iterator[Unit]:
        source, target = entry.get("msgid"), entry.get("msgstr", entry.get("msgstr[0]"))
        if source is None or target is None:
            raise RegardError("this entry lacks its msgid or msgstr; is the file cut off?", self.at(line))
        texts = {"msgid": "".join(source), "msgstr": "".join(target)}
        if texts["msgid"] or "msgctxt" in entry:
            yield (
                line,
                "msgid",
                {name: text for name, text in texts.items() if name == "msgid" or (text and translated)},
            )
        elif (found := re.search(r"charset=([\w-]+)", texts["msgstr"])) and found[1].lower() not in CHARSETS:
            raise RegardError(f"is in {found[1]}; convert it with `msgconv -t UTF-8`", self.at(line))


MEMORIES: dict[str, type[Memory]] = {".tmx": XmlMemory, ".xlf": XmlMemory, ".xliff": XmlMemory, ".po": Catalogue}
"""What reads the files of each ending."""

"""The lexicon: nouns, verbs, adjectives and closed classes in both languages, read from the tables in ``tables``.

A line of a table is an entry, its cells are the entry's fields in their order, ``-`` is an empty cell, and ``#`` begins
a comment. The sentences that a seed draws depend on the order of the lines.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from functools import cache, cached_property
from importlib.resources import files
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError

from regard.system.errors import RegardError

_SHORT_VOWEL = re.compile("[^aeiou][aeiou][^aeiouwxy]$")

Filled = Annotated[str, Field(min_length=1)]
Group = Literal["person", "animal", "thing", "place", "food", "drink", "plant", "tale"]
Frame = Literal["transitive", "dative", "giving", "resting", "moving", "travelling", "pronoun", "saying", "trying"]

NEUTRAL = frozenset("old new brown black white grey red green blue yellow strange modern".split())
"""Adjectives that do not tell which of two nouns a pronoun refers to."""


def _listing(cell: str) -> list[str]:
    return cell.split(",") if cell else []


def _check_kinds(kinds: tuple[str, ...]) -> tuple[str, ...]:
    unknown = set(kinds).difference(*(noun.kinds for noun in NOUNS))
    if unknown:
        raise ValueError(f"no noun is of the kind {', '.join(sorted(unknown))}")
    return kinds


def _check_adjective(english: str) -> str:
    if english not in {adjective.english for adjective in ADJECTIVES}:
        raise ValueError(f"{english} is no adjective of this lexicon")
    return english


Kinds = Annotated[tuple[Filled, ...], BeforeValidator(_listing), AfterValidator(_check_kinds)]


@dataclass(frozen=True, eq=False)
class Entry:
    """A line of a table."""


E = TypeVar("E", bound=Entry)


@dataclass(frozen=True, eq=False)
class Adjective(Entry):
    """An adjective: the English word, the German predicate form, and the stem that takes endings.

    Args:
        groups: of the nouns before which it stands.
        said_of: further kinds of nouns that *are* so.
    """

    english: Filled
    german: Filled
    stem: Filled
    groups: Annotated[frozenset[Group], BeforeValidator(_listing)]
    said_of: Kinds


@dataclass(frozen=True, eq=False)
class Noun(Entry):
    """A noun in both languages; masses have no plural."""

    english: Filled
    english_plural: str
    german: Filled
    gender: Literal["m", "f", "n"]
    german_plural: str
    group: Group
    further_kinds: Annotated[frozenset[Filled], BeforeValidator(_listing)]

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The group and what else it is."""
        return self.further_kinds | {self.group}

    @cached_property
    def adjectives(self) -> tuple[Adjective, ...]:
        """The adjectives that may stand before it."""
        fitting = [adjective for adjective in ADJECTIVES if self.group in adjective.groups]
        unfit = ("old", "rich", "elegant") if "junior" in self.kinds else ()
        return tuple(adjective for adjective in fitting if adjective.english not in unfit)

    @cached_property
    def neutral(self) -> tuple[Adjective, ...]:
        """Those of them that do not tell which of two nouns a pronoun refers to."""
        return tuple(adjective for adjective in self.adjectives if adjective.english in NEUTRAL)

    @cached_property
    def qualities(self) -> tuple[Adjective, ...]:
        """The adjectives that may be said of it: those before it, and a few more."""
        further = [adjective for adjective in ADJECTIVES if self.kinds.intersection(adjective.said_of)]
        return (*self.adjectives, *further)

    @property
    def countable(self) -> bool:
        """Whether it has a plural and takes *a*."""
        return self.english_plural != ""

    @property
    def dative_plural(self) -> str:
        """The German dative plural: adds -n unless the plural ends in -n or -s; none where there is no plural."""
        return self.german_plural + ("" if self.german_plural[-1:] in ("", "n", "s") else "n")


@dataclass(frozen=True, eq=False)
class Comparative(Entry):
    """A comparative and the kinds of nouns it compares; ``base`` is the English positive."""

    english: Filled
    german: Filled
    kinds: Kinds
    base: Annotated[str, AfterValidator(_check_adjective)]


@dataclass(frozen=True, eq=False)
class Verb(Entry):
    """A verb with every form it needs; German forms leave a separable prefix apart (``prefix``)."""

    frame: Frame
    english: Filled
    english_past: Filled
    english_participle: Filled
    prefix: str
    stem_infinitive: Filled
    third: Filled
    past: Filled
    participle: Filled
    perfect: Literal["haben", "sein"]
    subjects: Kinds
    objects: Kinds

    @cached_property
    def english_third(self) -> str:
        """The English third person singular: *carry* → *carries*, *wash* → *washes*, *buy* → *buys*."""
        base = self.english
        if base.endswith(("s", "x", "z", "ch", "sh", "o")):
            return base + "es"
        return base[:-1] + "ies" if base.endswith("y") and base[-2] not in "aeiou" else base + "s"

    @cached_property
    def english_present_participle(self) -> str:
        """The form in *-ing*: *dance* → *dancing*, *see* → *seeing*, *run* → *running*, *travel* → *travelling*."""
        base, past = self.english, self.english_past
        if base.endswith("ie"):
            base = base[:-2] + "y"
        elif base.endswith("e") and not base.endswith("ee"):
            base = base[:-1]
        elif past == f"{base}{base[-1]}ed" or (not past.endswith("ed") and _SHORT_VOWEL.search(base)):
            base += base[-1]
        return base + "ing"

    @cached_property
    def first(self) -> str:
        """The German first person singular, without its prefix: *schlafe*, *sammle*, *füttere*, *weiß*."""
        stem = self.stem_infinitive.removesuffix("n").removesuffix("e")
        if self.english == "know":
            return self.third
        return stem[:-2] + "le" if stem.endswith("el") else stem + "e"

    @property
    def infinitive(self) -> str:
        """The infinitive as one word, e.g. *aufräumen*."""
        return self.prefix + self.stem_infinitive

    @property
    def past_plural(self) -> str:
        """The third person plural of the past: *kaufte* → *kauften*, *fand* → *fanden*."""
        return self.past + ("n" if self.past.endswith("e") else "en")


@dataclass(frozen=True, eq=False)
class Word(Entry):
    """A word without endings, of one of the closed classes."""

    kind: Literal["number", "city", "adverb", "name"]
    english: Filled
    german: Filled


@dataclass(frozen=True, eq=False)
class Example(Entry):
    """A simple sentence that people type first, which nothing is generated from, and its German."""

    english: Filled
    german: Filled


def read_entries(kind: type[E]) -> tuple[E, ...]:
    """The entries of one kind, in the order of their table.

    Raises:
        RegardError: a line has too few or too many cells, or one that its field does not take.
    """
    table = f"tables/{kind.__name__.lower()}s.tsv"
    names = [field.name for field in fields(kind)]
    adapter = TypeAdapter(kind)
    found = []
    for number, line in enumerate((files(__package__) / table).read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("#"):
            continue
        cells = ["" if cell == "-" else cell for cell in line.split("\t")]
        if len(cells) != len(names):
            raise RegardError(f"{len(cells)} cells instead of {len(names)}: {', '.join(names)}", f"{table}:{number}")
        try:
            found.append(adapter.validate_python(dict(zip(names, cells, strict=True))))
        except ValidationError as error:
            first = error.errors()[0]
            message = f"{'.'.join(map(str, first['loc']))}: {first['msg']}, not {first['input']!r}"
            raise RegardError(message, f"{table}:{number}") from None
    return tuple(found)


NOUNS = read_entries(Noun)
ADJECTIVES = read_entries(Adjective)
VERBS = read_entries(Verb)
COMPARATIVES = read_entries(Comparative)
WORDS = read_entries(Word)


@cache
def nouns_of(kinds: tuple[str, ...]) -> tuple[Noun, ...]:
    """The nouns that are of one of the kinds."""
    return tuple(entry for entry in NOUNS if entry.kinds.intersection(kinds))


@cache
def verbs_of(*frames: Frame) -> tuple[Verb, ...]:
    """The verbs of these frames."""
    return tuple(entry for entry in VERBS if entry.frame in frames)


@cache
def closed_class(kind: str) -> tuple[Word, ...]:
    """The words of a closed class."""
    return tuple(entry for entry in WORDS if entry.kind == kind)


adjective = {entry.english: entry for entry in ADJECTIVES}.__getitem__
"""The adjective with this English word."""
noun = {entry.english: entry for entry in NOUNS}.__getitem__
"""The noun with this English singular."""
verb = {entry.english: entry for entry in reversed(VERBS)}.__getitem__
"""The first verb with this English base form."""

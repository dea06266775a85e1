"""Lexicon: nouns, verbs and adjectives parsed from the tables, and lookup by kind."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from regard.data.demo.grammar.lexicon import adjectives, nouns, verbs, words

GROUPS = {
    "person": "p",
    "animal": "a",
    "thing": "t",
    "place": "l",
    "food": "f",
    "drink": "d",
    "plant": "v",
    "tale": "s",
}


@dataclass(frozen=True, eq=False, slots=True)
class Noun:
    """A noun in both languages; ``german_plural`` is the nominative, ``dative_plural`` adds its -n."""

    english: str
    english_plural: str
    german: str
    gender: str
    german_plural: str
    dative_plural: str
    group: str
    kinds: frozenset[str]
    adjectives: tuple[Adjective, ...]
    neutral: tuple[Adjective, ...]

    @property
    def countable(self) -> bool:
        """Whether it has a plural and takes *a*."""
        return self.english_plural != "-"


@dataclass(frozen=True, eq=False, slots=True)
class Adjective:
    """An adjective: the English word, the German predicate form, and the stem that takes endings."""

    english: str
    german: str
    stem: str
    groups: str


@dataclass(frozen=True, eq=False, slots=True)
class Comparative:
    """A comparative and the kinds of nouns it compares; ``base`` is the English positive."""

    english: str
    german: str
    kinds: tuple[str, ...]
    base: str


@dataclass(frozen=True, eq=False, slots=True)
class Verb:
    """A verb with every form it needs; German forms leave a separable prefix apart (``prefix``)."""

    english: str
    english_third: str
    english_past: str
    english_participle: str
    prefix: str
    stem_infinitive: str
    third: str
    past: str
    participle: str
    perfect: str
    subjects: tuple[str, ...]
    objects: tuple[str, ...]

    @property
    def infinitive(self) -> str:
        """The infinitive as one word, e.g. *aufräumen*."""
        return self.prefix + self.stem_infinitive

    @property
    def past_plural(self) -> str:
        """The third person plural of the past: *kaufte* → *kauften*, *fand* → *fanden*."""
        return self.past + ("n" if self.past.endswith("e") else "en")


def third_person(base: str) -> str:
    """The English third person singular: *carry* → *carries*, *wash* → *washes*, *buy* → *buys*."""
    if base.endswith(("s", "x", "z", "ch", "sh", "o")):
        return base + "es"
    if base.endswith("y") and base[-2] not in "aeiou":
        return base[:-1] + "ies"
    return base + "s"


def dative_plural(plural: str) -> str:
    """The German dative plural: adds -n unless the plural ends in -n or -s."""
    return plural if plural.endswith(("n", "s", "-")) else plural + "n"


def rows(table: str) -> list[list[str]]:
    """The non-empty lines of a table, split at spaces."""
    return [line.split() for line in table.splitlines() if line.strip()]


NEUTRAL = frozenset("old new brown black white grey red green blue yellow strange modern".split())


@cache
def all_adjectives() -> tuple[Adjective, ...]:
    """Every adjective of the table, in its order."""
    return tuple(
        Adjective(english, german, german if stem == "=" else stem, groups.strip("-"))
        for english, german, stem, groups in rows(adjectives.ADJECTIVES)
    )


@cache
def all_nouns() -> tuple[Noun, ...]:
    """Every noun of the table, in its order."""
    return tuple(_noun(row) for row in rows(nouns.NOUNS))


def _noun(row: list[str]) -> Noun:
    english, english_plural, german, gender, plural, group, *kinds = row
    fitting = tuple(adjective for adjective in all_adjectives() if GROUPS[group] in adjective.groups)
    if "junior" in kinds:
        fitting = tuple(adjective for adjective in fitting if adjective.english not in ("old", "rich", "elegant"))
    neutral = tuple(adjective for adjective in fitting if adjective.english in NEUTRAL)
    every_kind = frozenset((group, *kinds))
    return Noun(
        english, english_plural, german, gender, plural, dative_plural(plural), group, every_kind, fitting, neutral
    )


@cache
def all_verbs(frame: str) -> tuple[Verb, ...]:
    """The verbs of one frame, e.g. ``"TRANSITIVE"`` (the names of the tables in :mod:`.verbs`)."""
    return tuple(_verb(row) for row in rows(getattr(verbs, frame)))


def _verb(row: list[str]) -> Verb:
    base, past, participle, infinitive, third, german_past, german_participle, auxiliary, subjects, objects = row
    prefix, _, stem = infinitive.rpartition("|")
    perfect = "sein" if auxiliary == "s" else "haben"
    english = (base, third_person(base), past, participle)
    german = (prefix, stem, third, german_past, german_participle, perfect)
    return Verb(*english, *german, tuple(subjects.split(",")), tuple(objects.strip("-").split(",")))


FRAMES = ("TRANSITIVE", "DATIVE", "GIVING", "RESTING", "MOVING", "TRAVELLING", "PRONOUN", "SAYING", "TRYING")


@cache
def all_comparatives() -> tuple[Comparative, ...]:
    """Every comparative of the table."""
    return tuple(
        Comparative(english, german, tuple(kinds.split(",")), base)
        for english, german, kinds, base in rows(adjectives.COMPARATIVES)
    )


@cache
def nouns_of(kinds: tuple[str, ...]) -> tuple[Noun, ...]:
    """The nouns that are of one of the kinds."""
    return tuple(noun for noun in all_nouns() if noun.kinds.intersection(kinds))


@cache
def adjective(english: str) -> Adjective:
    """The adjective with this English word."""
    return next(entry for entry in all_adjectives() if entry.english == english)


@cache
def noun(english: str) -> Noun:
    """The noun with this English singular."""
    return next(entry for entry in all_nouns() if entry.english == english)


@cache
def verb(english: str) -> Verb:
    """The verb with this English base form (the first table that has it, in the order of ``FRAMES``)."""
    return next(entry for frame in FRAMES for entry in all_verbs(frame) if entry.english == english)


def lemmas() -> tuple[str, ...]:
    """Every English lemma of the language, once, sorted: the vocabulary as a dictionary would count it."""
    found: set[str] = {entry.english for entry in all_nouns()}
    found.update(entry.english for entry in all_adjectives())
    found.update(entry.english for frame in FRAMES for entry in all_verbs(frame))
    found.update(row[0] for row in rows(words.DETERMINERS + words.NUMBER_WORDS + words.CITIES + words.MIDDLE_ADVERBS))
    found.update(words.NAMES, _time_words(row[0] for row in rows(words.TIMES)), words.FUNCTION_WORDS.split())
    found.update(entry.base for entry in all_comparatives())
    return tuple(sorted(found))


def _time_words(phrases: Iterable[str]) -> set[str]:
    """The words of the times; plural *days* counts as *day*."""
    return {"day" if word == "days" else word for phrase in phrases for word in phrase.split("_")}

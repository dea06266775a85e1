"""Phrases in both languages: noun phrases and their declension, names, personal pronouns, places, times.

An English word is (text, link); a German word is (text, links): the links of the English words it translates.
A link is a number that no other word has; word alignments are read off the links when the sentence is finished.
A slot of a German declension is two letters: the case (n nominative, a accusative, d dative) and the gender (m, f, n)
or number (p plural).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property
from itertools import count
from typing import Annotated, Literal, Protocol

from pydantic import BeforeValidator, Field

from regard.runs.demo.grammar.lexicon import Adjective, Entry, Noun, closed_class, read_entries

Source = list[tuple[str, int]]
Target = list[tuple[str, tuple[int, ...]]]

COMMA = ","
NO_LINK = -1
DIGITS = range(13, 100)
"""Numbers written in digits."""

SLOTS = tuple(case + gender for case in "nad" for gender in "mfnp")


def _slots(forms: str) -> dict[str, str]:
    """Forms or endings in the order of ``SLOTS``, ``-`` for none."""
    return dict(zip(SLOTS, forms.replace("-", "").split(" "), strict=True))


_STRONG = _slots("er e es e en e es e em er em en")
_WEAK = _slots("e e e en en e e en en en en en")
_MIXED = _slots("er e es en en e es en en en en en")
_DER = _slots("der die das die den die das die dem der dem den")

# The endings of each model of determiner, and those of the adjective after it.
_MODELS = {
    "der": (_DER, _WEAK),
    "dieser": (_STRONG, _WEAK),
    "ein": (_slots("- e - e en e - e em er em en"), _MIXED),
    "viele": (_STRONG, _STRONG),
    "zwei": (dict.fromkeys(SLOTS, ""), _STRONG),
}
RELATIVE = {**_DER, "dp": "denen"}
"""The relative pronoun: the article, but *denen* in the dative plural."""

PRONOUN = {"m": "er", "f": "sie", "n": "es"}
"""The German personal pronoun, nominative singular, of each gender."""

_CONTRACTIONS = {("in", "dem"): "im", ("in", "das"): "ins"}
_PRONOUNS = {
    "I": ("1s", "ich"),
    "he": ("3s", "er"),
    "she": ("3s", "sie"),
    "we": ("1p", "wir"),
    "they": ("3p", "sie"),
    "it": ("3s", "es"),
    "who": ("3s", "wer"),
    "what": ("3s", "was"),
}


take_links = count(step=8).__next__
"""The first of eight fresh links."""


def words(*pairs: tuple[str, str]) -> tuple[Source, Target]:
    """English and German words that translate each other one by one, in the same order."""
    link = take_links()
    source = [(english, link + place) for place, (english, _) in enumerate(pairs)]
    return source, [(german, (link + place,)) for place, (_, german) in enumerate(pairs)]


class Nominal(Protocol):
    """What can be a subject: it has a person for the verb, a key for held-out combinations, and words."""

    person: str
    key: str
    definite: bool
    """Whether it goes before *nicht* and *schon*."""

    def english(self) -> Source:
        """The English words."""

    def german(self, case: str) -> Target:
        """The German words in a case (n, a or d)."""


@dataclass(frozen=True, eq=False)
class Determiner(Entry):
    """A determiner: its English word for each number, its German stem, and the model whose endings it takes."""

    english: str
    english_plural: str
    stem: str
    model: Literal["der", "dieser", "ein", "viele", "zwei"]

    @cached_property
    def forms(self) -> dict[str, str]:
        """The German word in each slot."""
        return {slot: self.stem + ending for slot, ending in _MODELS[self.model][0].items()}

    @cached_property
    def definite(self) -> bool:
        """Whether its phrase goes before *nicht* and *schon*."""
        return self.english not in ("a", "") and _MODELS[self.model][1] is not _STRONG


@cache
def determiners() -> dict[str, Determiner]:
    """All determiners by their English singular; ``""`` is none at all, and *not a* and *not any* are *kein*."""
    numbers = [(word.english, word.german) for word in closed_class("number")]
    numbers += [(str(number), str(number)) for number in DIGITS]
    return {
        **{determiner.english: determiner for determiner in read_entries(Determiner)},
        **{english: Determiner(english, english, german, "zwei") for english, german in [*numbers, ("", "")]},
        "not a": Determiner("a", "", "kein", "ein"),
        "not any": Determiner("", "", "kein", "ein"),
    }


class NounPhrase:
    """A determiner, perhaps an adjective, and a noun, singular or plural.

    ``link`` is the determiner's link, ``link + 1`` the adjective's, ``link + 2`` the noun's; ``also`` holds further
    links of the German determiner (*didn't … a* → *kein*).
    """

    __slots__ = ("adjective", "also", "definite", "determiner", "gender", "key", "link", "noun", "person", "plural")

    def __init__(self, determiner: Determiner, adjective: Adjective | None, noun: Noun, plural: bool) -> None:
        self.determiner, self.definite = determiner, determiner.definite
        self.adjective, self.noun, self.plural = adjective, noun, plural
        self.gender = "p" if plural else noun.gender
        self.person = "3p" if plural else "3s"
        self.key = noun.english
        self.link = take_links()
        self.also: tuple[int, ...] = ()

    def english(self) -> Source:
        """E.g. *an old table*; *a* or *an* by the sound that follows (*a useful map*)."""
        source = [(self.noun.english_plural if self.plural else self.noun.english, self.link + 2)]
        if self.adjective is not None:
            source.insert(0, (self.adjective.english, self.link + 1))
        word = self.determiner.english_plural if self.plural else self.determiner.english
        if word:
            after = source[0][0]
            vowel = after[0] in "aeiou" and not after.startswith(("use", "uni"))
            source.insert(0, ("an" if word == "a" and vowel else word, self.link))
        return source

    def german(self, case: str) -> Target:
        """E.g. *einen alten Tisch*."""
        slot = case + self.gender
        target: Target = []
        if self.determiner.stem or self.determiner.model == "der":
            own = (self.link,) if self.determiner.english else ()
            target.append((self.determiner.forms[slot], (*own, *self.also)))
        if self.adjective is not None:
            target.append((self.adjective.stem + _MODELS[self.determiner.model][1][slot], (self.link + 1,)))
        noun = self.noun
        plural = noun.dative_plural if case == "d" else noun.german_plural
        target.append((plural if self.plural else noun.german, (self.link + 2,)))
        return target


class FixedPhrase:
    """Words that are the same in every case."""

    definite = True

    def __init__(self, key: str, person: str, *pairs: tuple[str, str]) -> None:
        self.key, self.person = key, person
        self._source, self._target = words(*pairs)
        self.link = self._source[0][1]

    def english(self) -> Source:
        """The English words."""
        return self._source

    def german(self, case: str) -> Target:
        """The German words."""
        return self._target


class Name(FixedPhrase):
    """One name, or two joined by *and*: *Anna*, *Anna and Paul*; they have no case endings."""

    def __init__(self, first: str, *second: str) -> None:
        both = [pair for name in second for pair in (("and", "und"), (name, name))]
        super().__init__(" ".join((first, *second)), "3p" if second else "3s", (first, first), *both)


class PronounPhrase(FixedPhrase):
    """A personal or interrogative pronoun as subject; *it* has the ``german`` gender of the noun that it stands for.

    Only the nominative exists in this language.
    """

    def __init__(self, english: str, german: str = "") -> None:
        person, usual = _PRONOUNS[english]
        super().__init__(english, person, (english, german or usual))


class Coordination:
    """Two noun phrases joined by *and*."""

    person = "3p"

    def __init__(self, first: NounPhrase, second: NounPhrase) -> None:
        self.parts = first, second
        self.definite = first.definite and second.definite
        self.key = first.key
        self._and, self._und = words(("and", "und"))

    def english(self) -> Source:
        """E.g. *the cat and a dog*."""
        first, second = self.parts
        return [*first.english(), *self._and, *second.english()]

    def german(self, case: str) -> Target:
        """E.g. *die Katze und ein Hund*."""
        first, second = self.parts
        return [*first.german(case), *self._und, *second.german(case)]


class Prepositional:
    """A preposition with its noun phrase; *in dem* contracts to *im*."""

    def __init__(self, english: str, german: str, case: str, noun: NounPhrase) -> None:
        self.preposition = english, german
        self.case = case
        self.noun = noun
        self.link = take_links()

    def english(self) -> Source:
        """E.g. *in the garden*."""
        return [(self.preposition[0], self.link), *self.noun.english()]

    def german(self) -> Target:
        """E.g. *im Garten*."""
        german = self.preposition[1]
        first, *rest = self.noun.german(self.case)
        contracted = _CONTRACTIONS.get((german, first[0]))
        if contracted is not None:
            return [(contracted, (self.link, *first[1])), *rest]
        return [(german, (self.link,)), first, *rest]


def _pairs(cell: str) -> list[list[str]]:
    return [pair.split("-") for pair in cell.split()]


@dataclass(frozen=True, eq=False)
class Time(Entry):
    """A time in fixed words: *last week*, *letzte Woche*.

    ``tenses`` are those it fits, n present, p past, m after a modal verb; ``alignment`` are pairs of an English and a
    German word.
    """

    english_words: Annotated[tuple[str, ...], BeforeValidator(str.split)]
    german_words: Annotated[tuple[str, ...], BeforeValidator(str.split)]
    tenses: Annotated[str, Field(pattern="^[npm]+$")]
    alignment: Annotated[tuple[tuple[int, int], ...], BeforeValidator(_pairs)]

    def english(self, link: int) -> Source:
        """The English words, linked from ``link`` on."""
        return [(word, link + place) for place, word in enumerate(self.english_words)]

    def german(self, link: int) -> Target:
        """The German words."""
        return [
            (word, tuple(link + english for english, german in self.alignment if german == place))
            for place, word in enumerate(self.german_words)
        ]


TIMES = read_entries(Time)


@cache
def times(tense: str) -> tuple[Time, ...]:
    """The times that fit a tense: n present, p past, m after a modal verb."""
    return tuple(time for time in TIMES if tense in time.tenses)

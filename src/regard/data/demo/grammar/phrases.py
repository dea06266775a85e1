"""Phrases in both languages: noun phrases, names, personal pronouns, prepositional phrases, times.

An English word is (text, link); a German word is (text, links): the links of the English words it translates.
Links are unique in a sentence, and word alignments are read off them when the sentence is finished.
"""

from __future__ import annotations

from functools import cache
from typing import Protocol

from regard.data.demo.grammar.lexicon import words
from regard.data.demo.grammar.lexicon.declension import (
    ADJECTIVE_ENDINGS,
    contract,
    decline_noun,
    determiner_forms,
)
from regard.data.demo.grammar.lexicon.entries import Adjective, Noun, rows

Source = list[tuple[str, int]]
Target = list[tuple[str, tuple[int, ...]]]

COMMA = ","
NO_LINK = -1


class Links:
    """Hands out links for one sentence."""

    def __init__(self) -> None:
        self.next = 0

    def take(self, count: int = 1) -> int:
        """The first of ``count`` fresh links."""
        first = self.next
        self.next += count
        return first


class Nominal(Protocol):
    """What can be a subject: it has a person for the verb, a key for held-out combinations, and words."""

    person: str
    key: str

    def english(self) -> Source:
        """The English words."""

    def german(self, case: str) -> Target:
        """The German words in a case (n, a or d)."""


class Determiner:
    """A determiner: English word for each number, declension of the adjective after it, and its German forms."""

    def __init__(self, english: tuple[str, str], declension: str, forms: dict[str, str], definite: bool) -> None:
        self.english = english
        self.declension = declension
        self.forms = forms
        self.definite = definite


_MANY = {"np": "viele", "ap": "viele", "dp": "vielen"}
_NOT_A = determiner_forms("kein", "e")


@cache
def determiners() -> dict[str, Determiner]:
    """All determiners by their English singular (plural where they have no singular); ``""`` is none at all."""
    table = {}
    for singular, plural, stem, kind in rows(words.DETERMINERS):
        declension = "weak" if kind == "d" else "mixed"
        table[singular] = Determiner((singular, plural), declension, determiner_forms(stem, kind), singular != "a")
    for english, german in rows(words.NUMBER_WORDS):
        table[english] = Determiner((english, english), "strong", dict.fromkeys(_MANY, german), False)
    table["many"] = Determiner(("many", "many"), "strong", _MANY, False)
    table[""] = Determiner(("", ""), "strong", {}, False)
    table["not a"] = Determiner(("a", ""), "mixed", _NOT_A, False)
    return table


def numeral(number: int) -> Determiner:
    """A number in digits before a plural noun."""
    return Determiner((str(number), str(number)), "strong", dict.fromkeys(_MANY, str(number)), False)


def indefinite_article(next_word: str) -> str:
    """*a* or *an*, by the sound that follows: *a useful map*, *an old map*."""
    return "an" if next_word[0] in "aeiou" and not next_word.startswith(("use", "uni")) else "a"


class NounPhrase:
    """A determiner, perhaps an adjective, and a noun, singular or plural.

    ``link`` is the determiner's link, ``link + 1`` the adjective's, ``link + 2`` the noun's; ``also`` holds further
    links of the German determiner (*didn't … a* → *kein*).
    """

    __slots__ = ("adjective", "also", "determiner", "gender", "key", "link", "noun", "person", "plural")

    def __init__(
        self, determiner: Determiner, adjective: Adjective | None, noun: Noun, plural: bool, links: Links
    ) -> None:
        self.determiner = determiner
        self.adjective = adjective
        self.noun = noun
        self.plural = plural
        self.gender = "p" if plural else noun.gender
        self.person = "3p" if plural else "3s"
        self.key = noun.english
        self.link = links.take(3)
        self.also: tuple[int, ...] = ()

    @property
    def definite(self) -> bool:
        """Whether it goes before *nicht* and *schon*."""
        return self.determiner.definite

    def english(self) -> Source:
        """E.g. *an old table*."""
        noun = self.noun
        link = self.link
        source = [(noun.english_plural if self.plural else noun.english, link + 2)]
        if self.adjective is not None:
            source.insert(0, (self.adjective.english, link + 1))
        determiner = self.determiner.english[self.plural]
        if determiner:
            determiner = indefinite_article(source[0][0]) if determiner == "a" else determiner
            source.insert(0, (determiner, link))
        return source

    def german(self, case: str) -> Target:
        """E.g. *einen alten Tisch*."""
        slot = case + self.gender
        link = self.link
        target: Target = []
        if self.determiner.forms:
            target.append((self.determiner.forms[slot], (link, *self.also)))
        if self.adjective is not None:
            ending = ADJECTIVE_ENDINGS[self.determiner.declension][slot]
            target.append((self.adjective.stem + ending, (link + 1,)))
        target.append((decline_noun(self.noun, slot), (link + 2,)))
        return target


class Name:
    """One name, or two joined by *and*."""

    definite = True

    def __init__(self, names: tuple[str, ...], links: Links) -> None:
        self.names = names
        self.person = "3s" if len(names) == 1 else "3p"
        self.key = " ".join(names)
        self.link = links.take(3)

    def english(self) -> Source:
        """*Anna*, or *Anna and Paul*."""
        first, *rest = self.names
        source = [(first, self.link)]
        for name in rest:
            source += [("and", self.link + 1), (name, self.link + 2)]
        return source

    def german(self, case: str) -> Target:
        """The same names, joined by *und*; they have no case endings."""
        return [("und" if text == "and" else text, (link,)) for text, link in self.english()]


_PERSONAL = {
    "I": ("1s", "ich"),
    "he": ("3s", "er"),
    "she": ("3s", "sie"),
    "we": ("1p", "wir"),
    "they": ("3p", "sie"),
}


class PersonalPronoun:
    """A personal pronoun as subject."""

    definite = True

    def __init__(self, english: str, links: Links) -> None:
        self.key = english
        self.person, self._german = _PERSONAL[english]
        self.link = links.take()

    def english(self) -> Source:
        """E.g. *she*."""
        return [(self.key, self.link)]

    def german(self, case: str) -> Target:
        """E.g. *sie*; only the nominative exists in this language."""
        return [(self._german, (self.link,))]


class Prepositional:
    """A preposition with its noun phrase; *in dem* contracts to *im*."""

    def __init__(self, english: str, german: str, case: str, noun: NounPhrase, links: Links) -> None:
        self.preposition = english, german
        self.case = case
        self.noun = noun
        self.link = links.take()

    def english(self) -> Source:
        """E.g. *in the garden*."""
        return [(self.preposition[0], self.link), *self.noun.english()]

    def german(self) -> Target:
        """E.g. *im Garten*."""
        german = self.preposition[1]
        first, *rest = self.noun.german(self.case)
        contracted = contract(german, first[0])
        if contracted is not None:
            return [(contracted, (self.link, *first[1])), *rest]
        return [(german, (self.link,)), first, *rest]


class Fixed:
    """Fixed words with their translation, such as a time: *last week*, *letzte Woche*."""

    def __init__(self, english: str, german: str, tenses: str) -> None:
        self._english = english.split("_")
        self._german = german.split("_")
        self.tenses = tenses
        self.repeated = self._english[0] == "every"
        plain = tuple((word, word) for word in range(len(self._english)))
        self._pairs = words.TIME_LINKS.get(" ".join(self._english), plain)
        count = len(self._english)
        same = tuple(tuple(i for i, j in self._pairs if j == position) for position in range(len(self._german)))
        self.count, self._links = count, same

    def english(self, link: int) -> Source:
        """The English words, linked from ``link`` on."""
        return [(word, link + place) for place, word in enumerate(self._english)]

    def german(self, link: int) -> Target:
        """The German words."""
        return [
            (word, tuple(link + place for place in places))
            for word, places in zip(self._german, self._links, strict=True)
        ]


@cache
def times(tense: str) -> tuple[Fixed, ...]:
    """The times that fit a tense: n present, p past, m after a modal verb."""
    return tuple(Fixed(*row) for row in rows(words.TIMES) if tense in row[2])

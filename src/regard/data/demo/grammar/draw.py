"""Random choice of words for the patterns, and drafts of sentences without annotation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from regard.data.demo.grammar.clause import Clause
from regard.data.demo.grammar.lexicon import words
from regard.data.demo.grammar.lexicon.entries import Adjective, Noun, Verb, nouns_of, rows
from regard.data.demo.grammar.phrases import (
    Determiner,
    Links,
    Name,
    Nominal,
    NounPhrase,
    PersonalPronoun,
    Prepositional,
    Source,
    Target,
    determiners,
    numeral,
)

T = TypeVar("T")

POSSESSIVES = ("my", "our", "his", "her", "their")
SUBJECT_SINGULAR = ("the",) * 5 + ("a",) * 2 + ("this",) + POSSESSIVES
SUBJECT_PLURAL = ("the",) * 4 + ("this",) + ("many",) + ("two", "three") + POSSESSIVES
OBJECT_SINGULAR = ("the",) * 5 + ("a",) * 4 + ("this",) + ("my", "his", "her")
OBJECT_PLURAL = ("the",) * 3 + ("",) * 2 + ("this", "many", "my", "their") + ("number",) * 3
DEFINITE = ("the",) * 6 + ("this", *POSSESSIVES)
MASS = ("", "", "", "the")
PERSONAL = ("he", "she", "we", "they")

NUMBER_WORDS = tuple(english for english, _ in rows(words.NUMBER_WORDS))
SMALL_NUMBERS = NUMBER_WORDS[:-2]
"""Persons and animals come in numbers up to twelve."""

DIGITS = range(13, 100)
"""Numbers written in digits."""


@dataclass(slots=True)
class Draft:
    """A sentence before its annotation: words with links, the sign at its end, its phrases and combinations.

    ``pronoun`` is the link of *it* with the antecedent and its rival.
    """

    source: Source
    target: Target
    mark: str = "."
    verb_subject_object: list[tuple[str, str, str]] = field(default_factory=list)
    noun_noun_adjective: list[tuple[str, str, str]] = field(default_factory=list)
    pronoun: tuple[int, NounPhrase, NounPhrase] | None = None
    noun_links: list[int] = field(default_factory=list)


class Draw:
    """Random choices for one sentence after another, from one keyed stream.

    Only ``random()`` of the stream is used, whose values Python keeps the same from version to version.
    """

    def __init__(self, stream: Random) -> None:
        self.uniform: Callable[[], float] = stream.random
        self.links = Links()
        self.noun_links: list[int] = []
        self._determiners = determiners()

    def of(self, choices: Sequence[T]) -> T:
        """One of the choices, all equally likely."""
        return choices[int(self.uniform() * len(choices))]

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.uniform() < probability

    def phrase(self, noun: Noun, plural: bool, determiner: str, adjective: Adjective | None) -> NounPhrase:
        """A noun phrase of given words, its noun noted for the annotation."""
        return self._note(NounPhrase(self._determiners[determiner], adjective, noun, plural, self.links))

    def _note(self, phrase: NounPhrase) -> NounPhrase:
        self.noun_links.append(phrase.link + 2)
        return phrase

    def attribute(self, noun: Noun, probability: float = 0.5) -> Adjective | None:
        """An adjective that fits the noun, or none."""
        return self.of(noun.adjectives) if self.chance(probability) else None

    def subject(self, nouns: Sequence[Noun]) -> NounPhrase:
        """A noun phrase that may begin a sentence."""
        noun = self.of(nouns)
        plural = self.chance(0.3)
        determiner = self.of(SUBJECT_PLURAL if plural else SUBJECT_SINGULAR)
        return self.phrase(noun, plural, determiner, self.attribute(noun))

    def definite(self, nouns: Sequence[Noun], plural: float = 0.25) -> NounPhrase:
        """A definite noun phrase."""
        noun = self.of(nouns)
        many = noun.countable and self.chance(plural)
        return self.phrase(noun, many, self.of(DEFINITE), self.attribute(noun))

    def object(self, nouns: Sequence[Noun], other_than: str = "") -> NounPhrase:
        """A noun phrase for the object; not the noun ``other_than``."""
        noun = self.of(nouns)
        while noun.english == other_than:
            noun = self.of(nouns)
        if not noun.countable:
            return self.phrase(noun, False, self.of(MASS), self.attribute(noun, 0.75))
        plural = self.chance(0.3)
        word = self.of(OBJECT_PLURAL if plural else OBJECT_SINGULAR)
        if word == "number":
            return self.numeral_phrase(noun)
        return self.phrase(noun, plural, word, self.attribute(noun, 0.55))

    def numeral_phrase(self, noun: Noun) -> NounPhrase:
        """A number, in words or in digits, and a plural noun."""
        determiner: Determiner
        if noun.group in ("person", "animal"):
            determiner = self._determiners[self.of(SMALL_NUMBERS)]
        elif self.chance(0.5):
            determiner = self._determiners[self.of(NUMBER_WORDS)]
        else:
            determiner = numeral(self.amount())
        return self._note(NounPhrase(determiner, self.attribute(noun, 0.4), noun, True, self.links))

    def amount(self) -> int:
        """A number of two digits that is written in digits: 13 to 99."""
        return self.of(DIGITS)

    def person(self, kinds: tuple[str, ...], pronouns: Sequence[str] = PERSONAL) -> Nominal:
        """A subject: a noun phrase, or for persons now and then a name, two names, or a personal pronoun."""
        if kinds[-1] != "person" or self.chance(0.68):
            return self.subject(nouns_of(kinds))
        if self.chance(0.45):
            return PersonalPronoun(self.of(pronouns), self.links)
        return self.name(0.3)

    def name(self, two: float = 0.0) -> Name:
        """A name, or with probability ``two`` a pair of names."""
        first = self.of(words.NAMES)
        second = self.of(words.NAMES)
        return Name((first, second) if first != second and self.chance(two) else (first,), self.links)

    def clause(self, verbs: Sequence[Verb], tense: str, pronouns: Sequence[str] = PERSONAL) -> Clause:
        """A clause of one of the verbs: subject, and object if the verb takes one."""
        verb = self.of(verbs)
        subject = self.person(verb.subjects, pronouns)
        clause = Clause(subject, verb, tense, self.links.take(3))
        if verb.objects != ("",):
            clause.object = self.object(nouns_of(verb.objects), subject.key)
        return clause

    def place(self, english: str, german: str, case: str, kinds: tuple[str, ...]) -> Prepositional:
        """A prepositional phrase with a definite noun."""
        return Prepositional(english, german, case, self.definite(nouns_of(kinds)), self.links)

    def draft(self, source: Source, target: Target, mark: str = ".") -> Draft:
        """A draft with the nouns drawn so far."""
        return Draft(source, target, mark, noun_links=self.noun_links)

    def restart(self) -> None:
        """Forget the last sentence."""
        self.links = Links()
        self.noun_links = []


def combination(clause: Clause) -> tuple[str, str, str]:
    """(verb, subject, object) of a clause; the place or receiver stands in where there is no object."""
    if clause.object is not None:
        key = clause.object.key
    elif clause.receiver is not None:
        key = clause.receiver.key
    else:
        key = clause.place.noun.key if clause.place is not None else ""
    return clause.verb.english, clause.subject.key, key

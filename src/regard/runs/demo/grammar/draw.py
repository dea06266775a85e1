"""Random choice of words for the patterns, and drafts of sentences without annotation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import TypeVar

from regard.runs.demo.grammar.clause import Clause
from regard.runs.demo.grammar.lexicon import Adjective, Noun, Verb, closed_class, nouns_of
from regard.runs.demo.grammar.phrases import (
    DIGITS,
    Coordination,
    Name,
    Nominal,
    NounPhrase,
    Prepositional,
    PronounPhrase,
    Source,
    Target,
    determiners,
    times,
    words,
)

T = TypeVar("T")
Combination = tuple[str, str, str]

POSSESSIVES = ("my", "our", "his", "her", "their")
SUBJECT_SINGULAR = ("the",) * 5 + ("a",) * 2 + ("this",) + POSSESSIVES
SUBJECT_PLURAL = ("the",) * 4 + ("this",) + ("many",) + ("two", "three") + POSSESSIVES
OBJECT_SINGULAR = ("the",) * 5 + ("a",) * 4 + ("this",) + ("my", "his", "her")
OBJECT_PLURAL = ("the",) * 3 + ("",) * 2 + ("this", "many", "my", "their") + ("number",) * 3
DEFINITE = ("the",) * 6 + ("this", *POSSESSIVES)
MASS = ("", "", "", "the")
PERSONAL = ("he", "she", "we", "they")
ASKING = {"who": "wer", "what": "was", "where": "wo", "why": "warum"}

NUMBER_WORDS = tuple(number.english for number in closed_class("number"))
SMALL_NUMBERS = NUMBER_WORDS[:-2]
"""Persons and animals come in numbers up to twelve."""


@dataclass(slots=True)
class Draft:
    """A sentence before its annotation: words with links, its combinations, its nouns and the sign at its end.

    ``pronoun`` is the link of *it* with the antecedent and its rival.
    """

    source: Source
    target: Target
    noun_links: list[int]
    combinations: tuple[Combination, ...]
    pronoun: tuple[int, NounPhrase, NounPhrase] | None = None
    mark: str = "."


class Draw:
    """Random choices for one sentence after another, from one keyed stream.

    Only ``random()`` of the stream is used, whose values Python keeps the same from version to version.
    """

    def __init__(self, stream: Random) -> None:
        self.uniform: Callable[[], float] = stream.random
        self.noun_links: list[int] = []

    def of(self, choices: Sequence[T]) -> T:
        """One of the choices, all equally likely."""
        return choices[int(self.uniform() * len(choices))]

    def fitting(self, choices: Sequence[T], fits: Callable[[T], bool]) -> T:
        """One of the choices that fit; another one is drawn again."""
        while not fits(found := self.of(choices)):
            pass
        return found

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.uniform() < probability

    def phrase(self, noun: Noun, plural: bool, determiner: str, adjective: Adjective | None) -> NounPhrase:
        """A noun phrase of given words, its noun noted for the annotation."""
        phrase = NounPhrase(determiners()[determiner], adjective, noun, plural)
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

    def definite(self, nouns: Sequence[Noun], other_than: str = "", described: float = 0.5) -> NounPhrase:
        """A definite noun phrase, ``described`` by an adjective so often; not the noun ``other_than``."""
        while True:
            noun = self.of(nouns)
            plural = noun.countable and self.chance(0.25)
            determiner, adjective = self.of(DEFINITE), self.attribute(noun, described)
            if noun.english != other_than:
                return self.phrase(noun, plural, determiner, adjective)

    def noun(self, nouns: Sequence[Noun], other_than: str) -> Noun:
        """A noun; not ``other_than``."""
        return self.fitting(nouns, lambda noun: noun.english != other_than)

    def object(self, nouns: Sequence[Noun], other_than: str) -> NounPhrase:
        """A noun phrase for the object; not the noun ``other_than``."""
        noun = self.noun(nouns, other_than)
        if not noun.countable:
            return self.phrase(noun, False, self.of(MASS), self.attribute(noun, 0.75))
        plural = self.chance(0.3)
        word = self.of(OBJECT_PLURAL if plural else OBJECT_SINGULAR)
        if word == "number":
            return self.numeral_phrase(noun)
        return self.phrase(noun, plural, word, self.attribute(noun, 0.55))

    def numeral_phrase(self, noun: Noun) -> NounPhrase:
        """A number, in words or in digits, and a plural noun."""
        if noun.group in ("person", "animal"):
            number = self.of(SMALL_NUMBERS)
        elif self.chance(0.5):
            number = self.of(NUMBER_WORDS)
        else:
            number = str(self.of(DIGITS))
        return self.phrase(noun, True, number, self.attribute(noun, 0.4))

    def person(self, kinds: tuple[str, ...], pronouns: Sequence[str] = PERSONAL) -> Nominal:
        """A subject: a noun phrase, or for persons now and then a name, two names, or a personal pronoun."""
        if kinds[-1] != "person" or self.chance(0.68):
            return self.subject(nouns_of(kinds))
        if self.chance(0.45):
            return PronounPhrase(self.of(pronouns))
        return self.name(0.3)

    def name(self, two: float) -> Name:
        """A name, or with probability ``two`` a pair of names."""
        names = closed_class("name")
        first, second = self.of(names), self.of(names)
        pair = first is not second and self.chance(two)
        return Name(first.english, second.english) if pair else Name(first.english)

    def clause(self, verbs: Sequence[Verb], tense: str, pronouns: Sequence[str] = PERSONAL) -> Clause:
        """A clause of one of the verbs: subject, and object if the verb takes one."""
        verb = self.of(verbs)
        clause = Clause(self.person(verb.subjects, pronouns), verb, tense)
        if verb.objects:
            clause.object = self.object(nouns_of(verb.objects), clause.subject.key)
        return clause

    def add_time(self, clause: Clause, letter: str) -> None:
        """Give the clause a time that fits its tense: n present, p past, m after a modal verb; else none."""
        unfit = "every" if clause.negated else ""
        if letter:
            clause.time = self.fitting(times(letter), lambda time: time.english_words[0] != unfit)

    def place(
        self, english: str, german: str, case: str, kinds: tuple[str, ...], described: float = 0.5
    ) -> Prepositional:
        """A prepositional phrase with a definite noun."""
        return Prepositional(english, german, case, self.definite(nouns_of(kinds), described=described))

    def draft(self, source: Source, target: Target, *combinations: Combination, mark: str = ".") -> Draft:
        """A draft with the nouns drawn so far and the combinations in it."""
        return Draft(source, target, self.noun_links, combinations, mark=mark)

    def state(self, clause: Clause, mark: str = ".") -> Draft:
        """The clause as a statement, or as a question that its subject asks."""
        return self.draft(clause.english(), clause.german(), *combinations(clause), mark=mark)

    def ask(self, clause: Clause, word: str = "") -> Draft:
        """The clause as a question, behind *where*, *what* … or with its verb first."""
        source, target = words((word, ASKING[word])) if word else ([], [])
        source += [*clause.english_auxiliary(), *clause.subject.english(), *clause.english_main()]
        target += clause.german_inversion()
        return self.draft(source, target, *combinations(clause, word), mark="?")


def keys(nominal: Nominal) -> list[str]:
    """The key of each of its noun phrases."""
    return [part.key for part in nominal.parts] if isinstance(nominal, Coordination) else [nominal.key]


def combinations(clause: Clause, thing: str = "") -> tuple[Combination, ...]:
    """(verb, subject, object) for each of its subjects and objects; ``thing`` where it has and names no object."""
    object_ = clause.object or clause.receiver or (clause.place and clause.place.noun)
    things = keys(object_) if object_ else clause.named or [thing]
    return tuple(product([clause.verb.english], keys(clause.subject), things))

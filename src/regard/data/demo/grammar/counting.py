"""Exact number of sentences of one pattern: a lower bound on the size of the language.

Counted is the pattern ``fronted`` in the past tense with a noun phrase as subject, *Last week the old baker sold three
green lamps*: TIME SUBJECT VERB OBJECT. Two different choices never give the same sentence: no time is the beginning
of another, no past form occurs inside a noun phrase, and each verb has its own (all three are tested); so the
sentence can be taken apart again, and choices multiply.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

from regard.data.demo.grammar.draw import (
    DIGITS,
    MASS,
    NUMBER_WORDS,
    OBJECT_PLURAL,
    OBJECT_SINGULAR,
    SMALL_NUMBERS,
    SUBJECT_PLURAL,
    SUBJECT_SINGULAR,
)
from regard.data.demo.grammar.lexicon.entries import Noun, Verb, all_verbs, nouns_of
from regard.data.demo.grammar.phrases import Links, NounPhrase, determiners, numeral, times


@cache
def subject_strings(noun: Noun) -> frozenset[str]:
    """Every noun phrase with this noun that a sentence may have as its subject."""
    return frozenset(_strings(noun, False, SUBJECT_SINGULAR)) | frozenset(_strings(noun, True, SUBJECT_PLURAL))


@cache
def object_strings(noun: Noun) -> frozenset[str]:
    """Every noun phrase with this noun that a sentence may have as its object."""
    if not noun.countable:
        return frozenset(_strings(noun, False, MASS))
    words = [word for word in OBJECT_PLURAL if word != "number"]
    plural = frozenset(_strings(noun, True, [*words, *_numbers(noun)]))
    return frozenset(_strings(noun, False, OBJECT_SINGULAR)) | plural


def _numbers(noun: Noun) -> list[str]:
    if noun.group in ("person", "animal"):
        return list(SMALL_NUMBERS)
    return [*NUMBER_WORDS, *map(str, DIGITS)]


def _strings(noun: Noun, plural: bool, choices: Sequence[str]) -> Iterator[str]:
    table = determiners()
    for word in dict.fromkeys(choices):
        determiner = numeral(int(word)) if word.isdigit() else table[word]
        for adjective in (None, *noun.adjectives):
            phrase = NounPhrase(determiner, adjective, noun, plural, Links())
            yield " ".join(text for text, _ in phrase.english())


def count_choices(verb: Verb) -> int:
    """Pairs of a subject and an object of a verb, their nouns different."""
    subjects = {noun: len(subject_strings(noun)) for noun in nouns_of(verb.subjects)}
    objects = {noun: len(object_strings(noun)) for noun in nouns_of(verb.objects)}
    same = sum(number * objects.get(noun, 0) for noun, number in subjects.items())
    return sum(subjects.values()) * sum(objects.values()) - same


def count_sentences() -> int:
    """A lower bound for the number of different English sentences, computed from the tables."""
    return len(times("p")) * sum(count_choices(verb) for verb in all_verbs("TRANSITIVE"))

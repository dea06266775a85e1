"""Paraphrases: two English sentences that say the same in other words, or that differ in one word or in who does what.

Each sentence is one transitive clause of the grammar, worded in one of four ways. In a false pair one noun, adjective,
verb or time is another; or no word is, and subject and object are exchanged, so that only the order of the words tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from random import Random
from typing import Literal

from regard.runs.demo.grammar.clause import Clause
from regard.runs.demo.grammar.corpus import Split, format_sentence, split_of
from regard.runs.demo.grammar.draw import Draw, combination
from regard.runs.demo.grammar.lexicon import nouns_of, verbs_of
from regard.runs.demo.grammar.phrases import NO_LINK, Nominal, NounPhrase, Source, Time, times
from regard.system.keys import key

Difference = Literal["none", "subject", "object", "adjective", "verb", "time", "roles"]
DIFFERENCES: tuple[Difference, ...] = ("subject", "object", "adjective", "verb", "time", "roles")

TENSES = (("present", "n"), ("past", "p"))
_BE = {"present": ("is", "are"), "past": ("was", "were")}


@dataclass(frozen=True, slots=True)
class Paraphrase:
    """Two sentences.

    Args:
        first, second: the sentences, in two wordings.
        difference: what the second says otherwise; ``none``: it says the same.
        wordings: of both, keys of ``WORDINGS``.
    """

    first: str
    second: str
    difference: Difference
    wordings: tuple[str, str]

    @property
    def label(self) -> str:
        """``same`` or ``different``."""
        return "same" if self.difference == "none" else "different"


def paraphrases(split: Split, count: int, seed: int = 1) -> Iterator[Paraphrase]:
    """``count`` different pairs of a split, every second one true, drawn with this seed; more begin with fewer.

    A clause belongs to the split of its combination of verb, subject and object, as a pair of the corpus does.
    """
    draw = Draw(Random(key(seed, "paraphrases " + split)))
    seen: set[tuple[str, str]] = set()
    while len(seen) < count:
        difference: Difference = "none" if len(seen) % 2 else draw.of(DIFFERENCES)
        found = _pair(draw, split, difference)
        while found is None or (found.first, found.second) in seen:
            found = _pair(draw, split, difference)
        seen.add((found.first, found.second))
        yield found


def _pair(draw: Draw, split: Split, difference: Difference) -> Paraphrase | None:
    """A pair with this difference; None if the clause that is drawn cannot have it or is of another split."""
    draw.restart()
    clause = _clause(draw)
    other = _changed(draw, clause, difference)
    if other is None or {split_of([combination(said)]) for said in (clause, other)} != {split}:
        return None
    names = [name for name in WORDINGS if name != "fronted" or clause.time is not None]
    one = draw.of(names)
    two = draw.of([name for name in names if name != one])
    first, second = (format_sentence(WORDINGS[name](said), ".") for name, said in ((one, clause), (two, other)))
    return Paraphrase(first, second, difference, (one, two))


def _clause(draw: Draw) -> Clause:
    """A transitive clause whose subject is a noun phrase, mostly with a time."""
    tense, letter = draw.of(TENSES)
    verb = draw.of(verbs_of("transitive"))
    clause = Clause(draw.subject(nouns_of(verb.subjects)), verb, tense, draw.links.take(3))
    clause.object = draw.object(nouns_of(verb.objects), clause.subject.key)
    if draw.chance(0.7):
        draw.add_time(clause, letter)
    return clause


# ---- what differs


def _changed(draw: Draw, clause: Clause, difference: Difference) -> Clause | None:
    """The clause with this difference; None where it cannot have it."""
    subject, thing = clause.subject, clause.object
    assert isinstance(subject, NounPhrase)
    assert isinstance(thing, NounPhrase)
    if difference == "none":
        return clause
    if difference == "subject":
        found = _with_noun(draw, subject, clause.verb.subjects, {subject.key, thing.key})
        return None if found is None else replace(clause, subject=found)
    if difference == "object":
        found = _with_noun(draw, thing, clause.verb.objects, {subject.key, thing.key})
        return None if found is None else replace(clause, object=found)
    if difference == "adjective":
        return _with_adjective(draw, clause)
    if difference == "verb":
        fitting = [
            verb
            for verb in verbs_of("transitive")
            if verb.english != clause.verb.english
            and subject.noun in nouns_of(verb.subjects)
            and thing.noun in nouns_of(verb.objects)
        ]
        return replace(clause, verb=draw.of(fitting)) if fitting else None
    if difference == "time":
        return _with_time(draw, clause)
    if thing.noun not in nouns_of(clause.verb.subjects) or subject.noun not in nouns_of(clause.verb.objects):
        return None
    return replace(clause, subject=thing, object=subject)


def _with_noun(draw: Draw, phrase: NounPhrase, kinds: tuple[str, ...], known: set[str]) -> NounPhrase | None:
    """The phrase with another noun that takes its determiner and adjective."""
    fitting = [
        noun
        for noun in nouns_of(kinds)
        if noun.english not in known
        and noun.countable == phrase.noun.countable
        and (phrase.adjective is None or phrase.adjective in noun.adjectives)
    ]
    return draw.phrase(draw.of(fitting), phrase.plural, _word(phrase), phrase.adjective) if fitting else None


def _with_adjective(draw: Draw, clause: Clause) -> Clause | None:
    """The clause with another adjective at its subject or its object."""
    phrases = [
        (name, phrase)
        for name, phrase in (("subject", clause.subject), ("object", clause.object))
        if isinstance(phrase, NounPhrase) and phrase.adjective is not None
    ]
    if not phrases:
        return None
    name, phrase = draw.of(phrases)
    adjective = draw.of([other for other in phrase.noun.adjectives if other is not phrase.adjective])
    found = draw.phrase(phrase.noun, phrase.plural, _word(phrase), adjective)
    return replace(clause, subject=found) if name == "subject" else replace(clause, object=found)


def _with_time(draw: Draw, clause: Clause) -> Clause | None:
    """The clause at another time of the same tense."""
    if clause.time is None:
        return None
    letter = dict(TENSES)[clause.tense]
    other: Time = draw.of([time for time in times(letter) if time is not clause.time])
    return replace(clause, time=other, time_link=draw.links.take(len(other.english_words)))


def _word(phrase: NounPhrase) -> str:
    """The key of the phrase's determiner."""
    return phrase.determiner.english


# ---- how it is worded


def _plain(clause: Clause) -> Source:
    """The old king drank hot tea in the evening."""
    return clause.english()


def _fronted(clause: Clause) -> Source:
    """In the evening the old king drank hot tea."""
    return replace(clause, fronted=True).english()


def _passive(clause: Clause) -> Source:
    """Hot tea was drunk by the old king in the evening."""
    assert clause.object is not None
    participle: Source = [(clause.verb.english_participle, clause.link), ("by", NO_LINK)]
    return [
        *clause.object.english(),
        _be(clause, clause.object),
        *participle,
        *clause.subject.english(),
        *_time(clause),
    ]


def _cleft(clause: Clause) -> Source:
    """It was the old king that drank hot tea in the evening."""
    opening: Source = [("it", NO_LINK), (_BE[clause.tense][0], NO_LINK)]
    return [*opening, *clause.subject.english(), ("that", NO_LINK), *clause.english_predicate()]


WORDINGS: dict[str, Callable[[Clause], Source]] = {
    "plain": _plain,
    "fronted": _fronted,
    "passive": _passive,
    "cleft": _cleft,
}
"""The ways in which a clause is worded."""


def _be(clause: Clause, subject: Nominal) -> tuple[str, int]:
    return _BE[clause.tense][subject.person == "3p"], clause.link + 1


def _time(clause: Clause) -> Source:
    return [] if clause.time is None else clause.time.english(clause.time_link)

"""Patterns of two clauses: that, when, because, relative clauses in three cases, *zu* infinitives."""

from __future__ import annotations

from functools import cache

from regard.data.demo.grammar.clause import Clause
from regard.data.demo.grammar.draw import Draft, Draw, combination
from regard.data.demo.grammar.lexicon.declension import RELATIVE
from regard.data.demo.grammar.lexicon.entries import Adjective, Noun, Verb, all_adjectives, all_verbs, nouns_of
from regard.data.demo.grammar.patterns import DELIBERATE, MOVING_PLACES, RESTING_PLACES, adverb, resting_clause
from regard.data.demo.grammar.phrases import COMMA, NO_LINK, NounPhrase, Source, Target

COMMA_SOURCE = (COMMA, NO_LINK)
COMMA_TARGET: tuple[str, tuple[int, ...]] = (COMMA, ())
MOODS = frozenset("happy sad hungry tired proud rich famous clever nervous sick exhausted".split())
NOT_GRADED = frozenset("brown black white grey red green blue yellow golden broken tired".split())
TRANSITIVE = all_verbs("TRANSITIVE")


def report(draw: Draw) -> Draft:
    """My sister believes that the baker has already sold the fresh bread."""
    verb = draw.of(all_verbs("SAYING"))
    tense, tenses = draw.of((("present", ("present", "present", "perfect", "will")), ("past", ("past",))))
    outer = Clause(draw.person(verb.subjects), verb, tense, draw.links.take(3))
    inner = draw.clause(TRANSITIVE, draw.of(tenses))
    if inner.tense == "perfect":
        inner.adverb = adverb(draw)
    link = draw.links.take()
    source = [*outer.english(), ("that", link), *inner.english()]
    draft = draw.draft(source, [*outer.german(), COMMA_TARGET, ("dass", (link,)), *inner.german_final()])
    draft.verb_subject_object.append(combination(inner))
    return draft


def when(draw: Draw) -> Draft:
    """When the teacher opened the window, the dog slept under the table."""
    first = draw.clause(TRANSITIVE, "past")
    second = resting_clause(draw, "past") if draw.chance(0.5) else draw.clause(TRANSITIVE, "past")
    link = draw.links.take()
    source = [("when", link), *first.english(), COMMA_SOURCE, *second.english()]
    target = [("als", (link,)), *first.german_final(), COMMA_TARGET, *second.german_inversion()]
    draft = draw.draft(source, target)
    draft.verb_subject_object += [combination(first), combination(second)]
    return draft


def predicate(draw: Draw, adjective: Adjective, plural: bool, past: bool = False) -> tuple[Source, Target]:
    """… is very tired."""
    link = draw.links.take(3)
    english = ("was", "were") if past else ("is", "are")
    german = ("war", "waren") if past else ("ist", "sind")
    source = [(english[plural], link), ("very", link + 1), (adjective.english, link + 2)]
    return source, [(german[plural], (link,)), ("sehr", (link + 1,)), (adjective.german, (link + 2,))]


def mood(draw: Draw, head: NounPhrase) -> Adjective:
    """What the sentence says of its subject: a mood of a person, any quality of others; not its attribute again."""
    choices = MOOD_ADJECTIVES if head.noun.group == "person" else gradable_adjectives(head.noun)
    found = draw.of(choices)
    while found is head.adjective:
        found = draw.of(choices)
    return found


@cache
def gradable_adjectives(noun: Noun) -> tuple[Adjective, ...]:
    """The adjectives of a noun that go with *very*."""
    return tuple(entry for entry in noun.adjectives if entry.english not in NOT_GRADED)


MOOD_ADJECTIVES = tuple(entry for entry in all_adjectives() if entry.english in MOODS)


def reason(draw: Draw) -> Draft:
    """The old man is very happy because his daughter has found the ring."""
    subject = draw.subject(nouns_of(("person",)))
    source, target = predicate(draw, mood(draw, subject), subject.plural)
    inner = draw.clause(TRANSITIVE, "perfect")
    link = draw.links.take()
    english = [*subject.english(), *source, ("because", link), *inner.english()]
    german = [*subject.german("n"), *target, COMMA_TARGET, ("weil", (link,)), *inner.german_final()]
    draft = draw.draft(english, german)
    draft.verb_subject_object.append(combination(inner))
    return draft


def relative_subject(draw: Draw) -> Draft:
    """The woman who bought the red lamp is very happy."""
    verb = draw.of(TRANSITIVE)
    head = draw.definite(nouns_of(verb.subjects))
    clause = Clause(head, verb, draw.of(("present", "past", "perfect")), draw.links.take(3))
    clause.object = draw.object(nouns_of(verb.objects), head.key)
    link = draw.links.take()
    word = "who" if head.noun.group == "person" else "that"
    pronoun: Target = [(RELATIVE["n" + head.gender], (link,))]
    source, target = predicate(draw, mood(draw, head), head.plural)
    english = [*head.english(), (word, link), *clause.english_predicate(), *source]
    german = [*head.german("n"), COMMA_TARGET, *clause.german_final(pronoun), COMMA_TARGET, *target]
    draft = draw.draft(english, german)
    draft.verb_subject_object.append(combination(clause))
    return draft


def relative_object(draw: Draw) -> Draft:
    """The book that the woman bought is very valuable."""
    verb = draw.of(OF_COUNTABLE)
    head = draw.definite(countable(verb))
    tense = draw.of(("present", "past", "perfect"))
    clause = Clause(_other(draw, verb.subjects, head), verb, tense, draw.links.take(3))
    link = draw.links.take()
    word = "whom" if head.noun.group == "person" else "that"
    source, target = predicate(draw, mood(draw, head), head.plural)
    english = [*head.english(), (word, link), *clause.english(), *source]
    relative = [(RELATIVE["a" + head.gender], (link,)), *clause.german_final()]
    draft = draw.draft(english, [*head.german("n"), COMMA_TARGET, *relative, COMMA_TARGET, *target])
    draft.verb_subject_object.append((verb.english, clause.subject.key, head.key))
    return draft


@cache
def countable(verb: Verb) -> tuple[Noun, ...]:
    """What a verb may have as its object, masses left out."""
    return tuple(noun for noun in nouns_of(verb.objects) if noun.countable)


OF_COUNTABLE = tuple(verb for verb in TRANSITIVE if countable(verb))


def _other(draw: Draw, kinds: tuple[str, ...], head: NounPhrase) -> NounPhrase:
    subject = draw.definite(nouns_of(kinds))
    while subject.key == head.key:
        draw.noun_links.pop()
        subject = draw.definite(nouns_of(kinds))
    return subject


def relative_place(draw: Draw) -> Draft:
    """The table onto which the cat jumped was very old: a preposition and a relative pronoun in its case."""
    case, places, tenses = draw.of(
        (("d", RESTING_PLACES, ("present", "past")), ("a", MOVING_PLACES, ("past", "perfect")))
    )
    english, german, kinds, subjects, names = draw.of(places)
    name = draw.of(names.split())
    verb = next(entry for frame in ("RESTING", "MOVING") for entry in all_verbs(frame) if entry.english == name)
    head = draw.definite(nouns_of(kinds))
    people = ("person",) if name in ("sing", "dance", "work") else subjects
    clause = Clause(_other(draw, people, head), verb, draw.of(tenses), draw.links.take(3))
    link = draw.links.take(2)
    source, target = predicate(draw, mood(draw, head), head.plural, past=clause.tense != "present")
    relative = [(english, link), ("which", link + 1), *clause.english()]
    opening = [(german, (link,)), (RELATIVE[case + head.gender], (link + 1,))]
    translated = [*head.german("n"), COMMA_TARGET, *opening, *clause.german_final(), COMMA_TARGET, *target]
    draft = draw.draft([*head.english(), *relative, *source], translated)
    draft.verb_subject_object.append((verb.english, clause.subject.key, head.key))
    return draft


def attempt(draw: Draw) -> Draft:
    """The girl tries to repair the old bicycle."""
    trying = draw.of(all_verbs("TRYING"))
    outer = Clause(draw.person(trying.subjects), trying, draw.of(("present", "past", "past")), draw.links.take(3))
    verb = draw.of([entry for entry in DELIBERATE if entry.subjects == ("person",)])
    inner = Clause(outer.subject, verb, "present", draw.links.take(3))
    inner.object = draw.object(nouns_of(verb.objects), outer.subject.key)
    source = [*outer.english(), ("to", NO_LINK), (verb.english, inner.link), *inner.english_rest()]
    draft = draw.draft(source, [*outer.german(), COMMA_TARGET, *inner.german_infinitive()])
    draft.verb_subject_object.append(combination(inner))
    return draft

"""Complex sentences: that, when, because, relative clauses in three cases, *zu* infinitives, ambiguous pronouns.

In the last, the adjective decides which of two nouns *it* refers to:
*The animal didn't cross the street because it was too tired / too wide.*
→ … *weil es zu müde war* / *weil sie zu breit war*.
Here the kinds of the nouns suffice: streets don't tire. In most frames they don't, because either noun could be subject
or object, *The box didn't fit into the basket because it was too big / too small*: only the order of the words tells,
and a translator without positions must guess. An adjective always describes the same role: *small* what nothing fits
into, *slow* who doesn't catch, scare or overtake.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from regard.runs.demo.grammar.clause import Clause
from regard.runs.demo.grammar.draw import Draft, Draw, combination
from regard.runs.demo.grammar.lexicon import ADJECTIVES, Adjective, Noun, Verb, adjective, nouns_of, verb, verbs_of
from regard.runs.demo.grammar.phrases import (
    COMMA,
    NO_LINK,
    PRONOUN,
    RELATIVE,
    NounPhrase,
    Prepositional,
    Source,
    Target,
)
from regard.runs.demo.grammar.simple_sentences import (
    ADVERBS,
    DELIBERATE,
    FOR_PERSONS,
    MOVING_PLACES,
    RESTING_PLACES,
    TRANSITIVE,
    resting_clause,
)

COMMA_TARGET: tuple[str, tuple[int, ...]] = (COMMA, ())
MOODS = tuple(
    entry
    for entry in ADJECTIVES
    if entry.english in "happy sad hungry tired proud rich famous clever nervous sick exhausted".split()
)
NOT_GRADED = frozenset("brown black white grey red green blue yellow golden broken tired".split())


def report(draw: Draw) -> Draft:
    """My sister believes that the baker has already sold the fresh bread."""
    verb = draw.of(verbs_of("saying"))
    tense, tenses = draw.of((("present", ("present", "present", "perfect", "will")), ("past", ("past",))))
    outer = Clause(draw.person(verb.subjects), verb, tense, draw.links.take(3))
    inner = draw.clause(TRANSITIVE, draw.of(tenses))
    if inner.tense == "perfect":
        inner.adverb = draw.of(ADVERBS)
    link = draw.links.take()
    source = [*outer.english(), ("that", link), *inner.english()]
    target = [*outer.german(), COMMA_TARGET, ("dass", (link,)), *inner.german_final()]
    return draw.draft(source, target, combination(inner))


def when(draw: Draw) -> Draft:
    """When the teacher opened the window, the dog slept under the table."""
    first = draw.clause(TRANSITIVE, "past")
    second = resting_clause(draw, "past") if draw.chance(0.5) else draw.clause(TRANSITIVE, "past")
    link = draw.links.take()
    source = [("when", link), *first.english(), (COMMA, NO_LINK), *second.english()]
    target = [("als", (link,)), *first.german_final(), COMMA_TARGET, *second.german_inversion()]
    return draw.draft(source, target, combination(first), combination(second))


def predicate(draw: Draw, adjective: Adjective, plural: bool, past: bool = False) -> tuple[Source, Target]:
    """… is very tired."""
    link = draw.links.take(3)
    english = ("was", "were") if past else ("is", "are")
    german = ("war", "waren") if past else ("ist", "sind")
    source = [(english[plural], link), ("very", link + 1), (adjective.english, link + 2)]
    return source, [(german[plural], (link,)), ("sehr", (link + 1,)), (adjective.german, (link + 2,))]


def mood(draw: Draw, head: NounPhrase) -> Adjective:
    """What the sentence says of its subject: a mood of a person, any quality of others; not its attribute again."""
    gradable = tuple(entry for entry in head.noun.adjectives if entry.english not in NOT_GRADED)  # by *very*
    choices = MOODS if head.noun.group == "person" else gradable
    found = draw.of(choices)
    while found is head.adjective:
        found = draw.of(choices)
    return found


def reason(draw: Draw) -> Draft:
    """The old man is very happy because his daughter has found the ring."""
    subject = draw.subject(nouns_of(("person",)))
    source, target = predicate(draw, mood(draw, subject), subject.plural)
    inner = draw.clause(TRANSITIVE, "perfect")
    link = draw.links.take()
    english = [*subject.english(), *source, ("because", link), *inner.english()]
    german = [*subject.german("n"), *target, COMMA_TARGET, ("weil", (link,)), *inner.german_final()]
    return draw.draft(english, german, combination(inner))


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
    return draw.draft(english, german, combination(clause))


def relative_object(draw: Draw) -> Draft:
    """The book that the woman bought is very valuable."""
    verb = draw.of(OF_COUNTABLE)
    head = draw.definite(countable(verb))
    tense = draw.of(("present", "past", "perfect"))
    subject = draw.definite(nouns_of(verb.subjects), head.key)
    clause = Clause(subject, verb, tense, draw.links.take(3))
    link = draw.links.take()
    word = "whom" if head.noun.group == "person" else "that"
    source, target = predicate(draw, mood(draw, head), head.plural)
    english = [*head.english(), (word, link), *clause.english(), *source]
    relative = [(RELATIVE["a" + head.gender], (link,)), *clause.german_final()]
    german = [*head.german("n"), COMMA_TARGET, *relative, COMMA_TARGET, *target]
    return draw.draft(english, german, (verb.english, clause.subject.key, head.key))


@cache
def countable(verb: Verb) -> tuple[Noun, ...]:
    """What a verb may have as its object, masses left out."""
    return tuple(noun for noun in nouns_of(verb.objects) if noun.countable)


OF_COUNTABLE = tuple(verb for verb in TRANSITIVE if countable(verb))


def relative_place(draw: Draw) -> Draft:
    """The table onto which the cat jumped was very old: a preposition and a relative pronoun in its case."""
    case, places, tenses = draw.of(
        (("d", RESTING_PLACES, ("present", "past")), ("a", MOVING_PLACES, ("past", "perfect")))
    )
    english, german, kinds, subjects, names = draw.of(places)
    name = draw.of(names.split())
    head = draw.definite(nouns_of(kinds))
    people = ("person",) if name in FOR_PERSONS else subjects
    subject = draw.definite(nouns_of(people), head.key)
    clause = Clause(subject, verb(name), draw.of(tenses), draw.links.take(3))
    link = draw.links.take(2)
    source, target = predicate(draw, mood(draw, head), head.plural, past=clause.tense != "present")
    relative = [(english, link), ("which", link + 1), *clause.english()]
    opening = [(german, (link,)), (RELATIVE[case + head.gender], (link + 1,))]
    translated = [*head.german("n"), COMMA_TARGET, *opening, *clause.german_final(), COMMA_TARGET, *target]
    return draw.draft([*head.english(), *relative, *source], translated, (name, subject.key, head.key))


def attempt(draw: Draw) -> Draft:
    """The girl tries to repair the old bicycle."""
    trying = draw.of(verbs_of("trying"))
    outer = Clause(draw.person(trying.subjects), trying, draw.of(("present", "past", "past")), draw.links.take(3))
    verb = draw.of([entry for entry in DELIBERATE if "person" in entry.subjects])
    inner = Clause(outer.subject, verb, "present", draw.links.take(3))
    inner.object = draw.object(nouns_of(verb.objects), outer.subject.key)
    source = [*outer.english(), ("to", NO_LINK), (verb.english, inner.link), *inner.english_rest()]
    target = [*outer.german(), COMMA_TARGET, *inner.german_infinitive()]
    return draw.draft(source, target, combination(inner))


PAST_OR_PRESENT = ("past", "past", "present")


@dataclass(frozen=True)
class Frame:
    """Who doesn't do what, and which adjectives then describe the subject and which the object.

    ``preposition`` (English, German; then the accusative) is empty for a plain accusative object.
    """

    verb: str
    subjects: str
    objects: str
    of_subject: str
    of_object: str
    preposition: tuple[str, str] = ("", "")
    tenses: tuple[str, ...] = (*PAST_OR_PRESENT, "could")


@cache
def frames_of(verb: str) -> tuple[Frame, ...]:
    """The frames of one verb."""
    return tuple(frame for frame in FRAMES if frame.verb == verb)


WALKERS = "tired weak sick lazy nervous frightened hungry young stubborn"

FRAMES = (
    # What each noun is decides.
    Frame("cross", "animal", "road", WALKERS, "wide slippery icy busy muddy"),
    Frame("cross", "animal", "stream", WALKERS, "wide deep muddy"),
    Frame("cross", "animal", "meadow", WALKERS, "wide slippery muddy"),
    Frame("jump", "jumper", "hurdle", "tired weak sick lazy nervous frightened", "high wide", ("over", "über")),
    # Both nouns are of one kind: their parts in the sentence decide.
    Frame("fit", "holder", "holder", "big thick bulky", "small narrow tight", ("into", "in"), tenses=PAST_OR_PRESENT),
    Frame("wake", "animal", "animal", "quiet shy polite", "sleepy exhausted"),
    Frame("scare", "animal", "animal", "quiet tame friendly slow", "brave calm clever"),
    Frame("catch", "animal", "animal", "slow tired lazy", "fast clever"),
    Frame("carry", "animal", "animal", "weak tired young sick", "heavy fat wild"),
    Frame("overtake", "vehicle", "vehicle", "slow weak short", "fast wide long"),
)

DETERMINERS = ("the",) * 6 + ("my", "our", "his", "her", "their")


def pronoun(verb: str, draw: Draw) -> Draft:
    """A random sentence of one of the frames of a verb."""
    frame = draw.of(frames_of(verb))
    reasons = frame.of_object if draw.chance(0.5) else frame.of_subject
    reason = draw.of(tuple(map(adjective, reasons.split())))
    subjects, objects = nouns_of((frame.subjects,)), nouns_of((frame.objects,))
    subject = draw.of(subjects)
    thing = draw.noun(objects, subject.english)
    phrases = [
        draw.phrase(entry, False, draw.of(DETERMINERS), draw.of(entry.neutral) if draw.chance(0.3) else None)
        for entry in (subject, thing)
    ]
    return build_draft(draw, frame, phrases, reason, draw.of(frame.tenses), timed=draw.chance(0.25))


def build_draft(
    draw: Draw, frame: Frame, phrases: list[NounPhrase], reason: Adjective, tense: str, timed: bool = False
) -> Draft:
    """The sentence of a frame with chosen subject and object, with a time in front if ``timed``."""
    subject, thing = phrases
    clause = Clause(subject, verb(frame.verb), tense, draw.links.take(3), negated=True, fronted=True)
    if frame.preposition[0]:
        clause.place = Prepositional(*frame.preposition, "a", thing, draw.links)
    else:
        clause.object = thing
    if timed:
        draw.add_time(clause, "n" if tense == "present" else "p")
    antecedent, rival = (thing, subject) if reason.english in frame.of_object.split() else (subject, thing)
    link = draw.links.take(5)
    be = ("is", "ist") if tense == "present" else ("was", "war")
    source = [("because", link), ("it", link + 1), (be[0], link + 2), ("too", link + 3), (reason.english, link + 4)]
    target: Target = [COMMA_TARGET, ("weil", (link,)), (PRONOUN[antecedent.noun.gender], (link + 1,))]
    target += [("zu", (link + 3,)), (reason.german, (link + 4,)), (be[1], (link + 2,))]
    done = (frame.verb, subject.key, thing.key)
    draft = draw.draft([*clause.english(), *source], [*clause.german(), *target], done)
    draft.pronoun = (link + 1, antecedent, rival)
    draft.noun_noun_adjective = ((subject.key, thing.key, reason.english),)
    return draft


def sentence_of(draw: Draw, verb: str, subject: Noun, thing: Noun, reason: str, tense: str = "past") -> Draft:
    """One sentence of a verb's frames with these words, e.g. the classic one about the tired animal."""
    frame = next(
        frame
        for frame in frames_of(verb)
        if frame.objects in thing.kinds and reason in f"{frame.of_subject} {frame.of_object}".split()
    )
    phrases = [draw.phrase(entry, False, "the", None) for entry in (subject, thing)]
    return build_draft(draw, frame, phrases, adjective(reason), tense)

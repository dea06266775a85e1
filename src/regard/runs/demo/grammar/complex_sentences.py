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

from regard.runs.demo.grammar.clause import Clause, Copula
from regard.runs.demo.grammar.draw import Combination, Draft, Draw, combinations
from regard.runs.demo.grammar.lexicon import ADJECTIVES, Adjective, Noun, Verb, adjective, nouns_of, verb, verbs_of
from regard.runs.demo.grammar.phrases import (
    COMMA,
    NO_LINK,
    PRONOUN,
    RELATIVE,
    NounPhrase,
    Prepositional,
    PronounPhrase,
    Source,
    Target,
    words,
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
    outer = Clause(draw.person(verb.subjects), verb, tense)
    inner = draw.clause(TRANSITIVE, draw.of(tenses))
    if inner.tense == "perfect":
        inner.adverb = draw.of(ADVERBS)
    return subordinate(draw, outer, ("that", "dass"), inner, *combinations(inner))


def subordinate(draw: Draw, outer: Clause, conjunction: tuple[str, str], inner: Clause, *done: Combination) -> Draft:
    """A clause, and after the conjunction (English, German) one whose German verb is last."""
    english, german = words(conjunction)
    source = [*outer.english(), *english, *inner.english()]
    target = [*outer.german(), COMMA_TARGET, *german, *inner.german_final()]
    return draw.draft(source, target, *done)


def when(draw: Draw) -> Draft:
    """When the teacher opened the window, the dog slept under the table."""
    first = draw.clause(TRANSITIVE, "past")
    second = resting_clause(draw, "past") if draw.chance(0.5) else draw.clause(TRANSITIVE, "past")
    opening, als = words(("when", "als"))
    source = [*opening, *first.english(), (COMMA, NO_LINK), *second.english()]
    target = [*als, *first.german_final(), COMMA_TARGET, *second.german_inversion()]
    return draw.draft(source, target, *combinations(first), *combinations(second))


def predicate(draw: Draw, head: NounPhrase, tense: str = "present") -> Copula:
    """… is very tired: a mood of a person, any quality of others; not its attribute again."""
    gradable = tuple(entry for entry in head.noun.adjectives if entry.english not in NOT_GRADED)  # by *very*
    choices = MOODS if head.noun.group == "person" else gradable
    found = draw.fitting(choices, lambda entry: entry is not head.adjective)
    return Copula(head, tense, words(("very", "sehr"), (found.english, found.german)))


def reason(draw: Draw) -> Draft:
    """The old man is very happy because his daughter has found the ring."""
    outer = predicate(draw, draw.subject(nouns_of(("person",))))
    inner = draw.clause(TRANSITIVE, "perfect")
    return subordinate(draw, outer, ("because", "weil"), inner, *combinations(inner))


def relative(draw: Draw, outer: Copula, clause: Clause, english: Source, german: Target) -> Draft:
    """The clause of *be*, with the relative clause in English and German behind its subject."""
    source = [*outer.subject.english(), *english, *outer.english_predicate()]
    target = [*outer.subject.german("n"), COMMA_TARGET, *german, COMMA_TARGET]
    target += [outer.german_finite(), *outer.german_middle()]
    return draw.draft(source, target, *combinations(clause))


def relative_subject(draw: Draw) -> Draft:
    """The woman who bought the red lamp is very happy."""
    verb = draw.of(TRANSITIVE)
    head = draw.definite(nouns_of(verb.subjects))
    clause = Clause(head, verb, draw.of(("present", "past", "perfect")))
    clause.object = draw.object(nouns_of(verb.objects), head.key)
    who, pronoun = words(("who" if head.noun.group == "person" else "that", RELATIVE["n" + head.gender]))
    both = [*who, *clause.english_predicate()], clause.german_final(pronoun)
    return relative(draw, predicate(draw, head), clause, *both)


def relative_object(draw: Draw) -> Draft:
    """The book that the woman bought is very valuable."""
    verb = draw.of(OF_COUNTABLE)
    head = draw.definite(countable(verb))
    tense = draw.of(("present", "past", "perfect"))
    subject = draw.definite(nouns_of(verb.subjects), head.key)
    clause = Clause(subject, verb, tense, named=(head.key,))
    whom, pronoun = words(("whom" if head.noun.group == "person" else "that", RELATIVE["a" + head.gender]))
    both = [*whom, *clause.english()], [*pronoun, *clause.german_final()]
    return relative(draw, predicate(draw, head), clause, *both)


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
    clause = Clause(subject, verb(name), draw.of(tenses), named=(head.key,))
    which, pronoun = words((english, german), ("which", RELATIVE[case + head.gender]))
    outer = predicate(draw, head, "present" if clause.tense == "present" else "past")
    both = [*which, *clause.english()], [*pronoun, *clause.german_final()]
    return relative(draw, outer, clause, *both)


def attempt(draw: Draw) -> Draft:
    """The girl tries to repair the old bicycle."""
    trying = draw.of(verbs_of("trying"))
    outer = Clause(draw.person(trying.subjects), trying, draw.of(("present", "past", "past")))
    verb = draw.of([entry for entry in DELIBERATE if "person" in entry.subjects])
    inner = Clause(outer.subject, verb, "present")
    inner.object = draw.object(nouns_of(verb.objects), outer.subject.key)
    source = [*outer.english(), ("to", NO_LINK), (verb.english, inner.link), *inner.english_rest()]
    target = [*outer.german(), COMMA_TARGET, *inner.german_infinitive()]
    return draw.draft(source, target, *combinations(inner))


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
    clause = Clause(subject, verb(frame.verb), tense, negated=True, fronted=True)
    if frame.preposition[0]:
        clause.place = Prepositional(*frame.preposition, "a", thing)
    else:
        clause.object = thing
    if timed:
        draw.add_time(clause, "n" if tense == "present" else "p")
    antecedent, rival = (thing, subject) if reason.english in frame.of_object.split() else (subject, thing)
    it = PronounPhrase("it", PRONOUN[antecedent.noun.gender])
    said = words(("too", "zu"), (reason.english, reason.german))
    inner = Copula(it, "present" if tense == "present" else "past", said)
    done = *combinations(clause), (subject.key, thing.key, reason.english)
    draft = subordinate(draw, clause, ("because", "weil"), inner, *done)
    draft.pronoun = it.link, antecedent, rival
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

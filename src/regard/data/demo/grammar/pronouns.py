"""Patterns with a pronoun and two possible antecedents; the adjective decides which noun *it* refers to.

*The animal didn't cross the street because it was too tired / too wide.*
→ … *weil es zu müde war* / *weil sie zu breit war*.
Here what the nouns are is enough: streets don't tire. In most frames it isn't, because either noun could play either
part, *The box didn't fit into the basket because it was too big / too small*: one has to see who does what to whom,
which only the order of the words tells. A translator without positions must guess there. An adjective always speaks of
the same part: *small* of what nothing fits into, *slow* of who doesn't catch, scare or overtake.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from regard.data.demo.grammar.clause import Clause
from regard.data.demo.grammar.draw import Draft, Draw
from regard.data.demo.grammar.lexicon.declension import PRONOUN
from regard.data.demo.grammar.lexicon.entries import Adjective, Noun, adjective, nouns_of, verb
from regard.data.demo.grammar.patterns import with_time
from regard.data.demo.grammar.phrases import COMMA, NounPhrase, Prepositional


@dataclass(frozen=True)
class Frame:
    """Who doesn't do what, and which adjectives then speak of the subject and which of the object.

    ``preposition`` (English, German; then the accusative) is empty for a plain accusative object.
    """

    verb: str
    subjects: str
    objects: str
    of_subject: str
    of_object: str
    preposition: tuple[str, str] = ("", "")
    tenses: tuple[str, ...] = ("past", "past", "present", "could")


WALKERS = "tired weak sick lazy nervous frightened hungry young stubborn"

FRAMES = {
    # What each noun is decides.
    "cross": (
        Frame("cross", "animal", "road", WALKERS, "wide slippery icy busy muddy"),
        Frame("cross", "animal", "stream", WALKERS, "wide deep muddy"),
        Frame("cross", "animal", "meadow", WALKERS, "wide slippery muddy"),
    ),
    "jump": (
        Frame("jump", "jumper", "hurdle", "tired weak sick lazy nervous frightened", "high wide", ("over", "über")),
    ),
    # Both nouns are of one kind: their parts in the sentence decide.
    "fit": (
        Frame("fit", "holder", "holder", "big thick bulky", "small narrow tight", ("into", "in"),
              ("past", "past", "present")),
    ),
    "wake": (
        Frame("wake", "animal", "animal", "quiet shy polite", "sleepy exhausted"),
    ),
    "scare": (
        Frame("scare", "animal", "animal", "quiet tame friendly slow", "brave calm clever"),
    ),
    "catch": (
        Frame("catch", "animal", "animal", "slow tired lazy", "fast clever"),
    ),
    "carry": (
        Frame("carry", "animal", "animal", "weak tired young sick", "heavy fat wild"),
    ),
    "overtake": (
        Frame("overtake", "vehicle", "vehicle", "slow weak short", "fast wide long"),
    ),
}  # fmt: skip

DETERMINERS = ("the",) * 6 + ("my", "our", "his", "her", "their")


@cache
def sides(frame: Frame) -> tuple[tuple[Adjective, ...], tuple[Adjective, ...]]:
    """The adjectives of the subject and those of the object."""
    return (
        tuple(adjective(word) for word in frame.of_subject.split()),
        tuple(adjective(word) for word in frame.of_object.split()),
    )


def pronoun(draw: Draw, name: str) -> Draft:
    """A random sentence of one of the frames called ``name``."""
    frame = draw.of(FRAMES[name])
    of_object = draw.chance(0.5)
    reason = draw.of(sides(frame)[of_object])
    subject, thing = draw.of(nouns_of((frame.subjects,))), draw.of(nouns_of((frame.objects,)))
    while thing is subject:
        thing = draw.of(nouns_of((frame.objects,)))
    phrases = [
        draw.phrase(entry, False, draw.of(DETERMINERS), draw.of(entry.neutral) if draw.chance(share) else None)
        for entry, share in ((subject, 0.3), (thing, 0.3))
    ]
    tense = draw.of(frame.tenses)
    return build_draft(draw, frame, (phrases[0], phrases[1]), of_object, reason, tense)


def build_draft(
    draw: Draw,
    frame: Frame,
    phrases: tuple[NounPhrase, NounPhrase],
    of_object: bool,
    reason: Adjective,
    tense: str,
    time: bool | None = None,
) -> Draft:
    """The sentence of a frame with chosen words; ``time`` None: a time in front, now and then."""
    subject, thing = phrases
    clause = Clause(subject, verb(frame.verb), tense, draw.links.take(3), negated=True)
    if frame.preposition[0]:
        clause.place = Prepositional(*frame.preposition, "a", thing, draw.links)
    else:
        clause.object = thing
    source, target = clause.english(), clause.german()
    if time or (time is None and draw.chance(0.25)):
        when = with_time(draw, clause, "n" if tense == "present" else "p")
        source = [*when.english(clause.time_link), *source]
        target = [*when.german(clause.time_link), *clause.german_inversion(time=False)]
    antecedent, rival = (thing, subject) if of_object else (subject, thing)
    link = draw.links.take(5)
    be = ("is", "ist") if tense == "present" else ("was", "war")
    source += [("because", link), ("it", link + 1), (be[0], link + 2), ("too", link + 3), (reason.english, link + 4)]
    target += [(COMMA, ()), ("weil", (link,)), (PRONOUN[antecedent.noun.gender], (link + 1,)), ("zu", (link + 3,))]
    target += [(reason.german, (link + 4,)), (be[1], (link + 2,))]
    draft = draw.draft(source, target)
    draft.pronoun = (link + 1, antecedent, rival)
    draft.verb_subject_object.append((frame.verb, subject.key, thing.key))
    draft.noun_noun_adjective.append((subject.key, thing.key, reason.english))
    return draft


def sentence_of(
    draw: Draw, name: str, subject: Noun, thing: Noun, reason: str, determiner: str = "the", tense: str = "past"
) -> Draft:
    """One sentence of the frame ``name`` with these words, e.g. the classic one about the tired animal."""
    found = next(
        frame
        for frame in FRAMES[name]
        if thing in nouns_of((frame.objects,)) and reason in (frame.of_subject + " " + frame.of_object).split()
    )
    phrases = draw.phrase(subject, False, determiner, None), draw.phrase(thing, False, determiner, None)
    of_object = reason in found.of_object.split()
    return build_draft(draw, found, phrases, of_object, adjective(reason), tense, time=False)

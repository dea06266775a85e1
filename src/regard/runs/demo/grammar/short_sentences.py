"""Short sentences, as people type them first: *A man sleeps. The dog is very big. Where is the cat? She sees a bird.*

The English progressive becomes Präsens or Präteritum (*is sleeping* → *schläft*, *was sleeping* → *schlief*). Left out
is what German would have to choose: *you* (du, ihr or Sie), and *it* inside a sentence that does not name its noun; at
the beginning it is *es*.
"""

from __future__ import annotations

from collections.abc import Sequence

from regard.runs.demo.grammar.clause import MODALS, Clause, Copula
from regard.runs.demo.grammar.complex_sentences import NOT_GRADED
from regard.runs.demo.grammar.draw import (
    MASS,
    SMALL_NUMBERS,
    SUBJECT_PLURAL,
    SUBJECT_SINGULAR,
    Draft,
    Draw,
    combinations,
    keys,
)
from regard.runs.demo.grammar.lexicon import NOUNS, Adjective, Noun, Verb, nouns_of, verb, verbs_of
from regard.runs.demo.grammar.phrases import Coordination, Nominal, NounPhrase, PronounPhrase, words
from regard.runs.demo.grammar.simple_sentences import (
    DELIBERATE,
    EVERYBODY,
    RESTING_PLACES,
    TRANSITIVE,
    Place,
    negated_object,
)

PLURAL = (*SUBJECT_PLURAL, "number")
BARE = frozenset("animal bird boy brother cat child dog friend girl horse man mouse sister teacher woman".split())
"""Nouns whose plural may stand alone: as a first word each is a piece of its own, too rare to learn for all of them."""
PRONOUNS = ("I", "I", *EVERYBODY)
DESCRIBED = 0.2
"""How often a noun has an adjective."""

LIVING = ("animal", "person")
GROUPS = (*LIVING * 3, "thing", "thing", "thing", "place", "place", "food", "drink", "plant", "tale")
RESTING = tuple(entry for entry in verbs_of("resting", "moving") if entry.english != "lie")
INTRANSITIVE = (*RESTING, *RESTING, *map(verb, "travel eat drink cook bake write draw sew".split()))
IN_A_PLACE = tuple(entry for entry in INTRANSITIVE if entry.perfect == "haben")
"""Of which *where* is *wo*, never *wohin*."""
EVERYDAY = tuple(map(verb, "see love eat drink buy need find open write hear".split()))
WITH_OBJECT = (*TRANSITIVE, *EVERYDAY, *EVERYDAY, *verbs_of("dative"))
WITH_THING = tuple(entry for entry in TRANSITIVE if entry.objects != ("person",))
"""Verbs of whose objects one asks *what*."""
UNDERTAKEN = (*DELIBERATE, *verbs_of("dative"))
"""Verbs with a progressive."""

UNGRADED = NOT_GRADED - {"tired"}

STATED = ("present", "present", "present", "past", "past", "progressive", "past progressive")
ASKED = ("asked", "asked now", "asked now", "progressive")
BEING = ("present", "present", "past")


# ---- phrases


def phrase(draw: Draw, nouns: Sequence[Noun], other_than: str = "") -> NounPhrase:
    """A short noun phrase; not the noun ``other_than``."""
    noun = draw.noun(nouns, other_than)
    plural = noun.countable and draw.chance(0.3)
    word = draw.of(PLURAL if plural else SUBJECT_SINGULAR if noun.countable else MASS)
    if plural and noun.english in BARE and draw.chance(0.6):
        word = ""
    if word == "number":
        word = draw.of(SMALL_NUMBERS)
    return draw.phrase(noun, plural, word, draw.attribute(noun, DESCRIBED if word else 0.0))


def phrase_or_two(draw: Draw, nouns: Sequence[Noun], other_than: str = "") -> Nominal:
    """A noun phrase, now and then two joined by *and*."""
    first = phrase(draw, nouns, other_than)
    return Coordination(first, phrase(draw, nouns, first.key)) if draw.chance(0.1) else first


def subject_of(draw: Draw, kinds: tuple[str, ...]) -> Nominal:
    """A subject: noun phrases, and for persons also a pronoun or a name."""
    if "person" not in kinds or draw.chance(0.55):
        return phrase_or_two(draw, nouns_of(kinds))
    return PronounPhrase(draw.of(PRONOUNS)) if draw.chance(0.65) else draw.name(0.2)


# ---- clauses


def adjective_clause(draw: Draw, group: str, subject: Nominal) -> Copula:
    """The subject, of a group of nouns, *is very big*, *is not big*, *is big and brown*."""
    clause = Copula(subject, draw.of(BEING))
    said = [quality(draw, group, subject)]
    clause.negated = draw.chance(0.15)
    clause.apart = clause.negated and stands_apart(draw, clause)
    degree = draw.of((("", ""),) * 4 + (("very", "sehr"),) * 2 + (("too", "zu"),))
    before, behind = [], []
    if degree[0] and not clause.negated and said[0].english not in UNGRADED:
        before = [degree]
    elif draw.chance(0.15):
        other = quality(draw, group, subject)
        if other is not said[0]:
            said.append(other)
            behind = [("and", "und"), (other.english, other.german)]
    clause.further = words(*before, (said[0].english, said[0].german), *behind)
    clause.named = tuple(adjective.english for adjective in said)
    return clause


def quality(draw: Draw, group: str, subject: Nominal) -> Adjective:
    """What may be said of the subject; not its attribute again."""
    parts = subject.parts if isinstance(subject, Coordination) else (subject,)
    heads = [part for part in parts if isinstance(part, NounPhrase)]
    nouns = [head.noun for head in heads] or [draw.of(nouns_of((group,)))]
    attributes = [head.adjective for head in heads]
    fitting = [one for one in nouns[0].qualities if all(one in other.qualities for other in nouns)]
    return draw.of([one for one in fitting if one not in attributes])


def place_clause(
    draw: Draw, places: Sequence[Place] = RESTING_PLACES, asked: str = "", tenses: Sequence[str] = STATED
) -> Clause:
    """The cat is, or sleeps, under the table; ``asked``: who or what does."""
    english, german, kinds, subjects, verbs = draw.of(places)
    subject = PronounPhrase(asked) if asked else subject_of(draw, subjects)
    place = draw.place(english, german, "d", kinds, DESCRIBED)
    being = draw.chance(0.6)
    name = "" if being else draw.of(verbs.split())
    clause = Copula(subject, draw.of(BEING)) if being else Clause(subject, verb(name), draw.of(tenses))
    clause.place = place
    return clause


def verb_clause(draw: Draw, tense: str, asked: str = "", verbs: Sequence[Verb] = INTRANSITIVE) -> Clause:
    """A man sleeps; ``asked``: who does."""
    verb = draw.of(verbs)
    kinds = LIVING if verb in RESTING else verb.subjects
    subject = PronounPhrase(asked) if asked else subject_of(draw, kinds)
    return Clause(subject, verb, tense)


def object_clause(draw: Draw, tense: str, asked: str = "", negated: bool = False) -> Clause:
    """She sees the red ball; ``asked``: who does, or what she sees."""
    verb = draw.of(WITH_OBJECT)
    while (asked == "what" and verb not in WITH_THING) or ("progressive" in tense and verb not in UNDERTAKEN):
        verb = draw.of(WITH_OBJECT)
    subject = PronounPhrase(asked) if asked == "who" else subject_of(draw, verb.subjects)
    clause = Clause(subject, verb, tense, negated=negated)
    clause.apart = negated and stands_apart(draw, clause)
    if asked == "what":
        return clause
    if verb.frame == "dative":
        clause.receiver = phrase(draw, nouns_of(verb.objects), subject.key)
    elif negated:
        clause.object = negated_object(draw, clause, DESCRIBED)
    elif "person" in verb.objects and draw.chance(0.2):
        clause.object = draw.name(0.0)
    else:
        clause.object = phrase_or_two(draw, nouns_of(verb.objects), subject.key)
    return clause


def stands_apart(draw: Draw, clause: Clause) -> bool:
    """Whether a negated clause says *is not*, *does not*; *I am* has no other way."""
    return draw.chance(0.5) or (clause.subject.person == "1s" and clause.tense != "past")


# ---- sentences


def state_verb(draw: Draw) -> Draft:
    """A man sleeps. She is not singing. I can run. The man sings and dances."""
    clause = verb_clause(draw, draw.of(MODALS) if draw.chance(0.12) else draw.of(STATED))
    if clause.tense in STATED and draw.chance(0.2):
        clause.negated, clause.apart = True, stands_apart(draw, clause)
    elif clause.tense in ("present", "past") and clause.verb in RESTING and draw.chance(0.12):
        other = Clause(clause.subject, draw.of(RESTING), clause.tense)
        if other.verb is not clause.verb:
            joint, und = words(("and", "und"))
            clause.further = [*joint, (other.english_verb(), other.link)], [*und, other.german_finite()]
            draft = draw.state(clause)
            draft.combinations += combinations(other)
            return draft
    return draw.state(clause)


def state_object(draw: Draw) -> Draft:
    """She sees the red ball. I don't drink coffee. The cat is chasing a bird."""
    negated = draw.chance(0.15)
    tense = draw.of(STATED if negated or draw.chance(0.85) else ("perfect", "will", "want", "must"))
    return draw.state(object_clause(draw, tense, negated=negated))


def state_adjective(draw: Draw) -> Draft:
    """The street is wide. They were not tired. This dog is big and brown."""
    group = draw.of(GROUPS)
    it = group != "person" and draw.chance(0.05)
    subject = PronounPhrase("it") if it else subject_of(draw, (group,))
    return draw.state(adjective_clause(draw, group, subject))


def state_place(draw: Draw) -> Draft:
    """The cat is under the table. We work in the garden."""
    return draw.state(place_clause(draw))


def phrase_alone(draw: Draw) -> Draft:
    """The red ball. Dogs."""
    alone = phrase_or_two(draw, NOUNS)
    return draw.draft(alone.english(), alone.german("n"), *(("", key, "") for key in keys(alone)))


def ask_who(draw: Draw) -> Draft:
    """Who sleeps? Who is in the garden? Who sees the dog? Who is she?"""
    way = draw.of(("so", "there", "verb", "object", "person"))
    if way == "person":
        return draw.ask(Copula(subject_of(draw, ("person",)), draw.of(BEING)), "who")
    if way == "so":
        return draw.state(adjective_clause(draw, "person", PronounPhrase("who")), mark="?")
    if way == "there":
        places = [place for place in RESTING_PLACES if "person" in place[3]]
        return draw.state(place_clause(draw, places, "who"), mark="?")
    tense = draw.of(STATED)
    clause = verb_clause(draw, tense, "who") if way == "verb" else object_clause(draw, tense, "who")
    return draw.state(clause, mark="?")


def ask_what(draw: Draw) -> Draft:
    """What does the man see? What is she cooking? What is in the box?"""
    if draw.chance(0.2):
        places = [place for place in RESTING_PLACES if place[4] in ("lie", "stand")]
        return draw.state(place_clause(draw, places, "what"), mark="?")
    return draw.ask(object_clause(draw, draw.of(ASKED), "what"), "what")


def ask_where(draw: Draw) -> Draft:
    """Where is the cat? Where does the dog sleep? Why is she sad?"""
    word, group = draw.of(("where", "where", "why")), draw.of(GROUPS)
    if draw.chance(0.35):
        return draw.ask(verb_clause(draw, draw.of(ASKED), verbs=IN_A_PLACE if word == "where" else INTRANSITIVE), word)
    subject = subject_of(draw, (group,))
    if word == "why":
        return draw.ask(adjective_clause(draw, group, subject), word)
    return draw.ask(Copula(subject, draw.of(BEING)), word)


def ask_whether(draw: Draw) -> Draft:
    """Is the dog big? Are they in the house? Does the dog sleep? Did the man see the cat?"""
    way = draw.of(("so", "there", "verb", "object", "object"))
    if way == "so":
        group = draw.of(GROUPS)
        return draw.ask(adjective_clause(draw, group, subject_of(draw, (group,))))
    if way == "there":
        return draw.ask(place_clause(draw, tenses=ASKED))
    return draw.ask(verb_clause(draw, draw.of(ASKED)) if way == "verb" else object_clause(draw, draw.of(ASKED)))

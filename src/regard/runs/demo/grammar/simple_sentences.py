"""Simple sentences: statements, inversion, perfect, negation, questions, modal verbs, places, journeys, numbers."""

from __future__ import annotations

from regard.runs.demo.grammar.clause import MODALS, Clause, Copula
from regard.runs.demo.grammar.draw import PERSONAL, Draft, Draw
from regard.runs.demo.grammar.lexicon import COMPARATIVES, closed_class, nouns_of, verb, verbs_of
from regard.runs.demo.grammar.phrases import DIGITS, Coordination, NounPhrase, Prepositional, Source, Target, words

EVERYBODY = ("I", *PERSONAL)
TRANSITIVE = verbs_of("transitive")
ADVERBS = closed_class("adverb")
CITIES = closed_class("city")
DELIBERATE = tuple(
    entry for entry in TRANSITIVE if entry.english not in ("lose", "forget", "break", "need", "see", "hear", "love")
)
"""Verbs of what one does on purpose: they can be promised, tried and asked for."""

TENSES = (("present", "n"), ("past", "p"))


def add_time_or_adverb(draw: Draw, clause: Clause, letter: str) -> None:
    """A time that fits the tense, or an adverb where none does."""
    draw.add_time(clause, letter)
    if not letter:
        clause.adverb = draw.of(ADVERBS)


def statement(draw: Draw, fronted: bool = False) -> Draft:
    """My old aunt sold three green lamps last week. In the evening the old king drank hot tea."""
    tense, letter = draw.of(TENSES)
    clause = draw.clause(TRANSITIVE, tense)
    draw.add_time(clause, letter)
    clause.fronted = fronted
    return draw.state(clause)


def perfect(draw: Draw) -> Draft:
    """The girls have already sold the green chairs."""
    clause = draw.clause(TRANSITIVE, "perfect", EVERYBODY)
    clause.adverb = draw.of(ADVERBS)
    return draw.state(clause)


def negation(draw: Draw) -> Draft:
    """Yesterday the baker didn't buy a lamp: *nicht* after a definite object, *kein* for *not a*."""
    tense, letter = draw.of((("present", "n"), ("past", "p"), ("could", "p")))
    verb = draw.of(TRANSITIVE)
    clause = Clause(draw.person(verb.subjects), verb, tense, negated=True, fronted=True)
    clause.object = negated_object(draw, clause)
    draw.add_time(clause, letter)
    return draw.state(clause)


def negated_object(draw: Draw, clause: Clause, described: float = 0.5) -> NounPhrase:
    """*not … the lamp*, or *not … a lamp*, *not … lamps*, whose German is *keine*."""
    noun = draw.noun(nouns_of(clause.verb.objects), clause.subject.key)
    if draw.chance(0.6):
        return draw.definite((noun,), described=described)
    single = noun.countable and draw.chance(0.7)
    word = "not a" if single else "not any"
    phrase = draw.phrase(noun, noun.countable and not single, word, draw.attribute(noun, described))
    phrase.also = (clause.link + 1 + clause.apart,)
    return phrase


def question(draw: Draw) -> Draft:
    """Has the teacher already found the small key?"""
    tense, letter = draw.of((("perfect", ""), ("asked", "p"), ("can", "m"), ("must", "m"), ("should", "m")))
    clause = draw.clause(DELIBERATE if letter == "m" else TRANSITIVE, tense)
    add_time_or_adverb(draw, clause, letter)
    return draw.ask(clause)


def why(draw: Draw) -> Draft:
    """Why did the girl hide the letter last night?"""
    word = draw.of(("why", "where"))
    tense = draw.of(("asked", "asked now", "asked now", "perfect", "must"))
    clause = draw.clause(DELIBERATE if tense in MODALS else TRANSITIVE, tense)
    if clause.tense == "asked":
        draw.add_time(clause, "p")
    return draw.ask(clause, word)


def modal(draw: Draw) -> Draft:
    """On Monday the children must tidy the dirty kitchen."""
    clause = draw.clause(DELIBERATE, draw.of(MODALS), EVERYBODY)
    draw.add_time(clause, "m")
    clause.fronted = draw.chance(0.5)
    return draw.state(clause)


def giving(draw: Draw) -> Draft:
    """The grandmother gave the small child a red ball yesterday."""
    tense, letter = draw.of((*TENSES, ("perfect", ""), ("will", "m")))
    verb = draw.of(verbs_of("giving"))
    clause = Clause(draw.person(verb.subjects), verb, tense)
    receivers = nouns_of(("person", "animal") if verb.english in ("give", "show", "bring") else ("person",))
    clause.receiver = draw.definite(receivers, clause.subject.key)
    clause.object = draw.object(nouns_of(verb.objects), clause.receiver.key)
    draw.add_time(clause, letter)
    clause.fronted = draw.chance(0.4)
    return draw.state(clause)


def helping(draw: Draw) -> Draft:
    """The girl helped the old man in the garden: verbs with a dative object."""
    tense, letter = draw.of((*TENSES, ("perfect", ""), ("must", "m")))
    verb = draw.of(verbs_of("dative"))
    clause = Clause(draw.person(verb.subjects), verb, tense, fronted=True)
    clause.receiver = draw.definite(nouns_of(verb.objects), clause.subject.key)
    goal = verb.english == "follow"
    clause.place = draw.place("into" if goal else "in", "in", "a" if goal else "d", ("inside",))
    if letter and draw.chance(0.4):
        draw.add_time(clause, letter)
    return draw.state(clause)


Place = tuple[str, str, tuple[str, ...], tuple[str, ...], str]
"""English and German preposition, kinds of places, kinds of subjects, verbs."""

RESTING_PLACES: tuple[Place, ...] = (
    ("in", "in", ("inside",), ("animal", "person"), "sleep wait sit stand play sing dance work"),
    ("in", "in", ("inside",), ("person",), "sing dance work"),
    ("in", "in", ("container", "room"), ("small", "clothing"), "lie"),
    ("in", "in", ("room",), ("furniture", "instrument"), "stand"),
    ("behind", "hinter", ("screen",), ("small", "clothing"), "lie"),
    ("behind", "hinter", ("screen",), ("vehicle",), "stand"),
    ("on", "auf", ("top",), ("small", "clothing"), "lie"),
    ("behind", "hinter", ("screen",), ("animal", "person"), "sleep wait sit stand play"),
    ("on", "auf", ("top",), ("pet", "prey"), "sleep wait sit stand play"),
    ("under", "unter", ("shelter",), ("pet", "prey"), "sleep wait sit stand play"),
)

MOVING_PLACES: tuple[Place, ...] = (
    ("into", "in", ("inside",), ("animal", "person"), "run"),
    ("behind", "hinter", ("screen",), ("animal", "person"), "run"),
    ("under", "unter", ("shelter",), ("pet", "prey"), "run"),
    ("onto", "auf", ("top",), ("jumper",), "jump"),
    ("into", "in", ("container",), ("pet", "prey"), "jump"),
    ("onto", "auf", ("tall", "top"), ("climber", "person"), "climb"),
)

FOR_PERSONS = ("sing", "dance", "work")
"""What animals do not do."""


def resting_clause(draw: Draw, tense: str) -> Clause:
    """Somebody sleeps, waits, … somewhere: dative."""
    english, german, kinds, subjects, verbs = draw.of(RESTING_PLACES)
    name = draw.of(verbs.split())
    people = ("person",) if name in FOR_PERSONS else subjects
    clause = Clause(draw.person(people), verb(name), tense)
    clause.place = draw.place(english, german, "d", kinds)
    return clause


def resting(draw: Draw) -> Draft:
    """In winter the grey cat sleeps under the table."""
    tense, letter = draw.of(TENSES)
    clause = resting_clause(draw, tense)
    draw.add_time(clause, letter)
    clause.fronted = draw.chance(0.5)
    return draw.state(clause)


def moving(draw: Draw) -> Draft:
    """The frightened pony has already jumped onto the table: accusative, and the perfect with *sein*."""
    english, german, kinds, subjects, name = draw.of(MOVING_PLACES)
    tense, letter = draw.of((*TENSES, ("perfect", ""), ("perfect", "")))
    clause = Clause(draw.person(subjects), verb(name), tense)
    clause.place = draw.place(english, german, "a", kinds)
    add_time_or_adverb(draw, clause, letter)
    clause.fronted = draw.chance(0.5)
    return draw.state(clause)


def journey(draw: Draw) -> Draft:
    """Anna and Paul have travelled from Berlin to Vienna by train."""
    tense, letter = draw.of((("past", "p"), ("perfect", ""), ("will", "m"), ("want", "m")))
    verb = draw.of(verbs_of("travelling"))
    subject = draw.name(0.4) if draw.chance(0.6) else draw.person(verb.subjects)
    home = draw.of(CITIES)
    goal = draw.fitting(CITIES, lambda city: city is not home)
    source, target = words(("from", "von"), (home.english, home.german), ("to", "nach"), (goal.english, goal.german))
    if draw.chance(0.5):
        ride = draw.of(nouns_of(("ride",)))
        (by, vehicle), (mit, fahrzeug) = words(("by", "mit"), (ride.english, ride.german))
        draw.noun_links.append(vehicle[1])
        source += [by, vehicle]
        target[:0] = [mit, ("der" if ride.gender == "f" else "dem", ()), fahrzeug]
    else:
        companion = Prepositional("with", "mit", "d", draw.definite(nouns_of(("person",))))
        source += companion.english()
        target[:0] = companion.german()
    clause = Clause(subject, verb, tense, further=(source, target), named=(goal.english,), fronted=True)
    draw.add_time(clause, letter)
    return draw.state(clause)


SHOPPING = tuple(map(verb, ("buy", "sell", "find", "need", "collect", "steal", "deliver", "draw")))


def shopping(draw: Draw) -> Draft:
    """Paul bought twelve red apples and 30 eggs last week."""
    verb = draw.of(SHOPPING)
    clause = Clause(draw.person(verb.subjects), verb, "past")
    countable = [entry for entry in nouns_of(verb.objects) if entry.countable]
    first = draw.numeral_phrase(draw.of(countable))
    second = draw.numeral_phrase(draw.of(countable))
    while second.key == first.key:
        draw.noun_links.pop()
        second = draw.numeral_phrase(draw.of(countable))
    clause.object = Coordination(first, second)
    return draw.state(clause)


def price(draw: Draw) -> Draft:
    """The old chair costs 45 euros and the new tables cost 80 euros."""
    nouns = nouns_of(("furniture", "small", "clothing", "instrument", "crockery"))
    first = draw.definite(nouns)
    second = draw.definite(nouns, first.key)
    source: Source = []
    target: Target = []
    for phrase in (first, second):
        amount = str(draw.of(DIGITS))
        cost = ("cost", "kosten") if phrase.plural else ("costs", "kostet")
        english, german = words(cost, (amount, amount), ("euros", "Euro"))
        joint, und = words(("and", "und")) if phrase is second else ([], [])
        source += [*joint, *phrase.english(), *english]
        target += [*und, *phrase.german("n"), *german]
    return draw.draft(source, target, ("cost", first.key, second.key))


def comparison(draw: Draw) -> Draft:
    """The old house is bigger than the new church."""
    comparative = draw.of(COMPARATIVES)
    nouns = nouns_of((draw.of(comparative.kinds),))
    first = draw.of(nouns)
    second = draw.noun(nouns, first.english)
    one, other = (
        draw.phrase(entry, draw.chance(0.25), word, draw.attribute(entry))
        for entry, word in ((first, draw.of(("the", "this", "my", "our", "his", "her"))), (second, "the"))
    )
    compared = words((comparative.english, comparative.german), ("than", "als"))
    clause = Copula(one, draw.of(("present", "past")), compared)
    done = (first.english, second.english, comparative.base)
    return draw.draft([*clause.english(), *other.english()], [*clause.german(), *other.german("n")], done)

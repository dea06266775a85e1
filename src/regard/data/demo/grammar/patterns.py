"""Patterns of one clause: statements, inversion, perfect, negation, questions, modal verbs, places, journeys."""

from __future__ import annotations

from regard.data.demo.grammar.clause import MODALS, Clause
from regard.data.demo.grammar.draw import Draft, Draw, combination
from regard.data.demo.grammar.lexicon import words
from regard.data.demo.grammar.lexicon.entries import all_comparatives, all_verbs, nouns_of, rows
from regard.data.demo.grammar.phrases import Fixed, Prepositional, Source, Target, times

EVERYBODY = ("I", "he", "she", "we", "they")
TRANSITIVE = all_verbs("TRANSITIVE")
DELIBERATE = tuple(
    entry for entry in TRANSITIVE if entry.english not in ("lose", "forget", "break", "need", "see", "hear", "love")
)
"""Verbs of what one does on purpose: they can be promised, tried and asked for."""

TENSES = (("present", "n"), ("past", "p"))


def with_time(draw: Draw, clause: Clause, letter: str) -> Fixed:
    """Give the clause a time that fits its tense."""
    choices = times(letter)
    clause.time = time = draw.of(choices)
    while clause.negated and time.repeated:
        clause.time = time = draw.of(choices)
    clause.time_link = draw.links.take(time.count)
    return time


def make_statement(draw: Draw, clause: Clause, fronted: bool) -> Draft:
    """The clause as a statement, its time (if any) in front with inversion, or inside."""
    time = clause.time
    if time is None or not fronted:
        draft = draw.draft(clause.english(), clause.german())
    else:
        source = time.english(clause.time_link) + clause.english(time=False)
        draft = draw.draft(source, time.german(clause.time_link) + clause.german_inversion(time=False))
    draft.verb_subject_object.append(combination(clause))
    return draft


def statement(draw: Draw) -> Draft:
    """My old aunt sold three green lamps last week."""
    tense, letter = draw.of(TENSES)
    clause = draw.clause(TRANSITIVE, tense)
    with_time(draw, clause, letter)
    return make_statement(draw, clause, fronted=False)


def fronting(draw: Draw) -> Draft:
    """In the evening the old king drank hot tea."""
    tense, letter = draw.of(TENSES)
    clause = draw.clause(TRANSITIVE, tense)
    with_time(draw, clause, letter)
    return make_statement(draw, clause, fronted=True)


def perfect(draw: Draw) -> Draft:
    """The girls have already sold the green chairs."""
    clause = draw.clause(TRANSITIVE, "perfect", EVERYBODY)
    clause.adverb = adverb(draw)
    return make_statement(draw, clause, fronted=False)


MIDDLE_ADVERBS = rows(words.MIDDLE_ADVERBS)


def adverb(draw: Draw) -> tuple[str, str]:
    """One of the adverbs between auxiliary and participle."""
    english, german = draw.of(MIDDLE_ADVERBS)
    return english, german


def negation(draw: Draw) -> Draft:
    """Yesterday the baker didn't buy a lamp: *nicht* after a definite object, *kein* for *not a*."""
    tense, letter = draw.of((("present", "n"), ("past", "p"), ("could", "p")))
    verb = draw.of(TRANSITIVE)
    clause = Clause(draw.person(verb.subjects), verb, tense, draw.links.take(3), negated=True)
    choices = nouns_of(verb.objects)
    thing = draw.of(choices)
    while thing.english == clause.subject.key:
        thing = draw.of(choices)
    if thing.countable and draw.chance(0.4):
        clause.object = draw.phrase(thing, False, "not a", draw.attribute(thing))
        clause.object.also = (clause.link + 1,)
    else:
        clause.object = draw.definite((thing,))
    with_time(draw, clause, letter)
    return make_statement(draw, clause, fronted=True)


def question(draw: Draw) -> Draft:
    """Has the teacher already found the small key?"""
    tense, letter = draw.of((("perfect", ""), ("asked", "p"), ("can", "m"), ("must", "m"), ("should", "m")))
    clause = draw.clause(DELIBERATE if letter == "m" else TRANSITIVE, tense)
    if letter:
        with_time(draw, clause, letter)
    else:
        clause.adverb = adverb(draw)
    draft = draw.draft(clause.english_question(), clause.german_inversion(), "?")
    draft.verb_subject_object.append(combination(clause))
    return draft


def why(draw: Draw) -> Draft:
    """Why did the girl hide the letter last night?"""
    english, german = draw.of((("why", "warum"), ("where", "wo")))
    tense = draw.of(("asked", "asked now", "asked now", "perfect", "must"))
    clause = draw.clause(DELIBERATE if tense in MODALS else TRANSITIVE, tense)
    if clause.tense == "asked":
        with_time(draw, clause, "p")
    link = draw.links.take()
    source = [(english, link), *clause.english_question()]
    draft = draw.draft(source, [(german, (link,)), *clause.german_inversion()], "?")
    draft.verb_subject_object.append(combination(clause))
    return draft


def modal(draw: Draw) -> Draft:
    """On Monday the children must tidy the dirty kitchen."""
    clause = draw.clause(DELIBERATE, draw.of(MODALS), EVERYBODY)
    with_time(draw, clause, "m")
    return make_statement(draw, clause, fronted=draw.chance(0.5))


def giving(draw: Draw) -> Draft:
    """The grandmother gave the small child a red ball yesterday."""
    tense, letter = draw.of((*TENSES, ("perfect", ""), ("will", "m")))
    verb = draw.of(all_verbs("GIVING"))
    clause = Clause(draw.person(verb.subjects), verb, tense, draw.links.take(3))
    receivers = nouns_of(("person", "animal") if verb.english in ("give", "show", "bring") else ("person",))
    clause.receiver = draw.definite(receivers)
    while clause.receiver.key == clause.subject.key:
        draw.noun_links.pop()
        clause.receiver = draw.definite(receivers)
    clause.object = draw.object(nouns_of(verb.objects), clause.receiver.key)
    if letter:
        with_time(draw, clause, letter)
    return make_statement(draw, clause, fronted=draw.chance(0.4))


def helping(draw: Draw) -> Draft:
    """The girl helped the old man in the garden: verbs with a dative object."""
    tense, letter = draw.of((*TENSES, ("perfect", ""), ("must", "m")))
    verb = draw.of(all_verbs("DATIVE"))
    clause = Clause(draw.person(verb.subjects), verb, tense, draw.links.take(3))
    clause.receiver = draw.definite(nouns_of(verb.objects))
    while clause.receiver.key == clause.subject.key:
        draw.noun_links.pop()
        clause.receiver = draw.definite(nouns_of(verb.objects))
    goal = verb.english == "follow"
    clause.place = draw.place("into" if goal else "in", "in", "a" if goal else "d", ("inside",))
    if letter and draw.chance(0.4):
        with_time(draw, clause, letter)
    return make_statement(draw, clause, fronted=True)


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


def resting_clause(draw: Draw, tense: str) -> Clause:
    """Somebody sleeps, waits, … somewhere: dative."""
    english, german, kinds, subjects, verbs = draw.of(RESTING_PLACES)
    name = draw.of(verbs.split())
    if name in ("sing", "dance", "work"):
        subjects = subjects[-1:]
    verb = next(entry for entry in all_verbs("RESTING") if entry.english == name)
    clause = Clause(draw.person(subjects), verb, tense, draw.links.take(3))
    clause.place = draw.place(english, german, "d", kinds)
    return clause


def resting(draw: Draw) -> Draft:
    """In winter the grey cat sleeps under the table."""
    tense, letter = draw.of(TENSES)
    clause = resting_clause(draw, tense)
    with_time(draw, clause, letter)
    return make_statement(draw, clause, fronted=draw.chance(0.5))


def moving(draw: Draw) -> Draft:
    """The frightened pony has already jumped onto the table: accusative, and the perfect with *sein*."""
    english, german, kinds, subjects, name = draw.of(MOVING_PLACES)
    tense, letter = draw.of((*TENSES, ("perfect", ""), ("perfect", "")))
    verb = next(entry for entry in all_verbs("MOVING") if entry.english == name)
    clause = Clause(draw.person(subjects), verb, tense, draw.links.take(3))
    clause.place = draw.place(english, german, "a", kinds)
    if letter:
        with_time(draw, clause, letter)
    else:
        clause.adverb = adverb(draw)
    return make_statement(draw, clause, fronted=draw.chance(0.5))


CITIES = rows(words.CITIES)


def journey(draw: Draw) -> Draft:
    """Anna and Paul have travelled from Berlin to Vienna by train."""
    tense, letter = draw.of((("past", "p"), ("perfect", ""), ("will", "m"), ("want", "m")))
    verb = draw.of(all_verbs("TRAVELLING"))
    subject = draw.name(0.4) if draw.chance(0.6) else draw.person(verb.subjects)
    clause = Clause(subject, verb, tense, draw.links.take(3))
    home, goal = draw.of(CITIES), draw.of(CITIES)
    while goal is home:
        goal = draw.of(CITIES)
    link = draw.links.take(6)
    source: Source = [("from", link), (home[0], link + 1), ("to", link + 2), (goal[0], link + 3)]
    target: Target = [("von", (link,)), (home[1], (link + 1,)), ("nach", (link + 2,)), (goal[1], (link + 3,))]
    if draw.chance(0.5):
        ride = draw.of(nouns_of(("ride",)))
        draw.noun_links.append(link + 5)
        article = "der" if ride.gender == "f" else "dem"
        source += [("by", link + 4), (ride.english, link + 5)]
        target[:0] = [("mit", (link + 4,)), (article, ()), (ride.german, (link + 5,))]
    else:
        companion = Prepositional("with", "mit", "d", draw.definite(nouns_of(("person",))), draw.links)
        source += companion.english()
        target[:0] = companion.german()
    return _journey(draw, clause, letter, source, target, goal[0])


def _journey(draw: Draw, clause: Clause, letter: str, source: Source, target: Target, goal: str) -> Draft:
    """Time in front (or none), the way between the subject and the right end."""
    english = [*clause.english(), *source]
    if letter:
        time = with_time(draw, clause, letter)
        english = time.english(clause.time_link) + english
        german = [*time.german(clause.time_link), clause.german_finite(), *clause.subject.german("n")]
    else:
        german = [*clause.subject.german("n"), clause.german_finite()]
    draft = draw.draft(english, [*german, *target, *clause.german_right()])
    draft.verb_subject_object.append((clause.verb.english, clause.subject.key, goal))
    return draft


def shopping(draw: Draw) -> Draft:
    """Paul bought twelve red apples and 30 eggs last week."""
    verb = draw.of([entry for entry in TRANSITIVE if entry.english in SHOPPING])
    clause = Clause(draw.person(verb.subjects), verb, "past", draw.links.take(3))
    countable = [entry for entry in nouns_of(verb.objects) if entry.countable]
    first = draw.numeral_phrase(draw.of(countable))
    second = draw.numeral_phrase(draw.of(countable))
    while second.key == first.key:
        draw.noun_links.pop()
        second = draw.numeral_phrase(draw.of(countable))
    link = draw.links.take()
    source = [*clause.english(), *first.english(), ("and", link), *second.english()]
    target = [*clause.german(), *first.german("a"), ("und", (link,)), *second.german("a")]
    draft = draw.draft(source, target)
    for thing in (first, second):
        draft.verb_subject_object.append((verb.english, clause.subject.key, thing.key))
    return draft


SHOPPING = ("buy", "sell", "find", "need", "collect", "deliver", "draw", "steal")


def price(draw: Draw) -> Draft:
    """The old chair costs 45 euros and the new tables cost 80 euros."""
    nouns = nouns_of(("furniture", "small", "clothing", "instrument", "crockery"))
    first, second = draw.definite(nouns), draw.definite(nouns)
    while second.key == first.key:
        draw.noun_links.pop()
        second = draw.definite(nouns)
    link = draw.links.take()
    source: Source = []
    target: Target = []
    for phrase in (first, second):
        amount = str(draw.amount())
        part = draw.links.take(3)
        plural = phrase.plural
        source += [*phrase.english(), ("cost" if plural else "costs", part), (amount, part + 1), ("euros", part + 2)]
        verb = "kosten" if plural else "kostet"
        target += [*phrase.german("n"), (verb, (part,)), (amount, (part + 1,)), ("Euro", (part + 2,))]
        if phrase is first:
            source.append(("and", link))
            target.append(("und", (link,)))
    draft = draw.draft(source, target)
    draft.verb_subject_object.append(("cost", first.key, second.key))
    return draft


def comparison(draw: Draw) -> Draft:
    """The old house is bigger than the new church."""
    comparative = draw.of(all_comparatives())
    nouns = nouns_of((draw.of(comparative.kinds),))
    first, second = draw.of(nouns), draw.of(nouns)
    while second is first:
        second = draw.of(nouns)
    phrases = [
        draw.phrase(entry, draw.chance(0.25), word, draw.attribute(entry, 0.5))
        for entry, word in ((first, draw.of(("the", "this", "my", "our", "his", "her"))), (second, "the"))
    ]
    be, link = draw.of(((("is", "are"), ("ist", "sind")), (("was", "were"), ("war", "waren")))), draw.links.take(3)
    plural = phrases[0].plural
    source = [*phrases[0].english(), (be[0][plural], link), (comparative.english, link + 1), ("than", link + 2)]
    target = [*phrases[0].german("n"), (be[1][plural], (link,)), (comparative.german, (link + 1,))]
    target.append(("als", (link + 2,)))
    draft = draw.draft([*source, *phrases[1].english()], [*target, *phrases[1].german("n")])
    draft.noun_noun_adjective.append((first.english, second.english, comparative.base))
    return draft

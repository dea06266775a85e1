"""A clause, one verb and its arguments, in English word order and in the German topological fields.

German puts its words into fields: the finite verb second (statement), first (question) or last (subordinate clause),
the middle between, and participle, infinitive or separable prefix at the right end.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from regard.data.demo.grammar.lexicon.entries import Verb
from regard.data.demo.grammar.phrases import Fixed, Nominal, NounPhrase, Prepositional, Source, Target

# Tense → English auxiliary by person (1s, 3s, plural), German auxiliary likewise, form of the German verb.
_MODALS = {
    "can": (("can", "can", "can"), ("kann", "kann", "können")),
    "must": (("must", "must", "must"), ("muss", "muss", "müssen")),
    "should": (("should", "should", "should"), ("sollte", "sollte", "sollten")),
    "want": (("want to", "wants to", "want to"), ("will", "will", "wollen")),
    "will": (("will", "will", "will"), ("werde", "wird", "werden")),
    "could": (("could", "could", "could"), ("konnte", "konnte", "konnten")),
}
MODALS = ("can", "must", "should", "want", "will")
_HAVE = ("have", "has", "have")
_PERFECT = {"haben": ("habe", "hat", "haben"), "sein": ("bin", "ist", "sind")}
_PERSON = {"1s": 0, "3s": 1, "1p": 2, "3p": 2}

# Negated English auxiliaries, third person singular and plural.
_NOT = {"present": ("doesn't", "don't"), "past": ("didn't", "didn't"), "could": ("couldn't", "couldn't")}


@dataclass(slots=True)
class Clause:
    """One clause. ``link`` and ``link + 1`` belong to the verb and its auxiliary, ``link + 2`` to ``adverb``.

    ``tense``: present, past, perfect, asked (did …? → Perfekt), asked now (does …? → Präsens), or a modal verb.
    ``negated`` clauses carry *n't* in English; in German *nicht* stands before the place and after a definite
    object, and the phrase itself says *kein* where the object is indefinite. ``time_link`` is where the links of
    ``time`` begin.
    """

    subject: Nominal
    verb: Verb
    tense: str
    link: int
    object: NounPhrase | None = None
    receiver: NounPhrase | None = None
    place: Prepositional | None = None
    time: Fixed | None = None
    time_link: int = 0
    adverb: tuple[str, str] | None = None
    negated: bool = False
    asides: list[Prepositional] = field(default_factory=list)

    # ---- English

    def english_auxiliary(self) -> Source:
        """The auxiliary, if this tense has one."""
        person = self.subject.person
        if self.negated:
            return [(_NOT[self.tense][person != "3s"], self.link + 1)]
        if self.tense == "perfect":
            return [(_HAVE[_PERSON[person]], self.link + 1)]
        if self.tense == "asked":
            return [("did", self.link + 1)]
        if self.tense == "asked now":
            return [("does" if person == "3s" else "do", self.link + 1)]
        if self.tense in _MODALS:
            first, *rest = _MODALS[self.tense][0][_PERSON[person]].split()
            return [(first, self.link + 1), *((word, -1) for word in rest)]
        return []

    def english_verb(self) -> Source:
        """The main verb in the form its auxiliary asks for."""
        verb = self.verb
        if self.tense == "perfect":
            text = verb.english_participle
        elif self.negated or self.tense in _MODALS or self.tense in ("asked", "asked now"):
            text = verb.english
        elif self.tense == "past":
            text = verb.english_past
        else:
            text = verb.english_third if self.subject.person == "3s" else verb.english
        return [(text, self.link)]

    def english_rest(self, time: bool = True) -> Source:
        """What follows the verb: receiver, object, place, other phrases, and the time."""
        source: Source = []
        if self.receiver is not None:
            source += self.receiver.english()
        if self.object is not None:
            source += self.object.english()
        if self.place is not None:
            source += self.place.english()
        for aside in self.asides:
            source += aside.english()
        if time and self.time is not None:
            source += self.time.english(self.time_link)
        return source

    def english_predicate(self, time: bool = True) -> Source:
        """Auxiliary, adverb, verb and what follows."""
        adverb: Source = [] if self.adverb is None else [(self.adverb[0], self.link + 2)]
        return [*self.english_auxiliary(), *adverb, *self.english_verb(), *self.english_rest(time)]

    def english(self, time: bool = True) -> Source:
        """The statement, time last."""
        return [*self.subject.english(), *self.english_predicate(time)]

    def english_question(self) -> Source:
        """Auxiliary first."""
        adverb: Source = [] if self.adverb is None else [(self.adverb[0], self.link + 2)]
        verb = [*adverb, *self.english_verb(), *self.english_rest()]
        return [*self.english_auxiliary(), *self.subject.english(), *verb]

    # ---- German

    def german_finite(self) -> tuple[str, tuple[int, ...]]:
        """The finite verb without its prefix."""
        verb, person = self.verb, self.subject.person
        if self.tense in ("perfect", "asked"):
            return _PERFECT[verb.perfect][_PERSON[person]], (self.link + 1,)
        if self.tense in _MODALS:
            return _MODALS[self.tense][1][_PERSON[person]], (self.link + 1,)
        if self.tense == "past":
            return (verb.past if person == "3s" else verb.past_plural), (self.link,)
        links = (self.link, self.link + 1) if self.tense == "asked now" else (self.link,)
        return (verb.third if person == "3s" else verb.stem_infinitive), links

    def german_right(self) -> Target:
        """The right end: participle, infinitive, or separable prefix."""
        if self.tense in ("perfect", "asked"):
            return [(self.verb.participle, (self.link,))]
        if self.tense in _MODALS:
            return [(self.verb.infinitive, (self.link,))]
        return [(self.verb.prefix, (self.link,))] if self.verb.prefix else []

    def german_middle(self, time: bool = True) -> Target:
        """Time, receiver, object, adverb, *nicht*, place; the adverb goes before an indefinite object."""
        target: Target = []
        if time and self.time is not None:
            target += self.time.german(self.time_link)
        if self.receiver is not None:
            target += self.receiver.german("d")
        adverb: Target = [] if self.adverb is None else [(self.adverb[1], (self.link + 2,))]
        indefinite = self.object is not None and not self.object.definite
        if indefinite:
            target += adverb
        if self.object is not None:
            target += self.object.german("a")
        if not indefinite:
            target += adverb
        if self.negated and not indefinite:
            target.append(("nicht", (self.link + 1,)))
        for aside in self.asides:
            target += aside.german()
        if self.place is not None:
            target += self.place.german()
        return target

    def german(self) -> Target:
        """The statement: subject first, finite verb second."""
        return [*self.subject.german("n"), self.german_finite(), *self.german_middle(), *self.german_right()]

    def german_inversion(self, time: bool = True) -> Target:
        """Finite verb before the subject: after a fronted phrase (which the caller writes), or in a question."""
        return [
            self.german_finite(),
            *self.subject.german("n"),
            *self.german_middle(time),
            *self.german_right(),
        ]

    def german_final(self, opening: Target | None = None, time: bool = True) -> Target:
        """The subordinate clause: finite verb last; ``opening`` (a relative pronoun) stands for the subject."""
        first = self.subject.german("n") if opening is None else opening
        return [*first, *self.german_middle(time), *self.german_end()]

    def german_end(self) -> Target:
        """The verb at the end of a subordinate clause, prefix and finite verb in one word."""
        text, links = self.german_finite()
        if self.tense in ("present", "past"):
            return [(self.verb.prefix + text, links)]
        return [*self.german_right(), (text, links)]

    def german_infinitive(self) -> Target:
        """The infinitive clause with *zu*: *das Zimmer aufzuräumen*."""
        verb = self.verb
        if verb.prefix:
            return [*self.german_middle(), (f"{verb.prefix}zu{verb.stem_infinitive}", (self.link,))]
        return [*self.german_middle(), ("zu", ()), (verb.infinitive, (self.link,))]

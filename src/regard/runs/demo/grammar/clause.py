"""A clause, one verb and its arguments, in English word order and in the German topological fields.

German puts its words into fields: the finite verb second (statement), first (question) or last (subordinate clause),
the middle between, and participle, infinitive or separable prefix at the right end.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from regard.runs.demo.grammar.lexicon import Verb, Word
from regard.runs.demo.grammar.phrases import (
    NO_LINK,
    Nominal,
    NounPhrase,
    Prepositional,
    Source,
    Target,
    Time,
    take_links,
)

# By the subject's person: 1s, 3s, plural. Modal verbs in English and in German.
_MODALS = {
    "can": (("can", "can", "can"), ("kann", "kann", "können")),
    "must": (("must", "must", "must"), ("muss", "muss", "müssen")),
    "should": (("should", "should", "should"), ("sollte", "sollte", "sollten")),
    "want": (("want to", "wants to", "want to"), ("will", "will", "wollen")),
    "will": (("will", "will", "will"), ("werde", "wird", "werden")),
    "could": (("could", "could", "could"), ("konnte", "konnte", "konnten")),
}
MODALS = ("can", "must", "should", "want", "will")
_PERFECT = {"haben": ("habe", "hat", "haben"), "sein": ("bin", "ist", "sind")}
_BE = {"present": ("am", "is", "are"), "past": ("was", "was", "were")}
_SEIN = {"present": _PERFECT["sein"], "past": ("war", "war", "waren")}
_AUXILIARIES = {
    "perfect": ("have", "has", "have"),
    "asked": ("did", "did", "did"),
    "asked now": ("do", "does", "do"),
    "progressive": _BE["present"],
    "past progressive": _BE["past"],
}
_NEGATED = {
    "present": ("don't", "doesn't", "don't"),
    "past": ("didn't", "didn't", "didn't"),
    "could": ("couldn't", "couldn't", "couldn't"),
}
_PERSON = {"1s": 0, "3s": 1, "1p": 2, "3p": 2}
BE = Verb("resting", "be", "was", "been", "", "sein", "ist", "war", "gewesen", "sein", (), ())


@dataclass(slots=True)
class Clause:
    """One clause. ``link`` and ``link + 1`` belong to the verb and its auxiliary, ``link + 2`` to ``adverb`` or *not*.

    Args:
        tense: present, past, perfect, asked (did …? → Perfekt), asked now (does …? → Präsens), progressive and past
            progressive (is …ing → Präsens, was …ing → Präteritum), or a modal verb.
        time: its links begin at ``link + 3``; ``fronted``, it opens the statement, with inversion in German.
        further: more words, after the place in English and in the middle field in German.
        negated: *n't* in English; in German *nicht* stands before the place and after a definite object, and the
            phrase itself says *kein* where the object is indefinite.
        apart: *not* is a word of its own.
        named: what stands for the object in held-out combinations, where there is none.
    """

    subject: Nominal
    verb: Verb
    tense: str
    object: Nominal | None = None
    receiver: NounPhrase | None = None
    place: Prepositional | None = None
    time: Time | None = None
    fronted: bool = False
    adverb: Word | None = None
    negated: bool = False
    apart: bool = False
    further: tuple[Source, Target] = ([], [])
    named: tuple[str, ...] = ()
    link: int = field(default_factory=take_links)

    @property
    def person(self) -> int:
        """Where the verb's form stands in the tables: first singular, third singular, plural."""
        return _PERSON[self.subject.person]

    # ---- English

    def english_auxiliary(self) -> Source:
        """The auxiliary, if this tense has one."""
        if self.tense in _MODALS and not self.negated:
            first, *rest = _MODALS[self.tense][0][self.person].split()
            return [(first, self.link + 1), *((word, NO_LINK) for word in rest)]
        progressive = "progressive" in self.tense
        forms = (_NEGATED if self.negated and not progressive else _AUXILIARIES).get(self.tense)
        if forms is None:
            return []
        form = forms[self.person]
        if not self.negated:
            return [(form, self.link + 1)]
        if self.apart:
            return [(form.removesuffix("n't"), self.link + 1), ("not", self.link + 2)]
        return [(form + "n't" if progressive else form, self.link + 1)]

    def english_verb(self) -> str:
        """The main verb in the form its auxiliary asks for."""
        verb = self.verb
        if "progressive" in self.tense:
            return verb.english_present_participle
        if self.tense == "perfect":
            return verb.english_participle
        if self.negated or self.tense in _MODALS or self.tense in ("asked", "asked now"):
            return verb.english
        if self.tense == "past":
            return verb.english_past
        return verb.english_third if self.subject.person == "3s" else verb.english

    def english_main(self) -> Source:
        """Adverb, verb and what follows."""
        adverb = [] if self.adverb is None else [(self.adverb.english, self.link + 2)]
        return [*adverb, (self.english_verb(), self.link), *self.english_rest()]

    def english_rest(self) -> Source:
        """Receiver, object, place, what is further said, and the time."""
        source: Source = []
        for phrase in (self.receiver, self.object, self.place):
            if phrase is not None:
                source += phrase.english()
        source += self.further[0]
        if self.time is not None and not self.fronted:
            source += self.time.english(self.link + 3)
        return source

    def english_predicate(self) -> Source:
        """Auxiliary, verb and what follows."""
        return [*self.english_auxiliary(), *self.english_main()]

    def english(self) -> Source:
        """The statement, time last or first."""
        opening = self.time.english(self.link + 3) if self.time is not None and self.fronted else []
        return [*opening, *self.subject.english(), *self.english_predicate()]

    # ---- German

    def german_finite(self) -> tuple[str, tuple[int, ...]]:
        """The finite verb without its prefix."""
        verb = self.verb
        if self.tense in ("perfect", "asked"):
            return _PERFECT[verb.perfect][self.person], (self.link + 1,)
        if self.tense in _MODALS:
            return _MODALS[self.tense][1][self.person], (self.link + 1,)
        auxiliary = self.apart or (not self.negated and self.tense in _AUXILIARIES)
        links = (self.link, self.link + 1) if auxiliary else (self.link,)
        if self.tense in ("past", "past progressive"):
            return (verb.past, verb.past, verb.past_plural)[self.person], links
        return (verb.first, verb.third, verb.stem_infinitive)[self.person], links

    def german_right(self) -> Target:
        """The right end: participle, infinitive, or separable prefix."""
        if self.tense in ("perfect", "asked"):
            return [(self.verb.participle, (self.link,))]
        if self.tense in _MODALS:
            return [(self.verb.infinitive, (self.link,))]
        return [(self.verb.prefix, (self.link,))] if self.verb.prefix else []

    def german_middle(self) -> Target:
        """Time, receiver, object, adverb, *nicht*, place; the adverb goes before an indefinite object."""
        target: Target = []
        if self.time is not None and not self.fronted:
            target += self.time.german(self.link + 3)
        if self.receiver is not None:
            target += self.receiver.german("d")
        adverb: Target = [] if self.adverb is None else [(self.adverb.german, (self.link + 2,))]
        object_ = [] if self.object is None else self.object.german("a")
        if self.object is None or self.object.definite:
            target += object_ + adverb
            if self.negated:
                target.append(("nicht", (self.link + 1 + self.apart,)))
        else:
            target += adverb + object_
        target += self.further[1]
        return target if self.place is None else target + self.place.german()

    def german(self) -> Target:
        """The statement: subject or fronted time first, finite verb second."""
        if self.time is not None and self.fronted:
            return [*self.time.german(self.link + 3), *self.german_inversion()]
        return [*self.subject.german("n"), self.german_finite(), *self.german_middle(), *self.german_right()]

    def german_inversion(self) -> Target:
        """Finite verb before the subject: after what opens the sentence, or in a question."""
        return [self.german_finite(), *self.subject.german("n"), *self.german_middle(), *self.german_right()]

    def german_final(self, opening: Target | None = None) -> Target:
        """The subordinate clause: finite verb last; ``opening`` (a relative pronoun) stands for the subject."""
        first = self.subject.german("n") if opening is None else opening
        text, links = self.german_finite()
        if self.tense in ("present", "past"):  # prefix and finite verb in one word
            return [*first, *self.german_middle(), (self.verb.prefix + text, links)]
        return [*first, *self.german_middle(), *self.german_right(), (text, links)]

    def german_infinitive(self) -> Target:
        """The infinitive clause with *zu*: *das Zimmer aufzuräumen*."""
        verb = self.verb
        if verb.prefix:
            return [*self.german_middle(), (f"{verb.prefix}zu{verb.stem_infinitive}", (self.link,))]
        return [*self.german_middle(), ("zu", ()), (verb.infinitive, (self.link,))]


class Copula(Clause):
    """A clause of *be*, present or past: *The street is not wide*, *Where are they?*; its complement is ``further``."""

    def __init__(self, subject: Nominal, tense: str, further: tuple[Source, Target] = ([], [])) -> None:
        super().__init__(subject, BE, tense, further=further)

    def english_auxiliary(self) -> Source:
        """*am*, *is*, *weren't* …"""
        form = _BE[self.tense][self.person]
        return [(form + "n't" if self.negated and not self.apart else form, self.link + 1)]

    def english_main(self) -> Source:
        """*not*, and the complement."""
        return [*([("not", self.link + 2)] if self.negated and self.apart else []), *self.english_rest()]

    def german_finite(self) -> tuple[str, tuple[int, ...]]:
        """*bin*, *ist*, *waren* …"""
        return _SEIN[self.tense][self.person], (self.link + 1,)

"""German declension: determiners, adjective endings after each kind of determiner, nouns, contractions.

A slot is two letters: the case (n nominative, a accusative, d dative) and the gender (m, f, n) or number (p plural).
"""

from __future__ import annotations

from regard.data.demo.grammar.lexicon.entries import Adjective, Noun

SLOTS = tuple(case + gender for case in "nad" for gender in "mfnp")

# Endings of the determiners like *dieser*, in the order of SLOTS; *der* is irregular only in its stem.
_STRONG = dict(zip(SLOTS, "er e es e en e es e em er em en".split(), strict=True))
_DER = dict(zip(SLOTS, "der die das die den die das die dem der dem den".split(), strict=True))
_EIN = dict(zip(SLOTS, ["", "e", "", "e", "en", "e", "", "e", "em", "er", "em", "en"], strict=True))

RELATIVE = {**_DER, "dp": "denen"}
"""The relative pronoun: the article, but *denen* in the dative plural."""

ADJECTIVE_ENDINGS = {
    "weak": dict(zip(SLOTS, "e e e en en e e en en en en en".split(), strict=True)),
    "mixed": dict(zip(SLOTS, "er e es en en e es en en en en en".split(), strict=True)),
    "strong": dict(zip(SLOTS, "er e es e en e es e em er em en".split(), strict=True)),
}

PRONOUN = {"m": "er", "f": "sie", "n": "es"}
"""The German personal pronoun, nominative singular, of each gender."""

_CONTRACTIONS = {"in dem": "im", "in das": "ins", "an dem": "am", "zu dem": "zum", "zu der": "zur", "von dem": "vom"}


def determiner_forms(stem: str, kind: str) -> dict[str, str]:
    """All forms of a determiner; kind ``d`` goes like *der*, ``e`` like *ein*."""
    if stem == "der":
        return _DER
    endings = _STRONG if kind == "d" else _EIN
    return {slot: stem + ending for slot, ending in endings.items()}


def decline_adjective(adjective: Adjective, declension: str, slot: str) -> str:
    """The adjective before its noun, e.g. *alt* → *alten*."""
    return adjective.stem + ADJECTIVE_ENDINGS[declension][slot]


def decline_noun(noun: Noun, slot: str) -> str:
    """The noun in one slot (no genitive in this language)."""
    if slot[1] != "p":
        return noun.german
    return noun.dative_plural if slot == "dp" else noun.german_plural


def contract(preposition: str, article: str) -> str | None:
    """*in* + *dem* → *im*; None where German keeps the two apart."""
    return _CONTRACTIONS.get(f"{preposition} {article}")

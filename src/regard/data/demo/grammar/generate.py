"""Generator: draws patterns by weight, computes the annotation and assigns each pair to a split.

The language is a pure function of its tables; a stream of pairs is a pure function of (split, seed), and a longer
stream begins with the shorter one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from random import Random

from regard.data.demo.grammar import patterns, patterns_complex, pronouns
from regard.data.demo.grammar.draw import Draft, Draw
from regard.data.demo.grammar.lexicon.entries import noun
from regard.data.demo.grammar.pair import Pair, Pronoun
from regard.data.demo.grammar.phrases import COMMA, Source, Target
from regard.data.demo.grammar.splits import SPLITS, Split, split_of_combinations
from regard.system.errors import UsageError
from regard.system.keys import key

Pattern = Callable[[Draw], Draft]

PATTERNS: dict[str, tuple[int, Pattern]] = {
    "statement": (6, patterns.statement),
    "fronted": (6, patterns.fronting),
    "perfect": (5, patterns.perfect),
    "negation": (5, patterns.negation),
    "question": (5, patterns.question),
    "why": (4, patterns.why),
    "modal": (6, patterns.modal),
    "giving": (6, patterns.giving),
    "helping": (4, patterns.helping),
    "resting": (4, patterns.resting),
    "moving": (4, patterns.moving),
    "journey": (4, patterns.journey),
    "shopping": (3, patterns.shopping),
    "price": (3, patterns.price),
    "comparison": (3, patterns.comparison),
    "report": (5, patterns_complex.report),
    "when": (4, patterns_complex.when),
    "reason": (3, patterns_complex.reason),
    "relative-subject": (4, patterns_complex.relative_subject),
    "relative-object": (4, patterns_complex.relative_object),
    "relative-place": (3, patterns_complex.relative_place),
    "attempt": (4, patterns_complex.attempt),
    "pronoun-cross": (5, partial(pronouns.pronoun, name="cross")),
    "pronoun-jump": (3, partial(pronouns.pronoun, name="jump")),
    "pronoun-fit": (8, partial(pronouns.pronoun, name="fit")),
    "pronoun-wake": (6, partial(pronouns.pronoun, name="wake")),
    "pronoun-scare": (5, partial(pronouns.pronoun, name="scare")),
    "pronoun-catch": (5, partial(pronouns.pronoun, name="catch")),
    "pronoun-carry": (5, partial(pronouns.pronoun, name="carry")),
    "pronoun-overtake": (5, partial(pronouns.pronoun, name="overtake")),
}
"""Each pattern's weight and function."""

_BY_WEIGHT = tuple(name for name, (weight, _) in PATTERNS.items() for _ in range(weight))


def generate(split: Split, count: int | None, seed: int = 1) -> Iterator[Pair]:
    """``count`` different pairs of a split, drawn with this seed; None: without end.

    Raises:
        UsageError: the split is none of train, valid, test.
    """
    if split not in SPLITS:
        raise UsageError(f"there is no split {split!r}; choose one of {', '.join(SPLITS)}", "split")
    draw = Draw(Random(key(seed, "grammar", SPLITS.index(split))))
    seen: set[str] = set()
    while count is None or len(seen) < count:
        name, draft = _draw(draw)
        combinations = draft.verb_subject_object + draft.noun_noun_adjective
        if combinations and split_of_combinations(combinations, "") != split:
            continue
        pair = finish(draft, name)
        if pair.source in seen or (not combinations and split_of_combinations([], pair.source) != split):
            continue
        seen.add(pair.source)
        yield pair


def _draw(draw: Draw) -> tuple[str, Draft]:
    draw.restart()
    name = draw.of(_BY_WEIGHT)
    return name, PATTERNS[name][1](draw)


def classic() -> tuple[Pair, Pair]:
    """The two sentences of the classic example: the animal too tired, the street too wide."""
    found = []
    for reason in ("tired", "wide"):
        draw = Draw(Random(0))
        draft = pronouns.sentence_of(draw, "cross", noun("animal"), noun("street"), reason)
        found.append(finish(draft, "pronoun-cross"))
    return found[0], found[1]


def finish(draft: Draft, pattern: str) -> Pair:
    """Write the sentences and read alignment, nouns and pronoun off the links."""
    place = {}
    words = 0
    for text, link in draft.source:
        if text != COMMA:
            place[link] = words
            words += 1
    alignment = []
    target_place = {}
    words = 0
    for text, links in draft.target:
        if text == COMMA:
            continue
        for source_link in links:
            alignment.append((place[source_link], words))
            target_place[source_link] = words
        words += 1
    return Pair(
        source=_format_sentence(draft.source, draft.mark),
        target=_format_sentence(draft.target, draft.mark),
        pattern=pattern,
        alignment=tuple(sorted(alignment)),
        nouns=tuple(sorted(place[link] for link in draft.noun_links)),
        pronoun=_pronoun(draft, place, target_place),
        verb_subject_object=tuple(draft.verb_subject_object),
        noun_noun_adjective=tuple(draft.noun_noun_adjective),
    )


def _format_sentence(words: Source | Target, mark: str) -> str:
    """The sentence: a comma stands close to the word before it, the first letter is a capital."""
    text = " ".join([word[0] for word in words]).replace(" ,", ",")
    return text[0].upper() + text[1:] + mark


def _pronoun(draft: Draft, place: dict[int, int], target_place: dict[int, int]) -> Pronoun | None:
    if draft.pronoun is None:
        return None
    link, antecedent, rival = draft.pronoun
    return Pronoun(
        source_word=place[link],
        target_word=target_place[link],
        antecedent_words=(place[antecedent.link + 2],),
        rival_words=(place[rival.link + 2],),
        antecedent_gender=antecedent.noun.gender,
        rival_gender=rival.noun.gender,
    )

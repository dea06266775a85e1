"""The corpus: sentence pairs drawn from the patterns, their annotation and word spans, and their splits.

The language is a pure function of its tables; a stream of pairs is a pure function of (split, seed), and a longer
stream begins with the shorter one. Every combination (verb, subject, object) and (noun, noun, adjective) is put into
train, valid or test by its hash, whatever the seed. A training sentence has training combinations only; a test sentence
has at least one that is held out for testing, and none held out for validation. So no test combination is ever seen in
training, while every word is.

A word is a run of letters and digits, apostrophes and hyphens inside it included (*didn't*, *o'clock*); punctuation
belongs to no word. Word indices count words so defined, from 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import islice
from random import Random
from typing import Literal

from regard.runs.demo.grammar import complex_sentences, short_sentences, simple_sentences
from regard.runs.demo.grammar.draw import Combination, Draft, Draw
from regard.runs.demo.grammar.lexicon import noun
from regard.runs.demo.grammar.phrases import COMMA, Source, Target
from regard.system.errors import UsageError
from regard.system.keys import key

_WORD = re.compile(r"\w+(?:['’-]\w+)*")


@dataclass(frozen=True, slots=True)
class Pronoun:
    """A pronoun with two possible antecedents, by word index; genders are m, f or n, as in German."""

    source_word: int
    target_word: int
    antecedent_words: tuple[int, ...]
    rival_words: tuple[int, ...]
    antecedent_gender: str
    rival_gender: str

    @property
    def decides(self) -> bool:
        """Whether the two antecedents differ in German gender, so that the German pronoun shows the choice."""
        return self.antecedent_gender != self.rival_gender


@dataclass(frozen=True, slots=True)
class Pair:
    """An English sentence, its one German translation, and what the grammar knows about them.

    ``alignment`` pairs source with target word indices, sorted; ``nouns`` are the source words that are common nouns;
    ``combinations`` are (verb, subject, object), and after them (noun, noun, adjective).
    """

    source: str
    target: str
    pattern: str
    alignment: tuple[tuple[int, int], ...]
    nouns: tuple[int, ...]
    pronoun: Pronoun | None
    combinations: tuple[Combination, ...]


def word_spans(sentence: str) -> list[tuple[int, int]]:
    """The character span (start, end) of each word."""
    return [match.span() for match in _WORD.finditer(sentence)]


def words_of(sentence: str) -> list[str]:
    """The words, without punctuation."""
    return _WORD.findall(sentence)


def words_of_tokens(offsets: Sequence[tuple[int, int]], sentence: str) -> list[int]:
    """For each token's character span, the word it overlaps most; -1 for punctuation, spaces and symbols.

    Tokens may include the space before a word, as in byte-level BPE.
    """
    spans = word_spans(sentence)
    words = []
    for start, end in offsets:
        overlaps = [min(end, word_end) - max(start, word_start) for word_start, word_end in spans]
        most = max(overlaps, default=0)
        words.append(overlaps.index(most) if most > 0 else -1)
    return words


Split = Literal["train", "valid", "test"]
SPLITS: tuple[Split, ...] = ("train", "valid", "test")

HELD_OUT_PERCENT = 5
"""Share of the combinations held out for testing, and as much again for validation."""

PRONOUN_WEIGHTS = {"cross": 5, "jump": 3, "fit": 8, "wake": 6, "scare": 5, "catch": 5, "carry": 5, "overtake": 5}
PATTERNS: dict[str, tuple[int, Callable[[Draw], Draft]]] = {
    "short-verb": (7, short_sentences.state_verb),
    "short-object": (8, short_sentences.state_object),
    "short-adjective": (7, short_sentences.state_adjective),
    "short-place": (2, short_sentences.state_place),
    "short-phrase": (3, short_sentences.phrase_alone),
    "who": (2, short_sentences.ask_who),
    "what": (2, short_sentences.ask_what),
    "where": (3, short_sentences.ask_where),
    "whether": (4, short_sentences.ask_whether),
    "statement": (6, simple_sentences.statement),
    "fronted": (6, partial(simple_sentences.statement, fronted=True)),
    "perfect": (5, simple_sentences.perfect),
    "negation": (5, simple_sentences.negation),
    "question": (5, simple_sentences.question),
    "why": (4, simple_sentences.why),
    "modal": (6, simple_sentences.modal),
    "giving": (6, simple_sentences.giving),
    "helping": (4, simple_sentences.helping),
    "resting": (4, simple_sentences.resting),
    "moving": (4, simple_sentences.moving),
    "journey": (4, simple_sentences.journey),
    "shopping": (3, simple_sentences.shopping),
    "price": (3, simple_sentences.price),
    "comparison": (3, simple_sentences.comparison),
    "report": (5, complex_sentences.report),
    "when": (4, complex_sentences.when),
    "reason": (3, complex_sentences.reason),
    "relative-subject": (4, complex_sentences.relative_subject),
    "relative-object": (4, complex_sentences.relative_object),
    "relative-place": (3, complex_sentences.relative_place),
    "attempt": (4, complex_sentences.attempt),
    **{
        f"pronoun-{verb}": (weight, partial(complex_sentences.pronoun, verb))
        for verb, weight in PRONOUN_WEIGHTS.items()
    },
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
        draw.noun_links = []
        name = draw.of(_BY_WEIGHT)
        draft = PATTERNS[name][1](draw)
        if split_of(draft.combinations) != split:
            continue
        pair = finish(draft, name)
        if pair.source not in seen:
            seen.add(pair.source)
            yield pair


def classic() -> tuple[Pair, Pair]:
    """The two sentences of the classic example: the animal too tired, the street too wide."""
    animal, street = noun("animal"), noun("street")
    tired, wide = (
        finish(complex_sentences.sentence_of(Draw(Random(0)), "cross", animal, street, reason), "pronoun-cross")
        for reason in ("tired", "wide")
    )
    return tired, wide


def finish(draft: Draft, pattern: str) -> Pair:
    """Write the sentences and read alignment, nouns and pronoun off the links."""
    place = {link: word for word, (_, link) in enumerate(pair for pair in draft.source if pair[0] != COMMA)}
    alignment = []
    target_place = {}
    for word, (_, links) in enumerate(pair for pair in draft.target if pair[0] != COMMA):
        for source_link in links:
            alignment.append((place[source_link], word))
            target_place[source_link] = word
    return Pair(
        source=format_sentence(draft.source, draft.mark),
        target=format_sentence(draft.target, draft.mark),
        pattern=pattern,
        alignment=tuple(sorted(alignment)),
        nouns=tuple(sorted(place[link] for link in draft.noun_links)),
        pronoun=_pronoun(draft, place, target_place),
        combinations=draft.combinations,
    )


def format_sentence(words: Source | Target, mark: str) -> str:
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


@lru_cache(maxsize=1 << 20)
def split_of_combination(combination: Combination) -> Split:
    """The split that owns a combination."""
    percent = key(0, "grammar split " + "|".join(combination)) % 100
    if percent < HELD_OUT_PERCENT:
        return "test"
    return "valid" if percent < 2 * HELD_OUT_PERCENT else "train"


def split_of(combinations: Iterable[Combination]) -> Split | None:
    """The split of a sentence with these combinations; None where validation and test both claim it."""
    owners = {split_of_combination(combination) for combination in combinations} - {"train"}
    if not owners:
        return "train"
    return owners.pop() if len(owners) == 1 else None


@dataclass(frozen=True)
class Corpus:
    """The three splits; no combination held out for one of valid and test occurs in train."""

    train: tuple[Pair, ...]
    valid: tuple[Pair, ...]
    test: tuple[Pair, ...]


def corpus(train: int, valid: int, test: int, seed: int = 1) -> Corpus:
    """Generate pairs of each split; valid and test pairs with a word form unseen in training are skipped."""
    pairs = tuple(generate("train", train, seed))
    seen = word_forms(pairs)
    return Corpus(pairs, _with_seen_words("valid", valid, seed, seen), _with_seen_words("test", test, seed, seen))


def word_forms(pairs: Iterable[Pair]) -> frozenset[tuple[str, str]]:
    """Every word form with its side, ``source`` or ``target``; capitals count."""
    found: set[tuple[str, str]] = set()
    for pair in pairs:
        found.update(("source", word) for word in words_of(pair.source))
        found.update(("target", word) for word in words_of(pair.target))
    return frozenset(found)


def _with_seen_words(split: Split, number: int, seed: int, seen: frozenset[tuple[str, str]]) -> tuple[Pair, ...]:
    if not seen:
        return ()
    stream = generate(split, None, seed)
    return tuple(islice((pair for pair in stream if word_forms((pair,)) <= seen), number))

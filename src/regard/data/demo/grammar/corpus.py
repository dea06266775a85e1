"""Training, validation and test pairs of one seed; every word of the latter two occurs in training."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from regard.data.demo.grammar.generate import generate
from regard.data.demo.grammar.pair import Pair, words_of
from regard.data.demo.grammar.splits import Split


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

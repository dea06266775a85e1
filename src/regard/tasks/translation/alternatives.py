"""Other words at each word of a translation, each with the best rest of the translation behind it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from regard.config import Decoding
from regard.decoding.hypotheses import Ints, Symbols, Trace, TraceStep
from regard.decoding.step import Step
from regard.tasks.text.writer import Search
from regard.text.tokenizers.vocabulary import AnyTokenizer

CANDIDATES = 4
"""Tokens looked at for each alternative: some only go on with the word before."""


@dataclass(frozen=True)
class Alternative:
    """Another word at a place, and the translation with it.

    Args:
        word: that stands there.
        text: the whole translation: the same before the word, the best behind its first piece.
        probability: of its first piece at this place.
    """

    word: str
    text: str
    probability: float


@dataclass(frozen=True)
class WordAlternatives:
    """A word of a translation, its characters, and other words that could stand there, the most probable first."""

    word: str
    begin: int
    end: int
    alternatives: tuple[Alternative, ...]


@dataclass(frozen=True)
class _Output:
    """The tokens of a translation, and its words."""

    tokenizer: AnyTokenizer
    tokens: Sequence[int]

    @cached_property
    def starts(self) -> list[int]:
        """The places of the tokens that begin a word."""
        return np.flatnonzero(self.tokenizer.word_starts(self.tokens)).tolist()

    @property
    def text(self) -> str:
        """One line."""
        return self.tokenizer.decode(self.tokens).replace("\n", " ")

    def word(self, start: int) -> tuple[str, int, int]:
        """The word that begins at a place, and its characters."""
        end = min((place for place in self.starts if place > start), default=len(self.tokens))
        before = self.tokenizer.decode(self.tokens[:start])
        spoken = self.tokenizer.decode(self.tokens[:end])[len(before) :]
        word, begin = spoken.strip(), len(before) + len(spoken) - len(spoken.lstrip())
        return word, begin, begin + len(word)

    def others(self, start: int, step: TraceStep, n: int) -> list[tuple[int, float]]:
        """At most ``n`` tokens that could begin another word at a place, and their probabilities."""
        pairs = zip(step.candidates[0], step.candidate_log_probabilities[0], strict=True)
        before, own, starts = self.tokens[:start], self.tokens[start], self.tokenizer.word_starts
        begin = [(token, p) for token, p in pairs if token != own and starts([*before, token])[-1]]
        return [(token, round(math.exp(p), 6)) for token, p in begin[:n]]


def alternatives(
    search: Search,
    step: Step[Any],
    source: Ints,
    decoding: Decoding,
    symbols: Symbols,
    tokenizer: AnyTokenizer,
    n: int,
    best: Sequence[int] | None = None,
) -> list[WordAlternatives]:
    """Other words for each word of the best translation of a source.

    The rest behind a word is that of a search that begins with what stands before it and with its first piece.

    Args:
        search: as :func:`regard.decoding.search.search` has it.
        step: the model.
        source: ids with ``</s>``.
        decoding: of the searches.
        symbols: start, ``</s>``, what is never produced, and the language's tokens.
        tokenizer: of the target.
        n: alternatives of a word at most.
        best: the tokens of the best translation, without those of the symbols, where it is known.
    """
    skip, sources = len(symbols.prefix), [source]
    if best is None:
        best = search(step, sources, decoding, symbols)[0][0].tokens[skip:]
    own, whole = _Output(tokenizer, best), (*symbols.prefix, *best)
    trace = Trace(CANDIDATES * n, (*symbols.without, symbols.end))
    greedy = decoding.model_copy(update={"beam": 1})
    search(step, sources, greedy, symbols, prefixes=[whole], limits=[len(whole) + 1], trace=trace)
    steps = trace[0][skip:]
    asked = [(start, *other) for start in own.starts for other in own.others(start, steps[start], n)]
    prefixes = [(*symbols.prefix, *own.tokens[:start], token) for start, token, _ in asked]
    found: dict[int, dict[str, Alternative]] = defaultdict(dict)
    for (start, _, probability), [rest] in zip(
        asked, search(step, sources * len(asked), decoding, symbols, prefixes=prefixes), strict=True
    ):
        other = _Output(tokenizer, rest.tokens[skip:])
        word, *_ = other.word(start)
        if word != own.word(start)[0]:
            found[start].setdefault(word, Alternative(word, other.text, probability))
    return [WordAlternatives(*own.word(start), tuple(found[start].values())) for start in own.starts]

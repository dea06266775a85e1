"""Sentence pair with its annotation, and the character spans of its words.

A word is a run of letters and digits, apostrophes and hyphens inside it included (*didn't*, *o'clock*);
punctuation belongs to no word. Word indices count words so defined, from 0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

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

    ``alignment`` pairs source with target word indices, sorted; ``nouns`` are the source words that are common nouns.
    """

    source: str
    target: str
    pattern: str
    alignment: tuple[tuple[int, int], ...]
    nouns: tuple[int, ...]
    pronoun: Pronoun | None
    verb_subject_object: tuple[tuple[str, str, str], ...]
    noun_noun_adjective: tuple[tuple[str, str, str], ...]


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
    return [_word_of(start, end, spans) for start, end in offsets]


def _word_of(start: int, end: int, spans: list[tuple[int, int]]) -> int:
    best, most = -1, 0
    for word, (word_start, word_end) in enumerate(spans):
        overlap = min(end, word_end) - max(start, word_start)
        if overlap > most:
            best, most = word, overlap
    return best

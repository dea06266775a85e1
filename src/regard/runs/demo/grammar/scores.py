"""Scores of the demonstration: exact match, gender of the pronoun, attention on the antecedent; two baselines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, replace

import numpy as np
from numpy.typing import NDArray

from regard.runs.demo.grammar.corpus import Pair, Pronoun, words_of
from regard.runs.demo.grammar.phrases import PRONOUN
from regard.system.errors import RegardError

CANDIDATES = 20
"""How many sentences with the most words in common are compared word by word."""


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """The share of hypotheses equal to their reference, character by character."""
    _same_length(hypotheses, references)
    equal = sum(hypothesis == reference for hypothesis, reference in zip(hypotheses, references, strict=True))
    return equal / len(references)


@dataclass(frozen=True)
class Accuracy:
    """How many of how many were right."""

    correct: int
    total: int


def chosen_pronoun(hypothesis: str) -> str | None:
    """The German pronoun a translation chose: the word after its last *weil*; None where that is no er, sie or es."""
    words = [word.lower() for word in words_of(hypothesis)]
    if "weil" not in words[:-1]:
        return None
    after = words[len(words) - words[-2::-1].index("weil") - 1]
    return after if after in PRONOUN.values() else None


def pronoun_accuracy(pairs: Sequence[Pair], hypotheses: Sequence[str]) -> Accuracy:
    """How often the translation has the antecedent's gender, over pairs whose two antecedents differ in gender."""
    _same_length(hypotheses, pairs)
    correct = total = 0
    for pair, hypothesis in zip(pairs, hypotheses, strict=True):
        if pair.pronoun is not None and pair.pronoun.decides:
            total += 1
            correct += chosen_pronoun(hypothesis) == PRONOUN[pair.pronoun.antecedent_gender]
    return Accuracy(correct, total)


def over_words(
    weight_QK: NDArray[np.floating], query_words: Sequence[int], key_words: Sequence[int]
) -> NDArray[np.float64]:
    """Attention weights between tokens, gathered to words: summed over a key's tokens, averaged over a query's.

    ``query_words`` and ``key_words`` give each token's word, -1 for none, as
    :func:`regard.runs.demo.grammar.corpus.words_of_tokens` does; the columns of tokens without a word are left out, so
    that a row may sum to less than one.
    """
    keys_KW = _indicator(key_words)
    queries_QW = _indicator(query_words)
    counts_W = np.maximum(queries_QW.sum(axis=0), 1)
    return (queries_QW / counts_W).T @ np.asarray(weight_QK, dtype=np.float64) @ keys_KW


def _indicator(word_of_token: Sequence[int]) -> NDArray[np.float64]:
    words = np.asarray(word_of_token)
    return np.asarray(words[:, None] == np.arange(words.max(initial=-1) + 1), dtype=np.float64)


@dataclass(frozen=True)
class Shares:
    """A pronoun's attention, as shares of one.

    antecedent: on the gold antecedent. rival: on the other possible antecedent. nouns: on a noun of the sentence, on
    average. chance: what one noun gives another, the mean over all ordered pairs of different nouns. pronoun: of the
    German pronoun, on the English one; zero for the English one.
    """

    antecedent: float
    rival: float
    nouns: float
    chance: float
    pronoun: float = 0.0

    @property
    def margin(self) -> float:
        """What is on the antecedent and not on its rival."""
        return self.antecedent - self.rival

    @property
    def informative(self) -> float:
        """How far it looks where its gender can be learned: at the antecedent alone, or at the English pronoun."""
        return max(self.margin, self.pronoun)


def encoder_shares(pair: Pair, weight_QK: NDArray[np.floating]) -> Shares:
    """The shares of the English pronoun in encoder self-attention; weights between source words."""
    pronoun = pronoun_of(pair)
    return _shares(pair, weight_QK, pronoun.source_word, {noun: noun for noun in pair.nouns})


def cross_shares(pair: Pair, weight_QK: NDArray[np.floating]) -> Shares:
    """The shares of the German pronoun in cross-attention; weights of target words (rows) on source words."""
    translated = {source: target for source, target in pair.alignment if source in pair.nouns}
    pronoun = pronoun_of(pair)
    found = _shares(pair, weight_QK, pronoun.target_word, translated)
    return replace(found, pronoun=float(weight_QK[pronoun.target_word, pronoun.source_word]))


def _shares(pair: Pair, weight_QK: NDArray[np.floating], query: int, rows: dict[int, int]) -> Shares:
    """``rows`` gives for each source noun the row of its own attention."""
    pronoun = pronoun_of(pair)
    between = [weight_QK[rows[one], other] for one in rows for other in pair.nouns if one != other]
    return Shares(
        antecedent=float(sum(weight_QK[query, word] for word in pronoun.antecedent_words)),
        rival=float(sum(weight_QK[query, word] for word in pronoun.rival_words)),
        nouns=float(np.mean([weight_QK[query, word] for word in pair.nouns])),
        chance=float(np.mean(between)),
    )


def mean_shares(shares: Iterable[Shares]) -> Shares:
    """The mean of each share over sentences."""
    found = list(shares)
    if not found:
        raise RegardError("no sentence with a pronoun was given; the mean of no shares is not defined", "shares")
    table = np.array([astuple(one) for one in found])
    return Shares(*(float(column) for column in table.mean(axis=0)))


def pronoun_of(pair: Pair) -> Pronoun:
    """The pronoun of a sentence that must have one."""
    if pair.pronoun is None:
        raise RegardError(f"the sentence has no pronoun with two antecedents: {pair.source}", "pair")
    return pair.pronoun


def _same_length(hypotheses: Sequence[object], references: Sequence[object]) -> None:
    if len(hypotheses) != len(references) or not references:
        raise RegardError(
            f"{len(hypotheses)} hypotheses cannot be scored against {len(references)} references", "hypotheses"
        )


class NearestSentence:
    """Translates by looking up: the translation of the training sentence most like the source.

    An inverted index finds the sentences with the largest overlap of words, 2·common / (words + words), of equal ones
    the first; among the best of these the smallest edit distance over words decides, then the order in training.
    """

    def __init__(self, sources: Sequence[str], targets: Sequence[str]) -> None:
        self._words = [words_of(source.lower()) for source in sources]
        self._targets = targets
        self._lengths_B = np.array([len(words) for words in self._words], dtype=np.float32)
        found: dict[str, list[int]] = {}
        for sentence, words in enumerate(self._words):
            for word in set(words):
                found.setdefault(word, []).append(sentence)
        self._sentences = {word: np.array(sentences, dtype=np.int64) for word, sentences in found.items()}

    def translate(self, sources: Iterable[str]) -> list[str]:
        """The translation of the nearest training sentence, for each source."""
        return [self._targets[self.nearest(source)] for source in sources]

    def nearest(self, source: str) -> int:
        """The index of the nearest training sentence."""
        words = words_of(source.lower())
        common_B = np.zeros(len(self._words), dtype=np.float32)
        for word in set(words):
            if word in self._sentences:
                common_B[self._sentences[word]] += 1
        overlap_B = 2 * common_B / (self._lengths_B + len(words))
        count = min(CANDIDATES, len(self._words))
        least = np.partition(overlap_B, -count)[-count]
        above = np.flatnonzero(overlap_B > least)
        candidates = [*above, *np.flatnonzero(overlap_B == least)[: count - len(above)]]
        return min((edit_distance(words, self._words[place]), int(place)) for place in candidates)[1]


def edit_distance(first: Sequence[str], second: Sequence[str]) -> int:
    """The least number of words to insert, delete or replace."""
    row = list(range(len(second) + 1))
    for place, word in enumerate(first, 1):
        diagonal, row[0] = row[0], place
        for column, other in enumerate(second, 1):
            changed = diagonal + (word != other)
            diagonal = row[column]
            row[column] = min(changed, diagonal + 1, row[column - 1] + 1)
    return row[-1]


def majority_pronoun(train: Iterable[Pair]) -> str:
    """The German pronoun most frequent in training, *er*, *sie* or *es*, where the antecedents differ in gender."""
    genders = Counter(pair.pronoun.antecedent_gender for pair in train if pair.pronoun and pair.pronoun.decides)
    return PRONOUN[max(sorted(genders), key=genders.__getitem__)]

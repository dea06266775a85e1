"""Beam search whose outputs contain given terms, or rather do: dynamic beam allocation [Post18b; Hu19], and a bonus.

Rows of a sentence that need equally many tokens of terms are a bank. A step's candidates are the best tokens of each
row and those that its terms want. The places of a beam go to banks in turn, the best candidate of each that is left,
from the bank that needs least. A row ends only where all is met, and keeps room for what it needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from regard.config import Decoding
from regard.decoding.automaton import Automaton
from regard.decoding.hypotheses import Choice, Floats, Hypothesis, Ints, Rows, Sentence, Symbols, length_penalty
from regard.decoding.step import Answer, log_probabilities
from regard.decoding.strategies import numbers, refill_places
from regard.decoding.terms import Letters


class TermBeam:
    """Keep the best continuations of each sentence, of every bank some; without terms those of ``strategies.Beam``.

    Args:
        decoding: the recipe's section.
        symbols: ``</s>``, and what is never chosen.
        letters: of the tokens.
    """

    def __init__(self, decoding: Decoding, symbols: Symbols, letters: Letters) -> None:
        self.decoding, self._symbols = decoding, symbols
        self.automaton = Automaton(letters)
        self._last: tuple[Rows, Choice, Ints] | None = None

    def __call__(self, rows: Rows, answer: Answer) -> Choice:
        """The continuations."""
        state_N = self.states(rows)
        width_N = np.array([self._width(sentence) for sentence in rows.sentences])[rows.sentence_N]
        id_NC, log_probability_NC = self._candidates(answer, state_N, width_N)
        next_NC = self.automaton.after(state_N, id_NC)
        bank_NC, log_probability_NC = self._weigh(rows, state_N, next_NC, id_NC, log_probability_NC)
        place_M = self._choose(rows, width_N, bank_NC, log_probability_NC, id_NC == self._symbols.end)
        row_M = place_M // id_NC.shape[1]
        choice = Choice(row_M, id_NC.take(place_M), log_probability_NC.take(place_M))
        self._last = rows, choice, next_NC.take(place_M)
        return choice

    def states(self, rows: Rows) -> Ints:
        """The state of each row: known of those that this chose last and of new ones, else read from their tokens."""
        if self._last is not None and rows.token_N is self._last[1].token_M:
            return self._last[2]
        known = dict[_Name, int]() if self._last is None else _by_name(*self._last)
        starts = (self.automaton.start(sentence.terms) for sentence in rows.sentences)
        known |= {(sentence.index, -1, 0.0): state for sentence, state in zip(rows.sentences, starts, strict=True)}
        token_N = np.where(rows.length_N > 0, rows.token_N, -1)
        found = [known.get(name, -1) for name in _names(rows, rows.sentence_N, token_N, rows.log_probability_N)]
        return self.automaton.of(rows) if -1 in found else np.array(found, np.int64)

    def _width(self, sentence: Sentence) -> int:
        """How many rows a sentence keeps."""
        return sentence.width(self.decoding.beam)

    def _candidates(self, answer: Answer, state_N: Ints, width_N: Ints) -> tuple[Ints, Floats]:
        """Tokens of each row and their log-probabilities, minus infinity for what is none.

        Of the best ones a row has as many as it would have alone: of all rows' together only one may end.
        """
        best_N = 2 * width_N if self.decoding.refill else width_N + 1
        id_Nk, log_probability_Nk = answer.best(int(best_N.max()), self._symbols.without)
        spare_Nk = np.arange(id_Nk.shape[1]) >= best_N[:, None]
        log_probability_Nk = np.where(spare_Nk, -np.inf, numbers(log_probability_Nk))
        wanted_NF = self.automaton.wanted(state_N)
        there_NF = ((wanted_NF[:, :, None] == id_Nk[:, None]) & ~spare_Nk[:, None]).any(2)
        wanted_NF = np.where(there_NF, -1, wanted_NF)
        log_probability_NF = numbers(log_probabilities(answer, wanted_NF))
        id_NC = np.concatenate([id_Nk, wanted_NF], axis=1)
        return id_NC, np.concatenate([log_probability_Nk, log_probability_NF], axis=1)

    def _weigh(
        self, rows: Rows, state_N: Ints, next_NC: Ints, id_NC: Ints, log_probability_NC: Floats
    ) -> tuple[Ints, Floats]:
        """The bank of each candidate, and minus infinity for one that cannot lead to an output with all terms."""
        limit_B = np.array([sentence.limit for sentence in rows.sentences])
        room_N1 = (limit_B[rows.sentence_N] - rows.length_N - 1)[:, None]
        need_NC, ends_NC = self.automaton.need(next_NC), id_NC == self._symbols.end
        whole_N1 = self.automaton.need(state_N)[:, None] == 0
        possible_NC = np.where(ends_NC, whole_N1, need_NC + (need_NC > 0) <= room_N1)
        return np.where(ends_NC, 0, need_NC), np.where(possible_NC, log_probability_NC, -np.inf)

    def _choose(
        self, rows: Rows, width_N: Ints, bank_NC: Ints, log_probability_NC: Floats, ends_NC: NDArray[np.bool_]
    ) -> Ints:
        """Places of the candidates that stay, sentence by sentence, best first; ties as in ``strategies.Beam``."""
        total_NC = rows.log_probability_N[:, None] + log_probability_NC
        place_M = np.flatnonzero(total_NC > -np.inf)
        row_M = place_M // total_NC.shape[1]
        sentence_M, cost_M, bank_M = rows.sentence_N[row_M], -total_NC.take(place_M), bank_NC.take(place_M)
        rank_M = _ranks(sentence_M, bank_M, order_M := np.lexsort((cost_M, bank_M, sentence_M)))
        order_M = np.lexsort((cost_M, bank_M, rank_M, sentence_M))
        turn_M, width_M = _ranks(sentence_M, 0 * sentence_M, order_M), width_N[row_M]
        if self.decoding.refill:
            stays_M = np.empty(len(order_M), np.bool_)
            stays_M[order_M] = refill_places(ends_NC.take(place_M)[order_M], sentence_M[order_M], width_M[order_M])
        else:
            stays_M = turn_M < width_M
        order_M = np.lexsort((cost_M, sentence_M))
        return place_M[order_M[stays_M[order_M]]]


class TermBonusBeam(TermBeam):
    """Beam search in which a token of a term that is not met costs less, without banks.

    Outputs are compared as if their log-probability were larger by ``term_bonus`` times the tokens of terms that they
    have: those that all terms need at first less those that are needed still, so that a form that breaks off gives back
    what it had. What is told of an output is what the model says of it.
    """

    def _width(self, sentence: Sentence) -> int:
        return self.decoding.beam

    def _weigh(
        self, rows: Rows, state_N: Ints, next_NC: Ints, id_NC: Ints, log_probability_NC: Floats
    ) -> tuple[Ints, Floats]:
        """One bank, and log-probabilities with the bonus."""
        gain_NC = self.automaton.need(state_N)[:, None] - self.automaton.need(next_NC)
        gain_NC[id_NC == self._symbols.end] = 0
        return np.zeros_like(id_NC), log_probability_NC + self.decoding.term_bonus * gain_NC

    def reach(self, rows: Rows) -> Floats:
        """What the log-probability of each row and of all that continues it stays below, with bonuses."""
        most_N = rows.log_probability_N + self.decoding.term_bonus * self.automaton.need(self.states(rows))
        return np.where(most_N > 0.0, np.inf, most_N)

    def without_bonus(self, one: Hypothesis, sentence: Sentence) -> Hypothesis:
        """A hypothesis as the model has it."""
        if sentence.terms is None:
            return one
        terms, kind_V = sentence.terms, sentence.terms.letters.kind_V.tolist()
        progress, need, each = terms.start, terms.banks - 1, list(one.token_log_probabilities)
        for place, token in enumerate(one.tokens):
            progress, before = terms.after(progress, token, kind_V[token]), need
            need = terms.need(progress)
            each[place] -= self.decoding.term_bonus * (before - need)
        gain, alpha = self.decoding.term_bonus * (terms.banks - 1 - need), self.decoding.length_penalty
        score = one.score - gain / length_penalty(float(max(1, len(each))), alpha, self.decoding.length_penalty_by)
        return replace(
            one, token_log_probabilities=tuple(each), log_probability=one.log_probability - gain, score=score
        )


_Name = tuple[int, int, float]
"""A row's sentence, last token and log-probability."""


def _names(rows: Rows, sentence_M: Ints, token_M: Ints, log_probability_M: Floats) -> Iterator[_Name]:
    """What tells rows of these sentences apart, but for a few."""
    index_M = np.array([sentence.index for sentence in rows.sentences])[sentence_M]
    return zip(index_M.tolist(), token_M.tolist(), log_probability_M.tolist(), strict=True)


def _by_name(rows: Rows, choice: Choice, state_M: Ints) -> dict[_Name, int]:
    """The states of the rows that were chosen; -1 where rows of one name differ."""
    parent_M, known = choice.parents(), dict[_Name, int]()
    total_M = rows.log_probability_N[parent_M] + choice.token_log_probability_M
    names = _names(rows, rows.sentence_N[parent_M], choice.token_M, total_M)
    for name, state in zip(names, state_M.tolist(), strict=True):
        known[name] = state if known.get(name, state) == state else -1
    return known


def _ranks(sentence_M: Ints, bank_M: Ints, order_M: Ints) -> Ints:
    """How many of the same sentence and bank stand before each in an order by both."""
    sentence_R, bank_R, place_R = sentence_M[order_M], bank_M[order_M], np.arange(len(order_M))
    new_R = (np.diff(sentence_R, prepend=-1) != 0) | (np.diff(bank_R, prepend=-1) != 0)
    rank_M = np.empty_like(order_M)
    rank_M[order_M] = place_R - np.maximum.accumulate(np.where(new_R, place_R, 0))
    return rank_M

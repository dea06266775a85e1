"""Diverse beam search: groups of a beam that keep away from each other's tokens [Vijayakumar18 §4].

The groups of a sentence are its copies in the scheduler: each is a beam of its own, and all are equally long.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from regard.config import Decoding
from regard.decoding.hypotheses import Choice, Hypothesis, Ints, Rows, Symbols
from regard.decoding.step import Answer
from regard.decoding.strategies import Beam, numbers
from regard.system.errors import UsageError


@dataclass(frozen=True)
class DiverseBeam(Beam):
    """One group of a sentence after the other chooses as a :class:`Beam` does; Hamming diversity [Vijayakumar18 §4.1].

    Args:
        width: rows of a group.
        groups: of a sentence.
        diversity: by which a log-probability falls for each row of the groups before that goes on with the token at
            this step. Log-probabilities of rows are sums of such, as in transformers and fairseq.
        last: the token that ends a row, also where ``end`` is none.
    """

    groups: int = 2
    diversity: float = 0.5
    last: int = 0

    def __call__(self, rows: Rows, answer: Answer) -> Choice:
        """The best continuations of every group."""
        looked_at = self.width if self.end is None else 2 * self.width
        ids_NR, log_probability_NR = answer.best(looked_at + self.width * (self.groups - 1), self.without)
        numbers(log_probability_NR)
        group_N = np.array([sentence.sample for sentence in rows.sentences])[rows.sentence_N]
        _, source_B = np.unique([sentence.index for sentence in rows.sentences], return_inverse=True)
        source_N = source_B[rows.sentence_N] << 32
        chosen, taken_T = list[Choice](), np.zeros(0, np.int64)
        for group in np.unique(group_N).tolist():
            fewer_NR = self.diversity * _counts(ids_NR + source_N[:, None], taken_T)
            own_NR = np.where((group_N == group)[:, None], log_probability_NR - fewer_NR, -np.inf)
            order_Nk = np.lexsort((ids_NR, -own_NR), axis=1)[:, :looked_at]
            best = np.take_along_axis(ids_NR, order_Nk, 1), np.take_along_axis(own_NR, order_Nk, 1)
            choice = self.choose(rows, looked_at, *best)
            going_M = choice.token_M != self.last
            taken_T = np.append(taken_T, (choice.token_M + source_N[choice.parents()])[going_M])
            chosen.append(choice)
        return _joined(chosen, rows)


def _counts(key_NR: Ints, taken_T: Ints) -> Ints:
    """How often each was taken."""
    sorted_T = np.sort(taken_T)
    return sorted_T.searchsorted(key_NR, "right") - sorted_T.searchsorted(key_NR, "left")


def _joined(chosen: Sequence[Choice], rows: Rows) -> Choice:
    """The choices of all groups, sentences in order."""
    parent_M = np.concatenate([choice.parents() for choice in chosen])
    order_M = rows.sentence_N[parent_M].argsort(kind="stable")
    token_M = np.concatenate([choice.token_M for choice in chosen])[order_M]
    log_probability_M = np.concatenate([choice.token_log_probability_M for choice in chosen])[order_M]
    return Choice(parent_M[order_M], token_M, log_probability_M)


def diverse_beam(decoding: Decoding, symbols: Symbols) -> DiverseBeam:
    """The strategy of a recipe's section.

    Raises:
        UsageError: the groups do not divide the beam.
    """
    width, rest = divmod(decoding.beam, decoding.groups)
    if rest:
        raise UsageError(f"{decoding.groups} do not divide a beam of {decoding.beam}", "decoding.groups")
    end = symbols.end if decoding.refill else None
    return DiverseBeam(width, symbols.without, end, decoding.groups, decoding.diversity, symbols.end)


def best_of_groups(groups: Iterable[Sequence[Hypothesis]], nbest: int) -> list[Hypothesis]:
    """The n best outputs of the groups of a source; those that ended before those that were cut off."""
    return sorted(chain.from_iterable(groups), key=lambda one: (not one.finished, -one.score))[:nbest]

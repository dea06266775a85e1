"""Minimum Bayes risk: which of several texts is most like the others, by sentence scores of sacreBLEU [Eikema22]."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from regard.text.languages import bleu_tokeniser

Utility = Literal["chrf", "bleu"]
Scores = NDArray[np.float64]
ORDER, BETA = 6, 2
"""Of chrF: characters of an n-gram at most, and how much recall counts; sacreBLEU's own."""
WORDS = 4
"""Of BLEU: words of an n-gram at most."""


def by_utility(texts: Sequence[str], utility: Utility, language: str = "und") -> list[tuple[int, float]]:
    """Every different text once, as the place where it stands first, and its expected utility; the best text first.

    The expected utility is the mean of its scores against all the others, an equal one counting as often as it is there
    [Kumar04 §2; Eikema22]. Ties go to the text that stands first.

    Args:
        texts: candidates, each of which is also what the others are compared with.
        utility: chrF, or BLEU of a sentence.
        language: of the texts, which chooses the tokens of BLEU.
    """
    counts = Counter(texts)
    score_BB = bleu_pairs([*counts], language) if utility == "bleu" else chrf_pairs([*counts])
    total_B = score_BB @ np.array([*counts.values()], np.float64) - score_BB.diagonal()
    mean_B = total_B / max(1, len(texts) - 1)
    order = np.argsort(-mean_B.round(9), kind="stable").tolist()  # equal sums may differ in their last bit
    places = [texts.index(text) for text in counts]
    return [(places[one], float(mean_B[one])) for one in order]


def chrf_pairs(texts: Sequence[str]) -> Scores:
    """chrF2 of each text (rows) against each (columns), ``score_BB``, that of ``sacrebleu.sentence_chrf``."""
    lines = ["".join(text.split()) for text in texts]
    precision_BB, recall_BB, orders_BB = np.zeros((3, len(texts), len(texts)))
    for n in range(1, ORDER + 1):
        match_BB = _matches([[line[i : i + n] for i in range(len(line) - n + 1)] for line in lines])
        count_B = match_BB.diagonal()
        both_BB = (count_B[:, None] > 0) & (count_B > 0)
        precision_BB += match_BB / np.maximum(count_B, 1)[:, None] * both_BB
        recall_BB += match_BB / np.maximum(count_B, 1) * both_BB
        orders_BB += both_BB
    precision_BB, recall_BB = precision_BB / np.maximum(orders_BB, 1), recall_BB / np.maximum(orders_BB, 1)
    below_BB = BETA**2 * precision_BB + recall_BB
    return 100 * ((1 + BETA**2) * precision_BB * recall_BB / np.where(below_BB > 0, below_BB, 1))


def bleu_pairs(texts: Sequence[str], language: str = "und") -> Scores:
    """BLEU of each text (rows) against each (columns), ``score_BB``, that of ``sacrebleu.sentence_bleu``."""
    from sacrebleu.metrics.bleu import BLEU

    cut = BLEU(tokenize=bleu_tokeniser(language)).tokenizer
    lines = [cut(text.rstrip()).split() for text in texts]
    orders = range(1, WORDS + 1)
    match_OBB = np.array(
        [_matches([[tuple(line[i : i + n]) for i in range(len(line) - n + 1)] for line in lines]) for n in orders]
    )
    score_BB = np.zeros((len(texts), len(texts)))
    for one, line in enumerate(lines):
        total = match_OBB[:, one, one].astype(int).tolist()
        for other, reference in enumerate(lines):
            correct = match_OBB[:, one, other].astype(int).tolist()
            sizes = len(line), len(reference)
            found = BLEU.compute_bleu(correct, total, *sizes, smooth_method="exp", effective_order=True)
            score_BB[one, other] = found.score
    return score_BB


def _matches(grams: Sequence[Iterable[Hashable]]) -> Scores:
    """How many n-grams each two texts share, ``match_BB``: of one that occurs several times the smaller count.

    The k-th occurrence of an n-gram in a text is one entry, so that equal entries are counted.
    """
    places, row, column = dict[tuple[Hashable, int], int](), list[int](), list[int]()
    for number, line in enumerate(grams):
        seen = Counter[Hashable]()
        for gram in line:
            seen[gram] += 1
            row.append(number)
            column.append(places.setdefault((gram, seen[gram]), len(places)))
    entry_BX = np.zeros((len(grams), max(1, len(places))), np.float32)
    entry_BX[row, column] = 1.0
    return (entry_BX @ entry_BX.T).astype(np.float64)

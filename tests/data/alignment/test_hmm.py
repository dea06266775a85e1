"""Word alignment by statistics, against every alignment of small sentences, one by one."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from regard.data.alignment.hmm import (
    NULL,
    UNSEEN,
    WIDEST,
    Floats,
    Ints,
    TranslationTable,
    WordAligner,
    markov,
    model_1,
)

SOURCES = [np.array(words) for words in ([1, 2, 3], [3, 1], [2, 2, 1], [4], [1, 4, 2])]
TARGETS = [np.array(words) for words in ([1, 2], [3, 1, 2], [2], [1, 3], [2, 1, 1])]


def made_table(seed: int) -> TranslationTable:
    """A table with made-up numbers."""
    draw = np.random.default_rng(seed)
    table = TranslationTable.of(SOURCES, TARGETS)
    return table.normalised(draw.random(len(table.probability_E1)) + 0.1, draw.random(2 * WIDEST + 1) + 0.1)


def translation(table: TranslationTable, source: int, target: int) -> float:
    """The probability of a word, looked up."""
    [place] = np.flatnonzero(table.key_E == source * table.targets + target)
    return float(table.probability_E1[place])


def every_alignment(table: TranslationTable, source: Ints, target: Ints) -> tuple[Floats, Floats, float]:
    """Posteriors (NULL first), jumps and likelihood of a chain, summed over all its paths [Och03 §2.1.2]."""
    words, found = len(source), np.zeros((len(target), len(source) + 1))
    jumps = np.zeros((words, words))
    jump = np.array([[table.jump_W[to - here + WIDEST] for to in range(words)] for here in range(words)])
    jump /= jump.sum(1, keepdims=True)
    total = 0.0
    for path in product(range(words), [False, True], repeat=len(target)):
        places, nulls = path[::2], path[1::2]
        probability, steps = 1.0, list[tuple[int, int]]()
        for j, (place, null) in enumerate(zip(places, nulls, strict=True)):
            if j == 0:
                probability /= words
            elif null:
                probability *= place == places[j - 1]
            else:
                probability *= jump[places[j - 1], place]
                steps.append((places[j - 1], place))
            word = translation(table, 0 if null else source[place], target[j])
            probability *= word * (NULL if null else 1 - NULL)
        total += probability
        for j, (place, null) in enumerate(zip(places, nulls, strict=True)):
            found[j, 0 if null else 1 + place] += probability
        for step in steps:
            jumps[step] += probability
    return found / total, jumps / total, float(np.log(total))


@pytest.mark.parametrize("seed", range(3))
def test_the_chain_is_the_sum_over_all_its_paths(seed: int) -> None:
    table = made_table(seed)
    seen = 0
    for block in table.blocks(SOURCES, TARGETS):
        posterior_NJZ, jump_II, likelihood = markov(table, block)
        found = dict(block.rows(posterior_NJZ))
        wanted = {row: every_alignment(table, SOURCES[row], TARGETS[row]) for row in found}
        for row, (posterior, _, _) in wanted.items():
            np.testing.assert_allclose(found[row], posterior, rtol=1e-9)
        np.testing.assert_allclose(jump_II, sum(jumps for _, jumps, _ in wanted.values()), rtol=1e-9, atol=1e-12)
        assert likelihood == pytest.approx(sum(one for _, _, one in wanted.values()))
        seen += len(found)
    assert seen == len(SOURCES)


def test_model_1_is_that_of_plain_loops() -> None:
    table = made_table(3)
    for block in table.blocks(SOURCES, TARGETS):
        posterior_NJZ, _, likelihood = model_1(table, block)
        logs = []
        for row, posterior in block.rows(posterior_NJZ):
            words = len(SOURCES[row])
            for j, word in enumerate(TARGETS[row].tolist()):
                scores = [NULL * translation(table, 0, word)]
                scores += [(1 - NULL) / words * translation(table, one, word) for one in SOURCES[row].tolist()]
                np.testing.assert_allclose(posterior[j], np.array(scores) / sum(scores))
                logs.append(np.log(sum(scores)))
        assert likelihood == pytest.approx(sum(logs))


@pytest.mark.parametrize("model", [model_1, markov])
def test_a_step_of_em_never_lowers_the_likelihood(model: object) -> None:
    """The jumps are held: their counts, normalised in each sentence, are no exact maximum."""
    assert model in (model_1, markov)
    chosen = model_1 if model is model_1 else markov
    draw = np.random.default_rng(5)
    sources, targets = ([draw.integers(1, 9, draw.integers(1, 7)) for _ in range(40)] for _ in range(2))
    table = TranslationTable.of(sources, targets)
    jump_W, blocks = draw.random(2 * WIDEST + 1) + 0.1, list(table.blocks(sources, targets))
    likelihoods = []
    for _ in range(15):
        table = table.normalised(table.probability_E1, jump_W)
        table, likelihood = table.improved(chosen, blocks)
        likelihoods.append(likelihood)
    assert (np.diff(likelihoods) > -1e-9).all()
    assert likelihoods[-1] > likelihoods[0] + 1


def dictionary(count: int, seed: int) -> tuple[list[list[str]], list[list[str]], list[set[tuple[int, int]]]]:
    """Sentences of ten words, translated word by word, the last word first."""
    draw = np.random.default_rng(seed)
    numbers = [draw.permutation(10)[: draw.integers(2, 7)].tolist() for _ in range(count)]
    sources = [[f"s{n}" for n in one] for one in numbers]
    targets = [[f"t{n}" for n in [one[-1], *one[:-1]]] for one in numbers]
    gold = [{(len(one) - 1, 0), *((i, i + 1) for i in range(len(one) - 1))} for one in numbers]
    return sources, targets, gold


def test_words_of_a_dictionary_find_each_other() -> None:
    sources, targets, gold = dictionary(120, 7)
    aligner = WordAligner(sources[:100], targets[:100])
    assert aligner.align(sources[100:], targets[100:]) == gold[100:]


def test_a_pair_is_aligned_alone_as_among_others_and_empty_ones_not_at_all() -> None:
    sources, targets, _ = dictionary(60, 8)
    aligner = WordAligner([*sources, []], [*targets, ["t1"]])
    together = aligner.align(sources, targets)
    assert [aligner.align([s], [t])[0] for s, t in zip(sources, targets, strict=True)] == together
    assert aligner.align([[], ["s1"], []], [["t1"], [], []]) == [frozenset()] * 3
    assert aligner.align([], []) == []


def test_unknown_words_stand_where_their_neighbours_say() -> None:
    sources, targets = [list("abcd")] * 50, [list("ABCD")] * 50
    draw = np.random.default_rng(2)
    for n in range(50):
        order = draw.permutation(4)[: 2 + n % 3].tolist()
        sources[n], targets[n] = ["abcd"[i] for i in order], ["ABCD"[i] for i in order]
    [links] = WordAligner(sources, targets).align([["a", "?", "d"]], [["A", "!", "D"]])
    assert links == {(0, 0), (1, 1), (2, 2)}


def test_a_sentence_far_too_long_is_left_out() -> None:
    sources, targets, _ = dictionary(30, 9)
    long: Sequence[str] = ["s1"] * 500
    assert WordAligner([*sources, long], [*targets, long]).align([long], [long]) == [frozenset()]
    assert UNSEEN > 0

"""Scores of the demonstration against plain loops and cases worked out by hand, and its two baselines."""

import math
from random import Random

import numpy as np
import pytest

from regard.runs.demo.grammar import Pair, classic, generate, words_of, words_of_tokens
from regard.runs.demo.grammar.scores import (
    CANDIDATES,
    NearestSentence,
    chosen_pronoun,
    cross_shares,
    edit_distance,
    encoder_shares,
    exact_match,
    majority_pronoun,
    mean_shares,
    over_words,
    pronoun_accuracy,
)
from regard.system.errors import RegardError
from tests.refusals import refused


def test_exact_match() -> None:
    assert exact_match(["a", "b.", "c"], ["a", "b", "c"]) == pytest.approx(2 / 3)
    with refused(RegardError, "hypotheses", "2", "1"):
        exact_match(["a", "b"], ["a"])


@pytest.mark.parametrize(
    ("hypothesis", "pronoun"),
    [
        ("Das Tier überquerte die Straße nicht, weil es zu müde war.", "es"),
        ("Sie schlief, weil Sie zu müde war.", "sie"),
        ("Er schlief, weil er schlief, weil sie schlief.", "sie"),
        ("Er schlief, weil die Katze schlief.", None),
        ("Er schlief.", None),
        ("weil", None),
        ("Er schlief, weil", None),
        ("", None),
    ],
)
def test_the_pronoun_is_the_word_after_the_last_weil(hypothesis: str, pronoun: str | None) -> None:
    assert chosen_pronoun(hypothesis) == pronoun


def test_pronoun_accuracy_counts_only_antecedents_of_different_gender(sample: list[Pair]) -> None:
    deciding = [pair for pair in sample if pair.pronoun and pair.pronoun.decides]
    same = [pair for pair in sample if pair.pronoun and not pair.pronoun.decides]
    others = [pair for pair in sample if not pair.pronoun]
    pairs = deciding[:30] + same[:10] + others[:10]
    right = pronoun_accuracy(pairs, [pair.target for pair in pairs])
    assert (right.correct, right.total, right.share) == (30, 30, 1.0)
    always = pronoun_accuracy(pairs, ["…, weil er zu müde war."] * 50)
    assert always.correct == sum(pair.pronoun.antecedent_gender == "m" for pair in deciding[:30])
    assert math.isnan(pronoun_accuracy(others[:2], ["", ""]).share)


def test_words_of_tokens() -> None:
    sentence = "The cat didn't sleep, it ran."
    offsets = [(0, 3), (3, 7), (7, 10), (10, 14), (14, 20), (20, 21), (21, 24), (24, 28), (28, 29), (29, 29)]
    assert words_of_tokens(offsets, sentence) == [0, 1, 2, 2, 3, -1, 4, 5, -1, -1]
    assert words_of(sentence) == ["The", "cat", "didn't", "sleep", "it", "ran"]


def test_over_words_sums_keys_and_averages_queries() -> None:
    generator = np.random.default_rng(0)
    weight_QK = generator.dirichlet(np.ones(7), size=5)
    queries, keys = [0, 1, 1, -1, 2], [0, 0, 1, -1, 2, 2, 2]
    gathered = over_words(weight_QK, queries, keys)
    assert gathered.shape == (3, 3)
    for query in range(3):
        rows = [row for row, word in enumerate(queries) if word == query]
        for key in range(3):
            columns = [column for column, word in enumerate(keys) if word == key]
            expected = sum(weight_QK[row, column] for row in rows for column in columns) / len(rows)
            assert gathered[query, key] == pytest.approx(expected)


def test_shares_by_plain_loops(sample: list[Pair]) -> None:
    generator = np.random.default_rng(1)
    for pair in [pair for pair in sample if pair.pronoun][:20]:
        source, target = len(words_of(pair.source)), len(words_of(pair.target))
        weight_QK = generator.dirichlet(np.ones(source), size=source)
        shares = encoder_shares(pair, weight_QK)
        assert shares.antecedent == weight_QK[pair.pronoun.source_word, pair.pronoun.antecedent_words[0]]
        assert shares.rival == weight_QK[pair.pronoun.source_word, pair.pronoun.rival_words[0]]
        first, second = pair.nouns
        assert shares.chance == pytest.approx((weight_QK[first, second] + weight_QK[second, first]) / 2)
        assert shares.nouns == pytest.approx((shares.antecedent + shares.rival) / 2)
        assert (shares.pronoun, shares.on_pronoun) == (0, False)
        assert shares.margin == shares.antecedent - shares.rival
        assert shares.informative == max(shares.margin, 0)
        cross_QK = generator.dirichlet(np.ones(source), size=target)
        across = cross_shares(pair, cross_QK)
        assert across.antecedent == cross_QK[pair.pronoun.target_word, pair.pronoun.antecedent_words[0]]
        assert across.pronoun == cross_QK[pair.pronoun.target_word, pair.pronoun.source_word]
        assert across.on_pronoun == (across.pronoun > across.antecedent)
        assert across.informative == max(across.antecedent - across.rival, across.pronoun)
        german = {i: j for i, j in pair.alignment if i in pair.nouns}
        assert across.chance == pytest.approx((cross_QK[german[first], second] + cross_QK[german[second], first]) / 2)
    plain = next(pair for pair in sample if pair.pronoun is None)
    with refused(RegardError, "pair", plain.source):
        encoder_shares(plain, np.ones((20, 20)))


def test_a_head_that_looks_at_the_antecedent_only() -> None:
    pair, _ = classic()
    weight_QK = np.zeros((11, 11))
    weight_QK[:, pair.pronoun.antecedent_words[0]] = 1
    shares = encoder_shares(pair, weight_QK)
    assert (shares.antecedent, shares.rival, shares.nouns, shares.chance) == (1, 0, 0.5, 0.5)
    uniform = encoder_shares(pair, np.full((11, 11), 1 / 11))
    assert uniform.antecedent == pytest.approx(uniform.chance)
    both = mean_shares([shares, uniform])
    assert both.antecedent == pytest.approx((1 + 1 / 11) / 2)
    with refused(RegardError, "shares"):
        mean_shares([])


def plain_distance(first: list[str], second: list[str]) -> int:
    if not first or not second:
        return len(first) + len(second)
    if first[0] == second[0]:
        return plain_distance(first[1:], second[1:])
    shorter = (first[1:], second), (first, second[1:]), (first[1:], second[1:])
    return 1 + min(plain_distance(one, other) for one, other in shorter)


def test_edit_distance_equals_its_definition() -> None:
    random = Random(0)
    for _ in range(60):
        first, second = (random.choices("abc", k=random.randrange(6)) for _ in range(2))
        assert edit_distance(first, second) == plain_distance(first, second)


def test_a_training_sentence_finds_itself(sample: list[Pair]) -> None:
    train = sample[:2000]
    nearest = NearestSentence([pair.source for pair in train], [pair.target for pair in train])
    assert nearest.translate(pair.source for pair in train[:50]) == [pair.target for pair in train[:50]]


def test_the_nearest_has_the_largest_overlap_of_all(sample: list[Pair]) -> None:
    """By plain loops: no training sentence outside the candidates has a larger overlap of words."""
    train = [pair.source for pair in sample[:400]]
    nearest = NearestSentence(train, train)
    for pair in sample[400:420]:
        words = words_of(pair.source.lower())
        others = [words_of(source.lower()) for source in train]
        overlaps = [2 * len(set(words) & set(other)) / (len(words) + len(other)) for other in others]
        best = sorted(overlaps, reverse=True)[:20]
        chosen = nearest.nearest(pair.source)
        assert overlaps[chosen] >= min(best) - 1e-6
        closer = [edit_distance(words, others[place]) for place in range(400) if overlaps[place] > best[-1]]
        assert edit_distance(words, others[chosen]) <= min(closer, default=1000)


def test_of_sentences_with_equal_overlap_the_first_are_compared() -> None:
    """On every processor alike: which of them a partition takes depends on its instructions."""
    draw = np.random.default_rng(5)
    train = [" ".join(chr(97 + word) * 2 for word in draw.integers(8, size=6)) for _ in range(3000)]
    nearest = NearestSentence(train, train)
    words = [sentence.split() for sentence in train]
    for source in (" ".join(chr(97 + word) * 2 for word in draw.integers(8, size=6)) for _ in range(20)):
        asked = source.split()
        overlaps = [len(set(asked) & set(one)) for one in words]  # all are of six words
        first = sorted(range(len(train)), key=lambda place: (-overlaps[place], place))[:CANDIDATES]
        expected = min(first, key=lambda place: (edit_distance(asked, words[place]), place))
        assert nearest.nearest(source) == expected


def test_words_unknown_in_training_and_small_training_sets() -> None:
    nearest = NearestSentence(["The cat sleeps.", "The dog runs."], ["Die Katze schläft.", "Der Hund rennt."])
    assert nearest.translate(["A dog flies!", "Xyz."]) == ["Der Hund rennt.", "Die Katze schläft."]


def test_held_out_sentences_cannot_be_looked_up(sample: list[Pair]) -> None:
    test = list(generate("test", 150, seed=1))
    nearest = NearestSentence([pair.source for pair in sample], [pair.target for pair in sample])
    hypotheses = nearest.translate(pair.source for pair in test)
    assert exact_match(hypotheses, [pair.target for pair in test]) <= 0.05


def test_majority_pronoun(sample: list[Pair]) -> None:
    deciding = [pair for pair in sample if pair.pronoun is not None and pair.pronoun.decides]
    women = [pair for pair in deciding if pair.pronoun.antecedent_gender == "f"]
    men = [pair for pair in deciding if pair.pronoun.antecedent_gender == "m"]
    assert majority_pronoun(women[:3] + men[:2]) == "sie"
    assert majority_pronoun(women[:2] + men[:3]) == "er"

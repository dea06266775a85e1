"""The nearest training sentence against a plain search over all, and the majority gender."""

from __future__ import annotations

from random import Random

from regard.data.demo.grammar import Pair, generate, words_of
from regard.data.demo.grammar.baselines import NearestSentence, edit_distance, majority_pronoun
from regard.data.demo.grammar.scores import exact_match


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
        overlaps = [
            2 * len(set(words) & set(other)) / (len(words) + len(other))
            for other in (words_of(source.lower()) for source in train)
        ]
        best = sorted(overlaps, reverse=True)[:20]
        chosen = nearest.nearest(pair.source)
        assert overlaps[chosen] >= min(best) - 1e-6
        closer = [
            edit_distance(words, words_of(train[place].lower())) for place in range(400) if overlaps[place] > best[-1]
        ]
        assert edit_distance(words, words_of(train[chosen].lower())) <= min(closer, default=1000)


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

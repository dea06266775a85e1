"""What must hold of every generated pair, by rules written anew here; scores, and two baselines."""

from collections import Counter
from itertools import chain, islice
from random import Random

import numpy as np
import pytest

from regard.runs.demo.grammar import Pair, classic, corpus, generate, scores, word_spans, words_of, words_of_tokens
from regard.runs.demo.grammar.complex_sentences import FRAMES, frames_of, sentence_of
from regard.runs.demo.grammar.corpus import finish, split_of, split_of_combination, word_forms
from regard.runs.demo.grammar.draw import Draw
from regard.runs.demo.grammar.lexicon import NOUNS, noun
from regard.runs.demo.grammar.scores import NearestSentence, edit_distance, encoder_shares
from regard.system.errors import RegardError, UsageError
from tests.refusals import refused
from tests.runs.demo.grammar.conftest import SHORT


def test_the_classic_sentences() -> None:
    tired, wide = classic()
    assert tired.source == "The animal didn't cross the street because it was too tired."
    assert tired.target == "Das Tier überquerte die Straße nicht, weil es zu müde war."
    assert wide.source == "The animal didn't cross the street because it was too wide."
    assert wide.target == "Das Tier überquerte die Straße nicht, weil sie zu breit war."
    found = [words_of(pair.source)[pair.pronoun.antecedent_words[0]] for pair in (tired, wide)]
    assert found == ["animal", "street"]


@pytest.mark.parametrize("count", [300, pytest.param(1500, marks=pytest.mark.long(0.1))])
def test_streams_are_pure_functions_of_split_and_seed_and_no_pair_is_in_two(count: int) -> None:
    first = list(generate("test", 30, seed=3))
    assert list(generate("test", 20, seed=3)) == first[:20]
    assert list(generate("test", 30, seed=4)) != first
    with refused(UsageError, "split", "dev", "train", "valid", "test"):
        next(generate("dev", 1))
    found = [pair.source for split in ("train", "valid", "test") for pair in generate(split, count, seed=6)]
    assert len(set(found)) == len(found)


@pytest.mark.long(minutes=0.05)
@pytest.mark.parametrize("more", [0, pytest.param(80_000, marks=pytest.mark.long(0.2))])
def test_one_english_sentence_has_one_german(sample: list[Pair], others: list[Pair], more: int) -> None:
    german: dict[str, str] = {}
    for pair in chain(sample, others, generate("train", more, seed=20)):
        assert german.setdefault(pair.source, pair.target) == pair.target


def test_held_out_combinations(others: list[Pair]) -> None:
    """Every test pair has a combination no training pair of any seed may have; train has none of them."""
    held = set()
    for pair in chain(generate("test", 800, seed=2), generate("valid", 800, seed=2)):
        owners = {combination: split_of_combination(combination) for combination in pair.combinations}
        assert set(owners.values()) - {"train"} == {split_of(pair.combinations)} <= {"valid", "test"}
        held |= {combination for combination, owner in owners.items() if owner != "train"}
    for pair in others:
        assert held.isdisjoint(pair.combinations)


def test_every_combination_names_words_of_its_sentence(sample: list[Pair]) -> None:
    """A pronoun sentence has both kinds; a noun of a combination stands in the sentence, in one of its numbers."""
    for pair in sample[:5000]:
        if pair.pronoun or pair.pattern == "comparison":
            assert len(pair.combinations) == 1 + (pair.pronoun is not None)
            for entry in map(noun, pair.combinations[-1][:2]):
                assert {entry.english, entry.english_plural} & set(words_of(pair.source))


def test_every_word_of_valid_and_test_is_seen_in_training() -> None:
    """Even after a training set so small that unguarded test sentences have unseen words."""
    small = corpus(3000, 150, 150, seed=5)
    seen = word_forms(small.train)
    for some in (small.valid, small.test):
        assert len(some) == 150
        assert word_forms(some) <= seen
    assert not word_forms(islice(generate("test", None, seed=5), 300)) <= seen


def test_words_spans_and_annotation_agree(sample: list[Pair]) -> None:
    """A noun is aligned to its noun, and only words without a counterpart are not aligned."""
    forms = {form: entry for entry in NOUNS for form in (entry.english, entry.english_plural)}
    for pair in sample:
        source, target = words_of(pair.source), words_of(pair.target)
        assert [pair.source[start:end] for start, end in word_spans(pair.source)] == source
        assert pair.source[-1] == pair.target[-1] in ".?"
        assert (pair.source[0] + pair.target[0]).isupper()
        assert len(pair.nouns) == len(set(pair.nouns))
        for word in pair.nouns:
            entry = forms[source[word].lower()]
            (aligned,) = (target[j] for i, j in pair.alignment if i == word)
            assert aligned in (entry.german, entry.german_plural, entry.dative_plural)
        left, right = set(range(len(source))), set(range(len(target)))
        assert all(i in left and j in right for i, j in pair.alignment)
        alone = {source[i] for i in left - {i for i, _ in pair.alignment}}
        alone |= {target[j] for j in right - {j for _, j in pair.alignment}}
        assert alone <= {"to", "zu", "dem", "der"}, (pair.source, alone)


def test_the_pronoun_has_the_gender_of_its_antecedent(sample: list[Pair]) -> None:
    seen = Counter()
    for pair in sample:
        if pair.pronoun is None:
            continue
        pronoun, source, target = pair.pronoun, words_of(pair.source), words_of(pair.target)
        antecedent, rival = (noun(source[words[0]]) for words in (pronoun.antecedent_words, pronoun.rival_words))
        assert source[pronoun.source_word] == "it"
        assert target[pronoun.target_word] == {"m": "er", "f": "sie", "n": "es"}[antecedent.gender]
        assert (antecedent.gender, rival.gender) == (pronoun.antecedent_gender, pronoun.rival_gender)
        assert pronoun.decides == (antecedent.gender != rival.gender)
        first = pronoun.antecedent_words < pronoun.rival_words
        seen[antecedent.gender, rival.gender, first] += 1
    assert len(seen) == 18, "every pair of genders, antecedent first or second"
    assert min(seen.values()) > 0.4 * sum(seen.values()) / 18
    deciding = [key for key in seen.elements() if key[0] != key[1]]  # neither place nor gender can be guessed
    assert 0.45 < sum(first for _, _, first in deciding) / len(deciding) < 0.55
    assert max(Counter(gender for gender, _, _ in deciding).values()) / len(deciding) < 0.4


def test_a_fifth_is_short(sample: list[Pair]) -> None:
    short = [pair for pair in sample if pair.pattern.startswith(SHORT)]
    assert 0.19 < len(short) / len(sample) < 0.23
    assert sum(len(words_of(pair.source)) for pair in short) / len(short) < 5.5


def test_in_most_pronoun_sentences_only_the_order_of_the_words_decides(sample: list[Pair]) -> None:
    """The same words with their nouns exchanged, and *it* means the other noun: a bag of words cannot know."""
    decided = exchangeable = 0
    for pair in sample[:5000]:
        if pair.pronoun is None or not pair.pronoun.decides:
            continue
        decided += 1
        _, (subject, thing, reason) = pair.combinations
        name = pair.pattern.removeprefix("pronoun-")
        if any(frame.objects not in noun(subject).kinds for frame in frames_of(name)):
            continue
        one, other = (
            finish(sentence_of(Draw(Random(0)), name, noun(first), noun(second), reason), pair.pattern)
            for first, second in ((subject, thing), (thing, subject))
        )
        assert Counter(words_of(one.source)) == Counter(words_of(other.source))
        assert one.pronoun.antecedent_gender == other.pronoun.rival_gender
        exchangeable += 1
    assert exchangeable > 0.75 * decided


def test_an_adjective_speaks_of_the_same_part_beside_every_verb() -> None:
    of_subjects = {word for frame in FRAMES for word in frame.of_subject.split()}
    of_objects = {word for frame in FRAMES for word in frame.of_object.split()}
    assert of_subjects.isdisjoint(of_objects)


def test_exact_match() -> None:
    assert scores.exact_match(["a", "b.", "c"], ["a", "b", "c"]) == pytest.approx(2 / 3)
    with refused(RegardError, "hypotheses", "2", "1"):
        scores.exact_match(["a", "b"], ["a"])


CHOSEN = [
    ("Das Tier überquerte die Straße nicht, weil es zu müde war.", "es"),
    ("Sie schlief, weil Sie zu müde war.", "sie"),
    ("Er schlief, weil er schlief, weil sie schlief.", "sie"),
    ("Er schlief, weil die Katze schlief.", None),
    *((said, None) for said in ("Er schlief.", "weil", "Er schlief, weil", "")),
]


@pytest.mark.parametrize(("hypothesis", "pronoun"), CHOSEN)
def test_the_pronoun_is_the_word_after_the_last_weil(hypothesis: str, pronoun: str | None) -> None:
    assert scores.chosen_pronoun(hypothesis) == pronoun


def test_pronoun_accuracy_counts_only_antecedents_of_different_gender(sample: list[Pair]) -> None:
    deciding = [pair for pair in sample if pair.pronoun and pair.pronoun.decides]
    same = [pair for pair in sample if pair.pronoun and not pair.pronoun.decides]
    others = [pair for pair in sample if not pair.pronoun]
    pairs = deciding[:30] + same[:10] + others[:10]
    right = scores.pronoun_accuracy(pairs, [pair.target for pair in pairs])
    assert right == scores.Accuracy(30, 30)
    always = scores.pronoun_accuracy(pairs, ["…, weil er zu müde war."] * 50)
    assert always.correct == sum(pair.pronoun.antecedent_gender == "m" for pair in deciding[:30])
    assert scores.pronoun_accuracy(others[:2], ["", ""]) == scores.Accuracy(0, 0)
    women, men = ([pair for pair in deciding if pair.pronoun.antecedent_gender == gender] for gender in "fm")
    assert scores.majority_pronoun(women[:3] + men[:2]) == "sie"
    assert scores.majority_pronoun(women[:2] + men[:3]) == "er"


def test_words_of_tokens() -> None:
    sentence = "The cat didn't sleep, it ran."
    offsets = [(0, 3), (3, 7), (7, 10), (10, 14), (14, 20), (20, 21), (21, 24), (24, 28), (28, 29), (29, 29)]
    assert words_of_tokens(offsets, sentence) == [0, 1, 2, 2, 3, -1, 4, 5, -1, -1]
    assert words_of(sentence) == ["The", "cat", "didn't", "sleep", "it", "ran"]


def test_a_head_that_looks_at_the_antecedent_only() -> None:
    pair, _ = classic()
    weight_QK = np.zeros((11, 11))
    weight_QK[:, pair.pronoun.antecedent_words[0]] = 1
    shares, uniform = encoder_shares(pair, weight_QK), encoder_shares(pair, np.full((11, 11), 1 / 11))
    assert (shares.antecedent, shares.rival, shares.nouns, shares.chance) == (1, 0, 0.5, 0.5)
    assert uniform.antecedent == pytest.approx(uniform.chance)
    assert scores.mean_shares([shares, uniform]).antecedent == pytest.approx((1 + 1 / 11) / 2)
    with refused(RegardError, "shares"):
        scores.mean_shares([])
    plain = next(pair for pair in generate("train", 9) if pair.pronoun is None)
    with refused(RegardError, "pair", plain.source):
        encoder_shares(plain, weight_QK)


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


def test_a_training_sentence_finds_itself_and_a_held_out_one_cannot_be_looked_up(sample: list[Pair]) -> None:
    nearest = NearestSentence([pair.source for pair in sample], [pair.target for pair in sample])
    assert nearest.translate(pair.source for pair in sample[:50]) == [pair.target for pair in sample[:50]]
    test = list(generate("test", 150, seed=1))
    hypotheses = nearest.translate(pair.source for pair in test)
    assert scores.exact_match(hypotheses, [pair.target for pair in test]) <= 0.05


def test_the_nearest_has_the_largest_overlap_of_all(sample: list[Pair]) -> None:
    """By plain loops: no training sentence outside the candidates has a larger overlap of words."""
    train = [pair.source for pair in sample[:400]]
    nearest, others = NearestSentence(train, train), [words_of(source.lower()) for source in train]
    for pair in sample[400:420]:
        words = words_of(pair.source.lower())
        overlaps = [2 * len(set(words) & set(other)) / (len(words) + len(other)) for other in others]
        best = sorted(overlaps, reverse=True)[:20]
        chosen = nearest.nearest(pair.source)
        assert overlaps[chosen] >= min(best) - 1e-6
        closer = [edit_distance(words, others[place]) for place in range(400) if overlaps[place] > best[-1]]
        assert edit_distance(words, others[chosen]) <= min(closer, default=1000)


def test_of_sentences_with_equal_overlap_the_first_are_compared() -> None:
    """On every processor alike: which of them a partition takes depends on its instructions."""
    draw = np.random.default_rng(5)
    train, asked = ([[chr(97 + w) * 2 for w in draw.integers(8, size=6)] for _ in range(n)] for n in (3000, 20))
    nearest = NearestSentence(list(map(" ".join, train)), list(map(" ".join, train)))
    for words in asked:
        overlaps = [len(set(words) & set(one)) for one in train]  # all are of six words
        first = sorted(range(len(train)), key=lambda place: (-overlaps[place], place))[: scores.CANDIDATES]
        expected = min(first, key=lambda place: (edit_distance(words, train[place]), place))
        assert nearest.nearest(" ".join(words)) == expected


def test_words_unknown_in_training_and_small_training_sets() -> None:
    nearest = NearestSentence(["The cat sleeps.", "The dog runs."], ["Die Katze schläft.", "Der Hund rennt."])
    assert nearest.translate(["A dog flies!", "Xyz."]) == ["Der Hund rennt.", "Die Katze schläft."]

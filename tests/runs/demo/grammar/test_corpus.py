"""What must hold of every generated pair, checked on a large sample with rules written anew here."""

from collections import Counter
from itertools import chain, islice
from random import Random

import pytest

from regard.runs.demo.grammar import Pair, classic, corpus, generate, word_spans, words_of
from regard.runs.demo.grammar.complex_sentences import FRAMES, frames_of, sentence_of
from regard.runs.demo.grammar.corpus import finish, split_of, split_of_combination, word_forms
from regard.runs.demo.grammar.draw import Draw
from regard.runs.demo.grammar.lexicon import NOUNS, noun
from regard.system.errors import UsageError
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


def test_streams_are_pure_functions_of_split_and_seed() -> None:
    first = list(generate("test", 30, seed=3))
    assert list(generate("test", 20, seed=3)) == first[:20]
    assert list(generate("test", 30, seed=4)) != first
    with refused(UsageError, "split", "dev", "train", "valid", "test"):
        next(generate("dev", 1))  # type: ignore[arg-type]


@pytest.mark.parametrize("more", [0, pytest.param(80_000, marks=pytest.mark.long(0.2))])
def test_one_english_sentence_has_one_german(sample: list[Pair], others: list[Pair], more: int) -> None:
    german: dict[str, str] = {}
    for pair in chain(sample, others, generate("train", more, seed=20)):
        assert german.setdefault(pair.source, pair.target) == pair.target


def test_no_pair_twice_and_no_pair_in_two_splits() -> None:
    found = {split: [pair.source for pair in generate(split, 1500, seed=6)] for split in ("train", "valid", "test")}
    everything = [source for sources in found.values() for source in sources]
    assert len(set(everything)) == len(everything)


def test_held_out_combinations(others: list[Pair]) -> None:
    """Every test pair has a combination no training pair of any seed may have; train has none of them."""
    held = set()
    for pair in chain(generate("test", 800, seed=2), generate("valid", 800, seed=2)):
        combinations = pair.verb_subject_object + pair.noun_noun_adjective
        owners = {combination: split_of_combination(combination) for combination in combinations}
        assert set(owners.values()) - {"train"} == {split_of(combinations)} <= {"valid", "test"}
        held |= {combination for combination, owner in owners.items() if owner != "train"}
    for pair in others:
        assert held.isdisjoint(pair.verb_subject_object + pair.noun_noun_adjective)


def test_every_combination_names_words_of_its_sentence(sample: list[Pair]) -> None:
    """A pronoun sentence has both kinds; a noun of a combination stands in the sentence, in one of its numbers."""
    for pair in sample[:5000]:
        if pair.pronoun is not None:
            assert len(pair.verb_subject_object) == len(pair.noun_noun_adjective) == 1
        for first, second, _ in pair.noun_noun_adjective:
            for lemma in (first, second):
                entry = noun(lemma)
                assert {entry.english, entry.english_plural} & set(words_of(pair.source))


def test_every_word_of_valid_and_test_is_seen_in_training() -> None:
    """Even after a training set so small that unguarded test sentences have unseen words."""
    small = corpus(3000, 150, 150, seed=5)
    seen = word_forms(small.train)
    assert len(small.valid) == len(small.test) == 150
    assert word_forms(small.test) <= seen
    assert word_forms(small.valid) <= seen
    assert not word_forms(islice(generate("test", None, seed=5), 300)) <= seen


def test_words_spans_and_annotation_agree(sample: list[Pair]) -> None:
    """A noun is aligned to its noun, and only words without a counterpart are not aligned."""
    forms = {form: entry for entry in NOUNS for form in (entry.english, entry.english_plural)}
    for pair in sample:
        source, target = words_of(pair.source), words_of(pair.target)
        assert [pair.source[start:end] for start, end in word_spans(pair.source)] == source
        assert pair.source[-1] == pair.target[-1]
        assert pair.source[-1] in ".?"
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
        antecedent = noun(source[pronoun.antecedent_words[0]])
        rival = noun(source[pronoun.rival_words[0]])
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
        ((subject, thing, reason),) = pair.noun_noun_adjective
        name = pair.pattern.removeprefix("pronoun-")
        if any(frame.objects not in noun(subject).kinds for frame in frames_of(name)):
            continue
        one = finish(sentence_of(Draw(Random(0)), name, noun(subject), noun(thing), reason), pair.pattern)
        other = finish(sentence_of(Draw(Random(0)), name, noun(thing), noun(subject), reason), pair.pattern)
        assert Counter(words_of(one.source)) == Counter(words_of(other.source))
        assert one.pronoun.antecedent_gender == other.pronoun.rival_gender
        exchangeable += 1
    assert exchangeable > 0.75 * decided


def test_an_adjective_speaks_of_the_same_part_beside_every_verb() -> None:
    of_subjects = {word for frame in FRAMES for word in frame.of_subject.split()}
    of_objects = {word for frame in FRAMES for word in frame.of_object.split()}
    assert of_subjects.isdisjoint(of_objects)

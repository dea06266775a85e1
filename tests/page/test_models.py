"""The trained test models have learned their data; their test data is disjoint from it."""

from pathlib import Path

import pytest

from regard.runs.demo.grammar import classic, words_of
from tests.page.language import antecedent, hidden, hidden_twice, language, pairs, spans
from tests.page.models import LESSONS, made, quality


def test_what_is_tested_was_not_learned_from() -> None:
    learned, tested = (
        {(one.verb_subject_object, one.noun_noun_adjective) for one in pairs(s)} for s in ("train", "test")
    )
    assert len(pairs("train")) > 1500
    assert len(pairs("test")) == 200
    assert not learned & tested
    words = [{word for one in pairs(split) for word in words_of(one.source)} for split in ("train", "test")]
    assert words[1] <= words[0]


def test_the_classic_sentences_belong_to_the_language() -> None:
    tired, wide = classic()
    assert language()[tired.source].target == tired.target
    assert (antecedent(tired), antecedent(wide)) == ("subject", "object")
    assert [(wide.source[begin:end], label) for begin, end, label in spans(wide)] == [
        ("The animal", "animal"),
        ("the street", "place"),
    ]
    assert hidden(wide) == "The animal didn't cross the [MASK] because it was too wide."
    assert hidden_twice(wide) == "The animal didn't cross <extra_0> because it was too <extra_1>"


@pytest.mark.long(minutes=0.3)
@pytest.mark.parametrize("name", LESSONS)
def test_models_have_learned(name: str, page_models: Path) -> None:
    made(name, page_models)
    assert quality(name, page_models) >= LESSONS[name].least

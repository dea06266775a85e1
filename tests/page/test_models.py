"""The trained test models have learned their data; their test data is disjoint from it."""

from pathlib import Path

import pytest

from regard.runs.demo.grammar import words_of
from tests.page.language import pairs
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


@pytest.mark.long(minutes=0.3)
@pytest.mark.parametrize("name", LESSONS)
def test_models_have_learned(name: str, page_models: Path) -> None:
    made(name, page_models)
    assert quality(name, page_models) >= LESSONS[name].least

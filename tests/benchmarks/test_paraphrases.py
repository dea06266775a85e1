"""Pairs of sentences that say the same, or do not."""

from __future__ import annotations

from collections import Counter
from types import ModuleType
from typing import Any

import pytest

from regard.runs.demo.grammar.corpus import words_of

FUNCTION_WORDS = {"it", "is", "are", "was", "were", "by", "that", "a", "an"}


@pytest.fixture
def made(load: Any) -> ModuleType:
    found: ModuleType = load("paraphrases")
    return found


@pytest.fixture
def pairs(made: ModuleType) -> list[Any]:
    return list(made.paraphrases("train", 600))


def test_half_are_true_and_every_kind_occurs(made: ModuleType, pairs: list[Any]) -> None:
    assert Counter(pair.label for pair in pairs) == {"same": 300, "different": 300}
    assert {pair.difference for pair in pairs} == {"none", *made.DIFFERENCES}
    assert {name for pair in pairs for name in pair.wordings} == set(made.WORDINGS)
    assert len({(pair.first, pair.second) for pair in pairs}) == len(pairs)


def test_a_seed_gives_the_same_pairs_and_more_begin_with_fewer(made: ModuleType, pairs: list[Any]) -> None:
    assert list(made.paraphrases("train", 40)) == pairs[:40]
    assert list(made.paraphrases("train", 40, seed=2)) != pairs[:40]


def test_no_label_is_told_by_wording(made: ModuleType, pairs: list[Any]) -> None:
    """Both labels are worded alike, so that one sentence alone does not give the label away."""
    counts = {one: Counter(pair.wordings[1] for pair in pairs if pair.label == one) for one in ("same", "different")}
    for name in made.WORDINGS:
        assert abs(counts["same"][name] - counts["different"][name]) < 45


def content(sentence: str) -> Counter[str]:
    """Its words without those that a wording adds, verbs by their first two letters."""
    return Counter(word[:2] for word in map(str.lower, words_of(sentence)) if word not in FUNCTION_WORDS)


def test_what_differs_is_one_word_or_the_order(made: ModuleType, pairs: list[Any]) -> None:
    regular = [pair for pair in pairs if not {"broke", "broken"} & {*words_of(pair.first), *words_of(pair.second)}]
    for pair in regular:
        missing = (content(pair.first) - content(pair.second)).total()
        if pair.difference in ("none", "roles"):
            assert missing <= 1, pair  # a verb such as "caught" and "catches"
        else:
            assert missing <= (6 if pair.difference == "time" else 2), pair


def test_exchanged_roles_keep_every_word(made: ModuleType) -> None:
    found = [pair for pair in made.paraphrases("train", 2000) if pair.difference == "roles"]
    assert len(found) > 100
    plain = [pair for pair in found if pair.wordings == ("fronted", "plain")]
    assert plain
    for pair in plain:
        assert content(pair.first) == content(pair.second) or "meet" in f"{pair.first} {pair.second}"


def test_splits_share_no_pair(made: ModuleType) -> None:
    train = {pair.first for pair in made.paraphrases("train", 2000)}
    assert not train & {pair.first for pair in made.paraphrases("test", 200)}

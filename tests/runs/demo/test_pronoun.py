"""The head of the pronoun is the one that tells its two nouns apart."""

import pytest

from regard.runs.demo import pronoun
from regard.runs.demo.grammar.scores import Shares


def test_the_head_that_tells_the_nouns_apart_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the one that looks most at the antecedent while it looks at the rival as much."""
    both, one = Shares(0.5, 0.49, 0.3, 0.1), Shares(0.4, 0.1, 0.3, 0.1)
    monkeypatch.setattr(pronoun, "head_shares", lambda model, pairs, kind: {(0, 1): [both], (2, 3): [one, one]})
    found = pronoun.pronoun_attention(None, [], [], "encoder")
    assert (found.layer, found.head) == (3, 4)
    assert found.valid == found.test == one
    assert found.margin == pytest.approx(0.3)


def test_a_german_pronoun_may_learn_its_gender_from_the_english_one(monkeypatch: pytest.MonkeyPatch) -> None:
    noun, english = Shares(0.5, 0.2, 0.3, 0.1, 0.1), Shares(0.02, 0.01, 0.01, 0.1, 0.9)
    monkeypatch.setattr(pronoun, "head_shares", lambda model, pairs, kind: {(0, 0): [noun], (0, 1): [english]})
    found = pronoun.pronoun_attention(None, [], [], "cross")
    assert (found.layer, found.head, found.test.on_pronoun) == (1, 2, True)
    assert found.margin == pytest.approx(0.01)

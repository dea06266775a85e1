"""Tags as placeholders: on which words they are given, and to which units those that were written lead."""

import numpy as np
import pytest

from regard.documents.segment import Tag
from regard.documents.tags.placeholders import WRITTEN, with_tags, with_written, written_shares

TEXT = "One. The old cat, it sleeps."


@pytest.mark.parametrize(
    ("tags", "wanted"),
    [
        ([Tag(9, 16, "")], "The old⦿ cat⦿, it sleeps."),
        ([Tag(8, 18, ""), Tag(13, 16, "", parent=0)], "The old⦿ cat⦿⦾,⦿ it sleeps."),
        ([Tag(2, 8, ""), Tag(16, 16, "")], "The⦿ old cat⦾, it sleeps."),
        ([Tag(0, 40, ""), Tag(5, 28, ""), Tag(5, 5, ""), Tag(28, 28, ""), Tag(9, 12, "", kept=True)], TEXT[5:]),
        ([Tag(9, 12, "")] * 5, TEXT[5:]),
    ],
)
def test_tags_within_a_sentence_are_given(tags: list[Tag], wanted: str) -> None:
    assert with_tags(TEXT, tags, (5, 28)) == wanted


def test_units_belong_to_those_in_the_same_tags() -> None:
    found = written_shares("The old⦿ cat⦿⦾ sleeps", "⦿Es schläft die⦿ alte⦿ Katze⦾⦿")
    assert found is not None
    assert found.round(3).tolist() == [[1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]
    assert found[3, 1] > found[2, 1]


def test_what_was_written_with_other_signs_tells_nothing() -> None:
    for text, said in (("a⦿ b", "a b"), ("a⦿ b", "a⦾ b"), ("a b", "a b"), ("a⦿ b", "a⦿⦾ b")):
        assert written_shares(text, said) is None


def test_attention_has_its_part() -> None:
    one, other = np.eye(2), np.ones((2, 2)) / 2
    assert with_written(one, None) is one
    assert with_written(None, other) is other
    mixed = with_written(one, other)
    assert mixed is not None
    assert mixed == pytest.approx((1 - WRITTEN) * one + WRITTEN * other)

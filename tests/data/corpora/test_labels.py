"""Several labels in one string, and labels that are numbers."""

from __future__ import annotations

import pytest

from regard.data.corpora.labelled import join_labels, parse_number, split_labels


def test_labels_are_split_as_they_were_joined() -> None:
    assert split_labels(join_labels(["a", " b c ", "d"])) == ["a", "b c", "d"]
    assert split_labels("") == split_labels(" | ") == []
    assert split_labels("b|a|b") == ["b", "a"]
    assert join_labels([]) == ""


@pytest.mark.parametrize("labels", [["a|b"], ["a", " "]])
def test_a_label_that_cannot_be_joined_is_refused(labels: list[str]) -> None:
    with pytest.raises(ValueError):
        join_labels(labels)


def test_numbers() -> None:
    assert [parse_number(label) for label in ("3", " -1.5e3 ", "0")] == [3.0, -1500.0, 0.0]
    assert [parse_number(label) for label in ("", "x", "1,5", "nan", "inf", "1_000")] == [None] * 6

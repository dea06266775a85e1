"""The characters of a multiword token are shared between its words."""

import random

import pytest

from regard.data.corpora.conll import ConlluSentence, shares


@pytest.mark.parametrize(
    ("surface", "words", "parts"),
    [
        ("didn't", ["did", "n't"], ["did", "n't"]),
        ("Didn't", ["did", "not"], ["Did", "n't"]),
        ("zum", ["zu", "dem"], ["zu", "m"]),
        ("du", ["de", "le"], ["d", "u"]),
        ("dámelo", ["da", "me", "lo"], ["d", "á", "melo"]),
        ("al", ["al"], ["al"]),
        ("x", ["a", "b"], ["x", "x"]),
        ("aaaa", ["aaaa", "b", "c"], ["aa", "a", "a"]),
    ],
)
def test_each_word_has_its_share(surface: str, words: list[str], parts: list[str]) -> None:
    assert [surface[begin:end] for begin, end in shares(surface, words)] == parts


def test_shares_cover_the_token() -> None:
    drawn = random.Random(1)
    for _ in range(300):
        words = ["".join(drawn.choices("abc", k=drawn.randint(1, 4))) for _ in range(drawn.randint(1, 4))]
        surface = "".join(drawn.choices("abc", k=drawn.randint(len(words), 9)))
        found = shares(surface, words)
        assert len(found) == len(words)
        assert "".join(surface[begin:end] for begin, end in found) == surface
        assert all(begin < end for begin, end in found)


def row(number: str, form: str, upos: str = "X", misc: str = "_") -> list[str]:
    return [number, form, "_", upos, "_", "_", "_", "_", "_", misc]


def test_a_range_that_is_never_filled_ends_with_what_there_is() -> None:
    sentence = ConlluSentence(1, 3)
    sentence.add(row("1-3", "dámelo"))
    sentence.add(row("1", "da", "VERB"))
    assert sentence.words().words == ["dámelo"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([["1", "a"]], "10"),
        ([row("2", "a")], "'2'"),
        ([row("1", "a"), row("1", "a")], "'1'"),
        ([row("x", "a")], "'x'"),
        ([row("2-3", "a")], "2-3"),
        ([row("2-1", "a")], "2-1"),
        ([row("1-2", "a"), row("1", "a"), row("2-3", "a")], "2-3"),
        ([row("1", "")], "word"),
        ([row("1", "a", "")], "tag"),
    ],
)
def test_what_is_wrong_is_said(rows: list[list[str]], message: str) -> None:
    sentence = ConlluSentence(1, 3)
    for cells in rows[:-1]:
        sentence.add(cells)
    with pytest.raises(ValueError, match=message):
        sentence.add(rows[-1])

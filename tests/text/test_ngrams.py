"""Hashed n-grams: which a text has, and their weights."""

import numpy as np
import pytest

from regard.text.ngrams import NGrams, character_ngrams, word_ngrams, words_of
from tests.text.crc import crc32


def test_words_and_neighbours() -> None:
    assert word_ngrams(["a", "cat"]) == ["a", "cat", "\x02 a", "a cat", "cat \x03"]
    assert word_ngrams([]) == ["\x02 \x03"]


@pytest.mark.parametrize(
    ("word", "wanted"),
    [
        ("cat", [" c", "ca", "at", "t ", " ca", "cat", "at ", " cat", "cat ", " cat "]),
        ("a", [" a", "a ", " a "]),
        ("?", [" ?", "? ", " ? "]),
    ],
)
def test_characters_within_a_word(word: str, wanted: list[str]) -> None:
    assert character_ngrams(word) == ["\x01" + one for one in wanted]


def test_each_kind_has_length_one_and_frequent_ngrams_weigh_more() -> None:
    buckets_N, weights_N = NGrams(1 << 20).bag("the cat the dog")
    of_words = len(np.unique([hash(one) for one in word_ngrams("the cat the dog".split())]))
    assert np.linalg.norm(weights_N[:of_words]) == pytest.approx(1)
    assert np.linalg.norm(weights_N[of_words:]) == pytest.approx(1)
    rare, twice = weights_N[:of_words].min(), weights_N[:of_words].max()
    assert twice / rare == pytest.approx(1 + np.log(2), rel=1e-5)
    assert len(buckets_N) == len(weights_N)


def test_case_and_place_do_not_matter_and_hashes_never_change() -> None:
    ngrams = NGrams(1000)
    assert ngrams.bag("A Cat")[0].tolist() == ngrams.bag("a cat")[0].tolist()
    every = [*word_ngrams(["a"]), *character_ngrams("a")]
    assert sorted(ngrams.bag("a")[0].tolist()) == sorted(crc32(one.encode()) % 1000 for one in every)


def test_bags_lie_end_to_end() -> None:
    ngrams = NGrams(1 << 16)
    bags = ngrams.bags(["a cat", "", "dogs"])
    assert bags.starts_B1[-1] == len(bags.buckets_N) == len(bags.weights_N)
    alone = ngrams.bag("dogs")
    assert (bags.buckets_N[bags.starts_B1[2] :] == alone[0]).all()
    assert (bags.weights_N[bags.starts_B1[2] :] == alone[1]).all()


@pytest.mark.parametrize("text", ["the cat saw the cat", "cat", "", "a b a b!"])
def test_the_bags_of_words_add_up_to_the_bag_of_the_text(text: str) -> None:
    ngrams = NGrams(1 << 22)
    whole = dict(zip(*ngrams.bag(text), strict=True))
    added: dict[int, float] = {}
    bags = ngrams.bags_of_words(text)
    assert len(bags) == len(words_of(text))
    for buckets_N, weights_N in bags:
        for bucket, weight in zip(buckets_N.tolist(), weights_N.tolist(), strict=True):
            added[bucket] = added.get(bucket, 0.0) + weight
    if words_of(text):
        assert added == pytest.approx(whole, rel=1e-5)
    else:
        assert not added  # the pair of both ends belongs to no word


def test_a_word_has_what_only_it_occurs_in() -> None:
    ngrams = NGrams(1 << 22)
    first, second = ngrams.bags_of_words("red wine")
    pair, red = (ngrams.bag("red wine")[0] == crc32(one) % (1 << 22) for one in (b"red wine", b"red"))
    weight = dict(zip(*ngrams.bag("red wine"), strict=True))
    bucket, own = int(ngrams.bag("red wine")[0][pair][0]), int(ngrams.bag("red wine")[0][red][0])
    assert dict(zip(*first, strict=True))[bucket] == pytest.approx(weight[bucket] / 2)
    assert dict(zip(*second, strict=True))[bucket] == pytest.approx(weight[bucket] / 2)
    assert dict(zip(*first, strict=True))[own] == pytest.approx(weight[own])
    assert own not in second[0]

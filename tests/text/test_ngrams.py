"""Hashed n-grams: which a text has, and their weights."""

from typing import Any

import numpy as np
import pytest

from regard.text.ngrams import (
    OWN,
    NGrams,
    NumberNGrams,
    PairNGrams,
    Vectorizer,
    character_ngrams,
    word_ngrams,
    words_of,
)
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


@pytest.mark.parametrize(
    ("maker", "text"),
    [
        *((maker, text) for maker in (NGrams, NumberNGrams) for text in ("the cat saw the cat", "cat", "", "a b a b!")),
        *((PairNGrams, pair) for pair in (("a cat a cat", "the cat"), ("dog", "cats"), ("", "a"), ("", ""))),
    ],
)
def test_the_bags_of_words_add_up_to_the_bag_of_the_text(maker: type[Vectorizer[Any]], text: Any) -> None:
    ngrams: Any = maker(1 << 22)  # type: ignore[call-arg]
    whole, bags = added([ngrams.bag(text)]), ngrams.bags_of_words(text)
    assert len(bags) == len(ngrams.words(text))
    known = added(bags)
    ends = {bucket for bucket in whole if bucket not in known}  # the pair of both ends belongs to no word
    assert all(not words_of(one) for one in ([text] if isinstance(text, str) else text)) or len(ends) <= 2
    assert {bucket: weight for bucket, weight in known.items() if weight} == pytest.approx(
        {bucket: whole[bucket] for bucket in known if whole[bucket]}, rel=1e-4
    )


def added(bags: Any) -> dict[int, float]:
    found: dict[int, float] = {}
    for buckets_N, weights_N in bags:
        for bucket, weight in zip(buckets_N.tolist(), weights_N.tolist(), strict=True):
            found[bucket] = found.get(bucket, 0.0) + weight
    return found


def test_a_number_follows_how_long_a_text_is() -> None:
    buckets, most = NumberNGrams(1 << 22).bag("a b c"), 1 << 22
    assert (buckets[0][:-2] == NGrams(most).bag("a b c")[0]).all()
    assert buckets[0][-2:].tolist() == [most, most + 1]
    assert buckets[1][-2:] == pytest.approx([0.3, np.log(4)])


def test_two_texts_share_ngrams() -> None:
    most = 1 << 22
    pairs, ngrams = PairNGrams(most), NGrams(most)
    same, other, apart = (added([pairs.bag(("red wine", second))]) for second in ("red wine", "red", "dogs"))
    assert (same[most], same[most + 1]) == pytest.approx((1, 1))  # cosines of words and of characters
    assert 0 < other[most] < 1
    assert apart[most] == apart[most + 1] == 0
    words, characters = ngrams.kinds("red wine")
    first = added([(words[0], OWN * words[1]), (characters[0], OWN * characters[1])])
    assert {bucket: same[bucket] for bucket in first} == pytest.approx(first)  # the first text alone
    entries = len(first)
    assert len(same) == 3 * entries + 2  # both texts, what both have, and two cosines
    assert len(apart) == entries + len(ngrams.bag("dogs")[0]) + 2
    squares = sum(weight**2 for bucket, weight in other.items() if bucket < most)
    own = OWN**2 * sum(np.square(ngrams.bag(one)[1]).sum() for one in ("red wine", "red"))
    assert squares - own == pytest.approx(other[most] + other[most + 1], rel=1e-4)
    turned = added([pairs.bag(("red", "red wine"))])
    assert turned.keys() != other.keys()  # the order counts
    assert (turned[most], turned[most + 1]) == pytest.approx((other[most], other[most + 1]))


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

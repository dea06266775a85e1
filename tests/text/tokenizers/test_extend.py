"""Further pieces of a known vocabulary: the merges of a plain loop, ids that stay, texts that come back."""

from collections import Counter
from itertools import chain, pairwise

import pytest

from regard.text.tokenizers.byte_pieces import ChunkCounter
from regard.text.tokenizers.tokenizer import Tokenizer, extend, learn

OLD = ["the cat sat on the mat", "the dog saw the cat", "a house, a mouse"] * 4
NEW = ["myocardial infarction of the cat's heart", "the infarction, myocarditis & carditis: Überdosis überall"] * 3
NEW += ["aaaa aaaaa bananas", "心筋梗塞と心筋炎", "wholly new: 123 1234"] * 2


def counted(texts: list[str]) -> ChunkCounter:
    counter = ChunkCounter()
    counter.add(texts)
    return counter


def plain_merges(known: Tokenizer, counts: dict[str, int], count: int) -> list[tuple[str, str]]:
    """The most frequent pair, of several the one of the smaller ids, merged wherever it stands, again and again."""
    names = list(known.names)
    words = {word: known.pieces_of(word) for word in counts}
    merges = []
    for _ in range(count):
        pairs = Counter[tuple[int, int]]()
        for word, ids in words.items():
            for pair in pairwise(ids):
                pairs[pair] += counts[word]
        if max(pairs.values(), default=0) < 2:
            break
        left, right = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append((names[left], names[right]))
        names.append(names[left] + names[right])
        for ids in words.values():
            place = 0
            while place + 1 < len(ids):
                if ids[place : place + 2] == [left, right]:
                    ids[place : place + 2] = [len(names) - 1]
                place += 1
    return merges


@pytest.mark.parametrize("count", [0, 1, 25, 1000])
def test_further_merges_are_those_of_a_plain_loop(count: int) -> None:
    known, counter = learn(OLD, 290, symbols=("[MASK]",)), counted(NEW)
    found = extend(known, counter, count)
    merges = plain_merges(known, counter.counts(), count)
    assert found.merges == (*known.merges, *merges)
    assert found.names == (*known.names, *map("".join, merges))
    assert len(merges) == count or count == 1000
    assert (found.start, found.symbols) == (known.size + len(merges), known.symbols)
    for text in NEW:  # as the merges were learned, so are they applied
        assert found.decode(found.encode(text).ids) == text
        parts = [known.pieces_of(found.names[id]) for id in found.encode(text).ids]
        assert [*chain.from_iterable(parts)] == known.encode(text).ids


def test_a_text_without_further_pieces_has_the_ids_that_it_had() -> None:
    known = learn(OLD, 290)
    found = extend(known, counted(NEW), 40)
    for text in [*OLD, "cat dog mouse", "the 心"]:
        ids = found.encode(text).ids
        assert ids == known.encode(text).ids or max(ids) >= known.size
    assert all(found.encode(text).ids == known.encode(text).ids for text in OLD)
    assert len(found.encode(NEW[0]).ids) < len(known.encode(NEW[0]).ids) / 2


def test_nothing_is_added_where_there_is_nothing_to_merge() -> None:
    known = learn(OLD, 290)
    for texts in ([], ["x"], ["once"]):
        assert extend(known, counted(texts), 5).sha256 == known.sha256

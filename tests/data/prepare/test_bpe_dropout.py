"""BPE-dropout over shards: a pure function of (seed, epoch, sentence, word), each sentence still its text."""

from pathlib import Path

import numpy as np
import pytest

from regard.data.prepare import bpe_dropout
from regard.data.prepare.bpe_dropout import SegmentationSampler, SegmentedShards, Segmenter, WordTable, hash_positions
from regard.data.prepare.shards import Shards, SideWriter
from regard.text.tokenizers.tokenizer import Tokenizer, learn

TEXTS = ["the lowest newest widest house", "the house", "wide new low houses 123", "x"] * 5


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return learn(TEXTS, 340)


def side_of(folder: Path, tokenizer: Tokenizer, max_tokens: int = 100, seed: int = 1) -> SegmentedShards:
    table = WordTable(tokenizer, Segmenter(tokenizer, 0.4, seed), 16)
    writer = SideWriter(folder, "train.source", 1 << 32)
    coded = [table.words(text) for text in TEXTS]
    assert [count for _, count in coded] == [len(ids) + 1 for ids in tokenizer.ids_batch(TEXTS)]
    writer.add([numbers for numbers, _ in coded])
    entry, _ = writer.close()
    rows, _ = table.write(folder, "train.source")
    return SegmentedShards.load(folder, Shards(folder, entry), rows, seed, max_tokens)


def parts(side: SegmentedShards, epoch: int, chosen: list[int]) -> list[list[int]]:
    ids_T, lengths_B = side.gather(epoch, np.array(chosen))
    assert lengths_B.tolist() == side.lengths(epoch, np.array(chosen)).tolist()
    return [part.tolist() for part in np.split(ids_T, lengths_B.cumsum()[:-1])]


def test_each_sentence_keeps_its_text_and_ends(tmp_path: Path, tokenizer: Tokenizer) -> None:
    side = side_of(tmp_path, tokenizer)
    for epoch in range(4):
        for number, ids in enumerate(parts(side, epoch, list(range(len(TEXTS))))):
            assert ids[-1] == tokenizer.end
            assert tokenizer.decode(ids) == TEXTS[number]


def test_a_draw_depends_on_epoch_sentence_and_word_not_on_company(tmp_path: Path, tokenizer: Tokenizer) -> None:
    side = side_of(tmp_path, tokenizer)
    whole = parts(side, 2, list(range(len(TEXTS))))
    assert [parts(side, 2, [number])[0] for number in range(len(TEXTS))] == whole
    assert parts(side, 2, [7, 3]) == [whole[7], whole[3]]
    assert parts(side, 3, list(range(len(TEXTS)))) != whole
    assert len({tuple(whole[number]) for number in range(0, len(TEXTS), 4)}) > 1


def test_a_sentence_that_would_grow_too_long_keeps_its_plain_segmentation(tmp_path: Path, tokenizer: Tokenizer) -> None:
    plain = [[*ids.tolist(), 0] for ids in tokenizer.ids_batch(TEXTS)]
    limit = max(map(len, plain))
    side = side_of(tmp_path, tokenizer, max_tokens=limit)
    found = [parts(side, epoch, list(range(len(TEXTS)))) for epoch in range(8)]
    assert max(len(ids) for epoch in found for ids in epoch) <= limit
    longest = [number for number, ids in enumerate(plain) if len(ids) == limit]
    assert all(epoch[number] == plain[number] for epoch in found for number in longest if len(epoch[number]) == limit)


def test_the_tokens_and_the_longest_are_those_of_what_is_drawn(tmp_path: Path, tokenizer, monkeypatch) -> None:
    monkeypatch.setattr(bpe_dropout, "PART", 7)
    side = side_of(tmp_path, tokenizer, max_tokens=12)
    found = [[len(ids) for ids in parts(side, epoch, list(range(len(TEXTS))))] for epoch in range(8)]
    assert side.tokens == sum(found[0]) > sum(len(ids) + 1 for ids in tokenizer.ids_batch(TEXTS))
    assert max(map(max, found)) <= side.longest == 12


def test_a_word_of_a_million_letters_is_not_drawn(tokenizer: Tokenizer, monkeypatch) -> None:
    word = "lowest" * 2
    assert len({tuple(ids) for ids in Segmenter(tokenizer, 0.4, 1).sample(word, 16)}) > 1
    monkeypatch.setattr(bpe_dropout, "LONGEST", len(word) - 1)
    segmenter = Segmenter(tokenizer, 0.4, 1)
    assert segmenter.sample(word, 16) == [tokenizer.encode(word).ids] * 16
    assert SegmentationSampler(tokenizer, segmenter, 16).of(tuple(tokenizer.encode(word).ids)) == [
        tokenizer.encode(word).ids
    ]


def test_the_hash_is_even() -> None:
    places = np.tile(np.arange(10), 4000)
    counts = np.bincount(hash_positions(5, np.repeat(np.arange(4000), 10), places) % 16, minlength=16)
    assert np.abs(counts - 2500).max() < 5 * np.sqrt(2500)

"""Texts whose words are segmented anew: every epoch says the same text, symbols stay, and nothing is saved."""

import numpy as np

from regard.data.prepare.bpe_dropout import Ragged, SegmentationSampler, SegmentedShards, Segmenter, segment_texts
from regard.text.tokenizers.tokenizer import learn

TEXTS = ["the lowest newest widest rivers", "lower rivers, newer bridges", "the the the", "wide"]
TOKENIZER = learn([text for text in TEXTS for _ in range(4)], 330, symbols=("[CLS]", "[MASK]"))


def segments(dropout: float, seed: int = 1) -> SegmentedShards:
    framed = [np.array([*TOKENIZER.begin, *ids, TOKENIZER.end]) for ids in TOKENIZER.ids_batch(TEXTS)]
    draws = SegmentationSampler(TOKENIZER, Segmenter(TOKENIZER, dropout, seed), 8)
    return segment_texts(Ragged(framed), draws, seed, 64)


def rows(side: SegmentedShards, epoch: int) -> list[list[int]]:
    ids, lengths = side.gather(epoch, np.arange(side.count))
    return [part.tolist() for part in np.split(ids, lengths.cumsum()[:-1])]


def test_every_epoch_says_the_same_text_in_other_pieces() -> None:
    side, again = segments(0.5), segments(0.5)
    epochs = [rows(side, epoch) for epoch in range(6)]
    assert epochs == [rows(again, epoch) for epoch in range(6)]
    assert len({str(epoch) for epoch in epochs}) > 1
    for epoch in epochs:
        assert TOKENIZER.decode_batch(epoch) == TEXTS
        assert all(row[0] == TOKENIZER.begin[0] and row[-1] == TOKENIZER.end for row in epoch)


def test_without_dropout_nothing_changes() -> None:
    plain = [[*TOKENIZER.begin, *ids.tolist(), TOKENIZER.end] for ids in TOKENIZER.ids_batch(TEXTS)]
    assert rows(segments(0.0), 3) == plain

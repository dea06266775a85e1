"""Windows with spans missing as batches of pairs: both sides fit as planned, and a batch is its position's alone."""

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from regard.config import Masking, Recipe
from regard.data.batches.batch import PairBatch
from regard.data.batches.document_windows import Windows
from regard.data.batches.language_modelling import SpanCorruptionExamples, SpanSymbols
from regard.data.prepare.shards import Shards, SideWriter

SENTINELS = tuple(range(2, 12))
SYMBOLS = SpanSymbols(SENTINELS, 0, 1000)
RECIPE = Recipe(seed=3)


def missing(folder: Path, seed: int | None = 1, tokens: int = 64) -> SpanCorruptionExamples:
    writer = SideWriter(folder, "text", 1000)
    for length, first in ((70, 100), (1, 170), (33, 171), (2, 204)):
        writer.add([np.arange(first, first + length)])
    shards = Shards(folder, writer.close()[0])
    return SpanCorruptionExamples(Windows(shards, 16, seed), tokens, SYMBOLS, Masking(share=0.3))


def texts(batch: PairBatch) -> list[list[int]]:
    """Each pair's text, put together again."""
    found = []
    for b in range(batch.source.count):
        source = batch.source.ids_T[batch.source.starts_B[b] :][: batch.source.lengths_B[b]].tolist()
        target = batch.labels_T[batch.target.starts_B[b] :][: batch.target.lengths_B[b]].tolist()
        read = batch.target.ids_T[batch.target.starts_B[b] :][: batch.target.lengths_B[b]].tolist()
        assert read == [SYMBOLS.start, *target[:-1]]
        assert source.pop() == target.pop() == 0
        spans: dict[int, list[int]] = {}
        for id in target:
            if id in SENTINELS:
                spans[id] = []
            else:
                spans[max(spans)].append(id)
        text: list[int] = []
        for id in source:
            text += spans[id] if id in SENTINELS else [id]
        found.append(text)
    return found


@pytest.mark.parametrize("number", range(3))
def test_an_epoch_holds_every_token_once(tmp_path: Path, number: int) -> None:
    spans, said = missing(tmp_path), []
    feed = spans.feed(RECIPE, "data")
    for batch, after in feed.iterate():
        if after.epoch > number:
            break
        if after.epoch < number or (after.epoch == number and after.block == after.batch == 0 and number):
            continue
        said += [id for text in texts(batch) for id in text]
        assert len(batch.source.ids_T) == spans.capacity.source == 64
        assert len(batch.labels_T) == spans.capacity.target
    assert len(set(said)) == len(said)
    assert set(said) <= set(range(100, 206))
    assert len(said) > 60


def test_a_batch_is_a_pure_function_of_its_position(tmp_path: Path) -> None:
    feed = missing(tmp_path).feed(RECIPE, "data")
    first = list(islice(feed.iterate(), 8))
    for place in (2, 5):
        again, _ = next(feed.iterate(first[place - 1][1]))
        assert np.array_equal(again.source.ids_T, first[place][0].source.ids_T)
        assert np.array_equal(again.labels_T, first[place][0].labels_T)


def test_validation_is_the_same_at_every_size_of_batch(tmp_path: Path) -> None:
    found = []
    for tokens in (32, 64, 256):
        batches = missing(tmp_path, None, tokens).some(5, 1 << 20)
        labels = np.concatenate([batch.labels_T[: batch.tokens] for batch in batches])
        found.append((labels.tolist(), [id for batch in batches for text in texts(batch) for id in text]))
    assert found[0] == found[1] == found[2]
    assert sorted(found[0][1]) == list(range(100, 206))


def test_of_much_validation_text_some_is_read(tmp_path: Path) -> None:
    batches = missing(tmp_path, None).some(5, 40)
    assert 20 <= sum(len(text) for batch in batches for text in texts(batch)) <= 60

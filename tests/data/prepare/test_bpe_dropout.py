"""BPE-dropout: without it the library's pieces; over shards a pure function of (seed, epoch, sentence, word).

Every epoch says the same text, symbols stay, and each mark stays with its word.
"""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from regard.data.batches.batch import pack_sources
from regard.data.batches.texts import WordMarks
from regard.data.prepare import bpe_dropout as module
from regard.data.prepare.bpe_dropout import Ragged, SegmentedShards, Segmenter, WordTable
from regard.data.prepare.shards import Shards, SideWriter
from regard.data.prepare.windowing import Frame, TagEncoder
from regard.text.tags import TaggedWords, places_of
from regard.text.tokenizers.tokenizer import Tokenizer, learn

TEXTS = ["the lowest newest widest house", "the house", "wide new low houses 123", "x"] * 5
WORDS = ["lower lowest newer newest wider widest low new wide", "Straße Straßen überqueren überquert 東京 東京都"] * 4
FRAMED = ["The walking fox wasn't talking, walked and talked.", "Talking foxes, walking foxes — ünder way!", "x"]
EVERY = list(range(len(TEXTS)))
CODED = tuple[list[np.ndarray], list[np.ndarray]]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return learn(TEXTS, 340)


@pytest.fixture(scope="module")
def framing() -> Tokenizer:
    return learn(FRAMED * 5, 320, symbols=("[CLS]", "[MASK]"))


def test_without_dropout_it_equals_the_library() -> None:
    tokenizer = learn(WORDS, 330)
    segmenter, none = Segmenter(tokenizer, 0.5, 1, 2), Segmenter(tokenizer, 0.0, 1, 2)
    for text in [*WORDS, "unseen words, 123 naïve!", "aaaaabbbbb" * 9]:
        words = tokenizer.words(text)
        assert [id for word in words for id in segmenter.plain(word)] == tokenizer.encode(text).ids
        assert all(none.sample(word) == [segmenter.plain(word)] * 2 for word in words)


def test_draws_spell_the_word_and_depend_on_seed_and_word_only() -> None:
    tokenizer = learn(WORDS, 330)
    words = [word for text in WORDS for word in tokenizer.words(text)]
    drawn, again, other = ({} for _ in range(3))
    for found, seed, order in ((drawn, 1, words), (again, 1, words[::-1]), (other, 2, words)):
        found |= {word: Segmenter(tokenizer, 0.3, seed, 16).sample(word) for word in order}
    assert all("".join(tokenizer.names[id] for id in ids) == word for word in words for ids in drawn[word])
    assert drawn == again != other


def test_a_merge_is_left_out_as_often_as_said_and_has_another_chance_after_the_next() -> None:
    """Merges ab, then cd. Each of "abcd" is undone with p, but one left out is tried again after the other."""
    tokenizer, p = learn(["ab"] * 9 + ["cd"] * 5, 300), 0.4
    assert [left + right for left, right in tokenizer.merges] == ["ab", "cd"]
    # ab is done (1 - p), or cd alone p(1 - p), or none p²; after one is done, the other is drawn.
    exact = {2: (1 - p) * (1 - p) + p * (1 - p) * (1 - p), 3: (1 - p) * p + p * (1 - p) * p, 4: p * p}
    for word, shares in (("ab", {1: 1 - p, 2: p}), ("abcd", exact)):
        draws = Counter(len(ids) for ids in Segmenter(tokenizer, p, 5, 8000).sample(word))
        assert all(abs(draws[pieces] / 8000 - share) < 0.025 for pieces, share in shares.items())


def side_of(folder: Path, tokenizer: Tokenizer, max_tokens: int = 100) -> SegmentedShards:
    table = WordTable(Segmenter(tokenizer, 0.4, 1, 16))
    writer = SideWriter(folder, "train.source", 1 << 32)
    coded = [table.words(text) for text in TEXTS]
    assert [count for _, count in coded] == [len(ids) + 1 for ids in tokenizer.ids_batch(TEXTS)]
    writer.add([numbers for numbers, _ in coded])
    entry, _ = writer.close()
    rows, _ = table.write(folder, "train.source")
    return SegmentedShards.load(folder, Shards(folder, entry), rows, 1, max_tokens)


def parts(side, epoch: int, chosen: list[int] | None = None) -> list[list[int]]:
    places_B = np.arange(side.count) if chosen is None else np.array(chosen)
    ids_T, lengths_B = side.gather(epoch, places_B)
    assert lengths_B.tolist() == side.lengths(epoch, places_B).tolist()
    return [part.tolist() for part in np.split(ids_T, lengths_B.cumsum()[:-1])]


def test_a_draw_keeps_the_text_and_depends_on_epoch_sentence_and_word_not_on_company(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    side = side_of(tmp_path, tokenizer)
    whole, *others = (parts(side, epoch) for epoch in (2, 3, 4, 5))
    for found in (whole, *others):
        assert tokenizer.decode_batch(found) == TEXTS
        assert {ids[-1] for ids in found} == {tokenizer.end}
    assert [parts(side, 2, [number])[0] for number in EVERY] == whole != others[0]
    assert parts(side, 2, [7, 3]) == [whole[7], whole[3]]
    assert len({tuple(whole[number]) for number in range(0, len(TEXTS), 4)}) > 1


def test_a_sentence_that_would_grow_too_long_keeps_its_plain_segmentation(tmp_path: Path, tokenizer: Tokenizer) -> None:
    plain = [[*ids.tolist(), 0] for ids in tokenizer.ids_batch(TEXTS)]
    limit = max(map(len, plain))
    side = side_of(tmp_path, tokenizer, max_tokens=limit)
    found = [parts(side, epoch) for epoch in range(8)]
    assert max(len(ids) for epoch in found for ids in epoch) <= limit
    longest = [number for number, ids in enumerate(plain) if len(ids) == limit]
    assert all(epoch[number] == plain[number] for epoch in found for number in longest if len(epoch[number]) == limit)


def test_the_tokens_and_the_longest_are_those_of_what_is_drawn(tmp_path: Path, tokenizer, monkeypatch) -> None:
    monkeypatch.setattr(module, "PART", 7)
    side = side_of(tmp_path, tokenizer, max_tokens=12)
    found = [[len(ids) for ids in parts(side, epoch)] for epoch in range(8)]
    assert side.tokens == sum(found[0]) > sum(len(ids) + 1 for ids in tokenizer.ids_batch(TEXTS))
    assert max(map(max, found)) <= side.longest == 12


def test_a_word_of_a_million_letters_is_not_drawn(tokenizer: Tokenizer, monkeypatch) -> None:
    word, segmenter = "lowest" * 2, Segmenter(tokenizer, 0.4, 1, 16)
    assert len({tuple(ids) for ids in segmenter.sample(word)}) > 1
    monkeypatch.setattr(module, "LONGEST", len(word) - 1)
    plain = tokenizer.encode(word).ids
    assert segmenter.sample(word) == [plain] * 16
    assert segmenter.of_pieces(tuple(plain)) == [plain]


def test_the_hash_is_even() -> None:
    places = np.tile(np.arange(10), 4000)
    counts = np.bincount(module.hash_positions(5, np.repeat(np.arange(4000), 10), places) % 16, minlength=16)
    assert np.abs(counts - 2500).max() < 5 * np.sqrt(2500)


def test_every_epoch_says_the_same_text_in_other_pieces(framing: Tokenizer) -> None:
    plain = [[*framing.begin, *ids.tolist(), framing.end] for ids in framing.ids_batch(FRAMED)]
    for dropout in (0.5, 0.0):
        segmenter = Segmenter(framing, dropout, 1, 8)
        side, again = (module.segment_texts(Ragged(plain), segmenter, 64) for _ in range(2))
        epochs = [parts(side, epoch) for epoch in range(6)]
        assert epochs == [parts(again, epoch) for epoch in range(6)]
        assert (epochs == [plain] * 6) == (len({str(epoch) for epoch in epochs}) == 1) == (dropout == 0.0)
        for epoch in epochs:
            assert framing.decode_batch(epoch) == FRAMED
            assert all(row[0] == framing.begin[0] and row[-1] == framing.end for row in epoch)


@pytest.fixture(scope="module")
def encoded(framing: Tokenizer) -> CODED:
    coding = TagEncoder(framing, Frame.of(framing, 30, 4), "none", [str(number) for number in range(30)])
    words = [TaggedWords(text, tuple(places_of(text))) for text in [*FRAMED, " ".join(FRAMED)]]
    words = [TaggedWords(one.text, one.places, tuple(map(str, range(len(one.places))))) for one in words]
    windows = [window for one in coding.encode(words, "train") for window in one]
    return [ids for ids, _ in windows], [marks for _, marks in windows]


def tagged(framing: Tokenizer, encoded: CODED, dropout: float = 0.3, max_tokens: int = 60, seed: int = 1):
    segmenter = Segmenter(framing, dropout, seed, 8)
    return module.segment_tagged(Ragged(encoded[0]), Ragged(encoded[1]), segmenter, max_tokens)


def words_of(ids: list[int], marks: list[int], tokenizer: Tokenizer) -> list[tuple[str, int]]:
    found = WordMarks.of(pack_sources([np.array(ids)]), np.array(marks))
    spans = zip(found.starts_R, found.starts_R + found.lengths_R, strict=True)
    return list(zip((tokenizer.decode(ids[begin:end]) for begin, end in spans), found.tags_R.tolist(), strict=True))


def test_text_words_and_marks_stay(framing: Tokenizer, encoded: CODED) -> None:
    text, text_marks = tagged(framing, encoded)
    assert text.count == text_marks.count == len(encoded[0])
    plain, signs = ([row.tolist() for row in side] for side in encoded)
    differ = 0
    for epoch in range(4):
        rows = zip(parts(text, epoch), parts(text_marks, epoch), plain, signs, strict=True)
        for ids, marks, before, marks_before in rows:
            assert framing.decode(ids) == framing.decode(before)
            assert words_of(ids, marks, framing) == words_of(before, marks_before, framing)
            assert (ids[0], ids[-1], marks[-1]) == (before[0], before[-1], marks_before[-1])
            differ += ids != before
    assert differ > len(plain)
    assert text.tokens == text_marks.tokens == sum(map(len, parts(text, 0)))


def test_tagged_epochs_are_a_function_of_the_seed_and_without_dropout_or_room_all_stays(
    framing: Tokenizer, encoded: CODED
) -> None:
    plain = [ids.tolist() for ids in encoded[0]]
    one, again, other = (tagged(framing, encoded, seed=seed)[0] for seed in (1, 1, 2))
    assert parts(one, 0) == parts(again, 0)
    assert len({str(found) for found in (parts(one, 0), parts(one, 1), parts(other, 0))}) == 3
    assert parts(tagged(framing, encoded, 0.0)[0], 3) == plain
    assert max(map(len, parts(tagged(framing, encoded, 0.99, 1)[0], 0))) <= max(map(len, plain))

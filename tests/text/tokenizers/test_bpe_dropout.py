"""Our own segmentation equals the library's without dropout, and is the method's with it."""

from collections import Counter
from pathlib import Path

import pytest

from regard.data.prepare.bpe_dropout import Segmenter
from regard.text.lines import lines
from regard.text.tokenizers.tokenizer import Tokenizer, learn

TEXTS = ["lower lowest newer newest wider widest low new wide", "Straße Straßen überqueren überquert 東京 東京都"] * 4


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return learn(TEXTS, 330)


def test_without_dropout_it_equals_the_library(tokenizer: Tokenizer) -> None:
    segmenter = Segmenter(tokenizer, 0.5, seed=1)
    for text in [*TEXTS, "unseen words, 123 naïve!", "aaaaabbbbb" * 9]:
        assert [id for word in tokenizer.words(text) for id in segmenter.plain(word)] == tokenizer.encode(text).ids
        none = Segmenter(tokenizer, 0.0, seed=1)
        assert all(none.sample(word, 2) == [segmenter.plain(word)] * 2 for word in tokenizer.words(text))


def test_without_dropout_it_equals_the_library_on_real_words(data_folder: Path) -> None:
    texts = [text for name in ("val.en.gz", "val.de.gz") for text in lines(data_folder / "multi30k" / name)]
    tokenizer = learn(texts, 4000)
    segmenter = Segmenter(tokenizer, 0.1, seed=1)
    for text, ids in zip(texts, tokenizer.ids_batch(texts), strict=True):
        assert [id for word in tokenizer.words(text) for id in segmenter.plain(word)] == ids.tolist()


def test_draws_spell_the_word_and_depend_on_seed_and_word_only(tokenizer: Tokenizer) -> None:
    words = [word for text in TEXTS for word in tokenizer.words(text)]
    segmenter = Segmenter(tokenizer, 0.3, seed=1)
    drawn = {word: segmenter.sample(word, 16) for word in words}
    for word, draws in drawn.items():
        assert all("".join(tokenizer.names[id] for id in ids) == word for ids in draws)
    again = Segmenter(tokenizer, 0.3, seed=1)
    assert {word: again.sample(word, 16) for word in reversed(words)} == drawn
    assert {word: Segmenter(tokenizer, 0.3, seed=2).sample(word, 16) for word in words} != drawn


def test_the_first_merge_is_left_out_as_often_as_said() -> None:
    tokenizer = learn(["ab"] * 9, 300)
    assert len(tokenizer.merges) == 1
    draws = Counter(len(ids) for ids in Segmenter(tokenizer, 0.3, seed=1).sample("ab", 4000))
    assert abs(draws[2] / 4000 - 0.3) < 0.03


def test_a_merge_left_out_has_another_chance_after_the_next() -> None:
    """Merges ab, then cd. Left: each of "abcd" is undone with p, but one left out is tried again after the other."""
    tokenizer = learn(["ab"] * 9 + ["cd"] * 5, 300)
    assert [left + right for left, right in tokenizer.merges] == ["ab", "cd"]
    p = 0.4
    # ab is done (1 - p), or cd alone p(1 - p), or none p²; after one is done, the other is drawn.
    exact = {2: (1 - p) * (1 - p) + p * (1 - p) * (1 - p), 3: (1 - p) * p + p * (1 - p) * p, 4: p * p}
    draws = Counter(len(ids) for ids in Segmenter(tokenizer, p, seed=5).sample("abcd", 8000))
    for pieces, share in exact.items():
        assert abs(draws[pieces] / 8000 - share) < 0.025

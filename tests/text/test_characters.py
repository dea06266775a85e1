"""Characters as units: a piece each, lossless, in the same file as byte pairs."""

import json
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from regard.data.prepare.bpe_dropout import Segmenter
from regard.system.errors import RegardError, UsageError
from regard.text.tokenizers.byte_pieces import ALPHABET, spell
from regard.text.tokenizers.tokenizer import Tokenizer, learn
from tests.refusals import refused

TEXTS = ["the straße\nüber", "東京は大きい 😀 е́ é", "</s> [MASK]"]
ANY = st.one_of(
    st.text(max_size=60),
    st.text(st.sampled_from(list("the ß東京\n\r\0 😀é\u0301\ufeff")), max_size=40),
    st.text(st.characters(max_codepoint=0x10FFFF, exclude_categories=()), max_size=30),
)


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """Learned, written and read again."""
    path = tmp_path_factory.mktemp("characters") / "tokenizer.json"
    learn(TEXTS, 5000, "none", ["[MASK]"], units="characters").save(path)
    return Tokenizer.load(path)


def test_the_vocabulary_is_symbols_bytes_and_the_characters_seen(one: Tokenizer) -> None:
    seen = {c for text in TEXTS for c in text if not c.isascii()}
    assert one.names[:3] == ("</s>", "<unk>", "[MASK]")
    assert list(one.names[3:259]) == ALPHABET
    assert set(one.names[259:]) == {spell(c) for c in seen}
    assert (one.units, one.merges, one.size) == ("characters", (), 259 + len(seen))


@given(ANY)
def test_each_known_character_is_a_piece_and_nothing_is_lost(one: Tokenizer, text: str) -> None:
    encoding = one.encode(text)
    normal = one.normalise(text)
    assert one.decode(encoding.ids) == encoding.text == normal
    wanted = []
    for place, c in enumerate(normal):
        pieces = [spell(c)] if spell(c) in one.names[3:] else list(spell(c))
        wanted += [(one.names.index(piece, 3), (place, place + 1)) for piece in pieces]
    assert list(zip(encoding.ids, encoding.offsets, strict=True)) == wanted
    assert one.ids_batch([text])[0].tolist() == encoding.ids


@given(ANY)
def test_the_library_reads_it_the_same(one: Tokenizer, text: str) -> None:
    library = tokenizers.Tokenizer.from_str(one.content.decode())
    assert library.encode(one.normalise(text)).ids == one.encode(text).ids


def test_words_start_as_in_pieces(one: Tokenizer) -> None:
    pieces = learn(TEXTS, 400, "none")
    text = "the über-straße, ჰ 東京"
    words = np.cumsum([0, *map(len, pieces.words(text))])
    begins = np.cumsum([0, *(len(one.names[id]) for id in one.encode(text).ids)])[:-1]
    assert one.word_starts(one.encode(text).ids).tolist() == np.isin(begins, words).tolist()


def test_of_many_characters_the_most_frequent_are_taken() -> None:
    small = learn(["ääää öö üüü"], 260, units="characters")
    assert [small.piece(id) for id in range(258, small.size)] == ["ä", "ü"]
    assert small.decode(small.encode("öä").ids) == "öä"


def test_names_of_characters(one: Tokenizer) -> None:
    assert [one.piece(id) for id in one.encode("e 東\n").ids] == ["e", "▁", "東", "<0x0A>"]


def test_a_long_text_is_read_to_its_end() -> None:
    assert spell("東") in learn(["a" * 50_000 + "東"], 400, units="characters").names


def test_there_is_no_dropout_of_characters(one: Tokenizer) -> None:
    with refused(UsageError, "text.bpe_dropout"):
        Segmenter(one, 0.1, 1)


def test_half_a_file_of_characters_is_refused(one: Tokenizer, tmp_path: Path) -> None:
    document = json.loads(one.content)
    pieces = json.loads(learn(TEXTS, 400).content)
    path = tmp_path / "tokenizer.json"
    for changed in (
        {**document, "pre_tokenizer": pieces["pre_tokenizer"]},
        {**document, "model": {**document["model"], "ignore_merges": False}},
        {**document, "model": {**document["model"], "merges": [["a", "b"]]}},
        {**pieces, "pre_tokenizer": document["pre_tokenizer"]},
    ):
        path.write_text(json.dumps(changed))
        with refused(RegardError, "tokenizer.json"):
            Tokenizer.load(path)

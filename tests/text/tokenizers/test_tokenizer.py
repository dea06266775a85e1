"""The law *text*: decode(encode(x)) == normalise(x) for every string, and offsets cover what they claim."""

import itertools
import json
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from regard.data.prepare.bpe_dropout import Segmenter
from regard.system.errors import RegardError, UsageError
from regard.text.tokenizers import byte_pieces
from regard.text.tokenizers.byte_pieces import ALPHABET, LONGEST, normalise, spell
from regard.text.tokenizers.tokenizer import Tokenizer, learn
from tests.refusals import refused

LETTERS = ["the straße\nüber", "東京は大きい 😀 е́ é", "</s> [MASK]"]
TEXTS = [
    "The animal didn't cross the street because it was too tired.",
    "Das Tier überquerte die Straße nicht, weil es zu müde war.",
    "</s> <unk> </s> <unk> [MASK] </s></s>",
    "Привет, мир! 東京は大きい。 हिन्दी में नमस्ते 😀👩‍👩‍👧 café café",
] * 3
FORMS = ("none", "nfc", "nfkc")
ANY = st.one_of(
    st.text(max_size=60),
    st.text(st.characters(max_codepoint=0x10FFFF, exclude_categories=()), max_size=30),  # surrogates too
    st.text(st.sampled_from(list("</sunk> \t\n\r\0aé́🇩🇪\u200d\ufeff")), max_size=40),
)

KINDS = (*FORMS, *(f"{form} lower" for form in FORMS))


@pytest.fixture(scope="module")
def learned() -> dict[str, Tokenizer]:
    return {kind: learn(TEXTS, 400, kind.split()[0], lowercase="lower" in kind) for kind in KINDS}  # type: ignore[arg-type]


@given(ANY, st.sampled_from(KINDS))
def test_decoding_gives_the_normalised_text_and_no_text_gives_a_symbol(learned, text: str, kind: str) -> None:
    one = learned[kind]
    encoding, normal = one.encode(text), one.normalise(text)
    assert encoding.text == normal == one.normalise(normal) == one.decode(encoding.ids)
    (ids,), (ended,) = one.ids_batch([text]), one.ids_batch([text], ended=True)
    assert [*ids.tolist(), one.end] == [*encoding.ids, one.end] == ended.tolist()
    assert min(one.encode(f"</s>{text}<unk>").ids) >= 2
    assigned = all(unicodedata.category(c) not in ("Cs", "Cn") for c in text)
    if one.lowercase:
        assert not any(c.lower() != c and ord(c) < 0x2000 for c in normal)
    elif kind != "nfkc" and assigned:  # compatibility mappings grow with each version of Unicode
        assert normal == (unicodedata.normalize("NFC", text) if kind == "nfc" else text)


@given(ANY, st.sampled_from(KINDS))
def test_offsets_are_the_characters_whose_bytes_a_piece_holds(learned, text: str, kind: str) -> None:
    one = learned[kind]
    encoding = one.encode(text)
    character_of_byte = [place for place, c in enumerate(encoding.text) for _ in c.encode()]
    begin = 0
    for id, offset in zip(encoding.ids, encoding.offsets, strict=True):
        end = begin + len(one.names[id])
        assert spell(encoding.text)[begin:end] == one.names[id]
        assert offset == (character_of_byte[begin], character_of_byte[end - 1] + 1)
        begin = end
    assert begin == len(character_of_byte)


def test_text_without_marks_is_composed_already() -> None:
    for form in ("none", "nfc"):
        library = byte_pieces.FORMS[form]
        for code in range(0x300):
            pair = f"e{chr(code)}e"
            assert normalise(pair, form) == (library.normalize_str(pair) if library else pair)


@given(ANY, st.sampled_from(FORMS))
def test_words_start_where_the_splitter_cuts(learned: dict[str, Tokenizer], text: str, form: str) -> None:
    one = learned[form]
    ids = one.encode(text).ids
    first_bytes = set(itertools.accumulate((len(word) for word in one.words(text)), initial=0))
    begins = itertools.accumulate((len(one.names[id]) for id in ids), initial=0)
    assert one.word_starts(ids).tolist() == [begin in first_bytes for begin, _ in zip(begins, ids, strict=False)]


@given(st.lists(st.one_of(st.integers(0, 3), st.integers(2, 360)), max_size=30), ANY)
def test_words_of_any_ids_begin_behind_a_symbol(learned: dict[str, Tokenizer], ids: list[int], text: str) -> None:
    one = learned["nfc"]
    starts = one.word_starts(np.array(ids, np.int64)).tolist()
    for place, id in enumerate(ids):
        assert starts[place] or (place and id >= one.symbols and ids[place - 1] >= one.symbols)
    own = one.encode(text).ids
    begun = one.word_starts(own).tolist()
    assert one.word_starts([*ids, 0, *own, one.start, *own]).tolist() == [*starts, True, *begun, True, *begun]


def test_broken_bytes_are_a_strange_character_each(learned: dict[str, Tokenizer]) -> None:
    one = learned["nfc"]
    broken = one.encode("ჰ").ids[:2]
    starts = one.word_starts([*one.encode("a").ids, *broken, *one.encode("b c").ids])
    assert starts.tolist() == [True, True, False, True, True, False]


def test_hostile_strings(learned: dict[str, Tokenizer]) -> None:
    for text in ("", "\0", "\n", " ", "  a  ", "\ud83d\ude00", "\udc00x", "́́", "a" * 5000, "\ufeff", "\u2028"):
        for one in learned.values():
            assert one.decode(one.encode(text).ids) == one.normalise(text)
    assert learned["none"].normalise("\ud83d\ude00 \udc00") == "😀 \ufffd"


def test_a_space_belongs_to_the_word_behind_it_and_marks_to_their_letters(learned: dict[str, Tokenizer]) -> None:
    one = learned["nfc"]
    pieces = [one.piece(id) for id in one.encode("it was too tired").ids]
    assert "".join(pieces) == "it▁was▁too▁tired"
    assert "▁was" in pieces
    assert one.words("हिन्दी में") == [spell("हिन्दी"), spell(" में")]


def test_names_of_pieces_and_ids_that_say_nothing(learned: dict[str, Tokenizer]) -> None:
    one = learned["nfc"]
    fallen = one.encode("ჰ").ids
    names = ["</s>", "<unk>", "<s>", "<0xE1>", "<0x83>", "<0xB0>"]
    assert [one.piece(id) for id in (0, 1, one.start, *fallen)] == names
    assert all(map(one.is_byte, fallen))
    assert not any(map(one.is_byte, [0, 1, one.start, *one.encode("tired").ids]))
    assert one.decode([one.start, *one.encode("a b").ids, 1, 0]) == "a b"
    assert one.decode_batch([[0], []]) == ["", ""]
    assert one.decode(fallen[:2]) == "\ufffd"  # a model may generate broken bytes
    with refused(RegardError, "ids"):
        one.decode([one.size + 1])


def test_saved_loaded_the_same_and_read_by_the_library(learned: dict[str, Tokenizer], tmp_path: Path) -> None:
    for kind, one in learned.items():
        path = tmp_path / f"{kind}.json"
        one.save(path)
        again = Tokenizer.load(path)
        assert (again.sha256, again.names, again.merges) == (one.sha256, one.names, one.merges)
        assert (again.normalisation, again.lowercase) == (kind.split()[0], "lower" in kind)
        library = tokenizers.Tokenizer.from_file(str(path))
        for text in [*TEXTS[:4], "İ\u0323 ℌ™ ΑΣ"]:
            assert library.encode(text).ids == again.encode(text).ids == one.encode(text).ids
            assert library.decode(library.encode(text).ids) == one.normalise(text)
    assert not list(tmp_path.glob("*.partial"))


def test_the_same_texts_give_the_same_file_in_another_process(learned: dict[str, Tokenizer]) -> None:
    program = f"from regard.text.tokenizers.tokenizer import learn\nprint(learn({TEXTS!r}, 400, 'nfc').sha256)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == learned["nfc"].sha256


def test_a_small_corpus_gives_a_small_vocabulary_and_a_long_text_is_learned_from_to_its_end() -> None:
    assert learn([], 8000).size == 258
    assert 258 < learn(["a b a b"] * 2, 8000).size < 300
    assert learn(["ab" * 500_000, "the cat"], 400).size > 258  # as one word it would take hours
    one = learn(["." * LONGEST + " catalogue" * 20], 400)
    assert [one.piece(id) for id in one.encode(" catalogue").ids] == ["▁catalogue"]


def test_task_symbols_stand_behind_ours_and_are_found() -> None:
    plain = learn(TEXTS, 400)
    assert (plain.mask, plain.begin, plain.sentinels) == (None, (), ())
    one = learn(TEXTS, 400, "nfc", ["[CLS]", "[MASK]", "<extra_10>", "<extra_0>", "<extra_2>"])
    assert one.names[:4] == ("</s>", "<unk>", "[CLS]", "[MASK]")
    assert (one.begin, one.mask, one.sentinels) == ((2,), 3, (5, 6, 4))
    assert min(one.encode("[CLS][MASK]<extra_0>").ids) >= one.symbols == 7
    for texts, symbols in ((TEXTS, ["[MASK]", "[MASK]"]), (["mask mask"] * 9, ["mask"])):
        with refused(UsageError, "symbols"):
            learn(texts, 500, "nfc", symbols)
    with refused(UsageError, "text.vocabulary", "256"):
        learn(TEXTS, 257)


@pytest.mark.long(minutes=0.05)
def test_every_character_is_lower_cased_once(learned: dict[str, Tokenizer]) -> None:
    for form in FORMS:
        one = learned[f"{form} lower"]
        for code in range(0x11_0000):
            if not 0xD800 <= code < 0xE000 and (chr(code).isalpha() or chr(code) != chr(code).lower()):
                normal = one.normalise(chr(code))
                assert one.normalise(normal) == normal, (form, hex(code))
                if form == "none":
                    assert normal in (chr(code).lower(), chr(code))  # versions of Unicode differ in the newest
    assert learned["nfc lower"].normalise("Straße ÜBER İ Ω DŽ") == "straße über i̇ ω dž"


def broken_files(whole: bytes, characters: bytes) -> dict[str, bytes]:
    document, letters = json.loads(whole), json.loads(characters)
    model, splitter = document["model"], "pre_tokenizer"

    def changed(one: dict[str, Any] = document, **parts: object) -> bytes:
        return json.dumps({**one, "model": {**one["model"], **parts}}).encode()

    def beside(one: dict[str, Any] = document, **parts: object) -> bytes:
        return json.dumps({**one, **parts}).encode()

    return {
        "empty": b"",
        "cut off": whole[: len(whole) // 2],
        "not an object": b"[1, 2]",
        "binary": b"\x80\x81\x82",
        "deep": b"[" * 100_000,
        "newer": changed(format=2),
        "no merges": changed(merges=None),
        "a merge of unknown pieces": changed(merges=[["zzz", "y"], *model["merges"]]),
        "ids with a hole": changed(vocab={**model["vocab"], "</s>": 10_000}),
        "ids that are no numbers": changed(vocab={**model["vocab"], "</s>": "0"}),
        "a foreign splitter": beside(pre_tokenizer=None),
        "added tokens": beside(added_tokens=[{"id": 0, "content": "</s>"}]),
        "pieces that are no words": changed(ignore_merges=True),
        "split into characters": beside(pre_tokenizer=letters[splitter]),
        "characters split into words": beside(letters, pre_tokenizer=document[splitter]),
        "characters that are merged": changed(letters, ignore_merges=False),
        "merges of characters": changed(letters, merges=[["a", "b"]]),
        "a foreign normaliser": beside(normalizer={"type": "Lowercase"}),
    }


def test_broken_files_are_refused_with_a_sentence(learned: dict[str, Tokenizer], letters, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    learned["nfc"].save(path)
    whole = path.read_bytes()
    for name, content in broken_files(whole, letters.content).items():
        path.write_bytes(content)
        with refused(RegardError, "tokenizer.json") as caught:
            Tokenizer.load(path)
        assert caught.value.where == str(path), name
    with refused(RegardError, "absent.json"):
        Tokenizer.load(tmp_path / "absent.json")
    with path.open("wb") as stream:
        stream.truncate(65 * 1024 * 1024)
    with refused(RegardError, "tokenizer.json", "64"):
        Tokenizer.load(path)


@pytest.fixture(scope="module")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    """Of characters: learned, written and read again."""
    path = tmp_path_factory.mktemp("characters") / "letters.json"
    learn(LETTERS, 5000, "none", ["[MASK]"], units="characters").save(path)
    return Tokenizer.load(path)


def test_the_vocabulary_is_symbols_bytes_and_the_characters_seen(letters: Tokenizer) -> None:
    seen = {spell(c) for text in LETTERS for c in text if not c.isascii()}
    assert letters.names[:259] == ("</s>", "<unk>", "[MASK]", *ALPHABET)
    assert set(letters.names[259:]) == seen
    assert (letters.units, letters.merges, letters.size) == ("characters", (), 259 + len(seen))


@given(st.one_of(ANY, st.text(st.sampled_from(list("the ß東京\n\r\0 😀é\u0301\ufeff")), max_size=40)))
def test_each_known_character_is_a_piece_and_nothing_is_lost(letters: Tokenizer, text: str) -> None:
    encoding, normal = letters.encode(text), letters.normalise(text)
    assert letters.decode(encoding.ids) == encoding.text == normal
    wanted = []
    for place, c in enumerate(normal):
        pieces = [spell(c)] if spell(c) in letters.names[3:] else list(spell(c))
        wanted += [(letters.names.index(piece, 3), (place, place + 1)) for piece in pieces]
    assert list(zip(encoding.ids, encoding.offsets, strict=True)) == wanted
    assert letters.ids_batch([text])[0].tolist() == encoding.ids
    assert tokenizers.Tokenizer.from_str(letters.content.decode()).encode(normal).ids == encoding.ids


def test_words_of_characters_start_as_in_pieces(letters: Tokenizer) -> None:
    text = "the über-straße, ჰ 東京"
    ids = letters.encode(text).ids
    words = np.cumsum([0, *map(len, learn(LETTERS, 400, "none").words(text))])
    begins = np.cumsum([0, *(len(letters.names[id]) for id in ids)])[:-1]
    assert letters.word_starts(ids).tolist() == np.isin(begins, words).tolist()


def test_of_many_characters_the_most_frequent_are_taken_and_none_is_dropped(letters: Tokenizer) -> None:
    small = learn(["ääää öö üüü"], 260, units="characters")
    assert [small.piece(id) for id in range(258, small.size)] == ["ä", "ü"]
    assert small.decode(small.encode("öä").ids) == "öä"
    assert [letters.piece(id) for id in letters.encode("e 東\n").ids] == ["e", "▁", "東", "<0x0A>"]
    assert spell("東") in learn(["a" * 50_000 + "東"], 400, units="characters").names
    with refused(UsageError, "text.bpe_dropout"):
        Segmenter(letters, 0.1, 1, 1)

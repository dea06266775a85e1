"""What lies between blanks, by itself: the words, ids and vocabularies that the library makes of whole texts."""

import json
import random
import re
import sys
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, models, pre_tokenizers, trainers

from regard.text.tokenizers import byte_pieces
from regard.text.tokenizers.byte_pieces import ALPHABET, ChunkCounter, ChunkIds, Units, assemble, normalise, spell
from regard.text.tokenizers.tokenizer import Tokenizer, learn, learn_counted

AWKWARD = [
    *("", " ", "   ", " one before", "one behind ", "\0", "\u0301 \u0301\u0302", "\ud83d\ude00 \udc00"),
    "The animal didn't cross the street, because it was too tired.",
    "  blanks before, and  two   between, and behind  ",
    "\ttabs\tbetween \t them\t",
    "\x1c\x1d\x1e\x1f\x85 separators\x0b\x0c",
    "東京は大きい都市です。私は猫が好きです。「はい」と言った。",
    "全角\u3000空白 と blanks、混ぜる",
    "no\u00a0break\u00a0spaces \u00a0 and \u2009thin\u2003em\u2028line\u2029paragraph\u202f",
    "zero\u200bwidth \u200b \u180e\ufeff joined\u200d",
    "cafe\u0301 cafe\u0301 \u0301begins with a mark",
    "\u00e4\u00c4\u00df \u00ff \u0130I\u0131 \u01c5 \u03a3\u03c3\u03c2 \ufb01n \u00bd \u00a8 \u2460 \uff21",
    "हिन्दी में नमस्ते दुनिया",
    "😀 👩‍👩‍👧 🇩🇪🇫🇷 😀😀 👍🏽",
    "1 22 333 3.14 1,000,000 x2 2x ٣٤ Ⅷ ½",
    "don't I'll we've 'tis 's ' 'd''m",
    "</s> <unk> [MASK] </s></s>",
    "nul\0inside \0 and \0\0",
    "a\nb\r\nc \n d",
    "\nlines\nof\n words\n\nand  \n\n paragraphs \n  \nhere\n",
    " = A title = \n \n Some text , as it is . \n",
    "long" * 900 + " " + "x" * 3000,
]
SETTINGS = [("nfc", "pieces", False), ("nfc", "pieces", True), ("none", "pieces", False), ("nfkc", "pieces", True)]
SETTINGS += [("nfc", "characters", False), ("nfkc", "characters", True)]
BLANK = st.sampled_from([" ", " ", " ", "  ", "\n", "\n\n", " \n ", "\t", "\u00a0", "\u3000", "\n", "\0", ""])
TEXT = st.lists(st.tuples(BLANK, st.sampled_from([word for text in AWKWARD for word in text.split()] or [""])))
ANY = st.one_of(
    TEXT.map(lambda words: "".join(part for pair in words for part in pair)),
    st.text(max_size=40),
    st.sampled_from(AWKWARD),
)


def library_words(text: str) -> list[str]:
    """The words of a normalised text as the library splits it whole, in byte letters."""
    return [word for word, _ in assemble(models.BPE(), None).pre_tokenizer.pre_tokenize_str(text)]


def library_vocabulary(texts: Sequence[str], size: int, form: str, units: Units, lowercase: bool) -> Tokenizer:
    """What the library learns from whole texts; of characters, what counting them one by one gives."""
    normal = [normalise(text, form, lowercase) for text in texts]  # type: ignore[arg-type]
    if units == "characters":
        counts = Counter(character for text in normal for character in text if len(character.encode()) > 1)
        seen = sorted(counts, key=lambda character: (-counts[character], character))[: size - 258]
        return Tokenizer(["</s>", "<unk>", *ALPHABET, *map(spell, seen)], [], form, units, lowercase)  # type: ignore[arg-type]
    core = assemble(models.BPE(), None)
    trainer = trainers.BpeTrainer(vocab_size=size - 2, min_frequency=2, initial_alphabet=ALPHABET, show_progress=False)
    core.train_from_iterator(normal, trainer)
    model = json.loads(core.to_str())["model"]
    names = sorted(model["vocab"], key=model["vocab"].__getitem__)
    merges = [(left, right) for left, right in model["merges"]]
    return Tokenizer(["</s>", "<unk>", *names], merges, form, units, lowercase)  # type: ignore[arg-type]


def library_ids(one: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """The ids of each text, encoded whole."""
    core = assemble(one._model(), None, one.units)
    return [core.encode(one.normalise(text), add_special_tokens=False).ids for text in texts]


def corpus(seed: int, lines: int = 400) -> list[str]:
    """Awkward texts, and words of them in other orders and between other white space."""
    draw = random.Random(seed)
    words = [word for text in AWKWARD for word in text.split() if len(word) < 40]
    blanks = [" "] * 30 + ["\n"] * 5 + ["\n\n", "\n ", " \n", "  ", "\t", "\u00a0", "\u3000", " \0"]
    made = ["".join(draw.choice(words) + draw.choice(blanks) for _ in range(draw.randrange(9))) for _ in range(lines)]
    return made + [text.strip() for text in made] + AWKWARD


@pytest.fixture(scope="module")
def learned() -> dict[tuple[str, str, bool], Tokenizer]:
    return {setting: learn(corpus(1), 500, setting[0], units=setting[1], lowercase=setting[2]) for setting in SETTINGS}  # type: ignore[arg-type, misc]


@pytest.mark.parametrize("last", [0xFFFF, pytest.param(sys.maxunicode, marks=pytest.mark.long(0.1))])
def test_white_space_is_what_the_library_takes_for_it(last: int) -> None:
    every = "".join(chr(code) for code in range(last + 1) if not 0xD800 <= code < 0xE000)
    splitter = pre_tokenizers.Split(Regex(r"\s"), "removed")
    white = set(every) - set("".join(part for part, _ in splitter.pre_tokenize_str(every)))
    assert white == set(re.findall(f"[{byte_pieces.WHITE}]", every))
    assert all(map(str.isspace, white))  # of a text that splits at blanks only, there is no other


@given(st.lists(ANY, max_size=6), st.sampled_from(["none", "nfc", "nfkc"]), st.booleans())
def test_chunks_put_together_are_the_normalised_texts(texts: list[str], form: str, lowercase: bool) -> None:
    normal = [normalise(text, form, lowercase) for text in texts]  # type: ignore[arg-type]
    found = byte_pieces.cut_chunks(texts, lambda text: normalise(text, form, lowercase))  # type: ignore[arg-type]
    assert sum(chunk.startswith(byte_pieces.FIRST) for chunk in found) == len(texts)
    assert "".join(map(byte_pieces.chunk_text, found)) == "".join(normal)
    for text in normal:  # each its own, whatever stands around it
        alone = byte_pieces.cut_chunks([text], str)
        assert [alone[0][:1], *(chunk[:1] == byte_pieces.FIRST for chunk in alone[1:])] == [byte_pieces.FIRST] + [
            False
        ] * (len(alone) - 1)
        assert "".join(map(byte_pieces.chunk_text, alone)) == text


LATIN = st.text(st.sampled_from(list(" '\"-_09aZsdévmÿÀʯ×÷¡ªµ\u02b0\u0300\t")), max_size=30)


@given(st.lists(st.one_of(ANY, LATIN), max_size=6))
def test_words_of_counted_chunks_are_those_of_the_texts(texts: list[str]) -> None:
    counter = ChunkCounter("nfc")
    counter.add(texts)
    assert counter.counts() == Counter(word for text in texts for word in library_words(normalise(text, "nfc")))


@given(st.lists(ANY, max_size=6), st.sampled_from(SETTINGS))
def test_ids_are_those_of_whole_texts(learned, texts: list[str], setting: tuple[str, str, bool]) -> None:
    one = learned[setting]
    ids_T, lengths_B = one.flat_ids(texts)
    wanted = library_ids(one, texts)
    assert lengths_B.tolist() == [len(ids) for ids in wanted]
    assert ids_T.tolist() == [id for ids in wanted for id in ids]
    ended_T, ended_B = one.flat_ids(texts, ended=True)
    assert ended_B.tolist() == [len(ids) + 1 for ids in wanted]
    assert ended_T.tolist() == [id for ids in wanted for id in [*ids, one.end]]


@pytest.mark.one_of(2)
@pytest.mark.parametrize("setting", SETTINGS)
def test_awkward_texts_all_at_once_and_one_by_one(learned, setting: tuple[str, str, bool]) -> None:
    one, texts = learned[setting], corpus(2)
    wanted = library_ids(one, texts)
    assert [ids.tolist() for ids in one.ids_batch(texts)] == wanted
    assert [one.ids_batch([text])[0].tolist() for text in texts] == wanted


@pytest.mark.one_of(3)
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("size", [300, 700])
def test_the_vocabulary_of_counted_words_is_that_of_the_texts(setting: tuple[str, Units, bool], size: int) -> None:
    form, units, lowercase = setting
    texts = corpus(3)
    wanted = library_vocabulary(texts, size, form, units, lowercase).content
    assert learn(texts, size, form, units=units, lowercase=lowercase).content == wanted  # type: ignore[arg-type]
    whole = ChunkCounter(form, units, lowercase)  # type: ignore[arg-type]
    for begin in range(3):  # as three processes count them
        part = ChunkCounter(form, units, lowercase)  # type: ignore[arg-type]
        part.add(texts[begin::3])
        whole.merge(part.content)
    assert learn_counted(whole, size).content == wanted


def test_a_long_text_is_counted_in_parts_and_words_are_repeated_as_often_as_they_were(monkeypatch) -> None:
    monkeypatch.setattr(byte_pieces, "LONGEST", 7)
    monkeypatch.setattr(byte_pieces, "FED", 20)
    counter = ChunkCounter("nfc")
    counter.add(["short", "abcdefghij klmnop", ""])
    wanted = Counter(word for part in ("short", "abcdefg", "hij klm", "nop") for word in library_words(part))
    assert counter.counts() == wanted
    counts = {"ab": 3, "x": 9, "abcdef": 50, "y" * 30: 2, "cd": 1}
    fed = list(byte_pieces.repeat_words(counts))
    assert Counter(" ".join(fed).split()) == {word: count for word, count in counts.items() if len(word) > 1}
    assert max(map(len, fed)) <= 20 + len("y" * 30)
    assert list(byte_pieces.repeat_words({})) == list(byte_pieces.repeat_words({"x": 2})) == []
    chunks = {"\0it's": 2, "it's": 3, "\nit's": 1}  # one is split as it stands in its text
    assert byte_pieces.count_words(chunks) == {"it": 3, "'s": 6, "Ġit": 3, "Ċ": 1}


class Spelled:
    """Ids of texts that are their bytes; notes what it is asked for, and breaks off where it is told to."""

    def __init__(self) -> None:
        self.asked, self.fails = list[str](), False

    def __call__(self, texts: list[str]) -> list[list[int]]:
        if self.fails and texts:
            raise KeyboardInterrupt
        self.asked += texts
        return [list(text.encode()) for text in texts]


def test_a_chunk_is_encoded_once_until_too_many_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    encode = Spelled()
    ids = ChunkIds(encode, [1] * 256)
    wanted = (list(b"ab cdab"), [5, 2])
    for _ in range(2):
        found_T, lengths_B = ids.find(["\0ab", "cd", "\0ab"])
        assert (found_T.tolist(), lengths_B.tolist()) == wanted
    assert sorted(encode.asked) == ["ab\n cd"]
    monkeypatch.setattr(byte_pieces, "MOST", 1)
    assert ids.find(["\0ab"])[0].tolist() == list(b"ab")
    assert encode.asked[1:] == ["ab"]
    assert [array.tolist() for array in ids.find([])] == [[], []]


def test_frequent_chunks_are_encoded_before_they_are_met(monkeypatch: pytest.MonkeyPatch) -> None:
    encode = Spelled()
    monkeypatch.setattr(byte_pieces, "MOST", 4)
    counts = {"rare": 1, "some": byte_pieces.OFTEN, "most": 90, "more": 80, "x" * 99: 99}
    ChunkIds(encode, [1] * 256).remember(counts)
    assert encode.asked == [" most\n more"]


def test_an_encoding_that_fails_leaves_nothing_half_known() -> None:
    encode = Spelled()
    encode.fails, ids = True, ChunkIds(encode, [1] * 256)
    with pytest.raises(KeyboardInterrupt):
        ids.find(["\0ab", "cd"])
    encode.fails = False
    assert ids.find(["\0cd", "ab", "\0ab"])[0].tolist() == list(b"cd abab")
    assert isinstance(ids.find(["\0"])[0], np.ndarray)

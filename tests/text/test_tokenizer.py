"""The law *text*: decode(encode(x)) == normalise(x) for every string, and offsets cover what they claim."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import unicodedata
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import RegardError, UsageError
from regard.text.pieces import spell
from regard.text.tokenizer import Tokenizer, learn

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


@pytest.fixture(scope="module")
def learned() -> dict[str, Tokenizer]:
    return {form: learn(TEXTS, 400, form) for form in FORMS}  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mutated")


@given(ANY, st.sampled_from(FORMS))
def test_decoding_gives_the_normalised_text(learned: dict[str, Tokenizer], text: str, form: str) -> None:
    one = learned[form]
    encoding = one.encode(text)
    assert encoding.text == one.normalise(text)
    assert one.decode(encoding.ids) == one.normalise(text)
    assert one.ids_batch([text])[0].tolist() == encoding.ids


@given(ANY, st.sampled_from(FORMS))
def test_normalising_is_unicode_and_is_done_once(learned: dict[str, Tokenizer], text: str, form: str) -> None:
    one = learned[form]
    normal = one.normalise(text)
    assert one.normalise(normal) == normal
    assigned = all(unicodedata.category(c) not in ("Cs", "Cn") for c in text)
    if form != "nfkc" and assigned:  # compatibility mappings grow with each version of Unicode
        assert normal == (unicodedata.normalize("NFC", text) if form == "nfc" else text)


@given(ANY, st.sampled_from(FORMS))
def test_no_text_gives_a_symbol(learned: dict[str, Tokenizer], text: str, form: str) -> None:
    assert min(learned[form].encode(f"</s>{text}<unk>").ids) >= 2


@given(ANY, st.sampled_from(FORMS))
def test_offsets_are_the_characters_whose_bytes_a_piece_holds(
    learned: dict[str, Tokenizer], text: str, form: str
) -> None:
    one = learned[form]
    encoding = one.encode(text)
    character_of_byte = [place for place, c in enumerate(encoding.text) for _ in c.encode()]
    begin = 0
    for id, offset in zip(encoding.ids, encoding.offsets, strict=True):
        end = begin + len(one.names[id])
        assert spell(encoding.text)[begin:end] == one.names[id]
        assert offset == (character_of_byte[begin], character_of_byte[end - 1] + 1)
        begin = end
    assert begin == len(character_of_byte)


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


def test_names_of_pieces(learned: dict[str, Tokenizer]) -> None:
    one = learned["nfc"]
    assert [one.piece(id) for id in (0, 1, one.start)] == ["</s>", "<unk>", "<s>"]
    fallen = one.encode("ჰ").ids
    assert [one.piece(id) for id in fallen] == ["<0xE1>", "<0x83>", "<0xB0>"]
    assert all(map(one.is_byte, fallen))
    assert not any(map(one.is_byte, [0, 1, one.start, *one.encode("tired").ids]))


def test_symbols_say_nothing_and_unknown_ids_are_refused(learned: dict[str, Tokenizer]) -> None:
    one = learned["nfc"]
    assert one.decode([one.start, *one.encode("a b").ids, 1, 0]) == "a b"
    assert one.decode_batch([[0], []]) == ["", ""]
    with pytest.raises(RegardError, match="vocabulary"):
        one.decode([one.size + 1])


def test_a_model_may_generate_broken_bytes(learned: dict[str, Tokenizer]) -> None:
    one = learned["nfc"]
    assert one.decode(one.encode("ჰ").ids[:2]) == "\ufffd"


def test_saved_loaded_the_same_and_read_by_the_library(learned: dict[str, Tokenizer], tmp_path: Path) -> None:
    for form, one in learned.items():
        path = tmp_path / f"{form}.json"
        one.save(path)
        again = Tokenizer.load(path)
        assert (again.sha256, again.names, again.merges) == (one.sha256, one.names, one.merges)
        library = tokenizers.Tokenizer.from_file(str(path))
        for text in TEXTS:
            assert library.encode(text).ids == one.encode(text).ids
            assert library.decode(library.encode(text).ids) == one.normalise(text)
    assert not list(tmp_path.glob("*.partial"))


def test_the_same_texts_give_the_same_file_in_another_process(learned: dict[str, Tokenizer]) -> None:
    program = f"from regard.text.tokenizer import learn\nprint(learn({TEXTS!r}, 400, 'nfc').sha256)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == learned["nfc"].sha256


def test_a_small_corpus_gives_a_small_vocabulary() -> None:
    assert learn([], 8000).size == 258
    assert 258 < learn(["a b a b"] * 2, 8000).size < 300


def test_a_text_without_spaces_or_end_takes_no_time() -> None:
    begun = time.monotonic()
    assert learn(["ab" * 500_000, "the cat"], 400).size > 258
    assert time.monotonic() - begun < 20


def test_task_symbols_stand_behind_ours() -> None:
    one = learn(TEXTS, 500, "nfc", ["[MASK]"])
    assert one.names[:3] == ("</s>", "<unk>", "[MASK]")
    assert one.symbols == 3
    assert min(one.encode("[MASK]").ids) >= 3
    with pytest.raises(UsageError, match="brackets"):
        learn(["mask mask"] * 9, 500, "nfc", ["mask"])
    with pytest.raises(UsageError, match="256 bytes"):
        learn(TEXTS, 257)


def broken_files(whole: bytes) -> dict[str, bytes]:
    document = json.loads(whole)
    model = document["model"]

    def changed(**parts: object) -> bytes:
        return json.dumps({**document, "model": {**model, **parts}}).encode()

    return {
        "empty": b"",
        "cut off": whole[: len(whole) // 2],
        "not an object": b"[1, 2]",
        "binary": b"\x80\x81\x82",
        "deep": b"[" * 100_000,
        "no merges": changed(merges=None),
        "a merge of unknown pieces": changed(merges=[["zzz", "y"], *model["merges"]]),
        "ids with a hole": changed(vocab={**model["vocab"], "</s>": 10_000}),
        "ids that are no numbers": changed(vocab={**model["vocab"], "</s>": "0"}),
        "a foreign splitter": json.dumps({**document, "pre_tokenizer": None}).encode(),
        "added tokens": json.dumps({**document, "added_tokens": [{"id": 0, "content": "</s>"}]}).encode(),
        "a foreign normaliser": json.dumps({**document, "normalizer": {"type": "Lowercase"}}).encode(),
    }


def test_broken_files_are_refused_with_a_sentence(learned: dict[str, Tokenizer], tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    learned["nfc"].save(path)
    whole = path.read_bytes()
    for name, content in broken_files(whole).items():
        path.write_bytes(content)
        with pytest.raises(RegardError, match="damaged") as caught:
            Tokenizer.load(path)
        assert caught.value.where == str(path), name
    newer = json.loads(whole)
    newer["model"]["format"] = 2
    path.write_text(json.dumps(newer))
    with pytest.raises(RegardError, match="newer Regard"):
        Tokenizer.load(path)
    with pytest.raises(RegardError, match="no such"):
        Tokenizer.load(tmp_path / "absent.json")
    with path.open("wb") as stream:
        stream.truncate(65 * 1024 * 1024)
    with pytest.raises(RegardError, match="64 MB"):
        Tokenizer.load(path)


@given(st.data())
def test_a_mutated_file_loads_or_is_refused(learned: dict[str, Tokenizer], folder: Path, data: st.DataObject) -> None:
    whole = bytearray(learned["nfc"]._file)
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path = folder / "mutated.json"
    path.write_bytes(whole)
    try:
        one = Tokenizer.load(path)
    except RegardError:
        return
    assert one.decode(one.encode("any text ä").ids) == "any text ä"

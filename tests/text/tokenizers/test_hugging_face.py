"""Tokenizers of other projects: equal to the library that wrote them, but that no text gives a symbol."""

import base64
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import models, normalizers, pre_tokenizers, processors, trainers

from regard.system.errors import RegardError
from regard.text.stop_strings import Decoder
from regard.text.tokenizers.hugging_face import GUARD, HuggingFaceTokenizer, special_token_names
from regard.text.tokenizers.sentencepiece import fields
from regard.text.tokenizers.tokenizer import Tokenizer, learn, read_document
from regard.text.tokenizers.vocabulary import read_tokenizer
from tests.refusals import refused
from tests.text.tokenizers.library_tokenizers import byte_pairs, roberta, unigrams, word_pieces

TEXTS = [
    "The animal didn't cross the street, because it was too tired.",
    "Das Tier überquerte die Straße nicht: es war müde!",
    "A mask, a sep and a class; unk pad s end of text extra id 0 1.",
] * 4
OURS = learn(TEXTS, 400)
SYMBOLS = ("[CLS]", "[SEP]", "[MASK]", "[UNK]", "[PAD]", "</s>", "<unk>", "<pad>", "<|endoftext|>", "<extra_id_0>")
ANY = st.one_of(
    st.text(max_size=40),
    st.text(st.sampled_from(list("The cat's üß東, ☃😀\t\n")), max_size=40),
    st.lists(st.sampled_from([*SYMBOLS, " ", "a", "the", "\ufdd0", "\ud800", "▁", "##ing", "Ġ"]), max_size=8).map(
        "".join
    ),
)
PLAIN = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\ufdd0[]<>|"), max_size=40)


def bert() -> tokenizers.Tokenizer:
    core = word_pieces(TEXTS, 120)
    core.enable_truncation(8)
    core.enable_padding(length=8)
    return core


def gpt2() -> tokenizers.Tokenizer:
    core = byte_pairs(TEXTS, 340)
    core.post_processor = processors.ByteLevel(trim_offsets=False)
    return core


def t5() -> tokenizers.Tokenizer:
    core = unigrams(TEXTS, 150, "<extra_id_1>", "<extra_id_0>")
    core.normalizer = normalizers.NFKC()
    return core


def words() -> tokenizers.Tokenizer:
    """Whole words, split at white space only: ``[MASK]`` in a text is a word of the vocabulary."""
    core = tokenizers.Tokenizer(models.WordLevel(unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.WordLevelTrainer(special_tokens=["[UNK]", "[SEP]", "[MASK]"], show_progress=False)
    core.train_from_iterator(TEXTS, trainer)
    return core


BUILT = {"bert": bert, "gpt2": gpt2, "t5": t5, "words": words}
KINDS = st.sampled_from(sorted(BUILT))


@pytest.fixture(scope="module")
def raw() -> dict[str, tokenizers.Tokenizer]:
    return {name: build() for name, build in BUILT.items()}


@pytest.fixture(scope="module")
def foreign(raw, tmp_path_factory: pytest.TempPathFactory) -> dict[str, HuggingFaceTokenizer]:
    """Read from the library's own files; of these files the library keeps no cutting and padding from us."""
    folder = tmp_path_factory.mktemp("foreign")
    for name, core in raw.items():
        core.save(str(folder / f"{name}.json"))
        core.no_truncation()
        core.no_padding()
    return {name: HuggingFaceTokenizer(read_document(folder / f"{name}.json")) for name in raw}


@given(PLAIN, KINDS)
def test_pieces_and_offsets_are_the_librarys(raw, foreign, text: str, kind: str) -> None:
    wanted = raw[kind].encode(text, add_special_tokens=False)
    found = foreign[kind].encode(text)
    assert (found.ids, found.offsets, found.text) == (wanted.ids, wanted.offsets, text)
    assert foreign[kind].ids_batch([text])[0].tolist() == wanted.ids
    whole = raw[kind].encode(text).ids
    ending = (foreign[kind].end,) if kind in ("bert", "t5") else ()
    assert whole == [*foreign[kind].begin, *wanted.ids, *ending]
    assert foreign[kind].decode(whole) == raw[kind].decode(wanted.ids, skip_special_tokens=True)
    decoder, ids = Decoder(foreign[kind]), foreign[kind].encode(text * 3).ids  # text comes as ids come
    if kind != "words":
        assert "".join(map(decoder.feed, ids)) + decoder.finish() == foreign[kind].decode(ids)


@given(ANY, KINDS)
def test_no_text_gives_a_symbol(foreign, text: str, kind: str) -> None:
    one = foreign[kind]
    allowed = {*one.ordinary.tolist(), one.unknown if kind != "gpt2" else -1}
    encoding = one.encode(text)
    assert set(encoding.ids) <= allowed
    assert one.ids_batch([text])[0].tolist() == encoding.ids
    assert all(0 <= begin <= end <= len(encoding.text) for begin, end in encoding.offsets)


def test_a_literal_symbol_stays_text(raw, foreign) -> None:
    """Where the library itself would have read a symbol."""
    for kind, text in (("bert", "a [MASK] b"), ("gpt2", "a<|endoftext|>b"), ("t5", "a</s> b"), ("words", "a [MASK] b")):
        assert set(raw[kind].encode(text, add_special_tokens=False).ids) & set(foreign[kind]._special)
        assert not set(foreign[kind].encode(text).ids) & set(foreign[kind]._special) - {foreign[kind].unknown}
    assert foreign["gpt2"].decode(foreign["gpt2"].encode("a<|endoftext|>b").ids) == "a<|endoftext|>b"
    assert [foreign["bert"].piece(i) for i in foreign["bert"].encode("[MASK]").ids][1:-1][0].startswith("m")


def test_a_piece_that_merges_build_is_no_symbol() -> None:
    vocab = {name: id for id, name in enumerate(["<", "s", ">", "<s", "<s>", "</s>"])}
    core = tokenizers.Tokenizer(models.BPE(vocab, [("<", "s"), ("<s", ">")]))
    core.add_special_tokens(["</s>"])
    one = HuggingFaceTokenizer(json.loads(core.to_str()))
    assert one.encode("<s></s>").ids[0] == 4
    assert (one.end, one.ordinary.tolist()) == (5, [0, 1, 2, 3, 4])


def test_symbols_are_found(foreign) -> None:
    one = foreign["bert"]
    symbols = [one.names[id] for id in (*one.begin, one.end, one.mask, one.unknown, one.pad)]
    assert symbols == ["[CLS]", "[SEP]", "[MASK]", "[UNK]", "[PAD]"]
    assert (one.start, one.sentinels) == (one.size, ())
    one = foreign["gpt2"]
    assert (one.begin, one.names[one.end], one.mask, one.unknown) == ((), "<|endoftext|>", None, one.end)
    one = foreign["t5"]
    assert (one.begin, one.names[one.end], one.names[one.pad]) == ((), "</s>", "<pad>")
    assert [one.names[id] for id in one.sentinels] == ["<extra_id_0>", "<extra_id_1>"]
    assert foreign["words"].names[foreign["words"].end] == "[SEP]"


@given(PLAIN, KINDS)
def test_words_start_where_the_library_splits(raw, foreign, text: str, kind: str) -> None:
    encoding = raw[kind].encode(text, add_special_tokens=False)
    words = encoding.word_ids
    wanted = [place == 0 or word != words[place - 1] for place, word in enumerate(words)]
    one = foreign[kind]
    assert one.word_starts(encoding.ids).tolist() == wanted
    both = [*one.begin, *encoding.ids, one.end, *encoding.ids]
    assert one.word_starts(np.array(both)).tolist() == [True] * len(one.begin) + wanted + [True] + wanted


def test_pieces_as_people_read_them(foreign) -> None:
    one, other = foreign["gpt2"], foreign["bert"]
    fallen = one.encode("☃").ids
    assert [one.piece(id) for id in fallen] == ["<0xE2>", "<0x98>", "<0x83>"]
    assert [one.piece(id) for id in (one.end, one.start)] == ["<|endoftext|>", "<start>"]
    assert "".join(one.piece(id) for id in one.encode("the cross").ids) == "the▁cross"
    assert all(map(one.is_byte, fallen))
    assert other.is_byte(other.encode("☃").ids[0])
    assert not any(map(other.is_byte, [*other.encode("the").ids, other.end, other.start]))


def test_saved_it_stays_what_it_is_and_keeps_what_was_told(raw, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    document = json.loads(raw["words"].to_str())
    told = HuggingFaceTokenizer(document, {"eos_token": "animal", "mask": "tired."}, size=200)
    assert (told.names[told.end], told.names[told.mask], told.size, told.start) == ("animal", "tired.", 200, 200)
    assert told.decode([150, told.end, told.start]) == ""
    assert told.piece(150) == "<150>"
    told.save(path)
    again = read_tokenizer(path)
    assert isinstance(again, HuggingFaceTokenizer)
    assert (again.sha256, again.end, again.mask, again.size) == (told.sha256, told.end, told.mask, 200)
    assert again.content == told.content == path.read_bytes()
    assert tokenizers.Tokenizer.from_file(str(path)).get_vocab() == raw["words"].get_vocab()
    with refused(RegardError, "ids"):
        told.decode([201])


def test_ours_and_foreign_ones_are_told_apart(raw, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    for units in ("pieces", "characters"):
        learn(TEXTS, 400, units=units).save(path)
        assert isinstance(read_tokenizer(path), Tokenizer)
    for core in raw.values():
        core.save(str(path))
        assert isinstance(read_tokenizer(path), HuggingFaceTokenizer)
    path.write_text("[1]")
    for wrong in (path, tmp_path / "absent.json"):
        with refused(RegardError, wrong):
            read_tokenizer(wrong)


def test_what_stands_beside_the_file_is_read(tmp_path: Path) -> None:
    assert special_token_names(tmp_path) == {}
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": "x", "pad_token": null, "model_max_length": 5}')
    (tmp_path / "special_tokens_map.json").write_text('{"eos_token": {"content": "y"}, "cls_token": "z"}')
    assert special_token_names(tmp_path) == {"eos": "y", "cls": "z"}
    (tmp_path / "special_tokens_map.json").write_text("[")
    with refused(RegardError, "special_tokens_map.json"):
        special_token_names(tmp_path)


def test_what_cannot_be_used_is_refused_with_a_sentence(raw, tmp_path: Path) -> None:
    document = json.loads(raw["words"].to_str())
    path = tmp_path / "tokenizer.json"
    inner = document["model"]
    for model, more, names in (
        ({**inner, "vocab": None}, {}, ""),
        (None, {}, ""),
        ({**inner, "regard": {"format": 99}}, {}, "99"),
        ({**inner, "regard": {"size": -1}}, {}, ""),
        ({**inner, "vocab": {}}, {"added_tokens": []}, ""),
    ):
        path.write_text(json.dumps({**document, **more, "model": model}))
        with refused(RegardError, path, names):
            HuggingFaceTokenizer(read_document(path), where=str(path))
    for names, said in (({"eos": "</s>"}, "'</s>'"), ({"end_token": "[SEP]"}, "'end'")):
        with refused(RegardError, "tokenizer.json", said):
            HuggingFaceTokenizer(document, names)
    nothing = tokenizers.Tokenizer(models.WordLevel({"a": 0, "b": 1}, "a"))
    with refused(RegardError, "tokenizer.json"):
        HuggingFaceTokenizer(json.loads(nothing.to_str()))


def replaces(pattern: str, content: str, kind: str = "String") -> dict[str, Any]:
    return {"type": "Replace", "pattern": {kind: pattern}, "content": content}


def steps(name: str, *inner: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", name: [*inner]}


def template(*single: str, **tokens: int) -> dict[str, Any]:
    """A post-processor; of the tokens how many ids each has."""
    parts = [
        {"SpecialToken" if one in tokens or one == "Q" else "Sequence": {"id": one, "type_id": 0}} for one in single
    ]
    pair = [{"Sequence": {"id": one, "type_id": 0}} for one in "AB"]
    held = {name: {"id": name, "ids": [0] * count, "tokens": ["[UNK]"] * count} for name, count in tokens.items()}
    return {"type": "TemplateProcessing", "single": parts, "pair": pair, "special_tokens": held}


def rules(trie: bytes, *written: str) -> dict[str, Any]:
    held = len(trie).to_bytes(4, "little") + trie + "\0".join([*written, ""]).encode()
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(held).decode()}


def normal_form() -> bytes:
    """The rules of T5, XLM-R and others."""
    spec = sentencepiece.SentencePieceNormalizer(rule_name="nmt_nfkc")._normalizer.serialized_normalizer_spec()
    return max((held for _, held in fields(spec, "")), key=len)


BYTES = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
BOMBS = {
    "a long content": ("normalizer", replaces("a", "a" * 1000)),
    "a long prefix": ("normalizer", {"type": "Prepend", "prepend": "a" * 1000}),
    "contents": ("normalizer", steps("normalizers", *[replaces("a", "aa")] * 15)),
    "no type": ("normalizer", {"normalizers": [{"pattern": {"String": "a"}, "content": "a" * 40}] * 3}),
    "between all": ("normalizer", steps("normalizers", *[replaces("x*", "-", "Regex")] * 15)),
    "forms": ("normalizer", steps("normalizers", *[{"type": "NFKD"}, replaces(" ", "\ufdfa")] * 4)),
    "rules": ("normalizer", rules(bytes(4), "a", "b" * 1000)),
    "bytes": ("pre_tokenizer", steps("pretokenizers", *[BYTES] * 7)),
    "texts": ("post_processor", steps("processors", *[template("A", "A")] * 15)),
    "symbols": ("post_processor", template("Q", "A", Q=10_000)),
    "read again": ("decoder", steps("decoders", *[replaces("", "aa")] * 10)),
    "suffixes": ("decoder", steps("decoders", *[{"type": "BPEDecoder", "suffix": ""}] * 10)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_what_multiplies_texts_is_refused(raw, name: str) -> None:
    part, step = BOMBS[name]
    with refused(RegardError, "tokenizer.json", "multiplies texts", part):
        HuggingFaceTokenizer({**json.loads(raw["words"].to_str()), part: step})


def test_two_pieces_of_one_id_are_refused(raw) -> None:
    """Saved and read again it had one of them, another each time."""
    document = json.loads(raw["words"].to_str())
    document["model"]["vocab"]["more"] = len(document["model"]["vocab"]) - 1
    with refused(RegardError, "tokenizer.json", "one id"):
        HuggingFaceTokenizer(document)


def test_its_own_tokens_may_not_become_much_text(raw) -> None:
    """Each step is applied to them as soon as the library reads the file."""
    document = json.loads(raw["words"].to_str())
    many = steps("normalizers", replaces("a", "b" * 60), replaces("b", "c" * 60))
    usual = {"single_word": False, "lstrip": False, "rstrip": False, "special": False}
    more = [{"id": 900 + n, "content": "a" * 99 + str(n), "normalized": True, **usual} for n in range(40)]
    with refused(RegardError, "tokenizer.json", "multiplies texts", "normalizer"):
        HuggingFaceTokenizer({**document, "normalizer": many, "added_tokens": [*document["added_tokens"], *more]})


@pytest.mark.parametrize(
    "more",
    [
        {"normalizer": rules(b"", "a")},
        {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "/////w=="}},
        {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}},
        {"post_processor": template("Q", "A")},
        {"normalizer": steps("normalizers", {"type": []})},
        {"pre_tokenizer": 1},
    ],
)
def test_damaged_steps_end_in_one_sentence(raw, capfd: pytest.CaptureFixture[str], more: dict[str, Any]) -> None:
    """And without a word of the library."""
    with refused(RegardError, "tokenizer.json", *more):
        HuggingFaceTokenizer({**json.loads(raw["words"].to_str()), **more})
    assert capfd.readouterr().err == ""


def test_the_steps_of_known_models_are_read(raw) -> None:
    known = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(normal_form()).decode()}
    blanks, spaced = (
        replaces(" {2,}", " ", "Regex"),
        {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"},
    )
    quotes = [replaces("``", '"'), replaces("''", '"')]
    forms = [{"type": one} for one in ("NFKD", "StripAccents", "Lowercase")]
    albert = [*quotes, *forms, known, blanks]
    llama = [{"type": "Prepend", "prepend": "▁"}, replaces(" ", "▁")]
    back = [
        replaces("▁", " "),
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ]
    for more in (
        {
            "normalizer": steps("normalizers", *albert),
            "pre_tokenizer": steps("pretokenizers", {"type": "WhitespaceSplit"}, spaced),
        },
        {"normalizer": steps("normalizers", *llama), "pre_tokenizer": None, "decoder": steps("decoders", *back)},
        {
            "normalizer": steps("normalizers", {"type": "NFC"}, replaces("\\s+", " ", "Regex"), {"type": "Lowercase"}),
            "pre_tokenizer": BYTES,
        },
        {"post_processor": steps("processors", BYTES, template("Q", "R", "A", "Q", Q=1, R=3))},
    ):
        HuggingFaceTokenizer({**json.loads(raw["words"].to_str()), **more}).encode("A  mask")


@given(st.data())
def test_a_mutated_file_loads_or_is_refused(raw, tmp_path_factory, data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from([*BUILT, "ours"]))
    whole = bytearray(OURS.content if kind == "ours" else raw[kind].to_str().encode())
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path, text = tmp_path_factory.getbasetemp() / "mutated.json", "any text ä [MASK]"
    path.write_bytes(whole)
    try:
        one = read_tokenizer(path)
        ids = one.encode(text).ids
        assert max(ids, default=0) < one.size
        assert len(one.word_starts(ids)) == len(ids)
        assert one.decode(ids) == text if isinstance(one, Tokenizer) else isinstance(one.decode(ids), str)
    except RegardError:
        return


@pytest.mark.long(1)
@pytest.mark.parametrize("learned", [word_pieces, byte_pairs, unigrams, roberta])
def test_lines_in_twelve_scripts_are_read_and_written_as_by_the_library(
    lines: list[str], learned: Callable[[Sequence[str], int], tokenizers.Tokenizer]
) -> None:
    content = learned(lines[::12], 3000).to_str()
    core, ours = tokenizers.Tokenizer.from_str(content), HuggingFaceTokenizer(json.loads(content))
    changed = [GUARD, *(name for name in (*SYMBOLS, "<s>", "<mask>") if name in ours.names)]
    known = [line for line in lines if not any(name in line for name in changed)]
    wanted = [one.ids for one in core.encode_batch(known, add_special_tokens=False)]
    assert len(known) > 6000
    assert [ids.tolist() for ids in ours.ids_batch(known)] == wanted
    assert ours.decode_batch(wanted) == core.decode_batch(wanted)

"""SentencePiece models: pieces, offsets and texts are the library's; damaged ones end in a sentence."""

import io
import json
import random
from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece

from regard.system.errors import RegardError
from regard.text import languages
from regard.text.stop_strings import Decoder
from regard.text.tokenizers.byte_pieces import ChunkCounter
from regard.text.tokenizers.sentencepiece import KEY, LONGEST, SentencePieceTokenizer, fairseq_names, names_by_id
from regard.text.tokenizers.vocabulary import PairCounter, Vocabularies, read_tokenizer
from tests.refusals import refused

TEXTS = [
    "The animal didn't cross the street, because it was too tired.",
    "Das Tier überquerte die Straße nicht: es war müde!",
    "Ελληνικά, русский язык, 東京 ½ ﬁne ＡＢＣ and naïve cafés — 1000 times ........ 0000000",
] * 9
KINDS: dict[str, dict[str, Any]] = {
    "unigram": {},
    "bpe": {"model_type": "bpe", "normalization_rule_name": "nfkc"},
    "unigram with bytes": {"byte_fallback": True, "normalization_rule_name": "nfkc_cf", "vocab_size": 1500},
    "bpe with bytes": {"model_type": "bpe", "byte_fallback": True, "normalization_rule_name": "identity"},
    "firefox": {"eos_id": 0, "unk_id": 1, "bos_id": -1, "normalization_rule_name": "nmt_nfkc_cf", "unk_surface": "?"},
    "symbols": {"user_defined_symbols": ["<x>", "the ", "東京"], "control_symbols": ["<de>"], "pad_id": 3},
    "spaces": {"add_dummy_prefix": False, "remove_extra_whitespaces": False, "allow_whitespace_only_pieces": True},
    "suffix": {"treat_whitespace_as_suffix": True, "model_type": "bpe"},
    "rules": {"rules": "61\t62 62\n41 42\t20\n2E\t\n", "split_by_whitespace": False},
}


def train(texts: Sequence[str], folder: Path | None = None, *, rules: str = "", **options: Any) -> bytes:
    """A small model of the library's trainer, with rules of normalisation from a file where there are some."""
    if rules and folder:
        (folder / "rules.tsv").write_text(rules)
        options["normalization_rule_tsv"] = str(folder / "rules.tsv")
    written = io.BytesIO()
    options = {"vocab_size": 600, "character_coverage": 0.98, "hard_vocab_limit": False, **options}
    options |= {"sentence_iterator": iter(texts), "model_writer": written, "minloglevel": 2, "num_threads": 1}
    sentencepiece.SentencePieceTrainer.train(**options)
    return written.getvalue()


@cache
def small(kind: str) -> bytes:
    return train(TEXTS, **{"vocab_size": 400, **KINDS[kind]})


def library(model: bytes) -> sentencepiece.SentencePieceProcessor:
    return sentencepiece.SentencePieceProcessor(model_proto=model)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("kind", KINDS)
def test_pieces_offsets_and_texts_are_the_librarys(lines: list[str], tmp_path: Path, kind: str) -> None:
    model = train(lines[::12], tmp_path, **KINDS[kind])
    core, ours = library(model), SentencePieceTokenizer(model)
    wanted = [core.encode(line) for line in lines]
    assert len(lines) > 6000
    assert [ids.tolist() for ids in ours.ids_batch(lines)] == wanted
    assert [ids.tolist() for ids in ours.ids_batch(lines[:9], ended=True)] == [[*ids, ours.end] for ids in wanted[:9]]
    assert ours.decode_batch(wanted) == [core.decode(ids) for ids in wanted]
    for line, ids, encoding in zip(lines, wanted, ours.encode_batch(lines), strict=True):
        assert (encoding.ids, encoding.text) == (ids, line)
    for line in lines[::50]:
        pieces = core.encode(line, return_type="proto").pieces
        assert [line[begin:end] for begin, end in ours.encode(line).offsets] == [piece.surface for piece in pieces]
        decoder, ids = Decoder(ours), ours.encode(line * 3).ids  # text comes as ids come
        assert "".join(map(decoder.feed, ids)) + decoder.finish() == ours.decode(ids)


@pytest.mark.parametrize("kind", KINDS)
def test_every_id_is_a_piece_a_symbol_or_unknown(kind: str) -> None:
    model = small(kind)
    core, ours = library(model), SentencePieceTokenizer(model)
    symbols = {id for id in range(core.piece_size()) if core.is_control(id)}
    assert (ours.end, ours.unknown, ours.size) == (core.eos_id(), core.unk_id(), core.piece_size())
    assert set(ours.ordinary.tolist()) == set(range(ours.size)) - symbols - {ours.unknown}
    assert set(np.flatnonzero(ours.alone_V).tolist()) == symbols | {ours.start}
    names = [core.id_to_piece(id) for id in symbols]
    assert not symbols & set(ours.encode(" ".join(names)).ids), "a symbol's name in a text stays text"
    assert ours.decode([*symbols, ours.start]) == ""
    assert [ours.is_byte(id) for id in range(ours.size)] == [
        core.is_byte(id) or id == core.unk_id() for id in range(ours.size)
    ]
    for id in (-1, ours.size + 1):
        with refused(RegardError, "ids"):
            ours.decode([id])


def test_lone_surrogates_are_replaced_and_nothing_is_an_empty_text() -> None:
    ours = SentencePieceTokenizer(small("unigram"))
    assert ours.encode("a\ud800b").ids == ours.encode("a\ufffdb").ids
    assert ours.ids_batch([]) == []
    assert [ids.tolist() for ids in ours.ids_batch(["", "  "], ended=True)] == [[ours.end]] * 2
    assert [array.tolist() for array in ours.flat_ids(["", "the", ""])] == [
        ours.encode("the").ids,
        [0, len(ours.encode("the").ids), 0],
    ]
    assert ours.flat_ids([])[0].tolist() == []


def test_words_begin_at_their_mark_or_behind_the_one_before() -> None:
    for kind in ("unigram", "suffix"):
        ours = SentencePieceTokenizer(small(kind))
        encoding = ours.encode("the street was cross")
        spoken = ["".join(encoding.text[begin:end].split()) for begin, end in encoding.offsets]
        starts = ours.word_starts(encoding.ids).tolist()
        words = "".join("|" * start + text for text, start in zip(spoken, starts, strict=True))
        assert words == "|the|street|was|cross"


def marian(model: bytes) -> dict[str, int]:
    """A table in another order, without some pieces and with some more."""
    core = library(model)
    pieces = [core.id_to_piece(id) for id in range(3, core.piece_size())]
    shuffled = random.Random(1).sample(pieces[:-9], len(pieces) - 9)
    names = ["</s>", "<unk>", *shuffled, ">>fr<<", "▁dehors", "<pad>"]
    return {name: id for id, name in enumerate(names)}


@pytest.mark.filterwarnings("ignore:Recommended")
def test_a_table_gives_pieces_other_ids(tmp_path: Path) -> None:
    """As Marian's own tokenizer has them, but for pieces that its table lacks: they are unknown, as it says."""
    from transformers import MarianTokenizer

    model = small("unigram")
    table = marian(model)
    files = {name: str(tmp_path / name) for name in ("source.spm", "target.spm", "vocab.json")}
    for name, path in files.items():
        Path(path).write_bytes(json.dumps(table).encode() if name == "vocab.json" else model)
    theirs = MarianTokenizer(files["source.spm"], files["target.spm"], files["vocab.json"])
    ours = SentencePieceTokenizer.read(files["source.spm"], names_by_id(table), [">>fr<<", "<pad>"])
    core, compared = library(model), 0
    for text in (*TEXTS[:3], "the animal", "das Tier"):
        names = core.encode(text, return_type=str)
        ids = ours.ids_batch([text], ended=True)[0].tolist()
        assert ids == [*(table.get(name, table["<unk>"]) for name in names), table["</s>"]]
        if {*names} <= table.keys():
            compared += 1
            assert ids == theirs(text)["input_ids"]
            assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=True) == core.decode(names)
    assert compared >= 2
    assert (ours.end, ours.unknown, ours.pad, ours.size) == (0, 1, table["<pad>"], len(table))
    assert ours.decode([*ours.encode("the").ids, table[">>fr<<"], table["▁dehors"], ours.pad]) == "the dehors"
    assert [ours.alone_V[table[name]] for name in (">>fr<<", "▁dehors", "<pad>", "</s>", "<unk>")] == [1, 0, 1, 1, 0]


def test_pieces_of_fairseq_are_one_further_and_languages_come_behind() -> None:
    model = small("bpe")
    core, own = library(model), SentencePieceTokenizer(model)
    symbols = ["deu_Latn", "fra_Latn", "<mask>"]
    ours = SentencePieceTokenizer(model, fairseq_names(own.names, symbols), ["<s>", "<pad>", *symbols])
    unknown = core.unk_id()
    for text in (*TEXTS[:3], "☃ deu_Latn"):
        assert ours.encode(text).ids == [3 if id == unknown else id + 1 for id in core.encode(text)]
        assert ours.decode(ours.encode(text).ids) == core.decode(core.encode(text))
    assert (ours.end, ours.unknown, ours.pad, ours.mask) == (2, 3, 1, ours.size - 1)
    assert ours.names[ours.size - 3 :] == (*symbols,)


@pytest.mark.parametrize("joint", [True, False])
def test_a_model_folder_gives_back_its_tokenizers_and_their_files(tmp_path: Path, joint: bool) -> None:
    source = SentencePieceTokenizer(small("unigram"))
    table = marian(source.model)
    target = source if joint else SentencePieceTokenizer(source.model, names_by_id(table), ["<pad>"])
    made = Vocabularies(source, target, joint)
    made.save(tmp_path)
    again = Vocabularies.load(tmp_path)
    assert (again.joint, again.sha256, again.sizes, again.contents) == (joint, made.sha256, made.sizes, made.contents)
    assert isinstance(again.target, SentencePieceTokenizer)
    assert again.target.model == small("unigram"), "the file goes out as it came"
    assert again.target.encode(TEXTS[0]) == target.encode(TEXTS[0])
    assert (source.sha256 == target.sha256) == joint


def test_no_part_of_a_long_text_has_more_tokens_than_a_model_takes() -> None:
    """Where a sign of three bytes may be eighteen characters, and blanks are none."""
    ours = SentencePieceTokenizer(small("unigram"))
    assert len(ours.encode("ﷺ").ids) > 3
    for text in ("ﷺ" * 30, " ".join(TEXTS), "the" + " " * 500):
        parts = languages.cut(text, ours, 20)
        assert max(len(ours.encode(part).ids) for part in parts) < 20
        assert "".join("".join(parts).split()) == "".join(text.split())
    assert languages.cut("the" + " " * 500, ours, 20) == ["the" + " " * 500]


def mutated(model: bytes, random: random.Random) -> bytes:
    """Cut, with a part missing or twice, or with other bytes, most of them before or behind the table of rules."""
    raw, size = bytearray(model), len(model)
    begin = random.choice([random.randrange(size), random.randrange(min(size, 9000)), size - random.randrange(1, 300)])
    end = min(size, begin + random.randrange(1, 2000))
    kind = random.randrange(5)
    if kind == 0:
        return model[:begin]
    if kind == 1:
        return model[:begin] + model[end:]
    if kind == 2:
        return model[:end] + model[begin:]
    for _ in range(random.choice([1, 4, 40])):
        place = begin if kind == 3 else random.randrange(size)
        raw[place] = random.choice([0, 1, 127, 128, 255, random.randrange(256)])
        begin = random.randrange(begin, end)
    return bytes(raw)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("kind", ["unigram", "bpe with bytes", "symbols"])
def test_a_damaged_model_ends_in_a_sentence(kind: str) -> None:
    refusals: list[RegardError] = []
    for seed in range(100):
        try:
            found = SentencePieceTokenizer(mutated(small(kind), random.Random(seed)), where="a.spm")
            found.decode([id for one in found.encode_batch(TEXTS[:3]) for id in one.ids])
        except RegardError as error:
            refusals.append(error)
    assert len(refusals) > 40
    assert all(error.where == "a.spm" and "\n" not in str(error) for error in refusals)


def test_an_empty_file_is_refused_without_a_word_of_the_library(capfd: pytest.CaptureFixture[str]) -> None:
    with refused(RegardError, "a.spm", "is empty"):
        SentencePieceTokenizer(b"", where="a.spm")
    assert capfd.readouterr().err == ""


def field(number: int, held: bytes) -> bytes:
    size = len(held)
    return bytes([number << 3 | 2, size & 127 | 128, size >> 7 & 127 | 128, size >> 14]) + held


def test_what_would_write_too_much_is_refused(tmp_path: Path) -> None:
    """A rule or the sign of the unknown that writes a whole book for a letter; a rule too in a message of two parts."""
    model = small("unigram")
    for size, refuse in ((LONGEST // 2, False), (LONGEST * 2, True)):
        (tmp_path / "rules.tsv").write_text(f"61\t{' '.join(['62'] * size)}\n")
        rules = sentencepiece.SentencePieceNormalizer(rule_tsv=str(tmp_path / "rules.tsv"))._normalizer
        spec = rules.serialized_normalizer_spec()
        for bomb in (field(3, spec), field(5, spec), field(3, spec) + field(3, b""), field(2, field_of_unknown(size))):
            if refuse:
                with refused(RegardError, "a.spm", str(LONGEST)):
                    SentencePieceTokenizer(model + bomb, where="a.spm")
            else:
                SentencePieceTokenizer(model + bomb)


def field_of_unknown(size: int) -> bytes:
    """Field 44, whose number takes two bytes."""
    return b"\xe2\x02" + field(0, b"x" * size)[1:]


BROKEN: dict[str, Callable[[dict[str, Any]], object]] = {
    "newer": lambda held: held.update(format=99),
    "no letters": lambda held: held.update(model="%%"),
    "no model": lambda held: held.update(model="AAAA"),
    "no names": lambda held: held.update(names=[1, 2]),
    "a name twice": lambda held: held.update(names=["</s>", "<unk>", "a", "a"]),
    "nothing ends": lambda held: held.update(names=["<unk>", "a"]),
    "nothing unknown": lambda held: held.update(names=["</s>", "a"]),
    "a symbol without an id": lambda held: held.update(symbols=["<fr>"]),
    "a part missing": lambda held: held.pop("symbols"),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_damaged_file_of_ours_ends_in_a_sentence(tmp_path: Path, fault: str) -> None:
    document = json.loads(SentencePieceTokenizer(small("unigram")).content)
    BROKEN[fault](document[KEY])
    (tmp_path / "tokenizer.json").write_text(json.dumps(document))
    with refused(RegardError, "tokenizer.json"):
        read_tokenizer(tmp_path / "tokenizer.json")


@pytest.mark.parametrize("table", [{"a": -1}, {"a": 1 << 40}, {"a": 0, "b": 0}, {"a": "0"}, {"a": True}, [], None])
def test_a_damaged_table_ends_in_a_sentence(table: Any) -> None:
    with refused(RegardError, "vocab.json"):
        names_by_id(table)


NEW = ["An infarction of the animal's heart", "Straßentiere: Herzinfarkt, Überquerung", "心筋梗塞 東京東京"] * 3


@pytest.mark.one_of(3)
@pytest.mark.parametrize("kind", KINDS)
def test_further_pieces_are_read_by_the_library(kind: str) -> None:
    """Ids stay, old texts have those that they had, and a new piece stands for the old pieces that it is made of."""
    known, counter = SentencePieceTokenizer(small(kind)), ChunkCounter()
    counter.add(NEW)
    found = known.extend(counter, 25)
    assert 0 < found.size - known.size <= 25
    assert found.names[: known.size] == known.names
    assert sum(map(len, found.ids_batch(NEW))) < sum(map(len, known.ids_batch(NEW)))
    for text in [*TEXTS[:3], *NEW[:3]]:
        (ids,), (old,) = found.ids_batch([text]), known.ids_batch([text])
        assert found.decode(ids) == known.decode(old)
        parts = [known.pieces_of(found.names[id]) if id >= known.size else [id] for id in ids]
        if kind not in ("suffix", "rules"):  # where a piece's name is read as another text
            assert [*chain.from_iterable(parts)] == old.tolist()
    again = SentencePieceTokenizer.of(json.loads(found.content), "")
    assert (again.names, again.encode(NEW[0])) == (found.names, found.encode(NEW[0]))
    assert known.extend(ChunkCounter(), 25).sha256 == known.sha256


@pytest.mark.parametrize("text", ["l'infarctus", "un infarctus", "post-infarctus", "(infarctus)", "infarctus"])
@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_a_new_word_becomes_a_piece_wherever_it_stands(kind: str, text: str) -> None:
    known, counter = SentencePieceTokenizer(small(kind)), ChunkCounter()
    counter.add([text, f"{text} {text}"] * 3)
    found = known.extend(counter, 50)
    assert any("infarctus" in found.names[id] for id in found.encode(text).ids)


def test_two_models_of_one_table_name_its_rows_alike() -> None:
    pieces = [
        library(small(kind)).id_to_piece([*range(library(small(kind)).piece_size())]) for kind in ("unigram", "bpe")
    ]
    names = [*dict.fromkeys([*pieces[0], *pieces[1]])]
    source, target = (SentencePieceTokenizer(small(kind), names) for kind in ("unigram", "bpe"))
    counter = PairCounter(joint=False)
    counter.add([(NEW[0], NEW[1])] * 3)
    found = counter.extend(Vocabularies(source, target, joint=False), 10)
    assert found.source.names == found.target.names
    assert len(names) < found.source.size <= len(names) + 20
    for one, was, text in ((found.source, source, NEW[0]), (found.target, target, NEW[1])):
        assert len(one.encode(text).ids) < len(was.encode(text).ids)
        assert one.decode(one.encode(text).ids) == was.decode(was.encode(text).ids)

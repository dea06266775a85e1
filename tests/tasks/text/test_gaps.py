"""Gaps in texts: each a symbol, every piece with its characters, and back again."""

import pytest

from regard.tasks.text.gaps import decode_with_offsets, decode_with_symbols, sentinel_gaps
from regard.text.tokenizers.tokenizer import Tokenizer, learn

NAMES = ("<extra_0>", "<extra_1>", "<extra_2>")


def tokenizer(**more: str) -> Tokenizer:
    texts = ["the old cat sleeps on the green mat and the dog sees the cat"] * 3
    return learn(texts, 300, "nfc", ("[CLS]", "[MASK]", *NAMES), **more)


def test_a_gap_is_a_sentinel_by_its_name() -> None:
    known = tokenizer()
    ids = dict(zip(NAMES, known.sentinels, strict=True))
    for text, named in {
        "the <extra_0> sleeps <extra_1>": NAMES[:2],
        "<extra_1> <extra_0> <extra_1>": ("<extra_1>", "<extra_0>", "<extra_1>"),
        "<extra_2>": NAMES[2:],
        "no gap, [MASK] is none, nor <extra_7>": (),
        "caf\u00e9 <extra_0>": NAMES[:1],
    }.items():
        found = sentinel_gaps(known).parse(text.replace("\u00e9", "e\u0301"))  # the tokenizer's own form comes back
        assert tuple(found.ids[place] for place in found.gaps) == tuple(ids[name] for name in named)
        assert found.text == text
        (batched,) = sentinel_gaps(known).ids_batch([text])
        assert batched.tolist() == found.ids


def test_a_vocabulary_without_sentinels_has_no_gaps() -> None:
    plain = learn(["the cat"] * 3, 300)
    found = sentinel_gaps(plain).parse("the <extra_0>")
    assert (found.gaps, found.ids) == ((), plain.ids_batch(["the <extra_0>"])[0].tolist())
    assert sentinel_gaps(plain).ids_batch(["the <extra_0>"])[0].tolist() == found.ids


@pytest.mark.parametrize("units", ["pieces", "characters"])
def test_pieces_and_their_characters_are_those_of_the_text_around(units: str) -> None:
    known = tokenizer(units=units)
    found = sentinel_gaps(known).parse("the cat <extra_0> on the <extra_1>. The end")
    texts = [found.text[start:end] for _, start, end in found.read]
    assert found.text == "the cat <extra_0> on the <extra_1>. The end"
    space = " " if units == "characters" else ""  # before a gap; else it belongs to the gap
    assert "".join(texts) == f"the cat{space} on the{space}. The end"
    for place, (id, start, end) in enumerate(found.read):
        assert (start == end) == (place in found.gaps)
        assert place in found.gaps or known.decode([id]) == found.text[start:end]
    begun = [found.read[place][1] for place in found.gaps]
    assert [found.text[start:].startswith(name) for start, name in zip(begun, NAMES, strict=False)] == [True, True]


def test_what_was_written_is_spelled_with_its_symbols() -> None:
    known = tokenizer()
    ids = sentinel_gaps(known).parse("<extra_0> old cat<extra_1> na\u00efve <extra_0_> the").ids
    text, read = decode_with_offsets(known, [*ids, known.sentinels[0]], known.sentinels)
    assert text == "<extra_0> old cat <extra_1> na\u00efve <extra_0_> the <extra_0>"
    assert [id for id, _, _ in read] == [*ids, known.sentinels[0]]
    pieces = [text[start:end] for id, start, end in read if id not in known.sentinels]
    assert "".join(pieces) == " old cat na\u00efve <extra_0_> the"
    assert all(start == end for id, start, end in read if id in known.sentinels)


def test_named_symbols_are_shown_and_others_are_not() -> None:
    tokenizer = learn(["the cat sat on the mat"] * 3, 300, symbols=("[CLS]", "[MASK]", "<extra_0>"))
    the, sat = (tokenizer.ids_batch([text])[0].tolist() for text in ("the", " sat"))
    begin, mask, extra = tokenizer.begin[0], tokenizer.mask, tokenizer.sentinels[0]
    ids = [begin, *the, mask, *sat, extra, tokenizer.end]
    assert decode_with_symbols(tokenizer, ids, {mask}) == "the [MASK] sat"
    assert decode_with_symbols(tokenizer, ids, {mask, extra}) == "the [MASK] sat <extra_0>"
    assert decode_with_symbols(tokenizer, [mask, mask, *sat], {mask}) == "[MASK] [MASK] sat"
    assert decode_with_symbols(tokenizer, ids, set()) == "the sat"
    assert decode_with_symbols(tokenizer, [], {mask}) == ""

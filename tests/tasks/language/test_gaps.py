"""Gaps in texts: each a symbol, every piece with its characters, and back again."""

import pytest

from regard.system.errors import UsageError
from regard.tasks.language.gaps import SpanGaps, decode_with_offsets, decode_with_symbols
from regard.text.tokenizers.tokenizer import Tokenizer, learn
from tests.refusals import refused

NAMES = ("<extra_0>", "<extra_1>", "<extra_2>")


def tokenizer(**more: str) -> Tokenizer:
    texts = ["the old cat sleeps on the green mat and the dog sees the cat"] * 3
    return learn(texts, 300, "nfc", ("[CLS]", "[MASK]", *NAMES), **more)


def test_a_gap_is_a_sentinel_by_its_name_or_the_next_that_is_free() -> None:
    known = tokenizer()
    ids = dict(zip(NAMES, known.sentinels, strict=True))
    for text, named in {
        "the [MASK] sleeps [MASK]": NAMES[:2],
        "[MASK] <extra_0> [MASK]": ("<extra_1>", "<extra_0>", "<extra_2>"),
        "<extra_2>": NAMES[2:],
        "no gap": (),
        "caf\u00e9 [MASK]": NAMES[:1],
    }.items():
        found = SpanGaps(known).parse(text.replace("\u00e9", "e\u0301"))  # the tokenizer's own form comes back
        assert tuple(found.ids[place] for place in found.gaps) == tuple(ids[name] for name in named)
        filled = text
        for name in named:
            filled = filled.replace(name, "[MASK]", 1)
        assert found.text == filled.replace("[MASK]", "{}").format(*named)


@pytest.mark.parametrize("units", ["pieces", "characters"])
def test_pieces_and_their_characters_are_those_of_the_text_around(units: str) -> None:
    known = tokenizer(units=units)
    found = SpanGaps(known).parse("the cat [MASK] on the [MASK]. The end")
    texts = [found.text[start:end] for _, start, end in found.read]
    assert found.text == "the cat <extra_0> on the <extra_1>. The end"
    space = " " if units == "characters" else ""  # before a gap; else it belongs to the gap
    assert "".join(texts) == f"the cat{space} on the{space}. The end"
    for place, (id, start, end) in enumerate(found.read):
        assert (start == end) == (place in found.gaps)
        assert place in found.gaps or known.decode([id]) == found.text[start:end]
    begun = [found.read[place][1] for place in found.gaps]
    assert [found.text[start:].startswith(name) for start, name in zip(begun, NAMES, strict=False)] == [True, True]


def test_what_cannot_be_read_is_refused() -> None:
    gaps = SpanGaps(tokenizer())
    with refused(UsageError, "<extra_1> and <extra_1>"):
        gaps.parse("<extra_1> and <extra_1>")
    with refused(UsageError, "[MASK] " * 4, "4", "3"):
        gaps.parse("[MASK] " * 4)


def test_what_was_written_is_spelled_with_its_symbols() -> None:
    known = tokenizer()
    ids = SpanGaps(known).parse("<extra_0> old cat<extra_1> na\u00efve <extra_0_> the").ids
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

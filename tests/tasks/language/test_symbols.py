"""Symbols that are meant to be seen stand in the text by name."""

from regard.tasks.language.gaps import decode_with_symbols
from regard.text.tokenizers.tokenizer import learn


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

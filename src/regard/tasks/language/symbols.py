"""Decoding of token ids to text with chosen special tokens shown: masks and sentinels."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from regard.text.tokenizers.vocabulary import AnyTokenizer


def decode_with_symbols(tokenizer: AnyTokenizer, ids: Iterable[int], symbols: Collection[int]) -> str:
    """The text of ids, with the names of these symbols in it, a space before each; other symbols are omitted."""
    text, waiting = "", []
    for id in ids:
        if id not in symbols:
            waiting.append(id)
            continue
        text += tokenizer.decode(waiting)
        waiting = []
        text += ("" if not text or text[-1].isspace() else " ") + tokenizer.piece(id)
    return text + tokenizer.decode(waiting)

"""Ids as people read them where symbols are meant to be seen: hidden words, and the places of missing spans."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from regard.text.vocabulary import AnyTokenizer


def marked(tokenizer: AnyTokenizer, ids: Iterable[int], symbols: Collection[int]) -> str:
    """The text of ids, with the names of these symbols in it, a space before each; other symbols say nothing."""
    text, waiting = "", []
    for id in ids:
        if id not in symbols:
            waiting.append(id)
            continue
        text += tokenizer.decode(waiting)
        waiting = []
        text += ("" if not text or text[-1].isspace() else " ") + tokenizer.piece(id)
    return text + tokenizer.decode(waiting)

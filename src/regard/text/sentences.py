"""Sentence splitting, hard windows for sentences that are too long, and truncation of extremely long words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from sentencex import segment

from regard.text.languages import UNKNOWN, primary
from regard.text.tokenizers.tokenizer import Tokenizer

_WIDE = re.compile("[。！？．｡]")
_NEAR = 10_000
"""Characters in which sentences are looked for at once, where they end in wide signs without a blank behind: there the
library's time grows with the square of a text."""
_VISIBLE = re.compile(r"\S")


def shorten_words(text: str, longest: int, *, end: bool = False) -> tuple[str, int]:
    """Cut white-space separated words to ``longest`` characters; the text and the number of characters lost.

    Args:
        text: any text.
        longest: characters of a word that are kept.
        end: the last ones, not the first.
    """
    if len(text) <= longest:
        return text, 0
    kept, done = list[str](), 0
    for word in re.finditer(r"\S+", text):
        first, last = word.span()
        if last - first > longest:
            begin = last - longest if end else first
            kept += [text[done:first], text[begin : begin + longest]]
            done = last
    found = "".join([*kept, text[done:]])
    return found, len(text) - len(found)


def sentences(text: str, language: str = UNKNOWN) -> list[str]:
    """The sentences of a text, without the white space around them."""
    found = _segment("en" if language == UNKNOWN else primary(language), text)
    return [sentence.strip() for sentence in found if sentence.strip()]


def _segment(language: str, text: str) -> Iterator[str]:
    begin, room = 0, _NEAR if _WIDE.search(text) else max(len(text), 1)
    while begin < len(text):
        found = list(segment(language, text[begin : begin + room]))
        if begin + room < len(text):  # the last may continue after this part
            if len(found) < 2:
                room *= 2
                continue
            found.pop()
        yield from found
        begin, room = begin + sum(map(len, found)), _NEAR


def cut(
    text: str,
    tokenizer: Tokenizer,
    max_tokens: int,
    language: str = UNKNOWN,
    shortened: Callable[[str], str] = str,
) -> list[str]:
    """``text`` in parts of at most ``max_tokens`` tokens (``</s>`` counted): whole if it fits, else its sentences.

    A sentence that is too long is cut at the last word's end that fits, or inside a word if there is none; never inside
    a character, even if that alone is too long. A long text of white space only gives one empty part.

    Args:
        text: any text.
        tokenizer: of the model.
        max_tokens: of a part.
        language: whose rules of sentence ends apply.
        shortened: makes another of each sentence before it is cut.
    """
    limit = max_tokens - 1
    if _fits(text, tokenizer, limit):
        return [text]
    found = map(shortened, sentences(text, language))
    return [part for sentence in found for part in _windows(sentence, tokenizer, limit)] or [""]


def _fits(text: str, tokenizer: Tokenizer, limit: int) -> bool:
    """Whether a text has at most ``limit`` pieces; encoded only where its bytes leave that open."""
    size = len(tokenizer.normalise(text).encode())
    return size <= limit or (size <= limit * tokenizer.longest and len(tokenizer.encode(text).ids) <= limit)


def _windows(sentence: str, tokenizer: Tokenizer, limit: int) -> Iterator[str]:
    """Hard windows of one sentence. A window is encoded again: cut off from its neighbours it may need more pieces."""
    text, begin = tokenizer.normalise(sentence), 0
    while begin < len(text):
        seen = 8 * (limit + 1)  # only a start of the text is encoded, or a line of a million characters takes for ever
        encoding = tokenizer.encode(text[begin : begin + seen])
        while len(encoding.ids) <= limit and begin + seen < len(text):
            seen *= 4
            encoding = tokenizer.encode(text[begin : begin + seen])
        if len(encoding.ids) <= limit:
            yield text[begin:]
            return
        end = _end(encoding.text, encoding.offsets[: limit + 1], limit)
        while end > 1 and len(tokenizer.encode(text[begin : begin + end].strip()).ids) > limit:
            end -= max(1, end // 16)
        if window := text[begin : begin + end].strip():
            yield window
        text = text if begin else text.rstrip()
        following = _VISIBLE.search(text, begin + end)
        begin = following.start() if following else len(text)


def _end(text: str, offsets: list[tuple[int, int]], limit: int) -> int:
    """End of the first window of at most ``limit`` pieces, in characters."""
    hard = offsets[limit][0] if len(offsets) > limit else len(text)
    space = text.rfind(" ", hard // 2, hard + 1)
    return max(1, space if space > 0 else hard)

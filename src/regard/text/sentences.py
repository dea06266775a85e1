"""Long texts cut into what a model can read: sentences, then hard windows (ARCHITECTURE, text at use)."""

from __future__ import annotations

from collections.abc import Iterator

from sentencex import segment

from regard.text.languages import UNKNOWN, primary
from regard.text.tokenizer import Tokenizer


def sentences(text: str, language: str = UNKNOWN) -> list[str]:
    """The sentences of a text, without the white space around them."""
    found = segment("en" if language == UNKNOWN else primary(language), text)
    return [sentence.strip() for sentence in found if sentence.strip()]


def cut(text: str, tokenizer: Tokenizer, max_tokens: int, language: str = UNKNOWN) -> list[str]:
    """``text`` in parts of at most ``max_tokens`` tokens (``</s>`` counted): whole if it fits, else its sentences.

    A sentence that is too long is cut at the last word's end that fits, or inside a word if there is none; never inside
    a character, even if that alone is too long. A long text of white space only gives one empty part.
    """
    limit = max_tokens - 1
    if len(tokenizer.encode(text).ids) <= limit:
        return [text]
    parts = [part for sentence in sentences(text, language) for part in _windows(sentence, tokenizer, limit)]
    return parts or [""]


def _windows(sentence: str, tokenizer: Tokenizer, limit: int) -> Iterator[str]:
    """Hard windows of one sentence. A window is encoded again: cut off from its neighbours it may need more pieces."""
    text = tokenizer.normalise(sentence)
    while text:
        seen = 8 * (limit + 1)  # only a start of the text is encoded, or a line of a million characters takes for ever
        encoding = tokenizer.encode(text[:seen])
        while len(encoding.ids) <= limit and seen < len(text):
            seen *= 4
            encoding = tokenizer.encode(text[:seen])
        if len(encoding.ids) <= limit:
            yield text
            return
        end = _end(encoding.text, encoding.offsets[: limit + 1], limit)
        while end > 1 and len(tokenizer.encode(text[:end].strip()).ids) > limit:
            end -= max(1, end // 16)
        window, text = text[:end].strip(), text[end:].strip()
        if window:
            yield window


def _end(text: str, offsets: list[tuple[int, int]], limit: int) -> int:
    """Where the first window of at most ``limit`` pieces ends, in characters."""
    hard = offsets[limit][0] if len(offsets) > limit else len(text)
    space = text.rfind(" ", hard // 2, hard + 1)
    return max(1, space if space > 0 else hard)

"""How well a vocabulary knows the words of a text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from regard.text.tokenizer import Tokenizer


def fallen(texts: Sequence[str], tokenizer: Tokenizer) -> tuple[int, Counter[str]]:
    """How many words there are, and how often each that holds a character that falls to bytes."""
    counts = Counter(word for text in texts for word in text.split())
    words = list(counts)
    pieces = tokenizer.ids_batch([f" {word}" for word in words])
    fell = (word for word, ids in zip(words, pieces, strict=True) if any(map(tokenizer.is_byte, ids.tolist())))
    return counts.total(), Counter({word: counts[word] for word in fell})


def characters_per_token(texts: Sequence[str], tokenizer: Tokenizer) -> float:
    """How many characters a token stands for on average."""
    tokens = sum(map(len, tokenizer.ids_batch(texts)))
    return sum(map(len, texts)) / tokens if tokens else 4.0

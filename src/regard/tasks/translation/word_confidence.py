"""How probable each word of a translation is to stand in a reference, by the probabilities of its pieces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from regard.decoding.hypotheses import Hypothesis
from regard.tasks.text.task import decode_with_offsets
from regard.tasks.translation.guard import of_words
from regard.text.tags import places_of
from regard.text.tokenizers.vocabulary import AnyTokenizer


@dataclass(frozen=True)
class Word:
    """A word of a text, its characters, and how probable it is.

    Args:
        text: letters and digits together, or any other sign alone.
        begin, end: from the first character to before the end.
        confidence: as :func:`confidences` has it.
    """

    text: str
    begin: int
    end: int
    confidence: float


def log_probabilities(tokenizer: AnyTokenizer, output: Hypothesis, skip: int) -> tuple[str, list[Word]]:
    """The text of an output, and its words, each with the sum of the log-probabilities of its pieces.

    Args:
        tokenizer: of the output.
        output: of a search that was asked for scores.
        skip: tokens that the output begins with and that are not of the text.
    """
    text, read = decode_with_offsets(tokenizer, output.tokens[skip:], ())
    places, pieces = places_of(text), [(begin, end) for _, begin, end in read]
    own_T = np.array(output.token_log_probabilities[skip : skip + len(read)], np.float64)
    sums = of_words(places, pieces, own_T, np.sum).tolist()
    return text, [Word(text[begin:end], begin, end, one) for (begin, end), one in zip(places, sums, strict=True)]


def confidences(words: Sequence[Word], fitted: Sequence[tuple[float, float]]) -> list[Word]:
    """The same words, each with the probability that it stands in a reference; where none was fitted, of its pieces.

    Args:
        words: with log-probabilities.
        fitted: log-probabilities and what they map to, both rising; between them it is linear. Empty: none was fitted.
    """
    given_W = np.array([word.confidence for word in words])
    knot_K, share_K = np.array(fitted, np.float64).reshape(-1, 2).T
    found_W = np.interp(given_W, knot_K, share_K) if fitted else np.exp(given_W)
    return [replace(word, confidence=one) for word, one in zip(words, found_W.round(6).tolist(), strict=True)]


def in_reference(words: Sequence[str], reference: str) -> list[bool]:
    """Which words stand in a reference, each as often as there, as BLEU counts [Papineni02 §2.1]; the first ones do."""
    left, found = Counter(reference[slice(*place)] for place in places_of(reference)), []
    for word in words:
        found.append(left[word] > 0)
        left[word] -= 1
    return found

"""Tags given as placeholders to a model that has learned to carry them, and read from what it writes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from regard.documents.segment import Place, Tag
from regard.documents.tags.copies import Shares
from regard.documents.tags.placement import FAINT
from regard.tasks.translation.align import units_of
from regard.text.placeholders import SIGNS, plain, signs_of, with_placeholders, words_of

WRITTEN = 0.3
"""How much of a share is what the model wrote; the rest is its attention, which errs elsewhere."""


def with_tags(text: str, tags: Sequence[Tag], sentence: Place) -> str:
    """A sentence of a text with placeholders for the tags in it; without if they are too many, or stand in words."""
    begin, end = sentence
    some = [tag for tag in tags if _is_in(tag, sentence)]
    if not some or len(some) > len(SIGNS) or plain(text[begin:end]) != text[begin:end]:
        return text[begin:end]
    words = words_of(text[begin:end])
    edges = list(accumulate(map(len, words), initial=begin))
    given = list[tuple[str, set[int]]]()
    for sign, tag in zip(SIGNS, some, strict=False):
        before = [n for n, at in enumerate(edges[:-1]) if at + (text[at] == " ") < tag.end]
        inside = {n for n in before if tag.begin < edges[n + 1]}
        given.append((sign, inside if tag.begin < tag.end else {before[-1]}))
    return with_placeholders(words, given)


def _is_in(tag: Tag, sentence: Place) -> bool:
    """Whether a tag, which is not kept, stands in a sentence, and not around or beside all of it."""
    begin, end = sentence
    inside = tag.begin < end and begin < tag.end
    return inside and not tag.kept and not (tag.begin <= begin and end <= tag.end)


def written_shares(text: str, translation: str) -> Shares | None:
    """``share_JI`` of the units of two texts without their placeholders, which lead each tag to where it was written.

    A unit of the translation belongs to those of the text that are in the same tags, in their order.

    Args:
        text, translation: with placeholders.

    Returns:
        Nothing where the text has none, or the translation has others.
    """
    if not (wanted := set(text) & set(SIGNS)) or set(translation) & set(SIGNS) != wanted:
        return None
    signs_I, signs_J = (
        [found[begin] for found in [signs_of(one)] for begin, _ in units_of(plain(one))] for one in (text, translation)
    )
    share_JI = np.zeros((len(signs_J), len(signs_I)))
    for signs in set(signs_J):
        rows, columns = ([n for n, one in enumerate(some) if one == signs] for some in (signs_J, signs_I))
        for number, row in enumerate(rows if columns else ()):  # the last of a word's units is that with most of it
            share_JI[row, columns[((number + 1) * len(columns) - 1) // len(rows)]] = 1 + number * FAINT
    return share_JI


def with_written(attention_JI: Shares | None, written_JI: Shares | None) -> Shares | None:
    """The shares by attention, and by what was written, where both are known."""
    if attention_JI is None or written_JI is None or attention_JI.shape != written_JI.shape:
        return attention_JI if written_JI is None else written_JI
    return (1 - WRITTEN) * attention_JI + WRITTEN * written_JI

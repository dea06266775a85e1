"""Sequences of tokens that a sentence's outputs do not have."""

from __future__ import annotations

import numpy as np

from regard.decoding.hypotheses import Ints, Rows


def forbidden_tokens(rows: Rows) -> Ints:
    """A constraint: the last tokens of those forbidden sequences that a row ends with but for these, ``banned_NF``."""
    tokens_NT = rows.with_histories().tokens_NT
    found: list[list[int]] = []
    for row, (place, length) in enumerate(zip(rows.sentence_N.tolist(), rows.length_N.tolist(), strict=True)):
        own = tuple(tokens_NT[row, :length].tolist())
        banned = rows.sentences[place].forbidden
        found.append([form[-1] for form in banned if own[max(0, length + 1 - len(form)) :] == form[:-1]])
    most = max(map(len, found), default=0)
    return np.array([[*own, *[-1] * (most - len(own))] for own in found], np.int64).reshape(rows.count, most)

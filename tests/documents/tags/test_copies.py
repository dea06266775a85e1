"""Copies in place of what a model wrote for them."""

from __future__ import annotations

import re

import numpy as np
import pytest

from regard.documents.tags.copies import put_copies
from regard.tasks.translation.align import units_of


@pytest.mark.parametrize(
    ("text", "output", "kept", "wanted"),
    [
        ("see info@example.org.", "voir info-example.org.", ["info@example.org"], "voir info@example.org."),
        ("a range(10) here", "une faixa(10) ici", ["range(10)"], "une range(10) ici"),
        ("for 12.50 euros", "pour 12,50 euros", ["12.50"], "pour 12.50 euros"),
        ("3 and 3", "3 und 3", ["3", "3"], "3 und 3"),
        ("has 3 dogs", "hat drei Hunde", ["3"], "hat drei Hunde"),
        ("a b", "", ["b"], ""),
        ("%s or %s", "% s oder % s", ["%s", "%s"], "%s oder %s"),
        ("%s", "%%s", ["%s"], "%s"),
    ],
)
def test_what_is_like_a_copy_becomes_one(text: str, output: str, kept: list[str], wanted: str) -> None:
    places, at = [], 0
    for one in kept:
        at = text.index(one, at)
        places.append((at, at + len(one)))
        at += len(one)
    size_J, size_I = len(units_of(output)), len(units_of(text))
    share_JI = np.eye(size_J, size_I)
    if "(" in text or "@" in text:  # all of what stands there belongs to all of the copy
        own = [n for n, (begin, end) in enumerate(units_of(text)) if places[0][0] < end and begin < places[0][1]]
        words = re.search(r"\S*[-(]\S*", output)
        assert words is not None
        for j, (begin, _) in enumerate(units_of(output)):
            if words.start() <= begin < words.end():
                share_JI[j] = np.isin(np.arange(size_I), own) / len(own)
    assert put_copies(text, output, places, share_JI) == wanted


def test_nothing_is_put_where_no_place_is_known() -> None:
    assert put_copies("see 5", "siehe", [(4, 5)], None) == "siehe"

"""Tags in translations: every one once and well-formed, whatever the attention; and where they belong."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.documents.segment import Segment, SegmentBuilder, Tag, render
from regard.documents.tags.placement import diagonal, needs_alignment, place_in_proportion, place_tags

WORD = re.compile(r"\w+|[^\w\s]")


def units(text: str) -> list[tuple[int, int]]:
    return [found.span() for found in WORD.finditer(text)]


def segment(marked: str) -> Segment:
    """A segment of HTML-like text: <b>…</b>, <br/>, `kept`."""
    builder = SegmentBuilder(0)
    for piece in re.findall(r"<\w+/>|<\w+>|</\w+>|`[^`]*`|[^<`]+", marked):
        if piece.startswith("</"):
            builder.close(piece)
        elif piece.endswith("/>"):
            builder.empty(piece)
        elif piece.startswith("<"):
            builder.open(piece)
        elif piece.startswith("`"):
            builder.keep(piece, piece[1:-1])
        else:
            builder.add(piece)
    return builder.segment(0, "")


def translate(marked: str, target: str, links: dict[int, int]) -> str:
    """The translation with tags, where target word j belongs to source word ``links[j]``."""
    one = segment(marked)
    share_JI = np.zeros((len(units(target)), len(units(one.text))))
    for j, i in links.items():
        share_JI[j, i] = 1
    found = place_tags(one.tags, (one.text, units(one.text)), (target, units(target)), share_JI)
    return render(one, found)


def test_an_element_at_the_end_of_a_line_stays_in_it() -> None:
    builder = SegmentBuilder(0, blanks=True)
    builder.add("Hi, ")
    builder.empty("<x/>")
    builder.add("!\nA man")
    one, target = builder.segment(0, ""), "Hallo.\nEin Mann"
    share_JI = np.zeros((4, 5))
    share_JI[range(4), [0, 1, 3, 4]] = 1
    found = place_tags(one.tags, (one.text, units(one.text)), (target, units(target)), share_JI)
    assert render(one, found) == "Hallo.<x/>\nEin Mann"


@pytest.mark.parametrize(
    ("source", "target", "links", "wanted"),
    [
        ("the <b>red</b> car.", "le auto rouge.", {0: 0, 1: 2, 2: 1, 3: 3}, "le auto <b>rouge</b>."),
        ("<b>all of it</b>", "tout", {0: 0}, "<b>tout</b>"),
        (
            "<a>a <b>red</b> car</a> here",
            "ici une auto rouge",
            {0: 3, 1: 0, 2: 2, 3: 1},
            "ici <a>une auto <b>rouge</b></a>",
        ),
        ("one<fn/> two", "deux un", {0: 1, 1: 0}, "deux un<fn/>"),
        ("one <br/> two", "eins zwei", {0: 0, 1: 1}, "eins <br/>zwei"),
        ("<i/>one two<j/>", "zwei eins", {0: 1, 1: 0}, "<i/>zwei eins<j/>"),
        ("call `f(x)` first", "erst f(x) rufen", {0: 2, 1: 1, 2: 1, 3: 1, 4: 1, 5: 0}, "erst `f(x)` rufen"),
        ("call `f(x)` first", "erst rufen", {0: 5, 1: 0}, "erst rufen `f(x)`"),
        ("un<b>like</b>ly so", "so unwahrscheinlich", {0: 1, 1: 0}, "so <b>unwahrscheinlich</b>"),
        ("more H<b>2</b>SO<i>4</i> here", "ici H2SO4 encore", {0: 2, 1: 1, 2: 0}, "ici H<b>2</b>SO<i>4</i> encore"),
        ("the `a\xa0b` here", "hier das a b", {0: 3, 1: 0, 2: 1, 3: 2}, "hier das `a\xa0b`"),
        ("<b></b>empty <i> </i>", "leer", {0: 0}, "<b></b>leer<i></i>"),
    ],
)
def test_tags_stand_at_their_words(source: str, target: str, links: dict[int, int], wanted: str) -> None:
    assert translate(source, target, links) == wanted


@st.composite
def marked_texts(draw: st.DrawFn, depth: int = 3) -> str:
    parts, words = list[str](), st.sampled_from(["one", "two", "x y", "three.", ",", "f(x)"])
    for _ in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["text", "text", "empty", "kept", "pair"]))
        if kind == "pair" and depth:
            parts.append(f"<b>{draw(marked_texts(depth=depth - 1))}</b>")
        else:
            parts.append({"empty": "<br/>", "kept": f"`{draw(words)}`"}.get(kind, draw(words)))
        parts.append(draw(st.sampled_from(["", " "])))
    return "".join(parts)


@settings(max_examples=2000, deadline=None)
@given(
    marked_texts(),
    st.lists(st.sampled_from(["eins", "f(x)", "one", "drei", ".", "x y"]), max_size=8),
    st.integers(0, 99),
)
def test_every_tag_comes_out_once_and_nested(marked: str, words: list[str], seed: int) -> None:
    one, target = segment(marked), " ".join(words)
    sides = (one.text, units(one.text)), (target, units(target))
    share_JI = np.random.default_rng(seed).dirichlet(np.full(max(len(sides[0][1]), 1), 0.2), len(sides[1][1]))
    written = render(one, place_tags(one.tags, *sides, share_JI[:, : len(sides[0][1])]))
    tags = re.compile(r"<[^>]*>|`[^`]*`")
    assert sorted(tags.findall(written)) == sorted(tags.findall(marked))
    assert balanced(written)
    if "`" not in marked:
        assert tags.sub("", written) == target
    proportional = render(one, place_in_proportion(one.tags, sides[0][1], *sides[1]))
    assert sorted(tags.findall(proportional)) == sorted(tags.findall(marked))
    assert balanced(proportional)


def balanced(written: str) -> bool:
    depth = 0
    for found in re.findall(r"</?b>", written):
        depth += 1 if found == "<b>" else -1
        if depth < 0:
            return False
    return not depth


def test_places_that_no_alignment_is_needed_for() -> None:
    spans = units("one two")
    assert not needs_alignment([Tag(0, 7, "<b>", "</b>"), Tag(7, 7, "<br/>")], spans)
    assert needs_alignment([Tag(0, 3, "<b>", "</b>")], spans)
    assert needs_alignment([Tag(4, 4, "<br/>")], spans)


def test_shares_without_attention_are_monotone() -> None:
    share_JI = diagonal(5, 3)
    assert share_JI.sum(1).tolist() == [1] * 5
    assert all(one <= two for one, two in pairwise(share_JI.argmax(1).tolist()))

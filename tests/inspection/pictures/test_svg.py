"""SVG pictures are valid, complete, safe, and darker for larger weights."""

import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.inspection.pictures.svg import ArcDiagram, arc_diagrams, describe, heads, heatmap, text_width
from regard.inspection.pictures.terminal_heatmap import ColourScheme, bars

SVG = "{http://www.w3.org/2000/svg}"
EVIL = ['<img onerror="alert()">', "</svg><script>alert(1)</script>", "a&b", "\x00\x1b\ud800\ufffe", "\"'"]


def weights(*shape: int) -> np.ndarray:
    scores = np.exp(np.random.default_rng(5).normal(size=shape) * 2)
    return scores / scores.sum(-1, keepdims=True)


def drawn(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text.encode("utf-8"))


def cells(root: ElementTree.Element) -> list[ElementTree.Element]:
    return [cell for group in root.iter(f"{SVG}g") if group.get("class") == "ink" for cell in group.iter(f"{SVG}rect")]


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (13, 13)])
def test_a_square_for_each_weight_the_darker_the_larger(shape: tuple[int, int]) -> None:
    weight_QK = weights(*shape)
    root = drawn(heatmap(weight_QK, [f"q{i}" for i in range(shape[0])], [f"k{i}" for i in range(shape[1])]))
    found = cells(root)
    assert len(found) == weight_QK.size
    opacity = [float(cell.get("fill-opacity", "nan")) for cell in found]
    np.testing.assert_allclose(opacity, (weight_QK / weight_QK.max()).ravel(), atol=6e-4)
    assert [(c.get("x"), c.get("y")) for c in found] == sorted(
        ((c.get("x"), c.get("y")) for c in found), key=lambda p: (float(p[1] or 0), float(p[0] or 0))
    )
    names = [cell[0].text for cell in found]
    assert names[0] == f"q0 → k0: {weight_QK[0, 0]:.3f}"


def test_no_token_becomes_markup() -> None:
    text = heatmap(weights(5, 5), EVIL, EVIL, title=EVIL[0], note=EVIL[1])
    root = drawn(text)
    tags = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert tags <= {"svg", "title", "desc", "style", "rect", "text", "g", "path"}
    assert "<img" not in text
    assert "<script" not in text
    assert any(element.text == EVIL[0] for element in root.iter(f"{SVG}text") if not element.get("class"))
    assert not any(name.startswith("on") for element in root.iter() for name in element.attrib)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(max_size=40), min_size=1, max_size=4))
def test_any_text_gives_valid_xml(words: list[str]) -> None:
    weight_QK = weights(len(words), len(words))
    drawn(heatmap(weight_QK, words, words, title=words[0]))
    drawn(arc_diagrams([ArcDiagram(words, weight_QK[0], 0, words[0])], title=words[-1]))


def test_it_stands_alone_and_speaks() -> None:
    text = heatmap(weights(2, 2), ["it", "was"], ["the", "animal"], "Attention")
    root = drawn(text)
    assert root.get("role") == "img"
    assert root.find(f"{SVG}title").text == "Attention"
    assert "it to" in root.find(f"{SVG}desc").text
    assert "prefers-color-scheme: dark" in text
    assert not re.search(r"href|url\(|@import|<script|http(?!://www\.w3\.org/2000/svg)", text)


def test_everything_lies_on_the_page() -> None:
    words = ["because", "incomprehensibilities", "日本語", "."]
    root = drawn(heatmap(weights(4, 4), words, words))
    width, height = float(root.get("width", 0)), float(root.get("height", 0))
    for cell in cells(root):
        assert 0 <= float(cell.get("x", -1)) <= width - 20
        assert 0 <= float(cell.get("y", -1)) <= height - 20
    for element in root.iter(f"{SVG}text"):
        if element.get("transform"):
            left = float(re.findall(r"[-\d.]+", element.get("transform", ""))[0])
            assert left + text_width(element.text or "") * 0.71 <= width


def test_a_small_picture_for_each_head() -> None:
    root = drawn(heads(weights(6, 4, 5), [f"head {h}" for h in range(6)]))
    assert len(cells(root)) == 6 * 4 * 5
    assert sum(element.text == f"head {h}" for h in range(6) for element in root.iter(f"{SVG}text")) == 6


def test_arcs_run_from_the_query_to_what_it_attends_to() -> None:
    words = ["The", "animal", "slept", "because", "it"]
    weight_K = np.array([0.01, 0.7, 0.2, 0.01, 0.08])
    root = drawn(arc_diagrams([ArcDiagram(words, weight_K, 4, "one head")]))
    lines = [element for element in root.iter(f"{SVG}path") if element.get("class") == "line"]
    assert len(lines) == 2  # weights below two per cent and the word itself have none
    thick = [float(line.get("stroke-width", 0)) for line in lines]
    assert thick[0] > thick[1]
    assert len({line.get("d", "").split("C")[0] for line in lines}) == 1  # all start over "it"
    assert describe(ArcDiagram(words, weight_K, 4)) == "it attends to animal 70%, slept 20%, it 8%."


def test_arcs_in_the_terminal_are_bars() -> None:
    text = bars(ArcDiagram(["The", "animal", "it"], np.array([0.1, 0.6, 0.3]), 2, "head 1"), ColourScheme())
    lines = text.splitlines()
    assert lines[0] == "head 1"
    assert lines[3].startswith(">")
    lengths = [line.count("█") for line in lines[1:]]
    assert lengths[1] > lengths[2] > lengths[0] > 0

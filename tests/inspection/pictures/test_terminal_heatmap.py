"""Terminal heat maps and their colours: weights in their places, no over-long line, and a note on what is left out."""

import re
from itertools import pairwise

import numpy as np
import pytest

from regard.inspection.pictures.terminal_heatmap import (
    RAMP_256,
    ROWS,
    SHADES_ASCII,
    ColourScheme,
    colour,
    ground,
    heads,
    heatmap,
    luminance,
    paint,
    scale,
    shade,
    thumbnail,
)
from regard.text.terminal import width

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
WORDS = ["The", "animal", "didn't", "cross", "the", "street", "because", "it", "was", "too", "tired", ".", "</s>"]


def cube(index: int) -> tuple[int, int, int]:
    """The colour of an xterm 256 index, from the definition of its cube and its greys."""
    if index >= 232:
        return (8 + 10 * (index - 232),) * 3
    levels = (0, 95, 135, 175, 215, 255)
    red, rest = divmod(index - 16, 36)
    return levels[red], levels[rest // 6], levels[rest % 6]


def test_luminance_rises_with_the_weight() -> None:
    for ramp in ([colour(i / 100) for i in range(101)], map(cube, RAMP_256)):
        assert all(a < b for a, b in pairwise(map(luminance, ramp)))


@pytest.mark.parametrize("unicode", [True, False])
def test_shades_rise(unicode: bool) -> None:
    look = ColourScheme(unicode=unicode)
    places = [look.shades.index(shade(i / 50, look)) for i in range(51)]
    assert places == sorted(places)
    assert (places[0], places[-1]) == (0, len(look.shades) - 1)


@pytest.mark.parametrize("colours", ["true", "256", "16", "none"])
@pytest.mark.parametrize("share", [-1.0, 0.0, 0.3, 1.0, 2.0])
@pytest.mark.parametrize("cells", [1, 2, 4])
def test_a_cell_has_its_cells(colours: str, share: float, cells: int) -> None:
    cell = paint(share, "30", cells, ColourScheme(colours))
    assert width(ESCAPE.sub("", cell)) == cells


def test_a_terminal_gets_no_more_than_it_can_show() -> None:
    assert "\x1b" not in paint(0.7, "70", 4, ColourScheme("none")) + scale(0.7, ColourScheme("none"))
    assert (scale(0.5, ColourScheme(unicode=False)) + SHADES_ASCII).isascii()
    assert ground(0.5, ColourScheme("true")).replace("[48;", "[38;") == ground(0.5, ColourScheme("true"), front=True)


def weights(*shape: int) -> np.ndarray:
    scores = np.exp(np.random.default_rng(3).normal(size=shape) * 2)
    return scores / scores.sum(-1, keepdims=True)


@pytest.mark.one_of(4)
@pytest.mark.parametrize("colours", ["true", "256", "16", "none"])
@pytest.mark.parametrize("columns", [20, 40, 80, 200])
@pytest.mark.parametrize("count", [1, 5, 13, 70])
def test_no_line_leaves_the_screen(colours: str, columns: int, count: int) -> None:
    names = [WORDS[i % 13] for i in range(count)]
    text = heatmap(weights(count, count), names, names, ColourScheme(colours, columns=columns), "A title 言葉\n" * 99)
    picture = [line for line in text.splitlines() if not line.startswith("(")]
    assert max(width(ESCAPE.sub("", line)) for line in picture) <= columns
    assert ("left out" in text) == (count == 70 or (count == 13 and columns == 20))


def named_colours(line: str, ground: int) -> list[tuple[int, ...]]:
    return [tuple(map(int, found)) for found in re.findall(rf"\x1b\[{ground};2;(\d+);(\d+);(\d+)m", line)]


def test_every_weight_in_its_place() -> None:
    weight_QK = weights(4, 5)
    text = heatmap(weight_QK, WORDS[:4], WORDS[:5], ColourScheme("true"))
    rows = [line for line in text.splitlines() if "\x1b[48" in line][:4]
    for row, weight_K in zip(rows, weight_QK, strict=True):
        assert named_colours(row, 48) == [colour(w / weight_QK.max()) for w in weight_K]


def test_percentages_are_those_of_the_weights() -> None:
    text = heatmap(np.array([[0.75, 0.25], [0.05, 0.95]]), ["a", "b"], ["c", "d"], ColourScheme())
    _, first, second, *_ = text.splitlines()
    assert all(number in first for number in ("75", "25"))
    assert [number in second for number in ("95", "05", " 5")] == [True, False, False]


def test_all_labels_are_there() -> None:
    text = heatmap(weights(13, 13), WORDS, WORDS, ColourScheme(), "a title")
    assert text.startswith("a title\n")
    for word in WORDS:
        assert re.search(rf"^ *{re.escape(word)} ", text, re.MULTILINE)


def test_wide_characters_keep_the_grid() -> None:
    text = heatmap(weights(2, 3), ["猫", "cat"], ["日本語", "x", "e\u0301"], ColourScheme())
    rows = text.splitlines()[1:3]
    assert len({width(row) for row in rows}) == 1


def test_a_token_cannot_steer_the_terminal() -> None:
    text = heatmap(weights(1, 2), ["\x1b[2J"], ["\x07", "\u202eabc"], ColourScheme())
    assert not set(text) & set("\x1b\x07\u202e")


def test_half_blocks_hold_two_rows_each() -> None:
    weight_QK = weights(3, 4)
    lines = thumbnail(weight_QK, ColourScheme("true"))
    assert len(lines) == 2
    for code, weight_K in ((38, weight_QK[0]), (48, weight_QK[1])):
        assert named_colours(lines[0], code) == [colour(w / weight_QK.max()) for w in weight_K]


@pytest.mark.parametrize("colours", ["true", "none"])
@pytest.mark.parametrize("columns", [30, 80, 120])
def test_all_heads_are_named_and_fit(colours: str, columns: int) -> None:
    names = [f"head {h + 1}" for h in range(8)]
    title = f"layer 1: {'a long sentence ' * 20}"
    text = heads(weights(8, 13, 13), names, ColourScheme(colours, columns=columns), title)
    assert text.startswith("layer 1: a long sentence")
    assert all(name in text for name in names)
    assert max(width(ESCAPE.sub("", line)) for line in text.splitlines()) <= columns


def test_long_sentences_are_cropped_with_a_note() -> None:
    assert "left out" in heads(weights(1, ROWS + 5, 100), ["head 1"], ColourScheme())
    assert "left out" not in heads(weights(1, ROWS, 80), ["head 1"], ColourScheme())

"""Embeddings on the page, compared with the model: neighbours, map, layer paths, positions."""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from regard.inspection.forward.inputs import text_inputs
from regard.inspection.forward.outputs import beam_search, prepare_search
from regard.inspection.questions.vectors import Plane, layer_paths, nearest
from regard.models.ablation import Ablations
from tests.page.language import pairs
from tests.page.numbers import apart, chance, clean, like, number, percent, places
from tests.page.reading import BEFORE, FRAME, ONE, opened, soon
from tests.page.view import Watch


def table(task: Any, side: str) -> tuple[Any, NDArray[Any]]:
    """Tokenizer and embeddings of what is read, or written."""
    tokenizer = getattr(task.vocabularies, side) if task.name == "translation" else task.assets.tokenizer
    stack = "decoder" if side == "target" or task.name == "language-model" else "encoder"
    weight_VD = getattr(task.model, stack).input.tokens.weight[: tokenizer.size]
    return tokenizer, weight_VD.float().numpy()


def unplaced(piece: str) -> str:
    """A piece of a table: a dot before what goes on with a word."""
    return f"·{clean(piece)}" if re.match(r"[^\W_A-ZÄÖÜ]", piece) else clean(piece)


def steers(tokenizer: Any, id: int) -> bool:
    """Whether a piece is nothing but control characters, other than tabs and ends of lines."""
    codes = re.findall("<0x([0-9A-F]{2})>", piece := tokenizer.piece(id))
    return 6 * len(codes) == len(piece) and all(int(code, 16) not in (9, 10) for code in codes)


@pytest.mark.long(minutes=0.2)
@pytest.mark.parametrize(
    ("name", "side", "word"),
    [
        ("translator", "source", "fox"),
        ("translator", "target", "Fuchs"),
        ("recurrent", "source", "fox"),
        ("words", "source", "river"),
        ("writer", "source", "river"),
    ],
)
def test_the_nearest_words(
    served: str, view: Watch, task: Callable[[str], Any], name: str, side: str, word: str
) -> None:
    """Twelve of all pieces that are text, by their cosines in the table; the map says what share it shows."""
    shown = opened(view, served, name, view="words")
    if side == "target":
        shown.get_by_role("radio", name="what is written").click()
    shown.get_by_role("textbox", name="or a word").fill(word)
    heading = shown.get_by_role("heading", name="Nearest to")
    soon(shown, heading.inner_text, lambda text: text == f"Nearest to {word}")
    tokenizer, vector_VD = table(task(name), side)
    (id,) = tokenizer.encode(f" {word}").ids
    readable = [one for one in tokenizer.ordinary.tolist() if not tokenizer.is_byte(one) and not steers(tokenizer, one)]
    wanted = nearest(vector_VD[readable], readable.index(id), 12)
    seen = (
        heading.locator("xpath=..")
        .locator("ol")
        .evaluate("list => [...list.children].map(one => [one.children[0].innerText, one.children[2].innerText])")
    )
    assert len(seen) == 12
    for (piece, cosine), (place, value) in zip(seen, wanted, strict=True):
        assert (piece, cosine in like(places, value)) == (unplaced(tokenizer.piece(readable[place])), True)
    untrained = task(name).unseen_pieces(side) or ()  # which the map leaves out
    mapped = [one for one in readable if one not in untrained]
    told = soon(shown, shown.get_by_text("these two directions show").inner_text, lambda text: "pieces" in text)
    assert any(
        f"{len(mapped):,} pieces; these two directions show {one} of" in told
        for one in like(percent, Plane.fit(vector_VD[mapped]).share)
    )


@pytest.mark.long(minutes=0.1)
@pytest.mark.parametrize(("name", "stack"), [("translator", "encoder"), ("writer", "decoder")])
def test_a_word_on_its_way_through_the_layers(
    served: str, view: Watch, task: Callable[[str], Any], name: str, stack: str
) -> None:
    """The cosine of a token in two sentences, as it enters and behind the last layer."""
    other = pairs("test")[7].source if name == "translator" else "The wolf couldn't cross"
    shown = opened(view, served, name, view="words")
    shown.get_by_role("textbox", name="second sentence").fill(other)
    seen = [text_inputs(task(name), text) for text in (BEFORE[name], other)]
    second = shown.get_by_role("group", name="Tokens of the second sentence").get_by_role("button")
    soon(
        shown,
        second.all_inner_texts,
        lambda texts: [text.lstrip("·") for text in texts] == [clean(one.text) for one in seen[1].source],
    )
    pair = (2, 3)
    shown.get_by_role("group", name="Tokens of the first sentence").get_by_role("button").nth(pair[0]).click()
    second.nth(pair[1]).click()
    alike = layer_paths(seen, stack).layer_cosines((0, pair[0]), (1, pair[1]))  # type: ignore[arg-type]
    said = shown.get_by_text("How alike")
    ends = [like(number, alike[0]), like(number, alike[-1])]
    names = [clean(one.source[place].text) for one, place in zip(seen, pair, strict=True)]
    begin, end = ("|".join(some) for some in (ends[0], ends[1]))
    wanted = f"How alike ·?{names[0]} and ·?{names[1]} are: a cosine of ({begin}) as they enter, ({end}) behind"
    soon(shown, said.inner_text, lambda text: re.match(wanted, text) is not None)


@pytest.mark.long(minutes=0.1)
def test_sinusoids(served: str, view: Watch) -> None:
    """Each dimension is the wave of the paper, and how alike positions are follows from it."""
    shown = opened(view, served, "translator", view="positions", text=ONE.source)
    size, count = 96, 64
    dimension_D, place_T = np.arange(size), np.arange(count)
    angle_TD = place_T[:, None] / 10_000 ** (2 * (dimension_D // 2) / size)
    vector_TD = np.where(dimension_D % 2, np.cos(angle_TD), np.sin(angle_TD))
    section = shown.get_by_role("region", name="What is added", exact=True)
    drawing = section.get_by_role("img", name="What is added at each position")
    for key, row, column in (("ArrowRight", 0, 0), ("ArrowDown", 1, 0), ("ArrowRight", 1, 1), ("ArrowDown", 2, 1)):
        drawing.press(key)
        shown.evaluate(FRAME)
        said = section.locator("output").first.inner_text()
        head, _, told = said.rpartition(": ")
        assert head == f"position {row}, dimension {column}"
        assert told in like(number, float(vector_TD[row, column]))
    unit_TD = vector_TD / np.linalg.norm(vector_TD, axis=1, keepdims=True)
    alike_TT = unit_TD @ unit_TD.T
    far = [float(np.diagonal(alike_TT, one).mean()) for one in (1, count - 1)]
    order, waves = (
        shown.get_by_role("region", name=name, exact=True).bounding_box()
        for name in ("Without positions", "What is added")
    )
    assert order is not None
    assert waves is not None
    assert order["y"] < waves["y"]
    told = shown.get_by_role("region", name="How alike positions are").locator("p.prose").inner_text()
    found = re.search(r"neighbours have a cosine of (\S+) on average, those furthest apart one of (\S+)\.", told)
    assert found
    assert found[1] in like(number, far[0])
    assert found[2] in like(number, far[1])


def together(task: Any, text: str, ids: tuple[int, ...], changes: Ablations) -> float:
    """The logarithm of how probable one output is before a text."""
    import torch

    with changes.apply(task.recipe.model), torch.inference_mode():
        seen = text_inputs(task, text, ids)
        score_TV = task.model.output.scores(seen.run()).double().log_softmax(1)
        return float(score_TV[range(len(seen.written_ids)), list(seen.written_ids)].sum())


def likely(logarithm: float, more: int = 0) -> str:
    """A probability that may be smaller than people can read, with so many digits more."""
    if logarithm >= math.log(1e-3):
        return chance(math.exp(logarithm), more)
    first, power = f"{math.exp(logarithm):.{1 + more}e}".split("e-")
    if int(power) <= 7:
        return f"{float(first) * 10 ** (2 - int(power)):.{int(power) + more - 1}f}".rstrip("0") + " %"
    return f"{float(first):g} × 10−{int(power) - 2} %"


@pytest.mark.long(minutes=0.1)
def test_two_words_change_places(served: str, view: Watch, task: Callable[[str], Any]) -> None:
    """How probable the same output is before both orders, with positions and without, and what is said of that."""
    text = "The fox doesn't cross the street because it is too tired."
    shown, model = opened(view, served, "translator", view="positions", text=text), task("translator")
    ids = beam_search(prepare_search(model, text, 1), 1)[0].tokens
    for first, second in (("fox", "street"), ("street", "tired")):
        order = text.replace(first, "?").replace(second, first).replace("?", second)
        logs = [
            together(model, one, ids, how) for one in (text, order) for how in (Ablations(), Ablations(positions=False))
        ]
        texts = shown.locator(".orders .read p")
        soon(shown, texts.all_inner_texts, lambda found, order=order: found == [text, order])
        soon(
            shown,
            shown.locator(".orders .said b").all_inner_texts,
            lambda seen, logs=logs: (
                len(seen) == 4
                and all(
                    tuple(one.replace("\xa0", " ") for one in seen[at::2]) in apart(likely, logs[at], logs[at + 2])
                    for at in (0, 1)
                )
            ),
        )
        told = shown.get_by_role("region", name="Without positions").locator("p.prose[role=status]").last.inner_text()
        ratio = math.exp(abs(logs[0] - logs[2]))
        if ratio < 1.05:
            assert "is about as probable when the two words are exchanged" in told
        else:
            rounded = number(ratio, 2) if ratio < 10 else f"{int(float(f'{ratio:.2g}')):,}"
            more = "less" if logs[2] < logs[0] else "more"
            assert f"{rounded if ratio < 1e6 else 'more than a million'} times {more} probable when" in told
        assert "Without positions both orders are one and the same to the model" in told
        shown.get_by_role("group", name="The two words that change places").get_by_role("button", name="tired").click()


@pytest.mark.long(minutes=0.1)
def test_the_piece_to_begin_with(served: str, view: Watch) -> None:
    """Of a sentence the word for a thing; where a word is kept in another view, that one."""
    text = "The fox crosses the street because it is tired."
    shown = opened(view, served, "translator", view="words", text=text)
    pressed = shown.get_by_role("group", name="Tokens", exact=True).get_by_role("button", pressed=True)
    soon(shown, pressed.all_inner_texts, lambda said: [one.lstrip("·") for one in said] in (["fox"], ["street"]))
    kept = opened(view, served, "translator", view="words", kind="encoder", layer=1, head=1, token=1, text=text)
    pressed = kept.get_by_role("group", name="Tokens", exact=True).get_by_role("button", pressed=True)
    soon(kept, pressed.all_inner_texts, lambda said: [one.lstrip("·") for one in said] == ["fox"])


@pytest.mark.long(minutes=0.1)
def test_another_order_marks_no_two_words(served: str, view: Watch) -> None:
    shown = opened(view, served, "translator", view="positions")
    shown.get_by_text("The two marked words change places").wait_for()
    shown.get_by_role("button", name="another order").click()
    shown.get_by_text("stand in an order of chance").wait_for()
    assert shown.get_by_text("The two marked words change places").count() == 0

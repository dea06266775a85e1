"""``model.attention`` gives the page's numbers, with labels that fit them, and a notebook the page or its picture."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import regard
from regard.inspection.folders.models import Models
from regard.inspection.questions.answers import answer
from regard.inspection.questions.look import SIDES
from regard.library.attention import Figure, framed_page
from regard.system.errors import RegardError, UsageError
from tests.inspection.payloads import unpack
from tests.library.conftest import IMAGE, ModelOf, given
from tests.page.view import BROWSERS, browsing, chromium
from tests.refusals import refused
from tests.tasks.small_tasks import EVERY, PIXELS, PLACELESS, SOURCE, TARGET, before, put, recurrent, speaker

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.mark.one_of(15)
@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("positions", [True, False])
def test_numbers_and_labels_are_the_pages(
    name: str, positions: bool, model: ModelOf, folder: Callable[[str], Path]
) -> None:
    changes = {} if positions else {"changes": {"positions": False}}
    values, arrays = unpack(answer(Models([folder(name)]), "look", {**before(name), **changes}))
    asked = model(name) if positions or name in PLACELESS else model(name).without(positions=True)
    first = asked.attention(given(name))
    assert list(first.kinds) == list(values["kinds"])
    assert first.kind == ("cross" if "cross" in first.kinds else first.kinds[0])
    for kind in first.kinds:
        found = first.of(kind)
        np.testing.assert_array_equal(found.weights, arrays[f"weights.{kind}"])
        special = [token["special"] for token in values[SIDES[kind][1]]]
        for labels, side in zip((found.queries, found.keys), SIDES[kind], strict=True):
            assert list(labels.tokens) == [token["text"] for token in values[side]]
            assert labels.offsets.tolist() == [[token["start"], token["end"]] for token in values[side]]
            assert len(labels) == len(labels.tokens)
            if name != "viewer":
                assert [[word, list(places)] for word, places in labels.words] == values["words"][side]
        entropy_LH = found.entropy().mean(axis=2)
        np.testing.assert_allclose(entropy_LH, arrays[f"measures.{kind}"][..., 0], atol=1e-6)
        special_LH = found.weights[..., special].sum(axis=-1).mean(axis=2)
        np.testing.assert_allclose(special_LH, arrays[f"measures.{kind}"][..., 2], atol=1e-6)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", ["translator", "classifier", "speaker"])
def test_rollout_is_the_pages(name: str, model: ModelOf, folder: Callable[[str], Path]) -> None:
    kind = "decoder" if name == "speaker" else "encoder"
    found = model(name).attention(SOURCE, kind=kind)
    for layer in (None, 1):
        wish = {**before(name), "kind": kind, "merge": "rollout", "layer": layer}
        _, arrays = unpack(answer(Models([folder(name)]), "head", wish))
        np.testing.assert_allclose(found.rollout(layer), arrays["weight"], atol=1e-6)


def test_offsets_and_words_cover_the_text(model: ModelOf) -> None:
    found = model("translator").attention(SOURCE, TARGET)
    assert found.source == found.keys.text == SOURCE
    assert found.target == found.queries.text == TARGET
    assert "".join(SOURCE[begin:end] for begin, end in found.keys.offsets) == SOURCE
    assert [word for word, _ in found.queries.words][:2] == ["Das", "Tier"]
    assert sorted(place for _, places in found.queries.words for place in places) == list(range(len(found.queries)))
    words = found.by_word()
    assert words.shape == (3, 3, len(found.queries.words), len(found.keys.words))
    np.testing.assert_allclose(words.sum(axis=-1), 1, atol=1e-6)
    single = np.array([places[0] for _, places in found.queries.words if len(places) == 1])
    rows = [n for n, (_, places) in enumerate(found.queries.words) if len(places) == 1]
    summed = [found.weights[..., single, :][..., list(places)].sum(axis=-1) for _, places in found.keys.words]
    np.testing.assert_allclose(words[:, :, rows], np.stack(summed, axis=-1), atol=1e-6)


def test_a_line_of_pixels_is_an_image(model: ModelOf) -> None:
    line = model("viewer").attention(",".join(map(str, PIXELS)))
    np.testing.assert_array_equal(line.weights, model("viewer").attention(IMAGE).weights)
    assert line.keys.tokens[:3] == ("class", "1,1", "1,2")


@pytest.mark.one_of(9)
@pytest.mark.parametrize("name", EVERY)
def test_pictures_and_pages(name: str, model: ModelOf, tmp_path: Path) -> None:
    found = model(name).attention(given(name))
    every, one = found.plot(), found.plot(layer=1, head=1)
    assert every.svg.startswith("<svg")
    assert one.svg.startswith("<svg")
    assert every._repr_svg_() == every.svg
    path = one.save(tmp_path / "one.svg")
    assert path.read_text(encoding="utf-8") == one.svg
    html = found._repr_html_()
    assert html.count("<iframe") == 1
    assert html.count("data:image/svg+xml") == 2  # below the frame, and in the page where scripts are off
    assert "<noscript>" in found.page()
    assert type(found).__name__ in repr(found)
    assert str(len(found.keys)) in repr(found)


def test_pictures_of_words(model: ModelOf) -> None:
    found = model("translator").attention(SOURCE, TARGET)
    assert ">animal<" in found.plot(layer=1, head=1, words=True).svg
    assert "Where “es” looks" in found.plot(token="es").svg
    assert "1·2" in model("translator").without(heads=[("cross", 1, 2)]).attention(SOURCE).plot(layer=1, head=1).svg


def test_what_does_not_fit_is_named(model: ModelOf, tmp_path: Path) -> None:
    translator, viewer = model("translator"), model("viewer")
    found = translator.attention(SOURCE)
    refusals = [
        ("kind", lambda: model("classifier").attention(SOURCE, kind="cross")),
        ("kind", lambda: found.rollout()),
        ("target", lambda: model("classifier").attention(SOURCE, "good")),
        ("target", lambda: viewer.attention(IMAGE, "good")),
        ("window", lambda: viewer.attention(IMAGE, window=1)),
        ("text", lambda: viewer.attention(3)),
        ("text", lambda: translator.attention(IMAGE)),
        ("layer", lambda: found.plot(layer=9)),
        ("head", lambda: found.plot(layer=1, head=0)),
        ("layer", lambda: found.of("encoder").rollout(3)),
        ("words", lambda: viewer.attention(IMAGE).plot(words=True)),
        ("token", lambda: viewer.attention(IMAGE).plot(token="a")),
        ("one.png", lambda: found.plot().save(tmp_path / "one.png")),
    ]
    for where, call in refusals:
        with refused(UsageError, where):
            call()
    with refused(RegardError, "text"):
        translator.attention(" ")
    with refused(RegardError, "one.svg"):
        found.plot().save(tmp_path / "none" / "one.svg")


def test_a_long_text_is_seen_in_part(model: ModelOf) -> None:
    long = " ".join([SOURCE] * 9)
    with pytest.warns(UserWarning, match="part 1 of"):
        first = model("classifier").attention(long)
    assert len(first.keys) <= 40
    second = model("classifier").attention(long, window=2)
    assert second.source != first.source


def test_a_pass_too_large_for_a_page_is_a_picture(model: ModelOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.inspection.questions.export.MOST", 10)
    found = model("speaker").attention(SOURCE)
    assert found._repr_html_() == found.plot().image
    with refused(RegardError, "text"):
        found.page()


def test_a_model_without_attention_says_so(tmp_path: Path) -> None:
    found = regard.load(put(tmp_path / "model", recurrent(score="none")), device="cpu")
    with refused(RegardError, "model"):
        found.attention(SOURCE)


def test_answers_stay_of_the_weights_that_were_loaded(tmp_path: Path) -> None:
    place = put(tmp_path / "model", speaker())
    found = regard.load(place, device="cpu")
    first = found.attention(SOURCE).weights
    other = speaker()
    for weight in other.model.parameters():
        weight.data.mul_(-1.5)
    put(place, other)
    np.testing.assert_array_equal(found.without().attention(SOURCE + " ").weights[..., :3, :3], first[..., :3, :3])
    assert not np.array_equal(regard.load(place, device="cpu").attention(SOURCE).weights, first)


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    pytest.importorskip("playwright")
    if chromium() is None:
        pytest.skip(f"needs a browser: install one of {', '.join(BROWSERS)}, or name it: REGARD_CHROMIUM")
    with browsing() as found:
        yield found


def test_a_page_is_quoted_once() -> None:
    page = '<p title="a&amp;b">"x"</p><noscript>none</noscript>'
    found = framed_page(page, Figure("<svg></svg>"))
    assert "&quot;a&amp;amp;b&quot;" in found
    assert "none" not in found
    assert "SVG" in repr(Figure("<svg></svg>"))


@pytest.mark.long(minutes=0.2)
@pytest.mark.parametrize("scripts", [True, False])
def test_a_notebook_shows_the_page_or_its_picture(
    scripts: bool, browser: "Browser", model: ModelOf, tmp_path: Path
) -> None:
    file = tmp_path / "notebook.html"
    view = model("translator").attention(SOURCE)._repr_html_()
    file.write_text(f"<!doctype html><meta charset=utf-8><body>{view}", encoding="utf-8")
    with browser.new_context(java_script_enabled=scripts) as context:
        page, told = context.new_page(), list[str]()
        page.on("pageerror", lambda error: told.append(str(error)))
        page.on("console", lambda message: told.append(message.text))
        page.goto(file.as_uri())
        inside = page.frame_locator("iframe")
        if scripts:
            inside.get_by_role("button", name="layer 1 head 1:").click()
        else:
            assert inside.locator("noscript img").is_visible()
        assert told == []

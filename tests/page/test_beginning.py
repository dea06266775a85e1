"""The page starts with a meaningful head and a content word, at word level."""

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from regard.inspection.folders.models import Models
from regard.inspection.forward.passes import forward_pass
from regard.inspection.pictures.view import View
from regard.inspection.questions.first_head import first_head
from regard.inspection.requests import Request
from tests.page.numbers import clean
from tests.page.reading import BEFORE, flipped, gaze, opened, soon
from tests.page.view import Watch


@pytest.mark.long(minutes=0.2)
@pytest.mark.parametrize("name", BEFORE)
def test_the_head_to_begin_with(served: str, view: Watch, page_models: Path, name: str) -> None:
    """It does something for a word that matters, which is kept; words are whole; a head that was asked for stays."""
    models = Models([page_models / name])
    asked = Request(text=BEFORE[name])
    one = forward_pass(models, asked)
    kind = "cross" if "cross" in one.record.kinds else one.record.kinds[0]
    found = first_head(models, models.load(0), asked, one, kind)
    shown = opened(view, served, name, layer=None)
    assert shown.get_by_role("switch", name="whole words").is_checked()
    if found is None:  # a single query, or so few words that none stands behind another and its neighbour
        assert kind == "pool" or name == "writer"
        return
    shown.get_by_role("heading", name=f"head {found.layer}·{found.head}").wait_for()
    seen = View(one.record, kind, found.layer, found.head, whole=True)
    who = seen.labels()[0][found.query]
    (pressed,) = shown.locator(".columns [aria-pressed=true]").all_inner_texts()
    assert pressed == clean(who)
    weight_K = seen.heads()[1][0][found.query]
    best = clean(seen.labels()[1][int(weight_K.argmax())])
    assert gaze(shown).startswith(f"{pressed} looks at “{best}” ")
    address = parse_qs(urlsplit(shown.url).fragment)
    assert [address[one][0] for one in ("layer", "head", "token", "words")] == [
        str(found.layer),
        str(found.head),
        str(found.query),
        "1",
    ]
    last = len(one.record.weights[kind])
    again = opened(view, served, name, kind=kind, layer=last, head=1)
    again.get_by_role("heading", name=f"head {last}·1").wait_for()
    assert not again.get_by_role("switch", name="whole words").is_checked()
    assert not again.locator(".columns [aria-pressed=true]").count()


@pytest.mark.long(minutes=0.1)
def test_back_at_the_beginning(served: str, view: Watch) -> None:
    """The page's name leads there, whatever was chosen meanwhile, and for the text that is there now."""
    shown = opened(view, served, "translator", layer=None)
    first = shown.url
    shown.get_by_role("button", name="layer 1 head 4:").click()
    flipped(shown, "whole words")
    soon(shown, lambda: shown.url, lambda url: "head=4" in url and "words" not in url)
    shown.get_by_role("link", name="Regard").click()
    soon(shown, lambda: shown.url, lambda url: url == first)
    assert shown.locator(".columns [aria-pressed=true]").count() == 1

"""Bad input is reported in a sentence, markup in any input is text, and the page works on without its server."""

from __future__ import annotations

import re
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest

from tests.page.odd import HOSTILE
from tests.page.reading import BEFORE, GONE, ONE, TaskOf, Visit, address, opened
from tests.page.view import Shown, Watch, serving
from tests.tasks.small_tasks import SOURCE, put, translator

if TYPE_CHECKING:
    from playwright.sync_api import Dialog, Request

pytestmark = pytest.mark.long(minutes=0.1)

STRANGE = {
    "chinese": "动物没有过马路。",
    "emoji": "🦊 👩‍🚀 🇩🇪",
    "right-to-left": "القطة \u202eטוב\u202c.",
    "zero-width": "a\u200bb\u200d\ufeff \u0000 e\u0301\u0301\u0301 \u2028\ttab",
}


def works(shown: Shown, text: str, said: str) -> None:
    """A sentence is typed, and answered as ever."""
    shown.textbox.fill(text)
    shown.wrote(said)
    assert not shown.alerts()


@pytest.mark.long(minutes=0.2)
@pytest.mark.parametrize("name", ["translator", "words", "writer"])
def test_texts_that_cannot_be_read(served: str, view: Watch, task: TaskOf, name: str) -> None:
    """None or half a character: a sentence each. 100,000 are read in parts. Then all is as before."""
    shown = opened(view, served, name)
    output = shown.locator(".output").inner_text()
    shown.textbox.fill(" ")
    shown.wrote("There is nothing to look at yet: type a sentence")
    shown.textbox.fill("a " * 50_000)
    status = shown.get_by_role("group", name="Sentence: which part of the text").get_by_role("status")
    shown.soon(status.all_inner_texts, lambda told: re.match(r"part [\d,]+ of [\d,]+ ", "".join(told)))
    assert not shown.alerts()
    shown.textbox.evaluate(
        "area => { area.value = 'a \\ud800'; area.dispatchEvent(new Event('input', { bubbles: true })) }"
    )
    shown.soon(shown.alerts, lambda found: len(found) == 1 and "JSON" in found[0])
    works(shown, BEFORE[name], output)
    view.forgive("400 (Bad Request)")


@pytest.mark.long(minutes=0.2)
@pytest.mark.parametrize("name", ["translator", "tagger", "words"])
def test_texts_of_nobody_s_language(visit: Visit, name: str) -> None:
    """Nothing was learned of them, and still they are tokens that look at one another."""
    shown = visit(name)
    for text in STRANGE.values():
        shown.textbox.fill(text)
        shown.soon(lambda: shown.url, lambda url, text=text: urlencode({"text": text}) in url)
        shown.settled()
        assert not shown.alerts()
        assert shown.locator(".columns ol button").count() > 2
        shown.locator(".columns ol button").nth(1).hover()
        assert " looks at " in shown.gaze()


NONSENSE = [
    "#view=nowhere&layer=99&head=-3&kind=sideways&model=77&token=99999&snapshot=never&merge=best",
    "#off=cross.99.99+encoder.0.1&without=everything+scaling&head=1e9&layer=99999999999999999999",
    "#view=heads&kind=cross&merge=rollout&token=-1&layer=0",
    "#%E0%A4%A&&&===&text=%00%FF&view=%",
]


@pytest.mark.parametrize("fragment", NONSENSE, ids=range(len(NONSENSE)))
def test_addresses_of_nothing(served: str, view: Watch, task: TaskOf, fragment: str) -> None:
    shown = view(served, fragment)
    shown.settled()
    assert not shown.alerts()
    assert shown.get_by_role("group", name="Heads").get_by_role("button", pressed=True).count() == (
        "rollout" not in fragment
    )
    works(shown, ONE.source, task("translator").translate(ONE.source, beam=1))


def test_an_image_that_is_not_there(served: str, view: Watch) -> None:
    """Another can be chosen."""
    shown = view(served, address("digits", image=99999))
    shown.soon(shown.alerts, lambda found: len(found) == 1 and found[0].startswith("There is no image "))
    shown.get_by_role("button", name="image 2, ").click()
    shown.soon(shown.alerts, lambda found: not found)
    shown.get_by_role("img", name="The image in 4 by 4 patches").wait_for()
    view.forgive("400 (Bad Request)")


@pytest.mark.parametrize("tab", ["", "equation", "compare"])
def test_a_model_without_attention(served_odd: str, view: Watch, tab: str) -> None:
    """It is said; what can be seen is seen."""
    shown = view(served_odd, "#" + urlencode({"model": 1, "text": SOURCE, "view": tab, "kind": "cross"}))
    shown.settled()
    assert shown.get_by_text("This model has no attention, so there are no heads to look at.").is_visible()
    assert shown.tabs.all_inner_texts() == ["Figure 1", "Writing", "Words", "Soft dictionary"]
    shown.locator("figure[aria-label='Figure 1'] svg").wait_for()
    assert not shown.alerts()


@pytest.mark.long(minutes=0.2)
def test_the_server_is_killed(view: Watch, tmp_path: Path) -> None:
    """The same sentence wherever something is asked; what needs no server still works, and nothing waits for ever."""
    with ExitStack() as stack:
        address = stack.enter_context(serving(put(tmp_path / "model", translator()), log=tmp_path / "stderr"))
        shown = view(address, "#" + urlencode({"text": SOURCE}))
        shown.settled()
        stack.close()
        for tab in shown.tabs.all():
            tab.click()
            shown.wait_for_timeout(300)
            assert set(shown.problems()) <= {GONE}
        shown.turn_to("Heads")
        shown.get_by_role("button", name="layer 2 head 1:").click()
        shown.locator(".columns ol button").nth(1).hover()
        assert " looks at " in shown.gaze()
        shown.textbox.fill("The animal")
        shown.soon(shown.problems, lambda found: found == [GONE])
        assert shown.locator(".pane[aria-busy=false]").count() == 1
        for tab in shown.tabs.all():
            tab.click()
            shown.wait_for_timeout(300)
            assert set(shown.problems()) == ({GONE} if shown.locator(".pane").count() else set())
        shown.turn_to("Heads")
        assert shown.textbox.input_value() == "The animal"
    view.forgive("ERR_CONNECTION_REFUSED")


def trapped(shown: Shown) -> Shown:
    caught: list[str] = []

    def spoke(dialog: Dialog) -> None:
        caught.append(dialog.message)
        dialog.dismiss()

    def asked(request: Request) -> None:
        if not request.url.removeprefix(shown.url.split("#")[0]).startswith(("api/", "assets/")):
            caught.append(request.url)

    shown.on("dialog", spoke)
    shown.on("request", asked)
    shown.caught = caught  # type: ignore[attr-defined]
    return shown


def check(shown: Shown) -> None:
    """It is there as text, where the view shows the sentence, and as nothing else."""
    assert not shown.locator(".pane").count() or HOSTILE in shown.locator("body").inner_text() + "".join(
        one.input_value() for one in shown.locator("textarea").all()
    )
    assert shown.locator("img, [onerror], script:not([src]), iframe").count() == 0
    assert not shown.caught  # type: ignore[attr-defined]


def every_view(shown: Shown) -> None:
    for _ in shown.views():
        check(shown)
        assert not shown.alerts()


@pytest.mark.long(minutes=0.2)
@pytest.mark.parametrize("name", ["translator", "tagger", "writer"])
def test_typed(visit: Visit, name: str) -> None:
    """As the sentence, and in every view of it."""
    shown = trapped(visit(name))
    shown.textbox.fill(HOSTILE)
    shown.soon(lambda: "onerror" in shown.url)
    every_view(shown)


def test_typed_elsewhere(visit: Visit) -> None:
    """As what is to be written, as key and query of the dictionary, as a word to look up, as a second sentence."""
    shown = trapped(visit("translator"))
    shown.get_by_role("button", name="make it write something else").click()
    shown.get_by_role("textbox", name="what the model is made to write").fill(HOSTILE)
    shown.settled()
    check(shown)
    fields = {
        "Soft dictionary": ("Key 1", "The word that is asked for"),
        "Words": ("or a word", "second sentence"),
        "Compare": ("The second: what",),
    }
    for tab, names in fields.items():
        shown.turn_to(tab)
        if tab == "Soft dictionary":
            shown.choose("Keys", "keys are words")
        for name in names:
            shown.get_by_role("textbox", name=name).fill(HOSTILE)
            shown.wait_for_timeout(250)
            shown.settled()
            check(shown)
    assert not shown.alerts()


def test_in_an_address(served: str, view: Watch) -> None:
    """In every part of it."""
    names = "view kind layer head merge words token model snapshot text target image off without".split()
    names += ["text.2", "target.2", "off.2"]
    for more in ({}, {"view": "compare"}):
        shown = trapped(view(served, "#" + urlencode(dict.fromkeys(names, HOSTILE) | more)))
        shown.settled()
        every_view(shown)


def test_in_names_and_logs(served_odd: str, view: Watch) -> None:
    """A model folder's name, a label, a score, sample outputs, the names of gradients."""
    shown = trapped(view(served_odd, "#" + urlencode({"model": 2, "text": "The animal", "view": "training"})))
    shown.settled()
    assert shown.title() == f"{HOSTILE} · Regard"
    assert shown.locator(".wrote").inner_text() == 2 * HOSTILE
    shown.turn_to("Heads")
    assert HOSTILE in shown.locator(".classes").inner_text()
    every_view(shown)
    with shown.expect_download() as found:
        shown.get_by_role("button", name="Save …").click()
        shown.get_by_role("button", name="Numbers (JSON)").click()
    assert found.value.suggested_filename == "img-src-x-onerror-alert-1-attention.json"
    check(shown)


def test_in_what_the_server_says(served: str, view: Watch) -> None:
    """A sentence that tells what is wrong may hold what was asked."""
    shown = trapped(opened(view, served, "translator"))
    sentence: dict[str, Any] = {"error": f"there is no {HOSTILE}", "where": HOSTILE}
    shown.route("**/api/write", lambda route: route.fulfill(status=400, json=sentence))
    shown.textbox.fill("The fox")
    shown.soon(shown.alerts, lambda said: said == [f"T{sentence['error'][1:]}."])
    check(shown)
    view.forgive("400 (Bad Request)")

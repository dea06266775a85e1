"""The page for people, in a browser: each act by mouse and by keyboard, on any screen, by any eyes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.page.view import BROWSERS, Shown, Watch, browsing, chromium
from tests.serving.answers import INSECURE, ORIGIN, Answers

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator

pytestmark = pytest.mark.long(minutes=0.1)

Open = Callable[..., Shown]

TEXT = "The dog is red. A purple 🐕 man is too tired."
GERMAN = "Das Hund ist rot. Ein elprup 🐕 Mann ist zu müde."


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    pytest.importorskip("playwright")
    if chromium() is None:
        pytest.skip(f"needs a browser: install one of {', '.join(BROWSERS)}, or name it: REGARD_CHROMIUM")
    with browsing() as browser:
        yield browser


@pytest.fixture
def watch(browser: Browser) -> Iterator[Watch]:
    watch = Watch(browser)
    yield watch
    watch.close()


@pytest.fixture
def view(watch: Watch) -> Open:
    """``view(answers, text)`` opens the page of a reader of German and types a text; what is said of it is awaited."""

    def opened(answers: Answers | None = None, text: str | None = None, origin: str = ORIGIN, **options: Any) -> Shown:
        shown = watch(origin, answers=answers or Answers(), locale="de-DE", **options)
        if text is not None:
            source(shown).fill(text)
            target(shown).get_by_role("button").first.wait_for()
        return shown

    return opened


def source(shown: Shown) -> Locator:
    return shown.get_by_role("textbox", name="Text to translate")  # type: ignore[no-any-return]


def target(shown: Shown) -> Locator:
    return shown.get_by_role("group", name="Translation", exact=True)  # type: ignore[no-any-return]


def word(shown: Shown, name: str) -> Locator:
    return target(shown).get_by_role("button", name=name, exact=True)


def caption(shown: Shown) -> str:
    return str(shown.locator("#told").inner_text()).replace("\u00a0", " ")


def says(shown: Shown, text: str) -> None:
    shown.soon(target(shown).inner_text, lambda said: said == text)


def dark_words(place: Locator, side: str) -> list[str]:
    """The words of a side that are shaded, the darkest first."""
    found = place.page.locator(f"{side} span").evaluate_all(
        "all => all.map(one => [Number(one.style.getPropertyValue('--shade')), one.textContent])"
    )
    return [text for shade, text in sorted(found, reverse=True) if shade > 0]


def focused(shown: Shown) -> str:
    return str(shown.evaluate("document.activeElement.getAttribute('aria-label') ?? document.activeElement.innerText"))


def test_typing_shows_the_translation(view: Open) -> None:
    answers = Answers()
    shown = view(answers)
    shown.get_by_text("The translation appears here.").wait_for()
    source(shown).press_sequentially("The dog is red.", delay=5)
    says(shown, "Das Hund ist rot.")
    asked = {"texts": ["The dog is red."], "source": "en", "target": "de", "details": True}
    assert answers.questions("translate")[-1] == asked
    assert len(answers.questions("translate")) < 15  # not at each letter
    shown.soon(shown.locator("[role=status]").first.inner_text, lambda said: said == "Das Hund ist rot.")
    assert shown.get_by_label("Translate from").evaluate("one => one.selectedOptions[0].text") == "English (detected)"
    shown.get_by_role("button", name="Clear").click()
    shown.get_by_text("The translation appears here.").wait_for()
    assert focused(shown) == "Text to translate"


def test_a_word_says_what_it_looked_at(view: Open) -> None:
    shown = view(text=TEXT)
    word(shown, "Mann").hover()
    assert caption(shown).startswith("“Mann” looked at “man” 64 %, “🐕” 14 %")
    assert dark_words(target(shown), ".copy")[:2] == ["man", "🐕"]
    assert shown.locator(".copy .linked").all_inner_texts() == ["man"]
    shown.mouse.move(2, 2)
    assert not dark_words(target(shown), ".copy")
    word(shown, "Das").focus()
    assert caption(shown).startswith("“Das” looked at “The”")
    for _ in range(2):
        shown.keyboard.press("ArrowRight")
    assert caption(shown).startswith("“ist” looked at “is”")
    shown.keyboard.press("End")
    assert caption(shown).startswith("“müde” looked at “tired”")
    assert target(shown).locator("[tabindex='0']").inner_text() == "müde."
    described = word(shown, "müde.").get_attribute("aria-describedby")
    assert described == "told"


def test_a_word_of_the_text_says_what_looked_at_it(view: Open) -> None:
    shown = view(text=TEXT)
    box = shown.locator(".copy span", has_text="dog").bounding_box()
    assert box
    shown.mouse.move(box["x"] + 5, box["y"] + 5)
    assert caption(shown).startswith("At “dog” looked “Hund” 68 %")
    assert dark_words(target(shown), ".translation")[:1] == ["Hund"]
    shown.mouse.move(2, 2)
    source(shown).focus()
    shown.keyboard.press("Control+Home")
    assert caption(shown).startswith("At “The” looked “Das”")
    for _ in range(3):
        shown.keyboard.press("Control+ArrowRight")
    assert caption(shown).startswith("At “is” looked “ist”")
    shown.keyboard.press("Control+End")
    shown.keyboard.type(" Two.")
    says(shown, f"{GERMAN} Zwei.")
    assert not caption(shown).startswith("At")


def test_a_long_text(view: Open) -> None:
    """What a word looked at is seen beside it, and of a text that grows only what changed is asked for."""
    answers = Answers()
    shown = view(answers, f"{TEXT}\n" * 25, height=500)
    word(shown, "Mann").nth(8).hover()
    assert caption(shown).startswith("“Mann” looked at “man”")
    box = shown.locator("#told").bounding_box()
    assert 0 < box["y"] < box["y"] + box["height"] <= 500
    source(shown).press("Control+End")
    shown.keyboard.type("The dog.")
    shown.soon(target(shown).inner_text, lambda said: said.endswith("\nDas Hund."))
    assert answers.questions("translate")[-1]["texts"] == ["The dog."]


def chosen_by_mouse(shown: Shown) -> None:
    word(shown, "ist").first.click()
    shown.get_by_role("menuitem", name="dieses").click()


def chosen_by_keyboard(shown: Shown) -> None:
    word(shown, "Das").focus()
    for key in ("ArrowRight", "ArrowRight", "Enter"):
        shown.keyboard.press(key)
    shown.soon(lambda: focused(shown), lambda said: said.startswith("jenes"))
    assert caption(shown).startswith("“ist” looked at “is”")
    shown.keyboard.press("ArrowDown")
    shown.keyboard.press("Enter")


def chosen_by_finger(shown: Shown) -> None:
    word(shown, "ist").first.tap()
    menu = shown.get_by_role("menuitem", name="dieses")
    menu.wait_for()
    assert caption(shown).startswith("“ist” looked at “is”")
    menu.tap()


@pytest.mark.parametrize("act", [chosen_by_mouse, chosen_by_keyboard, chosen_by_finger])
def test_another_word(view: Open, act: Callable[[Shown], None]) -> None:
    """It stays, the rest of its sentence is searched again, and all else is as it was."""
    answers = Answers()
    shown = view(answers, TEXT, has_touch=act is chosen_by_finger)
    act(shown)
    says(shown, "Das Hund dieses ROT. Ein elprup 🐕 Mann ist zu müde.")
    [asked] = answers.questions("words")
    assert asked == {
        "text": "The dog is red.",
        "source": "en",
        "target": "de",
        "n": 6,
        "translation": "Das Hund ist rot.",
    }
    assert answers.questions("translate")[-1]["prefixes"] == ["Das Hund dieses"]
    assert answers.questions("translate")[-1]["texts"] == ["The dog is red."]
    assert target(shown).locator(".chosen").all_inner_texts() == ["dieses"]
    source(shown).press_sequentially(" Two.")
    says(shown, "Das Hund dieses ROT. Ein elprup 🐕 Mann ist zu müde. Zwei.")
    shown.get_by_role("button", name="Undo").press("Enter")
    says(shown, f"{GERMAN} Zwei.")
    assert not shown.get_by_role("button", name="Undo").count()


def test_the_menu_is_left_by_escape(view: Open) -> None:
    shown = view(text=TEXT)
    word(shown, "Hund").focus()
    shown.keyboard.press("Space")
    menu = shown.get_by_role("menu", name="Other words for Hund")
    menu.get_by_role("menuitem").nth(2).wait_for()
    shown.keyboard.press("ArrowUp")
    shown.soon(lambda: focused(shown), lambda said: said.startswith("welches"))
    shown.keyboard.press("Escape")
    assert not menu.is_visible()
    assert focused(shown) == "Hund"
    says(shown, GERMAN)


def test_no_other_word(view: Open, watch: Watch) -> None:
    """Of a word that stands alone, and where the server refuses: a sentence, which is left as the list is."""
    from axe_playwright_python.sync_playwright import Axe

    watch.forgive("500")
    answers = Answers()
    shown = view(answers, "The dog is red. It is red.")
    word(shown, "rot.").first.press("Enter")
    shown.get_by_role("dialog").get_by_text("The model sees no other word here.").wait_for()
    assert not Axe().run(shown.page).response["violations"]
    shown.keyboard.press("Escape")
    assert focused(shown) == "rot."
    answers.refusals["words"] = [(500, {})]
    word(shown, "Es").click()
    shown.get_by_role("dialog").get_by_role("alert").wait_for()
    assert shown.alerts() == ["Refused with 500."]
    assert not Axe().run(shown.page).response["violations"]
    shown.mouse.click(2, 2)
    word(shown, "Es").click()
    shown.get_by_role("menuitem").first.wait_for()


def test_languages(view: Open) -> None:
    answers = Answers()
    shown = view(answers, "The dog.")
    assert shown.get_by_label("Translate into").input_value() == "de"
    shown.get_by_role("button", name="Swap the languages").press("Enter")
    assert source(shown).input_value() == "Das Hund."
    assert [shown.get_by_label(f"Translate {end}").input_value() for end in ("from", "into")] == ["de", "en"]
    shown.soon(lambda: answers.questions("translate")[-1]["target"], lambda code: code == "en")
    shown.get_by_label("Translate from").select_option("en")
    assert shown.get_by_label("Translate into").input_value() == "de"
    assert shown.get_by_label("Translate into").locator("option").all_inner_texts() == ["Arabic", "German"]


def test_right_to_left(view: Open) -> None:
    """Arrow keys go where they point, and the text begins at its own side."""
    shown = view(text="the dog is red.")
    shown.get_by_label("Translate into").select_option("ar")
    shown.soon(lambda: target(shown).get_attribute("lang"), lambda code: code == "ar")
    says(shown, "كلمة كلمة كلمة كلمة.")
    assert target(shown).evaluate("one => getComputedStyle(one).direction") == "rtl"
    first, second = (target(shown).get_by_role("button").nth(place) for place in (0, 1))
    assert first.bounding_box()["x"] > second.bounding_box()["x"]  # type: ignore[index]
    first.focus()
    shown.keyboard.press("ArrowLeft")
    assert second.evaluate("one => one === document.activeElement")


def test_terms(view: Open) -> None:
    answers = Answers()
    shown = view(answers, "The dog is red.")
    shown.get_by_role("button", name="Add a term").press("Enter")
    shown.keyboard.type("dog")
    shown.keyboard.press("Tab")
    shown.keyboard.type("Köter")
    says(shown, "Das Köter ist rot.")
    assert answers.questions("translate")[-1]["terms"] == [{"source": "dog", "target": "Köter"}]
    shown.get_by_role("button", name="Remove term 1").click()
    says(shown, "Das Hund ist rot.")
    assert "terms" not in answers.questions("translate")[-1]


LETTERS: list[Any] = [
    {"name": "letter.docx", "mimeType": "application/octet-stream", "buffer": b"A letter."},
    {"name": "large.docx", "mimeType": "application/octet-stream", "buffer": b"." * 1001},
]
DROP = """() => {
    const dropped = new DataTransfer()
    dropped.items.add(new File(['A letter.'], 'letter.docx'))
    for (const type of ['dragover', 'drop'])
        document.body.dispatchEvent(new DragEvent(type, { bubbles: true, cancelable: true, dataTransfer: dropped }))
}"""


def test_documents(view: Open) -> None:
    """Several at once, each with its progress, its report and its result; what is too large is not sent."""
    answers = Answers()
    shown = view(answers)
    with shown.expect_file_chooser() as chooser:
        shown.get_by_role("button", name="Choose files").press("Enter")
    chooser.value.set_files(LETTERS)
    shown.get_by_text("This is larger than the 1 kB that the server takes.").wait_for()
    shown.get_by_role("progressbar", name="Progress of letter.docx").wait_for()
    shown.get_by_text("3 of 9 segments, about 4 s more").wait_for()
    assert len(answers.questions("documents")) == 1
    assert b'name="target"\r\n\r\nde\r\n' in answers.questions("documents")[0]
    with shown.expect_download() as download:
        shown.get_by_role("button", name="Download letter.de.docx").click()
    assert download.value.suggested_filename == "letter.de.docx"
    assert download.value.path().read_bytes() == b"Ein Brief."
    shown.get_by_text("Report").press("Enter")
    shown.get_by_text("One tag moved.").wait_for()
    for name in ("letter.docx", "large.docx"):
        shown.get_by_role("button", name=f"Remove {name}").click()
        shown.get_by_text(name).wait_for(state="detached")
    shown.evaluate(DROP)
    shown.get_by_role("button", name="Download").wait_for()
    shown.reload()
    shown.get_by_role("button", name="Download").wait_for()
    assert len(answers.questions("documents")) == 2


def test_what_is_doubtful(view: Open) -> None:
    """It is underlined, and says why, to those who do not see the line too."""
    shown = view(text=f"{TEXT} The 17 dog.")
    assert target(shown).locator(".doubtful").all_inner_texts() == ["elprup", "Das", "71", "Hund."]
    for name, note in {
        "elprup": "less sure of this than usual",
        "71": "The number 17 is not in the translation.",
    }.items():
        described = str(word(shown, name).get_attribute("aria-describedby")).split()
        assert note in shown.locator(f"#{described[1]}").inner_text()
    style = "one => getComputedStyle(one).textDecorationStyle"
    assert [word(shown, name).evaluate(style) for name in ("elprup", "Mann")] == ["wavy", "solid"]


@pytest.mark.parametrize("origin", [ORIGIN, INSECURE])
def test_copies(view: Open, origin: str) -> None:
    shown = view(None, "The dog is red.", origin)
    shown.get_by_role("button", name="Copy").press("Enter")
    shown.get_by_role("button", name="Copied").wait_for()
    source(shown).fill("")
    source(shown).press("Control+v")
    assert source(shown).input_value() == "Das Hund ist rot."


def test_other_translations(view: Open) -> None:
    answers = Answers()
    shown = view(answers, "The dog is red.")
    shown.get_by_role("button", name="Other translations").press("Enter")
    shown.get_by_role("region", name="Other translations").get_by_role("paragraph").nth(2).wait_for()
    shown.get_by_role("button", name="Use").first.click()
    shown.soon(lambda: answers.questions("translate")[-1].get("prefixes"), bool)


def test_inside_the_sentence(view: Open) -> None:
    shown = view(text=TEXT)
    word(shown, "Mann").hover()
    address = str(shown.get_by_role("link", name="Look inside").get_attribute("href"))
    assert address.startswith("http://127.0.0.1:8017/#")
    assert parse_qs(urlsplit(address).fragment)["text"] == ["A purple 🐕 man is too tired."]
    assert not view(Answers({"attention": None}), TEXT).get_by_role("link").count()


def test_a_key(view: Open, watch: Watch) -> None:
    """It is asked for where the server needs one, kept in the tab, and sent with each request."""
    watch.forgive("403")
    shown = view(Answers(key="right"))
    shown.get_by_label("This server needs a key").fill("wrong")
    shown.keyboard.press("Enter")
    shown.get_by_role("alert").first.wait_for()
    assert shown.alerts() == ["This is no key of this server."]
    assert not source(shown).count()
    shown.get_by_label("This server needs a key").fill("right")
    shown.get_by_role("button", name="Use it").click()
    source(shown).fill("The dog.")
    says(shown, "Das Hund.")
    assert not shown.get_by_label("This server needs a key").count()
    shown.reload()
    source(shown).wait_for()
    assert shown.evaluate("[document.cookie, JSON.stringify(localStorage).includes('right')]") == ["", False]


@pytest.mark.parametrize(
    ("status", "again"), [(429, {"retry-after": "900"}), (503, {"retry-after": "900"}), (413, {}), (400, {})]
)
def test_refusals(view: Open, watch: Watch, status: int, again: dict[str, str]) -> None:
    """In one sentence where the translation would be; the last one stays."""
    watch.forgive(str(status))
    answers = Answers()
    shown = view(answers, "The dog.")
    answers.refusals["translate"] = [(status, again)]
    source(shown).fill("The dog is.")
    shown.get_by_role("alert").first.wait_for()
    [alert] = shown.alerts()
    assert alert.startswith(f"Refused with {status}.")
    says(shown, "Das Hund.")
    retry = shown.get_by_role("button", name="Try now")
    assert retry.count() == bool(again)
    if again:
        retry.press("Enter")
        says(shown, "Das Hund ist.")
        assert not shown.alerts()


def test_without_a_server(view: Open, watch: Watch) -> None:
    watch.forgive("ERR_INTERNET_DISCONNECTED", "ERR_FAILED")
    shown = view(text="The dog.")
    shown.route("**/v1/translate", lambda route: route.abort())
    source(shown).fill("The dog is.")
    shown.get_by_role("alert").first.wait_for()
    assert shown.alerts()[0].startswith("The server does not answer. It is tried again by itself.")
    shown.unroute("**/v1/translate")
    shown.evaluate("dispatchEvent(new Event('online'))")
    says(shown, "Das Hund ist.")


def test_more_than_is_taken(view: Open) -> None:
    shown = view()
    source(shown).fill("a" * 2002)
    shown.get_by_role("alert").first.wait_for()
    assert shown.alerts() == ["This text has 2 characters more than the server takes at once."]


def test_markup_is_text(view: Open) -> None:
    shown = view(text="<img src=x onerror=alert(1)> red.")
    assert not target(shown).locator("img").count()
    assert "onerror" in source(shown).input_value()


@pytest.mark.parametrize(("motion", "moves"), [("no-preference", True), ("reduce", False)])
def test_what_moves(view: Open, motion: str, moves: bool) -> None:
    shown = view(text=TEXT, reduced_motion=motion)
    duration = target(shown).evaluate("one => getComputedStyle(one).transitionDuration")
    assert (duration != "0s") == moves


def test_order_of_the_keyboard(view: Open) -> None:
    """One stop for all words of a translation."""
    shown = view(text=TEXT)
    names = []
    for _ in range(11):
        shown.keyboard.press("Shift+Tab" if not names else "Tab")
        names.append(focused(shown))
        if len(names) == 1:
            shown.locator("h1").evaluate("one => { one.tabIndex = -1; one.focus() }")
    assert names[1:] == [
        "Dark colours",
        "Translate from",
        "Swap the languages",
        "Translate into",
        "Text to translate",
        "Clear",
        "Das",
        "Copy",
        "Other translations",
        "Look inside this sentence",
    ]


@pytest.mark.long(minutes=0.3)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_accessible(view: Open, dark: bool, width: int) -> None:
    """By axe-core, in each state; and nothing sticks out of a narrow window."""
    from axe_playwright_python.sync_playwright import Axe

    shown = view(Answers({"documents": ["docx"]}), f"{TEXT} The 17 dog.", dark=dark, width=width)
    shown.get_by_role("button", name="Add a term").click()
    shown.locator("input[type=file]").set_input_files(LETTERS)
    shown.get_by_role("progressbar").wait_for()
    shown.get_by_role("button", name="Other translations").click()
    shown.get_by_role("region", name="Other translations").wait_for()
    for state in ("page", "word", "menu"):
        if state == "word":
            word(shown, "Mann").hover()
        elif state == "menu":
            words = target(shown).get_by_role("button")
            ends = words.evaluate_all("all => all.map(one => one.getBoundingClientRect().right)")
            words.nth(ends.index(max(ends))).click()
            shown.get_by_role("menuitem").first.wait_for()
        shown.soon(target(shown).locator("xpath=self::*[contains(@class, 'late')]").count, lambda late: not late)
        found = Axe().run(shown.page).response["violations"]
        assert not found, [(one["id"], [node["html"] for node in one["nodes"]]) for one in found]
    assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth && scrollX === 0")


def test_the_key_field_is_accessible(view: Open) -> None:
    from axe_playwright_python.sync_playwright import Axe

    shown = view(Answers(key="right"))
    shown.get_by_label("This server needs a key").wait_for()
    assert not Axe().run(shown.page).response["violations"]

"""The guided walk of a demonstration: its numbers are those of ``walk.json``, and each step can be tried."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from regard.config import checksum
from regard.inspection import PAGE
from regard.inspection.folders import folder as folder_module
from regard.inspection.folders.models import Models
from regard.inspection.folders.walk import CORPUS, NAME, write_walk
from regard.inspection.forward.record import record
from regard.inspection.pictures.view import View
from regard.library.serve.app import files
from regard.library.served import Page as ServedPage
from regard.runs.demo.ablation_study import study_heads
from tests.page.language import pairs
from tests.page.models import made
from tests.page.numbers import like, percent
from tests.page.reading import FRAME, settled, soon
from tests.page.view import Watch, serving

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.long(minutes=0.2)

SENTENCES = 40
TITLES = ("mean", "Who looks", "German pronoun", "removal", "needed", "spare")


@pytest.fixture(scope="module")
def demo(page_models: Path, task: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a demonstration whose model is the little translator."""
    folder = tmp_path_factory.mktemp("walk") / "demo"
    shutil.copytree(made("translator", page_models), folder / "model")
    (folder / CORPUS).mkdir()
    deciding = [pair for pair in pairs("test") if pair.pronoun and pair.pronoun.decides][:SENTENCES]
    weights = folder_module.weights_sha256(folder / "model")
    (folder / NAME).write_bytes(write_walk(study_heads(task("translator"), deciding), weights))
    return folder


@pytest.fixture(scope="module")
def served_demo(_chromium: None, demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    with serving(demo, log=tmp_path_factory.mktemp("served") / "stderr") as address:
        yield address


def walk_of(demo: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((demo / NAME).read_text(encoding="utf-8"))
    return found


def named(head: dict[str, Any]) -> str:
    use = {"cross": "encoder–decoder"}.get(head["kind"], head["kind"])
    return f"{use} head {head['layer']}·{head['head']}"


def opened(view: Watch, address: str, path: str = "", **options: Any) -> Page:
    shown = view(address, path, **options)
    shown.get_by_role("button", name="next").wait_for()
    shown.wait_for_load_state("networkidle")
    return shown


def said(shown: Page) -> str:
    return shown.locator(".walk section").inner_text().replace("\xa0", " ")


@pytest.mark.long(minutes=0.4)
def test_every_step_tells_the_numbers_of_the_file(demo: Path, served_demo: str, view: Watch) -> None:
    """It is the first view, opened by itself; the current step is marked and announced."""
    walk = walk_of(demo)
    study, of = walk["study"], f"of {SENTENCES}"
    shares = {named(one["head"]): one["shares"] for one in study["heads"]}
    encoder, cross = shares[named(walk["encoder"])], shares[named(walk["cross"])]
    expected = (
        (f"{study['right']} {of}", f"right in {study['commonest']}", named(walk["encoder"])),
        (named(walk["encoder"]), percent(encoder["antecedent"]), percent(encoder["rival"]), percent(encoder["chance"])),
        (named(walk["cross"]), percent(cross["antecedent"]), percent(cross["pronoun"])),
        tuple(named(one["head"]) for one in study["heads"] if one["right"] != study["right"]),
        (percent(walk["guess"]),),
        (f"{study['spare']} of {len(study['heads'])} heads", f"more than {percent(walk['half'])}"),
    )
    shown = opened(view, served_demo)
    assert shown.get_by_role("navigation", name="Views").get_by_role("button").first.inner_text() == "Walk"
    for number, (title, parts) in enumerate(zip(TITLES, expected, strict=True), 1):
        assert title in shown.get_by_role("heading", level=2).inner_text()
        assert f"Step {number} of 6" in shown.locator(".walk section [role=status]").inner_text()
        (current,) = shown.locator(".walk nav [aria-current=step]").all()
        assert current.inner_text().startswith(str(number))
        text = said(shown)
        assert all(part in text for part in parts), (parts, text)
        if number < 6:
            shown.get_by_role("button", name="next").click()
    shown.get_by_role("button", name="go on in Heads").click()
    settled(shown)
    assert "view=heads" in shown.url


@pytest.mark.long(minutes=0.3)
@pytest.mark.parametrize(("step", "which"), [(2, "encoder"), (3, "cross")])
def test_a_step_opens_the_head_at_the_word(demo: Path, served_demo: str, view: Watch, step: int, which: str) -> None:
    """And Back leads to the step again."""
    walk = walk_of(demo)
    head = walk[which]
    shown = opened(view, served_demo, f"#view=walk&step={step}")
    shown.locator("figcaption").nth(1).wait_for()
    gazes = [text.replace("\xa0", " ") for text in shown.locator("figcaption").all_inner_texts()]
    shown.get_by_role("button", name=f"open {named(head)}").nth(1).click()
    settled(shown)
    shown.wait_for_url("**view=heads**")
    for part in (f"kind={head['kind']}", f"layer={head['layer']}", f"head={head['head']}", "words=1", "token="):
        assert part in shown.url
    assert shown.get_by_role("textbox").first.input_value() == walk["sentences"][1]["source"]
    word, _, first = gazes[1].partition(" looks at ")
    gaze = shown.locator(".gaze").inner_text()
    assert gaze.startswith(word.strip("“”"))
    assert first.split(" · ")[0] in gaze
    shown.go_back()
    shown.locator(".walk [role=status]").wait_for(state="attached")
    assert f"Step {step} of 6" in shown.locator(".walk section [role=status]").inner_text()


def test_the_smallest_set_is_switched_off(demo: Path, served_demo: str, view: Watch) -> None:
    """Exactly these heads, and the walk says so while they are."""
    smallest = walk_of(demo)["study"]["smallest"]
    assert smallest
    assert smallest["heads"]
    shown = opened(view, served_demo, "#view=walk&step=5")
    shown.get_by_role("button", name="off in Heads").first.click()
    settled(shown)
    off = sorted(f"{one['kind']}.{one['layer']}.{one['head']}" for one in smallest["heads"])
    address = shown.evaluate("new URLSearchParams(location.hash.slice(1)).get('off')")
    assert sorted(address.split(" ")) == off
    assert "Without:" in shown.locator(".output").inner_text()
    shown.get_by_role("button", name="Walk", exact=True).click()
    assert "Step 5" in shown.locator(".walk section [role=status]").inner_text()
    assert "without" in shown.get_by_role("note").inner_text()
    shown.get_by_role("button", name="all as it was").click()
    assert shown.get_by_role("note").count() == 0


def test_it_is_walked_by_keys_and_fits_a_phone(served_demo: str, view: Watch) -> None:
    shown = opened(view, served_demo, width=390, height=844, dark=True)
    shown.get_by_role("button", name="next").focus()
    for number in range(1, 6):
        assert f"Step {number} of 6" in shown.locator(".walk section [role=status]").inner_text()
        assert shown.evaluate("document.documentElement.scrollWidth") <= 390
        assert shown.evaluate("document.activeElement.textContent") == "next"
        shown.keyboard.press("Enter")
    shown.get_by_role("button", name="back").focus()
    for _ in range(5):
        shown.keyboard.press("Enter")
    assert "Step 1 of 6" in shown.locator(".walk section [role=status]").inner_text()
    assert shown.evaluate("document.activeElement.textContent") == "next"


def drawn(shown: Page) -> list[dict[str, str]]:
    """Of each sentence that is drawn, what is written beside its words, by the word."""
    found: list[dict[str, str]] = shown.locator(".arcs").evaluate_all(
        """all => all.map(one => Object.fromEntries([...one.querySelectorAll('.word')].map(word => {
            const share = word.querySelector('.share')
            const text = word.textContent.replace('⇄', '')
            return [share ? text.replace(share.textContent, '') : text, share ? share.textContent : '']
        }).filter(([, share]) => share)))"""
    )
    return [{word: share.replace("\xa0", " ") for word, share in one.items()} for one in found]


def expected(model: Any, head: dict[str, Any], source: str) -> dict[str, set[str]]:
    """The same of the model: from *it*, no more than three words of five hundredths or more."""
    seen = View(record(model, source), head["kind"], head["layer"], head["head"], whole=True)
    rows, columns = seen.labels()
    row = rows.index("it")
    weight_K = seen.heads()[1][0][row]
    share = {word: float(w) for at, (word, w) in enumerate(zip(columns, weight_K, strict=True)) if at != row}
    best = sorted(share, key=lambda word: -share[word])[:3]
    return {word: like(percent, share[word]) for word in best if share[word] >= 0.05}


def same(found: dict[str, str], wanted: dict[str, set[str]]) -> bool:
    return found.keys() == wanted.keys() and all(found[word] in wanted[word] for word in wanted)


def pronouns(shown: Page) -> list[str]:
    return shown.locator(".first .german b").all_inner_texts()


@pytest.mark.long(minutes=0.3)
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_first_screen_is_a_picture(
    demo: Path, served_demo: str, view: Watch, task: Any, width: int, dark: bool
) -> None:
    """Both sentences with the model's own weights; a key exchanges them, and so the arcs, the pronouns, the address."""
    walk, model = walk_of(demo), task("translator")
    sources = [one["source"] for one in walk["sentences"]]
    wanted = [expected(model, walk["encoder"], source) for source in sources]
    written = [model.translate(source, beam=1) for source in sources]
    shown = opened(view, served_demo, width=width, height=844, dark=dark)
    soon(shown, lambda: drawn(shown), lambda found: all(map(same, found, wanted)) and len(found) == 2)
    germans = [one.strip() for one in shown.locator(".first .german").all_inner_texts()]
    assert germans == written
    before = pronouns(shown)
    paths = shown.locator(".arcs path")
    ends = soon(shown, lambda: paths.evaluate_all("all => all.map(one => one.getAttribute('d'))"), bool)
    assert shown.locator(".arcs").last.bounding_box()["y"] < 844  # type: ignore[index]
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    shown.locator(".arcs button").first.focus()
    shown.keyboard.press("Enter")
    soon(shown, lambda: drawn(shown), lambda found: all(map(same, found, wanted[::-1])))
    assert [one.strip() for one in shown.locator(".first .german").all_inner_texts()] == written[::-1]
    assert pronouns(shown) == before[::-1]
    assert shown.evaluate("document.activeElement.textContent").startswith("wide")
    soon(shown, lambda: paths.evaluate_all("all => all.map(one => one.getAttribute('d'))"), lambda now: now != ends)
    soon(shown, lambda: shown.url, lambda url: "exchanged=1" in url)
    again = opened(view, served_demo, shown.url.removeprefix(served_demo), width=width)
    soon(again, lambda: drawn(again), lambda found: len(found) == 2 and all(map(same, found, wanted[::-1])))


@pytest.mark.long(minutes=0.1)
def test_nothing_moves_where_motion_is_not_wanted(served_demo: str, view: Watch) -> None:
    shown = opened(view, served_demo, reduced_motion="reduce")
    shown.locator(".arcs path").first.wait_for()
    button = shown.locator(".arcs button").first
    ends = "() => [...document.querySelectorAll('.arcs path')].map(one => one.getAttribute('d'))"
    button.click()
    shown.evaluate(FRAME)
    first = shown.evaluate(ends)
    shown.wait_for_timeout(600)
    assert shown.evaluate(ends) == first


@pytest.mark.long(minutes=0.4)
def test_the_picture_is_there_while_the_demonstration_learns(
    demo: Path, view: Watch, task: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before heads were measured it shows the one in which *it* gives most to the right noun; then come the steps."""
    monkeypatch.setattr(folder_module, "is_demo", lambda *_: True)
    shutil.copytree(demo / "model", tmp_path / "demo" / "model")
    (tmp_path / "demo" / CORPUS).mkdir()
    walk, model = walk_of(demo), task("translator")

    def margin(head: dict[str, Any]) -> float:
        total = 0.0
        for told in walk["sentences"]:
            seen = View(record(model, told["source"]), "encoder", head["layer"], head["head"], whole=True)
            rows, columns = seen.labels()
            weight_K = seen.heads()[1][0][rows.index("it")]
            total += float(weight_K[columns.index(told["antecedent"])] - weight_K[columns.index(told["rival"])])
        return total

    head = max((one["head"] for one in walk["study"]["heads"] if one["head"]["kind"] == "encoder"), key=margin)
    wanted = [expected(model, head, told["source"]) for told in walk["sentences"]]
    with ServedPage(Models([tmp_path / "demo"]), files(PAGE), 0) as page:
        shown = view(page.url)
        soon(shown, lambda: drawn(shown), lambda found: len(found) == 2 and all(map(same, found, wanted)))
        assert "view=walk" in shown.url
        assert shown.get_by_role("navigation", name="Steps of the walk").count() == 0
        assert named(head) in said(shown)
        shutil.copy(demo / NAME, tmp_path / "demo" / NAME)
        shown.get_by_role("button", name="next").wait_for()
        assert shown.get_by_role("navigation", name="Steps of the walk").get_by_role("button").count() == 6
        shown.close()


def test_the_tour_waits_for_another_view(served_demo: str, view: Watch) -> None:
    shown = opened(view, served_demo, tour=True)
    assert shown.get_by_role("region", name="A short tour").count() == 0
    shown.get_by_role("button", name="Heads", exact=True).click()
    shown.get_by_role("region", name="A short tour").wait_for()


@pytest.mark.long(minutes=0.4)
def test_other_weights_and_a_damaged_file_are_told(demo: Path, view: Watch, tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    shutil.copytree(demo, folder)
    values = checksum.load_json((folder / NAME).read_bytes(), folder / NAME)
    (folder / NAME).write_bytes(checksum.dump_json({**values, "weights": "0" * 64}))
    with serving(folder / "model", log=tmp_path / "first") as address:
        shown = opened(view, address)
        assert "Rerun regard demo" in shown.get_by_role("note").inner_text()
        shown.close()
    raw = (folder / NAME).read_bytes()
    (folder / NAME).write_bytes(raw[: len(raw) // 2])
    with serving(folder / "model", log=tmp_path / "second") as address:
        shown = view(address)
        settled(shown)
        assert shown.get_by_role("button", name="Walk", exact=True).count() == 0
        shown.get_by_text("The guided walk cannot be shown: walk.json is damaged").wait_for()
        assert shown.get_by_role("heading", level=2).first.is_visible()
        shown.close()
    os.remove(folder / NAME)

"""The guided walk of a demonstration: its numbers are those of ``walk.json``, and each step can be tried."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from regard.config import checksum
from regard.inspection import PAGE
from regard.inspection.folders import folder as folder_module
from regard.inspection.folders.models import Models
from regard.inspection.folders.walk import CORPUS, NAME, write_walk
from regard.inspection.forward.record import NAMES, record
from regard.inspection.pictures.view import View
from regard.library.serve.app import Site
from regard.library.serve.files import files
from regard.library.served import Page as ServedPage
from regard.runs.demo.ablation_study import study_heads
from regard.tasks.model_path import weights_sha256
from tests.page.conftest import addresses
from tests.page.language import pairs
from tests.page.models import made
from tests.page.numbers import shows
from tests.page.view import Shown, Watch, serving

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
    weights = weights_sha256(folder / "model")
    (folder / NAME).write_bytes(write_walk(study_heads(task("translator"), deciding), weights))
    return folder


@pytest.fixture(scope="module")
def served_demo(_chromium: None, demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    yield from addresses(tmp_path_factory, demo)


@pytest.fixture(scope="module")
def walk(demo: Path) -> dict[str, Any]:
    return json.loads((demo / NAME).read_text(encoding="utf-8"))


def named(head: dict[str, Any]) -> str:
    return f"{NAMES[head['kind']]} head {head['layer']}·{head['head']}"


def opened(view: Watch, address: str, path: str = "", **options: Any) -> Shown:
    shown = view(address, path, **options)
    shown.get_by_role("button", name="next").wait_for()
    shown.wait_for_load_state("networkidle")
    return shown


def status(shown: Shown) -> str:
    """Which step is announced."""
    return shown.locator(".walk section [role=status]").inner_text()


@pytest.mark.long(minutes=0.4)
def test_every_step_tells_the_numbers_of_the_file(walk: dict[str, Any], served_demo: str, view: Watch) -> None:
    """It is the first view, opened by itself; the current step is marked and announced."""
    study = walk["study"]
    expected = (
        (f"{study['right']} of {SENTENCES}", f"right in {study['commonest']}", named(walk["encoder"])),
        (named(walk["encoder"]),),
        (named(walk["cross"]),),
        tuple(named(one["head"]) for one in study["heads"] if one["right"] != study["right"]),
        (f"{walk['guess']:.0%}".replace("%", " %"),),
        (f"{study['spare']} of {len(study['heads'])} heads",),
    )
    shown = opened(view, served_demo)
    assert shown.tabs.first.inner_text() == "Walk"
    for number, (title, parts) in enumerate(zip(TITLES, expected, strict=True), 1):
        assert title in shown.get_by_role("heading", level=2).inner_text()
        assert f"Step {number} of 6" in status(shown)
        (current,) = shown.locator(".walk nav [aria-current=step]").all()
        assert current.inner_text().startswith(str(number))
        text = shown.locator(".walk section").inner_text().replace("\xa0", " ")
        assert all(part in text for part in parts), (parts, text)
        if number < 6:
            shown.get_by_role("button", name="next").click()
    shown.get_by_role("button", name="go on in Heads").click()
    shown.settled()
    assert "view=heads" in shown.url


@pytest.mark.long(minutes=0.3)
@pytest.mark.parametrize(("step", "which"), [(2, "encoder"), (3, "cross")])
def test_a_step_opens_the_head_at_the_word(
    walk: dict[str, Any], served_demo: str, view: Watch, step: int, which: str
) -> None:
    """And Back leads to the step again."""
    head = walk[which]
    shown = opened(view, served_demo, f"#view=walk&step={step}")
    shown.locator("figcaption").nth(1).wait_for()
    gazes = [text.replace("\xa0", " ") for text in shown.locator("figcaption").all_inner_texts()]
    shown.get_by_role("button", name=f"open {named(head)}").nth(1).click()
    shown.settled()
    shown.wait_for_url("**view=heads**")
    for part in (f"kind={head['kind']}", f"layer={head['layer']}", f"head={head['head']}", "words=1", "token="):
        assert part in shown.url
    assert shown.textbox.input_value() == walk["sentences"][1]["source"]
    word, _, first = gazes[1].partition(" looks at ")
    assert shown.gaze().startswith(word.strip("“”"))
    assert first.split(" · ")[0] in shown.gaze()
    shown.go_back()
    shown.locator(".walk [role=status]").wait_for(state="attached")
    assert f"Step {step} of 6" in status(shown)


def test_the_smallest_set_is_switched_off(walk: dict[str, Any], served_demo: str, view: Watch) -> None:
    """Exactly these heads, and the walk says so while they are."""
    smallest = walk["study"]["smallest"]
    assert smallest
    assert smallest["heads"]
    shown = opened(view, served_demo, "#view=walk&step=5")
    shown.get_by_role("button", name="off in Heads").first.click()
    shown.settled()
    off = sorted(f"{one['kind']}.{one['layer']}.{one['head']}" for one in smallest["heads"])
    address = shown.evaluate("new URLSearchParams(location.hash.slice(1)).get('off')")
    assert sorted(address.split(" ")) == off
    assert "Without:" in shown.locator(".output").inner_text()
    shown.get_by_role("button", name="Walk", exact=True).click()
    assert "Step 5" in status(shown)
    assert "without" in shown.get_by_role("note").inner_text()
    shown.get_by_role("button", name="all as it was").click()
    assert shown.get_by_role("note").count() == 0


def test_it_is_walked_by_keys_and_fits_a_phone(served_demo: str, view: Watch) -> None:
    shown = opened(view, served_demo, width=390, height=844, dark=True)
    shown.get_by_role("button", name="next").focus()
    for number in range(1, 6):
        assert f"Step {number} of 6" in status(shown)
        assert shown.evaluate("document.documentElement.scrollWidth") <= 390
        assert shown.evaluate("document.activeElement.textContent") == "next"
        shown.keyboard.press("Enter")
    shown.get_by_role("button", name="back").focus()
    for _ in range(5):
        shown.keyboard.press("Enter")
    assert "Step 1 of 6" in status(shown)
    assert shown.evaluate("document.activeElement.textContent") == "next"


Words = list[dict[str, Any]]
"""Of each sentence that is drawn, what stands beside its words, by the word."""
SHARES = """all => all.map(one => Object.fromEntries([...one.querySelectorAll('.word')].map(word => {
    const share = word.querySelector('.share')?.textContent ?? ''
    return [word.textContent.replace('⇄', '').replace(share, ''), share.replace('\\xa0', ' ')]
}).filter(([, share]) => share)))"""


def shares(shown: Shown) -> Words:
    return shown.locator(".arcs").evaluate_all(SHARES)


def expected(model: Any, head: dict[str, Any], walk: dict[str, Any]) -> Words:
    """The same of the model: from *it*, no more than three words of five hundredths or more."""
    every = []
    for told in walk["sentences"]:
        seen = View(record(model, told["source"]), head["kind"], head["layer"], head["head"], whole=True)
        rows, columns = seen.labels()
        row = rows.index("it")
        share = dict(zip(columns, seen.heads()[1][0][row].tolist(), strict=True))
        best = sorted(share.keys() - {"it"}, key=lambda word: -share[word])[:3]
        every.append({word: share[word] for word in best if share[word] >= 0.05})
    return every


def same(found: Words, wanted: Words) -> bool:
    return [one.keys() for one in found] == [one.keys() for one in wanted] and all(
        shows(one[word], other[word]) for one, other in zip(found, wanted, strict=True) for word in other
    )


ENDS = "() => [...document.querySelectorAll('.arcs path')].map(one => one.getAttribute('d'))"


@pytest.mark.long(minutes=0.3)
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_first_screen_is_a_picture(
    walk: dict[str, Any], served_demo: str, view: Watch, task: Any, width: int, dark: bool
) -> None:
    """Both sentences with the model's own weights; a key exchanges them, and so the arcs, the pronouns, the address."""
    model = task("translator")
    wanted = expected(model, walk["encoder"], walk)
    written = [model.translate(one["source"], beam=1) for one in walk["sentences"]]
    shown = opened(view, served_demo, width=width, height=844, dark=dark)
    shown.soon(lambda: shares(shown), lambda found: same(found, wanted))
    germans, pronouns = shown.locator(".first .german"), shown.locator(".first .german b")
    assert list(map(str.strip, germans.all_inner_texts())) == written
    before = pronouns.all_inner_texts()
    ends = shown.soon(lambda: shown.evaluate(ENDS))
    assert shown.locator(".arcs").last.bounding_box()["y"] < 844  # type: ignore[index]
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    shown.locator(".arcs button").first.focus()
    shown.keyboard.press("Enter")
    shown.soon(lambda: shares(shown), lambda found: same(found, wanted[::-1]))
    assert list(map(str.strip, germans.all_inner_texts())) == written[::-1]
    assert pronouns.all_inner_texts() == before[::-1]
    assert shown.evaluate("document.activeElement.textContent").startswith("wide")
    shown.soon(lambda: shown.evaluate(ENDS), lambda now: now != ends)
    shown.soon(lambda: shown.url, lambda url: "exchanged=1" in url)
    again = opened(view, served_demo, shown.url.removeprefix(served_demo), width=width)
    again.soon(lambda: shares(again), lambda found: same(found, wanted[::-1]))


@pytest.mark.long(minutes=0.1)
def test_nothing_moves_where_motion_is_not_wanted(served_demo: str, view: Watch) -> None:
    shown = opened(view, served_demo, reduced_motion="reduce")
    shown.locator(".arcs path").first.wait_for()
    shown.locator(".arcs button").first.click()
    shown.drawn()
    first = shown.evaluate(ENDS)
    shown.wait_for_timeout(600)
    assert shown.evaluate(ENDS) == first


@pytest.mark.long(minutes=0.4)
def test_the_picture_is_there_while_the_demonstration_learns(
    demo: Path, walk: dict[str, Any], view: Watch, task: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before heads were measured it shows one of the encoder, as the model has it; then come the steps."""
    monkeypatch.setattr(folder_module, "is_demo", lambda *_: True)
    shutil.copytree(demo / "model", tmp_path / "demo" / "model")
    (tmp_path / "demo" / CORPUS).mkdir()
    heads = [one["head"] for one in walk["study"]["heads"] if one["head"]["kind"] == "encoder"]
    wanted = {named(head): expected(task("translator"), head, walk) for head in heads}
    with ServedPage(Site(Models([tmp_path / "demo"]), files(PAGE)), 0) as page:
        shown = view(page.url)
        section = shown.locator(".walk section")
        shown.soon(section.inner_text, lambda said: any(head in said for head in wanted))
        (head,) = (head for head in wanted if head in section.inner_text())
        shown.soon(lambda: shares(shown), lambda found: same(found, wanted[head]))
        assert "view=walk" in shown.url
        assert shown.get_by_role("navigation", name="Steps of the walk").count() == 0
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
        shown.settled()
        assert shown.get_by_role("button", name="Walk", exact=True).count() == 0
        shown.get_by_text("The guided walk cannot be shown: walk.json is damaged").wait_for()
        assert shown.get_by_role("heading", level=2).first.is_visible()
        shown.close()

"""The single-file page, without server or network: the heads of its pass with their numbers."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from regard.inspection.folders.models import Models
from regard.inspection.forward.record import NAMES, entropy, image_inputs, record, record_attention
from regard.inspection.questions.answers import export_file
from tests.page.language import digits
from tests.page.models import data_of, made
from tests.page.numbers import check_looks, clean, shows
from tests.page.reading import BEFORE, TaskOf, names_of, opened
from tests.page.view import Watch

pytestmark = pytest.mark.long(minutes=0.1)


def written(folder: Path, file: Path, *arguments: str) -> str:
    """The address of the file that ``regard attend --html`` writes."""
    options = ["--html", str(file), "--threads", "1"]
    command = [sys.executable, "-m", "regard.cli", "attend", str(folder), *arguments, *options]
    subprocess.run(command, check=True, capture_output=True)
    return file.as_uri()


@pytest.mark.long(minutes=0.2)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark-narrow"])
def test_a_translation(view: Watch, task: TaskOf, page_models: Path, tmp_path: Path, dark: bool) -> None:
    """Heads are chosen and pointed at as on the page that asks; nothing is loaded, nothing is wider than the window."""
    width = 400 if dark else 1280
    address = written(made("translator", page_models), tmp_path / "page.html", BEFORE["translator"])
    shown, told = view(address, offline=True, dark=dark, width=width), record(task("translator"), BEFORE["translator"])
    assert shown.title() == f"{BEFORE['translator']} · Regard"
    assert shown.locator(".written").inner_text().startswith(told.target_text)
    shown.flip("whole words")  # it begins with these; a record is of pieces
    for kind in sorted(told.kinds):  # that of the encoder at last, which can be rolled out
        shown.choose("Use of attention", NAMES[kind])
        names = names_of(told.queries(kind)), names_of(told.keys(kind))
        for layer, head, place in ((1, 2, 3), (2, 4, 1)):
            shown.get_by_role("button", name=f"layer {layer} head {head}:").click()
            shown.point(place)
            weight_QK = told.head(kind, layer, head)
            check_looks(shown.gaze(), names[0][place], names[1], weight_QK[place])
            bits = shown.locator("dl.measures dd").first.inner_text().removesuffix(" bits")
            assert shows(bits, float(entropy(weight_QK).mean()))
    for mode in ("text", "matrix", "lines"):
        shown.choose("Drawn as", mode)
    for merge in ("mean", "maximum", "rollout"):
        shown.choose("Heads shown", merge)
    shown.flip("whole words")
    assert shown.evaluate("document.scrollingElement.scrollWidth") <= width


def test_an_image(view: Watch, task: TaskOf, page_models: Path, tmp_path: Path) -> None:
    images = data_of("digits", page_models) / "test.npz"
    shown = view(
        written(made("digits", page_models), tmp_path / "page.html", str(images), "--image", "3"), offline=True
    )
    told = record_attention(image_inputs(task("digits"), digits("test")[0][2]))
    shown.get_by_role("button", name="layer 2 head 2:").click()
    shown.get_by_role("img", name="The image in 4 by 4 patches").press("ArrowDown")
    shown.drawn()
    names = ["the class token", *(f"the patch in row {at // 4 + 1}, column {at % 4 + 1}" for at in range(16))]
    check_looks(shown.gaze(), "The patch in row 1, column 4", names, told.head("encoder", 2, 2)[4])
    label = task("digits").classify(digits("test")[0][2]).label
    assert shown.locator(".classes li").first.inner_text().split()[0] == label


def test_the_picture_is_what_is_seen(view: Watch, served: str, task: TaskOf, tmp_path: Path) -> None:
    """A head with its words, title and sentence, as it is drawn; no other view offers one; a page keeps the word."""
    told = record(task("translator"), BEFORE["translator"])
    shown = opened(view, served, "translator", view="heads", kind="cross", layer=2, head=2, token=1)

    def saved(what: str) -> bytes:
        shown.get_by_role("button", name="Save …").click()
        with shown.expect_download() as found:
            shown.get_by_role("button", name=what).click()
        found.value.save_as(tmp_path / found.value.suggested_filename)
        return (tmp_path / found.value.suggested_filename).read_bytes()

    for mode in ("lines", "matrix"):
        shown.choose("Drawn as", mode)
        drawing = ElementTree.fromstring(saved("Drawing (SVG)"))
        words = [one.text for one in drawing.iter("{http://www.w3.org/2000/svg}text")]
        said = {"Encoder–decoder head 2·2", told.source_text, *(clean(token.text) for token in told.written)}
        assert said <= {(word or "").removeprefix("·") for word in words}
        assert not any("▁" in (word or "") for word in words)
        header = saved("Picture (PNG)")[16:24]
        size = [int.from_bytes(header[at : at + 4], "big") for at in (0, 4)]
        assert size == [2 * int(drawing.attrib[side]) for side in ("width", "height")]
    saved("Page that works alone (HTML)")
    alone = view((tmp_path / "translator-attention.html").as_uri(), offline=True)
    pressed = alone.locator(".columns").get_by_role("button", pressed=True)
    assert pressed.inner_text().removeprefix("·") == clean(told.written[1].text)
    shown.turn_to("Equation")
    shown.get_by_role("button", name="Save …").click()
    assert shown.locator(".share li").all_inner_texts() == ["Numbers (JSON)", "Page that works alone (HTML)"]


def test_what_was_changed(view: Watch, page_models: Path, tmp_path: Path) -> None:
    """A file says what the model was without, what it was made to write, and nothing else of its training."""
    models, forced = Models([made("translator", page_models)]), "Das Tier war zu breit."
    (kept, *_), (example, *_) = models.states()[0]["snapshots"], models.states()[0]["examples"]
    changes = {"off": [["cross", 2, 1]], "mask": False}
    asked = {"text": BEFORE["translator"], "target": forced, "snapshot": kept, "changes": changes}
    content = export_file(models, {**asked, "form": "html"})[0]
    (tmp_path / "page.html").write_bytes(content)
    shown = view((tmp_path / "page.html").as_uri(), offline=True)
    assert shown.get_by_role("heading", level=1).inner_text() == "Regard"
    said = f"Without: encoder–decoder head 2·1, the mask. With the weights of {kept}. It was made to write this:"
    assert " ".join(shown.locator(".altered").inner_text().split()).startswith(said)
    assert " ".join(shown.locator(".written").inner_text().split()).startswith(forced)
    assert not shown.get_by_text(example).count()
    (tmp_path / "plain.html").write_bytes(export_file(models, {"text": BEFORE["translator"], "form": "html"})[0])
    assert not view((tmp_path / "plain.html").as_uri(), offline=True).locator(".altered").count()

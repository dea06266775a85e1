"""The page in one file, without a server and without any network: the heads of that pass, with their numbers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from page_language import digits
from page_models import data_of, made
from page_numbers import check_gaze, clean, like, number
from page_reading import BEFORE, FRAME, chosen, flipped
from page_view import Watch
from regard.explore.measures import entropy
from regard.explore.record import record, recorded
from regard.explore.scene import image_scene


def written(folder: Path, file: Path, *arguments: str) -> str:
    """The address of the file that ``regard attend --html`` writes."""
    command = [
        sys.executable,
        "-m",
        "regard.cli",
        "attend",
        str(folder),
        *arguments,
        "--html",
        str(file),
        "--threads",
        "1",
    ]
    subprocess.run(command, check=True, capture_output=True)
    return file.as_uri()


@pytest.mark.long(minutes=0.2)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark-narrow"])
def test_a_translation(view: Watch, task: Callable[[str], Any], page_models: Path, tmp_path: Path, dark: bool) -> None:
    """Heads are chosen and pointed at as on the page that asks; nothing is loaded, nothing is wider than the window."""
    width = 400 if dark else 1280
    address = written(made("translator", page_models), tmp_path / "page.html", BEFORE["translator"])
    shown, told = view(address, offline=True, dark=dark, width=width), record(task("translator"), BEFORE["translator"])
    assert shown.title() == f"{BEFORE['translator']} · Regard"
    assert shown.locator(".written").inner_text().startswith(told.target_text)
    for tab, kind in (("encoder–decoder", "cross"), ("encoder", "encoder"), ("decoder", "decoder")):
        chosen(shown, "Use of attention", tab)
        names = [[clean(token.text) for token in side] for side in (told.queries(kind), told.keys(kind))]  # type: ignore[arg-type]
        for layer, head, place in ((1, 2, 3), (2, 4, 1)):
            shown.get_by_role("button", name=f"layer {layer} head {head}:").click()
            shown.locator(".columns ol").first.get_by_role("button").nth(place).hover()
            shown.evaluate(FRAME)
            who, said = shown.locator(".gaze").inner_text().split(" looks at ", 1)
            weight_QK = told.head(kind, layer, head)  # type: ignore[arg-type]
            assert who == names[0][place]
            check_gaze(f"looks at {said}", names[1], weight_QK[place])
            bits = shown.locator("dl.measures dd").first.inner_text().removesuffix(" bits")
            assert bits in like(number, float(entropy(weight_QK).mean()))
    for mode in ("text", "matrix", "lines"):
        chosen(shown, "Drawn as", mode)
    for merge in ("mean", "maximum", "rollout"):
        chosen(shown, "Heads shown", merge)
    flipped(shown, "whole words")
    assert shown.evaluate("document.scrollingElement.scrollWidth") <= width


@pytest.mark.long(minutes=0.1)
def test_an_image(view: Watch, task: Callable[[str], Any], page_models: Path, tmp_path: Path) -> None:
    images = data_of("digits", page_models) / "test.npz"
    shown = view(
        written(made("digits", page_models), tmp_path / "page.html", str(images), "--image", "3"), offline=True
    )
    told = recorded(image_scene(task("digits"), digits("test")[0][2]))
    shown.get_by_role("button", name="layer 2 head 2:").click()
    shown.get_by_role("img", name="The image in 4 by 4 patches").press("ArrowDown")
    shown.evaluate(FRAME)
    who, said = shown.locator(".gaze").inner_text().split(" looks at ", 1)
    assert who == told.source[4].text
    check_gaze(f"looks at {said}", [clean(token.text) for token in told.source], told.head("encoder", 2, 2)[4])
    assert (
        shown.locator(".classes li").first.inner_text().split()[0]
        == task("digits").classify(digits("test")[0][2]).label
    )

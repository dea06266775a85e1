"""Pictures of the page for ``docs/``, made with the page itself.

    regard demo
    regard explore demo --port 8060 --no-browser &
    python web/screenshots.py http://127.0.0.1:8060/ docs
    regard serve en-de de-en &
    python web/screenshots.py http://127.0.0.1:5000/ docs serve serve-dark serve-phone

Playwright and Chromium are needed, and Pillow, which makes the files small.
"""

from __future__ import annotations

import argparse
import io
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

TIRED = "The animal didn't cross the street because it was too tired."
WIDE = "The animal didn't cross the street because it was too wide."
STREET = "A man in a red shirt is riding a bike down the street. Two dogs are running through the snow."
WORD = "role=button[name='Hemd']"
COLOURS = 160


@dataclass(frozen=True)
class Picture:
    """One picture.

    Args:
        name: of the file.
        at: what the address says.
        size: of the window.
        dark: or light.
        hover: what the pointer is on; ``click``: what is pressed before.
        part: what of the page is shown; default: the window.
        text: what is typed, on the page of ``regard serve``; such a picture is made where it is named.
    """

    name: str
    at: dict[str, Any]
    size: tuple[int, int] = (1240, 860)
    dark: bool = False
    click: tuple[str, ...] = ()
    hover: str | None = None
    part: str | None = None
    text: str | None = None


def heads(kind: str, layer: int, head: int, **more: Any) -> dict[str, Any]:
    """The address of one head, with whole words."""
    return {"view": "heads", "kind": kind, "layer": layer, "head": head, "words": 1, "text": TIRED, **more}


NOUN, READ = ("encoder", 2, 1), ("cross", 2, 4)
"""In the demonstration's model of seed 1: where *it* looks at its noun, and where *es* looks at *it*."""
PICTURES = (
    Picture("explore-walk", {"view": "walk"}, (1240, 720)),
    Picture("explore-noun", heads(*NOUN, token=7)),
    Picture("explore-read", heads(*READ, token=8)),
    Picture("explore-needs", heads(*READ, token=8), (1240, 1010), click=("role=button[name=/^what does/]",)),
    Picture("explore-off", heads(*NOUN, token=7, off="encoder.2.1"), (1240, 1130)),
    Picture("explore-dark", heads(*NOUN, token=7), dark=True),
    Picture("explore-phone", heads(*NOUN, token=7), (390, 844)),
    Picture("explore-matrix", heads(*NOUN), (1240, 1180), click=("role=radio[name='matrix']",)),
    Picture("explore-equation", {**heads(*NOUN, token=7), "view": "equation"}, (1240, 1500)),
    Picture("explore-writing", {"view": "writing", "text": TIRED}, (1240, 1180)),
    Picture("explore-positions", {"view": "positions", "text": TIRED}, (1240, 900)),
    Picture("explore-words", {"view": "words", "text": TIRED}, (1240, 860)),
    Picture("explore-dictionary", {"view": "dictionary", "text": TIRED}, (1240, 900)),
    Picture("explore-compare", {**heads(*NOUN, token=7), "view": "compare", "text.2": WIDE}, (1240, 1290)),
    Picture("explore-class", {"view": "walk", "class": 1}, (1280, 720)),
    Picture("serve", {}, (1180, 660), click=(WORD,), text=STREET),
    Picture("serve-dark", {}, (1180, 560), dark=True, hover=WORD, text=STREET),
    Picture("serve-phone", {}, (390, 780), click=(WORD,), text=STREET),
    Picture("explore-training", {"view": "training", "text": TIRED}, (1240, 1060)),
)


def main() -> None:
    """Make all, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address")
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    from playwright.sync_api import sync_playwright

    path = os.environ.get("REGARD_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path)
        for one in PICTURES:
            if one.name in asked.names or not (asked.names or one.text):
                made(browser, asked.address, one, asked.folder / f"{one.name}.png")
        browser.close()


def made(browser: Any, address: str, one: Picture, file: Path) -> None:
    """Take one picture."""
    from PIL import Image

    width, height = one.size
    page = browser.new_page(
        viewport={"width": width, "height": height},
        device_scale_factor=1.5,
        color_scheme="dark" if one.dark else "light",
    )
    page.goto(f"{address}#{urlencode(one.at)}")
    page.wait_for_load_state("networkidle")
    if one.text:
        page.get_by_role("textbox").first.fill(one.text)
    else:
        page.wait_for_selector("nav", state="attached")
    page.wait_for_timeout(3000)
    for place in one.click:
        page.locator(place).first.click()
        page.wait_for_timeout(800)
    if one.hover:
        page.locator(one.hover).first.hover()
        page.wait_for_timeout(400)
    content = page.locator(one.part).screenshot() if one.part else page.screenshot()
    page.close()
    Image.open(io.BytesIO(content)).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(file, optimize=True)
    print(f"{file}: {file.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()

"""How fast the attention page is, in the system's own browser: first view, bytes, small pictures, hovering.

    pip install playwright      # and Chromium from the system, or REGARD_CHROMIUM=/path/to/it
    python benchmarks/page.py --work .bench/page

Two models are made for it, in one training step each, for their sizes alone: 12 layers of 12 heads, and a reader of 600
tokens. The server runs beside the browser, as it does for people. Times are what the page's own thread worked for
(``TaskDuration`` of Chromium), medians over many; first view is from the navigation's start to the
first picture of a head. One line is appended to ``results/page.jsonl``, or to ``--results FILE``.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import machine

HERE = Path(__file__).resolve().parent
BUILT = HERE.parent / "src" / "regard" / "explore" / "page"
MODELS: dict[str, dict[str, Any]] = {
    "twelve": {"layers": 12, "heads": 12, "d_model": 96, "d_ff": 96},
    "long": {"layers": 2, "heads": 4, "d_model": 64, "d_ff": 64},
}
WORDS = {"twelve": 126, "long": 510}
"""Of the text, so that with the symbols around it there are 128 and 512 tokens."""
WORD = "a"
TIMES = 30


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=HERE.parent / ".bench" / "page")
    parser.add_argument("--results", type=Path, default=HERE / "results" / "page.jsonl")
    return parser.parse_args()


def main() -> None:
    """Make the models, serve them, measure, append."""
    asked = options()
    begun = {"benchmark": "page", "date": machine.now(), "commit": machine.commit(), "machine": machine.describe()}
    folders = [made(asked.work, name) for name in MODELS]
    command = [sys.executable, "-m", "regard.cli", "explore", *map(str, folders), "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = re.findall(r"http://\S+", server.stdout.readline())[0]
            rows = measured(address)
        finally:
            server.kill()
    asked.results.parent.mkdir(parents=True, exist_ok=True)
    with asked.results.open("a", encoding="utf-8") as file:
        file.write(json.dumps({**begun, "name": "The attention page", "rows": rows}) + "\n")
    for row in rows:
        print(f"{row['what']:<58} {row['measured']:>8} {row['unit']}")


def made(work: Path, name: str) -> Path:
    """A model of masked words that has learned for one step."""
    from regard.runs.train import train

    folder = work / name
    if not (folder / "model.safetensors").exists():
        work.mkdir(parents=True, exist_ok=True)
        text = work / "texts.txt"
        text.write_text("".join(f"{chr(97 + n % 26)} {chr(97 + n // 26 % 26)} a b c\n" for n in range(2000)))
        recipe = {
            "text": {"vocabulary": 300},
            "data": {"max_tokens": 600},
            "task": "masked-lm",
            "model": {"family": "bert", **MODELS[name], "max_positions": 640},
            "training": {"steps": 1, "tokens": 1024},
        }
        train(train=[text], output=folder, recipe=recipe)
    return folder


def measured(address: str) -> list[dict[str, Any]]:
    """All figures."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    path = os.environ.get("REGARD_CHROMIUM") or next(filter(None, map(shutil.which, names)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path)
        rows = [row("bytes of the page, compressed", sum(map(compressed, BUILT.glob("assets/*"))) / 1000, "kB")]
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        for number, name in enumerate(MODELS):
            text = " ".join([WORD] * WORDS[name])
            views = [first_view(page, f"{address}#model={number}&text={text}") for _ in range(6)][1:]
            tokens = f"{WORDS[name] + 2} tokens, {MODELS[name]['layers']} × {MODELS[name]['heads']} heads"
            rows.append(row(f"first view: {tokens}", statistics.median(views) * 1000, "ms"))
            rows.append(row(f"all small pictures anew: {tokens}", work_of(page, PICTURES) * 1000, "ms"))
            rows.append(row(f"hovering a token, as lines: {tokens}", hovered(page, "lines") * 1000, "ms"))
            rows.append(row(f"hovering a token, as text: {tokens}", hovered(page, "text") * 1000, "ms"))
            rows.append(row(f"moving over the matrix: {tokens}", hovered(page, "matrix") * 1000, "ms"))
        browser.close()
    return rows


def row(what: str, value: float, unit: str) -> dict[str, Any]:
    """A line of the table."""
    return {"what": what, "measured": round(value, 1), "unit": unit}


def compressed(path: Path) -> int:
    """Bytes of a file as it is sent."""
    content = path.read_bytes()
    return len(content) if path.suffix == ".woff2" else len(gzip.compress(content, 9))


def first_view(page: Any, address: str) -> float:
    """Seconds from the navigation's start until heads are drawn."""
    page.goto("about:blank")
    began = time.perf_counter()
    page.goto(address, wait_until="commit")
    page.wait_for_selector(".grid canvas", timeout=60_000)
    page.evaluate("() => new Promise(requestAnimationFrame)")
    return time.perf_counter() - began


PICTURES = """(n) => new Promise(done => {
    const order = document.querySelector('section select')
    order.value = ['entropy', 'distance'][n % 2]
    order.dispatchEvent(new Event('change', { bubbles: true }))
    requestAnimationFrame(() => requestAnimationFrame(done))
})"""
HOVER = """([mode, n]) => new Promise(done => {
    if (mode === 'matrix') {
        const canvas = document.querySelector('.matrix canvas')
        const box = canvas.getBoundingClientRect()
        const place = { clientX: box.left + 150 + n * 9, clientY: box.top + 150 + n * 7, pointerId: 1, bubbles: true }
        canvas.dispatchEvent(new PointerEvent('pointermove', place))
    } else {
        const tokens = document.querySelectorAll(mode === 'lines' ? '.columns ol button' : '.text button')
        tokens[(n * 7) % tokens.length].dispatchEvent(new PointerEvent('pointerenter'))
    }
    requestAnimationFrame(() => requestAnimationFrame(done))
})"""


def hovered(page: Any, mode: str) -> float:
    """Seconds of work for one token under the pointer."""
    page.get_by_role("radiogroup", name="Drawn as").get_by_role("radio", name=mode, exact=True).click()
    page.wait_for_timeout(500)
    return work_of(page, HOVER, mode)


def work_of(page: Any, script: str, *given: Any) -> float:
    """The median of what the page's thread worked for one call of a script, in seconds."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def worked() -> float:
        found = session.send("Performance.getMetrics")["metrics"]
        return next(one["value"] for one in found if one["name"] == "TaskDuration")

    seconds = []
    for n in range(TIMES):
        before = worked()
        page.evaluate(script, [*given, n] if given else n)
        seconds.append(worked() - before)
    session.detach()
    return statistics.median(seconds)


if __name__ == "__main__":
    main()

"""Two sets of labelled texts of our own making, on which nothing was tuned.

*Subjects*: an English caption of Multi30k, and the first word of its German translation if that is one of five
frequent ones, else *other*: how many there are, and of which gender. *Segments*: a part of a description of a Debian
package, and whether that is the title, a paragraph or an item of a list.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

from corpus import DATA

from regard.text.lines import lines

Parts = dict[str, list[tuple[str, str]]]
SIZES = {"train": 6_000, "valid": 600, "test": 1_000}
FIRST = ("Ein", "Eine", "Zwei", "Drei", "Mehrere")


def subjects() -> Parts:
    """Captions with the first word of their translations."""
    files = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
    found = {}
    for part, name in files.items():
        english, german = (list(lines(DATA / "multi30k" / f"{name}.{language}.gz")) for language in ("en", "de"))
        firsts = [line.split(" ", 1)[0] for line in german]
        found[part] = [(text, word if word in FIRST else "other") for text, word in zip(english, firsts, strict=True)]
    return found


def segments() -> Parts:
    """Parts of descriptions with their kinds."""
    files = {"train": "train.en-de.tsv.xz", "valid": "dev.en-de.tsv.gz", "test": "test.en-de.tsv.gz"}
    rows = {part: [line.split("\t") for line in lines(DATA / "ddtp" / name)] for part, name in files.items()}
    return {part: [(english, kind) for _, kind, english, _ in some] for part, some in rows.items()}


DRAWN: dict[str, Callable[[], Parts]] = {"subjects": subjects, "segments": segments}
"""The sets of this module."""


def drawn_files(name: str, work: Path) -> Path:
    """The folder with the files of a set, made if it is not there: so many texts of each part, by a seed."""
    folder = work / f"{name}-data"
    if not (folder / "test.tsv").exists():
        folder.mkdir(parents=True, exist_ok=True)
        for part, rows in DRAWN[name]().items():
            chosen = Random(name).sample(rows, min(len(rows), SIZES[part]))
            rows = ["{}\t{}\n".format(text.replace("\t", " "), label) for text, label in (("text", "label"), *chosen)]
            (folder / f"{part}.tsv").write_text("".join(rows), encoding="utf-8", newline="")
    return folder

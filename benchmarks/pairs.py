"""Files of sentence pairs, made from what is there: paraphrases of the grammar, captions of two languages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

from corpus import data_folder


def paraphrase_files(folder: Path) -> None:
    """10,000 pairs to learn from, 1,000 to validate on, 1,000 to test: whether both sentences say the same.

    Combinations of verb, subject and object in the test pairs occur in no training pair.
    """
    from paraphrases import paraphrases

    for split, count in (("train", 10_000), ("valid", 1_000), ("test", 1_000)):
        found = paraphrases(split, count)
        _write(folder / f"{split}.tsv", ((pair.first, pair.second, pair.label) for pair in found))


def caption_files(folder: Path) -> None:
    """Each caption of Multi30k twice: with its German translation, and with that of another caption."""
    from regard.text.lines import lines

    data = data_folder()
    for split, name in (("train", "train"), ("valid", "val"), ("test", "test_2016_flickr")):
        english, german = (list(lines(data / f"{name}.{language}.gz")) for language in ("en", "de"))
        order = list(range(len(german)))
        Random(split).shuffle(order)
        other = {one: german[two] for one, two in zip(order, order[1:] + order[:1], strict=True)}
        rows = [(said, german[place], "translation") for place, said in enumerate(english)]
        rows += [(said, other[place], "other") for place, said in enumerate(english)]
        _write(folder / f"{split}.tsv", rows)


MADE: dict[str, Callable[[Path], None]] = {"paraphrases": paraphrase_files, "captions": caption_files}
"""The sets of this module."""


def pair_files(name: str, work: Path) -> Path:
    """The folder with the files of a set, made if it is not there."""
    folder = work / f"{name}-data"
    if not (folder / "test.tsv").exists():
        folder.mkdir(parents=True, exist_ok=True)
        MADE[name](folder)
    return folder


def _write(path: Path, rows: Iterable[tuple[str, str, str]]) -> None:
    cells = ((cell.replace("\t", " ") for cell in row) for row in (("sentence1", "sentence2", "label"), *rows))
    text = "".join("\t".join(row) + "\n" for row in cells)
    path.write_text(text, encoding="utf-8", newline="")

"""A set of sentence pairs, made from what is there: captions of two languages."""

from __future__ import annotations

from pathlib import Path
from random import Random

from corpus import data_folder


def caption_files(work: Path) -> Path:
    """The folder of the files, made if they are not there.

    Each caption of Multi30k twice: with its German translation, and with that of another caption.
    """
    from regard.text.lines import lines

    data, folder = data_folder(), work / "captions-data"
    if (folder / "test.tsv").exists():
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    for split, name in (("train", "train"), ("valid", "val"), ("test", "test_2016_flickr")):
        english, german = (list(lines(data / f"{name}.{language}.gz")) for language in ("en", "de"))
        order = list(range(len(german)))
        Random(split).shuffle(order)
        other = {one: german[two] for one, two in zip(order, order[1:] + order[:1], strict=True)}
        rows = [("sentence1", "sentence2", "label")]
        rows += [(said, german[place], "translation") for place, said in enumerate(english)]
        rows += [(said, other[place], "other") for place, said in enumerate(english)]
        cells = ("\t".join(cell.replace("\t", " ") for cell in row) + "\n" for row in rows)
        (folder / f"{split}.tsv").write_text("".join(cells), encoding="utf-8", newline="")
    return folder

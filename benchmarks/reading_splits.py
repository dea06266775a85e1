"""The sets of the tasks that read, each described once, and their parts as files that any program reads.

A set has files of its own for its parts, or is cut from one file (:class:`Cut`), or is made by ``pairs``.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from corpus import DATA
from drawn import DRAWN, drawn_files
from pairs import caption_files

PARTS = ("train", "valid", "test")
OUT_OF_SCOPE = "oos"
"""The label of CLINC150's texts of no class."""
Example = dict[str, Any]
"""``text`` and ``label``; or ``words``, ``tags`` and ``spaces``: whether a blank follows each word."""


@dataclass(frozen=True)
class Cut:
    """A set's one file in five blocks: one to test on, a seeded tenth of the others to validate on.

    Sentences of an article stand together, so that an article is on two sides only where a block ends in it.

    Args:
        whole: the file.
        fold: the number of the block to test on, from 1.
    """

    whole: str
    fold: int

    def parts(self, examples: list[Any]) -> dict[str, list[Any]]:
        """The examples of each part, in the file's order."""
        begin, end = (len(examples) * place // 5 for place in (self.fold - 1, self.fold))
        learned, valid = held_out(examples[:begin] + examples[end:], self.whole)
        return dict(zip(PARTS, (learned, valid, examples[begin:end]), strict=True))


@dataclass(frozen=True)
class Set:
    """A data set as ``regard train`` is given it.

    Args:
        task: what is learned.
        folder: below the folder of data; empty: made by ``pairs``.
        train, valid, test: files; several are put together, and no ``valid`` means a seeded tenth of train.
        columns: where things stand in them.
        score: the figure the set is judged by.
        cut: how the files are made of one, if they are.
    """

    task: str
    folder: str
    train: tuple[str, ...]
    valid: tuple[str, ...]
    test: tuple[str, ...]
    columns: str | None
    score: str
    cut: Cut | None = None


def entities_of_one_file(folder: str, whole: str, fold: int) -> Set:
    """A set of entities that is cut."""
    train, valid, test = ((f"{part}.conll",) for part in PARTS)
    return Set("tagging", folder, train, valid, test, None, "f1", Cut(whole, fold))


FOLDS = {"wikigold": tuple(f"wikigold-{fold}" for fold in range(1, 6))}
"""Sets that are tested in folds, each by the names of those."""
SETS = {
    "trec": Set("classification", "cls-trec", ("train.txt.gz",), (), ("test.txt.gz",), "label:fine text", "accuracy"),
    "sst2": Set("classification", "cls-sst2", ("train.tsv.gz",), ("dev.tsv.gz",), ("test.tsv.gz",), None, "accuracy"),
    "clinc150": Set(
        "classification",
        "cls-clinc150",
        ("train.tsv.gz",),
        ("val.tsv.gz", "oos_val.tsv.gz"),
        ("test.tsv.gz", "oos_test.tsv.gz"),
        "2,1",
        "accuracy",
    ),
    **{
        name: Set("classification", "", ("train.tsv",), ("valid.tsv",), ("test.tsv",), None, "accuracy")
        for name in DRAWN
    },
    "snips": Set("classification", "cls-snips", ("train.tsv.gz",), (), ("validate.tsv.gz",), "2,1", "accuracy"),
    "ewt": Set(
        "tagging", "ud-en-ewt", ("train.rebuilt.conllu.xz",), ("dev.conllu.gz",), ("test.conllu.gz",), None, "accuracy"
    ),
    "wnut17": Set("tagging", "ner-wnut17", ("train.conll.gz",), ("dev.conll.gz",), ("test.conll.gz",), None, "f1"),
    "btc": Set("tagging", "ner-btc", ("train.conll.gz",), (), ("dev.conll.gz",), None, "f1"),
    **{
        name: entities_of_one_file("ner-wikigold", "wikigold.conll.gz", fold)
        for fold, name in enumerate(FOLDS["wikigold"], 1)
    },
    "legal-de": entities_of_one_file("ner-legal-de", "dev.conll.gz", 5),
    "optdigits": Set(
        "image-classification", "img-optdigits", ("train.csv.gz",), (), ("test.csv.gz",), None, "accuracy"
    ),
    "captions": Set("sentence-pairs", "", ("train.tsv",), ("valid.tsv",), ("test.tsv",), None, "accuracy"),
}


def files_of(name: str, work: Path) -> Path:
    """The folder of a set's files, which are made below ``work`` if they are not there."""
    data = SETS[name]
    if name in DRAWN:
        return drawn_files(name, work)
    if data.cut is None:
        return caption_files(work) if name == "captions" else DATA / data.folder
    folder = work / f"{name}-data"
    if not (folder / data.test[0]).exists():
        parts = data.cut.parts(read(data, DATA / data.folder / data.cut.whole))
        for part, examples in parts.items():
            write(folder / f"{part}.conll", conll(examples))
    return folder


def together(folder: Path, parts: tuple[str, ...], work: Path) -> Path:
    """One file of several; a single one as it is."""
    if len(parts) == 1:
        return folder / parts[0]
    work.mkdir(parents=True, exist_ok=True)
    whole = work / "+".join(parts)
    with gzip.open(whole, "wb") as written:
        for part in parts:
            written.write(gzip.decompress((folder / part).read_bytes()))
    return whole


def splits_of(name: str, work: Path) -> Path:
    """A folder with the parts of a set of labels or tags, which are written once.

    Each as JSON lines, and as ``regard train`` reads it. Texts of no class are left out, and entities are written as
    BIO whatever the scheme of the set.
    """
    data, folder = SETS[name], work / "splits" / name
    if (folder / "test.jsonl").exists():
        return folder
    files = files_of(name, work)
    parts = {part: [one for file in getattr(data, part) for one in read(data, files / file)] for part in PARTS}
    if not parts["valid"]:
        parts["train"], parts["valid"] = held_out(parts["train"], name)
    for part, examples in parts.items():
        write(folder / f"{part}{ending(data)}", WRITERS[ending(data)](examples))
        write(folder / f"{part}.jsonl", (f"{json.dumps(one, ensure_ascii=False)}\n" for one in examples))
    return folder


def ending(data: Set) -> str:
    """Of the files that ``regard train`` reads: CoNLL-U keeps blanks, where a set knows them."""
    if data.task == "classification":
        return ".tsv"
    return ".conllu" if any("conllu" in file for file in data.test) else ".conll"


def held_out(examples: list[Any], key: str) -> tuple[list[Any], list[Any]]:
    """A random tenth apart from the others, both in their order."""
    chosen = set(Random(key).sample(range(len(examples)), len(examples) // 10))
    sides = ([one for place, one in enumerate(examples) if (place in chosen) == out] for out in (False, True))
    learned, held = sides
    return learned, held


def read(data: Set, path: Path) -> list[Example]:
    """The examples of a file of labelled texts or tagged words."""
    from regard.tasks import model_class
    from regard.text.tags import convert_tags

    found = list(model_class(data.task).open_corpus(path, data.columns).examples())
    if data.task == "classification":
        return [{"text": text, "label": label} for text, label in found if label != OUT_OF_SCOPE]
    scheme = "bio" if data.score == "f1" else "none"
    return [
        {"words": one.words, "tags": convert_tags(one.tags, scheme), "spaces": blanks(one.text, one.places)}
        for one in found
    ]


def blanks(text: str, places: Iterable[tuple[int, int]]) -> list[bool]:
    """Whether a blank follows each word."""
    return [text[end : end + 1] == " " for _, end in places]


def tsv(examples: Iterable[Example]) -> Iterable[str]:
    """A text and its label a line, below their names."""
    yield "text\tlabel\n"
    yield from ("{}\t{}\n".format(one["text"].replace("\t", " "), one["label"]) for one in examples)


def conll(examples: Iterable[Example]) -> Iterable[str]:
    """A word and its tag a line."""
    for one in examples:
        yield "".join(f"{word}\t{tag}\n" for word, tag in zip(one["words"], one["tags"], strict=True)) + "\n"


def conllu(examples: Iterable[Example]) -> Iterable[str]:
    """Words with their tags and blanks, a multiword token as its words without blanks between."""
    for one in examples:
        rows = zip(one["words"], one["tags"], one["spaces"], strict=True)
        for number, (word, tag, blank) in enumerate(rows, 1):
            yield "\t".join((str(number), word, "_", tag, *"_____", "_" if blank else "SpaceAfter=No")) + "\n"
        yield "\n"


WRITERS: dict[str, Callable[[Iterable[Example]], Iterable[str]]] = {".tsv": tsv, ".conll": conll, ".conllu": conllu}


def write(path: Path, lines: Iterable[str]) -> None:
    """A file of UTF-8."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines), encoding="utf-8", newline="")

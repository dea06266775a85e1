"""Folders of prepared data: created atomically, described by an index, verified and opened as shards."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, ValidationError

from regard.config import FORMAT, checksum
from regard.data.corpora.corpus import TextPair
from regard.data.prepare.bpe_dropout import SegmentedShards
from regard.data.prepare.encoders import PairEncoder, TextEncoder
from regard.data.prepare.shards import DocumentIndex, Entry, Shards
from regard.data.prepare.split import PARTS
from regard.system import disk
from regard.system.errors import Damaged, Option, RegardError
from regard.text.language_tokens import Direction
from regard.text.lines import lines
from regard.text.tokenizers.vocabulary import Vocabularies

INDEX = "index.json"
_OURS = re.compile(
    r"index\.json|languages(\.ngrams)?\.json|words\.source\.json|tokenizer[.\w-]*\.json|ngrams\.safetensors(\.partial)?$|(train|validation)\.[.\w-]+$"
)
Count = Annotated[int, Field(ge=0, lt=1 << 63, strict=True)]
OTHERS = {
    "data": "other data",
    "validation": "other data",
    "fingerprint.unlabelled": "texts without labels too, from which Regard no longer learns",
}
"""What a folder was prepared from, where an input differs, in words."""
VALIDATION = tuple(f"validation.{side}.txt" for side in PairEncoder.sides)


class DataMismatch(RegardError):
    """A folder was prepared from other inputs."""


def discard(folder: Path) -> None:
    """Remove prepared data, whole or cut off; nothing where there is none.

    Raises:
        RegardError: the folder holds a file that preparing does not write.
    """
    if folder.is_dir() and not folder.is_symlink():
        foreign = sorted(path.name for path in folder.iterdir() if path.is_dir() or not _OURS.match(path.name))
        if foreign:
            message = f"holds {foreign[0]!r}, which Regard did not put there; move it, or choose another output folder"
            raise RegardError(message, str(folder))
        shutil.rmtree(folder, ignore_errors=True)
    elif os.path.lexists(folder):
        raise RegardError("is no folder of prepared data; move it, or choose another output folder", str(folder))


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder to write into; renamed to ``folder`` on success.

    Raises:
        RegardError: a folder of the temporary name holds files of others.
    """
    partial = folder.with_name(f"{folder.name}.partial")
    discard(partial)
    partial.mkdir(parents=True)
    yield partial
    os.rename(partial, folder)


def finish(folder: Path, index: Mapping[str, object], files: Entry) -> None:
    """Write the index, the last of a folder's files.

    Args:
        folder: what is being made.
        index: everything but format, fingerprint and files; the fingerprint is over its ``rests``.
        files: entries of files hashed while they were written; the others are read and flushed.
    """
    entries = dict(files)
    for path in sorted(folder.iterdir()):
        if path.name not in entries:
            _flush(path)
            entries[path.name] = {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
    rests = json.dumps(index["rests"], sort_keys=True)
    whole = {"format": FORMAT, **index, "fingerprint": hashlib.sha256(rests.encode()).hexdigest(), "files": entries}
    with disk.naming(folder / INDEX):
        (folder / INDEX).write_bytes(checksum.dump_json(whole))
    _flush(folder / INDEX)


def verify_folder(folder: Path) -> Entry:
    """The index of a folder after checking its sha256 and every file's; older indices have no sha256 of their own.

    Raises:
        Damaged: the index or a file is missing or not as it was written.
        RegardError: a newer Regard wrote it.
    """
    where = folder / INDEX
    try:
        index = checksum.load_json(disk.content(where, kind="index", error=Damaged), where)
        files = {name: (entry["bytes"], entry["sha256"]) for name, entry in index["files"].items()}
        if not isinstance(index["inputs"], dict):
            raise TypeError("its inputs have no names")
    except (KeyError, TypeError, AttributeError) as error:
        raise Damaged(f"is missing or damaged ({error})", str(where)) from None
    for name, (size, digest) in files.items():
        if not disk.is_plain(name):
            raise Damaged(f"names {name!r:.80}, which lies outside of the folder", str(where))
        path = folder / name
        if not path.is_file() or path.stat().st_size != size or sha256_of(path) != digest:
            raise Damaged("is missing or damaged", str(path))
    return index


def is_reusable(folder: Path, inputs: Mapping[str, object]) -> bool:
    """Whether ``folder`` exists and was prepared from the same inputs.

    Raises:
        Damaged: it is not as it was written.
        DataMismatch: it was prepared from other inputs (names the difference).
        RegardError: a newer Regard prepared it.
    """
    if not folder.exists():
        return False
    before = verify_folder(folder)["inputs"]
    for name in sorted(before.keys() | inputs.keys()):
        if before.get(name) != inputs.get(name):
            what = OTHERS.get(name, f"another {name}")
            raise DataMismatch(f"was prepared from {what}; choose another output folder", str(folder))
    return True


def sha256_of(path: Path) -> str:
    """The sha256 of a file's content."""
    with disk.open_binary(path) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _flush(path: Path) -> None:
    with disk.naming(path), path.open("rb") as stream:
        os.fsync(stream.fileno())


class Side(BaseModel):
    """Index entry of the files of one side of a corpus; see :class:`~regard.data.prepare.shards.SideWriter`."""

    sentences: Count
    tokens: Count
    longest: Count
    type: Literal["<u2", "<u4"]
    begins: list[Count]
    ids: list[str]
    offsets: str


class Table(BaseModel):
    """Index entry of the segmentations of words; see :class:`~regard.data.prepare.bpe_dropout.WordTable`."""

    rows: Side
    words: str


class LeftOut(BaseModel):
    """Counts of left-out examples, and the places of some."""

    counts: dict[str, Count]
    examples: dict[str, list[str]]


class BaseIndex(BaseModel):
    """Fields of every index."""

    fingerprint: str
    sides: dict[str, Side]
    left_out: LeftOut
    mended: list[str]


class PairsIndex(BaseIndex):
    """Index of prepared sentence pairs; ``directions``: of the corpora, ``held``: the validation pairs of each;
    ``held_of``: those of each corpus by its name, where there are several.
    """

    sizes: list[Count]
    directions: list[tuple[str, str]] = []
    held: list[tuple[str, str, Count]] = []
    held_of: list[tuple[str, Count]] = []
    tables: dict[str, Table]
    seed: int
    max_tokens: int


class TaskFields(BaseModel, extra="allow"):
    """What only some tasks have."""

    labels: list[str] = []
    others: list[str] = []
    scheme: str = ""
    largest: Count = 0


class ExamplesIndex(BaseIndex):
    """Index of prepared texts or images with labels."""

    own: TaskFields
    wholes: dict[Literal["train", "validation"], str] = {}


class PreparedFolder:
    """A folder of prepared data, every file checked against its sha256 when opened.

    Args:
        folder: of the data.
        kind: the schema of its index.
        sides: names of both sides.

    Raises:
        RegardError: a file is missing or damaged.
    """

    directions: Sequence[Direction] = ()
    """Languages of the corpora, of pairs where they differ."""

    def __init__(self, folder: Path, kind: type[PairsIndex] | type[ExamplesIndex], sides: tuple[str, str]) -> None:
        self.folder, self.index = folder, verify_folder(folder)
        self._refuse_others(kind, [f"{part}.{side}" for part in PARTS for side in sides])
        self.fingerprint: str = self.index["fingerprint"]
        self.left_out: Entry = self.index["left_out"]
        self.mended: list[str] = self.index["mended"]

    def _refuse_others(self, kind: type[PairsIndex] | type[ExamplesIndex], sides: Sequence[str]) -> None:
        """Raise a Damaged where the index is not of this kind, or lacks one of these sides or the sha256 of a file."""
        index, where = self.index, str(self.folder / INDEX)
        try:
            kind.model_validate(index)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise Damaged(f"is damaged: {place:.80}: {first['msg']:.80}", where) from None
        tables, wholes = index.get("tables", {}).values(), index.get("wholes", {})
        named = [index["sides"].get(side) for side in sides] + [table["rows"] for table in tables]
        files = [name for side in named if side for name in (*side["ids"], side["offsets"])]
        files += [*(table["words"] for table in tables), *wholes.values()]
        named += [None] * any(name != f"{part}.wholes" for part, name in wholes.items())
        if None in named or not all(map(disk.is_plain, files)) or not set(files) <= index["files"].keys():
            raise Damaged("is damaged: it lacks a side of the data, or the sha256 of a file", where)

    def shards(self, name: str) -> Shards:
        """A side of a part."""
        return Shards(self.folder, self.index["sides"][name])


class PreparedPairs(PreparedFolder):
    """Prepared sentence pairs."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, PairsIndex, PairEncoder.sides)
        self.vocabularies = Vocabularies.load(folder)
        self.sizes: tuple[int, ...] = tuple(self.index["sizes"])
        self.source, self.target = self._side("train.source"), self._side("train.target")
        self.validation_source = self.shards("validation.source")
        self.validation_target = self.shards("validation.target")
        self.pairs, self.start = self.source.count, self.vocabularies.target.start
        self.directions = [(one, other) for one, other in self.index.get("directions", ())]
        held = [(one, other) for one, other, count in self.index.get("held", ()) for _ in range(count)]
        self.held_directions: list[Direction | None] = [*held] or [None] * self.validation_source.count
        """Of each validation pair; ``None`` where all are alike."""
        self.held_of: list[tuple[str, int]] = [(name, count) for name, count in self.index.get("held_of", ())]
        """Of several corpora the name of each, and how many of the validation pairs it has, one after the other."""

    def _side(self, name: str) -> Shards | SegmentedShards:
        table = self.index["tables"].get(name)
        if table is None:
            return self.shards(name)
        words = self.shards(name)
        return SegmentedShards.load(self.folder, words, table, self.index["seed"], self.index["max_tokens"])

    def validation_pairs(self) -> list[TextPair]:
        """The text of the validation pairs, in the order of their ids."""
        source, target = (lines(self.folder / name) for name in VALIDATION)
        return [TextPair(*pair) for pair in zip(source, target, strict=True)]


class PreparedExamples(PreparedFolder):
    """Prepared texts, documents or images."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, ExamplesIndex, TextEncoder.sides)
        self.own: Entry = TaskFields.model_validate(self.index["own"]).model_dump()
        self.text, self.labels = self.shards("train.text"), self.shards("train.labels")
        self.validation_text = self.shards("validation.text")
        self.validation_labels = self.shards("validation.labels")
        self.count = self.text.count

    @cached_property
    def wholes(self) -> DocumentIndex:
        """The examples that are learned from, each of one window or several."""
        return self._wholes("train")

    @cached_property
    def validation_wholes(self) -> DocumentIndex:
        """The validation examples."""
        return self._wholes("validation")

    def _wholes(self, part: str) -> DocumentIndex:
        if "wholes" not in self.index:
            message = "was prepared by an earlier Regard, which did not say which windows are of one text"
            raise RegardError(f"{message}; choose another folder, or {Option('resume', 'never')}", str(self.folder))
        return DocumentIndex(self.folder / self.index["wholes"][part])

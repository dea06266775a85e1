"""Prepared data opened for training: the shards of both sides of each part."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

from regard.data.corpora.corpus import TextPair
from regard.data.prepare.bpe_dropout import SegmentedShards
from regard.data.prepare.encoders import PairEncoder, TextEncoder
from regard.data.prepare.folder import ExamplesIndex, PairsIndex, read_index
from regard.data.prepare.shards import Shards
from regard.data.prepare.windowing import DocumentIndex
from regard.system.errors import RegardError
from regard.text.lines import lines
from regard.text.tokenizers.vocabulary import Vocabularies

PARTS = ("train", "validation")
VALIDATION = tuple(f"validation.{side}.txt" for side in PairEncoder.sides)


class PreparedFolder:
    """A folder of prepared data, every file checked against its sha256 when opened.

    Args:
        folder: of the data.
        kind: the schema of its index.
        sides: names of both sides.

    Raises:
        RegardError: a file is missing or damaged.
    """

    def __init__(self, folder: Path, kind: type[PairsIndex] | type[ExamplesIndex], sides: tuple[str, str]) -> None:
        self.folder = folder
        self.index = read_index(folder, kind, tuple(f"{part}.{side}" for part in PARTS for side in sides))
        self.fingerprint: str = self.index["fingerprint"]
        self.left_out: dict[str, Any] = self.index["left_out"]
        self.mended: list[str] = self.index["mended"]

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
        self.pairs = self.source.count

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
        self.own: dict[str, Any] = self.index["own"]
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
            raise RegardError(f"{message}; choose another output folder, or --resume never", str(self.folder))
        return DocumentIndex(self.folder / self.index["wholes"][part])

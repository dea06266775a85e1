"""A folder of prepared data: ids of the training and validation pairs, and the vocabularies they were made with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from regard.data.corpora import Pair
from regard.data.described import OfPairs, described
from regard.data.segmented import SegmentedShards
from regard.data.shards import Shards
from regard.text.lines import lines
from regard.text.vocabulary import Vocabularies

SIDES = ("train.source", "train.target", "validation.source", "validation.target")
VALIDATION = ("validation.source.txt", "validation.target.txt")


class Prepared:
    """A folder of prepared data, every file checked against its sha256 when opened.

    Raises:
        RegardError: a file is missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self.index = folder, described(folder, OfPairs, SIDES)
        self.fingerprint: str = self.index["fingerprint"]
        self.vocabularies = Vocabularies.load(folder)
        self.sizes: tuple[int, ...] = tuple(self.index["sizes"])
        self.left_out: dict[str, Any] = self.index["left_out"]
        self.mended: list[str] = self.index["mended"]
        self.source, self.target = self._side("train.source"), self._side("train.target")
        self.validation_source = Shards(folder, self.index["sides"]["validation.source"])
        self.validation_target = Shards(folder, self.index["sides"]["validation.target"])
        self.pairs = self.source.count

    def _side(self, name: str) -> Shards | SegmentedShards:
        entry, table = self.index["sides"][name], self.index["tables"].get(name)
        if table is None:
            return Shards(self.folder, entry)
        return SegmentedShards(self.folder, entry, table, self.index["seed"], self.index["max_tokens"])

    def validation_pairs(self) -> list[Pair]:
        """The text of the validation pairs, in the order of their ids."""
        source, target = (lines(self.folder / name) for name in VALIDATION)
        return list(zip(source, target, strict=True))

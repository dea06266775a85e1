"""Preparation of small data as training does it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.config import Recipe
from regard.data.checks.pairs import PairScan
from regard.data.corpora.corpus import Corpus, Progress, TextPair, no_progress
from regard.data.corpora.pairs import open_pairs
from regard.data.corpora.scan import DataScan
from regard.data.prepare.folder import PreparedPairs
from regard.tasks.translation.training import TranslationJob

WORDS = ["red", "house", "boat", "sails", "tired", "animal", "street", "wide"]


def written(folder: Path, name: str, sources: Sequence[str], targets: Sequence[str]) -> Corpus[TextPair]:
    """Sentence pairs in two files of a folder."""
    for ending, texts in (("en", sources), ("de", targets)):
        (folder / f"{name}.{ending}").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return open_pairs(folder / f"{name}.en", folder / f"{name}.de")


def prepare_pairs(
    corpora: Sequence[Any], recipe: Recipe, folder: Path, validation: Any = None, progress: Progress = no_progress
) -> PreparedPairs:
    """The prepared data of sentence pairs."""
    return TranslationJob(recipe, DataScan.of(corpora, validation, scan=PairScan)).prepare(folder, progress)

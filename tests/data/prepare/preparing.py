"""Preparation of small data as training does it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regard.config import Recipe
from regard.data.checks.pairs import PairScan
from regard.data.corpora.corpus import Progress, no_progress
from regard.data.corpora.scan import DataScan
from regard.data.prepare.prepared import PreparedPairs
from regard.tasks.translation.training import TranslationJob


def prepare_pairs(
    corpora: Sequence[Any], recipe: Recipe, folder: Path, validation: Any = None, progress: Progress = no_progress
) -> PreparedPairs:
    """The prepared data of sentence pairs."""
    return TranslationJob(recipe, DataScan.of(corpora, validation, scan=PairScan)).prepare(folder, progress)

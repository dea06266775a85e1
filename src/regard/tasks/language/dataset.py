"""Data for language models, masked LM and span corruption: documents, held-out split, tokenizer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar

from regard.config import Recipe
from regard.data.corpora.corpus import Corpus, Progress
from regard.data.corpora.documents import DocumentPart, open_documents, refuse_columns
from regard.data.corpora.held_out import DocumentSeries, HeldOut, measure_corpora, split_documents
from regard.data.corpora.scan import DataScan, Scan
from regard.data.prepare.encoders import DocumentEncoder
from regard.data.prepare.prepared import PreparedExamples
from regard.data.prepare.split import Examples, SplitCorpora, SplitDocuments
from regard.system.keys import generator
from regard.tasks.input_files import InputFiles
from regard.tasks.protocols import DataPaths, TrainingJob, TrainingTask
from regard.tasks.text.assets import TextAssets
from regard.tasks.text.preparation import learned_tokenizer, prepare_split
from regard.text.tokenizers.vocabulary import AnyTokenizer

PART = 10_000
"""Characters per part, when a sample is drawn to learn the vocabulary."""
LEARNED_FROM = 50_000_000
"""Most characters to learn the vocabulary from: more would hardly change it, and must fit in memory."""


Text = tuple[Recipe, HeldOut | tuple[DocumentSeries, Corpus[DocumentPart]], int]
"""The recipe for running text; the text of which a part is held out, or that to learn from and that to validate on;
and how many characters there are."""


def open_text(given: InputFiles, asked: Callable[[int], Recipe], told: Callable[[str], None]) -> Text:
    """Open the files and count their characters; hold some text out if no validation file is given.

    Args:
        given: the files; columns are the key of a text in JSONL.
        asked: the recipe for n characters.
        told: receives messages.

    Raises:
        UsageError: columns are given, but no file is JSONL.
        RegardError: a file cannot be read, or there is too little text.
    """
    early = asked(1)
    key = given.columns or "text"
    learned, validation = given.corpora(lambda path, _: open_documents(path, early.data.documents, key))
    refuse_columns(given.columns, [*learned, *([validation] if validation else [])])
    found = measure_corpora(learned)
    told(f"{_count_text(found.documents, 'document')}, {_count_text(found.characters, 'character')}")
    recipe = asked(found.characters)
    if validation is not None:
        return recipe, (DocumentSeries(learned), validation), found.characters
    return recipe, split_documents(learned, found, recipe.seed), found.characters


def _count_text(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


@dataclass(frozen=True)
class RunningTextJob(TrainingJob):
    """A task on running text, before there is a model.

    Args:
        text: of which a part is held out; or that to learn from, and that to validate on.
        characters: of the training files.
    """

    text: HeldOut | tuple[DocumentSeries, Corpus[DocumentPart]]
    characters: int
    symbols: ClassVar[tuple[str, ...]] = ()
    """Those of the task, in a vocabulary that is learned."""
    rests: ClassVar[tuple[str, ...]] = ("data.documents",)
    """Fields of the recipe that the prepared data depends on."""

    @staticmethod
    @abstractmethod
    def encoder(tokenizer: AnyTokenizer, recipe: Recipe) -> DocumentEncoder:
        """How documents become ids."""

    def prepare(self, folder: Path, progress: Progress) -> PreparedExamples:
        """The documents as ids."""
        sample = VocabularySample(self.characters, self.recipe.seed)
        examples: Examples[DocumentPart]
        if isinstance(self.text, HeldOut):
            fresh = not folder.exists()  # then the vocabulary's sample is drawn on the way
            examples = SplitDocuments(self.text, sample.add if fresh else lambda text: None, progress)
        else:
            scanned: DataScan[Scan[DocumentPart]] = DataScan.of([self.text[0]], self.text[1], progress)
            scanned.refuse_unreadable("documents")
            examples = SplitCorpora(scanned)

        def learn(documents: Iterator[DocumentPart]) -> DocumentEncoder:
            for part in documents if not sample.texts else ():
                sample.add(part.text)
            return self.encoder(
                learned_tokenizer(self.recipe.text, sample.texts, self.pretrained, self.symbols), self.recipe
            )

        rests = {name: attrgetter(name)(self.recipe) for name in self.rests}
        return prepare_split(examples, self.recipe, folder, learn, {**rests, **self.more()}, progress)

    def assets(self, prepared: PreparedExamples) -> TextAssets:
        """The tokenizer."""
        return TextAssets.load(prepared.folder)

    def teach(self, task: Any, prepared: PreparedExamples, paths: DataPaths) -> TrainingTask:
        """The training task for a fresh model."""
        found: TrainingTask = self.training(task, prepared, paths, self.characters)
        return found


class VocabularySample:
    """Texts to learn a vocabulary from; or, if they are too many, parts of them drawn by seed.

    Args:
        characters: of all texts together.
        seed: of the draw.
        most: characters to keep, about.
    """

    def __init__(self, characters: int, seed: int, most: int = LEARNED_FROM) -> None:
        self.texts: list[str] = []
        self._share, self._random = most / max(1, characters), generator(seed, "vocabulary")

    def add(self, text: str) -> None:
        """Take the next text, or parts of it."""
        if self._share >= 1:
            self.texts.append(text)
            return
        begins = range(0, len(text), PART)
        self.texts += [text[begin : begin + PART] for begin in begins if self._random.random() < self._share]

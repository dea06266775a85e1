"""Data for language models, masked LM and span corruption: documents, held-out split, tokenizer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from torch import nn

from regard.config import Recipe
from regard.data.corpora.documents import open_documents, refuse_columns
from regard.data.corpora.held_out import as_one_corpus, measure_corpora, split_documents
from regard.data.corpora.pairs import Corpus
from regard.data.corpora.passes import Progress
from regard.data.prepare.encoders import ExampleEncoder
from regard.data.prepare.examples import OF_DOCUMENTS, PreparedExamples, prepare_examples
from regard.system.keys import generator
from regard.tasks.text.assets import TextAssets
from regard.tasks.text.pretrained import Pretrained, learned_tokenizer
from regard.text.tokenizers.vocabulary import AnyTokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from regard.tasks.input_files import InputFiles

PART = 10_000
"""Characters per part, when a sample is drawn to learn the vocabulary."""
LEARNED_FROM = 50_000_000
"""Most characters to learn the vocabulary from: more would hardly change it, and must fit in memory."""


@dataclass(frozen=True)
class RunningText:
    """Running text for a task.

    Args:
        recipe: chosen for this amount of text.
        learned: training text.
        validation: the held-out or given validation text.
        characters: of the training files.
        begun: a model to initialise from.
    """

    recipe: Recipe
    learned: Corpus
    validation: Corpus
    characters: int
    begun: Pretrained | None = None


def running_text(given: InputFiles, asked: Callable[[int], Recipe], told: Callable[[str], None]) -> RunningText:
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
    train, held = (
        split_documents(learned, found, recipe.seed) if validation is None else (as_one_corpus(learned), validation)
    )
    return RunningText(recipe, train, held, found.characters, given.begun)


def _count_text(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


@dataclass(frozen=True)
class RunningJob(ABC):
    """A task on running text, before there is a model; fits :class:`~regard.tasks.protocols.TrainingJob`."""

    text: RunningText
    task: ClassVar[type[Any]]
    symbols: ClassVar[tuple[str, ...]] = ()
    """Those of the task, in a vocabulary that is learned."""

    @property
    def recipe(self) -> Recipe:
        """The recipe of the run."""
        return self.text.recipe

    @staticmethod
    @abstractmethod
    def coding(tokenizer: AnyTokenizer, recipe: Recipe) -> ExampleEncoder:
        """How documents become ids."""

    def prepare(self, recipe: Recipe, folder: Path, progress: Progress) -> PreparedExamples:
        """The documents as ids."""

        def learn(pairs: Iterable[tuple[str, str]]) -> ExampleEncoder:
            texts = subsample_texts((text for text, _ in pairs), self.text.characters, recipe.seed)
            return self.coding(learned_tokenizer(recipe.text, texts, self.text.begun, self.symbols), recipe)

        rests, text = self.rests(recipe), self.text
        return prepare_examples([text.learned], recipe, folder, learn, rests, text.validation, progress, OF_DOCUMENTS)

    def rests(self, recipe: Recipe) -> dict[str, Any]:
        """What the prepared data depends on besides the text and its vocabulary."""
        return {"data.documents": recipe.data.documents, **self.more()}

    def assets(self, prepared: PreparedExamples) -> TextAssets:
        """The tokenizer."""
        return TextAssets.load(prepared.folder)

    def begin(self, model: nn.Module) -> None:
        """Copy the weights of the pretrained model."""
        if self.text.begun:
            self.text.begun.give(model)

    def more(self) -> dict[str, str]:
        """The fingerprint of the pretrained model."""
        return self.text.begun.fingerprint if self.text.begun else {}


def subsample_texts(texts: Iterable[str], characters: int, seed: int, most: int = LEARNED_FROM) -> Iterator[str]:
    """The texts; or if they have more than ``most`` characters together, parts of them drawn by seed."""
    if characters <= most:
        yield from texts
        return
    random = generator(seed, "vocabulary")
    for text in texts:
        for begin in range(0, len(text), PART):
            if random.random() < most / characters:
                yield text[begin : begin + PART]

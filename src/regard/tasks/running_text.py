"""What tasks on running text have in common before there is a model: the documents, and what is kept back of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from torch import nn

from regard.config import Recipe
from regard.data.coding import Coding
from regard.data.corpora import Corpus
from regard.data.documents import documents, refuse_columns
from regard.data.prepare_examples import OF_DOCUMENTS, PreparedExamples, prepare_examples
from regard.data.survey import Progress
from regard.data.tail import extent, kept_back, whole
from regard.keys import generator
from regard.tasks.pretrained import Pretrained, learned_tokenizer
from regard.tasks.text_assets import TextAssets
from regard.text.vocabulary import AnyTokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from regard.tasks.jobs import Given

PART = 10_000
"""Characters of which some are drawn to learn the vocabulary from, where there are too many."""
LEARNED_FROM = 50_000_000
"""Characters that the vocabulary is learned from at most: more would hardly change it, and must stand in memory."""


@dataclass(frozen=True)
class RunningText:
    """Running text as a task gets it.

    Args:
        recipe: what suits so much of it.
        learned: what is learned from.
        validation: what is kept back, or was given to validate on.
        characters: of all that was given to learn from.
        begun: a model to begin from.
    """

    recipe: Recipe
    learned: Corpus
    validation: Corpus
    characters: int
    begun: Pretrained | None = None


def running_text(given: Given, asked: Callable[[int], Recipe], told: Callable[[str], None]) -> RunningText:
    """Open the files and look how much there is; keep something back, where nothing was given to validate on.

    Args:
        given: the files; columns are the key of a text in JSONL.
        asked: the recipe for so many characters.
        told: what is worth saying.

    Raises:
        UsageError: columns are given, but no file is JSONL.
        RegardError: a file cannot be read, or there is too little text.
    """
    early = asked(1)
    key = given.columns or "text"
    learned, validation = given.corpora(lambda path, _: documents(path, early.data.documents, key))
    refuse_columns(given.columns, [*learned, *([validation] if validation else [])])
    found = extent(learned)
    told(f"{_counted(found.documents, 'document')}, {_counted(found.characters, 'character')}")
    recipe = asked(found.characters)
    train, held = kept_back(learned, found, recipe.seed) if validation is None else (whole(learned), validation)
    return RunningText(recipe, train, held, found.characters, given.begun)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


@dataclass(frozen=True)
class RunningJob(ABC):
    """A task on running text, before there is a model; fits :class:`~regard.tasks.teaching.Job`."""

    text: RunningText
    task: ClassVar[type[Any]]
    symbols: ClassVar[tuple[str, ...]] = ()
    """Those of the task, in a vocabulary that is learned."""

    @property
    def recipe(self) -> Recipe:
        """What the run is made by."""
        return self.text.recipe

    @staticmethod
    @abstractmethod
    def coding(tokenizer: AnyTokenizer, recipe: Recipe) -> Coding:
        """How documents become ids."""

    def prepare(self, recipe: Recipe, folder: Path, progress: Progress) -> PreparedExamples:
        """The documents as ids."""

        def learn(pairs: Iterable[tuple[str, str]]) -> Coding:
            texts = thinned((text for text, _ in pairs), self.text.characters, recipe.seed)
            return self.coding(learned_tokenizer(recipe.text, texts, self.text.begun, self.symbols), recipe)

        rests, text = self.rests(recipe), self.text
        return prepare_examples([text.learned], recipe, folder, learn, rests, text.validation, progress, OF_DOCUMENTS)

    def rests(self, recipe: Recipe) -> dict[str, Any]:
        """What the prepared data rests on beside the text and its vocabulary."""
        return {"data.documents": recipe.data.documents, **self.more()}

    def assets(self, prepared: PreparedExamples) -> TextAssets:
        """The tokenizer."""
        return TextAssets.load(prepared.folder)

    def begin(self, model: nn.Module) -> None:
        """The weights of the model that is begun from."""
        if self.text.begun:
            self.text.begun.give(model)

    def more(self) -> dict[str, str]:
        """The fingerprint of the model that is begun from."""
        return self.text.begun.fingerprint if self.text.begun else {}


def thinned(texts: Iterable[str], characters: int, seed: int, most: int = LEARNED_FROM) -> Iterator[str]:
    """The texts; or if they have more than ``most`` characters together, parts of them drawn by seed."""
    if characters <= most:
        yield from texts
        return
    random = generator(seed, "vocabulary")
    for text in texts:
        for begin in range(0, len(text), PART):
            if random.random() < most / characters:
                yield text[begin : begin + PART]

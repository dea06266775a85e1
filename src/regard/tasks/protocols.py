"""Protocols of loaded tasks and their assets, and the input files of a task; no torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from regard.config import Recipe, TaskInfo
from regard.system.errors import Option, UsageError
from regard.system.forks import Processes, alone

if TYPE_CHECKING:
    import torch
    from torch import nn

    from regard.data.batches.batch import Packed
    from regard.decoding.hypotheses import Symbols
    from regard.engine.stack import Texts
    from regard.models.inputs import Tokens
    from regard.models.rnn import Reader, Rnn
    from regard.models.transformer import Gpt, Transformer
    from regard.system.kernels.packing import Precision
    from regard.tasks.text.preparation import Pretrained
    from regard.text.confidence import Side, UnseenWord
    from regard.text.tokenizers.vocabulary import AnyTokenizer

Files = Sequence[Path | str]
Read = tuple[int, int, int]
"""An input id and its characters, from and to; none for a symbol."""
Opened = TypeVar("Opened")
ShouldStop = Callable[[], bool]
Find = Callable[[Sequence[Any], int], list[Any]]
"""From examples, and the place of the first, to what is found for each: values that JSON can hold."""
Divide = Callable[[Find, Sequence[Any]], list[Any]]
"""Applies a function to all examples; it may do so in blocks and in several processes."""


def find_at_once(find: Find, examples: Sequence[Any]) -> list[Any]:
    """What is found for all examples at once, here."""
    return find(examples, 0)


@dataclass(frozen=True)
class InputFiles:
    """The input files of a training.

    Args:
        train: training files of any task but translation.
        valid: validation file, if not split off.
        columns: columns or keys of ``train``, or of ``pairs``.
        begun: a model to initialise from.
        source, target: training files of a translator, line by line each other's translation.
        pairs: files that hold both sides.
        valid_source, valid_target: validation files of a translator.
        alignment: files of the word links of ``source`` and ``target``.
        processes: how many read pairs, asked where there are many.
    """

    train: Files = ()
    valid: Path | str | None = None
    columns: str | None = None
    begun: Pretrained | None = None
    source: Files = ()
    target: Files = ()
    pairs: Files = ()
    valid_source: Files = ()
    valid_target: Files = ()
    alignment: Files = ()
    processes: Processes = alone

    def corpora(self, opened: Callable[[Path | str, str | None], Opened]) -> tuple[list[Opened], Opened | None]:
        """The corpora of the files, and that to validate on.

        Raises:
            UsageError: no file is given, or one is not there, or can be read only once.
        """
        files = [*self.train, *([self.valid] if self.valid is not None else [])]
        if not self.train:
            raise UsageError(f"nothing to learn from: give {Option('train', 'FILE')}")
        for path in map(Path, files):
            if not path.is_file():
                refuse_pipes([path])
                raise UsageError("is a folder; a file is needed" if path.exists() else "no such file", str(path))
        learned = [opened(path, self.columns) for path in self.train]
        return learned, opened(self.valid, self.columns) if self.valid is not None else None


def refuse_pipes(files: Files) -> None:
    """Name the first file that can be read only once; training reads its data several times.

    Raises:
        UsageError: it is a pipe, or a device.
    """
    for path in files:
        if Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir():
            raise UsageError("is a pipe or a device, but training reads more than once; give a file", str(path))


AnyModel = TypeVar("AnyModel", bound="nn.Module", covariant=True)


@dataclass(frozen=True)
class Unloaded(Generic[AnyModel]):
    """A model that is loaded when somebody looks inside."""

    load: Callable[[], AnyModel]


class Assets(Protocol):
    """Assets of a model besides its weights: vocabularies and label names."""

    @property
    def sizes(self) -> tuple[int, int]:
        """Number of input pieces and of outputs (target pieces or labels)."""

    @property
    def contents(self) -> Mapping[str, bytes]:
        """The files of a model folder that hold it, by name."""

    @property
    def sha256(self) -> str:
        """One fingerprint of it all."""


class Task(Protocol):
    """A loaded model with its assets; each task has its own class."""

    recipe: Recipe
    info: TaskInfo
    """The row of its task."""
    name: str
    """The recipe's word."""
    others: tuple[Any, ...]
    """Models whose probabilities are averaged with those of this one."""
    engine: Callable[[], object] | None
    """Gives a step that computes in the model's place, where there is one."""
    precision: Precision
    """How the engine stores weights: fp32, bf16 or int8."""

    @property
    def model(self) -> nn.Module:
        """The model, on its device."""

    @property
    def assets(self) -> Assets:
        """The assets besides the weights."""

    @property
    def device(self) -> torch.device:
        """Where the model is."""

    @property
    def device_name(self) -> str:
        """The same as a word, for which no model is loaded."""


class TextModel(Task, Protocol):
    """A task that reads texts."""

    source_tokenizer: AnyTokenizer
    """Of what is read."""
    target_tokenizer: AnyTokenizer
    """Of what is written, if anything."""

    def inputs(self, packed: Packed) -> Tokens:
        """The input of what reads."""

    def texts_of(self, packed: Packed) -> Texts:
        """The same, as its engine reads it."""

    def reads(self, text: str) -> tuple[str, list[Read]]:
        """The model's input for a text, and its characters."""

    def unseen_words(self, text: str) -> list[UnseenWord] | None:
        """The words of a text that training never saw, in order; None where the model folder does not say."""

    def unseen_words_batch(self, texts: Sequence[str]) -> list[list[UnseenWord]] | None:
        """The same for each text; faster than one by one."""

    def unseen_pieces(self, side: Side) -> frozenset[int] | None:
        """The pieces of a vocabulary that no training text has; None where the model folder does not say."""


class SingleTextModel(TextModel, Protocol):
    """A task whose model has one stack, and so one text at a time."""

    @property
    def model(self) -> Reader | Gpt:
        """The model, on its device."""

    def pack(self, ids: Sequence[int]) -> Tokens:
        """One framed input as the model reads it."""


class TextWriter(TextModel, Protocol):
    """A task whose model writes, token by token."""

    symbols: Symbols


class TargetWriter(TextWriter, Protocol):
    """A task that reads a text and writes another."""

    @property
    def model(self) -> Transformer | Rnn:
        """The model, on its device."""

    def reads_target(self, text: str) -> tuple[str, list[Read]]:
        """The pieces of a text to be written, and their characters."""


AnyTask = TypeVar("AnyTask", bound=Task)

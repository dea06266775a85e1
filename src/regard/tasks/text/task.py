"""What tasks share: base classes, checks of texts, batched forward passes."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from regard.config import Recipe, TaskInfo
from regard.config.weights import TOO_LARGE
from regard.data.batches.batch import Ids, Packed, batches_by_length, pack_sources
from regard.data.prepare.windowing import Frame
from regard.kernels.packing import Precision
from regard.system.errors import RegardError, UsageError
from regard.system.threads import ended_threads
from regard.tasks.assets import TextAssets
from regard.tasks.engine import engine_of
from regard.tasks.protocols import Read as Read
from regard.tasks.protocols import Unloaded, device_of
from regard.text.confidence import SeenWords, Side, UnseenWord
from regard.text.tokenizers.vocabulary import AnyTokenizer
from regard.text.word_features import WordFeatures

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from regard.engine.readers.build import HeadShape
    from regard.engine.texts import Texts
    from regard.models.inputs import Tokens
    from regard.models.rnn import Reader

BETWEEN = " [SEP] "
"""Stands between two texts on one line that people read or write."""
ROOM = 8192
"""Tokens read at once."""
ENGINE_ROOM = 2048
"""Tokens that an engine reads at once; more are no faster."""
LEAST_ROOM = 256
"""Tokens of a thread at least."""
Rows = NDArray[np.float32]
AnyAssets = TypeVar("AnyAssets")
AnyTextAssets = TypeVar("AnyTextAssets", bound=TextAssets)
AnyModel = TypeVar("AnyModel", bound="nn.Module")
Numbers = TypeVar("Numbers", NDArray[np.float32], NDArray[np.float64])


Given = ParamSpec("Given")
Found = TypeVar("Found")


def inference_mode(function: Callable[Given, Found]) -> Callable[Given, Found]:
    """``torch.inference_mode`` as a decorator; torch is imported when the function is called."""

    @wraps(function)
    def run(*args: Given.args, **kwargs: Given.kwargs) -> Found:
        import torch

        with torch.inference_mode():
            return function(*args, **kwargs)

    return run


def finite_numbers(output: Numbers) -> Numbers:
    """The outputs of a model as they are.

    Raises:
        RegardError: one is not finite.
    """
    if not np.isfinite(output).all():
        raise RegardError(TOO_LARGE)
    return output


class BaseTask(Generic[AnyAssets, AnyModel]):
    """A model that is ready to use.

    Args:
        recipe: of the model; its sections give the defaults.
        assets: what it needs besides its weights.
        model: on its device; or what loads it when somebody looks inside, where an engine computes.
    """

    assets_class: ClassVar[type[Any]]
    engine: Callable[[], Any] | None = None
    """Gives a step that computes in the model's place (``tasks/engine``)."""
    precision: Precision = "fp32"
    """How the engine stores weights."""

    def __init__(self, recipe: Recipe, assets: AnyAssets, model: AnyModel | Unloaded[AnyModel]) -> None:
        self.recipe, self.assets, self._model = recipe, assets, model

    @property
    def model(self) -> AnyModel:
        """The model, on its device."""
        if isinstance(self._model, Unloaded):
            self._model = self._model.load()
        return self._model

    @model.setter
    def model(self, model: AnyModel) -> None:
        self._model = model

    @classmethod
    def load_assets(cls, folder: Path) -> Any:
        """The assets of a model folder."""
        return cls.assets_class.load(folder)

    @property
    def info(self) -> TaskInfo:
        """The row of its task."""
        return self.recipe.info

    @property
    def name(self) -> str:
        """The recipe's word."""
        return self.recipe.task

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return device_of(self.model)

    @property
    def device_name(self) -> str:
        """The same as a word; a model that is not loaded yet will be on the processor."""
        return "cpu" if isinstance(self._model, Unloaded) else str(self.device)


class TextTask(BaseTask[AnyTextAssets, AnyModel]):
    """Base class of tasks with one tokenizer and optional labels."""

    assets_class: ClassVar[type[Any]] = TextAssets
    marks: re.Pattern[str] | None = None
    """What stands for a symbol in a text that is read."""

    @property
    def source_tokenizer(self) -> AnyTokenizer:
        """Of what is read."""
        return self.assets.tokenizer

    @property
    def target_tokenizer(self) -> AnyTokenizer:
        """Of what is written, if anything."""
        return self.assets.tokenizer

    def unseen_words(self, text: str) -> list[UnseenWord] | None:
        """The words of a text that training never saw, in order; None where the model folder does not say.

        As of a translator; what stands for a symbol, such as ``[MASK]``, is no word.
        """
        found = self.unseen_words_batch([text])
        return None if found is None else found[0]

    def unseen_words_batch(self, texts: Sequence[str]) -> list[list[UnseenWord]] | None:
        """The same for each text; faster than one by one."""
        if self.assets.seen is None:
            return None
        found = find_unseen(self.assets.seen, self.assets.tokenizer, texts, self.unseen_pieces("source"))
        return [self._without_marks(text, unseen) for text, unseen in zip(texts, found, strict=True)]

    def _without_marks(self, text: str, unseen: list[UnseenWord]) -> list[UnseenWord]:
        marks = [found.span() for found in self.marks.finditer(text)] if unseen and self.marks else []
        return [word for word in unseen if not any(begin < word.end and word.begin < end for begin, end in marks)]

    def unseen_pieces(self, side: Side) -> frozenset[int] | None:
        """The pieces that no training text has; None where the model folder does not say."""
        seen = self.assets.seen
        return None if seen is None or not seen.unseen_pieces else frozenset(seen.unseen_pieces[0])

    def inputs(self, packed: Packed) -> Tokens:
        """The model's input."""
        from regard.models.inputs import tokens

        return self.separate(tokens(packed, self.device, self.word_features))

    def texts_of(self, packed: Packed) -> Texts:
        """The input of the model's engine, of texts in a shape just large enough."""
        return self._texts(packed, None)

    def _texts(self, packed: Packed, first_T: NDArray[np.bool_] | None) -> Texts:
        """``first_T``: which tokens begin a word, where that is known."""
        from regard.engine.texts import Texts, segments_after

        given = packed.ids_T, packed.lengths_B
        known = self.word_features
        words = None if known is None else known.of_texts(given[0], packed.starts_B, given[1], first_T)
        segments_T = None if self.info.texts == 1 else segments_after(*given, self.source_tokenizer.end)
        return Texts(*given, segments_T, words)

    @cached_property
    def word_features(self) -> WordFeatures | None:
        """The words of a text and their features, where the model reads them."""
        model = self.recipe.model
        buckets = getattr(model, "word_features", None)
        reads = buckets or getattr(model, "units", None) == "words"
        return WordFeatures(self.source_tokenizer, buckets or 1) if reads else None

    def separate(self, given: Tokens) -> Tokens:
        """The same; of several texts those behind the first are another segment."""
        from regard.models.inputs import separate

        return given if self.info.texts == 1 else separate(given, self.source_tokenizer.end)

    def pack(self, ids: Sequence[int]) -> Tokens:
        """One framed input as the model reads it."""
        return self.inputs(pack_sources([np.array(ids, np.int64)]))

    def input_text(self, ids: Ids) -> str:
        """The text of a framed input; :data:`BETWEEN` stands between several."""
        tokenizer = self.source_tokenizer
        if self.info.texts == 1:
            return tokenizer.decode(ids)
        inner = ids[len(tokenizer.begin) :]
        *parts, _ = np.split(inner, np.flatnonzero(inner == tokenizer.end) + 1)
        return BETWEEN.join(tokenizer.decode(part) for part in parts)


class TextReader(TextTask[Any, "Reader"]):
    """A task whose model is an encoder of texts framed by symbols."""

    def __init__(self, recipe: Recipe, assets: Any, model: Reader | Unloaded[Reader]) -> None:
        super().__init__(recipe, assets, model)
        self.frame = Frame.of(assets.tokenizer, recipe.data.max_tokens)

    def engine_sizes(self) -> tuple[int, HeadShape]:
        """What the engine's builder asks for: pieces, and what the head gives."""
        from regard.engine.readers.build import HeadShape

        pieces, labels = self.assets.sizes
        return pieces, HeadShape(self.info.writes, max(1, labels))

    def read_windows(self, windows: Sequence[Ids]) -> list[NDArray[np.float32]]:
        """What the model's head says of each window, in order."""
        if (engine := engine_of(self)) is not None:
            return read_by_engine(engine, self.texts_of, windows, each=False)
        return forward_batches(self.model, windows, self.inputs, each=False)

    def reads(self, text: str) -> tuple[str, list[Read]]:
        """The model's input for a text and its characters, for inspection."""
        return read_as(self.assets.tokenizer, text, self.frame.begin, (self.frame.end,))


def refuse_others(texts: object) -> None:
    """Raise a UsageError for anything but a list of texts, naming its type."""
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise UsageError(f"a list of texts is wanted, not {type(texts).__name__}", "texts")
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise UsageError(f"a text must be str, not {type(text).__name__}", f"texts[{place}]")


def read_as(
    tokenizer: AnyTokenizer, text: str, begin: Sequence[int], end: Sequence[int] = ()
) -> tuple[str, list[Read]]:
    """A text as the tokenizer has it, and its pieces between symbols, each with its characters."""
    encoding = tokenizer.encode(text)
    last = len(encoding.text)
    inner = ((id, start, stop) for id, (start, stop) in zip(encoding.ids, encoding.offsets, strict=True))
    return encoding.text, [*((id, 0, 0) for id in begin), *inner, *((id, last, last) for id in end)]


def find_unseen(
    seen: SeenWords, tokenizer: AnyTokenizer, texts: Sequence[str], unseen: Set[int] | None
) -> list[list[UnseenWord]]:
    """The words of each text that training never saw, or not in this spelling; quick where there are none.

    Args:
        seen: the words that it saw.
        tokenizer: cuts them.
        texts: any.
        unseen: the pieces that no training text has.
    """
    ids = tokenizer.ids_batch(texts) if unseen else [np.zeros(0, np.int64)] * len(texts)
    found = []
    for text, own in zip(texts, ids, strict=True):
        places = unseen_places(tokenizer, text, unseen) if unseen and not unseen.isdisjoint(own.tolist()) else []
        found.append([] if not places and seen.has_all_words(text) else seen.unseen_words(text, places))
    return found


def unseen_places(tokenizer: AnyTokenizer, text: str, unseen: Set[int] | None) -> list[tuple[int, int]]:
    """The characters of a text, from and to, whose pieces are among the unseen; none where it is normalised first."""
    if not unseen:
        return []
    encoding = tokenizer.encode(text)
    if encoding.text != text:
        return []
    places = zip(encoding.ids, encoding.offsets, strict=True)
    return sorted({(begin, end) for id, (begin, end) in places if id in unseen})


@inference_mode
def forward_batches(
    answer: Callable[[Tokens], Tensor],
    windows: Sequence[Ids],
    inputs: Callable[[Packed], Tokens],
    each: bool,
    room: int = ROOM,
) -> list[NDArray[np.float32]]:
    """The answers of a model for every window, in order; see :func:`read_batches`.

    Args:
        answer: a model, or a function of packed texts: a row for each window, or a row for each token.
        windows: framed ids.
        inputs: the model's input for a packed side.
        each: a row for each token.
        room: tokens read at once.
    """

    def rows_of(packed: Packed) -> Rows:
        return answer(inputs(packed)).float().cpu().numpy()

    return read_batches(lambda batches: map(rows_of, batches), windows, each, room)


def read_by_engine(
    answer: Callable[[Texts], Rows], texts_of: Callable[[Packed], Texts], windows: Sequence[Ids], each: bool
) -> list[Rows]:
    """The answers of an engine for every window, in order; see :func:`read_batches`."""
    tokens, threads = sum(map(len, windows)), engine_threads()
    room = min(ENGINE_ROOM, max(LEAST_ROOM, -(-tokens // threads)))
    return read_batches(lambda batches: side_by_side(answer, map(texts_of, batches), threads), windows, each, room)


def engine_threads() -> int:
    """Threads that read for an engine: as many as torch would use, where it is loaded; else processes divide texts."""
    torch = sys.modules.get("torch")
    return torch.get_num_threads() if torch else 1


def side_by_side(answer: Callable[[Texts], Rows], batches: Iterable[Texts], threads: int) -> Iterable[Rows]:
    """Answers in order, by several threads where there are several batches: kernels compute beside each other."""
    given = list(batches)
    if threads == 1 or len(given) == 1:
        return map(answer, given)
    with ended_threads(threads) as pool:
        return list(pool.map(answer, given))


def read_batches(
    answer: Callable[[Iterator[Packed]], Iterable[Rows]], windows: Sequence[Ids], each: bool, room: int
) -> list[Rows]:
    """The answers for every window, in order; windows of similar length are read together.

    Args:
        answer: from packed texts, one batch after the other, to a row for each window, or for each token.
        windows: framed ids.
        each: a row for each token.
        room: tokens read at once.
    """
    lengths = np.array([len(window) for window in windows], np.int64)
    found: list[Rows] = [np.zeros(0, np.float32)] * len(windows)
    batches = list(batches_by_length(lengths, room))
    answers = answer(pack_sources([windows[place] for place in chosen]) for chosen in batches)
    for chosen, rows in zip(batches, answers, strict=True):
        split = np.split(rows, lengths[chosen].cumsum()[:-1]) if each else list(rows)
        for place, one in zip(chosen.tolist(), split, strict=True):
            found[place] = one
    return found


def mean_over_windows(score_WC: NDArray[Any], windows_B: Ids) -> NDArray[np.float64]:
    """``score_BC``: for each text the mean over its windows, which are consecutive.

    Args:
        score_WC: of the windows of all texts.
        windows_B: how many each text has, one or more.
    """
    sums_BC = np.add.reduceat(score_WC.astype(np.float64), windows_B.cumsum() - windows_B)
    return np.asarray(sums_BC / windows_B[:, None])

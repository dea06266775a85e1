"""What tasks share: base classes, ensembles, checks of texts and options, batched passes; masks, sentinels in texts."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from regard.config import Decoding, Recipe, TaskInfo, changed_section, check_value, override
from regard.config.weights import TOO_LARGE
from regard.data.batches.batch import Ids, Packed, batches_by_length, pack_sources
from regard.data.corpora.corpus import Corpus
from regard.decoding.hypotheses import Symbols
from regard.system.errors import Option, RegardError, UsageError
from regard.system.kernels.packing import Precision
from regard.system.threads import ended_threads
from regard.tasks.assets import TextAssets
from regard.tasks.model_path import is_same
from regard.tasks.protocols import Read as Read
from regard.tasks.protocols import Task, Unloaded
from regard.text.confidence import Side, UnseenWord
from regard.text.tokenizers.vocabulary import AnyTokenizer, Vocabularies

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from regard.engine.readers import HeadShape
    from regard.engine.stack import Texts
    from regard.models.inputs import Tokens
    from regard.models.rnn import Reader
    from regard.text.word_features import WordFeatures

SETTINGS = Option("settings")
BETWEEN = " [SEP] "
"""Stands between two texts on one line that people read or write."""
ROOM = 8192
"""Tokens read at once."""
ENGINE_ROOM = 2048
"""Tokens that an engine reads at once; more are no faster."""
LEAST_ROOM = 256
"""Tokens of a thread at least."""
LINES = 1 << 40
"""The number of a part of a text, on which what is drawn depends, is its line, and its place there times this."""
SAMPLING = ("temperature", "top_k", "top_p", "min_p", "typical", "repetition_penalty")
"""Fields of the section ``decoding`` by which a text is drawn."""
Rows = NDArray[np.float32]
AnyAssets = TypeVar("AnyAssets")
AnyTextAssets = TypeVar("AnyTextAssets", bound=TextAssets | Vocabularies)
AnyModel = TypeVar("AnyModel", bound="nn.Module")
AnyTask = TypeVar("AnyTask", bound=Any)
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
    open_corpus: ClassVar[Callable[..., Corpus[Any]]]
    """Opens a file of examples, of a path and its columns; absent where the files of a task are opened together."""
    evaluate_options: ClassVar[tuple[str, ...]] = ()
    """The options of ``regard evaluate`` that not all tasks have."""
    symbols: Symbols
    """Of a search, where there is one, whose outputs are those of the target's tokenizer."""
    target_tokenizer: AnyTokenizer
    engine: Callable[[], object] | None = None
    """Gives a step that computes in the model's place (``tasks/engine``)."""
    precision: Precision = "fp32"
    """How the engine stores weights."""
    others: tuple[Any, ...] = ()
    """Models whose probabilities are averaged with those of this one (:meth:`with_models`)."""

    def __init__(self, recipe: Recipe, assets: AnyAssets, model: AnyModel | Unloaded[AnyModel]) -> None:
        self.recipe, self.assets, self._model = recipe, assets, model
        self.info: TaskInfo = recipe.info
        self.name: str = recipe.task

    @property
    def model(self) -> AnyModel:
        """The model, on its device."""
        if isinstance(self._model, Unloaded):
            self._model = self._model.load()
        return self._model

    @model.setter
    def model(self, model: AnyModel) -> None:
        self._model = model

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next(self.model.parameters()).device

    @property
    def device_name(self) -> str:
        """The same as a word; a model that is not loaded yet will be on the processor."""
        return "cpu" if isinstance(self._model, Unloaded) else str(self.device)

    def with_settings(self, settings: Iterable[str]) -> Self:
        """This model, its recipe's section ``decoding`` changed by ``decoding.KEY=VALUE`` each, for this use.

        Raises:
            UsageError: there is no such field, or it does not take the value.
        """
        if "decoding" not in self.recipe.sections:
            raise UsageError(f"{self.info.noun} searches for nothing, so no decoding.… can be set", SETTINGS)
        values = override({}, settings)
        if others := values.keys() - {"decoding"}:
            raise UsageError(f"{min(others)} is settled when a model is trained; decoding.… can be set", SETTINGS)
        chosen = values.get("decoding", {})
        for name, value in chosen.items():
            check_value(f"decoding.{name}", value, SETTINGS)
        if chosen.get("shortlist") and self.info.learns_from != "pairs":
            raise UsageError(f"shortlist is for translators, but this is {self.info.noun}", SETTINGS)
        other, decoding = copy(self), changed_section(self.recipe.decoding, chosen, SETTINGS)
        other.recipe = self.recipe.model_copy(update={"decoding": decoding})
        if "suppress" in chosen and hasattr(self, "symbols"):
            without = {*self.symbols.without, *suppressed(self.target_tokenizer, decoding)}
            other.symbols = replace(self.symbols, without=tuple(sorted(without)))
        return other

    def with_models(self, others: Iterable[Any]) -> Self:
        """An ensemble of this model and others of its vocabulary: tokens are chosen by the mean of probabilities.

        Everything else, such as the recipe's section ``decoding``, is that of this one.

        Raises:
            UsageError: it searches for nothing, or one is not a model of the same task, languages and vocabulary.
        """
        if "decoding" not in self.recipe.sections:
            raise UsageError(f"{self.info.noun} searches for nothing; ensembles are of models that write", "others")
        ensemble = copy(self)
        ensemble.others = (*self.others, *others)
        for place, other in enumerate(ensemble.others):
            if differs := difference(self, other):
                raise UsageError(f"{differs} than the first model", f"others[{place}]")
        return ensemble


def with_models(task: AnyTask, folder: Path, others: Mapping[Path, Task]) -> AnyTask:
    """An ensemble of a model and others, by their folders.

    Raises:
        UsageError: one of these does not go with the model; names both.
    """
    for path, other in others.items():
        if is_same(path, folder):
            raise UsageError(f"is the same model as {folder}; an ensemble is of different ones", str(path))
        if differs := difference(task, other):
            raise UsageError(f"{differs} than {folder}; an ensemble is of models that read and write alike", str(path))
    return task.with_models(others.values()) if others else task


def difference(first: Any, other: Task) -> str:
    """In what a model differs from another so that both are no ensemble, as what stands before "than"; else empty."""
    if first.name != other.name:
        return f"is {other.info.noun} and so of another task"
    around = any(getattr(first, name, None) != getattr(other, name, None) for name in ("symbols", "before"))
    if around or first.assets.sha256 != other.assets.sha256:
        return "has another vocabulary"
    return "translates other languages" if _languages(first) != _languages(other) else ""


def _languages(task: Task) -> tuple[object, ...]:
    """Those of the recipe, and their tokens."""
    text = task.recipe.text
    return text.source_language, text.target_language, getattr(task.assets, "languages", None)


class TextTask(BaseTask[AnyTextAssets, AnyModel]):
    """Base class of tasks that read texts: with one tokenizer and optional labels, or with a vocabulary a side."""

    assets_class: ClassVar[type[Any]] = TextAssets
    marks: re.Pattern[str] | None = None
    """What stands for a symbol in a text that is read."""

    def __init__(self, recipe: Recipe, assets: AnyTextAssets, model: AnyModel | Unloaded[AnyModel]) -> None:
        super().__init__(recipe, assets, model)
        self.source_tokenizer: AnyTokenizer
        if isinstance(assets, Vocabularies):
            self.source_tokenizer, self.target_tokenizer = assets.source, assets.target
        else:
            self.source_tokenizer = self.target_tokenizer = assets.tokenizer

    def unseen_words(self, text: str) -> list[UnseenWord] | None:
        """The words of a text that training never saw, in order; None where the model folder does not say.

        A word that training read in any letter case is seen, unless a piece of it occurs in no training text: it was
        never spelled so. Of rare words of very large corpora a few unseen ones are missed; none is named wrongly. What
        stands for a symbol, such as ``[MASK]``, is no word.
        """
        found = self.unseen_words_batch([text])
        return None if found is None else found[0]

    def unseen_words_batch(self, texts: Sequence[str]) -> list[list[UnseenWord]] | None:
        """The same for each text; faster than one by one, and quick where there are none.

        Of a text that is normalised first no spelling is judged.
        """
        seen, tokenizer, unseen = self.assets.seen, self.source_tokenizer, self.unseen_pieces("source")
        if seen is None:
            return None
        ids = tokenizer.ids_batch(texts) if unseen else [np.zeros(0, np.int64)] * len(texts)
        found = []
        for text, own in zip(texts, ids, strict=True):
            places: list[tuple[int, int]] = []
            if unseen and not unseen.isdisjoint(own.tolist()) and (encoding := tokenizer.encode(text)).text == text:
                spelled = zip(encoding.ids, encoding.offsets, strict=True)
                places = sorted({(begin, end) for id, (begin, end) in spelled if id in unseen})
            words = [] if not places and seen.has_all_words(text) else seen.unseen_words(text, places)
            marks = [mark.span() for mark in self.marks.finditer(text)] if words and self.marks else []
            found.append([word for word in words if not any(a < word.end and word.begin < b for a, b in marks)])
        return found

    def unseen_pieces(self, side: Side) -> frozenset[int] | None:
        """The pieces of a vocabulary that no training text has, of one for both sides on neither; None if not known."""
        seen = self.assets.seen
        if seen is None or not seen.unseen_pieces:
            return None
        pieces = [*map(frozenset, seen.unseen_pieces)]
        joint = getattr(self.assets, "joint", True)
        return frozenset.intersection(*pieces) if joint else pieces[0 if side == "source" else 1]

    def inputs(self, packed: Packed) -> Tokens:
        """The model's input; of several texts those behind the first are another segment, where the model has some."""
        from regard.models.inputs import separate, tokens

        given = tokens(packed, self.device, self.word_features)
        return separate(given, self.source_tokenizer.end) if self._has_segments else given

    def texts_of(self, packed: Packed) -> Texts:
        """The input of the model's engine, of texts in a shape just large enough."""
        return self._texts(packed, None)

    def _texts(self, packed: Packed, first_T: NDArray[np.bool_] | None) -> Texts:
        """``first_T``: which tokens begin a word, where that is known."""
        from regard.engine.stack import Texts, segments_after

        given = packed.ids_T, packed.lengths_B
        known = self.word_features
        words = None if known is None else known.of_texts(given[0], packed.starts_B, given[1], first_T)
        segments_T = segments_after(*given, self.source_tokenizer.end) if self._has_segments else None
        return Texts(*given, segments_T, words)

    @cached_property
    def word_features(self) -> WordFeatures | None:
        """The words of a text and their features, where the model reads them."""
        model = self.recipe.model
        buckets = getattr(model, "word_features", None)
        if not buckets and getattr(model, "units", None) != "words":
            return None
        from regard.text.word_features import WordFeatures

        return WordFeatures(self.source_tokenizer, buckets or 1)

    @property
    def _has_segments(self) -> bool:
        return self.info.texts > 1 and getattr(self.recipe.model, "segments", 0) > 1

    def pack(self, ids: Sequence[int]) -> Tokens:
        """One framed input as the model reads it."""
        return self.inputs(pack_sources([np.array(ids, np.int64)]))


class TextReader(TextTask[Any, "Reader"]):
    """A task whose model is an encoder of texts framed by symbols."""

    def __init__(self, recipe: Recipe, assets: Any, model: Reader | Unloaded[Reader]) -> None:
        super().__init__(recipe, assets, model)
        from regard.data.prepare.windowing import Frame

        self.frame = Frame.of(assets.tokenizer, recipe.data.max_tokens)

    def engine_sizes(self) -> tuple[int, HeadShape]:
        """What the engine's builder asks for: pieces, and what the head gives."""
        from regard.engine.readers import HeadShape

        pieces, labels = self.assets.sizes
        return pieces, HeadShape(self.info.writes, max(1, labels))

    def reads(self, text: str) -> tuple[str, list[Read]]:
        """The model's input for a text and its characters, for inspection."""
        return read_as(self.assets.tokenizer, text, self.frame.begin, (self.frame.end,))


def sampling_values(given: Mapping[str, float | None], method: str) -> dict[str, float]:
    """Those options of drawing that are given, not ``None``.

    Args:
        given: by name.
        method: that is given them, for the sentence.

    Raises:
        UsageError: an option that is none, or a value that does not fit.
    """
    known = {name: value for name, value in given.items() if value is not None}
    if strange := sorted(known.keys() - SAMPLING):
        raise UsageError(f"is no option of {method}; known are {', '.join(SAMPLING)}", Option(strange[0]))
    for name, value in known.items():
        check_value(f"decoding.{name}", value, Option(name))
    return known


def suppressed(tokenizer: AnyTokenizer, decoding: Decoding) -> tuple[int, ...]:
    """The tokens that a recipe suppresses.

    Raises:
        UsageError: one is no piece of the vocabulary, or it is the end, without which no output ends.
    """
    if not decoding.suppress:
        return ()
    numbers = {tokenizer.piece(id): id for id in reversed(range(tokenizer.size))}
    found = tuple(one if isinstance(one, int) else numbers.get(one, -1) for one in decoding.suppress)
    for said, id in zip(decoding.suppress, found, strict=True):
        if not 0 <= id < tokenizer.size or id == tokenizer.end:
            why = "ends an output" if id == tokenizer.end else "is no piece of the vocabulary, nor the number of one"
            raise UsageError(f"{said!r} {why}; regard translate --json shows pieces and numbers", "decoding.suppress")
    return found


def output_symbols(
    tokenizer: AnyTokenizer, decoding: Decoding, start: int, prefix: tuple[int, ...] = (), also: Sequence[int] = ()
) -> Symbols:
    """What stands around outputs, and what none has: the vocabulary's symbols, and what the recipe suppresses.

    Args:
        tokenizer: of the outputs.
        decoding: the section of the recipe.
        start: begins what is written.
        prefix: what outputs begin with.
        also: symbols that they may have.
    """
    written = [*tokenizer.ordinary.tolist(), *also, tokenizer.end]
    never = np.setdiff1d(np.arange(tokenizer.size), written).tolist()
    return Symbols(start, tokenizer.end, (*never, *suppressed(tokenizer, decoding)), prefix)


def refuse_others(texts: object) -> None:
    """Raise a UsageError for anything but a list of texts, naming its type."""
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise UsageError(f"a list of texts is wanted, not {type(texts).__name__}", "texts")
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise UsageError(f"a text must be str, not {type(text).__name__}", f"texts[{place}]")


def refuse_unequal(given: Sequence[str], texts: Sequence[str], name: str) -> None:
    """Raise a UsageError unless there is a text for each text.

    Args:
        given: as many, by their ``name``.
        texts: a list of texts.
    """
    refuse_others(texts)
    refuse_others(given)
    if len(given) != len(texts):
        raise UsageError(f"there are {len(given)} for {len(texts)} texts; each text needs its own", name)


def refuse_long(ids: Sequence[Ids], room: int, first: int, name: str) -> None:
    """Raise if a text has more tokens than a model can read or write at once.

    Raises:
        RegardError: it has; names the line.
    """
    for number, one in enumerate(ids, first):
        if len(one) > room:
            where = f"line {number} of the {name}"
            raise RegardError(f"has {len(one):,} tokens; at most {room:,} are read at once", where)


def read_as(
    tokenizer: AnyTokenizer, text: str, begin: Sequence[int], end: Sequence[int] = ()
) -> tuple[str, list[Read]]:
    """A text as the tokenizer has it, and its pieces between symbols, each with its characters."""
    encoding = tokenizer.encode(text)
    last = len(encoding.text)
    inner = ((id, start, stop) for id, (start, stop) in zip(encoding.ids, encoding.offsets, strict=True))
    return encoding.text, [*((id, 0, 0) for id in begin), *inner, *((id, last, last) for id in end)]


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
    return read_batches(
        lambda batches: (answer(inputs(packed)).float().cpu().numpy() for packed in batches), windows, each, room
    )


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


def mean_over_windows(score_WC: Numbers, windows_B: Ids) -> NDArray[np.float64]:
    """``score_BC``: for each text the mean over its windows, which are consecutive.

    Args:
        score_WC: of the windows of all texts.
        windows_B: how many each text has, one or more.
    """
    sums_BC = np.add.reduceat(score_WC.astype(np.float64), windows_B.cumsum() - windows_B)
    return np.asarray(sums_BC / windows_B[:, None])


@dataclass(frozen=True)
class GappedText:
    """A text with gaps.

    Args:
        text: as the tokenizer has it, each gap by its name.
        read: its pieces and symbols, each with its characters; a symbol has none.
        gaps: which of these are symbols.
    """

    text: str
    read: tuple[Read, ...]
    gaps: tuple[int, ...]

    @property
    def ids(self) -> list[int]:
        """Of pieces and symbols."""
        return [id for id, _, _ in self.read]


class Gaps:
    """Finds the gaps of texts by name.

    The space before a gap belongs to it, as it belongs to a word's first piece; characters as units have their spaces
    apart.

    Args:
        tokenizer: of the texts between the gaps.
        named: the symbol of each name.
    """

    def __init__(self, tokenizer: AnyTokenizer, named: Mapping[str, int]) -> None:
        self._tokenizer, self._named = tokenizer, named
        names = sorted(named, key=len, reverse=True)
        self.pattern = re.compile("|".join(map(re.escape, names)) if names else r"(?!)")
        self._apart = getattr(tokenizer, "units", "pieces") == "characters"

    def parse(self, text: str) -> GappedText:
        """A text with its gaps, if it has any."""
        parts, names = self.pattern.split(text), self.pattern.findall(text)
        known, read, gaps = "", list[Read](), []
        for number, part in enumerate(parts):
            before_gap = number < len(names)
            taken = part.removesuffix(" ") if before_gap and not self._apart else part
            plain, inner = read_as(self._tokenizer, taken, ())
            read += [(id, start + len(known), end + len(known)) for id, start, end in inner]
            known += plain + part[len(taken) :]
            if before_gap:
                gaps.append(len(read))
                read.append((self._named[names[number]], len(known), len(known)))
                known += names[number]
        return GappedText(known, tuple(read), tuple(gaps))

    def ids_batch(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """The ids of each text, its gaps among them."""
        found = self._tokenizer.ids_batch(texts)
        for number, text in enumerate(texts) if self._named else ():
            if self.pattern.search(text):
                found[number] = np.array(self.parse(text).ids, np.int64)
        return found


def sentinel_gaps(tokenizer: AnyTokenizer) -> Gaps:
    """The sentinels of a vocabulary as gaps, named ``<extra_0>``, of a T5 ``<extra_id_0>``; it may have none."""
    return Gaps(tokenizer, {tokenizer.piece(id): id for id in tokenizer.sentinels})


def decode_with_offsets(
    tokenizer: AnyTokenizer, ids: Iterable[int], symbols: Collection[int]
) -> tuple[str, list[Read]]:
    """Generated ids as text, symbols by name after a space; and each id with its characters."""
    text, read, begun, run = "", list[Read](), 0, list[int]()
    for id in ids:
        if id in symbols:
            text, run = text + ("" if not text or text[-1].isspace() else " "), []
            read.append((id, len(text), len(text)))
            text += tokenizer.piece(id)
            continue
        begun = begun if run else len(text)
        run.append(id)
        start, text = len(text), text[:begun] + tokenizer.decode(run)
        read.append((id, min(start, len(text)), len(text)))
    return text, read


def decode_with_symbols(tokenizer: AnyTokenizer, ids: Iterable[int], symbols: Collection[int]) -> str:
    """The text of ids, with the names of these symbols in it, a space before each; other symbols are omitted."""
    text, waiting = "", []
    for id in ids:
        if id not in symbols:
            waiting.append(id)
            continue
        text += tokenizer.decode(waiting)
        waiting = []
        text += ("" if not text or text[-1].isspace() else " ") + tokenizer.piece(id)
    return text + tokenizer.decode(waiting)

"""What a call asks of the search that all calls share, and how it reaches another process: as a line of JSON."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import PlainValidator, TypeAdapter
from pydantic_core import from_json, to_json

from regard.config import Decoding
from regard.data.batches.batch import Ids
from regard.decoding.hypotheses import Hypothesis, Symbols
from regard.decoding.search import search
from regard.decoding.terms import Letters, Term, Terms
from regard.serving.core import Call
from regard.tasks.protocols import Task

CALL: ContextVar[Call] = ContextVar("call")
"""For whom the running thread or task works."""
Found = list[list[Hypothesis]]
ErrorValues = tuple[str, str | None, int | None, int | None]
"""Of a RegardError its message and place, of a ServiceError its status and the seconds after which to ask again."""


def _plain(array: NDArray[Any]) -> object:
    return array.tobytes().hex() if array.dtype == np.bool_ else array.tolist()


@lru_cache(maxsize=16)
def _letters(begin_V: str, end_V: str) -> Letters:
    """Those of a model, the same for all its requests."""
    return Letters(*(np.frombuffer(bytes.fromhex(one), np.bool_) for one in (begin_V, end_V)))


@lru_cache(maxsize=256)
def _decoding(given: bytes) -> Decoding:
    """The section of what became of it in JSON, checked once."""
    return Decoding.model_validate_json(given)


@dataclass(frozen=True)
class SearchRequest:
    """Sentences to search for; the fields are the arguments of :func:`regard.decoding.search.search`.

    Args:
        terms: of each sentence, and the ``letters`` of all of them.
    """

    sources: Sequence[Annotated[Ids, PlainValidator(lambda given: np.array(given, np.int64))]]
    decoding: Annotated[Decoding, PlainValidator(lambda given: _decoding(to_json(given)))]
    symbols: Symbols
    nbest: int = 1
    prefixes: Sequence[Sequence[int]] | None = None
    scores: bool = True
    terms: Sequence[tuple[Term, ...] | None] | None = None
    letters: Annotated[Letters, PlainValidator(lambda given: _letters(**given))] | None = None
    forbidden: Sequence[tuple[tuple[int, ...], ...]] | None = None
    drafts: Sequence[Sequence[int]] | None = None


class SharedSearch(Protocol):
    """The search that all calls share."""

    elsewhere: bool
    """Whether it opens models by itself."""

    def open(self, task: Task, folder: Path, fingerprint: str | None, base: str | None) -> None:
        """Get ready to search with a task, which was opened from a folder with this fingerprint.

        Args:
            task: whose searches follow; when nobody has it any more, what is ready for it goes.
            folder: of its model.
            fingerprint: of the folder as it was then.
            base: names what it shares weights with, if it does.

        Raises:
            RegardError: the folder is damaged, or has changed since.
        """

    def of(self, task: Task) -> Callable[..., Found]:
        """What stands in the place of :func:`regard.decoding.search.search` for it, in calls (:data:`CALL`)."""

    def counts(self) -> SearchCounts:
        """What was done so far."""

    def tidy(self) -> None:
        """Let go what nobody uses any more; asked for now and then."""

    def end(self) -> None:
        """Stop; what is being searched for ends with a ServiceError (503)."""


@dataclass
class SearchCounts:
    """What was done so far, and what is being done, for metrics."""

    sentences: int = 0
    source_tokens: int = 0
    target_tokens: int = 0
    seconds: float = 0.0
    restarts: int = 0
    running: int = 0
    waiting: int = 0


def search_in_calls(find: Callable[[Call, Any, SearchRequest], Found]) -> Callable[..., Found]:
    """A search as a writer has it, by what finds outputs for a call; blocks until they are found.

    What has groups, or limits and a trace of its own, is searched for alone.
    """

    def found(
        step: Any,
        sources: Sequence[Ids],
        decoding: Decoding,
        symbols: Symbols,
        *,
        firsts: object = None,
        limits: object = None,
        trace: object = None,
        terms: Sequence[Terms | None] | None = None,
        **given: Any,
    ) -> Found:
        call = CALL.get()
        call.check()
        own = {"firsts": firsts, "limits": limits, "trace": trace}
        if decoding.groups > 1 or any(value is not None for value in own.values()):
            alone: Any = {**own, **given, "terms": terms}
            return search(step, sources, decoding, symbols, **alone)
        if not len(sources):
            return []
        if some := next(filter(None, terms or ()), None):
            given |= {"terms": [one and one.terms for one in terms or ()], "letters": some.letters}
        return find(call, step, SearchRequest(sources, decoding, symbols, **given))

    return found


def to_line(values: Sequence[object]) -> bytes:
    """A line of JSON, with numbers to the last bit, and NaN and infinity."""
    return to_json(values, inf_nan_mode="constants", fallback=_plain) + b"\n"


def values_of(line: bytes) -> list[Any]:
    """The values of a line."""
    return from_json(line)


REQUEST, FOUND = TypeAdapter(SearchRequest), TypeAdapter(Found)
"""Make a request, and outputs, of what a line has."""

"""One batch for everybody: sentences of all calls are searched for side by side, by a few threads of their own.

Each searching thread has schedulers of its own, filled from what waits. A sentence's result is that of the sentence
alone (law *refilling*): it depends neither on the company nor on the number of threads.

Fairness: clients take turns, sentence by sentence. Of one client's calls that comes first which came first, or is so
much shorter; so none waits for good. Short calls are searched for in batches of their own, which may take most of the
time, so that they wait for no book.
"""

from __future__ import annotations

import itertools
import math
import threading
import time
from bisect import insort
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from regard.config import Decoding
from regard.decoding.hypotheses import Hypothesis, Sentence, Symbols
from regard.decoding.search import Scheduler, strategy
from regard.decoding.terms import Terms
from regard.serving.core import Call, CallEnded, ServiceError
from regard.serving.search.request import Found, SearchCounts, SearchRequest, search_in_calls
from regard.tasks.protocols import Task

SHORT = 512
"""Source tokens of a call that counts as short, at most."""
WEIGHTS = {True: 3.0, False: 1.0}
"""Shares of the time of short calls and of long ones, where both wait."""
BURST = 0.3
"""Seconds by which short calls may come first."""
PACE = 6_000.0
"""Tokens times beam of a second by which calls of one client are compared: what is longer may be as much older."""


@dataclass(frozen=True)
class _Kind:
    """What sentences of a batch have in common."""

    step: int
    decoding: Decoding
    symbols: Symbols
    scores: bool
    letters: int
    forbids: bool
    short: bool


class _Group:
    """The sentences of one search of a call.

    Args:
        call: whose they are.
        step: the model.
        asked: the sentences, and how to search for them.

    Attributes:
        kind: what they have in common.
        given: of each sentence, what a scheduler is told.
        costs: what each takes of the budget.
        order: those that wait, the longest first; ``cost``: of all of them.
        due: when it comes among its client's.
        alone: whether each is searched for by itself.
    """

    def __init__(self, call: Call, step: Any, asked: SearchRequest) -> None:
        sources, decoding, letters = asked.sources, asked.decoding, asked.letters
        begins, terms = asked.prefixes or [asked.symbols.prefix] * len(sources), asked.terms or [None] * len(sources)
        self.call, self.step, self.alone = call, step, False
        self.kind = _Kind(
            step=id(getattr(step, "engine", step)),
            decoding=decoding,
            symbols=replace(asked.symbols, prefix=()),
            scores=asked.scores or decoding.beam > 1,
            letters=id(letters),
            forbids=any(asked.forbidden or ()),
            short=sum(map(len, sources)) <= SHORT,
        )
        self.given: list[dict[str, Any]] = [
            {
                "source": source,
                "nbest": asked.nbest,
                "prefix": tuple(begins[place]),
                "terms": Terms(own, letters) if (own := terms[place]) and letters else None,
                "forbidden": asked.forbidden[place] if asked.forbidden else (),
                "draft": asked.drafts[place] if asked.drafts else (),
            }
            for place, source in enumerate(sources)
        ]
        self.costs = [decoding.beam * len(source) for source in sources]
        self.order = deque(sorted(range(len(sources)), key=lambda place: -self.costs[place]))
        self.cost, self.due = sum(self.costs), time.monotonic() + sum(self.costs) / PACE
        self.future: Future[Found] = Future()
        self._lock, self._found, self._left = threading.Lock(), [list[Hypothesis]() for _ in sources], len(sources)

    @property
    def over(self) -> bool:
        """Whether nothing is to be found any more; a call that has ended is told so."""
        if not self.future.done():
            try:
                self.call.check()
            except (CallEnded, ServiceError) as error:
                self.fail(error)
        return self.future.done()

    def fail(self, error: BaseException) -> None:
        """End with an error."""
        with self._lock:
            if not self.future.done():
                self.future.set_exception(error)

    def take(self) -> int:
        """The next of its sentences."""
        place = self.order.popleft()
        self.cost -= self.costs[place]
        return place

    def give_back(self, place: int) -> None:
        """A sentence that waits again."""
        self.order.append(place)
        self.cost += self.costs[place]

    def put(self, place: int, found: list[Hypothesis]) -> None:
        """Note what was found of a sentence."""
        with self._lock:
            self._found[place], self._left = found, self._left - 1
            if not self._left and not self.future.done():
                self.future.set_result(self._found)


class _Waiting:
    """Sentences of one kind that wait, by client and group; those that enter next are of clients in turn."""

    def __init__(self) -> None:
        self._clients: OrderedDict[str, deque[_Group]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._clients)

    def add(self, group: _Group) -> None:
        """A group, among those of its client."""
        insort(self._clients.setdefault(group.call.client, deque()), group, key=lambda one: one.due)

    def groups(self) -> Iterator[_Group]:
        """All of them."""
        return itertools.chain.from_iterable(self._clients.values())

    def forget(self) -> None:
        """Leave out those that are over."""
        for client, groups in list(self._clients.items()):
            left = deque(group for group in groups if not group.over)
            if left:
                self._clients[client] = left
            else:
                del self._clients[client]

    @property
    def cost(self) -> int:
        """What all sentences take of the budget."""
        return sum(group.cost for group in self.groups())

    def take(self, room: int, empty: bool) -> Iterator[tuple[_Group, int]]:
        """Sentences with as much room as there is, one of each client in turn; into an empty batch at least one."""
        while self._clients:
            client, groups = next(iter(self._clients.items()))
            group = groups[0]
            cost = group.costs[group.order[0]]
            if cost > room and not empty:
                return
            room, empty = room - cost, False
            place = group.take()
            if not group.order:
                groups.remove(group)
            self._clients.move_to_end(client)
            if not groups:
                del self._clients[client]
            yield group, place  # at the end: who has enough asks for no more


class _Batch:
    """A scheduler of one thread, and whose sentences it has.

    Args:
        group: the first of its kind.
        time: that others had so far.
    """

    def __init__(self, group: _Group, time: float) -> None:
        kind, self.time = group.kind, time
        terms = [one["terms"] for one in group.given]
        self.choose = strategy(kind.decoding, kind.symbols, kind.scores, terms)
        self.scheduler = Scheduler(group.step, self.choose, kind.decoding, kind.symbols)
        self.scheduler.most_steps = 0  # type: ignore[misc]  # before another: others come and leave between two
        self.short = kind.short
        self.sentences: dict[int, tuple[_Group, int]] = {}

    def put(self, number: int, group: _Group, place: int) -> None:
        """A sentence of a group."""
        self.sentences[number] = group, place
        self.scheduler.put(number, **group.given[place])

    def advance(self) -> tuple[int, int, int]:
        """A step; how many sentences it ended, and the tokens of both their sides.

        What enters a batch of long calls is encoded in a turn of its own, so that short ones need not wait for both.
        """
        over = {group for group in {group for group, _ in self.sentences.values()} if group.over}
        if over:
            gone = {number for number, (group, _) in self.sentences.items() if group in over}
            self.scheduler.drop(gone)
            for number in gone:
                del self.sentences[number]
        if not self.short and self.scheduler.admit():
            return 0, 0, 0
        _, closed = self.scheduler.advance(several=True)
        written = sum(map(self._end, closed))
        return len(closed), sum(len(sentence.source) for sentence in closed), written

    def _end(self, sentence: Sentence) -> int:
        group, place = self.sentences.pop(sentence.index)
        plain = getattr(self.choose, "without_bonus", lambda one, _: one)
        found = [plain(one, sentence) for one in sentence.best.hypotheses]
        group.put(place, found)
        return len(found[0].tokens) + 1


class SearchThreads:
    """Searches for sentences of all calls.

    Args:
        threads: that search; each runs the engine's steps on a core of its own.
    """

    elsewhere = False

    def __init__(self, threads: int = 1) -> None:
        self._changed = threading.Condition()
        self._waiting: dict[_Kind, _Waiting] = {}
        self._numbers = itertools.count()
        self._ended = False
        self._batches: list[dict[_Kind, _Batch]] = [{} for _ in range(threads)]
        self._counts = SearchCounts()
        self._threads = [threading.Thread(target=self._run, args=(one,), daemon=True) for one in range(threads)]
        for thread in self._threads:
            thread.start()

    def open(self, task: Task, folder: Path, fingerprint: str | None, base: str | None) -> None:
        """As the protocol has it: the task is here already."""

    def of(self, task: Task) -> Callable[..., Found]:
        """As the protocol has it."""
        return search_in_calls(lambda *asked: self.put(*asked).result())

    def put(self, call: Call, step: Any, asked: SearchRequest) -> Future[Found]:
        """Sentences of a call; the result comes by a searching thread.

        Its errors: a CallEnded, where the client has left; a ServiceError, where its time is over.
        """
        group = _Group(call, step, asked)
        with self._changed:
            if self._ended:
                raise ServiceError(503, "the server is ending")
            self._waiting.setdefault(group.kind, _Waiting()).add(group)
            self._changed.notify_all()
        return group.future

    def tidy(self) -> None:
        """As the protocol has it."""

    def counts(self) -> SearchCounts:
        """As the protocol has it."""
        running = sum(len(batch.sentences) for batches in self._batches for batch in list(batches.values()))
        with self._changed:
            waiting = sum(len(group.order) for one in self._waiting.values() for group in one.groups())
        return replace(self._counts, running=running, waiting=waiting)

    def end(self) -> None:
        """Stop; what is being searched for ends with a ServiceError (503)."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _run(self, number: int) -> None:
        batches = self._batches[number]
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ended or batches or self._waiting)
                if self._ended:
                    running = [group for batch in batches.values() for group, _ in batch.sentences.values()]
                    waiting = [group for one in self._waiting.values() for group in one.groups()]
                    for group in (*running, *waiting):
                        group.fail(ServiceError(503, "the server is ending"))
                    return
                self._fill(batches)
            if batches:
                kind, batch = min(batches.items(), key=lambda one: (one[1].time, not one[1].short))
                self._advance(batches, kind, batch)

    def _fill(self, batches: dict[_Kind, _Batch]) -> None:
        """Take what waits into this thread's batches."""
        for kind, waiting in list(self._waiting.items()):
            waiting.forget()
            if waiting:
                try:
                    self._fill_one(batches, kind, waiting)
                except Exception as error:  # the model cannot search so
                    for group in list(waiting.groups()):
                        group.fail(error)
                    waiting.forget()
            if not waiting:
                del self._waiting[kind]

    def _fill_one(self, batches: dict[_Kind, _Batch], kind: _Kind, waiting: _Waiting) -> None:
        batch = batches.get(kind)
        first = next(waiting.groups())
        alone = first.alone
        if batch is None:
            times = [one.time for one in batches.values()]
            batch = batches[kind] = _Batch(first, min(times, default=0.0) - (BURST if kind.short else 0.0))
        room = 0 if alone and batch.sentences else batch.scheduler.room
        share = math.ceil(waiting.cost / len(self._threads))
        few = int(Scheduler.refill * kind.decoding.tokens)  # so that nobody waits long for their encoding
        most = room if kind.short else few
        for group, place in waiting.take(min(room, share, most), not batch.sentences):
            batch.put(next(self._numbers), group, place)
            if alone:
                break

    def _advance(self, batches: dict[_Kind, _Batch], kind: _Kind, batch: _Batch) -> None:
        begun = time.perf_counter()
        try:
            sentences, read, written = batch.advance()
        except Exception as error:
            self._divide(batches.pop(kind), error)
            return
        took = time.perf_counter() - begun
        batch.time += took / WEIGHTS[kind.short]
        self._counts.sentences += sentences
        self._counts.source_tokens += read
        self._counts.target_tokens += written
        self._counts.seconds += took
        if not batch.sentences:
            del batches[kind]

    def _divide(self, batch: _Batch, error: Exception) -> None:
        """After an error search for each sentence alone, so that it is the error of whom it belongs to."""
        with self._changed:
            for group, place in batch.sentences.values():
                if len(batch.sentences) == 1 or group.future.done():
                    group.fail(error)
                    continue
                group.alone = True
                group.give_back(place)
                waiting = self._waiting.setdefault(group.kind, _Waiting())
                if group not in list(waiting.groups()):
                    waiting.add(group)
            self._changed.notify_all()

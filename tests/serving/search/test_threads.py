"""Sentences of many calls in one batch: the same tokens as alone, fair turns, and room again when a client leaves."""

import random
import threading
import time
from collections.abc import Iterator
from copy import copy
from typing import Any
from unittest.mock import patch

import pytest

from regard.engine import transformer
from regard.inspection import SHIPPED
from regard.serving.core import Call, CallEnded, ServiceError
from regard.serving.search.request import CALL
from regard.serving.search.threads import SHORT, SearchThreads
from regard.system.errors import RegardError
from regard.tasks.model_folder import open_without_torch
from regard.tasks.text.output_options import OutputOptions
from regard.tasks.translation.translator import Translation

WORDS = "the man dog animal street crosses sleeps sees big tired red because it was too a woman reads book".split()


def texts(count: int, seed: int, longest: int = 12) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randrange(1, longest))) + "." for _ in range(count)]


@pytest.fixture(scope="module", params=["fp32", "int8"])
def task(request) -> Translation:
    return open_without_torch(SHIPPED[0], "cpu", request.param)


@pytest.fixture
def shared() -> Iterator[SearchThreads]:
    found = SearchThreads(2)
    yield found
    found.end()


def in_company(task: Translation, shared: SearchThreads) -> Translation:
    other = copy(task)
    other.search = shared.of(task)
    return other


class Caller(threading.Thread):
    """Asks for outputs in a thread of its own."""

    def __init__(self, task: Translation, lines: list[str], client: str = "", **options: Any) -> None:
        super().__init__()
        self.task, self.lines, self.options = task, lines, options
        self.call, self.found, self.error = Call(client=client), list[Any](), None
        self.ended = 0.0
        self.start()

    def run(self) -> None:
        CALL.set(self.call)
        try:
            self.found = self.task.nbest(self.lines, **self.options)
        except Exception as error:
            self.error = error
        self.ended = time.monotonic()


def test_drafts_change_nothing_in_company(task, shared) -> None:
    own, lines = in_company(task, shared), texts(6, seed=5)
    wanted = task.write(lines, OutputOptions(beam=1))
    CALL.set(Call())
    for place, (best,) in enumerate(wanted):
        other = Caller(own, lines[:2], beam=1)
        with patch.object(transformer, "LARGE", 0):
            found = own.write(lines[place : place + 1], OutputOptions(beam=1), drafts=[best.text if place % 2 else "x"])
        other.join()
        assert (found[0], other.found) == (wanted[place], wanted[:2])


@pytest.mark.one_of(3)
@pytest.mark.parametrize(("beam", "n"), [(1, 1), (4, 2)])
def test_a_sentence_has_the_same_tokens_and_scores_in_any_company(task, shared, beam: int, n: int) -> None:
    own, lines = in_company(task, shared), texts(60, seed=beam)
    alone = [task.nbest([line], n, beam)[0] for line in lines]
    draw = random.Random(beam)
    callers, left = [], list(range(len(lines)))
    draw.shuffle(left)
    while left:
        size = draw.choice([1, 1, 2, 7])
        places, left = left[:size], left[size:]
        callers.append((places, Caller(own, [lines[place] for place in places], str(len(left) % 3), n=n, beam=beam)))
    for places, caller in callers:
        caller.join()
        assert [[(one.tokens, one.score) for one in outputs] for outputs in caller.found] == [
            [(one.tokens, one.score) for one in alone[place]] for place in places
        ]
    done = shared.counts()
    assert (done.running, done.waiting, done.sentences) == (0, 0, len(lines))


def test_terms_and_prefixes_keep_to_their_own_call(task, shared) -> None:
    from regard.tasks.text.terms import Terminology
    from regard.text.terms import TermList

    own, lines = in_company(task, shared), texts(12, seed=3)
    terms = Terminology(TermList(("dog\tTier",)))
    plain = task.nbest(lines, beam=4)
    with_terms = task.nbest(lines, beam=4, terms=terms)
    begun = task.nbest(lines, beam=4, prefixes=["der Mann"] * len(lines))
    found = [
        Caller(own, lines, beam=4),
        Caller(own, lines, beam=4, terms=terms),
        Caller(own, lines, beam=4, prefixes=["der Mann"] * len(lines)),
    ]
    for caller, expected in zip(found, (plain, with_terms, begun), strict=True):
        caller.join()
        assert caller.error is None
        assert [one.text for [one] in caller.found] == [one.text for [one] in expected]
    assert with_terms != plain != begun


def sentences(shared: SearchThreads) -> int:
    """Those that wait, or are under search."""
    now = shared.counts()
    return now.waiting + now.running


class Slow:
    """A step that is taken when it may be, and notes its rows."""

    def __init__(self, step: Any) -> None:
        self._step, self.go, self.begun = step, threading.Event(), threading.Event()
        self.allowed = threading.Semaphore(0)
        self.rows = list[int]()

    def __getattr__(self, name: str) -> Any:
        if name == "multi_step":
            raise AttributeError(name)
        return getattr(self._step, name)

    def step(self, state: Any, tokens_N: Any) -> Any:
        self.begun.set()
        while not self.go.is_set() and not self.allowed.acquire(timeout=0.001):
            pass
        self.rows.append(len(tokens_N))
        return self._step.step(state, tokens_N)


@pytest.fixture
def slow(task) -> Iterator[tuple[Translation, SearchThreads, Slow]]:
    """A translator that searches in one thread, step by step, from when it is told to."""
    shared, step = SearchThreads(1), Slow(task.step())
    own = in_company(task, shared)
    own.step = lambda: step
    yield own, shared, step
    step.go.set()
    shared.end()


def test_a_client_that_leaves_frees_its_rows_within_a_step(slow, task) -> None:
    own, shared, step = slow
    stays = Caller(own, texts(3, seed=5), beam=1)
    assert step.begun.wait(20)
    leaves = Caller(own, texts(20, seed=6), beam=1)
    while shared.counts().waiting < 20:
        time.sleep(0.001)
    step.allowed.release(2)
    while len(step.rows) < 2:
        time.sleep(0.001)
    leaves.call.leave()
    step.go.set()
    stays.join()
    leaves.join()
    assert isinstance(leaves.error, CallEnded)
    assert step.rows[1] > 3
    assert max(step.rows[3:], default=0) <= 3  # the third may have begun before
    assert [one.text for [one] in stays.found] == [task.nbest([line], beam=1)[0][0].text for line in stays.lines]


def test_who_leaves_while_waiting_is_never_searched_for(slow) -> None:
    own, shared, step = slow
    first = Caller(own, ["the man sleeps."], beam=1)
    assert step.begun.wait(20)
    second = Caller(own, texts(5, seed=1), beam=1)
    while shared.counts().waiting < 5:
        time.sleep(0.001)
    second.call.leave()
    step.go.set()
    first.join()
    second.join()
    assert isinstance(second.error, CallEnded)
    assert max(step.rows) == 1


def test_a_call_ends_at_its_deadline(slow) -> None:
    own, _, step = slow
    caller = Caller(own, ["the man sleeps."], beam=1)
    assert step.begun.wait(20)
    caller.call.deadline = time.monotonic() - 1
    step.go.set()
    caller.join()
    assert isinstance(caller.error, ServiceError)
    assert caller.error.status == 504


def test_clients_take_turns_and_short_calls_come_first(slow) -> None:
    """One client has asked for a book in ten calls; another asks for a page, a third for a line."""
    own, shared, step = slow
    own.recipe = own.recipe.model_copy(update={"decoding": own.recipe.decoding.model_copy(update={"tokens": 400})})
    lines = texts(100, seed=2)
    assert sum(len(line.split()) for line in lines) > SHORT
    book = [Caller(own, lines, "book", beam=1) for _ in range(8)]
    assert step.begun.wait(20)
    while sentences(shared) < 800:
        time.sleep(0.001)
    page, line = Caller(own, lines, "page", beam=1), Caller(own, ["the man sleeps."], "line", beam=1)
    while sentences(shared) < 901:
        time.sleep(0.001)
    step.go.set()
    for caller in (*book, page, line):
        caller.join()
    last = sorted(caller.ended for caller in book)
    assert line.ended < page.ended < last[3]


def test_calls_of_one_client_end_as_they_came_but_a_book_waits_for_a_page(slow, monkeypatch) -> None:
    own, shared, step = slow
    own.recipe = own.recipe.model_copy(update={"decoding": own.recipe.decoding.model_copy(update={"tokens": 400})})
    monkeypatch.setattr(
        "regard.serving.search.threads.PACE", 1.0
    )  # a token takes a second, so that what is shorter comes first
    lines = texts(280, seed=2)
    callers = list[Caller]()
    for size in (70, 280, 140, 70):
        callers.append(Caller(own, lines[:size], beam=1))
        while sentences(shared) < sum(len(one.lines) for one in callers):
            time.sleep(0.001)
    step.go.set()
    for caller in callers:
        caller.join()
    first, book, chapter, page = (caller.ended for caller in callers)
    assert first < page < chapter < book


class Faulty(Slow):
    """Breaks on one source."""

    def __init__(self, step: Any, source: list[int]) -> None:
        super().__init__(step)
        self.go.set()
        self._source = source

    def _refuse(self, sources: Any) -> None:
        if any(one.tolist() == self._source for one in sources):
            raise RegardError("broke")

    def start(self, sources: Any) -> Any:
        self._refuse(sources)
        return self._step.start(sources)

    def admit(self, state: Any, sources: Any) -> Any:
        self._refuse(sources)
        return self._step.admit(state, sources)


def test_an_error_is_that_of_whom_it_belongs_to(task, shared) -> None:
    lines = texts(12, seed=9)
    step = Faulty(task.step(), task.source_ids(["the dog."])[0].tolist())
    own = in_company(task, shared)
    own.step = lambda: step
    callers = [Caller(own, [line], beam=1) for line in [*lines, "the dog."]]
    for caller in callers:
        caller.join()
    *others, guilty = callers
    assert str(guilty.error) == "broke"
    assert all(caller.error is None for caller in others)
    assert [caller.found[0][0].text for caller in others] == [one.text for [one] in task.nbest(lines, beam=1)]


def test_an_error_before_the_search_ends_no_thread(task, shared, monkeypatch) -> None:
    own = in_company(task, shared)

    def refuse(*given: object) -> object:
        raise RegardError("no room")

    with monkeypatch.context() as broken:
        broken.setattr("regard.serving.search.threads.strategy", refuse)
        for _ in range(4):  # more often than there are threads
            caller = Caller(own, texts(1, seed=1), beam=1)
            caller.join(20)
            assert str(caller.error) == "no room"
    caller = Caller(own, texts(1, seed=1), beam=1)
    caller.join(20)
    assert caller.found == task.nbest(texts(1, seed=1), beam=1)


def test_what_waits_is_told_that_the_server_ends(slow) -> None:
    own, shared, step = slow
    callers = [Caller(own, texts(4, seed=n), beam=1) for n in range(3)]
    assert step.begun.wait(20)
    ending = threading.Thread(target=shared.end)
    ending.start()
    step.go.set()
    ending.join()
    for caller in callers:
        caller.join()
    assert {caller.error.status for caller in callers if caller.error} <= {503}
    assert any(caller.error for caller in callers)

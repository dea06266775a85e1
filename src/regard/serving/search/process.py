"""The search that all calls share, in a process of its own, so that it waits for no other Python.

Searching threads give up Python's lock and take it again several times a step. Beside the threads that read requests
and cut texts they would wait for it, and those for them. What is asked and what is found are lines of JSON over a
socket that only both processes have.
"""

from __future__ import annotations

import itertools
import logging
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary, finalize

from regard.serving.core import Call, CallEnded, ServiceError
from regard.serving.search import worker
from regard.serving.search.request import (
    FOUND,
    ErrorValues,
    Found,
    SearchCounts,
    SearchRequest,
    search_in_calls,
    to_line,
    values_of,
)
from regard.system.errors import RegardError
from regard.tasks.protocols import Task
from regard.tasks.text.precisions import Wanted

_LOG = logging.getLogger(__name__)
LATE = 5.0
"""Seconds after its deadline when a call is no longer waited for: the process does not answer."""
PAUSE = 1.0
"""Seconds between two starts of the process at least."""
HANG = 30.0
"""Seconds without an answer after which the process is killed: it was stopped, or waits for itself."""


@dataclass
class _Asked:
    """A line that is sent, and its answer, where there will be one."""

    line: bytes
    answer: Future[Any] = field(default_factory=Future)
    again: bool = False


class SearchProcess:
    """Implements :class:`regard.serving.search.request.SharedSearch`.

    Should the process end before it is told to, it is started again, and what it had not answered is asked again, once.

    Args:
        threads: that search; each runs the engine's steps on cores of its own.
        cores: of each.
        precision: of the engine.
    """

    elsewhere = True

    def __init__(self, threads: int, cores: int, precision: Wanted) -> None:
        self._words = [str(threads), str(cores), precision]
        self._numbers, self._lock = itertools.count(1), threading.Lock()
        self._asked, self._models = dict[int, _Asked](), dict[int, _Asked]()
        self._known: WeakKeyDictionary[Task, int] = WeakKeyDictionary()
        self._gone = deque[int]()
        self._counts, self._restarts = SearchCounts(), 0
        self._ended = False
        self._asked_at, self._alive = 0.0, Future[Any]()
        self._alive.set_result(None)
        self._start()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def open(self, task: Task, folder: Path, fingerprint: str | None, base: str | None) -> None:
        """As the protocol has it."""
        model = next(self._numbers)
        values = "open", model, str(folder.resolve()), fingerprint, base
        with self._lock:
            self._models[model] = _Asked(to_line([0, *values]))
        finalize(task, self._gone.append, model)
        self._ask(*values)[1].result()
        self._known[task] = model

    def of(self, task: Task) -> Callable[..., Found]:
        """As the protocol has it."""
        return search_in_calls(partial(self._find, self._known[task]))

    def counts(self) -> SearchCounts:
        """As the protocol has it; those before, while the process does not answer."""
        with suppress(TimeoutError, ServiceError):
            number, answer = self._ask("counts")
            try:
                self._counts = SearchCounts(**answer.result(LATE))
            finally:
                self._leave(number)
        return replace(self._counts, restarts=self._restarts)

    def tidy(self) -> None:
        """As the protocol has it."""
        while self._gone:
            model = self._gone.popleft()
            with self._lock:
                del self._models[model]
                self._send(_Asked(to_line([0, "close", model])))
        with self._lock:
            self._send(_Asked(to_line([0, "trim"])))
        if self._alive.done():
            with suppress(ServiceError):  # the server is ending
                self._asked_at, (_, self._alive) = time.monotonic(), self._ask("counts")
        elif time.monotonic() - max(self._asked_at, self._started) > HANG:
            _LOG.warning("the process that searches does not answer, and is killed")
            self._process.kill()

    def end(self) -> None:
        """As the protocol has it."""
        with self._lock:
            self._ended = True
            self._process.kill()  # it has nothing to lose, and may not answer
        self._reader.join()

    def _find(self, model: int, call: Call, step: object, asked: SearchRequest) -> Found:
        number, answer = self._ask("search", model, call.client, call.deadline, asked)
        with call.watch(partial(self._leave, number)):
            left = call.deadline - time.monotonic() + LATE
            try:
                return FOUND.validate_python(answer.result(min(left, threading.TIMEOUT_MAX)))
            except TimeoutError:
                self._leave(number)
                raise ServiceError(504, "the answer took longer than its time limit") from None

    def _leave(self, number: int) -> None:
        """Nobody waits for an answer any more."""
        with self._lock:
            asked = self._asked.pop(number, None)
            if asked:
                asked.line = b""  # perhaps it was not sent yet
                self._send(_Asked(to_line([0, "leave", number])))
        if asked:
            asked.answer.set_exception(CallEnded())

    def _ask(self, *values: object) -> tuple[int, Future[Any]]:
        number = next(self._numbers)
        asked = _Asked(to_line([number, *values]))
        with self._lock:
            if self._ended:
                raise ServiceError(503, "the server is ending")
            self._asked[number] = asked
            self._send(asked)
        return number, asked.answer

    def _send(self, asked: _Asked) -> None:
        """Send a line, with the lock; a thread sends what the process does not take at once."""
        if self._unsent:
            self._unsent.append(asked)
            return
        sent = 0
        with suppress(OSError):  # it takes nothing now, or has ended
            sent = self._socket.send(asked.line, socket.MSG_DONTWAIT)
        if sent < len(asked.line):
            self._unsent.append(_Asked(asked.line[sent:]))
            threading.Thread(target=self._send_rest, args=(self._socket, self._unsent), daemon=True).start()

    def _send_rest(self, to: socket.socket, unsent: deque[_Asked]) -> None:
        with suppress(OSError):  # the process has ended
            while True:
                to.sendall(unsent[0].line)
                with self._lock:
                    unsent.popleft()
                    if not unsent:
                        return

    def _start(self) -> None:
        self._started = time.monotonic()
        own, other = socket.socketpair()
        with other:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", worker.__name__, str(other.fileno()), *self._words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[other.fileno()],
                process_group=0,  # Ctrl-C in a terminal is for the server
            )
        self._process, self._socket, self._unsent = process, own, deque[_Asked]()

    def _read(self) -> None:
        """Pass answers on, and start the process again should it end."""
        while True:
            with suppress(OSError), self._socket.makefile("rb") as lines:
                for line in lines:
                    if line.endswith(b"\n"):  # else the process has ended meanwhile
                        self._pass_on(*values_of(line))
            self._socket.close()
            self._process.kill()
            status = self._process.wait()
            if self._ended:
                break
            _LOG.warning("the process that searches has ended (%d), and is started again", status)
            time.sleep(max(0.0, self._started + PAUSE - time.monotonic()))
            with self._lock, suppress(OSError):  # no room for a process now; later perhaps
                self._start_again()
        with self._lock:
            while self._asked:
                self._asked.popitem()[1].answer.set_exception(ServiceError(503, "the server is ending"))

    def _start_again(self) -> None:
        """Start the process, with the lock, and ask it what the one before had not answered."""
        if self._ended:
            return
        self._start()
        self._restarts += 1
        for opened in self._models.values():
            self._send(opened)
        for number, asked in list(self._asked.items()):
            if asked.again:
                del self._asked[number]
                error = ServiceError(503, "the search ended before it answered; ask again in 5 s", 5)
                asked.answer.set_exception(error)
            else:
                asked.again = True
                self._send(asked)

    def _pass_on(self, number: int, error: ErrorValues | None, value: object) -> None:
        asked = self._asked.pop(number, None)
        if asked and error is None:
            asked.answer.set_result(value)
        elif asked and error:
            message, where, status, retry_after = error
            refused = ServiceError(status, message, retry_after) if status else RegardError(message, where)
            asked.answer.set_exception(refused)

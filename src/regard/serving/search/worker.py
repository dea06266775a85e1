"""The process that searches for a server; see :mod:`regard.serving.search.process`, which starts it.

It ends with the socket by which it is asked: when the server ends, or is killed.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, cast
from weakref import WeakValueDictionary

from regard.engine.weights import SharedWeights
from regard.serving.core import Call, CallEnded, ServiceError, describe_fault
from regard.serving.search.request import REQUEST, ErrorValues, Found, to_line, values_of
from regard.serving.search.threads import SearchThreads
from regard.system import kernels
from regard.system.errors import RegardError
from regard.system.processor import share_arena, trim_memory
from regard.tasks.model_folder import open_by_engine
from regard.tasks.model_path import fingerprint
from regard.tasks.text.precisions import Wanted

_LOG = logging.getLogger(__name__)
_Model = tuple[Any, SharedWeights | None]
"""The step of a model, and what it shares with others."""
SWITCH = 0.001
"""Seconds after which a thread that computes in Python lets another one."""


class Worker:
    """Answers lines, each a number, the name of a method and its values; with a line for each number but 0.

    Args:
        socket: by which it is asked.
        searching: that all sentences share.
        precision: of the engine.
    """

    def __init__(self, socket: socket.socket, searching: SearchThreads, precision: Wanted) -> None:
        self._socket, self._searching, self._precision = socket, searching, precision
        self._sending = threading.Lock()
        self._models = dict[int, Future[_Model]]()
        self._places = dict[int, tuple[str, str | None, str | None]]()
        self._shared: WeakValueDictionary[str, SharedWeights] = WeakValueDictionary()
        self._calls = dict[int, Call]()

    def run(self) -> None:
        """Answer until the socket ends."""
        with self._socket.makefile("rb") as lines:
            for line in lines:
                if line.endswith(b"\n"):  # else the server has ended meanwhile
                    number, name, *values = values_of(line)
                    getattr(self, name)(number, *values)

    def open(self, number: int, model: int, folder: str, mark: str | None, base: str | None) -> None:
        """Open a model."""
        self._places[model] = folder, mark, base
        self._model(model).add_done_callback(lambda found: self._answer(number, found.exception()))

    def _model(self, model: int) -> Future[_Model]:
        """A model; it is opened in a thread, since others are searched with meanwhile, and once more if that failed."""
        found = self._models.get(model)
        if found is None or (found.done() and found.exception()):
            folder, mark, base = self._places[model]
            shared = self._shared.setdefault(base, SharedWeights()) if base else None
            found = self._models[model] = Future()
            threading.Thread(target=self._load, args=(found, Path(folder), mark, shared), daemon=True).start()
        return found

    def _load(self, found: Future[_Model], folder: Path, mark: str | None, shared: SharedWeights | None) -> None:
        try:
            task = open_by_engine(folder, self._precision, shared)
            if fingerprint(folder) != mark:
                raise RegardError("has changed since the server opened it", str(folder))
            found.set_result((task.step(), shared))
        except Exception as error:
            said = error if isinstance(error, RegardError) else describe_fault(error)
            _LOG.warning("a model cannot be searched with: %s", said)
            found.set_exception(error)

    def search(self, number: int, model: int, client: str, deadline: float, asked: object) -> None:
        """Search with a model when it is open."""
        call = self._calls[number] = Call(client=client, deadline=deadline)
        if model in self._places:
            self._model(model).add_done_callback(partial(self._put, number, call, asked))
        else:
            self._answer(number, ServiceError(503, "the model has left memory; ask again in 1 s", 1))

    def _put(self, number: int, call: Call, asked: object, opened: Future[_Model]) -> None:
        try:
            if opened.exception():
                raise ServiceError(503, "the model cannot be opened now; ask again in 2 s", 2)
            found = self._searching.put(call, opened.result()[0], REQUEST.validate_python(asked))
            found.add_done_callback(partial(self._tell, number))
        except Exception as error:
            self._answer(number, error)

    def _tell(self, number: int, found: Future[Found]) -> None:
        error = found.exception()
        self._answer(number, error, None if error else found.result())

    def leave(self, _: int, number: int) -> None:
        """Nobody waits for an answer any more."""
        if call := self._calls.get(number):
            call.leave()

    def close(self, _: int, model: int) -> None:
        """Let a model go."""
        self._models.pop(model, None)
        self._places.pop(model, None)

    def counts(self, number: int) -> None:
        """Say what was done so far."""
        self._answer(number, value=self._searching.counts())

    def trim(self, _: int) -> None:
        """Give freed memory back."""
        trim_memory()

    def _answer(self, number: int, error: BaseException | None = None, value: object = None) -> None:
        self._calls.pop(number, None)
        if number and not isinstance(error, CallEnded):
            with self._sending, suppress(OSError):  # the server has ended
                self._socket.sendall(to_line([number, error and _error_values(error), value]))


def _error_values(error: BaseException) -> ErrorValues:
    if isinstance(error, ServiceError):
        return error.message, None, error.status, error.retry_after
    if isinstance(error, RegardError):
        return error.message, error.where and str(error.where), None, None
    _LOG.error(describe_fault(error))
    return "the server has a fault", None, 500, None


def main() -> None:
    """Search until the server ends."""
    for one in (signal.SIGINT, signal.SIGTERM):  # of the terminal or the service manager: the server ends first
        signal.signal(one, signal.SIG_IGN)
    handle, threads, cores, precision = sys.argv[1:]
    share_arena()
    kernels.use_threads(int(cores))
    sys.setswitchinterval(SWITCH)
    try:
        Worker(socket.socket(fileno=int(handle)), SearchThreads(int(threads)), cast("Wanted", precision)).run()
    except Exception as error:  # it is started again
        _LOG.error(describe_fault(error))
    os._exit(0)  # threads may still compute


if __name__ == "__main__":
    main()

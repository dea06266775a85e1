"""Work divided among processes that are copies of this one: they have all that it had, and answer in order.

A copy shares the memory of what was loaded before, so a model or a vocabulary is there once. Where the system cannot
make copies safely, everything is done here.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import signal
import struct
import sys
import traceback
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, suppress
from itertools import chain, islice, pairwise
from typing import Any, BinaryIO, Generic, Never, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from regard.system import errors
from regard.system.errors import RegardError

Item = TypeVar("Item")
Found = TypeVar("Found")
Work = Callable[[bytes], bytes]
"""What a process makes of what it is sent."""
Processes = Callable[[], int]
"""How many processes are to be used, asked where there is work for several."""
SAFE = sys.platform.startswith("linux")
"""Elsewhere the system's libraries do not bear to be copied."""
_PARENT_DIED = 1
"""PR_SET_PDEATHSIG of Linux's prctl."""
_PIPE, _SET_PIPE, _PIPE_SIZE = 1 << 20, 1031, 1032
"""Bytes that may wait for a process; F_SETPIPE_SZ and F_GETPIPE_SZ of Linux's fcntl."""
_LENGTH = struct.Struct("<q")
_ANSWER, _REFUSAL, _FAILURE = b"answer  ", b"refusal ", b"failure "
"""What begins an answer: it is one; the user's error; a programming error."""
_PART = "\0"
"""Key of an object that stands for bytes or numbers in a packed value."""
_SWITCH = "TOKENIZERS_PARALLELISM"
"""Environment variable of the tokenizers' own threads, which do not survive in a copy."""


class LostWorker(RegardError):
    """A process ended that was to answer."""


class NoWorkers(RegardError):
    """No process could be started."""


class ForkedWorkers:
    """Processes that do the same work; a context manager that ends them.

    Args:
        work: what each makes of what it is sent.
        count: how many; where the system allows no more, fewer will do.

    Raises:
        NoWorkers: when it is entered, and the system allows none.
    """

    def __init__(self, work: Work, count: int) -> None:
        self._work, self._count = work, count
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        before = os.environ.get(_SWITCH)
        os.environ[_SWITCH] = before or "true"  # else the library warns of the copy
        try:
            for _ in range(self._count):
                self._workers.append(_Worker.fork(self._work, self._workers))
        except OSError as error:
            if not self._workers:
                raise NoWorkers(f"cannot start another process: {error.strerror}; ask for one process") from None
        finally:
            if before is None:
                del os.environ[_SWITCH]
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        for worker in self._workers:
            worker.dismiss(in_peace=kind is None)
        for worker in self._workers:
            worker.wait()
        self._workers.clear()

    def map(self, given: Iterable[bytes]) -> Iterator[bytes]:
        """What the work makes of each, in order, as :meth:`pairs` has it."""
        for _, answer in self.pairs(given, bytes):
            yield answer()

    def pairs(self, items: Iterable[Item], pack: Callable[[Item], bytes]) -> Iterator[tuple[Item, Callable[[], bytes]]]:
        """Each item with a function that waits for its answer, in order; call it before the next item is taken.

        Of an error in ``items`` what came before it is answered first.

        Args:
            items: what is worked on.
            pack: an item as bytes.

        Raises:
            RegardError: of the work.
            LostWorker: a process was ended.
        """
        rest, order = ((item, pack(item)) for item in items), deque[tuple[Item, _Worker]]()
        waiting: tuple[Item, bytes] | None = None
        wrong: RegardError | None = None
        while True:
            try:
                while wrong is None and (waiting := waiting or next(rest, None)):
                    item, content = waiting
                    free = min(self._workers, key=lambda worker: len(worker.sent))
                    held = sum(free.sent) + len(content) + 2 * _LENGTH.size
                    if free.sent and (len(free.sent) > 1 or held > free.room):  # it would wait for an answer
                        break
                    free.send(content)
                    order.append((item, free))
                    waiting = None
            except LostWorker:
                raise
            except RegardError as error:
                wrong = error
            if not order:
                break
            item, worker = order.popleft()
            yield item, worker.receive
        if wrong:
            raise wrong

    def ask_each(self, content: bytes) -> list[bytes]:
        """What each process makes of the same, once all else is answered."""
        for worker in self._workers:
            worker.send(content)
        return [worker.receive() for worker in self._workers]


class _Worker:
    """A process, and the pipes to and from it."""

    def __init__(self, process: int, to: BinaryIO, back: BinaryIO, room: int) -> None:
        self.process, self.to, self.back, self.room = process, to, back, room
        self.sent: deque[int] = deque()
        """Bytes of what was sent and is not answered."""

    @staticmethod
    def fork(work: Work, others: list[_Worker]) -> _Worker:
        """Start a process; it closes its copies of the pipes of others."""
        parent, ends = os.getpid(), list[int]()
        try:
            ends += os.pipe()
            ends += os.pipe()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of threads, not needed here
                process = os.fork()
        except OSError:
            for end in ends:
                os.close(end)
            raise
        asked, to, back, answered = ends
        if process:
            os.close(asked)
            os.close(answered)
            return _Worker(process, os.fdopen(to, "wb", 0), os.fdopen(back, "rb"), _widen(to))
        code = 1
        try:
            for number in (to, back, *(file.fileno() for other in others for file in (other.to, other.back))):
                os.close(number)
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends this one
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
                signal.signal(number, signal.SIG_DFL)
            end_with(parent, signal.SIGKILL)
            os.environ[_SWITCH] = "false"
            gc.freeze()  # else a collection writes to all that was there before, and each page of it is copied
            _serve(work, os.fdopen(asked, "rb"), os.fdopen(answered, "wb"))
            code = 0
        finally:
            os._exit(code)

    def send(self, content: bytes) -> None:
        """Send a piece of work."""
        self.sent.append(len(content))
        try:
            for part in (_LENGTH.pack(len(content)), content):
                view = memoryview(part)
                while view:
                    view = view[self.to.write(view) :]
        except BrokenPipeError:
            raise self._lost() from None

    def receive(self) -> bytes:
        """The answer to the oldest piece of work that was sent."""
        head = self.back.read(_LENGTH.size)
        content = self.back.read(*_LENGTH.unpack(head)) if len(head) == _LENGTH.size else b""
        kind, found = content[: len(_ANSWER)], content[len(_ANSWER) :]
        if not kind:
            raise self._lost()
        self.sent.popleft()
        if kind == _ANSWER:
            return found
        if kind == _REFUSAL:
            name, message, where = json.loads(found)
            raise getattr(errors, name, RegardError)(message, where)
        raise RuntimeError(found.decode())

    def _lost(self) -> LostWorker:
        self.to.close()
        with suppress(ChildProcessError):
            _, status = os.waitpid(self.process, 0)
            self.process = 0
            if os.WIFSIGNALED(status):
                name = signal.Signals(os.WTERMSIG(status)).name
                return LostWorker(f"a process of this command was ended by {name}; rerun the same command")
        return LostWorker("a process of this command ended; rerun the same command")

    def dismiss(self, in_peace: bool) -> None:
        """Let the process end, at once unless in peace."""
        with suppress(OSError):
            self.to.close()
        if self.process and not in_peace:
            with suppress(ProcessLookupError):
                os.kill(self.process, signal.SIGKILL)

    def wait(self) -> None:
        """Wait until the process has ended; what it still says is not heard."""
        self.back.close()
        if self.process:
            with suppress(ChildProcessError):
                os.waitpid(self.process, 0)


def _serve(work: Work, asked: BinaryIO, answered: BinaryIO) -> None:
    """Answer every piece of work, until there is no more."""
    while len(head := asked.read(_LENGTH.size)) == _LENGTH.size:
        content = asked.read(*_LENGTH.unpack(head))
        try:
            found = _ANSWER + work(content)
        except RegardError as error:
            where = error.where and str(error.where)
            found = _REFUSAL + json.dumps([type(error).__name__, error.message, where]).encode()
        except Exception:
            found = _FAILURE + traceback.format_exc().encode()
        with suppress(BrokenPipeError):
            answered.write(_LENGTH.pack(len(found)) + found)
            answered.flush()


def _widen(pipe: int) -> int:
    """Let a pipe hold :data:`_PIPE` bytes, or as many as it may; returns how many."""
    import fcntl

    with suppress(OSError):
        fcntl.fcntl(pipe, _SET_PIPE, _PIPE)
    return fcntl.fcntl(pipe, _PIPE_SIZE)


def end_with(parent: int, number: int) -> None:
    """Have this signal sent to this process where the one that started it ends, however that ends; on Linux."""
    try:
        ctypes.CDLL("libc.so.6").prctl(_PARENT_DIED, number)
    except (OSError, AttributeError):
        return
    if os.getppid() != parent:
        os._exit(1)


def alone() -> int:
    """One process."""
    return 1


class MapReduce(ABC, Generic[Item, Found]):
    """What is made of items, each by itself, and what is counted on the way, whose sums do not depend on the order."""

    @abstractmethod
    def do(self, item: Item) -> Found:
        """What is made of an item."""

    def pack_item(self, item: Item) -> bytes:
        """An item as bytes, at least one."""
        return pack(item)

    def unpack_item(self, content: bytes) -> Item:
        """The opposite."""
        return unpack(content)

    def pack_found(self, found: Found) -> bytes:
        """What was made of an item as bytes."""
        return pack(found)

    def unpack_found(self, content: bytes) -> Found:
        """The opposite."""
        return unpack(content)

    @property
    def content(self) -> bytes:
        """What was counted, for :meth:`merge`."""
        return b""

    def merge(self, content: bytes) -> None:
        """Add what another process counted."""


def divide(
    work: MapReduce[Item, Found], items: Iterable[Item], processes: Processes
) -> Generator[tuple[Item, Found], None, None]:
    """Each item and what is made of it, in order; what is counted is in ``work`` when all items were taken.

    Args:
        work: to be done.
        items: taken as they are needed.
        processes: copies of this one that do it; it does so itself where the system allows none.

    Raises:
        RegardError: of an item or the work, after all that comes before it.
    """
    rest, first = iter(items), list[Item]()
    if SAFE and processes is not alone:
        first += islice(rest, 1)
        try:
            first += islice(rest, 1)
        except RegardError as error:
            rest = _raise(error)
    count = processes() if len(first) == 2 else 1

    def answer(content: bytes) -> bytes:
        return work.pack_found(work.do(work.unpack_item(content))) if content else work.content

    with ExitStack() as stack:
        workers = None
        if count > 1:
            with suppress(NoWorkers):
                workers = stack.enter_context(ForkedWorkers(answer, count))
        if not workers:
            for item in chain(first, rest):
                yield item, work.do(item)
            return
        for item, found in workers.pairs(chain(first, rest), work.pack_item):
            yield item, work.unpack_found(found())
        for counted in workers.ask_each(b""):
            work.merge(counted)


def _raise(error: Exception) -> Iterator[Never]:
    raise error
    yield


def pack(value: object) -> bytes:
    """A value of JSON in which bytes and rows of numbers may stand, as bytes, for :func:`unpack`."""
    parts = list[bytes]()

    def put(one: bytes | NDArray[np.generic]) -> dict[str, object]:
        if not isinstance(one, bytes) and (not isinstance(one, np.ndarray) or one.ndim != 1):
            raise TypeError(f"{type(one).__name__} is neither bytes nor a row of numbers")
        parts.append(one if isinstance(one, bytes) else one.tobytes())
        return {_PART: (len(parts) - 1, None if isinstance(one, bytes) else one.dtype.str)}

    head = json.dumps(value, ensure_ascii=False, default=put).encode("utf-8", "surrogatepass")
    sizes = np.array([len(head), *map(len, parts)], "<i8")
    return b"".join([len(sizes).to_bytes(8, "little"), sizes.tobytes(), head, *parts])


def unpack(content: bytes) -> Any:
    """The opposite; what was a tuple is a list."""
    count = int.from_bytes(content[:8], "little")
    begin = 8 + 8 * count
    ends = begin + np.frombuffer(content, "<i8", count, 8).cumsum()
    head, *parts = (content[one:other] for one, other in pairwise([begin, *ends.tolist()]))

    def take(one: dict[str, tuple[int, str | None]]) -> object:
        if _PART not in one:
            return one
        number, kind = one[_PART]
        return parts[number] if kind is None else np.frombuffer(parts[number], kind)

    return json.loads(head.decode("utf-8", "surrogatepass"), object_hook=take)

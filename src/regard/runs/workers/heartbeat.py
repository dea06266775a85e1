"""Whether the processes of a run on several hosts still answer: of a host without power no connection tells."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from threading import Event, Thread

from torch.distributed.distributed_c10d import Store

_KEY = "regard/heartbeat/"
"""Keys under which each process counts its seconds."""
_SECOND = 1.0
SILENT = 30
"""After so many seconds without an answer a process is lost."""


class Heartbeat:
    """Counts seconds in a store that all processes share, and reads the counts of the others.

    Seconds of silence are counted by a thread that never waits for the store, which a host that stands still may hold.

    Args:
        connect: gives a store for a thread alone.
        rank, size: number of this process, and how many there are.
        absent: seconds after which a process that was never heard is lost.
        silent: the same of one that was heard.
    """

    def __init__(
        self, connect: Callable[[], Store], rank: int, size: int, absent: int = SILENT, silent: int = SILENT
    ) -> None:
        self._connect, self._rank, self._absent, self._silent = connect, rank, absent, silent
        self._others = [other for other in range(size) if other != rank]
        self._counts = dict.fromkeys(self._others, "")
        self._heard: dict[int, int] = {}
        self._seconds, self._failed, self._ended = 0, False, Event()
        self._threads = [Thread(target=work, daemon=True) for work in (self._count, self._beat)]

    def start(self) -> Callable[[], bool]:
        """Begin, until this process ends; the function that tells whether a process is lost."""
        for thread in self._threads:
            thread.start()
        atexit.register(self.end)
        return self.lost

    def lost(self) -> bool:
        """Whether a process was silent for too long, or the store is gone."""
        return self._failed or any(
            self._seconds - self._heard[other] >= self._silent
            if other in self._heard
            else self._seconds >= self._absent
            for other in self._others
        )

    def end(self) -> None:
        """Stop counting."""
        self._ended.set()
        for thread in self._threads:
            thread.join(_SECOND)

    def _count(self) -> None:
        while not self._ended.wait(_SECOND):
            self._seconds += 1

    def _beat(self) -> None:
        count = 0
        try:
            store = self._connect()
            while not self._ended.wait(_SECOND):
                count += 1
                store.set(f"{_KEY}{self._rank}", str(count))
                self._hear(store)
        except RuntimeError:  # whoever holds the store has closed the connection, or never opened it
            self._failed = True

    def _hear(self, store: Store) -> None:
        for other in self._others:
            if store.check([key := f"{_KEY}{other}"]) and (count := store.get(key).decode()) != self._counts[other]:
                self._counts[other], self._heard[other] = count, self._seconds

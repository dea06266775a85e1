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

    Args:
        store: of this thread alone; its operations end after some seconds where nobody answers.
        rank, size: number of this process, and how many there are.
        silent: rounds of a second after which a process whose count stands still is lost.
    """

    def __init__(self, store: Store, rank: int, size: int, silent: int = SILENT) -> None:
        self._store, self._rank, self._silent = store, rank, silent
        self._others = [other for other in range(size) if other != rank]
        self._heard = dict.fromkeys(self._others, "")
        self._missed = dict.fromkeys(self._others, 0)
        self._ended, self._thread = Event(), Thread(target=self._beat, daemon=True)

    def start(self) -> Callable[[], bool]:
        """Begin, until this process ends; the function that tells whether a process is lost."""
        self._thread.start()
        atexit.register(self.end)
        return self.lost

    def lost(self) -> bool:
        """Whether a process was silent for too long."""
        return any(missed >= self._silent for missed in self._missed.values())

    def end(self) -> None:
        """Stop counting."""
        self._ended.set()
        self._thread.join(2 * _SECOND)

    def _beat(self) -> None:
        count = 0
        while not self._ended.wait(_SECOND):
            count += 1
            try:
                self._store.set(f"{_KEY}{self._rank}", str(count))
                self._hear()
            except RuntimeError:  # the store itself is silent, and it has waited
                self._missed = dict.fromkeys(self._others, self._silent)
                return

    def _hear(self) -> None:
        for other in self._others:
            heard = ""
            if self._store.check([key := f"{_KEY}{other}"]):
                heard = self._store.get(key).decode()
            self._missed[other] = 0 if heard != self._heard[other] else self._missed[other] + 1
            self._heard[other] = heard

"""Who may enter: as much work as is done in time, by the speed that this machine shows.

A call waits for no more of each other than it has itself, as the search has it: a word enters beside a book.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from regard.serving.core import ServiceError

FIRST = 2_000.0
"""Characters that are translated in a second, before any was measured."""
MEMORY = 20.0
"""Seconds of work after which what was measured counts a third."""

MOST = 1.5
"""Times the seconds that all accepted work may take: one that is accepted waits for shorter ones that come later."""
LIGHT = 0.05
"""Share of the seconds that a call may take which comes in even so."""


class Admission:
    """Lets calls in that are answered within so many seconds, about; others are told when to ask again.

    Args:
        seconds: that one may wait, its own work counted.
        calls: at once.
    """

    def __init__(self, seconds: float, calls: int) -> None:
        self._seconds, self._calls = seconds, calls
        self._lock = threading.Lock()
        self._done, self._busy, self._since = 5 * FIRST, 5.0, 0.0
        self._sizes = list[int]()
        self.ending = False

    @property
    def calls(self) -> int:
        """Accepted, and not done yet."""
        return len(self._sizes)

    @property
    def characters(self) -> int:
        """Of these calls."""
        return sum(self._sizes)

    @property
    def speed(self) -> float:
        """Characters a second."""
        return max(FIRST / 20, self._done / self._busy)

    def refuse_ending(self) -> None:
        """Raise a ServiceError (503) while the server ends."""
        if self.ending:
            raise ServiceError(503, "the server is ending; ask again in a moment", 5)

    @contextmanager
    def enter(self, characters: int) -> Iterator[None]:
        """While the context is open, work of so many characters is accepted; those of a wide beam count more.

        Raises:
            ServiceError: 429, there is too much of it; 503, the server ends.
        """
        self.refuse_ending()
        with self._lock:
            own, sizes = characters / self.speed, [one / self.speed for one in self._sizes]
            over = own + sum(min(one, own) for one in sizes) - self._seconds
            if own > LIGHT * self._seconds:  # of a call that came alone no more counts than may wait
                over = max(over, own + sum(min(one, self._seconds) for one in sizes) - MOST * self._seconds)
            if self.calls and (over > 0 or self.calls >= self._calls):
                after = max(1, math.ceil(min(sum(sizes), over)))
                raise ServiceError(429, f"the server is busy; ask again in {after} s", after)
            if not self.calls:
                self._since = time.monotonic()
            self._sizes.append(characters)
        done = 0
        try:
            yield
            done = characters
        finally:
            with self._lock:
                now = time.monotonic()
                self._sizes.remove(characters)
                kept = math.exp((self._since - now) / MEMORY)
                self._done, self._busy = self._done * kept + done, self._busy * kept + now - self._since
                self._since = now

"""Characters that each key had translated in each month."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from threading import Lock, RLock, Timer

from regard.serving.core import Key, ServiceError
from regard.serving.store.database import Database, value
from regard.text.counts import counted

PAUSE = 1.0
"""Seconds between two writes at least."""


class Usage:
    """Counts characters; they are written a second later, many at once.

    Calls and documents of one process never exceed what a key may have. Others on the same folder see its documents,
    and its texts once they are written: between them a key may go over by what it has translated at one time.
    """

    def __init__(self, database: Database) -> None:
        self._database, self._lock, self._writing = database, RLock(), Lock()
        self._counts, self._reserved = dict[tuple[int, str], int](), Counter[int]()
        self._timer: Timer | None = None

    def add(self, key: int, characters: int) -> None:
        """Count characters of a key, by its number."""
        with self._lock:
            now = key, month()
            self._counts[now] = self._counts.get(now, 0) + characters
            if self._timer is None:
                self._timer = Timer(PAUSE, self.flush)
                self._timer.daemon = True
                self._timer.start()

    @contextmanager
    def reserve(self, key: Key, characters: int) -> Iterator[Callable[[int], None]]:
        """Keep characters of a key for a call: those that it says were translated count, the others are given back.

        Args:
            key: of a client.
            characters: that it asks for.

        Raises:
            ServiceError: 456, DeepL's number for it, where the key has fewer left.
        """
        left = characters

        def count_some(some: int) -> None:
            nonlocal left
            with self._lock:
                left, self._reserved[key.id] = left - some, self._reserved[key.id] - some
                self.add(key.id, some)

        with ExitStack() as held:
            if key.characters is not None:
                connection = held.enter_context(self._database.read())
            held.enter_context(self._lock)
            if key.characters is not None:
                had = self._had(connection, key.id) + self._reserved[key.id]
                query = "SELECT ifnull(sum(characters), 0) FROM jobs WHERE owner = ? AND ended IS NULL"
                had += value(connection, query, key.id)
                if had + characters > key.characters:
                    rest = counted(max(key.characters - had, 0), "character")
                    asked = counted(characters, "character")
                    raise ServiceError(456, f"{asked} asked for, and {rest} of this month left")
            self._reserved[key.id] += characters
        try:
            yield count_some
        finally:
            with self._lock:
                self._reserved[key.id] -= left

    def of(self, key: int) -> int:
        """Characters of a key this month, by its number."""
        with self._database.read() as connection, self._lock:
            return self._had(connection, key)

    def flush(self) -> None:
        """Write what was counted; where that is impossible now, it is kept for the next time."""
        with self._writing:  # and whoever counts meanwhile waits for no disk
            with self._lock:
                if self._timer:
                    self._timer.cancel()
                self._timer, counts = None, dict(self._counts)
            with suppress(ServiceError), ExitStack() as held:
                with self._database.write() as connection:
                    for (key, when), characters in counts.items():
                        count(connection, key, characters, when)
                    held.enter_context(self._lock)  # so that nobody sees them here and there
                for name, characters in counts.items():
                    self._counts[name] -= characters
                self._counts = {name: left for name, left in self._counts.items() if left}

    def _had(self, connection: sqlite3.Connection, key: int) -> int:
        query = "SELECT ifnull(sum(characters), 0) FROM usage WHERE key = ? AND month = ?"
        return int(value(connection, query, key, month())) + self._counts.get((key, month()), 0)


def count(connection: sqlite3.Connection, key: int, characters: int, when: str | None = None) -> None:
    """Count characters of a key within a transaction; none of a key that was revoked.

    Args:
        connection: that writes.
        key: its number.
        characters: how many.
        when: the month; default: this one.
    """
    query = """
        INSERT INTO usage SELECT id, ?, ? FROM keys WHERE id = ?
        ON CONFLICT DO UPDATE SET characters = characters + excluded.characters
    """
    connection.execute(query, (when or month(), characters, key))


def month() -> str:
    """The month in UTC."""
    return f"{datetime.now(UTC):%Y-%m}"

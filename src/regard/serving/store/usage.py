"""Characters that each key had translated in each month."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from datetime import UTC, datetime
from threading import Lock, Timer

from regard.serving.core import ServiceError
from regard.serving.store.database import Database

PAUSE = 1.0
"""Seconds between two writes at least."""


class Usage:
    """Counts characters; they are written a second later, many at once."""

    def __init__(self, database: Database) -> None:
        self._database, self._lock, self._writing = database, Lock(), Lock()
        self._counts = dict[tuple[int, str], int]()
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

    def of(self, key: int) -> int:
        """Characters of a key this month, by its number."""
        with self._lock, self._database.read() as connection:
            query = "SELECT ifnull(sum(characters), 0) FROM usage WHERE key = ? AND month = ?"
            return int(connection.execute(query, (key, month())).fetchone()[0]) + self._counts.get((key, month()), 0)

    def flush(self) -> None:
        """Write what was counted; where that is impossible now, it is kept for the next time."""
        with self._writing:  # and whoever counts meanwhile waits for no disk
            with self._lock:
                if self._timer:
                    self._timer.cancel()
                self._timer, counts = None, dict(self._counts)
            with suppress(ServiceError):
                with self._database.write() as connection:
                    for (key, when), characters in counts.items():
                        count(connection, key, characters, when)
                with self._lock:
                    for name, characters in counts.items():
                        self._counts[name] -= characters
                    self._counts = {name: left for name, left in self._counts.items() if left}


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

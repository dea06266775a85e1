"""Keys of clients; of a secret only its hash is stored."""

from __future__ import annotations

import secrets
import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from regard.serving.core import Key, ServiceError
from regard.serving.store.database import Database, hash_of, value
from regard.serving.store.usage import month
from regard.system.errors import RegardError, UsageError

LONGEST = 100
"""Characters of a name at most."""


@dataclass(frozen=True)
class KeyUsage:
    """A key, as it is listed.

    Args:
        name: unique.
        created, used: days in UTC, ``2026-11-29``; not ``used`` yet: ``None``.
        characters: that it may have translated in a month; ``None``: any number.
        month: how many it had this month.
    """

    name: str
    created: str
    used: str | None
    characters: int | None
    month: int


class Keys:
    """The keys of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def make(self, name: str, characters: int | None = None) -> str:
        """A new key's secret, which is nowhere else.

        Raises:
            UsageError: there is a key of this name, or it is none.
        """
        if not 0 < len(name) <= LONGEST or not name.isprintable():
            raise UsageError(f"a key's name has 1 to {LONGEST} characters that can be seen")
        if characters is not None and not 0 < characters < 1 << 63:
            raise UsageError("a key is for one character a month at least")
        secret = secrets.token_urlsafe(32)
        try:
            with self._database.write() as connection:
                row = name, hash_of(secret), characters, today()
                connection.execute("INSERT INTO keys (name, hash, characters, created) VALUES (?, ?, ?, ?)", row)
        except sqlite3.IntegrityError:
            raise UsageError(f"there is a key {name!r}; revoke it, or choose another name") from None
        return secret

    def find(self, secret: str) -> Key | None:
        """The key of a secret; it counts as used today."""
        with self._database.read() as connection:
            query = "SELECT id, name, characters, used FROM keys WHERE hash = ?"
            row = connection.execute(query, (hash_of(secret),)).fetchone()
        if row is None:
            return None
        number, name, characters, used = row
        if used != (day := today()):
            with suppress(ServiceError), self._database.write() as connection:
                connection.execute("UPDATE keys SET used = ? WHERE id = ?", (day, number))
        return Key(number, name, characters)

    def revoke(self, name: str) -> None:
        """Delete a key and what it owned: glossaries, documents, memory, usage.

        Raises:
            RegardError: there is no such key.
        """
        with self._database.write() as connection:
            if not connection.execute("DELETE FROM keys WHERE name = ? AND id > 0", (name,)).rowcount:
                raise RegardError(f"there is no key {name!r:.120}")
        self._database.empty_log()

    def all(self) -> list[KeyUsage]:
        """Every key, by name."""
        with self._database.read() as connection:
            query = """
                SELECT name, created, used, keys.characters, ifnull(usage.characters, 0)
                FROM keys LEFT JOIN usage ON usage.key = id AND month = ? WHERE id > 0 ORDER BY name
            """
            return [KeyUsage(*row) for row in connection.execute(query, (month(),))]

    @property
    def needed(self) -> bool:
        """Whether there is a key."""
        with self._database.read() as connection:
            return bool(value(connection, "SELECT EXISTS (SELECT 1 FROM keys WHERE id > 0)"))


def today() -> str:
    """The day in UTC."""
    return f"{datetime.now(UTC):%Y-%m-%d}"

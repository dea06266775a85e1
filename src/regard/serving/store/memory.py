"""Translations that are remembered where somebody wants it: of each key and direction its own."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from regard.serving.core import ServiceError
from regard.serving.store.database import Database, storable, value
from regard.text.terms import comparable

MOST = 1_000_000
"""Texts of a memory at most."""
_OF = "FROM memory WHERE (owner, source, target) = (?, ?, ?)"
_COUNT = f"SELECT count(*) {_OF}"


@dataclass(frozen=True)
class ClientMemory:
    """A translation memory; fits :class:`regard.documents.translate.Memory`.

    Args:
        database: that holds it.
        place: the number of its key, and its languages.
    """

    database: Database
    place: tuple[int, str, str]

    def exact(self, text: str) -> str | None:
        """The last translation of a text that is the same but for white space; ``None`` where there is none."""
        with self.database.read() as connection:
            query = "SELECT translation FROM memory WHERE (owner, source, target, text) = (?, ?, ?, ?)"
            row = connection.execute(query, (*self.place, storable(comparable(text)))).fetchone()
        return row and str(row[0])

    def add(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Remember texts with their translations, in place of former ones.

        Raises:
            ServiceError: 507 there is no room for more.
        """
        rows = [
            (*self.place, storable(comparable(text)), storable(unicodedata.normalize("NFC", one).strip()))
            for text, one in pairs
        ]
        with self.database.write() as connection:
            connection.executemany("INSERT OR REPLACE INTO memory VALUES (?, ?, ?, ?, ?)", rows)
            if value(connection, _COUNT, *self.place) > MOST:
                raise ServiceError(507, f"the translation memory has {MOST:,} texts, the most; delete it")

    def delete(self) -> None:
        """Forget all of it."""
        with self.database.write() as connection:
            connection.execute(f"DELETE {_OF}", self.place)
        self.database.empty_log()

    def count(self) -> int:
        """Its texts."""
        with self.database.read() as connection:
            return int(value(connection, _COUNT, *self.place))

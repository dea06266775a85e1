"""Glossaries as DeepL has them: named dictionaries, each of one direction; as terms of the search."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from uuid import uuid4

from regard.serving.core import Key, ServiceError
from regard.serving.store.database import Database, storable, value
from regard.system.errors import RegardError, UsageError
from regard.tasks.text.terms import Terminology
from regard.text.counts import counted
from regard.text.languages import primary
from regard.text.terms import TermList

LONGEST = 1024
"""Characters of a name at most."""
GLOSSARIES = 1000
"""Of a key at most."""
CHARACTERS = 10_000_000
"""Of a dictionary at most."""
ENTRIES = 100_000
"""Of a dictionary at most."""
STORED = 64 << 20
"""Bytes of all dictionaries of a key at most."""
_CODE = re.compile("[a-z]{2,8}")
Entries = Mapping[str, str]
"""Sources of terms to their targets; forms of a target stand between ``|``."""


@dataclass(frozen=True)
class Dictionary:
    """The terms of one direction.

    Args:
        source, target: languages, without region and script.
        count: how many terms.
    """

    source: str
    target: str
    count: int


@dataclass(frozen=True)
class Glossary:
    """A name, and dictionaries.

    Args:
        id: a UUID.
        created: seconds since 1970.
        dictionaries: by direction.
    """

    id: str
    name: str
    created: float
    dictionaries: tuple[Dictionary, ...]


class Glossaries:
    """The glossaries of a database; of each key its own, and those made without a key of everybody without one."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, owner: Key, name: str, dictionaries: Mapping[tuple[str, str], Entries]) -> Glossary:
        """A new glossary.

        Args:
            owner: the only one who sees it.
            name: any; need not be unique.
            dictionaries: the terms of each direction.

        Raises:
            UsageError: the name is empty or too long, or there is no dictionary.
            RegardError: a term is none; as :mod:`regard.text.terms` says.
            ServiceError: 413 a dictionary is too large, 456 the key has too many or too large ones.
        """
        if not dictionaries:
            raise UsageError("a glossary has one dictionary at least")
        rows, id = _rows(dictionaries), str(uuid4())
        with self._database.write() as connection:
            if value(connection, "SELECT count(*) FROM glossaries WHERE owner = ?", owner.id) >= GLOSSARIES:
                raise ServiceError(456, f"there are {GLOSSARIES:,} glossaries, the most; delete one")
            row = id, owner.id, _checked(name), time.time()
            connection.execute("INSERT INTO glossaries VALUES (?, ?, ?, ?)", row)
            _put(connection, owner, id, rows)
            return _get(connection, owner, id)

    def all(self, owner: Key) -> tuple[Glossary, ...]:
        """All of an owner, the oldest first."""
        with self._database.read() as connection:
            query = "SELECT id FROM glossaries WHERE owner = ? ORDER BY created, rowid"
            found = connection.execute(query, (owner.id,)).fetchall()
            return tuple(_get(connection, owner, id) for (id,) in found)

    def get(self, owner: Key, id: str) -> Glossary:
        """One of an owner.

        Raises:
            ServiceError: 404 there is none.
        """
        with self._database.read() as connection:
            return _get(connection, owner, id)

    def delete(self, owner: Key, id: str) -> None:
        """Delete a glossary.

        Raises:
            ServiceError: 404 there is none.
        """
        with self._database.write() as connection:
            _get(connection, owner, id)
            connection.execute("DELETE FROM glossaries WHERE id = ?", (id,))

    def merge(
        self, owner: Key, id: str, dictionaries: Mapping[tuple[str, str], Entries], name: str | None = None
    ) -> Glossary:
        """Add terms to a glossary, in place of those with the same source; and name it anew.

        Raises:
            RegardError: as :meth:`create`; a ServiceError 404: there is no such glossary.
        """
        with self._database.write() as connection:
            _get(connection, owner, id)
            whole = {pair: {**_entries(connection, id, pair), **new} for pair, new in _paired(dictionaries).items()}
            _put(connection, owner, id, _rows(whole))
            if name is not None:
                connection.execute("UPDATE glossaries SET name = ? WHERE id = ?", (_checked(name), id))
            return _get(connection, owner, id)

    def replace(self, owner: Key, id: str, source: str, target: str, entries: Entries) -> Dictionary:
        """Give a glossary a dictionary, in place of that of the same direction.

        Raises:
            RegardError: as :meth:`merge`.
        """
        ((pair, row),) = _rows({(source, target): entries}).items()
        with self._database.write() as connection:
            _get(connection, owner, id)
            _put(connection, owner, id, {pair: row})
        return Dictionary(*pair, len(entries))

    def delete_dictionary(self, owner: Key, id: str, source: str, target: str) -> None:
        """Delete a dictionary of a glossary.

        Raises:
            ServiceError: 404 there is no such glossary, or none of this direction in it.
        """
        with self._database.write() as connection:
            pair = _direction(_get(connection, owner, id), source, target)
            connection.execute("DELETE FROM dictionaries WHERE (glossary, source, target) = (?, ?, ?)", (id, *pair))

    def entries(self, owner: Key, id: str, source: str, target: str) -> dict[str, str]:
        """The terms of a dictionary, in their order.

        Raises:
            ServiceError: as :meth:`delete_dictionary`.
        """
        with self._database.read() as connection:
            return _entries(connection, id, _direction(_get(connection, owner, id), source, target))

    def terminology(self, owner: Key, ids: Sequence[str], source: str, target: str) -> Terminology:
        """The terms of glossaries for the search; of equal sources those of the last.

        Raises:
            ServiceError: 404 there is no such glossary, 400 one has nothing of this direction.
        """
        found, pair = list[bytes](), (primary(source), primary(target))
        with self._database.read() as connection:
            for id in ids:
                name = _get(connection, owner, id).name
                if (content := _content(connection, id, pair)) is None:
                    raise ServiceError(400, f"the glossary {name!r:.60} has no terms from {source} to {target}")
                found.append(content)
        return _terminology(tuple(found))


@lru_cache(maxsize=32)
def _terminology(contents: tuple[bytes, ...]) -> Terminology:
    """That of dictionaries; parsed once for many requests."""
    found = dict[str, str]()
    for content in contents:
        found |= json.loads(content)
    return Terminology(_terms(found))


def _checked(name: str) -> str:
    if not 0 < len(name.strip()) <= LONGEST:
        raise UsageError(f"the name of a glossary has 1 to {LONGEST:,} characters")
    return storable(name)


def _paired(dictionaries: Mapping[tuple[str, str], Entries]) -> dict[tuple[str, str], Entries]:
    """By languages without region and script."""
    found = {(primary(source), primary(target)): entries for (source, target), entries in dictionaries.items()}
    if len(found) < len(dictionaries):
        raise UsageError("a glossary has one dictionary of each direction")
    if (wrong := next((one for pair in found for one in pair if not _CODE.fullmatch(one)), None)) is not None:
        raise UsageError(f"{wrong!r:.40} is no code of a language, as en is")
    return found


def _rows(dictionaries: Mapping[tuple[str, str], Entries]) -> dict[tuple[str, str], tuple[int, bytes]]:
    """How many terms there are of each direction, and these as JSON."""
    found = dict[tuple[str, str], tuple[int, bytes]]()
    for pair, entries in _paired(dictionaries).items():
        if not entries:
            raise UsageError("a dictionary has one term at least")
        if len(entries) > ENTRIES or sum(map(len, entries)) + sum(map(len, entries.values())) > CHARACTERS:
            message = f"has {counted(len(entries), 'term')}; {ENTRIES:,} and {CHARACTERS:,} characters are the most"
            raise ServiceError(413, f"a dictionary {message}")
        _ = _terms(entries).entries
        found[pair] = len(entries), json.dumps(dict(entries)).encode()
    return found


def _terms(entries: Entries) -> TermList:
    """The same as the lines of a file; none begins with ``#``, which would say nothing there."""
    for one in (one for pair in entries.items() for one in pair):
        if "\t" in one or storable(one) != one:
            raise RegardError(f"the term {one!r:.60} has a character that is none of a text")
    return TermList(tuple(f" {source}\t{target}" for source, target in entries.items()), "entries")


def _put(
    connection: sqlite3.Connection, owner: Key, id: str, dictionaries: Mapping[tuple[str, str], tuple[int, bytes]]
) -> None:
    rows = [(id, *pair, *row) for pair, row in dictionaries.items()]
    connection.executemany("INSERT OR REPLACE INTO dictionaries VALUES (?, ?, ?, ?, ?)", rows)
    query = "SELECT sum(length(entries)) FROM glossaries JOIN dictionaries ON glossary = id WHERE owner = ?"
    if (value(connection, query, owner.id) or 0) > STORED:
        raise ServiceError(456, f"all glossaries have {STORED >> 20} MB at most; delete one")


def _get(connection: sqlite3.Connection, owner: Key, id: str) -> Glossary:
    query = "SELECT name, created FROM glossaries WHERE id = ? AND owner = ?"
    row = connection.execute(query, (storable(id), owner.id)).fetchone()
    if row is None:
        raise ServiceError(404, "there is no such glossary")
    name, created = row
    query = "SELECT source, target, count FROM dictionaries WHERE glossary = ? ORDER BY source, target"
    return Glossary(id, name, created, tuple(Dictionary(*one) for one in connection.execute(query, (id,))))


def _content(connection: sqlite3.Connection, id: str, pair: tuple[str, str]) -> bytes | None:
    query = "SELECT entries FROM dictionaries WHERE (glossary, source, target) = (?, ?, ?)"
    row = connection.execute(query, (id, *pair)).fetchone()
    return row and bytes(row[0])


def _entries(connection: sqlite3.Connection, id: str, pair: tuple[str, str]) -> dict[str, str]:
    found: dict[str, str] = json.loads(_content(connection, id, pair) or "{}")
    return found


def _direction(glossary: Glossary, source: str, target: str) -> tuple[str, str]:
    """The languages of a dictionary that a glossary has."""
    pair = primary(source), primary(target)
    if pair not in [(one.source, one.target) for one in glossary.dictionaries]:
        raise ServiceError(404, f"the glossary has no dictionary from {source!r:.20} to {target!r:.20}")
    return pair

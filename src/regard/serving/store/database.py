"""A file of SQLite that several threads and processes use: its format, short transactions, faults in sentences."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from queue import Empty, LifoQueue
from typing import Any

from regard.serving.core import ServiceError
from regard.system import disk
from regard.system.errors import RegardError
from regard.training.checkpoints.files import lock

NAME = "regard.sqlite"
"""Of the file, in the folder of what lasts."""
APPLICATION = 0x52474152
"""By which SQLite's header tells whose database it is."""
PATIENCE = 10.0
"""Seconds that a transaction waits for others."""
MIGRATIONS = (
    """
    CREATE TABLE keys (
        id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE, hash BLOB NOT NULL UNIQUE,
        characters INTEGER, created TEXT NOT NULL, used TEXT
    ) STRICT;
    INSERT INTO keys VALUES (0, '', x'', NULL, '', NULL);
    CREATE TABLE usage (
        key INTEGER NOT NULL REFERENCES keys ON DELETE CASCADE, month TEXT NOT NULL, characters INTEGER NOT NULL,
        PRIMARY KEY (key, month)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE glossaries (
        id TEXT PRIMARY KEY, owner INTEGER NOT NULL REFERENCES keys ON DELETE CASCADE,
        name TEXT NOT NULL, created REAL NOT NULL
    ) STRICT;
    CREATE INDEX glossaries_of_owners ON glossaries (owner, created);
    CREATE TABLE dictionaries (
        glossary TEXT NOT NULL REFERENCES glossaries ON DELETE CASCADE, source TEXT NOT NULL, target TEXT NOT NULL,
        count INTEGER NOT NULL, entries BLOB NOT NULL, PRIMARY KEY (glossary, source, target)
    ) STRICT;
    CREATE TABLE memory (
        owner INTEGER NOT NULL REFERENCES keys ON DELETE CASCADE, source TEXT NOT NULL, target TEXT NOT NULL,
        text TEXT NOT NULL, translation TEXT NOT NULL, PRIMARY KEY (owner, source, target, text)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE jobs (
        number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, secret BLOB NOT NULL,
        owner INTEGER NOT NULL REFERENCES keys ON DELETE CASCADE,
        name TEXT NOT NULL, kind TEXT NOT NULL, source TEXT, target TEXT NOT NULL, terms TEXT NOT NULL,
        status TEXT NOT NULL CHECK (status IN ('queued', 'translating', 'done', 'error')) DEFAULT 'queued',
        size INTEGER NOT NULL, done INTEGER NOT NULL DEFAULT 0, segments INTEGER NOT NULL DEFAULT 0,
        characters INTEGER NOT NULL DEFAULT 0, spent REAL NOT NULL DEFAULT 0, error TEXT,
        report TEXT NOT NULL DEFAULT '[]', created REAL NOT NULL, taken REAL, ended REAL,
        lease TEXT, beat REAL, crashes INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX jobs_of_owners ON jobs (owner, taken);
    CREATE INDEX jobs_in_work ON jobs (number) WHERE ended IS NULL;
    CREATE TABLE files (
        job INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,
        part TEXT NOT NULL CHECK (part IN ('content', 'result')), bytes BLOB NOT NULL, PRIMARY KEY (job, part)
    ) STRICT;
    CREATE TABLE answers (
        job INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE, segment INTEGER NOT NULL, answer TEXT NOT NULL,
        PRIMARY KEY (job, segment)
    ) STRICT, WITHOUT ROWID;
    """,
)
"""What brings a database from each format to the next; the number of the last is that of its format."""
_FAULTS = {
    sqlite3.SQLITE_BUSY: (503, "the database is busy"),
    sqlite3.SQLITE_LOCKED: (503, "the database is busy"),
    sqlite3.SQLITE_FULL: (507, "the server's disk is full"),
}


class Database:
    """Transactions on a file; each has a connection of its own, and begins by a look whether the file is still there.

    Args:
        path: of the file, which is made where there is none; ``None``: in memory, gone with this object.

    Raises:
        RegardError: it is no database of Regard, is damaged, is of a newer Regard, or cannot be opened.
    """

    def __init__(self, path: Path | None) -> None:
        self._path, self._open = path, True
        self._free = LifoQueue[sqlite3.Connection]()
        if path is None:
            self._free.put(self._prepare())
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            disk.refuse_irregular(path)
            with suppress(PermissionError):  # of another user, who lets this one use it
                path.chmod(0o600)
            with _alone(path.parent):
                self._free.put(self._prepare())
                self._file = path.stat()
        except OSError as error:
            raise RegardError(f"cannot be opened: {disk.reason(error)}", str(path)) from None
        except sqlite3.OperationalError as error:
            raise RegardError(f"cannot be opened: {error}", str(path)) from None
        except sqlite3.DatabaseError:
            raise RegardError("is damaged, or no database; move it away, or restore a copy", str(path)) from None

    def read(self) -> AbstractContextManager[sqlite3.Connection]:
        """What it holds at one moment.

        Raises:
            ServiceError: 503 it is busy, closed or gone, 507 the disk is full, 500 it is damaged.
        """
        return self._transaction("BEGIN")

    def write(self) -> AbstractContextManager[sqlite3.Connection]:
        """Changes, all of them or none; no other writes meanwhile.

        Raises:
            ServiceError: as :meth:`read`.
        """
        return self._transaction("BEGIN IMMEDIATE")

    def refuse_gone(self) -> None:
        """Raise a ServiceError (503) where it is closed, or another file or none has its path: all would be lost."""
        if not self._open:
            raise ServiceError(503, "the server ends")
        if self._path is not None:
            with suppress(OSError):
                if os.path.samestat(self._path.stat(), self._file):
                    return
            raise ServiceError(503, "the data folder was removed or replaced; start the server anew")

    def empty_log(self) -> None:
        """Write what is in SQLite's log into the file, so that nothing deleted is in either, unless somebody reads."""
        with self._connection() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close what is not in use, and the rest once it is not."""
        self._open = False
        with suppress(Empty):
            while True:
                self._free.get_nowait().close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._connection() as connection:
            try:
                connection.execute(begin)
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """One that nobody else uses meanwhile; faults become sentences."""
        try:
            connection = self._take()
            try:
                yield connection
            finally:
                self._free.put(connection)
                if not self._open:
                    self.close()
        except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
            raise
        except sqlite3.DatabaseError as error:
            status, sentence = _FAULTS.get(
                getattr(error, "sqlite_errorcode", 0) & 0xFF, (500, "the server's database has a fault")
            )
            raise ServiceError(status, sentence, 1 if status == 503 else None) from error

    def _take(self) -> sqlite3.Connection:
        self.refuse_gone()
        try:
            return self._free.get(self._path is None, PATIENCE)
        except Empty:
            if self._path is None:
                raise ServiceError(503, "the database is busy", 1) from None
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        where = ":memory:" if self._path is None else self._path
        made = sqlite3.connect(where, PATIENCE, isolation_level=None, check_same_thread=False)
        made.execute("PRAGMA foreign_keys = ON")
        made.execute("PRAGMA synchronous = NORMAL")
        made.execute("PRAGMA secure_delete = ON")
        made.execute("PRAGMA journal_size_limit = 16777216")
        return made

    def _prepare(self) -> sqlite3.Connection:
        """The first connection, behind which the file is whole, ours, and of the present format."""
        made = self._connect()
        try:
            tables = value(made, "SELECT count(*) FROM sqlite_master")
            own, version = value(made, "PRAGMA application_id"), value(made, "PRAGMA user_version")
            if (tables or version) and own != APPLICATION:
                raise RegardError("is the database of another program; name another folder", str(self._path))
            if version > (newest := len(MIGRATIONS)):
                message = f"is of a newer Regard (format {version}, this one knows {newest}); upgrade this one"
                raise RegardError(message, str(self._path))
            if value(made, "SELECT count(*) FROM pragma_quick_check(1) WHERE quick_check != 'ok'"):
                raise sqlite3.DatabaseError
            made.execute("PRAGMA journal_mode = WAL")
            header = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {newest};"
            if version < newest:
                made.executescript(f"BEGIN IMMEDIATE; {''.join(MIGRATIONS[version:])} {header} COMMIT;")
        except BaseException:
            made.close()
            raise
        return made


def hash_of(secret: str) -> bytes:
    """What is stored of a secret, which is long and random, and by which it is found."""
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def storable(text: str) -> str:
    """A text without halves of characters, which UTF-8 has not: a ``?`` for each."""
    return text.encode("utf-8", "replace").decode()


def value(connection: sqlite3.Connection, query: str, *given: object) -> Any:
    """The one value that a query finds."""
    with closing(connection.execute(query, given)) as found:
        return found.fetchone()[0]


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Within, no other process prepares the database of a folder: to begin a WAL waits for nobody."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        lock(handle, wait=True)
        yield
    finally:
        os.close(handle)

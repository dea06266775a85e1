"""Documents that are translated behind the clients' backs: who works on which, and what is translated of each."""

from __future__ import annotations

import json
import math
import secrets
import sqlite3
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from uuid import uuid4

from regard.documents.kinds import KINDS, kind_of
from regard.serving.core import DocumentRequest, Job, JobName, JobStatus, Key, ServiceError
from regard.serving.store.database import Database, hash_of, storable, value
from regard.serving.store.usage import count
from regard.system.errors import UsageError
from regard.tasks.text.terms import Terminology
from regard.text.counts import counted
from regard.text.terms import TermList

LARGEST = 32 << 20
"""Bytes of a document at most."""
QUEUED = 100
"""Documents of a key at most that are not done."""
STORED = 1 << 30
"""Bytes of all documents at most; where there are keys, those of one have half of it at most."""
KEPT = 86_400.0
"""Seconds after its end when a document is deleted."""
CRASHES = 9
"""Failures without progress after which a document is given up."""
DEATH = 3
"""Failures as which the death of a process counts: each may be that of the whole server."""
LONGEST = 200
"""Characters of a file's name at most."""
_UNDER_LEASE = "UPDATE jobs SET {} WHERE number = ? AND lease = ?"


class LeaseLost(Exception):
    """A document was deleted, or is another runner's by now."""


@dataclass(frozen=True, eq=False)
class Lease:
    """The right to work on a document, as long as it is renewed.

    Args:
        number: of the document.
        id: of the lease.
        request: with its kind.
        key: of the owner.
        done: segments that have an answer.
        segments: how many there are; 0 before it was read. ``characters``: of these.
        crashes: failures since the last answer; as if this runner died too.
    """

    number: int
    id: str
    request: DocumentRequest
    key: Key
    done: int
    segments: int
    characters: int
    crashes: int


class Jobs:
    """The documents of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, request: DocumentRequest, key: Key) -> JobName:
        """Take a document in.

        Raises:
            UsageError: its kind is not known.
            ServiceError: 413 it is too large, 429 too many wait, or there is no room.
        """
        name = _file_name(request.name)
        kind = request.kind or kind_of(PurePath(name))
        if kind not in KINDS:
            raise UsageError(f"{kind or name!r:.60} is no kind of document; there are {', '.join(KINDS)}")
        if (size := len(request.content)) > LARGEST:
            raise ServiceError(413, f"the document has {size:,} bytes; {LARGEST:,} are the most")
        made = JobName(uuid4().hex, secrets.token_urlsafe(32))
        languages = request.source and storable(request.source), storable(request.target)
        row = made.id, hash_of(made.secret), key.id, name, kind, *languages, _dumped(request.terms), size, time.time()
        with self._database.write() as connection:
            if value(connection, "SELECT count(*) FROM jobs WHERE owner = ? AND ended IS NULL", key.id) >= QUEUED:
                raise ServiceError(429, f"{counted(QUEUED, 'document')} of this key wait; try again later", 60)
            query = """
                SELECT ifnull(sum(size), 0), ifnull(sum(size) FILTER (WHERE owner = ?), 0),
                EXISTS (SELECT 1 FROM keys WHERE id > 0) FROM jobs
            """
            stored, own, shared = connection.execute(query, (key.id,)).fetchone()
            if shared and own + size > STORED // 2:
                most = f"the documents of one key have {STORED >> 21} MiB at most, half of the room there is"
                raise ServiceError(429, f"{most}; delete some, or try again later", 600)
            if stored + size > STORED:
                raise ServiceError(429, "there is no room for further documents; try again later", 600)
            columns = "id, secret, owner, name, kind, source, target, terms, size, created"
            query = f"INSERT INTO jobs ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            number = connection.execute(query, row).lastrowid
            connection.execute("INSERT INTO files VALUES (?, 'content', ?)", (number, request.content))
        return made

    def find(self, name: JobName) -> Job:
        """What became of a document.

        Raises:
            ServiceError: 404 there is none of this name and secret.
        """
        with self._database.read() as connection:
            return _find(connection, name)[1]

    def result(self, name: JobName) -> bytes:
        """The translated document.

        Raises:
            ServiceError: 404 there is none, 503 it is not ready, 409 it could not be translated.
        """
        with self._database.read() as connection:
            number, job = _find(connection, name)
            if job.error is not None:
                raise ServiceError(409, job.error)
            if job.status != "done":
                raise ServiceError(503, "the document is not translated yet", min(max(job.seconds or 1, 1), 60))
            return _bytes(connection, number, "result")

    def delete(self, name: JobName) -> int:
        """Delete a document, whatever became of it; its number.

        Raises:
            ServiceError: 404 there is none.
        """
        with self._database.write() as connection:
            number, _ = _find(connection, name)
            connection.execute("DELETE FROM jobs WHERE number = ?", (number,))
        self._database.empty_log()
        return number

    def counts(self) -> dict[str, int]:
        """How many documents have each status."""
        with self._database.read() as connection:
            return dict(connection.execute("SELECT status, count(*) FROM jobs GROUP BY status").fetchall())

    def waits(self, seconds: float) -> bool:
        """Whether there is a document to take; ``seconds`` as for :meth:`take`."""
        with self._database.read() as connection:
            return _next(connection, seconds) is not None

    def take(self, seconds: float) -> Lease | None:
        """The document that is next: of the owner whose turn was longest ago.

        Args:
            seconds: for which a lease holds that is not renewed.
        """
        if not self.waits(seconds):
            return None
        with self._database.write() as connection:
            while number := _next(connection, seconds):
                id, now = secrets.token_hex(8), time.time()
                query = """
                    UPDATE jobs SET lease = ?, beat = ?, taken = ?, status = 'translating', crashes = crashes + ?
                    WHERE number = ?
                    RETURNING name, kind, source, target, terms, owner, done, segments, characters, crashes
                """
                row = connection.execute(query, (id, now, now, DEATH, number)).fetchone()
                name, kind, source, target, terms, owner, done, segments, characters, crashes = row
                if crashes > CRASHES:
                    _end(connection, number, "error", error="the server failed again and again at this document")
                    continue
                content = _bytes(connection, number, "content")
                request = DocumentRequest(name, content, target, source, kind, _loaded(terms))
                row = connection.execute("SELECT id, name, characters FROM keys WHERE id = ?", (owner,)).fetchone()
                return Lease(number, id, request, Key(*row), done, segments, characters, crashes)
        return None

    def begin(self, lease: Lease, segments: int, characters: int, source: str | None) -> None:
        """Note the size and the language of a document that was read, none of it translated.

        Raises:
            LeaseLost: it is no longer this runner's.
        """
        with self._database.write() as connection:
            change = "segments = ?, characters = ?, source = ?, done = 0"
            _update(connection, lease, change, segments, characters, source)
            connection.execute("DELETE FROM answers WHERE job = ?", (lease.number,))

    def add(self, lease: Lease, first: int, answers: Sequence[str], seconds: float) -> None:
        """Write answers, all of them or none.

        Args:
            lease: of the document.
            first: the segment of the first of them; those before have theirs.
            answers: as JSON.
            seconds: that they took.

        Raises:
            LeaseLost: it is no longer this runner's.
        """
        with self._database.write() as connection:
            change = "done = done + ?, size = size + ?, spent = spent + ?, crashes = 0"
            _update(connection, lease, change, len(answers), sum(map(len, answers)), seconds)
            rows = [(lease.number, number, answer) for number, answer in enumerate(answers, first)]
            connection.executemany("INSERT INTO answers VALUES (?, ?, ?)", rows)

    def answers(self, lease: Lease) -> list[str]:
        """All that was written, in the order of the segments."""
        with self._database.read() as connection:
            query = "SELECT answer FROM answers WHERE job = ? ORDER BY segment"
            return [answer for (answer,) in connection.execute(query, (lease.number,))]

    def finish(self, lease: Lease, result: bytes, report: Sequence[str]) -> None:
        """Store the translation; its characters count as used.

        Raises:
            LeaseLost: it is no longer this runner's.
        """
        with self._database.write() as connection:
            _update(connection, lease, "size = ?, report = ?", len(result), json.dumps(list(report)))
            characters = value(connection, "SELECT characters FROM jobs WHERE number = ?", lease.number)
            count(connection, lease.key.id, characters)
            _end(connection, lease.number, "done")
            connection.execute("INSERT INTO files VALUES (?, 'result', ?)", (lease.number, result))

    def fail(self, lease: Lease, error: str) -> None:
        """Say why a document cannot be translated.

        Raises:
            LeaseLost: it is no longer this runner's.
        """
        with self._database.write() as connection:
            _update(connection, lease, "size = 0")
            _end(connection, lease.number, "error", storable(error))

    def release(self, lease: Lease, crashed: bool = False) -> None:
        """Let others go on with a document; ``crashed``: it failed."""
        with self._database.write() as connection:
            query = _UNDER_LEASE.format("lease = NULL, crashes = max(crashes - ?, 0)")
            connection.execute(query, (DEATH - crashed, lease.number, lease.id))

    def renew(self, leases: Iterable[Lease]) -> None:
        """Say that these documents are worked on."""
        with self._database.write() as connection:
            for one in leases:
                connection.execute(_UNDER_LEASE.format("beat = ?"), (time.time(), one.number, one.id))

    def expire(self, now: float) -> None:
        """Delete what ended a day before ``now``, in seconds since 1970."""
        with self._database.write() as connection:
            some = connection.execute("DELETE FROM jobs WHERE ended < ?", (now - KEPT,)).rowcount
        if some:
            self._database.empty_log()


def _next(connection: sqlite3.Connection, seconds: float) -> int | None:
    """A document that nobody works on."""
    query = """
        SELECT number FROM jobs WHERE ended IS NULL AND (lease IS NULL OR beat NOT BETWEEN ? AND ?)
        ORDER BY (SELECT max(taken) FROM jobs AS others WHERE others.owner = jobs.owner),
        ifnull(taken, created), number LIMIT 1
    """
    now = time.time()
    row = connection.execute(query, (now - seconds, now + seconds)).fetchone()
    return row and int(row[0])


def _find(connection: sqlite3.Connection, name: JobName) -> tuple[int, Job]:
    query = """
        SELECT number, status, name, target, done, segments, characters, spent, error, report
        FROM jobs WHERE id = ? AND secret = ?
    """
    row = connection.execute(query, (storable(name.id), hash_of(name.secret))).fetchone()
    if row is None:
        raise ServiceError(404, "there is no such document")
    number, status, file, target, done, segments, characters, spent, error, report = row
    seconds = 0 if status == "done" else math.ceil(spent / done * (segments - done)) if done else None
    offered = _file_name(f"{PurePath(file).stem[: LONGEST - 40]}.{target}{PurePath(file).suffix}")
    return number, Job(status, offered, done, segments, characters, seconds, error, tuple(json.loads(report)))


def _update(connection: sqlite3.Connection, lease: Lease, change: str, *values: float | str | None) -> None:
    values = time.time(), *values, lease.number, lease.id
    if not connection.execute(_UNDER_LEASE.format(f"beat = ?, {change}"), values).rowcount:
        raise LeaseLost


def _end(connection: sqlite3.Connection, number: int, status: JobStatus, error: str | None = None) -> None:
    """What the document was, and what was translated of it, is no longer needed."""
    query = "UPDATE jobs SET status = ?, error = ?, ended = ?, lease = NULL WHERE number = ?"
    connection.execute(query, (status, error, time.time(), number))
    connection.execute("DELETE FROM files WHERE job = ?", (number,))
    connection.execute("DELETE FROM answers WHERE job = ?", (number,))


def _bytes(connection: sqlite3.Connection, number: int, part: str) -> bytes:
    return bytes(value(connection, "SELECT bytes FROM files WHERE job = ? AND part = ?", number, part))


def _file_name(name: str) -> str:
    """The last part of a path, of characters that can be seen; its ending stays."""
    seen = "".join(one for one in storable(name).replace("\\", "/") if one.isprintable())
    last = PurePath(PurePath(seen).name or "document")
    return f"{last.stem[: LONGEST - len(last.suffix[:20])]}{last.suffix[:20]}"


def _dumped(terms: Terminology | None) -> str:
    return json.dumps(terms and [terms.terms.lines, terms.protect, terms.forbidden])


def _loaded(terms: str) -> Terminology | None:
    if (found := json.loads(terms)) is None:
        return None
    lines, protect, forbidden = found
    return Terminology(TermList(tuple(lines)), protect, tuple(forbidden))

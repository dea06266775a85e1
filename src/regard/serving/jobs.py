"""Documents are translated by threads of the server, a few segments at a time; whoever comes next goes on there."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import accumulate
from threading import Event, Lock, Semaphore, Thread

from regard.documents.kinds import read_document
from regard.documents.segment import Segment
from regard.documents.translate import SegmentAnswer, report, write_document
from regard.serving.core import NO_KEY, Call, CallEnded, DocumentRequest, JobName, Key, ServiceError, describe_fault
from regard.serving.store import Store
from regard.serving.store.jobs import DEATH, LARGEST, Lease, LeaseLost
from regard.system.errors import RegardError

CHUNK = 128
"""Segments that are translated and written together, at most."""
CHUNK_CHARACTERS = 1 << 16
"""Characters of these: another segment is added while there are fewer."""
SEGMENTS = 100_000
"""Of a document at most."""
LONGEST_SEGMENT = 1 << 20
"""Characters of a segment at most."""
TURN = 10.0
"""Seconds after which a document lets another one go on."""
PAUSE = 1.0
"""Seconds between two looks for documents of other processes."""
HOUSEKEEPING = 60.0
"""Seconds between two looks for documents to delete."""
LONGEST_PAUSE = 30.0
"""Seconds, after failures, at most."""
TEMPORARY = (429, 503, 504, 507)
"""Statuses of errors after which the same may succeed."""
Translate = Callable[[DocumentRequest, Sequence[Segment], Call], list[SegmentAnswer]]
"""Translates some segments of a document, and returns when it has."""
Guess = Callable[[str, DocumentRequest], str]
"""The language of the beginning of a document, whose request names none."""
GUESSED = 4000
"""Characters of that beginning at most."""
_LOG = logging.getLogger(__name__)


class JobRunner:
    """Translates the documents of a store; several processes may do so for one folder.

    Whatever is translated is written at once. A document whose process was killed is taken over by another, or by the
    next one, when its lease was not renewed for a while; it goes on at the first segment without an answer.

    Args:
        store: that has the documents.
        translate: the translation of segments.
        guess: the language of documents that are in one which their request does not name; default: that is left to
            ``translate``, for each chunk.
        threads: documents that are translated at once.
        lease: seconds after which a document of a silent process is taken over.
    """

    def __init__(
        self, store: Store, translate: Translate, guess: Guess | None = None, threads: int = 2, lease: float = 15.0
    ) -> None:
        self._store, self._jobs, self._translate, self._guess = store, store.jobs, translate, guess
        self._seconds = lease
        self._calls, self._lock = dict[Lease, Call](), Lock()
        self._ends, self._come = Event(), Semaphore(0)
        self._workers = [Thread(target=self._run, name=f"documents-{n}", daemon=True) for n in range(threads)]
        self._housekeeper = Thread(target=self._keep_house, name="documents", daemon=True)

    def put(self, request: DocumentRequest, key: Key = NO_KEY) -> JobName:
        """Take a document in.

        Raises:
            UsageError: its kind is not known.
            ServiceError: 413 it is too large, 429 too many wait, 503 the server ends.
        """
        if self._ends.is_set():
            raise ServiceError(503, "the server ends")
        name = self._jobs.put(request, key)
        self._come.release()
        return name

    def delete(self, name: JobName) -> None:
        """Delete a document; if it is being translated, that ends.

        Raises:
            ServiceError: 404 there is none.
        """
        number = self._jobs.delete(name)
        with self._lock:
            for lease, call in self._calls.items():
                if lease.number == number:
                    call.leave()

    def start(self) -> None:
        """Begin, or go on with what was begun."""
        for thread in (*self._workers, self._housekeeper):
            thread.start()

    def end(self, seconds: float) -> None:
        """End: what is being translated is written, the rest waits for the next start.

        Args:
            seconds: to wait for it; what then is not ready is not written.
        """
        until, running = time.monotonic() + seconds, [one for one in self._workers if one.is_alive()]
        self._ends.set()
        self._come.release(len(self._workers))
        for thread in running:
            thread.join(max(until - time.monotonic(), 0))
        with self._lock:
            for call in self._calls.values():
                call.leave()
        for thread in (*running, self._housekeeper) if running else ():
            thread.join(PAUSE)

    def _run(self) -> None:
        """What a worker does until the end."""
        while not self._ends.is_set():
            try:
                lease = self._jobs.take(self._seconds)
                if lease:
                    self._work(lease)
                else:
                    self._come.acquire(timeout=PAUSE)
            except Exception as error:
                _tell(error)
                gone = isinstance(error, ServiceError) and not error.retry_after
                self._ends.wait(LONGEST_PAUSE if gone else PAUSE)

    def _work(self, lease: Lease) -> None:
        """Go on with a document until it is done, its turn is over, or something goes wrong."""
        pause = 0.0
        failure: str | None = None
        call = Call(lease.key, f"key {lease.key.name}" if lease.key.id else "documents")
        with self._lock:
            self._calls[lease] = call  # its lease is renewed meanwhile
        try:
            self._go_on(lease, call)
        except (CallEnded, LeaseLost):
            pass
        except RegardError as error:
            if isinstance(error, ServiceError) and error.status in TEMPORARY:
                pause = min(max(error.retry_after or 0, 2.0 ** (lease.crashes - DEATH)), LONGEST_PAUSE)
            else:
                failure = str(error)
        except Exception as error:
            _tell(error)
            failure = "the server has a fault, so that the document could not be translated"
        finally:
            with self._lock:
                del self._calls[lease]
        if failure is not None:
            with suppress(LeaseLost):
                self._jobs.fail(lease, failure)
        self._jobs.release(lease, crashed=pause > 0)
        self._ends.wait(pause)

    def _go_on(self, lease: Lease, call: Call) -> None:
        request, done = lease.request, lease.done
        document = read_document(request.content, request.kind or "", request.name, LARGEST)
        segments, begun = document.segments, time.monotonic()
        _refuse_large(segments)
        if len(segments) != lease.segments:
            characters, done = sum(len(one.text) for one in segments), 0
            if request.source is None and self._guess:
                text = " ".join(one.text for one in segments[:GUESSED])[:GUESSED]
                request = replace(request, source=self._guess(text, request))
            with self._store.usage.reserve(lease.key, characters - lease.characters):  # which its row does from then on
                self._jobs.begin(lease, len(segments), characters, request.source)
        first = done
        while first < len(segments):
            passed = time.monotonic() - begun
            if first > done and (self._ends.is_set() or (passed > TURN and self._jobs.waits(self._seconds))):
                return
            now = time.monotonic()
            answers = self._translate(request, _chunk(segments, first), call)
            lines = [json.dumps(asdict(one)) for one in answers]
            self._jobs.add(lease, first, lines, time.monotonic() - now)
            first += len(lines)
        found = list(map(SegmentAnswer.read, self._jobs.answers(lease)))
        self._jobs.finish(lease, write_document(document, found, request.name), list(report(segments, found)))

    def _keep_house(self) -> None:
        """Renew the leases of what is worked on; delete what is old."""
        swept = float("-inf")
        while any(thread.is_alive() for thread in self._workers):
            try:
                with self._lock:
                    leases = list(self._calls)
                if leases:
                    self._jobs.renew(leases)
                if time.monotonic() - swept > HOUSEKEEPING:
                    self._jobs.expire(time.time())
                    swept = time.monotonic()
            except Exception as error:
                _tell(error)
            for thread in self._workers:
                thread.join(self._seconds / 5 / len(self._workers))


def _refuse_large(segments: Sequence[Segment]) -> None:
    """Refuse a document whose translation would take more memory than others leave."""
    if len(segments) > SEGMENTS:
        raise ServiceError(413, f"the document has {len(segments):,} segments; {SEGMENTS:,} are the most; divide it")
    if long := next((one for one in segments if len(one.text) > LONGEST_SEGMENT), None):
        found = f"{long.where or 'the text'} begins a segment of {len(long.text):,} characters"
        raise ServiceError(413, f"{found}; {LONGEST_SEGMENT:,} are the most; put empty lines between paragraphs")


def _chunk(segments: Sequence[Segment], first: int) -> Sequence[Segment]:
    """The segments that are translated next."""
    sizes = accumulate(len(one.text) for one in segments[first : first + CHUNK - 1])
    return segments[first : first + 1 + sum(size < CHUNK_CHARACTERS for size in sizes)]


def _tell(error: Exception) -> None:
    """Log a fault; what the store says of itself is no text of a document."""
    _LOG.error("a document met a fault: %s", error if isinstance(error, ServiceError) else describe_fault(error))

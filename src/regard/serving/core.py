"""What every interface asks for and gets: typed and checked, free of HTTP."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import Literal, Protocol

from regard.documents.segment import Place
from regard.system.errors import RegardError
from regard.tasks.text.terms import Terminology

Markup = Literal["text", "html", "xml", "numbered"]
JobStatus = Literal["queued", "translating", "done", "error"]


class ServiceError(RegardError):
    """Something that is refused, or that did not succeed.

    Args:
        status: HTTP's number for it.
        message: the sentence.
        retry_after: seconds after which asking again may succeed.
    """

    def __init__(self, status: int, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.status, self.retry_after = status, retry_after


class StaleModel(ServiceError):
    """The folder of a model has changed since a call has begun with it; beginning again may succeed."""


class CallEnded(Exception):
    """The client of a call has left, or its deadline has passed."""


def describe_fault(error: BaseException) -> str:
    """For a log: where an error came from and its kind; its message may have a client's text."""
    return "".join(traceback.format_tb(error.__traceback__)) + type(error).__name__


@dataclass(frozen=True)
class Key:
    """A key that was made for a client.

    Args:
        id: its number; 0: no key.
        name: by which it is listed and revoked.
        characters: that it may have translated in a month; ``None``: any number.
    """

    id: int = 0
    name: str = ""
    characters: int | None = None


NO_KEY = Key()


@dataclass(eq=False)
class Call:
    """A request that is being answered.

    Args:
        key: of the client.
        client: with whom it shares fairly: the key's name, else the address.
        deadline: on :func:`time.monotonic`'s clock.
        left: set when nobody waits for the answer any more.
    """

    key: Key = NO_KEY
    client: str = ""
    deadline: float = float("inf")
    left: Event = field(default_factory=Event)
    _watchers: set[Callable[[], None]] = field(default_factory=set)

    def leave(self) -> None:
        """Nobody waits for the answer any more."""
        self.left.set()
        for then in self._watchers.copy():
            then()

    @contextmanager
    def watch(self, then: Callable[[], None]) -> Iterator[None]:
        """While the context is open, a client that leaves is told of; perhaps twice."""
        self._watchers.add(then)
        try:
            if self.left.is_set():
                then()
            yield
        finally:
            self._watchers.discard(then)

    def check(self) -> None:
        """Raise a CallEnded if nobody waits, and a ServiceError (504) if it is late."""
        if self.left.is_set():
            raise CallEnded
        if time.monotonic() > self.deadline:
            raise ServiceError(504, "the answer took longer than its time limit")


@dataclass(frozen=True)
class TranslationRequest:
    """Texts to translate.

    Args:
        texts: any; an empty one stays empty.
        target: code of the language to write.
        source: code of the language of the texts; ``None``: guessed for each.
        markup: what tags of the texts are: text, or HTML's, or any XML's; or those in text that end in a number, as
            ``<b0>``, are tags and all else is text.
        ignore_tags: elements whose content is kept.
        splitting_tags: elements that divide the text into segments.
        non_splitting_tags: elements that do not.
        outline: whether elements of XML beside which no text stands divide it, too.
        alternatives: other translations of each text.
        beam: hypotheses kept while searching; default: the model's.
        terms: what translations contain; default: that of the model folder.
        prefixes: what the translation of each text begins with; none: nothing is prescribed.
        split: whether sentences are translated one by one; else a text is one.
        details: whether sentences, words, links and the guard are wanted.
        memory: whether texts and sentences that the client's memory has are taken from there.
    """

    texts: tuple[str, ...]
    target: str
    source: str | None = None
    markup: Markup = "text"
    ignore_tags: frozenset[str] = frozenset()
    splitting_tags: frozenset[str] = frozenset()
    non_splitting_tags: frozenset[str] = frozenset()
    outline: bool = True
    alternatives: int = 0
    beam: int | None = None
    terms: Terminology | None = None
    prefixes: tuple[str, ...] = ()
    split: bool = True
    details: bool = False
    memory: bool = False


@dataclass(frozen=True)
class WordDetail:
    """A word of a translation.

    Args:
        begin, end: its characters in the translation of the text.
        confidence: 0 to 1.
    """

    begin: int
    end: int
    confidence: float


@dataclass(frozen=True)
class SentenceDetail:
    """A sentence of a text and its translation.

    Args:
        source, target: its characters in the text and in the translation.
        words: of the translation.
        source_words: characters of the words of the text; links count these and ``target_words`` from 0.
        target_words: characters of the words (between blanks) of the translation.
        links: which words belong together, by attention.
        weights: for each target word how much it attended to each source word, 0 to 1.
        confidence: of the sentence; ``unsure``: less than usual on the validation texts, where that is known.
        warning: what the guard says against it, else empty.
    """

    source: Place
    target: Place
    words: tuple[WordDetail, ...] = ()
    source_words: tuple[Place, ...] = ()
    target_words: tuple[Place, ...] = ()
    links: tuple[tuple[int, int], ...] = ()
    weights: tuple[tuple[float, ...], ...] = ()
    confidence: float | None = None
    unsure: bool | None = None
    warning: str = ""


@dataclass(frozen=True)
class TextTranslation:
    """The translation of a text.

    Args:
        text: with tags where the request had them.
        source: the language of the text, given or guessed.
        guessed: how probable a guess is, 0 to 1; ``None`` where it was given.
        through: the language in between, where no model translates directly.
        alternatives: other translations, best first.
        sentences: where details were asked for.
        warnings: of the search and the guard.
    """

    text: str
    source: str
    guessed: float | None = None
    through: str | None = None
    alternatives: tuple[str, ...] = ()
    sentences: tuple[SentenceDetail, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class ServedLanguage:
    """A language that can be translated from, into which others, and into which of these by one model."""

    code: str
    name: str
    targets: tuple[str, ...]
    direct: tuple[str, ...] = ()


@dataclass(frozen=True)
class LanguageGuess:
    """A language of a text, and how probable it is, 0 to 1."""

    language: str
    confidence: float


@dataclass(frozen=True)
class DocumentRequest:
    """A document to translate.

    Args:
        name: of the file; its ending says the kind, unless ``kind`` does.
        content: its bytes.
        target, source: languages; the source is guessed where it is ``None``.
        kind: one of :data:`regard.documents.kinds.KINDS`.
        terms: what the translation contains.
    """

    name: str
    content: bytes
    target: str
    source: str | None = None
    kind: str | None = None
    terms: Terminology | None = None


@dataclass(frozen=True)
class JobName:
    """By which a client finds its document again; who has not the secret sees nothing."""

    id: str
    secret: str


@dataclass(frozen=True)
class Job:
    """What became of a document so far.

    Args:
        status: as DeepL names it.
        name: of the file that the result is offered as.
        done, segments: how many are translated, of how many; 0 of 0 before it was read.
        characters: of its text.
        seconds: until it is done, about; ``None`` where nothing is known.
        error: the sentence, where it failed.
        report: what became of its segments, in sentences.
    """

    status: JobStatus
    name: str
    done: int = 0
    segments: int = 0
    characters: int = 0
    seconds: int | None = None
    error: str | None = None
    report: tuple[str, ...] = ()


class Service(Protocol):
    """What all interfaces call. Everything may raise a RegardError (400) or a ServiceError."""

    def admit(self, secret: str | None, client: str) -> Call:
        """The call of a client with this key, or none.

        Raises:
            ServiceError: 401 where a key is needed, 403 where it is none, 503 while the server ends.
        """

    async def translate(self, request: TranslationRequest, call: Call) -> list[TextTranslation]:
        """The translation of each text, in their order."""

    def languages(self) -> list[ServedLanguage]:
        """What can be translated from, and into what; pivoting counts."""

    async def detect(self, text: str, call: Call) -> list[LanguageGuess]:
        """The languages that a text may be in, best first."""

    async def put_document(self, request: DocumentRequest, call: Call) -> JobName:
        """Take a document; it is translated whether the client stays or not."""

    async def job(self, name: JobName, call: Call) -> Job:
        """What became of it.

        Raises:
            ServiceError: 404 where there is none of this name and secret.
        """

    async def document(self, name: JobName, call: Call) -> bytes:
        """The translated document.

        Raises:
            ServiceError: 404 where there is none, 503 where it is not ready.
        """

    def usage(self, call: Call) -> tuple[int, int | None]:
        """Characters that the key had translated this month, and how many it may."""

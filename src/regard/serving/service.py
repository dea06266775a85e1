"""The service that every interface calls: admits, divides work among threads, and ends it when nobody waits."""

from __future__ import annotations

import asyncio
import contextvars
import math
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from regard.serving.admission import Admission
from regard.serving.answers import Answers, GenerateRequest
from regard.serving.core import (
    NO_KEY,
    Call,
    DocumentRequest,
    Job,
    JobName,
    LanguageGuess,
    ServedLanguage,
    ServiceError,
    StaleModel,
    TextTranslation,
    TranslationRequest,
)
from regard.serving.jobs import JobRunner
from regard.serving.languages import guess_languages
from regard.serving.models import ServedModels
from regard.serving.search.request import CALL, SharedSearch
from regard.serving.store import Store
from regard.serving.store.memory import ClientMemory
from regard.serving.translate import Translator
from regard.system.errors import collect_notices
from regard.system.processor import trim_memory

T = TypeVar("T")
F = TypeVar("F", bound=BaseModel)
SWEEP = 5.0
"""Seconds between two looks at what is idle, and at memory."""
END = object()
LINE = 4
"""Characters that take as long as what a line takes whatever is in it."""
STREAMED = 16
"""Texts of a stream that are translated at once: each takes a thread, of which others need some."""


@dataclass(frozen=True)
class Limits:
    """What a server allows.

    Args:
        seconds: of a call, unless the client asks for fewer.
        waiting: seconds of work that is accepted beyond what runs; at most a third of those of a call.
        calls: at once.
        texts: of a call; ``characters`` of one text, and ``call_characters`` of all.
        alternatives, beam: at most.
    """

    seconds: float = 60.0
    waiting: float = 20.0
    calls: int = 256
    texts: int = 1024
    characters: int = 20_000
    call_characters: int = 100_000
    alternatives: int = 5
    beam: int = 16


class TranslationService:
    """Implements :class:`regard.serving.core.Service`.

    Args:
        models: that are served.
        store: what lasts.
        searching: that all calls share.
        needs_key: nobody without a key is answered.
        limits: of calls.
    """

    def __init__(
        self,
        models: ServedModels,
        store: Store,
        searching: SharedSearch,
        needs_key: bool = False,
        limits: Limits | None = None,
    ) -> None:
        self.models, self.store, self.needs_key, self.limits = models, store, needs_key, limits or Limits()
        self.searching = searching
        self.admission = Admission(min(self.limits.waiting, self.limits.seconds / 3), self.limits.calls)
        self._translator = Translator(models, self.searching, store.memory)
        self.answers = Answers(self._translator)
        self._pool = ThreadPoolExecutor(self.limits.calls, "call")
        self.jobs = JobRunner(store, self._translator.segments, self._translator.guess)
        self._ended = threading.Event()
        self._sweeper = threading.Thread(target=self._sweep, daemon=True)

    def start(self) -> None:
        """Go on with documents, and look after idle models."""
        self.jobs.start()
        self._sweeper.start()
        threading.Thread(target=guess_languages, args=("a", ["en"]), daemon=True).start()  # loads what it reads

    def refuse_new(self) -> None:
        """From now on nothing new is accepted."""
        self.admission.ending = True

    def end(self, seconds: float = 60.0) -> None:
        """Let calls end for so long, then end them; documents go on when the server starts again."""
        self.refuse_new()
        until = time.monotonic() + seconds
        while self.admission.calls and time.monotonic() < until:
            time.sleep(0.05)
        self._ended.set()
        self.jobs.end(max(min(seconds, 1.0), until - time.monotonic()))
        self.searching.end()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self.store.close()

    def admit(self, secret: str | None, client: str) -> Call:
        """As :class:`regard.serving.core.Service` has it."""
        self.admission.refuse_ending()
        key = NO_KEY
        if secret:
            found = self.store.keys.find(secret)
            if found is None and (self.needs_key or self.store.keys.needed):
                raise ServiceError(403, "this is no key of the server")
            key = found or NO_KEY
        elif self.needs_key:
            raise ServiceError(401, "a key is needed")
        return Call(key, f"key {key.name}" if key.id else client, time.monotonic() + self.limits.seconds)

    async def translate(self, request: TranslationRequest, call: Call) -> list[TextTranslation]:
        """As the protocol has it."""
        with self._enter(request, call) as count:
            found = await self._work(call, lambda: self._translator.translate(request))
            count(sum(map(len, request.texts)))
        return found

    async def stream(
        self, request: TranslationRequest, call: Call
    ) -> AsyncGenerator[tuple[int, TextTranslation], None]:
        """The number of each text and its translation, as they are ready."""
        with self._enter(request, call) as count:
            some = asyncio.Semaphore(STREAMED)

            async def one(place: int) -> tuple[int, TextTranslation]:
                prefixes = request.prefixes[place : place + 1]
                own = replace(request, texts=request.texts[place : place + 1], prefixes=prefixes)
                async with some:
                    [found] = await self._work(call, lambda: self._translator.translate(own))
                count(len(own.texts[0]))
                return place, found

            tasks = [asyncio.ensure_future(one(place)) for place in range(len(request.texts))]
            try:
                for ready in asyncio.as_completed(tasks):
                    yield await ready
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    def languages(self) -> list[ServedLanguage]:
        """As the protocol has it."""
        return self.models.languages()

    async def detect(self, text: str, call: Call) -> list[LanguageGuess]:
        """As the protocol has it; among all languages that are read or written."""
        some = [code for one in self.languages() for code in (one.code, *one.targets)]
        return await self._work(call, lambda: guess_languages(text, list(dict.fromkeys(some))))

    async def model_answer(self, name: str, asked: Mapping[str, Any], call: Call) -> Any:
        """What one model says; ``name``: one of :attr:`regard.serving.answers.Answers.kinds`.

        Raises:
            ServiceError: a field is wrong (400).
        """
        fields, answer = self.answers.kinds[name]
        found = self.check(fields, asked)
        self._refuse_over(found.characters)

        def in_time() -> Any:
            said = answer(found)
            call.check()  # it looks at no clock
            return said

        with self.store.usage.reserve(call.key, found.characters) as count, self.admission.enter(found.characters):
            said = await self._work(call, in_time)
            count(found.characters)
        return said

    @staticmethod
    def check(fields: type[F], asked: Mapping[str, Any]) -> F:
        """The fields of a request.

        Raises:
            ServiceError: one is wrong (400).
        """
        try:
            return fields.model_validate(dict(asked))
        except ValidationError as error:
            raise ServiceError(400, _sentence(error)) from None

    async def generate(self, asked: GenerateRequest, call: Call) -> AsyncGenerator[str, None]:
        """Parts of what a language model writes; they count as the prompt does, also beyond what a key has left."""
        loop, said = asyncio.get_running_loop(), asyncio.Queue[Any]()

        def write() -> None:
            for part in self.answers.generate(asked):
                call.check()
                loop.call_soon_threadsafe(said.put_nowait, part)

        self._refuse_over(asked.characters)
        most = max(1, asked.characters)  # a key that has none left writes nothing
        with self.store.usage.reserve(call.key, most) as count, self.admission.enter(asked.characters):
            working = asyncio.ensure_future(self._work(call, write))
            working.add_done_callback(lambda _: said.put_nowait(END))
            try:
                left = asked.characters  # of which a prompt that cannot be continued costs none
                while (part := await said.get()) is not END:
                    count(left)
                    left = 0
                    self.store.usage.add(call.key.id, len(part))
                    yield part
                await working
            finally:
                call.leave()
                with suppress(Exception, asyncio.CancelledError):
                    await working

    async def put_document(self, request: DocumentRequest, call: Call) -> JobName:
        """As the protocol has it."""
        self.models.find_target(request.target)
        if request.source is not None:
            found = self._translator.languages("", request.source, request.target)
            if found.source != found.target:
                self._translator.route(found.source, found.target, request.terms)
        return await self._work(call, lambda: self.jobs.put(request, call.key))

    async def job(self, name: JobName, call: Call) -> Job:
        """As the protocol has it."""
        return await self._work(call, lambda: self.store.jobs.find(name))

    async def document(self, name: JobName, call: Call) -> bytes:
        """As the protocol has it."""
        return await self._work(call, lambda: self.store.jobs.result(name))

    async def delete_document(self, name: JobName, call: Call) -> None:
        """Forget a document."""
        await self._work(call, lambda: self.jobs.delete(name))

    def memory(self, source: str, target: str, call: Call) -> ClientMemory:
        """The client's translation memory of a direction."""
        [hop, *more] = self.models.route(source, target)
        if more:
            raise ServiceError(
                400, f"{source} is translated into {target} through another language; each hop has a memory"
            )
        return self.store.memory(call.key, *hop.direction)

    def usage(self, call: Call) -> tuple[int, int | None]:
        """As the protocol has it."""
        return self.store.usage.of(call.key.id), call.key.characters

    @contextmanager
    def _enter(self, request: TranslationRequest, call: Call) -> Iterator[Callable[[int], None]]:
        """While the context is open, a request within the limits may be answered; what is given counts characters.

        A line costs as much as some characters, a beam wider than the models' more times.
        """
        self._check(request)
        characters = sum(map(len, request.texts))
        self._refuse_over(characters)
        lines = sum(text.count("\n") for text in request.texts)
        wider = max(1.0, (request.beam or 1 + request.alternatives) / self.models.beam)
        weight = math.ceil((characters + LINE * lines) * wider)
        with self.store.usage.reserve(call.key, characters) as count, self.admission.enter(weight):
            yield count

    def _check(self, request: TranslationRequest) -> None:
        """Refuse what is beyond the limits."""
        limits = self.limits
        goal = self.models.find_target(request.target)
        if request.source is not None:
            self.models.find_source(request.source, goal)
        if len(request.texts) > limits.texts:
            raise ServiceError(413, f"a request may have at most {limits.texts:,} texts")
        if max(map(len, request.texts), default=0) > limits.characters:
            raise ServiceError(413, f"a text may have at most {limits.characters:,} characters; send a document")
        if not 0 <= request.alternatives <= limits.alternatives:
            raise ServiceError(400, f"alternatives: expected 0 to {limits.alternatives}")
        if request.beam is not None and not 1 <= request.beam <= limits.beam:
            raise ServiceError(400, f"beam: expected 1 to {limits.beam}")
        if request.prefixes and len(request.prefixes) != len(request.texts):
            raise ServiceError(400, "prefixes: expected one for each text")
        if request.markup != "text" and (request.alternatives or request.details or request.prefixes):
            raise ServiceError(400, "alternatives, details and prefixes are for texts without markup")

    def _refuse_over(self, characters: int) -> None:
        if characters > self.limits.call_characters:
            raise ServiceError(413, f"a request may have at most {self.limits.call_characters:,} characters")

    async def _work(self, call: Call, work: Callable[[], T]) -> T:
        """The result of work in a thread of its own, which ends soon where nobody waits for it."""

        def run() -> T:
            call.check()
            CALL.set(call)
            with collect_notices():  # else they were printed, with words of a text
                try:
                    return work()
                except StaleModel:
                    return work()

        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._pool, contextvars.copy_context().run, run)
        except asyncio.CancelledError:
            call.leave()
            raise

    def _sweep(self) -> None:
        while not self._ended.wait(SWEEP):
            self.models.let_go()
            self.searching.tidy()
            trim_memory()


def _sentence(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, first["loc"]))
    return f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}"

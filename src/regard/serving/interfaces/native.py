"""Regard's own interface, under ``/v1``: all that its models say, in JSON."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping
from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field
from pydantic_core import from_json, to_json
from starlette.responses import Response

from regard import __version__
from regard.documents.kinds import ENDINGS
from regard.library.serve.body import StreamingLines
from regard.serving.answers import MOST_OF_SENTENCE, MOST_TEXTS, GenerateRequest, LimitedText
from regard.serving.core import Call, DocumentRequest, JobName, ServiceError, TextTranslation, TranslationRequest
from regard.serving.interfaces.interface import Fields, File, Interface, Operation, attachment, kind_of_file
from regard.serving.service import TranslationService
from regard.system.errors import RegardError
from regard.tasks.text.terms import Terminology
from regard.text.terms import TermList

INTERFACE = Interface(prefixes=("/v1/",))
MOST_TERMS = 500
DONE = b"data: [DONE]\n\n"
"""The last event of a stream."""


class TermFields(Fields):
    """A term: where a text has its source, the translation has one of the targets, which ``|`` divides."""

    source: str = Field(min_length=1, max_length=200, pattern=r"^[^\t\r\n]+$")
    target: str = Field(min_length=1, max_length=1000, pattern=r"^[^\t\r\n]+$")


def _terms(given: object) -> object:
    """Terms that a form holds as JSON."""
    if not isinstance(given, str):
        return given
    try:
        return from_json(given)
    except ValueError:
        raise ValueError("expected a list of terms in JSON") from None


Terms = Annotated[list[TermFields], Field(max_length=MOST_TERMS), BeforeValidator(_terms)]


class TranslateFields(Fields):
    """Texts to translate; the source is guessed where it is not given."""

    texts: list[str] = Field(min_length=1)
    target: str
    source: str | None = None
    markup: Literal["text", "html", "xml"] = "text"
    ignore_tags: list[str] = Field(default=[], max_length=100)
    alternatives: int = Field(default=0, ge=0)
    beam: int | None = Field(default=None, ge=1)
    terms: Terms = Field(default=[])
    prefixes: list[str] = Field(default=[])
    split: bool = True
    details: bool = False
    memory: bool = False
    stream: bool = False
    seconds: float | None = Field(default=None, gt=0)


class DirectionFields(Fields):
    """A direction of a client's translation memory."""

    source: str
    target: str


class MemoryFields(DirectionFields):
    """Texts with their translations, to be remembered."""

    pairs: list[tuple[LimitedText, LimitedText]] = Field(min_length=1, max_length=1000)


class DetectFields(Fields):
    """A text whose language is asked for."""

    text: LimitedText


class DocumentFields(Fields):
    """A document to translate; ``format`` says its kind where its name does not."""

    file: File
    target: str
    source: str | None = None
    format: str | None = None
    terms: Terms = Field(default=[])


class JobFields(Fields):
    """A document; its secret comes in the header ``Document-Secret``."""

    id: str
    document_secret: str


class AnyFields(Fields):
    """What one model is asked; see the kinds of :class:`regard.serving.answers.Answers`."""

    model_config = ConfigDict(extra="allow")


class NativeInterface:
    """Its operations.

    Args:
        service: that answers.
        attention: where an attention page of the models is, if there is one.
        most_bytes: of a document.
    """

    def __init__(self, service: TranslationService, attention: str | None, most_bytes: int) -> None:
        self._service, self._attention, self._most_bytes = service, attention, most_bytes
        job = "/v1/documents/{id}"
        self.operations: tuple[Operation[Any], ...] = (
            Operation("GET", "/v1/settings", Fields, self.settings, admits=False),
            Operation("GET", "/v1/languages", Fields, self.languages, admits=False),
            Operation("GET", "/v1/models", Fields, self.models),
            Operation("POST", "/v1/detect", DetectFields, self.detect),
            Operation("POST", "/v1/translate", TranslateFields, self.translate),
            Operation("POST", "/v1/generate", AnyFields, self.generate),
            *(Operation("POST", f"/v1/{name}", AnyFields, self.answer(name)) for name in service.answers.kinds),
            Operation("POST", "/v1/documents", DocumentFields, self.put_document, most_bytes=most_bytes),
            Operation("GET", job, JobFields, self.job),
            Operation("GET", f"{job}/result", JobFields, self.document),
            Operation("DELETE", job, JobFields, self.delete_document, status=204),
            Operation("GET", "/v1/memory", DirectionFields, self.memory),
            Operation("POST", "/v1/memory", MemoryFields, self.remember),
            Operation("DELETE", "/v1/memory", DirectionFields, self.forget, status=204),
            Operation("GET", "/v1/usage", Fields, self.usage),
        )

    async def settings(self, asked: Fields, call: Call) -> object:
        """What a client should know before it asks."""
        limits = self._service.limits
        return {
            "version": __version__,
            "needs_key": self._service.needs_key,
            "attention": self._attention,
            "memory": True,
            "limits": {
                "texts": limits.texts,
                "characters": limits.characters,
                "call_characters": limits.call_characters,
                "alternatives": limits.alternatives,
                "beam": limits.beam,
                "model_texts": MOST_TEXTS,
                "words_characters": MOST_OF_SENTENCE,
                "document_bytes": self._most_bytes,
                "seconds": limits.seconds,
            },
            "documents": ["txt", *ENDINGS],
        }

    async def languages(self, asked: Fields, call: Call) -> object:
        """What is translated from, and into what."""
        return {"languages": [asdict(one) for one in self._service.languages()]}

    async def models(self, asked: Fields, call: Call) -> object:
        """The models by name, and what they do."""
        return {
            "models": [
                {
                    "name": one.name,
                    "task": one.recipe.task,
                    "directions": sorted(one.directions),
                    "loaded": one.task is not None,
                }
                for one in self._service.models
            ]
        }

    async def detect(self, asked: DetectFields, call: Call) -> object:
        """The languages that a text may be in, best first."""
        return {"guesses": [asdict(one) for one in await self._service.detect(asked.text, call)]}

    async def translate(self, asked: TranslateFields, call: Call) -> object:
        """Translations, or as events while they are made."""
        if asked.seconds is not None:
            call.deadline = min(call.deadline, time.monotonic() + asked.seconds)
        request = TranslationRequest(
            tuple(asked.texts),
            asked.target,
            asked.source,
            asked.markup,
            frozenset(asked.ignore_tags),
            alternatives=asked.alternatives,
            beam=asked.beam,
            terms=_terminology(asked.terms),
            prefixes=tuple(asked.prefixes),
            split=asked.split,
            details=asked.details,
            memory=asked.memory,
        )
        if asked.stream:
            return await _events(
                {"index": place, **translation_values(one)} async for place, one in self._service.stream(request, call)
            )
        return {"translations": [translation_values(one) for one in await self._service.translate(request, call)]}

    def answer(self, name: str) -> Any:
        """What answers one kind of request."""

        async def answer(asked: AnyFields, call: Call) -> object:
            return await self._service.model_answer(name, asked.model_extra or {}, call)

        return answer

    async def generate(self, asked: AnyFields, call: Call) -> Response:
        """A text of a language model, as events while it is written."""
        found = self._service.check(GenerateRequest, asked.model_extra or {})
        return await _events({"text": part} async for part in self._service.generate(found, call))

    async def put_document(self, asked: DocumentFields, call: Call) -> object:
        """Take a document."""
        kind = asked.format or kind_of_file(asked.file.name)
        request = DocumentRequest(
            asked.file.name, asked.file.content, asked.target, asked.source, kind, _terminology(asked.terms)
        )
        return asdict(await self._service.put_document(request, call))

    async def job(self, asked: JobFields, call: Call) -> object:
        """What became of a document so far."""
        return asdict(await self._service.job(JobName(asked.id, asked.document_secret), call))

    async def document(self, asked: JobFields, call: Call) -> Response:
        """The translated document."""
        name = JobName(asked.id, asked.document_secret)
        content = await self._service.document(name, call)
        return attachment((await self._service.job(name, call)).name, content)

    async def delete_document(self, asked: JobFields, call: Call) -> None:
        """Forget a document."""
        await self._service.delete_document(JobName(asked.id, asked.document_secret), call)

    def memory(self, asked: DirectionFields, call: Call) -> object:
        """How many texts the client's translation memory has."""
        return {"texts": self._service.memory(asked.source, asked.target, call).count()}

    def remember(self, asked: MemoryFields, call: Call) -> object:
        """Remember translations; a request with ``memory`` takes those of the same texts and sentences."""
        memory = self._service.memory(asked.source, asked.target, call)
        memory.add(asked.pairs)
        return {"texts": memory.count()}

    def forget(self, asked: DirectionFields, call: Call) -> None:
        """Forget the translation memory of a direction."""
        self._service.memory(asked.source, asked.target, call).delete()

    def usage(self, asked: Fields, call: Call) -> object:
        """Characters of this month."""
        characters, limit = self._service.usage(call)
        return {"characters": characters, "limit": limit}


async def _events(values: AsyncGenerator[Mapping[str, object], None]) -> StreamingLines:
    """A stream; before its first event an error is a status of HTTP."""
    return StreamingLines(await anext(values, None), values, "text/event-stream", _event, _error_event, DONE)


def translation_values(one: TextTranslation) -> dict[str, object]:
    """A translation as plain values; what nobody asked for is left out."""
    values = vars(one).items()  # what is inside becomes JSON by itself
    return {name: value for name, value in values if value is not None and (value or name != "sentences")}


def _event(value: Mapping[str, object]) -> bytes:
    return b"data: " + to_json(value) + b"\n\n"


def _error_event(error: Exception) -> bytes:
    return b"data: " + bytes(INTERFACE.error_response(error).body) + b"\n\n"


def _terminology(terms: list[TermFields]) -> Terminology | None:
    if not terms:
        return None
    try:
        return Terminology(TermList(tuple(f" {one.source}\t{one.target}" for one in terms)))  # no line is a comment
    except RegardError as error:
        raise ServiceError(400, f"terms: {error.message}") from None

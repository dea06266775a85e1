"""LibreTranslate's interface, as its version 1.9 has it."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any, Literal
from urllib.parse import quote

from pydantic import BeforeValidator, Field
from starlette.routing import Route

from regard.documents.kinds import ENDINGS
from regard.serving.core import (
    Call,
    DocumentRequest,
    JobName,
    Service,
    ServiceError,
    TextTranslation,
    TranslationRequest,
)
from regard.serving.interfaces.interface import BaseURL, Fields, File, Interface, Operation, attachment, kind_of_file
from regard.serving.markup import markup_of
from regard.system.errors import RegardError

VERSION = "1.9.6"
"""Of LibreTranslate, whose interface this is."""
AUTO = "auto"
NO_LANGUAGE = "en"
"""What is said of a text without letters, as LibreTranslate does."""
PATIENCE = 2400.0
"""Seconds that a client waits for a document at most, as long as LibreTranslate lets it."""
PAUSES = (0.05, 1.0)
"""Seconds between two looks whether a document is done: the first, and the longest."""
INTERFACE = Interface(statuses={401: 400, 456: 403}, missing="Invalid request: missing {} parameter")
NonEmptyText = Annotated[str, Field(min_length=1)]
Texts = NonEmptyText | Annotated[list[str], Field(min_length=1)]


class TranslateFields(Fields):
    """A text, or several."""

    q: Texts
    source: NonEmptyText
    target: NonEmptyText
    format: Annotated[Literal["text", "html"], BeforeValidator(lambda given: given or "text")] = "text"
    alternatives: Annotated[int, Field(ge=0), BeforeValidator(lambda given: given or 0)] = 0


class DetectFields(Fields):
    """A text, or several of one language."""

    q: Texts


class FileFields(Fields):
    """A document."""

    file: File
    source: NonEmptyText
    target: NonEmptyText
    base_url: BaseURL


class ResultFields(Fields):
    """The last part of the address of a translated document."""

    file: str


class Operations:
    """What LibreTranslate answers.

    Args:
        service: that answers in its place.
        key_needed: whether clients need a key.
        most_bytes: of a document.
        most_characters: of a text; -1: any.
    """

    def __init__(self, service: Service, key_needed: bool, most_bytes: int, most_characters: int) -> None:
        self._service, self._key_needed, self._most_characters = service, key_needed, most_characters
        self.operations: tuple[Operation[Any], ...] = (
            Operation("POST", "/translate", TranslateFields, self.translate),
            Operation("POST", "/detect", DetectFields, self.detect),
            Operation("POST", "/translate_file", FileFields, self.translate_file, most_bytes=most_bytes),
            Operation("GET", "/download_file/{file}", ResultFields, self.download_file, admits=False),
            Operation("GET", "/languages", Fields, self.languages, admits=False),
            Operation("GET", "/frontend/settings", Fields, self.settings, admits=False),
            Operation("POST", "/suggest", Fields, self.suggest, admits=False),
            Operation("GET", "/health", Fields, self.health, admits=False),
            Operation("GET", "/spec", Fields, self.spec, admits=False),
        )

    async def translate(self, asked: TranslateFields, call: Call) -> object:
        """Texts; those without letters stay as they are where their language would be guessed."""
        texts = [asked.q] if isinstance(asked.q, str) else asked.q
        auto = asked.source == AUTO
        given = [number for number, text in enumerate(texts) if not auto or any(map(str.isalpha, text))]
        alternatives = asked.alternatives if asked.format == "text" else 0
        request = TranslationRequest(
            tuple(texts[number] for number in given),
            asked.target,
            None if auto else asked.source,
            asked.format if asked.format == "html" or alternatives else markup_of(texts),
            alternatives=alternatives,
        )
        some = dict(zip(given, await self._service.translate(request, call), strict=True)) if given else {}
        found = [some.get(number) or TextTranslation(text, NO_LANGUAGE) for number, text in enumerate(texts)]
        answer: dict[str, list[object]] = {"translatedText": [one.text for one in found]}
        if auto:
            answer["detectedLanguage"] = [_guess(one.source, one.guessed or 0.0) for one in found]
        if asked.alternatives:
            answer["alternatives"] = [list(one.alternatives) for one in found]
        return answer if isinstance(asked.q, list) else {name: values[0] for name, values in answer.items()}

    async def detect(self, asked: DetectFields, call: Call) -> object:
        """The languages that a text may be in."""
        text = asked.q if isinstance(asked.q, str) else "\n".join(asked.q)
        if not any(map(str.isalpha, text)):
            return [_guess(NO_LANGUAGE, 0.0)]
        return [_guess(one.language, one.confidence) for one in await self._service.detect(text, call)]

    async def translate_file(self, asked: FileFields, call: Call) -> object:
        """A document; its translation is offered at an address that only this client knows."""
        file, source = asked.file, None if asked.source == AUTO else asked.source
        request = DocumentRequest(file.name, file.content, asked.target, source, kind_of_file(file.name))
        job = await self._service.put_document(request, call)
        call.deadline, pause = time.monotonic() + PATIENCE, PAUSES[0]
        while (state := await self._service.job(job, call)).status not in ("done", "error"):
            call.check()
            await asyncio.sleep(pause)
            pause = min(2 * pause, PAUSES[1])
        if state.status == "error":
            raise RegardError(state.error or "the document cannot be translated")
        last = f"{job.id}.{job.secret}.{state.name}"
        return {"translatedFileUrl": f"{asked.base_url}download_file/{quote(last, safe='')}"}

    async def download_file(self, asked: ResultFields, call: Call) -> object:
        """A translated document."""
        id, _, rest = asked.file.partition(".")
        secret, _, name = rest.partition(".")
        return attachment(name, await self._service.document(JobName(id, secret), call))

    async def languages(self, asked: Fields, call: Call) -> object:
        """What can be translated from, and into what."""
        found = self._service.languages()
        return [{"code": one.code, "name": one.name, "targets": list(one.targets)} for one in found]

    async def settings(self, asked: Fields, call: Call) -> object:
        """What a page needs to know."""
        languages = self._service.languages()
        names = {one.code: one.name for one in languages}
        target = next((code for one in languages for code in one.targets), NO_LANGUAGE)
        return {
            "charLimit": self._most_characters,
            "frontendTimeout": 500,
            "apiKeys": True,
            "keyRequired": self._key_needed,
            "suggestions": False,
            "filesTranslation": True,
            "supportedFilesFormat": [".txt", *(f".{ending}" for ending in ENDINGS)],
            "language": {
                "source": {"code": AUTO, "name": "Auto Detect"},
                "target": {"code": target, "name": names.get(target, target)},
            },
        }

    async def suggest(self, asked: Fields, call: Call) -> object:
        """Suggestions are not taken."""
        raise ServiceError(403, "Suggestions are disabled on this server.")

    async def health(self, asked: Fields, call: Call) -> object:
        """Whether the server answers."""
        return {"status": "ok"}

    async def spec(self, asked: Fields, call: Call) -> object:
        """These operations in Swagger's words."""
        paths = {one.path: {one.method.lower(): _described(one)} for one in self.operations}
        return {"swagger": "2.0", "info": {"title": "LibreTranslate", "version": VERSION}, "paths": paths}


def routes(
    service: Service, key_needed: bool = False, most_bytes: int = 32 << 20, most_characters: int = -1
) -> list[Route]:
    """LibreTranslate's routes; as :class:`Operations` has it."""
    return INTERFACE.routes(service, Operations(service, key_needed, most_bytes, most_characters).operations)


def _guess(language: str, confidence: float) -> dict[str, object]:
    return {"confidence": round(100 * confidence, 1), "language": language}


def _described(operation: Operation[Any]) -> dict[str, object]:
    """An operation in Swagger's words."""
    schema = operation.fields.model_json_schema()
    parameters = [
        {
            "in": "path" if f"{{{name}}}" in operation.path else "formData",
            "name": name,
            "required": name in schema.get("required", ()),
            "schema": {key: value for key, value in found.items() if key != "title"},
        }
        for name, found in schema.get("properties", {}).items()
    ]
    if operation.admits:
        parameters.append({"in": "formData", "name": "api_key", "required": False, "schema": {"type": "string"}})
    return {
        "summary": schema.get("description", "") if parameters else "",
        "parameters": parameters,
        "responses": {"200": {"description": "Success"}, "400": {"description": "Invalid request"}},
    }

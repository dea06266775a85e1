"""DeepL's interface: texts, documents, languages and usage; glossaries have a module of their own."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from starlette.routing import Route

from regard.serving.core import Call, DocumentRequest, JobName, Service, ServiceError, TranslationRequest
from regard.serving.interfaces.deepl_glossaries import GlossaryOperations
from regard.serving.interfaces.interface import Fields, File, Interface, Operation, attachment, kind_of_file
from regard.serving.languages import language_name
from regard.serving.markup import markup_of
from regard.serving.store.glossaries import Glossaries
from regard.tasks.text.terms import Terminology
from regard.text.languages import primary

UNLIMITED = 10**12
"""Characters a month of a key without a limit."""
MOST_GLOSSARIES = 5
"""Of a request."""
VERSION = "v2"
"""Of DeepL's handling of tags: XML must be well-formed."""
RESOURCES = ("translate_text", "translate_document", "glossary")
NONE_HERE = ("voice", "write", "style_rules")
"""Resources of DeepL that are not served."""
FEATURES = ("tag_handling", "glossary", "auto_detection")
UNSUPPORTED = ("style_id", "custom_instructions", "translation_memory_id")
"""Fields whose wishes cannot be met, and are not ignored."""
INTERFACE = Interface(
    lambda status, sentence: {"message": sentence},
    secrets=("auth_key",),
    statuses={401: 403},
    missing="Parameter '{}' not specified.",
    prefixes=("/v2/", "/v3/"),
)
_LINE = re.compile(r"(?<=[^\s>])[^\S\n]*\n\s*(?=[^\s<])")


def _none(given: object) -> object:
    return None if given == "" else given


def _several(given: object) -> object:
    return [given] if isinstance(given, str) else given


def _listed(given: object) -> object:
    """The values of a list, or of several, between commas."""
    given = _several(given)
    if isinstance(given, list) and all(isinstance(one, str) for one in given):
        return [part.strip() for one in given for part in one.split(",") if part.strip()]
    return given or []


OptionalText = Annotated[str | None, BeforeValidator(_none)]
Listed = Annotated[tuple[str, ...], BeforeValidator(_listed)]


class OptionFields(Fields):
    """Languages, and glossaries of theirs; what cannot be met is refused."""

    target_lang: Annotated[str, Field(min_length=1)]
    source_lang: OptionalText = None
    formality: Annotated[str, BeforeValidator(lambda given: given or "default")] = "default"
    glossary_id: OptionalText = None
    glossary_ids: Listed = ()
    style_id: object = None
    custom_instructions: object = None
    translation_memory_id: object = None

    def refuse_unsupported(self) -> None:
        """Refuse what cannot be met.

        Raises:
            ServiceError: a style, instructions, a memory, or formality is asked for (400).
        """
        for name in UNSUPPORTED:
            if getattr(self, name):
                raise ServiceError(400, f"Parameter '{name}' is not supported by this server.")
        if self.formality in ("more", "less"):
            raise ServiceError(400, "'formality' is not supported for given 'target_lang'.")


class TranslateFields(OptionFields):
    """Texts."""

    text: Annotated[list[str], BeforeValidator(_several), Field(min_length=1)]
    split_sentences: Annotated[
        Literal["0", "1", "nonewlines"] | None,
        BeforeValidator(lambda given: str(int(given)) if isinstance(given, int) else _none(given)),
    ] = None
    tag_handling: Annotated[Literal["xml", "html"] | None, BeforeValidator(_none)] = None
    outline_detection: bool = True
    ignore_tags: Listed = ()
    splitting_tags: Listed = ()
    non_splitting_tags: Listed = ()
    show_billed_characters: bool = False
    model_type: OptionalText = None


class DocumentFields(OptionFields):
    """A document."""

    file: File
    filename: OptionalText = None
    output_format: OptionalText = None


class JobFields(Fields):
    """By which a client finds its document again."""

    document_id: str
    document_key: str


class LanguageFields(Fields):
    """Which side of translations."""

    type: Annotated[Literal["source", "target"], BeforeValidator(lambda given: given or "source")] = "source"


class ResourceFields(Fields):
    """What languages are for."""

    resource: str


class Operations:
    """What DeepL answers.

    Args:
        service: that answers in its place.
        glossaries: of all keys.
        most_bytes: of a document.
    """

    def __init__(self, service: Service, glossaries: Glossaries, most_bytes: int) -> None:
        self._service, self._glossaries = service, glossaries
        self.operations: tuple[Operation[Any], ...] = (
            Operation("POST", "/v2/translate", TranslateFields, self.translate),
            Operation("POST", "/v2/document", DocumentFields, self.put_document, most_bytes=most_bytes),
            Operation("POST", "/v2/document/{document_id}", JobFields, self.job),
            Operation("POST", "/v2/document/{document_id}/result", JobFields, self.document),
            *(Operation(method, "/v2/languages", LanguageFields, self.languages) for method in ("GET", "POST")),
            *(Operation(method, "/v2/usage", Fields, self.usage) for method in ("GET", "POST")),
            Operation("GET", "/v2/glossary-language-pairs", Fields, self.pairs),
            Operation("GET", "/v3/languages", ResourceFields, self.resource_languages),
            Operation("GET", "/v3/languages/resources", Fields, self.resources),
            *GlossaryOperations(glossaries).operations,
        )

    async def translate(self, asked: TranslateFields, call: Call) -> object:
        """Texts, with tags or without."""
        asked.refuse_unsupported()
        texts = asked.text
        if asked.split_sentences == "nonewlines" and asked.tag_handling != "html":
            texts = [_LINE.sub(" ", text) for text in texts]
        request = TranslationRequest(
            tuple(texts),
            asked.target_lang,
            asked.source_lang,
            asked.tag_handling or markup_of(texts),
            frozenset(asked.ignore_tags),
            frozenset(asked.splitting_tags),
            frozenset(asked.non_splitting_tags),
            asked.outline_detection,
            terms=await self._terms(asked, call),
            split=asked.split_sentences != "0",
        )
        found = await self._service.translate(request, call)
        more: dict[str, object] = {"tag_handling_version": VERSION} if asked.tag_handling else {}
        if asked.model_type:
            fast = asked.model_type == "latency_optimized"
            more["model_type_used"] = asked.model_type if fast else "quality_optimized"
        return {
            "translations": [
                {
                    "detected_source_language": primary(one.source).upper(),
                    "text": one.text,
                    **({"billed_characters": len(text)} if asked.show_billed_characters else {}),
                    **more,
                }
                for text, one in zip(asked.text, found, strict=True)
            ]
        }

    async def _terms(self, asked: OptionFields, call: Call) -> Terminology | None:
        ids: Sequence[str] = [asked.glossary_id] if asked.glossary_id else asked.glossary_ids
        if not ids:
            return None
        if asked.glossary_id and asked.glossary_ids:
            raise ServiceError(400, "Parameters 'glossary_id' and 'glossary_ids' exclude each other.")
        if len(ids) > MOST_GLOSSARIES:
            raise ServiceError(400, f"There may be at most {MOST_GLOSSARIES} 'glossary_ids'.")
        if asked.source_lang is None:
            raise ServiceError(400, "Parameter 'source_lang' is needed where there is a glossary.")
        languages = asked.source_lang, asked.target_lang
        return await asyncio.to_thread(self._glossaries.terminology, call.key, ids, *languages)

    async def put_document(self, asked: DocumentFields, call: Call) -> object:
        """A document, which is translated whether the client stays or not."""
        asked.refuse_unsupported()
        name = asked.filename or asked.file.name
        kind = kind_of_file(name)
        if asked.output_format and not name.lower().endswith(f".{asked.output_format.lower()}"):
            raise ServiceError(400, "Parameter 'output_format' must be that of the document.")
        terms = await self._terms(asked, call)
        request = DocumentRequest(name, asked.file.content, asked.target_lang, asked.source_lang, kind, terms)
        job = await self._service.put_document(request, call)
        return {"document_id": job.id, "document_key": job.secret}

    async def job(self, asked: JobFields, call: Call) -> object:
        """What became of a document."""
        found = await self._service.job(JobName(asked.document_id, asked.document_key), call)
        answer: dict[str, object] = {"document_id": asked.document_id, "status": found.status}
        if found.status == "done":
            answer["billed_characters"] = found.characters
        elif found.status == "error":
            answer["error_message"] = found.error
        elif found.seconds is not None:
            answer["seconds_remaining"] = found.seconds
        return answer

    async def document(self, asked: JobFields, call: Call) -> object:
        """A translated document."""
        name = JobName(asked.document_id, asked.document_key)
        return attachment((await self._service.job(name, call)).name, await self._service.document(name, call))

    async def languages(self, asked: LanguageFields, call: Call) -> object:
        """The languages that are read, or those that are written."""
        sources, targets = self._codes()
        if asked.type == "source":
            short = dict.fromkeys(map(primary, sources))
            return [{"language": code.upper(), "name": language_name(code)} for code in short]
        return [
            {"language": code.upper(), "name": language_name(code), "supports_formality": False} for code in targets
        ]

    def _codes(self) -> tuple[list[str], list[str]]:
        """Those of languages that are read, and that are written."""
        found = self._service.languages()
        targets = {code for one in found for code in one.targets}
        return sorted(one.code for one in found), sorted(targets)

    def usage(self, asked: Fields, call: Call) -> object:
        """What a key had translated this month."""
        count, limit = self._service.usage(call)
        return {"character_count": count, "character_limit": UNLIMITED if limit is None else limit}

    async def pairs(self, asked: Fields, call: Call) -> object:
        """The directions of glossaries: those of one model."""
        found = {(primary(one.code), primary(code)) for one in self._service.languages() for code in one.direct}
        return {"supported_languages": [{"source_lang": one, "target_lang": two} for one, two in sorted(found)]}

    async def resource_languages(self, asked: ResourceFields, call: Call) -> object:
        """Languages with what they are good for."""
        if asked.resource in NONE_HERE:
            return []
        if asked.resource not in RESOURCES:
            raise ServiceError(400, f"Value for 'resource' not supported; there are {', '.join(RESOURCES)}.")
        sources, targets = self._codes()
        features = {name: {"status": "stable"} for name in FEATURES if asked.resource != "glossary"}
        return [
            {
                "lang": code,
                "name": language_name(code),
                "status": "stable",
                "usable_as_source": code in sources,
                "usable_as_target": code in targets,
                "features": features,
            }
            for code in sorted({*sources, *targets})
        ]

    async def resources(self, asked: Fields, call: Call) -> object:
        """What languages are for."""
        needs = {"tag_handling": (), "glossary": (), "auto_detection": ("needs_source_support",)}
        both = ("needs_source_support", "needs_target_support")
        features = [{"name": name, **dict.fromkeys(needs[name] or both, True)} for name in FEATURES]
        return [{"name": name, "features": features if name != "glossary" else []} for name in RESOURCES]


def routes(service: Service, glossaries: Glossaries, most_bytes: int = 32 << 20) -> list[Route]:
    """DeepL's routes; as :class:`Operations` has it."""
    return INTERFACE.routes(service, Operations(service, glossaries, most_bytes).operations)

"""Interfaces of a few operations each: Google's version 2, DeepLX, Immersive Translate's own, KISS Translator's."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from starlette.routing import Route

from regard.serving.core import Call, Markup, Service, ServiceError, TextTranslation, TranslationRequest
from regard.serving.interfaces.interface import Fields, Interface, Operation
from regard.serving.languages import language_name
from regard.serving.markup import markup_of

MOST_DETECTED = 128
"""Texts whose language is detected at once, as many as Google takes."""
RELIABLE = 0.5
"""How probable a language is that Google calls reliable."""
REASONS = {
    400: "invalid",
    403: "forbidden",
    404: "notFound",
    405: "httpMethodNotAllowed",
    413: "uploadTooLarge",
    415: "badRequest",
    421: "badRequest",
    429: "rateLimitExceeded",
}
"""Google's words for errors."""


def _google_error(status: int, sentence: str) -> object:
    first = {"message": sentence, "domain": "global", "reason": REASONS.get(status, "backendError")}
    return {"error": {"code": status, "message": sentence, "errors": [first]}}


GOOGLE = Interface(_google_error, ("key", "access_token"), {401: 403, 456: 403}, prefixes=("/language/",))
DEEPLX = Interface(
    lambda status, sentence: {"code": status, "message": sentence}, ("token",), {456: 429}, prefixes=("/deeplx",)
)
EXTENSIONS = Interface(secrets=("token", "api_key"), prefixes=("/imme", "/kiss"))
INTERFACES = (GOOGLE, DEEPLX, EXTENSIONS)
"""That of Google, that of DeepLX, and that of extensions of browsers."""
Texts = Annotated[list[str], BeforeValidator(lambda given: [given] if isinstance(given, str) else given)]
Source = Annotated[str | None, BeforeValidator(lambda given: None if given in ("", "auto") else given)]
Target = Annotated[str, Field(min_length=1)]


class GoogleFields(Fields):
    """What Google reads."""

    q: Annotated[Texts, Field(min_length=1)]
    target: Target
    source: Source = None
    format: Annotated[Literal["html", "text"], BeforeValidator(lambda given: given or "html")] = "html"


class GoogleTextFields(Fields):
    """What Google reads to detect a language."""

    q: Annotated[Texts, Field(min_length=1, max_length=MOST_DETECTED)]


class DeeplxFields(Fields):
    """What DeepLX reads."""

    text: Annotated[str, Field(min_length=1)]
    target_lang: Target
    source_lang: Source = None
    tag_handling: Annotated[Literal["html", "xml"] | None, BeforeValidator(lambda given: given or None)] = None


class ImmersiveFields(Fields):
    """What Immersive Translate sends."""

    text_list: Texts
    target_lang: Target
    source_lang: Source = None


class KissFields(Fields):
    """What KISS Translator sends: a text, or several."""

    target: Annotated[Target, Field(alias="to")]
    source: Annotated[Source, Field(alias="from")] = None
    text: str | None = None
    texts: Texts | None = None


class Operations:
    """What all of them answer.

    Args:
        service: that answers in their place.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        google = "/language/translate/v2"
        self.operations: dict[Interface, tuple[Operation[Any], ...]] = {
            GOOGLE: (
                *(Operation(method, google, GoogleFields, self.google) for method in ("GET", "POST")),
                *(Operation(method, f"{google}/detect", GoogleTextFields, self.detect) for method in ("GET", "POST")),
                *(Operation(method, f"{google}/languages", Fields, self.languages) for method in ("GET", "POST")),
            ),
            DEEPLX: tuple(
                Operation("POST", path, DeeplxFields, self.deeplx) for path in ("/deeplx", "/deeplx/translate")
            ),
            EXTENSIONS: (
                Operation("POST", "/imme", ImmersiveFields, self.immersive),
                Operation("POST", "/kiss", KissFields, self.kiss),
            ),
        }

    async def google(self, asked: GoogleFields, call: Call) -> object:
        """Texts, of HTML where nothing else is said."""
        found = await self._translate(asked.q, asked.source, asked.target, call, asked.format)
        guessed = [{} if asked.source else {"detectedSourceLanguage": one.source} for one in found]
        pairs = zip(found, guessed, strict=True)
        return {"data": {"translations": [{"translatedText": one.text, **more} for one, more in pairs]}}

    async def detect(self, asked: GoogleTextFields, call: Call) -> object:
        """The languages that each text may be in."""
        found = [await self._service.detect(text, call) for text in asked.q]
        detections = [
            [
                {"language": one.language, "confidence": one.confidence, "isReliable": one.confidence > RELIABLE}
                for one in guesses[:1]
            ]
            for guesses in found
        ]
        return {"data": {"detections": detections}}

    async def languages(self, asked: Fields, call: Call) -> object:
        """The languages that are read or written."""
        found = {code for one in self._service.languages() for code in (one.code, *one.targets)}
        return {"data": {"languages": [{"language": code, "name": language_name(code)} for code in sorted(found)]}}

    async def deeplx(self, asked: DeeplxFields, call: Call) -> object:
        """A text."""
        [found] = await self._translate(
            [asked.text], asked.source_lang, asked.target_lang, call, asked.tag_handling or "text"
        )
        return {
            "code": 200,
            "id": random.randrange(10**10),
            "data": found.text,
            "alternatives": [],
            "source_lang": found.source.upper(),
            "target_lang": asked.target_lang.upper(),
            "method": "Free",
        }

    async def immersive(self, asked: ImmersiveFields, call: Call) -> object:
        """Texts of a page."""
        found = await self._translate(asked.text_list, asked.source_lang, asked.target_lang, call)
        return {"translations": [{"detected_source_lang": one.source, "text": one.text} for one in found]}

    async def kiss(self, asked: KissFields, call: Call) -> object:
        """A text, or texts of a page."""
        if asked.texts is None and asked.text is None:
            raise ServiceError(400, "the request lacks texts")
        texts = [asked.text or ""] if asked.texts is None else asked.texts
        found = await self._translate(texts, asked.source, asked.target, call)
        answers = [{"text": one.text, "src": one.source} for one in found]
        return answers[0] if asked.texts is None else {"translations": answers}

    async def _translate(
        self, texts: Sequence[str], source: str | None, target: str, call: Call, markup: Markup = "text"
    ) -> list[TextTranslation]:
        markup = markup_of(texts) if markup == "text" else markup
        return await self._service.translate(TranslationRequest(tuple(texts), target, source, markup), call)


def routes(service: Service) -> list[Route]:
    """The routes of all of them."""
    found = Operations(service).operations.items()
    return [route for interface, operations in found for route in interface.routes(service, operations)]

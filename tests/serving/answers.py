"""A server for the page that answers by rule, so that each act has one right outcome; nothing listens anywhere."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import regard.serving

if TYPE_CHECKING:
    from playwright.sync_api import Route

ORIGIN, INSECURE = "http://127.0.0.1:8000/", "http://regard.test/"
"""Of this machine, and of another one without TLS, where a browser keeps more from a page."""
PAGE = Path(regard.serving.__file__).parent / "page"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; font-src 'self'"
)
OPEN = ("settings", "languages")
"""What needs no key."""
KINDS = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
GERMAN = dict(
    zip(
        "the a animal didn't cross street because it was too tired dog is man in red on of and two".split(),
        "das ein Tier nicht überquert Straße weil es war zu müde Hund ist Mann in rot auf von und zwei".split(),
        strict=True,
    )
)
LANGUAGES = [("en", "English", ["de", "ar"]), ("de", "German", ["en"]), ("ar", "Arabic", ["en"])]


def translated(word: str, target: str) -> str:
    """The word of the other language: of the table, or backwards."""
    bare = word.lower().strip(".,!?")
    other = {"ar": "كلمة"}.get(target) or GERMAN.get(bare, bare[::-1])
    return word.lower().replace(bare, other) if bare else word


def places(text: str, pattern: str, begin: int = 0, end: int | None = None) -> list[list[int]]:
    """Where a pattern is found."""
    return [
        list(found.span()) for found in re.compile(pattern).finditer(text, begin, len(text) if end is None else end)
    ]


@dataclass
class Answers:
    """Answers of the native interface.

    Args:
        settings: that differ from the usual.
        key: that is needed.
        refusals: of a path, what is answered once in the place of each answer: status, headers.
        unsure: words of sentences of which the model is unsure; ``warned``: of those that the guard warns of.
        asked: what was asked of each path, in order.
    """

    settings: dict[str, Any] = field(default_factory=dict)
    key: str = ""
    refusals: dict[str, list[tuple[int, dict[str, str]]]] = field(default_factory=dict)
    unsure: str = "purple"
    warned: str = "17"
    asked: list[tuple[str, Any]] = field(default_factory=list)
    looks: Counter[str] = field(default_factory=Counter)

    def __call__(self, route: Route) -> None:
        """Answer a request of the page."""
        request = route.request
        path = urlsplit(request.url).path.lstrip("/")
        if not path.startswith("v1/"):
            file = PAGE / (path or "index.html")
            kind = KINDS.get(file.suffix, "font/woff2")
            route.fulfill(body=file.read_bytes(), headers={"content-type": kind, "content-security-policy": POLICY})
            return
        path = path.removeprefix("v1/")
        try:
            body = request.post_data_json
        except Exception:  # a document
            body = request.post_data_buffer
        self.asked.append((path, body))
        if self.refusals.get(path):
            status, headers = self.refusals[path].pop(0)
            route.fulfill(status=status, headers=headers, json={"error": f"refused with {status}"})
        elif self.key and path not in OPEN and request.headers.get("authorization") != f"Bearer {self.key}":
            route.fulfill(status=403, json={"error": "this is no key of this server"})
        elif path.endswith("/result"):
            route.fulfill(body=b"Ein Brief.", headers={"content-type": "application/octet-stream"})
        else:
            route.fulfill(json=self.answer(path, body, request.method))

    def questions(self, path: str) -> list[Any]:
        """What was asked of a path so far."""
        return [body for asked, body in self.asked if asked == path]

    def answer(self, path: str, body: Any, method: str) -> object:
        """The answer to a question."""
        if path == "settings":
            usual = {"version": "1.0", "needs_key": bool(self.key), "attention": "http://127.0.0.1:8017/"}
            limits = {"characters": 2000, "texts": 100, "document_bytes": 1000}
            return {**usual, "limits": limits, "documents": ["docx", "odt", "txt"], **self.settings}
        if path == "languages":
            return {"languages": [dict(zip(("code", "name", "targets"), one, strict=True)) for one in LANGUAGES]}
        if path == "translate":
            return {"translations": [self.translation(text, body) for text in body["texts"]]}
        if path == "detect":
            return {"guesses": [{"language": "en", "confidence": 0.97}]}
        if path == "words":
            return {"words": self.words(body)}
        if path == "usage":
            return {"characters": 0, "limit": None}
        if path == "documents":
            return {"id": "7", "secret": "s"}
        if method == "DELETE":
            return {}
        self.looks[path] += 1
        done = self.looks[path] > 2
        job = {"status": "done" if done else "translating", "name": "letter.de.docx", "done": 3 * self.looks[path]}
        return {
            **job,
            "segments": 9,
            "characters": 90,
            "seconds": 4,
            "error": None,
            "report": ["One tag moved."] * done,
        }

    def translation(self, given: str, body: Any) -> object:
        """Word by word; what begins with a prefix goes on in capitals."""
        prefix = (body.get("prefixes") or [""])[0]
        terms = {term["source"]: term["target"] for term in body.get("terms", [])}
        text, sentences = "", []
        for begin, end in places(given, r"[^\s.!?][^.!?\n]*[.!?]?"):
            own = given[begin:end]
            text += re.sub(r"\S", "", given[sentences[-1]["source"][1] if sentences else 0 : begin])
            first = len(text)
            words = [terms.get(word) or translated(word, body["target"]) for word in own.split()]
            if prefix:
                words = prefix.split() + [word.upper() for word in words[len(prefix.split()) :]]
            words[0] = words[0][:1].upper() + words[0][1:]
            text += " ".join(words)
            rows, columns = places(text, r"\S+", first), places(given, r"\S+", begin, end)
            weights = [
                [self.weight(row, column, len(columns)) for column in range(len(columns))] for row in range(len(rows))
            ]
            unsure = self.unsure in own
            sentences.append(
                {
                    "source": [begin, end],
                    "target": [first, len(text)],
                    "source_words": columns,
                    "target_words": rows,
                    "links": [[place, place] for place in range(min(len(rows), len(columns)))],
                    "weights": weights,
                    "words": [
                        {"begin": b, "end": e, "confidence": 0.3 if unsure and text[b:e].startswith("elp") else 0.9}
                        for b, e in rows
                    ],
                    "confidence": 0.4 if unsure else 0.9,
                    "unsure": unsure,
                    "warning": "the number 17 is not in the translation" if self.warned in own else "",
                }
            )
        several = [text.replace("e", "ë", n + 1) for n in range(body.get("alternatives", 0))]
        found = {"text": text, "source": body["source"], "alternatives": several, "warnings": []}
        return {**found, "sentences": sentences}

    def weight(self, row: int, column: int, columns: int) -> float:
        """Most at the word that is translated, less at the one before it."""
        rest = 0.3 / columns
        return {0: 0.6, 1: 0.1}.get(row - column, 0.0) + rest

    def words(self, body: Any) -> object:
        """Three others for each word but one."""
        text = body["translation"]
        return [
            {
                "begin": begin,
                "end": end,
                "others": [
                    {"word": word, "probability": p, "text": f"{text[:begin]}{word}{text[end:].upper()}"}
                    for word, p in (("jenes", 0.21), ("dieses", 0.083), ("welches", 0.004))
                    if text[begin:end] != "rot"
                ],
            }
            for begin, end in places(text, r"[^\s.]+")
        ]

"""Glossaries as DeepL's versions 2 (of one direction) and 3 (of several) have them."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field
from starlette.responses import Response

from regard.serving.core import Call, ServiceError
from regard.serving.interfaces.interface import Fields, Operation
from regard.serving.store.glossaries import Dictionary, Glossaries, Glossary
from regard.system.errors import RegardError

MOST_BYTES = 12 << 20
"""Of a request; a glossary of DeepL has ten at most."""
TSV = "text/tab-separated-values"
NonEmptyText = Annotated[str, Field(min_length=1)]


class DictionaryFields(Fields):
    """Terms of one direction."""

    source_lang: NonEmptyText
    target_lang: NonEmptyText
    entries: str
    entries_format: Annotated[Literal["tsv", "csv"], BeforeValidator(lambda given: given or "tsv")] = "tsv"

    @property
    def direction(self) -> tuple[str, str]:
        """Its languages."""
        return self.source_lang, self.target_lang

    def terms(self) -> dict[str, str]:
        """Sources of terms to their targets.

        Raises:
            RegardError: a line is no term, or says again what another said.
        """
        lines = self.entries.replace("\r\n", "\n").split("\n")
        rows = (line.split("\t") for line in lines) if self.entries_format == "tsv" else _rows(lines)
        found = dict[str, str]()
        for number, row in enumerate(rows, 1):
            if not any(map(str.strip, row)):
                continue
            if len(row) not in ((2,) if self.entries_format == "tsv" else (2, 4)):
                raise RegardError(f"expected a source and a target, not {len(row)} parts", f"entries, line {number}")
            source, target = row[0].strip(), row[1].strip()
            if source in found:
                raise RegardError(f"there are two terms {source!r:.60}", f"entries, line {number}")
            found[source] = target
        return found


class SingleGlossaryFields(DictionaryFields):
    """A glossary of one direction."""

    name: NonEmptyText


class GlossaryFields(Fields):
    """A glossary."""

    name: NonEmptyText
    dictionaries: list[DictionaryFields] = Field(min_length=1)


class IDFields(Fields):
    """Which glossary."""

    glossary_id: str


class UpdateFields(IDFields):
    """What becomes of a glossary."""

    name: str | None = None
    dictionaries: tuple[DictionaryFields, ...] = ()


class GlossaryDictionaryFields(IDFields, DictionaryFields):
    """A dictionary in the place of another."""


class PairFields(IDFields):
    """Which dictionary of a glossary."""

    source_lang: NonEmptyText
    target_lang: NonEmptyText


class GlossaryOperations:
    """What DeepL answers about glossaries.

    Args:
        glossaries: of all keys.
    """

    def __init__(self, glossaries: Glossaries) -> None:
        self._glossaries = glossaries
        old, new, one = "/v2/glossaries", "/v3/glossaries", "/{glossary_id}"
        self.operations: tuple[Operation[Any], ...] = (
            Operation("POST", old, SingleGlossaryFields, self.create_single, 201, most_bytes=MOST_BYTES),
            Operation("GET", old, Fields, self.all_single),
            Operation("GET", old + one, IDFields, self.get_single),
            Operation("DELETE", old + one, IDFields, self.delete, 204),
            Operation("GET", f"{old}{one}/entries", IDFields, self.entries_single),
            Operation("POST", new, GlossaryFields, self.create, 201, most_bytes=MOST_BYTES),
            Operation("GET", new, Fields, self.all),
            Operation("GET", new + one, IDFields, self.get),
            Operation("PATCH", new + one, UpdateFields, self.change, most_bytes=MOST_BYTES),
            Operation("DELETE", new + one, IDFields, self.delete, 204),
            Operation("GET", f"{new}{one}/entries", PairFields, self.entries),
            Operation("PUT", f"{new}{one}/dictionaries", GlossaryDictionaryFields, self.replace, most_bytes=MOST_BYTES),
            Operation("DELETE", f"{new}{one}/dictionaries", PairFields, self.delete_dictionary, 204),
        )

    def create_single(self, asked: SingleGlossaryFields, call: Call) -> object:
        """A new glossary of one direction."""
        return _described_single(self._glossaries.create(call.key, asked.name, {asked.direction: asked.terms()}))

    def create(self, asked: GlossaryFields, call: Call) -> object:
        """A new glossary."""
        terms = {one.direction: one.terms() for one in asked.dictionaries}
        return _described(self._glossaries.create(call.key, asked.name, terms))

    def all_single(self, asked: Fields, call: Call) -> object:
        """Those of one direction."""
        found = self._glossaries.all(call.key)
        return {"glossaries": [_described_single(one) for one in found if len(one.dictionaries) == 1]}

    def all(self, asked: Fields, call: Call) -> object:
        """All of a key."""
        return {"glossaries": [_described(one) for one in self._glossaries.all(call.key)]}

    def get_single(self, asked: IDFields, call: Call) -> object:
        """One of one direction."""
        return _described_single(self._glossaries.get(call.key, asked.glossary_id))

    def get(self, asked: IDFields, call: Call) -> object:
        """One."""
        return _described(self._glossaries.get(call.key, asked.glossary_id))

    def delete(self, asked: IDFields, call: Call) -> None:
        """Delete one."""
        self._glossaries.delete(call.key, asked.glossary_id)

    def entries_single(self, asked: IDFields, call: Call) -> object:
        """The terms of one of one direction."""
        only = _only(self._glossaries.get(call.key, asked.glossary_id))
        return Response(self._tsv(asked.glossary_id, only.source, only.target, call), media_type=TSV)

    def entries(self, asked: PairFields, call: Call) -> object:
        """The terms of one direction."""
        languages = {"source_lang": asked.source_lang, "target_lang": asked.target_lang}
        entries = self._tsv(asked.glossary_id, asked.source_lang, asked.target_lang, call)
        return {"dictionaries": [{**languages, "entries": entries, "entries_format": "tsv"}]}

    def _tsv(self, id: str, source: str, target: str, call: Call) -> str:
        found = self._glossaries.entries(call.key, id, source, target)
        return "\n".join(f"{one}\t{other}" for one, other in found.items())

    def change(self, asked: UpdateFields, call: Call) -> object:
        """Name a glossary anew, and merge terms into it."""
        terms = {one.direction: one.terms() for one in asked.dictionaries}
        return _described(self._glossaries.merge(call.key, asked.glossary_id, terms, asked.name))

    def replace(self, asked: GlossaryDictionaryFields, call: Call) -> object:
        """Give a glossary a dictionary."""
        return _counted(self._glossaries.replace(call.key, asked.glossary_id, *asked.direction, asked.terms()))

    def delete_dictionary(self, asked: PairFields, call: Call) -> None:
        """Delete a dictionary of a glossary."""
        self._glossaries.delete_dictionary(call.key, asked.glossary_id, asked.source_lang, asked.target_lang)


def _rows(lines: Iterable[str]) -> Iterable[list[str]]:
    try:
        yield from csv.reader(lines, strict=True)
    except csv.Error as error:
        raise RegardError(f"is not CSV: {error}", "entries") from None


def _only(glossary: Glossary) -> Dictionary:
    if len(glossary.dictionaries) != 1:
        raise ServiceError(404, "the glossary has not one direction; ask by version 3")
    return glossary.dictionaries[0]


def _counted(dictionary: Dictionary) -> dict[str, object]:
    languages = {"source_lang": dictionary.source, "target_lang": dictionary.target}
    return {**languages, "entry_count": dictionary.count}


def _described(glossary: Glossary) -> dict[str, object]:
    return {**_named(glossary), "dictionaries": [_counted(one) for one in glossary.dictionaries]}


def _described_single(glossary: Glossary) -> dict[str, object]:
    return {**_named(glossary), "ready": True, **_counted(_only(glossary))}


def _named(glossary: Glossary) -> dict[str, object]:
    created = datetime.fromtimestamp(glossary.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {"glossary_id": glossary.id, "name": glossary.name, "creation_time": created}

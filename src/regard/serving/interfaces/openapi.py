"""The operations of an interface as OpenAPI 3.1 describes them, of the same fields that read requests."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from regard import __version__
from regard.serving.interfaces.interface import HEADERS, Operation

ERROR = {
    "description": "Refused: 400 wrong, 401 and 403 key, 404 unknown, 413 too large, 429 busy, 456 quota, 500 to 507.",
    "content": {
        "application/json": {
            "schema": {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}
        }
    },
}


def describe(operations: Sequence[Operation[Any]], kinds: Mapping[str, tuple[type[BaseModel], object]]) -> object:
    """The document at ``/openapi.json``.

    Args:
        operations: of the native interface.
        kinds: the fields of those operations that one model answers, by the last part of their path.
    """
    schemas: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    for one in operations:
        own = kinds.get(one.path.rpartition("/")[2], (one.fields, None))[0]
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, own, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Regard", "version": __version__, "summary": "Models behind HTTP: translation and the rest."},
        "paths": paths,
        "components": {"schemas": schemas, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }


def _operation(one: Operation[Any], fields: type[BaseModel], schemas: dict[str, Any]) -> dict[str, Any]:
    """One of a path; fields in its path are parameters, the others are its body."""
    schema = fields.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas |= schema.pop("$defs", {})
    inside = set(re.findall(r"{(\w+)}", one.path))
    found = schema.get("properties", {})
    parameters = [
        {
            "name": HEADERS.get(name, name),
            "in": "path" if name in inside else "header" if name in HEADERS else "query",
            "required": name in schema.get("required", []),
            "schema": found[name],
        }
        for name in found
        if one.method in ("GET", "DELETE") or name in inside or name in HEADERS
    ]
    apart = {parameter["name"] for parameter in parameters} | {*HEADERS}
    body = {name: value for name, value in found.items() if name not in apart}
    success = {"description": "No content" if one.status == 204 else "The answer"}
    described: dict[str, Any] = {
        "summary": " ".join((one.answer.__doc__ or "").split()),
        "operationId": one.method.lower() + re.sub(r"\W+", "_", one.path),
        "responses": {str(one.status): success, "default": ERROR},
    }
    if one.admits:
        described["security"] = [{}, {"key": []}]
    if parameters:
        described["parameters"] = parameters
    if body:
        required = [name for name in schema.get("required", []) if name in body]
        own = {**schema, "properties": body, "required": required}
        form = any(value.get("format") == "binary" for value in body.values())
        kind = "multipart/form-data" if form else "application/json"
        described["requestBody"] = {"required": True, "content": {kind: {"schema": own}}}
    return described

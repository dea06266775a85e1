"""Request bodies: one JSON object, limited in size and in time."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any

from starlette.requests import Request
from starlette.types import Receive

from regard.system.errors import RegardError

MOST_BYTES = 1 << 20
DIGITS = 300
"""Most digits of a number."""
SLOW = 20.0
"""Seconds for a request body to arrive."""


class RequestRefused(RegardError):
    """The request is not allowed.

    Args:
        status: HTTP's number for it.
        message: the sentence.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ClientDisconnected(Exception):
    """The client has disconnected."""


async def read_body(request: Request) -> bytes:
    """The whole request body.

    Raises:
        RequestRefused: it is too large, or arrives too slowly.
        ClientDisconnected: the client has disconnected.
    """
    length = request.headers.get("content-length", "0")
    found, more, large = bytearray(), True, len(length) > 9 or int(length) > MOST_BYTES
    try:
        async with asyncio.timeout(SLOW):
            while more and not large:
                part, more = await _receive_part(request.receive)
                found += part
                large = len(found) > MOST_BYTES
    except TimeoutError:
        raise RequestRefused(408, f"what is asked did not arrive within {SLOW:.0f} seconds") from None
    if large:
        raise RequestRefused(413, f"a request may have at most {MOST_BYTES:,} bytes")
    return bytes(found)


async def _receive_part(receive: Receive) -> tuple[bytes, bool]:
    """The next part of the body, and whether more follows."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnected
    return message.get("body", b""), message.get("more_body", False)


def parse_object(content: bytes) -> dict[str, Any]:
    """The JSON object in a request body.

    Raises:
        RequestRefused: it is no JSON object, or has invalid numbers or texts.
    """
    try:
        text = content.decode()
        found = json.loads(text, parse_constant=_parse_float, parse_float=_parse_float, parse_int=_parse_int)
        if "\\u" in text:
            json.dumps(found, ensure_ascii=False).encode()  # lone surrogates are not valid characters
    except RecursionError:
        raise RequestRefused(400, "the request is nested too deeply") from None
    except UnicodeError:
        raise RequestRefused(400, "the request is not valid Unicode") from None
    except json.JSONDecodeError as error:
        raise RequestRefused(400, f"the request is not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise RequestRefused(400, "a request must be one JSON object")
    return found


def _parse_int(text: str) -> int:
    if len(text) > DIGITS:
        raise RequestRefused(400, f"a number of {len(text):,} digits is too large")
    return int(text)


def _parse_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise RequestRefused(400, f"{text[:20]} is no number that can be used here")
    return number

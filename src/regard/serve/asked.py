"""What is asked: one JSON object, neither large nor slow."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any

from starlette.requests import Request
from starlette.types import Receive

from regard.errors import RegardError

MOST_BYTES = 1 << 20
DIGITS = 300
"""Of a number at most."""
SLOW = 20.0
"""Seconds that a question may take to arrive."""


class Refused(RegardError):
    """This may not be asked.

    Args:
        status: HTTP's number for it.
        message: the sentence.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Gone(Exception):
    """Nobody waits for an answer."""


async def body(request: Request) -> bytes:
    """What was sent, all of it.

    Raises:
        Refused: it is too large, or comes too slowly.
        Gone: whoever sent it has left.
    """
    length = request.headers.get("content-length", "0")
    found, more, large = bytearray(), True, len(length) > 9 or int(length) > MOST_BYTES
    try:
        async with asyncio.timeout(SLOW):
            while more and not large:
                part, more = await _part(request.receive)
                found += part
                large = len(found) > MOST_BYTES
    except TimeoutError:
        raise Refused(408, f"what is asked did not arrive within {SLOW:.0f} seconds") from None
    if large:
        raise Refused(413, f"what is asked may have {MOST_BYTES:,} bytes at most")
    return bytes(found)


async def _part(receive: Receive) -> tuple[bytes, bool]:
    """Some of what is sent, and whether there is more."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise Gone
    return message.get("body", b""), message.get("more_body", False)


def values(content: bytes) -> dict[str, Any]:
    """The JSON object that was sent.

    Raises:
        Refused: it is none; or has numbers that are none, or texts that are no texts.
    """
    try:
        text = content.decode()
        found = json.loads(text, parse_constant=_finite, parse_float=_finite, parse_int=_whole)
        if "\\u" in text:
            json.dumps(found, ensure_ascii=False).encode()  # half of a surrogate pair is no character
    except RecursionError:
        raise Refused(400, "what is asked is nested too deeply") from None
    except UnicodeError:
        raise Refused(400, "what is asked is not valid Unicode") from None
    except json.JSONDecodeError as error:
        raise Refused(400, f"what is asked is no JSON: {error}") from None
    if not isinstance(found, dict):
        raise Refused(400, "what is asked must be one JSON object")
    return found


def _whole(text: str) -> int:
    if len(text) > DIGITS:
        raise Refused(400, f"a number of {len(text):,} digits is too large")
    return int(text)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise Refused(400, f"{text[:20]} is no number that can be used here")
    return number

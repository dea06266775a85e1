"""Bodies of requests within limits, those of answers, and work that ends when its client leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import TypeVar

from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from regard.system.errors import RegardError

T = TypeVar("T")
Values = Mapping[str, object]


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


async def read_chunks(
    request: Request, most: int, seconds: float, claim: Callable[[int], None] = lambda size: None
) -> AsyncGenerator[bytes, None]:
    """The body as it arrives.

    Args:
        request: its body is not read yet.
        most: bytes.
        seconds: for all of it to arrive.
        claim: told how many bytes have arrived, whenever some have; it may raise an exception.

    Raises:
        RequestRefused: it is too large, or arrives too slowly.
        ClientDisconnected: the client has disconnected.
    """
    length, size, more = request.headers.get("content-length", "0"), 0, True
    too_large = RequestRefused(413, f"a request may have at most {most:,} bytes")
    if len(length) > 18 or int(length) > most:
        raise too_large
    until = asyncio.get_running_loop().time() + seconds
    while more:
        try:
            async with asyncio.timeout_at(until):
                message = await request.receive()
        except TimeoutError:
            raise RequestRefused(408, f"what is asked did not arrive within {seconds:.0f} seconds") from None
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        content, more = message.get("body", b""), message.get("more_body", False)
        size += len(content)
        if size > most:
            raise too_large
        claim(size)
        yield content


def json_object(content: bytes) -> dict[str, object]:
    """The JSON object that is a request's body.

    Raises:
        RequestRefused: it is no JSON object in UTF-8.
    """
    try:
        found = from_json(content, allow_inf_nan=False)
    except ValueError as error:
        raise RequestRefused(400, f"the request is not valid JSON: {error}") from None
    if not isinstance(found, dict):
        raise RequestRefused(400, "a request must be one JSON object")
    return found


class StreamingLines(StreamingResponse):
    """Streams values as they are made; an error becomes the last one. A client that leaves ends the generator.

    Args:
        first: the first value, or none.
        rest: those that follow.
        kind: of the answer.
        line: what is sent of a value; ``error_line``: of an error.
        end: what is sent behind all values.
    """

    def __init__(
        self,
        first: Values | None,
        rest: AsyncGenerator[Values, None],
        kind: str,
        line: Callable[[Values], bytes],
        error_line: Callable[[Exception], bytes],
        end: bytes = b"",
    ) -> None:
        self._rest = rest

        async def lines() -> AsyncGenerator[bytes, None]:
            try:
                if first is not None:
                    yield line(first)
                async for value in rest:
                    yield line(value)
                if end:
                    yield end
            except Exception as error:
                yield error_line(error)

        super().__init__(lines(), media_type=kind)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._rest):
            await super().__call__(scope, receive, send)


async def unless_left(request: Request, work: Awaitable[T]) -> T:
    """The result of the work, which is cancelled when the client disconnects.

    Raises:
        ClientDisconnected: the client has disconnected.
    """

    async def leave() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    working, leaving = asyncio.ensure_future(work), asyncio.ensure_future(leave())
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnected
        return working.result()
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)

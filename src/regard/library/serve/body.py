"""Bodies of requests within limits, and work that ends when its client leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TypeVar

from starlette.requests import Request

from regard.system.errors import RegardError

T = TypeVar("T")


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

"""A small server of CTranslate2: Starlette, one translator, and sentences of all clients translated together.

    python serve_ctranslate2.py FOLDER KIND BEAM BATCH

Whenever a worker of the translator is free, it is given what waits, ``BATCH`` sentences at most. Prints its address.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from typing import Any

import ctranslate2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from tokenizers import Tokenizer

WORKERS = os.cpu_count() or 1
EXTRA = 50
"""Tokens that an output may have more than the longest source of its batch."""


class Translator:
    """Translates what waits, as many sentences at once as a batch may have.

    Args:
        folder: of the model.
        kind: how it computes, ``float32`` or ``int8``.
        beam: hypotheses.
        batch: sentences.
    """

    def __init__(self, folder: str, kind: str, beam: int, batch: int) -> None:
        threads = {"intra_threads": 1, "inter_threads": WORKERS}
        self._model = ctranslate2.Translator(folder, compute_type=kind, **threads)
        self._tokenizer: Any = Tokenizer.from_file(f"{folder}/tokenizer.json")
        self._beam, self._batch, self._free = beam, batch, WORKERS
        self._working = set[asyncio.Task[None]]()
        self._waiting: list[tuple[str, asyncio.Future[str]]] = []

    async def translate(self, texts: list[str]) -> list[str]:
        """The translation of each text."""
        loop = asyncio.get_running_loop()
        mine = [(text, loop.create_future()) for text in texts]
        self._waiting += mine
        self._give()
        return await asyncio.gather(*(future for _, future in mine))

    def _give(self) -> None:
        while self._free and self._waiting:
            given, self._waiting = self._waiting[: self._batch], self._waiting[self._batch :]
            self._free -= 1
            self._working.add(work := asyncio.ensure_future(self._work(given)))
            work.add_done_callback(self._working.discard)

    async def _work(self, given: list[tuple[str, asyncio.Future[str]]]) -> None:
        try:
            found = await asyncio.to_thread(self._translate, [text for text, _ in given])
        finally:
            self._free += 1
            self._give()
        for (_, future), text in zip(given, found, strict=True):
            future.set_result(text)

    def _translate(self, texts: list[str]) -> list[str]:
        sources = [one.tokens for one in self._tokenizer.encode_batch(texts)]
        longest = max(map(len, sources)) + EXTRA
        found = self._model.translate_batch(sources, beam_size=self._beam, max_decoding_length=longest)
        ids = [[self._tokenizer.token_to_id(piece) for piece in one.hypotheses[0]] for one in found]
        return [str(text).strip() for text in self._tokenizer.decode_batch(ids)]


def main() -> None:
    """Serve until killed."""
    folder, kind, beam, batch = sys.argv[1:]
    translator = Translator(folder, kind, int(beam), int(batch))

    async def translate(request: Request) -> JSONResponse:
        found = await translator.translate((await request.json())["texts"])
        return JSONResponse({"translations": [{"text": text} for text in found]})

    with socket.socket(proto=socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        print(f"http://127.0.0.1:{listener.getsockname()[1]}/", flush=True)
        app = Starlette(routes=[Route("/v1/translate", translate, methods=["POST"])])
        uvicorn.Server(uvicorn.Config(app, log_level="critical", access_log=False)).run([listener])


if __name__ == "__main__":
    main()

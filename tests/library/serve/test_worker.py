"""The worker: a bounded queue, and one item at a time."""

import asyncio
import threading

from regard.library.serve.worker import ENDING, Worker, WorkerBusy
from tests.library.serve.conftest import PATIENCE, ended
from tests.refusals import refused


def test_what_is_done_first_is_done_before_anything_else() -> None:
    worker, done = Worker(), []

    def first() -> None:
        done.append("first")
        raise ImportError("no torch")

    async def ask() -> int:
        asked = asyncio.ensure_future(worker.call(lambda: done.append("asked") or len(done)))
        await asyncio.sleep(0)
        worker.start(first)
        return await asked

    assert asyncio.run(ask()) == 2
    assert done == ["first", "asked"]
    worker.end()
    assert ended(worker)


def test_at_the_end_all_who_wait_are_told() -> None:
    worker, go, done = Worker(), threading.Event(), []

    async def ask() -> list[object]:
        worker.start()
        asked = [
            asyncio.ensure_future(worker.call(work)) for work in (lambda: go.wait(PATIENCE), lambda: done.append(1))
        ]
        while worker.now is None or len(worker.waiting) != 1:
            await asyncio.sleep(0.001)
        worker.end()
        found = await asyncio.gather(*asked, return_exceptions=True)
        with refused(WorkerBusy):
            await worker.call(lambda: done.append(2))
        return found

    assert [str(error) for error in asyncio.run(ask())] == [ENDING] * 2
    assert not ended(worker, 0)
    go.set()  # what it says now reaches nobody, since the loop is closed
    assert ended(worker)
    assert done == []

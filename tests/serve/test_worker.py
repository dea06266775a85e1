"""The worker: a bounded queue, and one item at a time."""

import asyncio
import threading
from collections.abc import Iterator

import pytest

from regard.serve.worker import ENDING, Worker, WorkerBusy
from tests.refusals import refused

PATIENCE = 10.0


@pytest.fixture
def worker() -> Iterator[Worker]:
    found = Worker(most=2)
    yield found
    found.end()
    assert found.idle(PATIENCE)


async def soon(met) -> None:
    async with asyncio.timeout(PATIENCE):
        while not met():
            await asyncio.sleep(0.001)


def test_what_is_done_first_is_done_before_anything_else(worker: Worker) -> None:
    done = []

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


def test_an_error_reaches_whoever_asked_and_nobody_else(worker: Worker) -> None:
    async def ask() -> int:
        worker.start()
        with pytest.raises(ZeroDivisionError):
            await worker.call(lambda: 1 // 0)
        return await worker.call(lambda: 7)

    assert asyncio.run(ask()) == 7


def test_at_the_end_all_who_wait_are_told(worker: Worker) -> None:
    go, done = threading.Event(), []

    async def ask() -> list[object]:
        worker.start()
        asked = [asyncio.ensure_future(worker.call(lambda: go.wait(PATIENCE)))]
        await soon(lambda: not worker.free)
        asked.append(asyncio.ensure_future(worker.call(lambda: done.append(1))))
        await soon(lambda: worker.waiting == 1)
        worker.end()
        found = await asyncio.gather(*asked, return_exceptions=True)
        with refused(WorkerBusy):
            await worker.call(lambda: done.append(2))
        return found

    assert [str(error) for error in asyncio.run(ask())] == [ENDING] * 2
    assert not worker.idle(0)
    go.set()  # what it says now reaches nobody, since the loop is closed
    assert worker.idle(PATIENCE)
    assert done == []


def test_what_never_began_is_idle() -> None:
    assert Worker().idle(0)

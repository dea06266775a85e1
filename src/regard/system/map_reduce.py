"""Items worked on one by one, here or in several processes; the answers are the same, in the same order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, suppress
from itertools import chain, islice
from typing import Any, Generic, TypeVar

from regard.system.errors import RegardError
from regard.system.forks import SAFE, ForkedWorkers, NoWorkers

Item = TypeVar("Item")
Found = TypeVar("Found")
Processes = Callable[[], int]
"""How many processes are to be used, asked where there is work for several."""


def alone() -> int:
    """One process."""
    return 1


class MapReduce(ABC, Generic[Item, Found]):
    """What is made of items, each by itself, and what is counted on the way, whose sums do not depend on the order."""

    @abstractmethod
    def do(self, item: Item) -> Found:
        """What is made of an item."""

    @abstractmethod
    def pack_item(self, item: Item) -> bytes:
        """An item as bytes, at least one."""

    @abstractmethod
    def unpack_item(self, content: bytes) -> Item:
        """The opposite."""

    @abstractmethod
    def pack_found(self, found: Found) -> bytes:
        """What was made of an item as bytes."""

    @abstractmethod
    def unpack_found(self, content: bytes) -> Found:
        """The opposite."""

    @property
    def content(self) -> bytes:
        """What was counted, for :meth:`merge`."""
        return b""

    def merge(self, content: bytes) -> None:
        """Add what another process counted."""


def divide(
    work: MapReduce[Item, Found], items: Iterable[Item], processes: Processes
) -> Generator[tuple[Item, Found], None, None]:
    """Each item and what is made of it, in order; what is counted is in ``work`` when all items were taken.

    Args:
        work: to be done.
        items: taken as they are needed.
        processes: copies of this one that do it; it does so itself where the system allows none.

    Raises:
        RegardError: of an item or the work, after all that comes before it.
    """
    rest, first = iter(items), list[Item]()
    if SAFE and processes is not alone:
        first += islice(rest, 1)
        try:
            first += islice(rest, 1)
        except RegardError as error:
            rest = _raise(error)
    count = processes() if len(first) == 2 else 1

    def answer(content: bytes) -> bytes:
        return work.pack_found(work.do(work.unpack_item(content))) if content else work.content

    with ExitStack() as stack:
        workers = None
        if count > 1:
            with suppress(NoWorkers):
                workers = stack.enter_context(ForkedWorkers(answer, count))
        if not workers:
            for item in chain(first, rest):
                yield item, work.do(item)
            return
        for item, found in workers.pairs(chain(first, rest), work.pack_item):
            yield item, work.unpack_found(found())
        for counted in workers.ask_each(b""):
            work.merge(counted)


def _raise(error: Exception) -> Iterator[Any]:
    raise error
    yield


def join_parts(*parts: bytes) -> bytes:
    """Parts as one, for :func:`split_parts`."""
    sizes = [len(part).to_bytes(8, "little") for part in parts]
    return b"".join([len(parts).to_bytes(8, "little"), *sizes, *parts])


def split_parts(content: bytes) -> list[bytes]:
    """The opposite."""
    whole = memoryview(content)
    count = int.from_bytes(whole[:8], "little")
    begin, found = 8 + 8 * count, list[bytes]()
    for number in range(count):
        end = begin + int.from_bytes(whole[8 + 8 * number : 16 + 8 * number], "little")
        found.append(bytes(whole[begin:end]))
        begin = end
    return found

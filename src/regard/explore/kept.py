"""What was made is kept in memory for the next time, as long as there is room; the least lately used leaves first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Kept(Generic[Value]):
    """Values by key, for any thread.

    Args:
        room: what all of them may take together; a value that takes more is not kept.
        size: of a value.
    """

    def __init__(self, room: float, size: Callable[[Value], float] = lambda value: 1) -> None:
        self._room, self._size = room, size
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of a key, made if it is not there."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        made = make()
        self.put(key, made)
        return made

    def put(self, key: Hashable, value: Value) -> None:
        """Keep a value."""
        if self._size(value) > self._room:
            return
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while sum(map(self._size, self._values.values())) > self._room:
                self._values.popitem(last=False)

    def __len__(self) -> int:
        return len(self._values)

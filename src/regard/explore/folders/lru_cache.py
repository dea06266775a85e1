"""A thread-safe LRU cache, bounded by the total size of its values."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class LruCache(Generic[Value]):
    """A thread-safe LRU cache.

    Args:
        room: total size of all values; a larger value is not stored.
        size: computes the size of a value, once.
    """

    def __init__(self, room: float, size: Callable[[Value], float] = lambda value: 1) -> None:
        self._room, self._size = room, size
        self._values: OrderedDict[Hashable, tuple[Value, float]] = OrderedDict()
        self._taken = 0.0
        self._lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of a key, computed if missing."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key][0]
        made = make()
        self.put(key, made)
        return made

    def put(self, key: Hashable, value: Value) -> None:
        """Store a value, and evict the least recently used ones."""
        size = self._size(value)
        if size > self._room:
            return
        with self._lock:
            _, before = self._values.pop(key, (None, 0.0))
            self._values[key] = value, size
            self._taken += size - before
            while self._taken > self._room:
                _, (_, left) = self._values.popitem(last=False)
                self._taken -= left

    def __len__(self) -> int:
        return len(self._values)

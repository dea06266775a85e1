"""Cached values are not recomputed, and never exceed the cache's size."""

from __future__ import annotations

from regard.explore.folders.models import LruCache


def test_it_is_made_once() -> None:
    made: list[str] = []

    def make(name: str) -> str:
        made.append(name)
        return name.upper()

    kept: LruCache[str] = LruCache(2)
    for name in ("a", "b", "a", "c", "a", "b"):
        assert kept.get(name, lambda name=name: make(name)) == name.upper()
    assert made == ["a", "b", "c", "b"]  # c came when a was asked more lately than b
    assert len(kept) == 2


def test_room_is_by_size() -> None:
    kept: LruCache[str] = LruCache(5, len)
    kept.put(1, "aaa")
    kept.put(2, "bb")
    kept.put(3, "too large")
    assert kept.get(1, lambda: "gone") == "aaa"
    kept.put(4, "cc")
    assert [kept.get(key, lambda: "") for key in (1, 4, 3)] == ["aaa", "cc", ""]
    kept.put(1, "a")
    assert kept.get(1, lambda: "gone") == "a"


def test_sizes_are_asked_once() -> None:
    asked: list[int] = []

    def size(value: int) -> int:
        asked.append(value)
        return value

    kept: LruCache[int] = LruCache(10, size)
    for value in (4, 3, 2, 1, 5):
        kept.put(value, value)
    assert asked == [4, 3, 2, 1, 5]
    assert len(kept) == 3  # 5, 1 and 2; with 3 they would be 11
    kept.put(5, 1)
    kept.put(6, 6)
    assert len(kept) == 4
    kept.put(7, 1)
    assert [kept.get(key, lambda: -1) for key in (5, 6, 7)] == [1, 6, 1]


def test_what_fails_is_not_kept() -> None:
    kept: LruCache[float] = LruCache(2)
    try:
        kept.get(0, lambda: 1 / 0)
    except ZeroDivisionError:
        assert kept.get(0, lambda: 5.0) == 5

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

import pytest

from regard.serving.core import Key, ServiceError
from regard.serving.store import Store, usage


@pytest.fixture(autouse=True)
def _written_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "PAUSE", 3600.0)


def rows(store: Store) -> list[tuple[int, str, int]]:
    with store.database.read() as connection:
        return connection.execute("SELECT * FROM usage").fetchall()


def test_characters_count_at_once_and_are_written_together(store: Store, monkeypatch) -> None:
    monkeypatch.setattr(usage, "month", lambda: "2026-11")
    store.keys.make("a")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(store.usage.add, [0, 1] * 500, range(1000)))
    assert rows(store) == []
    assert store.usage.of(0) == sum(range(0, 1000, 2))
    store.usage.flush()
    store.usage.add(1, 1)
    store.usage.flush()
    assert rows(store) == [(0, "2026-11", 249_500), (1, "2026-11", 250_001)]
    assert store.usage.of(1) == 250_001
    monkeypatch.setattr(usage, "month", lambda: "2026-12")
    assert store.usage.of(1) == 0


def test_a_second_later_they_are_written_and_at_the_end(tmp_path: Path, monkeypatch) -> None:
    store = Store.open(tmp_path)
    store.usage.add(0, 5)
    store.close()
    store = Store.open(tmp_path)
    assert store.usage.of(0) == 5
    monkeypatch.setattr(usage, "PAUSE", 0.0)
    store.usage.add(0, 5)
    assert (timer := store.usage._timer) is None or timer.join() is None
    assert sum(row[2] for row in rows(store)) == 10
    store.close()


def test_whoever_counts_waits_for_no_disk(tmp_path: Path, monkeypatch) -> None:
    with closing(Store.open(tmp_path)) as store:
        store.usage.add(0, 5)
        begun, write = Event(), store.database.write
        with write():
            monkeypatch.setattr(store.database, "write", lambda: (begun.set(), write())[1])
            flushing = Thread(target=store.usage.flush)
            flushing.start()
            assert begun.wait(20)
            store.usage.add(0, 7)
            assert store.usage.of(0) == 12
            assert flushing.is_alive()
        flushing.join()
        assert store.usage.of(0) == 12
        store.usage.flush()
        assert [characters for _, _, characters in rows(store)] == [12]


def test_what_cannot_be_written_now_is_kept(store: Store, monkeypatch) -> None:
    store.usage.add(0, 5)
    with monkeypatch.context() as patch:
        patch.setattr(store.database, "write", raises)
        store.usage.flush()
    assert rows(store) == []
    store.usage.flush()
    assert rows(store)[0][2] == 5


def raises() -> None:
    raise ServiceError(503, "the database is busy")


def test_a_key_that_was_revoked_takes_no_other_with_it(store: Store) -> None:
    store.keys.make("a")
    store.usage.add(1, 7)
    store.usage.add(0, 5)
    store.keys.revoke("a")
    store.usage.flush()
    assert [(key, characters) for key, _, characters in rows(store)] == [(0, 5)]


def test_what_is_asked_for_is_kept_for_who_asks(store: Store) -> None:
    store.keys.make("a", 1000)
    key, said = Key(1, "a", 1000), "960 characters asked for, and 40 characters of this month left"
    with store.usage.reserve(key, 960):
        with pytest.raises(ServiceError, match=said) as raised, store.usage.reserve(key, 960):
            pass
        assert raised.value.status == 456
        assert store.usage.of(1) == 0
    with pytest.raises(ZeroDivisionError), store.usage.reserve(key, 960) as count:
        count(400 + 1 // 0)
    with store.usage.reserve(key, 960) as count:
        count(400)
        count(1)
        with pytest.raises(ServiceError, match="and 40 characters"), store.usage.reserve(key, 41):
            pass
    store.usage.flush()
    with pytest.raises(ServiceError, match="600 characters asked for, and 599"), store.usage.reserve(key, 600):
        pass
    with store.usage.reserve(key, 599) as count:
        count(599)
    assert store.usage.of(1) == 1000
    with store.usage.reserve(Key(), 1 << 40), store.usage.reserve(Key(), 1 << 40):
        pass


def test_threads_have_all_that_a_key_may_and_no_more(store: Store) -> None:
    store.keys.make("a", 100)

    def ask(_: int) -> None:
        with suppress(ServiceError), store.usage.reserve(Key(1, "a", 100), 1) as count:
            count(1)
            store.usage.flush()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(200)))
    assert store.usage.of(1) == 100


def test_what_is_being_written_is_seen_once(tmp_path: Path, monkeypatch) -> None:
    with closing(Store.open(tmp_path)) as store, ThreadPoolExecutor(1) as pool:
        store.usage.add(0, 5)
        write, seen = store.database.write, []

        @contextmanager
        def slow() -> Iterator[sqlite3.Connection]:
            with write() as connection:
                yield connection
            seen.append(pool.submit(store.usage.of, 0))
            wait(seen, 0.1)

        with monkeypatch.context() as patch:
            patch.setattr(store.database, "write", slow)
            store.usage.flush()
        assert seen[0].result() == 5

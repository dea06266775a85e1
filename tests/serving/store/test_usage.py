from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

import pytest

from regard.serving.core import ServiceError
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

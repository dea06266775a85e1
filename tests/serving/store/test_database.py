"""The file: its modes, its format, faults in one sentence; threads and processes that use it at once."""

import multiprocessing
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from regard.serving.core import ServiceError
from regard.serving.store import Store, data_folder, database
from regard.serving.store.database import NAME, Database
from regard.system.errors import RegardError


@contextmanager
def plain(folder: Path) -> Iterator[sqlite3.Connection]:
    """The file as SQLite has it."""
    with closing(sqlite3.connect(folder / NAME, isolation_level=None)) as connection:
        yield connection


def test_the_file_is_its_owners_alone_and_ready_for_readers_and_writers(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "data"
    with closing(Store.open(folder)) as store:
        store.keys.make("a")
        assert {path.name for path in folder.iterdir()} == {NAME, f"{NAME}-wal", f"{NAME}-shm"}
        assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (folder / NAME).chmod(0o644)
    with closing(Store.open(folder)) as store, plain(folder) as connection:
        assert store.keys.needed
        assert stat.S_IMODE((folder / NAME).stat().st_mode) == 0o600
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert connection.execute("PRAGMA user_version").fetchone() == (len(database.MIGRATIONS),)


def test_a_folder_is_that_of_the_users_data(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert data_folder(None) == tmp_path / "regard"
    assert data_folder(Path("here")) == Path("here")
    monkeypatch.setenv("XDG_DATA_HOME", "no/absolute/path")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert data_folder(None) == tmp_path / "home" / ".local" / "share" / "regard"


@pytest.mark.parametrize("content", [b"no database at all, but longer than its header is", b"SQLite format 3\0" * 99])
def test_what_is_no_database_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(RegardError, match=r"regard\.sqlite: is damaged, or no database; move it away"):
        Store.open(tmp_path)
    assert (tmp_path / NAME).read_bytes() == content


def test_a_damaged_database_is_refused(tmp_path: Path) -> None:
    with closing(Store.open(tmp_path)) as store:
        for number in range(300):
            store.keys.make(f"{number} {'x' * 90}")
    content = bytearray((tmp_path / NAME).read_bytes())
    assert len(content) > 1 << 16
    content[-20_000:] = bytes(20_000)
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(RegardError, match="is damaged, or no database"):
        Store.open(tmp_path)


def test_a_file_that_cannot_be_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    with pytest.raises(RegardError, match="is a folder; a file is needed"):
        Store.open(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(RegardError, match="cannot be opened"):
        Store.open(tmp_path / "file")


def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    with plain(tmp_path) as connection:
        connection.execute("CREATE TABLE bookmarks (name)")
    with pytest.raises(RegardError, match="is the database of another program"):
        Store.open(tmp_path)


def test_a_newer_format_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    with plain(tmp_path) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(RegardError, match=r"is of a newer Regard \(format 99, this one knows 1\)"):
        Store.open(tmp_path)
    with plain(tmp_path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (99,)


def test_an_older_format_is_migrated_at_once_or_not_at_all(monkeypatch, tmp_path: Path) -> None:
    with closing(Store.open(tmp_path)) as store:
        secret = store.keys.make("a")
    first, second = database.MIGRATIONS[0], "ALTER TABLE keys ADD COLUMN note TEXT;"
    monkeypatch.setattr(database, "MIGRATIONS", (first, f"{second} ALTER TABLE missing ADD COLUMN b;"))
    with pytest.raises(RegardError, match="cannot be opened: no such table: missing"):
        Store.open(tmp_path)
    with plain(tmp_path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert "note" not in str(connection.execute("SELECT sql FROM sqlite_master").fetchall())
    monkeypatch.setattr(database, "MIGRATIONS", (first, second))
    with closing(Store.open(tmp_path)) as store, plain(tmp_path) as connection:
        assert store.keys.find(secret)
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
        assert connection.execute("SELECT note FROM keys").fetchall() == [(None,), (None,)]


def test_threads_see_the_same_and_lose_no_change(store: Store) -> None:
    with ThreadPoolExecutor(8) as pool:
        secrets = list(pool.map(store.keys.make, map(str, range(64))))
        found = list(pool.map(store.keys.find, secrets))
    assert [key and key.name for key in found] == list(map(str, range(64)))
    assert len(store.keys.all()) == 64


def make(folder: Path, name: str) -> None:
    with closing(Store.open(folder)) as store:
        store.keys.make(name)


def test_processes_may_begin_at_once(tmp_path: Path) -> None:
    """The first of them makes the file."""
    spawned = multiprocessing.get_context("fork")
    some = [spawned.Process(target=make, args=(tmp_path / "data", str(number))) for number in range(6)]
    for one in some:
        one.start()
    for one in some:
        one.join(60)
    assert [one.exitcode for one in some] == [0] * 6
    with closing(Store.open(tmp_path / "data")) as store:
        assert [key.name for key in store.keys.all()] == list("012345")


def write(base: Database, *statements: str) -> None:
    with base.write() as connection:
        for statement in statements:
            connection.execute(statement)


def test_a_transaction_that_fails_changes_nothing(store: Store) -> None:
    store.keys.make("a")
    with pytest.raises(sqlite3.IntegrityError):
        write(store.database, "DELETE FROM keys WHERE name = 'a'", "INSERT INTO keys SELECT * FROM keys")
    assert [key.name for key in store.keys.all()] == ["a"]


def test_a_file_that_others_hold_is_busy_for_a_while(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setattr(database, "PATIENCE", 0.01)
    with closing(Store.open(tmp_path)) as store, plain(tmp_path) as other:
        secret = store.keys.make("a")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ServiceError, match="the database is busy") as raised:
            store.keys.make("b")
        assert (raised.value.status, raised.value.retry_after) == (503, 1)
        assert store.keys.find(secret), "who only reads waits for nobody, and the day can be noted later"
        other.execute("ROLLBACK")
        store.keys.make("b")


def test_a_disk_without_room_and_a_damage_are_sentences(tmp_path: Path) -> None:
    full = "PRAGMA max_page_count = 1", "INSERT INTO keys VALUES (1, 'a', randomblob(9000000), NULL, '', NULL)"
    with closing(Database(tmp_path / NAME)) as base:
        with pytest.raises(ServiceError, match="disk is full") as raised:
            write(base, *full)
        assert raised.value.status == 507
        with pytest.raises(ServiceError, match="has a fault") as raised:
            write(base, "SELECT nothing_there")
        assert raised.value.status == 500


def test_nothing_is_asked_of_one_that_is_closed(store: Store) -> None:
    store.close()
    with pytest.raises(ServiceError, match="the server ends"):
        store.keys.all()


def test_a_folder_that_is_gone_or_another_is_written_no_more(tmp_path: Path) -> None:
    folder, said = tmp_path / "data", "the data folder was removed or replaced; start the server anew"
    with closing(Store.open(folder)) as store:
        secret = store.keys.make("a")
        shutil.copytree(folder, tmp_path / "copy")
        folder.rename(tmp_path / "aside")
        for change in (lambda: None, lambda: (tmp_path / "copy").rename(folder)):
            change()
            for act in (store.keys.all, lambda: store.keys.make("b"), store.database.empty_log):
                with pytest.raises(ServiceError, match=said) as raised:
                    act()
                assert raised.value.status == 503
            store.usage.add(0, 5)
            store.usage.flush()
        shutil.rmtree(folder)
        (tmp_path / "aside").rename(folder)
        assert store.keys.find(secret), "the same folder is back"
        assert store.usage.of(0) == 10

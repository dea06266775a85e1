"""The numbered file layer."""

import errno
import fcntl
import hashlib
import os
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from regard.system.errors import RegardError
from regard.training.checkpoints import files
from regard.training.checkpoints.files import Entry, Files, alone, leftovers, partial_path
from tests.refusals import refused
from tests.training.toy import Killer, in_child


def broken(number, work, path):
    """Where the disk fails at operation ``number``, the error names this path."""

    class Broken(Files):
        def before(self, operation, path):
            super().before(operation, path)
            if self.number == number:
                raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError) as caught:
        work(Broken())
    assert caught.value.filename == str(path)


def test_write_hashes_what_it_writes_and_never_overwrites(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "PIECE", 5)
    content, written = b"attention is all you need", Files()
    entry = written.write(tmp_path / "a", [content[:7], memoryview(content[7:])])
    assert (tmp_path / "a").read_bytes() == content
    assert entry == Entry(len(content), hashlib.sha256(content).hexdigest())
    assert written.number == 1 + (2 + 4) + 1  # create, pieces of at most five bytes, fsync
    with pytest.raises(FileExistsError):
        Files().write(tmp_path / "a", [b"x"])
    assert (tmp_path / "a").read_bytes() == content


@pytest.mark.one_of(2)
@pytest.mark.parametrize("number", range(1, 7))
@pytest.mark.parametrize("middle", [False, True])
def test_replace_killed_anywhere_is_old_or_new(tmp_path, number, middle):
    place = tmp_path / "a"
    place.write_bytes(b"old")
    code = in_child(lambda: Killer(number, middle).replace(place, [b"new content"]))
    assert place.read_bytes() == (b"new content" if number > 4 or code == 0 else b"old")
    assert code == (137 if number <= (5 if not middle else 2) and (not middle or number == 2) else 0)


@pytest.mark.one_of(2)
@pytest.mark.parametrize(("number", "middle"), [(2, False), (2, True), (3, False), (4, False)])
def test_replace_removes_what_a_killed_process_left(tmp_path, number, middle):
    place = tmp_path / "a"
    for fatal in (Killer(number, middle), Killer(1)):  # the second while it removes that
        assert in_child(lambda fatal=fatal: fatal.replace(place, [b"new"])) == 137
        assert [path.name[:10] for path in tmp_path.iterdir()] == [".a.partial"]
    Files().replace(place, [b"new"])
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_replace_interrupted_leaves_nothing_behind(tmp_path):
    """By Ctrl-C before the new file takes its place."""

    class Interrupted(Files):
        def rename(self, old, new):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Interrupted().replace(tmp_path / "a", [b"new"])
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_nothing_behind_and_names_what_was_being_written(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    for number in range(1, 5):
        broken(number, lambda files: files.replace(tmp_path / "a", [b"new"]), tmp_path / "a")
        assert [p.name for p in tmp_path.iterdir()] == ["a"]
        assert (tmp_path / "a").read_bytes() == b"old"
    for number in (2, 3):
        broken(number, lambda files, path=tmp_path / f"a{number}": files.write(path, [b"new"]), tmp_path / f"a{number}")
    broken(1, lambda files: files.fsync_folder(tmp_path), tmp_path)


def test_remove_takes_a_whole_tree_but_no_link_target(tmp_path):
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("x")
    (tmp_path / "gone" / "inner").mkdir(parents=True)
    (tmp_path / "gone" / "inner" / "file").write_text("x")
    (tmp_path / "gone" / "link").symlink_to(tmp_path / "kept")
    Files().remove(tmp_path / "gone")
    assert not (tmp_path / "gone").exists()
    assert (tmp_path / "kept" / "file").exists()


def test_a_second_holder_is_refused_and_a_killed_one_holds_nothing(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(files, "_PAUSE", 0)

    def held() -> AbstractContextManager[None]:
        return alone(tmp_path / "lock", "somebody is at work", tmp_path)

    def killed() -> None:
        with held():
            os._exit(137)

    assert in_child(killed) == 137
    with held(), refused(RegardError, tmp_path), held():
        pass
    with held():
        pass


def test_who_only_asks_whether_a_lock_is_held_refuses_nobody(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "lock").touch()
    asking = open(tmp_path / "lock", "rb")  # noqa: SIM115
    fcntl.flock(asking, fcntl.LOCK_SH)
    monkeypatch.setattr(files.time, "sleep", lambda seconds: asking.close())
    with alone(tmp_path / "lock", "somebody is at work", tmp_path):
        assert asking.closed


def test_what_is_being_made_is_left_alone_and_what_was_killed_is_removed(tmp_path: Path) -> None:
    place = tmp_path / "a[1]*"
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()

    def killed() -> None:
        with partial_path(place, Path.mkdir) as fresh:
            (fresh / "file").write_text("half")
            (fresh / "link").symlink_to(tmp_path / "kept")
            os._exit(137)

    assert in_child(killed) == 137
    (tmp_path / f".a[1]*.partial-{'0' * 32}").symlink_to(tmp_path / "kept")
    others = {".a[1]*.partial-next", ".b.partial-" + "0" * 32, "kept"}  # of a model folder, and of another file
    for name in others - {"kept"}:
        (tmp_path / name).touch()
    with partial_path(place, Path.touch) as fresh:
        assert list(leftovers(tmp_path / "a1")) == []
        Files().sweep(place)
        left = {path.name for path in tmp_path.iterdir()}
    assert left - others - {fresh.name} == {f".a[1]*.partial-{'0' * 32}"}  # a link may lead anywhere
    assert fresh.name in left
    assert (tmp_path / "kept" / "file").exists()


def test_what_somebody_removes_before_it_is_locked_is_made_again(tmp_path: Path) -> None:
    made: list[Path] = []

    def make(path: Path) -> None:
        made.append(path)
        if len(made) > 2:
            path.touch()

    with partial_path(tmp_path / "a", make) as fresh:
        assert (fresh, len(set(made))) == (made[2], 3)


def test_where_there_are_no_locks_nothing_is_taken_for_a_killed_ones(tmp_path: Path, monkeypatch) -> None:
    def refuses(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuses)
    with partial_path(tmp_path / "a", Path.touch) as fresh:
        Files().sweep(tmp_path / "a")
        assert fresh.exists()
    monkeypatch.setattr(files, "fcntl", None)
    Files().sweep(tmp_path / "a")
    assert fresh.exists()
    with alone(tmp_path / "lock", "", tmp_path), alone(tmp_path / "lock", "", tmp_path):
        pass

"""Locks: a second holder is refused, what is being made is left alone, and what was killed is found."""

import fcntl
import os
from contextlib import AbstractContextManager
from pathlib import Path

from regard.system.errors import RegardError
from regard.training.checkpoints import files
from regard.training.checkpoints.files import Files, alone, leftovers, partial_path
from tests.refusals import refused
from tests.training.toy import in_child


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
        assert fresh == made[2]
    assert len(set(made)) == 3


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

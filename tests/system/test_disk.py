"""What is read from outside is a regular file of bounded size; a fault of the disk names its file."""

import errno
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from regard.system import disk
from regard.system.errors import Damaged, RegardError, UsageError
from tests.refusals import refused

READERS: dict[str, Callable[[Path], Any]] = {
    "content": disk.content,
    "json": disk.json_of,
    "opened": lambda path: disk.open_binary(path).__enter__(),
    "refused": disk.refuse_irregular,
}


def bound_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as held:
        held.bind(str(path))


def linked_pipe(path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to("pipe")


ODD: dict[str, tuple[Callable[[Path], None], str]] = {
    "folder": (Path.mkdir, "is a folder"),
    "pipe": (os.mkfifo, "is a pipe"),
    "socket": (bound_socket, "is a socket"),
    "endless": (lambda path: path.symlink_to("/dev/zero"), "is a device"),
    "linked pipe": (linked_pipe, "is a pipe"),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", ODD)
def test_what_is_no_file_is_not_opened(tmp_path: Path, kind: str, reader: str) -> None:
    make, what = ODD[kind]
    make(tmp_path / "a.json")
    with pytest.raises(RegardError) as caught:
        READERS[reader](tmp_path / "a.json")
    assert (caught.value.where, caught.value.message) == (str(tmp_path / "a.json"), f"{what}; a file is needed")


def sparse(path: Path) -> Path:
    """A file that has 64 GB and no block of a disk."""
    path.touch()
    os.truncate(path, 64 << 30)
    return path


def test_what_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, open_binary = sparse(tmp_path / "a.json"), disk.open_binary

    @contextmanager
    def unread(*given: Any) -> Iterator[Any]:
        with open_binary(*given) as stream:
            yield SimpleNamespace(fileno=stream.fileno, read=lambda most: pytest.fail(f"{most} bytes are read"))

    monkeypatch.setattr(disk, "open_binary", unread)
    for read in (disk.content, disk.json_of):
        with refused(RegardError, path, "64 MB", "a.json"):
            read(path)
    with refused(RegardError, path):
        disk.content(path, 32 << 30)  # more than the memory of most machines
    assert not disk.holds(path, b"{}")


def test_a_file_holds_what_it_holds(tmp_path: Path) -> None:
    (path := tmp_path / "a").write_bytes(b"abc")
    assert [disk.holds(path, content) for content in (b"abc", b"abd", b"ab", b"abcd")] == [True, False, False, False]
    assert not disk.holds(tmp_path / "absent", b"")
    assert not disk.holds(tmp_path, b"")


@pytest.mark.parametrize("error", [UsageError, Damaged])
def test_what_is_missing_is_said_by_its_kind(tmp_path: Path, error: type[RegardError]) -> None:
    (tmp_path / "link").symlink_to("nothing")
    for name in ("absent", "link"):
        with refused(error, tmp_path / name):
            disk.content(tmp_path / name, kind="recipe file", error=error)
    with refused(RegardError, "inner"):
        disk.content(Path(__file__) / "inner")
    with refused(RegardError, "a\x00b"):
        disk.content("a\0b")


def test_no_more_is_read_than_a_file_may_have_and_a_link_to_it_is_as_good(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("1".rjust(1001))
    (tmp_path / "link").symlink_to("file")
    assert (len(disk.content(tmp_path / "link", 1001)), disk.json_of(tmp_path / "link")) == (1001, 1)
    with refused(RegardError, "file", "0"):
        disk.content(tmp_path / "file", 1000, "recipe")


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff", b'{"a": 1}}', b"[" * 100_000, b"9" * 5000, b'{"a": ' * 100_000, b"nope"]
)
def test_what_is_no_json_is_one_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with refused(Damaged, "a.json") as caught:
        disk.json_of(tmp_path / "a.json", error=Damaged)
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)


def test_names_of_files_in_a_folder() -> None:
    assert all(map(disk.is_plain, ["a", "a.b", "...", "ä ö", " ", "-"]))
    assert not any(map(disk.is_plain, ["", ".", "..", "a/b", "/", "/a", "a\0", "\ud800", None, 5, ["a"]]))


def test_a_fault_of_the_disk_names_its_file() -> None:
    for own, found in (((), "somewhere"), (("itself",), "itself")):
        with pytest.raises(OSError) as caught, disk.naming(Path("somewhere")):
            raise OSError(errno.ENOSPC, "No space left on device", *own)
        assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, found)

"""Only a line feed ends a line; everything else is text, mended or refused with its place."""

import errno
import gzip
import io
import lzma
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from regard.system.errors import RegardError
from regard.text.lines import InvalidLines, decode_lines, lines
from tests.data.corpora.packed import PACKED
from tests.refusals import refused


def read(content: bytes, notes: InvalidLines | None = None) -> list[str]:
    return list(decode_lines(io.BytesIO(content), notes))


def test_a_disk_that_fails_is_not_called_a_damaged_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")

    def fails(stream: BinaryIO) -> Iterator[bytes]:
        yield b"one\n"
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("regard.text.lines.whole_lines", fails)
    with refused(RegardError, "a.txt:2", "Input/output"):
        list(lines(tmp_path / "a.txt"))
    if Path("/proc/self/mem").exists():
        with refused(RegardError, "/proc/self/mem", "Input/output"):
            list(lines("/proc/self/mem"))


ENDS = [
    (b"", []),
    (b"\n", [""]),
    (b"a", ["a"]),
    (b"a\n", ["a"]),
    (b"a\r\nb\r\n", ["a", "b"]),
    (b"a\r\r\n", ["a\r"]),
    (b"\xef\xbb\xbfa\n\xef\xbb\xbfb", ["a", "\ufeffb"]),
    (b"\xef\xbb\xbf", []),
    (b"\xef\xbb\xbf\nb", ["", "b"]),
    (b"a\0b\n", ["a\0b"]),
    ("a\u2028b\x0bc\x0cd\x85e\rf\n\ng".encode(), ["a\u2028b\x0bc\x0cd\x85e\rf", "", "g"]),
]


@pytest.mark.parametrize(("content", "expected"), ENDS)
def test_ends_marks_and_carriage_returns(content: bytes, expected: list[str]) -> None:
    assert read(content) == expected


def test_invalid_bytes_are_replaced_and_noted_with_their_line() -> None:
    notes = InvalidLines(kept=2)
    assert read(b"ok\nf\xfcr\n\xff\n\xe4\n", notes) == ["ok", "f\ufffdr", "\ufffd", "\ufffd"]
    assert (notes.invalid, notes.invalid_lines) == (3, [2, 3])


@given(st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=("Cs",))), max_size=20))
def test_what_was_written_is_read(texts: list[str]) -> None:
    if texts and texts[0].startswith("\ufeff"):
        return
    assert read("".join(f"{text}\n" for text in texts).encode()) == texts


@pytest.mark.parametrize("ending", ["", ".gz", ".xz", ".zst"])
@pytest.mark.parametrize("named", [True, False])
def test_compression_is_known_by_content(tmp_path: Path, ending: str, named: bool) -> None:
    content = "ä b\nc\n".encode() * 3000
    parts = [content] if ending in ("", ".xz") else [content[:9], content[9:]]
    path = tmp_path / f"train.en{ending if named else ''}"
    path.write_bytes(b"".join(map(PACKED[ending], parts)))
    assert list(lines(path)) == ["ä b", "c"] * 3000


@pytest.mark.one_of(3)
@pytest.mark.parametrize("ending", PACKED)
def test_a_line_that_is_too_long_is_named_while_it_is_unpacked(tmp_path: Path, ending: str) -> None:
    path, pack = tmp_path / f"long{ending}", PACKED[ending]
    limit, piece = 16 << 20, 1 << 20
    parts = [pack(b"one\n"), *[pack(b"x" * piece)] * (limit // piece), pack(b"\nthree\n")]
    path.write_bytes(b"".join(parts))
    assert [len(text) for text in lines(path)] == [3, limit, 5]
    path.write_bytes(b"".join([*parts[:-1], pack(b"x"), parts[-1]]))
    found: list[str] = []
    with refused(RegardError, f"{path}:2", "16"):
        found.extend(lines(path))
    assert found == ["one"]


def test_unpacking_takes_no_more_memory_than_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.text.lines.MEMORY", 8 << 20)
    small, large = ([{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": size << 20}] for size in (1, 16))
    (tmp_path / "a.xz").write_bytes(lzma.compress(b"a\n", filters=small))
    (tmp_path / "b.xz").write_bytes(lzma.compress(b"a\n", filters=large))
    assert list(lines(tmp_path / "a.xz")) == ["a"]
    with refused(RegardError, "b.xz:1"):
        list(lines(tmp_path / "b.xz"))


def test_xz_in_several_streams_with_zeros_between_and_rubbish_behind(tmp_path: Path) -> None:
    whole = lzma.compress(b"a\n") + b"\0" * 8 + lzma.compress(b"b\n") + lzma.compress(b"")
    for more in (b"", b"\0" * 4, b"rubbish"):
        (tmp_path / "a.xz").write_bytes(whole + more)
        assert list(lines(tmp_path / "a.xz")) == ["a", "b"]
    (tmp_path / "a.xz").write_bytes(whole[: len(whole) // 2])
    with refused(RegardError, "a.xz:2"):
        list(lines(tmp_path / "a.xz"))


def test_of_a_pipe_a_line_comes_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor(1) as pool:
        opening = pool.submit(open, tmp_path / "pipe", "wb", buffering=0)
        found = lines(tmp_path / "pipe")
        first = pool.submit(lambda: opening.result().write(b"one\n"))
        assert next(found) == "one"
        first.result()
        opening.result().write(b"two")
        opening.result().close()
        assert list(found) == ["two"]


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom", "/dev/full"])
def test_a_device_without_an_end_is_no_text(tmp_path: Path, device: str) -> None:
    (tmp_path / "link").symlink_to(device)
    for path in (device, tmp_path / "link"):
        with refused(RegardError, path):
            next(lines(path))
    assert list(lines(os.devnull)) == []


def test_what_cannot_be_read_is_said_with_its_place(tmp_path: Path) -> None:
    whole = gzip.compress(b"".join(b"%d line\n" % number for number in range(100_000)))
    cases: dict[str, tuple[bytes | None, str]] = {
        "absent.en": (None, ""),
        "cut.gz": (whole[: len(whole) // 2], ""),
        "bits.gz": (whole[:20_000] + b"\0\0\0\0" + whole[20_004:], ""),
        "head.gz": (whole[:5], ""),
        "cut.xz": (lzma.compress(b"abc\n" * 9999)[:-30], ""),
        "cut.zst": (zstandard.compress(whole)[:3] + b"\0" * 40, ".zst"),
        "plain.gz": (b"just text\n", ".gz"),
        "empty.gz": (b"", ".gz"),
        "utf16.en": ("abc\n".encode("utf-16"), "UTF-16"),
        "utf16le.en": ("some plain words\n".encode("utf-16-le") * 50, "UTF-16LE"),
        "utf16be.en": ("some plain words\n".encode("utf-16-be") * 50, "UTF-16BE"),
        "utf32.en": ("some plain words\n".encode("utf-32"), "UTF-32 "),
        "utf32be.en": (b"\0\0\xfe\xff" + "some plain words\n".encode("utf-32-be"), "UTF-32 "),
        "utf32le.en": ("some plain words\n".encode("utf-32-le") * 50, "UTF-32LE"),
        "utf32plain.en": ("some plain words\n".encode("utf-32-be") * 50, "UTF-32BE"),
        "zip.en": (b"PK\x03\x04....", "zip"),
        "binary.en": (bytes(range(256)) * 4 + b"\0" * 400, ""),
    }
    for name, (content, names) in cases.items():
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        with refused(RegardError, None, str(path), names):
            list(lines(path))
    with refused(RegardError, tmp_path):
        list(lines(tmp_path))

"""Zip archives: documents of several members, unpacked within limits; what is not translated stays as it was."""

from __future__ import annotations

import struct
import zipfile
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from io import BytesIO
from typing import TypeVar

from regard.documents.segment import Segment, SegmentTranslation, TextDocument
from regard.system.errors import RegardError

T = TypeVar("T")
MEMBERS = 20_000
LARGEST = 1 << 30
"""Bytes of all members, unpacked."""
RATIO = 200
"""How many times its packed size an archive may have, from 64 MiB on."""
LARGEST_PART = 1 << 26
"""Bytes of a member whose text is read."""
_BAD = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    IndexError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
)


class Archive:
    """The members of a zip archive; each was unpacked once, so that its size is known and its sum is right.

    Args:
        data: of the archive.

    Attributes:
        names: of the members, in their order.

    Raises:
        RegardError: it is none, is damaged, encrypted, or larger than the limits.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        with _refusing():
            self._zip = zipfile.ZipFile(BytesIO(data))
        members = self._zip.infolist()
        self._members = {member.filename: member for member in members}
        self.names = list(self._members)
        if len(members) > MEMBERS:
            raise RegardError(f"has {len(members)} members; {MEMBERS} is the limit")
        if len(members) > len(self._members):
            raise RegardError("has two members of one name")
        left = min(LARGEST, max(LARGEST_PART, RATIO * len(data)))
        for name in self.names:
            with _refusing(name):
                left -= self._size(name, left)

    def read(self, name: str) -> bytes:
        """A member's bytes.

        Raises:
            RegardError: there is no such member, or it is too large for one whose text is read.
        """
        if name not in self._members:
            raise RegardError(f"has no member {name!r:.200}")
        if self._members[name].file_size > LARGEST_PART:
            raise RegardError(f"has more than {LARGEST_PART >> 20} MiB", name)
        return self._zip.read(name)

    def contains(self, name: str, wanted: bytes) -> bool:
        """Whether a member of any size has some bytes."""
        last = b""
        with self._zip.open(name) as stream:
            while some := stream.read(1 << 20):
                if wanted in last + some:
                    return True
                last = some[-len(wanted) :]
        return False

    def document(self, readers: Mapping[str, Callable[[bytes], TextDocument]]) -> ArchiveDocument:
        """The document whose segments some members have.

        Args:
            readers: of these members, by their names, in the order of their segments.
        """
        return ArchiveDocument(self, {name: self.part(name, read) for name, read in readers.items()})

    def part(self, name: str, read: Callable[[bytes], T]) -> T:
        """What a function reads of a member; it is named in errors."""
        try:
            return read(self.read(name))
        except RegardError as error:
            where = error.where if error.where == name else f"{name}, {error.where}" if error.where else name
            raise RegardError(error.message, where) from None

    def write(self, changed: Mapping[str, bytes]) -> bytes:
        """The archive with other bytes of some members; with none it is the same, byte for byte.

        Members keep their order, compression, dates, attributes and comments, but no extra fields.
        """
        if not changed:
            return self._data
        buffer = BytesIO()
        with zipfile.ZipFile(buffer, "w") as written:
            written.comment = self._zip.comment
            for name, member in self._members.items():
                new = copy(member)
                new.extra = b""
                written.writestr(new, changed[name] if name in changed else self._zip.read(name))
                new.external_attr = member.external_attr
        return buffer.getvalue()

    def _size(self, name: str, most: int) -> int:
        member, size = self._members[name], 0
        if member.flag_bits & 1:
            raise RegardError("is encrypted; save the document without a password", name)
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise RegardError("is packed in a way that documents do not use", name)
        with self._zip.open(member) as stream:
            while some := stream.read(1 << 16):
                size += len(some)
                if size > most:
                    raise RegardError("is too large when unpacked, as a zip bomb is", name)
        if size != member.file_size:
            raise RegardError("is damaged: its size is not that in the list of members", name)
        return size


class ArchiveDocument:
    """A document whose segments stand in several members of an archive; their numbers run through all.

    Args:
        archive: with all members.
        parts: the members that have segments, in the order of these.
    """

    def __init__(self, archive: Archive, parts: Mapping[str, TextDocument]) -> None:
        self._archive, self._parts = archive, parts
        self.segments: list[Segment] = []
        self._begins: list[int] = []
        for name, part in parts.items():
            self._begins.append(len(self.segments))
            self.segments += [replace(one, where=f"{name}, {one.where}") for one in part.segments]

    def write(self, translations: Mapping[int, SegmentTranslation]) -> bytes:
        """As :class:`Document` has it."""
        of_part: dict[int, dict[int, SegmentTranslation]] = {}
        for number, translation in translations.items():
            part = bisect_right(self._begins, number) - 1
            of_part.setdefault(part, {})[number - self._begins[part]] = translation
        names = list(self._parts)
        return self._archive.write({names[n]: self._parts[names[n]].write(some) for n, some in of_part.items()})


@contextmanager
def _refusing(name: str | None = None) -> Iterator[None]:
    try:
        yield
    except _BAD as error:
        raise RegardError(f"is no zip archive, or is damaged: {error!s:.200}", name) from None

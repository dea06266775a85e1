import random
import struct
import zipfile
from contextlib import suppress
from io import BytesIO

import pytest

from regard.documents.archive import LARGEST_PART, MEMBERS, Archive
from regard.documents.formats import text
from regard.documents.segment import SegmentTranslation
from regard.system.errors import RegardError


def packed(members: dict[str, bytes], how: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An archive with unusual dates, attributes and comments."""
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.comment = b"all of it"
        for number, (name, data) in enumerate(members.items()):
            info = zipfile.ZipInfo(name, (1987, 6, 5, 4, 3, 2 * number % 60))
            info.compress_type = zipfile.ZIP_STORED if number == 0 else how
            info.external_attr, info.comment, info.create_system = number << 16, b"of one", number % 4
            archive.writestr(info, data)
            info.external_attr = number << 16
    return buffer.getvalue()


def described(data: bytes) -> list[tuple[object, ...]]:
    """The members with all that is kept of them."""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        assert archive.testzip() is None
        kept = "filename date_time compress_type external_attr internal_attr comment create_system".split()
        ones = archive.infolist()
        return [(archive.comment, *(getattr(one, name) for name in kept), archive.read(one)) for one in ones]


MEMBERS_OF_ONE = {"mimetype": b"text", "a/": b"", "a/ü.txt": b"One.\n\nTwo.", "../b.txt": b"Three.", "c.png": bytes(99)}


def test_what_is_not_translated_stays_as_it_was() -> None:
    data = packed(MEMBERS_OF_ONE)
    document = Archive(data).document({"../b.txt": text.read, "a/ü.txt": text.read})
    assert document.write({}) is data
    where = [("Three.", "../b.txt, line 1"), ("One.", "a/ü.txt, line 1"), ("Two.", "a/ü.txt, line 3")]
    assert [(one.text, one.where) for one in document.segments] == where
    written = described(document.write({2: SegmentTranslation("Zwei.")}))
    expected = described(data)
    expected[2] = (*expected[2][:-1], b"One.\n\nZwei.")
    assert written == expected


def test_a_member_that_is_refused_is_named() -> None:
    archive = Archive(packed({"a": b"", "b.txt": b"\xff\xfe\xff"}))
    with pytest.raises(RegardError, match=r"b\.txt"):
        archive.document({"b.txt": text.read})
    with pytest.raises(RegardError, match="no member 'none'"):
        archive.document({"none": text.read})


def test_bombs_are_refused_before_they_are_unpacked() -> None:
    with pytest.raises(RegardError, match="zip bomb"):
        Archive(packed({"a": b"", "b": bytes(LARGEST_PART + 1)}))
    with pytest.raises(RegardError, match=f"{MEMBERS + 1} members"):
        Archive(packed(dict.fromkeys(map(str, range(MEMBERS + 1)), b"")))
    noise = random.Random(1).randbytes(LARGEST_PART // 100) + bytes(LARGEST_PART)
    with pytest.raises(RegardError, match="b: has more than 64 MiB"):
        Archive(packed({"a": b"", "b": noise})).read("b")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused() -> None:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a", b"1")
        archive.writestr("a", b"2")
    with pytest.raises(RegardError, match="two members"):
        Archive(buffer.getvalue())


def test_encrypted_members_and_other_ways_to_pack_are_refused() -> None:
    data = packed({"a": b"some text"})
    central = data.rindex(b"PK\x01\x02")
    for at, value, message in ((8, 1, "encrypted"), (10, 12, "packed in a way")):
        changed = bytearray(data)
        changed[central + at] = value
        with pytest.raises(RegardError, match=message):
            Archive(bytes(changed))


def test_a_list_of_members_that_lies_is_refused() -> None:
    data = packed({"a": b"text", "b": b"some text" * 50})
    central = data.rindex(b"PK\x01\x02")
    for size in (1, 451, 0xFFFFFFFE):
        lying = bytearray(data)
        struct.pack_into("<I", lying, central + 24, size)
        with pytest.raises(RegardError, match="damaged"):
            Archive(bytes(lying))


def test_members_that_overlap_are_not_unpacked_without_end() -> None:
    """As a bomb of David Fifield: all names have the same bytes."""
    data = packed({"aaaa": random.Random(1).randbytes(100) + bytes(LARGEST_PART // 3)}, zipfile.ZIP_DEFLATED)
    at = data.index(b"PK\x01\x02")
    end = data.index(b"PK\x05\x06")
    entries = b"".join(data[at:end].replace(b"aaaa", b"%04d" % n) for n in range(9))
    tail = bytearray(data[end:])
    struct.pack_into("<HHII", tail, 8, 9, 9, len(entries), at)
    with pytest.raises(RegardError):
        Archive(data[:at] + entries + bytes(tail))


def test_damage_is_refused_or_does_no_harm() -> None:
    data, draw = packed(MEMBERS_OF_ONE), random.Random(1)
    cut = [data[: draw.randrange(len(data))] for _ in range(50)]
    flipped = [bytearray(data) for _ in range(300)]
    for one in flipped:
        one[draw.randrange(len(one))] ^= 1 << draw.randrange(8)
    for one in (*cut, *map(bytes, flipped), b"", b"PK"):
        with suppress(RegardError):
            document = Archive(one).document({"a/ü.txt": text.read})
            document.write({0: SegmentTranslation("Eins.")})

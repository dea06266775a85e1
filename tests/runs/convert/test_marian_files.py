"""Marian's containers give what was written; hostile files end in one sentence."""

import random
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from regard.runs.convert.marian_files import parse_settings, parse_vocabulary, read_marian_file
from regard.system.errors import RegardError
from tests.refusals import refused
from tests.runs.convert import marian_folders as folders

yaml = pytest.importorskip("yaml")
MODEL = b"type: transformer\0"
TENSORS = {"a_W": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.ones((1, 4), np.float32)}


def written(content: bytes, path: Path) -> Path:
    path.write_bytes(content)
    return path


def test_what_was_written_is_read(tmp_path: Path) -> None:
    meant, content = folders.binary(TENSORS, MODEL)
    held = {**TENSORS, "turned": np.asfortranarray(TENSORS["a_W"]), "special:model.yml": np.frombuffer(MODEL, np.int8)}
    there = read_marian_file(written(content, tmp_path / "model.bin"))
    other = read_marian_file(written(folders.npz(held), tmp_path / "model.npz"))
    for (found, settings), expected in ((there, meant), (other, {**TENSORS, "turned": TENSORS["a_W"]})):
        assert settings.values == {"type": "transformer"}
        assert found.keys() == expected.keys()
        assert all(np.array_equal(found[name], array) for name, array in expected.items())


def test_settings_are_those_of_yaml() -> None:
    settings = {
        **folders.SETTINGS,
        "vocabs": ["a.spm", "b.spm"],
        "dims": [32000, 7],
        "x": 2.5,
        "n": "~",
        "q": "'it''s'",
    }
    text = "# made by Marian\n---\n" + folders.yaml(settings) + "\nflow: [1, two]\n"
    assert parse_settings(text.encode(), "here").values == yaml.safe_load(text)
    for wrong in ("a: 1\n  b: 2", "no setting", "\xff", "  - \n:"):
        with refused(RegardError, "here"):
            parse_settings(wrong.encode("latin-1"), "here")


def test_vocabularies_are_those_of_yaml() -> None:
    lines = ['"</s>": 0', "plain: 1", "'it''s': 2", r'"\"": 3', r'"\\": 4', r'"\x85\u00e9\U0001F600": 5', "▁the: 6"]
    text = "\n".join(lines)
    assert parse_vocabulary(text.encode(), "here") == yaml.safe_load(text)
    assert parse_vocabulary("a\x85b: 1\n:: 2\n=: 3".encode(), "here") == {"a\x85b": 1, ":": 2, "=": 3}
    with refused(RegardError, "here:2"):
        parse_vocabulary(b"a: 1\nb: x", "here")


Entry = tuple[str, int, tuple[int, ...], bytes]
ENTRY: Entry = ("special:model.yml", 0x101, (len(MODEL),), MODEL)
LIES: dict[str, bytes] = {
    "nothing": b"",
    "version": folders.entries_file([ENTRY], version=2),
    "many": struct.pack("<2Q", 1, 1 << 60),
    "long name": struct.pack("<6Q", 1, 1, 1 << 62, 0x404, 1, 4),
    "many dimensions": struct.pack("<6Q", 1, 1, 2, 0x404, 1 << 61, 4),
    "type": folders.entries_file([ENTRY, ("a", 0x802, (1,), bytes(4))]),
    "larger": folders.entries_file([ENTRY, ("a", 0x404, (1 << 30, 1 << 30), bytes(4))]),
    "negative": folders.entries_file([ENTRY, ("a", 0x404, (-1, -1), bytes(4))]),
    "empty": folders.entries_file([ENTRY, ("a", 0x404, (0, (1 << 31) - 1, (1 << 31) - 1), b"")]),
    "dimensions": folders.entries_file([ENTRY, ("a", 0x404, (1,) * 99, bytes(4))]),
    "no multiplier": folders.entries_file([ENTRY, ("a", 0x4101, (4,), bytes(4))]),
    "zero multiplier": folders.entries_file([ENTRY, ("a", 0x4101, (4,), bytes(8))]),
    "no settings": folders.entries_file([("a", 0x404, (1,), bytes(4))]),
}


@pytest.mark.parametrize("lie", LIES)
def test_binaries_that_lie_are_refused(lie: str, tmp_path: Path) -> None:
    with refused(RegardError, "model.bin"):
        read_marian_file(written(LIES[lie], tmp_path / "model.bin"))


def test_archives_that_lie_are_refused(tmp_path: Path) -> None:
    held = {"special:model.yml": np.frombuffer(MODEL, np.int8)}
    bombs = {
        "packed": folders.packed_npz({**held, "a": np.zeros(1 << 20, np.float32)}),
        "objects": folders.npz({**held, "a": np.array([print], object)}),
        "words": folders.npz({**held, "a": np.array(["word"])}),
        "shape": folders.npz({**held, "a": np.zeros((2, 3), np.float32)}).replace(b"(2, 3)", b"(2, 9)"),
        "none": folders.npz({"a": np.zeros(2, np.float32)}),
        "zip": b"PK",
        "cut": folders.npz(held)[:-10],
    }
    for content in bombs.values():
        with refused(RegardError, "model.npz") as caught:
            read_marian_file(written(content, tmp_path / "model.npz"))
        assert "zip file" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("model.bin", lambda: folders.binary(TENSORS, MODEL)[1]),
        ("model.npz", lambda: folders.npz({**TENSORS, "special:model.yml": np.frombuffer(MODEL, np.int8)})),
    ],
    ids=["bin", "npz"],
)
def test_damaged_files_end_in_one_sentence(name: str, make: Callable[[], bytes], tmp_path: Path) -> None:
    whole, draws = make(), random.Random(5)
    for number in range(300):
        content = bytearray(whole)
        if number % 3 == 0:
            del content[draws.randrange(len(content)) :]
        for _ in range(draws.choice([1, 4, 30])):
            if content:
                content[draws.randrange(min(len(content), 600))] = draws.randrange(256)
        with suppress(RegardError):
            read_marian_file(written(bytes(content), tmp_path / name))

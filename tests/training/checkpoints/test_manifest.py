"""The manifest notices every change, and replacing files of a model folder is whole at every moment."""

import hashlib
import json
import os

import pytest

from regard.config import checksum
from regard.system.errors import Damaged
from regard.training.checkpoints import manifest
from regard.training.checkpoints.files import Entry, Files
from tests.refusals import refused
from tests.training.toy import Fast, Killer, in_child


@pytest.fixture
def folder(tmp_path):
    place, files = tmp_path / "step", Files()
    place.mkdir()
    entries = {name: files.write(place / name, [name.encode() * 3]) for name in ("b.json", "a.safetensors")}
    files.replace(place / manifest.NAME, [manifest.render(entries)])
    return place


def damaged(folder, where, *holds, extra=False):
    with refused(Damaged, where, *holds):
        manifest.verify(folder, extra=extra)


def test_it_says_size_and_sha256_of_each_file_and_of_itself(folder):
    raw = (folder / manifest.NAME).read_bytes()
    values = json.loads(raw)
    assert list(values) == ["format", "files", "sha256"]
    for name, entry in values["files"].items():
        content = (folder / name).read_bytes()
        assert entry == {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    before = raw[: raw.rindex(b'"' + values["sha256"].encode())]
    assert values["sha256"] == hashlib.sha256(before).hexdigest()
    manifest.verify(folder)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", ["a.safetensors", "b.json", manifest.NAME])
def test_every_single_bit_flip_every_truncation_and_a_byte_more_are_found(folder, name):
    raw = (folder / name).read_bytes()
    for bit in range(0, 8 * len(raw), 7 if len(raw) > 100 else 1):  # of the longest file a seventh, each byte
        flipped = bytearray(raw)
        flipped[bit // 8] ^= 1 << bit % 8
        (folder / name).write_bytes(flipped)
        with pytest.raises(Damaged):
            manifest.verify(folder)
    (folder / name).write_bytes(raw)
    manifest.verify(folder)
    for changed in [raw[:end] for end in range(len(raw))] + [raw + b"\n", b""]:
        (folder / name).write_bytes(changed)
        damaged(folder, name)


def test_a_file_of_another_size_is_not_read(folder, monkeypatch):
    """One of 64 GB without a block on the disk would take most of a minute."""
    read, measure = [], manifest.measure

    def note(path):
        assert path.name != "b.json"  # now, not after a minute
        read.append(path.name)
        return measure(path)

    monkeypatch.setattr(manifest, "measure", note)
    os.truncate(folder / "b.json", 64 << 30)
    damaged(folder, "b.json")
    (folder / manifest.NEXT).write_bytes(manifest.render({"b.json": Entry(1, "0" * 64)}))
    manifest.settle(folder, Fast())  # of what is replaced
    assert not (folder / manifest.NEXT).exists()
    assert read == ["a.safetensors"]


def test_a_manifest_names_no_large_file_but_weights(folder):
    entries = {"a.safetensors": Entry(64 << 30, "0" * 64), "b.json": Entry(3, "0" * 64)}
    (folder / manifest.NAME).write_bytes(manifest.render(entries))
    assert manifest.read_manifest(folder / manifest.NAME) == entries
    (folder / manifest.NAME).write_bytes(manifest.render({**entries, "b.json": entries["a.safetensors"]}))
    damaged(folder, manifest.NAME, "b.json")


def test_missing_and_extra_files_are_found(folder):
    (folder / "c.txt").write_text("new")
    damaged(folder, "c.txt")
    manifest.verify(folder, extra=True)
    (folder / "c.txt").rename(folder / "b.json")
    damaged(folder, "b.json", extra=True)
    (folder / "b.json").unlink()
    damaged(folder, "b.json")


def contents(word):
    return {name: [f"{word} {name}".encode()] for name in ("model.safetensors", "card.md")}


@pytest.mark.one_of(2)
@pytest.mark.parametrize("middle", [False, True])
def test_replacing_killed_anywhere_verifies(tmp_path, middle):
    """Killed before (or in the middle of) each operation in turn, until one replacement goes through."""
    manifest.replace(tmp_path, {**contents("first"), "recipe.toml": [b"kept"]}, Fast())
    for number in range(1, 41):
        killer, files = Killer(number, middle), contents(f"word {number}")
        code = in_child(lambda killer=killer, files=files: manifest.replace(tmp_path, files, killer))
        manifest.verify(tmp_path, extra=True)
        assert (tmp_path / "recipe.toml").read_bytes() == b"kept"
        if code == 0 and not middle:
            break
    assert number > 12
    assert middle or code == 0
    manifest.replace(tmp_path, contents("last"), Fast())
    manifest.verify(tmp_path, extra=True)
    assert (tmp_path / "card.md").read_bytes() == b"last card.md"
    names = ["card.md", "manifest.json", "model.safetensors", "recipe.toml"]
    assert sorted(p.name for p in tmp_path.iterdir()) == names


def test_a_damaged_file_is_found_while_replacing_was_cut_short(tmp_path):
    manifest.replace(tmp_path, contents("first"), Fast())
    assert in_child(lambda: manifest.replace(tmp_path, contents("next"), Killer(12))) == 137
    assert (tmp_path / manifest.NEXT).exists()
    manifest.verify(tmp_path, extra=True)
    (tmp_path / "card.md").write_bytes(b"neither")
    damaged(tmp_path, "card.md", extra=True)


@pytest.mark.parametrize("name", ["/dev/zero", "../secret", "inner/file", "", ".", "..", "a\0b", "\ud800"])
def test_a_manifest_names_files_of_its_own_folder_only(folder, name):
    (folder / manifest.NAME).write_bytes(manifest.render({name: Entry(0, "")}))
    damaged(folder, "manifest.json")


def test_a_manifest_that_lists_no_files_or_vouches_for_nothing_is_damaged(folder):
    """Though its own sha256 is right."""
    odd = [], 5, None, "weights", {"a": 5}, {"a": None}, {"a": {}}, {"a": {"size": "large", "sha256": ""}}, [["a", {}]]
    for files in odd:
        (folder / manifest.NAME).write_bytes(checksum.dump_json({"format": 1, "files": files}))
        damaged(folder, "manifest.json", "sha256")
    for values in ({"format": 1, "files": {}}, {"format": -1, "files": {}}, {"format": 0}):
        (folder / manifest.NAME).write_bytes(checksum.dump_json(values))
        damaged(folder, "manifest.json")


def test_a_pipe_is_no_file_of_a_folder(folder):
    for path in sorted(folder.iterdir()):
        before = path.read_bytes()
        path.unlink()
        os.mkfifo(path)
        damaged(folder, path)
        path.unlink()
        path.write_bytes(before)
    manifest.verify(folder)
    (folder / manifest.NAME).unlink()  # nor is what has no end
    (folder / manifest.NAME).symlink_to("/dev/zero")
    damaged(folder, "manifest.json")


def test_settling_leaves_one_manifest_of_the_files_as_they_are(folder):
    files, old = Files(), manifest.read_manifest(folder / manifest.NAME)
    files.replace(folder / "b.json", [b"new"])
    new = manifest.measure(folder / "b.json")
    coming = {**old, "b.json": new, "a.safetensors": Entry(1, "0" * 64)}  # a.safetensors was not replaced any more
    files.replace(folder / manifest.NEXT, [manifest.render(coming)])
    manifest.settle(folder, files)
    assert manifest.read_manifest(folder / manifest.NAME) == {**old, "b.json": new}
    manifest.verify(folder)

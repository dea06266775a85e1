"""A prepared folder is there whole or not at all, and says what it was made from."""

import json
from pathlib import Path

import pytest

from regard.config import checksum
from regard.data.prepare.folder import (
    INDEX,
    DataMismatch,
    atomic_folder,
    discard,
    finish,
    is_reusable,
    sha256_of,
    verify_folder,
)
from regard.system.errors import Damaged, RegardError
from tests.refusals import refused


def made(folder: Path, inputs: dict[str, object] | None = None, content: bytes = b"abc") -> Path:
    with atomic_folder(folder) as partial:
        (partial / "a.bin").write_bytes(content)
        finish(partial, {"inputs": inputs or {"seed": 1}, "rests": [content.decode(), inputs]}, {})
    return folder


def test_it_appears_when_it_is_whole(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with atomic_folder(folder) as partial:
        (partial / "a.bin").write_bytes(b"abc")
        assert not folder.exists()
        finish(partial, {"inputs": {}, "rests": []}, {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data"]
    assert verify_folder(folder)["files"]["a.bin"]["sha256"] == sha256_of(folder / "a.bin")


def test_what_was_cut_off_is_begun_anew(tmp_path: Path) -> None:
    def stopped() -> None:
        with atomic_folder(tmp_path / "data") as partial:
            (partial / "train.half").write_bytes(b"ab")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert not is_reusable(tmp_path / "data", {"seed": 1})
    assert sorted(path.name for path in made(tmp_path / "data").iterdir()) == ["a.bin", INDEX]


def test_the_fingerprint_is_of_what_it_rests_on(tmp_path: Path) -> None:
    prints = [
        verify_folder(made(tmp_path / name, inputs, content))["fingerprint"]
        for name, inputs, content in (("a", {}, b"abc"), ("b", {}, b"abc"), ("c", {}, b"abd"), ("d", {"x": 1}, b"abc"))
    ]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 3


@pytest.mark.parametrize("inputs", [{"seed": 1}, {"seed": 1, "data": "x"}])
def test_the_same_is_used_again(tmp_path: Path, inputs: dict[str, object]) -> None:
    assert not is_reusable(tmp_path / "data", inputs)
    assert is_reusable(made(tmp_path / "data", inputs), inputs)


@pytest.mark.parametrize(("inputs", "said"), [({"seed": 2}, "seed"), ({"seed": 1, "data": "x"}, "data"), ({}, "seed")])
def test_another_is_refused_by_name(tmp_path: Path, inputs: dict[str, object], said: str) -> None:
    with refused(DataMismatch, tmp_path / "data", said):
        is_reusable(made(tmp_path / "data"), inputs)


def test_texts_without_labels_of_an_earlier_version_are_refused(tmp_path: Path) -> None:
    folder = made(tmp_path / "data", {"seed": 1, "fingerprint.unlabelled": "abc"})
    with refused(DataMismatch, folder, "no longer learns; choose another output folder"):
        is_reusable(folder, {"seed": 1})


@pytest.mark.parametrize("harm", ["shorter", "changed", "missing", "index", "no index"])
def test_a_damaged_one_is_refused_and_left_alone(tmp_path: Path, harm: str) -> None:
    folder = made(tmp_path / "data")
    path = folder / "a.bin"
    if harm == "missing":
        path.unlink()
    elif harm == "index":
        (folder / INDEX).write_text("{")
    elif harm == "no index":
        (folder / INDEX).unlink()
    else:
        path.write_bytes(b"ab" if harm == "shorter" else b"abd")
    for look in (verify_folder, lambda folder: is_reusable(folder, {"seed": 1})):
        with pytest.raises(Damaged):
            look(folder)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_every_flipped_bit_and_every_cut_of_the_index_is_found(tmp_path: Path) -> None:
    folder = made(tmp_path / "data")
    whole = (folder / INDEX).read_bytes()
    before = verify_folder(folder)
    for place in range(len(whole)):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << place % 8
        for raw in (bytes(flipped), whole[:place]):
            (folder / INDEX).write_bytes(raw)
            try:
                found = verify_folder(folder)
            except RegardError:
                continue
            assert {name: found[name] for name in before} == before  # its own sha256 is called otherwise, no more


def test_an_index_without_a_sha256_of_its_own_is_an_old_one(tmp_path: Path) -> None:
    folder = made(tmp_path / "data")
    index = verify_folder(folder)
    (folder / INDEX).write_text(json.dumps(index, indent=1) + "\n")
    assert is_reusable(folder, {"seed": 1})


def test_a_newer_one_is_refused_and_is_not_damaged(tmp_path: Path) -> None:
    folder = made(tmp_path / "data")
    (folder / INDEX).write_bytes(checksum.dump_json({**verify_folder(folder), "format": 99}))
    for look in (verify_folder, lambda folder: is_reusable(folder, {"seed": 1})):
        with refused(RegardError, folder / INDEX):
            look(folder)


def test_files_of_others_are_not_deleted(tmp_path: Path) -> None:
    (tmp_path / "data.partial").mkdir()
    for name in ("train.text.000.ids", "notes.txt"):
        (tmp_path / "data.partial" / name).write_text("mine")
    with refused(RegardError, tmp_path / "data.partial", "notes.txt"):
        made(tmp_path / "data")
    (tmp_path / "data.partial" / "notes.txt").unlink()
    made(tmp_path / "data")
    with refused(RegardError, tmp_path / "data", "a.bin"):
        discard(tmp_path / "data")
    (tmp_path / "link").symlink_to(tmp_path / "data")
    with refused(RegardError, tmp_path / "link"):
        discard(tmp_path / "link")
    assert (tmp_path / "data" / "a.bin").read_bytes() == b"abc"

"""A prepared folder is there whole or not at all, and says what it was made from."""

import json
from contextlib import suppress
from pathlib import Path

import pytest

from regard.config import checksum
from regard.data.prepare import folder as module
from regard.data.prepare.folder import INDEX, DataMismatch, atomic_folder, finish, is_reusable, verify_folder
from regard.system.errors import Damaged, RegardError
from tests.refusals import refused

SEED: dict[str, object] = {"seed": 1}


def made(folder: Path, inputs: dict[str, object] = SEED, content: bytes = b"abc") -> Path:
    with atomic_folder(folder) as partial:
        (partial / "a.bin").write_bytes(content)
        assert not folder.exists()
        finish(partial, {"inputs": inputs, "rests": [content.decode(), inputs]}, {})
    return folder


def refuses(error: type[RegardError], folder: Path, where: Path | None = None) -> None:
    """Whoever looks at the folder gets this error."""
    for inputs in (None, SEED):
        with refused(error, where):
            verify_folder(folder) if inputs is None else is_reusable(folder, inputs)


def test_it_appears_when_it_is_whole(tmp_path: Path) -> None:
    folder = made(tmp_path / "data")
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    assert verify_folder(folder)["files"]["a.bin"]["sha256"] == module.sha256_of(folder / "a.bin")


def test_what_was_cut_off_is_begun_anew(tmp_path: Path) -> None:
    with suppress(KeyboardInterrupt), atomic_folder(tmp_path / "data") as partial:
        (partial / "train.half").write_bytes(b"ab")
        raise KeyboardInterrupt
    assert not is_reusable(tmp_path / "data", SEED)
    assert sorted(path.name for path in made(tmp_path / "data").iterdir()) == ["a.bin", INDEX]


def test_the_fingerprint_is_of_what_it_rests_on(tmp_path: Path) -> None:
    given = [("a", {}, b"abc"), ("b", {}, b"abc"), ("c", {}, b"abd"), ("d", {"x": 1}, b"abc")]
    prints = [verify_folder(made(tmp_path / name, *rest))["fingerprint"] for name, *rest in given]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 3


def test_the_same_is_used_again_and_another_is_refused_by_name(tmp_path: Path) -> None:
    for number, inputs in enumerate((SEED, {"seed": 1, "data": "x"})):
        assert not is_reusable(tmp_path / f"{number}", inputs)
        assert is_reusable(made(tmp_path / f"{number}", inputs), inputs)
    for others, said in (({"seed": 2}, "seed"), ({"seed": 1, "data": "x"}, "data"), ({}, "seed")):
        with refused(DataMismatch, tmp_path / "0", said):
            is_reusable(tmp_path / "0", others)
    folder = made(tmp_path / "unlabelled", {"seed": 1, "fingerprint.unlabelled": "abc"})  # of an earlier version
    with refused(DataMismatch, folder, "no longer learns; choose another output folder"):
        is_reusable(folder, SEED)


@pytest.mark.parametrize("harm", ["shorter", "changed", "missing", "index", "no index"])
def test_a_damaged_one_is_refused_and_left_alone(tmp_path: Path, harm: str) -> None:
    folder = made(tmp_path / "data")
    path = folder / ("a.bin" if harm in ("shorter", "changed", "missing") else INDEX)
    content = {"shorter": b"ab", "changed": b"abd", "index": b"{"}.get(harm)
    path.unlink() if content is None else path.write_bytes(content)
    refuses(Damaged, folder)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_every_flipped_bit_and_every_cut_of_the_index_is_found(tmp_path: Path) -> None:
    folder = made(tmp_path / "data")
    whole, before = (folder / INDEX).read_bytes(), verify_folder(folder)
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


def test_an_index_without_a_sha256_is_an_old_one_and_a_newer_one_is_not_damaged(tmp_path: Path) -> None:
    folder = made(tmp_path / "data")
    index = verify_folder(folder)
    (folder / INDEX).write_text(json.dumps(index, indent=1) + "\n")
    assert is_reusable(folder, SEED)
    (folder / INDEX).write_bytes(checksum.dump_json({**index, "format": 99}))
    refuses(RegardError, folder, folder / INDEX)


def test_files_of_others_are_not_deleted(tmp_path: Path) -> None:
    (tmp_path / "data.partial").mkdir()
    for name in ("train.text.000.ids", "notes.txt"):
        (tmp_path / "data.partial" / name).write_text("mine")
    with refused(RegardError, tmp_path / "data.partial", "notes.txt"):
        made(tmp_path / "data")
    (tmp_path / "data.partial" / "notes.txt").unlink()
    made(tmp_path / "data")
    (tmp_path / "link").symlink_to(tmp_path / "data")
    for place, *holds in ((tmp_path / "data", "a.bin"), (tmp_path / "link",)):
        with refused(RegardError, place, *holds):
            module.discard(place)
    assert (tmp_path / "data" / "a.bin").read_bytes() == b"abc"

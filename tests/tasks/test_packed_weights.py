"""Packed weights beside a model: mapped where they are its own, whole and of the precision, else never believed."""

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.config.weights import read_header_and_metadata
from regard.engine.weights import RecordingPacker
from regard.system.errors import RegardError
from regard.system.kernels import packing
from regard.tasks import model_folder, model_path
from regard.tasks.model_folder import open_without_torch, write_packed
from regard.tasks.model_path import MODEL, weights_sha256
from regard.training.checkpoints import manifest
from tests.refusals import refused
from tests.tasks.small_tasks import SOURCE, asker, put, speaker, translator

LINES = [SOURCE, "The street", "was too tired because"]


pytestmark = pytest.mark.usefixtures("compiled", "own_cache")


@pytest.fixture
def packings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many matrices were packed, one number for each call."""
    found: list[int] = []
    plain = packing.pack_side_by_side

    def counted(*given: Any) -> Any:
        found.append(len(given[0]))
        return plain(*given)

    monkeypatch.setattr(packing, "pack_side_by_side", counted)
    return found


def said(folder: Path, precision: Any = "int8") -> list[Any]:
    task = open_without_torch(folder, "cpu", precision)
    if hasattr(task, "nbest"):
        return [(found[0].tokens, found[0].score) for found in task.nbest(LINES)]
    return [repr(found[0]) for found in task.generate(LINES, max_tokens=6, temperature=0.0)]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
@pytest.mark.parametrize("make", [translator, asker, speaker])
def test_nothing_is_packed_again_and_the_same_is_said(
    make: Callable[[], Any], precision: Any, tmp_path: Path, packings: list[int]
) -> None:
    folder = put(tmp_path / "m", make())
    expected = said(folder, precision)
    path = write_packed(folder, precision)
    assert path == folder / model_folder.PACKED_WEIGHTS
    assert manifest.verify(folder, extra=True) is None
    packings.clear()
    assert said(folder, precision) == expected
    assert not packings


def test_another_precision_is_packed_and_leaves_the_file(tmp_path: Path, packings: list[int]) -> None:
    folder = put(tmp_path / "m", translator())
    expected, path = said(folder, "fp32"), write_packed(folder, "int8")
    content = path.read_bytes()
    packings.clear()
    assert said(folder, "fp32") == expected
    assert packings
    assert path.read_bytes() == content
    write_packed(folder, "fp32")
    assert path.read_bytes() != content


def test_any_flipped_bit_is_seen_and_the_file_is_written_anew(tmp_path: Path, packings: list[int]) -> None:
    folder = put(tmp_path / "m", translator())
    expected, path = said(folder), write_packed(folder, "int8")
    content = path.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    random = np.random.default_rng(1)
    places = [*random.integers(0, header, 25), *random.integers(header, len(content), 15)]
    for place in places:
        bad = bytearray(content)
        bad[place] ^= 1 << random.integers(0, 8)
        if bytes(bad[:header]).strip() == content[:header].strip():
            continue
        path.write_bytes(bad)
        packings.clear()
        assert said(folder) == expected
        assert packings or _harmless(content, bytes(bad), header)
        if path.read_bytes() != content:  # of another precision, by its header: left as it is
            assert _metadata(path).get("precision") in ("fp32", "bf16") or _harmless(content, path.read_bytes(), header)
        path.write_bytes(content)


def _metadata(path: Path) -> dict[str, Any]:
    return read_header_and_metadata(path)[1]


def _harmless(content: bytes, other: bytes, header: int) -> bool:
    """Whether both headers say the same, such as with another blank; the matrices are the same."""
    try:
        return json.loads(content[8:header]) == json.loads(other[8:header]) and content[header:] == other[header:]
    except ValueError:
        return False


def test_a_cut_or_lying_file_and_one_of_other_weights_or_matrices_is_written_anew(tmp_path: Path) -> None:
    folder, other = put(tmp_path / "m", translator()), put(tmp_path / "n", translator(key=6))
    expected, path = said(folder), write_packed(folder, "int8")
    content, (header, metadata) = path.read_bytes(), read_header_and_metadata(path)
    wrong = [content[:size] for size in (0, 7, 100, -64)] + [content + bytes(64), bytes(len(content))]
    wrong += [(1 << bit).to_bytes(8, "little") + content[8:] for bit in (40, 63)]
    wrong += [write_packed(other, "int8").read_bytes()]
    begin = 8 + int.from_bytes(content[:8], "little")
    places = [(entry["shape"], *entry["data_offsets"]) for entry in header.values()]
    matrices = [np.frombuffer(content, np.int8)[begin + at : begin + to].reshape(shape) for shape, at, to in places]
    for others in (matrices, matrices[:-1], [*matrices, matrices[0]], [*matrices[1:], matrices[0]]):
        kept = RecordingPacker("int8")
        kept.matrices = others
        wrong.append(b"".join(kept.content(metadata["weights"])))
    for one in wrong:
        path.write_bytes(one)
        assert said(folder) == expected
        assert path.read_bytes() == content


def test_while_a_folder_is_replaced_the_file_is_not_asked(tmp_path: Path, packings: list[int]) -> None:
    folder = put(tmp_path / "m", translator())
    expected = said(folder)
    write_packed(folder, "int8")
    (folder / manifest.NEXT).write_bytes((folder / manifest.NAME).read_bytes())
    packings.clear()
    assert said(folder) == expected
    assert packings


def test_where_the_folder_cannot_be_written_the_cache_holds_it(
    tmp_path: Path, packings: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = put(tmp_path / "m", translator())
    expected = said(folder)
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda path, mode: False)
        path = write_packed(folder, "int8")
    assert path.parent == tmp_path / "cache" / "regard" / "packed"
    packings.clear()
    assert said(folder) == expected
    assert not packings
    assert write_packed(folder, "int8") == folder / model_folder.PACKED_WEIGHTS
    assert not path.exists()


def test_where_neither_can_be_written_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = put(tmp_path / "m", translator())
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with refused(RegardError, f"{weights_sha256(folder)}.safetensors", "cannot be written"):
        write_packed(folder, "int8")


@pytest.mark.parametrize("packed", [False, True])
def test_weights_that_are_replaced_while_they_are_packed_are_not_kept(
    packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, other = put(tmp_path / "m", translator()), put(tmp_path / "n", translator(key=6))
    before, after = said(folder), said(other)
    if packed:
        write_packed(folder, "int8")
    plain, verify, verified = model_folder.WeightFile, model_path.verify, threading.Event()

    def told(*given: Any, **named: Any) -> Any:
        try:
            return verify(*given, **named)
        finally:
            verified.set()

    def swapped(path: Path) -> Any:
        found = plain(path)
        assert verified.wait(60)  # halfway, the manifest would not be of the weights
        for name in (MODEL, manifest.NAME):
            fresh = path.with_name("fresh")
            fresh.write_bytes((other / name).read_bytes())
            fresh.replace(path.with_name(name))
        return found

    with monkeypatch.context() as patch:
        patch.setattr(model_folder, "WeightFile", swapped)
        patch.setattr(model_path, "verify", told)
        with refused(RegardError, "m", "being replaced"):
            write_packed(folder, "int8")
        assert said(folder) == after  # the swap has happened: it is its own now
    assert said(folder) == after != before


def test_a_model_whose_manifest_is_still_the_next_one_opens(tmp_path: Path) -> None:
    folder = put(tmp_path / "m", translator())
    expected = said(folder)
    (folder / manifest.NAME).rename(folder / manifest.NEXT)
    assert said(folder) == expected


def test_the_cache_is_looked_into_where_the_folder_holds_another_precision(
    tmp_path: Path, packings: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = put(tmp_path / "m", translator())
    expected = said(folder)
    beside = write_packed(folder, "fp32")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    for content in (beside.read_bytes(), beside.read_bytes()[:500]):
        beside.write_bytes(content)
        assert write_packed(folder, "int8") != beside
        packings.clear()
        assert said(folder) == expected
        assert not packings
        assert beside.read_bytes() == content


def test_a_stale_file_of_another_precision_stays(tmp_path: Path) -> None:
    folder = put(tmp_path / "m", translator())
    path = write_packed(folder, "int8")
    path.write_bytes(content := path.read_bytes()[:-64])
    said(folder, "fp32")
    assert path.read_bytes() == content
    said(folder, "int8")
    assert path.read_bytes() != content


def test_a_user_without_a_home_has_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("no home")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", homeless)
    folder = put(tmp_path / "m", translator())
    expected = said(folder)
    write_packed(folder, "int8")
    assert said(folder) == expected
    assert open_without_torch(folder, "cpu").precision == "fp32"
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with refused(RegardError, model_folder.PACKED_WEIGHTS, "cannot be written"):
        write_packed(folder, "int8")

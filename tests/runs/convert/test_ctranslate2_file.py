"""The file of CTranslate2's variables: what it was is what is read, and a damaged one ends in a sentence."""

import random
import resource
import shutil
import struct
from pathlib import Path

import pytest
import torch

from regard.runs.convert.ctranslate2_file import VERSIONS, model_file, read_model_file
from regard.runs.convert.ctranslate2_import import read_ctranslate2
from regard.system.errors import RegardError
from tests.refusals import refused
from tests.runs.convert import ctranslate2_folders as folders

TENSORS = {
    "a/weight": torch.arange(6, dtype=torch.int8).view(2, 3),
    "a/weight_scale": torch.tensor([2.0, 4.0]),
    "b": torch.tensor(3, dtype=torch.int16),
    "c": torch.tensor([1.5, -2.0], dtype=torch.bfloat16),
    "d": torch.tensor([[0.5]], dtype=torch.float16),
}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_bytes(b"".join(model_file("Spec", 3, TENSORS, {"e": "a/weight"})))
    held = read_model_file(tmp_path / "model.bin")
    assert (held.specification, held.revision, held.version) == ("Spec", 3, VERSIONS[-1])
    assert len(held) == len(list(held)) == 6
    for name, tensor in TENSORS.items():
        assert held[name].dtype == tensor.dtype
        assert torch.equal(held[name], tensor)
    assert held.numbers("e").tolist() == [[0, 0.5, 1], [0.75, 1, 1.25]]
    assert held.same("e", "a/weight")
    assert not held.same("c", "d")


def test_it_is_the_file_that_they_write(tmp_path: Path) -> None:
    folders.write(tmp_path / "theirs", quantization="int8")
    held = read_model_file(tmp_path / "theirs" / "model.bin")
    variables = {name: held[name] for name in held.variables}
    content = b"".join(model_file(held.specification, held.revision, variables, held.aliases))
    assert content == (tmp_path / "theirs" / "model.bin").read_bytes()


@pytest.mark.parametrize("version", [0, 1, 7, 1 << 31])
def test_other_versions_are_refused_by_number(version: int, tmp_path: Path) -> None:
    content = b"".join(model_file("Spec", 3, TENSORS, {}))
    (tmp_path / "model.bin").write_bytes(struct.pack("<I", version) + content[4:])
    with refused(RegardError, "model.bin", str(version)):
        read_model_file(tmp_path / "model.bin")


@pytest.mark.parametrize("lie", ["aliases", "sizes"])
def test_small_files_of_large_variables_are_refused(lie: str, tmp_path: Path) -> None:
    held = {"a": torch.zeros(1000) if lie == "aliases" else torch.zeros(0, 9, 9)}
    content = b"".join(model_file("Spec", 3, held, {f"b{n}": "a" for n in range(20)}))
    nines, most = struct.pack("<2I", 9, 9), struct.pack("<2I", *[(1 << 32) - 1] * 2)
    (tmp_path / "model.bin").write_bytes(content.replace(nines, most))
    with refused(RegardError, "model.bin"):
        read_model_file(tmp_path / "model.bin")


@pytest.mark.one_of(3)
@pytest.mark.parametrize("part", range(3))
def test_damaged_files_end_in_a_sentence(part: int, tmp_path: Path) -> None:
    folders.write(tmp_path / "theirs", quantization=["int8", None, "int16"][part])
    whole = (tmp_path / "theirs" / "model.bin").read_bytes()
    before, errors = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 0
    for seed in range(100):
        (tmp_path / "theirs" / "model.bin").write_bytes(mutated(whole, random.Random(1000 * part + seed)))
        error = folders.refusal(lambda: read_ctranslate2(tmp_path / "theirs"))
        assert error is None or ("\n" not in str(error) and str(tmp_path / "theirs") in str(error)), error
        errors += error is not None
    assert errors > 50
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 << 10  # KiB


def mutated(content: bytes, draws: random.Random) -> bytes:
    """Cut, with other bytes where names and sizes stand, with a part twice, or with a length that lies."""
    kind, place = draws.randrange(4), draws.randrange(len(content))
    held = bytearray(content)
    if kind == 0:
        return content[:place]
    if kind == 1:
        for _ in range(draws.randint(1, 8)):
            held[draws.randrange(min(len(held), 400))] = draws.randrange(256)
    elif kind == 2:
        held[place:place] = held[place : place + draws.randrange(1, 200)]
    else:
        name = content.rindex(b"\0\2", 0, max(100, place))  # the sizes of a matrix
        struct.pack_into("<I", held, name + 2 + 4 * draws.randrange(2), draws.choice([0, 1, 1 << 16, (1 << 32) - 1]))
    return bytes(held)


def test_vocabularies_that_do_not_fit_end_in_a_sentence(tmp_path: Path) -> None:
    folders.write(tmp_path / "theirs")
    path = tmp_path / "theirs" / "shared_vocabulary.json"
    for content in ("[]", "{}", '["a", 1]', "[", '["a", "b"]', '"a"'):
        path.write_text(content)
        with refused(RegardError, path):
            read_ctranslate2(tmp_path / "theirs")
    path.unlink()
    (tmp_path / "theirs" / "source_vocabulary.txt").write_bytes(b"\xff\n")
    with refused(RegardError, "source_vocabulary.txt"):
        read_ctranslate2(tmp_path / "theirs")


def test_a_vocabulary_of_lines_is_read_as_theirs(tmp_path: Path) -> None:
    folders.write(tmp_path / "theirs")
    shutil.move(tmp_path / "theirs" / "shared_vocabulary.json", tmp_path / "old")
    names = [*folders.SYMBOLS, *folders.WORDS]
    for end in ("\n", "\r\n"):
        (tmp_path / "theirs" / "shared_vocabulary.txt").write_bytes(end.join([*names, ""]).encode())
        found = read_ctranslate2(tmp_path / "theirs")
        assert list(found.tokenizer.source.names) == names

"""Folders of every kind whose files lie, are cut, or ask for more: one sentence each, and nothing is left or taken."""

import json
import os
import pickle
import random
import resource
import shutil
import struct
import zipfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.runs.conversion import import_model
from regard.system.errors import RegardError
from tests.runs.convert import (
    ctranslate2_folders,
    marian_folders,
    test_argos,
    test_peft,
    test_roberta,
    translator_folders,
)
from tests.runs.convert.small_folders import around, folder_of

ROOM = 1 << 30
"""Bytes beyond those there are that an import may ask for."""


def _argos(path: Path) -> None:
    (made := path.parent / "made").mkdir()
    test_argos.pack(path, test_argos.package_parts(made))


def _first_release(kind: str, path: Path) -> None:
    """A tokenizer in files of words and merges."""
    _, tokenizer = folder_of(kind, path)
    (path / "tokenizer.json").unlink()
    tokenizer.backend_tokenizer.model.save(str(path))


def _sentences(path: Path) -> None:
    folder_of("BertModel", path)
    around(path, "mean_tokens", ("Transformer", "Pooling", "Normalize"), max_seq_length=16)


def _adapter(path: Path) -> None:
    """With its base inside."""
    path.mkdir()
    config = {**test_peft.CONFIG, "task_type": "SEQ_CLS"}
    test_peft.adapted(test_peft.bert(path / "base"), path / "made", "query value", config)
    for each in (path / "made").iterdir():
        each.rename(path / each.name)


def _made(write: Callable[[str, Path], Any], kind: str, path: Path) -> None:
    path.mkdir()
    write(kind, path)


MAKERS: dict[str, Callable[[Path], Any]] = {
    **{
        kind: lambda path, kind=kind: _made(translator_folders.write, kind, path) for kind in ("marian", "m2m", "mbart")
    },
    **{kind: lambda path, kind=kind: _made(marian_folders.write, kind, path) for kind in ("opus", "student")},
    "ctranslate2": lambda path: ctranslate2_folders.write(path, quantization="int8"),
    "package.argosmodel": _argos,
    "bert": lambda path: folder_of("BertForSequenceClassification", path),
    "words": lambda path: _first_release("BertForMaskedLM", path),
    "sentences": _sentences,
    "merges": lambda path: _first_release("GPT2LMHeadModel", path),
    "t5": lambda path: folder_of("T5ForConditionalGeneration", path),
    "vit": lambda path: folder_of("ViTForImageClassification", path),
    "peft": _adapter,
    **{kind: partial(test_roberta.folder_of, kind, "ForMaskedLM") for kind in test_roberta.KINDS},
}


class Calls:
    """What a pickle may ask to be called."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.mark}",)


def damaged(content: bytes, draws: random.Random) -> bytes:
    """Cut, with other bytes at the beginning or anywhere, with a part twice, with a length that lies, or empty."""
    held, kind = bytearray(content), draws.randrange(6)
    place = draws.randrange(max(1, len(held)))
    if kind == 0:
        return content[:place]
    if kind in (1, 2):
        for _ in range(draws.choice([1, 4, 30])):
            held[draws.randrange(min(len(held), 400 if kind == 1 else len(held)))] = draws.randrange(256)
    elif kind == 3:
        held[place:place] = held[place : place + draws.randrange(1, 200)]
    elif kind == 4:
        struct.pack_into("<Q", held := held + bytes(8), 0, draws.choice([0, 1 << 20, 1 << 40, (1 << 64) - 1]))
    return b"" if kind == 5 else bytes(held)


ODD_VALUES: tuple[Any, ...] = (10**30, -1, 0, 1.5, "x" * 100, "../x", [], {}, [[1]], True, None, float("nan"), 1 << 22)


def lying(content: bytes, draws: random.Random) -> bytes:
    """JSON with another value somewhere, without one, nested without end, or none at all."""
    if draws.random() < 0.1:
        return draws.choice([b"[" * 100_000, b'{"a":' * 50_000, b"\xff\xfe", b"null", b'"a"', b"[1]"])
    value = json.loads(content)
    here: Any = value
    while isinstance(here, dict | list) and here:
        key = draws.choice(list(here) if isinstance(here, dict) else range(len(here)))
        if not isinstance(here[key], dict | list) or draws.random() < 0.4:
            here[key] = draws.choice(ODD_VALUES)
            break
        here = here[key]
    return json.dumps(value).encode()


def shaped(content: bytes, draws: random.Random) -> bytes:
    """A safetensors file whose header lies about a tensor."""
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + size])
    name = draws.choice([name for name in header if name != "__metadata__"])
    key, value = draws.choice(
        [
            *(("shape", shape) for shape in ([1 << 40], [0], [-1], [1] * 99, [], [1 << 32, 1 << 32])),
            *(("dtype", kind) for kind in ("I64", "F64", "X9", "BOOL", "F8_E4M3")),
            *(("data_offsets", place) for place in ([0, 1 << 60], [5, 4], [0, 0], [-4, 4], [8, 12])),
        ]
    )
    header[name] = {**header[name], key: value}
    written = json.dumps(header).encode()
    return struct.pack("<Q", len(written)) + written + content[8 + size :]


def pickled(content: bytes, draws: random.Random, mark: Path) -> bytes:
    """Weights of torch that call, repeat a number without end, are packed, or hold something else."""
    path = mark.parent / "made.bin"
    values: list[Any] = [{"a": Calls(mark)}, OrderedDict(a=torch.zeros(1).expand(1 << 40)), [1], {"a": {1}}]
    if draws.random() < 0.3:
        path.write_bytes(content)
        with zipfile.ZipFile(path) as held, zipfile.ZipFile(mark.parent / "packed", "w", zipfile.ZIP_DEFLATED) as new:
            for entry in held.infolist():
                new.writestr(entry.filename, held.read(entry) + bytes(20 << 20))
        return (mark.parent / "packed").read_bytes()
    if draws.random() < 0.3:
        return pickle.dumps({"a": Calls(mark)})
    torch.save(draws.choice(values), path)
    return path.read_bytes()


def archived(draws: random.Random) -> bytes:
    """An archive of arrays that is a bomb, or holds objects."""
    bomb = {"special:model.yml": np.zeros(4, np.int8), "a": np.zeros(1 << 22, np.float32)}
    return draws.choice([marian_folders.packed_npz(bomb), marian_folders.npz({"a": np.array([print], object)})])


def make_hostile(folder: Path, draws: random.Random, mark: Path) -> bool:
    """Change a file of a folder, or a package; whether it must be refused then."""
    files = [folder] if folder.is_file() else sorted(path for path in folder.rglob("*") if path.is_file())
    path = draws.choice(files)
    content, kind, sure = path.read_bytes(), draws.random(), False
    if path.suffix == ".json" and kind < 0.6:
        content = lying(content, draws)
    elif path.suffix == ".safetensors" and kind < 0.6:
        content, sure = shaped(content, draws), True
    elif path.name == "pytorch_model.bin" and kind < 0.6:
        content, sure = pickled(content, draws, mark), True
    elif path.suffix == ".npz" and kind < 0.4:
        content, sure = archived(draws), True
    elif path != folder and kind > 0.85:
        other = mark.parent / "outside"
        other.write_bytes(content)
        path.unlink()
        path.symlink_to(other)
        return True
    else:
        content = damaged(content, draws)
    path.write_bytes(content)
    return sure


@contextmanager
def bounded() -> Iterator[None]:
    """Memory of the process is bounded by what there is and :data:`ROOM`."""
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (held + ROOM, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@pytest.mark.one_of(5)
@pytest.mark.parametrize(
    "seeds", [range(2), pytest.param(range(2, 24), marks=pytest.mark.long(2))], ids=["few", "many"]
)
@pytest.mark.parametrize("kind", MAKERS)
def test_hostile_folders_end_in_one_sentence(kind: str, seeds: range, tmp_path: Path) -> None:
    whole, place = tmp_path / "whole", tmp_path / "place"
    whole.mkdir()
    MAKERS[kind](whole / kind)
    errors = 0
    for seed in seeds:
        shutil.rmtree(place, ignore_errors=True)
        (place / "work").mkdir(parents=True)
        given, output, mark = place / kind, place / "output", place / "work" / "called"
        (shutil.copyfile if (whole / kind).is_file() else shutil.copytree)(whole / kind, given)
        sure = make_hostile(given, random.Random(f"{kind} {seed}"), mark)
        error = None
        with bounded():
            try:
                import_model(given, output, base=given / "base" if kind == "peft" else None)
            except RegardError as found:
                error = found
        errors += error is not None
        assert error is not None or not sure, seed
        assert error is None or ("\n" not in str(error) and str(given) in str(error)), (seed, error)
        assert not mark.exists(), seed
        assert output.exists() == (error is None), seed
        assert {path.name for path in place.iterdir()} <= {"work", kind, "output"}, seed
    assert errors >= len(seeds) // 3


@pytest.mark.parametrize("name", ["model.safetensors.index.json", "pytorch_model.bin.index.json"])
@pytest.mark.parametrize("other", ["../outside", "/etc/passwd", "a/../../outside", ""])
def test_an_index_names_nothing_outside(name: str, other: str, tmp_path: Path) -> None:
    folder_of("BertForMaskedLM", tmp_path / "bert")
    (tmp_path / "bert" / "model.safetensors").rename(tmp_path / "outside")
    (tmp_path / "bert" / name).write_text(json.dumps({"weight_map": {"a": other}}))
    with pytest.raises(RegardError, match="outside of the folder"):
        import_model(tmp_path / "bert", tmp_path / "output")
    assert not (tmp_path / "output").exists()


@pytest.mark.parametrize("other", ["loop", "../bert/loop"])
def test_a_link_to_itself_is_refused(other: str, tmp_path: Path) -> None:
    (tmp_path / "bert").mkdir()
    (tmp_path / "bert" / "loop").symlink_to(other)
    with pytest.raises(RegardError, match="loop: is a link to itself"):
        import_model(tmp_path / "bert", tmp_path / "output")


def test_links_into_the_store_of_their_library_are_followed(tmp_path: Path) -> None:
    """As it keeps what it downloaded: each file a link to one that is named by its content."""
    there = tmp_path / "models--a--b" / "snapshots" / "1"
    folder_of("BertForMaskedLM", there)
    (blobs := tmp_path / "models--a--b" / "blobs").mkdir()
    for number, path in enumerate(sorted(there.iterdir())):
        path.rename(blobs / str(number))
        path.symlink_to(Path("..", "..", "blobs", str(number)))
    assert import_model(there, tmp_path / "output").name == "masked-lm"

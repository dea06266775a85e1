"""A folder is there whole or not at all; what is there already is left, and what a killed process left is removed."""

import os
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path

import pytest

from regard.system.errors import RegardError
from regard.training.checkpoints import output_folder
from regard.training.checkpoints.files import partial_path
from regard.training.checkpoints.output_folder import fresh_folder, scratch
from tests.refusals import refused

MADE = {"config.json": b"{}", "model.safetensors": b"weights", "inner/more.json": b"[]"}


def put(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def make(output: Path, files: Mapping[str, bytes] = MADE) -> None:
    with fresh_folder(output) as fresh:
        put(fresh, files)


def held(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("names", [(), ("model.safetensors",), ("model.safetensors", "inner/more.json"), MADE])
def test_what_was_begun_is_finished_in_the_same_folder(tmp_path: Path, names: Iterable[str]) -> None:
    (tmp_path / "out").mkdir()
    before = {name: MADE[name] for name in names}
    put(tmp_path / "out", before)
    kept = {name: (tmp_path / "out" / name).stat().st_ino for name in before}
    number = (tmp_path / "out").stat().st_ino
    make(tmp_path / "out")
    assert held(tmp_path / "out") == MADE
    assert number == (tmp_path / "out").stat().st_ino
    assert kept == {name: (tmp_path / "out" / name).stat().st_ino for name in before}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


OTHERS = {"model.safetensors": b"others", "a.txt": b"", "inner": b"", "config.json/mine": b"", "inner/a.txt": b""}


@pytest.mark.parametrize(("name", "content"), OTHERS.items())
def test_what_differs_is_refused_and_untouched(tmp_path: Path, name: str, content: bytes) -> None:
    before = {"model.safetensors": b"weights", name: content}
    put(tmp_path / "out", before)
    with refused(RegardError, "out"):
        make(tmp_path / "out")
    assert held(tmp_path / "out") == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_nothing_is_made_in_the_folder_of_a_run(tmp_path: Path) -> None:
    """Which could not resume then."""
    put(tmp_path / "run" / "training", {"resolved.toml": b""})
    with refused(RegardError, tmp_path / "run" / "average"):
        make(tmp_path / "run" / "average")
    assert not (tmp_path / "run" / "average").exists()


def test_the_weights_are_moved_first_and_what_makes_them_load_last(tmp_path: Path, monkeypatch) -> None:
    """Killed between, the folder is known again by the first, and is no model without the last."""
    (tmp_path / "out").mkdir()
    moved, replace = [], os.replace

    def noted(old: Path, new: Path) -> None:
        moved.append(new.name)
        replace(old, new)

    monkeypatch.setattr(output_folder.os, "replace", noted)
    make(tmp_path / "out", {**MADE, "card.md": b"", "manifest.json": b"{}"})
    assert moved == ["model.safetensors", "card.md", "inner", "config.json", "manifest.json"]


@pytest.mark.parametrize("second", [MADE, {"config.json": b"another"}, None])
def test_two_at_once(tmp_path: Path, second: Mapping[str, bytes] | None) -> None:
    """Neither takes the other's for a killed one's; who is later finds the same, or is refused."""
    output = tmp_path / "out"
    with nullcontext() if second == MADE else refused(RegardError, "out"), fresh_folder(output) as fresh:
        put(fresh, MADE)
        output.write_text("theirs") if second is None else make(output, second)
    assert output.read_text() == "theirs" if second is None else held(output) == second
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_temporary_files_of_killed_processes_are_removed(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(output_folder.tempfile, "tempdir", str(tmp_path))
    dead = tmp_path / f".regard.partial-{'0' * 32}"
    put(dead, MADE)
    with partial_path(tmp_path / "regard", Path.mkdir) as alive, scratch() as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        assert {path.name for path in tmp_path.iterdir()} == {alive.name, folder.name}
    assert [path.name for path in tmp_path.iterdir()] == [alive.name]

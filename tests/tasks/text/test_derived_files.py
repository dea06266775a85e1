import os
from pathlib import Path

import pytest

from regard.system.errors import RegardError
from regard.tasks.text.derived_files import derived_files, write_derived
from regard.training.checkpoints.files import Files
from tests.refusals import refused

NAME, WEIGHTS = "speeds.json", "ab12"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "regard" / "speeds"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (found := tmp_path / "model").mkdir()
    return found


def keep(folder: Path, text: str, files: Files | None = None) -> Path:
    return write_derived(folder, WEIGHTS, NAME, [text.encode()], files)


def test_a_file_beside_the_weights_replaces_the_one_in_the_cache(
    folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not derived_files(folder, WEIGHTS, NAME)
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda path, mode: Path(path) != folder)
        assert keep(folder, "first") == cache / f"{WEIGHTS}.json"
    assert [path.read_text() for path in derived_files(folder, WEIGHTS, NAME)] == ["first"]
    assert keep(folder, "second") == folder / NAME
    assert derived_files(folder, WEIGHTS, NAME) == [folder / NAME]


def test_the_newest_is_the_first(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside = keep(folder, "of its owner")
    os.utime(beside, (1, 1))
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != folder)
    mine = keep(folder, "mine")
    assert derived_files(folder, WEIGHTS, NAME) == [mine, beside]
    os.utime(mine, (0, 0))
    assert derived_files(folder, WEIGHTS, NAME) == [beside, mine]
    assert derived_files(folder, "cd34", NAME) == [beside]


def test_where_the_folder_has_no_space_the_cache_holds_it(folder: Path, cache: Path) -> None:
    class Full(Files):
        def replace(self, path: Path, content: object) -> None:  # type: ignore[override]
            if path.parent == folder:
                raise OSError(28, "No space left on device")
            super().replace(path, content)  # type: ignore[arg-type]

    assert keep(folder, "kept", Full()).parent == cache


def test_where_neither_can_be_written_it_is_said(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with refused(RegardError, f"{WEIGHTS}.json", "cannot be written"):
        keep(folder, "lost")

"""The page as a static site: what it replaces, what it refuses, and what its state says."""

import json
from pathlib import Path
from typing import Any

import pytest

from regard.inspection.folders.models import Models
from regard.library.serve import static_site as saved
from regard.system.errors import RegardError, UsageError
from tests.tasks.small_tasks import put, translator


def test_a_site_replaces_a_site_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved._Answers, "of_model", lambda self, state, told: self.keep("look", {}, b"a"))
    put(tmp_path / "model", translator())
    models, site = Models([tmp_path / "model"]), tmp_path / "site"
    assert saved.save_site(models, site) == 1
    (site / "api" / "old.bin").write_bytes(b"")
    assert saved.save_site(models, site) == 1
    name = saved.file_name("look", {})
    assert sorted(path.name for path in (site / "api").iterdir()) == sorted([f"{name}.bin", "state"])
    state = json.loads((site / "api" / "state").read_bytes())
    assert state["saved"] == [name]
    assert str(tmp_path) not in json.dumps(state)
    (site / "mine.txt").write_text("mine")
    for other in (site, tmp_path, site / "mine.txt"):
        with pytest.raises(UsageError, match="holds something else"):
            saved.save_site(models, other)
    assert (site / "mine.txt").exists()
    assert (site / "api" / "state").exists()


def test_a_site_that_was_interrupted_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(site: Any, state: object, told: object) -> None:
        site.keep("look", {}, b"a")
        raise KeyboardInterrupt

    put(tmp_path / "model", translator())
    models, site = Models([tmp_path / "model"]), tmp_path / "site"
    monkeypatch.setattr(saved._Answers, "of_model", interrupt)
    with pytest.raises(KeyboardInterrupt):
        saved.save_site(models, site)
    monkeypatch.setattr(saved._Answers, "of_model", lambda self, state, told: self.keep("row", {}, b"a"))
    assert saved.save_site(models, site) == 1


def test_a_model_without_weights_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "model", translator(), weights=False)
    with pytest.raises(RegardError, match="cannot be saved"):
        saved.save_site(Models([tmp_path / "model"]), tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_the_name_of_a_question() -> None:
    plain = {
        "model": 0,
        "text": "a",
        "changes": {"off": [], "mask": True},
        "target": None,
        "weights": "b",
        "opening": "cross",
    }
    assert saved.file_name("look", plain) == saved.file_name("look", {"text": "a", "model": 0})
    others = [
        ("row", plain),
        *(("look", plain | more) for more in ({"text": "b"}, {"changes": {"mask": False}}, {"branch": [1]})),
    ]
    assert len({saved.file_name(name, asked) for name, asked in [("look", plain), *others]}) == 5

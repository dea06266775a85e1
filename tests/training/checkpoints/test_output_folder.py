"""The output folder: every state of it, and a second writer."""

import os
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from pathlib import Path

import pytest

from regard.system.errors import NoValidCheckpoint, RegardError, Stopped, UsageError
from regard.training.checkpoints import output_folder, resolved
from regard.training.checkpoints.files import partial_path
from regard.training.checkpoints.output_folder import Action, claim_output, decide, fresh_folder, scratch
from tests.refusals import refused
from tests.training.toy import Fast, Play, StopAt, in_child, recipe


def fields(**training):
    return resolved.recipe_fields(recipe(**{"steps": 10, **training}))


def begun(output, stop=None):
    """A run that has really been started, stopped after ``stop`` steps or not."""
    play = Play(output, recipe(steps=10))
    with claim_output(output, fields()) as action:
        assert action is Action.START
        resolved.write(output / "training", fields(), Fast())
        if stop is None:
            play.fit()
        else:
            with pytest.raises(Stopped):
                play.fit(stop=StopAt(stop))
    return play


def test_absent_or_empty_starts(tmp_path):
    assert decide(tmp_path / "absent", fields()) is Action.START
    assert not (tmp_path / "absent").exists()
    for _ in range(2):
        with claim_output(tmp_path / "new", fields(), "never") as action:
            assert action is Action.START
        assert [path.name for path in (tmp_path / "new").iterdir()] == ["training"]
    (tmp_path / "empty").mkdir()
    assert decide(tmp_path / "empty", fields()) is Action.START
    killed = tmp_path / "killed"  # before the first checkpoint
    put(killed / "training/checkpoints/step-000001.partial-x", {"a": b""})
    put(killed, {"tokenizer.json": b"{}", "tokenizer.json.partial": b"{"})
    assert decide(killed, fields()) is Action.START
    with refused(NoValidCheckpoint):
        decide(killed, fields(), "must")


def test_unfinished_resumes_and_finished_is_said(tmp_path):
    play = begun(tmp_path / "m", stop=7)
    with claim_output(play.output, fields(), "must") as action:
        assert action is Action.RESUME
        play.fit()
    assert decide(play.output, fields()) is Action.FINISHED
    newest = play.output / "training" / "checkpoints" / "step-000010" / "weights.safetensors"
    newest.write_bytes(newest.read_bytes()[:-1])
    assert decide(play.output, fields()) is Action.RESUME  # a damaged end is no end


def test_a_finished_run_goes_on_where_more_steps_are_asked_for(tmp_path):
    play = begun(tmp_path / "m")
    allow = ("training.steps",)
    with refused(RegardError, "training.steps", "allow_mismatch"):
        decide(play.output, fields(steps=15))
    with refused(UsageError, "training.steps", "10"):
        decide(play.output, fields(steps=9), allow=allow)
    assert decide(play.output, fields(steps=15), allow=allow) is Action.RESUME
    summary = Play(play.output, recipe(steps=15)).fit()
    assert (summary.step, summary.reason) == (15, "all steps done")
    assert decide(play.output, fields(steps=15), allow=allow) is Action.FINISHED


def test_fewer_steps_than_an_unfinished_run_has_made_and_another_recipe_are_refused_by_name(tmp_path):
    play = begun(tmp_path / "m", stop=7)
    assert decide(play.output, fields(steps=8), allow=("training.steps",)) is Action.RESUME
    for steps in (6, 7):
        with refused(UsageError, "training.steps", "7"):
            decide(play.output, fields(steps=steps), allow=("training.steps",))
    with refused(RegardError, "training.rate"):
        decide(play.output, fields(rate=0.5))
    assert decide(play.output, fields(rate=0.5), allow=("training.rate",)) is Action.RESUME
    for path in (play.output / "training" / "checkpoints").glob("step-*"):
        path.rename(path.with_name(path.name + ".corrupt-now"))
    assert decide(play.output, fields()) is Action.RESUME  # only damaged checkpoints are never a start
    with pytest.raises(NoValidCheckpoint):
        play.fit()


def test_any_other_folder_is_refused_and_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    for resume in ("auto", "must", "never"):
        with refused(RegardError, tmp_path, "thesis.tex"), claim_output(tmp_path, fields(), resume):
            pass
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]
    with refused(RegardError, "thesis.tex"), claim_output(tmp_path / "thesis.tex", fields()):
        pass


def test_a_model_without_its_training_folder_is_not_overwritten(tmp_path):
    for name in ("recipe.toml", "model.safetensors", "tokenizer.json"):
        (tmp_path / name).write_text("finished")
    with refused(RegardError, tmp_path, "training/"):
        decide(tmp_path, fields())
    with claim_output(tmp_path, fields(), "never") as action:
        assert action is Action.START
    (aside,) = tmp_path.glob("training.before-*")
    assert (aside / "model.safetensors").read_text() == "finished"


def test_never_keeps_the_earlier_run_and_its_model(tmp_path):
    play = begun(tmp_path / "m")
    model = (play.output / "model.safetensors").read_bytes()
    for number in (1, 2):
        with claim_output(play.output, fields(rate=0.5), "never") as action:
            assert action is Action.START
            assert sorted(p.name for p in (play.output / "training").iterdir()) == ["lock"]
            resolved.write(play.output / "training", fields(rate=0.5), Fast())
        asides = list(play.output.glob("training.before-*"))
        assert len(asides) == number
    (kept,) = [a / "model.safetensors" for a in asides if (a / "model.safetensors").exists()]
    assert kept.read_bytes() == model
    assert (kept.parent / "checkpoints" / "step-000010").exists()


def test_a_second_writer_is_refused_and_a_kill_leaves_no_lock(tmp_path):
    def dies():
        with claim_output(tmp_path, fields()):
            os._exit(137)

    assert in_child(dies) == 137

    def tries():
        with refused(RegardError, tmp_path), claim_output(tmp_path, fields()):
            pass

    with claim_output(tmp_path, fields()):
        assert in_child(tries) == 0
    with claim_output(tmp_path, fields()) as action:
        assert action is Action.START


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
    put(tmp_path / "run" / "training", {"resolved.toml": b""})  # nor is anything made in the folder of a run
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

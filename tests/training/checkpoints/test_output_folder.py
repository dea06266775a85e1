"""The output folder: every state of it, and a second writer."""

import os

import pytest

from regard.system.errors import NoValidCheckpoint, RegardError, Stopped, UsageError
from regard.training.checkpoints import resolved
from regard.training.checkpoints.output_folder import Action, claim_output, decide
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
    with refused(RegardError, "training.steps", "--allow-mismatch"):
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


def test_killed_before_the_first_checkpoint_starts_again(tmp_path):
    (tmp_path / "training" / "checkpoints" / "step-000001.partial-x").mkdir(parents=True)
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "tokenizer.json.partial").write_text("{")
    assert decide(tmp_path, fields()) is Action.START
    with pytest.raises(NoValidCheckpoint):
        decide(tmp_path, fields(), "must")


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
    assert any((aside / "model.safetensors").exists() for aside in asides)
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

"""``regard.train``, dropout on, stopped or killed before a file operation, ends with the bits of a run that was not.

So does one of so many minutes: steps made while measuring are its own, and it is planned anew midway. Its card tells of
all its starts what is true of it, and nothing of that is in what it depends on.
"""

import json
import random
import re
import shutil
import tomllib
from datetime import UTC, datetime
from functools import partial

import pytest

import regard
from regard.data.prepare.folder import DataMismatch
from regard.inspection.folders.training_curves import TrainingCurves
from regard.system.errors import Stopped
from regard.tasks.metrics import calibration
from regard.text.confidence import CONFIDENCE
from regard.training import budget, trainer
from regard.training.checkpoints import manifest, provenance, resolved
from regard.training.checkpoints.files import Files
from regard.training.checkpoints.output_folder import _set_aside, claim_output
from regard.training.update import MeasuredSteps
from tests.refusals import refused
from tests.resume import small_runs
from tests.resume.small_runs import (
    SEEN,
    SETTINGS,
    classify,
    ended,
    killed,
    killed_and_resumed,
    results,
    stopped_and_resumed,
    ticking_train,
    train,
)
from tests.training.toy import StopAt, lines, undated, whole

pytestmark = pytest.mark.usefixtures("counted")
KINDS = {
    "food": "bread soup apple cheese rice",
    "sport": "ball race team goal swim",
    "sky": "star moon cloud sun rain",
    "none": "pen shoe key lamp door",
}


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """A hundred and twenty texts, each with words of its label; a few too long for one window."""
    path, generator = tmp_path_factory.mktemp("texts") / "a.csv", random.Random(5)
    rows = []
    for number in range(120):
        label = generator.choice(sorted(KINDS))
        chosen = generator.choices(KINDS[label].split() + "the a my big near".split(), k=60 if number % 40 == 7 else 5)
        rows.append(f"{' '.join(chosen)},{label}\n")
    path.write_text("text,label\n" + "".join(rows))
    return path


@pytest.fixture(scope="module")
def classified(texts, counted, tmp_path_factory):
    """What a classifier's run leaves that is never stopped, and its file operations, in order."""
    output = tmp_path_factory.mktemp("classified") / "model"
    seen = small_runs.operations(partial(classify, texts), output)
    return ended(output), seen


def learn(accumulate, corpus, output, flag=None, more=(), **given):
    """A translator of more steps."""
    settings = [*SETTINGS, "training.validate_every=5", f"training.accumulate={accumulate}", *more]
    return train(corpus, output, flag, **{"settings": settings, "steps": 12, **given})


@pytest.mark.long(minutes=0.04)
@pytest.mark.parametrize(
    "stops", [(0, 5, 9), *(pytest.param((stop, stop + 1), marks=pytest.mark.long(0.1)) for stop in range(1, 9))]
)
def test_a_classifier_stopped_and_resumed(texts, classified, tmp_path, stops):
    stopped_and_resumed(partial(classify, texts), tmp_path / "model", stops, classified[0])


@pytest.mark.long(minutes=0.05)
def test_a_translator_with_a_recurrent_decoder_stopped_and_resumed(corpus, tmp_path):
    run = partial(learn, 1, corpus, more=["model.decoder_cell=ssru"])
    run(tmp_path / "never")
    stopped_and_resumed(run, tmp_path / "model", (5, 9), ended(tmp_path / "never"))


@pytest.mark.parametrize(
    ("accumulate", "stops"),
    [(2, (6,)), *(pytest.param(1, (stop, stop + 1), marks=pytest.mark.long(0.3)) for stop in range(11))],
)
def test_a_translator_stopped_and_resumed(corpus, tmp_path, accumulate, stops):
    learn(accumulate, corpus, tmp_path / "never")
    stopped_and_resumed(partial(learn, accumulate, corpus), tmp_path / "model", stops, ended(tmp_path / "never"))


def test_the_operations_are_those_of_the_whole_run(never, classified):
    hidden = "tokenizer.source.json tokenizer.target.json recipe.toml resolved.toml model.safetensors card.md latest"
    translated = [*(f".{name}" for name in hidden.split()), "step-000004"]
    for seen, names in ((never[1], translated), (classified[1], [".tokenizer.json", ".labels.json", ".card.md"])):
        assert [name for name in names if not any(f"rename {name}" in operation for operation in seen)] == []


def place(seen, share, of):
    """An operation of one of so many parts of a run: while it begins, while it goes, while it ends."""
    part = len(seen) // of
    return random.Random(f"{share} of {of}").randrange(share * part, (share + 1) * part) + 1


@pytest.fixture
def runs(corpus, texts, never, classified):
    """A translator's run and a classifier's, their operations, and what they leave."""
    return (partial(train, corpus), never[1], never[0]), (partial(classify, texts), classified[1], classified[0][3])


@pytest.mark.one_of(4)
@pytest.mark.parametrize("share", range(4))
def test_killed_somewhere(runs, tmp_path, share):
    for run, seen, wanted in runs:
        killed_and_resumed(run, tmp_path / "model", place(seen, share, 4), wanted)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("share", range(3))
def test_an_adapter_killed_somewhere(corpus, tmp_path, never, share):
    run = partial(train, corpus, settings=[*SETTINGS, "adapt.rank=2"], start_from=never[2])
    seen = small_runs.operations(run, tmp_path / "model")
    wanted = results(tmp_path / "model")
    assert "base.json" in wanted
    shutil.rmtree(tmp_path / "model")
    killed_and_resumed(run, tmp_path / "model", place(seen, share, 3), wanted)


@pytest.mark.one_of(3, minutes=0.1)
@pytest.mark.parametrize("behind", [0, 1, None])
def test_killed_while_it_is_fitted(runs, tmp_path, behind):
    """Temperature and threshold are written when the weights are done: the last files of a run."""
    run, seen, wanted = runs[1]
    last = [number for number, operation in enumerate(seen, 1) if ".labels.json" in operation]
    number = len(seen) if behind is None else last[-1] + behind
    killed_and_resumed(run, tmp_path / "model", number, wanted)


@pytest.mark.long(2)
@pytest.mark.parametrize("share", range(32))
def test_killed_anywhere(runs, tmp_path, share):
    for run, seen, wanted in runs:
        for number in range(1 + share, len(seen) + 1, 32):
            killed_and_resumed(run, tmp_path / "model", number, wanted)


def test_what_was_fitted_is_of_the_finished_run(texts, classified, tmp_path):
    """A finished run says so; one whose labels were lost is mended from its best checkpoint, to the bit."""
    classify(texts, tmp_path / "model")
    (tmp_path / "model" / "labels.json").unlink()
    classify(texts, tmp_path / "model")
    assert results(tmp_path / "model") == classified[0][3]


@pytest.mark.long(minutes=0.05)
def test_it_is_begun_from_the_same_model_again(texts, tmp_path):
    """A run that begins from another model rests on that model's weights."""
    for name, seed in (("first", 1), ("second", 2)):
        classify(texts, tmp_path / name, steps=2, seed=seed)
    with pytest.raises(Stopped):
        classify(texts, tmp_path / "model", StopAt(3), start_from=tmp_path / "first")
    with refused(DataMismatch, "data", "fingerprint.from"):
        classify(texts, tmp_path / "model", start_from=tmp_path / "second")
    classify(texts, tmp_path / "model", start_from=tmp_path / "first")
    classify(texts, tmp_path / "whole", start_from=tmp_path / "first")
    assert ended(tmp_path / "model") == ended(tmp_path / "whole")


@pytest.mark.long(minutes=0.1)
def test_a_translator_that_goes_on_from_another_resumes(corpus, tmp_path):
    """Its scores before and after are of the card, which is of the results."""
    train(corpus, tmp_path / "first", steps=2, seed=7)
    going_on = partial(train, corpus, start_from=tmp_path / "first")
    going_on(tmp_path / "whole")
    stopped_and_resumed(going_on, tmp_path / "model", (1, 3), ended(tmp_path / "whole"))


def test_going_on_with_another_beam_leaves_the_model_readable(corpus, tmp_path):
    for stop, more in ((6, ()), (7, ("decoding.beam=2",))):
        with pytest.raises(Stopped):
            learn(1, corpus, tmp_path / "model", StopAt(stop), more)
        manifest.verify(tmp_path / "model", extra=True)
    assert regard.load(tmp_path / "model").recipe.decoding.beam == 2


@pytest.mark.long(minutes=0.07)
def test_which_confidence_is_usual_is_of_the_finished_run(corpus, tmp_path, monkeypatch):
    """Until then nothing is doubted; stopped while it is fitted, lost, or with more steps, it is fitted anew."""
    monkeypatch.setattr(calibration, "UNUSUAL", 0.25)  # the validation has five pairs
    learn(1, corpus, tmp_path / "never")
    wanted = (tmp_path / "never" / CONFIDENCE).read_bytes()
    assert regard.load(tmp_path / "never").assets.doubted_below > 0
    output = tmp_path / "model"
    for stop in (6, 12):  # the second in the search for the final scores
        with pytest.raises(Stopped):
            learn(1, corpus, output, StopAt(stop))
        assert regard.load(output).assets.doubted_below == 0
    learn(1, corpus, output)
    assert (output / CONFIDENCE).read_bytes() == wanted
    (output / CONFIDENCE).unlink()
    learn(1, corpus, output)
    assert results(output) == results(tmp_path / "never")
    before = (output / "model.safetensors").read_bytes()
    with pytest.raises(Stopped):
        learn(1, corpus, output, StopAt(20), steps=20, allow_mismatch=["training.steps"])
    assert (regard.load(output).assets.doubted_below == 0) == ((output / "model.safetensors").read_bytes() != before)


def earlier_run(output):
    """A folder as a finished run leaves it, in outline."""
    (output / "training" / "checkpoints").mkdir(parents=True)
    for name in ("recipe.toml", "model.safetensors", "manifest.json", "training/metrics.jsonl"):
        (output / name).write_text(f"old {name}")


def test_killed_while_an_earlier_run_is_set_aside(tmp_path):
    """Nothing of it is lost, and the next ``--resume never`` starts."""
    earlier_run(tmp_path / "count")
    SEEN.clear()
    _set_aside(tmp_path / "count")
    operations = len(SEEN)
    assert operations >= 6
    for number in range(1, operations + 1):
        output = tmp_path / str(number)
        earlier_run(output)
        killed(partial(_set_aside, output), number)
        with claim_output(output, {}, "never"):
            assert sorted(path.name for path in (output / "training").iterdir()) == ["lock"]
        kept = {path.name: path.read_text() for path in output.rglob("*") if path.is_file() and path.name != "lock"}
        assert {"recipe.toml", "model.safetensors", "manifest.json", "metrics.jsonl"} == set(kept)
        assert all(text.startswith("old") for text in kept.values())


MORE = ["training.schedule=noam", "training.warmup=1", "training.validate_every=5", "training.save_every=4"]


def measured_train(corpus, output, *stops, fatal=None):
    """Train; in its minute two steps are measured. The steps that are kept, if any are."""
    taken = []

    def noted(kept, optimiser, give=MeasuredSteps.give):
        taken.append(len(kept.made))
        give(kept, optimiser)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MeasuredSteps, "give", noted)
        patch.setattr(trainer, "_SNAPSHOTS", (50, 100))  # the first ones of so short a run would be due at once
        patch.setattr(budget, "_AS_BEFORE", 1e9)  # a clock that was killed decides otherwise midway
        ticking_train(corpus, output, *stops, fatal=fatal, minutes=1.0, settings=[*SETTINGS, *MORE])
    return taken


@pytest.fixture(scope="module")
def measured(corpus, counted, tmp_path_factory):
    """A run that kept its first steps, and its file operations."""
    output = tmp_path_factory.mktemp("measured") / "model"
    assert measured_train(corpus, output) == [2]
    made = [line["step"] for line in lines(output / "training" / "metrics.jsonl") if line["kind"] == "step"]
    assert made == list(range(1, len(made) + 1))  # every step is in the log once
    assert len(made) > 10
    return output, list(SEEN)


def same(output, measured):
    assert results(output) == results(measured)
    assert lines(output / "training" / "metrics.jsonl") == lines(measured / "training" / "metrics.jsonl")


def test_stopped_behind_the_measured_steps_it_goes_on(corpus, measured, tmp_path):
    with refused(Stopped, None, "2"):
        measured_train(corpus, tmp_path / "model", 2)
    assert measured_train(corpus, tmp_path / "model") == []
    same(tmp_path / "model", measured[0])


@pytest.mark.long(minutes=0.06)
def test_killed_before_they_are_saved_they_are_made_again(corpus, measured, tmp_path):
    output, operations = measured
    first = next(n for n, operation in enumerate(operations) if operation == "rename step-000004")
    for number in (operations.index("rename .resolved.toml") + 2, first + 1):
        place = tmp_path / f"{number}"
        measured_train(corpus, place, fatal=number)
        assert not list((place / "training").glob("checkpoints/step-??????"))
        assert measured_train(corpus, place) == []
        same(place, output)


@pytest.mark.long(minutes=0.5)
def test_a_measured_run_killed_anywhere(corpus, measured, tmp_path):
    output, operations = measured
    for number in random.Random(7).sample(range(1, len(operations) + 1), 12):
        place = tmp_path / f"{number}"
        measured_train(corpus, place, fatal=number)
        measured_train(corpus, place)
        same(place, output)


def slow_train(corpus, output, *stops, fatal=None, **more):
    """Train on a clock that goes slowly, once training has begun: then it is planned anew midway."""
    return ticking_train(corpus, output, *stops, fatal=fatal, pace=0.8, **(more or {"minutes": 0.9}))


@pytest.fixture(scope="module")
def replanned(corpus, counted, tmp_path_factory):
    """A run that was never stopped, its reporter, and its operations."""
    output = tmp_path_factory.mktemp("whole") / "model"
    return output, slow_train(corpus, output), list(SEEN)


def test_everything_says_the_new_number(replanned):
    output, reporter, _ = replanned
    fields = resolved.read_fields(output / "training")
    first, steps = fields["chosen.planned"], fields["chosen.steps"]
    assert 4 < first < steps
    assert (fields["chosen.reviewed"], len(fields["chosen.costs"])) == (first // 2, 6)
    assert sum(event.startswith(f"re-planned at step {first // 2}: {steps} steps") for event in reporter.events) == 1
    assert reporter.starts == [(0, first), (first // 2, steps)]
    assert reporter.step == steps
    course = TrainingCurves(output)
    course.advance()
    assert (course.planned, course.updates.steps[-1]) == (steps, steps)
    assert tomllib.loads((output / "recipe.toml").read_text())["training"]["steps"] == steps
    assert f"\n{steps} steps of up to" in (output / "card.md").read_text()
    assert regard.load(output).recipe.training.steps == steps
    assert re.search(r"0\.9 minutes: measuring \d+ s, training \d+ s, final scores \d+ s$", reporter.events[-1])


def test_a_moment_makes_a_step_and_a_model(corpus, tmp_path):
    reporter = slow_train(corpus, tmp_path / "model", minutes=0.01)
    assert reporter.starts == [(0, 1)]
    assert any("too little time to learn much: 1 step in 0.01 minutes" in event for event in reporter.events)
    assert "beyond 0.01 minutes: measuring" in reporter.events[-1]
    assert regard.load(tmp_path / "model").recipe.training.steps == 1
    card = (tmp_path / "model" / "card.md").read_text()
    assert "\n* BLEU" in card
    assert "\n| words of the source | sentences | BLEU (95 %) | chrF (95 %) |\n" in card
    assert any(event.startswith("* BLEU") for event in reporter.events)
    assert not any("\n" in event or event.startswith("|") for event in reporter.events)  # lines for people


@pytest.mark.long(minutes=0.08)
def test_killed_behind_the_review_or_lost_it_is_the_same_run(corpus, replanned, tmp_path):
    output, reporter, operations = replanned
    places = [n for n, operation in enumerate(operations, 1) if operation == "rename .resolved.toml"]
    assert len(places) == 2  # at the start and midway
    slow_train(corpus, tmp_path / "killed", fatal=places[1] + 1)
    again = slow_train(corpus, tmp_path / "killed")
    assert not any("re-planned" in event for event in again.events)
    assert results(tmp_path / "killed") == results(output)
    with pytest.raises(Stopped):
        slow_train(corpus, tmp_path / "lost", reporter.starts[1][0] + 1)
    (tmp_path / "lost" / "training" / resolved.NAME).unlink()  # it is known from a checkpoint
    slow_train(corpus, tmp_path / "lost")
    assert results(tmp_path / "lost") == results(output)


@pytest.mark.long(minutes=0.05)
@pytest.mark.parametrize("reviews", [False, True])
def test_a_run_from_before_there_were_reviews_or_final_scores_counted(corpus, tmp_path, reviews):
    """It goes on to its steps, or is planned anew as it was."""
    with pytest.raises(Stopped):
        slow_train(corpus, tmp_path / "model", 2)
    place = tmp_path / "model" / "training"
    fields = resolved.read_fields(place)
    costs, first = fields.pop("chosen.costs"), fields["chosen.steps"]
    assert costs[5] > 0
    resolved.write(place, {**fields, "chosen.costs": costs[:5]} if reviews else fields, Files())
    again, found = slow_train(corpus, tmp_path / "model"), resolved.read_fields(place)
    if reviews:
        assert again.starts == [(2, first), (found["chosen.reviewed"], found["chosen.steps"])]
        assert found["chosen.costs"] == costs[:5]
    else:
        assert (again.starts, again.step) == ([(2, first)], first)
        assert "chosen.planned" not in found


@pytest.mark.long(minutes=0.05)
def test_finished_it_can_be_made_longer(corpus, tmp_path):
    """Then the steps are given, and of what was planned nothing is left."""
    slow_train(corpus, tmp_path / "model")
    place = tmp_path / "model" / "training"
    steps = resolved.read_fields(place)["chosen.steps"] + 3
    assert slow_train(corpus, tmp_path / "model", steps=steps, allow_mismatch=["training.steps"]).step == steps
    kept = {name for name in resolved.read_fields(place) if name.startswith("chosen.")}
    assert kept.isdisjoint({"chosen.costs", "chosen.planned", "chosen.reviewed"})


def card(output):
    return (output / "card.md").read_text()


def row(output, pattern):
    """What the card has in its rows of this pattern."""
    return re.findall(rf"^\| {pattern} \|$", card(output), re.MULTILINE)


def state(output, step):
    return json.loads((output / "training" / "checkpoints" / f"step-{step:06d}" / "state.json").read_text())


def test_seconds_add_up_and_the_date_is_that_of_the_writing(corpus, tmp_path):
    began, output = datetime.now(UTC).replace(microsecond=0), tmp_path / "model"
    with pytest.raises(Stopped):
        ticking_train(corpus, output, 3, pace=10.0)
    before = state(output, 3)["seconds"]
    ticking_train(corpus, output, pace=1.0)
    (seconds,) = row(output, r"training \| ([\d.,]+) seconds.*")
    assert before >= 30
    assert before < state(output, 4)["seconds"] <= float(seconds.replace(",", "")) < before + 30
    (written,) = row(output, r"written \| (.*) UTC")
    assert began <= datetime.fromisoformat(f"{written}+00:00") <= datetime.now(UTC)


@pytest.mark.long(minutes=0.04)
def test_what_a_run_depends_on_is_the_same_whatever_is_told(corpus, tmp_path):
    told, silent = tmp_path / "a" / "model", tmp_path / "b" / "model"
    for folder in (told, silent):
        folder.parent.mkdir()
    train(corpus, silent)
    with pytest.raises(Stopped):
        train(corpus, told, StopAt(2), licence="CC0 1.0")
    train(corpus, told)
    assert "CC0 1.0" in card(told)
    assert "Licence" not in card(silent)
    assert (told / "training" / resolved.NAME).read_bytes() == (silent / "training" / resolved.NAME).read_bytes()
    for part in ("weights", "optimiser", "ema"):
        name = f"training/checkpoints/step-000004/{part}.safetensors"
        assert whole(told / name) == whole(silent / name)
    assert undated(told / "manifest.json") == undated(silent / "manifest.json")
    assert {**state(told, 4), "seconds": 0} == {**state(silent, 4), "seconds": 0}
    manifest.verify(told, extra=True)


@pytest.mark.long(minutes=0.04)
def test_each_command_that_had_a_part_is_listed_once_and_a_licence_that_comes_too_late_is_told(corpus, tmp_path):
    output, more = tmp_path / "model", {"steps": 6, "allow_mismatch": ["training.steps"]}
    for given in ({}, more, more):
        train(corpus, output, **given)
    commands = row(output, r"command \| `(.*)`")
    assert [re.search(r"--steps (\d)", one)[1] for one in commands] == ["4", "6"]
    assert str(tmp_path) not in card(output)
    assert len(provenance.load(output / "training").versions) == 1
    before, late = card(output), StopAt()
    train(corpus, output, late, licence="CC0", **more)
    assert card(output) == before
    assert any("a licence" in event for event in late.reporter.events)

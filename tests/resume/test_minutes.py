"""``regard.train --minutes``, planned anew midway: every file says the new number of steps, whatever happened."""

import re
import tomllib

import pytest

import regard
from regard.inspection.folders.training_curves import TrainingCurves
from regard.system.errors import Stopped
from regard.training.checkpoints import resolved
from regard.training.checkpoints.files import Files
from tests.resume.small_runs import SEEN, results, ticking_train

pytestmark = pytest.mark.usefixtures("counted")


def train(corpus, output, *stops, fatal=None, **more):
    """Train on a clock that goes slowly, once training has begun."""
    return ticking_train(corpus, output, *stops, fatal=fatal, pace=0.2, **(more or {"minutes": 0.9}))


@pytest.fixture(scope="module")
def whole(corpus, counted, tmp_path_factory):
    """A run that was never stopped, its reporter, and its operations."""
    output = tmp_path_factory.mktemp("whole") / "model"
    return output, train(corpus, output), list(SEEN)


def test_everything_says_the_new_number(whole):
    output, reporter, _ = whole
    fields = resolved.read_fields(output / "training")
    first, steps = fields["chosen.planned"], fields["chosen.steps"]
    assert 4 < first < steps
    assert fields["chosen.reviewed"] == first // 2
    assert len(fields["chosen.costs"]) == 6
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
    reporter = train(corpus, tmp_path / "model", minutes=0.01)
    assert reporter.starts == [(0, 1)]
    assert any("too little time to learn much: 1 step in 0.01 minutes" in event for event in reporter.events)
    assert "beyond 0.01 minutes: measuring" in reporter.events[-1]
    assert regard.load(tmp_path / "model").recipe.training.steps == 1
    assert "\n* BLEU" in (tmp_path / "model" / "card.md").read_text()


def test_killed_behind_the_review_it_is_the_same_run(corpus, whole, tmp_path):
    output, _, operations = whole
    places = [n for n, operation in enumerate(operations, 1) if operation == "rename .resolved.toml"]
    assert len(places) == 2  # at the start and midway
    train(corpus, tmp_path / "model", fatal=places[1] + 1)
    again = train(corpus, tmp_path / "model")
    assert not any("re-planned" in event for event in again.events)
    assert results(tmp_path / "model") == results(output)


def test_lost_it_is_known_from_a_checkpoint(corpus, whole, tmp_path):
    output, reporter, _ = whole
    with pytest.raises(Stopped):
        train(corpus, tmp_path / "model", reporter.starts[1][0] + 1)
    (tmp_path / "model" / "training" / resolved.NAME).unlink()
    train(corpus, tmp_path / "model")
    assert results(tmp_path / "model") == results(output)


@pytest.mark.parametrize("reviews", [False, True])
def test_a_run_from_before_there_were_reviews_or_final_scores_counted(corpus, tmp_path, reviews):
    """It goes on to its steps, or is planned anew as it was."""
    with pytest.raises(Stopped):
        train(corpus, tmp_path / "model", 2)
    place = tmp_path / "model" / "training"
    fields = resolved.read_fields(place)
    costs, first = fields.pop("chosen.costs"), fields["chosen.steps"]
    assert costs[5] > 0
    resolved.write(place, {**fields, "chosen.costs": costs[:5]} if reviews else fields, Files())
    again, found = train(corpus, tmp_path / "model"), resolved.read_fields(place)
    if reviews:
        assert again.starts == [(2, first), (found["chosen.reviewed"], found["chosen.steps"])]
        assert found["chosen.costs"] == costs[:5]
    else:
        assert (again.starts, again.step) == ([(2, first)], first)
        assert "chosen.planned" not in found


def test_finished_it_can_be_made_longer(corpus, tmp_path):
    """Then the steps are given, and of what was planned nothing is left."""
    train(corpus, tmp_path / "model")
    place = tmp_path / "model" / "training"
    steps = resolved.read_fields(place)["chosen.steps"] + 3
    again = train(corpus, tmp_path / "model", steps=steps, allow_mismatch=["training.steps"])
    assert again.step == steps
    kept = {name for name in resolved.read_fields(place) if name.startswith("chosen.")}
    assert kept.isdisjoint({"chosen.costs", "chosen.planned", "chosen.reviewed"})

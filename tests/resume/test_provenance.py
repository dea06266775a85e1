"""A card tells of all starts of a run what is true of it, and nothing of that is in what the run depends on."""

import json
import re
from datetime import UTC, datetime

import pytest

from regard.system.errors import Stopped
from regard.training.checkpoints import manifest, provenance, resolved
from tests.resume.small_runs import ticking_train, train
from tests.training.toy import Counting, StopAt, undated, whole

pytestmark = pytest.mark.usefixtures("one_thread")


def card(output):
    return (output / "card.md").read_text()


def seconds(output):
    return float(re.search(r"^\| training \| ([\d.,]+) seconds", card(output), re.MULTILINE)[1].replace(",", ""))


def state(output, step):
    return json.loads((output / "training" / "checkpoints" / f"step-{step:06d}" / "state.json").read_text())


def test_seconds_add_up_and_the_date_is_that_of_the_writing(corpus, tmp_path):
    began, output = datetime.now(UTC).replace(microsecond=0), tmp_path / "model"
    with pytest.raises(Stopped):
        ticking_train(corpus, output, 3, pace=10.0)
    before = state(output, 3)["seconds"]
    ticking_train(corpus, output, pace=1.0)
    assert before >= 30
    assert before < state(output, 4)["seconds"] <= seconds(output) < before + 30
    written = re.search(r"^\| written \| (.*) UTC \|$", card(output), re.MULTILINE)[1]
    assert began <= datetime.fromisoformat(f"{written}+00:00") <= datetime.now(UTC)


def test_what_a_run_depends_on_is_the_same_whatever_is_told(corpus, tmp_path):
    told, silent = tmp_path / "a" / "model", tmp_path / "b" / "model"
    for folder in (told, silent):
        folder.parent.mkdir()
    train(corpus, silent)
    with pytest.raises(Stopped):
        train(corpus, told, licence="CC0 1.0", should_stop=(stop := StopAt(2)), reporter=stop.reporter)
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


def test_each_command_that_had_a_part_is_listed_once(corpus, tmp_path):
    output = tmp_path / "model"
    train(corpus, output)
    more = {"steps": 6, "allow_mismatch": ["training.steps"]}
    train(corpus, output, **more)
    train(corpus, output, **more)
    commands = re.findall(r"^\| command \| `(.*)` \|$", card(output), re.MULTILINE)
    assert [re.search(r"--steps (\d)", one)[1] for one in commands] == ["4", "6"]
    assert str(tmp_path) not in card(output)
    assert len(provenance.load(output / "training").versions) == 1


def test_a_licence_that_comes_too_late_is_told(corpus, tmp_path):
    train(corpus, tmp_path / "model")
    before, reporter = card(tmp_path / "model"), Counting()
    train(corpus, tmp_path / "model", reporter, licence="CC0")
    assert card(tmp_path / "model") == before
    assert any("--licence" in event for event in reporter.events)

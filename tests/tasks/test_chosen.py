"""What is chosen once is kept, but for what a person asks for anew."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import torch

from regard.config import Recipe, Training
from regard.tasks.chosen import Chosen, _length, processor, remembered
from regard.tasks.teaching import Teaching
from regard.training import budget, measuring, resolved
from regard.training.files import Files
from regard.training.run import Hooks

CPU = torch.device("cpu")
CHOSEN = Chosen(steps=12, validate_every=3, tokens=512, accumulate=2, product="bf16", exact="onednn", threads=1)
PLANNED = replace(CHOSEN, costs=(0.5, 0.25, 1.0, 0.125, 9.0))


def test_what_was_chosen_is_remembered(tmp_path: Path) -> None:
    assert remembered(tmp_path, CPU) is None
    for chosen in (CHOSEN, replace(CHOSEN, steps=None), PLANNED, replace(PLANNED, steps=20, planned=12, reviewed=6)):
        resolved.write(tmp_path, chosen.fields(), Files())
        assert remembered(tmp_path, CPU) == chosen


def test_it_lies_over_the_recipe() -> None:
    recipe = CHOSEN.applied(Recipe(training=Training(minutes=5, rate=0.5)))
    section = recipe.training
    assert (section.steps, section.validate_every, section.tokens, section.accumulate) == (12, 3, 512, 2)
    assert (section.minutes, section.rate) == (5, 0.5)


def test_what_came_of_planning_anew_is_gone_on_with() -> None:
    assert PLANNED.review is None
    again = replace(PLANNED, steps=20, planned=12, reviewed=6)
    assert again.review == budget.Review(at=6, planned=12, steps=20)
    assert again.asked(Recipe(training=Training(minutes=5)), None) == again
    assert again.asked(Recipe(training=Training(steps=30)), None) == replace(CHOSEN, steps=30)


def test_what_is_asked_for_anew_takes_its_place() -> None:
    assert CHOSEN.asked(Recipe(), None) == CHOSEN
    asked = CHOSEN.asked(Recipe(training=Training(steps=20, validate_every=4, tokens=4096)), 2)
    assert asked == replace(CHOSEN, steps=20, validate_every=4, threads=2)


@pytest.mark.parametrize(
    ("section", "found"),
    [
        (Training(steps=40, minutes=1, validate_every=3), (40, 3, None)),
        (Training(patience=4, schedule="noam"), (None, 1000, None)),
        # nine tenths of 60 s, less 1 s, at 0.5 s a step
        (Training(minutes=1, patience=4, schedule="noam", validate_every=5), (106, 5, (0.5, 0.0, 0.0, 0.0, 1.0))),
        (Training(steps=40, patience=4, schedule="noam", validate_every=5), (40, 5, None)),
    ],
)
def test_the_length_of_a_run(section: Training, found: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    costs = budget.Costs(step=0.5, loss=0.0, text=0.0, save=0.0, spent=1.0)
    monkeypatch.setattr(measuring, "measure", lambda *given: costs)
    task = SimpleNamespace(recipe=Recipe(training=section))
    teaching = cast(Teaching, SimpleNamespace(task=task, batches=None))
    assert _length(teaching, tmp_path, Hooks()) == found


def test_the_processor_has_a_name() -> None:
    assert processor(CPU)

"""Which presets go out to the other library, and with which settings: the table of docs/convert.md, tried."""

import re
from pathlib import Path
from typing import Any

import pytest

from regard.config import override, recipe_from
from regard.models.presets import PRESETS
from regard.runs.convert.layouts import exports
from tests.tasks.small_tasks import size_tables

DOCUMENT = Path(__file__).parents[3] / "docs" / "convert.md"


def documented() -> list[tuple[str, str, tuple[str, ...]]]:
    """Preset, task and settings of every line, and of every name in it."""
    text = DOCUMENT.read_text(encoding="utf-8").partition("| preset | task | goes out |")[2].partition("\n\n")[0]
    found = []
    for line in text.splitlines()[2:]:
        presets, tasks, how = (cell.strip() for cell in line.strip("|").split("|"))
        assert how == "as it is" or "`--set " in how
        settings = tuple(re.findall(r"--set ([\w.=]+)", how))
        names = re.findall(r"`([\w-]+)`", presets)
        found += [(name, task, settings) for name in names for task in re.findall(r"`([\w-]+)`", tasks)]
    return found


TABLE = documented()


def missing(name: str, task: str, settings: tuple[str, ...]) -> list[str]:
    """The fields that stand in the way of a preset with these settings."""
    preset = PRESETS[name]
    values: dict[str, Any] = {"task": task, "model": {"family": preset.family, **preset.model}}
    return [obstacle.field for obstacle in exports(recipe_from(override(values, settings))).obstacles]


@pytest.mark.parametrize(("name", "task", "settings"), TABLE)
def test_a_preset_goes_out_as_the_table_says(name: str, task: str, settings: tuple[str, ...]) -> None:
    assert missing(name, task, settings) == []


@pytest.mark.parametrize(("name", "task", "settings"), [row for row in TABLE if row[2]])
def test_none_of_its_settings_is_too_much(name: str, task: str, settings: tuple[str, ...]) -> None:
    for place in range(len(settings)):
        assert settings[place].partition("=")[0] in missing(name, task, settings[:place] + settings[place + 1 :])


def test_the_table_has_every_preset_that_is_picked() -> None:
    picked = {(task, size.preset) for task, sizes in size_tables().items() for size in sizes}
    recurrent = {one for one in picked if PRESETS[one[1]].family == "rnn-encoder"}  # no form, as the next test has it
    assert picked - recurrent <= {(task, name) for name, task, _ in TABLE}


def test_a_recurrent_reader_has_no_form() -> None:
    assert missing("classifier-rnn", "classification", ()) == ["model.family"]

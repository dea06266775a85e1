"""Which presets go out to the other library, and with which settings: the table of docs/convert.md, tried."""

import re
from pathlib import Path
from typing import Any

import pytest

from regard.config import override, recipe_from
from regard.convert import hub_files
from regard.data.batches.patches import Scale
from regard.models.presets import PRESETS
from regard.models.store import weights
from regard.system.errors import UsageError
from regard.tasks.model_folder import model_class
from regard.tasks.training.defaults import READINGS, SIZES
from regard.text.tokenizers.tokenizer import learn
from tests.convert.small_folders import TEXTS
from tests.refusals import refused

DOCUMENT = Path(__file__).parents[2] / "docs" / "convert.md"
SMALLER = {"d_model": 24, "d_ff": 32, "heads": 3, "layers": 1, "encoder_layers": 1, "decoder_layers": 1}
"""What of a preset is made smaller here: no format asks for a size."""


def documented() -> list[tuple[str, str, tuple[str, ...]]]:
    """Preset, task and settings of every line, and of every name in it."""
    text = DOCUMENT.read_text(encoding="utf-8").partition("| preset | task | goes out |")[2].partition("\n\n")[0]
    found = []
    for line in text.splitlines()[2:]:
        presets, tasks, how = (cell.strip() for cell in line.strip("|").split("|"))
        assert how == "as it is" or how.startswith("`--set ")
        settings = tuple(re.findall(r"--set ([\w.=]+)", how))
        names = re.findall(r"`([\w-]+)`", presets)
        found += [(name, task, settings) for name in names for task in re.findall(r"`([\w-]+)`", tasks)]
    return found


TABLE = documented()


def out(name: str, task: str, settings: tuple[str, ...]) -> dict[str, bytes]:
    """The files of a model that was never trained."""
    preset = PRESETS[name]
    small = {field: value for field, value in SMALLER.items() if field in type(preset.section).model_fields}
    values: dict[str, Any] = {"task": task, "model": {"family": preset.family, **preset.model, **small}}
    recipe = recipe_from(override(values, settings))
    reads = preset.family != "vit"
    tokenizer = learn(TEXTS * 3, 290, symbols=("[CLS]", "[MASK]", "<extra_0>", "<extra_1>")) if reads else None
    pieces = tokenizer.size if tokenizer else 0
    sizes = pieces, pieces if task == "translation" else 3
    model = model_class(task).build(recipe, sizes)
    return hub_files(recipe, weights(model), tokenizer, ("a", "b", "c"), None if reads else Scale(9.0))


@pytest.mark.parametrize(("name", "task", "settings"), TABLE)
def test_a_preset_goes_out_as_the_table_says(name: str, task: str, settings: tuple[str, ...]) -> None:
    assert {"config.json", "model.safetensors"} <= out(name, task, settings).keys()


@pytest.mark.parametrize(("name", "task", "settings"), [row for row in TABLE if row[2]])
def test_none_of_its_settings_is_too_much(name: str, task: str, settings: tuple[str, ...]) -> None:
    for place in range(len(settings)):
        with refused(UsageError, settings[place].partition("=")[0]):
            out(name, task, settings[:place] + settings[place + 1 :])


def test_the_table_has_every_preset_that_is_picked() -> None:
    picked = {("translation", size.preset) for size in SIZES}
    picked |= {(task, row.preset) for task, rows in READINGS.items() for row in rows}
    recurrent = {one for one in picked if PRESETS[one[1]].family == "rnn-encoder"}  # no form, as the next test has it
    assert picked - recurrent <= {(task, name) for name, task, _ in TABLE}


def test_a_recurrent_reader_has_no_form_and_what_has_one_is_named() -> None:
    with refused(UsageError, "model.family", "'bert'", "docs/convert.md"):
        out("classifier-rnn", "classification", ())

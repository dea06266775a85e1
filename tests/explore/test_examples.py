"""Texts to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from regard.config import recipe_from
from regard.explore.examples import PLAIN, demonstrated, examples
from regard.tasks.demo import RECIPE
from small_tasks import log


def of(task: str, **more: Any) -> Any:
    return recipe_from({"task": task, **more})


def sample(source: str) -> dict[str, Any]:
    return {"kind": "sample", "step": 1, "source": source, "reference": "", "hypothesis": ""}


def test_the_demonstration_shows_its_pronouns(tmp_path: Path) -> None:
    recipe = recipe_from({**RECIPE, "seed": 4})
    assert demonstrated(recipe)
    found = examples(tmp_path, recipe)
    assert found[0] == "The animal didn't cross the street because it was too tired."
    assert len(found) == len(set(found)) == 6
    assert all(" because it " in text for text in found[:4])
    assert not any(" it " in text for text in found[4:])
    assert found != examples(tmp_path, recipe_from({**RECIPE, "seed": 5}))
    assert not demonstrated(recipe_from({**RECIPE, "text": {**RECIPE["text"], "vocabulary": 2401}}))
    assert not demonstrated(of("translation", model={"family": "rnn"}))


def test_a_run_shows_what_it_showed(tmp_path: Path) -> None:
    told = [
        sample("old"),
        {"kind": "step", "step": 2},
        sample("b c"),
        sample("new " * 60),
        sample("new"),
        sample("b c"),
    ]
    path = log(tmp_path, told)
    path.write_bytes(path.read_bytes() + b'{"kind": "sample", "source": "to\n{"kind": "sample", "source": 5}\n')
    found = examples(tmp_path, of("classification"))
    assert found[:2] == ["b c", "new"]
    assert found[3:] == ["old"]
    assert len(found[2]) <= 160
    assert found[2].endswith("new")


def test_of_running_text_the_lines_are_shown(tmp_path: Path) -> None:
    log(tmp_path, [sample("alf a line\nA whole line.\nAnother one.\nand ha"), sample("two\nlines more")])
    assert examples(tmp_path, of("language-model")) == ["lines more", "A whole line.", "Another one."]


@pytest.mark.parametrize("task", ["masked-lm", "span-corruption"])
def test_gaps_are_shown_by_one_name(tmp_path: Path, task: str) -> None:
    assert examples(tmp_path, of(task)) == [PLAIN]
    log(tmp_path, [sample("no gap"), sample("a <extra_0> and <extra_id_12>"), sample("a [MASK] b")])
    assert examples(tmp_path, of(task)) == ["a [MASK] b", "a [MASK] and [MASK]"]


def test_before_it_shows_anything_a_translator_has_what_it_is_validated_on(tmp_path: Path) -> None:
    data = tmp_path / "training" / "data"
    data.mkdir(parents=True)
    (data / "validation.source.txt").write_text("".join(f"sentence {n}\n" for n in range(20)))
    assert examples(tmp_path, of("translation")) == [f"sentence {n}" for n in range(6)]


def test_what_was_cut_inside_a_letter_is_left_out(tmp_path: Path) -> None:
    log(tmp_path, [sample("caf\ufffd"), sample("café")])
    assert examples(tmp_path, of("classification")) == ["café"]


def test_there_may_be_none(tmp_path: Path) -> None:
    for task in ("translation", "classification", "language-model", "tagging", "image-classification", "encoding"):
        assert examples(tmp_path, of(task)) == []
    (tmp_path / "training" / "metrics.jsonl").mkdir(parents=True)
    assert examples(tmp_path, of("translation")) == []

"""What a person does with a file of labelled texts, one command after the other."""

import json
from pathlib import Path
from typing import Any

import pytest

from regard.cli import main
from tests.e2e.conftest import settings
from tests.tasks.classification.small_classifiers import WORDS, rows, written

Run = Any
"""The fixture ``regard``: words in; code, out, err."""
SMALL = settings(
    "text.vocabulary=320 model.d_model=32 model.d_ff=64 model.heads=2 model.layers=1 data.validation=20 "
    "data.max_tokens=32 training.product=exact training.rate=0.01"
)


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with labelled texts and a finished ``model``."""
    folder = tmp_path_factory.mktemp("taught")
    written(folder / "a.csv", rows(240, 1))
    written(folder / "test.csv", rows(60, 2))
    given = ["--task", "classification", "--train", folder / "a.csv", "--output", folder / "model", "--steps", 40]
    assert main([str(word) for word in ["train", *given, "--threads", 1, *SMALL]]) == 0
    return folder


def test_the_folder_holds_what_is_promised(taught: Path) -> None:
    model = taught / "model"
    for name in ("recipe.toml", "model.safetensors", "tokenizer.json", "labels.json", "card.md", "manifest.json"):
        assert (model / name).is_file(), name
    card = (model / "card.md").read_text()
    assert "A text classifier" in card
    assert "3 labels" in card
    assert "calibration" in card
    kinds = {json.loads(line)["kind"] for line in (model / "training" / "metrics.jsonl").read_text().splitlines()}
    assert {"start", "step", "valid", "sample", "save"} <= kinds


def test_evaluation_says_what_the_model_is_worth_and_agrees_with_what_is_classified(taught: Path, regard: Run) -> None:
    values = json.loads(regard("evaluate", taught / "model", "--test", taught / "test.csv", "--json").out)
    assert values["texts"] == 60
    assert values["accuracy"] > 90
    assert set(values["classes"]) == set(WORDS)
    done = regard("evaluate", taught / "model", "--test", taught / "test.csv")
    assert done.code == 0
    assert f"accuracy {values['accuracy']:.2f}" in done.out
    assert "calibration error" in done.out
    assert [line.split()[0] for line in done.out.splitlines() if line.startswith(tuple(WORDS))] == sorted(WORDS)
    texts, labels = zip(
        *(row.rsplit(",", 1) for row in (taught / "test.csv").read_text().splitlines()[1:]), strict=True
    )
    done = regard("classify", taught / "model", stdin="".join(f"{text}\n" for text in texts).encode())
    said = [line.partition("\t")[0] for line in done.out.splitlines()]
    right = sum(one == label for one, label in zip(said, labels, strict=True))
    assert values["accuracy"] == pytest.approx(100 * right / 60)

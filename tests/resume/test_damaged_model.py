"""A model folder with a damaged or lost file is written anew by the run it came from, and ends with the same bits."""

import random
import shutil
from functools import partial
from pathlib import Path

import pytest

from regard.system.errors import NoValidCheckpoint
from regard.tasks.model_folder import load
from regard.tasks.training import model_writer
from regard.training.checkpoints import manifest
from regard.training.progress import Best, Progress
from tests.refusals import refused
from tests.resume.small_runs import killed, killed_and_resumed, operations, results, train
from tests.training.toy import Counting, flip, in_child

pytestmark = pytest.mark.usefixtures("counted")
MODEL = "model.safetensors"


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


@pytest.fixture
def finished(never, tmp_path):
    """A copy of the finished model to break."""
    return Path(shutil.copytree(never[2], tmp_path / "model"))


def mended(corpus, output):
    """What was said while a start mends the folder, in a process of its own."""
    told = output.parent / "told"

    def work():
        reporter = Counting()
        train(corpus, output, reporter)
        told.write_text("\n".join(reporter.events))

    assert in_child(work) == 0
    return [line for line in told.read_text().splitlines() if "rewrite" in line or "rewritten" in line]


@pytest.mark.one_of(3)
@pytest.mark.parametrize(
    ("harm", "name"),
    [
        *((harm, name) for harm in (flip, Path.unlink) for name in (manifest.NAME, MODEL)),
        *((cut, "recipe.toml"), (flip, "tokenizer.source.json")),
    ],
)
def test_after_the_run(corpus, never, finished, harm, name):
    harm(finished / name)
    (said,) = mended(corpus, finished)
    assert said.startswith(str(finished / name))
    assert "the model folder is rewritten from step-00000" in said
    assert results(finished) == never[0]
    assert mended(corpus, finished) == []


@pytest.mark.parametrize("name", [MODEL, manifest.NAME])
def test_before_the_final_scores(corpus, never, tmp_path, name):
    """The last card's file is that of the final scores."""
    output = tmp_path / "model"
    last = max(number for number, seen in enumerate(never[1], 1) if seen == "create .card.md")
    killed(partial(train, corpus, output), last)
    assert "* BLEU" not in (output / "card.md").read_text()
    flip(output / name)
    assert len(mended(corpus, output)) == 1
    assert results(output) == never[0]


def test_before_the_first_checkpoint(corpus, never, tmp_path):
    output = tmp_path / "model"
    killed(partial(train, corpus, output), never[1].index("mkdir step-000002") + 1)
    flip(output / manifest.NAME)
    (said,) = mended(corpus, output)
    assert "training rewrites the model folder" in said
    assert results(output) == never[0]


def test_where_its_checkpoint_is_lost_an_older_one_goes_on(corpus, never, finished):
    flip(finished / MODEL)
    shutil.rmtree(finished / "training" / "checkpoints" / "step-000004")
    (said,) = mended(corpus, finished)
    assert said.endswith("from step-000002")
    assert results(finished) == never[0]


def test_without_the_best_checkpoint_it_says_what_to_do(corpus, finished, monkeypatch):
    flip(finished / MODEL)
    before = {path.name: path.read_bytes() for path in finished.iterdir() if path.is_file()}
    monkeypatch.setattr(model_writer, "load_progress", lambda training: Progress(4, best=Best(3, "loss", 2.5)))
    with refused(NoValidCheckpoint, "step-000003"):
        train(corpus, finished)
    assert {path.name: path.read_bytes() for path in finished.iterdir() if path.is_file()} == before


@pytest.mark.parametrize("most", [3, pytest.param(None, marks=pytest.mark.long(2))])
def test_killed_while_it_is_mended(corpus, never, finished, tmp_path, most):
    flip(finished / MODEL)
    damaged = shutil.copytree(finished, tmp_path / "damaged")
    numbers = range(1, len(operations(partial(train, corpus), finished)) + 1)
    for number in random.Random(7).sample(numbers, most or len(numbers)):
        output = Path(shutil.copytree(damaged, tmp_path / f"model-{number}"))
        killed_and_resumed(partial(train, corpus), output, number, never[0])
    load(finished)

"""Runs on running text, dropout on, that were stopped end with the same bits as ever."""

import random
from functools import cache, partial

import pytest

import regard
from regard.data.prepare.folder import DataMismatch
from regard.system.errors import RegardError
from tests.refusals import refused
from tests.resume.small_runs import ended, stopped_and_resumed
from tests.training.toy import StopAt

SETTINGS = (
    "text.vocabulary=380 text.units=pieces data.max_tokens=24 data.documents=line model.d_model=8 model.d_ff=16 "
    "model.heads=2 model.dropout=0.2 training.tokens=96 training.validate_every=4 training.keep=2 training.ema=0.9 "
    "training.accumulate=2"
).split()
OWN = {
    "language-model": ["model.layers=1", "model.max_positions=24"],
    "masked-lm": ["model.layers=1", "model.positions=sinusoidal"],
    "text-to-text": [
        "text_to_text.spans=true",
        "model.encoder_layers=1",
        "model.decoder_layers=1",
        "training.validation_sentences=2",
        "decoding.beam=1",
    ],
}
STEPS = 8
TASKS = pytest.mark.parametrize("task", OWN)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path, generator = tmp_path_factory.mktemp("text") / "a.txt", random.Random(5)
    words = "star moon cloud sun rain bread soup apple cheese rice the a my big near".split()
    texts = [" ".join(generator.choices(words, k=generator.choice([3, 6, 60]))) for _ in range(90)]
    path.write_text("".join(f"{one}\n" for one in texts))
    return path


def train(task, text, output, flag=None, **more):
    flag = flag or StopAt()
    options = {"settings": [*SETTINGS, *OWN[task]], "steps": STEPS, "threads": 1, "device": "cpu", "seed": 1, **more}
    return regard.train(task=task, train=text, output=output, **options, reporter=flag.reporter, should_stop=flag)


@pytest.fixture(scope="module")
def never(text, tmp_path_factory):
    """What the runs that are never stopped leave, each made when it is first asked for."""

    @cache
    def of(task):
        output = tmp_path_factory.mktemp("never") / task
        train(task, text, output)
        return ended(output)

    return of


@TASKS
@pytest.mark.parametrize("stops", [(0, 5), pytest.param((1, 2, 3, 4, 6, 7), marks=pytest.mark.long(0.2))])
@pytest.mark.one_of(3, minutes=0.1)
def test_stopped_and_resumed(task, stops, text, never, tmp_path):
    stopped_and_resumed(partial(train, task, text), tmp_path / "model", stops, never(task))


@TASKS
def test_other_text_is_refused_by_name(task, text, tmp_path):
    train(task, text, tmp_path / "model")
    (tmp_path / "b.txt").write_text(text.read_text() + "moon moon\n")
    with refused(DataMismatch, "data"):
        train(task, tmp_path / "b.txt", tmp_path / "model")
    with refused(RegardError, "data.documents"):
        train(task, text, tmp_path / "model", settings=[*SETTINGS, *OWN[task], "data.documents=paragraph"])

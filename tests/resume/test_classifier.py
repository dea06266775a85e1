"""A classifier's run, dropout on, stopped or killed before any file operation, ends with the same bits as ever."""

import random
from functools import partial

import pytest

import regard
from regard.data.prepare.folder import DataMismatch
from regard.system.errors import RegardError, Stopped
from tests.refusals import refused
from tests.resume import small_runs
from tests.resume.small_runs import ended, killed_and_resumed, stopped_and_resumed
from tests.training.toy import StopAt

SETTINGS = (
    "text.vocabulary=300 data.validation=12 data.max_tokens=24 model.layers=1 model.d_model=8 model.d_ff=16 "
    "model.heads=2 model.positions=sinusoidal model.dropout=0.2 training.tokens=96 training.validate_every=4 "
    "training.keep=2 training.ema=0.9 training.accumulate=2 classification.out_of_scope=none"
).split()
KINDS = {
    "food": "bread soup apple cheese rice",
    "sport": "ball race team goal swim",
    "sky": "star moon cloud sun rain",
    "none": "pen shoe key lamp door",
}
STEPS = 10


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


def train(texts, output, flag=None, steps=STEPS, seed=1, **more):
    flag = flag or StopAt()
    options = {"settings": SETTINGS, "steps": steps, "threads": 1, "device": "cpu", "seed": seed, **more}
    given = {"task": "classification", "train": texts, "output": output}
    return regard.train(**given, **options, reporter=flag.reporter, should_stop=flag)


@pytest.fixture(scope="module")
def never(texts, tmp_path_factory):
    """What the run that is never stopped leaves."""
    output = tmp_path_factory.mktemp("never") / "model"
    train(texts, output)
    return ended(output)


@pytest.fixture(scope="module")
def operations(texts, counted, tmp_path_factory):
    """The file operations of that run, in order."""
    output = tmp_path_factory.mktemp("operations") / "model"
    return small_runs.operations(lambda output: train(texts, output), output)


@pytest.mark.parametrize(
    "stops", [(5,), (0, 4, 9), *(pytest.param((stop, stop + 1), marks=pytest.mark.long(0.1)) for stop in range(1, 9))]
)
def test_stopped_and_resumed(texts, never, tmp_path, stops):
    stopped_and_resumed(partial(train, texts), tmp_path / "model", stops, never)


def test_the_operations_are_those_of_the_whole_run(operations):
    for operation in ("rename .tokenizer.json", "rename .labels.json", "rename .model.safetensors", "rename .card.md"):
        assert any(operation in seen for seen in operations), operation


@pytest.mark.one_of(4)
@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("share", range(4))
def test_killed_somewhere(texts, tmp_path, never, operations, share):
    """One kill in each quarter of the run: while data is prepared, while it goes, and while it is fitted at the end."""
    quarter = len(operations) // 4
    number = random.Random(f"quarter {share}").randrange(share * quarter, (share + 1) * quarter) + 1
    killed_and_resumed(partial(train, texts), tmp_path / "model", number, never[3])


@pytest.mark.one_of(3, minutes=0.1)
@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("behind", [0, 1, None])
def test_killed_while_it_is_fitted(texts, tmp_path, never, operations, behind):
    """Temperature and threshold are written when the weights are done: the last files of a run."""
    last = [number for number, seen in enumerate(operations, 1) if ".labels.json" in seen]
    number = len(operations) if behind is None else last[-1] + behind
    killed_and_resumed(partial(train, texts), tmp_path / "model", number, never[3])


@pytest.mark.long(2)
@pytest.mark.usefixtures("counted")
@pytest.mark.parametrize("share", range(16))
def test_killed_anywhere(texts, tmp_path, never, operations, share):
    for number in range(1 + share, len(operations) + 1, 16):
        killed_and_resumed(partial(train, texts), tmp_path / "model", number, never[3])


def test_what_was_fitted_is_of_the_finished_run(texts, never, tmp_path):
    """A finished run says so; one whose labels were lost is mended from its best checkpoint, to the bit."""
    train(texts, tmp_path / "model")
    (tmp_path / "model" / "labels.json").unlink()
    train(texts, tmp_path / "model")
    assert ended(tmp_path / "model")[3] == never[3]


def test_another_run_is_refused_by_name(texts, tmp_path):
    train(texts, tmp_path / "model")
    with refused(RegardError, "recipe.seed"):
        train(texts, tmp_path / "model", seed=2)
    (tmp_path / "b.csv").write_text(texts.read_text() + "moon,sky\n")
    with refused(DataMismatch, "data"):
        train(tmp_path / "b.csv", tmp_path / "model")


def test_it_is_begun_from_the_same_model_again(texts, never, tmp_path):
    """A run that begins from another model rests on that model's weights."""
    for name, seed in (("first", 1), ("second", 2)):
        train(texts, tmp_path / name, steps=2, seed=seed)
    with pytest.raises(Stopped):
        train(texts, tmp_path / "model", StopAt(3), start_from=tmp_path / "first")
    with refused(DataMismatch, "data", "fingerprint.from"):
        train(texts, tmp_path / "model", start_from=tmp_path / "second")
    train(texts, tmp_path / "model", start_from=tmp_path / "first")
    train(texts, tmp_path / "whole", start_from=tmp_path / "first")
    assert ended(tmp_path / "model") == ended(tmp_path / "whole")

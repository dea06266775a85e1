"""Runs of ``regard.train`` that take a moment, whose file operations are counted and may be their last."""

import os
import shutil
from functools import partial

import pytest

from regard.runs import train as training
from regard.system.errors import Stopped
from regard.training.checkpoints import manifest, resolved
from regard.training.trainer import Hooks
from tests.training.toy import StopAt, in_child, lines, undated, whole

SETTINGS = (
    "text.vocabulary=300 text.joint=false data.validation=10 data.max_tokens=32 model.encoder_layers=1 "
    "model.decoder_layers=1 model.d_model=8 model.d_ff=16 model.heads=2 training.tokens=128 training.validate_every=2 "
    "training.validation_sentences=4 training.keep=2 training.select=loss training.ema=0.9 decoding.beam=1 "
    "decoding.max_extra=5"
).split()
CLASSIFIER = (
    "text.vocabulary=300 data.validation=12 data.max_tokens=24 model.layers=1 model.d_model=8 model.d_ff=16 "
    "model.heads=2 model.positions=sinusoidal model.dropout=0.2 training.tokens=96 training.validate_every=4 "
    "training.keep=2 training.ema=0.9 training.accumulate=2 classification.out_of_scope=none"
).split()
FATAL: list[int] = []
"""The operation this process dies before; set in a child only."""
SEEN: list[str] = []


def before(files, operation, path):
    """In the place of ``Files.before``: every operation of every ``Files`` of the process counts."""
    SEEN.append(f"{operation} {path.name.split('.partial-')[0]}")
    if len(SEEN) in FATAL:
        os._exit(137)


def train(corpus, output, flag=None, **more):
    """A translator of two files; of four steps, where no length is given."""
    length = {} if "minutes" in more else {"steps": 4}
    files = {"source": corpus / "a.en", "target": corpus / "a.de"}
    return _train(files, output, flag, **{"settings": SETTINGS, **length, **more})


def classify(texts, output, flag=None, **more):
    """A classifier of a file of texts."""
    files = {"task": "classification", "train": texts, "settings": CLASSIFIER}
    return _train(files, output, flag, **{"steps": 10, **more})


def _train(files, output, flag, **more):
    flag = flag or StopAt()
    options = {"threads": 1, "device": "cpu", "reporter": flag.reporter, "should_stop": flag, **more}
    return training.train(**files, output=output, **options)


class Ticking(StopAt):
    """A clock that goes on whenever it is read: by a second, and by ``pace`` once training has begun."""

    def __init__(self, *stops, pace=1.0):
        super().__init__(*stops)
        self.now, self.pace = 0.0, pace

    def clock(self):
        self.now += self.pace if self.reporter.starts else 1.0
        return self.now


def ticking_train(corpus, output, *stops, fatal=None, pace=1.0, **more):
    """Train on a ticking clock; ``fatal`` is the operation the process dies before."""
    ticking = Ticking(*stops, pace=pace)

    def work():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(training, "Hooks", partial(Hooks, clock=ticking.clock))
            SEEN.clear()
            train(corpus, output, ticking, **more)

    killed(work, fatal) if fatal else work()
    return ticking.reporter


def killed(work, number):
    """Do this in a process that dies before its operation of this number."""

    def dying():
        SEEN.clear()
        FATAL.append(number)
        work()

    assert in_child(dying) == 137, number


def killed_and_resumed(run, output, number, wanted):
    """Killed there and run again, it leaves what one leaves that is not killed."""
    killed(lambda: run(output), number)
    assert in_child(lambda: run(output)) == 0, number
    assert results(output) == wanted, number
    shutil.rmtree(output)


def stopped_and_resumed(run, output, stops, wanted):
    """Stopped behind each of these steps, it ends with the bits of one that is not."""
    for stop in stops:
        with pytest.raises(Stopped):
            run(output, StopAt(stop))
    run(output)
    for part, expected in zip(ended(output), wanted, strict=True):
        assert part == expected


def results(output):
    """What a person gets, to the bit; times differ, and nothing half made may stand beside."""
    manifest.verify(output, extra=True)
    assert [path.name for path in output.iterdir() if "partial" in path.name or path.name == manifest.NEXT] == []
    paths = [*(path for path in output.iterdir() if path.is_file()), output / "training" / resolved.NAME]
    found = {path.name: undated(path) for path in paths}
    assert {"model.safetensors", "recipe.toml", "card.md", "manifest.json"} <= found.keys()
    return found


def ended(output):
    """These, the last checkpoint's tensors and the log."""
    checkpoint = sorted((output / "training" / "checkpoints").glob("step-??????"))[-1]
    parts = [whole(checkpoint / f"{part}.safetensors") for part in ("weights", "optimiser", "ema")]
    return [*parts, results(output), lines(output / "training" / "metrics.jsonl")]


def operations(work, output):
    """The file operations, in order, of a run in a child."""

    def noted():
        SEEN.clear()
        work(output)
        (output.parent / "seen").write_text("\n".join(SEEN))

    assert in_child(noted) == 0
    return (output.parent / "seen").read_text().splitlines()

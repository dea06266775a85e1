"""Every task and family: stopped and begun again is never stopped, to the bit; runs of an earlier Regard go on as well.

Those are kept in tests/fixtures/runs, stopped before files carried their own sha256: they resume as if nothing had
changed. ``ended.json`` is what the Regard that made them ended with.
"""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
import torch

import regard
from regard.data.prepare.folder import DataMismatch, verify_folder
from regard.runs.plan import processor
from regard.runs.train import train
from regard.system.errors import RegardError, Stopped
from regard.training.checkpoints import manifest, provenance, resolved
from tests.refusals import refused
from tests.resume.small_commands import CASES, SMALL, write
from tests.training.toy import StopAt, lines, undated, whole

STEPS = 10


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write(tmp_path_factory.mktemp("tasks"))


def made(files, case, output, *own, **more):
    task, name, settings = CASES[case]
    data = {"pairs": files / name} if task == "translation" else {"task": task, "train": files / name}
    vocabulary = [one for one in SMALL if not (one.startswith("text.") and task == "image-classification")]
    options = {"steps": STEPS, "seed": 3, "threads": 1, "device": "cpu", "despite_check": True}
    train(**data, output=output, settings=[*vocabulary, *settings.split(), *own], **options, **more)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.one_of(15, minutes=0.1)
def test_stopped_and_begun_again_is_never_stopped(files, tmp_path, case):
    made(files, case, tmp_path / "whole")
    for stop in (StopAt(3), StopAt(7)):
        with pytest.raises(Stopped):
            made(files, case, tmp_path / "stopped", reporter=stop.reporter, should_stop=stop)
    made(files, case, tmp_path / "stopped")
    for name in ("model.safetensors", "card.md", f"training/checkpoints/step-{STEPS:06d}/optimiser.safetensors"):
        assert undated(tmp_path / "whole" / name) == undated(tmp_path / "stopped" / name), name


@pytest.mark.parametrize("case", ["language model", "masked words", "missing spans"])
@pytest.mark.one_of(3, minutes=0.1)
def test_other_text_is_refused_by_name(files, tmp_path, case):
    text = (files / "text.txt").read_text()
    (tmp_path / "text.txt").write_text(text)
    made(tmp_path, case, tmp_path / "model")
    with refused(RegardError, "data.documents"):
        made(tmp_path, case, tmp_path / "model", "data.documents=paragraph")
    (tmp_path / "text.txt").write_text(f"{text}\nmoon moon\n")
    with refused(DataMismatch, "data"):
        made(tmp_path, case, tmp_path / "model")


RUNS = Path(__file__).parents[1] / "fixtures" / "runs"
EARLIER = (
    "text.vocabulary=300 data.max_tokens=32 model.d_model=8 model.d_ff=8 model.heads=2 training.tokens=96 "
    "training.keep=2 training.precision=fp32 training.validation_sentences=4"
).split()
TRANSLATOR = (
    "text.bpe_dropout=0.1 text.segmentations=3 data.validation=8 model.encoder_layers=1 model.decoder_layers=1 "
    "training.validate_every=5 training.select=loss training.ema=0.9 decoding.beam=1 decoding.max_extra=5"
).split()
SAME = ("kind", "tokens", "fill", "rate", "skipped", "source", "reference")
"""What is the same on every processor: that of the same batches."""


def resume(name, output):
    reporter, corpus = StopAt().reporter, RUNS / name / "corpus"
    given = {"source": corpus / "a.en", "target": corpus / "a.de", "steps": 12, "settings": [*EARLIER, *TRANSLATOR]}
    if name == "classifier":
        given = {"task": "classification", "train": corpus / "texts.tsv", "preset": "bert-tiny", "minutes": 0.2}
        given["settings"] = [*EARLIER, "data.validation=10", "model.layers=1"]
    options = {"threads": 1, "device": "cpu", "reporter": reporter, "allow_mismatch": ["fingerprint.processor"]}
    train(**given, output=output, **options)
    return reporter


def digest(checkpoint):
    """The sha256 over every tensor of a checkpoint."""
    found = hashlib.sha256()
    for part in ("weights", "optimiser", "ema"):
        for name, content in sorted(whole(checkpoint / f"{part}.safetensors").items()):
            found.update(name.encode())
            found.update(content)
    return found.hexdigest()


@pytest.mark.parametrize(("name", "step"), [("translator", 7), ("classifier", 23)])
def test_it_resumes_to_the_same_end(tmp_path, name, step):
    run = Path(shutil.copytree(RUNS / name / "model", tmp_path / name))
    assert "sha256" not in verify_folder(run / "training" / "data")
    assert resolved.read_fields(run / "training")["chosen.accumulate"] == 1
    if name == "translator":
        manifest.verify(run, extra=True)
        assert regard.load(run).translate("red dog runs") is not None
    ended = json.loads((RUNS / name / "ended.json").read_text())
    reporter = resume(name, run)
    assert reporter.starts[0][0] == step
    assert not [line for line in reporter.events if "damaged" in line or "again" in line]
    newest = sorted((run / "training" / "checkpoints").glob("step-??????"))[-1]
    assert newest.name == ended["step"]
    found = lines(run / "training" / "metrics.jsonl")
    assert [line["step"] for line in found] == [line["step"] for line in ended["lines"]]
    for mine, theirs in zip(found, ended["lines"], strict=True):
        assert mine.keys() == theirs.keys()
        assert [mine.get(key) for key in SAME] == [theirs.get(key) for key in SAME]
        if "loss" in mine:
            assert mine["loss"] == pytest.approx(theirs["loss"], rel=1e-3)
    if (ended["processor"], ended["torch"]) == (processor(torch.device("cpu")), torch.__version__):
        assert digest(newest) == ended["state"]
        assert hashlib.sha256((run / "model.safetensors").read_bytes()).hexdigest() == ended["model"]
    assert provenance.load(run / "training").versions[0] == provenance.EARLIER
    assert provenance.EARLIER in (run / "card.md").read_text()

"""Runs that an earlier Regard left unfinished, kept in tests/fixtures/runs: they resume as if nothing had changed.

They were stopped before files carried their own sha256. ``ended.json`` is what the Regard that made them ended with.
"""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
import torch

import regard
from regard.data.prepare.folder import verify_folder
from regard.runs.plan import processor
from regard.training.checkpoints import manifest, provenance, resolved
from tests.training.toy import Counting, lines, whole

RUNS = Path(__file__).parents[1] / "fixtures" / "runs"
SETTINGS = {
    "translator": (
        "text.vocabulary=300 text.bpe_dropout=0.1 text.segmentations=3 data.validation=8 data.max_tokens=32 "
        "model.encoder_layers=1 model.decoder_layers=1 model.d_model=8 model.d_ff=8 model.heads=2 training.tokens=96 "
        "training.validate_every=5 training.validation_sentences=4 training.keep=2 training.precision=fp32 "
        "training.select=loss training.ema=0.9 decoding.beam=1 decoding.max_extra=5"
    ),
    "classifier": (
        "text.vocabulary=300 data.validation=10 data.max_tokens=32 model.layers=1 model.d_model=8 model.d_ff=8 "
        "model.heads=2 training.tokens=96 training.keep=2 training.precision=fp32 training.validation_sentences=4"
    ),
}


@pytest.fixture(params=SETTINGS)
def run(request, tmp_path):
    """A copy of the unfinished run, in a folder of its name."""
    return Path(shutil.copytree(RUNS / request.param / "model", tmp_path / request.param))


def resume(name, output):
    reporter, corpus = Counting(), RUNS / name / "corpus"
    options = {"settings": SETTINGS[name].split(), "threads": 1, "device": "cpu", "reporter": reporter}
    allow = ["fingerprint.processor"]
    if name == "translator":
        regard.train(corpus / "a.en", corpus / "a.de", output, steps=12, allow_mismatch=allow, **options)
    else:
        options |= {"task": "classification", "preset": "bert-tiny", "minutes": 0.2}
        regard.train(train=corpus / "texts.tsv", output=output, allow_mismatch=allow, **options)
    return reporter


def digest(checkpoint):
    """The sha256 over every tensor of a checkpoint."""
    found = hashlib.sha256()
    for part in ("weights", "optimiser", "ema"):
        for name, content in sorted(whole(checkpoint / f"{part}.safetensors").items()):
            found.update(name.encode())
            found.update(content)
    return found.hexdigest()


def test_it_resumes_to_the_same_end(run):
    name = run.name
    ended = json.loads((RUNS / name / "ended.json").read_text())
    reporter = resume(name, run)
    assert reporter.starts[0][0] == {"translator": 7, "classifier": 23}[name]
    assert not [line for line in reporter.events if "damaged" in line or "again" in line]
    newest = sorted((run / "training" / "checkpoints").glob("step-??????"))[-1]
    assert newest.name == ended["step"]
    found = lines(run / "training" / "metrics.jsonl")
    assert [line["step"] for line in found] == [line["step"] for line in ended["lines"]]
    for mine, theirs in zip(found, ended["lines"], strict=True):
        assert mine.keys() == theirs.keys()
        for key in ("kind", "tokens", "fill", "rate", "skipped", "source", "reference"):  # the same batches everywhere
            assert mine.get(key) == theirs.get(key)
        if "loss" in mine:
            assert mine["loss"] == pytest.approx(theirs["loss"], rel=1e-3)
    if (ended["processor"], ended["torch"]) == (processor(torch.device("cpu")), torch.__version__):
        assert digest(newest) == ended["state"]
        assert hashlib.sha256((run / "model.safetensors").read_bytes()).hexdigest() == ended["model"]
    assert provenance.load(run / "training").versions[0] == provenance.EARLIER
    assert provenance.EARLIER in (run / "card.md").read_text()


def test_its_prepared_data_and_its_plan_are_whole(run):
    assert "sha256" not in verify_folder(run / "training" / "data")
    assert resolved.read_fields(run / "training")["chosen.accumulate"] == 1


def test_its_model_folder_loads(tmp_path):
    run = Path(shutil.copytree(RUNS / "translator" / "model", tmp_path / "model"))
    manifest.verify(run, extra=True)
    assert regard.load(run).translate("red dog runs") is not None

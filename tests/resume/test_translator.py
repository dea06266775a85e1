"""The real Transformer, dropout on, fed by the real plan: stopped and resumed = never stopped, to the bit."""

from functools import cache, partial

import pytest

import regard
from regard.system.errors import Stopped
from regard.tasks.metrics import calibration
from regard.text.confidence import CONFIDENCE
from regard.training.checkpoints import manifest
from tests.resume.small_runs import ended, results, stopped_and_resumed
from tests.training.toy import StopAt

SETTINGS = (
    "text.vocabulary=300 data.validation=10 data.max_tokens=64 model.encoder_layers=1 model.decoder_layers=1 "
    "model.d_model=16 model.d_ff=32 model.heads=2 training.tokens=256 training.validate_every=5 "
    "training.validation_sentences=10 training.ema=0.9"
).split()


def train(accumulate, corpus, output, flag=None, more=(), **given):
    flag = flag or StopAt()
    settings = [*SETTINGS, f"training.accumulate={accumulate}", *more]
    options = {"settings": settings, "steps": 12, "threads": 1, "seed": 1, **given}
    files = corpus / "a.en", corpus / "a.de"
    return regard.train(*files, output, reporter=flag.reporter, should_stop=flag, device="cpu", **options)


@pytest.fixture(scope="module")
def never(corpus, tmp_path_factory):
    """Runs that were never stopped, by accumulation."""

    @cache
    def run(accumulate):
        output = tmp_path_factory.mktemp("never") / "model"
        train(accumulate, corpus, output)
        return ended(output)

    return run


@pytest.mark.parametrize(
    ("accumulate", "stops"),
    [(2, (6,)), *(pytest.param(1, (stop, stop + 1), marks=pytest.mark.long(0.3)) for stop in range(11))],
)
def test_stopped_and_resumed(corpus, never, tmp_path, accumulate, stops):
    stopped_and_resumed(partial(train, accumulate, corpus), tmp_path / "model", stops, never(accumulate))


def test_going_on_with_another_beam_leaves_the_model_readable(corpus, tmp_path):
    for stop, more in ((6, ()), (7, ("decoding.beam=2",))):
        with pytest.raises(Stopped):
            train(1, corpus, tmp_path / "model", StopAt(stop), more)
        manifest.verify(tmp_path / "model", extra=True)
    assert regard.load(tmp_path / "model").recipe.decoding.beam == 2


def test_which_confidence_is_usual_is_of_the_finished_run(corpus, tmp_path, monkeypatch):
    """Until then nothing is doubted; stopped while it is fitted, lost, or with more steps, it is fitted anew."""
    monkeypatch.setattr(calibration, "UNUSUAL", 0.25)  # the validation has five pairs
    train(1, corpus, tmp_path / "never")
    wanted = (tmp_path / "never" / CONFIDENCE).read_bytes()
    assert regard.load(tmp_path / "never").assets.doubted_below > 0
    output = tmp_path / "model"
    for stop in (6, 12):  # the second in the search for the final scores
        with pytest.raises(Stopped):
            train(1, corpus, output, StopAt(stop))
        assert regard.load(output).assets.doubted_below == 0
    train(1, corpus, output)
    assert (output / CONFIDENCE).read_bytes() == wanted
    (output / CONFIDENCE).unlink()
    train(1, corpus, output)
    assert results(output) == results(tmp_path / "never")
    before = (output / "model.safetensors").read_bytes()
    with pytest.raises(Stopped):
        train(1, corpus, output, StopAt(20), steps=20, allow_mismatch=["training.steps"])
    assert (regard.load(output).assets.doubted_below == 0) == ((output / "model.safetensors").read_bytes() != before)


@pytest.mark.parametrize("content", [None, b"", b"format ="])
def test_what_was_resolved_is_taken_from_a_checkpoint(corpus, tmp_path, content):
    with pytest.raises(Stopped):
        train(1, corpus, tmp_path / "model", StopAt(6))
    path = tmp_path / "model" / "training" / "resolved.toml"
    whole = path.read_bytes()
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    told = StopAt(7)
    with pytest.raises(Stopped):
        train(1, corpus, tmp_path / "model", told)
    assert path.read_bytes() == whole
    assert any("resolved.toml was lost" in event for event in told.reporter.events)

"""The real Transformer, dropout on, fed by the real plan: stopped and resumed = never stopped, to the bit."""

from functools import cache, partial

import pytest

import regard
from regard.system.errors import Stopped
from regard.training.checkpoints import manifest
from tests.resume.small_runs import ended, stopped_and_resumed
from tests.training.toy import StopAt

SETTINGS = (
    "text.vocabulary=300 data.validation=10 data.max_tokens=64 model.encoder_layers=1 model.decoder_layers=1 "
    "model.d_model=16 model.d_ff=32 model.heads=2 training.tokens=256 training.validate_every=5 "
    "training.validation_sentences=10 training.ema=0.9"
).split()


def train(accumulate, corpus, output, flag=None, more=()):
    flag = flag or StopAt()
    settings = [*SETTINGS, f"training.accumulate={accumulate}", *more]
    options = {"settings": settings, "steps": 12, "threads": 1, "seed": 1}
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

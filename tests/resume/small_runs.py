"""A run of ``regard.train`` that takes a moment, whose file operations are counted and may be its last."""

import os

from regard.runs import train as training
from regard.training.checkpoints import manifest, resolved
from tests.training.toy import in_child, lines, whole

SETTINGS = (
    "text.vocabulary=300 text.joint=false data.validation=10 data.max_tokens=32 model.encoder_layers=1 "
    "model.decoder_layers=1 model.d_model=8 model.d_ff=16 model.heads=2 training.tokens=128 training.validate_every=2 "
    "training.validation_sentences=4 training.keep=2 training.select=loss training.ema=0.9 decoding.beam=1 "
    "decoding.max_extra=5"
).split()
FATAL: list[int] = []
"""The operation this process dies before; set in a child only."""
SEEN: list[str] = []


def before(files, operation, path):
    """In the place of ``Files.before``: every operation of every ``Files`` of the process counts."""
    SEEN.append(f"{operation} {path.name.split('.partial-')[0]}")
    if len(SEEN) in FATAL:
        os._exit(137)


def train(corpus, output, reporter=None, **more):
    files = corpus / "a.en", corpus / "a.de"
    training.train(*files, output, settings=SETTINGS, steps=4, threads=1, device="cpu", reporter=reporter, **more)


def killed(corpus, output, number):
    def work():
        SEEN.clear()
        FATAL.append(number)
        train(corpus, output)

    return in_child(work)


def results(output):
    """What a person gets, to the bit; times differ, and nothing half made may stand beside."""
    manifest.verify(output, extra=True)
    assert [path.name for path in output.iterdir() if "partial" in path.name or path.name == manifest.NEXT] == []
    paths = [*(path for path in output.iterdir() if path.is_file()), output / "training" / resolved.NAME]
    found = {path.name: path.read_bytes() for path in paths}
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

"""``regard.train``, killed before any file operation, ends with the bits of a run that was not."""

import os
import random
import shutil
from pathlib import Path

import pytest
from toy import in_child

from regard.tasks import learning
from regard.training import manifest, resolved
from regard.training.files import Files
from regard.training.output import _set_aside, claimed

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


@pytest.fixture(scope="module", autouse=True)
def counted():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Files, "before", before)
        patch.setattr(Files, "sync", lambda files, handle: None)  # only a machine without power loses by that
        yield


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder, generator = tmp_path_factory.mktemp("corpus"), random.Random(5)
    words = ["red", "green", "small", "house", "tree", "dog", "runs", "near"]
    chosen = [generator.choices(words, k=generator.randrange(2, 7)) for _ in range(50)]
    (folder / "a.en").write_text("".join(f"{' '.join(line)}\n" for line in chosen))
    (folder / "a.de").write_text("".join(f"{' '.join(word + 'en' for word in reversed(line))}\n" for line in chosen))
    return folder


def train(corpus, output):
    files = corpus / "a.en", corpus / "a.de"
    learning.train(*files, output, settings=SETTINGS, steps=4, threads=1, device="cpu")


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
    names = ("model.safetensors", "recipe.toml", "card.md", "tokenizer.source.json", "tokenizer.target.json")
    return {name: (output / name).read_bytes() for name in (*names, f"training/{resolved.NAME}")}


@pytest.fixture(scope="module")
def never(corpus, counted, tmp_path_factory):
    """What the run that is never killed leaves, and its file operations in order."""
    output = tmp_path_factory.mktemp("never") / "model"

    def work():
        SEEN.clear()
        train(corpus, output)
        (output.parent / "seen").write_text("\n".join(SEEN))

    assert in_child(work) == 0
    return results(output), (output.parent / "seen").read_text().splitlines()


def killed_and_resumed(corpus, folder, number, never):
    output = folder / f"model-{number}"
    assert killed(corpus, output, number) == 137, number
    assert in_child(lambda: train(corpus, output)) == 0, number
    assert results(output) == never[0], number
    shutil.rmtree(output)


def test_the_operations_are_those_of_the_whole_run(never):
    for operation in (
        "rename .tokenizer.source.json",
        "rename .tokenizer.target.json",
        "rename .recipe.toml",
        "rename .resolved.toml",
        "rename .model.safetensors",
        "rename .card.md",
        "rename step-000004",
        "rename .latest",
    ):
        assert any(operation in seen for seen in never[1]), operation


@pytest.mark.parametrize("share", range(3))
def test_killed_somewhere(corpus, tmp_path, never, share):
    """One kill in each third of the run: while it begins, while it goes, and while it ends."""
    third = len(never[1]) // 3
    number = random.Random(f"third {share}").randrange(share * third, (share + 1) * third) + 1
    killed_and_resumed(corpus, tmp_path, number, never)


@pytest.mark.long(2)
@pytest.mark.parametrize("share", range(32))
def test_killed_anywhere(corpus, tmp_path, never, share):
    for number in range(1 + share, len(never[1]) + 1, 32):
        killed_and_resumed(corpus, tmp_path, number, never)


def earlier_run(output: Path):
    """A folder as a finished run leaves it, in outline."""
    (output / "training" / "checkpoints").mkdir(parents=True)
    for name in ("recipe.toml", "model.safetensors", "manifest.json", "training/metrics.jsonl"):
        (output / name).write_text(f"old {name}")


def test_killed_while_an_earlier_run_is_set_aside(tmp_path):
    """Nothing of it is lost, and the next ``--resume never`` starts."""
    earlier_run(tmp_path / "count")
    SEEN.clear()
    _set_aside(tmp_path / "count")
    operations = len(SEEN)
    assert operations >= 6
    for number in range(1, operations + 1):
        output = tmp_path / str(number)
        earlier_run(output)

        def work(output=output, number=number):
            SEEN.clear()
            FATAL.append(number)
            _set_aside(output)

        assert in_child(work) == 137
        with claimed(output, {}, "never"):
            assert sorted(path.name for path in (output / "training").iterdir()) == ["lock"]
        kept = {path.name: path.read_text() for path in output.rglob("*") if path.is_file() and path.name != "lock"}
        assert {"recipe.toml", "model.safetensors", "manifest.json", "metrics.jsonl"} == set(kept)
        assert all(text.startswith("old") for text in kept.values())

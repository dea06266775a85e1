"""Pipes, devices and folders in place of files are refused without blocking; regular files can be read again."""

import json
import os
import shutil
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard.inspection.folders.facts import refuse_irregular
from regard.inspection.folders.models import Models
from regard.inspection.folders.training_curves import LINE, LOG, TrainingCurves
from regard.inspection.questions.answers import answer, course, state
from regard.system.errors import RegardError
from tests.inspection.payloads import unpack
from tests.refusals import refused
from tests.tasks.small_tasks import classifier, filler, keep, put, tagger, translator

PATIENCE = 15.0


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def listener(path: Path) -> None:
    """A socket; its name is too long below most folders of tests."""
    here = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def circle(path: Path) -> None:
    path.symlink_to(path.name)


ODD = [os.mkfifo, device, Path.mkdir, listener, circle, Path.exists]
"""What makes something else of a path; the last leaves nothing there."""


def promptly(path: Path, ask: Callable[[], Any]) -> Any:
    """What is answered, or the sentence that refuses it; a pipe that is waited for is closed, and that is a failure."""
    found: list[Any] = []

    def told() -> None:
        try:
            found.append(ask())
        except RegardError as error:
            found.append(str(error))

    thread = threading.Thread(target=told, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if thread.is_alive():
        if path.is_fifo():
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        pytest.fail(f"{path.name} is waited for")
    return found[0]


def line(step: int) -> bytes:
    return json.dumps({"kind": "step", "step": step, "loss": 1.0}).encode() + b"\n"


@pytest.mark.parametrize("odd", ODD)
def test_a_log_that_is_no_file_is_said_and_read_when_it_is_one(tmp_path: Path, odd: Callable[[Path], None]) -> None:
    models, log = Models([put(tmp_path, classifier())]), tmp_path / LOG
    log.parent.mkdir()
    log.write_bytes(line(1))
    assert unpack(course(models, 0, 10))[1]["step"].tolist() == [1]
    log.unlink()
    odd(log)
    assert promptly(log, lambda: course(models, 0, 10)).startswith(f"{log}: ")
    assert promptly(log, lambda: state(models))["models"][0]["ready"]
    shutil.rmtree(log) if log.is_dir() else log.unlink(missing_ok=True)
    log.write_bytes(line(1) + line(2))
    values, arrays = unpack(promptly(log, lambda: course(models, 0, 10)))
    assert (values["whole"], arrays["step"].tolist()) == (True, [1, 2])


@pytest.mark.parametrize(
    "content", [b"\x89PNG\r\n\x1a\n" * 9, bytes(range(256)) * 9, b"\n" * 9, b"\0" * (LINE + 1), b"[1]\n{}\n"]
)
def test_a_file_that_is_no_log_is_said_until_it_is_one(tmp_path: Path, content: bytes) -> None:
    (tmp_path / LOG).parent.mkdir()
    (tmp_path / LOG).write_bytes(content)
    followed = TrainingCurves(tmp_path)
    for _ in range(2):
        with refused(RegardError, "metrics.jsonl"):
            followed.advance()
    with (tmp_path / LOG).open("ab") as file:
        file.write(b"\n" + line(3))
    assert followed.advance()
    assert followed.updates.steps.tolist() == [3]


def test_a_log_of_any_size_is_read_for_a_moment_at_a_time(tmp_path: Path) -> None:
    """What is left is read the next time."""
    (tmp_path / LOG).parent.mkdir()
    with (tmp_path / LOG).open("wb") as file:
        file.write(b"".join(map(line, range(1, 1001))))
        file.truncate(1 << 40)
    followed = TrainingCurves(tmp_path)
    for _ in range(2):
        promptly(tmp_path / LOG, lambda: followed.advance(0.0))
        values, arrays = followed.summary(1000)
        assert (values["whole"], len(arrays["step"])) == (False, 1000)
    (tmp_path / LOG).write_bytes(b"".join(map(line, range(1, 40_001))))
    assert followed.advance(0.0)
    assert not followed.whole
    while not followed.whole:
        followed.advance(0.0)
    assert followed.updates.steps.tolist() == list(range(1, 40_001))


KEPT = "training/snapshots/step-000020"
READ: dict[str, Callable[[], Any]] = {
    **dict.fromkeys(("recipe.toml", "tokenizer.json", "manifest.json", "model.safetensors"), classifier),
    **dict.fromkeys(("training", "training/lock", "training/snapshots"), classifier),
    **dict.fromkeys((KEPT, f"{KEPT}/manifest.json", f"{KEPT}/weights.safetensors"), classifier),
    "labels.json": tagger,
    "training/data/index.json": filler,
    "training/data/tokenizer.json": filler,
    "training/data/validation.source.txt": translator,
}
"""What is read of a folder, and a model that has it."""


@pytest.mark.one_of(8)
@pytest.mark.parametrize(
    ("name", "odd"),
    [*((name, os.mkfifo) for name in READ), ("model.safetensors", device), (f"{LOG.parent}/lock", device)],
)
def test_no_file_of_a_model_is_waited_for(tmp_path: Path, name: str, odd: Callable[[Path], None]) -> None:
    """Whether the page is open or opens now; a proper file is read again."""
    place, kept, asked = tmp_path / "model" / name, tmp_path / "kept", {"texts": ["animal"]}
    folder = put(tmp_path / "model", READ[name]())
    keep(folder, READ[name](), 20)
    models = Models([folder])
    before = answer(models, "vectors", asked)
    if place.exists():
        place.rename(kept)
    place.parent.mkdir(parents=True, exist_ok=True)
    odd(place)
    promptly(place, lambda: Models([folder]).states())
    for question in (asked, {**asked, "snapshot": "step 20"}):
        promptly(place, lambda question=question: answer(models, "vectors", question))
    (told,) = promptly(place, lambda: state(models))["models"]
    if place.suffix and place.parent == folder:
        assert f"{name}: " in told["why"]
    place.unlink()
    if kept.exists():
        kept.rename(place)
    values, arrays = unpack(answer(models, "vectors", asked))
    assert values["pieces"] == unpack(before)[0]["pieces"]
    assert (arrays["vector"] == unpack(before)[1]["vector"]).all()


def test_what_is_not_read_may_be_anything(tmp_path: Path) -> None:
    refuse_irregular(tmp_path / "absent")
    os.mkfifo(tmp_path / "a.txt")
    circle(tmp_path / "b.json")
    (tmp_path / "c.json").mkdir()
    refuse_irregular(tmp_path)
    with refused(RegardError, "a.txt"):
        refuse_irregular(tmp_path, None)
    os.mkfifo(tmp_path / "d.json")
    with refused(RegardError, "d.json"):
        refuse_irregular(tmp_path)

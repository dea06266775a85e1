"""Every task and family: stopped and begun again is never stopped, to the bit."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from regard.data.prepare.folder import DataMismatch
from regard.runs.train import train
from regard.system.errors import RegardError, Stopped
from tests.refusals import refused
from tests.resume.small_commands import CASES, SMALL, write
from tests.training.toy import StopAt, undated

STEPS = 10


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("tasks"))


def made(files: Path, case: str, output: Path, own: Sequence[str] = (), **more: Any) -> None:
    task, name, settings = CASES[case]
    data = {"pairs": files / name} if task == "translation" else {"task": task, "train": files / name}
    vocabulary = [one for one in SMALL if not (one.startswith("text.") and task == "image-classification")]
    chosen = {"settings": [*vocabulary, *settings, *own], "steps": STEPS, "seed": 3, "threads": 1, "device": "cpu"}
    train(**data, output=output, despite_check=True, **chosen, **more)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.one_of(7, minutes=0.1)
def test_stopped_and_begun_again_is_never_stopped(files: Path, tmp_path: Path, case: str) -> None:
    made(files, case, tmp_path / "whole")
    for step in (3, 7):
        stop = StopAt(step)
        with pytest.raises(Stopped):
            made(files, case, tmp_path / "stopped", reporter=stop.reporter, should_stop=stop)
    made(files, case, tmp_path / "stopped")
    for name in ("model.safetensors", "card.md", f"training/checkpoints/step-{STEPS:06d}/optimiser.safetensors"):
        assert undated(tmp_path / "whole" / name) == undated(tmp_path / "stopped" / name), name


@pytest.mark.parametrize("case", ["language model", "masked words", "missing spans"])
@pytest.mark.one_of(3, minutes=0.1)
def test_other_text_is_refused_by_name(files: Path, tmp_path: Path, case: str) -> None:
    text = (files / "text.txt").read_text()
    (tmp_path / "text.txt").write_text(text)
    made(tmp_path, case, tmp_path / "model")
    with refused(RegardError, "data.documents"):
        made(tmp_path, case, tmp_path / "model", ["data.documents=paragraph"])
    (tmp_path / "text.txt").write_text(f"{text}\nmoon moon\n")
    with refused(DataMismatch, "data"):
        made(tmp_path, case, tmp_path / "model")

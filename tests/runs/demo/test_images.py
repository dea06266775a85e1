"""The demonstration of images goes its whole way on a few of them."""

import json
from pathlib import Path

import numpy as np
import pytest

import regard
from regard.cli import main
from regard.runs.demo import images as image_demo
from regard.runs.demo.digits import corpus
from regard.runs.demo.images import demonstrate_images, nearest, put_arrays
from regard.system.errors import RegardError, Stopped
from tests.refusals import refused


def test_the_demonstration_runs_from_nothing_to_a_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in (("TRAIN", 200), ("VALID", 20), ("TEST", 20)):
        monkeypatch.setattr(image_demo, name, value)
    model = {"layers": 2, "patch": 8, "d_model": 16, "d_ff": 32, "heads": 2}
    monkeypatch.setitem(image_demo.RECIPE, "model", model)
    with pytest.raises(Stopped):
        demonstrate_images(tmp_path / "stopped", steps=2, threads=1, should_stop=lambda: True)
    assert main(["demo", "--images", "--ablate", "--output", str(tmp_path / "ablated")]) == 2
    words = ["demo", "--images", "--output", str(tmp_path / "demo"), "--threads", "1", "--steps", "3"]
    assert main(words) == 0
    shown = capsys.readouterr().out
    for row in ("this model", "nearest pixels", "one digit", "Mean attention distance", "convolutions"):
        assert row in shown
    assert main([*words, "--json"]) == 0  # finished: said at once, scored again
    found = json.loads(capsys.readouterr().out)
    assert (found["train"], found["test"], len(found["distances"]["layers"])) == (200, 20, 2)
    recipe = regard.load(tmp_path / "demo" / "model").recipe
    assert (recipe.model.height, recipe.images.shift) == (32, 2)


def test_arrays_are_written_once_and_over_nothing(tmp_path: Path) -> None:
    images, labels = corpus(3)
    path = put_arrays(tmp_path / "some.npz", images, labels)
    assert put_arrays(path, images, labels) == path
    with refused(RegardError, "some.npz"):
        put_arrays(path, images, labels[::-1])
    np.testing.assert_array_equal(np.load(path)["images"], images)


def test_the_nearest_image_is_the_nearest() -> None:
    known, labels = corpus(60)
    asked, _ = corpus(9, first=60)
    far = np.square(asked[:, None].astype(int) - known[None].astype(int)).sum((2, 3))
    assert nearest(known, labels, asked, at_once=4).tolist() == labels[far.argmin(1)].tolist()
    assert nearest(known, labels, known, at_once=7).tolist() == labels.tolist()

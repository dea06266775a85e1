"""Images from lines, arrays and files: the same scores however they come, and errors that name the place."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from regard.data.batches.patches import Scale
from regard.data.corpora.images import Shape
from regard.system.errors import RegardError, UsageError
from regard.tasks.assets import FittedValues, ImageAssets
from regard.tasks.images.classifier import ImageClassification, some_images
from tests.refusals import refused
from tests.tasks.small_tasks import LABELS, viewer


def drawn(count: int, *sizes: int) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 10, (count, *(sizes or (6, 4))))


def test_lines_and_arrays_are_the_same_images() -> None:
    task, images = viewer(), drawn(5)
    lines = [",".join(map(str, one.ravel())) for one in images]
    wanted = task.scores(list(images))
    assert wanted.shape == (5, 3)
    as_lines = lines, [f"{line},label" for line in lines], [line.replace(",", "\t") for line in lines]
    as_arrays = [one.ravel() for one in images], [one[:, :, None] for one in images], [*images.astype(np.float16)]
    for given in (*as_lines, *as_arrays, task.parse_lines(["p" + ",p" * 23, *lines])):
        np.testing.assert_array_equal(task.scores(given), wanted)


def test_an_image_alone_is_as_among_others() -> None:
    task, images = viewer(), drawn(7)
    together = task.scores(list(images))
    for one, scores in zip(images, together, strict=True):
        np.testing.assert_allclose(task.scores([one])[0], scores, atol=1e-5)
    verdict = task.classify(images[0])
    assert verdict.label == task.classify([images[0]])[0].label
    softmax = torch.from_numpy(together[0]).softmax(0).numpy()
    assert verdict.probability == pytest.approx(softmax.max(), rel=1e-4)
    assert task.classify([]) == []


def test_several_channels_are_read_and_several_labels_and_numbers_said() -> None:
    task, images = viewer(channels=3), drawn(3, 6, 4, 3)
    lines = [",".join(map(str, one.ravel())) for one in images]
    np.testing.assert_array_equal(task.scores(lines), task.scores(list(images)))
    assert viewer("regression").classify(drawn(1)[0]).value is not None
    assert set(viewer("multi").classify(drawn(1)[0]).labels) <= set(LABELS)


@pytest.mark.parametrize(
    ("image", "where", "holds"),
    [
        ("1,2,3", None, ("3", "6 x 4 x 1", "24")),
        ("," * 23, None, ("''",)),
        (np.zeros((4, 6), int), "image", ("(4, 6)", "6 x 4 x 1")),
        (np.zeros((6, 4)) + 0.5, "image", ("65,535",)),
        (np.full((6, 4), -1), "image", ("holds -1", "65,535")),
        (np.full((6, 4), 65_536.0), "image", ("holds 65536", "65,535")),
        (np.full((6, 4), "1"), "image", ("no numbers",)),
    ],
)
def test_what_is_no_image_is_said(image: str | np.ndarray, where: str | None, holds: tuple[str, ...]) -> None:
    with refused(RegardError, where, *holds):
        viewer().classify(image)


def test_lines_are_numbered_where_they_stand() -> None:
    task, line = viewer(), ",".join("0" * 24)
    assert len(task.parse_lines([line, "", line])) == 2
    with refused(RegardError, "line 9", "2", "24"):
        task.parse_lines([line, "", "1,2"], first=7)
    with refused(RegardError, "line 2", "31", "24"):
        task.parse_lines(["x" + ",x" * 30], first=2)  # a header is in line 1 only


@pytest.mark.parametrize("scale", [Scale(9.0, (0.1, 0.2, 0.3)), Scale(9.0, (0.1,), (0.3, 0.4))])
def test_a_scale_for_other_channels_is_refused(scale: Scale) -> None:
    task = viewer()
    with refused(RegardError, "pixels.json", str(max(len(scale.mean), len(scale.deviation))), "1"):
        ImageClassification(task.recipe, ImageAssets(scale, task.assets.labels), task.model)


def test_assets_are_kept_and_a_damaged_scale_is_said(tmp_path: Path) -> None:
    assets = ImageAssets(Scale(16.0, (0.1, 0.2), (0.3, 0.4)), ("a", "b"), FittedValues(1.25, 0.5))
    for name, content in assets.contents.items():
        (tmp_path / name).write_bytes(content)
    assert ImageAssets.load(tmp_path) == assets
    assert assets.sizes == (0, 2)
    other = ImageAssets(Scale(15.0, (0.1, 0.2), (0.3, 0.4)), ("a", "b"))
    assert other.sha256 != assets.sha256
    whole = json.loads((tmp_path / "pixels.json").read_text())
    for changed in ({"largest": 0}, {"deviation": []}, {"mean": ["x"]}, {"format": 99}, {"deviation": [0.0]}):
        (tmp_path / "pixels.json").write_text(json.dumps({**whole, **changed}))
        with refused(RegardError, "pixels.json"):
            ImageAssets.load(tmp_path)
    (tmp_path / "pixels.json").unlink()
    with refused(RegardError, "pixels.json"):
        ImageAssets.load(tmp_path)


ROWS_OF_FOUR: Any = SimpleNamespace(cut=SimpleNamespace(shape=Shape(2, 2)))


def test_with_labels_and_without(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,2,3,4,a\n5,6,7,8,b\n\n9,9,9,9,c\n")
    (tmp_path / "b.csv").write_text("1,2,3,4\n\n5,6,7,8\n")
    (tmp_path / "c.tsv").write_text("p0\tp1\tp2\tp3\n1\t2\t3\t4\n")
    (tmp_path / "d.csv").write_text("label,p0,p1,p2,p3\nx,1,2,3,4\n")
    np.savez(tmp_path / "e.npz", images=np.arange(8).reshape(2, 2, 2), labels=np.array(["u", "v"]))
    for name, labels in {"a.csv": ["a", "b"], "b.csv": [None] * 2, "c.tsv": [None], "d.csv": ["x"]}.items():
        found = some_images(ROWS_OF_FOUR, tmp_path / name, 2)
        assert [label for _, label in found] == labels
        assert found[0][0].tolist() == [1, 2, 3, 4]
    (one,) = some_images(ROWS_OF_FOUR, tmp_path / "e.npz", 1)
    assert (one[0].tolist(), one[1]) == ([0, 1, 2, 3], "u")


def test_what_is_no_image_is_said_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,2,3,4\n1,2,x,4\n")
    with refused(RegardError, "a.csv:2", "'x'"):
        some_images(ROWS_OF_FOUR, tmp_path / "a.csv", 9)
    assert len(some_images(ROWS_OF_FOUR, tmp_path / "a.csv", 1)) == 1
    (tmp_path / "b.csv").write_text("")
    with refused(RegardError):
        some_images(ROWS_OF_FOUR, tmp_path / "b.csv", 9)
    with refused(UsageError):
        some_images(ROWS_OF_FOUR, tmp_path / "b.txt", 9)

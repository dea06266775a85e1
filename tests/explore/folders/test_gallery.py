"""Images to explore a model with."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from regard.data.demo.digits import several_digits
from regard.explore.folders.models import Gallery
from regard.runs.demo.images import TEST, TRAIN, VALID
from regard.system.errors import RegardError, UsageError
from tests.refusals import refused
from tests.tasks.small_tasks import viewer


@pytest.fixture
def rows() -> np.ndarray:
    return np.random.default_rng(1).integers(0, 10, (5, 24))


def test_images_of_a_file(tmp_path: Path, rows: np.ndarray) -> None:
    lines = [f"{','.join(map(str, row))},label {number}" for number, row in enumerate(rows.tolist())]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    gallery, task = Gallery(tmp_path / "a.csv"), viewer()
    found = gallery.batch(task, 1, 3)
    assert (found.labels, found.total) == (("label 1", "label 2", "label 3"), 5)
    np.testing.assert_array_equal(found.pixels, rows[1:4].reshape(3, 6, 4, 1))
    np.testing.assert_array_equal(gallery.image(task, 4), rows[4].reshape(6, 4, 1))
    assert [gallery.label(task, number) for number in (0, 4, 5)] == ["label 0", "label 4", None]
    assert gallery.batch(task, 7, 3).pixels.shape == (0, 6, 4, 1)
    with refused(UsageError, "image", "6", "5"):
        gallery.image(task, 5)


def test_images_without_labels_or_of_another_size(tmp_path: Path, rows: np.ndarray) -> None:
    (tmp_path / "u.csv").write_text("".join(f"{','.join(map(str, row))}\n" for row in rows.tolist()))
    gallery = Gallery(tmp_path / "u.csv")
    assert gallery.batch(viewer(), 0, 2).labels == ("", "")
    assert gallery.label(viewer(), 1) is None
    with pytest.raises(RegardError):
        gallery.batch(viewer(height=4), 0, 2)
    with pytest.raises(RegardError):
        Gallery(tmp_path / "absent.csv").batch(viewer(), 0, 2)


def test_images_that_the_project_makes() -> None:
    task, gallery = viewer(height=32, width=32, patch=8), Gallery(None)
    found = gallery.batch(task, 2, 2)
    made = [several_digits(TRAIN + VALID + number, task.recipe.seed) for number in (2, 3)]
    assert (found.labels, found.total) == (tuple(str(one.label) for one in made), TEST)
    np.testing.assert_array_equal(found.pixels[..., 0], [one.image for one in made])
    assert len(gallery.batch(task, TEST - 1, 5).labels) == 1
    assert len(gallery.batch(task, 10**9, 5).labels) == 0


def test_there_may_be_none() -> None:
    found = Gallery(None).batch(viewer(), 0, 24)
    assert (found.pixels.shape, found.labels, found.total) == ((0, 6, 4, 1), (), 0)
    with refused(UsageError, "image"):
        Gallery(None).image(viewer(), 0)

"""Images are learned from a file alone; a run goes on to the same bits; sizes are found or asked for."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard.data.corpora.images import Shape
from regard.system.errors import RegardError, UsageError
from regard.tasks.images.training import size_defaults
from tests.refusals import refused

SMALL = ("model.layers=1", "model.d_model=16", "model.d_ff=32", "model.heads=2", "training.validation_sentences=5")


def bars(count: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Images of 6 x 6 with a bright row or a bright column, in noise."""
    draw = np.random.default_rng(seed)
    images, labels = draw.integers(0, 3, (count, 6, 6)), draw.integers(0, 2, count)
    for image, label in zip(images, labels, strict=True):
        place = draw.integers(6)
        if label:
            image[place] = 9
        else:
            image[:, place] = 9
    return images, labels


def csv(path: Path, count: int = 160, seed: int = 1) -> Path:
    images, labels = bars(count, seed)
    rows = [",".join(map(str, [*image.ravel(), "row" if label else "column"])) for image, label in zip(images, labels)]  # noqa: B905
    path.write_text("\n".join(rows) + "\n")
    return path


def trained(output: Path, data: Path, **options: Any) -> Any:
    settings = (*SMALL, *options.pop("settings", ()))
    given: dict[str, Any] = {"task": "image-classification", "settings": settings, "threads": 1, "steps": 12, **options}
    return regard.train(train=data, output=output, **given)


def test_rows_and_columns_are_told_apart(tmp_path: Path) -> None:
    data = csv(tmp_path / "bars.csv", 300)
    settings = ("training.rate=1e-2", "images.shift=1")
    task = trained(tmp_path / "model", data, steps=60, settings=settings)
    images, labels = bars(100, seed=2)
    found = [verdict.label == "row" for verdict in task.classify(list(images))]
    assert np.mean(np.array(found) == labels) > 0.9
    assert task.recipe.model.patch == 2
    assert (task.recipe.model.height, task.recipe.model.width, task.recipe.model.channels) == (6, 6, 1)
    assert task.recipe.training.tokens == 64 * 10
    assert task.assets.scale.largest == 9
    card = (tmp_path / "model" / "card.md").read_text()
    assert "270 images to learn from, 30 to validate on, 2 labels" in card
    assert regard.load(tmp_path / "model").classify(images[0]) == task.classify(images[0])


def test_arrays_and_their_own_validation_images(tmp_path: Path) -> None:
    for name, seed in (("train", 1), ("valid", 2)):
        images, labels = bars(60, seed)
        np.savez(tmp_path / f"{name}.npz", images=images.astype(np.uint8), labels=labels)
    task = trained(tmp_path / "model", tmp_path / "train.npz", valid=tmp_path / "valid.npz", steps=2)
    assert task.assets.labels == ("0", "1")
    assert "60 images to learn from, 60 to validate on" in (tmp_path / "model" / "card.md").read_text()


@pytest.mark.parametrize("kind", ["multi", "regression"])
def test_other_kinds_of_labels_are_learned(tmp_path: Path, kind: str) -> None:
    images, labels = bars(60)
    said = ["a|b" if label else "b" for label in labels] if kind == "multi" else [str(label / 2) for label in labels]
    np.savez(tmp_path / "some.npz", images=images, labels=np.array(said))
    task = trained(tmp_path / "model", tmp_path / "some.npz", steps=2, settings=(f"classification.kind={kind}",))
    assert task.assets.labels == (("a", "b") if kind == "multi" else ("number",))
    assert (task.classify(images[0]).value is None) == (kind == "multi")


def test_sizes_that_do_not_fit_are_said(tmp_path: Path) -> None:
    data = csv(tmp_path / "bars.csv")
    with refused(UsageError, None, "6 x 6 x 1", "12 x 6 x 1", "72"):
        trained(tmp_path / "model", data, settings=("model.height=12",))
    (tmp_path / "long.csv").write_text("".join(f"{n},1,2,3,4,5,6,7,{'ab'[n % 2]}\n" for n in range(60)))
    with refused(UsageError, None, "8", "model.height"):
        trained(tmp_path / "model", tmp_path / "long.csv")
    settings = ("model.height=2", "model.width=4", "model.patch=2")
    assert trained(tmp_path / "model", tmp_path / "long.csv", settings=settings, steps=1).recipe.model.patches == 2
    with refused(UsageError, "settings", "training.tokens"):
        trained(tmp_path / "tiny", data, settings=("training.tokens=16", "model.patch=1"))


def test_images_that_are_all_alike_or_dark_are_said_with_their_file(tmp_path: Path) -> None:
    for name, value in (("alike", 1), ("dark", 0)):
        np.savez(tmp_path / f"{name}.npz", images=np.full((40, 4, 4), value), labels=np.arange(40) % 2)
        with refused(RegardError, f"{name}.npz", "40" if value else ""):
            trained(tmp_path / name, tmp_path / f"{name}.npz", despite_check=True)
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    with refused(RegardError, empty):
        trained(tmp_path / "model", empty)


def test_images_are_not_moved_out_of_themselves_and_no_model_is_begun_from(tmp_path: Path) -> None:
    data = csv(tmp_path / "bars.csv", 60)
    with refused(UsageError, "images.shift", "6 x 6"):
        trained(tmp_path / "model", data, settings=("images.shift=6",))
    assert trained(tmp_path / "model", data, settings=("images.shift=5",), steps=1).recipe.images.shift == 5
    with pytest.raises(RegardError):
        trained(tmp_path / "other", data, start_from=tmp_path / "model")


@pytest.mark.parametrize(("side", "patch"), [(8, 2), (28, 4), (32, 4), (64, 8), (224, 14), (7, 1), (1, 1)])
def test_patches_are_about_the_root_of_a_side(side: int, patch: int) -> None:
    assert size_defaults(Shape(side, side, 3))["model.patch"] == patch
    assert size_defaults(5) == {}

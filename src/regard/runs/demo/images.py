"""Image demonstration: four digits per image, two of them equal; trains, scores, and draws attention."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.runs.demo.digits import corpus
from regard.runs.demo.translation import put
from regard.runs.train import train
from regard.system.errors import Stopped
from regard.tasks.images.classifier import ImageClassification
from regard.training.log import Reporter

TRAIN, VALID, TEST = 20_000, 1_000, 1_000
STEPS = 4_000
RECIPE: dict[str, Any] = {
    "task": "image-classification",
    "model": {"layers": 3, "patch": 4, "d_model": 64, "d_ff": 256, "heads": 4, "positions": "grid", "dropout": 0.0},
    "images": {"shift": 2},
    "training": {"rate": 2e-3, "select": "accuracy"},
}
"""Small enough for a laptop's few minutes."""


@dataclass(frozen=True)
class ImageDemonstration:
    """Results of the demonstration, in per cent of the test images.

    Args:
        train, test: images.
        model: whose label is right.
        nearest: as right as that of the training image with the nearest pixels.
        one_digit: the most that can be right by looking at one quarter alone.
        chance: by guessing.
    """

    train: int
    test: int
    model: float
    nearest: float
    one_digit: float = 50.0
    chance: float = 10.0


def demonstrate_images(
    output: Path,
    seed: int = 1,
    steps: int | None = None,
    reporter: Reporter | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    threads: int | None = None,
) -> tuple[ImageDemonstration, ImageClassification]:
    """Run the demonstration in a folder; the images lie in ``images/``, the model in ``model/``.

    Args:
        output: the folder; a stopped run in it resumes.
        seed: of the images and of training.
        steps: updates; default: what suffices. A finished run with more steps requested continues.
        reporter: receives progress; ``should_stop``: called before every step.
        threads: processor threads; default: as many as torch takes.

    Raises:
        Stopped: ``should_stop`` returned true; the same command resumes.
    """
    reporter = reporter or Reporter()
    reporter.on_event("drawing the images")
    parts = make_images(seed)
    files = {name: put_arrays(output / "images" / f"{name}.npz", *part) for name, part in parts.items()}
    model: ImageClassification = train(
        train=files["train"],
        valid=files["valid"],
        output=output / "model",
        recipe=RECIPE,
        seed=seed,
        steps=steps or STEPS,
        threads=threads,
        reporter=reporter,
        should_stop=should_stop,
        allow_mismatch=["training.steps"],
    )
    if should_stop():
        raise Stopped("stopped before the scores of the test images; all is saved, the same command makes them")
    reporter.on_event("classifying the test images")
    images, labels = parts["test"]
    found = [verdict.label for verdict in model.classify(list(images))]
    right = 100 * float(np.mean([one == str(label) for one, label in zip(found, labels.tolist(), strict=True)]))
    near = 100 * float((nearest(*parts["train"], images) == labels).mean())
    return ImageDemonstration(len(parts["train"][1]), len(labels), right, near), model


def make_images(seed: int) -> dict[str, tuple[NDArray[np.uint8], NDArray[np.int64]]]:
    """Images and labels of each part, all different images."""
    found, first = {}, 0
    for name, count in (("train", TRAIN), ("valid", VALID), ("test", TEST)):
        found[name] = corpus(count, seed, first)
        first += count
    return found


def put_arrays(path: Path, images: NDArray[np.uint8], labels: NDArray[np.int64]) -> Path:
    """The arrays as an ``.npz`` file.

    Raises:
        RegardError: there is another one of this name.
    """
    content = BytesIO()
    np.savez(content, images=images, labels=labels)
    path.parent.mkdir(parents=True, exist_ok=True)
    put(path, content.getvalue())
    return path


def nearest(
    known: NDArray[np.uint8], labels: NDArray[np.int64], images: NDArray[np.uint8], at_once: int = 200
) -> NDArray[np.int64]:
    """For each image the label of the known one whose pixels are nearest, by the sum of squared differences."""
    rows = known.reshape(len(known), -1).astype(np.float32)
    squares = np.square(rows).sum(1)
    asked = images.reshape(len(images), -1).astype(np.float32)
    parts = [asked[begin : begin + at_once] for begin in range(0, len(asked), at_once)]
    found = [labels[(squares - 2 * part @ rows.T).argmin(1)] for part in parts]
    return np.concatenate([np.zeros(0, np.int64), *found])

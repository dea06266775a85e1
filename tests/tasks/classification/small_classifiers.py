"""A labelled file whose labels can be learned in a moment, and classifiers taught on it."""

import random
from pathlib import Path
from typing import Any

import regard

WORDS = {"food": "bread soup apple cheese rice", "sport": "ball race team goal swim", "sky": "star moon cloud sun rain"}
SMALL = (
    "text.vocabulary=320 model.d_model=32 model.d_ff=64 model.heads=2 model.layers=1 model.positions=sinusoidal "
    "data.validation=20 data.max_tokens=24 training.precision=fp32 training.rate=0.01"
).split()


def rows(count: int, seed: int = 1, labels: tuple[str, ...] = tuple(WORDS)) -> list[tuple[str, str]]:
    """Texts of which one word in three tells the label."""
    draw, found = random.Random(seed), []
    for _ in range(count):
        label = draw.choice(labels)
        chosen = draw.choices("the a my see like near big".split(), k=4) + draw.choices(WORDS[label].split(), k=2)
        found.append((" ".join(draw.sample(chosen, len(chosen))), label))
    return found


def written(path: Path, pairs: list[tuple[str, str]]) -> Path:
    path.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in pairs))
    return path


def taught(output: Path, train: Path, *more: str, steps: int = 60, **options: Any) -> Any:
    """A classifier, loaded."""
    given: dict[str, Any] = {"task": "classification", "threads": 1, "device": "cpu", **options}
    return regard.train(train=train, output=output, settings=(*SMALL, *more), steps=steps, **given)

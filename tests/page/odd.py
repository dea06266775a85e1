"""Models that are not as others are: of long texts, or with names that would be pictures in a careless page."""

import dataclasses
from pathlib import Path
from typing import Any

import regard
from regard.text.language_tokens import LanguageTokens
from tests.tasks.small_tasks import LABELS, classifier, log, put, translator

HOSTILE = "<img src=x onerror=alert(1)>"
LETTERS = "abcdefghij"
LONG: dict[str, Any] = {
    "task": "masked-lm",
    "text": {"vocabulary": 300},
    "data": {"max_tokens": 600},
    "model": {"layers": 2, "heads": 4, "d_model": 32, "d_ff": 32, "max_positions": 640},
    "training": {"tokens": 600, "rate": 0.03},
}


def reads_long(folder: Path) -> Path:
    """A model of masked words that reads 600 tokens, after a few steps of training: it is looked at, not believed."""
    texts = folder / "letters.txt"
    texts.write_text(
        "".join(f"{' '.join(LETTERS[n % 7 :])} {' '.join(LETTERS[: n % 9])}\n" for n in range(300)), encoding="utf-8"
    )
    regard.train(train=texts, output=folder / "long", recipe=LONG, steps=4, seed=1, threads=1, device="cpu")
    return folder / "long"


def polyglot() -> Any:
    """An untaught translator of three languages, which are told by a piece before the source."""
    task = translator()
    codes = LanguageTokens({"de": 330, "en": 331, "fr": 332}, False, (("de", "en"), ("en", "fr")))
    return type(task)(task.recipe, dataclasses.replace(task.assets, languages=codes), task.model)


def hostile(folder: Path) -> Path:
    """An untaught classifier: its folder, a label, and all that its training is said to have read and written."""
    task = classifier()
    task.assets = dataclasses.replace(task.assets, labels=(HOSTILE, *LABELS[1:]))
    path = put(folder / HOSTILE, task)
    step = {"kind": "step", "seconds": 1.0, "loss": 2.0, "rate": 0.1, "tokens_per_second": 9.0, "norm": 1.0}
    told = {"source": HOSTILE, "reference": HOSTILE, "hypothesis": HOSTILE}
    lines = [{"kind": "start", "step": 0, "steps": 2}]
    for number in (1, 2):
        lines += [
            {**step, "step": number, "norms": {HOSTILE: 1.0, "encoder": 2.0}},
            {"kind": "sample", "step": number, **told, "hypothesis": HOSTILE * number},
        ]
        lines.append({"kind": "valid", "step": number, "seconds": 1.0, "loss": 2.0, HOSTILE: 0.5, "best": number == 2})
    log(path, lines)
    return path

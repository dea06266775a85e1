"""The coverage guard on damaged and sound translations, and how far confidences of words can be trusted.

    python benchmarks/guard.py MODEL --validation val.en val.de --test test.en test.de

Of the first 300 test pairs, the references and the model's own translations are sound; each is damaged once, a third
by a clause that is dropped, a loop, and a copy of the source. Thresholds are fitted on the validation pairs alone.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import command
import numpy as np

COUNT = 300
Row = dict[str, Any]


def dropped(source: list[str], said: list[str], draw: random.Random) -> list[str]:
    """Without 30 to 50 % of its words, two at least, side by side."""
    size = min(len(said) - 1, max(2, round(len(said) * draw.uniform(0.3, 0.5))))
    begin = draw.randrange(len(said) - size + 1)
    return said[:begin] + said[begin + size :]


def looped(source: list[str], said: list[str], draw: random.Random) -> list[str]:
    """One to four words three to seven times."""
    size = min(len(said), draw.randint(1, 4))
    begin = draw.randrange(len(said) - size + 1)
    return said[: begin + size] + said[begin : begin + size] * draw.randint(2, 6) + said[begin + size :]


def copied(source: list[str], said: list[str], draw: random.Random) -> list[str]:
    """40 to 100 % of the source's words, three at least, in the place of as large a share of the translation."""
    size = min(len(source), max(3, round(len(source) * draw.uniform(0.4, 1))))
    begin = draw.randrange(len(source) - size + 1)
    first, last = (round(edge / len(source) * len(said)) for edge in (begin, begin + size))
    return said[:first] + source[begin : begin + size] + said[last:]


DAMAGES = (dropped, looped, copied)


def damaged(sources: Sequence[str], outputs: Sequence[str], seed: int = 1) -> list[str]:
    """Each output damaged, by each rule in turn."""
    draw = random.Random(seed)
    pairs = zip(sources, outputs, strict=True)
    return [" ".join(DAMAGES[i % 3](a.split(), b.split(), draw)) for i, (a, b) in enumerate(pairs)]


def roc_area(sound: Sequence[float], bad: Sequence[float]) -> float:
    """The probability that a damaged one has the higher score; ties count half."""
    sound_1N, bad_M1 = np.array(sound)[None], np.array(bad)[:, None]
    return float(((bad_M1 > sound_1N) + 0.5 * (bad_M1 == sound_1N)).mean())


def guarded(task: Any, sources: list[str], outputs: list[str], name: str) -> Row:
    """Area, false alarms, and what is found of each damage."""
    sound, bad = task.guard(sources, outputs), task.guard(sources, damaged(sources, outputs))
    row: Row = {"of": name, "pairs": len(sources)}
    row["roc area"] = round(roc_area([one.score for one in sound], [one.score for one in bad]), 4)
    row["warned, sound"] = round(float(np.mean([bool(one.warnings) for one in sound])), 3)
    for place, rule in enumerate(DAMAGES):
        row[f"warned, {rule.__name__}"] = round(float(np.mean([bool(one.warnings) for one in bad[place::3]])), 3)
    return row


def word_errors(task: Any, sources: list[str], references: list[str]) -> Row:
    """Expected calibration error of words, in ten bins: of their pieces' probabilities, and of what these map to."""
    from regard.tasks.metrics.calibration import expected_calibration_error
    from regard.tasks.translation.word_confidence import in_reference

    raw, mapped, right = list[float](), list[float](), list[bool]()
    for [best], reference in zip(task.nbest(sources), references, strict=True):
        words = task.words(best)
        raw += [math.exp(word.confidence) for word in task.word_log_probabilities(best)]
        mapped += [word.confidence for word in words]
        right += in_reference([word.text for word in words], reference)
    errors = (expected_calibration_error(np.array(one), np.array(right), 10) for one in (raw, mapped))
    return {"words": len(right), "calibration error before, after": [round(error, 4) for error in errors]}


def main() -> None:
    """Fit, judge, print."""
    import regard
    from regard.tasks.translation.calibration import calibrate
    from regard.text.lines import lines

    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("model", type=Path)
    for name in ("--validation", "--test"):
        made.add_argument(name, type=Path, nargs=2, required=True, metavar=("SOURCE", "REFERENCE"))
    asked = made.parse_args()
    task: Any = regard.load(asked.model, "cpu")
    valid, test = ([list(lines(path)) for path in pair] for pair in (asked.validation, asked.test))
    best = [one for one, *_ in task.nbest(valid[0])]
    fitted = calibrate((task, *pair) for pair in zip(*valid, best, strict=True))
    task.assets = dataclasses.replace(task.assets, calibration=fitted)
    sources, references = (texts[:COUNT] for texts in test)
    print(json.dumps(fitted.guard))
    for name, outputs in (("references", references), ("own translations", task.translate(sources))):
        print(json.dumps(guarded(task, sources, outputs, name)), flush=True)
    print(json.dumps(word_errors(task, *test)))


if __name__ == "__main__":
    command.run(main)

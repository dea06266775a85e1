"""Scores and seconds of ways to choose among several translations: an ensemble, minimum Bayes risk, a reverse model.

    python benchmarks/several.py MODEL OTHER REVERSE --source test.en --reference test.de --rounds 3

By the engine with one thread; seconds are those of the processor, the median of the rounds.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from regard.system import kernels
from regard.tasks.metrics.bleu import score
from regard.tasks.model_folder import open_without_torch
from regard.tasks.text.writer import Hypothesis
from regard.tasks.translation.translator import Translation
from regard.text.lines import lines

Found = Sequence[list[Hypothesis]]
Way = Callable[[list[str]], Found]


def ways(task: Translation, other: Translation, reverse: Translation, given: argparse.Namespace) -> dict[str, Way]:
    """What is compared, by name."""
    drawing = {"temperature": given.temperature, "min_p": given.min_p}
    both, behind = task.with_models([other]), task.with_reverse(reverse)
    chosen = behind.with_settings([f"decoding.reverse_weight={given.weight}"])
    found: dict[str, Way] = {
        "beam 5": lambda texts: task.nbest(texts, 1, 5),
        "beam 5, the other model": lambda texts: other.nbest(texts, 1, 5),
        "beam 5, both as an ensemble": lambda texts: both.nbest(texts, 1, 5),
        "beam 20 by a reverse model": lambda texts: chosen.nbest(texts, 1, 20),
        "chrF of the 20 best": lambda texts: task.mbr(texts, 20, 20),
    }
    for n in given.samples:
        found[f"chrF of {n} samples"] = lambda texts, n=n: task.mbr(texts, n, **drawing)  # type: ignore[misc]
        found[f"chrF of {n} samples of both"] = lambda texts, n=n: both.mbr(texts, n, **drawing)  # type: ignore[misc]
    return {name: way for name, way in found.items() if not given.only or name in given.only}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs=3, type=Path)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--lines", type=int)
    parser.add_argument("--temperature", type=float, default=1.0)
    parser.add_argument("--min-p", type=float, default=0.0)
    parser.add_argument("--weight", type=float, default=0.5)
    parser.add_argument("--samples", type=int, nargs="*", default=[32, 100])
    parser.add_argument("--only", nargs="*", help="ways, by name")
    given = parser.parse_args()
    kernels.use_threads(1)
    task, other, reverse = (open_without_torch(folder, "cpu", "fp32") for folder in given.models)
    texts, references = ([*lines(path)][: given.lines] for path in (given.source, given.reference))
    print("| | BLEU | chrF | seconds |\n| --- | --- | --- | --- |")
    for name, way in ways(task, other, reverse, given).items():
        seconds = []
        for _ in range(given.rounds):
            begun = time.process_time()
            found = way(texts)
            seconds.append(time.process_time() - begun)
        scores = score([line[0].text for line in found], references, task.direction[1], samples=0)
        print(f"| {name} | {scores.bleu:.2f} | {scores.chrf:.2f} | {median(seconds):.1f} |", flush=True)


if __name__ == "__main__":
    main()

"""Quality on Multi30k: a recipe's run, of its steps or in so many minutes, scored on validation, and once on test_2016.

    python benchmarks/multi30k.py --direction en-de --seed 1 --test

A run that was stopped goes on when the same command is given again; a run that is finished and scored is not scored
again. Lines are appended to ``results/multi30k.jsonl``, or to ``--results FILE``: a new file there and ``--work DIR``
repeat a run that the repository has the result of. Meant to be started detached: ``setsid … > log 2>&1 &``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import command
import machine
import quality
from command import HERE
from corpus import data_folder
from quality import Row, entries

RECIPE = HERE.parent / "recipes" / "multi30k" / "captions.toml"


def main() -> None:
    """Train, score, append."""
    made = quality.parser(__doc__, "multi30k", setting="--set")
    made.add_argument("--direction", choices=["en-de", "de-en"], default="en-de")
    made.add_argument("--recipe", type=Path, default=RECIPE, help="default: captions.toml")
    asked = made.parse_args()
    name = f"{asked.name}-{asked.direction}-{asked.seed}{f'-{asked.minutes:g}' if asked.minutes else ''}"
    settings = [f"recipe={asked.recipe.name}", *asked.settings]
    row: Row = {"run": name, "threads": asked.threads, "settings": " ".join(settings)}
    if quality.done(asked.results, row, asked.test):
        return
    begun, data = machine.begun("multi30k", name=name), data_folder()
    source, target = asked.direction.split("-")
    pairs = quality.pairs(data, source, target)
    model, folder = quality.trained(asked, row, **pairs, recipe=asked.recipe, settings=asked.settings)
    row |= course(folder)
    for part in ("val", "test_2016_flickr") if asked.test else ("val",):
        row |= scored(model, data, part, source, target)
    machine.append(asked.results, begun, [row])


def course(folder: Path) -> Row:
    """How far and how fast the run went, read off its log."""
    steps = entries(folder)["step"]
    tokens, seconds = sum(step["tokens"] for step in steps), steps[-1]["seconds"]
    return {"steps": len(steps), "target tokens/s": round(tokens / seconds), "train minutes": round(seconds / 60, 2)}


def scored(model: Any, data: Path, part: str, source: str, target: str) -> Row:
    """BLEU of beam 5 without and with regard to case, and greedy."""
    from regard.tasks.metrics.bleu import score
    from regard.text.lines import lines

    sources, references = (list(lines(data / f"{part}.{language}.gz")) for language in (source, target))
    found: Row = {}
    for beam in (1, 5):
        hypotheses = model.translate(sources, beam)
        for lowercase in (True, False):
            scores = score(hypotheses, references, target, lowercase, samples=1)
            found[f"{part} beam {beam} {'lc' if lowercase else 'cased'}"] = round(scores.bleu, 2)
            if beam == 5:
                found[f"signature {'lc' if lowercase else 'cased'}"] = scores.bleu_signature
    return found


if __name__ == "__main__":
    command.run(main)

"""Quality of the tasks that read (classes, sentence pairs, tags, images), trained from nothing, test sets scored once.

    python benchmarks/reading.py --set trec --seed 1 --test
    python benchmarks/reading.py --set sst2 --seed 1 --defaults --test    # as a stranger would: no recipe
    python benchmarks/reading.py --set trec --seed 1 --defaults --from MODEL --name pretrained --test

What is chosen is chosen on the validation part: the set's own, or a seeded tenth of its training part. A run that was
stopped goes on when the same command is given again; one that is finished and scored is not scored again. Lines are
appended to ``results/reading.jsonl``, or to ``--results FILE``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import command
import machine
import quality
from command import HERE
from quality import Row, entries
from reading_splits import SETS, Set, files_of, together


def main() -> None:
    """Train, score, append."""
    made = quality.parser(__doc__, "reading")
    made.add_argument("--set", choices=list(SETS), required=True)
    made.add_argument("--defaults", action="store_true", help="no recipe: what regard train chooses itself")
    made.add_argument("--from", dest="start_from", type=Path, default=None, help="a model folder to begin from")
    made.set_defaults(name=None)
    asked = made.parse_args()
    data, name = SETS[asked.set], asked.name or ("defaults" if asked.defaults else "recipe")
    row: Row = {"run": f"{asked.set} {name} {asked.seed}", "set": asked.set, "name": name, "seed": asked.seed}
    row |= {"threads": asked.threads, "settings": " ".join(asked.settings)}
    if quality.done(asked.results, row, asked.test):
        return
    begun, files = machine.begun("reading", name=row["run"]), files_of(asked.set, asked.work)
    model, folder = quality.trained(
        asked,
        row,
        task=data.task,
        train=[files / part for part in data.train],
        valid=together(files, data.valid, asked.work) if data.valid else None,
        start_from=asked.start_from,
        columns=data.columns,
        recipe=None if asked.defaults else HERE.parent / "recipes" / "reading" / f"{asked.set}.toml",
        settings=asked.settings,
    )
    row |= course(folder, data.score)
    if asked.test:
        row |= scored(model, data, together(files, data.test, asked.work))
    machine.append(asked.results, begun, [row])


def course(folder: Path, score: str) -> Row:
    """How far the run went, and the validation score of the model it kept, read off its log."""
    log = entries(folder)
    steps, best = log["step"], [entry for entry in log["valid"] if entry["best"]][-1]
    found = {"parameters": log["start"][0]["parameters"], "steps": len(steps)}
    found |= {"train minutes": round(steps[-1]["seconds"] / 60, 2), "best step": best["step"]}
    return found | {f"validation {score}": round(best.get(score, float("nan")), 2)}


def scored(model: Any, data: Set, path: Path) -> dict[str, Any]:
    """The scores on the test set."""
    from regard.tasks import model_class

    scores = model.evaluate(model_class(data.task).open_corpus(path, data.columns)).to_dict()
    return {f"test {name}": round(value, 2) for name, value in flat(scores) if isinstance(value, int | float)}


def flat(scores: dict[str, Any]) -> list[tuple[str, Any]]:
    """The figures of scores, and those one level below where they stand for the whole."""
    found = []
    for name, value in scores.items():
        if isinstance(value, dict) and {"recall", "f1"} <= value.keys():
            wanted = ("value", "precision", "recall", "f1", "accuracy", "in_scope_accuracy")
            found += [(f"{name} {inner}", value[inner]) for inner in wanted if inner in value]
        elif not isinstance(value, dict | list | bool):
            found.append((name, value))
    return found


if __name__ == "__main__":
    command.run(main)

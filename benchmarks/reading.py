"""Quality of the tasks that read (classes, sentence pairs, tags, images), trained from nothing, test sets scored once.

    python benchmarks/reading.py --set trec --seed 1 --test
    python benchmarks/reading.py --set sst2 --seed 1 --defaults --test    # as a stranger would: no recipe
    python benchmarks/reading.py --set trec --seed 1 --defaults --from MODEL --name pretrained --test

What is chosen is chosen on the validation part: the set's own, or a seeded tenth of its training part. A run that was
stopped goes on when the same command is given again; one that is finished and scored is not scored again. Lines are
appended to ``results/reading.jsonl``, or to ``--results FILE``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import machine
from reading_splits import SETS, Set, files_of, together

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "reading.jsonl"


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=list(SETS), required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--defaults", action="store_true", help="no recipe: what regard train chooses itself")
    parser.add_argument("--from", dest="start_from", type=Path, default=None, help="a model folder to begin from")
    parser.add_argument("--minutes", type=float, default=None)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--setting", action="append", default=[], help="section.key=value, as regard train has it")
    parser.add_argument("--name", default=None, help="what this run tries; default: recipe or defaults")
    parser.add_argument("--test", action="store_true", help="also score the test set: for final runs only")
    parser.add_argument("--work", type=Path, default=HERE.parent / ".bench" / "reading")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


def main() -> None:
    """Train, score, append."""
    asked = options()
    data, name = SETS[asked.set], asked.name or ("defaults" if asked.defaults else "recipe")
    run = f"{asked.set} {name} {asked.seed}"
    row: dict[str, Any] = {"run": run, "set": asked.set, "name": name, "seed": asked.seed}
    row |= {"threads": asked.threads, "settings": " ".join(asked.setting)}
    if done(asked.results, row, asked.test):
        print(f"{run} stands in {asked.results} already")
        return
    begun = {"benchmark": "reading", "name": run, "date": machine.now()}
    begun |= {"commit": machine.commit(), "machine": machine.describe()}
    import regard
    from regard.training.reporters import LineReporter

    folder = files_of(asked.set, asked.work)
    output = asked.work / run.replace(" ", "-")
    began, fresh = time.monotonic(), not output.exists()
    model = regard.train(
        task=data.task,
        train=[folder / part for part in data.train],
        valid=together(folder, data.valid, asked.work) if data.valid else None,
        start_from=asked.start_from,
        columns=data.columns,
        output=output,
        recipe=None if asked.defaults else HERE.parent / "recipes" / "reading" / f"{asked.set}.toml",
        settings=asked.setting,
        minutes=asked.minutes,
        seed=asked.seed,
        threads=asked.threads,
        reporter=LineReporter(sys.stderr),
    )
    row |= course(output, data.score)
    if fresh:
        row |= {"whole minutes": round((time.monotonic() - began) / 60, 1)}
    if asked.test:
        row |= scored(model, data, together(folder, data.test, asked.work))
    machine.append(asked.results, {**begun, "rows": [row]})
    print(json.dumps(row, indent=1))


def course(folder: Path, score: str) -> dict[str, Any]:
    """How far the run went, and the validation score of the model it kept, read off its log."""
    lines = (folder / "training" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line) for line in lines]
    steps = [entry for entry in entries if entry["kind"] == "step"]
    best = [entry for entry in entries if entry["kind"] == "valid" and entry["best"]][-1]
    parameters = next(entry["parameters"] for entry in entries if entry["kind"] == "start")
    found = {"parameters": parameters, "steps": len(steps), "train minutes": round(steps[-1]["seconds"] / 60, 2)}
    return found | {"best step": best["step"], f"validation {score}": round(best.get(score, float("nan")), 2)}


def scored(model: Any, data: Set, path: Path) -> dict[str, Any]:
    """The scores on the test set."""
    from regard.tasks.model_folder import corpus_opener

    scores = model.evaluate(corpus_opener(data.task)(path, data.columns)).to_dict()
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


def done(results: Path, run: dict[str, Any], test: bool) -> bool:
    """Whether the run is scored already; a test set is scored once. Another run of that name is refused."""
    if not results.exists():
        return False
    rows = [row for line in results.read_text(encoding="utf-8").splitlines() for row in json.loads(line)["rows"]]
    same = [row for row in rows if row["run"] == run["run"]]
    if any(row[key] != run[key] for row in same for key in ("threads", "settings")):
        raise SystemExit(f"{run['run']} stands in {results} with other threads or settings; give this one a --name")
    return any(not test or any(key.startswith("test ") for key in row) for row in same)


if __name__ == "__main__":
    main()

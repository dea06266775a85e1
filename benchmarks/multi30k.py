"""Quality on Multi30k: a recipe's run in so many minutes, scored on validation, and once on test_2016.

    python benchmarks/multi30k.py --direction en-de --seed 1 --minutes 30 --test

A run that was stopped goes on when the same command is given again; a run that is finished and scored is not scored
again. Lines are appended to ``results/multi30k.jsonl``. Meant to be started detached: ``setsid … > log 2>&1 &``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from corpus import data_folder
from machine import commit, describe, now

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "multi30k.jsonl"


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--direction", choices=["en-de", "de-en"], default="en-de")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--recipe", type=Path, default=None, help="default: recipes/multi30k/DIRECTION.toml")
    parser.add_argument("--set", action="append", default=[], help="section.key=value, as regard train has it")
    parser.add_argument("--name", default="recipe", help="what this run tries")
    parser.add_argument("--test", action="store_true", help="also score test_2016: for final runs only")
    parser.add_argument("--work", type=Path, default=HERE.parent / ".bench" / "multi30k")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


def main() -> None:
    """Train, score, append."""
    asked = options()
    name = f"{asked.name}-{asked.direction}-{asked.seed}-{asked.minutes:g}"
    if done(asked.results, name, asked.test):
        print(f"{name} stands in {asked.results} already")
        return
    import regard
    from regard.cli.progress import Lines

    data = data_folder()
    source, target = asked.direction.split("-")
    began, fresh = time.monotonic(), not (asked.work / name).exists()
    model = regard.train(
        source=data / f"train.{source}.gz",
        target=data / f"train.{target}.gz",
        valid_source=data / f"val.{source}.gz",
        valid_target=data / f"val.{target}.gz",
        output=asked.work / name,
        recipe=asked.recipe or HERE.parent / "recipes" / "multi30k" / f"{asked.direction}.toml",
        settings=asked.set,
        minutes=asked.minutes,
        seed=asked.seed,
        threads=asked.threads,
        reporter=Lines(sys.stderr),
    )
    row: dict[str, Any] = {"run": name, "threads": asked.threads, "settings": " ".join(asked.set)}
    row |= course(asked.work / name)
    if fresh:
        row |= {"whole minutes": round((time.monotonic() - began) / 60, 1)}
    row |= scored(model, data, "val", source, target)
    if asked.test:
        row |= scored(model, data, "test_2016_flickr", source, target)
    append(asked.results, name, row)
    print(json.dumps(row, indent=1))


def course(folder: Path) -> dict[str, Any]:
    """How far and how fast the run went, read off its log."""
    lines = (folder / "training" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    steps = [entry for entry in map(json.loads, lines) if entry["kind"] == "step"]
    tokens, seconds = sum(step["tokens"] for step in steps), steps[-1]["seconds"]
    return {"steps": len(steps), "target tokens/s": round(tokens / seconds), "train minutes": round(seconds / 60, 2)}


def scored(model: Any, data: Path, part: str, source: str, target: str) -> dict[str, Any]:
    """BLEU of beam 5 without and with regard to case, and greedy."""
    from regard.tasks.metrics import score
    from regard.text.lines import lines

    sources, references = (list(lines(data / f"{part}.{language}.gz")) for language in (source, target))
    found: dict[str, Any] = {}
    for beam in (1, 5):
        hypotheses = model.translate(sources, beam)
        for lowercase in (True, False):
            scores = score(hypotheses, references, target, lowercase, samples=1)
            found[f"{part} beam {beam} {'lc' if lowercase else 'cased'}"] = round(scores.bleu, 2)
            if beam == 5:
                found[f"signature {'lc' if lowercase else 'cased'}"] = scores.bleu_signature
    return found


def done(results: Path, name: str, test: bool) -> bool:
    """Whether the run is scored already; a test set is scored once."""
    if not results.exists():
        return False
    rows = [row for line in results.read_text(encoding="utf-8").splitlines() for row in json.loads(line)["rows"]]
    return any(row["run"] == name and (not test or any("test_2016" in key for key in row)) for row in rows)


def append(results: Path, name: str, row: dict[str, Any]) -> None:
    """One session with one row."""
    session = {
        "benchmark": "multi30k",
        "name": name,
        "date": now(),
        "commit": commit(),
        "machine": describe(),
        "rows": [row],
    }
    results.parent.mkdir(parents=True, exist_ok=True)
    with results.open("a", encoding="utf-8") as file:
        file.write(json.dumps(session) + "\n")


if __name__ == "__main__":
    main()

"""Quality on Multi30k: a recipe's run in so many minutes, scored on validation, and once on test_2016.

    python benchmarks/multi30k.py --direction en-de --seed 1 --minutes 30 --test

A run that was stopped goes on when the same command is given again; a run that is finished and scored is not scored
again. Lines are appended to ``results/multi30k.jsonl``, or to ``--results FILE``: a new file there and ``--work DIR``
repeat a run that the repository has the result of. Meant to be started detached: ``setsid … > log 2>&1 &``.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import machine
from corpus import data_folder

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
    row: dict[str, Any] = {"run": name, "threads": asked.threads, "settings": " ".join(settings(asked))}
    if done(asked.results, row, asked.test):
        print(f"{name} stands in {asked.results} already; give another --results and --work to repeat it")
        return
    begun = {"benchmark": "multi30k", "name": name, "date": machine.now()}
    begun |= {"commit": machine.commit(), "machine": machine.describe()}
    import regard
    from regard.training.reporters import LineReporter

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
        reporter=LineReporter(sys.stderr),
    )
    row |= course(asked.work / name)
    if fresh:
        row |= {"whole minutes": round((time.monotonic() - began) / 60, 1)}
    row |= scored(model, data, "val", source, target)
    if asked.test:
        row |= scored(model, data, "test_2016_flickr", source, target)
    machine.append(asked.results, {**begun, "rows": [row]})
    print(json.dumps(row, indent=1))


def course(folder: Path) -> dict[str, Any]:
    """How far and how fast the run went, read off its log."""
    lines = (folder / "training" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    steps = [entry for entry in map(json.loads, lines) if entry["kind"] == "step"]
    tokens, seconds = sum(step["tokens"] for step in steps), steps[-1]["seconds"]
    return {"steps": len(steps), "target tokens/s": round(tokens / seconds), "train minutes": round(seconds / 60, 2)}


def scored(model: Any, data: Path, part: str, source: str, target: str, prefix: str = "") -> dict[str, Any]:
    """BLEU of beam 5 without and with regard to case, and greedy; the names begin with the prefix."""
    from regard.tasks.metrics.bleu import score
    from regard.text.lines import lines

    sources, references = (list(lines(data / f"{part}.{language}.gz")) for language in (source, target))
    found: dict[str, Any] = {}
    for beam in (1, 5):
        hypotheses = model.translate(sources, beam)
        for lowercase in (True, False):
            scores = score(hypotheses, references, target, lowercase, samples=1)
            found[f"{prefix}{part} beam {beam} {'lc' if lowercase else 'cased'}"] = round(scores.bleu, 2)
            if beam == 5:
                found[f"signature {'lc' if lowercase else 'cased'}"] = scores.bleu_signature
    return found


def settings(asked: argparse.Namespace) -> list[str]:
    """In what a run differs from the recipe that its direction has."""
    return [*([f"recipe={asked.recipe.name}"] if asked.recipe else []), *asked.set]


def done(results: Path, run: dict[str, Any], test: bool) -> bool:
    """Whether the run is scored already; a test set is scored once. Another run of that name is refused."""
    if not results.exists():
        return False
    rows = [row for line in results.read_text(encoding="utf-8").splitlines() for row in json.loads(line)["rows"]]
    same = [row for row in rows if row["run"] == run["run"]]
    if any(row[key] != run[key] for row in same for key in ("threads", "settings")):
        raise SystemExit(f"{run['run']} stands in {results} with other threads or settings; give this one a --name")
    return any(not test or any("test_2016" in key for key in row) for row in same)


if __name__ == "__main__":
    main()

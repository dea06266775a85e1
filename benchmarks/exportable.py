"""What it costs a masked language model to have BERT's own form, which can be exported: equal steps, several seeds.

    python benchmarks/exportable.py                     # pre-norm, the default, and post-norm as in BERT; two seeds
    python benchmarks/exportable.py --place post --seed 3

The text is 40,000 English sentences of the project's grammar, which are learned within minutes; 1,000 of the grammar's
validation part are scored. Everything but ``model.norm_place`` is the default, but that a document is a line. What the
positions of a language model cost, the other field in the way of an export, ``positions.py`` measures. A stopped run
resumes when the same command is given again, and a run with a result is not repeated. Lines
are appended to ``results/exportable.jsonl``, or to ``--results FILE``.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import machine
from writing import curve

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "exportable.jsonl"
PLACES = ("pre", "post")
STEPS = 500
SENTENCES = {"train": 40_000, "valid": 1_000}


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--place", choices=PLACES, action="append", help="default: both")
    parser.add_argument("--seed", type=int, action="append", help="default: 1 and 2")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--work", type=Path, default=HERE.parent / ".bench" / "exportable")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


def main() -> None:
    """Each run that has no result yet."""
    asked = options()
    asked.work.mkdir(parents=True, exist_ok=True)
    for seed in asked.seed or (1, 2):
        for place in asked.place or PLACES:
            measure(asked, place, seed)


def measure(asked: argparse.Namespace, place: str, seed: int) -> None:
    """Train one model and append its validation loss, in nats a masked piece."""
    import regard
    from regard.training.reporters import LineReporter

    run = f"masked words {place}-norm {seed} {asked.steps}"
    if asked.results.exists() and f'"run": "{run}"' in asked.results.read_text(encoding="utf-8"):
        print(f"{run} stands in {asked.results} already")
        return
    begun = {"benchmark": "exportable", "name": run, "date": machine.now()}
    begun |= {"commit": machine.commit(), "machine": machine.describe()}
    texts = sentences(asked.work)
    folder = asked.work / run.replace(" ", "-")
    regard.train(
        task="masked-lm",
        train=texts["train"],
        valid=texts["valid"],
        output=folder,
        settings=[f"model.norm_place={place}", "data.documents=line"],
        steps=asked.steps,
        seed=seed,
        threads=asked.threads,
        reporter=LineReporter(sys.stderr),
    )
    found = curve(folder)
    row = {"run": run, "norm place": place, "seed": seed, "threads": asked.threads}
    row |= {key: found[key] for key in ("parameters", "steps", "validation loss", "curve")}
    machine.append(asked.results, {**begun, "rows": [row]})
    print(json.dumps(row, indent=1))


def sentences(work: Path) -> dict[str, Path]:
    """The files of both parts, a sentence a line."""
    from regard.runs.demo.grammar.corpus import corpus

    made = corpus(SENTENCES["train"], SENTENCES["valid"], 10)
    paths = {part: work / f"{part}.txt" for part in SENTENCES}
    for part, path in paths.items():
        path.write_text("".join(f"{pair.source}\n" for pair in getattr(made, part)), encoding="utf-8", newline="")
    return paths


if __name__ == "__main__":
    main()

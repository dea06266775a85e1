"""The paper's own system on a larger set, beside today's recipe: Tatoeba, 160,000 English-German pairs.

    python benchmarks/tatoeba.py --test        # both systems: an hour or two of one core

Both have the same sizes and vocabulary and the same steps of 1,024 target tokens, one thread and one seed. The paper's
is ``recipes/multi30k/paper-en-de.toml`` with its highest rate, of which the last five checkpoints are averaged; today's
is ``en-de.toml`` beside it: pre-norm, a cosine, the best checkpoint. The test part is scored once. A run that was
stopped resumes when the same command is given again; lines are appended to ``results/tatoeba.jsonl``, or to
``--results FILE``.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import command
import machine
from command import data_file, whole_number
from corpus import DATA
from multi30k import course
from table3 import LAST, device, losses, refuse_gpu, settings_of_steps

from regard.text.lines import lines

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "tatoeba.jsonl"
STEPS = 5000
RECIPES = HERE.parent / "recipes" / "multi30k"
SETTINGS = (f"training.steps={STEPS}", "text.vocabulary=8000", "decoding.length_penalty=1.0")
"""Of both; captions are longer than these sentences, and want another length penalty."""
SYSTEMS: dict[str, tuple[Path, tuple[str, ...]]] = {
    "paper": (RECIPES / "paper-en-de.toml", settings_of_steps(RECIPES / "paper-en-de.toml", STEPS)),
    "today": (RECIPES / "en-de.toml", ()),
}


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--system", choices=list(SYSTEMS), action="append", help="default: both")
    parser.add_argument("--seed", type=whole_number, default=1)
    parser.add_argument("--test", action="store_true", help="also score the test part, once")
    parser.add_argument("--set", action="append", default=[], help="section.key=value, for both systems")
    parser.add_argument("--work", type=Path, default=HERE.parent / ".bench" / "tatoeba")
    parser.add_argument("--results", type=Path, default=RESULTS)
    asked = parser.parse_args()
    if asked.set and (asked.results == RESULTS or asked.work == parser.get_default("work")):
        parser.error("--set makes other runs than those of the results; name another --results and another --work")
    return asked


def main() -> None:
    """Every system that has no result yet."""
    asked = options()
    refuse_gpu(asked.results, RESULTS)
    parts = {part: sides(asked.work, part) for part in ("train", "val", "test")}
    for system in asked.system or SYSTEMS:
        run = f"{system} {STEPS} {asked.seed}"
        if not done(asked.results, run, asked.test):
            measure(asked, system, run, parts)


def sides(work: Path, part: str) -> tuple[Path, Path]:
    """The two sides of a part as files."""
    rows = list(lines(data_file(DATA / "tatoeba" / f"{part}.en-de.tsv.gz")))
    found = []
    work.mkdir(parents=True, exist_ok=True)
    for place, language in enumerate(("en", "de")):
        path = work / f"{part}.{language}"
        path.write_text("".join(row.split("\t")[place] + "\n" for row in rows), encoding="utf-8", newline="")
        found.append(path)
    return found[0], found[1]


def measure(asked: argparse.Namespace, system: str, run: str, parts: dict[str, tuple[Path, Path]]) -> None:
    """One system, appended."""
    import regard
    from regard.runs.average import average
    from regard.training.reporters import LineReporter

    recipe, own = SYSTEMS[system]
    begun = {"benchmark": "tatoeba", "name": run, "date": machine.now()}
    begun |= {"commit": machine.commit(), "machine": machine.describe(device())}
    folder = asked.work / run.replace(" ", "-")
    model: Any = regard.train(
        *parts["train"],
        folder,
        valid_source=parts["val"][0],
        valid_target=parts["val"][1],
        recipe=recipe,
        settings=(*SETTINGS, *own, *asked.set),
        seed=asked.seed,
        threads=1,
        reporter=LineReporter(sys.stderr),
    )
    if system == "paper":
        model = average(folder, folder.with_name(f"{folder.name}-mean"), LAST)
    row = {
        "run": run,
        "system": system,
        "seed": asked.seed,
        "settings": " ".join((*own, *asked.set)),
        **course(folder),
        **losses(folder),
    }
    for part in ("val", "test") if asked.test else ("val",):
        row |= scored(model, part, *parts[part])
    machine.append(asked.results, {**begun, "rows": [row]})
    print(json.dumps(row, indent=1), flush=True)


def scored(model: Any, part: str, source: Path, target: Path) -> dict[str, Any]:
    """BLEU of beam 5 and of greedy search, with regard to case."""
    from regard.tasks.metrics.bleu import score

    sources, references = (path.read_text(encoding="utf-8").splitlines() for path in (source, target))
    found: dict[str, Any] = {}
    for beam in (1, 5):
        scores = score(model.translate(sources, beam), references, "de", False, samples=1)
        found[f"{part} beam {beam}"] = round(scores.bleu, 2)
    return found | {"signature": scores.bleu_signature}


def done(results: Path, run: str, test: bool) -> bool:
    """Whether a run stands in the results; a test part is scored once."""
    return any(row["run"] == run and ("test beam 5" in row or not test) for row in machine.rows_in(results))


if __name__ == "__main__":
    command.run(main)

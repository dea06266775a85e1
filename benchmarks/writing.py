"""Quality of language models in so many wall minutes, with the curve of their loss.

    python benchmarks/writing.py --minutes 30 --threads 2                       # tiny Shakespeare by characters
    python benchmarks/writing.py --text sentences --minutes 30 --threads 1      # masked words, to be begun from

Of Shakespeare the first 90 % are learned from, the last 10 % validated on, as nanoGPT has it. The sentences are the
English side of Tatoeba's pairs, each once, War and Peace, and Debian's descriptions; 1,000 are split off. A run that
was stopped goes on when the same command is given again. Lines are appended to ``results/writing.jsonl``, or to
``--results FILE``.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import math
import sys
import time
from pathlib import Path
from typing import Any

import machine
from corpus import DATA

HERE = Path(__file__).resolve().parent
RECIPES = HERE.parent / "recipes"
RESULTS = HERE / "results" / "writing.jsonl"
TEXTS = {
    "shakespeare": ("language-model", RECIPES / "writing" / "tinyshakespeare.toml"),
    "sentences": ("masked-lm", RECIPES / "reading" / "sentences.toml"),
}
SHARE = 0.9


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", choices=list(TEXTS), default="shakespeare")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--setting", action="append", default=[], help="section.key=value, as regard train has it")
    parser.add_argument("--name", default="recipe", help="what this run tries")
    parser.add_argument("--work", type=Path, default=HERE.parent / ".bench" / "writing")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


def main() -> None:
    """Train, read the curve, append."""
    asked = options()
    task, recipe = TEXTS[asked.text]
    run = f"{asked.text} {asked.name} {asked.seed} {asked.minutes:g}"
    row: dict[str, Any] = {"run": run, "threads": asked.threads, "settings": " ".join(asked.setting)}
    if asked.results.exists() and f'"run": "{run}"' in asked.results.read_text(encoding="utf-8"):
        print(f"{run} stands in {asked.results} already")
        return
    begun = {"benchmark": "writing", "name": run, "date": machine.now()}
    begun |= {"commit": machine.commit(), "machine": machine.describe()}
    import regard
    from regard.training.reporters import LineReporter

    asked.work.mkdir(parents=True, exist_ok=True)
    train, valid = halves(asked.work) if asked.text == "shakespeare" else (sentences(asked.work), None)
    output = asked.work / run.replace(" ", "-")
    began, fresh = time.monotonic(), not output.exists()
    regard.train(
        task=task,
        train=train,
        valid=valid,
        output=output,
        recipe=recipe,
        settings=asked.setting,
        minutes=asked.minutes,
        seed=asked.seed,
        threads=asked.threads,
        reporter=LineReporter(sys.stderr),
    )
    row |= curve(output)
    if fresh:
        row |= {"whole minutes": round((time.monotonic() - began) / 60, 1)}
    machine.append(asked.results, {**begun, "rows": [row]})
    print(json.dumps(row, indent=1))


def halves(work: Path) -> tuple[Path, Path]:
    """The two parts of the text as files."""
    text = gzip.decompress((DATA / "lm-tinyshakespeare" / "input.txt.gz").read_bytes()).decode()
    cut = int(len(text) * SHARE)
    for name, part in (("train.txt", text[:cut]), ("valid.txt", text[cut:])):
        (work / name).write_text(part, encoding="utf-8", newline="")
    return work / "train.txt", work / "valid.txt"


def sentences(work: Path) -> Path:
    """Plain text of several kinds as one file, a sentence or a paragraph a line, each of Tatoeba's once."""
    pairs = [DATA / "tatoeba" / f"train.en-{language}.tsv.gz" for language in ("de", "fr")]
    said = [line.split("\t")[0] for path in pairs for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
    long = ("lm-warpeace/warpeace.txt.xz", "lm-debian-en/descriptions.en.txt.xz")
    told = [line for name in long for line in lzma.decompress((DATA / name).read_bytes()).decode().splitlines()]
    path = work / "sentences.txt"
    path.write_text("\n".join([*dict.fromkeys(said), *told]) + "\n", encoding="utf-8", newline="")
    return path


def curve(folder: Path) -> dict[str, Any]:
    """How fast the run went, and its validation loss in nats a character or hidden piece, on the way too."""
    lines = (folder / "training" / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    entries = [json.loads(line) for line in lines]
    steps = [entry for entry in entries if entry["kind"] == "step"]
    valid = [entry for entry in entries if entry["kind"] == "valid"]
    seconds = steps[-1]["seconds"]
    found: dict[str, Any] = {
        "parameters": next(entry["parameters"] for entry in entries if entry["kind"] == "start"),
        "steps": len(steps),
        "tokens/s": round(sum(step["tokens"] for step in steps) / seconds),
        "train minutes": round(seconds / 60, 2),
        "validation loss": round(min(entry["loss"] for entry in valid), 4),
    }
    for share in (0.1, 0.25, 0.5):
        near = min(valid, key=lambda entry: abs(entry["seconds"] - share * seconds))
        found[f"loss after {near['seconds'] / 60:.1f} minutes"] = round(near["loss"], 4)
    found["curve"] = [[round(entry["seconds"] / 60, 2), round(entry["loss"], 4)] for entry in valid]
    found["bits"] = round(found["validation loss"] / math.log(2), 4)
    return found


if __name__ == "__main__":
    main()

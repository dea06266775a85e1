"""Quality of language models in so many wall minutes, with the curve of their loss.

    python benchmarks/writing.py --minutes 30 --threads 2                       # tiny Shakespeare by characters
    python benchmarks/writing.py --text sentences --minutes 30 --threads 1      # masked words, to be begun from

Of Shakespeare the first 90 % are learned from, the last 10 % validated on, as nanoGPT has it. The sentences are the
English side of Tatoeba's pairs, each once, War and Peace, and Debian's descriptions; 1,000 are split off. A run that
was stopped goes on when the same command is given again. Lines are appended to ``results/writing.jsonl``, or to
``--results FILE``.
"""

from __future__ import annotations

import gzip
import lzma
import math
from pathlib import Path

import command
import machine
import quality
from command import HERE
from corpus import DATA
from quality import Row, entries

RECIPES = HERE.parent / "recipes"
TEXTS = {
    "shakespeare": ("language-model", RECIPES / "writing" / "tinyshakespeare.toml"),
    "sentences": ("masked-lm", RECIPES / "reading" / "sentences.toml"),
}
SHARE = 0.9


def main() -> None:
    """Train, read the curve, append."""
    made = quality.parser(__doc__, "writing", 30)
    made.add_argument("--text", choices=list(TEXTS), default="shakespeare")
    asked = made.parse_args()
    task, recipe = TEXTS[asked.text]
    run = f"{asked.text} {asked.name} {asked.seed} {asked.minutes:g}"
    row: Row = {"run": run, "threads": asked.threads, "settings": " ".join(asked.settings)}
    if quality.done(asked.results, row, False):
        return
    begun = machine.begun("writing", name=run)
    asked.work.mkdir(parents=True, exist_ok=True)
    train, valid = halves(asked.work) if asked.text == "shakespeare" else (sentences(asked.work), None)
    files = {"task": task, "train": train, "valid": valid, "recipe": recipe}
    _, folder = quality.trained(asked, row, **files, settings=asked.settings)
    row |= curve(folder)
    machine.append(asked.results, begun, [row])


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


def curve(folder: Path) -> Row:
    """How fast the run went, and its validation loss in nats a character or hidden piece, on the way too."""
    log = entries(folder)
    steps, valid = log["step"], log["valid"]
    seconds, loss = steps[-1]["seconds"], round(min(entry["loss"] for entry in valid), 4)
    found: Row = {
        "parameters": log["start"][0]["parameters"],
        "steps": len(steps),
        "tokens/s": round(sum(step["tokens"] for step in steps) / seconds),
        "train minutes": round(seconds / 60, 2),
        "validation loss": loss,
    }
    for share in (0.1, 0.25, 0.5):
        near = min(valid, key=lambda entry: abs(entry["seconds"] - share * seconds))
        found[f"loss after {near['seconds'] / 60:.1f} minutes"] = round(near["loss"], 4)
    found["curve"] = [[round(entry["seconds"] / 60, 2), round(entry["loss"], 4)] for entry in valid]
    return found | {"bits": round(loss / math.log(2), 4)}


if __name__ == "__main__":
    command.run(main)

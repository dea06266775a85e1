"""Quality of text-to-text models, several tasks in each, trained from nothing, test sets scored once.

    python benchmarks/text_to_text.py --set strings --seed 1 --test     # reversing and sorting letters
    python benchmarks/text_to_text.py --set grammar --seed 1 --test     # the demonstration's grammar, both ways
    python benchmarks/text_to_text.py --set trec --seed 1 --test        # the type of a question as a word

The strings are drawn by a seed that is not the run's, each once in all parts, of 1 to 20 letters. The grammar's test
sentences have combinations that no training sentence has. Of TREC's training part a seeded tenth is validated on. What
is chosen is chosen on the validation part. A run that was stopped goes on when the same command is given again; one
that is finished and scored is not scored again. Lines are appended to ``results/text_to_text.jsonl``, or to
``--results FILE``.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import string
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import command
import machine
from command import data_file, positive_number, whole_number
from corpus import DATA
from reading import course, done

HERE = Path(__file__).resolve().parent
RECIPES = HERE.parent / "recipes" / "answering"
RESULTS = HERE / "results" / "text_to_text.jsonl"
Row = tuple[str, str, str]
"""Prefix, source and target."""
STRINGS = {"train": 40_000, "valid": 500, "test": 1_000}
"""Strings of each part, each of which is reversed and sorted."""
LONGEST = 20
PAIRS = {"train": 60_000, "valid": 500, "test": 1_000}
"""Sentence pairs of each part, each of which is translated both ways."""
AMBIGUOUS = "their"
"""Left out of them: German says *ihr* for *their* and for *her*, so that nothing tells which English has."""
KINDS = {
    "ABBR": "abbreviation",
    "DESC": "description",
    "ENTY": "entity",
    "HUM": "human",
    "LOC": "location",
    "NUM": "number",
}
"""TREC's labels as words."""


def strings(parts: dict[str, int] = STRINGS, seed: int = 1) -> dict[str, list[Row]]:
    """Letters to be reversed and sorted; no string occurs twice, so those of a test are unseen."""
    draw, seen = random.Random(seed), set[str]()

    def fresh() -> str:
        while (text := "".join(draw.choices(string.ascii_lowercase, k=draw.randint(1, LONGEST)))) in seen:
            pass
        seen.add(text)
        return text

    found = {}
    for part in ("test", "valid", "train"):  # so that there are short ones in each
        drawn = [fresh() for _ in range(parts[part])]
        found[part] = [
            row for text in drawn for row in (("reverse", text, text[::-1]), ("sort", text, "".join(sorted(text))))
        ]
    return found


def grammar(parts: dict[str, int] = PAIRS, seed: int = 1) -> dict[str, list[Row]]:
    """Sentences of the demonstration's grammar without *their*, from English and from German."""
    from regard.runs.demo.grammar import generate, words_of

    found = {}
    for part, count in parts.items():
        drawn: Any = generate(part, 2 * count, seed)
        pairs = [pair for pair in drawn if AMBIGUOUS not in words_of(pair.source.lower())][:count]
        found[part] = [
            row
            for pair in pairs
            for row in (
                ("translate English to German", pair.source, pair.target),
                ("translate German to English", pair.target, pair.source),
            )
        ]
    return found


def trec() -> dict[str, list[Row]]:
    """Questions and their types; there is no validation part."""
    return {part: list(_questions(DATA / "cls-trec" / f"{part}.txt.gz")) for part in ("train", "test")}


def _questions(path: Path) -> Iterator[Row]:
    for line in gzip.decompress(data_file(path).read_bytes()).decode("latin-1").splitlines():
        label, _, text = line.partition(" ")
        yield "type of question", text, KINDS[label.partition(":")[0]]


SETS: dict[str, Callable[[], dict[str, list[Row]]]] = {"strings": strings, "grammar": grammar, "trec": trec}


def write(path: Path, rows: Iterable[Row]) -> Path:
    """The rows as a table with a header."""
    lines = ["\t".join(row) for row in (("prefix", "source", "target"), *rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
    return path


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=list(SETS), required=True)
    parser.add_argument("--seed", type=whole_number, default=1)
    parser.add_argument("--from", dest="start_from", type=Path, default=None, help="a model folder to begin from")
    parser.add_argument("--minutes", type=float, default=None)
    parser.add_argument("--threads", type=positive_number, default=1)
    parser.add_argument("--setting", action="append", default=[], help="section.key=value, as regard train has it")
    parser.add_argument("--name", default="recipe", help="what this run tries")
    parser.add_argument("--test", action="store_true", help="also score the test set: for final runs only")
    parser.add_argument("--work", type=Path, default=HERE.parent / ".bench" / "text_to_text")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


def main() -> None:
    """Make the data, train, score, append."""
    asked = options()
    run = f"{asked.set} {asked.name} {asked.seed}"
    row: dict[str, Any] = {"run": run, "set": asked.set, "name": asked.name, "seed": asked.seed}
    row |= {"threads": asked.threads, "settings": " ".join(asked.setting)}
    machine.sessions_in(asked.results)  # raises where it is no file of results
    if done(asked.results, row, asked.test):
        print(f"{run} stands in {asked.results} already")
        return
    begun = {"benchmark": "text_to_text", "name": run, "date": machine.now()}
    begun |= {"commit": machine.commit(), "machine": machine.describe()}
    import regard
    from regard.tasks.translation.text_to_text.corpus import open_prefixed
    from regard.training.reporters import LineReporter

    asked.work.mkdir(parents=True, exist_ok=True)
    files = {part: write(asked.work / f"{asked.set}.{part}.tsv", rows) for part, rows in SETS[asked.set]().items()}
    output = asked.work / run.replace(" ", "-")
    began, fresh = time.monotonic(), not output.exists()
    model: Any = regard.train(
        task="text-to-text",
        train=files["train"],
        valid=files.get("valid"),
        start_from=asked.start_from,
        output=output,
        recipe=None if asked.start_from else RECIPES / f"{asked.set}.toml",
        settings=asked.setting,
        minutes=asked.minutes,
        seed=asked.seed,
        threads=asked.threads,
        reporter=LineReporter(sys.stderr),
    )
    row |= course(output, "exact")
    if fresh:
        row |= {"whole minutes": round((time.monotonic() - began) / 60, 1)}
    if asked.test:
        row |= scored(model.evaluate(open_prefixed(files["test"])).to_dict())
    machine.append(asked.results, {**begun, "rows": [row]})
    print(json.dumps(row, indent=1))


def scored(found: dict[str, Any]) -> dict[str, Any]:
    """The scores on the test set, of each prefix too."""
    row = {f"test {name}": round(found[name], 2) for name in ("exact", "bleu", "rouge")} | {"texts": found["texts"]}
    return row | {f"test exact, {prefix}": round(one["exact"], 2) for prefix, one in found["prefixes"].items()}


if __name__ == "__main__":
    command.run(main)

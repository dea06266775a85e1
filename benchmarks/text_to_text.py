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

import gzip
import random
import string
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import command
import machine
import quality
from command import HERE, data_file
from corpus import DATA
from reading import course

RECIPES = HERE.parent / "recipes" / "answering"
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


def main() -> None:
    """Make the data, train, score, append."""
    made = quality.parser(__doc__, "text_to_text")
    made.add_argument("--set", choices=list(SETS), required=True)
    made.add_argument("--from", dest="start_from", type=Path, default=None, help="a model folder to begin from")
    asked = made.parse_args()
    row: dict[str, Any] = {"run": f"{asked.set} {asked.name} {asked.seed}", "set": asked.set, "name": asked.name}
    row |= {"seed": asked.seed, "threads": asked.threads, "settings": " ".join(asked.settings)}
    if quality.done(asked.results, row, asked.test):
        return
    begun = machine.begun("text_to_text", name=row["run"])
    from regard.tasks.translation.text_to_text.corpus import open_prefixed

    asked.work.mkdir(parents=True, exist_ok=True)
    files = {part: write(asked.work / f"{asked.set}.{part}.tsv", rows) for part, rows in SETS[asked.set]().items()}
    model, folder = quality.trained(
        asked,
        row,
        task="text-to-text",
        train=files["train"],
        valid=files.get("valid"),
        start_from=asked.start_from,
        recipe=None if asked.start_from else RECIPES / f"{asked.set}.toml",
        settings=asked.settings,
    )
    row |= course(folder, "exact")
    if asked.test:
        row |= scored(model.evaluate(open_prefixed(files["test"])).to_dict())
    machine.append(asked.results, begun, [row])


def scored(found: dict[str, Any]) -> dict[str, Any]:
    """The scores on the test set, of each prefix too."""
    row = {f"test {name}": round(found[name], 2) for name in ("exact", "bleu", "rouge")} | {"texts": found["texts"]}
    return row | {f"test exact, {prefix}": round(one["exact"], 2) for prefix, one in found["prefixes"].items()}


if __name__ == "__main__":
    command.run(main)

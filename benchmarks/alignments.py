"""How far word alignments are from gold ones: those of the grammar, or of a hundred sentences that were made by hand.

    python benchmarks/alignments.py MODEL ... --choose train.en train.de
    python benchmarks/alignments.py MODEL ... --choose train.en train.de --gold GOLD --texts val.en val.de

The grammar's are of the test sentences that the demonstration has with seed 1; beside them stand BLEU and the share of
translations that are equal to the reference. GOLD has the number of a line, a tab, and links:
``tests/fixtures/alignments`` has those of Multi30k, whose texts ``--texts`` names. Of a model with a guided head the
links are of this head; of others, of those that ``--choose`` chooses, without gold, by the pairs of two files.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import command

from regard.data.alignment.links import Links, alignment_error_rate, read_gold
from regard.tasks.translation.align import choose_heads, is_known
from regard.text.lines import lines

Gold = dict[int, tuple[Links, Links]]
"""Sure and possible links by line number, from 1."""
Row = dict[str, Any]


def read(path: Path) -> Gold:
    """The links of a file."""
    rows = [line.split("\t") for line in lines(path) if not line.startswith("#")]
    return {int(number): read_gold(links, f"{path}: {number}") for number, links in rows}


def error_rate(task: Any, texts: list[list[str]], gold: Gold) -> float:
    """Of the sentences that have gold, in percent."""
    some = [[side[number - 1] for number in gold] for side in texts]
    return round(100 * alignment_error_rate(task.align(*some), list(gold.values())), 2)


def of_grammar() -> tuple[list[list[str]], Gold]:
    """The test sentences of the demonstration, whose links are all sure."""
    from regard.runs.demo.grammar.corpus import corpus
    from regard.runs.demo.translation import TEST, TRAIN, VALID

    pairs = corpus(TRAIN, VALID, TEST).test
    gold = {number: (frozenset(pair.alignment),) * 2 for number, pair in enumerate(pairs, 1)}
    return [[pair.source for pair in pairs], [pair.target for pair in pairs]], gold


def aligned(task: Any, texts: list[list[str]], gold: Gold, chosen_by: list[list[str]]) -> Row:
    """Error rates of the usual heads, and of those that training guided or ``chosen_by`` shows."""
    begun = time.process_time()
    if is_known(task.recipe) or not chosen_by:
        heads = task.recipe.decoding.alignment_heads or "guided or usual"
        return {"heads": heads, "AER": error_rate(task, texts, gold)}
    chosen, agreement, _ = choose_heads(task, *chosen_by)
    row: Row = {"heads": list(map(str, chosen)), "agreement": round(agreement, 4), "pairs": len(chosen_by[0])}
    row["seconds of choice"] = round(time.process_time() - begun, 1)
    better = task.with_settings([f"decoding.alignment_heads={json.dumps(row['heads'])}"])
    return row | {"usual AER": error_rate(task, texts, gold), "AER": error_rate(better, texts, gold)}


def main() -> None:
    """Align, translate, print."""
    import regard
    from regard.tasks.metrics.bleu import score

    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("model", type=Path, nargs="+")
    made.add_argument("--gold", type=Path)
    made.add_argument("--first", type=command.positive_number, help="lines of --choose; default: all")
    for name in ("--texts", "--choose"):
        made.add_argument(name, type=Path, nargs=2, default=(), metavar=("SOURCE", "TARGET"))
    asked = made.parse_args()
    if bool(asked.gold) != bool(asked.texts):
        made.error("--gold and --texts go together")
    texts, gold = ([list(lines(path)) for path in asked.texts], read(asked.gold)) if asked.gold else of_grammar()
    chosen_by = [list(lines(path))[: asked.first] for path in asked.choose]
    for folder in asked.model:
        task: Any = regard.load(folder, "cpu")
        row = {"model": folder.name} | aligned(task, texts, gold, chosen_by)
        said = task.translate(texts[0])
        row["BLEU"] = round(score(said, texts[1], task.recipe.text.target_language).bleu, 2)
        row["exact"] = round(sum(map(str.__eq__, said, texts[1])) / len(said), 4)
        print(json.dumps(row, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    command.run(main)

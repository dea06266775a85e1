"""Kinds of positions compared: a language model and a translator, equal steps and tokens, several seeds.

    python benchmarks/positions.py                      # every kind, both texts, two seeds; one after the other
    python benchmarks/positions.py --text shakespeare --kind rotary --seed 3

The language model reads tiny Shakespeare by characters and is scored by its validation loss; the translator reads
Multi30k from English to German and is scored by BLEU on the validation pairs. Recipes, steps and batches are the same
for every kind: 10 minutes' worth of steps on one idle core. Only validation data is scored. A stopped run resumes when
the same command is given again, and a run with a result is not repeated. Lines are appended to
``results/positions.jsonl``, or to ``--results FILE``.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import machine
from corpus import data_folder
from writing import curve, halves

HERE = Path(__file__).resolve().parent
RECIPES = HERE.parent / "recipes"
RESULTS = HERE / "results" / "positions.jsonl"
KINDS = ("learned", "sinusoidal", "relative", "rotary", "alibi")
STEPS = {"shakespeare": 3600, "multi30k": 4000}


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", choices=list(STEPS), action="append", help="default: both")
    parser.add_argument("--kind", choices=KINDS, action="append", help="default: all")
    parser.add_argument("--seed", type=int, action="append", help="default: 1 and 2")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--work", type=Path, default=HERE.parent / ".bench" / "positions")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


def main() -> None:
    """Each run that has no result yet, one seed of everything before the next."""
    asked = options()
    for seed in asked.seed or (1, 2):
        for text in asked.text or STEPS:
            for kind in asked.kind or KINDS:
                measure(asked, text, kind, seed)


def measure(asked: argparse.Namespace, text: str, kind: str, seed: int) -> None:
    """Train one model, score it on validation data, append."""
    run = f"{text} {kind} {seed}"
    if asked.results.exists() and f'"run": "{run}"' in asked.results.read_text(encoding="utf-8"):
        print(f"{run} stands in {asked.results} already")
        return
    begun = {"benchmark": "positions", "name": run, "date": machine.now()}
    begun |= {"commit": machine.commit(), "machine": machine.describe()}
    row: dict[str, Any] = {"run": run, "text": text, "positions": kind, "seed": seed, "threads": asked.threads}
    asked.work.mkdir(parents=True, exist_ok=True)
    folder = asked.work / run.replace(" ", "-")
    row |= (written if text == "shakespeare" else translated)(asked, folder, kind, seed)
    machine.append(asked.results, {**begun, "rows": [row]})
    print(json.dumps(row, indent=1))


def written(asked: argparse.Namespace, folder: Path, kind: str, seed: int) -> dict[str, Any]:
    """Validation loss of a language model after the last step, in nats a character."""
    train, valid = halves(asked.work)
    trained(asked, folder, "shakespeare", kind, seed, task="language-model", train=train, valid=valid)
    found = curve(folder)
    return {key: found[key] for key in ("parameters", "steps", "validation loss")}


def translated(asked: argparse.Namespace, folder: Path, kind: str, seed: int) -> dict[str, Any]:
    """BLEU and chrF of a translator on the validation pairs, as its recipe decodes them."""
    from regard.text.lines import lines

    data = data_folder()
    files = {"source": "train.en", "target": "train.de", "valid_source": "val.en", "valid_target": "val.de"}
    given = {key: data / f"{name}.gz" for key, name in files.items()}
    model = trained(asked, folder, "multi30k", kind, seed, **given)
    found = curve(folder)
    scores = model.evaluate(list(lines(given["valid_source"])), list(lines(given["valid_target"])))
    return {key: found[key] for key in ("parameters", "steps", "validation loss")} | {
        "bleu": round(scores.bleu, 2),
        "chrf": round(scores.chrf, 2),
        "signature": scores.bleu_signature,
    }


def trained(asked: argparse.Namespace, folder: Path, text: str, kind: str, seed: int, **given: Any) -> Any:
    """The text's recipe with this kind of positions, trained for so many steps."""
    import regard
    from regard.training.reporters import LineReporter

    recipe = {"shakespeare": "writing/tinyshakespeare.toml", "multi30k": "multi30k/en-de.toml"}[text]
    return regard.train(
        output=folder,
        recipe=RECIPES / recipe,
        settings=[f"model.positions={kind}"],
        steps=STEPS[text],
        seed=seed,
        threads=asked.threads,
        reporter=LineReporter(sys.stderr),
        **given,
    )


if __name__ == "__main__":
    main()

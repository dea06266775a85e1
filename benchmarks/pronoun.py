"""Which head of the demonstration's model resolves the pronoun, how sure, and what happens when it is switched off.

    regard demo
    python benchmarks/pronoun.py demo

Over 1,000 sentences of the grammar's held-out part in which *it* may mean either of two nouns of different German
gender. The head is chosen on the validation part, as the demonstration chooses it; then every head of the same kind is
switched off in turn, in search, and the sentences are translated anew. One line is appended to
``results/pronoun.jsonl``, or to ``--results FILE``; its rows are printed, and stand in ``docs/reading-attention.md``.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import command
import machine
from command import positive_number, whole_number

TITLE = "The pronoun's head in the demonstration's model, and every head switched off in turn"
KINDS = ("cross", "encoder")
LOOKS = ("antecedent", "rival", "chance", "prefers antecedent", "above nine tenths")
DRAWN = 4_500
"""Test sentences that are generated at most to find so many with a pronoun that tells."""


def main() -> None:
    """Measure, append, print."""
    parser = command.parser(__doc__, "pronoun")
    parser.add_argument("demo", type=Path, help="what regard demo made")
    parser.add_argument("--seed", type=whole_number, default=1, help="of the demonstration")
    parser.add_argument("--sentences", type=positive_number, default=1_000)
    asked = parser.parse_args()
    begun = machine.begun("pronoun", name=TITLE)
    from regard.runs.demo.grammar import corpus
    from regard.runs.demo.translation import TRAIN, VALID
    from regard.tasks.model_folder import load

    machine.sessions_in(asked.results)  # raises where it is no file of results
    model = load(asked.demo / "model")
    made = corpus(TRAIN, VALID, DRAWN, asked.seed)
    pairs = [pair for pair in made.test if pair.pronoun and pair.pronoun.decides][: asked.sentences]
    if len(pairs) < asked.sentences:
        raise SystemExit(f"only {len(pairs):,} such sentences are among {DRAWN:,}")
    row: dict[str, Any] = {"sentences": len(pairs)}
    row["intact"] = said(model, pairs, ())
    valid = [pair for pair in made.valid if pair.pronoun]
    for kind in KINDS:
        row[kind] = measured(model, valid, pairs, kind)
    machine.append(asked.results, begun, table(row))


def measured(model: Any, valid: list[Any], pairs: list[Any], kind: str) -> dict[str, Any]:
    """The head of one kind that finds the antecedent, and what each head's absence does."""
    from regard.models.ablation import Head
    from regard.runs.demo.ablation_study import head_shares, pronoun_attention

    best = pronoun_attention(model, valid, pairs, kind)
    noun, adjective = head_shares(model, pairs, kind), head_shares(model, [to_adjective(pair) for pair in pairs], kind)
    shares = noun[best.layer - 1, best.head - 1]
    layers, count = model.recipe.model.attention[kind]
    return {
        "layer": best.layer,
        "head": best.head,
        "antecedent": best.test.antecedent,
        "rival": best.test.rival,
        "chance": best.test.chance,
        "prefers antecedent": sum(one.antecedent > one.rival for one in shares),
        "above nine tenths": sum(one.antecedent > 0.9 for one in shares),
        "off": [
            {
                "layer": layer,
                "head": head,
                **said(model, pairs, (Head(kind, layer, head),)),
                "noun": mean(noun[layer - 1, head - 1]),
                "adjective": mean(adjective[layer - 1, head - 1]),
            }
            for layer in range(1, layers + 1)
            for head in range(1, count + 1)
        ],
    }


def to_adjective(pair: Any) -> Any:
    """The same pair, as if the pronoun stood for the adjective, which ends the sentence: to ask who looks there."""
    from regard.runs.demo.grammar.corpus import words_of

    last = len(words_of(pair.source)) - 1
    return replace(pair, pronoun=replace(pair.pronoun, antecedent_words=(last,)))


def mean(shares: list[Any]) -> float:
    """How much of the pronoun's attention is on what it stands for."""
    return sum(one.antecedent for one in shares) / len(shares)


def said(model: Any, pairs: list[Any], off: tuple[Any, ...]) -> dict[str, Any]:
    """How many sentences come out, and their pronouns, with these heads switched off."""
    from regard.models.ablation import Ablations
    from regard.runs.demo.grammar.scores import exact_match, pronoun_accuracy

    with Ablations(off=off).apply(model.recipe.model):
        found = model.translate([pair.source for pair in pairs], beam=1)
    right = pronoun_accuracy(pairs, found)
    return {"exact": exact_match(found, [pair.target for pair in pairs]), "pronouns right": right.correct}


def table(row: dict[str, Any]) -> list[dict[str, Any]]:
    """A line for the model as it is, and one for each head that was switched off."""
    lines = [{"sentences": row["sentences"], "without": "nothing", **row["intact"]}]
    for kind in KINDS:
        found = row[kind]
        for one in found["off"]:
            place = f"{kind} layer {one['layer']} head {one['head']}"
            line = {"sentences": row["sentences"], "without": place, "exact": one["exact"]}
            looks = {f"looks at the {name}": round(100 * one[name], 1) for name in ("noun", "adjective")}
            lines.append({**line, "pronouns right": one["pronouns right"], **looks})
            if (one["layer"], one["head"]) == (found["layer"], found["head"]):
                lines[-1] |= {name: found[name] for name in LOOKS}
    return [{**line, "exact": round(100 * line["exact"], 1)} for line in lines]


if __name__ == "__main__":
    command.run(main)

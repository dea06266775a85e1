"""The page ``docs/without.md``, made of what ``without.py`` measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

from tables import grid, span

Row = dict[str, Any]
PAGE = "without.md"
OPENING = """\
# What each idea is for

The demonstration's model, trained again with one idea of the paper [Vaswani17] taken out: same sentences, as many
steps, starting weights drawn from the same seed. Nothing else was changed or tuned, and the model is
small: two layers on either side, short sentences of a grammar ([the corpus](demo-corpus.md)). What holds here holds
for such a model; a deeper one may need an idea that this one can spare.

    regard demo --without scale      # trains both models, and prints them beside each other
    regard explore demo              # the view *Without*: the same with curves, and the gradient at every step

`python benchmarks/without.py --seed 1 --seed 2 --seed 3` measured, `python benchmarks/report.py` writes this page; no
number is edited by hand. {steps:,} steps of {tokens:,} tokens (the demonstration has 2,048), seeds {seeds}, each
with its own corpus and weights; an entry says the least and the most of the seeds. Outputs are greedy; *exact* are test
sentences equal to the reference, *pronouns* those that stand for one of two nouns of different gender."""
IDEAS = {
    "positions": "Nothing is added to the embeddings, so the encoder cannot tell the order of words [§3.5].",
    "attention": "Every query is zero: all scores are equal, and each head gives the mean of what it sees [§3.2].",
    "scale": "Scores are not divided by √d_k; the weights begin as those of the whole model [§3.2.1].",
    "heads": "Each layer of the decoder has one head with all entries in place of four; the encoder's have one anyway "
    "[§3.2.2].",
    "mask": "While it learns, each target token also sees those behind it, the one that it must predict among them; "
    "when it writes there are none [§3.2.3].",
    "residual": "The output of a sub-layer is not added to what entered it, but replaces it [§3.1].",
    "norm": "Nothing is normalised, neither before a sub-layer nor after the last [§3.1].",
    "feed-forward": "Layers have attention only [§3.3].",
}
SEEN = {
    "positions": "About half of the sentences still come out. In the outputs shown, "
    "adjectives have changed their noun.",
    "attention": "Less than half of the sentences come out, and about half of the pronouns are right.",
    "scale": "Each head looks at one or two tokens from the first step on"
    ", as the entropy of attention says, and most sentences are wrong.",
    "heads": "One head is enough here, but for a few sentences in a hundred.",
    "mask": "The loss is lower than that of the whole model, and not one "
    "sentence comes out: it learned to read the answer.",
    "residual": "Almost nothing is learned. At first hardly any gradient reaches the first layer of the decoder.",
    "norm": "Gradients are several times larger at first. Most sentences "
    "still come out; the model has two layers only.",
    "feed-forward": "With little more than half of the parameters nearly as many sentences come out.",
}
"""What is so for all three seeds, to be read off the tables again when these change."""
WIDEST = 100
"""Characters of an output that are shown."""


def files(sessions: list[dict[str, Any]], measured: str) -> dict[str, str]:
    """The page by its file name; the last line says where and when it was measured."""
    rows = {(row["seed"], row["idea"]): row for session in sessions for row in session["rows"]}
    by_idea = {idea: [row for (_, one), row in sorted(rows.items()) if one == idea] for idea in IDEAS}
    by_idea = {idea: own for idea, own in by_idea.items() if own}
    first = next(iter(rows.values()))
    told = {"steps": first["models"]["whole"]["steps"], "tokens": first["tokens"]}
    lines = [
        OPENING.format(**told, seeds=listed(sorted({seed for seed, _ in rows}))),
        "",
        *grid(list(summary(by_idea))),
    ]
    for idea, own in by_idea.items():
        lines += section(idea, own)
    return {PAGE: "\n".join([*lines, "", measured, ""])}


def listed(seeds: list[int]) -> str:
    """Seeds in words."""
    return " and ".join(filter(None, [", ".join(map(str, seeds[:-1])), str(seeds[-1])]))


def summary(by_idea: dict[str, list[Row]]) -> Iterator[Row]:
    """The whole model, and each without an idea."""
    longest = max(by_idea.values(), key=len)
    yield {"": "the whole model", **scores([row["models"]["whole"] for row in longest])}
    for idea, own in by_idea.items():
        yield {"": f"without {idea}", **scores([row["models"][idea] for row in own])}


def scores(models: list[Row]) -> Row:
    """The least and the most of some models."""
    done = [one for one in models if one["scores"]]
    ended = len(models) - len(done)
    found = {
        "exact, %": of(done, lambda one: round(100 * one["scores"]["exact"], 1)),
        "BLEU": of(done, lambda one: round(one["scores"]["bleu"], 1)),
        "pronouns right, %": of(done, lambda one: round(100 * share(one["scores"]["pronoun"]), 1)),
        "loss, nats a token": of(done, lambda one: round(min(loss for _, loss in one["curve"]), 3)),
        "parameters": f"{models[0]['parameters']:,}",
    }
    return found | ({"ended early": ended} if ended else {})


def of(models: list[Row], value: Callable[[Row], float]) -> Any:
    """A value of each, as a range."""
    return span([value(one) for one in models]) if models else "–"


def share(accuracy: Row) -> float:
    """Right ones among all."""
    return float(accuracy["correct"] / max(accuracy["total"], 1))


def section(idea: str, own: list[Row]) -> list[str]:
    """One idea: what was changed, gradients and attention beside those of the whole model, what it writes."""
    pairs = [(row["models"]["whole"], row["models"][idea]) for row in own]
    lines = ["", f"## Without {idea}", "", f"{IDEAS[idea]} **{SEEN[idea]}**"]
    early = [
        f"seed {row['seed']}: {one['diverged']}" for row, (_, one) in zip(own, pairs, strict=True) if one["diverged"]
    ]
    if early:
        lines += ["", f"The training ended early ({'; '.join(early)})."]
    lines += ["", *grid(list(gradients(pairs))), "", *grid(list(entropies(pairs)))]
    row = own[0]
    lines += ["", f"What the models of seed {row['seed']} write:", ""]
    for source, reference, *written in zip(
        row["sources"], row["references"], *(one["written"] for one in pairs[0]), strict=False
    ):
        lines += [f"* {source}"]
        names = ("whole", "without")
        lines += [f"  * {name}: {shown(text, reference)}" for name, text in zip(names, written, strict=True)]
    return lines


def shown(text: str, reference: str) -> str:
    """An output, not at length, and whether it is right."""
    cut = text if len(text) <= WIDEST else f"{text[:WIDEST].rsplit(' ', 1)[0]} …"
    return f"{cut.strip() or '(nothing)'} {'✓' if text == reference else '✗'}"


def gradients(pairs: list[tuple[Row, Row]]) -> Iterator[Row]:
    """The gradient's norm of each layer, the median of the seeds, when it was measured first and last."""
    for layer in pairs[0][0]["layers"]:
        found: Row = {"norm of the gradient": layer}
        for place in (0, -1):
            for which, model in ((0, "whole"), (1, "without")):
                values = [
                    one["norms"][place][1][one["layers"].index(layer)]
                    for one in (pair[which] for pair in pairs)
                    if one["norms"] and layer in one["layers"]
                ]
                step = pairs[0][0]["norms"][place][0]
                found[f"{model}, step {step:,}"] = f"{median(values):.2g}" if values else "–"
        yield found


def entropies(pairs: list[tuple[Row, Row]]) -> Iterator[Row]:
    """The entropy of attention before and after training, the median of the seeds."""
    for use in pairs[0][0]["entropy"]:
        found: Row = {"entropy of attention, bits": use}
        for which, model in ((0, "whole"), (1, "without")):
            values = [one["entropy"][use] for one in (pair[which] for pair in pairs) if one["entropy"]]
            told = [f"{median(value[place] for value in values):.1f}" for place in (0, 1)] if values else []
            found[model] = " → ".join(told) or "–"
        yield found

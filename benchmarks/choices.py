"""What ``docs/results.md`` says of the paper's system: its scores, each choice of it, its stability, a larger set."""

from __future__ import annotations

from math import isfinite
from statistics import fmean
from textwrap import wrap

from questions import Lines, quality, rows_of, translation
from seeds import Session
from table3 import CHOICES, Choice
from tables import Row, grid

TOLD = (100, 300, 1000)
"""Steps at which the loss of a run of :func:`stability` is told."""
WAYS = tuple(
    f"{place}{warm_up}{rate}"
    for rate, places in (("", ("post-norm", "pre-norm")), (", a third of the rate", ("post-norm",)))
    for place in places
    for warm_up in (", warm-up", "")
)
"""Of these runs, in the order of the table."""
JUDGED = "val beam 5 lc"
DIVERGED, MISSING = "diverged", "missing"
ROUNDED = 5e-5
"""What a gradient norm that is written as zero is less than."""


def translations(sessions: list[Session]) -> Lines:
    """The final models of today's recipe and of the paper's system, both directions."""
    today = [one for one in sessions if one["benchmark"] == "multi30k"]
    paper = [one for one in sessions if one["benchmark"] == "table3"]
    rows, signatures = translation(today)
    more, told = system(paper)
    return [
        "BLEU of Multi30k after 30 minutes on one core, the mean of the seeds; lc is case-insensitive.",
        *told,
        f"sacreBLEU: {signatures}.",
        "",
        *grid(rows + more),
    ]


def system(sessions: list[Session]) -> tuple[list[Row], Lines]:
    """The final models of the paper's system, both directions, and what they are."""
    final = [row for row in rows_of(sessions) if row["row"] == "base" and any(key.startswith("test") for key in row)]
    if not final:
        return [], []
    shown = [{key: value for key, value in row.items() if not key.startswith("last ")} for row in final]
    seeds = {name: [row["seed"] for row in final if row["direction"] == name] for name in ("en-de", "de-en")}
    told = "; ".join(f"{name}: seeds {', '.join(map(str, sorted(own)))}" for name, own in seeds.items() if own)
    rows = [quality(name, shown, beam) for name, own in seeds.items() if own for beam in (1, 5)]
    lines = [
        "*Paper's*: post-norm, Noam's schedule, ReLU, sinusoids, three-way tying, label smoothing, the mean of the",
        "last five checkpoints (`recipes/multi30k/paper-en-de.toml` and `paper-de-en.toml`), 11,000 steps of 1,024",
        f"target tokens; {told}.",
    ]
    if alone := [row[f"last {JUDGED}"] for row in final if row["direction"] == "en-de" and f"last {JUDGED}" in row]:
        lines.append(f"Its last checkpoint alone has {fmean(alone):.2f} (en-de, beam 5, val, lc).")
    return [row | {"direction": f"{row['direction']}, paper's"} for row in rows], lines


def table(sessions: list[Session]) -> Lines:
    """Every choice beside the base, for each number of steps that any row has."""
    groups: dict[int, list[Row]] = {}
    found = rows_of(sessions)
    for row in found if any(row["row"] != "base" for row in found) else ():
        if row["direction"] == "en-de":
            groups.setdefault(steps_of(row), []).append(row)
    return [line for steps, rows in sorted(groups.items()) for line in with_steps(steps, rows)]


def steps_of(row: Row) -> int:
    """What a run was planned for; one that diverged has made fewer."""
    return int(row["run"].split()[2])


def with_steps(steps: int, rows: list[Row]) -> Lines:
    """The rows of equal steps, and so of equal target tokens.

    Args:
        steps: of every row.
        rows: the table's.
    """
    base = [row[JUDGED] for row in rows if row["row"] == "base" and JUDGED in row]
    others = {len([row for row in rows if row["row"] == one.name]) for one in CHOICES[1:]} - {0}
    each = " to ".join(map(str, sorted({min(others), max(others)}))) if others else ""
    told = [
        f"English to German on one core: {steps:,} steps of 1,024 target tokens{warmup_of(rows)}.",
        "BLEU of beam 5, lower-cased, on validation, of the mean of the last five checkpoints. The letters are of",
        "the paper's Table 3, F is not in it.",
        "The base: 4 + 4 layers, 4 heads, d_model 128, d_ff 512, dropout 0.1.",
        *([f"Seeds of each other row: {each}."] if each else []),
    ]
    if base:
        several = f"{len(base)} seeds of the base lie between {min(base):.2f} and {max(base):.2f}"
        told.append(f"The {several}; * marks what lies outside." if len(base) > 1 else "The base has one seed so far.")
    run = {row["row"] for row in rows}
    absent = [one.name for one in CHOICES if one.name not in run]
    shown = [line_of(one, rows, base) for one in CHOICES if one.name in run]
    left = ["", *wrap(f"Not run yet: {', '.join(absent)}.", 118)] if absent else []
    return [*told, "", *grid(shown + last_alone(rows, base)), *left, ""]


def warmup_of(rows: list[Row]) -> str:
    """How many steps warm-up has, where that is not the recipe's."""
    named = {word.partition("=")[2] for row in rows for word in row["settings"].split() if "warmup=" in word}
    return f", {int(min(named)):,} of them warm-up" if len(named) == 1 else ""


def line_of(choice: Choice, rows: list[Row], base: list[float]) -> Row:
    """One row of the table."""
    own = [row for row in rows if row["row"] == choice.name]
    good = [row for row in own if JUDGED in row]
    name = {"choice": f"{choice.group} {choice.name}".strip()}
    if not good:
        return name | {"M": "", "minutes": "", "loss": "", "BLEU": DIVERGED, "to base": ""}
    return name | {
        "M": f"{good[0]['parameters'] / 1e6:.2f}",
        "minutes": f"{fmean(row['train minutes'] for row in good):.1f}",
        "loss": f"{fmean(row['validation loss'] for row in good):.3f}",
        "BLEU": f"{fmean(row[JUDGED] for row in good):.2f}",
        "to base": against(fmean(row[JUDGED] for row in good), base) if choice.settings else "",
    }


def last_alone(rows: list[Row], base: list[float]) -> list[Row]:
    """The base without the mean of its checkpoints."""
    found = [row[f"last {JUDGED}"] for row in rows if f"last {JUDGED}" in row]
    if not found:
        return []
    return [
        {"choice": "base, last checkpoint alone", "BLEU": f"{fmean(found):.2f}", "to base": against(fmean(found), base)}
    ]


def against(score: float, base: list[float]) -> str:
    """The difference to the base's mean, marked where it is beyond what its seeds span."""
    if not base:
        return ""
    beyond = len(base) > 1 and not min(base) <= score <= max(base)
    return f"{score - fmean(base):+.2f}{'*' if beyond else ''}"


def stability(sessions: list[Session]) -> Lines:
    """What post-norm needs to be trained, beside pre-norm."""
    rows = rows_of(sessions)
    seeds = sorted({row["seed"] for row in rows})
    at = sorted({row["norms at"] for row in rows if row["norms at"]})
    named = f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"
    return [
        "The paper's system, English to German, for 1,000 steps at a rate that falls linearly from the highest of",
        f"Noam's schedule or a third of it, reached at once or after 100 steps of warm-up; {named}. A loss, in nats",
        "a token, is the mean of fifty steps. *Last to first*: the gradient norm of the decoder's last layer over",
        f"that of the encoder's first, at step {' or '.join(map(str, at))}. Values of a cell are those of the seeds.",
        "",
        *grid([stable_line(way, [row for row in rows if row["way"] == way]) for way in WAYS]),
    ]


def stable_line(way: str, rows: list[Row]) -> Row:
    """One way: what each seed gave."""
    own = sorted(rows, key=lambda row: int(row["seed"]))
    columns = {f"loss at {at:,}": [number(row.get(f"loss at {at}"), 2) for row in own] for at in TOLD}
    columns["largest norm"] = [number(row["largest norm"], 1) for row in own]
    columns["last to first"] = [ends(row["norms"]) for row in own]
    return {"way": way, **{name: " · ".join(values) or MISSING for name, values in columns.items()}}


def number(value: float | None, digits: int) -> str:
    """A value for people; one that is none has diverged."""
    return DIVERGED if value is None or not isfinite(value) else f"{value:.{digits}f}"


def ends(norms: dict[str, float] | None) -> str:
    """How much more of the gradient the decoder's last layer gets than the encoder's first."""
    if not norms:
        return MISSING
    last, first = norms[max(name for name in norms if name.startswith("decoder.layers."))], norms["encoder.layers.0"]
    return f"{last / first:.1f}" if first else f"over {last / ROUNDED:,.0f}"


def larger_set(sessions: list[Session]) -> Lines:
    """The paper's system beside today's recipe on Tatoeba."""
    rows = rows_of(sessions)
    steps, seeds = rows[0]["steps"], sorted({row["seed"] for row in rows})
    titles = {"paper": "the paper's", "today": "today's"}
    return [
        f"Tatoeba, 160,000 pairs English to German, {steps:,} steps of 1,024 target tokens on one core, seed",
        f"{', '.join(map(str, seeds))}. BLEU with regard to case; the test part was scored once.",
        "",
        *grid(
            [
                {
                    "system": titles[row["system"]],
                    "loss": f"{row['validation loss']:.3f}",
                    "validation, beam 5": f"{row['val beam 5']:.2f}",
                    "test, greedy": f"{row['test beam 1']:.2f}" if "test beam 1" in row else "",
                    "test, beam 5": f"{row['test beam 5']:.2f}" if "test beam 5" in row else "",
                }
                for row in rows
            ]
        ),
    ]

"""What ``docs/results.md`` says of the paper's system and of one choice at a time against it: ``table3.py``."""

from __future__ import annotations

from statistics import fmean

from questions import Lines, quality, rows_of
from seeds import Session
from table3 import CHOICES, Choice
from tables import Row, grid

JUDGED = "val beam 5 lc"
MISSING = "missing"
DIVERGED = "diverged"


def system(sessions: list[Session]) -> Lines:
    """The final models of the paper's system, both directions."""
    final = [row for row in rows_of(sessions) if row["row"] == "base" and any(key.startswith("test") for key in row)]
    if not final:
        return []
    shown = [{key: value for key, value in row.items() if not key.startswith("last ")} for row in final]
    seeds = {name: [row["seed"] for row in final if row["direction"] == name] for name in ("en-de", "de-en")}
    told = "; ".join(f"{name}: seeds {', '.join(map(str, sorted(own)))}" for name, own in seeds.items() if own)
    return [
        "Post-norm, Noam's schedule, ReLU, sinusoids, three-way tying, label smoothing, the mean of the last five",
        "checkpoints: `recipes/multi30k/paper-en-de.toml` and `paper-de-en.toml`, one core. BLEU, means of the seeds;",
        f"lc is case-insensitive. {told}.",
        "",
        *grid([quality(name, shown, beam) for name, own in seeds.items() if own for beam in (1, 5)]),
    ]


def table(sessions: list[Session]) -> Lines:
    """Every choice beside the base, for each number of steps that any row has."""
    rows = [row for row in rows_of(sessions) if row["direction"] == "en-de"]
    steps = sorted({steps_of(row) for row in rows})
    return [line for number in steps for line in with_steps(number, [row for row in rows if steps_of(row) == number])]


def steps_of(row: Row) -> int:
    """What a run was planned for; one that diverged has made fewer."""
    return int(row["run"].split()[2])


def with_steps(steps: int, rows: list[Row]) -> Lines:
    """The rows of equal steps, and so of equal target tokens."""
    base = [row[JUDGED] for row in rows if row["row"] == "base" and JUDGED in row]
    told = [
        f"English to German on one core, {steps:,} steps of 1,024 target tokens, beam 5, lower-cased BLEU on",
        "validation, of the mean of the last five checkpoints. The letters are of the paper's Table 3, F is not in it.",
        "The base: 4 + 4 layers, 4 heads, d_model 128, d_ff 512, dropout 0.1. The other rows have one seed each.",
    ]
    if base:
        several = f"{len(base)} seeds of the base lie between {min(base):.2f} and {max(base):.2f}"
        told.append(f"The {several}; * marks what lies outside." if len(base) > 1 else "The base has one seed so far.")
    return [*told, "", *grid([line_of(one, rows, base) for one in CHOICES] + last_alone(rows, base)), ""]


def line_of(choice: Choice, rows: list[Row], base: list[float]) -> Row:
    """One row of the table."""
    own = [row for row in rows if row["row"] == choice.name]
    good = [row for row in own if JUDGED in row]
    name = {"choice": f"{choice.group} {choice.name}".strip()}
    if not good:
        return name | {"M": "", "minutes": "", "loss": "", "BLEU": DIVERGED if own else MISSING, "to base": ""}
    return name | {
        "M": f"{good[0]['parameters'] / 1e6:.2f}",
        "minutes": f"{fmean(row['train minutes'] for row in good):.0f}",
        "loss": f"{fmean(row['validation loss'] for row in good):.3f}",
        "BLEU": f"{fmean(row[JUDGED] for row in good):.2f}",
        "to base": against(fmean(row[JUDGED] for row in good), base) if choice.settings else "",
    }


def last_alone(rows: list[Row], base: list[float]) -> list[Row]:
    """The base without the mean of its checkpoints."""
    found = [row[f"last {JUDGED}"] for row in rows if f"last {JUDGED}" in row]
    if not found:
        return []
    return [{"choice": "F last-alone", "BLEU": f"{fmean(found):.2f}", "to base": against(fmean(found), base)}]


def against(score: float, base: list[float]) -> str:
    """The difference to the base's mean, marked where it is beyond what its seeds span."""
    if not base:
        return ""
    beyond = len(base) > 1 and not min(base) <= score <= max(base)
    return f"{score - fmean(base):+.2f}{'*' if beyond else ''}"

"""Our Table 3: the paper's system on Multi30k English to German, and one choice at a time against it.

    python benchmarks/table3.py --dry-run               # the rows, their parameters and estimated minutes
    python benchmarks/table3.py                         # every row, one after another: a night or two of one core
    python benchmarks/table3.py --part 1/2 & python benchmarks/table3.py --part 2/2      # the same on two cores
    python benchmarks/table3.py --row heads-1 --row rotary --steps 3000
    python benchmarks/table3.py --direction de-en --row base --seed 1 --seed 2 --test

The base is ``recipes/multi30k/paper.toml``: post-norm, Noam's schedule, ReLU, sinusoids, three-way tying, label
smoothing, the mean of the last five checkpoints. Every row changes what its name says and nothing else, has the same
batches and so the same target tokens, one thread and one seed; the base has three. A GPU is used where there is one;
give its rows a results file outside ``results/`` and a work folder of their own. Scored on validation: BLEU of beam 5
and of beam 1. A run that is stopped (Ctrl-C, kill) saves and resumes when the same command is given again, and a row
with a result is not repeated. Lines are appended to ``results/table3.jsonl``, or to ``--results FILE``. ``--test``
scores test_2016 too, once: for final models of the base.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import command
import machine
import quality
from command import HERE, WORK, positive_number, whole_number
from corpus import data_folder
from multi30k import course, scored
from quality import Row, entries

from regard.system.errors import Diverged, RegardError

RESULTS = HERE / "results" / "table3.jsonl"
RECIPE = HERE.parent / "recipes" / "multi30k" / "paper.toml"
LAST = 5
"""Checkpoints that are averaged [Vaswani17 §6.1]."""
SECONDS = 0.21
"""Of a step of the base, one thread: 11,000 took 38.5 and 39.9 minutes on an AMD EPYC (family 25, model 17)."""
SAVES = 20
"""Checkpoints that are written in a run, as often as the recipe says of its own number of steps."""
WARM_UP = 10
"""The rate rises in one in so many steps, as in the recipe."""
BASE_SEEDS = (1, 2, 3)
PAIRS = 29_000


@dataclass(frozen=True)
class Choice:
    """One row.

    Args:
        name: of the row.
        group: of rows in the table: the letter of the paper's Table 3, or of what it does not have.
        settings: what differs from the recipe.
    """

    name: str
    group: str
    settings: tuple[str, ...] = ()

    @property
    def seeds(self) -> tuple[int, ...]:
        """Three for the base."""
        return (1,) if self.settings else BASE_SEEDS


def _one(field: str, group: str, **values: Any) -> list[Choice]:
    return [Choice(name.replace("_", "-"), group, (f"{field}={value}",)) for name, value in values.items()]


def _layers(reads: int, writes: int) -> Choice:
    settings = (f"model.encoder_layers={reads}", f"model.decoder_layers={writes}")
    return Choice(f"layers-{reads}-{writes}", "C", settings)


CHOICES = [
    Choice("base", ""),
    *_one("model.heads", "A", heads_1=1, heads_2=2, heads_8=8, heads_16=16),
    *_one("model.d_k", "B", d_k_8=8, d_k_16=16),
    *(_layers(reads, writes) for reads, writes in ((2, 2), (3, 3), (6, 6), (2, 6), (6, 2), (7, 1))),
    *_one("model.d_model", "C", d_model_64=64, d_model_256=256),
    *_one("model.d_ff", "C", d_ff_256=256, d_ff_1024=1024),
    *_one("model.dropout", "D", dropout_0=0.0, dropout_02=0.2, dropout_03=0.3),
    *_one("training.label_smoothing", "D", smoothing_0=0.0, smoothing_02=0.2),
    *_one("model.positions", "E", learned="learned", relative="relative", rotary="rotary", linear="alibi", none="none"),
    *_one("model.norm", "F", rms="rms"),
    *_one("model.activation", "F", gated_gelu="gated_gelu", gated_swish="gated_swish"),
    *_one("model.norm_place", "F", pre_norm="pre"),
]


def options() -> argparse.Namespace:
    """The command line."""
    parser = command.parser(__doc__, "table3", WORK / "table3")
    parser.add_argument("--row", choices=[one.name for one in CHOICES], action="append", help="default: all")
    parser.add_argument(
        "--seed", type=whole_number, action="append", help="default: 1, 2 and 3 of the base, 1 of others"
    )
    parser.add_argument("--steps", type=positive_number, help="default: the recipe's")
    parser.add_argument(
        "--set", action="append", default=[], help="section.key=value, for every row; needs --results and --work"
    )
    parser.add_argument("--part", default="1/1", help="k/n: the k-th of n parts of the rows, for another process each")
    parser.add_argument("--direction", choices=["en-de", "de-en"], default="en-de")
    parser.add_argument("--test", action="store_true", help="also score test_2016: for final runs of the base only")
    parser.add_argument("--dry-run", action="store_true", help="list the rows and do nothing")
    asked = parser.parse_args()
    standard = parser.get_default("work")
    if asked.set and (asked.results == RESULTS or asked.work == standard):
        parser.error("--set makes other rows than those of the table; name another --results and another --work")
    place, _, count = asked.part.partition("/")
    if not (place.isdecimal() and count.isdecimal() and 1 <= int(place) <= int(count)):
        parser.error(f"--part {asked.part}: give k/n, with k from 1 to n")
    if asked.test and asked.row != ["base"]:
        parser.error("--test is for final models: give --row base")
    return asked


def main() -> None:
    """Every row that has no result yet."""
    asked = options()
    if asked.dry_run:
        print("\n".join(listed(asked)))
        return
    if device() != "cpu" and asked.results == RESULTS:
        raise RegardError(
            f"{RESULTS.name} is of runs trained on a CPU; for a GPU's name another --results and another --work"
        )
    for choice, seed in wanted(asked):
        measure(asked, choice, seed)


def wanted(asked: argparse.Namespace) -> list[tuple[Choice, int]]:
    """The rows and seeds asked for, in the order of the table; of a part every n-th."""
    place, count = map(int, asked.part.split("/"))
    chosen = [one for one in CHOICES if not asked.row or one.name in asked.row]
    pairs = [(one, seed) for one in chosen for seed in asked.seed or one.seeds]
    return pairs[place - 1 :: count]


def listed(asked: argparse.Namespace) -> Iterator[str]:
    """Each row with its parameters and the minutes it may take, and those of all that have no result yet."""
    base, total = costs(asked, CHOICES[0])[1], 0.0
    for choice, seed in wanted(asked):
        parameters, work = costs(asked, choice)
        minutes = recipe_of(asked, choice).training.steps * SECONDS * work / base / 60
        known = result(asked, choice, seed)
        total += 0 if known else minutes
        row = f"{choice.name:<14} seed {seed}  {parameters / 1e6:5.2f} M parameters  about {minutes:3.0f} minutes"
        yield row + ("  has a result" if known else "")
    yield f"without a result: about {total / 60:.1f} hours of one core"


def costs(asked: argparse.Namespace, choice: Choice) -> tuple[int, int]:
    """Parameters, and those of matrices that multiply every token: what a step's time is taken to grow with."""
    from regard.models.presets import meta_model

    recipe = recipe_of(asked, choice)
    sizes = [weight.shape for weight in meta_model(recipe.model, recipe.text.vocabulary).parameters()]
    return sum(size.numel() for size in sizes), sum(size.numel() for size in sizes if len(size) == 2)


def recipe_of(asked: argparse.Namespace, choice: Choice) -> Any:
    """The recipe of a row."""
    from regard.runs.options import RecipeOptions, recipe_from_options

    return recipe_from_options(RecipeOptions(RECIPE, settings=settings(asked, choice)), PAIRS)


def settings(asked: argparse.Namespace, choice: Choice) -> tuple[str, ...]:
    """In what a run differs from the recipe."""
    return (*choice.settings, *(settings_of_steps(RECIPE, asked.steps) if asked.steps else ()), *asked.set)


def settings_of_steps(recipe: Path, steps: int) -> tuple[str, ...]:
    """A run of other steps than the recipe's, in its proportions, but with its highest rate.

    Checkpoints are a twentieth of the steps and warm-up is a tenth; Noam's highest rate grows as warm-up becomes
    shorter, and post-norm does not bear it: docs/experiments.md.
    """
    own = tomllib.loads(recipe.read_text(encoding="utf-8"))["training"]
    saves, warmup = -(-steps // SAVES), -(-steps // WARM_UP)
    rate = own["rate"] * (warmup / own["warmup"]) ** 0.5
    ways = {"steps": steps, "save_every": saves, "warmup": warmup, "rate": f"{rate:.6g}"}
    return tuple(f"training.{name}={value}" for name, value in ways.items())


def result(asked: argparse.Namespace, choice: Choice, seed: int) -> Row | None:
    """What stands in the results; a test set is scored once."""
    own = [row for row in machine.rows_in(asked.results) if row["run"] == run_name(asked, choice, seed)]
    return next((row for row in own if not asked.test or any("test_2016" in key for key in row)), None)


def run_name(asked: argparse.Namespace, choice: Choice, seed: int) -> str:
    """Tells the run from all others: its row, direction, steps and seed."""
    steps = asked.steps or recipe_of(asked, choice).training.steps
    return f"{choice.name} {asked.direction} {steps} {seed}"


def measure(asked: argparse.Namespace, choice: Choice, seed: int) -> None:
    """Train one model, average it, score it, append."""
    name = run_name(asked, choice, seed)
    if result(asked, choice, seed):
        print(f"{name} stands in {asked.results} already")
        return
    begun = machine.begun("table3", device(), name=name)
    row: Row = {"run": name, "row": choice.name, "group": choice.group, "direction": asked.direction, "seed": seed}
    row |= {"settings": " ".join(settings(asked, choice)), "parameters": costs(asked, choice)[0]}
    row |= trained(asked, choice, seed, asked.work / name.replace(" ", "-"))
    machine.append(asked.results, begun, [row])


def device() -> str:
    """Where a run is trained: ``regard.train`` takes a GPU where there is one."""
    from regard.tasks.model_folder import choose_device

    return choose_device(None).type


def trained(asked: argparse.Namespace, choice: Choice, seed: int, folder: Path) -> Row:
    """Scores of the mean of the last checkpoints, and of the base's last one alone; or why there are none."""
    import regard
    from regard.cli.io.terminal import Stop
    from regard.runs.model_folders import average
    from regard.training.reporters import LineReporter

    data, (source, target) = data_folder(), asked.direction.split("-")
    try:
        with Stop() as stop:
            last = regard.train(
                **quality.pairs(data, source, target),
                output=folder,
                recipe=RECIPE,
                settings=settings(asked, choice),
                seed=seed,
                threads=1,
                reporter=LineReporter(sys.stderr),
                should_stop=stop,
            )
    except Diverged as error:
        return {"failed": str(error)}
    model = average(folder, folder.with_name(f"{folder.name}-mean"), LAST)
    row = course(folder) | losses(folder) | scored(model, data, "val", source, target)
    if not choice.settings:
        alone = scored(last, data, "val", source, target)
        row |= {f"last {key}": value for key, value in alone.items() if "val" in key}
    return row | (scored(model, data, "test_2016_flickr", source, target) if asked.test else {})


def losses(folder: Path) -> Row:
    """The last validation's loss, in nats a token; and the largest gradient norm of every tenth of the run."""
    log = entries(folder)
    norms = [entry["norm"] or float("inf") for entry in log["step"]]
    tenth = -(-len(norms) // 10)
    return {
        "validation loss": round(log["valid"][-1]["loss"], 4),
        "largest norms": [round(max(norms[at : at + tenth]), 2) for at in range(0, len(norms), tenth)],
    }


if __name__ == "__main__":
    command.run(main)

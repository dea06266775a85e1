"""Compares recipes on the same data and budget: one run per recipe, share of the data and seed, one after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from regard.config import TASKS, Recipe
from regard.runs.compare import results as comparison_results
from regard.runs.compare.results import Result
from regard.runs.compare.trainings import RESULTS, Comparison, CorpusSplit, Run, append
from regard.runs.inputs import named_files, shell_line
from regard.runs.options import RecipeOptions, corpora, languages, recipe_from_options, task_option
from regard.runs.run import Machine
from regard.runs.train import CHECKING
from regard.system.errors import Stopped, UsageError
from regard.tasks.model_folder import choose_device
from regard.tasks.protocols import Files, refuse_pipes
from regard.training.checkpoints.files import alone
from regard.training.checkpoints.output_folder import refuse_unusable
from regard.training.checkpoints.provenance import RunInputs
from regard.training.log import Reporter
from regard.training.trainer import Hooks

LOCK = "lock"
"""Held in the output by the process at work."""
WHAT_IS_READ = ("max_tokens", "validation", "weights", "epoch")
"""Of the section ``data``: what decides which pairs are learned from, and how often."""


@dataclass(frozen=True)
class Texts:
    """What all models learn from, are validated on, and in the end scored on; sources before targets."""

    sources: Files
    targets: Files
    valid: tuple[Path, Path] | None = None
    test: tuple[Path, Path] | None = None

    def open_corpora(self) -> CorpusSplit:
        """All of them as corpora.

        Raises:
            UsageError: a file is missing, or can be read only once.
        """
        refuse_pipes([*self.sources, *self.targets, *(self.valid or ()), *(self.test or ())])
        valid, test = (corpora([two[0]], [two[1]])[0] if two else None for two in (self.valid, self.test))
        return CorpusSplit(corpora(self.sources, self.targets), valid, test)


@dataclass(frozen=True)
class Budget:
    """What each run may take, and how many runs there are of a recipe.

    Args:
        minutes: length of a run; or ``steps``: updates.
        seeds: a run for each.
        shares: of the data, a run for each.
    """

    minutes: float | None = None
    steps: int | None = None
    seeds: tuple[int, ...] = (1,)
    shares: tuple[float, ...] = (1.0,)

    def refuse(self) -> None:
        """Raise a UsageError for what cannot be."""
        if (self.minutes is None) == (self.steps is None):
            raise UsageError("give one of them: how long each model may learn", "--minutes, --steps")
        for option, values in (("--seeds", self.seeds), ("--fraction", self.shares)):
            if len(set(values)) < len(values) or not values:
                raise UsageError("each number is to be given once, and one at least", option)
        for share in self.shares:
            if not 0 < share <= 1:
                raise UsageError(f"{share:g} is no share of the data; give more than 0, at most 1", "--fraction")


def compare(
    recipes: Sequence[Path],
    texts: Texts,
    budget: Budget,
    output: Path,
    *,
    device: str | None = None,
    threads: int = 1,
    despite_check: bool = False,
    reporter: Reporter | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    shown: Callable[[list[Result]], None] = lambda results: None,
) -> list[Result]:
    """Train every recipe on the same data with the same budget; after a kill the same call resumes.

    Args:
        recipes: TOML files; their names are the names of what is compared.
        texts: the data.
        budget: how long each, how often.
        output: the folder of everything; a run listed in its ``results.jsonl`` is not repeated.
        device, threads: where it is computed.
        despite_check: train although the data check judges that the data would spoil the models.
        reporter: receives progress; ``should_stop``: called before every step.
        shown: given the results there are, after every run.

    Raises:
        UsageError: recipes that cannot be compared, or an option that does not fit.
        RegardError: the data cannot be used, or the output belongs to something else.
        Stopped: ``should_stop`` returned true; all is saved.
    """
    budget.refuse()
    if texts.valid is None and min(budget.shares) < 1:
        why = "needs --valid-source and --valid-target: each share would be validated on other sentences"
        raise UsageError(why, "--fraction")
    told = (reporter := reporter or Reporter()).on_event
    named = _recipes_by_name(recipes)
    if output.exists() and not output.is_dir():
        raise UsageError("is a file; the output must be a folder", str(output))
    if (output / "recipe.toml").exists() or (output / "training").exists():
        raise UsageError("is a model folder; a comparison needs a separate folder", str(output))
    guessed = languages(texts.sources, texts.targets)
    wishes = {
        (name, seed): _wishes(path, guessed, budget, seed) for name, path in named.items() for seed in budget.seeds
    }
    refuse_unlike({name: recipe_from_options(wish, 1) for (name, _), wish in wishes.items()})  # before any data is read
    read, machine = texts.open_corpora(), Machine(choose_device(device), threads)
    told(CHECKING)
    read, pairs = read.scan(told, despite_check)
    runs = [  # so ordered that there is soon something to compare: seed by seed, share by share
        Run(name, seed, share, recipe_from_options(wishes[name, seed], pairs))
        for seed in budget.seeds
        for share in budget.shares
        for name in named
    ]
    refuse_unlike({one.recipe: one.made_by for one in runs})  # what a recipe does not say depends on the data's size
    if note := unlike_batches([one.made_by for one in runs]):
        told(note)
    ready = Comparison(output, read, machine, Hooks(reporter, should_stop))
    command = shell_line("compare", _options(texts, budget, output, threads=threads, device=device), recipes)
    data = named_files(texts.sources, texts.targets, texts.valid)
    ready = replace(ready, fingerprints=read.fingerprints(), inputs=RunInputs(command, data))
    done = _known_results(ready, runs)
    for one in runs:
        if one.name not in done:
            refuse_unusable(output / one.name, "auto")
    output.mkdir(parents=True, exist_ok=True)
    with alone(output / LOCK, "another process is comparing in this folder", output):
        return _all(ready, runs, _known_results(ready, runs), shown)


def _options(texts: Texts, budget: Budget, output: Path, **machine: object) -> dict[str, object]:
    """What was asked for, by the options of the command line."""
    data: dict[str, object] = {"source": texts.sources, "target": texts.targets}
    for name, pair in (("valid", texts.valid), ("test", texts.test)):
        data |= {f"{name}_source": pair[0], f"{name}_target": pair[1]} if pair else {}
    length = {"minutes": budget.minutes, "steps": budget.steps, "seeds": budget.seeds, "fraction": budget.shares}
    return {**data, **length, "output": output, **machine}


def _known_results(ready: Comparison, runs: Sequence[Run]) -> dict[str, Result]:
    """The results that are known, by run."""
    before = comparison_results.read_results(ready.output / RESULTS)
    return {one.name: found for one in runs if (found := ready.known_result(one, before))}


def _all(
    ready: Comparison, runs: Sequence[Run], done: dict[str, Result], shown: Callable[[list[Result]], None]
) -> list[Result]:
    """All results, those that were missing made now; the output is held by the caller."""
    path, told = ready.output / RESULTS, ready.hooks.reporter.on_event
    missing = [one for one in runs if one.name not in done]
    if done:
        told(f"{len(done)} of {len(runs)} runs are in {path} already")
        shown([done[one.name] for one in runs if one.name in done])
    began = time.monotonic()
    for number, one in enumerate(missing):
        if ready.hooks.should_stop():
            raise Stopped("stopped; rerun the same command to resume")
        told(f"run {len(done) + 1} of {len(runs)}: {one.name}{_time_left(one, number, len(missing), began)}")
        done[one.name] = ready.train_and_score(one)
        append(path, done[one.name])
        shown([done[each.name] for each in runs if each.name in done])
    return [done[one.name] for one in runs]


def _time_left(one: Run, made: int, runs: int, began: float) -> str:
    """Estimated time left: from earlier runs, or from the minutes."""
    minutes = one.made_by.training.minutes
    each = (time.monotonic() - began) / made if made else 60 * minutes if minutes else None
    return "" if each is None else f"; all will take about {max(1, round(each * (runs - made) / 60)):,} minutes more"


def _recipes_by_name(recipes: Sequence[Path]) -> dict[str, Path]:
    """Recipes by the names of their files.

    Raises:
        UsageError: none, or two of one name.
    """
    if not recipes:
        raise UsageError("nothing to compare: name recipes, e.g. recipes/compare/*.toml")
    named: dict[str, Path] = {}
    for path in recipes:
        if path.stem in named:
            raise UsageError(f"has the name of {named[path.stem]}; recipes to compare need different names", str(path))
        named[path.stem] = path
    return named


def _wishes(path: Path, guessed: Mapping[str, str | None], budget: Budget, seed: int) -> RecipeOptions:
    options = {"training.minutes": budget.minutes, "training.steps": budget.steps, "seed": seed}
    wishes = RecipeOptions(path, None, (), options, guessed)
    if TASKS[task := task_option(wishes)].learns_from != "pairs":
        raise UsageError(f'task = "{task}" cannot be compared; only recipes of translation can', str(path))
    return wishes


def refuse_unlike(recipes: Mapping[str, Recipe]) -> None:
    """Require the same text and pairs of all recipes, so that only model and training differ.

    Raises:
        UsageError: two differ in what is read; the field is named.
    """
    (first, like), *others = recipes.items()
    for name, recipe in others:
        here, there = _input_fields(recipe), _input_fields(like)
        for field in here:
            if here[field] != there[field]:
                said = f"is {here[field]!r} in {name}, but {there[field]!r} in {first}"
                raise UsageError(f"{said}; recipes that are compared must read the same", field)


def _input_fields(recipe: Recipe) -> dict[str, Any]:
    """The fields that decide the input data."""
    text = {f"text.{name}": value for name, value in recipe.text.model_dump().items()}
    return text | {f"data.{name}": getattr(recipe.data, name) for name in WHAT_IS_READ}


def unlike_batches(recipes: Sequence[Recipe]) -> str | None:
    """A remark where as many steps do not read as many sentences."""
    sizes = {recipe.training.tokens * recipe.training.accumulate for recipe in recipes}
    if len(sizes) == 1:
        return None
    many = " and ".join(f"{size:,}" for size in sorted(sizes))
    return f"note: batches differ ({many} target tokens), so that equal steps are not equal data"

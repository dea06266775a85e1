"""Compares recipes on the same data and budget: one run per recipe, share of the data and seed, one after another."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import torch

from regard.config import TASKS, Recipe
from regard.data.checks.pairs import PairScan
from regard.data.corpora.corpus import Corpus, TextPair
from regard.data.corpora.pairs import Subset, open_corpora
from regard.data.corpora.scan import DataScan
from regard.data.prepare.folder import PreparedPairs
from regard.models.complexity import ModelCosts, costs
from regard.runs.compare import results as comparison_results
from regard.runs.compare.results import Result, ScoreSummary
from regard.runs.options import (
    RecipeOptions,
    languages,
    named_files,
    recipe_from_options,
    shell_line,
    task_option,
)
from regard.runs.plan import processor
from regard.runs.run import Machine, TrainingRun, run
from regard.runs.train import CHECKING
from regard.system import disk
from regard.system.errors import Diverged, Option, RegardError, Stopped, UsageError
from regard.tasks.engine import use_engine
from regard.tasks.model_folder import choose_device
from regard.tasks.protocols import refuse_pipes
from regard.tasks.training.base import StoppableTrace
from regard.tasks.translation.languages import find_directions
from regard.tasks.translation.training import TranslationJob, scan_pairs
from regard.tasks.translation.translator import Translation
from regard.training.checkpoints import resolved
from regard.training.checkpoints.files import Files, alone
from regard.training.checkpoints.output_folder import refuse_unusable
from regard.training.checkpoints.provenance import RunInputs
from regard.training.log import Reporter
from regard.training.trainer import Hooks

LOCK = "lock"
"""Held in the output by the process at work."""
WHAT_IS_READ = ("max_tokens", "validation", "weights", "epoch")
"""Of the section ``data``: what decides which pairs are learned from, and how often."""
RESULTS = "results.jsonl"
TRANSLATIONS = "translations"
"""Folder below the output: each model's translations of the scored sentences."""


@dataclass(frozen=True)
class Texts:
    """What all models learn from, are validated on, and in the end scored on; sources before targets."""

    sources: Sequence[Path | str]
    targets: Sequence[Path | str]
    valid: tuple[Path, Path] | None = None
    test: tuple[Path, Path] | None = None


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
            raise UsageError(f"give this or {Option('steps')}: how long each model may learn", Option("minutes"))
        for option, values in (("seeds", self.seeds), ("fraction", self.shares)):
            if len(set(values)) < len(values) or not values:
                raise UsageError("each number is to be given once, and one at least", Option(option))
        for share in self.shares:
            if not 0 < share <= 1:
                raise UsageError(f"{share:g} is no share of the data; give more than 0, at most 1", Option("fraction"))


@dataclass(frozen=True)
class Run:
    """One of them: a recipe with a seed, on a share of the data."""

    recipe: str
    seed: int
    share: float
    made_by: Recipe

    @property
    def name(self) -> str:
        """Its folder: ``gru-additive-seed1``, ``gru-additive-of0.125-seed1``."""
        part = "" if self.share == 1 else f"-of{self.share:g}"
        return f"{self.recipe}{part}-seed{self.seed}"


@dataclass(frozen=True)
class CorpusSplit:
    """What all runs read: corpora to learn from, to validate on (or a part of the former), and to score in the end.

    Args:
        learned, validation, test: the corpora.
        scanned: those that are learned from and validated on.
    """

    learned: Sequence[Corpus[TextPair]]
    validation: Corpus[TextPair] | None
    test: Corpus[TextPair] | None
    scanned: DataScan[PairScan]

    def fingerprints(self) -> dict[str, str]:
        """Of each, by name."""
        found = {"data.learned": self.scanned.fingerprint}
        found["data.validation"] = self.scanned.validation_fingerprint or "split"
        if self.test is None:
            return found
        test = DataScan.of([self.test], scan=PairScan)
        test.refuse_unreadable("sentence pairs")
        return {**found, "data.test": test.fingerprint}

    def share(self, one: Run) -> DataScan[PairScan]:
        """The training and validation data of a run."""
        if one.share == 1:
            return self.scanned
        subsets = [Subset(corpus, one.share, one.seed) for corpus in self.learned]
        return replace(DataScan.of(subsets, scan=PairScan), validation=self.scanned.validation)


@dataclass(frozen=True)
class Comparison:
    """The setting of all runs, and the steps for each.

    Args:
        output: the folder of results, translations and a folder for each run.
        read: the data.
        machine: where it is computed.
        hooks: reporter and stop flag.
        fingerprints: of the data, by name.
        inputs: what the models' cards say of the data and of the command.
    """

    output: Path
    read: CorpusSplit
    machine: Machine
    hooks: Hooks
    fingerprints: Mapping[str, str]
    inputs: RunInputs

    def rests(self, one: Run) -> dict[str, object]:
        """Everything a run depends on, as in the results."""
        fields = {**resolved.recipe_fields(one.made_by), **self.fingerprints, "data.share": one.share}
        fields |= {f"decoding.{name}": value for name, value in one.made_by.decoding.model_dump().items()}
        return dict(json.loads(json.dumps({**fields, "threads": self.machine.threads})))

    def known_results(self, runs: Sequence[Run]) -> dict[str, Result]:
        """The results of finished runs that are scored on all requested sets, by run.

        Raises:
            RegardError: there is a run of that name, but of something else.
        """
        before, found = comparison_results.read_results(self.output / RESULTS), dict[str, Result]()
        for one in runs:
            if (result := before.get(one.name)) is None:
                continue
            was, now = result.rests, self.rests(one)
            more, less = "data.test" in now and "data.test" not in was, "data.test" not in now
            for name in sorted((was.keys() | now.keys()) - ({"data.test"} if more or less else set())):
                if was.get(name) != now.get(name):
                    said = f"{name} was {was.get(name)!r} in the run {one.name}, and is {now.get(name)!r} now"
                    raise RegardError(f"{said}; name another {Option('output')}", str(self.output / RESULTS))
            if not more or result.failed is not None:
                found[one.name] = result
        return found

    def train_and_score(self, one: Run) -> Result:
        """Train, resume, or load the finished model; then score. A run that diverges has a result without scores.

        Raises:
            Stopped: ``should_stop`` returned true; all is saved.
        """
        folder, failed, task = self.output / one.name, None, None
        job = TranslationJob(one.made_by, self.read.share(one))
        try:
            task = run(TrainingRun(folder, job, self.machine, self.hooks, self.inputs))
        except Diverged as error:
            failed = str(error)
            self.hooks.reporter.on_event(f"{one.name} has no score: {failed}")
        log = comparison_results.score_curve(folder / "training" / "metrics.jsonl")
        now = datetime.now(UTC).isoformat(timespec="seconds")
        about = {"date": now, "processor": processor(self.machine.device), "torch": torch.__version__}
        rests = self.rests(one)
        result = Result(one.name, one.recipe, one.seed, one.share, rests, log, failed=failed, about=about)
        if task is None:
            return result
        use_engine(task)
        prepared = self.output / result.run / "training" / "data"
        held, test = self.read.validation, self.read.test
        valid = list(held.examples() if held else PreparedPairs(prepared).validation_pairs())
        result = replace(result, shape=shape(task, valid), valid=self._quality(task, f"{result.run}.validation", valid))
        if test is None:
            return result
        return replace(result, test=self._quality(task, f"{result.run}.test", list(test.examples())))

    def _quality(self, task: Translation, name: str, pairs: Sequence[TextPair]) -> ScoreSummary:
        self.hooks.reporter.on_event(f"translating {len(pairs):,} sentences: {name}")
        sources, references = [source for source, _ in pairs], [target for _, target in pairs]
        best = task.nbest(sources, 1, trace=StoppableTrace(self.hooks.should_stop))
        said = [hypotheses[0].text for hypotheses in best]
        folder = self.output / TRANSLATIONS
        folder.mkdir(exist_ok=True)
        Files().replace(folder / f"{name}.txt", ["".join(f"{text}\n" for text in said).encode()])
        text = task.recipe.text
        return comparison_results.quality(sources, said, references, (text.source_language, text.target_language))


def shape(task: Translation, pairs: Sequence[TextPair]) -> ModelCosts:
    """What a model is by formula, for sentences of mean length, each with its ``</s>`` [Vaswani17 §4]."""
    vocabularies = task.vocabularies
    sources = vocabularies.source.ids_batch([source for source, _ in pairs])
    targets = vocabularies.target.ids_batch([target for _, target in pairs])
    n, m = (round(1 + sum(map(len, ids)) / len(pairs)) for ids in (sources, targets))
    return costs(task.recipe.model, n, m)


def append(path: Path, result: Result) -> None:
    """Append a result, replacing a torn last line left by a kill."""
    line = json.dumps(comparison_results.to_json(result), ensure_ascii=False, allow_nan=False) + "\n"
    before, end, _ = (disk.content(path) if path.exists() else b"").rpartition(b"\n")
    Files().replace(path, [before + end, line.encode()])


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
        why = f"needs {Option('valid_source')} too: each share would be validated on other sentences"
        raise UsageError(why, Option("fraction"))
    told = (reporter := reporter or Reporter()).on_event
    named = _recipes_by_name(recipes)
    if output.exists() and not output.is_dir():
        raise UsageError("is a file; the output must be a folder", str(output))
    if (output / "recipe.toml").exists() or (output / "training").exists():
        raise UsageError("is a model folder; a comparison needs a separate folder", str(output))
    guessed = languages(texts.sources, texts.targets)
    wishes = dict[tuple[str, int], RecipeOptions]()
    for name, path in named.items():
        for seed in budget.seeds:
            options = {"training.minutes": budget.minutes, "training.steps": budget.steps, "seed": seed}
            wishes[name, seed] = wish = RecipeOptions(path, None, (), options, guessed)
            if TASKS[task := task_option(wish)].learns_from != "pairs":
                raise UsageError(f'task = "{task}" cannot be compared; only recipes of translation can', str(path))
    refuse_unlike({name: recipe_from_options(wish, 1) for (name, _), wish in wishes.items()})  # before any data is read
    refuse_pipes([*texts.sources, *texts.targets, *(texts.valid or ()), *(texts.test or ())])
    valid, test = (open_corpora([two[0]], [two[1]])[0] if two else None for two in (texts.valid, texts.test))
    learned, machine = open_corpora(texts.sources, texts.targets), Machine(choose_device(device), threads)
    told(CHECKING)
    scanned, pairs = scan_pairs(learned, [valid] if valid else [], told, despite_check)
    if find_directions(learned, [], recipe_from_options(next(iter(wishes.values())), 1).text, None)[0]:
        message = "translators of one direction are compared, but these files are of several; leave the others out"
        raise UsageError(message, Option("source"))
    runs = [  # so ordered that there is soon something to compare: seed by seed, share by share
        Run(name, seed, share, recipe_from_options(wishes[name, seed], pairs))
        for seed in budget.seeds
        for share in budget.shares
        for name in named
    ]
    refuse_unlike({one.recipe: one.made_by for one in runs})  # what a recipe does not say depends on the data's size
    if note := unlike_batches([one.made_by for one in runs]):
        told(note)
    asked: dict[str, object] = {"source": texts.sources, "target": texts.targets}
    for name, pair in (("valid", texts.valid), ("test", texts.test)):
        asked |= {f"{name}_source": pair[0], f"{name}_target": pair[1]} if pair else {}
    asked |= {"minutes": budget.minutes, "steps": budget.steps, "seeds": budget.seeds, "fraction": budget.shares}
    command = shell_line("compare", {**asked, "output": output, "threads": threads, "device": device}, recipes)
    inputs = RunInputs(command, named_files(texts.sources, texts.targets, texts.valid))
    read = CorpusSplit(learned, valid, test, scanned)
    ready = Comparison(output, read, machine, Hooks(reporter, should_stop), read.fingerprints(), inputs)
    done = ready.known_results(runs)
    for one in runs:
        if one.name not in done:
            refuse_unusable(output / one.name, "auto")
    output.mkdir(parents=True, exist_ok=True)
    with alone(output / LOCK, "another process is comparing in this folder", output):
        return _all(ready, runs, ready.known_results(runs), shown)


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
        minutes = one.made_by.training.minutes  # time left is estimated from earlier runs, or from the minutes
        each = (time.monotonic() - began) / number if number else 60 * minutes if minutes else None
        about = 0 if each is None else max(1, round(each * (len(missing) - number) / 60))
        left = f"; all will take about {about:,} minutes more" if about else ""
        told(f"run {len(done) + 1} of {len(runs)}: {one.name}{left}")
        done[one.name] = ready.train_and_score(one)
        append(path, done[one.name])
        shown([done[each.name] for each in runs if each.name in done])
    return [done[one.name] for one in runs]


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


def refuse_unlike(recipes: Mapping[str, Recipe]) -> None:
    """Require the same text and pairs of all recipes, so that only model and training differ.

    Raises:
        UsageError: two differ in what is read; the field is named.
    """
    (first, like), *others = recipes.items()
    for name, recipe in others:
        here, there = _input_fields(recipe), _input_fields(like)
        for where, value in here.items():
            if value != there[where]:
                said = f"is {value!r} in {name}, but {there[where]!r} in {first}"
                raise UsageError(f"{said}; recipes that are compared must read the same", where)


def _input_fields(recipe: Recipe) -> dict[str, object]:
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

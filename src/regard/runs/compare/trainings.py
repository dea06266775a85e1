"""Runs of a comparison: the settings each depends on, whether it is finished, its training and scoring."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from regard.config import Recipe
from regard.data.checks.pairs import PairScan
from regard.data.corpora.corpus import Corpus, TextPair
from regard.data.corpora.pairs import Subset
from regard.data.corpora.scan import DataScan
from regard.data.prepare.folder import PreparedPairs
from regard.models.complexity import costs
from regard.runs.compare import results as comparison_results
from regard.runs.compare.results import Result, ScoreSummary, Shape
from regard.runs.datasets import scan_pairs
from regard.runs.plan import processor
from regard.runs.run import Machine, TrainingRun, run
from regard.system import disk
from regard.system.errors import Diverged, RegardError
from regard.tasks.engine import use_engine
from regard.tasks.training.model_writer import StoppableTrace
from regard.tasks.translation.training import TranslationJob
from regard.tasks.translation.translator import Translation
from regard.training.checkpoints import resolved
from regard.training.checkpoints.files import Files
from regard.training.checkpoints.provenance import RunInputs
from regard.training.trainer import Hooks

RESULTS = "results.jsonl"
TRANSLATIONS = "translations"
"""Folder below the output: each model's translations of the scored sentences."""


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
    """What all runs read: corpora to learn from, to validate on (or a part of the former), and to score in the end."""

    learned: Sequence[Corpus[TextPair]]
    validation: Corpus[TextPair] | None = None
    test: Corpus[TextPair] | None = None
    scanned: DataScan[PairScan] | None = None

    def scan(self, tell: Callable[[str], None], despite_check: bool) -> tuple[CorpusSplit, int]:
        """Read and check it all once; itself with the scans, and the number of training pairs.

        Raises:
            RegardError: something in the data would spoil the models, or cannot be read.
        """
        scanned, pairs = scan_pairs(self.learned, self.validation, tell, despite_check)
        return replace(self, scanned=scanned), pairs

    def fingerprints(self) -> dict[str, str]:
        """Of each, by name."""
        assert self.scanned is not None
        found = {"data.learned": self.scanned.fingerprint}
        found["data.validation"] = self.scanned.validation_fingerprint or "split"
        if self.test is None:
            return found
        test = DataScan.of([self.test], scan=PairScan)
        test.refuse_unreadable("sentence pairs")
        return {**found, "data.test": test.fingerprint}

    def share(self, one: Run) -> DataScan[PairScan]:
        """The training and validation data of a run."""
        assert self.scanned is not None
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
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    inputs: RunInputs = field(default_factory=RunInputs)

    def rests(self, one: Run) -> dict[str, Any]:
        """Everything a run depends on, as in the results."""
        fields = {**resolved.recipe_fields(one.made_by), **self.fingerprints, "data.share": one.share}
        fields |= {f"decoding.{name}": value for name, value in one.made_by.decoding.model_dump().items()}
        return dict(json.loads(json.dumps({**fields, "threads": self.machine.threads})))

    def known_result(self, one: Run, results: Mapping[str, Result]) -> Result | None:
        """The result of a finished run that is scored on all requested sets, or ``None``.

        Raises:
            RegardError: there is a run of that name, but of something else.
        """
        result = results.get(one.name)
        if result is None:
            return None
        was, now = result.rests, self.rests(one)
        more, less = "data.test" in now and "data.test" not in was, "data.test" not in now
        for name in sorted((was.keys() | now.keys()) - ({"data.test"} if more or less else set())):
            if was.get(name) != now.get(name):
                said = f"{name} was {was.get(name)!r} in the run {one.name}, and is {now.get(name)!r} now"
                raise RegardError(f"{said}; name another --output", str(self.output / RESULTS))
        return None if more and result.failed is None else result

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
        result = Result(
            one.name, one.recipe, one.seed, one.share, self.rests(one), log, failed=failed, about=self._about()
        )
        return result if task is None else self._score(result, task)

    def _score(self, result: Result, task: Translation) -> Result:
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

    def _about(self) -> dict[str, Any]:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return {"date": now, "processor": processor(self.machine.device), "torch": torch.__version__}


def shape(task: Translation, pairs: Sequence[TextPair]) -> Shape:
    """What a model is by formula, for sentences of mean length, each with its ``</s>`` [Vaswani17 §4]."""
    vocabularies = task.vocabularies
    sources = vocabularies.source.ids_batch([source for source, _ in pairs])
    targets = vocabularies.target.ids_batch([target for _, target in pairs])
    n, m = (round(1 + sum(map(len, ids)) / len(pairs)) for ids in (sources, targets))
    found = costs(task.recipe.model, n, m)
    return Shape(n, m, found.sequential, found.within, found.across)


def append(path: Path, result: Result) -> None:
    """Append a result, replacing a torn last line left by a kill."""
    line = json.dumps(comparison_results.to_json(result), ensure_ascii=False, allow_nan=False) + "\n"
    before, end, _ = (disk.content(path) if path.exists() else b"").rpartition(b"\n")
    Files().replace(path, [before + end, line.encode()])

"""Training on pairs of texts by teacher forcing, and of translators: loss, validation that writes, final scores."""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import torch
from torch import Tensor

from regard.config import Text, TransformerSection
from regard.data.batches.batch import PairBatch
from regard.data.batches.sampler import refuse_weights
from regard.data.batches.texts import PairBatches
from regard.data.checks.findings import Finding, announce, pattern_draft
from regard.data.checks.pairs import PairScan, report_pairs, vocabulary_drafts
from regard.data.corpora.corpus import Corpus, Progress, TextPair
from regard.data.corpora.pairs import open_corpora
from regard.data.corpora.scan import DataScan
from regard.data.prepare.encoders import PairEncoder
from regard.data.prepare.folder import PreparedPairs
from regard.data.prepare.preparation import LeftOut, count_sample, prepare
from regard.data.prepare.shards import Side
from regard.data.prepare.split import Split, SplitCorpora, split_pairs
from regard.decoding.hypotheses import Rows, Trace
from regard.models.inputs import Pairs, pairs
from regard.nn import ops
from regard.nn.loss import SmoothedCrossEntropy
from regard.system.errors import UsageError
from regard.tasks.engine import use_engine
from regard.tasks.metrics.bleu import score
from regard.tasks.metrics.calibration import doubted_below
from regard.tasks.model_folder import load
from regard.tasks.protocols import InputFiles, ShouldStop, TargetWriter, Task, refuse_pipes
from regard.tasks.text.preparation import LANGUAGES
from regard.tasks.training.base import BaseTraining, ProductPaths, RecipeFor, StoppableTrace, Tell, TrainingJob
from regard.tasks.training.defaults import MORE, SizeDefaults
from regard.tasks.translation.translator import Hypothesis, Translation
from regard.text.language_tokens import ARGUMENTS, UNKNOWN_LANGUAGE, LanguageTokens
from regard.text.tokenizers.vocabulary import Vocabularies
from regard.training.objective import Done, Loss, Sample, Validation, ignore_progress, mean_loss
from regard.training.world import ALONE, World

if TYPE_CHECKING:
    from regard.tasks.translation.text_to_text.writer import Answer, TextToText

SAMPLES = 3
"""Sample translations shown at a validation."""
MAX_EXTRA = 16
"""Tokens an output may have more than its source while validating: a young model does not know when to stop."""
JUDGED = 10_000
"""Pairs by which a vocabulary is judged."""
BEAMS = 1.5
"""Times greedy search that each hypothesis of a beam takes: of five it was 1.4."""
_BASE = {"rate": 7e-4, "warmup": 4000}


AnyWriter = TypeVar("AnyWriter", bound="Translation | TextToText")


class TeacherForcing(BaseTraining[AnyWriter]):
    """Training on pairs of texts [Vaswani17 §5]; implements :class:`~regard.tasks.training.base.TrainingTask`.

    Args:
        task: the model to train, with its recipe and vocabularies.
        prepared: the pairs as ids.
        paths: how products are computed.
        segmented: sources that are drawn anew in every epoch, in the place of the prepared ones.
    """

    def __init__(self, task: AnyWriter, prepared: Any, paths: ProductPaths, segmented: Side | None = None) -> None:
        self.criterion = SmoothedCrossEntropy(task.recipe.training.label_smoothing)
        self.batches = PairBatches(prepared, task.recipe, segmented)
        super().__init__(task, prepared, paths, self.batches.pairs, self.criterion)

    @property
    def max_extra(self) -> int:
        """:data:`MAX_EXTRA`, or fewer if learned positions end earlier; independent of the decoding options."""
        model = self.task.recipe.model
        if not isinstance(model, TransformerSection) or model.positions != "learned":
            return MAX_EXTRA
        return min(MAX_EXTRA, model.max_positions - self.task.recipe.data.max_tokens - 1)

    @abstractmethod
    def scores(self, hypotheses: Sequence[str], references: Sequence[str]) -> Mapping[str, float]:
        """The scores of a validation, that first by which the best model is chosen."""

    def loss(self, batch: PairBatch) -> Loss:
        """The smoothed loss of a batch, every target position a sample."""
        inputs = pairs(batch, self.task.device)
        return target_loss(self.task, self.criterion, batch, inputs, self.task.model(inputs))

    @torch.no_grad()
    def validate(self, generate: bool, world: World = ALONE) -> Validation:
        """Loss on all validation pairs; scores of greedy search on the first few hundred; in full precision."""
        with ops.using(self.model, self.paths.exact):
            loss = self.predict_validation(world=world)
            if not math.isfinite(loss):  # nothing can be searched for then
                return Validation(loss)
            texts = self._texts(generate)
            each = -(-len(texts) // world.shards)  # in as many groups as a step has shards
            groups = [texts[first : first + each] for first in range(0, len(texts), each)]
            found = world.divide(groups, self._search)
            hypotheses = [text for one in found for text in json.loads(one)]
        samples = tuple(
            Sample(source, reference, hypothesis)
            for (source, reference), hypothesis in list(zip(texts, hypotheses, strict=True))[:SAMPLES]
        )
        if not generate:
            return Validation(loss, samples=samples)
        references = [reference for _, reference in texts]
        return Validation(loss, dict(self.scores(hypotheses, references)), samples)

    @torch.no_grad()
    def trial(self, generate: bool, done: Done) -> None:
        """Loss and samples; or the sentences of a validation, to as many tokens as their references have.

        A model that has not learned to stop writes more, which is not held against it.
        """
        if generate:
            done(0.0)
        with ops.using(self.model, self.paths.exact):
            if not generate:
                if math.isfinite(self.predict_validation(done)):
                    self._greedy(self._texts(False))
            elif math.isfinite(mean_loss(self.batches.validation[:1], self.loss, ALONE)):
                texts = self._texts(True)
                self._greedy(texts, ValidationSearch(self._target_tokens(len(texts)), done))

    def predict_validation(self, done: Done = ignore_progress, world: World = ALONE) -> float:
        """Nats a token of all validation pairs."""
        return mean_loss(self.batches.validation, self.loss, world, done)

    def _texts(self, generate: bool) -> list[TextPair]:
        """The validation texts to be searched for."""
        section = self.task.recipe.training
        found: list[TextPair] = self.prepared.validation_pairs()
        return found[: section.validation_sentences if generate else SAMPLES]

    def _search(self, group: Sequence[TextPair]) -> bytes:
        """What is written for texts, as one process tells it to the others."""
        return json.dumps([hypothesis.text for hypothesis in self._greedy(group)]).encode()

    def _greedy(self, texts: Sequence[TextPair], trace: Trace | None = None) -> list[Hypothesis | Answer]:
        sources = [source for source, _ in texts]
        found = self.task.nbest(sources, 1, beam=1, max_extra=self.max_extra, trace=trace, scores=False)
        return [best[0] for best in found]

    def _target_tokens(self, count: int) -> int:
        return int(self.prepared.validation_target.lengths(0, np.arange(count)).sum())

    def final_seconds(self, loss: float, text: float) -> float:
        """Estimated seconds of final scoring: greedy search scaled to all validation pairs and the beam."""
        held, beam = self.prepared.validation_source.count, self.task.recipe.decoding.beam
        tokens = self._target_tokens(held) / max(1, self._target_tokens(len(self._texts(True))))
        return (text - loss) * tokens * (BEAMS * beam if beam > 1 else 1)


def target_loss(
    task: TargetWriter, criterion: SmoothedCrossEntropy, batch: PairBatch, inputs: Pairs, hidden_TD: Tensor
) -> Loss:
    """The smoothed loss of the decoder's output for a batch."""
    criterion.train(task.model.training)
    projection = task.model.projection(hidden_TD)
    total, nll = criterion(*projection, inputs.labels_T, inputs.weight_T, task.model.pieces)
    return Loss(total, nll, batch.tokens)


def final_outputs(
    task: Translation | TextToText, sources: Sequence[str], references: Sequence[str], should_stop: ShouldStop
) -> list[str]:
    """What the finished model writes for the validation texts; below which confidence it is doubted goes to its assets.

    Raises:
        Stopped: ``should_stop`` returned true.
    """
    use_engine(task)
    best = [found[0] for found in task.nbest(sources, trace=StoppableTrace(should_stop))]
    right = [one.text.strip() == wanted.strip() for one, wanted in zip(best, references, strict=True)]
    task.assets = replace(task.assets, doubted_below=doubted_below([one.confidence for one in best], right))
    return [one.text for one in best]


class ValidationSearch(Trace):
    """Reports at every step the share of expected tokens generated; records nothing."""

    def __init__(self, expected: int, done: Done) -> None:
        super().__init__()
        self.expected, self.done, self.tokens = max(1, expected), done, 0

    def record(self, rows: Rows, *step: object) -> None:
        """Every row has a token more."""
        self.tokens += rows.count
        self.done(min(1.0, self.tokens / self.expected))


class TranslationTraining(TeacherForcing[Translation]):
    """Training task of translation; its first score is BLEU."""

    sizes: ClassVar[Sequence[SizeDefaults]] = (
        SizeDefaults(10_000, "tiny", 60, {"text": {"vocabulary": 2_000}, "training": {"tokens": 1024, "rate": 3e-3}}),
        SizeDefaults(80_000, "tiny", 30, {"text": {"vocabulary": 6_000}, "training": {"tokens": 1024, "rate": 3e-3}}),
        SizeDefaults(500_000, "small", 20, {"text": {"vocabulary": 8_000}, "training": {"tokens": 2048}}),
        SizeDefaults(3_000_000, "base", 8, {"text": {"vocabulary": 16_000}, "training": {"tokens": 8192, **_BASE}}),
        SizeDefaults(MORE, "base", 4, {"text": {"vocabulary": 32_000}, "training": {"tokens": 25_000, **_BASE}}),
    )
    adapted = (
        SizeDefaults(10_000, "tiny", 10, {"training": {"tokens": 1024, "warmup": 100}}),
        SizeDefaults(MORE, "tiny", 3, {"training": {"tokens": 2048, "warmup": 100}}),
    )

    def scores(self, hypotheses: Sequence[str], references: Sequence[str]) -> Mapping[str, float]:
        found = score(hypotheses, references, self.task.recipe.text.target_language, samples=1)
        return {"bleu": found.bleu, "chrf": found.chrf}

    def data_lines(self) -> list[str]:
        """How many pairs there are."""
        pairs = self.prepared.pairs, self.prepared.validation_source.count
        return ["{:,} sentence pairs to learn from, {:,} to validate on".format(*pairs)]

    def finish(self, task: Task, should_stop: ShouldStop) -> list[str]:
        """BLEU and chrF on the validation pairs, searched as it will be used."""
        assert isinstance(task, Translation)
        sources, references = zip(*self.prepared.validation_pairs(), strict=True)
        said = final_outputs(task, sources, references, should_stop)
        scores = score(said, references, task.recipe.text.target_language)
        beam = task.recipe.decoding.beam
        return [
            f"* BLEU {scores.bleu:.2f} (beam {beam}; `{scores.bleu_signature}`)",
            f"* chrF {scores.chrf:.2f} (beam {beam}; `{scores.chrf_signature}`)",
        ]


class AdaptedTraining(TranslationTraining):
    """Training of a translator that goes on from another one, beside whose scores its own are told.

    Args:
        task: the model to train.
        prepared: the pairs as ids.
        paths: how products are computed.
        begun: the folder of the other one.
    """

    sizes = TranslationTraining.adapted

    def __init__(self, task: Translation, prepared: PreparedPairs, paths: ProductPaths, begun: Path) -> None:
        super().__init__(task, prepared, paths)
        self.begun = begun

    def final_seconds(self, loss: float, text: float) -> float:
        """Twice as long: of both models."""
        return 2 * super().final_seconds(loss, text)

    def finish(self, task: Task, should_stop: ShouldStop) -> list[str]:
        """Those of the finished model; and of the one before, searched alike, on the same pairs."""
        lines, begun = super().finish(task, should_stop), load(self.begun, str(task.device))
        assert isinstance(begun, Translation)
        before = super().finish(Translation(self.task.recipe, begun.assets, begun.model), should_stop)
        return [*lines, *(f"{line} before, of the model that it began from" for line in before)]


def scan_pairs(
    learned: Sequence[Corpus[TextPair]],
    validation: Corpus[TextPair] | None,
    tell: Tell,
    despite_check: bool = False,
    processes: Callable[[], int] = lambda: 1,
) -> tuple[DataScan[PairScan], int]:
    """Scan parallel corpora, report suspicious data, and refuse data that cannot be learned from; counts the pairs.

    Raises:
        RegardError: something in the data would spoil the model, or cannot be read.
    """
    scans = [PairScan(corpus).run(processes=processes) for corpus in learned]
    held_out = PairScan(validation).run(processes=processes) if validation is not None else None
    drafts = [draft for scan in scans for draft in scan.drafts(0, None)]
    report = report_pairs(scans, {"the validation pairs": held_out} if held_out else {}, drafts)
    report.announce(tell, despite_check)
    return DataScan(scans, held_out), report.pairs


def ignore_message(text: str) -> None:
    """Tells nobody."""


@dataclass(frozen=True)
class TranslationJob(TrainingJob):
    """Translation from corpora of sentence pairs.

    Args:
        scanned: the corpora.
        tell: receives what the vocabulary shows of the data.
        despite_check: only tell what would be refused.
    """

    scanned: DataScan[PairScan]
    tell: Tell = ignore_message
    despite_check: bool = False
    task = Translation
    training: ClassVar[type[TranslationTraining]] = TranslationTraining
    opened = PreparedPairs

    @classmethod
    def of_files(cls, given: InputFiles, asked: RecipeFor, tell: Tell, despite_check: bool) -> TranslationJob:
        """The job on files of parallel texts."""
        learned = open_corpora(given.source, given.target, given.pairs, given.columns)
        refuse_pipes([*given.source, *given.target, *given.pairs])
        left, right = ([path] if path else [] for path in (given.valid_source, given.valid_target))
        validation = open_corpora(left, right)[0] if left or right else None
        refuse_pipes([*left, *right])
        recipe = asked(1)
        refuse_weights(recipe.data.weights, len(learned))
        if given.begun:
            refuse_languages(recipe.text, given.begun.vocabularies.languages)
        scanned, pairs = scan_pairs(learned, validation, tell, despite_check, given.processes)
        return cls(asked(pairs), scanned, tell, despite_check, pretrained=given.begun)

    def prepare(self, folder: Path, progress: Progress) -> PreparedPairs:
        """The pairs as ids."""
        recipe = self.recipe
        self.scanned.refuse_unreadable("sentence pairs")

        def make_split() -> Split:
            return split_pairs(self.scanned.hashes_B2, recipe.data.validation, recipe.seed)

        held_out = self.scanned.validation is not None
        more = {} if held_out else {"data.validation": recipe.data.validation}
        examples: SplitCorpora[TextPair] = SplitCorpora(self.scanned, None if held_out else make_split, more)
        text, usual = recipe.text, Text()  # what came later counts only where it is used, so that older folders fit
        names = ["vocabulary", "joint", "normalisation", "sample", "bpe_dropout"]
        names += [name for name in ("units", "lowercase") if getattr(text, name) != getattr(usual, name)]
        names += ["segmentations"] if text.bpe_dropout else []
        names += LANGUAGES if self.pretrained and self.pretrained.vocabularies.languages else ()
        rests = {f"text.{name}": getattr(text, name) for name in names} | (self.more() if self.pretrained else {})
        return PreparedPairs(
            prepare(examples, recipe, folder, self._learn, rests, progress, self._review, self.processes)
        )

    def _learn(self, examples: SplitCorpora[TextPair]) -> PairEncoder:
        """Learn the vocabularies from a seeded sample, unless a model has them; judge the data by them."""
        text = self.recipe.text
        counter, judged = count_sample(examples, text, JUDGED, self.recipe.seed, self.processes)
        vocabularies = self.pretrained.vocabularies if self.pretrained else counter.learn(text.vocabulary)
        self._announce(draft.finding for draft in vocabulary_drafts(None, list(enumerate(judged)), vocabularies))
        return PairEncoder(vocabularies, self.recipe)

    def _review(self, left_out: LeftOut, pairs: int) -> None:
        """Refuse data most of which is too long."""
        count, places = left_out.counts["too long"], left_out.examples.get("too long", [])
        finding = pattern_draft("too long", count, pairs, (), {"limit": self.recipe.data.max_tokens}).finding
        if finding.severity == "fatal":
            file, _, line = places[0].rpartition(":")
            self._announce([replace(finding, examples=((file, int(line), ""),))])

    def _announce(self, findings: Iterable[Finding]) -> None:
        announce((finding.overrule() if self.despite_check else finding for finding in findings), self.tell)

    def assets(self, prepared: PreparedPairs) -> Vocabularies:
        """The vocabularies learned from them, or those of the model to go on from."""
        found = self.pretrained.vocabularies if self.pretrained else prepared.vocabularies
        return replace(found, doubted_below=0.0)

    def teach(self, task: Task, prepared: Any, paths: ProductPaths) -> TranslationTraining:
        """The training task; of a model that goes on it scores that one too."""
        assert isinstance(task, Translation)
        if self.pretrained is None:
            return self.training(task, prepared, paths)
        return AdaptedTraining(task, prepared, paths, self.pretrained.folder)


def refuse_languages(text: Text, known: LanguageTokens | None) -> None:
    """Refuse languages that a translator of several does not know, or that nobody names.

    Raises:
        UsageError: so it is.
    """
    if known is None:
        return
    told = dict(zip(ARGUMENTS, (text.source_language, text.target_language), strict=True))
    for argument in ARGUMENTS[0 if known.begins else 1 :]:
        if told[argument] == UNKNOWN_LANGUAGE:
            raise UsageError("the model knows several languages; say which it is to be", argument)
        known.find(told[argument], argument)

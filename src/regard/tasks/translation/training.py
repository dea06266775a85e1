"""Training of translators: data, validation, and scores of the best model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from regard.config import Text
from regard.data.batches.texts import PairBatches
from regard.data.checks.findings import Finding, announce, pattern_draft
from regard.data.checks.pairs import PairScan, vocabulary_drafts
from regard.data.corpora.corpus import Progress, TextPair
from regard.data.corpora.scan import DataScan
from regard.data.prepare.division import count_sample
from regard.data.prepare.encoders import PairEncoder
from regard.data.prepare.folder import PreparedPairs
from regard.data.prepare.preparation import LeftOut, prepare
from regard.data.prepare.split import Split, SplitCorpora, split_pairs
from regard.tasks.metrics.bleu import score
from regard.tasks.protocols import ShouldStop, Task
from regard.tasks.training import model_writer
from regard.tasks.training.base import ProductPaths, TrainingJob
from regard.tasks.training.defaults import size_for
from regard.tasks.translation.teacher_forcing import TeacherForcing, final_outputs
from regard.tasks.translation.translator import Translation
from regard.text.tokenizers.vocabulary import Vocabularies

JUDGED = 10_000
"""Pairs by which a vocabulary is judged."""


class TranslationTraining(TeacherForcing[Translation]):
    """Training task of translation; its first score is BLEU."""

    @property
    def epochs(self) -> int:
        """By the table of sizes."""
        return size_for(self.size).epochs

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
        return model_writer.score_lines(scores, task.recipe.decoding.beam)


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
    tell: Callable[[str], None] = ignore_message
    despite_check: bool = False
    task: ClassVar[type[Any]] = Translation
    opened: ClassVar[type[Any]] = PreparedPairs
    unread: ClassVar[tuple[Any, ...]] = (DataScan([]),)

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
        rests = {f"text.{name}": getattr(text, name) for name in names}
        return PreparedPairs(
            prepare(examples, recipe, folder, self._learn, rests, progress, self._review, self.processes)
        )

    def _learn(self, examples: SplitCorpora[TextPair]) -> PairEncoder:
        """Learn the vocabularies from a seeded sample, and judge the data by them."""
        text = self.recipe.text
        counter, judged = count_sample(examples, text, JUDGED, self.recipe.seed, self.processes)
        vocabularies = counter.learn(text.vocabulary)
        self._announce(draft.finding for draft in vocabulary_drafts(None, list(enumerate(judged)), vocabularies))
        return PairEncoder(vocabularies, self.recipe)

    def _review(self, left_out: LeftOut, pairs: int) -> None:
        """Refuse data most of which is too long."""
        count, places = left_out.counts["too long"], left_out.examples.get("too long", [])
        finding = pattern_draft("too long", count, pairs, (), self.recipe.data.max_tokens).finding
        if finding.severity == "fatal":
            file, _, line = places[0].rpartition(":")
            self._announce([replace(finding, examples=((file, int(line), ""),))])

    def _announce(self, findings: Iterable[Finding]) -> None:
        announce((finding.overrule() if self.despite_check else finding for finding in findings), self.tell)

    def assets(self, prepared: PreparedPairs) -> Vocabularies:
        """The vocabularies learned from them."""
        return replace(prepared.vocabularies, doubted_below=0.0)

    def teach(self, task: Task, prepared: PreparedPairs, paths: ProductPaths) -> TranslationTraining:
        """Teacher forcing on the pairs."""
        assert isinstance(task, Translation)
        return TranslationTraining(task, PairBatches(prepared, task.recipe), prepared, paths)

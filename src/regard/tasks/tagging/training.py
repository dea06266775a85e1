"""Training of taggers: data, loss, validation, and temperature fitting at the end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from regard.data.batches.batch import pack_sources
from regard.data.batches.texts import Examples, TextBatch, WordMarks, text_lengths
from regard.data.checks.labels import TagScan, detect_scheme, report_tags
from regard.data.corpora.corpus import Progress
from regard.data.corpora.scan import DataScan
from regard.data.prepare import split
from regard.data.prepare.folder import PreparedExamples
from regard.data.prepare.windowing import Frame, TagEncoder, word_parts
from regard.nn import ops
from regard.nn.layout import Sequences
from regard.tasks.assets import FittedValues
from regard.tasks.metrics import calibration
from regard.tasks.metrics.labels import TagScores, tag_scores
from regard.tasks.protocols import InputFiles, ShouldStop
from regard.tasks.tagging.tagger import TagAssets, Tagging, decode_tags, head_of, word_scores
from regard.tasks.text.preparation import (
    learned_tokenizer,
    prepare_texts,
    prepared_assets,
    segmented_sides,
    uses_bpe_dropout,
)
from regard.tasks.training.base import BaseTraining, ProductPaths, RecipeFor, Tell, TrainingJob, held_out
from regard.tasks.training.defaults import MORE, SizeDefaults, Values
from regard.text.counts import counted
from regard.text.tags import Scheme, TaggedWords, inventory, spans_of, split_tag
from regard.training.objective import Done, Loss, Sample, Validation, ignore_progress, mean_loss, predict
from regard.training.world import ALONE, World

SAMPLES = 3
"""Texts shown at a validation."""
LARGEST = 100_000
"""Words that a temperature is fitted to."""
_TAGS: Values = {"text": {"vocabulary": 3000}, "training": {"tokens": 512}, "model": {"word_features": 1 << 15}}
_CHAINED: Values = {**_TAGS, "training": {"tokens": 1024, "rate": 3e-3, "ema": 0.99}, "tagging": {"crf": True}}


@dataclass(frozen=True)
class FoundTags:
    """Predictions for the validation words, packed."""

    score_RC: NDArray[np.float32]
    gold_R: NDArray[np.int64]
    lengths_B: NDArray[np.int64]
    counts_W: NDArray[np.int64]
    """Words of each window."""
    loss: float
    """In nats a word."""


class TaggingTraining(BaseTraining[Tagging]):
    """Training task of tagging.

    Args:
        task: the model to train.
        prepared: texts as ids, and the marks of their words.
        paths: how products are computed.
    """

    sizes = (
        SizeDefaults(8_000, "tagger-rnn", 6, _CHAINED, SizeDefaults(8_000, "tagger-tiny", 25, _TAGS)),
        SizeDefaults(100_000, "tagger-rnn", 6, _CHAINED, SizeDefaults(100_000, "tagger-tiny", 17, _TAGS)),
        SizeDefaults(MORE, "tagger-tiny", 4, {**_TAGS, "text": {"vocabulary": 8000}, "training": {}}),
    )

    def __init__(self, task: Tagging, prepared: PreparedExamples, paths: ProductPaths) -> None:
        super().__init__(task, prepared, paths, prepared.count)
        sides = segmented_sides(prepared, task.recipe, tagged=True)
        self.examples = Examples.of(*sides, task.recipe.training.shard_tokens)
        self.batches = self.examples.feed(task.recipe, prepared.fingerprint, self.examples.plain)
        self.names = (*task.assets.labels, *prepared.own["others"])

    def loss(self, batch: TextBatch) -> Loss:
        """The loss of a batch's words; those with unknown tags are ignored."""
        score_RC, marks = word_scores(self.task, batch)
        return self._loss(score_RC, marks, self.task.recipe.training.label_smoothing if self.model.training else 0.0)

    def _loss(self, score_RC: Tensor, marks: WordMarks, smoothing: float) -> Loss:
        known_R, counts_B = marks.known_words(len(self.task.assets.labels))
        device = score_RC.device
        score = score_RC[torch.from_numpy(known_R).to(device)]
        labels = torch.from_numpy(marks.tags_R[known_R]).to(device)
        sequences = Sequences.end_to_end(counts_B.tolist(), device)
        return Loss(*head_of(self.model).chain.loss(score, labels, sequences, smoothing), len(labels))

    @torch.no_grad()
    def validate(self, generate: bool, world: World = ALONE) -> Validation:
        """Loss and scores of the validation texts, in full precision, their tags chosen as in use."""
        found = self.predict_validation(world=world)
        tags_R, _ = decode_tags(head_of(self.model).chain, found.score_RC, found.lengths_B, self.task.device)
        return Validation(found.loss, self._scores(found, tags_R).values, self._samples(found, tags_R))

    def predict_validation(self, done: Done = ignore_progress, world: World = ALONE) -> FoundTags:
        """Every validation text through the model as it is."""
        batches = self.validation
        marks = [WordMarks.of(batch.text, batch.labels_X) for batch in batches]
        with torch.no_grad(), ops.using(self.model, self.paths.exact):
            read = predict(batches, lambda batch: word_scores(self.task, batch)[0], world, done)
            pairs = list(zip(read, marks, strict=True))
            loss = mean_loss(pairs, lambda pair: self._loss(*pair, 0.0), world)
        counts_W = np.concatenate([one.counts_B for one in marks])
        more_W = np.concatenate([one.more_B for one in marks])
        return FoundTags(
            torch.cat(read).float().cpu().numpy(),
            np.concatenate([one.tags_R for one in marks]),
            text_lengths(counts_W, more_W),
            counts_W,
            loss,
        )

    def _scores(self, found: FoundTags, tags_R: NDArray[np.int64]) -> TagScores:
        names, ends = np.array(self.names), found.lengths_B.cumsum()[:-1]
        gold, said = ([part.tolist() for part in np.split(names[side], ends)] for side in (found.gold_R, tags_R))
        return tag_scores(gold, said, self.task.assets.scheme)

    @cached_property
    def validation(self) -> list[TextBatch]:
        """The validation texts, packed."""
        prepared = self.prepared
        return replace(self.examples, text=prepared.validation_text, labels=prepared.validation_labels).all()

    def _samples(self, found: FoundTags, tags_R: NDArray[np.int64]) -> tuple[Sample, ...]:
        windows = len(found.counts_W)
        ends = found.counts_W.cumsum()
        samples = []
        for place in np.linspace(0, windows - 1, min(SAMPLES, windows)).astype(np.int64).tolist():
            words = self._words(place)
            mine = slice(int(ends[place] - found.counts_W[place]), int(ends[place]))
            sides = ([self.names[tag] for tag in side[mine]] for side in (found.gold_R, tags_R))
            samples.append(Sample("".join(words), *(self._sample_text(words, side) for side in sides)))
        return tuple(samples)

    def _words(self, place: int) -> list[str]:
        """The words of a validation window, each with the white space before it."""
        ids = self.prepared.validation_text.sentence(place)
        marks = WordMarks.of(pack_sources([ids]), self.prepared.validation_labels.sentence(place))
        spans = zip(marks.starts_R, marks.starts_R + marks.lengths_R, strict=True)
        return self.task.assets.tokenizer.decode_batch([ids[begin:end].tolist() for begin, end in spans])

    def _sample_text(self, words: list[str], names: list[str]) -> str:
        if self.task.assets.scheme == "none":
            return " ".join(f"{word.strip()}/{name}" for word, name in zip(words, names, strict=True))
        spans = spans_of(names, self.task.assets.scheme)
        return "; ".join(f"{label}: {''.join(words[begin:end]).strip()}" for begin, end, label in spans) or "(none)"

    def data_lines(self) -> list[str]:
        """How many texts and tags there are."""
        scheme, labels = self.task.assets.scheme, self.task.assets.labels
        written = "a tag for each word" if scheme == "none" else f"spans written as {scheme.upper()}"
        learned, held_out = self.prepared.wholes, self.prepared.validation_wholes
        counts = f"{learned.format_count('texts to learn from')}, {held_out.format_count('to validate on')}"
        return [f"{counts}, {counted(len(labels), 'tag')} ({written})"]

    def finish(self, task: Tagging, should_stop: ShouldStop) -> list[str]:
        """Fit a temperature on the validation words, if decoded independently; returns the scores as card lines."""
        teaching = TaggingTraining(task, self.prepared, self.paths)
        found = teaching.predict_validation()
        known_R = found.gold_R < len(task.assets.labels)
        if not task.recipe.tagging.crf and known_R.any():
            some = np.flatnonzero(known_R)[:LARGEST]
            heat = calibration.temperature(found.score_RC[some].astype(np.float64), found.gold_R[some])
            task.assets = replace(task.assets, fitted=FittedValues(heat))
        heat = task.assets.fitted.temperature
        tags_R, sure_R = decode_tags(head_of(task.model).chain, found.score_RC, found.lengths_B, task.device, heat)
        calibrated = calibration.calibration_lines(sure_R, tags_R == found.gold_R, heat)
        return [f"* {line}" for line in (*teaching._scores(found, tags_R).card_lines(), *calibrated)]


@dataclass(frozen=True)
class TaggingJob(TrainingJob):
    """Tagging from scanned corpora of tagged texts.

    Args:
        scanned: the corpora, and which tags they hold.
    """

    scanned: DataScan[TagScan]
    task = Tagging
    training = TaggingTraining

    @classmethod
    def of_files(cls, given: InputFiles, asked: RecipeFor, tell: Tell, despite_check: bool) -> TaggingJob:
        """The job on files of tagged texts."""
        learned, validation = given.corpora(cls.task.open_corpus)
        scheme = asked(1).tagging.scheme
        scanned = DataScan.of(learned, validation, scan=TagScan)
        report = report_tags(scanned.learned, None if scheme == "auto" else scheme, held_out(scanned, "texts"))
        report.announce(tell, despite_check)
        recipe = asked(report.pairs, uses_bpe_dropout(asked(1), report.pairs, given.begun))
        return cls(recipe, scanned, pretrained=given.begun)

    def prepare(self, folder: Path, progress: Progress) -> PreparedExamples:
        """The texts as ids, and the marks of their words."""
        rests = {f"tagging.{name}": getattr(self.recipe.tagging, name) for name in ("scheme", "stride")}
        return prepare_texts(
            self.scanned, self.recipe, folder, self._learn, {**rests, **self.more()}, progress, processes=self.processes
        )

    def _learn(self, examples: split.Examples[TaggedWords]) -> TagEncoder:
        """The scheme and tags of all corpora; tokenizer and encoder from the training examples."""
        recipe, learned = self.recipe, dict[str, None]()
        every = dict.fromkeys(tag for scan in self.scanned.every for tag in scan.tags)
        wanted, found = recipe.tagging.scheme, detect_scheme(self.scanned.learned)
        scheme: Scheme = wanted if wanted != "auto" else "bio" if found == "iob1" else found

        def texts() -> Iterator[str]:
            """Texts as they will be encoded: a line break keeps the pieces of two words apart."""
            for words in examples.train_examples():
                learned.update(dict.fromkeys(words.tags))
                yield "\n".join(word_parts(words))

        tokenizer = learned_tokenizer(recipe.text, texts(), self.pretrained)
        tags = inventory(_labels(learned, scheme), scheme)
        others = [tag for tag in inventory(_labels(every, scheme), scheme) if tag not in tags]
        frame = Frame.of(tokenizer, recipe.data.max_tokens, recipe.tagging.stride)
        return TagEncoder(tokenizer, frame, scheme, tags, others)

    def assets(self, prepared: PreparedExamples) -> TagAssets:
        """Tokenizer, tags and scheme."""
        found = prepared_assets(prepared, self.pretrained)
        labels, scheme = tuple(prepared.own["labels"]), prepared.own["scheme"]
        return TagAssets(found.tokenizer, labels, scheme=scheme, seen=found.seen)


def _labels(tags: dict[str, None], scheme: Scheme) -> list[str]:
    """The labels of tags, in order; under ``none`` the tags themselves."""
    if scheme == "none":
        return sorted(tags)
    return sorted({label for letter, label in map(split_tag, tags) if letter != "O"})

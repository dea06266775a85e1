"""Training of text-to-text models: data, validation for all prefixes together, and final scores for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import nn

from regard.config import Recipe
from regard.data.corpora.corpus import Progress
from regard.data.corpora.scan import DataScan, Scan
from regard.data.prepare.folder import PreparedExamples
from regard.data.prepare.split import Examples
from regard.data.prepare.windowing import DocumentEncoder
from regard.models.transformer import Transformer
from regard.system.errors import Option, UsageError
from regard.tasks.assets import AnswerAssets, read_prefixes
from regard.tasks.language.training import GUESSING, RunningTextJob
from regard.tasks.metrics.bleu import exact_match, score, score_answers
from regard.tasks.protocols import InputFiles, ShouldStop
from regard.tasks.text.preparation import Pretrained, learned_tokenizer, prepare_texts, prepared_assets, segmented_sides
from regard.tasks.training.base import ProductPaths, RecipeFor, Tell, TrainingJob
from regard.tasks.training.defaults import MORE, SizeDefaults, Values
from regard.tasks.translation.text_to_text.corpus import (
    NAMED,
    PrefixedEncoder,
    PrefixedPair,
    PreparedPrefixed,
    PreparedSpans,
    task_prefixes,
    with_prefix,
)
from regard.tasks.translation.text_to_text.writer import TextToText, start_in
from regard.tasks.translation.training import TeacherForcing, final_outputs
from regard.text.counts import counted
from regard.text.tokenizers.vocabulary import AnyTokenizer

SENTINELS = 100
"""As many as T5 has."""
_TEXTS: Values = {"text": {"vocabulary": 4000}, "training": {"tokens": 1024, "label_smoothing": 0.0}}
_SPANNED: Values = {"data": {"max_tokens": 128}, "training": {**GUESSING, "tokens": 512, "select": "loss"}}


class TextToTextTraining(TeacherForcing[TextToText]):
    """Training task of text to text; its first score is the share of exact outputs.

    Args:
        task: the model to train.
        prepared: the data.
        paths: how products are computed.
    """

    prepared: PreparedPrefixed
    sizes: ClassVar[Sequence[SizeDefaults]] = (
        SizeDefaults(10_000, "t5-tiny", 60, _TEXTS),
        SizeDefaults(100_000, "t5-tiny", 30, _TEXTS),
        SizeDefaults(MORE, "t5-tiny", 10, _TEXTS),
    )
    spans = (SizeDefaults(MORE, "t5-tiny", 10, _SPANNED),)

    def __init__(self, task: TextToText, prepared: PreparedPrefixed, paths: ProductPaths) -> None:
        segmented = segmented_sides(prepared, task.recipe)[0] if task.recipe.text.bpe_dropout else None
        super().__init__(task, prepared, paths, segmented)

    @property
    def max_extra(self) -> int:
        """As of a translator; or of the longest validation text, which need not be like what is read."""
        most = super().max_extra
        return min(max(most, self.prepared.validation_target.longest), max(most, self.task.recipe.decoding.max_extra))

    def scores(self, hypotheses: Sequence[str], references: Sequence[str]) -> Mapping[str, float]:
        found = score(hypotheses, references, samples=1)
        return {"exact": exact_match(hypotheses, references), "bleu": found.bleu}

    def data_lines(self) -> list[str]:
        """How many pairs there are, and how many of the validation pairs have each prefix."""
        pairs = self.prepared.pairs, self.prepared.validation_source.count
        lines = ["{:,} pairs of texts to learn from, {:,} to validate on".format(*pairs)]
        prefixes = Counter(one.prefix for one in self.prepared.validation_examples())
        if set(prefixes) == {""}:
            return lines
        named = ", ".join(f"{prefix or 'none'} ({count:,})" for prefix, count in prefixes.most_common(NAMED))
        return [*lines, f"prefixes of the latter: {named}{', …' if len(prefixes) > NAMED else ''}"]

    def finish(self, task: TextToText, should_stop: ShouldStop) -> list[str]:
        """Exact match, BLEU and ROUGE-L on the validation pairs, searched as it will be used."""
        examples = [one for one in self.prepared.validation_examples() if not one.is_empty]
        sources, targets = [with_prefix(one.source, one.prefix) for one in examples], [one.target for one in examples]
        said = [one.text for one in final_outputs(task, partial(task.nbest, sources), targets, should_stop)]
        found = score_answers(said, targets, [one.prefix for one in examples])
        return [f"* {line}" for line in (f"beam {task.recipe.decoding.beam}", *found.lines())]


class SpansTraining(TextToTextTraining):
    """The same from running text, which reads about four tokens for each that it writes."""

    sizes = TextToTextTraining.spans


class TextToTextBase(TrainingJob):
    """Text to text, from pairs or from running text."""

    task = TextToText
    training = TextToTextTraining

    def begin(self, model: nn.Module, assets: Any) -> None:
        """As of any task; what began the outputs of the pretrained model becomes the piece that begins those here."""
        super().begin(model, assets)
        if self.pretrained is None:
            return
        assert isinstance(model, Transformer)
        before, now = (start_in(one, self.pretrained.tokenizer) for one in (self.pretrained.recipe, self.recipe))
        with torch.no_grad():
            table_VD = model.decoder.input.tokens.weight
            table_VD[now] = table_VD[before]


@dataclass(frozen=True)
class TextToTextJob(TextToTextBase):
    """Text to text from corpora of prefixed pairs; from another model, where it is named.

    Args:
        scanned: the corpora.
    """

    scanned: DataScan[Scan[PrefixedPair]]
    opened = PreparedPrefixed

    @classmethod
    def of_files(cls, given: InputFiles, asked: RecipeFor, tell: Tell, despite_check: bool) -> TrainingJob:
        """The job on files of pairs, of which only the encoding is checked: they may be anything to each other.

        Or on running text, where the recipe says so.
        """
        if asked(1).text_to_text.spans:
            return SpansJob.of_files(given, asked, tell, despite_check)
        learned, validation = given.corpora(cls.task.open_corpus)
        scanned: DataScan[Scan[PrefixedPair]] = DataScan.of(learned, validation)
        for note in (note for scan in scanned.every for note in scan.corpus.notes):
            if note.invalid:
                tell(note.message)
        pairs = sum(scan.count for scan in scanned.learned)
        tell(counted(pairs, "pair"))
        return cls(asked(pairs), scanned, pretrained=given.begun)

    @classmethod
    def of_prepared(cls, recipe: Recipe, pretrained: Pretrained | None = None) -> Any:
        """The job in a process that reads only what another has prepared; of running text it is another."""
        spans = recipe.text_to_text.spans
        return SpansJob.of_prepared(recipe, pretrained) if spans else super().of_prepared(recipe, pretrained)

    def prepare(self, folder: Path, progress: Progress) -> PreparedPrefixed:
        """The pairs as ids."""
        recipe = self.recipe

        def learn(examples: Examples[PrefixedPair]) -> PrefixedEncoder:
            counts = Counter[str]()

            def texts() -> Iterator[str]:
                for one in examples.train_examples():
                    if not one.is_empty:
                        counts[one.prefix] += 1
                    yield from (with_prefix(one.source, one.prefix), one.target)

            tokenizer = learned_tokenizer(recipe.text, texts(), self.pretrained, symbols=())
            prefixes = task_prefixes(prefix for prefix, _ in counts.most_common())
            return PrefixedEncoder(tokenizer, recipe.data.max_tokens, prefixes)

        prepare_texts(self.scanned, recipe, folder, learn, self.more(), progress, "pairs", self.processes)
        return PreparedPrefixed(folder)

    def assets(self, prepared: PreparedPrefixed) -> AnswerAssets:
        """The tokenizer, and the prefixes, also those of a model of this task that it begins from."""
        prefixes, begun = prepared.prefixes, self.pretrained
        if begun is not None and begun.recipe.info.learns_from == "prefixed":
            before = read_prefixes(begun.folder)
            prefixes = task_prefixes((*prefixes, *before)) if prefixes and before else ()
        found = prepared_assets(prepared, begun)
        return AnswerAssets(found.tokenizer, seen=found.seen, prefixes=prefixes, doubted_below=0.0)


@dataclass(frozen=True)
class SpansJob(TextToTextBase, RunningTextJob):
    """Text to text from running text; from another model, where it is named."""

    training = SpansTraining
    symbols = tuple(f"<extra_{number}>" for number in range(SENTINELS))

    @staticmethod
    def encoder(tokenizer: AnyTokenizer, recipe: Recipe) -> DocumentEncoder:
        """Pieces alone.

        Raises:
            UsageError: the pretrained model's vocabulary has no sentinels.
        """
        if len(tokenizer.sentinels) < 2:
            raise UsageError("its vocabulary has no symbols for missing spans, like <extra_0>", Option("start_from"))
        return DocumentEncoder(tokenizer, ended=False)

    def open(self, folder: Path) -> PreparedSpans:
        """The data that was prepared in a folder."""
        return PreparedSpans(folder, self.recipe)

    def prepare(self, folder: Path, progress: Progress) -> PreparedSpans:
        """The documents as ids."""
        super().prepare(folder, progress)
        return self.open(folder)

    def assets(self, prepared: PreparedExamples) -> AnswerAssets:
        """The tokenizer."""
        found = super().assets(prepared)
        return AnswerAssets(found.tokenizer, seen=found.seen, doubted_below=0.0)

    teach = TrainingJob.teach
    """Of pairs, so their number is the size, not the characters."""

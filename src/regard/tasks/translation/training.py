"""Training on pairs of texts by teacher forcing, and of translators: loss, validation that writes, final scores."""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
import torch
from torch import Tensor

from regard.config import Recipe, Text, TransformerSection
from regard.data.batches.batch import PairBatch
from regard.data.batches.sampler import refuse_weights
from regard.data.batches.texts import PairBatches
from regard.data.checks.findings import Finding, announce, pattern_draft
from regard.data.checks.pairs import PairScan, report_pairs, vocabulary_drafts
from regard.data.corpora.corpus import Corpus, Progress, TextPair
from regard.data.corpora.pairs import open_corpora
from regard.data.corpora.scan import DataScan
from regard.data.prepare.encoders import PairEncoder
from regard.data.prepare.folder import PreparedPairs, sha256_of
from regard.data.prepare.preparation import LeftOut, count_sample, count_words, prepare
from regard.data.prepare.shards import Side
from regard.data.prepare.split import Split, SplitCorpora, split_each, split_pairs
from regard.decoding.hypotheses import Rows, Trace
from regard.models.inputs import Pairs, pairs
from regard.nn import ops
from regard.nn.loss import SmoothedCrossEntropy
from regard.system.errors import Option, UsageError
from regard.tasks.engine import use_engine
from regard.tasks.protocols import InputFiles, ShouldStop, Task, refuse_pipes
from regard.tasks.text.preparation import LANGUAGES
from regard.tasks.text.writer import Hypothesis
from regard.tasks.training.base import BaseTraining, ProductPaths, RecipeFor, StoppableTrace, Tell, TrainingJob
from regard.tasks.training.defaults import MORE, SizeDefaults
from regard.tasks.translation.languages import find_directions
from regard.tasks.translation.translator import Translation
from regard.text.confidence import NOT_CALIBRATED
from regard.text.language_tokens import Direction, LanguageTokens
from regard.text.tokenizers.vocabulary import Vocabularies
from regard.training.objective import Done, Loss, Sample, Validation, ignore_progress, mean_loss
from regard.training.world import ALONE, World

if TYPE_CHECKING:
    from regard.data.alignment.links import Links
    from regard.data.alignment.prepared import PreparedLinks
    from regard.data.prepare.placeholders import PairPlaceholders
    from regard.tasks.translation.guided import GuidedAlignment
    from regard.tasks.translation.text_to_text.writer import TextToText

SAMPLES = 3
"""Sample translations shown at a validation."""
MAX_EXTRA = 16
"""Tokens an output may have more than its source while validating: a young model does not know when to stop."""
JUDGED = 10_000
"""Pairs by which a vocabulary is judged."""
BEAMS = 1.5
"""Times greedy search that each hypothesis of a beam takes: of five it was 1.4."""
OFTEN = 10_000
"""How often each placeholder counts when pieces are learned, so that it becomes one."""
_BASE = {"rate": 7e-4, "warmup": 4000}


AnyWriter = TypeVar("AnyWriter", bound="Translation | TextToText")


class TeacherForcing(BaseTraining[AnyWriter]):
    """Training on pairs of texts [Vaswani17 §5].

    Args:
        task: the model to train, with its recipe and vocabularies.
        prepared: the pairs as ids.
        paths: how products are computed.
        segmented: sources that are drawn anew in every epoch, in the place of the prepared ones.
    """

    batches: PairBatches

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
        return self.target_loss(batch, inputs, self.task.model(inputs))

    def target_loss(self, batch: PairBatch, inputs: Pairs, hidden_TD: Tensor) -> Loss:
        """The smoothed loss of the decoder's output for a batch."""
        model = self.task.model
        self.criterion.train(model.training)
        total, nll = self.criterion(*model.projection(hidden_TD), inputs.labels_T, inputs.weight_T, model.pieces)
        return Loss(total, nll, batch.tokens)

    @torch.no_grad()
    def validate(self, generate: bool, world: World = ALONE) -> Validation:
        """Loss on all validation pairs; scores of greedy search on the first few hundred; in full precision."""
        with ops.using(self.model, self.paths.exact):
            loss = self.predict_validation(world=world)
            if not math.isfinite(loss):  # nothing can be searched for then
                return Validation(loss)
            places = self._places(generate)
            each = -(-len(places) // world.shards)  # in as many groups as a step has shards
            groups = [places[first : first + each] for first in range(0, len(places), each)]
            found = world.divide(groups, lambda some: json.dumps([one.text for one in self._greedy(some)]).encode())
            hypotheses = [text for one in found for text in json.loads(one)]
            texts = self._texts(places)
        samples = tuple(
            Sample(source, reference, hypothesis)
            for (source, reference), hypothesis in list(zip(texts, hypotheses, strict=True))[:SAMPLES]
        )
        if not generate:
            return Validation(loss, samples=samples)
        references = [reference for _, reference in texts]
        held = self.prepared.validation_source.count
        searched = f"all {held:,}" if len(places) == held else f"{len(places):,} of the {held:,}"
        scores = dict(self.scores(hypotheses, references))
        return Validation(loss, scores, samples, f"{searched} validation pairs, greedy")

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
                    self._greedy(self._places(False))
            elif math.isfinite(mean_loss(self.batches.validation[:1], self.loss, ALONE)):
                places = self._places(True)
                self._greedy(places, ValidationSearch(self._target_tokens(places), done))

    def predict_validation(self, done: Done = ignore_progress, world: World = ALONE) -> float:
        """Nats a token of all validation pairs."""
        return mean_loss(self.batches.validation, self.loss, world, done)

    def _places(self, generate: bool) -> Sequence[int]:
        """Which validation texts are searched for."""
        count = self.task.recipe.training.validation_sentences if generate else SAMPLES
        return range(min(count, self.prepared.validation_source.count))

    def _texts(self, places: Sequence[int]) -> list[TextPair]:
        found: list[TextPair] = self.prepared.validation_pairs()
        return [found[place] for place in places]

    def _greedy(self, places: Sequence[int], trace: Trace | None = None) -> list[Hypothesis]:
        found = self.nbest(self.task, places, beam=1, max_extra=self.max_extra, trace=trace, scores=False)
        return [best[0] for best in found]

    def nbest(self, task: AnyWriter, places: Sequence[int], **asked: Any) -> list[list[Any]]:
        """What a model writes for some of the validation texts, searched as is asked."""
        return task.nbest([source for source, _ in self._texts(places)], **asked)

    def _target_tokens(self, places: Sequence[int]) -> int:
        return int(self.prepared.validation_target.lengths(0, np.array(places, np.int64)).sum())

    def final_seconds(self, loss: float, text: float) -> float:
        """Estimated seconds of final scoring: greedy search scaled to all validation pairs and the beam."""
        held, beam = self.prepared.validation_source.count, self.task.recipe.decoding.beam
        tokens = self._target_tokens(range(held)) / max(1, self._target_tokens(self._places(True)))
        return (text - loss) * tokens * (BEAMS * beam if beam > 1 else 1)


def final_outputs(
    task: Translation | TextToText,
    nbest: Callable[..., list[list[Any]]],
    references: Sequence[str],
    should_stop: ShouldStop,
) -> list[Any]:
    """What the finished model writes for the validation texts; below which confidence it is doubted goes to its assets.

    Args:
        task: the model.
        nbest: its search for all of them.
        references: what it should write.
        should_stop: asked at every step.

    Raises:
        Stopped: ``should_stop`` returned true.
    """
    from regard.tasks.metrics.calibration import doubted_below

    use_engine(task)
    best = [found[0] for found in nbest(trace=StoppableTrace(should_stop))]
    right = [one.text.strip() == wanted.strip() for one, wanted in zip(best, references, strict=True)]
    task.assets = replace(task.assets, doubted_below=doubted_below([one.confidence for one in best], right))
    return best


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

    def __init__(self, task: Translation, prepared: PreparedPairs, paths: ProductPaths) -> None:
        super().__init__(task, prepared, paths)
        self.guided: GuidedAlignment | None = None
        if weight := task.recipe.training.guided_alignment:
            from regard.tasks.translation.guided import GuidedAlignment  # few trainings need it

            layers = getattr(task.recipe.model, "decoder_layers", 1)
            self.guided = GuidedAlignment(weight, links_of(prepared), prepared.vocabularies, layers)

    def loss(self, batch: PairBatch) -> Loss:
        """The same; in training with that of the head that is guided, if one is."""
        if self.guided is None or not self.model.training:
            return super().loss(batch)
        inputs = pairs(batch, self.task.device)
        hidden_TD, guided = self.guided.forward(self.model, inputs, batch)
        found = self.target_loss(batch, inputs, hidden_TD)
        return replace(found, total=found.total + guided)

    def scores(self, hypotheses: Sequence[str], references: Sequence[str]) -> Mapping[str, float]:
        """BLEU and chrF; of several directions their means, and the BLEU of each."""
        from regard.tasks.metrics.bleu import score

        found = {}
        for pair, rows in self._by_direction(self._places(True)).items():
            said, wanted = ([texts[row] for row in rows] for texts in (hypotheses, references))
            found[pair] = score(said, wanted, (pair or self.task.direction)[1], samples=1)
        means = {name: fmean(getattr(one, name) for one in found.values()) for name in ("bleu", "chrf")}
        return means | {f"bleu {'-'.join(pair)}": one.bleu for pair, one in found.items() if pair}

    def _by_direction(self, places: Sequence[int]) -> dict[Direction | None, list[int]]:
        """Which of these validation texts are of each direction."""
        found = dict[Direction | None, list[int]]()
        for row, place in enumerate(places):
            found.setdefault(self.prepared.held_directions[place], []).append(row)
        return found

    def _places(self, generate: bool) -> Sequence[int]:
        """As many of each direction, the first of them."""
        seen, ranks = Counter[Direction | None](), list[int]()
        for pair in self.prepared.held_directions:
            ranks.append(seen[pair])
            seen[pair] += 1
        count = len(super()._places(generate))
        return sorted(range(len(ranks)), key=ranks.__getitem__)[:count]

    def nbest(self, task: Translation, places: Sequence[int], **asked: Any) -> list[list[Any]]:
        """As of any model, each direction by itself."""
        found = dict[int, list[Any]]()
        for pair, rows in self._by_direction(places).items():
            some = [places[row] for row in rows]
            found |= zip(some, super().nbest(task.in_direction(pair) if pair else task, some, **asked), strict=True)
        return [found[place] for place in places]

    def data_lines(self) -> list[str]:
        """How many pairs there are, and of several directions which."""
        pairs = self.prepared.pairs, self.prepared.validation_source.count
        lines = ["{:,} sentence pairs to learn from, {:,} to validate on".format(*pairs)]
        sizes = Counter[Direction]()
        for pair, size in zip(self.prepared.directions, self.prepared.sizes, strict=False):
            sizes[pair] += size
        named = ", ".join(f"{' → '.join(pair)} ({size:,})" for pair, size in sizes.items())
        return [*lines, f"Directions: {named}."] if sizes else lines

    def finish(self, task: Translation, should_stop: ShouldStop) -> list[str]:
        """BLEU and chrF on the validation pairs, searched as it will be used."""
        from regard.tasks.translation.calibration import calibrate

        texts, places = self.prepared.validation_pairs(), range(self.prepared.validation_source.count)
        sources, references = ([pair[side] for pair in texts] for side in (0, 1))
        best = final_outputs(task, partial(self.nbest, task, places), references, should_stop)
        own = (task.in_direction(pair) if pair else task for pair in self.prepared.held_directions)
        found = zip(own, sources, references, best, strict=True)
        task.assets = replace(task.assets, calibration=calibrate(found, StoppableTrace(should_stop).record))
        beam, lines, tables = task.recipe.decoding.beam, list[str](), list[str]()
        outputs = [one.text for one in best]
        for pair, rows in self._by_direction(places).items():
            head, known = f"{' → '.join(pair)}: " if pair else "", task.in_direction(pair) if pair else task
            read, said, wanted = ([given[row] for row in rows] for given in (sources, outputs, references))
            scores = known.measure(read, said, wanted)
            for name, value, interval, signature in scores.measures:
                span = f"; 95 %: {interval[0]:.1f} to {interval[1]:.1f}" if interval else ""
                lines.append(f"* {head}{name} {value:.2f} (beam {beam}; `{signature}`{span})")
            lines.append(f"* {head}{scores.breakdown.shares}")
            tables += ("\n" + table.markdown().rstrip() for table in scores.breakdown.tables(head))
        return [*lines, *self._lines_by_corpus(outputs, references), *tables]

    def _lines_by_corpus(self, outputs: Sequence[str], references: Sequence[str]) -> Iterator[str]:
        """The scores of each corpus of the validation pairs, where several are of one direction."""
        from regard.tasks.metrics.bleu import score

        begin, held, directions = 0, self.prepared.held_of, self.prepared.held_directions
        if len(held) <= len(set(directions)):
            return
        short = [" and ".join(Path(path).name for path in name.split(" and ")) for name, _ in held]
        names = short if len(set(short)) == len(short) else [name for name, _ in held]
        for name, (_, count) in zip(names, held, strict=True):
            some, direction = slice(begin, begin + count), directions[begin] or self.task.direction
            found = score(outputs[some], references[some], direction[1], samples=1)
            yield f"* of {name} alone ({count:,} pairs): BLEU {found.bleu:.2f}, chrF {found.chrf:.2f}"
            begin += count


def links_of(prepared: PreparedPairs, given: Iterable[Links] | None = None) -> PreparedLinks:
    """The word links of prepared pairs; where they are not there yet, these, or they are learned."""
    from regard.data.alignment.prepared import PreparedLinks  # few trainings need it

    return PreparedLinks.of(prepared.folder, prepared, prepared.vocabularies, given)


class AdaptedTraining(TranslationTraining):
    """Training of a translator that goes on from another one, beside whose scores its own are told."""

    sizes = TranslationTraining.adapted

    def final_seconds(self, loss: float, text: float) -> float:
        """Twice as long: of both models."""
        return 2 * super().final_seconds(loss, text)

    def finish_begun(self, read: Callable[[], Task], should_stop: ShouldStop) -> list[str]:
        """The scores of the model that it began from, searched alike, on the same pairs."""
        begun = read()
        assert isinstance(begun, Translation)
        lines = self.finish(Translation(self.task.recipe, begun.assets, begun.model), should_stop)
        return [f"{line} before, of the model that it began from" for line in lines if line[0] == "*"]


def scan_pairs(
    learned: Sequence[Corpus[TextPair]],
    validation: Sequence[Corpus[TextPair]],
    tell: Tell,
    despite_check: bool = False,
    processes: Callable[[], int] = lambda: 1,
    links: Sequence[Path] = (),
) -> tuple[DataScan[PairScan], int]:
    """Scan parallel corpora, and files of their links, report suspicious data, and refuse what cannot be learned from.

    It counts the pairs.

    Raises:
        RegardError: something in the data would spoil the model, or cannot be read.
    """
    scans = [PairScan(corpus).run(processes=processes) for corpus in learned]
    held_out = [PairScan(corpus).run(processes=processes) for corpus in validation]
    for scan, path in zip(scans, links, strict=False):
        scan.read_links(path)
    drafts = [draft for scan in scans for draft in scan.drafts(0, None)]
    several = len(held_out) > 1
    named = {f"the validation pairs{f' of {scan.corpus.name}' if several else ''}": scan for scan in held_out}
    report = report_pairs(scans, named, drafts)
    report.announce(tell, despite_check)
    return DataScan(scans, held_out[0] if held_out else None, held_out[1:]), report.pairs


def _links(given: InputFiles, recipe: Recipe) -> list[Path]:
    """The files of links.

    Raises:
        UsageError: they do not go with the others, or guide nothing.
    """
    from regard.data.alignment.files import open_links  # few trainings need it

    if not recipe.training.guided_alignment:
        raise UsageError("guides nothing without the setting training.guided_alignment=0.05", Option("alignment"))
    if recipe.text.tags:
        raise UsageError("counts words without placeholders; leave out text.tags", Option("alignment"))
    refuse_pipes(given.alignment)
    return open_links(given.alignment, given.source, given.pairs)


def ignore_message(text: str) -> None:
    """Tells nobody."""


@dataclass(frozen=True)
class TranslationJob(TrainingJob):
    """Translation from corpora of sentence pairs.

    Args:
        scanned: the corpora.
        tell: receives what the vocabulary shows of the data.
        despite_check: only tell what would be refused.
        directions: the languages of each corpus, where they differ; those of validation last.
        links: files of word links, one for each corpus.
    """

    scanned: DataScan[PairScan]
    tell: Tell = ignore_message
    despite_check: bool = False
    directions: tuple[Direction, ...] = ()
    links: tuple[Path, ...] = ()
    task = Translation
    training: ClassVar[type[TranslationTraining]] = TranslationTraining
    opened = PreparedPairs

    @classmethod
    def of_files(cls, given: InputFiles, asked: RecipeFor, tell: Tell, despite_check: bool) -> TranslationJob:
        """The job on files of parallel texts."""
        learned = open_corpora(given.source, given.target, given.pairs, given.columns)
        refuse_pipes([*given.source, *given.target, *given.pairs])
        left, right = given.valid_source, given.valid_target
        validation = open_corpora(left, right) if left or right else []
        refuse_pipes([*left, *right])
        recipe = asked(1)
        refuse_weights(recipe.data.weights, len(learned))
        links = _links(given, recipe) if given.alignment else []
        scanned, pairs = scan_pairs(learned, validation, tell, despite_check, given.processes, links)
        directions, usual = find_directions(learned, validation, recipe.text, given.begun)
        said = asked(pairs)
        text = said.text.model_copy(update=dict(zip(LANGUAGES, usual, strict=True)))
        said = said.model_copy(update={"text": text})
        if said.data.temperature and (said.data.weights or not directions):
            message = "draws directions, of which there are several, in the place of weights"
            raise UsageError(message, "data.temperature")
        return cls(said, scanned, tell, despite_check, directions, tuple(links), pretrained=given.begun)

    def prepare(self, folder: Path, progress: Progress) -> PreparedPairs:
        """The pairs as ids."""
        recipe = self.recipe
        self.scanned.refuse_unreadable("sentence pairs")

        def make_split() -> Split:
            hashes_B2, count = self.scanned.hashes_B2, recipe.data.validation
            if self.directions:
                return split_each(hashes_B2, [scan.count for scan in self.scanned.learned], count, recipe.seed)
            return split_pairs(hashes_B2, count, recipe.seed)

        held_out = self.scanned.validation is not None
        more: dict[str, object] = {} if held_out else {"data.validation": recipe.data.validation}
        more |= {"the directions": [list(pair) for pair in self.directions]} if self.directions else {}
        split = None if held_out else make_split
        examples: SplitCorpora[TextPair] = SplitCorpora(self.scanned, split, more, self.directions)
        text, usual = recipe.text, Text()  # what came later counts only where it is used, so that older folders fit
        names = ["vocabulary", "joint", "normalisation", "sample", "bpe_dropout"]
        names += [name for name in ("units", "lowercase") if getattr(text, name) != getattr(usual, name)]
        names += ["segmentations"] if text.bpe_dropout else []
        names += [name for name in ("extend_vocabulary", "tags") if getattr(text, name)]
        names += LANGUAGES if self.pretrained and self.pretrained.vocabularies.languages else ()
        rests = {f"text.{name}": getattr(text, name) for name in names} | (self.more() if self.pretrained else {})
        if self.links:
            rests["alignment"] = [sha256_of(path) for path in self.links]
        found = PreparedPairs(
            prepare(examples, recipe, folder, self._learn, rests, progress, self._review, self.processes)
        )
        if recipe.training.guided_alignment:
            given = None
            if self.links:
                from regard.data.alignment.files import read_links  # few trainings need it

                given = read_links(examples, self.links, PairEncoder(found.vocabularies, recipe))
            links_of(found, given)
        return found

    def _learn(self, examples: SplitCorpora[TextPair]) -> PairEncoder:
        """Learn the vocabularies from a seeded sample, unless a model has them; judge the data by them."""
        text, known = self.recipe.text, self.pretrained.vocabularies if self.pretrained else None
        sides = text.model_copy(update={"joint": known.joint}) if known else text  # Marian: two models for one table
        counter, judged = count_sample(examples, sides, JUDGED, self.recipe.seed, self.processes)
        if text.tags:
            from regard.text.placeholders import SIGNS  # few trainings need it

            counter.add([TextPair(sign, sign) for sign in SIGNS] * OFTEN)
        learned = self.directions[: len(examples.corpora)]
        written = dict.fromkeys(target for _, target in learned)
        symbols = [f">>{code}<<" for code in written]  # as Marian's models of several have them
        vocabularies = known or counter.learn(text.vocabulary, symbols)
        if text.extend_vocabulary:
            vocabularies = counter.extend(vocabularies, text.extend_vocabulary)
        if written and not self.pretrained:
            ids = {code: vocabularies.source.names.index(name) for code, name in zip(written, symbols, strict=True)}
            from regard.text.language_ngrams import LanguageNgrams  # few trainings need it

            ngrams = LanguageNgrams.of(count_words(examples))
            tokens = LanguageTokens(ids, False, tuple(dict.fromkeys(learned)))
            vocabularies = replace(vocabularies, languages=tokens, ngrams=ngrams)
        self._announce(draft.finding for draft in vocabulary_drafts(None, list(enumerate(judged)), vocabularies))
        return PairEncoder(vocabularies, self.recipe, learned, self._placeholders(examples, vocabularies))

    def _placeholders(self, examples: SplitCorpora[TextPair], vocabularies: Vocabularies) -> PairPlaceholders | None:
        """What puts them into pairs, if any shall have some."""
        share = self.recipe.text.tags
        if not share:
            return None
        from regard.data.prepare.placeholders import PairPlaceholders
        from regard.text.placeholders import SIGNS

        for one in vocabularies.files.values():
            if one.decode(one.encode(SIGNS).ids) != SIGNS:
                raise UsageError(
                    "the vocabulary of the model to go on from lacks their signs; leave it out", "text.tags"
                )
        return PairPlaceholders(share, self.recipe.seed, examples.train_examples())

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
        found = prepared.vocabularies
        if self.pretrained:
            begun = self.pretrained.vocabularies
            likely = None if self.recipe.text.extend_vocabulary else begun.shortlist  # further pieces are on no list
            found = replace(begun, source=found.source, target=found.target, shortlist=likely)
        if (known := found.languages) and known.directions:
            every = dict.fromkeys([*known.directions, *prepared.directions])
            found = replace(found, languages=replace(known, directions=tuple(every)))
        return replace(found, doubted_below=0.0, calibration=NOT_CALIBRATED)

    def teach(self, task: Task, prepared: Any, paths: ProductPaths) -> BaseTraining[Any]:
        """The training task; of a model that goes on it scores that one too."""
        assert isinstance(task, Translation)
        if self.pretrained:
            return AdaptedTraining(task, prepared, paths)
        return self.training(task, prepared, paths)

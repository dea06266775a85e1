"""``regard evaluate``: scores of a model on a test set, by its task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from regard.cli.io.load_model import check_threads, open_model, refuse_given, refuse_no_file
from regard.cli.io.terminal import result, result_json, say_invalid_lines
from regard.system.errors import RegardError, UsageError
from regard.text.counts import counted
from regard.text.terminal import visible, width

if TYPE_CHECKING:
    from regard.data.corpora.corpus import Corpus
    from regard.tasks.classification.classifier import ClassEvaluation
    from regard.tasks.metrics.bleu import TranslationScores
    from regard.tasks.metrics.labels import Counts, TagScores
    from regard.tasks.protocols import Divide, Task

Scored = tuple[Mapping[str, object], list[str]]
"""Scores as plain values, and as lines."""
OF_LABELS = ("test", "columns", "threshold")
OPTIONS: dict[str, tuple[str, ...]] = {
    "translation": ("source", "reference", "beam", "lowercase"),
    "text-to-text": ("test", "columns", "beam"),
    "classification": OF_LABELS,
    "sentence-pairs": OF_LABELS,
    "tagging": ("test", "columns"),
    "language-model": ("test", "columns", "stride"),
    "masked-lm": ("test", "columns"),
    "image-classification": OF_LABELS,
}
"""The options that not all tasks have, of each."""
WIDEST = 40
"""Most characters of a label's column."""
SHOWN = 5
"""Most labels named in a sentence."""


@Parameter(name="*")
@dataclass(frozen=True)
class EvaluateOptions:
    """The options of ``regard evaluate``, of all tasks.

    Args:
        source: sentences to translate.
        reference: what they should become, line by line.
        test: a file that any other model is tested on: labelled texts or images, tagged texts, or running text.
        columns: where things stand in it, as regard train has it.
        beam: hypotheses kept while searching; default: the recipe's.
        lowercase: score without regard to case (the signature says so).
        threshold: a text whose best label is less probable is out of scope; default: what was fitted.
        stride: new tokens of each window in which a language model reads a long text; fewer take longer, and leave each
            more before it; default: all are new.
        json: print one JSON object.
        device: cpu, cuda ...
        threads: processor threads.
        processes: that compute the examples, each with one thread; default: as many as there are free
            cores, and two at least; one where --threads is given. The scores do not depend on how many.
    """

    source: Path | None = None
    reference: Path | None = None
    test: list[Path] | None = None
    columns: str | None = None
    beam: int | None = None
    lowercase: bool = False
    threshold: float | None = None
    stride: int | None = None
    json: bool = False
    device: str | None = None
    threads: int | None = None
    processes: int | None = None

    def both(self) -> tuple[Path, Path]:
        """Source and reference.

        Raises:
            UsageError: one is missing.
        """
        if self.source is None or self.reference is None:
            missing = "--source" if not self.source else "--reference"
            raise UsageError(f"give both --source FILE and --reference FILE; {missing} is missing")
        return self.source, self.reference

    @contextmanager
    def corpus(self, opened: Callable[[Path, str | None], Corpus[Any]]) -> Iterator[Corpus[Any]]:
        """The test set; invalid UTF-8 lines are reported at the end.

        Raises:
            UsageError: there is none, more than one, or it does not exist.
        """
        if not self.test:
            raise UsageError("nothing to score on: give --test FILE", "--test")
        if len(self.test) > 1:
            raise UsageError(f"{len(self.test)} test sets were given; score them one by one", "--test")
        (path,) = self.test
        refuse_no_file(path)
        corpus = opened(path, self.columns)
        yield corpus
        for notes in corpus.notes:
            say_invalid_lines(str(path), notes)


NO_OPTIONS = EvaluateOptions()


def evaluate(folder: Annotated[Path, Parameter(name="DIR")], /, *, options: EvaluateOptions = NO_OPTIONS) -> int:
    """Score a model on a test set.

    A translator by BLEU and chrF of sacreBLEU, each with its signature and a 95 % confidence interval; a text-to-text
    model by exact match, BLEU and ROUGE-L, for each prefix and overall; a classifier by accuracy, F1 and how far its
    probabilities can be trusted; a tagger by F1 of spans or accuracy of tags; a language model by perplexity; a
    masked-language model by the loss of what is hidden, drawn by seed as in the validation of its training.

    Args:
        folder: the model folder.
    """
    if options.threshold is not None and not 0 <= options.threshold <= 1:
        raise UsageError(f"{options.threshold:g} is no probability; give 0 to 1", "--threshold")
    if not options.test:
        if options.source is None and options.reference is None:
            raise UsageError("nothing to score on: give --test FILE, or of a translator --source and --reference")
        options.both()
    check_threads(options.processes, "--processes")
    task = open_model(folder, options.device, options.threads, "evaluate")
    mine = OPTIONS[task.info.name]
    every = dict.fromkeys(name for names in OPTIONS.values() for name in names)
    instead = "give --test" if "test" in mine else "give --source and --reference"
    others = [name for name in every if name not in mine]
    refuse_given(options, f"is not for {task.info.noun}; {instead}", *others)
    values, lines = _score(task, options)
    if options.json:
        result_json(values)
    else:
        result("\n".join(lines))
    return 0


def _score(task: Task, asked: EvaluateOptions) -> Scored:
    """The scores of a model of any task."""
    from regard.runs.workers.processes import answer_processes, divider
    from regard.tasks.kinds import answers_text, continues_text, fills_words, labels_examples, tags_words, translates
    from regard.tasks.model_folder import corpus_opener

    divided = partial(divider, partial(answer_processes, asked.processes, asked.threads, task.device_name))
    if translates(task):
        from regard.text.lines import InvalidLines, matching_lines

        paths, notes = asked.both(), (InvalidLines(), InvalidLines())
        sources, references = matching_lines(*paths, notes)
        for path, mended in zip(paths, notes, strict=True):
            say_invalid_lines(str(path), mended)
        bleu = task.evaluate(sources, references, beam=asked.beam, lowercase=asked.lowercase, divide=divided())
        return bleu.to_dict(), bleu_lines(bleu)
    if continues_text(task) or fills_words(task):
        with asked.corpus(partial(_documents, task)) as corpus:
            return _score_running_text(task, corpus, asked.stride, divided(block=1))
    with asked.corpus(corpus_opener(task.info.name)) as corpus:
        if answers_text(task):
            answers = task.evaluate(corpus, asked.beam, divide=divided())
            return answers.to_dict(), answers.lines()
        if labels_examples(task):
            labels = task.evaluate(corpus, asked.threshold, divided())
            return labels.to_dict(), class_lines(labels)
        assert tags_words(task)
        tags = task.evaluate(corpus, divided())
        return tags.to_dict(), tag_lines(tags)


def _score_running_text(task: Task, corpus: Corpus[Any], stride: int | None, divide: Divide) -> Scored:
    """The scores of predicting running text, or masked tokens in it."""
    from regard.tasks.kinds import continues_text, fills_words

    if continues_text(task):
        texts = [text for text in _whole_documents(corpus) if text.strip()]
        if not texts:
            raise RegardError("nothing to score: there is no text", corpus.name)
        found = task.perplexity(texts, stride, divide)
        nats = found.nats / max(1, found.tokens)
        return found.to_dict(), [
            f"perplexity of a token {found.per_token:.2f}  ({counted(found.tokens, 'token')}, {nats:.4f} nats each)",
            f"perplexity of a word {found.per_word:.2f}  ({counted(found.words, 'word')})",
            f"bits a byte {found.bits_per_byte:.4f}  ({counted(found.bytes, 'byte')})",
        ]
    from regard.tasks.language.training import evaluate_corpus

    assert fills_words(task)
    guesses = evaluate_corpus(task, corpus, divide)
    return guesses.to_dict(), [
        f"loss {guesses.loss:.4f} nats a hidden token  ({counted(guesses.tokens, 'token')})",
        f"perplexity of a hidden token {guesses.perplexity:.2f}",
        f"guessed right {guesses.accuracy:.2f} %  ({guesses.right:,})",
    ]


def _documents(task: Task, path: Path, key: str | None) -> Corpus[Any]:
    """A file as running text, in the format of the task's training data."""
    from regard.data.corpora.documents import open_documents, refuse_columns

    corpus = open_documents(path, task.recipe.data.documents, key or "text")
    refuse_columns(key, [corpus])
    return corpus


def _whole_documents(corpus: Corpus[Any]) -> Iterator[str]:
    """The documents of a corpus, joined where it yields a long one in parts."""
    parts: list[str] = []
    for text, continues in corpus.examples():
        parts.append(text)
        if not continues:
            yield "".join(parts)
            parts = []
    if parts:
        yield "".join(parts)


def bleu_lines(scores: TranslationScores) -> list[str]:
    """Scores of a translator."""
    lines = []
    for name, value, interval, signature in (
        ("BLEU", scores.bleu, scores.bleu_interval, scores.bleu_signature),
        ("chrF", scores.chrf, scores.chrf_interval, scores.chrf_signature),
    ):
        span = f"  (95 %: {interval[0]:.1f} to {interval[1]:.1f})" if interval else ""
        lines.append(f"{name} {value:5.2f}{span}  {signature}")
    return lines


def class_lines(found: ClassEvaluation) -> list[str]:
    """Scores of a classifier."""
    from regard.tasks.metrics.labels import ClassScores, LabelScores

    scores = found.scores
    if isinstance(scores, ClassScores):
        right = f"{int(scores.confusion_CC.trace()):,} of {scores.texts:,}"
        lines = [f"accuracy {scores.accuracy:.2f}  ({right})", f"macro F1 {scores.macro_f1:.2f}"]
    elif isinstance(scores, LabelScores):
        lines = [
            f"F1 {scores.micro.f1:.2f}  (precision {scores.micro.precision:.2f}, recall {scores.micro.recall:.2f})",
            f"macro F1 {scores.macro_f1:.2f}",
            f"all labels right {scores.exact:.2f}",
        ]
    else:
        lines = [
            f"root of the mean squared error {scores.mean_squared_error**0.5:.4g}  ({counted(scores.texts, 'text')})",
            f"Pearson's correlation {scores.pearson:.4f}",
            f"Spearman's correlation {scores.spearman:.4f}",
        ]
    if found.calibration_error is not None:
        lines.append(f"calibration error {found.calibration_error:.3f}")
    if scope := found.scope:
        outside = f": recall {scope.recall:.2f}, F1 {scope.f1:.2f}" if scope.recall or scope.f1 else ""
        lines.append(
            f"out of scope below probability {scope.value:.3f}{outside}; in scope {scope.in_scope_accuracy:.2f}, "
            f"all {scope.accuracy:.2f} treated rightly"
        )
    if found.unknown:
        names = sorted(found.unknown, key=lambda label: -found.unknown[label])
        listed = ", ".join(map(visible, names[:SHOWN])) + (", …" if len(names) > SHOWN else "")
        count = sum(found.unknown.values())
        lines.append(f"{count:,} have a label that nothing was learned of, and count as wrong: {listed}")
    if found.unlabelled:
        lines.append(f"{found.unlabelled:,} have no label, and are left out")
    if found.empty:
        lines.append(f"{found.empty:,} are empty, and are left out")
    if not isinstance(scores, ClassScores | LabelScores):
        return lines
    lines += ["", *table(scores.classes, "label", "there")]
    if isinstance(scores, ClassScores) and (confused := scores.confusions()):
        pairs = (f"{visible(label)} as {visible(said)} {count:,}" for label, said, count in confused)
        lines += ["", f"taken for another most often: {'; '.join(pairs)}"]
    return lines


def tag_lines(scores: TagScores) -> list[str]:
    """Scores of a tagger."""
    lines = [f"accuracy of tags {scores.accuracy:.2f}  ({counted(scores.words, 'word')})"]
    if scores.spans is None:
        return lines
    parts = {"F1": scores.spans.spans, "F1 of boundaries alone": scores.spans.boundaries}
    if scores.spans.surface:
        parts["F1 of surface forms"] = scores.spans.surface
    told = [
        f"{name} {counts.f1:.2f}  (precision {counts.precision:.2f}, recall {counts.recall:.2f})"
        for name, counts in parts.items()
    ]
    return [*told, *lines, "", *table(scores.spans.types, "type", "there")]


def table(rows: Mapping[str, Counts], what: str, there: str) -> list[str]:
    """Precision, recall, F1 and support of each label; labels neither present nor predicted are left out."""
    from regard.text.terminal import fit

    kept = {visible(label): counts for label, counts in rows.items() if counts.gold or counts.predicted}
    room = min(WIDEST, max([width(what), *map(width, kept)], default=0))
    lines = [f"{fit(what, room)}  precision  recall      F1  {there:>7}"]
    for label, counts in kept.items():
        scores = f"{counts.precision:9.2f}  {counts.recall:6.2f}  {counts.f1:6.2f}  {counts.gold:7,}"
        lines.append(f"{fit(label, room)}  {scores}")
    return lines

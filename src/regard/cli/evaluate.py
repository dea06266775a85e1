"""``regard evaluate``: scores of a model on a test set, by its task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from regard.cli.io.load_model import refuse_no_file
from regard.system.errors import RegardError, UsageError

if TYPE_CHECKING:
    from regard.data.corpora.corpus import Corpus


def evaluate(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *,
    source: Path | None = None,
    reference: Path | None = None,
    test: list[Path] | None = None,
    columns: str | None = None,
    beam: int | None = None,
    lowercase: bool = False,
    threshold: float | None = None,
    stride: int | None = None,
    json: bool = False,
    device: str | None = None,
    threads: int | None = None,
) -> int:
    """Score a model on a test set.

    A translator by BLEU and chrF of sacreBLEU, each with its signature and a 95 % confidence interval; a classifier by
    accuracy, F1 and how far its probabilities can be trusted; a tagger by F1 of spans or accuracy of tags; a language
    model by perplexity; a masked-language model or missing spans by the loss of what is hidden, drawn by seed as in the
    validation of its training.

    Args:
        folder: the model folder.
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
    """
    if threshold is not None and not 0 <= threshold <= 1:
        raise UsageError(f"{threshold:g} is no probability; give 0 to 1", "--threshold")
    asked = EvaluateOptions(source, reference, tuple(test or ()), columns, beam, lowercase, threshold, stride)
    if not asked.test:
        if source is None and reference is None:
            raise UsageError("nothing to score on: give --test FILE, or of a translator --source and --reference")
        asked.both()
    from regard.cli.io.load_model import open_model
    from regard.cli.io.terminal import result, result_json

    task = open_model(folder, device, threads, "evaluate")
    scores, show = EVALUATIONS[task.name](task, asked)
    if json:
        result_json(scores.to_dict())
    else:
        result("\n".join(show(scores)))
    return 0


@dataclass(frozen=True)
class EvaluateOptions:
    """The options of all tasks."""

    source: Path | None
    reference: Path | None
    test: Sequence[Path]
    columns: str | None
    beam: int | None
    lowercase: bool
    threshold: float | None
    stride: int | None

    def both(self) -> tuple[Path, Path]:
        """Source and reference.

        Raises:
            UsageError: one is missing.
        """
        if self.source is None or self.reference is None:
            missing = "--source" if not self.source else "--reference"
            raise UsageError(f"give both --source FILE and --reference FILE; {missing} is missing")
        return self.source, self.reference

    def refuse_elsewhere(self, what: str, instead: str, *names: str) -> None:
        """Raise a UsageError for the first of these options that was given."""
        for name in names:
            if getattr(self, name) not in (None, False, ()):
                raise UsageError(f"is not for {what}; {instead}", f"--{name}")

    @contextmanager
    def corpus(self, opened: Callable[[Path, str | None], Corpus[Any]]) -> Iterator[Corpus[Any]]:
        """The test set; invalid UTF-8 lines are reported at the end.

        Raises:
            UsageError: there is none, more than one, or it does not exist.
        """
        if len(self.test) != 1:
            many = f"{len(self.test)} test sets were given; score them one by one"
            raise UsageError(many if self.test else "nothing to score on: give --test FILE", "--test")
        refuse_no_file(self.test[0])
        from regard.cli.io.terminal import say_invalid_lines

        corpus = opened(self.test[0], self.columns)
        yield corpus
        for notes in corpus.notes:
            say_invalid_lines(str(self.test[0]), notes)


Found = tuple[Any, Callable[[Any], list[str]]]
"""Scores, and a function that formats them as lines."""


def _translation(task: Any, asked: EvaluateOptions) -> Found:
    asked.refuse_elsewhere("a translator", "give --source and --reference", "test", "columns", "threshold", "stride")
    from regard.cli.io.terminal import say_invalid_lines
    from regard.text.lines import InvalidLines, lines

    paths, notes = asked.both(), (InvalidLines(), InvalidLines())
    sources, references = (list(lines(path, mended)) for path, mended in zip(paths, notes, strict=True))
    for path, mended in zip(paths, notes, strict=True):
        say_invalid_lines(str(path), mended)
    if len(sources) != len(references):
        raise RegardError(
            f"has {len(references)} lines, but {paths[0]} has {len(sources)}; they must match line by line",
            str(paths[1]),
        )
    from regard.cli.io.scores import bleu_lines

    return task.evaluate(sources, references, beam=asked.beam, lowercase=asked.lowercase), bleu_lines


OF_TRANSLATORS = ("source", "reference", "beam", "lowercase")


def _classification(task: Any, asked: EvaluateOptions) -> Found:
    asked.refuse_elsewhere("a classifier", "give --test", *OF_TRANSLATORS, "stride")
    from regard.cli.io.scores import class_lines
    from regard.data.corpora.labelled import open_labelled

    with asked.corpus(open_labelled) as corpus:
        return task.evaluate(corpus, asked.threshold), class_lines


def _images(task: Any, asked: EvaluateOptions) -> Found:
    asked.refuse_elsewhere("a classifier of images", "give --test", *OF_TRANSLATORS, "stride")
    from regard.cli.io.scores import class_lines
    from regard.data.corpora.images import open_images

    with asked.corpus(open_images) as corpus:
        return task.evaluate(corpus, asked.threshold), class_lines


def _tagging(task: Any, asked: EvaluateOptions) -> Found:
    asked.refuse_elsewhere("a tagger", "give --test", *OF_TRANSLATORS, "threshold", "stride")
    from regard.cli.io.scores import tag_lines
    from regard.data.corpora.tagged import open_tagged

    with asked.corpus(open_tagged) as corpus:
        return task.evaluate(corpus), tag_lines


def _language_model(task: Any, asked: EvaluateOptions) -> Found:
    asked.refuse_elsewhere("a language model", "give --test", *OF_TRANSLATORS, "threshold")
    from regard.cli.io.scores import perplexity_lines

    with asked.corpus(_documents(task)) as corpus:
        texts = [text for text in _whole_documents(corpus) if text.strip()]
        if not texts:
            raise RegardError("nothing to score: there is no text", corpus.name)
        return task.perplexity(texts, asked.stride), perplexity_lines


def _masked_words(task: Any, asked: EvaluateOptions) -> Found:
    asked.refuse_elsewhere("a masked-language model", "give --test", *OF_TRANSLATORS, "threshold", "stride")
    from regard.tasks.language.masked_training import MaskedLmJob, MaskedLmTraining

    return _score_hidden(task, asked, MaskedLmJob.encoder, MaskedLmTraining.validation_scores)


def _missing_spans(task: Any, asked: EvaluateOptions) -> Found:
    asked.refuse_elsewhere("a span-corruption model", "give --test", *OF_TRANSLATORS, "threshold", "stride")
    from regard.tasks.language.spans_training import SpanCorruptionJob, SpanCorruptionTraining

    return _score_hidden(task, asked, SpanCorruptionJob.encoder, SpanCorruptionTraining.validation_scores)


def _score_hidden(task: Any, asked: EvaluateOptions, coding: Any, scored: Any) -> Found:
    """The scores of predicting hidden tokens in running text."""
    from regard.cli.io.scores import guess_lines
    from regard.tasks.language.scores import evaluate_corpus

    with asked.corpus(_documents(task)) as corpus:
        return evaluate_corpus(task, corpus, coding, scored), guess_lines


def _documents(task: Any) -> Callable[[Path, str | None], Corpus[Any]]:
    """A function that opens a file as running text, in the format of the task's training data."""
    from regard.data.corpora.documents import open_documents, refuse_columns

    def open_corpus(path: Path, key: str | None) -> Corpus[Any]:
        corpus = open_documents(path, task.recipe.data.documents, key or "text")
        refuse_columns(key, [corpus])
        return corpus

    return open_corpus


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


EVALUATIONS: dict[str, Callable[[Any, EvaluateOptions], Found]] = {
    "translation": _translation,
    "classification": _classification,
    "image-classification": _images,
    "tagging": _tagging,
    "language-model": _language_model,
    "masked-lm": _masked_words,
    "span-corruption": _missing_spans,
}
"""The evaluation of each task."""

"""``regard evaluate``: scores of a model on a test set, by its task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from cyclopts import Parameter

from regard.cli.io.input_texts import read_both
from regard.cli.io.load_model import check_threads, open_model, refuse_given, refuse_no_file
from regard.cli.io.terminal import result, result_json, say_invalid_lines
from regard.system.errors import RegardError, UsageError
from regard.text.counts import counted

if TYPE_CHECKING:
    from regard.data.corpora.corpus import Corpus
    from regard.tasks.protocols import Task

Scored = tuple[Mapping[str, object], list[str]]
"""Scores as plain values, and as lines."""
COMMON = ("json", "device", "threads", "processes")
"""The options that all tasks have."""


@Parameter(name="*")
@dataclass(frozen=True)
class EvaluateOptions:
    """The options of ``regard evaluate``, of all tasks.

    Args:
        source: sentences to translate.
        reference: what they should become, line by line.
        from_: of a translator of several languages, the language of the sentences, such as de; default: as the file's
            extension says. One score is of one direction, which training need not have had.
        to: the language of the reference, likewise.
        with_: another model of the same languages and vocabulary, as regard translate and ask have it.
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
    from_: Annotated[str | None, Parameter(name="--from")] = None
    to: str | None = None
    with_: Annotated[list[Path] | None, Parameter(name="--with")] = None
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

    A translator by BLEU and chrF of sacreBLEU, each with its signature and a 95 % confidence interval, also by length
    and by how rare the words are, and the shares of outputs that are empty, copies or loops; a text-to-text
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
    from regard.tasks import model_class

    mine = model_class(task.info.name).evaluate_options
    instead = "give --test" if "test" in mine else "give --source and --reference"
    others = [one.name for one in fields(options) if one.name not in (*mine, *COMMON)]
    refuse_given(options, f"is not for {task.info.noun}; {instead}", *others)
    if options.with_:
        from regard.tasks.text.task import with_models

        more = {path: open_model(path, options.device, options.threads, "evaluate") for path in options.with_}
        task = with_models(task, folder, more)
    values, lines = _score(task, options)
    if task.info.writes == "text" and (known := getattr(task.assets, "terms", None)) and known.entries:
        terms = len(known.entries)
        values = {"terms": terms, **values}
        lines = [f"with {counted(terms, 'term')} of the model folder (regard terms)", *lines]
    if options.json:
        result_json(values)
    else:
        result("\n".join(lines))
    return 0


def _score(task: Task, asked: EvaluateOptions) -> Scored:
    """The scores of a model of any task."""
    from regard.runs.workers.processes import answer_processes, divider
    from regard.tasks import model_class
    from regard.tasks.kinds import continues_text, fills_words, translates

    divided = partial(divider, partial(answer_processes, asked.processes, asked.threads, task.device_name))
    if translates(task):
        from regard.tasks.translation.languages import between_files

        paths = asked.both()
        sources, references = read_both(*paths)
        task = between_files(task, paths, (asked.from_, asked.to))
        bleu = task.evaluate(sources, references, beam=asked.beam, lowercase=asked.lowercase, divide=divided())
        if not (task.assets.languages and task.assets.languages.directions):
            return bleu.to_dict(), bleu.lines()
        direction, unseen = " → ".join(task.direction), task.is_zero_shot
        said = f"{direction}{': not a direction of the training (zero-shot)' if unseen else ''}"
        return {"direction": direction, "zero_shot": unseen, **bleu.to_dict()}, [said, *bleu.lines()]
    kind = model_class(task.info.name)
    found: Any
    running = continues_text(task) or fills_words(task)
    with asked.corpus(partial(_documents, task) if running else kind.open_corpus) as corpus:
        if continues_text(task):
            texts = [text for text in _whole_documents(corpus) if text.strip()]
            if not texts:
                raise RegardError("nothing to score: there is no text", corpus.name)
            found = task.perplexity(texts, asked.stride, divided(block=1))
        elif fills_words(task):
            from regard.tasks.language.training import evaluate_corpus

            found = evaluate_corpus(task, corpus, divided(block=1))
        else:
            own = [getattr(asked, name) for name in kind.evaluate_options if name not in ("test", "columns", "with_")]
            found = cast(Any, task).evaluate(corpus, *own, divide=divided())
        return found.to_dict(), found.lines()


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

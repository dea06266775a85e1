"""``regard check``: checks training data for problems before training."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cyclopts import Parameter

from regard.cli.io.load_model import refuse_given, refuse_no_file
from regard.cli.io.terminal import result, result_json, say
from regard.system.errors import UsageError
from regard.text.counts import counted

if TYPE_CHECKING:
    from regard.data.checks.findings import Report

MARKS = {"fatal": "✗", "warning": "!", "note": "·"}
UNCHECKED = {
    "nothing": "is not trained",
    "documents": "learns from running text, where there is nothing to check",
    "prefixed": "learns from pairs that may be anything to each other, where there is nothing to check",
}
"""Kinds of data that are not checked, and why."""
LISTED = 20
"""Most labels to name."""


@Parameter(name="*")
@dataclass(frozen=True)
class CheckOptions:
    """The options of ``regard check``.

    Args:
        task: what is to be learned: translation, classification, sentence-pairs, tagging or image-classification; in
            running text there is nothing to check.
        train: what another task than translation learns from; may be given several times.
        source: sentences of one language; may be given several times.
        target: their translations.
        alignment: word links of the lines of the source and target files, 0-0 1-2; as many files.
        pairs: a file that holds both sides, TSV, JSONL, TMX, XLIFF or PO; may be given several times.
        columns: where in it: two columns "1,2" of a TSV, two keys "en,de" of a JSONL, two languages "en,de" of a memory
            of more; of --train as regard train says.
        valid: what would be validated on, looked for in the training data.
        test: what would be tested on, looked for in the training data; may be given several times.
        test_source: sentences to test on, looked for in the training data.
        test_target: their translations.
        kind: of labels: single: one a text; multi: any number; regression: a number.
        model: a model folder; words are counted that its vocabulary can only spell in bytes.
        max_tokens: longer pairs would be left out of training.
        json: print one JSON object.
    """

    task: str = "translation"
    train: list[Path] | None = None
    source: list[Path] | None = None
    target: list[Path] | None = None
    alignment: list[Path] | None = None
    pairs: list[Path] | None = None
    columns: str | None = None
    valid: Path | None = None
    test: list[Path] | None = None
    test_source: list[Path] | None = None
    test_target: list[Path] | None = None
    kind: Literal["single", "multi", "regression"] = "single"
    model: Path | None = None
    max_tokens: int = 256
    json: bool = False


NO_OPTIONS = CheckOptions()


def check(*, options: CheckOptions = NO_OPTIONS) -> int:
    """Look for what spoils a corpus, and say whether it can be learned from.

    Empty, misaligned, repeated and over-long lines, odd lengths, control characters, wrong encodings, labels that
    contradict, are rare or missing, and test sentences that stand in the training data, each with file and line.
    Exit 0: usable; 1: not, and stderr says why.
    """
    from regard.config import TASKS

    if options.task not in TASKS or TASKS[options.task].learns_from != "pairs":
        of_translators = ("source", "target", "alignment", "pairs", "test_source", "test_target", "model")
        refuse_given(options, f"is not for this task: task = {options.task} takes --train", *of_translators)
        found = _scan(options)
    else:
        instead = "task = translation takes --source and --target, or name another --task"
        refuse_given(options, f"is not for this task: {instead}", "train", "valid", "test")
        found = _pairs(options)
    if options.json:
        result_json(found.to_dict())
    else:
        result(format_report(found))
    for finding in found.findings[: not found.usable]:  # the worst comes first
        say(f"not usable: {finding.sentence}")
    return 0 if found.usable else 1


def _pairs(options: CheckOptions) -> Report:
    """Check the data of a translator."""
    source, target = options.source or (), options.target or ()
    if bool(source) != bool(target):
        missing = "--target" if source else "--source"
        raise UsageError(f"give both --source FILE and --target FILE; {missing} is missing")
    if options.max_tokens < 2:
        raise UsageError(f"{options.max_tokens} tokens hold no sentence; give 2 or more", "--max-tokens")
    test_source, test_target = options.test_source or (), options.test_target or ()
    from regard.data.alignment.files import open_links
    from regard.data.checks import pairs as report
    from regard.data.corpora.pairs import open_corpora
    from regard.tasks.model_path import with_base
    from regard.text.tokenizers.vocabulary import Vocabularies

    for path in (*source, *target, *(options.alignment or ()), *(options.pairs or ()), *test_source, *test_target):
        _refuse_unusable(path)
    learned = open_corpora(source, target, options.pairs or (), options.columns)
    links = open_links(options.alignment or (), source, options.pairs or ())
    if len(test_source) != len(test_target):
        raise UsageError(f"{len(test_source)} --test-source but {len(test_target)} --test-target; they go in pairs")
    tests = {corpus.name: corpus for corpus in (open_corpora(test_source, test_target) if test_source else ())}
    if options.model is None:
        return report.check_pairs(learned, tests, options.max_tokens, None, links)
    with with_base(options.model) as folder:
        return report.check_pairs(learned, tests, options.max_tokens, Vocabularies.load(folder), links)


def _refuse_unusable(path: Path) -> None:
    """Raise a UsageError for what is no file; a check reads some lines again, which a pipe does not have any more."""
    refuse_no_file(path)
    if not path.is_file():
        raise UsageError("is a pipe or a device, but a check reads more than once; give a file", str(path))


def _scan(options: CheckOptions) -> Report:
    """Check the training, validation and test data of another task."""
    from regard.config import TASKS, nearest
    from regard.tasks import model_class

    task, train, columns = options.task, options.train or [], options.columns
    checked = [info.name for info in TASKS.values() if info.learns_from not in UNCHECKED]
    known = ", ".join(checked)
    if task not in TASKS:
        raise UsageError(f"{task!r} is no task that is looked at.{nearest(task, checked)} Known: {known}", "--task")
    kind = TASKS[task].learns_from
    if kind in UNCHECKED:
        raise UsageError(f"{task} {UNCHECKED[kind]}; known: {known}", "--task")
    if not train:
        raise UsageError("nothing to look at: give --train FILE")
    others = {"validation": [options.valid] if options.valid else [], "test": options.test or []}
    for path in (*train, *(path for paths in others.values() for path in paths)):
        _refuse_unusable(path)
    opened = model_class(task).open_corpus
    named = {
        f"the {name} texts" if len(paths) == 1 else str(path): opened(path, columns)
        for name, paths in others.items()
        for path in paths
    }
    learned = [opened(path, columns) for path in train]
    if kind == "tags":
        from regard.data.checks.labels import check_tags

        return check_tags(learned, None, named)
    from regard.data.checks.labels import ImageScan, LabelScan, check_labels

    return check_labels(learned, options.kind, named, ImageScan if kind == "images" else LabelScan)


def format_report(found: Report) -> str:
    """The report as text: each finding with examples, worst first, and the verdict at the end."""
    from regard.data.checks.findings import percent
    from regard.text.terminal import crop, visible

    lines = []
    for finding in found.findings:
        lines.append(f"{MARKS[finding.severity]} {finding.kind}: {visible(finding.sentence)}")
        for file, line, text in finding.examples:
            place = f"{file}:{line}" if line else file
            lines.append(f"    {visible(place)}" + (f"  {crop(visible(text), 80)}" if text else ""))
    labels: dict[str, int] | None = getattr(found, "labels", None)
    if found.pairs and labels is None:
        means = f"{found.source_characters:.0f} and {found.target_characters:.0f}"
        lines.append(f"{counted(found.pairs, 'pair')}, {means} characters on average.")
    elif found.pairs and labels is not None:
        every = max(1, sum(labels.values()))
        for label, count in list(labels.items())[:LISTED]:
            lines.append(f"    {count:>7,} ({percent(count / every)})  {crop(visible(label), 60)}")
        if len(labels) > LISTED:
            lines.append(f"    … and {counted(len(labels) - LISTED, 'label')} more")
    return "\n".join([*lines, visible(found.verdict)]) + "\n"

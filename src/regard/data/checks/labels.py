"""Checks of labelled texts: empty, duplicate and contradicting examples, rare labels, leaks (``regard check``)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from regard.data.checks.findings import EXAMPLES, Example, Finding, Report, Severity, excerpt, percent, sort_findings
from regard.data.checks.line_patterns import KINDS
from regard.data.checks.scan_labels import LabelScan
from regard.data.corpora.labelled import LabelledRows
from regard.data.corpora.labels import Kind
from regard.data.corpora.pairs import Corpus
from regard.data.corpora.passes import EMPTY_HASH, Progress, no_progress
from regard.system.errors import RegardError

SHOWN = 5
MANY = 50
"""Up to this many labels, swapped text and label columns are not suspected."""


@dataclass(frozen=True)
class LabelReport(Report):
    """A report on labelled texts: ``pairs`` counts texts, ``target_characters`` is the mean length of a label."""

    labels: dict[str, int] = field(default_factory=dict)
    """How often each label occurs, the most frequent first; empty for numbers."""

    @property
    def verdict(self) -> str:
        """Usable or not, and why, in plain words."""
        end = f" {len(self.labels):,} labels." if self.labels and self.usable else ""
        return super().verdict.replace("pairs.", "texts.") + end


def check_labels(
    corpora: Sequence[Corpus],
    kind: Kind = "single",
    others: Mapping[str, Corpus] | None = None,
    progress: Progress = no_progress,
) -> LabelReport:
    """Check labelled texts in one pass; all findings and a verdict.

    Args:
        corpora: the training data.
        kind: whether a text has one label, any number of labels, or a number.
        others: validation and test texts by name, searched for in the training texts.
        progress: reports progress.
    """
    looks, findings = [], []
    for corpus in corpora:
        one = LabelScan(corpus, kind)
        looks.append(one)
        try:
            one.run(progress)
        except RegardError as error:
            findings.append(unreadable_finding(error, one))
        findings += text_findings(one)
    texts = sum(one.count for one in looks)
    labels = sum((one.labels for one in looks), Counter[str]())
    if not texts and not findings:
        empty = tuple((corpus.name, 0, "") for corpus in corpora)
        findings.append(Finding("no texts", "fatal", 0, 1.0, empty, "There are no texts."))
    if texts and not any(finding.kind == "unreadable" for finding in findings):
        findings += _classes(labels, looks, texts) if kind != "regression" else []
        if not any(finding.kind == "too many labels" for finding in findings):
            findings += corpus_findings(looks)
        for name, other in (others or {}).items():
            findings += overlap_findings(name, LabelScan(other, kind), looks, labels, progress)
    means = [sum(getattr(one, size) for one in looks) / max(1, texts) for size in ("characters", "label_characters")]
    return LabelReport(texts, means[0], means[1], sort_findings(findings), dict(labels.most_common()))


def text_findings(one: LabelScan) -> Iterator[Finding]:
    """Findings on single texts."""
    for notes in one.corpus.notes:
        if notes.invalid:
            places = tuple((one.corpus.name, line, "") for line in notes.invalid_lines[:EXAMPLES])
            yield _finding("invalid UTF-8", notes.invalid, one.count, places)
    for kind, count in one.counts.items():
        if kind != "replacement" or not any(notes.invalid for notes in one.corpus.notes):  # else we put it there
            yield _finding(kind, count, one.count, tuple(one.examples[kind]))


def _finding(kind: str, count: int, texts: int, examples: tuple[Example, ...]) -> Finding:
    share = count / max(1, texts)
    said = f"{count:,} texts ({percent(share)})"
    own: dict[str, tuple[Severity, str]] = {
        "empty": (severity_of(share, 0.01, 0.5), f"{said} are empty; they are left out."),
        "no label": (severity_of(share, 0.0, 0.5), f"{said} have no label; they are left out."),
        "not a number": ("fatal", f"{said} have a label that is not a number, which regression needs."),
    }
    if kind in own:
        return Finding(kind, own[kind][0], count, share, examples, own[kind][1])
    sentence = KINDS[kind].sentence.format(count=f"{count:,}", share=percent(share))
    return Finding(kind, KINDS[kind].severity(share), count, share, examples, sentence)


def severity_of(share: float, warning: float, fatal: float) -> Severity:
    """Severity of a share, given the thresholds of a warning and of a fatal finding."""
    return "fatal" if share >= fatal else "warning" if share >= warning else "note"


def _classes(labels: Counter[str], looks: Sequence[LabelScan], texts: int) -> Iterator[Finding]:
    """Findings on the labels of all corpora together."""
    if len(labels) > max(MANY, texts // 2):
        sentence = f"{len(labels):,} labels for {texts:,} texts: are the columns of text and label swapped? Name them."
        yield Finding("too many labels", "fatal", len(labels), 1.0, first_examples(list(labels), looks), sentence)
        return
    if len(labels) < 2 and looks[0].kind == "single":
        sentence = f"All texts have one label, {quote_labels(list(labels))}: there is nothing to classify."
        if labels:
            yield Finding("one label", "fatal", texts, 1.0, first_examples(list(labels), looks), sentence)
    if not labels and looks[0].kind == "multi":
        yield Finding("one label", "fatal", texts, 1.0, (), "No text has a label.")
    yield from _header(labels, looks, texts)
    yield from label_findings(labels, looks, texts)


def _header(labels: Counter[str], looks: Sequence[LabelScan], texts: int) -> Iterator[Finding]:
    """First lines whose label occurs nowhere else although most labels recur: probably a header."""
    heads = [(one, label) for one in looks for label in one.first if one.first[label] == 0 and _from_line_1(one)]
    times = Counter(label for _, label in heads)
    names = [(one, label) for one, label in heads if labels[label] == times[label]]
    recurs = [count > 1 for label, count in labels.items() if labels[label] > times[label]]
    if names and 2 * sum(recurs) > len(recurs):
        said = quote_labels(list(dict.fromkeys(label for _, label in names)))
        sentence = (
            f"Line 1 of {names[0][0].corpus.name} has the label {said}, which no other line has: is line 1 a header? "
            "Name the columns by --columns."
        )
        rows = tuple(one.example(0, label) for one, label in names[:EXAMPLES])
        yield Finding("header", "warning", len(names), len(names) / texts, rows, sentence)


def _from_line_1(one: LabelScan) -> bool:
    """Whether the first line of a table was read as an example, not as its header."""
    return isinstance(one.corpus, LabelledRows) and one.corpus.where(0).endswith(":1")


def label_findings(labels: Counter[str], looks: Sequence[LabelScan], texts: int) -> Iterator[Finding]:
    """Findings on rare labels, and on labels that differ by case or white space only."""
    rare = [label for label, count in labels.items() if count == 1]
    if rare:
        sentence = f"{len(rare):,} labels occur once only: {quote_labels(rare)}. They are hard to learn."
        yield Finding("rare label", "warning", len(rare), len(rare) / texts, first_examples(rare, looks), sentence)
    alike = defaultdict(list)
    for label in labels:
        alike[" ".join(label.split()).casefold()].append(label)
    groups = [group for group in alike.values() if len(group) > 1]
    if groups:
        told = "; ".join(quote_labels(group) for group in groups[:SHOWN])
        count = sum(labels[label] for group in groups for label in group)
        sentence = f"Labels differ by case or white space only, and are treated as different: {told}."
        rows = first_examples([label for group in groups for label in group], looks)
        yield Finding("like labels", "warning", count, count / texts, rows, sentence)


def quote_labels(labels: Sequence[str]) -> str:
    """The first few of these labels, quoted."""
    return ", ".join(repr(excerpt(label)) for label in labels[:SHOWN]) + (", …" if len(labels) > SHOWN else "")


def first_examples(labels: Sequence[str], looks: Sequence[LabelScan]) -> tuple[Example, ...]:
    """First occurrence of each of the first few labels."""
    found = []
    for label in labels[:EXAMPLES]:
        one = next(one for one in looks if label in one.first)
        found.append(one.example(one.first[label], label))
    return tuple(found)


def corpus_findings(looks: Sequence[LabelScan]) -> Iterator[Finding]:
    """Findings over all texts together: duplicates, and equal texts with different labels."""
    hashes = np.concatenate([one.hashes() for one in looks])
    filled = hashes[:, 0] != EMPTY_HASH
    if looks[0].kind == "regression" and len(hashes) > 1 and len(np.unique(hashes[:, 1])) == 1:
        sentence = "All texts have the same number: there is nothing to learn."
        yield Finding("one label", "fatal", len(hashes), 1.0, _examples(np.arange(1), looks), sentence)
    _, first, number = np.unique(hashes[:, 0], return_index=True, return_inverse=True)
    differs = (hashes[:, 1] != hashes[first[number], 1]) & filled
    at_odds = np.isin(number, number[differs])
    again = filled & ~at_odds
    again[first] = False
    total = len(hashes)
    if (count := int(at_odds.sum())) > 0:
        share = count / total
        texts = len(np.unique(number[at_odds]))
        sentence = f"{count:,} lines ({percent(share)}) give {texts:,} texts different labels: the labels contradict."
        order = np.flatnonzero(at_odds)
        order = order[np.argsort(number[order], kind="stable")]
        yield Finding(
            "conflict", severity_of(share, 0.0, 0.5), count, share, _examples(order[: 2 * EXAMPLES], looks), sentence
        )
    if (count := int(again.sum())) > 0:
        share = count / total
        sentence = f"{count:,} texts ({percent(share)}) repeat an earlier one; they count more than once."
        examples = _examples(np.flatnonzero(again)[:EXAMPLES], looks)
        yield Finding("duplicate", severity_of(share, 0.1, 0.9), count, share, examples, sentence)


def _examples(numbers: NDArray[np.int64], looks: Sequence[LabelScan]) -> tuple[Example, ...]:
    """These texts, numbered over all corpora, in this order."""
    ends = np.cumsum([one.count for one in looks])
    found: dict[int, Example] = {}
    for place, one in enumerate(looks):
        begin = int(ends[place]) - one.count
        mine = sorted(int(number) for number in numbers if begin <= number < ends[place])
        found |= dict(zip(mine, one.read_again([number - begin for number in mine]), strict=True))
    return tuple(found[int(number)] for number in numbers)


def overlap_findings(
    name: str,
    one: LabelScan,
    looks: Sequence[LabelScan],
    labels: Counter[str],
    progress: Progress,
    noun: str = "texts",
) -> Iterator[Finding]:
    """Findings on a validation or test set: texts that are in the training data, labels that are not.

    Args:
        name: of the texts, for the sentences.
        one: not run yet.
        looks, labels: scans of the training data, and its labels.
        progress: reports progress.
        noun: what has a label.
    """
    try:
        one.run(progress)
    except RegardError as error:
        yield unreadable_finding(error, one)
        return
    trained = np.concatenate([other.hashes()[:, 0] for other in looks])
    texts = one.hashes()[:, 0]
    shared = np.isin(texts, trained) & (texts != EMPTY_HASH)
    if (count := int(shared.sum())) > 0:
        share = count / max(1, one.count)
        said = f"{count:,} texts ({percent(share)}) of {name}"
        sentence = f"{said} are in the training data too: scores will be too high."
        examples = tuple(one.read_again(np.flatnonzero(shared)[:EXAMPLES].tolist()))
        yield Finding("leak", severity_of(share, 0.0, 0.2), count, share, examples, sentence)
    unknown = [label for label in one.labels if label not in labels]
    if unknown:
        count = sum(one.labels[label] for label in unknown)
        share = count / max(1, one.labels.total())
        sentence = f"{count:,} {noun} of {name} have a label that nothing is learned of: {quote_labels(unknown)}."
        yield Finding("unknown label", "warning", count, share, first_examples(unknown, [one]), sentence)


def unreadable_finding(error: RegardError, one: LabelScan) -> Finding:
    """A corpus that breaks off, with the place where it does."""
    file, _, line = (error.where or one.corpus.name).rpartition(":")
    place = (file, int(line), "") if file and line.isdigit() else (error.where or one.corpus.name, 0, "")
    return Finding("unreadable", "fatal", 1, 1.0, (place,), str(error) if str(error)[-1:] in ".?!" else f"{error}.")

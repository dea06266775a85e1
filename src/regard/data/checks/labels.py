"""Checks of labelled texts, tagged texts and images: empty, repeated, contradicting and rare ones, leaks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic

import numpy as np
from numpy.typing import NDArray

from regard.data.checks.findings import (
    EXAMPLES,
    KINDS,
    CheckScan,
    Draft,
    ExamplePosition,
    PatternKind,
    Report,
    Severity,
    draft,
    excerpt,
    look_up,
    match_patterns,
    pattern_draft,
)
from regard.data.corpora.corpus import EMPTY_HASH, Corpus, ExampleT
from regard.data.corpora.images import Image
from regard.data.corpora.labelled import SEPARATOR, Kind, LabelledRows, parse_number, split_labels
from regard.system.errors import Option
from regard.text.counts import agreeing, counted
from regard.text.tags import OUTSIDE, Scheme, TaggedWords, Written, neighbours, scheme_of, spans_of, split_tag

SHOWN = 5
MANY = 50
"""Up to this many labels, swapped text and label columns are not suspected."""
CHARACTERS = 4
"""Characters of a token, about, before there is a vocabulary."""
_OF_TEXTS = ("mojibake", "replacement", "control")
LONG = 200
"""A word of this many characters is suspect: the text was probably not split into words."""
MANY_WORDS = 1_000
"""Words from which on one text alone cannot be meant; fewer may be, but are too few to split a validation part off."""
MANY_TAGS = 500
"""Up to this many tags or span labels, swapped columns are not suspected."""

OF_EXAMPLES = KINDS | {
    "empty": PatternKind("{said} [is|are] empty; [it is|they are] left out.", 0.01, 0.5),
    "no label": PatternKind("{said} [has|have] no label; [it is|they are] left out.", fatal=0.5),
    "not a number": PatternKind("{said} [has|have] a label that is not a number, which regression needs.", fatal=0.0),
    "too long": PatternKind(
        "{said} [is|are] longer than about {limit} tokens, both parts together; the longer part is cut at its end "
        "(data.max_tokens).",
        0.05,
    ),
    "conflict": PatternKind("{lines} give {texts} different labels: the labels contradict.", fatal=0.5),
    "duplicate": PatternKind("{said} repeat[s|] an earlier one; [it counts|they count] more than once.", 0.1, 0.9),
    "leak": PatternKind("{said} of {name} [is|are] in the training data too: scores will be too high.", fatal=0.2),
    "long word": PatternKind(
        "{said} [has|have] a word of more than {limit} characters; were the words cut at all?", 0.01, 0.5
    ),
    "unexplained tag": PatternKind(
        "{words} [has a tag|have tags] that {scheme} does not explain: {tags}. [It is|They are] taken for O; if each "
        'word has a tag of its own, set tagging.scheme = "none".',
        fatal=0.5,
    ),
}
"""What each kind means for examples with labels; the shares are of these."""


@dataclass(frozen=True)
class LabelReport(Report):
    """A report on labelled texts: ``pairs`` counts texts, ``target_characters`` is the mean length of a label."""

    noun: ClassVar[str] = "texts"
    labels: dict[str, int] = field(default_factory=dict)
    """How often each label occurs, the most frequent first; empty for numbers."""

    @property
    def verdict(self) -> str:
        """Usable or not, and why, in plain words."""
        return super().verdict + (f" {counted(len(self.labels), 'label')}." if self.labels and self.usable else "")


class ImageReport(LabelReport):
    """A report on labelled images; ``pairs`` counts images."""

    noun: ClassVar[str] = "images"


class LabelScan(CheckScan[ExampleT], Generic[ExampleT]):
    """Labels and suspect lines of a corpus of labelled texts, beside its hashes.

    Args:
        corpus: the examples.
        kind: whether an example has one label, any number of labels, or a number.
        max_tokens: of two texts together; the longer one of a longer pair is cut.
    """

    noun: ClassVar[str] = "texts"
    report: ClassVar[type[LabelReport]] = LabelReport
    swapped: ClassVar[str] = "are the columns of text and label swapped?"
    has_text: ClassVar[bool] = True
    has_labels: ClassVar[bool] = True
    """Whether the second side of an example is its label, or its labels."""

    def __init__(self, corpus: Corpus[ExampleT], kind: Kind = "single", max_tokens: int = 256) -> None:
        super().__init__(corpus)
        self.kind: Kind = kind
        self.max_tokens = max_tokens
        self.characters, self.label_characters = 0, 0
        self.labels: Counter[str] = Counter()
        self.first: dict[str, int] = {}

    def look(self, example: ExampleT, first: str, second: str) -> None:
        self.characters += len(first)
        self.label_characters += len(second)
        if self.has_text:
            self._look_at_text(first)
        if not self.has_labels:
            return
        if not second and self.kind != "multi":
            self.note("no label", second)
        elif self.kind == "regression" and parse_number(second) is None:
            self.note("not a number", second)
        given = [second] if self.kind == "single" and second else []
        for label in split_labels(second) if self.kind == "multi" else given:
            self.first.setdefault(label, self.count - 1)
            self.labels[label] += 1

    def _look_at_text(self, text: str) -> None:
        for kind in match_patterns(text).intersection(_OF_TEXTS):
            self.note(kind, text)
        if not text.strip():
            self.note("empty", text)
        if "\n" in text and len(text) > CHARACTERS * self.max_tokens:  # two texts; one alone is read in windows
            self.note("too long", text)

    def hash_second(self, example: ExampleT, second: str) -> int:
        if self.kind == "multi":
            second = SEPARATOR.join(sorted(split_labels(second)))
        return hash_text(str(parse_number(second)) if self.kind == "regression" else second)

    def text_of(self, example: ExampleT, side: int) -> str:
        text, label = example.sides()
        return f"{label} ← {text}"

    @property
    def filled_B(self) -> NDArray[np.bool_]:
        """Which examples have a text, and a label where each must have one."""
        filled_B2 = self.hashes_B2 != EMPTY_HASH
        return np.asarray(filled_B2[:, 0] if self.kind == "multi" else filled_B2.all(1))

    def drafts(self) -> Iterator[Draft]:
        """Findings on single examples."""
        yield from self.unreadable()
        invalid = [notes for notes in self.corpus.notes if notes.invalid]
        for notes in invalid:
            found = self.draft("invalid UTF-8", notes.invalid, notes.read).finding
            places = tuple((self.corpus.name, line, "") for line in notes.invalid_lines[:EXAMPLES])
            yield Draft(replace(found, examples=places), ())
        for kind, count in self.counts.items():
            if kind != "replacement" or not invalid:  # else we put it there
                yield self.draft(kind, count, self.count, self.places[kind], limit=self.max_tokens)

    def draft(
        self, kind: str, count: int, total: int, places: Sequence[ExamplePosition] = (), **named: object
    ) -> Draft:
        """A finding on examples, as their table of kinds has it."""
        return pattern_draft(kind, count, total, places, named, self.noun[:-1], OF_EXAMPLES)


class ImageScan(LabelScan[Image]):
    """Labels of a corpus of images, beside its hashes."""

    noun: ClassVar[str] = "images"
    report: ClassVar[type[LabelReport]] = ImageReport
    swapped: ClassVar[str] = "is the label in another column?"
    has_text: ClassVar[bool] = False
    """Pixel values have none of its faults."""


AnyScan = LabelScan[Any]
Scans = Sequence[AnyScan]


def check_labels(
    corpora: Sequence[Corpus[ExampleT]],
    kind: Kind = "single",
    others: Mapping[str, Corpus[ExampleT]] | None = None,
    scan: type[AnyScan] = LabelScan,
) -> LabelReport:
    """Read labelled texts or images and check them; all findings and a verdict.

    Args:
        corpora: the training data.
        kind: whether an example has one label, any number of labels, or a number.
        others: validation and test data by name, searched for in the training data.
        scan: what looks at a corpus.
    """
    scanned = {name: scan(other, kind).run() for name, other in (others or {}).items()}
    return report_labels([scan(corpus, kind).run() for corpus in corpora], scanned, read=True)


def report_labels(scans: Scans, others: Mapping[str, AnyScan], read: bool = False) -> LabelReport:
    """The report of scanned corpora.

    Args:
        scans: of the training data.
        others: of validation and test data, by name.
        read: whether examples show their text, for which the corpora are read again.
    """
    drafts = [draft for scan in scans for draft in scan.drafts()]
    count, noun = sum(scan.count for scan in scans), scans[0].noun
    labels = sum((scan.labels for scan in scans), Counter[str]())
    if not count and not drafts:
        empty = tuple((scan.corpus.name, 0, "") for scan in scans)
        drafts.append(draft("no texts", "fatal", 0, 1.0, f"There are no {noun}.", examples=empty))
    if count and not any(scan.error for scan in scans):
        drafts += _classes(labels, scans, count) if scans[0].kind != "regression" else []
        if not any(draft.finding.kind == "too many labels" for draft in drafts):  # else the columns are swapped
            drafts += few_drafts(scans, others)
            drafts += corpus_drafts(scans)
        for name, other in others.items():
            drafts += overlap_drafts(name, other, scans, labels, noun)
    means = [sum(getattr(scan, size) for scan in scans) / max(1, count) for size in ("characters", "label_characters")]
    return scans[0].report(count, means[0], means[1], look_up(drafts, read), dict(labels.most_common()))


def hash_text(text: str) -> int:
    """A hash of a text, to the letter."""
    return hash(text) & 0xFFFFFFFFFFFFFFFF


def _classes(labels: Counter[str], scans: Scans, count: int) -> Iterator[Draft]:
    """Findings on the labels of all corpora together."""
    noun = scans[0].noun
    if len(labels) > max(MANY, count // 2):
        sentence = f"{counted(len(labels), 'label')} for {counted(count, noun[:-1])}: {scans[0].swapped}"
        sentence += f" Name the columns by {Option('columns')}."
        yield draft("too many labels", "fatal", len(labels), 1.0, sentence, first_places(list(labels), scans))
        return
    if len(labels) < 2 and scans[0].kind == "single" and labels:
        sentence = f"All {noun} have one label, {quote_labels(list(labels))}: there is nothing to classify."
        yield draft("one label", "fatal", count, 1.0, sentence, first_places(list(labels), scans))
    if not labels and scans[0].kind == "multi":
        yield draft("one label", "fatal", count, 1.0, f"No {noun[:-1]} has a label.")
    yield from _header(labels, scans, count)
    yield from label_drafts(labels, scans, count)


def _header(labels: Counter[str], scans: Scans, count: int) -> Iterator[Draft]:
    """First lines whose label occurs nowhere else although most labels recur: probably a header."""
    tables = [scan for scan in scans if isinstance(scan.corpus, LabelledRows) and scan.corpus.where(0).endswith(":1")]
    heads = [(scan, label) for scan in tables for label, place in scan.first.items() if place == 0]
    times = Counter(label for _, label in heads)
    names = [(scan, label) for scan, label in heads if labels[label] == times[label]]
    recurs = [number > 1 for label, number in labels.items() if labels[label] > times[label]]
    if names and 2 * sum(recurs) > len(recurs):
        said = quote_labels(list(dict.fromkeys(label for _, label in names)))
        sentence = (
            f"Line 1 of {names[0][0].corpus.name} has the label {said}, which no other line has: is line 1 a header? "
            f"Name the columns by {Option('columns')}."
        )
        places = [ExamplePosition(scan, 0, 0, label) for scan, label in names[:EXAMPLES]]
        yield draft("header", "warning", len(names), len(names) / count, sentence, places)


def label_drafts(labels: Counter[str], scans: Scans, count: int) -> Iterator[Draft]:
    """Findings on rare labels, and on labels that differ by case or white space only."""
    rare = [label for label, number in labels.items() if number == 1]
    if rare:
        said = agreeing("occur[s|] once only", len(rare))
        sentence = f"{counted(len(rare), 'label')} {said}: {quote_labels(rare)}. They are hard to learn."
        yield draft("rare label", "warning", len(rare), len(rare) / count, sentence, first_places(rare, scans))
    alike = defaultdict(list)
    for label in labels:
        alike[" ".join(label.split()).casefold()].append(label)
    groups = [group for group in alike.values() if len(group) > 1]
    if groups:
        told = "; ".join(quote_labels(group) for group in groups[:SHOWN])
        total = sum(labels[label] for group in groups for label in group)
        sentence = f"Labels differ by case or white space only, and are treated as different: {told}."
        places = first_places([label for group in groups for label in group], scans)
        yield draft("like labels", "warning", total, total / count, sentence, places)


def quote_labels(labels: Sequence[str]) -> str:
    """The first few of these labels, quoted."""
    return ", ".join(repr(excerpt(label)) for label in labels[:SHOWN]) + (", …" if len(labels) > SHOWN else "")


def first_places(labels: Sequence[str], scans: Scans) -> list[ExamplePosition]:
    """First occurrence of each of the first few labels."""
    owners = [(label, next(scan for scan in scans if label in scan.first)) for label in labels[:EXAMPLES]]
    return [ExamplePosition(scan, scan.first[label], 0, label) for label, scan in owners]


def has_validation(others: Iterable[str]) -> bool:
    """Whether validation data is among other sets, by their names."""
    return any(name.startswith("the validation") for name in others)


def few_drafts(scans: Scans, others: Mapping[str, AnyScan]) -> Iterator[Draft]:
    """A finding on texts of which none can be held out, where none are given to validate on."""
    texts = np.concatenate([scan.hashes_B2[scan.hashes_B2[:, 0] != EMPTY_HASH, 0] for scan in scans])
    if len(texts) and len(np.unique(texts)) < 2 and not has_validation(others):
        noun = scans[0].noun
        said = f"A single {noun[:-1]} is" if len(texts) == 1 else f"All {len(texts):,} {noun} are alike; that is"
        places = tuple((scan.corpus.name, 0, "") for scan in scans)
        sentence = f"{said} not enough to learn from and to validate on."
        yield draft("few texts", "fatal", len(texts), 1.0, sentence, examples=places)


def corpus_drafts(scans: Scans) -> Iterator[Draft]:
    """Findings over all examples together: duplicates, and equal ones with different labels."""
    hashes, noun = np.concatenate([scan.hashes_B2 for scan in scans]), scans[0].noun
    ends = np.cumsum([scan.count for scan in scans])

    def places(numbers: NDArray[np.int64]) -> list[ExamplePosition]:
        """These examples, numbered over all corpora, in this order."""
        owners = np.searchsorted(ends, numbers, side="right").tolist()
        return [
            ExamplePosition(scans[owner], int(number - ends[owner]) + scans[owner].count)
            for owner, number in zip(owners, numbers, strict=True)
        ]

    filled = hashes[:, 0] != EMPTY_HASH
    if scans[0].kind == "regression" and len(hashes) > 1 and len(np.unique(hashes[:, 1])) == 1:
        sentence = f"All {noun} have the same number: there is nothing to learn."
        yield draft("one label", "fatal", len(hashes), 1.0, sentence, places(np.arange(1)))
    _, first, number = np.unique(hashes[:, 0], return_index=True, return_inverse=True)
    differs = (hashes[:, 1] != hashes[first[number], 1]) & filled
    at_odds = np.isin(number, number[differs])
    again = filled & ~at_odds
    again[first] = False
    if count := int(at_odds.sum()):
        order = np.flatnonzero(at_odds)
        order = order[np.argsort(first[number[order]], kind="stable")][: 2 * EXAMPLES]
        texts = counted(len(np.unique(number[at_odds])), noun[:-1])
        yield scans[0].draft("conflict", count, len(hashes), places(order), texts=texts)
    if count := int(again.sum()):
        yield scans[0].draft("duplicate", count, len(hashes), places(np.flatnonzero(again)[:EXAMPLES]))


def overlap_drafts(name: str, other: AnyScan, scans: Scans, labels: Counter[str], labelled: str) -> Iterator[Draft]:
    """Findings on a validation or test set: examples that are in the training data, labels that are not.

    Args:
        name: of the set, for the sentences.
        other: its scan.
        scans, labels: scans of the training data, and its labels.
        labelled: what has a label.
    """
    if other.error:
        yield from other.unreadable()
        return
    if not other.count:
        yield draft("no texts", "fatal", 0, 1.0, f"There are no {other.noun} in {name}.")
        return
    trained = np.concatenate([scan.hashes_B2[:, 0] for scan in scans])
    texts = other.hashes_B2[:, 0]
    if not other.filled_B.any():
        said = f"In {name} every {other.noun[:-1]} is empty, or has no label: nothing is left of them."
        yield draft("no texts", "fatal", other.count, 1.0, said, other.at(np.arange(other.count)))
        return
    shared = np.isin(texts, trained) & (texts != EMPTY_HASH)
    if count := int(shared.sum()):
        yield other.draft("leak", count, other.count, other.at(np.flatnonzero(shared)), name=name)
    unknown = [label for label in other.labels if label not in labels]
    if unknown:
        count = sum(other.labels[label] for label in unknown)
        share = count / max(1, other.labels.total())
        said = f"{counted(count, labelled[:-1])} of {name} {'has' if count == 1 else 'have'} a label"
        sentence = f"{said} that nothing is learned of: {quote_labels(unknown)}."
        severity: Severity = "fatal" if count == other.labels.total() else "warning"
        yield draft("unknown label", severity, count, share, sentence, first_places(unknown, [other]))


@dataclass(frozen=True)
class TagReport(LabelReport):
    """A report on tagged texts; ``labels`` counts words by tag, or spans by label, the most frequent first.

    ``target_characters`` is the mean number of words of a text.
    """

    words: int = 0
    scheme: Written = "none"
    """The tag scheme detected in the data, else the one asked for."""

    @property
    def verdict(self) -> str:
        """Usable or not, and why, in plain words."""
        if not self.usable:
            return super().verdict
        kinds = counted(len(self.labels), "kind")
        spans = f"{counted(sum(self.labels.values()), 'span')} of {kinds}, written as {self.scheme.upper()}."
        tags = f"{counted(len(self.labels), 'tag')}, one a word."
        plain = super().verdict.partition(". ")[0].rstrip(".")
        return f"{plain}. {counted(self.words, 'word')}, {tags if self.scheme == 'none' else spans}"


class TagScan(LabelScan[TaggedWords]):
    """Words, tags and spans of a corpus of tagged texts; :meth:`choose` then decides what :attr:`labels` counts."""

    has_labels: ClassVar[bool] = False

    def __init__(self, corpus: Corpus[TaggedWords]) -> None:
        super().__init__(corpus, "multi")
        self.words = 0
        self.tags: Counter[str] = Counter()
        self.neighbours: Counter[str] = Counter()
        self.spans: Counter[str] = Counter()
        self.first_tags: dict[str, int] = {}
        self._first_spans: dict[str, int] = {}
        self.scheme: Written = "none"

    def look(self, example: TaggedWords, first: str, second: str) -> None:
        self.words += len(example.places)
        if any(end - begin > LONG for begin, end in example.places):
            self.note("long word", max(example.words, key=len))
        self.tags.update(example.tags)
        self.neighbours.update(neighbours(example.tags))
        spans = [label for _, _, label in spans_of(example.tags)]
        self.spans.update(spans)
        for names, firsts in ((example.tags, self.first_tags), (spans, self._first_spans)):
            for name in names:
                firsts.setdefault(name, self.count - 1)
        super().look(example, first, second)

    def hash_second(self, example: TaggedWords, second: str) -> int:
        return hash_text(" ".join(example.tags))

    def text_of(self, example: TaggedWords, side: int) -> str:
        return example.text

    def choose(self, scheme: Written) -> None:
        """Count spans by label, or words by tag where tags are ``none`` of spans."""
        self.scheme = scheme
        self.labels, self.first = (self.tags, self.first_tags) if scheme == "none" else (self.spans, self._first_spans)


def detect_scheme(scans: Sequence[TagScan]) -> Written:
    """The scheme that the tags of all these corpora are written in."""
    return scheme_of(
        sum((scan.tags for scan in scans), Counter[str]()), sum((scan.neighbours for scan in scans), Counter[str]())
    )


def check_tags(
    corpora: Sequence[Corpus[TaggedWords]],
    scheme: Scheme | None = None,
    others: Mapping[str, Corpus[TaggedWords]] | None = None,
) -> TagReport:
    """Read tagged texts and check them; all findings and a verdict.

    Args:
        corpora: the training data.
        scheme: how the tags are to be understood; default: as they look.
        others: validation and test texts by name, searched for in the training texts.
    """
    scanned = {name: TagScan(other).run() for name, other in (others or {}).items()}
    return report_tags([TagScan(corpus).run() for corpus in corpora], scheme, scanned, read=True)


def report_tags(
    scans: Sequence[TagScan], scheme: Scheme | None, others: Mapping[str, TagScan], read: bool = False
) -> TagReport:
    """The report of scanned corpora.

    Args:
        scans: of the training data.
        scheme: how the tags are to be understood; default: as they look.
        others: of validation and test texts, by name.
        read: whether examples show their text, for which the corpora are read again.
    """
    written = scheme or detect_scheme(scans)
    for scan in (*scans, *others.values()):
        scan.choose(written)
    drafts = [draft for scan in scans for draft in (*_long_words(scan), *scan.drafts())]
    texts, words = sum(scan.count for scan in scans), sum(scan.words for scan in scans)
    labels = sum((scan.labels for scan in scans), Counter[str]())
    if texts and not any(scan.error for scan in scans):
        drafts += [*_tag_drafts(labels, scans, words), *corpus_drafts(scans)]
        if texts == 1 and words > 1:
            sentence = (
                f"All {words:,} words are one text; in CoNLL an empty line stands between texts. Is this a file of "
                f"tagged words, as {Option('columns')} says?"
            )
            severity: Severity = "warning" if has_validation(others) and words < MANY_WORDS else "fatal"
            drafts.append(draft("one text", severity, 1, 1.0, sentence))
        for name, other in others.items():
            drafts += overlap_drafts(name, other, scans, labels, "words" if written == "none" else "spans")
            drafts += _strange_tags([other], f" of {name}")
    means = [sum(getattr(scan, size) for scan in scans) / max(1, texts) for size in ("characters", "words")]
    return TagReport(texts, means[0], means[1], look_up(drafts, read), dict(labels.most_common()), words, written)


def _long_words(scan: TagScan) -> Iterator[Draft]:
    """Texts that were hardly split into words."""
    if count := scan.counts.pop("long word", 0):
        yield scan.draft("long word", count, scan.count, scan.places["long word"], limit=LONG)


def _strange_tags(scans: Sequence[TagScan], where: str = "") -> Iterator[Draft]:
    """Tags that the scheme does not explain; ``where`` they stand, for the sentence."""
    scheme = scans[0].scheme
    tags = sum((scan.tags for scan in scans), Counter[str]())
    strange = Counter({tag: n for tag, n in tags.items() if tag != OUTSIDE and split_tag(tag)[0] == OUTSIDE})
    if scheme == "none" or not strange:
        return
    count, named = strange.total(), quote_labels([tag for tag, _ in strange.most_common()])
    total = count + sum(scan.labels.total() for scan in scans)
    words = f"{counted(count, 'word')}{where}"
    places = [
        ExamplePosition(scan, scan.first_tags[tag]) for scan in scans for tag in strange if tag in scan.first_tags
    ]
    said = {"words": words, "scheme": scheme.upper(), "tags": named}
    yield scans[0].draft("unexplained tag", count, total, places[:EXAMPLES], **said)


def _tag_drafts(labels: Counter[str], scans: Sequence[TagScan], words: int) -> Iterator[Draft]:
    """Findings on the tags of all corpora together."""
    scheme = scans[0].scheme
    yield from _strange_tags(scans)
    if not labels or (len(labels) == 1 and scheme == "none"):
        tag = f"All words have one tag, {quote_labels(list(labels))}"
        said = tag if scheme == "none" else "No word is part of a span"
        yield draft("one label", "fatal", words, 1.0, f"{said}: there is nothing to learn.")
        return
    if len(labels) > max(MANY_TAGS, words // 20):
        sentence = f"{len(labels):,} different tags: are words and tags swapped? Name them by {Option('columns')}."
        yield draft("too many labels", "fatal", len(labels), 1.0, sentence, first_places(list(labels), scans))
        return
    yield from label_drafts(labels, scans, max(1, sum(scan.count for scan in scans)))

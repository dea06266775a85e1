"""Checks of tagged texts: unrecognised tags, overlong words, rare labels, duplicates, leaks (``regard check``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from regard.data.checks.findings import EXAMPLES, Draft, ExamplePosition, Severity, draft, look_up, percent
from regard.data.checks.labels import (
    LabelReport,
    LabelScan,
    corpus_drafts,
    first_places,
    has_validation,
    hash_text,
    label_drafts,
    overlap_drafts,
    quote_labels,
    severity_of,
)
from regard.data.corpora.corpus import Corpus, Progress, no_progress
from regard.text.counts import counted
from regard.text.tags import Scheme, TaggedWords, Written, neighbours, scheme_of, spans_of, unrecognised_tags

LONG = 200
"""A word of this many characters is suspect: the text was probably not split into words."""
MANY_WORDS = 1_000
"""Words from which on one text alone cannot be meant; fewer may be, but are too few to split a validation part off."""
MANY = 500
"""Up to this many tags or span labels, swapped columns are not suspected."""


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

    def look_at_label(self, label: str) -> None:
        """Tags are counted as such."""

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
    progress: Progress = no_progress,
) -> TagReport:
    """Read tagged texts and check them; all findings and a verdict.

    Args:
        corpora: the training data.
        scheme: how the tags are to be understood; default: as they look.
        others: validation and test texts by name, searched for in the training texts.
        progress: reports progress.
    """
    scanned = {name: TagScan(other).run(progress) for name, other in (others or {}).items()}
    return report_tags([TagScan(corpus).run(progress) for corpus in corpora], scheme, scanned, read=True)


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
        drafts += _one_text(texts, words, has_validation(others))
        for name, other in others.items():
            drafts += overlap_drafts(name, other, scans, labels, "words" if written == "none" else "spans")
            drafts += _unexplained([other], f" of {name}")
    means = [sum(getattr(scan, size) for scan in scans) / max(1, texts) for size in ("characters", "words")]
    return TagReport(texts, means[0], means[1], look_up(drafts, read), dict(labels.most_common()), words, written)


def _one_text(texts: int, words: int, validated: bool) -> Iterator[Draft]:
    """A whole file as one text: the lines of something else, taken for words."""
    if texts == 1 and words > 1:
        sentence = (
            f"All {words:,} words are one text; in CoNLL an empty line stands between texts. Is this a file of tagged "
            "words, as --columns says?"
        )
        severity: Severity = "warning" if validated and words < MANY_WORDS else "fatal"
        yield draft("one text", severity, 1, 1.0, sentence)


def _long_words(scan: TagScan) -> Iterator[Draft]:
    """Texts that were hardly split into words."""
    if count := scan.counts.pop("long word", 0):
        share = count / max(1, scan.count)
        said = f"{counted(count, 'text')} ({percent(share)}) {'has' if count == 1 else 'have'} a word"
        sentence = f"{said} of more than {LONG} characters; were the words cut at all?"
        yield draft("long word", severity_of(share, 0.01, 0.5), count, share, sentence, scan.places["long word"])


def _unexplained(scans: Sequence[TagScan], where: str = "") -> Iterator[Draft]:
    """Tags that the scheme does not explain; ``where`` they stand, for the sentence."""
    scheme = scans[0].scheme
    tags = sum((scan.tags for scan in scans), Counter[str]())
    strange = Counter({tag: tags[tag] for tag in unrecognised_tags(tags)}) if scheme != "none" else Counter[str]()
    if not strange:
        return
    count, named = strange.total(), quote_labels([tag for tag, _ in strange.most_common()])
    share = count / max(1, count + sum(scan.labels.total() for scan in scans))
    sentence = (
        f"{counted(count, 'word')}{where} {'has a tag' if count == 1 else 'have tags'} that {scheme.upper()} does not "
        f"explain: {named}. {'It is' if count == 1 else 'They are'} taken for "
        'O; if each word has a tag of its own, set tagging.scheme = "none".'
    )
    places = [
        ExamplePosition(scan, scan.first_tags[tag]) for scan in scans for tag in strange if tag in scan.first_tags
    ]
    yield draft("unexplained tag", severity_of(share, 0.0, 0.5), count, share, sentence, places[:EXAMPLES])


def _tag_drafts(labels: Counter[str], scans: Sequence[TagScan], words: int) -> Iterator[Draft]:
    """Findings on the tags of all corpora together."""
    scheme = scans[0].scheme
    yield from _unexplained(scans)
    if not labels or (len(labels) == 1 and scheme == "none"):
        tag = f"All words have one tag, {quote_labels(list(labels))}"
        said = tag if scheme == "none" else "No word is part of a span"
        yield draft("one label", "fatal", words, 1.0, f"{said}: there is nothing to learn.")
        return
    if len(labels) > max(MANY, words // 20):
        sentence = f"{len(labels):,} different tags: are the columns of words and tags swapped? Name them by --columns."
        yield draft("too many labels", "fatal", len(labels), 1.0, sentence, first_places(list(labels), scans))
        return
    yield from label_drafts(labels, scans, max(1, sum(scan.count for scan in scans)))

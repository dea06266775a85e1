"""Checks of tagged texts: unrecognised tags, overlong words, rare labels, duplicates, leaks (``regard check``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from regard.data.checks.findings import EXAMPLES, Example, Finding, percent, sort_findings
from regard.data.checks.labels import (
    LabelReport,
    corpus_findings,
    first_examples,
    label_findings,
    overlap_findings,
    quote_labels,
    severity_of,
    text_findings,
    unreadable_finding,
)
from regard.data.checks.scan_labels import LabelScan
from regard.data.corpora.labels import Kind
from regard.data.corpora.pairs import Corpus
from regard.data.corpora.passes import Progress, no_progress
from regard.system.errors import RegardError
from regard.text.tags import Scheme, TaggedWords, Written, detect, spans_of, unrecognised_tags

LONG = 200
"""A word of this many characters is suspect: the text was probably not split into words."""
MANY_WORDS = 1_000
"""Words from which on one text alone is suspect."""
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
        spans = f"{sum(self.labels.values()):,} spans of {len(self.labels):,} kinds, written as {self.scheme.upper()}."
        tags = f"{len(self.labels):,} tags, one a word."
        plain = super().verdict.partition(" texts.")[0]
        return f"{plain} texts. {self.words:,} words, {tags if self.scheme == 'none' else spans}"


@dataclass
class TagScan(LabelScan):
    """Statistics of a corpus of tagged texts; ``labels`` counts words by tag, or spans by label."""

    corpus: Corpus
    kind: Kind = "multi"
    scheme: Written = "none"
    words: int = 0
    strange: Counter[str] = field(default_factory=Counter)
    """Words by tags that the scheme does not explain."""

    def _look(self, text: str, label: str) -> int:
        words = TaggedWords.parse(text, label)
        self.words += len(words.places)
        if any(end - begin > LONG for begin, end in words.places):
            self._note("long word", max(words.words, key=len))
        if self.scheme != "none":
            for tag in unrecognised_tags(words.tags):
                if len(self.examples["unexplained tag"]) < EXAMPLES and not self.strange[tag]:
                    self.examples["unexplained tag"].append(self.example(self.count, text))
                self.strange[tag] += words.tags.count(tag)
        return super()._look(text, label)

    def _labels(self, label: str) -> list[str]:
        tags = TaggedWords.parse("", label).tags
        return list(tags) if self.scheme == "none" else [name for _, _, name in spans_of(tags)]

    def _meaning(self, label: str) -> str:
        return " ".join(TaggedWords.parse("", label).tags)

    def read_again(self, numbers: Sequence[int]) -> Iterator[Example]:
        """Texts by their numbers, in order."""
        wanted = set(numbers)
        for number, (text, _) in enumerate(self.corpus.pairs() if wanted else ()):
            if number in wanted:
                yield self.example(number, text)


def check_tags(
    corpora: Sequence[Corpus],
    scheme: Scheme | None = None,
    others: Mapping[str, Corpus] | None = None,
    progress: Progress = no_progress,
) -> TagReport:
    """Check tagged texts in two passes; all findings and a verdict.

    Args:
        corpora: the training data.
        scheme: how the tags are to be understood; default: as they look.
        others: validation and test texts by name, searched for in the training texts.
        progress: reports progress.
    """
    written, broken = (scheme, None) if scheme else _detect_scheme(corpora)
    looks = [TagScan(corpus, scheme=written) for corpus in corpora]
    findings = [unreadable_finding(broken, looks[0])] if broken else []
    for one in looks if not findings else ():
        try:
            one.run(progress)
        except RegardError as error:
            findings.append(unreadable_finding(error, one))
        findings += _text_findings(one)
    texts, words = sum(one.count for one in looks), sum(one.words for one in looks)
    labels = sum((one.labels for one in looks), Counter[str]())
    if texts and not any(finding.kind == "unreadable" for finding in findings):
        findings += [*_tag_findings(labels, looks, words), *_check_text(texts, words), *corpus_findings(looks)]
        for name, other in (others or {}).items():
            noun = "words" if written == "none" else "spans"
            findings += overlap_findings(name, TagScan(other, scheme=written), looks, labels, progress, noun)
    means = [sum(getattr(one, size) for one in looks) / max(1, texts) for size in ("characters", "words")]
    return TagReport(texts, means[0], means[1], sort_findings(findings), dict(labels.most_common()), words, written)


def _check_text(texts: int, words: int) -> Iterator[Finding]:
    """A whole file as one text: the lines of something else, taken for words."""
    if texts == 1 and words >= MANY_WORDS:
        sentence = (
            f"All {words:,} words are one text; an empty line stands between texts. Is this a file of tagged words?"
        )
        yield Finding("one text", "fatal", 1, 1.0, (), sentence)


def _detect_scheme(corpora: Sequence[Corpus]) -> tuple[Written, RegardError | None]:
    """The tag scheme of all corpora; or the error of an unreadable one."""
    try:
        return detect(TaggedWords.parse(*pair).tags for corpus in corpora for pair in corpus.pairs()), None
    except RegardError as error:
        return "none", error


def _text_findings(one: TagScan) -> Iterator[Finding]:
    """Findings on single texts."""
    if count := one.counts.pop("long word", 0):
        share = count / max(1, one.count)
        sentence = (
            f"{count:,} texts ({percent(share)}) have a word of more than {LONG} characters; were they cut at all?"
        )
        yield Finding(
            "long word", severity_of(share, 0.01, 0.5), count, share, tuple(one.examples["long word"]), sentence
        )
    yield from text_findings(one)


def _tag_findings(labels: Counter[str], looks: Sequence[TagScan], words: int) -> Iterator[Finding]:
    """Findings on the tags of all corpora together."""
    spans = looks[0].scheme != "none"
    strange = sum((one.strange for one in looks), Counter[str]())
    if strange:
        count, named = strange.total(), quote_labels([tag for tag, _ in strange.most_common()])
        share = count / max(1, count + labels.total())
        sentence = (
            f"{count:,} words have tags that {looks[0].scheme.upper()} does not explain: {named}. They are taken for "
            'O; if each word has a tag of its own, set tagging.scheme = "none".'
        )
        rows = tuple(row for one in looks for row in one.examples["unexplained tag"])[:EXAMPLES]
        yield Finding("unexplained tag", severity_of(share, 0.0, 0.5), count, share, rows, sentence)
    if not labels or (len(labels) == 1 and not spans):
        sentence = "No word is part of a span" if spans else f"All words have one tag, {quote_labels(list(labels))}"
        yield Finding("one label", "fatal", words, 1.0, (), f"{sentence}: there is nothing to learn.")
        return
    if len(labels) > max(MANY, words // 20):
        sentence = f"{len(labels):,} different tags: are the columns of words and tags swapped? Name them by --columns."
        yield Finding(
            "too many labels", "fatal", len(labels), 1.0, first_examples(list(labels)[:EXAMPLES], looks), sentence
        )
        return
    yield from label_findings(labels, looks, max(1, sum(one.count for one in looks)))

"""Tagged texts looked at before any time is spent: what silently ruins a tagger (``regard check``)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from regard.data.corpora import Corpus
from regard.data.findings import EXAMPLES, Example, Finding, ordered, percent
from regard.data.label_report import (
    LabelReport,
    firsts,
    of_all,
    of_another,
    of_labels,
    of_texts,
    quoted,
    severity_of,
    unreadable,
)
from regard.data.labels import Kind, LabelLook
from regard.data.survey import Progress, silent
from regard.errors import RegardError
from regard.text.marked import Words
from regard.text.schemes import Scheme, Written, detect, spans_of, unexplained

LONG = 200
"""Characters of a word that is none: something was not cut into words."""
MANY_WORDS = 1_000
"""Words from which on one text alone is suspect."""
MANY = 500
"""Tags, or labels of spans, up to which nobody suspects that words were taken for tags."""


@dataclass(frozen=True)
class TagReport(LabelReport):
    """A report on tagged texts; ``labels`` counts words by tag, or spans by label, the most frequent first.

    ``target_characters`` is the mean number of words of a text.
    """

    words: int = 0
    scheme: Written = "none"
    """How the tags are written, as far as the data shows; else as was asked for."""

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
class TagLook(LabelLook):
    """What is seen of a corpus of tagged texts; ``labels`` counts words by tag, or spans by label."""

    corpus: Corpus
    kind: Kind = "multi"
    scheme: Written = "none"
    words: int = 0
    strange: Counter[str] = field(default_factory=Counter)
    """Words by tags that the scheme does not explain."""

    def _look(self, text: str, label: str) -> int:
        words = Words.parse(text, label)
        self.words += len(words.places)
        if any(end - begin > LONG for begin, end in words.places):
            self._note("long word", max(words.words, key=len))
        if self.scheme != "none":
            for tag in unexplained(words.tags):
                if len(self.examples["unexplained tag"]) < EXAMPLES and not self.strange[tag]:
                    self.examples["unexplained tag"].append(self.example(self.count, text))
                self.strange[tag] += words.tags.count(tag)
        return super()._look(text, label)

    def _labels(self, label: str) -> list[str]:
        tags = Words.parse("", label).tags
        return list(tags) if self.scheme == "none" else [name for _, _, name in spans_of(tags)]

    def _meaning(self, label: str) -> str:
        return " ".join(Words.parse("", label).tags)

    def read_again(self, numbers: Sequence[int]) -> Iterator[Example]:
        """Texts by their numbers, in order."""
        wanted = set(numbers)
        for number, (text, _) in enumerate(self.corpus.pairs() if wanted else ()):
            if number in wanted:
                yield self.example(number, text)


def look_at_tags(
    corpora: Sequence[Corpus],
    scheme: Scheme | None = None,
    others: Mapping[str, Corpus] | None = None,
    progress: Progress = silent,
) -> TagReport:
    """Everything suspect in tagged texts, in two passes, with a verdict.

    Args:
        corpora: what would be learned from.
        scheme: how the tags are to be understood; default: as they look.
        others: validation and test texts by name, looked for in those that are learned from.
        progress: told how far it is.
    """
    written, broken = (scheme, None) if scheme else _detected(corpora)
    looks = [TagLook(corpus, scheme=written) for corpus in corpora]
    findings = [unreadable(broken, looks[0])] if broken else []
    for one in looks if not findings else ():
        try:
            one.run(progress)
        except RegardError as error:
            findings.append(unreadable(error, one))
        findings += _of_texts(one)
    texts, words = sum(one.count for one in looks), sum(one.words for one in looks)
    labels = sum((one.labels for one in looks), Counter[str]())
    if texts and not any(finding.kind == "unreadable" for finding in findings):
        findings += [*_of_tags(labels, looks, words), *_of_one_text(texts, words), *of_all(looks)]
        for name, other in (others or {}).items():
            noun = "words" if written == "none" else "spans"
            findings += of_another(name, TagLook(other, scheme=written), looks, labels, progress, noun)
    means = [sum(getattr(one, size) for one in looks) / max(1, texts) for size in ("characters", "words")]
    return TagReport(texts, means[0], means[1], ordered(findings), dict(labels.most_common()), words, written)


def _of_one_text(texts: int, words: int) -> Iterator[Finding]:
    """A whole file as one text: the lines of something else, taken for words."""
    if texts == 1 and words >= MANY_WORDS:
        sentence = (
            f"All {words:,} words are one text; an empty line stands between texts. Is this a file of tagged words?"
        )
        yield Finding("one text", "fatal", 1, 1.0, (), sentence)


def _detected(corpora: Sequence[Corpus]) -> tuple[Written, RegardError | None]:
    """How the tags of all corpora look; or why one cannot be read."""
    try:
        return detect(Words.parse(*pair).tags for corpus in corpora for pair in corpus.pairs()), None
    except RegardError as error:
        return "none", error


def _of_texts(one: TagLook) -> Iterator[Finding]:
    """What single texts have shown."""
    if count := one.counts.pop("long word", 0):
        share = count / max(1, one.count)
        sentence = (
            f"{count:,} texts ({percent(share)}) have a word of more than {LONG} characters; were they cut at all?"
        )
        yield Finding(
            "long word", severity_of(share, 0.01, 0.5), count, share, tuple(one.examples["long word"]), sentence
        )
    yield from of_texts(one)


def _of_tags(labels: Counter[str], looks: Sequence[TagLook], words: int) -> Iterator[Finding]:
    """What the tags show, counted over all corpora."""
    spans = looks[0].scheme != "none"
    strange = sum((one.strange for one in looks), Counter[str]())
    if strange:
        count, named = strange.total(), quoted([tag for tag, _ in strange.most_common()])
        share = count / max(1, count + labels.total())
        sentence = (
            f"{count:,} words have tags that {looks[0].scheme.upper()} does not explain: {named}. They are taken for "
            'O; if each word has a tag of its own, set tagging.scheme = "none".'
        )
        rows = tuple(row for one in looks for row in one.examples["unexplained tag"])[:EXAMPLES]
        yield Finding("unexplained tag", severity_of(share, 0.0, 0.5), count, share, rows, sentence)
    if not labels or (len(labels) == 1 and not spans):
        sentence = "No word is part of a span" if spans else f"All words have one tag, {quoted(list(labels))}"
        yield Finding("one label", "fatal", words, 1.0, (), f"{sentence}: there is nothing to learn.")
        return
    if len(labels) > max(MANY, words // 20):
        sentence = f"{len(labels):,} different tags: are the columns of words and tags swapped? Name them by --columns."
        yield Finding("too many labels", "fatal", len(labels), 1.0, firsts(list(labels)[:EXAMPLES], looks), sentence)
        return
    yield from of_labels(labels, looks, max(1, sum(one.count for one in looks)))

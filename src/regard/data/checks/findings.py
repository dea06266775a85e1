"""Findings of corpus checks, the report that collects them, and the line patterns that reveal bad text."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import inf
from typing import Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from regard.data.corpora.corpus import Corpus, ExampleT
from regard.data.corpora.pairs import MISALIGNED
from regard.data.corpora.scan import Scan
from regard.system.errors import Option, RegardError
from regard.text.counts import agreeing, counted

Severity = Literal["fatal", "warning", "note"]
Example = tuple[str, int, str]
"""File, line (from 1; 0: the whole file) and the beginning of the text."""

UNREADABLE = frozenset(("unreadable", "misaligned", "no pairs", "no texts", "few texts", "one label", "not a number"))
"""Kinds that leave nothing to learn from; all others are judgements that a person may overrule."""

EXAMPLES = 3
EXCERPT = 80
_WINDOWS = (
    "\u0152\u0153\u0160\u0161\u0178\u017d\u017e\u0192\u02c6\u02dc\u2013\u2014\u2018-\u201e\u2020-\u2022\u2026\u2030"
    "\u2039\u203a\u20ac\u2122"
)
"""The characters that Windows-1252 has where Latin-1 has controls."""
PATTERNS: dict[str, str] = {
    "carriage return": "\r",
    "tab": "\t",
    "control": "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029]",
    "replacement": "\ufffd",
    "mojibake": f"[ÃÂ][\u0080-\u00bf{_WINDOWS}]|â€[\u0080-\u00bf{_WINDOWS}]|[ÐÑ][\u0080-\u00bf{_WINDOWS}][ÐÑ]",
    "tokenised": r"&(?:apos|quot|amp|lt|gt|#\d+);| @-@ |@@ ",
}
_GROUPS = {kind.replace(" ", "_"): kind for kind in PATTERNS}
_ANY = re.compile("|".join(f"(?P<{group}>{PATTERNS[kind]})" for group, kind in _GROUPS.items()))
_HINT = re.compile("[\r\t\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufffdÃÂâÐÑ&@]")
"""A character of each pattern, for a first look: a set is searched for ten times faster than alternatives."""


def excerpt(text: str) -> str:
    """The beginning of a text on one visible line."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:EXCERPT]) + (
        "…" if len(text) > EXCERPT else ""
    )


def percent(share: float) -> str:
    """A share as a percentage for people."""
    return f"{share:.0%}" if share >= 0.1 else f"{share:.1%}" if share >= 0.001 else "under 0.1%"


@dataclass(frozen=True)
class Finding:
    """One kind of problem: its count, the first places, and a sentence on what it means and what to do."""

    kind: str
    severity: Severity
    count: int
    share: float
    examples: tuple[Example, ...]
    sentence: str

    @property
    def is_judgement(self) -> bool:
        """Whether it is a judgement that a person may overrule."""
        return self.kind not in UNREADABLE

    def overrule(self) -> Finding:
        """The same, a judgement reduced to a warning."""
        return replace(self, severity="warning") if self.is_judgement and self.severity == "fatal" else self


@dataclass(frozen=True)
class Report:
    """All findings, the worst first; ``usable`` unless one is fatal."""

    noun: ClassVar[str] = "pairs"
    pairs: int
    source_characters: float
    target_characters: float
    findings: tuple[Finding, ...]

    @property
    def usable(self) -> bool:
        """Whether training on these corpora makes sense."""
        return not any(finding.severity == "fatal" for finding in self.findings)

    @property
    def verdict(self) -> str:
        """Usable or not, and why, in plain words."""
        fatal = [finding.sentence for finding in self.findings if finding.severity == "fatal"]
        warnings = sum(finding.severity == "warning" for finding in self.findings)
        if fatal:
            return "Not usable. " + " ".join(fatal)
        told = f", with {'a warning' if warnings == 1 else f'{warnings} warnings'}" if warnings else ""
        return f"Usable{told}: {counted(self.pairs, self.noun[:-1])}."

    def overrule(self) -> Self:
        """The same report with all judgements reduced to warnings."""
        return replace(self, findings=sort_findings(finding.overrule() for finding in self.findings))

    def announce(self, tell: Callable[[str], None], despite_check: bool = False) -> None:
        """Tell the findings and the verdict; a judgement refuses nothing where ``despite_check``.

        Raises:
            RegardError: something in the data would spoil the model, or cannot be read.
        """
        found = self.overrule() if despite_check else self
        announce(found.findings, tell)
        tell(found.verdict)

    def to_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {"usable": self.usable, "verdict": self.verdict} | asdict(self)


def sort_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort by severity, then findings that cannot be overruled first, then by count."""
    rank = {"fatal": 0, "warning": 1, "note": 2}
    return tuple(sorted(findings, key=lambda finding: (rank[finding.severity], finding.is_judgement, -finding.count)))


def is_suspect(text: str) -> bool:
    """Whether a text may have any kind of problem: it has a character of one."""
    return _HINT.search(text) is not None


def match_patterns(text: str) -> set[str]:
    """The kinds of problem in one line; a single quick search for clean lines."""
    return {_GROUPS[str(match.lastgroup)] for match in _ANY.finditer(text)} if is_suspect(text) else set()


@dataclass(frozen=True)
class PatternKind:
    """Message and thresholds of a kind of problem: the shares from which it is a warning, and fatal."""

    sentence: str
    warning: float = 0.0
    fatal: float = inf

    def severity(self, share: float) -> Severity:
        """Severity at this share."""
        return "fatal" if share >= self.fatal else "warning" if share >= self.warning else "note"


KINDS: dict[str, PatternKind] = {
    "empty": PatternKind("{pairs} [has|have] an empty side; [it is|they are] left out.", 0.01, 0.5),
    "invalid UTF-8": PatternKind(
        "{lines} [is|are] not valid UTF-8, most likely Latin-1 or Windows-1252; convert the file with "
        "`iconv -f WINDOWS-1252 -t UTF-8`.",
        fatal=0.01,
    ),
    "mojibake": PatternKind(
        "{lines} hold[s|] text decoded twice, such as 'Ã¤' for 'ä'; the file was read as Latin-1 and saved as UTF-8, "
        "repair it.",
        0.0005,
        0.2,
    ),
    "replacement": PatternKind("{lines} hold[s|] the sign U+FFFD: characters were lost earlier.", 0.001),
    "control": PatternKind("{lines} hold[s|] control characters or Unicode line separators.", 0.001),
    "carriage return": PatternKind(
        "{lines} hold[s|] a carriage return inside; was the file joined from others?", 0.001
    ),
    "tab": PatternKind("{lines} hold[s|] a tab; is the file a table? Then name it .tsv.", 0.001),
    "tokenised": PatternKind(
        "{lines} look[s|] tokenised or escaped already (&apos;, @-@): translations will look so too, and BLEU will not "
        "compare; use raw text.",
        0.05,
    ),
    "duplicate": PatternKind("{pairs} repeat[s|] an earlier pair; [it counts|they count] more than once.", 0.1, 0.9),
    "copy": PatternKind("{pairs} [has|have] the same text on both sides; the model learns to copy.", 0.05, 0.5),
    "too long": PatternKind(
        "{pairs} [is|are] longer than about {limit} tokens; [it is|they are] left out (data.max_tokens).", 0.05, 0.9
    ),
    "ratio": PatternKind("{pairs} [has|have] sides of very unlike length; are they translations?", 0.02, 0.4),
    "bytes": PatternKind(
        "{share} of the words hold characters the vocabulary does not know and fall to bytes; is it a vocabulary "
        "of these languages? For example {seen}.",
        0.01,
        0.3,
    ),
}
"""What each kind means; the shares are of what its sentence counts: lines (each pair has two), pairs or words."""


def pattern_draft(
    kind: str,
    count: int,
    total: int,
    places: Sequence[ExamplePosition] = (),
    named: Mapping[str, object] | None = None,
    noun: str = "pair",
    kinds: Mapping[str, PatternKind] = KINDS,
) -> Draft:
    """The finding for ``count`` of ``total`` things of a kind.

    Args:
        kind: of problem.
        count: how many there are.
        total: of which; how many were looked at.
        places: of the first.
        named: what else the sentence says.
        noun: what it calls one where it says ``{said}``.
        kinds: what each kind means.
    """
    share = count / max(1, total)
    subjects = {"lines": "line", "pairs": "pair", "said": noun}
    said = {word: f"{counted(count, one)} ({percent(share)})" for word, one in subjects.items()}
    sentence = agreeing(kinds[kind].sentence, count).format(**said, share=percent(share), **(named or {}))
    return draft(kind, kinds[kind].severity(share), count, share, sentence, places)


class ExamplePosition(NamedTuple):
    """An example of a finding: its scan, its number and side there, and its text where the scan kept it."""

    scan: AnyScan
    number: int
    side: int = 0
    text: str | None = None


class Draft(NamedTuple):
    """A finding whose examples are not looked up yet."""

    finding: Finding
    places: Sequence[ExamplePosition]


def draft(
    kind: str,
    severity: Severity,
    count: int,
    share: float,
    sentence: str,
    places: Sequence[ExamplePosition] = (),
    examples: tuple[Example, ...] = (),
) -> Draft:
    """A finding with these examples, and places for more."""
    return Draft(Finding(kind, severity, count, share, examples, sentence), places)


class CheckScan(Scan[ExampleT], Generic[ExampleT]):
    """A scan that also counts problems of single examples, and keeps the first places of each kind."""

    def __init__(self, corpus: Corpus[ExampleT]) -> None:
        super().__init__(corpus)
        self.counts: Counter[str] = Counter()
        self.places: dict[str, list[ExamplePosition]] = defaultdict(list)

    def note(self, kind: str, text: str, side: int = 0) -> None:
        """Count a problem of the example being looked at."""
        self.counts[kind] += 1
        if len(self.places[kind]) < EXAMPLES:
            self.places[kind].append(ExamplePosition(self, self.count - 1, side, text))

    def at(self, numbers: NDArray[np.int64], side: int = 0) -> list[ExamplePosition]:
        """The first few of these examples."""
        return [ExamplePosition(self, number, side) for number in numbers[:EXAMPLES].tolist()]

    def text_of(self, example: ExampleT, side: int) -> str:
        """An example as a finding shows it."""
        return example.sides()[side]

    def example(self, place: ExamplePosition, text: str) -> Example:
        """A place as file, line and excerpt."""
        file, _, line = self.corpus.where(place.number, place.side).rpartition(":")
        return file, int(line), excerpt(text)

    def unreadable(self) -> list[Draft]:
        """The error that broke the pass off, as a finding with the place where it did."""
        if self.error is None:
            return []
        file, _, line = (self.error.where or self.corpus.name).rpartition(":")
        place = (file, int(line), "") if file and line.isdigit() else (self.error.where or self.corpus.name, 0, "")
        kind = "misaligned" if self.error.message.endswith(MISALIGNED) else "unreadable"
        said = str(self.error) if str(self.error)[-1:] in ".?!" else f"{self.error}."
        return [draft(kind, "fatal", 1, 1.0, said, examples=(place,))]


AnyScan: TypeAlias = CheckScan[Any]


def look_up(drafts: Iterable[Draft], read: bool) -> tuple[Finding, ...]:
    """The findings with their examples, the worst first.

    Args:
        drafts: the findings and their places.
        read: whether each corpus is read once more, up to the last place whose text is not known; else such a place
            is file and line alone.
    """
    drafts = list(drafts)
    wanted: dict[AnyScan, set[int]] = defaultdict(set)
    for place in (place for draft in drafts for place in draft.places if place.text is None and read):
        wanted[place.scan].add(place.number)
    texts: dict[tuple[AnyScan, int, int], str] = {}
    for scan, numbers in wanted.items():
        for number, example in zip(range(max(numbers) + 1), scan.corpus.examples(), strict=False):
            if number in numbers:
                texts |= {(scan, number, side): scan.text_of(example, side) for side in (0, 1)}

    def look(place: ExamplePosition) -> Example:
        known = place.text if place.text is not None else texts.get((place.scan, place.number, place.side), "")
        return place.scan.example(place, known)

    found = (replace(draft.finding, examples=(*draft.finding.examples, *map(look, draft.places))) for draft in drafts)
    return sort_findings(found)


def announce(findings: Iterable[Finding], tell: Callable[[str], None]) -> None:
    """Tell findings, each with its first place.

    Raises:
        RegardError: one is fatal.
    """
    for finding in findings:
        places = [f"{file}:{line}" if line else file for file, line, _ in finding.examples[:1]]
        if finding.severity == "fatal":
            where = places[0] if places and places[0] not in finding.sentence else None
            option = f", or train all the same by {Option('despite_check', True)}" if finding.is_judgement else ""
            raise RegardError(f"{finding.sentence} See regard check for all that was found{option}.", where)
        tell(f"{finding.severity}: {finding.sentence}{f' First: {places[0]}' if places else ''}")

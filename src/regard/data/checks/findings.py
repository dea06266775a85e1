"""Findings of corpus checks and the report that collects them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, Self

Severity = Literal["fatal", "warning", "note"]
Example = tuple[str, int, str]
"""File, line (from 1; 0: the whole file) and the beginning of the text."""

UNREADABLE = frozenset(("unreadable", "misaligned", "no pairs", "no texts", "one label", "not a number"))
"""Kinds that leave nothing to learn from; all others are judgements that a person may overrule."""

EXAMPLES = 3
EXCERPT = 80


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


@dataclass(frozen=True)
class Report:
    """All findings, the worst first; ``usable`` unless one is fatal."""

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
        if warnings:
            noun = "a warning" if warnings == 1 else f"{warnings} warnings"
            return f"Usable, with {noun}: {self.pairs:,} pairs."
        return f"Usable: {self.pairs:,} pairs."

    def overrule(self) -> Self:
        """The same report with all judgements reduced to warnings."""
        softer = (
            replace(finding, severity="warning") if finding.is_judgement and finding.severity == "fatal" else finding
            for finding in self.findings
        )
        return replace(self, findings=sort_findings(softer))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"usable": self.usable, "verdict": self.verdict} | asdict(self)


def sort_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort by severity, then findings that cannot be overruled first, then by count."""
    rank = {"fatal": 0, "warning": 1, "note": 2}
    return tuple(sorted(findings, key=lambda finding: (rank[finding.severity], finding.is_judgement, -finding.count)))

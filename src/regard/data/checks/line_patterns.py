"""Line patterns that reveal bad text (mojibake, lost or control characters, tabs, tokenised text), with messages."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import inf

from regard.data.checks.findings import Example, Finding, Severity, percent

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


def match_patterns(text: str) -> set[str]:
    """The kinds of problem in one line; a single search for clean lines."""
    return {_GROUPS[str(match.lastgroup)] for match in _ANY.finditer(text)} if _ANY.search(text) else set()


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
    "empty": PatternKind("{count} pairs ({share}) have an empty side; they are left out.", 0.01, 0.5),
    "invalid UTF-8": PatternKind(
        "{count} lines ({share}) are not valid UTF-8, most likely Latin-1 or Windows-1252; convert the file with "
        "`iconv -f WINDOWS-1252 -t UTF-8`.",
        0.0,
        0.01,
    ),
    "mojibake": PatternKind(
        "{count} lines ({share}) hold text decoded twice, such as 'Ã¤' for 'ä'; the file was read as Latin-1 and saved "
        "as UTF-8, repair it.",
        0.0005,
        0.2,
    ),
    "replacement": PatternKind("{count} lines ({share}) hold the sign U+FFFD: characters were lost earlier.", 0.001),
    "control": PatternKind("{count} lines ({share}) hold control characters or Unicode line separators.", 0.001),
    "carriage return": PatternKind(
        "{count} lines ({share}) hold a carriage return inside; was the file joined from others?", 0.001
    ),
    "tab": PatternKind("{count} lines ({share}) hold a tab; is the file a table? Then name it .tsv.", 0.001),
    "tokenised": PatternKind(
        "{count} lines ({share}) look tokenised or escaped already (&apos;, @-@): translations will look so too, "
        "and BLEU will not compare; use raw text.",
        0.05,
    ),
    "duplicate": PatternKind("{count} pairs ({share}) repeat an earlier pair; they count more than once.", 0.1, 0.9),
    "copy": PatternKind(
        "{count} pairs ({share}) have the same text on both sides; the model learns to copy.", 0.05, 0.5
    ),
    "too long": PatternKind(
        "{count} pairs ({share}) are longer than about {limit} tokens; they are left out (data.max_tokens).", 0.05, 0.9
    ),
    "ratio": PatternKind(
        "{count} pairs ({share}) have sides of very unlike length; are they translations of each other?", 0.02, 0.4
    ),
    "bytes": PatternKind(
        "{share} of the words hold characters the vocabulary does not know and fall to bytes; is it a vocabulary "
        "of these languages?",
        0.01,
        0.3,
    ),
}
"""What each kind means; the shares are of what its sentence counts: lines (each pair has two), pairs or words."""


def pattern_finding(kind: str, count: int, pairs: int, examples: tuple[Example, ...], limit: int = 0) -> Finding:
    """The finding for ``count`` lines or pairs of a kind among ``pairs``; ``limit``: most tokens of a sentence."""
    share = count / max(1, 2 * pairs if kind in PATTERNS else pairs)
    sentence = KINDS[kind].sentence.format(count=f"{count:,}", share=percent(share), limit=limit)
    return Finding(kind, KINDS[kind].severity(share), count, share, examples, sentence)

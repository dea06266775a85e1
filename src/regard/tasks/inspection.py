"""The look at the data before any time is spent on it: how many pairs, and whether they can be learned from."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from regard.data.corpora import Corpus
from regard.data.findings import Report
from regard.data.report import check
from regard.errors import RegardError


def inspect(
    corpora: Sequence[Corpus], validation: Corpus | None, max_tokens: int, told: Callable[[str], None]
) -> Report:
    """Read every pair once, say what is suspect, and refuse what cannot be learned from.

    Raises:
        RegardError: something in the data would spoil the model for certain.
    """
    report = check(corpora, {"the validation pairs": validation} if validation else None, max_tokens)
    for finding in report.findings:
        if finding.severity == "fatal":
            where = next((f"{file}:{line}" if line else file for file, line, _ in finding.examples), "")
            named = where and where not in finding.sentence
            raise RegardError(f"{finding.sentence} See regard check for all that was found.", where if named else None)
        told(f"{finding.severity}: {finding.sentence}{_place(finding.examples)}")
    told(report.verdict)
    return report


def _place(examples: Sequence[tuple[str, int, str]]) -> str:
    return f" First: {examples[0][0]}:{examples[0][1]}" if examples else ""

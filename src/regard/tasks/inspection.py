"""The look at the data before any time is spent on it: how many pairs, and whether they can be learned from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from regard.data.corpora import Corpus
from regard.data.findings import Report
from regard.data.report import check
from regard.errors import RegardError

Found = TypeVar("Found", bound=Report)


CHECKING = "checking the data"
"""What is said before all of it is read for the first time."""


def inspect(
    corpora: Sequence[Corpus],
    validation: Corpus | None,
    max_tokens: int,
    told: Callable[[str], None],
    despite_check: bool = False,
) -> Report:
    """Read every pair once, say what is suspect, and refuse what cannot be learned from.

    With ``despite_check``, what is only judged to spoil the model is said, not refused.

    Raises:
        RegardError: something in the data would spoil the model, or cannot be read.
    """
    told(CHECKING)
    report = check(corpora, {"the validation pairs": validation} if validation else None, max_tokens)
    return told_and_refused(report, told, despite_check)


def told_and_refused(report: Found, told: Callable[[str], None], despite_check: bool) -> Found:
    """Say what a look at the data found, and refuse what cannot be learned from.

    Raises:
        RegardError: something in the data would spoil the model, or cannot be read.
    """
    if despite_check:
        report = report.overruled()
    for finding in report.findings:
        if finding.severity == "fatal":
            where = next((f"{file}:{line}" if line else file for file, line, _ in finding.examples), "")
            named = where and where not in finding.sentence
            option = ", or train all the same by --despite-check" if finding.judged else ""
            more = f"See regard check for all that was found{option}."
            raise RegardError(f"{finding.sentence} {more}", where if named else None)
        told(f"{finding.severity}: {finding.sentence}{_place(finding.examples)}")
    told(report.verdict)
    return report


def _place(examples: Sequence[tuple[str, int, str]]) -> str:
    return f" First: {examples[0][0]}:{examples[0][1]}" if examples else ""

"""Data checks before training: counts, duplicates and suspicious lines; refuses data that cannot be learned from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from regard.data.checks.findings import Report
from regard.data.checks.pairs import check_pairs
from regard.data.corpora.pairs import Corpus
from regard.system.errors import RegardError

Found = TypeVar("Found", bound=Report)


CHECKING = "checking the data"
"""Message before the first pass over the data."""


def inspect(
    corpora: Sequence[Corpus],
    validation: Corpus | None,
    max_tokens: int,
    told: Callable[[str], None],
    despite_check: bool = False,
) -> Report:
    """Read every pair once, report suspicious data, and refuse data that cannot be learned from.

    With ``despite_check``, data judged to spoil the model is reported, not refused.

    Raises:
        RegardError: something in the data would spoil the model, or cannot be read.
    """
    told(CHECKING)
    report = check_pairs(corpora, {"the validation pairs": validation} if validation else None, max_tokens)
    return report_and_refuse(report, told, despite_check)


def report_and_refuse(report: Found, told: Callable[[str], None], despite_check: bool) -> Found:
    """Report the findings, and refuse data that cannot be learned from.

    Raises:
        RegardError: something in the data would spoil the model, or cannot be read.
    """
    if despite_check:
        report = report.overrule()
    for finding in report.findings:
        if finding.severity == "fatal":
            where = next((f"{file}:{line}" if line else file for file, line, _ in finding.examples), "")
            named = where and where not in finding.sentence
            option = ", or train all the same by --despite-check" if finding.is_judgement else ""
            more = f"See regard check for all that was found{option}."
            raise RegardError(f"{finding.sentence} {more}", where if named else None)
        told(f"{finding.severity}: {finding.sentence}{_place(finding.examples)}")
    told(report.verdict)
    return report


def _place(examples: Sequence[tuple[str, int, str]]) -> str:
    return f" First: {examples[0][0]}:{examples[0][1]}" if examples else ""

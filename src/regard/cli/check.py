"""``regard check``: whether the data can be learned from, before any time is spent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.data.corpora import Corpus
    from regard.data.findings import Report

MARKS = {"fatal": "✗", "warning": "!", "note": "·"}


def check(
    *,
    source: list[Path] | None = None,
    target: list[Path] | None = None,
    pairs: list[Path] | None = None,
    columns: str | None = None,
    test_source: list[Path] | None = None,
    test_target: list[Path] | None = None,
    model: Path | None = None,
    max_tokens: int = 256,
    json: bool = False,
) -> int:
    """Look for what spoils a corpus, and say whether it can be learned from.

    Empty, misaligned, repeated and over-long lines, odd lengths, control characters, wrong encodings, and test
    sentences that stand in the training data, each with file and line. Exit 0: usable; 1: not.

    Args:
        source: sentences of one language; may be given several times.
        target: their translations.
        pairs: a TSV or JSONL file that holds both sides; may be given several times.
        columns: where in it: two columns "1,2" of a TSV, two keys "en,de" of a JSONL.
        test_source: sentences to test on, looked for in the training data.
        test_target: their translations.
        model: a model folder; words are counted that its vocabulary can only spell in bytes.
        max_tokens: longer pairs would be left out of training.
        json: print one JSON object.
    """
    if bool(source) != bool(target):
        raise UsageError(
            f"give both --source FILE and --target FILE; {'--target' if source else '--source'} is missing"
        )
    if max_tokens < 2:
        raise UsageError(f"{max_tokens} tokens hold no sentence; give 2 or more", "--max-tokens")
    from regard.cli.terminal import result, result_json
    from regard.data import report
    from regard.tasks.asked import corpora
    from regard.text.vocabulary import Vocabularies

    found = report.check(
        corpora(source or (), target or (), pairs or (), columns),
        _tests(test_source or [], test_target or []),
        max_tokens,
        None if model is None else Vocabularies.load(model),
    )
    if json:
        result_json(found.to_dict())
    else:
        result(shown(found))
    return 0 if found.usable else 1


def _tests(source: list[Path], target: list[Path]) -> dict[str, Corpus]:
    if len(source) != len(target):
        raise UsageError(f"{len(source)} --test-source but {len(target)} --test-target; they go in pairs")
    from regard.tasks.asked import corpora

    return {corpus.name: corpus for corpus in (corpora(source, target) if source else ())}


def shown(found: Report) -> str:
    """The report for a person: each finding with examples, worst first, and the verdict at the end."""
    from regard.explore.labels import crop, visible

    lines = []
    for finding in found.findings:
        lines.append(f"{MARKS[finding.severity]} {finding.kind}: {visible(finding.sentence)}")
        for file, line, text in finding.examples:
            place = f"{file}:{line}" if line else file
            lines.append(f"    {visible(place)}" + (f"  {crop(visible(text), 80)}" if text else ""))
    if found.pairs:
        means = f"{found.source_characters:.0f} and {found.target_characters:.0f}"
        lines.append(f"{found.pairs:,} pairs, {means} characters on average.")
    return "\n".join([*lines, visible(found.verdict)]) + "\n"

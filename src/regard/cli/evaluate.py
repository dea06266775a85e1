"""``regard evaluate``: BLEU and chrF of a model on a test set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from regard.errors import RegardError, UsageError


def evaluate(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *,
    source: Path | None = None,
    reference: Path | None = None,
    beam: int | None = None,
    lowercase: bool = False,
    json: bool = False,
    device: str | None = None,
    threads: int | None = None,
) -> int:
    """Score a model on a test set: BLEU and chrF by sacreBLEU.

    Each with its signature and a 95 % confidence interval.

    Args:
        folder: the model folder.
        source: sentences to translate.
        reference: what they should become, line by line.
        beam: hypotheses kept while searching; default: the recipe's.
        lowercase: score without regard to case (the signature says so).
        json: print one JSON object.
        device: cpu, cuda ...
        threads: processor threads.
    """
    if source is None or reference is None:
        raise UsageError(
            f"give both --source FILE and --reference FILE; {'--source' if not source else '--reference'} is missing"
        )
    from regard.cli.terminal import result, result_json, say_mended
    from regard.text.lines import Notes, lines

    notes = Notes(), Notes()
    sources, references = list(lines(source, notes[0])), list(lines(reference, notes[1]))
    for path, mended in zip((source, reference), notes, strict=True):
        say_mended(str(path), mended)
    if len(sources) != len(references):
        raise RegardError(
            f"has {len(references)} lines, but {source} has {len(sources)}; they must match line by line",
            str(reference),
        )
    from regard.cli.opening import opened

    scores = opened(folder, device, threads).evaluate(sources, references, beam=beam, lowercase=lowercase)
    if json:
        result_json(scores.to_dict())
        return 0
    for name, value, interval, signature in (
        ("BLEU", scores.bleu, scores.bleu_interval, scores.bleu_signature),
        ("chrF", scores.chrf, scores.chrf_interval, scores.chrf_signature),
    ):
        span = f"  (95 %: {interval[0]:.1f} to {interval[1]:.1f})" if interval else ""
        result(f"{name} {value:5.2f}{span}  {signature}")
    return 0

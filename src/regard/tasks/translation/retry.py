"""Damaged translations searched for again: by a beam, without repetitions, by coverage; the soundest is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from regard.system.errors import collect_notices
from regard.tasks.translation.guard import Attempt, GuardReport

if TYPE_CHECKING:
    from regard.tasks.text.output_options import OutputOptions
    from regard.tasks.text.writer import Hypothesis, Writer

BEAM = 5
"""Of the searches after a greedy one."""
NO_REPEAT = ("decoding.no_repeat_ngram=3",)
COVERAGE = ("decoding.coverage_penalty=0.4",)
SETTINGS = (NO_REPEAT, COVERAGE)
"""What is tried after a beam, one after the other; the second where a model attends."""


def retry(
    task: Writer[Any, Any],
    texts: Sequence[str],
    found: Sequence[list[Hypothesis]],
    options: OutputOptions,
    prefixes: Sequence[str] | None = None,
) -> list[list[Hypothesis]]:
    """Outputs; what the guard warns of is searched for again until it warns no more, and the soundest is kept.

    One that lacks a term, or has what is forbidden, is not kept before one that does not.

    Args:
        task: a translator.
        texts: the sources.
        found: outputs of each, the best first and with its report.
        options: by which they were found.
        prefixes: what each translation begins with.
    """
    best, tried = [*found], [[_attempt((), one[0])] for one in found]
    beam = options.beam or task.recipe.decoding.beam
    wider = replace(options, beam=max(options.n, beam if beam > 1 else BEAM), guard="warn")
    own = task.terminology if options.terms is None else options.terms
    soft = task.recipe.decoding.term_bonus > 0

    def badness(text: str, output: Hypothesis) -> tuple[int, float]:
        """How many terms a translation lacks and forbidden words it has, and the score of the guard."""
        lacks = own.count_misses(text, output.text, task.direction, soft) if own else 0
        return lacks, _report(output).score

    plans: list[tuple[str, ...]] = list(SETTINGS[:1] if soft else SETTINGS)
    if beam == 1:  # first a wider search alone, then the others by it
        wide = f"decoding.beam={BEAM}"
        plans = [(wide,), *((wide, *one) for one in plans)]
    for settings in plans:
        places = [place for place, one in enumerate(best) if _may_mend(_report(one[0]), settings)]
        some = [texts[place] for place in places]
        begins = None if prefixes is None else [prefixes[place] for place in places]
        with collect_notices():  # the first search told of long texts
            again = task.with_settings(settings).write(some, wider, prefixes=begins)
        for place, other in zip(places, again, strict=True):
            tried[place].append(_attempt(settings, other[0]))
            if badness(texts[place], other[0]) < badness(texts[place], best[place][0]):
                best[place] = other
    return [
        [replace(one[0], tried=tuple(attempts) if len(attempts) > 1 else ()), *one[1:]]
        for one, attempts in zip(best, tried, strict=True)
    ]


def _may_mend(report: GuardReport, settings: tuple[str, ...]) -> bool:
    """Whether a translation is searched for again, and so."""
    attends = any(one.kind == "omission" for one in report.features)
    return bool(report.warnings) and (attends or COVERAGE[0] not in settings)


def _attempt(settings: tuple[str, ...], best: Hypothesis) -> Attempt:
    return Attempt(settings, best.text, round(_report(best).score, 4))


def _report(best: Hypothesis) -> GuardReport:
    assert best.guard is not None
    return best.guard

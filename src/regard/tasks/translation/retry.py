"""Damaged translations searched for again: by a beam, without repetitions, by coverage; the soundest is kept."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

from regard.tasks.translation.guard import Attempt, GuardReport
from regard.tasks.translation.translator import Hypothesis, Translation

BEAM = 5
"""Of the searches after a greedy one."""
NO_REPEAT = ("decoding.no_repeat_ngram=3",)
COVERAGE = ("decoding.coverage_penalty=0.4",)
SETTINGS = (NO_REPEAT, COVERAGE)
"""What is tried after a beam, one after the other; the second where a model attends."""


def guard_best(task: Translation, texts: Sequence[str], found: Sequence[list[Hypothesis]]) -> list[list[Hypothesis]]:
    """The same, the best of each text with its report.

    Args:
        task: the model.
        texts: the sources.
        found: outputs of each, the best first.
    """
    reports = task.guard(texts, [best.text for best, *_ in found])
    return [[replace(best, guard=report), *others] for (best, *others), report in zip(found, reports, strict=True)]


def retry(
    task: Translation,
    texts: Sequence[str],
    found: Sequence[list[Hypothesis]],
    beam: int | None = None,
    prefixes: Sequence[str] | None = None,
) -> list[list[Hypothesis]]:
    """The same; what the guard warns of is searched for again until it warns no more, and the soundest is kept.

    One that lacks a term, or has what is forbidden, is not kept before one that does not.

    Args:
        task, texts, found: as :func:`guard_best` has them.
        beam: of the first search; default: the recipe's.
        prefixes: what each translation begins with.
    """
    best = guard_best(task, texts, found)
    tried = [[_attempt((), one[0])] for one in best]
    beam, n = beam or task.recipe.decoding.beam, max(map(len, found), default=1)
    width = max(n, beam if beam > 1 else BEAM)
    for settings in _plans(beam, SETTINGS[:1] if task.recipe.decoding.term_bonus else SETTINGS):
        places = [place for place, one in enumerate(best) if _may_mend(_report(one[0]), settings)]
        some = [texts[place] for place in places]
        begins = None if prefixes is None else [prefixes[place] for place in places]
        with warnings.catch_warnings(action="ignore"):  # the first search told of long texts
            again = task.with_settings(settings).nbest(some, n, width, prefixes=begins)
        for place, other in zip(places, guard_best(task, some, again), strict=True):
            tried[place].append(_attempt(settings, other[0]))
            if _badness(task, texts[place], other[0]) < _badness(task, texts[place], best[place][0]):
                best[place] = other
    return [
        [replace(one[0], tried=tuple(attempts) if len(attempts) > 1 else ()), *one[1:]]
        for one, attempts in zip(best, tried, strict=True)
    ]


def _plans(beam: int, kinds: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Settings of the searches that are tried."""
    wider = () if beam > 1 else (f"decoding.beam={BEAM}",)
    return [*([wider] if wider else []), *((*wider, *one) for one in kinds)]


def _may_mend(report: GuardReport, settings: tuple[str, ...]) -> bool:
    """Whether a translation is searched for again, and so."""
    attends = any(one.kind == "omission" for one in report.features)
    return bool(report.warnings) and (attends or COVERAGE[0] not in settings)


def _badness(task: Translation, text: str, best: Hypothesis) -> tuple[int, float]:
    """How many terms a translation lacks and forbidden words it has, and the score of the guard."""
    own, soft = task.terminology, task.recipe.decoding.term_bonus > 0
    return own.count_misses(text, best.text, task.direction, soft) if own else 0, _report(best).score


def _attempt(settings: tuple[str, ...], best: Hypothesis) -> Attempt:
    return Attempt(settings, best.text, round(_report(best).score, 4))


def _report(best: Hypothesis) -> GuardReport:
    assert best.guard is not None
    return best.guard

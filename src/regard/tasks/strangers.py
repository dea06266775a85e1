"""Labels of a test set that a model was never taught: a few count as wrong, but nearly all are a slip in the asking."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable

from regard.data.findings import excerpt
from regard.errors import RegardError

FEW = 0.1
"""The share of labels that the model knows below which a warning is given."""
SHOWN = 3


def refuse_strangers(
    there: Counter[str], known: Callable[[str], bool], taught: Iterable[str], noun: str, where: str
) -> None:
    """See to it that a model knows labels of its test set; of one that is read by other columns it knows hardly any.

    Args:
        there: the labels, and how often each is there.
        known: whether the model was taught a label.
        taught: those it was taught, to be shown.
        noun: what they are called, label or tag.
        where: the test set.

    Raises:
        RegardError: none is known, so whatever the model says would count as wrong.

    Warns:
        UserWarning: fewer than a tenth are known.
    """
    count, mine = there.total(), sum(times for label, times in there.items() if known(label))
    if mine >= FEW * count:
        return
    strange = _named(label for label, _ in there.most_common() if not known(label))
    compared = f"they are {strange}, the model's {_named(taught)}"
    instead = f"if text and {noun} stand in other columns, name these by --columns, as in training"
    if not mine:
        raise RegardError(f"the model knows none of its {noun}s: {compared}; {instead}", where)
    said = f"{where}: the model knows {mine:,} of its {count:,} {noun}s: {compared}; {instead}"
    warnings.warn(said, stacklevel=4)  # where a task was asked to evaluate


def _named(labels: Iterable[str]) -> str:
    every = list(labels)
    return ", ".join(repr(excerpt(label)) for label in every[:SHOWN]) + (", …" if len(every) > SHOWN else "")

"""Test labels unknown to the model: counted as errors; if nearly all are, raise (probably the wrong columns)."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable

from regard.data.checks.findings import excerpt
from regard.system.errors import RegardError

FEW = 0.1
"""The share of labels that the model knows below which a warning is given."""
SHOWN = 3


def refuse_unknown_labels(
    there: Counter[str], known: Callable[[str], bool], taught: Iterable[str], noun: str, where: str
) -> None:
    """Check that a model knows the labels of its test set; if columns are wrong it knows hardly any.

    Args:
        there: counts of the labels.
        known: whether the model has a label.
        taught: its labels, for the message.
        noun: label or tag.
        where: the test set.

    Raises:
        RegardError: none is known, so every prediction would be wrong.

    Warns:
        UserWarning: fewer than a tenth are known.
    """
    count, mine = there.total(), sum(times for label, times in there.items() if known(label))
    if mine >= FEW * count:
        return
    strange = _label_list(label for label, _ in there.most_common() if not known(label))
    compared = f"they are {strange}, the model's {_label_list(taught)}"
    instead = f"if text and {noun} are in other columns, name them by --columns, as in training"
    if not mine:
        raise RegardError(f"the model knows none of its {noun}s: {compared}; {instead}", where)
    said = f"{where}: the model knows {mine:,} of its {count:,} {noun}s: {compared}; {instead}"
    warnings.warn(said, stacklevel=4)  # where a task was asked to evaluate


def _label_list(labels: Iterable[str]) -> str:
    every = list(labels)
    return ", ".join(repr(excerpt(label)) for label in every[:SHOWN]) + (", …" if len(every) > SHOWN else "")

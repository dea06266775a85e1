"""The look at the data before any time is spent on it: how many pairs, and whether they can be learned from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from regard.data.corpora import Corpus


@dataclass(frozen=True)
class Inspected:
    """What was found."""

    pairs: int


def inspect(corpora: Sequence[Corpus], told: Callable[[str], None]) -> Inspected:
    """Read every pair once."""
    return Inspected(sum(1 for corpus in corpora for _ in corpus.pairs()))

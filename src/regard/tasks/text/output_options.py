"""What one call wants of each text: how many outputs, and how they are searched for, drawn or chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from regard.system.errors import Option, UsageError
from regard.tasks.text.task import sampling_values

if TYPE_CHECKING:
    from regard.decoding.hypotheses import Trace
    from regard.tasks.text.terms import Terminology

MOST = 100
"""Outputs of a text, candidates and hypotheses of a beam, at most."""


@dataclass(frozen=True)
class OutputOptions:
    """What one call wants of each text.

    Args:
        n: outputs, the best first.
        beam: hypotheses kept while searching; 1 is greedy; default: the recipe's, or as many as outputs where that is
            more.
        sample: draws outputs instead of searching for the most probable.
        mbr: chooses of so many candidates those that are most like the others: of drawn ones, with a beam of the best.
        seed: another seed, other drawn outputs; default: the recipe's.
        drawing: temperature, top_k, top_p, min_p, typical, repetition_penalty; default: the recipe's.
        guard: of a translator ``warn`` reports what speaks against each best output, ``retry`` searches again.
        terms: what outputs contain and what they do not; what cannot be had is told by a warning. Default: the model's.
        scores: whether they are wanted; a greedy search is faster without, and they may be NaN.
        max_extra: tokens an output may have more than its source; default: the recipe's.
        trace: told of every step of the search, numbered by part.

    Raises:
        UsageError: a number does not fit, or some of these do not go together.
    """

    n: int = 1
    beam: int | None = None
    sample: bool = False
    mbr: int | None = None
    seed: int | None = None
    drawing: Mapping[str, float | None] = field(default_factory=dict)
    guard: Literal["warn", "retry"] | None = None
    terms: Terminology | None = None
    scores: bool = True
    max_extra: int | None = None
    trace: Trace | None = None

    def __post_init__(self) -> None:
        if self.terms is not None and not hasattr(self.terms, "forbidden"):
            raise UsageError(
                f"{self.terms!r:.80} is no Terminology; Terminology.read makes one of a file", Option("terms")
            )
        if self.guard not in (None, "warn", "retry"):
            raise UsageError(f"{self.guard!r:.80} is neither warn nor retry", Option("guard"))
        for name, least in (("n", 1), ("beam", 1), ("mbr", 2)):
            if (number := getattr(self, name)) is not None:
                refuse_outside(number, Option(name), least)
        if self.mbr is not None and self.mbr < self.n:
            raise UsageError(f"{self.mbr} candidates give no {self.n} outputs; ask for more", Option("mbr"))
        if self.sample and self.beam is not None:
            raise UsageError(f"is for searching, but {Option('sample')} draws; leave one out", Option("beam"))
        if self.beam is not None and self.beam < self.candidates:
            message = f"a beam of {self.beam} gives no {self.candidates} outputs; widen it or leave it out"
            raise UsageError(message, Option("beam"))
        if self.guard == "retry" and (self.sample or self.mbr):
            others = f"{Option('sample')} draws and {Option('mbr')} ranks"
            raise UsageError(f"retry searches again, but {others}; leave them out", Option("guard"))
        drawing = sampling_values(self.drawing, "sample")
        if not self.draws and (there := [*(["seed"] if self.seed is not None else []), *drawing]):
            also = Option("settings", "decoding.repetition_penalty=NUMBER")
            searching = f"; in a search it is {also}" if there[0] == "repetition_penalty" else ""
            draw = f"leave {Option('beam')} out" if self.mbr else f"add {Option('sample', True)}"
            raise UsageError(f"is for drawing; {draw}{searching}", Option(there[0]))

    @property
    def draws(self) -> bool:
        """Whether outputs are drawn."""
        return self.sample or (self.mbr is not None and self.beam is None)

    @property
    def candidates(self) -> int:
        """Outputs of each text that are looked for."""
        return self.mbr or self.n


def refuse_outside(number: object, name: str, least: int = 1) -> None:
    """Refuse what is no whole number from ``least`` to :data:`MOST`.

    Raises:
        UsageError: it is none; names the argument.
    """
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= MOST:
        raise UsageError(f"{number!r} is no whole number from {least} to {MOST}", name)

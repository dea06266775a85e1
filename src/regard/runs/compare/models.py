"""Finished translators on one test set: which is better, by paired bootstrap resampling [Koehn04]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

from regard.tasks.metrics.bleu import SAMPLES, Interval, metrics_of
from regard.text.terminal import Table


@dataclass(frozen=True)
class SystemScore:
    """A measure of one system's outputs, 0 to 100, beside those of the first.

    Args:
        score: of all sentences; ``interval``: 95 % of the samples.
        p: how probable it is that a difference as large comes by chance; ``None`` of the first itself.
    """

    score: float
    interval: Interval
    p: float | None


@dataclass(frozen=True)
class PairedComparison:
    """Several systems on the same sentences.

    Args:
        systems: scores by measure, by the name of the system.
        signatures: sacreBLEU's, by measure.
        sentences: how many.
    """

    systems: Mapping[str, Mapping[str, SystemScore]]
    signatures: Mapping[str, str]
    sentences: int

    def to_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return asdict(self)

    def table(self) -> Table:
        """The scores as people read them."""
        headings = ["model", *(part for name in self.signatures for part in (f"{name}\n95 %", "p"))]
        rows = [
            (name, *(cell for one in scores.values() for cell in _cells(one))) for name, scores in self.systems.items()
        ]
        note = f"{self.sentences:,} sentences; p: of a difference from the first as large as this by chance."
        return Table(tuple(headings), tuple(rows), (note, *self.signatures.values()))


def _cells(one: SystemScore) -> tuple[str, str]:
    low, high = one.interval
    return f"{one.score:.2f} ({low:.1f} to {high:.1f})", "–" if one.p is None else f"{one.p:.3f}"


def compare_outputs(
    outputs: Mapping[str, Sequence[str]], references: Sequence[str], language: str, lowercase: bool = False
) -> PairedComparison:
    """Compare systems by BLEU and chrF, the first with each of the others.

    Args:
        outputs: of each system, by its name; ``references``: line by line.
        language: of the target.
        lowercase: compare without regard to case.
    """
    from sacrebleu.significance import PairedTest

    test = PairedTest(list(outputs.items()), metrics_of(language, lowercase), [list(references)], "bs", SAMPLES)
    signatures, rows = test()
    found = cast(Mapping[str, Sequence[Any]], rows)  # of sacreBLEU's Results, beside the column of names
    systems: dict[str, dict[str, SystemScore]] = {name: {} for name in outputs}
    for measure in signatures:
        for name, one in zip(outputs, found[measure], strict=True):
            systems[name][measure] = SystemScore(one.score, (one.mean - one.ci, one.mean + one.ci), one.p_value)
    return PairedComparison(systems, {name: str(one) for name, one in signatures.items()}, len(references))

"""Results of one comparison run: learning curve from its log, and scores, also by source length."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter

from regard.models.complexity import ModelCosts
from regard.system import disk
from regard.system.errors import RegardError
from regard.tasks.metrics.bleu import TranslationScores, score
from regard.tasks.metrics.breakdown import by_length, length
from regard.training.log import LARGEST


@dataclass(frozen=True)
class Point:
    """A validation: loss in nats per token; BLEU of greedy search on the first sentences, if computed."""

    step: int
    seconds: float
    loss: float
    bleu: float | None = None


@dataclass(frozen=True)
class ScoreCurve:
    """How a run went.

    Args:
        parameters: of the model.
        steps: updates made.
        seconds: they took, validations included.
        tokens_per_second: target tokens that were learned from in a second of training, validations left out.
        points: the validations.
    """

    parameters: int
    steps: int
    seconds: float
    tokens_per_second: float
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Part:
    """BLEU of the sentences whose source has ``first`` to ``last`` words; with no ``last``, all that are longer."""

    first: int
    last: int | None
    sentences: int
    bleu: float | None
    bleu_lowercase: float | None

    @property
    def name(self) -> str:
        """``9-12``, or ``21+``."""
        return f"{self.first}+" if self.last is None else f"{self.first}-{self.last}"


@dataclass(frozen=True)
class ScoreSummary:
    """TranslationScores of a set of sentences, searched as the recipe says; with and without regard to case."""

    sentences: int
    bleu: float
    bleu_lowercase: float
    chrf: float
    signature: str
    signature_lowercase: str
    by_length: tuple[Part, ...]


@dataclass(frozen=True)
class Result:
    """A run: who it was, what it rests on, how it went, how good it is.

    Args:
        run: its folder's name.
        recipe: its recipe's name; ``seed``, ``share``: of the data.
        rests: everything it rests on, by name; a run of other values is another run.
        course: read off its log.
        shape: size and cost of the model by formula [Vaswani17 §4], for validation sentences of mean length.
        valid, test: scores of the model that was kept.
        failed: why there is no model, if there is none.
    """

    run: str
    recipe: str
    seed: int
    share: float
    rests: Mapping[str, object]
    course: ScoreCurve
    shape: ModelCosts | None = None
    valid: ScoreSummary | None = None
    test: ScoreSummary | None = None
    failed: str | None = None
    about: Mapping[str, object] = field(default_factory=dict)
    """Where and when: machine, torch, date."""


_RESULT = TypeAdapter(Result)


def to_json(result: Result) -> dict[str, object]:
    """Plain values; numbers that are not finite become ``None``."""
    return dict(json.loads(_RESULT.dump_json(result)))


def read_results(path: Path) -> dict[str, Result]:
    """The results of a file, by run; the last one of each run. A torn last line is ignored.

    Raises:
        RegardError: a line is something else.
    """
    if not path.exists():
        return {}
    found = {}
    for number, line in enumerate(disk.content(path, kind="file of results").splitlines(keepends=True), 1):
        if not line.endswith(b"\n"):
            continue  # cut off while it was written: the run is scored again
        try:
            result = _RESULT.validate_python(json.loads(line))
        except (ValueError, RecursionError) as error:
            where = str(error).splitlines()[0]
            raise RegardError(f"is no result of a comparison: {where}", f"{path}:{number}") from None
        found[result.run] = result
    return found


def score_curve(metrics: Path) -> ScoreCurve:
    """How a run went, from its ``metrics.jsonl``.

    Raises:
        RegardError: it is missing, or no log of a training, or no step was made.
    """
    lines = disk.content(metrics, LARGEST, "log").splitlines(keepends=True)
    try:
        entries = [json.loads(line) for line in lines if line.endswith(b"\n")]
        steps = [entry for entry in entries if entry["kind"] == "step"]
        starts = [entry for entry in entries if entry["kind"] == "start"]
        valid = [entry for entry in entries if entry["kind"] == "valid" and entry.get("loss") is not None]
        if not steps or not starts:
            raise RegardError("has no steps", str(metrics))
        paced = [entry for entry in steps if entry.get("tokens_per_second")]
        spent = sum(entry["tokens"] / entry["tokens_per_second"] for entry in paced)
        return ScoreCurve(
            parameters=starts[-1]["parameters"],
            steps=steps[-1]["step"],
            seconds=max(entry["seconds"] for entry in [*steps, *valid]),
            tokens_per_second=sum(entry["tokens"] for entry in paced) / spent if spent else 0.0,
            points=tuple(Point(e["step"], e["seconds"], e["loss"], e.get("bleu")) for e in valid),
        )
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError, RecursionError) as error:
        raise RegardError(f"is no log of a training: {error!r:.80}", str(metrics)) from None


def at(points: Sequence[Point], axis: Literal["step", "seconds"], place: float, score: str = "loss") -> float | None:
    """A score between two validations, by a straight line; None before the first that has it, and after the last."""
    known = [(float(getattr(p, axis)), getattr(p, score)) for p in points if getattr(p, score) is not None]
    for (left, low), (right, high) in zip([known[0], *known] if known else [], known, strict=False):
        if left <= place <= right:
            part = (place - left) / (right - left) if right > left else 1.0
            return float(low + part * (high - low))
    return None


def common(results: Sequence[Result], axis: Literal["step", "seconds"]) -> float | None:
    """The largest step, or time, that the validations of all runs reach; None where a run has none."""
    ends = [result.course.points[-1] for result in results if result.failed is None and result.course.points]
    whole = len(ends) == sum(result.failed is None for result in results)
    return min(float(getattr(point, axis)) for point in ends) if ends and whole else None


def quality(
    sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str], languages: tuple[str, str]
) -> ScoreSummary:
    """BLEU and chrF, of all sentences and, of BLEU, by the length of the source [Papineni02, Popovic15].

    Args:
        sources, hypotheses, references: line by line.
        languages: codes of source and target.
    """

    def scores(chosen: Sequence[int]) -> list[TranslationScores]:
        """With and without regard to case."""
        said, meant = [hypotheses[i] for i in chosen], [references[i] for i in chosen]
        return [score(said, meant, languages[1], lowercase, samples=1) for lowercase in (False, True)]

    lengths, parts = [length(source, languages[0]) for source in sources], []
    whole, lowercase = scores(range(len(lengths)))
    for first, last, chosen in by_length(lengths):
        cased, lower = (one.bleu for one in scores(chosen)) if chosen else (None, None)
        parts.append(Part(first, last, len(chosen), cased, lower))
    return ScoreSummary(
        sentences=whole.sentences,
        bleu=whole.bleu,
        bleu_lowercase=lowercase.bleu,
        chrf=whole.chrf,
        signature=whole.bleu_signature,
        signature_lowercase=lowercase.bleu_signature,
        by_length=tuple(parts),
    )

"""The demonstration with one idea of the paper taken out, trained on the same sentences, beside the whole model.

``without.json`` in the demonstration's folder keeps what was measured of the whole model and of every idea so far.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from textwrap import shorten
from types import MappingProxyType
from typing import Annotated, Any, Literal

import torch
from pydantic import Field, TypeAdapter
from torch import Tensor

from regard.config import FORMAT, checksum, merge
from regard.models.captured_attention import weights_of
from regard.runs.demo import NAME
from regard.runs.demo import translation as demonstration
from regard.runs.demo.grammar import Corpus, Pair, corpus
from regard.runs.demo.translation import RECIPE, DemoScores, quality, sentences_that_decide, teacher
from regard.system import disk
from regard.system.errors import Diverged, RegardError, Stopped
from regard.tasks.translation.translator import Translation
from regard.training.checkpoints.files import Files
from regard.training.log import Reporter

Idea = Literal["residual", "norm", "positions", "scale", "mask", "heads", "attention", "feed-forward"]
ABSENT: Mapping[Idea, Mapping[str, object]] = {
    "residual": {"without": "residual"},
    "norm": {"without": "norm"},
    "positions": {"positions": "none"},
    "scale": {"without": "scale"},
    "mask": {"without": "mask"},
    "heads": {"heads": 1, "decoder_heads": 1},
    "attention": {"without": "attention"},
    "feed-forward": {"without": "feed-forward"},
}
"""What says in a recipe that an idea is taken out."""
WHOLE = "whole"
LARGEST = 1 << 22
"""Bytes of the file that are read at most."""
SENTENCES, SHOWN, WIDTH = 100, 3, 90
"""Test sentences of which attention is measured, and whose translations are shown, by at most so many characters."""
MANY = 1000
"""Validations, layers, measured steps and uses of attention that are read at most."""
Finite = Annotated[float, Field(allow_inf_nan=False)]
Texts = Annotated[tuple[str, ...], Field(max_length=SHOWN)]


@dataclass(frozen=True)
class Measured:
    """What is measured of one model.

    Args:
        seed, steps: of its training; ``diverged``: why that ended before, if it did.
        parameters: of the model.
        curve: step and validation loss, in nats a token, every target token before known.
        scores: of the test sentences, translated greedily; ``None`` where training left no model.
        norms: the gradient's norm by step and then by layer; ``layers``: their names, in order.
        entropy: of attention in bits, before and after training, by use and layer.
        written: translations of the first test sentences.
    """

    seed: int
    steps: int
    parameters: int
    curve: Annotated[list[tuple[int, Finite]], Field(max_length=MANY)]
    layers: Annotated[list[str], Field(max_length=MANY)]
    norms: Annotated[list[tuple[int, Annotated[list[Finite], Field(max_length=MANY)]]], Field(max_length=MANY)]
    diverged: str | None = None
    scores: DemoScores | None = None
    entropy: Annotated[dict[str, tuple[Finite, Finite]], Field(max_length=MANY)] | None = None
    written: Texts = ()

    @property
    def fits(self) -> bool:
        """Whether every measured gradient has a norm for each layer."""
        return all(len(norms) == len(self.layers) for _, norms in self.norms)

    @property
    def best(self) -> float:
        """The least validation loss."""
        return min(loss for _, loss in self.curve)


@dataclass(frozen=True)
class Comparison:
    """The whole model beside those without an idea.

    Args:
        sources, references: the sentences whose translations are shown.
        models: the whole one first, by the idea that is taken out.
    """

    sources: Texts
    references: Texts
    models: Annotated[dict[str, Measured], Field(min_length=1, max_length=len(ABSENT) + 1)]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


_VALUES: TypeAdapter[Comparison] = TypeAdapter(Comparison)


def demonstrate_without(
    idea: Idea,
    output: Path,
    seed: int = 1,
    steps: int | None = None,
    reporter: Reporter | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    threads: int | None = None,
    training: Mapping[str, object] = MappingProxyType({}),
) -> Comparison:
    """Train the demonstration's model, should it not be there, and one without an idea; measure both.

    Args:
        idea: a key of :data:`ABSENT`; its model lies in ``without-IDEA/``.
        output, seed, steps, reporter, should_stop, threads: as of
            :func:`~regard.runs.demo.translation.demonstrate`.
        training: fields of the recipe's section that differ from the demonstration's, for both models.

    Raises:
        Stopped: ``should_stop`` returned true; the same command resumes.
    """
    reporter = reporter or Reporter()
    reporter.on_event("generating the corpus")
    made = corpus(demonstration.TRAIN, demonstration.VALID, demonstration.TEST, seed)
    teach = teacher(made, output, seed, steps, threads=threads, reporter=reporter, should_stop=should_stop)
    path = output / NAME
    found = {} if (known := read(path)) is None else dict(known.models)
    for name, change in ((WHOLE, {}), (idea, ABSENT[idea])):
        folder = output / ("model" if name == WHOLE else f"without-{name}")
        if name != WHOLE:
            reporter.on_event(f"the same without {name}")
        try:
            model, diverged = teach(output=folder, recipe=merge(RECIPE, {"model": change, "training": training})), None
        except Diverged as error:
            if name == WHOLE:
                raise
            model, diverged = None, error.message
        if should_stop():
            raise Stopped("stopped before the scores; the model is saved, the same command makes them")
        reporter.on_event("translating the test sentences")
        found[name] = measure(folder, model, made, seed, diverged)
        alike = found[WHOLE].seed, found[WHOLE].steps
        found = {one: kept for one, kept in found.items() if (kept.seed, kept.steps) == alike or kept.diverged}
    sources, references = zip(*((pair.source, pair.target) for pair in to_show(made)), strict=True)
    write(path, Comparison(sources, references, found))
    return Comparison(sources, references, {name: found[name] for name in (WHOLE, idea)})


def measure(folder: Path, model: Translation | None, made: Corpus, seed: int, diverged: str | None = None) -> Measured:
    """What the log of a training says, and what its model does.

    Args:
        folder: of the training; ``model``: what it made, if it made one.
        made: the corpus; ``seed``: of training.
        diverged: why the training ended early.
    """
    log = [json.loads(line) for line in disk.content(folder / "training" / "metrics.jsonl", kind="log").splitlines()]
    steps = [line for line in log if line["kind"] == "step"]
    rows = {line["step"]: norms for line in steps if (norms := line.get("norms")) and None not in norms.values()}
    layers = list(next(iter(rows.values()), {}))
    told = Measured(
        seed,
        max((line["step"] for line in steps), default=0),
        next(line["parameters"] for line in log if line["kind"] == "start"),
        [(line["step"], line["loss"]) for line in log if line["kind"] == "valid" and line["loss"] is not None],
        layers,
        [(step, [norms[layer] for layer in layers]) for step, norms in rows.items()],
        diverged,
    )
    if model is None:
        return told
    shown = to_show(made)
    written = model.translate([pair.source for pair in [*made.test, *shown]], beam=1)
    tested = len(made.test)
    return replace(
        told,
        scores=quality(made.test, written[:tested]),
        entropy=entropies(model, made.test[:SENTENCES], seed),
        written=tuple(written[tested:]),
    )


def to_show(made: Corpus) -> list[Pair]:
    """The test sentences whose translations are shown: first ones with a pronoun that tells, if there are any."""
    return (sentences_that_decide(made.test) or list(made.test))[:SHOWN]


def entropies(model: Translation, pairs: Sequence[Pair], seed: int) -> dict[str, tuple[float, float]]:
    """Mean entropy of attention in bits, of a fresh model and of this one, by use and layer.

    The first query of a sentence, which in a decoder sees one token only, is left out.
    """
    both, fresh = model.vocabularies, model.build(model.recipe, model.assets.sizes, seed)
    sources = [[*found.ids, both.source.end] for found in both.source.encode_batch([pair.source for pair in pairs])]
    targets = [[both.target.start, *found.ids] for found in both.target.encode_batch([pair.target for pair in pairs])]
    family = model.recipe.model.family
    before, behind = (weights_of(one, family, sources, targets) for one in (fresh, model.model))
    return {
        f"{kind} {layer}": (_entropy(before[kind][layer - 1]), _entropy(found))
        for kind, layers in behind.items()
        for layer, found in enumerate(layers, 1)
    }


def _entropy(weights: Sequence[Tensor]) -> float:
    """Of each head's attention from each query, in bits, on average."""
    each = [-torch.xlogy(one, one).sum(2) for weight_HQK in weights for one in [weight_HQK[:, 1:].double()]]
    return float(torch.cat([one.flatten() for one in each]).mean() / math.log(2))


def read(path: Path) -> Comparison | None:
    """What was measured before; ``None`` where there is no file.

    Raises:
        RegardError: the file is damaged, or holds something else.
    """
    if not path.exists():
        return None
    values = checksum.load_json(disk.content(path, LARGEST, "file of measurements"), path, required=True)
    values.pop("format")
    try:
        found = _VALUES.validate_python(values)
        if WHOLE not in found.models or any(not one.fits for one in found.models.values()):
            raise ValueError("measurements of some other kind")
        return found
    except (ValueError, RecursionError):
        raise RegardError("holds no measurements of ours; move it away and rerun the same command", str(path)) from None


def write(path: Path, measured: Comparison) -> None:
    """Keep what is measured of every idea so far."""
    with disk.naming(path):
        Files().replace(path, [checksum.dump_json({"format": FORMAT, **measured.to_dict()})])


def lines(found: Comparison) -> list[str]:
    """Both models beside each other, a line each."""
    (_, whole), (idea, without) = found.models.items()
    both = whole, without
    rows: list[Row] = [("", ["the whole model", f"without {idea}"])]
    rows.append(("parameters", [f"{one.parameters:,}" for one in both]))
    rows.append(("test sentences exactly right", [one.scores and f"{one.scores.exact:.1%}" for one in both]))
    rows.append(("BLEU", [one.scores and f"{one.scores.bleu:.1f}" for one in both]))
    pronouns = [one.scores and one.scores.pronoun for one in both]
    rows.append(("pronouns right", [some and f"{some.correct:,} of {some.total:,}" for some in pronouns]))
    rows.append(("validation loss, nats a token", [one.curve and f"{one.best:.3f}" for one in both]))
    rows += [row for place in sorted({0, len(whole.norms) - 1}) for row in _norms(*both, place)]
    rows += _entropies(*both)
    told = [f"{name:<46} {one or '–':>16} {other or '–':>22}" if one != "" else name for name, (one, other) in rows]
    if without.diverged:
        told += ["", f"Without {idea} the training ended early: {without.diverged}"]
    for number, source in enumerate(found.sources):
        right = found.references[number]
        told += ["", source, f"  {'right':<24} {right}"]
        for name, one in (("the whole model", whole), (f"without {idea}", without)):
            for text in one.written[number : number + 1]:
                told.append(f"  {name:<24} {shorten(text, WIDTH, placeholder=' …')} {'✓' if text == right else '✗'}")
    return told


Row = tuple[str, list[Any]]


def _norms(whole: Measured, without: Measured, place: int) -> Iterator[Row]:
    """The gradient's norms layer by layer, where they were measured first or last."""
    if not (whole.norms and without.norms):
        return
    yield f"norm of the gradient at step {whole.norms[place][0]:,}", ["", ""]
    found = [dict(zip(one.layers, one.norms[place][1], strict=True)) for one in (whole, without)]
    for layer in whole.layers:
        yield f"  {layer}", [one[layer] and f"{one[layer]:.3g}" if layer in one else None for one in found]


def _entropies(whole: Measured, without: Measured) -> Iterator[Row]:
    """The entropy of attention before and after training."""
    if not (whole.entropy and without.entropy):
        return
    yield "entropy of attention in bits, before → after", ["", ""]
    for use in whole.entropy:
        found = [one.entropy and one.entropy.get(use) for one in (whole, without)]
        yield f"  {use}", [some and f"{some[0]:.2f} → {some[1]:.2f}" for some in found]

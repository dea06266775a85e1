"""Writes the model folder of a run: assets first, then each best model, then its card (``card.md``) with its scores."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial
from pathlib import Path

from regard.config import Model, Recipe, RnnEncoderSection, RnnSection, TransformerSection, recipe_toml
from regard.config.adapter import BASE, base_content
from regard.models import store
from regard.models.presets import count_parameters
from regard.system import disk, processor
from regard.system.errors import Damaged, NoValidCheckpoint, Option, RegardError, UsageError
from regard.tasks.assets import PROCESSORS, json_content
from regard.tasks.model_folder import MODEL, RECIPE, load, validated_paths
from regard.tasks.model_path import CARD, weights_sha256
from regard.tasks.protocols import Task
from regard.tasks.training.base import PreparedData, TrainingTask
from regard.text.counts import counted
from regard.text.languages import UNKNOWN
from regard.training.checkpoints import checkpoint, manifest
from regard.training.checkpoints.files import Files
from regard.training.checkpoints.provenance import Provenance
from regard.training.objective import Validation, Weights, format_score
from regard.training.progress import Best, load_progress

SCORES = "Scores on the validation data"
"""Title of the card's section of scores."""


def card(
    recipe: Recipe, data: list[str], fingerprint: str, parameters: int, lines: list[str], made: Sequence[str] = ()
) -> str:
    """The card's text.

    Args:
        recipe: of the model.
        data: lines about the training data; ``fingerprint``: of the data.
        parameters: of the model.
        lines: its scores.
        made: lines about when, on what and by what it was made.
    """
    training = recipe.training
    steps = counted(training.steps, "step") if training.steps else "open number of steps"
    size = f"{steps} of up to {training.tokens * training.accumulate:,} tokens, seed {recipe.seed}"
    parts = {
        "Data": [f"{data[0]}; fingerprint {fingerprint[:16]}.", *data[1:]],
        SCORES: lines,
        "Training": [f"{size}; everything else is in recipe.toml.", *made],
    }
    return _paragraphs(recipe, parameters, parts)


def imported_card(recipe: Recipe, parameters: int, lines: list[str]) -> str:
    """The card of an imported model; ``lines`` give its source."""
    known = ["", "No scores are known; `regard evaluate` computes them."] if recipe.info.writes != "nothing" else []
    return _paragraphs(recipe, parameters, {"Source": [*lines, *known]})


def _paragraphs(recipe: Recipe, parameters: int, parts: Mapping[str, Sequence[str]]) -> str:
    """What a model is, and the lines of each part below its title."""
    text = recipe.text
    codes = text.source_language, text.target_language
    languages = f": {' → '.join(codes)}" if recipe.info.learns_from == "pairs" and UNKNOWN not in codes else ""
    sizes = f"{parameters / 1e6:.1f} million parameters: {size_line(recipe.model)}"
    title = [f"# {recipe.info.noun.capitalize()}{languages}", "", f"A {recipe.model.info.noun} of {sizes}.", ""]
    return "\n".join([*title, *(line for name, some in parts.items() for line in (f"## {name}", "", *some, ""))])


def size_line(model: Model) -> str:
    """The sizes of a model in a line."""
    if isinstance(model, RnnSection | TransformerSection):
        layers = f"{model.encoder_layers} + {model.decoder_layers} layers"
    else:
        layers = counted(model.layers, "layer")
    if isinstance(model, RnnSection):
        attention = "no attention" if model.score == "none" else f"{model.score} attention"
        return f"{layers}, {model.cell}, d_model {model.d_model}, {attention}"
    if isinstance(model, RnnEncoderSection):
        return f"{layers}, {model.cell}, d_model {model.d_model}, pooled by {model.pool}"
    heads = " + ".join(map(str, dict.fromkeys(count for _, count in model.attention.values())))
    heads = f"{heads} heads" if "+" in heads else counted(model.heads, "head")
    return f"{layers}, d_model {model.d_model}, d_ff {model.d_ff}, {heads}, {model.norm_place}-norm"


def final(output: Path) -> bool:
    """Whether a model folder's card holds its final scores; a run killed after its last step has still to make them."""
    path = output / CARD
    text = disk.content(path, kind="card").decode("utf-8", "replace") if path.exists() else ""
    return "\n* " in text.partition(f"\n## {SCORES}\n")[2].partition("\n## ")[0]


def left_out(prepared: PreparedData) -> list[str]:
    """How many examples were not learned from, and why; nothing where all were."""
    counts = {kind: count for kind, count in prepared.left_out.get("counts", {}).items() if count}
    if not counts:
        return []
    return ["Left out: " + ", ".join(f"{count:,} {kind}" for kind, count in counts.items()) + "."]


@dataclass(eq=False)
class ModelFolderWriter:
    """Writes the model folder: recipe and assets, then each best model, then its card.

    Args:
        output: the folder.
        teaching: has the model.
        files: writes them.
        provenance: what the card tells of the run.
        begun: the folder of the model that the training began from, if there is one.
    """

    output: Path
    teaching: TrainingTask
    files: Files
    provenance: Provenance
    begun: Path | None = None

    def __post_init__(self) -> None:
        """The recipe to be written, and the base of an adapter."""
        self.recipe = self.teaching.task.recipe
        self.base = self.begun if self.recipe.adapt.rank else None

    def begin(self, told: Callable[[str], None]) -> None:
        """Write recipe and vocabularies at the start; a damaged model folder is rewritten and reported.

        Raises:
            NoValidCheckpoint: it is damaged, and so is the checkpoint of its model.
        """
        try:
            manifest.verify(self.output, extra=True)
        except Damaged as damage:
            self._renew(damage, told)
        else:
            manifest.replace(self.output, {RECIPE: [recipe_toml(self.recipe).encode()]}, self.files)

    def set_steps(self, steps: int) -> None:
        """Set the number of steps of the recipe to be written."""
        training = self.recipe.training.model_copy(update={"steps": steps})
        self.recipe = self.recipe.model_copy(update={"training": training})

    def best(self, weights: Weights, best: Best, validation: Validation, seconds: float) -> None:
        """The model folder with the best weights so far, replaced as one."""
        unit = "" if self.recipe.info.has_labels else " nats a token"
        parts = [f"loss {validation.loss:.3f}{unit}"]
        parts += [format_score(name, value) for name, value in validation.scores.items()]
        line = f"At step {best.step:,}: {', '.join(parts)}."
        self._write({MODEL: self._model(weights)}, [line], seconds)

    def end(self, told: Callable[[str], None], should_stop: Callable[[], bool], seconds: float) -> None:
        """Write the card with the saved model's scores on the validation data.

        Args:
            told: called with the scores.
            should_stop: asked between two steps of a search.
            seconds: that the whole training took.

        Raises:
            Stopped: ``should_stop`` returned true.
        """
        device = str(self.teaching.task.device)
        best = load(self.output, device)
        told("scoring the best model on the validation data")
        lines = self.teaching.finish(best, should_stop)
        if self.begun is not None:
            lines += self.teaching.finish_begun(partial(load, self.begun, device), should_stop)
        self._write(self._assets(best), lines, seconds)
        for line in lines:
            if line.startswith("* "):  # tables are for the card
                told(line)

    def _renew(self, damage: Damaged, told: Callable[[str], None]) -> None:
        """Rewrite the model folder from its model's checkpoint; before there is one, recipe and assets only."""
        for name in (MODEL, *self._standing()):
            if (self.output / name).is_dir():
                raise UsageError("is a folder in the place of a file; move it elsewhere", str(self.output / name))
        progress = load_progress(self.output / "training")
        best = progress.best if progress else None
        if progress is None or best is None:
            if (self.output / manifest.NAME).exists():
                told(f"{damage}; training rewrites the model folder")
            self._forget()
            for name, content in self._standing().items():
                self.files.replace(self.output / name, content)
            return
        place = self.output / "training" / "checkpoints" / checkpoint.name(best.step)
        try:
            weights = checkpoint.weights(place)
        except (UsageError, Damaged):
            message = f"is lost or damaged, and the model folder is damaged ({damage}); put a good one there, or start "
            raise NoValidCheckpoint(f"{message}again with {Option('resume', 'never')}", str(place)) from None
        told(f"{damage}; the model folder is rewritten from {place.name}")
        self._forget()
        line = f"At step {best.step:,}: {best.metric} {best.value:.3f}."  # no more is known of its validation
        self._write({MODEL: self._model(weights)}, [line], progress.seconds)

    def _forget(self) -> None:
        """Remove the manifests; killed in between, the next start finds the folder damaged again."""
        for name in (manifest.NEXT, manifest.NAME):
            if (self.output / name).exists():
                self.files.remove(self.output / name)

    def _standing(self) -> dict[str, list[bytes]]:
        """Recipe and assets, and how products are computed where it is validated."""
        standing = {**self._assets(self.teaching.task), RECIPE: [recipe_toml(self.recipe).encode()]}
        if self.teaching.task.device.type != "cpu":
            return standing
        paths: dict[str, str] = {processor.kind(): self.teaching.paths.exact}
        with suppress(RegardError, KeyError, OSError):  # damaged: it is written anew
            path, entry = self.output / PROCESSORS, manifest.read_manifest(self.output / manifest.NAME)[PROCESSORS]
            if hashlib.sha256(path.read_bytes()).hexdigest() == entry.sha256:
                paths = {**validated_paths(self.output), **paths}
        return {**standing, PROCESSORS: [json_content({"paths": dict(sorted(paths.items()))})]}

    def _write(self, contents: checkpoint.Contents, lines: list[str], seconds: float) -> None:
        teaching = self.teaching
        known = getattr(teaching.task.assets, "languages", None)
        data = [
            *teaching.data_lines(),
            *([known.sentence] if known else []),
            *left_out(teaching.prepared),
            *self.provenance.data_lines(),
        ]
        count = count_parameters(teaching.model)
        made = self.provenance.training_lines(datetime.now(UTC), seconds)
        if self.base:
            data += ["", f"An adapter of `{self.base.absolute().name}`, whose weights have the sha256 {self._digest}."]
        text = card(self.recipe, data, teaching.prepared.fingerprint, count, lines, made)
        manifest.replace(self.output, {**self._standing(), **contents, CARD: [text.encode()]}, self.files)

    @cached_property
    def _digest(self) -> str:
        """The sha256 of the base's weights."""
        assert self.base is not None
        return weights_sha256(self.base)

    def _model(self, weights: Weights) -> Iterator[bytes | memoryview]:
        """The bytes of the weights; of an adapter, of what its base has not."""
        if self.base is None:
            return store.chunks(weights)
        return store.adapter_chunks(weights, self.recipe.adapt.scale, self.base / MODEL, self._digest)

    def _assets(self, task: Task) -> dict[str, list[bytes]]:
        """The files of the assets; of an adapter those that its base has not, and what names the base."""
        contents = {name: [content] for name, content in task.assets.contents.items()}
        if self.base is None:
            return contents
        same = [name for name, (content,) in contents.items() if disk.holds(self.base / name, content)]
        named = base_content(self.output, self.base, self._digest, same)
        return {**{name: one for name, one in contents.items() if name not in same}, BASE: [named]}

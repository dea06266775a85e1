"""Training of image classifiers: their data, and what differs from text classifiers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import gcd, isqrt
from pathlib import Path
from typing import ClassVar

from regard.config import Recipe, VitSection
from regard.data.batches.patches import ImageBatch, ImageExamples, Scale
from regard.data.checks.labels import ImageScan, report_labels
from regard.data.corpora.corpus import Progress
from regard.data.corpora.images import Image, Shape, one_shape
from regard.data.corpora.scan import DataScan
from regard.data.prepare import split
from regard.data.prepare.folder import PreparedExamples
from regard.data.prepare.windowing import ImageEncoder
from regard.models.inputs import Patches, patches
from regard.system.errors import Option, RegardError, UsageError
from regard.tasks.assets import ImageAssets
from regard.tasks.classification.losses import NUMBER
from regard.tasks.classification.training import LabelNames, LabelTrainingTask, refuse_nothing_outside
from regard.tasks.images.classifier import ImageClassification
from regard.tasks.protocols import InputFiles
from regard.tasks.text.preparation import prepare_texts
from regard.tasks.training.base import ProductPaths, RecipeFor, Tell, TrainingJob, held_out
from regard.tasks.training.defaults import MORE, SizeDefaults

IMAGES = 64
"""Default number of images per batch."""
_WARPED = {"training": {"rate": 1e-3}, "images": {"warp": 0.2}}


class ImageTraining(LabelTrainingTask[ImageClassification]):
    """Classification of images as training sees it."""

    noun: ClassVar[str] = "images"
    sizes = (
        SizeDefaults(10_000, "vit-tiny", 85, _WARPED),
        SizeDefaults(100_000, "vit-tiny", 15, _WARPED),
        SizeDefaults(MORE, "vit-tiny", 4, _WARPED),
    )

    def __init__(self, task: ImageClassification, prepared: PreparedExamples, paths: ProductPaths) -> None:
        super().__init__(task, prepared, paths)
        recipe = task.recipe
        self.examples = ImageExamples.of(prepared.text, prepared.labels, task.cut, recipe.training.shard_tokens)
        self.batches = self.examples.feed(recipe, prepared.fingerprint)

    def model_inputs(self, batch: ImageBatch) -> Patches:
        """The patches of a batch."""
        return patches(batch, self.task.device)

    @cached_property
    def validation(self) -> list[ImageBatch]:
        """The validation images, packed."""
        prepared = self.prepared
        return replace(self.examples, pixels=prepared.validation_text, labels=prepared.validation_labels).all()

    def example_text(self, place: int) -> str:
        """A validation image, named by its number."""
        return f"validation image {place + 1:,}"


@dataclass(frozen=True)
class ImageJob(TrainingJob):
    """Classification from scanned corpora of labelled images."""

    scanned: DataScan[ImageScan]
    task = ImageClassification
    training = ImageTraining

    @classmethod
    def of_files(cls, given: InputFiles, asked: RecipeFor, tell: Tell, despite_check: bool) -> ImageJob:
        """The job on files of labelled images."""
        if given.begun:
            raise UsageError("an image classifier begins from nothing", Option("start_from"))
        learned, validation = given.corpora(cls.task.open_corpus)
        shape = one_shape([*learned, *([validation] if validation else [])])
        kind = asked(1, seems := size_defaults(shape)).classification.kind
        scanned = DataScan.of(learned, validation, scan=partial(ImageScan, kind=kind))
        report = report_labels(scanned.learned, held_out(scanned, "images"))
        report.announce(tell, despite_check)
        recipe = asked(report.pairs, {**seems, **batch_defaults(asked(report.pairs, seems))})
        refuse_other_sizes(recipe, shape, learned[0].name)
        return cls(recipe, scanned)

    def prepare(self, folder: Path, progress: Progress) -> PreparedExamples:
        """The images and labels as ids."""
        section = self.recipe.classification
        rests = {"classification.kind": section.kind, "classification.out_of_scope": section.out_of_scope}
        return prepare_texts(self.scanned, self.recipe, folder, self._learn, rests, progress, "images")

    def _learn(self, examples: split.Examples[Image]) -> ImageEncoder:
        refuse_nothing_outside(self.recipe.classification, self.scanned)
        names, largest = LabelNames(self.recipe.classification), 0
        for pixels, label in examples.train_examples():
            names.see(label)
            largest = max(largest, int(pixels.max()))
        if not largest:
            raise RegardError("all pixels of all images are 0: there is nothing to see", self.scanned.name)
        return ImageEncoder(names.ids, largest)

    def assets(self, prepared: PreparedExamples) -> ImageAssets:
        """Scale and labels."""
        regression = self.recipe.classification.kind == "regression"
        labels = (NUMBER,) if regression else tuple(prepared.own["labels"])
        return ImageAssets(Scale(float(prepared.own["largest"])), labels)


def size_defaults(shape: Shape | int) -> dict[str, int]:
    """Recipe defaults from the images: their size, and patches of about the root of their shorter side."""
    if isinstance(shape, int):
        return {}
    both = gcd(shape.height, shape.width)
    root = isqrt(min(shape.height, shape.width))
    patch = max(side for side in range(1, both + 1) if both % side == 0 and side <= max(1, root))
    sizes = {"height": shape.height, "width": shape.width, "channels": shape.channels, "patch": patch}
    return {f"model.{name}": value for name, value in sizes.items()}


def batch_defaults(recipe: Recipe) -> dict[str, int]:
    """Default number of tokens per image and per batch."""
    assert isinstance(recipe.model, VitSection)
    tokens = 1 + recipe.model.patches
    return {"data.max_tokens": tokens, "training.tokens": max(IMAGES * tokens, 16)}


def refuse_other_sizes(recipe: Recipe, shape: Shape | int, where: str) -> None:
    """Raise a UsageError where the images are not of the size that the recipe's model reads, or do not suit it."""
    model = recipe.model
    assert isinstance(model, VitSection)
    wanted = Shape(model.height, model.width, model.channels)
    values = shape if isinstance(shape, int) else shape.values
    if values != wanted.values or (isinstance(shape, Shape) and shape != wanted and Shape.square(values) != shape):
        there = f"{shape:,} pixel values" if isinstance(shape, int) else str(shape)
        raise UsageError(
            f"its images have {there}, but the model reads {wanted} = {wanted.values:,}; say model.height, model.width "
            f"and model.channels (by {Option('settings')}, or in the recipe)",
            where,
        )
    if (shift := recipe.images.shift) >= (side := min(model.height, model.width)):
        message = f"moving images by up to {shift} pixels would empty them, as they are {model.height} x {model.width}"
        raise UsageError(f"{message}; choose less than {side}", "images.shift")
    if 1 + model.patches > recipe.training.tokens:
        raise UsageError(
            f"an image has {1 + model.patches:,} tokens, a patch each and the class token, but training.tokens is "
            f"{recipe.training.tokens:,}; choose a larger one, or a larger model.patch"
        )

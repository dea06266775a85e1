"""The public classes, one for each task, and the functions that give them: ``load`` and ``train``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import overload

from regard.library.base import Model, opened
from regard.runs.train import train as train_task
from regard.runs.train_options import TrainOptions, taking
from regard.system.errors import UsageError
from regard.system.interrupts import InterruptHandler
from regard.tasks import model_folder
from regard.tasks.classification.classifier import Classification
from regard.tasks.classification.pairs import PairClassification
from regard.tasks.images.classifier import ImageClassification
from regard.tasks.language import generator, masked
from regard.tasks.tagging.tagger import Tagging
from regard.tasks.text.encoding import Encoding
from regard.tasks.text.precisions import Wanted, refuse_where_torch_computes
from regard.tasks.training.own_model import OwnModule, load_own, own_class
from regard.tasks.training.own_model import fit as fit
from regard.tasks.translation.text_to_text import writer
from regard.tasks.translation.translator import Translation


class Translator(Translation, Model):
    """A translator: :meth:`translate`, :meth:`nbest`, :meth:`sample`, :meth:`align`, :meth:`evaluate`."""


class TextToText(writer.TextToText, Model):
    """A text-to-text model: :meth:`ask`, :meth:`nbest`, :meth:`sample`, :meth:`evaluate`."""


class Classifier(Classification, Model):
    """A classifier of texts: :meth:`classify`, :meth:`scores`, :meth:`evaluate`."""


class PairClassifier(PairClassification, Model):
    """A classifier of sentence pairs: :meth:`classify`, :meth:`scores`, :meth:`evaluate`."""


class ImageClassifier(ImageClassification, Model):
    """A classifier of images: :meth:`classify`, :meth:`scores`, :meth:`evaluate`."""


class Tagger(Tagging, Model):
    """A tagger of words: :meth:`tag`, :meth:`tag_words`, :meth:`evaluate`."""


class LanguageModel(generator.LanguageModel, Model):
    """A language model: :meth:`generate`, :meth:`stream`, :meth:`perplexity`, :meth:`score`."""


class MaskedLm(masked.MaskedLm, Model):
    """A model of masked words: :meth:`fill`."""


class TextEncoder(Encoding, Model):
    """An encoder of texts: :meth:`encode`."""


@overload
def load(folder: Path | str, device: str | None = None, *, precision: Wanted = "auto") -> Model: ...
@overload
def load(folder: Path | str, device: str | None = None, *, model: type[OwnModule]) -> OwnModule: ...
def load(
    folder: Path | str,
    device: str | None = None,
    *,
    model: type[OwnModule] | None = None,
    precision: Wanted = "auto",
) -> Model | OwnModule:
    """Load the model of a folder as the class of its task; ``Translator.load`` and so on name the class.

    Args:
        folder: what ``regard train`` wrote, or ``regard demo``.
        device: ``cpu``, ``cuda``, ``cuda:1`` …; default: a GPU if there is one.
        model: the class of a model of your own, which :func:`regard.fit` wrote. It is made with the arguments that the
            folder keeps; no code comes from a folder.
        precision: of the engine, which computes on a processor: fp32, bf16 or int8; ``auto``: the fastest that
            ``regard pack`` found to keep the score, else fp32.

    Raises:
        UsageError: the folder keeps a model of your own, and ``model`` is not given; or torch computes the model, which
            has no such precision.
        RegardError: it is no model folder, or a file of it is damaged.
    """
    if model is not None:
        refuse_where_torch_computes(precision, "a model of your own")
        return load_own(folder, model, device)
    if own := own_class(folder):
        raise UsageError(f"{folder} keeps a model of your own class; give model={own}", "model")
    return opened(model_folder.load(folder, device), folder, precision)


@taking(TrainOptions)
def train(options: TrainOptions) -> Model:
    """Train a translator from two files of sentences, or a model of another task from one file.

    Progress goes to stderr: a bar on a terminal, a line in a notebook, lines elsewhere. After a stop or kill at
    any moment, the same call resumes and ends with the same bits.

    Returns:
        The model.

    Raises:
        UsageError: an option, a recipe key or a value does not fit.
        RegardError: the data cannot be used, or the output folder belongs to something else.
        Stopped: ``should_stop`` returned true, or Ctrl-C was pressed; all is saved.
    """
    with InterruptHandler(options.should_stop) as should_stop:
        made = train_task(**{**vars(options), "should_stop": should_stop})
    if made is None:  # another process of the same run has the model
        sys.exit(0)
    return opened(made, options.output)
